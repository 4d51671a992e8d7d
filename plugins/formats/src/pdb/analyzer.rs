//! The `Pdb` analyzer.

use crate::names::of_particles;
use crate::pdb::columns::Extra;
use crate::pdb::write::{DECIMAL, END, MAX_ATOMS, WriteOptions, model, state};
use crate::positions::check_rounding;
use galamost_plugin_api::prelude::*;
use galamost_text::{FrameFile, Shape, StateFile};

/// Writes a PDB file (wwPDB format 3.3), readable by MDAnalysis and OVITO: a trajectory of models, or, with `{step}` in
/// the name, a file for each state.
///
/// Lengths are written in Å; `scale` is the number of Å in a unit of length. The format has three decimals, so the
/// rounding error is at most 0.0005 Å. For units of a nanometer, use `scale: 10.0`. The box extends from 0 to L.
/// Coordinates that do not fit their columns (x below −999.999 or above 9999.999 Å) end the run with an error that
/// names the particle. Box lengths that do not fit are reported before the run. `unwrapped` writes unwrapped positions.
/// Atom names are type names of at most four characters. Occupancy is 1 and the temperature factor 0 unless `occupancy`
/// or `b_factor` is one of `Mass`, `Charge`, `Diameter`, `Body`, written with two decimals.
///
/// Each molecule is a residue. Its number n = molecule + 1 is written as chain letter n / 10,000 (A–Z, a–z, 0–9) and
/// residue n mod 10,000; 0 means no molecule. At most 619,999 molecules are possible; `molecules: false` omits them.
/// Atoms are numbered from 1, above 99,999 in hybrid-36 (A0000, A0001, …). Bonds are `CONECT` records, in a trajectory
/// inside each model, since bonds can change. To load bonds in OVITO, enable loading bonds from the file; the type
/// names appear as `Atom Name`. Some programs that read hybrid-36 do not support it in `CONECT` (MDAnalysis 2.10 cannot
/// open such a file), so above 99,999 particles bonds are only written with `bonds: true`.
///
/// Each frame is written in one piece. A killed run therefore leaves complete models, except possibly the last. A
/// resumed run truncates the file to its checkpoint.
///
/// ```ron
/// Pdb(every: 100, file: "trajectory.pdb", scale: 10.0, b_factor: Charge)
/// ```
#[component(Analyzer, "Pdb")]
#[derive(Debug, Params)]
pub struct WritePdb {
    #[param(flatten)]
    schedule: Schedule,
    /// Output file; `{step}` is replaced by the step.
    #[param(extensions = "pdb ent")]
    file: String,
    /// Å per unit of length.
    #[param(default = 1.0, above = 0.0)]
    scale: f64,
    /// Whether to write unwrapped positions.
    #[param(default = false)]
    unwrapped: bool,
    /// Whether to write molecules as residues.
    #[param(default = true)]
    molecules: bool,
    /// Whether to write bonds; default: up to 99,999 particles.
    bonds: Option<bool>,
    /// Property written as occupancy.
    occupancy: Option<Spanned<Extra>>,
    /// Property written as temperature factor.
    b_factor: Option<Spanned<Extra>>,
    #[param(skip)]
    system: SystemInfo,
    /// Number of models at the checkpoint that the run resumes from.
    #[param(skip)]
    kept: u64,
    #[param(skip)]
    written: Option<SharedOutput<Written>>,
    #[param(skip)]
    states: StateFile,
    #[param(skip)]
    frames: FrameFile,
}

/// What a trajectory contains.
#[derive(Debug, Default)]
struct Written {
    /// Number of models.
    models: u64,
    /// Saved length of the file without its END record.
    ended: Option<Vec<u8>>,
}

/// Returns whether a name fits its columns.
fn valid_name(name: &str) -> bool {
    (1..=4).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_graphic())
}

impl WritePdb {
    fn trajectory(&self) -> bool {
        !self.file.contains("{step}")
    }

    fn options(&self) -> WriteOptions {
        WriteOptions {
            scale: self.scale,
            unwrapped: self.unwrapped,
            molecules: self.molecules,
            bonds: self.bonds.unwrap_or(self.system.n <= DECIMAL),
            occupancy: self.occupancy.as_ref().map(|e| e.value),
            b_factor: self.b_factor.as_ref().map(|e| e.value),
        }
    }
}

impl Analyzer for WritePdb {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.schedule.bind(needs)?;
        needs.triclinic = true;
        needs.wants.particles = true;
        needs.wants.topology = true;
        let shape = Shape { length: system.box_length, tilt: system.tilt }.finite();
        let mut errors = Errors::default();
        if system.n > MAX_ATOMS {
            errors.push(InputError::new(format!(
                "a PDB file holds at most {MAX_ATOMS} atoms; the system has {} particles",
                system.n
            )));
        }
        for (axis, l) in ["x", "y", "z"].iter().zip(shape.lengths_and_cosines().0) {
            if l * self.scale >= 9999.9995 {
                errors.push(InputError::new(format!(
                    "the box length in {axis}, {l} × {} Å, exceeds the columns of a PDB file (9999.999); use a smaller `scale`",
                    self.scale
                )));
            }
        }
        if let Err(e) = check_rounding(system, 0.0005 / self.scale, "use a larger `scale`") {
            errors.push(e);
        }
        for extra in [&self.occupancy, &self.b_factor].into_iter().flatten() {
            if let Some(array) = extra.value.array().filter(|a| !system.has_array(a)) {
                errors.push(InputError::at(extra.at, format!("particles have no {array}")));
            }
        }
        let named = of_particles(system);
        self.system = system.clone();
        let bound = if self.trajectory() {
            self.frames.bind(&named, needs, &self.file, valid_name)
        } else {
            self.states.bind(&named, needs, &self.file, valid_name)
        };
        if let Err(Error::Input(more)) = bound {
            more.into_iter().for_each(|e| errors.push(e));
        }
        errors.into_result(Some(()))
    }
    fn start(&mut self, _: Host) -> Result<()> {
        if self.trajectory() {
            self.written = None;
            self.frames.start()?;
            // if the user removed the old file, the numbers of models start again
            let models = if self.frames.is_empty() { 0 } else { self.kept };
            let (system, path) = (&self.system, self.system.path(&self.file));
            self.written = Some(SharedOutput::open(system, &path, || Ok(Written { models, ended: None }))?);
        }
        Ok(())
    }
    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let s = frame.snapshot(&self.system);
        if !self.trajectory() {
            return self.states.write(s.step, &state(&s, self.options()).map_err(Error::input)?);
        }
        let Some(written) = &self.written else { return Err(Error::Run("Pdb: `start` was not called".into())) };
        let mut written = written.lock();
        self.frames.append(&model(&s, self.options(), written.models).map_err(Error::input)?)?;
        written.models += 1;
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        let Some(written) = &self.written else { return Ok(()) };
        let mut written = written.lock();
        if written.models > 0 && written.ended.is_none() {
            written.ended = Some(self.frames.save()?);
            self.frames.append(END)?;
        }
        Ok(())
    }
    fn save(&mut self) -> Result<Vec<u8>> {
        if !self.trajectory() {
            return Ok(vec![]);
        }
        // 8 bytes for the length of the file, then the number of models; a resumed run removes END
        let Some(written) = &self.written else { return Ok(vec![]) };
        let written = written.lock();
        let length = match &written.ended {
            Some(length) => length.clone(),
            None => self.frames.save()?,
        };
        Ok([length, written.models.to_le_bytes().to_vec()].concat())
    }
    fn load(&mut self, saved: &[u8]) -> Result<()> {
        if saved.is_empty() && !self.trajectory() {
            return Ok(());
        }
        let wrong = || Error::Run("the checkpoint belongs to another pipeline".into());
        let (length, models) = saved.split_at_checked(8).ok_or_else(wrong)?;
        self.kept = u64::from_le_bytes(models.try_into().map_err(|_| wrong())?);
        self.frames.load(length)?;
        Ok(())
    }
}
