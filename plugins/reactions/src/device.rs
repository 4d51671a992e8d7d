//! Search for candidates on CUDA. The device sends candidates with their particles to the host, which selects reactions
//! (`resolve.rs`) and sends back the changes: a few kilobytes, independent of system size.

use crate::law::{Candidate, Local, Row};
use crate::resolve::{Moment, Outcome, Source, World};
use crate::table::Table;
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::updater::EditQueue;
use galamost_plugin_api::views::{LinkView, ListView, StateView};

const BLOCK: u32 = 128;
/// Candidates that are downloaded together with their number.
const FIRST_CANDIDATES: usize = 128;
/// Words before the first candidate, and words of a candidate before its two particles.
const BUFFER_HEAD: usize = 16;
const CANDIDATE_HEAD: usize = 4;
/// Words of a particle before its bonds.
const LOCAL: usize = 10;

const SOURCE: &str = r#"
#include "galamost/list.cuh"
#include "galamost/topology.cuh"

static constexpr u32 GROW = 0u, JOIN = 1u, COMBINE = 2u, DISPROPORTIONATE = 3u, DIE = 4u, EXCHANGE = 5u, INSERT = 6u,
                     BREAK = 7u, UNZIP = 8u;

struct Row {
    u32 kind, of[2], broken;
    double p, factor;
    u32 by_groups, reserved;
};

struct ReactArgs {
    StateView state;
    ListView list;
    LinkView bonds;
    RandomKey key;
    u64 step;
    const Row* rows;
    const u32* limits;
    int* init;
    int* cris;
    // number of candidates; from word 16 for each: reaction, two tags, 0, and its two particles
    u32* out;
    // for react_lookup: tags, and output for their particles
    const u32* tags;
    u32* found;
    double r_cut;
    // `room`: maximum number of candidates; `stride`: words of a particle
    u32 n_rows, partners, room, stride, n_tags, reserved;
};

struct Change {
    u32 tag, kind;
    int init, cris;
    double charge;
    u32 charged, reserved;
};

struct ApplyArgs {
    StateView state;
    EditQueue edits;
    int* init;
    int* cris;
    const Change* changes;
    const Edit* wanted;
    u32 n_changes, n_edits;
};

// Products and sums with separate rounding, as on the CPU, so that both find the same pairs.
#ifdef __CUDACC__
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
#else
__device__ __forceinline__ double times(double a, double b) { return a * b; }
__device__ __forceinline__ double plus(double a, double b) { return a + b; }
#endif

// Squared minimum-image distance |r_i - r_j|^2 in f64.
__device__ __forceinline__ double apart2(const PosType& i, const PosType& j, const Globals* g) {
    const double* l = g->box_length;
#ifdef GALAMOST_DOUBLE
    const double d[3] = {i.x - j.x, i.y - j.y, i.z - j.z};
    double near[3];
    for (int k = 0; k < 3; ++k) near[k] = l[k] > 0.0 ? plus(d[k], -times(l[k], rint(times(d[k], 1.0 / l[k])))) : d[k];
#else
    const double near[3] = {times(double(int(u32(i.x) - u32(j.x))), l[0] / 4294967296.0),
                            times(double(int(u32(i.y) - u32(j.y))), l[1] / 4294967296.0),
                            times(double(int(u32(i.z) - u32(j.z))), l[2] / 4294967296.0)};
#endif
    return plus(plus(times(near[0], near[0]), times(near[1], near[1])), times(near[2], near[2]));
}

struct Who {
    u32 kind, limit;
    int init, cris;
    bool free;
};

__device__ __forceinline__ Who who(const ReactArgs& a, u32 i) {
    Who w;
    w.kind = a.state.pos_type[i].kind;
    w.init = a.init[i];
    w.cris = a.cris[i] > 0 ? a.cris[i] : 0;
    w.limit = a.limits[w.kind];
    w.free = u32(w.cris) < w.limit;
    return w;
}

__device__ __forceinline__ bool first_role(const Who& w, const Row& r) {
    if (w.kind != r.of[0]) return false;
    if (r.kind == JOIN || r.kind == EXCHANGE) return w.free;
    if (r.kind == INSERT || r.kind == BREAK) return true;
    return w.init == 1;
}

__device__ __forceinline__ bool second_role(const Who& w, const Row& r) {
    if (w.kind != r.of[1]) return false;
    if (r.kind == GROW || r.kind == INSERT) return w.init != 1 && w.free;
    if (r.kind == COMBINE || r.kind == DISPROPORTIONATE) return w.init == 1;
    if (r.kind == JOIN) return w.free;
    return true;
}

__device__ __forceinline__ bool symmetric(u32 kind) {
    return kind == JOIN || kind == COMBINE || kind == DISPROPORTIONATE || kind == BREAK;
}

// Reduces p by the previous reactions of a partner.
__device__ __forceinline__ double lowered(double p, const Row& r, const Who& w) {
    for (int k = 0; k < w.cris; ++k) p = times(p, r.factor);
    if (r.by_groups) {
        const u32 left = w.limit > u32(w.cris) ? w.limit - u32(w.cris) : 0u;
        p = times(p, double(left) / double(w.limit > 0u ? w.limit : 1u));
    }
    return p;
}

__device__ __forceinline__ u64 threshold(const Row& r, const Who& a, const Who& b) {
    double p = r.p;
    if (r.kind == JOIN || r.kind == EXCHANGE) p = lowered(p, r, a);
    if (r.kind == JOIN || r.kind == EXCHANGE || r.kind == GROW || r.kind == INSERT) p = lowered(p, r, b);
    return u64(times(p, 4294967296.0));
}

__device__ __forceinline__ Words draw(const ReactArgs& a, u32 r, u32 i, u32 j) {
    return random_pair(a.key, a.step | u64(r) << 48, i, j);
}

__device__ __forceinline__ u64 decides(const Words& w, u32 first, u32 second) { return first < second ? w.v[1] : w.v[2]; }

__device__ __forceinline__ u32 partner(const LinkView& b, u32 i, u32 e) { return b.words[u64(2u * e) * b.stride + i]; }
__device__ __forceinline__ u32 bond_kind(const LinkView& b, u32 i, u32 e) {
    return b.words[u64(2u * e + 1u) * b.stride + i] >> 2;
}

__device__ __forceinline__ bool breakable(const LinkView& b, u32 i, u32 kind) {
    for (u32 e = 0; e < b.count[i]; ++e) {
        if (bond_kind(b, i, e) == kind) return true;
    }
    return false;
}

__device__ __forceinline__ bool bonded(const LinkView& b, u32 i, u32 j) {
    for (u32 e = 0; e < b.count[i]; ++e) {
        if (partner(b, i, e) == j) return true;
    }
    return false;
}

__device__ __forceinline__ void emit(const ReactArgs& a, u32 r, u32 first, u32 second) {
    const u32 n = atomicAdd(a.out, 1u);
    if (n >= a.room) return;
    u32* names = a.out + 16u + u64(n) * (4u + 2u * a.stride);
    names[0] = r;
    names[1] = first;
    names[2] = second;
}

// Emits candidates with partners of particle i within r_cut.
__device__ __forceinline__ void partners(const ReactArgs& a, u32 r, const Row& row, u32 i, u32 tag, const Who& me) {
    const StateView& s = a.state;
    if (row.kind == INSERT && !breakable(a.bonds, i, row.broken)) return;
    const bool once = a.partners == 0u && symmetric(row.kind) && row.of[0] == row.of[1];
    const PosType at = s.pos_type[i];
    const double limit = times(a.r_cut, a.r_cut);
    u32 best = 0xffffffffu, best_word = 0u;
    double best_r2 = 0.0;
    bool best_reacts = false;
    for (u32 k = 0; k < a.list.count[i]; ++k) {
        const u32 j = neighbor(a.list, i, k), other = s.tag[j];
        const Who you = who(a, j);
        if (!second_role(you, row) || (once && other < tag)) continue;
        const double r2 = apart2(at, s.pos_type[j], s.globals);
        if (!(r2 < limit) || (row.kind == EXCHANGE && !breakable(a.bonds, j, row.broken)) || bonded(a.bonds, i, j)) continue;
        const Words w = draw(a, r, tag, other);
        const bool reacts = decides(w, tag, other) < threshold(row, me, you);
        if (a.partners == 0u) {
            if (reacts) emit(a, r, tag, other);
            continue;
        }
        const bool equal = a.partners == 2u ? r2 == best_r2 : w.v[0] == best_word;
        const bool before = a.partners == 2u ? r2 < best_r2 : w.v[0] < best_word;
        if (best == 0xffffffffu || before || (equal && other < best)) {
            best = other;
            best_word = w.v[0];
            best_r2 = r2;
            best_reacts = reacts;
        }
    }
    if (best_reacts) emit(a, r, tag, best);
}

extern "C" __global__ void react_find(ReactArgs a) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.state.n_local) return;
    const Who me = who(a, i);
    for (u32 r = 0; r < a.n_rows; ++r) {
        const Row row = a.rows[r];
        if (!first_role(me, row)) continue;
        const u32 tag = a.state.tag[i];
        if (row.kind == DIE) {
            if (u64(random_single(a.key, a.step, tag, r).v[1]) < threshold(row, me, me)) emit(a, r, tag, tag);
        } else if (row.kind == BREAK || row.kind == UNZIP) {
            const bool twice = row.kind == BREAK && row.of[0] == row.of[1];
            for (u32 e = 0; e < a.bonds.count[i]; ++e) {
                const u32 j = partner(a.bonds, i, e), other = a.state.tag[j];
                if (bond_kind(a.bonds, i, e) != row.broken || !second_role(who(a, j), row) || (twice && other < tag)) continue;
                if (decides(draw(a, r, tag, other), tag, other) < threshold(row, me, me)) emit(a, r, tag, other);
            }
        } else {
            partners(a, r, row, i, tag, me);
        }
    }
}

// Writes a particle: coordinates, type, h_init, h_cris, number of bonds, and tag and type of each bond.
__device__ __forceinline__ void describe(const ReactArgs& a, u32 tag, u32* to) {
    const u32 i = a.state.index_of_tag[tag];
    const PosType p = a.state.pos_type[i];
    double* position = reinterpret_cast<double*>(to);
    position[0] = double(p.x);
    position[1] = double(p.y);
    position[2] = double(p.z);
    to[6] = p.kind;
    to[7] = u32(a.init[i]);
    to[8] = u32(a.cris[i]);
    const u32 n = a.bonds.count[i];
    to[9] = n;
    for (u32 e = 0; e < n; ++e) {
        to[10u + 2u * e] = a.state.tag[partner(a.bonds, i, e)];
        to[11u + 2u * e] = bond_kind(a.bonds, i, e);
    }
}

// Writes the two particles of each candidate.
extern "C" __global__ void react_describe(ReactArgs a) {
    const u32 n = a.out[0] < a.room ? a.out[0] : a.room;
    for (u32 t = blockIdx.x * blockDim.x + threadIdx.x; t < 2u * n; t += gridDim.x * blockDim.x) {
        u32* candidate = a.out + 16u + u64(t >> 1) * (4u + 2u * a.stride);
        describe(a, candidate[1u + (t & 1u)], candidate + 4u + (t & 1u) * a.stride);
    }
}

// Writes particles given by their tags.
extern "C" __global__ void react_lookup(ReactArgs a) {
    const u32 t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < a.n_tags) describe(a, a.tags[t], a.found + u64(t) * a.stride);
}

// Applies changes of particles and requests topology edits.
extern "C" __global__ void react_apply(ApplyArgs a) {
    const u32 t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t == 0u) *a.edits.count = a.n_edits;
    if (t < a.n_edits) a.edits.edits[t] = a.wanted[t];
    if (t >= a.n_changes) return;
    const Change c = a.changes[t];
    const u32 i = a.state.index_of_tag[c.tag];
    a.state.pos_type[i].kind = c.kind;
    a.init[i] = c.init;
    a.cris[i] = c.cris;
    if (c.charged) a.state.charge[i] = real(c.charge);
}
"#;

#[repr(C)]
struct ReactArgs {
    state: StateView,
    list: ListView,
    bonds: LinkView,
    key: RandomKey,
    step: u64,
    rows: DevicePtr<u8>,
    limits: DevicePtr<u8>,
    init: DevicePtr<u8>,
    cris: DevicePtr<u8>,
    out: DevicePtr<u8>,
    tags: DevicePtr<u8>,
    found: DevicePtr<u8>,
    r_cut: f64,
    n_rows: u32,
    partners: u32,
    room: u32,
    stride: u32,
    n_tags: u32,
    reserved: u32,
}

#[repr(C)]
struct ApplyArgs {
    state: StateView,
    edits: EditQueue,
    init: DevicePtr<u8>,
    cris: DevicePtr<u8>,
    changes: DevicePtr<u8>,
    wanted: DevicePtr<u8>,
    n_changes: u32,
    n_edits: u32,
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
}

fn bytes_of_rows(rows: &[Row]) -> Vec<u8> {
    let row = |r: &Row| {
        let words = [r.kind, r.of[0], r.of[1], r.broken].map(u32::to_ne_bytes).concat();
        let last = [r.by_groups, r.reserved].map(u32::to_ne_bytes).concat();
        [words, [r.p, r.factor].map(f64::to_ne_bytes).concat(), last].concat()
    };
    rows.iter().flat_map(row).collect()
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
    let bonds = w[LOCAL..].as_chunks::<2>().0.iter().take(w[9] as usize).map(|b| (b[0], b[1]));
    Local {
        position: [number(0), number(1), number(2)],
        kind: w[6],
        init: w[7] as i32,
        cris: w[8] as i32,
        charge: None,
        bonds: bonds.collect(),
    }
}

impl DeviceSearch {
    /// Compiles the kernels and uploads the table.
    pub fn new(host: &Host, table: &Table) -> Result<Self> {
        let module = host.compile("reactions", SOURCE)?;
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
            rows: filled(&bytes_of_rows(&table.rows))?,
            limits: filled(&bytes_of_words(&table.limits))?,
            out: GrowingBuffer::default(),
            tags: GrowingBuffer::default(),
            found: GrowingBuffer::default(),
            changes: GrowingBuffer::default(),
            room: 2 * FIRST_CANDIDATES,
        })
    }

    fn args(&self, host: &Host, table: &Table, call: &UpdateCall, now: Moment) -> ReactArgs {
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
            reserved: 0,
        }
    }

    /// Returns all candidates, and the particles involved.
    ///
    /// # Safety
    /// The views describe valid arrays of the device.
    pub unsafe fn candidates(
        &mut self,
        host: &Host,
        table: &Table,
        call: &UpdateCall,
        now: Moment,
    ) -> Result<(Vec<Candidate>, World)> {
        let entry = CANDIDATE_HEAD + 2 * stride(call);
        loop {
            let out = self.out.fit(host, 4 * (BUFFER_HEAD + self.room * entry))?;
            host.upload_bytes(out, &[0; 4])?;
            let args = self.args(host, table, call, now);
            let mut arguments: [*mut Opaque; 1] = arguments![args];
            let few = FIRST_CANDIDATES.min(self.room);
            // SAFETY: both kernels take one `ReactArgs`
            unsafe {
                host.launch(self.find, call.state.n_local.div_ceil(BLOCK), BLOCK, &mut arguments)?;
                host.launch(self.describe, (2 * few as u32).div_ceil(BLOCK), BLOCK, &mut arguments)?;
            }
            let mut bytes = vec![0; 4 * (BUFFER_HEAD + few * entry)];
            host.download_bytes(out, &mut bytes)?;
            let n = words(&bytes[..4])[0] as usize;
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
            let (mut candidates, mut world) = (vec![], World::new());
            for w in all.chunks_exact(entry).take(n) {
                candidates.push(Candidate { reaction: w[0], first: w[1], second: w[2] });
                let (a, b) = w[CANDIDATE_HEAD..].split_at(stride(call));
                world.insert(w[1], local(a));
                world.insert(w[2], local(b));
            }
            return Ok((candidates, world));
        }
    }

    /// Writes changes of particles and requests topology edits. If the edit queue is too small, writes only the number
    /// of edits; the engine then calls again.
    ///
    /// # Safety
    /// The views describe valid arrays of the device.
    pub unsafe fn apply(&mut self, host: &Host, call: &UpdateCall, outcome: &Outcome, world: &World) -> Result<()> {
        if outcome.edits.len() > call.edits.capacity as usize {
            return host.upload_bytes(call.edits.count.cast(), &(outcome.edits.len() as u32).to_ne_bytes());
        }
        let mut bytes = vec![];
        for tag in &outcome.changed {
            let local = &world[tag];
            bytes.extend(bytes_of_words(&[*tag, local.kind, local.init as u32, local.cris as u32]));
            bytes.extend(local.charge.unwrap_or(0.0).to_ne_bytes());
            bytes.extend(bytes_of_words(&[u32::from(local.charge.is_some()), 0]));
        }
        let wanted = bytes.len();
        for e in &outcome.edits {
            bytes.extend(bytes_of_words(&[e.remove, e.width, e.kind]));
            bytes.extend(bytes_of_words(&e.tags));
            bytes.extend([0; 4]);
        }
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
    pub now: Moment,
}

impl Source for Lookup<'_> {
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
        Ok(words(&bytes).chunks_exact(stride).map(local).collect())
    }
}
