//! A bonded potential as a component of the pipeline.

use super::object::ComponentInterface;
use super::tables::bonded_table;
use crate::abi::views::Sums;
use crate::abi::{Object, RVec, TablePointer, WireCode};
use crate::device::precision::Precision;
use crate::device::real::Real;
use crate::error::{Error, Errors, InputError, Result};
use crate::kinds::bonded::potential::{BondPotential, CompiledBond};
use crate::kinds::bonded::{BondFn, BondedCall};
use crate::kinds::component::{Kind, Needs, Registration, SystemInfo};
use crate::params::{FieldDoc, Fields, FromValue, Params, Range, Spanned, TypeMap, Value};
use crate::snapshot::LinkList;

/// Forces are products of parameters and factors below this number, such as 2k of a harmonic bond.
const LARGEST_FACTOR: f64 = 64.0;

/// Box lengths whose links have squared lengths in the range of single precision, down to 10⁻⁴ of the box.
const SINGLE_PRECISION: std::ops::RangeInclusive<f64> = 1e-14..=1e18;

/// Returns an error if squares of lengths leave the range of single precision.
fn check_box(system: &SystemInfo) -> Result<()> {
    let mut lengths = system.box_length.iter().take(system.dimensions as usize).filter(|l| **l > 0.0);
    match lengths.find(|l| system.precision() != Precision::Double && !SINGLE_PRECISION.contains(*l)) {
        None => Ok(()),
        Some(l) => Err(Error::input(format!(
            "the box length {l:.1e} is out of range for bonded forces in {} precision; use units in which lengths are \
             nearer to 1, or `precision: Double`",
            system.precision().name()
        ))),
    }
}

/// A bonded potential with its parameters.
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
        let others = LinkList::ALL.into_iter().filter(|list| *list != P::LIST);
        if let Some((key, other)) = others.filter_map(|list| Some((fields.stray(list.name())?, list.name()))).next() {
            let own = P::LIST.name();
            let message = format!("this potential acts on {own}: give `{own}: {{ … }}`, or use a potential of {other}");
            fields.errors.push(key.error(message));
            return None;
        }
        let bonds: Option<TypeMap<Spanned<P::Input>>> = fields.required(P::LIST.name(), Range::ANY);
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
            name: P::LIST.name().into(),
            kind: TypeMap::<Spanned<P::Input>>::describe(),
            unit: String::new(),
            default: None,
            range: String::new(),
            doc: format!(
                "Parameters of {} types, `\"*\"` for all; later rows win. Each type needs a row in one of the components; \
                 `None` if no force acts on it.",
                P::LIST.one()
            ),
            fields: P::Input::docs(),
        });
        docs
    }
}

/// Methods of `bonded/1`.
pub trait BondedInterface: ComponentInterface {
    /// Runs the CPU loop.
    ///
    /// # Errors
    /// Returns an error only for a panic, which the boundary catches.
    ///
    /// # Safety
    /// `call` must describe valid host arrays, and no other thread may access force rows begin … end during the call.
    unsafe fn cpu(&self, call: &BondedCall, sums: &mut Sums) -> Result<()>;
    /// Returns source text and parameter rows.
    ///
    /// # Errors
    /// Returns an error if two device functions have the same name.
    fn device(&self, precision: Precision) -> Result<WireCode>;
}

impl<P: BondPotential> ComponentInterface for BondComponent<P> {
    fn bind(&mut self, system: &SystemInfo) -> Result<Needs> {
        check_box(system)?;
        self.potential.bind(system)?;
        let mut errors = Errors::default();
        let mut rows = vec![];
        let (what, types) = (P::LIST.one(), system.link_types(P::LIST));
        let mut unknown = Errors::default();
        let table = self.bonds.bind_some(what, types, &mut unknown);
        let unnamed = table.iter().all(Option::is_none) && !table.is_empty();
        if unnamed || (table.iter().any(|entry| entry.flatten().is_none()) && self.potential.inert().is_none()) {
            // names the unknown and the missing types
            self.bonds.bind(what, types, &mut errors);
        } else {
            unknown.0.into_iter().for_each(|e| errors.push(e));
        }
        let complete = errors.0.is_empty();
        for entry in table.iter().filter(|_| complete) {
            if let Some(entry) = entry.flatten()
                && let Some((name, length)) = P::length(&entry.value)
                && let Some(message) = system.beyond_half_box(name, length)
            {
                errors.push(InputError::at(entry.at, message));
            }
            let row_of = |value: &_| {
                let row = self.potential.row(value)?;
                system.check_constants(&self.potential.constants())?;
                system.check_products(&P::numbers(&row), LARGEST_FACTOR).map(|()| row)
            };
            match entry.flatten().map(|entry| row_of(&entry.value).map_err(|m| (entry.at, m))) {
                Some(Ok(row)) => rows.push(row),
                Some(Err((at, message))) => errors.push(InputError::at(at, message)),
                None => rows.extend(self.potential.inert()),
            }
        }
        let named = table.iter().zip(0..).filter(|(entry, _)| entry.is_some()).map(|(_, k)| k).collect();
        if !errors.0.is_empty() {
            return errors.into_result(None);
        }
        self.tables = Some(self.potential.tables(&rows));
        self.rows = rows;
        Ok(Needs {
            links: Some(P::LIST),
            link_types: Some(named),
            varyings: self.potential.varyings(),
            warnings: self.potential.warnings(),
            triclinic: true,
            ..Needs::default()
        })
    }

    fn table(name: &str) -> Option<TablePointer> {
        (name == "bonded/1").then(bonded_table::<Self>)
    }
}

impl<P: BondPotential> BondedInterface for BondComponent<P> {
    unsafe fn cpu(&self, call: &BondedCall, sums: &mut Sums) -> Result<()> {
        if let Some(tables) = &self.tables {
            // SAFETY: the contract of this function is passed on
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
        Ok(WireCode { text: self.potential.text()?.into(), rows: rows.into(), cutoff_rows: RVec::new() })
    }
}

impl Registration {
    /// Registers a compiled bond, angle, dihedral or improper potential.
    pub const fn bond<F: BondFn>(name: &'static str, doc: &'static str) -> Self {
        Self::bond_potential::<CompiledBond<F>>(name, doc)
    }

    /// Registers a bond, angle, dihedral or improper potential.
    pub const fn bond_potential<P: BondPotential>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            former_names: &[],
            kind: Kind::Bonded,
            doc,
            fields: BondComponent::<P>::docs,
            create: |name, value| BondComponent::<P>::parse(value).map(|c| Object::new(name, c)),
        }
    }
}
