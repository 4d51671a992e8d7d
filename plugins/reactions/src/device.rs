//! Search for candidates on CUDA. The device writes candidates with their particles into memory of the host, which selects reactions
//! (`resolve.rs`) and lets the device change particles: a few kilobytes, independent of system size.

use crate::energy::{Part, Rule};
use crate::law::{Candidate, Kind, Local, Row};
use crate::ranks::Found;
use crate::resolve::{Outcome, ParticleMap, ParticleSource};
use crate::table::Table;
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::{DevicePtr, bytes_of};
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::updater::phase;
use galamost_plugin_api::views::{LinkView, ListView, StateView};

const BLOCK: u32 = 128;
/// Threads that search for a particle; `TEAM` of the kernels.
const TEAM: u32 = 4;
/// Words of a candidate before its particles.
const HEAD: usize = 6;
/// Words of a particle before its bonds. Word [`BONDS`] is their number, or [`NOT_OWN`] for a particle of another rank.
const LOCAL: usize = 12;
const BONDS: usize = 9;
const NOT_OWN: u32 = u32::MAX;
/// Largest size in bytes of memory for candidates with bonded partners of their particles.
const MANY_BYTES: usize = 1 << 24;

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
    #[device(cxx = "const Rule*")]
    rules: DevicePtr<u8>,
    #[device(cxx = "const u32*")]
    limits: DevicePtr<u8>,
    #[device(cxx = "int*")]
    init: DevicePtr<u8>,
    #[device(cxx = "int*")]
    cris: DevicePtr<u8>,
    /// Numbers of candidates of this search and of the next one, at word `counter` and at the other word.
    #[device(cxx = "u32*")]
    counts: DevicePtr<u8>,
    /// Candidates, in memory of the host: number of the search, reaction, two tags, number of particles, 0, and the particles.
    #[device(cxx = "u32*")]
    out: DevicePtr<u8>,
    /// For react_lookup: tags, and output for their particles.
    #[device(cxx = "const u32*")]
    tags: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    found: DevicePtr<u8>,
    r_cut: f64,
    n_rows: u32,
    partners: u32,
    /// Maximum number of candidates.
    room: u32,
    /// Words of a particle, and of a candidate.
    stride: u32,
    record: u32,
    /// How many bonds away from a candidate particles are written.
    depth: u32,
    n_tags: u32,
    counter: u32,
    /// Number of the search, from 1 on.
    stamp: u32,
    /// 1 if this rank knows all particles.
    alone: u32,
}

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct ApplyArgs {
    state: StateView,
    #[device(cxx = "int*")]
    init: DevicePtr<u8>,
    #[device(cxx = "int*")]
    cris: DevicePtr<u8>,
    #[device(cxx = "const Change*")]
    changes: DevicePtr<u8>,
    n_changes: u32,
    reserved: u32,
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
    kernel_source(
        &[Kind::text(), Row::text(), Part::text(), Rule::text(), Change::text(), ReactArgs::text(), ApplyArgs::text()],
        SOURCE,
    )
}

/// Memory that grows on demand.
struct GrowingBuffer {
    at: DevicePtr<u8>,
    bytes: usize,
    allocate: fn(&Host, usize) -> Result<DevicePtr<u8>>,
}

impl GrowingBuffer {
    /// Memory of the device.
    fn of_device() -> Self {
        Self { at: DevicePtr::null(), bytes: 0, allocate: Host::allocate_bytes }
    }

    /// Memory of the host that kernels access.
    fn mapped() -> Self {
        Self { allocate: Host::allocate_mapped_bytes, ..Self::of_device() }
    }

    fn fit(&mut self, host: &Host, bytes: usize) -> Result<DevicePtr<u8>> {
        if bytes > self.bytes {
            let before = std::mem::take(&mut self.at);
            self.bytes = 0;
            if !before.is_null() {
                host.free(before)?;
            }
            let bytes = bytes.next_power_of_two();
            self.at = (self.allocate)(host, bytes)?;
            self.bytes = bytes;
        }
        Ok(self.at)
    }
}

/// How candidates are written: see [`ReactArgs`].
#[derive(Clone, Copy, Default)]
struct Format {
    stride: usize,
    record: usize,
    depth: usize,
}

impl Format {
    fn new(call: &UpdateCall, depth: usize) -> Self {
        let most = call.bonds.capacity as usize;
        // an even number, so that coordinates are aligned
        let stride = LOCAL + 2 * most;
        let particles = 2 * [1, 1 + most, 1 + most + most * most][depth.min(2)];
        Self { stride, record: HEAD + particles * stride, depth }
    }
}

/// Kernels and memory.
pub struct DeviceSearch {
    find: Kernel,
    lookup: Kernel,
    apply: Kernel,
    rows: DevicePtr<u8>,
    rules: DevicePtr<u8>,
    limits: DevicePtr<u8>,
    /// Two numbers of candidates: one search uses one of them and sets the other to 0 for the next search.
    counts: DevicePtr<u8>,
    out: GrowingBuffer,
    tags: GrowingBuffer,
    found: GrowingBuffer,
    changes: GrowingBuffer,
    /// Capacity for candidates.
    room: usize,
    /// Format of the last search.
    format: Format,
    /// Number of searches.
    stamp: u32,
}

fn bytes_of_words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_ne_bytes()).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|b| u32::from_ne_bytes(*b)).collect()
}

/// Parses a particle written by `describe`: its tag, and the particle.
fn local(w: &[u32]) -> (u32, Local) {
    let number = |k: usize| f64::from_bits(u64::from(w[2 * k + 1]) << 32 | u64::from(w[2 * k]));
    let bonds = w[LOCAL..].as_chunks::<2>().0.iter().take(w[BONDS] as usize).map(|b| (b[0], b[1]));
    let local = Local {
        position: [number(0), number(1), number(2)],
        particle_type: w[6],
        init: w[7] as i32,
        cris: w[8] as i32,
        charge: None,
        bonds: bonds.collect(),
    };
    (w[10], local)
}

/// Returns whether there is one rank. One of several does not know all partners of its neighbors.
fn is_alone(state: &StateView) -> bool {
    (state.own_begin, state.own_end) == (0, state.n_local)
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
            lookup: host.kernel(module, "react_lookup")?,
            apply: host.kernel(module, "react_apply")?,
            rows: filled(bytes_of(&table.rows))?,
            rules: filled(bytes_of(&table.effects.iter().map(|e| e.acceptance.rule()).collect::<Vec<_>>()))?,
            limits: filled(&bytes_of_words(&table.limits))?,
            counts: host.allocate_bytes(8)?,
            out: GrowingBuffer::mapped(),
            tags: GrowingBuffer::of_device(),
            found: GrowingBuffer::of_device(),
            changes: GrowingBuffer::mapped(),
            room: 256,
            format: Format::default(),
            stamp: 0,
        })
    }

    fn args(&self, host: &Host, table: &Table, call: &UpdateCall) -> ReactArgs {
        ReactArgs {
            state: call.state,
            list: call.list,
            bonds: call.bonds,
            key: call.key,
            step: call.step,
            rows: self.rows,
            rules: self.rules,
            limits: self.limits,
            init: host.array("h_init"),
            cris: host.array("h_cris"),
            counts: self.counts,
            out: self.out.at,
            tags: self.tags.at,
            found: self.found.at,
            r_cut: table.r_cut,
            n_rows: table.rows.len() as u32,
            partners: table.partners as u32,
            room: self.room as u32,
            stride: self.format.stride as u32,
            record: self.format.record as u32,
            depth: self.format.depth as u32,
            n_tags: 0,
            counter: self.stamp & 1,
            stamp: self.stamp,
            alone: u32::from(is_alone(&call.state)),
        }
    }

    /// Launches the search for candidates among the own particles of this rank.
    ///
    /// # Safety
    /// The views describe arrays of the device that are valid when the search runs.
    pub unsafe fn search(&mut self, host: &Host, table: &Table, call: &UpdateCall) -> Result<()> {
        let state = &call.state;
        let mut format = Format::new(call, if is_alone(state) { table.depth() } else { 0 });
        if 4 * self.room * format.record > MANY_BYTES {
            format = Format::new(call, 0);
        }
        let (before, bytes) = (self.out.bytes, 4 * self.room * format.record);
        let out = self.out.fit(host, bytes)?;
        if self.out.bytes != before || format.record != self.format.record {
            // words of candidates with another length, and those of new memory, must not be taken for numbers of a search
            // SAFETY: the memory is in reach of the host and has room for these bytes; the search before has ended: its result was read, or
            // the engine waited for the device after it
            unsafe { std::ptr::write_bytes(out.host(), 0, self.out.bytes) };
        }
        self.format = format;
        self.stamp = self.stamp.wrapping_add(1);
        let args = self.args(host, table, call);
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: the kernel takes one `ReactArgs`; there is room for `room` candidates, and no particle has more bonds than the format
        // has room for
        unsafe { host.launch(self.find, state.own_blocks(BLOCK / TEAM), BLOCK, &mut arguments) }
    }

    /// Returns the number of candidates of the last search, after it has ended.
    fn count(&self, host: &Host) -> Result<usize> {
        let mut bytes = [0; 8];
        host.download_bytes(self.counts, &mut bytes)?;
        Ok(words(&bytes)[(self.stamp & 1) as usize] as usize)
    }

    /// Returns the candidates of the own particles of this rank, and the particles involved.
    ///
    /// # Safety
    /// The views describe valid arrays of the device.
    pub unsafe fn candidates(&mut self, host: &Host, table: &Table, call: &UpdateCall) -> Result<Found> {
        if call.phase != phase::DECIDE {
            // SAFETY: the contract is that of this function
            unsafe { self.search(host, table, call)? };
            self.count(host)?;
        }
        loop {
            let found = self.read();
            if found.candidates.len() < self.room {
                return Ok(found);
            }
            let n = self.count(host)?;
            if n <= self.room {
                return Ok(found);
            }
            self.room = n.next_power_of_two();
            // SAFETY: the contract is that of this function
            unsafe { self.search(host, table, call)? };
            self.count(host)?;
        }
    }

    /// Reads what the last search, which has ended, has written.
    fn read(&self) -> Found {
        let Format { stride, record, .. } = self.format;
        // SAFETY: the memory is in reach of the host and has room for these words (`search`); no kernel writes to it now
        let words = unsafe { std::slice::from_raw_parts(self.out.at.cast::<u32>().host(), self.room * record) };
        let mut found = Found::default();
        for w in words.chunks_exact(record).take_while(|w| w[0] == self.stamp) {
            found.candidates.push(Candidate { reaction: w[1], first: w[2], second: w[3] });
            found.particles.extend(w[HEAD..].chunks_exact(stride).take(w[4] as usize).map(local));
        }
        found
    }

    /// Launches the changes of particles.
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
        let n = outcome.changed.len();
        let changes = self.changes.fit(host, n * size_of::<Change>())?;
        for (k, tag) in outcome.changed.iter().enumerate() {
            // SAFETY: the memory is in reach of the host and has room for `n` changes; the kernel that reads those of an earlier call has
            // ended, because it was launched before the search of this call
            unsafe { changes.cast::<Change>().host().add(k).write(change(tag)) };
        }
        let args = ApplyArgs {
            state: call.state,
            init: host.array("h_init"),
            cris: host.array("h_cris"),
            changes,
            n_changes: n as u32,
            reserved: 0,
        };
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: the kernel takes one `ApplyArgs`
        unsafe { host.launch(self.apply, (n as u32).div_ceil(BLOCK), BLOCK, &mut arguments) }
    }
}

/// Looks up particles during a call.
pub struct Lookup<'a> {
    pub device: &'a mut DeviceSearch,
    pub host: &'a Host,
    pub table: &'a Table,
    pub call: &'a UpdateCall,
}

impl ParticleSource for Lookup<'_> {
    fn fetch(&mut self, tags: &[u32]) -> Result<Vec<Local>> {
        let stride = self.device.format.stride;
        let bytes = bytes_of_words(tags);
        let at = self.device.tags.fit(self.host, bytes.len())?;
        self.host.upload_bytes(at, &bytes)?;
        let found = self.device.found.fit(self.host, 4 * stride * tags.len())?;
        let mut args = self.device.args(self.host, self.table, self.call);
        args.n_tags = tags.len() as u32;
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: the kernel takes one `ReactArgs`, and its arrays hold these tags
        unsafe { self.host.launch(self.device.lookup, (tags.len() as u32).div_ceil(BLOCK), BLOCK, &mut arguments)? };
        let mut bytes = vec![0; 4 * stride * tags.len()];
        self.host.download_bytes(found, &mut bytes)?;
        let words = words(&bytes);
        let own = tags.iter().zip(words.chunks_exact(stride)).filter(|(_, w)| w[BONDS] != NOT_OWN);
        let own = Found { candidates: vec![], particles: own.map(|(_, w)| local(w)).collect() };
        let mut all = own.gather(self.host, &self.call.state)?.particles;
        let missing = |tag| Error::Run(format!("no rank has particle {tag}"));
        tags.iter().map(|tag| all.remove(tag).ok_or_else(|| missing(tag))).collect()
    }
}
