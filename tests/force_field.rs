//! Force-field files of GALAMOST and PyGAMD: energies against the formulas of its manual, what is written, and what is refused.

use galamost::files;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_tests::{csv, galamost, registry, repository, words};
use std::path::Path;

const SHIFTED: [&str; 8] =
    ["--r-cut", "1.2", "--r-shift", "0.9", "--epsilon-r", "15", "--exclude", "bonds,angles,sites"];

/// The force field and the structure of `tests/data/force_field`.
fn texts() -> [String; 2] {
    let read =
        |name: &str| std::fs::read_to_string(repository().join("tests/data/force_field").join(name)).expect("a file");
    ["system.force_field", "system.xml"].map(read)
}

/// Converts a force field. Returns the folder and the pipeline, or what is printed.
fn convert(field: &str, structure: &str, options: &[&str]) -> Result<(tempfile::TempDir, String), String> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.force_field"), field).expect("written");
    std::fs::write(folder.path().join("a.xml"), structure).expect("written");
    let args = [&["convert", "a.force_field", "sim.ron", "--coordinates", "a.xml"], options].concat();
    let out = galamost(folder.path(), &args);
    match out.status.code() {
        Some(0) => {
            let check = galamost(folder.path(), &["check", "sim.ron"]);
            assert_eq!(check.status.code(), Some(0), "{}", words(&check));
            let text = std::fs::read_to_string(folder.path().join("sim.ron")).expect("a pipeline");
            Ok((folder, text))
        }
        Some(2) => {
            assert!(!folder.path().join("sim.ron").exists());
            Err(words(&out))
        }
        code => panic!("status {code:?}: {}", words(&out)),
    }
}

/// Runs a converted pipeline in double precision. Returns its table.
fn run(folder: &Path, text: &str, steps: u32) -> std::collections::BTreeMap<String, Vec<f64>> {
    std::fs::write(folder.join("sim.ron"), text.replace("seed: 1,", "seed: 1, precision: Double,")).expect("written");
    let steps = format!("stages[1].steps={steps}");
    let args = ["--pipeline", "sim.ron", "--device", "cpu", "--quiet", "--overwrite"];
    let args = [&args[..], &["--set", "stages[0].steps=0", "--set", &steps]].concat();
    let out = galamost(folder, &args);
    assert_eq!(out.status.code(), Some(0), "{}", words(&out));
    csv(&folder.join("sim.csv"))
}

type Vector = [f64; 3];

fn difference(a: Vector, b: Vector, edges: Vector) -> Vector {
    std::array::from_fn(|k| (a[k] - b[k]) - edges[k] * ((a[k] - b[k]) / edges[k]).round())
}
fn dot(a: Vector, b: Vector) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}
fn cross(a: Vector, b: Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
fn length(a: Vector) -> f64 {
    dot(a, a).sqrt()
}

/// r⁻ⁿ with the shift function of GROMACS: its force is n/rⁿ⁺¹ + A (r − r₁)² + B (r − r₁)³ beyond r₁, with A and B such that
/// force and derivative vanish at the cutoff. The energy is the integral of the force.
fn shifted(n: i32, r: f64, r1: f64, rc: f64) -> f64 {
    let (m, w) = (f64::from(n), rc - r1);
    // A w² + B w³ = −n/rcⁿ⁺¹, 2 A w + 3 B w² = n (n + 1)/rcⁿ⁺²
    let (first, second) = (-m / rc.powi(n + 1), m * (m + 1.0) / rc.powi(n + 2));
    let b = (second - 2.0 * first / w) / (w * w);
    let a = (first - b * w.powi(3)) / (w * w);
    let force = |x: f64| {
        let d = (x - r1).max(0.0);
        m / x.powi(n + 1) + a * d * d + b * d.powi(3)
    };
    let simpson = |from: f64, to: f64| {
        let steps = 20_000;
        let h = (to - from) / f64::from(steps);
        let weight = |k: i32| if k == 0 || k == steps { 1.0 } else { f64::from(2 + 2 * (k % 2)) };
        (0..=steps).map(|k| weight(k) * force(from + f64::from(k) * h)).sum::<f64>() * h / 3.0
    };
    // the third derivative of the force jumps at r₁
    if r < r1 { simpson(r, r1) + simpson(r1, rc) } else { simpson(r, rc) }
}

/// Positions with the sites in their places.
struct Geometry {
    x: Vec<Vector>,
    edges: Vector,
}

impl Geometry {
    /// The sites are those of type 3 and 3out.
    fn of(s: &Snapshot) -> Self {
        let mut g = Self { x: s.position.to_vec(), edges: s.box_length };
        let (u, v) = (g.arm(6, 7), g.arm(6, 8));
        g.x[9] = std::array::from_fn(|k| g.x[6][k] + 0.4 * u[k] + 0.3 * v[k]);
        let (u, v) = (g.arm(7, 6), g.arm(7, 8));
        let out = cross(u, v);
        g.x[10] = std::array::from_fn(|k| g.x[7][k] + 0.3 * u[k] + 0.2 * v[k] - 0.9 * out[k]);
        g
    }
    fn arm(&self, i: usize, j: usize) -> Vector {
        difference(self.x[j], self.x[i], self.edges)
    }
    fn r(&self, i: usize, j: usize) -> f64 {
        length(self.arm(i, j))
    }
    fn theta(&self, [i, j, k]: [usize; 3]) -> f64 {
        (dot(self.arm(j, i), self.arm(j, k)) / (self.r(i, j) * self.r(j, k))).acos()
    }
    fn phi(&self, [i, j, k, m]: [usize; 4]) -> f64 {
        let (b1, b2, b3) = (self.arm(i, j), self.arm(j, k), self.arm(k, m));
        let (p, q) = (cross(b1, b2), cross(b2, b3));
        f64::atan2(length(b2) * dot(b1, q), dot(p, q))
    }

    /// The sum over all pairs closer than 1.2 that are not excluded: those without bond, that are not ends of an angle, and not a site
    /// and a particle that constructs it. `energy` is of the numbers of both types, the smaller one first, and the distance.
    fn pairs(&self, s: &Snapshot, energy: impl Fn(usize, usize, f64) -> f64) -> f64 {
        let bonds = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [0, 11], [6, 7]];
        let sites = [[6, 9], [7, 9], [8, 9], [6, 10], [7, 10], [8, 10]];
        let ends = [[0, 2], [2, 4], [1, 3]];
        let excluded = [&bonds[..], &sites, &ends].concat();
        let kind = |i: usize| s.type_id[i] as usize;
        let mut sum = 0.0;
        for (i, j) in (0..12).flat_map(|i| (i + 1..12).map(move |j| (i, j))) {
            let r = self.r(i, j);
            if !excluded.contains(&[i, j]) && r < 1.2 {
                sum += energy(kind(i).min(kind(j)), kind(i).max(kind(j)), r);
            }
        }
        sum
    }
}

/// Charges of the types A, B and C.
const CHARGE: [f64; 3] = [0.5, -0.3, 0.0];

/// The rows of the file, by the formulas of PyGAMD's manual; bonds and angles have the factor ½.
#[test]
fn energies_are_those_of_the_formulas() {
    let [field, structure] = texts();
    let (folder, text) = convert(&field, &structure, &SHIFTED).unwrap_or_else(|e| panic!("{e}"));
    let table = run(folder.path(), &text, 0);
    let s = files::read(&folder.path().join("a.xml"), None, registry()).unwrap_or_else(|e| panic!("{}", e.render()));
    let g = Geometry::of(&s);
    let degrees = std::f64::consts::PI / 180.0;
    let wave = |k: f64, n: f64, at: f64, delta: f64| k * (1.0 + (n * at - delta * degrees).cos());
    let bond = |k: f64, i, j, r0: f64| 0.5 * k * (g.r(i, j) - r0).powi(2);
    let near = |name: &str, expected: f64| {
        let ours = table.get(name).unwrap_or_else(|| panic!("no column {name}"))[0];
        // numbers of a row have ten digits
        assert!((ours - expected).abs() < 1e-9 * expected.abs(), "{name}: {ours} instead of {expected}");
    };
    let chain: f64 = [(0, 1), (1, 2), (2, 3), (0, 11)].iter().map(|(i, j)| bond(1250.0, *i, *j, 0.33)).sum();
    near("HarmonicBond", chain + bond(800.0, 3, 4, 0.36) + bond(800.0, 4, 5, 0.36));
    let straight = |at| 0.5 * 45.0 * (g.theta(at) - 110.0 * degrees).powi(2);
    near("HarmonicAngle", straight([0, 1, 2]) + straight([1, 2, 3]));
    near("CosineSquaredAngle", 0.5 * 25.0 * (g.theta([2, 3, 4]).cos() - (130.0 * degrees).cos()).powi(2));
    let first = g.phi([0, 1, 2, 3]);
    near("PeriodicDihedral", wave(1.2, 1.0, first, 20.0) + wave(3.0, 2.0, g.phi([1, 2, 3, 4]), 170.0));
    near("PeriodicDihedral:2", wave(-0.7, 3.0, first, 180.0));
    near("PeriodicDihedral:3", wave(0.4, 4.0, first, 35.0));
    let turn = 360.0 * degrees;
    let d = g.phi([2, 3, 4, 5]) + 179.7 * degrees;
    near("HarmonicDihedral", 0.5 * 50.0 * (d - turn * (d / turn).round()).powi(2));
    // PyGAMD 1.4.9 computes powers of cos φ, not of cos(φ − 180°) as GROMACS
    let cosine = g.phi([3, 4, 5, 2]).cos();
    let powers = [9.28, 12.16, -13.12, -3.06, 26.24, -31.5];
    near("RyckaertBellemans", (0..6).map(|n| powers[n] * cosine.powi(n as i32)).sum());
    let p = g.phi([0, 2, 3, 4]);
    let [k1, k2, k3, k4] = [1.3, -0.05, 0.2, 0.6];
    let even = k2 * (1.0 - (2.0 * p).cos()) + k4 * (1.0 - (4.0 * p).cos());
    near("OplsDihedral", 0.5 * (k1 * (1.0 + p.cos()) + k3 * (1.0 + (3.0 * p).cos()) + even));
    let shifted_pair = |a: usize, b: usize, r: f64| {
        let [epsilon, sigma, alpha]: [f64; 3] = match (a, b) {
            (0, 0) => [1.5, 0.30, 1.0],
            (0, 1) => [1.0, 0.32, 0.5],
            (1, 1) => [2.0, 0.34, 1.0],
            (1, 2) => [0.7, 0.31, 1.0],
            _ => [0.0; 3],
        };
        let attraction = alpha * sigma.powi(6) * shifted(6, r, 0.9, 1.2);
        let coulomb = 138.935458 / 15.0 * CHARGE[a] * CHARGE[b] * shifted(1, r, 0.9, 1.2);
        4.0 * epsilon * (sigma.powi(12) * shifted(12, r, 0.9, 1.2) - attraction) + coulomb
    };
    near("PairExpression", g.pairs(&s, shifted_pair));
}

/// σ and λ of each type, and screened charges.
#[test]
fn types_have_stickiness() {
    let [field, structure] = texts();
    let (_, rest) = field.split_once("</pair_params>").expect("a section");
    let field = format!("<ah_params>\nA 0.30 0.5\nB 0.34 0.8 # sticky\nC 0.05 0.1\n</ah_params>\n{rest}");
    let options = ["--r-cut", "1.2", "--ah-epsilon", "0.8368", "--exclude", "bonds,angles,sites", "--epsilon-r", "74"];
    let options = [&options[..], &["--coulomb", "debye-hueckel", "--debye-length", "0.794"]].concat();
    let (folder, text) = convert(&field, &structure, &options).unwrap_or_else(|e| panic!("{e}"));
    let table = run(folder.path(), &text, 0);
    let s = files::read(&folder.path().join("a.xml"), None, registry()).unwrap_or_else(|e| panic!("{}", e.render()));
    let g = Geometry::of(&s);
    let near = |name: &str, expected: f64| {
        let ours = table.get(name).unwrap_or_else(|| panic!("no column {name}"))[0];
        assert!((ours - expected).abs() < 1e-9 * expected.abs(), "{name}: {ours} instead of {expected}");
    };
    let of_types = [[0.30, 0.5], [0.34, 0.8], [0.05, 0.1]];
    let sticky = |a: usize, b: usize, r: f64| {
        let [sigma, lambda]: [f64; 2] = std::array::from_fn(|k| 0.5 * (of_types[a][k] + of_types[b][k]));
        let x = (sigma / r).powi(6);
        let lj = 4.0 * 0.8368 * (x * x - x);
        if r <= 2f64.powf(1.0 / 6.0) * sigma { lj + 0.8368 * (1.0 - lambda) } else { lambda * lj }
    };
    near("AshbaughHatch", g.pairs(&s, sticky));
    let screened = |a: usize, b: usize, r: f64| 138.935458 / 74.0 * CHARGE[a] * CHARGE[b] * (-r / 0.794).exp() / r;
    near("DebyeHueckel", g.pairs(&s, screened));
    for (from, to, message) in [
        ("C 0.05 0.1\n", "", "a.force_field:1:1: <ah_params> has no row for the type C"),
        ("B 0.34 0.8", "B 0.34", "a.force_field:3:1: expected 2 values after the type (sigma, lambda), found 1"),
        ("B 0.34 0.8", "B 0 0.8", "a.force_field:3:1: sigma is 0"),
        (
            "<ah_params>",
            "<pair_params>\n</pair_params>\n<ah_params>",
            "a.force_field:3:1: <pair_params> and <ah_params> are",
        ),
    ] {
        let said = convert(&field.replacen(from, to, 1), &structure, &options).expect_err(message);
        assert!(said.contains(message), "{message}\n{said}");
    }
    for (left_out, message) in [
        ("--ah-epsilon", "--ah-epsilon: is missing: ε of <ah_params>"),
        ("--debye-length", "--debye-length: is missing"),
    ] {
        let k = options.iter().position(|o| *o == left_out).expect("an option");
        let less = [&options[..k], &options[k + 2..]].concat();
        let said = convert(&field, &structure, &less).expect_err(message);
        assert!(said.contains(message), "{message}\n{said}");
    }
}

/// A plain cutoff, and a run with constraints and virtual sites.
#[test]
#[ignore = "3 seconds"]
fn the_pipeline_runs() {
    let [field, structure] = texts();
    let options = ["--r-cut", "1.1", "--epsilon-r", "15", "--exclude", "bonds,sites", "--coulomb", "reaction-field"];
    let (folder, text) = convert(&field, &structure, &[&options[..], &["--temperature", "310"]].concat())
        .unwrap_or_else(|e| panic!("{e}"));
    for part in [
        "neighbors: (exclude: [Bonds]),",
        "LennardJones(r_cut: 1.1, mode: Cut, pairs: {",
        r#"("A", "B"): (epsilon: 1.0, sigma: 0.32, alpha: 0.5),"#,
        r#"("A", "C"): None,"#,
        "ReactionField(r_cut: 1.1, f: 138.935458, epsilon_r: 15.0)",
        r#""vsite-v-three": Three(a: 0.4, b: 0.3), "vsite-v-out": ThreeOut(a: 0.3, b: 0.2, c: -0.9)"#,
        "kT: 2.577483412",
        // ω² = 1250 (1/72 + 1/72)/ps²: a period of 1.07 ps
        "dt: 0.02",
        "delete this stage for a structure in equilibrium",
        // a tenth of the thermal velocity of the mean mass, 63.2 u: 0.1 · 0.02 · √(2.58/63.2)
        r#"(name: "relax", steps: 2_000, dt: 0.02, integrators: [ CappedVerlet(max_displacement: 0.0004) ]),"#,
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // velocities of the file are kept
    let moving =
        structure.replacen("<type", &format!("<velocity num=\"12\">\n{}</velocity>\n<type", "0.1 0 0\n".repeat(12)), 1);
    let (_, still) = convert(&field, &moving, &options).unwrap_or_else(|e| panic!("{e}"));
    assert!(!still.contains("relax") && still.contains("stages: [\n        // 300 K"), "{still}");
    let text = text.replace("Gsd(every: 1_000,", "GalamostXml(every: 400, digits: 12,").replace("sim.gsd", "end.xml");
    let table = run(folder.path(), &text.replace("dt: 0.02", "dt: 0.002"), 400);
    assert!(table["kT"].iter().all(|t| t.is_finite()) && table["kT"].len() == 5);
    let s = files::read(&folder.path().join("end.xml"), None, registry()).unwrap_or_else(|e| panic!("{}", e.render()));
    let r = length(difference(s.position[6], s.position[7], s.box_length));
    // the default tolerance of `Constraints`, relative to 0.31, and twelve digits of the file
    assert!((r - 0.31).abs() < 1e-8, "{r}");
    assert!(s.impropers.is_empty() && s.improper_types.is_empty());
    // Pppm, and no charges
    let pppm = ["--r-cut", "1.0", "--epsilon-r", "2", "--exclude", "none", "--coulomb", "pppm"];
    let (_, text) = convert(&field, &structure, &pppm).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        text.contains("Pppm(accuracy: 1e-3, r_cut: 1.0, f: 138.935458, epsilon_r: 2.0)")
            && !text.contains("exclude: [")
    );
    assert!(!text.contains("bonds: \"site\""), "{text}");
    let neutral = structure.replace("0.5\n0.5\n0.5\n0.5\n-0.3\n-0.3\n-0.3\n-0.3\n0.5\n0\n0\n0.5\n", &"0\n".repeat(12));
    let (_, text) =
        convert(&field, &neutral, &["--r-cut", "1.0", "--exclude", "bonds"]).unwrap_or_else(|e| panic!("{e}"));
    assert!(!text.contains("ReactionField") && !text.contains("Pppm"), "{text}");
}

#[test]
#[ignore = "3 seconds"]
fn mistakes_have_their_line() {
    let [field, structure] = texts();
    let with = |from: &str, to: &str| {
        assert!(field.contains(from), "{from}");
        field.replacen(from, to, 1)
    };
    for (text, message) in [
        (with("A A 1.5 0.30 1.0\n", ""), "a.force_field:2:1: <pair_params> has no row for the pair A A"),
        (with("A A 1.5 0.30 1.0", "A A 1.5 0.30"), "a.force_field:3:1: expected 3 values after both types"),
        (with("A B 1.0", "A B x"), "a.force_field:4:5: expected a number, found `x`"),
        (with("C A 0.0", "C A -2"), "a.force_field:6:1: epsilon is -2"),
        (
            with("C C 0.0 0.33 1.0\n", "C C 0.0 0.33 1.0\nB A 9 1 1\n"),
            "a.force_field:9:1: the pair A B has other parameters in line 4",
        ),
        (with("A-A 1250.0 0.33 1\n", ""), "<bond_params> has no row for the type A-A"),
        (
            with("A-A 1250.0 0.33 1", "A-A 1250.0 0.33 2"),
            "a.force_field:21:1: function 2 of <bond_params> is not supported; the functions are 1",
        ),
        (
            with("A-B 800.0 0.36 1", "A-B 800.0 0.36 1\nA-B 8 0.36 1"),
            "a.force_field:23:1: the type A-B has other parameters in line 22",
        ),
        (with("A-A-B 25.0 130.0 2", "A-A-B 25.0 130.0 25 0.2 5"), "a.force_field:28:1: function 5 (Urey-Bradley)"),
        (with("B-B 0.31 1", "B-B -0.31 1"), "a.force_field:12:1: the length of this constraint is -0.31"),
        (with("v-out 0.3 0.2 -0.9 4", "v-out 0.3 0.2 -0.9 3"), "a.force_field:17:1: function 3 of <vsite_params>"),
        (with("</dihedral_params>", ""), "a.force_field:31:1: <dihedral_params> has no end"),
        (
            with("<bond_params>", "<bonds_params>"),
            "a.force_field:20:1: unknown section <bonds_params>; did you mean <bond_params>?",
        ),
    ] {
        let said = convert(&text, &structure, &SHIFTED).expect_err(message);
        assert!(said.contains(message), "{message}\n{said}");
    }
    for (options, message) in [
        (&["--r-cut", "1.2", "--coulomb", "none"][..], "--exclude: is missing: lists whose pairs are excluded"),
        (&["--exclude", "none"], "--r-cut: is missing"),
        (&["--exclude", "none", "--r-cut", "1.2"], "--coulomb: is missing: the particles have charges"),
        (&["--exclude", "none", "--r-cut", "1.2", "--coulomb", "pppm"], "--epsilon-r: is missing"),
        (&["--exclude", "none", "--r-cut", "1.2", "--coulomb", "shift", "--epsilon-r", "1"], "--r-shift: is missing"),
        (
            &["--exclude", "none", "--r-cut", "1.2", "--r-shift", "1.2"],
            "--r-shift: `1.2`: expected a number from 0 to below",
        ),
        (&["--exclude", "none", "--r-cut", "1.2", "-D", "X"], "these options need a topology"),
        (
            &["--exclude", "none", "--r-cut", "1.2", "--frames", "0"],
            "do not apply to a topology of GROMACS or a force field",
        ),
        (&["--exclude", "bond"], "invalid value"),
        (&["--exclude", "none,bonds", "--r-cut", "1.2", "--coulomb", "none"], "--exclude: `none` stands alone"),
        (
            &["--exclude", "none", "--r-cut", "1.2", "--coulomb", "none", "--ah-epsilon", "1"],
            "--ah-epsilon: needs the section",
        ),
        (&["--exclude", "none", "--r-cut", "1.2", "--coulomb", "none", "--debye-length", "1"], "--debye-length: needs"),
    ] {
        let said = convert(&field, &structure, options).expect_err(message);
        assert!(said.contains(message), "{message}\n{said}");
    }
}

#[test]
fn other_mistakes() {
    let [field, structure] = texts();
    let mixed = structure.replacen(">\n0.5\n", ">\n0.4\n", 1);
    let said = convert(&field, &mixed, &SHIFTED).expect_err("charges");
    assert!(said.contains("a.xml: particles of the type A have the charges 0.4 and 0.5"), "{said}");
    // mistakes of a pipeline that is written by hand
    let (folder, text) = convert(&field, &structure, &SHIFTED).unwrap_or_else(|e| panic!("{e}"));
    for (from, to, message) in [
        (
            r#""vsite-v-three": Three"#,
            r#""vsite-v-tree": Three"#,
            "there is no improper type \"vsite-v-tree\"; did you mean \"vsite-v-three\"?",
        ),
        ("Three(a: 0.4, b: 0.3)", "FourFdn(a: 0.4, b: 0.3, c: 0.1)", "FourFdn needs 4 particles in `from`, not 3"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(text, changed);
        std::fs::write(folder.path().join("hand.ron"), changed).expect("written");
        let out = galamost(folder.path(), &["check", "hand.ron"]);
        assert!(out.status.code() == Some(2) && words(&out).contains(message), "{message}\n{}", words(&out));
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (args, message) in [
        (&["convert", "a.force_field", "sim.ron"][..], "name their file with --coordinates"),
        (&["convert", "a.force_field", "sim.xml"], "a force field becomes a pipeline"),
        (&["convert", "a.xml", "b.xml", "--exclude", "none"], "options of force fields"),
    ] {
        let out = galamost(folder.path(), args);
        assert!(out.status.code() == Some(2) && words(&out).contains(message), "{message}\n{}", words(&out));
    }
}
