//! Random functions of the device language, as Rust source.
//!
//! An *exact* function has no elementary functions besides those that are correctly rounded, so its value must be the
//! same to the last bit wherever it is compiled; it is fed with anything, infinities and NaN included. A *smooth* one
//! calls all elementary functions, keeps its numbers near 1, and takes no decision from them.

use galamost_plugin_api::philox::philox4x32;

/// Types of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ty {
    Real,
    I32,
    U32,
    U64,
    Usize,
    Bool,
    Vec3,
    Tuple(Vec<Ty>),
}
use Ty::{Bool, I32, Real, Tuple, U32, U64, Usize};

const SIMPLE: [Ty; 7] = [Real, I32, U32, U64, Usize, Bool, Ty::Vec3];

/// Names of variables: few, so that they are shadowed, and with a meaning in C++ where possible.
const NAMES: [&str; 14] = [
    "a",
    "b",
    "int",
    "register",
    "near",
    "M_PI",
    "auto",
    "r#type",
    "ε",
    "double",
    "tuple",
    "device_exp",
    "x_1",
    "load",
];

/// Variables that are never shadowed; what a function does in its loops and branches ends in them.
const SUMS: [(Ty, &str, &str); 7] = [
    (Real, "sum_r", "0.5 * x"),
    (Ty::Vec3, "sum_v", "v * 0.5"),
    (I32, "sum_n", "n"),
    (U32, "sum_k", "k"),
    (U64, "sum_w", "w"),
    (Usize, "sum_j", "j"),
    (Bool, "sum_b", "b"),
];

impl Ty {
    pub fn rust(&self) -> String {
        match self {
            Real => "real".into(),
            I32 => "i32".into(),
            U32 => "u32".into(),
            U64 => "u64".into(),
            Usize => "usize".into(),
            Bool => "bool".into(),
            Ty::Vec3 => "Vec3<real>".into(),
            Tuple(t) => format!("({})", t.iter().map(Self::rust).collect::<Vec<_>>().join(", ")),
        }
    }
    fn is_whole(&self) -> bool {
        matches!(self, I32 | U32 | U64 | Usize)
    }
}

struct Variable {
    name: String,
    ty: Ty,
    mutable: bool,
}

/// The state of one function's making.
pub struct Generator {
    seed: u64,
    draws: u32,
    scopes: Vec<Vec<Variable>>,
    smooth: bool,
    /// Loops around what is being made; their product of turns stays small.
    loops: u32,
    indent: usize,
}

impl Generator {
    /// The source of function number `k`.
    pub fn function(seed: u64, k: u32, smooth: bool) -> String {
        let mut g = Self {
            seed: seed.wrapping_mul(0x1_0001).wrapping_add(u64::from(k)),
            draws: 0,
            scopes: vec![],
            smooth,
            loops: 0,
            indent: 1,
        };
        let args: [(&str, Ty); 9] = [
            ("x", Real),
            ("y", Real),
            ("z", Real),
            ("v", Ty::Vec3),
            ("n", I32),
            ("k", U32),
            ("w", U64),
            ("j", Usize),
            ("b", Bool),
        ];
        let variable = |(name, ty): &(&str, Ty)| Variable { name: (*name).into(), ty: ty.clone(), mutable: false };
        g.scopes.push(args.iter().map(variable).collect());
        let list: Vec<String> = args.iter().map(|(n, t)| format!("{n}: {}", t.rust())).collect();
        let mut text = format!(
            "#[device_fn]\nfn case_{k}(random: &mut Random, {}) -> (real, Vec3<real>, i32, u64) {{\n",
            list.join(", ")
        );
        for (ty, name, value) in SUMS {
            text.push_str(&g.line(&format!("let mut {name} = {value};")));
            g.declare(name, ty, true);
        }
        for _ in 0..4 + g.below(4) {
            text.push_str(&g.statement(2));
        }
        // what the function has found in its variables, folded into its four values
        let (r, v, n, w) = (g.expr(&Real, 3), g.expr(&Ty::Vec3, 3), g.expr(&I32, 3), g.expr(&U64, 2));
        let (k, j, b) = (g.expr(&U32, 2), g.expr(&Usize, 2), g.expr(&Bool, 3));
        let w = format!(
            "(({w} + sum_w) ^ (({k} + sum_k) as u64)) + (({j} * sum_j) as u64) + (({b}) as u64) + ((sum_b as u64) << 40)"
        );
        let r = format!("(if sum_r.abs() < 1.0e30 {{ {r} * 0.5 + sum_r }} else {{ {r} }})");
        let (v, n) = (format!("({v} * 0.5 + sum_v)"), format!("({n} + sum_n)"));
        let end = match g.below(4) {
            0 => format!("    let folded = {w};\n    return ({r}, {v}, {n}, folded);\n"),
            1 => {
                let c = g.expr(&Bool, 2);
                let other = g.expr(&Real, 2);
                format!("    if {c} {{ let w = {w}; ({r}, {v}, {n}, w) }} else {{ ({other}, v, 3, 7) }}\n")
            }
            _ => format!("    ({r}, {v}, {n}, {w})\n"),
        };
        text + &end + "}\n"
    }

    fn below(&mut self, n: u32) -> u32 {
        self.draws += 1;
        philox4x32::<7>([self.draws, 0, 0, 0], [self.seed as u32, (self.seed >> 32) as u32])[0] % n
    }
    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u32) as usize]
    }
    fn name(&mut self) -> String {
        (*self.pick(&NAMES)).into()
    }
    fn declare(&mut self, name: &str, ty: Ty, mutable: bool) {
        self.scopes.last_mut().expect("a scope").push(Variable { name: name.into(), ty, mutable });
    }
    /// A visible variable of this type: the last of its name.
    fn variable(&mut self, ty: &Ty, mutable: bool) -> Option<String> {
        let all: Vec<&Variable> = self.scopes.iter().flatten().collect();
        let fitting: Vec<String> = all
            .iter()
            .enumerate()
            .filter(|(i, v)| {
                v.ty == *ty && (v.mutable || !mutable) && all[i + 1..].iter().all(|later| later.name != v.name)
            })
            .map(|(_, v)| v.name.clone())
            .collect();
        // one of the newest
        let newest = &fitting[fitting.len().saturating_sub(4)..];
        if newest.is_empty() { None } else { Some(self.pick(newest).clone()) }
    }

    fn line(&self, text: &str) -> String {
        format!("{}{text}\n", "    ".repeat(self.indent))
    }
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

    fn statement(&mut self, depth: u32) -> String {
        match self.below(if depth == 0 { 7 } else { 13 }) {
            0..=2 => {
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
            3 => {
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
                let text =
                    self.line(&format!("let ({}): {} = {value};", names.join(", "), Tuple(types.clone()).rust()));
                for (name, ty) in names.iter().zip(types) {
                    if name != "_" {
                        self.declare(name, ty, false);
                    }
                }
                text
            }
            4 => match self.below(4) {
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
            },
            5 | 6 => self.assignment(),
            7..=9 => {
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
            10 | 11 if self.loops < 2 => {
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
            _ => {
                let mut text = self.line("{");
                text += &self.block(depth, |_| ());
                text + &self.line("}")
            }
        }
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

    /// An expression of this type, in parentheses where it needs them as an operand.
    fn expr(&mut self, ty: &Ty, depth: u32) -> String {
        if depth == 0 || self.below(6) == 0 {
            return self.leaf(ty);
        }
        let d = depth - 1;
        if self.below(8) == 0 {
            let c = self.expr(&Bool, d);
            let (a, b) = (self.expr(ty, d), self.expr(ty, d));
            return match self.below(3) {
                0 => format!("(if {c} {{ let a = {a}; a }} else {{ {b} }})"),
                1 => {
                    let (c2, e) = (self.expr(&Bool, d), self.expr(ty, d));
                    format!("(if {c} {{ {a} }} else if {c2} {{ {b} }} else {{ {e} }})")
                }
                _ => format!("(if {c} {{ {a} }} else {{ {b} }})"),
            };
        }
        if self.below(12) == 0 {
            let inner = self.pick(&SIMPLE).clone();
            let value = self.expr(&inner, d);
            let name = self.name();
            self.scopes.push(vec![]);
            self.declare(&name, inner.clone(), false);
            let result = self.expr(ty, d);
            self.scopes.pop();
            return format!("{{ let {name}: {} = {value}; {result} }}", inner.rust()).replacen('{', "({", 1) + ")";
        }
        match ty {
            Real if self.smooth => self.smooth_real(d),
            Real => self.exact_real(d),
            Ty::Vec3 => self.vector(d),
            Bool => self.truth(d),
            Tuple(types) => {
                format!("({})", types.iter().map(|t| self.expr(t, d)).collect::<Vec<_>>().join(", "))
            }
            whole => self.whole(whole, d),
        }
    }

    fn leaf(&mut self, ty: &Ty) -> String {
        if self.below(4) > 0
            && let Some(name) = self.variable(ty, false)
        {
            return name;
        }
        match ty {
            Real => match self.below(6) {
                0 => "helpers::HALF".into(),
                1 => "std::f64::consts::FRAC_1_SQRT_2".into(),
                2 if !self.smooth => "f64::EPSILON".into(),
                _ => format!("{}.{}", self.below(2), 1 + self.below(9)),
            },
            I32 => match self.below(4) {
                0 => "i32::MIN".into(),
                1 => format!("(-{}i32)", self.below(50)),
                _ => format!("{}i32", self.below(100)),
            },
            U32 => self.pick(&["3u32", "0xffff_ffffu32", "helpers::TURNS", "17u32"]).to_string(),
            U64 => self.pick(&["3u64", "0xffff_ffff_ffffu64", "u64::MAX", "11u64"]).to_string(),
            Usize => self.pick(&["2usize", "helpers::SIZE", "5usize"]).to_string(),
            Bool => self.pick(&["true", "false", "helpers::YES"]).to_string(),
            Ty::Vec3 => self.pick(&["Vec3::zero()", "v", "Vec3::new(0.5, 1.5, 0.25)"]).to_string(),
            Tuple(types) => format!("({})", types.iter().map(|t| self.leaf(t)).collect::<Vec<_>>().join(", ")),
        }
    }

    fn exact_real(&mut self, d: u32) -> String {
        let a = self.expr(&Real, d);
        match self.below(20) {
            0..=4 => format!("({a} {} {})", self.pick(&["+", "-", "*", "/"]), self.expr(&Real, d)),
            5 => format!("(-{a})"),
            6 => format!("({a}).{}()", self.pick(&["sqrt", "rsqrt", "recip", "abs", "floor", "round"])),
            7 => format!("({a}).{}({})", self.pick(&["min", "max"]), self.expr(&Real, d)),
            8 => format!("({a}).powi(({} & 7) - 3)", self.expr(&I32, d)),
            9 | 10 => {
                let from = self.pick(&[I32, U32, U64, Usize, Bool]).clone();
                format!("(({}) as real)", self.expr(&from, d))
            }
            11 => format!("((({a}) as f64 * 1.25f64) as real)"),
            12 => format!("((({a}) as f32 + 0.5f32) as real)"),
            13 => format!("({}).dot({})", self.expr(&Ty::Vec3, d), self.expr(&Ty::Vec3, d)),
            14 => format!("({}).{}()", self.expr(&Ty::Vec3, d), self.pick(&["norm", "norm2"])),
            15 => format!("({}).{}", self.expr(&Ty::Vec3, d), self.pick(&["x", "y", "z"])),
            16 => format!("helpers::blend({a}, {}, {})", self.expr(&Real, d), self.expr(&Bool, d)),
            17 => format!("({a}, {}).0", self.expr(&U32, d)),
            18 => format!("(({a}).floor() + 0.5).round()"),
            _ => format!("local({a}, &({}))", self.expr(&Ty::Vec3, d)),
        }
    }

    /// Numbers of size 1, by functions that enlarge an error by little.
    fn smooth_real(&mut self, d: u32) -> String {
        let a = self.expr(&Real, d);
        match self.below(16) {
            0 => format!("(0.5 * ({a} {} {}))", self.pick(&["+", "-"]), self.expr(&Real, d)),
            1 => format!("(0.5 * {a} * {})", self.expr(&Real, d)),
            2 => format!("({a} / (1.0 + {}.abs()))", self.expr(&Real, d)),
            3 => format!("(0.3 * (0.5 * {a}).exp())"),
            4 => format!("({a}.abs() + 0.5).ln()"),
            5 | 6 => format!("({a}).{}()", self.pick(&["sin", "cos"])),
            7 => format!("(0.5 * (0.9 * ({a}).sin()).acos())"),
            8 => format!("({a}).atan2({}.abs() + 0.5)", self.expr(&Real, d)),
            9 => format!("(0.2 * ({a}.abs() + 0.5).powf({}))", self.expr(&Real, d)),
            10 => format!("({a}.abs() + 0.2).{}()", self.pick(&["sqrt", "rsqrt"])),
            11 => format!("(0.3 * ((({}) & 3) as real))", self.expr(&U32, d)),
            12 => format!("(0.3 * ({}).dot({}))", self.expr(&Ty::Vec3, d), self.expr(&Ty::Vec3, d)),
            13 => format!("(0.5 * (({}).norm2() + 0.1).sqrt())", self.expr(&Ty::Vec3, d)),
            14 => format!("helpers::blend({a}, {}, {})", self.expr(&Real, d), self.expr(&Bool, d)),
            _ => format!("({}).{}", self.expr(&Ty::Vec3, d), self.pick(&["x", "y", "z"])),
        }
    }

    fn vector(&mut self, d: u32) -> String {
        let a = self.expr(&Ty::Vec3, d);
        let scale = if self.smooth { "0.5 * " } else { "" };
        match self.below(6) {
            0 => format!("Vec3::new({}, {}, {})", self.expr(&Real, d), self.expr(&Real, d), self.expr(&Real, d)),
            1 if self.smooth => format!("(({a} {} {}) * 0.5)", self.pick(&["+", "-"]), self.expr(&Ty::Vec3, d)),
            1 => format!("({a} {} {})", self.pick(&["+", "-"]), self.expr(&Ty::Vec3, d)),
            2 => format!("({a} * ({scale}{}))", self.expr(&Real, d)),
            3 if self.smooth => format!("({a} / 2.5)"),
            3 => format!("({a} / {})", self.expr(&Real, d)),
            4 => format!("(-{a})"),
            _ if self.smooth => format!("(({a}).cross({}) * 0.3)", self.expr(&Ty::Vec3, d)),
            _ => format!("({a}).cross({})", self.expr(&Ty::Vec3, d)),
        }
    }

    fn truth(&mut self, d: u32) -> String {
        let comparisons = ["<", "<=", ">", ">=", "==", "!="];
        match self.below(8) {
            0 | 1 => format!("({} {} {})", self.expr(&Bool, d), self.pick(&["&&", "||"]), self.expr(&Bool, d)),
            2 => format!("({} {} {})", self.expr(&Bool, d), self.pick(&["&", "|", "^", "=="]), self.expr(&Bool, d)),
            3 => format!("!({} & {})", self.expr(&Bool, d), self.expr(&Bool, d)),
            4 if !self.smooth => {
                format!("({} {} {})", self.expr(&Real, d), self.pick(&comparisons), self.expr(&Real, d))
            }
            5 if !self.smooth => {
                format!("({} {} {})", self.expr(&Ty::Vec3, d), self.pick(&["==", "!="]), self.expr(&Ty::Vec3, d))
            }
            6 => {
                format!("(({}, {}) == ({}, {}))", self.leaf(&I32), self.leaf(&Bool), self.leaf(&I32), self.leaf(&Bool))
            }
            _ => {
                let ty = self.pick(&[I32, U32, U64, Usize]).clone();
                // a number without its type takes that of the other side
                let right = if self.below(3) == 0 { self.below(9).to_string() } else { self.expr(&ty, d) };
                format!("({} {} {right})", self.leaf_with_type(&ty), self.pick(&comparisons))
            }
        }
    }

    /// A value whose type rustc sees without what stands beside it.
    fn leaf_with_type(&mut self, ty: &Ty) -> String {
        format!("({} as {})", self.leaf(ty), ty.rust())
    }

    fn whole(&mut self, ty: &Ty, d: u32) -> String {
        let a = self.expr(ty, d);
        match self.below(14) {
            0..=2 => format!("({a} {} {})", self.pick(&["+", "-", "*"]), self.expr(ty, d)),
            3 => format!("({a} {} {})", self.pick(&["+", "-", "*", "&", "|", "^"]), 1 + self.below(20)),
            4 => format!("({a} {} (({} & 7) + 1))", self.pick(&["/", "%"]), self.expr(ty, d)),
            5 => format!("({a} {} {})", self.pick(&["&", "|", "^"]), self.expr(ty, d)),
            6 => {
                let distance = self.pick(&[I32, U32, U64]).clone();
                format!("({a} {} {})", self.pick(&["<<", ">>"]), self.expr(&distance, d))
            }
            7 => format!("({a} {} {})", self.pick(&["<<", ">>"]), self.below(70)),
            8 => format!("(!{a})"),
            9 if *ty == I32 => format!("(-{a})"),
            9 => {
                format!("({a}).{}({})", self.pick(&["wrapping_add", "wrapping_sub", "wrapping_mul"]), self.expr(ty, d))
            }
            10 => format!("({a}).{}({})", self.pick(&["min", "max"]), self.expr(ty, d)),
            11 if *ty == I32 => format!("(({a}).abs())"),
            12 if !self.smooth => format!("(({}) as {})", self.expr(&Real, d), ty.rust()),
            _ => {
                let from = self.pick(&[I32, U32, U64, Usize, Bool]).clone();
                format!("(({}) as {})", self.expr(&from, d), ty.rust())
            }
        }
    }
}
