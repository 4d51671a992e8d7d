//! `galamost table`: converts, differentiates, plots and creates tables of potentials.

mod make;

use crate::common::{Context, OverwriteArgs, parse_errors, refuse_input};
use crate::terminal::print;
use clap::{Args, Subcommand, ValueEnum};
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_pictures::{Axis, Plot};
use galamost_plugin_api::error::Position;
use galamost_plugin_api::input;
use galamost_tables::read::{Choice, contradicted_kind, lammps_kinds, read};
use galamost_tables::{Curve, Format, Kind, Mistake, Rows, Unit, write, written_rows};
use std::path::{Path, PathBuf};

/// Interaction of a table.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum KindName {
    Pair,
    Bond,
    Angle,
    Dihedral,
}

/// Unit of angles.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum UnitName {
    Degrees,
    Radians,
}

/// Format of a table.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormatName {
    Galamost,
    Votca,
    Lammps,
    Csv,
    Ron,
}

/// Options for reading a table.
#[derive(Args, Debug)]
pub(crate) struct ReadingArgs {
    /// Interaction of the table [default: pair, with a warning]. GALAMOST files contain it. LAMMPS files need it unless a comment or
    /// a parameter states it.
    #[arg(long, value_enum)]
    kind: Option<KindName>,
    /// Section of a LAMMPS table.
    #[arg(long, value_name = "NAME")]
    entry: Option<String>,
    /// Columns of x, U and optionally F, counted from 1 [default: by the names in the header of a CSV file, otherwise 1,2].
    #[arg(long, value_name = "X,U[,F]", value_delimiter = ',')]
    columns: Option<Vec<u32>>,
    /// Unit of the angles in the file; GALAMOST files use radians, LAMMPS files degrees, CSV files contain it.
    #[arg(long, value_enum)]
    unit: Option<UnitName>,
}

/// Options for writing a table.
#[derive(Args, Debug)]
pub(crate) struct WritingArgs {
    /// Output file [default: standard output]. Its extension selects the format: xml or dat (GALAMOST), pot (VOTCA),
    /// table (LAMMPS), csv, ron.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: OverwriteArgs,
    /// Output format, overriding the file extension.
    #[arg(long, value_enum)]
    format: Option<FormatName>,
    /// Section name in a LAMMPS table.
    #[arg(long, default_value = "TABLE")]
    name: String,
}

/// Options of `galamost table`.
#[derive(Args, Debug)]
pub(crate) struct TableArgs {
    #[command(subcommand)]
    command: TableCommand,
}

/// Subcommands of `galamost table`.
#[derive(Subcommand, Debug)]
pub(crate) enum TableCommand {
    /// Convert a table to another format.
    Convert {
        /// Table in GALAMOST, VOTCA, LAMMPS or CSV format, or plain columns.
        file: PathBuf,
        #[command(flatten)]
        reading: ReadingArgs,
        /// Number of evenly spaced rows [default: the rows of the file].
        #[arg(long, value_name = "ROWS")]
        n: Option<usize>,
        #[command(flatten)]
        writing: WritingArgs,
    },
    /// Write x, U and F = −dU/dx of the spline through a table as CSV, and compare the forces with those of the file.
    Differentiate {
        /// Table to differentiate.
        file: PathBuf,
        #[command(flatten)]
        reading: ReadingArgs,
        /// Number of evenly spaced rows [default: the rows of the file].
        #[arg(long, value_name = "ROWS")]
        n: Option<usize>,
        /// Output file [default: standard output].
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        overwrite: OverwriteArgs,
    },
    /// Plot tables as SVG or PNG.
    Plot {
        /// Tables of the same interaction.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        reading: ReadingArgs,
        /// Plot F instead of U.
        #[arg(long)]
        force: bool,
        /// Range of the vertical axis [default: for pairs, around the minimum; otherwise all values].
        #[arg(long, value_name = "LOW,HIGH", value_delimiter = ',', allow_hyphen_values = true)]
        range: Option<Vec<f64>>,
        /// Output file, .svg or .png.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        #[command(flatten)]
        overwrite: OverwriteArgs,
    },
    /// Tabulate any pair, bond, angle, dihedral or improper component.
    Make {
        /// Component as in a pipeline: 'LennardJones(r_cut: 2.5, pairs: {("A", "A"): (epsilon: 1.0, sigma: 1.0)})'.
        component: String,
        /// The two particle types of a pair potential.
        #[arg(long, num_args = 2, value_names = ["TYPE", "TYPE"])]
        pair: Option<Vec<String>>,
        /// Type of a bond, angle, dihedral or improper.
        #[arg(long, value_name = "TYPE")]
        link: Option<String>,
        /// Number of evenly spaced rows.
        #[arg(long, value_name = "ROWS", default_value_t = 2001)]
        n: usize,
        /// First r, or angle in degrees [default: 0.3 × last r, 0 for angles, −180 for dihedrals].
        #[arg(long, allow_hyphen_values = true)]
        from: Option<f64>,
        /// Last r, or angle in degrees [default: the cutoff of a pair; 180].
        #[arg(long)]
        to: Option<f64>,
        #[command(flatten)]
        writing: WritingArgs,
    },
}

/// Returns an error in a table file.
fn table_error(file: &Path, e: Mistake) -> Failure {
    let at = e.line.map(|line| Position { line, column: 1 });
    Failure::Input(vec![Diagnostic::new(file, at, e.message)])
}

/// Returns an error about the command line.
fn usage_error(message: impl Into<String>) -> Failure {
    table_error("galamost table".as_ref(), Mistake::new(message))
}

/// A table as a function.
struct TableFunction {
    kind: Kind,
    curve: Curve,
    /// x of the rows; angles in radians.
    x: Vec<f64>,
    /// Forces of the file; per radian for angles.
    f: Option<Vec<f64>>,
}

/// Reads a table file.
fn read_table(file: &Path, how: &ReadingArgs) -> Result<TableFunction, Failure> {
    let text = input::text(file).map_err(|e| parse_errors(file, vec![e]))?;
    let choice = Choice { entry: how.entry.as_deref(), columns: how.columns.as_deref() };
    // fields of table components are options here
    let in_options = |e: Mistake| Mistake {
        message: e.message.replace("`entry`", "--entry").replace("`columns`", "--columns"),
        ..e
    };
    let rows = read(&text, choice).map_err(|e| table_error(file, in_options(e)))?;
    let given = how.kind.map(|k| match k {
        KindName::Pair => Kind::Pair,
        KindName::Bond => Kind::Bond,
        KindName::Angle => Kind::Angle,
        KindName::Dihedral => Kind::Dihedral,
    });
    let possible = lammps_kinds(&text, how.entry.as_deref());
    let stated = match possible {
        Some([one]) => Some(*one),
        Some([Kind::Bond, Kind::Angle]) if given.is_none() => {
            let message = "EQ is a parameter of tables of bonds and of angles; give --kind bond or --kind angle";
            return Err(table_error(file, Mistake::new(message)));
        }
        Some([_, _, ..]) if given.is_none() => {
            let message = "no comment and no parameter of this LAMMPS table states whether it is one of pairs, bonds, \
                           angles or dihedrals; give --kind";
            return Err(table_error(file, Mistake::new(message)));
        }
        _ => None,
    };
    let known = given.or(rows.kind).or(stated);
    if known.is_none() && rows.unit.is_some() {
        let message = "the variable is an angle; give --kind angle or --kind dihedral";
        return Err(table_error(file, Mistake::new(message)));
    }
    let kind = known.unwrap_or_else(|| {
        tracing::warn!(
            "{}: the file does not state its kind of interaction, so it is read as a table of pairs; otherwise give --kind",
            file.display()
        );
        Kind::Pair
    });
    if let Some(doubt) = contradicted_kind(&text, choice.entry, kind) {
        tracing::warn!("{}: {doubt}", file.display());
    }
    let unit = how.unit.map(|u| if matches!(u, UnitName::Degrees) { Unit::Degrees } else { Unit::Radians });
    // LAMMPS tables are in degrees unless their parameters contain RADIANS
    let unit = unit.or((possible.is_some() && rows.unit.is_none()).then_some(Unit::Degrees));
    let curve = Curve::new(kind, &rows, unit).map_err(|e| table_error(file, e))?;
    let k = if kind.is_angle() { unit.or(rows.unit).map_or(1.0, Unit::radians) } else { 1.0 };
    let x = rows.x.iter().map(|x| x * k).collect();
    Ok(TableFunction { kind, curve, x, f: rows.f.map(|f| f.iter().map(|f| f / k).collect()) })
}

/// Returns rows of a function at the given x, or at `n` evenly spaced x.
fn sample(curve: &Curve, own: &[f64], n: Option<usize>) -> Result<Rows, Failure> {
    let x = match n {
        None => own.to_vec(),
        Some(n) => {
            let [first, last] = curve.ends();
            linspace(first, last, n)?
        }
    };
    let at: Vec<[f64; 3]> = x.iter().map(|x| curve.at(*x)).collect();
    let u = at.iter().map(|a| a[0]).collect();
    Ok(Rows { x, u, f: Some(at.iter().map(|a| -a[1]).collect()), ..Rows::default() })
}

/// Returns `n` evenly spaced numbers.
fn linspace(first: f64, last: f64, n: usize) -> Result<Vec<f64>, Failure> {
    if n < galamost_tables::FEWEST {
        return Err(usage_error(format!("--n {n}: a table has at least {} rows", galamost_tables::FEWEST)));
    }
    // x, U, F and the text of each row
    galamost_plugin_api::memory::require(format_args!("--n {n}"), 100.0 * n as f64).map_err(usage_error)?;
    Ok((0..n).map(|k| first + (last - first) * k as f64 / (n - 1) as f64).collect())
}

/// Writes a text to a file or to standard output.
fn save(text: &str, out: Option<&Path>, overwrite: OverwriteArgs) -> Result<(), Failure> {
    match out {
        None => print(text),
        Some(path) => overwrite.write(path, text),
    }
}

/// Writes a table in the format that the options select.
fn save_rows(kind: Kind, rows: &Rows, writing: &WritingArgs) -> Result<(), Failure> {
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
            let message = "unknown file extension: use xml, dat, pot, table, csv or ron, or give --format";
            table_error(path, Mistake::new(message))
        })?,
    };
    let (n, all) = (written_rows(format, kind, rows), rows.x.len());
    if n < all {
        let more = all + 1;
        tracing::info!(
            "{n} rows instead of {all}: a LAMMPS table does not repeat the first row after 360°; for {all} rows, give --n {more}"
        );
    }
    save(&write(format, kind, &writing.name, rows), writing.out.as_deref(), writing.overwrite)
}

/// Runs the command.
///
/// # Errors
/// Returns an error if a table or an option is invalid.
pub(crate) fn run(args: &TableArgs, context: &Context) -> Result<u8, Failure> {
    match &args.command {
        TableCommand::Convert { file, reading, n, writing } => {
            writing.out.iter().try_for_each(|out| refuse_input(out, [file]))?;
            let r = read_table(file, reading)?;
            save_rows(r.kind, &sample(&r.curve, &r.x, *n)?, writing)?;
        }
        TableCommand::Differentiate { file, reading, n, out, overwrite } => {
            out.iter().try_for_each(|out| refuse_input(out, [file]))?;
            let r = read_table(file, reading)?;
            if let Some(f) = &r.f {
                let far = |(x, f): (&f64, &f64)| (f + r.curve.at(*x)[1]).abs();
                let worst = r.x.iter().zip(f).map(far).fold(0.0, f64::max);
                let largest = f.iter().fold(0.0f64, |m, f| m.max(f.abs()));
                tracing::info!(
                    "the forces of the file differ from −dU/dx by at most {worst:.3e}; the largest force is {largest:.3e}"
                );
            }
            save(&write(Format::Csv, r.kind, "", &sample(&r.curve, &r.x, *n)?), out.as_deref(), *overwrite)?;
        }
        TableCommand::Plot { files, reading, force, range, out, overwrite } => {
            refuse_input(out, files)?;
            plot(files, reading, *force, range.as_deref(), out, *overwrite)?
        }
        TableCommand::Make { component, pair, link, n, from, to, writing } => {
            let (kind, rows) =
                make::make(&context.registry(), component, pair.as_deref(), link.as_deref(), *n, [*from, *to])?;
            save_rows(kind, &rows, writing)?;
        }
    }
    Ok(0)
}

/// Plots tables.
fn plot(
    files: &[PathBuf],
    reading: &ReadingArgs,
    force: bool,
    range: Option<&[f64]>,
    out: &Path,
    overwrite: OverwriteArgs,
) -> Result<(), Failure> {
    let range = match range {
        None => None,
        Some([low, high]) if low < high => Some([*low, *high]),
        Some(_) => return Err(usage_error("--range expects two numbers, LOW,HIGH with LOW < HIGH")),
    };
    let mut lines = vec![];
    let mut kind = None;
    for file in files {
        let r = read_table(file, reading)?;
        if kind.is_some_and(|k| k != r.kind) {
            return Err(table_error(file, Mistake::new("all tables of a plot must be of the same interaction")));
        }
        kind = Some(r.kind);
        let [first, last] = r.curve.ends();
        let points = linspace(first, last, 1200)?.into_iter().map(|x| {
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
    // the repulsive core of a pair would dominate the vertical axis
    let lowest = lines.iter().flat_map(|l| &l.points).fold(0.0f64, |m, p| m.min(p[1]));
    let default_range = (kind == Kind::Pair && lowest < 0.0).then_some([1.2 * lowest, -1.5 * lowest]);
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
    let y = Axis { range: range.or(default_range), ..Axis::new(y) };
    crate::plot::save(&Plot::simple(Axis::new(x), y, lines).drawing(), out, overwrite)
}
