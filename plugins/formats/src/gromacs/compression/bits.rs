//! Bit fields of compressed positions: most significant bit first. A triple of numbers below three sizes is one number in a
//! mixed radix, whose bytes are stored least significant first.

/// Sizes of small differences. Triples of numbers below `SIZES[k]` need `k` bits; the first usable one is [`FIRST`].
pub const SIZES: [u32; 73] = [
    0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 10, 12, 16, 20, 25, 32, 40, 50, 64, 80, 101, 128, 161, 203, 256, 322, 406, 512, 645,
    812, 1_024, 1_290, 1_625, 2_048, 2_580, 3_250, 4_096, 5_060, 6_501, 8_192, 10_321, 13_003, 16_384, 20_642, 26_007,
    32_768, 41_285, 52_015, 65_536, 82_570, 104_031, 131_072, 165_140, 208_063, 262_144, 330_280, 416_127, 524_287,
    660_561, 832_255, 1_048_576, 1_321_122, 1_664_510, 2_097_152, 2_642_245, 3_329_021, 4_194_304, 5_284_491,
    6_658_042, 8_388_607, 10_568_983, 13_316_085, 16_777_216,
];
/// Number of the first usable size.
pub const FIRST: usize = 9;
/// Largest range of an axis that is stored as part of a triple.
const PACKED: u32 = 0xff_ffff;

/// How the positions of a frame are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout {
    /// As triples of this many bits.
    Packed(u32),
    /// As three numbers of these bits.
    Separate([u32; 3]),
}

impl Layout {
    /// Returns the layout of numbers below these sizes.
    pub fn of(sizes: [u32; 3]) -> Self {
        if sizes.iter().any(|s| *s > PACKED) {
            return Self::Separate(sizes.map(|s| u32::BITS - s.leading_zeros()));
        }
        let all: u128 = sizes.iter().map(|s| u128::from(*s)).product();
        Self::Packed(u128::BITS - all.leading_zeros())
    }

    /// Returns the bits of a position.
    pub fn bits(self) -> u32 {
        match self {
            Self::Packed(bits) => bits,
            Self::Separate(bits) => bits.iter().sum(),
        }
    }
}

/// Reads bits.
#[derive(Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// Number of bits read.
    at: usize,
}

impl<'a> BitReader<'a> {
    /// Begins at the first bit.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the next `n` ≤ 56 bits; `None` if there are fewer.
    pub fn take(&mut self, n: u32) -> Option<u64> {
        let end = self.at + n as usize;
        if n == 0 || end > 8 * self.bytes.len() {
            return (n == 0).then_some(0);
        }
        let rest = &self.bytes[self.at / 8..];
        let word = rest.first_chunk::<8>().copied().unwrap_or_else(|| {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            word
        });
        let word = u64::from_be_bytes(word) << (self.at % 8);
        self.at = end;
        Some(word >> (64 - n))
    }

    /// Returns the next triple of numbers below `sizes` (none of them 0), of `bits` ≤ 72 bits.
    pub fn triple(&mut self, bits: u32, sizes: [u32; 3]) -> Option<[u32; 3]> {
        if bits < 64 {
            let whole = bits / 8;
            let low = if whole == 0 { 0 } else { (self.take(8 * whole)? << (64 - 8 * whole)).swap_bytes() };
            let v = low | self.take(bits % 8)? << (8 * whole);
            let [_, b, c] = sizes.map(u64::from);
            return Some([(v / c / b) as u32, (v / c % b) as u32, (v % c) as u32]);
        }
        let mut v = 0;
        for k in 0..bits.div_ceil(8) {
            v |= u128::from(self.take((bits - 8 * k).min(8))?) << (8 * k);
        }
        let [_, b, c] = sizes.map(u128::from);
        Some([(v / c / b) as u32, (v / c % b) as u32, (v % c) as u32])
    }

    /// Returns the next position, of numbers below `sizes`.
    pub fn position(&mut self, layout: Layout, sizes: [u32; 3]) -> Option<[u32; 3]> {
        match layout {
            Layout::Packed(bits) => self.triple(bits, sizes),
            Layout::Separate([a, b, c]) => Some([self.take(a)? as u32, self.take(b)? as u32, self.take(c)? as u32]),
        }
    }
}

/// Writes bits.
#[derive(Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// The last bits, not yet in `bytes`.
    word: u64,
    pending: u32,
}

impl BitWriter {
    /// Appends the lower `n` ≤ 32 bits of a number, which has no others.
    pub fn put(&mut self, n: u32, x: u32) {
        self.word = self.word << n | u64::from(x);
        self.pending += n;
        while self.pending >= 8 {
            self.pending -= 8;
            self.bytes.push((self.word >> self.pending) as u8);
        }
    }

    /// Appends a triple of numbers below `sizes`, of `bits` bits.
    pub fn put_triple(&mut self, bits: u32, sizes: [u32; 3], x: [u32; 3]) {
        let [_, b, c] = sizes.map(u128::from);
        let mut v = (u128::from(x[0]) * b + u128::from(x[1])) * c + u128::from(x[2]);
        for k in 0..bits.div_ceil(8) {
            let n = (bits - 8 * k).min(8);
            self.put(n, (v & 0xff) as u32);
            v >>= 8;
        }
    }

    /// Appends a position of numbers below `sizes`.
    pub fn put_position(&mut self, layout: Layout, sizes: [u32; 3], x: [u32; 3]) {
        match layout {
            Layout::Packed(bits) => self.put_triple(bits, sizes, x),
            Layout::Separate(bits) => bits.iter().zip(x).for_each(|(n, x)| self.put(*n, x)),
        }
    }

    /// Returns the bytes; the last one is filled with zeros.
    pub fn finish(mut self) -> Vec<u8> {
        if self.pending > 0 {
            self.put(8 - self.pending, 0);
        }
        self.bytes
    }
}
