//! The neighbor list on the CPU: particles sorted by cell, rows filled cell range by cell range.

use crate::state::cells::Grid;
use crate::state::molecules::MoleculeRule;
use crate::state::store::Store;
use crate::state::topology::LinkRows;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::lanes::{BASE, LaneElement, V3, V4};
use galamost_plugin_api::precision::BoxScale;
use galamost_plugin_api::real::Real;
use galamost_plugin_api::views::{Globals, ListView};
use rayon::prelude::*;

/// Particles of one task.
pub const CHUNK: usize = 256;

/// Rows of neighbors.
#[derive(Debug, Default)]
pub struct List {
    /// Cutoff and buffer.
    pub r_list: f64,
    /// The cells.
    pub grid: Option<Grid>,
    /// First particle of each cell.
    pub cell_start: Vec<u32>,
    capacity: usize,
    index: Vec<u32>,
    count: Vec<u32>,
    cell_of: Vec<u32>,
    /// Which pairs are taken in, if not all.
    molecules: Option<MoleculeRule>,
}

impl List {
    /// For this radius.
    pub fn new(r_list: f64, molecules: Option<MoleculeRule>) -> Self {
        Self { r_list, molecules, ..Self::default() }
    }

    /// The order of particles by cell, and by tag inside a cell: `order[new] = old`.
    pub fn order<S: Store>(&mut self, pos: &[S::PosType], tag: &[u32], g: &Globals) -> Vec<u32> {
        let length = g.box_length;
        let r = if self.r_list > 0.0 { self.r_list } else { length[0].max(1.0) / 8.0 };
        let mut grid = Grid::new(length, g.dimensions, r, 1);
        if g.shear_offset != 0.0 || g.shear_speed != 0.0 {
            grid.offset = Some(g.shear_offset / length[0] * f64::from(grid.n[0]));
        }
        self.cell_of.clear();
        self.cell_of.extend(pos.iter().map(|p| grid.index(std::array::from_fn(|k| S::cell(p, k, grid.n[k], length)))));
        let mut start = vec![0u32; grid.cells() + 1];
        self.cell_of.iter().for_each(|c| start[*c as usize + 1] += 1);
        for c in 0..grid.cells() {
            start[c + 1] += start[c];
        }
        let mut next = start.clone();
        let mut order = vec![0u32; pos.len()];
        for (i, c) in self.cell_of.iter().enumerate() {
            order[next[*c as usize] as usize] = i as u32;
            next[*c as usize] += 1;
        }
        for c in 0..grid.cells() {
            order[start[c] as usize..start[c + 1] as usize].sort_unstable_by_key(|i| tag[*i as usize]);
        }
        let sorted: Vec<u32> = order.iter().map(|i| self.cell_of[*i as usize]).collect();
        self.cell_of = sorted;
        self.cell_start = start;
        self.grid = Some(grid);
        order
    }

    /// Fills the rows of particles that stand in the order of [`Self::order`].
    pub fn build<S: Store>(
        &mut self,
        pos: &[S::PosType],
        tag: &[u32],
        scale: &BoxScale<S::Real>,
        exclusions: Option<&LinkRows>,
        isa: u32,
    ) {
        let n = pos.len();
        if self.capacity == 0 {
            self.capacity = 64;
        }
        // candidates stand side by side, so a vector of each coordinate is one load
        let coordinates: [Vec<S::Coordinate>; 3] = std::array::from_fn(|k| {
            let mut all = Vec::with_capacity(n + LANES);
            pos.par_iter().with_min_len(CHUNK).map(|p| S::coordinate(p, k)).collect_into_vec(&mut all);
            all.resize(n + LANES, S::Coordinate::default());
            all
        });
        loop {
            self.index.resize(n * self.capacity, 0);
            self.count.resize(n, 0);
            let grid = self.grid.as_ref().expect("order() made the grid");
            let (capacity, start, cell_of) = (self.capacity, &self.cell_start, &self.cell_of);
            let limit = S::Real::lit(self.r_list * self.r_list);
            let rows = self.index.par_chunks_mut(CHUNK * capacity).zip(self.count.par_chunks_mut(CHUNK)).enumerate();
            let needed = rows
                .map(|(chunk, (rows, counts))| {
                    let task = Task::<S> {
                        pos,
                        coordinates: coordinates.each_ref().map(Vec::as_slice),
                        tag,
                        scale,
                        exclusions,
                        molecules: self.molecules.as_ref(),
                        grid,
                        start,
                        cell_of,
                        capacity,
                        limit,
                        first: chunk * CHUNK,
                    };
                    // SAFETY: the extension is there, the engine asked the processor
                    unsafe { task.dispatch(rows, counts, isa) }
                })
                .max()
                .unwrap_or(0);
            if needed <= capacity {
                return;
            }
            // some more, so that the list does not grow at every build
            self.capacity = (needed + needed / 8).next_multiple_of(32);
        }
    }

    /// Takes pairs that have become excluded out of the rows of these tags; what stays keeps its order, so the list is
    /// that of a build with the new exclusions.
    pub fn leave_out(&mut self, tags: &[u32], exclusions: &LinkRows, tag: &[u32], index_of_tag: &[u32]) {
        for t in tags {
            let i = index_of_tag[*t as usize] as usize;
            let (row, out) = (&mut self.index[i * self.capacity..][..self.capacity], exclusions.row(*t));
            let before = self.count[i] as usize;
            let mut kept = 0;
            for k in 0..before {
                if !out.contains(&tag[row[k] as usize]) {
                    row[kept] = row[k];
                    kept += 1;
                }
            }
            row[kept..before.next_multiple_of(32).min(self.capacity)].fill(i as u32);
            self.count[i] = kept as u32;
        }
    }

    /// As plugins see it.
    pub fn view(&mut self) -> ListView {
        ListView {
            capacity: self.capacity as u32,
            team: 32,
            index: DevicePtr::new(self.index.as_mut_ptr() as u64),
            count: DevicePtr::new(self.count.as_mut_ptr() as u64),
            r_list: self.r_list,
            ..ListView::empty()
        }
    }

    /// Mean and largest number of neighbors.
    pub fn statistics(&self) -> (f64, u32) {
        let sum: u64 = self.count.iter().map(|c| u64::from(*c)).sum();
        (sum as f64 / self.count.len().max(1) as f64, self.count.iter().copied().max().unwrap_or(0))
    }

    /// Bytes in use.
    pub fn memory(&self) -> usize {
        4 * (self.index.capacity() + self.count.capacity() + self.cell_of.capacity() + self.cell_start.capacity())
    }
}

/// Rows of one chunk of particles.
struct Task<'a, S: Store> {
    pos: &'a [S::PosType],
    /// Those of the same particles, and of [`LANES`] more that are none.
    coordinates: [&'a [S::Coordinate]; 3],
    tag: &'a [u32],
    scale: &'a BoxScale<S::Real>,
    exclusions: Option<&'a LinkRows>,
    molecules: Option<&'a MoleculeRule>,
    grid: &'a Grid,
    start: &'a [u32],
    cell_of: &'a [u32],
    capacity: usize,
    limit: S::Real,
    first: usize,
}

/// Candidates tested at once.
const LANES: usize = 16;

/// What the particles of a cell look at, side by side: coordinates and indices.
struct Candidates<S: Store> {
    cell: u32,
    at: [Vec<S::Coordinate>; 3],
    index: Vec<u32>,
    n: usize,
    /// Place of particle 0, if it were in the same range as the cell's own particles.
    own: usize,
}

impl<S: Store> Candidates<S> {
    fn new() -> Self {
        Self { cell: u32::MAX, at: std::array::from_fn(|_| vec![]), index: vec![], n: 0, own: 0 }
    }

    /// Those around a cell, with room for whole vectors.
    #[inline(always)]
    fn gather(&mut self, task: &Task<'_, S>, cell: u32) {
        (self.cell, self.n) = (cell, 0);
        let n = task.grid.n;
        let first = task.start[cell as usize] as usize;
        task.grid.ranges([cell % n[0], cell / n[0] % n[1], cell / n[0] / n[1]], |from, to| {
            let (from, to) = (task.start[from as usize] as usize, task.start[to as usize] as usize);
            let room = self.n + to - from + 2 * LANES;
            if self.index.len() < room {
                self.at.iter_mut().for_each(|x| x.resize(2 * room, S::Coordinate::default()));
                self.index.resize(2 * room, 0);
            }
            if (from..to).contains(&first) {
                self.own = self.n.wrapping_sub(from);
            }
            for j in (from..to).step_by(LANES) {
                let place = self.n + j - from;
                for (x, all) in self.at.iter_mut().zip(task.coordinates) {
                    x[place..place + LANES].copy_from_slice(&all[j..j + LANES]);
                }
                let index: &mut [u32] = &mut self.index[place..place + LANES];
                index.iter_mut().enumerate().for_each(|(l, to)| *to = (j + l) as u32);
            }
            self.n += to - from;
        });
    }
}

impl<S: Store> Task<'_, S> {
    /// # Safety
    /// The processor must have the extension.
    unsafe fn dispatch(&self, rows: &mut [u32], counts: &mut [u32], isa: u32) -> usize {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller's word
        unsafe {
            match isa {
                4 => return self.v4(rows, counts),
                3 => return self.v3(rows, counts),
                _ => {}
            }
        }
        let _ = isa;
        // SAFETY: the baseline is everywhere
        unsafe { self.fill::<BASE>(rows, counts) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn v4(&self, rows: &mut [u32], counts: &mut [u32]) -> usize {
        // SAFETY: the extension is on
        unsafe { self.fill::<V4>(rows, counts) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn v3(&self, rows: &mut [u32], counts: &mut [u32]) -> usize {
        // SAFETY: the extension is on
        unsafe { self.fill::<V3>(rows, counts) }
    }

    /// The largest number of neighbors met; rows beyond the capacity are cut.
    ///
    /// # Safety
    /// The processor must have the extension.
    #[inline(always)]
    unsafe fn fill<const ISA: u32>(&self, rows: &mut [u32], counts: &mut [u32]) -> usize {
        let mut longest = 0;
        let mut found = vec![0u32; 1024];
        let mut around = Candidates::<S>::new();
        let all = self.exclusions.is_none() && self.molecules.is_none();
        for (k, count) in counts.iter_mut().enumerate() {
            let i = self.first + k;
            let pi = self.pos[i];
            // neighboring particles mostly share a cell
            if self.cell_of[i] != around.cell {
                around.gather(self, self.cell_of[i]);
            }
            // room for every candidate and a whole vector, so that packing needs no test
            if found.len() < around.n + LANES {
                found.resize(2 * (around.n + LANES), 0);
            }
            let own = around.own.wrapping_add(i);
            let mut m = 0;
            for c in (0..around.n).step_by(LANES) {
                // SAFETY: there is room for whole vectors of candidates, and in `found`; the extension is on
                unsafe {
                    let at = around.at.each_ref().map(|x| &*x.as_ptr().add(c).cast::<[S::Coordinate; LANES]>());
                    let mut near = S::nearer::<ISA>(&pi, at, self.scale, self.limit);
                    if around.n - c < LANES {
                        near &= (1 << (around.n - c)) - 1;
                    }
                    if own.wrapping_sub(c) < LANES {
                        near &= !(1 << (own - c));
                    }
                    let index = &*around.index.as_ptr().add(c).cast::<[i32; LANES]>();
                    <i32 as LaneElement>::pack::<LANES, ISA>(found.as_mut_ptr().add(m).cast(), index, near);
                    m += near.count_ones() as usize;
                }
            }
            let m = if all { m } else { self.drop_excluded(i, &mut found[..m]) };
            let row = &mut rows[k * self.capacity..(k + 1) * self.capacity];
            longest = longest.max(m);
            let kept = m.min(self.capacity);
            row[..kept].copy_from_slice(&found[..kept]);
            // the loops read whole chunks: what is behind the end must be an index that exists
            row[kept..kept.next_multiple_of(32).min(self.capacity)].fill(i as u32);
            *count = kept as u32;
        }
        longest
    }

    /// Takes off excluded partners of a particle and those of molecules that do not count; the number of those that stay.
    #[inline(always)]
    fn drop_excluded(&self, i: usize, found: &mut [u32]) -> usize {
        let row = self.exclusions.map_or([].as_slice(), |e| e.row(self.tag[i]));
        let mut kept = 0;
        for k in 0..found.len() {
            let j = found[k];
            found[kept] = j;
            let out = (!row.is_empty() && row.contains(&self.tag[j as usize]))
                || self.molecules.is_some_and(|m| !m.takes(self.tag[i], self.tag[j as usize]));
            kept += usize::from(!out);
        }
        kept
    }
}
