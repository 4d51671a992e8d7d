//! Facts about the system that a component receives before the first step, and groups of particles.

use crate::device::precision::Precision;
use crate::device::tilt::heights;
use crate::snapshot::{LinkList, Snapshot, Values};
use serde::{Deserialize, Serialize};

/// The system that a component is bound to, before step 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemInfo {
    /// Names of particle types.
    pub types: Vec<String>,
    /// Names of bond types.
    pub bond_types: Vec<String>,
    /// Names of angle types.
    pub angle_types: Vec<String>,
    /// Names of dihedral types.
    pub dihedral_types: Vec<String>,
    /// Names of improper types.
    pub improper_types: Vec<String>,
    /// Number of particles.
    pub n: u64,
    /// Number of dimensions, 2 or 3.
    pub dimensions: u32,
    /// Box lengths at the start.
    pub box_length: [f64; 3],
    /// Tilt factors of the box at the start; see [`crate::tilt`].
    pub tilt: [f64; 3],
    /// Names of the optional per-particle arrays of the system; see [`Self::has_array`].
    pub arrays: Vec<String>,
    /// The largest particle diameter; 0 if the system has no diameters.
    pub largest_diameter: f64,
    /// For each particle type, the smallest particle diameter; the largest number for a type without particles. Empty if the system
    /// has no diameters. Unit: length.
    pub smallest_diameters: Vec<f64>,
    /// For each particle type, the diameter of the next particle in order of size; equal to the smallest one if two particles have it. The
    /// largest number for a type with fewer than two particles. Empty if the system has no diameters. Unit: length.
    pub second_diameters: Vec<f64>,
    /// Number of particles without mass.
    pub massless: u64,
    /// For each particle type: the number of charged particles, Σq and Σq², in the precision of the run. Empty if the
    /// system has no charges.
    pub charges: Vec<[f64; 3]>,
    /// Along each axis, the longest distance without charged particles, to 1/1000 of the box length; the box is periodic. 0 if
    /// the system has no charges.
    pub uncharged: [f64; 3],
    /// The middle of that distance along each axis, as a fraction of the box length from the lower face, from 0 to 1. 0 if the system
    /// has no charges, or if they leave no distance.
    pub uncharged_middle: [f64; 3],
    /// The box lengths later in the run, if the engine binds a copy of the component to get its warnings in that box; see
    /// [`crate::component::Needs::box_warnings`]. `box_length` are those at the start.
    pub present_box: Option<[f64; 3]>,
    /// The longest time step of the stages that use the component; for an analyzer of all stages,
    /// that of the first one. Unit: time.
    pub dt: f64,
    /// The run's seed.
    pub seed: u64,
    /// Time step at the start.
    pub step: u64,
    /// Number of the [`Precision`].
    pub precision: u32,
    /// Device of the run: `cpu` or `cuda`.
    pub device: String,
    /// Directory that relative paths start from.
    pub directory: String,
    /// Whether the run resumes from a checkpoint. Output files are then continued.
    pub resumed: bool,
    /// Number of the run in this process; see [`crate::output::SharedOutput`].
    pub run: u64,
    /// Number of the rank (GPU or process) that the object is for, from 0; see [`crate::component::Needs::shared`]. Only the object
    /// of the first rank writes files.
    pub rank: u32,
    /// Minor version of the engine's plugin API. A plugin must check it before it uses words that older engines
    /// reserve.
    pub api_minor: u32,
    /// Number of the component in the pipeline, for the key of its random numbers. Set for samplers only.
    pub component: u32,
    /// The bonds of the initial state whose length the component keeps, when it is bound for the second time; see
    /// [`crate::component::Needs::constraints`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
}

/// A bond of fixed length in the initial state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Constraint {
    /// Tags of its particles, a and b.
    pub tags: [u32; 2],
    /// Bond type.
    pub kind: u32,
    /// r_a − r_b for the nearest image.
    pub r: [f64; 3],
}

impl SystemInfo {
    /// Returns the names of the types of a list.
    pub fn link_types(&self, list: LinkList) -> &[String] {
        [&self.bond_types, &self.angle_types, &self.dihedral_types, &self.improper_types][list.index()]
    }
    /// Returns all type names, of particles and of links.
    pub fn type_names(&self) -> impl Iterator<Item = &String> {
        self.types.iter().chain(LinkList::ALL.into_iter().flat_map(|list| self.link_types(list)))
    }
    /// Returns whether particles have this array. An `orientation` also provides `quaternion`.
    pub fn has_array(&self, name: &str) -> bool {
        let there = |name: &str| self.arrays.iter().any(|a| a == name);
        there(name) || (name == "quaternion" && there("orientation"))
    }

    /// Returns the facts that a snapshot contains; the others keep their defaults.
    pub fn of(s: &Snapshot) -> Self {
        let uncharged: [[f64; 2]; 3] = std::array::from_fn(|axis| uncharged(s, axis));
        Self {
            types: s.types.clone(),
            bond_types: s.bond_types.clone(),
            angle_types: s.angle_types.clone(),
            dihedral_types: s.dihedral_types.clone(),
            improper_types: s.improper_types.clone(),
            n: s.len() as u64,
            dimensions: s.dimensions,
            box_length: s.box_length,
            tilt: s.tilt,
            arrays: s.arrays.keys().cloned().collect(),
            largest_diameter: match s.arrays.get("diameter").map(|a| &a.values) {
                Some(Values::Real(d)) => d.iter().copied().fold(0.0, f64::max),
                _ => 0.0,
            },
            smallest_diameters: smallest_diameters(s).map(|[first, _]| first).collect(),
            second_diameters: smallest_diameters(s).map(|[_, second]| second).collect(),
            massless: s.mass.iter().filter(|m| **m == 0.0).count() as u64,
            charges: charges(s),
            uncharged: uncharged.map(|[length, _]| length),
            uncharged_middle: uncharged.map(|[_, middle]| middle),
            step: s.step,
            ..Self::default()
        }
    }

    /// Returns the facts for a run in this precision, in which charges may be rounded.
    pub fn in_precision(self, s: &Snapshot, precision: Precision) -> Self {
        let charges =
            if precision == Precision::Double { self.charges } else { charges_of(s, |q| f64::from(q as f32)) };
        Self { charges, precision: precision as u32, ..self }
    }

    /// Returns the precision of the run.
    pub fn precision(&self) -> Precision {
        Precision::from_u32(self.precision).unwrap_or_default()
    }

    /// Checks that numbers of a row, computed from parameters, exist in the precision of pair mathematics: that they are neither infinite
    /// nor too small. σ¹² of Lennard-Jones, say, is zero in f32 if σ is below 10⁻⁴, and only the attraction would be left.
    ///
    /// # Errors
    /// Returns a message if one of them does not.
    pub fn check_row(&self, numbers: &[f64]) -> Result<(), String> {
        self.check_products(numbers, 1.0)
    }

    /// Checks the constants of a formula as [`Self::check_row`] checks numbers of a row.
    ///
    /// # Errors
    /// Returns a message if one of them does not exist in the precision of the run.
    pub fn check_constants(&self, numbers: &[f64]) -> Result<(), String> {
        self.check_products(numbers, 1.0)
            .map_err(|message| message.replacen("these parameters give", "the numbers of the formula give", 1))
    }

    /// Checks numbers of a row as [`Self::check_row`] does, and their products with a factor of at least 1. Messages have the numbers
    /// without the factor, because users compare them with their parameters.
    pub(crate) fn check_products(&self, numbers: &[f64], factor: f64) -> Result<(), String> {
        let single = self.precision() != Precision::Double;
        let out_of_range = |x: f64| {
            let r = x as f32;
            r.is_infinite() || (x != 0.0 && r.abs() < f32::MIN_POSITIVE)
        };
        if numbers.iter().any(|x| !(factor * x).is_finite()) {
            return Err("these parameters give an infinite or undefined number".into());
        }
        match numbers.iter().find(|x| single && (out_of_range(**x) || out_of_range(factor * **x))) {
            None => Ok(()),
            Some(x) => Err(format!(
                "these parameters give {x:.1e}, which is out of range in {} precision; use units in which lengths and energies are nearer \
                 to 1, or `precision: Double`",
                self.precision().name()
            )),
        }
    }

    /// Resolves a path of the pipeline relative to its directory.
    pub fn path(&self, path: &str) -> std::path::PathBuf {
        std::path::Path::new(&self.directory).join(path)
    }

    /// Returns half the shortest box length, or height of a triclinic box: the upper limit of any cutoff.
    pub fn half_box(&self) -> f64 {
        heights(self.box_length, self.tilt)
            .iter()
            .take(self.dimensions as usize)
            .fold(f64::INFINITY, |m, l| m.min(0.5 * l))
    }

    /// Returns the message for a range of interactions above [`Self::half_box`], with the copies of the system that have room for
    /// it; `None` if the range fits. `name` is the field.
    pub fn beyond_half_box(&self, name: &str, range: f64) -> Option<String> {
        let half = self.half_box();
        let heights = heights(self.box_length, self.tilt);
        let axes = heights.iter().take(self.dimensions as usize);
        let what = if self.tilt == [0.0; 3] { "box length" } else { "height of the triclinic box" };
        let times: Vec<String> =
            axes.map(|l| format!("{:.0}", (2.0 * range / l).ceil())).chain(["1".into()]).take(3).collect();
        (range > half).then(|| {
            format!(
                "{name} = {range} is more than half the shortest {what} ({half}): a particle would interact with its own image; \
                 add Replicate(times: [{}]) to `initial` for a larger box",
                times.join(", ")
            )
        })
    }
}

/// Returns the two smallest diameters of each type.
fn smallest_diameters(s: &Snapshot) -> impl Iterator<Item = [f64; 2]> {
    let mut smallest = vec![];
    if let Some(Values::Real(diameters)) = s.arrays.get("diameter").map(|a| &a.values) {
        smallest.resize(s.types.len(), [f64::MAX; 2]);
        for (d, kind) in diameters.iter().zip(&s.type_id) {
            let [first, second] = &mut smallest[*kind as usize];
            *second = second.min(d.max(*first));
            *first = first.min(*d);
        }
    }
    smallest.into_iter()
}

fn charges(s: &Snapshot) -> Vec<[f64; 3]> {
    charges_of(s, |q| q)
}

/// Returns number, Σq and Σq² of the charged particles of each type.
fn charges_of(s: &Snapshot, stored: impl Fn(f64) -> f64) -> Vec<[f64; 3]> {
    let Some(Values::Real(charges)) = s.arrays.get("charge").map(|a| &a.values) else { return vec![] };
    let mut sums = vec![[0.0; 3]; s.types.len()];
    for (q, kind) in charges.iter().map(|q| stored(*q)).zip(&s.type_id).filter(|(q, _)| *q != 0.0) {
        let sum = &mut sums[*kind as usize];
        sum.iter_mut().zip([1.0, q, q * q]).for_each(|(sum, x)| *sum += x);
    }
    sums
}

/// Returns the longest distance along an axis without charged particles, of the periodic box, and its middle as a fraction of the
/// box length from the lower face.
fn uncharged(s: &Snapshot, axis: usize) -> [f64; 2] {
    /// Parts of the box length.
    const PARTS: usize = 1000;
    let Some(Values::Real(charges)) = s.arrays.get("charge").map(|a| &a.values) else { return [0.0; 2] };
    let length = s.box_length[axis];
    let mut occupied = [false; PARTS];
    for (r, _) in s.position.iter().zip(charges).filter(|(_, q)| **q != 0.0) {
        let fraction = (r[axis] / length + 0.5).rem_euclid(1.0);
        occupied[((fraction * PARTS as f64) as usize).min(PARTS - 1)] = true;
    }
    // from an occupied part once around
    let Some(first) = occupied.iter().position(|o| *o) else { return [length, 0.0] };
    let (mut run, mut longest, mut middle) = (0, 0, 0.0);
    for k in 0..PARTS {
        run = if occupied[(first + k) % PARTS] { 0 } else { run + 1 };
        if run > longest {
            longest = run;
            // the distance ends behind this part
            middle = ((first + k + 1) as f64 - 0.5 * run as f64) / PARTS as f64 % 1.0;
        }
    }
    [length * longest as f64 / PARTS as f64, middle]
}

/// The group of particles that a component acts on, resolved from [`crate::params::Group`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum GroupNeed {
    /// Every particle.
    #[default]
    All,
    /// Particles with mass.
    Massive,
    /// Particles of these types.
    Types(Vec<u32>),
    /// Particles with tags from first to last, both included.
    Tags(u32, u32),
    /// Particles of the molecules from first to last, both included, by the array `molecule` of the initial state.
    Molecules(i32, i32),
    /// Particles with initial position min ≤ r < max.
    Box([f64; 3], [f64; 3]),
    /// Particles outside the group.
    Not(Box<GroupNeed>),
    /// Particles in all of the groups.
    And(Vec<GroupNeed>),
    /// Particles in at least one of the groups.
    Or(Vec<GroupNeed>),
}

impl GroupNeed {
    /// Returns whether the particle `tag` of the initial state belongs to the group.
    pub fn contains(&self, tag: u32, s: &Snapshot) -> bool {
        let i = tag as usize;
        match self {
            Self::All => true,
            Self::Massive => s.mass[i] > 0.0,
            Self::Types(types) => types.contains(&s.type_id[i]),
            Self::Tags(first, last) => (*first..=*last).contains(&tag),
            Self::Molecules(first, last) => match s.arrays.get("molecule").map(|a| &a.values) {
                Some(Values::Int(molecule)) => (*first..=*last).contains(&molecule[i]),
                _ => false,
            },
            Self::Box(min, max) => {
                let inside = |k: usize| (min[k]..max[k]).contains(&s.position[i][k]);
                (0..s.dimensions as usize).all(inside)
            }
            Self::Not(group) => !group.contains(tag, s),
            Self::And(groups) => groups.iter().all(|g| g.contains(tag, s)),
            Self::Or(groups) => groups.iter().any(|g| g.contains(tag, s)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Array;

    /// Charges from z = −2 to 1 of a box from −5 to 5 leave 7 empty, across the boundary; a neutral particle does not count.
    #[test]
    fn the_longest_distance_without_charges_is_periodic() {
        let mut s = Snapshot { dimensions: 3, box_length: [10.0; 3], ..Snapshot::default() };
        let a = s.type_id("A");
        for z in [-2.0, 0.0, 1.0, 4.0] {
            s.push(a, [0.0, 0.0, z]);
        }
        assert_eq!(SystemInfo::of(&s).uncharged, [0.0; 3]);
        s.arrays.insert("charge".into(), Array { width: 1, values: Values::Real(vec![1.0, -2.0, 1.0, 0.0]) });
        let found = SystemInfo::of(&s).uncharged;
        // two parts of the length are lost to their roundings
        assert!((found[2] - 7.0).abs() <= 0.02 && (found[0] - 10.0).abs() <= 0.02, "{found:?}");
        // from 1 to −2 + 10: the middle is 4.5, or 9.5 from the lower face
        let middle = SystemInfo::of(&s).uncharged_middle;
        assert!((middle[2] - 0.95).abs() <= 0.002, "{middle:?}");
        // charges at x = 0 are opposite of the faces
        assert!(middle[0] <= 0.002 || middle[0] >= 0.998, "{middle:?}");
    }
}
