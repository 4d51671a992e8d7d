//! The analyzer.

use crate::lammps_data::style::Style;
use crate::lammps_data::write::{Form, write};
use galamost_plugin_api::prelude::*;
use galamost_text::StateFile;

/// Writes the whole state as a data file of LAMMPS every `every` steps, to be read there with `read_data`.
///
/// `{step}` in the name stands for the step with 10 digits: `out.{step}.data` gives `out.0000010000.data`. Without it the file is
/// written anew each time. A file of this name is always whole: it is written under another name, brought to the disk, and renamed.
///
/// Without `atom_style` it is what the system asks for: `Full` with charges and bonds, angles, dihedrals or molecules, `Molecular`
/// without charges, `Charge` with charges alone, else `Atomic`; a style that is given leaves out what it has no place for. All but
/// `Sphere` have one mass for a type: if particles of one type differ, the run ends with an error. Box (centered at 0), images and
/// velocities are there always (angular velocities are not). Numbers have as many digits as it takes to read the same number back,
/// unless `digits` asks for fewer. Names of types stand behind the masses as comments; with `labels` all names, also those of
/// bonds, are there as `Type Labels`, which programs before 2022 do not know.
///
/// ```ron
/// LammpsData(every: 100, file: "state.{step}.data")
/// ```
#[component(Analyzer, "LammpsData")]
#[derive(Debug, Params)]
pub struct WriteData {
    /// Steps from one file to the next.
    #[param(at_least = 1.0)]
    every: u64,
    /// File to write; `{step}` in it stands for the step.
    #[param(extensions = "data lmp lammps")]
    file: String,
    /// What stands in a row of `Atoms`.
    atom_style: Option<Style>,
    /// Whether velocities are written.
    #[param(default = true)]
    velocity: bool,
    /// Whether names of types are written as labels.
    #[param(default = false)]
    labels: bool,
    /// Digits behind the point, of places, velocities and charges.
    #[param(at_most = 17.0)]
    digits: Option<u32>,
    #[param(skip)]
    out: StateFile,
}

/// A word that does not look like the begin of a comment.
fn good(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '#')
}

impl Analyzer for WriteData {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        needs.wants.particles = true;
        needs.wants.topology = true;
        if self.labels {
            let names = [&system.types, &system.bond_types, &system.angle_types, &system.dihedral_types];
            let bad = names.into_iter().flatten().find(|n| n.starts_with(|c: char| c.is_ascii_digit() || c == '*'));
            if let Some(name) = bad {
                return Err(Error::input(format!(
                    "`{name}` is no label: LAMMPS takes none that begins with a digit or *"
                )));
            }
        }
        self.out.bind(system, &self.file, good)
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let s = frame.snapshot(self.out.system());
        let links = !(s.bond_types.is_empty() && s.angle_types.is_empty() && s.dihedral_types.is_empty());
        let has = |name: &str| s.arrays.contains_key(name);
        let style = self.atom_style.unwrap_or(match (links || has("molecule"), has("charge")) {
            (true, true) => Style::Full,
            (true, false) => Style::Molecular,
            (false, true) => Style::Charge,
            (false, false) => Style::Atomic,
        });
        let form = Form { style, velocity: self.velocity, labels: self.labels, digits: self.digits };
        let text = write(&s, form).map_err(Error::Run)?;
        self.out.write(frame.step(), &text)
    }
}
