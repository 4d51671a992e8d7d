//! The mesh on the CPU.
//!
//! Charges are spread as sums of integers, so the grid does not depend on the order of threads.

use super::assignment::{grid_position, shares_of_axes};
use super::influence::{AxisSums, wave};
use super::plan::Mesh;
use super::transform::Transform;
use super::window::Pieces;
use crate::correction::{CHUNK, Fourier, add_forces};
use crate::params::Model;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::StateView;
use rustfft::num_complex::Complex64;
use std::ops::Range;

/// Grids and tables.
pub struct CpuMesh {
    mesh: Mesh,
    pieces: Pieces,
    axes: [AxisSums; 3],
    transform: Transform,
    /// Influence function times C/V, for this box.
    influence: Vec<f64>,
    length: [f64; 3],
    sums: Vec<i64>,
    grid: Vec<f64>,
    waves: Vec<Complex64>,
    field: Vec<[f64; 4]>,
}

impl CpuMesh {
    pub fn new(mesh: Mesh) -> Self {
        let points = mesh.grid.iter().product();
        Self {
            mesh,
            pieces: mesh.window.pieces(),
            axes: mesh.grid.map(|n| AxisSums::new(n, mesh.window)),
            transform: Transform::new(mesh.grid),
            influence: vec![],
            length: [0.0; 3],
            sums: vec![0; points],
            grid: vec![0.0; points],
            waves: vec![],
            field: vec![],
        }
    }

    /// Adds forces, and energies and virials if requested.
    ///
    /// # Errors
    /// Returns the error of [`add_forces`].
    ///
    /// # Safety
    /// The views describe valid host arrays.
    pub unsafe fn compute(&mut self, model: &Model, host: &Host, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        // SAFETY: `globals` is valid by the contract of this function
        let length = unsafe { (*call.state.globals.host()).box_length };
        // SAFETY: the views are valid by the contract of this function
        let unit = 1.0 / unsafe { self.spread(model, host, &call.state) };
        for (value, sum) in self.grid.iter_mut().zip(&mut self.sums) {
            *value = std::mem::take(sum) as f64 * unit;
        }
        let mut waves = std::mem::take(&mut self.waves);
        self.transform.forward(host, &self.grid, &mut waves);
        if length != self.length {
            self.set_box(model, length);
        }
        let virial = if call.wanted.more_than_force() { self.virial(model, &waves) } else { [0.0; 6] };
        waves.iter_mut().zip(&self.influence).for_each(|(w, g)| *w *= *g);
        self.transform.inverse(host, &mut waves, &mut self.grid);
        self.waves = waves;
        // SAFETY: the views are valid by the contract of this function
        unsafe { self.interpolate(host, &call.state) };
        let fourier = Fourier { field: &self.field, virial };
        // SAFETY: the contract of this function is passed on
        unsafe { add_forces(model, host, call, &fourier, sums) }
    }

    /// Returns the numbers of stored wave `m` along the axes.
    fn numbers(&self, m: usize) -> [usize; 3] {
        let half = self.transform.half();
        [m % half, m / half % self.mesh.grid[1], m / (half * self.mesh.grid[1])]
    }

    fn set_box(&mut self, model: &Model, length: [f64; 3]) {
        let scale = model.coulomb / length.iter().product::<f64>();
        self.influence = (0..self.waves_count())
            .map(|m| scale * wave(&self.axes, self.numbers(m), length, model.split).influence)
            .collect();
        self.length = length;
    }

    fn waves_count(&self) -> usize {
        self.transform.half() * self.mesh.grid[1] * self.mesh.grid[2]
    }

    fn virial(&self, model: &Model, waves: &[Complex64]) -> [f64; 6] {
        let scale = model.coulomb / self.length.iter().product::<f64>();
        let mut virial = [0.0; 6];
        for (m, w) in waves.iter().enumerate() {
            let number = self.numbers(m);
            // waves with x above n/2 are not stored
            let twice = if number[0] == 0 || 2 * number[0] == self.mesh.grid[0] { 0.5 } else { 1.0 };
            let wave = wave(&self.axes, number, self.length, model.split);
            for (slot, strain) in wave.strain.into_iter().enumerate() {
                let own = if matches!(slot, 0 | 3 | 5) { wave.influence } else { 0.0 };
                virial[slot] += twice * scale * w.norm_sqr() * (own - strain);
            }
        }
        virial
    }

    /// Adds the integer shares of all charges to `sums`. Returns the integer of a charge of 1.
    ///
    /// Tasks own slabs of the grid along z that are thicker than a window. A charge in a slab reaches only into the next
    /// one, so every other slab is filled at the same time.
    ///
    /// # Safety
    /// The view describes valid host arrays.
    unsafe fn spread(&mut self, model: &Model, host: &Host, state: &StateView) -> f64 {
        let (n, nz) = (state.n_local as usize, self.mesh.grid[2]);
        let slabs = match nz / self.mesh.window.order {
            0..=3 => 1,
            most => most.min(64) & !1,
        };
        let slab_of = |z: usize| z * slabs / nz;
        let (mut members, mut largest) = (vec![vec![]; slabs], 0.0f64);
        for i in 0..n {
            // SAFETY: `i` < n_local, and the view is valid by the contract of this function
            let (z, q) = unsafe { (grid_position(state, i, self.mesh.grid).0[2], state.charge_of(i)) };
            members[slab_of(z)].push(i as u32);
            largest = largest.max(q.abs());
        }
        let (unit, grid, order) = (model.charge_unit(largest), self.mesh.grid, self.mesh.window.order);
        let pieces = &self.pieces;
        let sums = DevicePtr::<i64>::new(self.sums.as_mut_ptr() as u64);
        for parity in 0..slabs.min(2) {
            host.parallel(slabs.div_ceil(2).min(slabs - parity), 1, |range| {
                for s in range {
                    let members = &members[2 * s + parity];
                    // SAFETY: members are below n_local; slabs of one parity are at least a window apart, so their charges share no grid point
                    unsafe {
                        match order {
                            3 => spread_charges::<3>(state, members, grid, pieces, unit, sums),
                            4 => spread_charges::<4>(state, members, grid, pieces, unit, sums),
                            5 => spread_charges::<5>(state, members, grid, pieces, unit, sums),
                            6 => spread_charges::<6>(state, members, grid, pieces, unit, sums),
                            _ => spread_charges::<7>(state, members, grid, pieces, unit, sums),
                        }
                    }
                }
            });
        }
        unit
    }

    /// Computes field and potential at each particle.
    ///
    /// # Safety
    /// The view describes valid host arrays.
    unsafe fn interpolate(&mut self, host: &Host, state: &StateView) {
        let n = state.n_local as usize;
        self.field.resize(n, [0.0; 4]);
        let out = DevicePtr::<[f64; 4]>::new(self.field.as_mut_ptr() as u64);
        let (grid, values) = (self.mesh.grid, &self.grid);
        let cells: [f64; 3] = std::array::from_fn(|k| grid[k] as f64 / self.length[k]);
        let (order, pieces) = (self.mesh.window.order, &self.pieces);
        host.parallel(n, CHUNK, |range| {
            // SAFETY: the range is below n_local, and each task writes its own particles of `field`, which outlives all tasks
            unsafe {
                match order {
                    3 => fields::<3>(state, range, grid, pieces, values, cells, out),
                    4 => fields::<4>(state, range, grid, pieces, values, cells, out),
                    5 => fields::<5>(state, range, grid, pieces, values, cells, out),
                    6 => fields::<6>(state, range, grid, pieces, values, cells, out),
                    _ => fields::<7>(state, range, grid, pieces, values, cells, out),
                }
            }
        });
    }
}

/// Defines a function and a second instance of it for processors with AVX2. Both do the same operations in the same order, so
/// they give the same bits.
macro_rules! with_avx2 {
    ($(#[$doc:meta])* unsafe fn $name:ident => $inner:ident($($arg:ident: $ty:ty),*)) => {
        $(#[$doc])*
        unsafe fn $name<const P: usize>($($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                unsafe fn avx2<const P: usize>($($arg: $ty),*) {
                    // SAFETY: the contract of this function is passed on
                    unsafe { $inner::<P>($($arg),*) }
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has the extension, and the contract of this function is passed on
                    return unsafe { avx2::<P>($($arg),*) };
                }
            }
            // SAFETY: the contract of this function is passed on
            unsafe { $inner::<P>($($arg),*) }
        }
    };
}

with_avx2! {
    /// Adds the shares of some charges.
    ///
    /// # Safety
    /// As [`add_shares`].
    unsafe fn spread_charges => add_shares(
        state: &StateView, members: &[u32], grid: [usize; 3], pieces: &Pieces, unit: f64, sums: DevicePtr<i64>
    )
}

with_avx2! {
    /// Computes field and potential at some particles.
    ///
    /// # Safety
    /// As [`interpolate_fields`].
    unsafe fn fields => interpolate_fields(
        state: &StateView, range: Range<usize>, grid: [usize; 3], pieces: &Pieces, values: &[f64], cells: [f64; 3],
        out: DevicePtr<[f64; 4]>
    )
}

/// Computes field and potential at some particles.
///
/// # Safety
/// The view describes valid host arrays, the range is below n_local, and no other thread accesses these elements of `out`.
#[inline(always)]
unsafe fn interpolate_fields<const P: usize>(
    state: &StateView,
    range: Range<usize>,
    grid: [usize; 3],
    pieces: &Pieces,
    values: &[f64],
    cells: [f64; 3],
    out: DevicePtr<[f64; 4]>,
) {
    for i in range {
        // SAFETY: `i` < n_local, and no other thread accesses this element of `out` (contract of this function)
        unsafe {
            let [x, y, z, potential] = value_at::<P>(grid_position(state, i, grid), grid, pieces, values);
            *out.host().add(i) = [-cells[0] * x, -cells[1] * y, -cells[2] * z, potential];
        }
    }
}

/// Returns the numbers of `P` consecutive points of an axis.
#[inline(always)]
fn points<const P: usize>(first: usize, n: usize) -> [usize; P] {
    std::array::from_fn(|k| if first + k < n { first + k } else { (first + k) % n })
}

/// Returns the nearest integer, ties to even, of a number below 2⁵¹. Unlike `round_ties_even`, it needs no library function on
/// processors of the baseline.
#[inline(always)]
fn nearest(x: f64) -> i64 {
    const SHIFT: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²
    (x + SHIFT).to_bits().wrapping_sub(SHIFT.to_bits()) as i64
}

/// Adds the shares of some charges.
///
/// # Safety
/// The view describes valid host arrays, members are below n_local, and no other thread accesses their grid points.
#[inline(always)]
unsafe fn add_shares<const P: usize>(
    state: &StateView,
    members: &[u32],
    grid: [usize; 3],
    pieces: &Pieces,
    unit: f64,
    sums: DevicePtr<i64>,
) {
    for i in members {
        // SAFETY: `i` < n_local (contract of this function)
        let (q, (at, offset)) = unsafe { (state.charge_of(*i as usize), grid_position(state, *i as usize, grid)) };
        if q == 0.0 {
            continue;
        }
        let w: [[f64; P]; 3] = shares_of_axes::<P>(offset, pieces).map(|(w, _)| w);
        let p: [[usize; P]; 3] = std::array::from_fn(|k| points(at[k], grid[k]));
        for z in 0..P {
            for y in 0..P {
                let (row, share) = ((p[2][z] * grid[1] + p[1][y]) * grid[0], q * unit * w[2][z] * w[1][y]);
                let parts: [i64; P] = std::array::from_fn(|x| nearest(share * w[0][x]));
                // SAFETY: the points are in the grid, and no other thread accesses them (contract of this function)
                unsafe {
                    if at[0] + P <= grid[0] {
                        let to = &mut *sums.host().add(row + at[0]).cast::<[i64; P]>();
                        to.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
                    } else {
                        p[0].iter().zip(parts).for_each(|(x, part)| *sums.host().add(row + x) += part);
                    }
                }
            }
        }
    }
}

/// Returns the derivatives of the interpolated grid by the offsets in cells, and its value.
#[inline(always)]
fn value_at<const P: usize>(
    (at, offset): ([usize; 3], [f64; 3]),
    grid: [usize; 3],
    pieces: &Pieces,
    values: &[f64],
) -> [f64; 4] {
    let w = shares_of_axes::<P>(offset, pieces);
    let p: [[usize; P]; 3] = std::array::from_fn(|k| points(at[k], grid[k]));
    let mut out = [0.0; 4];
    for z in 0..P {
        // sums over y of the values and slopes at each x
        let (mut values_x, mut slopes_x) = ([0.0; P], [0.0; P]);
        for y in 0..P {
            let row = &values[(p[2][z] * grid[1] + p[1][y]) * grid[0]..][..grid[0]];
            let found: [f64; P] = match row.get(at[0]..at[0] + P).and_then(|r| r.try_into().ok()) {
                Some(found) => found,
                None => p[0].map(|x| row[x]),
            };
            let (weight, slope) = (w[1].0[y], w[1].1[y]);
            for ((v, s), f) in values_x.iter_mut().zip(&mut slopes_x).zip(found) {
                *v += weight * f;
                *s += slope * f;
            }
        }
        let (mut value, mut along) = (0.0, [0.0; 2]);
        for ((weight, slope), (v, s)) in w[0].0.iter().zip(&w[0].1).zip(values_x.iter().zip(&slopes_x)) {
            value += weight * v;
            along[0] += slope * v;
            along[1] += weight * s;
        }
        out[0] += w[2].0[z] * along[0];
        out[1] += w[2].0[z] * along[1];
        out[2] += w[2].1[z] * value;
        out[3] += w[2].0[z] * value;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn shares_are_rounded_to_the_nearest_integer() {
        for x in
            [0.0, 0.5, 1.5, -0.5, -2.5, 0.499, -7.51, 1e15 + 0.5, -2.2e15, 2f64.powi(51) - 1.0, 1.0 - 2f64.powi(51)]
        {
            assert_eq!(nearest(x), x.round_ties_even() as i64, "{x}");
        }
    }
}
