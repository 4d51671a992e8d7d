//! A sampler's parameters as numbers that both devices compute with, the same to the bit.
//!
//! Positions are whole numbers: sites of a lattice, or multiples of the bond length over 2¹⁸. What decides is compared in
//! whole numbers, and weights are products of f64, so a chain is the same wherever it is grown.

use crate::params::{Common, Lattice, Wall};
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;

/// Units of a bond of beads.
pub const BOND: f64 = 262_144.0;
/// Rows of the table of Boltzmann factors.
pub const CONTACTS: usize = 128;
/// Largest Boltzmann weight as a whole number.
const WEIGHT: f64 = 33_554_432.0;
/// Walls, at most.
pub const WALLS: usize = 4;

/// A wall in wall units (2⁻⁸ of a lattice step, 2⁻¹⁸ of a bond), relative to the first monomer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WallRow {
    /// 0: a slab along the axis `side`; 1: inside of a sphere; 2: outside of it.
    pub kind: i64,
    pub side: i64,
    /// Lowest and highest coordinate of a slab.
    pub low: i64,
    pub high: i64,
    pub center: [i64; 3],
    pub radius2: i64,
}

impl WallRow {
    /// Whether a monomer may be at this place.
    pub fn allows(&self, r: [i64; 3]) -> bool {
        if self.kind == 0 {
            let x = r[self.side as usize];
            return self.low <= x && x <= self.high;
        }
        let d = [r[0] - self.center[0], r[1] - self.center[1], r[2] - self.center[2]];
        let d2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
        if self.kind == 1 { d2 <= self.radius2 } else { d2 >= self.radius2 }
    }
}

/// What a monomer may be: a site of a lattice, or a bead.
#[derive(Clone, Debug, PartialEq)]
pub enum Space {
    Lattice { lattice: Lattice, offsets: Vec<[i32; 3]> },
    Beads { trials: u32, sigma2: i64, reach2: i64, reach: i32 },
}

/// Chains as both devices grow them.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub n: usize,
    pub parents: Option<Vec<u32>>,
    pub space: Space,
    /// Boltzmann weights by contacts, as whole numbers; empty if there are none.
    pub weights: Vec<u32>,
    /// Boltzmann factor over weight, and over the number of trials.
    pub factors: Vec<f64>,
    pub walls: Vec<WallRow>,
    pub key: RandomKey,
    /// Length of a unit.
    pub unit: f64,
    pub start: [f64; 3],
}

/// How monomers see each other.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Beads {
    /// b, length of a bond.
    #[param(default = 1.0, unit = "length", above = 0.0)]
    pub bond: f64,
    /// σ: no two beads that are not bonded are nearer.
    #[param(default = 1.0, unit = "length", above = 0.0)]
    pub diameter: f64,
    /// k, places that are tried for each bead.
    #[param(default = 16, at_least = 1, at_most = 64)]
    pub trials: u32,
    /// ε/kT of a square well around each bead; positive attracts.
    #[param(default = 0.0)]
    pub attraction: f64,
    /// Where the well ends, in units of σ.
    #[param(default = 1.5, above = 1.0, at_most = 2.0)]
    pub range: f64,
}

/// Sites of a lattice.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Sites {
    /// `Square` (z = 4), `Cubic` (z = 6), `Cubic26` (z = 26: all steps to the 3×3×3 neighborhood) or `Fcc` (z = 12).
    pub lattice: Lattice,
    /// ε/kT of each pair of monomers on neighboring sites that are not bonded; positive attracts.
    #[param(default = 0.0)]
    pub attraction: f64,
}

/// Boltzmann weights e^{c ε/kT} for c contacts as whole numbers, and what makes them right again.
fn boltzmann(attraction: f64, largest: usize, over: f64) -> (Vec<u32>, Vec<f64>) {
    if attraction == 0.0 {
        return (vec![], vec![1.0 / over]);
    }
    let rows = if attraction > 0.0 { attraction * largest as f64 } else { 0.0 };
    let factor = |c: usize| (attraction * c.min(largest) as f64).exp();
    let weight = |c: usize| (WEIGHT * (attraction * c.min(largest) as f64 - rows).exp()).round().max(1.0) as u32;
    let all = 0..CONTACTS;
    (all.clone().map(weight).collect(), all.map(|c| factor(c) / f64::from(weight(c)) / over).collect())
}

impl Model {
    /// Sites of a lattice.
    ///
    /// # Errors
    /// What does not fit together, with its place.
    pub fn sites(s: &Sites, c: &Common, key: RandomKey) -> Result<Self> {
        let offsets = s.lattice.offsets();
        let (weights, factors) = boltzmann(s.attraction, offsets.len() - 1, 1.0);
        let space = Space::Lattice { lattice: s.lattice, offsets };
        let whole = c.start.iter().all(|x| x.fract() == 0.0) && (s.lattice != Lattice::Square || c.start[2] == 0.0);
        let mut model = Self::new(c, space, weights, factors, key, 1.0, 256.0)?;
        if !whole {
            return Err(Error::input("`start` must be a site of the lattice: whole numbers, on `Square` with z = 0"));
        }
        if s.lattice == Lattice::Fcc && c.start.iter().sum::<f64>() % 2.0 != 0.0 {
            model.start = c.start;
            return Err(Error::input("`start` must be a site of the lattice: on `Fcc` the sum of x, y and z is even"));
        }
        Ok(model)
    }

    /// Beads.
    ///
    /// # Errors
    /// As above.
    pub fn beads(b: &Beads, c: &Common, key: RandomKey) -> Result<Self> {
        let scale = BOND / b.bond;
        let sigma = b.diameter * scale;
        if b.diameter > 1.99 * b.bond {
            return Err(Error::input("a bead of more than 1.99 bond lengths leaves no room for the next but one"));
        }
        if c.monomers.value > 4096 {
            return Err(InputError::at(c.monomers.at, "chains of beads have at most 4096 of them").into());
        }
        let reach = if b.attraction == 0.0 { sigma } else { sigma * b.range };
        // what lies outside of this sphere around the parent is out of reach of all trials; 4 units for roundings
        let space = Space::Beads {
            trials: b.trials,
            sigma2: (sigma * sigma).round() as i64,
            reach2: (reach * reach).round() as i64,
            reach: (reach + BOND).ceil() as i32 + 4,
        };
        let (weights, factors) = boltzmann(b.attraction, 40, f64::from(b.trials));
        Self::new(c, space, weights, factors, key, 1.0 / scale, scale)
    }

    fn new(
        c: &Common,
        space: Space,
        weights: Vec<u32>,
        factors: Vec<f64>,
        key: RandomKey,
        unit: f64,
        wall_scale: f64,
    ) -> Result<Self> {
        let n = c.monomers.value as usize;
        let mut errors = Errors::default();
        if n > 65_536 {
            errors.push(InputError::at(c.monomers.at, "a chain has at most 65536 monomers"));
        }
        let parents = c.shape.parents(n).map_err(|m| errors.push(InputError::at(c.monomers.at, m))).ok();
        let mut rows = vec![];
        if let Some(walls) = &c.walls {
            if walls.value.len() > WALLS {
                errors.push(InputError::at(walls.at, format!("there are at most {WALLS} walls")));
            }
            let made: Option<Vec<_>> = walls.value.iter().map(|w| row(w, c.start, wall_scale)).collect();
            rows = made.unwrap_or_else(|| {
                errors.push(InputError::at(walls.at, "a wall is too far from the first monomer"));
                vec![]
            });
            if !rows.iter().all(|w| w.allows([0; 3])) {
                errors.push(InputError::at(walls.at, "the first monomer is where the walls let none be; see `start`"));
            }
        }
        let wrong = c.fit.is_some_and(|[a, b]| a < 2 || b as usize > n || b < a + 4);
        if wrong {
            errors.push(InputError::new(format!("`fit` needs at least five numbers of monomers from 2 to {n}")));
        }
        if let Some(l) = c.lengths.iter().flatten().find(|l| **l < 2 || **l as usize > n) {
            errors.push(InputError::new(format!("`lengths` are from 2 to {n}, and not {l}")));
        }
        let parents = errors.into_result(parents)?;
        Ok(Self { n, parents, space, weights, factors, walls: rows, key, unit, start: c.start })
    }

    /// The monomer that monomer i grows from.
    pub fn parent(&self, i: usize) -> usize {
        self.parents.as_ref().map_or(i - 1, |p| p[i] as usize)
    }

    /// Units of a place to units of walls.
    pub fn wall_units(&self) -> i64 {
        if matches!(self.space, Space::Lattice { .. }) { 256 } else { 1 }
    }

    /// Whether walls let a monomer be here.
    pub fn allows(&self, r: [i32; 3]) -> bool {
        let scale = self.wall_units();
        self.walls.iter().all(|w| w.allows(r.map(|x| i64::from(x) * scale)))
    }

    /// Most contacts that n monomers can have.
    pub fn most_contacts(&self, n: usize) -> usize {
        match &self.space {
            Space::Lattice { offsets, .. } => n * offsets.len() / 2 + 1 - n,
            Space::Beads { .. } => 0,
        }
    }
}

/// A wall in its units; none if it is so far off that squares of distances would overflow.
fn row(w: &Wall, start: [f64; 3], scale: f64) -> Option<WallRow> {
    const FARTHEST: f64 = 6e8;
    let units =
        |x: f64, k: usize| Some((x - start[k]) * scale).filter(|x| x.abs() < FARTHEST).map(|x| x.round() as i64);
    match *w {
        Wall::Slab { axis, min, max } => {
            let k = axis as usize;
            let low = min.map_or(Some(i64::MIN), |x| units(x, k))?;
            let high = max.map_or(Some(i64::MAX), |x| units(x, k))?;
            Some(WallRow { side: k as i64, low, high, ..WallRow::default() })
        }
        Wall::Sphere { center, radius, inside } => {
            let radius = Some(radius * scale).filter(|r| *r < FARTHEST)?.round() as i64;
            let center = [units(center[0], 0)?, units(center[1], 1)?, units(center[2], 2)?];
            let kind = if inside { 1 } else { 2 };
            Some(WallRow { kind, center, radius2: radius * radius, ..WallRow::default() })
        }
    }
}
