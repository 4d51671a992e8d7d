//! Global scalars of a run, the box, and faults.

use crate::abi::shared::{FaultRecord, SharedWord};
use crate::abi::views::MAX_VARYINGS;
use crate::device::precision::BoxScale;
use crate::device::tilt::heights;
use crate::params::varying::Varying;
use galamost_plugin_macros::{CxxStruct, DeviceStruct, device_fn};

/// A fault during a step, written by the first thread that detects one.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, DeviceStruct, galamost_plugin_macros::Layout)]
#[device(header)]
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

crate::device_enum! {
    @header true;
    /// Kinds of [`Fault`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        /// Rank number `detail` has not arrived at a barrier of all ranks.
        RankLost = 9,
    }
}

/// Global scalars of the run; one instance in device memory.
///
/// On the CPU all threads read it during a phase. Those that raise a fault or request a rebuild write only the
/// [`SharedWord`]s; the engine writes the other members between the phases.
#[repr(C)]
#[derive(Clone, Debug, CxxStruct, galamost_plugin_macros::Layout)]
#[device(header)]
pub struct Globals {
    /// Size of this struct in bytes.
    pub size: u32,
    /// If not 0, every kernel returns at once: 1 after a fault, which the host reads from `fault`; 2 while ranks in several processes wait
    /// for the host, which launches a rebuild.
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
    /// Entries of `values` from this number on do not change in the run.
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
    /// Tilt factors xy, xz, yz of the box; see [`crate::tilt`].
    pub tilt: [f64; 3],
    /// Tilt factors at the last rebuild of the neighbor list.
    pub built_tilt: [f64; 3],
    /// Σ r_x F_y, Σ r_x F_z and Σ r_y F_z, in triclinic boxes, from the last evaluation of forces with virials.
    pub shear_virial: [f64; 3],
    /// Reserved; must be 0.
    pub reserved: [f64; 4],
}

/// Returns the norm of the elements outside of the diagonal of the matrix that deforms the box of the last rebuild into one with
/// these lengths.
#[device_fn(f64)]
fn shear_since_build(g: &Globals, length: &[f64; 3]) -> f64 {
    let mut sum = 0.0;
    if g.tilt[0] != g.built_tilt[0] || g.tilt[1] != g.built_tilt[1] || g.tilt[2] != g.built_tilt[2] {
        let x = length[0] / g.built_length[0];
        let y = length[1] / g.built_length[1];
        let z = if g.dimensions == 3 { length[2] / g.built_length[2] } else { 1.0 };
        let xy = y * g.tilt[0] - x * g.built_tilt[0];
        let yz = z * g.tilt[2] - y * g.built_tilt[2];
        let xz = z * g.tilt[1] - x * g.built_tilt[1] - xy * g.built_tilt[2];
        sum = (xy * xy + yz * yz + xz * xz).sqrt();
    }
    sum
}

/// Returns the distance that a particle may move until the next rebuild in a box with these lengths; negative if the rebuild is due.
///
/// The list contains every pair that was closer than r_list at the rebuild. If the box has since shrunk by the factor
/// s < 1 and images have slid, a pair outside the list is farther apart than s · r_list, minus the displacements of both
/// particles and of the images. In a triclinic box, s is reduced by the shear of the box, so that no distance shrinks more.
#[device_fn(f64)]
fn slack_in(g: &Globals, length: &[f64; 3]) -> f64 {
    let mut shrunk = 1e300;
    for k in 0..g.dimensions {
        shrunk = (length[k] / g.built_length[k]).min(shrunk);
    }
    shrunk -= shear_since_build(g, length);
    0.5 * (shrunk * g.r_list - g.r_cut - g.shear_slid)
}

/// Stores the distance that a particle may move until the next rebuild. Returns whether the rebuild is due now.
#[device_fn(f64)]
fn set_slack(g: &mut Globals, slack: f64) -> bool {
    let left = if slack > 0.0 { slack } else { 0.0 };
    g.slack2 = if g.r_list == 0.0 { 0.0 } else { left * left };
    g.r_list != 0.0 && slack <= 0.0
}

/// Computes the distance that a particle may move until the next rebuild, see `slack_in`. Returns whether the rebuild is due now.
#[device_fn(f64)]
pub fn update_slack(g: &mut Globals) -> bool {
    let slack = slack_in(g, &g.box_length);
    set_slack(g, slack)
}

/// Records the box of a rebuild of the neighbor list. Returns whether the next rebuild is due now.
#[device_fn(f64)]
pub fn start_list(g: &mut Globals) -> bool {
    for k in 0..3 {
        g.built_length[k] = g.box_length[k];
        g.built_tilt[k] = g.tilt[k];
    }
    g.built_offset = g.shear_offset;
    g.shear_slid = 0.0;
    update_slack(g)
}

/// Sets the Lees-Edwards offset of the images along y. Returns whether a rebuild of the neighbor list is due.
#[device_fn(f64)]
pub fn update_shear(g: &mut Globals, offset: f64, speed: f64) -> bool {
    g.shear_slid += (offset - g.shear_offset).abs();
    g.shear_speed = speed;
    let length = g.box_length[0];
    // half a box to either side is the same position, but a particle must not move by exactly half a box
    let most = 0.499_999_999_999 * length;
    let wrapped = offset - length * (offset / length).round();
    g.shear_offset = if wrapped > most { most } else { wrapped.max(-most) };
    update_slack(g)
}

/// Returns whether a box may have this length: finite, and at least two cutoffs. It may not be NaN.
#[device_fn(f64)]
pub fn is_valid_length(length: f64, r_cut: f64) -> bool {
    length >= 2.0 * r_cut && length > 0.0 && length < 1e300
}

/// Returns whether an edge of the box is displaced by more than `most` times another edge, along that edge.
#[device_fn(f64)]
pub fn is_skewed(g: &Globals, most: f64) -> bool {
    let x = most * g.box_length[0];
    (g.tilt[0] * g.box_length[1]).abs() > x
        || (g.tilt[1] * g.box_length[2]).abs() > x
        || (g.tilt[2] * g.box_length[2]).abs() > most * g.box_length[1]
}

/// Sets valid box lengths. Returns whether a rebuild of the neighbor list is due.
#[device_fn(f64)]
pub fn update_box(g: &mut Globals, length: &[f64; 3]) -> bool {
    // everything is read before anything is written: one thread of a GPU would wait for each number that it reads after a write
    let slack = slack_in(g, length);
    let x = length[0] / g.box_length[0];
    let y = length[1] / g.box_length[1];
    let z = if g.dimensions == 3 { length[2] / g.box_length[2] } else { 1.0 };
    g.shear_offset *= x;
    g.scale[0] *= x;
    g.scale[1] *= y;
    g.scale[2] *= z;
    for k in 0..g.dimensions {
        g.box_length[k] = length[k];
    }
    set_slack(g, slack)
}

/// The simulation box as barostats read and change it.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct, galamost_plugin_macros::Layout)]
#[device(header)]
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
    /// Tilt factors xy, xz, yz; see [`crate::tilt`].
    pub tilt: [f64; 3],
    /// Σ r_x F_y, Σ r_x F_z and Σ r_y F_z, in triclinic boxes, from the last forces.
    pub shear_virial: [f64; 3],
    /// Reserved; must be 0.
    pub reserved: [f64; 3],
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
            tilt: g.tilt,
            shear_virial: g.shear_virial,
            reserved: [0.0; 3],
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
            tilt: [0.0; 3],
            built_tilt: [0.0; 3],
            shear_virial: [0.0; 3],
            reserved: [0.0; 4],
        }
    }

    /// Returns whether kernels return at once, after a fault or while ranks in several processes wait for a rebuild.
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
        let due = start_list(self);
        self.request_rebuild(due);
    }

    /// Computes the distance that a particle may move until the next rebuild; see [`update_slack()`].
    pub fn renew_slack(&mut self) {
        let due = update_slack(self);
        self.request_rebuild(due);
    }

    /// Sets the Lees-Edwards offset of the images along y.
    pub fn set_shear(&mut self, offset: f64, speed: f64) {
        let due = update_shear(self, offset, speed);
        self.request_rebuild(due);
    }

    fn request_rebuild(&mut self, due: bool) {
        if due {
            self.rebuild.set(1);
        }
    }

    /// Sets the box lengths and returns the factor per axis for coordinates stored as lengths. A box that is too small
    /// raises a fault.
    pub fn set_box(&mut self, length: [f64; 3], component: u32) -> [f64; 3] {
        self.set_shape(length, self.tilt, component)
    }

    /// As [`Self::set_box`], with tilt factors.
    pub fn set_shape(&mut self, length: [f64; 3], tilt: [f64; 3], component: u32) -> [f64; 3] {
        let d = self.dimensions as usize;
        let heights = heights(length, tilt);
        if let Some(k) = (0..d).find(|k| !is_valid_length(heights[*k], self.r_cut)) {
            let code = FaultKind::BoxTooSmall as u32;
            self.fault = FaultRecord::new(Fault { code, component, tag: u32::MAX, detail: k as u32 });
            self.halt.set(1);
            return [1.0; 3];
        }
        let ratio = std::array::from_fn(|k| if k < d { length[k] / self.box_length[k] } else { 1.0 });
        self.tilt = tilt;
        let due = update_box(self, &length);
        self.request_rebuild(due);
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
        S::scale(self.box_length).with_shear(self.shear_offset, self.shear_speed).with_tilt(self.tilt)
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

    /// The distance of no pair shrinks by more than the buffer is reduced by, for any deformation.
    #[test]
    #[cfg_attr(miri, ignore = "numbers, not accesses")]
    fn shear_reduces_the_buffer() {
        use crate::device::tilt::to_space;
        let (r_list, r_cut) = (2.0, 1.0);
        let built = Globals { box_length: [9.0, 8.0, 7.0], tilt: [0.3, -0.2, 0.1], r_list, r_cut, ..Globals::new() };
        for (change, tilt) in [
            ([1.0, 1.0, 1.0], [0.4, -0.2, 0.1]),
            ([1.02, 0.97, 1.01], [0.3, -0.1, 0.15]),
            ([0.96, 1.03, 0.98], [0.21, -0.25, 0.02]),
        ] {
            let mut g = built.clone();
            g.begin_list();
            assert!(!g.needs_rebuild() && g.slack2 == 0.25 * (r_list - r_cut) * (r_list - r_cut));
            g.set_shape(std::array::from_fn(|k| change[k] * built.box_length[k]), tilt, 0);
            let mut least = f64::INFINITY;
            for k in 0..20_000 {
                let angle = f64::from(k) * 2.399_963;
                let z = 1.0 - (f64::from(k) + 0.5) / 10_000.0;
                let s = (1.0 - z * z).sqrt();
                // a pair at the distance r_list when the list was built
                let r = [r_list * s * angle.cos(), r_list * s * angle.sin(), r_list * z];
                let q = crate::device::tilt::to_reduced(r, built.tilt);
                let now = to_space(std::array::from_fn(|k| q[k] * change[k]), tilt);
                least = least.min(now.iter().map(|x| x * x).sum::<f64>().sqrt());
            }
            let slack = g.slack2.sqrt();
            assert!(slack > 0.0 && least >= r_cut + 2.0 * slack, "{tilt:?}: {least} {slack}");
        }
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
