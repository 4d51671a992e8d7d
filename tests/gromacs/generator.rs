//! The generator `Gromacs`: the state is that of a converted pipeline, and its errors are those of `galamost convert`.

use super::{GRO, converted, topology};
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_tests::{galamost, plan_in, words};
use std::path::Path;

/// A converted pipeline with `Gromacs` in place of all generators.
fn with_generator(text: &str, generator: &str) -> String {
    let (head, rest) = text.split_once("    initial: [").expect("generators");
    let (_, rest) = rest.split_once("    forces: [").expect("forces");
    format!("{head}    initial: [ {generator} ],\n    forces: [{rest}")
}

/// The initial state of a pipeline. The pipeline must fit it.
fn state(folder: &Path, text: &str) -> Snapshot {
    let path = folder.join("state.ron");
    let plan = plan_in(&path, text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}\n{text}", e.render()));
    plan.snapshot
}

/// Compares states bit for bit: texts of numbers are different for different bits.
fn same(folder: &Path, text: &str, generator: &str) -> Snapshot {
    let [converted, generated] = [text, &with_generator(text, generator)].map(|text| state(folder, text));
    assert_eq!(converted, generated, "{generator}");
    assert!(format!("{converted:?}") == format!("{generated:?}"), "{generator}: signs of zeros");
    generated
}

/// All bonded functions, sites, constraints and charges; the same energies in a run, and the forces of `convert` fit.
#[test]
#[ignore = "5 seconds"]
fn the_state_and_a_run_are_those_of_the_converted_pipeline() {
    for (from, top, options, fields) in [
        ("tests/data/gromacs", "terms.top", &[][..], ""),
        ("tests/data/gromacs", "rigid.top", &[], ""),
        ("tests/data/gromacs", "rigid.top", &["--constraints-as-bonds", "1000"], ", constraints_as_bonds: 1000.0"),
        ("examples/80-martini", "system.top", &[], ""),
        // only formulas depend on the reaction field, not the types of bonds
        ("tests/data/gromacs", "terms.top", &["--r-cut", "1.0", "--epsilon-r", "2.5", "--epsilon-rf", "80"], ""),
    ] {
        let (folder, text) = converted(from, top, options);
        let gro = top.replace(".top", ".gro");
        let generator = format!("Gromacs(topology: {top:?}, coordinates: {gro:?}{fields})");
        let s = same(folder.path(), &text, &generator);
        assert_eq!(s.arrays.contains_key("sites.uses"), text.contains("Sites("), "{top}");
        let run = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).expect("written");
            // no random numbers: they depend on the number of generators
            let stages = "stages=[(steps: 20, dt: 0.001, integrators: [CappedVerlet(max_displacement: 0.0005)])]";
            let set = ["--set", stages, "--set", "analyzers[0].every=5", "--device", "cpu"];
            let out = galamost(folder.path(), &[&["--pipeline", name, "--quiet", "--overwrite"], &set[..]].concat());
            assert_eq!(out.status.code(), Some(0), "{}", words(&out));
            let table = top.replace(".top", ".csv");
            let table = [folder.path().join(table), folder.path().join("sim.csv")].into_iter().find(|f| f.exists());
            std::fs::read_to_string(table.expect("a table")).expect("a table")
        };
        let [converted, generated] =
            [("sim.ron", text.clone()), ("gen.ron", with_generator(&text, &generator))].map(|(n, t)| run(n, &t));
        assert_eq!(converted.lines().count(), 6, "{converted}");
        assert_eq!(converted, generated, "{top}");
    }
}

/// Formulas need a row for every bond type; a type that is new in the topology has none.
#[test]
fn a_new_type_of_bonds_is_an_error() {
    let (folder, text) = converted("tests/data/gromacs", "terms.top", &[]);
    let file = folder.path().join("terms.top");
    let top = std::fs::read_to_string(&file).expect("a topology");
    let more = top.replace("6 7 1 0.32 6500.0\n", "6 7 1 0.32 6500.0\n2 4 1 0.4 5000.0\n");
    assert_ne!(top, more);
    std::fs::write(&file, more).expect("written");
    let text = with_generator(&text, "Gromacs(topology: \"terms.top\", coordinates: \"terms.gro\")");
    let error = plan_in(&folder.path().join("p.ron"), &text, DeviceChoice::Cpu).expect_err("no row").render();
    assert!(error.contains("missing parameters for the bond type") && error.contains("A-A"), "{error}");
}

/// Writes a topology and positions, converts them, and compares the states.
fn compare(top: &str, gro: &str, options: &[&str], fields: &str) -> Snapshot {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("sub")).expect("a folder");
    std::fs::write(folder.path().join("sub/b.itp"), "#ifndef LENGTH\n#define LENGTH 0.4\n#endif\n").expect("written");
    std::fs::write(folder.path().join("a.top"), top).expect("written");
    std::fs::write(folder.path().join("a.gro"), gro).expect("written");
    let out = galamost(folder.path(), &[&["convert", "a.top", "sim.ron", "--coordinates", "a.gro"], options].concat());
    assert_eq!(out.status.code(), Some(0), "{}", words(&out));
    let text = std::fs::read_to_string(folder.path().join("sim.ron")).expect("a pipeline");
    same(folder.path(), &text, &format!("Gromacs(topology: \"a.top\", coordinates: \"a.gro\"{fields})"))
}

#[test]
#[ignore = "3 seconds"]
fn fields_are_the_options_of_convert() {
    let top = format!("#include \"b.itp\"\n{}", topology("1 2", "", "[ bonds ]\n1 2 1 LENGTH 100"));
    let length = |options: &[&str], fields: &str| {
        let all = [&["-I", "sub"], options].concat();
        compare(&top, GRO, &all, &format!(", include: [\"sub\"]{fields}")).bonds.len()
    };
    assert_eq!(length(&[], ""), 1);
    for define in
        [r#"{"LENGTH": "0.5"}"#, r#"["LENGTH=0.5"]"#, r#"["OTHER", "LENGTH=0.5"]"#, r#"{"OTHER": "", "LENGTH": "0.5"}"#]
    {
        assert_eq!(length(&["-D", "LENGTH=0.5"], &format!(", define: {define}")), 1);
    }
    // a macro decides which bonds there are
    let top = topology("1 2", "", "#ifdef LONG\n[ bonds ]\n1 2 1 0.3 100\n2 3 1 0.4 100\n#endif");
    assert_eq!(compare(&top, GRO, &["-D", "LONG"], ", define: [\"LONG\"]").bonds.len(), 2);
    assert_eq!(compare(&top, GRO, &[], "").bonds.len(), 0);
}

/// Velocities of all sizes, positions at the boundary and outside, all constructions of sites, sites with a mass in the topology.
#[test]
#[ignore = "5 seconds"]
fn numbers_are_rounded_as_in_the_structure_file() {
    let top = topology("1 2", "", "[ bonds ]\n1 2 1 0.3 100\n2 3 1 0.4 100");
    let wide = "three atoms\n3\n    1M        A    1    3.9999999999    0.1234567891    4.0000000000    0.0000000123   -0.9999999999    0.0000000000\n    \
                1M        B    2    4.3000000000    0.0000000000   -0.1000000001   -0.0000000000    0.0000009999   12.3456789012\n    \
                1M        C    3    0.4000000000    0.5000000000    0.1000000000    0.0000010000    0.0000000001   -0.0000012346\n   \
                4.00000   4.00000   4.00000\n";
    let s = compare(&top, wide, &[], "");
    assert!(s.velocity[0][0] == 1.23e-8 && s.velocity[1][2] == 12.3456789012);
    // without any motion
    compare(&top, &GRO.replace("0.100\n", "0.100 -0.0000  0.0000  0.0000\n"), &[], "");
    // box lengths that have no exact half
    for length in ["3.10007", "3.30001", "5.43219"] {
        let gro = GRO.replace("   4.00000", &format!("   {length}")).replace("0.400   0.500", "3.100   0.500");
        compare(&top, &gro, &[], "");
    }
    for site in [
        "[ virtual_sites1 ]\n4 1 1",
        "[ virtual_sites2 ]\n4 1 2 1 0.4",
        "[ virtual_sites2 ]\n4 1 2 2 0.1",
        "[ virtual_sites3 ]\n4 1 2 3 1 0.2 0.3",
        "[ virtual_sites3 ]\n4 3 2 1 2 0.2 0.3",
        "[ virtual_sites3 ]\n4 1 2 3 3 120 0.3",
        "[ virtual_sites3 ]\n4 1 2 3 4 0.1 0.2 -0.3",
        "[ virtual_sitesn ]\n4 1 1 2 3",
        "[ virtual_sitesn ]\n4 2 1 2",
        "[ virtual_sitesn ]\n4 3 1 0.5 3 1.5",
    ] {
        let sections = format!("4 B 1 M D 1 0 0.0\n{site}\n[ exclusions ]\n4 1 2 3\n[ bonds ]\n1 2 1 0.3 100\n");
        let end = "   0.100\n    1M        D    4   0.200   0.200   0.200\n   4.0";
        let gro = GRO.replace("\n3\n", "\n4\n").replace("   0.100\n   4.0", end);
        let s = compare(&topology("1 2", "", &sections), &gro, &[], "");
        assert!(s.arrays.contains_key("sites.form") && s.mass[3] == 0.0, "{site}");
    }
    let heavy = topology("1 2", "", "[ virtual_sites2 ]\n3 1 2 1 0.5\n[ exclusions ]\n3 1 2");
    assert_eq!(compare(&heavy, GRO, &[], "").mass[2], 0.0);
}

/// What `galamost check` says about a pipeline with the generator, and the exit status.
pub fn check(top: &str, gro: &str, initial: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [("a.top", top), ("a.gro", gro), ("c.itp", "[ bonds ]\n  1 2 1 0.3 1x\n")] {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let text = format!(
        "(\n    initial: [ {initial} ],\n    forces: [ HarmonicBond(bonds: {{ \"*\": (k: 1.0, r0: 0.3) }}) ],\n    \
         integrators: [ VelocityVerlet() ],\n    stages: [ (steps: 1, dt: 0.001) ],\n)\n"
    );
    std::fs::write(folder.path().join("sim.ron"), text).expect("written");
    let out = galamost(folder.path(), &["check", "sim.ron"]);
    (out.status.code(), words(&out))
}

pub const PLAIN: &str = "Gromacs(topology: \"a.top\", coordinates: \"a.gro\")";

#[test]
#[ignore = "3 seconds"]
fn errors_name_the_line_of_the_topology() {
    let top = topology("1 2", "", "[ bonds ]\n1 2 1 0.3 100");
    let bonds = |rows: &str| topology("1 2", "", &format!("[ bonds ]\n{rows}"));
    let tilted = GRO.replace("4.00000   4.00000   4.00000", "4 4 4 0 0 1 0 0 0");
    let site = topology("1 2", "", "4 B 1 M D 1 0 0.0\n[ virtual_sites3 ]\n4 1 2 3 3 200 0.3");
    let with_site = GRO
        .replace("\n3\n", "\n4\n")
        .replace("   0.100\n   4.0", "   0.100\n    1M        D    4   0.200   0.200   0.200\n   4.0");
    for (top, gro, initial, message) in [
        (&*bonds("1 2 3 0.3 1 1"), GRO, PLAIN, "a.top:14:5: Gromacs: function 3 of [ bonds ] is not supported"),
        (&bonds("1 4 1 0.3 100"), GRO, PLAIN, "a.top:14:3: Gromacs: unknown atom 4: M has the atoms 1 to 3"),
        (
            &top.replace("[ bonds ]\n", "#include \"c.itp\"\n[ bonds ]\n"),
            GRO,
            PLAIN,
            "c.itp:2:13: Gromacs: expected a number, found `1x`",
        ),
        (
            &top.replace("[ bonds ]\n", "#include \"d.itp\"\n"),
            GRO,
            PLAIN,
            "a.top:13:1: Gromacs: `d.itp` is neither in the folder of this file nor in a folder of `include`",
        ),
        (&top.replace("[ bonds ]", "[ bond ]"), GRO, PLAIN, "a.top:13:1: Gromacs: unknown section [ bond ]"),
        (
            &top,
            &GRO.replace("M        B    2", "M        X    2"),
            PLAIN,
            "a.gro:4:11: Gromacs: atom 2 is X, and the topology has B",
        ),
        (&top, &GRO.replace("0.400   0.100   0.100", "0.400   0.1x0   0.100"), PLAIN, "a.gro:4:"),
        (&top, &tilted, PLAIN, "a.gro: Gromacs: a topology of GROMACS needs a rectangular box here"),
        (&site, &with_site, PLAIN, "a.top:15:1: Gromacs: ThreeFad(theta_deg: 200.0, d: 0.3): 200 is not allowed here"),
        (
            &top,
            GRO,
            &PLAIN.replace("a.gro", "a.pdb"),
            "sim.ron:2:56: Gromacs: positions are read from files *.gro and *.xml",
        ),
        (&top, GRO, &PLAIN.replace("a.gro", "b.gro"), "b.gro"),
        (&top, GRO, &PLAIN.replace("a.top", "b.top"), "b.top"),
        (&top, GRO, &format!("{PLAIN}, {PLAIN}"), "must be the first generator"),
        (&top, GRO, &PLAIN.replace(')', ", constraints_as_bonds: 0.0)"), "constraints_as_bonds"),
        (&top, GRO, &PLAIN.replace(')', ", define: [\"=1\"])"), "`=1` has no name of a macro"),
        (&top, GRO, &PLAIN.replace(')', ", define: 3)"), "sim.ron:2:"),
        (&top, GRO, "Gromacs(topology: \"a.top\")", "missing field `coordinates`"),
    ] {
        let (code, said) = check(top, gro, initial);
        assert!(code == Some(2) && said.contains(message), "{message}\n{code:?} {said}");
    }
    // all rows are reported, up to a bound
    let (_, said) = check(&bonds(&"1 2 3\n".repeat(30)), GRO, PLAIN);
    assert!(said.contains("a.top:33:5: Gromacs: function 3") && said.contains("and 10 more errors"), "{said}");
    assert!(!said.contains("a.top:34:5"), "{said}");
}

#[test]
fn what_is_left_out_is_a_warning() {
    let rows = "[ bonds ]\n1 2 1 0.3 100\n[ position_restraints ]\n1 1 1000 1000 1000\n";
    let top = topology("1 2", "[ nonbond_params ]\nA B 1 0.3 2.0\nA B 1 0.3 3.0", rows);
    let (code, said) = check(&top, GRO, PLAIN);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("a.top:8:1: replaces earlier parameters of A and B"), "{said}");
    assert!(said.contains("a.top:12:1: M: 1 position restraints are left out."), "{said}");
    // another mass of a type; a row that is the same again gives no warning
    let (code, said) = check(&topology("1 2", "A 12.0 0 A 0.2 4.0\nB 20.0 0 A 0.8 9.0", ""), GRO, PLAIN);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("a.top:6:1: replaces an earlier atom type A") && !said.contains("atom type B"), "{said}");
}

/// Positions of a `galamost_xml` file, whose names of atoms are not cut.
#[test]
fn positions_of_an_xml_file() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.top"), topology("1 2", "", "[ bonds ]\n1 2 1 0.3 100")).expect("written");
    std::fs::write(folder.path().join("a.gro"), GRO).expect("written");
    for args in [
        &["convert", "a.gro", "a.xml", "--write", "digits: 12"][..],
        &["convert", "a.top", "sim.ron", "--coordinates", "a.xml"],
    ] {
        let out = galamost(folder.path(), args);
        assert_eq!(out.status.code(), Some(0), "{}", words(&out));
    }
    let text = std::fs::read_to_string(folder.path().join("sim.ron")).expect("a pipeline");
    let s = same(folder.path(), &text, "Gromacs(topology: \"a.top\", coordinates: \"a.xml\")");
    assert_eq!((s.len(), s.bonds.len()), (3, 1));
}
