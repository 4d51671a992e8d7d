//! A formula as a graph without duplicate nodes.
//!
//! Nodes have a normal form, so equal formulas are mostly equal nodes: a sum is a list of nodes with factors and a
//! constant, a product a list of nodes with exponents and a coefficient. Construction simplifies: (σ/r)¹² becomes
//! σ¹² (r²)⁻⁶, since r itself is (r²)^½. Derivatives use the same nodes and share subexpressions with the formula.

use std::collections::HashMap;

/// Index of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub u32);

/// A number by its bits, for comparing and hashing nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bits(u64);

impl From<f64> for Bits {
    fn from(x: f64) -> Self {
        // −0 and 0 are the same number here
        Self(if x == 0.0 { 0.0f64 } else { x }.to_bits())
    }
}

impl Bits {
    /// Returns the number.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// Functions of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    Exp,
    Ln,
    /// 1/x where the logarithm is defined, else NaN: the force must be undefined where the energy is.
    SlopeOfLn,
    Sqrt,
    Sin,
    Cos,
    Acos,
    Tanh,
    Abs,
    /// An angle minus the nearest multiple of 2π.
    Wrap,
}

impl Function {
    /// Evaluates the function.
    pub fn apply(self, x: f64) -> f64 {
        use std::f64::consts::TAU;
        match self {
            Self::Exp => x.exp(),
            Self::Ln => x.ln(),
            Self::SlopeOfLn => {
                if x > 0.0 {
                    1.0 / x
                } else {
                    f64::NAN
                }
            }
            Self::Sqrt => x.sqrt(),
            Self::Sin => x.sin(),
            Self::Cos => x.cos(),
            Self::Acos => x.acos(),
            Self::Tanh => x.tanh(),
            Self::Abs => x.abs(),
            Self::Wrap => x - TAU * (x / TAU).round_ties_even(),
        }
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    Number(Bits),
    /// A quantity that differs between pairs, bonds or particles.
    Variable(usize),
    /// A value that the user sets for each pair of types, bond type, ….
    Parameter(usize),
    /// Σ factor · node + constant.
    Sum {
        terms: Vec<(Id, Bits)>,
        constant: Bits,
    },
    /// coefficient · Π node^exponent.
    Product {
        coefficient: Bits,
        factors: Vec<(Id, Bits)>,
    },
    Call(Function, Id),
    /// base^exponent, where the exponent is not a multiple of ½.
    Power(Id, Id),
    /// `if(a < b, x, y)`, or with `<=`, as [a, b, x, y].
    Select {
        or_equal: bool,
        arms: [Id; 4],
    },
}

/// The nodes of a formula and of everything derived from it.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    ids: HashMap<Node, Id>,
    /// Whether a node contains no variable and is therefore the same for all pairs of two types.
    uniform: Vec<bool>,
    /// Whether a node is known to be nonnegative.
    not_negative: Vec<bool>,
    /// Functions of a variable that are available as variables: (function, argument, result).
    pub shortcuts: Vec<(Function, Id, Id)>,
}

impl Graph {
    /// Returns a node.
    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// Returns whether a node contains no variable.
    pub fn is_uniform(&self, id: Id) -> bool {
        self.uniform[id.0 as usize]
    }

    fn is_not_negative(&self, id: Id) -> bool {
        self.not_negative[id.0 as usize]
    }

    /// Returns the value of a number node.
    pub fn as_number(&self, id: Id) -> Option<f64> {
        match self.node(id) {
            Node::Number(x) => Some(x.value()),
            _ => None,
        }
    }

    /// Returns the index of a node; inserts it if it is new.
    fn insert(&mut self, node: Node) -> Id {
        if let Some(id) = self.ids.get(&node) {
            return *id;
        }
        let even = |x: &Bits| x.value() % 2.0 == 0.0;
        let (uniform, not_negative) = match &node {
            Node::Number(x) => (true, x.value() >= 0.0),
            Node::Variable(_) => (false, false),
            Node::Parameter(_) => (true, false),
            Node::Sum { terms, constant } => (
                terms.iter().all(|(t, _)| self.is_uniform(*t)),
                constant.value() >= 0.0 && terms.iter().all(|(t, c)| c.value() >= 0.0 && self.is_not_negative(*t)),
            ),
            Node::Product { coefficient, factors } => (
                factors.iter().all(|(f, _)| self.is_uniform(*f)),
                coefficient.value() >= 0.0 && factors.iter().all(|(f, e)| even(e) || self.is_not_negative(*f)),
            ),
            Node::Call(f, x) => {
                (self.is_uniform(*x), matches!(f, Function::Exp | Function::SlopeOfLn | Function::Abs | Function::Acos))
            }
            Node::Power(base, exponent) => (self.is_uniform(*base) && self.is_uniform(*exponent), true),
            Node::Select { arms, .. } => (
                arms.iter().all(|a| self.is_uniform(*a)),
                self.is_not_negative(arms[2]) && self.is_not_negative(arms[3]),
            ),
        };
        let id = Id(self.nodes.len() as u32);
        self.nodes.push(node.clone());
        self.ids.insert(node, id);
        self.uniform.push(uniform);
        self.not_negative.push(not_negative);
        id
    }

    /// Returns the node of a number.
    pub fn number(&mut self, x: f64) -> Id {
        self.insert(Node::Number(x.into()))
    }

    /// Returns a variable of either sign.
    pub fn variable(&mut self, index: usize) -> Id {
        self.insert(Node::Variable(index))
    }

    /// Returns a nonnegative variable.
    pub fn square(&mut self, index: usize) -> Id {
        let id = self.variable(index);
        self.not_negative[id.0 as usize] = true;
        id
    }

    /// Returns a parameter.
    pub fn parameter(&mut self, index: usize) -> Id {
        self.insert(Node::Parameter(index))
    }

    /// Returns a + b.
    pub fn add(&mut self, a: Id, b: Id) -> Id {
        self.sum([(a, 1.0), (b, 1.0)], 0.0)
    }

    /// Returns a − b.
    pub fn subtract(&mut self, a: Id, b: Id) -> Id {
        self.sum([(a, 1.0), (b, -1.0)], 0.0)
    }

    /// Returns a b.
    pub fn multiply(&mut self, a: Id, b: Id) -> Id {
        self.product(1.0, [(a, 1.0), (b, 1.0)])
    }

    /// Returns a/b.
    pub fn divide(&mut self, a: Id, b: Id) -> Id {
        self.product(1.0, [(a, 1.0), (b, -1.0)])
    }

    /// Returns factor · a.
    pub fn scale(&mut self, factor: f64, a: Id) -> Id {
        self.product(factor, [(a, 1.0)])
    }

    /// Returns base^exponent for a number as exponent.
    pub fn power(&mut self, base: Id, exponent: f64) -> Id {
        if (2.0 * exponent).fract() == 0.0 {
            self.product(1.0, [(base, exponent)])
        } else {
            let exponent = self.number(exponent);
            self.general_power(base, exponent)
        }
    }

    /// Returns base^exponent, written as base · base^(exponent − 1). The derivative then contains the same power and is
    /// correct at base 0.
    pub fn general_power(&mut self, base: Id, exponent: Id) -> Id {
        if let Some(e) = self.as_number(exponent) {
            if (2.0 * e).fract() == 0.0 {
                return self.power(base, e);
            }
            if let Some(b) = self.as_number(base) {
                return self.number(b.powf(e));
            }
        }
        let less = self.sum([(exponent, 1.0)], -1.0);
        let power = self.insert(Node::Power(base, less));
        self.multiply(base, power)
    }

    /// Returns whether there is a power of a base that may be negative whose exponent is not a number in the formula.
    pub fn has_power_of_parameters(&self) -> bool {
        let may_be_undefined = |base: Id| !self.is_uniform(base) && !self.is_not_negative(base);
        let found = |node: &Node| match node {
            Node::Power(base, exponent) => self.as_number(*exponent).is_none() && may_be_undefined(*base),
            _ => false,
        };
        self.nodes.iter().any(found)
    }

    /// Returns Σ factor · node + constant.
    pub fn sum(&mut self, list: impl IntoIterator<Item = (Id, f64)>, constant: f64) -> Id {
        let mut constant = constant;
        let mut terms: Vec<(Id, f64)> = vec![];
        let mut pending: Vec<(Id, f64)> = list.into_iter().collect();
        pending.reverse();
        while let Some((id, factor)) = pending.pop() {
            match self.node(id).clone() {
                Node::Number(x) => constant += factor * x.value(),
                Node::Sum { terms: inner, constant: c } if factor.abs() == 1.0 => {
                    constant += factor * c.value();
                    pending.extend(inner.iter().rev().map(|(t, c)| (*t, factor * c.value())));
                }
                Node::Product { coefficient, factors } if coefficient.value() != 1.0 => {
                    let unit = self.product(1.0, factors.iter().map(|(f, e)| (*f, e.value())));
                    pending.push((unit, factor * coefficient.value()));
                }
                _ => match terms.iter_mut().find(|(t, _)| *t == id) {
                    Some((_, f)) => *f += factor,
                    None => terms.push((id, factor)),
                },
            }
        }
        terms.retain(|(_, f)| *f != 0.0);
        terms.sort_by_key(|(t, _)| *t);
        match (terms.as_slice(), constant) {
            ([], c) => self.number(c),
            ([(t, f)], 0.0) => self.scale(*f, *t),
            _ => {
                let terms = terms.into_iter().map(|(t, f)| (t, f.into())).collect();
                self.insert(Node::Sum { terms, constant: constant.into() })
            }
        }
    }

    /// Returns coefficient · Π node^exponent; exponents are multiples of ½, or of ¼, … for nested roots.
    pub fn product(&mut self, coefficient: f64, list: impl IntoIterator<Item = (Id, f64)>) -> Id {
        let mut coefficient = coefficient;
        let mut factors: Vec<(Id, f64)> = vec![];
        let mut pending: Vec<(Id, f64)> = list.into_iter().collect();
        pending.reverse();
        while let Some((id, exponent)) = pending.pop() {
            let whole = exponent.fract() == 0.0;
            match self.node(id) {
                Node::Number(x) => coefficient *= x.value().powf(exponent),
                Node::Product { coefficient: c, factors: inner }
                    if whole || (c.value() >= 0.0 && inner.iter().all(|(f, _)| self.is_not_negative(*f))) =>
                {
                    coefficient *= c.value().powf(exponent);
                    pending.extend(inner.iter().rev().map(|(f, e)| (*f, e.value() * exponent)));
                }
                _ => match factors.iter_mut().find(|(f, _)| *f == id) {
                    Some((_, e)) => *e += exponent,
                    None => factors.push((id, exponent)),
                },
            }
        }
        factors.retain(|(_, e)| *e != 0.0);
        if factors.iter().any(|(f, e)| e.fract() == 0.0 && matches!(self.node(*f), Node::Product { .. })) {
            // two roots of a product combine to an integer power
            return self.product(coefficient, factors);
        }
        factors.sort_by_key(|(f, _)| *f);
        if coefficient == 0.0 || factors.is_empty() {
            return self.number(coefficient);
        }
        if let (1.0, [(f, 1.0)]) = (coefficient, factors.as_slice()) {
            return *f;
        }
        if let Some(sum) = self.distribute(coefficient, &factors) {
            return sum;
        }
        let factors = factors.into_iter().map(|(f, e)| (f, e.into())).collect();
        self.insert(Node::Product { coefficient: coefficient.into(), factors })
    }

    /// Expands c (a x + b y) to (c a) x + (c b) y if a, b and c contain no variables, so that the products of constants
    /// are computed once for all pairs.
    fn distribute(&mut self, coefficient: f64, factors: &[(Id, f64)]) -> Option<Id> {
        let is_sum = |g: &Self, f: Id| !g.is_uniform(f) && matches!(g.node(f), Node::Sum { .. });
        let at = factors.iter().position(|(f, e)| *e == 1.0 && is_sum(self, *f))?;
        let mut others = factors.to_vec();
        let (sum, _) = others.remove(at);
        let Node::Sum { terms, constant } = self.node(sum).clone() else { return None };
        let has_constant = |g: &Self, (t, c): &(Id, Bits)| {
            let factor = match g.node(*t) {
                Node::Product { factors, .. } => factors.iter().any(|(f, _)| g.is_uniform(*f)),
                _ => false,
            };
            g.is_uniform(*t) || c.value().abs() != 1.0 || factor
        };
        let changing = terms.iter().filter(|(t, _)| !self.is_uniform(*t)).count();
        let gains = changing >= 2
            && others.iter().all(|(f, _)| self.is_uniform(*f))
            && terms.iter().all(|t| has_constant(self, t));
        if !gains {
            return None;
        }
        let outer = self.product(coefficient, others);
        let mut list = vec![(outer, constant.value())];
        for (t, c) in terms {
            list.push((self.multiply(outer, t), c.value()));
        }
        Some(self.sum(list, 0.0))
    }

    /// Returns function(x).
    pub fn call(&mut self, function: Function, x: Id) -> Id {
        if let Some((.., to)) = self.shortcuts.iter().find(|(f, from, _)| *f == function && *from == x) {
            return *to;
        }
        match (function, self.as_number(x)) {
            (_, Some(x)) => self.number(function.apply(x)),
            (Function::Sqrt, None) => self.power(x, 0.5),
            (Function::SlopeOfLn, None) if self.is_not_negative(x) => self.power(x, -1.0),
            (Function::Abs, None) if self.is_not_negative(x) => x,
            _ => self.insert(Node::Call(function, x)),
        }
    }

    /// Returns `if(a < b, x, y)`, or with `<=`.
    pub fn select(&mut self, or_equal: bool, arms: [Id; 4]) -> Id {
        let [a, b, x, y] = arms;
        match (self.as_number(a), self.as_number(b)) {
            _ if x == y => x,
            (Some(a), Some(b)) => {
                if a < b || (or_equal && a == b) {
                    x
                } else {
                    y
                }
            }
            _ => self.insert(Node::Select { or_equal, arms }),
        }
    }

    /// Evaluates a node.
    pub fn value(&self, id: Id, variables: &[f64], parameters: &[f64]) -> f64 {
        let value = |id: &Id| self.value(*id, variables, parameters);
        match self.node(id) {
            Node::Number(x) => x.value(),
            Node::Variable(k) => variables[*k],
            Node::Parameter(k) => parameters[*k],
            Node::Sum { terms, constant } => {
                terms.iter().fold(constant.value(), |sum, (t, c)| sum + c.value() * value(t))
            }
            Node::Product { coefficient, factors } => {
                factors.iter().fold(coefficient.value(), |product, (f, e)| product * value(f).powf(e.value()))
            }
            Node::Call(f, x) => f.apply(value(x)),
            Node::Power(base, exponent) => value(base).powf(value(exponent)),
            Node::Select { or_equal, arms: [a, b, x, y] } => {
                let (a, b) = (value(a), value(b));
                value(if a < b || (*or_equal && a == b) { x } else { y })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_formulas_are_equal_nodes() {
        let mut g = Graph::default();
        let r2 = g.square(0);
        let r = g.power(r2, 0.5);
        let sigma = g.parameter(0);
        let ratio = g.divide(sigma, r);
        let twelve = g.power(ratio, 12.0);
        let direct = g.product(1.0, [(sigma, 12.0), (r2, -6.0)]);
        assert_eq!(twelve, direct);
        let twice = g.add(r, r);
        assert_eq!(twice, g.scale(2.0, r));
        let (a, b) = (g.subtract(r, sigma), g.subtract(sigma, r));
        let zero = g.add(a, b);
        assert_eq!(g.as_number(zero), Some(0.0));
    }

    /// √(x²) is |x|, not x.
    #[test]
    fn roots_of_squares_keep_their_sign() {
        let mut g = Graph::default();
        let x = g.variable(0);
        let square = g.power(x, 2.0);
        let root = g.power(square, 0.5);
        assert_eq!(g.value(root, &[-3.0], &[]), 3.0);
        let r2 = g.square(1);
        let (r, fourth) = (g.power(r2, 0.5), g.power(r2, 2.0));
        let root = g.power(fourth, 0.25 * 2.0);
        assert_eq!(root, r2);
        assert_eq!(g.power(r, 2.0), r2);
    }
}
