//! Maps atoms to beads.

use galamost_plugin_api::Params;
use galamost_plugin_api::error::{Errors, InputError};
use galamost_plugin_api::params::{FromValue, Spanned, Value};
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values, intern, wrap};

/// A bead of the repeated pattern of a molecule.
#[derive(Clone, Debug, PartialEq, Params)]
pub(super) struct Bead {
    /// Particle type.
    #[param(name = "type")]
    type_name: String,
    /// Atoms of the bead, counted from 0 in the pattern.
    atoms: Spanned<Vec<u32>>,
    /// Weights of the atoms in the position of the bead; by default their masses.
    weights: Option<Spanned<Vec<f64>>>,
}

/// A bond, angle or dihedral between beads: `("A-A", 0, 1)`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BeadLink<const N: usize> {
    name: String,
    beads: [u32; N],
}

impl<const N: usize> FromValue for BeadLink<N> {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let elements = errors.absorb(value.elements())?;
        if elements.len() != N + 1 {
            errors.push(value.error(format!("expected {}", Self::describe())));
            return None;
        }
        let name = String::from_value(elements[0], errors);
        let beads: Vec<u32> = elements[1..].iter().filter_map(|v| u32::from_value(*v, errors)).collect();
        Some(Self { name: name?, beads: beads.try_into().ok()? })
    }
    fn describe() -> String {
        format!("(\"type\", {})", (0..N).map(|k| k.to_string()).collect::<Vec<_>>().join(", "))
    }
}

/// Identical molecules that are contiguous in the frame.
#[derive(Clone, Debug, PartialEq, Params)]
pub(super) struct MoleculeBlock {
    /// Number of molecules.
    #[param(at_least = 1)]
    molecules: u32,
    /// Number of repetitions of the pattern in a molecule.
    #[param(default = 1, at_least = 1)]
    repeat: u32,
    /// Number of atoms of the pattern.
    #[param(at_least = 1)]
    atoms: u32,
    /// Beads of the pattern; empty to skip these molecules.
    beads: Vec<Bead>,
    /// Bonds of the pattern. Bead numbers beyond the pattern refer to the next repetitions; bonds beyond the end of the
    /// molecule are omitted.
    #[param(default = vec![])]
    bonds: Vec<BeadLink<2>>,
    /// Angles of the pattern.
    #[param(default = vec![])]
    angles: Vec<BeadLink<3>>,
    /// Dihedrals of the pattern.
    #[param(default = vec![])]
    dihedrals: Vec<BeadLink<4>>,
}

/// Checks a mapping.
pub(super) fn check(blocks: &[Spanned<MoleculeBlock>], errors: &mut Errors) {
    for bead in blocks.iter().flat_map(|b| b.value.beads.iter().map(move |bead| (b, bead))) {
        let (block, bead) = bead;
        let mut report = |at, message: String| errors.push(InputError::at(at, message));
        if bead.atoms.value.is_empty() {
            report(bead.atoms.at, "a bead needs at least one atom".into());
        }
        if let Some(a) = bead.atoms.value.iter().find(|a| **a >= block.value.atoms) {
            report(bead.atoms.at, format!("no atom {a}: the pattern has {} atoms", block.value.atoms));
        }
        if let Some(w) = &bead.weights {
            if w.value.len() != bead.atoms.value.len() {
                report(w.at, format!("{} weights for {} atoms", w.value.len(), bead.atoms.value.len()));
            } else if w.value.iter().any(|w| *w < 0.0) || w.value.iter().sum::<f64>() <= 0.0 {
                report(w.at, "weights must not be negative, and at least one must be positive".into());
            }
        }
    }
}

/// Returns the beads of a frame.
///
/// # Errors
/// Returns an error if the frame has fewer particles than the mapping.
pub(super) fn apply(blocks: &[Spanned<MoleculeBlock>], frame: &Snapshot) -> Result<Snapshot, InputError> {
    if let Some(block) = blocks.first().filter(|_| frame.is_tilted()) {
        return Err(InputError::at(block.at, "a mapping needs a rectangular box; that of the frame is triclinic"));
    }
    let mut out = Snapshot {
        step: frame.step,
        dimensions: frame.dimensions,
        box_length: frame.box_length,
        ..Snapshot::default()
    };
    let mut molecule = vec![];
    let (mut first, mut number) = (0usize, 0i32);
    for block in blocks {
        let b = &block.value;
        let size = b.atoms as usize * b.repeat as usize;
        let end = first + size * b.molecules as usize;
        if end > frame.len() {
            let message = format!("the mapping reaches to particle {}, but the frame has {}", end - 1, frame.len());
            return Err(InputError::at(block.at, message));
        }
        for m in 0..b.molecules as usize {
            let begin = out.len() as u32;
            for copy in 0..b.repeat as usize {
                let base = first + m * size + copy * b.atoms as usize;
                for bead in &b.beads {
                    let type_id = out.type_id(&bead.type_name);
                    let tag = out.push(type_id, [0.0; 3]) as usize;
                    (out.position[tag], out.mass[tag]) = center(bead, base, frame);
                    let (l, mut image) = (out.box_length, [0; 3]);
                    // the center may lie outside the box by up to the size of the molecule
                    for k in (0..3).filter(|k| l[*k] > 0.0) {
                        out.position[tag][k] -= l[k] * (out.position[tag][k] / l[k]).round();
                    }
                    wrap(&mut out.position[tag], &mut image, l, 1e-6);
                    molecule.push(number);
                }
            }
            let beads = (b.beads.len() * b.repeat as usize) as u32;
            for copy in 0..b.repeat {
                let shift = copy * b.beads.len() as u32;
                add(&b.bonds, shift, beads, begin, &mut out.bond_types, &mut out.bonds);
                add(&b.angles, shift, beads, begin, &mut out.angle_types, &mut out.angles);
                add(&b.dihedrals, shift, beads, begin, &mut out.dihedral_types, &mut out.dihedrals);
            }
            number += 1;
        }
        first = end;
    }
    out.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(molecule) });
    Ok(out)
}

/// Adds the bonds, angles or dihedrals of one repetition of the pattern.
fn add<const N: usize>(
    rows: &[BeadLink<N>],
    shift: u32,
    beads: u32,
    begin: u32,
    names: &mut Vec<String>,
    links: &mut Vec<Link<N>>,
) {
    for row in rows {
        let tags = row.beads.map(|k| k + shift);
        let kind = intern(names, &row.name);
        if tags.iter().all(|t| *t < beads) {
            links.push(Link { kind, tags: tags.map(|t| begin + t) });
        }
    }
}

/// Returns the weighted mean position of the atoms of a bead, using minimum images relative to its first atom, and
/// their mass.
fn center(bead: &Bead, base: usize, frame: &Snapshot) -> ([f64; 3], f64) {
    let at = |a: u32| base + a as usize;
    let origin = frame.position[at(bead.atoms.value[0])];
    let (mut sum, mut total, mut mass) = ([0.0; 3], 0.0, 0.0);
    for (k, a) in bead.atoms.value.iter().enumerate() {
        let m = frame.mass[at(*a)];
        let w = bead.weights.as_ref().map_or(m, |w| w.value[k]);
        for axis in 0..3 {
            let l = frame.box_length[axis];
            let d = frame.position[at(*a)][axis] - origin[axis];
            sum[axis] += w * if l > 0.0 { d - l * (d / l).round() } else { d };
        }
        total += w;
        mass += m;
    }
    (std::array::from_fn(|k| origin[k] + sum[k] / total), mass)
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::params::Source;

    #[test]
    fn beads_are_centers_and_links_repeat() {
        let text = "[(molecules: 2, repeat: 3, atoms: 2, beads: [(type: \"P\", atoms: [0, 1], weights: [1.0, 3.0])], \
                    bonds: [(\"P-P\", 0, 1)], angles: [(\"P-P-P\", 0, 1, 2)]), (molecules: 1, atoms: 1, beads: [(type: \"W\", atoms: [0])])]";
        let mut errors = Errors::default();
        let blocks =
            Vec::<Spanned<MoleculeBlock>>::from_value(Source::file(text).value(), &mut errors).expect("a mapping");
        check(&blocks, &mut errors);
        assert!(errors.0.is_empty());
        let mut s = Snapshot { dimensions: 3, box_length: [10.0; 3], ..Snapshot::default() };
        let kind = s.type_id("C");
        for k in 0..13 {
            // pairs across the boundary: 4.8 and −4.8
            s.push(kind, [if k % 2 == 0 { 4.8 } else { -4.8 }, 0.5 * f64::from(k) - 3.0, 0.0]);
        }
        s.mass[12] = 18.0;
        let beads = apply(&blocks, &s).expect("beads");
        assert_eq!((beads.len(), beads.bonds.len(), beads.angles.len()), (7, 4, 2));
        assert!((beads.position[0][0] + 4.9).abs() < 1e-12 && (beads.position[0][1] + 2.625).abs() < 1e-12);
        assert_eq!((beads.bonds[3].tags, beads.angles[1].tags), ([4, 5], [3, 4, 5]));
        assert_eq!((beads.mass[0], beads.mass[6], beads.types.len()), (2.0, 18.0, 2));
        beads.check().expect("a state");
        s.position.truncate(12);
        assert!(
            apply(&blocks, &s).expect_err("too few").message.contains("reaches to particle 12, but the frame has 12")
        );
        let bad = text.replace("atoms: [0, 1], weights: [1.0, 3.0]", "atoms: [0, 2], weights: [1.0]");
        let blocks =
            Vec::<Spanned<MoleculeBlock>>::from_value(Source::file(&bad).value(), &mut errors).expect("a mapping");
        check(&blocks, &mut errors);
        let messages: Vec<_> = errors.0.iter().map(|e| e.message.as_str()).collect();
        assert_eq!(messages, ["no atom 2: the pattern has 2 atoms", "1 weights for 2 atoms"]);
    }
}
