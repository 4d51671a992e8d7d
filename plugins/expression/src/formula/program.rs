//! Lowers a graph to a list of operations, the same for CPU and CUDA.
//!
//! Subexpressions without variables become slots: coefficients that the host computes in f64, once per pair of types. Sums
//! are arranged to need few operations: common factors first (Horner's scheme for polynomials), powers by
//! multiplication, one division for all negative powers of a base.

use super::graph::{Bits, Function, Graph, Id, Node};
use std::collections::{HashMap, HashSet};

/// An operation; its operands are indices of earlier operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Number(Bits),
    /// A coefficient of the row.
    Slot(usize),
    /// A variable.
    Input(usize),
    Add(usize, usize),
    Subtract(usize, usize),
    Multiply(usize, usize),
    /// a b + c
    MultiplyAdd(usize, usize, usize),
    Divide(usize, usize),
    Call(Function, usize),
    Power(usize, usize),
    /// a < b ? x : y, or with ≤
    Select {
        or_equal: bool,
        arms: [usize; 4],
    },
}

impl Op {
    /// Returns the indices of the operands.
    pub fn operands(&self) -> Vec<usize> {
        match *self {
            Self::Number(_) | Self::Slot(_) | Self::Input(_) => vec![],
            Self::Call(_, a) => vec![a],
            Self::Add(a, b) | Self::Subtract(a, b) | Self::Multiply(a, b) | Self::Divide(a, b) | Self::Power(a, b) => {
                vec![a, b]
            }
            Self::MultiplyAdd(a, b, c) => vec![a, b, c],
            Self::Select { arms, .. } => arms.to_vec(),
        }
    }

    /// Returns the operation with mapped operands.
    fn renumbered(&self, to: impl Fn(usize) -> usize) -> Self {
        match *self {
            Self::Number(_) | Self::Slot(_) | Self::Input(_) => *self,
            Self::Call(f, a) => Self::Call(f, to(a)),
            Self::Add(a, b) => Self::Add(to(a), to(b)),
            Self::Subtract(a, b) => Self::Subtract(to(a), to(b)),
            Self::Multiply(a, b) => Self::Multiply(to(a), to(b)),
            Self::Divide(a, b) => Self::Divide(to(a), to(b)),
            Self::Power(a, b) => Self::Power(to(a), to(b)),
            Self::MultiplyAdd(a, b, c) => Self::MultiplyAdd(to(a), to(b), to(c)),
            Self::Select { or_equal, arms } => Self::Select { or_equal, arms: arms.map(to) },
        }
    }
}

/// A list of operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    pub ops: Vec<Op>,
    /// Indices of the operations whose results are the outputs.
    pub outputs: Vec<usize>,
}

impl Program {
    /// Returns the program of the first `n` outputs alone.
    pub fn first_outputs(&self, n: usize) -> Self {
        let outputs = &self.outputs[..n];
        let mut used = vec![false; self.ops.len()];
        for o in outputs {
            used[*o] = true;
        }
        for k in (0..self.ops.len()).rev().filter(|k| used[*k]).collect::<Vec<_>>() {
            mark(&self.ops, k, &mut used);
        }
        let mut index = vec![0; self.ops.len()];
        let mut ops = vec![];
        for (k, op) in self.ops.iter().enumerate().filter(|(k, _)| used[*k]) {
            index[k] = ops.len();
            ops.push(op.renumbered(|a| index[a]));
        }
        Self { ops, outputs: outputs.iter().map(|o| index[*o]).collect() }
    }
}

/// Marks all operations that operation `k` depends on.
fn mark(ops: &[Op], k: usize, used: &mut [bool]) {
    for a in ops[k].operands() {
        if !std::mem::replace(&mut used[a], true) {
            mark(ops, a, used);
        }
    }
}

/// Lower bound of r². F/r, which can diverge as 1/r, then stays finite for coinciding particles, and their force is 0.
const TINY: f64 = 1e-30;

/// Returns the operations that compute `outputs`, and the nodes that became slots.
///
/// `distance` is the variable that is a squared distance, if there is one.
pub fn lower(graph: &mut Graph, outputs: &[Id], distance: Option<usize>) -> (Program, Vec<Id>) {
    let mut roots = HashSet::new();
    let mut guarded = None;
    let mut seen = HashSet::new();
    let mut pending = outputs.to_vec();
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        match graph.node(id) {
            Node::Product { factors, .. } => {
                for (f, e) in factors {
                    if e.value() < 0.0 && e.value().fract() != 0.0 {
                        roots.insert(*f);
                    }
                    if let Node::Variable(k) = graph.node(*f)
                        && Some(*k) == distance
                        && e.value() > -1.0
                        && e.value() < 0.0
                    {
                        guarded = distance;
                    }
                    pending.push(*f);
                }
            }
            Node::Sum { terms, .. } => pending.extend(terms.iter().map(|(t, _)| *t)),
            Node::Call(_, x) => pending.push(*x),
            Node::Power(a, b) => pending.extend([*a, *b]),
            Node::Select { arms, .. } => pending.extend(arms),
            Node::Number(_) | Node::Variable(_) | Node::Parameter(_) => {}
        }
    }
    let mut l = Lowering {
        graph,
        program: Program::default(),
        indices: HashMap::new(),
        values: HashMap::new(),
        powers: HashMap::new(),
        slots: vec![],
        roots,
        guarded,
    };
    let outputs = outputs.iter().map(|o| l.value(*o)).collect();
    l.program.outputs = outputs;
    (l.program, l.slots)
}

/// A term of a sum: its uniform part, and its other factors with exponents.
type Term = (Id, Vec<(Id, f64)>);

struct Lowering<'g> {
    graph: &'g mut Graph,
    program: Program,
    indices: HashMap<Op, usize>,
    values: HashMap<Id, usize>,
    powers: HashMap<(usize, u32), usize>,
    slots: Vec<Id>,
    /// Bases with powers such as b^−½: all their negative powers are powers of 1/√b.
    roots: HashSet<Id>,
    /// The variable that is bounded below by [`TINY`].
    guarded: Option<usize>,
}

impl Lowering<'_> {
    /// Returns the index of an operation; appends it if it is new.
    fn emit(&mut self, op: Op) -> usize {
        let op = match op {
            Op::Add(a, b) if a > b => Op::Add(b, a),
            Op::Multiply(a, b) if a > b => Op::Multiply(b, a),
            Op::MultiplyAdd(a, b, c) if a > b => Op::MultiplyAdd(b, a, c),
            other => other,
        };
        if let Some(k) = self.indices.get(&op) {
            return *k;
        }
        self.program.ops.push(op);
        self.indices.insert(op, self.program.ops.len() - 1);
        self.program.ops.len() - 1
    }

    fn number(&mut self, x: f64) -> usize {
        self.emit(Op::Number(x.into()))
    }

    /// Returns the operation of a node without variables.
    fn uniform(&mut self, id: Id) -> usize {
        if let Some(x) = self.graph.as_number(id) {
            return self.number(x);
        }
        let known = self.slots.iter().position(|s| *s == id);
        let index = known.unwrap_or_else(|| {
            self.slots.push(id);
            self.slots.len() - 1
        });
        self.emit(Op::Slot(index))
    }

    /// Returns the operation that computes a node.
    fn value(&mut self, id: Id) -> usize {
        if self.graph.is_uniform(id) {
            return self.uniform(id);
        }
        if let Some(v) = self.values.get(&id) {
            return *v;
        }
        let v = match self.graph.node(id).clone() {
            Node::Variable(k) => {
                let input = self.emit(Op::Input(k));
                if self.guarded == Some(k) {
                    let tiny = self.number(TINY);
                    self.emit(Op::Select { or_equal: false, arms: [input, tiny, tiny, input] })
                } else {
                    input
                }
            }
            Node::Sum { terms, constant } => {
                let one = self.graph.number(1.0);
                let mut list: Vec<Term> = terms.iter().map(|(t, c)| self.split(*t, c.value())).collect();
                list.push((self.graph.scale(constant.value(), one), vec![]));
                self.sum(list)
            }
            Node::Product { .. } => {
                let (constant, factors) = self.split(id, 1.0);
                let product = self.product(&factors);
                self.times(constant, product)
            }
            Node::Call(f, x) => {
                let x = self.value(x);
                self.emit(Op::Call(f, x))
            }
            Node::Power(a, b) => {
                let (a, b) = (self.value(a), self.value(b));
                self.emit(Op::Power(a, b))
            }
            Node::Select { or_equal, arms } => {
                let arms = arms.map(|a| self.value(a));
                self.emit(Op::Select { or_equal, arms })
            }
            Node::Number(_) | Node::Parameter(_) => self.uniform(id),
        };
        self.values.insert(id, v);
        v
    }

    /// Returns constant · value.
    fn times(&mut self, constant: Id, value: usize) -> usize {
        if self.graph.as_number(constant) == Some(1.0) {
            return value;
        }
        let constant = self.uniform(constant);
        self.emit(Op::Multiply(value, constant))
    }

    /// Splits factor · node into a uniform part and the other factors.
    fn split(&mut self, id: Id, factor: f64) -> Term {
        if self.graph.is_uniform(id) {
            return (self.graph.scale(factor, id), vec![]);
        }
        let Node::Product { coefficient, factors } = self.graph.node(id).clone() else {
            return (self.graph.number(factor), vec![(id, 1.0)]);
        };
        let (same, changing): (Vec<_>, Vec<_>) =
            factors.iter().map(|(f, e)| (*f, e.value())).partition(|(f, _)| self.graph.is_uniform(*f));
        (self.graph.product(factor * coefficient.value(), same), changing)
    }

    /// Returns a product of powers.
    fn product(&mut self, factors: &[(Id, f64)]) -> usize {
        let mut result = None;
        for (base, exponent) in factors {
            let power = self.power(*base, *exponent);
            result = Some(match result {
                None => power,
                Some(r) => self.emit(Op::Multiply(r, power)),
            });
        }
        result.unwrap_or_else(|| self.number(1.0))
    }

    /// Returns base^exponent.
    fn power(&mut self, base: Id, exponent: f64) -> usize {
        let x = self.value(base);
        let (x, exponent) = if exponent > 0.0 {
            (x, exponent)
        } else {
            let one = self.number(1.0);
            if self.roots.contains(&base) {
                let root = self.emit(Op::Call(Function::Sqrt, x));
                (self.emit(Op::Divide(one, root)), -2.0 * exponent)
            } else {
                (self.emit(Op::Divide(one, x)), -exponent)
            }
        };
        let (whole, mut part) = (exponent.trunc() as u32, exponent.fract());
        let mut result = (whole > 0).then(|| self.chain(x, whole));
        // binary digits of the fraction are nested roots; usually there is one digit
        let mut root = x;
        while part > 0.0 {
            root = self.emit(Op::Call(Function::Sqrt, root));
            part *= 2.0;
            if part >= 1.0 {
                part -= 1.0;
                result = Some(match result {
                    None => root,
                    Some(r) => self.emit(Op::Multiply(r, root)),
                });
            }
        }
        result.unwrap_or_else(|| self.number(1.0))
    }

    /// Returns xⁿ, n > 0.
    fn chain(&mut self, x: usize, n: u32) -> usize {
        if n == 1 {
            return x;
        }
        if let Some(v) = self.powers.get(&(x, n)) {
            return *v;
        }
        let known = self.powers.contains_key(&(x, n - 1));
        let v = if n.is_multiple_of(2) && !(known && n > 2) {
            let half = self.chain(x, n / 2);
            self.emit(Op::Multiply(half, half))
        } else {
            let less = self.chain(x, n - 1);
            self.emit(Op::Multiply(less, x))
        };
        self.powers.insert((x, n), v);
        v
    }

    /// Returns the sum of the terms.
    fn sum(&mut self, terms: Vec<Term>) -> usize {
        let mut constant = self.graph.number(0.0);
        let mut list: Vec<Term> = vec![];
        for (factor, factors) in terms {
            if factors.is_empty() {
                constant = self.graph.add(constant, factor);
            } else if let Some((f, _)) = list.iter_mut().find(|(_, other)| *other == factors) {
                *f = self.graph.add(*f, factor);
            } else {
                list.push((factor, factors));
            }
        }
        let zero = self.graph.as_number(constant) == Some(0.0);
        if list.is_empty() {
            return self.uniform(constant);
        }
        let common = common_factors(&list);
        if !common.is_empty() {
            let rest = list.into_iter().map(|(f, factors)| (f, without(factors, &common))).collect();
            let inner = self.sum(rest);
            let outer = self.product(&common);
            if zero {
                return self.emit(Op::Multiply(outer, inner));
            }
            let constant = self.uniform(constant);
            return self.emit(Op::MultiplyAdd(outer, inner, constant));
        }
        // start with a term that needs no operation
        let mut sum = None;
        if zero {
            let is_one = |l: &Self, f: Id| l.graph.as_number(f) == Some(1.0);
            let at = list.iter().position(|(f, _)| is_one(self, *f)).unwrap_or(0);
            let (factor, factors) = list.remove(at);
            let product = self.product(&factors);
            sum = Some(self.times(factor, product));
        }
        let mut sum = sum.unwrap_or_else(|| self.uniform(constant));
        for (factor, factors) in list {
            let product = self.product(&factors);
            sum = match self.graph.as_number(factor) {
                Some(1.0) => self.emit(Op::Add(sum, product)),
                Some(-1.0) => self.emit(Op::Subtract(sum, product)),
                _ => {
                    let factor = self.uniform(factor);
                    self.emit(Op::MultiplyAdd(product, factor, sum))
                }
            };
        }
        sum
    }
}

/// Returns the powers common to all terms, if there is more than one term.
fn common_factors(list: &[Term]) -> Vec<(Id, f64)> {
    if list.len() < 2 {
        return vec![];
    }
    let mut common = vec![];
    for (base, exponent) in &list[0].1 {
        let all: Option<Vec<f64>> =
            list.iter().map(|(_, f)| f.iter().find(|(b, _)| b == base).map(|(_, e)| *e)).collect();
        let Some(all) = all else { continue };
        if !all.iter().all(|e| e.signum() == exponent.signum()) {
            continue;
        }
        let least = all.iter().fold(f64::INFINITY, |m, e| m.min(e.abs()));
        let alike = all.iter().all(|e| e.fract() == all[0].fract());
        let take = if alike { least } else { least.trunc() };
        if take > 0.0 {
            common.push((*base, take * exponent.signum()));
        }
    }
    common
}

/// Divides `factors` by `common`.
fn without(factors: Vec<(Id, f64)>, common: &[(Id, f64)]) -> Vec<(Id, f64)> {
    let taken = |base: Id| common.iter().find(|(b, _)| *b == base).map_or(0.0, |(_, e)| *e);
    factors.into_iter().map(|(b, e)| (b, e - taken(b))).filter(|(_, e)| *e != 0.0).collect()
}
