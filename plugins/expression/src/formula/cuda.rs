//! Writes a program as CUDA C++.

use super::graph::Function;
use super::program::{Op, Program};
use std::fmt::Write as _;

/// Returns a number as a C++ expression of type `real`.
fn literal(x: f64) -> String {
    // Rust's shortest round-trip form: 0.5, 1e-30
    format!("real({x:?})")
}

/// Returns the operations as lines that define `v0`, `v1`, …; `input` and `slot` name variables and coefficients.
pub fn lines(program: &Program, input: impl Fn(usize) -> String, slot: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    let is_one = |k: usize| matches!(program.ops[k], Op::Number(x) if x.value() == 1.0);
    for (k, op) in program.ops.iter().enumerate() {
        let value = match *op {
            Op::Number(x) => literal(x.value()),
            Op::Slot(n) => slot(n),
            Op::Input(n) => input(n),
            Op::Add(a, b) => format!("v{a} + v{b}"),
            Op::Subtract(a, b) => format!("v{a} - v{b}"),
            Op::Multiply(a, b) => format!("v{a} * v{b}"),
            Op::MultiplyAdd(a, b, c) => format!("v{a} * v{b} + v{c}"),
            Op::Divide(a, b) => match program.ops[b] {
                Op::Call(Function::Sqrt, x) if is_one(a) => format!("device_rsqrt(v{x})"),
                _ => format!("v{a} / v{b}"),
            },
            Op::Call(f, a) => call(f, &format!("v{a}")),
            Op::Power(a, b) => format!("device_powf(v{a}, v{b})"),
            Op::Select { or_equal, arms: [a, b, x, y] } => {
                format!("v{a} {} v{b} ? v{x} : v{y}", if or_equal { "<=" } else { "<" })
            }
        };
        let _ = writeln!(text, "    const real v{k} = {value};");
    }
    text
}

/// Returns a function call as a C++ expression.
fn call(f: Function, x: &str) -> String {
    use std::f64::consts::{FRAC_1_PI, TAU};
    match f {
        Function::Exp => format!("device_exp({x})"),
        Function::Ln => format!("device_ln({x})"),
        Function::SlopeOfLn => format!("{x} > real(0) ? real(1) / {x} : device_sqrt(real(-1))"),
        Function::Sqrt => format!("device_sqrt({x})"),
        Function::Sin => format!("device_sin({x})"),
        Function::Cos => format!("device_cos({x})"),
        Function::Acos => format!("device_acos({x})"),
        // 1 − 2/(e²ˣ + 1), as on the CPU
        Function::Tanh => format!("real(1) - real(2) / (device_exp({x} + {x}) + real(1))"),
        Function::Abs => format!("device_abs({x})"),
        Function::Wrap => {
            format!("{x} - {} * device_round({x} * {})", literal(TAU), literal(0.5 * FRAC_1_PI))
        }
    }
}

/// Returns the struct `name` with the coefficients `c0`, `c1`, … of a row, at least one.
pub fn row_struct(name: &str, slots: usize) -> String {
    let members: Vec<_> = (0..slots.max(1)).map(|k| format!("c{k}")).collect();
    format!("template <class real> struct {name} {{\n    real {};\n}};\n", members.join(", "))
}
