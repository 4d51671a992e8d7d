//! What plugins see of the state in every step.
//!
//! These structs cross the boundary and go to kernels by value, so they are plain `#[repr(C)]` with their size first
//! and reserved words behind: a newer engine may fill more of them, an older plugin then does not look. The same
//! struct describes host arrays (device CPU) and device arrays (CUDA).

use crate::device::DevicePtr;
use crate::device::real::Real;
use galamost_plugin_macros::DeviceStruct;

pub use super::globals::{Fault, FaultKind, Globals, SimBox};

/// Number of time-dependent numbers a run can hold.
pub const MAX_VARYINGS: usize = 32;
/// Number of time-dependent numbers one component can have.
pub const COMPONENT_VARYINGS: usize = 4;

/// The particles.
///
/// Arrays are in the current order, index 0 … n_local + n_ghost − 1; ghosts follow the local particles (there are
/// none yet). `real` is f32 in `Single` and `Mixed`, f64 in `Double`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct, galamost_plugin_macros::Layout)]
pub struct StateView {
    /// Size of this struct in bytes.
    pub size: u32,
    /// [`crate::device::precision::Precision`] as a number.
    pub precision: u32,
    /// Particles this process moves.
    pub n_local: u32,
    /// Copies of others' particles.
    pub n_ghost: u32,
    /// Number of particle types.
    pub n_types: u32,
    /// Not 0: `group` is there.
    pub has_groups: u32,
    /// Positions and types: [`crate::device::precision::PosTypeFixed`] or [`crate::device::precision::PosTypeF64`].
    #[device(cxx = "PosType*")]
    pub pos_type: DevicePtr<u8>,
    /// Lower 32 bits of the coordinates, 3 per particle; only in `Mixed`.
    pub pos_low: DevicePtr<u32>,
    /// Velocity and mass: x, y, z, m as `real`.
    #[device(cxx = "Vec4*")]
    pub velocity_mass: DevicePtr<u8>,
    /// Force and, when asked for, energy: x, y, z, U as `real`.
    #[device(cxx = "Vec4*")]
    pub force: DevicePtr<u8>,
    /// Times each particle has crossed the box, 3 per particle.
    pub image: DevicePtr<i32>,
    /// Tag of each index.
    pub tag: DevicePtr<u32>,
    /// Index of each tag.
    pub index_of_tag: DevicePtr<u32>,
    /// Bit g of word i: particle i belongs to group g.
    pub group: DevicePtr<u32>,
    /// Positions at the last list build, in the form of `pos_type`.
    #[device(cxx = "PosType*")]
    pub pos_at_build: DevicePtr<u8>,
    /// Charges as `real`, if some component needs them.
    #[device(cxx = "real*")]
    pub charge: DevicePtr<u8>,
    /// Diameters as `real`, if some component needs them.
    #[device(cxx = "real*")]
    pub diameter: DevicePtr<u8>,
    /// Scalars.
    pub globals: DevicePtr<Globals>,
    /// Orientations as unit quaternions x, y, z, w of `real`, if some component needs them.
    #[device(cxx = "Vec4*")]
    pub quaternion: DevicePtr<u8>,
    /// Torques in the frame of space, 3 per particle as `real`; there if `quaternion` is.
    #[device(cxx = "real*")]
    pub torque: DevicePtr<u8>,
    /// Angular momenta in the frame of space, 3 per particle as `real`; there if an integrator turns particles.
    #[device(cxx = "real*")]
    pub angular_momentum: DevicePtr<u8>,
    /// Moments of inertia about the axes of the body's frame, 3 per particle as `real`; 0: never turns about this axis.
    /// There if an integrator turns particles.
    #[device(cxx = "real*")]
    pub inertia: DevicePtr<u8>,
    /// Reserved; must be 0.
    pub reserved: [u64; 4],
}

/// Host access in f64, whatever the precision of the run: for forces, updaters and analyzers whose CPU path is not the
/// place where time goes.
impl StateView {
    fn double(&self) -> bool {
        self.precision == crate::device::precision::Precision::Double as u32
    }

    /// Position of a particle, −L/2 ≤ x < L/2; in fixed point its upper 32 bits, as pair forces see it.
    ///
    /// # Safety
    /// The view is of valid host arrays, and `i` < n_local.
    pub unsafe fn position(&self, i: usize) -> [f64; 3] {
        // SAFETY: the view describes valid host arrays and `i` < n_local (contract of this function)
        unsafe {
            if self.double() {
                return (*self.pos_type.cast::<crate::device::precision::PosTypeF64>().host().add(i)).position;
            }
            let p = (*self.pos_type.cast::<crate::device::precision::PosTypeFixed>().host().add(i)).position;
            let length = (*self.globals.host()).box_length;
            std::array::from_fn(|k| f64::from(p[k]) * (length[k] / 4_294_967_296.0))
        }
    }

    /// r_i − r_j for the nearest image of j.
    ///
    /// # Safety
    /// As for [`Self::position`], for both particles.
    pub unsafe fn difference(&self, i: usize, j: usize) -> [f64; 3] {
        // SAFETY: the view describes valid host arrays and `i` < n_local (contract of this function)
        let (a, b, g) = unsafe { (self.position(i), self.position(j), &*self.globals.host()) };
        let boxes =
            |d: f64, k: usize| if g.box_length[k] > 0.0 { (d / g.box_length[k]).round_ties_even() } else { 0.0 };
        let n = boxes(a[1] - b[1], 1);
        std::array::from_fn(|k| {
            let d = a[k] - b[k] - if k == 0 { n * g.shear_offset } else { 0.0 };
            d - g.box_length[k] * boxes(d, k)
        })
    }

    /// Type of a particle.
    ///
    /// # Safety
    /// As for [`Self::position`].
    pub unsafe fn kind(&self, i: usize) -> u32 {
        // SAFETY: the view describes valid host arrays and `i` < n_local (contract of this function)
        unsafe {
            if self.double() {
                (*self.pos_type.cast::<crate::device::precision::PosTypeF64>().host().add(i)).kind
            } else {
                (*self.pos_type.cast::<crate::device::precision::PosTypeFixed>().host().add(i)).kind
            }
        }
    }

    /// Velocity and mass of a particle: x, y, z, m.
    ///
    /// # Safety
    /// As for [`Self::position`].
    pub unsafe fn velocity_mass(&self, i: usize) -> [f64; 4] {
        // SAFETY: the view describes valid host arrays and `i` < n_local (contract of this function)
        unsafe {
            if self.double() {
                *self.velocity_mass.cast::<[f64; 4]>().host().add(i)
            } else {
                (*self.velocity_mass.cast::<[f32; 4]>().host().add(i)).map(f64::from)
            }
        }
    }

    /// Sets the velocity of a particle.
    ///
    /// # Safety
    /// As for [`Self::position`], and no other thread accesses this particle during the call.
    pub unsafe fn set_velocity(&self, i: usize, v: [f64; 3]) {
        // SAFETY: the view describes valid host arrays and `i` < n_local (contract of this function)
        unsafe {
            if self.double() {
                let all = &mut *self.velocity_mass.cast::<[f64; 4]>().host().add(i);
                all[..3].copy_from_slice(&v);
            } else {
                let all = &mut *self.velocity_mass.cast::<[f32; 4]>().host().add(i);
                all[..3].copy_from_slice(&v.map(|x| x as f32));
            }
        }
    }

    /// Adds a force and an energy to a particle.
    ///
    /// # Safety
    /// As for [`Self::position`], and no other thread accesses this particle during the call.
    pub unsafe fn add_force(&self, i: usize, f: [f64; 3], energy: f64) {
        let all = [f[0], f[1], f[2], energy];
        // SAFETY: the view describes valid host arrays and `i` < n_local (contract of this function)
        unsafe {
            if self.double() {
                let out = &mut *self.force.cast::<[f64; 4]>().host().add(i);
                out.iter_mut().zip(all).for_each(|(o, x)| *o += x);
            } else {
                let out = &mut *self.force.cast::<[f32; 4]>().host().add(i);
                out.iter_mut().zip(all).for_each(|(o, x)| *o += x as f32);
            }
        }
    }
}

/// The neighbor list: for each particle all particles within `r_list` at the last build (a full list: j is in the
/// row of i and i in the row of j), excluded pairs left out.
///
/// Entry k of particle i stands at `index[(w · capacity/team + k/team) · 32 + (i mod (32/team)) · team + k mod team]`
/// with w = i / (32/team): a warp of `team` threads per particle reads 32 consecutive words. On the CPU `team` is 32,
/// so that row i is the slice from i · capacity.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct, galamost_plugin_macros::Layout)]
pub struct ListView {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Entries a row can hold, a multiple of 32.
    pub capacity: u32,
    /// Threads that share a row: 1, 2, 4, 8, 16 or 32.
    pub team: u32,
    /// Reserved; must be 0.
    pub reserved0: u32,
    /// The entries.
    pub index: DevicePtr<u32>,
    /// Number of entries of each row.
    pub count: DevicePtr<u32>,
    /// Cutoff and buffer together.
    pub r_list: f64,
    /// Reserved; must be 0.
    pub reserved: [u64; 4],
}

/// Bonds (width 2), angles (3) or dihedrals (4), seen from each particle.
///
/// Entry e of particle i is `width` words: the indices of the other members in their order, then
/// `kind · 4 + position of i among the members`. Word w stands at `words[(e · width + w) · stride + i]`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct, galamost_plugin_macros::Layout)]
pub struct LinkView {
    /// Size of this struct in bytes.
    pub size: u32,
    /// 2, 3 or 4.
    pub width: u32,
    /// Entries a particle can have.
    pub capacity: u32,
    /// Distance in words between the words of one entry.
    pub stride: u32,
    /// The entries.
    pub words: DevicePtr<u32>,
    /// Number of entries of each particle.
    pub count: DevicePtr<u32>,
    /// Reserved; must be 0.
    pub reserved: [u64; 4],
}

/// One bond, angle or dihedral, seen from one of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEntry {
    /// Indices of the other members, in their order; a bond has one, an angle two.
    pub others: [u32; 3],
    /// Type of the link.
    pub kind: u32,
    /// Place of the particle among the members: 0 for the first.
    pub place: u32,
}

impl LinkView {
    /// Links of particle `i`, on the CPU. Every member has the link: to meet each once, take those with `place` 0.
    ///
    /// # Safety
    /// The view is of valid host arrays, and `i` < n_local.
    pub unsafe fn row(&self, i: usize) -> impl Iterator<Item = LinkEntry> + '_ {
        let (width, stride) = (self.width as usize, self.stride as usize);
        // SAFETY: the view describes valid host arrays and `i` < n_local (contract of this function)
        let count = if self.count.is_null() { 0 } else { unsafe { *self.count.host().add(i) } };
        (0..count as usize).map(move |e| {
            // SAFETY: the view describes valid host arrays and `i` < n_local (contract of this function): entry e of particle i exists
            let word = |w: usize| unsafe { *self.words.host().add((e * width + w) * stride + i) };
            let mut others = [0; 3];
            for (w, other) in others.iter_mut().enumerate().take(width - 1) {
                *other = word(w);
            }
            let last = word(width - 1);
            LinkEntry { others, kind: last >> 2, place: last & 3 }
        })
    }
}

/// What a force evaluation should produce besides forces.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, DeviceStruct, galamost_plugin_macros::Layout)]
pub struct Wanted {
    /// Not 0: energies per particle in `force.w`, and their sum.
    pub energy: u32,
    /// Not 0: the virial tensor's sum.
    pub virial: u32,
}

impl Wanted {
    /// Forces only.
    pub const FORCE: Self = Self { energy: 0, virial: 0 };
    /// Everything.
    pub const ALL: Self = Self { energy: 1, virial: 1 };
    /// Whether more than forces are wanted.
    pub fn more_than_force(self) -> bool {
        self.energy != 0 || self.virial != 0
    }
}

/// Sums of one component over some particles: energy, and the virial Σ r_α F_β as xx, xy, xz, yy, yz, zz.
#[repr(C)]
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    DeviceStruct,
    serde::Serialize,
    serde::Deserialize,
    galamost_plugin_macros::Layout,
)]
pub struct Sums {
    /// Potential energy.
    pub energy: f64,
    /// Virial tensor; the pressure tensor is (Σ m v v + virial)/V.
    pub virial: [f64; 6],
}

impl Sums {
    /// Adds another component's or chunk's sums.
    pub fn add(&mut self, other: &Self) {
        self.energy += other.energy;
        for (a, b) in self.virial.iter_mut().zip(other.virial) {
            *a += b;
        }
    }
}

/// The step as a function of the device language sees it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Step<R> {
    /// Time step.
    pub dt: R,
    /// dt^−½.
    pub inv_sqrt_dt: R,
    /// Number of the step under way.
    pub step: u64,
    /// Current values of the component's time-dependent numbers.
    pub varying: [R; COMPONENT_VARYINGS],
}

impl<R: Real> Step<R> {
    /// The step of a component whose time-dependent numbers start at `first` in [`Globals::values`].
    pub fn new(g: &Globals, first: u32) -> Self {
        Self {
            dt: R::lit(g.dt),
            inv_sqrt_dt: R::lit(1.0 / g.dt.sqrt()),
            step: g.step,
            varying: std::array::from_fn(|k| R::lit(g.values.get(first as usize + k).copied().unwrap_or(0.0))),
        }
    }
}

impl StateView {
    /// No particles.
    pub fn empty() -> Self {
        Self {
            size: size_of::<Self>() as u32,
            precision: 0,
            n_local: 0,
            n_ghost: 0,
            n_types: 0,
            has_groups: 0,
            pos_type: DevicePtr::null(),
            pos_low: DevicePtr::null(),
            velocity_mass: DevicePtr::null(),
            force: DevicePtr::null(),
            image: DevicePtr::null(),
            tag: DevicePtr::null(),
            index_of_tag: DevicePtr::null(),
            group: DevicePtr::null(),
            pos_at_build: DevicePtr::null(),
            charge: DevicePtr::null(),
            diameter: DevicePtr::null(),
            globals: DevicePtr::null(),
            quaternion: DevicePtr::null(),
            torque: DevicePtr::null(),
            angular_momentum: DevicePtr::null(),
            inertia: DevicePtr::null(),
            reserved: [0; 4],
        }
    }

    /// Whether particle `i` belongs to the group with this bit (32: all particles), on the CPU.
    ///
    /// # Safety
    /// The state must lie in host memory, and `i` must be a particle of it.
    pub unsafe fn in_group(&self, i: usize, bit: u32) -> bool {
        // SAFETY: the view describes valid host arrays and `i` < n_local (contract of this function)
        bit >= 32 || unsafe { *self.group.host().add(i) >> bit & 1 == 1 }
    }
}

impl ListView {
    /// No list.
    pub fn empty() -> Self {
        Self {
            size: size_of::<Self>() as u32,
            capacity: 0,
            team: 32,
            reserved0: 0,
            index: DevicePtr::null(),
            count: DevicePtr::null(),
            r_list: 0.0,
            reserved: [0; 4],
        }
    }
}

impl ListView {
    /// Neighbors of particle `i` on the CPU.
    ///
    /// # Safety
    /// The list must lie in host memory, and `i` must be a particle of it.
    pub unsafe fn row<'a>(&self, i: usize) -> &'a [u32] {
        // SAFETY: the view describes valid host arrays and `i` < n_local (contract of this function); on the CPU a row is a slice
        unsafe {
            let n = *self.count.host().add(i) as usize;
            self.index.offset(i * self.capacity as usize).slice(n)
        }
    }
}

impl LinkView {
    /// No links.
    pub fn empty(width: u32) -> Self {
        Self {
            size: size_of::<Self>() as u32,
            width,
            capacity: 0,
            stride: 0,
            words: DevicePtr::null(),
            count: DevicePtr::null(),
            reserved: [0; 4],
        }
    }
}
