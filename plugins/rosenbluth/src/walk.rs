//! Grows chains monomer by monomer on the CPU; `chain.cuh`, `plain.cuh`, and `tours.cuh` are the counterparts on the
//! device.

use crate::model::{Model, Space};
use galamost_plugin_api::philox::philox4x32;

/// Random words of a chain, by draw number.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    pub key: [u32; 2],
    pub chain: u64,
}

/// Random streams of a chain: growth, trial positions, choice among trials.
const GROWTH: u32 = 0;
const TRIAL: u32 = 0x1_0000;
const CHOICE: u32 = 0x2_0000;

impl Draws {
    fn words(&self, draw: u32, stream: u32) -> [u32; 4] {
        philox4x32::<7>([self.chain as u32, draw, stream, (self.chain >> 32) as u32], self.key)
    }
    /// Returns the word that decides about pruning.
    pub fn pruning(&self, draw: u32) -> u32 {
        self.words(draw, 0x3_0000)[0]
    }
}

/// Result of adding a monomer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grown {
    /// Factor on the weight.
    pub factor: f64,
    /// Contacts of the new monomer.
    pub contacts: u32,
}

/// Weight of a chain, m 2^e, which cannot overflow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    pub m: f64,
    pub e: i32,
}

impl Weight {
    pub const ONE: Self = Self { m: 1.0, e: 0 };
    const BIG: f64 = 1.157_920_892_373_162e77; // 2²⁵⁶
    /// Multiplies by a factor.
    pub fn times(self, f: f64) -> Self {
        let m = self.m * f;
        if m > Self::BIG {
            Self { m: m * (1.0 / Self::BIG), e: self.e + 256 }
        } else if m < 1.0 / Self::BIG {
            Self { m: m * Self::BIG, e: self.e - 256 }
        } else {
            Self { m, e: self.e }
        }
    }
    /// Returns m 2^(e + shift), or 0 or infinity out of the range of f64.
    pub fn scaled(self, shift: i32) -> f64 {
        let e = self.e + shift;
        if e < -1000 {
            0.0
        } else if e > 700 {
            f64::INFINITY
        } else {
            self.m * f64::from_bits(((e + 1023) as u64) << 52)
        }
    }
    /// Returns the binary exponent.
    pub fn exponent(self) -> i32 {
        self.e + ((self.m.to_bits() >> 52) & 0x7ff) as i32 - 1023
    }
    pub fn ln(self) -> f64 {
        self.m.ln() + f64::from(self.e) * std::f64::consts::LN_2
    }
}

/// A growing chain.
pub struct Walk<'a> {
    model: &'a Model,
    /// Positions relative to the first monomer.
    pub positions: Vec<[i32; 3]>,
    /// Hash table of occupied sites as keys, 0 for empty; open addressing.
    table: Vec<u64>,
    bits: u32,
    steps: Vec<u64>,
    sum: [f64; 3],
    square: f64,
    /// Cached words of the growth stream, four per call, and the number of the call.
    growth: ([u32; 4], u32),
}

/// Returns a nonzero key of a site; differences of keys are keys of differences.
fn key(r: [i32; 3]) -> u64 {
    let part = |x: i32| (x + (1 << 20)) as u64;
    part(r[0]) | part(r[1]) << 21 | part(r[2]) << 42
}

impl<'a> Walk<'a> {
    pub fn new(model: &'a Model) -> Self {
        let bits = (2 * model.n).next_power_of_two().trailing_zeros().max(4);
        let origin = key([0; 3]);
        let (size, steps) = match &model.space {
            Space::Lattice { offsets, .. } => {
                (1 << bits, offsets.iter().map(|d| key(*d).wrapping_sub(origin)).collect())
            }
            Space::Beads { .. } => (0, vec![]),
        };
        let positions = Vec::with_capacity(model.n);
        Self {
            model,
            positions,
            table: vec![0; size],
            bits,
            steps,
            sum: [0.0; 3],
            square: 0.0,
            growth: ([0; 4], u32::MAX),
        }
    }

    /// Resets to the first monomer.
    pub fn begin(&mut self) {
        if self.positions.len() > 32 {
            self.table.fill(0);
            self.positions.clear();
        }
        while !self.positions.is_empty() {
            self.pop();
        }
        (self.sum, self.square) = ([0.0; 3], 0.0);
        self.growth.1 = u32::MAX;
        self.push([0; 3]);
    }

    fn slot(&self, k: u64) -> usize {
        let mask = self.table.len() - 1;
        let mut h = (k.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - self.bits)) as usize;
        while self.table[h] != 0 && self.table[h] != k {
            h = (h + 1) & mask;
        }
        h
    }

    fn occupied(&self, k: u64) -> bool {
        self.table[self.slot(k)] != 0
    }

    fn push(&mut self, r: [i32; 3]) {
        if !self.table.is_empty() {
            let k = key(r);
            let slot = self.slot(k);
            self.table[slot] = k;
        }
        self.positions.push(r);
        let r = r.map(f64::from);
        (0..3).for_each(|k| self.sum[k] += r[k]);
        self.square += r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
    }

    /// Removes the last monomer. Later ones are already removed, so its slot can simply be cleared.
    fn pop(&mut self) {
        let Some(r) = self.positions.pop() else { return };
        if !self.table.is_empty() {
            let slot = self.slot(key(r));
            self.table[slot] = 0;
        }
        let r = r.map(f64::from);
        (0..3).for_each(|k| self.sum[k] -= r[k]);
        self.square -= r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
    }

    /// Becomes a copy of another chain.
    pub fn copy(&mut self, from: &Self) {
        self.positions.clone_from(&from.positions);
        self.table.clone_from(&from.table);
        (self.sum, self.square) = (from.sum, from.square);
        self.growth.1 = u32::MAX;
    }

    /// Returns the squared end-to-end distance and the squared radius of gyration, in units.
    pub fn squares(&self) -> [f64; 2] {
        let [x, y, z] = self.positions[self.positions.len() - 1].map(f64::from);
        let n = self.positions.len() as f64;
        let s = self.sum;
        let of_mean = s[0] * s[0] + s[1] * s[1] + s[2] * s[2];
        [x * x + y * y + z * z, (n * self.square - of_mean) / (n * n)]
    }

    /// Adds a monomer; returns `None` if there is no free position.
    pub fn grow(&mut self, draws: &Draws, draw: u32) -> Option<Grown> {
        let parent = self.model.parent(self.positions.len());
        let (r, grown) = match &self.model.space {
            Space::Lattice { offsets, .. } => {
                if self.growth.1 != draw >> 2 {
                    self.growth = (draws.words(draw >> 2, GROWTH), draw >> 2);
                }
                self.site(offsets, self.positions[parent], self.growth.0[(draw & 3) as usize])?
            }
            Space::Beads { trials, sigma2, reach2, reach } => {
                self.bead(*trials, *sigma2, *reach2, *reach, parent, draws, draw)?
            }
        };
        self.push(r);
        Some(grown)
    }

    fn site(&self, offsets: &[[i32; 3]], at: [i32; 3], word: u32) -> Option<([i32; 3], Grown)> {
        let m = self.model;
        let here = key(at);
        let to = |j: usize| std::array::from_fn(|k| at[k] + offsets[j][k]);
        let mut free = 0u32;
        for (j, step) in self.steps.iter().enumerate() {
            if !self.occupied(here.wrapping_add(*step)) && (m.walls.is_empty() || m.allows(to(j))) {
                free |= 1 << j;
            }
        }
        if free == 0 {
            return None;
        }
        if m.weights.is_empty() {
            let count = free.count_ones();
            let mut left = (u64::from(word) * u64::from(count)) >> 32;
            while left > 0 {
                free &= free - 1;
                left -= 1;
            }
            let j = free.trailing_zeros() as usize;
            return Some((to(j), Grown { factor: f64::from(count) * m.factors[0], contacts: 0 }));
        }
        let mut contacts = [0usize; 32];
        let mut total = 0u32;
        for (j, step) in self.steps.iter().enumerate().filter(|(j, _)| free >> j & 1 != 0) {
            let there = here.wrapping_add(*step);
            let near = self.steps.iter().filter(|s| self.occupied(there.wrapping_add(**s))).count();
            // the parent is an occupied neighbor, but bonded
            contacts[j] = near - 1;
            total += m.weights[contacts[j]];
        }
        let mut left = (u64::from(word) * u64::from(total)) >> 32;
        for j in (0..offsets.len()).filter(|j| free >> j & 1 != 0) {
            let c = contacts[j];
            let weight = u64::from(m.weights[c]);
            if left < weight {
                return Some((to(j), Grown { factor: f64::from(total) * m.factors[c], contacts: c as u32 }));
            }
            left -= weight;
        }
        None
    }

    #[expect(clippy::too_many_arguments)]
    fn bead(
        &self,
        trials: u32,
        sigma2: i64,
        reach2: i64,
        reach: i32,
        parent: usize,
        draws: &Draws,
        draw: u32,
    ) -> Option<([i32; 3], Grown)> {
        let m = self.model;
        let at = self.positions[parent];
        // beads within reach of any trial; along a linear chain, one far away is followed by others out of reach
        let mut near: Vec<[i32; 3]> = vec![];
        let linear = m.parents.is_none();
        let mut j = self.positions.len() as i64 - 1;
        while j >= 0 {
            let d2 = distance2(self.positions[j as usize], at);
            if d2 <= i64::from(reach) * i64::from(reach) {
                if j as usize != parent {
                    near.push(self.positions[j as usize]);
                }
                j -= 1;
            } else {
                j -= if linear { beads_to_skip(d2, reach) } else { 1 };
            }
        }
        let (mut total, mut chosen) = (0u32, None);
        for t in 0..trials {
            let d = direction(draws, draw, t);
            let r = std::array::from_fn(|k| at[k] + d[k]);
            let mut contacts = 0usize;
            let apart = |b: &[i32; 3]| {
                let d2 = distance2(*b, r);
                contacts += usize::from(d2 < reach2);
                d2 >= sigma2
            };
            if !near.iter().all(apart) || !(m.walls.is_empty() || m.allows(r)) {
                continue;
            }
            let contacts = if m.weights.is_empty() { 0 } else { contacts.min(crate::model::CONTACTS - 1) };
            let weight = if m.weights.is_empty() { 1 } else { m.weights[contacts] };
            total += weight;
            // replace the earlier choice with probability weight/total
            let word = draws.words(draw, CHOICE | t >> 2)[(t & 3) as usize];
            if (u64::from(word) * u64::from(total)) >> 32 < u64::from(weight) {
                chosen = Some((r, contacts));
            }
        }
        let (r, c) = chosen?;
        Some((r, Grown { factor: f64::from(total) * m.factors[c], contacts: c as u32 }))
    }
}

/// Returns the nearest integer, ties to even, without the function call that `round_ties_even` needs on old processors.
#[inline(always)]
pub fn nearest(x: f64) -> i64 {
    const SHIFT: f64 = 6_755_399_441_055_744.0; // 3 · 2⁵¹
    if x.abs() < 2_251_799_813_685_248.0 {
        (x + SHIFT).to_bits().wrapping_sub(SHIFT.to_bits()) as i64
    } else {
        x.round_ties_even() as i64
    }
}

fn distance2(a: [i32; 3], b: [i32; 3]) -> i64 {
    let d = [i64::from(a[0] - b[0]), i64::from(a[1] - b[1]), i64::from(a[2] - b[2])];
    d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
}

/// Returns how many beads before one at the squared distance `d2` are also out of reach.
fn beads_to_skip(d2: i64, reach: i32) -> i64 {
    let bonds = ((d2 as f32).sqrt() * 0.999_99 - reach as f32) * (0.999_99 / crate::model::BOND as f32);
    (bonds as i64).max(1)
}

/// Returns a bond with a direction uniform on the sphere, by Marsaglia's method (Ann. Math. Stat. 43, 645 (1972)), in
/// integer arithmetic except for one square root, which is exact on both devices.
fn direction(draws: &Draws, draw: u32, trial: u32) -> [i32; 3] {
    const ONE: i64 = 1 << 60;
    const SCALE: f64 = crate::model::BOND / ONE as f64;
    for attempt in 0.. {
        let w = draws.words(draw, TRIAL | trial << 8 | attempt);
        for p in [[w[0], w[1]], [w[2], w[3]]] {
            let [x, y] = p.map(|x| i64::from((x as i32) >> 1));
            let s = x * x + y * y;
            if s < ONE {
                let root = ((ONE - s) as f64).sqrt() * (2.0 * SCALE);
                return [x as f64 * root, y as f64 * root, (ONE - 2 * s) as f64 * SCALE].map(|x| nearest(x) as i32);
            }
        }
    }
    unreachable!("a fifth of the attempts fail")
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn rounding_agrees_with_the_device() {
        let mut x = 0.37f64;
        for k in 0..2000 {
            x = -x * 1.021;
            assert_eq!(nearest(x), x.round_ties_even() as i64, "{x}");
            let half = f64::from(k) - 700.5;
            assert_eq!(nearest(half), half.round_ties_even() as i64, "{half}");
        }
        assert!(x.abs() > 1e17);
    }
}
