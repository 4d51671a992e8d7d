//! The boundary as it lies in memory; the one file that names `abi_stable`.
//!
//! The root module is frozen for ever and is asked for tables by name: `library/1`, later perhaps `library/2`. Every
//! object made by a plugin is asked the same way: `component/1`, `pair/1`, …. A published table never changes;
//! growth is a new table, and the engine adapts the older ones it still knows. (abi_stable compares layouts so that
//! a library must be at least as new as its host; a table that grew by one field would shut out every older plugin.)
//!
//! What is exchanged while a run is set up crosses as RON text, so that it can grow by fields. What is exchanged in
//! every step crosses as plain `#[repr(C)]` structs ([`crate::views`]) behind raw pointers.

use abi_stable::StableAbi;
use abi_stable::abi_stability::abi_checking::check_layout_compatibility;
use abi_stable::library::{LibHeader, RootModule, lib_header_from_path};
use abi_stable::sabi_types::VersionStrings;
pub use abi_stable::std_types::{ROption, RResult, RSlice, RSliceMut, RStr, RString, RVec};
use abi_stable::type_layout::TypeLayout;
use std::path::Path;

#[doc(hidden)]
pub use abi_stable::library::{__call_root_module_loader, CheckTypeLayout, RootModuleResult};
#[doc(hidden)]
pub use abi_stable::prefix_type::PrefixTypeTrait;

/// Something only one side can look into.
#[repr(C)]
#[derive(StableAbi)]
pub struct Opaque {
    private: [u8; 0],
}

/// A table of functions together with its layout, which is checked before the table is used.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Table {
    layout: &'static TypeLayout,
    address: *const Opaque,
}

impl Table {
    /// Wraps a table.
    pub const fn new<T: StableAbi>(table: &'static T) -> Self {
        Self { layout: T::LAYOUT, address: std::ptr::from_ref(table).cast() }
    }

    /// The table, if its layout is the expected one.
    ///
    /// # Errors
    /// abi_stable's report, which can be long.
    pub fn get<T: StableAbi>(self) -> Result<&'static T, String> {
        check_layout_compatibility(T::LAYOUT, self.layout).map_err(|e| e.to_string())?;
        // SAFETY: the layout was checked, and tables are statics of libraries that are never unloaded
        Ok(unsafe { &*self.address.cast::<T>() })
    }
}

/// The root module of a plugin; frozen for ever.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = RootRef)))]
#[sabi(missing_field(panic))]
pub struct Root {
    /// Asks the library for a table.
    #[sabi(last_prefix_field)]
    pub interface: extern "C" fn(RStr<'_>) -> ROption<Table>,
}

impl RootModule for RootRef {
    const BASE_NAME: &'static str = "galamost_plugin";
    const NAME: &'static str = "galamost_plugin";
    // the root module has one version for ever; the API's own version stands in the plugin's record
    const VERSION_STRINGS: VersionStrings = VersionStrings::new("1.0.0");
    abi_stable::declare_root_module_statics! {RootRef}
}

/// The header a plugin exports; [`crate::plugin`] makes it.
pub type Header = LibHeader;

/// The header of this root module.
///
/// # Safety
/// `constructor` must return a [`RootRef`].
pub const unsafe fn header(constructor: extern "C" fn() -> RootModuleResult) -> Header {
    // SAFETY: the caller's word
    unsafe { LibHeader::from_constructor::<RootRef>(constructor, CheckTypeLayout::Yes) }
}

/// Loads a plugin's root module. The library stays loaded for ever.
///
/// # Errors
/// What `abi_stable` says: short if the file is no plugin, very long if layouts differ.
pub fn load_root(path: &Path) -> Result<RootRef, String> {
    let header = lib_header_from_path(path).map_err(|e| e.to_string())?;
    header.init_root_module::<RootRef>().map_err(|e| e.to_string())
}

/// A published table and the name it is asked for by.
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
    Frames1: "frames/1",
}

/// One mistake in the user's input.
#[repr(C)]
#[derive(StableAbi, Clone)]
pub struct WireInput {
    /// Another file than the pipeline; empty for the pipeline.
    pub file: RString,
    /// 1-based; 0 for "no place".
    pub line: u32,
    /// 1-based.
    pub column: u32,
    /// The message.
    pub message: RString,
}

/// [`crate::error::Error`] as it crosses.
#[repr(C)]
#[derive(StableAbi, Clone)]
pub struct WireError {
    /// Number of the variant.
    pub cause: u32,
    /// Tag of a particle, or −1.
    pub tag: i64,
    /// Time step.
    pub step: u64,
    /// Path, component or device call.
    pub subject: RString,
    /// The message.
    pub message: RString,
    /// Mistakes of the input.
    pub inputs: RVec<WireInput>,
}

/// What a call returns.
pub type Wire<T> = RResult<T, WireError>;

/// An object made by a plugin.
#[repr(C)]
#[derive(StableAbi)]
pub struct WireObject {
    /// The object.
    pub this: *mut Opaque,
    /// Asks it for a table.
    pub interface: extern "C" fn(*mut Opaque, RStr<'_>) -> ROption<Table>,
    /// Destroys it.
    pub drop: extern "C" fn(*mut Opaque),
}

/// `library/1`: what a library holds.
#[repr(C)]
#[derive(StableAbi)]
pub struct Library1 {
    /// RON list of [`crate::component::ComponentInfo`].
    pub describe: extern "C" fn() -> Wire<RString>,
    /// Makes a component: kind, name, RON text of its value and where that starts in the file.
    pub create: extern "C" fn(u32, RStr<'_>, RStr<'_>, u32, u32) -> Wire<WireObject>,
}

/// `layouts/1`: the structs that cross in every step, as this library was built with them.
#[repr(C)]
#[derive(StableAbi)]
pub struct Layouts1 {
    /// RON list of [`crate::layout::StructLayout`].
    pub structs: extern "C" fn() -> RString,
}

/// `component/1`: what every component can do.
#[repr(C)]
#[derive(StableAbi)]
pub struct Component1 {
    /// Learns the system (RON of [`crate::component::SystemInfo`]), says what it needs (RON of
    /// [`crate::component::Needs`]).
    pub bind: extern "C" fn(*mut Opaque, RStr<'_>) -> Wire<RString>,
    /// State for a checkpoint.
    pub save: extern "C" fn(*mut Opaque) -> Wire<RVec<u8>>,
    /// State from a checkpoint.
    pub load: extern "C" fn(*mut Opaque, RSlice<'_, u8>) -> Wire<()>,
    /// Gets the engine's services before the first step.
    pub start: extern "C" fn(*mut Opaque, *const WireHost) -> Wire<()>,
    /// The run ended well.
    pub finish: extern "C" fn(*mut Opaque) -> Wire<()>,
}

/// `generator/1`.
#[repr(C)]
#[derive(StableAbi)]
pub struct Generator1 {
    /// Changes a snapshot; the first argument after the object is RON of
    /// [`crate::generator::GeneratorContext`].
    pub generate: extern "C" fn(*mut Opaque, RStr<'_>, &mut WireSnapshot) -> Wire<()>,
}

/// `frames/1` (API 0.2): generators that read files of several frames. What is asked of one object, one after the other, may be
/// kept by it: where frames begin.
#[repr(C)]
#[derive(StableAbi)]
pub struct Frames1 {
    /// Number of frames, if it can be told; takes RON of [`crate::generator::GeneratorContext`].
    pub count: extern "C" fn(*mut Opaque, RStr<'_>) -> Wire<ROption<u64>>,
    /// As `generate` of `generator/1`, but the frame with this number, from 0.
    pub read: extern "C" fn(*mut Opaque, RStr<'_>, u64, &mut WireSnapshot) -> Wire<()>,
}

/// Source text and parameter rows for a device.
#[repr(C)]
#[derive(StableAbi, Clone)]
pub struct WireCode {
    /// CUDA C++.
    pub text: RString,
    /// Parameter rows, one after the other.
    pub rows: RVec<u8>,
    /// Rows of [`crate::pair::LoopRow`], for pairs.
    pub loop_rows: RVec<u8>,
}

/// What the first particle of a pair feels.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct WirePair {
    /// Force.
    pub force: [f64; 3],
    /// Torque, in the frame of space.
    pub torque: [f64; 3],
    /// U.
    pub energy: f64,
}

/// `pair/1`.
#[repr(C)]
#[derive(StableAbi)]
pub struct Pair1 {
    /// A pair of types in a [`crate::pair::Pose`], with cutoff and mode, without velocities and random numbers.
    pub evaluate: extern "C" fn(*mut Opaque, u32, u32, *const Opaque) -> Wire<WirePair>,
    /// Adds forces of a range of particles: [`crate::pair::PairCall`], [`crate::views::Sums`].
    pub cpu: extern "C" fn(*mut Opaque, *const Opaque, *mut Opaque) -> Wire<()>,
    /// Source and rows for a precision.
    pub device: extern "C" fn(*mut Opaque, u32) -> Wire<WireCode>,
}

/// `bonded/1`.
#[repr(C)]
#[derive(StableAbi)]
pub struct Bonded1 {
    /// Adds forces of a range of particles: [`crate::bonded::BondedCall`], [`crate::views::Sums`].
    pub cpu: extern "C" fn(*mut Opaque, *const Opaque, *mut Opaque) -> Wire<()>,
    /// Source and rows for a precision.
    pub device: extern "C" fn(*mut Opaque, u32) -> Wire<WireCode>,
}

/// `integrator/1`.
#[repr(C)]
#[derive(StableAbi)]
pub struct Integrator1 {
    /// RON of [`crate::integrator::ProgramInfo`].
    pub program: extern "C" fn(*mut Opaque) -> Wire<RString>,
    /// The state's first value; takes RON of [`crate::integrator::GroupInfo`].
    pub state: extern "C" fn(*mut Opaque, RStr<'_>) -> Wire<RVec<u8>>,
    /// Applies a particle phase to a range: [`crate::integrator::ParticleCall`].
    pub cpu_particles: extern "C" fn(*mut Opaque, u32, *const Opaque) -> Wire<()>,
    /// Applies a scalar phase: [`crate::integrator::ScalarCall`].
    pub cpu_scalar: extern "C" fn(*mut Opaque, u32, *const Opaque) -> Wire<()>,
    /// Source for a device.
    pub device: extern "C" fn(*mut Opaque, u32) -> Wire<WireCode>,
    /// The state's share of the conserved quantity.
    pub conserved: extern "C" fn(*mut Opaque, RSlice<'_, u8>) -> Wire<f64>,
}

/// `force/1`.
#[repr(C)]
#[derive(StableAbi)]
pub struct Force1 {
    /// Adds forces: [`crate::force::ForceCall`], [`crate::views::Sums`] (host memory; on the CPU only).
    pub compute: extern "C" fn(*mut Opaque, *const Opaque, *mut Opaque) -> Wire<()>,
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
    /// Looks at the state: [`crate::analyzer::FrameCall`].
    pub analyze: extern "C" fn(*mut Opaque, *const Opaque) -> Wire<()>,
}

/// `sampler/1`.
#[repr(C)]
#[derive(StableAbi)]
pub struct Sampler1 {
    /// Draws the batch of this number.
    pub sample: extern "C" fn(*mut Opaque, u64) -> Wire<()>,
}

/// The engine's services as a plugin gets them.
#[repr(C)]
#[derive(StableAbi)]
pub struct WireHost {
    /// The engine's object.
    pub this: *mut Opaque,
    /// Asks it for a table: `host/1`.
    pub interface: extern "C" fn(*mut Opaque, RStr<'_>) -> ROption<Table>,
}

/// Size of a grid or block.
#[repr(C)]
#[derive(StableAbi, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Along x.
    pub x: u32,
    /// Along y.
    pub y: u32,
    /// Along z.
    pub z: u32,
}

impl From<u32> for Extent {
    fn from(x: u32) -> Self {
        Self { x, y: 1, z: 1 }
    }
}

/// A function of the plugin that the engine calls with its data and a range.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct Callback {
    /// The function.
    pub call: extern "C" fn(*mut Opaque, u64, u64),
}

/// `host/1`: services of the engine.
#[repr(C)]
#[derive(StableAbi)]
pub struct Host1 {
    /// Calls a function for all chunks of 0 … n on the engine's threads: n, chunk, function, its data.
    pub parallel: extern "C" fn(*mut Opaque, u64, u64, Callback, *mut Opaque),
    /// Writes to the log: level (0 error … 3 debug), text.
    pub log: extern "C" fn(*mut Opaque, u32, RStr<'_>),
    /// Device memory, set to 0.
    pub allocate: extern "C" fn(*mut Opaque, u64) -> Wire<u64>,
    /// Gives device memory back.
    pub free: extern "C" fn(*mut Opaque, u64) -> Wire<()>,
    /// Copies to the device.
    pub upload: extern "C" fn(*mut Opaque, u64, RSlice<'_, u8>) -> Wire<()>,
    /// Copies from the device, after everything launched before.
    pub download: extern "C" fn(*mut Opaque, u64, RSliceMut<'_, u8>) -> Wire<()>,
    /// Compiles a module: name, CUDA C++.
    pub compile: extern "C" fn(*mut Opaque, RStr<'_>, RStr<'_>) -> Wire<u64>,
    /// Finds a kernel: module, name.
    pub kernel: extern "C" fn(*mut Opaque, u64, RStr<'_>) -> Wire<u64>,
    /// Launches a kernel on the engine's stream: kernel, grid, block, shared bytes, arguments as cuLaunchKernel takes
    /// them.
    pub launch: extern "C" fn(*mut Opaque, u64, Extent, Extent, u32, RSlice<'_, *mut Opaque>) -> Wire<()>,
    /// The current address of an optional per-particle array; 0 if there is none.
    pub array: extern "C" fn(*mut Opaque, RStr<'_>) -> u64,
}

/// Values of an optional array.
#[repr(C)]
#[derive(StableAbi, Clone)]
pub struct WireArray {
    /// Name.
    pub name: RString,
    /// Values per particle.
    pub width: u32,
    /// Numbers (empty if `ints` is used).
    pub reals: RVec<f64>,
    /// Whole numbers.
    pub ints: RVec<i32>,
}

/// [`crate::snapshot::Snapshot`] as it crosses.
#[repr(C)]
#[derive(StableAbi, Clone, Default)]
pub struct WireSnapshot {
    /// See [`crate::snapshot::Snapshot`] for every field.
    pub step: u64,
    /// Dimensions.
    pub dimensions: u32,
    /// Box lengths.
    pub box_length: [f64; 3],
    /// Type names.
    pub types: RVec<RString>,
    /// Positions.
    pub position: RVec<[f64; 3]>,
    /// Images.
    pub image: RVec<[i32; 3]>,
    /// Velocities.
    pub velocity: RVec<[f64; 3]>,
    /// Types.
    pub kind: RVec<u32>,
    /// Masses.
    pub mass: RVec<f64>,
    /// Optional arrays.
    pub arrays: RVec<WireArray>,
    /// Bond type names.
    pub bond_types: RVec<RString>,
    /// Bonds: type and tags.
    pub bonds: RVec<[u32; 3]>,
    /// Angle type names.
    pub angle_types: RVec<RString>,
    /// Angles.
    pub angles: RVec<[u32; 4]>,
    /// Dihedral type names.
    pub dihedral_types: RVec<RString>,
    /// Dihedrals.
    pub dihedrals: RVec<[u32; 5]>,
}

#[cfg(test)]
mod tests {
    /// `plugin!` exports the header under this name, which must be the one abi_stable looks for.
    #[test]
    fn the_header_has_the_name_abi_stable_looks_for() {
        assert_eq!(abi_stable::library::ROOT_MODULE_LOADER_NAME, crate::record::ROOT_SYMBOL);
    }
}
