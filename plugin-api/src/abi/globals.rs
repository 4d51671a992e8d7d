//! Numbers of the whole run, and what broke in it.

use crate::abi::views::MAX_VARYINGS;
use crate::device::precision::BoxScale;
use crate::params::varying::Varying;
use galamost_plugin_macros::DeviceStruct;

/// What broke during a step; written by the first thread that notices.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, DeviceStruct, galamost_plugin_macros::Layout)]
pub struct Fault {
    /// 0 for none, else a [`FaultKind`].
    pub code: u32,
    /// Number of the component in the run, `u32::MAX` for the engine.
    pub component: u32,
    /// Tag of the particle.
    pub tag: u32,
    /// A further number, by kind.
    pub detail: u32,
}

impl Default for Fault {
    /// None; the tag is the largest number, so that of several faults the smallest tag can be kept by a minimum.
    fn default() -> Self {
        Self { code: 0, component: u32::MAX, tag: u32::MAX, detail: 0 }
    }
}

/// Kinds of [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum FaultKind {
    /// A force or velocity is not finite, or a particle moved so far in one step that its position is meaningless.
    NotFinite = 1,
    /// The neighbor list needs `detail` entries per particle: the engine grows it and goes on.
    ListOverflow = 2,
    /// A cell holds more particles than the build can sort: `detail` particles.
    CellOverflow = 3,
    /// A bond is longer than its potential allows; `detail` is the tag of its other end.
    BondTooLong = 4,
    /// A topology row needs `detail` entries.
    TopologyOverflow = 5,
    /// A component's own fault; `detail` is its number.
    Component = 6,
    /// The box does not fit the cells of the list's grid any more: the engine makes new cells and goes on.
    GridOutgrown = 7,
    /// A box length fell below two cutoffs, or is not a number; `detail` is the axis.
    BoxTooSmall = 8,
}

/// Scalars of the run that change by step; one instance in device memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct, galamost_plugin_macros::Layout)]
pub struct Globals {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Not 0: every kernel returns at once and the host looks at `fault`.
    pub halt: u32,
    /// Not 0: the neighbor list must be rebuilt before forces are computed.
    pub rebuild: u32,
    /// 2 or 3.
    pub dimensions: u32,
    /// What broke.
    pub fault: Fault,
    /// The step: before the forces of a step the number of steps done, from the forces on one more. So the forces of
    /// the state at step n are drawn with n.
    pub step: u64,
    /// Time step.
    pub dt: f64,
    /// Box lengths.
    pub box_length: [f64; 3],
    /// Half the list's buffer, squared: a particle that moved further asks for a rebuild.
    pub slack2: f64,
    /// Rebuilds since the start of the run.
    pub rebuilds: u64,
    /// The largest number of neighbors a particle had at the last build.
    pub longest_row: u32,
    /// Number of entries of `values` in use.
    pub n_values: u32,
    /// Current values of time-dependent numbers.
    pub values: [f64; MAX_VARYINGS],
    /// Their definitions.
    pub varyings: [Varying; MAX_VARYINGS],
    /// Box lengths when the neighbor list was built.
    pub built_length: [f64; 3],
    /// In double precision: what positions must still be multiplied with to follow the box.
    pub scale: [f64; 3],
    /// Σ r_k F_k per axis of the last evaluation of forces that had virials.
    pub virial: [f64; 3],
    /// Cutoff and buffer of the list together; 0 for no list.
    pub r_list: f64,
    /// The longest cutoff.
    pub r_cut: f64,
    /// Lees-Edwards: displacement along x of the image above along y, −L/2 < offset < L/2.
    pub shear_offset: f64,
    /// Velocity along x of the image above.
    pub shear_speed: f64,
    /// How far images have slid since the list was built.
    pub shear_slid: f64,
    /// `shear_offset` when the list was built.
    pub built_offset: f64,
    /// Reserved; must be 0.
    pub reserved: [f64; 1],
}

/// The box as barostats see it, and may change it.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct, galamost_plugin_macros::Layout)]
pub struct SimBox {
    /// Size of this struct in bytes.
    pub size: u32,
    /// 2 or 3.
    pub dimensions: u32,
    /// Box lengths; positions follow a change in proportion.
    pub length: [f64; 3],
    /// Σ r_k F_k per axis, of the last forces.
    pub virial: [f64; 3],
    /// Σ m v_k² per axis; for updaters that want `thermo`, else 0: an integrator sums them itself.
    pub kinetic: [f64; 3],
    /// Time step.
    pub dt: f64,
    /// Lees-Edwards: displacement along x of the image above along y.
    pub offset: f64,
    /// Its velocity along x.
    pub speed: f64,
    /// Reserved; must be 0.
    pub reserved: [f64; 2],
}

impl SimBox {
    /// The box of the run.
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

    /// Volume, or area in two dimensions.
    pub fn volume(&self) -> f64 {
        self.length.iter().take(self.dimensions as usize).product()
    }
}

impl Globals {
    /// All zero, with the size filled in.
    pub fn new() -> Self {
        Self {
            size: size_of::<Self>() as u32,
            halt: 0,
            rebuild: 0,
            dimensions: 3,
            fault: Fault::default(),
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

    /// A list is built now, in this box.
    pub fn begin_list(&mut self) {
        self.built_length = self.box_length;
        self.built_offset = self.shear_offset;
        self.shear_slid = 0.0;
        self.renew_slack();
    }

    /// How far a particle may move until the list is built anew; the same lines stand in `kernels/galamost/state.cuh`.
    ///
    /// The list holds every pair that was nearer than r_list when it was built. Where the box has shrunk by s < 1 since,
    /// and images have slid along each other, a pair that is not in it is farther apart than s r_list less what both have
    /// moved and what the images have slid.
    pub fn renew_slack(&mut self) {
        if self.r_list == 0.0 {
            self.slack2 = 0.0;
            return;
        }
        let d = self.dimensions as usize;
        let shrunk = (0..d).map(|k| self.box_length[k] / self.built_length[k]).fold(f64::INFINITY, f64::min);
        let slack = 0.5 * (shrunk * self.r_list - self.r_cut - self.shear_slid);
        if slack <= 0.0 {
            self.rebuild = 1;
        }
        self.slack2 = slack.max(0.0).powi(2);
    }

    /// Displaces the images along y; the same lines stand in `kernels/galamost/state.cuh`.
    pub fn set_shear(&mut self, offset: f64, speed: f64) {
        self.shear_slid += (offset - self.shear_offset).abs();
        self.shear_speed = speed;
        let length = self.box_length[0];
        let wrapped = offset - length * (offset / length).round_ties_even();
        // half a box to either side is the same place, but a particle must not move by exactly half a box
        self.shear_offset = wrapped.clamp(-0.499_999_999_999 * length, 0.499_999_999_999 * length);
        self.renew_slack();
    }

    /// Gives the box new lengths; returns by what coordinates that are lengths must be multiplied to follow it. The
    /// same lines stand in `kernels/galamost/state.cuh`.
    pub fn set_box(&mut self, length: [f64; 3], component: u32) -> [f64; 3] {
        let d = self.dimensions as usize;
        for (k, l) in length.iter().enumerate().take(d) {
            // also false for NaN
            if !(*l >= 2.0 * self.r_cut && *l > 0.0 && l.is_finite()) {
                self.fault = Fault { code: FaultKind::BoxTooSmall as u32, component, tag: u32::MAX, detail: k as u32 };
                self.halt = 1;
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

    /// Sets the current values of time-dependent numbers for the step under way.
    pub fn evaluate(&mut self) {
        for k in 0..self.n_values as usize {
            self.values[k] = self.varyings[k].at(self.step);
        }
    }

    /// The box as a storage scheme wants it.
    pub fn scale<S: crate::device::precision::Scheme>(&self) -> BoxScale<S::Real> {
        S::scale(self.box_length).with_shear(self.shear_offset, self.shear_speed)
    }
}

impl Default for Globals {
    fn default() -> Self {
        Self::new()
    }
}
