//! The text of the pipeline.

use super::super::gromacs::pipeline::{GAS_CONSTANT, fitting_time_step, moves, relaxation};
use super::super::gromacs::text::wrap;
use super::interactions::{Component, Interactions, Pair, Pairs};
use super::settings::{Coulomb, Settings};
use galamost_gromacs::{COULOMB, number};
use galamost_plugin_api::snapshot::{Snapshot, Values};
use std::fmt::Write as _;

/// What a pipeline is written from.
pub struct Contents<'a> {
    pub settings: &'a Settings,
    pub state: &'a Snapshot,
    /// The generator that reads the structure.
    pub reader: String,
    /// The structure as the pipeline names it.
    pub structure: String,
    pub pairs: Pairs,
    pub interactions: Interactions,
    pub command: String,
    /// Name of the pipeline without its ending, for outputs.
    pub stem: String,
}

impl Contents<'_> {
    /// Returns the pipeline.
    ///
    /// # Errors
    /// Returns an error if the charges are none that a formula can have.
    pub fn text(&self) -> Result<String, String> {
        let mut out =
            format!("// Forces of a force-field file of GALAMOST or PyGAMD.\n//\n//     {}\n//\n", self.command);
        out += "// Angles and bonds have the factor ½ of that program (convention: Half). Units: nm, ps, u, e, kJ/mol.\n(\n    seed: 1,\n";
        let exclude = self.settings.exclude.lists();
        if !exclude.is_empty() {
            let _ = writeln!(out, "    neighbors: (exclude: [{}]),", exclude.join(", "));
        }
        let _ = writeln!(out, "    initial: [\n        {}(file: {:?}),", self.reader, self.structure);
        let sites = &self.interactions.sites;
        if !sites.is_empty() {
            let bonds = if self.settings.exclude.sites { "bonds: \"site\", " } else { "" };
            let _ = writeln!(out, "        Sites({bonds}types: {{");
            wrap(&mut out, 12, sites);
            out += "        }),\n";
        }
        out += "    ],\n    forces: [\n";
        self.pair_forces(&mut out)?;
        for component in &self.interactions.components {
            self.component(&mut out, component);
        }
        if !sites.is_empty() {
            out += "        VirtualSites(),\n";
        }
        out += "    ],\n";
        self.run(&mut out);
        Ok(out + ")\n")
    }

    fn component(&self, out: &mut String, c: &Component) {
        let line = format!("        // {}\n", c.comment);
        if !c.comment.is_empty() && !out.contains(&line) {
            out.push_str(&line);
        }
        let _ = writeln!(out, "        {}({}{}: {{", c.name, c.settings, c.field);
        let mut rows = c.rows.clone();
        if c.name == "HarmonicBond" && self.settings.exclude.sites && !self.interactions.sites.is_empty() {
            rows.push("\"site\": None".into());
        }
        wrap(out, 12, &rows);
        *out += "        }),\n";
    }

    fn pair_forces(&self, out: &mut String) -> Result<(), String> {
        let (r_cut, epsilon_r) = (self.settings.r_cut, self.settings.epsilon_r);
        match (&self.pairs, self.settings.r_shift) {
            (Pairs::LennardJones(pairs), Some(r_shift)) => self.shifted_pairs(out, pairs, r_shift)?,
            (Pairs::LennardJones(pairs), None) => {
                let row = |([a, b], p): &([String; 2], Pair)| format!("({a:?}, {b:?}): {}", p.row());
                let _ = writeln!(
                    out,
                    "        // after setEnergy_shift(): ShiftEnergy\n        LennardJones(r_cut: {r_cut:?}, mode: Cut, pairs: {{"
                );
                wrap(out, 12, &pairs.iter().map(row).collect::<Vec<_>>());
            }
            (Pairs::AshbaughHatch(types), _) => {
                let epsilon = self.settings.ah_epsilon;
                let row = |(name, [sigma, lambda]): &(String, [f64; 2])| {
                    format!("({name:?}, {name:?}): (epsilon: {epsilon:?}, sigma: {sigma:?}, lambda: {lambda:?})")
                };
                let _ = writeln!(
                    out,
                    "        // σ and λ of unlike types are means\n        AshbaughHatch(r_cut: {r_cut:?}, mixing: LorentzBerthelot, pairs: {{"
                );
                wrap(out, 12, &types.iter().map(row).collect::<Vec<_>>());
            }
        }
        *out += "        }),\n";
        let _ = match self.settings.coulomb {
            Coulomb::ReactionField => {
                writeln!(out, "        ReactionField(r_cut: {r_cut:?}, f: {COULOMB:?}, epsilon_r: {epsilon_r:?}),")
            }
            Coulomb::Pppm => {
                writeln!(
                    out,
                    "        Pppm(accuracy: 1e-3, r_cut: {r_cut:?}, f: {COULOMB:?}, epsilon_r: {epsilon_r:?}),"
                )
            }
            Coulomb::DebyeHueckel => {
                let (prefactor, kappa) = (number(COULOMB / epsilon_r), number(1.0 / self.settings.debye_length));
                writeln!(out, "        DebyeHueckel(r_cut: {r_cut:?}, prefactor: {prefactor}, kappa: {kappa}),")
            }
            Coulomb::Shift | Coulomb::None => Ok(()),
        };
        Ok(())
    }

    /// Writes the potentials with the shift function as a formula.
    fn shifted_pairs(&self, out: &mut String, pairs: &[([String; 2], Pair)], r_shift: f64) -> Result<(), String> {
        let Settings { r_cut, epsilon_r, coulomb, .. } = *self.settings;
        let charges = if coulomb == Coulomb::Shift { self.charges()? } else { vec![0.0; self.state.types.len()] };
        let charge = |name: &String| self.state.types.iter().position(|t| t == name).map_or(0.0, |k| charges[k]);
        let row = |([a, b], p): &([String; 2], Pair)| {
            let qq = COULOMB / epsilon_r * charge(a) * charge(b);
            format!("({a:?}, {b:?}): {}", p.formula_row(qq))
        };
        let _ = writeln!(
            out,
            "        // the shift function of GROMACS from {r_shift:?} to {r_cut:?}; qq is f q_i q_j/ε_r\n        \
             PairExpression(r_cut: {r_cut:?}, energy: \"{}\", pairs: {{",
            shifted(r_shift, r_cut)
        );
        wrap(out, 12, &pairs.iter().map(row).collect::<Vec<_>>());
        Ok(())
    }

    /// Returns the charge of each type.
    fn charges(&self) -> Result<Vec<f64>, String> {
        let mut charges: Vec<Option<f64>> = vec![None; self.state.types.len()];
        if let Some(Values::Real(all)) = self.state.arrays.get("charge").map(|a| &a.values) {
            for (kind, q) in self.state.type_id.iter().zip(all) {
                let of_type = charges[*kind as usize].get_or_insert(*q);
                if *of_type != *q {
                    let name = &self.state.types[*kind as usize];
                    return Err(format!(
                        "particles of the type {name} have the charges {of_type} and {q}; the shifted Coulomb potential is a \
                         formula for each pair of types and needs one charge for a type: choose --coulomb reaction-field or pppm"
                    ));
                }
            }
        }
        Ok(charges.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Returns the largest time step that resolves the stiffest bond.
    fn time_step(&self) -> f64 {
        let rate2 = |b: &galamost_plugin_api::snapshot::Link<2>| {
            let k = self.interactions.stiffness.get(&self.state.bond_types[b.kind as usize]);
            let [m, n] = b.tags.map(|t| self.state.mass[t as usize]);
            k.filter(|_| m > 0.0 && n > 0.0).map_or(0.0, |k| k * (1.0 / m + 1.0 / n))
        };
        fitting_time_step(self.state.bonds.iter().map(rate2).fold(0.0, f64::max))
    }

    fn run(&self, out: &mut String) {
        let (stem, dt, temperature) = (&self.stem, self.time_step(), self.settings.temperature);
        let kt = number(GAS_CONSTANT * temperature);
        let massive: Vec<f64> = self.state.mass.iter().copied().filter(|m| *m > 0.0).collect();
        let mean = massive.iter().sum::<f64>() / massive.len().max(1) as f64;
        let friction = (10.0 * mean).round().max(1.0) / 10.0;
        let name = |ending: &str| format!("{:?}", format!("{stem}.{ending}"));
        let _ = write!(
            out,
            "    analyzers: [\n        Thermo(every: 100, file: {}),\n        Gsd(every: 1_000, file: {}),\n    ],\n    stages: [\n",
            name("csv"),
            name("gsd")
        );
        if !moves(self.state) {
            let constrained = self.interactions.components.iter().any(|c| c.name == "Constraints");
            relaxation(out, dt, GAS_CONSTANT * temperature / mean, constrained);
        }
        let _ = write!(
            out,
            "        // {temperature} K, friction of 1/ps for the mean mass\n        \
             (name: \"run\", steps: 100_000, dt: {dt:?}, integrators: [ Langevin(kT: {kt}, gamma: {friction:?}) ]),\n    ],\n"
        );
    }
}

/// Returns the formula of C₁₂/r¹² − C₆/r⁶ + qq/r with the shift function of GROMACS between `r1` and `rc`.
fn shifted(r1: f64, rc: f64) -> String {
    let [s12, s6, s1] = [12, 6, 1].map(|n| shift_function(n, r1, rc));
    format!("c12*({s12}) - c6*({s6}) + qq*({s1})")
}

/// Returns r⁻ⁿ − A/3 (r − r₁)³ − B/4 (r − r₁)⁴ − C: force and its derivative vanish at `rc`.
fn shift_function(n: i32, r1: f64, rc: f64) -> String {
    let (alpha, width) = (f64::from(n), rc - r1);
    let scale = rc.powi(n + 2) * width * width;
    let a = -alpha * ((alpha + 4.0) * rc - (alpha + 1.0) * r1) / scale;
    let b = alpha * ((alpha + 3.0) * rc - (alpha + 1.0) * r1) / (scale * width);
    let c = rc.powi(-n) - a / 3.0 * width.powi(3) - b / 4.0 * width.powi(4);
    let signed = |x: f64| if x < 0.0 { format!("+ {:?}", -x) } else { format!("- {x:?}") };
    let inner = format!("{:?}*(r - {r1:?})^3 {}*(r - {r1:?})^4", -a / 3.0, signed(b / 4.0));
    format!("r^-{n} {} + if(r < {r1:?}, 0, {inner})", signed(c))
}

#[cfg(test)]
mod tests {
    use super::shift_function;

    /// The constants of r⁻⁶ from 0.9 to 1.2 in plain numbers.
    #[test]
    fn the_shift_function_is_that_of_gromacs() {
        // A = −6 (10·2 − 7·1)/(2⁸ 1²) = −78/256, B = 6 (9·2 − 7)/2⁸ = 66/256, C = 1/64 + 26/256 − 16.5/256
        let text = shift_function(6, 1.0, 2.0);
        assert_eq!(text, "r^-6 - 0.052734375 + if(r < 1.0, 0, 0.1015625*(r - 1.0)^3 - 0.064453125*(r - 1.0)^4)");
    }
}
