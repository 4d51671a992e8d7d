//! Calls of an analyzer: the columns of one frame.

use crate::abi::views::{LinkView, ListView, StateView};
use crate::device::DevicePtr;
use crate::snapshot::Link;
use galamost_plugin_macros::Layout;

/// A column of values, one entry per particle or link, in tag order.
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
    /// Nothing.
    pub const EMPTY: Self = Self { data: std::ptr::null(), len: 0 };

    /// A column over a slice, which must outlive it.
    pub fn new(slice: &[T]) -> Self {
        Self { data: slice.as_ptr(), len: slice.len() }
    }

    /// The values.
    ///
    /// # Safety
    /// The slice it was made of must still be there.
    pub(crate) unsafe fn slice<'a>(self) -> &'a [T] {
        if self.data.is_null() || self.len == 0 {
            return &[];
        }
        // SAFETY: the slice outlives this call (contract of this function)
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

/// Values of the whole system at one step.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Layout)]
pub struct Thermo {
    /// Number of particles.
    pub n: u64,
    /// Degrees of freedom that kT is computed with.
    pub degrees_of_freedom: f64,
    /// Kinetic energy of translation.
    pub kinetic: f64,
    /// kT = 2 K / degrees of freedom.
    pub kt: f64,
    /// Degrees of freedom of rotation; 0 if nothing turns.
    pub rotational_degrees_of_freedom: f64,
    /// Kinetic energy of rotation.
    pub rotational_kinetic: f64,
    /// kT of rotation.
    pub rotational_kt: f64,
    /// Potential energy of all components.
    pub potential: f64,
    /// Pressure: trace of the tensor over the dimensions.
    pub pressure: f64,
    /// Pressure tensor xx, xy, xz, yy, yz, zz: (Σ m v v + virial)/V.
    pub pressure_tensor: [f64; 6],
    /// Total momentum.
    pub momentum: [f64; 3],
    /// Volume (area in two dimensions).
    pub volume: f64,
    /// What the equations of motion conserve: K + U and the integrators' share.
    pub conserved: f64,
    /// Reserved; must be 0.
    pub reserved: [f64; 8],
}

/// An optional per-particle array in a frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, Layout)]
pub struct FrameArray {
    pub(crate) name: FrameColumn<u8>,
    pub(crate) width: u32,
    pub(crate) reals: FrameColumn<f64>,
    pub(crate) ints: FrameColumn<i32>,
}

impl FrameArray {
    /// Numbers.
    pub fn reals(name: &str, width: u32, values: &[f64]) -> Self {
        Self {
            name: FrameColumn::new(name.as_bytes()),
            width,
            reals: FrameColumn::new(values),
            ints: FrameColumn::EMPTY,
        }
    }
    /// Whole numbers.
    pub fn ints(name: &str, width: u32, values: &[i32]) -> Self {
        Self {
            name: FrameColumn::new(name.as_bytes()),
            width,
            reals: FrameColumn::EMPTY,
            ints: FrameColumn::new(values),
        }
    }
}

/// One call of an analyzer; [`Frame`] is how authors see it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Layout)]
pub struct FrameCall {
    /// Size of this struct in bytes.
    pub size: u32,
    /// 2 or 3.
    pub dimensions: u32,
    /// Step.
    pub step: u64,
    /// Time since the start of the run.
    pub time: f64,
    /// Box lengths.
    pub box_length: [f64; 3],
    /// If wanted: the whole system's values.
    pub thermo: *const Thermo,
    /// If `thermo` is wanted: the potential energy of each force component, in the order of the pipeline.
    pub energies: FrameColumn<f64>,
    /// Names of these components.
    pub energy_names: FrameColumn<FrameColumn<u8>>,
    /// If wanted: positions.
    pub position: FrameColumn<[f64; 3]>,
    /// Images.
    pub image: FrameColumn<[i32; 3]>,
    /// Velocities.
    pub velocity: FrameColumn<[f64; 3]>,
    /// Types.
    pub type_id: FrameColumn<u32>,
    /// Masses.
    pub mass: FrameColumn<f64>,
    /// Optional arrays.
    pub arrays: FrameColumn<FrameArray>,
    /// If wanted: bonds.
    pub bonds: FrameColumn<Link<2>>,
    /// Angles.
    pub angles: FrameColumn<Link<3>>,
    /// Dihedrals.
    pub dihedrals: FrameColumn<Link<4>>,
    /// The state on the run's device, for analyzers with kernels of their own.
    pub state: StateView,
    /// The neighbor list.
    pub list: ListView,
    /// Bonds on the run's device.
    pub bond_view: LinkView,
    /// Reserved; must be 0.
    pub reserved: [DevicePtr<u8>; 8],
}
