//! Precision of a run, and storage of positions.
//!
//! | | pair mathematics | position | velocity, force | sums |
//! |---|---|---|---|---|
//! | `Single` | f32 | 32-bit fixed point | f32 | f64 |
//! | `Mixed` | f32 | 64-bit fixed point | f32 | f64 |
//! | `Double` | f64 | f64 | f64 | f64 |
//!
//! Fixed point: a coordinate is an integer multiple of 2⁻³² (2⁻⁶⁴) of the box length. The difference of two coordinates
//! with wrap-around *is* the nearest image. The resolution is uniform in the box (2·10⁻⁸ at L = 100; f32 has 4·10⁻⁶),
//! and CPU and GPU store identical positions. The pair loop reads the upper 32 bits. In `Mixed` the lower 32 bits are
//! in a separate array that only integrators access.

use crate::device::lanes::LaneElement;
#[cfg(target_arch = "x86_64")]
use crate::device::lanes::{V3, V4, x86};
use crate::device::plain::Plain;
use crate::device::real::Real;
use crate::device::vector::Vec3;

/// Precision of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Precision {
    /// f32, except for sums.
    Single = 0,
    /// Pair mathematics in f32, positions in 64-bit fixed point.
    #[default]
    Mixed = 1,
    /// f64.
    Double = 2,
}

impl Precision {
    /// Returns the precision with this number.
    pub fn from_u32(n: u32) -> Option<Self> {
        [Self::Single, Self::Mixed, Self::Double].into_iter().find(|p| *p as u32 == n)
    }
    /// Returns the size in bytes of the numbers of pair mathematics.
    pub fn real_size(self) -> usize {
        if self == Self::Double { 8 } else { 4 }
    }
    /// Returns the size in bytes of one entry of the array of positions and types.
    pub fn pos_type_size(self) -> usize {
        if self == Self::Double { size_of::<PosTypeF64>() } else { size_of::<PosTypeFixed>() }
    }
    /// Returns the name in the pipeline.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "Single",
            Self::Mixed => "Mixed",
            Self::Double => "Double",
        }
    }
}

/// Position in fixed point and particle type: one 16-byte load.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, galamost_plugin_macros::Layout)]
pub struct PosTypeFixed {
    /// Coordinates in units of 2⁻³² of the box length; the box is centered at 0. In a triclinic box, the coordinates are
    /// reduced ones; see [`crate::tilt`].
    pub position: [i32; 3],
    /// Particle type.
    pub kind: u32,
}

/// Position in f64 and particle type: one 32-byte record. The box is centered at 0. In a triclinic box, the coordinates are
/// reduced ones; see [`crate::tilt`].
#[repr(C, align(32))]
#[derive(Clone, Copy, Debug, Default, PartialEq, galamost_plugin_macros::Layout)]
pub struct PosTypeF64 {
    /// Coordinates, −L/2 ≤ x < L/2.
    pub position: [f64; 3],
    /// Particle type.
    pub kind: u32,
    /// Unused.
    pub reserved: u32,
}

// SAFETY: four 32-bit words fill the 16 bytes
unsafe impl Plain for PosTypeFixed {}
// SAFETY: three f64 and two 32-bit words fill the 32 bytes
unsafe impl Plain for PosTypeF64 {}

/// Box lengths and shear, in the units of a storage scheme.
#[derive(Clone, Copy, Debug)]
pub struct BoxScale<R> {
    /// Length of one unit of a stored difference, per axis: L 2⁻³² in fixed point, 1 otherwise.
    pub unit: [R; 3],
    /// Box length per axis (0 for the third axis in two dimensions).
    pub length: [R; 3],
    /// 1/length, 0 where the length is 0.
    pub inverse: [R; 3],
    /// Whether the images above and below in y are displaced and move along x (Lees-Edwards); see [`Self::with_shear`].
    pub sheared: bool,
    /// Displacement of the image above. Unit: length.
    pub offset: R,
    /// Displacement of the image above in stored units (fixed point).
    pub offset_units: i32,
    /// Velocity of the image above along x.
    pub speed: R,
    /// Whether the box is triclinic; see [`Self::with_tilt`].
    pub tilted: bool,
    /// Tilt factors xy, xz, yz; see [`crate::tilt`].
    pub tilt: [R; 3],
}

impl<R: Real> BoxScale<R> {
    /// Returns a rectangular box at rest, with the length of a unit of the stored coordinates.
    fn rectangular(unit: [R; 3], length: [f64; 3]) -> Self {
        let inverse = |l: f64| if l > 0.0 { 1.0 / l } else { 0.0 };
        Self {
            unit,
            length: length.map(R::lit),
            inverse: length.map(|l| R::lit(inverse(l))),
            sheared: false,
            offset: R::ZERO,
            offset_units: 0,
            speed: R::ZERO,
            tilted: false,
            tilt: [R::ZERO; 3],
        }
    }

    /// Displaces the image above by `offset` along x; it moves with `speed` along x. The image below has the opposite
    /// signs.
    #[must_use]
    pub fn with_shear(self, offset: f64, speed: f64) -> Self {
        let length = self.length[0].f64();
        let units = if length > 0.0 { (offset / length * TWO_32).round() as i64 as i32 } else { 0 };
        Self {
            sheared: offset != 0.0 || speed != 0.0,
            offset: R::lit(offset),
            offset_units: units,
            speed: R::lit(speed),
            ..self
        }
    }

    /// Gives the box these tilt factors.
    #[must_use]
    pub fn with_tilt(self, tilt: [f64; 3]) -> Self {
        Self { tilted: tilt != [0.0; 3], tilt: tilt.map(R::lit), ..self }
    }

    /// Returns the difference in space of a difference of reduced coordinates.
    #[inline(always)]
    pub fn in_space(&self, q: Vec3<R>) -> Vec3<R> {
        if !self.tilted {
            return q;
        }
        let [xy, xz, yz] = self.tilt;
        Vec3 { x: q.x + xy * q.y + xz * q.z, y: q.y + yz * q.z, z: q.z }
    }

    /// The same for lanes.
    #[inline(always)]
    pub(crate) fn tilt_lanes<const L: usize>(&self, d: &mut [[R; L]; 3]) {
        let [x, y, z] = d;
        for ((x, y), z) in x.iter_mut().zip(y).zip(z) {
            let r = self.in_space(Vec3 { x: *x, y: *y, z: *z });
            (*x, *y) = (r.x, r.y);
        }
    }
}

/// A storage scheme of positions, which defines what the pair loop reads: [`Fixed`] or [`Float64`].
pub trait Scheme: 'static + Copy + Send + Sync {
    /// Type of pair mathematics, velocities and forces.
    type Real: Real;
    /// One entry of the array of positions and types.
    type PosType: Plain + Default;

    /// Number of lanes of the CPU loops: 16, which LLVM vectorizes well. With 8 the generated code is slow.
    const LANES: usize;

    /// Returns the difference of the reduced coordinates, q_i − q_j (r_i − r_j in a rectangular box), and the type of j for a
    /// chunk of `L` particles j at `at(l)`.
    ///
    /// # Safety
    /// The entries must exist, and the processor must have the extension `ISA` of [`crate::lanes`].
    unsafe fn differences<const L: usize, const ISA: u32>(
        i: &Self::PosType,
        at: impl Fn(usize) -> *const Self::PosType,
        b: &BoxScale<Self::Real>,
    ) -> ([[Self::Real; L]; 3], [u32; L]);

    /// Returns the type of a particle.
    fn kind(p: &Self::PosType) -> u32;
    /// Returns r_i − r_j for the nearest image of j.
    fn difference(i: &Self::PosType, j: &Self::PosType, b: &BoxScale<Self::Real>) -> Vec3<Self::Real>;
    /// Returns the image of j along y that is nearest to i: −1, 0 or 1.
    fn crossing(i: &Self::PosType, j: &Self::PosType, b: &BoxScale<Self::Real>) -> i32;
    /// Returns the box in the form that [`Self::difference`] uses.
    fn scale(length: [f64; 3]) -> BoxScale<Self::Real>;
}

/// Storage scheme of `Single` and `Mixed`.
#[derive(Clone, Copy, Debug)]
pub struct Fixed;

/// Storage scheme of `Double`.
#[derive(Clone, Copy, Debug)]
pub struct Float64;

/// Returns the number of boxes by which the nearest image of `j` is above `j`, for coordinates in fixed point.
#[inline(always)]
fn crossing_units(i: i32, j: i32) -> i32 {
    let d = i.wrapping_sub(j);
    // if the difference overflows: ±1 with the sign of i, else 0
    (((i ^ j) & (i ^ d)) >> 31) & (1 | (i >> 31))
}

/// 1.5 · 2⁵². Adding it rounds numbers with |x/L| ≤ 1 to the nearest integer, and vectorizes.
const MAGIC: f64 = 6_755_399_441_055_744.0;

/// Subtracts the nearest multiple of the box length from x.
#[inline(always)]
fn nearest_image(x: f64, length: f64, inverse: f64) -> f64 {
    let n = (x * inverse + MAGIC) - MAGIC;
    x - length * n
}

/// 2³².
pub const TWO_32: f64 = 4_294_967_296.0;

impl Scheme for Fixed {
    type Real = f32;
    type PosType = PosTypeFixed;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn differences<const L: usize, const ISA: u32>(
        i: &PosTypeFixed,
        at: impl Fn(usize) -> *const PosTypeFixed,
        b: &BoxScale<f32>,
    ) -> ([[f32; L]; 3], [u32; L]) {
        // SAFETY: the entries exist and the processor has `ISA` (contract of this function); an entry is four words
        let words = unsafe { <i32 as LaneElement>::gather::<L, ISA>(|l| at(l).cast()) };
        let mut d = [[0.0; L]; 3];
        for (k, d) in d.iter_mut().enumerate() {
            #[cfg(target_arch = "x86_64")]
            if ISA >= V3 && L == 16 {
                // SAFETY: the entries exist and the processor has `ISA` (contract of this function); arrays of 16 are read and written as such
                unsafe { x86::scaled16::<ISA>(i.position[k], words[k].as_ptr(), b.unit[k], d.as_mut_ptr()) };
                continue;
            }
            for (d, w) in d.iter_mut().zip(&words[k]) {
                *d = i.position[k].wrapping_sub(*w) as f32 * b.unit[k];
            }
        }
        if b.sheared {
            for l in 0..L {
                let n = crossing_units(i.position[1], words[1][l]);
                let x = i.position[0].wrapping_sub(words[0][l]).wrapping_sub(n.wrapping_mul(b.offset_units));
                d[0][l] = x as f32 * b.unit[0];
            }
        }
        (d, words[3].map(|w| w as u32))
    }

    #[inline(always)]
    fn kind(p: &PosTypeFixed) -> u32 {
        p.kind
    }
    #[inline(always)]
    fn difference(i: &PosTypeFixed, j: &PosTypeFixed, b: &BoxScale<f32>) -> Vec3<f32> {
        let d = |k: usize, less: i32| i.position[k].wrapping_sub(j.position[k]).wrapping_sub(less) as f32 * b.unit[k];
        let less = if b.sheared { Self::crossing(i, j, b).wrapping_mul(b.offset_units) } else { 0 };
        b.in_space(Vec3 { x: d(0, less), y: d(1, 0), z: d(2, 0) })
    }
    #[inline(always)]
    fn crossing(i: &PosTypeFixed, j: &PosTypeFixed, _: &BoxScale<f32>) -> i32 {
        crossing_units(i.position[1], j.position[1])
    }
    fn scale(length: [f64; 3]) -> BoxScale<f32> {
        BoxScale::rectangular(length.map(|l| (l / TWO_32) as f32), length)
    }
}

impl Float64 {
    /// Returns the nearest image of the difference of reduced coordinates; see [`crate::tilt`].
    #[inline(always)]
    pub fn reduced_difference(i: &PosTypeF64, j: &PosTypeF64, b: &BoxScale<f64>) -> Vec3<f64> {
        let less = if b.sheared { f64::from(Self::crossing(i, j, b)) * b.offset } else { 0.0 };
        let d = |k: usize, less: f64| nearest_image(i.position[k] - j.position[k] - less, b.length[k], b.inverse[k]);
        Vec3 { x: d(0, less), y: d(1, 0.0), z: d(2, 0.0) }
    }
}

impl Scheme for Float64 {
    type Real = f64;
    type PosType = PosTypeF64;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn differences<const L: usize, const ISA: u32>(
        i: &PosTypeF64,
        at: impl Fn(usize) -> *const PosTypeF64,
        b: &BoxScale<f64>,
    ) -> ([[f64; L]; 3], [u32; L]) {
        // SAFETY: the entries exist and the processor has `ISA` (contract of this function); an entry is 32 bytes, of which the type is the fourth quarter's lower half
        let members = unsafe { <f64 as LaneElement>::gather::<L, ISA>(|l| at(l).cast()) };
        let mut d = [[0.0; L]; 3];
        for (k, d) in d.iter_mut().enumerate() {
            #[cfg(target_arch = "x86_64")]
            if ISA >= V3 && L == 16 {
                let (x, y, to) = (i.position[k], members[k].as_ptr(), d.as_mut_ptr());
                // SAFETY: the entries exist and the processor has `ISA` (contract of this function); arrays of 16 are read and written as such
                unsafe {
                    if ISA >= V4 {
                        x86::nearest16::<std::arch::x86_64::__m512d>(x, y, b.length[k], b.inverse[k], MAGIC, to);
                    } else {
                        x86::nearest16::<std::arch::x86_64::__m256d>(x, y, b.length[k], b.inverse[k], MAGIC, to);
                    }
                }
                continue;
            }
            for (d, x) in d.iter_mut().zip(&members[k]) {
                *d = nearest_image(i.position[k] - x, b.length[k], b.inverse[k]);
            }
        }
        if b.sheared {
            for l in 0..L {
                let n = ((i.position[1] - members[1][l]) * b.inverse[1]).round_ties_even();
                d[0][l] = nearest_image(i.position[0] - members[0][l] - n * b.offset, b.length[0], b.inverse[0]);
            }
        }
        (d, members[3].map(|w| w.to_bits() as u32))
    }

    #[inline(always)]
    fn kind(p: &PosTypeF64) -> u32 {
        p.kind
    }
    #[inline(always)]
    fn difference(i: &PosTypeF64, j: &PosTypeF64, b: &BoxScale<f64>) -> Vec3<f64> {
        b.in_space(Self::reduced_difference(i, j, b))
    }
    #[inline(always)]
    fn crossing(i: &PosTypeF64, j: &PosTypeF64, b: &BoxScale<f64>) -> i32 {
        ((i.position[1] - j.position[1]) * b.inverse[1]).round_ties_even() as i32
    }
    fn scale(length: [f64; 3]) -> BoxScale<f64> {
        BoxScale::rectangular([1.0; 3], length)
    }
}

/// Converts a coordinate to 64-bit fixed point: x/L in units of 2⁻⁶⁴, wrapped into the box. Also returns the image.
pub fn to_fixed64(x: f64, length: f64) -> (i64, i32) {
    if length == 0.0 {
        return (0, 0);
    }
    let s = x / length;
    let image = (s + 0.5).floor();
    // s − image is in [−½, ½): exact, then scaled by a power of two
    let wrapped = s - image;
    let scaled = wrapped * TWO_32 * TWO_32;
    // +½ after rounding would overflow i64; use the equivalent position of the next image
    if scaled >= 9_223_372_036_854_775_808.0 { (i64::MIN, image as i32 + 1) } else { (scaled as i64, image as i32) }
}

/// Converts a 64-bit fixed-point number to a coordinate.
pub fn from_fixed64(q: i64, length: f64) -> f64 {
    q as f64 / (TWO_32 * TWO_32) * length
}

/// Wraps a coordinate into [−L/2, L/2). Also returns the image.
#[inline]
pub fn wrap_f64(x: f64, length: f64) -> (f64, i32) {
    if -0.5 * length <= x && x < 0.5 * length {
        return (x, 0);
    }
    if length == 0.0 {
        return (0.0, 0);
    }
    let image = (x / length + 0.5).floor();
    let mut wrapped = x - image * length;
    let mut image = image as i32;
    // rounding may put the result on the wrong side of the boundary
    if wrapped >= 0.5 * length {
        wrapped -= length;
        image += 1;
    } else if wrapped < -0.5 * length {
        wrapped += length;
        image -= 1;
    }
    (wrapped, image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_point_keeps_ten_printed_digits() {
        for x in [7.584_038_226_7, -9.999_999_999_9, 0.0, 9.999_999_999_9, -10.0] {
            let (q, image) = to_fixed64(x, 20.0);
            assert_eq!(image, 0);
            assert!((from_fixed64(q, 20.0) - x).abs() < 1e-14, "{x}");
        }
        assert_eq!(to_fixed64(10.0, 20.0), (i64::MIN, 1), "the upper edge is the next image's lower edge");
        assert_eq!(to_fixed64(-31.0, 20.0).1, -2);
    }

    #[test]
    fn sheared_images_are_displaced() {
        let (length, offset) = ([10.0, 8.0, 6.0], 3.7);
        let (bf, bd) = (Fixed::scale(length).with_shear(offset, 1.0), Float64::scale(length).with_shear(offset, 1.0));
        let fixed = |v: [f64; 3]| PosTypeFixed {
            position: std::array::from_fn(|k| (to_fixed64(v[k], length[k]).0 >> 32) as i32),
            kind: 0,
        };
        let float = |v| PosTypeF64 { position: v, kind: 0, reserved: 0 };
        for (a, b, n) in [
            ([1.0, 3.5, 0.0], [-3.0, -3.5, 1.0], 1),
            ([-3.0, -3.5, 1.0], [1.0, 3.5, 0.0], -1),
            ([4.9, 3.9, 2.9], [4.0, 3.0, -2.9], 0),
            ([-4.9, -3.9, 0.0], [4.9, 3.9, 0.0], -1),
        ] {
            assert_eq!(Fixed::crossing(&fixed(a), &fixed(b), &bf), n);
            assert_eq!(Float64::crossing(&float(a), &float(b), &bd), n);
            let truth: [f64; 3] = std::array::from_fn(|k| {
                let image = [f64::from(n) * offset, f64::from(n) * length[1], 0.0][k];
                let d = a[k] - b[k] - image;
                if k == 1 { d } else { d - length[k] * (d / length[k]).round() }
            });
            let (df, dd) = (
                Fixed::difference(&fixed(a), &fixed(b), &bf).f64(),
                Float64::difference(&float(a), &float(b), &bd).f64(),
            );
            // SAFETY: the entries exist, and every processor has the baseline
            let (lf, ld) = unsafe {
                let (jf, jd) = (fixed(b), float(b));
                let f = Fixed::differences::<16, { crate::device::lanes::BASE }>(&fixed(a), |_| &jf, &bf).0;
                (f, Float64::differences::<8, { crate::device::lanes::BASE }>(&float(a), |_| &jd, &bd).0)
            };
            for k in 0..3 {
                // f32: 6e-8 of lengths up to 20, in the displacement and the difference
                assert!(
                    (dd[k] - truth[k]).abs() < 1e-13 && (df[k] - truth[k]).abs() < 1e-5,
                    "{a:?} {b:?} {dd:?} {df:?} {truth:?}"
                );
                // 6e-8 of lengths up to 10
                assert!((ld[k][3] - dd[k]).abs() < 1e-14 && (f64::from(lf[k][7]) - df[k]).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn wrapped_difference_is_the_nearest_image() {
        let length = [10.0, 7.0, 3.0];
        let (bf, bd) = (Fixed::scale(length), Float64::scale(length));
        let mut state = 1u32;
        let mut random = |l: f64| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (f64::from(state) / TWO_32 - 0.5) * l
        };
        for _ in 0..1000 {
            let a = length.map(&mut random);
            let b = length.map(&mut random);
            let fixed = |v: [f64; 3]| PosTypeFixed {
                position: std::array::from_fn(|k| (to_fixed64(v[k], length[k]).0 >> 32) as i32),
                kind: 0,
            };
            let float = |v| PosTypeF64 { position: v, kind: 0, reserved: 0 };
            let df = Fixed::difference(&fixed(a), &fixed(b), &bf).f64();
            let dd = Float64::difference(&float(a), &float(b), &bd).f64();
            let back = Fixed::difference(&fixed(b), &fixed(a), &bf).f64();
            for k in 0..3 {
                let mut truth = a[k] - b[k];
                truth -= length[k] * (truth / length[k]).round();
                assert!((dd[k] - truth).abs() < 1e-14);
                // positions of 2⁻³² of the length, and 6e-8 of differences up to 5
                assert!((df[k] - truth).abs() < 1e-6, "{} {truth}", df[k]);
                assert_eq!(df[k], -back[k], "antisymmetric to the bit");
            }
        }
    }
}
