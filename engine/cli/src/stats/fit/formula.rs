//! Formulas of `x` and parameters.

use super::Points;
use exmex::{Express as _, FlatEx};

/// Deviation from linearity relative to the values, below which it is rounding.
const LINEAR: f64 = 1e-12;
/// Difference relative to the values, below which it has too few digits for a derivative.
const ROUNDING: f64 = 1e-9;
/// Largest number of nested parentheses, signs and powers.
const DEPTH: usize = 200;
/// Message for a formula that cannot be read.
const INVALID: &str = "the formula is not valid; write for example \"a + b*x\"";

/// A formula of `x` and parameters.
pub(super) struct Formula {
    expression: FlatEx<f64>,
    /// Index of each variable in the list of parameters; `None` for `x`.
    variables: Vec<Option<usize>>,
    /// Names of the parameters.
    pub names: Vec<String>,
}

impl Formula {
    /// Parses a formula. Powers are as in mathematics: −x^2 is −(x²), and x^y^z is x^(y^z).
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(expression) = grouped(text).and_then(|grouped| FlatEx::<f64>::parse(&grouped).ok()) else {
            // errors of the parser name parts of the text as it was written
            return Err(FlatEx::<f64>::parse(text).err().map_or_else(|| INVALID.into(), |e| reason(&e.to_string())));
        };
        let all = expression.var_names().to_vec();
        if !all.iter().any(|n| n == "x") {
            return Err(
                "`x` does not occur in the formula; write for example \"a + b*x\", where x is the column of --x".into(),
            );
        }
        let names: Vec<String> = all.iter().filter(|n| *n != "x").cloned().collect();
        if names.is_empty() {
            return Err("the formula has no parameters; write for example \"a + b*x\"".into());
        }
        let variables = all.iter().map(|n| names.iter().position(|o| o == n)).collect();
        Ok(Self { expression, variables, names })
    }

    /// Returns the value at x.
    fn at(&self, x: f64, parameters: &[f64]) -> f64 {
        let values: Vec<f64> = self.variables.iter().map(|v| v.map_or(x, |k| parameters[k])).collect();
        self.expression.eval(&values).unwrap_or(f64::NAN)
    }

    /// Returns the weighted residuals (y − f)/σ.
    pub fn residuals(&self, points: &Points, parameters: &[f64]) -> Vec<f64> {
        let one = |(k, (x, y)): (usize, (&f64, &f64))| (y - self.at(*x, parameters)) / points.sigma(k);
        points.x.iter().zip(&points.y).enumerate().map(one).collect()
    }

    /// Returns f of all points after a change of one parameter.
    pub fn moved(&self, points: &Points, parameters: &[f64], k: usize, by: f64) -> Vec<f64> {
        let mut p = parameters.to_vec();
        p[k] += by;
        points.x.iter().map(|x| self.at(*x, &p)).collect()
    }

    /// Returns a step of a parameter in which the formula is linear. It changes f by no less than f, so that differences keep
    /// all digits.
    fn long_step(&self, points: &Points, parameters: &[f64], k: usize) -> f64 {
        let largest = points.x.iter().map(|x| self.at(*x, parameters).abs()).fold(0.0, f64::max);
        1.0 + parameters[k].abs() + largest
    }

    /// Returns for each parameter whether the formula is linear in it.
    pub fn linear(&self, points: &Points, parameters: &[f64]) -> Vec<bool> {
        let one = |k: usize| {
            let step = self.long_step(points, parameters, k);
            let at = |by: f64| self.moved(points, parameters, k, by);
            let (down, here, half, up) = (at(-step), at(0.0), at(0.5 * step), at(step));
            (0..here.len()).all(|i| {
                let allowed = LINEAR * (down[i].abs() + here[i].abs() + up[i].abs());
                // comparisons with undefined numbers are false
                (up[i] + down[i] - 2.0 * here[i]).abs() <= allowed
                    && (up[i] + here[i] - 2.0 * half[i]).abs() <= allowed
                    && allowed.is_finite()
            })
        };
        (0..parameters.len()).map(one).collect()
    }

    /// Returns the derivatives of the residuals with respect to each parameter, by central differences.
    pub fn jacobian(&self, points: &Points, parameters: &[f64], linear: &[bool]) -> Vec<Vec<f64>> {
        let both = |k: usize, step: f64| [step, -step].map(|by| self.moved(points, parameters, k, by));
        let one = |k: usize| {
            let (mut step, most) = match linear[k] {
                true => (self.long_step(points, parameters, k), 0.0),
                false => (1e-6 * parameters[k].abs(), 1e-6 * parameters[k].abs().max(1e-3)),
            };
            let [mut up, mut down] = both(k, step);
            let change = largest(up.iter().zip(&down).map(|(u, d)| u - d));
            // a parameter close to 0 by chance, such as the center of a peak
            if step < most && change <= ROUNDING * largest(up.iter().copied()) {
                step = most;
                [up, down] = both(k, step);
            }
            up.iter().zip(down).enumerate().map(|(i, (u, d))| (d - u) / (2.0 * step) / points.sigma(i)).collect()
        };
        (0..parameters.len()).map(one).collect()
    }
}

/// Returns the largest absolute value.
fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |m, x| m.max(x.abs()))
}

/// Returns what is wrong with a formula, without the parser's representation of its operators.
fn reason(message: &str) -> String {
    match message.split_once('{') {
        None => message.into(),
        Some(_) => INVALID.into(),
    }
}

/// Returns a formula with parentheses around all signs and powers, because for the parser a sign binds more tightly than `^`, and
/// powers associate to the left. `None` if the formula is not valid.
fn grouped(text: &str) -> Option<String> {
    let mut grouping = Grouping { rest: text.trim_start(), depth: 0 };
    let out = grouping.sum()?;
    grouping.rest.is_empty().then_some(out)
}

/// The rest of a formula, without blanks in front, and the depth of nesting.
struct Grouping<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Grouping<'a> {
    /// Takes the next bytes.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest.trim_start();
        taken
    }

    /// Takes the next character if it is one of these.
    fn sign(&mut self, signs: &[char]) -> Option<&'a str> {
        self.rest.starts_with(signs).then(|| self.take(1))
    }

    /// Takes all characters in front that satisfy a condition.
    fn run(&mut self, condition: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c: char| !condition(c)).unwrap_or(self.rest.len());
        self.take(end)
    }

    fn deeper(&mut self, part: impl Fn(&mut Self) -> Option<String>) -> Option<String> {
        self.depth += 1;
        let out = if self.depth > DEPTH { None } else { part(self) };
        self.depth -= 1;
        out
    }

    fn sum(&mut self) -> Option<String> {
        let mut out = self.product()?;
        while let Some(sign) = self.sign(&['+', '-']) {
            out = out + sign + &self.product()?;
        }
        Some(out)
    }

    fn product(&mut self) -> Option<String> {
        let mut out = self.signed()?;
        while let Some(sign) = self.sign(&['*', '/']) {
            out = out + sign + &self.signed()?;
        }
        Some(out)
    }

    fn signed(&mut self) -> Option<String> {
        match self.sign(&['+', '-']) {
            Some("-") => Some(format!("(-({}))", self.deeper(Self::signed)?)),
            Some(_) => self.deeper(Self::signed),
            None => self.power(),
        }
    }

    fn power(&mut self) -> Option<String> {
        let base = self.operand()?;
        match self.sign(&['^']) {
            Some(_) => Some(format!("(({base})^({}))", self.deeper(Self::signed)?)),
            None => Some(base),
        }
    }

    /// Returns a number. The parser knows no exponents.
    fn number(&mut self) -> Option<String> {
        let end = |text: &str, condition: fn(char) -> bool| text.find(|c| !condition(c)).unwrap_or(text.len());
        let mantissa = end(self.rest, |c| c.is_ascii_digit() || c == '.');
        let exponent = self.rest[mantissa..].strip_prefix(['e', 'E']).map_or(0, |tail| {
            let sign = usize::from(tail.starts_with(['+', '-']));
            match end(&tail[sign..], |c| c.is_ascii_digit()) {
                0 => 0,
                digits => 1 + sign + digits,
            }
        });
        let text = self.take(mantissa + exponent);
        if exponent == 0 { Some(text.into()) } else { text.parse().ok().map(|number: f64| number.to_string()) }
    }

    /// Returns a number, a name, a function of an operand, or a group in parentheses.
    fn operand(&mut self) -> Option<String> {
        let first = self.rest.chars().next()?;
        if first == '(' {
            return self.deeper(Self::group);
        }
        if first.is_ascii_digit() || first == '.' {
            return self.number();
        }
        if first == '{' {
            let end = self.rest.find('}')?;
            return Some(self.take(end + 1).into());
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let name = self.run(is_word);
        match self.rest.chars().next() {
            _ if name.is_empty() => None,
            Some('(') => Some(format!("{name}{}", self.deeper(Self::group)?)),
            Some(c) if is_word(c) => Some(format!("{name}({})", self.deeper(Self::operand)?)),
            _ => Some(name.into()),
        }
    }

    /// Returns a group in parentheses: a sum, or arguments of a function.
    fn group(&mut self) -> Option<String> {
        self.sign(&['('])?;
        let mut out = format!("({}", self.sum()?);
        while self.sign(&[',']).is_some() {
            out = out + "," + &self.sum()?;
        }
        self.sign(&[')']).map(|_| out + ")")
    }
}
