//! The component: parameters, and its part in a step.

use crate::REFERENCE;
use crate::clusters::Clusters;
use crate::device::ConstraintKernels;
use crate::solver::Solver;
use galamost_plugin_api::force::Moment;
use galamost_plugin_api::place::collect_on_cpu;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::{Fault, FaultKind};

/// Clusters of a task on the CPU.
const CHUNK: usize = 64;

/// Keeps the lengths of all bonds of some types fixed (SHAKE and RATTLE).
///
/// All bonds of the given types become constraints |r_i − r_j| = d; no bonded force acts on them. Chains, triangles, rings and
/// branched molecules are possible, as long as the constraints are independent. After integrators have moved particles, positions
/// are corrected along the bonds at the start of the step, weighted by the inverse masses, and velocities by the same correction
/// divided by dt. The constraint forces are such that the kick at the end of the step leaves no velocity along a bond. With
/// `VelocityVerlet` this is RATTLE: symplectic, reversible within the tolerance, with energies accurate to O(dt²).
///
/// Particles that constraints connect form a cluster. One thread solves a cluster, constraint by constraint in a fixed order, in
/// double precision, until all squared lengths deviate by less than 2 `tolerance` d². A run is the same for any number of
/// threads. Lengths are exact to the tolerance plus the rounding of positions. If a cluster does not converge, because
/// particles overlap or dt is too long, the run ends with an error. It does so, too, if the box becomes shorter than twice a constraint.
///
/// The virial −Σ λ s s of the constraint forces, for vanishing second derivatives of the lengths, is part of the pressure. Each
/// constraint removes one degree of freedom from thermostats, barostats and the temperature. Initial lengths that deviate by up
/// to a third are corrected at the start, and velocities along bonds removed. `MtkNpt` samples the isothermal–isobaric ensemble up
/// to a relative error of O(1/N). Its `conserved` quantity does not follow the volume and shows whether the time step is short enough.
///
/// Both particles of a constraint need mass, and one integrator: `VelocityVerlet`, `CappedVerlet`, `NoseHoover`,
/// `NoseHooverChain`, `Bussi`, `Berendsen`, `Langevin` or `MtkNpt`. Requires a box without shear. Constraints are the bonds of the
/// initial state: no earlier stage may change bonds of these types.
///
/// References: J.-P. Ryckaert, G. Ciccotti, H. J. C. Berendsen, J. Comput. Phys. 23 (1977) 327,
/// doi:10.1016/0021-9991(77)90098-5; H. C. Andersen, J. Comput. Phys. 52 (1983) 24, doi:10.1016/0021-9991(83)90014-1.
///
/// ```ron
/// Constraints(types: { "A-A": 1.1, "A-B": 1.1, "B-B": 1.1 })
/// ```
#[component(Force, "Constraints")]
#[derive(Params)]
pub struct Constraints {
    /// Length d of the bonds of each type; all bonds of these types become constraints.
    types: TypeMap<Spanned<f64>>,
    /// Largest relative deviation of a length.
    #[param(default = 1e-8, above = 0.0, at_most = 0.001)]
    tolerance: f64,
    #[param(skip)]
    cuda: bool,
    #[param(skip)]
    clusters: Clusters,
    /// Velocities are those in the middle of the step.
    #[param(skip)]
    half: bool,
    #[param(skip)]
    started: Option<(Host, Option<ConstraintKernels>)>,
}

impl Constraints {
    fn started(&self) -> Result<(&Host, Option<&ConstraintKernels>)> {
        let started = self.started.as_ref().map(|(host, kernels)| (host, kernels.as_ref()));
        started.ok_or_else(|| Error::Run("Constraints was not started".into()))
    }

    /// Returns the bond types with their lengths, and all types with a row.
    fn lengths(&self, system: &SystemInfo) -> Result<(Vec<(u32, f64)>, Vec<u32>)> {
        let mut errors = Errors::default();
        let rows = self.types.bind_some("bond", &system.bond_types, &mut errors);
        let named = rows.iter().zip(0..).filter(|(row, _)| row.is_some()).map(|(_, k)| k).collect();
        let mut lengths = vec![];
        for (kind, row) in rows.iter().enumerate().filter_map(|(k, row)| Some((k as u32, row.flatten()?))) {
            if row.value > 0.0 && row.value < system.half_box() {
                lengths.push((kind, row.value));
            } else {
                let message = format!("the length {} is not between 0 and half a box length", row.value);
                errors.push(InputError::at(row.at, message));
            }
        }
        if errors.0.is_empty() && lengths.is_empty() {
            errors.push(InputError::new("`types` is empty; give at least one bond type and its length"));
        }
        errors.into_result(Some((lengths, named)))
    }

    /// Calls `work` for all clusters on the CPU and adds the virials that it returns.
    ///
    /// # Safety
    /// The views of the call describe valid host arrays.
    unsafe fn each_cluster(
        &self,
        host: &Host,
        call: &ForceCall,
        sums: &mut Sums,
        work: impl Fn(&mut Solver<'_>, &mut [f64; 6]) -> std::result::Result<(), u32> + Sync,
    ) {
        let reference = host.array(REFERENCE);
        collect_on_cpu(host, self.clusters.len(), CHUNK, sums, |range| {
            let mut virial = [0.0; 6];
            // SAFETY: contract of this function; the clusters have been found for this system
            let mut solver = unsafe { Solver::new(&call.state, reference, self.tolerance) };
            for c in range {
                // SAFETY: `c` is a cluster of this system, clusters have no particle in common, and the views are valid (contract of this
                // function)
                unsafe { solver.load(&self.clusters, c) };
                if let Err(tag) = work(&mut solver, &mut virial) {
                    let (code, detail) = (FaultKind::Component as u32, u32::from(solver.exceeds_half_box()));
                    let fault = Fault { code, component: call.component, tag, detail };
                    // SAFETY: `globals` is a valid host pointer (contract of this function)
                    unsafe { (*call.state.globals.host()).raise(fault) };
                }
            }
            virial
        });
    }
}

impl Force for Constraints {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        let (lengths, named) = self.lengths(system)?;
        let length = |kind: u32| lengths.iter().find(|(k, _)| *k == kind).map_or(0.0, |(_, length)| *length);
        self.clusters = Clusters::find(&system.constraints, length).map_err(Error::input)?;
        needs.arrays.push(ArrayNeed { name: REFERENCE.into(), width: 3, integer: false, required: false });
        needs.faults = vec![
            "the constraints of this particle's cluster do not converge: particles overlap, dt is too long, or the lengths \
             contradict each other"
                .into(),
            "half the shortest box length is less than a constraint of this particle's cluster, so the nearest image is \
             not the particle to which the constraint belongs; keep each box length above twice the longest constraint"
                .into(),
        ];
        needs.links = Some(LinkList::Bonds);
        needs.link_types = Some(named);
        needs.constraints = lengths;
        (needs.places, needs.shared) = (true, true);
        needs.particle_energies = true;
        needs.plain_images = true;
        self.cuda = system.device == "cuda";
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let kernels =
            if self.cuda { Some(ConstraintKernels::new(&host, &self.clusters, self.tolerance)?) } else { None };
        self.started = Some((host, kernels));
        Ok(())
    }

    unsafe fn place(&mut self, call: &ForceCall) -> Result<()> {
        let (moved, end) = (call.moment == Moment::Moved as u32, call.moment == Moment::End as u32);
        self.half = moved;
        let (host, kernels) = self.started()?;
        if let Some(kernels) = kernels {
            // SAFETY: the engine passes views of the run's device
            return unsafe { kernels.place(host, call) };
        }
        // SAFETY: the engine passes views of valid arrays, and clusters have no particle in common
        unsafe {
            self.each_cluster(host, call, &mut Sums::default(), |cluster, _| {
                if !end {
                    cluster.constrain(call.component, moved)?;
                }
                if moved { Ok(()) } else { cluster.constrain_velocities() }
            });
        }
        Ok(())
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let (host, kernels) = self.started()?;
        if let Some(kernels) = kernels {
            // SAFETY: the engine passes views of the run's device
            return unsafe { kernels.add_forces(host, call) };
        }
        let (half, full) = (self.half, call.wanted.more_than_force());
        // SAFETY: the engine passes views of valid arrays, and clusters have no particle in common
        unsafe {
            self.each_cluster(host, call, sums, |cluster, virial| cluster.add_forces(half, full.then_some(virial)));
        }
        Ok(())
    }
}
