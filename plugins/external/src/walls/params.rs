//! Parameters and rows shared by all wall potentials.

use super::shape::{Shape, WallGeometry};
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FromValue, Params};
use galamost_plugin_api::prelude::*;

/// A wall and the potential coefficients of one particle type.
#[derive(Debug, PairParams)]
pub struct WallRow<real> {
    pub px: real,
    pub py: real,
    pub pz: real,
    pub ax: real,
    pub ay: real,
    pub az: real,
    pub radius: real,
    pub side: real,
    pub plane: real,
    /// Coefficient of the repulsive term.
    pub repulsion: real,
    /// Coefficient of the attractive term.
    pub attraction: real,
    /// Cutoff distance.
    pub r_cut: real,
    /// Energy shift.
    pub shift: real,
}

impl WallRow<f64> {
    /// Builds a row from the geometry and (repulsion, attraction, cutoff, shift).
    pub fn new(w: &WallGeometry, [repulsion, attraction, r_cut, shift]: [f64; 4]) -> Self {
        let ([px, py, pz], [ax, ay, az]) = (w.point, w.axis);
        let (radius, side, plane) = (w.radius, w.side, w.plane);
        Self { px, py, pz, ax, ay, az, radius, side, plane, repulsion, attraction, r_cut, shift }
    }
}

/// User parameters of one particle type.
pub trait WallEntry: Params + FromValue {
    /// Returns the coefficients of repulsion and attraction, the cutoff and the energy shift.
    fn coefficients(&self) -> [f64; 4];
    /// Returns an entry for tests; `random` gives numbers in 0 … 1.
    fn sample(random: &mut dyn FnMut() -> f64) -> Self;
}

/// Returns the rows of all particle types.
///
/// # Errors
/// Returns an error if the wall does not fit into the box or a particle type has no entry.
pub fn rows<E: WallEntry>(
    wall: &Spanned<Shape>,
    types: &TypeMap<Spanned<E>>,
    group: &Group,
    system: &SystemInfo,
    needs: &mut Needs,
) -> Result<Vec<WallRow<f64>>> {
    let mut errors = Errors::default();
    let entries = types.bind("particle", &system.types, &mut errors);
    let geometry = wall.value.geometry(system).map_err(|message| errors.push(InputError::at(wall.at, message))).ok();
    let (entries, geometry) = errors.into_result(entries.zip(geometry))?;
    needs.group = group.need(system)?;
    wall.value.need_box(system, needs);
    needs.notes.extend(wall.value.note());
    needs.faults =
        vec!["the particle is behind the wall, or too close to it: check its initial position and dt".into()];
    Ok(entries.into_iter().map(|e| WallRow::new(&geometry, e.value.coefficients())).collect())
}

/// Returns a row for tests: a random shape in a box of length 10.
pub fn sample<E: WallEntry>(random: &mut dyn FnMut() -> f64) -> WallRow<f64> {
    let center = std::array::from_fn(|_| random() - 0.5);
    let side = if random() < 0.5 { super::shape::Side::Inside } else { super::shape::Side::Outside };
    let shape = match (3.0 * random()) as u32 {
        0 => Shape::Plane { point: [0.0, 0.0, -4.8], normal: [random() - 0.5, random() - 0.5, 4.0] },
        1 => Shape::Sphere { center, radius: 1.0 + 3.0 * random(), side },
        _ => Shape::Cylinder { point: center, axis: Axis::Y, radius: 1.0 + 3.0 * random(), side },
    };
    let system = SystemInfo { dimensions: 3, box_length: [10.0; 3], ..SystemInfo::default() };
    let geometry = shape.geometry(&system).unwrap_or_default();
    WallRow::new(&geometry, E::sample(random).coefficients())
}

/// Defines the settings `$name` of a wall potential with one `$entry` per particle type.
macro_rules! wall_params {
    ($name:ident, $entry:ident) => {
        /// Settings of the component.
        #[derive(Clone, Debug, Params)]
        pub struct $name {
            /// Shape and position of the wall.
            wall: Spanned<$crate::walls::shape::Shape>,
            /// Parameters of each particle type.
            types: TypeMap<Spanned<$entry>>,
            /// Group of particles that the force acts on.
            #[param(default = Group::All)]
            group: Group,
            /// Whether the wall force contributes to the virial.
            #[param(default = true)]
            virial: bool,
        }

        impl ExternalParams for $name {
            type Row = $crate::walls::params::WallRow<f64>;
            fn rows(&self, system: &SystemInfo, needs: &mut Needs) -> Result<Vec<Self::Row>> {
                $crate::walls::params::rows(&self.wall, &self.types, &self.group, system, needs)
            }
            fn virial(&self) -> bool {
                self.virial
            }
            fn sample(random: &mut dyn FnMut() -> f64) -> Option<Self::Row> {
                Some($crate::walls::params::sample::<$entry>(random))
            }
        }
    };
}
pub(crate) use wall_params;

/// Returns the distance of a particle from the wall of a row, and the wall normal.
#[device_fn]
pub fn wall_distance(position: Vec3<real>, length: Vec3<real>, p: &WallRow<real>) -> (real, Vec3<real>) {
    let point = Vec3::new(p.px, p.py, p.pz);
    let axis = Vec3::new(p.ax, p.ay, p.az);
    super::shape::distance(position, length, point, axis, p.radius, p.side, p.plane)
}
