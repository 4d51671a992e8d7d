//! Particles at random positions.

use crate::lattice::mixed_types;
use galamost_plugin_api::params::TypeMap;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::tilt::to_space;

/// Creates particles at uniformly random positions, for soft potentials that allow overlaps (DPD).
///
/// The generator sets the box and must be the first generator. Positions are keyed by the seed and the tag. Several types
/// are mixed at random in exact proportions. Without `types`, all particles have the type `A`. With `charges`, particles get
/// the charge of their type, 0 for other types; `CounterIons` makes the system neutral.
///
/// ```ron
/// RandomPositions(count: 3000, box: [10.0, 10.0, 10.0], types: { "A": 0.5, "B": 0.5 })
/// ```
#[component(Generator, "RandomPositions")]
#[derive(Clone, Debug, Params)]
pub struct RandomPositions {
    /// Number of particles.
    #[param(at_least = 1.0, at_most = 2147483647.0)]
    count: u64,
    /// L_x, L_y, L_z, box lengths; with L_z = 0 the system is two-dimensional.
    #[param(name = "box", unit = "length", at_least = 0.0)]
    box_length: [f64; 3],
    /// Tilt factors xy, xz, yz of the box; the last two must be 0 in two dimensions.
    tilt: Option<Spanned<[f64; 3]>>,
    /// Fraction of each type; normalized by the sum.
    #[param(at_least = 0.0)]
    types: Option<TypeMap<f64>>,
    /// Charge of each type.
    charges: Option<TypeMap<f64>>,
}

impl Generator for RandomPositions {
    fn generate(&mut self, context: &GeneratorContext, s: &mut Snapshot) -> Result<()> {
        if !s.is_empty() {
            return Err(Error::input("RandomPositions sets the box: it must be the first generator"));
        }
        if self.box_length[0] == 0.0 || self.box_length[1] == 0.0 {
            return Err(Error::input("box lengths must be above 0; only the third may be 0"));
        }
        s.require(self.count as f64).map_err(Error::input)?;
        s.box_length = self.box_length;
        s.dimensions = if self.box_length[2] == 0.0 { 2 } else { 3 };
        if let Some(tilt) = &self.tilt {
            if s.dimensions == 2 && tilt.value[1..] != [0.0; 2] {
                let message = "the system is two-dimensional; the tilt factors xz and yz must be 0";
                return Err(InputError::at(tilt.at, message).into());
            }
            s.tilt = tilt.value;
        }
        let key = RandomKey::new(context.seed, context.component);
        let types = mixed_types(&self.types, self.count as usize, key, s)?;
        let mut position = vec![[0.0; 3]; types.len()];
        context.for_each(&mut position, |tag, x| {
            let words = key.single(1, tag as u32, 0);
            let inside = |k: usize| ((f64::from(words[k]) + 0.5) / 4_294_967_296.0 - 0.5) * s.box_length[k];
            *x = to_space(std::array::from_fn(inside), s.tilt);
        });
        s.set_particles(position, types);
        if let Some(charges) = &self.charges {
            let of_type =
                |t: &u32| charges.iter().find(|(name, _)| *name == s.types[*t as usize]).map_or(0.0, |c| *c.1);
            if let Some((unknown, _)) = charges.iter().find(|(name, _)| !s.types.iter().any(|t| t == *name)) {
                return Err(Error::input(format!("`charges` names the type \"{unknown}\", which no particle has")));
            }
            let values = Values::Real(s.type_id.iter().map(of_type).collect());
            s.arrays.insert("charge".into(), Array { width: 1, values });
        }
        Ok(())
    }
}
