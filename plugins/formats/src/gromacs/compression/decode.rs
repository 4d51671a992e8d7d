//! Reads compressed positions: integers, in units of 1 / precision. A particle has its position within the bounds of the
//! frame, then a bit that says if the number of small differences changes, in which case five bits give it and a change of
//! their size. Each of those particles has its difference from the one before. The first two are exchanged, because in water
//! molecules both hydrogens are close to the oxygen.

use crate::gromacs::compression::bits::{BitReader, FIRST, Layout, SIZES};

/// What the header of a compressed frame says.
#[derive(Clone, Debug, PartialEq)]
pub struct Compression {
    /// Units of length.
    pub precision: f32,
    /// Lowest coordinates.
    pub low: [i32; 3],
    /// Highest coordinates.
    pub high: [i32; 3],
    /// Number of the size of small differences at the start.
    pub small: i32,
}

impl Compression {
    /// Returns the sizes of the bounds, and the number of the size of small differences.
    fn checked(&self) -> Result<([u32; 3], usize), String> {
        if !self.precision.is_finite() || self.precision <= 0.0 {
            return Err(format!("the precision is {}, expected a positive number", self.precision));
        }
        let mut sizes = [0; 3];
        for (k, size) in sizes.iter_mut().enumerate() {
            let found = i64::from(self.high[k]) - i64::from(self.low[k]) + 1;
            let fits = u32::try_from(found).ok().filter(|s| *s > 0);
            *size = fits.ok_or_else(|| format!("invalid bounds {} to {}", self.low[k], self.high[k]))?;
        }
        Ok((sizes, size_number(i64::from(self.small))?))
    }
}

/// Checks the number of a size of small differences.
fn size_number(k: i64) -> Result<usize, String> {
    let found = usize::try_from(k).ok().filter(|k| (FIRST..SIZES.len()).contains(k));
    found.ok_or_else(|| format!("the size of small differences is {k}, expected {FIRST} to {}", SIZES.len() - 1))
}

/// Reads the positions of `n` particles.
///
/// # Errors
/// Returns a message if the data are damaged.
pub fn decode(bytes: &[u8], n: usize, head: &Compression) -> Result<Vec<[f64; 3]>, String> {
    let (sizes, mut small) = head.checked()?;
    let layout = Layout::of(sizes);
    let unit = f64::from(head.precision);
    let mut bits = BitReader::new(bytes);
    let mut out: Vec<[f64; 3]> = Vec::with_capacity(n.min(4 * bytes.len()));
    let mut run = 0;
    while out.len() < n {
        let ended = || "the compressed positions end too early".to_string();
        let found = bits.position(layout, sizes).ok_or_else(ended)?;
        let first: [i64; 3] = std::array::from_fn(|k| i64::from(found[k]) + i64::from(head.low[k]));
        let mut change = 0;
        if bits.take(1).ok_or_else(ended)? == 1 {
            let word = bits.take(5).ok_or_else(ended)?;
            (run, change) = ((word / 3) as usize, (word % 3) as i64 - 1);
        }
        if out.len() + 1 + run > n {
            return Err("more compressed positions than particles".into());
        }
        let real = |x: [i64; 3]| x.map(|x| x as f64 / unit);
        let at = out.len();
        let (size, mut last) = (SIZES[small], first);
        for _ in 0..run {
            let d = bits.triple(small as u32, [size; 3]).ok_or_else(ended)?;
            last = std::array::from_fn(|k| last[k] + i64::from(d[k]) - i64::from(size / 2));
            out.push(real(last));
        }
        // the one with its whole position is the second one
        out.insert(at + run.min(1), real(first));
        small = size_number(small as i64 + change)?;
    }
    Ok(out)
}
