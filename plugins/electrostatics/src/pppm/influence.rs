//! The influence function of the mesh, and its error.
//!
//! A charge is spread with a window W along each axis; the product of their transforms is U. Its force is the gradient of the
//! potential, which is interpolated with the same window. A wave k of the grid then stands for all waves k + 2πm/h.
//! The mean square error of the force over all positions in the cells,
//! Q = Σ_k {Σ_m k_m² φ_m² − 2G Σ_m k_m² U_m² φ_m + G² Σ_m U_m² Σ_m k_m² U_m²} with φ = 4πχ/k², χ the transform of the split, is
//! smallest for G = Σ_m k_m² U_m² φ_m/(Σ_m U_m² Σ_m k_m² U_m²). In the numerator m = 0 suffices: with k² φ = 4πχ this is
//! G = 4πχ U_0²/(A D), A = Σ U_m², D = Σ k_m² U_m². Both sums are sums of products over the axes.

use super::window::Window;
use crate::split::Split;
use std::f64::consts::{PI, TAU};

/// Images on each side that the sums over m take.
const IMAGES: i32 = 24;

/// Sums over the images of each wave of one axis, by number 0 … n − 1. Box lengths do not enter.
#[derive(Clone, Debug, Default)]
pub struct AxisSums {
    /// Signed number of the wave, between −n/2 and n/2.
    pub number: Vec<f64>,
    /// U².
    pub first: Vec<f64>,
    /// Σ U².
    pub zeroth: Vec<f64>,
    /// Σ (number + m n) U².
    pub linear: Vec<f64>,
    /// Σ (number + m n)² U².
    pub square: Vec<f64>,
    /// Σ U_m U_m+1.
    pub next: Vec<f64>,
}

impl AxisSums {
    /// Returns the sums of an axis with `n` points.
    pub fn new(n: usize, window: Window) -> Self {
        let mut sums = Self::default();
        for k in 0..n {
            let number = if 2 * k > n { k as f64 - n as f64 } else { k as f64 };
            let mut sum = [0.0; 4];
            let image = |m: i32| number + f64::from(m) * n as f64;
            let mut next = window.transform(image(-IMAGES) / n as f64);
            for m in -IMAGES..=IMAGES {
                let (at, u) = (image(m), next);
                next = window.transform(image(m + 1) / n as f64);
                sum.iter_mut().zip([u, at * u, at * at * u, next]).for_each(|(s, x)| *s += x * u);
            }
            // the images of these waves come in pairs of opposite numbers
            if 2 * k == n || k == 0 {
                sum[1] = 0.0;
            }
            sums.number.push(number);
            sums.first.push(window.transform(number / n as f64).powi(2));
            sums.zeroth.push(sum[0]);
            sums.linear.push(sum[1]);
            sums.square.push(sum[2]);
            sums.next.push(sum[3]);
        }
        sums
    }
}

/// One wave of the grid.
pub struct Wave {
    /// G.
    pub influence: f64,
    /// ∂G/∂ε for strains ε of the box, as xx, xy, xz, yy, yz, zz.
    pub strain: [f64; 6],
}

/// Returns the influence function of wave (x, y, z) in a box; 0 for the wave 0.
pub fn wave(axes: &[AxisSums; 3], number: [usize; 3], length: [f64; 3], split: Split) -> Wave {
    let unit = length.map(|l| TAU / l);
    let a: [f64; 3] = std::array::from_fn(|k| axes[k].zeroth[number[k]]);
    let b: [f64; 3] = std::array::from_fn(|k| unit[k] * axes[k].linear[number[k]]);
    let c: [f64; 3] = std::array::from_fn(|k| unit[k] * unit[k] * axes[k].square[number[k]]);
    let k: [f64; 3] = std::array::from_fn(|k| unit[k] * axes[k].number[number[k]]);
    let second = [
        c[0] * a[1] * a[2],
        b[0] * b[1] * a[2],
        b[0] * b[2] * a[1],
        c[1] * a[0] * a[2],
        b[1] * b[2] * a[0],
        c[2] * a[0] * a[1],
    ];
    let d = second[0] + second[3] + second[5];
    if d == 0.0 {
        return Wave { influence: 0.0, strain: [0.0; 6] };
    }
    let k2: f64 = k.iter().map(|k| k * k).sum();
    let first: f64 = (0..3).map(|k| axes[k].first[number[k]]).product();
    let products = [k[0] * k[0], k[0] * k[1], k[0] * k[2], k[1] * k[1], k[1] * k[2], k[2] * k[2]];
    let factor = 4.0 * PI * first / (a[0] * a[1] * a[2] * d);
    let (chi, slope) = split.transform(k2);
    Wave {
        influence: factor * chi,
        strain: std::array::from_fn(|s| 2.0 * factor * (slope * products[s] + chi * second[s] / d)),
    }
}

/// Errors of the forces of a mesh.
#[derive(Clone, Copy, Debug)]
pub struct MeshError {
    /// √(Q/V): divided by √V the root-mean-square error in units of C Σq²/√N, for charges at random.
    pub pairs: f64,
    /// Root-mean-square force of a charge on itself in units of C q², which is periodic with the cells. Its energy has the
    /// amplitude (C q²/V) Σ_k G Σ_m U_m U_m+1 along each axis, and harmonics.
    pub own: f64,
}

/// Returns the errors for cells of these lengths. They do not depend on the box and are computed for a small one.
pub fn mesh_error(cell: [f64; 3], window: Window, split: Split) -> MeshError {
    // the error of a force reaches as far as the split and the windows on both sides of it, so the sum over the waves of a longer
    // box is that of any box; beyond 1.5 c/b the grid has waves of the split without error, and lacks those beyond its last one
    let reach = |c: f64| 3.0 * split.radius / c + 2.0 * window.order as f64;
    let n = cell.map(|c| (reach(c).ceil() as usize).next_multiple_of(2));
    let axes = n.map(|n| AxisSums::new(n, window));
    let length: [f64; 3] = std::array::from_fn(|k| n[k] as f64 * cell[k]);
    let longest = 1.5 * split.shape / split.radius;
    let most: [usize; 3] = std::array::from_fn(|k| ((longest * length[k] / TAU).ceil() as usize).min(n[k] / 2));
    // by symmetry only waves with positive numbers
    let weight = |axis: usize, k: usize| if k == 0 || 2 * k == n[axis] { 1.0 } else { 2.0 };
    // k² and U² of the images −1, 0, 1
    let images = |axis: usize, number: usize| -> [(f64, f64); 3] {
        std::array::from_fn(|m| {
            let at = number as f64 + (m as f64 - 1.0) * n[axis] as f64;
            ((TAU * at / length[axis]).powi(2), window.transform(at / n[axis] as f64).powi(2))
        })
    };
    let tables: Vec<Vec<[(f64, f64); 3]>> =
        (0..3).map(|axis| (0..=most[axis]).map(|k| images(axis, k)).collect()).collect();
    let (mut sum, mut own) = (0.0, [0.0; 3]);
    for z in 0..=most[2] {
        for y in 0..=most[1] {
            for x in 0..=most[0] {
                if x + y + z == 0 {
                    continue;
                }
                let g = wave(&axes, [x, y, z], length, split).influence;
                let (mut square, mut cross) = (0.0, 0.0);
                for (kx, ux) in tables[0][x] {
                    for (ky, uy) in tables[1][y] {
                        for (kz, uz) in tables[2][z] {
                            // k² φ² and k² U² φ
                            let e = 4.0 * PI * split.chi(kx + ky + kz);
                            square += e * e / (kx + ky + kz);
                            cross += e * ux * uy * uz;
                        }
                    }
                }
                let number = [x, y, z];
                let weight = weight(0, x) * weight(1, y) * weight(2, z);
                let mut second = 0.0;
                for k in 0..3 {
                    let others: f64 = (0..3).filter(|j| *j != k).map(|j| axes[j].zeroth[number[j]]).product();
                    second += (TAU / length[k]).powi(2) * axes[k].square[number[k]] * others;
                    own[k] += weight * g * axes[k].next[number[k]] * others;
                }
                let zeroth: f64 = (0..3).map(|k| axes[k].zeroth[number[k]]).product();
                let q = square - 2.0 * g * cross + g * g * zeroth * second;
                sum += weight * q.max(0.0);
            }
        }
    }
    let volume: f64 = length.iter().product();
    let own2: f64 = (0..3).map(|k| 0.5 * (TAU / cell[k] * own[k] / volume).powi(2)).sum();
    let coarsest = cell.into_iter().fold(0.0, f64::max);
    let lacking = if (0..3).any(|k| most[k] < n[k] / 2) { 8.0 * split.tail(PI / coarsest) } else { 0.0 };
    MeshError { pairs: (sum / volume + lacking).sqrt(), own: own2.sqrt() }
}
