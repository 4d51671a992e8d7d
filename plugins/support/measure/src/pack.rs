//! Arrays of numbers in a checkpoint, each preceded by its length.

use galamost_plugin_api::error::{Error, Result};

/// A number of fixed size.
pub trait Plain: Copy {
    /// Size in bytes.
    const SIZE: usize;
    /// Appends the number, little-endian.
    fn put(self, to: &mut Vec<u8>);
    /// Reads the number from exactly [`Self::SIZE`] bytes.
    fn get(from: &[u8]) -> Self;
}

macro_rules! plain {
    ($($t:ty)+) => {$(
        impl Plain for $t {
            const SIZE: usize = size_of::<$t>();
            fn put(self, to: &mut Vec<u8>) {
                to.extend(self.to_le_bytes());
            }
            fn get(from: &[u8]) -> Self {
                Self::from_le_bytes(std::array::from_fn(|k| from.get(k).copied().unwrap_or(0)))
            }
        }
    )+};
}
plain!(u8 u32 i32 u64 f64);

/// Appends an array: its length as `u64`, then its numbers.
pub fn put<T: Plain>(to: &mut Vec<u8>, row: &[T]) {
    (row.len() as u64).put(to);
    to.reserve(row.len() * T::SIZE);
    row.iter().for_each(|x| x.put(to));
}

/// The error for bytes that another analyzer, or the same one with other parameters, has written.
pub(crate) fn foreign() -> Error {
    Error::Run("the checkpoint does not match this analyzer; restore the pipeline that wrote it".into())
}

/// Reader of packed arrays; holds the bytes that are not read yet.
#[derive(Clone, Copy, Debug)]
pub struct Unpack<'a>(pub &'a [u8]);

impl Unpack<'_> {
    /// Reads the next array.
    ///
    /// # Errors
    /// Returns an error if the bytes end before it.
    pub fn row<T: Plain>(&mut self) -> Result<Vec<T>> {
        let (n, rest) = self.0.split_at_checked(8).ok_or_else(foreign)?;
        let bytes = usize::try_from(u64::get(n)).ok().and_then(|n| n.checked_mul(T::SIZE)).ok_or_else(foreign)?;
        let (row, rest) = rest.split_at_checked(bytes).ok_or_else(foreign)?;
        self.0 = rest;
        Ok(row.chunks_exact(T::SIZE).map(T::get).collect())
    }

    /// Reads the next array, which must have `n` entries.
    ///
    /// # Errors
    /// Returns an error if the bytes end before it, or if it has another length.
    pub fn row_of<T: Plain>(&mut self, n: usize) -> Result<Vec<T>> {
        let row = self.row()?;
        if row.len() == n { Ok(row) } else { Err(foreign()) }
    }

    /// Checks that all bytes are read.
    ///
    /// # Errors
    /// Returns an error if bytes are left.
    pub fn end(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(foreign()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_round_trip_and_lengths_are_checked() {
        let mut bytes = vec![];
        put(&mut bytes, &[1.5, -2.0]);
        put(&mut bytes, &[7u32]);
        let mut all = Unpack(&bytes);
        assert_eq!(all.row::<f64>().expect("a row"), [1.5, -2.0]);
        assert_eq!(all.row_of::<u32>(1).expect("a row"), [7]);
        assert!(all.end().is_ok());
        bytes[7] = 0xff;
        assert!(Unpack(&bytes).row::<f64>().is_err());
        assert!(Unpack(&bytes[..4]).row::<u32>().is_err() && Unpack(&bytes).end().is_err());
    }
}
