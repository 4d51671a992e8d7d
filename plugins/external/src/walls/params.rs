//! What all walls with a potential have in common: parameters, and the row of the function.

use super::shape::{Numbers, Shape};
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FromValue, Params};
use galamost_plugin_api::prelude::*;

/// A wall and the potential of one type of particles.
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
    /// Prefactor of the repulsive term.
    pub repulsion: real,
    /// Prefactor of the attractive term.
    pub attraction: real,
    /// Where the potential ends.
    pub r_cut: real,
    /// What is subtracted from the energy.
    pub shift: real,
}

impl WallRow<f64> {
    pub fn new(w: &Numbers, [repulsion, attraction, r_cut, shift]: [f64; 4]) -> Self {
        let ([px, py, pz], [ax, ay, az]) = (w.point, w.axis);
        let (radius, side, plane) = (w.radius, w.side, w.plane);
        Self { px, py, pz, ax, ay, az, radius, side, plane, repulsion, attraction, r_cut, shift }
    }
}

/// What the user writes for one type of particles.
pub trait Entry: Params + FromValue {
    /// Prefactors of repulsion and attraction, cutoff and shift.
    fn numbers(&self) -> [f64; 4];
    /// One for tests; `random` gives numbers in 0 … 1.
    fn sample(random: &mut dyn FnMut() -> f64) -> Self;
}

/// Rows of all types.
///
/// # Errors
/// A wall that does not fit, types without an entry.
pub fn rows<E: Entry>(
    wall: &Spanned<Shape>,
    types: &TypeMap<Spanned<E>>,
    group: &Group,
    system: &SystemInfo,
    needs: &mut Needs,
) -> Result<Vec<WallRow<f64>>> {
    let mut errors = Errors::default();
    let entries = types.bind("particle", &system.types, &mut errors);
    let numbers = wall.value.numbers(system).map_err(|message| errors.push(InputError::at(wall.at, message))).ok();
    let (entries, numbers) = errors.into_result(entries.zip(numbers))?;
    needs.group = group.need(system)?;
    needs.clearance = wall.value.clearance(system);
    needs.notes.extend(wall.value.note());
    needs.faults = vec!["the particle is behind the wall, or too close to it: check where it starts, and dt".into()];
    Ok(entries.into_iter().map(|e| WallRow::new(&numbers, e.value.numbers())).collect())
}

/// A row for tests in a box of 10: any shape.
pub fn sample<E: Entry>(random: &mut dyn FnMut() -> f64) -> WallRow<f64> {
    let center = std::array::from_fn(|_| random() - 0.5);
    let side = if random() < 0.5 { super::shape::Side::Inside } else { super::shape::Side::Outside };
    let shape = match (3.0 * random()) as u32 {
        0 => Shape::Plane { point: [0.0, 0.0, -4.8], normal: [random() - 0.5, random() - 0.5, 4.0] },
        1 => Shape::Sphere { center, radius: 1.0 + 3.0 * random(), side },
        _ => Shape::Cylinder { point: center, axis: Axis::Y, radius: 1.0 + 3.0 * random(), side },
    };
    let system = SystemInfo { dimensions: 3, box_length: [10.0; 3], ..SystemInfo::default() };
    let numbers = shape.numbers(&system).unwrap_or_default();
    WallRow::new(&numbers, E::sample(random).numbers())
}

/// The parameters of a wall whose entries by type are of this type.
macro_rules! wall_params {
    ($name:ident, $entry:ident) => {
        /// Parameters of the whole component.
        #[derive(Clone, Debug, Params)]
        pub struct $name {
            /// The wall.
            wall: Spanned<$crate::walls::shape::Shape>,
            /// Parameters of each particle type.
            types: TypeMap<Spanned<$entry>>,
            /// The particles it acts on.
            #[param(default = Group::All)]
            group: Group,
            /// The wall's force counts in the virial.
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

/// Where a particle is before the wall of a row: distance and normal.
#[device_fn]
pub fn before(position: Vec3<real>, length: Vec3<real>, p: &WallRow<real>) -> (real, Vec3<real>) {
    let point = Vec3::new(p.px, p.py, p.pz);
    let axis = Vec3::new(p.ax, p.ay, p.az);
    super::shape::distance(position, length, point, axis, p.radius, p.side, p.plane)
}
