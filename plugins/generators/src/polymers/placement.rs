//! Placement of all molecules of one kind, and arrays of the new particles.

use crate::polymers::component::{MoleculeEntry, Polymers, SinglePlacement};
use crate::polymers::geometry::kappa_of;
use crate::polymers::graft::Graft;
use crate::polymers::grid::Grid;
use crate::polymers::growth::{Builder, Reserved, UniformStream};
use crate::polymers::species::Species;
use crate::polymers::topology::TopologyBuilder;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;

impl Polymers {
    /// Returns the system under construction; `n` is the number of beads to add.
    ///
    /// # Errors
    /// Returns an error if a minimum distance exceeds half of a box length.
    pub fn builder<'a>(
        &self,
        context: &GeneratorContext,
        s: &'a mut Snapshot,
        min_distance2: Vec<f64>,
        n: usize,
    ) -> Result<Builder<'a>> {
        let reach = min_distance2.iter().copied().fold(0.0, f64::max).sqrt();
        let shortest = s.box_length.iter().take(s.dimensions as usize).copied().fold(f64::INFINITY, f64::min);
        if reach > 0.5 * shortest {
            let text = format!("a minimum distance of {reach} exceeds half of the shortest box length, {shortest}");
            return Err(Error::input(text));
        }
        let mut grid = Grid::new(s.box_length, reach, s.len() + n);
        s.position.iter().for_each(|r| grid.push(*r));
        Ok(Builder {
            grid,
            min_distance2,
            n_types: s.types.len(),
            random: UniformStream::new(RandomKey::new(context.seed, context.component)),
            trials: self.trials,
            attempts: self.attempts,
            reserved: None,
            kappa: if self.c_inf > 1.0 { kappa_of(self.c_inf) } else { 0.0 },
            state: s,
        })
    }

    /// Places all molecules of an entry.
    ///
    /// # Errors
    /// Returns an error if there is no position for a molecule.
    pub fn place(
        &self,
        b: &mut Builder<'_>,
        species: &Species,
        count: usize,
        e: &Spanned<MoleculeEntry>,
        ids: &mut Vec<i32>,
        topology: &mut TopologyBuilder<'_>,
    ) -> Result<()> {
        if e.value.places == SinglePlacement::Lattice && count > 0 {
            return place_on_lattice(b, species, count, e, ids);
        }
        let anchors = anchors(b.state, count, e)?;
        let points = e.value.graft.as_ref().map_or(vec![], |g| g.points(count, b.state.box_length));
        let reach = b.min_distance2.iter().copied().fold(0.0, f64::max).sqrt();
        b.reserved = (!points.is_empty()).then(|| Reserved::new(&points, species.types[0], b.state.box_length, reach));
        for k in 0..count {
            let base = b.state.len();
            if let Some(r) = &mut b.reserved {
                r.start(k);
            }
            let (first, anchor) = (points.get(k).copied(), anchors.get(k).copied());
            if !b.grow(species, first, anchor) {
                return Err(self.no_position(b.state, e, k, count, [first.is_some(), species.has_bent_ring()]));
            }
            let id = ids.last().map_or(0, |n| n + 1);
            ids.extend(std::iter::repeat_n(id, species.types.len()));
            topology.add(&species.molecule, base as u32);
            if let Some(anchor) = anchor {
                let anchor_type = b.state.types[b.state.type_id[anchor] as usize].clone();
                topology.bond([&anchor_type, &species.molecule.beads[0]], [anchor as u32, base as u32]);
            }
        }
        b.reserved = None;
        Ok(())
    }

    /// Returns the error that there is no position for molecule `k`, which may be grafted, and may have a ring with given angles.
    fn no_position(
        &self,
        s: &Snapshot,
        e: &Spanned<MoleculeEntry>,
        k: usize,
        count: usize,
        [grafted, bent_ring]: [bool; 2],
    ) -> Error {
        let (n, density) = (s.len(), s.len() as f64 / s.volume());
        let cause = if grafted {
            "the grafting density is too high, or the grafting point is occupied".to_string()
        } else {
            format!("{} attempts failed", self.attempts)
        };
        let ring = if bent_ring {
            ". If its ring cannot close with the given angles, change `theta_deg` or omit it"
        } else {
            ""
        };
        let text = format!(
            "no position was found for molecule {} of {count}, \"{}\": {cause}; the system has {n} particles, {density:.4} \
             per volume. Use a smaller `distance` and push the beads apart in a first stage, a larger region, or fewer \
             molecules{ring}",
            k + 1,
            e.value.molecule.value
        );
        InputError::at(e.at, text).into()
    }
}

/// Places single beads on lattice sites.
fn place_on_lattice(
    b: &mut Builder<'_>,
    species: &Species,
    count: usize,
    e: &Spanned<MoleculeEntry>,
    ids: &mut Vec<i32>,
) -> Result<()> {
    let Some(sites) = b.lattice_sites(species, count) else {
        let molecule = &e.value.molecule.value;
        let text = format!("there are not enough free sites for {count} beads of \"{molecule}\" on a lattice");
        return Err(InputError::at(e.at, text).into());
    };
    for r in sites {
        ids.push(ids.last().map_or(0, |n| n + 1));
        b.push(species.types[0], r);
    }
    Ok(())
}

/// Returns the particles that first beads are bonded to; none unless molecules are grafted on particles.
fn anchors(s: &Snapshot, count: usize, e: &Spanned<MoleculeEntry>) -> Result<Vec<usize>> {
    let Some(Graft::Particles { of }) = &e.value.graft else { return Ok(vec![]) };
    let candidates: Vec<usize> = (0..s.len()).filter(|i| s.types[s.type_id[*i] as usize] == *of).collect();
    if candidates.len() < count {
        let text = format!("there are {} particles of type \"{of}\" for {count} molecules", candidates.len());
        return Err(InputError::at(e.at, text).into());
    }
    Ok((0..count).map(|k| candidates[k * candidates.len() / count]).collect())
}

/// Extends the arrays of the first `before` particles to all particles. `molecules` are the molecule ids of the new ones;
/// `value_of_type` returns the value of an array for a type, if it is given.
pub fn extend_arrays(
    s: &mut Snapshot,
    before: usize,
    molecules: &[i32],
    value_of_type: &dyn Fn(&str, usize) -> Option<f64>,
) {
    let n = s.len();
    let mut ids = match s.arrays.remove("molecule").map(|a| a.values) {
        Some(Values::Int(v)) => v,
        _ => vec![-1; before],
    };
    let first = ids.iter().copied().max().unwrap_or(-1) + 1;
    ids.extend(molecules.iter().map(|m| first + m));
    s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(ids) });
    for name in ["charge", "diameter"] {
        let any = (0..s.types.len()).any(|t| value_of_type(name, t).is_some());
        if any && !s.arrays.contains_key(name) {
            let default = if name == "charge" { 0.0 } else { 1.0 };
            s.arrays.insert(name.into(), Array { width: 1, values: Values::Real(vec![default; before]) });
        }
    }
    let types = &s.type_id;
    for (name, a) in &mut s.arrays {
        let width = a.width as usize;
        match &mut a.values {
            Values::Int(v) => v.resize(n * width, if name == "body" { -1 } else { 0 }),
            Values::Real(v) => {
                let row: &[f64] = match name.as_str() {
                    "quaternion" => &[0.0, 0.0, 0.0, 1.0],
                    "orientation" => &[0.0, 0.0, 1.0],
                    _ => &[],
                };
                while v.len() < n * width {
                    let (i, k) = (v.len() / width, v.len() % width);
                    let default = row.get(k).copied().unwrap_or(if name == "diameter" { 1.0 } else { 0.0 });
                    v.push(value_of_type(name, types[i] as usize).unwrap_or(default));
                }
            }
        }
    }
}
