//! Records of particles or tiles that ranks send each other.

use super::MessagePath;
use crate::device::Device;
use crate::device::args::{
    HEAD_WORDS, MAX_GHOST_FIELDS, MAX_RANKS, MarkedArgs, MessageArgs, MessageField, OfferArgs,
};
use crate::gpu::arrays::{Buffer, launch, words};
use crate::processes::Piece;
use galamost_plugin_api::error::{Error, Result};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How many elements messages have room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// As many as there are. The hosts of the ranks tell each other how many.
    Counted,
    /// Some more, for the next rebuilds.
    Spare,
    /// As in the last exchange with [`Self::Spare`]. The hosts do not wait; if there are more, the run halts, and begins the rebuild again.
    Kept,
}

impl Sizes {
    /// Returns the room for the numbers that were counted: with room to spare, a part more, and a few.
    pub(super) fn room(self, counts: Vec<usize>, part: usize, few: usize) -> Vec<usize> {
        let room = |n: usize| if n > 0 && self == Self::Spare { n + n / part + few } else { n };
        counts.into_iter().map(room).collect()
    }
}

/// What ranks send each other, by rank: the ghosts since the last rebuild of the list, or what ranks have offered each other last.
pub(super) struct Exchange {
    /// For how many elements there is room in the messages of this rank to each other one.
    sent: Vec<usize>,
    /// The same in those from each other one.
    received: Vec<usize>,
    /// The received elements, rank by rank.
    incoming: Buffer,
    /// The sent elements, rank by rank.
    outgoing: Buffer,
    /// How many they are of each rank.
    counts_in: Buffer,
    counts_out: Buffer,
    /// A head and records for each rank.
    send: Buffer,
    receive: Buffer,
}

impl Exchange {
    pub fn new(device: &Arc<dyn Device>, ranks: usize) -> Result<Self> {
        let words = |count: usize| Buffer::new(device, 4 * count);
        Ok(Self {
            sent: vec![0; ranks],
            received: vec![0; ranks],
            incoming: words(1)?,
            outgoing: words(1)?,
            counts_in: words(MAX_RANKS + 1)?,
            counts_out: words(MAX_RANKS)?,
            send: words(1)?,
            receive: words(1)?,
        })
    }
}

/// Words of the fields of an element, with padding to a multiple of 4.
fn record_words(fields: &[MessageField]) -> usize {
    fields.iter().map(|f| f.words as usize).sum::<usize>().next_multiple_of(4)
}

/// Returns where the items of each rank begin, and the number of all, which is also the last of these words.
pub(super) fn begins(counts: &[usize]) -> ([u32; MAX_RANKS + 2], usize) {
    let end = |rank: usize| counts.iter().take(rank).sum::<usize>();
    (std::array::from_fn(|rank| end(rank) as u32), end(counts.len()))
}

/// Room to spare for ghosts: a part of them, and some more. Their number changes little from one sort to the next.
const SPARE_PART: usize = 16;
const SPARE: usize = 64;

fn lock(exchange: &Mutex<Exchange>) -> MutexGuard<'_, Exchange> {
    exchange.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MessagePath {
    /// Requests particles, such as ghosts, from their owners. `marks` has a bit for each particle, which is set for these. The order of an
    /// owner's particles is any, but the same in both ranks. `boundary`: where the number of boundary blocks is, if there are any, and how many
    /// are expected. Returns this number if it is counted.
    pub fn request(&self, globals: u64, marks: &Buffer, boundary: [u64; 2], sizes: Sizes) -> Result<Option<u32>> {
        let (d, ranks) = (&*self.device, self.messages.ranks());
        let n_words = self.ranges.begin[ranks].div_ceil(32);
        let mut exchange = lock(&self.ghosts);
        let x = &mut *exchange;
        let mut args = MarkedArgs {
            globals,
            marks: marks.address(),
            counts: x.counts_in.address(),
            list: 0,
            n_words,
            boundary_room: if sizes == Sizes::Kept { boundary[1] as u32 } else { u32::MAX },
            ranges: self.ranges,
            boundary: boundary[0],
            first: [0; MAX_RANKS + 2],
        };
        let mut found = None;
        if sizes != Sizes::Kept {
            x.counts_in.clear()?;
            launch(d, self.kernels.list_marked, n_words as usize, 256, &args)?;
            let counted = words(&x.counts_in.download()?);
            let received: Vec<_> = counted[..ranks].iter().map(|n| *n as usize).collect();
            x.sent = sizes.room(self.exchange_counts(&received)?, SPARE_PART, SPARE);
            x.received = sizes.room(received, SPARE_PART, SPARE);
            self.fit_lists(x)?;
            found = Some(counted[MAX_RANKS]);
        }
        (args.first, _) = begins(&x.received);
        args.list = x.incoming.address();
        x.counts_in.clear()?;
        launch(d, self.kernels.list_marked, n_words as usize, 256, &args)?;
        let mut send = self.lists(&x.received, &x.incoming);
        let mut receive = self.lists(&x.sent, &x.outgoing);
        send.extend(self.others().map(|r| (r, x.counts_in.address() + 4 * r as u64, 4)));
        receive.extend(self.others().map(|r| (r, x.counts_out.address() + 4 * r as u64, 4)));
        self.transfer(&send, &receive).map(|()| found)
    }

    /// Offers elements to other ranks, which get their numbers. At the address `offers` is a word for each of `n` elements, that of
    /// number `first` first: a bit for each rank that gets this element. Returns the number of elements that others get, each counted
    /// for each rank.
    pub(super) fn offer(&self, offers: u64, first: u32, n: usize) -> Result<usize> {
        let (d, ranks) = (&*self.device, self.messages.ranks());
        let mut exchange = lock(&self.offered);
        let x = &mut *exchange;
        let counts = x.counts_out.address();
        let mut args = OfferArgs { offers, counts, list: 0, first_element: first, n: n as u32, first: [0; MAX_RANKS] };
        x.counts_out.clear()?;
        launch(d, self.sort.list_offered, n, 256, &args)?;
        x.sent = words(&x.counts_out.download()?)[..ranks].iter().map(|n| *n as usize).collect();
        x.received = self.exchange_counts(&x.sent)?;
        self.fit_lists(x)?;
        let (begin, _) = begins(&x.sent);
        args.first.copy_from_slice(&begin[..MAX_RANKS]);
        args.list = x.outgoing.address();
        x.counts_out.clear()?;
        launch(d, self.sort.list_offered, n, 256, &args)?;
        let mut send = self.lists(&x.sent, &x.outgoing);
        let mut receive = self.lists(&x.received, &x.incoming);
        send.extend(self.others().map(|r| (r, x.counts_out.address() + 4 * r as u64, 4)));
        receive.extend(self.others().map(|r| (r, x.counts_in.address() + 4 * r as u64, 4)));
        self.transfer(&send, &receive)?;
        Ok(x.sent.iter().sum())
    }

    /// Returns the number that each rank has for this one. `counts`: those of this rank for each.
    pub(super) fn exchange_counts(&self, counts: &[usize]) -> Result<Vec<usize>> {
        let send = self.others().map(|r| (r, (counts[r] as u32).to_le_bytes().to_vec())).collect();
        let sizes: Vec<_> = self.others().map(|r| (r, 4)).collect();
        let start = Instant::now();
        let received = self.messages.transfer(send, &sizes)?;
        self.waited.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        let mut all = vec![0; counts.len()];
        for (r, count) in self.others().zip(received) {
            all[r] = words(&count)[0] as usize;
        }
        Ok(all)
    }

    /// Returns the pieces of lists of elements.
    fn lists(&self, counts: &[usize], memory: &Buffer) -> Vec<Piece> {
        let (begin, _) = begins(counts);
        self.others().map(|r| (r, memory.address() + 4 * u64::from(begin[r]), 4 * counts[r])).collect()
    }

    fn fit_lists(&self, x: &mut Exchange) -> Result<()> {
        self.fit(&mut x.incoming, 4 * x.received.iter().sum::<usize>())?;
        self.fit(&mut x.outgoing, 4 * x.sent.iter().sum::<usize>())
    }

    /// Makes room in a buffer, whose contents are lost then.
    pub(super) fn fit(&self, buffer: &mut Buffer, bytes: usize) -> Result<()> {
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
        self.exchange(&mut lock(&self.ghosts), globals, fields, pauses, overlapped)
    }

    /// Sends what this rank has offered to others, and receives what they have offered to this one. Returns the address of the numbers of the received elements, and how many they are.
    pub(super) fn exchange_offered(&self, globals: u64, fields: &[MessageField]) -> Result<(u64, usize)> {
        let mut x = lock(&self.offered);
        self.exchange(&mut x, globals, fields, false, None)?;
        Ok((x.incoming.address(), x.received.iter().sum()))
    }

    fn exchange(
        &self,
        x: &mut Exchange,
        globals: u64,
        fields: &[MessageField],
        pauses: bool,
        overlapped: Option<&mut dyn FnMut() -> Result<()>>,
    ) -> Result<()> {
        if fields.len() > MAX_GHOST_FIELDS {
            return Err(Error::Run(format!("{} fields of ghosts; at most {MAX_GHOST_FIELDS}", fields.len())));
        }
        let record = record_words(fields);
        let heads = HEAD_WORDS as usize * self.messages.ranks();
        let ((sends, sent), (receives, received)) = (begins(&x.sent), begins(&x.received));
        self.fit(&mut x.send, 4 * (heads + sent * record))?;
        self.fit(&mut x.receive, 4 * (heads + received * record))?;
        let mut args = MessageArgs {
            head: self.head(globals, pauses),
            particles: x.outgoing.address(),
            counts: x.counts_out.address(),
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
        let (particles, counts, records) = (x.incoming.address(), x.counts_in.address(), x.receive.address());
        let args = MessageArgs { particles, counts, records, begin: receives, ..args };
        launch(&*self.device, self.kernels.unpack, received.max(1), 256, &args)?;
        if forked { self.device.join() } else { Ok(()) }
    }
}
