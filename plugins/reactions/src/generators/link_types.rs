//! Declares types that no particle or link of the initial state has.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::snapshot::intern;

/// Declares types of particles, bonds, angles, and dihedrals that only appear during the run.
///
/// New names are appended to the existing types in the given order; existing names keep their position. Forces need
/// parameters for declared types as for all others.
///
/// ```ron
/// LinkTypes(particles: ["P"], bonds: ["A-P"], angles: ["A-P-A"], dihedrals: ["A-P-P-A"])
/// ```
#[component(Generator, "LinkTypes")]
#[derive(Clone, Debug, Params)]
pub struct LinkTypes {
    /// Names of particle types.
    #[param(default = vec![])]
    particles: Vec<String>,
    /// Names of bond types.
    #[param(default = vec![])]
    bonds: Vec<String>,
    /// Names of angle types.
    #[param(default = vec![])]
    angles: Vec<String>,
    /// Names of dihedral types.
    #[param(default = vec![])]
    dihedrals: Vec<String>,
}

impl Generator for LinkTypes {
    const TRICLINIC: bool = true;

    fn generate(&mut self, _: &GeneratorContext, s: &mut Snapshot) -> Result<()> {
        let lists = [
            (&self.particles, &mut s.types),
            (&self.bonds, &mut s.bond_types),
            (&self.angles, &mut s.angle_types),
            (&self.dihedrals, &mut s.dihedral_types),
        ];
        for (names, types) in lists {
            for name in names {
                intern(types, name);
            }
        }
        Ok(())
    }
}
