//! CPU loop of integrator phases.

use crate::abi::views::{Fault, FaultKind, Globals, SimBox, StateView, Step};
use crate::device::philox::Random;
use crate::device::precision::{BoxScale, Fixed, Float64, Precision};
use crate::device::quaternion::Quaternion;
use crate::device::real::Real;
use crate::device::vector::Vec3;
use crate::kinds::integrator::{Integrator, MAX_SUMS, Particle, ParticleCall, ParticleFn};
use crate::kinds::storage::{DisplacementBox, PositionStorage, stretch_since_build};

/// Applies a phase to particles begin … end.
///
/// # Safety
/// The view in `call` describes valid host arrays, and no other thread accesses particles begin … end during the call.
/// `extra` is null or has an `I::Extra` for each particle, `carried` is null or has a velocity at each multiple of
/// `carried_stride`, and `sums` is valid.
pub unsafe fn particles<I: Integrator, F: ParticleFn<I>>(call: &ParticleCall, g: &I::State) {
    // SAFETY: the contract of this function is passed on
    unsafe {
        if (*call.state).precision == Precision::Double as u32 {
            in_box::<I, F, Float64>(call, g);
        } else {
            in_box::<I, F, Fixed>(call, g);
        }
    }
}

/// Calls the loop for the shape of the box: in a rectangular box, no particle needs to look at tilt factors.
unsafe fn in_box<I: Integrator, F: ParticleFn<I>, S: PositionStorage>(call: &ParticleCall, g: &I::State) {
    // SAFETY: the contract of `particles` is passed on
    unsafe {
        if F::MOVES && (*(*call.state).globals.host()).tilt != [0.0; 3] {
            range::<I, F, S, true>(call, g);
        } else {
            range::<I, F, S, false>(call, g);
        }
    }
}

/// Loads particle `i` as the function `F` sees it.
#[inline(always)]
unsafe fn load<I: Integrator, F: ParticleFn<I>, S: PositionStorage>(
    state: &StateView,
    length: [f64; 3],
    i: usize,
) -> Particle<S::Real> {
    // SAFETY: particle `i` exists, and integrators that rotate particles provide the arrays (contract of `particles`)
    unsafe {
        let pos = &*state.pos_type.cast::<S::PosType>().host().add(i);
        let v = *state.velocity_mass.cast::<[S::Real; 4]>().host().add(i);
        let f = *state.force.cast::<[S::Real; 4]>().host().add(i);
        let mut p = Particle {
            velocity: Vec3::new(v[0], v[1], v[2]),
            force: Vec3::new(f[0], f[1], f[2]),
            mass: v[3],
            kind: S::kind(pos),
            tag: *state.tag.host().add(i),
            ..Particle::default()
        };
        if F::POSITION {
            p.position = S::position(pos, length);
        }
        if F::TURNS {
            p.quaternion = *state.quaternion.cast::<Quaternion<S::Real>>().host().add(i);
            p.angular_momentum = *state.angular_momentum.cast::<Vec3<S::Real>>().host().add(i);
            p.torque = *state.torque.cast::<Vec3<S::Real>>().host().add(i);
            p.inertia = *state.inertia.cast::<Vec3<S::Real>>().host().add(i);
        }
        p
    }
}

/// Returns the velocity that another integrator carries through the step, corrected like the particle's own.
#[inline(always)]
fn corrected_velocity<I: Integrator, F: ParticleFn<I>, S: PositionStorage>(
    mut p: Particle<S::Real>,
    mut x: I::Extra<S::Real>,
    g: &I::State,
    step: &Step<S::Real>,
    mut random: Random,
) -> Vec3<S::Real> {
    F::apply::<S::Real>(&mut p, &mut x, g, step, &mut random);
    p.velocity
}

/// Applies a particle function to the particles begin … end.
unsafe fn range<I: Integrator, F: ParticleFn<I>, S: PositionStorage, const TILTED: bool>(
    call: &ParticleCall,
    g: &I::State,
) {
    // SAFETY: `begin` … `end` are particles that no other thread accesses, the view describes valid host arrays of the scheme
    // `S`, and `extra`, `carried` and `sums` have the sizes that the integrator's program declares (contract of `particles`)
    unsafe {
        // copies, because the compiler must assume that stores to arrays and other threads change the originals
        let state = &{ *call.state };
        let globals: &Globals = &*state.globals.host();
        let scale: BoxScale<S::Real> = BoxScale { tilted: TILTED, ..globals.scale::<S>() };
        let step = Step::<S::Real>::new(globals, call.first_varying);
        let (sim_box, number) = (SimBox::of(globals), globals.step);
        let displacement_box = DisplacementBox::of(&sim_box);
        let pos = state.pos_type.cast::<S::PosType>().host();
        let built = state.pos_at_build.cast::<S::PosType>().host().cast_const();
        let vel = state.velocity_mass.cast::<[S::Real; 4]>().host();
        let extra = call.extra.cast::<I::Extra<S::Real>>();
        let quaternion = state.quaternion.cast::<Quaternion<S::Real>>().host();
        let momentum = state.angular_momentum.cast::<Vec3<S::Real>>().host();
        let has_extra = size_of::<I::Extra<S::Real>>() > 0 && !extra.is_null();
        let slack2 = S::Real::lit(globals.slack2);
        let stretch = stretch_since_build(globals);
        let own_velocity = scale.sheared && has_extra && I::program().carries();
        let (mut sums, mut moved_far) = ([0.0; MAX_SUMS], false);
        for i in call.begin as usize..call.end as usize {
            if !state.in_group(i, call.group) {
                continue;
            }
            let mut p = load::<I, F, S>(state, sim_box.length, i);
            let tag = p.tag;
            let mut x = if has_extra { *extra.add(i) } else { I::Extra::<S::Real>::default() };
            let mut random = Random::new(call.key, number, tag, call.first_draw);
            if !call.carried.is_null() {
                let carried = &mut *call.carried.add(i * call.carried_stride as usize).cast::<Vec3<S::Real>>();
                *carried = corrected_velocity::<I, F, S>(Particle { velocity: *carried, ..p }, x, g, &step, random);
            }
            let s = F::apply::<S::Real>(&mut p, &mut x, g, &step, &mut random);
            for k in 0..F::SUMS {
                sums[k] += s[k];
            }
            if sim_box.dimensions == 2 {
                p.velocity.z = S::Real::ZERO;
            }
            *vel.add(i) = [p.velocity.x, p.velocity.y, p.velocity.z, p.mass];
            if has_extra {
                *extra.add(i) = x;
            }
            if F::TURNS {
                *quaternion.add(i) = p.quaternion.normalized();
                *momentum.add(i) = p.angular_momentum;
            }
            if F::MOVES {
                let rows_before = *state.image.host().add(3 * i + 1);
                if !S::displace::<TILTED>(state, &displacement_box, i, p.displacement.f64()) {
                    let code = FaultKind::NotFinite as u32;
                    globals.raise(Fault { code, component: call.component, tag, detail: 0 });
                    continue;
                }
                if scale.sheared {
                    let slower = cross::<S>(state, &sim_box, i, rows_before);
                    // correct the velocity that an integrator carries through the step, too
                    let own = own_velocity.then(|| extra.add(i).cast::<S::Real>());
                    let carried =
                        (!call.carried.is_null()).then(|| call.carried.add(i * call.carried_stride as usize).cast());
                    own.into_iter().chain(carried).for_each(|v| *v -= slower);
                }
                let then = S::stretched(&*built.add(i), stretch);
                let d = S::difference(&*pos.add(i), &then, &scale);
                moved_far |= d.norm2() > slack2;
            }
        }
        if moved_far {
            globals.rebuild.set(1);
        }
        for (total, s) in (*call.sums).iter_mut().zip(sums) {
            *total += s;
        }
    }
}

/// Applies the Lees-Edwards displacement and velocity change to a particle that crossed the box in y. Returns the
/// change that was subtracted from its velocity along x.
///
/// # Safety
/// As for [`PositionStorage::displace`].
unsafe fn cross<S: PositionStorage>(state: &StateView, b: &SimBox, i: usize, rows_before: i32) -> S::Real {
    // SAFETY: `i` < n_local, the view describes valid host arrays of the scheme `S`, and no other thread accesses particle i
    unsafe {
        let crossed = *state.image.host().add(3 * i + 1) - rows_before;
        if crossed == 0 {
            return S::Real::ZERO;
        }
        // less than half a box, so the displacement is always accepted
        S::displace::<false>(state, &DisplacementBox::of(b), i, [-f64::from(crossed) * b.offset, 0.0, 0.0]);
        let v = &mut *state.velocity_mass.cast::<[S::Real; 4]>().host().add(i);
        let slower = S::Real::lit(f64::from(crossed) * b.speed);
        v[0] -= slower;
        slower
    }
}
