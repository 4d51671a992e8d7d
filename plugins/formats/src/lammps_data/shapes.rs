//! Spheres, ellipsoids and dipoles: masses, orientations, moments of inertia.

use crate::lammps_data::atoms::Atom;
use crate::lammps_data::header::content;
use crate::lammps_data::read::{File, row};
use crate::lammps_data::style::{Field, Layout};
use galamost_plugin_api::prelude::{Array, Values};
use galamost_text::{Lines, Result};
use std::f64::consts::PI;

/// What only some styles have, for each particle.
#[derive(Default)]
pub struct Shapes {
    diameter: Vec<f64>,
    ellipsoid: Vec<bool>,
    /// Directions of dipoles.
    orientation: Vec<[f64; 3]>,
    /// Orientations x y z w of ellipsoids.
    quaternion: Vec<[f64; 4]>,
    inert: Vec<[f64; 3]>,
    /// Smallest and largest dipole moment.
    moments: Option<[f64; 2]>,
}

impl Shapes {
    /// Returns the shapes and masses of atoms in the order of their tags; no masses if the types have them.
    pub fn of(layout: &Layout, atoms: &[Atom]) -> (Self, Option<Vec<f64>>) {
        let mut shapes = Self::default();
        if layout.has(Field::Diameter) {
            shapes.diameter = atoms.iter().map(|a| a.diameter).collect();
        }
        if layout.has(Field::Ellipsoid) {
            shapes.ellipsoid = atoms.iter().map(|a| a.ellipsoid).collect();
            shapes.quaternion = vec![[0.0, 0.0, 0.0, 1.0]; atoms.len()];
            shapes.inert = vec![[0.0; 3]; atoms.len()];
        }
        for a in atoms.iter().filter(|_| layout.has(Field::Dipole)) {
            let length = a.dipole.iter().map(|x| x * x).sum::<f64>().sqrt();
            let [low, high] = shapes.moments.unwrap_or([length; 2]);
            shapes.moments = Some([low.min(length), high.max(length)]);
            shapes.orientation.push(if length > 0.0 { a.dipole.map(|x| x / length) } else { [0.0, 0.0, 1.0] });
        }
        let mass = |a: &Atom| a.density * if a.diameter > 0.0 { PI / 6.0 * a.diameter.powi(3) } else { 1.0 };
        let masses = layout.has(Field::Density).then(|| atoms.iter().map(mass).collect());
        (shapes, masses)
    }

    /// Reads the section `Ellipsoids` of `n` rows: diameters and quaternions w x y z. Masses become those of the ellipsoids.
    pub fn ellipsoids(file: &mut File, l: &mut Lines, n: u64) -> Result<()> {
        for _ in 0..n {
            row(l, "Ellipsoids")?;
            let words: Vec<&str> = content(l.text()).split_ascii_whitespace().collect();
            if words.len() != 8 {
                return Err(
                    l.wrong(format!("expected an atom, 3 diameters and a quaternion, found {} values", words.len()))
                );
            }
            let tag = file.tag(l, words[0])? as usize;
            let mut values = [0.0; 7];
            for (x, word) in values.iter_mut().zip(&words[1..]) {
                *x = l.real(word)?;
            }
            let [a, b, c, w, x, y, z] = values;
            let shapes = &mut file.shapes;
            if !shapes.ellipsoid.get(tag).copied().unwrap_or(false) {
                return Err(l.wrong_at(words[0], format!("the section `Atoms` has no ellipsoid {}", words[0])));
            }
            if [a, b, c].iter().any(|d| *d <= 0.0) {
                return Err(l.wrong("the diameters of an ellipsoid must be positive"));
            }
            let norm = (w * w + x * x + y * y + z * z).sqrt();
            if norm == 0.0 {
                return Err(l.wrong("the quaternion of an ellipsoid must not be 0"));
            }
            let mass = file.state.mass[tag] * PI / 6.0 * a * b * c;
            file.state.mass[tag] = mass;
            shapes.quaternion[tag] = [x, y, z, w].map(|q| q / norm);
            shapes.inert[tag] = [b * b + c * c, a * a + c * c, a * a + b * b].map(|d| 0.05 * mass * d);
        }
        if n > 0 {
            l.warn(format!("the shapes of {n} ellipsoids are not read: potentials define shapes"));
        }
        Ok(())
    }

    /// Adds the arrays to the state; warns about dipole moments, of which only the direction is read.
    pub fn finish(self, l: &Lines, mut array: impl FnMut(&str, Array)) {
        if let Some([low, high]) = self.moments.filter(|m| *m != [1.0; 2]) {
            l.warn(format!("dipole moments from {low} to {high} are not read, only their directions (`orientation`)"));
        }
        let mut reals = |name: &str, width: u32, values: Vec<f64>| {
            if !values.is_empty() {
                array(name, Array { width, values: Values::Real(values) });
            }
        };
        reals("diameter", 1, self.diameter);
        reals("orientation", 3, self.orientation.into_flattened());
        reals("quaternion", 4, self.quaternion.into_flattened());
        reals("inert", 3, self.inert.into_flattened());
    }
}
