//! The state of a system on the host, in tag order and in f64. Generators create it; writers read it.

use crate::chunks::in_chunks;
use crate::error::{Error, InputError, Result};
use crate::stable::RVec;
use crate::tilt::{image_shift, to_reduced, to_space};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values of one optional per-particle array.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Floating-point numbers.
    Real(Vec<f64>),
    /// Integers.
    Int(Vec<i32>),
}

/// An optional per-particle array with `width` values per particle. Values of one particle are adjacent.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Values per particle.
    pub width: u32,
    /// The values; `width` × number of particles.
    pub values: Values,
}

/// Optional per-particle arrays that several components share: name, width, whether it holds integers, meaning.
///
/// | name | width | values | meaning |
/// |---|---|---|---|
/// | `charge` | 1 | real | electric charge |
/// | `diameter` | 1 | real | diameter |
/// | `body` | 1 | integer | rigid body, −1 for none |
/// | `molecule` | 1 | integer | molecule, −1 for none |
/// | `orientation` | 3 | real | unit vector along the particle's axis |
/// | `quaternion` | 4 | real | orientation as x y z w |
/// | `rotation` | 3 | real | angular velocity |
/// | `inert` | 3 | real | moments of inertia |
/// | `h_init` | 1 | integer | 1: active end of a growing chain |
/// | `h_cris` | 1 | integer | how often the particle has reacted; 0: free monomer |
///
/// Arrays that belong to one plugin start with its name: `groot_warren.half_velocity`.
pub const KNOWN_ARRAYS: &[(&str, u32, bool, &str)] = &[
    ("charge", 1, false, "electric charge"),
    ("diameter", 1, false, "diameter"),
    ("body", 1, true, "rigid body, −1 for none"),
    ("molecule", 1, true, "molecule, −1 for none"),
    ("orientation", 3, false, "unit vector along the particle's axis"),
    ("quaternion", 4, false, "orientation as x y z w"),
    ("rotation", 3, false, "angular velocity"),
    ("inert", 3, false, "moments of inertia"),
    ("h_init", 1, true, "1: active end of a growing chain"),
    ("h_cris", 1, true, "how often the particle has reacted; 0: free monomer"),
];

/// A list of the topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkList {
    /// Pairs.
    Bonds,
    /// Triples.
    Angles,
    /// Chains of four.
    Dihedrals,
    /// Quadruples, with the angle of a dihedral.
    Impropers,
}

impl LinkList {
    /// All lists in the order of [`Self::index`].
    pub const ALL: [Self; 4] = [Self::Bonds, Self::Angles, Self::Dihedrals, Self::Impropers];

    /// Returns its number, starting from 0.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the number of members of a link.
    pub const fn width(self) -> u32 {
        match self {
            Self::Bonds => 2,
            Self::Angles => 3,
            Self::Dihedrals | Self::Impropers => 4,
        }
    }

    /// Returns the name of one link: `bond`, `angle`, `dihedral`, `improper`.
    pub const fn one(self) -> &'static str {
        ["bond", "angle", "dihedral", "improper"][self as usize]
    }

    /// Returns the name of the list: `bonds`, `angles`, `dihedrals`, `impropers`.
    pub const fn name(self) -> &'static str {
        ["bonds", "angles", "dihedrals", "impropers"][self as usize]
    }
}

/// A bond, angle, dihedral or improper: its type and the tags of its members.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, galamost_plugin_macros::Layout)]
pub struct Link<const N: usize> {
    /// Type of the link: an index into the list of type names.
    pub kind: u32,
    /// Tags of the members, in order.
    pub tags: [u32; N],
}

/// State of the whole system. The arrays that every particle has are vectors that cross the plugin boundary without a copy; they are
/// used like a `Vec`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Time step.
    pub step: u64,
    /// Number of dimensions, 3 or 2. In two dimensions the third box length and all z are 0.
    pub dimensions: u32,
    /// Box lengths. The box is centered at the origin and periodic.
    pub box_length: [f64; 3],
    /// Tilt factors xy, xz, yz of a triclinic box; 0 for a rectangular one. See [`crate::tilt`].
    pub tilt: [f64; 3],
    /// Names of particle types.
    pub types: Vec<String>,
    /// Position of each particle in the box: −L/2 ≤ x < L/2 for its reduced coordinates, which are the position itself in a
    /// rectangular box.
    pub position: RVec<[f64; 3]>,
    /// Image of each particle: unwrapped position = position + L · image; see [`Self::unwrapped`].
    pub image: RVec<[i32; 3]>,
    /// Velocity of each particle.
    pub velocity: RVec<[f64; 3]>,
    /// Particle type of each particle: an index into [`Self::types`].
    pub type_id: RVec<u32>,
    /// Mass of each particle.
    pub mass: RVec<f64>,
    /// Optional per-particle arrays by name, see [`KNOWN_ARRAYS`].
    pub arrays: BTreeMap<String, Array>,
    /// Names of bond types.
    pub bond_types: Vec<String>,
    /// Bonds.
    pub bonds: Vec<Link<2>>,
    /// Names of angle types.
    pub angle_types: Vec<String>,
    /// Angles; the second tag is the middle particle.
    pub angles: Vec<Link<3>>,
    /// Names of dihedral types.
    pub dihedral_types: Vec<String>,
    /// Dihedrals.
    pub dihedrals: Vec<Link<4>>,
    /// Names of improper types.
    pub improper_types: Vec<String>,
    /// Impropers.
    pub impropers: Vec<Link<4>>,
}

impl Snapshot {
    /// Returns the number of links of a list, and the names of their types.
    pub fn links(&self, list: LinkList) -> (usize, &[String]) {
        match list {
            LinkList::Bonds => (self.bonds.len(), &self.bond_types),
            LinkList::Angles => (self.angles.len(), &self.angle_types),
            LinkList::Dihedrals => (self.dihedrals.len(), &self.dihedral_types),
            LinkList::Impropers => (self.impropers.len(), &self.improper_types),
        }
    }

    /// Returns the number of particles.
    pub fn len(&self) -> usize {
        self.position.len()
    }

    /// Checks that there is memory for `n` more particles, in this state and in the arrays of a run.
    ///
    /// # Errors
    /// Returns a message with the number of particles and of bytes.
    pub fn require(&self, n: f64) -> std::result::Result<(), String> {
        /// This state, and twice the arrays that every run has: as the initial state, and on the device.
        const BYTES: f64 = 72.0 + 2.0 * 92.0;
        crate::memory::require(format_args!("{:.0} particles", n + self.len() as f64), BYTES * n)
    }

    /// Returns whether there are no particles.
    pub fn is_empty(&self) -> bool {
        self.position.is_empty()
    }

    /// Returns the volume, or the area in two dimensions.
    pub fn volume(&self) -> f64 {
        self.box_length.iter().take(self.dimensions as usize).product()
    }

    /// Returns whether the box is triclinic.
    pub fn is_tilted(&self) -> bool {
        self.tilt != [0.0; 3]
    }

    /// Returns the unwrapped position of a particle.
    pub fn unwrapped(&self, tag: usize) -> [f64; 3] {
        let shift = image_shift(self.image[tag], self.box_length, self.tilt);
        std::array::from_fn(|k| self.position[tag][k] + shift[k])
    }

    /// Returns the index of a particle type; adds the type if it is new.
    pub fn type_id(&mut self, name: &str) -> u32 {
        intern(&mut self.types, name)
    }

    /// Adds a particle of mass 1 at rest and returns its tag.
    pub fn push(&mut self, kind: u32, position: [f64; 3]) -> u32 {
        self.position.push(position);
        self.image.push([0; 3]);
        self.velocity.push([0.0; 3]);
        self.type_id.push(kind);
        self.mass.push(1.0);
        (self.position.len() - 1) as u32
    }

    /// Replaces all particles by new ones of mass 1 at rest.
    ///
    /// # Panics
    /// Panics if the numbers of positions and types differ.
    pub fn set_particles(&mut self, position: Vec<[f64; 3]>, type_id: Vec<u32>) {
        let n = position.len();
        assert_eq!(n, type_id.len(), "positions and types");
        (self.position, self.type_id, self.mass) = (position.into(), type_id.into(), vec![1.0; n].into());
        (self.image, self.velocity) = (vec![[0; 3]; n].into(), vec![[0.0; 3]; n].into());
    }

    /// Checks the consistency of the state before a run.
    ///
    /// # Errors
    /// Returns all mistakes found, at most three of each sort, each with the tag of the particle.
    pub fn check(&self) -> Result<()> {
        let mut errors = vec![];
        let mut say = |m: String| errors.push(InputError::new(m));
        let n = self.len();
        let d = self.dimensions as usize;
        if d != 2 && d != 3 {
            say(format!("dimensions must be 2 or 3, not {d}"));
            return Err(Error::Input(errors));
        }
        if n == 0 {
            say("there are no particles".into());
        }
        if n > u32::MAX as usize / 2 {
            say(format!("{n} particles exceed the maximum of {} supported", u32::MAX / 2));
        }
        for (axis, length) in ["x", "y", "z"].iter().zip(self.box_length).take(d) {
            if !(length.is_finite() && length > 0.0) {
                say(format!("the box length in {axis} is {length}: it must be above 0"));
            }
        }
        if !self.tilt.iter().all(|t| t.is_finite()) || (d == 2 && self.tilt[1..] != [0.0; 2]) {
            say(format!("the tilt factors {:?} of the box are invalid", self.tilt));
        }
        if d == 2 && self.box_length[2] != 0.0 {
            say(format!("in two dimensions the box length in z must be 0, not {}", self.box_length[2]));
        }
        let lengths = [
            ("image", self.image.len()),
            ("velocity", self.velocity.len()),
            ("type", self.type_id.len()),
            ("mass", self.mass.len()),
        ];
        for (what, len) in lengths {
            if len != n {
                say(format!("{len} values of {what} for {n} particles"));
            }
        }
        for (name, a) in &self.arrays {
            let len = match &a.values {
                Values::Real(v) => v.len(),
                Values::Int(v) => v.len(),
            };
            if len != n * a.width as usize {
                say(format!("{len} values of {name} for {n} particles with {} values each", a.width));
            }
        }
        if !errors.is_empty() {
            return Err(Error::Input(errors));
        }
        self.check_particles(&mut errors);
        check_links("bond", &self.bonds, &self.bond_types, n, &mut errors);
        check_links("angle", &self.angles, &self.angle_types, n, &mut errors);
        check_links("dihedral", &self.dihedrals, &self.dihedral_types, n, &mut errors);
        check_links("improper", &self.impropers, &self.improper_types, n, &mut errors);
        if errors.is_empty() { Ok(()) } else { Err(Error::Input(errors)) }
    }

    fn check_particles(&self, errors: &mut Vec<InputError>) {
        let is_faulty = |tag: usize| {
            let mut faulty = false;
            self.faults(tag, &mut |_, _| faulty = true);
            faulty
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        // all threads look for mistakes; messages are in the order of the tags
        let faulty = in_chunks(self.len(), threads, |range| range.filter(|tag| is_faulty(*tag)).collect::<Vec<_>>());
        let mut few = Few::default();
        for tag in faulty.into_iter().flatten() {
            self.faults(tag, &mut |sort, message| few.note(errors, sort, message));
        }
        few.finish(errors);
    }

    /// Calls `note` with the sort and the message of each mistake in the values of a particle.
    fn faults(&self, tag: usize, note: &mut dyn FnMut(usize, &dyn Fn() -> String)) {
        let reduced = to_reduced(self.position[tag], self.tilt);
        for (k, axis) in ["x", "y", "z"].iter().enumerate() {
            let (x, l) = (self.position[tag][k], self.box_length[k]);
            // reduced coordinates are rounded in a triclinic box
            let (q, half) = (reduced[k], if self.is_tilted() { (0.5 + 1e-12) * l } else { 0.5 * l });
            if !x.is_finite() {
                note(0, &|| format!("particle {tag}: {axis} is {x}"));
            } else if k < self.dimensions as usize && (q < -half || q > half) {
                // the value of the user is a coordinate in space
                let what = if self.is_tilted() {
                    format!("its reduced coordinate along {axis} is")
                } else {
                    format!("{axis} =")
                };
                note(1, &|| {
                    format!(
                        "particle {tag} is outside the box: {what} {q}; the box extends from {} to {}",
                        -0.5 * l,
                        0.5 * l
                    )
                });
            } else if k >= self.dimensions as usize && x != 0.0 {
                note(1, &|| format!("particle {tag}: z = {x} in two dimensions"));
            }
            let v = self.velocity[tag][k];
            if !v.is_finite() {
                note(2, &|| format!("particle {tag}: velocity {axis} is {v}"));
            } else if k >= self.dimensions as usize && v != 0.0 {
                note(2, &|| format!("particle {tag}: velocity z = {v} in two dimensions"));
            }
        }
        let m = self.mass[tag];
        if !(m.is_finite() && m >= 0.0) {
            note(3, &|| format!("particle {tag}: mass is {m}: it must be at least 0"));
        }
        if self.type_id[tag] as usize >= self.types.len() {
            note(4, &|| format!("particle {tag}: unknown type number {}", self.type_id[tag]));
        }
    }
}

/// Wraps a position from a file into a rectangular box, −L/2 ≤ x < L/2, and updates its image; see [`wrap_tilted`].
pub fn wrap(position: &mut [f64; 3], image: &mut [i32; 3], box_length: [f64; 3], slack: f64) -> bool {
    wrap_tilted(position, image, box_length, [0.0; 3], slack)
}

/// Wraps a position from a file into a box with these tilt factors and updates its image.
///
/// Rounded positions may lie up to `slack` · L outside the box. Returns `false`, without changing anything, if the
/// particle is farther outside. An axis of length 0 is not wrapped.
pub fn wrap_tilted(
    position: &mut [f64; 3],
    image: &mut [i32; 3],
    box_length: [f64; 3],
    tilt: [f64; 3],
    slack: f64,
) -> bool {
    let mut reduced = to_reduced(*position, tilt);
    let outside = |k: usize| reduced[k].abs() > (0.5 + slack) * box_length[k];
    if (0..3).any(|k| box_length[k] > 0.0 && outside(k)) {
        return false;
    }
    let mut moved = false;
    for k in 0..3 {
        let (x, i, l) = (&mut reduced[k], &mut image[k], box_length[k]);
        // this close to the boundary the sums are exact, so the result cannot round onto the opposite boundary
        if l > 0.0 && *x >= 0.5 * l {
            *x -= l;
            *i = i.saturating_add(1);
        } else if l > 0.0 && *x < -0.5 * l {
            *x += l;
            *i = i.saturating_sub(1);
        } else {
            continue;
        }
        moved = true;
    }
    if moved {
        *position = to_space(reduced, tilt);
    }
    true
}

/// Returns the index of `name` in `names`; appends it if it is new.
pub fn intern(names: &mut Vec<String>, name: &str) -> u32 {
    let i = names.iter().position(|n| n == name).unwrap_or_else(|| {
        names.push(name.into());
        names.len() - 1
    });
    i as u32
}

/// Reports the first three messages of each sort and counts the rest.
#[derive(Default)]
struct Few {
    counts: [usize; 8],
}

impl Few {
    const SHOWN: usize = 3;
    fn note(&mut self, errors: &mut Vec<InputError>, sort: usize, message: impl FnOnce() -> String) {
        self.counts[sort] += 1;
        if self.counts[sort] <= Self::SHOWN {
            errors.push(InputError::new(message()));
        }
    }
    fn finish(self, errors: &mut Vec<InputError>) {
        let more: usize = self.counts.iter().map(|c| c.saturating_sub(Self::SHOWN)).sum();
        if more > 0 {
            errors.push(InputError::new(format!("and {more} more of the same")));
        }
    }
}

fn check_links<const N: usize>(
    what: &str,
    links: &[Link<N>],
    types: &[String],
    n: usize,
    errors: &mut Vec<InputError>,
) {
    let mut few = Few::default();
    for (i, link) in links.iter().enumerate() {
        if let Some(t) = link.tags.iter().find(|t| **t as usize >= n) {
            few.note(errors, 0, || {
                format!("{what} {i} refers to unknown particle {t}; the last tag is {}", n.saturating_sub(1))
            });
        } else if (1..N).any(|k| link.tags[..k].contains(&link.tags[k])) {
            few.note(errors, 1, || format!("{what} {i} contains particle {} twice", link.tags[0]));
        }
        if link.kind as usize >= types.len() {
            few.note(errors, 2, || format!("{what} {i} refers to unknown {what} type number {}", link.kind));
        }
    }
    few.finish(errors);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_the_known_arrays() {
        let source = include_str!("snapshot.rs");
        let rows: Vec<&str> = source.lines().filter(|l| l.starts_with("/// | `")).collect();
        let row = |(name, width, integer, meaning): &(&str, u32, bool, &str)| {
            let values = if *integer { "integer" } else { "real" };
            format!("/// | `{name}` | {width} | {values} | {meaning} |")
        };
        assert_eq!(rows, KNOWN_ARRAYS.iter().map(row).collect::<Vec<_>>());
    }

    #[test]
    fn edges_are_wrapped() {
        let l = [20.0, 20.0, 0.0];
        for (x, wrapped) in [
            (9.5, Some((9.5, 0))),
            (10.0, Some((-10.0, 1))),
            (10.000_001, Some((-9.999_999, 1))),
            (-10.0, Some((-10.0, 0))),
            (-10.000_001, Some((9.999_999, -1))),
            ((-10f64).next_down(), Some((10f64.next_down(), -1))),
            (10f64.next_down(), Some((10f64.next_down(), 0))),
            (10.1, None),
        ] {
            let (mut position, mut image) = ([0.0, x, 0.0], [0; 3]);
            let inside = wrap(&mut position, &mut image, l, 1e-6);
            assert_eq!(inside.then_some(image[1]), wrapped.map(|w| w.1), "{x}");
            assert!(!inside || (-10.0..10.0).contains(&position[1]), "{x}");
            assert!((position[1] - wrapped.map_or(x, |w| w.0)).abs() < 1e-12, "{x}: {}", position[1]);
        }
    }

    #[test]
    fn faults_are_found_together() {
        let mut s = Snapshot { dimensions: 3, box_length: [10.0; 3], ..Snapshot::default() };
        let a = s.type_id("A");
        s.push(a, [0.0; 3]);
        s.push(a, [6.0, 0.0, 0.0]);
        s.push(a, [0.0, f64::NAN, 0.0]);
        s.bond_types.push("b".into());
        s.bonds.push(Link { kind: 0, tags: [0, 7] });
        let Err(Error::Input(errors)) = s.check() else { panic!("faults must be found") };
        let text: Vec<_> = errors.iter().map(|e| e.message.as_str()).collect();
        assert_eq!(
            text,
            [
                "particle 1 is outside the box: x = 6; the box extends from -5 to 5",
                "particle 2: y is NaN",
                "bond 0 refers to unknown particle 7; the last tag is 2"
            ]
        );
    }
}
