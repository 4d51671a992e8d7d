//! The loop over pairs on the CPU.
//!
//! Neighbors inside the cutoff are packed into a block, those of several particles one behind the other; the program
//! runs over the whole block; then each particle adds up its own lanes. Chunks of lanes are loaded, packed and added in
//! the same order for every vector extension, so the result does not depend on it.

use crate::law::Law;
use crate::machine::{BLOCK, Machine, Slots};
use galamost_plugin_api::Real;
use galamost_plugin_api::lanes::{BASE, LaneElement, V3, V4};
use galamost_plugin_api::pair::{CutoffRow, Mode, PairCall, apply_mode};
use galamost_plugin_api::precision::Scheme;
use galamost_plugin_api::views::{Globals, ListView, StateView, Sums};

/// What the loop reads for one number type.
pub struct Table<R> {
    n_types: usize,
    force: Machine<R>,
    full: Machine<R>,
    /// Numbers that differ by lane, 0 with one particle type.
    slots: usize,
    /// Number s of the pair (i, j) at (i · slots + s) · n + j.
    numbers: Vec<R>,
    /// r_cut² of the pair (i, j) at i · n + j.
    cutoff2: Vec<R>,
    cutoff: Vec<CutoffRow<R>>,
    mode: u32,
}

impl<R: Real> Table<R> {
    pub fn new(law: &Law, n_types: usize, rows: &[Vec<f64>], cutoff: &[CutoffRow<f64>], mode: Mode) -> Self {
        let (slots, kind) = match rows {
            [row] => (0, Slots::Fixed(row)),
            _ => (law.slots(), Slots::PerLane(law.slots())),
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
            force: Machine::new(&law.force, 1, kind),
            full: Machine::new(&law.full, 1, kind),
            slots,
            numbers,
            cutoff2: cutoff.iter().map(|e| R::lit(e.cutoff2)).collect(),
            cutoff: cutoff.iter().map(CutoffRow::cast).collect(),
            mode: mode.number(),
        }
    }
}

/// Adds the forces on particles begin … end, and returns energy and virial if they are wanted.
///
/// # Safety
/// `call` must describe valid host arrays of the scheme `S`, whose force rows begin … end nobody else touches.
pub unsafe fn run<S: Scheme, const L: usize>(call: &PairCall, table: &Table<S::Real>, sums: &mut Sums) {
    // SAFETY: the caller's word; the engine asks for an extension only where the processor has it
    unsafe {
        #[cfg(target_arch = "x86_64")]
        match call.isa {
            V4 => return v4::<S, L>(call, table, sums),
            V3 => return v3::<S, L>(call, table, sums),
            _ => {}
        }
        particles::<S, L, BASE>(call, table, sums);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn v4<S: Scheme, const L: usize>(call: &PairCall, table: &Table<S::Real>, sums: &mut Sums) {
    // SAFETY: the caller's word
    unsafe { particles::<S, L, V4>(call, table, sums) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn v3<S: Scheme, const L: usize>(call: &PairCall, table: &Table<S::Real>, sums: &mut Sums) {
    // SAFETY: the caller's word
    unsafe { particles::<S, L, V3>(call, table, sums) }
}

/// Lanes of one particle in a block: from `first` on; those from `end` to the next whole chunk weigh nothing.
#[derive(Clone, Copy)]
struct Piece {
    particle: usize,
    kind: usize,
    first: usize,
    end: usize,
}

/// Pairs on their way through the program.
struct Block<'a, R> {
    table: &'a Table<R>,
    machine: &'a Machine<R>,
    full: bool,
    memory: Vec<R>,
    distance: [[R; BLOCK]; 3],
    kind: [i32; BLOCK],
    used: usize,
    pieces: Vec<Piece>,
}

#[inline(always)]
unsafe fn particles<S: Scheme, const L: usize, const ISA: u32>(
    call: &PairCall,
    table: &Table<S::Real>,
    sums: &mut Sums,
) {
    // SAFETY: the caller's word: every address below is that of an array of n_local + n_ghost elements, every entry of
    // the list is an index below that, and kinds are below n_types
    unsafe {
        let state: &StateView = &*call.state;
        let list: &ListView = &*call.list;
        let globals: &Globals = &*state.globals.host();
        let scale = globals.scale::<S>();
        let pos = state.pos_type.cast::<S::PosType>().host().cast_const();
        let force = state.force.cast::<[S::Real; 4]>().host();
        let one = table.n_types == 1;
        // `Smooth` needs the energy for its force
        let full = call.wanted.more_than_force() || table.mode == 3;
        let machine = if full { &table.full } else { &table.force };
        let mut block = Block {
            table,
            machine,
            full,
            memory: machine.memory(),
            distance: [[S::Real::ZERO; BLOCK]; 3],
            kind: [0; BLOCK],
            used: 0,
            pieces: Vec::with_capacity(BLOCK / L),
        };
        for i in call.begin as usize..call.end as usize {
            let n = *list.count.host().add(i) as usize;
            let row = list.index.host().cast_const().add(i * list.capacity as usize);
            let pi = *pos.add(i);
            let kind_i = S::kind(&pi) as usize;
            let cutoff2 = table.cutoff2.as_ptr().add(kind_i * table.n_types);
            let mut first = block.used;
            let mut k = 0;
            while k < n {
                if block.used + L > BLOCK {
                    block.close::<L>(i, kind_i, first);
                    block.flush::<L, ISA>(call.isa, force, sums);
                    first = 0;
                }
                // the list is filled up to a whole number of chunks, so the entries exist
                let (d, kind) = S::differences::<L, ISA>(&pi, |l| pos.add(*row.add(k + l) as usize), &scale);
                let mut r2 = [S::Real::ZERO; L];
                for l in 0..L {
                    r2[l] = d[0][l] * d[0][l] + d[1][l] * d[1][l] + d[2][l] * d[2][l];
                }
                let mut limit2 = [*cutoff2; L];
                if !one {
                    for l in 0..L {
                        limit2[l] = *cutoff2.add(kind[l] as usize);
                    }
                }
                let left = if n - k < L { (1 << (n - k)) - 1 } else { u32::MAX };
                let inside = S::Real::less::<L, ISA>(&r2, &limit2) & left;
                let used = block.used;
                for (to, from) in block.distance.iter_mut().zip(&d) {
                    S::Real::pack::<L, ISA>(to.as_mut_ptr().add(used), from, inside);
                }
                if !one {
                    i32::pack::<L, ISA>(block.kind.as_mut_ptr().add(used), &kind.map(|k| k as i32), inside);
                }
                S::Real::pack::<L, ISA>(block.memory.as_mut_ptr().add(machine.input(0) + used), &r2, inside);
                block.used += inside.count_ones() as usize;
                k += L;
            }
            block.close::<L>(i, kind_i, first);
        }
        block.flush::<L, ISA>(call.isa, force, sums);
    }
}

impl<R: Real> Block<'_, R> {
    /// Ends a particle's lanes and fills them up to a whole chunk with its first pair, without a direction.
    #[inline(always)]
    fn close<const L: usize>(&mut self, particle: usize, kind: usize, first: usize) {
        let end = self.used;
        if end == first {
            return;
        }
        let whole = end.next_multiple_of(L);
        let input = self.machine.input(0);
        let r2 = self.memory[input + first];
        self.memory[input + end..input + whole].fill(r2);
        let other = self.kind[first];
        self.kind[end..whole].fill(other);
        for d in &mut self.distance {
            d[end..whole].fill(R::ZERO);
        }
        self.used = whole;
        self.pieces.push(Piece { particle, kind, first, end });
    }

    /// Computes all pairs of the block and adds what they give.
    #[inline(always)]
    unsafe fn flush<const L: usize, const ISA: u32>(&mut self, isa: u32, force: *mut [R; 4], sums: &mut Sums) {
        let table = self.table;
        for p in &self.pieces {
            for s in 0..table.slots {
                let row = &table.numbers[(p.kind * table.slots + s) * table.n_types..][..table.n_types];
                let lanes = p.first..p.end.next_multiple_of(L);
                let to = &mut self.memory[self.machine.slot(s)..][lanes.clone()];
                for (to, kind) in to.iter_mut().zip(&self.kind[lanes]) {
                    // SAFETY: kinds are below the number of types
                    *to = unsafe { *row.get_unchecked(*kind as usize) };
                }
            }
        }
        self.machine.run(isa, &mut self.memory, self.used);
        for p in &self.pieces {
            // SAFETY: the caller's word: the particle is one of those whose forces are this call's, and the extension is there
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
        self.pieces.clear();
    }

    /// Adds up the lanes of one particle.
    ///
    /// # Safety
    /// The processor must have the extension `ISA`.
    #[inline(always)]
    unsafe fn add<const L: usize, const FULL: bool, const ISA: u32>(
        &self,
        p: Piece,
        out: &mut [R; 4],
        sums: &mut Sums,
    ) {
        let table = self.table;
        let cutoff = &table.cutoff[p.kind * table.n_types..][..table.n_types];
        let (r2, f) = (&self.memory[self.machine.input(0)..], &self.memory[self.machine.output(0)..]);
        let u = if FULL { &self.memory[self.machine.output(1)..] } else { f };
        let mut f_sum = [[R::ZERO; L]; 3];
        let mut u_sum = [R::ZERO; L];
        let mut w_sum = [[R::ZERO; L]; 6];
        let mut at = p.first;
        while at < p.end {
            let (mut f, mut u) = (chunk::<R, L>(f, at), chunk::<R, L>(u, at));
            if table.mode != 0 {
                let r2: [R; L] = chunk(r2, at);
                for l in 0..L {
                    let cutoff_row = if table.n_types == 1 { &cutoff[0] } else { &cutoff[self.kind[at + l] as usize] };
                    (f[l], u[l]) = apply_mode(table.mode, r2[l], (f[l], u[l]), cutoff_row);
                }
            }
            // one loop over lanes for each sum: LLVM makes vectors of that, and a tangle of several sums in one loop
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
        // SAFETY: the caller's word
        let total = |lanes: &[R; L]| unsafe { R::total::<L, ISA>(lanes) };
        for (out, f) in out.iter_mut().zip(&f_sum) {
            *out += R::lit(total(f));
        }
        if FULL {
            // every pair is met twice, once from each side
            let u = total(&u_sum) * 0.5;
            out[3] += R::lit(u);
            sums.energy += u;
            for (sum, w) in sums.virial.iter_mut().zip(&w_sum) {
                *sum += total(w) * 0.5;
            }
        }
    }
}

/// The lanes from `at` on.
#[inline(always)]
fn chunk<R: Real, const L: usize>(from: &[R], at: usize) -> [R; L] {
    assert!(at + L <= from.len());
    // SAFETY: the lanes are there
    unsafe { *from.as_ptr().add(at).cast() }
}
