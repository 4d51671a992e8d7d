//! Charges at long range: crystals, sums over images, gradients, strains, accuracy, devices, and references of a peer.

use galamost_engine::backend::Backend;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};
use galamost_tests::{backend, plan_of};

mod accuracy;
mod changing_box;
mod devices;
mod dielectric;
mod exact;
mod overlap;
mod peer;
mod reactions;

/// Forces in tag order, energy and virial of a system.
pub struct Outcome {
    pub force: Vec<[f64; 3]>,
    pub energy: f64,
    pub virial: [f64; 6],
    /// Sum of the particles' energies.
    pub shared: f64,
}

/// A backend with the forces of a state.
fn ready(s: Snapshot, fields: &str, device: DeviceChoice, precision: &str) -> Box<dyn Backend> {
    let text =
        format!("(precision: {precision}, {fields}, integrators: [VelocityVerlet()], stages: [(steps: 0, dt: 0.001)])");
    let plan = plan_of(&text, s, device).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = backend(&plan);
    plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
    b.begin_stage(&plan.stages[0], false).expect("forces");
    b
}

/// Forces of `forces: […]` and further fields of the pipeline on a device.
pub fn on(s: &Snapshot, fields: &str, device: DeviceChoice, precision: &str) -> Outcome {
    let mut b = ready(s.clone(), fields, device, precision);
    let bytes = b.read("force").expect("forces");
    let all: Vec<f64> = if precision == "Double" {
        bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect()
    } else {
        bytes.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_ne_bytes(*b))).collect()
    };
    let rows = all.as_chunks::<4>().0;
    let sums = b.sums().expect("sums").components;
    Outcome {
        force: rows.iter().map(|f| [f[0], f[1], f[2]]).collect(),
        energy: sums.iter().map(|s| s.energy).sum(),
        virial: std::array::from_fn(|k| sums.iter().map(|s| s.virial[k]).sum()),
        shared: rows.iter().map(|f| f[3]).sum(),
    }
}

/// Forces on the CPU in double precision.
pub fn forces(s: &Snapshot, component: &str) -> Outcome {
    on(s, &format!("forces: [{component}]"), DeviceChoice::Cpu, "Double")
}

/// A state with these charges.
pub fn charged(length: [f64; 3], particles: &[([f64; 3], f64)]) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: length, ..Snapshot::default() };
    let a = s.type_id("A");
    for (r, _) in particles {
        let wrapped = std::array::from_fn(|k| r[k] - length[k] * (r[k] / length[k] + 0.5).floor());
        s.push(a, wrapped);
    }
    let charges = particles.iter().map(|p| p.1).collect();
    s.arrays.insert("charge".into(), Array { width: 1, values: Values::Real(charges) });
    s
}

/// Random numbers between 0 and 1.
pub fn uniform(seed: u64, i: u32) -> [f64; 4] {
    RandomKey::new(seed, 29).single(0, i, 0).map(|w| (f64::from(w) + 0.5) / 4_294_967_296.0)
}

/// Ions of charge ±1 at random, no two closer than 0.7.
pub fn ions(n: usize, length: [f64; 3]) -> Snapshot {
    let mut placed: Vec<([f64; 3], f64)> = vec![];
    for i in 0.. {
        if placed.len() == n {
            break;
        }
        let u = uniform(5, i);
        let r: [f64; 3] = std::array::from_fn(|k| (u[k] - 0.5) * length[k]);
        let near = |p: &([f64; 3], f64)| {
            let d2: f64 =
                (0..3).map(|k| (r[k] - p.0[k] - length[k] * ((r[k] - p.0[k]) / length[k]).round()).powi(2)).sum();
            d2 < 0.49
        };
        if !placed.iter().any(near) {
            placed.push((r, if placed.len().is_multiple_of(2) { 1.0 } else { -1.0 }));
        }
    }
    charged(length, &placed)
}

/// Chains of 20 beads, every second one charged, with counter-ions; bonds, angles and dihedrals along the chains.
pub fn polymer(chains: usize, length: [f64; 3]) -> Snapshot {
    let mut particles = vec![];
    let mut bonds = vec![];
    for c in 0..chains {
        let u = uniform(11, c as u32);
        let mut r: [f64; 3] = std::array::from_fn(|k| (u[k] - 0.5) * length[k]);
        for b in 0..20 {
            let step = uniform(13, (20 * c + b) as u32);
            let (z, phi) = (2.0 * step[0] - 1.0, std::f64::consts::TAU * step[1]);
            let s = 0.97 * (1.0 - z * z).sqrt();
            r = [r[0] + s * phi.cos(), r[1] + s * phi.sin(), r[2] + 0.97 * z];
            particles.push((r, if b % 2 == 0 { -1.0 } else { 0.0 }));
            if b > 0 {
                bonds.push([(20 * c + b - 1) as u32, (20 * c + b) as u32]);
            }
        }
    }
    for i in 0..10 * chains {
        let u = uniform(17, i as u32);
        particles.push((std::array::from_fn(|k| (u[k] - 0.5) * length[k]), 1.0));
    }
    let mut s = charged(length, &particles);
    s.bond_types = vec!["A-A".into()];
    s.bonds = bonds.into_iter().map(|tags| Link { kind: 0, tags }).collect();
    s
}

/// The same system with the types B and C for every second of the particles after the first 60.
pub fn with_types(mut s: Snapshot) -> Snapshot {
    let kinds = ["A", "B", "C"].map(|name| s.type_id(name));
    s.type_id.iter_mut().enumerate().skip(60).for_each(|(tag, kind)| *kind = kinds[1 + tag % 2]);
    s
}

/// Root-mean-square difference of the forces on charged particles, in units of C⟨q²⟩/d².
pub fn error(s: &Snapshot, a: &Outcome, b: &Outcome) -> f64 {
    let Values::Real(charges) = &s.arrays["charge"].values else { panic!("charges are numbers") };
    let squares: f64 = charges.iter().map(|q| q * q).sum();
    let n = charges.iter().filter(|q| **q != 0.0).count() as f64;
    let d2 = (s.volume() / n).powf(2.0 / 3.0);
    let sum: f64 = a.force.iter().zip(&b.force).map(|(a, b)| (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>()).sum();
    (sum / n).sqrt() / (squares / n / d2)
}
