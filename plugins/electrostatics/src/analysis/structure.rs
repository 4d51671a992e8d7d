//! Charge–charge structure factor.

use super::{charges, need_charges, other_analyzer};
use galamost_measure::pack::{Unpack, put};
use galamost_measure::{header, number, replace};
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::prelude::*;
use std::f64::consts::TAU;
use std::path::PathBuf;

/// Maximum number of wave vectors.
const MOST: usize = 200_000;

/// Measures the charge–charge structure factor S_ZZ(q) = ⟨|Σ z_i e^(i q·r_i)|²/N⟩, N the number of charged particles.
///
/// N is that of each sample: reactions may change charges. Samples without charged particles are left out of the mean; if there are no
/// others, S_ZZ is NaN.
///
/// q are all reciprocal-lattice vectors up to `q_max` (±q count once), in bins of width q_max/bins. `file` is a CSV table
/// with the columns `q` (mean |q| of the vectors in the bin, 1/length), `vectors` (their number) and `S_ZZ`. It is
/// replaced after each sample. For small q, S_ZZ → ⟨z²⟩ q²/κ² with the inverse screening length κ² = 4π l_B Σ z²/V in
/// an electrolyte that screens charges (Stillinger-Lovett); for large q, S_ZZ → ⟨z²⟩. The box must be constant from the first
/// sample on, which determines the vectors.
///
/// A sample costs N × (number of vectors) cosines on the CPU, so choose `every` accordingly. The system must have three dimensions.
///
/// Reference: J.-P. Hansen & I. R. McDonald, Theory of Simple Liquids, chapter 10.
///
/// ```ron
/// ChargeStructure(every: 100, file: "charge-structure.csv", q_max: 3.0, bins: 30)
/// ```
#[component(Analyzer, "ChargeStructure")]
#[derive(Params)]
pub struct ChargeStructure {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// First step to sample; samples are at multiples of `every`.
    #[param(default = 0)]
    start: u64,
    /// Output file.
    file: String,
    /// Largest wave number |q|.
    #[param(unit = "1/length", above = 0.0)]
    q_max: Spanned<f64>,
    /// Number of bins.
    #[param(default = 50, at_least = 1, at_most = 10_000)]
    bins: u32,
    #[param(skip)]
    path: PathBuf,
    #[param(skip)]
    host: Option<Host>,
    /// Box lengths at the first sample; 0 before it.
    #[param(skip)]
    length: [f64; 3],
    #[param(skip)]
    vectors: Vec<[i32; 3]>,
    /// Σ |ρ|²/N of each vector over samples.
    #[param(skip)]
    sums: Vec<f64>,
    /// Number of samples with charged particles.
    #[param(skip)]
    samples: f64,
}

/// Returns half of the reciprocal-lattice vectors up to `q_max`.
fn vectors(q_max: f64, length: [f64; 3]) -> Vec<[i32; 3]> {
    let most = length.map(|l| (q_max * l / TAU).floor() as i32);
    let mut found = vec![];
    for x in 0..=most[0] {
        for y in if x > 0 { -most[1] } else { 0 }..=most[1] {
            for z in if x > 0 || y > 0 { -most[2] } else { 1 }..=most[2] {
                if number_of([x, y, z], length) <= q_max {
                    found.push([x, y, z]);
                }
            }
        }
    }
    found
}

/// Returns |q|.
fn number_of(v: [i32; 3], length: [f64; 3]) -> f64 {
    (0..3).map(|k| (TAU * f64::from(v[k]) / length[k]).powi(2)).sum::<f64>().sqrt()
}

impl ChargeStructure {
    /// Checks the number of vectors in a box.
    fn check(&self, length: [f64; 3]) -> std::result::Result<(), String> {
        let about = self.q_max.value.powi(3) * length.iter().product::<f64>() / 118.0;
        let fits = (0.4..=MOST as f64).contains(&about);
        fits.then_some(())
            .ok_or_else(|| format!("about {about:.1e} wave vectors are below `q_max`, expected 1 … {MOST}"))
    }

    /// Sets the vectors of a box.
    fn choose(&mut self, length: [f64; 3]) -> Result<()> {
        self.check(length).map_err(Error::Run)?;
        self.length = length;
        self.vectors = vectors(self.q_max.value, length);
        self.sums = vec![0.0; self.vectors.len()];
        Ok(())
    }

    fn write(&self) -> Result<()> {
        let bins = self.bins as usize;
        let mut found = vec![[0.0; 3]; bins];
        for (v, s) in self.vectors.iter().zip(&self.sums) {
            let q = number_of(*v, self.length);
            let bin = &mut found[((q / self.q_max.value * bins as f64) as usize).min(bins - 1)];
            bin.iter_mut().zip([1.0, q, s / self.samples]).for_each(|(b, x)| *b += x);
        }
        let mut rows = vec![header(&["q", "vectors", "S_ZZ"])];
        for [n, q, s] in found.into_iter().filter(|b| b[0] > 0.0) {
            rows.push(vec![number(q / n), format!("{n:.0}"), number(s / n)]);
        }
        replace(&self.path, &rows)
    }
}

impl Analyzer for ChargeStructure {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if system.dimensions == 2 {
            return Err(Error::input("requires a three-dimensional system; this one is two-dimensional"));
        }
        need_charges(system, needs)?;
        needs.sample(self.every, self.start);
        needs.constant_box = true;
        needs.plain_images = true;
        self.check(system.box_length).map_err(|text| InputError::at(self.q_max.at, text))?;
        self.path = needs.output(system, &self.file, OutputKind::Result);
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.host = Some(host);
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Some(host) = self.host.filter(|_| frame.step() >= self.start) else { return Ok(()) };
        if self.length == [0.0; 3] {
            self.choose(frame.box_length())?;
        }
        if frame.box_length() != self.length {
            let message = "the box differs from that of the first sample; the charge structure factor needs a constant box: sample in a stage of constant volume";
            return Err(Error::Run(message.into()));
        }
        let (position, charges, length) = (frame.position(), charges(frame)?, self.length);
        let charged = charges.iter().filter(|z| **z != 0.0).count() as f64;
        if charged == 0.0 {
            return self.write();
        }
        let (vectors, sums) = (&self.vectors, DevicePtr::<f64>::new(self.sums.as_mut_ptr() as u64));
        host.parallel(vectors.len(), 16, |range| {
            for w in range {
                let q: [f64; 3] = std::array::from_fn(|k| TAU * f64::from(vectors[w][k]) / length[k]);
                let (mut re, mut im) = (0.0, 0.0);
                for (r, z) in position.iter().zip(charges).filter(|(_, z)| **z != 0.0) {
                    let (sin, cos) = (q[0] * r[0] + q[1] * r[1] + q[2] * r[2]).sin_cos();
                    re += z * cos;
                    im += z * sin;
                }
                // SAFETY: each vector has its own element of `sums`, which outlives all tasks
                unsafe { *sums.host().add(w) += (re * re + im * im) / charged };
            }
        });
        self.samples += 1.0;
        self.write()
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        if self.length == [0.0; 3] {
            return Ok(vec![]);
        }
        let mut out = vec![];
        put(&mut out, &[self.samples]);
        put(&mut out, &self.length);
        put(&mut out, &self.sums);
        Ok(out)
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let mut from = Unpack(state);
        // sums of earlier versions, which are not divided by N, have no length before them
        let samples = from.row_of::<f64>(1).map_err(|_| {
            let message = "the checkpoint is that of an earlier version or of another analyzer; start the run again, or remove the analyzer";
            Error::Run(message.into())
        })?;
        let length = from.row_of::<f64>(3)?;
        self.choose([length[0], length[1], length[2]]).map_err(|_| other_analyzer())?;
        self.sums = from.row_of(self.sums.len())?;
        self.samples = samples[0];
        from.end()
    }
}
