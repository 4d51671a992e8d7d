//! Writes compressed positions, see `decode.rs`. One size of small differences, which gives the fewest bits, holds for the
//! frame.

use crate::gromacs::compression::bits::{BitWriter, FIRST, Layout, SIZES};

/// Largest coordinate of the format, in units of 1 / precision, and largest distance of two.
const LARGEST: i64 = i32::MAX as i64 - 2;
/// Largest number of small differences in a row.
const LONGEST: usize = 8;
/// Number of no size.
const NONE: u8 = u8::MAX;

/// Rounds positions to integers.
///
/// # Errors
/// Returns a message that names the particle if a coordinate exceeds the format.
pub fn rounded(position: &[[f64; 3]], precision: f64) -> Result<Vec<[i32; 3]>, String> {
    let mut all = Vec::with_capacity(position.len());
    let (mut low, mut high) = ([i64::MAX; 3], [i64::MIN; 3]);
    for (tag, p) in position.iter().enumerate() {
        let q = p.map(|x| (x * precision).round() as i64);
        for k in 0..3 {
            (low[k], high[k]) = (low[k].min(q[k]), high[k].max(q[k]));
            if !p[k].is_finite() || q[k].abs() > LARGEST || high[k] - low[k] >= LARGEST {
                return Err(format!(
                    "position {} = {} of the particle with tag {tag} exceeds an XTC file with the precision {precision}; \
                     lower `precision`, or write TRR",
                    ["x", "y", "z"][k],
                    p[k]
                ));
            }
        }
        all.push(q.map(|x| x as i32));
    }
    Ok(all)
}

/// Positions to compress.
struct Positions<'a> {
    q: &'a [[i32; 3]],
    /// Numbers of the sizes that differences to the next particle need, and to the one after it.
    next: [Vec<u8>; 2],
}

/// Returns the number of the smallest size for the difference of two positions.
fn size_for(a: [i32; 3], b: [i32; 3]) -> u8 {
    let far = (0..3).map(|k| a[k].abs_diff(b[k])).max().unwrap_or(0);
    let k = FIRST + SIZES[FIRST..].partition_point(|s| s / 2 <= far);
    if k < SIZES.len() { k as u8 } else { NONE }
}

impl<'a> Positions<'a> {
    fn of(q: &'a [[i32; 3]]) -> Self {
        let next = [1, 2].map(|k| q.iter().zip(&q[k.min(q.len())..]).map(|(a, b)| size_for(*a, *b)).collect());
        Self { q, next }
    }

    /// Returns the number of small differences after the particle `i`, for the size number `small`.
    fn run(&self, i: usize, small: usize) -> usize {
        let fits = |k: usize, i: usize| self.next[k].get(i).is_some_and(|s| usize::from(*s) <= small);
        if !fits(0, i) {
            return 0;
        }
        // the first two are exchanged
        if !fits(1, i) {
            return 1;
        }
        2 + (2..LONGEST).take_while(|k| fits(0, i + k)).count()
    }

    /// Returns the bits of all positions.
    fn cost(&self, layout: Layout, small: Option<usize>) -> u64 {
        let (mut bits, mut i, mut last) = (0, 0, 0);
        while i < self.q.len() {
            let run = small.map_or(0, |s| self.run(i, s));
            let word = if run == last { 0 } else { 5 };
            bits += u64::from(layout.bits()) + 1 + word + (run * small.unwrap_or(0)) as u64;
            (last, i) = (run, i + 1 + run);
        }
        bits
    }
}

/// Appends precision, bounds, and compressed positions; `wide` selects a length of 64 bits.
pub fn encode(out: &mut Vec<u8>, q: &[[i32; 3]], precision: f32, wide: bool) {
    let bound = |f: fn(i32, i32) -> i32, k: usize| q.iter().map(|p| p[k]).reduce(f).unwrap_or(0);
    let (low, high) = ([0, 1, 2].map(|k| bound(i32::min, k)), [0, 1, 2].map(|k| bound(i32::max, k)));
    let sizes: [u32; 3] = std::array::from_fn(|k| high[k].abs_diff(low[k]) + 1);
    let layout = Layout::of(sizes);
    let all = Positions::of(q);
    let candidates = (FIRST..SIZES.len().min(layout.bits() as usize)).map(Some);
    let small = candidates.chain([None]).min_by_key(|s| all.cost(layout, *s)).flatten();
    out.extend(precision.to_be_bytes());
    low.iter().chain(&high).for_each(|x| out.extend(x.to_be_bytes()));
    let number = small.unwrap_or(FIRST);
    out.extend((number as u32).to_be_bytes());
    let (mut bits, mut i, mut last) = (BitWriter::default(), 0, 0);
    let (size, half) = (SIZES[number], (SIZES[number] / 2) as i32);
    while i < q.len() {
        let run = small.map_or(0, |s| all.run(i, s));
        let first = if run > 0 { q[i + 1] } else { q[i] };
        bits.put_position(layout, sizes, std::array::from_fn(|k| first[k].abs_diff(low[k])));
        bits.put(1, u32::from(run != last));
        if run != last {
            bits.put(5, 3 * run as u32 + 1);
        }
        let mut before = first;
        for k in 0..run {
            let x = if k == 0 { q[i] } else { q[i + k + 1] };
            let d = std::array::from_fn(|k| (x[k] - before[k] + half) as u32);
            bits.put_triple(number as u32, [size; 3], d);
            before = x;
        }
        (last, i) = (run, i + 1 + run);
    }
    let mut bytes = bits.finish();
    let length = bytes.len() as u64;
    if wide {
        out.extend(length.to_be_bytes());
    } else {
        out.extend((length as u32).to_be_bytes());
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    out.append(&mut bytes);
}
