//! What a particle file can hold: the table behind the warnings of `galamost convert` and the table in the book.

use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};
use galamost_plugin_api::tilt::nearest;
use std::collections::BTreeMap;

/// What became of a part of a state in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// It is the same, to the bit.
    Kept,
    /// Numbers differ by at most this.
    Rounded(f64),
    /// Some of it differs.
    Partly,
    /// Nothing of it is in the file.
    Lost,
}

impl Fate {
    /// Returns the worse of two.
    pub(super) fn worse(self, other: Self) -> Self {
        let rank = |f: Self| match f {
            Self::Kept => (0, 0.0),
            Self::Rounded(d) => (1, d),
            Self::Partly => (2, 0.0),
            Self::Lost => (3, 0.0),
        };
        if rank(other) > rank(self) { other } else { self }
    }
}

/// A part of a state.
#[derive(Debug)]
pub struct Content {
    /// Its name in warnings and in the book.
    pub name: String,
    /// Returns what became of it, given a state and that state as read from a file; `None` if the state does not have it.
    fate: Comparison,
}

type Comparison = fn(&Snapshot, &Snapshot, &str) -> Option<Fate>;

impl Content {
    /// Compares a state with that state as read from a file. Returns `None` if the state does not have this content.
    pub fn fate(&self, s: &Snapshot, back: &Snapshot) -> Option<Fate> {
        (self.fate)(s, back, &self.name)
    }
}

/// The contents that do not depend on the state. Arrays follow the masses.
const TABLE: [(&str, Comparison); 22] = [
    ("step", |s, b, _| (s.step != 0).then_some(if s.step == b.step { Fate::Kept } else { Fate::Lost })),
    ("box", |s, b, _| Some(numbers(&edges(s), &edges(b), 0.0))),
    ("positions", |s, b, _| Some(positions(s, b))),
    ("images", |s, b, _| wholes(s.image.as_flattened(), b.image.as_flattened(), 0)),
    ("velocities", |s, b, _| reals(s.velocity.as_flattened(), b.velocity.as_flattened(), 0.0)),
    ("masses", |s, b, _| reals(&s.mass, &b.mass, 1.0)),
    ("type names", |s, b, _| Some(kept_if(type_names(s).eq(type_names(b))))),
    ("type numbers", |s, b, _| renumbered(s.type_id == b.type_id, type_names(s).eq(type_names(b)))),
    ("bonds", |s, b, _| links(&s.bonds, &b.bonds)),
    ("bond type names", |s, b, _| link_names((&s.bonds, &s.bond_types), (&b.bonds, &b.bond_types))),
    ("bond type numbers", |s, b, _| link_numbers((&s.bonds, &s.bond_types), (&b.bonds, &b.bond_types))),
    ("angles", |s, b, _| links(&s.angles, &b.angles)),
    ("angle type names", |s, b, _| link_names((&s.angles, &s.angle_types), (&b.angles, &b.angle_types))),
    ("angle type numbers", |s, b, _| link_numbers((&s.angles, &s.angle_types), (&b.angles, &b.angle_types))),
    ("dihedrals", |s, b, _| links(&s.dihedrals, &b.dihedrals)),
    ("dihedral type names", |s, b, _| link_names((&s.dihedrals, &s.dihedral_types), (&b.dihedrals, &b.dihedral_types))),
    ("dihedral type numbers", |s, b, _| {
        link_numbers((&s.dihedrals, &s.dihedral_types), (&b.dihedrals, &b.dihedral_types))
    }),
    ("impropers", |s, b, _| links(&s.impropers, &b.impropers)),
    ("improper type names", |s, b, _| link_names((&s.impropers, &s.improper_types), (&b.impropers, &b.improper_types))),
    ("improper type numbers", |s, b, _| {
        link_numbers((&s.impropers, &s.improper_types), (&b.impropers, &b.improper_types))
    }),
    ("types without particles", |s, b, _| unused(&s.types, &b.types, &s.type_id)),
    ("bond types without bonds", |s, b, _| {
        let used: Vec<u32> = s.bonds.iter().map(|l| l.kind).collect();
        unused(&s.bond_types, &b.bond_types, &used)
    }),
];

/// Returns all contents of states with the arrays of `s`.
pub fn contents(s: &Snapshot) -> Vec<Content> {
    let fixed = |(name, fate): &(&str, Comparison)| Content { name: (*name).into(), fate: *fate };
    let arrays = s.arrays.keys().map(|name| Content { name: name.clone(), fate: array });
    TABLE.iter().map(fixed).chain(arrays).collect()
}

/// Returns the box lengths and the tilts, all lengths.
fn edges(s: &Snapshot) -> [f64; 6] {
    let ([x, y, z], [xy, xz, yz]) = (s.box_length, s.tilt);
    [x, y, z, xy * y, xz * z, yz * z]
}

fn kept_if(same: bool) -> Fate {
    if same { Fate::Kept } else { Fate::Lost }
}

/// Compares numbers of equal meaning; differences up to `allowed` do not count.
fn numbers(a: &[f64], b: &[f64], allowed: f64) -> Fate {
    if a.len() != b.len() {
        return Fate::Lost;
    }
    let d = a.iter().zip(b).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
    if d > allowed { Fate::Rounded(d) } else { Fate::Kept }
}

/// Compares numbers that are `default` in files without them.
fn reals(a: &[f64], b: &[f64], default: f64) -> Option<Fate> {
    let all = |v: &[f64]| v.iter().all(|x| *x == default);
    if all(a) {
        return None;
    }
    Some(if all(b) { Fate::Lost } else { numbers(a, b, 0.0) })
}

fn wholes(a: &[i32], b: &[i32], default: i32) -> Option<Fate> {
    let all = |v: &[i32]| v.iter().all(|x| *x == default);
    match (a == b, all(a), all(b)) {
        (true, true, _) => None,
        (true, ..) => Some(Fate::Kept),
        (false, _, true) => Some(Fate::Lost),
        (false, ..) => Some(Fate::Partly),
    }
}

fn positions(s: &Snapshot, b: &Snapshot) -> Fate {
    // nearest images: a rounded position may have crossed the boundary of the box
    let mut far: f64 = 0.0;
    for (a, b) in s.position.iter().zip(&b.position) {
        let d = nearest(std::array::from_fn(|k| a[k] - b[k]), s.box_length, s.tilt);
        far = d.iter().fold(far, |far, d| far.max(d.abs()));
    }
    let longest = s.box_length.iter().fold(0.0, |m: f64, l| m.max(*l));
    if far > 1e-14 * longest { Fate::Rounded(far) } else { Fate::Kept }
}

fn type_names(s: &Snapshot) -> impl Iterator<Item = Option<&String>> {
    s.type_id.iter().map(|k| s.types.get(*k as usize))
}

/// Returns the fate of type numbers. They mean nothing if the names are lost too.
fn renumbered(same: bool, names_kept: bool) -> Option<Fate> {
    (same || names_kept).then(|| kept_if(same))
}

/// Compares the types that no row uses.
fn unused(types: &[String], kept: &[String], used: &[u32]) -> Option<Fate> {
    let mut rows = vec![false; types.len()];
    used.iter().for_each(|k| rows[*k as usize] = true);
    let unused: Vec<&String> = types.iter().zip(&rows).filter(|(_, used)| !**used).map(|(name, _)| name).collect();
    (!unused.is_empty()).then(|| kept_if(types.len() == kept.len() || unused.iter().all(|name| kept.contains(name))))
}

fn array(s: &Snapshot, b: &Snapshot, name: &str) -> Option<Fate> {
    let a = s.arrays.get(name)?;
    let Some(Array { values, .. }) = b.arrays.get(name) else { return Some(Fate::Lost) };
    Some(match (&a.values, values) {
        (Values::Real(a), Values::Real(b)) => numbers(a, b, 1e-14),
        (Values::Int(a), Values::Int(b)) if a == b => Fate::Kept,
        (Values::Int(a), Values::Int(b)) if a.len() == b.len() => Fate::Partly,
        _ => Fate::Lost,
    })
}

/// Returns how often each link occurs, in either direction.
fn counts<const N: usize>(links: &[Link<N>], kind: impl Fn(u32) -> u32) -> BTreeMap<(u32, [u32; N]), usize> {
    let mut all = BTreeMap::new();
    for link in links {
        let mut tags = link.tags;
        if tags[0] > tags[N - 1] {
            tags.reverse();
        }
        *all.entry((kind(link.kind), tags)).or_insert(0) += 1;
    }
    all
}

fn links<const N: usize>(a: &[Link<N>], b: &[Link<N>]) -> Option<Fate> {
    if a.is_empty() {
        return None;
    }
    let same = counts(a, |_| 0) == counts(b, |_| 0);
    Some(if same {
        Fate::Kept
    } else if b.is_empty() {
        Fate::Lost
    } else {
        Fate::Partly
    })
}

/// Links and the names of their types.
type Named<'a, const N: usize> = (&'a [Link<N>], &'a [String]);

/// Compares the type names of links that are kept.
fn link_names<const N: usize>(a: Named<'_, N>, b: Named<'_, N>) -> Option<Fate> {
    let all: Vec<&String> = a.1.iter().chain(b.1).collect();
    let number = |types: &[String], k: u32| {
        let name = types.get(k as usize);
        all.iter().position(|n| Some(*n) == name).unwrap_or_default() as u32
    };
    let kept = links(a.0, b.0) == Some(Fate::Kept);
    kept.then(|| kept_if(counts(a.0, |k| number(a.1, k)) == counts(b.0, |k| number(b.1, k))))
}

/// Compares the type numbers of links that are kept.
fn link_numbers<const N: usize>(a: Named<'_, N>, b: Named<'_, N>) -> Option<Fate> {
    let names = link_names(a, b)?;
    renumbered(counts(a.0, |k| k) == counts(b.0, |k| k), names == Fate::Kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> Snapshot {
        let mut s = Snapshot { dimensions: 3, box_length: [4.0; 3], ..Snapshot::default() };
        (s.types, s.bond_types) = (vec!["A".into(), "B".into()], vec!["x".into(), "y".into()]);
        (0..3).for_each(|k| _ = s.push(u32::from(k > 0), [f64::from(k), 0.0, 0.0]));
        s.bonds = vec![Link { kind: 0, tags: [0, 1] }, Link { kind: 1, tags: [2, 1] }];
        s
    }

    fn fate(s: &Snapshot, b: &Snapshot, name: &str) -> Option<Fate> {
        contents(s).iter().find(|c| c.name == name).and_then(|c| c.fate(s, b))
    }

    #[test]
    fn every_difference_has_a_name() {
        let s = state();
        assert!(contents(&s).iter().all(|c| matches!(c.fate(&s, &s), None | Some(Fate::Kept))));
        let swap = |types: &mut Vec<String>| types.swap(0, 1);
        let mut b = s.clone();
        swap(&mut b.types);
        b.type_id.iter_mut().for_each(|k| *k = 1 - *k);
        assert_eq!([fate(&s, &b, "type names"), fate(&s, &b, "type numbers")], [Some(Fate::Kept), Some(Fate::Lost)]);
        let mut b = s.clone();
        swap(&mut b.bond_types);
        let names = |b: &Snapshot| [fate(&s, b, "bond type names"), fate(&s, b, "bond type numbers")];
        assert_eq!(names(&b), [Some(Fate::Lost), Some(Fate::Kept)]);
        b.bonds.iter_mut().for_each(|l| l.kind = 1 - l.kind);
        assert_eq!(names(&b), [Some(Fate::Kept), Some(Fate::Lost)]);
        // order and direction of bonds do not matter, their particles do
        let mut b = s.clone();
        b.bonds.reverse();
        b.bonds[0].tags.reverse();
        assert_eq!((fate(&s, &b, "bonds"), names(&b)), (Some(Fate::Kept), [Some(Fate::Kept); 2]));
        b.bonds[0].tags = [0, 2];
        assert_eq!(fate(&s, &b, "bonds"), Some(Fate::Partly));
        let mut b = s.clone();
        b.mass = vec![1.0 + 1e-9; 3].into();
        assert_eq!(fate(&b, &s, "masses"), Some(Fate::Lost));
        assert!(
            matches!(fate(&b, &Snapshot { mass: vec![2.0; 3].into(), ..s.clone() }, "masses"), Some(Fate::Rounded(d)) if d > 0.9)
        );
        // a type without particles
        let mut more = s.clone();
        more.types.push("C".into());
        assert_eq!(fate(&more, &s, "types without particles"), Some(Fate::Lost));
        assert_eq!(fate(&more, &more, "types without particles"), Some(Fate::Kept));
        assert_eq!(fate(&s, &s, "types without particles"), None);
    }
}
