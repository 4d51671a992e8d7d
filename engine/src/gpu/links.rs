//! Bonds, angles, dihedrals and exclusions on the device.

use super::args::LeftOut;
use super::arrays::Buffer;
use crate::device::Device;
use crate::molecules::MoleculeRule;
use crate::pipeline::{Exclusions, Only};
use crate::topology::{LinkRows, Topology};
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::LinkView;
use std::sync::Arc;

/// Links of one width: rows by tag, as the host makes them, and by index, as kernels read them.
struct Table {
    start: Buffer,
    tag_words: Buffer,
    words: Buffer,
    count: Buffer,
    width: u32,
    capacity: u32,
}

/// All links of a system.
pub struct DeviceLinks {
    device: Arc<dyn Device>,
    n: usize,
    tables: [Option<Table>; 3],
    exclusions: Option<(Buffer, Buffer)>,
    exclude: Exclusions,
    /// Molecule of each tag, and which pairs are taken in.
    molecules: Option<(Buffer, Only)>,
    /// For widths without links: every count is 0.
    no_links: Buffer,
}

impl DeviceLinks {
    /// Tables of a topology.
    pub fn new(
        device: &Arc<dyn Device>,
        topology: &Topology,
        exclude: Exclusions,
        molecules: Option<&MoleculeRule>,
        n: usize,
    ) -> Result<Self> {
        let no_links = Buffer::new(device, 4 * n)?;
        let molecules = match molecules {
            Some(rule) => Some((Buffer::of_words(device, &rule.of)?, rule.only)),
            None => None,
        };
        let tables = [None, None, None];
        let mut links = Self { device: device.clone(), n, tables, exclusions: None, exclude, molecules, no_links };
        links.renew(topology)?;
        Ok(links)
    }

    /// Tables after a change of topology; by index only after [`super::rebuild::Rebuild::index_links`].
    pub fn renew(&mut self, topology: &Topology) -> Result<()> {
        let rows = [
            LinkRows::new(&topology.bonds, self.n),
            LinkRows::new(&topology.angles, self.n),
            LinkRows::new(&topology.dihedrals, self.n),
        ];
        for (table, rows) in self.tables.iter_mut().zip(rows) {
            *table = None;
            if rows.longest == 0 {
                continue;
            }
            let words = rows.longest as usize * rows.width * self.n;
            *table = Some(Table {
                start: Buffer::of_words(&self.device, &rows.start)?,
                tag_words: Buffer::of_words(&self.device, &rows.words)?,
                words: Buffer::new(&self.device, 4 * words)?,
                count: Buffer::new(&self.device, 4 * self.n)?,
                width: rows.width as u32,
                capacity: rows.longest,
            });
        }
        self.exclusions = match topology.exclusions(self.exclude, self.n) {
            Some(e) => Some((Buffer::of_words(&self.device, &e.start)?, Buffer::of_words(&self.device, &e.words)?)),
            None => None,
        };
        Ok(())
    }

    /// Links of width `which + 2` as plugins and kernels see them.
    pub fn view(&self, which: usize) -> LinkView {
        let empty = LinkView { count: DevicePtr::new(self.no_links.address()), ..LinkView::empty(which as u32 + 2) };
        self.tables[which].as_ref().map_or(empty, |t| self.table_view(t))
    }

    fn table_view(&self, t: &Table) -> LinkView {
        LinkView {
            capacity: t.capacity,
            stride: self.n as u32,
            words: DevicePtr::new(t.words.address()),
            count: DevicePtr::new(t.count.address()),
            ..LinkView::empty(t.width)
        }
    }

    /// Tables that must be indexed after a sort.
    pub fn to_index(&self) -> Vec<(LinkView, u64, u64)> {
        let there = self.tables.iter().flatten();
        there.map(|t| (self.table_view(t), t.start.address(), t.tag_words.address())).collect()
    }

    /// Pairs that are no neighbours.
    pub fn left_out(&self) -> LeftOut {
        let (excluded_start, excluded) =
            self.exclusions.as_ref().map_or((0, 0), |(start, tags)| (start.address(), tags.address()));
        let (molecule, other) = self
            .molecules
            .as_ref()
            .map_or((0, 0), |(of, only)| (of.address(), u32::from(*only == Only::OtherMolecules)));
        LeftOut { excluded_start, excluded, molecule, other, reserved: 0 }
    }
}
