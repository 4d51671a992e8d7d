//! The `ExtendedXyz` generator.

use crate::extended_xyz::read::{Choice, read, skip};
use crate::frames::TextFrames;
use crate::names::TypeNames;
use galamost_plugin_api::prelude::*;
use galamost_text::Trajectory;

/// Reads a state from a frame of an extended XYZ file, as written by ASE, OVITO, and this program.
///
/// The second line of a frame contains the box `Lattice="lx 0 0 xy ly 0 xz yz lz"` (`Origin` shifts it,
/// and its center becomes 0), the columns `Properties=species:S:1:pos:R:3:…`, and optionally `Timestep` and `pbc`. A
/// plain XYZ file needs `box_length`.
///
/// | column | becomes |
/// |---|---|
/// | `species` or `type` | type |
/// | `pos` | position; particles outside the box are wrapped, and their images count the shifts |
/// | `velo`, `vel`, or `velocities` | velocity |
/// | `mass` or `masses` | mass |
/// | `charge`, `charges`, or `initial_charges` | `charge` |
/// | `diameter`, or twice the `radius` | `diameter` |
/// | `orientation` (4 numbers) | `quaternion` x y z w |
/// | `axis` | `orientation` |
/// | `molecule`, `body`, `rotation`, `inert`, `h_init`, `h_cris` | array of the same name |
/// | `id` | order of the particles (default: order in the file) |
///
/// Other columns are not read; a warning lists them. Rows with more values than `Properties` names, or than a type and a position
/// without it, give a warning, too. The format has no bonds. An incomplete last frame, as left by a killed run, is
/// ignored with a warning.
/// The file may be compressed (.xz, .gz, .bz2, .zst).
///
/// ```ron
/// ExtendedXyz(file: "melt.xyz", frame: -1)
/// ```
#[component(Generator, "ExtendedXyz")]
#[derive(Debug, Params)]
pub struct ReadXyz {
    /// Input file.
    #[param(extensions = "xyz extxyz exyz")]
    file: String,
    /// Step at which the run starts; default: that of the file.
    step: Option<u64>,
    /// Frame number from 0; negative numbers count from the end, −1 is the last frame.
    #[param(default = -1)]
    frame: i64,
    /// Type names in the desired order; other types follow.
    #[param(default = vec![].into())]
    types: TypeNames,
    /// Box lengths, if the file has none.
    #[param(unit = "length", above = 0.0)]
    box_length: Option<[f64; 3]>,
    /// Number of dimensions, 3 or 2; 2 ignores z.
    #[param(default = 3, at_least = 2, at_most = 3)]
    dimensions: u32,
    #[param(skip)]
    open: TextFrames<()>,
}

impl ReadXyz {
    fn state(&mut self, context: &GeneratorContext, number: i64, snapshot: &mut Snapshot) -> Result<()> {
        crate::require_empty("ExtendedXyz", snapshot)?;
        let choice = Choice { types: self.types.0.clone(), length: self.box_length, flat: self.dimensions == 2 };
        *snapshot = read(self.open(context)?.0.frame(number)?, &choice)?;
        snapshot.step = self.step.unwrap_or(snapshot.step);
        Ok(())
    }

    fn open(&mut self, context: &GeneratorContext) -> Result<&mut (Trajectory, ())> {
        self.open.open(&context.path(&self.file), skip, |_| Ok(()))
    }

    fn count(&mut self, context: &GeneratorContext) -> Result<u64> {
        Ok(self.open(context)?.0.count()?)
    }

    fn notices(&self) -> Vec<String> {
        self.open.warnings()
    }
}

crate::frames::frame_generator!(ReadXyz);
