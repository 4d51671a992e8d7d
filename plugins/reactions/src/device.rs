//! Search for candidates on CUDA. The device sends candidates with their particles to the host, which selects reactions
//! (`resolve.rs`) and sends back the changes: a few kilobytes, independent of system size.

use crate::law::{Candidate, Kind, Local, Row};
use crate::ranks::Found;
use crate::resolve::{CallContext, Outcome, ParticleMap, ParticleSource};
use crate::table::Table;
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::{DevicePtr, bytes_of};
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::updater::EditQueue;
use galamost_plugin_api::views::{LinkView, ListView, StateView};

const BLOCK: u32 = 128;
/// Smallest number of candidates that are downloaded together with their number.
const FEW_CANDIDATES: usize = 8;
/// Words before the first candidate, and words of a candidate before its two particles.
const BUFFER_HEAD: usize = 16;
const CANDIDATE_HEAD: usize = 4;
/// Words of a particle before its bonds. The last one is their number, or [`NOT_OWN`] for a particle of another rank.
const LOCAL: usize = 10;
const BONDS: usize = LOCAL - 1;
const NOT_OWN: u32 = u32::MAX;

const SOURCE: &str = include_str!("reactions.cuh");

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct ReactArgs {
    state: StateView,
    list: ListView,
    bonds: LinkView,
    key: RandomKey,
    step: u64,
    #[device(cxx = "const Row*")]
    rows: DevicePtr<u8>,
    #[device(cxx = "const u32*")]
    limits: DevicePtr<u8>,
    #[device(cxx = "int*")]
    init: DevicePtr<u8>,
    #[device(cxx = "int*")]
    cris: DevicePtr<u8>,
    /// Number of candidates at word `counter`; from word 16 for each: reaction, two tags, 0, and its two particles.
    #[device(cxx = "u32*")]
    out: DevicePtr<u8>,
    /// For react_lookup: tags, and output for their particles.
    #[device(cxx = "const u32*")]
    tags: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    found: DevicePtr<u8>,
    r_cut: f64,
    /// `room`: maximum number of candidates; `stride`: words of a particle.
    n_rows: u32,
    partners: u32,
    room: u32,
    stride: u32,
    n_tags: u32,
    /// 0 or 1; the other counter is set to 0 for the next search.
    counter: u32,
}

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct ApplyArgs {
    state: StateView,
    edits: EditQueue,
    #[device(cxx = "int*")]
    init: DevicePtr<u8>,
    #[device(cxx = "int*")]
    cris: DevicePtr<u8>,
    #[device(cxx = "const Change*")]
    changes: DevicePtr<u8>,
    #[device(cxx = "const Edit*")]
    wanted: DevicePtr<u8>,
    n_changes: u32,
    n_edits: u32,
}

/// A change of a particle.
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct Change {
    tag: u32,
    kind: u32,
    init: i32,
    cris: i32,
    charge: f64,
    charged: u32,
    reserved: u32,
}

/// Returns the source of the kernels.
fn source() -> Result<String> {
    kernel_source(&[Kind::text(), Row::text(), Change::text(), ReactArgs::text(), ApplyArgs::text()], SOURCE)
}

/// Device memory that grows on demand.
#[derive(Default)]
struct GrowingBuffer {
    at: DevicePtr<u8>,
    bytes: usize,
}

impl GrowingBuffer {
    fn fit(&mut self, host: &Host, bytes: usize) -> Result<DevicePtr<u8>> {
        if bytes > self.bytes {
            if !self.at.is_null() {
                host.free(self.at)?;
            }
            *self = Self { at: DevicePtr::null(), bytes: 0 };
            let bytes = bytes.next_power_of_two();
            *self = Self { at: host.allocate_bytes(bytes)?, bytes };
        }
        Ok(self.at)
    }
}

/// Kernels and device memory.
pub struct DeviceSearch {
    find: Kernel,
    describe: Kernel,
    lookup: Kernel,
    apply: Kernel,
    rows: DevicePtr<u8>,
    limits: DevicePtr<u8>,
    out: GrowingBuffer,
    tags: GrowingBuffer,
    found: GrowingBuffer,
    changes: GrowingBuffer,
    /// Capacity for candidates.
    room: usize,
    /// Candidates to download together with their number: twice those of the last call.
    expected: usize,
    /// Counter of the next search.
    counter: usize,
}

fn bytes_of_words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_ne_bytes()).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|b| u32::from_ne_bytes(*b)).collect()
}

/// Parses a particle written by `describe`.
fn local(w: &[u32]) -> Local {
    let number = |k: usize| f64::from_bits(u64::from(w[2 * k + 1]) << 32 | u64::from(w[2 * k]));
    let bonds = w[LOCAL..].as_chunks::<2>().0.iter().take(w[BONDS] as usize).map(|b| (b[0], b[1]));
    Local {
        position: [number(0), number(1), number(2)],
        particle_type: w[6],
        init: w[7] as i32,
        cris: w[8] as i32,
        charge: None,
        bonds: bonds.collect(),
    }
}

impl DeviceSearch {
    /// Compiles the kernels and uploads the table.
    pub fn new(host: &Host, table: &Table) -> Result<Self> {
        let module = host.compile("reactions", &source()?)?;
        let filled = |bytes: &[u8]| {
            let at = host.allocate_bytes(bytes.len())?;
            host.upload_bytes(at, bytes)?;
            Ok::<_, Error>(at)
        };
        Ok(Self {
            find: host.kernel(module, "react_find")?,
            describe: host.kernel(module, "react_describe")?,
            lookup: host.kernel(module, "react_lookup")?,
            apply: host.kernel(module, "react_apply")?,
            rows: filled(bytes_of(&table.rows))?,
            limits: filled(&bytes_of_words(&table.limits))?,
            out: GrowingBuffer::default(),
            tags: GrowingBuffer::default(),
            found: GrowingBuffer::default(),
            changes: GrowingBuffer::default(),
            room: 32 * FEW_CANDIDATES,
            expected: FEW_CANDIDATES,
            counter: 0,
        })
    }

    fn args(&self, host: &Host, table: &Table, call: &UpdateCall, now: CallContext) -> ReactArgs {
        ReactArgs {
            state: call.state,
            list: call.list,
            bonds: call.bonds,
            key: now.key,
            step: now.step,
            rows: self.rows,
            limits: self.limits,
            init: host.array("h_init"),
            cris: host.array("h_cris"),
            out: self.out.at,
            tags: self.tags.at,
            found: self.found.at,
            r_cut: table.r_cut,
            n_rows: table.rows.len() as u32,
            partners: table.partners as u32,
            room: self.room as u32,
            stride: stride(call) as u32,
            n_tags: 0,
            counter: self.counter as u32,
        }
    }

    /// Returns the candidates of the own particles of this rank, and the particles involved.
    ///
    /// # Safety
    /// The views describe valid arrays of the device.
    pub unsafe fn candidates(
        &mut self,
        host: &Host,
        table: &Table,
        call: &UpdateCall,
        now: CallContext,
    ) -> Result<Found> {
        let entry = CANDIDATE_HEAD + 2 * stride(call);
        loop {
            // new memory is 0, and so are both counters
            let out = self.out.fit(host, 4 * (BUFFER_HEAD + self.room * entry))?;
            let args = self.args(host, table, call, now);
            let mut arguments: [*mut Opaque; 1] = arguments![args];
            let few = self.expected.min(self.room);
            // SAFETY: both kernels take one `ReactArgs`
            unsafe {
                host.launch(self.find, call.state.own_blocks(BLOCK), BLOCK, &mut arguments)?;
                host.launch(self.describe, (2 * few as u32).div_ceil(BLOCK), BLOCK, &mut arguments)?;
            }
            let mut bytes = vec![0; 4 * (BUFFER_HEAD + few * entry)];
            host.download_bytes(out, &mut bytes)?;
            let n = words(&bytes[..8])[self.counter] as usize;
            self.counter = 1 - self.counter;
            self.expected = (2 * n).max(FEW_CANDIDATES);
            if n > self.room {
                self.room = n.next_power_of_two();
                continue;
            }
            if n > few {
                let first = bytes.len();
                bytes.resize(4 * (BUFFER_HEAD + n * entry), 0);
                host.download_bytes(out.offset(first), &mut bytes[first..])?;
            }
            let all = words(&bytes[4 * BUFFER_HEAD..]);
            let mut found = Found::default();
            for w in all.chunks_exact(entry).take(n) {
                found.candidates.push(Candidate { reaction: w[0], first: w[1], second: w[2] });
                let (a, b) = w[CANDIDATE_HEAD..].split_at(stride(call));
                found.particles.insert(w[1], local(a));
                found.particles.insert(w[2], local(b));
            }
            return Ok(found);
        }
    }

    /// Writes changes of particles and requests topology edits. If the edit queue is too small, writes only the number
    /// of edits; the engine then calls again.
    ///
    /// # Safety
    /// The views describe valid arrays of the device.
    pub unsafe fn apply(
        &mut self,
        host: &Host,
        call: &UpdateCall,
        outcome: &Outcome,
        world: &ParticleMap,
    ) -> Result<()> {
        if outcome.edits.len() > call.edits.capacity as usize {
            return host.upload_bytes(call.edits.count.cast(), &(outcome.edits.len() as u32).to_ne_bytes());
        }
        let change = |tag: &u32| {
            let local = &world[tag];
            Change {
                tag: *tag,
                kind: local.particle_type,
                init: local.init,
                cris: local.cris,
                charge: local.charge.unwrap_or(0.0),
                charged: u32::from(local.charge.is_some()),
                reserved: 0,
            }
        };
        let mut bytes = bytes_of(&outcome.changed.iter().map(change).collect::<Vec<_>>()).to_vec();
        let wanted = bytes.len();
        bytes.extend(bytes_of(&outcome.edits));
        let changes = self.changes.fit(host, bytes.len())?;
        host.upload_bytes(changes, &bytes)?;
        let args = ApplyArgs {
            state: call.state,
            edits: call.edits,
            init: host.array("h_init"),
            cris: host.array("h_cris"),
            changes,
            wanted: changes.offset(wanted),
            n_changes: outcome.changed.len() as u32,
            n_edits: outcome.edits.len() as u32,
        };
        let threads = outcome.changed.len().max(outcome.edits.len()) as u32;
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: the kernel takes one `ApplyArgs`
        unsafe { host.launch(self.apply, threads.div_ceil(BLOCK), BLOCK, &mut arguments) }
    }
}

/// Returns the words of a particle; an even number, so that coordinates are aligned.
fn stride(call: &UpdateCall) -> usize {
    LOCAL + 2 * call.bonds.capacity as usize
}

/// Looks up particles during a call.
pub struct Lookup<'a> {
    pub device: &'a mut DeviceSearch,
    pub host: &'a Host,
    pub table: &'a Table,
    pub call: &'a UpdateCall,
    pub now: CallContext,
}

impl ParticleSource for Lookup<'_> {
    fn fetch(&mut self, tags: &[u32]) -> Result<Vec<Local>> {
        let stride = stride(self.call);
        let bytes = bytes_of_words(tags);
        let at = self.device.tags.fit(self.host, bytes.len())?;
        self.host.upload_bytes(at, &bytes)?;
        let found = self.device.found.fit(self.host, 4 * stride * tags.len())?;
        let mut args = self.device.args(self.host, self.table, self.call, self.now);
        args.n_tags = tags.len() as u32;
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: the kernel takes one `ReactArgs`, and its arrays hold these tags
        unsafe { self.host.launch(self.device.lookup, (tags.len() as u32).div_ceil(BLOCK), BLOCK, &mut arguments)? };
        let mut bytes = vec![0; 4 * stride * tags.len()];
        self.host.download_bytes(found, &mut bytes)?;
        let words = words(&bytes);
        let own = tags.iter().zip(words.chunks_exact(stride)).filter(|(_, w)| w[BONDS] != NOT_OWN);
        let own = Found { candidates: vec![], particles: own.map(|(tag, w)| (*tag, local(w))).collect() };
        let mut all = own.gather(self.host, &self.call.state)?.particles;
        let missing = |tag| Error::Run(format!("no rank has particle {tag}"));
        tags.iter().map(|tag| all.remove(tag).ok_or_else(|| missing(tag))).collect()
    }
}
