//! Views of the state: what components read in every step.
//!
//! The structs cross the boundary and are passed to kernels by value. They are plain `#[repr(C)]` structs that start
//! with their size and end with reserved words. A newer engine may use more of these words; an older plugin ignores
//! them. The same struct describes host arrays (device CPU) and device arrays (CUDA).

use crate::device::DevicePtr;
use crate::device::real::Real;
use galamost_plugin_macros::DeviceStruct;

pub use super::globals::{
    Fault, FaultKind, Globals, SimBox, is_skewed, is_valid_length, start_list, update_box, update_shear, update_slack,
};
pub use super::shared::{FaultRecord, SharedWord};

/// Maximum number of time-dependent parameters in a run.
pub const MAX_VARYINGS: usize = 32;
/// Maximum number of time-dependent parameters of one component.
pub const COMPONENT_VARYINGS: usize = 4;

/// The particles.
///
/// Arrays are in the current order of particles, with index 0 … n_local + n_ghost − 1. Ghosts follow the local
/// particles; at present there are none. If several GPUs share a run, each of them has arrays of all particles, but
/// propagates those from own_begin to own_end. A force that launches kernels handles these with
/// [`Needs::shared`](crate::component::Needs::shared); otherwise it is called on the first GPU, whose arrays are complete at that time. So
/// does an updater, also if processes on CPUs share the run. `real` is f32 in `Single` and `Mixed`, and f64 in `Double`.
///
/// # Valid host arrays
/// Unsafe functions require that a view describes valid host arrays:
///
/// * Every address is null, or that of an initialized array in host memory with an entry of the member's type and of the
///   run's precision for each particle, which exists as long as the view is used.
/// * `pos_type`, `velocity_mass`, `force`, `image`, `tag`, `index_of_tag` and `globals` are set; `group` is if `has_groups`
///   is, and `pos_low` in `Mixed`. An optional array is set if the component asked for it in `bind`.
/// * Types are below `n_types`, and tags and indices below the number of particles.
/// * No exclusive reference to an array exists, and no other thread writes an entry that is read, or accesses one that is
///   written.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct, galamost_plugin_macros::Layout)]
#[device(header)]
pub struct StateView {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Number of the [`crate::precision::Precision`].
    pub precision: u32,
    /// Number of particles that this process propagates.
    pub n_local: u32,
    /// Number of ghosts: copies of particles of other processes.
    pub n_ghost: u32,
    /// Number of particle types.
    pub n_types: u32,
    /// Not 0 if `group` is set.
    pub has_groups: u32,
    /// Positions and types: [`crate::precision::PosTypeFixed`] or [`crate::precision::PosTypeF64`].
    #[device(cxx = "PosType*")]
    pub pos_type: DevicePtr<u8>,
    /// Lower 32 bits of the coordinates, 3 per particle; only in `Mixed`.
    pub pos_low: DevicePtr<u32>,
    /// Velocity and mass as `real`: x, y, z, m.
    #[device(cxx = "Vec4*")]
    pub velocity_mass: DevicePtr<u8>,
    /// Force and, if wanted, energy as `real`: x, y, z, U.
    #[device(cxx = "Vec4*")]
    pub force: DevicePtr<u8>,
    /// Image of each particle, 3 per particle: unwrapped position = position + L · image,
    /// in reduced coordinates (see [`crate::tilt`]) if the box is triclinic.
    pub image: DevicePtr<i32>,
    /// Tag of each index.
    pub tag: DevicePtr<u32>,
    /// Index of each tag.
    pub index_of_tag: DevicePtr<u32>,
    /// Group membership: bit g of word i is set if particle i belongs to group g.
    pub group: DevicePtr<u32>,
    /// Positions at the last rebuild of the neighbor list, stored as `pos_type`.
    #[device(cxx = "PosType*")]
    pub pos_at_build: DevicePtr<u8>,
    /// Charges as `real`, if a component needs them.
    #[device(cxx = "real*")]
    pub charge: DevicePtr<u8>,
    /// Diameters as `real`, if a component needs them.
    #[device(cxx = "real*")]
    pub diameter: DevicePtr<u8>,
    /// The global scalars of the run.
    pub globals: DevicePtr<Globals>,
    /// Orientations as unit quaternions x, y, z, w of `real`, if a component needs them.
    #[device(cxx = "Vec4*")]
    pub quaternion: DevicePtr<u8>,
    /// Torques in the lab frame as `real`, 3 per particle; set if `quaternion` is.
    #[device(cxx = "real*")]
    pub torque: DevicePtr<u8>,
    /// Angular momenta in the lab frame as `real`, 3 per particle; set if an integrator propagates orientations.
    #[device(cxx = "real*")]
    pub angular_momentum: DevicePtr<u8>,
    /// Moments of inertia about the body axes as `real`, 3 per particle; set if an integrator propagates orientations.
    /// A particle does not rotate about an axis with moment 0.
    #[device(cxx = "real*")]
    pub inertia: DevicePtr<u8>,
    /// First particle that this device propagates; 0 if it propagates all of them.
    pub own_begin: u32,
    /// One after the last particle that this device propagates.
    pub own_end: u32,
    /// Virials of the particles as `real`: xx, xy, xz, yy, yz, zz, if an analyzer needs them. Forces add to them when energies are
    /// wanted: half of the virial of a pair, and an equal share of that of a bonded interaction.
    #[device(cxx = "real*")]
    pub virial: DevicePtr<u8>,
    /// Reserved; must be 0.
    pub reserved: [u64; 2],
}

/// Access in f64 on the host, for any precision. Intended for forces, updaters and analyzers whose CPU implementation
/// is not performance-critical.
impl StateView {
    fn double(&self) -> bool {
        self.precision == crate::device::precision::Precision::Double as u32
    }

    /// Returns the particle type.
    ///
    /// # Safety
    /// As for [`Self::position`].
    pub unsafe fn type_id(&self, i: usize) -> u32 {
        // SAFETY: `i` < n_local, and the view describes valid host arrays
        unsafe {
            if self.double() {
                (*self.pos_type.cast::<crate::device::precision::PosTypeF64>().host().add(i)).kind
            } else {
                (*self.pos_type.cast::<crate::device::precision::PosTypeFixed>().host().add(i)).kind
            }
        }
    }

    /// Returns the charge of a particle, if a component asked for charges.
    ///
    /// # Safety
    /// As for [`Self::position`].
    pub unsafe fn charge_of(&self, i: usize) -> f64 {
        // SAFETY: the contract of this function is passed on
        unsafe { self.reals::<1>(self.charge, i)[0] }
    }

    /// Returns the velocity and mass of a particle: x, y, z, m.
    ///
    /// # Safety
    /// As for [`Self::position`].
    pub unsafe fn velocity_mass(&self, i: usize) -> [f64; 4] {
        // SAFETY: the contract of this function is passed on
        unsafe { self.reals(self.velocity_mass, i) }
    }

    /// Returns the force on a particle so far.
    ///
    /// # Safety
    /// As for [`Self::position`], and no other thread changes this force during the call.
    pub unsafe fn force(&self, i: usize) -> [f64; 3] {
        // SAFETY: the contract of this function is passed on
        let [x, y, z, _] = unsafe { self.reals::<4>(self.force, i) };
        [x, y, z]
    }

    /// Returns the `N` numbers of a particle in an array of `real`.
    ///
    /// # Safety
    /// As for [`Self::position`], and the array has `N` numbers for each particle.
    pub unsafe fn reals<const N: usize>(&self, array: DevicePtr<u8>, i: usize) -> [f64; N] {
        // SAFETY: particle `i` has `N` numbers of this precision (contract of this function)
        unsafe {
            if self.double() {
                *array.cast::<[f64; N]>().host().add(i)
            } else {
                (*array.cast::<[f32; N]>().host().add(i)).map(f64::from)
            }
        }
    }

    /// Sets the velocity of a particle.
    ///
    /// # Safety
    /// As for [`Self::position`], and no other thread accesses this particle during the call.
    pub unsafe fn set_velocity(&self, i: usize, v: [f64; 3]) {
        // SAFETY: `i` < n_local, and the view describes valid host arrays
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
        // SAFETY: `i` < n_local, and the view describes valid host arrays
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

/// The neighbor list. For each particle it contains all particles within `r_list` at the last rebuild, without excluded
/// pairs. It is a full list: j is a neighbor of i, and i is a neighbor of j.
///
/// Entry k of particle i is `index[(w · capacity/team + k/team) · 32 + (i mod (32/team)) · team + k mod team]` with w =
/// i / (32/team), so a warp with `team` threads per particle reads 32 consecutive words. On the CPU `team` is 32, and
/// row i is the slice starting at i · capacity.
///
/// On the CPU the view describes valid host arrays if `count` has n_local entries up to `capacity`, `index` has n_local ·
/// `capacity` entries below n_local + n_ghost, also between the count of a row and the next multiple of 32, and both exist
/// and are not written as long as the view is used.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct, galamost_plugin_macros::Layout)]
#[device(header)]
pub struct ListView {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Maximum number of entries of a row; a multiple of 32.
    pub capacity: u32,
    /// Number of threads per row: 1, 2, 4, 8, 16 or 32.
    pub team: u32,
    /// Reserved; must be 0.
    pub reserved0: u32,
    /// The entries.
    pub index: DevicePtr<u32>,
    /// Number of entries of each row.
    pub count: DevicePtr<u32>,
    /// Cutoff plus buffer.
    pub r_list: f64,
    /// Reserved; must be 0.
    pub reserved: [u64; 4],
}

/// Bonds (width 2), angles (3), dihedrals or impropers (4) of each particle.
///
/// Entry e of particle i consists of `width` words: the indices of the other members in order, then `type · 4 +
/// position of i among the members`. Word w is `words[(e · width + w) · stride + i]`.
///
/// On the CPU the view describes valid host arrays if `count` is null or has n_local entries up to `capacity`, `words` has
/// `capacity` · `width` · `stride` words, indices in them are below n_local + n_ghost, and both exist and are not written as
/// long as the view is used.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct, galamost_plugin_macros::Layout)]
#[device(header)]
pub struct LinkView {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Number of members: 2, 3 or 4.
    pub width: u32,
    /// Maximum number of entries of a particle.
    pub capacity: u32,
    /// Distance in words between consecutive words of an entry.
    pub stride: u32,
    /// The entries.
    pub words: DevicePtr<u32>,
    /// Number of entries of each particle.
    pub count: DevicePtr<u32>,
    /// Reserved; must be 0.
    pub reserved: [u64; 4],
}

/// One bond, angle, dihedral or improper of a particle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEntry {
    /// Indices of the other members in order. A bond has one, an angle two, the others three.
    pub others: [u32; 3],
    /// Type of the link.
    pub kind: u32,
    /// Position of the particle among the members, starting from 0.
    pub place: u32,
}

impl LinkView {
    /// Returns the links of particle `i`, on the CPU. Every member has an entry of the link; to visit each link once,
    /// select entries with `place` 0.
    ///
    /// # Safety
    /// The view describes [valid host arrays](StateView#valid-host-arrays), and `i` < n_local.
    pub unsafe fn row(&self, i: usize) -> impl Iterator<Item = LinkEntry> + '_ {
        let (width, stride) = (self.width as usize, self.stride as usize);
        // SAFETY: `i` < n_local, and the view describes valid host arrays
        let count = if self.count.is_null() { 0 } else { unsafe { *self.count.host().add(i) } };
        (0..count as usize).map(move |e| {
            // SAFETY: `i` < n_local, `e` is below the number of entries of particle i, and the view describes valid host arrays
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

/// What a force evaluation computes besides forces.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, DeviceStruct, galamost_plugin_macros::Layout)]
#[device(header)]
pub struct Wanted {
    /// If not 0: the energy of each particle in `force.w`, and the total energy.
    pub energy: u32,
    /// If not 0: the total virial tensor.
    pub virial: u32,
}

impl Wanted {
    /// Forces only.
    pub const FORCE: Self = Self { energy: 0, virial: 0 };
    /// Forces, energies and virial.
    pub const ALL: Self = Self { energy: 1, virial: 1 };
    /// Returns whether more than forces is wanted.
    pub fn more_than_force(self) -> bool {
        self.energy != 0 || self.virial != 0
    }
}

/// Sums of one component over a range of particles: energy, and the virial Σ r_α F_β as xx, xy, xz, yy, yz, zz.
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
#[device(header)]
pub struct Sums {
    /// Potential energy.
    pub energy: f64,
    /// Virial tensor; the pressure tensor is (Σ m v v + virial)/V.
    pub virial: [f64; 6],
}

impl Sums {
    /// Adds the sums of another component or range.
    pub fn add(&mut self, other: &Self) {
        self.energy += other.energy;
        for (a, b) in self.virial.iter_mut().zip(other.virial) {
            *a += b;
        }
    }
}

/// The current step, as functions of the device language see it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
#[allow(non_camel_case_types)]
#[device(header)]
pub struct Step<real> {
    /// Time step.
    pub dt: real,
    /// dt^−½.
    pub inv_sqrt_dt: real,
    /// Number of the current step.
    pub step: u64,
    /// Current values of the component's time-dependent parameters.
    pub varying: [real; COMPONENT_VARYINGS],
}

impl<R: Real> Step<R> {
    /// Creates the step for a component whose time-dependent parameters start at `first` in [`Globals::values`].
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
    /// Creates a view without particles.
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
            own_begin: 0,
            own_end: 0,
            virial: DevicePtr::null(),
            reserved: [0; 2],
        }
    }
}

impl StateView {
    /// Returns the number of blocks of `threads` threads, a divisor of 256, with one thread for each particle from `own_begin` to
    /// `own_end`. `particle_block` in `state.cuh` numbers them.
    pub fn own_blocks(&self, threads: u32) -> u32 {
        (self.own_end - self.own_begin).div_ceil(threads)
    }
}

impl ListView {
    /// Creates a view without a list.
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
    /// Returns the neighbors of particle `i`, on the CPU.
    ///
    /// # Safety
    /// The view describes valid host arrays, and `i` < n_local.
    pub unsafe fn row<'a>(&self, i: usize) -> &'a [u32] {
        // SAFETY: `i` < n_local, and the view describes valid host arrays, in which a row is a slice
        unsafe {
            let n = *self.count.host().add(i) as usize;
            self.index.offset(i * self.capacity as usize).slice(n)
        }
    }
}

impl LinkView {
    /// Creates a view without links.
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
