//! Random expressions of a given type.

use super::Ty::{self, Bool, I32, Real, Tuple, U32, U64, Usize};
use super::{Generator, SIMPLE};

impl Generator {
    /// An expression of this type, in parentheses where it needs them as an operand.
    pub(super) fn expr(&mut self, ty: &Ty, depth: u32) -> String {
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

    /// A value whose type does not depend on the context.
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
