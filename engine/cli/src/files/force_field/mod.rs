//! `galamost convert system.force_field sim.ron`: a force-field file of GALAMOST or PyGAMD becomes a pipeline.

mod interactions;
mod pipeline;
mod sections;

use super::Reader;
use super::gromacs::{GromacsArgs, command, failure};
use crate::common::{Context, input_error, write_file};
use crate::terminal::print;
use clap::{Args, ValueEnum};
use galamost_engine::diagnostic::{Failure, counted};
use galamost_plugin_api::snapshot::{Snapshot, Values};
use interactions::Interactions;
use pipeline::Contents;
use sections::ForceField;
use std::path::Path;

/// Lists whose pairs are excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum List {
    Bonds,
    Angles,
    Dihedrals,
    Sites,
    None,
}

/// How charges interact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Coulomb {
    /// The shift function of GROMACS, as LJCoulombShiftForce.
    Shift,
    ReactionField,
    /// As LJEwaldForce with PPPM or ENUF.
    Pppm,
    /// Charges do not interact.
    None,
}

/// Options of a conversion from a force-field file.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Force fields of GALAMOST and PyGAMD (system.force_field sim.ron)")]
pub(crate) struct ForceFieldArgs {
    /// Lists whose pairs have no pair force, separated by commas: bonds, angles, dihedrals, sites, none.
    #[arg(long, value_name = "LISTS", value_delimiter = ',')]
    exclude: Vec<List>,
    /// Start of the shift function of LJCoulombShiftForce and LJShiftForce in nm.
    #[arg(long, value_name = "LENGTH", allow_negative_numbers = true)]
    r_shift: Option<f64>,
    /// Interaction of charges.
    #[arg(long, value_name = "FORM")]
    coulomb: Option<Coulomb>,
}

/// Excluded pairs.
#[derive(Clone, Copy, Debug)]
struct Exclude {
    bonds: bool,
    angles: bool,
    dihedrals: bool,
    sites: bool,
}

impl Exclude {
    /// Returns the entries of the field `exclude`. Bonds between sites and their particles are excluded as bonds.
    fn lists(self) -> Vec<&'static str> {
        let all = [(self.bonds || self.sites, "Bonds"), (self.angles, "Angles"), (self.dihedrals, "Dihedrals")];
        all.into_iter().filter(|(on, _)| *on).map(|(_, name)| name).collect()
    }
}

/// What the script of a simulation sets, instead of its force-field file.
#[derive(Clone, Copy, Debug)]
struct Settings {
    r_cut: f64,
    r_shift: Option<f64>,
    epsilon_r: f64,
    coulomb: Coulomb,
    exclude: Exclude,
    temperature: f64,
}

/// Returns whether a file is a force-field file.
pub(crate) fn is_force_field(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("force_field"))
}

impl ForceFieldArgs {
    /// Returns all settings. Those that change forces have no defaults.
    fn settings(&self, shared: &GromacsArgs, charged: bool) -> Result<Settings, Failure> {
        if shared.has_topology_options() {
            return Err(input_error(
                "-I, -D, --epsilon-rf, --constraints-as-bonds",
                "these options need a topology (.top)",
            ));
        }
        let missing = |option: &str, what: &str| input_error(option, format!("is missing: {what}"));
        if self.exclude.is_empty() {
            return Err(missing(
                "--exclude",
                "lists whose pairs are excluded, such as `bonds,angles,dihedrals`, or `none`",
            ));
        }
        let r_cut =
            shared.r_cut.ok_or_else(|| missing("--r-cut", "a force-field file has no cutoff; the script sets it"))?;
        let r_cut = GromacsArgs::positive(Some(r_cut), 0.0, "--r-cut")?;
        if let Some(r) = self.r_shift.filter(|r| !(0.0..r_cut).contains(r)) {
            return Err(input_error(
                "--r-shift",
                format!("`{r}`: expected a number from 0 to below the cutoff, {r_cut}"),
            ));
        }
        let coulomb = match (self.coulomb, self.r_shift) {
            (Some(Coulomb::Shift), None) => {
                return Err(missing("--r-shift", "the start of the shift function of `--coulomb shift`"));
            }
            (Some(form), _) => form,
            (None, _) if !charged => Coulomb::None,
            (None, Some(_)) => Coulomb::Shift,
            (None, None) => {
                return Err(missing(
                    "--coulomb",
                    "the particles have charges; choose shift, reaction-field, pppm or none",
                ));
            }
        };
        let epsilon_r = match (coulomb, shared.epsilon_r) {
            (Coulomb::None, _) => 1.0,
            (_, Some(e)) => GromacsArgs::positive(Some(e), 0.0, "--epsilon-r")?,
            (_, None) => return Err(missing("--epsilon-r", "the permittivity, which the script sets")),
        };
        let has = |list| self.exclude.contains(&list);
        Ok(Settings {
            r_cut,
            r_shift: self.r_shift,
            epsilon_r,
            coulomb,
            exclude: Exclude {
                bonds: has(List::Bonds),
                angles: has(List::Angles),
                dihedrals: has(List::Dihedrals),
                sites: has(List::Sites),
            },
            temperature: GromacsArgs::positive(shared.temperature, 300.0, "--temperature")?,
        })
    }
}

/// Returns whether some particle has a charge.
fn charged(s: &Snapshot) -> bool {
    matches!(s.arrays.get("charge").map(|a| &a.values), Some(Values::Real(q)) if q.iter().any(|q| *q != 0.0))
}

/// Returns how a pipeline names a file: relative to its folder if the file is in it.
fn name_in(pipeline: &Path, file: &Path) -> Result<String, Failure> {
    let whole = |p: &Path| std::path::absolute(p).map_err(|e| input_error(p, e.to_string()));
    let (file, pipeline) = (whole(file)?, whole(pipeline)?);
    let inside = pipeline.parent().and_then(|folder| file.strip_prefix(folder).ok());
    Ok(inside.unwrap_or(&file).to_string_lossy().into_owned())
}

/// Converts a force-field file.
///
/// # Errors
/// Returns an error if a file or an option is invalid, or the file has no parameters for a type of the structure.
pub(crate) fn run(
    input: &Path,
    output: &Path,
    args: &ForceFieldArgs,
    shared: &GromacsArgs,
    context: &Context,
) -> Result<u8, Failure> {
    if output.extension().is_none_or(|e| e != "ron") {
        return Err(input_error(output, "a force field becomes a pipeline, whose name ends with `.ron`"));
    }
    if output.exists() {
        return Err(input_error(output, "exists; remove it or choose another name"));
    }
    let Some(path) = &shared.coordinates else {
        return Err(input_error(
            input,
            "a force field has no particles; name their file with --coordinates system.xml",
        ));
    };
    let field = ForceField::read(input).map_err(|errors| failure(input, errors))?;
    let reader = Reader::open(path, &context.registry())?;
    let state = reader.read(None)?;
    let settings = args.settings(shared, charged(&state))?;
    let present = |k: &usize| state.type_id.contains(&(*k as u32));
    let types: Vec<&String> = (0..state.types.len()).filter(present).map(|k| &state.types[k]).collect();
    let mut interactions = Interactions::of(&field, &state);
    let mut errors = std::mem::take(&mut interactions.errors);
    let pairs = interactions::pairs(&field, &types).unwrap_or_else(|e| {
        errors.extend(e);
        vec![]
    });
    if !errors.is_empty() {
        return Err(failure(input, errors));
    }
    let contents = Contents {
        settings: &settings,
        state: &state,
        reader: reader.format.clone(),
        structure: name_in(output, path)?,
        pairs,
        interactions,
        command: command(),
        stem: output.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    };
    write_file(output, contents.text().map_err(|message| input_error(path, message))?)?;
    print(format!(
        "{} → {}: {}\nCheck it with `galamost check {}`.\n",
        input.display(),
        output.display(),
        counted(state.len() as u64, "particle"),
        output.display()
    ))?;
    Ok(0)
}
