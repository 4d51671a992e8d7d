//! `galamost table make`: tabulates a component.

use super::{linspace, usage_error};
use crate::common::parse_errors;
use crate::output::numbers::significant;
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::plugins::{PairHandle, Registry};
use galamost_engine::run::{RunOptions, execute};
use galamost_plugin_api::error::Position;
use galamost_plugin_api::pair::CutoffRow;
use galamost_plugin_api::params::Source;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::{Array, Link, LinkList, Snapshot, Values};
use galamost_tables::{Kind, Rows};
use std::f64::consts::PI;
use std::path::Path;

/// Returns a plan with one component and the given system.
fn plan_of(registry: &Registry, component: &str, snapshot: Snapshot) -> Result<Plan, Failure> {
    let path = Path::new("galamost table make");
    // the component has its own line, so that columns of errors are those of the argument
    let text = format!("(initial: [], precision: Double, stages: [(steps: 0, dt: 0.001)], forces: [\n{component}\n])");
    let in_argument = |at: Option<Position>| at.map(|p| Position { line: p.line.saturating_sub(1).max(1), ..p });
    let relocated = |e: Failure| match e {
        Failure::Input(list) => {
            Failure::Input(list.into_iter().map(|d| Diagnostic { at: in_argument(d.at), ..d }).collect())
        }
        other => other,
    };
    let parsed = Pipeline::parse(path, &text, &[]).map_err(|e| parse_errors(path, e));
    let mut pipeline = parsed.map_err(relocated)?;
    pipeline.device = DeviceChoice::Cpu;
    let options = CheckOptions { snapshot: Some(snapshot), ..CheckOptions::default() };
    check(pipeline, registry, options).map_err(relocated)
}

/// Length of a box that is larger than any cutoff.
const BOX: f64 = 1e4;

fn empty_system() -> Snapshot {
    Snapshot { dimensions: 3, box_length: [BOX; 3], ..Snapshot::default() }
}

/// Tabulates a component for a pair of types, or for a type of bond, angle, dihedral or improper.
///
/// # Errors
/// Returns an error if the component or the options are invalid.
pub(super) fn make(
    registry: &Registry,
    component: &str,
    pair: Option<&[String]>,
    link: Option<&str>,
    n: usize,
    ends: [Option<f64>; 2],
) -> Result<(Kind, Rows), Failure> {
    for (option, end) in [("--from", ends[0]), ("--to", ends[1])] {
        if let Some(end) = end.filter(|e| !e.is_finite()) {
            return Err(usage_error(format!("{option} {end}: a finite number is required")));
        }
    }
    match (pair, link) {
        (Some([a, b]), None) => make_pair(registry, component, [a, b], n, ends).map(|r| (Kind::Pair, r)),
        (None, Some(link)) => make_link(registry, component, link, n, ends),
        _ => Err(usage_error(
            "give the types of a pair, --pair A B, or the type of a bond, angle, dihedral or improper, --link A-A",
        )),
    }
}

/// Jump of U at the cutoff, relative to the largest |U|, that is rounding.
const JUMP: f64 = 1e-12;

/// Returns the types of particles in the keys of `pairs`, which a component of several pairs needs all.
fn other_types(component: &str) -> Vec<String> {
    let fields = Source::file(component).value().after_name().and_then(|v| v.entries().ok()).unwrap_or_default();
    let pairs = fields.into_iter().filter(|(key, _)| key.name == "pairs").filter_map(|(_, v)| v.map().ok()).flatten();
    let names = pairs.filter_map(|(key, _)| key.elements().ok()).flatten();
    names.map(|name| name.text().trim_matches('"').to_string()).filter(|name| !name.contains('*')).collect()
}

/// Returns the cutoff of two of `n` types; `None` if they do not interact.
fn cutoff_of(pair: &PairHandle<'_>, [i, j]: [u32; 2], n: usize) -> Result<Option<f64>, Failure> {
    let code = pair.device(Precision::Double)?;
    let numbers = code.cutoff_rows.as_slice().as_chunks::<8>().0;
    let row = numbers.chunks(CutoffRow::<f64>::default().numbers().len()).nth(i as usize * n + j as usize);
    // cutoff², cutoff, …
    let [squared, cutoff] = [0, 1].map(|k| row.and_then(|r| r.get(k)).map_or(0.0, |x| f64::from_ne_bytes(*x)));
    Ok((squared > 0.0).then_some(cutoff))
}

/// Tabulates a pair potential.
fn make_pair(
    registry: &Registry,
    component: &str,
    types: [&str; 2],
    n: usize,
    ends: [Option<f64>; 2],
) -> Result<Rows, Failure> {
    let mut s = empty_system();
    let ids = types.map(|t| s.type_id(t));
    for name in other_types(component) {
        s.type_id(&name);
    }
    for (k, id) in ids.into_iter().enumerate() {
        s.push(id, [k as f64, 0.0, 0.0]);
    }
    for name in ["charge", "diameter"] {
        s.arrays.insert(name.into(), Array { width: 1, values: Values::Real(vec![1.0; 2]) });
    }
    let plan = plan_of(registry, component, s)?;
    let Some(pair) = plan.components[0].pair() else {
        return Err(usage_error(format!("{} is not a pair potential: give --link", plan.components[0].name)));
    };
    let Some(cutoff) = cutoff_of(&pair, ids, plan.snapshot.types.len())? else {
        let [a, b] = types;
        return Err(usage_error(format!(
            "{} has no interaction of the pair ({a}, {b}); choose another --pair",
            plan.components[0].name
        )));
    };
    let last = ends[1].unwrap_or(cutoff);
    let first = ends[0].unwrap_or(0.3 * last);
    if !(0.0 < first && first < last) {
        return Err(usage_error(format!(
            "the range is {first} … {last}: 0 < from < to is required; give --from and --to"
        )));
    }
    let x = linspace(first, last, n)?;
    let (mut u, mut f) = (vec![], vec![]);
    for r in &x {
        // the row at the cutoff, which may be rounded, has the values just inside; U and F are 0 beyond
        let inside = r.min(cutoff * (1.0 - 1e-14));
        let beyond = *r > cutoff * (1.0 + 1e-14);
        let (f_over_r, energy) = if beyond { (0.0, 0.0) } else { pair.evaluate(ids[0], ids[1], inside * inside)? };
        u.push(energy);
        f.push(f_over_r * inside);
    }
    require_finite("r", &x, &u, &f)?;
    if last > cutoff * (1.0 + 1e-14) {
        let inside = cutoff * (1.0 - 1e-14);
        let (_, jump) = pair.evaluate(ids[0], ids[1], inside * inside)?;
        if jump.abs() > JUMP * u.iter().fold(0.0, |m: f64, u| m.max(u.abs())) {
            tracing::warn!(
                "U jumps from {} to 0 at the cutoff {cutoff}, which a table smooths: end it there with --to {cutoff}, or \
                 give the component a mode such as ShiftEnergy, if it has one",
                significant(jump, 6)
            );
        }
    }
    Ok(Rows { x, u, f: Some(f), ..Rows::default() })
}

/// Returns an error that names the first row with an infinite or undefined value.
fn require_finite(what: &str, x: &[f64], u: &[f64], f: &[f64]) -> Result<(), Failure> {
    for (row, x) in x.iter().enumerate() {
        for (name, values) in [("U", u), ("F", f)] {
            if let Some(value) = values.get(row).filter(|v| !v.is_finite()) {
                let k = row + 1;
                let m =
                    format!("row {k}, {what} = {x:?}: {name} = {value} is not a finite number; change --from or --to");
                return Err(usage_error(m));
            }
        }
    }
    Ok(())
}

/// Tabulates a bonded potential.
fn make_link(
    registry: &Registry,
    component: &str,
    name: &str,
    n: usize,
    ends: [Option<f64>; 2],
) -> Result<(Kind, Rows), Failure> {
    let mut s = system_with_type(name);
    s.push(0, [0.0; 3]);
    // binding the component determines on which links it acts
    let needed = plan_of(registry, component, s)?.components[0].needs.links;
    let Some(list) = needed else {
        return Err(usage_error("the component is not a bond, angle, dihedral or improper potential: give --pair"));
    };
    let (kind, default) = match list {
        LinkList::Bonds => (Kind::Bond, [None, None]),
        LinkList::Angles => (Kind::Angle, [Some(0.0), Some(180.0)]),
        LinkList::Dihedrals | LinkList::Impropers => (Kind::Dihedral, [Some(-180.0), Some(180.0)]),
    };
    let (Some(first), Some(last)) = (ends[0].or(default[0]), ends[1].or(default[1])) else {
        return Err(usage_error("a bond has no default range: give --from and --to"));
    };
    if first >= last || kind == Kind::Bond && first < 0.0 {
        let least = if kind == Kind::Bond { "0 ≤ from < to" } else { "from < to" };
        return Err(usage_error(format!("the range is {first} … {last}: {least} is required")));
    }
    let k = if kind.is_angle() { PI / 180.0 } else { 1.0 };
    let given = linspace(first, last, n)?;
    let x: Vec<f64> = given.iter().map(|x| x * k).collect();
    let probe = LinkProbe { registry, component, name, kind, last };
    let (u, mut f) = probe.values(&x).map_err(|e| probe.first_error(&given, &x, e))?;
    let regular: Vec<f64> = x.iter().map(|x| probe.regular(*x)).collect();
    if regular != x {
        let (nearby, forces) = probe.values(&regular).map_err(|e| probe.first_error(&given, &regular, e))?;
        let differs: Vec<bool> = x.iter().zip(&regular).map(|(x, r)| x != r).collect();
        probe.require_bounded(&given, &differs, [&u, &nearby])?;
        f = forces;
    }
    require_finite(probe.variable(), &given, &u, &f)?;
    Ok((kind, Rows { x, u, f: Some(f), ..Rows::default() }))
}

/// Distance in radians from angles at which forces have no direction.
const DEGENERATE: f64 = 2e-4;

/// Evaluates a bonded component.
struct LinkProbe<'a> {
    registry: &'a Registry,
    component: &'a str,
    /// The type of the links.
    name: &'a str,
    kind: Kind,
    /// The longest bond.
    last: f64,
}

impl LinkProbe<'_> {
    /// Returns U and F = −dU/dx of one link for each distance or angle. U is the sum over the particles of a link, F the force
    /// on its last particle in the direction in which that particle moves with x. Its distance from the axis is 1.
    fn values(&self, x: &[f64]) -> Result<(Vec<f64>, Vec<f64>), Failure> {
        let system = system_with_links(self.name, self.kind, x);
        let particles = system.len() / x.len().max(1);
        let plan = plan_of(self.registry, self.component, system)?;
        let mut backend = galamost_engine::run::open(&plan)?;
        execute(&plan, &mut *backend, &RunOptions { quiet: true, ..RunOptions::default() }, None)?;
        let bytes = backend.read("force")?;
        let numbers: Vec<f64> = bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect();
        let (mut u, mut f) = (vec![], vec![]);
        for (link, x) in numbers.chunks(4 * particles).zip(x) {
            u.push(link.iter().skip(3).step_by(4).sum());
            let last = &link[4 * (particles - 1)..];
            f.push(if self.kind.is_angle() { last[1] * x.cos() - last[0] * x.sin() } else { last[0] });
        }
        Ok((u, f))
    }

    /// Returns x, or a value close to it if forces have no direction at x: at bonds of length 0, and at 0° and 180°.
    fn regular(&self, x: f64) -> f64 {
        match self.kind {
            Kind::Angle if x.sin().abs() < DEGENERATE => x + DEGENERATE * (PI / 2.0 - x).signum(),
            Kind::Bond => x.max(1e-8 * self.last),
            _ => x,
        }
    }

    /// Returns an error that names the rows at which U diverges, although the component limits it: there, U differs from its value close by,
    /// at a regular x, by more than half of its largest value in the rows that are regular themselves.
    fn require_bounded(&self, given: &[f64], differs: &[bool], [u, nearby]: [&[f64]; 2]) -> Result<(), Failure> {
        let regular = u.iter().zip(differs).filter(|(_, differs)| !**differs);
        // without regular rows, nothing exceeds the largest value, NaN
        let largest = regular.fold(f64::NAN, |m, (u, _)| m.max(u.abs()));
        let diverges = |k: &usize| (u[*k] - nearby[*k]).abs() > 0.5 * largest;
        let rows: Vec<usize> = (0..u.len()).filter(diverges).collect();
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(()) };
        let one = |k: usize| format!("row {}, {} = {:?}", k + 1, self.variable(), given[k]);
        let both = if first == last { one(*first) } else { format!("{}, and {}", one(*first), one(*last)) };
        Err(usage_error(format!("{both}: {} diverges there; change --from or --to", self.component_name())))
    }

    /// Returns the name of the component.
    fn component_name(&self) -> &str {
        self.component.split('(').next().unwrap_or_default().trim()
    }

    /// Returns the name of x in messages.
    fn variable(&self) -> &'static str {
        if self.kind.is_angle() { "angle" } else { "r" }
    }

    /// Returns an error that names the first row at which the run fails. Other errors are returned unchanged.
    fn first_error(&self, given: &[f64], x: &[f64], error: Failure) -> Failure {
        if !matches!(error, Failure::Run(..)) {
            return error;
        }
        let (mut valid, mut invalid) = (0, x.len());
        while invalid - valid > 1 {
            let middle = usize::midpoint(valid, invalid);
            if self.values(&x[..middle]).is_ok() { valid = middle } else { invalid = middle }
        }
        let (name, what, at) = (self.component_name(), self.variable(), given[valid]);
        usage_error(format!("row {invalid}, {what} = {at:?}: {name} is not defined there; change --from or --to"))
    }
}

/// Returns an empty system with particle type A and one type of each kind of link.
fn system_with_type(name: &str) -> Snapshot {
    let mut s = empty_system();
    s.type_id("A");
    for list in [&mut s.bond_types, &mut s.angle_types, &mut s.dihedral_types, &mut s.improper_types] {
        list.push(name.into());
    }
    s
}

/// Returns a system with one link for each distance or angle in `x`.
fn system_with_links(name: &str, kind: Kind, x: &[f64]) -> Snapshot {
    let mut s = system_with_type(name);
    if kind == Kind::Bond {
        let longest = x.iter().fold(0.0, |m: f64, x| m.max(*x));
        s.box_length = [BOX.max(4.0 * longest); 3];
    }
    for (i, x) in x.iter().enumerate() {
        let i = i as u32;
        let members: Vec<[f64; 3]> = match kind {
            Kind::Angle => vec![[1.0, 0.0, 0.0], [0.0; 3], [x.cos(), x.sin(), 0.0]],
            Kind::Dihedral => {
                vec![[1.0, 0.0, 0.0], [0.0; 3], [0.0, 0.0, 1.0], [x.cos(), x.sin(), 1.0]]
            }
            _ => vec![[0.0; 3], [*x, 0.0, 0.0]],
        };
        let w = members.len() as u32;
        for r in members {
            s.push(0, r);
        }
        match kind {
            Kind::Angle => s.angles.push(Link { kind: 0, tags: std::array::from_fn(|k| w * i + k as u32) }),
            Kind::Dihedral => {
                let link = Link { kind: 0, tags: std::array::from_fn(|k| w * i + k as u32) };
                s.dihedrals.push(link);
                s.impropers.push(link);
            }
            _ => s.bonds.push(Link { kind: 0, tags: std::array::from_fn(|k| w * i + k as u32) }),
        }
    }
    s
}
