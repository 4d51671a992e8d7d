//! The parts of the report that come from the run record: header, speed, software, input.

use crate::output::numbers::significant;
use crate::output::page::highlighted;
use galamost_engine::pipeline::Pipeline;
use galamost_engine::run::record as run_record;
use galamost_engine::run::{duration, killed_process};
use galamost_pictures::{Rgb, escape};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Formats a number with thin spaces between groups of three digits.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (k, c) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            out.push('\u{2009}');
        }
        out.push(c);
    }
    out
}

/// Returns a JSON string as HTML.
fn text(v: &Value) -> String {
    escape(v.as_str().unwrap_or_default())
}

/// Returns a date and time as HTML.
fn date(v: &Value) -> String {
    text(v).replace('T', " ").replace('Z', " UTC")
}

/// Formats a size in B, kB, MB or GB.
pub fn bytes(n: u64) -> String {
    match n {
        n if n < 10_000 => format!("{n} B"),
        n if n < 10_000_000 => format!("{:.0} kB", n as f64 / 1e3),
        n if n < 10_000_000_000 => format!("{:.1} MB", n as f64 / 1e6),
        n => format!("{:.1} GB", n as f64 / 1e9),
    }
}

/// What is wrong with a file that is no record, and what to do.
pub const UNREADABLE: &str = "cannot be read as the record of a run; move it away, or run the pipeline again";

/// Returns the record of a pipeline if it exists but cannot be read. A record is replaced as a whole, so it is never incomplete.
pub fn unreadable_record(pipeline: &Path) -> Option<PathBuf> {
    let path = run_record::path_of(pipeline);
    (path.exists() && run_record::read(pipeline).is_none()).then_some(path)
}

/// Returns the title, status, key figures, errors and warnings.
pub fn header(title: &str, pipeline: &Pipeline, runs: Option<&[Value]>) -> String {
    let Some(run) = runs.and_then(<[Value]>::last) else {
        if let Some(file) = unreadable_record(&pipeline.path) {
            let file = escape(&file.file_name().unwrap_or_default().to_string_lossy());
            return format!(
                "<header><h1>{title}</h1></header>\n<p class=\"bad\">{file} {UNREADABLE}. Device, speed, plugins and \
                 warnings are unknown.</p>\n"
            );
        }
        return format!(
            "<header><h1>{title}</h1></header>\n<p class=\"warn\">There is no record of this run (<code>.run.json</code>) \
             beside the pipeline: it has not been run here, or was run with <code>--no-record</code>. Device, speed, \
             plugins and warnings are unknown.</p>\n"
        );
    };
    let (class, word) = match run["status"].as_str().unwrap_or_default() {
        "done" => ("good", "done"),
        "interrupted" => ("mid", "stopped, can be resumed"),
        "failed" => ("bad2", "failed"),
        _ if killed_process(&pipeline.checkpoint_path()).is_some() => ("bad2", "killed"),
        _ => ("mid", "running"),
    };
    let all = runs.unwrap_or_default();
    let started = all.first().map_or_else(String::new, |r| date(&r["begun"]));
    let ended = match run["ended"].as_str() {
        Some(_) => format!(" to {}", date(&run["ended"])),
        None => String::new(),
    };
    let mut out = format!("<header><h1>{title}</h1><p><span class=\"tag {class}\">{word}</span> · {started}{ended}");
    if all.len() > 1 {
        let _ = write!(out, " · {} runs", all.len());
    }
    out += "</p></header>\n";
    out += &key_figures(pipeline, run, all);
    if let Some(e) = run.get("error") {
        let notes: Vec<String> = e["notes"].as_array().into_iter().flatten().map(text).collect();
        let _ = writeln!(out, "<p class=\"bad\"><b>{}</b><br>{}</p>", text(&e["message"]), notes.join("<br>"));
    }
    let mut shown = vec![];
    for w in all.iter().flat_map(|r| r["warnings"].as_array().into_iter().flatten()) {
        if !shown.contains(&w) {
            let _ = writeln!(out, "<p class=\"warn\">{}</p>", text(w));
            shown.push(w);
        }
    }
    out
}

/// Returns the key figures of a run that consists of the runs `all`, of which `run` is the last.
fn key_figures(pipeline: &Pipeline, run: &Value, all: &[Value]) -> String {
    let sum = |f: &str| all.iter().filter_map(|r| r[f].as_f64()).sum::<f64>();
    let mut out = String::from("<div class=\"facts\">");
    let mut fact = |name: &str, value: String| {
        // the record may lack a value
        if !value.is_empty() && value != "null" {
            let _ = write!(out, "<div><span>{name}</span><b>{value}</b></div>");
        }
    };
    if let Some(n) = run["particles"].as_u64().filter(|n| *n > 0) {
        fact("particles", grouped(n));
        let (lengths, density) = box_and_density(run, n);
        fact("box", lengths);
        fact("density", density);
    }
    for (name, key) in [("molecules", "molecules"), ("bonds", "bonds")] {
        run[key].as_u64().filter(|n| *n > 0).into_iter().for_each(|n| fact(name, grouped(n)));
    }
    let first = all.first().and_then(|r| r["from_step"].as_u64()).unwrap_or(0);
    let last = run["from_step"].as_u64().unwrap_or(0) + run["steps"].as_u64().unwrap_or(0);
    if last > first {
        fact("steps", grouped(last - first));
    }
    let time = simulated_time(run);
    if time > 0.0 {
        fact("simulated time", significant(time, 6));
    }
    let integrators: Vec<String> = pipeline.integrators.iter().map(|e| escape(&e.name)).collect();
    fact("integrator", integrators.join(", "));
    if let (Some(l), Some(steps)) = (run.get("list"), run["total_steps"].as_f64()) {
        let every = steps / l["builds"].as_f64().unwrap_or(1.0).max(1.0);
        fact("neighbor list rebuild", format!("every {every:.1} steps"));
    }
    if sum("seconds") > 0.0 {
        fact("run time", duration(sum("seconds")));
    }
    if let (Some(tps), Some(n)) = (run["tps"].as_f64(), run["particles"].as_f64()) {
        fact("steps per second", if tps < 100.0 { format!("{tps:.1}") } else { grouped(tps as u64) });
        if n > 0.0 {
            fact("million particle-steps/s", format!("{:.2}", tps * n / 1e6));
        }
    }
    for (name, key) in [("last kT", "kT"), ("last pressure", "pressure"), ("last U/N", "potential")] {
        if let Some(v) = run["last"][key].as_f64() {
            fact(name, format!("{v:.4}").replace('-', "−"));
        }
    }
    let exchange = &run["exchange"];
    if let Some(ratio) = exchange["acceptance"].as_f64() {
        fact("exchange with the next replica", format!("{:.1} % accepted", 100.0 * ratio));
    }
    if let Some(trips) = exchange["round_trips"].as_u64() {
        fact("round trips of all walkers", grouped(trips));
    }
    fact("device", text(&run["device"]));
    fact("precision", text(&run["precision"]));
    fact("seed", run["seed"].to_string());
    out + "</div>\n"
}

/// Returns the box lengths and the number density of the initial state.
fn box_and_density(run: &Value, n: u64) -> (String, String) {
    let lengths: Vec<f64> = run["box"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    let used: Vec<f64> = lengths.into_iter().filter(|l| *l > 0.0).collect();
    if used.is_empty() {
        return (String::new(), String::new());
    }
    let shown: Vec<String> = used.iter().map(|l| significant(*l, 4)).collect();
    (shown.join(" × "), significant(n as f64 / used.iter().product::<f64>(), 4))
}

/// Returns the simulated time: steps of all stages up to the last one, times their time steps.
fn simulated_time(run: &Value) -> f64 {
    let mut left = run["total_steps"].as_f64().or(run["steps"].as_f64()).unwrap_or(0.0);
    let mut time = 0.0;
    for stage in run["stages"].as_array().into_iter().flatten() {
        let steps = stage["steps"].as_f64().unwrap_or(0.0).min(left);
        time += steps * stage["dt"].as_f64().unwrap_or(0.0);
        left -= steps;
    }
    time
}

/// Returns the distribution of the run time, the neighbor list and the memory.
pub fn speed(runs: Option<&[Value]>) -> String {
    let Some(run) = runs.and_then(<[Value]>::last) else { return String::new() };
    let Some(seconds) = run["seconds"].as_f64() else { return String::new() };
    let mut out = format!("<h2>Speed</h2>\n{}", time_bar(run));
    if let Some(n) = run["parts"]["steps"].as_u64().filter(|n| *n > 0) {
        let _ = writeln!(out, "<p class=\"small\">Time per component, sampled over {n} steps.</p>");
    }
    out += "<div class=\"scroll\"><table class=\"left\">";
    let mut row = |name: &str, value: String| {
        let _ = write!(out, "<tr><td>{name}</td><td>{value}</td></tr>");
    };
    row("time before the first step", duration_of(run["start_up"].as_f64().unwrap_or(0.0)));
    row("steps and output", duration_of(seconds));
    if let Some(l) = run.get("list") {
        let f = |k: &str| l[k].as_f64().unwrap_or(f64::NAN);
        let steps = run["total_steps"].as_f64().or(run["steps"].as_f64()).unwrap_or(0.0);
        row(
            "neighbor list",
            format!(
                "radius {:.3}, buffer {:.3}; {:.1} neighbors, at most {}; {} rebuilds, one every {:.1} steps",
                f("radius"),
                f("buffer"),
                f("mean"),
                l["longest"],
                l["builds"],
                steps / f("builds").max(1.0)
            ),
        );
    }
    if let Some(m) = run["memory"].as_u64().filter(|m| *m > 0) {
        row("device memory", bytes(m));
    }
    out + "</table></div>\n"
}

/// Returns a bar with the fraction of each part of the run time, and its legend.
fn time_bar(run: &Value) -> String {
    let mut out = "<div class=\"bar\">".to_string();
    let parts = time_by_part(run);
    let known: f64 = parts.iter().map(|p| p.1).sum();
    let total = known.max(1e-9);
    for (k, (name, s)) in parts.iter().enumerate().filter(|(_, p)| p.1 > 0.0) {
        let _ = write!(
            out,
            "<span title=\"{name}\" style=\"flex:{:.5};background:{}\"></span>",
            s / total,
            Rgb::of_palette(k)
        );
    }
    out += "</div>\n<p class=\"small\">";
    for (k, (name, s)) in parts.iter().enumerate().filter(|(_, p)| p.1 > 0.0) {
        let _ = write!(
            out,
            "<span style=\"margin-right:1.4em;white-space:nowrap\"><span class=\"key\" style=\"background:{}\"></span>{name} {:.1} % ({s:.2} s)</span> ",
            Rgb::of_palette(k),
            100.0 * s / total
        );
    }
    out + "</p>\n"
}

/// Returns the seconds spent in each part: steps (by component if some were profiled), analyzers, updaters,
/// checkpoints.
fn time_by_part(run: &Value) -> Vec<(String, f64)> {
    let of = |v: &Value| -> Vec<(String, f64)> {
        let mut all: Vec<(String, f64)> =
            v.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.as_f64().unwrap_or(0.0))).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    };
    let spent = |key: &str| run["shares"][key].as_f64().unwrap_or(0.0);
    let parts = of(&run["parts"]["seconds"]);
    let profiled: f64 = parts.iter().map(|p| p.1).sum();
    let mut out: Vec<(String, f64)> = if profiled > 0.0 {
        parts.into_iter().map(|(name, s)| (name, s / profiled * spent("steps"))).collect()
    } else {
        vec![("steps".into(), spent("steps"))]
    };
    let others = of(&run["parts"]["others"]);
    let known: f64 = others.iter().map(|p| p.1).sum();
    out.extend(others);
    let rest = (spent("analyzers") + spent("updaters") - known).max(0.0);
    out.push((if known > 0.0 { "other work between steps" } else { "analyzers and updaters" }.into(), rest));
    out.push(("checkpoints".into(), spent("checkpoints")));
    out
}

/// Formats a duration.
fn duration_of(s: f64) -> String {
    if s < 10.0 { format!("{s:.2} s") } else { duration(s) }
}

/// Returns the program, its plugins, and the runs that were resumed from checkpoints.
pub fn software(runs: Option<&[Value]>) -> String {
    let Some(all) = runs else { return String::new() };
    let Some(run) = all.last() else { return String::new() };
    let mut out = "<h2>Software</h2>\n".to_string();
    let arguments: Vec<&str> = run["arguments"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let _ = writeln!(
        out,
        "<p>galamost {}, <code>galamost {}</code></p>\n<div class=\"scroll\"><table class=\"left\"><tr><th>plugin</th><th>version</th><th>BLAKE3</th></tr>",
        text(&run["engine"]),
        escape(&arguments.join(" "))
    );
    for p in run["plugins"].as_array().into_iter().flatten() {
        let hash = text(&p["hash"]);
        let short: String = hash.chars().take(16).collect();
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td><code title=\"{hash}\">{short}</code></td></tr>",
            text(&p["name"]),
            text(&p["version"])
        );
    }
    out += "</table></div>\n";
    if all.len() > 1 || run["checkpoint"].is_string() {
        out += "<h3>Runs and checkpoints</h3>\n<div class=\"scroll\"><table class=\"left\"><tr><th>started</th><th>from step</th><th>steps</th>\
                <th>steps/s</th><th>device</th><th>status</th><th>checkpoint</th></tr>\n";
        for r in all {
            let file = r["checkpoint"].as_str().and_then(|c| Path::new(c).file_name());
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                date(&r["begun"]),
                r["from_step"].as_u64().map_or_else(String::new, grouped),
                r["steps"].as_u64().map_or_else(|| "?".into(), grouped),
                r["tps"].as_f64().map_or_else(String::new, |t| format!("{t:.1}")),
                text(&r["device"]),
                text(&r["status"]),
                file.map_or_else(String::new, |f| escape(&f.to_string_lossy()))
            );
        }
        out += "</table></div>\n";
    }
    out
}

/// Returns the pipeline as it was run, if the record contains it.
pub fn input(pipeline: &Pipeline, runs: Option<&[Value]>) -> String {
    let ran = runs.and_then(<[Value]>::last).and_then(|r| r["pipeline"].as_str());
    let note = match ran {
        Some(t) if t != pipeline.text => {
            "<p class=\"warn\">The pipeline file has changed since the run; this is the text that was run.</p>\n"
        }
        _ => "",
    };
    format!("<h2>Input</h2>\n{note}<pre>{}</pre>\n", highlighted(ran.unwrap_or(&pipeline.text).trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_formatted() {
        assert_eq!(grouped(1_234_567).replace('\u{2009}', " "), "1 234 567");
        assert_eq!(grouped(12), "12");
        assert_eq!((bytes(999), bytes(12_345_678)), ("999 B".into(), "12.3 MB".into()));
    }

    #[test]
    fn incomplete_records_make_a_page() {
        let text =
            "(initial: [Velocities(kT: 1.0)], integrators: [Bussi(kT: 1.0, tau: 0.5)], stages: [(steps: 1, dt: 0.1)])";
        let pipeline = Pipeline::parse("x.ron".as_ref(), text, &[]).expect("a pipeline");
        for odd in [
            json!({}),
            json!({"status": 3, "error": {}, "seconds": 1.0, "list": {}, "plugins": [{}], "warnings": ["<b>"]}),
        ] {
            let all = [odd];
            let page = header("x", &pipeline, Some(&all)) + &speed(Some(&all)) + &software(Some(&all));
            assert!(page.contains("<header>") && !page.contains("<b></p>") && page.contains("facts"), "{page}");
        }
        assert!(header("x", &pipeline, None).contains("no record"));
    }
}
