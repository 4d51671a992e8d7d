//! One interaction: its grid, its first guess, its updates.

use galamost_tables::{Kind, Rows};

/// Bins of equal width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bins {
    /// Lower edge of the first bin, a length or degrees.
    pub first: f64,
    /// Width of a bin.
    pub width: f64,
    /// Number of bins.
    pub n: usize,
}

impl Bins {
    /// Divides first … last into `n` bins.
    pub fn new(first: f64, last: f64, n: usize) -> Self {
        Self { first, width: (last - first) / n as f64, n }
    }
    /// Returns the upper edge of the last bin.
    pub fn last(&self) -> f64 {
        self.first + self.width * self.n as f64
    }
    /// Returns the center of a bin.
    pub fn middle(&self, k: usize) -> f64 {
        self.first + (k as f64 + 0.5) * self.width
    }
}

/// Data of one thermodynamic state for one interaction.
#[derive(Clone, Copy, Debug)]
pub struct StateData<'a> {
    /// kT.
    pub kt: f64,
    /// Weight among the states.
    pub weight: f64,
    /// Target distribution, in each bin.
    pub target: &'a [f64],
    /// Distribution measured in the last run.
    pub measured: &'a [f64],
}

/// Deviation of a distribution from its target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Closeness {
    /// √(∫ (p − p_t)² dx / ∫ p_t² dx).
    pub norm: f64,
    /// Largest |p − p_t| divided by the largest p_t.
    pub max: f64,
}

/// Largest change of one bin in one iteration, in kT.
pub const LIMIT: f64 = 2.0;

/// An interaction whose potential is to be determined.
#[derive(Clone, Debug, PartialEq)]
pub struct Interaction {
    /// Kind of interaction.
    pub kind: Kind,
    /// Grid of the potential.
    pub bins: Bins,
    /// Dimensions of the system, 2 or 3.
    pub dimensions: u32,
    /// A bin is sampled if the target exceeds this fraction of 1 (pairs) or of its largest value (bonds, angles, dihedrals).
    pub floor: f64,
    /// How often changes are averaged with those of the adjacent bins.
    pub smooth: u32,
}

impl Interaction {
    /// Returns the density of states without interaction: r² (3D) or r (2D) for a bond, sin θ for an angle, else 1.
    fn state_density(&self, k: usize) -> f64 {
        let x = self.bins.middle(k);
        match (self.kind, self.dimensions) {
            (Kind::Bond, 2) => x,
            (Kind::Bond, _) => x * x,
            (Kind::Angle, 3) => x.to_radians().sin(),
            _ => 1.0,
        }
    }

    /// Returns the bins in which a distribution is sampled.
    pub fn sampled(&self, target: &[f64]) -> Vec<bool> {
        let scale = if self.kind == Kind::Pair { 1.0 } else { target.iter().copied().fold(0.0, f64::max) };
        target.iter().map(|p| *p > self.floor * scale && *p > 0.0).collect()
    }

    /// Returns the bins that are sampled in at least one state.
    pub fn sampled_by_any(&self, states: &[StateData<'_>]) -> Vec<bool> {
        let each: Vec<Vec<bool>> = states.iter().map(|s| self.sampled(s.target)).collect();
        (0..self.bins.n).map(|k| each.iter().any(|s| s[k])).collect()
    }

    /// Averages over the states that have sampled a bin, by weight; 0 in other bins.
    fn weighted(&self, states: &[StateData<'_>], value: impl Fn(&StateData<'_>, usize) -> f64) -> Vec<f64> {
        let each: Vec<Vec<bool>> = states.iter().map(|s| self.sampled(s.target)).collect();
        (0..self.bins.n)
            .map(|k| {
                let here = || states.iter().zip(&each).filter(|(_, s)| s[k]).map(|(s, _)| s);
                let weight: f64 = here().map(|s| s.weight).sum();
                if weight > 0.0 { here().map(|s| s.weight * value(s, k)).sum::<f64>() / weight } else { 0.0 }
            })
            .collect()
    }

    /// Boltzmann inversion: U = −kT ln g for pairs, −kT ln (P/r²) for bonds, −kT ln (P/sin θ) for angles, −kT ln P for
    /// dihedrals.
    pub fn first_guess(&self, states: &[StateData<'_>]) -> Vec<f64> {
        let mut u = self.weighted(states, |s, k| -s.kt * (s.target[k] / self.state_density(k)).ln());
        let sampled = self.sampled_by_any(states);
        self.smooth_sampled(&mut u, &sampled);
        self.extrapolate(&mut u, &sampled, states);
        u
    }

    /// Iterative Boltzmann inversion: ΔU = α Σ w kT ln(p/p_t)/Σ w, where the sums run over the states and each logarithm is
    /// limited to [`LIMIT`].
    pub fn ibi(&self, u: &mut [f64], states: &[StateData<'_>], alpha: f64) {
        let change = self.weighted(states, |s, k| {
            let ratio = (s.measured[k] / s.target[k]).ln();
            alpha * s.kt * ratio.clamp(-LIMIT, LIMIT)
        });
        self.apply(u, change, states);
    }

    /// Smooths a change, adds it to a potential, and extrapolates the potential to bins that were not sampled.
    pub fn apply(&self, u: &mut [f64], mut change: Vec<f64>, states: &[StateData<'_>]) {
        let sampled = self.sampled_by_any(states);
        self.smooth_sampled(&mut change, &sampled);
        u.iter_mut().zip(&change).zip(&sampled).filter(|(_, s)| **s).for_each(|((u, d), _)| *u += d);
        self.extrapolate(u, &sampled, states);
    }

    /// Corrects the pressure with a linear term in a pair potential: ΔU = −A (1 − r/r_c), A = gain (P − P_target), |A| at most
    /// 0.1 kT.
    pub fn correct_pressure(&self, u: &mut [f64], gain: f64, pressure: f64, target: f64, kt: f64) {
        let a = (gain * (pressure - target)).clamp(-0.1 * kt, 0.1 * kt);
        let end = self.bins.last();
        for (k, u) in u.iter_mut().enumerate() {
            *u -= a * (1.0 - self.bins.middle(k) / end);
        }
    }

    /// Replaces each sampled bin by the mean with its sampled adjacent bins (weights ¼, ½, ¼), `smooth` times.
    fn smooth_sampled(&self, values: &mut [f64], sampled: &[bool]) {
        let n = values.len();
        let periodic = self.kind == Kind::Dihedral;
        for _ in 0..self.smooth {
            let old = values.to_vec();
            for k in (0..n).filter(|k| sampled[*k]) {
                let side = |exists: bool, at: usize| if exists && sampled[at] { old[at] } else { old[k] };
                let before = side(periodic || k > 0, (k + n - 1) % n);
                let after = side(periodic || k + 1 < n, (k + 1) % n);
                values[k] = 0.25 * before + 0.5 * old[k] + 0.25 * after;
            }
        }
    }

    /// Fills the bins that were not sampled, and shifts the potential to 0 at the cutoff of a pair or at the minimum of other
    /// interactions.
    ///
    /// Between sampled bins, the potential is linear. Below the first sampled bin of a pair, it is U₀ exp(s (r − r₀)/U₀), with
    /// U₀ and the slope s of a straight line through the first four sampled bins, if U₀ exceeds ½ kT, else that line. Beyond
    /// the last sampled bin of a pair, it is 0. At both ends of a bond or angle, it is a parabola with the slope of the
    /// outermost four bins and the curvature kT/σ² of a Gaussian as wide as the target.
    fn extrapolate(&self, u: &mut [f64], sampled: &[bool], states: &[StateData<'_>]) {
        let (n, h) = (u.len(), self.bins.width);
        let places: Vec<usize> = (0..n).filter(|k| sampled[*k]).collect();
        let (Some(&first), Some(&last)) = (places.first(), places.last()) else {
            u.fill(0.0);
            return;
        };
        for w in places.windows(2) {
            for k in w[0] + 1..w[1] {
                let t = (k - w[0]) as f64 / (w[1] - w[0]) as f64;
                u[k] = (1.0 - t) * u[w[0]] + t * u[w[1]];
            }
        }
        let weight: f64 = states.iter().map(|s| s.weight).sum();
        let kt = states.iter().map(|s| s.weight * s.kt).sum::<f64>() / weight;
        match self.kind {
            Kind::Pair => extrapolate_pair(u, &places, h, kt),
            Kind::Dihedral => {
                // the gap across ±180°
                let gap = first + n - last;
                for k in 1..gap {
                    let t = k as f64 / gap as f64;
                    u[(last + k) % n] = (1.0 - t) * u[last] + t * u[first];
                }
            }
            Kind::Bond | Kind::Angle => extrapolate_parabolas(u, &places, h, self.weighted_curvature(states)),
        }
        if self.kind != Kind::Pair {
            let zero = places.iter().map(|k| u[*k]).fold(f64::INFINITY, f64::min);
            u.iter_mut().for_each(|u| *u -= zero);
        }
    }

    /// Returns the mean kT/σ² of the states' targets, by weight.
    fn weighted_curvature(&self, states: &[StateData<'_>]) -> f64 {
        let one = |s: &StateData<'_>| {
            let sum: f64 = s.target.iter().sum();
            let mean = s.target.iter().enumerate().map(|(k, p)| p * self.bins.middle(k)).sum::<f64>() / sum;
            let square = |k: usize| (self.bins.middle(k) - mean).powi(2);
            let variance = s.target.iter().enumerate().map(|(k, p)| p * square(k)).sum::<f64>() / sum;
            s.weight * s.kt / variance.max(self.bins.width.powi(2))
        };
        states.iter().map(one).sum::<f64>() / states.iter().map(|s| s.weight).sum::<f64>()
    }

    /// Returns the rows of the potential's table, angles in radians.
    ///
    /// The rows of a pair end at the cutoff with U = 0. They start at the first bin whose U is at most 10⁴; the table
    /// extrapolates to smaller r.
    pub fn rows(&self, u: &[f64]) -> Rows {
        let scale = if self.kind.is_angle() { std::f64::consts::PI / 180.0 } else { 1.0 };
        let mut x: Vec<f64> = (0..self.bins.n).map(|k| self.bins.middle(k) * scale).collect();
        let mut u = u.to_vec();
        if self.kind == Kind::Pair {
            let highest = u.iter().fold(0.0f64, |m, u| m.max(u.abs())).min(1e4);
            let from = u.iter().position(|u| *u <= highest).unwrap_or(0);
            (x, u) = (x.split_off(from), u.split_off(from));
            x.push(self.bins.last());
            u.push(0.0);
        }
        Rows { x, u, ..Rows::default() }
    }

    /// Returns the potential in every bin from rows made by [`Self::rows`].
    ///
    /// # Errors
    /// Returns an error if the rows do not match the grid.
    pub fn values(&self, rows: &Rows) -> Result<Vec<f64>, String> {
        let extra = usize::from(self.kind == Kind::Pair);
        let missing =
            (self.bins.n + extra).checked_sub(rows.x.len()).ok_or("the table has more rows than the grid has bins")?;
        let scale =
            if self.kind.is_angle() { rows.unit.map_or(1.0, galamost_tables::Unit::radians).to_degrees() } else { 1.0 };
        let mut u = vec![f64::NAN; missing];
        u.extend(&rows.u[..rows.u.len() - extra]);
        for (k, x) in rows.x[..rows.x.len() - extra].iter().enumerate() {
            if (x * scale - self.bins.middle(missing + k)).abs() > 1e-6 * self.bins.width {
                return Err(format!(
                    "row {} is at {}, but the grid has {}",
                    k + 1,
                    x * scale,
                    self.bins.middle(missing + k)
                ));
            }
        }
        if missing > 0 {
            let first = u[missing];
            u[..missing].fill(first);
        }
        Ok(u)
    }

    /// Returns the deviation of a distribution from its target.
    pub fn closeness(&self, target: &[f64], measured: &[f64]) -> Closeness {
        let square = |p: &[f64]| p.iter().map(|p| p * p).sum::<f64>();
        let difference: Vec<f64> = target.iter().zip(measured).map(|(t, m)| m - t).collect();
        let largest = |p: &[f64]| p.iter().fold(0.0f64, |m, p| m.max(p.abs()));
        Closeness { norm: (square(&difference) / square(target)).sqrt(), max: largest(&difference) / largest(target) }
    }
}

/// Extrapolates a pair potential beyond its sampled bins `places` and shifts it to 0 at the cutoff; `h` is the width of a bin.
fn extrapolate_pair(u: &mut [f64], places: &[usize], h: f64, kt: f64) {
    let (n, first, last) = (u.len(), places[0], places[places.len() - 1]);
    let (u0, slope) = line(&places[..places.len().min(4)], u, h, first);
    let steep = u0 > 0.5 * kt && slope < 0.0;
    for (k, u) in u.iter_mut().enumerate().take(first) {
        let d = (k as f64 - first as f64) * h;
        *u = if steep { u0 * (slope * d / u0).min(60.0).exp() } else { u0 + slope.min(0.0) * d };
    }
    u[last + 1..].fill(0.0);
    let zero = if last + 1 == n { u[n.saturating_sub(2)..].iter().sum::<f64>() / n.min(2) as f64 } else { 0.0 };
    u.iter_mut().for_each(|u| *u -= zero);
}

/// Extrapolates a bond or angle potential beyond its sampled bins `places` by parabolas; `h` is the width of a bin.
fn extrapolate_parabolas(u: &mut [f64], places: &[usize], h: f64, curvature: f64) {
    let (first, last) = (places[0], places[places.len() - 1]);
    let four = places.len().min(4);
    let (low, slope) = line(&places[..four], u, h, first);
    for (k, u) in u.iter_mut().enumerate().take(first) {
        let d = (k as f64 - first as f64) * h;
        *u = low + d * (slope.min(0.0) + 0.5 * curvature * d);
    }
    let (high, slope) = line(&places[places.len() - four..], u, h, last);
    for (k, u) in u.iter_mut().enumerate().skip(last + 1) {
        let d = (k - last) as f64 * h;
        *u = high + d * (slope.max(0.0) + 0.5 * curvature * d);
    }
}

/// Fits a straight line to the values of some bins by least squares. Returns the value in bin `at` and the slope.
fn line(places: &[usize], u: &[f64], h: f64, at: usize) -> (f64, f64) {
    let n = places.len() as f64;
    let x = |k: &usize| (*k as f64 - at as f64) * h;
    let mean_x = places.iter().map(x).sum::<f64>() / n;
    let mean_u = places.iter().map(|k| u[*k]).sum::<f64>() / n;
    let xx: f64 = places.iter().map(|k| (x(k) - mean_x).powi(2)).sum();
    let xu: f64 = places.iter().map(|k| (x(k) - mean_x) * (u[*k] - mean_u)).sum();
    let slope = if xx > 0.0 { xu / xx } else { 0.0 };
    (u[at], slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Kind, first: f64, last: f64, n: usize) -> Interaction {
        Interaction { kind, bins: Bins::new(first, last, n), dimensions: 3, floor: 1e-3, smooth: 0 }
    }

    #[test]
    fn inversion_recovers_the_potential() {
        let kt = 1.3;
        for (kind, first, last, potential) in [
            (Kind::Pair, 0.0, 2.5, (|r: f64| 4.0 * (-r).exp() * (3.0 * r).cos()) as fn(f64) -> f64),
            (Kind::Bond, 0.5, 1.6, |r| 30.0 * (r - 1.0).powi(2)),
            (Kind::Angle, 0.0, 180.0, |t| 3.0 * (t.to_radians() - 2.0).powi(2)),
            (Kind::Dihedral, -180.0, 180.0, |p| p.to_radians().cos() + 0.3 * (3.0 * p.to_radians()).sin()),
        ] {
            let i = of(kind, first, last, 120);
            let p: Vec<f64> =
                (0..120).map(|k| i.state_density(k) * (-potential(i.bins.middle(k)) / kt).exp()).collect();
            let state = [StateData { kt, weight: 0.4, target: &p, measured: &p }; 2];
            let mut u = i.first_guess(&state);
            let sampled = i.sampled(&p);
            let at = sampled.iter().position(|s| *s).unwrap() + 5;
            let shift = u[at] - potential(i.bins.middle(at));
            for k in (0..120).filter(|k| sampled[*k]) {
                let error = u[k] - potential(i.bins.middle(k)) - shift;
                assert!(error.abs() < 1e-9, "{kind:?} bin {k}: {error}");
            }
            // potentials of bonds and angles increase beyond the sampled bins
            if let Some(first) = sampled.iter().position(|s| *s).filter(|f| *f > 0) {
                assert!((1..=first).all(|k| u[k - 1] >= u[k]), "{kind:?}: {:?}", &u[..=first]);
            }
            // a distribution equal to its target changes nothing
            let before = u.clone();
            i.ibi(&mut u, &state, 1.0);
            assert!(u.iter().zip(&before).all(|(a, b)| (a - b).abs() < 1e-9));
            let rows = i.rows(&u);
            let back = i.values(&Rows { unit: Some(galamost_tables::Unit::Radians), ..rows }).unwrap();
            assert!(back.iter().zip(&u).filter(|(_, u)| **u < 1e3).all(|(a, b)| a == b));
        }
    }

    #[test]
    fn updates_follow_ratio_weight_and_limit() {
        let i = of(Kind::Pair, 0.0, 1.0, 10);
        let (target, mut measured) = ([1.0; 10], [1.0; 10]);
        measured[4] = 2.0;
        measured[6] = 0.0;
        let states = [
            StateData { kt: 2.0, weight: 3.0, target: &target, measured: &measured },
            StateData { kt: 1.0, weight: 1.0, target: &target, measured: &target },
        ];
        let mut u = vec![0.0; 10];
        i.ibi(&mut u, &states, 0.5);
        assert!((u[4] - 0.75 * 2.0 * 0.5 * 2f64.ln()).abs() < 1e-12 && (u[6] + 0.75 * 2.0 * 0.5 * LIMIT).abs() < 1e-12);
        assert!(u[9] == 0.0 && u[0] == 0.0);
        let mut u = vec![0.0; 10];
        i.correct_pressure(&mut u, 0.01, 9.0, 1.0, 1.0);
        assert!((u[0] + 0.08 * 0.95).abs() < 1e-12 && (u[9] + 0.08 * 0.05).abs() < 1e-12);
        i.correct_pressure(&mut u, 1.0, 0.0, 1.0, 1.0);
        assert!((u[0] - 0.02 * 0.95).abs() < 1e-12, "at most 0.1 kT");
        let c = i.closeness(&target, &measured);
        assert!((c.norm - 0.2f64.sqrt()).abs() < 1e-12 && c.max == 1.0);
    }

    #[test]
    fn smoothing_spreads_a_change_and_keeps_its_sum() {
        let i = Interaction { smooth: 3, ..of(Kind::Dihedral, -180.0, 180.0, 36) };
        let mut v = vec![0.0; 36];
        v[0] = 1.0;
        i.smooth_sampled(&mut v, &[true; 36]);
        assert!((v.iter().sum::<f64>() - 1.0).abs() < 1e-12 && v[0] < 0.4 && v[35] > 0.1 && v[35] == v[1]);
    }
}
