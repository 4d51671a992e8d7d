//! Samples of all particles or molecules, kept as long as the lags want them, and what is summed over pairs of samples.

use crate::dynamics::follow::Follow;
use crate::dynamics::frames_device::FramesDevice;
use crate::dynamics::items::{Items, NONE, Which};
use crate::dynamics::lags::{Pair, Schedule};
use galamost_measure::pack::{Unpack, put};
use galamost_measure::tree::{ITEMS, block, sum_rows};
use galamost_measure::{positions, tasks};
use galamost_plugin_api::error::Position;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::StateView;

/// What is summed over particles for a pair of samples; the same in CUDA C++.
pub trait Measure: Clone + Default + Send + Sync + 'static {
    /// Samples are of velocities, else of positions.
    const VELOCITIES: bool;
    /// Positions are followed through a box that changes; else it must stay as it is.
    const FOLLOWS: bool;
    /// The settings, laid out as `Settings`.
    type Settings: Copy + Send + Sync;

    /// CUDA C++: `struct Settings`, and `measure(settings, now, then, values)`.
    fn text() -> String;
    /// How many numbers.
    fn values(&self) -> usize;
    /// For the kernels.
    fn settings(&self, length: [f64; 3]) -> Self::Settings;
    /// Adds those of one particle.
    fn add(settings: &Self::Settings, now: [f64; 3], then: [f64; 3], sums: &mut [f64]);
}

/// The most memory that samples may take.
const MOST: u64 = 128 << 30;

/// Samples, and sums for each lag.
#[derive(Default)]
pub struct Frames<M: Measure> {
    /// What is summed.
    pub measure: M,
    schedule: Schedule,
    which: Option<Which>,
    types: Vec<u32>,
    /// Names of what has sums of its own.
    pub species: Vec<String>,
    drift: bool,
    n: u64,
    on_device: bool,
    host: Option<Host>,
    items: Option<Items>,
    /// Box lengths at the first sample.
    length: [f64; 3],
    /// On a device only its lengths: the rest is there.
    follow: Follow,
    /// For each lag and species.
    sums: Vec<f64>,
    /// For each lag: pairs of samples, and the sum of their times.
    pairs: Vec<u64>,
    times: Vec<f64>,
    /// Samples on the CPU.
    here: Vec<Vec<f64>>,
    device: Option<FramesDevice>,
    kept: Vec<u8>,
}

/// Averages of one lag.
pub struct Row {
    /// Place of the lag among all.
    pub place: usize,
    /// In samples.
    pub lag: u64,
    /// Mean time.
    pub time: f64,
    /// Pairs of samples.
    pub origins: u64,
    /// For each species the means over particles and origins.
    pub means: Vec<Vec<f64>>,
}

impl<M: Measure> Frames<M> {
    /// Learns the system. `at` is where the component's memory is told.
    ///
    /// # Errors
    /// A mistake of the input, or more memory than there can be.
    pub fn bind(
        &mut self,
        which: &Which,
        schedule: Schedule,
        drift: bool,
        system: &SystemInfo,
        needs: &mut Needs,
        at: Position,
    ) -> Result<()> {
        (self.species, self.types) = which.bind(system, needs)?;
        needs.plain_images = true;
        let entries = if which.molecules() { system.n / 2 } else { system.n } + (self.species.len() * ITEMS) as u64;
        let bytes = schedule.slots() as u64 * 24 * entries + if M::FOLLOWS { 36 * system.n } else { 0 };
        let most = if system.device == "cpu" { machine_memory().unwrap_or(MOST).min(MOST) } else { MOST };
        let told = |b: u64| format!("{:.1} GB", b as f64 / 1e9);
        let kept = format!("{} samples of {entries} particles or molecules, {}", schedule.slots(), told(bytes));
        if bytes > most {
            let message = format!(
                "it would keep {kept}; there are at most {}: fewer `levels` or `points`, or `origins` further apart",
                told(most)
            );
            return Err(InputError::at(at, message).into());
        }
        if bytes > 1_000_000_000 {
            needs.notes.push(format!("it keeps {kept}, in checkpoints too"));
        }
        (self.schedule, self.drift, self.n) = (schedule, drift, system.n);
        self.which = Some(which.clone());
        self.on_device = system.device == "cuda";
        let lags = self.schedule.lags();
        self.sums = vec![0.0; lags * self.species.len() * self.measure.values()];
        (self.pairs, self.times) = (vec![0; lags], vec![0.0; lags]);
        Ok(())
    }

    /// Compiles, and takes up what a checkpoint has.
    ///
    /// # Errors
    /// The device's words, or the checkpoint is of another analyzer.
    pub fn start(&mut self, host: Host) -> Result<()> {
        self.host = Some(host);
        if self.on_device {
            self.device = Some(FramesDevice::new(host, &M::text(), self.measure.values())?);
        }
        let kept = std::mem::take(&mut self.kept);
        if kept.is_empty() {
            return Ok(());
        }
        let mut from = Unpack(&kept);
        self.schedule.load(&mut from)?;
        let items = Items::load(&mut from, self.n, self.species.len())?;
        let length = from.row_of::<f64>(3)?;
        self.length.copy_from_slice(&length);
        self.sums = from.row_of(self.sums.len())?;
        self.pairs = from.row_of(self.pairs.len())?;
        self.times = from.row_of(self.times.len())?;
        self.make_room(&items)?;
        if M::FOLLOWS {
            self.follow = Follow::load(&mut from, self.n as usize)?;
            if let Some(d) = &self.device {
                d.upload_follow(&self.follow)?;
                (self.follow.carry, self.follow.image) = (vec![], vec![]);
            }
        }
        for origin in self.schedule.kept() {
            let frame = from.row_of::<f64>(3 * items.entries.len())?;
            match &self.device {
                Some(d) => d.upload_frame(origin.slot, &frame)?,
                None => self.here[origin.slot as usize] = frame,
            }
        }
        if let Some(d) = &self.device {
            d.upload_sums(&self.sums)?;
        }
        self.items = Some(items);
        from.end()
    }

    fn make_room(&mut self, items: &Items) -> Result<()> {
        let slots = self.schedule.slots();
        match &mut self.device {
            Some(d) => d.make_room(items, slots, self.n as usize, self.sums.len(), M::FOLLOWS),
            None => {
                self.here = vec![vec![]; slots];
                Ok(())
            }
        }
    }

    /// Takes a sample, and compares it with earlier ones; where it is kept, and what it was compared with.
    ///
    /// # Errors
    /// The box has changed, or the device's words.
    ///
    /// # Safety
    /// The frame's view describes arrays of the run's device.
    pub unsafe fn sample(&mut self, frame: &Frame<'_>) -> Result<(u32, Vec<Pair>)> {
        let (Some(host), Some(which)) = (self.host, &self.which) else {
            return Err(Error::Run("it was not started".into()));
        };
        let call = frame.call();
        if self.items.is_none() {
            let items = Items::now(which, &self.types, &host, call)?;
            self.length = frame.box_length();
            self.make_room(&items)?;
            self.items = Some(items);
        }
        let length = frame.box_length();
        if !M::VELOCITIES && !M::FOLLOWS && length != self.length {
            let [x, y, z] = self.length;
            return Err(Error::Run(format!(
                "the box is no longer that of the first sample, {x} × {y} × {z}: displacements in a box that changes are not those \
                 of motion; sample in a stage of constant volume"
            )));
        }
        let Some(items) = &self.items else { return Err(Error::Run("it has no particles".into())) };
        let (slot, pairs) = self.schedule.next(frame.time());
        let settings = self.measure.settings(self.length);
        let change = M::FOLLOWS.then(|| self.follow.change(length));
        match &self.device {
            // SAFETY: the caller's word
            Some(d) => unsafe {
                d.sample(&call.state, items, slot, &pairs, M::VELOCITIES, self.drift, change, &settings)?;
            },
            None => {
                if M::FOLLOWS {
                    // SAFETY: the caller's word; on the CPU the view is of host arrays
                    unsafe { self.follow.advance(&call.state, length) };
                }
                // SAFETY: the caller's word; on the CPU the view is of host arrays
                self.here[slot as usize] =
                    unsafe { take::<M>(&host, &call.state, items, length, &self.follow, self.drift) };
                self.compare_here(&host, slot, &pairs, &settings);
            }
        }
        self.follow.length = length;
        for p in &pairs {
            self.pairs[p.lag as usize] += 1;
            self.times[p.lag as usize] += p.time;
        }
        Ok((slot, pairs))
    }

    /// What is followed, once there was a sample.
    pub fn items(&self) -> Option<&Items> {
        self.items.as_ref()
    }

    /// Box lengths at the first sample.
    pub fn length(&self) -> [f64; 3] {
        self.length
    }

    /// Samples that are kept.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    fn compare_here(&mut self, host: &Host, now: u32, pairs: &[Pair], settings: &M::Settings) {
        let Some(items) = &self.items else { return };
        let (n, values, here) = (items.entries.len(), self.measure.values(), &self.here);
        let blocks = n / ITEMS;
        let of = |frame: &[f64], k: usize| [frame[k], frame[n + k], frame[2 * n + k]];
        let partial = tasks::map(host, pairs.len() * blocks, |task| {
            let (now, then) = (&here[now as usize], &here[pairs[task / blocks].slot as usize]);
            let begin = task % blocks * ITEMS;
            block(values, |e, sums| {
                if items.entries[begin + e] != NONE {
                    M::add(settings, of(now, begin + e), of(then, begin + e), sums);
                }
            })
        });
        for (p, pair) in pairs.iter().enumerate() {
            for species in 0..self.species.len() {
                let range = items.blocks(species);
                let to = (pair.lag as usize * self.species.len() + species) * values;
                for (v, sum) in self.sums[to..to + values].iter_mut().enumerate() {
                    *sum += sum_rows(range.len(), |r| partial[p * blocks + range.start + r][v]);
                }
            }
        }
    }

    /// Brings the sums to the host: waits for the device.
    ///
    /// # Errors
    /// The device's words.
    pub fn fetch(&mut self) -> Result<()> {
        match &self.device {
            Some(d) if self.items.is_some() => d.download_sums(&mut self.sums),
            _ => Ok(()),
        }
    }

    /// Averages of the lags that have any, in their order; sums must have been fetched.
    pub fn rows(&self) -> Vec<Row> {
        let Some(items) = &self.items else { return vec![] };
        let (species, values) = (self.species.len(), self.measure.values());
        let row = |lag: usize| {
            let origins = self.pairs[lag];
            let mean = |s: usize| {
                let norm = (items.count[s] * origins) as f64;
                let sums = &self.sums[(lag * species + s) * values..][..values];
                sums.iter().map(|x| if norm > 0.0 { x / norm } else { 0.0 }).collect()
            };
            let time = self.times[lag] / origins as f64;
            Row { place: lag, lag: self.schedule.lag(lag), time, origins, means: (0..species).map(mean).collect() }
        };
        (0..self.pairs.len()).filter(|l| self.pairs[*l] > 0).map(row).collect()
    }

    /// For a checkpoint.
    ///
    /// # Errors
    /// The device's words.
    pub fn save(&mut self) -> Result<Vec<u8>> {
        if !self.kept.is_empty() {
            return Ok(self.kept.clone());
        }
        self.fetch()?;
        let Some(items) = &self.items else { return Ok(vec![]) };
        let mut out = vec![];
        self.schedule.save(&mut out);
        items.save(&mut out);
        put(&mut out, &self.length);
        put(&mut out, &self.sums);
        put(&mut out, &self.pairs);
        put(&mut out, &self.times);
        if M::FOLLOWS {
            match &self.device {
                Some(d) => d.download_follow(self.follow.length, self.n as usize)?.save(&mut out),
                None => self.follow.save(&mut out),
            }
        }
        for origin in self.schedule.kept() {
            match &self.device {
                Some(d) => put(&mut out, &d.download_frame(origin.slot, 3 * items.entries.len())?),
                None => put(&mut out, &self.here[origin.slot as usize]),
            }
        }
        Ok(out)
    }

    /// From a checkpoint; taken up by [`Self::start`].
    pub fn load(&mut self, state: &[u8]) {
        self.kept = state.to_vec();
    }
}

/// A sample on the CPU, in the order of the kernels.
///
/// # Safety
/// The view is of valid host arrays.
unsafe fn take<M: Measure>(
    host: &Host,
    s: &StateView,
    items: &Items,
    length: [f64; 3],
    follow: &Follow,
    drift: bool,
) -> Vec<f64> {
    let n = s.n_local as usize;
    // SAFETY: the caller's word
    let index = unsafe { s.index_of_tag.slice(n) };
    let of = |tag: u32| -> ([f64; 3], f64) {
        let i = index[tag as usize] as usize;
        // SAFETY: the caller's word; the tag is one of the system's
        unsafe {
            let [x, y, z, m] = s.velocity_mass(i);
            if M::VELOCITIES {
                return ([x, y, z], m);
            }
            let (r, more) = (positions::unwrapped(s, length, i), follow.of(tag));
            (std::array::from_fn(|k| r[k] + more[k]), m)
        }
    };
    let mut moved = [0.0; 3];
    if drift {
        let blocks = n.div_ceil(ITEMS);
        let partial = tasks::map(host, blocks, |b| {
            block(4, |e, sums| {
                let tag = b * ITEMS + e;
                if tag < n {
                    let (x, m) = of(tag as u32);
                    (0..3).for_each(|k| sums[k] += m * x[k]);
                    sums[3] += m;
                }
            })
        });
        let total: [f64; 4] = std::array::from_fn(|v| sum_rows(blocks, |r| partial[r][v]));
        moved = std::array::from_fn(|k| total[k] / total[3]);
    }
    let m = &items.molecules;
    let entry = |item: u32| -> [f64; 3] {
        let mut x = [0.0; 3];
        if item == NONE {
            return x;
        }
        if m.is_empty() {
            x = of(item).0;
        } else {
            let mut total = 0.0;
            for tag in &m.members[m.places(item as usize)] {
                let (y, w) = of(*tag);
                (0..3).for_each(|k| x[k] += w * y[k]);
                total += w;
            }
            x = x.map(|x| x / total);
        }
        if drift { std::array::from_fn(|k| x[k] - moved[k]) } else { x }
    };
    let all = items.entries.len();
    let parts = tasks::map(host, all / ITEMS, |b| {
        items.entries[b * ITEMS..][..ITEMS].iter().map(|e| entry(*e)).collect::<Vec<_>>()
    });
    (0..3).flat_map(|k| parts.iter().flatten().map(move |x| x[k])).collect()
}

/// Bytes of memory of this machine, if the system tells.
fn machine_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("MemTotal:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
}
