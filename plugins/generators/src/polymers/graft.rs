//! Grafting of molecules on surfaces and particles.

use crate::polymers::region::{POSITIVE, Region};
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{Fields, FromValue, Range, Value};
use galamost_plugin_api::prelude::*;
use std::f64::consts::PI;

/// What first beads are grafted on.
#[derive(Clone, Debug, PartialEq)]
pub enum Graft {
    /// Evenly spaced points on a sphere, a circle in two dimensions, with chains outside or inside.
    Sphere { center: [f64; 3], radius: f64, inside: bool },
    /// Evenly spaced points on a plane, with chains above or below it.
    Plane { axis: Axis, at: f64, below: bool },
    /// Existing particles of a type; each first bead is bonded to one of them.
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
                let (center, radius) = (f.or("center", Range::ANY, || [0.0; 3]), f.required("radius", POSITIVE));
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
    /// Returns n evenly spaced grafting points; none for `Particles`.
    pub fn points(&self, n: usize, length: [f64; 3]) -> Vec<[f64; 3]> {
        match self {
            Self::Sphere { center, radius, .. } => {
                let flat = length[2] == 0.0;
                let turn = if flat { 2.0 * PI / n as f64 } else { PI * (5f64.sqrt() - 1.0) };
                let point = |k: usize| {
                    let z = if flat { 0.0 } else { 1.0 - (2.0 * k as f64 + 1.0) / n as f64 };
                    let (rho, angle) = ((1.0 - z * z).sqrt(), turn * k as f64);
                    let d = [rho * angle.cos(), rho * angle.sin(), z];
                    std::array::from_fn(|i| center[i] + radius * d[i])
                };
                (0..n).map(point).collect()
            }
            Self::Plane { axis, at, .. } => {
                let [a, b] = [1, 2].map(|k| (*axis as usize + k) % 3);
                // a low-discrepancy sequence in two dimensions
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

    /// Returns why a surface does not fit into the box.
    pub fn misfit(&self, length: [f64; 3]) -> Option<String> {
        match self {
            Self::Sphere { radius, .. } => {
                let shortest = length.into_iter().filter(|l| *l > 0.0).fold(f64::INFINITY, f64::min);
                (2.0 * radius > shortest).then(|| {
                    format!(
                        "the grafting sphere of radius {radius} extends out of the box: its diameter exceeds the shortest box \
                         length, {shortest}"
                    )
                })
            }
            Self::Plane { axis, at, below } => {
                let name = ["x", "y", "z"][*axis as usize];
                let half = 0.5 * length[*axis as usize];
                let (low, room) = (0.0 - half, if *below { at + half } else { half - at });
                if at.abs() > half {
                    let text = format!(
                        "the grafting plane {name} = {at} lies outside of the box, which extends from {low} to {half}"
                    );
                    return Some(text);
                }
                let side = if *below { "below" } else { "above" };
                (room <= 0.0).then(|| {
                    format!("no place in the box, which extends from {low} to {half}, is {side} the grafting plane {name} = {at}")
                })
            }
            Self::Particles { .. } => None,
        }
    }

    /// Returns whether a later bead of the molecule may be at this position, which is not wrapped: chains may pass neither through the
    /// surface nor through a periodic boundary to its other side.
    pub fn allows(&self, r: [f64; 3], length: [f64; 3]) -> bool {
        match self {
            Self::Sphere { center, radius, inside: true } => {
                (0..3).map(|k| (r[k] - center[k]).powi(2)).sum::<f64>() <= radius * radius
            }
            Self::Sphere { center, radius, inside: false } => {
                !Region::Sphere { center: *center, inner: 0.0, radius: *radius }.contains(r, length)
            }
            Self::Plane { axis, at, below } => {
                let (x, half) = (r[*axis as usize], 0.5 * length[*axis as usize]);
                if *below { (-half..*at).contains(&x) } else { (*at..half).contains(&x) }
            }
            Self::Particles { .. } => true,
        }
    }
}
