//! Selects the reactions that take place from the candidates: one by one, in the order of their random numbers, on the
//! host for every device.

use crate::energy::Geometry;
use crate::law::{Candidate, Kind, Local, pair_draw, single_draw};
use crate::table::Table;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Particles by tag.
pub type ParticleMap = BTreeMap<u32, Local>;

/// Looks up particles that the search did not return.
pub trait ParticleSource {
    /// Returns the data of these particles.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn fetch(&mut self, tags: &[u32]) -> Result<Vec<Local>>;
}

/// Random key, step, and box of a call.
#[derive(Clone, Copy, Debug)]
pub struct CallContext {
    pub key: RandomKey,
    pub step: u64,
    pub length: [f64; 3],
    /// Whether coordinates are fixed-point numbers.
    pub fixed: bool,
}

/// A reaction that took place: its index and the tags of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub reaction: usize,
    pub members: Vec<u32>,
}

/// Changes made by a call.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub edits: Vec<Edit>,
    pub events: Vec<Event>,
    /// Particles whose type, charge, or counters changed.
    pub changed: BTreeSet<u32>,
    /// Whether types or charges changed, on which forces depend.
    pub forces: bool,
}

/// Selects the reactions that take place. A particle takes part in at most one. `world` is updated to the final state.
///
/// # Errors
/// Returns an error of the source.
pub fn resolve(
    table: &Table,
    candidates: &[Candidate],
    world: &mut ParticleMap,
    source: &mut dyn ParticleSource,
    now: CallContext,
) -> Result<Outcome> {
    let members: BTreeSet<u32> = candidates.iter().flat_map(|c| [c.first, c.second]).collect();
    fetch_neighborhood(members, world, source, table.depth())?;
    let mut order: Vec<(u32, Candidate)> = candidates
        .iter()
        .map(|c| {
            let r = c.reaction as usize;
            let words = match c.first == c.second {
                true => single_draw(now.key, now.step, r, c.first),
                false => pair_draw(now.key, now.step, r, c.first, c.second),
            };
            (words[0], *c)
        })
        .collect();
    order.sort_unstable_by_key(|(word, c)| (*word, c.reaction, c.first, c.second));
    let mut run = Run { table, world, now, used: BTreeSet::new(), out: Outcome::default() };
    for (_, c) in order {
        run.attempt(c);
    }
    Ok(run.out)
}

/// Fetches particles, and those up to `depth` bonds away from them.
fn fetch_neighborhood(
    mut tags: BTreeSet<u32>,
    world: &mut ParticleMap,
    source: &mut dyn ParticleSource,
    depth: usize,
) -> Result<()> {
    for level in 0..=depth {
        let missing: Vec<u32> = tags.iter().copied().filter(|t| !world.contains_key(t)).collect();
        if !missing.is_empty() {
            world.extend(missing.iter().copied().zip(source.fetch(&missing)?));
        }
        if level < depth {
            tags = tags.iter().flat_map(|t| world[t].bonds.iter().map(|(other, _)| *other)).collect();
        }
    }
    Ok(())
}

struct Run<'a> {
    table: &'a Table,
    world: &'a mut ParticleMap,
    now: CallContext,
    used: BTreeSet<u32>,
    out: Outcome,
}

impl Run<'_> {
    fn geometry(&self) -> Geometry<'_> {
        Geometry { world: self.world, now: self.now }
    }

    fn bond(&self, a: u32, b: u32) -> Option<u32> {
        self.world[&a].bonds.iter().find(|(other, _)| *other == b).map(|(_, kind)| *kind)
    }

    /// Returns the partner of a bond to break; of several, the one whose draw with `other` comes first.
    fn broken_partner(&self, of: u32, other: u32, r: usize) -> Option<u32> {
        let broken = self.table.rows[r].broken;
        let bonds = self.world[&of].bonds.iter().filter(|(k, kind)| *kind == broken && *k != other);
        bonds.map(|(k, _)| *k).min_by_key(|k| (pair_draw(self.now.key, self.now.step, r, other, *k)[0], *k))
    }

    /// Executes a candidate if all its members can still react.
    fn attempt(&mut self, c: Candidate) {
        let r = c.reaction as usize;
        let (row, effects) = (self.table.rows[r], &self.table.effects[r]);
        let (i, j) = (c.first, c.second);
        // bonds to form and to break, as tags
        let (mut made, mut broken, mut third) = (vec![], None, None);
        match row.kind() {
            Kind::Grow | Kind::Join | Kind::Combine => made.push([i, j]),
            Kind::Disproportionate | Kind::Die => {}
            Kind::Break | Kind::Unzip => broken = Some([i, j]),
            Kind::Exchange => {
                third = self.broken_partner(j, i, r);
                let Some(k) = third else { return };
                made.push([i, j]);
                broken = Some([j, k]);
            }
            Kind::Insert => {
                third = self.broken_partner(i, j, r);
                let Some(k) = third else { return };
                if self.geometry().distance(j, k) >= self.table.r_cut || self.bond(j, k).is_some() {
                    return;
                }
                made.extend([[i, j], [j, k]]);
                broken = Some([i, k]);
            }
        }
        if row.is(Kind::Unzip) && self.world[&i].bonds.len() != 1 {
            return;
        }
        let members: Vec<u32> = if i == j { vec![i] } else { [i, j].into_iter().chain(third).collect() };
        if members.iter().any(|t| self.used.contains(t)) {
            return;
        }
        // one particle has no bonds to judge
        let word = if i == j { 0 } else { pair_draw(self.now.key, self.now.step, r, i, j)[3] };
        if !effects.acceptance.accepts(self.geometry(), &made, broken, word) {
            return;
        }
        self.states(row.kind(), i, j, third);
        for (tag, role) in [(i, 0), (j, 1)].into_iter().take(members.len().min(2)) {
            let local = self.world.entry(tag).or_default();
            if let Some(types) = effects.becomes {
                self.out.forces |= local.particle_type != types[role];
                local.particle_type = types[role];
            }
            if let Some(charges) = effects.charges {
                self.out.forces = true;
                local.charge = Some(charges[role]);
            }
        }
        if let Some([a, b]) = broken {
            self.cut(a, b);
        }
        for (n, [a, b]) in made.into_iter().enumerate() {
            // the second bond of an inserted particle has the type of the broken bond
            self.join(a, b, if n == 0 { effects.bond } else { row.broken }, r);
        }
        self.used.extend(&members);
        self.out.changed.extend(&members);
        self.out.events.push(Event { reaction: r, members });
    }

    /// Updates `h_init` and `h_cris` of the members.
    fn states(&mut self, kind: Kind, i: u32, j: u32, third: Option<u32>) {
        let mut change = |tag: u32, init: Option<i32>, more: i32| {
            let local = self.world.entry(tag).or_default();
            local.init = init.unwrap_or(local.init);
            local.cris = (local.cris + more).max(0);
        };
        match kind {
            Kind::Grow => {
                change(i, Some(0), 0);
                change(j, Some(1), 1);
            }
            Kind::Join => {
                change(i, None, 1);
                change(j, None, 1);
            }
            Kind::Combine | Kind::Disproportionate => {
                change(i, Some(0), 0);
                change(j, Some(0), 0);
            }
            Kind::Die => change(i, Some(0), 0),
            Kind::Exchange => {
                change(i, None, 1);
                if let Some(k) = third {
                    change(k, None, -1);
                }
            }
            Kind::Insert => change(j, None, 1),
            Kind::Break => {
                change(i, None, -1);
                change(j, None, -1);
            }
            Kind::Unzip => {
                change(i, Some(0), -1);
                change(j, Some(1), 0);
            }
        }
    }

    fn cut(&mut self, a: u32, b: u32) {
        let Some(kind) = self.bond(a, b) else { return };
        for (of, other) in [(a, b), (b, a)] {
            if let Some(local) = self.world.get_mut(&of)
                && let Some(at) = local.bonds.iter().position(|(o, _)| *o == other)
            {
                local.bonds.remove(at);
            }
        }
        self.out.edits.push(Edit::cut(kind, [a, b]));
    }

    fn bonded_except(&self, of: u32, but: u32) -> Vec<u32> {
        self.geometry().bonded_except(of, but)
    }

    fn types<const W: usize>(&self, tags: [u32; W]) -> [u32; W] {
        tags.map(|t| self.world.get(&t).map_or(0, |l| l.particle_type))
    }

    /// Forms a bond, and angles and dihedrals along it.
    fn join(&mut self, a: u32, b: u32, kind: u32, r: usize) {
        for (of, other) in [(a, b), (b, a)] {
            if let Some(local) = self.world.get_mut(&of) {
                local.bonds.push((other, kind));
            }
        }
        self.out.edits.push(Edit::add(kind, [a, b]));
        let (table, effects) = (self.table, &self.table.effects[r]);
        let mut edits = vec![];
        let mut angle = |run: &Self, tags: [u32; 3]| {
            let kind = effects.angle.or_else(|| table.angles.of(&table.types, run.types(tags)));
            edits.extend(kind.map(|kind| Edit::add(kind, tags)));
        };
        if !table.angles.is_empty() {
            for (x, y) in [(a, b), (b, a)] {
                for c in self.bonded_except(x, y) {
                    angle(self, [c, x, y]);
                }
            }
        }
        let mut dihedral = |run: &Self, tags: [u32; 4]| {
            // a ring of three particles has no dihedrals
            if (1..4).any(|k| tags[..k].contains(&tags[k])) {
                return;
            }
            let kind = effects.dihedral.or_else(|| table.dihedrals.of(&table.types, run.types(tags)));
            edits.extend(kind.map(|kind| Edit::add(kind, tags)));
        };
        if !table.dihedrals.is_empty() {
            for c in self.bonded_except(a, b) {
                for d in self.bonded_except(b, a) {
                    dihedral(self, [c, a, b, d]);
                }
            }
            for (x, y) in [(a, b), (b, a)] {
                for c in self.bonded_except(x, y) {
                    for d in self.bonded_except(c, x) {
                        dihedral(self, [d, c, x, y]);
                    }
                }
            }
        }
        self.out.edits.extend(edits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::Energies;
    use crate::law::Row;
    use crate::table::Effects;

    struct NoSource;
    impl ParticleSource for NoSource {
        fn fetch(&mut self, tags: &[u32]) -> Result<Vec<Local>> {
            Err(Error::Run(format!("{tags:?} do not exist")))
        }
    }

    fn row(kind: Kind) -> Row {
        Row { kind: kind as u32, of: [0, 0], broken: 0, p: 1.0, factor: 1.0, by_groups: 0, reserved: 0 }
    }

    fn table(rows: &[Kind]) -> Table {
        let rows: Vec<Row> = rows.iter().map(|k| row(*k)).collect();
        Table {
            effects: vec![Effects::default(); rows.len()],
            rows,
            limits: vec![1],
            r_cut: 2.0,
            types: vec!["A".into()],
            ..Table::default()
        }
    }

    fn now() -> CallContext {
        CallContext { key: RandomKey::new(1, 2), step: 3, length: [100.0; 3], fixed: false }
    }

    /// A row of particles at distances of 1; particle k is bonded to k + 1 for each k in `bonded`.
    fn world(n: u32, bonded: &[u32]) -> ParticleMap {
        let bonds = |t: u32| {
            let to = |k: &u32| {
                if *k == t {
                    Some((t + 1, 0))
                } else if k + 1 == t {
                    Some((*k, 0))
                } else {
                    None
                }
            };
            bonded.iter().filter_map(to).collect()
        };
        let one = |t: u32| Local { position: [f64::from(t), 0.0, 0.0], bonds: bonds(t), ..Local::default() };
        (0..n).map(|t| (t, one(t))).collect()
    }

    fn candidate(reaction: u32, first: u32, second: u32) -> Candidate {
        Candidate { reaction, first, second }
    }

    #[test]
    fn a_monomer_is_claimed_once() {
        let t = table(&[Kind::Grow]);
        let mut w = world(3, &[]);
        (w.get_mut(&0).expect("0").init, w.get_mut(&2).expect("2").init) = (1, 1);
        let both = [candidate(0, 0, 1), candidate(0, 2, 1)];
        let out = resolve(&t, &both, &mut w, &mut NoSource, now()).expect("resolved");
        assert!(out.edits.len() == 1 && out.events.len() == 1);
        let ends: Vec<u32> = w.iter().filter(|(_, l)| l.init == 1).map(|(t, _)| *t).collect();
        assert!(ends.len() == 2 && ends.contains(&1) && w[&1].cris == 1, "{ends:?}");
        // independent of the order of candidates
        let mut again = world(3, &[]);
        (again.get_mut(&0).expect("0").init, again.get_mut(&2).expect("2").init) = (1, 1);
        let other = resolve(&t, &[both[1], both[0]], &mut again, &mut NoSource, now()).expect("resolved");
        assert!(other.events == out.events && again == w);
    }

    #[test]
    fn bonds_are_exchanged_opened_and_unzipped() {
        let t = table(&[Kind::Exchange, Kind::Insert, Kind::Unzip, Kind::Break]);
        // 0 takes 1 from 2
        let mut w = world(3, &[1]);
        w.get_mut(&2).expect("2").cris = 1;
        let out = resolve(&t, &[candidate(0, 0, 1)], &mut w, &mut NoSource, now()).expect("resolved");
        assert_eq!(out.edits, [Edit::cut(0, [1, 2]), Edit::add(0, [0, 1])]);
        assert!(out.events[0].members == [0, 1, 2] && w[&0].cris == 1 && w[&2].cris == 0);
        // 1 is inserted between 0 and 2
        let mut w = world(3, &[]);
        for (a, b) in [(0, 2), (2, 0)] {
            w.get_mut(&a).expect("there").bonds.push((b, 0));
        }
        let out = resolve(&t, &[candidate(1, 0, 1)], &mut w, &mut NoSource, now()).expect("resolved");
        assert_eq!(out.edits, [Edit::cut(0, [0, 2]), Edit::add(0, [0, 1]), Edit::add(0, [1, 2])]);
        // an end detaches; a particle with two bonds cannot
        let mut w = world(3, &[0, 1]);
        let end = w.get_mut(&2).expect("2");
        (end.init, end.cris) = (1, 1);
        let out =
            resolve(&t, &[candidate(2, 2, 1), candidate(2, 1, 0)], &mut w, &mut NoSource, now()).expect("resolved");
        assert_eq!(out.edits, [Edit::cut(0, [2, 1])]);
        assert!(w[&1].init == 1 && w[&2].init == 0 && w[&2].cris == 0);
        let out = resolve(&t, &[candidate(3, 0, 1)], &mut w, &mut NoSource, now()).expect("resolved");
        assert_eq!(out.edits, [Edit::cut(0, [0, 1])]);
    }

    #[test]
    fn a_bond_is_opened_or_broken_in_one_call_but_not_both() {
        let t = table(&[Kind::Insert, Kind::Break]);
        let mut inserted = 0;
        for step in 0..40 {
            let mut w = world(3, &[]);
            for (a, b) in [(0, 2), (2, 0)] {
                let local = w.get_mut(&a).expect("there");
                (local.bonds, local.cris) = (vec![(b, 0)], 1);
            }
            let (both, now) = ([candidate(0, 0, 1), candidate(1, 0, 2)], CallContext { step, ..now() });
            let out = resolve(&t, &both, &mut w, &mut NoSource, now).expect("resolved");
            assert_eq!(out.events.len(), 1);
            let found = [0, 1, 2].map(|tag| (w[&tag].cris, w[&tag].bonds.len()));
            match out.events[0].reaction {
                0 => assert_eq!(found, [(1, 1), (1, 2), (1, 1)]),
                _ => assert_eq!(found, [(0, 0); 3]),
            }
            inserted += usize::from(out.events[0].reaction == 0);
        }
        assert!((5..35).contains(&inserted), "{inserted}");
    }

    #[test]
    fn angles_and_dihedrals_follow_their_names() {
        let mut t = table(&[Kind::Join]);
        let names = |text: &str| vec![text.to_string()];
        let system =
            SystemInfo { angle_types: names("A-A-A"), dihedral_types: names("A-A-A-A"), ..SystemInfo::default() };
        t.angles = crate::table::names_of(&system.angle_types);
        t.dihedrals = crate::table::names_of(&system.dihedral_types);
        let mut w = world(6, &[0, 1, 3, 4]);
        let out = resolve(&t, &[candidate(0, 2, 3)], &mut w, &mut NoSource, now()).expect("resolved");
        let of = |width: u32| out.edits.iter().filter(|e| e.width == width).map(|e| e.tags).collect::<Vec<_>>();
        assert_eq!(of(2), [[2, 3, 0, 0]]);
        assert_eq!(of(3), [[1, 2, 3, 0], [4, 3, 2, 0]]);
        assert_eq!(of(4), [[1, 2, 3, 4], [0, 1, 2, 3], [5, 4, 3, 2]]);
    }

    #[test]
    fn a_bond_that_costs_too_much_does_not_form() {
        let mut t = table(&[Kind::Join]);
        let energy = |bound: f64| {
            let bond = Some(crate::energy::BondEnergy::Harmonic { k: 0.0, r0: 1.0, bound });
            Some(Energies { kt: 1.0, activation: None, bond, angle: None, pair: None, mean: false })
        };
        for (bound, expected) in [(-1000.0, 0), (0.0, 1), (5.0, 1)] {
            t.effects[0].acceptance.energies = energy(bound);
            let out = resolve(&t, &[candidate(0, 0, 1)], &mut world(2, &[]), &mut NoSource, now()).expect("resolved");
            assert_eq!(out.events.len(), expected, "{bound}");
        }
        // half of them react at ΔU = kT ln 2
        t.effects[0].acceptance.energies = energy(-2f64.ln());
        let formed = |step| {
            let now = CallContext { step, ..now() };
            resolve(&t, &[candidate(0, 0, 1)], &mut world(2, &[]), &mut NoSource, now).expect("resolved").events.len()
        };
        let n: usize = (0..1000).map(formed).sum();
        assert!((n as f64 - 500.0).abs() < 4.0 * 250f64.sqrt(), "{n}");
    }
}
