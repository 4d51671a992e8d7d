//! Numbers in a checkpoint: rows with their length in front.

use galamost_plugin_api::error::{Error, Result};

/// A number of fixed size.
pub trait Plain: Copy {
    /// Bytes.
    const SIZE: usize;
    /// Appends it.
    fn put(self, to: &mut Vec<u8>);
    /// Reads it from exactly [`Self::SIZE`] bytes.
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

/// Appends a row.
pub fn put<T: Plain>(to: &mut Vec<u8>, row: &[T]) {
    (row.len() as u64).put(to);
    to.reserve(row.len() * T::SIZE);
    row.iter().for_each(|x| x.put(to));
}

/// What is left of a checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct Unpack<'a>(pub &'a [u8]);

impl Unpack<'_> {
    /// The next row.
    ///
    /// # Errors
    /// It is not there.
    pub fn row<T: Plain>(&mut self) -> Result<Vec<T>> {
        let foreign = || Error::Run("the checkpoint is of another analyzer".into());
        let (n, rest) = self.0.split_at_checked(8).ok_or_else(foreign)?;
        let bytes = usize::try_from(u64::get(n)).ok().and_then(|n| n.checked_mul(T::SIZE)).ok_or_else(foreign)?;
        let (row, rest) = rest.split_at_checked(bytes).ok_or_else(foreign)?;
        self.0 = rest;
        Ok(row.chunks_exact(T::SIZE).map(T::get).collect())
    }

    /// The next row, which must have `n` entries.
    ///
    /// # Errors
    /// It is not there, or has another length.
    pub fn row_of<T: Plain>(&mut self, n: usize) -> Result<Vec<T>> {
        let row = self.row()?;
        if row.len() == n { Ok(row) } else { Err(Error::Run("the checkpoint is of another analyzer".into())) }
    }

    /// Nothing may follow.
    ///
    /// # Errors
    /// Something does.
    pub fn end(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(Error::Run("the checkpoint is of another analyzer".into())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_and_lengths_are_not_believed() {
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
