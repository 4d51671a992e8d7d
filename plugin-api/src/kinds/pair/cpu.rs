//! CPU pair loop: for each particle, its neighbors in chunks of lanes.
//!
//! A chunk is gathered into arrays, evaluated for all lanes without branches, and summed lane by lane. Lanes outside
//! the cutoff are evaluated at the cutoff, lanes past the end of the row at any distance, and their results are dropped. LLVM
//! compiles the arrays to vector registers.
//! The loop is compiled for the baseline, x86-64-v3 and x86-64-v4. All three sum the same lanes in the same order, so
//! the result does not depend on the vector width of the machine. One of the loops is for all cases: it has energies, rows of
//! different types and tilted boxes. Other loops leave some of them out. Processors without AVX2 have only that loop: few are
//! in use. So have builds with debug assertions, for a third of the time to compile.

use super::{CutoffRow, ModeNumber, PairCall, PairEval, PairInput, apply_mode, inputs};
use crate::abi::views::{Globals, ListView, StateView, Step, Sums};
use crate::device::lanes::{BASE, LaneElement, Lanes};
#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
use crate::device::lanes::{V3, V4};
use crate::device::philox::uniform_unit_variance;
use crate::device::precision::{Fixed, Float64, Precision, Scheme};
use crate::device::real::Real;
use std::hint::black_box;
use std::mem::MaybeUninit;

/// Parameter rows of all pairs of types, and the cutoff mode.
#[derive(Clone, Debug, Default)]
pub struct Rows<P, R> {
    /// Number of particle types; 1 if all pairs of types have the same row.
    pub n_types: usize,
    /// Rows of the potential for types i and j, at i · n + j.
    pub rows: Vec<P>,
    /// Cutoff rows for types i and j, at i · n + j.
    pub cutoff_rows: Vec<CutoffRow<R>>,
    /// [`crate::pair::Mode::number`].
    pub mode: u32,
}

/// Adds the forces on particles begin … end, and energy and virial if wanted.
///
/// # Safety
/// * The views of `call` describe valid host arrays of the run's precision, with charges and diameters if `F` uses them.
/// * No other thread accesses forces begin … end during the call, and none writes an array that the loop reads.
/// * Entries of the list are below n_local + n_ghost, and each row is padded with valid entries to a multiple of 16.
/// * The rows have n_types² entries. Types are below `n_types`, or it is 1, with one row for all types.
/// * The processor has the extension `call.isa`.
pub unsafe fn run<F: PairEval>(
    call: &PairCall,
    single: &Rows<F::Row<f32>, f32>,
    double: &Rows<F::Row<f64>, f64>,
    sums: &mut Sums,
) {
    // SAFETY: `state` is valid, and the scheme is that of the precision (contract of this function)
    unsafe {
        if (*call.state).precision == Precision::Double as u32 {
            dispatch::<F, Float64, { Float64::LANES }>(call, double, sums);
        } else {
            dispatch::<F, Fixed, { Fixed::LANES }>(call, single, sums);
        }
    }
}

#[allow(unused_variables, unused_macros)]
unsafe fn dispatch<F: PairEval, S: Scheme, const L: usize>(
    call: &PairCall,
    rows: &Rows<F::Row<S::Real>, S::Real>,
    sums: &mut Sums,
) {
    // forces of mode `Smooth` need energies
    let full = call.wanted.more_than_force() || rows.mode == ModeNumber::Smooth as u32;
    let one = rows.n_types == 1;
    // SAFETY: `state` and its globals are valid (contract of `run`)
    let tilted = unsafe { (*(*call.state).globals.host()).tilt != [0.0; 3] };
    // evaluated only if a specialization exists, so that the loop is not compiled twice otherwise
    let specialized = F::SPECIALIZATION.is_some() && rows.rows.iter().all(F::specialized);
    macro_rules! versions {
        ($f:ident) => {
            match (full, one) {
                _ if tilted => $f::<F, S, L, true, false, false>(call, rows, sums),
                (false, true) if F::SPECIALIZATION.is_some() && specialized => {
                    $f::<F, S, L, false, true, true>(call, rows, sums)
                }
                (false, false) if F::SPECIALIZATION.is_some() && specialized => {
                    $f::<F, S, L, false, false, true>(call, rows, sums)
                }
                (false, true) => $f::<F, S, L, false, true, false>(call, rows, sums),
                (false, false) => $f::<F, S, L, false, false, false>(call, rows, sums),
                (true, true) => $f::<F, S, L, true, true, false>(call, rows, sums),
                (true, false) => $f::<F, S, L, true, false, false>(call, rows, sums),
            }
        };
    }
    // SAFETY: the processor has the extension `call.isa`, and the rest is passed on (contract of `run`)
    unsafe {
        #[cfg(target_arch = "x86_64")]
        match call.isa {
            #[cfg(not(debug_assertions))]
            4 => versions!(v4),
            #[cfg(not(debug_assertions))]
            3 => versions!(v3),
            _ => base::<F, S, L, true, false, false>(call, rows, sums),
        }
        #[cfg(not(target_arch = "x86_64"))]
        versions!(base);
    }
}

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt")]
unsafe fn v4<F: PairEval, S: Scheme, const L: usize, const FULL: bool, const ONE: bool, const SPECIALIZED: bool>(
    call: &PairCall,
    rows: &Rows<F::Row<S::Real>, S::Real>,
    sums: &mut Sums,
) {
    // SAFETY: the contract of `run` is passed on
    unsafe { particles::<F, S, L, FULL, ONE, SPECIALIZED, V4>(call, rows, sums) }
}

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt")]
unsafe fn v3<F: PairEval, S: Scheme, const L: usize, const FULL: bool, const ONE: bool, const SPECIALIZED: bool>(
    call: &PairCall,
    rows: &Rows<F::Row<S::Real>, S::Real>,
    sums: &mut Sums,
) {
    // SAFETY: the contract of `run` is passed on
    unsafe { particles::<F, S, L, FULL, ONE, SPECIALIZED, V3>(call, rows, sums) }
}

unsafe fn base<F: PairEval, S: Scheme, const L: usize, const FULL: bool, const ONE: bool, const SPECIALIZED: bool>(
    call: &PairCall,
    rows: &Rows<F::Row<S::Real>, S::Real>,
    sums: &mut Sums,
) {
    // SAFETY: the contract of `run` is passed on
    unsafe { particles::<F, S, L, FULL, ONE, SPECIALIZED, BASE>(call, rows, sums) }
}

/// Rows of at most this many numbers are evaluated in lanes if types have different rows.
const ROW_NUMBERS: usize = 12;

/// Returns the count of numbers in a row, which has no other members (`PairParams`); more than [`ROW_NUMBERS`] for anything else.
const fn row_numbers<F: PairEval, S: Scheme>() -> usize {
    let (row, number) = (size_of::<F::Row<S::Real>>(), size_of::<S::Real>());
    if row % number == 0 && align_of::<F::Row<S::Real>>() == align_of::<S::Real>() { row / number } else { usize::MAX }
}

/// Returns the row of a lane.
///
/// # Safety
/// `numbers` has the numbers of a row for each lane, which are at most [`ROW_NUMBERS`].
#[inline(always)]
unsafe fn row_of_lane<F: PairEval, S: Scheme, const L: usize>(
    numbers: &[[S::Real; L]; ROW_NUMBERS],
    lane: usize,
) -> F::Row<S::Real> {
    let mut row = MaybeUninit::<F::Row<S::Real>>::uninit();
    let to = row.as_mut_ptr().cast::<S::Real>();
    for (m, lanes) in numbers.iter().enumerate().take(row_numbers::<F, S>()) {
        // SAFETY: the row consists of this many numbers (contract of this function)
        unsafe { *to.add(m) = *lanes.get_unchecked(lane) };
    }
    // SAFETY: all numbers are set
    unsafe { row.assume_init() }
}

/// Lanes in whole cache lines: a processor reads a vector that it has just stored only if the vector is inside of one line.
#[repr(align(64))]
struct Aligned<T>(T);

/// Adds the forces on particles begin … end.
///
/// The function is one block on purpose. Split into inlined functions, LLVM generates 2 % more instructions for it.
#[inline(always)]
unsafe fn particles<
    F: PairEval,
    S: Scheme,
    const L: usize,
    const FULL: bool,
    const ONE: bool,
    const SPECIALIZED: bool,
    const ISA: u32,
>(
    call: &PairCall,
    rows: &Rows<F::Row<S::Real>, S::Real>,
    sums: &mut Sums,
) {
    // SAFETY: every address below is that of an array of n_local + n_ghost elements; entries of the list are below that,
    // types below `n_types`, and rows of the list are padded to whole chunks of L lanes (contract of `run`)
    unsafe {
        let state: &StateView = &*call.state;
        let list: &ListView = &*call.list;
        let globals: &Globals = &*state.globals.host();
        let scale = globals.scale::<S>();
        let pos = state.pos_type.cast::<S::PosType>().host().cast_const();
        let vel = state.velocity_mass.cast::<[S::Real; 4]>().host().cast_const();
        let force = state.force.cast::<[S::Real; 4]>().host();
        let tag = state.tag.host().cast_const();
        let charge = state.charge.cast::<S::Real>().host().cast_const();
        let diameter = state.diameter.cast::<S::Real>().host().cast_const();
        let zero = S::Real::ZERO;
        let mode = rows.mode;
        // the loop for all cases
        let any = FULL && !ONE;
        let one_row = any && rows.n_types == 1;
        // copied, because the compiler must assume that other threads write the globals in every iteration
        let number = globals.step;
        let base = PairInput { step: Step::new(globals, call.first_varying), ..PairInput::default() };

        // not cleared for each chunk
        let (mut f, mut u, mut record) = (Aligned([zero; L]), Aligned([zero; L]), Aligned([[zero; L]; 4]));
        let (f, u, record) = (&mut f.0, &mut u.0, &mut record.0);
        let (mut zeta, mut r_cut, mut numbers) =
            (Aligned([zero; L]), Aligned([zero; L]), Aligned([[zero; L]; ROW_NUMBERS]));
        let (zeta, r_cut, numbers) = (&mut zeta.0, &mut r_cut.0, &mut numbers.0);
        // LLVM vectorizes loops over a number that it does not know, but unrolls loops of 16 into scalars. Accesses are
        // unchecked in these loops, because it could not leave out the checks
        const { assert!(L.is_multiple_of(16)) };
        let lanes = black_box(L);
        std::hint::assert_unchecked(lanes > 0 && lanes.is_multiple_of(16));
        for i in call.begin as usize..call.end as usize {
            let n = *list.count.host().add(i) as usize;
            let row = list.index.host().cast_const().add(i * list.capacity as usize);
            let pi = *pos.add(i);
            let vi = *vel.add(i);
            let first_row = if ONE || one_row { 0 } else { S::kind(&pi) as usize * rows.n_types };
            let mut f_sum = [[zero; L]; 3];
            let mut u_sum = [zero; L];
            let mut w_sum = [[zero; L]; 6];

            let mut k = 0;
            while k < n {
                // the list is padded to whole chunks, so the entries exist
                let neighbor = |l: usize| *row.add(k + l) as usize;
                let (mut d, mut kind) = S::differences::<L, ISA>(&pi, |l| pos.add(neighbor(l)), &scale);
                if any {
                    scale.tilt_lanes(&mut d);
                }
                if any && one_row {
                    kind = [0; L];
                }
                let r2 = S::Real::dot::<L, ISA>(&d, &d);
                let mut rv = [zero; L];
                let mut q = [zero; L];
                let mut size = [zero; L];
                if F::INPUTS & inputs::VELOCITY != 0 {
                    let v = <S::Real as LaneElement>::gather::<L, ISA>(|l| vel.add(neighbor(l)));
                    // no closure: LLVM may compile it on its own, without the vector extension
                    let mut relative = [[zero; L]; 3];
                    for a in 0..3 {
                        relative[a] = S::Real::minus::<L, ISA>(vi[a], &v[a]);
                    }
                    rv = S::Real::dot::<L, ISA>(&d, &relative);
                    if scale.sheared {
                        // add the Lees-Edwards velocity of an image above
                        for l in 0..L {
                            let n = S::crossing(&pi, &*pos.add(neighbor(l)), &scale);
                            rv[l] -= d[0][l] * S::Real::lit(f64::from(n)) * scale.speed;
                        }
                    }
                }
                for l in 0..L {
                    if F::INPUTS & inputs::CHARGE != 0 {
                        q[l] = *charge.add(neighbor(l));
                    }
                    if F::INPUTS & inputs::DIAMETER != 0 {
                        size[l] = *diameter.add(neighbor(l));
                    }
                }
                if F::INPUTS & inputs::RANDOM != 0 {
                    let mut tags = [0u32; L];
                    for (l, t) in tags.iter_mut().enumerate() {
                        *t = *tag.add(neighbor(l));
                    }
                    let ti = *tag.add(i);
                    for l in 0..lanes {
                        let random = call.key.pair(number, ti, *tags.get_unchecked(l))[0];
                        *zeta.get_unchecked_mut(l) = uniform_unit_variance(random);
                    }
                }
                // evaluate lanes outside the cutoff at the cutoff and drop their results: LLVM would not vectorize a
                // branch
                let mut cutoff2 = [rows.cutoff_rows.get_unchecked(0).cutoff2; L];
                if !ONE {
                    for l in 0..L {
                        cutoff2[l] = rows.cutoff_rows.get_unchecked(first_row + kind[l] as usize).cutoff2;
                    }
                }
                let safe_r2 = S::Real::smaller::<L, ISA>(&r2, &cutoff2);
                if F::RECORDS {
                    let (zeros, mut x) = ([zero; 4], [zero; L]);
                    let mut at = [&raw const zeros; L];
                    for l in 0..L {
                        // LLVM would gather every member of different rows, which is slower than single loads
                        let (index, r2) =
                            if ONE { (0, safe_r2[l]) } else { (first_row + kind[l] as usize, black_box(safe_r2[l])) };
                        let found = F::record(r2, rows.rows.get_unchecked(index));
                        (at[l], x[l]) = found.map_or((&raw const zeros, zero), |(record, x)| (&raw const *record, x));
                    }
                    *record = <S::Real as LaneElement>::gather::<L, ISA>(|l| at[l]);
                    for l in 0..lanes {
                        let record = std::array::from_fn(|m| *record[m].get_unchecked(l));
                        let (force, energy) = F::eval_record(*x.get_unchecked(l), record);
                        *f.get_unchecked_mut(l) = force;
                        if FULL {
                            *u.get_unchecked_mut(l) = energy;
                        }
                    }
                } else {
                    // the numbers of different rows are copied to lanes first, because LLVM does not vectorize a loop that looks
                    // them up
                    let in_lanes = !ONE && row_numbers::<F, S>() <= ROW_NUMBERS;
                    if in_lanes {
                        for l in 0..L {
                            let index = first_row + kind[l] as usize;
                            r_cut[l] = rows.cutoff_rows.get_unchecked(index).cutoff;
                            let row = (&raw const *rows.rows.get_unchecked(index)).cast::<S::Real>();
                            for (m, lanes) in numbers.iter_mut().enumerate().take(row_numbers::<F, S>()) {
                                lanes[l] = *row.add(m);
                            }
                        }
                    }
                    for l in 0..lanes {
                        let index = if ONE { 0 } else { first_row + *kind.get_unchecked(l) as usize };
                        let (row, r_cut) = if in_lanes {
                            (row_of_lane::<F, S, L>(numbers, l), *r_cut.get_unchecked(l))
                        } else {
                            (*rows.rows.get_unchecked(index), rows.cutoff_rows.get_unchecked(index).cutoff)
                        };
                        let params = &row;
                        let mut input = PairInput { r2: *safe_r2.get_unchecked(l), r_cut, ..base };
                        if F::INPUTS & inputs::VELOCITY != 0 {
                            input.rv = *rv.get_unchecked(l);
                        }
                        if F::INPUTS & inputs::RANDOM != 0 {
                            input.zeta = *zeta.get_unchecked(l);
                        }
                        if F::INPUTS & inputs::CHARGE != 0 {
                            (input.charge_i, input.charge_j) = (*charge.add(i), *q.get_unchecked(l));
                        }
                        if F::INPUTS & inputs::DIAMETER != 0 {
                            (input.diameter_i, input.diameter_j) = (*diameter.add(i), *size.get_unchecked(l));
                        }
                        if SPECIALIZED {
                            // LLVM removes the code for other rows. `dispatch` called the function for all rows, and it is
                            // pure (`F::SPECIALIZATION`)
                            std::hint::assert_unchecked(F::specialized(params));
                        }
                        let (force, energy) = F::eval(&input, params);
                        *f.get_unchecked_mut(l) = force;
                        if FULL {
                            *u.get_unchecked_mut(l) = energy;
                        }
                    }
                }
                // mode `ShiftEnergy` changes energies only
                if mode != 0 && (FULL || mode != ModeNumber::ShiftEnergy as u32) {
                    for l in 0..lanes {
                        let index = if ONE { 0 } else { first_row + *kind.get_unchecked(l) as usize };
                        let mut cutoff = *rows.cutoff_rows.get_unchecked(index);
                        if F::OWN_SHIFT && mode < ModeNumber::Smooth as u32 {
                            let mut input = PairInput { r2: cutoff.cutoff2, r_cut: cutoff.cutoff, ..base };
                            if F::INPUTS & inputs::CHARGE != 0 {
                                (input.charge_i, input.charge_j) = (*charge.add(i), *q.get_unchecked(l));
                            }
                            if F::INPUTS & inputs::DIAMETER != 0 {
                                (input.diameter_i, input.diameter_j) = (*diameter.add(i), *size.get_unchecked(l));
                            }
                            cutoff = F::shifted(&input, rows.rows.get_unchecked(index), &cutoff);
                        }
                        let found = (*f.get_unchecked(l), if FULL { *u.get_unchecked(l) } else { zero });
                        let (force, energy) = apply_mode(mode, *safe_r2.get_unchecked(l), found, &cutoff);
                        *f.get_unchecked_mut(l) = force;
                        if FULL {
                            *u.get_unchecked_mut(l) = energy;
                        }
                    }
                }
                let f = S::Real::kept::<L, ISA>(f, &r2, &cutoff2, n - k);
                for a in 0..3 {
                    S::Real::add_products::<L, ISA>(&mut f_sum[a], &f, &d[a]);
                }
                if FULL {
                    let u = S::Real::kept::<L, ISA>(u, &r2, &cutoff2, n - k);
                    for l in 0..L {
                        u_sum[l] += u[l];
                        let (x, y, z) = (d[0][l], d[1][l], d[2][l]);
                        let (fx, fy, fz) = (f[l] * x, f[l] * y, f[l] * z);
                        for (w, term) in w_sum.iter_mut().zip([x * fx, x * fy, x * fz, y * fy, y * fz, z * fz]) {
                            w[l] += term;
                        }
                    }
                }
                k += L;
            }

            let out = &mut *force.add(i);
            for a in 0..3 {
                out[a] += S::Real::lit(S::Real::total::<L, ISA>(&f_sum[a]));
            }
            if FULL {
                // each pair is visited twice, once from each particle
                let u = S::Real::total::<L, ISA>(&u_sum) * 0.5;
                out[3] += S::Real::lit(u);
                sums.energy += u;
                let mut w = [0.0; 6];
                for (k, lanes) in w_sum.iter().enumerate() {
                    w[k] = S::Real::total::<L, ISA>(lanes) * 0.5;
                    sums.virial[k] += w[k];
                }
                state.add_virial::<S::Real>(i, w);
            }
        }
    }
}
