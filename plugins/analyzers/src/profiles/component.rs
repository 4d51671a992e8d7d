//! The `Profile` analyzer.

use crate::profiles::geometry::Geometry;
use crate::selection::particle_type;
use galamost_measure::{bytes, header, number, numbers, replace};
use galamost_plugin_api::memory;
use galamost_plugin_api::prelude::*;
use std::f64::consts::TAU;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Measures density, velocity, and temperature profiles along an axis or a radius.
///
/// `geometry` divides the box into slabs, into shells around the origin (`Sphere`), or into shells around an axis
/// through the origin (`Cylinder`). `file` is a CSV table that is replaced after each sample. Averages include all
/// samples so far.
///
/// | column | meaning |
/// |---|---|
/// | `position` | center of the bin: −L/2 … L/2 for slabs, or the radius |
/// | `density`, `density_A` | number density (1/volume) of all particles and of each type |
/// | `mass_density` | mass density (mass/volume) |
/// | `velocity_x` … `velocity_z` | Σ m v/Σ m (velocity) |
/// | `kT`, `kT_x` … `kT_z` | Σ m (v − ⟨v⟩)²/(d (n − 1)) (energy), n = number of particles with mass, ⟨v⟩ = mean velocity of the bin; also for each axis |
/// | `samples` | number of particles counted |
///
/// Bins without particles have density 0 and NaN for all averages over particles. If the box changes, bins scale with
/// it, and positions refer to its last size. Shells with an explicit `r_max` do not scale, and the run ends with an error if a
/// box length falls below 2 `r_max`. `kT` does not know constraints: divide it by the fraction of degrees of freedom that
/// they leave.
///
/// `center` moves the origin in each sample to the center of the particles of these types. For a periodic axis, this
/// center is the angle of Σ exp(2πi x/L). The profile of a droplet or a layer then stays centered while it drifts. A sample without
/// any particle of these types is an error.
///
/// ```ron
/// Profile(every: 100, file: "profile.csv", geometry: Slabs(axis: Z), bins: 40)
/// ```
#[component(Analyzer, "Profile")]
#[derive(Params)]
pub struct Profile {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// First step to sample; samples are at multiples of `every`.
    #[param(default = 0)]
    start: u64,
    /// Output file.
    file: String,
    /// Bins: `Slabs(axis: Z)`, `Sphere(r_max: r)`, or `Cylinder(axis: Z, r_max: r)`; default `r_max`: half of the
    /// shortest box length involved.
    geometry: Spanned<Geometry>,
    /// Number of bins.
    #[param(default = 100, at_least = 1, at_most = 100_000)]
    bins: u32,
    /// Origin of slabs and shells.
    #[param(unit = "length", default = [0.0, 0.0, 0.0])]
    origin: [f64; 3],
    /// Types whose center is the origin of each sample; `origin` is added to it.
    center: Option<Vec<Spanned<String>>>,
    #[param(skip)]
    types: Vec<String>,
    #[param(skip)]
    middle: Vec<bool>,
    #[param(skip)]
    dimensions: u32,
    #[param(skip)]
    path: PathBuf,
    #[param(skip)]
    host: Option<Host>,
    /// Box lengths at the last sample.
    #[param(skip)]
    length: [f64; 3],
    /// For each bin: Σ n/volume and Σ m/volume over samples, n, Σ m, Σ m v (3), Σ m v² (3), number with mass, Σ n/volume for each type.
    #[param(skip)]
    sums: Vec<f64>,
    #[param(skip)]
    samples: f64,
}

/// Sums of a bin that precede those for the types.
const COMMON: usize = 11;
/// Maximum number of chunks of particles; sums of chunks are added in order.
const CHUNKS: usize = 64;

impl Profile {
    fn width(&self) -> usize {
        COMMON + self.types.len()
    }

    /// Returns the origin for a frame.
    fn zero(&self, frame: &Frame<'_>) -> [f64; 3] {
        if !self.middle.contains(&true) {
            return self.origin;
        }
        let length = frame.box_length();
        std::array::from_fn(|k| {
            if length[k] <= 0.0 {
                return self.origin[k];
            }
            let chosen = frame.position().iter().zip(frame.type_id()).filter(|(_, t)| self.middle[**t as usize]);
            let (s, c) = chosen
                .map(|(p, _)| (TAU * p[k] / length[k]).sin_cos())
                .fold((0.0, 0.0), |(s, c), (y, x)| (s + y, c + x));
            self.origin[k] + length[k] * f64::atan2(s, c) / TAU
        })
    }

    fn sample(&mut self, host: &Host, frame: &Frame<'_>) {
        let width = self.width();
        let bins = self.geometry.value.bins(frame.box_length(), self.dimensions, self.bins as usize);
        let zero = self.zero(frame);
        let volume: Vec<f64> = (0..self.bins as usize).map(|b| bins.volume(b)).collect();
        let chunks = Mutex::new(vec![]);
        let (position, velocity, mass, kind) = (frame.position(), frame.velocity(), frame.mass(), frame.type_id());
        host.parallel(position.len(), position.len().div_ceil(CHUNKS).max(4096), |range| {
            let mut sums = vec![0.0; width * volume.len()];
            for i in range.clone() {
                let Some(bin) = bins.of(std::array::from_fn(|k| position[i][k] - zero[k])) else { continue };
                let (s, v, m) = (&mut sums[bin * width..(bin + 1) * width], velocity[i], mass[i]);
                let share = 1.0 / volume[bin];
                s[0] += share;
                s[1] += m * share;
                s[2] += 1.0;
                s[3] += m;
                for k in 0..3 {
                    s[4 + k] += m * v[k];
                    s[7 + k] += m * v[k] * v[k];
                }
                s[10] += f64::from(m > 0.0);
                s[COMMON + kind[i] as usize] += share;
            }
            chunks.lock().unwrap_or_else(PoisonError::into_inner).push((range.start, sums));
        });
        let mut chunks = chunks.into_inner().unwrap_or_else(PoisonError::into_inner);
        chunks.sort_by_key(|(start, _)| *start);
        for (_, sums) in chunks {
            self.sums.iter_mut().zip(sums).for_each(|(total, s)| *total += s);
        }
        self.samples += 1.0;
        self.length = frame.box_length();
    }

    fn write(&self) -> Result<()> {
        let names = ["mass_density", "velocity_x", "velocity_y", "velocity_z", "kT", "kT_x", "kT_y", "kT_z", "samples"];
        let mut head = header(&["position", "density"]);
        head.extend(self.types.iter().map(|t| format!("density_{t}")));
        head.extend(header(&names));
        let mut rows = vec![head];
        let bins = self.geometry.value.bins(self.length, self.dimensions, self.bins as usize);
        let d = self.dimensions as usize;
        for (bin, s) in self.sums.chunks_exact(self.width()).enumerate() {
            let mut row = vec![number(bins.middle(bin)), number(s[0] / self.samples)];
            row.extend(s[COMMON..].iter().map(|x| number(x / self.samples)));
            row.push(number(s[1] / self.samples));
            row.extend((4..7).map(|k| number(s[k] / s[3])));
            let kt: Vec<f64> = (0..3).map(|k| (s[7 + k] - s[4 + k] * s[4 + k] / s[3]) / (s[10] - 1.0)).collect();
            row.push(number(kt[..d].iter().sum::<f64>() / d as f64));
            row.extend(kt.into_iter().map(number));
            row.push(format!("{:.0}", s[2]));
            rows.push(row);
        }
        replace(&self.path, &rows)
    }
}

impl Analyzer for Profile {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        let mut errors = Errors::default();
        if let Err(message) = self.geometry.value.check(system) {
            errors.push(InputError::at(self.geometry.at, message));
        }
        self.middle = vec![false; system.types.len()];
        for name in self.center.iter().flatten() {
            match particle_type(&name.value, name.at, system) {
                Ok(i) => self.middle[i] = true,
                Err(error) => errors.push(error),
            }
        }
        if self.center.as_ref().is_some_and(Vec::is_empty) {
            errors.push(InputError::at(self.geometry.at, "`center` is empty; list at least one type or remove it"));
        }
        self.types = system.types.clone();
        // the sums, and those of the chunks of one sample
        let (bins, columns) = (f64::from(self.bins), self.width());
        let bytes = 8.0 * bins * columns as f64 * (CHUNKS + 1) as f64;
        if let Err(message) = memory::require(format_args!("{bins} bins of {columns} sums"), bytes) {
            errors.push(InputError::at(self.geometry.at, message));
        }
        errors.into_result(Some(()))?;
        needs.sample(self.every, self.start);
        needs.plain_images = self.geometry.value.crosses_y(self.origin, self.center.is_some());
        needs.wants.particles = true;
        self.dimensions = system.dimensions;
        self.path = needs.output(system, &self.file, OutputKind::Result);
        self.sums = vec![0.0; self.width() * self.bins as usize];
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.host = Some(host);
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Some(host) = self.host.filter(|_| frame.step() >= self.start) else { return Ok(()) };
        self.geometry.value.check_box(frame.box_length(), self.dimensions).map_err(Error::Run)?;
        if self.middle.contains(&true) && !frame.type_id().iter().any(|t| self.middle[*t as usize]) {
            let message = "no particle has a type in `center`, so the profile has no center; list types with particles";
            return Err(Error::Run(message.into()));
        }
        self.sample(&host, frame);
        self.write()
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        Ok([bytes(&[self.samples]), bytes(&self.length), bytes(&self.sums)].concat())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let (head, rest) = numbers(state, 4)?;
        let (sums, rest) = numbers(rest, self.sums.len())?;
        if !rest.is_empty() {
            return Err(Error::Run("the checkpoint belongs to another analyzer".into()));
        }
        self.samples = head[0];
        self.length = [head[1], head[2], head[3]];
        self.sums = sums;
        Ok(())
    }
}
