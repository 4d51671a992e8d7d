//! Distributions of bond lengths, angles and dihedrals.

use crate::distributions::links::{Bins, Sort};
use galamost_measure::replace;
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

/// What the three components share.
#[derive(Default)]
struct Counter {
    path: PathBuf,
    names: Vec<String>,
    bins: Bins,
    counts: Vec<u64>,
    /// Links of each type that were looked at.
    links: Vec<u64>,
}

impl Counter {
    fn bind(sort: Sort, file: &str, bins: Bins, every: u64, system: &SystemInfo, needs: &mut Needs) -> Result<Self> {
        let names = sort.types(system).to_vec();
        if names.is_empty() {
            return Err(Error::input(format!("the system has no {} types", sort.name())));
        }
        needs.period = every;
        needs.wants.particles = true;
        needs.wants.topology = true;
        let (counts, links) = (vec![0; names.len() * bins.n], vec![0; names.len()]);
        Ok(Self { path: system.path(file), names, bins, counts, links })
    }

    fn analyze(&mut self, sort: Sort, frame: &Frame<'_>) -> Result<()> {
        let Self { bins, counts, links, .. } = self;
        sort.each(frame, |kind, x| {
            links[kind] += 1;
            if let Some(k) = bins.place(x) {
                counts[kind * bins.n + k] += 1;
            }
        });
        let head = std::iter::once(sort.variable().to_string()).chain(self.names.iter().cloned());
        let mut rows = vec![head.collect::<Vec<_>>()];
        for k in 0..self.bins.n {
            let mut row = vec![format!("{:?}", self.bins.middle(k))];
            for (kind, links) in self.links.iter().enumerate() {
                let expected = *links as f64 * self.bins.width;
                let p = if expected > 0.0 { self.counts[kind * self.bins.n + k] as f64 / expected } else { 0.0 };
                row.push(format!("{p:?}"));
            }
            rows.push(row);
        }
        replace(&self.path, &rows)
    }

    fn save(&self) -> Vec<u8> {
        self.links.iter().chain(&self.counts).flat_map(|c| c.to_le_bytes()).collect()
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let all: Vec<u64> = state.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
        if all.len() != self.links.len() + self.counts.len() {
            return Err(Error::Run("the checkpoint is of another analyzer".into()));
        }
        let (links, counts) = all.split_at(self.links.len());
        self.links.copy_from_slice(links);
        self.counts.copy_from_slice(counts);
        Ok(())
    }
}

macro_rules! analyzer {
    ($name:ident, $sort:expr) => {
        impl Analyzer for $name {
            fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
                self.counter = Counter::bind($sort, &self.file, self.bins()?, self.every, system, needs)?;
                Ok(())
            }
            fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
                if frame.step() < self.start {
                    return Ok(());
                }
                self.counter.analyze($sort, frame)
            }
            fn save(&mut self) -> Result<Vec<u8>> {
                Ok(self.counter.save())
            }
            fn load(&mut self, state: &[u8]) -> Result<()> {
                self.counter.load(state)
            }
        }
    };
}

/// Distributions P(r) of bond lengths, one for each type of bonds, averaged over samples every `every` steps.
///
/// P is the share of the bonds in a bin over its width, so ∫ P dr is 1 if every bond lies in [min, max], and less by the share of
/// those outside. `file` is a CSV table that is replaced after each sample: `r` (middle of the bin, length), then a column for
/// each type (1/length).
///
/// ```ron
/// BondDistribution(every: 100, file: "bonds.csv", min: 0.5, max: 1.5, bins: 100)
/// ```
#[component(Analyzer, "BondDistribution")]
#[derive(Params)]
pub struct BondDistribution {
    /// Steps from one sample to the next.
    #[param(at_least = 1.0)]
    every: u64,
    /// Samples of earlier steps are passed over.
    #[param(default = 0)]
    start: u64,
    /// File to write.
    file: String,
    /// The lower end of the first bin.
    #[param(default = 0.0, unit = "length", at_least = 0.0)]
    min: f64,
    /// The upper end of the last bin.
    #[param(unit = "length", above = 0.0)]
    max: Spanned<f64>,
    /// Number of bins.
    #[param(default = 100, at_least = 1, at_most = 100_000)]
    bins: u32,
    #[param(skip)]
    counter: Counter,
}

impl BondDistribution {
    fn bins(&self) -> Result<Bins> {
        if self.max.value <= self.min {
            let message = format!("max {} is not above min {}", self.max.value, self.min);
            return Err(InputError::at(self.max.at, message).into());
        }
        Ok(Bins::new(self.min, self.max.value, self.bins))
    }
}

analyzer!(BondDistribution, Sort::Bond);

/// Distributions P(θ) of angles, one for each type of angles, averaged over samples every `every` steps.
///
/// P is the share of the angles in a bin over its width, ∫ P dθ = 1; it has the factor sin θ of the angles themselves. Bins cover
/// 0 … 180°. `file` is a CSV table that is replaced after each sample: `theta_deg` (middle of the bin, degrees), then a column for
/// each type (1/degree).
///
/// ```ron
/// AngleDistribution(every: 100, file: "angles.csv", bins: 90)
/// ```
#[component(Analyzer, "AngleDistribution")]
#[derive(Params)]
pub struct AngleDistribution {
    /// Steps from one sample to the next.
    #[param(at_least = 1.0)]
    every: u64,
    /// Samples of earlier steps are passed over.
    #[param(default = 0)]
    start: u64,
    /// File to write.
    file: String,
    /// Number of bins.
    #[param(default = 90, at_least = 1, at_most = 100_000)]
    bins: u32,
    #[param(skip)]
    counter: Counter,
}

impl AngleDistribution {
    fn bins(&self) -> Result<Bins> {
        Ok(Bins::new(0.0, 180.0, self.bins))
    }
}

analyzer!(AngleDistribution, Sort::Angle);

/// Distributions P(φ) of dihedral angles, one for each type of dihedrals, averaged over samples every `every` steps.
///
/// P is the share of the dihedrals in a bin over its width, ∫ P dφ = 1. Bins cover −180° … 180°, 0 for cis. `file` is a CSV table
/// that is replaced after each sample: `phi_deg` (middle of the bin, degrees), then a column for each type (1/degree).
///
/// ```ron
/// DihedralDistribution(every: 100, file: "dihedrals.csv", bins: 120)
/// ```
#[component(Analyzer, "DihedralDistribution")]
#[derive(Params)]
pub struct DihedralDistribution {
    /// Steps from one sample to the next.
    #[param(at_least = 1.0)]
    every: u64,
    /// Samples of earlier steps are passed over.
    #[param(default = 0)]
    start: u64,
    /// File to write.
    file: String,
    /// Number of bins.
    #[param(default = 180, at_least = 1, at_most = 100_000)]
    bins: u32,
    #[param(skip)]
    counter: Counter,
}

impl DihedralDistribution {
    fn bins(&self) -> Result<Bins> {
        Ok(Bins::new(-180.0, 180.0, self.bins))
    }
}

analyzer!(DihedralDistribution, Sort::Dihedral);
