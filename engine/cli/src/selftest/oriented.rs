//! Oriented particles: force and torque against differences of the energy.

use galamost_engine::plan::Plan;
use galamost_engine::plugins::PairHandle;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::pair::PairConfiguration;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::quaternion::Quaternion;
use galamost_plugin_api::snapshot::{Snapshot, Values};
use galamost_plugin_api::vector::Vec3;

/// Returns whether the first component depends on orientations.
pub fn is_oriented(plan: &Plan) -> bool {
    plan.components.first().is_some_and(|c| c.needs.arrays.iter().any(|a| a.name == "quaternion"))
}

/// Rotates a particle about an axis of space by an angle.
pub fn turn(s: &mut Snapshot, tag: usize, axis: usize, angle: f64) {
    if let Some(Values::Real(all)) = s.arrays.get_mut("quaternion").map(|a| &mut a.values) {
        let q = &mut all[4 * tag..4 * tag + 4];
        let (sin, cos) = (0.5 * angle).sin_cos();
        let about: [f64; 3] = std::array::from_fn(|k| if k == axis { sin } else { 0.0 });
        let turned =
            Quaternion::<f64>::new(about[0], about[1], about[2], cos) * Quaternion::new(q[0], q[1], q[2], q[3]);
        q.copy_from_slice(&[turned.x, turned.y, turned.z, turned.w]);
    }
}

/// Compares force and torque with differences of the energy at random poses of all pairs of types. Returns the largest
/// deviation, and the number of poses at a kink of the energy, where the difference is undefined.
pub fn gradient(pair: &PairHandle<'_>, cutoff: f64) -> Result<(f64, usize)> {
    let (mut worst, mut kinks) = (0.0f64, 0);
    let key = RandomKey::new(1998, 2013);
    let draw = |k: u32, n: u32| key.single(0, k, n).map(|w| (f64::from(w) + 0.5) / 2_147_483_648.0 - 1.0);
    let rotation = |[x, y, z, w]: [f64; 4]| Quaternion::<f64>::new(x, y, z, w).normalized();
    let row = |q: Quaternion<f64>| [q.x, q.y, q.z, q.w];
    for (i, j) in [(0, 0), (0, 1), (1, 1)] {
        for k in 0..600 {
            let (qi, qj) = (rotation(draw(k, 0)), rotation(draw(k, 1)));
            // avoid r = 0 and the discontinuity at the cutoff
            let r = rotation(draw(k, 2)).axis() * (cutoff * (0.62 + 0.37 * draw(k, 3)[0]));
            let at = |r: Vec3<f64>, q: Quaternion<f64>| {
                pair.interaction(
                    i,
                    j,
                    &PairConfiguration {
                        r: r.f64(),
                        quaternion_i: row(q),
                        quaternion_j: row(qj),
                        ..PairConfiguration::default()
                    },
                )
            };
            let here = at(r, qi)?;
            // a panic at a neighboring pose counts as NaN
            let energy = |r, q| at(r, q).map_or(f64::NAN, |interaction| interaction.energy);
            let scale = here.force.norm().max(here.torque.norm()).max(here.energy.abs()).max(1.0);
            let mut compare = |value: f64, u: &dyn Fn(f64) -> f64| {
                let by = |h: f64| (8.0 * (u(h) - u(-h)) - (u(2.0 * h) - u(-2.0 * h))) / (12.0 * h);
                let (coarse, fine) = (by(1e-4), by(5e-5));
                if (coarse - fine).abs().partial_cmp(&(1e-8 * scale)).is_none_or(std::cmp::Ordering::is_gt) {
                    return false;
                }
                worst = worst.max((value + fine).abs() / scale);
                true
            };
            let mut smooth = true;
            for (k, e) in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].into_iter().enumerate() {
                let e = Vec3::<f64>::from(e);
                smooth &= compare(here.force.f64()[k], &|x| energy(r + e * x, qi));
                smooth &= compare(here.torque.f64()[k], &|x| {
                    let (s, c) = (0.5 * x).sin_cos();
                    energy(r, Quaternion::new(e.x * s, e.y * s, e.z * s, c) * qi)
                });
            }
            kinks += usize::from(!smooth);
        }
    }
    // at most 10 % of the poses may be at kinks
    Ok((if kinks < 180 { worst } else { f64::NAN }, kinks))
}
