//! Parameters of the generator `Polymers`.

use crate::polymers::check::check_lengths;
use crate::polymers::graft::Graft;
use crate::polymers::placement::extend_arrays;
use crate::polymers::region::Region;
use crate::polymers::species::Species;
use crate::polymers::topology::TopologyBuilder;
use galamost_plugin_api::error::{Errors, Position};
use galamost_plugin_api::params::{FromValue, TypePairs, Value};
use galamost_plugin_api::prelude::*;

/// How single beads are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinglePlacement {
    /// At random positions.
    Random,
    /// On sites of a simple cubic lattice.
    Lattice,
}

impl FromValue for SinglePlacement {
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

/// Molecules of one kind.
#[derive(Clone, Debug, Params)]
pub struct MoleculeEntry {
    /// Beads and bonds in short notation: `A5B5`; `NPG(C4)GC4` with branches in parentheses; `{A2B}5` with repeats;
    /// `A[1]A8A[1]`, a ring of ten, where beads with the same mark are bonded. A type is a capital letter followed by
    /// lowercase letters or `_`.
    pub molecule: Spanned<String>,
    /// Number of molecules; alternatively give `fraction`.
    pub count: Option<u32>,
    /// Fraction of all `beads`; alternatively give `count`.
    #[param(above = 0.0, at_most = 1.0)]
    pub fraction: Option<f64>,
    /// Allowed region: `All`, `Box(min, max)`, `Slab(axis, min, max)`, `Sphere(center, radius, inner)`, `Cylinder(axis,
    /// center, radius, inner)` or `Outside(center, radius)`. Limits of `Box` and `Slab` lie in the box, from −L/2 to L/2; spheres and
    /// cylinders may extend through its faces. Bonds do not leave a region through a periodic boundary.
    #[param(default = Region::All)]
    pub region: Region,
    /// Grafting of the first beads: evenly spaced `OnSphere(center, radius, inside)` (a circle in two dimensions) or
    /// `OnPlane(axis, at, below)`, with chains between the plane and the face of the box above or below it, or bonded to
    /// existing particles, `OnParticles(of: "I")`, evenly selected among those. Angles and dihedrals across such a bond are
    /// not created. Planes and spheres must lie in the box, and their points in `region`.
    pub graft: Option<Graft>,
    /// Placement of single beads: `Random` positions or sites of a simple cubic `Lattice`.
    #[param(default = SinglePlacement::Random)]
    pub places: SinglePlacement,
}

/// A bond between two types.
#[derive(Clone, Debug, Params)]
pub struct BondEntry {
    /// Bond length.
    #[param(unit = "length", above = 0.0)]
    pub length: f64,
}

/// An angle between three types.
#[derive(Clone, Debug, Params)]
pub struct AngleEntry {
    /// θ, initial angle between the bonds along a path from the first bead; any angle if omitted.
    #[param(unit = "degrees", above = 0.0, at_most = 180.0)]
    pub theta_deg: Option<f64>,
}

/// Properties of a particle type.
#[derive(Clone, Debug, Params)]
pub struct TypeProperties {
    /// Mass; 0 for particles that `Sites` makes virtual sites.
    #[param(default = 1.0, at_least = 0.0)]
    mass: f64,
    /// Charge.
    #[param(default = 0.0)]
    charge: f64,
    /// Diameter; not set if omitted.
    #[param(above = 0.0)]
    diameter: Option<f64>,
}

/// Builds molecules bead by bead among existing particles: melts, mixtures, solutions, brushes.
///
/// Molecules are placed in the order of the list; list large ones first. A molecule starts at a random point of its region,
/// or at its grafting point. Each further bead is placed at the bond length from its parent, in a random direction, at the
/// given angle, or with the stiffness of `c_inf`. A given angle is imposed along each path from the first bead: between the
/// branches at a branch point, and at the bonds that close a ring, angles are free. A ring that the given angles keep open is an error.
/// Of up to `trials` random positions, the
/// first one that is far enough from all other beads is used, so all allowed positions are equally likely, as in the growth
/// of Rosenbluth and Rosenbluth (J. Chem. Phys. 23 (1955) 356). At a dead end the chain retracts by a few beads, by more
/// each time; after many steps it restarts. After `attempts` restarts the generator reports an error. Rings are guided to
/// their closure, so ⟨R_g²⟩ deviates slightly from that of ideal rings: by +0.4 % (4 bonds), −1.5 % (8 bonds) and −0.9 %
/// (20 bonds). Bonded beads, and the end beads of imposed angles, may be closer than `distance`.
///
/// As the first generator it needs `box`; a third length of 0 makes the system two-dimensional. After other generators it
/// keeps their box, particles and tags, and adds to them. Bond types are named after both beads, as in `bonds` or in the
/// order in which the types first appear: `A-B`. Angles and dihedrals are created for the types listed in `angles` and
/// `dihedrals`. The array `molecule` is set; `charge` and `diameter` are set if `types` contains any. Velocities are 0; use
/// `Velocities` to set them.
///
/// Random numbers are keyed by the seed.
///
/// ```ron
/// Polymers(box: [12.0, 12.0, 12.0], molecules: [
///     (molecule: "A5B5", count: 60),
///     (molecule: "A", count: 300),
/// ], distance: 0.7)
/// ```
///
/// Build dense systems with a small `distance` and push the beads apart in a first stage:
///
/// | bonds | `distance` | first stage |
/// |---|---|---|
/// | `Fene` | 0.7 σ | `CappedVerlet(max_displacement: 0.02)`; with overlaps the repulsion would stretch bonds beyond R₀ |
/// | of any length, such as `HarmonicBond` | 0 | `CappedVerlet` or `Fire` |
/// | any, with a soft pair force (DPD) | 0 | none, or `CappedVerlet` |
///
/// `Fire` starts and ends at rest, so `Velocities` before it has no effect. Continue with `Langevin` or `Andersen`, which heat
/// particles at rest.
///
/// A melt of Kremer-Grest chains:
///
/// ```ron,run
/// (
///     seed: 1,
///     initial: [
///         Polymers(box: [10.0, 10.0, 10.0], density: 0.85, molecules: [ (molecule: "A10", fraction: 1.0) ],
///             bond_length: 0.97, distance: 0.7),
///         Velocities(kT: 1.0),
///     ],
///     forces: [
///         Wca(pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }),
///         Fene(bonds: { "A-A": (k: 30.0, R0: 1.5) }),
///     ],
///     integrators: [ Langevin(kT: 1.0, gamma: 1.0) ],
///     stages: [
///         (name: "push-off", steps: 500, dt: 0.005, integrators: [ CappedVerlet(max_displacement: 0.02) ]),
///         (name: "run", steps: 1000, dt: 0.005),
///     ],
/// )
/// ```
#[component(Generator, "Polymers")]
#[derive(Clone, Debug, Params)]
pub struct Polymers {
    /// L_x, L_y, L_z, box lengths; only for the first generator.
    #[param(name = "box", unit = "length", at_least = 0.0)]
    pub box_length: Option<Spanned<[f64; 3]>>,
    /// Kinds of molecules.
    pub molecules: Vec<Spanned<MoleculeEntry>>,
    /// Total number of beads that each `fraction` refers to.
    pub beads: Option<u32>,
    /// ρ, total number density of beads that each `fraction` refers to; an alternative to `beads`.
    #[param(unit = "length⁻³", above = 0.0)]
    pub density: Option<f64>,
    /// Bond length of bonds that `bonds` does not list.
    #[param(default = 1.0, unit = "length", above = 0.0)]
    pub bond_length: f64,
    /// Bond lengths by bond type; the keys also define the names of bond types: `{"A-B": (length: 0.9)}`.
    pub bonds: Option<TypeMap<Spanned<BondEntry>>>,
    /// Angle types to create, with the angle between the bonds: `{"A-B-A": (theta_deg: 120.0), "B-A-B": ()}`.
    pub angles: Option<TypeMap<Spanned<AngleEntry>>>,
    /// Dihedral types to create: `["A-A-A-A"]`.
    pub dihedrals: Option<Vec<Spanned<String>>>,
    /// Minimum distance between two beads.
    #[param(default = 0.0, unit = "length", at_least = 0.0)]
    pub distance: f64,
    /// Minimum distances by pair of types: `{("A", "B"): 1.1}`.
    #[param(unit = "length", at_least = 0.0)]
    pub distances: Option<TypePairs<f64>>,
    /// Mass, charge and diameter by type: `{"N": (mass: 72.0, charge: 1.0)}`.
    pub types: Option<TypeMap<Spanned<TypeProperties>>>,
    /// C∞, characteristic ratio of chains without minimum distances (which make chains longer). Successive bonds enclose
    /// the angle γ with a probability ∝ exp(κ cos γ); 1 for freely jointed chains. Angles with a given `theta_deg` keep it.
    #[param(default = 1.0, at_least = 1.0, below = 1000.0)]
    pub c_inf: f64,
    /// Maximum number of trial positions per bead.
    #[param(default = 50, at_least = 1)]
    pub trials: u32,
    /// Maximum number of growth attempts per molecule.
    #[param(default = 30, at_least = 1)]
    pub attempts: u32,
}

/// Returns the names in a table with their positions in the file.
fn names<T>(map: &Option<TypeMap<Spanned<T>>>) -> Vec<(String, Position)> {
    map.iter().flat_map(TypeMap::iter).map(|(n, row)| (n.to_string(), row.at)).collect()
}

impl Polymers {
    /// Returns the names of the particle types, bond types, angle types and dihedral types that the parameters list.
    pub fn listed_types(&self) -> [Vec<(String, Position)>; 4] {
        let dihedrals = self.dihedrals.iter().flatten().map(|d| (d.value.clone(), d.at)).collect();
        [names(&self.types), names(&self.bonds), names(&self.angles), dihedrals]
    }

    /// Returns the notations of all molecules.
    pub fn notations(&self) -> impl Iterator<Item = &str> {
        self.molecules.iter().map(|e| e.value.molecule.value.as_str())
    }

    /// Sets the box if this is the first generator.
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
                let text = "an earlier generator has set the box; omit `box` to add molecules to its particles";
                Err(InputError::at(b.at, text).into())
            }
            (None, true) => Err(Error::input("Polymers is the first generator and needs a `box`")),
            (None, false) => Ok(()),
        }
    }

    /// Sets masses, charges, diameters and molecule ids of the particles from `before` on.
    fn set_properties(&self, s: &mut Snapshot, before: usize, ids: &[i32]) {
        let properties = |t: usize| {
            let name = &s.types[t];
            self.types.iter().flat_map(TypeMap::iter).find(|(n, _)| n == name).map(|(_, p)| &p.value)
        };
        let rows: Vec<Option<&TypeProperties>> = (0..s.types.len()).map(properties).collect();
        for i in before..s.len() {
            if let Some(p) = rows[s.type_id[i] as usize] {
                s.mass[i] = p.mass;
            }
        }
        let value_of_type = |name: &str, t: usize| match (name, rows[t]) {
            ("charge", Some(p)) if p.charge != 0.0 => Some(p.charge),
            ("diameter", Some(p)) => p.diameter,
            _ => None,
        };
        extend_arrays(s, before, ids, &value_of_type);
    }
}

impl Generator for Polymers {
    fn generate(&mut self, context: &GeneratorContext, s: &mut Snapshot) -> Result<()> {
        let molecules = self.read()?;
        self.set_box(s)?;
        let counts = self.counts(&molecules, s)?;
        let before = s.len();
        let species: Vec<(Species, usize)> = self
            .molecules
            .iter()
            .zip(molecules)
            .zip(counts)
            .map(|((e, m), count)| (self.species(&e.value, m, s), count))
            .collect();
        let min_distance2 = self.min_distances2(&s.types)?;
        check_lengths(&species, s)?;
        self.check_places(&species, s)?;
        self.check_room(&species, s, &min_distance2)?;
        let all: usize = species.iter().map(|(k, n)| k.types.len() * n).sum();
        let mut ids = vec![];
        let mut topology = TopologyBuilder::new(self);
        let mut builder = self.builder(context, s, min_distance2, all)?;
        for ((species, count), e) in species.iter().zip(&self.molecules) {
            self.place(&mut builder, species, *count, e, &mut ids, &mut topology)?;
        }
        topology.finish(s);
        self.set_properties(s, before, &ids);
        Ok(())
    }
}
