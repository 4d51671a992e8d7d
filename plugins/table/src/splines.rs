//! Spline coefficients of all tables of a component.
//!
//! Each table has intervals of equal width with four coefficients each. A row holds the number of its first interval, the
//! intervals per unit of the variable, their width, the number of the last interval, and the number of intervals at
//! negative values. On the device the coefficients follow the rows, so one load of 16 bytes (32 in double precision)
//! through the read-only path brings all coefficients of a pair.

use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use galamost_tables::CoefficientGrid;
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers per device row: a multiple of four, so that the coefficients stay aligned.
pub const ROW: usize = 8;

/// One tabulated potential.
#[derive(Clone)]
pub struct SplineTable {
    /// Number of its first interval among all intervals of the component.
    pub first: usize,
    pub grid: Arc<CoefficientGrid>,
}

impl SplineTable {
    /// Returns the row that CUDA reads.
    pub fn numbers(&self) -> Vec<f64> {
        let (g, last) = (&self.grid, self.grid.cells.len() - 1);
        let mut row = vec![self.first as f64, 1.0 / g.width, g.width, last as f64, g.origin as f64];
        row.resize(ROW, 0.0);
        row
    }
}

/// All tables of a component, keyed by source and cutoff.
#[derive(Default)]
pub struct SplineTables {
    all: Mutex<Vec<((usize, u64), SplineTable)>>,
    /// Precision of the run, which must hold the coefficients.
    precision: Precision,
}

impl SplineTables {
    /// Returns the table with this key; builds it at the first call.
    ///
    /// # Errors
    /// Returns an error if coefficients exceed the precision of the run or there are too many intervals.
    pub fn get(&self, key: (usize, u64), make: impl FnOnce() -> CoefficientGrid) -> Result<SplineTable, String> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, table)) = all.iter().find(|(k, _)| *k == key) {
            return Ok(table.clone());
        }
        let grid = make();
        self.require_range(&grid)?;
        let first = all.last().map_or(0, |(_, t)| t.first + t.grid.cells.len());
        // interval numbers are passed as `real`
        if first + grid.cells.len() > 1 << 23 {
            return Err("all tables together have more than 8 million intervals: reduce `points`".into());
        }
        let table = SplineTable { first, grid: Arc::new(grid) };
        all.push((key, table.clone()));
        Ok(table)
    }

    /// Checks that the numbers of a grid exist in the precision of the run. For r_cut = 10⁻⁷ and U of order 1, say, the coefficients
    /// of a pair table are of order U/r_cut⁶ = 10⁴², which single precision does not have.
    fn require_range(&self, grid: &CoefficientGrid) -> Result<(), String> {
        let exact = self.precision == Precision::Double;
        let exists = |x: f64| x.is_finite() && (exact || (x as f32).is_finite());
        if grid.cells.iter().flatten().copied().chain([1.0 / grid.width]).all(exists) {
            return Ok(());
        }
        let units = "use units in which lengths and energies are nearer to 1";
        let rows = "remove rows with very large energies";
        let name = self.precision.name();
        Err(if exact {
            format!("the spline coefficients are out of range in {name} precision; {units}, or {rows}")
        } else {
            format!(
                "the spline coefficients are out of range in {name} precision; {units}, {rows}, or use `precision: Double`"
            )
        })
    }

    /// Appends the coefficients to the rows.
    pub fn more_numbers(&self, numbers: &mut Vec<f64>) {
        let rows = numbers.len();
        for row in numbers.chunks_mut(ROW) {
            row[0] += (rows / 4) as f64;
        }
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.extend(all.iter().flat_map(|(_, t)| t.grid.cells.iter().flatten()));
    }

    /// Removes all tables; the next ones are for a run in this precision.
    pub fn restart(&mut self, precision: Precision) {
        self.all.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        self.precision = precision;
    }
}

/// A table in one number type for the CPU loops. It points to coefficients owned by [`CpuSplines`].
#[derive(Clone, Copy)]
pub struct CpuRow<R> {
    intervals: *const [R; 4],
    per_unit: R,
    width: R,
    last: R,
    origin: R,
}

// SAFETY: the coefficients are read only
unsafe impl<R: Send> Send for CpuRow<R> {}
// SAFETY: the coefficients are only read, and a shared reference gives `&R`, which is Sync
unsafe impl<R: Sync> Sync for CpuRow<R> {}

/// Returns dU/dx and U at the distance `d` from the start of an interval with these coefficients.
#[inline(always)]
pub fn cubic<R: Real>(d: R, [c0, c1, c2, c3]: [R; 4]) -> (R, R) {
    (c1 + d * (R::lit(2.0) * c2 + d * (R::lit(3.0) * c3)), c0 + d * (c1 + d * (c2 + d * c3)))
}

impl<R: Real> CpuRow<R> {
    /// Returns the coefficients of the interval that contains `x`, or of the nearest one, and the distance of `x` from its
    /// start.
    #[inline(always)]
    pub fn interval(&self, x: R) -> (&[R; 4], R) {
        // `max` maps NaN to 0
        let interval = (x * self.per_unit + self.origin).max(R::ZERO).min(self.last);
        // SAFETY: 0 ≤ interval ≤ `last` < 2³¹. A checked conversion would not be vectorized
        let n = unsafe { interval.f64().to_int_unchecked::<i32>() };
        // in 32 bits, so that all lanes are multiplied in one vector; there are at most 65,537 intervals
        let offset = n as u32 * size_of::<[R; 4]>() as u32;
        // SAFETY: 0 ≤ n ≤ `last`, and `CpuSplines` owns the coefficients as long as the rows
        let coefficients = unsafe { &*self.intervals.byte_add(offset as usize) };
        (coefficients, x - (R::from_i32(n) - self.origin) * self.width)
    }

    /// Returns dU/dx and U.
    #[inline(always)]
    pub fn at(&self, x: R) -> (R, R) {
        let (coefficients, d) = self.interval(x);
        cubic(d, *coefficients)
    }
}

/// The rows of all tables in one number type.
pub struct CpuSplines<R> {
    pub rows: Vec<CpuRow<R>>,
    /// Coefficients that the rows point to.
    _coefficients: Vec<Vec<[R; 4]>>,
}

impl<R: Real> CpuSplines<R> {
    /// Converts the coefficients of all tables.
    pub fn new(tables: &[SplineTable]) -> Self {
        let mut converted: Vec<(usize, Vec<[R; 4]>)> = vec![];
        let mut rows = vec![];
        for t in tables {
            if !converted.iter().any(|(first, _)| *first == t.first) {
                converted.push((t.first, t.grid.cells.iter().map(|c| c.map(R::lit)).collect()));
            }
            let intervals =
                converted.iter().find(|(first, _)| *first == t.first).map_or(std::ptr::null(), |(_, c)| c.as_ptr());
            rows.push(CpuRow {
                intervals,
                per_unit: R::lit(1.0 / t.grid.width),
                width: R::lit(t.grid.width),
                last: R::lit(t.grid.cells.len() as f64 - 1.0),
                origin: R::lit(t.grid.origin as f64),
            });
        }
        Self { rows, _coefficients: converted.into_iter().map(|(_, c)| c).collect() }
    }
}

/// `whole` returns ⌊x⌋ of 0 ≤ x < 2²², as a number and as an integer.
///
/// In single precision, x + 2²³ rounded down has ⌊x⌋ in its low bits. Conversions would take the units that also compute
/// reciprocals, a quarter as fast as additions.
const WHOLE: &str = "#ifdef __CUDACC__
__device__ __forceinline__ u32 whole(float x, float& n) {
    const float shifted = __fadd_rd(x, 8388608.0f);
    n = shifted - 8388608.0f;
    return __float_as_uint(shifted) & 0x7fffffu;
}
#else
__device__ __forceinline__ u32 whole(float x, float& n) {
    n = device_floor(x);
    return u32(n);
}
#endif
__device__ __forceinline__ u32 whole(double x, double& n) {
    n = device_floor(x);
    return u32(n);
}
";

/// Returns the CUDA source of the row struct and of `table_at`, which returns dU/dx and U.
pub fn text(row: &str) -> String {
    format!(
        "{WHOLE}template <class real> struct {row} {{\n    real first, per_unit, width, last, origin, unused[{}];\n}};\n\
         template <class real> __device__ __forceinline__ Tuple2<real, real> table_at(const void* numbers, \
         const {row}<real>& row, real x) {{\n\
         \x20   real cell;\n\
         \x20   const u32 number = whole(device_min(device_max(x * row.per_unit + row.origin, real(0)), row.last), cell);\n\
         \x20   const Vec4 c = load(static_cast<const Vec4*>(numbers) + u32(row.first) + number);\n\
         \x20   // this product is exact\n\
         \x20   const real d = x - (cell - row.origin) * row.width;\n\
         \x20   return {{c.y + d * (real(2) * c.z + d * (real(3) * c.w)), c.x + d * (c.y + d * (c.z + d * c.w))}};\n}}\n",
        ROW - 5
    )
}
