//! `galamost bench`: the standard cases, beside what other engines reach on the same GPU.

use crate::device::Chosen;
use crate::pipeline::{DeviceChoice, Pipeline};
use crate::plan::{CheckOptions, check};
use crate::plugins::Registry;
use crate::report::{Diagnostic, Failure};
use crate::run::Backend;
use galamost_plugin_api::views::Wanted;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Part of the case's name.
    pub filter: Option<String>,
    /// Device.
    pub device: DeviceChoice,
    /// `Single`, `Mixed` or `Double`.
    pub precision: String,
    /// Largest number of particles.
    pub max: Option<u64>,
    /// Seconds of each window.
    pub window: f64,
}

#[derive(Deserialize)]
struct Peers {
    case: Vec<Peer>,
}

/// A row of `benches/peers.toml`.
#[derive(Clone, Debug, Deserialize)]
struct Peer {
    name: String,
    n: u64,
    target: Option<f64>,
    #[serde(flatten)]
    engines: BTreeMap<String, f64>,
}

/// One measured case.
#[derive(Clone, Debug)]
pub struct Measured {
    /// `lj` or `dpd`.
    pub name: String,
    /// Particles.
    pub n: u64,
    /// Steps per second in each window.
    pub windows: Vec<f64>,
    /// Device bytes per particle, everything included.
    pub bytes_per_particle: f64,
    /// Steps between two builds of the list.
    pub interval: f64,
    /// Entries of the list per particle.
    pub neighbours: f64,
    /// Buffer of the list.
    pub buffer: f64,
    /// kT at the end: that what was measured was a liquid.
    pub kt: f64,
    /// Seconds from the plan to the first step.
    pub start_up: f64,
    /// Other engines on an H200.
    pub peers: BTreeMap<String, f64>,
    /// What this project wants to reach on an H200.
    pub target: Option<f64>,
}

impl Measured {
    /// The best window.
    pub fn tps(&self) -> f64 {
        self.windows.iter().copied().fold(0.0, f64::max)
    }
}

/// A table of measured cases.
#[derive(Clone, Debug)]
pub struct Report {
    /// The device.
    pub device: String,
    /// The precision.
    pub precision: String,
    /// The cases.
    pub cases: Vec<Measured>,
}

fn peers() -> Vec<Peer> {
    let parsed: Result<Peers, _> = toml::from_str(include_str!("../../benches/peers.toml"));
    parsed.map(|p| p.case).unwrap_or_default()
}

/// The pipeline of a case.
fn pipeline(name: &str, n: u64, precision: &str) -> Option<String> {
    let head = format!("(seed: 1, precision: {precision}, ");
    match name {
        // LJ liquid, ρ 0.381972, r_cut 3.0, T 1.2, dt 0.005, NVT
        "lj" => {
            let side = (n as f64).cbrt().round() as u64;
            let quarter = (n as f64 / 4.0).cbrt().round() as u64;
            let (lattice, cells) = if side.pow(3) == n { ("Sc", side) } else { ("Fcc", quarter) };
            Some(format!(
                "{head}initial: [Lattice(lattice: {lattice}, cells: [{cells}, {cells}, {cells}], density: 0.381972), Velocities(kT: 1.2)], \
                 forces: [LennardJones(r_cut: 3.0, pairs: {{(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)}})], \
                 integrators: [NoseHoover(kT: 1.2, tau: 0.5)], stages: [(steps: 1, dt: 0.005)])"
            ))
        }
        // DPD liquid, ρ 3, a 25, σ 3, dt 0.02, Groot-Warren
        "dpd" => {
            let l = (n as f64 / 3.0).cbrt();
            Some(format!(
                "{head}initial: [RandomPositions(n: {n}, box: [{l}, {l}, {l}]), Velocities(kT: 1.0)], \
                 forces: [Dpd(r_cut: 1.0, kT: 1.0, pairs: {{(\"A\", \"A\"): (a: 25.0, sigma: 3.0)}})], \
                 integrators: [GrootWarren()], stages: [(steps: 1, dt: 0.02)])"
            ))
        }
        // triblock Janus particles, ρ 3, dt 0.002, Berendsen
        "janus" => {
            let side = (n as f64).cbrt().round() as u64;
            Some(format!(
                "{head}initial: [Lattice(lattice: Sc, cells: [{side}, {side}, {side}], density: 3.0), Velocities(kT: 1.0), \
                 Orientations(inertia: (0.1, 0.1, 0.0), kT: 1.0)], \
                 forces: [TriblockJanus(pairs: {{(\"A\", \"A\"): (alpha_r: 396.0, alpha_a: 132.0, beta_deg: 65.0, nu: 0.5)}})], \
                 integrators: [RigidBerendsen(kT: 1.0, tau: 0.3, tau_r: 0.1)], stages: [(steps: 1, dt: 0.002)])"
            ))
        }
        _ => None,
    }
}

/// Measures the cases.
///
/// # Errors
/// The device cannot be used, or a plugin of a case is missing.
pub fn run(registry: &Registry, options: &Options) -> Result<Report, Failure> {
    let chosen = crate::device::choose(options.device)
        .map_err(|e| Failure::Input(vec![Diagnostic::new("--device".as_ref(), None, e)]))?;
    let device = match (&chosen, chosen.open()?) {
        (_, Some(d)) => d.name(),
        _ => format!("CPU, {} threads, vectors {}", rayon::current_num_threads(), crate::cpu::vector_extension()),
    };
    let mut cases = vec![];
    for peer in peers() {
        let label = format!("{} {}", peer.name, peer.n);
        let wanted = options.filter.as_ref().is_none_or(|f| label.contains(f.as_str()));
        if !wanted || options.max.is_some_and(|m| peer.n > m) {
            continue;
        }
        eprintln!("{label} …");
        cases.push(measure(registry, options, &chosen, peer)?);
    }
    Ok(Report { device, precision: options.precision.clone(), cases })
}

fn measure(registry: &Registry, options: &Options, chosen: &Chosen, peer: Peer) -> Result<Measured, Failure> {
    let start = Instant::now();
    let text = pipeline(&peer.name, peer.n, &options.precision)
        .ok_or_else(|| Failure::run(format!("there is no case `{}`", peer.name)))?;
    let name = std::path::Path::new("bench");
    let mut p = Pipeline::parse(name, &text, &[])
        .map_err(|e| Failure::Input(e.into_iter().map(|e| Diagnostic::new(name, e.at, e.message)).collect()))?;
    p.device = match chosen {
        Chosen::Cpu { .. } => DeviceChoice::Cpu,
        Chosen::Cuda { ordinal, .. } => DeviceChoice::Cuda(*ordinal),
        Chosen::Emulated => DeviceChoice::Emulated,
    };
    let plan = check(p, registry, CheckOptions::default())?;
    let mut backend = crate::cli::backend(&plan)?;
    backend.begin_stage(&plan.stages[0], false)?;
    let start_up = start.elapsed().as_secs_f64();
    let stop = AtomicBool::new(false);
    // melt and settle: a second, and at least as long as a particle needs to forget where it was
    let (mut warm, mut chunk) = (Instant::now(), 1);
    let least = if matches!(chosen, Chosen::Cuda { .. }) { 1000 } else { 200 };
    let mut settled = 0;
    while settled < least || warm.elapsed().as_secs_f64() < options.window {
        backend.advance(chunk, Wanted::FORCE, &stop)?;
        settled += chunk;
        if settled < least {
            warm = Instant::now();
        }
        chunk = (chunk * 2).min(256);
    }
    let before = backend.list_report()?;
    let rate = rate(&mut *backend, chunk.max(16), &stop)?;
    let steps = ((rate * options.window) as u64).max(16).next_multiple_of(16);
    let mut windows = vec![];
    for _ in 0..3 {
        windows.push(self::rate(&mut *backend, steps, &stop)?);
    }
    let after = backend.list_report()?;
    let measured_steps = 3 * steps + chunk.max(16);
    let bytes = backend.memory() as f64 / peer.n as f64;
    backend.advance(1, Wanted::ALL, &stop)?;
    let k = backend.sums()?.kinetic_tensor;
    let kt = (k[0] + k[3] + k[5]) / (3.0 * peer.n as f64 - 3.0);
    let gpu = matches!(chosen, Chosen::Cuda { .. });
    Ok(Measured {
        name: peer.name,
        n: peer.n,
        windows,
        bytes_per_particle: bytes,
        interval: measured_steps as f64 / (after.builds - before.builds).max(1) as f64,
        neighbours: after.mean,
        buffer: after.buffer,
        kt,
        start_up,
        // other engines were measured on an H200: beside a CPU their numbers say nothing
        peers: if gpu { peer.engines } else { BTreeMap::new() },
        target: peer.target.filter(|_| gpu),
    })
}

/// Steps per second over this many steps.
fn rate(backend: &mut dyn Backend, steps: u64, stop: &AtomicBool) -> Result<f64, Failure> {
    let start = Instant::now();
    backend.advance(steps, Wanted::FORCE, stop)?;
    Ok(steps as f64 / start.elapsed().as_secs_f64())
}

/// The table for people, in Markdown.
pub fn table(r: &Report) -> String {
    let mut out = format!("{}, precision {}\n\n", r.device, r.precision);
    out.push_str("| case | N | TPS (best of 3) | spread | MPS | bytes/particle | list | buffer | builds every | kT | start | GALAMOST | best peer | target |\n");
    out.push_str("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for c in &r.cases {
        let tps = c.tps();
        let least = c.windows.iter().copied().fold(f64::INFINITY, f64::min);
        let ratio = |x: Option<f64>| x.map_or("-".into(), |x| format!("{:.2}x", tps / x));
        let best = c.peers.values().copied().reduce(f64::max);
        let _ = writeln!(
            out,
            "| {} | {} | {tps:.0} | {:.1} % | {:.1} | {:.0} | {:.1} | {:.3} | {:.1} | {:.3} | {:.2} s | {} | {} | {} |",
            c.name,
            c.n,
            100.0 * (1.0 - least / tps),
            tps * c.n as f64 / 1e6,
            c.bytes_per_particle,
            c.neighbours,
            c.buffer,
            c.interval,
            c.kt,
            c.start_up,
            ratio(c.peers.get("GALAMOST").copied()),
            ratio(best),
            ratio(c.target)
        );
    }
    out
}

/// The table for programs.
pub fn json(r: &Report) -> String {
    let one = |c: &Measured| {
        serde_json::json!({
            "case": c.name, "n": c.n, "tps": c.tps(), "windows": c.windows, "bytes_per_particle": c.bytes_per_particle,
            "list": c.neighbours, "buffer": c.buffer, "interval": c.interval, "kT": c.kt, "start_up": c.start_up,
        })
    };
    let cases: Vec<_> = r.cases.iter().map(one).collect();
    format!("{:#}\n", serde_json::json!({"device": r.device, "precision": r.precision, "cases": cases}))
}
