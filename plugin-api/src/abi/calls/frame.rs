//! Calls of an analyzer: the columns of one frame.

use crate::abi::views::{LinkView, ListView, StateView};
use crate::device::DevicePtr;
use crate::snapshot::Link;
use galamost_plugin_macros::Layout;

/// A borrowed column of values in tag order, one entry per particle or link.
#[repr(C)]
#[derive(Debug, Layout)]
pub struct FrameColumn<T> {
    data: *const T,
    len: usize,
}

impl<T> Clone for FrameColumn<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for FrameColumn<T> {}

impl<T> FrameColumn<T> {
    /// A column without entries.
    pub const EMPTY: Self = Self { data: std::ptr::null(), len: 0 };

    /// Creates a column from a slice. The slice must outlive the column.
    pub fn new(slice: &[T]) -> Self {
        Self { data: slice.as_ptr(), len: slice.len() }
    }

    /// Returns the values.
    ///
    /// # Safety
    /// The slice that the column was created from must still exist.
    pub(crate) unsafe fn slice<'a>(self) -> &'a [T] {
        if self.data.is_null() || self.len == 0 {
            return &[];
        }
        // SAFETY: the slice outlives this call (contract of this function)
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
pub struct FrameArray {
    pub(crate) name: FrameColumn<u8>,
    pub(crate) width: u32,
    pub(crate) reals: FrameColumn<f64>,
    pub(crate) ints: FrameColumn<i32>,
}

impl FrameArray {
    /// Creates an array of floating-point numbers.
    pub fn reals(name: &str, width: u32, values: &[f64]) -> Self {
        Self {
            name: FrameColumn::new(name.as_bytes()),
            width,
            reals: FrameColumn::new(values),
            ints: FrameColumn::EMPTY,
        }
    }
    /// Creates an array of integers.
    pub fn ints(name: &str, width: u32, values: &[i32]) -> Self {
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
pub struct FrameCall {
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
    /// Thermodynamic quantities, if `wants.thermo` is set; else null.
    pub thermo: *const Thermo,
    /// Potential energy of each force component in pipeline order, if `wants.thermo` is set.
    pub energies: FrameColumn<f64>,
    /// Names of the force components.
    pub energy_names: FrameColumn<FrameColumn<u8>>,
    /// Positions, if `wants.particles` is set.
    pub position: FrameColumn<[f64; 3]>,
    /// Images.
    pub image: FrameColumn<[i32; 3]>,
    /// Velocities.
    pub velocity: FrameColumn<[f64; 3]>,
    /// Particle types.
    pub type_id: FrameColumn<u32>,
    /// Masses.
    pub mass: FrameColumn<f64>,
    /// Optional arrays.
    pub arrays: FrameColumn<FrameArray>,
    /// Bonds, if `wants.topology` is set.
    pub bonds: FrameColumn<Link<2>>,
    /// Angles.
    pub angles: FrameColumn<Link<3>>,
    /// Dihedrals.
    pub dihedrals: FrameColumn<Link<4>>,
    /// The particles in memory of the run's device, for analyzers with their own kernels.
    pub state: StateView,
    /// The neighbor list in memory of the run's device.
    pub list: ListView,
    /// The bonds in memory of the run's device.
    pub bond_view: LinkView,
    /// Reserved; must be 0.
    pub reserved: [DevicePtr<u8>; 8],
}
