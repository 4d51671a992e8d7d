//! Names of types that no particle or link of the initial state has.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::snapshot::intern;

/// Declares types by name, in this order behind those that are there: of particles, bonds, angles and dihedrals that come
/// into being only during the run. A name that is there already stays where it is.
///
/// Forces must have parameters for declared types as for all others.
///
/// ```ron
/// LinkTypes(particles: ["P"], bonds: ["A-P"], angles: ["A-P-A"], dihedrals: ["A-P-P-A"])
/// ```
#[component(Generator, "LinkTypes")]
#[derive(Clone, Debug, Params)]
pub struct LinkTypes {
    /// Particle types.
    #[param(default = vec![])]
    particles: Vec<String>,
    /// Bond types.
    #[param(default = vec![])]
    bonds: Vec<String>,
    /// Angle types.
    #[param(default = vec![])]
    angles: Vec<String>,
    /// Dihedral types.
    #[param(default = vec![])]
    dihedrals: Vec<String>,
}

impl Generator for LinkTypes {
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
