//! The benchmark cases of `benches/peers.toml` and their pipelines.

use super::BenchOptions;
use galamost_plugin_api::error::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A row of `benches/peers.toml`.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    /// `lj`, `dpd`, `janus`, or a name for a pipeline of `benches/cases`.
    pub name: String,
    /// Number of particles.
    pub n: u64,
    /// Target of this project on an H200, in steps per second.
    pub target: Option<f64>,
    /// Measured with `--all` only.
    #[serde(default)]
    pub all: bool,
    /// Number of replicas that share the particles.
    pub replicas: Option<u64>,
    /// A pipeline of `benches/cases`; `None` for built-in cases.
    pub file: Option<String>,
    /// Values that replace those of the pipeline.
    #[serde(default)]
    pub set: Vec<String>,
    /// The file that the first generator reads.
    pub data: Option<String>,
    /// Steps per second of other engines on an H200.
    #[serde(flatten)]
    pub engines: BTreeMap<String, f64>,
}

/// The contents of `benches/peers.toml`.
#[derive(Deserialize)]
struct Peers {
    case: Vec<Case>,
}

impl Case {
    /// Returns name and size, which the filter is matched against.
    pub fn label(&self) -> String {
        format!("{} {}", self.name, self.n)
    }

    /// Returns whether the options select this case.
    pub fn is_selected(&self, options: &BenchOptions) -> bool {
        let matches = options.filter.as_ref().is_none_or(|f| self.label().contains(f.as_str()));
        matches && (options.all || !self.all) && options.max.is_none_or(|m| self.n <= m)
    }

    /// Returns path and text of the pipeline, and the values that replace its own.
    ///
    /// # Errors
    /// Returns an error if the case is unknown or its files are missing.
    pub fn pipeline(&self, options: &BenchOptions) -> Result<(PathBuf, String, Vec<String>)> {
        let missing =
            |what: &str| Error::Run(format!("{}: {what} not found in {}", self.label(), options.cases.display()));
        let Some(file) = &self.file else {
            let text = built_in(&self.name, self.n, &options.precision);
            let text = text.ok_or_else(|| Error::Run(format!("unknown case `{}`", self.name)))?;
            return Ok(("bench".into(), text, vec![]));
        };
        let path = options.cases.join(file);
        let text = std::fs::read_to_string(&path).map_err(|_| missing(file))?;
        let mut set = self.set.clone();
        set.push(format!("precision={}", options.precision));
        if let Some(data) = &self.data {
            let candidates = [options.cases.join(data), options.cases.join("../../tests/data").join(data)];
            let found = candidates.iter().find(|p| p.exists()).ok_or_else(|| missing(data))?;
            let found = std::path::absolute(found).unwrap_or_else(|_| found.clone());
            set.push(format!("initial[0].file={:?}", found.to_string_lossy()));
        }
        Ok((path, text, set))
    }
}

/// Returns all cases.
pub fn all() -> Vec<Case> {
    let parsed: std::result::Result<Peers, _> = toml::from_str(include_str!("../../../../benches/peers.toml"));
    parsed.map(|p| p.case).unwrap_or_default()
}

/// Returns the names of all cases, for messages.
pub fn known() -> String {
    let all = all();
    let names = |only_all: bool| {
        let mut names: Vec<&str> = vec![];
        for case in all.iter().filter(|c| c.all == only_all) {
            if !names.contains(&case.name.as_str()) {
                names.push(&case.name);
            }
        }
        names.join(", ")
    };
    format!("cases: {}; further cases and sizes with --all: {}", names(false), names(true))
}

/// Returns the default folder of pipelines: beside a released program, or in the repository.
pub fn default_folder() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let beside = |up: usize, to: &str| program.ancestors().nth(up).unwrap_or(Path::new(".")).join(to);
    let candidates =
        [beside(1, "cases"), beside(2, "cases"), beside(2, "share/galamost/cases"), beside(3, "benches/cases")];
    candidates.into_iter().find(|p| p.is_dir()).unwrap_or_else(|| "benches/cases".into())
}

/// Returns the pipeline of a built-in case.
fn built_in(name: &str, n: u64, precision: &str) -> Option<String> {
    let head = format!("(seed: 1, precision: {precision}, ");
    let dpd = |density: f64| {
        let l = (n as f64 / density).cbrt();
        format!(
            "{head}initial: [RandomPositions(count: {n}, box: [{l}, {l}, {l}]), Velocities(kT: 1.0)], \
             forces: [Dpd(r_cut: 1.0, kT: 1.0, pairs: {{(\"A\", \"A\"): (a: 25.0, sigma: 3.0)}})], \
             integrators: [GrootWarren()], stages: [(steps: 1, dt: 0.02)])"
        )
    };
    let particles = |density: f64, kt: f64, force: &str, integrator: &str| {
        let side = (n as f64).cbrt().round() as u64;
        let quarter = (n as f64 / 4.0).cbrt().round() as u64;
        let (lattice, cells) = if side.pow(3) == n { ("Sc", side) } else { ("Fcc", quarter) };
        format!(
            "{head}initial: [Lattice(lattice: {lattice}, cells: [{cells}, {cells}, {cells}], density: {density}), Velocities(kT: {kt})], \
             forces: [{force}], integrators: [{integrator}], stages: [(steps: 1, dt: 0.005)])"
        )
    };
    // the liquid at kT 1 and P 1.42, whose density is 0.8
    let liquid = |force: &str, integrator: &str| Some(particles(0.8, 1.0, force, integrator));
    let thermostat = "NoseHoover(kT: 1.0, tau: 0.5)";
    match name {
        // LJ liquid, ρ 0.381972, r_cut 3.0, T 1.2, dt 0.005, NVT
        "lj" => Some(particles(0.381_972, 1.2, &lennard_jones(3.0), "NoseHoover(kT: 1.2, tau: 0.5)")),
        "liquid" => liquid(&lennard_jones(3.0), thermostat),
        "liquid-table" => liquid(&lennard_jones_table(), thermostat),
        "liquid-mtk" => liquid(&lennard_jones(3.0), "MtkNpt(kT: 1.0, tau: 0.5, pressure: 1.42, tau_p: 2.0)"),
        "liquid-andersen" => liquid(&lennard_jones(3.0), "AndersenNpt(kT: 1.0, nu: 0.5, pressure: 1.42, tau_p: 2.0)"),
        // LAMMPS's melt: fcc, ρ 0.8442, T 1.44, r_cut 2.5, NVE
        "melt" => Some(particles(0.8442, 1.44, &lennard_jones(2.5), "VelocityVerlet()")),
        // DPD liquid, ρ 3, a 25, σ 3, dt 0.02, Groot-Warren
        "dpd" => Some(dpd(3.0)),
        // the same at ρ 5
        "dpd-5" => Some(dpd(5.0)),
        // triblock Janus particles, ρ 3, dt 0.002, Berendsen
        "janus" => {
            let side = (n as f64).cbrt().round() as u64;
            Some(format!(
                "{head}initial: [Lattice(lattice: Sc, cells: [{side}, {side}, {side}], density: 3.0), Velocities(kT: 1.0), \
                 Orientations(inertia: (0.1, 0.1, 0.0), kT: 1.0)], \
                 forces: [TriblockJanus(pairs: {{(\"A\", \"A\"): (alpha_r: 396.0, alpha_a: 132.0, beta_deg: 65.0, nu: 0.5)}})], \
                 integrators: [RotationalBerendsen(kT: 1.0, tau: 0.3, tau_r: 0.1)], stages: [(steps: 1, dt: 0.002)])"
            ))
        }
        _ => dense(name, n, &head),
    }
}

/// Returns the pipeline of a case that starts from overlapping beads: two stages remove the overlaps and set the
/// temperature, and the last one is the case.
fn dense(name: &str, n: u64, head: &str) -> Option<String> {
    let wca = "Wca(pairs: {(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)})";
    let (beads, density, kt, dt, forces, integrator) = match name {
        // LAMMPS's bench/in.chain: chains of 100, FENE, ρ 0.8442, T 1, damping time 10
        "chain" => {
            let fene = "Fene(bonds: {\"A-A\": (k: 30.0, R0: 1.5, epsilon: 1.0, sigma: 1.0)})";
            let pair =
                "LennardJones(r_cut: 1.12, mode: ShiftEnergy, pairs: {(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)})";
            let forces = format!("neighbors: (exclude: [Bonds]), forces: [{pair}, {fene}]");
            (100, 0.8442, 1.0, 0.012, forces, "Langevin(kT: 1.0, gamma: 0.1)")
        }
        // Kremer and Grest, J. Chem. Phys. 92 (1990) 5057: chains of 100, ρ 0.85, T 1, Γ 0.5
        "kremer-grest" => {
            let fene = "Fene(bonds: {\"A-A\": (k: 30.0, R0: 1.5)})";
            (100, 0.85, 1.0, 0.006, format!("forces: [{wca}, {fene}]"), "Langevin(kT: 1.0, gamma: 0.5)")
        }
        // HOOMD-blue's md_pair_wca and md_pair_lj: ρ 1, T 1.2, NVT
        "wca" => (1, 1.0, 1.2, 0.005, format!("forces: [{wca}]"), "NoseHoover(kT: 1.2, tau: 0.5)"),
        "lj-dense" => {
            let forces = format!("forces: [{}]", lennard_jones(2.5));
            (1, 1.0, 1.2, 0.005, forces, "NoseHoover(kT: 1.2, tau: 0.5)")
        }
        _ => return None,
    };
    let (molecules, l) = (n / beads, (n as f64 / density).cbrt());
    Some(format!(
        "{head}initial: [Polymers(box: [{l}, {l}, {l}], molecules: [(molecule: \"A{beads}\", count: {molecules})], \
         bond_length: 0.97, distance: 0.7), Velocities(kT: {kt:?})], {forces}, integrators: [{integrator}], stages: [\
         (steps: 100, dt: 0.005, integrators: [CappedVerlet(max_displacement: 0.02)]), \
         (steps: 200, dt: 0.005, integrators: [Langevin(kT: {kt:?}, gamma: 5.0)]), (steps: 1, dt: {dt:?})])"
    ))
}

/// Returns the Lennard-Jones potential with this cutoff.
fn lennard_jones(r_cut: f64) -> String {
    format!("LennardJones(r_cut: {r_cut:?}, pairs: {{(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)}})")
}

/// Returns the Lennard-Jones potential with a cutoff of 3 as a table.
fn lennard_jones_table() -> String {
    let r: Vec<f64> = (0..=500).map(|k| 0.5 + 0.005 * f64::from(k)).collect();
    let u: Vec<f64> = r.iter().map(|r| 4.0 * (r.powi(-12) - r.powi(-6))).collect();
    format!("PairTable(pairs: {{(\"A\", \"A\"): (r: {r:?}, u: {u:?})}})")
}
