//! CPU loop over bonds. [`each_link`] selects the loop by the list of the links.

use super::angles::{each_angle, each_dihedral};
use crate::abi::views::{Fault, FaultKind, Globals, Step, Sums};
use crate::device::precision::Scheme;
use crate::device::real::Real;
use crate::kinds::bonded::{BondInput, BondedCall};
use crate::snapshot::LinkList;

/// Calls `eval` for every link of particles begin … end with its input and type, and adds the resulting forces, energy
/// and virial. `eval` returns what [`crate::bonded::BondFn::eval`] returns.
///
/// # Safety
/// `call` must describe valid host arrays of the scheme `S` and links of this list. No other thread may access force
/// rows begin … end during the call.
#[inline(always)]
pub unsafe fn each_link<S: Scheme>(
    list: LinkList,
    call: &BondedCall,
    sums: &mut Sums,
    eval: impl FnMut(&BondInput<S::Real>, usize) -> (S::Real, S::Real),
) {
    // SAFETY: the contract of this function is passed on
    unsafe {
        match list {
            LinkList::Bonds => each_bond::<S>(call, sums, eval),
            LinkList::Angles => each_angle::<S>(call, sums, eval),
            LinkList::Dihedrals | LinkList::Impropers => each_dihedral::<S>(call, sums, eval),
        }
    }
}

/// F/r below this limit counts as −∞ in f32.
const BROKEN: f64 = -3.4e38;

/// Raises the fault of a bond that is longer than its potential allows.
fn bond_fault(globals: &Globals, component: u32, [a, b]: [u32; 2]) {
    globals.raise(Fault { code: FaultKind::BondTooLong as u32, component, tag: a.min(b), detail: a.max(b) });
}

/// Adds the forces of bonds on particles begin … end.
///
/// # Safety
/// As [`each_link`].
#[inline(always)]
unsafe fn each_bond<S: Scheme>(
    call: &BondedCall,
    sums: &mut Sums,
    mut eval: impl FnMut(&BondInput<S::Real>, usize) -> (S::Real, S::Real),
) {
    // SAFETY: `begin` … `end` are particles, the views describe valid host arrays of the scheme `S`, and no other thread
    // accesses forces of this range (contract of `each_link`)
    unsafe {
        let (state, links) = (&*call.state, &*call.links);
        let globals: &Globals = &*state.globals.host();
        let scale = globals.scale::<S>();
        let pos = state.pos_type.cast::<S::PosType>().host().cast_const();
        let force = state.force.cast::<[S::Real; 4]>().host();
        let words = links.words.host().cast_const();
        let stride = links.stride as usize;
        let step = Step::new(globals, call.first_varying);
        for i in call.begin as usize..call.end as usize {
            let pi = *pos.add(i);
            let out = &mut *force.add(i);
            for e in 0..*links.count.host().add(i) as usize {
                let j = *words.add(2 * e * stride + i) as usize;
                let kind = *words.add((2 * e + 1) * stride + i) as usize / 4;
                let d = S::difference(&pi, &*pos.add(j), &scale);
                let input = BondInput { r2: d.norm2(), step, ..BondInput::default() };
                let (f, u) = eval(&input, kind);
                if f < S::Real::lit(BROKEN) {
                    let tag = state.tag.host().cast_const();
                    bond_fault(globals, call.component, [*tag.add(i), *tag.add(j)]);
                }
                let fd = d * f;
                out[0] += fd.x;
                out[1] += fd.y;
                out[2] += fd.z;
                if call.wanted.more_than_force() {
                    // each bond is visited twice, once from each particle
                    let half_u = 0.5 * u.f64();
                    out[3] += S::Real::lit(half_u);
                    sums.energy += half_u;
                    let ([x, y, z], [fx, fy, fz]) = (d.f64(), fd.f64());
                    let terms = [x * fx, x * fy, x * fz, y * fy, y * fz, z * fz].map(|term| 0.5 * term);
                    sums.virial.iter_mut().zip(terms).for_each(|(w, term)| *w += term);
                    state.add_virial::<S::Real>(i, terms);
                }
            }
        }
    }
}
