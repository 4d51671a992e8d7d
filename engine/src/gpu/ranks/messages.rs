//! Ranks in several processes: they exchange through messages what ranks of one process read from each other's memory.
//!
//! Messages pass through NCCL or the memory of the host. All ranks call each function in the same order, also after a halt. With NCCL, the
//! host queues them as it queues kernels. It waits for what the ranks request in each step ([`MessagePath::answer`]), which it knows early, and
//! for the numbers of elements in the few exchanges that count them ([`exchange`]).

mod exchange;
mod near;
mod sort;

use super::barrier::Barrier;
use super::rank::RankedArray;
use crate::device::args::{ANSWERS, MAX_RANKS, MessageHead, RankRanges};
use crate::device::{Device, Kernel, MemoryKind, SourceUnit, shares_gpu};
use crate::gpu::arrays::{Buffer, launch};
use crate::processes::{Messages, Nccl, Piece};
use exchange::{Exchange, Spare, lock};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use near::NearTiles;
use sort::SortKernels;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tracing::info;

/// Returns the source unit of the kernels for messages.
pub fn unit(precision: Precision) -> SourceUnit {
    let mut headers = "#include \"galamost/messages.cuh\"\n#include \"galamost/messages_sort.cuh\"\n".to_owned();
    if has_tiles(precision) {
        headers += "#include \"galamost/near_tiles.cuh\"\n";
    }
    SourceUnit::new("messages", &headers, precision)
}

/// Returns whether runs in this precision may have a staged list, whose positions are integers.
fn has_tiles(precision: Precision) -> bool {
    precision != Precision::Double
}

/// The barrier of ranks in several processes.
pub struct ProcessBarrier(pub Arc<dyn Messages>);

impl Barrier for ProcessBarrier {
    fn gather(&self, _: usize, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.0.gather_all(own)
    }

    fn exchange(&self, _: usize, number: u64) -> Result<Vec<u64>> {
        self.0.all_numbers(number)
    }
}

/// Room to spare for ghosts, whose number changes little from one sort to the next.
const SPARE_GHOSTS: Spare = Spare { part: 16, few: 64, least: 16, adjacent: 16 };
/// Room to spare for particles that change the rank, whose number depends on the time since the last sort.
const SPARE_MIGRANTS: Spare = Spare { part: 2, few: 256, least: 64, adjacent: 256 };

struct Kernels {
    note_requests: Kernel,
    take_requests: Kernel,
    pack: Kernel,
    unpack: Kernel,
    list_marked: Kernel,
    end_pause: Kernel,
}

/// Messages of a rank.
pub struct MessagePath {
    device: Arc<dyn Device>,
    messages: Arc<dyn Messages>,
    /// Transfers memory of devices, instead of the host's.
    nccl: Option<Arc<Nccl>>,
    ranges: RankRanges,
    kernels: Kernels,
    /// A word for each rank: what it requests.
    requests: Buffer,
    /// Address of the epochs of this rank.
    epochs: u64,
    /// Nanoseconds for which the host has waited for the other ranks.
    waited: AtomicU64,
    /// Number of the last message with which ranks may pause.
    pausing: AtomicU64,
    /// What the ranks request with it, in memory of the host.
    answer: Buffer,
    near: Option<NearTiles>,
    sort: SortKernels,
    ghosts: Mutex<Exchange>,
    migrants: Mutex<Exchange>,
}

impl MessagePath {
    pub fn new(
        device: &Arc<dyn Device>,
        messages: Arc<dyn Messages>,
        ranges: RankRanges,
        epochs: u64,
        precision: Precision,
    ) -> Result<Self> {
        let module = device.compile(&unit(precision))?;
        let k = |name: &str| device.kernel(module, name);
        let kernels = Kernels {
            note_requests: k("note_requests")?,
            take_requests: k("take_requests")?,
            pack: k("pack_particles")?,
            unpack: k("unpack_particles")?,
            list_marked: k("list_marked")?,
            end_pause: k("end_pause")?,
        };
        let (rank, ranks) = (ranges.rank as usize, messages.ranks());
        let near = has_tiles(precision).then(|| NearTiles::new(device, module, rank, ranks)).transpose()?;
        let sort = SortKernels::new(device, module, rank, ranks)?;
        let ghosts = Exchange::new(device, rank, ranks, SPARE_GHOSTS)?;
        let migrants = Exchange::new(device, rank, ranks, SPARE_MIGRANTS)?;
        let stream = match device.memory_kind() {
            MemoryKind::Cuda { stream, .. } => stream,
            MemoryKind::Host => 0,
        };
        let nccl = Nccl::connect(&*messages, stream, shares_gpu())?.map(Arc::new);
        if let Some(nccl) = &nccl {
            info!("messages between GPUs pass through NCCL");
            // transfers wait for other ranks on the device, without limit; memory can be freed when they have ended
            let (messages, nccl) = (messages.clone(), Arc::downgrade(nccl));
            let end = move |_: &Error| nccl.upgrade().map_or((), |nccl| nccl.abort());
            device.watch(Arc::new(move |begun| messages.check(begun).inspect_err(&end)));
        }
        let (requests, answer) = (Buffer::new(device, 4 * MAX_RANKS)?, Buffer::mapped(device, 8)?);
        let device = device.clone();
        Ok(Self {
            device,
            messages,
            nccl,
            ranges,
            kernels,
            requests,
            epochs,
            waited: AtomicU64::new(0),
            pausing: AtomicU64::new(0),
            answer,
            near,
            sort,
            ghosts,
            migrants,
        })
    }

    fn rank(&self) -> usize {
        self.ranges.rank as usize
    }

    /// Returns the nanoseconds for which the host has waited for the other ranks.
    pub fn waited(&self) -> u64 {
        self.waited.load(Ordering::Relaxed)
    }

    fn range(&self, rank: usize) -> Range<usize> {
        self.ranges.begin[rank] as usize..self.ranges.begin[rank + 1] as usize
    }

    fn own(&self) -> Range<usize> {
        self.range(self.rank())
    }

    /// Waits for the last message with which ranks may pause, and returns what they request with it: [`ANSWER_PAUSED`], [`ANSWER_HALTED`], or 0.
    ///
    /// [`ANSWER_PAUSED`]: crate::device::args::ANSWER_PAUSED
    /// [`ANSWER_HALTED`]: crate::device::args::ANSWER_HALTED
    pub fn answer(&self) -> Result<u64> {
        let number = self.pausing.load(Ordering::Relaxed);
        let answer = self.device.await_number(self.answer.address(), ANSWERS * number)?;
        if answer / ANSWERS != number {
            return Err(Error::Run(format!("the answer to message {} in place of {number}", answer / ANSWERS)));
        }
        Ok(answer % ANSWERS)
    }

    /// Ends a pause, unless this rank has halted since.
    pub fn end_pause(&self, globals: u64) -> Result<()> {
        launch(&*self.device, self.kernels.end_pause, 1, 1, &self.head(globals, false))
    }

    /// Lets the next rebuild count what messages hold; with more room to spare afterwards if there was too little.
    pub fn forget_sizes(&self, too_little: bool) {
        let all = [&self.ghosts, &self.migrants, &self.sort.incoming, &self.sort.entries];
        all.into_iter().chain(self.near.as_ref().map(|near| &near.exchange)).for_each(|x| lock(x).forget(too_little));
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.rank();
        (0..self.ranges.count as usize).filter(move |r| *r != own)
    }

    /// Returns the bytes of an array that belong to a rank; an element of `words` words belongs to this many particles.
    fn part(&self, rank: usize, words: usize, particles: usize) -> Range<usize> {
        let begin = self.ranges.begin[rank] as usize / particles;
        let end = (self.ranges.begin[rank + 1] as usize).div_ceil(particles);
        4 * begin * words..4 * end * words
    }

    /// Sends pieces of memory to other ranks, and receives others.
    fn transfer(&self, send: &[Piece], receive: &[Piece]) -> Result<()> {
        let some = |pieces: &[Piece]| -> Vec<Piece> { pieces.iter().copied().filter(|(_, _, n)| *n > 0).collect() };
        let (send, receive) = (some(send), some(receive));
        if let Some(nccl) = &self.nccl {
            return nccl.transfer(&send, &receive);
        }
        let mut sent: Vec<(usize, Vec<u8>)> = vec![];
        for (k, (rank, address, length)) in send.iter().enumerate() {
            // the same piece goes to several ranks
            let before = k.checked_sub(1).filter(|b| (send[*b].1, send[*b].2) == (*address, *length));
            let mut bytes = before.map_or_else(|| vec![0; *length], |b| sent[b].1.clone());
            if before.is_none() {
                self.device.download(*address, &mut bytes)?;
            }
            sent.push((*rank, bytes));
        }
        let expected: Vec<_> = receive.iter().map(|(rank, _, length)| (*rank, *length)).collect();
        let received = self.messages.transfer(sent, &expected)?;
        receive.iter().zip(received).try_for_each(|((_, address, _), bytes)| self.device.upload(*address, &bytes))
    }

    /// What this rank requests from the others with a message.
    fn head(&self, globals: u64, pauses: bool) -> MessageHead {
        let number = self.pausing.fetch_add(u64::from(pauses), Ordering::Relaxed) + 1;
        MessageHead {
            answer: self.answer.address(),
            number,
            globals,
            epochs: self.epochs,
            requests: self.requests.address(),
            rank: self.ranges.rank,
            ranks: self.ranges.count,
            pauses: pauses.into(),
            reserved: 0,
        }
    }

    /// Transfers pieces of memory, and with them whether a rank requests a rebuild or has halted, which then applies to all.
    fn meet(&self, globals: u64, mut send: Vec<Piece>, mut receive: Vec<Piece>) -> Result<()> {
        let head = self.head(globals, false);
        launch(&*self.device, self.kernels.note_requests, 1, 1, &head)?;
        let word = |r: usize, of: usize| (r, head.requests + 4 * of as u64, 4);
        send.extend(self.others().map(|r| word(r, self.rank())));
        receive.extend(self.others().map(|r| word(r, r)));
        self.transfer(&send, &receive)?;
        launch(&*self.device, self.kernels.take_requests, 1, 1, &head)
    }

    /// Waits on the device until all ranks are here. A rebuild or a halt that one rank requests applies to all.
    pub fn barrier(&self, globals: u64) -> Result<()> {
        self.meet(globals, vec![], vec![])
    }

    /// Completes an array with the parts of the other ranks.
    pub fn complete(&self, data: u64, words: usize, particles: usize) -> Result<()> {
        let (send, receive) = self.parts(data, words, particles);
        self.transfer(&send, &receive)
    }

    /// As [`Self::complete`], with a barrier.
    pub fn complete_and_meet(&self, globals: u64, data: u64, words: usize, particles: usize) -> Result<()> {
        let (send, receive) = self.parts(data, words, particles);
        self.meet(globals, send, receive)
    }

    /// Returns the parts of an array that this rank sends to the others and receives from them.
    pub(super) fn parts(&self, data: u64, words: usize, particles: usize) -> (Vec<Piece>, Vec<Piece>) {
        let piece = |rank: usize, of: usize| {
            let part = self.part(of, words, particles);
            (rank, data + part.start as u64, part.len())
        };
        (self.others().map(|r| piece(r, self.rank())).collect(), self.others().map(|r| piece(r, r)).collect())
    }

    /// Completes an array that has an element of `words` words for each rank, with a barrier.
    pub fn complete_elements(&self, globals: u64, data: u64, words: usize) -> Result<()> {
        let piece = |rank: usize, of: usize| (rank, data + (4 * words * of) as u64, 4 * words);
        let send = self.others().map(|r| piece(r, self.rank())).collect();
        let receive = self.others().map(|r| piece(r, r)).collect();
        self.meet(globals, send, receive)
    }

    /// Returns the parts of arrays that belong to other ranks, by rank, or the own ones for the first rank.
    fn of_others<'a>(&self, arrays: impl Iterator<Item = &'a RankedArray>) -> Vec<Piece> {
        let own = self.rank();
        let mut pieces = vec![];
        for a in arrays {
            let piece = |rank: usize, of: usize| {
                let part = self.part(of, a.words as usize, 1);
                (rank, a.data[own] + part.start as u64, part.len())
            };
            match own {
                0 => pieces.extend(self.others().map(|r| piece(r, r))),
                _ => pieces.push(piece(0, own)),
            }
        }
        pieces
    }

    /// Completes arrays of the first rank.
    pub fn complete_first(&self, arrays: &[RankedArray]) -> Result<()> {
        let pieces = self.of_others(arrays.iter().filter(|a| a.changes));
        if self.rank() == 0 { self.transfer(&[], &pieces) } else { self.transfer(&pieces, &[]) }
    }

    /// Completes the arrays that never change, after a sort.
    pub fn complete_constant(&self, arrays: &[RankedArray]) -> Result<()> {
        let (mut send, mut receive) = (vec![], vec![]);
        for a in arrays.iter().filter(|a| !a.changes) {
            let (s, r) = self.parts(a.data[self.rank()], a.words as usize, 1);
            send.extend(s);
            receive.extend(r);
        }
        self.transfer(&send, &receive)
    }

    /// Sends the forces of other ranks' particles from the first rank to these.
    pub fn send_forces(&self, arrays: &[RankedArray]) -> Result<()> {
        let pieces = self.of_others(arrays.iter().filter(|a| a.of_forces));
        if self.rank() == 0 { self.transfer(&pieces, &[]) } else { self.transfer(&[], &pieces) }
    }

    /// Copies the first words of an array of the first rank to all others.
    pub fn broadcast(&self, data: u64, words: usize) -> Result<()> {
        if self.rank() != 0 {
            return self.transfer(&[], &[(0, data, 4 * words)]);
        }
        let send: Vec<_> = self.others().map(|r| (r, data, 4 * words)).collect();
        self.transfer(&send, &[])
    }

    /// Returns the address of what this rank has requested with its last message.
    pub fn own_requests(&self) -> u64 {
        self.requests.address() + 4 * u64::from(self.ranges.rank)
    }
}
