//! Topology: bonds, angles, dihedrals and impropers, the pairs they exclude, and those whose forces are scaled.

use crate::diagnostic::counted;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::snapshot::{Link, LinkList, Snapshot};
use galamost_plugin_api::updater::Edit;

pub use rows::{LinkRows, LinkTables, Touched};
pub use special::PairRules;

mod rows;
mod special;

/// Bonds, angles, dihedrals and impropers in the order of the initial state, followed by those added later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Bonds.
    pub bonds: Vec<Link<2>>,
    /// Angles.
    pub angles: Vec<Link<3>>,
    /// Dihedrals.
    pub dihedrals: Vec<Link<4>>,
    /// Impropers.
    pub impropers: Vec<Link<4>>,
}

impl Topology {
    /// Returns the topology of a snapshot.
    pub fn of(s: &Snapshot) -> Self {
        Self {
            bonds: s.bonds.clone(),
            angles: s.angles.clone(),
            dihedrals: s.dihedrals.clone(),
            impropers: s.impropers.clone(),
        }
    }

    /// Applies the edits of an updater; `link_types` are the numbers of types of bonds, angles, dihedrals and impropers.
    ///
    /// # Errors
    /// Returns an error that names the updater if an edit adds a link of an unknown type, and those of [`Self::apply`].
    pub fn apply_of(
        &mut self,
        updater: &str,
        tables: &mut LinkTables,
        edits: &mut [Edit],
        link_types: [u32; 4],
        step: u64,
    ) -> Result<Touched> {
        let named = |tag: Option<u32>, what: String| Error::Unstable { step, tag, what: format!("{updater}: {what}") };
        for e in edits.iter().filter(|e| e.remove == 0) {
            let list = [2, 3, 4].iter().position(|w| *w == e.width).map(|k| k + (e.improper == 1) as usize);
            if let Some(n) = list.and_then(|k| link_types.get(k)).filter(|n| e.kind >= **n) {
                let what = format!(
                    "a change of topology adds a link of type number {}, but the initial state has {}: {e:?}",
                    e.kind,
                    counted(u64::from(*n), "type")
                );
                return Err(named(Some(e.tags[0]), what));
            }
        }
        self.apply(tables, edits, step).map_err(|error| match error {
            Error::Unstable { tag, what, .. } => named(tag, what),
            other => other,
        })
    }

    /// Applies edits to the topology and to the rows of `tables`. The result does not depend on the order of the edits,
    /// because they are sorted first; additions come before removals. An edit costs O(rows touched); removals also cost
    /// one pass over all links of their width.
    ///
    /// # Errors
    /// Returns an error if an edit names an unknown particle or one particle twice, or removes a link that does not exist, or if
    /// an added link exists twice after all edits.
    pub fn apply(&mut self, tables: &mut LinkTables, edits: &mut [Edit], step: u64) -> Result<Touched> {
        edits.sort_unstable();
        let n = tables.n();
        let mut removed = Removed::default();
        let mut touched = Touched::default();
        for e in edits.iter() {
            let tags = &e.tags[..e.width.min(4) as usize];
            if let Some(t) = tags.iter().find(|t| **t as usize >= n) {
                let what = format!("a change of topology refers to particle {t}, which does not exist");
                return Err(Error::Unstable { step, tag: None, what });
            }
            let twice = (1..tags.len()).any(|k| tags[..k].contains(&tags[k]));
            let done = !twice
                && match (e.width, e.improper, e.remove) {
                    (2, 0, 0) => add(&mut self.bonds, &mut tables.bonds, &mut touched.bonds, e),
                    (3, 0, 0) => add(&mut self.angles, &mut tables.angles, &mut touched.angles, e),
                    (4, 0, 0) => add(&mut self.dihedrals, &mut tables.dihedrals, &mut touched.dihedrals, e),
                    (4, 1, 0) => add(&mut self.impropers, &mut tables.impropers, &mut touched.impropers, e),
                    (2, 0, 1 | 2) => {
                        let all = e.remove == 1 || removed.along(tables, &mut touched, [e.tags[0], e.tags[1]]);
                        all && remove::<2>(&mut tables.bonds, &mut touched.bonds, &mut removed.bonds, e)
                    }
                    (3, 0, 1) => remove::<3>(&mut tables.angles, &mut touched.angles, &mut removed.angles, e),
                    (4, 0, 1) => remove::<4>(&mut tables.dihedrals, &mut touched.dihedrals, &mut removed.dihedrals, e),
                    (4, 1, 1) => remove::<4>(&mut tables.impropers, &mut touched.impropers, &mut removed.impropers, e),
                    _ => false,
                };
            if !done {
                let what = format!("a change of topology is impossible: {e:?}");
                return Err(Error::Unstable { step, tag: tags.first().copied(), what });
            }
        }
        if let Some(e) = edits.iter().find(|e| e.remove == 0 && tables.copies(e) > 1) {
            let tags = &e.tags[..e.width.min(4) as usize];
            let name = ["bond", "angle", "dihedral", "improper"][(e.width - 2 + e.improper).min(3) as usize];
            let what = format!(
                "a change of topology adds the {name} of the particles {} of type number {}, which exists already, so its \
                 force would count twice",
                tags.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
                e.kind
            );
            return Err(Error::Unstable { step, tag: None, what });
        }
        retain_others(&mut self.bonds, removed.bonds);
        retain_others(&mut self.angles, removed.angles);
        retain_others(&mut self.dihedrals, removed.dihedrals);
        retain_others(&mut self.impropers, removed.impropers);
        tables.update_exclusions(&mut touched);
        Ok(touched)
    }
}

/// Removed links in canonical direction; not sorted.
#[derive(Default)]
struct Removed {
    bonds: Vec<Link<2>>,
    angles: Vec<Link<3>>,
    dihedrals: Vec<Link<4>>,
    impropers: Vec<Link<4>>,
}

impl Removed {
    /// Removes the angles and dihedrals along this bond, and the impropers that contain both of its particles.
    fn along(&mut self, tables: &mut LinkTables, touched: &mut Touched, bond: [u32; 2]) -> bool {
        for e in tables.angles.along(bond, LinkList::Angles) {
            remove::<3>(&mut tables.angles, &mut touched.angles, &mut self.angles, &e);
        }
        for e in tables.dihedrals.along(bond, LinkList::Dihedrals) {
            remove::<4>(&mut tables.dihedrals, &mut touched.dihedrals, &mut self.dihedrals, &e);
        }
        for e in tables.impropers.along(bond, LinkList::Impropers) {
            remove::<4>(&mut tables.impropers, &mut touched.impropers, &mut self.impropers, &e);
        }
        true
    }
}

/// Returns the link in its canonical direction; a link equals its mirror image.
fn canonical<const W: usize>(mut link: Link<W>) -> Link<W> {
    let mut mirror = link.tags;
    mirror.reverse();
    link.tags = link.tags.min(mirror);
    link
}

fn link_of<const W: usize>(e: &Edit) -> Link<W> {
    Link { kind: e.kind, tags: std::array::from_fn(|k| e.tags[k]) }
}

fn add<const W: usize>(links: &mut Vec<Link<W>>, rows: &mut LinkRows, touched: &mut Vec<u32>, e: &Edit) -> bool {
    let link = link_of::<W>(e);
    links.push(link);
    rows.add(&link);
    touched.extend(link.tags);
    true
}

/// Removes a link from the rows and records it. Returns false if it does not exist.
fn remove<const W: usize>(rows: &mut LinkRows, touched: &mut Vec<u32>, removed: &mut Vec<Link<W>>, e: &Edit) -> bool {
    let link = canonical(link_of::<W>(e));
    let found = rows.remove(&link);
    if found {
        touched.extend(link.tags);
        removed.push(link);
    }
    found
}

/// Removes links from the list, the first of equal ones; the others keep their order. One pass over the list compares a hash of each link,
/// and the links between two removed ones move together.
fn retain_others<const W: usize>(links: &mut Vec<Link<W>>, mut removed: Vec<Link<W>>) {
    if removed.is_empty() {
        return;
    }
    removed.sort_unstable();
    // the same for a link and its mirror image
    let bit = |l: &Link<W>| 1u64 << ((l.tags[0] ^ l.tags[W - 1]) & 63);
    let hashes = removed.iter().fold(0, |all, l| all | bit(l));
    let mut left = vec![true; removed.len()];
    let mut is_removed = |l: &Link<W>| {
        let l = canonical(*l);
        let mut equal = removed.partition_point(|r| *r < l)..removed.partition_point(|r| *r <= l);
        equal.any(|k| std::mem::replace(&mut left[k], false))
    };
    let gone = links.iter().enumerate().filter(|(_, l)| hashes & bit(l) != 0 && is_removed(l)).map(|(k, _)| k);
    let gone: Vec<usize> = gone.take(removed.len()).collect();
    for (k, at) in gone.iter().enumerate() {
        let end = gone.get(k + 1).copied().unwrap_or(links.len());
        links.copy_within(at + 1..end, at - k);
    }
    links.truncate(links.len() - gone.len());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Exclusions;

    fn chain(n: u32) -> Topology {
        Topology {
            bonds: (0..n - 1).map(|i| Link { kind: 0, tags: [i, i + 1] }).collect(),
            angles: (0..n - 2).map(|i| Link { kind: 0, tags: [i, i + 1, i + 2] }).collect(),
            dihedrals: (0..n - 3).map(|i| Link { kind: 0, tags: [i, i + 1, i + 2, i + 3] }).collect(),
            impropers: (0..n - 3).map(|i| Link { kind: 1, tags: [i, i + 2, i + 1, i + 3] }).collect(),
        }
    }

    fn all() -> PairRules {
        let exclude = Exclusions { bonds: true, angles: true, dihedrals: true, impropers: true };
        PairRules { exclude, ..PairRules::default() }
    }

    /// The links that remain are those of a search for each removed one, in their order.
    #[test]
    fn the_first_of_equal_links_is_removed() {
        let mut words = 1u32;
        let mut below = |n: u32| {
            words = words.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (words >> 16) % n
        };
        for n in [1, 2, 7, 300] {
            let mut link = || Link { kind: below(2), tags: [below(9), 9 + below(9), below(9)] };
            let mut links: Vec<Link<3>> = (0..n).map(|_| link()).collect();
            for most in [1, 2, 40] {
                let mut expected = links.clone();
                let mut removed = vec![];
                for _ in 0..most.min(links.len()) {
                    let one = canonical(expected[(below(1 << 15) as usize) % expected.len()]);
                    let at = expected.iter().position(|l| canonical(*l) == one).expect("there");
                    expected.remove(at);
                    removed.push(one);
                }
                retain_others(&mut links, removed);
                assert_eq!(links, expected);
            }
        }
    }

    /// Checks that the rows equal those of new tables.
    fn check(t: &Topology, tables: &LinkTables) {
        let fresh = LinkTables::new(t, &tables.rules, tables.n());
        for tag in 0..tables.n() as u32 {
            assert_eq!(tables.bonds.row(tag), fresh.bonds.row(tag), "bonds of {tag}");
            assert_eq!(tables.angles.row(tag), fresh.angles.row(tag), "angles of {tag}");
            assert_eq!(tables.dihedrals.row(tag), fresh.dihedrals.row(tag), "dihedrals of {tag}");
            assert_eq!(tables.impropers.row(tag), fresh.impropers.row(tag), "impropers of {tag}");
            let row = |t: &LinkTables| t.exclusions.as_ref().map(|e| e.row(tag).to_vec());
            assert_eq!(row(tables), row(&fresh), "exclusions of {tag}");
            let row = |t: &LinkTables| t.special.as_ref().map(|e| e.row(tag).to_vec());
            assert_eq!(row(tables), row(&fresh), "special pairs of {tag}");
        }
    }

    #[test]
    fn links_of_unknown_types_are_refused() {
        let mut t = Topology::default();
        let mut tables = LinkTables::new(&t, &all(), 4);
        let types = [2, 0, 1, 3];
        let mut said = |edit: Edit| match t.apply_of("Grow", &mut tables, &mut [edit], types, 7) {
            Ok(_) => String::new(),
            Err(e) => e.to_string(),
        };
        assert_eq!(said(Edit::add(1, [0, 1])), "");
        let unknown = [
            Edit::add(2, [1, 2]),
            Edit::add(0, [0, 1, 2]),
            Edit::add(1, [0, 1, 2, 3]),
            Edit::add_improper(3, [0, 1, 2, 3]),
        ];
        for edit in unknown {
            let said = said(edit);
            assert!(said.contains("Grow: a change of topology adds a link of type number"), "{said}");
        }
        assert!(said(Edit::add(0, [0, 9])).contains("Grow: a change of topology refers to particle 9"));
        assert_eq!(t.bonds.len(), 1);
    }

    #[test]
    fn edits_do_not_depend_on_their_order() {
        let start = Topology { bonds: vec![Link { kind: 0, tags: [0, 1] }], ..Topology::default() };
        let add = |a, b| Edit::add(1, [a, b]);
        let gone = Edit { remove: 1, width: 2, kind: 0, tags: [1, 0, 0, 0], improper: 0 };
        let apply = |edits: &mut [Edit]| {
            let mut t = start.clone();
            let mut tables = LinkTables::new(&t, &all(), 4);
            t.apply(&mut tables, edits, 0).map(|touched| (t, tables, touched))
        };
        let (a, tables, touched) = apply(&mut [add(2, 3), gone, add(1, 2)]).expect("valid");
        let (b, ..) = apply(&mut [gone, add(1, 2), add(2, 3)]).expect("valid");
        assert_eq!(a, b);
        assert_eq!(a.bonds, [Link { kind: 1, tags: [1, 2] }, Link { kind: 1, tags: [2, 3] }]);
        assert!(touched.exclusion_removed && touched.exclusions == [0, 1, 2, 3], "{touched:?}");
        check(&a, &tables);
        assert!(apply(&mut [gone, gone]).is_err(), "removed twice");
        assert!(apply(&mut [add(2, 2)]).is_err(), "bonded to itself");
        assert!(apply(&mut [add(2, 4)]).is_err(), "no such particle");
    }

    #[test]
    fn a_link_that_exists_is_not_added() {
        let said = |edits: &mut [Edit]| {
            let mut t = chain(7);
            let mut tables = LinkTables::new(&t, &all(), 7);
            match t.apply_of("Grow", &mut tables, edits, [2; 4], 7) {
                Ok(_) => String::new(),
                Err(e) => e.to_string(),
            }
        };
        let expected =
            "Grow: a change of topology adds the bond of the particles 3, 2 of type number 0, which exists already";
        let found = said(&mut [Edit::add(0, [3, 2])]);
        assert!(found.contains("step 7") && found.contains(expected), "{found}");
        // both directions in one call
        assert!(said(&mut [Edit::add(1, [0, 5]), Edit::add(1, [5, 0])]).contains("adds the bond of the particles"));
        for (name, edit) in [
            ("angle", Edit::add(0, [2, 1, 0])),
            ("dihedral", Edit::add(0, [3, 2, 1, 0])),
            ("improper", Edit::add_improper(1, [0, 2, 1, 3])),
        ] {
            let found = said(&mut [edit]);
            assert!(found.contains(&format!("adds the {name} of the particles")), "{found}");
        }
        // another type, another order, and a link that the same call removes
        assert_eq!(said(&mut [Edit::add(1, [2, 3]), Edit::add(0, [1, 0, 2])]), "");
        assert_eq!(said(&mut [Edit::cut(0, [2, 3]), Edit::add(0, [3, 2])]), "");
    }

    #[test]
    fn a_bond_takes_the_links_along_it() {
        let mut t = chain(7);
        let mut tables = LinkTables::new(&t, &all(), 7);
        let touched = t.apply(&mut tables, &mut [Edit::cut(0, [4, 3])], 0).expect("valid");
        assert_eq!((t.bonds.len(), t.angles.len(), t.dihedrals.len()), (5, 3, 1));
        // an improper goes with each pair of its particles that are bonded
        assert_eq!(t.impropers, [Link { kind: 1, tags: [0, 2, 1, 3] }]);
        assert!(t.dihedrals[0].tags == [0, 1, 2, 3]);
        assert!(touched.exclusion_removed && touched.angles == [2, 3, 4, 5] && touched.dihedrals == [1, 2, 3, 4, 5, 6]);
        assert!(touched.impropers == touched.dihedrals);
        check(&t, &tables);
        // what is added in the same call goes as well
        let mut edits = [Edit::cut(0, [0, 1]), Edit::add(5, [0, 1, 6]), Edit::add(1, [3, 4])];
        let touched = t.apply(&mut tables, &mut edits, 0).expect("valid");
        assert!(t.angles.iter().all(|a| a.kind == 0 && !a.tags.contains(&0)), "{:?}", t.angles);
        assert!(touched.bonds == [0, 1, 3, 4]);
        check(&t, &tables);
        assert!(t.apply(&mut tables, &mut [Edit::cut(0, [0, 1])], 0).is_err());
    }

    #[test]
    fn rows_grow_and_keep_the_order_of_links() {
        let mut t = Topology::default();
        let mut tables = LinkTables::new(&t, &all(), 10);
        for k in 1..10 {
            let touched = t.apply(&mut tables, &mut [Edit::add(0, [0, k])], 0).expect("valid");
            assert!(!touched.exclusion_removed);
            check(&t, &tables);
        }
        assert!(tables.bonds.count(0) == 9 && tables.bonds.capacity >= 9);
        for k in [4, 9, 1] {
            let mut e = Edit::add(0, [k, 0]);
            e.remove = 1;
            t.apply(&mut tables, &mut [e], 0).expect("valid");
            check(&t, &tables);
        }
        assert_eq!(tables.bonds.count(0), 6);
    }
}
