//! Tabulated bond, angle, dihedral and improper potentials.

use crate::source::{Angles, Distances, Source, Sources};
use crate::splines::{CpuSplines, SplineTable, SplineTables, text};
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
galamost_plugin_api::inventory::submit! {
    Registration::bond_potential::<ImproperTable>("ImproperTable", include_str!("pages/improper.md"))
}

/// Unit of the angles in the tables.
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

/// Settings of `BondTable`.
#[derive(Params)]
pub struct BondSettings {
    /// Number of spline intervals in r, from 0 to the last row.
    #[param(default = 2000, at_least = 10, at_most = 65536)]
    points: u32,
}

/// Settings of `AngleTable`, `DihedralTable` and `ImproperTable`.
#[derive(Params)]
pub struct AngleSettings {
    /// Unit of the angles in all tables of this component; forces in files are energies per this unit.
    unit: UnitName,
    /// Number of spline intervals over the range of the angle.
    #[param(default = 2000, at_least = 10, at_most = 65536)]
    points: u32,
}

/// The variable of a bonded potential: bond length, angle, or angle of a dihedral or improper.
pub trait Variable: Send + Sync + 'static {
    /// Kind of table.
    const KIND: Kind;
    /// The links that it is a variable of.
    const LIST: LinkList;
    type Settings: galamost_plugin_api::params::Params;
    type Input: Source + galamost_plugin_api::params::Params + FromValue;
    /// Returns the number of intervals and the unit.
    fn settings(settings: &Self::Settings) -> (usize, Option<Unit>);
    /// Returns the variable x.
    fn value<R: Real>(input: &BondInput<R>) -> R;
    /// Converts dU/dx to the derivative that the loop needs.
    fn force<R: Real>(input: &BondInput<R>, x: R, slope: R) -> R;
    /// `value` as CUDA source.
    const VARIABLE: &'static str;
    /// `force` as CUDA source.
    const FORCE: &'static str;
}

/// Bond length r; the loop needs F/r.
pub struct BondLength;
/// Angle θ; the loop needs dU/dcos θ.
pub struct Angle;
/// Angle φ of a dihedral, or of an improper; the loop needs dU/dφ.
pub struct Torsion<const IMPROPER: bool>;

impl Variable for BondLength {
    const KIND: Kind = Kind::Bond;
    const LIST: LinkList = LinkList::Bonds;
    type Settings = BondSettings;
    type Input = Distances;
    fn settings(settings: &BondSettings) -> (usize, Option<Unit>) {
        (settings.points as usize, None)
    }
    #[inline(always)]
    fn value<R: Real>(input: &BondInput<R>) -> R {
        input.r2.sqrt()
    }
    #[inline(always)]
    fn force<R: Real>(_: &BondInput<R>, x: R, slope: R) -> R {
        // coinciding particles have no direction
        if x > R::ZERO { -slope / x } else { R::ZERO }
    }
    // `device_rsqrt` instead of a root and a division avoids register spills
    const VARIABLE: &'static str = "input.r2 > real(0) ? input.r2 * device_rsqrt(input.r2) : real(0)";
    const FORCE: &'static str = "input.r2 > real(0) ? -s.v0 * device_rsqrt(input.r2) : real(0)";
}

impl Variable for Angle {
    const KIND: Kind = Kind::Angle;
    const LIST: LinkList = LinkList::Angles;
    type Settings = AngleSettings;
    type Input = Angles;
    fn settings(settings: &AngleSettings) -> (usize, Option<Unit>) {
        (settings.points as usize, Some(settings.unit.0))
    }
    #[inline(always)]
    fn value<R: Real>(input: &BondInput<R>) -> R {
        input.angle
    }
    #[inline(always)]
    fn force<R: Real>(input: &BondInput<R>, _: R, slope: R) -> R {
        // dθ/dcos θ = −1/sin θ, limited to 10⁶
        -slope / if input.sin > R::lit(1e-6) { input.sin } else { R::lit(1e-6) }
    }
    const VARIABLE: &'static str = "input.angle";
    const FORCE: &'static str = "-s.v0 / device_max(input.sin, real(1e-6))";
}

impl<const IMPROPER: bool> Variable for Torsion<IMPROPER> {
    const KIND: Kind = Kind::Dihedral;
    const LIST: LinkList = if IMPROPER { LinkList::Impropers } else { LinkList::Dihedrals };
    type Settings = AngleSettings;
    type Input = Angles;
    fn settings(settings: &AngleSettings) -> (usize, Option<Unit>) {
        Angle::settings(settings)
    }
    #[inline(always)]
    fn value<R: Real>(input: &BondInput<R>) -> R {
        input.angle
    }
    #[inline(always)]
    fn force<R: Real>(_: &BondInput<R>, _: R, slope: R) -> R {
        slope
    }
    const VARIABLE: &'static str = "input.angle";
    const FORCE: &'static str = "s.v0";
}

/// A bonded potential given as tables.
pub struct BondedTable<V: Variable> {
    points: usize,
    unit: Option<Unit>,
    sources: Sources<V::Input>,
    tables: SplineTables,
    variable: PhantomData<V>,
}

/// The component `BondTable`.
pub type BondTable = BondedTable<BondLength>;
/// The component `AngleTable`.
pub type AngleTable = BondedTable<Angle>;
/// The component `DihedralTable`.
pub type DihedralTable = BondedTable<Torsion<false>>;
/// The component `ImproperTable`.
pub type ImproperTable = BondedTable<Torsion<true>>;

impl<V: Variable> BondedTable<V> {
    /// Adds the forces on the CPU.
    ///
    /// # Safety
    /// The call describes valid host arrays of the scheme `S`.
    #[inline(always)]
    unsafe fn run<S: Scheme>(call: &BondedCall, tables: &CpuSplines<S::Real>, sums: &mut Sums) {
        // SAFETY: the call describes valid arrays of its precision (contract of this function)
        unsafe {
            each_link::<S>(V::LIST, call, sums, |input, link_type| {
                let x = V::value(input);
                let (slope, energy) = tables.rows[link_type].at(x);
                (V::force(input, x, slope), energy)
            });
        }
    }
}

impl<V: Variable> BondPotential for BondedTable<V> {
    const LIST: LinkList = V::LIST;
    type Settings = V::Settings;
    type Input = V::Input;
    type Row = SplineTable;
    type Tables = (CpuSplines<f32>, CpuSplines<f64>);

    fn new(settings: V::Settings, written: &[(Position, &V::Input)], _: &mut Errors) -> Option<Self> {
        let (points, unit) = V::settings(&settings);
        Some(Self {
            points,
            unit,
            sources: Sources::new(written),
            tables: SplineTables::default(),
            variable: PhantomData,
        })
    }

    fn bind(&mut self, system: &SystemInfo) -> Result<()> {
        self.tables.restart(system.precision());
        self.sources.bind(V::KIND, self.unit, system)
    }

    fn warnings(&self) -> Vec<String> {
        self.sources.warnings()
    }

    fn row(&self, input: &V::Input) -> Result<SplineTable, String> {
        let (k, curve) = self.sources.find(input).ok_or("the table was not read")?;
        self.tables.get((k, 0), || curve.link_grid(self.points))
    }

    fn numbers(row: &SplineTable) -> Vec<f64> {
        row.numbers()
    }

    fn more_numbers(&self, numbers: &mut Vec<f64>) {
        self.tables.more_numbers(numbers);
    }

    fn tables(&self, rows: &[SplineTable]) -> Self::Tables {
        (CpuSplines::new(rows), CpuSplines::new(rows))
    }

    unsafe fn cpu(&self, call: &BondedCall, (single, double): &Self::Tables, sums: &mut Sums) {
        // SAFETY: the call describes valid arrays of its precision (contract of this function)
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
            V::VARIABLE,
            V::FORCE
        ))
    }
}
