//! Steps of ranks in several processes, which the host launches without waiting for their messages.
//!
//! If a rank requests a rebuild, all ranks pause in that step (`messages.cuh`): what follows in the stream does nothing. The host then
//! launches the rebuild and the rest of the step. So it launches about as many steps at once as there were between the last two rebuilds.

use crate::device::args::PAUSED;
use crate::gpu::GpuSystem;
use crate::gpu::rebuild::SortWhen;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::{Globals, Wanted};
use std::mem::offset_of;

/// Steps that are launched at once at most.
const MOST: u64 = 64;

/// When the last rebuild was, and how many steps after the one before. Both are the same in all ranks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pauses {
    last: Option<u64>,
    interval: u64,
}

impl Pauses {
    /// Notes a rebuild in this step.
    fn note(&mut self, step: u64) {
        *self = Self { last: Some(step), interval: self.last.map_or(1, |last| step.saturating_sub(last)) };
    }

    /// Returns how many steps to launch after this one: those until a rebuild is expected, then a quarter of those since the last one.
    fn expected(self, step: u64) -> u64 {
        let since = self.last.map_or(0, |last| step.saturating_sub(last));
        let left = self.interval.saturating_sub(since);
        if left > 0 { left.min(MOST) } else { (since / 4).clamp(1, MOST) }
    }
}

impl GpuSystem {
    /// Returns how many of these steps to launch before the host looks at the device.
    pub(in crate::gpu) fn steps_at_once(&self, remaining: u64) -> u64 {
        let sends = self.rank.as_ref().is_some_and(|rank| rank.sends_messages());
        if sends { self.pauses.expected(self.globals.step).min(remaining) } else { remaining }
    }

    /// With ranks in several processes: a halt of one applies to all, not only from the next step on, so that all recover at the same time.
    pub(in crate::gpu) fn meet_after_steps(&self) -> Result<()> {
        let Some(rank) = self.rank.as_ref().filter(|rank| rank.sends_messages()) else { return Ok(()) };
        rank.barrier(&self.view())
    }

    /// Launches the rebuild for which all ranks have paused, if they have, as these globals say.
    pub(in crate::gpu) fn end_pause(&self, globals: &Globals) -> Result<()> {
        if globals.halt.get() != PAUSED {
            return Ok(());
        }
        self.device.set_word(self.view().globals.address + offset_of!(Globals, halt) as u64, 0)?;
        let sorts = globals.rebuilds.is_multiple_of(self.rebuild.sort_every().into());
        self.launch_rebuild(if sorts { SortWhen::Now } else { SortWhen::NotDue }, true)
    }

    /// Launches the rest of the step in which all ranks have paused, if they have; else it returns false. The globals are those of the device before.
    /// If it is the `last` step, which computes what is wanted, they are so afterwards.
    pub(in crate::gpu) fn finish_paused_step(&mut self, last: u64, wanted: Wanted) -> Result<bool> {
        if self.globals.halt.get() != PAUSED {
            return Ok(false);
        }
        self.pauses.note(self.globals.step);
        self.end_pause(&self.globals)?;
        if self.globals.step < last {
            self.globals.halt.set(0);
            return self.launch_after_rebuild(Wanted::FORCE, false, false).map(|()| true);
        }
        self.launch_after_rebuild(wanted, false, false)?;
        self.meet_after_steps()?;
        self.sync_globals().map(|()| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_launched_until_the_next_rebuild_is_expected() {
        let mut p = Pauses::default();
        assert_eq!((p.expected(0), p.expected(5_000_000)), (1, 1));
        p.note(5_000_110);
        assert_eq!(p.expected(5_000_110), 1);
        p.note(5_000_120);
        let all = [120, 127, 130, 140, 900].map(|step| p.expected(5_000_000 + step));
        assert_eq!(all, [10, 3, 2, 5, MOST]);
        p.note(5_000_900);
        assert_eq!(p.expected(5_000_900), MOST);
    }
}
