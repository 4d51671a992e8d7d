//! The mesh on the CPU.
//!
//! Charges are spread as sums of integers, so the grid does not depend on the order of threads.

use super::assignment::{grid_position, shares};
use super::influence::{AxisSums, wave};
use super::plan::Mesh;
use super::transform::Transform;
use crate::correction::{CHUNK, Fourier, add_forces};
use crate::params::Model;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::StateView;
use rustfft::num_complex::Complex64;

/// Grids and tables.
pub struct CpuMesh {
    mesh: Mesh,
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
            axes: mesh.grid.map(|n| AxisSums::new(n, mesh.order)),
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
    /// # Safety
    /// The views describe valid host arrays.
    pub unsafe fn compute(&mut self, model: &Model, host: &Host, call: &ForceCall, sums: &mut Sums) {
        // SAFETY: `globals` is valid by the contract of this function
        let length = unsafe { (*call.state.globals.host()).box_length };
        // SAFETY: the views are valid by the contract of this function
        unsafe { self.spread(model, host, &call.state) };
        let unit = 1.0 / model.charge_unit();
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
        // SAFETY: as above
        unsafe { self.interpolate(host, &call.state) };
        let fourier = Fourier { field: &self.field, virial };
        // SAFETY: the contract of this function is passed on
        unsafe { add_forces(model, host, call, &fourier, sums) };
    }

    /// Returns the numbers of stored wave `m` along the axes.
    fn numbers(&self, m: usize) -> [usize; 3] {
        let half = self.transform.half();
        [m % half, m / half % self.mesh.grid[1], m / (half * self.mesh.grid[1])]
    }

    fn set_box(&mut self, model: &Model, length: [f64; 3]) {
        let scale = model.coulomb / length.iter().product::<f64>();
        self.influence = (0..self.waves_count())
            .map(|m| scale * wave(&self.axes, self.numbers(m), length, model.alpha).influence)
            .collect();
        self.length = length;
    }

    fn waves_count(&self) -> usize {
        self.transform.half() * self.mesh.grid[1] * self.mesh.grid[2]
    }

    fn virial(&self, model: &Model, waves: &[Complex64]) -> [f64; 6] {
        let mut virial = [0.0; 6];
        for (m, (w, g)) in waves.iter().zip(&self.influence).enumerate() {
            let number = self.numbers(m);
            // waves with x above n/2 are not stored
            let twice = if number[0] == 0 || 2 * number[0] == self.mesh.grid[0] { 0.5 } else { 1.0 };
            let energy = twice * g * w.norm_sqr();
            let slopes = wave(&self.axes, number, self.length, model.alpha).slopes;
            for (slot, slope) in slopes.into_iter().enumerate() {
                virial[slot] += energy * (if matches!(slot, 0 | 3 | 5) { 1.0 } else { 0.0 } - slope);
            }
        }
        virial
    }

    /// Adds the integer shares of all charges to `sums`.
    ///
    /// Tasks own slabs of the grid along z that are thicker than a spline. A charge in a slab reaches only into the next
    /// one, so every other slab is filled at the same time.
    ///
    /// # Safety
    /// The view describes valid host arrays.
    unsafe fn spread(&mut self, model: &Model, host: &Host, state: &StateView) {
        let (n, nz) = (state.n_local as usize, self.mesh.grid[2]);
        let slabs = match nz / self.mesh.order {
            0..=3 => 1,
            most => most.min(64) & !1,
        };
        let slab_of = |z: usize| z * slabs / nz;
        let mut members = vec![vec![]; slabs];
        for i in 0..n {
            // SAFETY: `i` < n_local, and the view is valid by the contract of this function
            let z = unsafe { grid_position(state, i, self.mesh.grid).0[2] };
            members[slab_of(z)].push(i as u32);
        }
        let (unit, grid, order) = (model.charge_unit(), self.mesh.grid, self.mesh.order);
        let sums = DevicePtr::<i64>::new(self.sums.as_mut_ptr() as u64);
        for parity in 0..slabs.min(2) {
            host.parallel(slabs.div_ceil(2).min(slabs - parity), 1, |range| {
                for s in range {
                    let members = &members[2 * s + parity];
                    // SAFETY: members are below n_local; charges of this slab and its tasks' others share no grid point
                    unsafe {
                        match order {
                            3 => add_shares::<3>(state, members, grid, unit, sums),
                            4 => add_shares::<4>(state, members, grid, unit, sums),
                            5 => add_shares::<5>(state, members, grid, unit, sums),
                            6 => add_shares::<6>(state, members, grid, unit, sums),
                            _ => add_shares::<7>(state, members, grid, unit, sums),
                        }
                    }
                }
            });
        }
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
        let order = self.mesh.order;
        host.parallel(n, CHUNK, |range| {
            for i in range {
                // SAFETY: `i` < n_local, and each task writes its own particles of `field`, which outlives all tasks
                unsafe {
                    let at = grid_position(state, i, grid);
                    let found = match order {
                        3 => value_at::<3>(at, grid, values),
                        4 => value_at::<4>(at, grid, values),
                        5 => value_at::<5>(at, grid, values),
                        6 => value_at::<6>(at, grid, values),
                        _ => value_at::<7>(at, grid, values),
                    };
                    let [x, y, z, potential] = found;
                    *out.host().add(i) = [-cells[0] * x, -cells[1] * y, -cells[2] * z, potential];
                }
            }
        });
    }
}

/// Returns the numbers of `P` consecutive points of an axis.
fn points<const P: usize>(first: usize, n: usize) -> [usize; P] {
    std::array::from_fn(|k| if first + k < n { first + k } else { (first + k) % n })
}

/// Adds the shares of some charges.
///
/// # Safety
/// The view describes valid host arrays, members are below n_local, and no other thread accesses their grid points.
unsafe fn add_shares<const P: usize>(
    state: &StateView,
    members: &[u32],
    grid: [usize; 3],
    unit: f64,
    sums: DevicePtr<i64>,
) {
    for i in members {
        // SAFETY: `i` < n_local (contract of this function)
        let (q, (at, offset)) = unsafe { (state.charge_of(*i as usize), grid_position(state, *i as usize, grid)) };
        if q == 0.0 {
            continue;
        }
        let w: [[f64; P]; 3] = offset.map(|d| shares::<P>(d).0);
        let p: [[usize; P]; 3] = std::array::from_fn(|k| points(at[k], grid[k]));
        for z in 0..P {
            for y in 0..P {
                let (row, share) = ((p[2][z] * grid[1] + p[1][y]) * grid[0], q * unit * w[2][z] * w[1][y]);
                for x in 0..P {
                    // SAFETY: the point is in the grid, and no other thread accesses it (contract of this function)
                    unsafe { *sums.host().add(row + p[0][x]) += (share * w[0][x]).round_ties_even() as i64 };
                }
            }
        }
    }
}

/// Returns the derivatives of the interpolated grid by the offsets in cells, and its value.
fn value_at<const P: usize>((at, offset): ([usize; 3], [f64; 3]), grid: [usize; 3], values: &[f64]) -> [f64; 4] {
    let w = offset.map(shares::<P>);
    let p: [[usize; P]; 3] = std::array::from_fn(|k| points(at[k], grid[k]));
    let mut out = [0.0; 4];
    for z in 0..P {
        let mut plane = [0.0; 3];
        for y in 0..P {
            let row = &values[(p[2][z] * grid[1] + p[1][y]) * grid[0]..][..grid[0]];
            let (mut value, mut slope) = (0.0, 0.0);
            for x in 0..P {
                value += w[0].0[x] * row[p[0][x]];
                slope += w[0].1[x] * row[p[0][x]];
            }
            plane[0] += w[1].0[y] * slope;
            plane[1] += w[1].1[y] * value;
            plane[2] += w[1].0[y] * value;
        }
        out[0] += w[2].0[z] * plane[0];
        out[1] += w[2].0[z] * plane[1];
        out[2] += w[2].1[z] * plane[2];
        out[3] += w[2].0[z] * plane[2];
    }
    out
}
