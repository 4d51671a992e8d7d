//! Where molecules may be, and what they are grafted on.

use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{Fields, FromValue, Range, Value};
use galamost_plugin_api::prelude::*;
use std::f64::consts::PI;

/// A part of the box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Region {
    All,
    Box {
        min: [f64; 3],
        max: [f64; 3],
    },
    Slab {
        axis: Axis,
        min: f64,
        max: f64,
    },
    /// A ball or a shell.
    Sphere {
        center: [f64; 3],
        inner: f64,
        radius: f64,
    },
    /// A cylinder or a shell, along the whole box.
    Cylinder {
        axis: Axis,
        center: [f64; 3],
        inner: f64,
        radius: f64,
    },
    /// All but a ball.
    Outside {
        center: [f64; 3],
        radius: f64,
    },
}

const ABOVE: Range = Range { above: 0.0, ..Range::ANY };
const NOT_BELOW: Range = Range { at_least: 0.0, ..Range::ANY };

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
                let (center, radius) = (f.or("center", Range::ANY, || [0.0; 3]), f.required("radius", ABOVE));
                center.zip(radius).map(|(center, radius)| Self::Outside { center, radius })
            }
            _ => {
                let axis = if name == "Cylinder" { f.required("axis", Range::ANY) } else { Some(Axis::Z) };
                let (center, radius) = (f.or("center", Range::ANY, || [0.0; 3]), f.required("radius", ABOVE));
                let inner = f.or("inner", NOT_BELOW, || 0.0);
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
            errors.push(value.error("there is nothing inside: a lower bound is not below its upper one"));
            return None;
        }
        Some(region)
    }
    fn describe() -> String {
        "`All`, `Box(min: [x, y, z], max: [x, y, z])`, `Slab(axis: Z, min: -2.0, max: 2.0)`, `Sphere(radius: 5.0)`, \
         `Cylinder(axis: Z, radius: 5.0)` (both with `center` and `inner`, a radius inside of which none may be) or \
         `Outside(center: [x, y, z], radius: 5.0)`"
            .into()
    }
}

impl Region {
    fn is_empty(&self) -> bool {
        match self {
            Self::Box { min, max } => (0..3).any(|k| min[k] >= max[k]),
            Self::Slab { min, max, .. } => min >= max,
            Self::Sphere { inner, radius, .. } | Self::Cylinder { inner, radius, .. } => inner >= radius,
            _ => false,
        }
    }

    /// Whether a point of the box is inside; distances from centers are to the nearest image.
    pub fn contains(&self, r: [f64; 3], length: [f64; 3]) -> bool {
        let from = |c: &[f64; 3], k: usize| {
            let d = r[k] - c[k];
            if length[k] > 0.0 { d - length[k] * (d / length[k]).round() } else { d }
        };
        let within = |d2: f64, inner: f64, radius: f64| inner * inner <= d2 && d2 <= radius * radius;
        match self {
            Self::All => true,
            Self::Box { min, max } => (0..3).all(|k| length[k] == 0.0 || (min[k]..=max[k]).contains(&r[k])),
            Self::Slab { axis, min, max } => (*min..=*max).contains(&r[*axis as usize]),
            Self::Sphere { center, inner, radius } => {
                within((0..3).map(|k| from(center, k).powi(2)).sum(), *inner, *radius)
            }
            Self::Cylinder { axis, center, inner, radius } => {
                let across = (0..3).filter(|k| *k != *axis as usize);
                within(across.map(|k| from(center, k).powi(2)).sum(), *inner, *radius)
            }
            Self::Outside { center, radius } => (0..3).map(|k| from(center, k).powi(2)).sum::<f64>() >= radius * radius,
        }
    }

    /// Its corners: what encloses it inside of the box.
    pub fn bounds(&self, length: [f64; 3]) -> [[f64; 3]; 2] {
        let (mut low, mut high) = (length.map(|l| -0.5 * l), length.map(|l| 0.5 * l));
        let mut cut = |k: usize, a: f64, b: f64| {
            // a part that crosses the border is looked for in the whole box
            if a >= low[k] && b <= high[k] {
                (low[k], high[k]) = (a, b);
            } else if a < high[k] && b > low[k] && matches!(self, Self::Box { .. } | Self::Slab { .. }) {
                (low[k], high[k]) = (low[k].max(a), high[k].min(b));
            }
        };
        match self {
            Self::Box { min, max } => (0..3).for_each(|k| cut(k, min[k], max[k])),
            Self::Slab { axis, min, max } => cut(*axis as usize, *min, *max),
            Self::Sphere { center, radius, .. } => (0..3).for_each(|k| cut(k, center[k] - radius, center[k] + radius)),
            Self::Cylinder { axis, center, radius, .. } => {
                (0..3).filter(|k| *k != *axis as usize).for_each(|k| cut(k, center[k] - radius, center[k] + radius))
            }
            Self::All | Self::Outside { .. } => (),
        }
        [low, high]
    }

    /// Its volume inside of a box, or more.
    pub fn volume(&self, length: [f64; 3]) -> f64 {
        let [low, high] = self.bounds(length);
        let enclosing: f64 = (0..3).filter(|k| length[*k] > 0.0).map(|k| high[k] - low[k]).product();
        let ball = |r: f64| if length[2] > 0.0 { 4.0 / 3.0 * PI * r.powi(3) } else { PI * r * r };
        let own = match self {
            Self::Sphere { inner, radius, .. } => ball(*radius) - ball(*inner),
            Self::Cylinder { axis, inner, radius, .. } => {
                PI * (radius * radius - inner * inner) * length[*axis as usize].max(f64::MIN_POSITIVE)
            }
            _ => f64::INFINITY,
        };
        own.min(enclosing)
    }
}

/// What first beads stand on.
#[derive(Clone, Debug, PartialEq)]
pub enum Graft {
    /// Points evenly spread on a sphere; the chains outside or inside.
    Sphere { center: [f64; 3], radius: f64, inside: bool },
    /// Points evenly spread on a plane; the chains above it or below.
    Plane { axis: Axis, at: f64, below: bool },
    /// Particles of a type that are there already: the first bead is bonded to one of them.
    Particles { of: String },
}

impl FromValue for Graft {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let Some(name @ ("OnSphere" | "OnPlane" | "OnParticles")) = value.name() else {
            errors.push(value.error(format!("expected {}", Self::describe())));
            return None;
        };
        let mut f = Fields::new(value, errors)?;
        let graft = match name {
            "OnSphere" => {
                let (center, radius) = (f.or("center", Range::ANY, || [0.0; 3]), f.required("radius", ABOVE));
                let inside = f.or("inside", Range::ANY, || false);
                center.zip(radius).zip(inside).map(|((center, radius), inside)| Self::Sphere { center, radius, inside })
            }
            "OnPlane" => {
                let (axis, at) = (f.required("axis", Range::ANY), f.required("at", Range::ANY));
                let below = f.or("below", Range::ANY, || false);
                axis.zip(at).zip(below).map(|((axis, at), below)| Self::Plane { axis, at, below })
            }
            _ => f.required("of", Range::ANY).map(|of| Self::Particles { of }),
        };
        f.finish();
        graft
    }
    fn describe() -> String {
        "`OnSphere(center: [x, y, z], radius: 5.0, inside: false)`, `OnPlane(axis: Z, at: -8.0, below: false)` or \
         `OnParticles(of: \"I\")`"
            .into()
    }
}

impl Graft {
    /// Evenly spread points for n first beads.
    pub fn points(&self, n: usize, length: [f64; 3]) -> Vec<[f64; 3]> {
        match self {
            Self::Sphere { center, radius, .. } => {
                let golden = PI * (5f64.sqrt() - 1.0);
                let point = |k: usize| {
                    let z = 1.0 - (2.0 * k as f64 + 1.0) / n as f64;
                    let (rho, angle) = ((1.0 - z * z).sqrt(), golden * k as f64);
                    let d = [rho * angle.cos(), rho * angle.sin(), z];
                    std::array::from_fn(|i| center[i] + radius * d[i])
                };
                (0..n).map(point).collect()
            }
            Self::Plane { axis, at, .. } => {
                let [a, b] = [1, 2].map(|k| (*axis as usize + k) % 3);
                // a sequence of low discrepancy in two dimensions
                let point = |k: usize| {
                    let mut r = [0.0; 3];
                    r[*axis as usize] = *at;
                    r[a] = ((k as f64 * 0.754_877_666_246_692_8).fract() - 0.5) * length[a];
                    r[b] = ((k as f64 * 0.569_840_290_998_053_3).fract() - 0.5) * length[b];
                    r
                };
                (0..n).map(point).collect()
            }
            Self::Particles { .. } => vec![],
        }
    }

    /// Whether a bead may be here.
    pub fn allows(&self, r: [f64; 3], length: [f64; 3]) -> bool {
        match self {
            Self::Sphere { center, radius, inside } => {
                let part = Region::Sphere { center: *center, inner: 0.0, radius: *radius };
                part.contains(r, length) == *inside
            }
            Self::Plane { axis, at, below } => (r[*axis as usize] < *at) == *below,
            Self::Particles { .. } => true,
        }
    }
}
