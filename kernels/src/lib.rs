//! The CUDA C++ headers and kernels of GALAMOST as text.
//!
//! Kernels include these headers by name (`#include "galamost/pair.cuh"`); the engine passes them to the compiler from
//! memory. `galamost/api.cuh` and `galamost/args.cuh` are not listed here: the engine generates them from the Rust
//! definitions of structs and functions.

/// Headers by their include name.
pub const HEADERS: &[(&str, &str)] = &[
    ("galamost/types.cuh", include_str!("../galamost/types.cuh")),
    ("galamost/philox.cuh", include_str!("../galamost/philox.cuh")),
    ("galamost/state.cuh", include_str!("../galamost/state.cuh")),
    ("galamost/list.cuh", include_str!("../galamost/list.cuh")),
    ("galamost/reduce.cuh", include_str!("../galamost/reduce.cuh")),
    ("galamost/virial.cuh", include_str!("../galamost/virial.cuh")),
    ("galamost/pair.cuh", include_str!("../galamost/pair.cuh")),
    ("galamost/bonded.cuh", include_str!("../galamost/bonded.cuh")),
    ("galamost/angles.cuh", include_str!("../galamost/angles.cuh")),
    ("galamost/integrate.cuh", include_str!("../galamost/integrate.cuh")),
    ("galamost/place.cuh", include_str!("../galamost/place.cuh")),
    ("galamost/grid_barrier.cuh", include_str!("../galamost/grid_barrier.cuh")),
    ("galamost/steps.cuh", include_str!("../galamost/steps.cuh")),
    ("galamost/cells.cuh", include_str!("../galamost/cells.cuh")),
    ("galamost/sort.cuh", include_str!("../galamost/sort.cuh")),
    ("galamost/plain_list.cuh", include_str!("../galamost/plain_list.cuh")),
    ("galamost/links.cuh", include_str!("../galamost/links.cuh")),
    ("galamost/rebuild_at_once.cuh", include_str!("../galamost/rebuild_at_once.cuh")),
    ("galamost/rebuild.cuh", include_str!("../galamost/rebuild.cuh")),
    ("galamost/staged.cuh", include_str!("../galamost/staged.cuh")),
    ("galamost/staged_bounds.cuh", include_str!("../galamost/staged_bounds.cuh")),
    ("galamost/staged_halo.cuh", include_str!("../galamost/staged_halo.cuh")),
    ("galamost/staged_list.cuh", include_str!("../galamost/staged_list.cuh")),
    ("galamost/special.cuh", include_str!("../galamost/special.cuh")),
    ("galamost/staged_pair.cuh", include_str!("../galamost/staged_pair.cuh")),
    ("galamost/patch.cuh", include_str!("../galamost/patch.cuh")),
    ("galamost/ranks_barrier.cuh", include_str!("../galamost/ranks_barrier.cuh")),
    ("galamost/ranks_gate.cuh", include_str!("../galamost/ranks_gate.cuh")),
    ("galamost/ranks_phase.cuh", include_str!("../galamost/ranks_phase.cuh")),
    ("galamost/ranks.cuh", include_str!("../galamost/ranks.cuh")),
    ("galamost/block_sums.cuh", include_str!("../galamost/block_sums.cuh")),
    ("galamost/replicas.cuh", include_str!("../galamost/replicas.cuh")),
    ("galamost/messages.cuh", include_str!("../galamost/messages.cuh")),
    ("galamost/messages_sort.cuh", include_str!("../galamost/messages_sort.cuh")),
    ("galamost/near_tiles.cuh", include_str!("../galamost/near_tiles.cuh")),
    ("galamost/system.cuh", include_str!("../galamost/system.cuh")),
    ("galamost/topology.cuh", include_str!("../galamost/topology.cuh")),
];

/// The headers that let a C++ compiler build kernels for the CPU; units include the first.
pub const HOST_HEADERS: [(&str, &str); 2] = [
    ("galamost_host.h", include_str!("../host/galamost_host.h")),
    ("galamost_blocks.h", include_str!("../host/galamost_blocks.h")),
];

/// The source file that such kernels are linked with.
pub const HOST_SOURCE: (&str, &str) = ("galamost_blocks.cpp", include_str!("../host/galamost_blocks.cpp"));
