//! Choice of α, cutoff, window and grid from the accuracy.

use super::influence::{MeshError, mesh_error};
use super::window::Window;
use crate::params::{Common, Model, rounded};
use crate::split::Split;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use std::collections::BTreeMap;
use std::f64::consts::PI;
use std::sync::{Mutex, PoisonError};

/// Orders of windows.
pub const ORDERS: std::ops::RangeInclusive<u32> = 3..=7;

/// The mesh.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mesh {
    pub grid: [usize; 3],
    pub window: Window,
    /// Estimated error in units of the accuracy.
    pub error: f64,
}

/// Grid points along an axis that are supported.
pub const MAX_POINTS: usize = 1024;

/// Returns the smallest number from `least` on whose prime factors are 2, 3 and 5. On a GPU, numbers beyond 32 are multiples of 4: they
/// have two nearly equal factors, for which the transforms are fast. A number that is too large anyway is returned unchanged, because such
/// numbers are far apart.
fn smooth_number(least: usize, cuda: bool) -> usize {
    if least > MAX_POINTS {
        return least;
    }
    let smooth = |n: usize| {
        let mut rest = n;
        for p in [2, 3, 5] {
            while rest.is_multiple_of(p) {
                rest /= p;
            }
        }
        rest == 1
    };
    (least.max(2)..).find(|n| smooth(*n) && (!cuda || *n <= 32 || n.is_multiple_of(4))).unwrap_or(least)
}

/// Returns errors of a mesh in units of the accuracy.
fn in_units(model: &Model, error: MeshError) -> f64 {
    let volume: f64 = model.box_length.iter().product();
    (error.pairs / volume.sqrt() / model.error_unit()).hypot(error.own * model.mean_distance().powi(2))
}

/// Returns a mesh with this grid.
fn mesh(model: &Model, grid: [usize; 3], order: usize, split: Split) -> Mesh {
    let cell = std::array::from_fn(|k| model.box_length[k] / grid[k] as f64);
    let window = Window::new(order, split);
    Mesh { grid, window, error: in_units(model, mesh_error(cell, window, split)) }
}

/// Returns the error of the charges on the grid in units of the accuracy. On CUDA in Single and Mixed, shares are rounded to 2⁻²⁴ of the
/// largest charge, rounded up to a power of 2; here the largest root mean square of a type stands for it. The roundings act like
/// charges at random, Σδq² = N p³ unit²/12.
fn rounding(model: &Model, order: usize) -> f64 {
    if !model.cuda || model.precision == Precision::Double {
        return 0.0;
    }
    let typical = (model.squares / model.charged).sqrt();
    let unit = 2f64.powi(-23) * model.largest;
    (order.pow(3) as f64 / 12.0).sqrt() * unit / typical
}

/// Errors of cubic cells of 2^(k/4) for a split of radius 1, by order, k and the shape in quarters. They do not depend on the system, so all
/// systems of a process share them.
static CUBIC_ERRORS: Mutex<BTreeMap<(usize, i32, i32), MeshError>> = Mutex::new(BTreeMap::new());

/// Returns the errors of cubic cells for a split of radius 1, interpolated between cells that differ by a factor of 2^(1/4): errors are
/// nearly powers of the cell.
fn cubic_error(order: usize, quarters: i32, cell: f64) -> MeshError {
    let place = 4.0 * cell.log2();
    let split = Split::with_shape(1.0, 0.25 * f64::from(quarters));
    let at = |k: i32| {
        let known = || CUBIC_ERRORS.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(&(order, k, quarters)).copied();
        found.unwrap_or_else(|| {
            let error = mesh_error([2f64.powf(0.25 * f64::from(k)); 3], Window::new(order, split), split);
            known().insert((order, k, quarters), error);
            error
        })
    };
    let (low, high, t) = (at(place.floor() as i32), at(place.floor() as i32 + 1), place - place.floor());
    let between = |a: f64, b: f64| a.max(f64::MIN_POSITIVE).powf(1.0 - t) * b.max(f64::MIN_POSITIVE).powf(t);
    MeshError { pairs: between(low.pairs, high.pairs), own: between(low.own, high.own) }
}

/// Share of the accuracy that the choice of a mesh uses: charges in chains have errors up to 1.6 times those of charges at random.
const SHARE: f64 = 0.8;

/// Returns the coarsest mesh of an order that is as accurate as asked for.
fn coarsest(model: &Model, order: usize, split: Split) -> Mesh {
    let b = split.radius;
    // the shapes of similar cutoffs are the same but for the rounding of alpha
    let quarters = (4.0 * split.shape).round() as i32;
    let error = |cell: f64| {
        let one = cubic_error(order, quarters, cell);
        in_units(model, MeshError { pairs: one.pairs / b.sqrt(), own: one.own / (b * b) })
    };
    // cells in units of the radius
    let (mut low, mut high) = (0.008, 1.0);
    for _ in 0..14 {
        let middle = f64::sqrt(low * high);
        if error(middle) > SHARE * model.accuracy {
            high = middle;
        } else {
            low = middle;
        }
    }
    let grid = model.box_length.map(|l| smooth_number(((l / (b * low)).ceil() as usize).max(order), model.cuda));
    Mesh { grid, window: Window::new(order, split), error: error(low) }
}

/// Costs of the parts of a step in units of that of a pair within the cutoff. They are constants, not times of the running
/// machine, so that the choice, and with it every bit of a run, depends on the input only.
struct Costs {
    /// Of a grid point that has a share in a charge.
    share: f64,
    /// Of a grid point per factor of 2 in the number of points.
    point: f64,
}

/// CPU: 8,000 ions at the density 0.4 with 1 thread, `benches/validation/electrolyte.sh`. Double: 37 ns a pair, 4.2 a share, 1.6 a
/// point; Mixed: 31, 3.5 and 1.5.
const CPU: Costs = Costs { share: 0.11, point: 0.045 };
/// CUDA: settings with 64,000 ions on an H200, Mixed, cutoffs from 2.5 to 3.4, orders 6 and 7: 17 ps a pair (with its list),
/// 2.2 a share, 2.7 a point.
const CUDA: Costs = Costs { share: 0.13, point: 0.16 };

/// Returns the shortest cutoff between `r` and the one before it for which the chosen grid is accurate enough, in eighths of their distance:
/// a grid has a number of points with small factors, so it is usually finer than `r` needs, and shorter cutoffs have fewer pairs.
fn shortest_cutoff(common: &Common, model: &Model, cutoffs: &[f64], r: f64, chosen: &Mesh) -> f64 {
    let Some(before) = cutoffs.iter().copied().rfind(|c| *c < r) else { return r };
    let shorter = (1..8).map(|k| rounded(r - 0.125 * f64::from(k) * (r - before)));
    let accurate = |c: &f64| {
        let split = Split::new(common.alpha(model, *c), *c);
        mesh(model, chosen.grid, chosen.window.order, split).error <= SHARE * model.accuracy
    };
    shorter.take_while(accurate).last().unwrap_or(r)
}

/// Chooses cutoff and α, which are set in `model`, and returns the mesh of least cost.
pub fn plan(
    common: &Common,
    model: &mut Model,
    system: &SystemInfo,
    order: Option<u32>,
    grid: Option<[usize; 3]>,
) -> Mesh {
    let density = system.n as f64 / system.box_length.iter().product::<f64>();
    let charged = model.charged;
    let costs = if model.cuda { CUDA } else { CPU };
    let cost = |r: f64, mesh: &Mesh| {
        let points = mesh.grid.iter().product::<usize>() as f64;
        let pairs = system.n as f64 * density * 4.0 / 3.0 * PI * r.powi(3);
        pairs + costs.share * charged * (mesh.window.order as f64).powi(3) + costs.point * points * points.log2()
    };
    let mut best: Option<((bool, f64), f64, Mesh)> = None;
    let cutoffs = common.cutoffs(system);
    for &r in &cutoffs {
        let split = Split::new(common.alpha(model, r), r);
        for p in order.map_or(ORDERS, |p| p..=p) {
            let p = p as usize;
            let mesh = match grid {
                Some(grid) => mesh(model, grid, p, split),
                None => coarsest(model, p, split),
            };
            // the least cost of those that are accurate enough, else the least error; of a given grid with its cutoff the least error
            let inaccurate = mesh.error > model.accuracy;
            let by_error = inaccurate || grid.is_some() && common.has_cutoff();
            let rank = (inaccurate, if by_error { mesh.error } else { cost(r, &mesh) });
            if best.as_ref().is_none_or(|b| rank < b.0) {
                best = Some((rank, r, mesh));
            }
        }
    }
    let ((inaccurate, _), r, chosen) = best.unwrap_or_default();
    let free = !inaccurate && grid.is_none() && !common.has_cutoff();
    let r = if free { shortest_cutoff(common, model, &cutoffs, r, &chosen) } else { r };
    model.r_cut = r;
    model.set_alpha(common.alpha(model, r));
    let order = chosen.window.order;
    let mut mesh = mesh(model, chosen.grid, order, model.split);
    mesh.error = mesh.error.hypot(rounding(model, order));
    mesh
}

/// Returns the estimated error of a mesh in the present box.
pub fn error_in_present_box(model: &Model, chosen: &Mesh) -> f64 {
    if model.present_box == model.box_length {
        return chosen.error;
    }
    let order = chosen.window.order;
    let present = mesh(&model.in_present_box(), chosen.grid, order, model.split);
    present.error.hypot(rounding(model, order))
}
