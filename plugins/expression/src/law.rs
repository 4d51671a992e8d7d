//! A formula as a component reads it, and what becomes of it.

use crate::formula::graph::{Graph, Id};
use crate::formula::parse::{FUNCTION_NAMES, Parsed, parse};
use crate::formula::program::{Program, lower};
use crate::numbers::Numbers;
use galamost_plugin_api::error::{Errors, InputError, Position, nearest};
use galamost_plugin_api::params::{FromValue, Value};
use std::marker::PhantomData;

/// What a kind of formula is about.
pub trait Domain: Send + Sync + 'static {
    /// What a formula of this kind gives, with its variables: for messages.
    const WHAT: &'static str;
    /// The program's variables, as CUDA C++.
    const INPUTS: &'static [&'static str];
    /// The variable that is the square of a distance.
    const DISTANCE: Option<usize> = None;
    /// Parameters that the component gives.
    const GIVEN: &'static [&'static str] = &[];
    /// Makes the variables that a formula may name.
    fn variables(graph: &mut Graph) -> Vec<(&'static str, Id)>;
    /// What the loop wants besides the energy.
    fn slopes(graph: &mut Graph, energy: Id) -> Vec<Id>;
}

/// A formula in the pipeline.
#[derive(Debug)]
pub struct Formula<D> {
    parsed: Parsed,
    at: Position,
    /// Where the parameters stand, in their order.
    places: Vec<Position>,
    variables: Vec<(&'static str, Position)>,
    domain: PhantomData<D>,
}

impl<D: Domain> FromValue for Formula<D> {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let text = value.text();
        // "…", r"…" or r#"…"#
        let hashes = text.strip_prefix('r').map_or(0, |t| t.bytes().take_while(|b| *b == b'#').count());
        let start = text.find('"').map(|n| n + 1).filter(|n| *n == hashes + 1 + usize::from(text.starts_with('r')));
        let end = text.len().checked_sub(1 + hashes);
        let inside = start.zip(end).filter(|(start, end)| start <= end && text.is_char_boundary(*end));
        let Some((start, end)) = inside else {
            errors.push(value.error(format!("expected {}", Self::describe())));
            return None;
        };
        let inner = &text[start..end];
        let mut graph = Graph::default();
        let variables = D::variables(&mut graph);
        let parsed = match parse(inner, graph, &variables) {
            Ok(parsed) => parsed,
            Err(mistake) => {
                errors.push(InputError::at(value.place(start + mistake.at), mistake.message));
                return None;
            }
        };
        let at = value.place(start);
        if parsed.variables.is_empty() {
            let names: Vec<_> = variables.iter().map(|(name, _)| format!("`{name}`")).collect();
            let message = format!("the formula gives no force: it does not contain {}", names.join(" or "));
            errors.push(InputError::at(at, message));
            return None;
        }
        let places = parsed.parameters.iter().map(|p| value.place(start + p.at)).collect();
        let variables = parsed.variables.iter().map(|(name, n)| (*name, value.place(start + n))).collect();
        Some(Self { parsed, at, places, variables, domain: PhantomData })
    }
    fn describe() -> String {
        format!("a formula in quotes: {}", D::WHAT)
    }
}

impl<D: Domain> Formula<D> {
    /// Where the formula begins.
    pub fn at(&self) -> Position {
        self.at
    }

    /// Where a variable stands first.
    pub fn place_of(&self, variable: &str) -> Option<Position> {
        self.variables.iter().find(|(name, _)| *name == variable).map(|(_, at)| *at)
    }

    /// Compares the formula's parameters with those that are given in each row.
    fn check_names(&self, rows: &[(Position, &Numbers)], errors: &mut Errors) -> bool {
        let before = errors.0.len();
        let used = || self.parsed.parameters.iter().map(|p| p.name.as_str());
        let mut meant = vec![];
        for (parameter, at) in self.parsed.parameters.iter().zip(&self.places) {
            let name = parameter.name.as_str();
            if D::GIVEN.contains(&name) {
                continue;
            }
            let without: Vec<_> = rows.iter().filter(|(_, row)| row.get(name).is_none()).collect();
            if without.len() < rows.len() {
                for (at, _) in without {
                    errors.push(InputError::at(*at, format!("missing parameter `{name}` of the formula")));
                }
            } else if !rows.is_empty() {
                let spare = rows.iter().flat_map(|(_, row)| row.names()).filter(|n| !used().any(|u| u == *n));
                let hint = if let Some(n) = nearest(name, spare) {
                    meant.push(n.to_string());
                    format!("did you mean `{n}`?")
                } else if let Some(f) = nearest(name, FUNCTION_NAMES).filter(|_| name.len() > 2) {
                    format!("give its number with each row, or did you mean the function `{f}`?")
                } else {
                    "give its number with each row".into()
                };
                errors.push(InputError::at(*at, format!("nothing is known of `{name}`; {hint}")));
            }
        }
        for (_, row) in rows {
            for (name, at) in row.places().filter(|(n, _)| !used().any(|u| u == *n)) {
                if D::GIVEN.contains(&name) || meant.iter().any(|m| m == name) {
                    continue;
                }
                let hint = match nearest(name, used()) {
                    Some(n) => format!("did you mean `{n}`?"),
                    None if self.parsed.parameters.is_empty() => "it has no parameters".into(),
                    None => format!("its parameters are {}", used().collect::<Vec<_>>().join(", ")),
                };
                errors.push(InputError::at(at, format!("the formula does not use `{name}`; {hint}")));
            }
        }
        errors.0.len() == before
    }

    /// What is computed, if the formula and its parameters fit together.
    pub fn law(&self, rows: &[(Position, &Numbers)], errors: &mut Errors) -> Option<Law> {
        if !self.check_names(rows, errors) {
            return None;
        }
        let (mut graph, energy) = (self.parsed.graph.clone(), self.parsed.root);
        let mut outputs = D::slopes(&mut graph, energy);
        outputs.push(energy);
        let (full, slots) = lower(&mut graph, &outputs, D::DISTANCE);
        let bad =
            full.ops.iter().any(|op| matches!(op, crate::formula::program::Op::Number(x) if !x.value().is_finite()));
        if bad {
            errors.push(InputError::at(self.at, "the derivative of the formula is infinite or undefined everywhere"));
            return None;
        }
        let force = full.first_outputs(outputs.len() - 1);
        let parameters = self.parsed.parameters.iter().map(|p| p.name.clone()).collect();
        Some(Law { graph, slots, parameters, force, full })
    }
}

/// A formula ready to be computed.
#[derive(Clone, Debug)]
pub struct Law {
    graph: Graph,
    slots: Vec<Id>,
    parameters: Vec<String>,
    /// The slopes.
    pub force: Program,
    /// The slopes and the energy.
    pub full: Program,
}

impl Law {
    /// Numbers in a row.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The numbers of a row; `given` are the component's own parameters.
    ///
    /// # Errors
    /// A constant is infinite or undefined.
    pub fn row(&self, numbers: &Numbers, given: &[(&str, f64)]) -> Result<Vec<f64>, String> {
        let value = |name: &String| {
            let own = given.iter().find(|(n, _)| n == name).map(|(_, x)| *x);
            own.or_else(|| numbers.get(name)).ok_or_else(|| format!("missing parameter `{name}` of the formula"))
        };
        let parameters = self.parameters.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        let row: Vec<f64> = self.slots.iter().map(|s| self.graph.value(*s, &[], &parameters)).collect();
        if row.iter().all(|x| x.is_finite() && (*x as f32).is_finite()) {
            Ok(row)
        } else {
            Err("these numbers make a constant of the formula infinite or undefined".into())
        }
    }
}
