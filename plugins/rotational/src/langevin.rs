//! Langevin dynamics of translation and rotation.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::rotation::{pushed, turned};

/// Langevin dynamics (NVT) of translation and rotation.
///
/// m dv/dt = F − γ v + √(2 γ kT) R(t), and about each body axis k: dL_k/dt = T_k − γ_r L_k/I_k + √(2 γ_r kT) R_k(t). L is
/// the angular momentum and T the torque. γ is the friction coefficient of translation in mass/time, γ_r that of rotation
/// in mass × length²/time.
///
/// One step of the BAOAB splitting: half a kick by force and torque; half a step of free motion; v = c v +
/// √((1 − c²) kT/m) N with c = exp(−γ dt/m), and L_k = c_k L_k + √((1 − c_k²) kT I_k) N_k with c_k = exp(−γ_r dt/I_k);
/// half a step of free motion; new forces; half a kick. `RotationalVerlet` describes the free rotation. The normal numbers
/// N are keyed by (seed, component, step, tag).
///
/// The ensemble is canonical; momentum is not conserved. Particles need the array `inert`, and `quaternion` or
/// `orientation`.
///
/// Reference: Davidchack, Ouldridge & Tretyakov, J. Chem. Phys. 142 (2015) 144114, doi:10.1063/1.4916312 (Langevin
/// dynamics of rigid bodies); Leimkuhler & Matthews, Appl. Math. Res. Express 2013, 34, doi:10.1093/amrx/abs010 (the
/// splitting).
///
/// ```ron
/// RotationalLangevin(kT: 1.0, gamma: 0.5, gamma_r: 0.2)
/// ```
#[component(Integrator, "RotationalLangevin", former = "RigidLangevin")]
#[derive(Clone, Debug, Params)]
pub struct RotationalLangevin {
    /// Particles to integrate.
    #[param(default = Group::All)]
    group: Group,
    /// kT, target temperature; may vary with time.
    #[param(name = "kT", unit = "energy", at_least = 0.0)]
    kt: Varying,
    /// γ, friction coefficient of translation.
    #[param(unit = "mass/time", at_least = 0.0)]
    gamma: f64,
    /// γ_r, friction coefficient of rotation.
    #[param(unit = "mass × length²/time", at_least = 0.0)]
    gamma_r: f64,
}

/// State of the integrator: γ and γ_r.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct LangevinState {
    gamma: f64,
    gamma_r: f64,
}

/// Returns a momentum after friction for x relaxation times, with noise of the equilibrium variance `heat`.
#[device_fn]
fn damped(l: real, x: real, heat: real, noise: real) -> real {
    let c = (-x).exp();
    // 1 − c² = 1 − exp(−2x), without cancellation for small x
    let lost = if x < 0.01 { 2.0 * x * (1.0 - x * (1.0 - x * (2.0 / 3.0))) } else { 1.0 - c * c };
    l * c + noise * (lost * heat).sqrt()
}

/// Applies `damped` to one component of the angular momentum; returns 0 if the moment of inertia is 0.
#[device_fn]
fn damped_axis(l: real, inertia: real, friction: real, kt: real, noise: real) -> real {
    let moment = if inertia > 0.0 { inertia } else { 1.0 };
    if inertia > 0.0 { damped(l, friction / moment, kt * moment, noise) } else { 0.0 }
}

#[particle_fn(RotationalLangevin)]
fn first_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    displacement: &mut Vec3<real>,
    quaternion: &mut Quaternion<real>,
    angular_momentum: &mut Vec3<real>,
    torque: Vec3<real>,
    inertia: Vec3<real>,
    g: &LangevinState,
    step: &Step<real>,
    random: &mut Random,
) {
    let kt = step.varying[0];
    let x = (g.gamma as real) * step.dt / mass;
    let push = random.normal3();
    let v = *velocity + force * (0.5 * step.dt / mass);
    *velocity = Vec3::new(
        damped(v.x, x, kt / mass, push.x),
        damped(v.y, x, kt / mass, push.y),
        damped(v.z, x, kt / mass, push.z),
    );
    *displacement = (v + *velocity) * (0.5 * step.dt);
    let friction = (g.gamma_r as real) * step.dt;
    let twist = random.normal3();
    let l = pushed(*angular_momentum, torque, *quaternion, inertia, 0.5 * step.dt);
    let halfway = turned(*quaternion, l, inertia, 0.5 * step.dt);
    let body = halfway.rotate_back(l);
    let after = Vec3::new(
        damped_axis(body.x, inertia.x, friction, kt, twist.x),
        damped_axis(body.y, inertia.y, friction, kt, twist.y),
        damped_axis(body.z, inertia.z, friction, kt, twist.z),
    );
    *angular_momentum = halfway.rotate(after);
    *quaternion = turned(halfway, *angular_momentum, inertia, 0.5 * step.dt);
}

#[particle_fn(RotationalLangevin)]
fn second_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    quaternion: Quaternion<real>,
    angular_momentum: &mut Vec3<real>,
    torque: Vec3<real>,
    inertia: Vec3<real>,
    step: &Step<real>,
) {
    *velocity += force * (0.5 * step.dt / mass);
    *angular_momentum = pushed(*angular_momentum, torque, quaternion, inertia, 0.5 * step.dt);
}

impl Integrator for RotationalLangevin {
    type State = LangevinState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new().before::<first_half>().after::<second_half>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        let frictions = [self.gamma, self.gamma * system.dt, self.gamma_r, self.gamma_r * system.dt];
        system.check_row(&frictions).map_err(Error::input)?;
        needs.group = self.group.need(system)?;
        needs.varyings = vec![self.kt];
        // without friction this is RotationalVerlet, at any energy
        needs.kt = (self.gamma > 0.0 || self.gamma_r > 0.0).then_some(self.kt);
        needs.conserves_momentum = false;
        Ok(())
    }
    fn state(&self, _: &GroupInfo) -> Result<LangevinState> {
        Ok(LangevinState { gamma: self.gamma, gamma_r: self.gamma_r })
    }
}
