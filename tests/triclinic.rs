//! Triclinic boxes: the same lattice in boxes of other shapes, sums over images, strain derivatives, and energies that are
//! conserved, on the CPU and on the emulated device.

use galamost::files;
use galamost::selftest::standard_system;
use galamost_engine::backend::{Backend, columns};
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::component::Wants;
use galamost_plugin_api::snapshot::{Snapshot, Values};
use galamost_plugin_api::tilt::{image_shift, nearest, to_space};
use galamost_tests::{
    advance, backend, devices, energy_fluctuation, in_box, largest_difference, plan_of, registry, run_plan, started,
};

/// The same for all types, so that sums are easy.
const SOFT: &str = r#"HarmonicRepulsion(r_cut: 1.6, pairs: {
    ("A", "A"): (alpha: 20.0), ("A", "B"): (alpha: 20.0), ("B", "B"): (alpha: 20.0) })"#;

const LJ: &str = r#"LennardJones(r_cut: 1.6, pairs: {
    ("A", "A"): (epsilon: 1.0, sigma: 0.6), ("A", "B"): (epsilon: 0.7, sigma: 0.65), ("B", "B"): (epsilon: 0.5, sigma: 0.7) })"#;
const BONDED: &str = r#"HarmonicBond(bonds: { "*": (k: 20.0, r0: 1.0) }), HarmonicAngle(angles: { "*": (k: 2.0, theta0_deg: 120.0) }),
    HarmonicDihedral(dihedrals: { "*": (k: 1.0, phi0_deg: 30.0) }), HarmonicImproper(impropers: { "*": (k: 1.0) })"#;

/// All kinds of forces at once.
fn all() -> String {
    format!("{LJ}, {BONDED}")
}

/// Returns the standard system, deformed with the box to these tilt factors.
fn deformed(tilt: [f64; 3]) -> Snapshot {
    let mut s = standard_system();
    s.box_length = s.box_length.map(|l| 0.9 * l);
    s.position.iter_mut().for_each(|r| *r = to_space(r.map(|x| 0.9 * x), tilt));
    Snapshot { tilt, ..s }
}

fn at_rest(forces: &str, precision: &str) -> String {
    format!(
        "(precision: {precision}, neighbors: (buffer: 0.3), forces: [{forces}], integrators: [VelocityVerlet()], stages: [(steps: 1, dt: 1e-9)])"
    )
}

/// Potential energy, virial and forces.
fn found(b: &mut dyn Backend) -> (f64, [f64; 6], Vec<f64>) {
    let sums = b.sums().expect("sums").components;
    let virial = std::array::from_fn(|k| sums.iter().map(|s| s.virial[k]).sum());
    let facts = b.facts().clone();
    let c = columns(b, &facts, Wants { forces: true, ..Wants::default() }).expect("columns");
    let Values::Real(force) = &c.arrays["force"].values else { panic!("not real") };
    (sums.iter().map(|s| s.energy).sum(), virial, force.clone())
}

/// Energy, virial and forces of all pairs with all images that may be close.
fn summed(s: &Snapshot) -> (f64, [f64; 6], Vec<f64>) {
    let (mut energy, mut virial, mut force) = (0.0, [0.0; 6], vec![0.0; 3 * s.len()]);
    for i in 0..s.len() {
        for j in 0..s.len() {
            for n in 0..27 {
                let shift = image_shift([n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1], s.box_length, s.tilt);
                let d: [f64; 3] = std::array::from_fn(|k| s.position[i][k] - s.position[j][k] + shift[k]);
                let r = d.iter().map(|x| x * x).sum::<f64>().sqrt();
                if r < 1.6 && r > 0.0 {
                    let f_over_r = 2.0 * 20.0 / 1.6 * (1.0 - r / 1.6) / r;
                    energy += 0.5 * 20.0 * (1.0 - r / 1.6).powi(2);
                    let f = d.map(|x| f_over_r * x);
                    (0..3).for_each(|k| force[3 * i + k] += f[k]);
                    let terms = [d[0] * f[0], d[0] * f[1], d[0] * f[2], d[1] * f[1], d[1] * f[2], d[2] * f[2]];
                    virial.iter_mut().zip(terms).for_each(|(w, t)| *w += 0.5 * t);
                }
            }
        }
    }
    (energy, virial, force)
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |m, x| m.max(x.abs()))
}

/// Forces, energy and virial are those of a sum over all images, with few cells and with many.
#[test]
#[ignore = "3 seconds"]
fn forces_are_those_of_a_sum_over_images() {
    for tilt in [[0.4, -0.3, 0.5], [-0.9, 0.2, 0.1], [0.0, 0.0, 0.7]] {
        let s = deformed(tilt);
        let (energy, virial, force) = summed(&s);
        for device in devices() {
            for (precision, limit) in [("Double", 1e-12), ("Mixed", 3e-6), ("Single", 3e-6)] {
                let mut b = started(&at_rest(SOFT, precision), s.clone(), device);
                let (e, w, f) = found(&mut *b);
                let errors = [
                    (e - energy).abs() / energy,
                    largest_difference(&w, &virial) / largest(&virial),
                    largest_difference(&f, &force) / largest(&force),
                ];
                assert!(errors.iter().all(|e| *e < limit), "{device:?} {precision} {tilt:?}: {errors:?}");
            }
        }
    }
}

/// A box that is sheared by a whole box length has the lattice of the rectangular one: pair forces, those of scaled special
/// pairs, and bonded forces are the same.
#[test]
#[ignore = "3 seconds"]
fn boxes_of_the_same_lattice_have_the_same_forces() {
    let s = standard_system();
    let special =
        |text: String| text.replace("(buffer: 0.3)", "(buffer: 0.3, special: { \"1-2\": 0.0, \"1-3\": 0.5 })");
    let texts = |precision: &str| [at_rest(&all(), precision), special(at_rest(&all(), precision))];
    let references = texts("Double").map(|text| found(&mut *started(&text, s.clone(), DeviceChoice::Cpu)));
    assert!((references[0].0 / references[1].0 - 1.0).abs() > 1e-3, "special pairs make no difference");
    for device in devices() {
        for (precision, limit) in [("Double", 1e-11), ("Mixed", 2e-5)] {
            for tilt in [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 1.0, 1.0]] {
                let other = in_box(&s, tilt);
                assert!(other.image.iter().any(|i| *i != [0; 3]), "particles change their images");
                for (text, reference) in texts(precision).iter().zip(&references) {
                    let (e, w, f) = found(&mut *started(text, other.clone(), device));
                    let errors = [
                        (e / reference.0 - 1.0).abs(),
                        largest_difference(&f, &reference.2) / largest(&reference.2),
                        largest_difference(&w, &reference.1) / largest(&reference.1),
                    ];
                    assert!(errors.iter().all(|e| *e < limit), "{device:?} {precision} {tilt:?}: {errors:?}");
                }
            }
        }
    }
}

/// All six components of the virial are −dU/dε for the strain ε of box and particles, bonded forces included.
#[test]
fn virials_are_strain_derivatives() {
    const H: f64 = 1e-5;
    let base = deformed([0.4, -0.3, 0.5]);
    let edges = |s: &Snapshot| -> [[f64; 3]; 3] {
        std::array::from_fn(|k| image_shift(std::array::from_fn(|a| i32::from(a == k)), s.box_length, s.tilt))
    };
    // strains that keep the form of the box: x grows with x, y and z, y with y and z, z with z
    for forces in [SOFT, all().as_str()] {
        let energy = |i: usize, j: usize, h: f64| {
            let mut s = base.clone();
            let strained = |mut r: [f64; 3]| {
                r[i] += h * r[j];
                r
            };
            let [a, b, c] = edges(&base).map(strained);
            s.box_length = [a[0], b[1], c[2]];
            s.tilt = [b[0] / b[1], c[0] / c[2], c[1] / c[2]];
            s.position.iter_mut().for_each(|r| *r = strained(*r));
            found(&mut *started(&at_rest(forces, "Double"), s, DeviceChoice::Cpu)).0
        };
        let (_, virial, _) = found(&mut *started(&at_rest(forces, "Double"), base.clone(), DeviceChoice::Cpu));
        for (k, (i, j)) in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)].into_iter().enumerate() {
            let slope = (energy(i, j, H) - energy(i, j, -H)) / (2.0 * H);
            let error = (virial[k] + slope).abs() / largest(&virial);
            // differences of energies with the step H: rounding 1e-16/H, and H² U'''
            assert!(error < 1e-6, "component {k}: {} is not {}", virial[k], -slope);
        }
    }
}

/// The error of the total energy of velocity Verlet decreases with dt².
#[test]
fn the_energy_is_conserved() {
    let s = deformed([0.4, -0.3, 0.5]);
    let fluctuation = |dt: f64| {
        let text = format!(
            "(precision: Double, neighbors: (buffer: 0.3), forces: [{SOFT}], integrators: [VelocityVerlet()], stages: [(steps: 1, dt: {dt})])"
        );
        energy_fluctuation(&mut *started(&text, s.clone(), DeviceChoice::Cpu), dt)
    };
    let ratio = fluctuation(0.02) / fluctuation(0.01);
    assert!((3.4..4.6).contains(&ratio), "{ratio}");
}

/// A run moves particles on the device as on the CPU, also across the faces of the box, and as in the rectangular box of the
/// same lattice.
#[test]
#[ignore = "10 seconds"]
fn particles_move_alike() {
    let text = |precision: &str| {
        format!(
            "(seed: 5, precision: {precision}, neighbors: (buffer: 0.3), forces: [{SOFT}], integrators: [VelocityVerlet()], \
             stages: [(steps: 200, dt: 0.005)])"
        )
    };
    let s = standard_system();
    let tilted = in_box(&s, [1.0, 0.0, -1.0]);
    for (precision, limit) in [("Double", 1e-9), ("Mixed", 2e-3)] {
        let travel = |s: &Snapshot, device: DeviceChoice| -> Vec<[f64; 3]> {
            let mut b = started(&text(precision), s.clone(), device);
            advance(&mut *b, 200);
            assert!(b.list_report().expect("a list").builds > 3);
            let (length, tilt) = (b.box_length(), b.tilt());
            let c = galamost_tests::columns(&mut *b);
            assert!(c.image.iter().zip(&s.image).any(|(a, b)| a != b), "particles cross the faces");
            let shift = c.image.iter().map(|i| image_shift(*i, length, tilt));
            c.position.iter().zip(shift).map(|(r, d)| std::array::from_fn(|k| r[k] + d[k])).collect()
        };
        let reference = travel(&s, DeviceChoice::Cpu);
        for device in devices() {
            let far = largest_difference(reference.as_flattened(), travel(&tilted, device).as_flattened());
            assert!(far < limit, "{device:?} {precision}: {far}");
        }
    }
}

/// A resumed run has the bits of one without interruption.
#[test]
fn checkpoints_keep_the_box() {
    let text = format!(
        "(seed: 5, precision: Mixed, forces: [{SOFT}], integrators: [Langevin(kT: 1.0, gamma: 1.0)], stages: [(steps: 60, dt: 0.005)])"
    );
    let s = deformed([0.4, -0.3, 0.5]);
    for device in devices() {
        let mut first = started(&text, s.clone(), device);
        advance(&mut *first, 30);
        let saved = first.export().expect("exported");
        assert_eq!(saved.tilt(), s.tilt);
        advance(&mut *first, 30);
        let plan = plan_of(&text, s.clone(), device).expect("planned");
        let mut second = backend(&plan);
        second.import(&saved).expect("imported");
        second.begin_stage(&plan.stages[0], false).expect("begun");
        advance(&mut *second, 30);
        assert_eq!(
            first.export().expect("exported").sections,
            second.export().expect("exported").sections,
            "{device:?}"
        );
    }
}

/// Every format keeps the box and the places of all particles, or rounds them as the format does.
#[test]
fn files_keep_the_box() {
    let folder = tempfile::tempdir().expect("a folder");
    let s = deformed([0.4, -0.3, 0.5]);
    for (name, fields, limit) in [
        ("a.data", "digits: 17, atom_style: Sphere", 1e-13),
        ("a.dump", "digits: 17", 1e-13),
        ("a.gsd", "", 1e-5),
        ("a.xyz", "digits: 17", 1e-13),
        ("a.gro", "digits: 10", 1e-9),
        ("a.pdb", "", 0.02),
        ("a.dcd", "", 1e-5),
        ("a.xtc", "precision: 1e5", 2e-5),
        ("a.trr", "double: true", 1e-13),
    ] {
        let path = folder.path().join(name);
        let w = files::Writer::create(&path, None, fields, &s, registry()).unwrap_or_else(|e| panic!("{}", e.render()));
        w.write(&s).and_then(|()| w.finish()).unwrap_or_else(|e| panic!("{}", e.render()));
        let back = files::Reader::open(&path, registry())
            .and_then(|r| {
                r.read_over(
                    Some(0),
                    if ["a.dcd", "a.xtc", "a.trr"].contains(&name) { s.clone() } else { Snapshot::default() },
                )
            })
            .unwrap_or_else(|e| panic!("{name}: {}", e.render()));
        let edges = |s: &Snapshot| image_shift([1; 3], s.box_length, s.tilt);
        assert!(largest_difference(&edges(&back), &edges(&s)) < limit, "{name}: {:?} {:?}", back.box_length, back.tilt);
        for (tag, (a, b)) in s.position.iter().zip(&back.position).enumerate() {
            let d = nearest(std::array::from_fn(|k| a[k] - b[k]), s.box_length, s.tilt);
            assert!(largest(&d) < limit, "{name}: particle {tag} at {b:?}, not {a:?}");
        }
        back.check().unwrap_or_else(|e| panic!("{name}: {e:?}"));
    }
    // formats without tilts say so
    for name in ["a.xml", "a.mst"] {
        let made = files::Writer::create(&folder.path().join(name), None, "", &s, registry());
        assert!(made.is_err_and(|e| e.render().contains("does not support triclinic boxes")), "{name}");
    }
}

/// Components that assume a rectangular box, and several GPUs, are refused before the run.
#[test]
fn what_needs_a_rectangular_box_is_refused() {
    let s = Snapshot { tilt: [0.2, 0.0, 0.0], ..standard_system() };
    for (part, name) in [
        ("analyzers: [DomainSize(every: 1, positive: [\"A\"], q_max: 3.0, file: \"r.csv\")], forces: []", "DomainSize"),
        ("forces: [Ewald(accuracy: 1e-3, l_bjerrum: 1.5, r_cut: 2.0)]", "Ewald"),
        ("forces: [], integrators: [LeesEdwards(rate: 0.1), VelocityVerlet()]", "LeesEdwards"),
        ("forces: [], integrators: [MtkNpt(kT: 1.0, tau: 0.5, pressure: 1.0, tau_p: 1.0)]", "MtkNpt"),
    ] {
        let integrators = if part.contains("integrators") { "" } else { "integrators: [VelocityVerlet()], " };
        let text = format!("(precision: Double, {integrators}{part}, stages: [(steps: 1, dt: 0.001)])");
        let mut state = s.clone();
        state = in_box(&state, s.tilt);
        let e = plan_of(&text, state, DeviceChoice::Cpu).err().unwrap_or_else(|| panic!("{name} is accepted")).render();
        assert!(e.contains(&format!("{name} does not support triclinic boxes")) && e.contains("test.ron:1:"), "{e}");
    }
    let text = at_rest("", "Double").replacen('(', "(gpus: 2, ", 1);
    let e = plan_of(&text, in_box(&s, s.tilt), DeviceChoice::Emulated)
        .map(drop)
        .expect_err("two GPUs are refused")
        .render();
    assert!(e.contains("a triclinic box needs one GPU"), "{e}");
}

#[test]
fn a_stress_that_is_not_symmetric_is_refused() {
    let text = "(precision: Double, initial: [Lattice(lattice: Fcc, cells: [5, 5, 5], density: 0.3), Orientations(kT: 1.0, inertia: [0.1, 0.1, 0.0])], \
                forces: [GayBerne(r_cut: 2.0, pairs: {(\"A\", \"A\"): PAIR})], \
                integrators: [TriclinicMtkNpt(kT: 1.0, tau: 0.5, pressure: 1.0, tau_p: 1.0)], stages: [(steps: 1, dt: 0.001)])";
    let text = text.replace("PAIR", "(epsilon0: 1.0, sigma0: 0.5, kappa: 2.0, kappa_prime: 1.0)");
    let e = galamost_tests::plan(&text, DeviceChoice::Cpu).map(drop).expect_err("refused").render();
    assert!(e.contains("the stress of GayBerne is not symmetric") && e.contains("test.ron:1:"), "{e}");
}

/// The replicated state is the same crystal.
#[test]
fn replicated_boxes_have_the_energy_of_the_copies() {
    let text = |generators: &str| {
        format!(
            "(precision: Double, initial: [Lattice(lattice: Fcc, cells: [4, 4, 4], density: 1.1, tilt: [0.3, -0.2, 0.25]){generators}], \
             forces: [LennardJones(r_cut: 1.4, pairs: {{ (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) }})], \
             integrators: [VelocityVerlet()], stages: [(steps: 1, dt: 0.001)])"
        )
    };
    let energy = |generators: &str| {
        let plan =
            galamost_tests::plan(&text(generators), DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
        let mut b = backend(&plan);
        b.begin_stage(&plan.stages[0], false).expect("begun");
        found(&mut *b).0 / plan.snapshot.len() as f64
    };
    let (one, many) = (energy(""), energy(", Replicate(times: [2, 1, 3])"));
    assert!((one / many - 1.0).abs() < 1e-12, "{one} {many}");
    let plan = galamost_tests::plan(&text(", Velocities(kT: 0.1)"), DeviceChoice::Cpu).expect("planned");
    run_plan(&plan).expect("runs");
}

/// Energy, virial and forces are those of LAMMPS (22 Jul 2025, `pair_style lj/cut 1.6`, `run 0`) for the data file that
/// LammpsData writes of this state.
#[test]
fn forces_are_those_of_lammps() {
    const ENERGY: f64 = -724.1390678612235;
    const VIRIAL: [f64; 6] = [
        -1367.2675945325175,
        -16.749527711650632,
        6.0362968100152345,
        -1270.6919894819987,
        -8.344465950401647,
        -1070.9248594365968,
    ];
    const FORCES: [(usize, [f64; 3]); 3] = [
        (0, [0.33486229321679417, -0.7032047811181676, -0.5338578271290716]),
        (100, [-1.0914915245573773, -0.4416643147844941, 0.7772564570625755]),
        (999, [0.1693043531545988, 0.15547572295881507, -0.27724759692602385]),
    ];
    for device in devices() {
        let (e, w, f) = found(&mut *started(&at_rest(LJ, "Double"), deformed([0.4, -0.3, 0.5]), device));
        assert!((e / ENERGY - 1.0).abs() < 1e-11, "{device:?}: {e}");
        assert!(largest_difference(&w, &VIRIAL) < 1e-11 * largest(&VIRIAL), "{device:?}: {w:?}");
        for (tag, force) in FORCES {
            assert!(largest_difference(&f[3 * tag..3 * tag + 3], &force) < 1e-11, "{device:?}: force on {tag}");
        }
    }
}

/// A crystal that a box shears at a constant rate is the lattice of that box, and the slope of its stress is the elastic
/// constant, the second derivative of the energy of the lattice.
#[test]
#[ignore = "3 seconds"]
fn a_crystal_is_sheared_at_a_constant_rate() {
    const DENSITY: f64 = 1.05;
    let text = |tilt: f64, updater: &str| {
        format!(
            "(precision: Double, initial: [Lattice(lattice: Fcc, cells: [4, 4, 4], density: {DENSITY}, tilt: [{tilt:?}, 0.0, 0.0])], \
             forces: [LennardJones(r_cut: 2.5, pairs: {{ (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) }})], \
             integrators: [VelocityVerlet()], {updater} stages: [(steps: 20, dt: 1e-6)])"
        )
    };
    let last = |text: &str, device: DeviceChoice| {
        let plan = galamost_tests::plan(text, device).unwrap_or_else(|e| panic!("{}", e.render()));
        let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        b.begin_stage(&plan.stages[0], false).expect("begun");
        let (energy, virial, _) = found(&mut *b);
        (energy, virial[1] / b.box_length().iter().product::<f64>(), b.tilt())
    };
    // per volume, with r = (x + γy, y, z) at γ = 0
    let a = (4.0 / DENSITY).cbrt();
    let modulus = (0..729)
        .map(|n| {
            let [x, y, z] = [n % 9 - 4, n / 9 % 9 - 4, n / 81 - 4].map(|k| 0.5 * f64::from(k) * a);
            let (r2, even) = (x * x + y * y + z * z, (n % 9 + n / 9 % 9 + n / 81) % 2 == 0);
            if !even || r2 == 0.0 || r2 >= 6.25 {
                return 0.0;
            }
            let s6 = r2.powi(-3);
            let (first, second) = (-24.0 * (2.0 * s6 * s6 - s6) / r2, 24.0 * (26.0 * s6 * s6 - 7.0 * s6) / r2);
            0.5 * DENSITY * ((second - first) / r2 * x * x * y * y + first * y * y)
        })
        .sum::<f64>();
    for device in devices() {
        for (strain, limit) in [(0.04, f64::INFINITY), (1e-4, 1e-5)] {
            let ramp = format!("updaters: [BoxResize(every: 1, xy: Ramp(from: 0.0, to: {strain:?}, steps: 19))],");
            let (energy, stress, tilt) = last(&text(0.0, &ramp), device);
            let (expected, of_lattice, _) = last(&text(strain, ""), device);
            assert_eq!(tilt, [strain, 0.0, 0.0]);
            assert!((energy / expected - 1.0).abs() < 1e-12, "{device:?} {strain}: {energy} {expected}");
            // stresses at the strain after 20 steps of the ramp; positions in double precision, moved by rounding only
            assert!((stress / of_lattice - 1.0).abs() < 1e-8, "{device:?} {strain}: {stress} {of_lattice}");
            let slope = -stress / strain;
            assert!((slope / modulus - 1.0).abs() < limit, "{device:?} {strain}: {slope} {modulus}");
        }
    }
}

/// No neighbor is missed while the box deforms, and a restored state continues with the same bits.
#[test]
#[ignore = "10 seconds"]
fn neighbors_are_found_while_the_box_deforms() {
    let s = standard_system();
    for device in devices() {
        for (precision, limit) in [("Double", 1e-12), ("Mixed", 3e-6)] {
            for steps in [20, 60, 100] {
                let text = format!(
                    "(seed: 3, precision: {precision}, forces: [{SOFT}], integrators: [Langevin(kT: 1.0, gamma: 1.0)], \
                     updaters: [BoxResize(every: 5, x: Ramp(from: {x}, to: 10.5, steps: 100), xy: Ramp(from: 0.0, to: 0.9, steps: 100), \
                     xz: Ramp(from: 0.0, to: -0.5, steps: 100), yz: Ramp(from: 0.0, to: 0.4, steps: 100))], \
                     stages: [(steps: {steps}, dt: 0.005)])",
                    x = s.box_length[0],
                );
                let plan = plan_of(&text, s.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
                let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
                let (box_length, tilt) = (b.box_length(), b.tilt());
                // in the lattice of the prescribed box
                let turns = (0.009 * f64::from(steps - 5) - tilt[0]) * box_length[1] / box_length[0];
                assert!((turns - turns.round()).abs() < 1e-12 && (turns > 0.5) == (steps == 100), "{tilt:?}");
                let position = galamost_tests::columns(&mut *b).position;
                let (energy, ..) = summed(&Snapshot { position, box_length, tilt, ..s.clone() });
                b.begin_stage(&plan.stages[0], false).expect("begun");
                let (e, ..) = found(&mut *b);
                assert!((e / energy - 1.0).abs() < limit, "{device:?} {precision}, step {steps}: {e} {energy}");
                let saved = b.export().expect("exported");
                let mut other = backend(&plan);
                other.import(&saved).expect("imported");
                for b in [&mut b, &mut other] {
                    b.begin_stage(&plan.stages[0], false).expect("begun");
                    advance(&mut **b, 20);
                }
                assert_eq!(b.export().expect("exported").sections, other.export().expect("exported").sections);
            }
        }
    }
}

/// A box that becomes too flat for the cutoff ends the run; a run that will be tilted refuses what needs a rectangular box.
#[test]
#[ignore = "3 seconds"]
fn limits_of_deformation_are_reported() {
    let text = |forces: &str, analyzers: &str| {
        format!(
            "(precision: Double, forces: [{forces}], integrators: [VelocityVerlet()], analyzers: [{analyzers}], \
             updaters: [BoxResize(every: 1, x: Ramp(from: {x}, to: 2.0, steps: 50), xy: Ramp(from: 0.0, to: 0.5, steps: 50))], stages: [(steps: 50, dt: 1e-6)])",
            x = standard_system().box_length[0],
        )
    };
    for device in devices() {
        let plan = plan_of(&text(SOFT, ""), standard_system(), device).unwrap_or_else(|e| panic!("{}", e.render()));
        let e = run_plan(&plan).err().expect("the box is too flat").render();
        assert!(e.contains("BoxResize: the box would be shorter than two cutoffs along x"), "{e}");
    }
    let domains = "DomainSize(every: 1, positive: [\"A\"], q_max: 3.0, file: \"r.csv\")";
    let e = plan_of(&text("", domains), standard_system(), DeviceChoice::Cpu).map(drop).expect_err("refused").render();
    assert!(e.contains("DomainSize does not support triclinic boxes; BoxResize changes the tilt factors"), "{e}");
}
