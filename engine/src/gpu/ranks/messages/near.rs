//! Tiles of a staged list that ranks in several processes send each other at a rebuild.

use super::MessagePath;
use super::exchange::{Sizes, begins};
use crate::device::args::{Bounds, MAX_RANKS, NearTilesArgs, StagedView, TILE_WORDS};
use crate::device::{Device, Kernel};
use crate::gpu::arrays::{Buffer, launch, words};
use crate::gpu::staged::GROUP;
use crate::processes::Piece;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::StateView;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::debug;

/// Room to spare for tiles: a part of them, and some more. They grow while their particles move apart, from one sort to the next.
const SPARE_PART: usize = 4;
const SPARE: usize = 8;

/// Kernels of `near_tiles.cuh`, and messages.
pub(super) struct NearTiles {
    find: Kernel,
    unpack: Kernel,
    /// How many tiles each rank gets, and how many this one gets from each.
    counts_out: Buffer,
    counts_in: Buffer,
    messages: Mutex<TileMessages>,
}

/// Records of tiles, rank by rank, and for how many there is room.
struct TileMessages {
    sent: Vec<usize>,
    received: Vec<usize>,
    send: Buffer,
    receive: Buffer,
}

impl NearTiles {
    pub fn new(device: &Arc<dyn Device>, module: u64, ranks: usize) -> Result<Self> {
        let words = |count: usize| Buffer::new(device, 4 * count);
        let (send, receive) = (words(1)?, words(1)?);
        Ok(Self {
            find: device.kernel(module, "find_near_tiles")?,
            unpack: device.kernel(module, "unpack_tiles")?,
            counts_out: words(MAX_RANKS)?,
            counts_in: words(MAX_RANKS)?,
            messages: Mutex::new(TileMessages { sent: vec![0; ranks], received: vec![0; ranks], send, receive }),
        })
    }
}

impl MessagePath {
    /// Completes the boxes of groups of tiles.
    pub fn complete_groups(&self, groups: &Bounds) -> Result<()> {
        let (mut send, mut receive) = self.parts(groups.center, 4, GROUP);
        let (s, r) = self.parts(groups.half, 4, GROUP);
        send.extend(s);
        receive.extend(r);
        self.transfer(&send, &receive)
    }

    /// Gives the other ranks the own tiles, with the positions of their particles, that may have neighbors of theirs within `r_list`: those
    /// near one of their groups. A rank then finds no other tiles of others. Groups of groups have been bounded.
    pub fn exchange_near_tiles(&self, state: &StateView, list: &StagedView, r_list: f64, sizes: Sizes) -> Result<()> {
        let (d, near, own) = (&*self.device, &self.near, self.own().len());
        let mut messages = near.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let m = &mut *messages;
        let mut args = NearTilesArgs {
            state: *state,
            tiles: list.tiles,
            groups: list.groups,
            tops: list.tops,
            ranges: self.ranges,
            counts: near.counts_out.address(),
            records: 0,
            first: [0; MAX_RANKS + 2],
            r_list,
        };
        let find = |args: &NearTilesArgs| {
            near.counts_out.clear()?;
            launch(d, near.find, own.div_ceil(GROUP) * 256, 256, args)
        };
        if sizes != Sizes::Kept {
            find(&args)?;
            let counted = words(&near.counts_out.download()?);
            let sent: Vec<_> = counted[..self.messages.ranks()].iter().map(|n| *n as usize).collect();
            debug!("{} of {} tiles are near other ranks", sent.iter().sum::<usize>(), own.div_ceil(32));
            m.received = sizes.room(self.exchange_counts(&sent)?, SPARE_PART, SPARE);
            m.sent = sizes.room(sent, SPARE_PART, SPARE);
            let bytes = |room: &[usize]| 4 * TILE_WORDS as usize * room.iter().sum::<usize>();
            self.fit(&mut m.send, bytes(&m.sent))?;
            self.fit(&mut m.receive, bytes(&m.received))?;
        }
        (args.first, _) = begins(&m.sent);
        args.records = m.send.address();
        find(&args)?;
        let record = 4 * TILE_WORDS as usize;
        let pieces = |room: &[usize], memory: &Buffer, counts: &Buffer| -> Vec<Piece> {
            let (first, _) = begins(room);
            let records = |r: usize| (r, memory.address() + (record * first[r] as usize) as u64, record * room[r]);
            let count = |r: usize| (r, counts.address() + 4 * r as u64, 4);
            self.others().map(records).chain(self.others().map(count)).collect()
        };
        let send = pieces(&m.sent, &m.send, &near.counts_out);
        self.transfer(&send, &pieces(&m.received, &m.receive, &near.counts_in))?;
        let (first, received) = begins(&m.received);
        let args = NearTilesArgs { counts: near.counts_in.address(), records: m.receive.address(), first, ..args };
        launch(d, near.unpack, received * 32, 128, &args)
    }
}
