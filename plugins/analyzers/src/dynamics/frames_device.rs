//! Samples in device memory; `correlate.cuh` has the kernels.

use crate::dynamics::follow::Follow;
use crate::dynamics::frames::Measure;
use crate::dynamics::items::Items;
use crate::dynamics::lags::{MAX_PAIRS, Pair};
use galamost_measure::HEADER;
use galamost_measure::tree::{BLOCK, ITEMS, PER_THREAD};
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::{DevicePtr, constants};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::views::StateView;

/// Pairs per thread block: the current sample is read once for all of them.
const PAIRS_PER_BLOCK: usize = 8;

/// The items of a thread in a sample, as `measure` takes them.
const SAMPLE: &str = "
struct Sample {
    double x[ITEMS_PER_THREAD][3];
    bool some[ITEMS_PER_THREAD];
};
";

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct TakeArgs {
    state: StateView,
    #[device(cxx = "const u32*")]
    items: DevicePtr<u8>,
    /// Members of molecules; null for particles.
    #[device(cxx = "const u32*")]
    first: DevicePtr<u8>,
    #[device(cxx = "const u32*")]
    members: DevicePtr<u8>,
    #[device(cxx = "double*")]
    frame: DevicePtr<u8>,
    /// Subtracted, if not null.
    #[device(cxx = "const double*")]
    drift: DevicePtr<u8>,
    /// Unwrapping corrections by tag, added to positions if not null.
    #[device(cxx = "double*")]
    carry: DevicePtr<u8>,
    /// Images at the last sample, if `take_frame` also does the unwrapping; `change` is the decrease of the box since then.
    #[device(cxx = "int*")]
    image: DevicePtr<u8>,
    #[device(cxx = "double*")]
    partial: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    counter: DevicePtr<u8>,
    change: [f64; 3],
    n_items: u32,
    velocities: u32,
}

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct CompareArgs {
    #[device(cxx = "const double*")]
    frames: DevicePtr<u8>,
    #[device(cxx = "const u32*")]
    items: DevicePtr<u8>,
    /// First block of each species, then the number of blocks.
    #[device(cxx = "const u32*")]
    first: DevicePtr<u8>,
    #[device(cxx = "double*")]
    partial: DevicePtr<u8>,
    #[device(cxx = "double*")]
    sums: DevicePtr<u8>,
    n_items: u32,
    blocks: u32,
    species: u32,
    now: u32,
    n_pairs: u32,
    reserved: u32,
    slot: [u32; MAX_PAIRS],
    lag: [u32; MAX_PAIRS],
}

#[derive(Default)]
struct Room {
    items: DevicePtr<u8>,
    first: DevicePtr<u8>,
    molecule_first: DevicePtr<u8>,
    members: DevicePtr<u8>,
    frames: DevicePtr<u8>,
    partial: DevicePtr<u8>,
    counter: DevicePtr<u8>,
    drift: DevicePtr<u8>,
    /// Corrections that unwrap positions in a changing box, or null.
    carry: DevicePtr<u8>,
    image: DevicePtr<u8>,
    sums: DevicePtr<u8>,
    species: usize,
    n: usize,
}

/// Kernels and device memory.
pub struct FramesDevice {
    host: Host,
    drift: Kernel,
    follow: Kernel,
    take: Kernel,
    compare: Kernel,
    add: Kernel,
    values: usize,
    room: Room,
}

fn uploaded(host: &Host, values: &[u32]) -> Result<DevicePtr<u8>> {
    let memory = host.allocate_bytes((4 * values.len()).max(4))?;
    host.upload_bytes(memory, &values.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<_>>())?;
    Ok(memory)
}

impl FramesDevice {
    /// Compiles the kernels.
    pub fn new<M: Measure>(host: Host, values: usize) -> Result<Self> {
        let shared = constants(&[
            ("MAX_PAIRS", MAX_PAIRS as u32),
            ("PAIRS_PER_BLOCK", PAIRS_PER_BLOCK as u32),
            ("ITEMS_PER_THREAD", PER_THREAD as u32),
        ]);
        let settings = M::Settings::text();
        let text = format!(
            "{HEADER}\n{shared}typedef {} Settings;\n#define VALUES {values}u\n{SAMPLE}{}\n{}",
            settings.name,
            M::text(),
            include_str!("correlate.cuh")
        );
        let source = kernel_source(&[TakeArgs::text(), CompareArgs::text(), settings], &text)?;
        let module = host.compile("correlate", &source)?;
        Ok(Self {
            drift: host.kernel(module, "take_drift")?,
            follow: host.kernel(module, "follow")?,
            take: host.kernel(module, "take_frame")?,
            compare: host.kernel(module, "compare_frames")?,
            add: host.kernel(module, "add_sums")?,
            values,
            room: Room::default(),
            host,
        })
    }

    /// Allocates `slots` samples of these items and `sums` sums. `follow`: also the arrays that unwrap positions in a
    /// changing box.
    pub fn make_room(&mut self, items: &Items, slots: usize, n: usize, sums: usize, follow: bool) -> Result<()> {
        let host = &self.host;
        let blocks = items.entries.len() / ITEMS;
        let partial = (slots.min(MAX_PAIRS) * blocks * self.values).max(4 * n.div_ceil(ITEMS));
        let m = &items.molecules;
        let null = DevicePtr::null();
        self.room = Room {
            items: uploaded(host, &items.entries)?,
            first: uploaded(host, &items.first)?,
            molecule_first: if m.is_empty() { null } else { uploaded(host, &m.first)? },
            members: if m.is_empty() { null } else { uploaded(host, &m.members)? },
            frames: host.allocate_bytes(24 * items.entries.len() * slots)?,
            partial: host.allocate_bytes(8 * partial)?,
            counter: host.allocate_bytes(4)?,
            drift: host.allocate_bytes(24)?,
            carry: if follow { host.allocate_bytes(24 * n)? } else { null },
            image: if follow { host.allocate_bytes(12 * n)? } else { null },
            sums: host.allocate_bytes(8 * sums)?,
            species: items.count.len(),
            n,
        };
        Ok(())
    }

    /// Uploads the unwrapping corrections of a checkpoint.
    pub fn upload_follow(&self, follow: &Follow) -> Result<()> {
        self.upload(self.room.carry, &follow.carry)?;
        let bytes: Vec<u8> = follow.image.iter().flat_map(|x| x.to_ne_bytes()).collect();
        self.host.upload_bytes(self.room.image, &bytes)
    }

    /// Downloads the unwrapping corrections of `n` particles for a checkpoint.
    pub fn download_follow(&self, length: [f64; 3], n: usize) -> Result<Follow> {
        let carry = self.download(self.room.carry, 3 * n)?;
        let mut bytes = vec![0; 12 * n];
        self.host.download_bytes(self.room.image, &mut bytes)?;
        let image = bytes.as_chunks::<4>().0.iter().map(|b| i32::from_ne_bytes(*b)).collect();
        Ok(Follow { length, carry, image })
    }

    fn frame(&self, slot: u32, entries: usize) -> DevicePtr<u8> {
        self.room.frames.offset(24 * entries * slot as usize)
    }

    /// Takes a sample and compares it with `pairs`. `change`: decrease of the box lengths since the last sample, if
    /// positions are unwrapped in a changing box.
    ///
    /// # Safety
    /// The view describes valid arrays of the device, and `S` has the layout of `Settings`.
    pub unsafe fn sample<S: Copy>(
        &self,
        s: &StateView,
        items: &Items,
        slot: u32,
        pairs: &[Pair],
        velocities: bool,
        drift: bool,
        change: Option<[f64; 3]>,
        settings: &S,
    ) -> Result<()> {
        let (host, room, n) = (&self.host, &self.room, items.entries.len());
        // if every particle is an item and nothing needs its position before, `take_frame` also does the unwrapping
        let apart = drift || !items.molecules.is_empty() || items.count.iter().sum::<u64>() != room.n as u64;
        let mut take = TakeArgs {
            state: *s,
            items: room.items,
            first: room.molecule_first,
            members: room.members,
            frame: self.frame(slot, n),
            drift: if drift { room.drift } else { DevicePtr::null() },
            carry: room.carry,
            image: if change.is_some() { room.image } else { DevicePtr::null() },
            partial: room.partial,
            counter: room.counter,
            change: change.unwrap_or_default(),
            n_items: n as u32,
            velocities: u32::from(velocities),
        };
        let block = BLOCK as u32;
        if change.is_some() && apart {
            let mut arguments: [*mut Opaque; 1] = arguments![take];
            // SAFETY: the kernel takes one `TakeArgs`
            unsafe { host.launch(self.follow, room.n.div_ceil(BLOCK) as u32, block, &mut arguments)? };
            take.image = DevicePtr::null();
        }
        if drift {
            let mut arguments: [*mut Opaque; 2] = arguments![take, room.drift];
            // SAFETY: the kernel takes a `TakeArgs` and a pointer
            unsafe { host.launch(self.drift, room.n.div_ceil(ITEMS) as u32, block, &mut arguments)? };
        }
        let mut arguments: [*mut Opaque; 1] = arguments![take];
        // SAFETY: the kernel takes one `TakeArgs`
        unsafe { host.launch(self.take, n.div_ceil(BLOCK) as u32, block, &mut arguments)? };
        for some in pairs.chunks(MAX_PAIRS) {
            let [slots, lags] = Pair::arrays(some);
            let args = CompareArgs {
                frames: room.frames,
                items: room.items,
                first: room.first,
                partial: room.partial,
                sums: room.sums,
                n_items: n as u32,
                blocks: (n / ITEMS) as u32,
                species: room.species as u32,
                now: slot,
                n_pairs: some.len() as u32,
                reserved: 0,
                slot: slots,
                lag: lags,
            };
            let mut arguments: [*mut Opaque; 2] = arguments![args, *settings];
            // SAFETY: both kernels take a `CompareArgs`, and the first also the settings
            unsafe {
                host.launch(
                    self.compare,
                    (some.len().div_ceil(PAIRS_PER_BLOCK) * n / ITEMS) as u32,
                    block,
                    &mut arguments,
                )?;
                host.launch(self.add, (some.len() * room.species) as u32, block, &mut arguments[..1])?;
            }
        }
        Ok(())
    }

    /// Downloads the sums.
    pub fn download_sums(&self, sums: &mut [f64]) -> Result<()> {
        let bytes = self.download(self.room.sums, sums.len())?;
        sums.copy_from_slice(&bytes);
        Ok(())
    }

    fn download(&self, from: DevicePtr<u8>, n: usize) -> Result<Vec<f64>> {
        let mut bytes = vec![0; 8 * n];
        self.host.download_bytes(from, &mut bytes)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect())
    }

    /// Uploads the sums of a checkpoint.
    pub fn upload_sums(&self, sums: &[f64]) -> Result<()> {
        self.upload(self.room.sums, sums)
    }

    fn upload(&self, to: DevicePtr<u8>, numbers: &[f64]) -> Result<()> {
        self.host.upload_bytes(to, &numbers.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<_>>())
    }

    /// Downloads a sample of `numbers` numbers.
    pub fn download_frame(&self, slot: u32, numbers: usize) -> Result<Vec<f64>> {
        self.download(self.frame(slot, numbers / 3), numbers)
    }

    /// Uploads a sample of a checkpoint.
    pub fn upload_frame(&self, slot: u32, frame: &[f64]) -> Result<()> {
        self.upload(self.frame(slot, frame.len() / 3), frame)
    }
}
