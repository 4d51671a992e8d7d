//! Benchmark results as Markdown table, JSON and plot.

use super::{BenchReport, Measured};
use galamost_pictures::{Axis, Curve, Plot, Style};
use std::fmt::Write as _;

/// Returns the speeds to compare a case with: the original GALAMOST, the best of all other engines, and the target.
/// They were measured on a GPU, so a CPU has none.
fn references(r: &BenchReport, c: &Measured) -> [Option<f64>; 3] {
    let best = c.case.engines.values().copied().reduce(f64::max);
    [c.case.engines.get("GALAMOST").copied(), best, c.case.target].map(|x| x.filter(|_| r.gpu))
}

/// Returns million particle-steps per second.
fn mps(c: &Measured) -> f64 {
    c.tps() * c.case.n as f64 / 1e6
}

/// Returns the parts of the time of a step of at least 1 %.
fn shares(c: &Measured) -> String {
    let one = |(name, s): &(String, f64)| format!("{name} {:.0}", 100.0 * s);
    let all: Vec<String> = c.shares().iter().filter(|p| p.1 >= 0.01).map(one).collect();
    if all.is_empty() { "-".into() } else { all.join(", ") }
}

/// Returns the results as Markdown tables.
pub fn table(r: &BenchReport) -> String {
    let driver = r.driver.as_ref().map_or(String::new(), |d| format!(", driver {d}"));
    let mut out = format!("{}{driver}, precision {}, {}, windows of {} s\n\n", r.device, r.precision, r.date, r.window);
    out.push_str("| case | N | TPS (best of 3) | spread | MPS | bytes/particle | neighbors | buffer | steps per rebuild | kT | start-up | time of a step by part, % | GALAMOST | best peer | target |\n");
    out.push_str("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for c in &r.cases {
        let tps = c.tps();
        let least = c.windows.iter().copied().fold(f64::INFINITY, f64::min);
        let ratio = |x: Option<f64>| x.map_or("-".into(), |x| format!("{:.2}x", tps / x));
        let [galamost, best, target] = references(r, c).map(ratio);
        let digits = if tps < 100.0 { 2 } else { 0 };
        let _ = writeln!(
            out,
            "| {} | {} | {tps:.digits$} | {:.1} % | {:.1} | {:.0} | {:.1} | {:.3} | {:.1} | {} | {:.2} s | {} | {galamost} | {best} | {target} |",
            c.case.name,
            c.case.n,
            100.0 * (1.0 - least / tps),
            mps(c),
            c.bytes_per_particle,
            c.neighbors,
            c.buffer,
            c.interval,
            c.kt.map_or("-".into(), |k| format!("{k:.3}")),
            c.start_up,
            shares(c),
        );
    }
    for (case, why) in &r.missing {
        let _ = writeln!(out, "\nnot measured: {case}: {}", why.lines().next().unwrap_or_default());
    }
    out + &precisions(r)
}

/// Returns the cases that were measured in all precisions.
fn precisions(r: &BenchReport) -> String {
    if r.others.is_empty() {
        return String::new();
    }
    let mut out =
        "\n| case | N | Single | Mixed | Double | Mixed/Single | Double/Single |\n|---|---|---|---|---|---|---|\n"
            .to_string();
    for c in &r.cases {
        let of = |precision: &str| {
            let all = r.others.iter().chain([c]);
            let mut same =
                all.filter(|o| (&o.case.name, o.case.n) == (&c.case.name, c.case.n) && o.precision == precision);
            same.next().map(Measured::tps)
        };
        if let (Some(single), Some(mixed), Some(double)) = (of("Single"), of("Mixed"), of("Double")) {
            let _ = writeln!(
                out,
                "| {} | {} | {single:.0} | {mixed:.0} | {double:.0} | {:.2} | {:.2} |",
                c.case.name,
                c.case.n,
                mixed / single,
                double / single
            );
        }
    }
    out
}

/// Returns the results as JSON.
pub fn json(r: &BenchReport) -> String {
    let one = |c: &Measured| {
        let kernels: Vec<_> = c
            .profile
            .1
            .iter()
            .map(|t| serde_json::json!({"part": t.part, "kernel": t.kernel, "calls": t.calls, "seconds": t.seconds}))
            .collect();
        serde_json::json!({
            "case": c.case.name, "n": c.case.n, "precision": c.precision, "tps": c.tps(), "windows": c.windows,
            "bytes_per_particle": c.bytes_per_particle, "list": c.neighbors, "buffer": c.buffer, "interval": c.interval, "kT": c.kt,
            "start_up": c.start_up, "target": c.case.target, "peers": c.case.engines,
            "profile": {"steps": c.profile.0, "kernels": kernels},
        })
    };
    let of = |cases: &[Measured]| cases.iter().map(one).collect::<Vec<_>>();
    let missing: Vec<_> = r.missing.iter().map(|(case, why)| serde_json::json!({"case": case, "why": why})).collect();
    let all = serde_json::json!({
        "device": r.device, "driver": r.driver, "date": r.date, "precision": r.precision, "window": r.window,
        "cases": of(&r.cases), "precisions": of(&r.others), "missing": missing,
    });
    format!("{all:#}\n")
}

/// Plots particle-steps per second against the number of particles, with a curve per case and the best of all other
/// engines.
pub fn plot(r: &BenchReport) -> Plot {
    let mut names: Vec<&str> = vec![];
    for c in &r.cases {
        if !names.contains(&c.case.name.as_str()) {
            names.push(&c.case.name);
        }
    }
    let curve = |name: &str, of: &dyn Fn(&Measured) -> Option<f64>, style: Style, label: String| {
        let mut points: Vec<[f64; 2]> = r
            .cases
            .iter()
            .filter(|c| c.case.name == name)
            .filter_map(|c| Some([c.case.n as f64, of(c)? * c.case.n as f64 / 1e6]))
            .collect();
        points.sort_by(|a, b| a[0].total_cmp(&b[0]));
        Curve { name: label, points, style, ..Curve::default() }
    };
    let mut curves = vec![];
    for name in names {
        curves.push(curve(name, &|c| Some(c.tps()), Style::Both, name.into()));
        let peer = curve(name, &|c| references(r, c)[1], Style::Dots, format!("{name}, best peer"));
        if !peer.points.is_empty() {
            curves.push(peer);
        }
    }
    let x = Axis { log: true, ..Axis::new("particles") };
    let y = Axis { log: true, ..Axis::new("million particle-steps per second") };
    Plot { title: format!("{}, {}", r.device, r.precision), ..Plot::simple(x, y, curves) }
}
