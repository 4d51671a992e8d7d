//! Energies, virials and torques of particles.

use super::go;
use galamost_tests::tolerances::bound;
use galamost_tests::{csv, dump, galamost, has_compiler, repository, words};
use std::collections::BTreeMap;
use std::path::Path;

type Rows = BTreeMap<String, Vec<f64>>;

const TENSOR: [&str; 6] = ["xx", "xy", "xz", "yy", "yz", "zz"];
const COLUMNS: &str = r#"["id", "vx", "vy", "vz", "mass", "energy", "vxx", "vxy", "vxz", "vyy", "vyz", "vzz"]"#;
/// Branched molecules with all kinds of bonded interactions, as in `shares/make.py`.
const CHAINS: &str = r#"
    LennardJones(r_cut: 2.5, pairs: { ("1", "1"): (epsilon: 1.0, sigma: 0.8),
        ("1", "2"): (epsilon: 0.7, sigma: 0.75, r_cut: 2.2), ("2", "2"): (epsilon: 0.5, sigma: 0.7, r_cut: 2.0) }),
    HarmonicBond(bonds: { "*": (k: 30.0, r0: 0.9) }),
    HarmonicAngle(angles: { "*": (k: 5.0, theta0_deg: 110.0) }),
    OplsDihedral(dihedrals: { "*": (k1: 1.3, k2: -0.5, k3: 0.7, k4: 0.2) }),
    CvffImproper(impropers: { "*": (k: 2.0, d: -1, n: 2) }),"#;
const SPECIAL: &str = r#"special: { "1-2": 0.0, "1-3": 0.4, "1-4": 0.5 }"#;

fn run(folder: &Path, device: &str, text: &str) {
    std::fs::write(folder.join("p.ron"), text).expect("written");
    go(folder, &["--pipeline", "p.ron", "--device", device, "--quiet", "--overwrite"]);
}

/// The pipeline of some forces on an initial state.
fn pipeline(initial: &str, forces: &str, neighbors: &str, precision: &str, steps: u32) -> String {
    format!(
        "(seed: 4, precision: {precision}, neighbors: ({neighbors}), initial: [{initial}], forces: [{forces}], \
         integrators: [VelocityVerlet()], stages: [(steps: {steps}, dt: 0.001)], analyzers: [\
         LammpsDump(every: 10, file: \"t.dump\", columns: {COLUMNS}), Thermo(every: 10, file: \"t.csv\"), \
         ExtendedXyz(every: 10, file: \"t.xyz\", forces: true, virials: true), \
         ParticleTable(at_end: true, file: \"rows.csv\", columns: {COLUMNS})])"
    )
}

/// The sums over all particles equal the potential energy and the pressure tensor, to `tolerance` times the sum of magnitudes.
fn add_up(folder: &Path, tolerance: f64, what: &str) {
    let rows: Rows = dump(&folder.join("t.dump"));
    let thermo = csv(&folder.join("t.csv"));
    let last = |name: &str| *thermo[name].last().expect("a row");
    let equal = |sum: f64, magnitude: f64, total: f64, of: &str| {
        assert!((sum - total).abs() <= tolerance * magnitude, "{what}: {of} {sum} and {total} of {magnitude}");
    };
    let magnitude = |x: &[f64]| x.iter().map(|x| x.abs()).sum::<f64>().max(1e-300);
    equal(rows["energy"].iter().sum(), magnitude(&rows["energy"]), last("potential"), "energy");
    for (k, (a, b)) in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)].into_iter().enumerate() {
        let (name, pressure) = (format!("v{}", TENSOR[k]), last(&format!("pressure_{}", TENSOR[k])));
        let v = |axis: usize| &rows[["vx", "vy", "vz"][axis]];
        let kinetic: Vec<f64> = (0..rows["id"].len()).map(|i| rows["mass"][i] * v(a)[i] * v(b)[i]).collect();
        let sum = kinetic.iter().sum::<f64>() + rows[&name].iter().sum::<f64>();
        equal(sum, magnitude(&kinetic) + magnitude(&rows[&name]), pressure * last("volume"), &name);
    }
}

fn devices() -> Vec<&'static str> {
    if has_compiler() { vec!["cpu", "emulated"] } else { vec!["cpu"] }
}

#[test]
fn energies_and_virials_of_particles_are_those_of_lammps() {
    let folder = tempfile::tempdir().expect("a folder");
    let shares = repository().join("tests/formats/shares");
    std::fs::copy(shares.join("chains.data"), folder.path().join("chains.data")).expect("copied");
    let text = std::fs::read_to_string(shares.join("chains.txt")).expect("a reference");
    let numbers = |line: &str| line.split(' ').map(|w| w.parse().expect("a number")).collect::<Vec<f64>>();
    let wanted: Vec<Vec<f64>> = text.lines().map(numbers).collect();
    for device in devices() {
        run(folder.path(), device, &pipeline("LammpsData(file: \"chains.data\")", CHAINS, SPECIAL, "Double", 0));
        let rows = dump(&folder.path().join("t.dump"));
        for (k, name) in ["energy", "vxx", "vyy", "vzz", "vxy", "vxz", "vyz"].into_iter().enumerate() {
            let largest = wanted.iter().fold(0.0f64, |m, row| m.max(row[k].abs()));
            for (found, row) in rows[name].iter().zip(&wanted) {
                assert!((found - row[k]).abs() < 1e-10 * largest, "{device}: {name} {found} and {}", row[k]);
            }
        }
        let table = csv(&folder.path().join("rows.csv"));
        assert!(rows.iter().all(|(name, column)| table[name] == *column) && table["step"] == vec![0.0; wanted.len()]);
        let xyz = std::fs::read_to_string(folder.path().join("t.xyz")).expect("a file");
        assert!(xyz.contains(":forces:R:3:energies:R:1:virials:R:6 "), "{xyz}");
        let row = numbers(xyz.lines().last().expect("a row").split_once(' ').expect("a type").1);
        let virial: Vec<f64> = TENSOR.iter().map(|t| *rows[&format!("v{t}")].last().expect("a row")).collect();
        assert_eq!(row[row.len() - 6..], virial);
    }
}

#[test]
#[ignore = "3 seconds"]
fn energies_and_virials_of_particles_add_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = repository().join("tests/formats/shares/chains.data");
    std::fs::copy(data, folder.path().join("chains.data")).expect("copied");
    let wall = r#"LjWall(wall: Plane(point: [0.0, 0.0, -5.1], normal: [0.0, 0.0, 1.0]),
        types: { "A": (epsilon: 1.0, sigma: 0.4, r_cut: 1.0) })"#;
    let crystal = "Lattice(lattice: Sc, cells: [6, 6, 6], density: 0.2), Velocities(kT: 1.0)";
    let chains = "LammpsData(file: \"chains.data\"), Velocities(kT: 1.0)";
    let liquid = "RandomPositions(count: 400, box: [6.0, 6.0, 6.0]), Velocities(kT: 1.0)";
    let disks = "Lattice(lattice: Sc, cells: [6, 6, 6], density: 0.2), Velocities(kT: 1.0), Orientations(kT: 1.0, inertia: [1.0, 1.0, 1.0])";
    let cases = [
        (chains, CHAINS, SPECIAL),
        (crystal, wall, ""),
        (liquid, r#"ManyBodyDpd(r_cut: 1.0, r_d: 0.75, B: 25.0, pairs: { ("A", "A"): (A: -40.0) })"#, ""),
        (liquid, r#"PairExpression(energy: "a*(1-r)^2", r_cut: 1.0, pairs: { ("A", "A"): (a: 12.0) })"#, ""),
        (
            disks,
            r#"GayBerne(r_cut: 2.5, pairs: { ("A", "A"): (epsilon0: 1.0, sigma0: 0.5, kappa: 2.0, kappa_prime: 5.0) })"#,
            "",
        ),
        (liquid, r#"ExternalExpression(energy: "0.3*sin(x)"), BodyForce(force: [1.0, 0.0, 0.0])"#, ""),
    ];
    for device in devices() {
        for (initial, forces, neighbors) in &cases {
            for precision in ["Double", "Mixed"] {
                let tolerance = bound(if precision == "Double" { "shares: double" } else { "shares: mixed" });
                run(folder.path(), device, &pipeline(initial, forces, neighbors, precision, 20));
                add_up(folder.path(), tolerance, &format!("{device} {precision}: {forces}"));
            }
        }
    }
    if has_compiler() {
        let soft = r#"HarmonicRepulsion(r_cut: 1.0, pairs: { ("A", "A"): (alpha: 12.5) })"#;
        run(folder.path(), "emulated", &pipeline(liquid, soft, "list: Staged, buffer: 0.3", "Mixed", 20));
        add_up(folder.path(), bound("shares: mixed"), "staged");
    }
}

/// Two oriented particles do not turn as a whole: Σ (r F + T) = 0.
#[test]
fn torques_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"(seed: 4, precision: Double, initial: [ ExtendedXyz(file: "two.xyz"), Orientations(kT: 1.0, inertia: [1.0, 1.0, 1.0]) ],
        forces: [ GayBerne(r_cut: 4.0, pairs: { ("A", "A"): (epsilon0: 1.0, sigma0: 0.5, kappa: 2.0, kappa_prime: 5.0) }) ],
        integrators: [ RotationalVerlet() ], stages: [ (steps: 1, dt: 0.001) ], analyzers: [
        LammpsDump(every: 1, file: "t.dump", columns: ["id", "x", "y", "z", "fx", "fy", "fz", "tqx", "tqy", "tqz"]),
        ExtendedXyz(every: 1, file: "t.xyz", torques: true), Gsd(every: 1, file: "t.gsd", torques: true, virials: true) ])"#;
    let positions = "2\nLattice=\"20 0 0 0 20 0 0 0 20\" Origin=\"-10 -10 -10\" Properties=species:S:1:pos:R:3\nA 0.1 0.2 0.3\nA 0.9 0.8 1.1\n";
    std::fs::write(folder.path().join("two.xyz"), positions).expect("written");
    for device in devices() {
        run(folder.path(), device, text);
        let rows = dump(&folder.path().join("t.dump"));
        let of = |names: [&str; 3], i: usize| names.map(|n| rows[n][i]);
        let (mut total, mut largest) = ([0.0; 3], 0.0f64);
        for i in 0..2 {
            let (r, f, t) = (of(["x", "y", "z"], i), of(["fx", "fy", "fz"], i), of(["tqx", "tqy", "tqz"], i));
            for k in 0..3 {
                let (a, b) = ((k + 1) % 3, (k + 2) % 3);
                total[k] += r[a] * f[b] - r[b] * f[a] + t[k];
                largest = largest.max(t[k].abs());
            }
        }
        assert!(largest > 1e-3 && total.iter().all(|x| x.abs() < 1e-10 * largest), "{device}: {total:?} of {largest}");
        let xyz = std::fs::read_to_string(folder.path().join("t.xyz")).expect("a file");
        let last: Vec<f64> =
            xyz.lines().last().expect("a row").split(' ').skip(1).map(|w| w.parse().expect("a number")).collect();
        assert_eq!(last[last.len() - 3..], of(["tqx", "tqy", "tqz"], 1));
    }
}

#[test]
fn quantities_that_do_not_exist_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |initial: &str, forces: &str, writer: &str| {
        let text = format!(
            "(initial: [RandomPositions(count: 8, box: [8.0, 8.0, 8.0]){initial}], forces: [{forces}], integrators: [VelocityVerlet()], \
             analyzers: [{writer}], stages: [(steps: 1, dt: 0.001)])"
        );
        std::fs::write(folder.path().join("p.ron"), text).expect("written");
        let out = galamost(folder.path(), &["check", "p.ron", "--device", "cpu"]);
        (out.status.code(), words(&out))
    };
    let dump = |column: &str| format!(r#"LammpsDump(every: 1, file: "t.dump", columns: ["id", "{column}"])"#);
    for (initial, forces, writer, message) in [
        ("", "", dump("tqx"), "there are no torques: the particles have no orientations"),
        ("", "", dump("vyx"), "unknown column `vyx`"),
        ("", "", dump("id"), "column `id` is listed twice"),
        (
            "",
            "",
            r#"ParticleTable(every: 1, file: "t.csv", columns: ["x", "id", "x"])"#.into(),
            "column `x` is listed twice",
        ),
        (
            "",
            "MdScf(scheme: Variational, grid: [8, 8, 8], density: 0.0156, kappa: 0.1, filter: 0.6, chi: { (\"A\", \"A\"): 0.0 })",
            dump("vxx"),
            "MdScf has no virials of the particles",
        ),
        (
            "",
            "MdScf(scheme: Paper, grid: [8, 8, 8], density: 0.0156, kappa: 0.1, chi: { (\"A\", \"A\"): 0.0 })",
            dump("energy"),
            "MdScf has no energies of the particles",
        ),
    ] {
        let (code, said) = check(initial, forces, &writer);
        assert!(code == Some(2) && said.contains(message), "{writer}: {said}");
    }
}

/// Energies of bonded components by type add up to those of the components, and a component with rows of one type has the energy
/// of that type.
#[test]
#[ignore = "3 seconds"]
fn energies_by_type_add_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let initial = r#"Polymers(box: [8.0, 8.0, 8.0], distance: 0.5, bond_length: 0.8, angles: { "A-A-A": (), "A-A-B": () },
        dihedrals: ["A-A-A-B"], molecules: [(molecule: "A3BC", count: 30)]), Velocities(kT: 1.0)"#;
    let forces = |bonds: &str| {
        format!(
            r#"Wca(pairs: {{ ("*", "*"): (epsilon: 0.1, sigma: 0.5) }}), {bonds}
            HarmonicAngle(angles: {{ "A-A-A": (k: 3.0, theta0_deg: 120.0), "A-A-B": (k: 5.0, theta0_deg: 100.0) }}),
            OplsDihedral(dihedrals: {{ "*": (k1: 1.0, k2: 0.3) }}),"#
        )
    };
    let thermo = |forces: &str, precision: &str, device: &str| {
        let text = format!(
            "(seed: 7, precision: {precision}, initial: [{initial}], forces: [{forces}], integrators: [VelocityVerlet()], \
             analyzers: [Thermo(every: 10, file: \"t.csv\", by_type: true)], stages: [(steps: 30, dt: 0.001)])"
        );
        run(folder.path(), device, &text);
        csv(&folder.path().join("t.csv"))
    };
    let rows = [r#""A-A": (k: 30.0, r0: 0.9)"#, r#""A-B": (k: 40.0, r0: 0.7)"#, r#""B-C": (k: 20.0, r0: 1.0)"#];
    let together = forces(&format!("HarmonicBond(bonds: {{ {} }}),", rows.join(", ")));
    let apart = forces(&rows.map(|row| format!("HarmonicBond(bonds: {{ {row} }}),")).concat());
    for device in devices() {
        for precision in ["Double", "Mixed"] {
            let t = thermo(&together, precision, device);
            let tolerance =
                bound(if precision == "Double" { "energies by type: double" } else { "energies by type: mixed" });
            let sums = [
                ("HarmonicBond", vec!["HarmonicBond.A-A", "HarmonicBond.A-B", "HarmonicBond.B-C"]),
                ("HarmonicAngle", vec!["HarmonicAngle.A-A-A", "HarmonicAngle.A-A-B"]),
                ("OplsDihedral", vec!["OplsDihedral.A-A-A-B"]),
            ];
            for (all, parts) in sums {
                for (k, wanted) in t[all].iter().enumerate() {
                    let sum: f64 = parts.iter().map(|p| t[*p][k]).sum();
                    assert!(
                        (sum - wanted).abs() < tolerance * wanted,
                        "{device} {precision}: {all} {wanted} and {sum}"
                    );
                }
            }
            let single = thermo(&apart, precision, device);
            for (column, part) in [("HarmonicBond", "A-A"), ("HarmonicBond:2", "A-B"), ("HarmonicBond:3", "B-C")] {
                // the column of a type is named after the component that has the type
                for (a, b) in single[&format!("{column}.{part}")].iter().zip(&single[column]) {
                    assert!((a - b).abs() < tolerance * b, "{device} {precision}: {column} {b} and {a}");
                }
                let (found, wanted) = (t[&format!("HarmonicBond.{part}")][0], single[column][0]);
                assert!(
                    (found - wanted).abs() < tolerance * wanted,
                    "{device} {precision}: {part} {wanted} and {found}"
                );
            }
        }
    }
}
