//! Runs that a program advances in parts, between which it reads and changes the state.

use super::RunOptions;
use super::Summary;
use super::ends::motion;
use super::execute::Run;
use super::frame::{fault, thermo};
use crate::backend::{Backend, Columns, columns, forget_list};
use crate::checkpoint::Checkpoint;
use crate::diagnostic::Failure;
use crate::plan::{Plan, encode_particles, fits_precision};
use crate::state::arrays::ArrayId;
use galamost_plugin_api::abi::RVec;
use galamost_plugin_api::analyzer::Thermo;
use galamost_plugin_api::component::Wants;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::views::{StateView, Sums};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// A run that a program advances in parts. The trajectory and all outputs are those of [`super::execute`], bit for bit,
/// unless the program changes the state.
pub struct Session<'a> {
    run: Run<'a>,
    options: &'a RunOptions,
    /// Steps of all stages, from the start of the run.
    planned: u64,
    ended: bool,
    /// Last step of each component that [`Session::flush`] has written.
    flushed: BTreeMap<u32, u64>,
}

/// Thermodynamic values of one step.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Sums over the system.
    pub thermo: Thermo,
    /// Name, energy and virial of each force of the stage.
    pub forces: Vec<(String, Sums)>,
}

/// New values of particle arrays, in tag order.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Positions, −L/2 ≤ x ≤ L/2.
    pub position: Option<RVec<[f64; 3]>>,
    /// Images.
    pub image: Option<RVec<[i32; 3]>>,
    /// Velocities.
    pub velocity: Option<RVec<[f64; 3]>>,
}

impl Run<'_> {
    /// Calls the analyzers that are due at the end of the current stage, which is the current step.
    fn sample_end(&mut self) -> Result<()> {
        let stage = &self.plan.stages[self.position.stage as usize];
        let step = self.backend.step();
        let due = self.due(stage, step, step);
        self.analyze(stage, &due)
    }
}

impl<'a> Session<'a> {
    /// Starts a run: starts its components and computes the first forces. The last stage has no end.
    ///
    /// # Errors
    /// Returns an error of a component or of the device, or if the pipeline has samplers and no particles.
    pub fn start(
        plan: &'a Plan,
        backend: &'a mut dyn Backend,
        options: &'a RunOptions,
        resume: Option<Checkpoint>,
    ) -> Result<Self, Failure> {
        let mut lengths: Vec<u64> = plan.stages.iter().map(|s| s.stage.steps).collect();
        let planned = lengths.iter().sum();
        let Some(last) = lengths.last_mut() else {
            return Err(Failure::run("a pipeline of samplers has no particles and cannot be advanced in parts"));
        };
        *last = u64::MAX / 2;
        let mut run = Run::new(plan, backend, options);
        run.lengths = lengths;
        let started = run.start(resume).and_then(|()| run.begin());
        match started {
            Ok(()) => Ok(Self { run, options, planned, ended: false, flushed: BTreeMap::new() }),
            Err(e) => Err(run.failed(e)),
        }
    }

    /// Returns the current step.
    pub fn step(&self) -> u64 {
        self.run.backend.step()
    }

    /// Returns the steps that are left until the end of the pipeline.
    pub fn remaining(&self) -> u64 {
        let position = self.run.position;
        let before: u64 = self.run.lengths.iter().take(position.stage as usize).sum();
        self.planned.saturating_sub(before + position.stage_step)
    }

    /// Does `steps` steps. Afterwards the thermodynamic values of the last one are known. If the stop flag of the
    /// options is set meanwhile, the run stops within two steps, and the flag is cleared.
    ///
    /// # Errors
    /// Returns the cause of a failure, and what was saved. The run has then ended.
    pub fn advance(&mut self, steps: u64) -> Result<(), Failure> {
        self.require_running()?;
        if steps == 0 {
            return Ok(());
        }
        self.run.summary.interrupted = false;
        self.run.ended.saved = false;
        self.run.pause = self.step().saturating_add(steps);
        if self.run.summary.steps > 0 {
            // an updater that is due now can change those that the last call has kept
            self.run.sums = None;
        }
        let done = self.run.stages().and_then(|()| self.complete_stop());
        let done = done.and_then(|()| self.check_motion());
        done.map_err(|e| self.fail(e))
    }

    /// Checks that no velocity is undefined. An analyzer of thermodynamic values has already done so in its step. Other sums
    /// are kept for [`Session::sample`], so that they are computed once.
    fn check_motion(&mut self) -> Result<()> {
        let step = self.step();
        let run = &mut self.run;
        let stage = &run.plan.stages[run.position.stage as usize];
        let is_checked = stage.analyzers.iter().any(|a| a.needs.wants.thermo && run.last_due.get(&a.id) == Some(&step));
        if is_checked || run.summary.steps == 0 {
            return Ok(());
        }
        if run.sums_are_valid && run.sums.is_none() {
            run.sums = Some(run.backend.sums()?);
        }
        motion::check(run.backend, run.sums.as_ref())
    }

    /// After a stop: one step more, so that the energies of the last step are known.
    fn complete_stop(&mut self) -> Result<()> {
        self.options.stop.store(false, Ordering::Relaxed);
        if std::mem::take(&mut self.run.summary.interrupted) && !self.run.sums_are_valid {
            self.run.pause = self.step() + 1;
            return self.run.stages();
        }
        Ok(())
    }

    /// Returns the thermodynamic values of the current step.
    ///
    /// # Errors
    /// Returns the driver's error, or an error if the run resumed from a checkpoint without them.
    pub fn sample(&mut self) -> Result<Sample> {
        let run = &mut self.run;
        let sums = match &run.sums {
            Some(sums) => sums.clone(),
            None if run.sums_are_valid => run.backend.sums()?,
            None if self.ended => {
                return Err(Error::Run("the energies of this step are not known: the run has ended".into()));
            }
            None => return Err(Error::Run("the energies of this step are not known; run at least one step".into())),
        };
        let stage = &run.plan.stages[run.position.stage as usize];
        let without_virial = stage.forces.iter().any(|f| f.needs.without_virial);
        let rotational = run.backend.facts().rotational.first().copied().unwrap_or(0.0);
        let thermo = thermo(&sums, &run.facts(), rotational, run.backend.box_length(), without_virial);
        let forces = stage.forces.iter().map(|f| f.name.clone()).zip(sums.components).collect();
        Ok(Sample { thermo, forces })
    }

    /// Returns the state, in tag order.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn state(&mut self) -> Result<Snapshot> {
        let facts = self.run.backend.facts().clone();
        let wants = Wants { particles: true, topology: true, ..Wants::default() };
        let Columns { position, image, velocity, type_id, mass, arrays, bonds, angles, dihedrals, impropers } =
            columns(self.run.backend, &facts, wants)?;
        let (step, box_length, tilt) = (self.step(), self.run.backend.box_length(), self.run.backend.tilt());
        let initial = &self.run.plan.snapshot;
        Ok(Snapshot {
            step,
            dimensions: initial.dimensions,
            box_length,
            tilt,
            types: initial.types.clone(),
            position,
            image,
            velocity,
            type_id,
            mass,
            arrays,
            bond_types: initial.bond_types.clone(),
            bonds,
            angle_types: initial.angle_types.clone(),
            angles,
            dihedral_types: initial.dihedral_types.clone(),
            dihedrals,
            improper_types: initial.improper_types.clone(),
            impropers,
        })
    }

    /// Returns a view of the particle arrays, for kernels of the program; see [`Backend::device`]. It is valid until the next
    /// call.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn view(&mut self) -> Result<StateView> {
        let (state, ..) = self.run.backend.views()?;
        self.run.backend.end_views();
        Ok(state)
    }

    /// Returns the forces on the particles at the current step, in tag order.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn forces(&mut self) -> Result<Vec<[f64; 3]>> {
        let precision = self.run.plan.pipeline.precision;
        let bytes = self.run.backend.read(ArrayId::Force.name())?;
        let all = crate::state::raw::reals(&bytes, precision);
        Ok(all.as_chunks::<4>().0.iter().map(|[x, y, z, _]| [*x, *y, *z]).collect())
    }

    /// Replaces arrays and computes the forces of the new state. Components keep their own states.
    ///
    /// # Errors
    /// Returns every mistake of the new state, which is then not taken, or the error of a component or of the device.
    pub fn replace(&mut self, change: Change) -> Result<(), Failure> {
        self.require_running()?;
        let moved = change.position.is_some();
        let mut state = self.state()?;
        let Change { position, image, velocity } = change;
        let mut changed = vec![];
        if let Some(v) = velocity {
            state.velocity = v;
            changed.push(ArrayId::VelocityMass);
        }
        if let Some(x) = position {
            state.position = x;
            changed.extend([ArrayId::PosType, ArrayId::PosLow, ArrayId::Image]);
        }
        if let Some(n) = image {
            state.image = n;
            changed.push(ArrayId::Image);
        }
        state.check()?;
        fits_precision(&state, self.run.plan.pipeline.precision)?;
        let mut raw = self.run.backend.export()?;
        let encoded = encode_particles(&state, self.run.plan.pipeline.precision);
        raw.sections.extend(encoded.into_iter().filter(|(name, _)| changed.iter().any(|c| c.name() == name)));
        if moved {
            forget_list(&mut raw);
        }
        (self.run.mid_step, self.run.ended.saved) = (true, false);
        let stage = &self.run.plan.stages[self.run.position.stage as usize];
        let taken = self.run.backend.import(&raw).and_then(|()| self.run.backend.begin_stage(stage, false));
        taken.map_err(|e| self.fail(e))?;
        self.run.mid_step = false;
        self.run.ended.replaced = true;
        (self.run.sums, self.run.sums_are_valid) = (None, true);
        Ok(())
    }

    /// Writes a checkpoint and returns its file.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn save(&mut self) -> Result<PathBuf, Failure> {
        self.require_running()?;
        self.run.checkpoint().and_then(|()| self.run.written())?;
        self.run.ended.saved = true;
        Ok(self.run.summary.checkpoint.clone().unwrap_or_default())
    }

    /// Writes what components keep of growing files in memory, such as frames of a GSD file, so that others can read it. The
    /// bytes of these files do not depend on it.
    ///
    /// # Errors
    /// Returns the cause of a failure, and what was saved. The run has then ended.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.require_running()?;
        let plan = self.run.plan;
        for c in plan.components.iter().filter(|c| c.needs.outputs.iter().any(|o| o.rewritten)) {
            let Some(due) = self.run.last_due.get(&c.id).copied() else { continue };
            if self.flushed.insert(c.id, due) != Some(due) {
                c.save().map_err(|e| self.fail(fault(&c.name, e)))?;
            }
        }
        Ok(())
    }

    /// Ends the run: components finish their files. A checkpoint is written if the pipeline has checkpoints, the state has
    /// changed since the beginning, by steps or by [`Session::replace`], and [`Session::save`] has not just written one. A run that has ended is not changed.
    ///
    /// # Errors
    /// Returns an error if a file cannot be finished.
    pub fn end(&mut self) -> Result<Summary, Failure> {
        if !std::mem::replace(&mut self.ended, true) {
            // the last stage of a session has no end of which its analyzers know
            let due = self.run.last_due.clone();
            let sampled = if self.remaining() == 0 { self.run.sample_end() } else { Ok(()) };
            self.run.ended.saved &= self.run.last_due == due;
            sampled.and_then(|()| self.run.end()).map_err(|e| self.run.failed(e))?;
        }
        Ok(self.run.summary.clone())
    }

    fn require_running(&self) -> Result<(), Failure> {
        if self.ended { Err(Failure::run("the run has ended")) } else { Ok(()) }
    }

    fn fail(&mut self, e: Error) -> Failure {
        self.ended = true;
        self.run.failed(e)
    }
}
