//! Densities, fields and forces on the CPU.

use crate::law::{LARGEST_CHARGE, Law, Place, Scheme};
use crate::spectrum::{self, mode};
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::StateView;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Particles of one task; it does not depend on the number of threads.
const CHUNK: usize = 1024;
/// Vertices of one task.
const VERTICES: usize = 4096;

/// Grids, one of each type and one of charges after the other.
pub struct OnCpu {
    /// Sums of weights as whole numbers: they do not depend on the order in which threads add.
    sums: Vec<AtomicU64>,
    density: Vec<f64>,
    field: Vec<f64>,
    valid: bool,
    matrices: [Vec<f64>; 3],
}

impl OnCpu {
    pub fn new(law: &Law) -> Self {
        let size = law.vertices() * law.fields();
        Self {
            sums: (0..size).map(|_| AtomicU64::new(0)).collect(),
            density: vec![0.0; size],
            field: vec![0.0; size],
            valid: false,
            matrices: law.grid.map(|n| if law.spectral() { spectrum::matrix(n) } else { vec![] }),
        }
    }

    /// Whether there are fields (1 or 0), densities, fields.
    pub fn save(&self) -> Vec<f64> {
        [&[if self.valid { 1.0 } else { 0.0 }], &self.density[..], &self.field].concat()
    }

    /// Takes up what `save` gave.
    pub fn restore(&mut self, numbers: &[f64]) {
        let size = self.density.len();
        self.valid = numbers[0] != 0.0;
        self.density.copy_from_slice(&numbers[1..=size]);
        self.field.copy_from_slice(&numbers[size + 1..]);
    }

    /// Adds forces, and energies and virials if they are wanted.
    ///
    /// # Safety
    /// The views describe valid host arrays.
    pub unsafe fn compute(&mut self, law: &Law, host: &Host, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        // SAFETY: the caller's word
        let (step, length) = unsafe {
            let g = &*call.state.globals.host();
            (g.step, g.box_length)
        };
        let full = call.wanted.more_than_force();
        if Law::due(law.density_every, step, self.valid) {
            // SAFETY: the caller's word
            unsafe { self.collect(law, host, &call.state)? };
        }
        let due = Law::due(law.field_every, step, self.valid);
        if law.spectral() {
            self.by_modes(law, host, length, due, full.then_some(&mut *sums));
        } else {
            self.by_vertices(law, host, length, due, full.then_some(&mut *sums));
        }
        self.valid = true;
        // SAFETY: the caller's word
        let potential = unsafe { self.force(law, host, &call.state, length, full) };
        if full {
            let volume: f64 = length.iter().product();
            sums.energy += 2.0 * law.rest(volume) * law.n as f64 - 0.5 * law.inv_kappa * law.rho0 * volume;
            // a homogeneous fluid's share
            let uniform = 0.5 * law.inv_kappa * law.rho0 * volume;
            [0, 3, 5].into_iter().for_each(|k| sums.virial[k] -= uniform);
            if law.scheme == Scheme::Paper || law.field_every > 1 {
                sums.virial = [0.0; 6];
            }
            if !call.quantities.is_null() {
                // SAFETY: the engine gives room for each of the component's quantities
                unsafe { *call.quantities.host() = potential };
            }
        }
        Ok(())
    }

    /// Densities of the particles as they are.
    unsafe fn collect(&mut self, law: &Law, host: &Host, state: &StateView) -> Result<()> {
        let (vertices, whole) = (law.vertices(), law.whole());
        let (sums, charges) = (&self.sums, law.charges.is_some());
        let bad = AtomicBool::new(false);
        host.parallel(state.n_local as usize, CHUNK, |range| {
            for i in range {
                // SAFETY: the engine's word about the views
                let (place, kind) = unsafe { (Place::of(state, i, law.grid), state.type_id(i) as usize) };
                let weights = place.weights(law.grid, whole);
                for (v, w) in weights {
                    sums[kind * vertices + v].fetch_add(w, Ordering::Relaxed);
                }
                if charges {
                    // SAFETY: as above
                    let q = unsafe { charge(state, i) };
                    if q.is_nan() || q.abs() > LARGEST_CHARGE {
                        bad.store(true, Ordering::Relaxed);
                        continue;
                    }
                    for (v, w) in weights {
                        let share = (w as f64 * (q / LARGEST_CHARGE)).round_ties_even() as i64;
                        sums[law.types * vertices + v].fetch_add(share as u64, Ordering::Relaxed);
                    }
                }
            }
        });
        if bad.into_inner() {
            return Err(Error::Run(format!("a charge is above {LARGEST_CHARGE} in magnitude, or no number")));
        }
        let (of_type, of_charge) = (1.0 / whole as f64, 1.0 / law.charge_whole());
        for (k, (density, sum)) in self.density.iter_mut().zip(&mut self.sums).enumerate() {
            let sum = std::mem::take(sum.get_mut());
            *density = if k < law.types * vertices { sum as f64 * of_type } else { sum as i64 as f64 * of_charge };
        }
        Ok(())
    }

    /// Fields at the vertices; and W and its virial but for what does not depend on densities.
    fn by_vertices(&mut self, law: &Law, host: &Host, length: [f64; 3], due: bool, wanted: Option<&mut Sums>) {
        let (vertices, types) = (law.vertices(), law.types);
        let per_cell = 1.0 / (law.rho0 * length.iter().product::<f64>() / vertices as f64);
        let density = &self.density;
        let field = DevicePtr::<f64>::new(self.field.as_mut_ptr() as u64);
        let mut parts = vec![0.0f64; vertices.div_ceil(VERTICES)];
        let part = DevicePtr::<f64>::new(parts.as_mut_ptr() as u64);
        let energy = wanted.is_some();
        host.parallel(if due || energy { vertices } else { 0 }, VERTICES, |range| {
            let chunk = range.start / VERTICES;
            let mut total = 0.0;
            for v in range {
                for i in 0..types {
                    let mut sum = 0.0;
                    for j in 0..types {
                        sum += law.matrix[i * types + j] * density[j * vertices + v];
                    }
                    total += 0.5 * sum * density[i * vertices + v];
                    if due {
                        // SAFETY: this task alone has these vertices
                        unsafe { *field.host().add(i * vertices + v) = sum * per_cell - law.inv_kappa };
                    }
                }
            }
            // SAFETY: every chunk has its own place in `parts`, which lives until all are done
            unsafe { *part.host().add(chunk) = total };
        });
        if let Some(sums) = wanted {
            let pairs = per_cell * parts.iter().sum::<f64>();
            sums.energy += pairs;
            [0, 3, 5].into_iter().for_each(|k| sums.virial[k] += pairs);
        }
    }

    /// The same in Fourier space.
    fn by_modes(&mut self, law: &Law, host: &Host, length: [f64; 3], due: bool, wanted: Option<&mut Sums>) {
        if !due && wanted.is_none() {
            return;
        }
        let (vertices, types, [nx, ny, _]) = (law.vertices(), law.types, law.grid);
        let cell = length.iter().product::<f64>() / vertices as f64;
        let per_cell = 1.0 / (law.rho0 * cell);
        let mut waves = self.density.clone();
        spectrum::transform(law, &self.matrices, host, &mut waves);
        let numbers = |m: usize| [m % nx, m / nx % ny, m / (nx * ny)];
        let place = |[x, y, z]: [usize; 3]| (z * ny + y) * nx + x;
        let waves = &waves;
        if let Some(sums) = wanted {
            // a mode with another one: which energy of types and of charges both make
            let pair = |a: usize, b: usize| -> [f64; 2] {
                let mut e = [0.0; 2];
                for i in 0..types {
                    for j in 0..types {
                        e[0] += law.matrix[i * types + j] * waves[i * vertices + a] * waves[j * vertices + b];
                    }
                }
                if law.charges.is_some() {
                    e[1] = waves[types * vertices + a] * waves[types * vertices + b];
                }
                e
            };
            for m in 0..vertices {
                let number = numbers(m);
                let f = mode(law, length, number);
                let factors = [0.5 * per_cell * f.filter, 0.5 / cell * f.green];
                let own = pair(m, m);
                for part in 0..2 {
                    let e = factors[part] * own[part];
                    sums.energy += e;
                    for (axis, slot) in [0, 3, 5].into_iter().enumerate() {
                        sums.virial[slot] += e * (1.0 - 2.0 * f.slopes[part] * f.k[axis] * f.k[axis]);
                    }
                }
                for (slot, a, b) in [(1, 0, 1), (2, 0, 2), (4, 1, 2)] {
                    // derivatives along two axes turn the signs of both wave numbers; the shortest wave has no sign
                    let mut mirror = number;
                    for axis in [a, b] {
                        mirror[axis] = (law.grid[axis] - number[axis]) % law.grid[axis];
                    }
                    if [a, b].iter().any(|axis| mirror[*axis] == number[*axis]) {
                        continue;
                    }
                    let both = pair(m, place(mirror));
                    for part in 0..2 {
                        sums.virial[slot] += 2.0 * f.slopes[part] * f.k[a] * f.k[b] * factors[part] * both[part];
                    }
                }
            }
        }
        if !due {
            return;
        }
        let mut field = vec![0.0; self.field.len()];
        for m in 0..vertices {
            let f = mode(law, length, numbers(m));
            for i in 0..types {
                let sum: f64 = (0..types).map(|j| law.matrix[i * types + j] * waves[j * vertices + m]).sum();
                field[i * vertices + m] = per_cell * f.filter * sum;
            }
            if law.charges.is_some() {
                field[types * vertices + m] = f.green / cell * waves[types * vertices + m];
            }
        }
        // the constant −1/κ is a mode, too
        (0..types).for_each(|i| field[i * vertices] -= law.inv_kappa * (vertices as f64).sqrt());
        spectrum::transform(law, &self.matrices, host, &mut field);
        self.field = field;
    }

    /// Adds forces; returns Σ V(r_i) if energies are wanted.
    unsafe fn force(&self, law: &Law, host: &Host, state: &StateView, length: [f64; 3], full: bool) -> f64 {
        let (n, vertices) = (state.n_local as usize, law.vertices());
        let rest = law.rest(length.iter().product());
        let mut parts = vec![0.0f64; n.div_ceil(CHUNK)];
        let part = DevicePtr::<f64>::new(parts.as_mut_ptr() as u64);
        host.parallel(n, CHUNK, |range| {
            let chunk = range.start / CHUNK;
            let mut total = 0.0;
            for i in range {
                // SAFETY: the engine's word about the views; this task alone writes the forces of its particles
                unsafe {
                    let place = Place::of(state, i, law.grid);
                    let kind = state.type_id(i) as usize;
                    let grid = |k: usize| &self.field[k * vertices..(k + 1) * vertices];
                    let (mut slope, mut potential) = at(law, grid(kind), &place, full);
                    if law.charges.is_some() {
                        let q = charge(state, i);
                        let (s, p) = at(law, grid(law.types), &place, full);
                        (0..3).for_each(|k| slope[k] += q * s[k]);
                        potential += q * p;
                    }
                    let force = std::array::from_fn(|k| -slope[k] * (law.grid[k] as f64 / length[k]));
                    state.add_force(i, force, if full { 0.5 * potential + rest } else { 0.0 });
                    total += potential;
                }
            }
            // SAFETY: every chunk has its own place in `parts`, which lives until all are done
            unsafe { *part.host().add(chunk) = total };
        });
        parts.iter().sum()
    }
}

/// Slope of a field in cells, by the scheme, and if wanted its value by the eight shares.
fn at(law: &Law, field: &[f64], place: &Place, value: bool) -> ([f64; 3], f64) {
    let [nx, ny, _] = law.grid;
    let v = |x: usize, y: usize, z: usize| field[(z * ny + y) * nx + x];
    let mut slope = [0.0; 3];
    let mut potential = 0.0;
    if law.scheme == Scheme::Variational || value {
        let ends = place.ends(law.grid);
        let weight = |k: usize| [1.0 - place.offset[k], place.offset[k]];
        let (wx, wy, wz) = (weight(0), weight(1), weight(2));
        for a in 0..2 {
            for b in 0..2 {
                for c in 0..2 {
                    let u = v(ends[0][a], ends[1][b], ends[2][c]);
                    let sign = |upper: usize| if upper == 1 { u } else { -u };
                    slope[0] += sign(a) * wy[b] * wz[c];
                    slope[1] += wx[a] * sign(b) * wz[c];
                    slope[2] += wx[a] * wy[b] * sign(c);
                    potential += wx[a] * wy[b] * wz[c] * u;
                }
            }
        }
    }
    if law.scheme == Scheme::Paper {
        let mut nearest = place.vertex;
        let mut d = place.offset;
        for k in 0..3 {
            if d[k] > 0.5 {
                nearest[k] = (nearest[k] + 1) % law.grid[k];
                d[k] -= 1.0;
            }
        }
        let [x, y, z] = nearest;
        let here = v(x, y, z);
        for k in 0..3 {
            let beside = |step: usize| {
                let mut n = nearest;
                n[k] = (n[k] + step) % law.grid[k];
                v(n[0], n[1], n[2])
            };
            let (below, above) = (beside(law.grid[k] - 1), beside(1));
            slope[k] = (0.5 - d[k]) * (here - below) + (0.5 + d[k]) * (above - here);
        }
    }
    (slope, potential)
}

/// Charge of a particle.
///
/// # Safety
/// The view is of valid host arrays with charges, and `i` is a particle.
unsafe fn charge(state: &StateView, i: usize) -> f64 {
    // SAFETY: the caller's word
    unsafe {
        if state.precision == galamost_plugin_api::precision::Precision::Double as u32 {
            *state.charge.cast::<f64>().host().add(i)
        } else {
            f64::from(*state.charge.cast::<f32>().host().add(i))
        }
    }
}
