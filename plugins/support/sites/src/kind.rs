//! How a site is constructed.

use crate::MOST;
use crate::geometry::{ANGLE, DISTANCE, LINEAR, NORMAL, OUT};
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{Fields, FromValue, Range, Value};

/// The construction of a site. The names are those of GROMACS, with the number of particles in words.
#[derive(Clone, Debug, PartialEq)]
pub enum SiteKind {
    Two {
        a: f64,
    },
    TwoFd {
        d: f64,
    },
    Three {
        a: f64,
        b: f64,
    },
    ThreeFd {
        a: f64,
        d: f64,
    },
    /// The angle is in degrees.
    ThreeFad {
        theta_deg: f64,
        d: f64,
    },
    ThreeOut {
        a: f64,
        b: f64,
        c: f64,
    },
    FourFdn {
        a: f64,
        b: f64,
        c: f64,
    },
    Center,
    CenterOfMass,
    Weights(Vec<f64>),
}

const NAMES: [&str; 10] =
    ["Two", "TwoFd", "Three", "ThreeFd", "ThreeFad", "ThreeOut", "FourFdn", "Center", "CenterOfMass", "Weights"];

impl FromValue for SiteKind {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let Some(name) = value.name().filter(|n| NAMES.contains(n)) else {
            errors.push(value.error(format!("expected {}", Self::describe())));
            return None;
        };
        match name {
            "Center" => return Some(Self::Center),
            "CenterOfMass" => return Some(Self::CenterOfMass),
            _ => {}
        }
        let mut f = Fields::new(value, errors)?;
        let angle = Range { at_least: 0.0, at_most: 180.0, ..Range::ANY };
        let weight = Range { at_least: 0.0, ..Range::ANY };
        let kind = (|| {
            let mut number = |name: &'static str| f.required::<f64>(name, Range::ANY);
            Some(match name {
                "Two" => Self::Two { a: number("a")? },
                "TwoFd" => Self::TwoFd { d: number("d")? },
                "Three" => {
                    let (a, b) = (number("a"), number("b"));
                    Self::Three { a: a?, b: b? }
                }
                "ThreeFd" => {
                    let (a, d) = (number("a"), number("d"));
                    Self::ThreeFd { a: a?, d: d? }
                }
                "ThreeFad" => {
                    let d = number("d");
                    if let Some(old) = f.stray("theta") {
                        f.errors.push(old.error("`theta` is `theta_deg`: angles in degrees have this ending"));
                        return None;
                    }
                    let theta_deg = f.required("theta_deg", angle);
                    Self::ThreeFad { theta_deg: theta_deg?, d: d? }
                }
                "ThreeOut" | "FourFdn" => {
                    let (a, b, c) = (number("a"), number("b"), number("c"));
                    let (a, b, c) = (a?, b?, c?);
                    if name == "ThreeOut" { Self::ThreeOut { a, b, c } } else { Self::FourFdn { a, b, c } }
                }
                _ => Self::Weights(f.required("w", weight)?),
            })
        })();
        f.finish();
        kind
    }
    fn describe() -> String {
        "`Two(a: …)`, `TwoFd(d: …)`, `Three(a: …, b: …)`, `ThreeFd(a: …, d: …)`, `ThreeFad(theta_deg: …, d: …)`, \
         `ThreeOut(a: …, b: …, c: …)`, `FourFdn(a: …, b: …, c: …)`, `Center`, `CenterOfMass` or `Weights(w: […])`"
            .into()
    }
}

impl SiteKind {
    /// Returns the name in a pipeline.
    pub fn name(&self) -> &'static str {
        NAMES[match self {
            Self::Two { .. } => 0,
            Self::TwoFd { .. } => 1,
            Self::Three { .. } => 2,
            Self::ThreeFd { .. } => 3,
            Self::ThreeFad { .. } => 4,
            Self::ThreeOut { .. } => 5,
            Self::FourFdn { .. } => 6,
            Self::Center => 7,
            Self::CenterOfMass => 8,
            Self::Weights(_) => 9,
        }]
    }

    /// Returns the numbers of particles that may construct the site: the least and the most.
    pub fn particles(&self) -> (usize, usize) {
        match self {
            Self::Two { .. } | Self::TwoFd { .. } => (2, 2),
            Self::Three { .. } | Self::ThreeFd { .. } | Self::ThreeFad { .. } | Self::ThreeOut { .. } => (3, 3),
            Self::FourFdn { .. } => (4, 4),
            Self::Center | Self::CenterOfMass => (1, MOST),
            Self::Weights(w) => (w.len().max(1), w.len().min(MOST)),
        }
    }

    /// Returns whether the site can leave the plane of its particles.
    pub fn leaves_plane(&self) -> bool {
        matches!(self, Self::ThreeOut { .. } | Self::FourFdn { .. })
    }

    /// Returns the form and its numbers, for particles with these masses.
    ///
    /// # Errors
    /// Returns a message if the sum of the weights is 0.
    pub fn form(&self, masses: &[f64]) -> Result<(u32, [f64; MOST]), String> {
        let mut numbers = [0.0; MOST];
        let mut set = |values: &[f64]| numbers[..values.len()].copy_from_slice(values);
        let weighted = |w: &[f64]| -> Result<Vec<f64>, String> {
            let sum: f64 = w.iter().sum();
            if sum > 0.0 && sum.is_finite() {
                Ok(w.iter().map(|w| w / sum).collect())
            } else {
                Err(format!("the sum of the weights is {sum}; it must be above 0"))
            }
        };
        let form = match self {
            Self::Two { a } => {
                set(&[1.0 - a, *a]);
                LINEAR
            }
            Self::Three { a, b } => {
                set(&[1.0 - a - b, *a, *b]);
                LINEAR
            }
            Self::Center => {
                set(&weighted(&vec![1.0; masses.len()])?);
                LINEAR
            }
            Self::CenterOfMass => {
                set(&weighted(masses)?);
                LINEAR
            }
            Self::Weights(w) => {
                set(&weighted(w)?);
                LINEAR
            }
            Self::TwoFd { d } => {
                set(&[0.0, *d]);
                DISTANCE
            }
            Self::ThreeFd { a, d } => {
                set(&[*a, *d]);
                DISTANCE
            }
            Self::ThreeFad { theta_deg, d } => {
                let (sin, cos) = theta_deg.to_radians().sin_cos();
                set(&[d * cos, d * sin]);
                ANGLE
            }
            Self::ThreeOut { a, b, c } => {
                set(&[*a, *b, *c]);
                OUT
            }
            Self::FourFdn { a, b, c } => {
                set(&[*a, *b, *c]);
                NORMAL
            }
        };
        Ok((form, numbers))
    }
}
