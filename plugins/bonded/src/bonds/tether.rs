//! Bonds with a shortest and a longest length, free between.

use galamost_plugin_api::prelude::*;

/// Parameters of one bond type.
#[derive(Clone, Debug, Params)]
pub struct TetherInput {
    /// Strength k.
    #[param(unit = "energy·length", above = 0.0)]
    k: f64,
    /// Shortest length, where the repulsion diverges.
    #[param(unit = "length", at_least = 0.0)]
    l_min: f64,
    /// Length below which the repulsion acts.
    #[param(unit = "length", above = 0.0)]
    l_c1: f64,
    /// Length above which the attraction acts.
    #[param(unit = "length", above = 0.0)]
    l_c0: f64,
    /// Longest length, where the attraction diverges.
    #[param(unit = "length", above = 0.0)]
    l_max: f64,
}

/// Coefficients of [`TetherInput`].
#[derive(Debug, PairParams)]
pub struct Tether<real> {
    k: real,
    l_min: real,
    l_c1: real,
    l_c0: real,
    l_max: real,
}

impl RowInput for TetherInput {
    type Settings = NoSettings;
    type Row = Tether<f64>;
    fn bond_length(&self) -> Option<(&'static str, f64)> {
        Some(("l_max", self.l_max))
    }
    fn row(&self, _: &NoSettings) -> std::result::Result<Tether<f64>, String> {
        let Self { k, l_min, l_c1, l_c0, l_max } = *self;
        if l_min >= l_c1 || l_c0 >= l_max || l_min >= l_max {
            return Err(format!(
                "l_min = {l_min} must be below l_c1 = {l_c1}, and l_c0 = {l_c0} below l_max = {l_max}"
            ));
        }
        Ok(Tether { k, l_min, l_c1, l_c0, l_max })
    }
    fn inert() -> Option<Tether<f64>> {
        // no length is below l_c1 or above l_c0
        Some(Tether { k: 0.0, l_min: -1.0, l_c1: 0.0, l_c0: 1e15, l_max: 2e15 })
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<Tether<f64>> {
        // the harness uses lengths up to 1.3
        let [l_c1, l_c0] = [1.0 + 0.1 * random(), 0.9 + 0.1 * random()];
        let input = TetherInput { k: 20.0 * random(), l_min: 0.3 * random(), l_c1, l_c0, l_max: 1.7 + random() };
        input.row(&NoSettings).ok()
    }
}

/// Tether bond: U(r) = k exp(1/(l_c0 − r))/(l_max − r) for r > l_c0, plus k exp(1/(r − l_c1))/(r − l_min) for r < l_c1.
///
/// Bonds of lengths between l_c1 and l_c0 are free; all derivatives of U vanish at these ends. This is the bond of membranes
/// of tethered particles. A bond that reaches l_max ends the run with an error that names its two particles; one that reaches
/// l_min ends it with an error that names one of them.
///
/// Reference: G. Gompper, D. M. Kroll, in Statistical Mechanics of Membranes and Surfaces, 2nd ed. (2004), p. 359; H. Noguchi,
/// G. Gompper, Phys. Rev. E 72 (2005) 011901, doi:10.1103/PhysRevE.72.011901. The same form is `Tether` in HOOMD-blue.
///
/// ```ron
/// Tether(bonds: {
///     "A-A": (k: 80.0, l_min: 0.5, l_c1: 0.85, l_c0: 1.15, l_max: 2.0),
///     "A-B": (k: 60.0, l_min: 0.4, l_c1: 0.9, l_c0: 1.1, l_max: 2.1),
///     "B-B": (k: 40.0, l_min: 0.3, l_c1: 1.0, l_c0: 1.0, l_max: 2.2),
/// })
/// ```
#[bond_potential("Tether", input = TetherInput)]
fn tether(r2: real, p: &Tether<real>) -> (real, real) {
    let r = r2.sqrt();
    // 0 beyond the limits: the force is then infinite, which the loop reports as a broken bond
    let above = (r - p.l_min).max(0.0);
    let below = (p.l_max - r).max(0.0);
    let far = r - p.l_c0;
    let close = p.l_c1 - r;
    let attraction = p.k * (-1.0 / far).exp() / below;
    let repulsion = p.k * (-1.0 / close).exp() / above;
    let pull = attraction * (1.0 / (far * far) + 1.0 / below);
    let push = repulsion * (1.0 / (close * close) + 1.0 / above);
    let f = (if close > 0.0 { push } else { 0.0 }) - (if far > 0.0 { pull } else { 0.0 });
    let safe = if r > 0.0 { r } else { 1.0 };
    (f / safe, (if far > 0.0 { attraction } else { 0.0 }) + (if close > 0.0 { repulsion } else { 0.0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forces_diverge_at_both_ends_and_vanish_between() {
        let input = TetherInput { k: 80.0, l_min: 0.5, l_c1: 0.85, l_c0: 1.15, l_max: 2.0 };
        let row = input.row(&NoSettings).expect("valid");
        for (r, f) in [(0.3, f64::INFINITY), (0.5, f64::INFINITY), (0.85, 0.0), (1.0, 0.0), (2.0, f64::NEG_INFINITY)] {
            assert_eq!(tether(r * r, &row).0, f, "r = {r}");
        }
        let row = Tether { k: 80.0f32, l_min: 0.5, l_c1: 0.85, l_c0: 1.15, l_max: 2.0 };
        assert_eq!((tether(0.25, &row).0, tether(9.0, &row).0), (f32::INFINITY, f32::NEG_INFINITY));
        assert!(TetherInput { l_c0: 2.5, ..input }.row(&NoSettings).is_err());
    }
}
