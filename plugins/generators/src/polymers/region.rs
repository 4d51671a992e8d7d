//! Regions of the box.

use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{Fields, FromValue, Range, Value};
use galamost_plugin_api::prelude::*;
use std::f64::consts::PI;

/// A region of the box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Region {
    /// The whole box.
    All,
    /// A cuboid.
    Box { min: [f64; 3], max: [f64; 3] },
    /// A slab perpendicular to an axis.
    Slab { axis: Axis, min: f64, max: f64 },
    /// A sphere or a spherical shell.
    Sphere { center: [f64; 3], inner: f64, radius: f64 },
    /// A cylinder or a cylindrical shell, along the whole box.
    Cylinder { axis: Axis, center: [f64; 3], inner: f64, radius: f64 },
    /// Everything outside a sphere.
    Outside { center: [f64; 3], radius: f64 },
}

/// Values above 0.
pub const POSITIVE: Range = Range { above: 0.0, ..Range::ANY };
/// Rounding of limits that are meant to be the faces of the box, relative to the box length.
const ROUNDING: f64 = 1e-6;
/// Values of at least 0.
const NONNEGATIVE: Range = Range { at_least: 0.0, ..Range::ANY };

impl FromValue for Region {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let Some(name @ ("All" | "Box" | "Slab" | "Sphere" | "Cylinder" | "Outside")) = value.name() else {
            errors.push(value.error(format!("expected {}", Self::describe())));
            return None;
        };
        if name == "All" {
            return Some(Self::All);
        }
        let mut f = Fields::new(value, errors)?;
        let region = match name {
            "Box" => {
                let (min, max) = (f.required("min", Range::ANY), f.required("max", Range::ANY));
                min.zip(max).map(|(min, max)| Self::Box { min, max })
            }
            "Slab" => {
                let axis = f.required("axis", Range::ANY);
                let (min, max) = (f.required("min", Range::ANY), f.required("max", Range::ANY));
                axis.zip(min).zip(max).map(|((axis, min), max)| Self::Slab { axis, min, max })
            }
            "Outside" => {
                let (center, radius) = (f.or("center", Range::ANY, || [0.0; 3]), f.required("radius", POSITIVE));
                center.zip(radius).map(|(center, radius)| Self::Outside { center, radius })
            }
            _ => {
                let axis = if name == "Cylinder" { f.required("axis", Range::ANY) } else { Some(Axis::Z) };
                let (center, radius) = (f.or("center", Range::ANY, || [0.0; 3]), f.required("radius", POSITIVE));
                let inner = f.or("inner", NONNEGATIVE, || 0.0);
                axis.zip(center).zip(radius).zip(inner).map(|(((axis, center), radius), inner)| {
                    if name == "Cylinder" {
                        Self::Cylinder { axis, center, inner, radius }
                    } else {
                        Self::Sphere { center, inner, radius }
                    }
                })
            }
        };
        f.finish();
        let region = region?;
        if region.is_empty() {
            errors.push(value.error("the region is empty: a lower bound is not below its upper bound"));
            return None;
        }
        Some(region)
    }
    fn describe() -> String {
        "`All`, `Box(min: [x, y, z], max: [x, y, z])`, `Slab(axis: Z, min: -2.0, max: 2.0)`, `Sphere(radius: 5.0)`, \
         `Cylinder(axis: Z, radius: 5.0)` (both with optional `center` and inner radius `inner`) or \
         `Outside(center: [x, y, z], radius: 5.0)`"
            .into()
    }
}

impl Region {
    /// Returns whether a lower bound is not below its upper bound.
    fn is_empty(&self) -> bool {
        match self {
            Self::Box { min, max } => (0..3).any(|k| min[k] >= max[k]),
            Self::Slab { min, max, .. } => min >= max,
            Self::Sphere { inner, radius, .. } | Self::Cylinder { inner, radius, .. } => inner >= radius,
            _ => false,
        }
    }

    /// Returns the center and half of the width along an axis, if the region has limits there.
    fn span(&self, k: usize) -> Option<[f64; 2]> {
        match self {
            Self::Box { min, max } => Some([0.5 * (min[k] + max[k]), 0.5 * (max[k] - min[k])]),
            Self::Slab { axis, min, max } if *axis as usize == k => Some([0.5 * (min + max), 0.5 * (max - min)]),
            Self::Sphere { center, radius, .. } => Some([center[k], *radius]),
            Self::Cylinder { axis, center, radius, .. } if *axis as usize != k => Some([center[k], *radius]),
            _ => None,
        }
    }

    /// Returns why a cuboid or slab does not fit into the box; a box length of 0 is that of two dimensions.
    pub fn misfit(&self, length: [f64; 3]) -> Option<String> {
        let (low, high) = (length.map(|l| 0.0 - 0.5 * l), length.map(|l| 0.5 * l));
        let (name, limits): (_, [Option<[f64; 2]>; 3]) = match self {
            Self::Box { min, max } => ("Box", std::array::from_fn(|k| (length[k] > 0.0).then_some([min[k], max[k]]))),
            Self::Slab { axis, min, max } => {
                ("Slab", std::array::from_fn(|k| (*axis as usize == k).then_some([*min, *max])))
            }
            _ => return None,
        };
        let limited: Vec<(usize, f64, f64)> =
            (0..3).filter_map(|k| limits[k].map(|[min, max]| (k, min, max))).collect();
        if limited.iter().any(|(k, min, max)| *min > high[*k] || *max < low[*k]) {
            return Some(format!("the `region` lies outside of the box, which extends from {low:?} to {high:?}"));
        }
        let beyond = |(k, min, max): &(usize, f64, f64)| {
            let rounding = ROUNDING * length[*k];
            length[*k] > 0.0 && (*min < low[*k] - rounding || *max > high[*k] + rounding)
        };
        let (k, min, max) = limited.into_iter().find(beyond)?;
        let (axis, low, high) = (["x", "y", "z"][k], low[k], high[k]);
        Some(format!(
            "the `region` extends out of the box: its limits along {axis} are {min} and {max}, and the box extends from {low} to \
             {high}. Limits of a `{name}` lie in the box; use {} and {}, or move the region",
            min.max(low),
            max.min(high)
        ))
    }

    /// Returns whether the bond between two points that are inside leaves the region through a periodic boundary: the points are in
    /// different periodic images of the region. Along axes on which the region joins its image, bonds may cross the boundary.
    pub fn is_left_by(&self, from: [f64; 3], to: [f64; 3], length: [f64; 3]) -> bool {
        (0..3).any(|k| {
            let l = length[k];
            let image = |r: f64, center: f64| ((r - center) / l).round();
            let open = |half: f64| l > 0.0 && 2.0 * half < l * (1.0 - ROUNDING);
            self.span(k).is_some_and(|[center, half]| open(half) && image(from[k], center) != image(to[k], center))
        })
    }

    /// Returns whether a point of the box is inside; distances from centers are to the nearest image.
    pub fn contains(&self, r: [f64; 3], length: [f64; 3]) -> bool {
        self.contains_nearly(r, length, 0.0)
    }

    /// Returns whether a point of the box is inside or outside by at most `off`.
    pub fn contains_nearly(&self, r: [f64; 3], length: [f64; 3], off: f64) -> bool {
        let from = |c: &[f64; 3], k: usize| {
            let d = r[k] - c[k];
            if length[k] > 0.0 { d - length[k] * (d / length[k]).round() } else { d }
        };
        let within =
            |d2: f64, inner: f64, radius: f64| (inner - off).max(0.0).powi(2) <= d2 && d2 <= (radius + off).powi(2);
        match self {
            Self::All => true,
            Self::Box { min, max } => (0..3).all(|k| length[k] == 0.0 || (min[k] - off..=max[k] + off).contains(&r[k])),
            Self::Slab { axis, min, max } => (*min - off..=*max + off).contains(&r[*axis as usize]),
            Self::Sphere { center, inner, radius } => {
                within((0..3).map(|k| from(center, k).powi(2)).sum(), *inner, *radius)
            }
            Self::Cylinder { axis, center, inner, radius } => {
                let across = (0..3).filter(|k| *k != *axis as usize);
                within(across.map(|k| from(center, k).powi(2)).sum(), *inner, *radius)
            }
            Self::Outside { center, radius } => {
                within((0..3).map(|k| from(center, k).powi(2)).sum(), *radius, f64::INFINITY)
            }
        }
    }

    /// Returns the lower and upper corner of a cuboid in the box that encloses the region.
    pub fn bounds(&self, length: [f64; 3]) -> [[f64; 3]; 2] {
        let (mut low, mut high) = (length.map(|l| -0.5 * l), length.map(|l| 0.5 * l));
        for k in 0..3 {
            let Some([center, half]) = self.span(k) else { continue };
            let (a, b) = (center - half, center + half);
            // for a sphere or cylinder that crosses the boundary, use the whole box
            if a >= low[k] && b <= high[k] {
                (low[k], high[k]) = (a, b);
            } else if a < high[k] && b > low[k] && matches!(self, Self::Box { .. } | Self::Slab { .. }) {
                (low[k], high[k]) = (low[k].max(a), high[k].min(b));
            }
        }
        [low, high]
    }

    /// Returns an upper bound of the volume inside the box.
    pub fn volume(&self, length: [f64; 3]) -> f64 {
        let [low, high] = self.bounds(length);
        let enclosing: f64 = (0..3).filter(|k| length[*k] > 0.0).map(|k| high[k] - low[k]).product();
        let ball = |r: f64| if length[2] > 0.0 { 4.0 / 3.0 * PI * r.powi(3) } else { PI * r * r };
        let volume = match self {
            Self::Sphere { inner, radius, .. } => ball(*radius) - ball(*inner),
            Self::Cylinder { axis, inner, radius, .. } => {
                PI * (radius * radius - inner * inner) * length[*axis as usize].max(f64::MIN_POSITIVE)
            }
            _ => f64::INFINITY,
        };
        volume.min(enclosing)
    }
}
