//! The `Gsd` generator.

use crate::gsd::layer::Layer;
use crate::gsd::read::{ignored, open, read};
use galamost_plugin_api::prelude::*;
use std::collections::BTreeSet;

/// Reads a state from a frame of a GSD file (schema hoomd 1 or 2), as written by HOOMD-blue, gsd, and this program.
///
/// It reads the step, the box, positions, images, velocities, types, masses, bonds, angles,
/// dihedrals, and impropers. If present, it also reads `charge`, `diameter`, `body`, `inert` (moment_inertia), `quaternion`
/// (orientation, reordered from w x y z to x y z w), and `angular_momentum` (angmom, converted to a vector in the space
/// frame). Most files hold single-precision numbers. Constraints and special pairs are not
/// read; a warning gives their numbers. Logged quantities (`log/…`) are not read.
///
/// ```ron
/// Gsd(file: "trajectory.gsd", frame: -1)
/// ```
#[component(Generator, "Gsd")]
#[derive(Debug, Params)]
pub struct ReadGsd {
    /// Input file.
    #[param(extensions = "gsd")]
    file: String,
    /// Step at which the run starts; default: that of the file.
    step: Option<u64>,
    /// Frame number from 0; negative numbers count from the end, −1 is the last frame.
    #[param(default = -1)]
    frame: i64,
    #[param(skip)]
    layer: Option<Layer>,
    /// Warnings about topology that is not read.
    #[param(skip)]
    ignored: BTreeSet<String>,
}

impl ReadGsd {
    /// Returns the file, which is opened on first use.
    fn layer(&mut self, path: &std::path::Path) -> Result<&Layer> {
        if self.layer.is_none() {
            self.layer = Some(open(path).map_err(|message| InputError::in_file(path, None, message))?);
        }
        self.layer.as_ref().ok_or_else(|| Error::Run("the file is not open".into()))
    }
    fn state(&mut self, context: &GeneratorContext, number: i64, snapshot: &mut Snapshot) -> Result<()> {
        crate::require_empty("Gsd", snapshot)?;
        let path = context.path(&self.file);
        let wrong = |message: String| InputError::in_file(&path, None, message);
        let layer = self.layer(&path)?;
        *snapshot = read(layer, number).map_err(wrong)?;
        let ignored = ignored(layer, number).map_err(wrong)?;
        self.ignored.extend(ignored.map(|what| wrong(what).to_string()));
        snapshot.step = self.step.unwrap_or(snapshot.step);
        Ok(())
    }

    fn count(&mut self, context: &GeneratorContext) -> Result<u64> {
        let path = context.path(&self.file);
        Ok(self.layer(&path)?.frames())
    }

    fn notices(&self) -> Vec<String> {
        self.ignored.iter().cloned().collect()
    }
}

crate::frames::frame_generator!(ReadGsd);
