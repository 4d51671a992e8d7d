//! The CUDA C++ of GALAMOST, handed out as text.
//!
//! Kernels include these headers by name (`#include "galamost/pair.cuh"`); the engine gives them to the compiler from
//! memory. `galamost/api.cuh` is not among them: it is made from the Rust definitions of the structs in it.

/// Headers by the name they are included with.
pub const HEADERS: &[(&str, &str)] = &[
    ("galamost/types.cuh", include_str!("../galamost/types.cuh")),
    ("galamost/philox.cuh", include_str!("../galamost/philox.cuh")),
    ("galamost/state.cuh", include_str!("../galamost/state.cuh")),
    ("galamost/list.cuh", include_str!("../galamost/list.cuh")),
    ("galamost/reduce.cuh", include_str!("../galamost/reduce.cuh")),
    ("galamost/pair.cuh", include_str!("../galamost/pair.cuh")),
    ("galamost/bonded.cuh", include_str!("../galamost/bonded.cuh")),
    ("galamost/angles.cuh", include_str!("../galamost/angles.cuh")),
    ("galamost/integrate.cuh", include_str!("../galamost/integrate.cuh")),
    ("galamost/steps.cuh", include_str!("../galamost/steps.cuh")),
    ("galamost/cells.cuh", include_str!("../galamost/cells.cuh")),
    ("galamost/rebuild.cuh", include_str!("../galamost/rebuild.cuh")),
    ("galamost/patch.cuh", include_str!("../galamost/patch.cuh")),
    ("galamost/system.cuh", include_str!("../galamost/system.cuh")),
    ("galamost/topology.cuh", include_str!("../galamost/topology.cuh")),
];

/// The header under which a C++ compiler builds kernels that run on the CPU.
pub const HOST_HEADER: &str = include_str!("../host/galamost_host.h");
