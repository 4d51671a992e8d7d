//! The state: particles in the order of `[ molecules ]` with the positions of a file.

use crate::source::At;
use crate::system::System;
use crate::topology::Topology;
use galamost_plugin_api::error::{InputError, Position};
use galamost_plugin_api::snapshot::{Array, Link, LinkList as List, Snapshot, Values, intern, wrap};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

/// A file of coordinates.
#[derive(Debug)]
pub struct Coordinates<'a> {
    pub path: &'a Path,
    /// The state, with the names of atoms as types.
    pub state: Snapshot,
    /// Lines before the first atom, if an atom is a line of the file.
    pub lines: Option<u32>,
    /// Characters of a name that the format keeps.
    pub name_length: usize,
}

/// Returns the state of a topology with these coordinates.
///
/// # Errors
/// Returns an error if the atoms of the file are not those of the topology, in its order.
pub fn structure(topology: &Topology, system: &System, coordinates: &Coordinates<'_>) -> Result<Snapshot, InputError> {
    compare(topology, coordinates)?;
    let from = &coordinates.state;
    let mut s = Snapshot { dimensions: 3, box_length: from.box_length, ..Snapshot::default() };
    topology.types().into_iter().for_each(|name| _ = intern(&mut s.types, name));
    for list in List::ALL {
        let names = system.types[list as usize].iter().map(|t| t.name.clone()).collect();
        match list {
            List::Bonds => s.bond_types = names,
            List::Angles => s.angle_types = names,
            List::Dihedrals => s.dihedral_types = names,
            List::Impropers => s.improper_types = names,
        }
    }
    let (mut charge, mut molecule) = (vec![], vec![]);
    let mut number = 0;
    for block in &topology.blocks {
        for _ in 0..block.count {
            let base = s.len() as u32;
            for atom in &topology.molecules[block.molecule].atoms {
                let tag = s.len();
                let kind = intern(&mut s.types, &atom.kind);
                s.push(kind, from.position[tag]);
                (s.image[tag], s.velocity[tag], s.mass[tag]) = (from.image[tag], from.velocity[tag], atom.mass);
                charge.push(atom.charge);
                molecule.push(number);
            }
            if let Some(found) = system.molecules.get(&block.molecule) {
                found.sites.iter().for_each(|site| s.mass[(base + site.site) as usize] = 0.0);
            }
            for (list, kind, atoms) in system.bonded.get(&block.molecule).into_iter().flatten() {
                link(&mut s, *list, *kind, atoms, base);
            }
            number += 1;
        }
    }
    if charge.iter().any(|q| *q != 0.0) {
        s.arrays.insert("charge".into(), Array { width: 1, values: Values::Real(charge) });
    }
    s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(molecule) });
    make_whole(&mut s);
    round(&mut s);
    Ok(s)
}

/// Decimal places of the numbers of a state.
pub const DIGITS: usize = 12;

/// Rounds the numbers of a state to those of a structure file with [`DIGITS`] decimal places, so that the state is the same with
/// and without this file. In such a file, small components of velocities have an exponent.
fn round(s: &mut Snapshot) {
    let parse = |text: String, x: f64| text.parse().unwrap_or(x);
    let decimals = |x: &mut f64| *x = parse(format!("{x:.DIGITS$}"), *x);
    let exponent = |x: &mut f64| {
        if *x != 0.0 && x.abs() < 0.1f64.powf(0.5 * DIGITS as f64) {
            *x = parse(format!("{x:.DIGITS$e}"), *x);
        } else {
            decimals(x);
        }
    };
    s.position.as_flattened_mut().iter_mut().for_each(decimals);
    s.velocity.as_flattened_mut().iter_mut().for_each(exponent);
    s.mass.iter_mut().for_each(decimals);
    for array in s.arrays.values_mut() {
        if let Values::Real(values) = &mut array.values {
            values.iter_mut().for_each(decimals);
        }
    }
    // a state without motion has no velocities in the file, so no -0.0
    if s.velocity.iter().all(|v| *v == [0.0; 3]) {
        s.velocity.fill([0.0; 3]);
    }
    // a position that rounds to the boundary of the box
    for (x, image) in s.position.iter_mut().zip(s.image.iter_mut()) {
        wrap(x, image, s.box_length, 1e-6);
    }
}

/// Adds a bonded interaction of a molecule whose first tag is `base`.
fn link(s: &mut Snapshot, list: List, kind: u32, atoms: &[u32], base: u32) {
    match (list, atoms) {
        (List::Bonds, [a, b]) => s.bonds.push(Link { kind, tags: [a + base, b + base] }),
        (List::Angles, [a, b, c]) => s.angles.push(Link { kind, tags: [a + base, b + base, c + base] }),
        (List::Dihedrals, [a, b, c, d]) => s.dihedrals.push(Link { kind, tags: [a, b, c, d].map(|t| t + base) }),
        (List::Impropers, [a, b, c, d]) => s.impropers.push(Link { kind, tags: [a, b, c, d].map(|t| t + base) }),
        _ => {}
    }
}

/// Compares number and names of atoms.
fn compare(topology: &Topology, coordinates: &Coordinates<'_>) -> Result<(), InputError> {
    let (n, state) = (topology.particles()?, &coordinates.state);
    let file = coordinates.path.display();
    if n != state.len() {
        let at = topology.blocks.last().map_or(At::default(), |b| b.at);
        let message = format!("[ molecules ] has {n} atoms, and {file} has {}", state.len());
        return Err(topology.source.error(at, message));
    }
    let mut tag = 0;
    for block in &topology.blocks {
        let molecule = &topology.molecules[block.molecule];
        for (_, atom) in (0..block.count).flat_map(|k| molecule.atoms.iter().map(move |a| (k, a))) {
            let here = &state.types[state.type_id[tag] as usize];
            let expected: String = atom.name.chars().take(coordinates.name_length).collect();
            if *here != expected {
                let at = coordinates.lines.map(|before| Position { line: before + tag as u32 + 1, column: 11 });
                let message = format!(
                    "atom {} is {here}, and the topology has {expected} of a molecule {} here; the order must be that of [ molecules ]",
                    tag + 1,
                    molecule.name
                );
                return Err(InputError::in_file(coordinates.path, at, message));
            }
            tag += 1;
        }
    }
    Ok(())
}

/// Sets the images so that bonds do not cross the boundary of the box. Short bonds go first: those for exclusions may be longer
/// than half the box.
fn make_whole(s: &mut Snapshot) {
    let mut neighbors = vec![vec![]; s.len()];
    for bond in &s.bonds {
        let [a, b] = bond.tags.map(|t| t as usize);
        neighbors[a].push(b);
        neighbors[b].push(a);
    }
    // boxes from a particle to the nearest image of another one, and the distance; bits of positive numbers are in their order
    let nearest = |s: &Snapshot, a: usize, b: usize| {
        let d: [f64; 3] = std::array::from_fn(|k| s.position[a][k] - s.position[b][k]);
        let boxes: [f64; 3] = std::array::from_fn(|k| (d[k] / s.box_length[k]).round());
        let r2: f64 = (0..3).map(|k| (d[k] - boxes[k] * s.box_length[k]).powi(2)).sum();
        (boxes.map(|n| n as i32), r2.to_bits())
    };
    let mut seen = vec![false; s.len()];
    for first in 0..s.len() {
        let mut open = BinaryHeap::from([(Reverse(0), first, first)]);
        while let Some((_, a, b)) = open.pop() {
            if std::mem::replace(&mut seen[b], true) {
                continue;
            }
            let (boxes, _) = nearest(s, a, b);
            s.image[b] = std::array::from_fn(|k| s.image[a][k] + boxes[k]);
            open.extend(neighbors[b].iter().map(|c| (Reverse(nearest(s, b, *c).1), b, *c)));
        }
    }
}
