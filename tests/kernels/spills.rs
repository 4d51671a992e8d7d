//! Every kernel is compiled for a GPU, and keeps its numbers in registers.

use super::{PIPELINE, Pairs, field_units, has_empty_cache, integrators, plan_of_text, potentials, recorded, units};
use galamost_engine::device::{KernelReport, SourceUnit, batched_unit, nvrtc};
use galamost_engine::gpu::pair_unit;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::precision::Precision;
use galamost_tests::{has_compiler, has_nvrtc, plan};
use std::collections::HashSet;

#[test]
fn kernels_compile_for_sm_90_without_spills() {
    if has_nvrtc() && has_empty_cache("spills::kernels_compile_for_sm_90_without_spills") {
        compile_without_spills(&[Precision::Mixed], |precision| units(precision, Pairs::Few));
    }
}

/// Every potential and integrator, of which the test above has some.
#[test]
#[ignore = "200 seconds"]
fn every_component_compiles_for_sm_90_without_spills() {
    if has_nvrtc() && has_empty_cache("spills::every_component_compiles_for_sm_90_without_spills") {
        compile_without_spills(&[Precision::Mixed], |precision| {
            let mut units = vec![];
            potentials(precision, Pairs::All, &mut units);
            integrators(precision, Pairs::All, &mut units);
            units
        });
    }
}

/// Forces with kernels of their own run on all GPUs that NVRTC supports; staged lists and ranks need sm_80.
#[test]
fn kernels_of_forces_compile_for_sm_75() {
    if !has_nvrtc() {
        return;
    }
    let units = field_units(Precision::Mixed);
    assert!(units.iter().any(|u| u.name == "pppm"));
    // one for each force; others differ in settings
    let mut compiled = HashSet::new();
    for unit in units.into_iter().filter(|u| compiled.insert(u.name.clone())) {
        nvrtc::compile(&unit, "sm_75").unwrap_or_else(|e| panic!("{}: {e}", unit.name));
    }
}

/// Also in precisions that only the emulated device compiles in other tests, with every mode and every loop over pairs.
#[test]
#[ignore = "minutes"]
fn every_kernel_in_every_precision_compiles_for_sm_90_without_spills() {
    if has_nvrtc() && has_empty_cache("spills::every_kernel_in_every_precision_compiles_for_sm_90_without_spills") {
        let all = [Precision::Single, Precision::Mixed, Precision::Double];
        compile_without_spills(&all, |precision| units(precision, Pairs::All));
    }
}

/// The kernels of replicas, without those of staged lists, ranks and samplers, which replicas do not have. Other potentials and integrators have
/// the wrappers of those here.
#[test]
#[ignore = "a minute"]
fn every_batched_kernel_compiles_for_sm_90_without_spills() {
    if has_nvrtc() && has_empty_cache("spills::every_batched_kernel_compiles_for_sm_90_without_spills") {
        let batched = |precision| {
            let has = |u: &SourceUnit, names: &[&str]| names.iter().any(|n| u.text.contains(n));
            let own = ["pair", "special pairs", "steps", "HarmonicBond", "NoseHoover"];
            let of_replicas = |u: &SourceUnit| {
                let headers = ["galamost/pair.cuh", "galamost/angles.cuh", "galamost/integrate.cuh"];
                let another = has(u, &headers) && !own.contains(&u.name.as_str());
                let of_ranks = u.macros.contains(&"GALAMOST_RANKS");
                !another && !of_ranks && !has(u, &["galamost/staged", "rosenbluth"])
            };
            let units = units(precision, Pairs::Few).into_iter().filter(of_replicas);
            units.map(|u| batched_unit(&u).unwrap_or_else(|e| panic!("{e}")).unit).collect()
        };
        compile_without_spills(&[Precision::Mixed], batched);
    }
}

/// The kernels of samplers alone.
#[test]
#[ignore = "10 seconds"]
fn kernels_of_samplers_compile_without_spills() {
    if !has_nvrtc() || !has_compiler() || !has_empty_cache("spills::kernels_of_samplers_compile_without_spills") {
        return;
    }
    for unit in sampler_units() {
        let (_, report) = nvrtc::compile(&unit, "sm_90").unwrap_or_else(|e| panic!("{e}\n{}", unit.text));
        let head: Vec<&str> = unit.text.lines().take_while(|l| l.starts_with("#define")).map(|l| &l[8..]).collect();
        for k in report {
            println!("{} registers {:4} spilled: {}", k.registers, k.spills, head.join(", "));
            assert!(k.spills <= 8, "{} spills {} bytes", k.name, k.spills);
        }
    }
}

/// Rows of many types stay in global memory, because a block has 48 KiB of shared memory.
#[test]
fn rows_of_many_types_need_no_shared_memory() {
    if !has_nvrtc() || !has_empty_cache("spills::rows_of_many_types_need_no_shared_memory") {
        return;
    }
    let plan = plan_of_text(&PIPELINE.replace("MODE", "Cut").replace("INTEGRATOR", "VelocityVerlet()"));
    let code = plan.components.iter().filter_map(|c| c.pair()).map(|p| p.device(Precision::Mixed).expect("code"));
    let texts: Vec<String> = code.map(|c| c.text.into_string()).collect();
    for types in [2, 80] {
        let unit = pair_unit(&texts, types, 8, false, Precision::Mixed);
        let (_, report) = nvrtc::compile(&unit, "sm_90").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(report.len(), 3);
        for k in report {
            assert!(k.shared <= 48 * 1024, "{types} types: {} has {} bytes of shared memory", k.name, k.shared);
        }
    }
}

/// Compiles every kernel and prints its registers. Panics if one spills more than is allowed.
fn compile_without_spills(precisions: &[Precision], units: impl Fn(Precision) -> Vec<SourceUnit>) {
    let (mut table, mut spilled) = (vec![], vec![]);
    for precision in precisions.iter().copied() {
        let mut compiled = HashSet::new();
        for unit in units(precision) {
            // settings such as the mode of a pair potential may be parameters of one kernel
            if !compiled.insert((unit.text.clone(), unit.macros.clone())) {
                continue;
            }
            let begun = std::time::Instant::now();
            let (cubin, report) = nvrtc::compile(&unit, "sm_90").unwrap_or_else(|e| panic!("{e}\n{}", unit.text));
            assert!(cubin.starts_with(b"\x7fELF"), "{} is no machine code", unit.name);
            let (name, took) = (precision.name(), begun.elapsed().as_secs_f64());
            table.push(format!("{name:8} {:16} {took:.2} s", unit.name));
            for k in report {
                table.push(format!(
                    "{:8} {:16} {:18} {:3} registers {:4} stack {:4} spilled {:6} shared",
                    precision.name(),
                    unit.name,
                    k.name,
                    k.registers,
                    k.stack,
                    k.spills,
                    k.shared
                ));
                assert!(k.shared <= 48 * 1024, "{} of {} has {} bytes of shared memory", k.name, unit.name, k.shared);
                // as much as `place` of sites needs, the largest; steps took up to twice as long with kernels in which each
                // thread copied 392 bytes of arguments
                let most = if precision == Precision::Double { 432 } else { 240 };
                if k.stack > most {
                    let (kernel, unit, precision) = (&k.name, &unit.name, precision.name());
                    spilled.push(format!("{kernel} of {unit} has {} bytes for each thread in {precision}", k.stack));
                }
                let allowed = allowed_spills(&k, &unit, precision);
                if k.spills > allowed {
                    let (kernel, unit, precision) = (&k.name, &unit.name, precision.name());
                    spilled.push(format!("{kernel} of {unit} spills {} bytes in {precision}", k.spills));
                }
            }
        }
    }
    assert!(!table.is_empty(), "the assembler did not report registers");
    println!("{}", table.join("\n"));
    assert!(spilled.is_empty(), "{}", spilled.join("\n"));
}

/// Returns how many bytes of its registers a kernel may keep in memory.
fn allowed_spills(k: &KernelReport, unit: &SourceUnit, precision: Precision) -> u32 {
    // a triclinic box has three more numbers
    let tilt = if unit.macros.contains(&"GALAMOST_TRICLINIC") { 3 * 4 } else { 0 };
    // the loop with energies and virials runs only when output is due; three elementary functions in f64 (Gem)
    // need a few registers more than there are
    match (k.name.ends_with("_full"), precision) {
        // the functions of a barostat's state run in one thread, once a step
        _ if unit.name.contains("Npt") => 1024,
        // so does the chain, in the kernel that adds the sums of the phase before it
        _ if unit.name.starts_with("NoseHooverChain") => 128,
        // sums of energies and virials, when output is due
        _ if k.name == "md_scf_sums" => 1024,
        (true, _) => 128,
        // the address of the arguments takes registers
        _ if ["rebuild of replicas", "pppm of replicas"].contains(&unit.name.as_str()) => 16 + tilt,
        // three sums beside forces, for barostats
        (_, Precision::Double) if k.name.ends_with("_diagonal") => 64,
        (_, Precision::Double) => 32,
        // they are solved in f64, the address of the arguments takes registers, and so does the search for the cause of a fault
        _ if unit.name == "constraints of replicas" => 128,
        // constraints are solved in f64
        _ if unit.name.starts_with("constraints") => 32,
        // one register, around the slow path of an elementary function
        _ => 8,
    }
}

/// Kernels of samplers, with their settings.
fn sampler_units() -> Vec<SourceUnit> {
    const SAMPLERS: &str = r#"(ensemble: [
        Rosenbluth(lattice: Cubic, monomers: 64, chains: 64, file: "t7"),
        Rosenbluth(lattice: Cubic26, monomers: 64, chains: 64, file: "t8"),
        Rosenbluth(lattice: Cubic, monomers: 2048, attraction: 0.3, chains: 64, file: "t9"),
        Rosenbluth(lattice: Fcc, monomers: 61, shape: Star(arms: 3), walls: [Inside(radius: 9.0)], chains: 64, file: "t10"),
        OffLatticeRosenbluth(monomers: 64, chains: 64, file: "t11"),
        OffLatticeRosenbluth(monomers: 64, attraction: 0.3, trials: 12, chains: 64, file: "t12"),
        Perm(chain: OnLattice(lattice: Cubic), monomers: 2048, tours: 64, file: "t13"),
        Perm(chain: OnLattice(lattice: Cubic), monomers: 64, control: FlatContacts, tours: 64, file: "t14"),
        Perm(chain: OffLattice(trials: 8), monomers: 512, control: Thresholds(low: 0.3, high: 3.0), tours: 64, file: "t15"),
    ])"#;
    let plan = plan(SAMPLERS, DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
    recorded(&plan, Precision::Mixed)
}
