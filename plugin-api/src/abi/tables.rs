//! The published tables of functions, requested by name from the engine or a plugin.

use super::wire_types::{Callback, Extent, Wire, WireCode, WireHost, WireObject, WirePair, WireSnapshot};
use crate::stable::{Opaque, ROption, RSlice, RSliceMut, RStr, RString, RVec, StableAbi};

/// A published table and its name.
pub trait AbiTable: StableAbi {
    /// The name.
    const NAME: &'static str;
}

macro_rules! names {
    ($($table:ty: $name:literal),+ $(,)?) => {
        $(impl AbiTable for $table { const NAME: &'static str = $name; })+
    };
}
names! {
    Library1: "library/1", Layouts1: "layouts/1", Component1: "component/1", Generator1: "generator/1", Pair1: "pair/1", Bonded1: "bonded/1",
    Force1: "force/1", Integrator1: "integrator/1", Updater1: "updater/1", Analyzer1: "analyzer/1", Sampler1: "sampler/1", Host1: "host/1",
}

/// `library/1`: the components of a library.
#[repr(C)]
#[derive(StableAbi)]
pub struct Library1 {
    /// RON list of [`crate::component::ComponentInfo`].
    pub describe: extern "C" fn() -> Wire<RString>,
    /// Creates a component: kind, name, RON text of its value, and line and column of the text in the file.
    pub create: extern "C" fn(u32, RStr<'_>, RStr<'_>, u32, u32) -> Wire<WireObject>,
}

/// `layouts/1`: layouts of the structs that cross in every step, as this library was built with them.
#[repr(C)]
#[derive(StableAbi)]
pub struct Layouts1 {
    /// RON list of [`crate::layout::StructLayout`].
    pub structs: extern "C" fn() -> RString,
}

/// `component/1`: methods of every component.
#[repr(C)]
#[derive(StableAbi)]
pub struct Component1 {
    /// Receives the system (RON of [`crate::component::SystemInfo`]) and returns the needs (RON of
    /// [`crate::component::Needs`]).
    pub bind: extern "C" fn(*mut Opaque, RStr<'_>) -> Wire<RString>,
    /// Returns the state for a checkpoint.
    pub save: extern "C" fn(*mut Opaque) -> Wire<RVec<u8>>,
    /// Restores the state from a checkpoint.
    pub load: extern "C" fn(*mut Opaque, RSlice<'_, u8>) -> Wire<()>,
    /// Receives the engine's services before the first step.
    pub start: extern "C" fn(*mut Opaque, *const WireHost) -> Wire<()>,
    /// Writes final results; called once, after the last step or an error of the run, and before the last `save`.
    pub finish: extern "C" fn(*mut Opaque) -> Wire<()>,
}

/// `generator/1`.
#[repr(C)]
#[derive(StableAbi)]
pub struct Generator1 {
    /// Changes a snapshot. The argument after the object is RON of [`crate::generator::GeneratorContext`].
    pub generate: extern "C" fn(*mut Opaque, RStr<'_>, &mut WireSnapshot) -> Wire<()>,
    /// Returns the number of complete frames in the file, if the generator reads trajectories. Takes RON of
    /// [`crate::generator::GeneratorContext`]. The object may cache the positions of frames between calls.
    pub count: extern "C" fn(*mut Opaque, RStr<'_>) -> Wire<ROption<u64>>,
    /// As `generate`, for the frame with this number, starting from 0.
    pub read: extern "C" fn(*mut Opaque, RStr<'_>, u64, &mut WireSnapshot) -> Wire<()>,
}

/// `pair/1`.
#[repr(C)]
#[derive(StableAbi)]
pub struct Pair1 {
    /// Evaluates a pair of types in a [`crate::pair::PairConfiguration`], with cutoff and mode, without velocities and
    /// random numbers.
    pub evaluate: extern "C" fn(*mut Opaque, u32, u32, *const Opaque) -> Wire<WirePair>,
    /// Adds the forces on a range of particles: [`crate::pair::PairCall`], [`crate::views::Sums`].
    pub cpu: extern "C" fn(*mut Opaque, *const Opaque, *mut Opaque) -> Wire<()>,
    /// Returns source text and parameter rows for a precision.
    pub device: extern "C" fn(*mut Opaque, u32) -> Wire<WireCode>,
}

/// `bonded/1`.
#[repr(C)]
#[derive(StableAbi)]
pub struct Bonded1 {
    /// Adds the forces on a range of particles: [`crate::bonded::BondedCall`], [`crate::views::Sums`].
    pub cpu: extern "C" fn(*mut Opaque, *const Opaque, *mut Opaque) -> Wire<()>,
    /// Returns source text and parameter rows for a precision.
    pub device: extern "C" fn(*mut Opaque, u32) -> Wire<WireCode>,
}

/// `integrator/1`.
#[repr(C)]
#[derive(StableAbi)]
pub struct Integrator1 {
    /// Returns RON of [`crate::integrator::ProgramInfo`].
    pub program: extern "C" fn(*mut Opaque) -> Wire<RString>,
    /// Returns the initial state; takes RON of [`crate::integrator::GroupInfo`].
    pub state: extern "C" fn(*mut Opaque, RStr<'_>) -> Wire<RVec<u8>>,
    /// Applies a particle phase to a range: [`crate::integrator::ParticleCall`].
    pub cpu_particles: extern "C" fn(*mut Opaque, u32, *const Opaque) -> Wire<()>,
    /// Applies a scalar phase: [`crate::integrator::ScalarCall`].
    pub cpu_scalar: extern "C" fn(*mut Opaque, u32, *const Opaque) -> Wire<()>,
    /// Returns the source text for a precision.
    pub device: extern "C" fn(*mut Opaque, u32) -> Wire<WireCode>,
    /// Returns the contribution of the state to the conserved quantity.
    pub conserved: extern "C" fn(*mut Opaque, RSlice<'_, u8>) -> Wire<f64>,
}

/// `force/1`.
#[repr(C)]
#[derive(StableAbi)]
pub struct Force1 {
    /// Adds forces: [`crate::force::ForceCall`], [`crate::views::Sums`] (host memory; on the CPU only).
    pub compute: extern "C" fn(*mut Opaque, *const Opaque, *mut Opaque) -> Wire<()>,
    /// Places particles without mass: [`crate::force::ForceCall`].
    pub place: extern "C" fn(*mut Opaque, *const Opaque) -> Wire<()>,
}

/// `updater/1`.
#[repr(C)]
#[derive(StableAbi)]
pub struct Updater1 {
    /// Changes the state between steps: [`crate::updater::UpdateCall`].
    pub update: extern "C" fn(*mut Opaque, *mut Opaque) -> Wire<()>,
}

/// `analyzer/1`.
#[repr(C)]
#[derive(StableAbi)]
pub struct Analyzer1 {
    /// Reads one frame: [`crate::analyzer::FrameCall`].
    pub analyze: extern "C" fn(*mut Opaque, *const Opaque) -> Wire<()>,
}

/// `sampler/1`.
#[repr(C)]
#[derive(StableAbi)]
pub struct Sampler1 {
    /// Draws the batch with this number.
    pub sample: extern "C" fn(*mut Opaque, u64) -> Wire<()>,
}

/// `host/1`: services of the engine.
#[repr(C)]
#[derive(StableAbi)]
pub struct Host1 {
    /// Calls a function for all chunks of 0 … n on the engine's threads: n, chunk size, function, its data.
    pub parallel: extern "C" fn(*mut Opaque, u64, u64, Callback, *mut Opaque),
    /// Writes to the log: level (0 error … 3 debug), text.
    pub log: extern "C" fn(*mut Opaque, u32, RStr<'_>),
    /// Allocates device memory, initialized to 0.
    pub allocate: extern "C" fn(*mut Opaque, u64) -> Wire<u64>,
    /// Frees device memory.
    pub free: extern "C" fn(*mut Opaque, u64) -> Wire<()>,
    /// Copies to the device.
    pub upload: extern "C" fn(*mut Opaque, u64, RSlice<'_, u8>) -> Wire<()>,
    /// Copies from the device, after all previous launches.
    pub download: extern "C" fn(*mut Opaque, u64, RSliceMut<'_, u8>) -> Wire<()>,
    /// Compiles a module: name, CUDA C++.
    pub compile: extern "C" fn(*mut Opaque, RStr<'_>, RStr<'_>) -> Wire<u64>,
    /// Finds a kernel: module, name.
    pub kernel: extern "C" fn(*mut Opaque, u64, RStr<'_>) -> Wire<u64>,
    /// Launches a kernel on the engine's stream: kernel, grid, block, bytes of shared memory, arguments as for
    /// `cuLaunchKernel`.
    pub launch: extern "C" fn(*mut Opaque, u64, Extent, Extent, u32, RSlice<'_, *mut Opaque>) -> Wire<()>,
    /// Returns the largest number of bytes of shared memory that a block can have.
    pub block_memory: extern "C" fn(*mut Opaque) -> Wire<u32>,
    /// Returns the current address of an optional per-particle array; 0 if there is none.
    pub array: extern "C" fn(*mut Opaque, RStr<'_>) -> u64,
    /// Returns the number of GPUs that share the work of forces with `Needs::shared`.
    pub ranks: extern "C" fn(*mut Opaque) -> u32,
    /// Launches the sum of integers of all GPUs: values, total, number of values, condition.
    pub all_reduce: extern "C" fn(*mut Opaque, u64, u64, u64, u64) -> Wire<()>,
    /// Launches the completion of an array with the parts of the other GPUs: array, bytes of an element, particles of an element.
    pub all_gather: extern "C" fn(*mut Opaque, u64, u64, u32) -> Wire<()>,
    /// Writes the address of an array in each GPU of the run, and returns the number of this one: its address here, the addresses.
    pub peers: extern "C" fn(*mut Opaque, u64, RSliceMut<'_, u64>) -> Wire<u32>,
    /// Launches a barrier of all GPUs, and returns the address of its `RankBarrierArgs`.
    pub rank_barrier: extern "C" fn(*mut Opaque) -> Wire<u64>,
    /// Returns the bytes that each rank of the run passes, in the order of the ranks.
    pub gather_bytes: extern "C" fn(*mut Opaque, RSlice<'_, u8>) -> Wire<RVec<RVec<u8>>>,
    /// Allocates memory of the host, initialized to 0, that kernels access at the same address.
    pub allocate_mapped: extern "C" fn(*mut Opaque, u64) -> Wire<u64>,
}
