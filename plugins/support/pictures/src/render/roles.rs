//! What types are to a picture: a solvent, centers of rigid bodies, particles that rotate.

use crate::render::scene::array;
use galamost_plugin_api::snapshot::Snapshot;
use std::collections::HashSet;

/// Names of water in lower case.
const WATER: [&str; 7] = ["w", "wat", "water", "sol", "solvent", "hoh", "tip3"];

/// Returns for each type whether its particles rotate; none in a state without orientations.
pub fn rotating_types(state: &Snapshot) -> Vec<bool> {
    let oriented = state.arrays.contains_key("quaternion") || state.arrays.contains_key("orientation");
    let Some((3, inert)) = array(state, "inert") else { return vec![oriented; state.types.len()] };
    let mut rotates = vec![false; state.types.len()];
    let moments = inert.chunks(3).zip(&state.type_id);
    moments.filter(|(i, _)| oriented && i.iter().any(|x| *x > 0.0)).for_each(|(_, k)| rotates[*k as usize] = true);
    rotates
}

/// Types of rigid bodies, by the index of the type.
pub struct BodyTypes {
    /// All particles of the type are centers: they have the mass of a body, and its beads have none.
    pub center: Vec<bool>,
    /// The type has beads.
    pub bead: Vec<bool>,
}

/// Returns the types of rigid bodies, from masses and the array `body`.
pub fn body_types(state: &Snapshot) -> BodyTypes {
    let (mut center, mut bead) = (vec![false; state.types.len()], vec![false; state.types.len()]);
    if let Some((1, body)) = array(state, "body") {
        let members = || body.iter().zip(&state.mass).zip(&state.type_id).filter(|((b, _), _)| **b >= 0.0);
        let with_beads: HashSet<u64> = members().filter(|m| *m.0.1 == 0.0).map(|m| m.0.0.to_bits()).collect();
        let mut centers = vec![0; state.types.len()];
        for ((_, mass), kind) in members().filter(|m| with_beads.contains(&m.0.0.to_bits())) {
            match *mass == 0.0 {
                true => bead[*kind as usize] = true,
                false => centers[*kind as usize] += 1,
            }
        }
        let mut all = vec![0; state.types.len()];
        state.type_id.iter().for_each(|k| all[*k as usize] += 1);
        center = centers.iter().zip(&all).map(|(n, all)| *n > 0 && n == all).collect();
    }
    BodyTypes { center, bead }
}

/// Returns the types that are a solvent: their particles have no bonds, do not rotate and belong to no body, others do, and they
/// are more than half of all particles or have a name of water (`W`, `WAT`, `SOL`, `HOH`, `TIP3`, …).
pub fn solvent_types(state: &Snapshot) -> Vec<String> {
    let mut count = vec![0usize; state.types.len()];
    state.type_id.iter().for_each(|k| count[*k as usize] += 1);
    let mut solute = rotating_types(state);
    solute.iter_mut().zip(body_types(state).bead).for_each(|(s, bead)| *s |= bead);
    state.bonds.iter().flat_map(|b| b.tags).for_each(|t| solute[state.type_id[t as usize] as usize] = true);
    if !solute.iter().zip(&count).any(|(s, n)| *s && *n > 0) {
        return vec![];
    }
    let is_solvent = |k: &usize| {
        !solute[*k] && (2 * count[*k] > state.len() || WATER.contains(&state.types[*k].to_lowercase().as_str()))
    };
    (0..state.types.len()).filter(is_solvent).map(|k| state.types[k].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::snapshot::{Array, Link, Values};

    /// Returns a state of the given numbers of particles by type, with a bond between the first two.
    fn state(numbers: &[(&str, usize)], bonded: bool) -> Snapshot {
        let type_id: Vec<u32> = numbers.iter().enumerate().flat_map(|(k, n)| vec![k as u32; n.1]).collect();
        Snapshot {
            types: numbers.iter().map(|n| n.0.to_string()).collect(),
            position: vec![[0.0; 3]; type_id.len()].into(),
            type_id: type_id.into(),
            bonds: bonded.then_some(Link { kind: 0, tags: [0, 1] }).into_iter().collect(),
            ..Snapshot::default()
        }
    }

    #[test]
    fn beads_of_bodies_are_no_solvent_and_centers_are_known() {
        // two dimers, their centers, and a solvent
        let mut s = state(&[("B", 4), ("R", 2), ("S", 3)], false);
        s.mass = vec![0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 1.0, 1.0, 1.0].into();
        let body = vec![4, 4, 5, 5, 4, 5, -1, -1, -1];
        s.arrays.insert("body".into(), Array { width: 1, values: Values::Int(body) });
        assert_eq!((body_types(&s).center, body_types(&s).bead), (vec![false, true, false], vec![true, false, false]));
        assert!(solvent_types(&s).is_empty());
        s.types[2] = "W".into();
        assert_eq!(solvent_types(&s), ["W"]);
        // a particle of the type R that is no center
        s.mass[8] = 1.0;
        s.type_id[8] = 1;
        assert_eq!(body_types(&s).center, [false; 3]);
    }

    #[test]
    fn a_solvent_surrounds_molecules() {
        assert_eq!(solvent_types(&state(&[("A", 4), ("S", 6)], true)), ["S"]);
        assert_eq!(solvent_types(&state(&[("A", 6), ("W", 2), ("ion", 1)], true)), ["W"]);
        // a mixture of particles has no solvent, nor do molecules alone
        assert!(solvent_types(&state(&[("A", 8), ("B", 2)], false)).is_empty());
        assert!(solvent_types(&state(&[("W", 5)], true)).is_empty());
        assert!(solvent_types(&state(&[("A", 6), ("B", 4)], true)).is_empty());
        // water between particles without molecules is what there is to see
        assert!(solvent_types(&state(&[("W", 5), ("A", 1)], false)).is_empty());
    }
}
