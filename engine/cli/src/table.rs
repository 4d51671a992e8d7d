//! `galamost table`: converts, differentiates, plots and makes tables of potentials.

use clap::{Args, Subcommand, ValueEnum};
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::run::{RunOptions, execute};
use galamost_pictures::{Axis, Plot};
use galamost_plugin_api::error::Position;
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};
use galamost_tables::read::{Choice, read};
use galamost_tables::{Curve, Format, Kind, Mistake, Rows, Unit, write};
use std::f64::consts::PI;
use std::path::{Path, PathBuf};

/// What a table is a function of.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum KindName {
    Pair,
    Bond,
    Angle,
    Dihedral,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum UnitName {
    Degrees,
    Radians,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormatName {
    Galamost,
    Votca,
    Lammps,
    Csv,
    Ron,
}

/// How a file is read.
#[derive(Args, Debug)]
pub(crate) struct Reading {
    /// What the table is a function of; GALAMOST files tell it.
    #[arg(long, value_enum)]
    kind: Option<KindName>,
    /// The section of a LAMMPS table.
    #[arg(long, value_name = "NAME")]
    entry: Option<String>,
    /// Columns of the variable, U and, if there are three, F, from 1.
    #[arg(long, value_name = "X,U[,F]", value_delimiter = ',')]
    columns: Option<Vec<u32>>,
    /// Unit of the angles in the file; GALAMOST files are in radians, CSV files tell it.
    #[arg(long, value_enum)]
    unit: Option<UnitName>,
}

/// How a file is written.
#[derive(Args, Debug)]
pub(crate) struct Writing {
    /// The file; its ending tells the format: xml or dat (GALAMOST), pot (VOTCA), table (LAMMPS), csv, ron. Standard output if it is not given.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The format, whatever the file's ending.
    #[arg(long, value_enum)]
    format: Option<FormatName>,
    /// Name of the section in a LAMMPS table.
    #[arg(long, default_value = "TABLE")]
    name: String,
}

/// What `galamost table` does.
#[derive(Subcommand, Debug)]
pub(crate) enum TableCommand {
    /// Writes a table in another format.
    Convert {
        /// The table: GALAMOST, VOTCA, LAMMPS, CSV or plain columns.
        file: PathBuf,
        #[command(flatten)]
        reading: Reading,
        /// Rows, evenly spaced; by default those of the file.
        #[arg(long, value_name = "ROWS")]
        n: Option<usize>,
        #[command(flatten)]
        writing: Writing,
    },
    /// Writes x, U and F = −dU/dx of the spline through a table as CSV, and tells how far the file's own forces are from that.
    Differentiate {
        /// The table.
        file: PathBuf,
        #[command(flatten)]
        reading: Reading,
        /// Rows, evenly spaced; by default those of the file.
        #[arg(long, value_name = "ROWS")]
        n: Option<usize>,
        /// The file; standard output if it is not given.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Plots tables as SVG.
    Plot {
        /// The tables, all of one kind.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        reading: Reading,
        /// F instead of U.
        #[arg(long)]
        force: bool,
        /// Range of the axis of U or F; by default from a little below the lowest value as far above 0, or all.
        #[arg(long, value_name = "LOW,HIGH", value_delimiter = ',', allow_hyphen_values = true)]
        range: Option<Vec<f64>>,
        /// The picture, .svg or .png.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Makes a table of any pair, bond, angle or dihedral component.
    Make {
        /// The component as in a pipeline: 'LennardJones(r_cut: 2.5, pairs: {("A", "A"): (epsilon: 1.0, sigma: 1.0)})'.
        component: String,
        /// The two types of a pair.
        #[arg(long, num_args = 2, value_names = ["TYPE", "TYPE"])]
        pair: Option<Vec<String>>,
        /// The type of a bond, angle or dihedral.
        #[arg(long, value_name = "TYPE")]
        link: Option<String>,
        /// Rows, evenly spaced.
        #[arg(long, value_name = "ROWS", default_value_t = 2001)]
        n: usize,
        /// First r, or angle in degrees; by default 0.3 of the last r, 0, or −180.
        #[arg(long, allow_hyphen_values = true)]
        from: Option<f64>,
        /// Last r, or angle in degrees; by default the cutoff of a pair, 180.
        #[arg(long)]
        to: Option<f64>,
        #[command(flatten)]
        writing: Writing,
    },
}

fn wrong(file: &Path, e: Mistake) -> Failure {
    let at = e.line.map(|line| Position { line, column: 1 });
    Failure::Input(vec![Diagnostic::new(file, at, e.message)])
}

fn wrong_use(message: impl Into<String>) -> Failure {
    wrong("galamost table".as_ref(), Mistake::new(message))
}

/// A table of a file as a function.
struct Read {
    kind: Kind,
    curve: Curve,
    /// x of the rows; radians.
    x: Vec<f64>,
    /// Forces of the file; per radian.
    f: Option<Vec<f64>>,
}

fn read_file(file: &Path, how: &Reading) -> Result<Read, Failure> {
    let text = std::fs::read_to_string(file).map_err(|e| wrong(file, Mistake::new(format!("cannot be read: {e}"))))?;
    let choice = Choice { entry: how.entry.as_deref(), columns: how.columns.as_deref() };
    let rows = read(&text, choice).map_err(|e| wrong(file, e))?;
    let given = how.kind.map(|k| match k {
        KindName::Pair => Kind::Pair,
        KindName::Bond => Kind::Bond,
        KindName::Angle => Kind::Angle,
        KindName::Dihedral => Kind::Dihedral,
    });
    let kind = given.or(rows.kind).unwrap_or(Kind::Pair);
    let unit = how.unit.map(|u| if matches!(u, UnitName::Degrees) { Unit::Degrees } else { Unit::Radians });
    let curve = Curve::new(kind, &rows, unit).map_err(|e| wrong(file, e))?;
    let k = if kind.is_angle() { unit.or(rows.unit).map_or(1.0, Unit::radians) } else { 1.0 };
    let x = rows.x.iter().map(|x| x * k).collect();
    Ok(Read { kind, curve, x, f: rows.f.map(|f| f.iter().map(|f| f / k).collect()) })
}

/// Rows of a function at its own or at evenly spaced places.
fn rows_of(curve: &Curve, own: &[f64], n: Option<usize>) -> Result<Rows, Failure> {
    let x = match n {
        None => own.to_vec(),
        Some(n) => {
            let [first, last] = curve.ends();
            even(first, last, n)?
        }
    };
    let at: Vec<[f64; 3]> = x.iter().map(|x| curve.at(*x)).collect();
    let u = at.iter().map(|a| a[0]).collect();
    Ok(Rows { x, u, f: Some(at.iter().map(|a| -a[1]).collect()), ..Rows::default() })
}

fn even(first: f64, last: f64, n: usize) -> Result<Vec<f64>, Failure> {
    if n < galamost_tables::FEWEST {
        return Err(wrong_use(format!("--n {n}: a table has {} rows at least", galamost_tables::FEWEST)));
    }
    Ok((0..n).map(|k| first + (last - first) * k as f64 / (n - 1) as f64).collect())
}

fn save(text: &str, out: Option<&Path>) -> Result<(), Failure> {
    match out {
        None => print!("{text}"),
        Some(path) => {
            std::fs::write(path, text).map_err(|e| Failure::run(format!("{}: {e}", path.display())))?;
        }
    }
    Ok(())
}

fn save_rows(kind: Kind, rows: &Rows, writing: &Writing) -> Result<(), Failure> {
    let given = writing.format.map(|f| match f {
        FormatName::Galamost => Format::Galamost,
        FormatName::Votca => Format::Votca,
        FormatName::Lammps => Format::Lammps,
        FormatName::Csv => Format::Csv,
        FormatName::Ron => Format::Ron,
    });
    let format = match (given, &writing.out) {
        (Some(f), _) => f,
        (None, None) => Format::Csv,
        (None, Some(path)) => Format::of_file(path).ok_or_else(|| {
            wrong(path, Mistake::new("the ending tells no format: xml, dat, pot, table, csv or ron; or give --format"))
        })?,
    };
    save(&write(format, kind, &writing.name, rows), writing.out.as_deref())
}

/// Runs the command.
///
/// # Errors
/// What is wrong with a table, with its file and line.
pub(crate) fn run(command: &TableCommand, registry: impl Fn() -> Registry) -> Result<u8, Failure> {
    match command {
        TableCommand::Convert { file, reading, n, writing } => {
            let r = read_file(file, reading)?;
            save_rows(r.kind, &rows_of(&r.curve, &r.x, *n)?, writing)?;
        }
        TableCommand::Differentiate { file, reading, n, out } => {
            let r = read_file(file, reading)?;
            if let Some(f) = &r.f {
                let far = |(x, f): (&f64, &f64)| (f + r.curve.at(*x)[1]).abs();
                let worst = r.x.iter().zip(f).map(far).fold(0.0, f64::max);
                let largest = f.iter().fold(0.0f64, |m, f| m.max(f.abs()));
                tracing::info!(
                    "the file's forces are at most {worst:.3e} from −dU/dx; the largest of them is {largest:.3e}"
                );
            }
            save(&write(Format::Csv, r.kind, "", &rows_of(&r.curve, &r.x, *n)?), out.as_deref())?;
        }
        TableCommand::Plot { files, reading, force, range, out } => {
            plot(files, reading, *force, range.as_deref(), out)?
        }
        TableCommand::Make { component, pair, link, n, from, to, writing } => {
            let (kind, rows) = make(&registry(), component, pair.as_deref(), link.as_deref(), *n, [*from, *to])?;
            save_rows(kind, &rows, writing)?;
        }
    }
    Ok(0)
}

fn plot(files: &[PathBuf], reading: &Reading, force: bool, range: Option<&[f64]>, out: &Path) -> Result<(), Failure> {
    let range = match range {
        None => None,
        Some([low, high]) if low < high => Some([*low, *high]),
        Some(_) => return Err(wrong_use("--range wants two numbers, LOW,HIGH")),
    };
    let mut lines = vec![];
    let mut kind = None;
    for file in files {
        let r = read_file(file, reading)?;
        if kind.is_some_and(|k| k != r.kind) {
            return Err(wrong(file, Mistake::new("tables of one plot must be of one kind")));
        }
        kind = Some(r.kind);
        let [first, last] = r.curve.ends();
        let points = even(first, last, 1200)?.into_iter().map(|x| {
            let [u, slope, _] = r.curve.at(x);
            if r.kind.is_angle() {
                [x.to_degrees(), if force { -slope.to_radians() } else { u }]
            } else {
                [x, if force { -slope } else { u }]
            }
        });
        let points = points.collect();
        lines.push(galamost_pictures::Curve { name: file.display().to_string(), points, ..Default::default() });
    }
    let kind = kind.unwrap_or(Kind::Pair);
    // the core of a pair would press everything else flat
    let lowest = lines.iter().flat_map(|l| &l.points).fold(0.0f64, |m, p| m.min(p[1]));
    let around = (kind == Kind::Pair && lowest < 0.0).then_some([1.2 * lowest, -1.5 * lowest]);
    let x = match kind {
        Kind::Angle => "θ, degrees",
        Kind::Dihedral => "φ, degrees",
        _ => "r",
    };
    let y = match (force, kind.is_angle()) {
        (false, _) => "U",
        (true, false) => "F = −dU/dr",
        (true, true) => "F = −dU/dx per degree",
    };
    let y = Axis { range: range.or(around), ..Axis::new(y) };
    crate::plot::save(&Plot::simple(Axis::new(x), y, lines).drawing(), out)
}

/// A plan with one component and this system.
fn plan_of(registry: &Registry, component: &str, snapshot: Snapshot) -> Result<Plan, Failure> {
    let path = Path::new("galamost table make");
    // the component on a line of its own: columns of mistakes are those of the argument
    let text = format!("(initial: [], precision: Double, stages: [(steps: 0, dt: 0.001)], forces: [\n{component}\n])");
    let moved = |at: Option<Position>| at.map(|p| Position { line: p.line.saturating_sub(1).max(1), ..p });
    let told =
        |list: Vec<Diagnostic>| Failure::Input(list.into_iter().map(|d| Diagnostic { at: moved(d.at), ..d }).collect());
    let mut pipeline = Pipeline::parse(path, &text, &[])
        .map_err(|e| told(e.into_iter().map(|e| Diagnostic::new(path, e.at, e.message)).collect()))?;
    pipeline.device = DeviceChoice::Cpu;
    let options = CheckOptions { snapshot: Some(snapshot), ..CheckOptions::default() };
    check(pipeline, registry, options).map_err(|e| match e {
        Failure::Input(list) => told(list),
        other => other,
    })
}

/// A large box, so that no cutoff is too long.
const BOX: f64 = 1e4;

fn empty() -> Snapshot {
    Snapshot { dimensions: 3, box_length: [BOX; 3], ..Snapshot::default() }
}

fn make(
    registry: &Registry,
    component: &str,
    pair: Option<&[String]>,
    link: Option<&str>,
    n: usize,
    ends: [Option<f64>; 2],
) -> Result<(Kind, Rows), Failure> {
    match (pair, link) {
        (Some([a, b]), None) => make_pair(registry, component, [a, b], n, ends).map(|r| (Kind::Pair, r)),
        (None, Some(link)) => make_link(registry, component, link, n, ends),
        _ => Err(wrong_use(
            "make wants the types of a pair, --pair A B, or the type of a bond, angle or dihedral, --link A-A",
        )),
    }
}

fn make_pair(
    registry: &Registry,
    component: &str,
    types: [&str; 2],
    n: usize,
    ends: [Option<f64>; 2],
) -> Result<Rows, Failure> {
    let mut s = empty();
    let kinds = types.map(|t| s.type_id(t));
    for (k, kind) in kinds.into_iter().enumerate() {
        s.push(kind, [k as f64, 0.0, 0.0]);
    }
    for name in ["charge", "diameter"] {
        s.arrays.insert(name.into(), Array { width: 1, values: Values::Real(vec![1.0; 2]) });
    }
    let plan = plan_of(registry, component, s)?;
    let (Some(part), cutoff) = (plan.components[0].pair(), plan.components[0].needs.cutoff) else {
        return Err(wrong_use(format!("{} is no pair potential: give --link", plan.components[0].name)));
    };
    let last = ends[1].unwrap_or(cutoff);
    let first = ends[0].unwrap_or(0.3 * last);
    if !(0.0 < first && first < last) {
        return Err(wrong_use(format!("--from {first} --to {last}: wanted 0 < from < to")));
    }
    let x = even(first, last, n)?;
    let (mut u, mut f) = (vec![], vec![]);
    for r in &x {
        // the last row is the value just inside the cutoff
        let inside = r.min(cutoff * (1.0 - 1e-14));
        let (f_over_r, energy) = part.evaluate(kinds[0], kinds[1], inside * inside)?;
        u.push(energy);
        f.push(f_over_r * inside);
    }
    Ok(Rows { x, u, f: Some(f), ..Rows::default() })
}

/// Many links side by side, each at another distance or angle; the energy of each follows from those of its particles.
fn make_link(
    registry: &Registry,
    component: &str,
    name: &str,
    n: usize,
    ends: [Option<f64>; 2],
) -> Result<(Kind, Rows), Failure> {
    // which kind it is shows when it is bound
    let width = |s: Snapshot| plan_of(registry, component, s).map(|p| p.components[0].needs.link_width);
    let mut s = empty();
    let kind = s.type_id("A");
    s.push(kind, [0.0; 3]);
    for list in [&mut s.bond_types, &mut s.angle_types, &mut s.dihedral_types] {
        list.push(name.into());
    }
    let (kind, default) = match width(s)? {
        2 => (Kind::Bond, [None, None]),
        3 => (Kind::Angle, [Some(0.0), Some(180.0)]),
        4 => (Kind::Dihedral, [Some(-180.0), Some(180.0)]),
        _ => return Err(wrong_use("the component has no bonds, angles or dihedrals: give --pair")),
    };
    let (Some(first), Some(last)) = (ends[0].or(default[0]), ends[1].or(default[1])) else {
        return Err(wrong_use("a bond has no range of its own: give --from and --to"));
    };
    if first >= last {
        return Err(wrong_use(format!("--from {first} --to {last}: wanted from < to")));
    }
    let k = if kind.is_angle() { PI / 180.0 } else { 1.0 };
    let x: Vec<f64> = even(first, last, n)?.into_iter().map(|x| x * k).collect();
    let mut s = empty();
    let a = s.type_id("A");
    for list in [&mut s.bond_types, &mut s.angle_types, &mut s.dihedral_types] {
        list.push(name.into());
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
            s.push(a, r);
        }
        match kind {
            Kind::Angle => s.angles.push(Link { kind: 0, tags: std::array::from_fn(|k| w * i + k as u32) }),
            Kind::Dihedral => s.dihedrals.push(Link { kind: 0, tags: std::array::from_fn(|k| w * i + k as u32) }),
            _ => s.bonds.push(Link { kind: 0, tags: std::array::from_fn(|k| w * i + k as u32) }),
        }
    }
    let plan = plan_of(registry, component, s)?;
    let mut backend = galamost_engine::run::open(&plan)?;
    execute(&plan, &mut *backend, &RunOptions { quiet: true, ..RunOptions::default() }, None)?;
    let bytes = backend.read("force")?;
    let force: Vec<f64> = bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect();
    let w = plan.components[0].needs.link_width as usize;
    let u: Vec<f64> = force.chunks(4 * w).map(|c| c.iter().skip(3).step_by(4).sum()).collect();
    let rows = Rows { x, u, ..Rows::default() };
    // forces are those of the spline through the energies
    let curve = Curve::new(kind, &rows, Some(Unit::Radians)).map_err(|e| wrong("galamost table make".as_ref(), e))?;
    rows_of(&curve, &rows.x, None).map(|r| (kind, r))
}
