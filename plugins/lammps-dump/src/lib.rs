//! Reads text dumps of LAMMPS: `read.rs` takes a frame out of a file, here it becomes the component.

mod read;

use galamost_plugin_api::prelude::*;
use read::Choice;

galamost_plugin_api::plugin!();

/// Reads a state from a frame of a text dump of LAMMPS (`dump atom`, `dump custom`), whose atoms may stand in any order.
///
/// Taken are the time step, the box, and of each atom `id`, `type` (or `element`), its place as `x y z`, `xs ys zs`, `xu yu zu` or
/// `xsu ysu zsu`, images `ix iy iz`, velocities `vx vy vz`, `mass`, `q` (as `charge`), `diameter` and `mol` (as `molecule`); other columns
/// are passed over. Particles are numbered in the order of their ids. The box must be periodic and have right angles; its middle
/// becomes 0. A dump has no bonds.
///
/// ```ron
/// LammpsDump(file: "melt.dump", frame: -1, types: ["A", "B"])
/// ```
#[component(Generator, "LammpsDump")]
#[derive(Clone, Debug, Params)]
pub struct LammpsDump {
    /// File to read.
    file: String,
    /// Frame, from 0; a negative number counts from the end, −1 is the last one.
    #[param(default = -1)]
    frame: i64,
    /// Names of the types 1, 2, …; without it their numbers are their names.
    types: Option<Vec<String>>,
    /// Masses of the types 1, 2, …, where the dump has none; without it they are 1.
    masses: Option<Vec<f64>>,
    /// 3, or 2: then z is passed over.
    #[param(default = 3, at_least = 2, at_most = 3)]
    dimensions: u32,
}

impl Generator for LammpsDump {
    fn generate(&mut self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()> {
        if !snapshot.is_empty() {
            return Err(Error::input("LammpsDump reads a whole state: it must be the first generator"));
        }
        let path = context.path(&self.file);
        let file =
            std::fs::File::open(&path).map_err(|e| InputError::in_file(&path, None, format!("cannot be read: {e}")))?;
        let choice = Choice {
            frame: self.frame,
            types: self.types.as_deref(),
            masses: self.masses.as_deref(),
            dimensions: self.dimensions,
        };
        *snapshot = read::read(std::io::BufReader::new(file), choice).map_err(|e| {
            let at = e.line.map(|line| galamost_plugin_api::error::Position { line, column: 1 });
            InputError::in_file(&path, at, e.message)
        })?;
        Ok(())
    }
}
