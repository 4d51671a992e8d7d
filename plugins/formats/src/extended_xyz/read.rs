//! Reads a frame.

use crate::extended_xyz::comment::keys;
use crate::names::joined;
use galamost_plugin_api::prelude::{Array, Snapshot, Values};
use galamost_plugin_api::snapshot::{KNOWN_ARRAYS, intern};
use galamost_text::{Lines, Result, Shape};

/// Options of the generator.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Type names, in order.
    pub types: Vec<String>,
    /// Box lengths, for a file without a box.
    pub length: Option<[f64; 3]>,
    /// Whether the system is two-dimensional.
    pub flat: bool,
}

/// Skips a frame.
pub fn skip(l: &mut Lines) -> Result<bool> {
    while l.next()? {
        if !l.text().is_empty() {
            l.ended()?;
            let n: u64 = l.whole(l.text())?;
            l.must("the comment")?;
            l.ended()?;
            // a comment with an error is reported when the frame is read
            return l.skip(n, width(l).unwrap_or(usize::MAX), "the frame").map(|()| true);
        }
    }
    Ok(false)
}

/// Returns the number of values in a row of the frame whose comment is the current line.
fn width(l: &Lines) -> Result<usize> {
    let keys = keys(l)?;
    let named = keys.iter().find(|(k, _)| k.eq_ignore_ascii_case("properties"));
    properties(l, named.map_or(PLAIN, |(_, v)| v)).map(|(_, width)| width)
}

/// Columns of a plain XYZ file.
const PLAIN: &str = "species:S:1:pos:R:3";

/// Meaning of one or several columns.
#[derive(Clone, Debug, PartialEq)]
enum Meaning {
    Type,
    Position,
    Velocity,
    Mass,
    Id,
    /// An array: its index in [`KNOWN_ARRAYS`], and a factor for its values.
    Array(usize, f64),
    Ignored,
}

#[derive(Clone, Debug)]
struct Columns {
    name: String,
    meaning: Meaning,
    first: usize,
    width: usize,
}

fn known(name: &str) -> Meaning {
    KNOWN_ARRAYS.iter().position(|a| a.0 == name).map_or(Meaning::Ignored, |k| Meaning::Array(k, 1.0))
}

/// Returns the meaning of a property.
fn meaning_of(name: &str, width: usize) -> Meaning {
    match (name.to_lowercase().as_str(), width) {
        ("species" | "type" | "element" | "symbols", 1) => Meaning::Type,
        ("pos" | "position" | "positions", 3) => Meaning::Position,
        ("velo" | "vel" | "velocity" | "velocities", 3) => Meaning::Velocity,
        ("mass" | "masses", 1) => Meaning::Mass,
        ("id", 1) => Meaning::Id,
        ("charge" | "charges" | "initial_charges", 1) => known("charge"),
        ("radius", 1) => match known("diameter") {
            Meaning::Array(k, _) => Meaning::Array(k, 2.0),
            other => other,
        },
        ("orientation", 4) => known("quaternion"),
        ("axis", 3) => known("orientation"),
        (other, width) if KNOWN_ARRAYS.iter().any(|a| a.0 == other && a.1 as usize == width) => known(other),
        _ => Meaning::Ignored,
    }
}

/// Parsed second line of a frame.
struct Comment {
    step: u64,
    middle: [f64; 3],
    shape: Shape,
    columns: Vec<Columns>,
    /// Number of values in a row.
    width: usize,
    /// Names of columns that are not read.
    ignored: String,
}

fn comment(l: &Lines, choice: &Choice) -> Result<Comment> {
    let keys = keys(l)?;
    let find = |names: &[&str]| keys.iter().find(|(k, _)| names.contains(&k.to_lowercase().as_str())).map(|(_, v)| *v);
    let numbers = |text: &str| -> Result<Vec<f64>> {
        text.split(|c: char| c.is_ascii_whitespace() || c == ',').filter(|w| !w.is_empty()).map(|w| l.real(w)).collect()
    };
    let shape = match (find(&["lattice"]), choice.length) {
        (Some(text), _) => {
            let m = numbers(text)?;
            let (&[a, b, c], []) = m.as_chunks::<3>() else {
                return Err(l.wrong_at(text, format!("`Lattice` has {} numbers, expected 9", m.len())));
            };
            if let Some((edge, _)) = [(a, a[0]), (b, b[1]), (c, c[2])].into_iter().find(|(_, x)| *x <= 0.0) {
                let message = if edge == [0.0; 3] {
                    "box lengths must be positive"
                } else {
                    "the first edge of the box must be along +x, the second in the plane of x and y with y > 0, and the third must have \
                     z > 0; rotate the box and the particles"
                };
                return Err(l.wrong_at(text, message));
            }
            Shape::of_edges([a, b, c]).map_err(|message| l.wrong_at(text, message))?
        }
        (None, Some(length)) => Shape::rectangular(length),
        (None, None) => return Err(l.wrong("the frame has no box (`Lattice=…`); set `box_length`")),
    };
    if let Some(text) = find(&["pbc"]) {
        let open = text.split_ascii_whitespace().take(if choice.flat { 2 } else { 3 });
        if open.into_iter().any(|w| w.starts_with(['F', 'f', '0'])) {
            l.warn(format!("pbc=\"{text}\": the box is periodic in this program; walls confine particles"));
        }
    }
    let origin = match find(&["origin"]) {
        Some(text) => {
            let o = numbers(text)?;
            let o = <[f64; 3]>::try_from(o.as_slice());
            o.map_err(|_| l.wrong_at(text, "`Origin` must have 3 numbers"))?
        }
        None => [0.0; 3],
    };
    let step = match find(&["timestep", "step"]) {
        Some(text) => l.whole(text)?,
        None => 0,
    };
    if let Some(length) = choice.length.filter(|length| *length != shape.length) {
        l.warn(format!("`box_length` {length:?} has no effect: the frame has the box lengths {:?}", shape.length));
    }
    let (columns, width) = properties(l, find(&["properties"]).unwrap_or(PLAIN))?;
    let shape = if choice.flat { Shape { tilt: shape.flat().tilt, ..shape } } else { shape };
    let half = shape.middle();
    let middle = std::array::from_fn(|k| origin[k] + half[k]);
    let ignored: Vec<&str> =
        columns.iter().filter(|c| c.meaning == Meaning::Ignored).map(|c| c.name.as_str()).collect();
    let ignored = joined(&ignored);
    Ok(Comment { step, middle, shape, columns, width, ignored })
}

fn properties(l: &Lines, text: &str) -> Result<(Vec<Columns>, usize)> {
    let (mut columns, mut first) = (vec![], 0usize);
    let mut parts = text.split(':');
    while let Some(name) = parts.next() {
        let (Some(kind), Some(width)) = (parts.next(), parts.next()) else {
            return Err(l.wrong_at(name, format!("`{name}`: expected name:type:number")));
        };
        let width: u16 = l.whole(width)?;
        let width = usize::from(width);
        let mut meaning = meaning_of(name, width);
        let same = |other: &Meaning| match (other, &meaning) {
            // diameters and radii are one array
            (Meaning::Array(a, _), Meaning::Array(b, _)) => a == b,
            (a, b) => a == b,
        };
        // text cannot be a numeric column; of duplicate columns the first counts
        if !matches!(meaning, Meaning::Type) && !["R", "I", "L"].contains(&kind)
            || columns.iter().any(|c: &Columns| same(&c.meaning))
        {
            meaning = Meaning::Ignored;
        }
        columns.push(Columns { name: name.into(), meaning, first, width });
        first += width;
    }
    for (meaning, name) in [(Meaning::Type, "species:S:1"), (Meaning::Position, "pos:R:3")] {
        if !columns.iter().any(|c| c.meaning == meaning) {
            return Err(l.wrong_at(text, format!("`Properties` lacks {name}")));
        }
    }
    Ok((columns, first))
}

/// Reads a frame that begins in the next line.
pub fn read(l: &mut Lines, choice: &Choice) -> Result<Snapshot> {
    while l.must("the number of particles")?.is_empty() {}
    let n: u64 = l.whole(l.text())?;
    l.must("the comment")?;
    let c = comment(l, choice)?;
    if !c.ignored.is_empty() {
        l.warn(format!("columns that are not read: {}", c.ignored));
    }
    let (box_length, tilt) = (c.shape.length, c.shape.tilt);
    let mut s = Snapshot { step: c.step, dimensions: 3, box_length, tilt, ..Snapshot::default() };
    for name in &choice.types {
        intern(&mut s.types, name);
    }
    let mut ids: Vec<u64> = vec![];
    let mut arrays: Vec<(usize, Values)> = vec![];
    for column in &c.columns {
        if let Meaning::Array(k, _) = column.meaning {
            arrays.push((k, if KNOWN_ARRAYS[k].2 { Values::Int(vec![]) } else { Values::Real(vec![]) }));
        }
    }
    for _ in 0..n {
        l.must("the last particle")?;
        row(l, &c, choice, &mut s, &mut ids, &mut arrays)?;
    }
    for (k, values) in arrays {
        s.arrays.insert(KNOWN_ARRAYS[k].0.into(), Array { width: KNOWN_ARRAYS[k].1, values });
    }
    if choice.flat {
        s.dimensions = 2;
        s.box_length[2] = 0.0;
    }
    if !ids.is_empty() { sorted(l, &s, &ids) } else { Ok(s) }
}

fn row(
    l: &Lines,
    c: &Comment,
    choice: &Choice,
    s: &mut Snapshot,
    ids: &mut Vec<u64>,
    arrays: &mut [(usize, Values)],
) -> Result<()> {
    let words: Vec<&str> = l.words().collect();
    if words.len() < c.width {
        return Err(l.wrong(format!("found {} values, expected {}", words.len(), c.width)));
    }
    if words.len() > c.width {
        l.warn(format!(
            "rows have more than the {} values of `Properties` (without it: type and position); the others are not read",
            c.width
        ));
    }
    let tag = s.push(0, [0.0; 3]) as usize;
    for column in &c.columns {
        let values = &words[column.first..column.first + column.width];
        match column.meaning {
            Meaning::Type => s.type_id[tag] = intern(&mut s.types, values[0]),
            Meaning::Position | Meaning::Velocity => {
                let mut v = [0.0; 3];
                for (k, word) in values.iter().enumerate().take(if choice.flat { 2 } else { 3 }) {
                    v[k] = l.real(word)? - if column.meaning == Meaning::Velocity { 0.0 } else { c.middle[k] };
                }
                if column.meaning == Meaning::Velocity {
                    s.velocity[tag] = v;
                } else {
                    let far = || l.wrong_at(values[0], format!("`{}` is too far outside the box", values.join(" ")));
                    (s.position[tag], s.image[tag]) = c.shape.fold(v).ok_or_else(far)?;
                }
            }
            Meaning::Mass => s.mass[tag] = l.real(values[0])?,
            Meaning::Id => ids.push(l.whole(values[0])?),
            Meaning::Array(k, times) => {
                let Some((_, array)) = arrays.iter_mut().find(|(n, _)| *n == k) else { continue };
                for word in values {
                    match array {
                        Values::Real(all) => all.push(l.real(word)? * times),
                        Values::Int(all) => all.push(l.whole(word)?),
                    }
                }
            }
            Meaning::Ignored => {}
        }
    }
    Ok(())
}

/// Sorts the particles by id.
fn sorted(l: &Lines, s: &Snapshot, ids: &[u64]) -> Result<Snapshot> {
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by_key(|k| ids[*k]);
    if let Some(pair) = order.windows(2).find(|p| ids[p[0]] == ids[p[1]]) {
        return Err(l.wrong(format!("duplicate id {}", ids[pair[0]])));
    }
    fn take<T: Copy>(values: &[T], order: &[usize], width: usize) -> Vec<T> {
        order.iter().flat_map(|k| values[k * width..(k + 1) * width].iter().copied()).collect()
    }
    let mut out = s.clone();
    out.position = take(&s.position, &order, 1).into();
    out.image = take(&s.image, &order, 1).into();
    out.velocity = take(&s.velocity, &order, 1).into();
    out.type_id = take(&s.type_id, &order, 1).into();
    out.mass = take(&s.mass, &order, 1).into();
    for a in out.arrays.values_mut() {
        a.values = match &a.values {
            Values::Real(v) => Values::Real(take(v, &order, a.width as usize)),
            Values::Int(v) => Values::Int(take(v, &order, a.width as usize)),
        };
    }
    Ok(out)
}
