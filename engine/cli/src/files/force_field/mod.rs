//! `galamost convert system.force_field sim.ron`: a force-field file of GALAMOST or PyGAMD becomes a pipeline.

mod interactions;
mod pipeline;
mod sections;
mod settings;

use super::gromacs::{GromacsArgs, command, failure};
use super::{Reader, refuse_existing};
use crate::common::{Context, OverwriteArgs, input_error, refuse_input, shell_quoted, write_file};
use crate::terminal::print;
use galamost_engine::diagnostic::{Failure, counted};
use galamost_plugin_api::snapshot::{Snapshot, Values};
use interactions::Interactions;
use pipeline::Contents;
use sections::ForceField;
pub(crate) use settings::ForceFieldArgs;
use std::path::Path;

/// Returns whether a file is a force-field file.
pub(crate) fn is_force_field(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("force_field"))
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
    (args, shared): (&ForceFieldArgs, &GromacsArgs),
    overwrite: OverwriteArgs,
    context: &Context,
) -> Result<u8, Failure> {
    if output.extension().is_none_or(|e| e != "ron") {
        return Err(input_error(output, "a force field becomes a pipeline, whose name ends with `.ron`"));
    }
    refuse_existing(output, overwrite)?;
    let Some(path) = &shared.coordinates else {
        return Err(input_error(
            input,
            "a force field has no particles; name their file with --coordinates system.xml",
        ));
    };
    refuse_input(output, [input, path])?;
    let field = ForceField::read(input).map_err(|errors| failure(input, errors))?;
    let reader = Reader::open(path, &context.registry())?;
    let state = reader.read(None)?;
    let settings = args.settings(shared, &field, charged(&state))?;
    let present = |k: &usize| state.type_id.contains(&(*k as u32));
    let types: Vec<&String> = (0..state.types.len()).filter(present).map(|k| &state.types[k]).collect();
    let mut interactions = Interactions::of(&field, &state);
    let mut errors = std::mem::take(&mut interactions.errors);
    let pairs = interactions::pairs(&field, &types);
    let pairs = match pairs {
        Ok(pairs) if errors.is_empty() => pairs,
        other => {
            errors.extend(other.err().into_iter().flatten());
            return Err(failure(input, errors));
        }
    };
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
        shell_quoted(&output.to_string_lossy())
    ))?;
    Ok(0)
}
