//! Calls of forces: one evaluation of a pair, bonded or other force.

use crate::abi::views::{LinkView, ListView, StateView, Sums, Wanted};
use crate::device::DevicePtr;
use crate::device::philox::RandomKey;
use crate::device::real::Real;
use galamost_plugin_macros::{DeviceStruct, Layout};

/// Cutoff, shifts and smoothing of one pair of types, as the pair loop reads them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, DeviceStruct, Layout)]
#[allow(non_camel_case_types)]
#[device(header)]
pub struct CutoffRow<real> {
    /// r_cut².
    pub cutoff2: real,
    /// r_cut.
    pub cutoff: real,
    /// U(r_cut), subtracted in `ShiftEnergy` and `ShiftForce`.
    pub energy_shift: real,
    /// F(r_cut), subtracted in `ShiftForce`.
    pub force_shift: real,
    /// r_on² in `Smooth`.
    pub on2: real,
    /// (r_cut² − r_on²)⁻³ in `Smooth`.
    pub smooth_norm: real,
}

impl CutoffRow<f64> {
    /// Converts the row to another number type.
    pub fn cast<R: Real>(&self) -> CutoffRow<R> {
        CutoffRow {
            cutoff2: R::lit(self.cutoff2),
            cutoff: R::lit(self.cutoff),
            energy_shift: R::lit(self.energy_shift),
            force_shift: R::lit(self.force_shift),
            on2: R::lit(self.on2),
            smooth_norm: R::lit(self.smooth_norm),
        }
    }
    /// Returns the numbers of the row in order.
    pub fn numbers(&self) -> [f64; 6] {
        [self.cutoff2, self.cutoff, self.energy_shift, self.force_shift, self.on2, self.smooth_norm]
    }
}

/// Relative position and orientations of two particles.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Layout)]
pub struct PairConfiguration {
    /// r_i − r_j.
    pub r: [f64; 3],
    /// Orientation of i as a unit quaternion x, y, z, w.
    pub quaternion_i: [f64; 4],
    /// Orientation of j as a unit quaternion x, y, z, w.
    pub quaternion_j: [f64; 4],
    /// Reserved; must be 0.
    pub reserved: [f64; 8],
}

impl Default for PairConfiguration {
    /// Zero distance, and no rotation.
    fn default() -> Self {
        let not_turned = [0.0, 0.0, 0.0, 1.0];
        Self { r: [0.0; 3], quaternion_i: not_turned, quaternion_j: not_turned, reserved: [0.0; 8] }
    }
}

/// One call of the CPU loop over pairs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Layout)]
pub struct PairCall {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Index of the first particle.
    pub begin: u32,
    /// Index after the last particle.
    pub end: u32,
    /// The component's first slot in [`crate::views::Globals::values`].
    pub first_varying: u32,
    /// Highest vector extension to use: 0 for the baseline, 3 for x86-64-v3, 4 for x86-64-v4.
    pub isa: u32,
    /// What to compute besides forces.
    pub wanted: Wanted,
    /// Key of the component's random numbers.
    pub key: RandomKey,
    /// The particles.
    pub state: *const StateView,
    /// The neighbor list.
    pub list: *const ListView,
    /// Reserved; must be 0.
    pub reserved: [u64; 4],
}

// SAFETY: the call only carries addresses; the loop writes rows begin … end of the force array, and no other concurrent
// call writes those rows
unsafe impl Send for PairCall {}
// SAFETY: a shared reference gives only addresses; the loop writes rows begin … end, and no other concurrent call writes those
// rows
unsafe impl Sync for PairCall {}

/// One call of the CPU loop over bonds, angles, dihedrals or impropers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Layout)]
pub struct BondedCall {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Index of the first particle.
    pub begin: u32,
    /// Index after the last particle.
    pub end: u32,
    /// The component's first slot in [`crate::views::Globals::values`].
    pub first_varying: u32,
    /// Number of the component in the run, reported with faults.
    pub component: u32,
    /// Reserved; must be 0.
    pub reserved0: u32,
    /// What to compute besides forces.
    pub wanted: Wanted,
    /// The particles.
    pub state: *const StateView,
    /// The bonds, angles, dihedrals or impropers.
    pub links: *const LinkView,
    /// Reserved; must be 0.
    pub reserved: [u64; 4],
}

// SAFETY: the call only carries addresses; the loop writes rows begin … end of the force array, and no other concurrent
// call writes those rows
unsafe impl Send for BondedCall {}
// SAFETY: a shared reference gives only addresses; the loop writes rows begin … end, and no other concurrent call writes those
// rows
unsafe impl Sync for BondedCall {}

/// One evaluation of a force.
#[repr(C)]
#[derive(Clone, Copy, Debug, Layout)]
pub struct ForceCall {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Number of the component in the run, reported with faults.
    pub component: u32,
    /// The component's first slot in [`crate::views::Globals::values`].
    pub first_varying: u32,
    /// Bit of the component's group, see [`StateView::in_group`].
    pub group: u32,
    /// What to compute besides forces.
    pub wanted: Wanted,
    /// The particles; on CUDA the addresses are in device memory.
    pub state: StateView,
    /// The neighbor list.
    pub list: ListView,
    /// The bonds.
    pub bonds: LinkView,
    /// On CUDA: device memory for the [`Sums`], which the engine adds to the total. All 0 at the call.
    pub device_sums: DevicePtr<Sums>,
    /// Output for [`crate::component::Needs::quantities`] when energies are wanted: one f64 each, in memory of the
    /// run's device. Null if there are none.
    pub quantities: DevicePtr<f64>,
    /// Number of excluded partners of each tag; null without exclusions.
    pub excluded_count: DevicePtr<u32>,
    /// Tags of excluded partners, `excluded_capacity` words for each tag.
    pub excluded: DevicePtr<u32>,
    /// Length of a row of `excluded`.
    pub excluded_capacity: u64,
    /// Scaled special pairs, all of which are excluded too; an address in host memory, also on CUDA. Null without any.
    pub special: DevicePtr<SpecialPairs>,
    /// Number of the [`Moment`] of a call of [`crate::force::Force::place`].
    pub moment: u32,
    /// Reserved; must be 0.
    pub reserved0: u32,
    /// Reserved; must be 0.
    pub reserved: [u64; 2],
}

/// Pairs whose forces `neighbors: (special: …)` scales.
#[repr(C)]
#[derive(Clone, Copy, Debug, Layout)]
pub struct SpecialPairs {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Reserved; must be 0.
    pub reserved0: u32,
    /// The pairs in the form of bonds, with the number of bonds between the two particles, minus 1, as type. On CUDA the
    /// addresses are in device memory.
    pub pairs: LinkView,
    /// Weight of pair potentials that do not depend on charges, by type.
    pub pair: [f64; 3],
    /// Weight of pair potentials that depend on charges, by type.
    pub coulomb: [f64; 3],
    /// Reserved; must be 0.
    pub reserved: [u64; 4],
}

/// When [`crate::force::Force::place`] is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Moment {
    /// At the start of a stage, and after an updater has changed positions, velocities or the box.
    #[default]
    Start = 0,
    /// After integrators have moved particles.
    Moved = 1,
    /// After the last phase of a step, for the velocities.
    End = 2,
}

impl ForceCall {
    /// Returns the scaled special pairs, if there are any.
    ///
    /// # Safety
    /// The engine has set `special`.
    pub unsafe fn special(&self) -> Option<&SpecialPairs> {
        // SAFETY: the address is null or that of a struct that outlives the call (contract of this function)
        unsafe { self.special.host().as_ref() }
    }

    /// Returns the tags of the particles that are no neighbors of the particle `tag` by `exclude` or `special`, on the CPU.
    ///
    /// # Safety
    /// The view `state` describes valid host arrays, and `tag` < n_local.
    #[inline]
    pub unsafe fn excluded(&self, tag: u32) -> &[u32] {
        if self.excluded_count.is_null() {
            return &[];
        }
        // SAFETY: there is one row for each tag (contract of this function), which the engine keeps during the call
        unsafe {
            let n = *self.excluded_count.host().add(tag as usize) as usize;
            self.excluded.offset(tag as usize * self.excluded_capacity as usize).slice(n)
        }
    }
}

impl StateView {
    /// Adds to the virial of particle `i`, on the CPU; does nothing if no analyzer needs it.
    ///
    /// # Safety
    /// The view describes [valid host arrays](StateView#valid-host-arrays) of this precision, `i` < n_local, and no other thread
    /// accesses the virial of this particle.
    #[inline]
    pub unsafe fn add_virial<R: Real>(&self, i: usize, terms: [f64; 6]) {
        if self.virial.is_null() {
            return;
        }
        // SAFETY: `i` < n_local, the array has a row for each particle, and no other thread accesses it
        let row = unsafe { &mut *self.virial.cast::<[R; 6]>().host().add(i) };
        row.iter_mut().zip(terms).for_each(|(sum, term)| *sum += R::lit(term));
    }

    /// Returns whether particle `i` belongs to the group with this bit, on the CPU. Bit 32 stands for all particles.
    ///
    /// # Safety
    /// The view describes [valid host arrays](StateView#valid-host-arrays), and `i` < n_local.
    #[inline]
    pub unsafe fn in_group(&self, i: usize, bit: u32) -> bool {
        // SAFETY: `i` < n_local, and the view describes valid host arrays
        bit >= 32 || unsafe { *self.group.host().add(i) >> bit & 1 == 1 }
    }
}
