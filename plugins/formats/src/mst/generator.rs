//! The generator.

use crate::mst::read::{Part, head, read, skip};
use galamost_plugin_api::prelude::*;
use galamost_text::Trajectory;

/// Reads a state from an MST file (`mst_version 1.0`), the format of PyGAMD: a file of one state, or a frame of a trajectory.
///
/// Sections: `num_particles`, `timestep`, `dimension`, `box`, `position`, `image`, `velocity`, `type`, `mass`, then `charge`, `diameter`,
/// `body`, `molecule`, `orientation`, `quaternion` (x y z w), `rotation`, `inert`, `init` and `cris` (the arrays `h_init`, `h_cris`), then
/// `bond`, `angle`, `dihedral` as a type and particles counted from 0. A trajectory has what does not change behind
/// `invariant_data`, once; what a frame has as well counts for that frame. Velocities are 0, masses 1 and images 0 unless the file
/// has them. `rotangle`, `force`, `virial`, `potential`, `vsite`, `patch`, `patch_param` and `asphere` are passed over. Particles outside
/// of the box are brought back, and counted in their images. A file that ends in the midst of a frame, as a killed run leaves it,
/// is read up to the frame before. It may be compressed (.xz, .gz).
///
/// ```ron
/// Mst(file: "melt.mst")
/// ```
#[component(Generator, "Mst")]
#[derive(Debug, Params)]
pub struct ReadMst {
    /// File to read.
    #[param(extensions = "mst")]
    file: String,
    /// Frame, from 0; a negative number counts from the end, −1 is the last one.
    #[param(default = -1)]
    frame: i64,
    #[param(skip)]
    open: Option<(Trajectory, Part)>,
}

impl ReadMst {
    fn state(&mut self, context: &GeneratorContext, number: i64, snapshot: &mut Snapshot) -> Result<()> {
        crate::must_be_first("Mst", snapshot)?;
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
