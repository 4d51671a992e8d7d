//! Parameters shared by the samplers: lattices, architectures, walls, outputs.

use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{Fields, FromValue, Range, Value};
use galamost_plugin_api::prelude::*;

/// Lattice, which defines the possible bonds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lattice {
    Square,
    Cubic,
    Cubic26,
    Fcc,
}

impl Lattice {
    /// Returns the offsets of neighboring sites, in a fixed order.
    pub fn offsets(self) -> Vec<[i32; 3]> {
        let around = |x: i32| (-1..=1).flat_map(move |z| (-1..=1).map(move |y| [x, y, z]));
        let length = |d: &[i32; 3]| d.iter().map(|x| x * x).sum::<i32>();
        let all = (-1..=1).flat_map(around);
        match self {
            Self::Square => all.filter(|d| length(d) == 1 && d[2] == 0).collect(),
            Self::Cubic => all.filter(|d| length(d) == 1).collect(),
            Self::Cubic26 => all.filter(|d| length(d) > 0).collect(),
            Self::Fcc => all.filter(|d| length(d) == 2).collect(),
        }
    }
}

impl FromValue for Lattice {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Square" => Some(Self::Square),
            "Cubic" => Some(Self::Cubic),
            "Cubic26" => Some(Self::Cubic26),
            "Fcc" => Some(Self::Fcc),
            _ => {
                errors.push(value.error(format!("expected {}, found `{}`", Self::describe(), value.text())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Square` (z = 4), `Cubic` (z = 6), `Cubic26` (z = 26) or `Fcc` (z = 12)".into()
    }
}

/// Chain architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Linear,
    Star { arms: u32 },
    Comb { backbone: u32, every: u32, side: u32 },
}

impl Shape {
    /// Returns the parent of each monomer, from which it grows and which precedes it; `None` for linear chains.
    ///
    /// # Errors
    /// Returns a message if the number of monomers does not fit the architecture.
    pub fn parents(self, n: usize) -> std::result::Result<Option<Vec<u32>>, String> {
        match self {
            Self::Linear => Ok(None),
            // one monomer per arm in each round, so that all arms have equal lengths after each round
            Self::Star { arms } => {
                let wrong = !(n - 1).is_multiple_of(arms as usize);
                let text = || format!("a star of {arms} arms has 1 + {arms} k monomers, found {n}");
                let of = |i: u32| i.saturating_sub(arms);
                if wrong { Err(text()) } else { Ok(Some((0..n as u32).map(of).collect())) }
            }
            Self::Comb { backbone, every, side } => {
                let teeth = (backbone.saturating_sub(1)) / every;
                let all = u64::from(backbone) + u64::from(teeth) * u64::from(side);
                if all != n as u64 {
                    return Err(format!("this comb has {backbone} + {teeth}·{side} = {all} monomers, found {n}"));
                }
                let mut parents: Vec<u32> = (0..backbone).map(|i| i.saturating_sub(1)).collect();
                for tooth in 1..=teeth {
                    for k in 0..side {
                        parents.push(if k == 0 { tooth * every } else { parents.len() as u32 - 1 });
                    }
                }
                Ok(Some(parents))
            }
        }
    }
}

impl FromValue for Shape {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let at_least = |x| Range { at_least: x, ..Range::ANY };
        match (value.name(), value.after_name()) {
            (Some("Linear"), None) => Some(Self::Linear),
            (Some("Star"), Some(_)) => {
                let mut fields = Fields::new(value, errors)?;
                let arms = fields.required("arms", at_least(3.0));
                fields.finish();
                Some(Self::Star { arms: arms? })
            }
            (Some("Comb"), Some(_)) => {
                let mut fields = Fields::new(value, errors)?;
                let backbone = fields.required("backbone", at_least(2.0));
                let every = fields.required("every", at_least(1.0));
                let side = fields.required("side", at_least(1.0));
                fields.finish();
                Some(Self::Comb { backbone: backbone?, every: every?, side: side? })
            }
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Linear`, `Star(arms: 3)` or `Comb(backbone: 20, every: 4, side: 5)`".into()
    }
}

/// Region that chains may occupy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wall {
    Slab { axis: Axis, min: Option<f64>, max: Option<f64> },
    Sphere { center: [f64; 3], radius: f64, inside: bool },
}

impl FromValue for Wall {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.name() {
            Some("Slab") => {
                let mut fields = Fields::new(value, errors)?;
                let axis = fields.required("axis", Range::ANY);
                let min: Option<Option<f64>> = fields.required("min", Range::ANY);
                let max: Option<Option<f64>> = fields.required("max", Range::ANY);
                fields.finish();
                let (min, max) = (min?, max?);
                if min.is_none() && max.is_none() {
                    errors.push(value.error("set `min`, `max`, or both"));
                    return None;
                }
                Some(Self::Slab { axis: axis?, min, max })
            }
            Some(name @ ("Inside" | "Outside")) => {
                let mut fields = Fields::new(value, errors)?;
                let center = fields.or("center", Range::ANY, || [0.0; 3]);
                let radius = fields.required("radius", Range { above: 0.0, ..Range::ANY });
                fields.finish();
                Some(Self::Sphere { center: center?, radius: radius?, inside: name == "Inside" })
            }
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Slab(axis: Z, min: 0.0, max: 8.0)` (either limit is optional), `Inside(center: [x, y, z], radius: 5.0)` or \
         `Outside(center: [x, y, z], radius: 5.0)`, the default center is the origin"
            .into()
    }
}

/// Histogram of end-to-end distances.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Distribution {
    /// Output file, CSV: r, probability density, its error.
    pub file: String,
    /// Bin width.
    #[param(unit = "length", above = 0.0)]
    pub width: f64,
    /// Number of bins; larger distances count in the last bin.
    #[param(default = 100, at_least = 1, at_most = 10000)]
    pub bins: u32,
}

/// Chain conformations to write.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct ChainFile {
    /// Output file, CSV: chain, monomer, x, y, z, ln of the chain's weight.
    pub file: String,
    /// Number of chains: the first completed ones.
    #[param(default = 100, at_least = 1)]
    pub count: u64,
}

/// Parameters of all samplers.
#[derive(Clone, Debug, Params)]
pub struct Common {
    /// Number of monomers N; a linear chain has N − 1 steps.
    #[param(at_least = 2)]
    pub monomers: Spanned<u32>,
    /// Architecture: `Linear`, `Star(arms: f)` with a core and arms that grow in turn, or `Comb(backbone, every,
    /// side)`: side chains of `side` monomers at the monomers `every`, 2 `every`, … of the backbone, counted from 0.
    #[param(default = Shape::Linear)]
    pub shape: Shape,
    /// Position of the first monomer.
    #[param(default = [0.0; 3], unit = "length")]
    pub start: [f64; 3],
    /// Walls, at most four, that confine the monomers; boundaries are allowed positions.
    pub walls: Option<Spanned<Vec<Wall>>>,
    /// Output file for averages, CSV, one row for each number of monomers.
    pub file: String,
    /// Numbers of monomers in the table; default: all up to 64, then about 16 per doubling.
    pub lengths: Option<Vec<u32>>,
    /// Range of numbers of monomers for the fits of μ, γ, and ν; default: from N/6, at least 8, to N.
    pub fit: Option<[u32; 2]>,
    /// Histogram of end-to-end distances of complete chains.
    pub distribution: Option<Distribution>,
}
