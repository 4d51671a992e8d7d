//! Where the partners of links are after a sort.

use super::{BLOCK, Rebuild};
use crate::device::args::{CellGrid, LinkArgs, LinkTable};
use crate::gpu::arrays::launch;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::{LinkView, StateView};

impl Rebuild {
    /// Notes where each tag is, if that was not done after the last sort, and what the links of all particles are, if only those of own
    /// particles are known. Called for the first rank while the others wait.
    pub fn complete_index(&self, state: &StateView, links: &[(LinkView, u64, u64)]) -> Result<()> {
        let Some(rank) = &self.rank else { return Ok(()) };
        if self.shares() && !self.indexes_tags {
            rank.index_tags(state, CellGrid { sort_every: 1, ..self.grid })?;
        }
        if rank.distributes() && !self.links_of_all {
            let all = StateView { own_begin: 0, own_end: state.n_local, ..*state };
            self.launch_index_links(all, links, 1)?;
        }
        Ok(())
    }

    /// Launches only the kernels that index links, also after a change of topology.
    pub fn index_links(&self, state: &StateView, links: &[(LinkView, u64, u64)]) -> Result<()> {
        self.launch_index_links(self.indexed(state), links, 1)
    }

    /// Returns the view of the state in which the own particles are those whose links are looked up.
    pub(super) fn indexed(&self, state: &StateView) -> StateView {
        let own_only = self.rank.as_ref().is_some_and(|r| r.distributes() && !(r.number() == 0 && self.links_of_all));
        if own_only { *state } else { StateView { own_begin: 0, own_end: state.n_local, ..*state } }
    }

    /// Looks up the links of the own particles of `state`, if this rebuild sorts: with a multiple of `sort_every`.
    pub(super) fn launch_index_links(
        &self,
        state: StateView,
        links: &[(LinkView, u64, u64)],
        sort_every: u32,
    ) -> Result<()> {
        let n = (state.own_end - state.own_begin) as usize;
        for (view, tag_count, tag_words) in links {
            let table = LinkTable { links: *view, tag_count: *tag_count, tag_words: *tag_words };
            let args = LinkArgs { state, table, sort_every, reserved: 0 };
            launch(&*self.device, self.index_links, n, BLOCK, &args)?;
        }
        Ok(())
    }
}
