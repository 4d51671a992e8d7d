//! The sum over waves on the CPU.

use super::plan::Waves;
use crate::correction::{CHUNK, Fourier, add_forces};
use crate::params::Model;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::prelude::*;
use std::f64::consts::TAU;

/// Number of particles that are added lane by lane.
const LANES: usize = 8;

/// Powers exp(2πi m x/L) of all particles: `cos[m·n + i]` and `sin`, for m from 0.
#[derive(Default)]
struct Powers {
    cos: Vec<f64>,
    sin: Vec<f64>,
}

impl Powers {
    fn fill(&mut self, n: usize, most: usize, first: impl Fn(usize) -> f64) {
        self.cos.resize((most + 1) * n, 1.0);
        self.sin.resize((most + 1) * n, 0.0);
        if most > 0 {
            for i in 0..n {
                (self.sin[n + i], self.cos[n + i]) = first(i).sin_cos();
            }
        }
        for m in 2..=most {
            for i in 0..n {
                let (a, b) = (self.cos[(m - 1) * n + i], self.sin[(m - 1) * n + i]);
                let (c, s) = (self.cos[n + i], self.sin[n + i]);
                self.cos[m * n + i] = a * c - b * s;
                self.sin[m * n + i] = a * s + b * c;
            }
        }
    }
    /// Returns cos and sin of the power m of the particles in `range`, and the sign of sin.
    fn of(&self, m: i32, n: usize, range: std::ops::Range<usize>) -> (&[f64], &[f64], f64) {
        let at = m.unsigned_abs() as usize * n;
        let range = at + range.start..at + range.end;
        (&self.cos[range.clone()], &self.sin[range], if m < 0 { -1.0 } else { 1.0 })
    }
}

/// Tables of the sum.
pub struct CpuSum {
    waves: Waves,
    powers: [Powers; 3],
    charge: Vec<f64>,
    field: Vec<[f64; 4]>,
}

/// Returns the factor 4π C χ/(k² V) of a wave vector, and 2(factor/k² − 4π C χ'/(k² V)), where χ' is dχ/d(k²).
fn factors(model: &Model, k: [f64; 3], volume: f64) -> (f64, f64) {
    let k2: f64 = k.iter().map(|k| k * k).sum();
    let (chi, slope) = model.split.transform(k2);
    let one = 2.0 * TAU * model.coulomb / (k2 * volume);
    (one * chi, 2.0 * one * (chi / k2 + slope))
}

impl CpuSum {
    pub fn new(waves: Waves) -> Self {
        Self { waves, powers: Default::default(), charge: vec![], field: vec![] }
    }

    /// Adds forces, and energies and virials if requested.
    ///
    /// # Errors
    /// Returns the error of [`add_forces`].
    ///
    /// # Safety
    /// The views describe valid host arrays.
    pub unsafe fn compute(&mut self, model: &Model, host: &Host, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let state = &call.state;
        let n = state.n_local as usize;
        // SAFETY: `globals` is valid by the contract of this function
        let length = unsafe { (*state.globals.host()).box_length };
        for (axis, powers) in self.powers.iter_mut().enumerate() {
            let most = self.waves.vectors.iter().map(|v| v[axis].unsigned_abs()).max().unwrap_or(0);
            // SAFETY: `i` < n_local, and the arrays are valid by the contract of this function
            powers.fill(n, most as usize, |i| unsafe { TAU * state.position(i)[axis] / length[axis] });
        }
        self.charge.clear();
        // SAFETY: `i` < n_local, and the arrays are valid by the contract of this function
        self.charge.extend((0..n).map(|i| unsafe { state.charge_of(i) }));
        let structure = self.structure_factors(host, n);
        let virial = self.virial(model, &structure, length);
        self.fields(model, host, &structure, length);
        let fourier = Fourier { field: &self.field, virial };
        // SAFETY: the contract of this function is passed on
        unsafe { add_forces(model, host, call, &fourier, sums) }
    }

    /// Returns Σ q exp(ikr) of each wave. Each sum is taken over the particles in order.
    fn structure_factors(&self, host: &Host, n: usize) -> Vec<[f64; 2]> {
        let mut structure = vec![[0.0f64; 2]; self.waves.vectors.len()];
        let out = DevicePtr::<[f64; 2]>::new(structure.as_mut_ptr() as u64);
        host.parallel(self.waves.groups.len() - 1, 1, |groups| {
            let (mut re, mut im) = (vec![0.0; n], vec![0.0; n]);
            for g in groups {
                let range = self.waves.groups[g]..self.waves.groups[g + 1];
                let [x, y, _] = self.waves.vectors[range.start];
                self.plane([x, y], n, 0..n, Some(&self.charge), (&mut re, &mut im));
                for k in range {
                    let (cos, sin, sign) = self.powers[2].of(self.waves.vectors[k][2], n, 0..n);
                    let mut sum = [[0.0; LANES]; 2];
                    for first in (0..n).step_by(LANES) {
                        for i in first..(first + LANES).min(n) {
                            sum[0][i - first] += re[i] * cos[i] - sign * im[i] * sin[i];
                            sum[1][i - first] += im[i] * cos[i] + sign * re[i] * sin[i];
                        }
                    }
                    // SAFETY: each group writes its own waves of `structure`, which outlives all tasks
                    unsafe { *out.host().add(k) = sum.map(|s| s.iter().sum()) };
                }
            }
        });
        structure
    }

    /// Sets (re, im) to exp(i(k_x x + k_y y)) of the particles in `range`, times their charges if given.
    fn plane(
        &self,
        [x, y]: [i32; 2],
        n: usize,
        range: std::ops::Range<usize>,
        charge: Option<&[f64]>,
        (re, im): (&mut [f64], &mut [f64]),
    ) {
        let (cx, sx, _) = self.powers[0].of(x, n, range.clone());
        let (cy, sy, sign) = self.powers[1].of(y, n, range);
        for i in 0..cx.len() {
            let q = charge.map_or(1.0, |q| q[i]);
            re[i] = q * (cx[i] * cy[i] - sign * sx[i] * sy[i]);
            im[i] = q * (sx[i] * cy[i] + sign * cx[i] * sy[i]);
        }
    }

    fn virial(&self, model: &Model, structure: &[[f64; 2]], length: [f64; 3]) -> [f64; 6] {
        let volume: f64 = length.iter().product();
        let mut virial = [0.0; 6];
        for (v, s) in self.waves.vectors.iter().zip(structure) {
            let k: [f64; 3] = std::array::from_fn(|a| TAU * f64::from(v[a]) / length[a]);
            let (factor, slope) = factors(model, k, volume);
            let square = s[0] * s[0] + s[1] * s[1];
            for (slot, (a, b)) in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)].into_iter().enumerate() {
                virial[slot] += square * (f64::from(u8::from(a == b)) * factor - slope * k[a] * k[b]);
            }
        }
        virial
    }

    /// Computes field and potential at each particle.
    fn fields(&mut self, model: &Model, host: &Host, structure: &[[f64; 2]], length: [f64; 3]) {
        let n = self.charge.len();
        let volume: f64 = length.iter().product();
        let mut field = std::mem::take(&mut self.field);
        field.resize(n, [0.0; 4]);
        let out = DevicePtr::<[f64; 4]>::new(field.as_mut_ptr() as u64);
        host.parallel(n, CHUNK, |range| {
            let size = range.len();
            let (mut re, mut im) = ([0.0; CHUNK], [0.0; CHUNK]);
            let mut sum = [[0.0; CHUNK]; 4];
            for g in self.waves.groups.windows(2) {
                let [x, y, _] = self.waves.vectors[g[0]];
                self.plane([x, y], n, range.clone(), None, (&mut re, &mut im));
                for (v, s) in self.waves.vectors[g[0]..g[1]].iter().zip(&structure[g[0]..g[1]]) {
                    let k: [f64; 3] = std::array::from_fn(|a| TAU * f64::from(v[a]) / length[a]);
                    let factor = 2.0 * factors(model, k, volume).0;
                    let [a, b] = s.map(|s| factor * s);
                    let (cos, sin, sign) = self.powers[2].of(v[2], n, range.clone());
                    for i in 0..size {
                        let (c, s) = (re[i] * cos[i] - sign * im[i] * sin[i], im[i] * cos[i] + sign * re[i] * sin[i]);
                        let wave = a * s - b * c;
                        sum[0][i] += k[0] * wave;
                        sum[1][i] += k[1] * wave;
                        sum[2][i] += k[2] * wave;
                        sum[3][i] += a * c + b * s;
                    }
                }
            }
            for (k, i) in range.enumerate() {
                // SAFETY: the ranges of tasks are disjoint, and `field` outlives all tasks
                unsafe { *out.host().add(i) = [0, 1, 2, 3].map(|c| sum[c][k]) };
            }
        });
        self.field = field;
    }
}
