//! From a state to the text of a data file.

use crate::lammps_data::style::Style;
use galamost_plugin_api::prelude::{Link, Snapshot, Values};
use galamost_text::{real, reals, whole};
use std::io::Write as _;

/// How a state is written.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub style: Style,
    pub velocity: bool,
    pub labels: bool,
    pub digits: Option<u32>,
}

fn ints<'s>(s: &'s Snapshot, name: &str) -> &'s [i32] {
    match s.arrays.get(name).map(|a| &a.values) {
        Some(Values::Int(v)) => v,
        _ => &[],
    }
}

fn numbers<'s>(s: &'s Snapshot, name: &str) -> &'s [f64] {
    match s.arrays.get(name).map(|a| &a.values) {
        Some(Values::Real(v)) => v,
        _ => &[],
    }
}

/// The mass of each type, which all its particles must have; 1 for a type without particles.
fn masses(s: &Snapshot) -> Result<Vec<f64>, String> {
    let mut masses: Vec<Option<f64>> = vec![None; s.types.len()];
    for (kind, m) in s.type_id.iter().zip(&s.mass) {
        let of = &mut masses[*kind as usize];
        if of.is_some_and(|of| of != *m) {
            let name = &s.types[*kind as usize];
            return Err(format!(
                "particles of type {name} have different masses: only the atom style Sphere can hold them"
            ));
        }
        *of = Some(*m);
    }
    Ok(masses.into_iter().map(|m| m.unwrap_or(1.0)).collect())
}

/// The text of a file.
///
/// # Errors
/// The style has no place for the masses.
pub fn write(s: &Snapshot, form: Form) -> Result<Vec<u8>, String> {
    let mut out = vec![];
    let Form { style, digits, .. } = form;
    // writing to memory does not fail
    macro_rules! line {
        ($($text:tt)*) => { drop(writeln!(out, $($text)*)) };
    }
    line!("LAMMPS data file, timestep = {}\n", s.step);
    line!("{} atoms\n{} atom types", s.len(), s.types.len());
    let links = [
        ("bond", "Bond", s.bonds.len(), &s.bond_types, 2),
        ("angle", "Angle", s.angles.len(), &s.angle_types, 3),
        ("dihedral", "Dihedral", s.dihedrals.len(), &s.dihedral_types, 4),
    ];
    let links = links.map(|(word, title, n, types, width)| (word, title, n, types, style.links() >= width));
    for (word, _, n, types, has) in &links {
        if *has && (*n > 0 || !types.is_empty()) {
            line!("{n} {word}s\n{} {word} types", types.len());
        }
    }
    line!();
    for (k, axis) in ["x", "y", "z"].iter().enumerate() {
        // in two dimensions LAMMPS wants a box with some height
        let l = if s.box_length[k] > 0.0 { s.box_length[k] } else { 1.0 };
        line!("{:?} {:?} {axis}lo {axis}hi", -0.5 * l, 0.5 * l);
    }
    if form.labels {
        labels(&mut out, "Atom", &s.types);
        for (_, title, _, types, has) in &links {
            if *has && !types.is_empty() {
                labels(&mut out, title, types);
            }
        }
    }
    if style != Style::Sphere {
        line!("\nMasses\n");
        for (k, (m, name)) in masses(s)?.iter().zip(&s.types).enumerate() {
            // as many digits as it takes: an integrator of LAMMPS would go on with these
            line!("{} {m:?} # {name}", k + 1);
        }
    }
    line!("\nAtoms # {}\n", style.word());
    let (molecule, charge, diameter) = (ints(s, "molecule"), numbers(s, "charge"), numbers(s, "diameter"));
    for tag in 0..s.len() {
        let _ = write!(out, "{}", tag + 1);
        if style.molecule() {
            whole(&mut out, &[molecule.get(tag).map_or(0, |m| i64::from(*m) + 1)]);
        }
        whole(&mut out, &[s.type_id[tag] + 1]);
        if style.charge() {
            reals(&mut out, &[charge.get(tag).copied().unwrap_or(0.0)], digits);
        }
        if style == Style::Sphere {
            let d = diameter.get(tag).copied().unwrap_or(0.0);
            let volume = std::f64::consts::PI / 6.0 * d.powi(3);
            reals(&mut out, &[d, if d > 0.0 { s.mass[tag] / volume } else { s.mass[tag] }], None);
        }
        reals(&mut out, &s.position[tag], digits);
        whole(&mut out, &s.image[tag]);
        out.push(b'\n');
    }
    if form.velocity {
        line!("\nVelocities\n");
        for (tag, v) in s.velocity.iter().enumerate() {
            let _ = write!(out, "{}", tag + 1);
            for x in v {
                out.push(b' ');
                real(&mut out, *x, digits);
            }
            if style == Style::Sphere {
                out.extend_from_slice(b" 0 0 0");
            }
            out.push(b'\n');
        }
    }
    if links[0].4 {
        rows(&mut out, "Bonds", &s.bonds);
    }
    if links[1].4 {
        rows(&mut out, "Angles", &s.angles);
    }
    if links[2].4 {
        rows(&mut out, "Dihedrals", &s.dihedrals);
    }
    Ok(out)
}

fn labels(out: &mut Vec<u8>, title: &str, names: &[String]) {
    let _ = writeln!(out, "\n{title} Type Labels\n");
    for (k, name) in names.iter().enumerate() {
        let _ = writeln!(out, "{} {name}", k + 1);
    }
}

fn rows<const N: usize>(out: &mut Vec<u8>, title: &str, links: &[Link<N>]) {
    if links.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}\n");
    for (k, link) in links.iter().enumerate() {
        let _ = write!(out, "{} {}", k + 1, link.kind + 1);
        whole(out, &link.tags.map(|t| t + 1));
        out.push(b'\n');
    }
}
