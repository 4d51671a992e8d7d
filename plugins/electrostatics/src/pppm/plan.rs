//! Choice of α, cutoff, spline and grid from the accuracy.

use super::influence::mesh_error;
use crate::params::{Common, Model};
use galamost_plugin_api::prelude::*;
use std::f64::consts::PI;

/// Orders of splines.
pub const ORDERS: std::ops::RangeInclusive<u32> = 3..=7;

/// The mesh.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mesh {
    pub grid: [usize; 3],
    pub order: usize,
    /// Estimated error in units of the accuracy.
    pub error: f64,
}

/// Grid points along an axis that are supported.
pub const MAX_POINTS: usize = 1024;

/// Returns the smallest number from `least` on whose prime factors are 2, 3 and 5. A number that is too large anyway is
/// returned unchanged, because such numbers are far apart.
fn smooth_number(least: usize) -> usize {
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
    (least.max(2)..).find(|n| smooth(*n)).unwrap_or(least)
}

/// Returns the error of a mesh with these cells in units of the accuracy.
fn error_of_cells(model: &Model, cell: [f64; 3], order: usize, alpha: f64) -> f64 {
    let error = mesh_error(cell, order, alpha);
    let volume: f64 = model.box_length.iter().product();
    (error.pairs / volume.sqrt() / model.error_unit()).hypot(error.own * model.mean_distance().powi(2))
}

/// Returns the error of a mesh in units of the accuracy.
fn error(model: &Model, grid: [usize; 3], order: usize, alpha: f64) -> f64 {
    error_of_cells(model, std::array::from_fn(|k| model.box_length[k] / grid[k] as f64), order, alpha)
}

/// Returns the coarsest mesh of an order with half of the squared error.
fn coarsest(model: &Model, order: usize, alpha: f64) -> Mesh {
    let limit = model.accuracy / std::f64::consts::SQRT_2;
    let (mut low, mut high) = (0.02 / alpha, 6.0 / alpha);
    for _ in 0..16 {
        let middle = (low * high).sqrt();
        if error_of_cells(model, [middle; 3], order, alpha) > limit {
            high = middle;
        } else {
            low = middle;
        }
    }
    let grid = model.box_length.map(|l| smooth_number(((l / low).ceil() as usize).max(order)));
    Mesh { grid, order, error: error(model, grid, order, alpha) }
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
    // costs of a point that a charge shares, and of a grid point per factor of 2 of the grid, in units of that of a pair
    let (per_share, per_point) = if model.cuda { (2.0, 1.5) } else { (0.4, 0.3) };
    let cost = |r: f64, mesh: &Mesh| {
        let points = mesh.grid.iter().product::<usize>() as f64;
        let pairs = system.n as f64 * density * 4.0 / 3.0 * PI * r.powi(3);
        pairs + per_share * charged * (mesh.order as f64).powi(3) + per_point * points * points.log2()
    };
    let mut best: Option<(f64, f64, Mesh)> = None;
    for r in common.cutoffs(system) {
        let alpha = common.alpha(model, r);
        for p in order.map_or(ORDERS, |p| p..=p) {
            let p = p as usize;
            let mesh = match grid {
                Some(grid) => Mesh { grid, order: p, error: error(model, grid, p, alpha) },
                None => coarsest(model, p, alpha),
            };
            // of given grids the order with the least error, of others the one with the least cost
            let cost = if grid.is_some() && common.has_cutoff() { mesh.error } else { cost(r, &mesh) };
            if best.as_ref().is_none_or(|b| cost < b.0) {
                best = Some((cost, r, mesh));
            }
        }
    }
    let (_, r, mesh) = best.unwrap_or_default();
    (model.r_cut, model.alpha) = (r, common.alpha(model, r));
    mesh
}
