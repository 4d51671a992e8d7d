//! The search for partners on the CPU.

use crate::law::{Candidate, Kind, Local, Partners, Row, Who, apart, decides, norm2, pair_draw, single_draw};
use crate::resolve::{Moment, Outcome, Source, World};
use crate::table::Table;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision};
use galamost_plugin_api::prelude::*;

/// Particles of one task; it does not depend on the number of threads.
const CHUNK: usize = 256;

/// The state on the host.
pub struct OnHost<'a> {
    call: &'a UpdateCall,
    init: DevicePtr<i32>,
    cris: DevicePtr<i32>,
    now: Moment,
}

impl<'a> OnHost<'a> {
    /// For a call.
    ///
    /// # Safety
    /// The views describe valid host arrays, which nobody else writes while this lives.
    pub unsafe fn new(host: &Host, call: &'a UpdateCall, now: Moment) -> Self {
        Self { call, init: host.array("h_init"), cris: host.array("h_cris"), now }
    }

    fn double(&self) -> bool {
        self.call.state.precision == Precision::Double as u32
    }

    fn position(&self, i: usize) -> [f64; 3] {
        let pos = self.call.state.pos_type;
        // SAFETY: the word given to `new`
        unsafe {
            match self.double() {
                true => (*pos.cast::<PosTypeF64>().host().add(i)).position,
                false => (*pos.cast::<PosTypeFixed>().host().add(i)).position.map(f64::from),
            }
        }
    }

    fn tag(&self, i: usize) -> u32 {
        // SAFETY: the word given to `new`
        unsafe { *self.call.state.tag.host().add(i) }
    }

    fn who(&self, i: usize, table: &Table) -> Who {
        // SAFETY: the word given to `new`
        unsafe {
            let kind = self.call.state.type_id(i);
            Who {
                kind,
                init: *self.init.host().add(i),
                cris: *self.cris.host().add(i),
                limit: table.limits[kind as usize],
            }
        }
    }

    fn bonds(&self, i: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        // SAFETY: the word given to `new`
        unsafe { self.call.bonds.row(i) }.map(|e| (e.others[0] as usize, e.kind))
    }

    /// Possible reactions of the particles in a range.
    fn search(&self, table: &Table, range: std::ops::Range<usize>, found: &mut Vec<Candidate>) {
        for i in range {
            let (tag, me) = (self.tag(i), self.who(i, table));
            for (r, row) in table.rows.iter().enumerate() {
                if !me.first(row) {
                    continue;
                }
                let mut note = |second| found.push(Candidate { reaction: r as u32, first: tag, second });
                if row.is(Kind::Die) {
                    if u64::from(single_draw(self.now.key, self.now.step, r, tag)[1]) < row.threshold(me, me) {
                        note(tag);
                    }
                } else if row.kind().meets() {
                    self.partners(table, r, row, i, me).into_iter().for_each(note);
                } else {
                    self.opened(table, r, row, i, me).into_iter().for_each(note);
                }
            }
        }
    }

    /// Partners along bonds that may break.
    fn opened(&self, table: &Table, r: usize, row: &Row, i: usize, me: Who) -> Vec<u32> {
        let tag = self.tag(i);
        let twice = row.is(Kind::Break) && row.of[0] == row.of[1];
        let bonds = self.bonds(i).filter(|(j, kind)| *kind == row.broken && self.who(*j, table).second(row));
        let tags = bonds.map(|(j, _)| self.tag(j)).filter(|other| !twice || tag < *other);
        let draws = |other: u32| pair_draw(self.now.key, self.now.step, r, tag, other);
        tags.filter(|other| decides(draws(*other), tag, *other) < row.threshold(me, me)).collect()
    }

    /// Partners in reach.
    fn partners(&self, table: &Table, r: usize, row: &Row, i: usize, me: Who) -> Vec<u32> {
        let (tag, at) = (self.tag(i), self.position(i));
        let breakable = |i: usize| self.bonds(i).any(|(_, kind)| kind == row.broken);
        if row.is(Kind::Insert) && !breakable(i) {
            return vec![];
        }
        let once = table.partners == Partners::Each && row.kind().symmetric() && row.of[0] == row.of[1];
        let (mut all, mut best) = (vec![], None);
        // SAFETY: the word given to `new`
        for j in unsafe { self.call.list.row(i) }.iter().map(|j| *j as usize) {
            let (other, you) = (self.tag(j), self.who(j, table));
            if !you.second(row) || (once && other < tag) {
                continue;
            }
            let r2 = norm2(apart(at, self.position(j), self.now.length, self.now.fixed));
            let bonded = || self.bonds(i).any(|(k, _)| k == j);
            if r2 >= table.r_cut * table.r_cut || (row.is(Kind::Exchange) && !breakable(j)) || bonded() {
                continue;
            }
            let words = pair_draw(self.now.key, self.now.step, r, tag, other);
            let reacts = decides(words, tag, other) < row.threshold(me, you);
            match table.partners {
                Partners::Each if reacts => all.push(other),
                Partners::Each => {}
                // a square is not negative: its bits have its order
                rule => {
                    let place = if rule == Partners::Nearest { r2.to_bits() } else { u64::from(words[0]) };
                    if best.is_none_or(|(p, o, _)| (place, other) < (p, o)) {
                        best = Some((place, other, reacts));
                    }
                }
            }
        }
        all.extend(best.filter(|(.., reacts)| *reacts).map(|(_, other, _)| other));
        all
    }

    /// All possible reactions, on all threads.
    pub fn candidates(&self, host: &Host, table: &Table) -> Vec<Candidate> {
        let n = self.call.state.n_local as usize;
        let mut found: Vec<Vec<Candidate>> = vec![vec![]; n.div_ceil(CHUNK)];
        let place = DevicePtr::<Vec<Candidate>>::new(found.as_mut_ptr() as u64);
        // the addresses are only read
        let shared = Shared(self);
        host.parallel(n, CHUNK, |range| {
            // SAFETY: every chunk has its own place in `found`, which lives until all are done
            let mine = unsafe { &mut *place.host().add(range.start / CHUNK) };
            shared.get().search(table, range, mine);
        });
        found.into_iter().flatten().collect()
    }

    /// Writes what is new of particles.
    ///
    /// # Safety
    /// The word given to [`Self::new`].
    pub unsafe fn apply(&self, outcome: &Outcome, world: &World) {
        let state = &self.call.state;
        for tag in &outcome.changed {
            let local = &world[tag];
            // SAFETY: the caller's word; this thread alone is at work
            unsafe {
                let i = *state.index_of_tag.host().add(*tag as usize) as usize;
                *self.init.host().add(i) = local.init;
                *self.cris.host().add(i) = local.cris;
                match self.double() {
                    true => (*state.pos_type.cast::<PosTypeF64>().host().add(i)).kind = local.kind,
                    false => (*state.pos_type.cast::<PosTypeFixed>().host().add(i)).kind = local.kind,
                }
                match local.charge {
                    Some(q) if self.double() => *state.charge.cast::<f64>().host().add(i) = q,
                    Some(q) => *state.charge.cast::<f32>().host().add(i) = q as f32,
                    None => {}
                }
            }
        }
    }
}

struct Shared<'a, 'b>(&'a OnHost<'b>);
// SAFETY: the call carries addresses, of which the search only reads
unsafe impl Sync for Shared<'_, '_> {}
impl<'a, 'b> Shared<'a, 'b> {
    fn get(&self) -> &'a OnHost<'b> {
        self.0
    }
}

impl Source for OnHost<'_> {
    fn fetch(&mut self, tags: &[u32]) -> Result<Vec<Local>> {
        let local = |tag: &u32| {
            // SAFETY: the word given to `new`
            unsafe {
                let i = *self.call.state.index_of_tag.host().add(*tag as usize) as usize;
                Local {
                    position: self.position(i),
                    kind: self.call.state.type_id(i),
                    init: *self.init.host().add(i),
                    cris: *self.cris.host().add(i),
                    charge: None,
                    bonds: self.bonds(i).map(|(j, kind)| (self.tag(j), kind)).collect(),
                }
            }
        };
        Ok(tags.iter().map(local).collect())
    }
}
