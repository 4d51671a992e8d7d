//! Shapes of walls and the distance of a particle from them.

use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{Fields, FromValue, Range, Value};
use galamost_plugin_api::prelude::*;

/// Side of a round wall on which particles are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Inside,
    Outside,
}

impl FromValue for Side {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Inside" => Some(Self::Inside),
            "Outside" => Some(Self::Outside),
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Inside` or `Outside`".into()
    }
}

/// Shape and position of a wall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Particles are on the side to which the normal points.
    Plane {
        point: [f64; 3],
        normal: [f64; 3],
    },
    Sphere {
        center: [f64; 3],
        radius: f64,
        side: Side,
    },
    Cylinder {
        point: [f64; 3],
        axis: Axis,
        radius: f64,
        side: Side,
    },
}

/// Input of [`distance`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WallGeometry {
    pub point: [f64; 3],
    /// Normal of a plane or axis of a cylinder; 0 for a sphere.
    pub axis: [f64; 3],
    pub radius: f64,
    /// 1 if particles are outside, −1 if they are inside.
    pub side: f64,
    /// 1 for a plane, else 0.
    pub plane: f64,
}

impl FromValue for Shape {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let above = Range { above: 0.0, ..Range::ANY };
        let name = value.name();
        if !matches!(name, Some("Plane" | "Sphere" | "Cylinder")) {
            errors.push(value.error(format!("expected {}", Self::describe())));
            return None;
        }
        let mut fields = Fields::new(value, errors)?;
        let shape = match name {
            Some("Plane") => {
                let (point, normal) = (fields.required("point", Range::ANY), fields.required("normal", Range::ANY));
                (|| Some(Self::Plane { point: point?, normal: normal? }))()
            }
            Some("Sphere") => {
                let (center, radius) = (fields.required("center", Range::ANY), fields.required("radius", above));
                let side = fields.required("side", Range::ANY);
                (|| Some(Self::Sphere { center: center?, radius: radius?, side: side? }))()
            }
            _ => {
                let (point, axis) = (fields.required("point", Range::ANY), fields.required("axis", Range::ANY));
                let (radius, side) = (fields.required("radius", above), fields.required("side", Range::ANY));
                (|| Some(Self::Cylinder { point: point?, axis: axis?, radius: radius?, side: side? }))()
            }
        };
        fields.finish();
        shape
    }
    fn describe() -> String {
        "`Plane(point: [x, y, z], normal: [x, y, z])`, `Sphere(center: [x, y, z], radius: r, side: Inside)` or \
         `Cylinder(point: [x, y, z], axis: Z, radius: r, side: Outside)`"
            .into()
    }
}

/// Returns the box axis that a vector is parallel to, and its sign.
fn box_axis(v: [f64; 3]) -> Option<(usize, f64)> {
    let k = (0..3).find(|k| v[*k] != 0.0)?;
    (0..3).all(|j| j == k || v[j] == 0.0).then_some((k, v[k].signum()))
}

impl Shape {
    /// Returns the geometry of the wall.
    ///
    /// # Errors
    /// Returns an error message if the wall does not fit into the box or its normal is invalid.
    pub fn geometry(&self, system: &SystemInfo) -> std::result::Result<WallGeometry, String> {
        let half = system.box_length.map(|l| 0.5 * l);
        let dimensions = system.dimensions as usize;
        let side_of = |side: Side| if side == Side::Inside { -1.0 } else { 1.0 };
        // round walls must lie inside the box along all axes except the free axis of a cylinder
        let fits = |center: [f64; 3], radius: f64, free: Option<usize>| {
            let out = (0..dimensions).filter(|k| Some(*k) != free).find(|k| center[*k].abs() + radius > half[*k]);
            match out {
                Some(k) => Err(format!(
                    "the wall reaches beyond the box, whose face along {} is at {}",
                    ["x", "y", "z"][k],
                    half[k]
                )),
                None => Ok(()),
            }
        };
        // a wall that is centered beside the plane would push particles out of it
        let flat = |what: &str, z: f64| {
            if dimensions == 2 && z != 0.0 {
                return Err(format!("in two dimensions the z component of the {what} must be 0"));
            }
            Ok(())
        };
        match *self {
            Self::Plane { point, normal } => {
                let norm = normal.iter().map(|x| x * x).sum::<f64>().sqrt();
                if norm == 0.0 {
                    return Err("the normal of a plane must not be 0".into());
                }
                flat("normal of a plane", normal[2])?;
                if let Some((k, _)) = box_axis(normal)
                    && point[k].abs() >= half[k]
                {
                    return Err(format!("the plane must lie inside the box, |{}| < {}", ["x", "y", "z"][k], half[k]));
                }
                Ok(WallGeometry { point, axis: normal.map(|x| x / norm), plane: 1.0, ..WallGeometry::default() })
            }
            Self::Sphere { center, radius, side } => {
                flat("center of a sphere", center[2])?;
                fits(center, radius, None)?;
                Ok(WallGeometry { point: center, radius, side: side_of(side), ..WallGeometry::default() })
            }
            Self::Cylinder { point, axis, radius, side } => {
                if axis != Axis::Z {
                    flat("point of a cylinder along x or y", point[2])?;
                }
                fits(point, radius, Some(axis as usize))?;
                Ok(WallGeometry { point, axis: axis.unit(), radius, side: side_of(side), plane: 0.0 })
            }
        }
    }

    /// Returns the distance between a plane parallel to a box face and the face behind it.
    fn clearance(&self, system: &SystemInfo) -> Option<f64> {
        let Self::Plane { point, normal } = self else { return None };
        let (k, sign) = box_axis(*normal)?;
        Some(0.5 * system.box_length[k] + sign * point[k])
    }

    /// Sets what the wall needs of the box: the shortest lengths in which it fits, and images without displacement along x.
    pub fn need_box(&self, system: &SystemInfo, needs: &mut Needs) {
        needs.clearance = self.clearance(system);
        let lengths = |center: [f64; 3], radius: f64, free: Option<usize>| {
            let along = |k: usize| if Some(k) == free { 0.0 } else { 2.0 * (center[k].abs() + radius) };
            std::array::from_fn(|k| if k < system.dimensions as usize { along(k) } else { 0.0 })
        };
        // displaced images are those above and below along y
        (needs.least_box, needs.plain_images) = match *self {
            Self::Plane { point, normal } => {
                let axis = box_axis(normal).map(|(k, _)| k);
                let length = |k: usize| if Some(k) == axis { 2.0 * point[k].abs() } else { 0.0 };
                (std::array::from_fn(length), normal[0] != 0.0)
            }
            Self::Sphere { center, radius, .. } => (lengths(center, radius, None), center[1] != 0.0),
            Self::Cylinder { point, axis, radius, .. } => {
                let images = match axis {
                    Axis::X => false,
                    Axis::Y => true,
                    Axis::Z => point[1] != 0.0,
                };
                (lengths(point, radius, Some(axis as usize)), images)
            }
        };
    }

    /// Returns the axes along which the normal of the wall has a component.
    pub fn normal_axes(&self) -> [bool; 3] {
        match *self {
            Self::Plane { normal, .. } => normal.map(|n| n != 0.0),
            Self::Sphere { .. } => [true; 3],
            Self::Cylinder { axis, .. } => std::array::from_fn(|k| k != axis as usize),
        }
    }

    /// Returns a warning for the user, if there is one.
    pub fn note(&self) -> Option<String> {
        let Self::Plane { normal, .. } = self else { return None };
        box_axis(*normal).is_none().then(|| {
            "the plane is tilted and ends at the box faces: other walls must keep particles from crossing these faces"
                .into()
        })
    }
}

/// Returns the nearest-image coordinate; unchanged if the length is 0.
#[device_fn]
fn nearest(x: real, length: real) -> real {
    if length > 0.0 { x - length * (x / length).round() } else { x }
}

/// Returns the distance of a particle in front of a wall (negative behind it) and the wall normal at the particle.
#[device_fn]
pub fn distance(
    position: Vec3<real>,
    length: Vec3<real>,
    point: Vec3<real>,
    axis: Vec3<real>,
    radius: real,
    side: real,
    plane: real,
) -> (real, Vec3<real>) {
    let from = position - point;
    let near = Vec3::new(nearest(from.x, length.x), nearest(from.y, length.y), nearest(from.z, length.z));
    let across = near - axis * near.dot(axis);
    let rho = across.norm();
    // at the center the direction is undefined and no force acts
    let outward = across * (side / rho.max(1e-20));
    let flat = plane > 0.0;
    let d = if flat { from.dot(axis) } else { side * (rho - radius) };
    let normal = if flat { axis } else { outward };
    (d, normal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(shape: Shape, r: [f64; 3]) -> (f64, [f64; 3]) {
        let system = SystemInfo { dimensions: 3, box_length: [10.0, 10.0, 12.0], ..SystemInfo::default() };
        let w = shape.geometry(&system).expect("a wall");
        let v = Vec3::<f64>::from;
        let (d, n) = distance(v(r), v(system.box_length), v(w.point), v(w.axis), w.radius, w.side, w.plane);
        (d, n.f64())
    }

    #[test]
    fn distances_and_normals() {
        let plane = Shape::Plane { point: [1.0, 2.0, -4.0], normal: [0.0, 0.0, 2.0] };
        assert_eq!(to(plane, [3.0, -4.0, 5.5]), (9.5, [0.0, 0.0, 1.0]));
        assert_eq!(to(plane, [3.0, -4.0, -4.5]).0, -0.5);
        let center = [1.0, 0.0, 0.0];
        let sphere = |side| Shape::Sphere { center, radius: 3.0, side };
        assert_eq!(to(sphere(Side::Inside), [1.0, 2.0, 0.0]), (1.0, [0.0, -1.0, 0.0]));
        assert_eq!(to(sphere(Side::Outside), [1.0, 0.0, -4.5]), (1.5, [0.0, 0.0, -1.0]));
        // the nearest image for a particle outside
        assert_eq!(to(sphere(Side::Outside), [-4.5, 0.0, 0.0]).0, 1.5);
        assert_eq!(to(sphere(Side::Inside), center), (3.0, [0.0; 3]));
        let cylinder = Shape::Cylinder { point: [0.0; 3], axis: Axis::Y, radius: 2.0, side: Side::Inside };
        assert_eq!(to(cylinder, [0.0, 4.0, 1.5]), (0.5, [0.0, 0.0, -1.0]));
    }

    /// A wall fits into boxes of at least the length that it needs, and no other.
    #[test]
    fn walls_need_a_box() {
        let walls = [
            (Shape::Plane { point: [1.0, 2.0, -4.0], normal: [0.0, 0.0, 2.0] }, [0.0, 0.0, 8.0]),
            (Shape::Plane { point: [1.0, 2.0, -4.0], normal: [0.0, 1.0, 2.0] }, [0.0; 3]),
            (Shape::Sphere { center: [1.0, 0.0, -2.0], radius: 2.0, side: Side::Outside }, [6.0, 4.0, 8.0]),
            (Shape::Cylinder { point: [0.5; 3], axis: Axis::Y, radius: 2.0, side: Side::Inside }, [5.0, 0.0, 5.0]),
        ];
        for (shape, least) in walls {
            let mut needs = Needs::default();
            let system = |box_length| SystemInfo { dimensions: 3, box_length, ..SystemInfo::default() };
            shape.need_box(&system([10.0; 3]), &mut needs);
            assert_eq!(needs.least_box, least, "{shape:?}");
            assert!(shape.geometry(&system(least.map(|l| l + 0.01))).is_ok(), "{shape:?}");
            for k in (0..3).filter(|k| least[*k] > 0.0) {
                let shorter = std::array::from_fn(|j| if j == k { least[j] - 0.01 } else { 10.0 });
                assert!(shape.geometry(&system(shorter)).is_err(), "{shape:?} {k}");
            }
        }
    }

    #[test]
    fn normals_have_components_along_axes() {
        let plane = |normal| Shape::Plane { point: [0.0; 3], normal };
        assert_eq!(plane([0.0, 0.0, -2.0]).normal_axes(), [false, false, true]);
        assert_eq!(plane([1.0, 0.0, 1.0]).normal_axes(), [true, false, true]);
        let side = Side::Inside;
        assert_eq!(Shape::Sphere { center: [0.0; 3], radius: 1.0, side }.normal_axes(), [true; 3]);
        let cylinder = Shape::Cylinder { point: [0.0; 3], axis: Axis::Y, radius: 1.0, side };
        assert_eq!(cylinder.normal_axes(), [true, false, true]);
    }

    /// A mirrored particle has the same distance from the mirrored wall and the mirrored normal.
    #[test]
    fn mirrored_walls() {
        let mirror = |r: [f64; 3]| [r[0], r[1], -r[2]];
        let inside = Side::Inside;
        let pairs = [
            (
                Shape::Plane { point: [0.0, 0.0, -4.0], normal: [0.3, 0.0, 1.0] },
                Shape::Plane { point: [0.0, 0.0, 4.0], normal: [0.3, 0.0, -1.0] },
            ),
            (
                Shape::Sphere { center: [1.0, 1.0, 2.0], radius: 3.0, side: inside },
                Shape::Sphere { center: [1.0, 1.0, -2.0], radius: 3.0, side: inside },
            ),
            (
                Shape::Cylinder { point: [1.0, 1.0, 2.0], axis: Axis::X, radius: 3.0, side: inside },
                Shape::Cylinder { point: [1.0, 1.0, -2.0], axis: Axis::X, radius: 3.0, side: inside },
            ),
        ];
        for (a, b) in pairs {
            for r in [[0.5, -1.0, 3.0], [2.0, 0.3, -1.1], [-0.2, 1.7, 0.4]] {
                let ((d, n), (e, m)) = (to(a, r), to(b, mirror(r)));
                assert_eq!((d, mirror(n)), (e, m), "{a:?} {r:?}");
            }
        }
    }
}
