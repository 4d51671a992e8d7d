//! Angle potential that is a cosine of n θ.

use galamost_plugin_api::prelude::*;

/// Parameters of one angle type.
#[derive(Clone, Debug, Params)]
pub struct CosinePeriodicParameters {
    /// Stiffness k.
    #[param(unit = "energy", at_least = 0.0)]
    k: f64,
    /// Multiplicity n.
    #[param(at_least = 1.0, at_most = 6.0)]
    n: u32,
    /// Sign b: 1 for a minimum at the straight line, −1 for a maximum.
    #[param(default = 1, at_least = -1.0, at_most = 1.0)]
    b: i32,
}

/// Coefficients of the polynomial U(cos θ), from cos⁰ to cos⁶.
#[derive(Debug, PairParams)]
pub struct CosinePeriodicAngle<real> {
    c0: real,
    c1: real,
    c2: real,
    c3: real,
    c4: real,
    c5: real,
    c6: real,
}

impl RowInput for CosinePeriodicParameters {
    type Settings = NoSettings;
    type Row = CosinePeriodicAngle<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<CosinePeriodicAngle<f64>, String> {
        if self.b == 0 {
            return Err("b is 1 or −1".into());
        }
        // Chebyshev's polynomial: cos nθ = Tₙ(cos θ)
        let mut t: [f64; 7] = match self.n {
            1 => [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            2 => [-1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0],
            3 => [0.0, -3.0, 0.0, 4.0, 0.0, 0.0, 0.0],
            4 => [1.0, 0.0, -8.0, 0.0, 8.0, 0.0, 0.0],
            5 => [0.0, 5.0, 0.0, -20.0, 0.0, 16.0, 0.0],
            _ => [-1.0, 0.0, 18.0, 0.0, -48.0, 0.0, 32.0],
        };
        let scale = 2.0 * self.k / f64::from(self.n * self.n);
        let sign = if self.n.is_multiple_of(2) { 1.0 } else { -1.0 };
        t.iter_mut().for_each(|c| *c *= -scale * sign * f64::from(self.b));
        let [c0, c1, c2, c3, c4, c5, c6] = t;
        Ok(CosinePeriodicAngle { c0: c0 + scale, c1, c2, c3, c4, c5, c6 })
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<CosinePeriodicAngle<f64>> {
        let n = 1 + (6.0 * random()) as u32;
        CosinePeriodicParameters { k: 10.0 * random(), n, b: 1 }.row(&NoSettings).ok()
    }
}

/// Periodic cosine angle: U(θ) = (2k/n²)[1 − b (−1)ⁿ cos(nθ)].
///
/// θ is the angle at the middle particle, 180° for a straight line. For b = 1 the straight line is a minimum, with the stiffness
/// U'' = 2k for any n; other minima are at 0° for n = 2, at 60° for n = 3, at 0° and 90° for n = 4. The force is regular for
/// every θ.
///
/// Reference: S. L. Mayo, B. D. Olafson, W. A. Goddard III, J. Phys. Chem. 94 (1990) 8897, doi:10.1021/j100389a010. The same
/// form is `cosine/periodic` in LAMMPS, whose C is k.
///
/// ```ron
/// CosinePeriodicAngle(angles: { "A-A-A": (k: 5.0, n: 2), "A-A-B": (k: 10.0, n: 3), "A-B-B": (k: 4.0, n: 4, b: -1),
///     "B-B-B": (k: 3.0, n: 1) })
/// ```
#[angle_potential("CosinePeriodicAngle", input = CosinePeriodicParameters)]
fn cosine_periodic_angle(cos_theta: real, p: &CosinePeriodicAngle<real>) -> (real, real) {
    let c = cos_theta;
    let u = p.c0 + c * (p.c1 + c * (p.c2 + c * (p.c3 + c * (p.c4 + c * (p.c5 + c * p.c6)))));
    let slope = p.c1 + c * (2.0 * p.c2 + c * (3.0 * p.c3 + c * (4.0 * p.c4 + c * (5.0 * p.c5 + c * (6.0 * p.c6)))));
    (slope, u)
}
