//! Lanes of the CPU loops: gathering of records, and vector operations that LLVM does not generate well.
//!
//! The loops over neighbors read records of four numbers (x, y, z and a fourth) at arbitrary addresses and need one
//! vector for each member. LLVM generates one gather per member, which accesses every record three or four times. One
//! 16- or 32-byte load per record and a 4 × 4 transposition in registers is several times faster.

/// Extension `ISA` of the baseline.
pub const BASE: u32 = 0;
/// Extension `ISA` of x86-64-v3: AVX2.
pub const V3: u32 = 3;
/// Extension `ISA` of x86-64-v4: AVX-512.
pub const V4: u32 = 4;

/// A number in lanes, and in records of four.
pub trait LaneElement: Copy + Default + 'static {
    /// Gathers `L` records into four arrays, one for each member. Record l is at `at(l)`.
    ///
    /// # Safety
    /// The records must exist, and the processor must have the extension `ISA`.
    unsafe fn gather<const L: usize, const ISA: u32>(at: impl Fn(usize) -> *const [Self; 4]) -> [[Self; L]; 4];

    /// Returns a mask: bit l is set if x < y in lane l.
    ///
    /// # Safety
    /// The processor must have the extension `ISA`.
    unsafe fn less<const L: usize, const ISA: u32>(x: &[Self; L], y: &[Self; L]) -> u32;

    /// Packs the lanes with set bits into `to`. Always writes `L` numbers.
    ///
    /// # Safety
    /// `to` must have room for `L` numbers, and the processor must have the extension `ISA`.
    unsafe fn pack<const L: usize, const ISA: u32>(to: *mut Self, from: &[Self; L], keep: u32);

    /// Sums the lanes in f64 in a fixed order, identical for all extensions: halves are added until one number is left.
    ///
    /// # Safety
    /// The processor must have the extension `ISA`.
    unsafe fn total<const L: usize, const ISA: u32>(lanes: &[Self; L]) -> f64;
}

/// Operations on lanes that LLVM unrolls instead of vectorizing.
pub trait Lanes: LaneElement {
    /// Returns Σ x_k y_k for each lane.
    ///
    /// # Safety
    /// The processor must have the extension `ISA`.
    unsafe fn dot<const L: usize, const ISA: u32>(x: &[[Self; L]; 3], y: &[[Self; L]; 3]) -> [Self; L];
    /// Returns x − y for each lane.
    ///
    /// # Safety
    /// See [`Self::dot`].
    unsafe fn minus<const L: usize, const ISA: u32>(x: Self, y: &[Self; L]) -> [Self; L];
    /// Returns the lanes of `x` that are less than those of `y`, and those of `y` otherwise, as for numbers that are not comparable.
    ///
    /// # Safety
    /// See [`Self::dot`].
    unsafe fn smaller<const L: usize, const ISA: u32>(x: &[Self; L], y: &[Self; L]) -> [Self; L];
    /// Returns the numbers `f` of lanes with x < limit among the first `count` lanes, and 0 in others.
    ///
    /// # Safety
    /// See [`Self::dot`].
    unsafe fn kept<const L: usize, const ISA: u32>(
        f: &[Self; L],
        x: &[Self; L],
        limit: &[Self; L],
        count: usize,
    ) -> [Self; L];
    /// Adds x · y to `to` for each lane.
    ///
    /// # Safety
    /// See [`Self::dot`].
    unsafe fn add_products<const L: usize, const ISA: u32>(to: &mut [Self; L], x: &[Self; L], y: &[Self; L]);
}

macro_rules! lanes {
    ($t:ty, $v3:ident, $v4:ident) => {
        impl Lanes for $t {
            #[inline(always)]
            unsafe fn dot<const L: usize, const ISA: u32>(x: &[[Self; L]; 3], y: &[[Self; L]; 3]) -> [Self; L] {
                let mut out = [0.0; L];
                #[cfg(target_arch = "x86_64")]
                if ISA >= V3 && L == 16 {
                    let (x, y) = (x.each_ref().map(|x| x.as_ptr()), y.each_ref().map(|y| y.as_ptr()));
                    // SAFETY: the processor has the extension `ISA` (contract of this function); arrays of 16 are read and written as such
                    unsafe {
                        if ISA >= V4 {
                            x86::dot16::<std::arch::x86_64::$v4>(x, y, out.as_mut_ptr());
                        } else {
                            x86::dot16::<std::arch::x86_64::$v3>(x, y, out.as_mut_ptr());
                        }
                    }
                    return out;
                }
                for (l, out) in out.iter_mut().enumerate() {
                    *out = x[0][l] * y[0][l] + x[1][l] * y[1][l] + x[2][l] * y[2][l];
                }
                out
            }
            #[inline(always)]
            unsafe fn minus<const L: usize, const ISA: u32>(x: Self, y: &[Self; L]) -> [Self; L] {
                #[cfg(target_arch = "x86_64")]
                if ISA >= V3 && L == 16 {
                    let mut out = [0.0; L];
                    // SAFETY: the processor has the extension `ISA` (contract of this function); arrays of 16 are read and written as such
                    unsafe {
                        if ISA >= V4 {
                            x86::less_all16::<std::arch::x86_64::$v4>(x, y.as_ptr(), out.as_mut_ptr());
                        } else {
                            x86::less_all16::<std::arch::x86_64::$v3>(x, y.as_ptr(), out.as_mut_ptr());
                        }
                    }
                    return out;
                }
                y.map(|y| x - y)
            }
            #[inline(always)]
            unsafe fn smaller<const L: usize, const ISA: u32>(x: &[Self; L], y: &[Self; L]) -> [Self; L] {
                #[cfg(target_arch = "x86_64")]
                if ISA >= V3 && L == 16 {
                    let mut out = [0.0; L];
                    // SAFETY: the processor has the extension `ISA` (contract of this function); arrays of 16 are read and written as such
                    unsafe {
                        if ISA >= V4 {
                            x86::smaller16::<std::arch::x86_64::$v4>(x.as_ptr(), y.as_ptr(), out.as_mut_ptr());
                        } else {
                            x86::smaller16::<std::arch::x86_64::$v3>(x.as_ptr(), y.as_ptr(), out.as_mut_ptr());
                        }
                    }
                    return out;
                }
                std::array::from_fn(|l| if x[l] < y[l] { x[l] } else { y[l] })
            }
            #[inline(always)]
            unsafe fn kept<const L: usize, const ISA: u32>(
                f: &[Self; L],
                x: &[Self; L],
                limit: &[Self; L],
                count: usize,
            ) -> [Self; L] {
                #[cfg(target_arch = "x86_64")]
                if ISA >= V3 && L == 16 {
                    let mut out = [0.0; L];
                    let (below, count) = ([x.as_ptr(), limit.as_ptr()], count.min(L) as i32);
                    // SAFETY: the processor has the extension `ISA` (contract of this function); arrays of 16 are read and written as such
                    unsafe {
                        if ISA >= V4 {
                            x86::kept16::<std::arch::x86_64::$v4>(f.as_ptr(), below, count, out.as_mut_ptr());
                        } else {
                            x86::kept16::<std::arch::x86_64::$v3>(f.as_ptr(), below, count, out.as_mut_ptr());
                        }
                    }
                    return out;
                }
                std::array::from_fn(|l| if l < count && x[l] < limit[l] { f[l] } else { 0.0 })
            }
            #[inline(always)]
            unsafe fn add_products<const L: usize, const ISA: u32>(to: &mut [Self; L], x: &[Self; L], y: &[Self; L]) {
                #[cfg(target_arch = "x86_64")]
                if ISA >= V3 && L == 16 {
                    // SAFETY: the processor has the extension `ISA` (contract of this function); arrays of 16 are read and written as such
                    return unsafe {
                        if ISA >= V4 {
                            x86::add_products16::<std::arch::x86_64::$v4>(to.as_mut_ptr(), x.as_ptr(), y.as_ptr())
                        } else {
                            x86::add_products16::<std::arch::x86_64::$v3>(to.as_mut_ptr(), x.as_ptr(), y.as_ptr())
                        }
                    };
                }
                for l in 0..L {
                    to[l] += x[l] * y[l];
                }
            }
        }
    };
}
lanes!(f32, __m256, __m512);
lanes!(f64, __m256d, __m512d);

#[inline(always)]
fn total_one_by_one<const L: usize>(mut sums: [f64; L]) -> f64 {
    let mut n = L / 2;
    while n > 0 {
        for l in 0..n {
            sums[l] += sums[l + n];
        }
        n /= 2;
    }
    sums[0]
}

#[inline(always)]
fn less_one_by_one<T: Copy + PartialOrd, const L: usize>(x: &[T; L], y: &[T; L]) -> u32 {
    (0..L).fold(0, |mask, l| mask | u32::from(x[l] < y[l]) << l)
}

#[inline(always)]
unsafe fn pack_one_by_one<T: Copy, const L: usize>(to: *mut T, from: &[T; L], keep: u32) {
    let mut n = 0;
    for (l, x) in from.iter().enumerate() {
        // SAFETY: `to` has room for `L` numbers (contract of this function), and n < L
        unsafe { *to.add(n) = *x };
        n += (keep >> l & 1) as usize;
    }
}

#[inline(always)]
unsafe fn one_by_one<T: Copy + Default, const L: usize>(at: impl Fn(usize) -> *const [T; 4]) -> [[T; L]; 4] {
    let mut out = [[T::default(); L]; 4];
    for l in 0..L {
        // SAFETY: the records exist (contract of this function)
        let record = unsafe { *at(l) };
        for (member, value) in out.iter_mut().zip(record) {
            member[l] = value;
        }
    }
    out
}

macro_rules! record32 {
    ($t:ty $(, $less:ident, $total:ident)?) => {
        impl LaneElement for $t {
            #[inline(always)]
            unsafe fn gather<const L: usize, const ISA: u32>(at: impl Fn(usize) -> *const [Self; 4]) -> [[Self; L]; 4] {
                // SAFETY: the processor has the extension `ISA` (contract of this function); the arrays written through a pointer have exactly the size written
                unsafe {
                    #[cfg(target_arch = "x86_64")]
                    if ISA == V4 && L == 16 {
                        let mut out = [[Self::default(); L]; 4];
                        x86::gather16_v4(|l| at(l).cast(), out.as_mut_ptr().cast());
                        return out;
                    } else if ISA == V3 && L == 16 {
                        let mut out = [[Self::default(); L]; 4];
                        x86::gather16_v3(|l| at(l).cast(), out.as_mut_ptr().cast());
                        return out;
                    }
                    one_by_one(at)
                }
            }
            #[inline(always)]
            unsafe fn less<const L: usize, const ISA: u32>(x: &[Self; L], y: &[Self; L]) -> u32 {
                $(
                    #[cfg(target_arch = "x86_64")]
                    if ISA >= V3 && L == 16 {
                        // SAFETY: the processor has the extension `ISA` (contract of this function); arrays of 16 are read as such
                        return unsafe { x86::$less::<ISA>(x.as_ptr(), y.as_ptr()) };
                    }
                )?
                less_one_by_one(x, y)
            }
            #[inline(always)]
            unsafe fn pack<const L: usize, const ISA: u32>(to: *mut Self, from: &[Self; L], keep: u32) {
                // SAFETY: the processor has the extension `ISA` (contract of this function); arrays of 16 are read as such
                unsafe {
                    #[cfg(target_arch = "x86_64")]
                    if ISA >= V3 && L == 16 {
                        return x86::pack16::<ISA>(to.cast(), from.as_ptr().cast(), keep);
                    }
                    pack_one_by_one(to, from, keep)
                }
            }
            #[inline(always)]
            unsafe fn total<const L: usize, const ISA: u32>(lanes: &[Self; L]) -> f64 {
                $(
                    #[cfg(target_arch = "x86_64")]
                    if ISA >= V3 && L == 16 {
                        // SAFETY: the processor has the extension `ISA` (contract of this function); arrays of 16 are read as such
                        return unsafe { x86::$total::<ISA>(lanes.as_ptr()) };
                    }
                )?
                total_one_by_one(lanes.map(f64::from))
            }
        }
    };
}
record32!(i32);
record32!(f32, less16, total16);

impl LaneElement for f64 {
    #[inline(always)]
    unsafe fn gather<const L: usize, const ISA: u32>(at: impl Fn(usize) -> *const [Self; 4]) -> [[Self; L]; 4] {
        // SAFETY: the processor has the extension `ISA` (contract of this function); the arrays written through a pointer have exactly the size written
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if ISA >= V3 && L == 16 {
                let mut out = [[0.0; L]; 4];
                for first in [0, 8] {
                    let mut half = [[0.0; 8]; 4];
                    x86::gather8_f64(|l| at(first + l).cast(), half.as_mut_ptr().cast());
                    for (out, half) in out.iter_mut().zip(&half) {
                        out[first..first + 8].copy_from_slice(half);
                    }
                }
                return out;
            }
            one_by_one(at)
        }
    }
    #[inline(always)]
    unsafe fn less<const L: usize, const ISA: u32>(x: &[Self; L], y: &[Self; L]) -> u32 {
        #[cfg(target_arch = "x86_64")]
        if ISA >= V3 && L == 16 {
            // SAFETY: the processor has the extension `ISA` (contract of this function); arrays of 16 are read as such
            let half = |k: usize| unsafe { x86::less8_f64::<ISA>(x.as_ptr().add(k), y.as_ptr().add(k)) };
            return half(0) | half(8) << 8;
        }
        less_one_by_one(x, y)
    }
    #[inline(always)]
    unsafe fn pack<const L: usize, const ISA: u32>(to: *mut Self, from: &[Self; L], keep: u32) {
        // SAFETY: the processor has the extension `ISA` (contract of this function); arrays of 16 are read as such, and the second half starts at most 8 numbers on
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if ISA >= V3 && L == 16 {
                x86::pack8_f64::<ISA>(to, from.as_ptr(), keep & 0xff);
                let to = to.add((keep & 0xff).count_ones() as usize);
                return x86::pack8_f64::<ISA>(to, from.as_ptr().add(8), keep >> 8);
            }
            pack_one_by_one(to, from, keep)
        }
    }
    #[inline(always)]
    unsafe fn total<const L: usize, const ISA: u32>(lanes: &[Self; L]) -> f64 {
        #[cfg(target_arch = "x86_64")]
        if ISA >= V3 && L == 16 {
            // SAFETY: the processor has the extension `ISA` (contract of this function); arrays of 16 are read as such
            return unsafe { x86::total16_f64(lanes.as_ptr()) };
        }
        total_one_by_one(*lanes)
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::precision::{Fixed, Float64, PosTypeF64, PosTypeFixed, Scheme, TWO_32};
    use crate::device::real::Real;

    #[cfg(target_arch = "x86_64")]
    fn check<const ISA: u32>() {
        #[target_feature(enable = "avx2")]
        unsafe fn with_v3() {
            // SAFETY: AVX2 is on
            unsafe { all::<V3>() }
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
        unsafe fn with_v4() {
            // SAFETY: AVX-512 is on
            unsafe { all::<V4>() }
        }
        // SAFETY: the features were detected
        unsafe {
            match ISA {
                V4 if std::is_x86_feature_detected!("avx512bw") && std::is_x86_feature_detected!("avx512vl") => {
                    with_v4()
                }
                V3 if std::is_x86_feature_detected!("avx2") => with_v3(),
                BASE => all::<BASE>(),
                _ => println!("SKIPPED: this processor lacks x86-64-v{ISA}"),
            }
        }
    }

    /// Tests all operations of one instruction set against scalar code.
    #[inline(always)]
    unsafe fn all<const ISA: u32>() {
        let words: Vec<[i32; 4]> = (0..100).map(|k| [k, k + 1000, k + 2000, k + 3000]).collect();
        let numbers: Vec<[f64; 4]> = words.iter().map(|w| w.map(f64::from)).collect();
        let row: Vec<usize> = (0..16).map(|k| k * 37 % 100).collect();
        // SAFETY: all indices are below 100
        let (w, d) = unsafe {
            (
                i32::gather::<16, ISA>(|l| &raw const words[row[l]]),
                f64::gather::<16, ISA>(|l| &raw const numbers[row[l]]),
            )
        };
        for (m, (w, d)) in w.iter().zip(&d).enumerate() {
            assert_eq!(w.to_vec(), row.iter().map(|r| words[*r][m]).collect::<Vec<_>>());
            assert_eq!(d.to_vec(), row.iter().map(|r| numbers[*r][m]).collect::<Vec<_>>());
        }
        for pattern in [0u32, 0xffff, 0x1, 0x8000, 0xa5c3, 0x00ff, 0xff00] {
            let flags: [bool; 16] = std::array::from_fn(|l| pattern >> l & 1 == 1);
            let n = pattern.count_ones() as usize;
            let (words, reals) = (std::array::from_fn(|l| 7 * l as i32), std::array::from_fn(|l| 0.5 * l as f64));
            let (mut packed, mut reals_packed) = ([0; 16], [0.0; 16]);
            // SAFETY: the arrays have room for all lanes
            unsafe {
                i32::pack::<16, ISA>(packed.as_mut_ptr(), &words, pattern);
                f64::pack::<16, ISA>(reals_packed.as_mut_ptr(), &reals, pattern);
            }
            let truth: Vec<usize> = (0..16).filter(|l| flags[*l]).collect();
            assert_eq!(packed[..n].to_vec(), truth.iter().map(|l| 7 * *l as i32).collect::<Vec<_>>());
            assert_eq!(reals_packed[..n].to_vec(), truth.iter().map(|l| 0.5 * *l as f64).collect::<Vec<_>>());
            let (low, high) = (flags.map(|f| if f { 1.0 } else { 2.0 }), [1.5f64; 16]);
            // SAFETY: the processor has the extension
            let masks = unsafe {
                (
                    f32::less::<16, ISA>(&low.map(|x| x as f32), &high.map(|x| x as f32)),
                    f64::less::<16, ISA>(&low, &high),
                )
            };
            assert_eq!(masks, (pattern, pattern));
            let tenths: [f32; 16] = std::array::from_fn(|l| (l as u32 ^ pattern) as f32 * 0.1);
            let many = tenths.map(|x| 1e9 + f64::from(x));
            // SAFETY: the processor has the extension
            let totals = unsafe { (f32::total::<16, ISA>(&tenths), f64::total::<16, ISA>(&many)) };
            assert_eq!(totals, (total_one_by_one(tenths.map(f64::from)), total_one_by_one(many)));
        }
        for count in [0, 1, 3, 4, 7, 8, 9, 15, 16, 40] {
            // SAFETY: the processor has the extension
            unsafe {
                loops::<f32, ISA>(count, |x| x as f32);
                loops::<f64, ISA>(count, |x| x);
            }
        }
        // SAFETY: the processor has the extension, and the particles exist
        unsafe {
            distances::<Fixed, ISA>(|x| PosTypeFixed { position: x.map(|x| (x * TWO_32) as i64 as i32), kind: 3 });
            distances::<Float64, ISA>(|x| PosTypeF64 { position: x, kind: 3, reserved: 0 });
        }
    }

    /// [`Lanes`] gives the same bits as scalar code.
    #[inline(always)]
    unsafe fn loops<R: Real, const ISA: u32>(count: usize, real: impl Fn(f64) -> R) {
        let row =
            |seed: usize| -> [R; 16] { std::array::from_fn(|l| real(((l * 37 + seed * 11) % 101) as f64 * 0.1 - 4.0)) };
        let (x, y) = ([row(1), row(2), row(3)], [row(4), row(5), row(6)]);
        let mut sums = y[1];
        // SAFETY: the processor has the extension `ISA` (contract of this function)
        let (dot, less, smaller, kept) = unsafe {
            R::add_products::<16, ISA>(&mut sums, &x[0], &y[0]);
            (
                R::dot::<16, ISA>(&x, &y),
                R::minus::<16, ISA>(x[0][3], &y[0]),
                R::smaller::<16, ISA>(&x[0], &y[0]),
                R::kept::<16, ISA>(&x[1], &x[0], &y[0], count),
            )
        };
        for l in 0..16 {
            assert!(dot[l] == x[0][l] * y[0][l] + x[1][l] * y[1][l] + x[2][l] * y[2][l]);
            assert!(less[l] == x[0][3] - y[0][l]);
            let below = x[0][l] < y[0][l];
            assert!(smaller[l] == if below { x[0][l] } else { y[0][l] });
            assert!(kept[l] == if below && l < count { x[1][l] } else { R::ZERO });
            assert!(sums[l] == y[1][l] + x[0][l] * y[0][l]);
        }
    }

    /// Differences of 16 particles equal those of single particles, also in a sheared or tilted box.
    #[inline(always)]
    unsafe fn distances<S: Scheme, const ISA: u32>(at: impl Fn([f64; 3]) -> S::PosType) {
        let place = |k: usize, a: usize| ((k * 29 + a * 43) % 97) as f64 / 97.0 - 0.5;
        let all: Vec<S::PosType> = (0..17).map(|k| at(std::array::from_fn(|a| place(k, a)))).collect();
        let mut scale = S::scale([1.0, 1.0, 1.0]);
        for (sheared, tilt) in [(false, [0.0; 3]), (true, [0.0; 3]), (false, [0.3, -0.2, 0.1])] {
            scale = scale.with_tilt(tilt);
            scale.sheared = sheared;
            scale.offset = S::Real::lit(0.25);
            scale.offset_units = 1 << 30;
            // SAFETY: the processor has the extension `ISA` (contract of this function): the particles exist
            let (mut d, kind) = unsafe { S::differences::<16, ISA>(&all[16], |l| &raw const all[l], &scale) };
            scale.tilt_lanes(&mut d);
            for l in 0..16 {
                let one = S::difference(&all[16], &all[l], &scale);
                assert!(
                    d[0][l] == one.x && d[1][l] == one.y && d[2][l] == one.z && kind[l] == 3,
                    "{l} {sheared} {tilt:?}"
                );
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn lanes_agree_with_plain_code_in_every_extension() {
        check::<BASE>();
        check::<V3>();
        check::<V4>();
    }
}
