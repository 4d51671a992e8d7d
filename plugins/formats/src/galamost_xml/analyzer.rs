//! The `GalamostXml` analyzer.

use crate::galamost_xml::write::{Style, write};
use galamost_plugin_api::prelude::*;
use galamost_text::replace;
use std::path::PathBuf;

/// Writes the state as a `galamost_xml` file (version 1.3).
///
/// `{step}` in the file name stands for the step with 10 digits: `out.{step}.xml` gives `out.0000010000.xml`. Without
/// it, the file is replaced each time. A file is always complete: it is written under a temporary name, synced to disk,
/// and renamed. The format has no triclinic boxes; the check refuses them.
///
/// Nodes: `position`, `image`, `velocity`, `mass`, `type`, then, if the system has them, `charge`, `diameter`, `body`,
/// `molecule`, `orientation`, `quaternion`, `rotation`, `inert`, `h_init`, `h_cris`, then `bond`, `angle`, `dihedral`,
/// `improper`.
/// Particles keep the order of the initial state. Rounded positions stay in the box. If the rows do not use all types in the order of their numbers, the
/// attribute `types` lists them (`types="A B C"`), so that reading the file gives the same type numbers.
///
/// ```ron
/// GalamostXml(every: 100, file: "state.{step}.xml")
/// ```
#[component(Analyzer, "GalamostXml")]
#[derive(Debug, Params)]
pub struct WriteGalamostXml {
    #[param(flatten)]
    schedule: Schedule,
    /// Output file; `{step}` is replaced by the step.
    #[param(extensions = "xml galamost_xml")]
    file: String,
    /// Whether to write velocities.
    #[param(default = true)]
    velocity: bool,
    /// Decimal places of real numbers. Numbers that would keep fewer than half of these digits have an exponent, except in
    /// positions and orientations. With 17, all numbers are exact, with as many digits as needed.
    #[param(default = 10, at_least = 1.0, at_most = 17.0)]
    digits: u32,
    #[param(skip)]
    system: SystemInfo,
}

impl WriteGalamostXml {
    /// Returns the file name for a step.
    fn path(&self, step: u64) -> PathBuf {
        self.system.path(&self.file.replace("{step}", &format!("{step:010}")))
    }
}

impl Analyzer for WriteGalamostXml {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.schedule.bind(needs)?;
        needs.wants.particles = true;
        needs.wants.topology = true;
        self.system = system.clone();
        let mut errors: Vec<InputError> = vec![];
        for name in system.type_names() {
            // rows are split at blanks, and the other characters are markup
            if name.is_empty() || name.contains(|c: char| c.is_whitespace() || "<>&".contains(c)) {
                errors.push(InputError::new(format!("the type name \"{name}\" cannot be written in this format")));
            }
        }
        needs.output(system, &self.file, OutputKind::State);
        if errors.is_empty() { Ok(()) } else { Err(Error::Input(errors)) }
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let path = self.path(frame.step());
        let style = Style { digits: self.digits as usize, velocity: self.velocity };
        let snapshot = frame.snapshot(&self.system);
        replace(&path, |out| write(out, &snapshot, style)).map_err(|e| Error::io(&path, e))
    }
}
