//! Processes that share a run: who they are, and messages between them.
//!
//! A launcher (`mpiexec`, `srun`) starts the same command several times; each process is a rank. Messages go through an MPI
//! library with the standard binary interface of MPI 5, which is loaded at run time. The arrays of GPUs can pass through NCCL.

mod control;
mod launch;
mod library;
mod mpi;
mod nccl;
mod surroundings;

pub use launch::{Launch, check_launch, launch};
pub use library::find;
pub use mpi::Mpi;
pub use nccl::{Choice as NcclChoice, Nccl, Piece, check_nccl, nccl_version};
pub use surroundings::prepare_environment;

use galamost_plugin_api::error::{Error, Result};
use std::time::{Duration, Instant};

/// Messages between the ranks of a run.
///
/// All of them are sent and received in the same order by both sides, and the receiver knows their sizes.
pub trait Messages: Send + Sync {
    /// Returns the number of this rank.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn ranks(&self) -> usize;

    /// Sends messages to other ranks and receives messages of these lengths from others. Returns the received messages
    /// when all of both have been transferred.
    ///
    /// # Errors
    /// Returns the error of a rank that has failed, or an error if a rank is lost.
    fn transfer(&self, send: Vec<(usize, Vec<u8>)>, receive: &[(usize, usize)]) -> Result<Vec<Vec<u8>>>;

    /// Sets the longest time that [`Self::transfer`] waits for a rank that is alive, and [`Self::check`] for the device.
    fn set_limit(&self, limit: Option<Duration>);

    /// Returns an error if another rank has failed, or if this rank has waited for its device since `begun`, longer than the limit.
    ///
    /// # Errors
    /// See above.
    fn check(&self, begun: Instant) -> Result<()>;

    /// Makes the present and all later transfers of the other ranks fail with this error.
    fn fail(&self, error: &Error);

    /// Returns the failure of another rank, waiting up to this time for it.
    fn failure(&self, wait: Duration) -> Option<Error>;
}

impl dyn Messages + '_ {
    /// Returns the other ranks.
    fn others(&self) -> impl Iterator<Item = usize> + use<'_> {
        let own = self.rank();
        (0..self.ranks()).filter(move |r| *r != own)
    }

    /// Returns a number of each rank. All ranks call it.
    ///
    /// # Errors
    /// As for [`Messages::transfer`].
    pub fn all_numbers(&self, own: u64) -> Result<Vec<u64>> {
        let sizes = vec![8; self.ranks()];
        let bytes = self.all_gather(&own.to_le_bytes(), &sizes)?;
        Ok(bytes.iter().map(|b| number(b)).collect())
    }

    /// Returns the bytes of each rank, whose lengths every rank knows. All ranks call it.
    ///
    /// # Errors
    /// As for [`Messages::transfer`].
    pub fn all_gather(&self, own: &[u8], lengths: &[usize]) -> Result<Vec<Vec<u8>>> {
        let send = self.others().filter(|_| !own.is_empty()).map(|r| (r, own.to_vec())).collect();
        let receive: Vec<_> = self.others().map(|r| (r, lengths[r])).filter(|(_, length)| *length > 0).collect();
        let mut all = vec![vec![]; self.ranks()];
        for ((from, _), bytes) in receive.iter().zip(self.transfer(send, &receive)?) {
            all[*from] = bytes;
        }
        all[self.rank()] = own.to_vec();
        Ok(all)
    }

    /// Returns the bytes of each rank, whose lengths may differ. All ranks call it.
    ///
    /// # Errors
    /// As for [`Messages::transfer`].
    pub fn gather_all(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let lengths: Vec<usize> = self.all_numbers(own.len() as u64)?.into_iter().map(|n| n as usize).collect();
        self.all_gather(own, &lengths)
    }

    /// Returns the bytes of each rank to the first rank, and nothing to the others. All ranks call it.
    ///
    /// # Errors
    /// As for [`Messages::transfer`].
    pub fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        if self.rank() != 0 {
            self.transfer(vec![(0, own.len().to_le_bytes().to_vec())], &[])?;
            return self.transfer(vec![(0, own.to_vec())], &[]);
        }
        let lengths: Vec<_> = self.others().map(|r| (r, 8)).collect();
        let lengths = self.transfer(vec![], &lengths)?;
        let receive: Vec<_> = self.others().zip(&lengths).map(|(r, b)| (r, number(b) as usize)).collect();
        let mut all = vec![own.to_vec()];
        all.extend(self.transfer(vec![], &receive)?);
        Ok(all)
    }

    /// Returns the bytes of the first rank. All ranks call it; those of the others are not used.
    ///
    /// # Errors
    /// As for [`Messages::transfer`].
    pub fn broadcast(&self, own: Vec<u8>) -> Result<Vec<u8>> {
        if self.rank() == 0 {
            let to = |bytes: &[u8]| self.others().map(|r| (r, bytes.to_vec())).collect();
            self.transfer(to(&own.len().to_le_bytes()), &[])?;
            self.transfer(to(&own), &[])?;
            return Ok(own);
        }
        let one = |mut received: Vec<Vec<u8>>| received.pop().unwrap_or_default();
        let length = number(&one(self.transfer(vec![], &[(0, 8)])?)) as usize;
        Ok(one(self.transfer(vec![], &[(0, length)])?))
    }
}

/// Returns a number of 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).enumerate().map(|(k, b)| u64::from(*b) << (8 * k)).sum()
}

/// Returns the error of a rank that ends because of another one. It is not shown beside that one's error.
pub fn failed() -> Error {
    Error::Run("another rank of this run has failed".into())
}

/// Returns whether this is the error that [`failed`] returns.
pub fn is_failed(e: &Error) -> bool {
    matches!(e, Error::Run(text) if *text == "another rank of this run has failed")
}
