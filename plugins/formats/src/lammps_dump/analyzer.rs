//! The analyzer.

use crate::lammps_dump::write::{Column, array_of, column, frame};
use galamost_plugin_api::prelude::*;
use galamost_text::FrameFile;

/// Writes a text dump as LAMMPS does (`dump custom`), one frame every `every` steps.
///
/// The columns are `id` (from 1), `mol` if the system has molecules (from 1, 0 for none), `type` (from 1), `element` (the type's name),
/// `x y z` (the box is centered at 0), `ix iy iz`, `q` and `diameter` if the system has them; or those that `columns` names, out of these
/// and `xu yu zu` (unwrapped), `xs ys zs` and `xsu ysu zsu` (in shares of the box, from 0), `vx vy vz`, `mass` and `radius`. Numbers
/// have as many digits as it takes to read the same number back, unless `digits` asks for fewer. Bonds have no place in a dump.
///
/// Each frame is handed to the system as a whole, so a run that is killed leaves a file of whole frames, but for the one that was
/// being written. A resumed run cuts the file to its checkpoint. A run that is not resumed overwrites a file of the same name.
///
/// ```ron
/// LammpsDump(every: 100, file: "trajectory.dump", columns: ["id", "type", "xu", "yu", "zu"])
/// ```
#[component(Analyzer, "LammpsDump")]
#[derive(Debug, Params)]
pub struct WriteDump {
    /// Steps from one frame to the next.
    #[param(at_least = 1.0)]
    every: u64,
    /// File to write.
    #[param(extensions = "dump lammpstrj lammpsdump")]
    file: String,
    /// Columns, in their order.
    columns: Option<Spanned<Vec<String>>>,
    /// Digits behind the point, of numbers that are not whole.
    #[param(at_most = 17.0)]
    digits: Option<u32>,
    #[param(skip)]
    system: SystemInfo,
    #[param(skip)]
    chosen: Vec<Column>,
    #[param(skip)]
    out: FrameFile,
}

impl Analyzer for WriteDump {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        needs.wants.particles = true;
        self.system = system.clone();
        let mut errors = Errors::default();
        self.chosen.clear();
        match &self.columns {
            Some(names) => {
                for name in &names.value {
                    let chosen = column(name).map_err(|m| InputError::at(names.at, m));
                    let Some(c) = errors.absorb(chosen) else { continue };
                    if let Some(array) = array_of(c).filter(|a| !system.has_array(a)) {
                        errors.push(InputError::at(names.at, format!("column `{name}`: particles have no {array}")));
                    }
                    self.chosen.push(c);
                }
                if names.value.is_empty() {
                    errors.push(InputError::at(names.at, "no columns"));
                }
            }
            None => {
                let all = "id mol type element x y z ix iy iz q diameter".split(' ').filter_map(|n| column(n).ok());
                self.chosen = all.filter(|c| array_of(*c).is_none_or(|a| system.has_array(a))).collect();
            }
        }
        if let Err(Error::Input(more)) =
            self.out.bind(system, &self.file, |name| !name.is_empty() && !name.contains(char::is_whitespace))
        {
            more.into_iter().for_each(|e| errors.push(e));
        }
        errors.into_result(Some(()))
    }
    fn start(&mut self, _: Host) -> Result<()> {
        self.out.start()
    }
    fn analyze(&mut self, f: &Frame<'_>) -> Result<()> {
        self.out.append(&frame(&f.snapshot(&self.system), &self.chosen, self.digits))
    }
    fn save(&mut self) -> Result<Vec<u8>> {
        self.out.save()
    }
    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.out.load(state);
        Ok(())
    }
}
