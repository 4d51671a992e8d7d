//! The component that places the particles of bodies and collects the forces on them.

use crate::device::{BodyArrays, kernels};
use crate::{CENTER, MEMBERS, OFFSET};
use galamost_plugin_api::component::ArrayNeed;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::place::{CHUNK, PlaceKernels, add_virial, collect_on_cpu};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::{Fault, FaultKind, StateView};

/// Keeps particles at fixed places of rigid bodies, and passes the forces on them to the bodies.
///
/// A body is a center, a particle with the mass M, the moments of inertia and the orientation q of the body, and particles
/// without mass at r_i = R + q d_i q*, with the velocities V + ω × (r_i − R). After all other forces, the center
/// receives F = Σ f_i and T = Σ (r_i − R) × f_i, summed in the order of the tags. An integrator of oriented particles
/// (`RotationalVerlet`, `RotationalNoseHoover`, `RotationalLangevin`, `RotationalMtkNpt`, …) moves centers and single
/// particles; it leaves out particles without mass. Each body has six degrees of freedom, five if it is linear.
///
/// The virial of the forces that keep the body rigid, −Σ (r_i − R) f_i, is part of the pressure. Barostats scale the
/// positions of centers only. Forces on the particles remain in trajectories, as they act on the body.
///
/// The generator `Bodies` makes bodies. Pairs of particles of one body should not interact: use `neighbors: (buffer: …,
/// only: OtherMolecules)`, with the molecules that `Bodies` numbers. Requires a three-dimensional system without
/// shear, and beads that are less than half a box length from the center of their body, also in a box that shrinks. Particles of bodies have no orientation.
///
/// References: T. F. Miller III et al., J. Chem. Phys. 116 (2002) 8649, doi:10.1063/1.1473654; T. D. Nguyen, C. L. Phillips,
/// J. A. Anderson, S. C. Glotzer, Comput. Phys. Commun. 182 (2011) 2307, doi:10.1016/j.cpc.2011.06.005.
///
/// ```ron
/// RigidBodies()
/// ```
#[component(Force, "RigidBodies")]
#[derive(Params)]
pub struct RigidBodies {
    #[param(skip)]
    cuda: bool,
    #[param(skip)]
    n: u64,
    #[param(skip)]
    started: Option<(Host, Option<PlaceKernels>)>,
}

impl Force for RigidBodies {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if system.dimensions == 2 {
            return Err(Error::input("rigid bodies require a three-dimensional system"));
        }
        if !system.has_array(CENTER) {
            needs.warnings.push("there are no bodies; add the generator `Bodies` to `initial`".into());
        }
        let arrays = [
            (CENTER, 1, true, false),
            (OFFSET, 3, false, false),
            (MEMBERS, 2, true, false),
            ("quaternion", 4, false, true),
            ("inert", 3, false, true),
            ("angular_momentum", 3, false, false),
            ("torque", 3, false, false),
        ];
        for (name, width, integer, required) in arrays {
            needs.arrays.push(ArrayNeed { name: name.into(), width, integer, required });
        }
        (needs.places, needs.placed_from, needs.shared) = (true, Some(CENTER.into()), true);
        needs.faults = vec![
            "half a box length is less than the distance of this particle from the center of its body along that axis; keep \
             each box length above twice the largest distance of a bead from its center"
                .into(),
        ];
        needs.particle_energies = true;
        needs.plain_images = true;
        (self.cuda, self.n) = (system.device == "cuda", system.n);
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let kernels = if self.cuda { Some(kernels(&host, self.n)?) } else { None };
        self.started = Some((host, kernels));
        Ok(())
    }

    unsafe fn place(&mut self, call: &ForceCall) -> Result<()> {
        let (host, kernels) = self.started()?;
        let Some(kernels) = kernels else {
            let bodies = Bodies::of(host, call);
            host.parallel(call.state.n_local as usize, CHUNK, |range| {
                // SAFETY: the engine passes views of valid arrays, ranges are disjoint, and centers are no beads
                range.for_each(|i| unsafe { bodies.place(i, call.component) });
            });
            return Ok(());
        };
        // SAFETY: the engine passes views of the run's device
        unsafe { kernels.place(host, call, BodyArrays::of(host)) }
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let (host, kernels) = self.started()?;
        let Some(kernels) = kernels else {
            let bodies = Bodies::of(host, call);
            collect_on_cpu(host, call.state.n_local as usize, CHUNK, sums, |range| {
                let mut virial = [0.0; 6];
                // SAFETY: the engine passes views of valid arrays, ranges are disjoint, and only centers receive forces
                range.for_each(|i| unsafe { bodies.collect(i, &mut virial) });
                virial
            });
            return Ok(());
        };
        // SAFETY: the engine passes views of the run's device
        unsafe { kernels.collect(host, call, BodyArrays::of(host)) }
    }
}

impl RigidBodies {
    fn started(&self) -> Result<(&Host, Option<&PlaceKernels>)> {
        let started = self.started.as_ref().map(|(host, kernels)| (host, kernels.as_ref()));
        started.ok_or_else(|| Error::Run("RigidBodies was not started".into()))
    }
}

/// The arrays of a call on the CPU.
struct Bodies {
    state: StateView,
    center: DevicePtr<i32>,
    offset: DevicePtr<u8>,
    members: DevicePtr<i32>,
}

impl Bodies {
    fn of(host: &Host, call: &ForceCall) -> Self {
        Self { state: call.state, center: host.array(CENTER), offset: host.array(OFFSET), members: host.array(MEMBERS) }
    }

    /// Returns the orientation of a center.
    ///
    /// # Safety
    /// `c` < n_local.
    unsafe fn orientation(&self, c: usize) -> Quaternion<f64> {
        // SAFETY: the state has orientations, which `bind` has required
        let [x, y, z, w] = unsafe { self.state.reals::<4>(self.state.quaternion, c) };
        Quaternion::new(x, y, z, w)
    }

    /// Places particle `i`, if it belongs to a body.
    ///
    /// # Safety
    /// The arrays are valid, `i` < n_local, and no other thread accesses particle `i` or changes centers.
    unsafe fn place(&self, i: usize, component: u32) {
        // SAFETY: `bind` has required the arrays, and `Bodies` has written tags of particles (contract of this function)
        unsafe {
            let relative = *self.center.host().add(i);
            if relative == 0 {
                return;
            }
            let tag = (*self.state.tag.host().add(i)).wrapping_add_signed(relative);
            let c = *self.state.index_of_tag.host().add(tag as usize) as usize;
            let q = self.orientation(c);
            let d = q.rotate(Vec3::from(self.state.reals::<3>(self.offset, i)));
            let globals = &*self.state.globals.host();
            // NaN is a fault of `StateView::place`
            if d.f64().iter().zip(globals.box_length).any(|(d, length)| d.abs() > 0.5 * length) {
                let (code, tag) = (FaultKind::Component as u32, *self.state.tag.host().add(i));
                globals.raise(Fault { code, component, tag, detail: 0 });
                return;
            }
            let momentum = q.rotate_back(Vec3::from(self.state.reals::<3>(self.state.angular_momentum, c))).f64();
            let inertia = self.state.reals::<3>(self.state.inertia, c);
            let rate: [f64; 3] = std::array::from_fn(|k| if inertia[k] > 0.0 { momentum[k] / inertia[k] } else { 0.0 });
            let [x, y, z, _] = self.state.velocity_mass(c);
            let v = Vec3::new(x, y, z) + q.rotate(Vec3::from(rate)).cross(d);
            self.state.place(component, i, c, d.f64(), v.f64());
        }
    }

    /// Adds the forces on the particles of a center to its own, and their virial.
    ///
    /// # Safety
    /// The arrays are valid, `i` < n_local, and no other thread accesses the forces on particle `i`.
    unsafe fn collect(&self, i: usize, virial: &mut [f64; 6]) {
        // SAFETY: `bind` has required the arrays, and `Bodies` has written tags of particles (contract of this function)
        unsafe {
            let [relative, n] = *self.members.cast::<[i32; 2]>().host().add(i);
            if n == 0 {
                return;
            }
            let first = (*self.state.tag.host().add(i)).wrapping_add_signed(relative);
            let q = self.orientation(i);
            let (mut force, mut torque) = (Vec3::<f64>::new(0.0, 0.0, 0.0), Vec3::<f64>::new(0.0, 0.0, 0.0));
            for tag in first..first + n as u32 {
                let j = *self.state.index_of_tag.host().add(tag as usize) as usize;
                let d = q.rotate(Vec3::from(self.state.reals::<3>(self.offset, j)));
                let f = Vec3::from(self.state.force(j));
                force += f;
                torque += d.cross(f);
                add_virial(virial, (-d).f64(), f.f64());
            }
            self.state.add_force(i, force.f64(), 0.0);
            self.add_torque(i, torque.f64());
        }
    }

    /// # Safety
    /// As [`Self::collect`].
    unsafe fn add_torque(&self, i: usize, t: [f64; 3]) {
        // SAFETY: particle `i` has a torque, which `bind` has required, and no other thread accesses it
        unsafe {
            if self.state.precision == Precision::Double as u32 {
                let torque = &mut *self.state.torque.cast::<[f64; 3]>().host().add(i);
                torque.iter_mut().zip(t).for_each(|(sum, t)| *sum += t);
            } else {
                let torque = &mut *self.state.torque.cast::<[f32; 3]>().host().add(i);
                torque.iter_mut().zip(t).for_each(|(sum, t)| *sum += t as f32);
            }
        }
    }
}
