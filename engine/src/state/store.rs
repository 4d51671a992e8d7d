//! Conversion of positions between f64 and the storage scheme of a precision.

use super::buffers::Plain;
use galamost_plugin_api::lanes::LaneElement;
use galamost_plugin_api::precision::{
    BoxScale, Fixed, Float64, PosTypeF64, PosTypeFixed, Scheme, from_fixed64, to_fixed64, wrap_f64,
};

/// A storage scheme with its conversions to and from f64.
pub trait Store: Scheme<PosType: Plain, Real: Plain> {
    /// Type of a stored coordinate.
    type Coordinate: Copy + Default + Send + Sync;

    /// Returns a coordinate of an entry.
    fn coordinate(p: &Self::PosType, axis: usize) -> Self::Coordinate;
    /// Returns one bit for each of 16 particles, given by coordinate: 1 if the squared distance to `i` is less than
    /// `limit`. `TILTED` is `b.tilted`: triclinic boxes have an instance of the loop. The squares are bit-identical to those
    /// of [`Scheme::differences`].
    ///
    /// # Safety
    /// The processor must support the extension `ISA` of [`galamost_plugin_api::lanes`].
    unsafe fn nearer<const ISA: u32, const TILTED: bool>(
        i: &Self::PosType,
        at: [&[Self::Coordinate; 16]; 3],
        b: &BoxScale<Self::Real>,
        limit: Self::Real,
    ) -> u32;
    /// Encodes reduced coordinates (see [`galamost_plugin_api::tilt`]): entry, lower bits, images crossed.
    fn store(x: [f64; 3], type_id: u32, length: [f64; 3]) -> (Self::PosType, [u32; 3], [i32; 3]);
    /// Decodes reduced coordinates.
    fn load(p: &Self::PosType, low: [u32; 3], length: [f64; 3]) -> [f64; 3];
    /// Returns the cell along an axis of `n` cells.
    fn cell(p: &Self::PosType, axis: usize, n: u32, length: [f64; 3]) -> u32;
    /// Scales positions with a box whose lengths were multiplied by `ratio`. Does nothing in fixed point, where
    /// coordinates are relative to the box.
    fn stretch(pos: &mut [Self::PosType], ratio: [f64; 3]);
    /// Adds `turns` times the coordinate along the second of two axes, in fractions of the edges, to that along the first. Images are part of
    /// the coordinates. `low` are the lower bits in fixed point.
    fn shear(
        p: &mut Self::PosType,
        low: &mut [u32; 3],
        image: &mut [i32; 3],
        length: [f64; 3],
        axes: [usize; 2],
        turns: i32,
    );
}

/// [`Store::nearer`] in a triclinic box.
#[inline(always)]
fn nearer_tilted<S: Scheme>(
    i: &S::PosType,
    b: &BoxScale<S::Real>,
    limit: S::Real,
    at: impl Fn(usize) -> S::PosType,
) -> u32 {
    (0..16).fold(0, |near, l| near | u32::from(S::difference(i, &at(l), b).norm2() < limit) << l)
}

impl Store for Fixed {
    type Coordinate = i32;

    #[inline(always)]
    fn coordinate(p: &PosTypeFixed, axis: usize) -> i32 {
        p.position[axis]
    }
    #[inline(always)]
    unsafe fn nearer<const ISA: u32, const TILTED: bool>(
        i: &PosTypeFixed,
        at: [&[i32; 16]; 3],
        b: &BoxScale<f32>,
        limit: f32,
    ) -> u32 {
        if TILTED {
            return nearer_tilted::<Self>(i, b, limit, |l| PosTypeFixed { position: at.map(|x| x[l]), kind: 0 });
        }
        let unit = b.unit;
        let d =
            |k: usize, l: usize, less: i32| i.position[k].wrapping_sub(at[k][l]).wrapping_sub(less) as f32 * unit[k];
        let mut r2 = [0.0; 16];
        if b.sheared {
            for (l, r2) in r2.iter_mut().enumerate() {
                let p = PosTypeFixed { position: at.map(|x| x[l]), kind: 0 };
                let less = Self::crossing(i, &p, b).wrapping_mul(b.offset_units);
                let (x, y, z) = (d(0, l, less), d(1, l, 0), d(2, l, 0));
                *r2 = x * x + y * y + z * z;
            }
        } else {
            for (l, r2) in r2.iter_mut().enumerate() {
                let (x, y, z) = (d(0, l, 0), d(1, l, 0), d(2, l, 0));
                *r2 = x * x + y * y + z * z;
            }
        }
        // SAFETY: the processor supports `ISA` (contract of `nearer`)
        unsafe { f32::less::<16, ISA>(&r2, &[limit; 16]) }
    }
    fn store(x: [f64; 3], type_id: u32, length: [f64; 3]) -> (PosTypeFixed, [u32; 3], [i32; 3]) {
        let mut out = (PosTypeFixed { position: [0; 3], kind: type_id }, [0; 3], [0; 3]);
        for k in 0..3 {
            let (q, image) = to_fixed64(x[k], length[k]);
            out.0.position[k] = (q >> 32) as i32;
            out.1[k] = q as u32;
            out.2[k] = image;
        }
        out
    }
    fn load(p: &PosTypeFixed, low: [u32; 3], length: [f64; 3]) -> [f64; 3] {
        std::array::from_fn(|k| from_fixed64((i64::from(p.position[k]) << 32) | i64::from(low[k]), length[k]))
    }
    #[inline(always)]
    fn cell(p: &PosTypeFixed, axis: usize, n: u32, _: [f64; 3]) -> u32 {
        let unsigned = (p.position[axis] as u32) ^ 0x8000_0000;
        ((u64::from(unsigned) * u64::from(n)) >> 32) as u32
    }
    fn stretch(_: &mut [PosTypeFixed], _: [f64; 3]) {}
    fn shear(
        p: &mut PosTypeFixed,
        low: &mut [u32; 3],
        image: &mut [i32; 3],
        _: [f64; 3],
        [axis, of]: [usize; 2],
        turns: i32,
    ) {
        // in units of 2⁻⁶⁴ of the edge, which is exact
        let units = |k: usize| (i128::from(image[k]) << 64) + (i128::from(p.position[k]) << 32) + i128::from(low[k]);
        let sum = units(axis) + i128::from(turns) * units(of);
        let crossed = (sum + (1i128 << 63)) >> 64;
        let within = sum - (crossed << 64);
        image[axis] = crossed as i32;
        p.position[axis] = (within >> 32) as i32;
        low[axis] = within as u32;
    }
}

impl Store for Float64 {
    type Coordinate = f64;

    #[inline(always)]
    fn coordinate(p: &PosTypeF64, axis: usize) -> f64 {
        p.position[axis]
    }
    #[inline(always)]
    unsafe fn nearer<const ISA: u32, const TILTED: bool>(
        i: &PosTypeF64,
        at: [&[f64; 16]; 3],
        b: &BoxScale<f64>,
        limit: f64,
    ) -> u32 {
        if TILTED {
            return nearer_tilted::<Self>(i, b, limit, |l| PosTypeF64 { position: at.map(|x| x[l]), ..*i });
        }
        let mut r2 = [0.0; 16];
        for (l, r2) in r2.iter_mut().enumerate() {
            let p = PosTypeF64 { position: at.map(|x| x[l]), ..*i };
            let d = Self::reduced_difference(i, &p, b);
            *r2 = d.x * d.x + d.y * d.y + d.z * d.z;
        }
        // SAFETY: the processor supports `ISA` (contract of `nearer`)
        unsafe { f64::less::<16, ISA>(&r2, &[limit; 16]) }
    }
    fn store(x: [f64; 3], type_id: u32, length: [f64; 3]) -> (PosTypeF64, [u32; 3], [i32; 3]) {
        let mut out = (PosTypeF64 { position: [0.0; 3], kind: type_id, reserved: 0 }, [0; 3], [0; 3]);
        for k in 0..3 {
            (out.0.position[k], out.2[k]) = wrap_f64(x[k], length[k]);
        }
        out
    }
    fn load(p: &PosTypeF64, _: [u32; 3], _: [f64; 3]) -> [f64; 3] {
        p.position
    }
    #[inline(always)]
    fn cell(p: &PosTypeF64, axis: usize, n: u32, length: [f64; 3]) -> u32 {
        if length[axis] == 0.0 {
            return 0;
        }
        let s = (p.position[axis] / length[axis] + 0.5) * f64::from(n);
        (s as u32).min(n - 1)
    }
    fn stretch(pos: &mut [PosTypeF64], ratio: [f64; 3]) {
        for p in pos {
            p.position.iter_mut().zip(ratio).for_each(|(x, r)| *x *= r);
        }
    }
    fn shear(
        p: &mut PosTypeF64,
        _: &mut [u32; 3],
        image: &mut [i32; 3],
        length: [f64; 3],
        [axis, of]: [usize; 2],
        turns: i32,
    ) {
        let moved = p.position[axis] + f64::from(turns) * p.position[of] * (length[axis] / length[of]);
        let (x, crossed) = wrap_f64(moved, length[axis]);
        p.position[axis] = x;
        image[axis] += turns * image[of] + crossed;
    }
}
