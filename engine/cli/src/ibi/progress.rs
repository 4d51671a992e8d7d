//! Progress of an inversion: distances from the targets, `convergence.csv` and the report.

use super::iterate::{Inversion, write_atomically};
use super::report::{InteractionHistory, report};
use galamost_engine::diagnostic::Failure;
use galamost_inversion::Closeness;
use tracing::info;

impl Inversion<'_> {
    /// Returns the distance of a distribution from its target.
    pub fn closeness(&self, k: usize, state: usize, i: usize) -> Closeness {
        self.numerics[i].closeness(&self.targets[state][i], &self.measured[k - 1][state][i])
    }

    /// Returns the largest distance of an iteration.
    pub fn worst(&self, k: usize) -> f64 {
        let all = (0..self.targets.len()).flat_map(|s| (0..self.numerics.len()).map(move |i| (s, i)));
        all.map(|(s, i)| self.closeness(k, s, i).norm).fold(0.0, f64::max)
    }

    /// Logs the distances of iteration `k`, and writes `convergence.csv` and the report.
    pub fn report_progress(&self, k: usize) -> Result<(), Failure> {
        write_atomically(&self.spec.folder().join("convergence.csv"), &self.convergence(k))?;
        let parts: Vec<String> = self
            .interactions()
            .enumerate()
            .map(|(i, (s, _))| {
                let norm = (0..self.targets.len()).map(|state| self.closeness(k, state, i).norm).fold(0.0, f64::max);
                format!("{} {norm:.4}", s.name())
            })
            .collect();
        let seconds: f64 = self.done[k - 1].iter().map(|d| d.seconds).sum();
        info!("iteration {k} of {}: {}; {seconds:.1} s", self.spec.iterations, parts.join(", "));
        let mut histories = vec![];
        for (i, (s, interaction)) in self.interactions().enumerate() {
            histories.push(InteractionHistory {
                name: s.name(),
                interaction: interaction.clone(),
                states: self.states().map(|s| s.name.value.clone()).collect(),
                targets: self.targets.iter().map(|t| t[i].clone()).collect(),
                measured: self.measured.iter().map(|m| m.iter().map(|s| s[i].clone()).collect()).collect(),
                potentials: self.potentials.iter().map(|p| p[i].clone()).collect(),
            });
        }
        write_atomically(&self.spec.folder().join("report.html"), &report(self.spec, &histories, &self.done))
    }

    /// Returns the table of distances up to iteration `k`.
    fn convergence(&self, k: usize) -> String {
        let mut table = String::from("iteration,state,interaction,norm,max,kT,pressure,seconds\n");
        for n in 1..=k {
            for (s, state) in self.states().enumerate() {
                for (i, (spec, _)) in self.interactions().enumerate() {
                    let (c, d) = (self.closeness(n, s, i), &self.done[n - 1][s]);
                    table += &format!(
                        "{n},{},{},{:?},{:?},{:?},{:?},{:?}\n",
                        state.name.value,
                        spec.name(),
                        c.norm,
                        c.max,
                        d.kt,
                        d.pressure,
                        d.seconds
                    );
                }
            }
        }
        table
    }
}
