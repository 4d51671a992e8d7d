//! What files lose: contents that readers do not know, and contents that a target format of `convert` cannot hold.

use super::{chains, go, needs_topology, read};
use galamost::files::Writer;
use galamost::files::contents::{Fate, contents};
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::snapshot::{Array, KNOWN_ARRAYS, Link, Snapshot, Values};
use galamost_tests::{registry, repository};
use std::collections::BTreeMap;
use std::path::Path;

/// Endings of all formats, with the component that writes them.
const FORMATS: [(&str, &str); 11] = [
    ("xml", "GalamostXml"),
    ("gsd", "Gsd"),
    ("mst", "Mst"),
    ("data", "LammpsData"),
    ("dump", "LammpsDump"),
    ("xyz", "ExtendedXyz"),
    ("dcd", "Dcd"),
    ("pdb", "Pdb"),
    ("gro", "Gro"),
    ("xtc", "Xtc"),
    ("trr", "Trr"),
];

/// A state with everything that files may hold: also types in another order than that of their first use, and types
/// without particles or bonds.
fn everything() -> Snapshot {
    let mut s = chains();
    let n = s.len();
    s.types = vec!["none".into(), "B".into(), "A".into()];
    s.type_id.iter_mut().for_each(|k| *k = 2 - *k);
    // not exact in single precision
    s.box_length = [9.7, 10.1, 11.3];
    s.mass.iter_mut().zip(&s.type_id).for_each(|(m, k)| *m = if *k == 1 { 1.1 } else { 1.7 });
    for (types, name) in [
        (&mut s.bond_types, "bond"),
        (&mut s.angle_types, "angle"),
        (&mut s.dihedral_types, "dihedral"),
        (&mut s.improper_types, "improper"),
    ] {
        *types = [2, 1, 0, 3].map(|k| format!("{name}{k}")).into();
    }
    s.bonds.iter_mut().for_each(|l| l.kind = 1 - l.kind);
    s.angles.iter_mut().enumerate().for_each(|(k, l)| l.kind = u32::from(k % 2 == 0));
    s.dihedrals.iter_mut().enumerate().for_each(|(k, l)| l.kind = u32::from(k % 2 == 0));
    s.impropers = s.dihedrals.iter().map(|l| Link { kind: l.kind, tags: [1, 0, 2, 3].map(|k| l.tags[k]) }).collect();
    for (name, width, whole, _) in KNOWN_ARRAYS {
        let values = match (*width, *whole) {
            (_, true) => Values::Int((0..n as i32).map(|k| k % 4).collect()),
            // unit vectors and quaternions
            (3 | 4, _) if !["rotation", "inert"].contains(name) => {
                let unit = [0.48, 0.6, 0.64, 0.0];
                Values::Real((0..n).flat_map(|_| unit[..*width as usize].to_vec()).collect())
            }
            _ => Values::Real((0..n * *width as usize).map(|k| 0.3 + 0.1 * k as f64).collect()),
        };
        s.arrays.insert((*name).into(), Array { width: *width, values });
    }
    s
}

/// The field `velocity` with the default of a component. `convert` gives it a value that follows from the state.
fn default_velocity(component: &str) -> String {
    let (_, info) = registry().find(Kind::Analyzer, component).expect("a component");
    let default = info.fields.iter().find(|f| f.name == "velocity").and_then(|f| f.default.as_ref());
    default.map_or_else(String::new, |value| format!("velocity: {value}"))
}

/// Writes a state with the fields that `convert` uses, and reads it.
fn written(s: &Snapshot, path: &Path, fields: &str) -> Snapshot {
    let writer = Writer::create(path, None, fields, s, registry()).unwrap_or_else(|e| panic!("{}", e.render()));
    writer.write(s).and_then(|()| writer.finish()).unwrap_or_else(|e| panic!("{}", e.render()));
    if path.extension().is_some_and(|e| needs_topology(&e.to_string_lossy())) {
        let n = s.len();
        let mut base =
            Snapshot { dimensions: 3, box_length: s.box_length, types: vec!["A".into()], ..Snapshot::default() };
        (0..n).for_each(|_| _ = base.push(0, [0.0; 3]));
        let reader = galamost::files::Reader::open(path, registry()).expect("opened");
        return reader.read_over(None, base).unwrap_or_else(|e| panic!("{}", e.render()));
    }
    read(path, None)
}

/// The table of the book, as measured: a row for each content, a column for each format.
fn table(folder: &Path) -> String {
    let s = everything();
    let one = |(ending, name): &(&str, &str)| written(&s, &folder.join(format!("t.{ending}")), &default_velocity(name));
    let back: Vec<Snapshot> = FORMATS.iter().map(one).collect();
    let names: Vec<String> = FORMATS.iter().map(|(_, name)| format!("`{name}`")).collect();
    let mut out = format!("| content | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(FORMATS.len()));
    for content in contents(&s) {
        let name =
            if s.arrays.contains_key(&content.name) { format!("`{}`", content.name) } else { content.name.clone() };
        let cell = |b: &Snapshot| match content.fate(&s, b) {
            Some(Fate::Kept) => "exact",
            Some(Fate::Rounded(_)) => "rounded",
            Some(Fate::Partly) => "partly",
            // of contents that depend on another one, that other one is lost
            Some(Fate::Lost) | None => "–",
        };
        let cells: Vec<&str> = back.iter().map(cell).collect();
        out += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    out
}

#[test]
fn the_book_says_what_each_format_holds() {
    let f = tempfile::tempdir().expect("a folder");
    let table = table(f.path());
    assert!(
        in_the_book("contents of formats") == table.trim(),
        "docs/src/reference/file-formats.md must contain:\n{table}"
    );
}

/// Contents of angles, dihedrals and impropers.
const ANGULAR: [&str; 9] = [
    "angles",
    "angle type names",
    "angle type numbers",
    "dihedrals",
    "dihedral type names",
    "dihedral type numbers",
    "impropers",
    "improper type names",
    "improper type numbers",
];

/// Groups of contents in the table of conversions, with a letter for each; other contents are arrays (`P`).
const GROUPS: [(char, &[&str]); 8] = [
    ('S', &["step"]),
    ('X', &["box", "positions"]),
    ('I', &["images"]),
    ('V', &["velocities"]),
    ('M', &["masses"]),
    ('T', &["type names", "type numbers", "types without particles"]),
    ('B', &["bonds", "bond type names", "bond type numbers", "bond types without bonds"]),
    ('A', &ANGULAR),
];

/// Cell of the table of conversions: a letter for each group that `b` has of `s`, a small one if not all of it is exact.
fn letters(s: &Snapshot, b: &Snapshot) -> String {
    let mut fates: BTreeMap<usize, Vec<Fate>> = BTreeMap::new();
    for content in contents(s) {
        let group = GROUPS.iter().position(|(_, names)| names.contains(&content.name.as_str()));
        // of contents that depend on another one, that other one is lost
        let fate = content.fate(s, b).unwrap_or(Fate::Lost);
        fates.entry(group.unwrap_or(GROUPS.len())).or_default().push(fate);
    }
    let letter = |(group, fates): (&usize, &Vec<Fate>)| {
        let letter = GROUPS.get(*group).map_or('P', |g| g.0);
        if fates.iter().all(|f| *f == Fate::Kept) {
            return Some(letter);
        }
        fates.iter().any(|f| *f != Fate::Lost).then(|| letter.to_ascii_lowercase())
    };
    fates.iter().filter_map(letter).collect()
}

/// Returns the text of the page of file formats between two marks.
fn in_the_book(mark: &str) -> String {
    let page = std::fs::read_to_string(repository().join("docs/src/reference/file-formats.md")).expect("the page");
    let found = page.split_once(&format!("<!-- {mark} -->\n")).and_then(|(_, rest)| rest.split_once("\n<!-- end -->"));
    found.map_or("", |(found, _)| found).trim().into()
}

/// Each format into each other one: what comes back is the same, except for what was named. The book has the table.
#[test]
#[ignore = "5 seconds"]
fn conversions_name_everything_that_is_lost() {
    let f = tempfile::tempdir().expect("a folder");
    let s = everything();
    let names: Vec<String> = FORMATS.iter().map(|(_, name)| format!("`{name}`")).collect();
    let mut table = format!("| from | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(FORMATS.len()));
    for (from, name) in FORMATS {
        table += &format!("| `{name}` |");
        let a = written(&s, &f.path().join(format!("a.{from}")), "");
        for (to, _) in FORMATS {
            let (input, output) = (format!("a.{from}"), format!("b-{from}.{to}"));
            let mut args = vec!["convert", &input, &output];
            if needs_topology(from) {
                args.extend(["--topology", "a.xml"]);
            }
            let said = go(f.path(), &args);
            let a = if needs_topology(from) {
                let reader = galamost::files::Reader::open(&f.path().join(&input), registry()).expect("opened");
                reader.read_over(None, read(&f.path().join("a.xml"), None)).unwrap_or_else(|e| panic!("{}", e.render()))
            } else {
                a.clone()
            };
            let lost = |what: &str| said.lines().any(|l| l.contains("WARN") && l.contains(&output) && l.contains(what));
            let reader = galamost::files::Reader::open(&f.path().join(&output), registry()).expect("opened");
            let base = if needs_topology(to) {
                Snapshot { types: vec!["A".into()], type_id: vec![0; a.len()].into(), ..a.clone() }
            } else {
                Snapshot::default()
            };
            let b = reader.read_over(None, base).unwrap_or_else(|e| panic!("{}", e.render()));
            let case = format!("{from} to {to}:\n{said}");
            assert!(a.step == b.step || lost("the step"), "{case}");
            assert!(a.box_length == b.box_length || lost("box lengths are rounded"), "{case}");
            let far =
                a.position.as_flattened().iter().zip(b.position.as_flattened()).any(|(a, b)| (a - b).abs() > 1e-13);
            assert!(!far || lost("positions are rounded"), "{case}");
            assert!(a.image == b.image || lost("images"), "{case}");
            assert!(["dcd", "xtc"].contains(&to) || a.velocity == b.velocity || lost("velocities"), "{case}");
            assert!(needs_topology(to) || a.mass == b.mass || lost("masses"), "{case}");
            let names = |s: &Snapshot| s.type_id.iter().map(|k| s.types[*k as usize].clone()).collect::<Vec<_>>();
            assert!(names(&a) == names(&b) || lost("type names"), "{case}");
            assert!(
                a.type_id == b.type_id || lost("type names") || lost("type numbers") || lost("types without particles"),
                "{case}"
            );
            if !needs_topology(to) {
                links(&a.bonds, &b.bonds, [&a.bond_types, &b.bond_types], "bond", &lost, &case);
                links(&a.angles, &b.angles, [&a.angle_types, &b.angle_types], "angle", &lost, &case);
                links(&a.dihedrals, &b.dihedrals, [&a.dihedral_types, &b.dihedral_types], "dihedral", &lost, &case);
                links(&a.impropers, &b.impropers, [&a.improper_types, &b.improper_types], "improper", &lost, &case);
                for (name, array) in &a.arrays {
                    let same = b.arrays.get(name).is_some_and(|b| match (&array.values, &b.values) {
                        (Values::Real(a), Values::Real(b)) => a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-14),
                        (a, b) => a == b,
                    });
                    // formats store one of these quantities, which determines the other
                    let either = ["rotation", "angular_momentum"];
                    let missing = either.contains(&name.as_str()) && !b.arrays.contains_key(name);
                    let same = same || missing && either.iter().any(|k| b.arrays.contains_key(*k));
                    assert!(
                        same || lost(&format!("{name} of particles")) || lost(&format!("values of {name}")),
                        "{name}, {case}"
                    );
                }
            }
            let bare = if needs_topology(to) {
                let mut bare = Snapshot { types: vec!["A".into()], ..Snapshot::default() };
                (0..s.len()).for_each(|_| _ = bare.push(0, [0.0; 3]));
                bare
            } else {
                Snapshot::default()
            };
            let bare = Snapshot { dimensions: 3, box_length: s.box_length, ..bare };
            let found = if needs_topology(to) { reader.read_over(None, bare) } else { Ok(b) };
            table += &format!(" {} |", letters(&s, &found.unwrap_or_else(|e| panic!("{}", e.render()))));
        }
        table += "\n";
    }
    assert!(in_the_book("conversions") == table.trim(), "docs/src/reference/file-formats.md must contain:\n{table}");
}

fn links<const N: usize>(
    a: &[Link<N>],
    b: &[Link<N>],
    types: [&Vec<String>; 2],
    what: &str,
    lost: &dyn Fn(&str) -> bool,
    case: &str,
) {
    let count = |links: &[Link<N>], types: &[String]| {
        let mut all: BTreeMap<([u32; N], String), u32> = BTreeMap::new();
        for l in links {
            let mut tags = l.tags;
            if tags[0] > tags[N - 1] {
                tags.reverse();
            }
            *all.entry((tags, types[l.kind as usize].clone())).or_default() += 1;
        }
        all
    };
    let named = lost(&format!(" {what}s")) || lost(&format!("{what} type names"));
    assert!(count(a, types[0]) == count(b, types[1]) || named, "{what}s, {case}");
    assert!(
        a.is_empty()
            || types[0] == types[1]
            || named
            || lost(&format!("{what} type numbers"))
            || lost(&format!("{what} types without")),
        "{what} types, {case}"
    );
}

/// Angular velocities and angular momenta determine each other, so a format that stores one of them loses nothing.
#[test]
fn one_quantity_of_rotations_is_enough() {
    let f = tempfile::tempdir().expect("a folder");
    let mut s = Snapshot { dimensions: 3, box_length: [10.0; 3], types: vec!["A".into()], ..Snapshot::default() };
    (0..2).for_each(|k| _ = s.push(0, [f64::from(k), 0.0, 0.0]));
    for (name, width, row) in [
        ("quaternion", 4, vec![0.0, 0.0, 0.0, 2.0]),
        ("inert", 3, vec![1.0, 2.0, 3.0]),
        ("rotation", 3, vec![0.5, -1.0, 2.0]),
    ] {
        s.arrays.insert(name.into(), Array { width, values: Values::Real(row.repeat(2)) });
    }
    written(&s, &f.path().join("a.xml"), "");
    for (from, to) in
        [("a.xml", "b.xyz"), ("a.xml", "b.mst"), ("a.xml", "b.gsd"), ("b.gsd", "c.xyz"), ("b.gsd", "c.xml")]
    {
        let said = go(f.path(), &["convert", from, to]);
        assert!(!said.contains("of particles"), "{from} {to}: {said}");
        let normalized = said.matches("it is normalized").count();
        assert_eq!(normalized, usize::from(from == "a.xml"), "{from} {to}: {said}");
    }
    let said = go(f.path(), &["convert", "a.xml", "b.data"]);
    assert!(said.contains("rotation of particles") && said.contains("angular_momentum of particles"), "{said}");
}

/// Data of LAMMPS through every format and back: type numbers stay, or a warning names them.
#[test]
fn type_numbers_survive() {
    let f = tempfile::tempdir().expect("a folder");
    let text = "LAMMPS data file, timestep = 0\n\n4 atoms\n4 atom types\n3 bonds\n3 bond types\n\n-4.0 4.0 xlo xhi\n-4.0 4.0 ylo yhi\n\
        -4.0 4.0 zlo zhi\n\nMasses\n\n1 1.0 # C\n2 2.0 # O\n3 3.0 # H\n4 1.0 # N\n\nAtoms # molecular\n\n1 1 3 0.5 0.0 0.0 0 0 0\n\
        2 1 1 1.5 0.0 0.0 0 0 0\n3 1 2 2.5 0.0 0.0 0 0 0\n4 1 3 3.5 0.0 0.0 0 0 0\n\nBonds\n\n1 3 1 2\n2 1 2 3\n3 3 3 4\n";
    std::fs::write(f.path().join("in.data"), text).expect("written");
    let state = read(&f.path().join("in.data"), None);
    for format in ["xml", "mst", "gsd", "data"] {
        let middle = format!("m.{format}");
        let said = go(f.path(), &["convert", "in.data", &middle]);
        assert!(!said.contains("type"), "{said}");
        go(
            f.path(),
            &["convert", &middle, "out.data", "--write", "atom_style: Molecular, velocity: false", "--overwrite"],
        );
        let back = read(&f.path().join("out.data"), None);
        assert_eq!((&back.types, &back.type_id), (&state.types, &state.type_id), "{format}");
        assert_eq!((&back.bond_types, &back.bonds), (&state.bond_types, &state.bonds), "{format}");
        assert_eq!(back.mass, state.mass, "{format}");
    }
    for format in ["xyz", "pdb", "gro"] {
        let said = go(f.path(), &["convert", "in.data", &format!("m.{format}")]);
        assert!(said.contains(&format!("not stored in m.{format}: type numbers (C is 2 instead of 1)")), "{said}");
        assert!(said.contains("1 type without particles"), "{said}");
    }
}

/// What readers do not read is named with its number.
#[test]
fn readers_name_what_they_skip() {
    let f = tempfile::tempdir().expect("a folder");
    let info = |name: &str, text: &str| {
        std::fs::write(f.path().join(name), text).expect("written");
        go(f.path(), &["info", name])
    };
    let head = "x\n\n4 atoms\n1 atom types\n2 impropers\n1 improper types\n\n0 4 xlo xhi\n0 4 ylo yhi\n0 4 zlo zhi\n\n";
    let atoms = "Atoms # atomic\n\n1 1 0 0 0\n2 1 1 0 0\n3 1 2 0 0\n4 1 3 0 0\n\n";
    let said = info("a.data", &format!("{head}{atoms}Impropers\n\n1 1 1 2 3 4\n2 1 4 3 2 1\n"));
    assert!(said.contains("impropers") && !said.contains("not read"), "{said}");
    assert!(said.contains("there is no section `Masses`: all masses are 1"), "{said}");
    let said = info("b.data", &format!("{}Masses\n\n1 2.0\n\n{atoms}", head.replace("2 impropers\n", "")));
    assert!(!said.contains("WARN"), "{said}");
    let said = info(
        "a.mst",
        "mst_version 1.0\n\tnum_particles\n\t\t1\n\tbox\n\t\t4 4 4\n\tposition\n\t\t0 0 0\n\ttype\n\t\tA\n\
         \tconstraint\n\t\tx 0 0 1.0\n\t\tx 0 0 1.0\n\tvsite\n\t\tv 0 0 0 0\nmst_end\n",
    );
    assert!(said.contains("2 rows of `constraint` are not read") && said.contains("1 rows of `vsite`"), "{said}");
    let dump = "ITEM: TIMESTEP\n0\nITEM: NUMBER OF ATOMS\n1\nITEM: BOX BOUNDS pp pp pp\n0 4\n0 4\n0 4\n";
    let said = info("a.dump", &format!("{dump}ITEM: ATOMS id type x y z xu yu zu fx fy c_pe\n1 1 1 1 1 1 1 1 0 0 0\n"));
    assert!(said.contains("columns that are not read: fx, fy and c_pe"), "{said}");
    let said = info("b.dump", &format!("{dump}ITEM: ATOMS id type x y z xu yu zu\n1 1 1 1 1 1 1 1\n"));
    assert!(!said.contains("WARN"), "{said}");
    let said = info(
        "a.xyz",
        "1\nLattice=\"4 0 0 0 4 0 0 0 4\" Properties=species:S:1:pos:R:3:forces:R:3:energy:R:1\nA 1 1 1 0 0 0 0\n",
    );
    assert!(said.contains("columns that are not read: forces and energy"), "{said}");
    // a run warns too
    let run = r#"(initial: [ LammpsData(file: "a.data") ], integrators: [ VelocityVerlet() ], stages: [ (steps: 1, dt: 0.01) ])"#;
    std::fs::write(f.path().join("p.ron"), run).expect("written");
    let said = go(f.path(), &["check", "p.ron"]);
    assert!(said.contains("no component of `forces` acts on impropers"), "{said}");
}

/// Every frame of a trajectory is compared, not only the last one.
#[test]
fn losses_of_all_frames_are_named() {
    let f = tempfile::tempdir().expect("a folder");
    let moving = Snapshot { step: 0, ..chains() };
    let rest = Snapshot { step: 10, velocity: vec![[0.0; 3]; 80].into(), ..chains() };
    let writer = Writer::create(&f.path().join("in.mst"), None, "", &moving, registry()).expect("a writer");
    writer.write(&moving).and_then(|()| writer.write(&rest)).and_then(|()| writer.finish()).expect("written");
    let said = go(f.path(), &["convert", "in.mst", "out.dump"]);
    assert!(said.contains("not stored in out.dump: velocities"), "{said}");
}

/// Reactions change the number of bonds; the largest one is named, not that of the first frame.
#[test]
fn the_largest_loss_of_the_frames_is_named() {
    let f = tempfile::tempdir().expect("a folder");
    let frame = |step: u64, bonds: usize| {
        let s = chains();
        Snapshot { step, bonds: s.bonds.iter().take(bonds).copied().collect(), ..s }
    };
    let writer = Writer::create(&f.path().join("in.gsd"), None, "", &frame(0, 70), registry()).expect("a writer");
    for (k, bonds) in [20, 70, 30].into_iter().enumerate() {
        writer.write(&frame(k as u64, bonds)).unwrap_or_else(|e| panic!("{}", e.render()));
    }
    writer.finish().expect("written");
    let said = go(f.path(), &["convert", "in.gsd", "out.xyz"]);
    assert!(said.contains("not stored in out.xyz: all of 70 bonds (the largest number in a frame)"), "{said}");
    // the number of angles is the same in all frames
    assert!(said.contains("all of 60 angles") && !said.contains("angles (the largest"), "{said}");
}

/// Formats without a number of dimensions need it as a field, which `convert` says.
#[test]
fn two_dimensions_are_kept_or_named() {
    let f = tempfile::tempdir().expect("a folder");
    let mut s =
        Snapshot { dimensions: 2, box_length: [10.0, 10.0, 0.0], types: vec!["A".into()], ..Snapshot::default() };
    [[0.0; 3], [1.0, 1.0, 0.0], [-4.5, 4.5, 0.0]].into_iter().for_each(|r| _ = s.push(0, r));
    s.step = 7;
    written(&s, &f.path().join("a.xml"), "");
    for (to, _) in FORMATS {
        let output = format!("b.{to}");
        let said = go(f.path(), &["convert", "a.xml", &output]);
        let named = said.lines().any(|l| l.contains("WARN") && l.contains(&output) && l.contains("two dimensions"));
        let kept = needs_topology(to) || read(&f.path().join(&output), None).dimensions == 2;
        assert_eq!(named, !kept, "{to}: {said}");
    }
    let xtc = std::fs::read(f.path().join("b.xtc")).expect("a file");
    let time = f32::from_be_bytes(xtc[12..16].try_into().expect("four bytes"));
    assert_eq!(time, 7.0, "a step takes 1 in a conversion, which knows no time");
}
