//! The `Dcd` generator.

use crate::dcd::layer::Layer;
use crate::positions;
use galamost_plugin_api::prelude::*;

/// Reads positions, box, and step of a frame of a DCD file (CHARMM, NAMD, LAMMPS, OpenMM, this program).
///
/// A DCD file has neither types nor bonds. An earlier generator must create the particles, in the same number and
/// order; this generator moves them to the positions of the frame. Their velocities become 0, since they do not belong
/// to this frame.
///
/// If the file has no box, the existing one is kept. Positions are single precision.
/// Particles outside the box, as in unwrapped trajectories, are wrapped, and their images count the shifts. Files of
/// either byte order are read, with 32-bit records and without fixed atoms. An incomplete last frame, as left by a
/// killed run, is ignored with a warning, and so is a number of frames in the header that does not fit.
///
/// ```ron
/// Dcd(file: "trajectory.dcd", frame: -1)
/// ```
#[component(Generator, "Dcd")]
#[derive(Debug, Params)]
pub struct ReadDcd {
    /// Input file.
    #[param(extensions = "dcd")]
    file: String,
    /// Step at which the run starts; default: that of the file.
    step: Option<u64>,
    /// Frame number from 0; negative numbers count from the end, −1 is the last frame.
    #[param(default = -1)]
    frame: i64,
    #[param(skip)]
    layer: Option<Layer>,
}

impl ReadDcd {
    fn open(&mut self, context: &GeneratorContext) -> Result<&mut Layer> {
        let path = context.path(&self.file);
        if self.layer.is_none() {
            self.layer = Some(Layer::open(&path).map_err(|m| InputError::in_file(&path, None, m))?);
        }
        self.layer.as_mut().ok_or_else(|| Error::Run("the file is not open".into()))
    }

    fn state(&mut self, context: &GeneratorContext, number: i64, s: &mut Snapshot) -> Result<()> {
        let path = context.path(&self.file);
        let wrong = |message: String| Error::from(InputError::in_file(&path, None, message));
        positions::require_particles("DCD", s).map_err(wrong)?;
        let layer = self.open(context)?;
        positions::require_count(layer.head.n, s.len() as u64).map_err(wrong)?;
        let k = positions::frame_number(number, layer.frames()).map_err(wrong)?;
        let frame = layer.frame(k).map_err(wrong)?;
        let step = k.saturating_mul(layer.head.every).saturating_add(layer.head.first);
        let position = frame.position.iter().map(|p| p.map(f64::from));
        positions::place(s, frame.shape, true, position, None).map_err(wrong)?;
        s.step = self.step.unwrap_or(step);
        Ok(())
    }

    fn count(&mut self, context: &GeneratorContext) -> Result<u64> {
        Ok(self.open(context)?.frames())
    }

    fn notices(&self) -> Vec<String> {
        let notice = self.layer.as_ref().and_then(Layer::mismatch);
        notice.map(|what| format!("{}: {what}", self.file)).into_iter().collect()
    }
}

crate::frames::frame_generator!(ReadDcd);
