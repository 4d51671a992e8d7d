//! Tests of potentials. The macros generate a call of each test for every potential of a plugin.

use crate::abi::views::Step;
use crate::device::philox::philox4x32;
use crate::device::quaternion::Quaternion;
use crate::device::vector::Vec3;
use crate::kinds::bonded::{BondFn, BondInput};
use crate::kinds::external::{ExternalFn, ExternalInput, ExternalParams};
use crate::kinds::pair::{OrientedFn, OrientedInput, PairFn, PairInput, PairOutput, Row, RowInput, inputs};
use crate::snapshot::LinkList;

/// Returns a generator of numbers in 0 … 1, the same in every run.
fn random() -> impl FnMut() -> f64 {
    let mut n = 0;
    move || {
        n += 1;
        f64::from(philox4x32::<7>([n, 0, 0, 0], [2013, 2197])[0]) / f64::from(u32::MAX)
    }
}

const PAIRS: usize = 1000;

fn step() -> Step<f64> {
    Step { dt: 0.01, inv_sqrt_dt: 10.0, step: 7, varying: [1.0; 4] }
}

/// Returns a row for tests: from the parameters as the user writes them, if possible, else from the ranges of the row.
fn rows<F: PairFn>(random: &mut dyn FnMut() -> f64) -> <F::Input as RowInput>::Row {
    <F::Input as RowInput>::sample(random).unwrap_or_else(|| Row::sample(random))
}

/// Tests that F = −dU/dr, by central differences for random rows and distances. Velocities and random numbers are 0,
/// because only the conservative part has an energy.
///
/// # Panics
/// Panics if the force is not the gradient.
pub fn pair_gradient<F: PairFn>() {
    let mut random = random();
    for _ in 0..PAIRS {
        let row = rows::<F>(&mut random).cast::<f64>();
        let r = 0.3 + 2.0 * random();
        let input = |r: f64| PairInput {
            r2: r * r,
            r_cut: 2.5,
            charge_i: 0.7,
            charge_j: -1.3,
            diameter_i: 0.9,
            diameter_j: 1.1,
            step: step(),
            ..PairInput::default()
        };
        gradient(r, |r| F::eval::<f64>(&input(r), &row));
    }
}

/// The configuration of two oriented particles: r and both orientations.
type Turned = (Vec3<f64>, [Quaternion<f64>; 2]);

fn oriented<F: OrientedFn>((r, q): Turned, row: &F::Row<f64>) -> PairOutput<f64> {
    let pair = PairInput {
        r2: r.norm2(),
        r_cut: 4.0,
        charge_i: 0.7,
        charge_j: -1.3,
        diameter_i: 0.9,
        diameter_j: 1.1,
        step: step(),
        ..PairInput::default()
    };
    let (axis_i, axis_j) = (q[0].axis(), q[1].axis());
    let input = OrientedInput { pair, r, axis_i, axis_j, quaternion_i: q[0], quaternion_j: q[1] };
    let (force, torque, energy) = F::eval(&input, row);
    PairOutput { force, torque, energy }
}

fn oriented_pairs<F: OrientedFn>(mut test: impl FnMut(Turned, &F::Row<f64>)) {
    let mut random = random();
    for _ in 0..10 * PAIRS {
        let row = <F::Input as RowInput>::sample(&mut random).unwrap_or_else(|| Row::sample(&mut random)).cast::<f64>();
        let mut around = || 2.0 * random() - 1.0;
        let mut turned = || Quaternion::new(around(), around(), around(), around()).normalized();
        let q = [turned(), turned()];
        let r = turned().axis() * (0.6 + 1.9 * random());
        test((r, q), &row);
    }
}

/// Tests that F = −∂U/∂r, and that τ is minus the derivative of U by a rotation of i, by central differences at 10⁴
/// random configurations.
///
/// # Panics
/// Panics if force or torque is not the derivative.
pub fn oriented_gradient<F: OrientedFn>() {
    let (mut tested, mut kinks) = (0u32, 0u32);
    oriented_pairs::<F>(|(r, q), row| {
        let here = oriented::<F>((r, q), row);
        // fourth-order difference; skipped if U has a kink between the points, for example at the edge of a patch
        let slope = |at: &dyn Fn(f64) -> Turned| {
            let u = |x: f64| oriented::<F>(at(x), row).energy;
            let by = |h: f64| (8.0 * (u(h) - u(-h)) - (u(2.0 * h) - u(-2.0 * h))) / (12.0 * h);
            let (coarse, fine) = (by(1e-4), by(5e-5));
            ((coarse - fine).abs() < 1e-9 * (coarse.abs() + here.energy.abs()).max(1.0)).then_some(fine)
        };
        for (k, e) in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].into_iter().enumerate() {
            let e = Vec3::from(e);
            let f = slope(&|x| (r + e * x, q));
            let t = slope(&|x| {
                let (sin, cos) = (0.5 * x).sin_cos();
                (r, [Quaternion::new(e.x * sin, e.y * sin, e.z * sin, cos) * q[0], q[1]])
            });
            let (Some(f), Some(t)) = (f, t) else {
                kinks += 1;
                continue;
            };
            tested += 1;
            let scale = (here.force.norm() + here.torque.norm()).max(here.energy.abs()).max(1.0);
            let (force, torque) = (here.force.f64()[k], here.torque.f64()[k]);
            // differences of fourth order: h⁴ U⁽⁵⁾/30, and rounding 1e-16 U/h
            assert!((force + f).abs() < 1e-8 * scale, "at {r:?}, {q:?}: force {force}, −dU/dr {}", -f);
            assert!((torque + t).abs() < 1e-8 * scale, "at {r:?}, {q:?}: torque {torque}, −dU/dφ {}", -t);
        }
    });
    assert!(tested > 9 * kinks, "the energy is smooth at {tested} poses and not at {kinks}");
}

/// Tests Newton's third law: F_ij = −F_ji and r × F + τ_i + τ_j = 0.
///
/// # Panics
/// Panics if forces or torques do not balance.
pub fn oriented_reaction<F: OrientedFn>() {
    oriented_pairs::<F>(|(r, q), row| {
        let (i, j) = (oriented::<F>((r, q), row), oriented::<F>((-r, [q[1], q[0]]), row));
        if !(i.energy.is_finite() && j.energy.is_finite()) {
            return;
        }
        let scale = (i.force.norm() * r.norm() + i.torque.norm()).max(1.0);
        let (force, total) = ((i.force + j.force).norm(), (r.cross(i.force) + i.torque + j.torque).norm());
        assert!((i.energy - j.energy).abs() < 1e-12 * i.energy.abs().max(1.0), "U {} and {}", i.energy, j.energy);
        assert!(force < 1e-11 * scale, "at {r:?}, {q:?}: F_ij + F_ji = {force:e}");
        assert!(total < 1e-11 * scale, "at {r:?}, {q:?}: the torques leave {total:e}");
    });
}

/// Tests the derivative of bonded potentials by central differences for random rows: F = −dU/dr for bonds, dU/dcos θ
/// for angles, dU/dφ for dihedrals and impropers.
///
/// # Panics
/// Panics if the function does not return the derivative.
pub fn bond_gradient<F: BondFn>() {
    let mut random = random();
    for _ in 0..PAIRS {
        let row = <F::Input as RowInput>::sample(&mut random).unwrap_or_else(|| Row::sample(&mut random)).cast::<f64>();
        let input = |r2: f64, angle: f64| BondInput { r2, angle, cos: angle.cos(), sin: angle.sin(), step: step() };
        if F::LIST == LinkList::Bonds {
            gradient(0.3 + random(), |r| F::eval::<f64>(&input(r * r, 0.0), &row));
            continue;
        }
        // angles away from 0 and π, where dU/dcos θ may be infinite
        let plane = F::LIST == LinkList::Angles;
        let angle = if plane { 0.1 + 2.9 * random() } else { 6.2 * (random() - 0.5) };
        let inner = if plane { -angle.sin() } else { 1.0 };
        gradient(angle, |a| {
            let (slope, u) = F::eval::<f64>(&input(0.0, a), &row);
            (-slope * inner / a, u)
        });
    }
}

/// Returns a particle at a random position in a box of length 10.
fn placed(random: &mut dyn FnMut() -> f64) -> ExternalInput<f64> {
    let place = std::array::from_fn(|_| 9.0 * (random() - 0.5));
    let velocity = std::array::from_fn(|_| random() - 0.5);
    ExternalInput {
        position: Vec3::from(place),
        unwrapped: Vec3::from(place),
        length: Vec3::new(10.0, 10.0, 10.0),
        velocity: Vec3::from(velocity),
        mass: 0.5 + random(),
        charge: 2.0 * random() - 1.0,
        kind: 0,
        tag: 7,
        step: step(),
    }
}

/// Tests that F = −∇U, by fourth-order central differences for random rows and positions.
///
/// # Panics
/// Panics if the force is not the gradient.
pub fn external_gradient<F: ExternalFn>() {
    let mut random = random();
    let (mut tested, mut kinks) = (0u32, 0u32);
    for _ in 0..PAIRS {
        let row = <F::Input as ExternalParams>::sample(&mut random).unwrap_or_else(|| Row::sample(&mut random));
        let (row, input) = (row.cast::<f64>(), placed(&mut random));
        let (force, energy) = F::eval::<f64>(&input, &row);
        if !energy.is_finite() {
            continue;
        }
        let scale = force.norm().max(energy.abs()).max(1.0);
        for (k, e) in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].into_iter().enumerate() {
            let u = |x: f64| {
                let moved = Vec3::from(e) * x;
                let (position, unwrapped) = (input.position + moved, input.unwrapped + moved);
                F::eval::<f64>(&ExternalInput { position, unwrapped, ..input }, &row).1
            };
            let by = |h: f64| (8.0 * (u(h) - u(-h)) - (u(2.0 * h) - u(-2.0 * h))) / (12.0 * h);
            let (coarse, fine) = (by(1e-4), by(5e-5));
            // skipped if U has a kink between the points, for example at the range of a truncated potential
            if (coarse - fine).abs() < 1e-9 * scale {
                tested += 1;
                let found = force.f64()[k];
                assert!(
                    (found + fine).abs() < 1e-8 * scale,
                    "at {:?}: force {found}, −dU/dr {}",
                    input.position,
                    -fine
                );
            } else {
                kinks += 1;
            }
        }
    }
    assert!(tested > 500 && tested > 9 * kinks, "the energy is smooth at {tested} places and not at {kinks}");
}

/// Tests that f32 and f64 agree to 5·10⁻⁵ of the largest force or energy. The f64 function is evaluated at the input
/// rounded to f32.
///
/// # Panics
/// Panics if the difference is larger.
pub fn external_precision<F: ExternalFn>() {
    let mut random = random();
    let mut worst = 0.0f64;
    for _ in 0..PAIRS {
        let row = <F::Input as ExternalParams>::sample(&mut random).unwrap_or_else(|| Row::sample(&mut random));
        let input = placed(&mut random);
        let round = |v: Vec3<f64>| Vec3::<f32>::from(v.f64());
        let single = ExternalInput {
            position: round(input.position),
            unwrapped: round(input.unwrapped),
            length: round(input.length),
            velocity: round(input.velocity),
            mass: input.mass as f32,
            charge: input.charge as f32,
            kind: input.kind,
            tag: input.tag,
            step: Step { dt: 0.01, inv_sqrt_dt: 10.0, step: 7, varying: [1.0; 4] },
        };
        let double = ExternalInput {
            position: Vec3::from(single.position.f64()),
            unwrapped: Vec3::from(single.unwrapped.f64()),
            velocity: Vec3::from(single.velocity.f64()),
            mass: f64::from(single.mass),
            charge: f64::from(single.charge),
            ..input
        };
        let ((f, u), (fs, us)) =
            (F::eval::<f64>(&double, &row.cast::<f64>()), F::eval::<f32>(&single, &row.cast::<f32>()));
        // for steep potentials, rounding of the position exceeds rounding of the force
        if !u.is_finite() || u.abs() + f.norm() > 1e3 {
            continue;
        }
        let far = (Vec3::<f64>::from(fs.f64()) - f).norm().max((f64::from(us) - u).abs());
        worst = worst.max(far / f.norm().max(u.abs()).max(1.0));
    }
    // 6e-8 of positions and numbers, with exponents up to about 100 and angles that are differences
    assert!(worst < 5e-5, "f32 and f64 differ by {worst:e}");
}

fn gradient(r: f64, eval: impl Fn(f64) -> (f64, f64)) {
    let h = 1e-4 * r.abs();
    let u = |k: f64| eval(r + k * h).1;
    // fourth order: the error is h⁴ U⁽⁵⁾/30
    let slope = (8.0 * (u(1.0) - u(-1.0)) - (u(2.0) - u(-2.0))) / (12.0 * h);
    let (f_over_r, energy) = eval(r);
    let force = f_over_r * r;
    if !(force.is_finite() && energy.is_finite() && slope.is_finite()) {
        // outside the range of the potential (FENE beyond R0): skipped
        return;
    }
    let scale = force.abs().max(energy.abs() / r.abs()).max(1.0);
    // the error above, and rounding 1e-16 U/h
    assert!((force + slope).abs() < 1e-8 * scale, "at r = {r}: force {force}, −dU/dr {}", -slope);
}

/// Tests that f32 and f64 agree to 2·10⁻⁵ of the largest value.
///
/// # Panics
/// Panics if the difference is larger.
pub fn pair_precision<F: PairFn>() {
    let mut random = random();
    let mut worst = 0.0f64;
    for _ in 0..PAIRS {
        let row = rows::<F>(&mut random);
        let r2 = (0.8 + random()).powi(2);
        let (rv, zeta) = if F::INPUTS & inputs::VELOCITY != 0 { (random() - 0.5, random() - 0.5) } else { (0.0, 0.0) };
        let double = PairInput {
            r2: f64::from(r2 as f32),
            r_cut: 2.5,
            rv: f64::from(rv as f32),
            zeta: f64::from(zeta as f32),
            charge_i: 1.0,
            charge_j: 1.0,
            diameter_i: 1.0,
            diameter_j: 1.0,
            step: step(),
        };
        let single = PairInput {
            r2: r2 as f32,
            r_cut: 2.5,
            rv: rv as f32,
            zeta: zeta as f32,
            charge_i: 1.0,
            charge_j: 1.0,
            diameter_i: 1.0,
            diameter_j: 1.0,
            step: Step { dt: 0.01, inv_sqrt_dt: 10.0, step: 7, varying: [1.0; 4] },
        };
        let (fd, ud) = F::eval::<f64>(&double, &row.cast::<f64>());
        let (fs, us) = F::eval::<f32>(&single, &row.cast::<f32>());
        if !(fd.is_finite() && ud.is_finite()) {
            continue;
        }
        let scale = fd.abs().max(ud.abs()).max(1.0);
        worst = worst.max((f64::from(fs) - fd).abs() / scale).max((f64::from(us) - ud).abs() / scale);
    }
    // 6e-8 of r² and of each operation, with exponents up to about 100
    assert!(worst < 2e-5, "f32 and f64 differ by {worst:e}");
}
