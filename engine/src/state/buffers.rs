//! Bytes aligned for every type of the state, whose element is known only at run time.

/// A growable array of elements of `stride` bytes each, aligned to 16.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bytes {
    stride: usize,
    len: usize,
    words: Vec<u128>,
}

impl Bytes {
    /// `len` elements of `stride` bytes, all 0.
    pub fn zeroed(stride: usize, len: usize) -> Self {
        Self { stride, len, words: vec![0; (stride * len).div_ceil(16)] }
    }

    /// One element with these bytes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut b = Self::zeroed(bytes.len(), 1);
        b.bytes_mut().copy_from_slice(bytes);
        b
    }

    /// Bytes of one element.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: u128 has no padding, and stride · len bytes are inside the words
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.stride * self.len) }
    }

    /// The bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; every bit pattern is a u128
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.stride * self.len) }
    }

    /// The words in which the bytes stand.
    pub fn words(&self) -> &[u128] {
        &self.words
    }

    /// The words in which the bytes stand; their number must stay.
    pub fn words_mut(&mut self) -> &mut Vec<u128> {
        &mut self.words
    }

    /// The element `i`.
    pub fn element(&self, i: usize) -> &[u8] {
        &self.bytes()[i * self.stride..(i + 1) * self.stride]
    }

    /// Address of the first element.
    pub fn address(&mut self) -> u64 {
        self.words.as_mut_ptr() as u64
    }

    /// Elements in another order: element k of the result is element `order[k]` of this.
    pub fn permute(&mut self, order: &[u32], scratch: &mut Self) {
        scratch.stride = self.stride;
        scratch.len = order.len();
        scratch.words.resize((self.stride * order.len()).div_ceil(16), 0);
        let stride = self.stride;
        let from = self.bytes();
        let to = scratch.bytes_mut();
        for (k, i) in order.iter().enumerate() {
            to[k * stride..(k + 1) * stride].copy_from_slice(&from[*i as usize * stride..][..stride]);
        }
        std::mem::swap(self, scratch);
    }
}
