//! The generator.

use crate::galamost_xml::read::read;
use galamost_plugin_api::prelude::*;

/// Reads a state from a `galamost_xml` file (version 1.3): the format that PyGAMD, GALAMOST and their tools write.
///
/// The box, positions and types must be there. Velocities are 0, masses 1 and images 0 unless the file has them.
/// `charge`, `diameter`, `body`, `molecule`, `orientation`, `quaternion` (x y z w), `rotation`, `inert`, `h_init` and
/// `h_cris` become arrays of the same name. `bond`, `angle` and `dihedral` rows are a type and particles counted from
/// 0. `time_step` is the step that the run starts at. With `dimensions="2"`, `lz` and all z must be 0.
///
/// Particles up to 10⁻⁶ L outside of the box, where printed digits may put them, are wrapped. The blocks `Patches`,
/// `PatchParams` and `Aspheres` describe potentials, not a state: they are passed over, and such potentials get their
/// parameters from the pipeline. The file may be compressed (.xz, .gz).
///
/// ```ron
/// GalamostXml(file: "initial.xml")
/// ```
#[component(Generator, "GalamostXml")]
#[derive(Clone, Debug, Params)]
pub struct ReadGalamostXml {
    /// File to read.
    #[param(extensions = "xml galamost_xml")]
    file: String,
}

impl Generator for ReadGalamostXml {
    fn generate(&mut self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()> {
        crate::must_be_first("GalamostXml", snapshot)?;
        *snapshot = read(&context.path(&self.file))?;
        Ok(())
    }
}
