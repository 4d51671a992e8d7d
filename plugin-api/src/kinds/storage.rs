//! Stored positions on the CPU: displacement and conversion.

use crate::abi::views::{Fault, FaultKind, Globals, SimBox, StateView};
use crate::device::precision::{
    Fixed, Float64, PosTypeF64, PosTypeFixed, Precision, Scheme, TWO_32, from_fixed64, wrap_f64,
};
use crate::device::real::Real;
use crate::device::tilt::{to_reduced, to_space};
use crate::device::vector::Vec3;

impl StateView {
    /// Returns the position of a particle in the box; −L/2 ≤ x < L/2 in a rectangular one. In fixed point it has the upper
    /// 32 bits only, as in the pair loop.
    ///
    /// # Safety
    /// The view describes [valid host arrays](StateView#valid-host-arrays), and `i` < n_local.
    #[inline]
    pub unsafe fn position(&self, i: usize) -> [f64; 3] {
        // SAFETY: `i` < n_local, and the view describes valid host arrays
        unsafe { to_space(self.reduced(i), (*self.globals.host()).tilt) }
    }

    /// Returns the reduced coordinates of a particle, −L/2 ≤ q < L/2; see [`crate::tilt`].
    ///
    /// # Safety
    /// As for [`Self::position`].
    #[inline]
    pub unsafe fn reduced(&self, i: usize) -> [f64; 3] {
        // SAFETY: `i` < n_local, and the view describes valid host arrays
        unsafe {
            if self.precision == Precision::Double as u32 {
                return (*self.pos_type.cast::<PosTypeF64>().host().add(i)).position;
            }
            let p = (*self.pos_type.cast::<PosTypeFixed>().host().add(i)).position;
            let length = (*self.globals.host()).box_length;
            std::array::from_fn(|k| f64::from(p[k]) * (length[k] / TWO_32))
        }
    }

    /// Returns r_i − r_j for the nearest image of j.
    ///
    /// # Safety
    /// As for [`Self::position`], for both particles.
    #[inline]
    pub unsafe fn difference(&self, i: usize, j: usize) -> [f64; 3] {
        // SAFETY: both indices are < n_local, and the view describes valid host arrays
        let (a, b, g) = unsafe { (self.reduced(i), self.reduced(j), &*self.globals.host()) };
        let boxes =
            |d: f64, k: usize| if g.box_length[k] > 0.0 { (d / g.box_length[k]).round_ties_even() } else { 0.0 };
        let n = boxes(a[1] - b[1], 1);
        let q = std::array::from_fn(|k| {
            let d = a[k] - b[k] - if k == 0 { n * g.shear_offset } else { 0.0 };
            d - g.box_length[k] * boxes(d, k)
        });
        to_space(q, g.tilt)
    }

    /// Puts particle `i` at the displacement `d` from particle `center`, with the velocity `v`, on the CPU; with
    /// `center` = `i`, moves it by `d`. Requests a rebuild of the neighbor list if it is far from where it was at the last one; raises a fault if `d` is not a number or
    /// half a box long. `place_particle` in `place.cuh` does the same on CUDA.
    ///
    /// # Safety
    /// The view describes [valid host arrays](StateView#valid-host-arrays), `i` and `center` < n_local, no other
    /// thread accesses particle `i`, and none changes particle `center` during the call.
    pub unsafe fn place(&self, component: u32, i: usize, center: usize, d: [f64; 3], v: [f64; 3]) {
        // SAFETY: the contract of this function is passed on
        unsafe {
            if self.precision == Precision::Double as u32 {
                place::<Float64>(self, component, i, center, d);
            } else {
                place::<Fixed>(self, component, i, center, d);
            }
            self.set_velocity(i, v);
        }
    }
}

/// Puts a particle beside another one.
///
/// # Safety
/// As [`StateView::place`], for the scheme `S`.
unsafe fn place<S: PositionStorage>(state: &StateView, component: u32, i: usize, center: usize, d: [f64; 3]) {
    // SAFETY: `i` and `center` are particles, the arrays have an entry of the scheme `S` for each, and no other thread accesses
    // particle `i` or changes `center` (contract of this function)
    unsafe {
        let globals: &Globals = &*state.globals.host();
        let (pos, image) = (state.pos_type.cast::<S::PosType>().host(), state.image.cast::<[i32; 3]>().host());
        *pos.add(i) = S::at(&*pos.add(center), S::kind(&*pos.add(i)));
        *image.add(i) = *image.add(center);
        if !state.pos_low.is_null() {
            let low = state.pos_low.cast::<[u32; 3]>().host();
            *low.add(i) = *low.add(center);
        }
        if !S::displace::<true>(state, &DisplacementBox::of(&SimBox::of(globals)), i, d) {
            let (code, tag) = (FaultKind::NotFinite as u32, *state.tag.host().add(i));
            globals.raise(Fault { code, component, tag, detail: 0 });
            return;
        }
        let built = &*state.pos_at_build.cast::<S::PosType>().host().add(i);
        let built = S::stretched(built, stretch_since_build(globals));
        let moved = S::difference(&*pos.add(i), &built, &globals.scale::<S>());
        if moved.norm2() > S::Real::lit(globals.slack2) {
            globals.rebuild.set(1);
        }
    }
}

/// Returns the ratio of each box length to that at the last build of the neighbor list.
pub(crate) fn stretch_since_build(g: &Globals) -> [f64; 3] {
    let (now, then) = (g.box_length, g.built_length);
    std::array::from_fn(|k| if now[k] == then[k] { 1.0 } else { now[k] / then[k] })
}

/// What [`PositionStorage::displace`] needs of a box, computed once for many particles.
#[derive(Clone, Copy)]
pub(crate) struct DisplacementBox {
    length: [f64; 3],
    /// L/2, above which a displacement is refused.
    half: [f64; 3],
    /// 2³²/L, which makes a length a number in fixed point.
    units: [f64; 3],
    tilt: [f64; 3],
    is_flat: bool,
}

impl DisplacementBox {
    pub(crate) fn of(b: &SimBox) -> Self {
        let (half, units) = (b.length.map(|l| 0.5 * l), b.length.map(|l| TWO_32 / l));
        Self { length: b.length, half, units, tilt: b.tilt, is_flat: b.dimensions == 2 }
    }

    fn dimensions(&self) -> usize {
        if self.is_flat { 2 } else { 3 }
    }

    /// Returns whether a displacement is NaN or at least half a box length.
    fn is_too_far(&self, d: &[f64; 3]) -> bool {
        let far = |k: usize| d[k].is_nan() | (d[k].abs() >= self.half[k]);
        far(0) | far(1) | (!self.is_flat & far(2))
    }
}

/// A storage scheme of positions, with the operations that integrators need.
pub(crate) trait PositionStorage: Scheme {
    /// Displaces particle `i` and wraps it into the box. Returns `false` if the displacement is NaN or at least half a
    /// box length; the particle then stays where it is. Unless `TILTED`, the box is rectangular.
    ///
    /// # Safety
    /// `state` describes valid host arrays of this scheme, `i` < n_local, and no other thread accesses particle `i`
    /// during the call.
    unsafe fn displace<const TILTED: bool>(state: &StateView, b: &DisplacementBox, i: usize, d: [f64; 3]) -> bool;
    /// Returns the reduced coordinates rounded to `real`: the position in a rectangular box.
    fn position(p: &Self::PosType, length: [f64; 3]) -> Vec3<Self::Real>;
    /// Returns a stored position with another type.
    fn at(p: &Self::PosType, kind: u32) -> Self::PosType;
    /// Rescales a stored position to a box stretched by `ratio`.
    fn stretched(p: &Self::PosType, ratio: [f64; 3]) -> Self::PosType;
}

impl PositionStorage for Fixed {
    #[inline(always)]
    unsafe fn displace<const TILTED: bool>(state: &StateView, b: &DisplacementBox, i: usize, d: [f64; 3]) -> bool {
        let d = if TILTED { to_reduced(d, b.tilt) } else { d };
        // SAFETY: `i` < n_local, the arrays have an entry of this scheme for it, and no other thread accesses it
        let (p, image) = unsafe {
            (
                &mut *state.pos_type.cast::<PosTypeFixed>().host().add(i),
                &mut *state.image.cast::<[i32; 3]>().host().add(i),
            )
        };
        if b.is_too_far(&d) {
            return false;
        }
        for k in 0..b.dimensions() {
            if state.pos_low.is_null() {
                let units = Real::round(d[k] * b.units[k]) as i64;
                let sum = i64::from(p.position[k]) + units;
                p.position[k] = sum as i32;
                image[k] += ((sum - i64::from(p.position[k])) >> 32) as i32;
            } else {
                // SAFETY: `i` < n_local, and `pos_low` has three words for each particle; no other thread accesses them
                let low = unsafe { &mut *state.pos_low.host().add(3 * i + k) };
                let old = (i64::from(p.position[k]) << 32) | i64::from(*low);
                // beyond 2⁵³ the product is an integer already
                let units = (d[k] * b.units[k] * TWO_32) as i64;
                let (new, wrapped) = old.overflowing_add(units);
                (p.position[k], *low) = ((new >> 32) as i32, new as u32);
                if wrapped {
                    image[k] += if units > 0 { 1 } else { -1 };
                }
            }
        }
        true
    }
    #[inline(always)]
    fn position(p: &PosTypeFixed, length: [f64; 3]) -> Vec3<f32> {
        Vec3::from(std::array::from_fn::<f64, 3, _>(|k| from_fixed64(i64::from(p.position[k]) << 32, length[k])))
    }
    #[inline(always)]
    fn at(p: &PosTypeFixed, kind: u32) -> PosTypeFixed {
        PosTypeFixed { kind, ..*p }
    }
    #[inline(always)]
    fn stretched(p: &PosTypeFixed, _: [f64; 3]) -> PosTypeFixed {
        *p
    }
}

impl PositionStorage for Float64 {
    #[inline(always)]
    unsafe fn displace<const TILTED: bool>(state: &StateView, b: &DisplacementBox, i: usize, d: [f64; 3]) -> bool {
        let d = if TILTED { to_reduced(d, b.tilt) } else { d };
        // SAFETY: `i` < n_local, the arrays have an entry of this scheme for it, and no other thread accesses it
        let (p, image) = unsafe {
            (
                &mut *state.pos_type.cast::<PosTypeF64>().host().add(i),
                &mut *state.image.cast::<[i32; 3]>().host().add(i),
            )
        };
        if b.is_too_far(&d) {
            return false;
        }
        for k in 0..b.dimensions() {
            let (x, crossed) = wrap_f64(p.position[k] + d[k], b.length[k]);
            p.position[k] = x;
            image[k] += crossed;
        }
        true
    }
    #[inline(always)]
    fn position(p: &PosTypeF64, _: [f64; 3]) -> Vec3<f64> {
        Vec3::from(p.position)
    }
    #[inline(always)]
    fn at(p: &PosTypeF64, kind: u32) -> PosTypeF64 {
        PosTypeF64 { kind, ..*p }
    }
    #[inline(always)]
    fn stretched(p: &PosTypeF64, ratio: [f64; 3]) -> PosTypeF64 {
        PosTypeF64 { position: std::array::from_fn(|k| p.position[k] * ratio[k]), ..*p }
    }
}
