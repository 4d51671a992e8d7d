//! Fourier transform of the fields, by multiplication with a real matrix along each axis.
//!
//! The matrix is cas(2πjk/n)/√n with cas x = cos x + sin x (Hartley transform). It is symmetric and its own inverse. In the
//! basis of products of three such functions, every operator that depends only on the squares of the wave numbers is
//! diagonal; the Gaussian filter and 1/k² are. The transform works for any grid size and takes n multiplications per
//! vertex and axis, in a fixed order. For the grids of this method that is a small part of a step.

use crate::model::Model;
use galamost_plugin_api::prelude::*;
use std::f64::consts::{PI, TAU};

/// Approximate number of values per task.
const TASK: usize = 8192;

/// Returns the matrix cas(2πjk/n)/√n, with (j, k) at index j·n + k.
pub fn matrix(n: usize) -> Vec<f64> {
    let at = |m: usize| {
        let x = TAU * (m % n) as f64 / n as f64;
        (x.cos() + x.sin()) / (n as f64).sqrt()
    };
    (0..n * n).map(|m| at((m / n) * (m % n))).collect()
}

/// Factors of a mode.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mode {
    /// Wave numbers along the axes.
    pub k: [f64; 3],
    /// Square of the Gaussian filter (densities and fields are both filtered).
    pub filter: f64,
    /// Green's function of the smeared charges.
    pub green: f64,
    /// d ln(filter)/d(k²) and d ln(green)/d(k²), both negated.
    pub slopes: [f64; 2],
}

/// Returns the factors of the mode with the given indices along the axes.
pub fn mode(model: &Model, length: [f64; 3], number: [usize; 3]) -> Mode {
    let k: [f64; 3] = std::array::from_fn(|a| {
        let (m, n) = (number[a], model.grid[a]);
        TAU * (if 2 * m > n { m as f64 - n as f64 } else { m as f64 }) / length[a]
    });
    let k2: f64 = k.iter().map(|k| k * k).sum();
    let sigma2 = model.sigma * model.sigma;
    let mut mode = Mode { k, filter: (-sigma2 * k2).exp(), slopes: [sigma2, 0.0], ..Mode::default() };
    if let Some(c) = model.charges.filter(|_| k2 > 0.0) {
        let width = 0.25 / (c.alpha * c.alpha);
        mode.green = 4.0 * PI * c.coulomb / k2 * (-width * k2).exp();
        mode.slopes[1] = 1.0 / k2 + width;
    }
    mode
}

/// Transforms each grid in `data`. The transform is its own inverse.
pub fn transform(model: &Model, matrices: &[Vec<f64>; 3], host: &Host, data: &mut Vec<f64>) {
    let [nx, ny, _] = model.grid;
    for (axis, stride) in [1, nx, nx * ny].into_iter().enumerate() {
        let (n, c) = (model.grid[axis], &matrices[axis]);
        let mut out = vec![0.0; data.len()];
        let to = galamost_plugin_api::device::DevicePtr::<f64>::new(out.as_mut_ptr() as u64);
        let from = &*data;
        // a task transforms adjacent lines of this axis
        host.parallel(data.len() / (n * stride), (TASK / (n * stride)).max(1), |blocks| {
            for block in blocks {
                let start = block * n * stride;
                let from = &from[start..start + n * stride];
                // SAFETY: each block writes its own range of `out`, which outlives all tasks
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
