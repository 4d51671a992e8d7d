//! Densities, fields and forces on the CPU.
//!
//! Densities are sums of integer weights, so they do not depend on the summation order of the threads.

use crate::model::{GridPosition, LARGEST_CHARGE, Model, SUM_LIMIT, Scheme, TOO_MANY};
use crate::spectrum::{self, mode};
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::StateView;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Number of particles per task; independent of the number of threads, for a fixed summation order.
const CHUNK: usize = 1024;
/// Number of vertices per task.
const VERTICES: usize = 4096;

/// Grids: consecutive fields, one per type and one of charges.
pub struct CpuFields {
    /// Sums of integer weights.
    sums: Vec<AtomicU64>,
    density: Vec<f64>,
    field: Vec<f64>,
    /// 1 + the step of the last evaluation; 0 before the first one.
    evaluated: u64,
    /// Transform matrix of each axis.
    matrices: [Vec<f64>; 3],
}

impl CpuFields {
    /// Returns empty grids.
    pub fn new(model: &Model) -> Self {
        let size = model.vertices() * model.field_count();
        Self {
            sums: (0..size).map(|_| AtomicU64::new(0)).collect(),
            density: vec![0.0; size],
            field: vec![0.0; size],
            evaluated: 0,
            matrices: model.grid.map(|n| if model.uses_fourier() { spectrum::matrix(n) } else { vec![] }),
        }
    }

    /// Returns 1 + the step of the last evaluation (0: none), densities, fields.
    pub fn save(&self) -> Vec<f64> {
        [&[self.evaluated as f64], &self.density[..], &self.field].concat()
    }

    /// Restores numbers returned by `save`.
    pub fn restore(&mut self, numbers: &[f64]) {
        let size = self.density.len();
        self.evaluated = numbers[0] as u64;
        self.density.copy_from_slice(&numbers[1..=size]);
        self.field.copy_from_slice(&numbers[size + 1..]);
    }

    /// Adds forces, and energies and virials if requested.
    ///
    /// # Errors
    /// Returns an error if a charge is invalid, or if there are too many particles at a vertex.
    ///
    /// # Safety
    /// The views describe valid host arrays.
    pub unsafe fn compute(&mut self, model: &Model, host: &Host, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        // SAFETY: `globals` is valid by the contract of this function
        let (step, length) = unsafe {
            let g = &*call.state.globals.host();
            (g.step, g.box_length)
        };
        let full = call.wanted.more_than_force();
        let valid = Model::has_fields(self.evaluated, step);
        if Model::due(model.density_every, step, valid) {
            // SAFETY: the views are valid by the contract of this function
            unsafe { self.collect(model, host, &call.state)? };
        }
        let due = Model::due(model.field_every, step, valid);
        if model.uses_fourier() {
            self.fourier_fields(model, host, length, due, full.then_some(&mut *sums));
        } else {
            self.local_fields(model, host, length, due, full.then_some(&mut *sums));
        }
        self.evaluated = step + 1;
        // SAFETY: the views are valid by the contract of this function
        let potential = unsafe { self.force(model, host, &call.state, length, full) };
        if full {
            let volume: f64 = length.iter().product();
            sums.energy +=
                2.0 * model.uniform_energy(volume) * model.n as f64 - 0.5 * model.inv_kappa * model.rho0 * volume;
            // contribution of a homogeneous fluid
            let uniform = 0.5 * model.inv_kappa * model.rho0 * volume;
            [0, 3, 5].into_iter().for_each(|k| sums.virial[k] -= uniform);
            if model.scheme == Scheme::Paper || model.field_every > 1 {
                sums.virial = [0.0; 6];
            }
            if !call.quantities.is_null() {
                // SAFETY: the engine allocates one element per quantity of the component
                unsafe { *call.quantities.host() = potential };
            }
        }
        Ok(())
    }

    /// Computes the densities at the current positions.
    ///
    /// # Safety
    /// The view describes valid host arrays.
    unsafe fn collect(&mut self, model: &Model, host: &Host, state: &StateView) -> Result<()> {
        let (vertices, unit_weight) = (model.vertices(), model.unit_weight());
        let (sums, charges) = (&self.sums, model.charges.is_some());
        // the first particle with an invalid charge
        let bad = AtomicUsize::new(usize::MAX);
        host.parallel(state.n_local as usize, CHUNK, |range| {
            for i in range {
                // SAFETY: `i < n_local`, and the arrays are valid by the contract of this function
                let (at, particle_type) =
                    unsafe { (GridPosition::of(state, i, model.grid), state.type_id(i) as usize) };
                let weights = at.weights(model.grid, unit_weight);
                for (v, w) in weights {
                    sums[particle_type * vertices + v].fetch_add(w, Ordering::Relaxed);
                }
                if charges {
                    // SAFETY: `i < n_local`, and `bind` has requested the array of charges
                    let q = unsafe { state.charge_of(i) };
                    if q.is_nan() || q.abs() > LARGEST_CHARGE {
                        bad.fetch_min(i, Ordering::Relaxed);
                        continue;
                    }
                    for (v, w) in weights {
                        let weight = (w as f64 * (q / LARGEST_CHARGE)).round_ties_even() as i64;
                        sums[model.types * vertices + v].fetch_add(weight as u64, Ordering::Relaxed);
                    }
                }
            }
        });
        let bad = bad.into_inner();
        if bad < state.n_local as usize {
            // SAFETY: `bad < n_local`, and the arrays are valid by the contract of this function
            let (tag, q) = unsafe { (*state.tag.host().add(bad), state.charge_of(bad)) };
            return Err(Error::Run(format!(
                "MdScf: the charge of particle {tag} is {q}; give a number of at most {LARGEST_CHARGE} in magnitude"
            )));
        }
        // 64 bits have room for a sum of all particles; the limit is that of the device
        if model.limits() && self.sums.iter_mut().any(|s| *s.get_mut() >= SUM_LIMIT) {
            return Err(Error::Run(format!("MdScf: {TOO_MANY}")));
        }
        let (of_type, of_charge) = (1.0 / unit_weight as f64, 1.0 / model.unit_charge());
        for (k, (density, sum)) in self.density.iter_mut().zip(&mut self.sums).enumerate() {
            let sum = std::mem::take(sum.get_mut());
            *density = if k < model.types * vertices { sum as f64 * of_type } else { sum as i64 as f64 * of_charge };
        }
        Ok(())
    }

    /// Computes the fields vertex by vertex, without filter and charges, and adds the density-dependent part of W and its
    /// virial to `wanted`.
    fn local_fields(&mut self, model: &Model, host: &Host, length: [f64; 3], due: bool, wanted: Option<&mut Sums>) {
        let (vertices, types) = (model.vertices(), model.types);
        let per_cell = 1.0 / (model.rho0 * length.iter().product::<f64>() / vertices as f64);
        let density = &self.density;
        let field = DevicePtr::<f64>::new(self.field.as_mut_ptr() as u64);
        let mut partial_sums = vec![0.0f64; vertices.div_ceil(VERTICES)];
        let partial = DevicePtr::<f64>::new(partial_sums.as_mut_ptr() as u64);
        let energy = wanted.is_some();
        host.parallel(if due || energy { vertices } else { 0 }, VERTICES, |range| {
            let chunk = range.start / VERTICES;
            let mut total = 0.0;
            for v in range {
                for i in 0..types {
                    let mut sum = 0.0;
                    for j in 0..types {
                        sum += model.matrix[i * types + j] * density[j * vertices + v];
                    }
                    total += 0.5 * sum * density[i * vertices + v];
                    if due {
                        // SAFETY: the vertex ranges of tasks are disjoint
                        unsafe { *field.host().add(i * vertices + v) = sum * per_cell - model.inv_kappa };
                    }
                }
            }
            // SAFETY: each chunk writes its own element of `partial_sums`, which outlives all tasks
            unsafe { *partial.host().add(chunk) = total };
        });
        if let Some(sums) = wanted {
            let pairs = per_cell * partial_sums.iter().sum::<f64>();
            sums.energy += pairs;
            [0, 3, 5].into_iter().for_each(|k| sums.virial[k] += pairs);
        }
    }

    /// Computes the fields in Fourier space, and adds the density-dependent part of W and its virial to `wanted`.
    fn fourier_fields(&mut self, model: &Model, host: &Host, length: [f64; 3], due: bool, wanted: Option<&mut Sums>) {
        if !due && wanted.is_none() {
            return;
        }
        let (vertices, types) = (model.vertices(), model.types);
        let cell = length.iter().product::<f64>() / vertices as f64;
        let per_cell = 1.0 / (model.rho0 * cell);
        let mut waves = self.density.clone();
        spectrum::transform(model, &self.matrices, host, &mut waves);
        if let Some(sums) = wanted {
            add_mode_energies(model, length, &waves, sums);
        }
        if !due {
            return;
        }
        let mut field = vec![0.0; self.field.len()];
        for m in 0..vertices {
            let f = mode(model, length, mode_indices(model, m));
            for i in 0..types {
                let sum: f64 = (0..types).map(|j| model.matrix[i * types + j] * waves[j * vertices + m]).sum();
                field[i * vertices + m] = per_cell * f.filter * sum;
            }
            if model.charges.is_some() {
                field[types * vertices + m] = f.green / cell * waves[types * vertices + m];
            }
        }
        // the constant −1/κ is the mode 0
        (0..types).for_each(|i| field[i * vertices] -= model.inv_kappa * (vertices as f64).sqrt());
        spectrum::transform(model, &self.matrices, host, &mut field);
        self.field = field;
    }

    /// Adds forces; returns Σ V(r_i) if energies are requested.
    ///
    /// # Safety
    /// The view describes valid host arrays.
    unsafe fn force(&self, model: &Model, host: &Host, state: &StateView, length: [f64; 3], full: bool) -> f64 {
        let (n, vertices) = (state.n_local as usize, model.vertices());
        let uniform = model.uniform_energy(length.iter().product());
        let mut partial_sums = vec![0.0f64; n.div_ceil(CHUNK)];
        let partial = DevicePtr::<f64>::new(partial_sums.as_mut_ptr() as u64);
        host.parallel(n, CHUNK, |range| {
            let chunk = range.start / CHUNK;
            let mut total = 0.0;
            for i in range {
                // SAFETY: `i < n_local`, the arrays are valid, and the particle ranges of tasks are disjoint
                unsafe {
                    let at = GridPosition::of(state, i, model.grid);
                    let particle_type = state.type_id(i) as usize;
                    let grid = |k: usize| &self.field[k * vertices..(k + 1) * vertices];
                    let (mut slope, mut potential) = slope_and_value(model, grid(particle_type), &at, full);
                    if model.charges.is_some() {
                        let q = state.charge_of(i);
                        let (s, p) = slope_and_value(model, grid(model.types), &at, full);
                        (0..3).for_each(|k| slope[k] += q * s[k]);
                        potential += q * p;
                    }
                    let force = std::array::from_fn(|k| -slope[k] * (model.grid[k] as f64 / length[k]));
                    state.add_force(i, force, if full { 0.5 * potential + uniform } else { 0.0 });
                    total += potential;
                }
            }
            // SAFETY: each chunk writes its own element of `partial_sums`, which outlives all tasks
            unsafe { *partial.host().add(chunk) = total };
        });
        partial_sums.iter().sum()
    }
}

/// Returns the indices of mode `m` along the axes.
fn mode_indices(model: &Model, m: usize) -> [usize; 3] {
    let [nx, ny, _] = model.grid;
    [m % nx, m / nx % ny, m / (nx * ny)]
}

/// Returns the products of modes a and b, of types (with χ + 1/κ) and of charges.
fn mode_products(model: &Model, waves: &[f64], a: usize, b: usize) -> [f64; 2] {
    let (vertices, types) = (model.vertices(), model.types);
    let mut e = [0.0; 2];
    for i in 0..types {
        for j in 0..types {
            e[0] += model.matrix[i * types + j] * waves[i * vertices + a] * waves[j * vertices + b];
        }
    }
    if model.charges.is_some() {
        e[1] = waves[types * vertices + a] * waves[types * vertices + b];
    }
    e
}

/// Adds the density-dependent part of W and its virial, from densities in Fourier space.
fn add_mode_energies(model: &Model, length: [f64; 3], waves: &[f64], sums: &mut Sums) {
    let (vertices, [nx, ny, _]) = (model.vertices(), model.grid);
    let cell = length.iter().product::<f64>() / vertices as f64;
    let per_cell = 1.0 / (model.rho0 * cell);
    let index = |[x, y, z]: [usize; 3]| (z * ny + y) * nx + x;
    for m in 0..vertices {
        let number = mode_indices(model, m);
        let f = mode(model, length, number);
        let factors = [0.5 * per_cell * f.filter, 0.5 / cell * f.green];
        let own = mode_products(model, waves, m, m);
        for part in 0..2 {
            let e = factors[part] * own[part];
            sums.energy += e;
            for (axis, slot) in [0, 3, 5].into_iter().enumerate() {
                sums.virial[slot] += e * (1.0 - 2.0 * f.slopes[part] * f.k[axis] * f.k[axis]);
            }
        }
        for (slot, a, b) in [(1, 0, 1), (2, 0, 2), (4, 1, 2)] {
            // derivatives along two axes flip the signs of both wave numbers; the shortest wave has no sign
            let mut mirror = number;
            for axis in [a, b] {
                mirror[axis] = (model.grid[axis] - number[axis]) % model.grid[axis];
            }
            if [a, b].iter().any(|axis| mirror[*axis] == number[*axis]) {
                continue;
            }
            let both = mode_products(model, waves, m, index(mirror));
            for part in 0..2 {
                sums.virial[slot] += 2.0 * f.slopes[part] * f.k[a] * f.k[b] * factors[part] * both[part];
            }
        }
    }
}

/// Returns the slope of a field in units of 1/cell, by the scheme. Also returns its value, interpolated from the eight
/// vertices, if `value` is set or the scheme is `Variational`.
fn slope_and_value(model: &Model, field: &[f64], at: &GridPosition, value: bool) -> ([f64; 3], f64) {
    let [nx, ny, _] = model.grid;
    let v = |x: usize, y: usize, z: usize| field[(z * ny + y) * nx + x];
    let mut slope = [0.0; 3];
    let mut potential = 0.0;
    if model.scheme == Scheme::Variational || value {
        let corners = at.corners(model.grid);
        let weight = |k: usize| [1.0 - at.offset[k], at.offset[k]];
        let (wx, wy, wz) = (weight(0), weight(1), weight(2));
        for a in 0..2 {
            for b in 0..2 {
                for c in 0..2 {
                    let u = v(corners[0][a], corners[1][b], corners[2][c]);
                    let sign = |upper: usize| if upper == 1 { u } else { -u };
                    slope[0] += sign(a) * wy[b] * wz[c];
                    slope[1] += wx[a] * sign(b) * wz[c];
                    slope[2] += wx[a] * wy[b] * sign(c);
                    potential += wx[a] * wy[b] * wz[c] * u;
                }
            }
        }
    }
    if model.scheme == Scheme::Paper {
        let mut nearest = at.vertex;
        let mut d = at.offset;
        for k in 0..3 {
            if d[k] > 0.5 {
                nearest[k] = (nearest[k] + 1) % model.grid[k];
                d[k] -= 1.0;
            }
        }
        let [x, y, z] = nearest;
        let here = v(x, y, z);
        for k in 0..3 {
            let neighbor = |step: usize| {
                let mut n = nearest;
                n[k] = (n[k] + step) % model.grid[k];
                v(n[0], n[1], n[2])
            };
            let (below, above) = (neighbor(model.grid[k] - 1), neighbor(1));
            slope[k] = (0.5 - d[k]) * (here - below) + (0.5 + d[k]) * (above - here);
        }
    }
    (slope, potential)
}
