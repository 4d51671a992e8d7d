//! The `LammpsData` analyzer.

use crate::lammps_data::style::Style;
use crate::lammps_data::write::{WriteOptions, write};
use crate::names::of_particles;
use galamost_plugin_api::prelude::*;
use galamost_text::StateFile;

/// Writes the state as a LAMMPS data file, readable by `read_data`.
///
/// `{step}` in the file name stands for the step with 10 digits: `out.{step}.data` gives `out.0000010000.data`. Without
/// it, the file is replaced each time. A file is always complete: it is written under a temporary name, synced to disk,
/// and renamed.
///
/// | `atom_style` | chosen by default if the system has |
/// |---|---|
/// | `Full` | charges, and bonds, angles, dihedrals, impropers, or molecules |
/// | `Molecular` | bonds, angles, dihedrals, impropers, or molecules |
/// | `Charge` | charges |
/// | `Atomic` | none of these |
///
/// An explicit style omits what it cannot represent. All styles but `Sphere` have one mass for each type; if particles
/// of a type have different masses, the run ends with an error. It also does if a particle has no mass, such as a
/// virtual site, because LAMMPS does not allow it. Without an array `molecule`, particles that bonds connect are a molecule.
/// The box (centered at 0) and images are always written; angular velocities are not. By default, numbers have as many
/// digits as needed to read back the same number. Type names are comments in the section `Masses`. `labels` writes all
/// names, also those of bonds, as `Type Labels`, which programs before 2022 cannot read.
///
/// ```ron
/// LammpsData(every: 100, file: "state.{step}.data")
/// ```
#[component(Analyzer, "LammpsData")]
#[derive(Debug, Params)]
pub struct WriteData {
    #[param(flatten)]
    schedule: Schedule,
    /// Output file; `{step}` is replaced by the step.
    #[param(extensions = "data lmp lammps")]
    file: String,
    /// Atom style of the section `Atoms`; default: see above.
    atom_style: Option<Style>,
    /// Whether to write velocities.
    #[param(default = true)]
    velocity: bool,
    /// Whether to write type names as labels.
    #[param(default = false)]
    labels: bool,
    /// Decimal places of positions, velocities, and charges; default: as many as needed.
    #[param(at_most = 17.0)]
    digits: Option<u32>,
    #[param(skip)]
    system: SystemInfo,
    #[param(skip)]
    out: StateFile,
}

/// Returns whether a name is a single word without comment characters.
fn valid_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '#')
}

impl Analyzer for WriteData {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.schedule.bind(needs)?;
        needs.triclinic = true;
        needs.wants.particles = true;
        needs.wants.topology = true;
        if system.massless > 0 {
            let of_them = if system.massless == 1 { "particle has" } else { "particles have" };
            let message = format!(
                "{} {of_them} no mass, which LAMMPS does not allow; use another format, such as GalamostXml",
                system.massless
            );
            return Err(Error::input(message));
        }
        if self.labels {
            let bad = system.type_names().find(|n| n.starts_with(|c: char| c.is_ascii_digit() || c == '*'));
            if let Some(name) = bad {
                return Err(Error::input(format!(
                    "`{name}` is not a valid label: LAMMPS labels must not begin with a digit or *"
                )));
            }
        }
        let named = if self.labels { system.clone() } else { of_particles(system) };
        self.system = system.clone();
        self.out.bind(&named, needs, &self.file, valid_name)
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let s = frame.snapshot(&self.system);
        let links = LinkList::ALL.into_iter().any(|list| !s.links(list).1.is_empty());
        let has = |name: &str| s.arrays.contains_key(name);
        let style = self.atom_style.unwrap_or(match (links || has("molecule"), has("charge")) {
            (true, true) => Style::Full,
            (true, false) => Style::Molecular,
            (false, true) => Style::Charge,
            (false, false) => Style::Atomic,
        });
        let options = WriteOptions { style, velocity: self.velocity, labels: self.labels, digits: self.digits };
        let text = write(&s, options).map_err(Error::input)?;
        self.out.write(frame.step(), &text)
    }
}
