//! Pair distribution of particle axes.

use crate::orientation::chosen::{need_orientations, quaternions, tags};
use crate::orientation::pairs::near;
use crate::selection::particle_type;
use galamost_measure::{bytes, header, numbers, replace};
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

/// Angle that is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Angle {
    /// Between both axes: cos θ = n_i·n_j.
    #[default]
    Axes,
    /// Between the axis of i and the direction to j: cos θ = n_i·e_ij.
    Position,
}

impl FromValue for Angle {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Axes" => Some(Self::Axes),
            "Position" => Some(Self::Position),
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Axes` or `Position`".into()
    }
}

/// Measures the pair distribution g(r, cos θ) of oriented particles.
///
/// θ is the angle between both axes (`angle: Axes`), or between the axis of a particle of the first type and the
/// direction to a particle of the second type (`Position`). g is the number of pairs in a bin divided by the expected
/// number for random positions and orientations, so g → 1 at large distances in a fluid. The mean of g over cos θ is
/// the radial distribution function.
///
/// `file` is a CSV table that is replaced after each sample: `r`, `cos` (centers of the bins), `g`, `pairs` (number of
/// pairs; if both types are equal or not given, each pair counts twice, once from each particle). Bins have equal widths in r and in cos θ. Averages include all samples so far.
/// The system must have three dimensions.
///
/// ```ron
/// PairOrientation(every: 1000, file: "pair-orientation.csv", r_max: 2.0, bins: (40, 20))
/// ```
#[component(Analyzer, "PairOrientation")]
#[derive(Debug, Params)]
pub struct PairOrientation {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// Output file.
    file: String,
    /// Largest distance.
    #[param(unit = "length", above = 0.0)]
    r_max: Spanned<f64>,
    /// Numbers of bins in r and cos θ.
    #[param(default = [100, 20], at_least = 1, at_most = 10_000)]
    bins: [u32; 2],
    /// The two particle types; default: all pairs.
    types: Option<Spanned<[String; 2]>>,
    /// Measured angle: `Axes` or `Position`.
    #[param(default = Angle::Axes)]
    angle: Angle,
    /// For each type, whether it can be the first and the second particle.
    #[param(skip)]
    sides: [Vec<bool>; 2],
    #[param(skip)]
    path: PathBuf,
    /// Σ pairs/V over the samples.
    #[param(skip)]
    density: f64,
    #[param(skip)]
    counts: Vec<f64>,
}

impl Analyzer for PairOrientation {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        need_orientations(system)?;
        if self.r_max.value > system.half_box() {
            let message = format!("`r_max` {} exceeds half of the shortest box length", self.r_max.value);
            return Err(InputError::at(self.r_max.at, message).into());
        }
        self.sides = [0, 1].map(|_| vec![true; system.types.len()]);
        if let Some(types) = &self.types {
            for (side, name) in self.sides.iter_mut().zip(&types.value) {
                particle_type(name, types.at, system)?;
                *side = system.types.iter().map(|t| t == name).collect();
            }
        }
        needs.period = self.every;
        needs.plain_images = true;
        needs.wants.particles = true;
        self.path = needs.output(system, &self.file, OutputKind::Result);
        self.counts = vec![0.0; (self.bins[0] * self.bins[1]) as usize];
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let (length, r_max) = (frame.box_length(), self.r_max.value);
        if length.iter().any(|l| r_max > 0.5 * l) {
            return Err(Error::Run(format!("`r_max` {r_max} exceeds half of a box length")));
        }
        let q = quaternions(frame)?;
        let either: Vec<bool> = self.sides[0].iter().zip(&self.sides[1]).map(|(a, b)| *a || *b).collect();
        let tags = tags(frame, &either);
        let position: Vec<[f64; 3]> = tags.iter().map(|t| frame.position()[*t]).collect();
        let axes: Vec<Vec3<f64>> = tags.iter().map(|t| q[*t].axis()).collect();
        let is = |side: usize, i: usize| self.sides[side][frame.type_id()[tags[i]] as usize];
        let [bins_r, bins_c] = self.bins.map(|b| b as usize);
        let counts = &mut self.counts;
        near(&position, length, r_max, |i, j, d, r2| {
            let r = r2.sqrt();
            let mut put = |cos: f64| {
                let a = ((r / r_max * bins_r as f64) as usize).min(bins_r - 1);
                let b = (((cos + 1.0) * 0.5 * bins_c as f64).max(0.0) as usize).min(bins_c - 1);
                counts[a * bins_c + b] += 1.0;
            };
            // count each pair from both sides
            for (i, j, sign) in [(i, j, 1.0), (j, i, -1.0)] {
                if is(0, i) && is(1, j) {
                    put(match self.angle {
                        Angle::Axes => axes[i].dot(axes[j]),
                        Angle::Position => axes[i].dot(Vec3::from(d)) * sign / r,
                    });
                }
            }
        });
        let count = |side: usize| (0..tags.len()).filter(|i| is(side, *i)).count() as f64;
        let both = (0..tags.len()).filter(|i| is(0, *i) && is(1, *i)).count() as f64;
        self.density += (count(0) * count(1) - both) / length.iter().product::<f64>();
        let mut rows = vec![header(&["r", "cos", "g", "pairs"])];
        let width = r_max / bins_r as f64;
        for a in 0..bins_r {
            let shell = 4.0 / 3.0 * std::f64::consts::PI * width.powi(3) * ((a + 1).pow(3) - a.pow(3)) as f64;
            for b in 0..bins_c {
                let n = self.counts[a * bins_c + b];
                let expected = self.density * shell / bins_c as f64;
                let middle = [(a as f64 + 0.5) * width, (b as f64 + 0.5) * 2.0 / bins_c as f64 - 1.0];
                let g = if expected > 0.0 { n / expected } else { 0.0 };
                rows.push([middle[0], middle[1], g, n].iter().map(|x| format!("{x:?}")).collect());
            }
        }
        replace(&self.path, &rows)
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        Ok([bytes(&[self.density]), bytes(&self.counts)].concat())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let (density, rest) = numbers(state, 1)?;
        let (counts, _) = numbers(rest, self.counts.len())?;
        (self.density, self.counts) = (density[0], counts);
        Ok(())
    }
}
