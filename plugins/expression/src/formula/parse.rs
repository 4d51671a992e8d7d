//! Parser: from text to a graph.
//!
//! ```text
//! sum       = product { ("+" | "-") product }
//! product   = sign { ("*" | "/") sign }
//! sign      = { "+" | "-" } power
//! power     = value [ "^" sign ]
//! value     = number | name | function "(" sum { "," sum } ")" | "(" sum ")"
//!           | "if" "(" sum ("<" | "<=" | ">" | ">=") sum "," sum "," sum ")"
//! ```
//!
//! So −x^2 is −(x²), and x^y^z is x^(y^z). Existing crates with derivatives (exmex is the best maintained) report errors
//! without their position and do not expose the syntax tree, so they can neither use r² as the variable nor produce
//! programs for CPU and CUDA.

use super::graph::{Function, Graph, Id, Node};
use super::tokens::{FormulaError, Token, tokens};

/// Maximum nesting depth of parentheses, signs and powers.
const DEPTH: usize = 100;
/// Maximum number of tokens: the time for simplification and derivatives grows faster than the length.
const LENGTH: usize = 4000;

/// Name and first position of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    pub at: usize,
}

/// A parsed formula.
#[derive(Clone, Debug)]
pub struct Parsed {
    pub graph: Graph,
    pub root: Id,
    /// All names that are neither variables nor functions.
    pub parameters: Vec<Parameter>,
    /// First position of each variable that the formula uses.
    pub variables: Vec<(&'static str, usize)>,
}

/// Parses a formula. `variables` are names and nodes in `graph`.
///
/// # Errors
/// Returns the first syntax error with its position.
pub fn parse(text: &str, graph: Graph, variables: &[(&'static str, Id)]) -> Result<Parsed, FormulaError> {
    let tokens = tokens(text)?;
    if let Some((_, at)) = tokens.get(LENGTH) {
        let message = format!("the formula is too long: more than {LENGTH} numbers, names and signs");
        return Err(FormulaError::new(*at, message));
    }
    let mut p = Parser { tokens, next: 0, depth: 0, graph, variables, parameters: vec![], used: vec![] };
    let root = p.sum()?;
    match p.peek() {
        (Token::End, _) => Ok(Parsed { graph: p.graph, root, parameters: p.parameters, variables: p.used }),
        (token, at) if begins_value(token) => Err(operator_missing(token, at)),
        (token, at) => Err(FormulaError::new(at, format!("unexpected {}", token.describe()))),
    }
}

fn begins_value(token: Token<'_>) -> bool {
    matches!(token, Token::Number(_) | Token::Name(_) | Token::Sign("("))
}

fn operator_missing(token: Token<'_>, at: usize) -> FormulaError {
    FormulaError::new(at, format!("missing operator before {}: multiply with `*`", token.describe()))
}

struct Parser<'a> {
    tokens: Vec<(Token<'a>, usize)>,
    next: usize,
    depth: usize,
    graph: Graph,
    variables: &'a [(&'static str, Id)],
    parameters: Vec<Parameter>,
    used: Vec<(&'static str, usize)>,
}

/// Functions of one argument that the graph supports; the other functions are composed of them.
const FUNCTIONS: [(&str, Function); 10] = [
    ("exp", Function::Exp),
    ("ln", Function::Ln),
    ("log", Function::Ln),
    ("sqrt", Function::Sqrt),
    ("sin", Function::Sin),
    ("cos", Function::Cos),
    ("acos", Function::Acos),
    ("tanh", Function::Tanh),
    ("abs", Function::Abs),
    ("wrap", Function::Wrap),
];

/// Names of all functions.
pub const FUNCTION_NAMES: [&str; 14] =
    ["exp", "ln", "log", "sqrt", "sin", "cos", "acos", "tanh", "abs", "wrap", "tan", "min", "max", "if"];

impl<'a> Parser<'a> {
    fn peek(&self) -> (Token<'a>, usize) {
        self.tokens[self.next]
    }

    /// Consumes the next token if it is one of these signs.
    fn take(&mut self, signs: &[&str]) -> Option<(&'a str, usize)> {
        match self.peek() {
            (Token::Sign(s), at) if signs.contains(&s) => {
                self.next += 1;
                Some((s, at))
            }
            _ => None,
        }
    }

    fn expect(&mut self, sign: &str, why: &str) -> Result<usize, FormulaError> {
        self.take(&[sign]).map(|(_, at)| at).ok_or_else(|| {
            let (token, at) = self.peek();
            if begins_value(token) {
                return operator_missing(token, at);
            }
            FormulaError::new(at, format!("expected `{sign}`{why}, found {}", token.describe()))
        })
    }

    /// Checks that the numbers of a result are finite.
    fn finite(&self, id: Id, at: usize) -> Result<Id, FormulaError> {
        let number = match self.graph.node(id) {
            Node::Number(x) | Node::Product { coefficient: x, .. } | Node::Sum { constant: x, .. } => x.value(),
            _ => 0.0,
        };
        if number.is_finite() { Ok(id) } else { Err(FormulaError::new(at, "this is infinite or undefined")) }
    }

    fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, FormulaError>) -> Result<T, FormulaError> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(FormulaError::new(self.peek().1, format!("more than {DEPTH} nested parentheses")));
        }
        let result = f(self);
        self.depth -= 1;
        result
    }

    fn sum(&mut self) -> Result<Id, FormulaError> {
        let mut left = self.product()?;
        while let Some((sign, _)) = self.take(&["+", "-"]) {
            let right = self.product()?;
            left = if sign == "+" { self.graph.add(left, right) } else { self.graph.subtract(left, right) };
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Id, FormulaError> {
        let mut left = self.sign()?;
        while let Some((sign, at)) = self.take(&["*", "/"]) {
            if let (Token::Sign("*"), at) = self.peek() {
                return Err(FormulaError::new(at, "write powers with `^`"));
            }
            let right = self.sign()?;
            left = if sign == "*" { self.graph.multiply(left, right) } else { self.graph.divide(left, right) };
            left = self.finite(left, at)?;
        }
        Ok(left)
    }

    fn sign(&mut self) -> Result<Id, FormulaError> {
        match self.take(&["+", "-"]) {
            Some(("-", _)) => {
                let x = self.deeper(Self::sign)?;
                Ok(self.graph.scale(-1.0, x))
            }
            Some(_) => self.deeper(Self::sign),
            None => self.power(),
        }
    }

    fn power(&mut self) -> Result<Id, FormulaError> {
        let base = self.value()?;
        let Some((_, at)) = self.take(&["^"]) else { return Ok(base) };
        let exponent = self.deeper(Self::sign)?;
        let power = self.graph.general_power(base, exponent);
        self.finite(power, at)
    }

    fn value(&mut self) -> Result<Id, FormulaError> {
        let (token, at) = self.peek();
        self.next += 1;
        match token {
            Token::Number(x) => {
                let id = self.graph.number(x);
                self.finite(id, at)
            }
            Token::Name(name) => {
                if let (Token::Sign("("), _) = self.peek() {
                    self.next += 1;
                    return self.deeper(|p| p.call(name, at));
                }
                self.name(name, at)
            }
            Token::Sign("(") => {
                let inner = self.deeper(Self::sum)?;
                self.expect(")", "")?;
                Ok(inner)
            }
            _ => {
                self.next -= 1;
                Err(FormulaError::new(at, format!("expected a number, a name or `(`, found {}", token.describe())))
            }
        }
    }

    fn name(&mut self, name: &str, at: usize) -> Result<Id, FormulaError> {
        if let Some((name, id)) = self.variables.iter().find(|(v, _)| *v == name) {
            if !self.used.iter().any(|(v, _)| v == name) {
                self.used.push((*name, at));
            }
            return Ok(*id);
        }
        if matches!(name, "pi" | "π") {
            return Ok(self.graph.number(std::f64::consts::PI));
        }
        if FUNCTION_NAMES.contains(&name) {
            return Err(FormulaError::new(at, format!("`{name}` is a function: write `{name}(…)`")));
        }
        let known = self.parameters.iter().position(|p| p.name == name);
        let index = known.unwrap_or_else(|| {
            self.parameters.push(Parameter { name: name.into(), at });
            self.parameters.len() - 1
        });
        Ok(self.graph.parameter(index))
    }

    /// Parses the arguments of a function, after the opening parenthesis.
    fn call(&mut self, name: &str, at: usize) -> Result<Id, FormulaError> {
        let close = |p: &mut Self| p.expect(")", &format!(" at the end of `{name}(…)`"));
        let comma = |p: &mut Self| p.expect(",", &format!(": `{name}` takes more than one argument"));
        let result = match name {
            "if" => {
                let left = self.sum()?;
                let Some((sign, _)) = self.take(&["<", "<=", ">", ">="]) else {
                    let (token, at) = self.peek();
                    let what = token.describe();
                    return Err(FormulaError::new(at, format!("expected `<`, `<=`, `>` or `>=`, found {what}")));
                };
                let right = self.sum()?;
                comma(self)?;
                let yes = self.sum()?;
                comma(self)?;
                let no = self.sum()?;
                let (a, b) = if sign.starts_with('<') { (left, right) } else { (right, left) };
                self.graph.select(sign.ends_with('='), [a, b, yes, no])
            }
            "min" | "max" => {
                let a = self.sum()?;
                comma(self)?;
                let b = self.sum()?;
                self.graph.select(false, if name == "min" { [a, b, a, b] } else { [b, a, a, b] })
            }
            "tan" => {
                let x = self.sum()?;
                let (sin, cos) = (self.graph.call(Function::Sin, x), self.graph.call(Function::Cos, x));
                self.graph.divide(sin, cos)
            }
            _ => {
                let Some((_, function)) = FUNCTIONS.iter().find(|(n, _)| *n == name) else {
                    let all = FUNCTION_NAMES.join(", ");
                    return Err(FormulaError::new(at, format!("unknown function `{name}`; the functions are {all}")));
                };
                let x = self.sum()?;
                self.graph.call(*function, x)
            }
        };
        close(self)?;
        self.finite(result, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> f64 {
        let mut graph = Graph::default();
        let x = graph.variable(0);
        let p = parse(text, graph, &[("x", x)]).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        p.graph.value(p.root, &[1.7], &[0.6, 2.5])
    }

    #[test]
    fn formulas_evaluate_correctly() {
        let (x, a, b): (f64, f64, f64) = (1.7, 0.6, 2.5);
        let cases = [
            ("1 + 2*3", 7.0),
            ("2^3^2", 512.0),
            ("-x^2", -x * x),
            ("2^-1", 0.5),
            ("8/4/2", 1.0),
            ("3 - 2 - 1", 0.0),
            ("-(x - 1)*-2", 2.0 * (x - 1.0)),
            ("a*exp(-b*x)", a * (-b * x).exp()),
            ("a + b*x^2.5", a + b * x.powf(2.5)),
            ("x^b + a - a", x.powf(0.6)),
            ("if(x < 2, 1, 0) + if(x >= 1.8, 10, 20)", 21.0),
            ("min(x, 3) + max(x, 3)", x + 3.0),
            ("abs(-x) + tan(x)*cos(x) - sin(x)", x),
            ("sqrt(x)*sqrt(x)/x + ln(exp(x)) + acos(cos(1)) + tanh(0)", 2.0 + x),
            ("wrap(x + 4*pi)", x),
            ("2*π", std::f64::consts::TAU),
            (" 1e2 + .5 ", 100.5),
        ];
        for (text, truth) in cases {
            let v = value(text);
            assert!((v - truth).abs() < 1e-14 * truth.abs().max(1.0), "{text}: {v} instead of {truth}");
        }
    }

    #[test]
    fn errors_have_their_positions() {
        let cases = [
            ("4*(x + 1", 8, "expected `)`"),
            ("4*x)", 3, "unexpected `)`"),
            ("(x 2)", 3, "missing operator"),
            ("2(x)", 1, "missing operator"),
            ("x*1/0", 3, "infinite or undefined"),
            ("2x", 1, "missing operator"),
            ("x^^2", 2, "expected a number"),
            ("x**2", 2, "write powers with `^`"),
            ("x + ", 4, "found the end"),
            ("", 0, "expected a number"),
            ("a*foo(x)", 2, "unknown function `foo`"),
            ("a*exp x", 2, "`exp` is a function"),
            ("a*exp(x, 2)", 7, "expected `)` at the end of `exp(…)`"),
            ("if(x, 1, 2)", 4, "expected `<`"),
            ("min(x)", 5, "`min` takes more than one argument"),
            ("x = 2", 2, "unexpected character `=`"),
            ("α·x", 2, "multiply with `*`"),
            ("x + 1/0", 5, "infinite or undefined"),
            ("ln(-1)", 0, "infinite or undefined"),
        ];
        for (text, at, message) in cases {
            let mut graph = Graph::default();
            let x = graph.variable(0);
            let e = parse(text, graph, &[("x", x)]).expect_err(text);
            assert_eq!(e.at, at, "{text}: {}", e.message);
            assert!(e.message.contains(message), "{text}: {}", e.message);
        }
        let deep = format!("{}x{}", "(".repeat(1000), ")".repeat(1000));
        assert!(parse(&deep, Graph::default(), &[]).expect_err("deep").message.contains("nested"));
    }
}
