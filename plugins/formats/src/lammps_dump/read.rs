//! Reads a frame of a dump.

use crate::lammps_dump::rows::{Atom, Columns, SimBox, TypeWords, atom};
use crate::names::warn_of_masses;
use galamost_plugin_api::prelude::{Array, Snapshot, Values};
use galamost_plugin_api::snapshot::intern;
use galamost_text::{Lines, Result, Shape, tilted};

/// Options of the generator.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    pub types: Option<Vec<String>>,
    pub masses: Option<Vec<f64>>,
    /// Whether the system is two-dimensional.
    pub flat: bool,
}

/// Returns the text after `ITEM: ` in the current line.
fn item(l: &Lines) -> Result<String> {
    let item = l.text().strip_prefix("ITEM: ").map(str::to_string);
    item.ok_or_else(|| l.wrong("not a LAMMPS text dump: expected a line `ITEM: …`"))
}

/// Skips a frame.
pub fn skip(l: &mut Lines) -> Result<bool> {
    while l.next()? {
        if l.text().is_empty() {
            continue;
        }
        let mut n = None;
        loop {
            l.ended()?;
            let item = item(l)?;
            if let Some(columns) = item.strip_prefix("ATOMS") {
                let n = n.ok_or_else(|| l.wrong("the number of atoms must precede the atoms"))?;
                return l.skip(n, columns.split_whitespace().count(), "the atoms").map(|()| true);
            } else if item == "NUMBER OF ATOMS" {
                l.must("the number of atoms")?;
                l.ended()?;
                n = Some(l.whole(l.text())?);
            } else {
                l.skip(if item.starts_with("BOX BOUNDS") { 3 } else { 1 }, usize::MAX, &item)?;
            }
            l.must("the atoms")?;
        }
    }
    Ok(false)
}

/// Reads a frame that begins in the next line.
pub fn read(l: &mut Lines, choice: &Choice) -> Result<Snapshot> {
    let (mut step, mut n, mut sim_box) = (0u64, 0usize, None);
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
            sim_box = Some(read_box(l, rest, choice.flat)?);
        } else if let Some(columns) = item.strip_prefix("ATOMS") {
            let sim_box = sim_box.ok_or_else(|| l.wrong("the box must precede the atoms"))?;
            let mut s = atoms(l, columns, n, sim_box, choice)?;
            s.step = step;
            return Ok(s);
        } else {
            // UNITS and TIME have one line
            l.must(&item)?;
        }
    }
}

/// Reads the bounds of the box. With tilts, they are those of the rectangular box around it.
fn read_box(l: &mut Lines, boundaries: &str, flat: bool) -> Result<SimBox> {
    let words: Vec<&str> = boundaries.split_whitespace().collect();
    if words.iter().any(|w| ["abc", "origin"].contains(w)) {
        return Err(
            l.wrong("general triclinic boxes are not supported; write the dump with a restricted one (xy xz yz)")
        );
    }
    let tilts = ["xy", "xz", "yz"].iter().all(|w| words.contains(w));
    let known = |w: &&&str| !["xy", "xz", "yz", "pp"].contains(*w);
    for w in words.iter().filter(known) {
        if w.is_empty() || w.len() > 2 || !w.chars().all(|c| "pfsm".contains(c)) {
            return Err(l.wrong(format!("unknown boundary `{w}`; expected two of p, f, s, and m")));
        }
        l.warn(format!("boundary `{w}`: the box is periodic in this program; walls confine particles"));
    }
    let (mut bounds, mut tilt) = ([[0.0; 2]; 3], [0.0; 3]);
    for (bounds, tilt) in bounds.iter_mut().zip(&mut tilt) {
        l.must("the box")?;
        if tilts {
            [bounds[0], bounds[1], *tilt] = l.reals()?;
        } else {
            *bounds = l.reals()?;
        }
        if bounds[0] >= bounds[1] || !(bounds[1] - bounds[0]).is_finite() {
            return Err(l.wrong(format!("invalid bounds {} … {}", bounds[0], bounds[1])));
        }
    }
    let tilt = if tilted(&tilt, &bounds.map(|[low, high]| high - low)) { tilt } else { [0.0; 3] };
    let [xy, xz, yz] = tilt;
    let around = extent(tilt);
    let length: [f64; 3] = std::array::from_fn(|k| bounds[k][1] - bounds[k][0] - (around[k][1] - around[k][0]));
    if length.iter().any(|x| *x <= 0.0) {
        return Err(l.wrong(format!("the bounds are too narrow for the tilts {xy}, {xz}, {yz}")));
    }
    // the box and the box around it have the same center
    let center = bounds.map(|[low, high]| 0.5 * low + 0.5 * high);
    let shape = Shape::of_tilts(length, tilt);
    Ok(SimBox { center, shape: if flat { Shape { tilt: shape.flat().tilt, ..shape } } else { shape } })
}

/// Returns how far a box with these tilts extends beyond its bounds, at the lower and the upper end of each axis.
pub fn extent([xy, xz, yz]: [f64; 3]) -> [[f64; 2]; 3] {
    let of = |tilts: [f64; 4]| [tilts.iter().copied().fold(0.0, f64::min), tilts.iter().copied().fold(0.0, f64::max)];
    [of([0.0, xy, xz, xy + xz]), of([0.0, yz, 0.0, 0.0]), [0.0; 2]]
}

/// Maximum number of types created for a large type number.
const MAX_TYPES: usize = 10_000;

/// Returns the type names, and the type of each word: in the order of type numbers, or, if types are not numbered, of their first
/// use by the atoms, which are sorted by id. Neither depends on the order of rows, which LAMMPS changes.
fn type_names(words: &TypeWords, all: &[Atom], choice: &Choice, l: &Lines) -> Result<(Vec<String>, Vec<u32>)> {
    let numbers: Option<Vec<usize>> = (0..words.words.len() as u32).map(|k| words.by_number(k)).collect();
    let mut names = choice.types.clone().unwrap_or_default();
    if let (Some(given), Some(numbers)) = (&choice.types, &numbers) {
        if let Some(n) = numbers.iter().find(|n| **n >= given.len()) {
            return Err(l.wrong_file(format!("found type {}, but `types` lists only {}", n + 1, given.len())));
        }
        return Ok((names, numbers.iter().map(|n| *n as u32).collect()));
    }
    let distinct: std::collections::HashSet<&String> = words.elements.iter().collect();
    let elements = !words.mixed && distinct.len() == words.elements.len() && words.elements != words.words;
    let mut order: Vec<usize> = (0..words.words.len()).collect();
    // also from 0
    let numeric: Option<Vec<u64>> = words.words.iter().map(|w| w.parse().ok()).collect();
    match numeric {
        Some(numbers) => order.sort_by_key(|k| numbers[*k]),
        None => {
            let mut first = vec![usize::MAX; order.len()];
            all.iter().enumerate().rev().for_each(|(at, a)| first[a.kind as usize] = at);
            order.sort_by_key(|k| first[*k]);
        }
    }
    match numbers {
        // types without atoms in this frame keep their numbers
        Some(numbers) if !elements && numbers.iter().all(|n| *n < MAX_TYPES) => {
            let most = numbers.iter().max().map_or(0, |n| n + 1);
            names = (1..=most).map(|n| n.to_string()).collect();
        }
        _ => {}
    }
    let mut of_word = vec![0; order.len()];
    for k in order {
        of_word[k] = intern(&mut names, if elements { &words.elements[k] } else { &words.words[k] });
    }
    Ok((names, of_word))
}

fn atoms(l: &mut Lines, columns: &str, n: usize, sim_box: SimBox, choice: &Choice) -> Result<Snapshot> {
    let columns = Columns::of(columns, choice.flat, l)?;
    let mut words = TypeWords::default();
    let mut all: Vec<Atom> = vec![];
    for _ in 0..n {
        l.must("the last atom")?;
        all.push(atom(l, &columns, sim_box, &mut words)?);
    }
    all.sort_by_key(|a| a.id);
    if let Some(pair) = all.windows(2).find(|p| p[0].id == p[1].id) {
        return Err(l.wrong(format!("duplicate atom id {}", pair[0].id)));
    }
    let (names, of_word) = type_names(&words, &all, choice, l)?;
    let numbered = (0..words.words.len() as u32).all(|k| words.by_number(k).is_some());
    let mut s = Snapshot {
        dimensions: if choice.flat { 2 } else { 3 },
        box_length: sim_box.shape.length,
        tilt: sim_box.shape.tilt,
        types: names,
        ..Snapshot::default()
    };
    if choice.flat {
        s.box_length[2] = 0.0;
    }
    if let Some(masses) = choice.masses.as_ref().filter(|_| columns.mass.is_none()) {
        let largest = (0..words.words.len() as u32).filter_map(|k| words.by_number(k)).max().filter(|_| numbered);
        let known = s.types.len().max(largest.map_or(0, |n| n + 1));
        warn_of_masses(l, masses, known);
    }
    for a in &all {
        let tag = s.push(of_word[a.kind as usize], a.position) as usize;
        (s.image[tag], s.velocity[tag]) = (a.image, a.velocity);
        if choice.flat {
            (s.position[tag][2], s.velocity[tag][2], s.image[tag][2]) = (0.0, 0.0, 0);
        }
        s.mass[tag] = match (a.mass, &choice.masses) {
            (Some(m), _) => m,
            (None, Some(masses)) => {
                let number = if numbered { words.by_number(a.kind) } else { Some(s.type_id[tag] as usize) };
                let missing = || l.wrong_file(format!("`masses` lacks the type {}", words.words[a.kind as usize]));
                *number.and_then(|k| masses.get(k)).ok_or_else(missing)?
            }
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
        // slightly outside the box: wrapped, and counted in the image
        assert_eq!((s.position[1], s.image[1]), ([-4.5, 3.5, -2.0], [1, -1, 1]));
        assert_eq!((s.type_id[2], s.position[2]), (1, [4.5, 0.0, -2.0]));
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
    fn bounds_of_boxes_are_read() {
        let same = of(DUMP, 0, &Choice::default());
        let tilted = |tilt: &str| {
            DUMP.replacen(
                "pp pp pp\n0.0 10.0\n-2.0 6.0\n1.0 5.0",
                &format!("xy xz yz pp pp pp\n0.0 10.0 0\n-2.0 6.0 {tilt}\n1.0 5.0 0.0"),
                1,
            )
        };
        for tilt in ["0.0", "1e-17", "-1e-9"] {
            assert_eq!(of(&tilted(tilt), 0, &Choice::default()), same);
        }
        // the bounds are those of the box around the triclinic one
        let s = of(&tilted("0.1"), 0, &Choice::default()).expect("a frame");
        assert_eq!((s.box_length, s.tilt), ([9.9, 8.0, 4.0], [0.0, 0.1 / 4.0, 0.0]));
        for walls in ["ff pp pp", "ss mm fs"] {
            assert_eq!(of(&DUMP.replacen("pp pp pp", walls, 1), 0, &Choice::default()), same);
        }
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
            (s.types, s.type_id.into_vec())
        };
        let words = |w: &[&str]| w.iter().map(|w| (*w).to_string()).collect::<Vec<_>>();
        assert_eq!(names("1 3 B 1 1 1\n2 1 A 1 1 1\n3 3 B 1 1 1\n"), (words(&["A", "B"]), vec![1, 0, 1]));
        // two types with one element, or one type with two elements: numbers, including types without atoms
        assert_eq!(names("1 3 C 1 1 1\n2 1 C 1 1 1\n3 3 C 1 1 1\n"), (words(&["1", "2", "3"]), vec![2, 0, 2]));
        assert_eq!(names("1 1 C 1 1 1\n2 1 N 1 1 1\n3 1 N 1 1 1\n"), (words(&["1"]), vec![0, 0, 0]));
    }

    #[test]
    fn types_without_numbers_are_numbered_in_order_of_their_first_use() {
        let text = "ITEM: TIMESTEP\n0\nITEM: NUMBER OF ATOMS\n4\nITEM: BOX BOUNDS pp pp pp\n0 4\n0 4\n0 4\n\
                    ITEM: ATOMS id element x y z\n4 H 1 1 1\n2 C 1 1 1\n1 O 1 1 1\n3 O 1 1 1\n";
        let choice = Choice { masses: Some(vec![16.0, 12.0, 1.0]), ..Choice::default() };
        let s = of(text, 0, &choice).expect("a frame");
        assert_eq!((s.types.join(" "), s.type_id.to_vec()), ("O C H".into(), vec![0, 1, 0, 2]));
        assert_eq!(s.mass.to_vec(), [16.0, 12.0, 16.0, 1.0]);
        let names = ["H", "C", "O"].map(String::from).into();
        let s = of(text, 0, &Choice { types: Some(names), ..choice.clone() }).expect("a frame");
        assert_eq!((s.type_id.to_vec(), s.mass.to_vec()), (vec![2, 1, 2, 0], vec![1.0, 12.0, 1.0, 16.0]));
        let few = Choice { masses: Some(vec![16.0, 12.0]), ..choice };
        assert!(of(text, 0, &few).is_err_and(|e| e.message == "`masses` lacks the type H"));
    }

    /// Masses of types that the system does not have are named; a type in `types` needs no atoms.
    #[test]
    fn masses_without_a_type_give_a_warning() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f.dump");
        std::fs::write(&path, DUMP).expect("written");
        let warnings = |types: Option<&[&str]>, masses: &[f64], frame: i64| {
            let types = types.map(|t| t.iter().map(|name| (*name).to_string()).collect());
            let choice = Choice { types, masses: Some(masses.to_vec()), flat: false };
            let mut trajectory = Trajectory::open(&path, skip).expect("opened");
            let lines = trajectory.frame(frame).expect("a frame");
            read(lines, &choice).expect("a state");
            lines.warnings().into_iter().filter(|w| w.contains("`masses`")).collect::<Vec<_>>()
        };
        let said = warnings(None, &[1.0, 2.0, 3.0], 0);
        assert!(said.len() == 1 && said[0].contains("lists 3 types, but there are 2"), "{said:?}");
        assert_eq!(warnings(None, &[1.0, 2.0], 0), [""; 0]);
        assert_eq!(warnings(Some(&["A", "B", "C"][..]), &[1.0, 2.0, 3.0], 0), [""; 0]);
        // the second frame has masses
        assert_eq!(warnings(None, &[1.0, 2.0, 3.0], 1), [""; 0]);
    }

    #[test]
    fn errors_have_their_position() {
        let end = DUMP.len();
        let cut = &DUMP[..DUMP[..end - 1].rfind('\n').expect("lines") + 4];
        let cases = [
            ("hello\n", 0, "not a LAMMPS text dump", Some((1, 1))),
            (DUMP, 2, "there is no frame 2: the file has 2", None),
            (DUMP, -3, "there is no frame -3", None),
            (&DUMP.replace("pp pp pp\n0.0", "abc origin pp pp pp\n0.0"), 0, "general triclinic boxes", Some((5, 1))),
            (&DUMP.replace("pp pp pp\n0.0", "qq pp pp\n0.0"), 0, "unknown boundary `qq`", Some((5, 1))),
            (&DUMP.replace("9.5 2.0", "9.5 nan"), 0, "not a finite number", Some((10, 9))),
            (&DUMP.replace("9.5 2.0", "9.5 what"), 0, "expected a number, found `what`", Some((10, 9))),
            (&DUMP.replace("9.5 2.0", "9.5 1e99"), 0, "the position of atom 3 is too far outside", Some((10, 5))),
            (&DUMP.replace("\n2 1 10.5", "\n1 1 10.5"), 0, "duplicate atom id 1", Some((12, 1))),
            (&DUMP.replace("id type x", "id what x"), 0, "no column `type`", Some((9, 1))),
            (&DUMP.replace("ATOMS\n3", "ATOMS\n4"), 0, "found 2 values for 10 columns", Some((13, 1))),
            (
                &DUMP.replace("ATOMS\n3", "ATOMS\n99999999999"),
                0,
                "there is no complete frame 0: the file ends",
                Some((26, 1)),
            ),
            (cut, 1, "there is no complete frame 1: the file ends", Some((26, 1))),
        ];
        for (text, frame, message, place) in cases {
            let e = of(text, frame, &Choice::default()).expect_err(message);
            let at = place.map(|(line, column)| Position { line, column });
            assert!(e.message.contains(message) && e.at == at, "{message}: {e:?}");
        }
        let step = |text: &str| of(text, -1, &Choice::default()).expect("a frame").step;
        // the last frame counts without a line break behind it, but not without its last values
        assert_eq!([step(&DUMP[..end - 1]), step(cut)], [200, 100]);
    }
}
