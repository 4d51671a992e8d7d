//! A frame out of a dump.

use galamost_plugin_api::prelude::{Array, InputError, Snapshot, Values};
use galamost_plugin_api::snapshot::intern;
use galamost_text::{Lines, Result, fold};
use std::collections::HashMap;

/// What the numbers of a dump mean.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    pub types: Option<Vec<String>>,
    pub masses: Option<Vec<f64>>,
    /// Two dimensions.
    pub flat: bool,
}

/// The word behind `ITEM: ` in the current line.
fn item(l: &Lines) -> Result<String> {
    let item = l.text().strip_prefix("ITEM: ").map(str::to_string);
    item.ok_or_else(|| l.wrong("this is no text dump of LAMMPS: expected a line `ITEM: …`"))
}

/// Passes over a frame.
pub fn skip(l: &mut Lines) -> Result<bool> {
    while l.next()? {
        if l.text().is_empty() {
            continue;
        }
        let mut n = None;
        loop {
            l.ended()?;
            let item = item(l)?;
            if item.starts_with("ATOMS") {
                let n = n.ok_or_else(|| l.wrong("the number of atoms must stand before the atoms"))?;
                return l.skip(n, "the atoms").map(|()| true);
            } else if item == "NUMBER OF ATOMS" {
                l.must("the number of atoms")?;
                l.ended()?;
                n = Some(l.whole(l.text())?);
            } else {
                l.skip(if item.starts_with("BOX BOUNDS") { 3 } else { 1 }, &item)?;
            }
            l.must("the atoms")?;
        }
    }
    Ok(false)
}

/// Where the middle of the box is, and its lengths.
#[derive(Clone, Copy)]
struct Space {
    middle: [f64; 3],
    length: [f64; 3],
}

/// Reads a frame that begins with the next line.
pub fn read(l: &mut Lines, choice: &Choice) -> Result<Snapshot> {
    let (mut step, mut n, mut space) = (0u64, 0usize, None);
    loop {
        if l.must("the atoms")?.is_empty() {
            continue;
        }
        let item = item(l)?;
        if item == "TIMESTEP" {
            l.must("the time step")?;
            step = l.whole(l.text())?;
        } else if item == "NUMBER OF ATOMS" {
            l.must("the number of atoms")?;
            n = l.whole(l.text())?;
        } else if let Some(rest) = item.strip_prefix("BOX BOUNDS") {
            space = Some(read_box(l, rest)?);
        } else if let Some(columns) = item.strip_prefix("ATOMS") {
            let space = space.ok_or_else(|| l.wrong("the box must stand before the atoms"))?;
            let mut s = atoms(l, columns, n, space, choice)?;
            s.step = step;
            return Ok(s);
        } else {
            // UNITS, TIME: one line
            l.must(&item)?;
        }
    }
}

/// Lower and upper bounds of a periodic box with right angles.
fn read_box(l: &mut Lines, kinds: &str) -> Result<Space> {
    let words: Vec<&str> = kinds.split_whitespace().collect();
    if words.iter().any(|w| ["xy", "xz", "yz", "abc", "origin"].contains(w)) {
        return Err(l.wrong("the box is triclinic: only boxes with right angles can be read"));
    }
    if let Some(w) = words.iter().find(|w| **w != "pp") {
        return Err(l.wrong(format!("the box has a boundary `{w}`: only periodic boxes (pp) can be read")));
    }
    let mut space = Space { middle: [0.0; 3], length: [0.0; 3] };
    for k in 0..3 {
        l.must("the box")?;
        let [low, high] = l.reals()?;
        if low >= high || !(high - low).is_finite() {
            return Err(l.wrong(format!("the bounds {low} … {high} hold nothing")));
        }
        (space.middle[k], space.length[k]) = (0.5 * low + 0.5 * high, high - low);
    }
    Ok(space)
}

/// Which column has what.
struct Columns {
    count: usize,
    id: usize,
    kind: usize,
    element: Option<usize>,
    place: [usize; 3],
    scaled: bool,
    image: Option<[usize; 3]>,
    velocity: Option<[usize; 3]>,
    mass: Option<usize>,
    charge: Option<usize>,
    /// The column, and what it is to be multiplied with.
    diameter: Option<(usize, f64)>,
    molecule: Option<usize>,
}

impl Columns {
    fn of(text: &str, l: &Lines) -> Result<Self> {
        let names: Vec<&str> = text.split_whitespace().collect();
        let place = |name: &str| names.iter().position(|c| *c == name);
        let three = |of: [&str; 3]| Some([place(of[0])?, place(of[1])?, place(of[2])?]);
        let missing = |what: &str| l.wrong(format!("there {what}"));
        let forms = [
            (["x", "y", "z"], false),
            (["xu", "yu", "zu"], false),
            (["xs", "ys", "zs"], true),
            (["xsu", "ysu", "zsu"], true),
        ];
        let form = forms.iter().find_map(|(f, scaled)| Some((three(*f)?, *scaled)));
        let (at, scaled) =
            form.ok_or_else(|| missing("are no places: columns x y z, xu yu zu, xs ys zs or xsu ysu zsu"))?;
        let element = place("element");
        Ok(Self {
            count: names.len(),
            id: place("id").ok_or_else(|| missing("is no column `id`"))?,
            kind: place("type").or(element).ok_or_else(|| missing("is no column `type`, and none called `element`"))?,
            element,
            place: at,
            scaled,
            image: three(["ix", "iy", "iz"]),
            velocity: three(["vx", "vy", "vz"]),
            mass: place("mass"),
            charge: place("q"),
            diameter: place("diameter").map(|k| (k, 1.0)).or(place("radius").map(|k| (k, 2.0))),
            molecule: place("mol"),
        })
    }
}

/// One atom as it stands in the file.
struct Atom {
    id: u64,
    /// Into the words of types.
    kind: u32,
    position: [f64; 3],
    image: [i32; 3],
    velocity: [f64; 3],
    mass: Option<f64>,
    charge: f64,
    diameter: f64,
    molecule: i32,
}

fn atom(l: &Lines, c: &Columns, space: Space, kinds: &mut Kinds) -> Result<Atom> {
    let words: Vec<&str> = l.words().collect();
    if words.len() < c.count {
        return Err(l.wrong(format!("{} values for {} columns", words.len(), c.count)));
    }
    let real = |k: usize| l.real(words[k]);
    let (mut position, mut image) = ([0.0; 3], [0; 3]);
    for k in 0..3 {
        let x = real(c.place[k])?;
        let x = if c.scaled { (x - 0.5) * space.length[k] } else { x - space.middle[k] };
        let far = || l.wrong_at(words[c.place[k]], format!("`{}` is too far outside of the box", words[c.place[k]]));
        let (inside, turns) = fold(x, space.length[k]).ok_or_else(far)?;
        let given: i32 = c.image.map_or(Ok(0), |columns| l.whole(words[columns[k]]))?;
        (position[k], image[k]) = (inside, given.checked_add(turns).ok_or_else(far)?);
    }
    let velocity = c.velocity.map_or(Ok([0.0; 3]), |v| Ok::<_, InputError>([real(v[0])?, real(v[1])?, real(v[2])?]))?;
    Ok(Atom {
        id: l.whole(words[c.id])?,
        kind: kinds.number(words[c.kind], c.element.map(|e| words[e])),
        position,
        image,
        velocity,
        mass: c.mass.map(real).transpose()?,
        charge: c.charge.map_or(Ok(0.0), real)?,
        diameter: c.diameter.map_or(Ok(0.0), |(k, times)| real(k).map(|x| x * times))?,
        // 0 is an atom without a molecule
        molecule: c.molecule.map_or(Ok(0), |k| l.whole::<i32>(words[k]))?.saturating_sub(1),
    })
}

/// The words that stand for types, and the elements beside them.
#[derive(Default)]
struct Kinds {
    words: Vec<String>,
    elements: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Some type has several elements, so these are no names.
    mixed: bool,
}

impl Kinds {
    fn number(&mut self, word: &str, element: Option<&str>) -> u32 {
        let n = match self.numbers.get(word) {
            Some(n) => *n,
            None => {
                let n = self.words.len() as u32;
                self.words.push(word.into());
                self.elements.push(element.unwrap_or(word).into());
                self.numbers.insert(word.into(), n);
                n
            }
        };
        self.mixed |= element.is_some_and(|e| e != self.elements[n as usize]);
        n
    }

    /// The number of a type, from 0, if it is one.
    fn by_number(&self, kind: u32) -> Option<usize> {
        self.words[kind as usize].parse::<usize>().ok()?.checked_sub(1)
    }
}

/// Most types that are made because of a large number.
const MOST: usize = 10_000;

/// Names of types, and the type of each word: in the order of their numbers, which does not depend on that of the atoms.
fn types(kinds: &Kinds, choice: &Choice, l: &Lines) -> Result<(Vec<String>, Vec<u32>)> {
    let numbers: Option<Vec<usize>> = (0..kinds.words.len() as u32).map(|k| kinds.by_number(k)).collect();
    let mut names = choice.types.clone().unwrap_or_default();
    if let (Some(given), Some(numbers)) = (&choice.types, &numbers) {
        if let Some(n) = numbers.iter().find(|n| **n >= given.len()) {
            return Err(l.wrong_file(format!("there is a type {}, but `types` names {}", n + 1, given.len())));
        }
        return Ok((names, numbers.iter().map(|n| *n as u32).collect()));
    }
    let distinct: std::collections::HashSet<&String> = kinds.elements.iter().collect();
    let elements = !kinds.mixed && distinct.len() == kinds.elements.len() && kinds.elements != kinds.words;
    let mut order: Vec<usize> = (0..kinds.words.len()).collect();
    order.sort_by_key(|k| (kinds.words[*k].parse::<u64>().unwrap_or(u64::MAX), kinds.words[*k].clone()));
    match numbers {
        // types that have no atom in this frame keep their places
        Some(numbers) if !elements && numbers.iter().all(|n| *n < MOST) => {
            let most = numbers.iter().max().map_or(0, |n| n + 1);
            names = (1..=most).map(|n| n.to_string()).collect();
        }
        _ => {}
    }
    let mut of_word = vec![0; order.len()];
    for k in order {
        of_word[k] = intern(&mut names, if elements { &kinds.elements[k] } else { &kinds.words[k] });
    }
    Ok((names, of_word))
}

fn atoms(l: &mut Lines, columns: &str, n: usize, space: Space, choice: &Choice) -> Result<Snapshot> {
    let columns = Columns::of(columns, l)?;
    let mut kinds = Kinds::default();
    let mut all: Vec<Atom> = vec![];
    for _ in 0..n {
        l.must("the last atom")?;
        all.push(atom(l, &columns, space, &mut kinds)?);
    }
    all.sort_by_key(|a| a.id);
    if let Some(pair) = all.windows(2).find(|p| p[0].id == p[1].id) {
        return Err(l.wrong(format!("the atom {} is there twice", pair[0].id)));
    }
    let (names, of_word) = types(&kinds, choice, l)?;
    let mut s = Snapshot {
        dimensions: if choice.flat { 2 } else { 3 },
        box_length: space.length,
        types: names,
        ..Snapshot::default()
    };
    if choice.flat {
        s.box_length[2] = 0.0;
    }
    for a in &all {
        let tag = s.push(of_word[a.kind as usize], a.position) as usize;
        (s.image[tag], s.velocity[tag]) = (a.image, a.velocity);
        if choice.flat {
            (s.position[tag][2], s.velocity[tag][2], s.image[tag][2]) = (0.0, 0.0, 0);
        }
        s.mass[tag] = match (a.mass, &choice.masses) {
            (Some(m), _) => m,
            (None, Some(masses)) => *kinds.by_number(a.kind).and_then(|k| masses.get(k)).ok_or_else(|| {
                l.wrong_file(format!("`masses` has none for the type {}", kinds.words[a.kind as usize]))
            })?,
            (None, None) => 1.0,
        };
    }
    let mut array = |name: &str, values: Values| s.arrays.insert(name.into(), Array { width: 1, values });
    if columns.charge.is_some() {
        array("charge", Values::Real(all.iter().map(|a| a.charge).collect()));
    }
    if columns.diameter.is_some() {
        array("diameter", Values::Real(all.iter().map(|a| a.diameter).collect()));
    }
    if columns.molecule.is_some() {
        array("molecule", Values::Int(all.iter().map(|a| a.molecule).collect()));
    }
    Ok(s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::error::Position;
    use galamost_text::Trajectory;

    const DUMP: &str = "ITEM: TIMESTEP\n100\nITEM: NUMBER OF ATOMS\n3\nITEM: BOX BOUNDS pp pp pp\n0.0 10.0\n-2.0 6.0\n1.0 5.0\n\
        ITEM: ATOMS id type x y z ix iy iz mol q\n3 2 9.5 2.0 1.0 0 0 0 2 -1.0\n1 1 5.0 2.0 3.0 1 0 -1 1 0.5\n2 1 10.5 -2.5 5.0 0 0 0 1 0.5\n\
        ITEM: UNITS\nlj\nITEM: TIME\n0.5\nITEM: TIMESTEP\n200\nITEM: NUMBER OF ATOMS\n1\nITEM: BOX BOUNDS pp pp pp\n0 4\n0 4\n0 4\n\
        ITEM: ATOMS id element xsu ysu zsu vx vy vz mass\n7 Cl 0.25 1.5 -0.25 1 2 3 35.5\n";

    fn of(text: &str, frame: i64, choice: &Choice) -> Result<Snapshot> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f.dump");
        std::fs::write(&path, text).expect("written");
        read(Trajectory::open(&path, skip)?.frame(frame)?, choice)
    }

    #[test]
    fn frames_are_read() {
        let s = of(DUMP, 0, &Choice::default()).expect("a frame");
        assert_eq!((s.step, s.box_length, &s.types[..]), (100, [10.0, 8.0, 4.0], &["1".to_string(), "2".into()][..]));
        assert_eq!((s.position[0], s.image[0]), ([0.0, 0.0, 0.0], [1, 0, -1]));
        // outside of the box by a little: brought back, and counted
        assert_eq!((s.position[1], s.image[1]), ([-4.5, 3.5, -2.0], [1, -1, 1]));
        assert_eq!((s.kind[2], s.position[2]), (1, [4.5, 0.0, -2.0]));
        assert_eq!(s.arrays["molecule"].values, Values::Int(vec![0, 0, 1]));
        assert_eq!(s.arrays["charge"].values, Values::Real(vec![0.5, 0.5, -1.0]));
        s.check().expect("a state");
        let s = of(DUMP, -1, &Choice::default()).expect("a frame");
        assert_eq!((s.position[0], s.image[0], s.mass[0]), ([-1.0, 0.0, 1.0], [0, 1, -1], 35.5));
        assert_eq!((s.velocity[0], s.types[0].as_str(), s.step), ([1.0, 2.0, 3.0], "Cl", 200));
        let names = vec!["W".to_string(), "P".to_string()];
        let choice = Choice { types: Some(names.clone()), masses: Some(vec![18.0, 3.0]), flat: true };
        let s = of(DUMP, 0, &choice).expect("a frame");
        assert_eq!((&s.types[..], s.mass[2], s.box_length[2], s.position[1][2]), (&names[..], 3.0, 0.0, 0.0));
        s.check().expect("a state");
    }

    #[test]
    fn elements_name_types_if_each_has_its_own() {
        let text = |rows: &str| {
            format!(
                "ITEM: TIMESTEP\n0\nITEM: NUMBER OF ATOMS\n3\nITEM: BOX BOUNDS pp pp pp\n0 4\n0 4\n0 4\n\
                 ITEM: ATOMS id type element x y z\n{rows}"
            )
        };
        let names = |rows: &str| {
            let s = of(&text(rows), 0, &Choice::default()).expect("a frame");
            (s.types, s.kind)
        };
        let words = |w: &[&str]| w.iter().map(|w| (*w).to_string()).collect::<Vec<_>>();
        assert_eq!(names("1 3 B 1 1 1\n2 1 A 1 1 1\n3 3 B 1 1 1\n"), (words(&["A", "B"]), vec![1, 0, 1]));
        // two types of one element, one type of two: numbers, with those that have no atom here
        assert_eq!(names("1 3 C 1 1 1\n2 1 C 1 1 1\n3 3 C 1 1 1\n"), (words(&["1", "2", "3"]), vec![2, 0, 2]));
        assert_eq!(names("1 1 C 1 1 1\n2 1 N 1 1 1\n3 1 N 1 1 1\n"), (words(&["1"]), vec![0, 0, 0]));
    }

    #[test]
    fn wrong_dumps_are_told_with_their_place() {
        let end = DUMP.len();
        let cases = [
            ("hello\n", 0, "no text dump of LAMMPS", Some((1, 1))),
            (DUMP, 2, "there is no frame 2: the file has 2", None),
            (DUMP, -3, "there is no frame -3", None),
            (&DUMP.replace("pp pp pp\n0.0", "xy xz yz pp pp pp\n0.0"), 0, "triclinic", Some((5, 1))),
            (&DUMP.replace("pp pp pp\n0.0", "ff pp pp\n0.0"), 0, "boundary `ff`", Some((5, 1))),
            (&DUMP.replace("9.5 2.0", "9.5 nan"), 0, "no finite number", Some((10, 9))),
            (&DUMP.replace("9.5 2.0", "9.5 what"), 0, "expected a number, found `what`", Some((10, 9))),
            (&DUMP.replace("9.5 2.0", "9.5 1e99"), 0, "`1e99` is too far outside", Some((10, 9))),
            (&DUMP.replace("\n2 1 10.5", "\n1 1 10.5"), 0, "the atom 1 is there twice", Some((12, 1))),
            (&DUMP.replace("id type x", "id what x"), 0, "no column `type`", Some((9, 1))),
            (&DUMP.replace("ATOMS\n3", "ATOMS\n4"), 0, "2 values for 10 columns", Some((13, 1))),
            (
                &DUMP.replace("ATOMS\n3", "ATOMS\n99999999999"),
                0,
                "there is no complete frame 0: the file ends",
                Some((26, 1)),
            ),
            (&DUMP[..end - 1], 1, "there is no complete frame 1: the file ends", Some((26, 1))),
        ];
        for (text, frame, message, place) in cases {
            let e = of(text, frame, &Choice::default()).expect_err(message);
            let at = place.map(|(line, column)| Position { line, column });
            assert!(e.message.contains(message) && e.at == at, "{message}: {e:?}");
        }
        let cut = of(&DUMP[..end - 1], -1, &Choice::default()).expect("the frame before");
        assert_eq!(cut.step, 100);
    }
}
