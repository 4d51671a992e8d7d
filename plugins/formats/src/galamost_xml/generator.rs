//! The `GalamostXml` generator.

use crate::galamost_xml::read::read;
use galamost_plugin_api::prelude::*;

/// Reads a state from a `galamost_xml` file (version 1.3), the format of PyGAMD, GALAMOST, and their tools, or from a `hoomd_xml` file
/// with the same nodes.
///
/// | node or attribute | becomes |
/// |---|---|
/// | `time_step` | initial step |
/// | `box`, `position`, `type` | the state (required) |
/// | `velocity`, `mass`, `image` | the state; defaults: 0, 1, 0 |
/// | `charge`, `diameter`, `body`, `molecule`, `orientation`, `quaternion` (x y z w), `rotation`, `inert`, `h_init`, `h_cris` | array of the same name |
/// | `bond`, `angle`, `dihedral`, `improper` | topology; rows are a type and particles counted from 0 |
/// | `constraint` | bonds of the type `constraint-NAME`, for `Constraints` |
/// | `vsite` | impropers of the type `vsite-NAME`, of which the field `types` of `Sites` makes virtual sites |
///
/// Types are numbered in the order of the attribute `types` of `type`, `bond`, `angle`, `dihedral`, `improper`
/// (`types="A B C"`), and otherwise in order of their first use.
///
/// Runs use `quaternion` if a file has both `quaternion` and `orientation`, with a warning if they contradict each other.
///
/// With `dimensions="2"`, `lz` and all z must be 0. Particles up to 10⁻⁶ L outside the box, due to rounding of printed
/// digits, are wrapped. `Patches`, `PatchParams`, and `Aspheres` are ignored: they are parameters of potentials, which
/// the pipeline defines. The file may be compressed (.xz, .gz, .bz2, .zst).
///
/// ```ron
/// GalamostXml(file: "initial.xml")
/// ```
#[component(Generator, "GalamostXml")]
#[derive(Clone, Debug, Params)]
pub struct ReadGalamostXml {
    /// Input file.
    #[param(extensions = "xml galamost_xml")]
    file: String,
    /// Step at which the run starts; default: that of the file.
    step: Option<u64>,
}

impl Generator for ReadGalamostXml {
    fn generate(&mut self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()> {
        crate::require_empty("GalamostXml", snapshot)?;
        *snapshot = read(&context.path(&self.file))?;
        snapshot.step = self.step.unwrap_or(snapshot.step);
        Ok(())
    }
}
