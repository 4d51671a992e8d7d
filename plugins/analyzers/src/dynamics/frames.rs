//! Stored samples of all particles or molecules, and sums over pairs of samples.

use crate::dynamics::follow::Follow;
use crate::dynamics::frames_device::FramesDevice;
use crate::dynamics::items::{Items, NONE, Which};
use crate::dynamics::lags::{Pair, Schedule};
use galamost_measure::pack::{Unpack, put};
use galamost_measure::tree::{ITEMS, block, sum_rows};
use galamost_measure::{positions, tasks};
use galamost_plugin_api::error::Position;
use galamost_plugin_api::memory;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::tilt::to_space;
use galamost_plugin_api::views::StateView;

/// Settings of a measure that has none.
#[repr(C)]
#[derive(Clone, Copy, Default, DeviceStruct)]
pub struct NoSettings {
    /// Unused; C++ has no empty structs.
    reserved: [u32; 2],
}

/// Quantity summed over particles for a pair of samples, in Rust and in CUDA C++.
pub trait Measure: Clone + Default + Send + Sync + 'static {
    /// Whether samples are velocities; otherwise positions.
    const VELOCITIES: bool;
    /// Whether positions are unwrapped in a changing box; otherwise the box must be constant.
    const FOLLOWS: bool;
    /// Settings.
    type Settings: galamost_plugin_api::device::DeviceStruct + Send + Sync;

    /// Returns CUDA C++ that defines `measure(settings, now, then, values)`, which adds the values of the items of a thread.
    fn text() -> String;
    /// Returns how many values are summed.
    fn values(&self) -> usize;
    /// Returns the settings for a box of the given lengths.
    fn settings(&self, length: [f64; 3]) -> Self::Settings;
    /// Adds the values of one particle to `sums`.
    fn add(settings: &Self::Settings, now: [f64; 3], then: [f64; 3], sums: &mut [f64]);
}

/// Maximum memory for samples, in bytes.
const MAX_MEMORY: u64 = 128 << 30;

/// Stored samples, and sums for each lag.
#[derive(Default)]
pub struct Frames<M: Measure> {
    /// Measured quantity.
    pub measure: M,
    schedule: Schedule,
    which: Option<Which>,
    types: Vec<u32>,
    /// Names of the species, which have separate sums.
    pub species: Vec<String>,
    drift: bool,
    n: u64,
    on_device: bool,
    host: Option<Host>,
    items: Option<Items>,
    /// Box lengths at the first sample.
    length: [f64; 3],
    /// On a device only the lengths are used: the rest is in device memory.
    follow: Follow,
    /// Sums for each lag and species.
    sums: Vec<f64>,
    /// For each lag: number of pairs of samples, and the sum of their time differences.
    pairs: Vec<u64>,
    times: Vec<f64>,
    /// Samples on the CPU, by slot.
    here: Vec<Vec<f64>>,
    device: Option<FramesDevice>,
    kept: Vec<u8>,
}

/// Averages of one lag.
pub struct Row {
    /// Index of the lag.
    pub index: usize,
    /// Lag in samples.
    pub lag: u64,
    /// Mean time.
    pub time: f64,
    /// Number of pairs of samples.
    pub origins: u64,
    /// For each species, means over particles and origins; NaN without particles.
    pub means: Vec<Vec<f64>>,
}

impl<M: Measure> Frames<M> {
    /// Binds to the system. `at` is the position in the pipeline for errors about memory.
    ///
    /// # Errors
    /// Returns an error if the input is invalid or the samples need too much memory.
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
        (needs.triclinic, needs.constant_tilt) = (M::VELOCITIES || M::FOLLOWS, M::FOLLOWS);
        (needs.lags, needs.constant_box) = (true, !M::VELOCITIES && !M::FOLLOWS);
        let entries = if which.molecules() { system.n / 2 } else { system.n } + (self.species.len() * ITEMS) as u64;
        let slots = (schedule.slots() as u64).saturating_mul(24).saturating_mul(entries);
        let bytes = slots.saturating_add(if M::FOLLOWS { 36 * system.n } else { 0 });
        let on_cpu = system.device == "cpu";
        let most = if on_cpu { memory::of_machine().unwrap_or(MAX_MEMORY).min(MAX_MEMORY) } else { MAX_MEMORY };
        let gigabytes = |b: u64| format!("{:.1} GB", b as f64 / 1e9);
        let kept = format!("{} samples of {entries} particles or molecules, {}", schedule.slots(), gigabytes(bytes));
        if bytes > most {
            let message = format!(
                "it would store {kept}, more than the limit of {}; use fewer `levels` or `points`, or larger `origins`",
                gigabytes(most)
            );
            return Err(InputError::at(at, message).into());
        }
        if bytes > 1_000_000_000 {
            needs.notes.push(format!("it stores {kept}, also in checkpoints"));
        }
        (self.schedule, self.drift, self.n) = (schedule, drift, system.n);
        self.which = Some(which.clone());
        self.on_device = system.device == "cuda";
        let lags = self.schedule.lags();
        let values = self.species.len() * self.measure.values();
        // sums, and those of the tasks of one sample
        let needed = if on_cpu { bytes as f64 } else { 0.0 } + 16.0 * lags as f64 * values as f64;
        memory::require(&kept, needed).map_err(|m| InputError::at(at, m))?;
        self.sums = vec![0.0; lags * values];
        (self.pairs, self.times) = (vec![0; lags], vec![0.0; lags]);
        Ok(())
    }

    /// Compiles the kernels and restores a checkpoint.
    ///
    /// # Errors
    /// Returns the driver's error, or an error if the checkpoint belongs to another analyzer.
    pub fn start(&mut self, host: Host) -> Result<()> {
        self.host = Some(host);
        if self.on_device {
            self.device = Some(FramesDevice::new::<M>(host, self.measure.values())?);
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

    /// Takes a sample and compares it with earlier ones. Returns its slot and the pairs compared.
    ///
    /// # Errors
    /// Returns an error if the box has changed, or the driver's error.
    ///
    /// # Safety
    /// The frame's view describes valid arrays of the run's device.
    pub unsafe fn sample(&mut self, frame: &Frame<'_>) -> Result<(u32, Vec<Pair>)> {
        let (Some(host), Some(which)) = (self.host, &self.which) else {
            return Err(Error::Run("`start` was not called".into()));
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
                "the box differs from that of the first sample, {x} × {y} × {z}; displacements need a constant box: \
     sample in a stage of constant volume"
            )));
        }
        let Some(items) = &self.items else { return Err(Error::Run("no particles are selected".into())) };
        let (slot, pairs) = self.schedule.next(frame.time());
        let settings = self.measure.settings(self.length);
        let change = M::FOLLOWS.then(|| self.follow.change(length));
        match &self.device {
            // SAFETY: the view describes arrays of the device (contract of this function)
            Some(d) => unsafe {
                d.sample(&call.state, items, slot, &pairs, M::VELOCITIES, self.drift, change, &settings)?;
            },
            None => {
                if M::FOLLOWS {
                    // SAFETY: on the CPU, the view describes host arrays (contract of this function)
                    unsafe { self.follow.advance(&call.state, length) };
                }
                // SAFETY: on the CPU, the view describes host arrays (contract of this function)
                self.here[slot as usize] =
                    unsafe { take::<M>(&host, &call.state, items, [length, call.tilt], &self.follow, self.drift) };
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

    /// Returns the selected particles or molecules, after the first sample.
    pub fn items(&self) -> Option<&Items> {
        self.items.as_ref()
    }

    /// Returns the box lengths at the first sample.
    pub fn length(&self) -> [f64; 3] {
        self.length
    }

    /// Returns the schedule of samples.
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

    /// Copies the sums to the host. Waits for the device.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn fetch(&mut self) -> Result<()> {
        match &self.device {
            Some(d) if self.items.is_some() => d.download_sums(&mut self.sums),
            _ => Ok(()),
        }
    }

    /// Returns the averages of all lags that have samples, in order. Call [`Self::fetch`] first.
    pub fn rows(&self) -> Vec<Row> {
        let Some(items) = &self.items else { return vec![] };
        let (species, values) = (self.species.len(), self.measure.values());
        let row = |lag: usize| {
            let origins = self.pairs[lag];
            let mean = |s: usize| {
                let norm = (items.count[s] * origins) as f64;
                let sums = &self.sums[(lag * species + s) * values..][..values];
                sums.iter().map(|x| if norm > 0.0 { x / norm } else { f64::NAN }).collect()
            };
            let time = self.times[lag] / origins as f64;
            Row { index: lag, lag: self.schedule.lag(lag), time, origins, means: (0..species).map(mean).collect() }
        };
        (0..self.pairs.len()).filter(|l| self.pairs[*l] > 0).map(row).collect()
    }

    /// Serializes the state for a checkpoint.
    ///
    /// # Errors
    /// Returns the driver's error.
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

    /// Stores a checkpoint, which [`Self::start`] restores.
    pub fn load(&mut self, state: &[u8]) {
        self.kept = state.to_vec();
    }
}

/// Takes a sample on the CPU, with the summation order of the kernels. The box has lengths and tilt factors.
///
/// # Safety
/// The view describes valid host arrays.
unsafe fn take<M: Measure>(
    host: &Host,
    s: &StateView,
    items: &Items,
    [length, tilt]: [[f64; 3]; 2],
    follow: &Follow,
    drift: bool,
) -> Vec<f64> {
    let n = s.n_local as usize;
    // SAFETY: the view describes valid host arrays (contract of this function)
    let index = unsafe { s.index_of_tag.slice(n) };
    let of = |tag: u32| -> ([f64; 3], f64) {
        let i = index[tag as usize] as usize;
        // SAFETY: the view describes valid host arrays, and `tag < n`
        unsafe {
            let [x, y, z, m] = s.velocity_mass(i);
            if M::VELOCITIES {
                return ([x, y, z], m);
            }
            let (r, more) = (positions::unwrapped(s, length, i), follow.of(tag));
            (to_space(std::array::from_fn(|k| r[k] + more[k]), tilt), m)
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
