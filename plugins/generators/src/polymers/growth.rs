//! Growth of molecules, bead by bead, among existing particles.

use crate::polymers::geometry::{around, dot, minus, unit, wrapped};
use crate::polymers::grid::Grid;
use crate::polymers::species::{RingTarget, Species};
use galamost_plugin_api::philox::{RandomKey, philox4x32};
use galamost_plugin_api::prelude::*;
use std::f64::consts::PI;

/// Trial positions for the first bead of a molecule; a single bead is cheap to test.
const START_TRIALS: usize = 1000;

/// A stream of uniform random numbers.
pub struct UniformStream {
    key: RandomKey,
    drawn: u64,
    words: [u32; 4],
}

impl UniformStream {
    /// Returns the stream of a key.
    pub fn new(key: RandomKey) -> Self {
        Self { key, drawn: 0, words: [0; 4] }
    }
    /// Draws a number in (0, 1).
    pub fn next(&mut self) -> f64 {
        let k = (self.drawn % 4) as usize;
        if k == 0 {
            let n = self.drawn / 4;
            self.words = philox4x32::<7>([n as u32, (n >> 32) as u32, 0, 0], self.key.key);
        }
        self.drawn += 1;
        (f64::from(self.words[k]) + 0.5) / 4_294_967_296.0
    }
    /// Draws an integer in 0 … n − 1.
    fn below(&mut self, n: usize) -> usize {
        ((self.next() * n as f64) as usize).min(n - 1)
    }
}

/// The system under construction.
pub struct Builder<'a> {
    /// Particles so far.
    pub state: &'a mut Snapshot,
    /// Cell grid of the particles.
    pub grid: Grid,
    /// Squared minimum distances of all pairs of types.
    pub min_distance2: Vec<f64>,
    /// Number of types.
    pub n_types: usize,
    /// Random numbers.
    pub random: UniformStream,
    /// Maximum number of trial positions per bead.
    pub trials: u32,
    /// Maximum number of growth attempts per molecule.
    pub attempts: u32,
    /// Reserved positions of the first beads of grafted molecules.
    pub reserved: Option<Reserved>,
    /// κ of the distribution exp(κ cos γ) of the angle between successive bonds; 0 for freely jointed chains.
    pub kappa: f64,
}

/// Positions that are kept free for the first beads of grafted molecules.
pub struct Reserved {
    grid: Grid,
    points: Vec<[f64; 3]>,
    type_id: u32,
    /// Molecule under construction; the points of earlier molecules are already occupied.
    current: usize,
}

impl Reserved {
    /// Reserves points for beads of a type.
    pub fn new(points: &[[f64; 3]], type_id: u32, length: [f64; 3], reach: f64) -> Self {
        let points: Vec<_> = points.iter().map(|r| wrapped(*r, length).0).collect();
        let mut grid = Grid::new(length, reach, points.len());
        points.iter().for_each(|r| grid.push(*r));
        Self { grid, points, type_id, current: 0 }
    }
    /// Starts molecule `k`, and releases its point and those before.
    pub fn start(&mut self, k: usize) {
        self.current = k;
    }
}

impl Builder<'_> {
    /// Returns whether a bead of this type may be at a point of the box. `near` lists the beads, counted from the particle
    /// `base`, that it may be close to.
    fn is_free(&self, type_id: u32, at: [f64; 3], base: usize, near: &[usize]) -> bool {
        let length = self.state.box_length;
        let row = type_id as usize * self.n_types;
        let is_far = |p: [f64; 3], min2: f64| {
            let mut d2 = 0.0;
            for k in 0..3 {
                let mut d = at[k] - p[k];
                if length[k] > 0.0 {
                    d -= length[k] * (d / length[k]).round();
                }
                d2 += d * d;
            }
            d2 >= min2
        };
        let free = self.grid.all_near(at, |i| {
            let min2 = self.min_distance2[row + self.state.type_id[i] as usize];
            min2 == 0.0 || (i >= base && near.contains(&(i - base))) || is_far(self.state.position[i], min2)
        });
        let Some(r) = &self.reserved else { return free };
        let min2 = self.min_distance2[row + r.type_id as usize];
        free && (min2 == 0.0 || r.grid.all_near(at, |i| i <= r.current || is_far(r.points[i], min2)))
    }

    /// Draws a random direction.
    fn direction(&mut self) -> [f64; 3] {
        let phi = 2.0 * PI * self.random.next();
        if self.state.dimensions == 2 {
            return [phi.cos(), phi.sin(), 0.0];
        }
        let z = 2.0 * self.random.next() - 1.0;
        let rho = (1.0 - z * z).sqrt();
        [rho * phi.cos(), rho * phi.sin(), z]
    }

    /// Draws the direction of a bond after one in the direction u, with the cosine c between them.
    fn bent(&mut self, u: [f64; 3], c: f64) -> [f64; 3] {
        let s = (1.0 - c * c).max(0.0).sqrt();
        self.at_random_angle(u, c, s)
    }

    /// Returns the vector with the component `along` u and the component `across` it, at a random angle around u.
    fn at_random_angle(&mut self, u: [f64; 3], along: f64, across: f64) -> [f64; 3] {
        if self.state.dimensions == 2 {
            let across = if self.random.next() < 0.5 { across } else { -across };
            return [along * u[0] - across * u[1], along * u[1] + across * u[0], 0.0];
        }
        around(u, along, across, 2.0 * PI * self.random.next())
    }

    /// Draws a trial position of bead i of a molecule, given the beads before it.
    fn trial_position(&mut self, species: &Species, chain: &[[f64; 3]], i: usize) -> [f64; 3] {
        let parent = species.molecule.parents[i];
        let from = chain[parent];
        let length = species.lengths[i];
        if let Some(RingTarget { bead, bonds_left: 1, last_length }) = species.ring_targets[i] {
            // on the circle that is one bond away from both neighbors
            let to = minus(chain[bead], from);
            let d = dot(to, to).sqrt();
            let along = (d * d + length * length - last_length * last_length) / (2.0 * d);
            let across = (length * length - along * along).max(0.0).sqrt();
            let step = self.at_random_angle(unit(to), along, across);
            return std::array::from_fn(|k| from[k] + step[k]);
        }
        let before = (parent > 0).then(|| unit(minus(from, chain[species.molecule.parents[parent]])));
        let d = match (before, species.bends[i]) {
            (Some(u), Some(c)) => self.bent(u, -c),
            (Some(u), None) if self.kappa > 0.0 => {
                let x = self.random.next();
                let c = 1.0 + (x + (1.0 - x) * (-2.0 * self.kappa).exp()).ln() / self.kappa;
                self.bent(u, c.clamp(-1.0, 1.0))
            }
            _ => self.direction(),
        };
        std::array::from_fn(|k| from[k] + length * d[k])
    }

    /// Returns whether bead i may be at r: in the region, free, and in reach of the end of its ring.
    fn is_allowed(&self, species: &Species, chain: &[[f64; 3]], i: usize, r: [f64; 3], base: usize) -> bool {
        if let Some(RingTarget { bead, bonds_left, last_length }) = species.ring_targets[i] {
            let d = minus(chain[bead], r);
            let reach = if bonds_left == 1 {
                last_length * (1.0 + 1e-9)
            } else {
                let longest = last_length + (bonds_left - 1) as f64 * species.lengths[i];
                // ends of three bonds and more rarely need full extension, and few directions lead there
                longest * if bonds_left == 2 { 1.0 - 1e-9 } else { 0.98 }
            };
            if dot(d, d) > reach * reach {
                return false;
            }
        }
        let length = self.state.box_length;
        let (at, _) = wrapped(r, length);
        // the first bead has no parent: `chain` is empty
        let parent = chain.get(species.molecule.parents[i]);
        species.region.contains(at, length)
            && parent.is_none_or(|from| !species.region.is_left_by(*from, r, length))
            && species.graft.as_ref().is_none_or(|g| g.allows(r, length))
            && self.is_free(species.types[i], at, base, &species.near[i])
    }

    /// Returns an allowed position for bead i, or `None` if no trial position is allowed. All allowed positions are equally
    /// likely, except on the path to the end of a ring, where the probability is that of a random walk that reaches it.
    fn place_bead(&mut self, species: &Species, chain: &[[f64; 3]], i: usize, base: usize) -> Option<[f64; 3]> {
        let ring = species.ring_targets[i].filter(|t| t.bonds_left > 1);
        let (mut chosen, mut total) = (None, 0.0);
        for _ in 0..self.trials {
            let r = self.trial_position(species, chain, i);
            if !self.is_allowed(species, chain, i, r, base) {
                continue;
            }
            let Some(RingTarget { bead, bonds_left, last_length }) = ring else { return Some(r) };
            let d = minus(chain[bead], r);
            let weight = self.closing(dot(d, d), bonds_left, [species.lengths[i], last_length]);
            total += weight;
            if self.random.next() * total < weight {
                chosen = Some(r);
            }
        }
        chosen
    }

    /// Returns a number proportional to the probability that freely jointed bonds join two points at the squared distance `d2`: exactly
    /// for two bonds, of a Gaussian chain for more.
    fn closing(&self, d2: f64, bonds: usize, [one, last]: [f64; 2]) -> f64 {
        let dimensions = f64::from(self.state.dimensions);
        let (least, most) = ((one - last).powi(2), (one + last).powi(2));
        match (bonds, self.state.dimensions) {
            (2, _) if d2 <= least || d2 >= most => 0.0,
            (2, 2) => 1.0 / ((most - d2) * (d2 - least)).sqrt(),
            (2, _) => 1.0 / d2.sqrt(),
            _ => (-0.5 * dimensions * d2 / (bonds as f64 * last * last)).exp(),
        }
    }

    /// Adds a bead at a position that is known to be free.
    pub fn push(&mut self, type_id: u32, r: [f64; 3]) {
        let (at, image) = wrapped(r, self.state.box_length);
        let tag = self.state.push(type_id, at);
        self.state.image[tag as usize] = image;
        self.grid.push(at);
    }

    /// Removes the last bead.
    fn pop(&mut self) {
        let s = &mut *self.state;
        if let Some(r) = s.position.pop() {
            self.grid.pop(r);
            s.image.pop();
            s.velocity.pop();
            s.type_id.pop();
            s.mass.pop();
        }
    }

    /// Draws a random point of the region's bounding box.
    fn random_point(&mut self, species: &Species) -> [f64; 3] {
        let [low, high] = species.region.bounds(self.state.box_length);
        std::array::from_fn(|k| low[k] + (high[k] - low[k]) * self.random.next())
    }

    /// Returns a position for the first bead of a molecule.
    fn start_position(
        &mut self,
        species: &Species,
        first: Option<[f64; 3]>,
        anchor: Option<usize>,
        base: usize,
    ) -> Option<[f64; 3]> {
        match (first, anchor) {
            // `Polymers::check_places` has found all grafting points in the region
            (Some(r), None) => Some(r).filter(|r| {
                let (at, _) = wrapped(*r, self.state.box_length);
                self.is_free(species.types[0], at, base, &species.near[0])
            }),
            (_, Some(anchor)) => (0..self.trials).find_map(|_| {
                let (d, from) = (self.direction(), self.unwrapped(anchor));
                let r = std::array::from_fn(|k| from[k] + species.lengths[0] * d[k]);
                self.is_allowed_at_anchor(species, r, anchor).then_some(r)
            }),
            _ => (0..START_TRIALS).find_map(|_| {
                let r = self.random_point(species);
                self.is_allowed(species, &[], 0, r, base).then_some(r)
            }),
        }
    }

    /// Grows one molecule. `first` is the position of its first bead, if given; `anchor` is the particle that the first
    /// bead is bonded to. Returns `false` if no position was found.
    pub fn grow(&mut self, species: &Species, first: Option<[f64; 3]>, anchor: Option<usize>) -> bool {
        let n = species.molecule.beads.len();
        let base = self.state.len();
        for _ in 0..self.attempts {
            let Some(at) = self.start_position(species, first, anchor, base) else {
                if first.is_some() {
                    return false;
                }
                continue;
            };
            let mut chain: Vec<[f64; 3]> = Vec::with_capacity(n);
            self.push(species.types[0], at);
            chain.push(at);
            let (mut retract, mut steps_left) = (1, 10 * n + 100);
            while chain.len() < n && steps_left > 0 {
                steps_left -= 1;
                match self.place_bead(species, &chain, chain.len(), base) {
                    Some(r) => {
                        self.push(species.types[chain.len()], r);
                        chain.push(r);
                    }
                    // a dead end: retract by one bead more each time
                    None => {
                        for _ in 0..retract.min(chain.len() - 1) {
                            self.pop();
                            chain.pop();
                        }
                        retract += 1;
                    }
                }
            }
            if chain.len() == n {
                return true;
            }
            chain.iter().for_each(|_| self.pop());
        }
        false
    }

    /// Returns the unwrapped position of particle i.
    fn unwrapped(&self, i: usize) -> [f64; 3] {
        let s = &*self.state;
        std::array::from_fn(|k| s.position[i][k] + s.box_length[k] * f64::from(s.image[i][k]))
    }

    /// Returns whether the first bead may be at r, close to the particle `anchor` that it is bonded to.
    fn is_allowed_at_anchor(&self, species: &Species, r: [f64; 3], anchor: usize) -> bool {
        let length = self.state.box_length;
        let (at, _) = wrapped(r, length);
        // the anchor may be outside of the region
        let leaves = species.region.contains(self.state.position[anchor], length)
            && species.region.is_left_by(self.unwrapped(anchor), r, length);
        // with `anchor` as the base, the bead may be close to the anchor and to no other particle
        !leaves && species.region.contains(at, length) && self.is_free(species.types[0], at, anchor, &[0])
    }

    /// Returns sites of a simple cubic (square) lattice for n single beads: the coarsest lattice with enough free sites,
    /// minus a random surplus. Returns `None` if there are not enough free sites.
    pub fn lattice_sites(&mut self, species: &Species, n: usize) -> Option<Vec<[f64; 3]>> {
        let length = self.state.box_length;
        let dimensions = self.state.dimensions as usize;
        let [low, high] = species.region.bounds(length);
        let volume: f64 = (0..dimensions).map(|k| high[k] - low[k]).product();
        let mut spacing = (volume / n as f64).powf(1.0 / dimensions as f64) * 1.0001;
        for _ in 0..200 {
            let cells: [usize; 3] = std::array::from_fn(|k| ((high[k] - low[k]) / spacing).floor().max(1.0) as usize);
            if cells.iter().product::<usize>() >= n {
                let mut free = self.free_sites(species, [low, high], cells);
                if free.len() >= n {
                    for k in 0..n {
                        let other = k + self.random.below(free.len() - k);
                        free.swap(k, other);
                    }
                    free.truncate(n);
                    let same_type = species.types[0] as usize * (self.n_types + 1);
                    let edge =
                        (0..dimensions).map(|k| (high[k] - low[k]) / cells[k] as f64).fold(f64::INFINITY, f64::min);
                    return (edge * edge >= self.min_distance2[same_type] * (1.0 - 1e-9)).then_some(free);
                }
            }
            spacing *= 0.99;
        }
        None
    }

    /// Returns the centers of the lattice cells between the corners `low` and `high` that are free.
    fn free_sites(&self, species: &Species, [low, high]: [[f64; 3]; 2], cells: [usize; 3]) -> Vec<[f64; 3]> {
        let base = self.state.len();
        let mut free = vec![];
        for z in 0..cells[2] {
            for y in 0..cells[1] {
                for x in 0..cells[0] {
                    let cell = [x, y, z];
                    let r =
                        std::array::from_fn(|k| low[k] + (high[k] - low[k]) * (cell[k] as f64 + 0.5) / cells[k] as f64);
                    if self.is_allowed(species, &[], 0, r, base) {
                        free.push(r);
                    }
                }
            }
        }
        free
    }
}
