//! Times of components over the stages of a run.

use crate::profile::{Timing, add_timings};

/// Times of profiled steps of a stage.
#[derive(Default)]
pub struct StageProfile {
    /// Steps of the stage.
    pub steps: u64,
    /// Those that were profiled.
    pub profiled: u64,
    /// Times of these.
    pub timings: Vec<Timing>,
}

impl StageProfile {
    /// Returns the number of profiled steps of all stages, and their times as if the profiled steps had been distributed over
    /// the stages as all steps.
    pub fn weighted(stages: &[Self]) -> (u64, Vec<Timing>) {
        let profiled: u64 = stages.iter().map(|s| s.profiled).sum();
        // a stage too short for a profile counts as those that have one
        let seen = || stages.iter().filter(|s| s.profiled > 0);
        let steps: u64 = seen().map(|s| s.steps).sum();
        let mut sum = vec![];
        for s in seen() {
            let weight = s.steps as f64 / steps as f64 * profiled as f64 / s.profiled as f64;
            let scaled = |t: &Timing| Timing { seconds: weight * t.seconds, ..t.clone() };
            add_timings(&mut sum, s.timings.iter().map(scaled).collect());
        }
        (profiled, sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_count_by_their_steps() {
        let stage = |steps, profiled, part: &str, seconds| StageProfile {
            steps,
            profiled,
            timings: vec![Timing { part: part.into(), kernel: "k".into(), calls: profiled, seconds }],
        };
        // 16 steps of each stage were profiled, at 1 s a step; the second stage has three quarters of all steps
        let stages = [
            stage(1000, 16, "A", 16.0),
            stage(3000, 16, "B", 16.0),
            StageProfile { steps: 50, ..stage(0, 0, "C", 0.0) },
        ];
        let (steps, timings) = StageProfile::weighted(&stages);
        let seconds: Vec<(&str, f64)> = timings.iter().map(|t| (t.part.as_str(), t.seconds)).collect();
        assert_eq!((steps, seconds), (32, vec![("B", 24.0), ("A", 8.0)]));
        assert_eq!(StageProfile::weighted(&[]).0, 0);
    }
}
