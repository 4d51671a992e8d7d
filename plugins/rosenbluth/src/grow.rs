//! Plain Rosenbluth sampling on the CPU.

use crate::model::Model;
use crate::sums::{GROUP, Layout, Sums};
use crate::walk::{Draws, Walk, Weight};
use galamost_plugin_api::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Grows one chain as far as possible; calls `each` after every monomer from the second on.
pub fn chain(walk: &mut Walk<'_>, draws: &Draws, n: usize, mut each: impl FnMut(&Walk<'_>, Weight, u32)) -> Weight {
    walk.begin();
    let (mut weight, mut contacts) = (Weight::ONE, 0);
    while walk.positions.len() < n {
        let Some(g) = walk.grow(draws, walk.positions.len() as u32) else { break };
        weight = weight.times(g.factor);
        contacts += g.contacts;
        each(walk, weight, contacts);
    }
    weight
}

/// Draws the chains first … first + n − 1.
pub fn batch(host: &Host, model: &Model, l: &Layout, scales: &[i32], first: u64, n: u64) -> Sums {
    in_groups(host, l, first, n, &|sums, chains| {
        let mut walk = Walk::new(model);
        for k in chains {
            let draws = Draws { key: model.key.key, chain: k };
            chain(&mut walk, &draws, model.n, |w, weight, contacts| sums.add(l, scales, w, weight, contacts));
        }
    })
}

/// Sums over all groups of consecutive chains; `f` computes the sums of one group.
pub fn in_groups(
    host: &Host,
    l: &Layout,
    first: u64,
    n: u64,
    f: &(dyn Fn(&mut Sums, std::ops::Range<u64>) + Sync),
) -> Sums {
    let all = Mutex::new(Sums::new(l, l.blocks));
    let (from, to) = (first / GROUP, (first + n).div_ceil(GROUP));
    host.parallel((to - from) as usize, 1, |groups| {
        for g in groups {
            let group = from + g as u64;
            let mut sums = Sums::new(l, 1);
            f(&mut sums, (group * GROUP).max(first)..((group + 1) * GROUP).min(first + n));
            let block = l.block(group * GROUP);
            all.lock().unwrap_or_else(PoisonError::into_inner).absorb(l, block, &sums);
        }
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}
