//! Fourier transforms of a real grid on the CPU.
//!
//! `rustfft` transforms lines; two real lines along x are one complex line. The planner without vector extensions gives the
//! same bits on every machine.

use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::prelude::*;
use rustfft::num_complex::Complex64;
use rustfft::{Fft, FftPlannerScalar};
use std::sync::Arc;

/// Lines that are transformed together along y and z.
const LINES: usize = 8;

/// Transforms of a grid of these sizes. A real grid has the value of (x, y, z) at (z ny + y) nx + x, its transform that of
/// wave (x, y, z), x ≤ nx/2, at (z ny + y)(nx/2 + 1) + x.
pub struct Transform {
    n: [usize; 3],
    forward: [Arc<dyn Fft<f64>>; 3],
    inverse: [Arc<dyn Fft<f64>>; 3],
}

/// An address that tasks share; each writes its own elements.
fn shared<T>(data: &mut [T]) -> DevicePtr<T> {
    DevicePtr::new(data.as_mut_ptr() as u64)
}

impl Transform {
    pub fn new(n: [usize; 3]) -> Self {
        let mut planner = FftPlannerScalar::new();
        Self { n, forward: n.map(|n| planner.plan_fft_forward(n)), inverse: n.map(|n| planner.plan_fft_inverse(n)) }
    }

    /// Returns the number of stored waves along x.
    pub fn half(&self) -> usize {
        self.n[0] / 2 + 1
    }

    /// Transforms a real grid: out(k) = Σ grid(r) exp(−ikr).
    pub fn forward(&self, host: &Host, grid: &[f64], out: &mut Vec<Complex64>) {
        let ([nx, ny, nz], half) = (self.n, self.half());
        out.resize(half * ny * nz, Complex64::default());
        let to = shared(out);
        let rows = ny * nz;
        host.parallel(rows.div_ceil(2), 16, |pairs| {
            let mut line = vec![Complex64::default(); nx];
            let mut scratch = vec![Complex64::default(); self.forward[0].get_inplace_scratch_len()];
            for pair in pairs {
                let [a, b] = [2 * pair, 2 * pair + 1];
                for (x, value) in line.iter_mut().enumerate() {
                    *value = Complex64::new(grid[a * nx + x], if b < rows { grid[b * nx + x] } else { 0.0 });
                }
                self.forward[0].process_with_scratch(&mut line, &mut scratch);
                for x in 0..half {
                    let (p, m) = (line[x], line[(nx - x) % nx].conj());
                    let (first, second) = (0.5 * (p + m), 0.5 * (p - m));
                    // SAFETY: each pair writes its own rows of `out`, which outlives all tasks
                    unsafe {
                        *to.host().add(a * half + x) = first;
                        if b < rows {
                            *to.host().add(b * half + x) = Complex64::new(second.im, -second.re);
                        }
                    }
                }
            }
        });
        self.along(host, 1, &self.forward[1], to);
        self.along(host, 2, &self.forward[2], to);
    }

    /// Transforms back without a factor: grid(r) = Σ_k waves(k) exp(ikr). Overwrites `waves`.
    pub fn inverse(&self, host: &Host, waves: &mut [Complex64], grid: &mut [f64]) {
        let ([nx, ny, nz], half) = (self.n, self.half());
        let from = shared(waves);
        self.along(host, 2, &self.inverse[2], from);
        self.along(host, 1, &self.inverse[1], from);
        let to = shared(grid);
        let rows = ny * nz;
        host.parallel(rows.div_ceil(2), 16, |pairs| {
            let mut line = vec![Complex64::default(); nx];
            let mut scratch = vec![Complex64::default(); self.inverse[0].get_inplace_scratch_len()];
            for pair in pairs {
                let [a, b] = [2 * pair, 2 * pair + 1];
                for x in 0..half {
                    // SAFETY: rows of `waves`, which no task writes now
                    let (first, second) = unsafe {
                        let second = if b < rows { *from.host().add(b * half + x) } else { Complex64::default() };
                        (*from.host().add(a * half + x), second)
                    };
                    line[x] = Complex64::new(first.re - second.im, first.im + second.re);
                    if x > 0 && 2 * x < nx {
                        line[nx - x] = Complex64::new(first.re + second.im, second.re - first.im);
                    }
                }
                self.inverse[0].process_with_scratch(&mut line, &mut scratch);
                for (x, value) in line.iter().enumerate() {
                    // SAFETY: each pair writes its own rows of `grid`, which outlives all tasks
                    unsafe {
                        *to.host().add(a * nx + x) = value.re;
                        if b < rows {
                            *to.host().add(b * nx + x) = value.im;
                        }
                    }
                }
            }
        });
    }

    /// Transforms all lines along y (axis 1) or z (axis 2).
    fn along(&self, host: &Host, axis: usize, fft: &Arc<dyn Fft<f64>>, data: DevicePtr<Complex64>) {
        let ([_, ny, nz], half) = (self.n, self.half());
        let n = self.n[axis];
        // lines of a plane start at consecutive elements
        let (planes, stride, plane) = if axis == 1 { (nz, half, ny * half) } else { (ny, ny * half, half) };
        host.parallel(planes, 1, |range| {
            let mut block = vec![Complex64::default(); LINES * n];
            let mut scratch = vec![Complex64::default(); fft.get_inplace_scratch_len()];
            for p in range {
                for first in (0..half).step_by(LINES) {
                    let lines = LINES.min(half - first);
                    // SAFETY: the lines of tasks are disjoint, and `data` outlives all tasks
                    let at = |k: usize, l: usize| unsafe { data.host().add(p * plane + k * stride + first + l) };
                    for k in 0..n {
                        for l in 0..lines {
                            // SAFETY: k < n and l < lines, so the element belongs to a line of this task; lines of tasks are disjoint, and `data`
                            // outlives all tasks
                            block[l * n + k] = unsafe { *at(k, l) };
                        }
                    }
                    fft.process_with_scratch(&mut block[..lines * n], &mut scratch);
                    for k in 0..n {
                        for l in 0..lines {
                            // SAFETY: k < n and l < lines, so the element belongs to a line of this task; lines of tasks are disjoint, and `data`
                            // outlives all tasks
                            unsafe { *at(k, l) = block[l * n + k] };
                        }
                    }
                }
            }
        });
    }
}
