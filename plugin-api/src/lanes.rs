//! Moving data between records in memory and lanes of vectors, by hand where LLVM does it badly.
//!
//! The loops over neighbours read records of four numbers (x, y, z and a fourth) at scattered places and want one
//! vector for each member. LLVM makes one gather for each member, which touches every record three or four times; one
//! 16- or 32-byte load for each record and a 4 × 4 transposition in registers are several times faster.

/// Baseline instructions.
pub const BASE: u32 = 0;
/// x86-64-v3: AVX2.
pub const V3: u32 = 3;
/// x86-64-v4: AVX-512.
pub const V4: u32 = 4;

/// A number that stands in records of four.
pub trait Record: Copy + Default + 'static {
    /// Members of `L` records as four arrays; record l is at `at(l)`.
    ///
    /// # Safety
    /// The records must exist, and the processor must have the extension `ISA`.
    unsafe fn gather<const L: usize, const ISA: u32>(at: impl Fn(usize) -> *const [Self; 4]) -> [[Self; L]; 4];

    /// Lane l's bit is set where x < y.
    ///
    /// # Safety
    /// The processor must have the extension `ISA`.
    unsafe fn less<const L: usize, const ISA: u32>(x: &[Self; L], y: &[Self; L]) -> u32;

    /// Writes the numbers whose lanes' bits are set to `to`, one after the other. `L` numbers are written.
    ///
    /// # Safety
    /// There must be room for `L` numbers, and the processor must have the extension `ISA`.
    unsafe fn pack<const L: usize, const ISA: u32>(to: *mut Self, from: &[Self; L], keep: u32);

    /// Sum of the lanes in f64, in a fixed order, the same with every extension: halves are added until one number is left.
    ///
    /// # Safety
    /// The processor must have the extension `ISA`.
    unsafe fn total<const L: usize, const ISA: u32>(lanes: &[Self; L]) -> f64;
}

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
        // SAFETY: the caller's word: n < L
        unsafe { *to.add(n) = *x };
        n += (keep >> l & 1) as usize;
    }
}

#[inline(always)]
unsafe fn one_by_one<T: Copy + Default, const L: usize>(at: impl Fn(usize) -> *const [T; 4]) -> [[T; L]; 4] {
    let mut out = [[T::default(); L]; 4];
    for l in 0..L {
        // SAFETY: the caller's word
        let record = unsafe { *at(l) };
        for (member, value) in out.iter_mut().zip(record) {
            member[l] = value;
        }
    }
    out
}

macro_rules! record32 {
    ($t:ty $(, $less:ident, $total:ident)?) => {
        impl Record for $t {
            #[inline(always)]
            unsafe fn gather<const L: usize, const ISA: u32>(at: impl Fn(usize) -> *const [Self; 4]) -> [[Self; L]; 4] {
                // SAFETY: the caller's word; the arrays written through a pointer have exactly the size written
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
                        // SAFETY: the caller's word; arrays of 16 are read as such
                        return unsafe { x86::$less::<ISA>(x.as_ptr(), y.as_ptr()) };
                    }
                )?
                less_one_by_one(x, y)
            }
            #[inline(always)]
            unsafe fn pack<const L: usize, const ISA: u32>(to: *mut Self, from: &[Self; L], keep: u32) {
                // SAFETY: the caller's word; arrays of 16 are read as such
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
                        // SAFETY: the caller's word; arrays of 16 are read as such
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

impl Record for f64 {
    #[inline(always)]
    unsafe fn gather<const L: usize, const ISA: u32>(at: impl Fn(usize) -> *const [Self; 4]) -> [[Self; L]; 4] {
        // SAFETY: the caller's word; the arrays written through a pointer have exactly the size written
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
            // SAFETY: the caller's word; arrays of 16 are read as such
            let half = |k: usize| unsafe { x86::less8_f64::<ISA>(x.as_ptr().add(k), y.as_ptr().add(k)) };
            return half(0) | half(8) << 8;
        }
        less_one_by_one(x, y)
    }
    #[inline(always)]
    unsafe fn pack<const L: usize, const ISA: u32>(to: *mut Self, from: &[Self; L], keep: u32) {
        // SAFETY: the caller's word; arrays of 16 are read as such, and the second half starts at most 8 numbers on
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
            // SAFETY: the caller's word; arrays of 16 are read as such
            return unsafe { x86::total16_f64(lanes.as_ptr()) };
        }
        total_one_by_one(*lanes)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Sixteen 16-byte records at `at(0)` … `at(15)` to four times sixteen words.
    #[inline(always)]
    pub unsafe fn gather16_v4(at: impl Fn(usize) -> *const __m128i, out: *mut __m512i) {
        // SAFETY: the caller has AVX-512, the records exist, and `out` has room for four vectors
        unsafe {
            // row k holds records k, k + 4, k + 8, k + 12, one in each quarter
            let row = |k: usize| {
                let r = _mm512_castsi128_si512(_mm_loadu_si128(at(k)));
                let r = _mm512_inserti32x4::<1>(r, _mm_loadu_si128(at(k + 4)));
                let r = _mm512_inserti32x4::<2>(r, _mm_loadu_si128(at(k + 8)));
                _mm512_inserti32x4::<3>(r, _mm_loadu_si128(at(k + 12)))
            };
            let (a, b, c, d) = (row(0), row(1), row(2), row(3));
            let (ab_low, ab_high) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
            let (cd_low, cd_high) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
            _mm512_storeu_si512(out, _mm512_unpacklo_epi64(ab_low, cd_low));
            _mm512_storeu_si512(out.add(1), _mm512_unpackhi_epi64(ab_low, cd_low));
            _mm512_storeu_si512(out.add(2), _mm512_unpacklo_epi64(ab_high, cd_high));
            _mm512_storeu_si512(out.add(3), _mm512_unpackhi_epi64(ab_high, cd_high));
        }
    }

    /// The same in two halves of eight.
    #[inline(always)]
    pub unsafe fn gather16_v3(at: impl Fn(usize) -> *const __m128i, out: *mut __m256i) {
        // SAFETY: the caller has AVX2, the records exist, and `out` has room for eight vectors
        unsafe {
            for half in 0..2 {
                let row = |k: usize| {
                    let low = _mm256_castsi128_si256(_mm_loadu_si128(at(8 * half + k)));
                    _mm256_inserti128_si256::<1>(low, _mm_loadu_si128(at(8 * half + k + 4)))
                };
                let (a, b, c, d) = (row(0), row(1), row(2), row(3));
                let (ab_low, ab_high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
                let (cd_low, cd_high) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
                _mm256_storeu_si256(out.add(half), _mm256_unpacklo_epi64(ab_low, cd_low));
                _mm256_storeu_si256(out.add(2 + half), _mm256_unpackhi_epi64(ab_low, cd_low));
                _mm256_storeu_si256(out.add(4 + half), _mm256_unpacklo_epi64(ab_high, cd_high));
                _mm256_storeu_si256(out.add(6 + half), _mm256_unpackhi_epi64(ab_high, cd_high));
            }
        }
    }

    /// Eight 32-byte records to four times eight numbers.
    #[inline(always)]
    pub unsafe fn gather8_f64(at: impl Fn(usize) -> *const f64, out: *mut f64) {
        // SAFETY: the caller has AVX2, the records exist, and `out` has room for 32 numbers
        unsafe {
            for half in 0..2 {
                let row = |k: usize| _mm256_loadu_pd(at(4 * half + k));
                let (a, b, c, d) = (row(0), row(1), row(2), row(3));
                let (ab_low, ab_high) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
                let (cd_low, cd_high) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
                let to = out.add(4 * half);
                _mm256_storeu_pd(to, _mm256_permute2f128_pd::<0x20>(ab_low, cd_low));
                _mm256_storeu_pd(to.add(8), _mm256_permute2f128_pd::<0x20>(ab_high, cd_high));
                _mm256_storeu_pd(to.add(16), _mm256_permute2f128_pd::<0x31>(ab_low, cd_low));
                _mm256_storeu_pd(to.add(24), _mm256_permute2f128_pd::<0x31>(ab_high, cd_high));
            }
        }
    }

    /// Sum of sixteen f32 in f64, halves first.
    #[inline(always)]
    pub unsafe fn total16<const ISA: u32>(x: *const f32) -> f64 {
        // SAFETY: the caller has the extension; there are 16 numbers at the address
        unsafe {
            if ISA >= super::V4 {
                let all = _mm512_loadu_ps(x);
                let low = _mm512_cvtps_pd(_mm512_castps512_ps256(all));
                let high = _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(all));
                let s = _mm512_add_pd(low, high);
                return total4(_mm256_add_pd(_mm512_castpd512_pd256(s), _mm512_extractf64x4_pd::<1>(s)));
            }
            let four = |k: usize| _mm256_cvtps_pd(_mm_loadu_ps(x.add(4 * k)));
            total4(_mm256_add_pd(_mm256_add_pd(four(0), four(2)), _mm256_add_pd(four(1), four(3))))
        }
    }

    /// Sum of sixteen f64, halves first.
    #[inline(always)]
    pub unsafe fn total16_f64(x: *const f64) -> f64 {
        // SAFETY: the caller has AVX2; there are 16 numbers at the address
        unsafe {
            let both = |k: usize| _mm256_add_pd(_mm256_loadu_pd(x.add(k)), _mm256_loadu_pd(x.add(k + 8)));
            total4(_mm256_add_pd(both(0), both(4)))
        }
    }

    #[inline(always)]
    unsafe fn total4(x: __m256d) -> f64 {
        // SAFETY: the caller has AVX2
        unsafe {
            let two = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd::<1>(x));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }
    }

    /// For each mask of eight bits, the numbers of its set bits, as bytes.
    static PACK: [u64; 256] = {
        let mut table = [0u64; 256];
        let mut m = 0;
        while m < 256 {
            let (mut packed, mut n, mut bit) = (0u64, 0, 0);
            while bit < 8 {
                if m >> bit & 1 == 1 {
                    packed |= bit << (8 * n);
                    n += 1;
                }
                bit += 1;
            }
            table[m] = packed;
            m += 1;
        }
        table
    };

    /// Compares sixteen f32.
    #[inline(always)]
    pub unsafe fn less16<const ISA: u32>(x: *const f32, y: *const f32) -> u32 {
        // SAFETY: the caller has the extension; there are 16 numbers at each address
        unsafe {
            if ISA >= super::V4 {
                return u32::from(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(_mm512_loadu_ps(x), _mm512_loadu_ps(y)));
            }
            let half = |k: usize| {
                let less = _mm256_cmp_ps::<_CMP_LT_OQ>(_mm256_loadu_ps(x.add(k)), _mm256_loadu_ps(y.add(k)));
                _mm256_movemask_ps(less) as u32
            };
            half(0) | half(8) << 8
        }
    }

    /// Compares eight f64.
    #[inline(always)]
    pub unsafe fn less8_f64<const ISA: u32>(x: *const f64, y: *const f64) -> u32 {
        // SAFETY: the caller has the extension; there are 8 numbers at each address
        unsafe {
            if ISA >= super::V4 {
                return u32::from(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(_mm512_loadu_pd(x), _mm512_loadu_pd(y)));
            }
            let half = |k: usize| {
                let less = _mm256_cmp_pd::<_CMP_LT_OQ>(_mm256_loadu_pd(x.add(k)), _mm256_loadu_pd(y.add(k)));
                _mm256_movemask_pd(less) as u32
            };
            half(0) | half(4) << 4
        }
    }

    /// Packs sixteen 32-bit numbers.
    #[inline(always)]
    pub unsafe fn pack16<const ISA: u32>(to: *mut i32, from: *const i32, keep: u32) {
        // SAFETY: the caller has the extension and room for 16 numbers: the second half starts at most 8 numbers on
        unsafe {
            if ISA >= super::V4 {
                let packed = _mm512_maskz_compress_epi32(keep as __mmask16, _mm512_loadu_si512(from.cast()));
                _mm512_storeu_si512(to.cast(), packed);
                return;
            }
            let mut n = 0;
            for half in 0..2 {
                let bits = (keep >> (8 * half) & 0xff) as usize;
                let order = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(PACK[bits] as i64));
                let numbers = _mm256_loadu_si256(from.add(8 * half).cast());
                _mm256_storeu_si256(to.add(n).cast(), _mm256_permutevar8x32_epi32(numbers, order));
                n += bits.count_ones() as usize;
            }
        }
    }

    /// For each mask of four bits, the numbers of its set bits as pairs of 32-bit lanes.
    static PACK_PAIRS: [u64; 16] = {
        let mut table = [0u64; 16];
        let mut m = 0;
        while m < 16 {
            let (mut packed, mut n, mut bit) = (0u64, 0, 0);
            while bit < 4 {
                if m >> bit & 1 == 1 {
                    packed |= ((2 * bit) | ((2 * bit + 1) << 8)) << (16 * n);
                    n += 1;
                }
                bit += 1;
            }
            table[m] = packed;
            m += 1;
        }
        table
    };

    /// Packs eight f64.
    #[inline(always)]
    pub unsafe fn pack8_f64<const ISA: u32>(to: *mut f64, from: *const f64, keep: u32) {
        // SAFETY: the caller has the extension and room for 8 numbers: the second half starts at most 4 numbers on
        unsafe {
            if ISA >= super::V4 {
                _mm512_storeu_pd(to, _mm512_maskz_compress_pd(keep as __mmask8, _mm512_loadu_pd(from)));
                return;
            }
            let mut n = 0;
            for half in 0..2 {
                let bits = (keep >> (4 * half) & 0xf) as usize;
                let order = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(PACK_PAIRS[bits] as i64));
                let numbers = _mm256_loadu_si256(from.add(4 * half).cast());
                _mm256_storeu_si256(to.add(n).cast(), _mm256_permutevar8x32_epi32(numbers, order));
                n += bits.count_ones() as usize;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        #[inline(always)]
        unsafe fn all<const ISA: u32>() {
            let words: Vec<[i32; 4]> = (0..100).map(|k| [k, k + 1000, k + 2000, k + 3000]).collect();
            let numbers: Vec<[f64; 4]> = words.iter().map(|w| w.map(f64::from)).collect();
            let row: Vec<usize> = (0..16).map(|k| k * 37 % 100).collect();
            // SAFETY: all rows are below 100
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
                // SAFETY: there is room for as many numbers as are given
                unsafe {
                    i32::pack::<16, ISA>(packed.as_mut_ptr(), &words, pattern);
                    f64::pack::<16, ISA>(reals_packed.as_mut_ptr(), &reals, pattern);
                }
                let truth: Vec<usize> = (0..16).filter(|l| flags[*l]).collect();
                assert_eq!(packed[..n].to_vec(), truth.iter().map(|l| 7 * *l as i32).collect::<Vec<_>>());
                assert_eq!(reals_packed[..n].to_vec(), truth.iter().map(|l| 0.5 * *l as f64).collect::<Vec<_>>());
                let (low, high) = (flags.map(|f| if f { 1.0 } else { 2.0 }), [1.5f64; 16]);
                // SAFETY: the extension is there
                let masks = unsafe {
                    (
                        f32::less::<16, ISA>(&low.map(|x| x as f32), &high.map(|x| x as f32)),
                        f64::less::<16, ISA>(&low, &high),
                    )
                };
                assert_eq!(masks, (pattern, pattern));
                let tenths: [f32; 16] = std::array::from_fn(|l| (l as u32 ^ pattern) as f32 * 0.1);
                let many = tenths.map(|x| 1e9 + f64::from(x));
                // SAFETY: the extension is there
                let totals = unsafe { (f32::total::<16, ISA>(&tenths), f64::total::<16, ISA>(&many)) };
                assert_eq!(totals, (total_one_by_one(tenths.map(f64::from)), total_one_by_one(many)));
            }
        }
        // SAFETY: the processor was asked
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

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn lanes_agree_with_plain_code_in_every_extension() {
        check::<BASE>();
        check::<V3>();
        check::<V4>();
    }
}
