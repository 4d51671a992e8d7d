//! Placing molecules bead by bead among what is there already.

use crate::builder::grid::Grid;
use crate::builder::notation::Molecule;
use crate::builder::region::{Graft, Region};
use galamost_plugin_api::philox::{RandomKey, philox4x32};
use galamost_plugin_api::prelude::*;
use std::f64::consts::PI;

/// Uniform numbers one after the other.
pub struct Numbers {
    key: RandomKey,
    drawn: u64,
    words: [u32; 4],
}

impl Numbers {
    pub fn new(key: RandomKey) -> Self {
        Self { key, drawn: 0, words: [0; 4] }
    }
    /// In (0, 1).
    pub fn next(&mut self) -> f64 {
        let k = (self.drawn % 4) as usize;
        if k == 0 {
            let n = self.drawn / 4;
            self.words = philox4x32::<7>([n as u32, (n >> 32) as u32, 0, 0], self.key.key);
        }
        self.drawn += 1;
        (f64::from(self.words[k]) + 0.5) / 4_294_967_296.0
    }
    fn below(&mut self, n: usize) -> usize {
        ((self.next() * n as f64) as usize).min(n - 1)
    }
}

/// A kind of molecule with all that its growth needs.
pub struct Kind {
    pub molecule: Molecule,
    /// Number of the type of each bead.
    pub types: Vec<u32>,
    /// Length of the bond to each bead's parent.
    pub lengths: Vec<f64>,
    /// cos of the angle between the bonds to a bead's parent and from there to the parent's own one, if it is given.
    pub bends: Vec<Option<f64>>,
    /// For a bead on the way to the end of a ring: the bead it must meet, bonds left, length of the last of them.
    pub meets: Vec<Option<(usize, usize, f64)>>,
    /// Beads of the molecule that a bead may be near to: bonded ones, and the ends of given angles.
    pub near: Vec<Vec<usize>>,
    pub region: Region,
    pub graft: Option<Graft>,
}

impl Kind {
    /// For each bead that lies on a ring after its first bead: where the ring closes.
    pub fn meetings(m: &Molecule, length: impl Fn(usize, usize) -> f64) -> Vec<Option<(usize, usize, f64)>> {
        let mut out = vec![None; m.beads.len()];
        for [a, b] in &m.closures {
            let (mut i, mut left) = (*b, 1);
            while i > *a {
                out[i].get_or_insert((*a, left, length(*a, *b)));
                left += 1;
                i = m.parents[i];
            }
        }
        out
    }
}

/// The system while it is built.
pub struct Builder<'a> {
    pub state: &'a mut Snapshot,
    pub grid: Grid,
    /// Shortest distances by two types, squared; of all types.
    pub apart2: Vec<f64>,
    pub n_types: usize,
    pub numbers: Numbers,
    pub trials: u32,
    pub attempts: u32,
    /// Places of the first beads of grafted molecules that are still to come, their type, and which of them is under way.
    pub reserved: Option<Reserved>,
    /// κ of the law exp(κ cos γ) of the angle between bonds that follow each other; 0 for free joints.
    pub kappa: f64,
}

/// Places that are kept free.
pub struct Reserved {
    grid: Grid,
    places: Vec<[f64; 3]>,
    kind: u32,
    now: usize,
}

impl Reserved {
    pub fn new(places: &[[f64; 3]], kind: u32, length: [f64; 3], reach: f64) -> Self {
        let places: Vec<_> = places.iter().map(|r| wrapped(*r, length).0).collect();
        let mut grid = Grid::new(length, reach, places.len());
        places.iter().for_each(|r| grid.push(*r));
        Self { grid, places, kind, now: 0 }
    }
    /// The molecule of this number is under way; those before it are there.
    pub fn begin(&mut self, k: usize) {
        self.now = k;
    }
}

/// Unwrapped position to the box.
fn wrapped(r: [f64; 3], length: [f64; 3]) -> ([f64; 3], [i32; 3]) {
    let mut image = [0; 3];
    let at = std::array::from_fn(|k| {
        let l = length[k];
        if l == 0.0 {
            return 0.0;
        }
        let n = (r[k] / l + 0.5).floor();
        image[k] = n as i32;
        let x = r[k] - n * l;
        // rounding may end on the upper face, which is the lower one of the next image
        if x >= 0.5 * l {
            image[k] += 1;
            x - l
        } else {
            x.max(-0.5 * l)
        }
    });
    (at, image)
}

fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|k| a[k] - b[k])
}
fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}
fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
fn unit(a: [f64; 3]) -> [f64; 3] {
    let l = dot(a, a).sqrt();
    if l > 0.0 { a.map(|x| x / l) } else { [1.0, 0.0, 0.0] }
}

/// c along u, and s across it at the angle φ.
fn around(u: [f64; 3], c: f64, s: f64, phi: f64) -> [f64; 3] {
    let helper = if u[2].abs() < 0.9 { [0.0, 0.0, 1.0] } else { [1.0, 0.0, 0.0] };
    let v = unit(cross(u, helper));
    let w = cross(u, v);
    std::array::from_fn(|k| c * u[k] + s * (v[k] * phi.cos() + w[k] * phi.sin()))
}

impl Builder<'_> {
    fn flat(&self) -> bool {
        self.state.dimensions == 2
    }

    /// Whether a bead of this type may be at a point of the box; `own` are beads that it may be near to.
    fn is_free(&self, kind: u32, at: [f64; 3], base: usize, own: &[usize]) -> bool {
        let length = self.state.box_length;
        let row = kind as usize * self.n_types;
        let far = |p: [f64; 3], least: f64| {
            let mut d2 = 0.0;
            for k in 0..3 {
                let mut d = at[k] - p[k];
                if length[k] > 0.0 {
                    d -= length[k] * (d / length[k]).round();
                }
                d2 += d * d;
            }
            d2 >= least
        };
        let free = self.grid.all_near(at, |i| {
            let least = self.apart2[row + self.state.type_id[i] as usize];
            least == 0.0 || (i >= base && own.contains(&(i - base))) || far(self.state.position[i], least)
        });
        let Some(r) = &self.reserved else { return free };
        let least = self.apart2[row + r.kind as usize];
        free && (least == 0.0 || r.grid.all_near(at, |i| i <= r.now || far(r.places[i], least)))
    }

    fn direction(&mut self) -> [f64; 3] {
        let phi = 2.0 * PI * self.numbers.next();
        if self.flat() {
            return [phi.cos(), phi.sin(), 0.0];
        }
        let z = 2.0 * self.numbers.next() - 1.0;
        let rho = (1.0 - z * z).sqrt();
        [rho * phi.cos(), rho * phi.sin(), z]
    }

    /// A bond's direction after one in the direction u, with the cosine c between them.
    fn bent(&mut self, u: [f64; 3], c: f64) -> [f64; 3] {
        let s = (1.0 - c * c).max(0.0).sqrt();
        if self.flat() {
            let s = if self.numbers.next() < 0.5 { s } else { -s };
            return [c * u[0] - s * u[1], c * u[1] + s * u[0], 0.0];
        }
        around(u, c, s, 2.0 * PI * self.numbers.next())
    }

    /// Where bead i of a molecule may come, given the beads before it.
    fn proposed(&mut self, kind: &Kind, chain: &[[f64; 3]], i: usize) -> [f64; 3] {
        let parent = kind.molecule.parents[i];
        let from = chain[parent];
        let length = kind.lengths[i];
        if let Some((target, 1, last)) = kind.meets[i] {
            // on the circle that is one bond away from both
            let to = minus(chain[target], from);
            let d = dot(to, to).sqrt();
            let along = (d * d + length * length - last * last) / (2.0 * d);
            let across = (length * length - along * along).max(0.0).sqrt();
            let u = unit(to);
            let step = if self.flat() {
                let across = if self.numbers.next() < 0.5 { across } else { -across };
                [along * u[0] - across * u[1], along * u[1] + across * u[0], 0.0]
            } else {
                around(u, along, across, 2.0 * PI * self.numbers.next())
            };
            return std::array::from_fn(|k| from[k] + step[k]);
        }
        let before = (parent > 0).then(|| unit(minus(from, chain[kind.molecule.parents[parent]])));
        let d = match (before, kind.bends[i]) {
            (Some(u), Some(c)) => self.bent(u, -c),
            (Some(u), None) if self.kappa > 0.0 => {
                let x = self.numbers.next();
                let c = 1.0 + (x + (1.0 - x) * (-2.0 * self.kappa).exp()).ln() / self.kappa;
                self.bent(u, c.clamp(-1.0, 1.0))
            }
            _ => self.direction(),
        };
        std::array::from_fn(|k| from[k] + length * d[k])
    }

    /// Whether bead i can be at r, beads of the ring that it lies on considered.
    fn may_be(&self, kind: &Kind, chain: &[[f64; 3]], i: usize, r: [f64; 3], base: usize) -> bool {
        if let Some((target, left, last)) = kind.meets[i] {
            let d = minus(chain[target], r);
            let reach =
                if left == 1 { last * (1.0 + 1e-9) } else { 0.98 * (last + (left - 1) as f64 * kind.lengths[i]) };
            if dot(d, d) > reach * reach {
                return false;
            }
        }
        let (at, _) = wrapped(r, self.state.box_length);
        kind.region.contains(at, self.state.box_length)
            && kind.graft.as_ref().is_none_or(|g| i == 0 || g.allows(at, self.state.box_length))
            && self.is_free(kind.types[i], at, base, &kind.near[i])
    }

    /// A place for bead i: of those tried, one that is allowed. All allowed ones are alike, except on the way to the end of
    /// a ring, where those are preferred from which a random walk would get there.
    fn place(&mut self, kind: &Kind, chain: &[[f64; 3]], i: usize, base: usize) -> Option<[f64; 3]> {
        let ring = kind.meets[i].filter(|(_, left, _)| *left > 1);
        let (mut chosen, mut total) = (None, 0.0);
        for _ in 0..self.trials {
            let r = self.proposed(kind, chain, i);
            if !self.may_be(kind, chain, i, r, base) {
                continue;
            }
            let Some((target, left, last)) = ring else { return Some(r) };
            let d = minus(chain[target], r);
            let weight = (-1.5 * dot(d, d) / (left as f64 * last * last)).exp();
            total += weight;
            if self.numbers.next() * total < weight {
                chosen = Some(r);
            }
        }
        chosen
    }

    fn push(&mut self, kind: u32, r: [f64; 3]) {
        let (at, image) = wrapped(r, self.state.box_length);
        let tag = self.state.push(kind, at);
        self.state.image[tag as usize] = image;
        self.grid.push(at);
    }

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

    /// A random point of the region.
    fn somewhere(&mut self, kind: &Kind) -> [f64; 3] {
        let [low, high] = kind.region.bounds(self.state.box_length);
        std::array::from_fn(|k| low[k] + (high[k] - low[k]) * self.numbers.next())
    }

    /// Grows one molecule; `first` is the place of its first bead if that is given, `stem` the particle it is bonded to.
    /// `false` if there is no place for it.
    pub fn grow(&mut self, kind: &Kind, first: Option<[f64; 3]>, stem: Option<usize>) -> bool {
        let n = kind.molecule.beads.len();
        let base = self.state.len();
        for _ in 0..self.attempts {
            let mut chain: Vec<[f64; 3]> = Vec::with_capacity(n);
            let at = match (first, stem) {
                (Some(r), None) => Some(r).filter(|r| self.may_be(kind, &chain, 0, *r, base)),
                (_, Some(stem)) => (0..self.trials).find_map(|_| {
                    let (d, from) = (self.direction(), self.unwrapped(stem));
                    let r = std::array::from_fn(|k| from[k] + kind.lengths[0] * d[k]);
                    self.beside(kind, r, stem).then_some(r)
                }),
                // a point alone costs little, so many are tried
                _ => (0..1000).find_map(|_| {
                    let r = self.somewhere(kind);
                    self.may_be(kind, &chain, 0, r, base).then_some(r)
                }),
            };
            let Some(at) = at else {
                if first.is_some() {
                    return false;
                }
                continue;
            };
            self.push(kind.types[0], at);
            chain.push(at);
            let (mut back, mut left) = (1, 10 * n + 100);
            while chain.len() < n && left > 0 {
                left -= 1;
                match self.place(kind, &chain, chain.len(), base) {
                    Some(r) => {
                        self.push(kind.types[chain.len()], r);
                        chain.push(r);
                    }
                    // a dead end: some beads back, each time more
                    None => {
                        for _ in 0..back.min(chain.len() - 1) {
                            self.pop();
                            chain.pop();
                        }
                        back += 1;
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

    fn unwrapped(&self, i: usize) -> [f64; 3] {
        let s = &*self.state;
        std::array::from_fn(|k| s.position[i][k] + s.box_length[k] * f64::from(s.image[i][k]))
    }

    /// Whether the first bead can be at r, near the particle that it is bonded to.
    fn beside(&mut self, kind: &Kind, r: [f64; 3], stem: usize) -> bool {
        let (at, _) = wrapped(r, self.state.box_length);
        // as if the stem were the first bead of the molecule: near to its first bead, and to no other
        kind.region.contains(at, self.state.box_length) && self.is_free(kind.types[0], at, stem, &[0])
    }

    /// Sites of a simple cubic (square) lattice for n single beads, the coarsest with enough free ones, less a random surplus.
    pub fn lattice(&mut self, kind: &Kind, n: usize) -> Option<Vec<[f64; 3]>> {
        let length = self.state.box_length;
        let dimensions = self.state.dimensions as usize;
        let [low, high] = kind.region.bounds(length);
        let volume: f64 = (0..dimensions).map(|k| high[k] - low[k]).product();
        let mut spacing = (volume / n as f64).powf(1.0 / dimensions as f64) * 1.0001;
        let base = self.state.len();
        for _ in 0..200 {
            let cells: [usize; 3] = std::array::from_fn(|k| ((high[k] - low[k]) / spacing).floor().max(1.0) as usize);
            if cells.iter().product::<usize>() >= n {
                let mut free = vec![];
                for z in 0..cells[2] {
                    for y in 0..cells[1] {
                        for x in 0..cells[0] {
                            let by = [x, y, z];
                            let r = std::array::from_fn(|k| {
                                low[k] + (high[k] - low[k]) * (by[k] as f64 + 0.5) / cells[k] as f64
                            });
                            if self.may_be(kind, &[], 0, r, base) {
                                free.push(r);
                            }
                        }
                    }
                }
                if free.len() >= n {
                    for k in 0..n {
                        let other = k + self.numbers.below(free.len() - k);
                        free.swap(k, other);
                    }
                    free.truncate(n);
                    let closest = kind.types[0] as usize * (self.n_types + 1);
                    let edge =
                        (0..dimensions).map(|k| (high[k] - low[k]) / cells[k] as f64).fold(f64::INFINITY, f64::min);
                    return (edge * edge >= self.apart2[closest] * (1.0 - 1e-9)).then_some(free);
                }
            }
            spacing *= 0.99;
        }
        None
    }

    /// Adds a single bead where it is known to be free.
    pub fn put(&mut self, kind: u32, r: [f64; 3]) {
        self.push(kind, r);
    }
}

/// κ of exp(κ cos γ) for chains of a characteristic ratio: C = (1 + L)/(1 − L), L(κ) = coth κ − 1/κ.
pub fn kappa_of(ratio: f64) -> f64 {
    let wanted = (ratio - 1.0) / (ratio + 1.0);
    let (mut a, mut b) = (0.0, 1e4);
    for _ in 0..200 {
        let k: f64 = 0.5 * (a + b);
        let l = if k < 1e-3 { k / 3.0 } else { 1.0 / k.tanh() - 1.0 / k };
        if l < wanted { a = k } else { b = k }
    }
    0.5 * (a + b)
}
