//! Runs a program on the CPU for many pairs, links or particles at once.
//!
//! Each operation runs over a whole block of lanes before the next one, so up to 256 lanes share the cost of the dispatch
//! (a few nanoseconds). The loop over lanes is compiled for the baseline, x86-64-v3 and x86-64-v4, with bit-identical
//! results.

use crate::formula::graph::Function;
use crate::formula::program::{Op, Program};
use galamost_plugin_api::Real;
use galamost_plugin_api::lanes::{BASE, V3, V4};

/// Lanes per block.
pub const BLOCK: usize = 256;

/// Operation of an instruction.
#[derive(Clone, Copy, Debug)]
enum Code {
    Add,
    Subtract,
    Multiply,
    MultiplyAdd,
    Divide,
    Power,
    Less,
    LessOrEqual,
    Call(Function),
}

/// An operation on registers.
#[derive(Clone, Copy, Debug)]
struct Instruction {
    code: Code,
    to: usize,
    from: [usize; 4],
}

/// A program with allocated registers. Register k occupies [`BLOCK`] lanes of the memory from k · [`BLOCK`].
#[derive(Clone, Debug)]
pub struct Interpreter<R> {
    code: Vec<Instruction>,
    registers: usize,
    constants: Vec<(usize, R)>,
    slots: usize,
    outputs: Vec<usize>,
}

/// Values of the slots of a program.
#[derive(Clone, Copy, Debug)]
pub enum Slots<'a> {
    /// The same number for all lanes.
    Fixed(&'a [f64]),
    /// This many values per lane, written before each run.
    PerLane(usize),
}

impl<R: Real> Interpreter<R> {
    /// Allocates registers for a program with `inputs` variables.
    pub fn new(program: &Program, inputs: usize, slots: Slots<'_>) -> Self {
        let per_lane = match slots {
            Slots::Fixed(_) => 0,
            Slots::PerLane(n) => n,
        };
        // variables, slots and constants keep their registers; a result holds one from its operation to its last use
        let mut next = inputs + per_lane;
        let mut constants: Vec<(usize, R)> = vec![];
        let mut last_use = vec![0; program.ops.len()];
        for (k, op) in program.ops.iter().enumerate() {
            op.operands().into_iter().for_each(|a| last_use[a] = k);
        }
        for o in &program.outputs {
            last_use[*o] = usize::MAX;
        }
        let mut register = vec![0; program.ops.len()];
        let mut results = vec![false; program.ops.len()];
        let mut free = vec![];
        let mut code = vec![];
        for (k, op) in program.ops.iter().enumerate() {
            let constant = match (*op, slots) {
                (Op::Number(x), _) => Some(x.value()),
                (Op::Slot(n), Slots::Fixed(values)) => Some(values[n]),
                _ => None,
            };
            if let Some(x) = constant {
                register[k] = next;
                constants.push((next, R::lit(x)));
                next += 1;
                continue;
            }
            let operation = match *op {
                Op::Input(n) => {
                    register[k] = n;
                    continue;
                }
                Op::Slot(n) => {
                    register[k] = inputs + n;
                    continue;
                }
                Op::Add(..) => Code::Add,
                Op::Subtract(..) => Code::Subtract,
                Op::Multiply(..) => Code::Multiply,
                Op::MultiplyAdd(..) => Code::MultiplyAdd,
                Op::Divide(..) => Code::Divide,
                Op::Power(..) => Code::Power,
                Op::Call(f, _) => Code::Call(f),
                Op::Select { or_equal, .. } => {
                    if or_equal {
                        Code::LessOrEqual
                    } else {
                        Code::Less
                    }
                }
                Op::Number(_) => continue,
            };
            let mut operands = op.operands();
            let mut from = [0; 4];
            for (f, a) in from.iter_mut().zip(&operands) {
                *f = register[*a];
            }
            operands.sort_unstable();
            operands.dedup();
            free.extend(operands.iter().filter(|a| results[**a] && last_use[**a] == k).map(|a| register[*a]));
            let to = free.pop().unwrap_or_else(|| {
                next += 1;
                next - 1
            });
            (register[k], results[k]) = (to, true);
            code.push(Instruction { code: operation, to, from });
        }
        let outputs = program.outputs.iter().map(|o| register[*o]).collect();
        Self { code, registers: next, constants, slots: inputs, outputs }
    }

    /// Returns memory for a run, with the constants filled in.
    pub fn memory(&self) -> Vec<R> {
        let mut memory = vec![R::ZERO; self.registers * BLOCK];
        for (k, x) in &self.constants {
            memory[k * BLOCK..(k + 1) * BLOCK].fill(*x);
        }
        memory
    }

    /// Returns the first lane of a variable.
    pub fn input(&self, k: usize) -> usize {
        k * BLOCK
    }

    /// Returns the first lane of a per-lane slot.
    pub fn slot(&self, k: usize) -> usize {
        (self.slots + k) * BLOCK
    }

    /// Returns the first lane of an output.
    pub fn output(&self, k: usize) -> usize {
        self.outputs[k] * BLOCK
    }

    /// Runs the first `n` lanes, rounded up to a multiple of 16.
    ///
    /// # Panics
    /// Panics if `memory` has another size than [`Self::memory`] returns, or `n` exceeds a block.
    ///
    /// # Safety
    /// The processor supports the extension `isa` of [`galamost_plugin_api::lanes`].
    pub unsafe fn run(&self, isa: u32, memory: &mut [R], n: usize) {
        assert!(memory.len() == self.registers * BLOCK && n <= BLOCK);
        let n = n.next_multiple_of(16);
        // SAFETY: every register is below `registers`; the processor supports the extension (contract of this function)
        unsafe {
            #[cfg(target_arch = "x86_64")]
            match isa {
                V4 => return v4(&self.code, memory.as_mut_ptr(), n),
                V3 => return v3(&self.code, memory.as_mut_ptr(), n),
                _ => {}
            }
            execute(&self.code, memory.as_mut_ptr(), n);
        }
    }
}

/// Returns the vector extension of this processor, for calls that do not pass one.
pub fn extension() -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("fma")
            && std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("lzcnt")
            && std::is_x86_feature_detected!("popcnt")
        {
            let v4 = std::is_x86_feature_detected!("avx512f")
                && std::is_x86_feature_detected!("avx512bw")
                && std::is_x86_feature_detected!("avx512cd")
                && std::is_x86_feature_detected!("avx512dq")
                && std::is_x86_feature_detected!("avx512vl");
            return if v4 { V4 } else { V3 };
        }
    }
    BASE
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn v4<R: Real>(code: &[Instruction], memory: *mut R, n: usize) {
    // SAFETY: the contract of this function is passed on
    unsafe { execute(code, memory, n) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn v3<R: Real>(code: &[Instruction], memory: *mut R, n: usize) {
    // SAFETY: the contract of this function is passed on
    unsafe { execute(code, memory, n) }
}

/// Applies one operation to all lanes, sixteen at a time. Arguments are loaded before the result is stored, so both can
/// share a register.
macro_rules! each {
    ($i:ident, $memory:ident, $n:ident; $($x:ident = $k:literal),+ => $value:expr) => {{
        $(let $x = $memory.add($i.from[$k] * BLOCK).cast::<[R; 16]>();)+
        let to = $memory.add($i.to * BLOCK).cast::<[R; 16]>();
        for chunk in 0..$n / 16 {
            $(let $x = *$x.add(chunk);)+
            let mut out = [R::ZERO; 16];
            for (l, out) in out.iter_mut().enumerate() {
                $(let $x = $x[l];)+
                *out = $value;
            }
            *to.add(chunk) = out;
        }
    }};
}

/// NaN, for arguments outside the domain of a function, as in an overstretched FENE bond. The polynomial approximations
/// would return a finite number, but the run must stop.
#[inline(always)]
fn nan<R: Real>() -> R {
    R::lit(f64::NAN)
}

/// Returns aᵇ for a ≥ 0.
#[inline(always)]
fn power<R: Real>(a: R, b: R) -> R {
    let at_zero = if b > R::ZERO { R::ZERO } else { nan() };
    let at_zero = if b == R::ZERO { R::ONE } else { at_zero };
    let otherwise = if a == R::ZERO { at_zero } else { nan() };
    let power = a.powf(b);
    if a > R::ZERO { power } else { otherwise }
}

/// Runs the instructions.
///
/// # Safety
/// `memory` holds all registers of the code, `n` ≤ [`BLOCK`] is a multiple of 16.
#[inline(always)]
unsafe fn execute<R: Real>(code: &[Instruction], memory: *mut R, n: usize) {
    // SAFETY: the contract of this function is passed on
    unsafe {
        for i in code {
            match i.code {
                Code::Add => each!(i, memory, n; a = 0, b = 1 => a + b),
                Code::Subtract => each!(i, memory, n; a = 0, b = 1 => a - b),
                Code::Multiply => each!(i, memory, n; a = 0, b = 1 => a * b),
                Code::MultiplyAdd => each!(i, memory, n; a = 0, b = 1, c = 2 => a * b + c),
                Code::Divide => each!(i, memory, n; a = 0, b = 1 => a / b),
                Code::Power => each!(i, memory, n; a = 0, b = 1 => power(a, b)),
                Code::Less => each!(i, memory, n; a = 0, b = 1, x = 2, y = 3 => if a < b { x } else { y }),
                Code::LessOrEqual => each!(i, memory, n; a = 0, b = 1, x = 2, y = 3 => if a <= b { x } else { y }),
                Code::Call(Function::Exp) => each!(i, memory, n; a = 0 => a.exp()),
                Code::Call(Function::Ln) => each!(i, memory, n; a = 0 => if a > R::ZERO { a.ln() } else { nan() }),
                Code::Call(Function::SlopeOfLn) => {
                    each!(i, memory, n; a = 0 => if a > R::ZERO { R::ONE / a } else { nan() });
                }
                Code::Call(Function::Sqrt) => each!(i, memory, n; a = 0 => a.sqrt()),
                Code::Call(Function::Sin) => each!(i, memory, n; a = 0 => a.sin()),
                Code::Call(Function::Cos) => each!(i, memory, n; a = 0 => a.cos()),
                Code::Call(Function::Acos) => {
                    each!(i, memory, n; a = 0 => if a.abs() <= R::ONE { a.acos() } else { nan() })
                }
                Code::Call(Function::Abs) => each!(i, memory, n; a = 0 => a.abs()),
                Code::Call(Function::Tanh) => {
                    each!(i, memory, n; a = 0 => R::ONE - R::lit(2.0) / ((a + a).exp() + R::ONE));
                }
                Code::Call(Function::Wrap) => {
                    use std::f64::consts::{FRAC_1_PI, TAU};
                    each!(i, memory, n; a = 0 => a - R::lit(TAU) * (a * R::lit(0.5 * FRAC_1_PI)).round());
                }
            }
        }
    }
}
