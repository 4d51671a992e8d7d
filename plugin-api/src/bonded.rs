//! Bonded potentials: a function gives U and its derivative for one bond, angle or dihedral; the loop is done once for
//! all.
//!
//! Every particle gathers the forces of its own links, so nothing is added from two threads at once and the sum has
//! one order. Angles and dihedrals are links of width 3 and 4 in the same tables.

use crate::abi::{Table, WireCode};
use crate::angles::{angles, dihedrals};
use crate::component::{Kind, Needs, Registration, SystemInfo};
use crate::device::{DeviceText, assemble};
use crate::error::{Error, Errors, InputError, Result};
use crate::guard::{Common, Object, bonded_table};
use crate::pair::{Row, RowInput};
use crate::params::{FieldDoc, Fields, FromValue, Params, Range, Spanned, TypeMap, Value};
use crate::precision::{Fixed, Float64, Precision, Scheme};
use crate::real::Real;
use crate::views::{Fault, FaultKind, Globals, LinkView, StateView, Step, Sums, Wanted};
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

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
#[derive(Clone, Copy, Debug)]
pub struct BondedCall {
    /// Size of this struct in bytes.
    pub size: u32,
    /// First particle.
    pub begin: u32,
    /// One past the last particle.
    pub end: u32,
    /// The component's first slot in [`Globals::values`].
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
pub struct BondComponent<F: BondFn> {
    settings: <F::Input as RowInput>::Settings,
    bonds: TypeMap<Spanned<F::Input>>,
    single: Vec<F::Row<f32>>,
    double: Vec<F::Row<f64>>,
    numbers: Vec<f64>,
}

impl<F: BondFn> BondComponent<F> {
    fn parse(value: Value<'_>) -> Result<Self> {
        let mut errors = Errors::default();
        let made = Fields::new(value, &mut errors).and_then(|mut fields| {
            let settings = Params::take(&mut fields);
            let bonds = fields.required(links_of(F::WIDTH).0, Range::ANY);
            fields.finish();
            Some(Self { settings: settings?, bonds: bonds?, single: vec![], double: vec![], numbers: vec![] })
        });
        errors.into_result(made)
    }

    fn docs() -> Vec<FieldDoc> {
        let mut docs = <<F::Input as RowInput>::Settings as Params>::docs();
        docs.push(FieldDoc {
            name: links_of(F::WIDTH).0.into(),
            kind: TypeMap::<Spanned<F::Input>>::describe(),
            unit: String::new(),
            default: None,
            range: String::new(),
            doc: format!("Parameters of each {} type.", links_of(F::WIDTH).1),
            fields: F::Input::docs(),
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

impl<F: BondFn> Common for BondComponent<F> {
    fn bind(&mut self, system: &SystemInfo) -> Result<Needs> {
        let mut errors = Errors::default();
        let mut rows = vec![];
        let (_, what, types) = links_of(F::WIDTH);
        if let Some(table) = self.bonds.bind(what, types(system), &mut errors) {
            for entry in table {
                match entry.value.row(&self.settings) {
                    Ok(row) => rows.push(row),
                    Err(message) => errors.push(InputError::at(entry.at, message)),
                }
            }
        }
        if !errors.0.is_empty() {
            return errors.into_result(None);
        }
        self.single = rows.iter().map(|r| r.cast::<f32>()).collect();
        self.double = rows.iter().map(|r| r.cast::<f64>()).collect();
        self.numbers = rows.iter().flat_map(Row::numbers).collect();
        Ok(Needs { link_width: F::WIDTH, varyings: F::Input::varyings(&self.settings), ..Needs::default() })
    }

    fn table(name: &str) -> Option<Table> {
        (name == "bonded/1").then(bonded_table::<Self>)
    }
}

impl<F: BondFn> Bonding for BondComponent<F> {
    unsafe fn cpu(&self, call: &BondedCall, sums: &mut Sums) -> Result<()> {
        // SAFETY: the caller's word
        unsafe {
            let double = (*call.state).precision == Precision::Double as u32;
            match (F::WIDTH, double) {
                (2, true) => bonds::<F, Float64>(call, &self.double, sums),
                (2, false) => bonds::<F, Fixed>(call, &self.single, sums),
                (3, true) => angles::<F, Float64>(call, &self.double, sums),
                (3, false) => angles::<F, Fixed>(call, &self.single, sums),
                (_, true) => dihedrals::<F, Float64>(call, &self.double, sums),
                (_, false) => dihedrals::<F, Fixed>(call, &self.single, sums),
            }
        }
        Ok(())
    }

    fn device(&self, precision: Precision) -> Result<WireCode> {
        let mut rows = vec![];
        for x in &self.numbers {
            match precision {
                Precision::Double => x.push_bytes(&mut rows),
                _ => (*x as f32).push_bytes(&mut rows),
            }
        }
        let text = assemble(&[F::eval_text()]).map_err(Error::Run)?;
        Ok(WireCode { text: text.into(), rows: rows.into(), loop_rows: crate::abi::RVec::new() })
    }
}

/// A force F/r below this is −∞ in f32.
const BROKEN: f64 = -3.4e38;

// the tags of a fault are changed together, as one number of 64 bits
const _: () = assert!(
    offset_of!(Fault, detail) == offset_of!(Fault, tag) + 4
        && (offset_of!(Globals, fault) + offset_of!(Fault, tag)).is_multiple_of(8)
        && cfg!(target_endian = "little")
);

/// Notes that a bond is longer than its potential allows; of several the one with the smallest tags stays, whatever the
/// order of the threads.
unsafe fn bond_fault(globals: *mut Globals, component: u32, tags: [u32; 2]) {
    let (low, high) = (u64::from(tags[0].min(tags[1])), u64::from(tags[0].max(tags[1])));
    // SAFETY: the globals outlive the call; these words are only touched by atomics while forces are computed
    unsafe {
        let fault = &raw mut (*globals).fault;
        let place = AtomicU64::from_ptr((&raw mut (*fault).tag).cast());
        // in memory the tag, the smaller of the two, stands before the detail
        let first = place.fetch_update(Ordering::AcqRel, Ordering::Acquire, |seen| {
            (low << 32 | high < seen.rotate_left(32)).then_some(high << 32 | low)
        });
        if first.is_ok() {
            AtomicU32::from_ptr(&raw mut (*fault).component).store(component, Ordering::Relaxed);
        }
        AtomicU32::from_ptr(&raw mut (*fault).code).store(FaultKind::BondTooLong as u32, Ordering::Release);
        AtomicU32::from_ptr(&raw mut (*globals).halt).store(1, Ordering::Release);
    }
}

/// Adds the forces of bonds on particles begin … end.
unsafe fn bonds<F: BondFn, S: Scheme>(call: &BondedCall, rows: &[F::Row<S::Real>], sums: &mut Sums) {
    // SAFETY: the caller's word: valid arrays, indices below n, kinds below the number of rows
    unsafe {
        let (state, links) = (&*call.state, &*call.links);
        let globals: &Globals = &*state.globals.host();
        let scale = globals.scale::<S>();
        let pos = state.pos_type.cast::<S::PosType>().host().cast_const();
        let force = state.force.cast::<[S::Real; 4]>().host();
        let words = links.words.host().cast_const();
        let stride = links.stride as usize;
        let step = Step::new(globals, call.first_varying);
        for i in call.begin as usize..call.end as usize {
            let pi = *pos.add(i);
            let out = &mut *force.add(i);
            for e in 0..*links.count.host().add(i) as usize {
                let j = *words.add(2 * e * stride + i) as usize;
                let kind = *words.add((2 * e + 1) * stride + i) as usize / 4;
                let d = S::difference(&pi, &*pos.add(j), &scale);
                let input = BondInput { r2: d.norm2(), step, ..BondInput::default() };
                let (f, u) = F::eval(&input, &rows[kind]);
                if f < S::Real::lit(BROKEN) {
                    let tag = state.tag.host().cast_const();
                    bond_fault(state.globals.host(), call.component, [*tag.add(i), *tag.add(j)]);
                }
                let fd = d * f;
                out[0] += fd.x;
                out[1] += fd.y;
                out[2] += fd.z;
                if call.wanted.more_than_force() {
                    // a bond is met twice, once from each end
                    let half_u = 0.5 * u.f64();
                    out[3] += S::Real::lit(half_u);
                    sums.energy += half_u;
                    let ([x, y, z], [fx, fy, fz]) = (d.f64(), fd.f64());
                    for (w, term) in sums.virial.iter_mut().zip([x * fx, x * fy, x * fz, y * fy, y * fz, z * fz]) {
                        *w += 0.5 * term;
                    }
                }
            }
        }
    }
}

impl Registration {
    /// A bond, angle or dihedral potential.
    pub const fn bond<F: BondFn>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Bonded,
            doc,
            fields: BondComponent::<F>::docs,
            create: |name, value| BondComponent::<F>::parse(value).map(|c| Object::new(name, c)),
        }
    }
}
