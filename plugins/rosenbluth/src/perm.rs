//! PERM on the CPU: pruned-enriched Rosenbluth sampling (Grassberger, Phys. Rev. E 56, 3682 (1997)), also flat in the
//! number of monomers or contacts (Prellberg & Krawczyk, Phys. Rev. Lett. 92, 120602 (2004)).
//!
//! A tour is a chain with all its copies, which grow side by side, a monomer at a time: on the device a block of threads grows a tour,
//! and each of its threads, called lanes here, a chain. A copy goes to a free lane, and a chain for whose copies there are not enough
//! continues without. Weights are
//! compared with the means of earlier batches, so the tours of a batch are independent. What decides about copies of a chain is known
//! before it grows on, so every estimate is unbiased for any means.

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

/// Returns the largest number of chains of a tour at a time, a power of two and a multiple of 32.
///
/// Few tours reach a great length, and those that do have the more chains there, since there is about one chain for each tour. A
/// histogram that is flat in contacts has a chain for each number of them. Very long chains need much memory.
pub fn lanes(l: &Layout) -> usize {
    match l.width {
        1 => (l.n / 32).min((1 << 22) / l.n).next_power_of_two().clamp(32, 256),
        _ => (4 * l.n).next_power_of_two().clamp(32, 512),
    }
}

/// Returns the mean weight of each bin so far; m = 0 if unknown.
pub fn means(l: &Layout, totals: &Totals) -> Vec<Weight> {
    let mean = |row: usize| match totals.log2(l, row) {
        Some(x) if totals.scale[row] != NO_SCALE => Weight { m: (x - x.floor()).exp2(), e: x.floor() as i32 },
        _ => Weight { m: 0.0, e: 0 },
    };
    (0..l.rows()).map(mean).collect()
}

/// Returns how many copies should continue, and their weight.
fn controlled(control: Control, weight: Weight, mean: Weight, word: u32) -> (u32, Weight) {
    if mean.m == 0.0 {
        return (1, weight);
    }
    let ratio = weight.scaled(-mean.e) / mean.m;
    let chance = f64::from(word) * (1.0 / 4_294_967_296.0);
    match control {
        Control::Thresholds { high, .. } if ratio > high => (2, weight.times(0.5)),
        Control::Thresholds { low, .. } if ratio < low => (u32::from(chance < 0.5), weight.times(2.0)),
        Control::Flat if ratio >= 2.0 => {
            let k = if ratio < 8.0 { ratio as u32 } else { 8 };
            (k, weight.times(1.0 / f64::from(k)))
        }
        Control::Flat if ratio < 1.0 => (u32::from(chance < ratio), mean),
        _ => (1, weight),
    }
}

/// A chain of a tour.
struct Lane<'a> {
    walk: Walk<'a>,
    weight: Weight,
    contacts: u32,
    lives: bool,
}

/// The chains of a tour. Lanes are made when they are needed.
pub struct Tour<'a> {
    model: &'a Model,
    lanes: Vec<Lane<'a>>,
}

impl<'a> Tour<'a> {
    pub fn new(model: &'a Model) -> Self {
        Self { model, lanes: vec![] }
    }

    fn lane(&mut self, k: usize) -> &mut Lane<'a> {
        while self.lanes.len() <= k {
            let walk = Walk::new(self.model);
            self.lanes.push(Lane { walk, weight: Weight::ONE, contacts: 0, lives: false });
        }
        &mut self.lanes[k]
    }

    /// Grows one tour; calls `each` after every monomer from the second on.
    pub fn grow(
        &mut self,
        draws: &Draws,
        control: Control,
        l: &Layout,
        means: &[Weight],
        mut each: impl FnMut(&Walk<'_>, Weight, u32),
    ) {
        self.lane(0).walk.begin();
        self.lanes.iter_mut().for_each(|lane| lane.lives = false);
        let first = &mut self.lanes[0];
        (first.weight, first.contacts, first.lives) = (Weight::ONE, 0, true);
        for n in 2..=l.n {
            let draw = |lane: usize| (lane * l.n + n - 1) as u32;
            for (k, lane) in self.lanes.iter_mut().enumerate().filter(|(_, lane)| lane.lives) {
                let Some(g) = lane.walk.grow(draws, draw(k)) else {
                    lane.lives = false;
                    continue;
                };
                lane.weight = lane.weight.times(g.factor);
                lane.contacts += g.contacts;
                each(&lane.walk, lane.weight, lane.contacts);
            }
            if n == l.n || !self.lanes.iter().any(|lane| lane.lives) {
                return;
            }
            self.control(lanes(l), |lane, chain| {
                controlled(control, chain.weight, means[l.row(n, chain.contacts)], draws.pruning(draw(lane)))
            });
        }
    }

    /// Prunes chains and makes copies of others, up to `most` chains; `wanted` returns how many copies of a chain should continue, and
    /// their weight.
    fn control(&mut self, most: usize, wanted: impl Fn(usize, &Lane<'a>) -> (u32, Weight)) {
        let none = (0, Weight::ONE);
        let all: Vec<(u32, Weight)> =
            self.lanes.iter().enumerate().map(|(k, lane)| if lane.lives { wanted(k, lane) } else { none }).collect();
        let mut room = most - all.iter().filter(|(copies, _)| *copies > 0).count();
        let mut free = (0..most).filter(|k| all.get(*k).is_none_or(|(copies, _)| *copies == 0));
        let mut to = vec![];
        for (k, (copies, weight)) in all.iter().enumerate() {
            let more = copies.saturating_sub(1) as usize;
            self.lanes[k].lives = *copies > 0;
            if more <= room {
                room -= more;
                self.lanes[k].weight = *weight;
                to.extend(free.by_ref().take(more).map(|place| (k, place)));
            } else {
                // nor do later ones have copies, so that the order of lanes alone decides
                room = 0;
            }
        }
        for (from, place) in to {
            self.lane(place);
            let [from, place] =
                self.lanes.get_disjoint_mut([from, place]).unwrap_or_else(|_| unreachable!("a lane is free or not"));
            place.walk.copy(&from.walk);
            (place.weight, place.contacts, place.lives) = (from.weight, from.contacts, true);
        }
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
        let mut tour = Tour::new(model);
        for t in tours {
            let draws = Draws { key: model.key.key, chain: t };
            tour.grow(&draws, control, l, means, |w, weight, c| sums.add(l, scales, w, weight, c));
        }
    })
}
