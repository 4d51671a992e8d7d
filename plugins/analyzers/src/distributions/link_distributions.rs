//! Distributions of bond lengths, angles, and dihedral angles.

use crate::distributions::links::{Bins, Sort};
use galamost_measure::replace;
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

/// State shared by the three components.
#[derive(Default)]
struct Counter {
    path: PathBuf,
    names: Vec<String>,
    bins: Bins,
    counts: Vec<u64>,
    /// Number of links of each type counted so far.
    links: Vec<u64>,
}

impl Counter {
    fn bind(
        sort: Sort,
        file: &str,
        bins: Bins,
        [every, start]: [u64; 2],
        system: &SystemInfo,
        needs: &mut Needs,
    ) -> Result<Self> {
        let names = sort.types(system).to_vec();
        if names.is_empty() {
            return Err(Error::input(format!("the system has no {} types", sort.name())));
        }
        needs.sample(every, start);
        needs.wants.particles = true;
        needs.wants.topology = true;
        let (counts, links) = (vec![0; names.len() * bins.n], vec![0; names.len()]);
        let path = needs.output(system, file, OutputKind::Result);
        Ok(Self { path, names, bins, counts, links })
    }

    fn analyze(&mut self, sort: Sort, frame: &Frame<'_>) -> Result<()> {
        let Self { bins, counts, links, .. } = self;
        sort.each(frame, |link_type, x| {
            links[link_type] += 1;
            if let Some(k) = bins.index(x) {
                counts[link_type * bins.n + k] += 1;
            }
        });
        let head = std::iter::once(sort.variable().to_string()).chain(self.names.iter().cloned());
        let mut rows = vec![head.collect::<Vec<_>>()];
        for k in 0..self.bins.n {
            let mut row = vec![format!("{:?}", self.bins.middle(k))];
            for (link_type, links) in self.links.iter().enumerate() {
                let expected = *links as f64 * self.bins.width;
                // NaN for a type without links
                row.push(format!("{:?}", self.counts[link_type * self.bins.n + k] as f64 / expected));
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
            return Err(Error::Run("the checkpoint belongs to another analyzer".into()));
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
                self.counter = Counter::bind($sort, &self.file, self.bins()?, [self.every, self.start], system, needs)?;
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

/// Measures the distribution P(r) of bond lengths for each bond type.
///
/// P(r) is the fraction of bonds in a bin divided by the bin width, so ∫ P dr = 1 if all bonds are in [min, max]; bonds
/// outside reduce the integral. `file` is a CSV table that is replaced after each sample: `r` (center of the bin,
/// length), then a column for each type (1/length). Averages include all samples so far. P is NaN for a type without bonds so far.
///
/// ```ron
/// BondDistribution(every: 100, file: "bonds.csv", min: 0.5, max: 1.5, bins: 100)
/// ```
#[component(Analyzer, "BondDistribution")]
#[derive(Params)]
pub struct BondDistribution {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// First step to sample; samples are at multiples of `every`.
    #[param(default = 0)]
    start: u64,
    /// Output file.
    file: String,
    /// Lower limit of the first bin.
    #[param(default = 0.0, unit = "length", at_least = 0.0)]
    min: f64,
    /// Upper limit of the last bin.
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
            let message = format!("`max` {} must exceed `min` {}", self.max.value, self.min);
            return Err(InputError::at(self.max.at, message).into());
        }
        Ok(Bins::new(self.min, self.max.value, self.bins))
    }
}

analyzer!(BondDistribution, Sort::Bond);

/// Measures the distribution P(θ) of bond angles for each angle type.
///
/// P(θ) is the fraction of angles in a bin divided by the bin width, ∫ P dθ = 1. It includes the factor sin θ of the
/// solid angle. Bins cover 0 … 180°. `file` is a CSV table that is replaced after each sample: `theta_deg` (center of
/// the bin, degrees), then a column for each type (1/degree). Averages include all samples so far. P is NaN for a type without angles so
/// far.
///
/// ```ron
/// AngleDistribution(every: 100, file: "angles.csv", bins: 90)
/// ```
#[component(Analyzer, "AngleDistribution")]
#[derive(Params)]
pub struct AngleDistribution {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// First step to sample; samples are at multiples of `every`.
    #[param(default = 0)]
    start: u64,
    /// Output file.
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

/// Measures the distribution P(φ) of dihedral angles for each dihedral type.
///
/// P(φ) is the fraction of dihedrals in a bin divided by the bin width, ∫ P dφ = 1. Bins cover −180° … 180°; cis is 0.
/// `file` is a CSV table that is replaced after each sample: `phi_deg` (center of the bin, degrees), then a column for
/// each type (1/degree). Averages include all samples so far. P is NaN for a type without dihedrals so far. A dihedral with three
/// particles on a line has no angle and counts as 0.
///
/// ```ron
/// DihedralDistribution(every: 100, file: "dihedrals.csv", bins: 120)
/// ```
#[component(Analyzer, "DihedralDistribution")]
#[derive(Params)]
pub struct DihedralDistribution {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// First step to sample; samples are at multiples of `every`.
    #[param(default = 0)]
    start: u64,
    /// Output file.
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
