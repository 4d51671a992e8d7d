//! Ranks in several processes: they exchange through messages what ranks of one process read from each other's memory.
//!
//! Messages pass through NCCL or the memory of the host. All ranks call each function in the same order, also after a halt. With NCCL, the
//! host queues them as it queues kernels, and does not wait.

use super::barrier::Barrier;
use super::rank::RankedArray;
use crate::device::args::{
    HEAD_WORDS, MAX_GHOST_FIELDS, MAX_RANKS, MarkedArgs, MessageArgs, MessageField, MessageHead, RankRanges,
};
use crate::device::{Device, Kernel, MemoryKind, SourceUnit, shares_gpu};
use crate::gpu::arrays::{Buffer, launch, words};
use crate::processes::{Messages, Nccl, Piece};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tracing::info;

/// Returns the source unit of the kernels in `messages.cuh`.
pub fn unit(precision: Precision) -> SourceUnit {
    SourceUnit::new("messages", "#include \"galamost/messages.cuh\"\n", precision)
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

/// The ghosts that ranks send each other in every step, by rank, since the last rebuild of the list.
struct Exchange {
    /// Particles that each rank has requested.
    sent: Vec<usize>,
    /// Ghosts that each rank owns.
    received: Vec<usize>,
    /// The ghosts, rank by rank.
    ghosts: Buffer,
    /// The requested particles, rank by rank.
    requested: Buffer,
    /// A head and records for each rank.
    send: Buffer,
    receive: Buffer,
}

struct Kernels {
    note_requests: Kernel,
    take_requests: Kernel,
    pack: Kernel,
    unpack: Kernel,
    list_marked: Kernel,
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
    /// A word for each rank: the number of its particles that are marked. And the number of boundary blocks.
    counts: Buffer,
    /// Address of the epochs of this rank.
    epochs: u64,
    /// Nanoseconds for which the host has waited for the other ranks.
    waited: AtomicU64,
    exchange: Mutex<Exchange>,
}

/// Words of the fields of a ghost, with padding to a multiple of 4.
fn record_words(fields: &[MessageField]) -> usize {
    fields.iter().map(|f| f.words as usize).sum::<usize>().next_multiple_of(4)
}

/// Returns where the items of each rank begin, and the number of all, which is also the last of these words.
fn begins(counts: &[usize]) -> ([u32; MAX_RANKS + 2], usize) {
    let end = |rank: usize| counts.iter().take(rank).sum::<usize>();
    (std::array::from_fn(|rank| end(rank) as u32), end(counts.len()))
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
        };
        let none = || Buffer::new(device, 4);
        let counts = vec![0; messages.ranks()];
        let exchange = Exchange {
            sent: counts.clone(),
            received: counts,
            ghosts: none()?,
            requested: none()?,
            send: none()?,
            receive: none()?,
        };
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
        let words = |count: usize| Buffer::new(device, 4 * count);
        let (requests, counts) = (words(MAX_RANKS)?, words(MAX_RANKS + 1)?);
        let device = device.clone();
        Ok(Self {
            device,
            messages,
            nccl,
            ranges,
            kernels,
            requests,
            counts,
            epochs,
            waited: AtomicU64::new(0),
            exchange: Mutex::new(exchange),
        })
    }

    fn rank(&self) -> usize {
        self.ranges.rank as usize
    }

    /// Returns the nanoseconds for which the host has waited for the other ranks.
    pub fn waited(&self) -> u64 {
        self.waited.load(Ordering::Relaxed)
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
        MessageHead {
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
    fn parts(&self, data: u64, words: usize, particles: usize) -> (Vec<Piece>, Vec<Piece>) {
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

    /// Requests particles, such as ghosts, from their owners. `marks` has a bit for each particle, which is set for these. The order of an
    /// owner's particles is any, but the same in both ranks. Returns the word at the address `boundary`, if it is not 0.
    pub fn request(&self, marks: &Buffer, boundary: u64) -> Result<u32> {
        let (d, ranks) = (&*self.device, self.messages.ranks());
        let n_words = self.ranges.begin[ranks].div_ceil(32);
        let mut args = MarkedArgs {
            marks: marks.address(),
            counts: self.counts.address(),
            list: 0,
            n_words,
            reserved: 0,
            ranges: self.ranges,
            boundary,
            first: [0; MAX_RANKS],
        };
        self.counts.clear()?;
        launch(d, self.kernels.list_marked, n_words as usize, 256, &args)?;
        let mut exchange = self.exchange.lock().unwrap_or_else(PoisonError::into_inner);
        let x = &mut *exchange;
        let counted = words(&self.counts.download()?);
        x.received = counted[..ranks].iter().map(|n| *n as usize).collect();
        let counts = self.others().map(|r| (r, counted[r].to_le_bytes().to_vec())).collect();
        let sizes: Vec<_> = self.others().map(|r| (r, 4)).collect();
        let start = Instant::now();
        let counts = self.messages.transfer(counts, &sizes)?;
        self.waited.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        for (r, count) in self.others().zip(counts) {
            x.sent[r] = words(&count)[0] as usize;
        }
        self.fit(&mut x.ghosts, 4 * x.received.iter().sum::<usize>())?;
        self.fit(&mut x.requested, 4 * x.sent.iter().sum::<usize>())?;
        let (begin, _) = begins(&x.received);
        args.first.copy_from_slice(&begin[..MAX_RANKS]);
        args.list = x.ghosts.address();
        self.counts.clear()?;
        launch(d, self.kernels.list_marked, n_words as usize, 256, &args)?;
        let pieces = |counts: &[usize], memory: &Buffer| -> Vec<Piece> {
            let (begin, _) = begins(counts);
            self.others().map(|r| (r, memory.address() + 4 * u64::from(begin[r]), 4 * counts[r])).collect()
        };
        self.transfer(&pieces(&x.received, &x.ghosts), &pieces(&x.sent, &x.requested))?;
        Ok(counted[MAX_RANKS])
    }

    /// Makes room in a buffer, whose contents are lost then.
    fn fit(&self, buffer: &mut Buffer, bytes: usize) -> Result<()> {
        if buffer.bytes() < bytes {
            *buffer = Buffer::new(&self.device, bytes + bytes / 8)?;
        }
        Ok(())
    }

    /// Sends the particles that others have requested, and receives those that this rank has requested. Fields with other numbers of words than multiples of 4 come last. A halt of
    /// one rank applies to all, and so does the request of a rebuild; with `pauses`, all ranks pause then. The transfer overlaps with the launches of `overlapped`.
    pub fn exchange_ghosts(
        &self,
        globals: u64,
        fields: &[MessageField],
        pauses: bool,
        overlapped: Option<&mut dyn FnMut() -> Result<()>>,
    ) -> Result<()> {
        if fields.len() > MAX_GHOST_FIELDS {
            return Err(Error::Run(format!("{} fields of ghosts; at most {MAX_GHOST_FIELDS}", fields.len())));
        }
        let mut exchange = self.exchange.lock().unwrap_or_else(PoisonError::into_inner);
        let x = &mut *exchange;
        let record = record_words(fields);
        let heads = HEAD_WORDS as usize * self.messages.ranks();
        let ((sends, sent), (receives, received)) = (begins(&x.sent), begins(&x.received));
        self.fit(&mut x.send, 4 * (heads + sent * record))?;
        self.fit(&mut x.receive, 4 * (heads + received * record))?;
        let mut args = MessageArgs {
            head: self.head(globals, pauses),
            particles: x.requested.address(),
            records: x.send.address(),
            record_words: record as u32,
            n_fields: fields.len() as u32,
            begin: sends,
            fields: [MessageField::default(); MAX_GHOST_FIELDS],
        };
        args.fields[..fields.len()].copy_from_slice(fields);
        launch(&*self.device, self.kernels.pack, sent.max(1), 256, &args)?;
        if overlapped.is_some() {
            self.device.fork()?;
        }
        let piece = |r: usize, counts: &[usize], begin: &[u32], memory: &Buffer| {
            let at = HEAD_WORDS as usize * r + begin[r] as usize * record;
            (r, memory.address() + 4 * at as u64, 4 * (HEAD_WORDS as usize + counts[r] * record))
        };
        let send: Vec<Piece> = self.others().map(|r| piece(r, &x.sent, &sends, &x.send)).collect();
        let receive: Vec<Piece> = self.others().map(|r| piece(r, &x.received, &receives, &x.receive)).collect();
        self.transfer(&send, &receive)?;
        let forked = overlapped.is_some();
        // launched after the transfer: its kernels may need a whole multiprocessor, for which they would wait
        overlapped.map_or(Ok(()), |body| self.device.on_side_stream(body))?;
        let (particles, records) = (x.ghosts.address(), x.receive.address());
        let args = MessageArgs { particles, records, begin: receives, ..args };
        launch(&*self.device, self.kernels.unpack, received.max(1), 256, &args)?;
        if forked { self.device.join() } else { Ok(()) }
    }
}
