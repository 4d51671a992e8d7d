//! Reads a frame.

use crate::names::warn_of_masses;
use crate::pdb::columns::{Extra, ascii, columns, field, known, molecule, number, real, record};
use crate::pdb::common::{Common, Crystal, Join, conect, cryst1, remark};
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::prelude::{Array, InputError, Link, Snapshot, Values};
use galamost_plugin_api::snapshot::intern;
use galamost_text::{Lines, Result, Shape};
use std::collections::HashMap;

/// Definition of molecules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Molecules {
    Residues,
    Chains,
    Bonds,
}

impl FromValue for Molecules {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Residues" => Some(Self::Residues),
            "Chains" => Some(Self::Chains),
            "Bonds" => Some(Self::Bonds),
            text => {
                errors.push(value.error(format!("expected {}, found `{text}`", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Residues`, `Chains` or `Bonds`".into()
    }
}

/// Options of the generator.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Å per unit of length.
    pub scale: Option<f64>,
    /// Type names, in order.
    pub types: Vec<String>,
    /// Masses of the types.
    pub masses: Option<Vec<f64>>,
    /// Box lengths, for a file without a box.
    pub length: Option<[f64; 3]>,
    /// Whether the system is two-dimensional.
    pub flat: bool,
    pub molecules: Option<Molecules>,
    pub occupancy: Option<Extra>,
    pub b_factor: Option<Extra>,
}

/// Skips a frame: up to ENDMDL, or to END or the end of the file in a file without models.
pub fn skip(l: &mut Lines) -> Result<bool> {
    let (mut begun, mut model) = (false, false);
    while l.next()? {
        match record(l.line()) {
            "MODEL" => (begun, model) = (true, true),
            "ATOM" | "HETATM" => begun = true,
            "ENDMDL" | "END" if begun => return Ok(true),
            _ => {}
        }
    }
    if begun && !model && l.ended().is_ok() {
        l.warn("the file ends without END; it is read as complete");
        return Ok(true);
    }
    let cut =
        "the file ends without ENDMDL or END after its atoms; it may be truncated. If it is complete, add a line END";
    if begun { Err(l.wrong(cut)) } else { Ok(false) }
}

/// Particles of a frame while it is read.
#[derive(Default)]
struct Atoms {
    state: Snapshot,
    /// Atoms by serial number.
    serials: HashMap<i64, Serial>,
    /// Chain, residue, insertion code, and number of preceding chain ends for each particle.
    residues: Vec<([u8; 2], i64, u32)>,
    extras: [Vec<f64>; 2],
    ended: u32,
    /// Atoms at alternate locations, which are not read.
    others: u64,
}

#[derive(Clone, Copy)]
enum Serial {
    Tag(u32),
    /// An alternate location, or the end of a chain.
    Ignored,
    Duplicate,
}

/// Reads a frame that begins in the next line.
pub fn read(l: &mut Lines, choice: &Choice, common: &Common) -> Result<Snapshot> {
    let mut remark_found = common.remark;
    let (mut crystal, mut joins, mut inside) = (common.crystal.clone(), common.joins.clone(), false);
    let mut atoms = Atoms::default();
    choice.types.iter().for_each(|name| _ = intern(&mut atoms.state.types, name));
    let mut sim_box = None;
    loop {
        if !l.next()? {
            // `skip` has found the file to be complete
            break;
        }
        known(l)?;
        match record(l.line()) {
            "REMARK" => remark_found = remark(l)?.or(remark_found),
            "CRYST1" => crystal = cryst1(l).transpose().or(crystal),
            "MODEL" if inside => return Err(l.wrong("a MODEL begins before the ENDMDL of the previous one")),
            "MODEL" => inside = true,
            "ATOM" | "HETATM" => {
                let sim_box = match sim_box {
                    Some(sim_box) => sim_box,
                    None => *sim_box.insert(SimBox::new(l, choice, crystal.as_ref(), remark_found.map(|r| r.scale))?),
                };
                atoms.add(l, choice, sim_box)?;
            }
            "TER" => {
                atoms.ended += 1;
                if let Some(serial) = number(columns(l.line(), 7, 11), 5) {
                    atoms.serials.entry(serial).or_insert(Serial::Ignored);
                }
            }
            "CONECT" if inside || !common.models => joins.extend(conect(l)?),
            "ENDMDL" | "END" => break,
            _ => {}
        }
    }
    if atoms.others > 0 {
        l.warn(format!("{} atoms at alternate locations are not read", atoms.others));
    }
    let Some(sim_box) = sim_box else { return Err(l.wrong("missing atoms (ATOM or HETATM) before this line")) };
    let mut s = atoms.state;
    (s.step, s.dimensions) = (remark_found.map_or(0, |r| r.step), 3);
    (s.box_length, s.tilt) = (sim_box.shape.length, sim_box.shape.tilt);
    if choice.flat {
        (s.dimensions, s.box_length[2]) = (2, 0.0);
    }
    if let Some(masses) = &choice.masses {
        warn_of_masses(l, masses, s.types.len());
        for (tag, kind) in s.type_id.iter().enumerate() {
            let name = &s.types[*kind as usize];
            let missing = || l.wrong_file(format!("`masses` lacks the type {name}"));
            s.mass[tag] = *masses.get(*kind as usize).ok_or_else(missing)?;
        }
    }
    let own = if common.remark.is_some() { Molecules::Residues } else { Molecules::Bonds };
    if let Some(values) = molecules(&atoms.residues, choice.molecules.unwrap_or(own), common.remark.is_some()) {
        s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(values) });
    }
    for (values, extra) in atoms.extras.into_iter().zip([choice.occupancy, choice.b_factor]) {
        match extra {
            Some(Extra::Mass) => s.mass = values.into(),
            Some(Extra::Body) => {
                let whole = values.iter().map(|x| x.round() as i32).collect();
                s.arrays.insert("body".into(), Array { width: 1, values: Values::Int(whole) });
            }
            Some(e) => {
                let name = e.array().unwrap_or_default().to_string();
                s.arrays.insert(name, Array { width: 1, values: Values::Real(values) });
            }
            None => {}
        }
    }
    bonds(&mut s, &joins, &atoms.serials)?;
    Ok(s)
}

/// The box, and Å per unit of length.
#[derive(Clone, Copy)]
struct SimBox {
    shape: Shape,
    scale: f64,
}

impl SimBox {
    fn new(l: &Lines, choice: &Choice, crystal: Option<&Crystal>, remark_found: Option<f64>) -> Result<Self> {
        let scale = choice.scale.or(remark_found).unwrap_or(1.0);
        let none = || l.wrong("missing box (CRYST1) before the first atom; set `box_length`");
        let shape = match (choice.length, crystal) {
            (Some(length), _) => Shape::rectangular(length),
            (None, crystal) => {
                let shape = crystal.ok_or_else(none)?.clone()?;
                Shape { length: shape.length.map(|x| x / scale), ..shape }
            }
        };
        Ok(Self { shape: if choice.flat { Shape { tilt: shape.flat().tilt, ..shape } } else { shape }, scale })
    }
}

impl Atoms {
    /// Adds the atom of the current line.
    fn add(&mut self, l: &Lines, choice: &Choice, sim_box: SimBox) -> Result<()> {
        ascii(l)?;
        let serial = number(columns(l.line(), 7, 11), 5);
        let other = !matches!(columns(l.line(), 17, 17), "" | "A" | "1");
        if let Some(serial) = serial {
            let here = if other { Serial::Ignored } else { Serial::Tag(self.state.len() as u32) };
            self.serials.entry(serial).and_modify(|s| *s = Serial::Duplicate).or_insert(here);
        }
        if other {
            self.others += 1;
            return Ok(());
        }
        let kind = intern(&mut self.state.types, field(l, 13, 16, "the name of the atom")?);
        let (mut r, middle) = ([0.0; 3], sim_box.shape.middle());
        for (k, (name, first)) in [("x", 31), ("y", 39), ("z", 47)].into_iter().enumerate() {
            let x = real(l, first, first + 7, name)?;
            if k < 2 || !choice.flat {
                r[k] = x / sim_box.scale - middle[k];
            }
        }
        let far = || l.wrong_at(&l.line()[30..], "the position is too far outside the box");
        let (position, image) = sim_box.shape.fold(r).ok_or_else(far)?;
        let tag = self.state.push(kind, position) as usize;
        self.state.image[tag] = image;
        let byte = |column: usize| l.line().as_bytes().get(column - 1).copied().unwrap_or(b' ');
        let residue = match columns(l.line(), 23, 26) {
            "" => 0,
            text => {
                number(text, 4).ok_or_else(|| l.wrong_at(text, format!("expected a residue number, found `{text}`")))?
            }
        };
        self.residues.push(([byte(22), byte(27)], residue, self.ended));
        for (values, (extra, first, name)) in self
            .extras
            .iter_mut()
            .zip([(choice.occupancy, 55, "the occupancy"), (choice.b_factor, 61, "the temperature factor")])
        {
            if let Some(extra) = extra {
                let x = real(l, first, first + 5, name)?;
                if extra == Extra::Body && x.fract() != 0.0 {
                    let text = field(l, first, first + 5, name)?;
                    return Err(l.wrong_at(text, format!("expected an integer body number, found `{text}`")));
                }
                values.push(x);
            }
        }
        Ok(())
    }
}

/// Returns the molecule of each particle, if the file defines molecules. In files of this program, residue numbers are
/// molecule numbers; otherwise molecules are numbered in order of appearance.
fn molecules(residues: &[([u8; 2], i64, u32)], what: Molecules, own: bool) -> Option<Vec<i32>> {
    let mut seen = HashMap::new();
    let mut next = |key: ([u8; 2], i64)| {
        let n = seen.len() as i32;
        *seen.entry(key).or_insert(n)
    };
    let all: Vec<i32> = match what {
        Molecules::Bonds => return None,
        Molecules::Residues => {
            let numbers: Option<Vec<i32>> = residues.iter().map(|(c, n, _)| molecule(c[0], *n)).collect();
            match numbers.filter(|_| own) {
                Some(all) => all,
                None => residues.iter().map(|(c, n, _)| next((*c, *n))).collect(),
            }
        }
        Molecules::Chains => residues.iter().map(|(c, _, ended)| next(([c[0], 0], i64::from(*ended)))).collect(),
    };
    all.iter().any(|m| *m >= 0).then_some(all)
}

/// Adds bonds between the atoms of CONECT records, each once, named by the types of their ends.
fn bonds(s: &mut Snapshot, joins: &[Join], serials: &HashMap<i64, Serial>) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    for join in joins {
        let wrong =
            |why: String| InputError { message: format!("{}: {why}", join.error.message), ..join.error.clone() };
        let mut tags = [0; 2];
        let mut ignored = false;
        for (tag, serial) in tags.iter_mut().zip(join.serials) {
            match serials.get(&serial) {
                Some(Serial::Tag(t)) => *tag = *t,
                Some(Serial::Ignored) => ignored = true,
                Some(Serial::Duplicate) => return Err(wrong(format!("duplicate serial number {serial}"))),
                None => return Err(wrong(format!("unknown atom {serial}"))),
            }
        }
        if ignored {
            continue;
        }
        if tags[0] == tags[1] {
            return Err(wrong("they are the same atom".into()));
        }
        tags.sort_unstable();
        // a bond has a record at each end, and further records for higher bond orders
        if seen.insert(tags) {
            let mut types = tags.map(|t| s.type_id[t as usize]);
            types.sort_unstable();
            let [a, b] = types.map(|k| s.types[k as usize].as_str());
            let kind = intern(&mut s.bond_types, &format!("{a}-{b}"));
            s.bonds.push(Link { kind, tags });
        }
    }
    Ok(())
}
