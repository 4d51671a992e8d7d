//! Topologies of GROMACS: energies and forces against OpenMM, what is written, and what is refused.

mod constraints;
mod generator;
mod lipids;
mod messages;

use galamost::files;
use galamost_engine::backend::columns;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::component::Wants;
use galamost_plugin_api::snapshot::{Snapshot, Values};
use galamost_tests::{backend, csv, galamost, mean, plan_in, registry, repository, words};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A system of `tests/reference/gromacs.ron`.
#[derive(Deserialize)]
struct Case {
    name: String,
    energies: BTreeMap<String, f64>,
    every: usize,
    forces: Vec<(f64, f64, f64)>,
}

/// Copies a folder and converts the topology in it. Returns the folder and the pipeline.
fn converted(from: &str, top: &str, options: &[&str]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    for file in std::fs::read_dir(repository().join(from)).expect("a folder").filter_map(Result::ok) {
        std::fs::copy(file.path(), folder.path().join(file.file_name())).expect("copied");
    }
    let gro = top.replace(".top", ".gro");
    let out = galamost(folder.path(), &[&["convert", top, "sim.ron", "--coordinates", &gro], options].concat());
    assert_eq!(out.status.code(), Some(0), "{}", words(&out));
    let text = std::fs::read_to_string(folder.path().join("sim.ron")).expect("a pipeline");
    (folder, text)
}

/// Rows have ten digits, and both programs compute in double precision.
const DIGITS: f64 = 1e-8;

#[test]
fn energies_and_forces_are_those_of_openmm() {
    let text = std::fs::read_to_string(repository().join("tests/reference/gromacs.ron")).expect("a file");
    let cases: Vec<Case> = ron::from_str(&text).expect("cases");
    // constraints whose lengths are right have no force as bonds
    let stiff = ["--constraints-as-bonds", "1000"];
    let folders = [("tests/data/gromacs", &[][..]), ("examples/80-martini", &[]), ("tests/data/gromacs", &stiff)];
    for (case, (folder, options)) in cases.iter().zip(folders) {
        let (folder, text) = converted(folder, &case.name, options);
        let path = folder.path().join("double.ron");
        let text = text.replace("seed: 1,", "seed: 1, precision: Double,");
        std::fs::write(&path, &text).expect("written");
        let still = ["--set", "stages[0].steps=0", "--set", "stages[1].steps=0", "--device", "cpu"];
        let out = galamost(folder.path(), &[&["--pipeline", "double.ron", "--quiet"], &still[..]].concat());
        assert_eq!(out.status.code(), Some(0), "{}", words(&out));
        let table = csv(&folder.path().join("sim.csv"));
        for (name, energy) in &case.energies {
            let ours = table.get(name).unwrap_or_else(|| panic!("{}: no column {name}", case.name))[0];
            assert!((ours - energy).abs() < DIGITS * energy.abs(), "{} {name}: {ours} instead of {energy}", case.name);
        }
        let sum: f64 = case.energies.values().sum();
        assert!((table["potential"][0] - sum).abs() < DIGITS * sum.abs(), "{}", case.name);
        let forces = forces(&path, &text);
        let largest = case.forces.iter().fold(0.0, |m: f64, f| m.max(f.0.abs()).max(f.1.abs()).max(f.2.abs()));
        for (k, (x, y, z)) in case.forces.iter().enumerate() {
            let ours = &forces[3 * k * case.every..][..3];
            for (a, b) in ours.iter().zip([x, y, z]) {
                assert!((a - b).abs() < DIGITS * largest, "{} atom {}: {a} instead of {b}", case.name, k * case.every);
            }
        }
    }
}

/// The forces on the particles of the initial state; those on virtual sites are 0, because their particles have them.
fn forces(path: &Path, text: &str) -> Vec<f64> {
    let plan = plan_in(path, text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = backend(&plan);
    plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
    b.begin_stage(&plan.stages[0], false).expect("a stage");
    let facts = b.facts().clone();
    let found = columns(&mut *b, &facts, Wants { forces: true, particles: true, ..Wants::default() }).expect("columns");
    let Values::Real(mut force) = found.arrays["force"].values.clone() else { panic!("forces are real numbers") };
    for (tag, _) in found.mass.iter().enumerate().filter(|(_, m)| **m == 0.0) {
        force[3 * tag..3 * tag + 3].fill(0.0);
    }
    force
}

fn state(folder: &Path) -> Snapshot {
    files::read(&folder.join("sim.xml"), None, registry()).unwrap_or_else(|e| panic!("{}", e.render()))
}

/// The structure has everything, molecules are whole, and bonds without force exclude what no other bond excludes.
#[test]
fn the_structure_has_types_charges_masses_and_exclusions() {
    let (folder, text) = converted("tests/data/gromacs", "terms.top", &[]);
    let s = state(folder.path());
    assert_eq!((s.len(), s.types.join(" ")), (81, "A B C V N".into()));
    // the masses and charges of the rows, and those of the types
    assert_eq!(s.mass[..8], [15.0, 15.0, 16.0, 15.0, 12.0, 14.0, 20.0, 16.0]);
    assert_eq!(s.mass[32..38], [15.0, 16.0, 14.0, 0.0, 0.0, 0.0]);
    let Values::Real(charge) = &s.arrays["charge"].values else { panic!("charges are real numbers") };
    assert_eq!(charge[..8], [0.5, 0.1, -0.2, -0.4, 0.0, 0.3, -0.3, -0.2]);
    let Values::Int(molecule) = &s.arrays["molecule"].values else { panic!("molecules are integers") };
    assert_eq!((molecule[7], molecule[8], molecule[31], molecule[32], molecule[80]), (0, 1, 3, 4, 15));
    for bond in &s.bonds {
        let [a, b] = bond.tags.map(|t| t as usize);
        let at = |i: usize, k: usize| s.position[i][k] + s.box_length[k] * f64::from(s.image[i][k]);
        let r2: f64 = (0..3).map(|k| (at(a, k) - at(b, k)).powi(2)).sum();
        assert!(r2 < 2.2f64.powi(2), "the bond {a} {b} crosses the box: {}", r2.sqrt());
    }
    // a chain of eight: 7 + 6 + 5 pairs up to three bonds apart, and two of [ exclusions ]; ends of angles and bonds are
    // excluded as such, the others by bonds without force
    let kind = |name: &str| s.bond_types.iter().position(|t| t == name).expect("a type") as u32;
    let of = |list: &[u32]| s.bonds.iter().filter(|b| list.contains(&b.kind) && b.tags.iter().all(|t| *t < 8)).count();
    assert!(text.contains("neighbors: (exclude: [Bonds, Angles])"), "{text}");
    let fields: Vec<u32> =
        (0..s.bond_types.len() as u32).filter(|k| s.bond_types[*k as usize].starts_with("reaction-field")).collect();
    // of the 20 excluded pairs, those with the uncharged atom 5 have no reaction field
    assert_eq!((of(&fields), of(&[kind("excluded")])), (14, 2));
    let pairs = |tags: [u32; 2]| s.bonds.iter().any(|b| b.tags == tags);
    assert!(pairs([0, 5]) && pairs([1, 7]) && pairs([0, 3]) && !pairs([0, 6]) && !pairs([0, 7]));
}

/// A topology of two atoms A and B with these sections before and after them.
fn topology(defaults: &str, tables: &str, sections: &str) -> String {
    format!(
        "[ defaults ]\n{defaults}\n[ atomtypes ]\nA 10.0 0 A 0.2 4.0\nB 20.0 0 A 0.8 9.0\n{tables}\n[ moleculetype ]\nM 1\n[ atoms \
         ]\n1 A 1 M A 1\n2 B 1 M B 1\n3 B 1 M C 1\n{sections}\n[ system ]\n\n[ molecules ]\nM 1\n"
    )
}

const GRO: &str = "three atoms\n3\n    1M        A    1   0.100   0.100   0.100\n    1M        B    2   0.400   0.100   0.100\n    \
                   1M        C    3   0.400   0.500   0.100\n   4.00000   4.00000   4.00000\n";

/// Converts a topology of three atoms. Returns the pipeline, or what is printed.
fn convert(top: &str, gro: &str, options: &[&str]) -> Result<String, String> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.top"), top).expect("written");
    std::fs::write(folder.path().join("a.gro"), gro).expect("written");
    let args = [&["convert", "a.top", "sim.ron", "--coordinates", "a.gro"], options].concat();
    let out = galamost(folder.path(), &args);
    let said = words(&out);
    match out.status.code() {
        Some(0) => {
            let check = galamost(folder.path(), &["check", "sim.ron"]);
            assert_eq!(check.status.code(), Some(0), "{}", words(&check));
            let text = std::fs::read_to_string(folder.path().join("sim.ron")).expect("a pipeline");
            Ok(text + &said)
        }
        Some(2) => {
            assert!(!folder.path().join("sim.ron").exists() && !folder.path().join("sim.xml").exists());
            Err(said)
        }
        code => panic!("status {code:?}: {said}"),
    }
}

/// Combination rules by hand: rule 1 of C₆ and C₁₂, rule 2 of σ and ε, rule 3.
#[test]
#[ignore = "3 seconds"]
fn combination_rules() {
    let row = |defaults: &str, tables: &str, expected: &[&str]| {
        let text = convert(&topology(defaults, tables, ""), GRO, &[]).unwrap_or_else(|e| panic!("{e}"));
        expected.iter().for_each(|row| assert!(text.contains(row), "{row}\n{text}"));
    };
    row(
        "1 2",
        "",
        &[
            r#"("A", "A"): (epsilon: 4.0, sigma: 0.2)"#,
            r#"("A", "B"): (epsilon: 6.0, sigma: 0.5)"#,
            r#"("B", "B"): (epsilon: 9.0, sigma: 0.8)"#,
        ],
    );
    row("1 3 no", "", &[r#"("A", "B"): (epsilon: 6.0, sigma: 0.4)"#]);
    // C6 = √(0.2 · 0.8) = 0.4, C12 = √(4 · 9) = 6: ε = 0.16/24, σ⁶ = 15
    row("1 1", "", &[r#"("A", "B"): (epsilon: 0.006666666667, sigma: 1.570417802)"#]);
    row("1 1", "[ nonbond_params ]\nB A 1 0.3125 0.0048828125", &[r#"("A", "B"): (epsilon: 5.0, sigma: 0.5)"#]);
    row(
        "1 2",
        "[ nonbond_params ]\nA B 1 -0.3 2.0\nB B 1 0 0",
        &[r#"("A", "B"): (epsilon: 2.0, sigma: 0.3, alpha: 0.0)"#, r#"("B", "B"): None"#],
    );
}

#[test]
#[ignore = "3 seconds"]
fn options_and_constraints() {
    let top = topology(
        "1 2",
        "[ constrainttypes ]\nA B 1 0.31",
        "[ constraints ]\n1 2 1\n2 3 2 0.4\n[ exclusions ]\n2 3\n[ position_restraints ]\n1 1 1000 1000 1000",
    );
    let stiff = ["--constraints-as-bonds", "30000", "--temperature", "310", "--r-cut", "1.2"];
    let text = convert(&top, GRO, &stiff).expect("converted");
    for part in [
        r#""A-B": (k: 30000.0, r0: 0.31), "B-B": (k: 30000.0, r0: 0.4)"#,
        "LennardJones(r_cut: 1.2, mode: ShiftEnergy",
        "kT: 2.577483412",
        "//     galamost convert a.top sim.ron --coordinates a.gro --constraints-as-bonds 30000 --temperature 310 --r-cut 1.2\n",
        "// M: 2 constraints are stiff bonds",
        "// M: 1 position restraints are left out",
        "a.top:11:1: M: 1 position restraints are left out",
        // ω² = 30000 (1/10 + 1/20)/ps²: a period of 0.094 ps
        "dt: 0.005, integrators: [ Langevin",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("ReactionField"), "there are no charges");
    let charged =
        topology("1 2", "", "").replace("1 A 1 M A 1", "1 A 1 M A 1 0.5").replace("2 B 1 M B 1", "2 B 1 M B 1 -1");
    let text = convert(&charged, GRO, &["--epsilon-r", "2.5", "--epsilon-rf", "80"]).expect("converted");
    assert!(text.contains("ReactionField(r_cut: 1.1, f: 138.935458, epsilon_r: 2.5, epsilon_rf: 80.0)"), "{text}");
    let water = topology("1 2", "", "[ settles ]\n1 1 0.1 0.16\n[ exclusions ]\n1 2 3\n2 3");
    let text = convert(&water, GRO, &["--constraints-as-bonds", "50000"]).expect("converted");
    assert!(text.contains(r#""A-B": (k: 50000.0, r0: 0.1), "B-B": (k: 50000.0, r0: 0.16)"#), "{text}");
    // velocities of the file are kept, and nothing is minimized
    let moving = GRO.replace("0.100\n", "0.100  0.1000 -0.2000  0.0000\n");
    assert!(!convert(&topology("1 2", "", ""), &moving, &[]).expect("converted").contains("Fire"));
    assert!(convert(&topology("1 2", "", ""), GRO, &[]).expect("converted").contains("Fire"));
}

#[test]
#[ignore = "5 seconds"]
fn virtual_sites_are_rows_of_sites() {
    let with = |site: &str| {
        let sections = format!("4 B 1 M D 1 0 0\n{site}\n[ exclusions ]\n4 1 2 3\n[ bonds ]\n1 2 1 0.3 100\n");
        let site = "   0.100\n    1M        D    4   0.200   0.200   0.200\n   4.0";
        let gro = GRO.replace("\n3\n", "\n4\n").replace("   0.100\n   4.0", site);
        convert(&topology("1 2", "", &sections), &gro, &[])
    };
    for (site, kind) in [
        ("[ virtual_sites1 ]\n4 1 1", "(site: 3, from: [0], kind: Center)"),
        ("[ virtual_sites2 ]\n4 1 2 1 0.4", "(site: 3, from: [0, 1], kind: Two(a: 0.4))"),
        ("[ virtual_sites2 ]\n4 1 2 2 0.1", "(site: 3, from: [0, 1], kind: TwoFd(d: 0.1))"),
        ("[ virtual_sites3 ]\n4 1 2 3 1 0.2 0.3", "kind: Three(a: 0.2, b: 0.3)"),
        ("[ virtual_sites3 ]\n4 3 2 1 2 0.2 0.3", "(site: 3, from: [2, 1, 0], kind: ThreeFd(a: 0.2, d: 0.3))"),
        ("[ virtual_sites3 ]\n4 1 2 3 3 120 0.3", "kind: ThreeFad(theta_deg: 120.0, d: 0.3)"),
        ("[ virtual_sites3 ]\n4 1 2 3 4 0.1 0.2 -0.3", "kind: ThreeOut(a: 0.1, b: 0.2, c: -0.3)"),
        ("[ virtual_sitesn ]\n4 1 1 2 3", "(site: 3, from: [0, 1, 2], kind: Center)"),
        ("[ virtual_sitesn ]\n4 2 1 2", "(site: 3, from: [0, 1], kind: CenterOfMass)"),
        ("[ virtual_sitesn ]\n4 3 1 0.5 3 1.5", "(site: 3, from: [0, 2], kind: Weights(w: [0.5, 1.5]))"),
    ] {
        let text = with(site).unwrap_or_else(|e| panic!("{site}: {e}"));
        assert!(text.contains("VirtualSites()"), "{text}");
        assert!(text.contains(kind) && text.contains("Sites(first: 0, atoms: 4, molecules: 1"), "{kind}\n{text}");
    }
    // a site has no mass
    let heavy = topology("1 2", "", "[ virtual_sites2 ]\n3 1 2 1 0.5\n[ exclusions ]\n3 1 2");
    let text = convert(&heavy, GRO, &[]).expect("converted");
    assert!(text.contains("// M: 1 virtual sites have a mass in the topology; here it is 0."), "{text}");
    for (site, message) in [
        ("[ virtual_sites4 ]\n4 1 2 3 1", "a.top:15:9: atom 1 is here twice"),
        ("[ virtual_sites3 ]\n4 1 2 3 5 1 1", "a.top:15:9: function 5 of [ virtual_sites3 ] is not supported"),
        (
            "[ virtual_sites2 ]\n4 1 2 1 0.4\n3 1 4 1 0.1",
            "a.top:16:1: atom 4 is a virtual site and cannot construct the site 3",
        ),
        ("[ virtual_sitesn ]\n4 3 1 0.5 3", "a.top:15:1: each atom needs a weight"),
        ("[ virtual_sites2 ]\n4 1 2 1", "a.top:15:1: this line ends before all parameters"),
        ("", "a.top:13:1: this atom has no mass and is no virtual site"),
    ] {
        let said = with(site).expect_err(message);
        assert!(said.contains(message), "{message}\n{said}");
    }
}

/// Rows of `[ pairs ]` with parameters of all origins: the energy is that of the formula, beyond the cutoff too.
#[test]
#[ignore = "3 seconds"]
fn pairs_have_the_parameters_of_their_row_table_or_types() {
    let gro = "four atoms\n4\n    1M        A    1   1.100   1.100   1.100\n    1M        B    2   1.400   1.100   1.100\n    \
               1M        C    3   1.400   1.500   1.100\n    1M        D    4   1.700   1.500   1.200\n   4.00000   4.00000   4.00000\n";
    let potential = |defaults: &str, tables: &str, pairs: &str| {
        let top = format!(
            "[ defaults ]\n{defaults}\n[ atomtypes ]\nA 10.0 0 A 0.3 0.5\nB 20.0 0 A 0.4 0.9\n{tables}\n[ moleculetype ]\nM 3\n[ \
             atoms ]\n1 A 1 M A 1 0.5\n2 B 1 M B 1 0.1\n3 B 1 M C 1 -0.2\n4 B 1 M D 1 -0.4\n[ bonds ]\n1 2 1 0.3 100\n2 3 1 0.4 100\n\
             3 4 1 0.3 100\n[ pairs ]\n{pairs}\n[ system ]\n\n[ molecules ]\nM 1\n"
        );
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.top"), top).expect("written");
        std::fs::write(folder.path().join("a.gro"), gro).expect("written");
        // the pair is beyond the cutoff
        let convert = ["convert", "a.top", "sim.ron", "--coordinates", "a.gro", "--r-cut", "0.5", "--epsilon-r", "2"];
        let still = ["--set", "stages[0].steps=0", "--set", "stages[1].steps=0", "--set", "precision=Double"];
        for args in [&convert[..], &[&["--pipeline", "sim.ron", "--quiet", "--device", "cpu"], &still[..]].concat()] {
            let out = galamost(folder.path(), args);
            assert_eq!(out.status.code(), Some(0), "{}", words(&out));
        }
        csv(&folder.path().join("sim.csv"))["potential"][0]
    };
    let r = (0.6f64.powi(2) + 0.4f64.powi(2) + 0.1f64.powi(2)).sqrt();
    let lj = |sigma: f64, epsilon: f64| 4.0 * epsilon * ((sigma / r).powi(12) - (sigma / r).powi(6));
    let powers = |c6: f64, c12: f64| c12 / r.powi(12) - c6 / r.powi(6);
    let geometric = |a: f64, b: f64| (a * b).sqrt();
    for (defaults, tables, pairs, expected, fudge) in [
        ("1 2 no 0.5 0.8333", "", "1 4 1 0.35 0.7", lj(0.35, 0.7), 0.8333),
        ("1 2 yes 0.5 0.8333", "", "1 4 1", lj(0.35, 0.5 * geometric(0.5, 0.9)), 0.8333),
        ("1 3 yes 0.5 0.5", "", "4 1 1", lj(geometric(0.3, 0.4), 0.5 * geometric(0.5, 0.9)), 0.5),
        ("1 1 yes 0.5", "", "1 4 1", 0.5 * powers(geometric(0.3, 0.4), geometric(0.5, 0.9)), 1.0),
        ("1 2 yes 0.5 0.5", "[ pairtypes ]\nB A 1 0.5 0.2", "1 4 1", lj(0.5, 0.2), 0.5),
        ("1 2 yes 0.5 0.5", "[ nonbond_params ]\nB A 1 0.5 0.2", "1 4 1", lj(0.5, 0.1), 0.5),
        ("1 2", "[ pairtypes ]\nB A 1 -0.5 0.2", "1 4 1", 0.8 * (0.5 / r).powi(12), 1.0),
    ] {
        let found = potential(defaults, tables, pairs) - potential(defaults, tables, "");
        let expected = expected - fudge * 138.935458 / 2.0 * 0.2 / r;
        assert!((found - expected).abs() < DIGITS * expected.abs(), "{defaults}, {pairs}: {found} and {expected}");
    }
}

#[test]
fn pairs_that_cannot_be_expressed_are_errors() {
    for (defaults, tables, sections, message) in [
        ("1 2", "", "[ pairs ]\n1 3 1", "a.top:14:1: this line has no parameters, [ pairtypes ] has none for A B"),
        ("1 2", "", "[ pairs ]\n1 3 2 1.0 0 0 0.3 1", "a.top:14:5: function 2 of [ pairs ] is not supported"),
        ("1 2 maybe", "", "", "a.top:2:5: gen-pairs: expected yes or no, found `maybe`"),
        ("1 2 yes half", "", "", "a.top:2:9: expected a number, found `half`"),
        ("1 2", "[ pairtypes ]\nA B 2 1 1", "", "a.top:7:5: function 2: only 1"),
    ] {
        let said = convert(&topology(defaults, tables, sections), GRO, &[]).expect_err(message);
        assert!(said.contains(message), "{message}\n{said}");
    }
}

/// Everything that cannot be expressed is an error with its line.
#[test]
fn what_cannot_be_expressed_is_an_error() {
    let ions = GRO.replace("M        B    2", "M        X    2");
    for (defaults, tables, sections, message) in [
        ("2 1", "", "", "a.top:2:1: nbfunc 2: only 1 (Lennard-Jones)"),
        ("1 4", "", "", "a.top:2:3: comb-rule 4: the rules are 1, 2 and 3"),
        ("1 2", "[ bondtypes ]\nA B", "", "a.top:7:1: this line ends before the function"),
        ("1 2", "[ bondstypes ]", "", "a.top:6:1: unknown section [ bondstypes ]; did you mean [ bondtypes ]?"),
        ("1 2", "[ nonbond_params ]\nA B 2 1 1 1", "", "a.top:7:5: function 2: only 1"),
        (
            "1 2",
            "",
            "[ bonds ]\n1 2 3 0.3 1 1",
            "a.top:14:5: function 3 of [ bonds ] is not supported; the functions are 1, 2",
        ),
        (
            "1 2",
            "",
            "[ bonds ]\n1 2 1",
            "a.top:14:1: this line has no parameters, and [ bondtypes ] has none of function 1 for A B",
        ),
        ("1 2", "", "[ bonds ]\n1 4 1 0.3 100", "a.top:14:3: unknown atom 4: M has the atoms 1 to 3"),
        ("1 2", "", "[ bonds ]\n1 1 1 0.3 100", "a.top:14:3: atom 1 is here twice"),
        ("1 2", "", "[ bonds ]\n1 2 1 0.3", "a.top:14:7: expected 2 parameters, found 1"),
        ("1 2", "", "[ bonds ]\n1 2 1 0.3 1 0.4 1", "a.top:14:13: parameters of a second state for free energies"),
        ("1 2", "", "[ bonds ]\n1 2 1 0.3 nan", "a.top:14:11: expected a number, found `nan`"),
        ("1 2", "", "[ angles ]\n1 2 3 8 0 1", "a.top:14:7: function 8 of [ angles ]"),
        ("1 2", "", "[ constraints ]\n1 3 1 0", "a.top:14:1: the length of this constraint is 0; it must be above 0"),
        ("1 2", "", "[ constraints ]\n1 3 1 0.3\n3 1 2 0.3", "a.top:15:1: the pair 3 1 is constrained already"),
        ("1 2", "", "[ constraints ]\n1 3 3 0.3", "a.top:14:5: function 3 of [ constraints ] is not supported"),
        ("1 2", "", "[ constraints ]\n1 3 1 0.3 1 1", "a.top:14:7: expected 1 parameters, found 3"),
        ("1 2", "", "[ constraints ]\n1 3 1 0.3 x", "a.top:14:11: expected a number, found `x`"),
        ("1 2", "", "[ settles ]\n2 1 0.1 0.2", "a.top:14:1: [ settles ] needs two more atoms after this one"),
        ("1 2", "", "[ cmap ]\n1 2 3 1 1", "a.top:14:1: [ cmap ] of M is not supported"),
        ("1 2", "", "[ intermolecular_interactions ]", "a.top:13:1: [ intermolecular_interactions ] is not supported"),
        ("1 2", "[ nonbond_params ]\nA A 1 0.3 -1", "", "atom types A and A: epsilon is -1"),
    ] {
        let said = convert(&topology(defaults, tables, sections), GRO, &[]).expect_err(message);
        assert!(said.contains(message), "{message}\n{said}");
    }
    let top = topology("1 2", "", "");
    for (top, gro, options, message) in [
        (&top, &*ions, &[][..], "a.gro:4:11: atom 2 is X, and the topology has B of a molecule M here"),
        (
            &top,
            "two\n1\n    1M        A    1   0.1   0.1   0.1\n 4 4 4\n",
            &[],
            "[ molecules ] has 3 atoms, and a.gro has 1",
        ),
        (&top.replace("molecules ]\nM 1\n", "molecules ]\nM 3000000000\n"), GRO, &[], "too many particles"),
        (&top.replace("molecules ]\nM 1\n", "molecules ]\nN 1\n"), GRO, &[], "there is no [ moleculetype ] N"),
        (&top, GRO, &["--r-cut", "-1"], "--r-cut: `-1`: expected a number above 0"),
        (&String::new(), GRO, &[], "a.top: the topology has no [ molecules ]"),
        (&top, GRO, &["--frames", "0"], "do not apply to a topology"),
        (&top, GRO, &["-I"], "a value is required"),
    ] {
        let said = convert(top, gro, options).expect_err(message);
        assert!(said.contains(message), "{message}\n{said}");
    }
    // all rows are reported, up to a bound
    let many = topology("1 2", "", &format!("[ bonds ]\n{}", "1 2 3\n".repeat(30)));
    let said = convert(&many, GRO, &[]).expect_err("many errors");
    assert!(said.contains("a.top:33:5: function 3") && said.contains("a.top: 10 errors more"), "{said}");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.top"), &top).expect("written");
    let pdb = "CRYST1   10.000   10.000   10.000  90.00  90.00  90.00 P 1           1\n\
               ATOM      1  A   M       1       1.000   1.000   1.000  1.00  0.00\nEND\n";
    std::fs::write(folder.path().join("a.pdb"), pdb).expect("written");
    for (args, message) in [
        (&["convert", "a.top", "sim.ron"][..], "name their file with --coordinates"),
        (&["convert", "a.top", "sim.xml", "--coordinates", "a.gro"], "a topology becomes a pipeline"),
        (&["convert", "a.xml", "b.xml", "-D", "X"], "options of topologies"),
        (&["convert", "a.top", "a.ron", "--coordinates", "none.gro"], "none.gro: cannot be read"),
        (&["convert", "a.top", "a.ron", "--coordinates", "a.pdb"], "a.pdb: positions in PDB files are in Å"),
    ] {
        let out = galamost(folder.path(), args);
        assert!(out.status.code() == Some(2) && words(&out).contains(message), "{message}\n{}", words(&out));
    }
}

/// Molecules that the system does not have are not read, and a pipeline is not overwritten.
#[test]
fn unused_molecules_and_existing_files() {
    let unused = "[ moleculetype ]\nSOL 2\n[ atoms ]\n1 A 1 SOL OW 1\n[ settles ]\n1 1 0.1 0.16\n";
    assert!(convert(&topology("1 2", "", unused), GRO, &[]).is_ok());
    let (folder, _) = converted("tests/data/gromacs", "terms.top", &[]);
    let again = ["convert", "terms.top", "sim.ron", "--coordinates", "terms.gro"];
    assert!(words(&galamost(folder.path(), &again)).contains("sim.ron: exists"));
    // a folder of -I, and a macro of -D
    std::fs::create_dir(folder.path().join("sub")).expect("a folder");
    std::fs::rename(folder.path().join("ff.itp"), folder.path().join("sub/ff.itp")).expect("moved");
    let other = ["convert", "terms.top", "b.ron", "--coordinates", "terms.gro"];
    assert!(words(&galamost(folder.path(), &other)).contains("terms.top:2:1: `ff.itp` is neither in the folder"));
    let said = words(&galamost(folder.path(), &[&other[..], &["-I", "sub", "-D", "NO_CHAIN"]].concat()));
    assert!(said.contains("#error \"no chain\""), "{said}");
    let out = galamost(folder.path(), &[&other[..], &["-I", "sub"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", words(&out));
}

/// The bilayer of Martini: temperature with the thermostat, energy without.
#[test]
#[ignore = "3 seconds"]
fn a_bilayer_of_martini_runs() {
    let (folder, _) = converted("examples/80-martini", "system.top", &["--temperature", "323"]);
    let run = |options: &[&str]| {
        let fixed =
            ["--pipeline", "sim.ron", "--device", "cpu", "--quiet", "--overwrite", "--set", "analyzers[0].every=10"];
        let out = galamost(folder.path(), &[&fixed[..], options].concat());
        assert_eq!(out.status.code(), Some(0), "{}", words(&out));
        csv(&folder.path().join("sim.csv"))
    };
    let stages = |integrator: &str, steps: u32| {
        format!(
            "stages=[(name: \"start\", steps: 500, dt: 0.02, integrators: [Langevin(kT: 2.6856, gamma: 72.0)]), \
             (name: \"run\", steps: {steps}, dt: 0.02, integrators: [{integrator}])]"
        )
    };
    let t = run(&["--set", &stages("Langevin(kT: 2.6856, gamma: 72.0)", 1500)]);
    let kt = &t["kT"][51..];
    // 150 values in 30 ps at a friction of 1/ps: about 15 independent ones with the deviation kT √(2/1728)
    let error = 2.6856 * (2.0f64 / 1728.0 / 15.0).sqrt();
    assert!((mean(kt) - 2.6856).abs() < 4.0 * error, "kT {} ± {error}", mean(kt));
    let t = run(&["--set", &stages("VelocityVerlet()", 500)]);
    let total = &t["total"][51..];
    let (low, high) = total.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
    // the fluctuation of velocity Verlet, (ω dt)²/8 of the energy of the fastest bonds, ω = 5.9/ps, and of their kinetic energy
    let bound = (5.9f64 * 0.02).powi(2) / 8.0 * (mean(&t["kinetic"]) + mean(&t["HarmonicBond"]));
    println!("{low} to {high}, bound {bound}");
    assert!(high - low < bound, "{low} to {high}, bound {bound}");
}
