//! Particles on a lattice.

use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FromValue, TypeMap, Value};
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::tilt::to_space;

/// A unit cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitCell {
    /// Simple cubic; 1 particle.
    Sc,
    /// Body-centered cubic; 2 particles.
    Bcc,
    /// Face-centered cubic; 4 particles.
    Fcc,
    /// Square, in two dimensions; 1 particle.
    Square,
    /// Hexagonal, in two dimensions, as a rectangle 1 × √3; 2 particles.
    Hexagonal,
}

const UNIT_CELLS: &[(&str, UnitCell)] = &[
    ("Sc", UnitCell::Sc),
    ("Bcc", UnitCell::Bcc),
    ("Fcc", UnitCell::Fcc),
    ("Square", UnitCell::Square),
    ("Hexagonal", UnitCell::Hexagonal),
];

impl FromValue for UnitCell {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let found = UNIT_CELLS.iter().find(|(name, _)| *name == value.text()).map(|(_, c)| *c);
        if found.is_none() {
            errors.push(value.error(format!("expected {}, found `{}`", Self::describe(), value.text())));
        }
        found
    }
    fn describe() -> String {
        let names: Vec<_> = UNIT_CELLS.iter().map(|(n, _)| format!("`{n}`")).collect();
        names.join(", ")
    }
}

impl UnitCell {
    /// Returns the positions in the cell, in units of its edges.
    fn basis(self) -> &'static [[f64; 3]] {
        match self {
            Self::Sc => &[[0.0; 3]],
            Self::Bcc => &[[0.0; 3], [0.5; 3]],
            Self::Fcc => &[[0.0; 3], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]],
            Self::Square => &[[0.0; 3]],
            Self::Hexagonal => &[[0.0; 3], [0.5, 0.5, 0.0]],
        }
    }
    /// Returns the edge lengths relative to the first edge; 0 for the third axis in two dimensions.
    fn edges(self) -> [f64; 3] {
        match self {
            Self::Sc | Self::Bcc | Self::Fcc => [1.0; 3],
            Self::Square => [1.0, 1.0, 0.0],
            Self::Hexagonal => [1.0, 3f64.sqrt(), 0.0],
        }
    }
}

/// Creates particles on a lattice: `cells` unit cells along each axis, at a given number density.
///
/// The generator sets the box from the density and must be the first generator. Lattice sites are shifted by a quarter of
/// the unit cell, so no particle lies on the box boundary. Several types are mixed at random (keyed by the seed) in exact
/// proportions. Without `types`, all particles have the type `A`. `Square` and `Hexagonal` create a two-dimensional system.
///
/// With `tilt`, box and lattice are sheared together, at the same volume: the box is triclinic.
///
/// ```ron
/// Lattice(lattice: Fcc, cells: [6, 6, 6], density: 0.8, types: { "A": 0.7, "B": 0.3 })
/// ```
#[component(Generator, "Lattice")]
#[derive(Clone, Debug, Params)]
pub struct Lattice {
    /// Unit cell: `Sc`, `Bcc`, `Fcc`, `Square` or `Hexagonal`.
    lattice: UnitCell,
    /// Number of unit cells along x, y and z; the third is ignored in two dimensions.
    #[param(at_least = 1.0)]
    cells: [u32; 3],
    /// ρ, number density; per area in two dimensions.
    #[param(unit = "length⁻³", above = 0.0)]
    density: f64,
    /// Tilt factors xy, xz, yz of the box; the last two must be 0 in two dimensions.
    tilt: Option<Spanned<[f64; 3]>>,
    /// Fraction of each type; normalized by the sum.
    #[param(at_least = 0.0)]
    types: Option<TypeMap<f64>>,
}

impl Generator for Lattice {
    fn generate(&mut self, context: &GeneratorContext, s: &mut Snapshot) -> Result<()> {
        if !s.is_empty() {
            return Err(Error::input("Lattice sets the box: it must be the first generator"));
        }
        let (basis, edges) = (self.lattice.basis(), self.lattice.edges());
        let dimensions = if edges[2] == 0.0 { 2 } else { 3 };
        let n = self.cells.iter().take(dimensions).fold(basis.len() as u64, |n, c| n.saturating_mul(u64::from(*c)));
        if n > u64::from(u32::MAX / 2) {
            return Err(Error::input(format!("{n} particles exceed the limit of {}", u32::MAX / 2)));
        }
        s.require(n as f64).map_err(Error::input)?;
        let cell_volume: f64 = edges.iter().take(dimensions).product();
        let a = (basis.len() as f64 / (self.density * cell_volume)).powf(1.0 / dimensions as f64);
        s.dimensions = dimensions as u32;
        for (k, edge) in edges.iter().enumerate().take(dimensions) {
            s.box_length[k] = a * edge * f64::from(self.cells[k]);
        }
        if let Some(tilt) = &self.tilt {
            if dimensions == 2 && tilt.value[1..] != [0.0; 2] {
                let message = "the system is two-dimensional; the tilt factors xz and yz must be 0";
                return Err(InputError::at(tilt.at, message).into());
            }
            s.tilt = tilt.value;
        }
        let mut cells = self.cells;
        if dimensions == 2 {
            cells[2] = 1;
        }
        let types = mixed_types(&self.types, n as usize, RandomKey::new(context.seed, context.component), s)?;
        for x in 0..cells[0] {
            for y in 0..cells[1] {
                for z in 0..cells[2] {
                    for b in basis {
                        let c = [x, y, z];
                        let position = std::array::from_fn(|k| {
                            if k >= dimensions {
                                return 0.0;
                            }
                            (f64::from(c[k]) + b[k] + 0.25) * a * edges[k] - 0.5 * s.box_length[k]
                        });
                        s.push(types[s.len()], to_space(position, s.tilt));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns a type for each of `n` particles: exact fractions (largest-remainder method), shuffled by keyed random numbers.
///
/// # Errors
/// Returns an error if no fraction is above 0.
pub fn mixed_types(fractions: &Option<TypeMap<f64>>, n: usize, key: RandomKey, s: &mut Snapshot) -> Result<Vec<u32>> {
    let Some(fractions) = fractions else { return Ok(vec![s.type_id("A"); n]) };
    let fractions: Vec<(u32, f64)> = fractions.iter().map(|(name, x)| (s.type_id(name), *x)).collect();
    let total: f64 = fractions.iter().map(|(_, x)| x).sum();
    if total <= 0.0 || !total.is_finite() {
        return Err(Error::input("the fractions in `types` must have a positive, finite sum"));
    }
    let exact: Vec<f64> = fractions.iter().map(|(_, x)| x / total * n as f64).collect();
    let mut counts: Vec<usize> = exact.iter().map(|x| x.floor() as usize).collect();
    let mut order: Vec<usize> = (0..fractions.len()).collect();
    order.sort_by(|a, b| (exact[*b].fract()).total_cmp(&exact[*a].fract()));
    let missing = n.saturating_sub(counts.iter().sum());
    for k in order.iter().cycle().take(missing) {
        counts[*k] += 1;
    }
    let mut types: Vec<u32> =
        fractions.iter().zip(&counts).flat_map(|((id, _), c)| std::iter::repeat_n(*id, *c)).collect();
    // Fisher–Yates shuffle
    for i in (1..types.len()).rev() {
        let word = key.single(0, i as u32, 0)[0];
        types.swap(i, ((u64::from(word) * (i as u64 + 1)) >> 32) as usize);
    }
    Ok(types)
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::params::Source;

    fn make(text: &str) -> Snapshot {
        let mut errors = Errors::default();
        let mut l =
            Lattice::from_value(Source::file(text).value(), &mut errors).unwrap_or_else(|| panic!("{errors:?}"));
        let mut s = Snapshot::default();
        l.generate(&GeneratorContext { seed: 1, ..Default::default() }, &mut s).expect("generated");
        s.check().expect("a valid state");
        s
    }

    #[test]
    fn densities_and_distances() {
        for (text, n, nearest) in [
            ("Lattice(lattice: Fcc, cells: [3, 3, 3], density: 4.0)", 108, 0.5f64.sqrt()),
            ("Lattice(lattice: Bcc, cells: [3, 3, 3], density: 2.0)", 54, 0.75f64.sqrt()),
            ("Lattice(lattice: Sc, cells: [4, 3, 3], density: 1.0)", 36, 1.0),
            ("Lattice(lattice: Hexagonal, cells: [4, 4, 1], density: 1.1547005383792515)", 32, 1.0),
        ] {
            let s = make(text);
            assert_eq!(s.len(), n);
            let shortest = (0..n)
                .flat_map(|i| (0..i).map(move |j| (i, j)))
                .map(|(i, j)| {
                    (0..s.dimensions as usize)
                        .map(|k| {
                            let d = s.position[i][k] - s.position[j][k];
                            (d - s.box_length[k] * (d / s.box_length[k]).round()).powi(2)
                        })
                        .sum::<f64>()
                        .sqrt()
                })
                .fold(f64::INFINITY, f64::min);
            assert!((shortest - nearest).abs() < 1e-12, "{text}: {shortest}");
        }
    }

    #[test]
    fn type_fractions_are_exact() {
        let s = make("Lattice(lattice: Sc, cells: [10, 10, 10], density: 1.0, types: { \"A\": 0.7, \"B\": 0.3 })");
        assert_eq!(s.type_id.iter().filter(|k| **k == 1).count(), 300);
        assert!(s.type_id[..500].contains(&1) && s.type_id[500..].contains(&0), "shuffled");
    }
}
