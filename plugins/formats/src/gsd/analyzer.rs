//! The `Gsd` analyzer.

use crate::forces::Quantities;
use crate::gsd::write::{NAME_SIZE, Trajectory};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::resume::{check_exists, has_content};
use std::path::PathBuf;

/// Writes a GSD trajectory (schema hoomd 1.4), readable by OVITO, freud, and gsd.
///
/// A frame contains the step, the box, positions, images, types, masses, bonds, angles, dihedrals, and impropers,
/// and, if the system has them, `charge`, `diameter`, `body`, `inert`, and orientations: the quaternion w x y z of `quaternion`, or
/// the rotation of z onto `orientation`. Numbers are single precision, as the schema prescribes. Data that equal those
/// of the first frame are not written again, so bonds that form only enlarge the frames that differ.
/// `log/potential_energy`, `log/kinetic_energy`, `log/pressure`, and `log/kT` are double precision.
///
/// Energies and virials of particles are defined on the page of `LammpsDump`.
///
/// The first frame and frames larger than 1 MiB are synced to disk at once. Other frames are synced with the first
/// frame that is written two seconds after the last sync, or when 1 MiB has accumulated. All frames are synced at
/// checkpoints, at the end of the run, and when `run()` of a simulation in Python returns. A killed run therefore leaves complete frames. If a frame cannot be written
/// (disk full), the run ends, and the file ends with the last synced frame. If earlier frames were not synced yet, they are
/// lost, and the run writes no checkpoint at this step: resume it from an earlier one. A resumed run removes frames that are
/// newer than its checkpoint.
///
/// ```ron
/// Gsd(every: 50, file: "trajectory.gsd", velocity: true)
/// ```
#[component(Analyzer, "Gsd")]
#[derive(Debug, Params)]
pub struct WriteGsd {
    #[param(flatten)]
    schedule: Schedule,
    /// Output file.
    #[param(extensions = "gsd")]
    file: String,
    /// Whether to write velocities, and angular momenta (angmom) of particles with orientations.
    #[param(default = false)]
    velocity: bool,
    /// Whether to write forces and energies of the particles (`log/particles/force`, `log/particles/energy`, in double
    /// precision).
    #[param(default = false)]
    forces: bool,
    /// Whether to write torques of the particles in the lab frame (`log/particles/torque`).
    #[param(default = false)]
    torques: bool,
    /// Whether to write virials of the particles (`log/particles/virial`: xx, xy, xz, yy, yz, zz).
    #[param(default = false)]
    virials: bool,
    /// Whether to write energies, pressure, and kT.
    #[param(default = true)]
    log: bool,
    #[param(skip)]
    system: SystemInfo,
    #[param(skip)]
    path: PathBuf,
    /// Number of frames at the checkpoint that the run resumes from.
    #[param(skip)]
    kept: Option<u64>,
    #[param(skip)]
    trajectory: Option<SharedOutput<Trajectory>>,
}

/// First bytes of the analyzer's state in checkpoints.
const STATE: &[u8; 8] = b"gsd\0\0\0\0\x01";

impl WriteGsd {
    fn quantities(&self) -> Quantities {
        Quantities { force: self.forces, energy: self.forces, torque: self.torques, virial: self.virials }
    }

    /// Opens the file: a new one, or that of the checkpoint.
    fn open(&self) -> Result<Trajectory> {
        let exists = self.system.resumed && has_content(&self.path);
        match self.kept {
            Some(frames) if exists && frames > 0 => Trajectory::resume(&self.path, frames, self.system.n),
            None if exists => {
                let message = "exists but is not part of the checkpoint; move it away or choose another name";
                Err(Error::io(&self.path, message))
            }
            _ => Trajectory::create(&self.path),
        }
    }
}

impl Analyzer for WriteGsd {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.schedule.bind(needs)?;
        needs.triclinic = true;
        needs.wants.particles = true;
        needs.wants.topology = true;
        needs.wants.thermo = self.log;
        self.quantities().request(system, needs)?;
        self.system = system.clone();
        // frames are appended before an index, which then moves
        let output = OutputFile { rewritten: true, ..OutputFile::new(&self.file, OutputKind::Growing) };
        self.path = needs.declare(system, output);
        let mut errors: Vec<InputError> = vec![];
        for name in system.type_names().filter(|n| n.len() >= NAME_SIZE || n.contains('\0')) {
            errors.push(InputError::new(format!(
                "the type name \"{name}\" exceeds the limit of {} bytes, or contains a NUL character",
                NAME_SIZE - 1
            )));
        }
        if errors.is_empty() { Ok(()) } else { Err(Error::Input(errors)) }
    }

    fn start(&mut self, _: Host) -> Result<()> {
        self.trajectory = None;
        self.trajectory = Some(SharedOutput::open(&self.system, &self.path, || self.open())?);
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Some(trajectory) = &self.trajectory else {
            return Err(Error::Run("Gsd: `start` was not called".into()));
        };
        let log = if self.log {
            let t = frame.thermo()?;
            vec![
                ("potential_energy", t.potential),
                ("kinetic_energy", t.kinetic),
                ("pressure", t.pressure),
                ("kT", t.kt),
            ]
        } else {
            vec![]
        };
        trajectory.lock().append(&frame.snapshot(&self.system), self.velocity, self.quantities(), &log)
    }

    fn finish(&mut self) -> Result<()> {
        self.trajectory.as_ref().map_or(Ok(()), |t| t.lock().sync())
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        let Some(trajectory) = &self.trajectory else { return Ok(vec![]) };
        let mut trajectory = trajectory.lock();
        // the checkpoint must neither refer to frames that are not on disk nor miss frames that were lost
        trajectory.sync()?;
        trajectory.require_all()?;
        Ok([STATE.as_slice(), &trajectory.synced().to_le_bytes(), trajectory.last()].concat())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let parts = state.strip_prefix(STATE.as_slice()).and_then(|s| s.split_first_chunk::<8>());
        self.kept = parts.map(|(frames, _)| u64::from_le_bytes(*frames));
        let Some((frames, (_, mark))) = self.kept.zip(parts) else {
            return Err(Error::Run("the checkpoint belongs to another pipeline".into()));
        };
        if frames > 0 {
            check_exists(&self.path, &format!("{frames} frames"))?;
            if has_content(&self.path) {
                Trajectory::check(&self.path, frames, self.system.n, mark)?;
            }
        }
        Ok(())
    }
}
