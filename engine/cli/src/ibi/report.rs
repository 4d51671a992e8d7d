//! The HTML report of an inversion: distributions and potentials of its iterations.

use super::iterate::RunResult;
use super::spec::Spec;
use crate::output::page::{chart, document};
use galamost_inversion::Interaction;
use galamost_pictures::{Curve, escape};
use galamost_tables::Kind;
use std::fmt::Write as _;

/// The iterations of one interaction.
pub(super) struct InteractionHistory {
    pub name: String,
    pub interaction: Interaction,
    pub states: Vec<String>,
    /// Targets by state.
    pub targets: Vec<Vec<f64>>,
    /// Distributions by iteration and state.
    pub measured: Vec<Vec<Vec<f64>>>,
    /// Potentials by iteration.
    pub potentials: Vec<Vec<f64>>,
}

/// Returns the iterations to plot: the first, powers of two, and the last.
fn shown(n: usize) -> Vec<usize> {
    let mut list: Vec<usize> = (0..).map(|k| 1 << k).take_while(|k| *k < n).collect();
    list.push(n);
    let from = list.len().saturating_sub(6);
    if from > 0 {
        list.drain(1..=from);
    }
    list
}

impl InteractionHistory {
    /// Returns a curve over the bins.
    fn line(&self, name: String, y: &[f64]) -> Curve {
        let points = y.iter().enumerate().map(|(k, y)| [self.interaction.bins.middle(k), *y]).collect();
        Curve { name, points, ..Curve::default() }
    }

    /// Returns the labels of the axes.
    fn labels(&self) -> [&'static str; 2] {
        match self.interaction.kind {
            Kind::Pair => ["r", "g(r)"],
            Kind::Bond => ["r", "P(r)"],
            Kind::Angle => ["θ, degrees", "P(θ), 1/degree"],
            Kind::Dihedral => ["φ, degrees", "P(φ), 1/degree"],
        }
    }

    /// Plots the distributions of a state.
    fn distributions(&self, state: usize) -> String {
        let mut lines = vec![self.line("target".into(), &self.targets[state])];
        for k in shown(self.measured.len()) {
            lines.push(self.line(format!("iteration {k}"), &self.measured[k - 1][state]));
        }
        chart(lines, self.labels(), None)
    }

    /// Plots the potentials.
    fn potentials(&self) -> String {
        let n = self.measured.len();
        let lines: Vec<Curve> =
            shown(n).iter().map(|k| self.line(format!("iteration {k}"), &self.potentials[k - 1])).collect();
        let [label, _] = self.labels();
        // the range of the sampled part of the last potential; the repulsive core would dominate the axis
        let sampled: Vec<bool> =
            (0..self.interaction.bins.n).map(|k| self.targets.iter().any(|t| self.interaction.sampled(t)[k])).collect();
        let last = &self.potentials[n - 1];
        let inside = || last.iter().zip(&sampled).filter(|(_, s)| **s).map(|(u, _)| *u);
        let (low, high) = inside().fold((0.0f64, 0.0f64), |(a, b), u| (a.min(u), b.max(u)));
        let room = 0.1 * (high - low).max(0.1);
        chart(lines, [label, "U"], Some([low - room, high + room]))
    }
}

/// Returns the report as HTML.
pub(super) fn report(spec: &Spec, histories: &[InteractionHistory], done: &[Vec<RunResult>]) -> String {
    let title = escape(&spec.path.display().to_string());
    let mut page = format!(
        "<header><h1>{title}</h1><p>{} iterations of {:?}; tolerance {}.</p></header>\n",
        done.len(),
        spec.method,
        spec.tolerance
    );
    let mut lines = vec![];
    for e in histories {
        for (s, state) in e.states.iter().enumerate() {
            let norm = |k: usize| e.interaction.closeness(&e.targets[s], &e.measured[k][s]).norm;
            let points = (0..done.len()).map(|k| [k as f64 + 1.0, norm(k).max(1e-12).log10()]).collect();
            let name = if e.states.len() > 1 { format!("{} ({state})", e.name) } else { e.name.clone() };
            lines.push(Curve { name, points, ..Curve::default() });
        }
    }
    let _ = write!(
        page,
        "<h2>Distance from the targets</h2>\n<p>Base-10 logarithm of √(∫(p − p_t)² dx / ∫p_t² dx).</p>\n<div class=\"pair\">{}\n",
        chart(lines, ["iteration", "log₁₀ distance"], None)
    );
    let _ = writeln!(
        page,
        "<table><tr><th>iteration</th><th>state</th><th>kT</th><th>pressure</th><th>steps</th><th>seconds</th></tr>"
    );
    for k in shown(done.len()) {
        for (d, state) in done[k - 1].iter().zip(&spec.states.value) {
            let _ = writeln!(
                page,
                "<tr><td>{k}</td><td>{}</td><td>{:.4}</td><td>{:.4}</td><td>{}</td><td>{:.1}</td></tr>",
                escape(&state.value.name.value),
                d.kt,
                d.pressure,
                d.steps,
                d.seconds
            );
        }
    }
    page += "</table></div>\n";
    for e in histories {
        let _ = writeln!(page, "<h2>{}</h2>\n<div class=\"pair\">", escape(&e.name));
        for (s, state) in e.states.iter().enumerate() {
            let head = if e.states.len() > 1 { format!("<h3>{}</h3>", escape(state)) } else { String::new() };
            let _ = writeln!(page, "<div>{head}{}</div>", e.distributions(s));
        }
        let _ = writeln!(page, "<div>{}</div></div>", e.potentials());
    }
    document(&title, &page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_iterations_are_shown_with_the_first_and_the_last() {
        assert_eq!(shown(1), [1]);
        assert_eq!(shown(3), [1, 2, 3]);
        assert_eq!(shown(20), [1, 2, 4, 8, 16, 20]);
        assert_eq!(shown(300), [1, 32, 64, 128, 256, 300]);
    }
}
