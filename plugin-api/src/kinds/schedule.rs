//! When an analyzer writes.

use crate::error::{Error, Result};
use crate::kinds::component::Needs;

/// Parameters of an analyzer that writes states or samples: every so many steps, from a first step on, at the end.
#[derive(Clone, Debug, Default, galamost_plugin_macros::Params)]
pub struct Schedule {
    /// Steps between frames, files or samples; optional with `at_end`.
    #[param(at_least = 1.0)]
    pub every: Option<u64>,
    /// First step: it writes at steps `offset`, `offset` + `every`, ….
    #[param(default = 0)]
    pub offset: u64,
    /// Whether `offset` counts from the start of each stage instead of step 0.
    #[param(default = false)]
    pub from_stage: bool,
    /// Whether to write at the end of each stage, too.
    #[param(default = false)]
    pub at_end: bool,
}

impl Schedule {
    /// Sets the times in the needs of an analyzer.
    ///
    /// # Errors
    /// Returns an error if it would never write.
    pub fn bind(&self, needs: &mut Needs) -> Result<()> {
        match self.every {
            Some(every) => (needs.period, needs.offset) = (every, self.offset),
            // never by its period
            None if self.at_end => (needs.period, needs.offset) = (u64::MAX, u64::MAX),
            None => return Err(Error::input("missing field `every`: add `every`, `at_end: true`, or both")),
        }
        needs.from_stage = self.from_stage;
        needs.at_end = self.at_end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(schedule: &Schedule, begin: u64, end: u64) -> Vec<u64> {
        let mut needs = Needs::default();
        schedule.bind(&mut needs).expect("valid");
        let due = |step: u64| needs.is_due(step, begin, end);
        for step in begin..end {
            let next = needs.next_due(step, begin);
            assert!(next > step && !(step + 1..next.min(end)).any(due), "{schedule:?} {step}");
        }
        (begin..=end).filter(|step| due(*step)).collect()
    }

    #[test]
    fn schedules_are_due_at_their_steps() {
        let of = |every: Option<u64>, offset: u64, at_end: bool| Schedule { every, offset, from_stage: false, at_end };
        assert_eq!(steps(&of(Some(10), 0, false), 0, 25), [0, 10, 20]);
        assert_eq!(steps(&of(Some(10), 3, true), 0, 25), [3, 13, 23, 25]);
        assert_eq!(steps(&of(None, 0, true), 0, 25), [25]);
        let of_stage = |every: Option<u64>, offset: u64| Schedule { from_stage: true, ..of(every, offset, true) };
        assert_eq!(steps(&of(Some(10), 3, false), 17, 40), [23, 33]);
        assert_eq!(steps(&of_stage(Some(10), 3), 17, 40), [20, 30, 40]);
        assert_eq!(steps(&of_stage(None, 0), 17, 40), [40]);
        assert!(of(None, 0, false).bind(&mut Needs::default()).is_err());
    }
}
