//! The kernels themselves, run on the CPU (`kernels/host/`), against the CPU path: whole short runs.

use galamost::selftest::standard_system;
use galamost_engine::pipeline::DeviceChoice;
use galamost_tests::{columns, has_compiler, largest_difference, plan, plan_of, run_plan, unwrapped};

const LJ: &str = r#"LennardJones(r_cut: 2.5, mode: ShiftForce, pairs: {
    ("A", "A"): (epsilon: 1.0, sigma: 1.0), ("A", "B"): (epsilon: 0.5, sigma: 0.95), ("B", "B"): (epsilon: 1.0, sigma: 0.9) })"#;
const DPD: &str = r#"Dpd(r_cut: 1.6, kT: 1.0, pairs: {
    ("A", "A"): (a: 25.0, sigma: 3.0), ("A", "B"): (a: 40.0, sigma: 3.0), ("B", "B"): (a: 25.0, sigma: 3.0) })"#;
const BONDS: &str =
    r#"HarmonicBond(bonds: { "A-A": (k: 20.0, r0: 1.0), "A-B": (k: 20.0, r0: 1.0), "B-B": (k: 20.0, r0: 1.0) })"#;

fn pipeline(forces: &str, integrator: &str, precision: &str, steps: u64, dt: f64, more: &str) -> String {
    format!(
        "(seed: 5, precision: {precision}, neighbors: (buffer: 0.2), forces: [{forces}], integrators: [{integrator}], \
         stages: [(steps: {steps}, dt: {dt})], {more})"
    )
}

/// Runs on both devices; the largest differences of positions and of velocities, and list builds on the device.
fn differences(text: &str) -> (f64, f64, u64) {
    let cpu = plan_of(text, standard_system(), DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let gpu = plan_of(text, standard_system(), DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
    let (_, mut a) = run_plan(&cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let (_, mut b) = run_plan(&gpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let ((xa, va), (xb, vb)) = (unwrapped(&mut *a), unwrapped(&mut *b));
    (largest_difference(&xa, &xb), largest_difference(&va, &vb), b.list_report().expect("a list").builds)
}

/// Differences grow with time from the last digit on: limits for 60 steps of a liquid.
const LIMITS: [(&str, f64); 3] = [("Double", 1e-10), ("Mixed", 2e-4), ("Single", 2e-4)];

#[test]
#[ignore = "3 seconds"]
fn lennard_jones_chains_move_as_on_the_cpu() {
    if !has_compiler() {
        return;
    }
    for (precision, limit) in LIMITS {
        let text = pipeline(&format!("{LJ}, {BONDS}"), "NoseHoover(kT: 1.2, tau: 0.5)", precision, 60, 0.005, "");
        let (x, v, builds) = differences(&text);
        println!("LJ {precision}: positions {x:e}, velocities {v:e}, {builds} builds");
        assert!(builds >= 3, "the list was built {builds} times: too few to test that");
        assert!(x < limit && v < 50.0 * limit, "{precision}: positions {x:e}, velocities {v:e}");
    }
}

#[test]
#[ignore = "5 seconds"]
fn dpd_chains_move_as_on_the_cpu() {
    if !has_compiler() {
        return;
    }
    for (precision, limit) in LIMITS {
        for integrator in ["GrootWarren()", "DpdVerlet()"] {
            let text = pipeline(&format!("{DPD}, {BONDS}"), integrator, precision, 60, 0.005, "");
            let (x, v, builds) = differences(&text);
            println!("DPD {integrator} {precision}: positions {x:e}, velocities {v:e}, {builds} builds");
            assert!(builds >= 3, "the list was built {builds} times: too few to test that");
            assert!(x < limit && v < 50.0 * limit, "{integrator} {precision}: positions {x:e}, velocities {v:e}");
        }
    }
}

/// Integrators beside `NoseHoover` and `GrootWarren`, with everything a kernel of theirs can do: groups, random numbers
/// of particles and of the state, sums, numbers that change with time.
const INTEGRATORS: [&str; 9] = [
    "VelocityVerlet()",
    "CappedVerlet(max_displacement: 0.004)",
    "Fire(f_max: 1.0e-3, dt_max: 0.02, max_displacement: 0.02)",
    "NoseHooverChain(kT: Cycle(points: [(0, 1.0), (10, 1.5), (25, 1.0)]), tau: 0.2, length: 4)",
    "Langevin(kT: 1.2, gamma: 2.0, group: Not(Types([\"B\"]))), VelocityVerlet(group: Types([\"B\"]))",
    "Brownian(kT: 1.0, gamma: 50.0)",
    "Andersen(kT: Sine(mean: 1.0, amplitude: 0.5, period: 17), nu: 20.0)",
    "Berendsen(kT: 2.0, tau: 0.1)",
    "Bussi(kT: Ramp(from: 1.0, to: 2.0, steps: 20), tau: 0.1)",
];

#[test]
fn every_integrator_moves_particles_as_on_the_cpu() {
    if !has_compiler() {
        return;
    }
    for (precision, limit) in [("Double", 1e-10), ("Mixed", 1e-4)] {
        for integrator in INTEGRATORS {
            let text = pipeline(&format!("{LJ}, {BONDS}"), integrator, precision, 40, 0.003, "");
            let (x, v, _) = differences(&text);
            println!("{integrator} {precision}: positions {x:e}, velocities {v:e}");
            assert!(x < limit && v < 50.0 * limit, "{integrator} {precision}: positions {x:e}, velocities {v:e}");
        }
    }
}

#[test]
fn exclusions_hold_on_both_devices() {
    if !has_compiler() {
        return;
    }
    let text = pipeline(LJ, "VelocityVerlet()", "Double", 20, 0.002, "");
    let bonds = text.replace("(buffer: 0.2)", "(buffer: 0.2, exclude: [Bonds])");
    assert_ne!(text, bonds);
    let (x, _, _) = differences(&bonds);
    assert!(x < 1e-10, "{x:e}");
    // and they do exclude something
    let energy = |t: &str| {
        let t = t.replace("steps: 20", "steps: 0");
        let p = plan_of(&t, standard_system(), DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
        run_plan(&p).unwrap_or_else(|e| panic!("{}", e.render())).1.sums().expect("sums").components[0].energy
    };
    assert!((energy(&text) - energy(&bonds)).abs() > 100.0);
}

#[test]
fn two_dimensions_and_groups_move_as_on_the_cpu() {
    if !has_compiler() {
        return;
    }
    let text = r#"(
        seed: 3, precision: Double,
        initial: [ Lattice(lattice: Hexagonal, cells: [14, 8, 1], density: 0.7), Velocities(kT: 0.8) ],
        forces: [ LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ],
        integrators: [ VelocityVerlet(group: Tags(first: 0, last: 111)), NoseHoover(kT: 0.8, tau: 0.3, group: Tags(first: 112, last: 200)) ],
        stages: [ (steps: 60, dt: 0.005) ],
    )"#;
    let given = plan(text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render())).snapshot;
    let mut found = vec![];
    for device in [DeviceChoice::Cpu, DeviceChoice::Emulated] {
        let p = plan(text, device).unwrap_or_else(|e| panic!("{}", e.render()));
        let (_, mut b) = run_plan(&p).unwrap_or_else(|e| panic!("{}", e.render()));
        let z = columns(&mut *b).position.iter().fold(0.0f64, |m, p| m.max(p[2].abs()));
        assert!(z == 0.0, "a particle left the plane: {z:e}");
        found.push(unwrapped(&mut *b));
    }
    assert!(largest_difference(&found[0].0, &found[1].0) < 1e-10);
    // the last particles are in no group: nothing moves them
    for (x, v) in &found {
        for tag in 201..given.len() {
            assert_eq!(x[3 * tag..3 * tag + 3], given.position[tag], "tag {tag}");
            assert_eq!(v[3 * tag..3 * tag + 3], given.velocity[tag], "tag {tag}");
        }
    }
    assert!(given.len() > 201 && given.velocity[201..].iter().all(|v| v[0] != 0.0 && v[1] != 0.0 && v[2] == 0.0));
}

#[test]
fn the_same_run_twice_is_the_same_to_the_bit() {
    if !has_compiler() {
        return;
    }
    let text = pipeline(&format!("{DPD}, {BONDS}"), "GrootWarren()", "Mixed", 30, 0.01, "");
    let p = plan_of(&text, standard_system(), DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
    let state = || run_plan(&p).unwrap_or_else(|e| panic!("{}", e.render())).1.export().expect("a state");
    assert!(state() == state());
}

/// Σp stays, because pair forces are equal and opposite to the last bit of the fixed-point sum they go into.
#[test]
fn momentum_stays() {
    let text = r#"(
        seed: 3, precision: PRECISION,
        initial: [ RandomPositions(count: 1536, box: [8.0, 8.0, 8.0]), Velocities(kT: 1.0) ],
        forces: [ Dpd(r_cut: 1.0, kT: 1.0, pairs: { ("A", "A"): (a: 25.0, sigma: 3.0) }) ],
        integrators: [ GrootWarren() ],
        stages: [ (steps: 200, dt: 0.01) ],
    )"#;
    for (precision, limit) in [("Double", 1e-11), ("Mixed", 2e-3)] {
        let p =
            plan(&text.replace("PRECISION", precision), DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
        let (_, mut b) = run_plan(&p).unwrap_or_else(|e| panic!("{}", e.render()));
        let sum = b.sums().expect("sums").momentum.iter().fold(0.0f64, |m, p| m.max(p.abs()));
        println!("{precision}: largest component of the momentum {sum:e}");
        assert!(sum < limit, "{precision}: {sum:e}");
    }
}

/// A kernel that writes behind an array is named: on a GPU it would spoil another array in silence.
#[test]
fn the_emulated_device_detects_writes_outside_an_array() {
    use galamost_engine::device::{EmulatedDevice, Services, SourceUnit};
    use galamost_plugin_api::abi::Extent;
    use galamost_plugin_api::precision::Precision;
    if !has_compiler() {
        return;
    }
    let device = EmulatedDevice::new().expect("g++");
    let text = "extern \"C\" __global__ void fill(int* a, int n) { if (int(threadIdx.x) < n) a[threadIdx.x] = 7; }";
    let module = device.compile(&SourceUnit::new("fill", text, Precision::Double)).expect("compiles");
    let fill = device.kernel(module, "fill").expect("the kernel");
    let mut address = device.allocate(40).expect("memory");
    let copies = [device.upload(address, &[0; 44]), device.download(address + 40, &mut [0]), device.clear(8, 4)];
    for copy in copies {
        let message = copy.expect_err("outside").to_string();
        assert!(message.contains("not inside an allocation"), "{message}");
    }
    let mut run = |mut n: i32| {
        let args = [(&raw mut address).cast(), (&raw mut n).cast()];
        // SAFETY: the kernel takes an address and a number; the emulated device reports what is outside of the array
        unsafe { device.launch(fill, Extent { x: 1, y: 1, z: 1 }, Extent { x: 1024, y: 1, z: 1 }, 0, &args) }
    };
    run(10).expect("ten numbers fit");
    // one number, and a whole block of them
    for n in [11, 1024] {
        let error = run(n).expect_err("more do not").to_string();
        assert!(error.contains("fill") && error.contains("outside an array of 40 bytes"), "{error}");
    }
}

/// A kernel that reads beyond the shared memory of its launch ends the program: on a GPU the run would end with an illegal address, or the
/// kernel would read what another block has written.
#[test]
fn the_emulated_device_detects_reads_beyond_shared_memory() {
    use galamost_engine::device::{EmulatedDevice, Services, SourceUnit};
    use galamost_plugin_api::abi::Extent;
    use galamost_plugin_api::precision::Precision;
    const MARK: &str = "GALAMOST_TEST_READS_BEYOND";
    if !has_compiler() {
        return;
    }
    if std::env::var_os(MARK).is_none() {
        let out = std::process::Command::new(std::env::current_exe().expect("the test program has a path"))
            .args(["--exact", "emulated::the_emulated_device_detects_reads_beyond_shared_memory", "--nocapture"])
            .env(MARK, "1")
            .output()
            .expect("the test program runs");
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(text.contains("byte 31 is 255") && !text.contains("byte 32") && !out.status.success(), "{text}");
        return;
    }
    let device = EmulatedDevice::new().expect("g++");
    let text = "#include \"galamost/staged.cuh\"\nextern \"C\" __global__ void copy_byte(int* out, int at) { GALAMOST_LAUNCH_SHARED(memory); *out = memory[at]; }";
    let module = device.compile(&SourceUnit::new("copy byte", text, Precision::Mixed)).expect("compiles");
    let kernel = device.kernel(module, "copy_byte").expect("the kernel");
    let mut out = device.allocate(4).expect("memory");
    for mut at in [0i32, 31, 32] {
        let args = [(&raw mut out).cast(), (&raw mut at).cast()];
        let one = Extent { x: 1, y: 1, z: 1 };
        // SAFETY: the kernel takes an address and a number; the emulated device ends the program if it reads beyond its memory
        unsafe { device.launch(kernel, one, one, 32, &args) }.expect("runs");
        let mut bytes = [0; 4];
        device.download(out, &mut bytes).expect("a number");
        println!("byte {at} is {}", i32::from_ne_bytes(bytes));
    }
}

/// Shared memory of a template has the size that its own unit gives it, whatever was loaded before.
#[test]
fn units_on_the_emulated_device_share_no_globals() {
    use galamost_engine::device::{EmulatedDevice, Services, SourceUnit};
    use galamost_plugin_api::abi::Extent;
    use galamost_plugin_api::precision::Precision;
    if !has_compiler() {
        return;
    }
    let device = EmulatedDevice::new().expect("g++");
    let shared_memory = |size: u64| {
        let text = format!(
            "template <int N> __device__ long long where() {{ __shared__ int a[{size}]; return (long long)a; }}\n\
             extern \"C\" __global__ void find(long long* out) {{ *out = where<0>(); }}"
        );
        let module = device.compile(&SourceUnit::new("find", &text, Precision::Double)).expect("compiles");
        let kernel = device.kernel(module, "find").expect("the kernel");
        let mut out = device.allocate(8).expect("memory");
        let one = Extent { x: 1, y: 1, z: 1 };
        // SAFETY: the kernel takes the address of one number
        unsafe { device.launch(kernel, one, one, 0, &[(&raw mut out).cast()]) }.expect("runs");
        let mut bytes = [0; 8];
        device.download(out, &mut bytes).expect("a number");
        u64::from_ne_bytes(bytes)
    };
    assert_ne!(shared_memory(4), shared_memory(4096));
}

/// The ranks of a run count particles in each other's memory.
#[test]
fn counts_of_several_emulated_devices_are_exact() {
    use galamost_engine::device::{Device, Distribution, EmulatedDevice, Services, SourceUnit};
    use galamost_plugin_api::abi::Extent;
    use galamost_plugin_api::precision::Precision;
    const ADDED: u32 = 2_000_000;
    if !has_compiler() {
        return;
    }
    let text = format!(
        "#define GALAMOST_RANKS\n#define GALAMOST_DISTRIBUTED\n#include \"galamost/rebuild.cuh\"\n\
         extern \"C\" __global__ void count(u32* word) {{ for (u32 k = 0; k < {ADDED}u; ++k) count_particle(word); }}"
    );
    let devices = [(); 2].map(|()| EmulatedDevice::new().expect("g++"));
    let array = devices[0].allocate_distributed(&Distribution { ordinals: vec![0, 0], ends: vec![4, 8] });
    let address = array.expect("memory");
    let begin = std::sync::Barrier::new(2);
    std::thread::scope(|threads| {
        for (rank, device) in devices.iter().enumerate() {
            device.attach_distributed(address, rank).expect("the array");
            let (text, begin) = (&text, &begin);
            threads.spawn(move || {
                let module = device.compile(&SourceUnit::new("count", text, Precision::Mixed)).expect("compiles");
                let count = device.kernel(module, "count").expect("the kernel");
                let (mut address, one) = (address, Extent { x: 1, y: 1, z: 1 });
                begin.wait();
                // SAFETY: the kernel takes the address of a word
                unsafe { device.launch(count, one, one, 0, &[(&raw mut address).cast()]) }.expect("runs");
            });
        }
    });
    let mut word = [0; 4];
    devices[0].download(address, &mut word).expect("a number");
    assert_eq!(u32::from_ne_bytes(word), 2 * ADDED);
}
