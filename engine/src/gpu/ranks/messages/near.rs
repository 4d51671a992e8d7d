//! Tiles of a staged list that ranks in several processes send each other at a rebuild.

use super::MessagePath;
use super::exchange::{Exchange, Spare, begins, lock};
use crate::device::args::{Bounds, ElementLists, NearTilesArgs, StagedView, TILE_WORDS};
use crate::device::{Device, Kernel};
use crate::gpu::arrays::{Buffer, launch, words};
use crate::gpu::staged::{GROUP, TILE};
use crate::processes::Piece;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::StateView;
use std::sync::{Arc, Mutex};
use tracing::debug;

/// Room to spare for tiles: they grow while their particles move apart, from one sort to the next.
const SPARE: Spare = Spare { part: 4, few: 32, least: 2, adjacent: 2 };

/// Kernels of `near_tiles.cuh`, and messages.
pub(super) struct NearTiles {
    find: Kernel,
    unpack: Kernel,
    pub exchange: Mutex<Exchange>,
}

impl NearTiles {
    pub fn new(device: &Arc<dyn Device>, module: u64, rank: usize, ranks: usize) -> Result<Self> {
        let k = |name: &str| device.kernel(module, name);
        let exchange = Exchange::new(device, rank, ranks, SPARE)?;
        Ok(Self { find: k("find_near_tiles")?, unpack: k("unpack_tiles")?, exchange })
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
    pub fn exchange_near_tiles(&self, state: &StateView, list: &StagedView, r_list: f64) -> Result<()> {
        let Some(near) = &self.near else { return Ok(()) };
        let (d, own) = (&*self.device, self.own().len());
        let mut exchange = lock(&near.exchange);
        let x = &mut *exchange;
        let StagedView { tiles, groups, tops, .. } = *list;
        let args = |lists: ElementLists, records: &Buffer| {
            let records = records.address();
            NearTilesArgs { state: *state, tiles, groups, tops, ranges: self.ranges, lists, records, r_list }
        };
        let find = |x: &Exchange, list: u64| {
            x.counts_out.clear()?;
            let args = args(ElementLists { list, ..x.lists_out() }, &x.send);
            launch(d, near.find, own.div_ceil(GROUP) * 256, 256, &args)
        };
        let record = 4 * TILE_WORDS as usize;
        if x.counts() {
            find(x, 0)?;
            let counted = words(&x.counts_out.download()?);
            debug!(
                "copies of tiles for other ranks: {}; own tiles: {}",
                counted.iter().sum::<u32>(),
                own.div_ceil(TILE)
            );
            self.make_room(x, &counted, false)?;
            self.fit(&mut x.send, record * x.sent.iter().sum::<usize>())?;
            let most = x.most_received();
            self.fit(&mut x.receive, record * most)?;
        }
        find(x, x.outgoing.address())?;
        let pieces = |room: &[usize], memory: &Buffer, counts: &Buffer| -> Vec<Piece> {
            let (first, _) = begins(room);
            let records = |r: usize| (r, memory.address() + (record * first[r] as usize) as u64, record * room[r]);
            self.others().map(records).chain(self.words_of_ranks(counts)).collect()
        };
        let send = pieces(&x.sent, &x.send, &x.counts_out);
        self.transfer(&send, &pieces(&x.received, &x.receive, &x.counts_in))?;
        launch(d, near.unpack, x.most_received() * 32, 128, &args(x.lists_in(), &x.receive))
    }
}
