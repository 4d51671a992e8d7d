//! Formats a state as a data file.

use crate::lammps_data::style::{Field, Style};
use crate::molecules::molecules;
use galamost_plugin_api::prelude::{Link, Snapshot, Values};
use galamost_text::{Shape, real, reals, whole};
use std::io::Write as _;

/// Options of the analyzer.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    pub style: Style,
    pub velocity: bool,
    pub labels: bool,
    pub digits: Option<u32>,
}

fn numbers<'s>(s: &'s Snapshot, name: &str) -> &'s [f64] {
    match s.arrays.get(name).map(|a| &a.values) {
        Some(Values::Real(v)) => v,
        _ => &[],
    }
}

/// Returns the mass of each type, which all its particles must share; 1 for a type without particles.
fn masses(s: &Snapshot) -> Result<Vec<f64>, String> {
    let mut masses: Vec<Option<f64>> = vec![None; s.types.len()];
    for (particle_type, m) in s.type_id.iter().zip(&s.mass) {
        let mass = &mut masses[*particle_type as usize];
        if mass.is_some_and(|mass| mass != *m) {
            let name = &s.types[*particle_type as usize];
            return Err(format!("particles of type {name} have different masses; use the atom style Sphere"));
        }
        *mass = Some(*m);
    }
    Ok(masses.into_iter().map(|m| m.unwrap_or(1.0)).collect())
}

/// Formats a file.
///
/// # Errors
/// Returns a message if a particle has no mass or the style cannot represent the masses.
pub fn write(s: &Snapshot, options: WriteOptions) -> Result<Vec<u8>, String> {
    if let Some(tag) = s.mass.iter().position(|m| *m == 0.0) {
        return Err(format!(
            "particle {tag} (type {}) has no mass, which LAMMPS does not allow; use another format, such as GalamostXml",
            s.types[s.type_id[tag] as usize]
        ));
    }
    let mut out = vec![];
    let style = options.style;
    header(&mut out, s, options);
    if style != Style::Sphere {
        let _ = writeln!(out, "\nMasses\n");
        for (k, (m, name)) in masses(s)?.iter().zip(&s.types).enumerate() {
            // all digits: LAMMPS integrates with these masses
            let _ = writeln!(out, "{} {m:?} # {name}", k + 1);
        }
    }
    atoms(&mut out, s, options);
    if options.velocity {
        velocities(&mut out, s, options);
    }
    if style.links() >= 2 {
        rows(&mut out, "Bonds", &s.bonds);
    }
    if style.links() >= 3 {
        rows(&mut out, "Angles", &s.angles);
    }
    if style.links() >= 4 {
        rows(&mut out, "Dihedrals", &s.dihedrals);
        rows(&mut out, "Impropers", &s.impropers);
    }
    Ok(out)
}

/// Writes counts, the box, and labels. Writing to memory does not fail.
fn header(out: &mut Vec<u8>, s: &Snapshot, options: WriteOptions) {
    let style = options.style;
    let _ = writeln!(out, "LAMMPS data file, timestep = {}\n", s.step);
    let _ = writeln!(out, "{} atoms\n{} atom types", s.len(), s.types.len());
    let links = [
        ("bond", "Bond", s.bonds.len(), &s.bond_types, style.links() >= 2),
        ("angle", "Angle", s.angles.len(), &s.angle_types, style.links() >= 3),
        ("dihedral", "Dihedral", s.dihedrals.len(), &s.dihedral_types, style.links() >= 4),
        ("improper", "Improper", s.impropers.len(), &s.improper_types, style.links() >= 4),
    ];
    for (word, _, n, types, has) in &links {
        if *has && (*n > 0 || !types.is_empty()) {
            let _ = writeln!(out, "{n} {word}s\n{} {word} types", types.len());
        }
    }
    let _ = writeln!(out);
    // LAMMPS needs a finite height in two dimensions
    let shape = Shape::of(s).finite();
    for (axis, (l, half)) in ["x", "y", "z"].iter().zip(shape.length.iter().zip(shape.middle())) {
        let _ = writeln!(out, "{:?} {:?} {axis}lo {axis}hi", -half, l - half);
    }
    if shape.is_tilted() {
        let [xy, xz, yz] = shape.tilts();
        let _ = writeln!(out, "{xy:?} {xz:?} {yz:?} xy xz yz");
    }
    if options.labels {
        labels(out, "Atom", &s.types);
        for (_, title, _, types, has) in &links {
            if *has && !types.is_empty() {
                labels(out, title, types);
            }
        }
    }
}

fn atoms(out: &mut Vec<u8>, s: &Snapshot, WriteOptions { style, digits, .. }: WriteOptions) {
    let _ = writeln!(out, "\nAtoms # {}\n", style.word());
    let (charge, diameter) = (numbers(s, "charge"), numbers(s, "diameter"));
    let molecule = if style.has(Field::Molecule) { molecules(s) } else { vec![] };
    for tag in 0..s.len() {
        let _ = write!(out, "{}", tag + 1);
        if style.has(Field::Molecule) {
            whole(out, &[molecule.get(tag).copied().unwrap_or(0)]);
        }
        whole(out, &[s.type_id[tag] + 1]);
        if style.has(Field::Charge) {
            reals(out, &[charge.get(tag).copied().unwrap_or(0.0)], digits);
        }
        if style == Style::Sphere {
            let d = diameter.get(tag).copied().unwrap_or(0.0);
            let volume = std::f64::consts::PI / 6.0 * d.powi(3);
            reals(out, &[d, if d > 0.0 { s.mass[tag] / volume } else { s.mass[tag] }], None);
        }
        reals(out, &s.position[tag], digits);
        whole(out, &s.image[tag]);
        out.push(b'\n');
    }
}

fn velocities(out: &mut Vec<u8>, s: &Snapshot, WriteOptions { style, digits, .. }: WriteOptions) {
    let _ = writeln!(out, "\nVelocities\n");
    for (tag, v) in s.velocity.iter().enumerate() {
        let _ = write!(out, "{}", tag + 1);
        for x in v {
            out.push(b' ');
            real(out, *x, digits);
        }
        if style == Style::Sphere {
            out.extend_from_slice(b" 0 0 0");
        }
        out.push(b'\n');
    }
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
