//! The `Mst` generator.

use crate::frames::TextFrames;
use crate::mst::read::{Head, head, read, skip};
use galamost_plugin_api::prelude::*;
use galamost_text::Trajectory;

/// Reads a state from an MST file (`mst_version 1.0`, the format of PyGAMD): a single state, or a frame of a
/// trajectory.
///
/// | section | becomes |
/// |---|---|
/// | `num_particles`, `timestep`, `dimension`, `box`, `position`, `type` | the state |
/// | `velocity`, `mass`, `image` | the state; defaults: 0, 1, 0 |
/// | `charge`, `diameter`, `body`, `molecule`, `orientation`, `quaternion` (x y z w), `rotation`, `inert` | array of the same name |
/// | `init`, `cris` | `h_init`, `h_cris` |
/// | `bond`, `angle`, `dihedral` | topology; rows are a type and particles counted from 0 |
///
/// The section `invariant_data` of a trajectory applies to all frames; sections of a frame override it. A section that
/// is in neither of them is taken from the first frame, as in GSD, if the number of particles is the same; otherwise
/// it has its default. Every frame needs `position`. `rotangle`, `force`, `virial`, `potential`, `patch`,
/// `patch_param`, and `asphere` are ignored; `vsite` and `constraint` are ignored with a warning. Types are numbered
/// as listed after the keyword (`type # types: A B C`, `bond # types: …`), and otherwise in order of their first use.
/// Particles outside the box are wrapped, and their images count the shifts. An incomplete last frame, as left by a
/// killed run, is ignored with a warning. The file may be compressed (.xz, .gz, .bz2, .zst).
///
/// ```ron
/// Mst(file: "melt.mst")
/// ```
#[component(Generator, "Mst")]
#[derive(Debug, Params)]
pub struct ReadMst {
    /// Input file.
    #[param(extensions = "mst")]
    file: String,
    /// Step at which the run starts; default: that of the file.
    step: Option<u64>,
    /// Frame number from 0; negative numbers count from the end, −1 is the last frame.
    #[param(default = -1)]
    frame: i64,
    #[param(skip)]
    open: TextFrames<Head>,
}

impl ReadMst {
    fn state(&mut self, context: &GeneratorContext, number: i64, snapshot: &mut Snapshot) -> Result<()> {
        crate::require_empty("Mst", snapshot)?;
        let (trajectory, head) = self.open(context)?;
        *snapshot = read(trajectory, head, number)?;
        snapshot.step = self.step.unwrap_or(snapshot.step);
        Ok(())
    }

    fn open(&mut self, context: &GeneratorContext) -> Result<&mut (Trajectory, Head)> {
        self.open.open(&context.path(&self.file), skip, head)
    }

    fn count(&mut self, context: &GeneratorContext) -> Result<u64> {
        Ok(self.open(context)?.0.count()?)
    }

    fn notices(&self) -> Vec<String> {
        self.open.warnings()
    }
}

crate::frames::frame_generator!(ReadMst);
