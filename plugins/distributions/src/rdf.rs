//! Radial distribution functions.

use crate::pairs::{count, shell};
use crate::table::{bytes, numbers, replace};
use crate::which::{Which, numbers_of, pairs_of, type_of};
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

/// Radial distribution functions g(r) of pairs of types, averaged over samples every `every` steps.
///
/// In each bin of width r_max/bins, g is the number of pairs over that of particles placed at random: N_i N_j v/V for two types
/// and ½ N_i (N_i − 1) v/V for one, v the volume of the shell (the area of the ring in two dimensions), so it is right for few
/// particles too. Pairs that `exclude` or `only` leave out are not counted, and the reference stays that of all pairs. `file` is
/// a CSV table that is replaced after each sample: `r` (middle of the bin, length), then a column for each pair, as `A-B`.
///
/// ```ron
/// Rdf(every: 100, file: "rdf.csv", r_max: 2.5, bins: 100)
/// ```
#[component(Analyzer, "Rdf")]
#[derive(Params)]
pub struct Rdf {
    /// Steps from one sample to the next.
    #[param(at_least = 1.0)]
    every: u64,
    /// Samples of earlier steps are passed over.
    #[param(default = 0)]
    start: u64,
    /// File to write.
    file: String,
    /// The longest distance; at most half the shortest box length.
    #[param(unit = "length", above = 0.0)]
    r_max: Spanned<f64>,
    /// Number of bins.
    #[param(default = 100, at_least = 1, at_most = 100_000)]
    bins: u32,
    /// Pairs of types; without it all pairs.
    pairs: Option<Spanned<Vec<[String; 2]>>>,
    #[param(flatten)]
    which: Which,
    #[param(skip)]
    path: PathBuf,
    #[param(skip)]
    types: usize,
    /// Names and types of the columns.
    #[param(skip)]
    columns: Vec<(String, [usize; 2])>,
    /// Column of each pair of types.
    #[param(skip)]
    column_of: Vec<Option<usize>>,
    #[param(skip)]
    host: Option<Host>,
    #[param(skip)]
    counts: Vec<u64>,
    /// Σ pairs/V over the samples, for each column.
    #[param(skip)]
    density: Vec<f64>,
    #[param(skip)]
    dimensions: u32,
}

impl Analyzer for Rdf {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if self.r_max.value > system.half_box() {
            let message = format!("r_max {} is more than half the shortest box length", self.r_max.value);
            return Err(InputError::at(self.r_max.at, message).into());
        }
        let n = system.types.len();
        let chosen = match &self.pairs {
            Some(list) => {
                let number = |name: &String| type_of(name, list.at, "particle", &system.types);
                list.value.iter().map(|[a, b]| Ok([number(a)?, number(b)?])).collect::<Result<Vec<_>>>()?
            }
            None => (0..n).flat_map(|a| (a..n).map(move |b| [a, b])).collect(),
        };
        self.columns = chosen.iter().map(|p| (p.map(|t| system.types[t].clone()).join("-"), *p)).collect();
        self.column_of = vec![None; n * n];
        for (k, [a, b]) in chosen.into_iter().enumerate() {
            if self.column_of[a * n + b].is_some() {
                let at = self.pairs.as_ref().map_or(self.r_max.at, |p| p.at);
                return Err(InputError::at(at, format!("the pair {} is given twice", self.columns[k].0)).into());
            }
            self.column_of[a * n + b] = Some(k);
            self.column_of[b * n + a] = Some(k);
        }
        needs.period = self.every;
        needs.wants.particles = true;
        self.which.bind(system, needs)?;
        self.path = system.path(&self.file);
        self.types = n;
        self.dimensions = system.dimensions;
        self.counts = vec![0; self.columns.len() * self.bins as usize];
        self.density = vec![0.0; self.columns.len()];
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.host = Some(host);
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Some(host) = self.host.filter(|_| frame.step() >= self.start) else { return Ok(()) };
        let (r_max, bins) = (self.r_max.value, self.bins as usize);
        let length = frame.box_length();
        if length.iter().take(frame.dimensions() as usize).any(|l| r_max > 0.5 * l) {
            return Err(Error::Run(format!("r_max {r_max} is more than half of a box length")));
        }
        let choice = self.which.of(frame);
        let (kind, columns, types) = (frame.kind(), &self.column_of, self.types);
        let per_unit = bins as f64 / r_max;
        let found = count(&host, frame.position(), length, r_max, self.counts.len(), |i, j, r| {
            let column = columns[kind[i] as usize * types + kind[j] as usize]?;
            choice.has(i, j).then(|| column * bins + ((r * per_unit) as usize).min(bins - 1))
        });
        self.counts.iter_mut().zip(found).for_each(|(c, n)| *c += n);
        let volume: f64 = length.iter().take(frame.dimensions() as usize).product();
        let numbers = numbers_of(frame, types);
        for (density, (_, pair)) in self.density.iter_mut().zip(&self.columns) {
            *density += pairs_of(&numbers, *pair) / volume;
        }
        self.write()
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        let counts: Vec<u8> = self.counts.iter().flat_map(|c| c.to_le_bytes()).collect();
        Ok([bytes(&self.density), counts].concat())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let (density, rest) = numbers(state, self.density.len())?;
        if rest.len() != 8 * self.counts.len() {
            return Err(Error::Run("the checkpoint is of another analyzer".into()));
        }
        self.density = density;
        self.counts = rest.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
        Ok(())
    }
}

impl Rdf {
    fn write(&self) -> Result<()> {
        let bins = self.bins as usize;
        let width = self.r_max.value / bins as f64;
        let head = std::iter::once("r".to_string()).chain(self.columns.iter().map(|c| c.0.clone()));
        let mut rows = vec![head.collect::<Vec<_>>()];
        for k in 0..bins {
            let volume = shell(k as f64 * width, (k + 1) as f64 * width, self.dimensions);
            let mut row = vec![format!("{:?}", (k as f64 + 0.5) * width)];
            for (column, density) in self.density.iter().enumerate() {
                let expected = density * volume;
                let g = if expected > 0.0 { self.counts[column * bins + k] as f64 / expected } else { 0.0 };
                row.push(format!("{g:?}"));
            }
            rows.push(row);
        }
        replace(&self.path, &rows)
    }
}
