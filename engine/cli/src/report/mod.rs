//! `galamost report`: writes a self-contained HTML report of a finished or running simulation.

mod compare;
mod describe;
pub mod outputs;
mod record;
mod tables;

use crate::common::{Context, OverwriteArgs, input_error, refuse_input};
use crate::output::page::document;
use crate::terminal::print;
use clap::Args;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::Pipeline;
use galamost_engine::plugins::Registry;
use galamost_engine::run::record as run_record;
use galamost_pictures::escape;
pub use record::{UNREADABLE, unreadable_record};
use std::path::{Path, PathBuf};

/// Options of `galamost report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// The pipeline of the run, or its folder. Several runs are compared on one page.
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Output file [default: the first pipeline with the extension .report.html, or .comparison.html].
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: OverwriteArgs,
    /// Do not render particles.
    #[arg(long)]
    no_pictures: bool,
}

/// Finds the pipeline of a folder: the only one, or the only one with a run record.
fn pipeline_in(folder: &Path) -> Result<PathBuf, Failure> {
    let entries = std::fs::read_dir(folder).map_err(|e| input_error(folder, format!("cannot be read: {e}")))?;
    let mut all: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "ron"))
        .collect();
    all.sort();
    let run: Vec<&PathBuf> = all.iter().filter(|p| run_record::path_of(p).exists()).collect();
    match (&all[..], &run[..]) {
        ([one], _) => Ok(one.clone()),
        (_, [one]) => Ok((*one).clone()),
        ([], _) => Err(input_error(folder, "no pipeline (.ron) in this folder")),
        _ => {
            let names: Vec<String> =
                all.iter().filter_map(|p| p.file_name()).map(|n| n.to_string_lossy().into_owned()).collect();
            Err(input_error(
                folder,
                format!("several pipelines in this folder: {}; give one of them", names.join(", ")),
            ))
        }
    }
}

/// Returns the pipeline of an argument, which is a pipeline or its folder.
///
/// # Errors
/// Returns an error if there is no such file, or if the folder has no pipeline, or several without a hint which one was run.
pub fn pipeline_path(run: &Path) -> Result<PathBuf, Failure> {
    if run.is_dir() {
        return pipeline_in(run);
    }
    std::fs::metadata(run).map_err(|e| input_error(run, format!("cannot be read: {e}")))?;
    // pipelines may have any name, but these files are outputs
    let extension = run.extension().and_then(|e| e.to_str()).unwrap_or_default();
    match ["csv", "parquet", "gsd", "xml", "dcd", "xtc", "trr", "checkpoint", "json", "html"].contains(&extension) {
        true => Err(input_error(run, "this is not a pipeline; give the pipeline (.ron) of the run, or its folder")),
        false => Ok(run.into()),
    }
}

/// Returns the report of a run, or the comparison of several, as HTML.
///
/// # Errors
/// Returns an error if a pipeline cannot be read.
pub fn html(paths: &[PathBuf], registry: &Registry, pictures: bool) -> Result<String, Failure> {
    let pipelines = paths.iter().map(|p| Pipeline::read(p, &[])).collect::<Result<Vec<Pipeline>, Failure>>()?;
    for record in paths.iter().filter_map(|p| unreadable_record(p)) {
        tracing::warn!("{} {UNREADABLE}", record.display());
    }
    Ok(match &pipelines[..] {
        [one] => page(one, registry, pictures),
        several => compare::page(several, registry),
    })
}

/// Returns the files that the report of these runs reads.
fn inputs(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = vec![];
    for path in paths {
        files.extend([path.clone(), run_record::path_of(path)]);
        if let Ok(pipeline) = Pipeline::read(path, &[]) {
            files.extend(outputs::find(&pipeline).into_iter().flat_map(|o| o.files));
        }
    }
    files
}

/// Returns sizes and times of the files that the report of these runs shows. Different texts mean that something has changed.
pub fn stamp(paths: &[PathBuf]) -> String {
    let one = |f: &PathBuf| std::fs::metadata(f).map(|m| format!("{} {:?}\n", m.len(), m.modified().ok()));
    inputs(paths).iter().map(|f| one(f).unwrap_or_default()).collect()
}

/// Returns a page with an error message.
pub fn error_page(error: &Failure) -> String {
    document("error", &format!("<pre class=\"bad\">{}</pre>\n", escape(&error.render())))
}

/// Runs the command.
///
/// # Errors
/// Returns an error if there is no such run, or if the report cannot be written or has another name than `*.html`.
pub(crate) fn run(args: &ReportArgs, context: &Context) -> Result<u8, Failure> {
    let paths = args.runs.iter().map(|r| pipeline_path(r)).collect::<Result<Vec<PathBuf>, Failure>>()?;
    let extension = if paths.len() == 1 { "report.html" } else { "comparison.html" };
    let out = args.out.clone().unwrap_or_else(|| paths[0].with_extension(extension));
    refuse_input(&out, inputs(&paths))?;
    if out.extension().is_none_or(|e| !e.eq_ignore_ascii_case("html")) {
        return Err(input_error(&out, "the report is a web page: the file name must end in .html"));
    }
    args.overwrite.check(&out)?;
    args.overwrite.write(&out, html(&paths, &context.registry(), !args.no_pictures)?)?;
    print(format!("{}\n", out.display()))?;
    Ok(0)
}

/// Returns the report as HTML.
fn page(pipeline: &Pipeline, registry: &Registry, pictures: bool) -> String {
    let runs = run_record::read(&pipeline.path);
    let mut outputs = outputs::find(pipeline);
    let foreign = outputs::remove_foreign(pipeline, &mut outputs);
    let name = pipeline.path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let title = escape(&name);
    let mut body = record::header(&title, pipeline, runs.as_deref()) + &foreign;
    if pictures {
        body += &outputs::pictures(pipeline, &outputs, registry);
    }
    body += &tables::observables(&outputs, registry);
    body += &record::speed(runs.as_deref());
    body += &record::software(runs.as_deref());
    body += &record::input(pipeline, runs.as_deref());
    body += &outputs::files(pipeline, &outputs);
    body += &format!(
        "<footer class=\"soft small\"><p>Created by galamost {} on {}.</p></footer>\n",
        env!("CARGO_PKG_VERSION"),
        galamost_engine::log::now().replace('T', " ").replace('Z', " UTC")
    );
    document(&title, &body)
}
