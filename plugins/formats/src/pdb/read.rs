//! A frame out of a file.

use crate::pdb::columns::{Extra, ascii, columns, field, known, molecule, number, real, record};
use crate::pdb::common::{Common, Join, conect, cryst1, remark};
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::prelude::{Array, InputError, Link, Snapshot, Values};
use galamost_plugin_api::snapshot::intern;
use galamost_text::{Lines, Result, fold};
use std::collections::HashMap;

/// What a molecule is.
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

/// What the user says of a file.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Å in a unit of length.
    pub scale: Option<f64>,
    /// Names of types, in their order.
    pub types: Vec<String>,
    /// Their masses.
    pub masses: Option<Vec<f64>>,
    /// Box lengths, for a file without any.
    pub length: Option<[f64; 3]>,
    /// Two dimensions.
    pub flat: bool,
    pub molecules: Option<Molecules>,
    pub occupancy: Option<Extra>,
    pub b_factor: Option<Extra>,
}

/// Passes over a frame: up to ENDMDL, or END where there are no models.
pub fn skip(l: &mut Lines) -> Result<bool> {
    let mut begun = false;
    while l.next()? {
        match record(l.line()) {
            "MODEL" | "ATOM" | "HETATM" => begun = true,
            "ENDMDL" | "END" if begun => return Ok(true),
            _ => {}
        }
    }
    let cut = "the file ends without ENDMDL or END behind its atoms: is it cut off? If it is whole, add a line END";
    if begun { Err(l.wrong(cut)) } else { Ok(false) }
}

/// The particles of a frame while it is read.
#[derive(Default)]
struct Atoms {
    state: Snapshot,
    /// What belongs to a serial number.
    serials: HashMap<i64, Serial>,
    /// Chain, residue and insertion code of each particle, and how many chains ended before it.
    residues: Vec<([u8; 2], i64, u32)>,
    extras: [Vec<f64>; 2],
    ended: u32,
}

#[derive(Clone, Copy)]
enum Serial {
    Tag(u32),
    /// An alternate location, or the end of a chain.
    Passed,
    Twice,
}

/// Reads a frame that begins with the next line.
pub fn read(l: &mut Lines, choice: &Choice, common: &Common) -> Result<Snapshot> {
    let mut said = common.remark;
    let (mut crystal, mut joins, mut inside) = (common.crystal, common.joins.clone(), false);
    let mut atoms = Atoms::default();
    choice.types.iter().for_each(|name| _ = intern(&mut atoms.state.types, name));
    let mut space = None;
    loop {
        l.must("ENDMDL or END")?;
        known(l)?;
        match record(l.line()) {
            "REMARK" => said = remark(l)?.or(said),
            "CRYST1" => crystal = cryst1(l)?.or(crystal),
            "MODEL" if inside => return Err(l.wrong("a MODEL begins before the ENDMDL of the one before")),
            "MODEL" => inside = true,
            "ATOM" | "HETATM" => {
                let space = match space {
                    Some(space) => space,
                    None => *space.insert(Space::of(l, choice, crystal, said.map(|r| r.scale))?),
                };
                atoms.add(l, choice, space)?;
            }
            "TER" => {
                atoms.ended += 1;
                if let Some(serial) = number(columns(l.line(), 7, 11), 5) {
                    atoms.serials.entry(serial).or_insert(Serial::Passed);
                }
            }
            "CONECT" if inside || !common.models => joins.extend(conect(l)?),
            "ENDMDL" | "END" => break,
            _ => {}
        }
    }
    let Some(space) = space else { return Err(l.wrong("there is no atom (ATOM or HETATM) before this")) };
    let mut s = atoms.state;
    (s.step, s.dimensions, s.box_length) = (said.map_or(0, |r| r.step), 3, space.length);
    if choice.flat {
        (s.dimensions, s.box_length[2]) = (2, 0.0);
    }
    if let Some(masses) = &choice.masses {
        for (tag, kind) in s.type_id.iter().enumerate() {
            let name = &s.types[*kind as usize];
            let missing = || l.wrong_file(format!("`masses` has none for the type {name}"));
            s.mass[tag] = *masses.get(*kind as usize).ok_or_else(missing)?;
        }
    }
    let own = if common.remark.is_some() { Molecules::Residues } else { Molecules::Bonds };
    if let Some(values) = molecules(&atoms.residues, choice.molecules.unwrap_or(own), common.remark.is_some()) {
        s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(values) });
    }
    for (values, extra) in atoms.extras.into_iter().zip([choice.occupancy, choice.b_factor]) {
        match extra {
            Some(Extra::Mass) => s.mass = values,
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

/// Box lengths, and Å in one of them.
#[derive(Clone, Copy)]
struct Space {
    length: [f64; 3],
    scale: f64,
}

impl Space {
    fn of(l: &Lines, choice: &Choice, crystal: Option<[f64; 3]>, said: Option<f64>) -> Result<Self> {
        let scale = choice.scale.or(said).unwrap_or(1.0);
        let none = || l.wrong("there is no box (CRYST1) before the first atom: give `box_length`");
        let length = match choice.length {
            Some(length) => length,
            None => crystal.ok_or_else(none)?.map(|x| x / scale),
        };
        Ok(Self { length, scale })
    }
}

impl Atoms {
    /// Takes the atom of the current line.
    fn add(&mut self, l: &Lines, choice: &Choice, space: Space) -> Result<()> {
        ascii(l)?;
        let serial = number(columns(l.line(), 7, 11), 5);
        let other = !matches!(columns(l.line(), 17, 17), "" | "A" | "1");
        if let Some(serial) = serial {
            let here = if other { Serial::Passed } else { Serial::Tag(self.state.len() as u32) };
            self.serials.entry(serial).and_modify(|s| *s = Serial::Twice).or_insert(here);
        }
        if other {
            return Ok(());
        }
        let kind = intern(&mut self.state.types, field(l, 13, 16, "the name of the atom")?);
        let (mut position, mut image) = ([0.0; 3], [0; 3]);
        for (k, (name, first)) in [("x", 31), ("y", 39), ("z", 47)].into_iter().enumerate() {
            let x = real(l, first, first + 7, name)?;
            if k == 2 && choice.flat {
                continue;
            }
            let far = || l.wrong_at(&l.line()[first - 1..], format!("{name} = {x:?} is too far outside of the box"));
            let length = space.length[k];
            (position[k], image[k]) = fold(x / space.scale - 0.5 * length, length).ok_or_else(far)?;
        }
        let tag = self.state.push(kind, position) as usize;
        self.state.image[tag] = image;
        let byte = |column: usize| l.line().as_bytes().get(column - 1).copied().unwrap_or(b' ');
        let residue = match columns(l.line(), 23, 26) {
            "" => 0,
            text => number(text, 4)
                .ok_or_else(|| l.wrong_at(text, format!("expected the number of a residue, found `{text}`")))?,
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
                    return Err(l.wrong_at(text, format!("expected the whole number of a body, found `{text}`")));
                }
                values.push(x);
            }
        }
        Ok(())
    }
}

/// The molecule of each particle, if the file tells any. In a file of this engine a residue's number is the molecule's, else molecules
/// are numbered as they come.
fn molecules(residues: &[([u8; 2], i64, u32)], what: Molecules, own: bool) -> Option<Vec<i32>> {
    let mut seen = HashMap::new();
    let mut next = |key: ([u8; 2], i64)| {
        let n = seen.len() as i32;
        *seen.entry(key).or_insert(n)
    };
    let all: Vec<i32> = match what {
        Molecules::Bonds => return None,
        Molecules::Residues => {
            let told: Option<Vec<i32>> = residues.iter().map(|(c, n, _)| molecule(c[0], *n)).collect();
            match told.filter(|_| own) {
                Some(all) => all,
                None => residues.iter().map(|(c, n, _)| next((*c, *n))).collect(),
            }
        }
        Molecules::Chains => residues.iter().map(|(c, _, ended)| next(([c[0], 0], i64::from(*ended)))).collect(),
    };
    all.iter().any(|m| *m >= 0).then_some(all)
}

/// Bonds between the atoms that CONECT records join, each once, named by the types of their ends.
fn bonds(s: &mut Snapshot, joins: &[Join], serials: &HashMap<i64, Serial>) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    for join in joins {
        let wrong =
            |why: String| InputError { message: format!("{}: {why}", join.place.message), ..join.place.clone() };
        let mut tags = [0; 2];
        let mut passed = false;
        for (tag, serial) in tags.iter_mut().zip(join.serials) {
            match serials.get(&serial) {
                Some(Serial::Tag(t)) => *tag = *t,
                Some(Serial::Passed) => passed = true,
                Some(Serial::Twice) => return Err(wrong(format!("two atoms have the serial number {serial}"))),
                None => return Err(wrong(format!("there is no atom {serial}"))),
            }
        }
        if passed {
            continue;
        }
        if tags[0] == tags[1] {
            return Err(wrong("they are one atom".into()));
        }
        tags.sort_unstable();
        // a record of each end, and one more for each further order of the bond
        if seen.insert(tags) {
            let mut kinds = tags.map(|t| s.type_id[t as usize]);
            kinds.sort_unstable();
            let [a, b] = kinds.map(|k| s.types[k as usize].as_str());
            let kind = intern(&mut s.bond_types, &format!("{a}-{b}"));
            s.bonds.push(Link { kind, tags });
        }
    }
    Ok(())
}
