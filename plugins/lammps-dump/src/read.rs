//! A frame out of a dump.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::snapshot::intern;
use std::collections::BTreeMap;
use std::io::{BufRead, Seek, SeekFrom};

/// Which frame, and what its numbers mean.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    pub frame: i64,
    pub types: Option<&'a [String]>,
    pub masses: Option<&'a [f64]>,
    pub dimensions: u32,
}

/// What is wrong with a dump.
#[derive(Debug)]
pub struct Mistake {
    pub line: Option<u32>,
    pub message: String,
}

/// Lines with their numbers.
struct Lines<R> {
    reader: R,
    line: u32,
    text: String,
}

impl<R: BufRead> Lines<R> {
    /// The next line; `false` at the end.
    fn next(&mut self) -> Result<bool, Mistake> {
        self.text.clear();
        let n = self.reader.read_line(&mut self.text).map_err(|e| self.wrong(format!("cannot be read: {e}")))?;
        self.line += u32::from(n > 0);
        Ok(n > 0)
    }
    /// The next line, which must be there.
    fn must(&mut self, what: &str) -> Result<&str, Mistake> {
        if self.next()? { Ok(self.text.trim()) } else { Err(self.wrong(format!("the file ends before {what}"))) }
    }
    fn wrong(&self, message: String) -> Mistake {
        Mistake { line: Some(self.line.max(1)), message }
    }
    fn number<T: std::str::FromStr>(&self, word: &str) -> Result<T, Mistake> {
        word.parse().map_err(|_| self.wrong(format!("expected a number, found `{word}`")))
    }
}

const FRAME: &str = "ITEM: TIMESTEP";

/// Where the frames up to the one that is wanted begin: byte, and lines before it.
fn starts<R: BufRead>(reader: &mut R, wanted: i64) -> Result<Vec<(u64, u32)>, Mistake> {
    let mut found = vec![];
    let (mut at, mut line) = (0u64, 0u32);
    let mut text = vec![];
    loop {
        text.clear();
        let n = reader
            .read_until(b'\n', &mut text)
            .map_err(|e| Mistake { line: Some(line + 1), message: format!("cannot be read: {e}") })?;
        if n == 0 {
            return Ok(found);
        }
        if text.starts_with(FRAME.as_bytes()) {
            found.push((at, line));
            if wanted >= 0 && found.len() as i64 > wanted {
                return Ok(found);
            }
        }
        at += n as u64;
        line += 1;
    }
}

/// The columns of three coordinates.
fn three(names: &[String], of: [&str; 3]) -> Option<[usize; 3]> {
    let place = |name: &str| names.iter().position(|n| n == name);
    Some([place(of[0])?, place(of[1])?, place(of[2])?])
}

/// One atom as it stands in the file.
#[derive(Clone, Debug, Default)]
struct Atom {
    kind: String,
    position: [f64; 3],
    image: [i32; 3],
    velocity: [f64; 3],
    mass: Option<f64>,
    /// charge, diameter, molecule
    others: [f64; 3],
}

/// Reads a frame.
///
/// # Errors
/// What is wrong, with its line.
pub fn read<R: BufRead + Seek>(mut reader: R, choice: Choice<'_>) -> Result<Snapshot, Mistake> {
    let starts = starts(&mut reader, choice.frame)?;
    let number = if choice.frame < 0 { starts.len() as i64 + choice.frame } else { choice.frame };
    let Some((at, line)) = usize::try_from(number).ok().and_then(|n| starts.get(n)).copied() else {
        let message = match starts.len() {
            0 => format!("this is no text dump of LAMMPS: there is no line `{FRAME}`"),
            n => format!("there is no frame {}: the file has {n}", choice.frame),
        };
        return Err(Mistake { line: None, message });
    };
    reader.seek(SeekFrom::Start(at)).map_err(|e| Mistake { line: None, message: format!("cannot be read: {e}") })?;
    let mut lines = Lines { reader, line, text: String::new() };
    let (mut step, mut n, mut bounds) = (0u64, 0usize, None);
    lines.next()?;
    loop {
        let item = lines.text.trim().strip_prefix("ITEM: ").map(str::to_string);
        let Some(item) = item else { return Err(lines.wrong("expected a line `ITEM: …`".into())) };
        if item == "TIMESTEP" {
            let word = lines.must("the time step")?.to_string();
            step = lines.number(&word)?;
        } else if item == "NUMBER OF ATOMS" {
            let word = lines.must("the number of atoms")?.to_string();
            n = lines.number(&word)?;
        } else if let Some(rest) = item.strip_prefix("BOX BOUNDS") {
            bounds = Some(read_box(&mut lines, rest)?);
        } else if let Some(columns) = item.strip_prefix("ATOMS") {
            let names: Vec<String> = columns.split_whitespace().map(String::from).collect();
            let bounds = bounds.ok_or_else(|| lines.wrong("the box must stand before the atoms".into()))?;
            return atoms(&mut lines, &names, n, bounds, step, choice);
        } else {
            // UNITS, TIME: one line
            lines.must(&item)?;
        }
        lines.must("the atoms")?;
    }
}

/// Lower and upper bounds of a periodic box with right angles.
fn read_box<R: BufRead>(lines: &mut Lines<R>, kinds: &str) -> Result<[[f64; 2]; 3], Mistake> {
    let words: Vec<&str> = kinds.split_whitespace().collect();
    if words.iter().any(|w| ["xy", "xz", "yz", "abc", "origin"].contains(w)) {
        let what = "the box is triclinic: only boxes with right angles can be read";
        return Err(lines.wrong(what.into()));
    }
    if let Some(w) = words.iter().find(|w| **w != "pp") {
        return Err(lines.wrong(format!("the box has a boundary `{w}`: only periodic boxes (pp) can be read")));
    }
    let mut bounds = [[0.0f64; 2]; 3];
    for (k, b) in bounds.iter_mut().enumerate() {
        let words: Vec<String> = lines.must("the box")?.split_whitespace().map(String::from).collect();
        let [low, high] = words.as_slice() else {
            return Err(lines.wrong(format!("expected two bounds of {}", ["x", "y", "z"][k])));
        };
        *b = [lines.number(low)?, lines.number(high)?];
        if b[0].is_nan() || b[1].is_nan() || b[0] >= b[1] {
            return Err(lines.wrong(format!("the bounds {} … {} hold nothing", b[0], b[1])));
        }
    }
    Ok(bounds)
}

fn atoms<R: BufRead>(
    lines: &mut Lines<R>,
    names: &[String],
    n: usize,
    bounds: [[f64; 2]; 3],
    step: u64,
    choice: Choice<'_>,
) -> Result<Snapshot, Mistake> {
    let place = |name: &str| names.iter().position(|c| c == name);
    let forms = [
        (["x", "y", "z"], false),
        (["xu", "yu", "zu"], false),
        (["xs", "ys", "zs"], true),
        (["xsu", "ysu", "zsu"], true),
    ];
    let Some((form, scaled)) = forms.iter().find_map(|(f, scaled)| Some((three(names, *f)?, *scaled))) else {
        return Err(lines.wrong("there are no places: columns x y z, xu yu zu, xs ys zs or xsu ysu zsu".into()));
    };
    let Some(id) = place("id") else { return Err(lines.wrong("there is no column `id`".into())) };
    let Some(kind) = place("type").or(place("element")) else {
        return Err(lines.wrong("there is no column `type`, and none called `element`".into()));
    };
    let (images, velocity) = (three(names, ["ix", "iy", "iz"]), three(names, ["vx", "vy", "vz"]));
    let mass = place("mass");
    let others = [place("q"), place("diameter"), place("mol")];
    let length: [f64; 3] = bounds.map(|b| b[1] - b[0]);
    let mut all: BTreeMap<u64, Atom> = BTreeMap::new();
    for _ in 0..n {
        lines.must("the last atom")?;
        let words: Vec<&str> = lines.text.split_whitespace().collect();
        if words.len() < names.len() {
            return Err(lines.wrong(format!("{} values for {} columns", words.len(), names.len())));
        }
        let real = |k: usize| -> Result<f64, Mistake> {
            let x: f64 = lines.number(words[k])?;
            if x.is_finite() { Ok(x) } else { Err(lines.wrong(format!("`{}` is no finite number", words[k]))) }
        };
        let mut atom = Atom { kind: words[kind].into(), ..Atom::default() };
        for axis in 0..3 {
            let x = real(form[axis])?;
            let (low, l) = (bounds[axis][0], length[axis]);
            // from the middle of the box, whole boxes taken off
            let x = if scaled { (x - 0.5) * l } else { x - low - 0.5 * l };
            let turns = (x / l + 0.5).floor();
            atom.position[axis] = (x - turns * l).clamp(-0.5 * l, 0.5 * l);
            if atom.position[axis] >= 0.5 * l {
                atom.position[axis] = -0.5 * l;
            }
            atom.image[axis] = turns as i32;
            if let Some(columns) = images {
                atom.image[axis] += lines.number::<i32>(words[columns[axis]])?;
            }
            if let Some(columns) = velocity {
                atom.velocity[axis] = real(columns[axis])?;
            }
        }
        atom.mass = mass.map(real).transpose()?;
        for (value, column) in atom.others.iter_mut().zip(others) {
            *value = column.map(real).transpose()?.unwrap_or(0.0);
        }
        let number: u64 = lines.number(words[id])?;
        if all.insert(number, atom).is_some() {
            return Err(lines.wrong(format!("the atom {number} is there twice")));
        }
    }
    let mut s = Snapshot { step, dimensions: choice.dimensions, box_length: length, ..Snapshot::default() };
    let flat = choice.dimensions == 2;
    if flat {
        s.box_length[2] = 0.0;
    }
    // the numbers of types, so that their order does not depend on that of the atoms
    if let Some(types) = choice.types {
        for name in types {
            intern(&mut s.types, name);
        }
    } else {
        let mut kinds: Vec<&String> = all.values().map(|a| &a.kind).collect();
        kinds.sort_by_key(|k| (k.parse::<u64>().unwrap_or(u64::MAX), (*k).clone()));
        for name in kinds {
            intern(&mut s.types, name);
        }
    }
    let whole = |message: String| Mistake { line: None, message };
    for atom in all.values() {
        let by_number = atom.kind.parse::<usize>().ok().and_then(|k| k.checked_sub(1));
        let name = match (choice.types, by_number) {
            (Some(types), Some(k)) => types
                .get(k)
                .ok_or_else(|| whole(format!("there is a type {}, but `types` names {}", k + 1, types.len())))?,
            _ => &atom.kind,
        };
        let kind = intern(&mut s.types, name);
        let tag = s.push(kind, atom.position) as usize;
        (s.image[tag], s.velocity[tag]) = (atom.image, atom.velocity);
        if flat {
            (s.position[tag][2], s.velocity[tag][2], s.image[tag][2]) = (0.0, 0.0, 0);
        }
        s.mass[tag] = match (atom.mass, choice.masses) {
            (Some(m), _) => m,
            (None, Some(masses)) => *by_number
                .and_then(|k| masses.get(k))
                .ok_or_else(|| whole(format!("`masses` has none for the type {}", atom.kind)))?,
            (None, None) => 1.0,
        };
    }
    for (k, name) in ["charge", "diameter"].into_iter().enumerate().filter(|(k, _)| others[*k].is_some()) {
        let values = all.values().map(|a| a.others[k]).collect();
        s.arrays.insert(name.into(), Array { width: 1, values: Values::Real(values) });
    }
    if others[2].is_some() {
        // 0 is an atom without a molecule
        let values = all.values().map(|a| a.others[2] as i32 - 1).collect();
        s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(values) });
    }
    Ok(s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    const DUMP: &str = "ITEM: TIMESTEP\n100\nITEM: NUMBER OF ATOMS\n3\nITEM: BOX BOUNDS pp pp pp\n0.0 10.0\n-2.0 6.0\n1.0 5.0\n\
        ITEM: ATOMS id type x y z ix iy iz mol q\n3 2 9.5 2.0 1.0 0 0 0 2 -1.0\n1 1 5.0 2.0 3.0 1 0 -1 1 0.5\n2 1 10.5 -2.5 5.0 0 0 0 1 0.5\n\
        ITEM: TIMESTEP\n200\nITEM: NUMBER OF ATOMS\n1\nITEM: BOX BOUNDS pp pp pp\n0 4\n0 4\n0 4\nITEM: ATOMS id element xsu ysu zsu vx vy vz mass\n\
        7 Cl 0.25 1.5 -0.25 1 2 3 35.5\n";

    fn of(text: &str, frame: i64) -> Result<Snapshot, Mistake> {
        read(Cursor::new(text.as_bytes()), Choice { frame, types: None, masses: None, dimensions: 3 })
    }

    #[test]
    fn frames_are_read() {
        let s = of(DUMP, 0).expect("a frame");
        assert_eq!((s.step, s.box_length, &s.types[..]), (100, [10.0, 8.0, 4.0], &["1".to_string(), "2".into()][..]));
        assert_eq!((s.position[0], s.image[0]), ([0.0, 0.0, 0.0], [1, 0, -1]));
        // outside of the box by a little: brought back, and counted
        assert_eq!((s.position[1], s.image[1]), ([-4.5, 3.5, -2.0], [1, -1, 1]));
        assert_eq!((s.kind[2], s.position[2]), (1, [4.5, 0.0, -2.0]));
        assert_eq!(s.arrays["molecule"].values, Values::Int(vec![0, 0, 1]));
        assert_eq!(s.arrays["charge"].values, Values::Real(vec![0.5, 0.5, -1.0]));
        s.check().expect("a state");
        let s = of(DUMP, -1).expect("a frame");
        assert_eq!((s.position[0], s.image[0], s.mass[0]), ([-1.0, 0.0, 1.0], [0, 1, -1], 35.5));
        assert_eq!((s.velocity[0], s.types[0].as_str(), s.step), ([1.0, 2.0, 3.0], "Cl", 200));
        let names = ["W".to_string(), "P".to_string()];
        let choice = Choice { frame: 0, types: Some(&names), masses: Some(&[18.0, 3.0]), dimensions: 2 };
        let s = read(Cursor::new(DUMP.as_bytes()), choice).expect("a frame");
        assert_eq!((&s.types[..], s.mass[2], s.box_length[2], s.position[1][2]), (&names[..], 3.0, 0.0, 0.0));
        s.check().expect("a state");
    }

    #[test]
    fn wrong_dumps_are_told_with_their_line() {
        let cases = [
            ("hello\n", 0, "no text dump of LAMMPS", None),
            (DUMP, 2, "there is no frame 2: the file has 2", None),
            (DUMP, -3, "there is no frame -3", None),
            (&DUMP.replace("pp pp pp\n0.0", "xy xz yz pp pp pp\n0.0"), 0, "triclinic", Some(5)),
            (&DUMP.replace("pp pp pp\n0.0", "ff pp pp\n0.0"), 0, "boundary `ff`", Some(5)),
            (&DUMP.replace("9.5 2.0", "9.5 nan"), 0, "no finite number", Some(10)),
            (&DUMP.replace("9.5 2.0", "9.5 what"), 0, "expected a number, found `what`", Some(10)),
            (&DUMP.replace("\n2 1 10.5", "\n1 1 10.5"), 0, "the atom 1 is there twice", Some(12)),
            (&DUMP.replace("id type x", "id what x"), 0, "no column `type`", Some(9)),
            (&DUMP[..DUMP.len() - 30], 1, "values for 9 columns", Some(22)),
        ];
        for (text, frame, message, line) in cases {
            let e = of(text, frame).expect_err(message);
            assert!(e.message.contains(message) && e.line == line, "{message}: {e:?}");
        }
    }
}
