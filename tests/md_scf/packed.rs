//! Sums of weights that share words on the device: rounding, equal densities on every device, and overflows.

use super::formulas::shares;
use super::system;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_tests::{has_compiler, plan_of, run_plan};

const CHI: &str = "chi: { (\"A\", \"A\"): 0.0, (\"A\", \"B\"): 4.0, (\"B\", \"B\"): 0.0 }";

/// The state of `MdScf` after `steps` steps: densities and fields, or the message of the error.
fn state(
    s: &Snapshot,
    field: &str,
    precision: &str,
    steps: u32,
    device: DeviceChoice,
    gpus: u32,
) -> Result<Vec<f64>, String> {
    let text = format!(
        "(precision: {precision}, forces: [MdScf({field}, kappa: 0.2, {CHI})], integrators: [VelocityVerlet()],
          stages: [(steps: {steps}, dt: 0.01)])"
    );
    let mut plan = plan_of(&text, s.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
    plan.pipeline.gpus = gpus;
    let (_, _backend) = run_plan(&plan).map_err(|e| e.render())?;
    let component = plan.components.iter().find(|c| c.name == "MdScf").expect("a component");
    let bytes = component.save().expect("a state");
    Ok(bytes.as_chunks::<8>().0.iter().skip(2).map(|b| f64::from_le_bytes(*b)).collect())
}

/// The CPU, and the emulated device with 1 and 3 GPUs.
fn ways() -> Vec<(DeviceChoice, u32)> {
    let mut ways = vec![(DeviceChoice::Cpu, 1)];
    if has_compiler() {
        ways.extend([(DeviceChoice::Emulated, 1), (DeviceChoice::Emulated, 3)]);
    }
    ways
}

/// A weight is split three times, so it is off by at most 1.5 units of 2⁻²⁰. The weights of a particle add up to 1 exactly.
#[test]
fn packed_sums_are_rounded_densities() {
    let s = system();
    for grid in [[5usize, 7, 3], [3, 3, 11], [4, 4, 4], [9, 6, 5]] {
        let vertices: usize = grid.iter().product();
        let (mut exact, mut contributions) = (vec![0.0; 2 * vertices], vec![0.0; 2 * vertices]);
        for i in 0..s.len() {
            for ([x, y, z], w, _) in shares(&s, i, grid) {
                let v = s.type_id[i] as usize * vertices + (z * grid[1] + y) * grid[0] + x;
                exact[v] += w;
                contributions[v] += 1.0;
            }
        }
        for precision in ["Mixed", "Single"] {
            let field = format!("grid: {grid:?}, scheme: Paper");
            let found = state(&s, &field, precision, 0, DeviceChoice::Cpu, 1).expect("densities");
            let density = &found[..2 * vertices];
            for v in 0..2 * vertices {
                // positions are rounded to 2⁻³² of the box, weights to three times 2⁻²¹
                let limit = contributions[v] * (1.5f64 * 2f64.powi(-20) + 1e-8);
                let far = (density[v] - exact[v]).abs();
                assert!(far <= limit, "{grid:?}, vertex {v}: {far:e}, limit {limit:e}");
                assert_eq!((density[v] * 2f64.powi(20)).fract(), 0.0, "densities are multiples of the unit");
            }
            // sums of multiples of 2⁻²⁰, so the total is exact
            assert_eq!(density.iter().sum::<f64>(), s.len() as f64);
        }
    }
}

/// New fields in every step, which are in bricks on several GPUs; in every second step; and by a Fourier transform.
const EVERY: [&str; 3] = ["", ", density_every: 2, field_every: 2", ", filter: 2.0"];

/// Asserts that the first sums are equal on the CPU and on any number of GPUs, and all later ones on any number of GPUs.
fn assert_equal_on_every_device(grid: [usize; 3], scheme: &str, every: &str) {
    let s = system();
    let densities = 2 * grid.iter().product::<usize>();
    let field = format!("grid: {grid:?}, scheme: {scheme}{every}");
    let run = |steps, device, gpus| state(&s, &field, "Mixed", steps, device, gpus).expect("a state");
    let cpu: Vec<f32> = run(0, DeviceChoice::Cpu, 1).iter().map(|x| *x as f32).collect();
    let one = run(0, DeviceChoice::Emulated, 1);
    assert!(cpu[..densities].iter().zip(&one).all(|(a, b)| f64::from(*a) == *b), "{field}: densities");
    assert!(run(0, DeviceChoice::Emulated, 3) == one, "{field}: 3 GPUs");
    let later = run(5, DeviceChoice::Emulated, 1);
    assert!(later != one && run(5, DeviceChoice::Emulated, 3) == later, "{field}: 3 GPUs after 5 steps");
}

#[test]
fn packed_sums_are_equal_on_every_device() {
    if has_compiler() {
        assert_equal_on_every_device([9, 6, 13], "Paper", EVERY[0]);
        // so many bricks that a GPU needs some that only others touch
        assert_equal_on_every_device([29, 18, 21], "Variational", EVERY[0]);
        assert_equal_on_every_device([5, 7, 3], "Variational", EVERY[1]);
    }
}

#[test]
#[ignore = "20 seconds"]
fn packed_sums_are_equal_on_every_device_in_all_grids() {
    if !has_compiler() {
        return;
    }
    for grid in [[5, 7, 3], [9, 6, 13], [4, 8, 6], [3, 3, 21]] {
        for every in EVERY {
            ["Paper", "Variational"].iter().for_each(|scheme| assert_equal_on_every_device(grid, scheme, every));
        }
    }
}

/// `n` particles of type A at one place in cells, 64 others of both types elsewhere, in a box of 16 × 16 × 16.
fn crowd(n: usize, cells: [f64; 3]) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [16.0; 3], ..Snapshot::default() };
    let types = ["A", "B"].map(|t| s.type_id(t));
    for i in 0..64usize {
        s.push(types[i % 2], [i % 4, i / 4 % 4, i / 16].map(|k| 4.0 * k as f64 - 7.3));
    }
    for _ in 0..n {
        s.push(types[0], cells.map(|c| 2.0 * c - 8.0));
    }
    s
}

/// Asserts that these numbers of particles are an error at a vertex, and between two if each gets too many.
fn assert_too_many(numbers: &[usize], every: &str) {
    // the grid has 512 vertices, for at most 16,384 particles
    let field = format!("grid: [8, 8, 8], scheme: Variational{every}");
    for (device, gpus) in ways() {
        let run = |n, cells| state(&crowd(n, cells), &field, "Mixed", 0, device, gpus);
        for cells in [[3.0, 2.0, 5.0], [7.0, 7.0, 7.0]] {
            let found = run(1950, cells).unwrap_or_else(|e| panic!("{device:?}, {gpus} GPUs: {e}"));
            assert!(found.iter().take(512).fold(0.0f64, |m, x| m.max(*x)) >= 1950.0);
        }
        // at a vertex, in the low half; near the next one, in the high half; between two; at the periodic boundary
        let places = [[3.0, 2.0, 5.0], [3.999, 2.0, 5.0], [2.5, 2.0, 5.0], [7.999, 0.0, 7.999]];
        for (n, cells) in numbers.iter().flat_map(|n| places.map(|p| (*n, p))) {
            if n < 4200 && cells[0] == 2.5 {
                continue;
            }
            let e = run(n, cells).err().unwrap_or_else(|| panic!("{device:?}, {gpus} GPUs: {n} at {cells:?}"));
            assert!(e.contains("MdScf: more than 2,047 particles of one type are at one grid vertex"), "{e}");
            assert!(e.contains("precision: Double"), "{e}");
        }
    }
}

/// Up to 2,047 particles at a vertex have a density; more are an error, also if their sum is several times the range of its half word.
#[test]
fn too_many_particles_at_a_vertex_are_an_error() {
    assert_too_many(&[2100, 8192], EVERY[0]);
    assert_too_many(&[5000], EVERY[1]);
}

#[test]
#[ignore = "30 seconds"]
fn any_larger_number_of_particles_at_a_vertex_is_an_error() {
    EVERY.iter().for_each(|every| assert_too_many(&[2100, 4096, 5000, 8192, 12_288, 15_000], every));
}

/// Sums that are not packed have room for all particles: in double precision, and with many particles per cell.
#[test]
fn other_sums_take_any_number_of_particles() {
    let s = crowd(5000, [3.0, 2.0, 5.0]);
    for (precision, field) in [
        ("Double", "grid: [8, 8, 8], scheme: Paper"),
        ("Mixed", "grid: [5, 5, 5], scheme: Paper"),
        ("Mixed", "grid: [5, 5, 5], scheme: Paper, filter: 1.0"),
    ] {
        for (device, gpus) in ways() {
            let found = state(&s, field, precision, 0, device, gpus).unwrap_or_else(|e| panic!("{device:?}: {e}"));
            let total: f64 = found[..found.len() / 2].iter().sum();
            // the device has numbers in single precision
            assert!((total / s.len() as f64 - 1.0).abs() < 1e-6, "{device:?}, {precision}, {field}: {total}");
        }
    }
}
