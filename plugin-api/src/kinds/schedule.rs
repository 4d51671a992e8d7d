//! When an analyzer writes.

use crate::error::{Error, Result};
use crate::kinds::component::Needs;

/// Parameters of an analyzer that writes states: every so many steps, from a first step on, at the end.
#[derive(Clone, Debug, Default, galamost_plugin_macros::Params)]
pub struct Schedule {
    /// Steps between frames or files; optional with `at_end`.
    #[param(at_least = 1.0)]
    pub every: Option<u64>,
    /// First step: it writes at steps `offset`, `offset` + `every`, ….
    #[param(default = 0)]
    pub offset: u64,
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
        needs.at_end = self.at_end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(schedule: &Schedule, end: u64) -> Vec<u64> {
        let mut needs = Needs::default();
        schedule.bind(&mut needs).expect("valid");
        let due = (0..=end).filter(|step| needs.is_due(*step, end)).collect();
        for step in 0..end {
            let next = needs.next_due(step);
            assert!(next > step && (step + 1..next.min(end)).all(|s| !needs.is_due(s, end)), "{schedule:?} {step}");
        }
        due
    }

    #[test]
    fn schedules_are_due_at_their_steps() {
        let of = |every: Option<u64>, offset: u64, at_end: bool| Schedule { every, offset, at_end };
        assert_eq!(steps(&of(Some(10), 0, false), 25), [0, 10, 20]);
        assert_eq!(steps(&of(Some(10), 3, true), 25), [3, 13, 23, 25]);
        assert_eq!(steps(&of(None, 0, true), 25), [25]);
        assert!(of(None, 0, false).bind(&mut Needs::default()).is_err());
    }
}
