//! `galamost convert system.top sim.ron`: a topology of GROMACS becomes a structure file and a pipeline.

pub(super) mod pipeline;
pub(super) mod text;

use super::{Reader, Writer, refuse_existing};
use crate::common::{Context, OverwriteArgs, input_error, refuse_input, shell_quoted, write_file};
use crate::terminal::print;
use clap::Args;
use galamost_engine::diagnostic::{Diagnostic, Failure, counted};
use galamost_gromacs::{
    Coordinates, DIGITS, ReactionField, Settings, Source, System, Topology, missing_rows, pair_rows, structure,
};
use galamost_plugin_api::error::InputError;
use pipeline::Contents;
use std::path::{Path, PathBuf};
use tracing::{info, warn};

/// The largest number of errors that are shown.
const MAX_ERRORS: usize = 20;

/// Options of a conversion from a topology.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Topologies of GROMACS and force fields (system.top or system.force_field to sim.ron)")]
pub(crate) struct GromacsArgs {
    /// File with the positions and the box, such as system.gro or system.xml.
    #[arg(long, value_name = "FILE")]
    pub(super) coordinates: Option<PathBuf>,
    /// Search this folder for included files; may be given several times.
    #[arg(short = 'I', long, value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// Define a macro, as `define` in an .mdp file; may be given several times.
    #[arg(short = 'D', long, value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// Cutoff of Lennard-Jones and Coulomb interactions in nm [default of topologies: 1.1, that of Martini].
    #[arg(long, value_name = "LENGTH", allow_negative_numbers = true)]
    pub(super) r_cut: Option<f64>,
    /// Relative permittivity inside the cutoff [default of topologies: 15, that of Martini].
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(super) epsilon_r: Option<f64>,
    /// Relative permittivity beyond the cutoff; 0 is infinite [default: infinite].
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    epsilon_rf: Option<f64>,
    /// Temperature in K [default: 300].
    #[arg(long, value_name = "KELVIN", allow_negative_numbers = true)]
    pub(super) temperature: Option<f64>,
    /// Make harmonic bonds of this stiffness (kJ/mol/nm²) of constraints, instead of rows of Constraints.
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    constraints_as_bonds: Option<f64>,
}

/// Returns whether a file is a topology.
pub(crate) fn is_topology(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("top"))
}

impl GromacsArgs {
    /// Returns a positive number of an option.
    pub(super) fn positive(value: Option<f64>, default: f64, option: &str) -> Result<f64, Failure> {
        let value = value.unwrap_or(default);
        if value > 0.0 && value.is_finite() {
            return Ok(value);
        }
        Err(input_error(option, format!("`{value}`: expected a number above 0")))
    }

    /// Returns whether there are options that only topologies have.
    pub(super) fn has_topology_options(&self) -> bool {
        let others = Self {
            coordinates: self.coordinates.clone(),
            r_cut: self.r_cut,
            epsilon_r: self.epsilon_r,
            temperature: self.temperature,
            ..Self::default()
        };
        *self != others
    }

    fn field(&self) -> Result<ReactionField, Failure> {
        let epsilon_rf = match self.epsilon_rf {
            None | Some(0.0) => None,
            Some(e) => Some(Self::positive(Some(e), 0.0, "--epsilon-rf")?),
        };
        let default = ReactionField::default();
        Ok(ReactionField {
            r_cut: Self::positive(self.r_cut, default.r_cut, "--r-cut")?,
            epsilon_r: Self::positive(self.epsilon_r, default.epsilon_r, "--epsilon-r")?,
            epsilon_rf,
        })
    }
}

/// Reads the file of coordinates.
fn coordinates<'a>(path: &'a Path, context: &Context) -> Result<Coordinates<'a>, Failure> {
    let reader = Reader::open(path, &context.registry())?;
    if reader.format == "Pdb" {
        let message = "positions in PDB files are in Å, not in nm; convert the file first: \
                       galamost convert system.pdb system.gro --read \"scale: 10.0\"";
        return Err(input_error(path, message));
    }
    let gro = reader.format == "Gro";
    // the title and the number of atoms precede the atoms; later frames begin elsewhere
    let lines = (gro && reader.frames()? == Some(1)).then_some(2);
    let state = reader.read(None)?;
    if state.is_tilted() {
        return Err(input_error(path, "a topology of GROMACS needs a rectangular box here; this one is triclinic"));
    }
    if state.dimensions != 3 || state.box_length.contains(&0.0) {
        return Err(input_error(path, "a topology needs a box with three lengths"));
    }
    Ok(Coordinates { path, state, lines, name_length: if gro { 5 } else { usize::MAX } })
}

/// Returns the first errors of a file, and how many follow.
pub(super) fn failure(input: &Path, errors: Vec<InputError>) -> Failure {
    let more = errors.len().saturating_sub(MAX_ERRORS);
    let one = |e: InputError| Diagnostic::new(e.file.as_deref().unwrap_or(input), e.at, e.message);
    let mut shown: Vec<Diagnostic> = errors.into_iter().take(MAX_ERRORS).map(one).collect();
    if more > 0 {
        shown.push(Diagnostic::new(input, None, format!("{} more", counted(more as u64, "error"))));
    }
    Failure::Input(shown)
}

/// Returns the name of a file in the folder of the pipeline.
fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the command of this process on one line.
pub(super) fn command() -> String {
    let words = std::env::args_os().skip(1).map(|w| w.to_string_lossy().into_owned());
    let line = std::iter::once("galamost".to_string()).chain(words).collect::<Vec<_>>().join(" ");
    line.chars().filter(|c| !c.is_control()).collect()
}

/// Converts a topology.
///
/// # Errors
/// Returns an error if a file or an option is invalid, or the topology has what no component can express.
pub(crate) fn run(
    input: &Path,
    output: &Path,
    args: &GromacsArgs,
    overwrite: OverwriteArgs,
    context: &Context,
) -> Result<u8, Failure> {
    let field = args.field()?;
    let temperature = GromacsArgs::positive(args.temperature, 300.0, "--temperature")?;
    let stiff = args.constraints_as_bonds.map(|k| GromacsArgs::positive(Some(k), 0.0, "--constraints-as-bonds"));
    if output.extension().is_none_or(|e| e != "ron") {
        return Err(input_error(output, "a topology becomes a pipeline, whose name ends with `.ron`"));
    }
    let file = output.with_extension("xml");
    let Some(path) = &args.coordinates else {
        return Err(input_error(input, "a topology has no positions; name their file with --coordinates system.gro"));
    };
    for file in [output, &file] {
        refuse_input(file, [input, path])?;
        refuse_existing(file, overwrite)?;
    }
    let one = |e: InputError| failure(input, vec![e]);
    let all = |errors: Vec<InputError>| failure(input, errors);
    let settings = Settings { folders: args.include.clone(), defines: args.define.clone() };
    let mut warnings = vec![];
    let topology = Source::read(input, &settings).and_then(|source| Topology::read(source, &mut warnings));
    warnings.iter().for_each(|w| warn!("{w}"));
    let topology = topology.map_err(one)?;
    let system = System::of(&topology, stiff.transpose()?, &field).map_err(all)?;
    let rows = pair_rows(&topology).map_err(all)?;
    let state = structure(&topology, &system, &coordinates(path, context)?).map_err(one)?;
    let mut remarks = system.remarks(&topology);
    remarks.extend(missing_rows(&topology));
    for (at, remark) in &remarks {
        warn!("{}", topology.source.error(*at, remark.as_str()));
    }
    let stem = output.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = Contents {
        topology: &topology,
        system: &system,
        state: &state,
        rows: &rows,
        field,
        temperature,
        command: command(),
        file: name(&file),
        stem,
        remarks: &remarks.into_iter().map(|(_, remark)| remark).collect::<Vec<_>>(),
    }
    .text();
    let writer = Writer::create(&file, Some("GalamostXml"), &format!("digits: {DIGITS}"), &state, &context.registry())?;
    writer.write(&state)?;
    writer.finish()?;
    write_file(output, text)?;
    if state.arrays.contains_key("charge") && args.epsilon_r.is_none() {
        info!("charges interact with the permittivity 15 of Martini; --epsilon-r sets another one");
    }
    print(format!(
        "{} → {}, {}: {}\nCheck it with `galamost check {}`.\n",
        input.display(),
        output.display(),
        file.display(),
        counted(state.len() as u64, "particle"),
        shell_quoted(&output.to_string_lossy())
    ))?;
    Ok(0)
}
