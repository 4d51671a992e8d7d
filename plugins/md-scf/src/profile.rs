//! Density profiles along an axis, as CSV.

use galamost_measure::{Cell, Table};
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::Axis;
use galamost_plugin_api::prelude::*;
use std::f64::consts::TAU;

/// Writes the number density of each type along an axis, as CSV, every `every` steps or as the mean of `samples` samples.
///
/// The box is cut into `bins` slabs of equal width; a row has `step` (of the last sample), the slab's middle as a
/// `position` from −L/2 to L/2, and for each type its number density there, n/(slab volume). With `center` positions are
/// counted, in each sample, from the middle of the particles of these types, which is found on the circle that the
/// periodic axis is (the angle of Σ exp(2πi x/L)): so the profile of a bilayer stays where it is while the bilayer drifts.
/// Where the name of the file ends in `.parquet`, the table is a folder of Parquet files.
///
/// Reference: none; the definition of a density.
///
/// ```ron
/// DensityProfile(every: 10, file: "profile.csv", axis: Z, bins: 20, samples: 2, center: ["A"])
/// ```
#[component(Analyzer, "DensityProfile")]
#[derive(Debug, Params)]
pub struct DensityProfile {
    /// Steps from one sample to the next.
    #[param(at_least = 1)]
    every: u64,
    /// File to write.
    file: String,
    /// The axis.
    axis: Spanned<Axis>,
    /// Number of slabs.
    #[param(at_least = 1, at_most = 1000000)]
    bins: u32,
    /// Samples in a profile.
    #[param(default = 1, at_least = 1)]
    samples: u64,
    /// Types whose middle is position 0.
    center: Option<Vec<Spanned<String>>>,
    #[param(skip)]
    types: Vec<String>,
    /// Numbers of the types in the middle.
    #[param(skip)]
    middle: Vec<u32>,
    #[param(skip)]
    rows: Table,
    #[param(skip)]
    sum: Sum,
}

/// Samples so far.
#[derive(Debug, Default)]
struct Sum {
    samples: f64,
    length: f64,
    /// Densities, slab by slab, each with all types.
    densities: Vec<f64>,
}

impl DensityProfile {
    fn sample(&mut self, frame: &Frame<'_>) {
        let (axis, types, bins) = (self.axis.value as usize, self.types.len(), self.bins as usize);
        let length = frame.box_length()[axis];
        let volume: f64 = frame.box_length().iter().take(frame.dimensions() as usize).product();
        let particles = || frame.position().iter().map(|p| p[axis]).zip(frame.type_id());
        let mut zero = 0.0;
        if !self.middle.is_empty() {
            let inside = particles().filter(|(_, kind)| self.middle.contains(kind));
            let (c, s) =
                inside.map(|(x, _)| (TAU * x / length).sin_cos()).fold((0.0, 0.0), |(c, s), (y, x)| (c + x, s + y));
            zero = length * f64::atan2(s, c) / TAU;
        }
        self.sum.densities.resize(types * bins, 0.0);
        let weight = bins as f64 / volume;
        for (x, kind) in particles() {
            let share = (x - zero) / length + 0.5;
            let bin = (((share - share.floor()) * bins as f64) as usize).min(bins - 1);
            self.sum.densities[bin * types + *kind as usize] += weight;
        }
        self.sum.samples += 1.0;
        self.sum.length += length;
    }
}

impl Analyzer for DensityProfile {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        let mut errors = Errors::default();
        if self.axis.value as u32 >= system.dimensions {
            errors.push(InputError::at(self.axis.at, "the system has no such axis"));
        }
        for name in self.center.iter().flatten() {
            match system.types.iter().position(|t| *t == name.value) {
                Some(i) => self.middle.push(i as u32),
                None => errors.push(InputError::at(
                    name.at,
                    format!(
                        "there is no particle type \"{}\"; the particle types are {}",
                        name.value,
                        system.types.join(", ")
                    ),
                )),
            }
        }
        if self.center.as_ref().is_some_and(Vec::is_empty) {
            errors.push(InputError::at(self.axis.at, "`center` is empty: name types, or leave it out"));
        }
        errors.into_result(Some(()))?;
        needs.period = self.every;
        needs.wants.particles = true;
        self.types = system.types.clone();
        self.rows.bind(system, &self.file);
        Ok(())
    }

    fn start(&mut self, _: Host) -> Result<()> {
        self.rows.start()
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        self.sample(frame);
        if self.sum.samples < self.samples as f64 {
            return Ok(());
        }
        let mut names = vec!["step", "position"];
        names.extend(self.types.iter().map(String::as_str));
        let sum = std::mem::take(&mut self.sum);
        let length = sum.length / sum.samples;
        let row = |(bin, densities): (usize, &[f64])| {
            let position = ((bin as f64 + 0.5) / f64::from(self.bins) - 0.5) * length;
            let mut row: Vec<Cell> = vec![frame.step().into(), position.into()];
            row.extend(densities.iter().map(|density| Cell::from(density / sum.samples)));
            row
        };
        let rows: Vec<_> = sum.densities.chunks_exact(self.types.len()).enumerate().map(row).collect();
        self.rows.append(&names, &rows)
    }

    fn finish(&mut self) -> Result<()> {
        self.rows.finish()
    }

    /// The file's length, and the samples of a profile that is not whole yet.
    fn save(&mut self) -> Result<Vec<u8>> {
        let mut out = self.rows.save()?;
        let numbers = [self.sum.samples, self.sum.length].into_iter().chain(self.sum.densities.iter().copied());
        out.extend(numbers.flat_map(f64::to_le_bytes));
        Ok(out)
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let numbers = self.rows.load(state)?;
        let numbers: Vec<f64> = numbers.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        let [samples, length, densities @ ..] = numbers.as_slice() else {
            return Err(Error::Run("the state does not fit".into()));
        };
        self.sum = Sum { samples: *samples, length: *length, densities: densities.to_vec() };
        Ok(())
    }
}
