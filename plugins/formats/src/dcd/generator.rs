//! The generator.

use crate::dcd::layer::Layer;
use galamost_plugin_api::prelude::*;
use galamost_text::fold;

/// Reads places, box and step of a frame of a DCD file (CHARMM, NAMD, LAMMPS, OpenMM, this engine). Such a file has neither types nor
/// bonds: a generator before this one must have made the particles, in the same number and order, and they are put to the places
/// of the frame; their velocities become 0, since those belong to another time.
///
/// The box must have right angles; a file without a box leaves the one that is there. Places are single precision. Particles outside
/// of the box, as in unwrapped trajectories, are brought back, and the box lengths that this takes are their images. Files of either
/// order of bytes are read, with 32-bit records, without fixed atoms. A file that ends in the midst of a frame, as a killed run leaves
/// it, is read up to the frame before.
///
/// ```ron
/// Dcd(file: "trajectory.dcd", frame: -1)
/// ```
#[component(Generator, "Dcd")]
#[derive(Debug, Params)]
pub struct ReadDcd {
    /// File to read.
    #[param(extensions = "dcd")]
    file: String,
    /// Frame, from 0; a negative number counts from the end, −1 is the last one.
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
        if s.is_empty() {
            return Err(wrong("a DCD file has only places: a generator before must make the particles".into()));
        }
        let layer = self.open(context)?;
        if layer.head.n != s.len() as u64 {
            return Err(wrong(format!("has {} particles; those that are there are {}", layer.head.n, s.len())));
        }
        let frames = layer.frames();
        let place = if number < 0 { frames.checked_add_signed(number) } else { Some(number as u64) };
        let Some(k) = place.filter(|k| *k < frames) else {
            return Err(wrong(format!("there is no frame {number}: the file has {frames}")));
        };
        let frame = layer.frame(k).map_err(wrong)?;
        let head = &layer.head;
        s.step = k.saturating_mul(head.every).saturating_add(head.first);
        if let Some(length) = frame.length.filter(|l| l.iter().all(|x| *x > 0.0)) {
            (0..s.dimensions as usize).for_each(|axis| s.box_length[axis] = length[axis]);
        }
        for (tag, p) in frame.position.iter().enumerate() {
            for (axis, x) in p.iter().enumerate() {
                let flat = axis >= s.dimensions as usize;
                let x = if flat { 0.0 } else { f64::from(*x) };
                let folded = fold(x, if flat { 0.0 } else { s.box_length[axis] });
                (s.position[tag][axis], s.image[tag][axis]) =
                    folded.ok_or_else(|| wrong(format!("particle {tag} is too far outside of the box")))?;
            }
            s.velocity[tag] = [0.0; 3];
        }
        Ok(())
    }
}

impl Generator for ReadDcd {
    fn generate(&mut self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()> {
        self.state(context, self.frame, snapshot)
    }
    fn frames(&mut self, context: &GeneratorContext) -> Result<Option<u64>> {
        Ok(Some(self.open(context)?.frames()))
    }
    fn frame(&mut self, context: &GeneratorContext, number: u64, snapshot: &mut Snapshot) -> Result<()> {
        self.state(context, number as i64, snapshot)
    }
}
