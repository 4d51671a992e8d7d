//! Search for candidates on the CPU.

use crate::law::{Candidate, Kind, Local, Partners, Reactant, Row, apart, decides, norm2, pair_draw, single_draw};
use crate::resolve::{CallContext, Outcome, ParticleMap, ParticleSource};
use crate::table::Table;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision};
use galamost_plugin_api::prelude::*;

/// Particles per task; independent of the number of threads.
const CHUNK: usize = 256;

/// Views of the state in host memory.
pub struct HostSearch<'a> {
    call: &'a UpdateCall,
    init: DevicePtr<i32>,
    cris: DevicePtr<i32>,
    now: CallContext,
}

impl<'a> HostSearch<'a> {
    /// Creates the search for a call.
    ///
    /// # Safety
    /// The views describe valid host arrays that nothing else writes during the lifetime of this value.
    pub unsafe fn new(host: &Host, call: &'a UpdateCall, now: CallContext) -> Self {
        Self { call, init: host.array("h_init"), cris: host.array("h_cris"), now }
    }

    fn double(&self) -> bool {
        self.call.state.precision == Precision::Double as u32
    }

    fn position(&self, i: usize) -> [f64; 3] {
        let pos = self.call.state.pos_type;
        // SAFETY: valid host arrays (contract of `new`); `i < n_local`
        unsafe {
            match self.double() {
                true => (*pos.cast::<PosTypeF64>().host().add(i)).position,
                false => (*pos.cast::<PosTypeFixed>().host().add(i)).position.map(f64::from),
            }
        }
    }

    fn tag(&self, i: usize) -> u32 {
        // SAFETY: valid host arrays (contract of `new`); `i < n_local`
        unsafe { *self.call.state.tag.host().add(i) }
    }

    fn reactant(&self, i: usize, table: &Table) -> Reactant {
        // SAFETY: valid host arrays (contract of `new`); `i < n_local`
        unsafe {
            let particle_type = self.call.state.type_id(i);
            Reactant {
                particle_type,
                init: *self.init.host().add(i),
                cris: *self.cris.host().add(i),
                limit: table.limits[particle_type as usize],
            }
        }
    }

    fn bonds(&self, i: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        // SAFETY: valid host arrays (contract of `new`); `i < n_local`
        unsafe { self.call.bonds.row(i) }.map(|e| (e.others[0] as usize, e.kind))
    }

    /// Finds the candidates of a range of particles.
    fn search(&self, table: &Table, range: std::ops::Range<usize>, found: &mut Vec<Candidate>) {
        for i in range {
            let (tag, reactant_i) = (self.tag(i), self.reactant(i, table));
            for (r, row) in table.rows.iter().enumerate() {
                if !reactant_i.first(row) {
                    continue;
                }
                let mut add = |second| found.push(Candidate { reaction: r as u32, first: tag, second });
                if row.is(Kind::Die) {
                    if u64::from(single_draw(self.now.key, self.now.step, r, tag)[1])
                        < row.threshold(reactant_i, reactant_i)
                    {
                        add(tag);
                    }
                } else if row.kind().needs_unbonded_pair() {
                    self.partners(table, r, row, i, reactant_i).into_iter().for_each(add);
                } else {
                    self.bonded_partners(table, r, row, i, reactant_i).into_iter().for_each(add);
                }
            }
        }
    }

    /// Returns the partners along bonds that break.
    fn bonded_partners(&self, table: &Table, r: usize, row: &Row, i: usize, reactant_i: Reactant) -> Vec<u32> {
        let tag = self.tag(i);
        let twice = row.is(Kind::Break) && row.of[0] == row.of[1];
        let bonds = self.bonds(i).filter(|(j, kind)| *kind == row.broken && self.reactant(*j, table).second(row));
        let tags = bonds.map(|(j, _)| self.tag(j)).filter(|other| !twice || tag < *other);
        let draws = |other: u32| pair_draw(self.now.key, self.now.step, r, tag, other);
        tags.filter(|other| decides(draws(*other), tag, *other) < row.threshold(reactant_i, reactant_i)).collect()
    }

    /// Returns the partners within r_cut.
    fn partners(&self, table: &Table, r: usize, row: &Row, i: usize, reactant_i: Reactant) -> Vec<u32> {
        let (tag, at) = (self.tag(i), self.position(i));
        let breakable = |i: usize| self.bonds(i).any(|(_, kind)| kind == row.broken);
        if row.is(Kind::Insert) && !breakable(i) {
            return vec![];
        }
        let once = table.partners == Partners::Each && row.kind().symmetric() && row.of[0] == row.of[1];
        let (mut all, mut best) = (vec![], None);
        // SAFETY: the list describes valid host arrays (contract of `new`)
        for j in unsafe { self.call.list.row(i) }.iter().map(|j| *j as usize) {
            let (other, reactant_j) = (self.tag(j), self.reactant(j, table));
            if !reactant_j.second(row) || (once && other < tag) {
                continue;
            }
            let r2 = norm2(apart(at, self.position(j), self.now.length, self.now.fixed));
            let bonded = || self.bonds(i).any(|(k, _)| k == j);
            if r2 >= table.r_cut * table.r_cut || (row.is(Kind::Exchange) && !breakable(j)) || bonded() {
                continue;
            }
            let words = pair_draw(self.now.key, self.now.step, r, tag, other);
            let reacts = decides(words, tag, other) < row.threshold(reactant_i, reactant_j);
            match table.partners {
                Partners::Each if reacts => all.push(other),
                Partners::Each => {}
                // the bits of nonnegative numbers have the same order as the numbers
                rule => {
                    let rank = if rule == Partners::Nearest { r2.to_bits() } else { u64::from(words[0]) };
                    if best.is_none_or(|(p, o, _)| (rank, other) < (p, o)) {
                        best = Some((rank, other, reacts));
                    }
                }
            }
        }
        all.extend(best.filter(|(.., reacts)| *reacts).map(|(_, other, _)| other));
        all
    }

    /// Returns the candidates of the own particles of this rank, computed by all threads.
    pub fn candidates(&self, host: &Host, table: &Table) -> Vec<Candidate> {
        let begin = self.call.state.own_begin as usize;
        let n = self.call.state.own_end as usize - begin;
        let mut found: Vec<Vec<Candidate>> = vec![vec![]; n.div_ceil(CHUNK)];
        let chunks = DevicePtr::<Vec<Candidate>>::new(found.as_mut_ptr() as u64);
        // the arrays are only read
        let shared = Shared(self);
        host.parallel(n, CHUNK, |range| {
            // SAFETY: every task writes its own element of `found`, which outlives the tasks
            let mine = unsafe { &mut *chunks.host().add(range.start / CHUNK) };
            shared.get().search(table, begin + range.start..begin + range.end, mine);
        });
        found.into_iter().flatten().collect()
    }

    /// Writes the changes of particles.
    ///
    /// # Safety
    /// As for [`Self::new`].
    pub unsafe fn apply(&self, outcome: &Outcome, world: &ParticleMap) {
        let state = &self.call.state;
        for tag in &outcome.changed {
            let local = &world[tag];
            // SAFETY: valid host arrays (contract of this function); no other thread accesses them
            unsafe {
                let i = *state.index_of_tag.host().add(*tag as usize) as usize;
                *self.init.host().add(i) = local.init;
                *self.cris.host().add(i) = local.cris;
                match self.double() {
                    true => (*state.pos_type.cast::<PosTypeF64>().host().add(i)).kind = local.particle_type,
                    false => (*state.pos_type.cast::<PosTypeFixed>().host().add(i)).kind = local.particle_type,
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

struct Shared<'a, 'b>(&'a HostSearch<'b>);
// SAFETY: the call holds pointers that the search only reads
unsafe impl Sync for Shared<'_, '_> {}
impl<'a, 'b> Shared<'a, 'b> {
    fn get(&self) -> &'a HostSearch<'b> {
        self.0
    }
}

/// On the CPU, every rank has the present values of all particles.
impl ParticleSource for HostSearch<'_> {
    fn fetch(&mut self, tags: &[u32]) -> Result<Vec<Local>> {
        let local = |tag: &u32| {
            // SAFETY: valid host arrays (contract of `new`); tags are those of the system
            unsafe {
                let i = *self.call.state.index_of_tag.host().add(*tag as usize) as usize;
                Local {
                    position: self.position(i),
                    particle_type: self.call.state.type_id(i),
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
