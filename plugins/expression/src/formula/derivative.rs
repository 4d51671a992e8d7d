//! Symbolic derivatives.

use super::graph::{Function, Graph, Id, Node};
use std::collections::HashMap;

impl Graph {
    /// Returns ∂/∂variable of a node. Jumps have derivative 0; |x| has derivative 1 at x = 0.
    pub fn derivative(&mut self, id: Id, variable: Id) -> Id {
        self.derive(id, variable, &mut HashMap::new())
    }

    fn derive(&mut self, id: Id, variable: Id, known: &mut HashMap<Id, Id>) -> Id {
        if let Some(d) = known.get(&id) {
            return *d;
        }
        let d = match self.node(id).clone() {
            Node::Variable(_) => self.number(if id == variable { 1.0 } else { 0.0 }),
            _ if self.is_uniform(id) => self.number(0.0),
            Node::Number(_) | Node::Parameter(_) => self.number(0.0),
            Node::Sum { terms, .. } => {
                let terms: Vec<_> = terms.iter().map(|(t, c)| (self.derive(*t, variable, known), c.value())).collect();
                self.sum(terms, 0.0)
            }
            Node::Product { coefficient, factors } => {
                let mut terms = vec![];
                for (f, e) in &factors {
                    let inner = self.derive(*f, variable, known);
                    let rest = factors.iter().map(|(g, n)| (*g, if g == f { n.value() - 1.0 } else { n.value() }));
                    let list: Vec<_> = rest.chain([(inner, 1.0)]).collect();
                    terms.push((self.product(coefficient.value() * e.value(), list), 1.0));
                }
                self.sum(terms, 0.0)
            }
            Node::Call(function, x) => {
                let inner = self.derive(x, variable, known);
                let outer = self.outer(function, x, id);
                self.multiply(outer, inner)
            }
            Node::Power(base, exponent) => {
                // bᵉ (e' ln b + e b'/b)
                let (db, de) = (self.derive(base, variable, known), self.derive(exponent, variable, known));
                let ln = self.call(Function::Ln, base);
                let (first, second) =
                    (self.multiply(de, ln), self.product(1.0, [(exponent, 1.0), (db, 1.0), (base, -1.0)]));
                let terms = [self.multiply(id, first), self.multiply(id, second)];
                self.add(terms[0], terms[1])
            }
            Node::Select { or_equal, arms: [a, b, x, y] } => {
                let (dx, dy) = (self.derive(x, variable, known), self.derive(y, variable, known));
                self.select(or_equal, [a, b, dx, dy])
            }
        };
        known.insert(id, d);
        d
    }

    /// Returns f'(x), where `id` is f(x).
    fn outer(&mut self, function: Function, x: Id, id: Id) -> Id {
        match function {
            Function::Exp => id,
            Function::Ln => self.call(Function::SlopeOfLn, x),
            Function::SlopeOfLn => self.product(-1.0, [(id, 2.0)]),
            Function::Sqrt => {
                let inverse = self.power(x, -0.5);
                self.scale(0.5, inverse)
            }
            Function::Sin => self.call(Function::Cos, x),
            Function::Cos => {
                let sin = self.call(Function::Sin, x);
                self.scale(-1.0, sin)
            }
            Function::Acos => {
                let square = self.power(x, 2.0);
                let rest = self.sum([(square, -1.0)], 1.0);
                let inverse = self.power(rest, -0.5);
                self.scale(-1.0, inverse)
            }
            Function::Tanh => {
                let square = self.power(id, 2.0);
                self.sum([(square, -1.0)], 1.0)
            }
            Function::Abs => {
                let (zero, one, minus) = (self.number(0.0), self.number(1.0), self.number(-1.0));
                self.select(false, [x, zero, minus, one])
            }
            Function::Wrap => self.number(1.0),
        }
    }
}
