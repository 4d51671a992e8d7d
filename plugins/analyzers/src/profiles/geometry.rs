//! Slabs and shells.

use galamost_plugin_api::params::{Fields, FromValue, Range, Value};
use galamost_plugin_api::prelude::*;
use std::f64::consts::PI;

/// How the box is cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Geometry {
    /// Slabs across an axis of the box.
    Slabs { axis: Axis },
    /// Shells around a point.
    Sphere { r_max: Option<f64> },
    /// Shells around an axis.
    Cylinder { axis: Axis, r_max: Option<f64> },
}

impl FromValue for Geometry {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let above = Range { above: 0.0, ..Range::ANY };
        let name = value.name();
        if !matches!(name, Some("Slabs" | "Sphere" | "Cylinder")) {
            errors.push(value.error(format!("expected {}", Self::describe())));
            return None;
        }
        let mut fields = Fields::new(value, errors)?;
        let axis = if name == Some("Sphere") { Some(Axis::Z) } else { fields.required("axis", Range::ANY) };
        let r_max = if name == Some("Slabs") { Some(None) } else { fields.required("r_max", above) };
        fields.finish();
        let (axis, r_max) = (axis?, r_max?);
        Some(match name {
            Some("Slabs") => Self::Slabs { axis },
            Some("Sphere") => Self::Sphere { r_max },
            _ => Self::Cylinder { axis, r_max },
        })
    }
    fn describe() -> String {
        "`Slabs(axis: Z)`, `Sphere(r_max: r)` or `Cylinder(axis: Z, r_max: r)`".into()
    }
}

impl Geometry {
    /// The axes along which the coordinate lies, and the largest radius that was asked for.
    fn parts(&self) -> ([bool; 3], Option<f64>) {
        match *self {
            Self::Slabs { axis } => (std::array::from_fn(|k| k == axis as usize), None),
            Self::Sphere { r_max } => ([true; 3], r_max),
            Self::Cylinder { axis, r_max } => (std::array::from_fn(|k| k != axis as usize), r_max),
        }
    }

    /// Whether the system has it.
    ///
    /// # Errors
    /// What it has not.
    pub fn check(&self, system: &SystemInfo) -> std::result::Result<(), String> {
        let d = system.dimensions as usize;
        if let Self::Slabs { axis } | Self::Cylinder { axis, .. } = self
            && *axis as usize >= d
            && !(matches!(self, Self::Cylinder { .. }) && d == 2)
        {
            return Err("the system has no such axis".into());
        }
        let (axes, r_max) = self.parts();
        let half = (0..d).filter(|k| axes[*k]).map(|k| 0.5 * system.box_length[k]).fold(f64::INFINITY, f64::min);
        match r_max {
            Some(r) if r > half => Err(format!("r_max {r} is more than half of a box length, {half}")),
            _ => Ok(()),
        }
    }

    /// The bins in a box of these lengths.
    pub fn bins(&self, length: [f64; 3], dimensions: u32, bins: usize) -> Bins {
        let d = dimensions as usize;
        let (axes, r_max) = self.parts();
        let half = (0..d).filter(|k| axes[*k]).map(|k| 0.5 * length[k]).fold(f64::INFINITY, f64::min);
        let slab = matches!(self, Self::Slabs { .. });
        let along = (0..3).find(|k| axes[*k]).unwrap_or(0);
        // what the axes that the coordinate does not know add to a volume
        let rest = (0..d).filter(|k| !axes[*k]).map(|k| length[k]).product();
        let round = (0..d).filter(|k| axes[*k]).count();
        let (low, high) = if slab { (-0.5 * length[along], 0.5 * length[along]) } else { (0.0, r_max.unwrap_or(half)) };
        Bins { axes, slab, along, low, width: (high - low) / bins as f64, bins, rest, round, length }
    }
}

/// Bins in one box.
#[derive(Clone, Debug)]
pub struct Bins {
    axes: [bool; 3],
    slab: bool,
    along: usize,
    low: f64,
    width: f64,
    bins: usize,
    rest: f64,
    /// Axes of the radius: 2 for a circle, 3 for a sphere.
    round: usize,
    length: [f64; 3],
}

impl Bins {
    /// The bin of a place, given from the origin of the profile by nearest images.
    pub fn of(&self, place: [f64; 3]) -> Option<usize> {
        let near: [f64; 3] = std::array::from_fn(|k| match self.length[k] {
            l if l > 0.0 => place[k] - l * (place[k] / l).round(),
            _ => place[k],
        });
        let coordinate = if self.slab {
            near[self.along]
        } else {
            (0..3).filter(|k| self.axes[*k]).map(|k| near[k] * near[k]).sum::<f64>().sqrt()
        };
        let bin = (coordinate - self.low) / self.width;
        // a slab's upper face is the lower one of the next image
        if self.slab {
            Some((bin.max(0.0) as usize) % self.bins)
        } else {
            (bin < self.bins as f64).then_some(bin as usize)
        }
    }

    /// Middle of a bin.
    pub fn middle(&self, bin: usize) -> f64 {
        self.low + (bin as f64 + 0.5) * self.width
    }

    /// Volume of a bin; an area in two dimensions.
    pub fn volume(&self, bin: usize) -> f64 {
        let (inner, outer) = (bin as f64 * self.width, (bin + 1) as f64 * self.width);
        self.rest
            * match (self.slab, self.round) {
                (true, _) | (false, 1) => self.width,
                (false, 2) => PI * (outer * outer - inner * inner),
                (false, _) => 4.0 / 3.0 * PI * (outer.powi(3) - inner.powi(3)),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_and_volumes() {
        let length = [8.0, 10.0, 12.0];
        let slabs = Geometry::Slabs { axis: Axis::Y }.bins(length, 3, 5);
        assert_eq!(
            [slabs.of([0.0, -5.0, 0.0]), slabs.of([0.0, 4.9, 0.0]), slabs.of([9.0, 5.0, 0.0])],
            [Some(0), Some(4), Some(0)]
        );
        assert!((slabs.volume(2) - 192.0).abs() < 1e-12 && (slabs.middle(2)).abs() < 1e-12);
        let sphere = Geometry::Sphere { r_max: None }.bins(length, 3, 4);
        assert_eq!(
            [sphere.of([0.0, 0.0, 0.5]), sphere.of([7.5, 0.0, 0.0]), sphere.of([4.0, 0.0, 0.1])],
            [Some(0), Some(0), None]
        );
        let all: f64 = (0..4).map(|k| sphere.volume(k)).sum();
        assert!((all - 4.0 / 3.0 * PI * 64.0).abs() < 1e-10);
        let cylinder = Geometry::Cylinder { axis: Axis::X, r_max: Some(3.0) }.bins(length, 3, 3);
        assert_eq!(cylinder.of([3.0, 0.0, 13.5]), Some(1));
        assert!((cylinder.volume(0) - 8.0 * PI).abs() < 1e-12);
        // in two dimensions a sphere is a circle, and so is a cylinder along z
        let flat = [8.0, 10.0, 0.0];
        for g in [Geometry::Sphere { r_max: None }, Geometry::Cylinder { axis: Axis::Z, r_max: None }] {
            let b = g.bins(flat, 2, 4);
            assert!((b.volume(1) - 3.0 * PI).abs() < 1e-12, "{g:?} {}", b.volume(1));
            assert_eq!(b.of([0.0, 1.5, 0.0]), Some(1));
        }
    }
}
