//! Cell grid that finds the beads near a point.

/// A cell grid of a periodic box, with a linked list of beads per cell.
pub struct Grid {
    length: [f64; 3],
    cells: [usize; 3],
    head: Vec<u32>,
    next: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Grid {
    /// Returns an empty grid with cells not shorter than `reach`, for about n beads.
    pub fn new(length: [f64; 3], reach: f64, n: usize) -> Self {
        let dimensions = if length[2] > 0.0 { 3 } else { 2 };
        let volume: f64 = length.iter().take(dimensions).product();
        // cells much smaller than the volume per bead would waste memory
        let edge = reach.max((0.5 * volume / n.max(1) as f64).powf(1.0 / dimensions as f64));
        let cells = length.map(|l| ((l / edge).floor() as usize).clamp(1, 1000));
        Self { length, cells, head: vec![NONE; cells.iter().product()], next: vec![] }
    }

    /// Returns the cell of a position.
    fn cell(&self, r: [f64; 3]) -> [usize; 3] {
        std::array::from_fn(|k| {
            if self.length[k] == 0.0 {
                return 0;
            }
            let s = (r[k] / self.length[k] + 0.5) * self.cells[k] as f64;
            (s.max(0.0) as usize).min(self.cells[k] - 1)
        })
    }

    /// Returns the index of a cell.
    fn index(&self, [x, y, z]: [usize; 3]) -> usize {
        (z * self.cells[1] + y) * self.cells[0] + x
    }

    /// Adds the next bead; beads are numbered in the order of insertion.
    pub fn push(&mut self, r: [f64; 3]) {
        let cell = self.index(self.cell(r));
        self.next.push(self.head[cell]);
        self.head[cell] = self.next.len() as u32 - 1;
    }

    /// Removes the last bead, which was added at `r`.
    pub fn pop(&mut self, r: [f64; 3]) {
        let cell = self.index(self.cell(r));
        if let Some(next) = self.next.pop() {
            self.head[cell] = next;
        }
    }

    /// Returns whether `f` is true for all beads in the cells around a point.
    pub fn all_near(&self, r: [f64; 3], mut f: impl FnMut(usize) -> bool) -> bool {
        let at = self.cell(r);
        // visit each cell once if there are only one or two along an axis
        let along = |k: usize| match self.cells[k] {
            1 => [0].as_slice(),
            2 => [0, 1].as_slice(),
            _ => [0, 1, usize::MAX].as_slice(),
        };
        for z in along(2) {
            for y in along(1) {
                for x in along(0) {
                    let shift = [x, y, z];
                    let cell = std::array::from_fn(|k| match *shift[k] {
                        usize::MAX => (at[k] + self.cells[k] - 1) % self.cells[k],
                        d => (at[k] + d) % self.cells[k],
                    });
                    let mut i = self.head[self.index(cell)];
                    while i != NONE {
                        if !f(i as usize) {
                            return false;
                        }
                        i = self.next[i as usize];
                    }
                }
            }
        }
        true
    }
}
