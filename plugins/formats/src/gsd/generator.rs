//! The generator.

use crate::gsd::layer::Layer;
use crate::gsd::read::{open, read};
use galamost_plugin_api::prelude::*;

/// Reads a state from a frame of a GSD file (schema hoomd 1 or 2), as HOOMD-blue, gsd and this engine write them.
///
/// Taken are the step, the box (only with right angles), positions, images, velocities, types, masses, bonds, angles
/// and dihedrals, and, if the file has them, `charge`, `diameter`, `body`, `inert` (moment_inertia) and `quaternion`
/// (orientation, turned from w x y z to x y z w) with `angular_momentum` (angmom, turned into the vector in the frame of
/// space). Numbers of most such files are single precision. Impropers, constraints and special pairs are passed over.
///
/// ```ron
/// Gsd(file: "trajectory.gsd", frame: -1)
/// ```
#[component(Generator, "Gsd")]
#[derive(Debug, Params)]
pub struct ReadGsd {
    /// File to read.
    #[param(extensions = "gsd")]
    file: String,
    /// Frame, from 0; a negative number counts from the end, −1 is the last one.
    #[param(default = -1)]
    frame: i64,
    #[param(skip)]
    layer: Option<Layer>,
}

impl ReadGsd {
    /// The file, opened once.
    fn layer(&mut self, path: &std::path::Path) -> Result<&Layer> {
        if self.layer.is_none() {
            self.layer = Some(open(path).map_err(|message| InputError::in_file(path, None, message))?);
        }
        self.layer.as_ref().ok_or_else(|| Error::Run("the file is not open".into()))
    }
    fn state(&mut self, context: &GeneratorContext, number: i64, snapshot: &mut Snapshot) -> Result<()> {
        crate::must_be_first("Gsd", snapshot)?;
        let path = context.path(&self.file);
        let state = read(self.layer(&path)?, number);
        *snapshot = state.map_err(|message| InputError::in_file(&path, None, message))?;
        Ok(())
    }
}

impl Generator for ReadGsd {
    fn generate(&mut self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()> {
        self.state(context, self.frame, snapshot)
    }
    fn frames(&mut self, context: &GeneratorContext) -> Result<Option<u64>> {
        let path = context.path(&self.file);
        Ok(Some(self.layer(&path)?.frames()))
    }
    fn frame(&mut self, context: &GeneratorContext, number: u64, snapshot: &mut Snapshot) -> Result<()> {
        self.state(context, number as i64, snapshot)
    }
}
