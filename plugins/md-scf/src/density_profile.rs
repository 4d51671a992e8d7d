//! Density profiles along an axis.

use galamost_measure::{Cell, Table};
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::memory;
use galamost_plugin_api::params::Axis;
use galamost_plugin_api::prelude::*;
use std::f64::consts::TAU;

/// Writes profiles of the number density of each type along an axis, as CSV.
///
/// The box is divided into `bins` slabs of equal width. The analyzer takes a sample every `every` steps and appends the
/// mean of each `samples` samples to the file, one row per slab: `step` (of the last sample), `position` (the center of
/// the slab, from −L/2 to L/2), and for each type its number density n/(slab volume). At the end of a run, the mean of the
/// remaining samples is appended, even if they are fewer than `samples`; a resumed run removes these rows and completes the
/// profile. `Profile` also provides masses, velocities, temperatures and radial bins, averaged over the whole run.
///
/// With `center`, positions are relative to the center of the particles of these types in each sample. The center is the
/// circular mean along the periodic axis (the angle of Σ exp(2πi x/L)). Use it to keep the profile of a drifting bilayer
/// in place. A sample without any particle of these types is an error. If the file name ends in `.parquet`, the table is written as a folder of Parquet files.
///
/// Reference: none; the definition of a density.
///
/// ```ron
/// DensityProfile(every: 10, file: "profile.csv", axis: Z, bins: 20, samples: 2, center: ["A"])
/// ```
#[component(Analyzer, "DensityProfile")]
#[derive(Debug, Params)]
pub struct DensityProfile {
    /// Number of steps between samples.
    #[param(at_least = 1)]
    every: u64,
    /// Output file.
    file: String,
    /// Axis of the profile.
    axis: Spanned<Axis>,
    /// Number of slabs.
    #[param(at_least = 1, at_most = 1000000)]
    bins: u32,
    /// Number of samples per profile.
    #[param(default = 1, at_least = 1)]
    samples: u64,
    /// Types whose center is position 0.
    center: Option<Vec<Spanned<String>>>,
    #[param(skip)]
    types: Vec<String>,
    /// Type ids of `center`.
    #[param(skip)]
    center_types: Vec<u32>,
    #[param(skip)]
    rows: Table,
    #[param(skip)]
    sum: Sum,
    /// Saved state of the table before the incomplete profile at the end of the run.
    #[param(skip)]
    complete: Option<Vec<u8>>,
}

/// Sums over the samples of the current profile.
#[derive(Debug, Default)]
struct Sum {
    samples: f64,
    /// Step of the last sample.
    step: u64,
    /// Sum of the box lengths along the axis.
    length: f64,
    /// Sum of the densities, slab by slab, each with all types.
    densities: Vec<f64>,
}

impl DensityProfile {
    /// Adds a sample to the sums.
    fn sample(&mut self, frame: &Frame<'_>) {
        let (axis, types, bins) = (self.axis.value as usize, self.types.len(), self.bins as usize);
        let length = frame.box_length()[axis];
        let volume: f64 = frame.box_length().iter().take(frame.dimensions() as usize).product();
        let particles = || frame.position().iter().map(|p| p[axis]).zip(frame.type_id());
        let mut zero = 0.0;
        if !self.center_types.is_empty() {
            let selected = particles().filter(|(_, particle_type)| self.center_types.contains(particle_type));
            let (c, s) =
                selected.map(|(x, _)| (TAU * x / length).sin_cos()).fold((0.0, 0.0), |(c, s), (y, x)| (c + x, s + y));
            zero = length * f64::atan2(s, c) / TAU;
        }
        self.sum.densities.resize(types * bins, 0.0);
        let weight = bins as f64 / volume;
        for (x, particle_type) in particles() {
            let fraction = (x - zero) / length + 0.5;
            let bin = (((fraction - fraction.floor()) * bins as f64) as usize).min(bins - 1);
            self.sum.densities[bin * types + *particle_type as usize] += weight;
        }
        self.sum.samples += 1.0;
        self.sum.step = frame.step();
        self.sum.length += length;
    }

    /// Appends the mean of the samples to the file.
    fn append(&mut self) -> Result<()> {
        let mut names = vec!["step", "position"];
        names.extend(self.types.iter().map(String::as_str));
        let sum = &self.sum;
        let length = sum.length / sum.samples;
        let row = |(bin, densities): (usize, &[f64])| {
            let position = ((bin as f64 + 0.5) / f64::from(self.bins) - 0.5) * length;
            let mut row: Vec<Cell> = vec![sum.step.into(), position.into()];
            row.extend(densities.iter().map(|density| Cell::from(density / sum.samples)));
            row
        };
        let rows: Vec<_> = sum.densities.chunks_exact(self.types.len()).enumerate().map(row).collect();
        self.rows.append(&names, &rows)
    }
}

impl Analyzer for DensityProfile {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        let mut errors = Errors::default();
        if self.axis.value as u32 >= system.dimensions {
            errors.push(InputError::at(self.axis.at, "a two-dimensional system has no z axis"));
        }
        for name in self.center.iter().flatten() {
            match system.types.iter().position(|t| *t == name.value) {
                Some(i) => self.center_types.push(i as u32),
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
            errors.push(InputError::at(self.axis.at, "`center` is empty; name at least one type or omit `center`"));
        }
        let types = system.types.len();
        // the sums, and the rows of the table
        let bytes = f64::from(self.bins) * (8 * types + (types + 2) * size_of::<Cell>()) as f64;
        if let Err(message) = memory::require(format_args!("{} bins for {types} types", self.bins), bytes) {
            errors.push(InputError::at(self.axis.at, message));
        }
        errors.into_result(Some(()))?;
        needs.period = self.every;
        needs.wants.particles = true;
        self.types = system.types.clone();
        self.rows.bind(system, needs, &self.file);
        Ok(())
    }

    fn start(&mut self, _: Host) -> Result<()> {
        self.complete = None;
        self.rows.start()
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let centered = !self.center_types.is_empty();
        if centered && !frame.type_id().iter().any(|t| self.center_types.contains(t)) {
            let message = "no particle has a type in `center`, so the profile has no center; list types with particles";
            return Err(Error::Run(message.into()));
        }
        self.sample(frame);
        if self.sum.samples < self.samples as f64 {
            return Ok(());
        }
        self.append()?;
        self.sum = Sum::default();
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if self.sum.samples > 0.0 {
            // a resumed run truncates the table to this length and continues the sums
            self.complete = Some(self.rows.save()?);
            self.append()?;
        }
        self.rows.finish()
    }

    /// Returns the length of the file and the sums of the current, incomplete profile.
    fn save(&mut self) -> Result<Vec<u8>> {
        let mut out = match &self.complete {
            Some(length) => length.clone(),
            None => self.rows.save()?,
        };
        let head = [self.sum.samples, self.sum.step as f64, self.sum.length];
        out.extend(head.into_iter().chain(self.sum.densities.iter().copied()).flat_map(f64::to_le_bytes));
        Ok(out)
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let numbers = self.rows.load(state)?;
        let numbers: Vec<f64> = numbers.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        let wrong = || Error::Run("DensityProfile: the checkpoint has a state of the wrong size".into());
        let [samples, step, length, densities @ ..] = numbers.as_slice() else { return Err(wrong()) };
        if ![0, self.types.len() * self.bins as usize].contains(&densities.len()) {
            return Err(wrong());
        }
        self.sum = Sum { samples: *samples, step: *step as u64, length: *length, densities: densities.to_vec() };
        Ok(())
    }
}
