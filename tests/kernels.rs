//! Kernels without a GPU: every unit compiles to machine code for the H200's architecture.

mod recorder;
mod spills;

use galamost::selftest::standard_system;
use galamost_engine::device::{EmulatedDevice, Services, SourceUnit, nvrtc};
use galamost_engine::gpu::{
    Overlap, StepsSource, bond_unit, engine_units, integrator_functions, integrator_unit, joint_bonds_unit,
    messages_unit, pair_unit, ranks_unit, special_unit, staged_pair_unit, steps_unit,
};
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_engine::plugins::host::HostServices;
use galamost_engine::plugins::{BondedHandle, Component};
use galamost_plugin_api::DeviceStruct;
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::device::{CxxStruct as _, kernel_source};
use galamost_plugin_api::error::Result;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::LinkList;
use galamost_tests::{has_compiler, has_nvrtc, plan, plan_of, registry, repository, words};
use recorder::{FirstOfTwo, Recorder};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

const PIPELINE: &str = r#"(
    initial: [ RandomPositions(count: 100, box: [8.0, 8.0, 8.0], types: {"A": 0.5, "B": 0.5}) ],
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

fn bonded_unit(b: BondedHandle<'_>, precision: Precision) -> SourceUnit {
    let code = b.device(precision).expect("code");
    bond_unit(&b.component.name, code.text.as_str(), b.component.link_list(), false, precision)
}

/// Units that forces, updaters and analyzers of the shipped plugins compile for themselves.
fn own_units(precision: Precision) -> Vec<SourceUnit> {
    const OWN: &str = r#"(
        forces: [
            BodyForce(force: [1.0, 0.0, 0.0]), PeriodicPoiseuille(force: 1.0), ExternalExpression(energy: "k*x*x", parameters: (k: 1.0)),
            ElectricField(field: [1.0, 0.0, 0.0]), PeriodicForce(force: 1.0),
            ManyBodyDpd(B: 25.0, r_d: 0.75, r_cut: 1.0, pairs: { ("A", "A"): (A: -40.0), ("A", "B"): (A: -40.0), ("B", "B"): (A: -40.0) }),
            LjWall(wall: Plane(point: [0.0, 0.0, -5.0], normal: [0.0, 0.0, 1.0]),
                types: { "A": (epsilon: 1.0, sigma: 1.0, r_cut: 2.5), "B": (epsilon: 1.0, sigma: 1.0, r_cut: 2.5) }),
            Lj93Wall(wall: Plane(point: [0.0, 0.0, -5.0], normal: [0.0, 0.0, 1.0]),
                types: { "A": (epsilon: 1.0, sigma: 1.0, r_cut: 2.5), "B": (epsilon: 1.0, sigma: 1.0, r_cut: 2.5) }),
            WcaWall(wall: Sphere(center: [0.0, 0.0, 0.0], radius: 5.0, side: Inside),
                types: { "A": (epsilon: 1.0, sigma: 1.0), "B": (epsilon: 1.0, sigma: 1.0) }),
            HarmonicWall(wall: Cylinder(point: [0.0, 0.0, 0.0], axis: X, radius: 5.0, side: Outside),
                types: { "A": (k: 1.0, r0: 1.0), "B": (k: 1.0, r0: 1.0) }),
        ],
        updaters: [
            ZeroMomentum(every: 1), ReversePerturbation(every: 1, report: 1, file: "r.csv"),
            Shardlow(kT: 1.0, gamma: 1.0, r_cut: 1.0),
            Reactions(every: 1, r_cut: 1.0, reactions: [(kind: Join, of: ("A", "B"), p: 0.1)]),
        ],
        analyzers: [
            Rdf(every: 1, file: "t1", r_max: 2.5), Rdf(every: 1, file: "t2", r_max: 2.5, bins: 10000), Msd(every: 1, file: "t3"),
            Vacf(every: 1, file: "t4"), StructureFactor(every: 1, file: "t5", q_max: 5.0),
            IntermediateScattering(every: 1, file: "t6", q: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], width: 0.9),
        ],
        stages: [ (steps: 0, dt: 0.01) ],
    )"#;
    // components see the emulated device as CUDA
    let folder = tempfile::tempdir().expect("a folder");
    let text = OWN.replace("r.csv", &folder.path().join("r.csv").to_string_lossy());
    let plan = plan_of(&text, standard_system(), DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
    let found = recorded(&plan, precision);
    assert_eq!(found.len(), 21);
    found
}

/// Units that the components of a plan compile for themselves.
fn recorded(plan: &Plan, precision: Precision) -> Vec<SourceUnit> {
    recorded_on(plan, precision, 1)
}

/// The same on one or two GPUs.
fn recorded_on(plan: &Plan, precision: Precision, gpus: u32) -> Vec<SourceUnit> {
    let units = Arc::new(Mutex::new(vec![]));
    let host = HostServices::new(Recorder::new(&units), precision);
    if gpus == 2 {
        host.set_collectives(Arc::new(FirstOfTwo));
    }
    for c in &plan.components {
        c.start(host.wire()).unwrap_or_else(|e| panic!("{}: {e}", c.name));
    }
    units.lock().expect("one thread").clone()
}

/// Kernels of forces: both schemes of MD-SCF, many types, charges in Fourier space; charges at long range; rigid bodies.
fn field_units(precision: Precision) -> Vec<SourceUnit> {
    let settings = [
        (5, "scheme: Paper, grid: [6, 6, 6], kappa: 0.1, kT: 1.0"),
        (5, "scheme: Variational, grid: [6, 6, 6], kappa: 0.1, kT: 1.0"),
        (
            2,
            "scheme: Variational, grid: [6, 6, 6], kappa: 0.1, kT: 1.0, filter: 0.5, electrostatics: (coulomb: 2.0, alpha: 1.0)",
        ),
    ];
    // components read the precision of the run as well as that of the kernels
    let header = format!("precision: {}, ", precision.name());
    let mut units = vec![];
    for (types, setting) in settings {
        let mut system = standard_system();
        system.types = ["A", "B", "C", "D", "E"][..types].iter().map(|t| (*t).to_string()).collect();
        system.type_id.iter_mut().enumerate().for_each(|(i, t)| *t = (i % types) as u32);
        let pairs = (0..types).flat_map(|i| (i..types).map(move |j| (i, j)));
        let chi: String =
            pairs.map(|(i, j)| format!("({:?}, {:?}): 0.0, ", system.types[i], system.types[j])).collect();
        let text =
            format!("({header}forces: [ MdScf({setting}, chi: {{ {chi} }}) ], stages: [ (steps: 0, dt: 0.01) ])");
        let plan = plan_of(&text, system, DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
        units.extend(recorded(&plan, precision));
    }
    assert_eq!(units.len(), 3);
    for force in [
        "Ewald(accuracy: 1e-3, l_bjerrum: 1.5, r_cut: 2.0)",
        "Pppm(accuracy: 1e-3, l_bjerrum: 1.5, r_cut: 2.0, order: 3)",
        "Pppm(accuracy: 1e-3, l_bjerrum: 1.5, r_cut: 2.0, order: 7)",
        // an odd number of points along y: transforms line by line
        "Pppm(accuracy: 1e-3, l_bjerrum: 1.5, r_cut: 2.0, order: 5, grid: [100, 45, 36])",
        "RigidBodies()",
        "VirtualSites()",
        "Constraints(types: { \"*\": 1.1 })",
    ] {
        let before = units.len();
        let text = format!("({header}forces: [ {force} ], stages: [ (steps: 0, dt: 0.01) ])");
        let plan =
            plan_of(&text, standard_system(), DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
        units.extend(recorded(&plan, precision));
        assert!(units.len() > before, "{force} compiles no kernels");
    }
    units
}

/// The plan of a pipeline on the CPU.
fn plan_of_text(text: &str) -> Plan {
    plan(text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()))
}

/// The persistent kernel of a plan.
fn steps_kernel_unit(plan: &Plan, pairs: &[String], precision: Precision) -> SourceUnit {
    let texts = |of: &dyn Fn(&Component) -> Option<(String, LinkList)>| {
        plan.components.iter().filter_map(|c| of(c)).collect::<Vec<_>>()
    };
    let bonded = texts(&|c| {
        let text = c.bonded()?.device(precision).expect("code").text.into_string();
        Some((text, c.link_list()))
    });
    let integrators: Vec<_> = plan
        .components
        .iter()
        .filter_map(|c| c.integrator())
        .map(|i| {
            integrator_functions(
                i.device(precision).expect("code").text.as_str(),
                &i.program().expect("a program"),
                true,
            )
        })
        .collect();
    let parts = StepsSource {
        pairs,
        n_types: 2,
        team: 8,
        bonded: bonded.iter().map(|(t, w)| (t.as_str(), *w)).collect(),
        integrators: integrators.iter().map(|(t, s)| (t.as_str(), s.as_slice())).collect(),
        barostat: integrators.iter().any(|(_, kernels)| kernels.iter().any(|k| k.virial)),
    };
    steps_unit(&parts, precision)
}

/// Pair potentials that are compiled even if only few are: those with most registers, and one for each input that potentials have.
const FEW_PAIRS: [&str; 6] = ["BiaxialGayBerne", "DpdThermostat", "ExpandedMie", "Gem", "PairTable", "ReactionField"];

/// For each kind of link, a potential with most registers.
const FEW_BONDED: [&str; 4] = ["AngleTable", "Fene", "ImproperExpression", "OplsDihedral"];

/// The two barostats with most registers, and integrators that differ in their sums, random numbers and what they move.
const FEW_INTEGRATORS: [&str; 7] =
    ["Bounce", "Brownian", "Fire", "NoseHoover", "NoseHooverChain", "RotationalMtkNpt", "TriclinicMtkNpt"];

/// Which units of components are compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pairs {
    /// Every component, every potential with every loop, and every mode with every number of types.
    All,
    /// Some potentials and integrators, which have what the others have; of the modes those with fewest and most operations,
    /// each with the loops that need most registers: those of two potentials and two types.
    Few,
}

/// Units of the engine and of the shipped plugins.
fn units(precision: Precision, pairs: Pairs) -> Vec<SourceUnit> {
    let mut units = engine_units(precision);
    if has_compiler() {
        units.extend(own_units(precision));
        units.extend(field_units(precision));
    }
    // single precision has the functions of mixed precision, with positions without their low digits: one mode, the engine's
    // kernels and those that plugins launch
    let modes = ["Cut", "Smooth(2.0)", "ShiftEnergy", "ShiftForce"];
    let count = if precision == Precision::Single { 1 } else { [4, 2][usize::from(pairs == Pairs::Few)] };
    for mode in &modes[..count] {
        let text = PIPELINE.replace("MODE", mode).replace("INTEGRATOR", "VelocityVerlet()");
        let plan = plan_of_text(&text);
        let texts: Vec<String> = plan
            .components
            .iter()
            .filter_map(|c| c.pair())
            .map(|p| p.device(precision).expect("code").text.into_string())
            .collect();
        assert_eq!(texts.len(), 2);
        let all = pairs == Pairs::All || *mode == "Cut";
        if all {
            units.push(pair_unit(&texts, 1, 1, false, precision));
            units.push(special_unit(&texts, 1, precision));
            units.push(special_unit(&texts, 2, precision));
        }
        units.push(pair_unit(&texts, 2, 8, false, precision));
        if precision != Precision::Double {
            units.push(staged_pair_unit(&texts, 2, true, 1, None, precision));
            if all {
                units.push(staged_pair_unit(&texts, 1, false, 1, None, precision));
                units.push(staged_pair_unit(&texts, 2, true, 2, None, precision));
            }
            if pairs == Pairs::All {
                for (types, queued) in [(1, false), (2, true)] {
                    units.push(staged_pair_unit(&texts[..1], types, queued, 1, None, precision));
                    units.push(staged_pair_unit(&texts[1..], types, queued, 1, None, precision));
                }
            }
        }
        if *mode == "Cut" {
            let steps = steps_kernel_unit(&plan, &texts, precision);
            units.extend([steps.with_macros(&["GALAMOST_TRICLINIC"]), steps]);
            if precision == Precision::Mixed {
                let barostat = "MtkNpt(kT: 1.0, tau: 0.5, pressure: 1.0, tau_p: 2.0)";
                let text = PIPELINE.replace("MODE", mode).replace("INTEGRATOR", barostat);
                let plan = plan_of_text(&text);
                units.push(steps_kernel_unit(&plan, &texts, precision));
                if pairs == Pairs::All {
                    let text = text.replace("MtkNpt", "TriclinicMtkNpt");
                    let plan = plan_of_text(&text);
                    units.push(steps_kernel_unit(&plan, &texts, precision).with_macros(&["GALAMOST_TRICLINIC"]));
                }
            }
        }
        units.extend(plan.components.iter().filter_map(|c| c.bonded()).map(|b| bonded_unit(b, precision)));
    }
    if precision != Precision::Single {
        potentials(precision, pairs, &mut units);
        integrators(precision, pairs, &mut units);
        units.extend(rank_units(precision));
        units.extend(engine_units(precision).iter().map(|u| u.with_macros(&["GALAMOST_TRICLINIC"])));
    }
    units
}

/// Integrators.
fn integrators(precision: Precision, pairs: Pairs, units: &mut Vec<SourceUnit>) {
    let all = [
        "VelocityVerlet()",
        "CappedVerlet(max_displacement: 0.01)",
        "Fire(f_max: 0.1, dt_max: 0.1)",
        "NoseHoover(kT: 1.0, tau: 0.5)",
        "NoseHooverChain(kT: 1.0, tau: 0.5)",
        "GrootWarren()",
        "DpdVerlet()",
        "Langevin(kT: 1.0, gamma: 1.0)",
        "Brownian(kT: 1.0, gamma: 1.0)",
        "Andersen(kT: 1.0, nu: 1.0)",
        "Berendsen(kT: 1.0, tau: 0.5)",
        "Bussi(kT: 1.0, tau: 0.5)",
        "Bounce(wall: Sphere(center: [0.0, 0.0, 0.0], radius: 5.0, side: Inside), rule: Back), VelocityVerlet()",
        "RotationalVerlet()",
        "RotationalLangevin(kT: 1.0, gamma: 1.0, gamma_r: 1.0)",
        "RotationalBerendsen(kT: 1.0, tau: 0.5, tau_r: 0.5)",
        "RotationalNoseHoover(kT: 1.0, tau: 0.5, tau_r: 0.5)",
        "RotationalMtkNpt(kT: 1.0, tau: 0.5, tau_r: 0.5, pressure: 1.0, tau_p: 1.0)",
        "TriclinicMtkNpt(kT: 1.0, tau: 0.5, pressure: 1.0, tau_p: 1.0)",
    ];
    let few = |i: &&str| pairs == Pairs::All || FEW_INTEGRATORS.iter().any(|f| i.starts_with(&format!("{f}(")));
    for integrator in all.into_iter().filter(few) {
        // with particles that have all there is: some integrators turn them
        let text = format!("(integrators: [{integrator}], stages: [(steps: 0, dt: 0.01)])");
        let plan = plan_of(&text, standard_system(), DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
        for i in plan.components.iter().filter_map(|c| c.integrator()) {
            let code = i.device(precision).expect("code");
            let program = i.program().expect("a program");
            let (functions, steps) = integrator_functions(code.text.as_str(), &program, true);
            let unit = integrator_unit(&i.component.name, &functions, &steps, false, precision);
            units.push(if plan.is_triclinic() { unit.with_macros(&["GALAMOST_TRICLINIC"]) } else { unit });
        }
    }
}

/// Kernels of runs on several GPUs.
fn rank_units(precision: Precision) -> Vec<SourceUnit> {
    let text = PIPELINE.replace("MODE", "Cut").replace("INTEGRATOR", "NoseHoover(kT: 1.0, tau: 0.5)");
    let plan = plan(&text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let pairs = plan.components.iter().filter_map(|c| c.pair());
    let texts: Vec<String> = pairs.map(|p| p.device(precision).expect("code").text.into_string()).collect();
    let mut units = vec![ranks_unit(precision), messages_unit(precision), pair_unit(&texts, 2, 1, true, precision)];
    if precision != Precision::Double {
        for overlap in [Overlap::Gated, Overlap::Split] {
            units.push(staged_pair_unit(&texts, 2, true, 1, Some(overlap), precision));
        }
    }
    for b in plan.components.iter().filter_map(|c| c.bonded()) {
        let code = b.device(precision).expect("code");
        units.push(bond_unit("ranks", code.text.as_str(), b.component.link_list(), true, precision));
    }
    for i in plan.components.iter().filter_map(|c| c.integrator()) {
        let code = i.device(precision).expect("code");
        let (functions, steps) = integrator_functions(code.text.as_str(), &i.program().expect("a program"), true);
        for in_kernels in [false, true] {
            units.push(integrator_unit("ranks", &functions, &steps, in_kernels, precision));
        }
    }
    for scheme in ["Paper", "Variational"] {
        let field = format!(
            "(forces: [ MdScf(scheme: {scheme}, grid: [6, 6, 6], kappa: 0.1, chi: {{ (\"*\", \"*\"): 1.0 }}) ], \
             stages: [ (steps: 0, dt: 0.01) ])"
        );
        let plan =
            plan_of(&field, standard_system(), DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
        let found = recorded_on(&plan, precision, 2);
        assert!(found.len() == 1 && found[0].text.contains("block_sums.cuh"));
        units.extend(found);
    }
    let of_lists = |u: &SourceUnit| ["rebuild", "staged list"].contains(&u.name.as_str());
    let distributed = engine_units(precision).into_iter().filter(of_lists).chain([ranks_unit(precision)]);
    let distributed: Vec<SourceUnit> =
        distributed.map(|u| u.with_macros(&["GALAMOST_RANKS", "GALAMOST_DISTRIBUTED"])).collect();
    units.iter().map(|u| u.with_macros(&["GALAMOST_RANKS"])).chain(distributed).collect()
}

/// Shipped potentials, with the examples on their pages.
fn potentials(precision: Precision, pairs: Pairs, units: &mut Vec<SourceUnit>) {
    let shipped = registry().components().into_iter().filter(|(l, _)| l.record.name() != "fixture");
    let few = |name: &str| pairs == Pairs::All || FEW_PAIRS.contains(&name) || FEW_BONDED.contains(&name);
    let mut bonded = vec![];
    for (_, c) in shipped.filter(|(_, c)| matches!(c.kind, Kind::Pair | Kind::Bonded) && few(&c.name)) {
        let example = c.example().unwrap_or_else(|| panic!("{} has no example", c.name));
        let before = units.len();
        let text = format!("(forces: [ {example} ], stages: [ (steps: 0, dt: 0.01) ])");
        let plan = plan_of(&text, standard_system(), DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
        for p in plan.components.iter().filter_map(|c| c.pair()) {
            let texts = [p.device(precision).expect("code").text.into_string()];
            let mut unit = pair_unit(&texts, 2, 8, false, precision);
            unit.name = c.name.clone();
            units.push(unit);
            if precision != Precision::Double {
                let mut unit = staged_pair_unit(&texts, 2, true, 1, None, precision);
                unit.name = format!("staged {}", c.name);
                units.push(unit);
            }
        }
        for b in plan.components.iter().filter_map(|c| c.bonded()) {
            units.push(bonded_unit(b, precision));
            if FEW_BONDED.contains(&c.name.as_str()) {
                bonded.push((b.device(precision).expect("code").text.into_string(), b.component.link_list()));
            }
        }
        assert!(units.len() > before, "{} has no kernel", c.name);
    }
    let bonded: Vec<_> = bonded.iter().map(|(text, list)| (text.as_str(), *list)).collect();
    assert_eq!(bonded.len(), FEW_BONDED.len());
    units.push(joint_bonds_unit(&bonded, precision));
}

/// Runs a test of this file in a new process with an empty kernel cache: the assembler reports only on kernels that are
/// not in the cache. Returns whether this is that process.
fn has_empty_cache(test: &str) -> bool {
    const MARK: &str = "GALAMOST_TEST_WITH_EMPTY_CACHE";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let cache = tempfile::tempdir().expect("a folder");
    let out = Command::new(std::env::current_exe().expect("the test program has a path"))
        .args(["--exact", &format!("kernels::{test}"), "--nocapture", "--include-ignored"])
        .env("GALAMOST_CACHE", cache.path())
        .env(MARK, "1")
        .output()
        .expect("the test program runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success() && text.contains("1 passed"), "{text}{}", words(&out));
    println!("{text}");
    false
}

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct Probe {
    count: u32,
    first: u32,
    weight: f64,
}

#[test]
fn a_struct_that_differs_between_rust_and_cuda_does_not_compile() {
    let kernel = "extern \"C\" __global__ void probe(Probe p) {}";
    let source = kernel_source(&[Probe::text()], kernel).expect("one struct");
    // the size stays, and two members change places
    let swapped =
        source.replace("unsigned int count;\n    unsigned int first;", "unsigned int first;\n    unsigned int count;");
    let narrow = source.replace("double weight;", "float weight;");
    for (text, fits) in [(&source, true), (&swapped, false), (&narrow, false)] {
        assert!(fits || *text != source);
        let unit = SourceUnit::new("probe", text, Precision::Double);
        let judge = |result: Result<()>| match result {
            Ok(()) => assert!(fits, "{text}"),
            Err(e) => assert!(!fits && e.to_string().contains("Probe differs between Rust and C++"), "{e}"),
        };
        if has_compiler() {
            judge(EmulatedDevice::new().expect("g++").compile(&unit).map(drop));
        }
        if has_nvrtc() {
            judge(nvrtc::compile(&unit, "sm_90").map(drop));
        }
    }
}

/// Types of the parameters of all kernels in a text.
fn parameter_types(text: &str) -> Vec<String> {
    let mut types = vec![];
    for part in text.split("__global__ void").skip(1) {
        let part = part.trim_start();
        let part = part.strip_prefix("__launch_bounds__(").and_then(|p| Some(p.split_once(')')?.1)).unwrap_or(part);
        let Some((list, _)) = part.split_once('(').and_then(|p| p.1.split_once(')')) else { continue };
        types.extend(list.split(',').filter(|p| !p.contains('*')).map(|p| {
            let p = p.trim().trim_start_matches("const ");
            p.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
        }));
    }
    types.retain(|t| t.starts_with(char::is_uppercase));
    types
}

/// A struct that a kernel takes has one definition, in Rust.
#[test]
fn every_struct_that_a_kernel_takes_is_defined_in_rust() {
    let mut texts = vec![];
    for folder in ["engine", "kernels", "plugin-api", "plugins", "tests"] {
        texts.extend(sources(&repository().join(folder)));
    }
    let derived = |name: &str| {
        let line = format!("struct {name} {{");
        texts.iter().any(|t| {
            t.match_indices(&line).any(|(at, _)| {
                let before: Vec<&str> = t[..at].lines().rev().take(6).collect();
                before.iter().any(|l| l.contains("DeviceStruct"))
            })
        })
    };
    let mut types: Vec<String> = texts.iter().flat_map(|t| parameter_types(t)).collect();
    types.sort();
    types.dedup();
    assert!(types.len() > 25, "{types:?}");
    // `correlate.cuh` takes the settings of its measure under this name
    for name in types.iter().filter(|t| *t != "Settings" && *t != "Args") {
        assert!(derived(name), "a kernel takes `{name}`, which is no DeviceStruct");
    }
}

/// The texts of all Rust and CUDA files of a folder.
fn sources(folder: &Path) -> Vec<String> {
    let mut texts = vec![];
    for entry in std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()) {
        if entry.is_dir() {
            texts.extend(sources(&entry));
        } else if entry.extension().is_some_and(|e| e == "rs" || e == "cuh") {
            texts.push(std::fs::read_to_string(&entry).expect("a text"));
        }
    }
    texts
}
