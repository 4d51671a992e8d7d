//! Potentials given as tables against the same potentials written in Rust, and the command `galamost table`.

use galamost::selftest::standard_system;
use galamost_engine::device::nvrtc;
use galamost_engine::gpu::pair_unit;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::views::Sums;
use galamost_tests::tolerances::near;
use galamost_tests::{
    galamost, has_compiler, has_nvrtc, largest_difference, mean, plan_in, plan_of, registry, run_plan, unwrapped, words,
};
use std::path::Path;

/// The standard system with one particle type, and with it one type of each kind of link.
fn one_type() -> Snapshot {
    let mut s = standard_system();
    s.types.truncate(1);
    s.type_id.fill(0);
    for list in [&mut s.bond_types, &mut s.angle_types, &mut s.dihedral_types, &mut s.improper_types] {
        list.truncate(1);
    }
    s.bonds.iter_mut().for_each(|l| l.kind = 0);
    s.angles.iter_mut().for_each(|l| l.kind = 0);
    s.dihedrals.iter_mut().for_each(|l| l.kind = 0);
    s.impropers.iter_mut().for_each(|l| l.kind = 0);
    s
}

/// Forces and sums of one component.
fn forces(force: &str, s: Snapshot) -> (Vec<f64>, Sums) {
    let text = format!("(precision: Double, forces: [{force}], stages: [(steps: 0, dt: 0.01)])");
    let plan = plan_of(&text, s, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1;
    let sums = b.sums().expect("sums").components[0];
    let bytes = b.read("force").expect("forces");
    let f = bytes.as_chunks::<32>().0.iter().flat_map(|f| f.as_chunks::<8>().0[..3].to_vec());
    (f.map(f64::from_ne_bytes).collect(), sums)
}

/// Runs `galamost table …` in a folder; what it wrote to standard output.
fn table(folder: &Path, args: &[&str]) -> String {
    let out = galamost(folder, &[&["table"], args].concat());
    assert!(out.status.success(), "{args:?}: {}", words(&out));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// A component made into a table and read again gives the same forces, energy and virial.
#[test]
fn tables_of_components_agree_with_the_components() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let cases = [
        (
            "LennardJones(r_cut: 3.0, pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) })",
            vec!["--pair", "A", "A", "--from", "0.7"],
            "PairTable(pairs: { (\"A\", \"A\"): (file: FILE) })",
            "lj.table",
            3e-5,
        ),
        (
            "HarmonicBond(bonds: { \"A-A\": (k: 30.0, r0: 0.95) })",
            vec!["--link", "A-A", "--from", "0.5", "--to", "2.0"],
            "BondTable(bonds: { \"A-A\": (file: FILE) })",
            "bond.xml",
            1e-9,
        ),
        (
            "CosineSquaredAngle(angles: { \"A-A-A\": (k: 3.0, theta0_deg: 120.0) })",
            vec!["--link", "A-A-A"],
            "AngleTable(unit: Degrees, angles: { \"A-A-A\": (file: FILE) })",
            "angle.csv",
            1e-6,
        ),
        (
            "OplsDihedral(dihedrals: { \"A-A-A-A\": (k1: 1.1, k2: 0.6, k3: 0.4, k4: 0.2) })",
            vec!["--link", "A-A-A-A"],
            "DihedralTable(unit: Radians, dihedrals: { \"A-A-A-A\": (file: FILE) })",
            "dihedral.pot",
            1e-6,
        ),
        (
            "CvffImproper(impropers: { \"A-A-A-A\": (k: 1.1, d: -1, n: 2) })",
            vec!["--link", "A-A-A-A"],
            "ImproperTable(unit: Radians, impropers: { \"A-A-A-A\": (file: FILE) })",
            "improper.pot",
            1e-6,
        ),
    ];
    for (component, how, tabulated, name, limit) in cases {
        table(folder.path(), &[&["make", component, "--out", name], how.as_slice()].concat());
        let (truth, expected) = forces(component, one_type());
        let (f, sums) = forces(&tabulated.replace("FILE", &format!("{:?}", file(name))), one_type());
        let largest = truth.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let worst = largest_difference(&f, &truth) / largest;
        let energy = (sums.energy - expected.energy).abs() / expected.energy.abs();
        let scale = expected.virial.iter().fold(0.0f64, |m, w| m.max(w.abs()));
        let virial = largest_difference(&sums.virial, &expected.virial) / scale;
        println!("{name}: forces {worst:.1e}, energy {energy:.1e}, virial {virial:.1e}");
        assert!(worst < limit && energy < limit && virial < limit, "{name}: {worst:e} {energy:e} {virial:e}");
    }
}

/// Total energy without thermostat: a table of Lennard-Jones keeps it as well as Lennard-Jones itself.
#[test]
#[ignore = "3 seconds"]
fn energy_drifts_no_more_than_with_the_formula() {
    let folder = tempfile::tempdir().expect("a folder");
    let lj = "LennardJones(r_cut: 2.5, mode: ShiftForce, pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) })";
    let bare = lj.replace(", mode: ShiftForce", "");
    table(folder.path(), &["make", &bare, "--pair", "A", "A", "--from", "0.7", "--out", "lj.pot"]);
    let tabulated = "PairTable(mode: ShiftForce, pairs: { (\"A\", \"A\"): (file: \"lj.pot\") })";
    let run = |force: &str, name: &str| {
        let text = format!(
            "(seed: 9, initial: [Lattice(lattice: Sc, cells: [8, 8, 8], density: 0.8), Velocities(kT: 1.0)], forces: [{force}], \
             integrators: [VelocityVerlet()], analyzers: [Thermo(every: 5, file: \"{name}.csv\")], \
             stages: [(steps: 4000, dt: 0.004)])"
        );
        let plan = plan_in(&folder.path().join("x.ron"), &text, DeviceChoice::Cpu)
            .unwrap_or_else(|e| panic!("{}", e.render()));
        run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        let total = &galamost_tests::csv(&folder.path().join(format!("{name}.csv")))["total"][200..];
        let m = mean(total);
        mean(&total.iter().map(|x| (x - m).powi(2)).collect::<Vec<_>>()).sqrt() / m.abs()
    };
    let (formula, tabulated) = (run(lj, "formula"), run(tabulated, "table"));
    println!("rms(E)/E: {formula:.3e} by the formula, {tabulated:.3e} from the table");
    near("energy noise of a table and of its formula", tabulated / formula);
}

/// The examples on the pages of the four components, together.
#[test]
#[ignore = "3 seconds"]
fn tables_move_particles_on_the_device_as_on_the_cpu() {
    if !has_compiler() {
        return;
    }
    let page = |kind: Kind, name: &str| {
        let (_, info) = registry().find(kind, name).unwrap_or_else(|| panic!("{name}"));
        info.example().unwrap_or_else(|| panic!("{name} has no example")).to_string()
    };
    let all = [
        page(Kind::Pair, "PairTable"),
        page(Kind::Bonded, "BondTable"),
        page(Kind::Bonded, "AngleTable"),
        page(Kind::Bonded, "DihedralTable"),
        page(Kind::Bonded, "ImproperTable"),
    ]
    .join(", ");
    for (precision, limit) in [("Double", 1e-10), ("Mixed", 2e-4), ("Single", 2e-4)] {
        let text = format!(
            "(seed: 5, precision: {precision}, neighbors: (buffer: 0.2), forces: [{all}], integrators: [NoseHoover(kT: 1.2, tau: 0.5)], \
             stages: [(steps: 40, dt: 0.002)])"
        );
        let mut found = vec![];
        for device in [DeviceChoice::Cpu, DeviceChoice::Emulated] {
            let plan = plan_of(&text, standard_system(), device).unwrap_or_else(|e| panic!("{}", e.render()));
            let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
            found.push(unwrapped(&mut *b).0);
        }
        let x = largest_difference(&found[0], &found[1]);
        println!("{precision}: positions {x:e}");
        assert!(x < limit, "{precision}: positions {x:e}");
    }
}

#[test]
fn the_command_table_converts_plots_and_reports_mistakes() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    let morse = "Morse(r_cut: 3.0, pairs: { (\"A\", \"A\"): (d0: 1.0, alpha: 2.0, r0: 1.0), (\"A\", \"B\"): (d0: 2.0, alpha: 2.0, r0: 1.2) })";
    // a row of types that the table is not made for is a mistake of the text
    let out = galamost(here, &["table", "make", morse, "--pair", "A", "A"]);
    assert_eq!(out.status.code(), Some(2), "{}", words(&out));
    let lj = "LennardJones(r_cut: 2.5, pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) })";
    table(here, &["make", lj, "--pair", "A", "A", "--n", "401", "--from", "0.8", "--out", "a.csv"]);
    // round the formats and back: r and U to the last digit
    table(here, &["convert", "a.csv", "--out", "b.xml"]);
    table(here, &["convert", "b.xml", "--out", "c.pot"]);
    table(here, &["convert", "c.pot", "--out", "d.table", "--name", "LJ"]);
    table(here, &["convert", "d.table", "--entry", "LJ", "--out", "e.csv"]);
    let (a, e) = (galamost_tests::csv(&here.join("a.csv")), galamost_tests::csv(&here.join("e.csv")));
    assert_eq!((&a["r"], &a["U"]), (&e["r"], &e["U"]));
    assert!(std::fs::read_to_string(here.join("b.xml")).expect("b").starts_with("<PairPotential>\n0.8 "));
    // F of the spline without the forces' column
    let text = table(here, &["differentiate", "c.pot"]);
    std::fs::write(here.join("f.csv"), text).expect("written");
    let f = galamost_tests::csv(&here.join("f.csv"));
    let force = |r: f64| 24.0 * (2.0 * r.powi(-13) - r.powi(-7));
    for (r, f) in f["r"].iter().zip(&f["F"]) {
        // cubic spline through 401 points, h = 0.004: h² U⁽⁴⁾/12 at the ends, where its second derivative is set to 0
        assert!((f - force(*r)).abs() < 2e-3 * force(*r).abs().max(1.0), "r {r}: {f} and {}", force(*r));
    }
    table(here, &["plot", "a.csv", "c.pot", "--out", "p.svg"]);
    let svg = std::fs::read_to_string(here.join("p.svg")).expect("a plot");
    assert_eq!(svg.matches("stroke-width=\"1.7\"").count(), 2);
    let refused = [
        ("1.0 2.0\n1.1 1.5\n1.1 1.2\n1.4 1.0\n", "bad.pot:3:1: r = 1.1 is not above 1.1 of the previous row", vec![]),
        ("1.0 2.0\n1.1 nan\n1.2 1.2\n1.4 1.0\n", "bad.pot:2:1: U = NaN is not a finite number", vec![]),
        ("0 2.0\n60 1\n120 1.2\n180 1.0\n", "bad.pot:1:1: the unit of the angles is missing", vec!["--kind", "angle"]),
        ("0 2.0\n60 1\n120 1.2\n180 1.0\n", "are they Degrees?", vec!["--kind", "angle", "--unit", "radians"]),
    ];
    for (text, message, how) in refused {
        std::fs::write(here.join("bad.pot"), text).expect("written");
        let out = galamost(here, &[&["table", "convert", "bad.pot"], how.as_slice()].concat());
        assert_eq!(out.status.code(), Some(2), "{}", words(&out));
        assert!(words(&out).contains(message), "{}", words(&out));
    }
}

/// Beyond the cutoff nothing acts, and rows are finite.
#[test]
fn tables_of_pairs_end_at_their_cutoff() {
    let folder = tempfile::tempdir().expect("a folder");
    let wca = "Wca(pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) })";
    let lj = "LennardJones(r_cut: 1.5, pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) })";
    for (component, cutoff) in [(wca, 2f64.powf(1.0 / 6.0)), (lj, 1.5)] {
        let range = ["--pair", "A", "A", "--from", "1.05", "--to", "1.7", "--n", "14", "--out", "a.csv", "--overwrite"];
        table(folder.path(), &[&["make", component], &range[..]].concat());
        let rows = galamost_tests::csv(&folder.path().join("a.csv"));
        for ((r, u), f) in rows["r"].iter().zip(&rows["U"]).zip(&rows["F"]) {
            let zero = *u == 0.0 && *f == 0.0;
            assert_eq!(zero, *r > cutoff + 1e-12, "{component}: r {r}, U {u}, F {f}");
        }
    }
    for (range, message) in [
        (["--from", "1e-300"], "row 1, r = 1e-300: U = inf is not a finite number"),
        (["--to", "inf"], "--to inf: a finite number is required"),
        (["--from", "nan"], "--from NaN: a finite number is required"),
        (["--from", "2.0"], "0 < from < to is required"),
    ] {
        let out = galamost(folder.path(), &[&["table", "make", wca, "--pair", "A", "A"], &range[..]].concat());
        assert!(out.status.code() == Some(2) && words(&out).contains(message), "{}", words(&out));
    }
}

/// LAMMPS names the slopes of the force FPRIME in pair tables and FP in those of bonds; with R or RSQ it computes r itself.
#[test]
fn parameters_of_lammps_tables_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = |x: [f64; 5]| x.iter().zip(1..).map(|(r, k)| format!("{k} {r} {}.5 1.0\n", 5 - k)).collect::<String>();
    let read = |parameters: &str, rows: &str| {
        std::fs::write(folder.path().join("a.table"), format!("# a table\n\nAA\n{parameters}\n\n{rows}"))
            .expect("written");
        let convert = ["table", "convert", "a.table", "--entry", "AA", "--out", "a.csv", "--overwrite"];
        // EQ belongs to bonds and angles
        let kind = if parameters.contains("EQ") { "bond" } else { "pair" };
        galamost(folder.path(), &[&convert[..], &["--kind", kind]].concat())
    };
    let cases = [
        ("N 5 R 1.0 3.0 FPRIME 2.0 -1.0", rows([1.0, 1.5, 2.0, 2.5, 3.0]), [1.0, 1.5, 2.0, 2.5, 3.0]),
        ("N 5 FP 2.0 -1.0 EQ 2.0", rows([1.0, 1.5, 2.0, 2.5, 3.0]), [1.0, 1.5, 2.0, 2.5, 3.0]),
        ("N 5 R 1.0 3.0", rows([0.0; 5]), [1.0, 1.5, 2.0, 2.5, 3.0]),
        ("N 5 RSQ 1.0 3.0", rows([0.0; 5]), [1.0, 3f64.sqrt(), 5f64.sqrt(), 7f64.sqrt(), 3.0]),
        // r of the file is rounded
        ("N 5 RSQ 1.0 3.0", rows([1.0, 1.732, 2.236, 2.646, 3.0]), [1.0, 3f64.sqrt(), 5f64.sqrt(), 7f64.sqrt(), 3.0]),
        ("N 5 R 1.0 3.0", rows([1.0, 1.501, 2.0, 2.5, 3.0]), [1.0, 1.5, 2.0, 2.5, 3.0]),
    ];
    for (parameters, rows, expected) in cases {
        let out = read(parameters, &rows);
        assert!(out.status.success(), "{parameters}: {}", words(&out));
        let table = galamost_tests::csv(&folder.path().join("a.csv"));
        assert!(largest_difference(&table["r"], &expected) < 1e-12, "{parameters}: {:?}", table["r"]);
        assert!(largest_difference(&table["U"], &[4.5, 3.5, 2.5, 1.5, 0.5]) < 1e-12, "{parameters}: {:?}", table["U"]);
    }
    for (parameters, x, message) in [
        ("N 5 RSQ 1.0 3.0", [1.0, 1.5, 2.0, 2.5, 3.0], "a.table:7:1: r = 1.5, but RSQ 1 3 means 1.732"),
        ("N 5 R 1.0 3.0", [1.0, 1.732, 2.236, 2.646, 3.0], "a.table:7:1: r = 1.732, but R 1 3 means 1.5"),
        ("N 5 R 1.0 4.0", [1.0, 1.5, 2.0, 2.5, 3.0], "a.table:4:1: the range is 1 … 4, but the rows are 1 … 3"),
    ] {
        let out = read(parameters, &rows(x));
        assert!(out.status.code() == Some(2) && words(&out).contains(message), "{}", words(&out));
    }
    // without R nothing says where the rows are
    let out = read("N 5", &rows([0.0; 5]));
    assert_eq!(out.status.code(), Some(2), "{}", words(&out));
    assert!(words(&out).contains("r = 0 is not above 0 of the previous row"), "{}", words(&out));
}

/// The kernels of tables for the H200's architecture: nothing spills, and the text does not depend on how long a table is.
#[test]
fn kernels_of_tables_compile_for_sm_90() {
    if !has_nvrtc() {
        return;
    }
    let lj = "LennardJones(r_cut: 2.0, pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) })";
    let rows = "r: [0.8, 1.0, 1.5, 2.0], u: [4.0, 1.0, 0.1, 0.0]";
    let of = |points: u32| format!("PairTable(points: {points}, pairs: {{ (\"A\", \"A\"): ({rows}) }})");
    let text_of = |force: &str, precision: Precision| {
        let plan =
            plan_of(&format!("(forces: [{force}], stages: [(steps: 0, dt: 0.01)])"), one_type(), DeviceChoice::Cpu);
        let plan = plan.unwrap_or_else(|e| panic!("{}", e.render()));
        plan.components[0].pair().expect("a pair").device(precision).expect("code").text.into_string()
    };
    for precision in [Precision::Mixed, Precision::Double] {
        assert_eq!(text_of(&of(2000), precision), text_of(&of(5000), precision));
        for force in [lj, &of(2000)] {
            let unit = pair_unit(&[text_of(force, precision)], 1, 4, false, precision);
            let (_, report) = nvrtc::compile(&unit, "sm_90").unwrap_or_else(|e| panic!("{e}\n{}", unit.text));
            for k in report {
                println!("{} {:12} {}: {} registers", precision.name(), &force[..9], k.name, k.registers);
                assert_eq!(k.spills, 0, "{force}");
            }
        }
    }
}

/// Tables of angles need the kind of their interaction, and tables of analyzers are no potentials.
#[test]
fn tables_that_are_no_pair_potentials_are_refused() {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("a.csv"), "theta_deg,U,F\n0,10,0\n45,6,0\n90,3,0\n135,1,0\n180,0,0\n")
        .expect("written");
    let out = galamost(f.path(), &["table", "convert", "a.csv", "--format", "galamost"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(words(&out).contains("the variable is an angle; give --kind angle"), "{}", words(&out));
    let out = galamost(f.path(), &["table", "convert", "a.csv", "--format", "galamost", "--kind", "angle"]);
    assert!(String::from_utf8_lossy(&out.stdout).contains("<AnglePotential>"), "{}", words(&out));
    // names in the header find the columns: the first one numbers the rows
    std::fs::write(f.path().join("i.csv"), ",r,U\n0,1,4\n1,1.5,2\n2,2,1\n3,2.5,0\n").expect("written");
    assert!(table(f.path(), &["differentiate", "i.csv"]).starts_with("r,U,F\n1.0,4.0,"));
    let out = galamost(f.path(), &["table", "convert", "i.csv", "--format", "galamost"]);
    assert!(words(&out).contains("so it is read as a table of pairs"), "{}", words(&out));
    std::fs::write(f.path().join("i.csv"), "U,x\n4,1\n2,1.5\n1,2\n0,2.5\n").expect("written");
    let out = galamost(f.path(), &["table", "differentiate", "i.csv"]);
    assert_eq!(out.status.code(), Some(2), "{}", words(&out));
    assert!(words(&out).contains("i.csv:1:1: no column has the name of"), "{}", words(&out));
    assert!(words(&out).contains("the columns are `U`, `x`") && words(&out).contains("--columns"), "{}", words(&out));
    std::fs::write(f.path().join("t.csv"), "step,time,kT\n1,0.1,1.0\n2,0.2,1.1\n3,0.3,0.9\n4,0.4,1.0\n")
        .expect("written");
    let out = galamost(f.path(), &["table", "plot", "t.csv", "--kind", "pair", "--out", "t.svg"]);
    assert!(words(&out).contains("the first column is `step`: this is a table of an analyzer"), "{}", words(&out));
}

/// LAMMPS tables state their interaction by parameters, those of `galamost table` also by a comment; their angles are in degrees.
#[test]
fn lammps_tables_of_bonds_and_angles_are_no_pair_tables() {
    let f = tempfile::tempdir().expect("a folder");
    for (header, step, kind, expected) in [
        ("# angle table\n\nA\nN 7\n", 30, "", "<AnglePotential>"),
        ("# bond table\n\nA\nN 7\n", 30, "", "<BondPotential>"),
        ("A\nN 7 DEGREES\n", 60, "", "<DihedralPotential>"),
        ("A\nN 7 EQ 90\n", 30, "angle", "<AnglePotential>"),
        ("A\nN 7\n", 30, "", "whether it is one of pairs, bonds, angles or dihedrals; give --kind"),
        ("A\nN 7\n", 30, "bond", "<BondPotential>"),
        ("# bond table\n\nA\nN 7\n", 30, "angle", "a table of bonds, but it is read as one of angles"),
        ("A\nN 7 EQ 90\n", 30, "", "give --kind bond or --kind angle"),
    ] {
        let rows: String = (0..7).map(|k| format!("{} {} {}.5 0.0\n", k + 1, step * k, k % 6)).collect();
        std::fs::write(f.path().join("a.table"), format!("{header}\n{rows}")).expect("written");
        let kind = if kind.is_empty() { vec![] } else { vec!["--kind", kind] };
        let out = galamost(f.path(), &[&["table", "convert", "a.table", "--format", "galamost"], &kind[..]].concat());
        let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), words(&out));
        assert!(text.contains(expected), "{header}: {text}");
        assert!(!expected.starts_with("<Angle") || text.contains("3.14159"), "{header}: {text}");
    }
    let dihedral = "OplsDihedral(dihedrals: { \"x\": (k1: 1.1, k2: 0.6, k3: 0.4, k4: 0.2) })";
    let out = galamost(f.path(), &["table", "make", dihedral, "--link", "x", "--n", "360", "--format", "lammps"]);
    assert!(words(&out).contains("359 rows instead of 360"), "{}", words(&out));
}

/// The rows of `galamost table make`: x, U, F.
fn made(folder: &Path, args: &[&str]) -> Vec<[f64; 3]> {
    let text = table(folder, &[&["make"], args].concat());
    let row = |line: &str| {
        let numbers: Vec<f64> = line.split(',').map(|c| c.parse().expect("a number")).collect();
        [numbers[0], numbers[1], numbers[2]]
    };
    text.lines().skip(1).map(row).collect()
}

/// Few rows have the forces of the component, not those of a spline through them.
#[test]
fn forces_of_bonded_tables_are_those_of_the_component() {
    let folder = tempfile::tempdir().expect("a folder");
    let fene = "Fene(bonds: { \"x\": (k: 30.0, R0: 1.5) })";
    let rows = made(folder.path(), &[fene, "--link", "x", "--from", "0.5", "--to", "1.45", "--n", "6"]);
    for [r, _, f] in &rows {
        let exact = -30.0 * r / (1.0 - (r / 1.5).powi(2));
        assert!((f / exact - 1.0).abs() < 1e-9, "{r}: {f}, {exact}");
    }
    let harmonic = "HarmonicBond(bonds: { \"x\": (k: 1.0, r0: 10.0) })";
    let rows = made(folder.path(), &[harmonic, "--link", "x", "--from", "0", "--to", "9000", "--n", "7"]);
    let slope = rows[6][2] / (10.0 - 9000.0);
    assert!(slope > 0.0);
    for [r, _, f] in &rows {
        // the row r = 0 has the force at 10⁻⁸ of the longest bond, 9e-5, which is 9e-6 smaller
        assert!((f - slope * (10.0 - r)).abs() < 1e-4 * f.abs().max(slope), "{r}: {f}");
    }
    // slopes of many rows; at the ends, forces have no direction
    for component in [
        "HarmonicAngle(angles: { \"x\": (k: 3.0, theta0_deg: 100.0) })",
        "OplsDihedral(dihedrals: { \"x\": (k1: 1.1, k2: 0.6, k3: 0.4, k4: 0.2) })",
        "CvffImproper(impropers: { \"x\": (k: 1.1, d: -1, n: 2) })",
    ] {
        let fine = made(folder.path(), &[component, "--link", "x", "--n", "3601"]);
        let few = made(folder.path(), &[component, "--link", "x", "--n", "10"]);
        let largest = few.iter().fold(0.0f64, |m, row| m.max(row[2].abs()));
        assert!(largest > 0.0, "{component}");
        for (k, [x, _, f]) in few.iter().enumerate().skip(1).take(8) {
            let [before, after] = [fine[400 * k - 1], fine[400 * k + 1]];
            let expected = -(after[1] - before[1]) / (after[0] - before[0]);
            // differences over 0.1° have an error of h²/6 U''' = 5e-7 (h = 1.7e-3), times up to 4² of the harmonics
            assert!((f - expected).abs() < 1e-4 * largest, "{component}: {x}: {f}, {expected}");
        }
        let ends = [few[0][2], few[9][2]];
        let expected = [fine[0][2], fine[3600][2]];
        assert!(largest_difference(&ends, &expected) < 1e-9 * largest, "{component}: {ends:?}, {expected:?}");
    }
    // next to the singularity, U decreases with the angle
    let restricted = "RestrictedAngle(angles: { \"x\": (k: 1.0, theta0_deg: 120.0) })";
    let rows = made(folder.path(), &[restricted, "--link", "x", "--from", "10", "--to", "170", "--n", "17"]);
    assert!(rows[..11].iter().all(|row| row[2] > 0.0) && rows[12..].iter().all(|row| row[2] < 0.0), "{rows:?}");
}

/// Coefficients of a table in r² are of the order U/r_cut⁶, which only double precision holds at short distances.
#[test]
fn tables_of_short_distances_need_double_precision() {
    let u = "u: [7.2, 3.9, 1.8, 0.62, 0.1, -0.1, -0.06, 0.0]";
    let pair = |r: &str| format!("PairTable(pairs: {{ (\"A\", \"A\"): (r: [{r}], {u}) }})");
    let long = pair("0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0");
    let short = pair("0.6e-8, 0.8e-8, 1.0e-8, 1.2e-8, 1.4e-8, 1.6e-8, 1.8e-8, 2.0e-8");
    let refusal = |precision: &str| {
        let text = format!("(precision: {precision}, forces: [{short}], stages: [(steps: 0, dt: 0.01)])");
        plan_of(&text, one_type(), DeviceChoice::Cpu).err().map(|e| e.render())
    };
    assert_eq!(refusal("Double"), None);
    for precision in ["Single", "Mixed"] {
        let said = refusal(precision).unwrap_or_default();
        let expected = format!("the spline coefficients are out of range in {precision} precision; use units");
        assert!(said.contains(&expected) && said.contains("`precision: Double`"), "{said}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let rows = |table: &str, from: &str| made(folder.path(), &[table, "--pair", "A", "A", "--from", from, "--n", "9"]);
    let (expected, found) = (rows(&long, "0.7"), rows(&short, "0.7e-8"));
    assert_eq!((expected.len(), found.len()), (9, 9));
    for ([_, u, f], [r, scaled_u, scaled_f]) in expected.into_iter().zip(found) {
        // the widths of the intervals are rounded differently: 10⁻⁴ of a width, and errors of the spline of 10⁻⁶
        assert!(
            (scaled_u - u).abs() < 1e-4 && (1e-8 * scaled_f - f).abs() < 1e-3,
            "{r}: {scaled_u}, {u}, {scaled_f}, {f}"
        );
    }
}

#[test]
fn rows_where_a_component_is_undefined_or_jumps_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let fene = "Fene(bonds: { \"x\": (k: 30.0, R0: 1.5) })";
    let out =
        galamost(folder.path(), &["table", "make", fene, "--link", "x", "--from", "0.5", "--to", "1.5", "--n", "6"]);
    let expected = "row 6, r = 1.5: Fene is not defined there; change --from or --to";
    assert!(out.status.code() == Some(2) && words(&out).contains(expected), "{}", words(&out));
    // 1/sin²θ is limited to 10⁸ at 0° and 180°, from where a spline to the next row would have a wrong minimum
    let restricted = "RestrictedAngle(angles: { \"x\": (k: 1.0, theta0_deg: 120.0) })";
    for (from, expected) in [
        ("0", "row 1, angle = 0.0, and row 19, angle = 180.0: RestrictedAngle diverges there; change --from or --to"),
        ("10", "row 19, angle = 180.0: RestrictedAngle diverges there"),
    ] {
        let out = galamost(folder.path(), &["table", "make", restricted, "--link", "x", "--from", from, "--n", "19"]);
        assert!(out.status.code() == Some(2) && words(&out).contains(expected), "{from}: {}", words(&out));
    }
    let said = |mode: &str, to: &str| {
        let lj = format!("LennardJones(r_cut: 2.5{mode}, pairs: {{ (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) }})");
        let out = galamost(folder.path(), &["table", "make", &lj, "--pair", "A", "A", "--n", "6", "--to", to]);
        assert!(out.status.success(), "{}", words(&out));
        words(&out).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let jump = "U jumps from -0.0163169 to 0 at the cutoff 2.5";
    assert!(said("", "3").contains(jump), "{}", said("", "3"));
    assert!(!said("", "2.5").contains("jumps") && !said(", mode: ShiftEnergy", "3").contains("jumps"));
}

/// A component with several cutoffs: the table of a pair ends at the cutoff of this pair, and other types may have rows.
#[test]
fn tables_of_pairs_end_at_the_cutoff_of_their_types() {
    let folder = tempfile::tempdir().expect("a folder");
    let lj = "LennardJones(r_cut: 2.5, pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0, r_cut: 3.0), \
              (\"A\", \"B\"): (epsilon: 1.0, sigma: 1.0), (\"B\", \"B\"): (epsilon: 1.0, sigma: 1.0, r_cut: 1.5), \
              (\"*\", \"C\"): None })";
    for (a, b, cutoff) in [("A", "A", 3.0), ("A", "B", 2.5), ("B", "A", 2.5), ("B", "B", 1.5)] {
        let rows = made(folder.path(), &[lj, "--pair", a, b, "--n", "11"]);
        let (first, last) = (rows[0], rows[10]);
        assert!((first[0] - 0.3 * cutoff).abs() < 1e-12 && (last[0] - cutoff).abs() < 1e-12, "{a} {b}: {rows:?}");
        let u = 4.0 * (f64::powi(cutoff, -12) - f64::powi(cutoff, -6));
        assert!((last[1] / u - 1.0).abs() < 1e-9, "{a} {b}: {last:?}, U {u}");
    }
    let out = galamost(folder.path(), &["table", "make", lj, "--pair", "A", "C"]);
    let said = words(&out);
    assert!(
        out.status.code() == Some(2) && said.contains("LennardJones has no interaction of the pair (A, C)"),
        "{said}"
    );
}
