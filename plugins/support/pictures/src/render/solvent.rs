//! Which types are a solvent, so that pictures can show what is dissolved in it.

use crate::render::scene::array;
use galamost_plugin_api::snapshot::Snapshot;

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

/// Returns the types that are a solvent: their particles have no bonds and do not rotate, others do, and they are more than half
/// of all particles or have a name of water (`W`, `WAT`, `SOL`, `HOH`, `TIP3`, …).
pub fn solvent_types(state: &Snapshot) -> Vec<String> {
    let mut count = vec![0usize; state.types.len()];
    state.type_id.iter().for_each(|k| count[*k as usize] += 1);
    let mut solute = rotating_types(state);
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
    use galamost_plugin_api::snapshot::Link;

    /// Returns a state of the given numbers of particles by type, with a bond between the first two.
    fn state(numbers: &[(&str, usize)], bonded: bool) -> Snapshot {
        let type_id: Vec<u32> = numbers.iter().enumerate().flat_map(|(k, n)| vec![k as u32; n.1]).collect();
        Snapshot {
            types: numbers.iter().map(|n| n.0.to_string()).collect(),
            position: vec![[0.0; 3]; type_id.len()],
            type_id,
            bonds: bonded.then_some(Link { kind: 0, tags: [0, 1] }).into_iter().collect(),
            ..Snapshot::default()
        }
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
