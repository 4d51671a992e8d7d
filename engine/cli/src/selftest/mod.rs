//! `galamost selftest`: every component on every device, in one table.
//!
//! Each component is run with its own example on a standard system: 1,000 particles of types A and B on a shaken
//! lattice, with velocities, charges of ±1, diameters of 0.9 to 1.1, orientations with moments of inertia and angular
//! momenta, and chains of ten with bonds, angles and dihedrals,
//! whose types are named after the number of B in them (A-A, A-B, B-B; A-A-A, A-A-B, …). The reference is the CPU in
//! double precision.

mod harness;
mod oriented;
mod round_trip;
mod system;

pub use harness::test_plugin;
pub use system::standard_system;

use galamost_engine::backend::Backend;
use galamost_engine::backend::columns;
use galamost_engine::device::Chosen;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::run::{RunOptions, execute};
use galamost_engine::state::topology::Topology;
use galamost_plugin_api::component::{ComponentInfo, Kind, Wants};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::{Snapshot, Values};
use std::fmt::Write as _;

/// One line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Component.
    pub component: String,
    /// Kind.
    pub kind: Kind,
    /// What was compared.
    pub check: String,
    /// The deviation found; NaN if it could not be found.
    pub value: f64,
    /// The largest deviation allowed.
    pub limit: f64,
    /// Why it was not run, or what failed.
    pub note: String,
    /// All of what failed, where the note is only its first line.
    pub detail: String,
    /// It was left out, with the reason in `note`.
    pub skipped: bool,
}

impl Row {
    /// Whether the component failed here.
    pub fn failed(&self) -> bool {
        !self.skipped && (self.value.is_nan() || self.value > self.limit)
    }
}

/// The component's example, or one made up from its fields.
fn example(c: &ComponentInfo) -> String {
    if let Some(e) = c.example() {
        return e.into();
    }
    let number = |f: &galamost_plugin_api::params::FieldDoc| {
        let value = match f.kind.as_str() {
            k if k.contains("whole number") => "10",
            k if k.contains("text") => "\"selftest.out\"",
            k if k.contains("true") => "true",
            _ => "1.0",
        };
        format!("{}: {value}", f.name)
    };
    let list = |fields: &[galamost_plugin_api::params::FieldDoc]| {
        fields.iter().filter(|f| f.default.is_none() && f.fields.is_empty()).map(number).collect::<Vec<_>>().join(", ")
    };
    match (c.kind, c.fields.iter().find(|f| f.name == "pairs"), c.fields.iter().find(|f| f.name == "bonds")) {
        (Kind::Pair, Some(pairs), _) => {
            let row = list(&pairs.fields);
            let rows =
                ["(\"A\", \"A\")", "(\"A\", \"B\")", "(\"B\", \"B\")"].map(|k| format!("{k}: ({row})")).join(", ");
            format!("{}(r_cut: 2.5, {}pairs: {{ {rows} }})", c.name, prefix(&list(&c.fields)))
        }
        (Kind::Bonded, _, Some(bonds)) => {
            let row = list(&bonds.fields);
            let rows = ["\"A-A\"", "\"A-B\"", "\"B-B\""].map(|k| format!("{k}: ({row})")).join(", ");
            format!("{}({}bonds: {{ {rows} }})", c.name, prefix(&list(&c.fields)))
        }
        _ => format!("{}({})", c.name, list(&c.fields)),
    }
}

fn prefix(list: &str) -> String {
    if list.is_empty() { String::new() } else { format!("{list}, ") }
}

struct Test<'a> {
    registry: &'a Registry,
    device: DeviceChoice,
    /// The device is not the CPU itself.
    other: bool,
    folder: std::path::PathBuf,
    /// With the further checks for authors.
    author: bool,
    rows: Vec<Row>,
}

/// The device's name, for people.
pub fn device_name(device: DeviceChoice) -> String {
    match galamost_engine::device::choose(device).map(|c| c.open()) {
        Ok(Ok(Some(d))) => d.name(),
        _ => format!("CPU, {} threads", rayon::current_num_threads()),
    }
}

/// Runs the tests.
///
/// # Errors
/// The device cannot be used, or a name is unknown.
pub fn run(registry: &Registry, device: DeviceChoice, names: &[String]) -> Result<Vec<Row>, Failure> {
    run_on(registry, device, names, false)
}

fn run_on(registry: &Registry, device: DeviceChoice, names: &[String], author: bool) -> Result<Vec<Row>, Failure> {
    let chosen = galamost_engine::device::choose(device).map_err(|e| {
        Failure::Input(vec![galamost_engine::diagnostic::Diagnostic::new("--device".as_ref(), None, e)])
    })?;
    let concrete = match &chosen {
        Chosen::Cpu { .. } => DeviceChoice::Cpu,
        Chosen::Cuda { ordinal, .. } => DeviceChoice::Cuda(*ordinal),
        Chosen::Emulated => DeviceChoice::Emulated,
    };
    let folder = std::env::temp_dir().join(format!("galamost-selftest-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| Failure::run(format!("{}: {e}", folder.display())))?;
    let mut test = Test {
        registry,
        device: concrete,
        other: concrete != DeviceChoice::Cpu,
        folder: folder.clone(),
        author,
        rows: vec![],
    };
    for (_, c) in registry.components() {
        if names.is_empty() || names.contains(&c.name) {
            test.component(c);
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    for name in names {
        if !test.rows.iter().any(|r| r.component == *name) {
            let message = format!("there is no component `{name}`");
            return Err(Failure::Input(vec![galamost_engine::diagnostic::Diagnostic::new(
                "selftest".as_ref(),
                None,
                message,
            )]));
        }
    }
    Ok(test.rows)
}

/// Forces, energy, positions and velocities after some steps; torques and orientations if there are any.
struct Outcome {
    force: Vec<f64>,
    torque: Vec<f64>,
    turned: Vec<f64>,
    topology: Topology,
    energy: f64,
    virial: [f64; 6],
    position: Vec<f64>,
    velocity: Vec<f64>,
}

impl Test<'_> {
    fn note(&mut self, c: &ComponentInfo, check: &str, value: f64, limit: f64, note: impl Into<String>) {
        let row = Row {
            component: c.name.clone(),
            kind: c.kind,
            check: check.into(),
            value,
            limit,
            note: note.into(),
            detail: String::new(),
            skipped: false,
        };
        self.rows.push(row);
    }

    fn skip(&mut self, c: &ComponentInfo, why: String) {
        let row = Row {
            component: c.name.clone(),
            kind: c.kind,
            check: "-".into(),
            value: 0.0,
            limit: 0.0,
            note: why,
            detail: String::new(),
            skipped: true,
        };
        self.rows.push(row);
    }

    /// A plan with this component; an integrator that turns particles moves them if they feel torques.
    fn plan(
        &self,
        c: &ComponentInfo,
        device: DeviceChoice,
        precision: Precision,
        snapshot: Snapshot,
        steps: u64,
        overrides: &[String],
    ) -> Result<Plan, Failure> {
        const TURNING: &str = "RigidVerlet";
        let plan = self.plan_with(c, device, precision, snapshot.clone(), steps, overrides, "VelocityVerlet")?;
        if steps > 0
            && c.kind == Kind::Pair
            && oriented::is_oriented(&plan)
            && self.registry.find(Kind::Integrator, TURNING).is_some()
        {
            return self.plan_with(c, device, precision, snapshot, steps, overrides, TURNING);
        }
        Ok(plan)
    }

    fn plan_with(
        &self,
        c: &ComponentInfo,
        device: DeviceChoice,
        precision: Precision,
        snapshot: Snapshot,
        steps: u64,
        overrides: &[String],
        integrator: &str,
    ) -> Result<Plan, Failure> {
        let mut lists = std::collections::BTreeMap::from([
            ("initial", String::new()),
            ("forces", String::new()),
            ("integrators", String::new()),
            ("updaters", String::new()),
            ("analyzers", String::new()),
        ]);
        lists.insert(c.kind.list(), example(c));
        let lj = "LennardJones(r_cut: 2.5, pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0), (\"A\", \"B\"): (epsilon: 1.0, sigma: 1.0), (\"B\", \"B\"): (epsilon: 1.0, sigma: 1.0) })";
        if matches!(c.kind, Kind::Integrator | Kind::Updater | Kind::Analyzer)
            && self.registry.find(Kind::Pair, "LennardJones").is_some()
        {
            lists.insert("forces", lj.into());
        }
        if !matches!(c.kind, Kind::Integrator | Kind::Generator) && steps > 0 {
            lists.insert("integrators", format!("{integrator}()"));
        }
        let mut text = String::from("(");
        for (name, list) in &lists {
            let _ = write!(text, "{name}: [{list}], ");
        }
        let _ = write!(text, "seed: 7, precision: {}, stages: [(steps: {steps}, dt: 0.001)])", precision.name());
        let path = self.folder.join("selftest.ron");
        let parsed = Pipeline::parse(&path, &text, overrides);
        let mut pipeline = parsed.map_err(|e| {
            Failure::Input(
                e.into_iter().map(|e| galamost_engine::diagnostic::Diagnostic::new(&path, e.at, e.message)).collect(),
            )
        })?;
        pipeline.device = device;
        check(pipeline, self.registry, CheckOptions { snapshot: Some(snapshot), ..CheckOptions::default() })
    }

    fn outcome(
        &self,
        c: &ComponentInfo,
        device: DeviceChoice,
        precision: Precision,
        steps: u64,
    ) -> Result<Outcome, Failure> {
        self.outcome_of(c, device, precision, self.system_of(c), steps)
    }

    /// The standard system; for what writes files that can be read again, with one mass for each type, since many formats hold no
    /// other.
    fn system_of(&self, c: &ComponentInfo) -> Snapshot {
        let mut s = standard_system();
        if c.kind == Kind::Analyzer && self.registry.find(Kind::Generator, &c.name).is_some() {
            s.mass = s.type_id.iter().map(|k| 1.0 + f64::from(*k)).collect();
        }
        s
    }

    fn outcome_of(
        &self,
        c: &ComponentInfo,
        device: DeviceChoice,
        precision: Precision,
        snapshot: Snapshot,
        steps: u64,
    ) -> Result<Outcome, Failure> {
        let plan = self.plan(c, device, precision, snapshot, steps, &[])?;
        let mut backend = galamost_engine::run::open(&plan)?;
        execute(&plan, &mut *backend, &RunOptions { quiet: true, ..RunOptions::default() }, None)?;
        let facts = backend.facts().clone();
        let wants = Wants { particles: true, ..Wants::default() };
        let state = columns(&mut *backend, &facts, wants)?;
        let sums = backend.sums()?;
        let length = backend.box_length();
        let unwrapped = state.position.iter().zip(&state.image);
        let array = |name: &str| match state.arrays.get(name).map(|a| &a.values) {
            Some(Values::Real(v)) => v.clone(),
            _ => vec![],
        };
        Ok(Outcome {
            force: force(&mut *backend, precision)?,
            topology: backend.topology().clone(),
            torque: array("torque"),
            turned: if facts.rotational.is_empty() {
                vec![]
            } else {
                [array("quaternion"), array("angular_momentum")].concat()
            },
            energy: sums.components.iter().map(|s| s.energy).sum(),
            virial: std::array::from_fn(|k| sums.components.iter().map(|s| s.virial[k]).sum()),
            position: unwrapped.flat_map(|(p, i)| (0..3).map(|k| p[k] + length[k] * f64::from(i[k]))).collect(),
            velocity: state.velocity.into_iter().flatten().collect(),
        })
    }

    fn component(&mut self, c: &ComponentInfo) {
        let tested = match c.kind {
            Kind::Pair | Kind::Bonded | Kind::Force => self.force(c),
            Kind::Integrator => self.integrator(c),
            Kind::Generator => self.generator(c),
            Kind::Analyzer | Kind::Updater => self.runs(c),
            Kind::Sampler => self.sampler(c),
        };
        let tested =
            tested.and_then(|()| if self.author && c.kind != Kind::Sampler { self.harness(c) } else { Ok(()) });
        if let Err(e) = tested {
            // its pipeline is a file that nobody has seen
            let pipeline = self.folder.join("selftest.ron").display().to_string();
            let detail = e.render().replace(&pipeline, "the example of its page, as a pipeline");
            let message = detail.lines().find(|l| l.contains("error")).or(detail.lines().next());
            self.note(c, "runs", f64::NAN, 0.0, message.unwrap_or_default().trim().to_string());
            if let Some(row) = self.rows.last_mut() {
                row.detail = detail;
            }
        }
    }

    /// What the batches of a sampler leave behind is the same on the CPU with any number of threads, after a restart, and on
    /// the device, byte for byte.
    fn sampler(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let text = format!("(seed: 7, ensemble: [{}])", example(c));
        let path = self.folder.join("selftest.ron");
        let plan = |device: DeviceChoice| -> Result<Plan, Failure> {
            let mut pipeline = Pipeline::parse(&path, &text, &[]).map_err(|e| {
                Failure::Input(
                    e.into_iter()
                        .map(|e| galamost_engine::diagnostic::Diagnostic::new(&path, e.at, e.message))
                        .collect(),
                )
            })?;
            pipeline.device = device;
            check(pipeline, self.registry, CheckOptions::default())
        };
        let left = |device, steps| -> Result<Vec<u8>, Failure> {
            let plan = plan(device)?;
            let options = RunOptions { quiet: true, steps, ..RunOptions::default() };
            galamost_engine::run::ensemble::run(&plan, &options, None)?;
            Ok(plan.components[0].save()?)
        };
        let truth = left(DeviceChoice::Cpu, None)?;
        let differs = |other: &[u8]| {
            truth.iter().zip(other).filter(|(a, b)| a != b).count().max(truth.len().abs_diff(other.len())) as f64
        };
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().map_err(|e| Failure::run(e.to_string()))?;
        let alone = one.install(|| left(DeviceChoice::Cpu, None))?;
        self.note(c, "CPU, one thread: bytes that differ", differs(&alone), 0.0, "");
        let resumed = {
            let batches = plan(DeviceChoice::Cpu)?.components[0].needs.batches;
            let kept = left(DeviceChoice::Cpu, Some(batches / 2))?;
            let plan = plan(DeviceChoice::Cpu)?;
            let checkpoint = galamost_engine::run::ensemble::checkpoint_at(&plan, batches / 2, kept);
            let options = RunOptions { quiet: true, ..RunOptions::default() };
            galamost_engine::run::ensemble::run(&plan, &options, Some(checkpoint))?;
            plan.components[0].save()?
        };
        self.note(c, "restart: bytes that differ", differs(&resumed), 0.0, "");
        if self.other {
            let device = left(self.device, None)?;
            self.note(c, "device: bytes that differ", differs(&device), 0.0, "");
        }
        Ok(())
    }

    /// Where a component is tested: the CPU in lower precisions, the device in all.
    fn places(&self) -> Vec<(DeviceChoice, Precision, &'static str)> {
        let mut places = vec![
            (DeviceChoice::Cpu, Precision::Single, "CPU single"),
            (DeviceChoice::Cpu, Precision::Mixed, "CPU mixed"),
        ];
        if self.other {
            places.push((self.device, Precision::Double, "device double"));
            places.push((self.device, Precision::Mixed, "device mixed"));
            places.push((self.device, Precision::Single, "device single"));
        }
        places
    }

    fn force(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let truth = self.outcome(c, DeviceChoice::Cpu, Precision::Double, 0)?;
        let largest = truth.force.iter().fold(0.0f64, |m, f| m.max(f.abs()));
        let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, standard_system(), 0, &[])?;
        if plan.components.iter().all(|c| c.needs.conserves_momentum) {
            let sum = |k: usize| truth.force.iter().skip(k).step_by(3).sum::<f64>().abs();
            let total = (0..3).map(sum).fold(0.0, f64::max);
            self.note(c, "sum of forces / largest", total / largest.max(1e-300), 1e-11, "");
        }
        if plan.components.iter().all(|c| c.needs.conservative) {
            self.gradient(c)?;
        }
        for (device, precision, name) in self.places() {
            let o = self.outcome(c, device, precision, 0)?;
            let limit = if precision == Precision::Double { 1e-10 } else { 2e-5 };
            let worst = o.force.iter().zip(&truth.force).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            self.note(c, &format!("{name}: forces"), worst / largest, limit, "");
            let largest = truth.torque.iter().fold(0.0f64, |m, t| m.max(t.abs()));
            if largest > 0.0 {
                let worst = o.torque.iter().zip(&truth.torque).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
                self.note(c, &format!("{name}: torques"), worst / largest, limit, "");
            }
            let scale = truth.energy.abs().max(1.0);
            self.note(c, &format!("{name}: energy"), (o.energy - truth.energy).abs() / scale, limit, "");
            // angular potentials have no trace: the sum is small where its terms are as large as the energy
            let scale = truth.virial.iter().fold(truth.energy.abs().max(1.0), |m, w| m.max(w.abs()));
            let worst = o.virial.iter().zip(&truth.virial).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            self.note(c, &format!("{name}: virial"), worst / scale, limit, "");
        }
        Ok(())
    }

    /// F = −dU/dr: of the pair function itself, or by moving particles of the standard system.
    fn gradient(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, standard_system(), 0, &[])?;
        let mut worst = 0.0f64;
        if let Some(pair) = plan.components.first().and_then(|p| p.pair()) {
            let cutoff = plan.components[0].needs.cutoff;
            if oriented::is_oriented(&plan) {
                let (worst, kinks) = oriented::gradient(&pair, cutoff)?;
                self.note(c, "force, torque against gradient", worst, 1e-7, format!("{kinks} of 1800 at kinks"));
                return Ok(());
            }
            for (i, j) in [(0, 0), (0, 1), (1, 1)] {
                for k in 0..200 {
                    // away from r = 0, and from the jump at the cutoff
                    let r = cutoff * (0.25 + 0.74 * f64::from(k) / 200.0);
                    let h = 1e-4 * r;
                    let u = |x: f64| pair.evaluate(i, j, x * x).map(|(_, u)| u);
                    if u(r + 2.0 * h)? == 0.0 {
                        continue;
                    }
                    let slope = (8.0 * (u(r + h)? - u(r - h)?) - (u(r + 2.0 * h)? - u(r - 2.0 * h)?)) / (12.0 * h);
                    let f = pair.evaluate(i, j, r * r)?.0 * r;
                    worst = worst.max((f + slope).abs() / f.abs().max(slope.abs()).max(1.0));
                }
            }
            self.note(c, "force against gradient", worst, 1e-7, "");
            return Ok(());
        }
        let truth = self.outcome(c, DeviceChoice::Cpu, Precision::Double, 0)?;
        let largest = truth.force.iter().fold(1.0f64, |m, f| m.max(f.abs()));
        let h = 1e-5;
        for tag in [0usize, 17, 333, 998] {
            for k in 0..3 {
                let mut energies = [0.0; 2];
                for (e, sign) in energies.iter_mut().zip([1.0, -1.0]) {
                    let mut s = standard_system();
                    s.position[tag][k] += sign * h;
                    *e = self.outcome_of(c, DeviceChoice::Cpu, Precision::Double, s, 0)?.energy;
                }
                let slope = (energies[0] - energies[1]) / (2.0 * h);
                worst = worst.max((truth.force[3 * tag + k] + slope).abs() / largest);
            }
        }
        self.note(c, "force against gradient", worst, 1e-6, "");
        Ok(())
    }

    fn integrator(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        const STEPS: u64 = 20;
        let truth = self.outcome(c, DeviceChoice::Cpu, Precision::Double, STEPS)?;
        let speed = truth.velocity.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        for (device, precision, name) in self.places() {
            let o = self.outcome(c, device, precision, STEPS)?;
            let limit = if precision == Precision::Double { 1e-10 } else { 2e-5 };
            let worst = |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            self.note(c, &format!("{name}: positions, {STEPS} steps"), worst(&o.position, &truth.position), limit, "");
            let v = worst(&o.velocity, &truth.velocity) / speed;
            self.note(c, &format!("{name}: velocities, {STEPS} steps"), v, limit, "");
            if !truth.turned.is_empty() {
                let v = worst(&o.turned, &truth.turned);
                self.note(c, &format!("{name}: rotation, {STEPS} steps"), v, limit, "");
            }
        }
        Ok(())
    }

    fn generator(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        // some generators need particles, others must be the first
        let on = |s: Snapshot| self.plan(c, DeviceChoice::Cpu, Precision::Double, s, 0, &[]);
        let plan = match on(standard_system()) {
            Ok(p) => p,
            Err(_) => match on(Snapshot::default()) {
                Ok(p) => p,
                Err(e) => {
                    let why = e.render().lines().next().unwrap_or_default().to_string();
                    if example(c).contains("file:") {
                        return self.reader(c, why);
                    }
                    return Err(e);
                }
            },
        };
        let faults = if plan.snapshot.check().is_ok() { 0.0 } else { 1.0 };
        self.note(c, "faults in the generated state", faults, 0.0, format!("{} particles", plan.snapshot.len()));
        Ok(())
    }

    fn runs(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let devices = if self.other { vec![DeviceChoice::Cpu, self.device] } else { vec![DeviceChoice::Cpu] };
        for device in devices {
            // long enough to meet every period an example is likely to have
            self.outcome(c, device, Precision::Mixed, 100)?;
            let name = if device == DeviceChoice::Cpu { "CPU" } else { "device" };
            self.note(c, &format!("{name}: errors in 100 steps"), 0.0, 0.0, "");
        }
        if c.kind == Kind::Updater && self.other {
            // few enough steps for differences to stay those of rounding
            let truth = self.outcome(c, DeviceChoice::Cpu, Precision::Double, 40)?;
            let o = self.outcome(c, self.device, Precision::Double, 40)?;
            let worst = |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            let far = worst(&o.position, &truth.position).max(worst(&o.velocity, &truth.velocity));
            self.note(c, "device double: state, 40 steps", far, 1e-9, "");
            let links = if o.topology == truth.topology { 0.0 } else { 1.0 };
            let note = format!("{} bonds", truth.topology.bonds.len());
            self.note(c, "device double: links, 40 steps", links, 0.0, note);
        }
        Ok(())
    }
}

/// Forces in tag order, three per particle.
fn force(backend: &mut dyn Backend, precision: Precision) -> Result<Vec<f64>, Failure> {
    let bytes = backend.read("force")?;
    let all: Vec<f64> = if precision == Precision::Double {
        bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect()
    } else {
        bytes.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_ne_bytes(*b))).collect()
    };
    Ok(all.as_chunks::<4>().0.iter().flat_map(|f| [f[0], f[1], f[2]]).collect())
}

/// The table for people.
pub fn table(rows: &[Row]) -> String {
    let mut out = format!("{:18} {:11} {:36} {:>10} {:>9}\n", "component", "kind", "check", "deviation", "limit");
    for r in rows {
        let kind = r.kind.to_string();
        if r.skipped {
            let _ = writeln!(out, "{:18} {:11} skipped: {}", r.component, kind, r.note);
            continue;
        }
        let verdict = if r.failed() { "FAILED" } else { "ok" };
        let note = if r.note.is_empty() { String::new() } else { format!("  {}", r.note) };
        let _ = writeln!(
            out,
            "{:18} {:11} {:36} {:10.2e} {:9.1e}  {verdict}{note}",
            r.component, kind, r.check, r.value, r.limit
        );
    }
    for r in rows.iter().filter(|r| !r.detail.is_empty()) {
        let _ = writeln!(out, "\n{}: {}", r.component, r.detail.trim_end());
    }
    let failed = rows.iter().filter(|r| r.failed()).count();
    let skipped = rows.iter().filter(|r| r.skipped).count();
    let _ = writeln!(out, "{} passed, {failed} failed, {skipped} skipped", rows.len() - failed - skipped);
    out
}

/// The table for programs.
pub fn json(rows: &[Row]) -> serde_json::Value {
    let one = |r: &Row| {
        serde_json::json!({
            "component": r.component, "kind": r.kind.to_string(), "check": r.check, "deviation": r.value, "limit": r.limit,
            "failed": r.failed(), "skipped": r.skipped, "note": r.note, "detail": r.detail,
        })
    };
    serde_json::Value::Array(rows.iter().map(one).collect())
}
