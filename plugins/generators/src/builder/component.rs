//! The generator `Polymers`.

use crate::builder::build::{Builder, Kind, Numbers, Reserved, kappa_of};
use crate::builder::grid::Grid;
use crate::builder::links::Links;
use crate::builder::notation::Molecule;
use crate::builder::region::{Graft, Region};
use galamost_plugin_api::error::{Errors, Position, nearest};
use galamost_plugin_api::params::{FromValue, TypePairs, Value};
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;
use std::f64::consts::PI;

/// Where single beads go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Places {
    Random,
    Lattice,
}

impl FromValue for Places {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Random" => Some(Self::Random),
            "Lattice" => Some(Self::Lattice),
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Random` or `Lattice`".into()
    }
}

/// One kind of molecule.
#[derive(Clone, Debug, Params)]
struct Entry {
    /// Beads and bonds: `A5B5`; `NPG(C4)GC4` with branches in brackets; `{A2B}5` with repeats; `A[1]A8A[1]`, beads of the same mark
    /// bonded, a ring of ten. A type is a capital letter with small ones or `_` behind it.
    molecule: Spanned<String>,
    /// How many there are; or `fraction`.
    count: Option<u32>,
    /// Their share of all `beads`; or `count`.
    #[param(above = 0.0, at_most = 1.0)]
    fraction: Option<f64>,
    /// Where they may be: `All`, `Box(min, max)`, `Slab(axis, min, max)`, `Sphere(center, radius, inner)`, `Cylinder(axis, center,
    /// radius, inner)`, `Outside(center, radius)`.
    #[param(default = Region::All)]
    region: Region,
    /// First beads evenly spread `OnSphere(center, radius, inside)` or `OnPlane(axis, at, below)`, or bonded to particles that are
    /// there already, `OnParticles(of: "I")`, evenly chosen among those.
    graft: Option<Graft>,
    /// Single beads: anywhere, or on sites of a simple cubic lattice.
    #[param(default = Places::Random)]
    places: Places,
}

/// A bond between two types.
#[derive(Clone, Debug, Params)]
struct Length {
    /// Its length.
    #[param(unit = "length", above = 0.0)]
    length: f64,
}

/// An angle of three types.
#[derive(Clone, Debug, Params)]
struct Bend {
    /// The angle that it is built with; by default any.
    #[param(unit = "degrees", above = 0.0, at_most = 180.0)]
    theta_deg: Option<f64>,
}

/// Particles of a type.
#[derive(Clone, Debug, Params)]
struct Properties {
    /// Mass.
    #[param(default = 1.0, above = 0.0)]
    mass: f64,
    /// Charge.
    #[param(default = 0.0)]
    charge: f64,
    /// Diameter; by default none is set.
    #[param(above = 0.0)]
    diameter: Option<f64>,
}

/// Builds molecules, bead by bead, among what is there already: melts, mixtures, solutions, brushes.
///
/// Kinds of molecules are placed in the order of the list, large ones best first. A molecule begins at a random point of its
/// region, or where it is grafted; each bead comes at the bond length from the one before, in a random direction (or at the given
/// angle, or by `c_inf`), and the first of `trials` places that is far enough from all others is taken, so all allowed places are
/// alike, as in the growth of Rosenbluth and Rosenbluth (J. Chem. Phys. 23 (1955) 356). At a dead end the chain goes back some
/// beads, each time more, and after many steps begins anew; after `attempts` of that the file's mistake is told. Rings are led to
/// their end. Bonded beads, and the ends of angles that are given, may be nearer than `distance`.
///
/// As first generator it needs a `box` (the third length 0 for two dimensions); behind others it adds to what they made, keeps
/// their box, and their particles keep their tags. Bonds have types named after both beads, in the order in which these types
/// first appear or as `bonds` has it: `A-B`. Angles and dihedrals are made for the types that are named in `angles` and
/// `dihedrals`. The array `molecule` is set, and `charge` and `diameter` if `types` has any. Velocities are 0: `Velocities` sets
/// them. Dense systems are built with a small `distance`, or 0, and pushed apart by a first stage with `CappedVerlet` or `Fire`, or
/// with a soft repulsion.
///
/// ```ron
/// Polymers(box: [12.0, 12.0, 12.0], molecules: [
///     (molecule: "A5B5", count: 60),
///     (molecule: "A", count: 300),
/// ], distance: 0.7)
/// ```
#[component(Generator, "Polymers")]
#[derive(Clone, Debug, Params)]
pub struct Polymers {
    /// Box lengths; only for the first generator.
    #[param(name = "box", unit = "length", at_least = 0.0)]
    box_length: Option<Spanned<[f64; 3]>>,
    /// Kinds of molecules.
    molecules: Vec<Spanned<Entry>>,
    /// Number of beads that fractions are shares of.
    beads: Option<u32>,
    /// The same as beads per volume of the box.
    #[param(unit = "length⁻³", above = 0.0)]
    density: Option<f64>,
    /// Length of bonds that `bonds` does not name.
    #[param(default = 1.0, unit = "length", above = 0.0)]
    bond_length: f64,
    /// Lengths of bonds by the types of their beads, and by that the names of bond types: `{"A-B": (length: 0.9)}`.
    bonds: Option<TypeMap<Spanned<Length>>>,
    /// Types of angles that are made, with the angle between the two bonds: `{"A-B-A": (theta_deg: 120.0), "B-A-B": ()}`.
    angles: Option<TypeMap<Spanned<Bend>>>,
    /// Types of dihedrals that are made: `["A-A-A-A"]`.
    dihedrals: Option<Vec<Spanned<String>>>,
    /// Shortest distance of two beads.
    #[param(default = 0.0, unit = "length", at_least = 0.0)]
    distance: f64,
    /// The same for pairs of types: `{("A", "B"): 1.1}`.
    #[param(unit = "length", at_least = 0.0)]
    distances: Option<TypePairs<f64>>,
    /// Mass, charge and diameter of types: `{"N": (mass: 72.0, charge: 1.0)}`.
    types: Option<TypeMap<Spanned<Properties>>>,
    /// Characteristic ratio of chains without any distances (which make them longer): bonds that follow each other have the
    /// angle γ with a probability ∝ exp(κ cos γ). 1 for free joints.
    #[param(default = 1.0, at_least = 1.0, below = 1000.0)]
    c_inf: f64,
    /// Places tried for each bead.
    #[param(default = 50, at_least = 1)]
    trials: u32,
    /// How often a molecule is begun.
    #[param(default = 30, at_least = 1)]
    attempts: u32,
}

/// Densest packing of spheres and of discs.
const CLOSE_PACKED: [f64; 2] = [0.906_9, 0.740_5];

/// A list of names joined by `-`.
fn parts(name: &str) -> Vec<&str> {
    name.split('-').collect()
}

/// The name among `names` that is these parts in this order or in the other one.
pub fn matching<'a>(names: &'a [(String, Position)], beads: &[&str]) -> Option<&'a str> {
    let is = |n: &str| {
        let p = parts(n);
        p.iter().eq(beads.iter()) || p.iter().rev().eq(beads.iter())
    };
    names.iter().find(|(n, _)| is(n)).map(|(n, _)| n.as_str())
}

/// Names of a table with the places of their rows.
fn names<T>(map: &Option<TypeMap<Spanned<T>>>) -> Vec<(String, Position)> {
    map.iter().flat_map(TypeMap::iter).map(|(n, row)| (n.to_string(), row.at)).collect()
}

impl Polymers {
    fn set_box(&self, s: &mut Snapshot) -> Result<()> {
        match (&self.box_length, s.is_empty() && s.box_length == [0.0; 3]) {
            (Some(b), true) => {
                let [x, y, z] = b.value;
                if x <= 0.0 || y <= 0.0 {
                    return Err(InputError::at(b.at, "box lengths must be above 0; only the third may be 0").into());
                }
                (s.dimensions, s.box_length) = (if z > 0.0 { 3 } else { 2 }, b.value);
                Ok(())
            }
            (Some(b), false) => {
                let text = "the box is set by the generator before; leave `box` out to add to what it made";
                Err(InputError::at(b.at, text).into())
            }
            (None, true) => Err(Error::input("the first generator needs a `box`")),
            (None, false) => Ok(()),
        }
    }

    /// How many molecules of each kind there are.
    fn counts(&self, made: &[Molecule], s: &Snapshot) -> Result<Vec<usize>> {
        let mut errors = Errors::default();
        let all = match (self.beads, self.density) {
            (Some(_), Some(_)) => {
                errors.push(InputError::new("give `beads` or `density`, not both"));
                None
            }
            (Some(n), None) => Some(f64::from(n)),
            (None, Some(rho)) => Some((rho * s.volume()).round()),
            (None, None) => None,
        };
        let shares: f64 = self.molecules.iter().filter_map(|e| e.value.fraction).sum();
        if shares > 1.0 + 1e-9 {
            errors.push(InputError::new(format!("the fractions are {shares} together, more than 1")));
        }
        let mut counts = vec![];
        for (e, m) in self.molecules.iter().zip(made) {
            let n = match (e.value.count, e.value.fraction, all) {
                (Some(n), None, _) => n as usize,
                (None, Some(f), Some(all)) => (f * all / m.beads.len() as f64).round() as usize,
                (None, Some(_), None) => {
                    errors.push(InputError::at(e.at, "a fraction needs `beads` or `density` of the whole"));
                    0
                }
                _ => {
                    errors.push(InputError::at(e.at, "give either `count` or `fraction`"));
                    0
                }
            };
            counts.push(n);
        }
        let beads: usize = counts.iter().zip(made).map(|(n, m)| n.saturating_mul(m.beads.len())).sum();
        if beads + s.len() > u32::MAX as usize / 4 {
            errors.push(InputError::new(format!("{beads} beads are too many")));
        }
        errors.into_result(Some(counts))
    }

    /// Notations as molecules, with everything the file names checked against them.
    fn read(&self) -> Result<Vec<Molecule>> {
        let mut errors = Errors::default();
        let mut made = vec![];
        for e in &self.molecules {
            match Molecule::read(&e.value.molecule.value) {
                Ok(m) => made.push(m),
                Err(text) => errors.push(InputError::at(e.value.molecule.at, text)),
            }
        }
        if self.molecules.is_empty() {
            errors.push(InputError::new("`molecules` is empty"));
        }
        if made.len() == self.molecules.len() {
            let of = |m: &Molecule, list: Vec<usize>| list.iter().map(|i| m.beads[*i].clone()).collect::<Vec<_>>();
            let mut there: [Vec<Vec<String>>; 4] = Default::default();
            for (e, m) in self.molecules.iter().zip(&made) {
                there[0].extend(m.beads.iter().map(|b| vec![b.clone()]));
                there[1].extend(m.bonds().into_iter().map(|b| of(m, b.to_vec())));
                if let Some(Graft::Particles { of }) = &e.value.graft {
                    there[1].push(vec![of.clone(), m.beads[0].clone()]);
                }
                there[2].extend(m.angles().into_iter().map(|b| of(m, b.to_vec())));
                there[3].extend(m.dihedrals().into_iter().map(|b| of(m, b.to_vec())));
                for list in &mut there {
                    list.sort();
                    list.dedup();
                }
                if e.value.places == Places::Lattice && (m.beads.len() > 1 || e.value.graft.is_some()) {
                    errors.push(InputError::at(e.at, "only single beads, not grafted, can be put on a lattice"));
                }
            }
            let dihedrals: Vec<(String, Position)> =
                self.dihedrals.iter().flatten().map(|d| (d.value.clone(), d.at)).collect();
            let asked = [
                ("particle", names(&self.types)),
                ("bond", names(&self.bonds)),
                ("angle", names(&self.angles)),
                ("dihedral", dihedrals),
            ];
            for (k, (what, list)) in asked.into_iter().enumerate() {
                for (name, at) in list {
                    let is = |t: &Vec<String>| {
                        let p = parts(&name);
                        p.iter().eq(t.iter()) || p.iter().rev().eq(t.iter())
                    };
                    if !there[k].iter().any(is) {
                        let all: Vec<String> = there[k].iter().map(|t| t.join("-")).collect();
                        let hint = match nearest(&name, all.iter().map(String::as_str)) {
                            Some(n) => format!("; did you mean \"{n}\"?"),
                            None => String::new(),
                        };
                        errors
                            .push(InputError::at(at, format!("no molecule has a {what} of the type \"{name}\"{hint}")));
                    }
                }
            }
        }
        errors.into_result(Some(made))
    }

    /// Names of the types of bonds, angles and dihedrals that the file gives.
    pub fn link_names(&self) -> [Vec<(String, Position)>; 3] {
        let dihedrals = self.dihedrals.iter().flatten().map(|d| (d.value.clone(), d.at)).collect();
        [names(&self.bonds), names(&self.angles), dihedrals]
    }

    /// The notations of all kinds of molecules.
    pub fn notations(&self) -> impl Iterator<Item = &str> {
        self.molecules.iter().map(|e| e.value.molecule.value.as_str())
    }

    fn length_of(&self, a: &str, b: &str) -> f64 {
        let all = names(&self.bonds);
        let found = matching(&all, &[a, b]);
        let row =
            |n: &str| self.bonds.iter().flat_map(TypeMap::iter).find(|(m, _)| *m == n).map(|(_, r)| r.value.length);
        found.and_then(row).unwrap_or(self.bond_length)
    }

    /// cos of the angle of three beads, if it is given.
    fn bend_of(&self, beads: [&str; 3]) -> Option<f64> {
        let all = names(&self.angles);
        let found = matching(&all, &beads)?;
        let row = self.angles.iter().flat_map(TypeMap::iter).find(|(m, _)| *m == found)?;
        row.1.value.theta_deg.map(|t| t.to_radians().cos())
    }

    fn kind(&self, e: &Entry, m: Molecule, s: &mut Snapshot) -> Kind {
        let name = |i: usize| m.beads[i].as_str();
        let types = m.beads.iter().map(|b| s.type_id(b)).collect();
        let stem = match &e.graft {
            Some(Graft::Particles { of }) => self.length_of(of, name(0)),
            _ => self.bond_length,
        };
        let own = |i: usize| if i == 0 { stem } else { self.length_of(name(m.parents[i]), name(i)) };
        let bend = |i: usize| {
            let parent = m.parents[i];
            (parent > 0).then(|| self.bend_of([name(m.parents[parent]), name(parent), name(i)])).flatten()
        };
        let mut near = m.neighbors();
        for [a, b, c] in m.angles() {
            if self.bend_of([name(a), name(b), name(c)]).is_some() {
                near[a].push(c);
                near[c].push(a);
            }
        }
        Kind {
            types,
            lengths: (0..m.beads.len()).map(own).collect(),
            bends: (0..m.beads.len()).map(bend).collect(),
            meets: Kind::meetings(&m, |a, b| self.length_of(name(a), name(b))),
            near,
            region: e.region,
            graft: e.graft.clone(),
            molecule: m,
        }
    }

    /// Shortest distances of all pairs of types, squared.
    fn apart2(&self, types: &[String]) -> Result<Vec<f64>> {
        let mut errors = Errors::default();
        let table = self.distances.as_ref().map(|d| d.bind_some(types, &mut errors));
        let n = types.len();
        let of = |k: usize| {
            let row = table.as_ref().and_then(|t| t[k]);
            row.zip(self.distances.as_ref()).map_or(self.distance, |(r, d)| *d.get(r)).powi(2)
        };
        errors.into_result(Some((0..n * n).map(of).collect()))
    }

    /// More spheres than the densest packing has are not tried.
    fn check_room(&self, kinds: &[(Kind, usize)], s: &Snapshot, apart2: &[f64]) -> Result<()> {
        let n = s.types.len();
        let ball = |t: usize| {
            let d2 = apart2[t * n + t];
            if s.dimensions == 3 { PI / 6.0 * d2.powf(1.5) } else { PI / 4.0 * d2 }
        };
        let of_kind =
            |(k, count): &(Kind, usize)| *count as f64 * k.types.iter().map(|t| ball(*t as usize)).sum::<f64>();
        // beads of one molecule may overlap where bonds are short: only single beads and long bonds are sure
        let sure = |(k, _): &&(Kind, usize)| {
            let least = |i: usize| apart2[k.types[i] as usize * (n + 1)];
            (1..k.types.len()).all(|i| k.lengths[i].powi(2) >= least(i) && k.near[i].len() < 3)
        };
        let there: f64 = s.type_id.iter().map(|t| ball(*t as usize)).sum();
        let wanted: f64 = kinds.iter().filter(sure).map(of_kind).sum::<f64>() + there;
        let room = CLOSE_PACKED[s.dimensions as usize - 2] * s.volume();
        if wanted > room {
            return Err(Error::input(format!(
                "there is no room: at these distances the beads fill {:.3} of the box, and no packing more than {:.3}; \
                 build with a smaller `distance`, and push the beads apart in a first stage",
                wanted / s.volume(),
                CLOSE_PACKED[s.dimensions as usize - 2]
            )));
        }
        for ((k, count), e) in kinds.iter().zip(&self.molecules) {
            let single = k.types.len() == 1 && e.value.graft.is_none();
            let fill = of_kind(&(Kind { near: vec![], ..clone_of(k) }, *count));
            // half a bead may stand out of the region on all sides, so only regions much larger than beads are looked at
            let volume = k.region.volume(s.box_length);
            let edge = apart2[k.types[0] as usize * (n + 1)].sqrt();
            if single && fill > 2.0 * volume && volume > (8.0 * edge).powi(s.dimensions as i32) {
                return Err(InputError::at(e.at, format!("{count} beads have no room in their region")).into());
            }
        }
        Ok(())
    }
}

/// A kind without what only growth needs.
fn clone_of(k: &Kind) -> Kind {
    Kind {
        molecule: Molecule::default(),
        types: k.types.clone(),
        lengths: vec![],
        bends: vec![],
        meets: vec![],
        near: vec![],
        region: k.region,
        graft: None,
    }
}

/// Arrays of particles that were there before, or that a component asks for later, for the new ones.
fn extend_arrays(s: &mut Snapshot, before: usize, molecules: &[i32], of_type: &dyn Fn(&str, usize) -> Option<f64>) {
    let n = s.len();
    let mut ids = match s.arrays.remove("molecule").map(|a| a.values) {
        Some(Values::Int(v)) => v,
        _ => vec![-1; before],
    };
    let first = ids.iter().copied().max().unwrap_or(-1) + 1;
    ids.extend(molecules.iter().map(|m| first + m));
    s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(ids) });
    for name in ["charge", "diameter"] {
        let any = (0..s.types.len()).any(|t| of_type(name, t).is_some());
        if any && !s.arrays.contains_key(name) {
            let plain = if name == "charge" { 0.0 } else { 1.0 };
            s.arrays.insert(name.into(), Array { width: 1, values: Values::Real(vec![plain; before]) });
        }
    }
    let kinds = &s.type_id;
    for (name, a) in &mut s.arrays {
        let width = a.width as usize;
        match &mut a.values {
            Values::Int(v) => v.resize(n * width, if name == "body" { -1 } else { 0 }),
            Values::Real(v) => {
                let row: &[f64] = match name.as_str() {
                    "quaternion" => &[0.0, 0.0, 0.0, 1.0],
                    "orientation" => &[0.0, 0.0, 1.0],
                    _ => &[],
                };
                while v.len() < n * width {
                    let (i, k) = (v.len() / width, v.len() % width);
                    let plain = row.get(k).copied().unwrap_or(if name == "diameter" { 1.0 } else { 0.0 });
                    v.push(of_type(name, kinds[i] as usize).unwrap_or(plain));
                }
            }
        }
    }
}

impl Generator for Polymers {
    fn generate(&mut self, context: &GeneratorContext, s: &mut Snapshot) -> Result<()> {
        let made = self.read()?;
        self.set_box(s)?;
        let counts = self.counts(&made, s)?;
        let before = s.len();
        let kinds: Vec<(Kind, usize)> = self
            .molecules
            .iter()
            .zip(made)
            .zip(counts)
            .map(|((e, m), count)| (self.kind(&e.value, m, s), count))
            .collect();
        let apart2 = self.apart2(&s.types)?;
        self.check_room(&kinds, s, &apart2)?;
        let reach = apart2.iter().copied().fold(0.0, f64::max).sqrt();
        let shortest = s.box_length.iter().take(s.dimensions as usize).copied().fold(f64::INFINITY, f64::min);
        if reach > 0.5 * shortest {
            let text = format!("a shortest distance of {reach} is more than half of the box length {shortest}");
            return Err(Error::input(text));
        }
        let all: usize = kinds.iter().map(|(k, n)| k.types.len() * n).sum();
        let mut grid = Grid::new(s.box_length, reach, before + all);
        s.position.iter().for_each(|r| grid.push(*r));
        let (n_types, kappa) = (s.types.len(), if self.c_inf > 1.0 { kappa_of(self.c_inf) } else { 0.0 });
        let mut b = Builder {
            grid,
            apart2,
            n_types,
            numbers: Numbers::new(RandomKey::new(context.seed, context.component)),
            trials: self.trials,
            attempts: self.attempts,
            reserved: None,
            kappa,
            state: s,
        };
        let mut ids = vec![];
        let mut links = Links::new(self);
        for ((kind, count), e) in kinds.iter().zip(&self.molecules) {
            self.place(&mut b, kind, *count, e, &mut ids, &mut links)?;
        }
        links.finish(s);
        let properties = |t: usize| {
            let name = &s.types[t];
            self.types.iter().flat_map(TypeMap::iter).find(|(n, _)| n == name).map(|(_, p)| &p.value)
        };
        let rows: Vec<Option<&Properties>> = (0..s.types.len()).map(properties).collect();
        for i in before..s.len() {
            if let Some(p) = rows[s.type_id[i] as usize] {
                s.mass[i] = p.mass;
            }
        }
        let of_type = |name: &str, t: usize| match (name, rows[t]) {
            ("charge", Some(p)) if p.charge != 0.0 => Some(p.charge),
            ("diameter", Some(p)) => p.diameter,
            _ => None,
        };
        extend_arrays(s, before, &ids, &of_type);
        Ok(())
    }
}

impl Polymers {
    /// Places all molecules of a kind.
    fn place(
        &self,
        b: &mut Builder<'_>,
        kind: &Kind,
        count: usize,
        e: &Spanned<Entry>,
        ids: &mut Vec<i32>,
        links: &mut Links<'_>,
    ) -> Result<()> {
        let text = &e.value.molecule.value;
        if e.value.places == Places::Lattice && count > 0 {
            let Some(sites) = b.lattice(kind, count) else {
                let text = format!("there are not enough free sites for {count} beads of \"{text}\" on a lattice");
                return Err(InputError::at(e.at, text).into());
            };
            for r in sites {
                ids.push(ids.last().map_or(0, |n| n + 1));
                b.put(kind.types[0], r);
            }
            return Ok(());
        }
        let mut stems = vec![];
        if let Some(Graft::Particles { of }) = &e.value.graft {
            let free: Vec<usize> =
                (0..b.state.len()).filter(|i| b.state.types[b.state.type_id[*i] as usize] == *of).collect();
            if free.len() < count {
                let text = format!("there are {} particles of type \"{of}\" for {count} molecules", free.len());
                return Err(InputError::at(e.at, text).into());
            }
            stems = (0..count).map(|k| free[k * free.len() / count]).collect();
        }
        let points = e.value.graft.as_ref().map_or(vec![], |g| g.points(count, b.state.box_length));
        let reach = b.apart2.iter().copied().fold(0.0, f64::max).sqrt();
        b.reserved = (!points.is_empty()).then(|| Reserved::new(&points, kind.types[0], b.state.box_length, reach));
        for k in 0..count {
            let base = b.state.len();
            if let Some(r) = &mut b.reserved {
                r.begin(k);
            }
            let (first, stem) = (points.get(k).copied(), stems.get(k).copied());
            if !b.grow(kind, first, stem) {
                let density = base as f64 / b.state.volume();
                let what = match first {
                    Some(_) => "the molecules are grafted too densely, or something stands there".to_string(),
                    None => format!("it was begun {} times", self.attempts),
                };
                let text = format!(
                    "no place was found for molecule {} of {count}, \"{text}\": {what}; {base} particles are there, {density:.4} per \
                     volume. Use a smaller `distance` and push the beads apart in a first stage, a larger region, or fewer",
                    k + 1
                );
                return Err(InputError::at(e.at, text).into());
            }
            let id = ids.last().map_or(0, |n| n + 1);
            ids.extend(std::iter::repeat_n(id, kind.types.len()));
            links.add(&kind.molecule, base as u32);
            if let Some(stem) = stem {
                let of = b.state.types[b.state.type_id[stem] as usize].clone();
                links.bond([&of, &kind.molecule.beads[0]], [stem as u32, base as u32]);
            }
        }
        b.reserved = None;
        Ok(())
    }
}
