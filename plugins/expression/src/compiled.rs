//! A formula in the pipeline, and its compiled form.

use crate::formula::graph::{Graph, Id};
use crate::formula::parse::{FUNCTION_NAMES, Parsed, parse};
use crate::formula::program::{Op, Program, lower};
use crate::parameters::Values;
use galamost_plugin_api::error::{Errors, InputError, Position, nearest};
use galamost_plugin_api::params::{FromValue, Value};
use std::marker::PhantomData;

/// Variables and derivatives of one kind of formula.
pub trait Domain: Send + Sync + 'static {
    /// The quantity and its variables, for messages.
    const DESCRIPTION: &'static str;
    /// Inputs of the program, as CUDA C++.
    const INPUTS: &'static [&'static str];
    /// The input that is a squared distance.
    const DISTANCE: Option<usize> = None;
    /// Parameters that the component sets.
    const BUILT_IN: &'static [&'static str] = &[];
    /// Returns the variables that a formula can use.
    fn variables(graph: &mut Graph) -> Vec<(&'static str, Id)>;
    /// Returns the derivatives that the loop needs.
    fn slopes(graph: &mut Graph, energy: Id) -> Vec<Id>;
}

/// A formula in the pipeline.
#[derive(Debug)]
pub struct Formula<D> {
    parsed: Parsed,
    at: Position,
    /// Positions of the first uses of the parameters, in their order.
    parameter_positions: Vec<Position>,
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
            Err(error) => {
                errors.push(InputError::at(value.place(start + error.at), error.message));
                return None;
            }
        };
        let at = value.place(start);
        if parsed.variables.is_empty() {
            let names: Vec<_> = variables.iter().map(|(name, _)| format!("`{name}`")).collect();
            let message = format!("the formula gives no force: it does not depend on {}", names.join(" or "));
            errors.push(InputError::at(at, message));
            return None;
        }
        let parameter_positions = parsed.parameters.iter().map(|p| value.place(start + p.at)).collect();
        let variables = parsed.variables.iter().map(|(name, n)| (*name, value.place(start + n))).collect();
        Some(Self { parsed, at, parameter_positions, variables, domain: PhantomData })
    }
    fn describe() -> String {
        format!("a formula in quotes: {}", D::DESCRIPTION)
    }
}

impl<D: Domain> Formula<D> {
    /// Returns the position where the formula starts.
    pub fn at(&self) -> Position {
        self.at
    }

    /// Returns the position of the first use of a variable.
    pub fn position_of(&self, variable: &str) -> Option<Position> {
        self.variables.iter().find(|(name, _)| *name == variable).map(|(_, at)| *at)
    }

    /// Returns whether the formula has a power of a base that may be negative whose exponent is not a number in its text.
    pub fn has_power_of_parameters(&self) -> bool {
        self.parsed.graph.has_power_of_parameters()
    }

    /// Compares the parameters of the formula with those set for each type. Returns whether they match.
    fn check_names(&self, rows: &[(Position, &Values)], errors: &mut Errors) -> bool {
        let before = errors.0.len();
        let used = || self.parsed.parameters.iter().map(|p| p.name.as_str());
        let variables = D::variables(&mut Graph::default());
        let reserved = |name: &str| matches!(name, "pi" | "π") || variables.iter().any(|(v, _)| *v == name);
        let mut misspelled = vec![];
        for (parameter, at) in self.parsed.parameters.iter().zip(&self.parameter_positions) {
            let name = parameter.name.as_str();
            if D::BUILT_IN.contains(&name) {
                continue;
            }
            let missing: Vec<_> = rows.iter().filter(|(_, row)| row.get(name).is_none()).collect();
            if missing.len() < rows.len() {
                for (at, _) in missing {
                    errors.push(InputError::at(*at, format!("missing parameter `{name}` of the formula")));
                }
            } else if !rows.is_empty() {
                let unused = |n: &&str| !reserved(n) && !used().any(|u| u == *n);
                let unused = rows.iter().flat_map(|(_, row)| row.names()).filter(unused);
                let hint = if let Some(n) = nearest(name, unused) {
                    misspelled.push(n.to_string());
                    format!("did you mean `{n}`?")
                } else if let Some(f) = nearest(name, FUNCTION_NAMES).filter(|_| name.len() > 2) {
                    format!("set it for each type, or did you mean the function `{f}`?")
                } else {
                    "set it for each type".into()
                };
                errors.push(InputError::at(*at, format!("unknown parameter `{name}`; {hint}")));
            }
        }
        for (_, row) in rows {
            for (name, at) in row.positions().filter(|(n, _)| !used().any(|u| u == *n)) {
                if D::BUILT_IN.contains(&name) || misspelled.iter().any(|m| m == name) {
                    continue;
                }
                if reserved(name) {
                    let message =
                        format!("`{name}` is a variable or constant of the formula; give the parameter another name");
                    errors.push(InputError::at(at, message));
                    continue;
                }
                let hint = match nearest(name, used()) {
                    Some(n) => format!("did you mean `{n}`?"),
                    None if self.parsed.parameters.is_empty() => "the formula has no parameters".into(),
                    None => format!("its parameters are {}", used().collect::<Vec<_>>().join(", ")),
                };
                errors.push(InputError::at(at, format!("the formula does not use `{name}`; {hint}")));
            }
        }
        errors.0.len() == before
    }

    /// Compiles the formula; `None` if its parameters do not match or the derivative is undefined.
    pub fn compile(&self, rows: &[(Position, &Values)], errors: &mut Errors) -> Option<CompiledFormula> {
        if !self.check_names(rows, errors) {
            return None;
        }
        let (mut graph, energy) = (self.parsed.graph.clone(), self.parsed.root);
        let mut outputs = D::slopes(&mut graph, energy);
        outputs.push(energy);
        let (full, slots) = lower(&mut graph, &outputs, D::DISTANCE);
        let undefined = full.ops.iter().any(|op| matches!(op, Op::Number(x) if !x.value().is_finite()));
        if undefined {
            errors.push(InputError::at(self.at, "the derivative of the formula is infinite or undefined everywhere"));
            return None;
        }
        let force = full.first_outputs(outputs.len() - 1);
        let parameters = self.parsed.parameters.iter().map(|p| p.name.clone()).collect();
        Some(CompiledFormula { graph, slots, parameters, force, full })
    }
}

/// A formula as programs, with the subexpressions that depend on parameters alone.
#[derive(Clone, Debug)]
pub struct CompiledFormula {
    graph: Graph,
    slots: Vec<Id>,
    parameters: Vec<String>,
    /// Computes the derivatives.
    pub force: Program,
    /// Computes the derivatives and the energy.
    pub full: Program,
}

impl CompiledFormula {
    /// Returns the number of coefficients in a row.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Returns the constants of the formula that are not coefficients of rows.
    pub fn constants(&self) -> Vec<f64> {
        let number = |op: &Op| if let Op::Number(x) = op { Some(x.value()) } else { None };
        self.full.ops.iter().filter_map(number).collect()
    }

    /// Returns the coefficients of a row; `built_in` are the parameters that the component sets.
    ///
    /// # Errors
    /// Returns an error if a parameter is missing or a coefficient is infinite or undefined.
    pub fn row(&self, values: &Values, built_in: &[(&str, f64)]) -> Result<Vec<f64>, String> {
        let value = |name: &String| {
            let own = built_in.iter().find(|(n, _)| n == name).map(|(_, x)| *x);
            own.or_else(|| values.get(name)).ok_or_else(|| format!("missing parameter `{name}` of the formula"))
        };
        let parameters = self.parameters.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        let row: Vec<f64> = self.slots.iter().map(|s| self.graph.value(*s, &[], &parameters)).collect();
        if row.iter().all(|x| x.is_finite()) {
            Ok(row)
        } else {
            Err("these values make a coefficient of the formula infinite or undefined".into())
        }
    }
}
