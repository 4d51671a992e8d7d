//! Lane operations with intrinsics, for AVX2 and AVX-512.

use std::arch::x86_64::*;

/// Transposes sixteen 16-byte records at `at(0)` … `at(15)` into four arrays of sixteen words.
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

/// As [`gather16_v4`], with AVX2, in two halves of eight.
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

/// Transposes eight 32-byte records into four arrays of eight numbers.
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

/// Sums sixteen f32 in f64, halves first.
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

/// Sums sixteen f64, halves first.
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

/// For each mask of eight bits: the indices of its set bits, as bytes.
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

/// Compares sixteen f32; returns a mask.
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

/// Compares eight f64; returns a mask.
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

/// For each mask of four bits: the indices of its set bits, as pairs of 32-bit lanes.
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

/// A SIMD vector. The operations of [`super::Lanes`] are loops over whole vectors.
pub trait Vector: Copy {
    /// Type of one lane.
    type Number: Copy;
    /// Number of lanes.
    const N: usize;
    unsafe fn load(from: *const Self::Number) -> Self;
    unsafe fn store(self, to: *mut Self::Number);
    unsafe fn all(x: Self::Number) -> Self;
    unsafe fn plus(self, other: Self) -> Self;
    unsafe fn minus(self, other: Self) -> Self;
    unsafe fn times(self, other: Self) -> Self;
    /// Returns the lanes of `self` that are less than those of `other`, and those of `other` otherwise.
    unsafe fn smaller(self, other: Self) -> Self;
    /// Returns the lanes with x < limit among the first `count`, and 0 in others.
    unsafe fn kept(self, x: Self, limit: Self, count: i32) -> Self;
}

macro_rules! vector {
    ($v:ty, $number:ty, $n:literal, $load:ident, $store:ident, $all:ident, $add:ident, $sub:ident, $mul:ident, $min:ident, |$a:ident, $x:ident, $limit:ident, $count:ident| $kept:expr) => {
        impl Vector for $v {
            type Number = $number;
            const N: usize = $n;
            #[inline(always)]
            unsafe fn load(from: *const $number) -> Self {
                // SAFETY: the processor has the extension `ISA` (contract of this function)
                unsafe { $load(from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $number) {
                // SAFETY: the processor has the extension `ISA` (contract of this function)
                unsafe { $store(to, self) }
            }
            #[inline(always)]
            unsafe fn all(x: $number) -> Self {
                // SAFETY: the processor has the extension `ISA` (contract of this function)
                unsafe { $all(x) }
            }
            #[inline(always)]
            unsafe fn plus(self, other: Self) -> Self {
                // SAFETY: the processor has the extension `ISA` (contract of this function)
                unsafe { $add(self, other) }
            }
            #[inline(always)]
            unsafe fn minus(self, other: Self) -> Self {
                // SAFETY: the processor has the extension `ISA` (contract of this function)
                unsafe { $sub(self, other) }
            }
            #[inline(always)]
            unsafe fn times(self, other: Self) -> Self {
                // SAFETY: the processor has the extension `ISA` (contract of this function)
                unsafe { $mul(self, other) }
            }
            #[inline(always)]
            unsafe fn smaller(self, other: Self) -> Self {
                // SAFETY: the processor has the extension `ISA` (contract of this function)
                unsafe { $min(self, other) }
            }
            #[inline(always)]
            unsafe fn kept(self, $x: Self, $limit: Self, $count: i32) -> Self {
                let $a = self;
                // SAFETY: the processor has the extension `ISA` (contract of this function)
                unsafe { $kept }
            }
        }
    };
}
vector!(
    __m512,
    f32,
    16,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_set1_ps,
    _mm512_add_ps,
    _mm512_sub_ps,
    _mm512_mul_ps,
    _mm512_min_ps,
    |a, x, limit, count| {
        let first = ((1u32 << count.clamp(0, 16)) - 1) as __mmask16;
        _mm512_maskz_mov_ps(_mm512_mask_cmp_ps_mask::<_CMP_LT_OQ>(first, x, limit), a)
    }
);
vector!(
    __m256,
    f32,
    8,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_set1_ps,
    _mm256_add_ps,
    _mm256_sub_ps,
    _mm256_mul_ps,
    _mm256_min_ps,
    |a, x, limit, count| {
        let first = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        let less = _mm256_cmp_ps::<_CMP_LT_OQ>(x, limit);
        _mm256_and_ps(a, _mm256_and_ps(less, _mm256_castsi256_ps(first)))
    }
);
vector!(
    __m512d,
    f64,
    8,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_set1_pd,
    _mm512_add_pd,
    _mm512_sub_pd,
    _mm512_mul_pd,
    _mm512_min_pd,
    |a, x, limit, count| {
        let first = ((1u32 << count.clamp(0, 8)) - 1) as __mmask8;
        _mm512_maskz_mov_pd(_mm512_mask_cmp_pd_mask::<_CMP_LT_OQ>(first, x, limit), a)
    }
);
vector!(
    __m256d,
    f64,
    4,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_set1_pd,
    _mm256_add_pd,
    _mm256_sub_pd,
    _mm256_mul_pd,
    _mm256_min_pd,
    |a, x, limit, count| {
        let first = _mm256_cmpgt_epi64(_mm256_set1_epi64x(i64::from(count)), _mm256_setr_epi64x(0, 1, 2, 3));
        let less = _mm256_cmp_pd::<_CMP_LT_OQ>(x, limit);
        _mm256_and_pd(a, _mm256_and_pd(less, _mm256_castsi256_pd(first)))
    }
);

/// Computes Σ x_k y_k for sixteen lanes.
#[inline(always)]
pub unsafe fn dot16<V: Vector>(x: [*const V::Number; 3], y: [*const V::Number; 3], to: *mut V::Number) {
    // SAFETY: the caller has the extension, and there are 16 numbers at each address
    unsafe {
        for l in (0..16).step_by(V::N) {
            let term = |k: usize| V::load(x[k].add(l)).times(V::load(y[k].add(l)));
            term(0).plus(term(1)).plus(term(2)).store(to.add(l));
        }
    }
}

/// Computes x − y for sixteen lanes.
#[inline(always)]
pub unsafe fn less_all16<V: Vector>(x: V::Number, y: *const V::Number, to: *mut V::Number) {
    // SAFETY: the processor has the extension of `V`, and there are 16 numbers at each address
    unsafe {
        for l in (0..16).step_by(V::N) {
            V::all(x).minus(V::load(y.add(l))).store(to.add(l));
        }
    }
}

/// Returns the smaller of both numbers for sixteen lanes.
#[inline(always)]
pub unsafe fn smaller16<V: Vector>(x: *const V::Number, y: *const V::Number, to: *mut V::Number) {
    // SAFETY: the processor has the extension of `V`, and there are 16 numbers at each address
    unsafe {
        for l in (0..16).step_by(V::N) {
            V::load(x.add(l)).smaller(V::load(y.add(l))).store(to.add(l));
        }
    }
}

/// Returns the numbers `f` of lanes with x < limit among the first `count` of sixteen lanes, and 0 in others.
#[inline(always)]
pub unsafe fn kept16<V: Vector>(
    f: *const V::Number,
    [x, limit]: [*const V::Number; 2],
    count: i32,
    to: *mut V::Number,
) {
    // SAFETY: the processor has the extension of `V`, and there are 16 numbers at each address
    unsafe {
        for l in (0..16).step_by(V::N) {
            V::load(f.add(l)).kept(V::load(x.add(l)), V::load(limit.add(l)), count - l as i32).store(to.add(l));
        }
    }
}

/// Adds x · y for sixteen lanes.
#[inline(always)]
pub unsafe fn add_products16<V: Vector>(to: *mut V::Number, x: *const V::Number, y: *const V::Number) {
    // SAFETY: the processor has the extension of `V`, and there are 16 numbers at each address
    unsafe {
        for l in (0..16).step_by(V::N) {
            let product = V::load(x.add(l)).times(V::load(y.add(l)));
            V::load(to.add(l)).plus(product).store(to.add(l));
        }
    }
}

/// Computes (x − y) · unit for sixteen integers, with wrap-around.
#[inline(always)]
pub unsafe fn scaled16<const ISA: u32>(x: i32, y: *const i32, unit: f32, to: *mut f32) {
    // SAFETY: the processor has the extensions of `ISA`, and there are 16 numbers at each address
    unsafe {
        if ISA >= super::V4 {
            let d = _mm512_sub_epi32(_mm512_set1_epi32(x), _mm512_loadu_si512(y.cast()));
            return _mm512_storeu_ps(to, _mm512_mul_ps(_mm512_cvtepi32_ps(d), _mm512_set1_ps(unit)));
        }
        for l in [0, 8] {
            let d = _mm256_sub_epi32(_mm256_set1_epi32(x), _mm256_loadu_si256(y.add(l).cast()));
            _mm256_storeu_ps(to.add(l), _mm256_mul_ps(_mm256_cvtepi32_ps(d), _mm256_set1_ps(unit)));
        }
    }
}

/// Computes x − y minus the nearest multiple of the length for sixteen lanes; adding `magic` rounds.
#[inline(always)]
pub unsafe fn nearest16<V: Vector>(
    x: V::Number,
    y: *const V::Number,
    length: V::Number,
    inverse: V::Number,
    magic: V::Number,
    to: *mut V::Number,
) {
    // SAFETY: the processor has the extension of `V`, and there are 16 numbers at each address
    unsafe {
        for l in (0..16).step_by(V::N) {
            let d = V::all(x).minus(V::load(y.add(l)));
            let n = d.times(V::all(inverse)).plus(V::all(magic)).minus(V::all(magic));
            d.minus(V::all(length).times(n)).store(to.add(l));
        }
    }
}
