//! The analyzer.

use crate::gsd::write::{NAME_SIZE, Trajectory};
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

/// Writes a GSD trajectory (schema hoomd 1.4), one frame every `every` steps, as OVITO, freud and gsd read it.
///
/// A frame has the step, the box, positions, images, types and masses; `charge`, `diameter`, `body` and `inert` if the
/// system has them; the quaternion w x y z of `quaternion`, or the rotation of z onto `orientation`; bonds, angles and
/// dihedrals. Numbers are single precision, as in this schema. What is as in the first frame is not written again, so
/// bonds that form cost room only in the frames that differ. `log/potential_energy`, `log/kinetic_energy`,
/// `log/pressure` and `log/kT` are double precision.
///
/// A frame is on the disk at once if it is the first or larger than 1 MiB, else with the first frame that comes two
/// seconds after the last time or when 1 MiB has gathered; all frames are when a checkpoint is written and when the run
/// ends. So a run that is killed leaves a file of whole frames. When a frame cannot be written (a full disk), the run
/// ends, and the file ends with the last frame that was on the disk. A resumed run first takes off the frames that are
/// newer than its checkpoint. A run that is not resumed overwrites a file of the same name.
///
/// ```ron
/// Gsd(every: 50, file: "trajectory.gsd", velocity: true)
/// ```
#[component(Analyzer, "Gsd")]
#[derive(Debug, Params)]
pub struct WriteGsd {
    /// Steps from one frame to the next.
    #[param(at_least = 1.0)]
    every: u64,
    /// File to write.
    #[param(extensions = "gsd")]
    file: String,
    /// Whether velocities are written, and angular momenta (angmom) of particles that turn.
    #[param(default = false)]
    velocity: bool,
    /// Whether energies, pressure and kT are written.
    #[param(default = true)]
    log: bool,
    #[param(skip)]
    system: SystemInfo,
    #[param(skip)]
    path: PathBuf,
    /// Frames there were at the checkpoint that the run goes on from.
    #[param(skip)]
    kept: Option<u64>,
    #[param(skip)]
    trajectory: Option<Trajectory>,
}

/// First bytes of the state in checkpoints.
const STATE: &[u8; 8] = b"gsd\0\0\0\0\x01";

impl Analyzer for WriteGsd {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        needs.wants.particles = true;
        needs.wants.topology = true;
        needs.wants.thermo = self.log;
        self.system = system.clone();
        self.path = system.path(&self.file);
        let mut errors: Vec<InputError> = vec![];
        let names = [&system.types, &system.bond_types, &system.angle_types, &system.dihedral_types];
        for name in names.into_iter().flatten().filter(|n| n.len() >= NAME_SIZE || n.contains('\0')) {
            errors.push(InputError::new(format!(
                "the type name \"{name}\" cannot be written: at most {} bytes are possible",
                NAME_SIZE - 1
            )));
        }
        let folder = self.path.parent().filter(|p| !p.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|f| !f.is_dir()) {
            errors.push(InputError::new(format!("there is no folder {} for `file`", folder.display())));
        }
        if errors.is_empty() { Ok(()) } else { Err(Error::Input(errors)) }
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let there = self.system.resumed && self.path.exists();
        self.trajectory = Some(match self.kept {
            Some(frames) if there && frames > 0 => Trajectory::resume(&self.path, frames, self.system.n)?,
            None if there => {
                let message = "is there, but the checkpoint knows nothing of it: move it away or choose another name";
                return Err(Error::io(&self.path, message));
            }
            kept => {
                if kept.is_some_and(|frames| frames > 0) {
                    host.log(Level::Warn, &format!("{} is gone: a new one is begun", self.path.display()));
                }
                Trajectory::create(&self.path)?
            }
        });
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Some(trajectory) = &mut self.trajectory else { return Err(Error::Run("Gsd was not started".into())) };
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
        trajectory.append(&frame.snapshot(&self.system), self.velocity, &log)
    }

    fn finish(&mut self) -> Result<()> {
        self.trajectory.as_mut().map_or(Ok(()), Trajectory::sync)
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        let Some(trajectory) = &mut self.trajectory else { return Ok(vec![]) };
        // a checkpoint never knows of more frames than there are
        trajectory.sync()?;
        Ok([STATE.as_slice(), &trajectory.synced().to_le_bytes()].concat())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let frames = state.strip_prefix(STATE.as_slice()).and_then(|s| Some(u64::from_le_bytes(s.try_into().ok()?)));
        self.kept = frames;
        frames.map(|_| ()).ok_or_else(|| Error::Run("the checkpoint belongs to another pipeline".into()))
    }
}
