//! The coefficients of all tables of a component.
//!
//! A row holds the number of its first cell, cells per unit of the variable, their width, the number of the last cell, and
//! how many lie on the negative side. On the device the cells stand behind the rows, four numbers each, so one load of 16
//! bytes (32 in double precision) through the read-only path brings what a pair needs.

use galamost_plugin_api::prelude::*;
use galamost_tables::Grid;
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers in a row of the device: a whole number of cells, so that cells stay aligned.
pub const ROW: usize = 8;

/// One table.
#[derive(Clone)]
pub struct Table {
    /// Number of its first cell among all cells of the component.
    pub first: usize,
    pub grid: Arc<Grid>,
}

impl Table {
    /// As CUDA reads it.
    pub fn numbers(&self) -> Vec<f64> {
        let (g, last) = (&self.grid, self.grid.cells.len() - 1);
        let mut row = vec![self.first as f64, 1.0 / g.width, g.width, last as f64, g.origin as f64];
        row.resize(ROW, 0.0);
        row
    }
}

/// All tables of a component by what they are made of.
#[derive(Default)]
pub struct Tables(Mutex<Vec<((usize, u64), Table)>>);

impl Tables {
    /// The table with this key, made when it is first asked for.
    ///
    /// # Errors
    /// Numbers too large for single precision, too many cells.
    pub fn get(&self, key: (usize, u64), make: impl FnOnce() -> Grid) -> Result<Table, String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, table)) = all.iter().find(|(k, _)| *k == key) {
            return Ok(table.clone());
        }
        let grid = make();
        if grid.cells.iter().flatten().any(|c| !(*c as f32).is_finite()) {
            return Err("the table's numbers are too large for single precision: begin it at a larger r".into());
        }
        let first = all.last().map_or(0, |(_, t)| t.first + t.grid.cells.len());
        // numbers of cells are handed out as `real`
        if first + grid.cells.len() > 1 << 23 {
            return Err("all tables together have more than 8 million cells: take fewer `points`".into());
        }
        let table = Table { first, grid: Arc::new(grid) };
        all.push((key, table.clone()));
        Ok(table)
    }

    /// Puts the cells behind the rows.
    pub fn more_numbers(&self, numbers: &mut Vec<f64>) {
        let rows = numbers.len();
        for row in numbers.chunks_mut(ROW) {
            row[0] += (rows / 4) as f64;
        }
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.extend(all.iter().flat_map(|(_, t)| t.grid.cells.iter().flatten()));
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// A table over a number type, as the CPU's loops read it: the cells it points to are kept by [`CpuTables`].
#[derive(Clone, Copy)]
pub struct CpuRow<R> {
    cells: *const [R; 4],
    per_unit: R,
    width: R,
    last: u32,
    origin: R,
}

// SAFETY: it only reads cells that nobody changes
unsafe impl<R: Send> Send for CpuRow<R> {}
// SAFETY: as above
unsafe impl<R: Sync> Sync for CpuRow<R> {}

impl<R: Real> CpuRow<R> {
    /// dU/dx and U.
    #[inline(always)]
    pub fn at(&self, x: R) -> (R, R) {
        // as u32, a number below 0 and NaN become 0
        let cell = (x * self.per_unit + self.origin).to_u32().min(self.last);
        // SAFETY: the cell is one of the table's, which live as long as the rows
        let [c0, c1, c2, c3] = unsafe { *self.cells.add(cell as usize) };
        let d = x - (R::from_u32(cell) - self.origin) * self.width;
        (c1 + d * (R::lit(2.0) * c2 + d * (R::lit(3.0) * c3)), c0 + d * (c1 + d * (c2 + d * c3)))
    }
}

/// Tables of rows over a number type.
pub struct CpuTables<R> {
    pub rows: Vec<CpuRow<R>>,
    /// What the rows point to.
    _cells: Vec<Vec<[R; 4]>>,
}

impl<R: Real> CpuTables<R> {
    pub fn new(tables: &[Table]) -> Self {
        let mut made: Vec<(usize, Vec<[R; 4]>)> = vec![];
        let mut rows = vec![];
        for t in tables {
            if !made.iter().any(|(first, _)| *first == t.first) {
                made.push((t.first, t.grid.cells.iter().map(|c| c.map(R::lit)).collect()));
            }
            let cells = made.iter().find(|(first, _)| *first == t.first).map_or(std::ptr::null(), |(_, c)| c.as_ptr());
            rows.push(CpuRow {
                cells,
                per_unit: R::lit(1.0 / t.grid.width),
                width: R::lit(t.grid.width),
                last: t.grid.cells.len() as u32 - 1,
                origin: R::lit(t.grid.origin as f64),
            });
        }
        Self { rows, _cells: made.into_iter().map(|(_, c)| c).collect() }
    }
}

/// CUDA text: the struct of a row, and `table_at`, which gives dU/dx and U.
pub fn text(row: &str) -> String {
    format!(
        "template <class real> struct {row} {{\n    real first, per_unit, width, last, origin, unused[{}];\n}};\n\
         template <class real> __device__ __forceinline__ Tuple2<real, real> table_at(const void* numbers, \
         const {row}<real>& row, real x) {{\n\
         \x20   const real cell = device_min(device_max(device_floor(x * row.per_unit + row.origin), real(0)), row.last);\n\
         \x20   const Vec4 c = load(static_cast<const Vec4*>(numbers) + u32(row.first + cell));\n\
         \x20   // the product has no rounding error\n\
         \x20   const real d = x - (cell - row.origin) * row.width;\n\
         \x20   return {{c.y + d * (real(2) * c.z + d * (real(3) * c.w)), c.x + d * (c.y + d * (c.z + d * c.w))}};\n}}\n",
        ROW - 5
    )
}
