//! `galamost info`: describes a file.

use super::Reader;
use crate::common::{Context, input_error, messages, parse_errors};
use crate::output::series;
use crate::terminal::print;
use clap::Args;
use galamost_engine::checkpoint;
use galamost_engine::diagnostic::Failure;
use galamost_engine::plugins::Registry;
use galamost_engine::state::molecules::molecules;
use galamost_measure::Cell;
use galamost_measure::columns;
use galamost_plugin_api::input;
use galamost_plugin_api::snapshot::{Link, Snapshot, Values};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tracing::warn;

/// Options of `galamost info`.
#[derive(Args, Debug)]
pub(crate) struct InfoArgs {
    /// A particle file, a checkpoint, or a CSV or Parquet table.
    file: PathBuf,
    /// Frame to describe, counted from 0; negative numbers count from the end.
    #[arg(long, value_name = "K", allow_hyphen_values = true, default_value_t = -1)]
    frame: i64,
    /// Component that reads the file, overriding the file extension.
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// Further fields of this component: `types: ["A", "B"]`.
    #[arg(long, value_name = "FIELDS", default_value = "")]
    read: String,
    /// Particle file with types and bonds, for formats without them (DCD, XTC, TRR).
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub(crate) fn run(args: &InfoArgs, context: &Context) -> Result<u8, Failure> {
    let path = &args.file;
    let size = series::size_on_disk(path).map_err(|e| input_error(path, format!("cannot be read: {e}")))?;
    let mut facts = if args.from.is_none() && checkpoint::is_checkpoint(path) {
        describe_checkpoint(path)?
    } else if args.from.is_none() && path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv")) {
        describe_csv(path)?
    } else if args.from.is_none() && series::is_parquet(path) {
        describe_parquet(path)?
    } else {
        describe_particles(args, &context.registry())?
    };
    facts.insert("bytes".into(), size.into());
    let value = Value::Object(facts);
    if args.json {
        print(format!("{value:#}\n"))?;
    } else {
        print(format!("{}\n{}", path.display(), lines(&value, 2)))?;
    }
    Ok(0)
}

/// Formats facts as indented lines.
fn lines(value: &Value, indent: usize) -> String {
    let mut out = String::new();
    let Value::Object(map) = value else { return out };
    let pad = " ".repeat(indent);
    let width = map.keys().map(String::len).max().unwrap_or(0) + 1;
    for (key, value) in map {
        match value {
            Value::Object(inner) if inner.values().any(Value::is_object) => {
                let _ = writeln!(out, "{pad}{key}:");
                out.push_str(&lines(value, indent + 2));
            }
            _ => {
                let _ = writeln!(out, "{pad}{:width$} {}", format!("{key}:"), short(value));
            }
        }
    }
    out
}

/// Formats a fact on one line.
fn short(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Number(n) if n.is_f64() => n.as_f64().map_or_else(String::new, |x| {
            let tiny = x != 0.0 && !(1e-3..1e6).contains(&x.abs());
            if tiny { format!("{x:.6e}") } else { format!("{x:.6}").trim_end_matches('0').trim_end_matches('.').into() }
        }),
        Value::Array(all) => all.iter().map(short).collect::<Vec<_>>().join(" "),
        Value::Object(map) => map.iter().map(|(k, v)| format!("{k} {}", short(v))).collect::<Vec<_>>().join(", "),
        Value::Null => "none".into(),
        other => other.to_string(),
    }
}

fn describe_checkpoint(path: &Path) -> Result<Map<String, Value>, Failure> {
    let a = checkpoint::summary(path).map_err(|e| input_error(path, e))?;
    let mut out = Map::new();
    out.insert("format".into(), "checkpoint".into());
    out.insert("step".into(), a.step.into());
    out.insert("stage".into(), a.stage.into());
    out.insert("particles".into(), a.particles.into());
    out.insert("box".into(), json!(a.box_length));
    out.insert("seed".into(), a.seed.into());
    out.insert("precision".into(), a.precision.into());
    out.insert("device".into(), a.device.into());
    out.insert("engine".into(), a.engine.into());
    out.insert("plugins".into(), json!(a.plugins.iter().map(|(n, v)| format!("{n}-{v}")).collect::<Vec<_>>()));
    out.insert("components".into(), json!(a.components));
    let sizes: Map<String, Value> = a.sections.into_iter().map(|(n, b)| (n, b.into())).collect();
    out.insert("bytes of sections".into(), sizes.into());
    Ok(out)
}

/// Longest name of a column.
const MAX_NAME: usize = 4096;

fn describe_csv(path: &Path) -> Result<Map<String, Value>, Failure> {
    let wrong = |e: csv::Error| {
        let at = e.position().map(|p| galamost_plugin_api::error::Position { line: p.line() as u32, column: 1 });
        Failure::Input(vec![galamost_engine::diagnostic::Diagnostic::new(path, at, e.to_string())])
    };
    let text = input::text(path).map_err(|e| parse_errors(path, vec![e]))?;
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let header = reader.headers().map_err(wrong)?.clone();
    if header.is_empty() {
        return Err(input_error(path, "empty file: expected a header line and rows of numbers"));
    }
    if let Some(long) = header.iter().map(str::len).find(|n| *n > MAX_NAME) {
        return Err(input_error(path, format!("this is no table: the header has a name of {long} characters")));
    }
    let (mut rows, mut last) = (0u64, csv::StringRecord::new());
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(wrong)? {
        rows += 1;
        std::mem::swap(&mut record, &mut last);
    }
    let mut out = Map::new();
    out.insert("format".into(), "CSV".into());
    out.insert("rows".into(), rows.into());
    out.insert("columns".into(), header.len().into());
    let number = |v: &str| v.parse::<f64>().map_or_else(|_| json!(v), |x| json!(x));
    let row: Map<String, Value> = if rows == 0 {
        header.iter().map(|n| (n.to_string(), Value::Null)).collect()
    } else {
        header.iter().zip(last.iter()).map(|(n, v)| (n.to_string(), number(v))).collect()
    };
    out.insert("last row".into(), row.into());
    Ok(out)
}

fn describe_parquet(path: &Path) -> Result<Map<String, Value>, Failure> {
    let table = series::read_parquet(path)?;
    let mut out = Map::new();
    out.insert("format".into(), "Parquet".into());
    if path.is_dir() {
        out.insert("parts".into(), columns::files(path).map_or(0, |f| f.len()).into());
    }
    let rows = table.first().map_or(0, columns::Column::len);
    out.insert("rows".into(), rows.into());
    out.insert("columns".into(), table.len().into());
    let last = |c: &columns::Column| match rows.checked_sub(1).and_then(|k| c.cell(k)) {
        Some(Cell::Int(x)) => json!(x),
        Some(Cell::Number(x)) => json!(x),
        Some(Cell::Text(x)) => json!(x),
        None => Value::Null,
    };
    let row: Map<String, Value> = table.iter().map(|c| (c.name.clone(), last(c))).collect();
    out.insert("last row".into(), row.into());
    Ok(out)
}

fn describe_particles(args: &InfoArgs, registry: &Registry) -> Result<Map<String, Value>, Failure> {
    let reader = Reader::open_with(&args.file, args.from.as_deref(), &args.read, registry)?;
    let reader = reader.with_topology(args.topology.as_deref(), registry)?;
    let frames = reader.frames()?;
    let s = reader.read(Some(args.frame))?;
    let mut out = Map::new();
    out.insert("format".into(), reader.format.clone().into());
    out.insert("frames".into(), frames.map_or(json!(1), |n| json!(n)));
    if frames.is_some_and(|n| n > 1) {
        // other frames may be damaged, or have other particles than the topology
        let step = |k: i64, which: &str| match reader.read(Some(k)) {
            Ok(s) => Some(s.step),
            Err(e) => {
                warn!("the {which} frame cannot be read: {}", messages(e));
                None
            }
        };
        out.insert("steps".into(), json!({"first": step(0, "first"), "last": step(-1, "last")}));
    }
    out.insert("step".into(), s.step.into());
    out.extend(describe_state(&s));
    Ok(out)
}

/// Counts the elements of each type.
fn by_type(names: &[String], types: impl Iterator<Item = u32>) -> Value {
    let mut counts = vec![0u64; names.len()];
    types.for_each(|k| counts[k as usize] += 1);
    Value::Object(names.iter().cloned().zip(counts.into_iter().map(Value::from)).collect())
}

/// Adds number and types of the links of a list.
fn links<const N: usize>(out: &mut Map<String, Value>, what: &str, links: &[Link<N>], names: &[String]) {
    out.insert(what.into(), links.len().into());
    if !names.is_empty() {
        out.insert(format!("{what} by type"), by_type(names, links.iter().map(|l| l.kind)));
    }
}

/// Returns the smallest and the largest value.
fn range(values: impl Iterator<Item = f64>) -> Value {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
    json!({"from": low, "to": high})
}

/// Describes a state.
fn describe_state(s: &Snapshot) -> Map<String, Value> {
    let mut out = Map::new();
    let (n, d) = (s.len() as f64, s.dimensions as usize);
    out.insert("particles".into(), s.len().into());
    out.insert("particles by type".into(), by_type(&s.types, s.type_id.iter().copied()));
    out.insert("dimensions".into(), s.dimensions.into());
    out.insert("box".into(), json!(s.box_length[..d]));
    if s.is_tilted() {
        out.insert("tilt factors".into(), json!(s.tilt));
    }
    out.insert("number density".into(), json!(n / s.volume()));
    links(&mut out, "bonds", &s.bonds, &s.bond_types);
    links(&mut out, "angles", &s.angles, &s.angle_types);
    links(&mut out, "dihedrals", &s.dihedrals, &s.dihedral_types);
    links(&mut out, "impropers", &s.impropers, &s.improper_types);
    if let Some(of) = molecules(s) {
        let mut sizes = BTreeMap::<u32, u64>::new();
        of.iter().for_each(|m| *sizes.entry(*m).or_default() += 1);
        let (least, most) = (sizes.values().min().copied(), sizes.values().max().copied());
        let mean = n / sizes.len().max(1) as f64;
        out.insert("molecules".into(), json!({"number": sizes.len(), "least": least, "mean": mean, "most": most}));
    }
    out.insert("masses".into(), range(s.mass.iter().copied()));
    describe_velocities(&mut out, s);
    let images = s.image.as_flattened();
    if images.iter().any(|i| *i != 0) {
        out.insert("images".into(), range(images.iter().map(|i| f64::from(*i))));
    }
    for (name, a) in &s.arrays {
        let mut value = match &a.values {
            Values::Real(v) => range(v.iter().copied()),
            Values::Int(v) => range(v.iter().map(|i| f64::from(*i))),
        };
        if let (Values::Real(v), true, Value::Object(map)) = (&a.values, name == "charge", &mut value) {
            map.insert("sum".into(), json!(v.iter().sum::<f64>()));
        }
        out.insert(name.clone(), value);
    }
    out
}

/// Adds temperature and momentum.
fn describe_velocities(out: &mut Map<String, Value>, s: &Snapshot) {
    // beads of bodies and sites have no mass: they move with others
    let n = s.mass.iter().filter(|m| **m > 0.0).count() as f64;
    let d = s.dimensions as usize;
    let total: f64 = s.mass.iter().sum();
    let mut momentum = [0.0; 3];
    for (v, m) in s.velocity.iter().zip(&s.mass) {
        (0..3).for_each(|k| momentum[k] += m * v[k]);
    }
    if s.velocity.as_flattened().iter().any(|v| *v != 0.0) {
        let mean = momentum.map(|p| p / total);
        let twice: f64 = s
            .velocity
            .iter()
            .zip(&s.mass)
            .map(|(v, m)| m * (0..d).map(|k| (v[k] - mean[k]).powi(2)).sum::<f64>())
            .sum();
        // d N − d degrees of freedom: the center of mass is at rest; without any, the temperature is undefined
        if n > 1.0 {
            out.insert("kT".into(), json!(twice / (d as f64 * (n - 1.0))));
        }
        out.insert("momentum".into(), json!(momentum[..d]));
    } else {
        out.insert("velocities".into(), "none".into());
    }
}
