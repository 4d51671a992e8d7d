//! The launches that a replica records instead of doing them.

use super::kernels::BatchedKernel;
use galamost_plugin_api::abi::{Extent, Opaque};
use std::sync::Arc;

/// A launch of a replica.
pub struct Launch {
    pub kernel: Arc<BatchedKernel>,
    pub grid: Extent,
    pub block: Extent,
    pub shared: u32,
    /// For a cooperative launch: the number of blocks that can be resident at once.
    pub resident: Option<u32>,
    /// The call in the form that the batched kernel reads.
    pub call: Vec<u8>,
}

impl Launch {
    /// Copies the arguments of a launch.
    ///
    /// # Safety
    /// `arguments` has the address of a value of the declared type for each parameter of the kernel.
    pub unsafe fn new(
        kernel: Arc<BatchedKernel>,
        replica: u32,
        (grid, block, shared): (Extent, Extent, u32),
        resident: Option<u32>,
        arguments: &[*mut Opaque],
    ) -> Self {
        let mut call = vec![0; kernel.call_size];
        call[..4].copy_from_slice(&replica.to_ne_bytes());
        for ((offset, size), argument) in kernel.arguments.iter().zip(arguments) {
            // SAFETY: the argument has the type of the parameter, whose size the compiler reported
            let bytes = unsafe { std::slice::from_raw_parts(argument.cast::<u8>(), *size) };
            call[*offset..offset + size].copy_from_slice(bytes);
        }
        Self { kernel, grid, block, shared, resident, call }
    }

    /// Returns whether two replicas can do their launches in one.
    pub fn joins(&self, other: &Self) -> bool {
        let of = |l: &Self| (l.kernel.kernel, l.grid, l.block, l.shared, l.resident);
        of(self) == of(other)
    }
}

/// An operation of a replica.
pub enum Operation {
    Launch(Launch),
    /// Operations that are done if the globals at this address request a rebuild.
    IfRebuild {
        globals: u64,
        body: Vec<Operation>,
    },
    /// Operations that are repeated while a word is not 0 and the globals are not halted.
    WhileNonzero {
        word: u64,
        globals: u64,
        body: Vec<Operation>,
    },
}

/// The operations of a graph of a replica.
pub type Program = Vec<Operation>;

/// Returns whether two programs have the same operations, except for the arguments and sizes of their launches.
pub fn alike(a: &[Operation], b: &[Operation]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|pair| match pair {
            (Operation::Launch(_), Operation::Launch(_)) => true,
            (Operation::IfRebuild { body: a, .. }, Operation::IfRebuild { body: b, .. })
            | (Operation::WhileNonzero { body: a, .. }, Operation::WhileNonzero { body: b, .. }) => alike(a, b),
            _ => false,
        })
}

/// Returns the largest number of conditions around an operation.
pub fn depth(program: &[Operation]) -> usize {
    let of = |o: &Operation| match o {
        Operation::Launch(_) => 0,
        Operation::IfRebuild { body, .. } | Operation::WhileNonzero { body, .. } => 1 + depth(body),
    };
    program.iter().map(of).max().unwrap_or(0)
}
