//! Colloids: attraction of Hamaker, repulsion of double layers.

use galamost_plugin_api::prelude::*;

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct DlvoInput {
    /// Hamaker constant A.
    #[param(unit = "energy", at_least = 0.0)]
    hamaker: f64,
    /// Radii a₁ and a₂ of the particles.
    #[param(unit = "length", above = 0.0)]
    radii: [f64; 2],
    /// Strength Z of the repulsion.
    #[param(name = "Z", unit = "energy/length", at_least = 0.0)]
    z: f64,
    /// Inverse Debye length κ.
    #[param(unit = "1/length", at_least = 0.0)]
    kappa: f64,
}

/// Coefficients A/6, a₁a₂, a₁ + a₂, (a₁ − a₂)², Z a₁a₂/(a₁ + a₂) and κ.
#[derive(Debug, PairParams)]
pub struct Dlvo<real> {
    sixth: real,
    product: real,
    sum: real,
    difference2: real,
    repulsion: real,
    kappa: real,
}

impl RowInput for DlvoInput {
    type Settings = NoSettings;
    type Row = Dlvo<f64>;
    fn row(&self, _: &NoSettings) -> std::result::Result<Dlvo<f64>, String> {
        let [a, b] = self.radii;
        Ok(Dlvo {
            sixth: self.hamaker / 6.0,
            product: a * b,
            sum: a + b,
            difference2: (a - b) * (a - b),
            repulsion: self.z * a * b / (a + b),
            kappa: self.kappa,
        })
    }
    fn least_cutoff(&self, _: &NoSettings, _: [&str; 2]) -> Option<(f64, &'static str)> {
        Some((self.radii.iter().sum(), "the distance at contact, the sum of the radii"))
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<Dlvo<f64>> {
        let radii = [0.05 + 0.1 * random(), 0.05 + 0.1 * random()];
        DlvoInput { hamaker: random(), radii, z: 50.0 * random(), kappa: 1.0 + 3.0 * random() }.row(&NoSettings).ok()
    }
}

/// DLVO pair potential of colloids: U(r) = −(A/6)[2p/x + 2p/y + ln(x/y)] + Z p/s · exp(−κ(r − s)), r < r_cut, with
/// s = a₁ + a₂, p = a₁a₂, x = r² − s², y = r² − (a₁ − a₂)².
///
/// The first term is the van der Waals attraction of two spheres (Hamaker), the second the screened repulsion of their surfaces
/// in the approximation of Derjaguin. For surfaces of equal potential ψ, Z = 64π ε_r ε₀ (kT/e)² tanh²(eψ/4kT). The attraction
/// diverges at contact, r = s, and is infinite for closer particles: they end the run with an error that names one of them. So Z must
/// be large enough to keep particles apart, or another potential must. `r_cut` must exceed s. With A = 0 particles may overlap.
///
/// Reference: J. N. Israelachvili, Intermolecular and Surface Forces, 3rd ed. (2011), chapters 13 and 14; H. C. Hamaker,
/// Physica 4 (1937) 1058, doi:10.1016/S0031-8914(37)80203-7. The same form is `DLVO` in HOOMD-blue.
///
/// ```ron
/// Dlvo(r_cut: 3.0, mode: ShiftEnergy, pairs: {
///     ("A", "A"): (hamaker: 0.5, radii: [0.2, 0.2], Z: 60.0, kappa: 3.0),
///     ("A", "B"): (hamaker: 0.5, radii: [0.2, 0.3], Z: 60.0, kappa: 3.0),
///     ("B", "B"): (hamaker: 0.4, radii: [0.3, 0.3], Z: 50.0, kappa: 2.5),
/// })
/// ```
#[pair_potential("Dlvo", input = DlvoInput)]
fn dlvo(r2: real, p: &Dlvo<real>) -> (real, real) {
    let r = r2.sqrt();
    let gap = r2 - p.sum * p.sum;
    let least = 1e-6 * p.sum * p.sum;
    // bounded, so that the energy of touching particles is finite
    let x = gap.max(least);
    let y = (r2 - p.difference2).max(1e-6 * p.sum * p.sum);
    let layer = p.repulsion * (-p.kappa * (r - p.sum)).exp();
    let attraction = p.sixth * (2.0 * p.product / x + 2.0 * p.product / y + (x / y).ln());
    let slope = p.sixth * ((4.0 * p.product / x - 2.0) / x + (4.0 * p.product / y + 2.0) / y);
    // integrators refuse the move by an infinite force; a finite one could move heavy particles too little
    let touching = (gap <= least) && (p.sixth > 0.0);
    (if touching { f64::NEG_INFINITY } else { p.kappa * layer / r - slope }, layer - attraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::pair::Row;

    #[test]
    fn touching_particles_have_an_infinite_force_and_a_finite_energy() {
        let row = |hamaker: f64| {
            let input = DlvoInput { hamaker, radii: [0.2, 0.2], z: 60.0, kappa: 3.0 };
            input.row(&NoSettings).expect("valid")
        };
        for r in [1e-3, 0.1, 0.4] {
            let (f, u) = dlvo(r * r, &row(0.5));
            assert!(f == f64::NEG_INFINITY && u.is_finite(), "r = {r}: {f:e} {u:e}");
            let (f, u) = dlvo((r * r) as f32, &row(0.5).cast::<f32>());
            assert!(f == f32::NEG_INFINITY && u.is_finite(), "r = {r}: {f:e} {u:e}");
            let (f, u) = dlvo(r * r, &row(0.0));
            assert!(f > 0.0 && f.is_finite() && u > 0.0, "r = {r}: {f:e} {u:e}");
        }
    }
}
