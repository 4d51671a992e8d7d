//! The barostat of all box lengths and tilt factors, and the replacement of skewed boxes, on the CPU and on the emulated device.

use galamost::selftest::standard_system;
use galamost_engine::backend::Backend;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::tilt::to_space;
use galamost_tests::tolerances::{disagreement, estimate};
use galamost_tests::{
    advance, backend, columns, devices, galamost, largest_difference, mean, plan, plan_of, run_plan, started,
    unwrapped, words,
};

const SOFT: &str = r#"HarmonicRepulsion(r_cut: 1.6, pairs: {
    ("A", "A"): (alpha: 20.0), ("A", "B"): (alpha: 20.0), ("B", "B"): (alpha: 20.0) })"#;
const CRYSTAL: &str =
    r#"LennardJones(r_cut: 2.3, mode: ShiftForce, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) })"#;

fn potential(b: &mut dyn Backend) -> f64 {
    b.sums().expect("sums").components.iter().map(|c| c.energy).sum()
}

/// The potential energy of the particles and the box of a backend, computed anew in double precision.
fn potential_anew(b: &mut dyn Backend, forces: &str, s: &Snapshot) -> f64 {
    let (box_length, tilt) = (b.box_length(), b.tilt());
    let now = columns(b);
    let fresh =
        Snapshot { box_length, tilt, position: now.position, velocity: now.velocity, image: now.image, ..s.clone() };
    fresh.check().unwrap_or_else(|e| panic!("{e:?}"));
    let text = format!(
        "(precision: Double, forces: [{forces}], integrators: [VelocityVerlet()], stages: [(steps: 0, dt: 0.004)])"
    );
    potential(&mut *started(&text, fresh, DeviceChoice::Cpu))
}

/// Largest displacement of an upper edge, in units of the edge along which it is displaced.
fn skew(b: &dyn Backend) -> f64 {
    let ([x, y, z], [xy, xz, yz]) = (b.box_length(), b.tilt());
    [xy * y / x, xz * z / x, yz * z / y].into_iter().fold(0.0, |m, t| f64::max(m, t.abs()))
}

/// A liquid does not resist shear, so its box tilts further and further. No neighbor is missed meanwhile, also where boxes are
/// replaced, and a restored state continues with the same bits.
#[test]
#[ignore = "20 seconds"]
fn neighbors_are_found_while_the_box_chooses_its_shape() {
    for device in devices() {
        let (double, mixed, single) = (("Double", 1e-11), ("Mixed", 1e-5), ("Single", 1e-5));
        for (precision, limit) in [if device == DeviceChoice::Cpu { double } else { single }, mixed] {
            let text = format!(
                "(seed: 2, precision: {precision}, neighbors: (buffer: 0.3), forces: [{SOFT}], \
                 integrators: [TriclinicMtkNpt(kT: 1.0, tau: 0.3, pressure: 8.0, tau_p: 0.15, deviator: [0.0, 0.0, 0.0, 3.0, -2.0, 2.0])], \
                 stages: [(steps: 400, dt: 0.005)])"
            );
            let s = standard_system();
            let plan = plan_of(&text, s.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
            let mut b = backend(&plan);
            b.begin_stage(&plan.stages[0], false).expect("begun");
            let (mut most, mut replaced) = (0.0, 0);
            let mut before = b.tilt();
            let parts = if device == DeviceChoice::Cpu { 16 } else { 8 };
            for part in 0..parts {
                advance(&mut *b, 25);
                most = f64::max(most, skew(&*b));
                replaced += usize::from(largest_difference(&before, &b.tilt()) > 0.5);
                before = b.tilt();
                let (now, anew) = (potential(&mut *b), potential_anew(&mut *b, SOFT, &s));
                assert!((now / anew - 1.0).abs() < limit, "{device:?} {precision}: {now} {anew}");
                if part == 3 || part == parts - 1 {
                    let saved = b.export().expect("exported");
                    let mut other = backend(&plan);
                    other.import(&saved).expect("imported");
                    other.begin_stage(&plan.stages[0], true).expect("begun");
                    b.begin_stage(&plan.stages[0], true).expect("begun");
                    advance(&mut *b, 25);
                    advance(&mut *other, 25);
                    let [one, two] = [b.export(), other.export()].map(|s| s.expect("exported").sections);
                    assert!(one == two, "{device:?} {precision}: the restored state continues differently");
                }
            }
            println!("{device:?} {precision}: largest skew {most}, {replaced} replacements, at the end {:?}", b.tilt());
            assert!(replaced > 0 && most < 0.75, "{device:?} {precision}: {replaced} replacements, skew {most}");
        }
    }
}

/// What is conserved is conserved up to an error ∝ dt² while boxes are replaced, with a target pressure that shears the box.
#[test]
fn replaced_boxes_conserve_the_energy() {
    let error = |dt: f64| {
        let text = format!(
            "(precision: Double, seed: 5, forces: [{SOFT}], \
             integrators: [TriclinicMtkNpt(kT: 1.0, tau: 0.5, pressure: 8.0, tau_p: 0.5, deviator: [0.0, 0.0, 0.0, -1.0, 0.0, 0.0])], \
             stages: [(steps: 1, dt: {dt})])"
        );
        let mut s = standard_system();
        s.tilt = [0.55, 0.0, 0.0];
        s.position.iter_mut().for_each(|r| *r = to_space(*r, s.tilt));
        let mut b = started(&text, s, DeviceChoice::Cpu);
        let first = crate::drift::conserved(&mut *b);
        let (mut sum, mut replaced, mut before, samples) = (0.0, 0, b.tilt(), 80);
        for _ in 0..samples {
            advance(&mut *b, (0.03 / dt).round() as u64);
            sum += (crate::drift::conserved(&mut *b) - first).powi(2);
            replaced += usize::from(largest_difference(&before, &b.tilt()) > 0.5);
            before = b.tilt();
        }
        assert!(replaced > 0, "no box was replaced");
        (sum / f64::from(samples)).sqrt()
    };
    let (coarse, fine) = (error(0.006), error(0.003));
    println!("rms of H' − H'(0) {coarse:.2e} and {fine:.2e}, ratio {:.2}", coarse / fine);
    assert!((3.0..5.3).contains(&(coarse / fine)), "{coarse:e} and {fine:e}: not ∝ dt²");
}

/// A crystal at rest that is sheared by a whole box length has the energy of the first one. Unwrapped positions are those of the
/// shear, whatever boxes they are stored in.
#[test]
#[ignore = "a minute"]
fn a_crystal_sheared_by_a_lattice_vector_is_the_same() {
    for device in devices() {
        for (precision, limit) in [("Double", 1e-12), ("Mixed", 2e-6), ("Single", 2e-6)] {
            let text = |steps: u32| {
                format!(
                    "(precision: {precision}, initial: [Lattice(lattice: Fcc, cells: [5, 5, 5], density: 1.05)], forces: [{CRYSTAL}], \
                     integrators: [VelocityVerlet()], updaters: [BoxResize(every: 1, xy: Ramp(from: 0.0, to: 2.0, steps: 80), \
                     xz: Ramp(from: 0.0, to: -1.0, steps: 80), yz: Ramp(from: 0.0, to: 1.0, steps: 80))], \
                     stages: [(steps: {steps}, dt: 1e-9)])"
                )
            };
            let at = |steps: u32| {
                let plan = plan(&text(steps), device).unwrap_or_else(|e| panic!("{}", e.render()));
                let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
                b.begin_stage(&plan.stages[0], false).expect("begun");
                (potential(&mut *b), unwrapped(&mut *b).0, b.tilt(), plan.snapshot)
            };
            let (first, .., s) = at(0);
            let (sheared, ..) = at(24);
            assert!((sheared / first - 1.0).abs() > 0.01, "the strain changes the energy");
            let (last, position, tilt, _) = at(81);
            assert!((last / first - 1.0).abs() < limit, "{device:?} {precision}: {first} {last}");
            assert!(largest_difference(&tilt, &[0.0; 3]) < 1e-12, "{tilt:?}");
            let expected: Vec<f64> = s.position.iter().flat_map(|r| to_space(*r, [2.0, -1.0, 1.0])).collect();
            let limit = if precision == "Single" { 2e-6 } else { 1e-8 };
            let far = largest_difference(&position, &expected);
            assert!(far < limit, "{device:?} {precision}: {far}");
        }
    }
}

/// An omitted tilt factor is a constant one, also where **c** was replaced by **c** − **b**, while **b** changes.
#[test]
fn omitted_tilt_factors_are_constant() {
    let f = tempfile::tempdir().expect("a folder");
    let state = "3\nLattice=\"6 0 0 0 6 0 0 5.4 6\" Origin=\"-3 -5.7 -3\" Properties=species:S:1:pos:R:3\n\
                 A 0 0 0\nA 1 2 2.5\nA -1 -1 -2\n";
    std::fs::write(f.path().join("s.xyz"), state).expect("written");
    let run = |fields: &str, options: &[&str]| {
        let text = format!(
            "(precision: Double, initial: [ExtendedXyz(file: \"s.xyz\")], integrators: [VelocityVerlet()], checkpoint: (every: 50), \
             updaters: [BoxResize(every: 1, {fields} xy: Ramp(from: 0.0, to: 0.5, steps: 100))], \
             analyzers: [ExtendedXyz(every: 100, file: \"o.xyz\", unwrapped: true)], stages: [(steps: 100, dt: 0.001)])"
        );
        std::fs::write(f.path().join("p.ron"), text).expect("written");
        let out = galamost(f.path(), &[&["--pipeline", "p.ron", "--device", "cpu", "--quiet"][..], options].concat());
        assert!(out.status.success(), "{}", words(&out));
    };
    let positions = || -> Vec<f64> {
        let text = std::fs::read_to_string(f.path().join("o.xyz")).expect("a file");
        let rows: Vec<&str> = text.lines().collect();
        rows[rows.len() - 3..].iter().flat_map(|r| r.split(' ').skip(1)).map(|x| x.parse().expect("a number")).collect()
    };
    run("xz: 0.0, yz: 0.9,", &["--overwrite"]);
    let expected = positions();
    // x + 0.495 (y − 0.9 z), since c keeps its place
    assert!((expected[3] - 0.87625).abs() < 1e-12, "{expected:?}");
    run("", &["--overwrite"]);
    assert!(largest_difference(&positions(), &expected) < 1e-12, "{:?}", positions());
    run("", &["--overwrite", "--steps", "50"]);
    run("", &["--resume"]);
    assert!(largest_difference(&positions(), &expected) < 1e-12, "{:?}", positions());
}

/// Averages of a crystal at constant pressure and temperature, from samples every 20 steps.
struct Averages {
    /// Box lengths.
    length: [Vec<f64>; 3],
    tilt: [Vec<f64>; 3],
    /// xx, xy, xz, yy, yz, zz.
    stress: [Vec<f64>; 6],
    volume: Vec<f64>,
}

const KT: f64 = 0.25;
const CELLS: usize = 4;

fn crystal(tilt: [f64; 3], integrator: &str, density: f64, samples: usize) -> Averages {
    let text = format!(
        "(seed: 7, initial: [Lattice(lattice: Fcc, cells: [{CELLS}, {CELLS}, {CELLS}], density: {density}, tilt: {tilt:?}), \
         Velocities(kT: {})], forces: [{CRYSTAL}], integrators: [{integrator}], stages: [(steps: 1, dt: 0.006)])",
        2.0 * KT
    );
    let plan = plan(&text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = backend(&plan);
    b.begin_stage(&plan.stages[0], false).expect("begun");
    advance(&mut *b, 3000);
    let mut out =
        Averages { length: Default::default(), tilt: Default::default(), stress: Default::default(), volume: vec![] };
    for _ in 0..samples {
        advance(&mut *b, 20);
        let (length, tilt, sums) = (b.box_length(), b.tilt(), b.sums().expect("sums"));
        let volume: f64 = length.iter().product();
        for k in 0..3 {
            out.length[k].push(length[k]);
            out.tilt[k].push(tilt[k]);
        }
        for k in 0..6 {
            let virial: f64 = sums.components.iter().map(|c| c.virial[k]).sum();
            out.stress[k].push((virial + sums.kinetic_tensor[k]) / volume);
        }
        out.volume.push(volume);
    }
    out
}

fn expect(what: &str, values: &[f64], reference: f64, reference_error: f64, detects: f64) {
    let (mean, error) = estimate(values);
    let error = error.hypot(reference_error);
    println!("{what}: {mean} ± {error}, expected {reference}");
    if let Some(why) = disagreement(mean, error, reference, 0.0, detects) {
        panic!("{what}: {why}");
    }
}

const SAMPLES: usize = 2000;
const FULL: &str = "TriclinicMtkNpt(kT: 0.25, tau: 0.4, pressure: 0.0, tau_p: 0.8)";

/// A sheared crystal without pressure returns to its cubic shape, with the volume that it has when only the lengths change. The
/// mean pressure tensor is the target, apart from kT/V, and tilts fluctuate as the elastic constant says.
#[test]
#[ignore = "a minute"]
fn a_sheared_crystal_becomes_cubic() {
    let full = crystal([0.12, -0.08, 0.1], FULL, 0.95, SAMPLES);
    let axes = crystal([0.0; 3], &FULL.replace("TriclinicMtkNpt(", "MtkNpt(couple: None, "), 0.95, SAMPLES);
    let (volume, error) = estimate(&axes.volume);
    expect("volume", &full.volume, volume, error, 0.016 * volume);
    for k in 0..3 {
        expect(&format!("tilt {k}"), &full.tilt[k], 0.0, 0.0, 0.016);
        expect(&format!("length {k}"), &full.length[k], volume.cbrt(), error / (3.0 * volume.powf(2.0 / 3.0)), 0.08);
    }
    // ⟨V (P_ij − P_ij⁰)⟩ is −kT for one variable, and the force of the potential that corrects the measure
    for (k, force) in [3.0, 0.0, 0.0, 1.0, 0.0, -1.0].into_iter().enumerate() {
        expect(&format!("stress {k}"), &full.stress[k], -force * KT / volume, 0.0, 0.16);
    }
    // C44 from the stress of a small strain, and from the fluctuations of the tilts
    let density = (4 * CELLS.pow(3)) as f64 / volume;
    let strained = crystal([0.02, 0.0, 0.0], "Langevin(kT: 0.25, gamma: 0.5)", density, 500);
    let (stress, error) = estimate(&strained.stress[1]);
    let (modulus, modulus_error) = (-stress / 0.02, error / 0.02);
    let squares: Vec<f64> = (0..SAMPLES).map(|s| (0..3).map(|k| full.tilt[k][s].powi(2)).sum::<f64>() / 3.0).collect();
    let (square, square_error) = estimate(&squares);
    let found = KT / (volume * square);
    let error = (found * square_error / square).hypot(modulus_error);
    println!("C44: {found} from fluctuations, {modulus} from the stress, ± {error}");
    if let Some(why) = disagreement(found, error, modulus, 0.0, 0.8 * modulus) {
        panic!("C44: {why}");
    }
}

/// The mean pressure tensor is the target, with all of its components.
#[test]
#[ignore = "half a minute"]
fn the_mean_pressure_is_the_target() {
    let target =
        "TriclinicMtkNpt(kT: 0.25, tau: 0.4, pressure: 0.5, tau_p: 0.8, deviator: [0.3, -0.2, -0.1, 0.4, -0.3, 0.2])";
    let found = crystal([0.0; 3], target, 1.0, SAMPLES);
    let expected = [0.5 + 0.3, 0.4, -0.3, 0.5 - 0.2, 0.2, 0.5 - 0.1];
    let volume = mean(&found.volume);
    for (k, force) in [3.0, 0.0, 0.0, 1.0, 0.0, -1.0].into_iter().enumerate() {
        expect(&format!("stress {k}"), &found.stress[k], expected[k] - force * KT / volume, 0.0, 0.16);
    }
    // the box gives way in the direction of each stress
    let tilt = found.tilt.each_ref().map(|t| mean(t));
    assert!(tilt[0] < -1e-3 && tilt[1] > 1e-3 && tilt[2] < -1e-3, "{tilt:?}");
}

/// Mistakes of the parameters are reported, and other components that change boxes are refused in a tilted one.
#[test]
fn mistakes_are_reported() {
    let mistake = |integrator: &str| {
        let text = format!("(integrators: [{integrator}], stages: [(steps: 1, dt: 0.01)])");
        plan_of(&text, standard_system(), DeviceChoice::Cpu).map(drop).expect_err("a mistake").render()
    };
    let with =
        |fields: &str| mistake(&format!("TriclinicMtkNpt(kT: 1.0, tau: 0.5, pressure: 1.0, tau_p: 1.0, {fields})"));
    let e = with("deviator: [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]");
    assert!(e.contains("test.ron:1:") && e.contains("the first three numbers of `deviator` add up to 1, not 0"), "{e}");
    let e = with("group: All");
    assert!(e.contains("group"), "{e}");
    let e = mistake("MtkNpt(kT: 1.0, tau: 0.5, pressure: 1.0, tau_p: 1.0, couple: Triclinic)");
    assert!(e.contains("TriclinicMtkNpt"), "{e}");
}
