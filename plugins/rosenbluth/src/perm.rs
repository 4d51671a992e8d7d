//! PERM on the CPU: pruned-enriched Rosenbluth sampling (Grassberger, Phys. Rev. E 56, 3682 (1997)), also flat in the
//! number of monomers or contacts (Prellberg & Krawczyk, Phys. Rev. Lett. 92, 120602 (2004)).
//!
//! A tour is a chain with all its copies, grown depth first by one thread. It compares weights with the means of
//! earlier batches, so the tours of a batch are independent, and every estimate is unbiased for any means. For the same
//! reason, a tour may stop making copies when many are waiting or when it has become long.

use crate::model::Model;
use crate::sums::{Layout, NO_SCALE, Sums, Totals};
use crate::walk::{Draws, Walk, Weight};
use galamost_plugin_api::prelude::*;

/// Cloning and pruning strategy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// Two copies above `high` Z; below `low` Z, every second chain is killed.
    Thresholds { low: f64, high: f64 },
    /// W/Z copies, up to eight; below Z, a chain survives with probability W/Z.
    Flat,
}

/// Maximum number of waiting copies in a tour.
pub const WAITING: u32 = 64;
/// Steps of a tour, in multiples of the number of monomers, after which no copies are made.
pub const STEPS: u32 = 64;

/// Returns the mean weight of each bin so far; m = 0 if unknown.
pub fn means(l: &Layout, totals: &Totals) -> Vec<Weight> {
    let mean = |row: usize| match totals.log2(l, row) {
        Some(x) if totals.scale[row] != NO_SCALE => Weight { m: (x - x.floor()).exp2(), e: x.floor() as i32 },
        _ => Weight { m: 0.0, e: 0 },
    };
    (0..l.rows()).map(mean).collect()
}

/// Returns how many copies continue, and their weight.
fn controlled(control: Control, weight: Weight, mean: Weight, may_clone: bool, word: u32) -> (u32, Weight) {
    if mean.m == 0.0 {
        return (1, weight);
    }
    let ratio = weight.scaled(-mean.e) / mean.m;
    let chance = f64::from(word) * (1.0 / 4_294_967_296.0);
    match control {
        Control::Thresholds { high, .. } if ratio > high && may_clone => (2, weight.times(0.5)),
        Control::Thresholds { low, .. } if ratio < low => (u32::from(chance < 0.5), weight.times(2.0)),
        Control::Flat if ratio >= 2.0 && may_clone => {
            let k = if ratio < 8.0 { ratio as u32 } else { 8 };
            (k, weight.times(1.0 / f64::from(k)))
        }
        Control::Flat if ratio < 1.0 => (u32::from(chance < ratio), mean),
        _ => (1, weight),
    }
}

struct Branch {
    copies: u32,
    weight: Weight,
    contacts: u32,
}

/// Grows one tour.
pub fn tour(
    walk: &mut Walk<'_>,
    draws: &Draws,
    control: Control,
    l: &Layout,
    means: &[Weight],
    mut each: impl FnMut(&Walk<'_>, Weight, u32),
) {
    walk.begin();
    let mut stack = vec![Branch { copies: 0, weight: Weight::ONE, contacts: 0 }];
    let (mut weight, mut contacts, mut steps, mut waiting) = (Weight::ONE, 0u32, 0u32, 0u32);
    let budget = STEPS * l.n as u32;
    loop {
        let mut continues = false;
        if let Some(g) = walk.grow(draws, steps) {
            weight = weight.times(g.factor);
            contacts += g.contacts;
            each(walk, weight, contacts);
            let n = walk.positions.len();
            let mut copies = 0;
            if n < l.n {
                let may = waiting + 8 <= WAITING && steps < budget;
                (copies, weight) = controlled(control, weight, means[l.row(n, contacts)], may, draws.pruning(steps));
            }
            continues = copies > 0;
            let copies = copies.saturating_sub(1);
            waiting += copies;
            stack.push(Branch { copies, weight, contacts });
        }
        steps += 1;
        if continues {
            continue;
        }
        // back to the last branch with waiting copies
        while stack.last().is_some_and(|s| s.copies == 0) {
            stack.pop();
            if !stack.is_empty() {
                walk.pop();
            }
        }
        let Some(s) = stack.last_mut() else { return };
        s.copies -= 1;
        waiting -= 1;
        (weight, contacts) = (s.weight, s.contacts);
    }
}

/// Draws the tours first … first + n − 1.
pub fn batch(
    host: &Host,
    model: &Model,
    control: Control,
    l: &Layout,
    scales: &[i32],
    means: &[Weight],
    first: u64,
    n: u64,
) -> Sums {
    crate::grow::in_groups(host, l, first, n, &|sums, tours| {
        let mut walk = Walk::new(model);
        for t in tours {
            let draws = Draws { key: model.key.key, chain: t };
            tour(&mut walk, &draws, control, l, means, |w, weight, c| sums.add(l, scales, w, weight, c));
        }
    })
}
