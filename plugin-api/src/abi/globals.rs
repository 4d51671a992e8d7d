//! Global scalars of a run, the box, and faults.

use crate::abi::shared::{FaultRecord, SharedWord};
use crate::abi::views::MAX_VARYINGS;
use crate::device::precision::BoxScale;
use crate::params::varying::Varying;
use galamost_plugin_macros::{CxxStruct, DeviceStruct};

/// A fault during a step, written by the first thread that detects one.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, DeviceStruct, galamost_plugin_macros::Layout)]
pub struct Fault {
    /// 0 for no fault, otherwise a [`FaultKind`].
    pub code: u32,
    /// Number of the component in the run; `u32::MAX` for the engine.
    pub component: u32,
    /// Tag of the particle.
    pub tag: u32,
    /// An additional number; its meaning depends on the kind.
    pub detail: u32,
}

impl Default for Fault {
    /// No fault. The tag is the largest number, so that an atomic minimum selects the fault with the smallest tag.
    fn default() -> Self {
        Self { code: 0, component: u32::MAX, tag: u32::MAX, detail: 0 }
    }
}

/// Kinds of [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum FaultKind {
    /// A force or velocity is not finite, or the displacement in one step is too large for the position to be valid.
    NotFinite = 1,
    /// The neighbor list needs `detail` entries per particle. The engine enlarges it and continues.
    ListOverflow = 2,
    /// A cell holds `detail` particles, more than the rebuild can sort.
    CellOverflow = 3,
    /// A bond exceeds the limit of its potential; `detail` is the tag of the other particle.
    BondTooLong = 4,
    /// A row of the topology table needs `detail` entries.
    TopologyOverflow = 5,
    /// A fault of the component; `detail` is its number.
    Component = 6,
    /// The box no longer fits the cell grid of the neighbor list. The engine creates a new grid and continues.
    GridOutgrown = 7,
    /// A box length is less than two cutoffs, or is NaN; `detail` is the axis.
    BoxTooSmall = 8,
}

/// Global scalars of the run; one instance in device memory.
///
/// On the CPU all threads read it during a phase. Those that raise a fault or request a rebuild write only the
/// [`SharedWord`]s; the engine writes the other members between the phases.
#[repr(C)]
#[derive(Clone, Debug, CxxStruct, galamost_plugin_macros::Layout)]
pub struct Globals {
    /// Size of this struct in bytes.
    pub size: u32,
    /// If not 0, every kernel returns at once, and the host reads `fault`.
    #[device(cxx = "u32")]
    pub halt: SharedWord,
    /// If not 0, the neighbor list must be rebuilt before forces are computed.
    #[device(cxx = "u32")]
    pub rebuild: SharedWord,
    /// Number of dimensions, 2 or 3.
    pub dimensions: u32,
    /// The current fault.
    #[device(cxx = "Fault")]
    pub fault: FaultRecord,
    /// Time step. Before the forces of a step it is the number of completed steps; from the forces on it is one more.
    /// Random forces of the state at step n are therefore drawn with n.
    pub step: u64,
    /// Time step.
    pub dt: f64,
    /// Box lengths.
    pub box_length: [f64; 3],
    /// Half the buffer of the neighbor list, squared. A particle that moves farther requests a rebuild.
    pub slack2: f64,
    /// Number of rebuilds since the start of the run.
    pub rebuilds: u64,
    /// The largest number of neighbors of a particle at the last rebuild.
    pub longest_row: u32,
    /// Number of used entries of `values`.
    pub n_values: u32,
    /// Current values of time-dependent parameters.
    pub values: [f64; MAX_VARYINGS],
    /// Definitions of the time-dependent parameters.
    pub varyings: [Varying; MAX_VARYINGS],
    /// Box lengths at the last rebuild of the neighbor list.
    pub built_length: [f64; 3],
    /// In double precision: pending factor for positions after a change of the box.
    pub scale: [f64; 3],
    /// Σ r_k F_k per axis, from the last evaluation of forces with virials.
    pub virial: [f64; 3],
    /// Cutoff plus buffer of the neighbor list; 0 for no list.
    pub r_list: f64,
    /// The largest cutoff.
    pub r_cut: f64,
    /// Lees-Edwards: displacement along x of the image above in y, −L/2 < offset < L/2.
    pub shear_offset: f64,
    /// Lees-Edwards: velocity along x of the image above in y.
    pub shear_speed: f64,
    /// Distance that the images have moved since the last rebuild.
    pub shear_slid: f64,
    /// `shear_offset` at the last rebuild.
    pub built_offset: f64,
    /// Reserved; must be 0.
    pub reserved: [f64; 1],
}

/// The simulation box as barostats read and change it.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct, galamost_plugin_macros::Layout)]
pub struct SimBox {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Number of dimensions, 2 or 3.
    pub dimensions: u32,
    /// Box lengths. Positions are rescaled when they change.
    pub length: [f64; 3],
    /// Σ r_k F_k per axis, from the last forces.
    pub virial: [f64; 3],
    /// Σ m v_k² per axis, for updaters that want `thermo`; else 0. Integrators sum it themselves.
    pub kinetic: [f64; 3],
    /// Time step.
    pub dt: f64,
    /// Lees-Edwards: displacement along x of the image above in y.
    pub offset: f64,
    /// Lees-Edwards: velocity along x of the image above in y.
    pub speed: f64,
    /// Reserved; must be 0.
    pub reserved: [f64; 2],
}

impl SimBox {
    /// Returns the box of the run.
    pub fn of(g: &Globals) -> Self {
        Self {
            size: size_of::<Self>() as u32,
            dimensions: g.dimensions,
            length: g.box_length,
            virial: g.virial,
            kinetic: [0.0; 3],
            dt: g.dt,
            offset: g.shear_offset,
            speed: g.shear_speed,
            reserved: [0.0; 2],
        }
    }

    /// Returns the volume, or the area in two dimensions.
    pub fn volume(&self) -> f64 {
        self.length.iter().take(self.dimensions as usize).product()
    }
}

impl Globals {
    /// Creates globals that are all zero, with the size filled in.
    pub fn new() -> Self {
        Self {
            size: size_of::<Self>() as u32,
            halt: SharedWord::new(0),
            rebuild: SharedWord::new(0),
            dimensions: 3,
            fault: FaultRecord::default(),
            step: 0,
            dt: 0.0,
            box_length: [0.0; 3],
            slack2: 0.0,
            rebuilds: 0,
            longest_row: 0,
            n_values: 0,
            values: [0.0; MAX_VARYINGS],
            varyings: [Varying::constant(0.0); MAX_VARYINGS],
            built_length: [0.0; 3],
            scale: [1.0; 3],
            virial: [0.0; 3],
            r_list: 0.0,
            r_cut: 0.0,
            shear_offset: 0.0,
            shear_speed: 0.0,
            shear_slid: 0.0,
            built_offset: 0.0,
            reserved: [0.0; 1],
        }
    }

    /// Returns whether a fault was raised: kernels return at once, and the host reads `fault`.
    pub fn is_halted(&self) -> bool {
        self.halt.get() != 0
    }

    /// Returns whether the neighbor list must be rebuilt before forces are computed.
    pub fn needs_rebuild(&self) -> bool {
        self.rebuild.get() != 0
    }

    /// Raises a fault. Threads may call it at the same time; see [`FaultRecord::record`].
    pub fn raise(&self, fault: Fault) {
        self.fault.record(fault);
        self.halt.set(1);
    }

    /// Returns the bytes, for the device. They cannot change while they are borrowed.
    pub fn bytes(&mut self) -> &[u8] {
        // SAFETY: the members fill the struct (checked by `CxxStruct`) and are plain data or shared words, which no other thread
        // can access during an exclusive borrow
        unsafe { std::slice::from_raw_parts(std::ptr::from_mut(self).cast_const().cast(), size_of::<Self>()) }
    }

    /// Returns the globals with these bytes, or `None` if their number differs.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut g = Self::new();
        if bytes.len() != size_of::<Self>() {
            return None;
        }
        // SAFETY: `g` has as many bytes, and every bit pattern is a valid value of its members
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), std::ptr::from_mut(&mut g).cast(), bytes.len()) };
        Some(g)
    }

    /// Records the box of a rebuild of the neighbor list.
    pub fn begin_list(&mut self) {
        self.built_length = self.box_length;
        self.built_offset = self.shear_offset;
        self.shear_slid = 0.0;
        self.renew_slack();
    }

    /// Computes the distance that a particle may move until the next rebuild. `kernels/galamost/state.cuh` contains the
    /// same code.
    ///
    /// The list contains every pair that was closer than r_list at the rebuild. If the box has since shrunk by the
    /// factor s < 1 and images have slid, a pair outside the list is farther apart than s · r_list, minus the
    /// displacements of both particles and of the images.
    pub fn renew_slack(&mut self) {
        if self.r_list == 0.0 {
            self.slack2 = 0.0;
            return;
        }
        let d = self.dimensions as usize;
        let shrunk = (0..d).map(|k| self.box_length[k] / self.built_length[k]).fold(f64::INFINITY, f64::min);
        let slack = 0.5 * (shrunk * self.r_list - self.r_cut - self.shear_slid);
        if slack <= 0.0 {
            self.rebuild.set(1);
        }
        self.slack2 = slack.max(0.0).powi(2);
    }

    /// Sets the Lees-Edwards offset of the images along y. `kernels/galamost/state.cuh` contains the same code.
    pub fn set_shear(&mut self, offset: f64, speed: f64) {
        self.shear_slid += (offset - self.shear_offset).abs();
        self.shear_speed = speed;
        let length = self.box_length[0];
        let wrapped = offset - length * (offset / length).round_ties_even();
        // half a box to either side is the same position, but a particle must not move by exactly half a box
        self.shear_offset = wrapped.clamp(-0.499_999_999_999 * length, 0.499_999_999_999 * length);
        self.renew_slack();
    }

    /// Sets the box lengths and returns the factor per axis for coordinates stored as lengths.
    /// `kernels/galamost/state.cuh` contains the same code.
    pub fn set_box(&mut self, length: [f64; 3], component: u32) -> [f64; 3] {
        let d = self.dimensions as usize;
        for (k, l) in length.iter().enumerate().take(d) {
            // also false for NaN
            if !(*l >= 2.0 * self.r_cut && *l > 0.0 && l.is_finite()) {
                let code = FaultKind::BoxTooSmall as u32;
                self.fault = FaultRecord::new(Fault { code, component, tag: u32::MAX, detail: k as u32 });
                self.halt.set(1);
                return [1.0; 3];
            }
        }
        let mut ratio = [1.0; 3];
        for k in 0..d {
            ratio[k] = length[k] / self.box_length[k];
            self.box_length[k] = length[k];
            self.scale[k] *= ratio[k];
        }
        self.shear_offset *= ratio[0];
        self.renew_slack();
        ratio
    }

    /// Evaluates the time-dependent parameters for the current step.
    pub fn evaluate(&mut self) {
        for k in 0..self.n_values as usize {
            self.values[k] = self.varyings[k].at(self.step);
        }
    }

    /// Returns the box in the form that a storage scheme uses.
    pub fn scale<S: crate::device::precision::Scheme>(&self) -> BoxScale<S::Real> {
        S::scale(self.box_length).with_shear(self.shear_offset, self.shear_speed)
    }
}

impl Default for Globals {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globals_become_bytes_and_back() {
        let mut g = Globals { step: 7, dt: 0.5, ..Globals::new() };
        g.values[3] = 2.5;
        g.raise(Fault { code: 6, component: 1, tag: 2, detail: 3 });
        let bytes = g.bytes().to_vec();
        assert_eq!(bytes.len(), size_of::<Globals>());
        let mut back = Globals::from_bytes(&bytes).expect("as many bytes");
        assert_eq!((back.step, back.values[3], back.fault.get()), (7, 2.5, g.fault.get()));
        assert!(back.is_halted() && !back.needs_rebuild());
        assert_eq!(back.bytes(), bytes);
        assert!(Globals::from_bytes(&bytes[1..]).is_none());
    }

    #[test]
    fn a_box_that_is_too_small_halts() {
        let mut g = Globals { box_length: [10.0; 3], r_cut: 2.5, ..Globals::new() };
        assert_eq!(g.set_box([8.0, 10.0, 10.0], 4), [0.8, 1.0, 1.0]);
        assert!(!g.is_halted());
        assert_eq!(g.set_box([8.0, 4.0, 10.0], 4), [1.0; 3]);
        let expected = Fault { code: FaultKind::BoxTooSmall as u32, component: 4, tag: u32::MAX, detail: 1 };
        assert!(g.is_halted());
        assert_eq!(g.fault.get(), expected);
    }
}
