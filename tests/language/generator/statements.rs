//! Random statements: declarations, calls, assignments, branches, and loops.

use super::Ty::{self, Bool, I32, Real, Tuple, U32, U64, Usize};
use super::{Generator, SIMPLE, SUMS};

impl Generator {
    fn block(&mut self, depth: u32, before: impl FnOnce(&mut Self)) -> String {
        self.scopes.push(vec![]);
        self.indent += 1;
        before(self);
        let mut text = String::new();
        for _ in 0..1 + self.below(2) {
            text.push_str(&self.statement(depth - 1));
        }
        text.push_str(&self.sum());
        self.indent -= 1;
        self.scopes.pop();
        text
    }

    /// A statement; blocks inside of it are nested at most `depth` deep.
    pub(super) fn statement(&mut self, depth: u32) -> String {
        match self.below(if depth == 0 { 7 } else { 13 }) {
            0..=2 => self.variable_statement(),
            3 => self.tuple_statement(),
            4 => self.call_statement(),
            5 | 6 => self.assignment(),
            7..=9 => self.if_statement(depth),
            10 | 11 if self.loops < 2 => self.loop_statement(depth),
            _ => {
                let mut text = self.line("{");
                text += &self.block(depth, |_| ());
                text + &self.line("}")
            }
        }
    }

    fn variable_statement(&mut self) -> String {
        let ty = self.pick(&SIMPLE).clone();
        let (value, mutable) = (self.expr(&ty, 3), self.below(3) > 0);
        // a number alone is an i32 without its type, so that is what the variable is then
        let bare = ty == I32 && self.below(4) == 0;
        let value = if bare { self.below(9).to_string() } else { value };
        let annotated = !bare && (ty.is_whole() || self.below(2) == 0);
        let ty_text = if annotated { format!(": {}", ty.rust()) } else { String::new() };
        let name = self.name();
        let text = self.line(&format!("let {}{name}{ty_text} = {value};", if mutable { "mut " } else { "" }));
        self.declare(&name, ty, mutable);
        text
    }

    fn tuple_statement(&mut self) -> String {
        let types: Vec<Ty> = (0..2 + self.below(3)).map(|_| self.pick(&SIMPLE).clone()).collect();
        let value = self.expr(&Tuple(types.clone()), 2);
        if self.below(2) == 0 {
            let name = self.name();
            let text = self.line(&format!("let mut {name}: {} = {value};", Tuple(types.clone()).rust()));
            self.declare(&name, Tuple(types), true);
            return text;
        }
        let mut names: Vec<String> = vec![];
        for _ in &types {
            let name = self.name();
            names.push(if names.contains(&name) { "_".into() } else { name });
        }
        let text = self.line(&format!("let ({}): {} = {value};", names.join(", "), Tuple(types.clone()).rust()));
        for (name, ty) in names.iter().zip(types) {
            if name != "_" {
                self.declare(name, ty, false);
            }
        }
        text
    }

    /// Calls of methods that change the generator of random numbers, and of functions with `&mut` arguments.
    fn call_statement(&mut self) -> String {
        match self.below(4) {
            0 => {
                let name = self.name();
                let text = self.line(&format!("let {name} = random.uniform();"));
                self.declare(&name, Real, false);
                text
            }
            1 if self.smooth => {
                let name = self.name();
                // normal numbers reach 5.8
                let text = self.line(&format!("let {name} = random.normal3() * 0.3;"));
                self.declare(&name, Ty::Vec3, false);
                text
            }
            2 => match self.variable(&U32, true) {
                Some(n) => {
                    let name = self.name();
                    let text = self.line(&format!("let {name} = helpers::next(&mut {n}, k);"));
                    self.declare(&name, U32, false);
                    text
                }
                None => self.sum(),
            },
            _ => match self.variable(&I32, true) {
                Some(n) => self.line(&format!("helpers::count(&mut {n});")),
                None => self.sum(),
            },
        }
    }

    fn if_statement(&mut self, depth: u32) -> String {
        let c = self.expr(&Bool, 2);
        let mut text = self.line(&format!("if {c} {{"));
        text += &self.block(depth, |_| ());
        for _ in 0..self.below(3) {
            let c = self.expr(&Bool, 2);
            text += &self.line(&format!("}} else if {c} {{"));
            text += &self.block(depth, |_| ());
        }
        if self.below(2) == 0 {
            text += &self.line("} else {");
            text += &self.block(depth, |_| ());
        }
        text + &self.line("}")
    }

    fn loop_statement(&mut self, depth: u32) -> String {
        let name = self.name();
        let (range, ty) = match self.below(7) {
            0 => (format!("0..{}", self.below(5)), I32),
            1 => (format!("-1..={}", self.below(3)), I32),
            2 => ("0..helpers::TURNS".into(), U32),
            3 => (format!("0..({}) % 4", self.expr(&U32, 1)), U32),
            4 => (format!("1..=({}) % 3", self.expr(&Usize, 1)), Usize),
            5 => ("u64::MAX - 2..=u64::MAX".into(), U64),
            _ => (format!("({}) % 3..3", self.expr(&I32, 1)), I32),
        };
        let mut text = self.line(&format!("for {name} in {range} {{"));
        self.loops += 1;
        text += &self.block(depth, |g| g.declare(&name, ty, false));
        self.loops -= 1;
        text + &self.line("}")
    }

    /// Adds a value to what the function returns.
    fn sum(&mut self) -> String {
        let (ty, name, _) = self.pick(&SUMS).clone();
        let value = self.expr(&ty, 2);
        self.line(&match ty {
            Real | Ty::Vec3 => format!("{name} = {name} * 0.5 + {value} * 0.5;"),
            Bool => format!("{name} ^= {value};"),
            _ => format!("{name} = {name} * 31 + {value};"),
        })
    }

    fn assignment(&mut self) -> String {
        let ty = self.pick(&SIMPLE).clone();
        if self.below(6) == 0
            && let (Some(a), Some(b)) = (self.variable(&ty, true), self.variable(&I32, true))
            && a != b
        {
            let (left, right) = (self.expr(&ty, 2), self.expr(&I32, 2));
            return self.line(&format!("({a}, {b}) = ({left}, {right});"));
        }
        let Some(name) = self.variable(&ty, true) else { return self.sum() };
        if ty == Ty::Vec3 && self.below(2) == 0 {
            let value = self.expr(&Real, 2);
            let member = *self.pick(&["x", "y", "z"]);
            return self.line(&format!("{name}.{member} = {value};"));
        }
        let operator = match &ty {
            Real | Ty::Vec3 if self.smooth => "=",
            Real => self.pick(&["=", "+=", "-=", "*=", "/="]),
            Ty::Vec3 => self.pick(&["=", "+=", "-="]),
            Bool => self.pick(&["=", "&=", "|=", "^="]),
            _ => self.pick(&["=", "+=", "-=", "*=", "&=", "|=", "^=", "<<=", ">>=", "%=", "/="]),
        };
        let mut value = self.expr(&ty, 2);
        if ty.is_whole() && ["%=", "/="].contains(&operator) {
            value = format!("({value} & 7) + 1");
        }
        self.line(&format!("{name} {operator} {value};"))
    }
}
