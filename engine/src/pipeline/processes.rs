//! The processes of a run.

/// The processes that share a run, each on one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processes {
    /// Their number.
    pub count: u32,
    /// Number of this one.
    pub rank: u32,
    /// Processes of this host that precede this one.
    pub local: u32,
}

impl Default for Processes {
    fn default() -> Self {
        Self { count: 1, rank: 0, local: 0 }
    }
}
