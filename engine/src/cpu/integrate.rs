//! Integrators on the CPU: phases in order, each over chunks of particles.

use super::list::CHUNK;
use super::system::{CpuSystem, scale_positions};
use crate::state::arrays::ArrayId;
use crate::state::buffers::Bytes;
use crate::state::store::Store;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::force::Moment;
use galamost_plugin_api::integrator::{MAX_SUMS, ParticleCall, ScalarCall, When};
use galamost_plugin_api::philox::{DRAWS_PER_PHASE, RandomKey};
use galamost_plugin_api::views::{SimBox, StateView, Wanted};
use rayon::prelude::*;
use std::sync::Mutex;
use std::time::Instant;

impl<S: Store> CpuSystem<S> {
    /// Does one time step.
    pub(super) fn one_step(&mut self, wanted: Wanted) -> Result<()> {
        self.phases(When::Before)?;
        self.check_fault()?;
        // positions have moved: everything after this line belongs to the next step
        self.globals.step += 1;
        self.globals.evaluate();
        self.place(Moment::Moved)?;
        if self.globals.needs_rebuild() {
            let begun = self.profile.is_on().then(Instant::now);
            self.reduce_box();
            self.rebuild()?;
            if let Some(begun) = begun {
                self.profile.add("neighbor list".into(), "build", begun.elapsed().as_secs_f64());
            }
        }
        let wanted = if self.changes_box() { Wanted::ALL } else { wanted };
        self.compute_forces(if self.forces_again { Wanted::FORCE } else { wanted })?;
        self.phases(When::After)?;
        self.check_fault()?;
        // they have the velocities of the end of the step
        self.place(Moment::End)?;
        if self.forces_again {
            self.compute_forces(wanted)?;
        }
        Ok(())
    }

    /// Runs the integrators' start phases on the initial velocities.
    pub(super) fn start_integrators(&mut self) -> Result<()> {
        self.phases(When::Start)
    }

    /// Runs the phases of all integrators at this point of a step.
    fn phases(&mut self, when: When) -> Result<()> {
        let mut state = self.view();
        // velocities that an integrator carries through the step; integrators with `corrects` correct them as well
        let carried = self.integrators.iter().filter(|m| m.program.carries_velocity).find_map(|m| {
            let width = m.program.extra.as_ref()?.width;
            Some((self.arrays[m.extra?].data.address(), width * size_of::<S::Real>() as u32))
        });
        for m in 0..self.integrators.len() {
            let id = self.integrators[m].component.id;
            let mut memory = self.integrator_states.remove(&id).unwrap_or_else(|| Bytes::zeroed(0, 1));
            let begun = self.profile.is_on().then(Instant::now);
            let done = self.integrator_phases(m, when, &mut state, carried, &mut memory);
            if let Some(begun) = begun {
                let name = self.integrators[m].component.name.as_str();
                self.profile.add(name.into(), "phases", begun.elapsed().as_secs_f64());
            }
            self.integrator_states.insert(id, memory);
            done?;
            self.check_guards(&self.integrators[m].component.name)?;
        }
        Ok(())
    }

    /// Runs the phases of integrator `m`. `carried` is the array of carried velocities with its stride in bytes.
    fn integrator_phases(
        &mut self,
        m: usize,
        when: When,
        state: &mut StateView,
        carried: Option<(u64, u32)>,
        memory: &mut Bytes,
    ) -> Result<()> {
        let extra = self.integrators[m].extra.map_or(0, |a| self.arrays[a].data.address());
        let moving = &self.integrators[m];
        let id = moving.component.id;
        let (carried, carried_stride) = carried.filter(|_| moving.program.corrects).unwrap_or_default();
        let mut sums = [0.0; MAX_SUMS];
        let part = moving.component.integrator().ok_or_else(|| Error::Run("not an integrator".into()))?;
        for (p, phase) in moving.program.phases.iter().enumerate().filter(|(_, p)| p.when == when) {
            let first_draw = p as u32 * DRAWS_PER_PHASE;
            if phase.scalar {
                let mut sim_box = SimBox::of(&self.globals);
                let call = ScalarCall {
                    size: size_of::<ScalarCall>() as u32,
                    first_varying: moving.component.first_varying,
                    integrator: memory.address() as *mut u8,
                    sums: &sums,
                    globals: &*self.globals,
                    key: RandomKey::new(self.facts.seed, id),
                    first_draw,
                    reserved0: 0,
                    sim_box: if phase.sim_box { &raw mut sim_box } else { std::ptr::null_mut() },
                    reserved: [0; 3],
                };
                // SAFETY: `memory` holds the bytes that the integrator's `state` returned (`check_state_length`), and nothing
                // else uses it and the box meanwhile
                unsafe { part.cpu_scalar(p as u32, &call)? };
                if (sim_box.offset, sim_box.speed) != (self.globals.shear_offset, self.globals.shear_speed) {
                    self.globals.set_shear(sim_box.offset, sim_box.speed);
                }
                if (sim_box.length, sim_box.tilt) != (self.globals.box_length, self.globals.tilt) {
                    let ratio = self.globals.set_shape(sim_box.length, sim_box.tilt, id);
                    scale_positions::<S>(&mut self.arrays, ratio);
                }
                // the exclusive borrows above invalidate the addresses taken before them
                state.globals = DevicePtr::new(std::ptr::from_mut(&mut *self.globals) as u64);
                state.pos_type = DevicePtr::new(self.arrays[ArrayId::PosType as usize].data.address());
                continue;
            }
            let (address, state) = (memory.address(), &*state);
            let new = run_phase(self.facts.n, |range, chunk_sums| {
                let call = ParticleCall {
                    size: size_of::<ParticleCall>() as u32,
                    begin: range.start as u32,
                    end: range.end as u32,
                    first_varying: moving.component.first_varying,
                    component: id,
                    group: moving.group,
                    key: RandomKey::new(self.facts.seed, id),
                    state,
                    integrator: address as *const u8,
                    extra: extra as *mut u8,
                    sums: chunk_sums,
                    first_draw,
                    carried_stride,
                    carried: carried as *mut u8,
                    reserved: [0; 3],
                };
                // SAFETY: the views describe arrays of this system, and the chunks of the tasks are disjoint; no exclusive
                // borrow of the arrays or the globals exists before `run_phase` returns
                unsafe { part.cpu_particles(p as u32, &call) }
            })?;
            if phase.sums > 0 {
                sums = new;
            }
        }
        Ok(())
    }
}

/// Runs `f` for all chunks of `n` particles on all threads. Chunks are added in order.
fn run_phase(
    n: usize,
    f: impl Fn(std::ops::Range<usize>, &mut [f64; MAX_SUMS]) -> Result<()> + Sync,
) -> Result<[f64; MAX_SUMS]> {
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    // integrators do little work per particle, so tasks are larger than for forces; the size is independent of the
    // threads
    let chunk = 8 * CHUNK;
    let mut sums = vec![[0.0; MAX_SUMS]; n.div_ceil(chunk)];
    sums.par_iter_mut().enumerate().for_each(|(k, sums)| {
        if let Err(e) = f(k * chunk..((k + 1) * chunk).min(n), sums) {
            failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(e);
        }
    });
    if let Some(e) = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        return Err(e);
    }
    let mut total = [0.0; MAX_SUMS];
    for s in &sums {
        for (t, x) in total.iter_mut().zip(s) {
            *t += x;
        }
    }
    Ok(total)
}
