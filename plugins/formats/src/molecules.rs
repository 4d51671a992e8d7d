//! Numbers of molecules in formats of LAMMPS.

use galamost_measure::molecules::joined;
use galamost_plugin_api::prelude::{Snapshot, Values};

/// Returns the molecule of each particle as written, from 1; 0 for none. Without an array `molecule`, particles that bonds connect
/// are a molecule.
pub fn molecules(s: &Snapshot) -> Vec<i64> {
    if let Some(Values::Int(ints)) = s.arrays.get("molecule").map(|a| &a.values) {
        return ints.iter().map(|m| i64::from(*m) + 1).collect();
    }
    let first = joined(s.len(), s.bonds.iter().map(|l| l.tags));
    let mut several = vec![false; s.len()];
    first.iter().enumerate().filter(|(tag, f)| *tag != **f as usize).for_each(|(_, f)| several[*f as usize] = true);
    let (mut last, mut numbers) = (0, vec![0; s.len()]);
    for (tag, first) in first.iter().map(|f| *f as usize).enumerate() {
        last += i64::from(tag == first && several[tag]);
        // the first particle of a molecule precedes the others
        numbers[tag] = match tag == first {
            true if several[tag] => last,
            true => 0,
            false => numbers[first],
        };
    }
    numbers
}
