//! Slabs and shells.

use galamost_plugin_api::params::{Fields, FromValue, Range, Value};
use galamost_plugin_api::prelude::*;
use std::f64::consts::PI;

/// How the box is divided into bins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Geometry {
    /// Slabs perpendicular to an axis.
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
    /// Returns the axes that define the coordinate, and `r_max`.
    fn parts(&self) -> ([bool; 3], Option<f64>) {
        match *self {
            Self::Slabs { axis } => (std::array::from_fn(|k| k == axis as usize), None),
            Self::Sphere { r_max } => ([true; 3], r_max),
            Self::Cylinder { axis, r_max } => (std::array::from_fn(|k| k != axis as usize), r_max),
        }
    }

    /// Returns whether particles are placed by their images along y: their coordinates and velocities differ from those in the
    /// box if it is sheared. `centered` says that the profile follows a center.
    pub fn crosses_y(&self, origin: [f64; 3], centered: bool) -> bool {
        self.parts().0[1] && (centered || origin[1] != 0.0)
    }

    /// Checks the geometry against the system.
    ///
    /// # Errors
    /// Returns a message if the system lacks the axis or `r_max` is too large.
    pub fn check(&self, system: &SystemInfo) -> std::result::Result<(), String> {
        let d = system.dimensions as usize;
        if let Self::Slabs { axis } | Self::Cylinder { axis, .. } = self
            && *axis as usize >= d
            && !(matches!(self, Self::Cylinder { .. }) && d == 2)
        {
            return Err("the axis does not exist in a two-dimensional system".into());
        }
        self.check_box(system.box_length, system.dimensions)
    }

    /// Checks the geometry against a box.
    ///
    /// # Errors
    /// Returns a message if `r_max` is too large.
    pub fn check_box(&self, length: [f64; 3], dimensions: u32) -> std::result::Result<(), String> {
        let (axes, r_max) = self.parts();
        let half = shortest_half(axes, length, dimensions);
        match r_max {
            Some(r) if r > half => Err(format!("`r_max` {r} exceeds half of a box length, {half}")),
            _ => Ok(()),
        }
    }

    /// Returns the bins for a box of the given lengths.
    pub fn bins(&self, length: [f64; 3], dimensions: u32, bins: usize) -> Bins {
        let d = dimensions as usize;
        let (axes, r_max) = self.parts();
        let half = shortest_half(axes, length, dimensions);
        let slab = matches!(self, Self::Slabs { .. });
        let along = (0..3).find(|k| axes[*k]).unwrap_or(0);
        // extent of a bin along the axes that do not define the coordinate
        let rest = (0..d).filter(|k| !axes[*k]).map(|k| length[k]).product();
        let round = (0..d).filter(|k| axes[*k]).count();
        let (low, high) = if slab { (-0.5 * length[along], 0.5 * length[along]) } else { (0.0, r_max.unwrap_or(half)) };
        Bins { axes, slab, along, low, width: (high - low) / bins as f64, bins, rest, round, length }
    }
}

/// Returns half of the shortest length of the box along these axes.
fn shortest_half(axes: [bool; 3], length: [f64; 3], dimensions: u32) -> f64 {
    (0..dimensions as usize).filter(|k| axes[*k]).map(|k| 0.5 * length[k]).fold(f64::INFINITY, f64::min)
}

/// Bins for one box.
#[derive(Clone, Debug)]
pub struct Bins {
    axes: [bool; 3],
    slab: bool,
    along: usize,
    low: f64,
    width: f64,
    bins: usize,
    rest: f64,
    /// Number of axes that define the radius: 2 for a circle, 3 for a sphere.
    round: usize,
    length: [f64; 3],
}

impl Bins {
    /// Returns the bin of a position relative to the profile's origin (minimum image).
    pub fn of(&self, position: [f64; 3]) -> Option<usize> {
        let near: [f64; 3] = std::array::from_fn(|k| match self.length[k] {
            l if l > 0.0 => position[k] - l * (position[k] / l).round(),
            _ => position[k],
        });
        let coordinate = if self.slab {
            near[self.along]
        } else {
            (0..3).filter(|k| self.axes[*k]).map(|k| near[k] * near[k]).sum::<f64>().sqrt()
        };
        let bin = (coordinate - self.low) / self.width;
        // the upper face of the box is the lower face of the next image
        if self.slab {
            Some((bin.max(0.0) as usize) % self.bins)
        } else {
            (bin < self.bins as f64).then_some(bin as usize)
        }
    }

    /// Returns the center of a bin.
    pub fn middle(&self, bin: usize) -> f64 {
        self.low + (bin as f64 + 0.5) * self.width
    }

    /// Returns the volume of a bin (area in two dimensions).
    pub fn volume(&self, bin: usize) -> f64 {
        let (inner, outer) = (bin as f64 * self.width, (bin + 1) as f64 * self.width);
        self.rest
            * match (self.slab, self.round) {
                (true, _) => self.width,
                // in two dimensions, a shell around X or Y is two strips
                (false, 1) => 2.0 * self.width,
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
        // in two dimensions, a sphere and a cylinder along z are circles
        let flat = [8.0, 10.0, 0.0];
        for g in [Geometry::Sphere { r_max: None }, Geometry::Cylinder { axis: Axis::Z, r_max: None }] {
            let b = g.bins(flat, 2, 4);
            assert!((b.volume(1) - 3.0 * PI).abs() < 1e-12, "{g:?} {}", b.volume(1));
            assert_eq!(b.of([0.0, 1.5, 0.0]), Some(1));
        }
        // one along x is two strips, which fill the box together
        let strips = Geometry::Cylinder { axis: Axis::X, r_max: None }.bins(flat, 2, 5);
        assert_eq!([strips.of([3.0, 1.5, 0.0]), strips.of([3.0, -1.5, 0.0])], [Some(1); 2]);
        let all: f64 = (0..5).map(|k| strips.volume(k)).sum();
        assert!((all - 80.0).abs() < 1e-12, "{all}");
    }
}
