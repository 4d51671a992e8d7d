//! The neighbor list on the CPU: particles sorted by cell, rows filled from ranges of cells.

use crate::state::cells::Grid;
use crate::state::molecules::MoleculeRule;
use crate::state::store::Store;
use crate::state::topology::LinkRows;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::lanes::{BASE, LaneElement, V3, V4};
use galamost_plugin_api::memory;
use galamost_plugin_api::precision::BoxScale;
use galamost_plugin_api::real::Real;
use galamost_plugin_api::tilt::heights;
use galamost_plugin_api::views::{Globals, ListView};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Particles per task.
pub const CHUNK: usize = 256;

/// The neighbor list.
pub struct NeighborList<S: Store> {
    /// Cutoff plus buffer.
    pub r_list: f64,
    /// The cell grid.
    pub grid: Option<Grid>,
    /// First particle of each cell.
    pub cell_start: Vec<u32>,
    capacity: usize,
    index: Vec<u32>,
    count: Vec<u32>,
    cell_of: Vec<u32>,
    /// The rule for pairs within or between molecules, if there is one.
    molecules: Option<MoleculeRule>,
    // kept for the next build, because the first use of each page of new memory costs more than the work on it
    order: Vec<u32>,
    cell_before: Vec<u32>,
    next: Vec<AtomicU32>,
    coordinates: [Vec<S::Coordinate>; 3],
}

/// Returns numbers that several threads may write.
pub fn as_atomics(numbers: &mut [u32]) -> &[AtomicU32] {
    // SAFETY: an `AtomicU32` has size, alignment and values of a `u32`, and the numbers are borrowed mutably as long as the result
    unsafe { &*(std::ptr::from_mut(numbers) as *const [AtomicU32]) }
}

/// Adds 1 and returns the number before. With one thread, `alone`, it needs no atomic operation, which takes longer.
fn increment(next: &AtomicU32, alone: bool) -> u32 {
    if alone {
        let number = next.load(Ordering::Relaxed);
        next.store(number + 1, Ordering::Relaxed);
        return number;
    }
    next.fetch_add(1, Ordering::Relaxed)
}

impl<S: Store> NeighborList<S> {
    /// Creates an empty list of this range.
    pub fn new(r_list: f64, molecules: Option<MoleculeRule>) -> Self {
        Self {
            r_list,
            molecules,
            grid: None,
            cell_start: vec![],
            capacity: 0,
            index: vec![],
            count: vec![],
            cell_of: vec![],
            order: vec![],
            cell_before: vec![],
            next: vec![],
            coordinates: [const { vec![] }; 3],
        }
    }

    /// Returns the order of the last [`Self::sort`]: `order[new] = old`.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Finds the order of particles by cell, and by tag within a cell.
    pub fn sort(&mut self, pos: &[S::PosType], tag: &[u32], g: &Globals) {
        let length = g.box_length;
        let r = if self.r_list > 0.0 { self.r_list } else { length[0].max(1.0) / 8.0 };
        let mut grid = Grid::of_heights(heights(length, g.tilt), g.tilt != [0.0; 3], g.dimensions, r, 1, pos.len());
        if g.shear_offset != 0.0 || g.shear_speed != 0.0 {
            grid.offset = Some(g.shear_offset / length[0] * f64::from(grid.n[0]));
        }
        let cell = |p: &S::PosType| grid.index(std::array::from_fn(|k| S::cell(p, k, grid.n[k], length)));
        pos.par_iter().with_min_len(CHUNK).map(cell).collect_into_vec(&mut self.cell_before);
        let (cell_of, alone) = (&self.cell_before, rayon::current_num_threads() == 1);
        self.next.resize_with(grid.cells(), AtomicU32::default);
        self.next.par_iter().with_min_len(CHUNK).for_each(|n| n.store(0, Ordering::Relaxed));
        let next = &self.next;
        cell_of.par_iter().with_min_len(CHUNK).for_each(|c| {
            increment(&next[*c as usize], alone);
        });
        self.cell_start.resize(grid.cells() + 1, 0);
        let mut sum = 0;
        for (start, n) in self.cell_start.iter_mut().zip(next) {
            *start = sum;
            sum += n.swap(sum, Ordering::Relaxed);
        }
        self.cell_start[grid.cells()] = sum;
        // threads put the particles of a cell in any order, which the tags then replace
        self.order.resize(pos.len(), 0);
        let places = as_atomics(&mut self.order);
        cell_of.par_iter().enumerate().with_min_len(CHUNK).for_each(|(i, c)| {
            places[increment(&next[*c as usize], alone) as usize].store(i as u32, Ordering::Relaxed);
        });
        let cells = self.order.par_chunk_by_mut(|i, j| cell_of[*i as usize] == cell_of[*j as usize]);
        cells.for_each(|cell| cell.sort_unstable_by_key(|i| tag[*i as usize]));
        self.order.par_iter().with_min_len(CHUNK).map(|i| cell_of[*i as usize]).collect_into_vec(&mut self.cell_of);
        self.grid = Some(grid);
    }

    /// Fills the rows of these chunks of particles, which are sorted in the order of [`Self::sort`].
    ///
    /// # Errors
    /// Returns an error if there is no memory for the rows.
    pub fn build(
        &mut self,
        pos: &[S::PosType],
        tag: &[u32],
        scale: &BoxScale<S::Real>,
        exclusions: Option<&LinkRows>,
        chunks: Range<usize>,
        isa: u32,
    ) -> Result<()> {
        let n = pos.len();
        if self.capacity == 0 {
            self.capacity = 64;
        }
        // each coordinate is contiguous, so a vector of candidates is one load
        for (k, all) in self.coordinates.iter_mut().enumerate() {
            pos.par_iter().with_min_len(CHUNK).map(|p| S::coordinate(p, k)).collect_into_vec(all);
            all.resize(n + LANES, S::Coordinate::default());
        }
        loop {
            if self.index.len() < n * self.capacity {
                let what = format!(
                    "the neighbor list of {n} particles with up to {} neighbors each within {}",
                    self.capacity, self.r_list
                );
                memory::require(what, 4.0 * n as f64 * self.capacity as f64).map_err(Error::Run)?;
            }
            self.index.resize(n * self.capacity, 0);
            self.count.resize(n, 0);
            let grid = self.grid.as_ref().expect("sort() made the grid");
            let (capacity, start, cell_of) = (self.capacity, &self.cell_start, &self.cell_of);
            let (limit, coordinates) = (S::Real::lit(self.r_list * self.r_list), &self.coordinates);
            let rows = self.index.par_chunks_mut(CHUNK * capacity).zip(self.count.par_chunks_mut(CHUNK)).enumerate();
            let needed = rows
                .skip(chunks.start)
                .take(chunks.len())
                .map(|(chunk, (rows, counts))| {
                    let task = ChunkTask::<S> {
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
                    // SAFETY: `isa` is an extension of this processor (`vector_extension`)
                    unsafe { task.dispatch(rows, counts, isa) }
                })
                .max()
                .unwrap_or(0);
            if needed <= capacity {
                return Ok(());
            }
            // extra room, so that the list does not grow at every build
            self.capacity = (needed + needed / 8).next_multiple_of(32);
        }
    }

    /// Removes newly excluded pairs from the rows of these tags. The remaining entries keep their order, so the result
    /// equals a build with the new exclusions.
    pub fn remove_excluded(&mut self, tags: &[u32], exclusions: &LinkRows, tag: &[u32], index_of_tag: &[u32]) {
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

    /// Returns the list for plugins.
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

    /// Returns the arrays of [`Self::view`].
    pub fn arrays(&self) -> [&[u32]; 2] {
        [&self.index, &self.count]
    }

    /// Returns the mean and the largest number of neighbors of particles in these chunks.
    pub fn statistics(&self, chunks: &Range<usize>) -> (f64, u32) {
        let n = self.count.len();
        let count = &self.count[(chunks.start * CHUNK).min(n)..(chunks.end * CHUNK).min(n)];
        let sum: u64 = count.iter().map(|c| u64::from(*c)).sum();
        (sum as f64 / count.len().max(1) as f64, count.iter().copied().max().unwrap_or(0))
    }

    /// Returns the number of bytes in use.
    pub fn memory(&self) -> usize {
        let words = [&self.index, &self.count, &self.cell_of, &self.cell_start, &self.order, &self.cell_before];
        let words = words.iter().map(|v| v.capacity()).sum::<usize>() + self.next.capacity();
        4 * words + self.coordinates.iter().map(|v| v.capacity() * size_of::<S::Coordinate>()).sum::<usize>()
    }
}

/// Builds the rows of one chunk of particles.
struct ChunkTask<'a, S: Store> {
    pos: &'a [S::PosType],
    /// Coordinates of the particles, padded with [`LANES`] unused entries.
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

/// Coordinates and indices of all particles around a cell, in contiguous arrays.
struct Candidates<S: Store> {
    cell: u32,
    at: [Vec<S::Coordinate>; 3],
    index: Vec<u32>,
    n: usize,
    /// Offset that turns the index of one of the cell's own particles into its position among the candidates.
    own: usize,
    /// Ranges of cells around the cell: first, one past the last.
    ranges: Vec<(u32, u32)>,
}

impl<S: Store> Candidates<S> {
    fn new() -> Self {
        Self { cell: u32::MAX, at: std::array::from_fn(|_| vec![]), index: vec![], n: 0, own: 0, ranges: vec![] }
    }

    /// Gathers the candidates around a cell, padded to whole vectors.
    #[inline(always)]
    fn gather(&mut self, task: &ChunkTask<'_, S>, cell: u32) {
        (self.cell, self.n) = (cell, 0);
        let n = task.grid.n;
        let first = task.start[cell as usize] as usize;
        // collected first, because a closure that copies is compiled on its own, without the vector extension
        self.ranges.clear();
        let at = [cell % n[0], cell / n[0] % n[1], cell / n[0] / n[1]];
        task.grid.ranges(at, |from, to| self.ranges.push((from, to)));
        for (from, to) in &self.ranges {
            let (from, to) = (task.start[*from as usize] as usize, task.start[*to as usize] as usize);
            let room = self.n + to - from + 2 * LANES;
            if self.index.len() < room {
                self.at.iter_mut().for_each(|x| x.resize(2 * room, S::Coordinate::default()));
                self.index.resize(2 * room, 0);
            }
            if (from..to).contains(&first) {
                self.own = self.n.wrapping_sub(from);
            }
            for j in (from..to).step_by(LANES) {
                let offset = self.n + j - from;
                for (x, all) in self.at.iter_mut().zip(task.coordinates) {
                    x[offset..offset + LANES].copy_from_slice(&all[j..j + LANES]);
                }
                let index: &mut [u32] = &mut self.index[offset..offset + LANES];
                index.iter_mut().enumerate().for_each(|(l, to)| *to = (j + l) as u32);
            }
            self.n += to - from;
        }
    }
}

impl<S: Store> ChunkTask<'_, S> {
    /// Fills the rows with code for this vector extension and for the shape of the box.
    ///
    /// # Safety
    /// The processor must support the extension.
    unsafe fn dispatch(&self, rows: &mut [u32], counts: &mut [u32], isa: u32) -> usize {
        // SAFETY: the contract of this function is passed on
        unsafe {
            if self.scale.tilted {
                self.in_box::<true>(rows, counts, isa)
            } else {
                self.in_box::<false>(rows, counts, isa)
            }
        }
    }

    unsafe fn in_box<const TILTED: bool>(&self, rows: &mut [u32], counts: &mut [u32], isa: u32) -> usize {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor supports the extension `isa` (contract of this function)
        unsafe {
            match isa {
                4 => return self.v4::<TILTED>(rows, counts),
                3 => return self.v3::<TILTED>(rows, counts),
                _ => {}
            }
        }
        let _ = isa;
        // SAFETY: every processor supports the baseline
        unsafe { self.fill::<BASE, TILTED>(rows, counts) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn v4<const TILTED: bool>(&self, rows: &mut [u32], counts: &mut [u32]) -> usize {
        // SAFETY: the function enables the extension
        unsafe { self.fill::<V4, TILTED>(rows, counts) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn v3<const TILTED: bool>(&self, rows: &mut [u32], counts: &mut [u32]) -> usize {
        // SAFETY: the function enables the extension
        unsafe { self.fill::<V3, TILTED>(rows, counts) }
    }

    /// Fills the rows and returns the largest number of neighbors; rows are truncated at the capacity.
    ///
    /// # Safety
    /// The processor must support the extension.
    #[inline(always)]
    unsafe fn fill<const ISA: u32, const TILTED: bool>(&self, rows: &mut [u32], counts: &mut [u32]) -> usize {
        let mut longest = 0;
        let mut found = vec![0u32; 1024];
        let mut around = Candidates::<S>::new();
        let all = self.exclusions.is_none() && self.molecules.is_none();
        // copied, because the compiler must assume that writing rows changes what `self` refers to
        let scale = *self.scale;
        for (k, count) in counts.iter_mut().enumerate() {
            let i = self.first + k;
            let pi = self.pos[i];
            // consecutive particles mostly share a cell
            if self.cell_of[i] != around.cell {
                around.gather(self, self.cell_of[i]);
            }
            // room for every candidate plus one vector, so that packing needs no bounds check
            if found.len() < around.n + LANES {
                found.resize(2 * (around.n + LANES), 0);
            }
            let own = around.own.wrapping_add(i);
            let (own_vector, others) = (own & !(LANES - 1), !(1u32 << (own % LANES)));
            let (mut m, mut near) = (0, 0);
            for c in (0..around.n).step_by(LANES) {
                // SAFETY: the candidates and `found` have room for whole vectors, and the function enables the
                // extension
                unsafe {
                    let at = around.at.each_ref().map(|x| &*x.as_ptr().add(c).cast::<[S::Coordinate; LANES]>());
                    near = S::nearer::<ISA, TILTED>(&pi, at, &scale, self.limit);
                    near &= if c == own_vector { others } else { u32::MAX };
                    let index = &*around.index.as_ptr().add(c).cast::<[i32; LANES]>();
                    <i32 as LaneElement>::pack::<LANES, ISA>(found.as_mut_ptr().add(m).cast(), index, near);
                }
                m += near.count_ones() as usize;
            }
            // what the unused lanes of the last vector found is at the end
            m -= (near >> ((around.n - 1) % LANES + 1)).count_ones() as usize;
            let m = if all { m } else { self.drop_excluded(i, &mut found[..m]) };
            let row = &mut rows[k * self.capacity..(k + 1) * self.capacity];
            longest = longest.max(m);
            let kept = m.min(self.capacity);
            row[..kept].copy_from_slice(&found[..kept]);
            // the loops read whole vectors: entries past the end must be valid indices
            row[kept..kept.next_multiple_of(32).min(self.capacity)].fill(i as u32);
            *count = kept as u32;
        }
        longest
    }

    /// Removes excluded partners of a particle and those that the molecule rule excludes; returns the number of
    /// remaining entries.
    #[inline(always)]
    fn drop_excluded(&self, i: usize, found: &mut [u32]) -> usize {
        let row = self.exclusions.map_or([].as_slice(), |e| e.row(self.tag[i]));
        let mut kept = 0;
        for k in 0..found.len() {
            let j = found[k];
            found[kept] = j;
            let out = (!row.is_empty() && row.contains(&self.tag[j as usize]))
                || self.molecules.is_some_and(|m| !m.allows(self.tag[i], self.tag[j as usize]));
            kept += usize::from(!out);
        }
        kept
    }
}
