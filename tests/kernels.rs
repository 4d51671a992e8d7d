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

/// Every unit that the shipped plugins lead to.
fn units(precision: Precision) -> Vec<Unit> {
    let mut units = engine_units(precision);
    for mode in ["Cut", "ShiftEnergy", "ShiftForce", "Smooth(2.0)"] {
        let text = PIPELINE.replace("MODE", mode).replace("INTEGRATOR", "VelocityVerlet()");
        let plan = plan(&text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
        let texts: Vec<String> = plan
            .components
            .iter()
            .filter_map(|c| c.pair())
            .map(|p| p.device(precision).expect("code").text.into_string())
            .collect();
        assert_eq!(texts.len(), 2);
        for (types, team) in [(1, 1), (2, 8)] {
            units.push(pair_unit(&texts, types, team, precision));
        }
        for b in plan.components.iter().filter_map(|c| c.bonded()) {
            units.push(bond_unit(&b.component.name, b.device(precision).expect("code").text.as_str(), precision));
        }
    }
    for integrator in [
        "VelocityVerlet()",
        "CappedVerlet(max_displacement: 0.01)",
        "Fire(f_max: 0.1, dt_max: 0.1)",
        "NoseHoover(kT: 1.0, tau: 0.5)",
        "NoseHooverChain(kT: 1.0, tau: 0.5)",
        "GrootWarren()",
        "Langevin(kT: 1.0, gamma: 1.0)",
        "Brownian(kT: 1.0, gamma: 1.0)",
        "Andersen(kT: 1.0, nu: 1.0)",
        "Berendsen(kT: 1.0, tau: 0.5)",
        "Bussi(kT: 1.0, tau: 0.5)",
    ] {
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
