//! The rebuild of a small system in two kernels, the first of which is a persistent one; see `kernels/galamost/rebuild_at_once.cuh`.

use super::{Rebuild, SortWhen};
use crate::device::args::{
    CellGrid, Excluded, LINK_TABLES, LinkTable, ListArgs, MOST_COPIERS, MemberListArgs, RebuildArgs, RebuildControl,
    SCAN_BLOCK, TILE, TILE_WARPS,
};
use crate::device::{Device, Kernel, SourceUnit};
use crate::gpu::arrays::{Buffer, launch};
use galamost_plugin_api::abi::Extent;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::views::{LinkView, StateView};
use std::sync::Arc;

/// Largest number of particles for which grid barriers are faster than launches; measured up to 64,000.
const MAX_PARTICLES: usize = 100_000;

/// Blocks of the sort for each multiprocessor: with more of them, barriers take longer than is gained.
const SORT_BLOCKS: u32 = 2;

/// The kernels of a rebuild.
pub(super) struct AtOnce {
    sort: Kernel,
    /// Blocks of `sort`.
    blocks: u32,
    build: Kernel,
    build_excluding: Kernel,
    build_of_members: Kernel,
    /// `RebuildControl`.
    control: Buffer,
}

/// Returns the source of the kernels.
pub fn unit(precision: Precision) -> SourceUnit {
    let text = "#include \"galamost/links.cuh\"\n#include \"galamost/rebuild_at_once.cuh\"\n";
    SourceUnit::new("rebuild_at_once", text, precision)
}

impl AtOnce {
    /// Compiles the kernels, and the one that only looks up links. Returns `None` if separate kernels are as fast, or if blocks cannot
    /// wait for each other.
    pub fn load(device: &Arc<dyn Device>, precision: Precision, n: usize) -> Result<Option<(Self, Kernel)>> {
        if n > MAX_PARTICLES || !device.supports_grid_barrier() {
            return Ok(None);
        }
        let module = device.compile(&unit(precision))?;
        let kernel = |name: &str| device.kernel(module, name);
        let sort = kernel("sort_at_once")?;
        let useful = (MOST_COPIERS as usize * n).div_ceil(SCAN_BLOCK as usize) as u32;
        let blocks =
            device.max_resident_blocks(sort, SCAN_BLOCK)?.min(useful).min(SORT_BLOCKS * device.multiprocessors());
        if blocks == 0 {
            return Ok(None);
        }
        let kernels = Self {
            sort,
            blocks,
            build: kernel("build_sorted")?,
            build_excluding: kernel("build_sorted_excluding")?,
            build_of_members: kernel("build_sorted_members")?,
            control: Buffer::new(device, size_of::<RebuildControl>())?,
        };
        Ok(Some((kernels, kernel("index_links")?)))
    }

    /// Launches the rebuild with these [arguments](Self::arguments).
    pub fn run(&self, r: &Rebuild, args: &RebuildArgs) -> Result<()> {
        let (d, excluded) = (&*r.device, &args.list.list.excluded);
        d.profile().set_part("neighbor list");
        let pointer = [std::ptr::from_ref(args).cast_mut().cast()];
        // SAFETY: the kernel takes this struct, whose layout is compared with that of CUDA when it is compiled; its views describe arrays of
        // this device
        unsafe { d.launch_cooperative(self.sort, Extent::from(self.blocks), SCAN_BLOCK, &pointer)? };
        let (kernel, threads) = if r.members.is_some() || r.r_list == 0.0 {
            (self.build_of_members, r.n)
        } else if excluded.excluded_count == 0 && excluded.molecule == 0 {
            (self.build, r.n.div_ceil(TILE as usize) * 32)
        } else {
            (self.build_excluding, r.n.div_ceil(TILE as usize) * 32)
        };
        launch(d, kernel, threads, 32 * TILE_WARPS, args)
    }

    /// Returns the arguments of both kernels: the list is rebuilt `always`, or if the globals request it. The second one reads sorted positions, tags and cells from their scratch memory.
    pub fn arguments(
        &self,
        r: &Rebuild,
        state: &StateView,
        links: &[(LinkView, u64, u64)],
        excluded: Excluded,
        always: bool,
    ) -> Result<RebuildArgs> {
        let grid = r.sort_grid(SortWhen::Due);
        let copy = |address: u64| {
            r.scratch_of(address).ok_or_else(|| Error::Run("positions and tags do not follow the sort".into()))
        };
        let sorted = StateView {
            pos_type: DevicePtr::new(copy(state.pos_type.address)?),
            tag: DevicePtr::new(copy(state.tag.address)?),
            ..*state
        };
        let sorted_grid = CellGrid { cell_of: r.arrival.address(), ..grid };
        let [first, end, members] = r.members.as_ref().map_or([0; 3], |m| m.each_ref().map(Buffer::address));
        let mut tables = [LinkTable { links: LinkView::empty(2), tag_count: 0, tag_words: 0 }; LINK_TABLES];
        for (table, (links, tag_count, tag_words)) in tables.iter_mut().zip(links) {
            *table = LinkTable { links: *links, tag_count: *tag_count, tag_words: *tag_words };
        }
        Ok(RebuildArgs {
            sort: r.sort_args(state, grid),
            list: MemberListArgs {
                list: ListArgs { state: sorted, grid: sorted_grid, list: r.view(), excluded },
                first,
                end,
                members,
            },
            links: tables,
            arrays: r.moved_arrays(),
            control: self.control.address(),
            n_links: links.len() as u32,
            n_arrays: r.moved.len() as u32,
            always: u32::from(always),
            reserved: 0,
        })
    }
}
