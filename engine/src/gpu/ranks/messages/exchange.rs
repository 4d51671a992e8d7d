//! What ranks send each other: lists of elements, which are particles, tiles or places in an order, and a record for each of them.
//!
//! A device knows how many elements there are, but the host, which queues the messages, need not wait for that: messages have room to spare.
//! If there is too little, the run halts, and the rebuild begins again with larger messages.

use super::MessagePath;
use crate::device::Device;
use crate::device::args::{
    ElementLists, HEAD_WORDS, MAX_MESSAGE_FIELDS, MAX_RANKS, MarkedArgs, MessageArgs, MessageField,
};
use crate::gpu::arrays::{Buffer, launch, words};
use crate::processes::Piece;
use galamost_plugin_api::error::{Error, Result};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Numbers are counted at the first two exchanges, because those of the first sort are larger than later ones, and then at one of so many.
const RECOUNT: u32 = 64;

/// Room to spare in the messages between two ranks.
#[derive(Clone, Copy)]
pub(super) struct Spare {
    /// This part of the elements that were counted, and some more, if there are any.
    pub part: usize,
    pub few: usize,
    /// The least room, and that between ranks with consecutive numbers.
    pub least: usize,
    pub adjacent: usize,
}

/// Factor by which room to spare grows at most while there is too little.
const MOST_GROWTH: usize = 16;

/// When elements are counted, and how much room messages have afterwards.
struct Sizes {
    rank: usize,
    spare: Spare,
    /// By which the room to spare has grown.
    growth: usize,
    /// Exchanges until now.
    exchanges: u32,
}

impl Sizes {
    /// Lets the next exchange count its elements. There is more room to spare afterwards if there was too little.
    fn forget(&mut self, too_little: bool) {
        self.exchanges = 0;
        if too_little {
            self.growth = (2 * self.growth).min(MOST_GROWTH);
        }
    }

    /// Returns whether this exchange counts its elements. The same in all ranks.
    fn counts(&mut self) -> bool {
        let before = self.exchanges;
        self.exchanges = before.wrapping_add(1);
        before < 2 || before.is_multiple_of(RECOUNT)
    }

    /// Returns the room for the numbers that were counted.
    fn room(&self, counts: &[usize]) -> Vec<usize> {
        let Spare { part, few, least, adjacent } = self.spare;
        let (part, few) = ((part / self.growth).max(1), few * self.growth);
        let room = |(rank, n): (usize, &usize)| {
            // the second exchange counts again
            if rank == self.rank || self.exchanges == 1 || tight() {
                return *n;
            }
            let spare = if *n > 0 { n + n / part + few } else { 0 };
            spare.max(if rank.abs_diff(self.rank) == 1 { adjacent } else { least })
        };
        counts.iter().enumerate().map(room).collect()
    }
}

/// Elements that ranks send each other, rank by rank.
pub(super) struct Exchange {
    sizes: Sizes,
    /// For how many elements there is room in the messages of this rank to each other one.
    pub sent: Vec<usize>,
    /// The same in those from each other one.
    pub received: Vec<usize>,
    /// The received elements.
    pub incoming: Buffer,
    /// The sent elements.
    pub outgoing: Buffer,
    /// How many they are of each rank.
    pub counts_in: Buffer,
    pub counts_out: Buffer,
    /// A head and records for each rank.
    pub send: Buffer,
    pub receive: Buffer,
}

impl Exchange {
    pub fn new(device: &Arc<dyn Device>, rank: usize, ranks: usize, spare: Spare) -> Result<Mutex<Self>> {
        let words = |count: usize| Buffer::new(device, 4 * count);
        Ok(Mutex::new(Self {
            sizes: Sizes { rank, spare, growth: 1, exchanges: 0 },
            sent: vec![0; ranks],
            received: vec![0; ranks],
            incoming: words(1)?,
            outgoing: words(1)?,
            counts_in: words(MAX_RANKS + 1)?,
            counts_out: words(MAX_RANKS)?,
            send: words(1)?,
            receive: words(1)?,
        }))
    }

    /// Lets the next exchange count its elements. There is more room to spare afterwards if there was too little.
    pub fn forget(&mut self, too_little: bool) {
        self.sizes.forget(too_little);
    }

    /// Returns whether this exchange counts its elements. The same in all ranks.
    pub fn counts(&mut self) -> bool {
        self.sizes.counts()
    }

    /// Returns the lists of sent elements, to be made by a kernel.
    pub fn lists_out(&self) -> ElementLists {
        let (first, _) = begins(&self.sent);
        ElementLists { counts: self.counts_out.address(), list: self.outgoing.address(), first }
    }

    /// Returns the lists of received elements.
    pub fn lists_in(&self) -> ElementLists {
        let (first, _) = begins(&self.received);
        ElementLists { counts: self.counts_in.address(), list: self.incoming.address(), first }
    }

    /// Returns how many elements are received at most.
    pub fn most_received(&self) -> usize {
        self.received.iter().sum()
    }
}

/// Words of the fields of an element, with padding to a multiple of 4 if kernels copy some of them by fours.
fn record_words(fields: &[MessageField]) -> usize {
    let words = fields.iter().map(|f| f.words as usize).sum::<usize>();
    if fields.iter().any(|f| f.words % 4 == 0) { words.next_multiple_of(4) } else { words }
}

/// Returns where the items of each rank begin, and the number of all, which is also the last of these words.
pub(super) fn begins(counts: &[usize]) -> ([u32; MAX_RANKS + 2], usize) {
    let end = |rank: usize| counts.iter().take(rank).sum::<usize>();
    (std::array::from_fn(|rank| end(rank) as u32), end(counts.len()))
}

/// `GALAMOST_SPARE=0` leaves no room to spare, so that rebuilds often begin again.
fn tight() -> bool {
    std::env::var("GALAMOST_SPARE").as_deref() == Ok("0")
}

pub(super) fn lock(exchange: &Mutex<Exchange>) -> MutexGuard<'_, Exchange> {
    exchange.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MessagePath {
    /// Requests particles from their owners: ghosts, or with `migrants` those that become particles of this rank. `marks` has a bit for each
    /// particle, which is set for these. The order of an owner's particles is any, but the same in both ranks. `boundary`: where the number of
    /// boundary blocks is, if there are any, and how many are expected. Returns this number if it is counted, which it is if it `must` be.
    pub fn request(
        &self,
        globals: u64,
        marks: &Buffer,
        migrants: bool,
        boundary: [u64; 2],
        must: bool,
    ) -> Result<Option<u32>> {
        let n_words = self.ranges.begin[self.messages.ranks()].div_ceil(32);
        let mut exchange = lock(if migrants { &self.migrants } else { &self.ghosts });
        let x = &mut *exchange;
        let list = |x: &Exchange, list: u64, boundary_room: u32| {
            let lists = ElementLists { list, ..x.lists_in() };
            let (marks, boundary) = (marks.address(), boundary[0]);
            let args = MarkedArgs { globals, marks, lists, n_words, boundary_room, ranges: self.ranges, boundary };
            x.counts_in.clear()?;
            launch(&*self.device, self.kernels.list_marked, n_words as usize, 256, &args)
        };
        let counts = x.counts() || must;
        let mut found = None;
        if counts {
            list(x, 0, u32::MAX)?;
            let counted = words(&x.counts_in.download()?);
            self.make_room(x, &counted, true)?;
            found = Some(counted[MAX_RANKS]);
        }
        list(x, x.incoming.address(), if counts { u32::MAX } else { boundary[1] as u32 })?;
        let send = self.lists(&x.received, &x.incoming, &x.counts_in);
        self.transfer(&send, &self.lists(&x.sent, &x.outgoing, &x.counts_out)).map(|()| found)
    }

    /// Sends other ranks the elements that `list` lists for them, with these fields, and receives those of others. A halt of one rank applies to all. Returns
    /// how many this rank sends, if it has counted them.
    pub(super) fn exchange_elements(
        &self,
        x: &mut Exchange,
        globals: u64,
        fields: &[MessageField],
        list: impl Fn(ElementLists) -> Result<()>,
    ) -> Result<Option<u32>> {
        let mut found = None;
        if x.counts() {
            x.counts_out.clear()?;
            list(ElementLists { list: 0, ..x.lists_out() })?;
            let counted = words(&x.counts_out.download()?);
            self.make_room(x, &counted, false)?;
            found = Some(counted.iter().sum());
        }
        x.counts_out.clear()?;
        list(x.lists_out())?;
        let send = self.lists(&x.sent, &x.outgoing, &x.counts_out);
        let receive = self.lists(&x.received, &x.incoming, &x.counts_in);
        self.exchange(x, globals, fields, false, [send, receive], None).map(|()| found)
    }

    /// Makes room in messages for elements that this rank has counted: those that it sends to each rank, or those that it `requests`.
    pub(super) fn make_room(&self, x: &mut Exchange, counted: &[u32], requests: bool) -> Result<()> {
        let own: Vec<usize> = counted[..self.messages.ranks()].iter().map(|n| *n as usize).collect();
        let others = self.exchange_counts(&own)?;
        let (sent, received) = if requests { (others, own) } else { (own, others) };
        (x.sent, x.received) = (x.sizes.room(&sent), x.sizes.room(&received));
        // the first sort may have needed much more
        for buffer in [&mut x.incoming, &mut x.outgoing, &mut x.send, &mut x.receive] {
            *buffer = Buffer::new(&self.device, 4)?;
        }
        self.fit(&mut x.incoming, 4 * x.received.iter().sum::<usize>())?;
        self.fit(&mut x.outgoing, 4 * x.sent.iter().sum::<usize>())
    }

    /// Returns the number that each rank has for this one. `counts`: those of this rank for each.
    fn exchange_counts(&self, counts: &[usize]) -> Result<Vec<usize>> {
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

    /// Returns the pieces of lists of elements, and of their numbers.
    fn lists(&self, room: &[usize], memory: &Buffer, counts: &Buffer) -> Vec<Piece> {
        let (begin, _) = begins(room);
        let list = |r: usize| (r, memory.address() + 4 * u64::from(begin[r]), 4 * room[r]);
        self.others().map(list).chain(self.words_of_ranks(counts)).collect()
    }

    /// Returns the word of each other rank in memory.
    pub(super) fn words_of_ranks(&self, memory: &Buffer) -> impl Iterator<Item = Piece> + use<> {
        let address = memory.address();
        self.others().map(move |r| (r, address + 4 * r as u64, 4))
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
        self.exchange(&mut lock(&self.ghosts), globals, fields, pauses, [vec![], vec![]], overlapped)
    }

    /// As [`Self::exchange_ghosts`], for particles that become those of other ranks.
    pub fn exchange_migrants(&self, globals: u64, fields: &[MessageField]) -> Result<()> {
        self.exchange(&mut lock(&self.migrants), globals, fields, false, [vec![], vec![]], None)
    }

    /// Sends and receives records, and other pieces with them.
    fn exchange(
        &self,
        x: &mut Exchange,
        globals: u64,
        fields: &[MessageField],
        pauses: bool,
        [mut send, mut receive]: [Vec<Piece>; 2],
        overlapped: Option<&mut dyn FnMut() -> Result<()>>,
    ) -> Result<()> {
        if fields.len() > MAX_MESSAGE_FIELDS {
            return Err(Error::Run(format!("{} fields in a message; at most {MAX_MESSAGE_FIELDS}", fields.len())));
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
            fields: [MessageField::default(); MAX_MESSAGE_FIELDS],
        };
        args.fields[..fields.len()].copy_from_slice(fields);
        launch(&*self.device, self.kernels.pack, sent.max(1), 256, &args)?;
        if overlapped.is_some() {
            self.device.fork()?;
        }
        let piece = |r: usize, room: &[usize], begin: &[u32], memory: &Buffer| {
            let at = HEAD_WORDS as usize * r + begin[r] as usize * record;
            (r, memory.address() + 4 * at as u64, 4 * (HEAD_WORDS as usize + room[r] * record))
        };
        send.extend(self.others().map(|r| piece(r, &x.sent, &sends, &x.send)));
        receive.extend(self.others().map(|r| piece(r, &x.received, &receives, &x.receive)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_room_to_spare_until_elements_are_counted_again() {
        let spare = Spare { part: 4, few: 8, least: 2, adjacent: 10 };
        let mut sizes = Sizes { rank: 1, spare, growth: 1, exchanges: 1 };
        assert_eq!(sizes.room(&[0, 0, 16, 16, 0]), [0, 0, 16, 16, 0]);
        assert!(sizes.counts());
        assert_eq!(sizes.room(&[0, 0, 16, 16, 0]), [10, 0, 28, 28, 2]);
        let forget = |sizes: &mut Sizes, too_little| {
            sizes.forget(too_little);
            assert!(sizes.counts() && sizes.counts());
        };
        forget(&mut sizes, false);
        assert_eq!(sizes.room(&[0, 0, 16]), [10, 0, 28]);
        forget(&mut sizes, true);
        assert_eq!(sizes.room(&[0, 0, 16]), [10, 0, 40]);
        (0..10).for_each(|_| forget(&mut sizes, true));
        assert_eq!(sizes.room(&[0, 0, 16]), [10, 0, 32 + 8 * 16]);
        sizes.forget(false);
        let counted: Vec<_> = (0..130).filter(|_| sizes.counts()).collect();
        assert_eq!(counted, [0, 1, 64, 128]);
    }
}
