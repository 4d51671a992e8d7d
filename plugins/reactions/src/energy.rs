//! Energies of bonds, angles, and pairs, and the smallest angle: whether they let a reaction take place.

use crate::law::{apart, norm2};
use crate::resolve::{CallContext, ParticleMap};
use galamost_plugin_api::DeviceStruct;
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{Fields, FromValue, Range, Value};

/// Bond energy U(r), with the energy `bound` released by its formation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BondEnergy {
    /// k (r − r0)² − bound.
    Harmonic { k: f64, r0: f64, bound: f64 },
    /// −½ k R0² ln[1 − (r/R0)²] − bound.
    Fene { k: f64, r_max: f64, bound: f64 },
}

impl BondEnergy {
    /// Returns U(r); infinite if the bond would be too long.
    pub fn at(self, r: f64) -> f64 {
        match self {
            Self::Harmonic { k, r0, bound } => k * (r - r0) * (r - r0) - bound,
            Self::Fene { k, r_max, bound } => {
                let left = 1.0 - (r / r_max) * (r / r_max);
                if left > 0.0 { -0.5 * k * r_max * r_max * left.ln() - bound } else { f64::INFINITY }
            }
        }
    }
}

impl FromValue for BondEnergy {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let name = value.name();
        if !matches!(name, Some("Harmonic" | "Fene")) {
            errors.push(value.error(format!("expected {}", Self::describe())));
            return None;
        }
        let above = Range { above: 0.0, ..Range::ANY };
        let not_negative = Range { at_least: 0.0, ..Range::ANY };
        let mut fields = Fields::new(value, errors)?;
        let k = fields.required("k", not_negative);
        let length =
            if name == Some("Fene") { fields.required("R0", above) } else { fields.required("r0", not_negative) };
        let bound = fields.or("bound", Range::ANY, || 0.0);
        fields.finish();
        let (k, length, bound) = (k?, length?, bound?);
        Some(match name {
            Some("Fene") => Self::Fene { k, r_max: length, bound },
            _ => Self::Harmonic { k, r0: length, bound },
        })
    }
    fn describe() -> String {
        "`Harmonic(k: 10.0, r0: 1.0, bound: 0.0)`, U = k (r − r0)² − bound, or `Fene(k: 10.0, R0: 1.5, bound: 0.0)`, \
         U = −½ k R0² ln[1 − (r/R0)²] − bound"
            .into()
    }
}

/// Angle energy U(θ) = k (θ − θ0)², angles in radians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AngleEnergy {
    k: f64,
    theta0: f64,
}

impl AngleEnergy {
    /// Returns U(θ).
    pub fn at(self, theta: f64) -> f64 {
        self.k * (theta - self.theta0) * (theta - self.theta0)
    }

    /// An energy with θ0 in radians.
    #[cfg(test)]
    pub fn new(k: f64, theta0: f64) -> Self {
        Self { k, theta0 }
    }
}

impl FromValue for AngleEnergy {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        if value.name() != Some("Harmonic") {
            errors.push(value.error(format!("expected {}", Self::describe())));
            return None;
        }
        let mut fields = Fields::new(value, errors)?;
        let k = fields.required("k", Range { at_least: 0.0, ..Range::ANY });
        let theta0 = fields.required("theta0_deg", Range { at_least: 0.0, at_most: 180.0, ..Range::ANY });
        fields.finish();
        let (k, theta0): (f64, f64) = (k?, theta0?);
        Some(Self { k, theta0: theta0.to_radians() })
    }
    fn describe() -> String {
        "`Harmonic(k: 10.0, theta0_deg: 180.0)`, U = k (θ − θ0)², θ in radians".into()
    }
}

/// Energy U(r) of two particles without a bond: Lennard-Jones, cut and shifted to 0 at `r_cut`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairEnergy {
    epsilon: f64,
    sigma: f64,
    r_cut: f64,
    /// U of the uncut potential at `r_cut`.
    shift: f64,
}

impl PairEnergy {
    fn new(epsilon: f64, sigma: f64, r_cut: f64) -> Self {
        let uncut = Self { epsilon, sigma, r_cut: f64::INFINITY, shift: 0.0 };
        let shift = if r_cut.is_finite() { uncut.at(r_cut) } else { 0.0 };
        Self { r_cut, shift, ..uncut }
    }

    /// The potential of Weeks, Chandler, and Andersen.
    pub fn wca(epsilon: f64, sigma: f64) -> Self {
        Self::new(epsilon, sigma, 2f64.powf(1.0 / 6.0) * sigma)
    }

    /// Returns U(r).
    pub fn at(self, r: f64) -> f64 {
        if r >= self.r_cut {
            return 0.0;
        }
        let s6 = (self.sigma / r).powi(6);
        4.0 * self.epsilon * s6 * (s6 - 1.0) - self.shift
    }
}

impl FromValue for PairEnergy {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let name = value.name();
        if !matches!(name, Some("Wca" | "LennardJones")) {
            errors.push(value.error(format!("expected {}", Self::describe())));
            return None;
        }
        let above = Range { above: 0.0, ..Range::ANY };
        let mut fields = Fields::new(value, errors)?;
        let epsilon = fields.required("epsilon", Range { at_least: 0.0, ..Range::ANY });
        let sigma = fields.required("sigma", above);
        let r_cut = if name == Some("Wca") { Some(0.0) } else { fields.or("r_cut", above, || f64::INFINITY) };
        fields.finish();
        let (epsilon, sigma, r_cut) = (epsilon?, sigma?, r_cut?);
        Some(if name == Some("Wca") { Self::wca(epsilon, sigma) } else { Self::new(epsilon, sigma, r_cut) })
    }
    fn describe() -> String {
        "`Wca(epsilon: 1.0, sigma: 1.0)`, or `LennardJones(epsilon: 1.0, sigma: 1.0, r_cut: 2.5)`, \
         U = 4 epsilon [(sigma/r)¹² − (sigma/r)⁶], shifted to 0 at r_cut if given"
            .into()
    }
}

/// Conditions of a reaction besides P_r.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acceptance {
    /// Smallest angle along a new bond in radians.
    pub min_angle: Option<f64>,
    /// Energies and kT.
    pub energies: Option<Energies>,
}

/// Energies that decide with probability min(1, exp(−E/kT)).
#[derive(Clone, Copy, Debug)]
pub struct Energies {
    pub kt: f64,
    /// Activation energy; without it, E is the energy change.
    pub activation: Option<f64>,
    pub bond: Option<BondEnergy>,
    pub angle: Option<AngleEnergy>,
    pub pair: Option<PairEnergy>,
    /// Whether bond and angles count with their mean.
    pub mean: bool,
}

/// Conditions of a reaction for the device: see [`Acceptance`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, DeviceStruct)]
pub struct Rule {
    /// Which of the numbers apply, as bits of [`Part`].
    pub parts: u32,
    reserved: u32,
    least: f64,
    kt: f64,
    activation: f64,
    bond_k: f64,
    bond_length: f64,
    bound: f64,
    angle_k: f64,
    theta0: f64,
    epsilon: f64,
    sigma: f64,
    pair_cut: f64,
    shift: f64,
}

galamost_plugin_api::device_enum! {
    /// Bits of [`Rule::parts`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Part {
        /// A smallest angle.
        Limit = 1,
        /// Energies, of which the following ones say more.
        Energies = 2,
        Activation = 4,
        Harmonic = 8,
        Fene = 16,
        Angle = 32,
        Pair = 64,
        Mean = 128,
    }
}

impl Rule {
    fn set(&mut self, part: Part) {
        self.parts |= part as u32;
    }
}

/// Particles of a call at their positions.
#[derive(Clone, Copy)]
pub struct Geometry<'a> {
    pub world: &'a ParticleMap,
    pub now: CallContext,
}

impl Geometry<'_> {
    fn between(&self, a: u32, b: u32) -> [f64; 3] {
        apart(self.world[&a].position, self.world[&b].position, self.now.length, self.now.fixed)
    }

    pub fn distance(&self, a: u32, b: u32) -> f64 {
        norm2(self.between(a, b)).sqrt()
    }

    /// Returns the bonded partners of a particle except `but`.
    pub fn bonded_except(&self, of: u32, but: u32) -> Vec<u32> {
        let known = self.world.get(&of).map_or([].as_slice(), |l| &l.bonds);
        known.iter().map(|(o, _)| *o).filter(|o| *o != but).collect()
    }

    /// Returns the angle c–x–y in radians.
    fn angle(&self, c: u32, x: u32, y: u32) -> f64 {
        let (u, v) = (self.between(c, x), self.between(y, x));
        let dot = u[0] * v[0] + u[1] * v[1] + u[2] * v[2];
        (dot / (norm2(u) * norm2(v)).sqrt()).clamp(-1.0, 1.0).acos()
    }

    /// Returns the angles between the bond a–b, which need not exist, and the other bonds of a and b.
    fn angles_along(&self, [a, b]: [u32; 2]) -> Vec<f64> {
        let at = |x: u32, y: u32| self.bonded_except(x, y).into_iter().map(move |c| (c, x, y));
        at(a, b).chain(at(b, a)).map(|(c, x, y)| self.angle(c, x, y)).collect()
    }
}

impl Energies {
    /// Returns the energy of a bond and of its angles.
    fn of_bond(&self, g: Geometry<'_>, bond: [u32; 2]) -> f64 {
        let stretched = self.bond.map_or(0.0, |u| u.at(g.distance(bond[0], bond[1])));
        let Some(angle) = self.angle else { return stretched };
        let angles = g.angles_along(bond);
        let sum = stretched + angles.iter().map(|theta| angle.at(*theta)).sum::<f64>();
        if self.mean { sum / (1 + angles.len()) as f64 } else { sum }
    }

    fn of_pair(&self, g: Geometry<'_>, pair: [u32; 2]) -> f64 {
        self.pair.map_or(0.0, |u| u.at(g.distance(pair[0], pair[1])))
    }

    /// Returns E: the activation energy above the energy before the reaction, or the energy change.
    fn cost(&self, g: Geometry<'_>, made: &[[u32; 2]], broken: Option<[u32; 2]>) -> f64 {
        let bonds = |of: &[[u32; 2]]| of.iter().map(|b| self.of_bond(g, *b)).sum::<f64>();
        let pairs = |of: &[[u32; 2]]| of.iter().map(|b| self.of_pair(g, *b)).sum::<f64>();
        let before = bonds(broken.as_slice()) + pairs(made);
        self.activation.unwrap_or_else(|| bonds(made) + pairs(broken.as_slice())) - before
    }
}

impl Acceptance {
    /// Returns whether the reaction takes place. `word` is uniformly distributed.
    pub fn accepts(&self, g: Geometry<'_>, made: &[[u32; 2]], broken: Option<[u32; 2]>, word: u32) -> bool {
        if let Some(least) = self.min_angle
            && made.iter().any(|bond| g.angles_along(*bond).into_iter().any(|theta| theta < least))
        {
            return false;
        }
        let Some(energies) = self.energies else { return true };
        let cost = energies.cost(g, made, broken);
        // also rejects NaN: an overlong bond cannot be exchanged
        cost <= 0.0 || (f64::from(word) + 0.5) / 4_294_967_296.0 < (-cost / energies.kt).exp()
    }

    /// Returns the conditions for the device.
    pub fn rule(&self) -> Rule {
        let mut rule = Rule::default();
        if let Some(least) = self.min_angle {
            rule.set(Part::Limit);
            rule.least = least;
        }
        let Some(energies) = self.energies else { return rule };
        rule.set(Part::Energies);
        rule.kt = energies.kt;
        if let Some(activation) = energies.activation {
            rule.set(Part::Activation);
            rule.activation = activation;
        }
        match energies.bond {
            Some(BondEnergy::Harmonic { k, r0, bound }) => {
                rule.set(Part::Harmonic);
                (rule.bond_k, rule.bond_length, rule.bound) = (k, r0, bound);
            }
            Some(BondEnergy::Fene { k, r_max, bound }) => {
                rule.set(Part::Fene);
                (rule.bond_k, rule.bond_length, rule.bound) = (k, r_max, bound);
            }
            None => {}
        }
        if let Some(angle) = energies.angle {
            rule.set(Part::Angle);
            (rule.angle_k, rule.theta0) = (angle.k, angle.theta0);
        }
        if let Some(PairEnergy { epsilon, sigma, r_cut, shift }) = energies.pair {
            rule.set(Part::Pair);
            (rule.epsilon, rule.sigma, rule.pair_cut, rule.shift) = (epsilon, sigma, r_cut, shift);
        }
        if energies.mean {
            rule.set(Part::Mean);
        }
        rule
    }

    /// Returns whether the bonds of the members' partners count.
    pub fn uses_angles(&self) -> bool {
        self.min_angle.is_some() || self.energies.is_some_and(|e| e.angle.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::Local;
    use galamost_plugin_api::philox::RandomKey;

    #[test]
    fn energies() {
        let harmonic = BondEnergy::Harmonic { k: 2.0, r0: 1.0, bound: 3.0 };
        assert!((harmonic.at(1.5) + 2.5).abs() < 1e-15);
        let fene = BondEnergy::Fene { k: 30.0, r_max: 1.5, bound: 0.0 };
        assert!((fene.at(0.75) - 33.75 * (4.0f64 / 3.0).ln()).abs() < 1e-12);
        assert!(fene.at(1.5) == f64::INFINITY && fene.at(2.0) == f64::INFINITY);
        assert!((AngleEnergy::new(3.0, 1.0).at(1.5) - 0.75).abs() < 1e-15);
        let wca = PairEnergy::wca(2.0, 1.5);
        assert!((wca.at(1.5) - 2.0).abs() < 1e-14 && wca.at(1.69) == 0.0 && wca.at(0.0) == f64::INFINITY);
        let cut = PairEnergy::new(1.0, 1.0, 2.5);
        assert!((cut.at(1.0) - 4.0 * (2.5f64.powi(-6) - 2.5f64.powi(-12))).abs() < 1e-15 && cut.at(2.5) == 0.0);
        assert!((PairEnergy::new(1.0, 1.0, f64::INFINITY).at(2f64.powf(1.0 / 6.0)) + 1.0).abs() < 1e-14);
    }

    /// Bonds 0–1 and 2–3, and 1–2 at a distance r with the angles `one` and `two` in degrees.
    fn world(r: f64, one: f64, two: f64, bonded: bool) -> ParticleMap {
        let turned = |angle: f64, at: f64, side: f64| {
            let (s, c) = angle.to_radians().sin_cos();
            [at + side * c, s, 0.0]
        };
        let position = [turned(one, 0.0, 1.0), [0.0; 3], [r, 0.0, 0.0], turned(two, r, -1.0)];
        let bonds = |i: u32| {
            let all = [(0, 1), (2, 3), (1, 2)];
            let all = &all[..if bonded { 3 } else { 2 }];
            all.iter()
                .filter_map(|(a, b)| (*a == i).then_some(*b).or((*b == i).then_some(*a)))
                .map(|o| (o, 0))
                .collect()
        };
        (0..4).map(|i| (i, Local { position: position[i as usize], bonds: bonds(i), ..Local::default() })).collect()
    }

    fn now() -> CallContext {
        CallContext { key: RandomKey::new(1, 2), step: 0, length: [100.0; 3], fixed: false }
    }

    fn law() -> Energies {
        Energies { kt: 1.0, activation: None, bond: None, angle: None, pair: None, mean: false }
    }

    /// Costs against values from the formulas by hand.
    #[test]
    fn costs_are_those_of_the_formulas() {
        let bond = BondEnergy::Harmonic { k: 625.0, r0: 1.0, bound: 6.0 };
        let angle = AngleEnergy::new(500.0, std::f64::consts::PI);
        let (bent, stretched) = (500.0 * 3f64.to_radians().powi(2), 625.0 * 0.02 * 0.02);
        let w = world(1.02, 177.0, 180.0, true);
        let g = Geometry { world: &w, now: now() };
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
        // energy change of breaking, sum of bond and angles
        let all = Energies { bond: Some(bond), angle: Some(angle), ..law() };
        near(all.cost(g, &[], Some([1, 2])), 6.0 - stretched - bent);
        // the same with the pair energy that comes back: WCA at 1.02
        let wca = 4.0 * (1.02f64.powi(-12) - 1.02f64.powi(-6)) + 1.0;
        let pair = Energies { pair: Some(PairEnergy::wca(1.0, 1.0)), ..all };
        near(pair.cost(g, &[], Some([1, 2])), 6.0 - stretched - bent + wca);
        // activation energy, mean of one bond and two angles
        let bare = BondEnergy::Harmonic { k: 625.0, r0: 1.0, bound: 0.0 };
        let mean = Energies { bond: Some(bare), activation: Some(8.77), mean: true, ..all };
        near(mean.cost(g, &[], Some([1, 2])), 8.77 - (stretched + bent) / 3.0);
        // joining
        let w = world(1.02, 177.0, 180.0, false);
        let g = Geometry { world: &w, now: now() };
        near(pair.cost(g, &[[1, 2]], None), stretched + bent - 6.0 - wca);
        let barrier = Energies { activation: Some(2.77), pair: Some(PairEnergy::wca(1.0, 1.0)), ..law() };
        near(barrier.cost(g, &[[1, 2]], None), 2.77 - wca);
        near(Energies { activation: Some(2.77), ..law() }.cost(g, &[[1, 2]], None), 2.77);
    }

    #[test]
    fn the_smallest_angle_decides() {
        let least = Acceptance { min_angle: Some(120f64.to_radians()), energies: None };
        for (one, two, expected) in
            [(180.0, 180.0, true), (121.0, 121.0, true), (119.0, 180.0, false), (180.0, 119.0, false)]
        {
            let w = world(1.0, one, two, false);
            let g = Geometry { world: &w, now: now() };
            assert_eq!(least.accepts(g, &[[1, 2]], None, 0), expected, "{one} {two}");
        }
    }
}
