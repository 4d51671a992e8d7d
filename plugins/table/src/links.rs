//! Bonds, angles and dihedrals.

use crate::cells::{CpuTables, Table, Tables, text};
use crate::source::{Angles, Distances, Source, Sources};
use galamost_plugin_api::bond_potential::{BondPotential, each_link};
use galamost_plugin_api::bonded::{BondInput, BondedCall};
use galamost_plugin_api::component::Registration;
use galamost_plugin_api::error::{Errors, Position};
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::precision::{Fixed, Float64, Precision, Scheme};
use galamost_plugin_api::prelude::*;
use galamost_tables::{Kind, Unit};
use std::marker::PhantomData;

galamost_plugin_api::inventory::submit! {
    Registration::bond_potential::<BondTable>("BondTable", include_str!("pages/bond.md"))
}
galamost_plugin_api::inventory::submit! {
    Registration::bond_potential::<AngleTable>("AngleTable", include_str!("pages/angle.md"))
}
galamost_plugin_api::inventory::submit! {
    Registration::bond_potential::<DihedralTable>("DihedralTable", include_str!("pages/dihedral.md"))
}

/// The unit of angles in the tables, as the user writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitName(Unit);

impl FromValue for UnitName {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Degrees" => Some(Self(Unit::Degrees)),
            "Radians" => Some(Self(Unit::Radians)),
            text => {
                errors.push(value.error(format!("expected {}, found `{text}`", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Degrees` or `Radians`".into()
    }
}

/// Parameters of a component of bonds.
#[derive(Params)]
pub struct BondSettings {
    /// Cells of each grid in r, from 0 to the last row.
    #[param(default = 2000, at_least = 10, at_most = 65536)]
    points: u32,
}

/// Parameters of a component of angles or dihedrals.
#[derive(Params)]
pub struct AngleSettings {
    /// Unit of the angles in all tables of this component; forces in files are energies per unit.
    unit: UnitName,
    /// Cells of each grid over the whole range of the angle.
    #[param(default = 2000, at_least = 10, at_most = 65536)]
    points: u32,
}

/// Bonds, angles or dihedrals.
pub trait Link: Send + Sync + 'static {
    const KIND: Kind;
    const WIDTH: u32;
    type Settings: galamost_plugin_api::params::Params;
    type Input: Source + galamost_plugin_api::params::Params + FromValue;
    fn settings(settings: &Self::Settings) -> (usize, Option<Unit>);
    /// The variable, and what of dU/dx the loop wants.
    fn variable<R: Real>(input: &BondInput<R>) -> R;
    fn force<R: Real>(input: &BondInput<R>, x: R, slope: R) -> R;
    /// The same two as CUDA.
    const VARIABLE: &'static str;
    const FORCE: &'static str;
}

/// U of a bond's length; the loop wants F/r.
pub struct Length;
/// U of θ; the loop wants dU/dcos θ.
pub struct Bend;
/// U of φ; the loop wants dU/dφ.
pub struct Twist;

impl Link for Length {
    const KIND: Kind = Kind::Bond;
    const WIDTH: u32 = 2;
    type Settings = BondSettings;
    type Input = Distances;
    fn settings(settings: &BondSettings) -> (usize, Option<Unit>) {
        (settings.points as usize, None)
    }
    #[inline(always)]
    fn variable<R: Real>(input: &BondInput<R>) -> R {
        input.r2.sqrt()
    }
    #[inline(always)]
    fn force<R: Real>(_: &BondInput<R>, x: R, slope: R) -> R {
        // two particles in one place have no direction
        -slope / if x > R::lit(1e-6) { x } else { R::lit(1e-6) }
    }
    // a root and a division would cost registers that are spilled
    const VARIABLE: &'static str = "input.r2 * device_rsqrt(device_max(input.r2, real(1e-12)))";
    const FORCE: &'static str = "-s.v0 * device_rsqrt(device_max(input.r2, real(1e-12)))";
}

impl Link for Bend {
    const KIND: Kind = Kind::Angle;
    const WIDTH: u32 = 3;
    type Settings = AngleSettings;
    type Input = Angles;
    fn settings(settings: &AngleSettings) -> (usize, Option<Unit>) {
        (settings.points as usize, Some(settings.unit.0))
    }
    #[inline(always)]
    fn variable<R: Real>(input: &BondInput<R>) -> R {
        input.angle
    }
    #[inline(always)]
    fn force<R: Real>(input: &BondInput<R>, _: R, slope: R) -> R {
        // dθ/dcos θ = −1/sin θ, which is 10⁶ at most
        -slope / if input.sin > R::lit(1e-6) { input.sin } else { R::lit(1e-6) }
    }
    const VARIABLE: &'static str = "input.angle";
    const FORCE: &'static str = "-s.v0 / device_max(input.sin, real(1e-6))";
}

impl Link for Twist {
    const KIND: Kind = Kind::Dihedral;
    const WIDTH: u32 = 4;
    type Settings = AngleSettings;
    type Input = Angles;
    fn settings(settings: &AngleSettings) -> (usize, Option<Unit>) {
        Bend::settings(settings)
    }
    #[inline(always)]
    fn variable<R: Real>(input: &BondInput<R>) -> R {
        input.angle
    }
    #[inline(always)]
    fn force<R: Real>(_: &BondInput<R>, _: R, slope: R) -> R {
        slope
    }
    const VARIABLE: &'static str = "input.angle";
    const FORCE: &'static str = "s.v0";
}

/// A potential of links given as tables.
pub struct LinkTable<L: Link> {
    points: usize,
    unit: Option<Unit>,
    sources: Sources<L::Input>,
    tables: Tables,
    link: PhantomData<L>,
}

/// Bonds.
pub type BondTable = LinkTable<Length>;
/// Angles.
pub type AngleTable = LinkTable<Bend>;
/// Dihedrals.
pub type DihedralTable = LinkTable<Twist>;

impl<L: Link> LinkTable<L> {
    #[inline(always)]
    unsafe fn run<S: Scheme>(call: &BondedCall, tables: &CpuTables<S::Real>, sums: &mut Sums) {
        // SAFETY: the caller's word
        unsafe {
            each_link::<S>(L::WIDTH, call, sums, |input, kind| {
                let x = L::variable(input);
                let (slope, energy) = tables.rows[kind].at(x);
                (L::force(input, x, slope), energy)
            });
        }
    }
}

impl<L: Link> BondPotential for LinkTable<L> {
    const WIDTH: u32 = L::WIDTH;
    type Settings = L::Settings;
    type Input = L::Input;
    type Row = Table;
    type Tables = (CpuTables<f32>, CpuTables<f64>);

    fn new(settings: L::Settings, written: &[(Position, &L::Input)], _: &mut Errors) -> Option<Self> {
        let (points, unit) = L::settings(&settings);
        Some(Self { points, unit, sources: Sources::new(written), tables: Tables::default(), link: PhantomData })
    }

    fn bind(&mut self, system: &SystemInfo) -> Result<()> {
        self.tables.clear();
        self.sources.bind(L::KIND, self.unit, system)
    }

    fn row(&self, input: &L::Input) -> Result<Table, String> {
        let (k, curve) = self.sources.find(input).ok_or("the table was not read")?;
        self.tables.get((k, 0), || curve.link_grid(self.points))
    }

    fn numbers(row: &Table) -> Vec<f64> {
        row.numbers()
    }

    fn more_numbers(&self, numbers: &mut Vec<f64>) {
        self.tables.more_numbers(numbers);
    }

    fn tables(&self, rows: &[Table]) -> Self::Tables {
        (CpuTables::new(rows), CpuTables::new(rows))
    }

    unsafe fn cpu(&self, call: &BondedCall, (single, double): &Self::Tables, sums: &mut Sums) {
        // SAFETY: the caller's word
        unsafe {
            if (*call.state).precision == Precision::Double as u32 {
                Self::run::<Float64>(call, double, sums);
            } else {
                Self::run::<Fixed>(call, single, sums);
            }
        }
    }

    fn text(&self) -> Result<String> {
        Ok(format!(
            "{}template <class real> __device__ __forceinline__ Tuple2<real, real> bond_eval(const BondInput<real>& input, \
             const BondRow<real>& row) {{\n    const real x = {};\n    \
             const Tuple2<real, real> s = table_at(input.numbers, row, x);\n    return {{{}, s.v1}};\n}}\n",
            text("BondRow"),
            L::VARIABLE,
            L::FORCE
        ))
    }
}
