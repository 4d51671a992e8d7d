//! The generator of bodies.

use crate::places::{nearest, unwrapped};
use crate::shape::Shape;
use crate::{CENTER, MEMBERS, OFFSET};
use galamost_plugin_api::philox::{RandomKey, normal3};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::snapshot::{Array, Values, wrap};
use std::collections::{BTreeMap, BTreeSet};

/// Makes rigid bodies, which `RigidBodies` keeps rigid.
///
/// With `shape`, each particle of the type `center` becomes the center of a body of these beads. Orientations and angular
/// velocities or momenta are those of the center, if a file gives it some; otherwise orientations are random, and bodies do not
/// rotate. Without
/// `shape`, particles with the same number in the array `body` (of a file; −1 for none) become a body, and a center of the
/// type `center` is added; their tags must be consecutive. If bodies of the
/// file have a particle of the type `center`, as those of HOOMD-blue and of files that this program writes, it is the center, and
/// its mass, moments of inertia, orientation and angular momentum are those of the body; its beads are at their images nearest to it.
///
/// Without a center, the nearest images of the beads make the body, if it is shorter than half the box along each axis. The
/// images of a longer body must be those of the file: its beads have different images there, or the body does not cross the
/// boundary. Otherwise the generator returns an error. Each bead must be less than half the shortest box length from the center.
///
/// Mass, center of mass, principal axes and moments of inertia follow from the masses of the beads. The center gets them,
/// with the velocity and the angular momentum of the beads; the beads have no mass afterwards. With `kT`, angular momenta are
/// drawn from the Maxwell distribution instead, with variance kT I about each axis. Bodies of beads on a line are linear: they
/// do not rotate about the line. A body whose mass is all at its center, such as a single bead, has no moments of inertia: it moves as
/// a point particle, and the check warns about it. If no particle has moments of inertia, use `RotationalVerlet` or `RotationalLangevin`:
/// other thermostats have no rotation to control. Each body gets a number in `molecule`, for `neighbors: (only: OtherMolecules)`, and center and
/// beads the tag of the center in `body`.
///
/// The beads of bodies of `shape` overlap unless centers are farther apart than twice the largest
/// distance of a bead from its center.
/// Place it after the generator that creates the particles, and before `Velocities`, which needs the masses of the centers
/// and leaves out beads.
///
/// A pipeline has one `Bodies`, and all bodies of `shape` are equal. Bodies of the array `body` may differ: for mixtures of
/// shapes, write a file with this array.
///
/// ```ron
/// Bodies(center: "A", shape: [ (type: "C", at: (0.0, 0.0, -0.5)), (type: "C", at: (0.0, 0.0, 0.5)) ], kT: 1.0)
/// ```
#[component(Generator, "Bodies")]
#[derive(Clone, Debug, Params)]
pub struct Bodies {
    /// Type of centers.
    #[param(default = "Center".into())]
    center: String,
    /// Beads of a body.
    shape: Option<Vec<Spanned<Bead>>>,
    /// kT, temperature of the rotation. If omitted, bodies of `shape` do not rotate, and those of a file have the angular
    /// momentum of their beads.
    #[param(name = "kT", unit = "energy", at_least = 0.0)]
    kt: Option<f64>,
    #[param(skip)]
    warnings: Vec<String>,
}

/// A bead of a body.
#[derive(Clone, Debug, Params)]
pub struct Bead {
    /// Type.
    #[param(name = "type")]
    kind: String,
    /// Place, in any frame of the body.
    #[param(unit = "length")]
    at: [f64; 3],
    /// Mass.
    #[param(unit = "mass", at_least = 0.0, default = 1.0)]
    mass: f64,
}

/// A body: the tag of its center, its first bead and their number, and what it is made of.
struct Body {
    center: usize,
    first: usize,
    shape: Shape,
    orientation: Quaternion<f64>,
    momentum: Vec3<f64>,
}

impl Generator for Bodies {
    fn generate(&mut self, context: &GeneratorContext, s: &mut Snapshot) -> Result<()> {
        if s.is_empty() {
            return Err(Error::input("Bodies needs particles: place it after the generator that creates them"));
        }
        if s.dimensions == 2 {
            return Err(Error::input("rigid bodies require a three-dimensional system"));
        }
        if s.arrays.contains_key(CENTER) {
            return Err(Error::input(
                "the state has bodies already, and a second `Bodies` cannot add others: for bodies of several shapes, read a file whose \
                 array `body` numbers them, with one `Bodies` without `shape`",
            ));
        }
        let mut bodies = match &self.shape {
            Some(beads) => self.around_centers(beads, context, s)?,
            None => self.of_array(s)?,
        };
        if let Some(kt) = self.kt {
            let key = RandomKey::new(context.seed, context.component);
            for b in &mut bodies {
                let push = normal3::<f64>(key.single(0, b.center as u32, 2)).f64();
                let body: [f64; 3] = std::array::from_fn(|k| push[k] * (kt * b.shape.inertia[k]).sqrt());
                b.momentum = b.orientation.rotate(Vec3::from(body));
            }
        }
        for b in &bodies {
            let radius = b.shape.offsets.iter().map(|d| Vec3::from(*d).norm()).fold(0.0, f64::max);
            let half = 0.5 * s.box_length.into_iter().fold(f64::INFINITY, f64::min);
            if radius >= half {
                return Err(Error::input(format!(
                    "a bead is {radius} from the center of its body, which must be less than half the box length, {half}"
                )));
            }
        }
        self.warnings = points(&bodies).into_iter().collect();
        write(s, &bodies);
        Ok(())
    }
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

/// Returns a warning about bodies that do not rotate.
fn points(bodies: &[Body]) -> Option<String> {
    let mut all = bodies.iter().filter(|b| b.shape.inertia == [0.0; 3]);
    let first = all.next()?.center;
    let which = match all.count() {
        0 => format!("the body of the center {first} has"),
        more => format!("{} bodies, the first of the center {first}, have", more + 1),
    };
    Some(format!(
        "{which} no moments of inertia, because all mass is at one point: such a body moves as a point particle and does not rotate; \
         give it beads with mass at several places, or use single particles instead"
    ))
}

impl Bodies {
    /// Adds the beads around each particle of the type `center`.
    fn around_centers(
        &self,
        beads: &[Spanned<Bead>],
        context: &GeneratorContext,
        s: &mut Snapshot,
    ) -> Result<Vec<Body>> {
        if beads.is_empty() {
            return Err(Error::input("`shape` is empty"));
        }
        let places: Vec<[f64; 3]> = beads.iter().map(|b| b.value.at).collect();
        let masses: Vec<f64> = beads.iter().map(|b| b.value.mass).collect();
        let shape = Shape::new(&places, &masses).map_err(|e| Error::input(format!("`shape`: {e}")))?;
        let Some(kind) = s.types.iter().position(|t| *t == self.center) else {
            return Err(Error::input(format!("there are no particles of the type \"{}\"", self.center)));
        };
        let centers: Vec<usize> = (0..s.len()).filter(|i| s.type_id[*i] as usize == kind).collect();
        s.require((centers.len() * beads.len()) as f64).map_err(Error::input)?;
        if let Some(b) = beads.iter().find(|b| b.value.kind == self.center) {
            let message = format!("\"{}\" is the type of centers; beads need another one", self.center);
            return Err(InputError::at(b.at, message).into());
        }
        // velocities drawn before would have the temperature of other masses
        let differs = |c: &&usize| (s.mass[**c] - shape.mass).abs() > 1e-6 * shape.mass && s.velocity[**c] != [0.0; 3];
        if let Some(c) = centers.iter().find(differs) {
            return Err(Error::input(format!(
                "particle {c} has a velocity and the mass {}, and would get the mass {} of the body: place `Velocities` after \
                 `Bodies`",
                s.mass[*c], shape.mass
            )));
        }
        let kinds: Vec<u32> = beads.iter().map(|b| s.type_id(&b.value.kind)).collect();
        let key = RandomKey::new(context.seed, context.component);
        let mut bodies = vec![];
        for center in centers {
            let first = s.len();
            // the principal axes are turned within the frame of the shape
            let given = orientation_of(s, center).map(|q| q * shape.axes);
            for kind in &kinds {
                s.push(*kind, [0.0; 3]);
            }
            let normal = |draw: u32| normal3::<f64>(key.single(0, center as u32, draw));
            let (u, w) = (normal(0), normal(1).x);
            // four normal numbers have a uniform direction in four dimensions
            let orientation = given.unwrap_or(Quaternion::new(u.x, u.y, u.z, w).normalized());
            let momentum = momentum_of(s, center, orientation, shape.inertia);
            bodies.push(Body { center, first, shape: shape.clone(), orientation, momentum });
        }
        Ok(bodies)
    }

    /// Adds a center to each group of particles with the same number.
    fn of_array(&self, s: &mut Snapshot) -> Result<Vec<Body>> {
        let Some(Values::Int(numbers)) = s.arrays.get("body").map(|a| a.values.clone()) else {
            return Err(Error::input("particles have no array `body`; give `shape`, or add the array to the file"));
        };
        let kind = s.types.iter().position(|t| *t == self.center);
        let is_center = |tag: &usize| kind == Some(s.type_id[*tag] as usize);
        let members = || (0..s.len()).filter(|tag| numbers[*tag] >= 0);
        let mut centers = BTreeMap::new();
        for tag in members().filter(is_center) {
            if let Some(other) = centers.insert(numbers[tag], tag) {
                let message = format!("body {} has two centers, the particles {other} and {tag}", numbers[tag]);
                return Err(Error::input(message));
            }
        }
        let groups = groups(&numbers, members().filter(|tag| !is_center(tag)))?;
        if groups.is_empty() {
            return Err(Error::input("no particle belongs to a body: all numbers in the array `body` are negative"));
        }
        let mut bodies = vec![];
        for (number, (first, n)) in groups {
            bodies.push(match centers.remove(&number) {
                Some(center) => around(s, center, first, n)?,
                None => {
                    let kind = s.type_id(&self.center);
                    of_beads(s, kind, first, n)?
                }
            });
        }
        match centers.iter().next() {
            Some((number, tag)) => {
                Err(Error::input(format!("body {number} has a center, particle {tag}, and no beads")))
            }
            None => Ok(bodies),
        }
    }
}

/// Returns the first member of each body and their number, by the number of the body, in the order of the members.
fn groups(numbers: &[i32], members: impl Iterator<Item = usize>) -> Result<Vec<(i32, (usize, usize))>> {
    let mut seen = BTreeSet::new();
    let mut groups: Vec<(i32, (usize, usize))> = vec![];
    for tag in members {
        let number = numbers[tag];
        match groups.last_mut() {
            Some((last, (first, n))) if *first + *n == tag && *last == number => *n += 1,
            _ if !seen.insert(number) => {
                return Err(Error::input(format!(
                    "the particles of body {number} are not consecutive: particle {tag} is apart from the others"
                )));
            }
            _ => groups.push((number, (tag, 1))),
        }
    }
    Ok(groups)
}

/// Returns the values of a particle in an array of the state.
fn row<const N: usize>(s: &Snapshot, name: &str, tag: usize) -> Option<[f64; N]> {
    match s.arrays.get(name).map(|a| &a.values) {
        Some(Values::Real(v)) => v.as_chunks::<N>().0.get(tag).copied(),
        _ => None,
    }
}

/// Returns the orientation of a particle: its quaternion, or the shortest rotation to its axis.
fn orientation_of(s: &Snapshot, tag: usize) -> Option<Quaternion<f64>> {
    let quaternion = row(s, "quaternion", tag).map(|[x, y, z, w]: [f64; 4]| Quaternion::new(x, y, z, w).normalized());
    quaternion.or_else(|| row(s, "orientation", tag).map(|a: [f64; 3]| Quaternion::of_axis(Vec3::from(a))))
}

/// Returns the angular momentum of a particle, or L = R I Rᵀ ω of its angular velocity.
fn momentum_of(s: &Snapshot, tag: usize, orientation: Quaternion<f64>, inertia: [f64; 3]) -> Vec3<f64> {
    if let Some(momentum) = row::<3>(s, "angular_momentum", tag) {
        return Vec3::from(momentum);
    }
    let rate = orientation.rotate_back(Vec3::from(row::<3>(s, "rotation", tag).unwrap_or_default())).f64();
    orientation.rotate(Vec3::from(std::array::from_fn::<f64, 3, _>(|k| inertia[k] * rate[k])))
}

/// Returns the body of a center that the file has, with the beads first … first + n.
fn around(s: &Snapshot, center: usize, first: usize, n: usize) -> Result<Body> {
    let orientation = orientation_of(s, center).unwrap_or(Quaternion::new(0.0, 0.0, 0.0, 1.0));
    let inertia = row(s, "inert", center).unwrap_or_default();
    let momentum = momentum_of(s, center, orientation, inertia);
    let place = |tag| orientation.rotate_back(Vec3::from(nearest(s, center, tag))).f64();
    let offsets: Vec<[f64; 3]> = (first..first + n).map(place).collect();
    let mass = s.mass[center];
    if mass <= 0.0 || (inertia == [0.0; 3] && offsets.iter().flatten().any(|x| *x != 0.0)) {
        return Err(Error::input(format!(
            "particle {center}, the center of a body, has no mass or no moments of inertia"
        )));
    }
    let shape = Shape { mass, center: [0.0; 3], axes: orientation, inertia, offsets };
    Ok(Body { center, first, shape, orientation, momentum })
}

/// Adds the center of the beads first … first + n.
fn of_beads(s: &mut Snapshot, kind: u32, first: usize, n: usize) -> Result<Body> {
    let origin = s.position[first];
    let places = unwrapped(s, first, n)?;
    let masses = &s.mass[first..first + n];
    let shape = Shape::new(&places, masses).map_err(|e| Error::input(format!("the body of particle {first}: {e}")))?;
    let mut velocity = [0.0; 3];
    for (m, v) in masses.iter().zip(&s.velocity[first..first + n]) {
        velocity.iter_mut().zip(v).for_each(|(sum, v)| *sum += m * v / shape.mass);
    }
    let mut momentum = Vec3::new(0.0, 0.0, 0.0);
    for ((m, v), d) in masses.iter().zip(&s.velocity[first..first + n]).zip(&shape.offsets) {
        let relative: [f64; 3] = std::array::from_fn(|k| m * (v[k] - velocity[k]));
        momentum += shape.axes.rotate(Vec3::from(*d)).cross(Vec3::from(relative));
    }
    let mut position: [f64; 3] = std::array::from_fn(|k| origin[k] + shape.center[k]);
    let mut image = s.image[first];
    if !wrap(&mut position, &mut image, s.box_length, 1.0) {
        return Err(Error::input(format!("the body of particle {first} is larger than the box")));
    }
    let center = s.push(kind, position) as usize;
    (s.image[center], s.velocity[center]) = (image, velocity);
    let orientation = shape.axes;
    Ok(Body { center, first, shape, orientation, momentum })
}

/// Writes masses, arrays and the beads' places.
fn write(s: &mut Snapshot, bodies: &[Body]) {
    let n = s.len();
    for (name, array) in &mut s.arrays {
        let width = array.width as usize;
        match &mut array.values {
            Values::Int(v) => v.resize(n * width, if matches!(name.as_str(), "molecule" | "body") { -1 } else { 0 }),
            Values::Real(v) if name == "quaternion" => (v.len() / 4..n).for_each(|_| v.extend([0.0, 0.0, 0.0, 1.0])),
            Values::Real(v) => v.resize(n * width, if name == "diameter" { 1.0 } else { 0.0 }),
        }
    }
    let reals = |s: &mut Snapshot, name: &str, row: &[f64]| match s.arrays.remove(name).map(|a| a.values) {
        Some(Values::Real(v)) if v.len() == n * row.len() => v,
        _ => row.repeat(n),
    };
    let mut quaternion = reals(s, "quaternion", &[0.0, 0.0, 0.0, 1.0]);
    let mut inert = reals(s, "inert", &[0.0; 3]);
    let mut momentum = reals(s, "angular_momentum", &[0.0; 3]);
    let mut molecule = match s.arrays.remove("molecule").map(|a| a.values) {
        Some(Values::Int(v)) => v,
        _ => vec![-1; n],
    };
    let free = molecule.iter().max().map_or(0, |m| m + 1);
    let mut body = vec![-1; n];
    let (mut center, mut offset, mut members) = (vec![0; n], vec![0.0; 3 * n], vec![0; 2 * n]);
    for (number, b) in bodies.iter().enumerate() {
        let c = b.center;
        s.mass[c] = b.shape.mass;
        let q = b.orientation;
        quaternion[4 * c..4 * c + 4].copy_from_slice(&[q.x, q.y, q.z, q.w]);
        inert[3 * c..3 * c + 3].copy_from_slice(&b.shape.inertia);
        momentum[3 * c..3 * c + 3].copy_from_slice(&b.momentum.f64());
        members[2 * c..2 * c + 2].copy_from_slice(&[b.first as i32 - c as i32, b.shape.offsets.len() as i32]);
        (molecule[c], body[c]) = (free + number as i32, c as i32);
        for (tag, d) in (b.first..).zip(&b.shape.offsets) {
            s.mass[tag] = 0.0;
            center[tag] = c as i32 - tag as i32;
            (molecule[tag], body[tag]) = (free + number as i32, c as i32);
            offset[3 * tag..3 * tag + 3].copy_from_slice(d);
            let turned = q.rotate(Vec3::from(*d)).f64();
            s.position[tag] = std::array::from_fn(|k| s.position[c][k] + turned[k]);
            s.image[tag] = s.image[c];
            wrap(&mut s.position[tag], &mut s.image[tag], s.box_length, 1.0);
        }
    }
    let mut put = |name: &str, width, values| s.arrays.insert(name.into(), Array { width, values });
    put("quaternion", 4, Values::Real(quaternion));
    put("inert", 3, Values::Real(inert));
    put("angular_momentum", 3, Values::Real(momentum));
    put("molecule", 1, Values::Int(molecule));
    put("body", 1, Values::Int(body));
    put(CENTER, 1, Values::Int(center));
    put(OFFSET, 3, Values::Real(offset));
    put(MEMBERS, 2, Values::Int(members));
    s.arrays.remove("orientation");
    s.arrays.remove("rotation");
}
