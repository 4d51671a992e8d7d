//! Parameters of a sampler as numbers for both devices, which produce bit-identical chains.
//!
//! Positions are integers: lattice sites, or multiples of the bond length over 2¹⁸. Decisions compare integers, and
//! weights are products of f64, so chains do not depend on the device.

use crate::params::{Common, Lattice, Wall};
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;

/// Units of a bond of beads.
pub const BOND: f64 = 262_144.0;
/// Size of the table of Boltzmann factors.
pub const CONTACTS: usize = 128;
/// Largest Boltzmann weight as an integer.
const WEIGHT: f64 = 33_554_432.0;
/// Maximum number of walls.
pub const MAX_WALLS: usize = 4;

/// A wall in wall units (2⁻⁸ of a lattice step, 2⁻¹⁸ of a bond), relative to the first monomer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, DeviceStruct)]
pub struct WallRow {
    /// 0: slab along the axis `side`; 1: inside a sphere; 2: outside a sphere.
    #[device(cxx = "long long")]
    pub kind: i64,
    #[device(cxx = "long long")]
    pub side: i64,
    /// Lowest and highest coordinate of a slab.
    #[device(cxx = "long long")]
    pub low: i64,
    #[device(cxx = "long long")]
    pub high: i64,
    #[device(cxx = "long long")]
    pub center: [i64; 3],
    #[device(cxx = "long long")]
    pub radius2: i64,
}

impl WallRow {
    /// Returns whether a monomer may be at `r`.
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

/// Positions of monomers: sites of a lattice, or beads.
#[derive(Clone, Debug, PartialEq)]
pub enum Space {
    Lattice { lattice: Lattice, offsets: Vec<[i32; 3]> },
    Beads { trials: u32, sigma2: i64, reach2: i64, reach: i32 },
}

/// Parameters for growing chains on both devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub n: usize,
    pub parents: Option<Vec<u32>>,
    pub space: Space,
    /// Integer Boltzmann weights by contacts; empty without attraction.
    pub weights: Vec<u32>,
    /// Boltzmann factor over integer weight and number of trials.
    pub factors: Vec<f64>,
    pub walls: Vec<WallRow>,
    pub key: RandomKey,
    /// Length of a unit.
    pub unit: f64,
    pub start: [f64; 3],
}

/// Parameters of beads.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Beads {
    /// Bond length b.
    #[param(default = 1.0, unit = "length", above = 0.0)]
    pub bond: f64,
    /// Bead diameter σ: smallest distance of nonbonded beads.
    #[param(default = 1.0, unit = "length", above = 0.0)]
    pub diameter: f64,
    /// Number of trial positions k for each bead.
    #[param(default = 16, at_least = 1, at_most = 64)]
    pub trials: u32,
    /// Depth ε/kT of a square well around each bead; positive attracts.
    #[param(default = 0.0)]
    pub attraction: f64,
    /// Range of the well, in units of σ.
    #[param(default = 1.5, above = 1.0, at_most = 2.0)]
    pub range: f64,
}

/// Parameters of lattice chains.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Sites {
    /// Lattice: `Square` (z = 4), `Cubic` (z = 6), `Cubic26` (z = 26: all steps in the 3×3×3 neighborhood), or `Fcc` (z
    /// = 12).
    pub lattice: Lattice,
    /// Energy ε/kT of each pair of nonbonded monomers on neighboring sites; positive attracts.
    #[param(default = 0.0)]
    pub attraction: f64,
}

/// Returns Boltzmann weights e^{c ε/kT} for c contacts as integers, and factors that correct their rounding.
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
    /// Builds a model of lattice chains.
    ///
    /// # Errors
    /// Returns an error if the parameters are inconsistent.
    pub fn sites(s: &Sites, c: &Common, key: RandomKey) -> Result<Self> {
        let offsets = s.lattice.offsets();
        let (weights, factors) = boltzmann(s.attraction, offsets.len() - 1, 1.0);
        let space = Space::Lattice { lattice: s.lattice, offsets };
        let whole = c.start.iter().all(|x| x.fract() == 0.0) && (s.lattice != Lattice::Square || c.start[2] == 0.0);
        let mut model = Self::new(c, space, weights, factors, key, 1.0, 256.0)?;
        if !whole {
            return Err(Error::input("`start` must be a lattice site: integers, on `Square` with z = 0"));
        }
        if s.lattice == Lattice::Fcc && c.start.iter().sum::<f64>() % 2.0 != 0.0 {
            model.start = c.start;
            return Err(Error::input("`start` must be a lattice site: on `Fcc`, x + y + z must be even"));
        }
        Ok(model)
    }

    /// Builds a model of bead chains.
    ///
    /// # Errors
    /// Returns an error if the parameters are inconsistent.
    pub fn beads(b: &Beads, c: &Common, key: RandomKey) -> Result<Self> {
        let scale = BOND / b.bond;
        let sigma = b.diameter * scale;
        if b.diameter > 1.99 * b.bond {
            return Err(Error::input(
                "`diameter` must be at most 1.99 bond lengths: otherwise second neighbors always overlap",
            ));
        }
        if c.monomers.value > 4096 {
            return Err(InputError::at(c.monomers.at, "bead chains have at most 4096 beads").into());
        }
        let reach = if b.attraction == 0.0 { sigma } else { sigma * b.range };
        // beads outside this sphere around the parent are out of range of all trials; 4 units cover rounding
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
            errors.push(InputError::at(c.monomers.at, "chains have at most 65536 monomers"));
        }
        let parents = c.shape.parents(n).map_err(|m| errors.push(InputError::at(c.monomers.at, m))).ok();
        let mut rows = vec![];
        if let Some(walls) = &c.walls {
            if walls.value.len() > MAX_WALLS {
                errors.push(InputError::at(walls.at, format!("at most {MAX_WALLS} walls are allowed")));
            }
            let made: Option<Vec<_>> = walls.value.iter().map(|w| row(w, c.start, wall_scale)).collect();
            rows = made.unwrap_or_else(|| {
                errors.push(InputError::at(walls.at, "a wall is too far from the first monomer"));
                vec![]
            });
            if !rows.iter().all(|w| w.allows([0; 3])) {
                errors.push(InputError::at(walls.at, "the walls exclude the first monomer; change `start`"));
            }
        }
        let wrong = c.fit.is_some_and(|[a, b]| a < 2 || b as usize > n || b < a + 4);
        if wrong {
            errors
                .push(InputError::new(format!("`fit` must cover at least five numbers of monomers between 2 and {n}")));
        }
        if let Some(l) = c.lengths.iter().flatten().find(|l| **l < 2 || **l as usize > n) {
            errors.push(InputError::new(format!("`lengths` must be between 2 and {n}, found {l}")));
        }
        if c.lengths.as_ref().is_some_and(Vec::is_empty) {
            errors.push(InputError::new("`lengths` is empty; list numbers of monomers, or leave it out"));
        }
        let parents = errors.into_result(parents)?;
        Ok(Self { n, parents, space, weights, factors, walls: rows, key, unit, start: c.start })
    }

    /// Returns the monomer from which monomer `i` grows.
    pub fn parent(&self, i: usize) -> usize {
        self.parents.as_ref().map_or(i - 1, |p| p[i] as usize)
    }

    /// Returns the number of wall units per position unit.
    pub fn wall_units(&self) -> i64 {
        if matches!(self.space, Space::Lattice { .. }) { 256 } else { 1 }
    }

    /// Returns whether walls allow a monomer at `r`.
    pub fn allows(&self, r: [i32; 3]) -> bool {
        let scale = self.wall_units();
        self.walls.iter().all(|w| w.allows(r.map(|x| i64::from(x) * scale)))
    }

    /// Returns the maximum number of contacts of `n` monomers.
    pub fn max_contacts(&self, n: usize) -> usize {
        match &self.space {
            Space::Lattice { offsets, .. } => n * offsets.len() / 2 + 1 - n,
            Space::Beads { .. } => 0,
        }
    }
}

/// Converts a wall to its units; `None` if squared distances would overflow.
fn row(w: &Wall, start: [f64; 3], scale: f64) -> Option<WallRow> {
    const MAX_DISTANCE: f64 = 6e8;
    let units =
        |x: f64, k: usize| Some((x - start[k]) * scale).filter(|x| x.abs() < MAX_DISTANCE).map(|x| x.round() as i64);
    match *w {
        Wall::Slab { axis, min, max } => {
            let k = axis as usize;
            let low = min.map_or(Some(i64::MIN), |x| units(x, k))?;
            let high = max.map_or(Some(i64::MAX), |x| units(x, k))?;
            Some(WallRow { side: k as i64, low, high, ..WallRow::default() })
        }
        Wall::Sphere { center, radius, inside } => {
            let radius = Some(radius * scale).filter(|r| *r < MAX_DISTANCE)?.round() as i64;
            let center = [units(center[0], 0)?, units(center[1], 1)?, units(center[2], 2)?];
            let kind = if inside { 1 } else { 2 };
            Some(WallRow { kind, center, radius2: radius * radius, ..WallRow::default() })
        }
    }
}
