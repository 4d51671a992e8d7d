//! Topologies with constraints. what is written, and a run.

use super::{Case, DIGITS, GRO, convert, converted, topology};
use galamost::files;
use galamost_tests::{csv, galamost, registry, repository, words};

/// The constraints of `rigid.top`: bond types, lengths, and number of bonds.
const LENGTHS: [(&str, f64, usize); 9] = [
    ("OW-HW", 0.1, 40),
    ("HW-HW", 0.1633, 20),
    ("OV-HV", 0.09572, 20),
    ("HV-HV", 0.15139, 10),
    ("R-R", 0.294, 12),
    ("R-R:2", 0.416, 12),
    ("R-R:3", 0.509, 6),
    ("Q-P", 0.4, 8),
    ("P-Q:3", 0.38, 8),
];

/// Energies are those of OpenMM, whose constraints have none. A run keeps the lengths, and has the degrees of freedom of rigid molecules.
#[test]
fn constraints_keep_the_lengths_of_the_topology() {
    let text = std::fs::read_to_string(repository().join("tests/reference/gromacs.ron")).expect("a file");
    let cases: Vec<Case> = ron::from_str(&text).expect("cases");
    let case = cases.iter().find(|c| c.name == "rigid.top").expect("a case");
    let (folder, text) = converted("tests/data/gromacs", "rigid.top", &[]);
    for (name, length, _) in LENGTHS {
        assert!(text.contains(&format!("\"{name}\": {length:?}")), "{name}\n{text}");
    }
    std::fs::write(folder.path().join("sim.ron"), text.replace("seed: 1,", "seed: 1, precision: Double,"))
        .expect("written");
    let run = |steps: [u32; 2]| {
        let [relax, run] = [0, 1].map(|k| format!("stages[{k}].steps={}", steps[k]));
        let every = ["--set", "analyzers[0].every=100", "--set", "analyzers[1].every=100"];
        let fixed =
            ["--pipeline", "sim.ron", "--device", "cpu", "--quiet", "--overwrite", "--set", &relax, "--set", &run];
        let out = galamost(folder.path(), &[&fixed[..], &every].concat());
        assert_eq!(out.status.code(), Some(0), "{}", words(&out));
        csv(&folder.path().join("sim.csv"))
    };
    let table = run([0, 0]);
    for (name, energy) in &case.energies {
        let ours = table.get(name).unwrap_or_else(|| panic!("no column {name}"))[0];
        assert!((ours - energy).abs() < DIGITS * energy.abs(), "{name}: {ours} instead of {energy}");
    }
    assert_eq!(table["Constraints"][0], 0.0);
    let table = run([400, 400]);
    // three coordinates of 146 particles with mass, without 136 constraints
    let freedom = 2.0 * table["kinetic"][8] / table["kT"][8];
    assert!((freedom - 302.0).abs() < 1e-9, "{freedom}");
    let s = files::read(&folder.path().join("sim.gsd"), None, registry()).unwrap_or_else(|e| panic!("{}", e.render()));
    assert_eq!(s.step, 800);
    for (name, length, count) in LENGTHS {
        let kind = s.bond_types.iter().position(|t| t == name).expect("a type") as u32;
        let bonds: Vec<_> = s.bonds.iter().filter(|b| b.kind == kind).collect();
        assert_eq!(bonds.len(), count, "{name}");
        for bond in bonds {
            let [a, b] = bond.tags.map(|t| s.position[t as usize]);
            let d: [f64; 3] =
                std::array::from_fn(|k| (a[k] - b[k]) - s.box_length[k] * ((a[k] - b[k]) / s.box_length[k]).round());
            let r = d.iter().map(|x| x * x).sum::<f64>().sqrt();
            // a GSD file has positions of single precision: 3.6 · 2⁻²⁴ for each of six numbers
            assert!((r - length).abs() < 6.0 * 3.6 / f64::from(1 << 24), "{name}: {r} instead of {length}");
        }
    }
}

#[test]
fn constraints_choose_the_stages() {
    let water = topology("1 2", "", "[ settles ]\n1 1 0.1 0.16\n")
        .replace("A 10.0 0", "A 16.0 0")
        .replace("B 20.0 0", "B 1.0 0");
    let text =
        convert(&water, &GRO.replace("0.400   0.500", "0.050   0.186").replace("0.400   0.100", "0.200   0.100"), &[]);
    let text = text.unwrap_or_else(|e| panic!("{e}"));
    // kT/μ of O–H is 2.5/0.94: a period of 0.38 ps is 190 steps; a tenth of the thermal velocity is 0.064 nm/ps
    for part in [
        r#"Constraints(types: {"#,
        r#""A-B": 0.1, "B-B": 0.16,"#,
        "neighbors: (exclude: [Bonds])",
        r#"(name: "relax", steps: 2_000, dt: 0.002, integrators: [ CappedVerlet(max_displacement: 0.0001) ])"#,
        "dt: 0.002, integrators: [ Langevin",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("Fire("), "{text}");
    // without exclusions, bonds have no other potential
    let elastic = topology("1 2", "", "[ bonds ]\n1 2 6 0.3 100\n[ constraints ]\n2 3 2 0.4 1000");
    let text = convert(&elastic, GRO, &[]).unwrap_or_else(|e| panic!("{e}"));
    assert!(text.contains(r#""B-B": 0.4"#) && !text.contains("exclude") && !text.contains("not-excluded"), "{text}");
    let site = topology("1 2", "", "[ virtual_sites1 ]\n3 1 1\n[ constraints ]\n2 3 1 0.4")
        .replace("3 B 1 M C 1", "3 B 1 M C 1 0 0");
    let said = convert(&site, GRO, &[]).expect_err("a constrained site");
    assert!(said.contains("a.top:16:1: atom 3 is a virtual site and cannot be constrained"), "{said}");
}
