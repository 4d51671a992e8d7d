//! Virtual sites: positions by the formulas of GROMACS' manual, forces, what is conserved, the pressure, both devices, mistakes.

use galamost_engine::backend::Backend;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_plugin_api::component::Wants;
use galamost_plugin_api::snapshot::Values;
use galamost_tests::{
    advance, backend, devices, energies, energy_fluctuation, galamost, largest_difference, plan_in, run_plan,
    unwrapped, words,
};
use std::fmt::Write as _;

/// Four particles and a site of every kind for them.
const SITES: &str = r#"Sites(atoms: 15, bonds: "site", sites: [
    (site: 4, from: [0, 1], kind: Two(a: 0.6)),
    (site: 5, from: [1, 2], kind: TwoFd(d: 0.3)),
    (site: 6, from: [2, 0, 1], kind: Three(a: 0.3, b: 0.4)),
    (site: 7, from: [0, 1, 2], kind: ThreeFd(a: 0.4, d: 0.5)),
    (site: 8, from: [0, 1, 3], kind: ThreeFad(theta_deg: 100.0, d: 0.4)),
    (site: 9, from: [0, 2, 3], kind: ThreeOut(a: 0.2, b: 0.3, c: 0.5)),
    (site: 10, from: [0, 1, 2, 3], kind: FourFdn(a: 0.6, b: 0.8, c: 0.4)),
    (site: 11, from: [0, 1, 2, 3], kind: Center),
    (site: 12, from: [0, 1, 2, 3], kind: CenterOfMass),
    (site: 13, from: [3, 1, 0], kind: Weights(w: [1.0, 2.0, 3.0])),
    (site: 14, from: [2], kind: Center),
])"#;
const MASSES: [f64; 4] = [1.0, 2.0, 1.5, 1.2];
const SHAPE: [[f64; 3]; 4] = [[0.0, 0.0, 0.0], [0.7, 0.1, 0.0], [0.1, 0.6, 0.1], [-0.1, 0.2, 0.7]];
const MOLECULES: usize = 27;

fn add(a: [f64; 3], s: f64, b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|k| a[k] + s * b[k])
}
fn to(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    add(b, -1.0, a)
}
fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|k| a[k] * b[k]).sum()
}
fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
fn length(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}

/// The sites of [`SITES`], by the formulas in the manual of GROMACS, "Virtual interaction sites".
fn expected(r: [[f64; 3]; 4]) -> [[f64; 3]; 11] {
    let mean = |of: &[(usize, f64)]| {
        let sum: f64 = of.iter().map(|(_, w)| w).sum();
        of.iter().fold([0.0; 3], |x, (i, w)| add(x, w / sum, r[*i]))
    };
    let two_fd = to(r[1], r[2]);
    let three_fd = add(to(r[0], r[1]), 0.4, to(r[1], r[2]));
    let (ij, jk) = (to(r[0], r[1]), to(r[1], r[3]));
    let across = add(jk, -dot(ij, jk) / dot(ij, ij), ij);
    let (sin, cos) = (100.0 * std::f64::consts::PI / 180.0).sin_cos();
    let (out_j, out_k) = (to(r[0], r[2]), to(r[0], r[3]));
    let (ja, jb) = (add([0.0; 3], 0.6, to(r[0], r[2])), add([0.0; 3], 0.8, to(r[0], r[3])));
    let m = cross(to(to(r[0], r[1]), ja), to(to(r[0], r[1]), jb));
    [
        add(add([0.0; 3], 0.4, r[0]), 0.6, r[1]),
        add(r[1], 0.3 / length(two_fd), two_fd),
        add(add(add([0.0; 3], 1.0 - 0.3 - 0.4, r[2]), 0.3, r[0]), 0.4, r[1]),
        add(r[0], 0.5 / length(three_fd), three_fd),
        add(add(r[0], 0.4 * cos / length(ij), ij), 0.4 * sin / length(across), across),
        add(add(add(r[0], 0.2, out_j), 0.3, out_k), 0.5, cross(out_j, out_k)),
        add(r[0], 0.4 / length(m), m),
        mean(&[(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0)]),
        mean(&[(0, MASSES[0]), (1, MASSES[1]), (2, MASSES[2]), (3, MASSES[3])]),
        mean(&[(3, 1.0), (1, 2.0), (0, 3.0)]),
        r[2],
    ]
}

/// A file of molecules on a lattice with this distance, some of them across the boundary. `shift` moves one coordinate.
fn file(distance: f64, shift: Option<(usize, usize, f64)>) -> String {
    file_in(3.0 * distance, distance, shift)
}

/// The same in a box of length `l`.
fn file_in(l: f64, distance: f64, shift: Option<(usize, usize, f64)>) -> String {
    let [mut position, mut image, mut velocity, mut mass, mut kind, mut molecule, mut bonds] =
        std::array::from_fn(|_| String::new());
    let mut random = 12345u64;
    let mut jitter = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as f64 / f64::from(1u32 << 31) - 0.5
    };
    for m in 0..MOLECULES {
        let cell = [m % 3, m / 3 % 3, m / 9];
        // momentum of the molecule: its last particle gets what is missing
        let mut total = [0.0; 3];
        for i in 0..15 {
            let tag = 15 * m + i;
            // the lattice scales with the box, and so do the particles in it
            let place = |k: usize| (SHAPE.get(i).map_or(0.0, |r| r[k]) + 0.1 * offset(m, i, k)) * distance / 3.0;
            let mut x: [f64; 3] = std::array::from_fn(|k| distance * (cell[k] as f64 - 1.5) + place(k));
            if let Some((_, axis, by)) = shift.filter(|(t, ..)| *t == tag) {
                x[axis] += by;
            }
            let boxes = x.map(|x| (x / l).round());
            let x = add(x, -l, boxes);
            let _ = writeln!(position, "{:?} {:?} {:?}", x[0], x[1], x[2]);
            let _ = writeln!(image, "{} {} {}", boxes[0], boxes[1], boxes[2]);
            let v: [f64; 3] = std::array::from_fn(|k| match i {
                0..3 => jitter(),
                3 => -total[k] / MASSES[3],
                _ => 0.0,
            });
            (0..3).for_each(|k| total[k] += MASSES.get(i).map_or(0.0, |m| m * v[k]));
            let _ = writeln!(velocity, "{:?} {:?} {:?}", v[0], v[1], v[2]);
            let _ = writeln!(mass, "{:?}", MASSES.get(i).copied().unwrap_or(0.0));
            let _ = writeln!(kind, "{}", if i < 4 { "A" } else { "S" });
            let _ = writeln!(molecule, "{m}");
            if i < 4 {
                (0..i).for_each(|j| _ = writeln!(bonds, "A-A {} {tag}", 15 * m + j));
            }
        }
    }
    let n = 15 * MOLECULES;
    format!(
        "<?xml version=\"1.0\"?>\n<galamost_xml version=\"1.3\"><configuration time_step=\"0\" dimensions=\"3\" natoms=\"{n}\">\n\
         <box lx=\"{l:?}\" ly=\"{l:?}\" lz=\"{l:?}\"/>\n<position num=\"{n}\">\n{position}</position>\n\
         <image num=\"{n}\">\n{image}</image>\n<velocity num=\"{n}\">\n{velocity}</velocity>\n<mass num=\"{n}\">\n{mass}</mass>\n<type num=\"{n}\">\n{kind}</type>\n\
         <molecule num=\"{n}\">\n{molecule}</molecule>\n<bond num=\"{}\">\n{bonds}</bond>\n</configuration></galamost_xml>\n",
        6 * MOLECULES
    )
}

/// An irregular number for a coordinate of a particle, between −1 and 1.
fn offset(m: usize, i: usize, k: usize) -> f64 {
    (12.9898 * m as f64 + 78.233 * i as f64 + 37.719 * k as f64).sin()
}

fn pipeline(integrator: &str, dt: f64, precision: &str) -> String {
    format!(
        r#"(seed: 4, precision: {precision}, neighbors: (only: OtherMolecules),
            initial: [GalamostXml(file: "m.xml"), {SITES}],
            forces: [
                LennardJones(r_cut: 2.5, mode: ShiftForce, pairs: {{ ("*", "*"): (epsilon: 0.2, sigma: 1.0) }}),
                HarmonicBond(bonds: {{ "A-A": (k: 100.0, r0: 0.8), "site": None }}),
                VirtualSites(),
            ],
            integrators: [{integrator}], stages: [(steps: 0, dt: {dt})])"#
    )
}

fn planned(text: &str, state: &str, device: DeviceChoice) -> Plan {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("m.xml"), state).expect("written");
    plan_in(&folder.path().join("p.ron"), text, device).unwrap_or_else(|e| panic!("{}", e.render()))
}

fn started(text: &str, state: &str, device: DeviceChoice) -> Box<dyn Backend> {
    let plan = planned(text, state, device);
    let mut b = backend(&plan);
    plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
    b.begin_stage(&plan.stages[0], false).expect("a stage");
    b
}

/// The force on each particle, three numbers each.
fn forces(b: &mut dyn Backend) -> Vec<f64> {
    let facts = b.facts().clone();
    let wants = Wants { forces: true, ..Wants::default() };
    let c = galamost_engine::backend::columns(b, &facts, wants).expect("columns");
    match &c.arrays["force"].values {
        Values::Real(f) => f.clone(),
        Values::Int(_) => panic!("forces are real numbers"),
    }
}

/// Positions and velocities of sites against the formulas: places within rounding to the precision of displacements, velocities
/// by a central difference of the formula along those of the particles.
fn assert_sites(x: &[f64], v: &[f64], place: f64, what: &str) {
    let vector = |of: &[f64], tag: usize| -> [f64; 3] { of[3 * tag..3 * tag + 3].try_into().expect("three") };
    for m in 0..MOLECULES {
        let at = |h: f64| expected(std::array::from_fn(|i| add(vector(x, 15 * m + i), h, vector(v, 15 * m + i))));
        const H: f64 = 1e-4;
        for (k, ((r, after), before)) in at(0.0).into_iter().zip(at(H)).zip(at(-H)).enumerate() {
            let tag = 15 * m + 4 + k;
            let d = length(to(vector(x, tag), r));
            assert!(d < place, "{what}: site {tag} is {d:e} from its place");
            let rate = std::array::from_fn(|k| (after[k] - before[k]) / (2.0 * H));
            let d = length(to(vector(v, tag), rate));
            // H² times a third derivative of some v³/d³
            assert!(d < 1e-5 + 40.0 * place, "{what}: the velocity of site {tag} is wrong by {d:e}");
        }
    }
}

#[test]
#[ignore = "3 seconds"]
fn sites_follow_the_formulas_on_every_device() {
    let state = file(3.0, None);
    // rounding of displacements of length 1 to single precision, and of what sixty steps make of it
    for (precision, place, agreement) in [("Double", 1e-12, 1e-9), ("Mixed", 1e-6, 1e-4), ("Single", 2e-6, 1e-3)] {
        let mut first: Option<Vec<f64>> = None;
        for device in devices() {
            let mut b = started(&pipeline("VelocityVerlet()", 0.002, precision), &state, device);
            advance(&mut *b, 60);
            let (x, v) = unwrapped(&mut *b);
            assert_sites(&x, &v, place, &format!("{precision} {device:?}"));
            let s = b.sums().expect("sums");
            let rounding = if precision == "Double" { 1e-11 } else { 1e-3 };
            assert!(s.momentum.iter().all(|p| p.abs() < rounding), "{precision} {device:?}: {:?}", s.momentum);
            match &first {
                None => first = Some([x, v].concat()),
                Some(first) => {
                    let d = largest_difference(first, &[x, v].concat());
                    println!("{precision}: {d:e}");
                    assert!(d < agreement, "{precision} {device:?}: differs by {d}");
                }
            }
        }
    }
}

/// The force on a particle with mass is the gradient of the energy with all sites following.
#[test]
#[ignore = "3 seconds"]
fn forces_are_the_gradient_of_the_energy() {
    const H: f64 = 1e-5;
    let text = pipeline("VelocityVerlet()", 0.001, "Double");
    for device in devices() {
        let force = forces(&mut *started(&text, &file(3.0, None), device));
        let mut largest: f64 = 0.0;
        for (tag, axis) in [(0, 0), (1, 1), (2, 2), (3, 0), (195, 1), (196, 2), (197, 0), (198, 1), (391, 0), (393, 2)]
        {
            let energy = |by: f64| energies(&mut *started(&text, &file(3.0, Some((tag, axis, by))), device))[2];
            let slope = -(energy(H) - energy(-H)) / (2.0 * H);
            let f = force[3 * tag + axis];
            // H² times a third derivative of some 10⁴, and rounding of energies of some 100 over H
            assert!((slope - f).abs() < 1e-5 * (1.0 + f.abs()), "{device:?} tag {tag}: {slope}, force {f}");
            largest = largest.max(f.abs());
        }
        assert!(largest > 1.0, "{largest}");
    }
}

/// The forces on particles with mass have no sum and no torque.
#[test]
fn momentum_and_angular_momentum_are_conserved() {
    // far from the boundaries, so positions are coordinates of the open space
    let text = pipeline("VelocityVerlet()", 0.001, "Double");
    for device in devices() {
        let mut b = started(&text, &file_in(40.0, 3.0, None), device);
        let (f, x) = (forces(&mut *b), unwrapped(&mut *b).0);
        let (mut sum, mut torque, mut scale) = ([0.0; 3], [0.0; 3], 0.0);
        for tag in (0..15 * MOLECULES).filter(|t| t % 15 < 4) {
            let (r, f) = ([x[3 * tag], x[3 * tag + 1], x[3 * tag + 2]], [f[3 * tag], f[3 * tag + 1], f[3 * tag + 2]]);
            sum = add(sum, 1.0, f);
            torque = add(torque, 1.0, cross(r, f));
            scale += length(f);
        }
        assert!(scale > 10.0 && length(sum) < 1e-12 * scale, "{device:?}: {sum:?} of {scale}");
        assert!(length(torque) < 1e-11 * scale, "{device:?}: {torque:?} of {scale}");
    }
}

#[test]
#[ignore = "3 seconds"]
fn the_energy_error_is_second_order() {
    let state = file(3.0, None);
    let width = |dt: f64| {
        let mut b = started(&pipeline("VelocityVerlet()", dt, "Double"), &state, DeviceChoice::Cpu);
        energy_fluctuation(&mut *b, dt) / MOLECULES as f64
    };
    let (coarse, fine) = (width(0.004), width(0.002));
    println!("{coarse:e}, {fine:e} per molecule");
    // the ratio tells the order; the bound only excludes runs that are not stable
    assert!(coarse < 1e-1 && (3.0..5.0).contains(&(coarse / fine)), "{coarse:e} and {fine:e}: not ∝ dt²");
}

/// Particles with mass are scaled with the box, and sites follow: −dU/d ln L is the trace of the virial.
#[test]
fn the_virial_is_the_response_to_a_change_of_the_box() {
    const H: f64 = 1e-6;
    for device in devices() {
        let at = |stretch: f64| {
            let mut b = started(&pipeline("VelocityVerlet()", 0.001, "Double"), &file(2.3 * stretch, None), device);
            let s = b.sums().expect("sums");
            let virial: f64 = s.components.iter().map(|c| c.virial[0] + c.virial[3] + c.virial[5]).sum();
            let own = s.components.last().expect("sites").virial;
            (s.components.iter().map(|c| c.energy).sum::<f64>(), virial, own[0] + own[3] + own[5])
        };
        let slope = -(at(1.0 + H).0 - at(1.0 - H).0) / (2.0 * H);
        let (_, virial, own) = at(1.0);
        println!("{device:?}: {slope}, {virial}, of which {own} is of sites");
        // rounding of energies of some 100 over H
        assert!(
            (slope - virial).abs() < 1e-7 * virial.abs() + 1e-6 * own.abs(),
            "{device:?}: {slope}, virial {virial}"
        );
        assert!(own.abs() > 1e-3 * virial.abs(), "{device:?}: {own} of {virial} tests nothing");
    }
}

/// The state after a restart is that before it, bit for bit, with any number of threads.
#[test]
fn a_run_resumes_bit_for_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = pipeline("Langevin(kT: 1.0, gamma: 1.0)", 0.002, "Mixed");
    let text = text.replace(
        "stages: [(steps: 0",
        r#"checkpoint: (every: 50), analyzers: [ExtendedXyz(every: 25, file: "t.xyz")], stages: [(steps: 200"#,
    );
    let run = |name: &str, more: &[&str]| {
        let here = folder.path().join(name);
        std::fs::create_dir_all(&here).expect("a folder");
        std::fs::write(here.join("p.ron"), &text).expect("written");
        std::fs::write(here.join("m.xml"), file(3.0, None)).expect("written");
        let out = galamost(&here, &[&["--pipeline", "p.ron", "--device", "cpu"], more].concat());
        assert!(out.status.success(), "{}", words(&out));
        std::fs::read(here.join("t.xyz")).expect("a trajectory")
    };
    let whole = run("whole", &["--threads", "1"]);
    run("parts", &["--steps", "110", "--threads", "2"]);
    assert!(run("parts", &["--resume", "--threads", "2"]) == whole);
}

/// A run continues from the file of an earlier one: the sites, and no bond twice.
#[test]
fn a_new_run_continues_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = pipeline("VelocityVerlet()", 0.002, "Double");
    let writing = text.replace(
        "stages: [(steps: 0",
        r#"analyzers: [GalamostXml(every: 20, file: "last.xml", digits: 17)], stages: [(steps: 20"#,
    );
    std::fs::write(folder.path().join("m.xml"), file(3.0, None)).expect("written");
    std::fs::write(folder.path().join("p.ron"), writing).expect("written");
    let out = galamost(folder.path(), &["--pipeline", "p.ron", "--device", "cpu"]);
    assert!(out.status.success(), "{}", words(&out));
    let planned = |path: &str| {
        let plan = plan_in(&folder.path().join("q.ron"), &text.replace("m.xml", path), DeviceChoice::Cpu);
        plan.unwrap_or_else(|e| panic!("{}", e.render())).snapshot
    };
    let (first, next) = (planned("m.xml"), planned("last.xml"));
    assert_eq!((first.bonds.len(), next.bonds.len()), (MOLECULES * (6 + 32), MOLECULES * (6 + 32)));
    let (x, v) = (next.position.as_flattened(), next.velocity.as_flattened());
    let unwrapped: Vec<f64> = (0..x.len()).map(|k| x[k] + 9.0 * f64::from(next.image[k / 3][k % 3])).collect();
    assert_sites(&unwrapped, v, 1e-12, "continued");
}

/// The arrays of a state, from a reader or an earlier `Sites`, define sites without rows.
#[test]
fn arrays_define_sites() {
    let rows = pipeline("VelocityVerlet()", 0.001, "Double");
    let [begin, forces] = ["Sites(", "forces"].map(|part| rows.find(part).expect("a part"));
    let end = begin + rows[begin..forces].rfind("])").expect("the end of the rows") + 2;
    let arrays = format!("{}, Sites(){}", &rows[..end], &rows[end..]);
    let [a, b] = [&rows, &arrays].map(|text| planned(text, &file(3.0, None), DeviceChoice::Cpu).snapshot.clone());
    assert!(a.arrays.contains_key("sites.form"));
    assert_eq!(a, b);
}

/// Copies of a molecule with sites have their own sites.
#[test]
fn replicated_molecules_have_sites() {
    let text =
        pipeline("VelocityVerlet()", 0.001, "Double").replace("\"site\", sites", "\"site\", molecules: 27, sites");
    let text = text.replace("],\n            forces", ", Replicate(times: [2, 1, 1])],\n            forces");
    let mut b = started(&text, &file(3.0, None), DeviceChoice::Cpu);
    advance(&mut *b, 5);
    let (x, v) = unwrapped(&mut *b);
    assert_eq!(x.len(), 2 * 3 * 15 * MOLECULES);
    let (a, c) = x.split_at(x.len() / 2);
    let (va, vc) = v.split_at(v.len() / 2);
    assert_sites(a, va, 1e-12, "first copy");
    assert_sites(c, vc, 1e-12, "second copy");
}

/// Two particles that meet at the fourth step, with a site at a fixed distance along their line.
#[test]
fn an_undefined_direction_ends_the_run() {
    let state = "<?xml version=\"1.0\"?>\n<galamost_xml version=\"1.3\"><configuration time_step=\"0\" dimensions=\"3\" natoms=\"3\">\n\
         <box lx=\"8\" ly=\"8\" lz=\"8\"/>\n<position num=\"3\">\n-0.5 0 0\n0.5 0 0\n0 0 0\n</position>\n\
         <velocity num=\"3\">\n1 0 0\n-1 0 0\n0 0 0\n</velocity>\n<mass num=\"3\">\n1\n1\n0\n</mass>\n\
         <type num=\"3\">\nA\nA\nS\n</type>\n</configuration></galamost_xml>\n";
    for device in devices() {
        for precision in ["Single", "Mixed", "Double"] {
            let text = format!(
                r#"(precision: {precision}, initial: [GalamostXml(file: "m.xml"), Sites(sites: [(site: 2, from: [0, 1], kind: TwoFd(d: 0.25))])],
                    forces: [VirtualSites()], integrators: [VelocityVerlet()], stages: [(steps: 10, dt: 0.125)])"#
            );
            match run_plan(&planned(&text, state, device)) {
                Err(Failure::Run(message, _)) => {
                    println!("{message}");
                    assert!(message.contains("step 4") && message.contains("tag 2"), "{message}");
                    assert!(message.contains("VirtualSites: the direction of this site is not defined"), "{message}");
                }
                Err(e) => panic!("{}", e.render()),
                Ok(_) => panic!("{device:?} {precision}: the undefined direction was not noticed"),
            }
        }
    }
}

/// A particle without mass that is no site does not stay where it is without a word.
#[test]
fn a_particle_without_mass_must_be_a_site() {
    let state = file(3.0, None);
    let text = pipeline("VelocityVerlet()", 0.001, "Double").replace("steps: 0", "steps: 5");
    let text = text.replace("    (site: 14, from: [2], kind: Center),\n", "");
    let without_sites = text
        .replace(&SITES.replace("    (site: 14, from: [2], kind: Center),\n", ""), "Velocities(kT: 1.0)")
        .replace("\"site\": None", "");
    assert_ne!(text, without_sites);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("m.xml"), &state).expect("written");
    for device in devices() {
        for text in [text.clone(), without_sites.clone()] {
            let error =
                plan_in(&folder.path().join("p.ron"), &text, device).expect_err("a particle without mass").render();
            let tag = if text == without_sites { 4 } else { 14 };
            let message = format!("VirtualSites: particle {tag} has no mass, and nothing says from which particles");
            assert!(error.contains(&message) && error.contains("p.ron:"), "{error}");
        }
    }
}
