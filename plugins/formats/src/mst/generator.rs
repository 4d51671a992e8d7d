//! The `Mst` generator.

use crate::mst::read::{Part, head, read, skip};
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
/// The section `invariant_data` of a trajectory applies to all frames; sections of a frame override it. `rotangle`,
/// `force`, `virial`, `potential`, `vsite`, `patch`, `patch_param`, `asphere`, and `constraint` are ignored. Particles
/// outside the box are wrapped, and their images count the shifts. An incomplete last frame, as left by a killed run,
/// is ignored. The file may be compressed (.xz, .gz).
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
    /// Frame number from 0; negative numbers count from the end, −1 is the last frame.
    #[param(default = -1)]
    frame: i64,
    #[param(skip)]
    open: Option<(Trajectory, Part)>,
}

impl ReadMst {
    fn state(&mut self, context: &GeneratorContext, number: i64, snapshot: &mut Snapshot) -> Result<()> {
        crate::require_empty("Mst", snapshot)?;
        let (trajectory, part) = self.open(context)?;
        *snapshot = read(trajectory, part, number)?;
        Ok(())
    }

    fn open(&mut self, context: &GeneratorContext) -> Result<&mut (Trajectory, Part)> {
        if self.open.is_none() {
            let mut trajectory = Trajectory::open(&context.path(&self.file), skip)?;
            let part = head(&mut trajectory)?;
            self.open = Some((trajectory, part));
        }
        self.open.as_mut().ok_or_else(|| Error::Run("the file is not open".into()))
    }
}

impl Generator for ReadMst {
    fn generate(&mut self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()> {
        self.state(context, self.frame, snapshot)
    }
    fn frames(&mut self, context: &GeneratorContext) -> Result<Option<u64>> {
        Ok(Some(self.open(context)?.0.count()?))
    }
    fn frame(&mut self, context: &GeneratorContext, number: u64, snapshot: &mut Snapshot) -> Result<()> {
        self.state(context, number as i64, snapshot)
    }
}
