//! Ionic conductivity.

use super::{charges, need_charges};
use galamost_measure::{bytes, header, number, numbers, replace};
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

/// Numbers of a sample: the collective displacement Σ q r, the current Σ q v.
type Sample = [[f64; 3]; 2];

/// Measures the ionic conductivity from the fluctuations of the current J = Σ q v and the displacement P = Σ q r of all
/// charges.
///
/// `file` is a CSV table that is replaced after each sample:
///
/// | column | meaning |
/// |---|---|
/// | `lag`, `time` | lag in steps and in time units |
/// | `origins` | number of origins; they overlap |
/// | `displacement2` | ⟨|P(t₀ + t) − P(t₀)|²⟩ |
/// | `current` | ⟨J(t₀)·J(t₀ + t)⟩ |
/// | `einstein` | conductivity ⟨|ΔP|²⟩/(6 V kT t) |
/// | `green_kubo` | conductivity (1/3VkT) ∫⟨J·J⟩ dt up to this lag, trapezoidal rule |
///
/// Both conductivities agree for lags beyond the decay of the current, where `displacement2` grows linearly, if `every` is
/// short compared with that decay. Units: charge²/(energy length time). Positions are unwrapped by images, so the box must
/// be constant. Charges must be constant, too, because a change of charge is not transport but would change P: the check refuses
/// an updater that may change them (`Reactions` with `charges`) in the stages that it samples. P and J are those in the frame of the box; use a thermostat that conserves momentum, or `ZeroMomentum`.
/// The system must have three dimensions.
///
/// Reference: J.-P. Hansen & I. R. McDonald, Theory of Simple Liquids, section 10.5.
///
/// ```ron
/// Conductivity(every: 5, file: "conductivity.csv", kT: 1.0, lags: 100)
/// ```
#[component(Analyzer, "Conductivity")]
#[derive(Params)]
pub struct Conductivity {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// First step to sample; samples are at multiples of `every`.
    #[param(default = 0)]
    start: u64,
    /// Output file.
    file: String,
    /// Temperature.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: f64,
    /// Longest lag in samples.
    #[param(default = 200, at_least = 2, at_most = 100_000)]
    lags: u32,
    #[param(skip)]
    path: PathBuf,
    /// Volume at the first sample.
    #[param(skip)]
    volume: f64,
    /// Time of the last sample, and between samples.
    #[param(skip)]
    time: f64,
    #[param(skip)]
    interval: f64,
    /// The last samples, oldest first.
    #[param(skip)]
    last: Vec<Sample>,
    /// For each lag: number of origins, Σ |ΔP|², Σ J·J.
    #[param(skip)]
    sums: Vec<[f64; 3]>,
}

impl Conductivity {
    fn add(&mut self, now: Sample) {
        if self.last.len() == self.sums.len() {
            self.last.remove(0);
        }
        self.last.push(now);
        for (lag, then) in self.last.iter().rev().enumerate() {
            let sum = &mut self.sums[lag];
            sum[0] += 1.0;
            sum[1] += (0..3).map(|k| (now[0][k] - then[0][k]).powi(2)).sum::<f64>();
            sum[2] += (0..3).map(|k| now[1][k] * then[1][k]).sum::<f64>();
        }
    }

    fn write(&self) -> Result<()> {
        let names = ["lag", "time", "origins", "displacement2", "current", "einstein", "green_kubo"];
        let mut rows = vec![header(&names)];
        let scale = 1.0 / (self.volume * self.kt);
        let step = self.interval;
        let (mut integral, mut before) = (0.0, None);
        for (lag, [n, square, current]) in self.sums.iter().enumerate().filter(|(_, s)| s[0] > 0.0) {
            let (time, square, current) = (lag as f64 * step, square / n, current / n);
            integral += before.map_or(0.0, |b: f64| 0.5 * (b + current) * step);
            before = Some(current);
            let einstein = if lag > 0 { scale * square / (6.0 * time) } else { 0.0 };
            let mut row = vec![(lag as u64 * self.every).to_string(), number(time), format!("{n:.0}")];
            row.extend([square, current, einstein, scale * integral / 3.0].map(number));
            rows.push(row);
        }
        replace(&self.path, &rows)
    }
}

impl Analyzer for Conductivity {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if system.dimensions == 2 {
            return Err(Error::input("requires a three-dimensional system; this one is two-dimensional"));
        }
        need_charges(system, needs)?;
        needs.sample(self.every, self.start);
        (needs.lags, needs.constant_box) = (true, true);
        (needs.plain_images, needs.constant_charges) = (true, true);
        self.path = needs.output(system, &self.file, OutputKind::Result);
        self.sums = vec![[0.0; 3]; self.lags as usize + 1];
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        if frame.step() < self.start {
            return Ok(());
        }
        let length = frame.box_length();
        if self.last.is_empty() {
            self.volume = length.iter().product();
        } else if self.interval == 0.0 {
            self.interval = frame.time() - self.time;
        }
        self.time = frame.time();
        if (length.iter().product::<f64>() / self.volume - 1.0).abs() > 1e-12 {
            return Err(Error::Run("the box has changed; the conductivity needs a constant box".into()));
        }
        let mut now = [[0.0; 3]; 2];
        let particles = frame.position().iter().zip(frame.image()).zip(frame.velocity()).zip(charges(frame)?);
        for (((r, image), v), q) in particles {
            for k in 0..3 {
                now[0][k] += q * (r[k] + length[k] * f64::from(image[k]));
                now[1][k] += q * v[k];
            }
        }
        self.add(now);
        self.write()
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        let last: Vec<f64> = self.last.iter().flatten().flatten().copied().collect();
        let head = [self.last.len() as f64, self.volume, self.time, self.interval];
        Ok([bytes(&head), bytes(&last), bytes(self.sums.as_flattened())].concat())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let (head, rest) = numbers(state, 4)?;
        let (last, rest) = numbers(rest, 6 * head[0] as usize)?;
        (self.volume, self.time, self.interval) = (head[1], head[2], head[3]);
        let (sums, rest) = numbers(rest, 3 * self.sums.len())?;
        if !rest.is_empty() {
            return Err(super::other_analyzer());
        }
        self.last = last.as_chunks::<6>().0.iter().map(|s| [[s[0], s[1], s[2]], [s[3], s[4], s[5]]]).collect();
        self.sums = sums.as_chunks::<3>().0.to_vec();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_current_has_a_square_displacement() {
        let mut c = Conductivity {
            every: 2,
            start: 0,
            file: "c.csv".into(),
            kt: 1.0,
            lags: 4,
            path: PathBuf::new(),
            volume: 1.0,
            time: 0.0,
            interval: 0.1,
            last: vec![],
            sums: vec![[0.0; 3]; 5],
        };
        for k in 0..10 {
            c.add([[0.5 * f64::from(k), 0.0, 0.0], [1.0, 0.0, 0.0]]);
        }
        for (lag, [n, square, current]) in c.sums.iter().enumerate() {
            assert_eq!(*n, 10.0 - lag as f64);
            assert!((square / n - (0.5 * lag as f64).powi(2)).abs() < 1e-12 && (current / n - 1.0).abs() < 1e-12);
        }
    }
}
