//! Fields in Fourier space, by products with a real matrix along each axis.
//!
//! The matrix is cas(2πjk/n)/√n with cas x = cos x + sin x (Hartley): symmetric and its own inverse. In the products of
//! three of these functions, whatever depends on squares of the wave numbers alone is diagonal, which a Gaussian and 1/k² are.
//! A grid of any size needs n multiplications for each vertex and axis, in a fixed order; for the grids of this method
//! that is little beside a step.

use crate::law::Law;
use galamost_plugin_api::prelude::*;
use std::f64::consts::{PI, TAU};

/// Numbers of one task, about.
const TASK: usize = 8192;

/// cas(2πjk/n)/√n at j·n + k.
pub fn matrix(n: usize) -> Vec<f64> {
    let at = |m: usize| {
        let x = TAU * (m % n) as f64 / n as f64;
        (x.cos() + x.sin()) / (n as f64).sqrt()
    };
    (0..n * n).map(|m| at((m / n) * (m % n))).collect()
}

/// What a mode is multiplied with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mode {
    /// Wave numbers along the axes.
    pub k: [f64; 3],
    /// The filter, twice.
    pub filter: f64,
    /// Field of charges of density 1.
    pub green: f64,
    /// d ln(filter)/d(k²) and d ln(green)/d(k²), both negated.
    pub slopes: [f64; 2],
}

/// The factors of the mode with these numbers along the axes.
pub fn mode(law: &Law, length: [f64; 3], number: [usize; 3]) -> Mode {
    let k: [f64; 3] = std::array::from_fn(|a| {
        let (m, n) = (number[a], law.grid[a]);
        TAU * (if 2 * m > n { m as f64 - n as f64 } else { m as f64 }) / length[a]
    });
    let k2: f64 = k.iter().map(|k| k * k).sum();
    let sigma2 = law.sigma * law.sigma;
    let mut mode = Mode { k, filter: (-sigma2 * k2).exp(), slopes: [sigma2, 0.0], ..Mode::default() };
    if let Some(c) = law.charges.filter(|_| k2 > 0.0) {
        let width = 0.25 / (c.alpha * c.alpha);
        mode.green = 4.0 * PI * c.coulomb / k2 * (-width * k2).exp();
        mode.slopes[1] = 1.0 / k2 + width;
    }
    mode
}

/// Transforms each of the grids in `data`; its own inverse.
pub fn transform(law: &Law, matrices: &[Vec<f64>; 3], host: &Host, data: &mut Vec<f64>) {
    let [nx, ny, _] = law.grid;
    for (axis, stride) in [1, nx, nx * ny].into_iter().enumerate() {
        let (n, c) = (law.grid[axis], &matrices[axis]);
        let mut out = vec![0.0; data.len()];
        let to = galamost_plugin_api::device::DevicePtr::<f64>::new(out.as_mut_ptr() as u64);
        let from = &*data;
        // lines of this axis that lie side by side are one task
        host.parallel(data.len() / (n * stride), (TASK / (n * stride)).max(1), |blocks| {
            for block in blocks {
                let start = block * n * stride;
                let from = &from[start..start + n * stride];
                // SAFETY: every block is its own part of `out`, which lives until all are done
                let to = unsafe { std::slice::from_raw_parts_mut(to.host().add(start), n * stride) };
                for (k, to) in to.chunks_exact_mut(stride).enumerate() {
                    for (from, factor) in from.chunks_exact(stride).zip(&c[k * n..]) {
                        to.iter_mut().zip(from).for_each(|(t, f)| *t += factor * f);
                    }
                }
            }
        });
        *data = out;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_is_its_own_inverse() {
        for n in [3, 8, 22, 31] {
            let c = matrix(n);
            for i in 0..n {
                for j in 0..n {
                    let product: f64 = (0..n).map(|k| c[i * n + k] * c[k * n + j]).sum();
                    assert!((product - f64::from(u8::from(i == j))).abs() < 1e-13);
                }
            }
        }
    }
}
