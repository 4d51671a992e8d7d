//! Counter-ions that make a system neutral.

use crate::polymers::{Grid, extend_arrays};
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;

/// Adds ions of one type at random positions until the net charge is 0.
///
/// Use it after the generators that create charged particles, such as `Polymers`, `RandomPositions` or a file. The net charge
/// must be a multiple of `charge` of the opposite sign; a neutral system gets no ions. Ions are at least `distance` from all
/// particles and from each other: of up to `trials` random positions the first one that is far enough is used. With the
/// default distance of 0 they may overlap, for soft potentials. Velocities are 0; use `Velocities` to set them. Random numbers
/// are keyed by the seed.
///
/// ```ron
/// CounterIons(of: "C", charge: 1.0, distance: 0.8)
/// ```
#[component(Generator, "CounterIons")]
#[derive(Clone, Debug, Params)]
pub struct CounterIons {
    /// Particle type of the ions.
    of: String,
    /// Charge of an ion.
    charge: Spanned<f64>,
    /// Mass of an ion.
    #[param(default = 1.0, above = 0.0)]
    mass: f64,
    /// Minimum distance to other particles.
    #[param(default = 0.0, unit = "length", at_least = 0.0)]
    distance: f64,
    /// Maximum number of positions to try for each ion.
    #[param(default = 10000, at_least = 1)]
    trials: u32,
}

impl CounterIons {
    /// Returns the number of ions that neutralize a net charge.
    fn number(&self, net: f64, scale: f64) -> Result<u64> {
        if net.abs() <= 1e-6 * scale {
            return Ok(0);
        }
        let exact = -net / self.charge.value;
        if !(exact > 0.0 && (exact - exact.round()).abs() <= 1e-6 * exact.max(1.0)) {
            let text = format!(
                "ions of charge {} cannot neutralize the net charge {net}: it must be a multiple of the opposite sign",
                self.charge.value
            );
            return Err(Error::Input(vec![InputError::at(self.charge.at, text)]));
        }
        Ok(exact.round() as u64)
    }

    /// Returns a position that is far enough from all particles.
    fn place(&self, s: &Snapshot, grid: &Grid, key: RandomKey, ion: u32) -> Option<[f64; 3]> {
        let length = s.box_length;
        let far = |r: [f64; 3]| {
            grid.all_near(r, |i| {
                let d2: f64 = (0..3)
                    .filter(|k| length[*k] > 0.0)
                    .map(|k| {
                        let d = r[k] - s.position[i][k];
                        (d - length[k] * (d / length[k]).round()).powi(2)
                    })
                    .sum();
                d2 >= self.distance * self.distance
            })
        };
        (0..self.trials).find_map(|trial| {
            let words = key.single(u64::from(trial), ion, 0);
            let r = std::array::from_fn(|k| ((f64::from(words[k]) + 0.5) / 4_294_967_296.0 - 0.5) * length[k]);
            far(r).then_some(r)
        })
    }
}

impl Generator for CounterIons {
    fn generate(&mut self, context: &GeneratorContext, s: &mut Snapshot) -> Result<()> {
        if s.is_empty() {
            return Err(Error::input("CounterIons needs particles: a generator before it must create them"));
        }
        let Some(Values::Real(charges)) = s.arrays.get("charge").map(|a| &a.values) else {
            return Err(Error::input("particles have no `charge`; a generator before CounterIons must set it"));
        };
        let net: f64 = charges.iter().sum();
        let scale: f64 = charges.iter().map(|q| q.abs()).sum();
        let number = self.number(net, scale)?;
        let before = s.len();
        s.require(before as f64 + number as f64).map_err(Error::input)?;
        let key = RandomKey::new(context.seed, context.component);
        let mut grid = Grid::new(s.box_length, self.distance, before + number as usize);
        s.position.iter().for_each(|r| grid.push(*r));
        let kind = s.type_id(&self.of);
        for ion in 0..number {
            let Some(r) = self.place(s, &grid, key, ion as u32) else {
                return Err(Error::input(format!(
                    "no room for ion {} of {number} after {} trials; reduce `distance` or enlarge the box",
                    ion + 1,
                    self.trials
                )));
            };
            s.push(kind, r);
            grid.push(r);
        }
        s.mass[before..].fill(self.mass);
        let molecules: Vec<i32> = (0..number as i32).collect();
        let has_molecules = s.arrays.contains_key("molecule");
        extend_arrays(s, before, &molecules, &|name, _| (name == "charge").then_some(self.charge.value));
        if !has_molecules {
            s.arrays.remove("molecule");
        }
        Ok(())
    }
}
