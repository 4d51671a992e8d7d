//! Reads a frame.

use crate::names::warn_of_masses;
use galamost_plugin_api::prelude::{Array, Snapshot, Values};
use galamost_plugin_api::snapshot::intern;
use galamost_text::{Lines, Result, Shape};

/// Options of the generator.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Type names, in order.
    pub types: Vec<String>,
    /// Masses of the types.
    pub masses: Option<Vec<f64>>,
    /// Whether the system is two-dimensional.
    pub flat: bool,
    /// Whether residues are molecules.
    pub molecules: bool,
}

/// Column of the first coordinate, from 0: residue number and name, atom name and number have five columns each.
const FIRST: usize = 20;

/// Skips a frame.
pub fn skip(l: &mut Lines) -> Result<bool> {
    if !l.next()? || only_blank(l)? {
        return Ok(false);
    }
    let n = atoms(l)?;
    l.skip(n, 1, "the atoms")?;
    l.must("the box")?;
    let words = l.words().count();
    if words < 3 {
        l.ended()?;
        return Err(l.wrong(format!("expected the box, three or nine numbers, found {words}")));
    }
    // the last number may be incomplete
    l.ended()
        .map(|()| true)
        .or_else(|e| if words == 3 || words == 9 { complete(l).then_some(true).ok_or(e) } else { Err(e) })
}

/// Returns whether only blank lines remain, from the current one on. A title may be blank, too.
fn only_blank(l: &mut Lines) -> Result<bool> {
    if !l.text().is_empty() {
        return Ok(false);
    }
    let (begin, mut more) = (l.mark(), true);
    while more && l.text().is_empty() {
        more = l.next()?;
    }
    l.seek(begin)?;
    Ok(!more)
}

/// Returns whether the last number of a box has five decimals, as GROMACS writes it.
fn complete(l: &Lines) -> bool {
    let decimals = |word: &str| word.split_once('.').map_or(0, |(_, d)| d.len());
    let all: Vec<usize> = l.words().map(decimals).collect();
    all.windows(2).all(|w| w[0] == w[1]) && all.first().is_some_and(|d| *d > 0)
}

/// Reads the number of atoms in the next line.
fn atoms(l: &mut Lines) -> Result<u64> {
    l.must("the number of atoms")?;
    l.ended()?;
    l.whole(l.text())
}

/// Returns the text of the columns `first` … `first + width`, from 0; `None` if a character is cut or the line is shorter.
fn columns(line: &str, first: usize, width: usize) -> Option<&str> {
    line.get(first..first + width).map(str::trim_ascii)
}

/// Returns the width of a number: the distance of the decimal points of the first two coordinates.
fn width(l: &Lines) -> Result<usize> {
    let line = l.line();
    let mut points = line.bytes().enumerate().skip(FIRST).filter(|(_, c)| *c == b'.').map(|(at, _)| at);
    match (points.next(), points.next()) {
        (Some(a), Some(b)) if (3..=30).contains(&(b - a)) => Ok(b - a),
        _ => Err(l.wrong(
            "expected an atom: five columns each for residue number and name, atom name and number, then x, y, z",
        )),
    }
}

/// What the title of a file of this program says: the step, and whether residue numbers are molecules.
fn title(text: &str) -> (u64, bool) {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let after = words.iter().position(|w| *w == "step=").and_then(|k| words.get(k + 1));
    let own = words.first() == Some(&"GALAMOST") && words.contains(&"molecules");
    (after.and_then(|w| w.parse().ok()).unwrap_or(0), own)
}

/// An atom of the file.
struct Atom {
    position: [f64; 3],
    velocity: [f64; 3],
    kind: u32,
}

/// Reads a frame that begins in the next line.
pub fn read(l: &mut Lines, choice: &Choice) -> Result<Snapshot> {
    l.must("the title")?;
    let (step, own) = title(l.text());
    let n = atoms(l)?;
    let mut s = Snapshot { step, dimensions: if choice.flat { 2 } else { 3 }, ..Snapshot::default() };
    choice.types.iter().for_each(|name| _ = intern(&mut s.types, name));
    let (mut all, mut molecule) = (vec![], vec![]);
    let (mut last, mut residues) = (String::new(), -1);
    for _ in 0..n {
        l.must("the atoms")?;
        let wide = width(l)?;
        all.push(atom(l, wide, &mut s.types)?);
        let residue = l.line().get(..10).unwrap_or_default();
        if residue != last {
            (last, residues) = (residue.into(), residues + 1);
        }
        let number = columns(l.line(), 0, 5).and_then(|t| t.parse::<i32>().ok());
        match number {
            Some(number) if own => molecule.push(number - 1),
            Some(_) => molecule.push(residues),
            None => return Err(l.wrong("expected a residue number in the columns 1 to 5")),
        }
    }
    l.must("the box")?;
    let shape = sim_box(l)?;
    let shape = if choice.flat { shape.flat() } else { shape };
    (s.box_length, s.tilt) = (shape.length, shape.tilt);
    let middle = shape.middle();
    for (tag, a) in all.into_iter().enumerate() {
        let far = || l.wrong_file(format!("particle {tag}: {:?} is too far outside the box", a.position));
        let inside = |k: usize| if k < s.dimensions as usize { a.position[k] - middle[k] } else { 0.0 };
        let (position, image) = shape.fold(std::array::from_fn(inside)).ok_or_else(far)?;
        s.push(a.kind, position);
        s.image[tag] = image;
        s.velocity[tag] = if choice.flat { [a.velocity[0], a.velocity[1], 0.0] } else { a.velocity };
    }
    if let Some(masses) = &choice.masses {
        warn_of_masses(l, masses, s.types.len());
        for (mass, kind) in s.mass.iter_mut().zip(&s.type_id) {
            let missing = || l.wrong_file(format!("`masses` lacks the type {}", s.types[*kind as usize]));
            *mass = *masses.get(*kind as usize).ok_or_else(missing)?;
        }
    }
    if choice.molecules && molecule.iter().any(|m| *m >= 0) {
        s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(molecule) });
    }
    Ok(s)
}

/// Reads the atom of the current line, whose numbers have `wide` columns.
fn atom(l: &Lines, wide: usize, types: &mut Vec<String>) -> Result<Atom> {
    let line = l.line();
    let name = columns(line, 10, 5).filter(|t| !t.is_empty());
    let name = name.ok_or_else(|| l.wrong("expected an atom name in the columns 11 to 15"))?;
    let number = |k: usize| match line.get(FIRST + k * wide..(FIRST + (k + 1) * wide).min(line.len())) {
        Some(text) if !text.trim_ascii().is_empty() => l.real(text.trim_ascii()).map(Some),
        _ => Ok(None),
    };
    let missing = || l.wrong("the line ends before the third coordinate");
    let mut position = [0.0; 3];
    for (k, x) in position.iter_mut().enumerate() {
        *x = number(k)?.ok_or_else(missing)?;
    }
    let (mut velocity, mut found) = ([0.0; 3], 0);
    for (k, v) in velocity.iter_mut().enumerate() {
        if let Some(x) = number(3 + k)? {
            (*v, found) = (x, found + 1);
        }
    }
    if found % 3 != 0 {
        return Err(l.wrong(format!("expected no velocity or its three components, found {found}")));
    }
    Ok(Atom { position, velocity, kind: intern(types, name) })
}

/// Reads the box in the current line.
fn sim_box(l: &Lines) -> Result<Shape> {
    let words: Vec<&str> = l.words().collect();
    if words.len() != 3 && words.len() != 9 {
        return Err(l.wrong(format!("expected the box, three or nine numbers, found {}", words.len())));
    }
    let mut all = vec![];
    for word in &words {
        all.push(l.real(word)?);
    }
    let length = [all[0], all[1], all[2]];
    if let Some(k) = length.iter().position(|x| *x <= 0.0) {
        return Err(l.wrong_at(words[k], "box lengths must be positive"));
    }
    let [a, b, c] = length;
    match all[3..] {
        [ay, az, bx, bz, cx, cy] => {
            Shape::of_edges([[a, ay, az], [bx, b, bz], [cx, cy, c]]).map_err(|message| l.wrong_at(words[3], message))
        }
        _ => Ok(Shape::rectangular(length)),
    }
}
