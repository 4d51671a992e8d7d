//! `galamost report`: one page of a run, finished or under way, with everything in it.

mod outputs;
mod parts;

use crate::output::page::document;
use clap::Args;
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::Pipeline;
use galamost_engine::plugins::Registry;
use galamost_engine::run::record;
use galamost_pictures::escape;
use std::path::{Path, PathBuf};

/// Options of the command.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// The pipeline of the run, or the folder it is in.
    run: PathBuf,
    /// The page; by default named as the pipeline, with .report.html.
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
    /// No pictures of particles.
    #[arg(long)]
    no_pictures: bool,
}

fn wrong(path: &Path, m: impl Into<String>) -> Failure {
    Failure::Input(vec![Diagnostic::new(path, None, m)])
}

/// The pipeline of a folder: the only one, or the only one that was run.
fn pipeline_in(folder: &Path) -> Result<PathBuf, Failure> {
    let entries = std::fs::read_dir(folder).map_err(|e| wrong(folder, format!("cannot be read: {e}")))?;
    let mut all: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "ron"))
        .collect();
    all.sort();
    let run: Vec<&PathBuf> = all.iter().filter(|p| record::path_of(p).exists()).collect();
    match (&all[..], &run[..]) {
        ([one], _) => Ok(one.clone()),
        (_, [one]) => Ok((*one).clone()),
        ([], _) => Err(wrong(folder, "there is no pipeline (.ron) in this folder")),
        _ => {
            let names: Vec<String> =
                all.iter().filter_map(|p| p.file_name()).map(|n| n.to_string_lossy().into_owned()).collect();
            Err(wrong(folder, format!("there are several pipelines: {}; give one of them", names.join(", "))))
        }
    }
}

/// Runs the command.
///
/// # Errors
/// There is no such run.
pub(crate) fn run(args: &ReportArgs, registry: &Registry) -> Result<u8, Failure> {
    let path = if args.run.is_dir() { pipeline_in(&args.run)? } else { args.run.clone() };
    let pipeline = Pipeline::read(&path, &[])?;
    let out = args.out.clone().unwrap_or_else(|| path.with_extension("report.html"));
    let page = page(&pipeline, registry, !args.no_pictures);
    std::fs::write(&out, page).map_err(|e| Failure::run(format!("{}: {e}", out.display())))?;
    println!("{}", out.display());
    Ok(0)
}

/// The page.
pub fn page(pipeline: &Pipeline, registry: &Registry, pictures: bool) -> String {
    let runs = record::read(&pipeline.path);
    let found = outputs::find(pipeline);
    let name = pipeline.path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let title = escape(&name);
    let mut body = parts::head(&title, runs.as_deref());
    if pictures {
        body += &outputs::pictures(pipeline, &found, registry);
    }
    body += &outputs::observables(&found);
    body += &parts::speed(runs.as_deref());
    body += &parts::software(runs.as_deref());
    body += &parts::input(pipeline, runs.as_deref());
    body += &outputs::files(pipeline, &found);
    body += &format!(
        "<footer class=\"soft small\"><p>Made by galamost {} on {}.</p></footer>\n",
        env!("CARGO_PKG_VERSION"),
        galamost_engine::log::now().replace('T', " ").replace('Z', " UTC")
    );
    document(&title, &body)
}
