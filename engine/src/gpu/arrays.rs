//! Device memory with automatic deallocation.

use super::ranks::Rank;
use super::rebuild::SortedArray;
use crate::device::{Device, Kernel};
use crate::plugins::host::HostServices;
use crate::state::Facts;
use crate::state::arrays::{ArrayId, ParticleArray, Sort};
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::device::bytes_of;
use galamost_plugin_api::error::{Error, Result};
use std::sync::Arc;

/// A piece of device memory; freed when dropped.
pub struct Buffer {
    device: Arc<dyn Device>,
    address: u64,
    bytes: usize,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Err(e) = self.device.free(self.address) {
            tracing::warn!("cannot free device memory: {e}");
        }
    }
}

impl Buffer {
    /// Allocates memory that is set to 0.
    pub fn new(device: &Arc<dyn Device>, bytes: usize) -> Result<Self> {
        let address = device.allocate(bytes.max(1))?;
        Ok(Self { device: device.clone(), address, bytes })
    }

    /// Allocates memory with this many bytes for each of `n` particles, distributed if the arrays of the rank are. All ranks call it.
    pub fn of_particles(device: &Arc<dyn Device>, rank: Option<&Rank>, bytes: usize, n: usize) -> Result<Self> {
        match rank.filter(|r| r.distributes()) {
            Some(rank) => rank.distribute_particles(bytes),
            None => Self::new(device, bytes * n),
        }
    }

    /// Allocates memory of the host that kernels access, set to 0.
    pub fn mapped(device: &Arc<dyn Device>, bytes: usize) -> Result<Self> {
        Ok(Self { device: device.clone(), address: device.allocate_mapped(bytes)?, bytes })
    }

    /// Attaches a distributed array of `bytes` bytes to its device number `rank`.
    pub fn attach(device: &Arc<dyn Device>, address: u64, bytes: usize, rank: usize) -> Result<Self> {
        device.attach_distributed(address, rank)?;
        Ok(Self { device: device.clone(), address, bytes })
    }

    /// Allocates memory with these words.
    pub fn of_words(device: &Arc<dyn Device>, words: &[u32]) -> Result<Self> {
        let b = Self::new(device, 4 * words.len())?;
        b.upload_words(words)?;
        Ok(b)
    }

    /// Allocates memory with these bytes.
    pub fn of_bytes(device: &Arc<dyn Device>, bytes: &[u8]) -> Result<Self> {
        let b = Self::new(device, bytes.len())?;
        device.upload(b.address, bytes)?;
        Ok(b)
    }

    /// Returns the address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies bytes to the start of the memory.
    pub fn upload(&self, bytes: &[u8]) -> Result<()> {
        self.check(bytes.len())?;
        self.device.upload(self.address, bytes)
    }

    /// Returns an error if there is no room for `bytes` bytes.
    fn check(&self, bytes: usize) -> Result<()> {
        if bytes > self.bytes {
            let room = self.bytes;
            return Err(Error::Run(format!("cannot copy {bytes} bytes into {room} bytes of device memory")));
        }
        Ok(())
    }

    /// Copies bytes to the memory from offset `from` on.
    pub fn upload_part(&self, from: usize, bytes: &[u8]) -> Result<()> {
        self.check(from + bytes.len())?;
        self.device.upload(self.address + from as u64, bytes)
    }

    /// Copies words to the start of the memory.
    pub fn upload_words(&self, words: &[u32]) -> Result<()> {
        self.upload(bytes_of(words))
    }

    /// Copies words to the start of the memory, without waiting for earlier launches.
    pub fn queue_words(&self, words: &[u32]) -> Result<()> {
        let bytes = bytes_of(words);
        self.check(bytes.len())?;
        self.device.upload_queued(self.address, bytes)
    }

    /// Copies bytes from offset `from` on until `to` is full.
    pub fn download_part(&self, from: usize, to: &mut [u8]) -> Result<()> {
        if from + to.len() > self.bytes {
            return Err(Error::Run(format!(
                "cannot read up to byte {} of {} bytes of device memory",
                from + to.len(),
                self.bytes
            )));
        }
        self.device.download(self.address + from as u64, to)
    }

    /// Copies the whole memory to the host.
    pub fn download(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.bytes];
        self.device.download(self.address, &mut bytes)?;
        Ok(bytes)
    }

    /// Sets the memory to 0, in stream order.
    pub fn clear(&self) -> Result<()> {
        self.device.clear(self.address, self.bytes)
    }
}

/// Converts bytes to words.
pub fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|b| u32::from_ne_bytes(*b)).collect()
}

/// Launches a kernel of the engine with its one argument, with at least `threads` threads in blocks of `block`.
pub(super) fn launch<A>(device: &dyn Device, kernel: Kernel, threads: usize, block: u32, args: &A) -> Result<()> {
    let grid = (threads.max(1)).div_ceil(block as usize) as u32;
    let pointers = [std::ptr::from_ref(args).cast_mut().cast::<Opaque>()];
    // SAFETY: each kernel of the engine takes one struct, whose layout is compared with that of CUDA when it is compiled;
    // the callers in this folder pass that struct, with views of arrays of this device
    unsafe { device.launch(kernel, Extent::from(grid), Extent::from(block), 0, &pointers) }
}

/// The table of particle arrays, with the memory of those that the precision stores.
pub type ParticleArrays = Vec<(ParticleArray, Option<Buffer>)>;

/// Allocates the particle arrays and announces the optional ones to components. Returns them, and those that the sort moves. All ranks
/// call it.
///
/// # Errors
/// Returns the driver's error.
pub fn allocate_particles(
    device: &Arc<dyn Device>,
    rank: Option<&Rank>,
    facts: &Facts,
    host: &HostServices,
) -> Result<(ParticleArrays, Vec<SortedArray>)> {
    let (mut arrays, mut sorted) = (vec![], vec![]);
    for array in facts.particle_arrays() {
        if !array.stored(facts.precision) {
            arrays.push((array, None));
            continue;
        }
        let stride = array.element.stride(facts.precision);
        let buffer = Buffer::of_particles(device, rank, stride, facts.n)?;
        let unused = array.name == ArrayId::Group.name() && facts.groups.is_empty();
        if array.sort == Sort::Follows && !unused {
            sorted.push((buffer.address(), stride as u32 / 4));
        }
        if let Some(name) = array.component_name() {
            host.set_array(name, buffer.address());
        }
        arrays.push((array, Some(buffer)));
    }
    Ok((arrays, sorted))
}
