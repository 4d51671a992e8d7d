//! Types that cross the boundary while a run is set up.

use crate::stable::{Opaque, ROption, RResult, RStr, RString, RVec, StableAbi, TablePointer};

/// One mistake in the user's input.
#[repr(C)]
#[derive(StableAbi, Clone)]
pub struct WireInput {
    /// The file; empty for the pipeline.
    pub file: RString,
    /// Line, starting from 1; 0 for no position.
    pub line: u32,
    /// Column, starting from 1.
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

/// An object created by a plugin.
#[repr(C)]
#[derive(StableAbi)]
pub struct WireObject {
    /// The object.
    pub this: *mut Opaque,
    /// Returns a table of the object by name.
    pub interface: extern "C" fn(*mut Opaque, RStr<'_>) -> ROption<TablePointer>,
    /// Destroys it.
    pub drop: extern "C" fn(*mut Opaque),
}

/// Source text and parameter rows for a device.
#[repr(C)]
#[derive(StableAbi, Clone)]
pub struct WireCode {
    /// CUDA C++.
    pub text: RString,
    /// Parameter rows, one after the other.
    pub rows: RVec<u8>,
    /// Rows of [`crate::pair::CutoffRow`], for pairs.
    pub cutoff_rows: RVec<u8>,
}

/// Force, torque and energy of one pair.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct WirePair {
    /// Force on the first particle.
    pub force: [f64; 3],
    /// Torque on the first particle, in the lab frame.
    pub torque: [f64; 3],
    /// Energy of the pair.
    pub energy: f64,
}

/// The engine's services as a plugin gets them.
#[repr(C)]
#[derive(StableAbi)]
pub struct WireHost {
    /// The engine's object.
    pub this: *mut Opaque,
    /// Returns a table by name: `host/1`.
    pub interface: extern "C" fn(*mut Opaque, RStr<'_>) -> ROption<TablePointer>,
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

/// A function of the plugin that the engine calls with the plugin's data and a range.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct Callback {
    /// The function.
    pub call: extern "C" fn(*mut Opaque, u64, u64),
}

/// Values of an optional array.
#[repr(C)]
#[derive(StableAbi, Clone)]
pub struct WireArray {
    /// Name.
    pub name: RString,
    /// Number of values per particle.
    pub width: u32,
    /// Floating-point numbers; empty if `ints` is used.
    pub reals: RVec<f64>,
    /// Integers; empty if `reals` is used.
    pub ints: RVec<i32>,
}

/// [`crate::snapshot::Snapshot`] as it crosses.
#[repr(C)]
#[derive(StableAbi, Clone, Default)]
pub struct WireSnapshot {
    /// Fields as in [`crate::snapshot::Snapshot`].
    pub step: u64,
    /// Dimensions.
    pub dimensions: u32,
    /// Box lengths.
    pub box_length: [f64; 3],
    /// Tilt factors.
    pub tilt: [f64; 3],
    /// Type names.
    pub types: RVec<RString>,
    /// Positions.
    pub position: RVec<[f64; 3]>,
    /// Images.
    pub image: RVec<[i32; 3]>,
    /// Velocities.
    pub velocity: RVec<[f64; 3]>,
    /// Particle types.
    pub type_id: RVec<u32>,
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
    /// Improper type names.
    pub improper_types: RVec<RString>,
    /// Impropers.
    pub impropers: RVec<[u32; 5]>,
}

/// A component, ready to cross the boundary.
pub struct Object(pub WireObject);
