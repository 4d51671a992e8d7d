//! Ranks in several processes: they exchange through messages what ranks of one process read from each other's memory.
//!
//! Messages pass through NCCL or the memory of the host. All ranks call each function in the same order, also after a halt.

use super::barrier::Barrier;
use super::rank::RankedArray;
use crate::device::args::{MAX_GHOST_FIELDS, MessageArgs, MessageField, RankRanges};
use crate::device::{Device, Kernel, MemoryKind, SourceUnit};
use crate::gpu::arrays::{Buffer, launch, words};
use crate::processes::{Messages, Nccl, Piece};
use galamost_plugin_api::device::bytes_of;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
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
    send: Buffer,
    receive: Buffer,
}

/// Messages of a rank.
pub struct MessagePath {
    device: Arc<dyn Device>,
    messages: Arc<dyn Messages>,
    /// Transfers memory of devices, instead of the host's.
    nccl: Option<Nccl>,
    ranges: RankRanges,
    pack: Kernel,
    unpack: Kernel,
    exchange: Mutex<Exchange>,
}

/// Words of the fields of a ghost, with padding to a multiple of 4.
fn record_words(fields: &[MessageField]) -> usize {
    fields.iter().map(|f| f.words as usize).sum::<usize>().next_multiple_of(4)
}

impl MessagePath {
    pub fn new(
        device: &Arc<dyn Device>,
        messages: Arc<dyn Messages>,
        ranges: RankRanges,
        precision: Precision,
    ) -> Result<Self> {
        let module = device.compile(&unit(precision))?;
        let (pack, unpack) = (device.kernel(module, "pack_particles")?, device.kernel(module, "unpack_particles")?);
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
        let nccl = Nccl::connect(&*messages, stream)?;
        if nccl.is_some() {
            info!("messages between GPUs pass through NCCL");
        }
        Ok(Self { device: device.clone(), messages, nccl, ranges, pack, unpack, exchange: Mutex::new(exchange) })
    }

    fn rank(&self) -> usize {
        self.ranges.rank as usize
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

    /// Completes an array with the parts of the other ranks.
    pub fn complete(&self, data: u64, words: usize, particles: usize) -> Result<()> {
        let piece = |rank: usize, of: usize| {
            let part = self.part(of, words, particles);
            (rank, data + part.start as u64, part.len())
        };
        let send: Vec<_> = self.others().map(|r| piece(r, self.rank())).collect();
        let receive: Vec<_> = self.others().map(|r| piece(r, r)).collect();
        self.transfer(&send, &receive)
    }

    /// Completes an array that has an element of `words` words for each rank.
    pub fn complete_elements(&self, data: u64, words: usize) -> Result<()> {
        let piece = |rank: usize, of: usize| (rank, data + (4 * words * of) as u64, 4 * words);
        let send: Vec<_> = self.others().map(|r| piece(r, self.rank())).collect();
        let receive: Vec<_> = self.others().map(|r| piece(r, r)).collect();
        self.transfer(&send, &receive)
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

    /// Requests the ghosts from their owners. `marks` has a bit for each particle, which is set for ghosts.
    pub fn request_ghosts(&self, marks: &Buffer) -> Result<()> {
        let mut list: Vec<u32> = vec![];
        for (k, word) in words(&marks.download()?).into_iter().enumerate().filter(|(_, word)| *word != 0) {
            list.extend((0..32).filter(|bit| word >> bit & 1 == 1).map(|bit| 32 * k as u32 + bit));
        }
        let of_rank = |r: usize| {
            let first = |begin: u32| list.partition_point(|g| *g < begin);
            first(self.ranges.begin[r])..first(self.ranges.begin[r + 1])
        };
        let mut exchange = self.exchange.lock().unwrap_or_else(PoisonError::into_inner);
        let x = &mut *exchange;
        x.received = (0..self.messages.ranks()).map(|r| of_rank(r).len()).collect();
        let counts = self.others().map(|r| (r, (x.received[r] as u64).to_le_bytes().to_vec())).collect();
        let sizes: Vec<_> = self.others().map(|r| (r, 8)).collect();
        for (r, count) in self.others().zip(self.messages.transfer(counts, &sizes)?) {
            x.sent[r] = words(&count)[0] as usize;
        }
        let lists = self.others().map(|r| (r, bytes_of(&list[of_rank(r)]).to_vec()));
        let send = lists.filter(|(_, list)| !list.is_empty()).collect();
        let receive: Vec<_> = self.others().map(|r| (r, 4 * x.sent[r])).filter(|(_, size)| *size > 0).collect();
        let requested = self.messages.transfer(send, &receive)?.concat();
        self.fit(&mut x.requested, requested.len())?;
        self.fit(&mut x.ghosts, 4 * list.len())?;
        x.ghosts.upload_words(&list)?;
        x.requested.upload(&requested)
    }

    /// Makes room in a buffer, whose contents are lost then.
    fn fit(&self, buffer: &mut Buffer, bytes: usize) -> Result<()> {
        if buffer.bytes() < bytes {
            *buffer = Buffer::new(&self.device, bytes + bytes / 8)?;
        }
        Ok(())
    }

    /// Sends the requested particles, and receives the ghosts. Fields with other numbers of words than multiples of 4 come last.
    pub fn exchange_ghosts(&self, fields: &[MessageField]) -> Result<()> {
        let mut exchange = self.exchange.lock().unwrap_or_else(PoisonError::into_inner);
        let x = &mut *exchange;
        let record = 4 * record_words(fields);
        let (sent, received): (usize, usize) = (x.sent.iter().sum(), x.received.iter().sum());
        self.fit(&mut x.send, sent * record)?;
        self.fit(&mut x.receive, received * record)?;
        let mut args = MessageArgs {
            particles: x.requested.address(),
            records: x.send.address(),
            n: sent as u32,
            record_words: record as u32 / 4,
            n_fields: fields.len() as u32,
            reserved: 0,
            fields: [MessageField::default(); MAX_GHOST_FIELDS],
        };
        if fields.len() > MAX_GHOST_FIELDS {
            return Err(Error::Run(format!("{} fields of ghosts; at most {MAX_GHOST_FIELDS}", fields.len())));
        }
        args.fields[..fields.len()].copy_from_slice(fields);
        if sent > 0 {
            launch(&*self.device, self.pack, sent, 256, &args)?;
        }
        let pieces = |counts: &[usize], memory: &Buffer| -> Vec<Piece> {
            let mut begin = memory.address();
            let piece = |r: usize| {
                let bytes = counts[r] * record;
                let piece = (r, begin, bytes);
                begin += bytes as u64;
                piece
            };
            self.others().map(piece).collect()
        };
        self.transfer(&pieces(&x.sent, &x.send), &pieces(&x.received, &x.receive))?;
        if received > 0 {
            let args =
                MessageArgs { particles: x.ghosts.address(), records: x.receive.address(), n: received as u32, ..args };
            launch(&*self.device, self.unpack, received, 256, &args)?;
        }
        Ok(())
    }
}
