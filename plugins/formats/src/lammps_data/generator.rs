//! The `LammpsData` generator.

use crate::lammps_data::read::{Choice, read};
use crate::lammps_data::style::Styles;
use crate::names::TypeNames;
use galamost_plugin_api::prelude::*;

/// Reads a state from a LAMMPS data file, as written by `write_data`, moltemplate, topotools, and many builders.
///
/// | section | becomes |
/// |---|---|
/// | header | box, with `xy xz yz` if triclinic (its center becomes 0); `timestep = N` in the first line is the initial step |
/// | `Masses` | masses; default: 1, with a warning |
/// | `Atoms` | positions, images, types; charges (`charge`), molecules (`molecule`, LAMMPS's 1 is 0, and 0, no molecule, is −1) |
/// | `Atoms` of style `sphere` | also `diameter` d and the mass ρ π d³/6 (ρ if d = 0) |
/// | `Atoms` of style `ellipsoid`, `Ellipsoids` | `quaternion`, `inert` (moments of inertia), masses from densities |
/// | `Atoms` of style `dipole` | charges, and the directions of the dipoles as `orientation` |
/// | `Velocities` | velocities |
/// | `Bonds`, `Angles`, `Dihedrals`, `Impropers` | topology |
///
/// Coefficients of potentials are ignored: the pipeline defines potentials. Angular velocities are not
/// read; a warning gives their number. The atom style is given after `Atoms #`. Without it, the style is the only one that fits the columns; if several fit, set
/// `atom_style`. For the style `hybrid` list its sub-styles: `atom_style: [Sphere, Charge]`. Particles are numbered in the order of their ids.
///
/// Particle types are named by `types`, by `Atom Type Labels`, by the comments in `Masses` if each is a unique single
/// word, or by their numbers. Types of bonds, angles, dihedrals, and impropers are named by `bond_types` etc., by labels, or by
/// their numbers. The file may be compressed (.xz, .gz, .bz2, .zst).
///
/// ```ron
/// LammpsData(file: "melt.data", types: ["A", "B"])
/// ```
#[component(Generator, "LammpsData")]
#[derive(Clone, Debug, Params)]
pub struct ReadData {
    /// Input file.
    #[param(extensions = "data lmp lammps")]
    file: String,
    /// Step at which the run starts; default: that of the file.
    step: Option<u64>,
    /// Atom style, if the file does not specify it.
    atom_style: Option<Styles>,
    /// Names of the particle types 1, 2, …
    types: Option<TypeNames>,
    /// Names of the bond types 1, 2, …
    bond_types: Option<TypeNames>,
    /// Names of the angle types 1, 2, …
    angle_types: Option<TypeNames>,
    /// Names of the dihedral types 1, 2, …
    dihedral_types: Option<TypeNames>,
    /// Names of the improper types 1, 2, …
    improper_types: Option<TypeNames>,
    /// Number of dimensions, 3 or 2; 2 ignores z.
    #[param(default = 3, at_least = 2, at_most = 3)]
    dimensions: u32,
    #[param(skip)]
    warnings: Vec<String>,
}

impl Generator for ReadData {
    const TRICLINIC: bool = true;

    fn generate(&mut self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()> {
        crate::require_empty("LammpsData", snapshot)?;
        let choice = Choice {
            style: self.atom_style.clone(),
            names: [&self.types, &self.bond_types, &self.angle_types, &self.dihedral_types, &self.improper_types]
                .map(|names| names.clone().map(|n| n.0)),
            flat: self.dimensions == 2,
        };
        (*snapshot, self.warnings) = read(&context.path(&self.file), &choice)?;
        snapshot.step = self.step.unwrap_or(snapshot.step);
        Ok(())
    }
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}
