//! Ranks in several processes: they exchange through messages what ranks of one process read from each other's memory.
//!
//! Messages pass through the memory of the host. All ranks call each function in the same order, also after a halt.

use super::barrier::Barrier;
use super::rank::RankedArray;
use crate::device::args::{MAX_GHOST_FIELDS, MessageArgs, MessageField, RankRanges};
use crate::device::{Device, Kernel, SourceUnit};
use crate::gpu::arrays::{Buffer, launch, words};
use crate::processes::Messages;
use galamost_plugin_api::device::bytes_of;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Returns the source unit of the kernels in `messages.cuh`.
pub fn unit(precision: Precision) -> SourceUnit {
    SourceUnit::new("messages", "#include \"galamost/messages.cuh\"\n", precision)
}

/// The barrier of ranks in several processes.
pub struct ProcessBarrier(pub Arc<dyn Messages>);

impl Barrier for ProcessBarrier {
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
    /// The requested particles, rank by rank.
    requested: Buffer,
    send: Buffer,
    receive: Buffer,
}

/// Messages of a rank.
pub struct MessagePath {
    device: Arc<dyn Device>,
    messages: Arc<dyn Messages>,
    ranges: RankRanges,
    pack: Kernel,
    unpack: Kernel,
    exchange: Mutex<Exchange>,
}

/// Words of the fields of a ghost.
fn record_words(fields: &[MessageField]) -> usize {
    fields.iter().map(|f| f.words as usize).sum()
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
        let exchange =
            Exchange { sent: counts.clone(), received: counts, requested: none()?, send: none()?, receive: none()? };
        Ok(Self { device: device.clone(), messages, ranges, pack, unpack, exchange: Mutex::new(exchange) })
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

    fn download(&self, data: u64, part: &Range<usize>) -> Result<Vec<u8>> {
        let mut bytes = vec![0; part.len()];
        self.device.download(data + part.start as u64, &mut bytes)?;
        Ok(bytes)
    }

    fn upload(&self, data: u64, part: &Range<usize>, bytes: &[u8]) -> Result<()> {
        self.device.upload(data + part.start as u64, bytes)
    }

    /// Completes an array with the parts of the other ranks.
    pub fn complete(&self, data: u64, words: usize, particles: usize) -> Result<()> {
        let parts: Vec<_> = (0..self.messages.ranks()).map(|r| self.part(r, words, particles)).collect();
        let lengths: Vec<usize> = parts.iter().map(Range::len).collect();
        let all = self.messages.all_gather(&self.download(data, &parts[self.rank()])?, &lengths)?;
        self.others().try_for_each(|r| self.upload(data, &parts[r], &all[r]))
    }

    /// Completes arrays of the first rank.
    pub fn complete_first(&self, arrays: &[RankedArray]) -> Result<()> {
        for a in arrays.iter().filter(|a| a.changes) {
            let (data, part) = (a.data[self.rank()], |r| self.part(r, a.words as usize, 1));
            if self.rank() != 0 {
                self.messages.transfer(vec![(0, self.download(data, &part(self.rank()))?)], &[])?;
                continue;
            }
            let receive: Vec<_> = self.others().map(|r| (r, part(r).len())).collect();
            for (r, bytes) in self.others().zip(self.messages.transfer(vec![], &receive)?) {
                self.upload(data, &part(r), &bytes)?;
            }
        }
        Ok(())
    }

    /// Sends the forces of other ranks' particles from the first rank to these.
    pub fn send_forces(&self, arrays: &[RankedArray]) -> Result<()> {
        for a in arrays.iter().filter(|a| a.of_forces) {
            let (data, part) = (a.data[self.rank()], |r| self.part(r, a.words as usize, 1));
            if self.rank() == 0 {
                let send = self.others().map(|r| Ok((r, self.download(data, &part(r))?))).collect::<Result<_>>()?;
                self.messages.transfer(send, &[])?;
                continue;
            }
            let own = part(self.rank());
            for bytes in self.messages.transfer(vec![], &[(0, own.len())])? {
                self.upload(data, &own, &bytes)?;
            }
        }
        Ok(())
    }

    /// Copies the first words of an array of the first rank to all others.
    pub fn broadcast(&self, data: u64, words: usize) -> Result<()> {
        let whole = 0..4 * words;
        let own = if self.rank() == 0 { self.download(data, &whole)? } else { vec![] };
        let bytes = self.messages.broadcast(own)?;
        if self.rank() == 0 { Ok(()) } else { self.upload(data, &whole, &bytes) }
    }

    /// Requests the ghosts from their owners, after they have been found. Sorts the memory with them by owner.
    pub fn request_ghosts(&self, ghosts: &Buffer, count: &Buffer, fields: &[MessageField]) -> Result<()> {
        let n = words(&count.download()?).first().map_or(0, |n| *n as usize);
        let mut bytes = vec![0; 4 * n];
        ghosts.download_part(0, &mut bytes)?;
        let mut list = words(&bytes);
        list.sort_unstable();
        ghosts.upload_words(&list)?;
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
        let record = 4 * record_words(fields);
        let fit = |buffer: &mut Buffer, bytes: usize| -> Result<()> {
            if buffer.bytes() < bytes {
                *buffer = Buffer::new(&self.device, bytes + bytes / 8)?;
            }
            Ok(())
        };
        fit(&mut x.requested, requested.len())?;
        fit(&mut x.send, x.sent.iter().sum::<usize>() * record)?;
        fit(&mut x.receive, n * record)?;
        x.requested.upload(&requested)
    }

    /// Sends the requested particles, and receives the ghosts.
    pub fn exchange_ghosts(&self, ghosts: &Buffer, fields: &[MessageField]) -> Result<()> {
        let exchange = self.exchange.lock().unwrap_or_else(PoisonError::into_inner);
        let x = &*exchange;
        let record = 4 * record_words(fields);
        let (sent, received): (usize, usize) = (x.sent.iter().sum(), x.received.iter().sum());
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
        let mut records = vec![0; sent * record];
        if sent > 0 {
            launch(&*self.device, self.pack, sent, 256, &args)?;
            x.send.download_part(0, &mut records)?;
        }
        let mut rest = records.as_slice();
        let mut send = vec![];
        for r in self.others().filter(|r| x.sent[*r] > 0) {
            let (own, after) = rest.split_at(x.sent[r] * record);
            send.push((r, own.to_vec()));
            rest = after;
        }
        let receive: Vec<_> =
            self.others().map(|r| (r, x.received[r] * record)).filter(|(_, size)| *size > 0).collect();
        let records = self.messages.transfer(send, &receive)?.concat();
        if received > 0 {
            x.receive.upload(&records)?;
            let args =
                MessageArgs { particles: ghosts.address(), records: x.receive.address(), n: received as u32, ..args };
            launch(&*self.device, self.unpack, received, 256, &args)?;
        }
        Ok(())
    }
}
