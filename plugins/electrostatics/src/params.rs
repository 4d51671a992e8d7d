//! Parameters that `Ewald` and `Pppm` share, and the model that follows from them.

use crate::charges::{Charges, Distribution};
use crate::short_range::ShortRange;
use crate::split::{Split, SplitTerms};
use galamost_plugin_api::component::ArrayNeed;
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use std::f64::consts::PI;

/// Parameters of `Ewald` and `Pppm`.
#[derive(Clone, Debug, Params)]
pub struct Common {
    /// Root-mean-square error of the forces on charged particles, in units of C⟨q²⟩/d²: the force between two typical
    /// charges at the mean distance d = (V/N)^⅓ of charged particles.
    #[param(at_least = 1e-12, below = 0.5)]
    accuracy: f64,
    /// l_B, Bjerrum length: two unit charges at this distance have the energy kT. C = l_B kT.
    #[param(unit = "length", above = 0.0)]
    l_bjerrum: Option<Spanned<f64>>,
    /// Temperature kT at which `l_bjerrum` is given; 1 if omitted.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: Option<Spanned<f64>>,
    /// Relative permittivity ε_r. C = f/ε_r.
    #[param(above = 0.0)]
    epsilon_r: Option<Spanned<f64>>,
    /// Coulomb constant f = 1/4πε₀ in vacuum; 1 if omitted.
    #[param(unit = "energy length/charge²", above = 0.0)]
    f: Option<Spanned<f64>>,
    /// Cutoff of the short-range part; by a cost model if omitted.
    #[param(unit = "length", above = 0.0)]
    r_cut: Option<Spanned<f64>>,
    /// α of the split, whose shape is c = 2 (α `r_cut`)²: near its center it is the Gaussian of Ewald with this α; from `accuracy`
    /// and `r_cut` if omitted.
    #[param(unit = "1/length", above = 0.0)]
    alpha: Option<f64>,
    /// Distribution of each charge: `Point`, `Gaussian(width)` or `Slater(lambda)` for all types, or one for each type,
    /// `{ "A": Slater(0.25), "B": Point }`. `"*"` stands for every type.
    #[param(default = Charges::Point)]
    charges: Charges,
    /// Normal of a slab: the correction of Yeh and Berkowitz removes the interaction with the periodic images along this
    /// axis. Leave at least twice the thickness of the slab empty. It may be anywhere along the axis, also across a face of the box.
    slab: Option<Spanned<Axis>>,
}

/// Charges of a system and the parameters of the split.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// C.
    pub coulomb: f64,
    /// α; set by the plan of the component.
    pub alpha: f64,
    /// The split, from α and `r_cut`, and its polynomials.
    pub split: Split,
    pub terms: SplitTerms<f64>,
    /// Cutoff of the short-range part; set by the plan of the component.
    pub r_cut: f64,
    /// Asked accuracy.
    pub accuracy: f64,
    /// Distribution of the charges of each type.
    pub charges: Vec<Distribution>,
    /// Whether particles of a type have charges, and its name.
    pub types: Vec<(bool, String)>,
    /// Axis of the slab correction.
    pub slab: Option<usize>,
    /// The plane at which coordinates along that axis begin and end, as a fraction of the box length from the lower face: the middle of
    /// the gap at the start of the run, which a resumed run finds again.
    pub slab_face: f64,
    /// Largest distance of a charge from the opposite plane, as a fraction of the box length; a charge beyond it is a fault.
    pub slab_limit: f64,
    /// Number of charged particles and Σq² at the start.
    pub charged: f64,
    pub squares: f64,
    /// The largest root mean square charge of a type.
    pub largest: f64,
    /// Number of particles.
    pub n: usize,
    /// Box lengths at the start, for which the parameters are chosen.
    pub box_length: [f64; 3],
    /// Box lengths for which the error is estimated: those at the start, or later ones.
    pub present_box: [f64; 3],
    pub cuda: bool,
    pub precision: Precision,
}

impl Common {
    /// Returns the Coulomb constant.
    fn coulomb(&self, errors: &mut Errors) -> f64 {
        if let (Some(_), Some(e)) = (&self.l_bjerrum, self.epsilon_r.as_ref().or(self.f.as_ref())) {
            errors.push(InputError::at(e.at, "give either `l_bjerrum` with `kT`, or `epsilon_r` with `f`"));
        }
        if let (None, Some(kt)) = (&self.l_bjerrum, &self.kt) {
            errors.push(InputError::at(kt.at, "`kT` is the temperature of `l_bjerrum`, which is not given"));
        }
        let or_one = |x: &Option<Spanned<f64>>| x.as_ref().map_or(1.0, |x| x.value);
        match &self.l_bjerrum {
            Some(l) => l.value * or_one(&self.kt),
            None => or_one(&self.f) / or_one(&self.epsilon_r),
        }
    }

    /// Checks the parameters and the system, and returns the model without a plan. `name` is that of the component.
    ///
    /// # Errors
    /// Returns all mismatches.
    pub fn model(&self, name: &str, system: &SystemInfo, needs: &mut Needs) -> Result<Model> {
        if system.dimensions != 3 {
            return Err(Error::input(format!(
                "{name} requires a three-dimensional system; this one is two-dimensional"
            )));
        }
        let mut errors = Errors::default();
        let coulomb = self.coulomb(&mut errors);
        let sum = |k: usize| system.charges.iter().map(|c| c[k]).sum::<f64>();
        let [charged, net, squares] = [0, 1, 2].map(sum);
        if !system.has_array("charge") {
            errors.push(InputError::new("particles have no `charge`; the initial state must set it"));
        } else if !(squares > 0.0 && squares.is_finite()) {
            errors.push(InputError::new("all charges are 0 or one is not finite; remove the component or set charges"));
        }
        let neutral = remaining(net, squares, charged) == 0.0;
        if let (Some(slab), false) = (&self.slab, neutral) {
            let text = format!("the slab correction needs a neutral system; the net charge is {net}");
            errors.push(InputError::at(slab.at, text));
        } else if !neutral {
            needs
                .warnings
                .push(format!("the net charge is {net}: a homogeneous background of charge {} neutralizes it", -net));
        }
        let (slab_face, slab_limit) = self.check_slab(system, needs);
        self.check_precision(system, needs);
        needs.box_warnings = true;
        if let Some(r) = &self.r_cut {
            errors.0.extend(system.beyond_half_box("r_cut", r.value).map(|text| InputError::at(r.at, text)));
        }
        let charges = self.charges.bind(&system.types, &mut errors);
        errors.into_result(Some(()))?;
        needs.arrays.push(ArrayNeed { name: "charge".into(), width: 1, integer: false, required: true });
        needs.plain_images = true;
        needs.quantities = vec!["long_range".into()];
        needs.faults = vec![NET_CHARGE.into(), IN_GAP.into()];
        Ok(Model {
            coulomb,
            alpha: 0.0,
            split: Split::default(),
            terms: SplitTerms::default(),
            r_cut: self.r_cut.as_ref().map_or(0.0, |r| r.value),
            accuracy: self.accuracy,
            charges,
            types: system.types.iter().zip(&system.charges).map(|(name, c)| (c[0] > 0.0, name.clone())).collect(),
            slab: self.slab.as_ref().map(|s| s.value as usize),
            slab_face,
            slab_limit,
            charged,
            squares,
            largest: system.charges.iter().map(|[n, _, squares]| (squares / n.max(1.0)).sqrt()).fold(0.0, f64::max),
            n: system.n as usize,
            box_length: system.box_length,
            present_box: system.present_box.unwrap_or(system.box_length),
            cuda: system.device == "cuda",
            precision: system.precision(),
        })
    }

    /// Warns if charges fill the box along the normal of the slab: the correction is exact only in the limit of a wide gap. Returns
    /// `slab_face` and `slab_limit` of the model.
    fn check_slab(&self, system: &SystemInfo, needs: &mut Needs) -> (f64, f64) {
        let Some(slab) = &self.slab else { return (0.0, NO_LIMIT) };
        let axis = slab.value as usize;
        let (gap, length) = (system.uncharged[axis], system.box_length[axis]);
        if gap < 0.5 * length {
            needs.warnings.push(format!(
                "`slab: {:?}` needs a gap without charges along this axis; the longest one is {gap:.4} of the box length {length}. \
                 Leave two thirds of the box empty",
                slab.value
            ));
        }
        // below a quarter there is no slab: M depends on the plane, which stays at the face, and charges cross any plane
        if gap < 0.25 * length { (0.0, NO_LIMIT) } else { (system.uncharged_middle[axis], SLAB_LIMIT) }
    }

    /// Warns if the precision of the run does not reach the accuracy.
    fn check_precision(&self, system: &SystemInfo, needs: &mut Needs) {
        let precision = system.precision();
        if precision != Precision::Double && self.accuracy < LEAST_SINGLE {
            needs.warnings.push(format!(
                "{} precision does not reach the accuracy {:e}: pairs and charges are rounded to 24 bits, which gives \
                 errors of about {ROUNDING:e}; use `precision: Double`, or an `accuracy` of at least {LEAST_SINGLE:e}",
                precision.name(),
                self.accuracy
            ));
        }
    }

    /// Returns the cutoffs to compare: the given one, or a series up to half the box.
    pub fn cutoffs(&self, system: &SystemInfo) -> Vec<f64> {
        match &self.r_cut {
            Some(r) => vec![r.value],
            None => {
                let mean = (system.box_length.iter().product::<f64>() / system.n.max(1) as f64).cbrt();
                // the error estimate needs some neighbors at random: with fewer, the shells of a crystal exceed it
                let series: Vec<f64> = (14..=80).map(|k| rounded(0.125 * f64::from(k) * mean)).collect();
                let half = system.half_box();
                let mut inside: Vec<f64> = series.into_iter().filter(|r| *r < half).collect();
                if inside.len() < 67 {
                    inside.push(half);
                }
                inside
            }
        }
    }

    /// Returns whether the cutoff is given.
    pub fn has_cutoff(&self) -> bool {
        self.r_cut.is_some()
    }

    /// Returns α for a cutoff: the given one, or that of [`Split::shape_for`] with half of the squared error.
    pub fn alpha(&self, model: &Model, r_cut: f64) -> f64 {
        self.alpha.unwrap_or_else(|| {
            let limit = model.accuracy / std::f64::consts::SQRT_2;
            // in steps, so that similar cutoffs have the same shape
            let shape = (4.0 * Split::shape_for(limit, r_cut, model.mean_distance())).ceil() / 4.0;
            to_digits((0.5 * shape).sqrt() / r_cut, 4)
        })
    }

    /// Returns an error if the charges of two types are wider than the cutoff.
    pub fn check_width(&self, model: &Model) -> Result<()> {
        let n = model.types.len();
        let charged = |k: &usize| model.types[*k].0;
        let pairs = (0..n).filter(charged).flat_map(|i| (i..n).filter(charged).map(move |j| (i, j)));
        let missing = |(i, j): (usize, usize)| model.charges[i].missing(model.charges[j], model.r_cut);
        let widest = pairs.map(|pair| (missing(pair), pair)).max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((missing, (i, j))) = widest.filter(|w| w.0 > model.accuracy.max(1e-12)) else { return Ok(()) };
        let mut widths = format!("{:?}", model.charges[i]);
        if model.charges[i] != model.charges[j] {
            let [a, b] = [i, j].map(|k| &model.types[k].1);
            widths = format!("{widths} of type {a} and {:?} of type {b}", model.charges[j]);
        }
        let text = format!(
            "r_cut = {:.4} is too short for {widths}: at this distance the interaction of the charges differs from that of \
             points by {missing:.1e} of it, more than the accuracy {}",
            model.r_cut, model.accuracy
        );
        Err(match &self.r_cut {
            Some(r) => Error::Input(vec![InputError::at(r.at, text)]),
            None => Error::input(text),
        })
    }

    /// Returns what to set if the box changes during the run; `None` if everything is given. `rest` are further fields.
    pub fn fixed_box(&self, model: &Model, all_given: bool, rest: &str) -> Option<String> {
        let given = self.alpha.is_some() && self.r_cut.is_some() && all_given;
        (!given).then(|| format!("set them: `r_cut: {:?}, alpha: {:?}{rest}`", model.r_cut, model.alpha))
    }
}

/// Error of forces in single precision, in units of the accuracy: about 80 roundings of 2⁻²⁴. Those of the pairs with all their neighbors
/// and of the waves add up, and neighbors at less than the mean distance have forces of several units. For 100 charges at random, 4.9e-6 was
/// measured with `Pppm` and 6.1e-6 with `Ewald`, where Double has the error asked for.
const ROUNDING: f64 = 5e-6;
/// The smallest accuracy of Single and Mixed: roundings, which are independent of the other errors, increase those by an eighth.
const LEAST_SINGLE: f64 = 2.0 * ROUNDING;
/// A charge in the middle fiftieth of the box length of the gap is a fault. No charge moves that far in one step, so none crosses the middle
/// unnoticed.
const SLAB_LIMIT: f64 = 0.49;
/// No charge is farther than half the box length from the opposite plane.
const NO_LIMIT: f64 = 1.0;

/// Message of the fault of a charge in the gap.
pub const IN_GAP: &str = "a charged particle is in the middle of the longest gap that the initial state has along the \
                          normal of the slab, where its side of the slab is not defined; keep charges in the slab, for \
                          example with walls, or start another run from a state of the present slab";
/// Message of the fault of a slab that is no longer neutral.
pub const NET_CHARGE: &str = "the slab correction needs a neutral system, but an updater has changed the net charge";

/// Returns the net charge of particles with these sums of q and q²; 0 if it may be an error of rounding.
pub fn remaining(net: f64, squares: f64, charged: f64) -> f64 {
    if net.abs() <= 1e-6 * (squares * charged).sqrt() { 0.0 } else { net }
}

/// Rounds to three digits, so that equal systems with slightly different boxes get equal parameters.
pub fn rounded(x: f64) -> f64 {
    to_digits(x, 3)
}

/// Rounds up to three digits.
pub fn rounded_up(x: f64) -> f64 {
    let digits = 10f64.powi(2 - x.abs().log10().floor() as i32);
    (x * digits).ceil() / digits
}

fn to_digits(x: f64, n: i32) -> f64 {
    let digits = 10f64.powi(n - 1 - x.abs().log10().floor() as i32);
    (x * digits).round() / digits
}

impl Model {
    /// Returns the mean distance of charged particles at the start.
    pub fn mean_distance(&self) -> f64 {
        (self.box_length.iter().product::<f64>() / self.charged).cbrt()
    }

    /// Returns the model with the present box as that of the start, for estimates of the error.
    pub fn in_present_box(&self) -> Self {
        Self { box_length: self.present_box, ..self.clone() }
    }

    /// Returns the warning about an estimated error above the accuracy. `what` has it, and `remedy` is what to change.
    pub fn inaccurate(&self, what: &str, error: f64, remedy: &str) -> Option<String> {
        let moved = if self.present_box == self.box_length {
            String::new()
        } else {
            let [x, y, z] = self.present_box.map(rounded);
            format!(" in the present box of {x} × {y} × {z}")
        };
        (error > 1.5 * self.accuracy).then(|| {
            let accuracy = self.accuracy;
            format!(
                "the estimated error of {what}{moved} is {error:.1e}, more than the accuracy {accuracy}; use {remedy}"
            )
        })
    }

    /// Returns the unit of `accuracy` in units of C Σq²/√N: errors of the mesh and of sums have this factor.
    pub fn error_unit(&self) -> f64 {
        1.0 / (self.charged.sqrt() * self.mean_distance().powi(2))
    }

    /// Sets α, and the split for the present cutoff.
    pub fn set_alpha(&mut self, alpha: f64) {
        (self.alpha, self.split) = (alpha, Split::new(alpha, self.r_cut));
        // a thousandth of the accuracy is lost
        self.terms = self.split.terms(1e-3 * self.accuracy);
    }

    /// Returns the row of the pair function for two types.
    pub fn row(&self, i: usize, j: usize) -> ShortRange<f64> {
        self.charges[i].row(self.charges[j], self.coulomb, &self.terms)
    }

    /// Returns the self-energy of a unit charge in the Fourier part, half its interaction with its own smooth charge.
    pub fn self_energy(&self) -> f64 {
        0.5 * self.coulomb * self.split.at_center()
    }

    /// Returns the energy of a unit charge of each type in the background of a net charge of 1, times −V: ½ C ∫ [1 − E − s]/r d³r,
    /// where s is that of two charges of this type. ∫ (1 − E)/r d³r is −4π dχ/d(k²) at k = 0. The sum over all charges is exact
    /// for mixtures, because these integrals are sums of one number for each charge.
    pub fn background(&self) -> Vec<f64> {
        let points = 4.0 * PI * self.split.transform(0.0).1;
        let of = |d: &Distribution| 0.5 * self.coulomb * (points - 2.0 * d.spread());
        self.charges.iter().map(of).collect()
    }

    /// Returns the coordinate along the normal of the slab for the slab correction: the distance from the plane opposite of the middle of
    /// the gap. `along` of correction.cuh does the same.
    pub fn slab_coordinate(&self, position: f64, length: f64) -> f64 {
        let fraction = position / length + 0.5 - self.slab_face;
        length * (fraction - fraction.floor() - 0.5)
    }

    /// Returns C in 2πC M²/V of the slab correction; 0 without it.
    pub fn slab_constant(&self) -> f64 {
        if self.slab.is_some() { 2.0 * PI * self.coulomb } else { 0.0 }
    }
}

impl Model {
    /// Returns the bits of the largest charge as an integer on a grid: at most 50, and so many that the sum of all charges on one
    /// point does not overflow.
    pub fn charge_bits(&self) -> u32 {
        50.min(61 - (self.n.max(1) as f64).log2().ceil() as u32)
    }

    /// Returns the integer of a charge of 1 on a grid, a power of 2. `largest` is the largest charge at present, which updaters
    /// may change.
    pub fn charge_unit(&self, largest: f64) -> f64 {
        2f64.powi(self.charge_bits() as i32 - largest.max(2f64.powi(-100)).log2().ceil() as i32)
    }
}
