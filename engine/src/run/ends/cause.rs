//! The force that moved a particle too far.

use super::motion;
use crate::backend::forget_list;
use crate::plan::StagePlan;
use crate::plugins::Component;
use crate::run::execute::Run;
use crate::state::RawState;
use crate::state::arrays::ArrayId;
use crate::state::raw::reals;
use galamost_plugin_api::device::bytes_of;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::views::FaultKind;
use std::sync::Arc;

/// A force explains the fault if it moves the particle in one step by this part of the shortest box length. On a GPU the particle may
/// have moved along other axes, so the forces are not exactly those of the fault.
const EXPLAINS: f64 = 0.01;

/// The force of one component.
struct OneForce {
    name: String,
    /// The particle with the smallest tag whose force is NaN or infinite.
    undefined: Option<usize>,
    /// Size of the force on the particle of the fault.
    size: f64,
    /// The force can move it that far.
    explains: bool,
}

impl Run<'_> {
    /// Returns which force moved a particle too far, if an integrator has reported it. The run has ended: its forces are computed
    /// anew, one component at a time.
    pub(in crate::run) fn cause(&mut self, e: &Error) -> Option<String> {
        let Error::Unstable { tag: Some(tag), what, .. } = e else { return None };
        let code = self.backend.globals().fault.get().code;
        let too_far = what == motion::UNDEFINED || code == FaultKind::NotFinite as u32;
        let pipeline = &self.plan.pipeline;
        if pipeline.ranks() > 1 {
            // other ranks have ended by this error; the fault of another process is not in the globals of this one
            return (too_far || code == 0).then(|| not_computed(pipeline.processes.count));
        }
        // the kernels of replicas are launched for all of them
        if !too_far || pipeline.replicas > 1 {
            return None;
        }
        let mut state = self.backend.export().ok()?;
        forget_list(&mut state);
        let found = self.single_forces(&state, *tag as usize);
        // a program may read the state and its forces; a second failure must not hide the first
        let stage = &self.plan.stages[self.position.stage as usize];
        let _ = self.backend.import(&state).and_then(|()| self.backend.begin_stage(stage, false));
        described(*tag, &found.ok()?).or_else(|| scaled(stage, *tag, &self.plan.snapshot))
    }

    /// Computes the forces of each component by itself, in this state.
    fn single_forces(&mut self, state: &RawState, tag: usize) -> Result<Vec<OneForce>> {
        let stage = &self.plan.stages[self.position.stage as usize];
        let precision = self.plan.pipeline.precision;
        let mut state = state.clone();
        stop_undefined(&mut state, precision);
        let mass = masses(&state, precision).get(tag).copied().unwrap_or(1.0);
        let shortest = state.box_length.into_iter().fold(f64::INFINITY, f64::min);
        let least = EXPLAINS * shortest * mass / stage.stage.dt.powi(2);
        let mut all = vec![];
        for force in &stage.forces {
            self.backend.import(&state)?;
            self.backend.begin_stage(&StagePlan { forces: vec![force.clone()], ..stage.clone() }, false)?;
            let forces = reals(&self.backend.read(ArrayId::Force.name())?, precision);
            let sizes: Vec<f64> = forces.as_chunks::<4>().0.iter().map(|[x, y, z, _]| x.hypot(*y).hypot(*z)).collect();
            let undefined = sizes.iter().position(|s| !s.is_finite());
            let size = sizes.get(tag).copied().unwrap_or(0.0);
            all.push(OneForce { name: force.name.clone(), undefined, size, explains: size >= least });
        }
        Ok(all)
    }
}

/// Returns how to learn which force moved the particle of a run on several ranks.
fn not_computed(processes: u32) -> String {
    let how = if processes > 1 { "in one process" } else { "on one GPU" };
    format!("the same run {how} has the same bits, and its error names the force if one moved the particle too far")
}

/// Sets velocities that are NaN to 0, so that forces that depend on them are NaN only where they are the cause.
fn stop_undefined(state: &mut RawState, precision: Precision) {
    let Some(bytes) = state.sections.get_mut(ArrayId::VelocityMass.name()) else { return };
    let kept = reals(bytes, precision).into_iter().map(|v| if v.is_finite() { v } else { 0.0 });
    *bytes = match precision {
        Precision::Double => bytes_of(&kept.collect::<Vec<f64>>()).to_vec(),
        _ => bytes_of(&kept.map(|v| v as f32).collect::<Vec<f32>>()).to_vec(),
    };
}

fn masses(state: &RawState, precision: Precision) -> Vec<f64> {
    let all = state.sections.get(ArrayId::VelocityMass.name()).map_or(vec![], |bytes| reals(bytes, precision));
    all.as_chunks::<4>().0.iter().map(|[.., mass]| *mass).collect()
}

/// Names the integrator that scales the velocity of the particle, if there is one.
fn scaled(stage: &StagePlan, tag: u32, s: &Snapshot) -> Option<String> {
    let scales = |i: &&Arc<Component>| i.needs.moves && i.needs.rescales && i.needs.group.contains(tag, s);
    let name = &stage.integrators.iter().find(scales)?.name;
    Some(format!(
        "no force moves the particle with tag {tag} that far now; {name} scales velocities: its time constants may be too short for dt"
    ))
}

/// Names the forces that are undefined, or the largest force on the particle.
fn described(tag: u32, all: &[OneForce]) -> Option<String> {
    let undefined: Vec<String> = all
        .iter()
        .filter_map(|f| {
            Some(format!("the force of {} on the particle with tag {} is NaN or infinite", f.name, f.undefined?))
        })
        .collect();
    if !undefined.is_empty() {
        return Some(undefined.join("; "));
    }
    let largest = all.iter().filter(|f| f.explains).max_by(|a, b| a.size.total_cmp(&b.size))?;
    Some(format!("the largest force on the particle with tag {tag} is that of {}, {:.2e}", largest.name, largest.size))
}
