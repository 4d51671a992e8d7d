//! Bonded potentials: a function gives U and its derivative for one bond, angle or dihedral; the loop is done once for
//! all.
//!
//! Every particle gathers the forces of its own links, so nothing is added from two threads at once and the sum has
//! one order. Angles and dihedrals are links of width 3 and 4 in the same tables.

use crate::abi::{Table, WireCode};
use crate::bond_potential::{BondPotential, Compiled};
use crate::component::{Kind, Needs, Registration, SystemInfo};
use crate::device::DeviceText;
use crate::error::{Errors, InputError, Result};
use crate::guard::{Common, Object, bonded_table};
use crate::pair::{Row, RowInput};
use crate::params::{FieldDoc, Fields, FromValue, Params, Range, Spanned, TypeMap, Value};
use crate::precision::Precision;
use crate::real::Real;
use crate::views::{LinkView, StateView, Step, Sums, Wanted};

/// What a bond, angle or dihedral function can see.
#[derive(Clone, Copy, Debug, Default)]
pub struct BondInput<R> {
    /// r², square of the bond length.
    pub r2: R,
    /// θ at the middle particle of an angle, 0 … π; φ of a dihedral, −π … π, 0 for cis.
    pub angle: R,
    /// Its cosine.
    pub cos: R,
    /// Its sine.
    pub sin: R,
    /// The step.
    pub step: Step<R>,
}

/// A bonded function, as a type; made by `#[bond_potential]`, `#[angle_potential]` or `#[dihedral_potential]`.
pub trait BondFn: Send + Sync + 'static {
    /// Its row over a number type.
    type Row<R: Real>: Copy + Send + Sync;
    /// What the user writes for one bond type.
    type Input: RowInput<Row: Row<As<f32> = Self::Row<f32>, As<f64> = Self::Row<f64>>>;
    /// Members of a link: 2, 3 or 4.
    const WIDTH: u32;
    /// Bonds: (F/r, U) with F = −dU/dr; F/r = −∞ for a bond that is longer than its potential allows, which ends the run.
    /// Angles: (dU/dcos θ, U). Dihedrals: (dU/dφ, U).
    fn eval<R: Real>(input: &BondInput<R>, row: &Self::Row<R>) -> (R, R);
    /// CUDA text of `bond_eval`.
    fn eval_text() -> &'static DeviceText;
}

/// One call of the CPU loop.
#[repr(C)]
#[derive(Clone, Copy, Debug, galamost_plugin_macros::Layout)]
pub struct BondedCall {
    /// Size of this struct in bytes.
    pub size: u32,
    /// First particle.
    pub begin: u32,
    /// One past the last particle.
    pub end: u32,
    /// The component's first slot in [`crate::views::Globals::values`].
    pub first_varying: u32,
    /// Number of the component, for faults.
    pub component: u32,
    /// 0.
    pub reserved0: u32,
    /// What is wanted besides forces.
    pub wanted: Wanted,
    /// The state.
    pub state: *const StateView,
    /// The links.
    pub links: *const LinkView,
    /// 0.
    pub reserved: [u64; 4],
}

// SAFETY: the call only carries addresses; the loop it describes writes rows begin … end of the force array, which no
// other call under way writes
unsafe impl Send for BondedCall {}
// SAFETY: as above
unsafe impl Sync for BondedCall {}

/// What links of a width are called, and their types' list in [`SystemInfo`].
fn links_of(width: u32) -> (&'static str, &'static str, fn(&SystemInfo) -> &[String]) {
    match width {
        2 => ("bonds", "bond", |s| &s.bond_types),
        3 => ("angles", "angle", |s| &s.angle_types),
        _ => ("dihedrals", "dihedral", |s| &s.dihedral_types),
    }
}

/// A bonded potential in a run.
pub struct BondComponent<P: BondPotential> {
    potential: P,
    bonds: TypeMap<Spanned<P::Input>>,
    rows: Vec<P::Row>,
    tables: Option<P::Tables>,
}

impl<P: BondPotential> BondComponent<P> {
    fn parse(value: Value<'_>) -> Result<Self> {
        let mut errors = Errors::default();
        let made = Self::read(value, &mut errors);
        errors.into_result(made)
    }

    fn read(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut fields = Fields::new(value, errors)?;
        let settings = Params::take(&mut fields);
        let bonds: Option<TypeMap<Spanned<P::Input>>> = fields.required(links_of(P::WIDTH).0, Range::ANY);
        fields.finish();
        let (settings, bonds) = (settings?, bonds?);
        let written: Vec<_> = bonds.iter().map(|(_, entry)| (entry.at, &entry.value)).collect();
        let potential = P::new(settings, &written, errors)?;
        Some(Self { potential, bonds, rows: vec![], tables: None })
    }

    fn docs() -> Vec<FieldDoc> {
        let mut docs = P::Settings::docs();
        docs.push(FieldDoc {
            extensions: vec![],
            name: links_of(P::WIDTH).0.into(),
            kind: TypeMap::<Spanned<P::Input>>::describe(),
            unit: String::new(),
            default: None,
            range: String::new(),
            doc: format!("Parameters of each {} type.", links_of(P::WIDTH).1),
            fields: P::Input::docs(),
        });
        docs
    }
}

/// What the guard hands out as `bonded/1`.
pub trait Bonding: Common {
    /// The CPU loop.
    ///
    /// # Errors
    /// None of its own; the guard turns a panic into one.
    ///
    /// # Safety
    /// `call` must describe valid host arrays, whose force rows begin … end nobody else touches.
    unsafe fn cpu(&self, call: &BondedCall, sums: &mut Sums) -> Result<()>;
    /// Source and rows.
    ///
    /// # Errors
    /// Two device functions of one name.
    fn device(&self, precision: Precision) -> Result<WireCode>;
}

impl<P: BondPotential> Common for BondComponent<P> {
    fn bind(&mut self, system: &SystemInfo) -> Result<Needs> {
        self.potential.bind(system)?;
        let mut errors = Errors::default();
        let mut rows = vec![];
        let (_, what, types) = links_of(P::WIDTH);
        if let Some(table) = self.bonds.bind(what, types(system), &mut errors) {
            for entry in table {
                match self.potential.row(&entry.value) {
                    Ok(row) => rows.push(row),
                    Err(message) => errors.push(InputError::at(entry.at, message)),
                }
            }
        }
        if !errors.0.is_empty() {
            return errors.into_result(None);
        }
        self.tables = Some(self.potential.tables(&rows));
        self.rows = rows;
        Ok(Needs { link_width: P::WIDTH, varyings: self.potential.varyings(), ..Needs::default() })
    }

    fn table(name: &str) -> Option<Table> {
        (name == "bonded/1").then(bonded_table::<Self>)
    }
}

impl<P: BondPotential> Bonding for BondComponent<P> {
    unsafe fn cpu(&self, call: &BondedCall, sums: &mut Sums) -> Result<()> {
        if let Some(tables) = &self.tables {
            // SAFETY: the caller's word
            unsafe { self.potential.cpu(call, tables, sums) };
        }
        Ok(())
    }

    fn device(&self, precision: Precision) -> Result<WireCode> {
        let mut numbers: Vec<f64> = self.rows.iter().flat_map(P::numbers).collect();
        self.potential.more_numbers(&mut numbers);
        let mut rows = vec![];
        for x in numbers {
            match precision {
                Precision::Double => x.push_bytes(&mut rows),
                _ => (x as f32).push_bytes(&mut rows),
            }
        }
        Ok(WireCode { text: self.potential.text()?.into(), rows: rows.into(), cutoff_rows: crate::abi::RVec::new() })
    }
}

impl Registration {
    /// A bond, angle or dihedral potential that was compiled with the plugin.
    pub const fn bond<F: BondFn>(name: &'static str, doc: &'static str) -> Self {
        Self::bond_potential::<Compiled<F>>(name, doc)
    }

    /// A bond, angle or dihedral potential.
    pub const fn bond_potential<P: BondPotential>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Bonded,
            doc,
            fields: BondComponent::<P>::docs,
            create: |name, value| BondComponent::<P>::parse(value).map(|c| Object::new(name, c)),
        }
    }
}
