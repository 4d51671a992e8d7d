//! Kernels without a GPU: every unit compiles to machine code for the H200's architecture.

use galamost::device::{Unit, nvrtc};
use galamost::gpu::{bond_unit, engine_units, integrator_unit, pair_unit};
use galamost::pipeline::DeviceChoice;
use galamost_plugin_api::precision::Precision;
use galamost_tests::{has_nvrtc, plan};

const PIPELINE: &str = r#"(
    initial: [ RandomPositions(n: 100, box: [8.0, 8.0, 8.0], types: {"A": 0.5, "B": 0.5}) ],
    forces: [
        LennardJones(r_cut: 2.5, mode: MODE, pairs: {
            ("A", "A"): (epsilon: 1.0, sigma: 1.0), ("A", "B"): (epsilon: 1.0, sigma: 1.0), ("B", "B"): (epsilon: 1.0, sigma: 1.0) }),
        Dpd(r_cut: 1.0, kT: 1.0, pairs: {
            ("A", "A"): (a: 25.0, sigma: 3.0), ("A", "B"): (a: 25.0, sigma: 3.0), ("B", "B"): (a: 25.0, sigma: 3.0) }),
        HarmonicBond(bonds: {}),
    ],
    integrators: [ INTEGRATOR ],
    stages: [ (steps: 1, dt: 0.01) ],
)"#;

const CHAINS: &str = r#"(
    initial: [ RandomPositions(n: 100, box: [8.0, 8.0, 8.0]) ],
    forces: [
        HarmonicAngle(angles: {}), CosineSquaredAngle(angles: {}), CosineAngle(angles: {}),
        PeriodicDihedral(dihedrals: {}), OplsDihedral(dihedrals: {}), RyckaertBellemans(dihedrals: {}), HarmonicImproper(dihedrals: {}),
    ],
    stages: [ (steps: 0, dt: 0.01) ],
)"#;

/// One formula with every function.
const FORMULAS: &str = r#"(
    initial: [ RandomPositions(n: 100, box: [8.0, 8.0, 8.0], types: {"A": 0.5, "B": 0.5}) ],
    forces: [
        PairExpression(energy: "4*eps*((sig/r)^12 - (sig/r)^6)", r_cut: 2.5, pairs: {
            ("A", "A"): (eps: 1.0, sig: 1.0), ("A", "B"): (eps: 1.0, sig: 1.0), ("B", "B"): (eps: 1.0, sig: 1.0) }),
        PairExpression(energy: "a*(exp(-b*r) + tanh(r) + ln(r)*sqrt(r + 1) + max(1 - r/r_cut, 0)^n + if(r < 1, abs(sin(r)), acos(r/9)*tan(r)) + wrap(r))",
            r_cut: 2.5, mode: ShiftForce, pairs: {
            ("A", "A"): (a: 1.0, b: 1.0, n: 2.5), ("A", "B"): (a: 1.0, b: 2.0, n: 2.5), ("B", "B"): (a: 1.0, b: 1.0, n: 3.0) }),
        BondExpression(energy: "-k/2*R^2*ln(1 - (r/R)^2)", bonds: {}),
        AngleExpression(energy: "k*(theta - t0)^2 + cos(theta)", angles: {}),
        DihedralExpression(energy: "k*wrap(phi - p)^2", dihedrals: {}),
    ],
    stages: [ (steps: 0, dt: 0.01) ],
)"#;

fn pair_texts(text: &str, precision: Precision) -> Vec<String> {
    let plan = plan(text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let pairs = plan.components.iter().filter_map(|c| c.pair());
    pairs.map(|p| p.device(precision).expect("code").text.into_string()).collect()
}

fn bonded_units(text: &str, precision: Precision) -> Vec<Unit> {
    let plan = plan(text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let bonded = plan.components.iter().filter_map(|c| c.bonded());
    let unit = |b: galamost::plugins::BondedPart<'_>| {
        let code = b.device(precision).expect("code");
        bond_unit(&b.component.name, code.text.as_str(), b.component.needs.link_width, precision)
    };
    bonded.map(unit).collect()
}

/// Every unit that the shipped plugins lead to.
fn units(precision: Precision) -> Vec<Unit> {
    let mut units = engine_units(precision);
    units.extend(bonded_units(CHAINS, precision));
    units.extend(bonded_units(FORMULAS, precision));
    for text in pair_texts(FORMULAS, precision) {
        units.push(pair_unit(&[text], 2, 8, precision));
    }
    for mode in ["Cut", "ShiftEnergy", "ShiftForce", "Smooth(2.0)"] {
        let text = PIPELINE.replace("MODE", mode).replace("INTEGRATOR", "VelocityVerlet()");
        let texts = pair_texts(&text, precision);
        assert_eq!(texts.len(), 2);
        for (types, team) in [(1, 1), (2, 8)] {
            units.push(pair_unit(&texts, types, team, precision));
        }
        units.extend(bonded_units(&text, precision));
    }
    for integrator in ["VelocityVerlet()", "NoseHoover(kT: 1.0, tau: 0.5)", "GrootWarren()"] {
        let text = PIPELINE.replace("MODE", "Cut").replace("INTEGRATOR", integrator);
        let plan = plan(&text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
        for i in plan.components.iter().filter_map(|c| c.integrator()) {
            let code = i.device(precision).expect("code");
            let program = i.program().expect("a program");
            units.push(integrator_unit(&i.component.name, code.text.as_str(), &program, true, precision).0);
        }
    }
    units
}

#[test]
fn every_kernel_compiles_for_sm_90_without_spills() {
    if !has_nvrtc() {
        return;
    }
    // a cache that is empty, so that the assembler's report is there
    let cache = tempfile::tempdir().expect("a folder");
    // SAFETY: no other test of this program reads this variable while it changes: it is only about speed
    unsafe { std::env::set_var("GALAMOST_CACHE", cache.path()) };
    let mut table = vec![];
    for precision in [Precision::Single, Precision::Mixed, Precision::Double] {
        for unit in units(precision) {
            let (cubin, report) = nvrtc::compile(&unit, "sm_90").unwrap_or_else(|e| panic!("{e}\n{}", unit.text));
            assert!(cubin.starts_with(b"\x7fELF"), "{} is no machine code", unit.name);
            for k in report {
                table.push(format!(
                    "{:8} {:16} {:18} {:3} registers {:4} spilled {:6} shared",
                    precision.name(),
                    unit.name,
                    k.name,
                    k.registers,
                    k.spills,
                    k.shared
                ));
                // the loop with energies and virials runs only when output is due
                let allowed = if k.name.ends_with("_full") { 128 } else { 0 };
                assert!(
                    k.spills <= allowed,
                    "{} of {} spills {} bytes in {}",
                    k.name,
                    unit.name,
                    k.spills,
                    precision.name()
                );
            }
        }
    }
    assert!(!table.is_empty(), "the assembler said nothing about registers");
    println!("{}", table.join("\n"));
}
