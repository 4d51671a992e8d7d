//! The analyzer.

use crate::pdb::columns::Extra;
use crate::pdb::write::{DECIMAL, END, Form, MOST, model, state};
use galamost_plugin_api::prelude::*;
use galamost_text::{FrameFile, StateFile};

/// Writes a PDB file (wwPDB format 3.3) every `every` steps, as MDAnalysis and OVITO read it: a trajectory of models, or, with `{step}`
/// in the name, a file for each state.
///
/// Lengths are written in Å, of which a unit of length has `scale`, with the three decimals of the format: places are rounded by 0.0005 Å
/// at most, so units of a nanometre want `scale: 10.0`. The box reaches from 0 to L. What does not fit its columns (x below −999.999 or
/// above 9999.999 Å) ends the run with an error that names the particle; a box that is too long is one of the check. With `unwrapped`
/// places are those without periodic boundaries. Names of atoms are those of types, of four characters at most. Occupancy is 1 and the
/// temperature factor 0 unless `occupancy` or `b_factor` is one of `Mass`, `Charge`, `Diameter`, `Body`, with two decimals.
///
/// A residue is a molecule: its number n = molecule + 1 is written as chain letter n / 10,000 (A–Z, a–z, 0–9) and residue n mod 10,000, and
/// 0 stands for none; there is room for 619,999, and `molecules: false` leaves them out. Atoms are numbered from 1, above 99,999 in
/// hybrid-36 (A0000, A0001, …). Bonds are `CONECT` records, in a trajectory inside of each model, since they may change. OVITO takes them
/// if it is told to load bonds from the file, and has the names of types as `Atom Name`. Programs that know hybrid-36 may not know it
/// in `CONECT` (MDAnalysis 2.10 opens no such file), so above 99,999 particles bonds are written only with `bonds: true`.
///
/// Each frame is handed to the system as a whole, so a run that is killed leaves a file of whole models, but for the one that was
/// being written. A resumed run cuts the file to its checkpoint. A run that is not resumed overwrites a file of the same name.
///
/// ```ron
/// Pdb(every: 100, file: "trajectory.pdb", scale: 10.0, b_factor: Charge)
/// ```
#[component(Analyzer, "Pdb")]
#[derive(Debug, Params)]
pub struct WritePdb {
    /// Steps from one frame to the next.
    #[param(at_least = 1.0)]
    every: u64,
    /// File to write; `{step}` in it stands for the step.
    #[param(extensions = "pdb ent")]
    file: String,
    /// Å in a unit of length.
    #[param(default = 1.0, above = 0.0)]
    scale: f64,
    /// Positions without periodic boundaries.
    #[param(default = false)]
    unwrapped: bool,
    /// Whether molecules are written as residues.
    #[param(default = true)]
    molecules: bool,
    /// Whether bonds are written; by default up to 99,999 particles.
    bonds: Option<bool>,
    /// What is written as occupancy.
    occupancy: Option<Spanned<Extra>>,
    /// What is written as temperature factor.
    b_factor: Option<Spanned<Extra>>,
    /// Models there are.
    #[param(skip)]
    models: u64,
    /// The length of the file before its END.
    #[param(skip)]
    ended: Option<Vec<u8>>,
    #[param(skip)]
    states: StateFile,
    #[param(skip)]
    frames: FrameFile,
}

/// A name that fits its columns.
fn good(name: &str) -> bool {
    (1..=4).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_graphic())
}

impl WritePdb {
    fn trajectory(&self) -> bool {
        !self.file.contains("{step}")
    }

    fn form(&self) -> Form {
        Form {
            scale: self.scale,
            unwrapped: self.unwrapped,
            molecules: self.molecules,
            bonds: self.bonds.unwrap_or(self.states.system().n <= DECIMAL),
            occupancy: self.occupancy.as_ref().map(|e| e.value),
            b_factor: self.b_factor.as_ref().map(|e| e.value),
        }
    }
}

impl Analyzer for WritePdb {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        needs.wants.particles = true;
        needs.wants.topology = true;
        let mut errors = Errors::default();
        if system.n > MOST {
            errors.push(InputError::new(format!(
                "a PDB file has at most {MOST} atoms; there are {} particles",
                system.n
            )));
        }
        for (axis, l) in ["x", "y", "z"].iter().zip(system.box_length) {
            if l * self.scale >= 9999.9995 {
                errors.push(InputError::new(format!(
                    "the box length in {axis}, {l} × {} Å, is more than the columns of a PDB file hold (9999.999); choose a smaller `scale`",
                    self.scale
                )));
            }
        }
        for extra in [&self.occupancy, &self.b_factor].into_iter().flatten() {
            if let Some(array) = extra.value.array().filter(|a| !system.has_array(a)) {
                errors.push(InputError::at(extra.at, format!("particles have no {array}")));
            }
        }
        // of the names only those of particles are written
        let mut named = system.clone();
        named.bond_types.clear();
        named.angle_types.clear();
        named.dihedral_types.clear();
        let mut file = || {
            self.frames.bind(&named, &self.file.replace("{step}", "step"), good)?;
            self.states.bind(system, &self.file, |_| true)
        };
        if let Err(Error::Input(more)) = file() {
            more.into_iter().for_each(|e| errors.push(e));
        }
        errors.into_result(Some(()))
    }
    fn start(&mut self, _: Host) -> Result<()> {
        if self.trajectory() {
            self.frames.start()?;
            if self.frames.is_empty() {
                // the user moved the old file away: the new one begins with everything
                self.models = 0;
            }
        }
        Ok(())
    }
    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let s = frame.snapshot(self.states.system());
        if !self.trajectory() {
            return self.states.write(s.step, &state(&s, self.form()).map_err(Error::Run)?);
        }
        self.frames.append(&model(&s, self.form(), self.models).map_err(Error::Run)?)?;
        self.models += 1;
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        if self.trajectory() && self.models > 0 {
            self.ended = Some(self.frames.save()?);
            self.frames.append(END)?;
        }
        Ok(())
    }
    fn save(&mut self) -> Result<Vec<u8>> {
        if !self.trajectory() {
            return Ok(vec![]);
        }
        // the length of the file, 8 bytes, and the number of its models; a run that goes on takes the END away
        let length = match &self.ended {
            Some(length) => length.clone(),
            None => self.frames.save()?,
        };
        Ok([length, self.models.to_le_bytes().to_vec()].concat())
    }
    fn load(&mut self, saved: &[u8]) -> Result<()> {
        if saved.is_empty() && !self.trajectory() {
            return Ok(());
        }
        let wrong = || Error::Run("the checkpoint belongs to another pipeline".into());
        let (length, models) = saved.split_at_checked(8).ok_or_else(wrong)?;
        self.models = u64::from_le_bytes(models.try_into().map_err(|_| wrong())?);
        self.frames.load(length);
        Ok(())
    }
}
