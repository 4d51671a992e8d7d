//! The generator.

use crate::extended_xyz::read::{Choice, read, skip};
use galamost_plugin_api::prelude::*;
use galamost_text::Trajectory;

/// Reads a state from a frame of an extended XYZ file, as ASE, OVITO and this engine write them.
///
/// The second line of a frame has the box, `Lattice="lx 0 0 0 ly 0 0 0 lz"` (right angles only; its middle, from `Origin` on, becomes
/// 0), the columns, `Properties=species:S:1:pos:R:3:…`, and perhaps `Timestep` and `pbc`. Taken are `species` (or `type`), `pos`, `velo`
/// (or `vel`, `velocities`), `mass` (or `masses`), `charge` (or `charges`, `initial_charges`), `diameter` (or twice the `radius`),
/// `molecule`, `body`, `orientation` (as quaternion x y z w, if it has 4 numbers), `axis` (as the array `orientation`), `rotation`, `inert`,
/// `h_init`, `h_cris`; particles are numbered in the order of `id`, or else of the file. Other columns are passed over. Particles
/// outside of the box are brought back, and the box lengths that this takes are their images. There are no bonds. A plain XYZ file
/// can be read with `box_length`. A file that ends in the midst of a frame, as a killed run leaves it, is read up to the frame
/// before. It may be compressed (.xz, .gz).
///
/// ```ron
/// ExtendedXyz(file: "melt.xyz", frame: -1)
/// ```
#[component(Generator, "ExtendedXyz")]
#[derive(Debug, Params)]
pub struct ReadXyz {
    /// File to read.
    #[param(extensions = "xyz extxyz exyz")]
    file: String,
    /// Frame, from 0; a negative number counts from the end, −1 is the last one.
    #[param(default = -1)]
    frame: i64,
    /// Names of types in the order that they are to have; others come behind them.
    #[param(default = vec![])]
    types: Vec<String>,
    /// Box lengths, where the file has none.
    #[param(unit = "length", above = 0.0)]
    box_length: Option<[f64; 3]>,
    /// 3, or 2: then z is passed over.
    #[param(default = 3, at_least = 2, at_most = 3)]
    dimensions: u32,
    #[param(skip)]
    trajectory: Option<Trajectory>,
}

impl ReadXyz {
    fn state(&mut self, context: &GeneratorContext, number: i64, snapshot: &mut Snapshot) -> Result<()> {
        crate::must_be_first("ExtendedXyz", snapshot)?;
        let choice = Choice { types: self.types.clone(), length: self.box_length, flat: self.dimensions == 2 };
        *snapshot = read(self.open(context)?.frame(number)?, &choice)?;
        Ok(())
    }

    fn open(&mut self, context: &GeneratorContext) -> Result<&mut Trajectory> {
        if self.trajectory.is_none() {
            self.trajectory = Some(Trajectory::open(&context.path(&self.file), skip)?);
        }
        self.trajectory.as_mut().ok_or_else(|| Error::Run("the file is not open".into()))
    }
}

impl Generator for ReadXyz {
    fn generate(&mut self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()> {
        self.state(context, self.frame, snapshot)
    }
    fn frames(&mut self, context: &GeneratorContext) -> Result<Option<u64>> {
        Ok(Some(self.open(context)?.count()?))
    }
    fn frame(&mut self, context: &GeneratorContext, number: u64, snapshot: &mut Snapshot) -> Result<()> {
        self.state(context, number as i64, snapshot)
    }
}
