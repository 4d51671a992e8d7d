//! One cluster on the CPU: positions, velocities and forces that satisfy its constraints. `constraints.cuh` does the same.

use crate::clusters::Clusters;
use crate::{COSINE, PASSES};
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::place::add_virial;
use galamost_plugin_api::precision::{PosTypeFixed, Precision};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::StateView;

/// Length of a fixed-point unit with 32 and 64 bits, relative to the box.
const UNITS: [f64; 2] = [1.0 / 4_294_967_296.0, 1.0 / 18_446_744_073_709_551_616.0];

/// A cluster and memory for its particles, which is reused from one cluster to the next.
pub struct Solver<'a> {
    state: &'a StateView,
    reference: DevicePtr<u8>,
    tolerance: f64,
    dt: f64,
    pairs: &'a [[u32; 2]],
    squares: &'a [f64],
    members: &'a [[u32; 2]],
    index: Vec<usize>,
    inverse_mass: Vec<f64>,
    /// Positions relative to the first member.
    x: Vec<Vec3<f64>>,
    /// Vectors of the constraints.
    s: Vec<Vec3<f64>>,
    multipliers: Vec<f64>,
    /// Velocities.
    v: Vec<Vec3<f64>>,
    /// Accelerations.
    a: Vec<Vec3<f64>>,
    /// Positions or velocities before a correction.
    old: Vec<Vec3<f64>>,
}

impl<'a> Solver<'a> {
    /// # Safety
    /// The views describe valid host arrays.
    pub unsafe fn new(state: &'a StateView, reference: DevicePtr<u8>, tolerance: f64) -> Self {
        // SAFETY: contract of this function
        let dt = unsafe { (*state.globals.host()).dt };
        Self {
            state,
            reference,
            tolerance,
            dt,
            pairs: &[],
            squares: &[],
            members: &[],
            index: vec![],
            inverse_mass: vec![],
            x: vec![],
            s: vec![],
            multipliers: vec![],
            v: vec![],
            a: vec![],
            old: vec![],
        }
    }

    /// Loads masses, velocities and positions of cluster `c`.
    ///
    /// # Safety
    /// The clusters are those of the state.
    pub unsafe fn load(&mut self, clusters: &'a Clusters, c: usize) {
        let [[m0, k0], [m1, k1]] = [clusters.starts[c], clusters.starts[c + 1]].map(|s| s.map(|x| x as usize));
        self.members = &clusters.members[m0..m1];
        (self.pairs, self.squares) = (&clusters.pairs[k0..k1], &clusters.squares[k0..k1]);
        self.index.clear();
        self.inverse_mass.clear();
        self.v.clear();
        self.x.clear();
        for [tag, before] in self.members {
            // SAFETY: the tags are those of particles (contract of this function)
            unsafe {
                let i = *self.state.index_of_tag.host().add(*tag as usize) as usize;
                self.index.push(i);
                let [x, y, z, mass] = self.state.velocity_mass(i);
                self.inverse_mass.push(1.0 / mass);
                self.v.push(Vec3::new(x, y, z));
                let before = *before as usize;
                let x = self.x.get(before).map_or(Vec3::zero(), |x| *x + self.separation(i, self.index[before]));
                self.x.push(x);
            }
        }
    }

    /// Returns r_i − r_j for the nearest image of j, with all stored digits.
    ///
    /// # Safety
    /// `i` and `j` are particles.
    unsafe fn separation(&self, i: usize, j: usize) -> Vec3<f64> {
        let state = self.state;
        // SAFETY: `i` and `j` are particles, and the arrays have an entry of this precision for each
        unsafe {
            if state.precision == Precision::Double as u32 {
                return Vec3::from(state.difference(i, j));
            }
            let length = (*state.globals.host()).box_length;
            let high = |i: usize| (*state.pos_type.cast::<PosTypeFixed>().host().add(i)).position;
            let (a, b) = (high(i), high(j));
            if state.pos_low.is_null() {
                return Vec3::from(std::array::from_fn(|k| {
                    f64::from(a[k].wrapping_sub(b[k])) * (length[k] * UNITS[0])
                }));
            }
            let low = |i: usize| *state.pos_low.cast::<[u32; 3]>().host().add(i);
            let (c, d) = (low(i), low(j));
            let whole = |high: i32, low: u32| i64::from(high) << 32 | i64::from(low);
            let units = |k: usize| whole(a[k], c[k]).wrapping_sub(whole(b[k], d[k])) as f64;
            Vec3::from(std::array::from_fn(|k| units(k) * (length[k] * UNITS[1])))
        }
    }

    /// Sets the vectors of the constraints from positions.
    fn set_vectors(&mut self) {
        let x = &self.x;
        self.s.clear();
        self.s.extend(self.pairs.iter().map(|[a, b]| x[*a as usize] - x[*b as usize]));
    }

    /// Sets the vectors of the constraints to those of the last time that positions were constrained.
    ///
    /// # Safety
    /// A cluster is loaded, and the array of references has an entry for each particle.
    unsafe fn set_reference_vectors(&mut self) {
        let x = &mut self.old;
        x.clear();
        for ([_, before], i) in self.members.iter().zip(&self.index) {
            // SAFETY: contract of this function
            let step = Vec3::from(unsafe { self.state.reals::<3>(self.reference, *i) });
            let at = x.get(*before as usize).map_or(Vec3::zero(), |x| *x + step);
            x.push(at);
        }
        self.s.clear();
        self.s.extend(self.pairs.iter().map(|[a, b]| x[*a as usize] - x[*b as usize]));
    }

    /// Constrains the positions: after integrators have `moved` particles along the old vectors, with the velocities; otherwise
    /// along the present ones. Returns the tag of a particle if this fails.
    ///
    /// # Safety
    /// A cluster is loaded, and no other thread accesses its particles.
    pub unsafe fn constrain(&mut self, component: u32, moved: bool) -> Result<(), u32> {
        if moved {
            // SAFETY: contract of this function
            unsafe { self.set_reference_vectors() };
        } else {
            self.set_vectors();
        }
        self.old.clone_from(&self.x);
        if moved || !self.is_satisfied() {
            self.shake(moved)?;
        }
        let rate = if moved { 1.0 / self.dt } else { 0.0 };
        for (m, i) in self.index.iter().enumerate() {
            let d = self.x[m] - self.old[m];
            // SAFETY: contract of this function
            unsafe {
                self.state.place(component, *i, *i, d.f64(), (self.v[m] + d * rate).f64());
                self.store_reference(*i, self.x[m] - self.x[self.members[m][1] as usize]);
            }
        }
        Ok(())
    }

    /// Returns whether a constraint of the cluster is longer than half the box, or nearly so: positions may deviate by roundings.
    pub fn exceeds_half_box(&self) -> bool {
        // SAFETY: the view describes valid host arrays (contract of `new`)
        let (length, dimensions) = unsafe {
            let g = &*self.state.globals.host();
            (g.box_length, g.dimensions)
        };
        let half = length.iter().take(dimensions as usize).fold(f64::INFINITY, |least, l| least.min(0.5 * l));
        self.squares.iter().any(|square| *square > 0.999 * half * half)
    }

    /// Returns whether all lengths are right.
    fn is_satisfied(&self) -> bool {
        self.s.iter().zip(self.squares).all(|(s, square)| (s.norm2() - square).abs() <= 2.0 * self.tolerance * square)
    }

    /// Corrects the positions along the old vectors of the constraints. At the start there are none, and lengths may be far off: then
    /// along the present vectors, so that every correction brings a length closer.
    fn shake(&mut self, moved: bool) -> Result<(), u32> {
        let mut last = 0;
        for _ in 0..PASSES {
            let mut worst = 0.0f64;
            for (k, [a, b]) in self.pairs.iter().enumerate() {
                let (a, b, square) = (*a as usize, *b as usize, self.squares[k]);
                let d = self.x[a] - self.x[b];
                let s = if moved { self.s[k] } else { d };
                let (off, along) = (d.norm2() - square, d.dot(s));
                // false for NaN, too
                let valid = along > COSINE * square;
                if !valid {
                    return Err(self.members[b][0]);
                }
                if off.abs() > worst * square {
                    (worst, last) = (off.abs() / square, b);
                }
                let [u, v] = [self.inverse_mass[a], self.inverse_mass[b]];
                let push = s * (off / (2.0 * (u + v) * along));
                self.x[a] -= push * u;
                self.x[b] += push * v;
            }
            if worst <= 2.0 * self.tolerance {
                return Ok(());
            }
        }
        Err(self.members[last][0])
    }

    /// Stores the vector of particle `i` from its predecessor.
    ///
    /// # Safety
    /// The array of references has an entry for particle `i`, which no other thread accesses.
    unsafe fn store_reference(&self, i: usize, r: Vec3<f64>) {
        // SAFETY: contract of this function
        unsafe {
            if self.state.precision == Precision::Double as u32 {
                *self.reference.cast::<[f64; 3]>().host().add(i) = r.f64();
            } else {
                *self.reference.cast::<[f32; 3]>().host().add(i) = r.f64().map(|x| x as f32);
            }
        }
    }

    /// Removes the velocities along the vectors of the constraints. Returns whether they have changed, and the tag of a particle if
    /// this fails.
    fn project(&mut self) -> Result<bool, u32> {
        let (v, mut last) = (&mut self.v, 0);
        for pass in 0..PASSES {
            let mut worst = 0.0f64;
            for (k, [a, b]) in self.pairs.iter().enumerate() {
                let (a, b, s, square) = (*a as usize, *b as usize, self.s[k], self.squares[k]);
                let along = (v[a] - v[b]).dot(s);
                if !along.is_finite() {
                    return Err(self.members[b][0]);
                }
                if along.abs() * self.dt > worst * square {
                    (worst, last) = (along.abs() * self.dt / square, b);
                }
                let [m, n] = [self.inverse_mass[a], self.inverse_mass[b]];
                let push = s * (along / ((m + n) * s.norm2()));
                v[a] -= push * m;
                v[b] += push * n;
            }
            if worst <= self.tolerance {
                return Ok(pass > 0);
            }
        }
        Err(self.members[last][0])
    }

    /// Removes the velocities along constraints. Returns the tag of a particle if this fails.
    ///
    /// # Safety
    /// A cluster is loaded, its velocities are those of the state, and no other thread accesses its particles.
    pub unsafe fn constrain_velocities(&mut self) -> Result<(), u32> {
        self.set_vectors();
        if self.project()? {
            // SAFETY: contract of this function
            self.index.iter().zip(&self.v).for_each(|(i, v)| unsafe { self.state.set_velocity(*i, v.f64()) });
        }
        Ok(())
    }

    /// Adds the forces after which half a kick leaves no velocity along constraints; also their virial, if wanted. `half` is set
    /// if velocities are those in the middle of the step. Returns the tag of a particle if this fails.
    ///
    /// # Safety
    /// A cluster is loaded, and no other thread accesses its particles.
    pub unsafe fn add_forces(&mut self, half: bool, virial: Option<&mut [f64; 6]>) -> Result<(), u32> {
        self.set_vectors();
        self.a.clear();
        for (m, i) in self.index.iter().enumerate() {
            // SAFETY: contract of this function
            let force = Vec3::from(unsafe { self.state.force(*i) });
            self.v[m] += force * (0.5 * self.dt * self.inverse_mass[m]);
            self.a.push(force * self.inverse_mass[m]);
        }
        self.old.clone_from(&self.v);
        self.project()?;
        let rate = 2.0 / self.dt;
        for (m, i) in self.index.iter().enumerate() {
            // SAFETY: contract of this function
            unsafe {
                let f = (self.v[m] - self.old[m]) * (rate * self.state.velocity_mass(*i)[3]);
                self.state.add_force(*i, f.f64(), 0.0);
            }
        }
        let Some(virial) = virial else { return Ok(()) };
        if !half {
            for (v, i) in self.v.iter_mut().zip(&self.index) {
                // SAFETY: contract of this function
                let [x, y, z, _] = unsafe { self.state.velocity_mass(*i) };
                *v = Vec3::new(x, y, z);
            }
        }
        self.find_multipliers()?;
        for (s, multiplier) in self.s.iter().zip(&self.multipliers) {
            add_virial(virial, s.f64(), (*s * -multiplier).f64());
        }
        Ok(())
    }

    /// Finds the multipliers of the constraint forces for which the second derivatives of the lengths vanish, from velocities
    /// and accelerations.
    fn find_multipliers(&mut self) -> Result<(), u32> {
        let (v, a) = (&self.v, &mut self.a);
        self.multipliers.clear();
        self.multipliers.resize(self.pairs.len(), 0.0);
        let mut scale = 0.0f64;
        for pass in 0..PASSES {
            let mut worst = 0.0f64;
            for (k, [i, j]) in self.pairs.iter().enumerate() {
                let (i, j, s) = (*i as usize, *j as usize, self.s[k]);
                let along = (a[i] - a[j]).dot(s);
                let turning = (v[i] - v[j]).norm2();
                if pass == 0 {
                    scale = scale.max(along.abs() + turning);
                }
                worst = worst.max((along + turning).abs());
                let [m, n] = [self.inverse_mass[i], self.inverse_mass[j]];
                let multiplier = (along + turning) / ((m + n) * s.norm2());
                self.multipliers[k] += multiplier;
                a[i] -= s * (multiplier * m);
                a[j] += s * (multiplier * n);
            }
            if worst <= self.tolerance * scale {
                return Ok(());
            }
        }
        Err(self.members[0][0])
    }
}
