//! Radial distribution functions.

use crate::distributions::pairs::{count, shell};
use crate::distributions::rdf_device::{Counting, RdfDevice};
use crate::distributions::space::{Lengths, Units};
use crate::distributions::which::{Choice, Which, pairs_of, type_of};
use crate::selection::Of;
use galamost_measure::Pace;
use galamost_measure::molecules::{self, Molecules};
use galamost_measure::positions::{self, Inside};
use galamost_measure::{bytes, numbers, replace};
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

/// Radial distribution functions g(r) of pairs of types, averaged over samples every `every` steps.
///
/// In each bin of width r_max/bins, g is the number of pairs over that of particles placed at random: N_i N_j v/V for two types
/// and ½ N_i (N_i − 1) v/V for one, v the volume of the shell (the area of the ring in two dimensions), so it is right for few
/// particles too. Pairs that `exclude` or `only` leave out are not counted, and the reference stays that of all pairs. `file` is
/// a CSV table: `r` (middle of the bin, length), then a column for each pair, as `A-B`. It is replaced after the first sample, then at
/// most once a second, and at the end of the run.
///
/// With `of: Molecules` the points are centers of mass of molecules of at least two particles, and the column is `molecules`. A
/// molecule is what the array `molecule` or bonds say at the first sample; it is put together along its bonds by nearest images, so
/// neither images nor its size matter.
///
/// On a GPU pairs are counted there, in cells of r_max/2, whatever the neighbor list holds; the run does not wait for it. With
/// `exclude` or `only` the host looks at the links at each sample and tells the device when they have changed. Distances are those
/// that pair forces see (32 bits of the box length in `Single` and `Mixed`), in f64, and counts are whole numbers: both devices count
/// the same for the same positions. Not for sheared boxes (`LeesEdwards`).
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
    /// `Particles`, or centers of `Molecules`; without it particles.
    of: Option<Spanned<Of>>,
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
    names: Vec<String>,
    #[param(skip)]
    columns: Vec<[usize; 2]>,
    /// Column of each pair of types.
    #[param(skip)]
    column_of: Vec<Option<usize>>,
    #[param(skip)]
    host: Option<Host>,
    #[param(skip)]
    on_device: bool,
    #[param(skip)]
    device: Option<RdfDevice>,
    #[param(skip)]
    molecules: Option<Molecules>,
    #[param(skip)]
    counts: Vec<u64>,
    /// Σ pairs/V over the samples, for each column.
    #[param(skip)]
    density: Vec<f64>,
    #[param(skip)]
    dimensions: u32,
    #[param(skip)]
    pace: Pace,
    /// Numbers out of a checkpoint.
    #[param(skip)]
    resumed: bool,
}

impl Analyzer for Rdf {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if self.r_max.value > system.half_box() {
            let message = format!("r_max {} is more than half the shortest box length", self.r_max.value);
            return Err(InputError::at(self.r_max.at, message).into());
        }
        needs.period = self.every;
        needs.plain_images = true;
        self.bind_columns(system)?;
        if let Some(of) = self.of.as_ref().filter(|o| o.value == Of::Molecules) {
            if self.pairs.is_some() || self.which.leaves_out() {
                let message = "molecules have no types and no bonds: `pairs`, `exclude` and `only` are for particles";
                return Err(InputError::at(of.at, message).into());
            }
            molecules::need(system, needs, of.at)?;
        }
        self.which.bind(system, needs)?;
        self.path = system.path(&self.file);
        self.dimensions = system.dimensions;
        self.on_device = system.device == "cuda";
        self.counts = vec![0; self.columns.len() * self.bins as usize];
        self.density = vec![0.0; self.columns.len()];
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.host = Some(host);
        if self.on_device {
            let device = RdfDevice::new(host, &self.counting())?;
            if self.resumed {
                device.upload(&self.counts, &self.density)?;
            }
            self.device = Some(device);
        }
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Some(host) = self.host.filter(|_| frame.step() >= self.start) else { return Ok(()) };
        let r_max = self.r_max.value;
        let length = frame.box_length();
        if length.iter().take(frame.dimensions() as usize).any(|l| r_max > 0.5 * l) {
            return Err(Error::Run(format!("r_max {r_max} is more than half of a box length")));
        }
        if self.of_molecules() && self.molecules.is_none() {
            let found = Molecules::now(&host, frame.call())?;
            molecules::some(&found)?;
            if let Some(device) = &mut self.device {
                device.set_molecules(&found)?;
            }
            self.molecules = Some(found);
        }
        let choice = if self.which.leaves_out() { self.which.of(&host, frame)? } else { Choice::default() };
        let volume: f64 = length.iter().take(frame.dimensions() as usize).product();
        let state = &frame.call().state;
        match self.device.take() {
            Some(mut device) => {
                device.leave_out(choice)?;
                // SAFETY: the engine's word about the view
                unsafe { device.sample(&self.counting(), state, length, volume)? };
                self.device = Some(device);
            }
            None => {
                // SAFETY: the engine's word about the view; on the CPU it is of host arrays
                unsafe { self.count_here(&host, frame, &choice, volume)? };
            }
        }
        self.pace.sampled();
        self.write(false)
    }

    fn finish(&mut self) -> Result<()> {
        self.write(true)
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        self.fetch()?;
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
        self.resumed = true;
        if self.density.iter().any(|d| *d > 0.0) {
            self.pace.sampled();
        }
        Ok(())
    }
}

impl Rdf {
    fn of_molecules(&self) -> bool {
        self.of.as_ref().is_some_and(|o| o.value == Of::Molecules)
    }

    fn bind_columns(&mut self, system: &SystemInfo) -> Result<()> {
        if self.of_molecules() {
            (self.types, self.names) = (1, vec!["molecules".into()]);
            (self.columns, self.column_of) = (vec![[0, 0]], vec![Some(0)]);
            return Ok(());
        }
        let n = system.types.len();
        self.columns = match &self.pairs {
            Some(list) => {
                let number = |name: &String| type_of(name, list.at, "particle", &system.types);
                list.value.iter().map(|[a, b]| Ok([number(a)?, number(b)?])).collect::<Result<Vec<_>>>()?
            }
            None => (0..n).flat_map(|a| (a..n).map(move |b| [a, b])).collect(),
        };
        self.names = self.columns.iter().map(|p| p.map(|t| system.types[t].clone()).join("-")).collect();
        self.column_of = vec![None; n * n];
        for (k, [a, b]) in self.columns.iter().copied().enumerate() {
            if self.column_of[a * n + b].is_some() {
                let at = self.pairs.as_ref().map_or(self.r_max.at, |p| p.at);
                return Err(InputError::at(at, format!("the pair {} is given twice", self.names[k])).into());
            }
            self.column_of[a * n + b] = Some(k);
            self.column_of[b * n + a] = Some(k);
        }
        self.types = n;
        Ok(())
    }

    fn counting(&self) -> Counting<'_> {
        Counting {
            r_max: self.r_max.value,
            bins: self.bins as usize,
            types: self.types,
            columns: &self.columns,
            column_of: &self.column_of,
        }
    }

    /// Counts on the engine's threads.
    ///
    /// # Safety
    /// The frame's view is of valid host arrays.
    unsafe fn count_here(&mut self, host: &Host, frame: &Frame<'_>, choice: &Choice, volume: f64) -> Result<()> {
        let (s, length) = (&frame.call().state, frame.box_length());
        // SAFETY: the caller's word
        let mut points = unsafe { positions::inside(s) };
        // SAFETY: the caller's word
        let mut kind: Vec<u32> = (0..s.n_local as usize).map(|i| unsafe { s.type_id(i) }).collect();
        // SAFETY: the caller's word
        let tag = unsafe { s.tag.slice(s.n_local as usize) };
        if let Some(m) = &self.molecules {
            // SAFETY: the caller's word
            points = unsafe { m.centers(s, &points, length) };
            kind = vec![0; m.len()];
        }
        let (r_max, bins, types) = (self.r_max.value, self.bins as usize, self.types);
        let per_unit = bins as f64 / r_max;
        let plain = !self.which.leaves_out();
        let slot = |i: usize, j: usize, r: f64| {
            let column = self.column_of[kind[i] as usize * types + kind[j] as usize]?;
            let counts = plain || choice.has(tag[i] as usize, tag[j] as usize);
            counts.then(|| column * bins + ((r * per_unit) as usize).min(bins - 1))
        };
        let slots = self.counts.len();
        let found = match &points {
            Inside::Fixed(p) => count(host, &Units::of(length), p, length, r_max, slots, slot),
            Inside::Real(p) => count(host, &Lengths(length), p, length, r_max, slots, slot),
        };
        self.counts.iter_mut().zip(found).for_each(|(c, n)| *c += n);
        let mut numbers = vec![0.0; types];
        kind.iter().for_each(|k| numbers[*k as usize] += 1.0);
        for (density, pair) in self.density.iter_mut().zip(&self.columns) {
            *density += pairs_of(&numbers, *pair) / volume;
        }
        Ok(())
    }

    /// Brings what the device has counted to the host.
    fn fetch(&mut self) -> Result<()> {
        match &self.device {
            Some(device) => device.download(&mut self.counts, &mut self.density),
            None => Ok(()),
        }
    }

    fn write(&mut self, at_the_end: bool) -> Result<()> {
        if !self.pace.due(at_the_end) {
            return Ok(());
        }
        self.fetch()?;
        let bins = self.bins as usize;
        let width = self.r_max.value / bins as f64;
        let head = std::iter::once("r".to_string()).chain(self.names.iter().cloned());
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
