//! Random functions of the device language, as Rust source.
//!
//! An *exact* function has no elementary functions besides those that are correctly rounded, so its value must be the
//! same to the last bit wherever it is compiled; it is fed with anything, infinities and NaN included. A *smooth* one
//! calls all elementary functions, keeps its numbers near 1, and takes no decision from them.

mod expressions;
mod statements;

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

/// The state of the generation of one function.
pub struct Generator {
    seed: u64,
    draws: u32,
    scopes: Vec<Vec<Variable>>,
    smooth: bool,
    /// Depth of the loops around the current statement; limits the number of iterations.
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
}
