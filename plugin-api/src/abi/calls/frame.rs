//! Calls of an analyzer: the columns of one frame.

use crate::abi::views::{LinkView, ListView, StateView};
use crate::device::DevicePtr;
use crate::snapshot::Link;
use galamost_plugin_macros::Layout;
use std::marker::PhantomData;

/// A borrowed column of values in tag order, one entry per particle or link: a slice that crosses the boundary.
///
/// ```
/// # use galamost_plugin_api::analyzer::FrameColumn;
/// let mass = vec![1.0, 2.0];
/// let column = FrameColumn::new(&mass);
/// assert_eq!(column.slice(), [1.0, 2.0]);
/// ```
///
/// It cannot outlive the values:
///
/// ```compile_fail,E0505
/// # use galamost_plugin_api::analyzer::FrameColumn;
/// let mass = vec![1.0, 2.0];
/// let column = FrameColumn::new(&mass);
/// drop(mass);
/// assert_eq!(column.slice(), [1.0, 2.0]);
/// ```
#[repr(C)]
#[derive(Layout)]
pub struct FrameColumn<'a, T> {
    // invariant: null, or the address of `len` values that are borrowed for 'a
    data: *const T,
    len: usize,
    borrowed: PhantomData<&'a [T]>,
}

impl<T> Clone for FrameColumn<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for FrameColumn<'_, T> {}

impl<T: std::fmt::Debug> std::fmt::Debug for FrameColumn<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.slice().fmt(f)
    }
}

// SAFETY: the column is a shared slice
unsafe impl<T: Sync> Send for FrameColumn<'_, T> {}
// SAFETY: a shared reference gives only `&T`, which several threads may use because `T` is Sync
unsafe impl<T: Sync> Sync for FrameColumn<'_, T> {}

impl<'a, T> FrameColumn<'a, T> {
    /// A column without entries.
    pub const EMPTY: Self = Self { data: std::ptr::null(), len: 0, borrowed: PhantomData };

    /// Creates a column from a slice.
    pub fn new(slice: &'a [T]) -> Self {
        Self { data: slice.as_ptr(), len: slice.len(), borrowed: PhantomData }
    }

    /// Returns the values.
    pub fn slice(self) -> &'a [T] {
        if self.data.is_null() {
            return &[];
        }
        // SAFETY: `data` is the address of `len` values that are borrowed for 'a (invariant of the struct)
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

/// Thermodynamic quantities of the whole system at one step.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Layout)]
pub struct Thermo {
    /// Number of particles.
    pub n: u64,
    /// Translational degrees of freedom, used for kT.
    pub degrees_of_freedom: f64,
    /// Translational kinetic energy.
    pub kinetic: f64,
    /// kT = 2 K / degrees of freedom.
    pub kt: f64,
    /// Rotational degrees of freedom; 0 if no integrator propagates orientations.
    pub rotational_degrees_of_freedom: f64,
    /// Rotational kinetic energy.
    pub rotational_kinetic: f64,
    /// Rotational kT.
    pub rotational_kt: f64,
    /// Potential energy of all force components.
    pub potential: f64,
    /// Pressure: the trace of the pressure tensor divided by the number of dimensions.
    pub pressure: f64,
    /// Pressure tensor xx, xy, xz, yy, yz, zz: (Σ m v v + virial)/V.
    pub pressure_tensor: [f64; 6],
    /// Total momentum.
    pub momentum: [f64; 3],
    /// Volume, or area in two dimensions.
    pub volume: f64,
    /// Conserved quantity of the equations of motion: K + U plus the contributions of the integrators.
    pub conserved: f64,
    /// Reserved; must be 0.
    pub reserved: [f64; 8],
}

/// An optional per-particle array of a frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, Layout)]
pub struct FrameArray<'a> {
    pub(crate) name: FrameColumn<'a, u8>,
    pub(crate) width: u32,
    pub(crate) reals: FrameColumn<'a, f64>,
    pub(crate) ints: FrameColumn<'a, i32>,
}

impl<'a> FrameArray<'a> {
    /// Creates an array of floating-point numbers.
    pub fn reals(name: &'a str, width: u32, values: &'a [f64]) -> Self {
        Self {
            name: FrameColumn::new(name.as_bytes()),
            width,
            reals: FrameColumn::new(values),
            ints: FrameColumn::EMPTY,
        }
    }
    /// Creates an array of integers.
    pub fn ints(name: &'a str, width: u32, values: &'a [i32]) -> Self {
        Self {
            name: FrameColumn::new(name.as_bytes()),
            width,
            reals: FrameColumn::EMPTY,
            ints: FrameColumn::new(values),
        }
    }
}

/// One call of an analyzer. Authors read it through [`crate::analyzer::Frame`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Layout)]
pub struct FrameCall<'a> {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Number of dimensions, 2 or 3.
    pub dimensions: u32,
    /// Time step.
    pub step: u64,
    /// Time since the start of the run.
    pub time: f64,
    /// Box lengths.
    pub box_length: [f64; 3],
    /// Tilt factors xy, xz, yz of the box; see [`crate::tilt`].
    pub tilt: [f64; 3],
    /// Thermodynamic quantities, if `wants.thermo` is set.
    pub thermo: Option<&'a Thermo>,
    /// Potential energy of each force component in pipeline order, if `wants.thermo` is set.
    pub energies: FrameColumn<'a, f64>,
    /// Names of the force components.
    pub energy_names: FrameColumn<'a, FrameColumn<'a, u8>>,
    /// Positions, if `wants.particles` is set.
    pub position: FrameColumn<'a, [f64; 3]>,
    /// Images.
    pub image: FrameColumn<'a, [i32; 3]>,
    /// Velocities.
    pub velocity: FrameColumn<'a, [f64; 3]>,
    /// Particle types.
    pub type_id: FrameColumn<'a, u32>,
    /// Masses.
    pub mass: FrameColumn<'a, f64>,
    /// Optional arrays.
    pub arrays: FrameColumn<'a, FrameArray<'a>>,
    /// Bonds, if `wants.topology` is set.
    pub bonds: FrameColumn<'a, Link<2>>,
    /// Angles.
    pub angles: FrameColumn<'a, Link<3>>,
    /// Dihedrals.
    pub dihedrals: FrameColumn<'a, Link<4>>,
    /// Impropers.
    pub impropers: FrameColumn<'a, Link<4>>,
    /// The particles in memory of the run's device, for analyzers with their own kernels.
    pub state: StateView,
    /// The neighbor list in memory of the run's device.
    pub list: ListView,
    /// The bonds in memory of the run's device.
    pub bond_view: LinkView,
    /// Lees-Edwards: displacement along x of the image above in y; 0 without shear.
    pub shear_offset: f64,
    /// Reserved; must be 0.
    pub reserved: [DevicePtr<u8>; 7],
}
