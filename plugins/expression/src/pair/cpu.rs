//! CPU loop over pairs.
//!
//! Neighbors inside the cutoff, from several particles in sequence, are packed into a block. The program runs over the
//! whole block, then each particle sums its own lanes. Chunks of lanes are loaded, packed and summed in the same order for
//! every vector extension, so the result does not depend on the extension.

use crate::compiled::CompiledFormula;
use crate::interpreter::{BLOCK, Interpreter, Slots};
use galamost_plugin_api::Real;
use galamost_plugin_api::lanes::{BASE, LaneElement, V3, V4};
use galamost_plugin_api::pair::{CutoffRow, Mode, PairCall, apply_mode};
use galamost_plugin_api::precision::Scheme;
use galamost_plugin_api::vector::Vec3;
use galamost_plugin_api::views::{Globals, ListView, StateView, Sums};

/// Data of the loop in one number type.
pub struct LoopData<R> {
    n_types: usize,
    force: Interpreter<R>,
    full: Interpreter<R>,
    /// Number of coefficients that differ by lane; 0 with one particle type.
    slots: usize,
    /// Coefficient s of the pair (i, j) at (i · slots + s) · n_types + j.
    numbers: Vec<R>,
    /// r_cut² of the pair (i, j) at i · n_types + j.
    cutoff2: Vec<R>,
    cutoff: Vec<CutoffRow<R>>,
    mode: u32,
}

impl<R: Real> LoopData<R> {
    /// Converts the coefficients and cutoffs.
    pub fn new(
        formula: &CompiledFormula,
        n_types: usize,
        rows: &[Vec<f64>],
        cutoff: &[CutoffRow<f64>],
        mode: Mode,
    ) -> Self {
        let (slots, slot_kind) = match rows {
            [row] => (0, Slots::Fixed(row)),
            _ => (formula.slots(), Slots::PerLane(formula.slots())),
        };
        let mut numbers = vec![R::ZERO; n_types * slots * n_types];
        for i in 0..n_types {
            for s in 0..slots {
                for j in 0..n_types {
                    numbers[(i * slots + s) * n_types + j] = R::lit(rows[i * n_types + j][s]);
                }
            }
        }
        Self {
            n_types,
            force: Interpreter::new(&formula.force, 1, slot_kind),
            full: Interpreter::new(&formula.full, 1, slot_kind),
            slots,
            numbers,
            cutoff2: cutoff.iter().map(|e| R::lit(e.cutoff2)).collect(),
            cutoff: cutoff.iter().map(CutoffRow::cast).collect(),
            mode: mode.number(),
        }
    }
}

/// Adds the forces on the particles begin … end and, if requested, energy and virial.
///
/// # Safety
/// `call` describes valid host arrays of the scheme `S`, and no other thread accesses the forces begin … end.
pub unsafe fn run<S: Scheme, const L: usize>(call: &PairCall, data: &LoopData<S::Real>, sums: &mut Sums) {
    // SAFETY: the contract of this function is passed on
    unsafe {
        if (*(*call.state).globals.host()).tilt == [0.0; 3] {
            in_box::<S, L, false>(call, data, sums);
        } else {
            in_box::<S, L, true>(call, data, sums);
        }
    }
}

/// Runs the loop with the vector extension of the call. `TILTED`: the box is triclinic. Rectangular boxes have their own
/// instance of the loop, which does not convert differences.
unsafe fn in_box<S: Scheme, const L: usize, const TILTED: bool>(
    call: &PairCall,
    data: &LoopData<S::Real>,
    sums: &mut Sums,
) {
    // SAFETY: the contract of `run` is passed on; the processor has the extension `isa` of the call
    unsafe {
        #[cfg(target_arch = "x86_64")]
        match call.isa {
            V4 => return v4::<S, L, TILTED>(call, data, sums),
            V3 => return v3::<S, L, TILTED>(call, data, sums),
            _ => {}
        }
        particles::<S, L, BASE, TILTED>(call, data, sums);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn v4<S: Scheme, const L: usize, const TILTED: bool>(
    call: &PairCall,
    data: &LoopData<S::Real>,
    sums: &mut Sums,
) {
    // SAFETY: the contract of this function is passed on
    unsafe { particles::<S, L, V4, TILTED>(call, data, sums) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn v3<S: Scheme, const L: usize, const TILTED: bool>(
    call: &PairCall,
    data: &LoopData<S::Real>,
    sums: &mut Sums,
) {
    // SAFETY: the contract of this function is passed on
    unsafe { particles::<S, L, V3, TILTED>(call, data, sums) }
}

/// The lanes `first` … `end` of one particle in a block; lanes from `end` to the next full chunk are padding.
#[derive(Clone, Copy)]
struct Segment {
    particle: usize,
    type_index: usize,
    first: usize,
    end: usize,
}

/// A block of pairs.
struct Block<'a, R> {
    state: &'a StateView,
    data: &'a LoopData<R>,
    interpreter: &'a Interpreter<R>,
    full: bool,
    memory: Vec<R>,
    distance: [[R; BLOCK]; 3],
    types: [i32; BLOCK],
    used: usize,
    segments: Vec<Segment>,
}

#[inline(always)]
unsafe fn particles<S: Scheme, const L: usize, const ISA: u32, const TILTED: bool>(
    call: &PairCall,
    data: &LoopData<S::Real>,
    sums: &mut Sums,
) {
    // SAFETY: the arrays have n_local + n_ghost elements, every list entry is below that, and types are below n_types
    unsafe {
        let state: &StateView = &*call.state;
        let list: &ListView = &*call.list;
        let globals: &Globals = &*state.globals.host();
        let scale = globals.scale::<S>();
        let pos = state.pos_type.cast::<S::PosType>().host().cast_const();
        let force = state.force.cast::<[S::Real; 4]>().host();
        let one = data.n_types == 1;
        // `Smooth` needs the energy for its force
        let full = call.wanted.more_than_force() || data.mode == 3;
        let interpreter = if full { &data.full } else { &data.force };
        let mut block = Block {
            state,
            data,
            interpreter,
            full,
            memory: interpreter.memory(),
            distance: [[S::Real::ZERO; BLOCK]; 3],
            types: [0; BLOCK],
            used: 0,
            segments: Vec::with_capacity(BLOCK / L),
        };
        for i in call.begin as usize..call.end as usize {
            let n = *list.count.host().add(i) as usize;
            let row = list.index.host().cast_const().add(i * list.capacity as usize);
            let pi = *pos.add(i);
            let type_i = S::kind(&pi) as usize;
            let cutoff2 = data.cutoff2.as_ptr().add(type_i * data.n_types);
            let mut first = block.used;
            let mut k = 0;
            while k < n {
                if block.used + L > BLOCK {
                    block.close::<L>(i, type_i, first);
                    block.flush::<L, ISA>(call.isa, force, sums);
                    first = 0;
                }
                // the list is padded to full chunks, so the entries exist
                let (mut d, types) = S::differences::<L, ISA>(&pi, |l| pos.add(*row.add(k + l) as usize), &scale);
                if TILTED {
                    // stored positions are reduced coordinates, and so are their differences
                    let [x, y, z] = &mut d;
                    for ((x, y), z) in x.iter_mut().zip(y).zip(z) {
                        let r = scale.in_space(Vec3 { x: *x, y: *y, z: *z });
                        (*x, *y) = (r.x, r.y);
                    }
                }
                let mut r2 = [S::Real::ZERO; L];
                for l in 0..L {
                    r2[l] = d[0][l] * d[0][l] + d[1][l] * d[1][l] + d[2][l] * d[2][l];
                }
                let mut limit2 = [*cutoff2; L];
                if !one {
                    for l in 0..L {
                        limit2[l] = *cutoff2.add(types[l] as usize);
                    }
                }
                let valid = if n - k < L { (1 << (n - k)) - 1 } else { u32::MAX };
                let inside = S::Real::less::<L, ISA>(&r2, &limit2) & valid;
                let used = block.used;
                for (to, from) in block.distance.iter_mut().zip(&d) {
                    S::Real::pack::<L, ISA>(to.as_mut_ptr().add(used), from, inside);
                }
                if !one {
                    i32::pack::<L, ISA>(block.types.as_mut_ptr().add(used), &types.map(|k| k as i32), inside);
                }
                S::Real::pack::<L, ISA>(block.memory.as_mut_ptr().add(interpreter.input(0) + used), &r2, inside);
                block.used += inside.count_ones() as usize;
                k += L;
            }
            block.close::<L>(i, type_i, first);
        }
        block.flush::<L, ISA>(call.isa, force, sums);
    }
}

impl<R: Real> Block<'_, R> {
    /// Ends a particle's segment and pads it to a full chunk with its first pair at zero distance vector.
    #[inline(always)]
    fn close<const L: usize>(&mut self, particle: usize, type_index: usize, first: usize) {
        let end = self.used;
        if end == first {
            return;
        }
        let whole = end.next_multiple_of(L);
        let input = self.interpreter.input(0);
        let r2 = self.memory[input + first];
        self.memory[input + end..input + whole].fill(r2);
        let other = self.types[first];
        self.types[end..whole].fill(other);
        for d in &mut self.distance {
            d[end..whole].fill(R::ZERO);
        }
        self.used = whole;
        self.segments.push(Segment { particle, type_index, first, end });
    }

    /// Computes all pairs of the block and adds their forces.
    ///
    /// # Safety
    /// `force` covers the particles of the block, and the processor supports `isa`.
    #[inline(always)]
    unsafe fn flush<const L: usize, const ISA: u32>(&mut self, isa: u32, force: *mut [R; 4], sums: &mut Sums) {
        let data = self.data;
        for p in &self.segments {
            for s in 0..data.slots {
                let row = &data.numbers[(p.type_index * data.slots + s) * data.n_types..][..data.n_types];
                let lanes = p.first..p.end.next_multiple_of(L);
                let to = &mut self.memory[self.interpreter.slot(s)..][lanes.clone()];
                for (to, pair_type) in to.iter_mut().zip(&self.types[lanes]) {
                    // SAFETY: types are below `n_types`
                    *to = unsafe { *row.get_unchecked(*pair_type as usize) };
                }
            }
        }
        // SAFETY: the processor supports `isa`
        unsafe { self.interpreter.run(isa, &mut self.memory, self.used) };
        for p in &self.segments {
            // SAFETY: the particle is within begin … end, and the processor supports the extension
            unsafe {
                let out = &mut *force.add(p.particle);
                if self.full {
                    self.add::<L, true, ISA>(*p, out, sums);
                } else {
                    self.add::<L, false, ISA>(*p, out, sums);
                }
            }
        }
        self.used = 0;
        self.segments.clear();
    }

    /// Sums the lanes of one particle.
    ///
    /// # Safety
    /// The processor supports the extension `ISA`, and no other thread accesses the particle's force.
    #[inline(always)]
    unsafe fn add<const L: usize, const FULL: bool, const ISA: u32>(
        &self,
        p: Segment,
        out: &mut [R; 4],
        sums: &mut Sums,
    ) {
        let data = self.data;
        let cutoff = &data.cutoff[p.type_index * data.n_types..][..data.n_types];
        let (r2, f) = (&self.memory[self.interpreter.input(0)..], &self.memory[self.interpreter.output(0)..]);
        let u = if FULL { &self.memory[self.interpreter.output(1)..] } else { f };
        let mut f_sum = [[R::ZERO; L]; 3];
        let mut u_sum = [R::ZERO; L];
        let mut w_sum = [[R::ZERO; L]; 6];
        let mut at = p.first;
        while at < p.end {
            let (mut f, mut u) = (chunk::<R, L>(f, at), chunk::<R, L>(u, at));
            if data.mode != 0 {
                let r2: [R; L] = chunk(r2, at);
                for l in 0..L {
                    let cutoff_row = if data.n_types == 1 { &cutoff[0] } else { &cutoff[self.types[at + l] as usize] };
                    (f[l], u[l]) = apply_mode(data.mode, r2[l], (f[l], u[l]), cutoff_row);
                }
            }
            // one loop over lanes per sum: LLVM vectorizes these, but not one loop with several sums
            let d: [[R; L]; 3] = std::array::from_fn(|a| chunk(&self.distance[a], at));
            let mut fd = [[R::ZERO; L]; 3];
            for a in 0..3 {
                for l in 0..L {
                    fd[a][l] = f[l] * d[a][l];
                }
                for l in 0..L {
                    f_sum[a][l] += fd[a][l];
                }
            }
            if FULL {
                for l in 0..L {
                    u_sum[l] += if at + l < p.end { u[l] } else { R::ZERO };
                }
                for (w, (a, b)) in w_sum.iter_mut().zip([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]) {
                    for l in 0..L {
                        w[l] += d[a][l] * fd[b][l];
                    }
                }
            }
            at += L;
        }
        // SAFETY: the processor supports the extension
        let total = |lanes: &[R; L]| unsafe { R::total::<L, ISA>(lanes) };
        for (out, f) in out.iter_mut().zip(&f_sum) {
            *out += R::lit(total(f));
        }
        if FULL {
            // each pair is visited twice, once per particle
            let u = total(&u_sum) * 0.5;
            out[3] += R::lit(u);
            sums.energy += u;
            let w = w_sum.map(|w| total(&w) * 0.5);
            sums.virial.iter_mut().zip(w).for_each(|(sum, w)| *sum += w);
            // SAFETY: the particle is within begin … end, and the arrays of the state outlive the block
            unsafe { self.state.add_virial::<R>(p.particle, w) };
        }
    }
}

/// Returns the `L` lanes from `at` on.
#[inline(always)]
fn chunk<R: Real, const L: usize>(from: &[R], at: usize) -> [R; L] {
    assert!(at + L <= from.len());
    // SAFETY: `at + L` ≤ `from.len()`
    unsafe { *from.as_ptr().add(at).cast() }
}
