//! CPU pair loop: for each particle, its neighbors in chunks of lanes.
//!
//! A chunk is gathered into arrays, evaluated for all lanes without branches, and summed lane by lane. Lanes outside
//! the cutoff are evaluated at the cutoff, and their results are dropped. LLVM compiles the arrays to vector registers.
//! The loop is compiled for the baseline, x86-64-v3 and x86-64-v4. All three sum the same lanes in the same order, so
//! the result does not depend on the vector width of the machine.

use super::{CutoffRow, PairCall, PairEval, PairInput, apply_mode, inputs};
use crate::abi::views::{Globals, ListView, StateView, Step, Sums};
use crate::device::lanes::{BASE, LaneElement, Lanes, V3, V4};
use crate::device::philox::uniform_unit_variance;
use crate::device::precision::{BoxScale, Fixed, Float64, Precision, Scheme};
use crate::device::real::Real;

/// Parameter rows of all pairs of types, and the cutoff mode.
#[derive(Clone, Debug, Default)]
pub struct Rows<P, R> {
    /// Number of particle types.
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
/// `call` must describe valid host arrays of the given precision, and no other thread may access force rows begin … end during the call.
pub unsafe fn run<F: PairEval>(
    call: &PairCall,
    single: &Rows<F::Row<f32>, f32>,
    double: &Rows<F::Row<f64>, f64>,
    sums: &mut Sums,
) {
    // SAFETY: `call` describes valid host memory (contract of this function)
    unsafe {
        if (*call.state).precision == Precision::Double as u32 {
            dispatch::<F, Float64, { Float64::LANES }>(call, double, sums);
        } else {
            dispatch::<F, Fixed, { Fixed::LANES }>(call, single, sums);
        }
    }
}

#[allow(unused_variables)]
unsafe fn dispatch<F: PairEval, S: Scheme, const L: usize>(
    call: &PairCall,
    rows: &Rows<F::Row<S::Real>, S::Real>,
    sums: &mut Sums,
) {
    // the force in mode `Smooth` depends on the energy
    let full = call.wanted.more_than_force() || rows.mode == 3;
    let one = rows.n_types == 1;
    // evaluated only if a specialization exists, so that the loop is not compiled twice otherwise
    let specialized = F::HAS_SPECIALIZATION && rows.rows.iter().all(F::specialized);
    macro_rules! versions {
        ($f:ident) => {
            match (full, one) {
                (false, true) if F::HAS_SPECIALIZATION && specialized => {
                    $f::<F, S, L, false, true, true>(call, rows, sums)
                }
                (false, false) if F::HAS_SPECIALIZATION && specialized => {
                    $f::<F, S, L, false, false, true>(call, rows, sums)
                }
                (false, true) => $f::<F, S, L, false, true, false>(call, rows, sums),
                (false, false) => $f::<F, S, L, false, false, false>(call, rows, sums),
                (true, true) => $f::<F, S, L, true, true, false>(call, rows, sums),
                (true, false) => $f::<F, S, L, true, false, false>(call, rows, sums),
            }
        };
    }
    // SAFETY: `call` is valid (contract of this function); the engine requests an extension only if the processor has
    // it
    unsafe {
        #[cfg(target_arch = "x86_64")]
        match call.isa {
            4 => return versions!(v4),
            3 => return versions!(v3),
            _ => {}
        }
        versions!(base);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt")]
unsafe fn v4<F: PairEval, S: Scheme, const L: usize, const FULL: bool, const ONE: bool, const SPECIALIZED: bool>(
    call: &PairCall,
    rows: &Rows<F::Row<S::Real>, S::Real>,
    sums: &mut Sums,
) {
    // SAFETY: `call` describes valid host memory (contract of this function)
    unsafe { particles::<F, S, L, FULL, ONE, SPECIALIZED, V4>(call, rows, sums) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt")]
unsafe fn v3<F: PairEval, S: Scheme, const L: usize, const FULL: bool, const ONE: bool, const SPECIALIZED: bool>(
    call: &PairCall,
    rows: &Rows<F::Row<S::Real>, S::Real>,
    sums: &mut Sums,
) {
    // SAFETY: `call` describes valid host memory (contract of this function)
    unsafe { particles::<F, S, L, FULL, ONE, SPECIALIZED, V3>(call, rows, sums) }
}

unsafe fn base<F: PairEval, S: Scheme, const L: usize, const FULL: bool, const ONE: bool, const SPECIALIZED: bool>(
    call: &PairCall,
    rows: &Rows<F::Row<S::Real>, S::Real>,
    sums: &mut Sums,
) {
    // SAFETY: `call` describes valid host memory (contract of this function)
    unsafe { particles::<F, S, L, FULL, ONE, SPECIALIZED, BASE>(call, rows, sums) }
}

/// Arrays of particles that the loop reads.
#[derive(Clone, Copy)]
struct Arrays<S: Scheme> {
    pos: *const S::PosType,
    vel: *const [S::Real; 4],
    tag: *const u32,
    charge: *const S::Real,
    diameter: *const S::Real,
}

impl<S: Scheme> Arrays<S> {
    fn new(state: &StateView) -> Self {
        Self {
            pos: state.pos_type.cast::<S::PosType>().host().cast_const(),
            vel: state.velocity_mass.cast::<[S::Real; 4]>().host().cast_const(),
            tag: state.tag.host().cast_const(),
            charge: state.charge.cast::<S::Real>().host().cast_const(),
            diameter: state.diameter.cast::<S::Real>().host().cast_const(),
        }
    }
}

/// Inputs of one chunk that only some functions use.
struct ChunkInputs<R, const L: usize> {
    rv: [R; L],
    zeta: [R; L],
    charge: [R; L],
    diameter: [R; L],
}

impl<R: Real, const L: usize> ChunkInputs<R, L> {
    /// Sets the charges and diameters of particle `i` and the neighbor in lane `l`.
    #[inline(always)]
    unsafe fn set_particles<F: PairEval, S: Scheme<Real = R>>(
        &self,
        input: &mut PairInput<R>,
        arrays: &Arrays<S>,
        i: usize,
        l: usize,
    ) {
        // SAFETY: particle `i` exists, and components that use an array provide it (contract of `particles`)
        unsafe {
            if F::INPUTS & inputs::CHARGE != 0 {
                (input.charge_i, input.charge_j) = (*arrays.charge.add(i), self.charge[l]);
            }
            if F::INPUTS & inputs::DIAMETER != 0 {
                (input.diameter_i, input.diameter_j) = (*arrays.diameter.add(i), self.diameter[l]);
            }
        }
    }

    /// Evaluates the pair of particle `i` and the neighbor in lane `l`: (F/r, U). `input` has distance and cutoff.
    #[inline(always)]
    unsafe fn evaluate<F: PairEval, S: Scheme<Real = R>, const SPECIALIZED: bool>(
        &self,
        mut input: PairInput<R>,
        params: &F::Row<R>,
        arrays: &Arrays<S>,
        i: usize,
        l: usize,
    ) -> (R, R) {
        if F::INPUTS & inputs::VELOCITY != 0 {
            input.rv = self.rv[l];
        }
        if F::INPUTS & inputs::RANDOM != 0 {
            input.zeta = self.zeta[l];
        }
        // SAFETY: as for `set_particles`; `dispatch` checked all rows, and LLVM removes the code for other rows
        unsafe {
            self.set_particles::<F, S>(&mut input, arrays, i, l);
            if SPECIALIZED {
                std::hint::assert_unchecked(F::specialized(params));
            }
        }
        F::eval(&input, params)
    }

    /// Returns the cutoff row with the shifts of the pair of particle `i` and the neighbor in lane `l`.
    #[inline(always)]
    unsafe fn shifted<F: PairEval, S: Scheme<Real = R>>(
        &self,
        base: PairInput<R>,
        params: &F::Row<R>,
        cutoff: &CutoffRow<R>,
        arrays: &Arrays<S>,
        i: usize,
        l: usize,
    ) -> CutoffRow<R> {
        let mut input = PairInput { r2: cutoff.cutoff2, r_cut: cutoff.cutoff, ..base };
        // SAFETY: as for `set_particles`
        unsafe { self.set_particles::<F, S>(&mut input, arrays, i, l) };
        F::shifted(&input, params, cutoff)
    }
}

/// Gathers the inputs that `F` uses besides the distance, for particle `i` and the neighbors of one chunk.
#[inline(always)]
unsafe fn chunk_inputs<F: PairEval, S: Scheme, const L: usize, const ISA: u32>(
    (call, step, scale): (&PairCall, u64, &BoxScale<S::Real>),
    arrays: &Arrays<S>,
    (i, pi, vi): (usize, &S::PosType, [S::Real; 4]),
    d: &[[S::Real; L]; 3],
    neighbor: impl Fn(usize) -> usize,
) -> ChunkInputs<S::Real, L> {
    let zero = [S::Real::ZERO; L];
    let mut c = ChunkInputs { rv: zero, zeta: zero, charge: zero, diameter: zero };
    // SAFETY: all neighbors exist, and components that use an array provide it (contract of `particles`)
    unsafe {
        if F::INPUTS & inputs::VELOCITY != 0 {
            let v = <S::Real as LaneElement>::gather::<L, ISA>(|l| arrays.vel.add(neighbor(l)));
            let relative = std::array::from_fn(|a| S::Real::minus::<L, ISA>(vi[a], &v[a]));
            c.rv = S::Real::dot::<L, ISA>(d, &relative);
            if scale.sheared {
                // add the Lees-Edwards velocity of an image above
                for l in 0..L {
                    let n = S::crossing(pi, &*arrays.pos.add(neighbor(l)), scale);
                    c.rv[l] -= d[0][l] * S::Real::lit(f64::from(n)) * scale.speed;
                }
            }
        }
        for l in 0..L {
            if F::INPUTS & inputs::CHARGE != 0 {
                c.charge[l] = *arrays.charge.add(neighbor(l));
            }
            if F::INPUTS & inputs::DIAMETER != 0 {
                c.diameter[l] = *arrays.diameter.add(neighbor(l));
            }
        }
        if F::INPUTS & inputs::RANDOM != 0 {
            let mut tags = [0u32; L];
            for (l, t) in tags.iter_mut().enumerate() {
                *t = *arrays.tag.add(neighbor(l));
            }
            let ti = *arrays.tag.add(i);
            for l in 0..L {
                c.zeta[l] = uniform_unit_variance(call.key.pair(step, ti, tags[l])[0]);
            }
        }
    }
    c
}

/// Sums over the neighbors of one particle, lane by lane.
struct LaneSums<R, const L: usize> {
    force: [[R; L]; 3],
    energy: [R; L],
    virial: [[R; L]; 6],
}

impl<R: Real, const L: usize> LaneSums<R, L> {
    /// Adds the energies and virials of one chunk.
    #[inline(always)]
    fn add_energy(&mut self, d: &[[R; L]; 3], f: &[R; L], u: &[R; L]) {
        for l in 0..L {
            self.energy[l] += u[l];
            let (x, y, z) = (d[0][l], d[1][l], d[2][l]);
            let (fx, fy, fz) = (f[l] * x, f[l] * y, f[l] * z);
            for (w, term) in self.virial.iter_mut().zip([x * fx, x * fy, x * fz, y * fy, y * fz, z * fz]) {
                w[l] += term;
            }
        }
    }

    /// Adds the totals to the force of the particle, and to the energy and virial of the component if `FULL`.
    #[inline(always)]
    unsafe fn finish<const FULL: bool, const ISA: u32>(&self, out: &mut [R; 4], sums: &mut Sums) {
        // SAFETY: the processor has the extension `ISA` (contract of `particles`)
        unsafe {
            for a in 0..3 {
                out[a] += R::lit(R::total::<L, ISA>(&self.force[a]));
            }
            if FULL {
                // each pair is visited twice, once from each particle
                let u = R::total::<L, ISA>(&self.energy) * 0.5;
                out[3] += R::lit(u);
                sums.energy += u;
                for (sum, w) in sums.virial.iter_mut().zip(&self.virial) {
                    *sum += R::total::<L, ISA>(w) * 0.5;
                }
            }
        }
    }
}

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
    // SAFETY: `call` is valid (contract of this function): every address below is that of an array of n_local + n_ghost
    // elements, every entry of the list is below that, and types are below n_types
    unsafe {
        let state: &StateView = &*call.state;
        let list: &ListView = &*call.list;
        let globals: &Globals = &*state.globals.host();
        let scale = globals.scale::<S>();
        let arrays = Arrays::<S>::new(state);
        let force = state.force.cast::<[S::Real; 4]>().host();
        let (zero, mode) = (S::Real::ZERO, rows.mode);
        let base = PairInput { step: Step::new(globals, call.first_varying), ..PairInput::default() };

        // makes LLVM assume that these addresses are known elsewhere, so that it stores them as whole vectors
        let (mut f, mut u) = ([zero; L], [zero; L]);
        std::hint::black_box((&raw mut f, &raw mut u));
        for i in call.begin as usize..call.end as usize {
            let n = *list.count.host().add(i) as usize;
            let row = list.index.host().cast_const().add(i * list.capacity as usize);
            let (pi, vi) = (*arrays.pos.add(i), *arrays.vel.add(i));
            let first_row = if ONE { 0 } else { S::kind(&pi) as usize * rows.n_types };
            let mut total = LaneSums { force: [[zero; L]; 3], energy: [zero; L], virial: [[zero; L]; 6] };

            let mut k = 0;
            while k < n {
                // the list is padded to whole chunks, so the entries exist
                let neighbor = |l: usize| *row.add(k + l) as usize;
                let (d, kind) = S::differences::<L, ISA>(&pi, |l| arrays.pos.add(neighbor(l)), &scale);
                let r2 = S::Real::dot::<L, ISA>(&d, &d);
                let about = (call, globals.step, &scale);
                let c = chunk_inputs::<F, S, L, ISA>(about, &arrays, (i, &pi, vi), &d, neighbor);
                // evaluate lanes outside the cutoff at the cutoff and drop their results: LLVM would not vectorize a
                // branch
                let mut cutoff2 = [rows.cutoff_rows.get_unchecked(0).cutoff2; L];
                if !ONE {
                    for l in 0..L {
                        cutoff2[l] = rows.cutoff_rows.get_unchecked(first_row + kind[l] as usize).cutoff2;
                    }
                }
                let left = if n - k < L { (1 << (n - k)) - 1 } else { u32::MAX };
                let inside = S::Real::less::<L, ISA>(&r2, &cutoff2) & left;
                let safe_r2 = S::Real::choose::<L, ISA>(inside, &r2, &cutoff2);
                for l in 0..L {
                    let index = if ONE { 0 } else { first_row + kind[l] as usize };
                    let params = rows.rows.get_unchecked(index);
                    let cutoff = rows.cutoff_rows.get_unchecked(index);
                    let input = PairInput { r2: safe_r2[l], r_cut: cutoff.cutoff, ..base };
                    (f[l], u[l]) = c.evaluate::<F, S, SPECIALIZED>(input, params, &arrays, i, l);
                }
                if mode != 0 {
                    for l in 0..L {
                        let index = if ONE { 0 } else { first_row + kind[l] as usize };
                        let mut cutoff = *rows.cutoff_rows.get_unchecked(index);
                        if F::OWN_SHIFT && mode < 3 {
                            cutoff = c.shifted::<F, S>(base, rows.rows.get_unchecked(index), &cutoff, &arrays, i, l);
                        }
                        (f[l], u[l]) = apply_mode(mode, safe_r2[l], (f[l], u[l]), &cutoff);
                    }
                }
                let f = S::Real::choose::<L, ISA>(inside, &f, &[zero; L]);
                for a in 0..3 {
                    S::Real::add_products::<L, ISA>(&mut total.force[a], &f, &d[a]);
                }
                if FULL {
                    let u = S::Real::choose::<L, ISA>(inside, &u, &[zero; L]);
                    total.add_energy(&d, &f, &u);
                }
                k += L;
            }

            total.finish::<FULL, ISA>(&mut *force.add(i), sums);
        }
    }
}
