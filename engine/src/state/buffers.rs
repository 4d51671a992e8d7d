//! Arrays of plain data whose element size is known only at run time.

pub use galamost_plugin_api::device::{Plain, bytes_of};
use rayon::prelude::*;

/// Alignment of [`Bytes`] in bytes.
pub const ALIGNMENT: usize = 64;

/// Bytes after the data that no component may write; see [`Bytes::arm`].
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0xa5;

#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
struct Block([u64; 8]);

fn blocks(bytes: usize) -> Vec<Block> {
    vec![Block([0; 8]); (bytes + GUARD).div_ceil(size_of::<Block>())]
}

/// An array of elements of `stride` bytes each, aligned to [`ALIGNMENT`], with guard bytes after its data.
#[derive(Clone, Debug)]
pub struct Bytes {
    stride: usize,
    len: usize,
    blocks: Vec<Block>,
    /// Memory of the last [`Self::permute`], for the next one.
    spare: Vec<Block>,
}

impl Default for Bytes {
    fn default() -> Self {
        Self::zeroed(0, 0)
    }
}

impl Bytes {
    /// Returns `len` elements of `stride` zero bytes.
    pub fn zeroed(stride: usize, len: usize) -> Self {
        Self { stride, len, blocks: blocks(stride * len), spare: vec![] }
    }

    /// Returns one element with these bytes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut b = Self::zeroed(bytes.len(), 1);
        b.bytes_mut().copy_from_slice(bytes);
        b
    }

    /// Returns the size of one element in bytes.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Returns the data.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the blocks hold stride · len bytes and the guard (`blocks`), and a block is plain data
        unsafe { std::slice::from_raw_parts(self.blocks.as_ptr().cast(), self.stride * self.len) }
    }

    /// Returns the data.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the blocks hold stride · len bytes and the guard (`blocks`), a block is plain data, and `self` is borrowed mutably
        unsafe { std::slice::from_raw_parts_mut(self.blocks.as_mut_ptr().cast(), self.stride * self.len) }
    }

    /// Returns the elements as values.
    ///
    /// # Panics
    /// Panics if an element does not have the size of a `T`.
    pub fn values<T: Plain>(&self) -> &[T] {
        const { assert!(align_of::<T>() <= ALIGNMENT) };
        assert_eq!(self.stride, size_of::<T>(), "size of an element");
        // SAFETY: the data are `len` elements of this size, aligned to ALIGNMENT; every bit pattern is a valid `T`
        unsafe { std::slice::from_raw_parts(self.blocks.as_ptr().cast(), self.len) }
    }

    /// Returns the elements as values.
    ///
    /// # Panics
    /// As [`Self::values`].
    pub fn values_mut<T: Plain>(&mut self) -> &mut [T] {
        const { assert!(align_of::<T>() <= ALIGNMENT) };
        assert_eq!(self.stride, size_of::<T>(), "size of an element");
        // SAFETY: the data are `len` elements of this size, aligned to ALIGNMENT, and `self` is borrowed mutably; a `T` has no padding,
        // so the bytes stay initialized
        unsafe { std::slice::from_raw_parts_mut(self.blocks.as_mut_ptr().cast(), self.len) }
    }

    /// Returns the address of the first element.
    pub fn address(&mut self) -> u64 {
        self.blocks.as_mut_ptr() as u64
    }

    /// Reorders the elements: element k of the result was element `order[k]`.
    pub fn permute(&mut self, order: &[u32]) {
        if self.spare.len() != self.blocks.len() {
            self.spare = blocks(self.stride * self.len);
        }
        // SAFETY: `spare` has as many blocks as `blocks`
        let to =
            unsafe { std::slice::from_raw_parts_mut(self.spare.as_mut_ptr().cast::<u8>(), self.stride * self.len) };
        let from = self.bytes();
        match self.stride {
            4 => gather::<4>(from, to, order),
            12 => gather::<12>(from, to, order),
            16 => gather::<16>(from, to, order),
            24 => gather::<24>(from, to, order),
            32 => gather::<32>(from, to, order),
            0 => {}
            stride => to.par_chunks_exact_mut(stride).zip(order).with_min_len(1024).for_each(|(row, i)| {
                row.copy_from_slice(&from[*i as usize * stride..][..stride]);
            }),
        }
        std::mem::swap(&mut self.blocks, &mut self.spare);
    }

    /// Fills the guard bytes after the data.
    pub fn write_guard(&mut self) {
        let end = self.stride * self.len;
        // SAFETY: the blocks hold the data and GUARD bytes after it
        unsafe { self.blocks.as_mut_ptr().cast::<u8>().add(end).write_bytes(GUARD_BYTE, GUARD) };
    }

    /// Returns whether the guard bytes are as [`Self::write_guard`] filled them.
    pub fn is_intact(&self) -> bool {
        let end = self.stride * self.len;
        // SAFETY: the blocks hold the data and GUARD bytes after it; the read does not rely on alignment
        let guard = unsafe { self.blocks.as_ptr().cast::<u8>().add(end).cast::<[u8; GUARD]>().read_unaligned() };
        guard == [GUARD_BYTE; GUARD]
    }
}

fn gather<const N: usize>(from: &[u8], to: &mut [u8], order: &[u32]) {
    let from = from.as_chunks::<N>().0;
    let rows = to.as_chunks_mut::<N>().0.par_iter_mut().zip(order).with_min_len(1024);
    rows.for_each(|(row, i)| *row = from[*i as usize]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_reordered_and_guarded() {
        for stride in [4, 8, 12] {
            let mut b = Bytes::zeroed(stride, 5);
            b.bytes_mut().chunks_mut(stride).enumerate().for_each(|(k, row)| row.fill(k as u8));
            b.permute(&[4, 2, 0, 1, 3]);
            let mut none = Bytes::default();
            none.write_guard();
            assert!(none.is_intact() && none.bytes().is_empty());
            let first: Vec<u8> = b.bytes().chunks(stride).map(|row| row[stride - 1]).collect();
            assert_eq!(first, [4, 2, 0, 1, 3]);
            b.write_guard();
            assert!(b.is_intact());
            let end = b.stride * b.len;
            // SAFETY: the guard is part of the blocks
            unsafe { (b.address() as *mut u8).add(end).write(1) };
            assert!(!b.is_intact());
        }
    }
}
