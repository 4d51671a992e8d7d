//! A pair potential as a component of the pipeline.

use super::object::ComponentInterface;
use super::tables::pair_table;
use crate::abi::views::{Step, Sums};
use crate::abi::{Object, TablePointer, WireCode};
use crate::device::precision::Precision;
use crate::device::quaternion::Quaternion;
use crate::device::real::Real;
use crate::device::vector::Vec3;
use crate::error::{Errors, InputError, Result};
use crate::kinds::component::{ArrayNeed, Needs, Registration, SystemInfo};
use crate::kinds::pair::{
    CentralFunction, CompiledPair, CutoffRow, Mixing, Mode, OrientedFn, OrientedFunction, OrientedInput, PairCall,
    PairConfiguration, PairFn, PairInput, PairOutput, PairPotential, apply_mode, inputs,
};
use crate::params::{Cell, FieldDoc, Fields, FromValue, Params, Range, Spanned, TypePairs, Value, varying::Varying};

/// Parameters of one pair of types: those of the potential, and an optional cutoff.
pub(super) struct Entry<P: PairPotential> {
    input: P::Input,
    r_cut: Option<f64>,
    r_on: Option<f64>,
    at: crate::error::Position,
}

/// Parameters of a pair of types: as the user has written them, or mixed or by default.
enum Found<'a, P: PairPotential> {
    Written(&'a Entry<P>),
    Made(Entry<P>),
}

impl<P: PairPotential> Found<'_, P> {
    fn entry(&self) -> &Entry<P> {
        match self {
            Self::Written(entry) => entry,
            Self::Made(entry) => entry,
        }
    }
}

const ABOVE_0: Range = Range { above: 0.0, ..Range::ANY };

impl<P: PairPotential> FromValue for Entry<P> {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut fields = Fields::new(value, errors)?;
        let (mut r_cut, mut r_on) = (Some(None), Some(None));
        if !P::OWN_CUTOFF {
            r_cut = fields.required("r_cut", ABOVE_0);
            r_on = fields.required("r_on", ABOVE_0);
        }
        let input = P::Input::take(&mut fields);
        fields.finish();
        Some(Self { input: input?, r_cut: r_cut?, r_on: r_on?, at: value.at() })
    }
    fn describe() -> String {
        let mut names: Vec<_> = P::Input::docs().into_iter().map(|d| d.name).collect();
        if names.is_empty() {
            names.push("r_cut".into());
        }
        format!("({}: …)", names.join(": …, "))
    }
    fn fields() -> Vec<FieldDoc> {
        if P::OWN_CUTOFF {
            return P::Input::docs();
        }
        let doc = |name: &str, default: &str, doc: &str| FieldDoc {
            extensions: vec![],
            name: name.into(),
            kind: f64::describe(),
            unit: "length".into(),
            default: Some(format!("`{default}` of the component")),
            range: ABOVE_0.to_string(),
            doc: doc.into(),
            fields: vec![],
        };
        let mut docs = P::Input::docs();
        docs.push(doc("r_cut", "r_cut", "Cutoff of this pair of types."));
        docs.push(doc("r_on", "mode", "Start of the smoothing of this pair of types, for `Smooth`."));
        docs
    }
}

/// A pair potential with its parameters.
pub struct PairComponent<P: PairPotential> {
    pub(super) at: crate::error::Position,
    pub(super) r_cut: Option<Spanned<f64>>,
    pub(super) mode: Mode,
    pub(super) mixing: Option<Mixing>,
    pub(super) potential: P,
    pub(super) pairs: TypePairs<Entry<P>>,
    pub(super) n_types: usize,
    pub(super) rows: Vec<P::Row>,
    pub(super) cutoff_rows: Vec<CutoffRow<f64>>,
    pub(super) tables: Option<P::Tables>,
}

impl<P: PairPotential> PairComponent<P> {
    fn parse(value: Value<'_>) -> Result<Self> {
        let mut errors = Errors::default();
        let made = Self::read(value, &mut errors);
        errors.into_result(made)
    }

    fn read(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut fields = Fields::new(value, errors)?;
        let (mut r_cut, mut mode) = (Some(None), Some(Mode::Cut));
        if !P::OWN_CUTOFF {
            r_cut = fields.required("r_cut", ABOVE_0);
            mode = fields.or("mode", ABOVE_0, Mode::default);
        }
        let mixing = if P::MIXES { fields.required("mixing", Range::ANY) } else { Some(None) };
        let settings = Params::take(&mut fields);
        let pairs: Option<TypePairs<Entry<P>>> = match P::default_parameters() {
            Some(_) => fields.or("pairs", Range::ANY, || TypePairs::empty(value.at())),
            None => fields.required("pairs", Range::ANY),
        };
        fields.finish();
        let (r_cut, mode, mixing, settings, pairs) = (r_cut?, mode?, mixing?, settings?, pairs?);
        let written: Vec<_> = pairs.iter().map(|(_, _, e)| (e.at, &e.input)).collect();
        let potential = P::new(settings, &written, errors)?;
        let (rows, cutoff_rows) = (vec![], vec![]);
        Some(Self {
            at: value.at(),
            r_cut,
            mode,
            mixing,
            potential,
            pairs,
            n_types: 0,
            rows,
            cutoff_rows,
            tables: None,
        })
    }

    fn docs() -> Vec<FieldDoc> {
        let number = |name: &str, kind: String, default: &str, doc: &str| FieldDoc {
            extensions: vec![],
            name: name.into(),
            kind,
            unit: String::new(),
            default: Some(default.into()),
            range: String::new(),
            doc: doc.into(),
            fields: vec![],
        };
        let shared = [
            FieldDoc {
                unit: "length".into(),
                range: ABOVE_0.to_string(),
                ..number(
                    "r_cut",
                    f64::describe(),
                    "from each pair",
                    "Cutoff of all pairs of types without their own `r_cut`.",
                )
            },
            number(
                "mode",
                if P::ORIENTED { "`Cut` or `Smooth(r_on)`".into() } else { Mode::describe() },
                "Cut",
                Mode::doc(P::ORIENTED),
            ),
        ];
        let mut docs: Vec<_> = shared.into_iter().filter(|_| !P::OWN_CUTOFF).collect();
        docs.extend(P::Settings::docs());
        if P::MIXES {
            docs.push(number(
                "mixing",
                Mixing::describe(),
                "none",
                "Parameters of pairs of unlike types without a row, from those of the like types. `LorentzBerthelot`:\n\
                 σ = (σ₁ + σ₂)/2, ε = √(ε₁ε₂). `Geometric`: σ = √(σ₁σ₂), ε = √(ε₁ε₂). `SixthPower`: σ⁶ = (σ₁⁶ + σ₂⁶)/2,\n\
                 ε = 2√(ε₁ε₂) σ₁³σ₂³/(σ₁⁶ + σ₂⁶). Cutoffs of single pairs are mixed as σ.",
            ));
        }
        docs.push(FieldDoc {
            default: P::default_parameters().map(|_| "defaults for all pairs of types".into()),
            fields: Entry::<P>::fields(),
            ..number("pairs", TypePairs::<Entry<P>>::describe(), "", "Parameters of each pair of types.")
        });
        docs
    }

    /// Returns the parameters of types i and j from those of the like types.
    fn mixed(&self, rule: Mixing, [a, b]: [&Entry<P>; 2]) -> Result<Entry<P>, String> {
        let length = |own: fn(&Entry<P>) -> Option<f64>, of_all: Option<f64>| match (own(a), own(b)) {
            (None, None) => None,
            (a, b) => a.or(of_all).zip(b.or(of_all)).map(|(a, b)| rule.length([a, b])),
        };
        let r_on = if let Mode::Smooth(on) = self.mode { Some(on) } else { None };
        Ok(Entry {
            input: P::mix([&a.input, &b.input], rule)?,
            r_cut: length(|e| e.r_cut, self.r_cut.as_ref().map(|r| r.value)),
            r_on: length(|e| e.r_on, r_on),
            at: self.at,
        })
    }

    /// Returns the parameters of each pair of types at i·n + j; `None` for a pair without interaction. Records missing pairs.
    fn entries(&self, types: &[String], errors: &mut Errors) -> Vec<Option<Found<'_, P>>> {
        let n = types.len();
        let cells = self.pairs.cells(types, errors);
        let like = |i: usize| match cells[i * (n + 1)] {
            Cell::Row(row) => Some(self.pairs.get(row)),
            _ => None,
        };
        let made = |i: usize, j: usize| {
            let pair = like(i).zip(like(j)).filter(|_| i != j);
            match (self.mixing.zip(pair), P::default_parameters()) {
                (Some((rule, (a, b))), _) => Some(self.mixed(rule, [a, b])),
                (None, Some(input)) => Some(Ok(Entry { input, r_cut: None, r_on: None, at: self.at })),
                (None, None) => None,
            }
        };
        let mut open = cells.clone();
        let mut found = vec![];
        for (k, cell) in cells.iter().enumerate() {
            let (i, j) = (k / n, k % n);
            found.push(match cell {
                Cell::Row(row) => Some(Found::Written(self.pairs.get(*row))),
                Cell::Off => None,
                Cell::Missing => made(i, j).and_then(|entry| {
                    open[k] = Cell::Off;
                    let wrong = |m: &String| InputError::at(self.at, format!("({}, {}): {m}", types[i], types[j]));
                    entry
                        .inspect_err(|m| {
                            if i < j {
                                errors.push(wrong(m))
                            }
                        })
                        .ok()
                        .map(Found::Made)
                }),
            });
        }
        self.pairs.require(&open, types, errors);
        found
    }

    /// Builds the rows of all pairs of types.
    fn bind_rows(&self, system: &SystemInfo, errors: &mut Errors) -> (Vec<P::Row>, Vec<CutoffRow<f64>>) {
        let (types, n) = (&system.types, system.types.len());
        let entries = self.entries(types, errors);
        let (mut rows, mut cutoff_rows) = (vec![], vec![]);
        let mut reported: Vec<(crate::error::Position, String)> = vec![];
        let some = entries.iter().position(Option::is_some);
        if some.is_none() && n > 0 && errors.0.is_empty() {
            errors.push(InputError::at(self.at, "every pair of types is `None`; remove the component"));
        }
        let of_component = |e: &Option<Found<'_, P>>| e.as_ref().is_some_and(|e| e.entry().r_cut.is_none());
        if let Some(r) = self.r_cut.as_ref().filter(|_| entries.iter().any(of_component))
            && let Some(message) = system.beyond_half_box("r_cut", r.value)
        {
            errors.push(InputError::at(r.at, message));
        }
        let Some(some) = some.filter(|_| errors.0.is_empty()) else { return (rows, cutoff_rows) };
        for k in 0..entries.len() {
            // a pair without interaction has the row of another one, and no distance is below its cutoff
            let (from, off) = if entries[k].is_some() { (k, false) } else { (some, true) };
            let Some(entry) = entries[from].as_ref().map(Found::entry) else { continue };
            match self.rows_of(entry, system, [&types[from / n], &types[from % n]]) {
                Ok((row, cutoff)) => {
                    rows.push(row);
                    cutoff_rows.push(if off { CutoffRow { cutoff2: 0.0, ..cutoff } } else { cutoff });
                }
                // the rows of (i, j) and (j, i) are the same: report a mistake once
                Err(message) => {
                    let mistake = (entry.at, message);
                    if !reported.contains(&mistake) {
                        errors.push(InputError::at(mistake.0, mistake.1.clone()));
                        reported.push(mistake);
                    }
                }
            }
        }
        (rows, cutoff_rows)
    }

    /// Builds the rows of one pair of types.
    fn rows_of(
        &self,
        entry: &Entry<P>,
        system: &SystemInfo,
        types: [&str; 2],
    ) -> Result<(P::Row, CutoffRow<f64>), String> {
        let cutoff = entry
            .r_cut
            .or(self.r_cut.as_ref().map(|r| r.value))
            .or_else(|| self.potential.cutoff(&entry.input, system))
            .ok_or("missing cutoff: add `r_cut` here or to the component")?;
        if let Some(message) = system.beyond_half_box("r_cut", cutoff) {
            return Err(message);
        }
        let row = self.potential.row_between(&entry.input, cutoff, types)?;
        let mut cutoff_row = CutoffRow { cutoff2: cutoff * cutoff, cutoff, ..CutoffRow::default() };
        if self.mode.shifts() {
            let pose = PairConfiguration { r: [cutoff, 0.0, 0.0], ..PairConfiguration::default() };
            let at_cutoff = self.potential.evaluate(&self.unit_pair(&pose, cutoff), &row);
            cutoff_row = CutoffRow { energy_shift: at_cutoff.energy, force_shift: at_cutoff.force.x, ..cutoff_row };
        }
        if entry.r_on.is_some() && !matches!(self.mode, Mode::Smooth(_)) {
            return Err("`r_on` requires `mode: Smooth(r_on)`".into());
        }
        if let Mode::Smooth(on) = self.mode {
            let on = entry.r_on.unwrap_or(on);
            if on >= cutoff {
                return Err(format!("r_on = {on} must be below r_cut = {cutoff}"));
            }
            cutoff_row.on2 = on * on;
            cutoff_row.smooth_norm = (cutoff_row.cutoff2 - cutoff_row.on2).powi(-3);
        }
        system.check_row(&P::numbers(&row)).and_then(|()| system.check_constants(&self.potential.constants()))?;
        let infinite = |x: &f64| !x.is_finite() || system.precision() != Precision::Double && !(*x as f32).is_finite();
        if cutoff_row.numbers().iter().any(infinite) {
            return Err("these parameters give an infinite or undefined value at the cutoff".into());
        }
        Ok((row, cutoff_row))
    }

    /// Creates the input for a pair with charges and diameters of 1, in step 0 with dt = 1.
    fn unit_pair(&self, pose: &PairConfiguration, r_cut: f64) -> OrientedInput<f64> {
        let turned = |[x, y, z, w]: [f64; 4]| Quaternion::new(x, y, z, w);
        let (r, qi, qj) = (Vec3::from(pose.r), turned(pose.quaternion_i), turned(pose.quaternion_j));
        let varyings = self.potential.varyings();
        let varying = std::array::from_fn(|k| varyings.get(k).map_or(0.0, |v| v.at(0)));
        let step = Step { dt: 1.0, inv_sqrt_dt: 1.0, step: 0, varying };
        let mut pair = PairInput { r2: r.norm2(), r_cut, step, ..PairInput::default() };
        (pair.charge_i, pair.charge_j, pair.diameter_i, pair.diameter_j) = (1.0, 1.0, 1.0, 1.0);
        OrientedInput { pair, r, axis_i: qi.axis(), axis_j: qj.axis(), quaternion_i: qi, quaternion_j: qj }
    }
}

/// Methods of `pair/1`.
pub trait PairInterface: ComponentInterface {
    /// Returns force, torque and energy of particle i, with cutoff and mode, for charges and diameters of 1.
    fn evaluate(&self, i: u32, j: u32, pose: &PairConfiguration) -> PairOutput<f64>;
    /// Runs the CPU loop.
    ///
    /// # Errors
    /// Returns an error only for a panic, which the boundary catches.
    ///
    /// # Safety
    /// As [`crate::pair::cpu::run`].
    unsafe fn cpu(&self, call: &PairCall, sums: &mut Sums) -> Result<()>;
    /// Returns source text and parameter rows.
    ///
    /// # Errors
    /// Returns an error if two device functions have the same name.
    fn device(&self, precision: Precision) -> Result<WireCode>;
}

impl<P: PairPotential> ComponentInterface for PairComponent<P> {
    fn bind(&mut self, system: &SystemInfo) -> Result<Needs> {
        let mut errors = Errors::default();
        if let Err(message) = self.potential.check() {
            errors.push(InputError::at(self.at, message));
            return errors.into_result(None);
        }
        self.potential.bind(system)?;
        let n = system.types.len();
        let (rows, cutoff_rows) = self.bind_rows(system, &mut errors);
        if !errors.0.is_empty() {
            return errors.into_result(None);
        }
        let used = self.potential.inputs();
        let conditions = used & (inputs::VELOCITY | inputs::RANDOM) != 0;
        if conditions && self.mode != Mode::Cut {
            errors.push(InputError::at(self.at, "a velocity-dependent pair force has no potential: use `mode: Cut`"));
        }
        if P::ORIENTED && self.mode.shifts() {
            errors.push(InputError::at(
                self.at,
                "U at the cutoff depends on orientations and cannot be shifted: use `Cut` or `Smooth(r_on)`",
            ));
        }
        let array = |name: &str| ArrayNeed { name: name.into(), width: 1, integer: false, required: true };
        let mut arrays = vec![];
        if P::ORIENTED {
            arrays.push(ArrayNeed { width: 4, ..array("quaternion") });
        }
        if used & inputs::CHARGE != 0 {
            arrays.push(array("charge"));
        }
        if used & inputs::DIAMETER != 0 {
            arrays.push(array("diameter"));
        }
        for need in arrays.iter().filter(|n| n.required && !system.has_array(&n.name)) {
            let message = format!("particles have no `{}`: add it to the initial state", need.name);
            errors.push(InputError::at(self.at, message));
        }
        if !errors.0.is_empty() {
            return errors.into_result(None);
        }
        self.n_types = n;
        self.tables = Some(self.potential.tables(n, &rows, &cutoff_rows, self.mode));
        (self.rows, self.cutoff_rows) = (rows, cutoff_rows);
        let written: Vec<&P::Input> = self.pairs.iter().map(|(_, _, e)| &e.input).collect();
        Ok(Needs {
            arrays,
            varyings: self.potential.varyings(),
            warnings: self.potential.warnings_of(&written),
            kt: self.potential.kt().map(Varying::constant),
            cutoff: self.cutoff_rows.iter().fold(0.0, |m, r| m.max(r.cutoff)),
            // friction and noise have no energy
            conservative: !conditions,
            triclinic: true,
            ..Needs::default()
        })
    }

    fn table(name: &str) -> Option<TablePointer> {
        (name == "pair/1").then(pair_table::<Self>)
    }
}

impl<P: PairPotential> PairInterface for PairComponent<P> {
    fn evaluate(&self, i: u32, j: u32, pose: &PairConfiguration) -> PairOutput<f64> {
        let index = i as usize * self.n_types + j as usize;
        let (Some(row), Some(cutoff)) = (self.rows.get(index), self.cutoff_rows.get(index)) else {
            return PairOutput { energy: f64::NAN, ..PairOutput::default() };
        };
        let input = self.unit_pair(pose, cutoff.cutoff);
        let r2 = input.pair.r2;
        if r2 >= cutoff.cutoff2 {
            return PairOutput::default();
        }
        let bare = self.potential.evaluate(&input, row);
        if P::ORIENTED {
            return if let Mode::Smooth(_) = self.mode { bare.smooth(r2, input.r, cutoff) } else { bare };
        }
        // the shifts in the rows are those for charges and diameters of 1
        let f_over_r = bare.over_r(input.r);
        let (f_over_r, energy) = apply_mode(self.mode.number(), r2, (f_over_r, bare.energy), cutoff);
        PairOutput::central(input.r, f_over_r, energy)
    }

    unsafe fn cpu(&self, call: &PairCall, sums: &mut Sums) -> Result<()> {
        if let Some(tables) = &self.tables {
            // SAFETY: the contract of this function is passed on
            unsafe { self.potential.cpu(call, tables, sums) };
        }
        Ok(())
    }

    fn device(&self, precision: Precision) -> Result<WireCode> {
        fn bytes<R: Real>(numbers: impl Iterator<Item = f64>) -> Vec<u8> {
            let mut out = vec![];
            numbers.for_each(|x| R::lit(x).push_bytes(&mut out));
            out
        }
        let mut rows: Vec<f64> = self.rows.iter().flat_map(P::numbers).collect();
        self.potential.more_numbers(&mut rows);
        let rows = rows.into_iter();
        let cutoff = self.cutoff_rows.iter().flat_map(CutoffRow::numbers);
        let (rows, cutoff_rows) = match precision {
            Precision::Double => (bytes::<f64>(rows), bytes::<f64>(cutoff)),
            _ => (bytes::<f32>(rows), bytes::<f32>(cutoff)),
        };
        // constants that the fused loop reads
        let (text, mode) = (self.potential.text()?, self.mode.number());
        // only shifts depend on this input
        let used = self.potential.inputs() & if self.mode.shifts() { u32::MAX } else { !inputs::STEP };
        let text = format!(
            "{text}\nstatic constexpr unsigned int inputs = {used}u;\nstatic constexpr unsigned int mode = {mode}u;\n\
             static constexpr bool oriented = {};\n",
            P::ORIENTED
        );
        Ok(WireCode { text: text.into(), rows: rows.into(), cutoff_rows: cutoff_rows.into() })
    }
}

impl Registration {
    /// Registers a compiled pair potential.
    pub const fn pair<F: PairFn>(name: &'static str, doc: &'static str) -> Self {
        Self::pair_potential::<CompiledPair<CentralFunction<F>>>(name, doc)
    }

    /// Registers a compiled pair potential of oriented particles.
    pub const fn oriented_pair<F: OrientedFn>(name: &'static str, doc: &'static str) -> Self {
        Self::pair_potential::<CompiledPair<OrientedFunction<F>>>(name, doc)
    }

    /// Registers a pair potential.
    pub const fn pair_potential<P: PairPotential>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            former_names: &[],
            kind: P::KIND,
            doc,
            fields: PairComponent::<P>::docs,
            create: |name, value| PairComponent::<P>::parse(value).map(|c| Object::new(name, c)),
        }
    }
}
