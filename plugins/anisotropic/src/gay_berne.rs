//! Gay-Berne ellipsoids.

use crate::inverse_distance;
use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct GayBerneInput {
    /// Well depth ε₀ of crossed particles.
    #[param(unit = "energy", at_least = 0.0)]
    pub epsilon0: f64,
    /// Diameter σ₀ perpendicular to the axis.
    #[param(unit = "length", above = 0.0)]
    pub sigma0: f64,
    /// Aspect ratio κ: length over breadth.
    #[param(above = 0.0)]
    pub kappa: f64,
    /// Well-depth ratio κ': side-by-side over end-to-end.
    #[param(above = 0.0)]
    pub kappa_prime: f64,
    /// Exponent μ of the well depth.
    #[param(default = 2.0, above = 0.0)]
    pub mu: f64,
    /// Exponent ν of the well depth.
    #[param(default = 1.0)]
    pub nu: f64,
}

/// Coefficients of one pair of types.
#[derive(Debug, PairParams)]
pub struct GayBerneRow<real> {
    epsilon0: real,
    inv_sigma0: real,
    /// χ = (κ² − 1)/(κ² + 1).
    chi: real,
    /// χ' = (κ'^(1/μ) − 1)/(κ'^(1/μ) + 1).
    chi_prime: real,
    mu: real,
    nu: real,
}

impl RowInput for GayBerneInput {
    type Settings = NoSettings;
    type Row = GayBerneRow<f64>;

    fn row(&self, _: &NoSettings) -> std::result::Result<GayBerneRow<f64>, String> {
        let (shape, depth) = (self.kappa * self.kappa, self.kappa_prime.powf(1.0 / self.mu));
        Ok(GayBerneRow {
            epsilon0: self.epsilon0,
            inv_sigma0: 1.0 / self.sigma0,
            chi: (shape - 1.0) / (shape + 1.0),
            chi_prime: (depth - 1.0) / (depth + 1.0),
            mu: self.mu,
            nu: self.nu,
        })
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<GayBerneRow<f64>> {
        Some(GayBerneRow {
            epsilon0: random(),
            inv_sigma0: 1.0 + random(),
            chi: 0.8 * random(),
            chi_prime: 0.5 * random(),
            mu: 1.0 + random(),
            nu: 1.0 + random(),
        })
    }
    fn least_cutoff(&self, _: &NoSettings, _: [&str; 2]) -> Option<(f64, &'static str)> {
        Some((self.sigma0 * self.kappa.max(1.0), "the longest diameter of the particles"))
    }
}

/// Returns g = (a + b)²/(1 + χc) + (a − b)²/(1 − χc) and its derivatives with respect to a, b and c.
#[device_fn]
fn overlap(chi: real, a: real, b: real, c: real) -> (real, real, real, real) {
    let plus = (a + b) / (1.0 + chi * c);
    let minus = (a - b) / (1.0 - chi * c);
    ((a + b) * plus + (a - b) * minus, 2.0 * (plus + minus), 2.0 * (plus - minus), chi * (minus * minus - plus * plus))
}

/// Returns ϱ⁻¹² − ϱ⁻⁶ and its derivative, continued as a straight line below ϱ = 0.4.
#[device_fn]
pub fn lennard_jones(rho: real) -> (real, real) {
    let x = rho.max(0.4);
    let y = 1.0 / x;
    let y6 = y * y * y * y * y * y;
    let slope = 6.0 * y6 * (1.0 - 2.0 * y6) * y;
    (y6 * (y6 - 1.0) + slope * (rho - x), slope)
}

/// Gay–Berne potential of uniaxial particles: U = 4 ε(n_i, n_j, e) [ϱ⁻¹² − ϱ⁻⁶], ϱ = (r − σ(n_i, n_j, e) + σ₀)/σ₀.
///
/// With e = r/|r|, a = n_i·e, b = n_j·e, c = n_i·n_j and g(χ) = (a + b)²/(1 + χc) + (a − b)²/(1 − χc):
/// σ = σ₀ [1 − χ g(χ)/2]^(−½), ε = ε₀ [1 − χ²c²]^(−ν/2) [1 − χ' g(χ')/2]^μ,
/// χ = (κ² − 1)/(κ² + 1), χ' = (κ'^(1/μ) − 1)/(κ'^(1/μ) + 1).
///
/// κ is length over breadth: κ > 1 for rods, κ < 1 for disks. κ' is the well depth side by side over that end to end. σ₀ is
/// the breadth and ε₀ the well depth of crossed particles. Below ϱ = 0.4 (U > 2·10⁵ ε) the bracket continues as a straight
/// line, so that overlapping particles separate. At r = 0 the direction is undefined: U is that for σ = σ₀ and a = b = 0, and
/// force and torque are 0.
///
/// `r_cut` is compared with the distance of the centers, so it must exceed the longest diameter, σ₀ or κσ₀: at
/// r = (κ + 1.5) σ₀, ϱ = 2.5 for rods end to end as at the usual cutoff of Lennard-Jones.
///
/// `mode` is `Cut` or `Smooth(r_on)`. `ShiftEnergy` and `ShiftForce` are errors, because U at the cutoff depends on the orientations.
///
/// Reference: Gay & Berne, J. Chem. Phys. 74 (1981) 3316, doi:10.1063/1.441483.
///
/// ```ron
/// GayBerne(r_cut: 4.0, pairs: { ("A", "A"): (epsilon0: 1.0, sigma0: 0.5, kappa: 2.0, kappa_prime: 5.0),
///     ("A", "B"): (epsilon0: 0.8, sigma0: 0.5, kappa: 1.5, kappa_prime: 3.0, mu: 1.0, nu: 2.0),
///     ("B", "B"): (epsilon0: 1.0, sigma0: 0.5, kappa: 0.7, kappa_prime: 0.5) })
/// ```
#[oriented_pair_potential("GayBerne", input = GayBerneInput)]
pub fn gay_berne(
    r: Vec3<real>,
    r2: real,
    axis_i: Vec3<real>,
    axis_j: Vec3<real>,
    p: &GayBerneRow<real>,
) -> (Vec3<real>, Vec3<real>, real) {
    // with e = 0 at r = 0 there is no force; the axes still have an angle, but no torque either
    let inv_r = inverse_distance(r2);
    let apart = if r2 > 0.0 { 1.0 } else { 0.0 };
    let e = r * inv_r;
    let a = axis_i.dot(e);
    let b = axis_j.dot(e);
    let c = axis_i.dot(axis_j);

    // ϱ and −dϱ/dg
    let (g, g_a, g_b, g_c) = overlap(p.chi, a, b, c);
    let s = (1.0 - 0.5 * p.chi * g).rsqrt();
    let rho = r2 * inv_r * p.inv_sigma0 - s + 1.0;
    let range = 0.25 * p.chi * s * s * s;

    // well depth and its logarithmic derivatives
    let (h, h_a, h_b, h_c) = overlap(p.chi_prime, a, b, c);
    let inv_e1 = 1.0 - p.chi * p.chi * c * c;
    let e2 = 1.0 - 0.5 * p.chi_prime * h;
    let depth = 4.0 * p.epsilon0 * inv_e1.powf(-0.5 * p.nu) * e2.powf(p.mu);
    let by_h = -0.5 * p.mu * p.chi_prime / e2;
    let by_c = p.nu * p.chi * p.chi * c / inv_e1;

    let (bracket, slope) = lennard_jones(rho);
    let u = depth * bracket;
    let u_rho = depth * slope;
    let u_a = u * by_h * h_a - u_rho * range * g_a;
    let u_b = u * by_h * h_b - u_rho * range * g_b;
    let u_c = (u * (by_h * h_c + by_c) - u_rho * range * g_c) * apart;

    // F = −∂U/∂r e − [∂U/∂a (n_i − a e) + ∂U/∂b (n_j − b e)]/r, τ_i = −n_i × (∂U/∂a e + ∂U/∂c n_j)
    let across = (axis_i - e * a) * u_a + (axis_j - e * b) * u_b;
    (-e * (u_rho * p.inv_sigma0) - across * inv_r, -axis_i.cross(e * u_a + axis_j * u_c), u)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_depths_match_the_paper() {
        let input = GayBerneInput { epsilon0: 1.0, sigma0: 1.0, kappa: 3.0, kappa_prime: 5.0, mu: 2.0, nu: 1.0 };
        let row = input.row(&NoSettings).expect("a row");
        let (x, z) = (Vec3::new(1.0, 0.0, 0.0), Vec3::new(0.0, 0.0, 1.0));
        let well = 2f64.powf(1.0 / 6.0) - 1.0;
        let depth = |e: Vec3<f64>, n_i, n_j, s: f64| -gay_berne(e * (s + well), (s + well).powi(2), n_i, n_j, &row).2;
        let side = depth(x, z, z, 1.0);
        let end = depth(z, z, z, 3.0);
        assert!((side - 1.0 / (1.0f64 - 0.64).sqrt()).abs() < 1e-12, "{side}");
        assert!((side / end - 5.0).abs() < 1e-12, "{end}");
    }

    #[test]
    fn coinciding_particles_have_a_finite_energy_and_no_force() {
        let input = GayBerneInput { epsilon0: 1.0, sigma0: 0.5, kappa: 3.0, kappa_prime: 5.0, mu: 2.0, nu: 1.0 };
        let row = input.row(&NoSettings).expect("a row");
        let (z, tilted) = (Vec3::new(0.0, 0.0, 1.0), Vec3::new(0.6, 0.0, 0.8));
        let (force, torque, u) = gay_berne(Vec3::new(0.0, 0.0, 0.0), 0.0, z, tilted, &row);
        assert!(u.is_finite() && u > 0.0 && force.norm() == 0.0 && torque.norm() == 0.0, "{u} {force:?} {torque:?}");
    }
}
