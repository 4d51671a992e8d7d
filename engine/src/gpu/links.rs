//! Bonds, angles, dihedrals, impropers and exclusions on the device.

use super::arrays::{Buffer, launch};
use crate::device::args::{Excluded, LINK_TABLES, PatchArgs, PatchExclusionsArgs};
use crate::device::{Device, Kernel, SourceUnit};
use crate::pipeline::Only;
use crate::state::molecules::MoleculeRule;
use crate::state::topology::{LinkRows, LinkTables, Touched};
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::LinkList;
use galamost_plugin_api::views::{LinkView, ListView, StateView};
use std::sync::Arc;

/// Rows by tag in the host's layout, with `capacity` entries each.
struct TagRows {
    count: Buffer,
    words: Buffer,
    width: usize,
    capacity: usize,
}

impl TagRows {
    /// Returns `None` if all rows are empty.
    fn new(device: &Arc<dyn Device>, rows: &LinkRows) -> Result<Option<Self>> {
        if rows.capacity == 0 {
            return Ok(None);
        }
        let (count, words) = (Buffer::of_words(device, rows.counts())?, Buffer::of_words(device, rows.words())?);
        Ok(Some(Self { count, words, width: rows.width, capacity: rows.capacity }))
    }
}

/// The links of one list: rows by tag, and rows by index for the kernels.
struct LinkTable {
    by_tag: TagRows,
    words: Buffer,
    count: Buffer,
}

/// All links of a system.
pub struct DeviceLinks {
    device: Arc<dyn Device>,
    n: usize,
    /// Bonds, angles, dihedrals, impropers and scaled special pairs.
    tables: [Option<LinkTable>; LINK_TABLES],
    exclusions: Option<TagRows>,
    /// The molecule of each tag, and which pairs are neighbors.
    molecules: Option<(Buffer, Only)>,
    /// Counts of 0, for lists without links.
    no_links: Buffer,
    /// Staging memory for changed rows.
    patch: Buffer,
    /// `patch_links` and `patch_exclusions`, compiled at their first use.
    kernels: Option<[Kernel; 2]>,
    precision: Precision,
}

/// Returns the source unit of the kernels that update changed rows.
pub fn unit(precision: Precision) -> SourceUnit {
    let text = "#include \"galamost/patch.cuh\"\n";
    SourceUnit::new("patch", text, precision)
}

/// Returns the rows of a table.
fn rows(tables: &LinkTables, table: usize) -> Option<&LinkRows> {
    if table + 1 < LINK_TABLES { Some(tables.links(table)) } else { tables.special.as_ref() }
}

/// Threads of a block.
const BLOCK: u32 = 128;

impl DeviceLinks {
    /// Uploads the link tables of a topology.
    pub fn new(
        device: &Arc<dyn Device>,
        precision: Precision,
        tables: &LinkTables,
        molecules: Option<&MoleculeRule>,
    ) -> Result<Self> {
        let n = tables.n();
        let molecules = match molecules {
            Some(rule) => Some((Buffer::of_words(device, &rule.of)?, rule.only)),
            None => None,
        };
        let mut links = Self {
            device: device.clone(),
            n,
            tables: Default::default(),
            exclusions: None,
            molecules,
            no_links: Buffer::new(device, 4 * n)?,
            patch: Buffer::new(device, 4)?,
            kernels: None,
            precision,
        };
        links.upload_all(tables)?;
        Ok(links)
    }

    fn table(&self, rows: &LinkRows) -> Result<Option<LinkTable>> {
        let Some(by_tag) = TagRows::new(&self.device, rows)? else { return Ok(None) };
        let words = Buffer::new(&self.device, 4 * rows.capacity * rows.width * self.n)?;
        Ok(Some(LinkTable { by_tag, words, count: Buffer::new(&self.device, 4 * self.n)? }))
    }

    /// Uploads all tables. The rows by index are valid after [`super::rebuild::Rebuild::index_links`].
    pub fn upload_all(&mut self, tables: &LinkTables) -> Result<()> {
        for which in 0..self.tables.len() {
            // free the old table first: both together may not fit
            self.tables[which] = None;
            self.tables[which] = rows(tables, which).map_or(Ok(None), |rows| self.table(rows))?;
        }
        self.exclusions = tables.exclusions.as_ref().map_or(Ok(None), |rows| TagRows::new(&self.device, rows))?;
        Ok(())
    }

    /// Returns true if changed rows fit into the tables. Otherwise, [`Self::upload_all`] reallocates them at new
    /// addresses.
    pub fn fits(&self, tables: &LinkTables) -> bool {
        let capacity = |t: &Option<TagRows>| t.as_ref().map_or(0, |t| t.capacity);
        let needed = |k: usize| rows(tables, k).map_or(0, |rows| rows.capacity);
        let links = (0..LINK_TABLES).all(|k| self.tables[k].as_ref().map_or(0, |t| t.by_tag.capacity) == needed(k));
        links && capacity(&self.exclusions) == tables.exclusions.as_ref().map_or(0, |rows| rows.capacity)
    }

    /// Uploads changed rows into the tables by tag and by index, and removes newly excluded pairs from the neighbor
    /// list. Only these rows are copied; addresses do not change.
    pub fn update_rows(
        &mut self,
        state: &StateView,
        list: &ListView,
        tables: &LinkTables,
        touched: &Touched,
    ) -> Result<()> {
        let [patch_links, patch_exclusions] = match self.kernels {
            Some(kernels) => kernels,
            None => {
                let module = self.device.compile(&unit(self.precision))?;
                let kernel = |name| self.device.kernel(module, name);
                *self.kernels.insert([kernel("patch_links")?, kernel("patch_exclusions")?])
            }
        };
        let [bonds, angles, dihedrals, impropers] = touched.links();
        let lists = [bonds, angles, dihedrals, impropers, &touched.special, &touched.exclusions];
        let rows = |k: usize| if k < LINK_TABLES { rows(tables, k) } else { tables.exclusions.as_ref() };
        // for each table: tags, counts, and complete rows
        let (mut patch, mut first) = (vec![], [0; LINK_TABLES + 1]);
        for (k, tags) in lists.iter().enumerate() {
            first[k] = patch.len() as u64;
            let Some(rows) = rows(k) else { continue };
            patch.extend_from_slice(tags);
            patch.extend(tags.iter().map(|t| rows.count(*t) as u32));
            for t in *tags {
                let end = patch.len() + rows.capacity * rows.width;
                patch.extend_from_slice(rows.row(*t));
                patch.resize(end, 0);
            }
        }
        if 4 * patch.len() > self.patch.bytes() {
            self.patch = Buffer::new(&self.device, (4 * patch.len()).next_power_of_two())?;
        }
        self.patch.queue_words(&patch)?;
        let at = |k: usize| self.patch.address() + 4 * first[k];
        for (k, table) in self.tables.iter().enumerate() {
            let (Some(t), rows) = (table, lists[k].len()) else { continue };
            if rows > 0 {
                let (count, words) = (t.by_tag.count.address(), t.by_tag.words.address());
                let links = self.table_view(t);
                let args = PatchArgs { state: *state, links, count, words, patch: at(k), rows: rows as u64 };
                launch(&*self.device, patch_links, rows, BLOCK, &args)?;
            }
        }
        if let (Some(t), rows @ 1..) = (&self.exclusions, lists[LINK_TABLES].len()) {
            let args = PatchExclusionsArgs {
                state: *state,
                list: *list,
                count: t.count.address(),
                words: t.words.address(),
                patch: at(LINK_TABLES),
                rows: rows as u32,
                capacity: t.capacity as u32,
            };
            launch(&*self.device, patch_exclusions, rows, BLOCK, &args)?;
        }
        Ok(())
    }

    /// Returns the links of all lists for plugins and kernels.
    pub fn views(&self) -> [LinkView; 4] {
        LinkList::ALL.map(|list| self.view(list))
    }

    /// Returns the links of a list.
    pub fn view(&self, list: LinkList) -> LinkView {
        let empty = LinkView { count: DevicePtr::new(self.no_links.address()), ..LinkView::empty(list.width()) };
        self.tables[list.index()].as_ref().map_or(empty, |t| self.table_view(t))
    }

    /// Returns the scaled special pairs.
    pub fn special(&self) -> LinkView {
        let empty = LinkView { count: DevicePtr::new(self.no_links.address()), ..LinkView::empty(2) };
        self.tables[LINK_TABLES - 1].as_ref().map_or(empty, |t| self.table_view(t))
    }

    fn table_view(&self, t: &LinkTable) -> LinkView {
        LinkView {
            capacity: t.by_tag.capacity as u32,
            stride: self.n as u32,
            words: DevicePtr::new(t.words.address()),
            count: DevicePtr::new(t.count.address()),
            ..LinkView::empty(t.by_tag.width as u32)
        }
    }

    /// Returns the tables to index after a sort, with the addresses of their counts and words by tag.
    pub fn to_index(&self) -> Vec<(LinkView, u64, u64)> {
        let present = self.tables.iter().flatten();
        present.map(|t| (self.table_view(t), t.by_tag.count.address(), t.by_tag.words.address())).collect()
    }

    /// Returns the pairs that are no neighbors.
    pub fn excluded(&self) -> Excluded {
        let (excluded_count, excluded, excluded_capacity) =
            self.exclusions.as_ref().map_or((0, 0, 0), |t| (t.count.address(), t.words.address(), t.capacity as u32));
        let (molecule, other) = self
            .molecules
            .as_ref()
            .map_or((0, 0), |(of, only)| (of.address(), u32::from(*only == Only::OtherMolecules)));
        Excluded { excluded_count, excluded, molecule, other, excluded_capacity }
    }
}
