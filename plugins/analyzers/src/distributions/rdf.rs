//! Radial distribution functions.

use crate::distributions::pairs::{count, shell};
use crate::distributions::rdf_device::{Counting, RdfDevice};
use crate::distributions::space::{Lengths, Tilted, Units};
use crate::distributions::which::{PairSelection, Which, pairs_of, type_of};
use crate::selection::Of;
use galamost_measure::Pace;
use galamost_measure::molecules::{self, Molecules};
use galamost_measure::pack::Unpack;
use galamost_measure::positions::{self, Inside};
use galamost_measure::{bytes, numbers, replace};
use galamost_plugin_api::memory;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::tilt::heights;
use std::path::PathBuf;

/// Measures radial distribution functions g(r) of pairs of types.
///
/// In each bin of width r_max/bins, g is the number of pairs divided by the expected number at random positions, N_i
/// N_j v/V for two types and ½ N_i (N_i − 1) v/V for one type. v is the volume of the shell (area of the ring in two
/// dimensions). The normalization is exact also for few particles. Pairs removed by `exclude` or `only` are not
/// counted, but the normalization remains that of all pairs. Without any pair of two types, such as that of a single particle with
/// itself, g is NaN. `only` uses the molecules of each sample: without an array
/// `molecule`, those that its bonds define, where `neighbors: (only: …)` uses those at the start of the run.
///
/// `file` is a CSV table: `r` (center of the bin, length), then a column `A-B` for each pair of types. It is replaced
/// after the first sample, then at most once a second, and at the end of the run. Averages include all samples so far.
///
/// `of: Molecules` uses centers of mass of molecules of at least two particles, in the column `molecules`. Molecules
/// are defined by the array `molecule` or by bonds at the first sample. Later reactions do not change their members. They are unwrapped
/// along their bonds by minimum images, so neither images nor the size of a bonded molecule matter. Parts without bonds to the rest are placed nearest to the
/// first particle, where `Gyration` and `Msd` use images. A molecule that bonds connect to its own periodic images, such as a
/// ring through the box, has no center. It is left out, with a warning.
///
/// In a box that changes, a column is the sum of all counts divided by the sum of the counts of an ideal gas in the box of each sample.
///
/// On a GPU, pairs are counted on the device in a separate cell grid, independent of the neighbor list, and the run
/// does not wait. With `exclude` or `only`, the host checks the topology at each sample and uploads it after changes.
/// Distances are computed in f64 from the positions that pair forces use (32 bits of the box length in `Single` and
/// `Mixed`). Counts are integers, so CPU and GPU agree exactly for equal positions. Sheared boxes (`LeesEdwards`) are
/// not supported.
///
/// ```ron
/// Rdf(every: 100, file: "rdf.csv", r_max: 2.5, bins: 100)
/// ```
#[component(Analyzer, "Rdf")]
#[derive(Params)]
pub struct Rdf {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// First step to sample; samples are at multiples of `every`.
    #[param(default = 0)]
    start: u64,
    /// Output file.
    file: String,
    /// Largest distance; at most half of the shortest box length, or height of a triclinic box.
    #[param(unit = "length", above = 0.0)]
    r_max: Spanned<f64>,
    /// Number of bins.
    #[param(default = 100, at_least = 1, at_most = 100_000)]
    bins: u32,
    /// Measured objects: `Particles` (default) or centers of mass of `Molecules`.
    of: Option<Spanned<Of>>,
    /// Pairs of types; default: all.
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
    /// Those of the first sample, which a checkpoint contains: bonds may change later.
    #[param(skip)]
    molecules: Option<Molecules>,
    /// Number of particles.
    #[param(skip)]
    n: u64,
    #[param(skip)]
    counts: Vec<u64>,
    /// Σ pairs/V over the samples, for each column.
    #[param(skip)]
    density: Vec<f64>,
    #[param(skip)]
    dimensions: u32,
    #[param(skip)]
    pace: Pace,
    /// Whether the counts come from a checkpoint.
    #[param(skip)]
    resumed: bool,
}

impl Analyzer for Rdf {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if self.r_max.value > system.half_box() {
            let what = if system.tilt == [0.0; 3] { "box length" } else { "height of the box" };
            let message = format!("`r_max` {} exceeds half of the shortest {what}", self.r_max.value);
            return Err(InputError::at(self.r_max.at, message).into());
        }
        needs.sample(self.every, self.start);
        (needs.plain_images, needs.triclinic) = (true, true);
        self.bind_columns(system)?;
        if let Some(of) = self.of.as_ref().filter(|o| o.value == Of::Molecules) {
            if self.pairs.is_some() || self.which.restricts() {
                let message = "`pairs`, `exclude`, and `only` do not apply to molecules; remove them";
                return Err(InputError::at(of.at, message).into());
            }
            molecules::need(system, needs, of.at)?;
        }
        self.which.bind(system, needs)?;
        self.path = needs.output(system, &self.file, OutputKind::Result);
        (self.dimensions, self.n) = (system.dimensions, system.n);
        self.on_device = system.device == "cuda";
        let (pairs, bins) = (self.columns.len(), self.bins);
        // the counts, and those of one sample
        memory::require(format_args!("{bins} bins for {pairs} pairs of types"), 16.0 * pairs as f64 * f64::from(bins))
            .map_err(|m| InputError::at(self.r_max.at, m))?;
        self.counts = vec![0; self.columns.len() * self.bins as usize];
        self.density = vec![0.0; self.columns.len()];
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.host = Some(host);
        if self.on_device {
            let mut device = RdfDevice::new(host, &self.counting())?;
            if self.resumed {
                device.upload(&self.counts, &self.density)?;
            }
            if let Some(m) = &self.molecules {
                device.set_molecules(m)?;
            }
            self.device = Some(device);
        }
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Some(host) = self.host.filter(|_| frame.step() >= self.start) else { return Ok(()) };
        let r_max = self.r_max.value;
        let length = frame.box_length();
        let height = heights(length, frame.tilt());
        if height.iter().take(frame.dimensions() as usize).any(|l| r_max > 0.5 * l) {
            return Err(Error::Run(format!(
                "`r_max` {r_max} exceeds half of a box length, or of a height of a triclinic box"
            )));
        }
        if self.of_molecules() && self.molecules.is_none() {
            let found = molecules_of(&host, frame)?;
            if let Some(device) = &mut self.device {
                device.set_molecules(&found)?;
            }
            self.molecules = Some(found);
        }
        let selection =
            if self.which.restricts() { self.which.selection(&host, frame)? } else { PairSelection::default() };
        let volume: f64 = length.iter().take(frame.dimensions() as usize).product();
        let state = &frame.call().state;
        match self.device.take() {
            Some(mut device) => {
                device.select_pairs(selection)?;
                // SAFETY: the engine passes a view of valid arrays of the run's device
                unsafe { device.sample(&self.counting(), state, [length, frame.tilt()], volume)? };
                self.device = Some(device);
            }
            None => {
                // SAFETY: the engine passes a view of valid arrays; on the CPU these are host arrays
                unsafe { self.count_here(&host, frame, &selection, volume)? };
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
        let mut out = [bytes(&self.density), counts].concat();
        if self.of_molecules() {
            self.molecules.clone().unwrap_or_default().save(&mut out);
        }
        Ok(out)
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let (density, rest) = numbers(state, self.density.len())?;
        let other = || Error::Run("the checkpoint belongs to another analyzer".into());
        let (counts, rest) = rest.split_at_checked(8 * self.counts.len()).ok_or_else(other)?;
        let sampled = density.iter().any(|d| *d > 0.0);
        if self.of_molecules() {
            if rest.is_empty() && sampled {
                let message = "the checkpoint is that of an earlier version, which did not store the molecules; start the run again, or \
                               remove the analyzer";
                return Err(Error::Run(message.into()));
            }
            if !rest.is_empty() {
                let mut from = Unpack(rest);
                self.molecules = Some(Molecules::load(&mut from, self.n)?).filter(|m| !m.is_empty());
                from.end()?;
            }
        } else if !rest.is_empty() {
            return Err(other());
        }
        self.density = density;
        self.counts = counts.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
        self.resumed = true;
        if sampled {
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
                if list.value.is_empty() {
                    return Err(InputError::at(list.at, "the list is empty; add pairs of types or remove it").into());
                }
                let index = |name: &String| type_of(name, list.at, "particle", &system.types);
                list.value.iter().map(|[a, b]| Ok([index(a)?, index(b)?])).collect::<Result<Vec<_>>>()?
            }
            None => (0..n).flat_map(|a| (a..n).map(move |b| [a, b])).collect(),
        };
        self.names = self.columns.iter().map(|p| p.map(|t| system.types[t].clone()).join("-")).collect();
        self.column_of = vec![None; n * n];
        for (k, [a, b]) in self.columns.iter().copied().enumerate() {
            if self.column_of[a * n + b].is_some() {
                let at = self.pairs.as_ref().map_or(self.r_max.at, |p| p.at);
                return Err(InputError::at(at, format!("the pair {} is listed twice", self.names[k])).into());
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

    /// Counts pairs on the CPU.
    ///
    /// # Safety
    /// The frame's view describes valid host arrays.
    unsafe fn count_here(
        &mut self,
        host: &Host,
        frame: &Frame<'_>,
        selection: &PairSelection,
        volume: f64,
    ) -> Result<()> {
        let (s, length) = (&frame.call().state, frame.box_length());
        // SAFETY: the view describes valid host arrays (contract of this function)
        let mut points = unsafe { positions::inside(s) };
        // SAFETY: `i < n_local`, and the view describes valid host arrays (contract of this function)
        let mut types_of: Vec<u32> = (0..s.n_local as usize).map(|i| unsafe { s.type_id(i) }).collect();
        // SAFETY: the array has n_local entries, and the view describes valid host arrays (contract of this function)
        let tag = unsafe { s.tag.slice(s.n_local as usize) };
        if let Some(m) = &self.molecules {
            // SAFETY: the view describes valid host arrays (contract of this function)
            points = unsafe { m.centers(s, &points, length) };
            types_of = vec![0; m.len()];
        }
        let (r_max, bins, types) = (self.r_max.value, self.bins as usize, self.types);
        let per_unit = bins as f64 / r_max;
        let plain = !self.which.restricts();
        let slot = |i: usize, j: usize, r: f64| {
            let column = self.column_of[types_of[i] as usize * types + types_of[j] as usize]?;
            let counts = plain || selection.has(tag[i] as usize, tag[j] as usize);
            counts.then(|| column * bins + ((r * per_unit) as usize).min(bins - 1))
        };
        let slots = self.counts.len();
        let (tilt, fixed, real) = (frame.tilt(), Units::of(length), Lengths(length));
        let height = heights(length, tilt);
        let found = match &points {
            Inside::Fixed(p) if tilt == [0.0; 3] => count(host, &fixed, p, length, r_max, slots, slot),
            Inside::Real(p) if tilt == [0.0; 3] => count(host, &real, p, length, r_max, slots, slot),
            Inside::Fixed(p) => count(host, &Tilted(fixed, tilt), p, height, r_max, slots, slot),
            Inside::Real(p) => count(host, &Tilted(real, tilt), p, height, r_max, slots, slot),
        };
        self.counts.iter_mut().zip(found).for_each(|(c, n)| *c += n);
        let mut numbers = vec![0.0; types];
        types_of.iter().for_each(|k| numbers[*k as usize] += 1.0);
        for (density, pair) in self.density.iter_mut().zip(&self.columns) {
            *density += pairs_of(&numbers, *pair) / volume;
        }
        Ok(())
    }

    /// Downloads the counts from the device.
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
                let g = if expected > 0.0 { self.counts[column * bins + k] as f64 / expected } else { f64::NAN };
                row.push(format!("{g:?}"));
            }
            rows.push(row);
        }
        replace(&self.path, &rows)
    }
}

/// Returns the molecules of a frame that have a center, and warns about others.
fn molecules_of(host: &Host, frame: &Frame<'_>) -> Result<Molecules> {
    let mut found = Molecules::now(host, frame.call())?;
    molecules::some(&found)?;
    let all = found.len();
    if let Some((count, first)) = found.remove_endless(host, frame.call(), frame.box_length())? {
        let what = format!(
            "{count} of {all} molecules, the first that of particle {first}, are bonded to their own periodic images; such a \
             molecule has no center"
        );
        if found.is_empty() {
            return Err(Error::Run(format!("{what}, and there are no others; use `of: Particles`")));
        }
        host.log(Level::Warn, &format!("Rdf: {what} and is left out"));
    }
    Ok(found)
}
