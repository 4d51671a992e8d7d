//! CPU loops over angles, and over dihedrals and impropers. Each particle gathers the forces of its links.
//!
//! Every member computes the whole link from the same differences, so the forces of a link sum to zero up to rounding.
//! The energy and virial of a link are added by one member only.

use crate::abi::views::{Globals, StateView, Step, Sums};
use crate::device::precision::Scheme;
use crate::device::real::Real;
use crate::device::vector::Vec3;
use crate::kinds::bonded::{BondInput, BondedCall};

/// One evaluated link: forces on the members, pairs of distance and force for the virial, energy.
struct Link<R, const W: usize> {
    forces: [Vec3<R>; W],
    arms: [(Vec3<R>, Vec3<R>); 3],
    energy: R,
}

/// Returns the inverse of the length of a vector; 0 for a vector of length 0.
#[inline(always)]
fn inverse_length<R: Real>(d: Vec3<R>) -> R {
    let length2 = d.norm2();
    if length2 > R::ZERO { R::ONE / length2.sqrt() } else { R::ZERO }
}

/// An angle i–j–k with a = r_i − r_j, b = r_k − r_j.
#[inline(always)]
fn angle<R: Real>(a: Vec3<R>, b: Vec3<R>, step: Step<R>, eval: impl FnOnce(&BondInput<R>) -> (R, R)) -> Link<R, 3> {
    let (inv_a, inv_b) = (inverse_length(a), inverse_length(b));
    let (ea, eb) = (a * inv_a, b * inv_b);
    let cos = ea.dot(eb);
    // the sine from the cross product: near 180° the cosine alone loses half of its digits. An arm of length 0 has no
    // direction: θ counts as 90°, and the zeros in the inverse length and the direction make both forces 0
    let sin = if inv_a.min(inv_b) > R::ZERO { ea.cross(eb).norm() } else { R::ONE };
    let input = BondInput { angle: sin.atan2(cos), cos, sin, step, ..BondInput::default() };
    let (slope, energy) = eval(&input);
    let fi = (eb - ea * cos) * (-slope * inv_a);
    let fk = (ea - eb * cos) * (-slope * inv_b);
    Link { forces: [fi, -(fi + fk), fk], arms: [(a, fi), (b, fk), (Vec3::zero(), Vec3::zero())], energy }
}

/// A dihedral i–j–k–l with f = r_i − r_j, g = r_j − r_k, h = r_l − r_k (Blondel and Karplus, J. Comput. Chem. 17 (1996)
/// 1132).
#[inline(always)]
fn dihedral<R: Real>(
    f: Vec3<R>,
    g: Vec3<R>,
    h: Vec3<R>,
    step: Step<R>,
    eval: impl FnOnce(&BondInput<R>) -> (R, R),
) -> Link<R, 4> {
    // unit vectors: products of four to eight lengths leave the range of single precision even for moderate lengths
    let (inv_f, inv_g, inv_h) = (inverse_length(f), inverse_length(g), inverse_length(h));
    let (ef, eg, eh) = (f * inv_f, g * inv_g, h * inv_h);
    let (a, b) = (ef.cross(eg), eh.cross(eg));
    // sines of the angles between bonds below 1e-4 count as 1e-4: forces on straight chains would have no bound
    let least = R::lit(1e-8);
    let (inv_a2, inv_b2) = (R::ONE / a.norm2().max(least), R::ONE / b.norm2().max(least));
    let inv = (inv_a2 * inv_b2).sqrt();
    let (cos, sin) = (a.dot(b) * inv, b.cross(a).dot(eg) * inv);
    let input = BondInput { angle: sin.atan2(cos), cos, sin, step, ..BondInput::default() };
    let (slope, energy) = eval(&input);
    let (a, b) = (a * (slope * inv_a2), b * (slope * inv_b2));
    let (fi, fl) = (a * inv_f, b * -inv_h);
    let along = (a * ef.dot(eg) - b * eh.dot(eg)) * inv_g;
    let (fj, fk) = (-fi - along, along - fl);
    // from j: i at f, k at −g, l at h − g
    Link { forces: [fi, fj, fk, fl], arms: [(f, fi), (-g, fk), (h - g, fl)], energy }
}

impl<R: Real, const W: usize> Link<R, W> {
    /// Returns the terms of the virial, arm by arm.
    #[inline(always)]
    fn virial(&self) -> [[f64; 6]; 3] {
        self.arms.map(|(d, f)| {
            let ([x, y, z], [fx, fy, fz]) = (d.f64(), f.f64());
            [x * fx, x * fy, x * fz, y * fy, y * fz, z * fz]
        })
    }
}

/// Adds the contribution of a link to its member `i`, which is at a place among the members.
///
/// # Safety
/// The view describes valid host arrays with numbers `R`, and no other thread accesses forces of particle `i`.
#[inline(always)]
unsafe fn take<R: Real, const W: usize>(
    link: &Link<R, W>,
    (i, place): (usize, usize),
    full: bool,
    state: &StateView,
    sums: &mut Sums,
) {
    // SAFETY: `i` is a particle, and no other thread accesses its force (contract of this function)
    let out = unsafe { &mut *state.force.cast::<[R; 4]>().host().add(i) };
    let f = link.forces[place];
    out[0] += f.x;
    out[1] += f.y;
    out[2] += f.z;
    if full {
        out[3] += link.energy / R::lit(W as f64);
        if place == 1 {
            sums.energy += link.energy.f64();
            for terms in link.virial() {
                sums.virial.iter_mut().zip(terms).for_each(|(w, term)| *w += term);
            }
        }
        if !state.virial.is_null() {
            for terms in link.virial() {
                // SAFETY: the contract of this function
                unsafe { state.add_virial::<R>(i, terms.map(|term| term / W as f64)) };
            }
        }
    }
}

/// Calls `each` for every link of particles begin … end: particle, indices of the members, type of the link, position
/// of the particle among the members.
#[inline(always)]
unsafe fn each_link<const W: usize>(call: &BondedCall, mut each: impl FnMut(usize, [usize; W], usize, usize)) {
    // SAFETY: `begin` … `end` are particles, the views describe valid host arrays of the scheme `S`, and no other thread
    // accesses forces of this range (contract of `each_link`)
    unsafe {
        let links = &*call.links;
        let words = links.words.host().cast_const();
        let stride = links.stride as usize;
        for i in call.begin as usize..call.end as usize {
            for e in 0..*links.count.host().add(i) as usize {
                let word = |k: usize| *words.add((W * e + k) * stride + i) as usize;
                let (kind, place) = (word(W - 1) / 4, word(W - 1) % 4);
                let members = std::array::from_fn(|k| match k.cmp(&place) {
                    std::cmp::Ordering::Less => word(k),
                    std::cmp::Ordering::Equal => i,
                    std::cmp::Ordering::Greater => word(k - 1),
                });
                each(i, members, kind, place);
            }
        }
    }
}

/// Adds the forces of angles on particles begin … end.
///
/// # Safety
/// As [`crate::bond_potential::each_link`].
#[inline(always)]
pub(crate) unsafe fn each_angle<S: Scheme>(
    call: &BondedCall,
    sums: &mut Sums,
    mut eval: impl FnMut(&BondInput<S::Real>, usize) -> (S::Real, S::Real),
) {
    // SAFETY: the contract of this function is passed on
    unsafe {
        let state = &*call.state;
        let globals: &Globals = &*state.globals.host();
        let (scale, step) = (globals.scale::<S>(), Step::new(globals, call.first_varying));
        let pos = state.pos_type.cast::<S::PosType>().host().cast_const();
        let full = call.wanted.more_than_force();
        each_link::<3>(call, |i, m, kind, place| {
            let difference = |k: usize, l: usize| S::difference(&*pos.add(m[k]), &*pos.add(m[l]), &scale);
            let link = angle(difference(0, 1), difference(2, 1), step, |input| eval(input, kind));
            take(&link, (i, place), full, state, sums);
        });
    }
}

/// Adds the forces of dihedrals or impropers on particles begin … end.
///
/// # Safety
/// As [`crate::bond_potential::each_link`].
#[inline(always)]
pub(crate) unsafe fn each_dihedral<S: Scheme>(
    call: &BondedCall,
    sums: &mut Sums,
    mut eval: impl FnMut(&BondInput<S::Real>, usize) -> (S::Real, S::Real),
) {
    // SAFETY: the contract of this function is passed on
    unsafe {
        let state = &*call.state;
        let globals: &Globals = &*state.globals.host();
        let (scale, step) = (globals.scale::<S>(), Step::new(globals, call.first_varying));
        let pos = state.pos_type.cast::<S::PosType>().host().cast_const();
        let full = call.wanted.more_than_force();
        each_link::<4>(call, |i, m, kind, place| {
            let d = |k: usize, l: usize| S::difference(&*pos.add(m[k]), &*pos.add(m[l]), &scale);
            let link = dihedral(d(0, 1), d(1, 2), d(3, 2), step, |input| eval(input, kind));
            take(&link, (i, place), full, state, sums);
        });
    }
}
