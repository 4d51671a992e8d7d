//! Sums over the system on the CPU.

use super::system::{CpuSystem, values};
use crate::backend::SystemSums;
use crate::state::arrays::ArrayId;
use crate::state::rotation;
use crate::state::store::Store;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::quaternion::Quaternion;
use galamost_plugin_api::real::Real;
use galamost_plugin_api::vector::Vec3;

impl<S: Store> CpuSystem<S> {
    /// Returns the sums over all particles, in the order of their indices.
    pub(super) fn system_sums(&mut self) -> Result<SystemSums> {
        let mut out =
            SystemSums { components: self.sums.clone(), quantities: self.quantities.clone(), ..SystemSums::default() };
        for v in values::<[S::Real; 4]>(&self.arrays, ArrayId::VelocityMass) {
            let [x, y, z, m] = v.map(Real::f64);
            for (sum, term) in out.kinetic_tensor.iter_mut().zip([x * x, x * y, x * z, y * y, y * z, z * z]) {
                *sum += m * term;
            }
            for (sum, v) in out.momentum.iter_mut().zip([x, y, z]) {
                *sum += m * v;
            }
        }
        let view = self.view();
        if !view.inertia.is_null() {
            for i in 0..self.facts.n {
                // SAFETY: `i < n`, and the views describe arrays of this system with n elements
                let (q, l, inertia) = unsafe {
                    (
                        *view.quaternion.cast::<Quaternion<S::Real>>().host().add(i),
                        *view.angular_momentum.cast::<Vec3<S::Real>>().host().add(i),
                        *view.inertia.cast::<Vec3<S::Real>>().host().add(i),
                    )
                };
                let double = |v: Vec3<S::Real>| Vec3::from(v.f64());
                let q = Quaternion::new(q.x.f64(), q.y.f64(), q.z.f64(), q.w.f64());
                out.rotational += rotation::energy(q, double(l), double(inertia));
            }
        }
        for m in &self.integrators {
            if let (Some(part), Some(state)) = (m.component.integrator(), self.integrator_states.get(&m.component.id)) {
                out.reservoir += part.conserved(state.bytes())?;
            }
        }
        Ok(out)
    }
}
