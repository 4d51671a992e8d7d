//! Plots and statistics of tables.

use super::decoded;
use galamost_pictures::Rgb;
use galamost_tests::{galamost, python, words};
use std::path::Path;
use std::process::Command;

/// All elements of an SVG file are closed in the right order.
fn well_formed(svg: &str) {
    let mut reader = quick_xml::Reader::from_str(svg);
    loop {
        match reader.read_event().expect("SVG") {
            quick_xml::events::Event::Eof => return,
            quick_xml::events::Event::Start(e) | quick_xml::events::Event::Empty(e) => {
                e.attributes().for_each(|a| drop(a.expect("an attribute")));
            }
            _ => {}
        }
    }
}

#[test]
fn tables_are_plotted() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("a.csv", "r (sigma),A-A,A-B,A-A_error\n0.5,0.0,0.1,0.01\n1.0,2.5,1.5,0.1\n1.5,1.0,1.0,0.05\n");
    write("b.csv", "r (sigma),A-A,A-B\n0.5,0.1,0.1\n1.0,2.0,1.5\n1.5,1.1,1.0\n");
    let run = |args: &[&str]| galamost(folder.path(), args);
    let done = run(&["plot", "a.csv"]);
    assert!(done.status.success(), "{}", words(&done));
    let svg = std::fs::read_to_string(folder.path().join("a.svg")).expect("a plot");
    well_formed(&svg);
    assert!(
        svg.contains(">r (sigma)<") && svg.contains(">A-A<") && svg.contains(">A-B<") && !svg.contains("A-A_error")
    );
    let args = [
        "plot", "a.csv", "b.csv", "--y", "A-A", "--y", "A-B", "--title", "x < y", "--points", "--log-y", "--out",
        "c.svg",
    ];
    assert!(run(&args).status.success());
    let svg = std::fs::read_to_string(folder.path().join("c.svg")).expect("a plot");
    well_formed(&svg);
    assert!(svg.contains("x &lt; y") && svg.contains(">a.csv<") && svg.contains(">b.csv<"));
    assert!(run(&["plot", "a.csv", "--y", "A-A", "--errors", "--out", "e.png"]).status.success());
    let (w, h, pixels) = decoded(&folder.path().join("e.png"));
    assert!(w == 1440 && h > 700);
    let blue = Rgb::of_palette(0).0;
    assert!(pixels.chunks(3).filter(|p| **p == blue).count() > 1000, "the curve");
    assert!(pixels.chunks(3).filter(|p| **p == [0x22; 3]).count() > 2000, "axes and letters");
    // tables of potentials, in both formats
    let make = [
        "table",
        "make",
        "Wca(pairs: {(\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0)})",
        "--pair",
        "A",
        "A",
        "--out",
        "wca.csv",
    ];
    let done = run(&make);
    assert!(done.status.success(), "{}", words(&done));
    for out in ["wca.png", "wca.svg"] {
        let done = run(&["table", "plot", "wca.csv", "--out", out]);
        assert!(done.status.success(), "{}", words(&done));
    }
    assert!(decoded(&folder.path().join("wca.png")).0 == 1440);
    write("bad.csv", "step,kT\n0,1.0\n10,one\n20,2.0\n");
    write("short.csv", "step,kT\n0,1.0\n10\n20,2.0\n");
    for (args, part) in [
        (vec!["plot", "bad.csv"], "bad.csv:3:4: `one` is not a number"),
        (vec!["stats", "bad.csv"], "bad.csv:3:4:"),
        (vec!["plot", "short.csv"], "short.csv:3:3: 1 cells in a table of 2 columns"),
        (vec!["plot", "a.csv", "--y", "A-C"], "unknown column `A-C`; did you mean"),
        (vec!["plot", "a.csv", "--out", "a.gif"], "a.gif: unknown image format"),
        (vec!["plot", "a.csv", "--y", "A-B", "--errors"], "no standard errors of `A-B`"),
        (vec!["plot", "none.csv"], "none.csv: cannot be read"),
        (vec!["table", "plot", "wca.csv", "--out", "x.gif"], "x.gif: unknown image format"),
    ] {
        let done = run(&args);
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", words(&done));
        assert!(words(&done).contains(part), "{}", words(&done));
    }
}

/// The formulas of `stats` in NumPy, on series of a known correlation time.
const REFERENCE: &str = r"
import numpy as np, json, sys
rng = np.random.default_rng(7)
n, phi = 6000, 0.9
x = np.zeros(n)
for k in range(1, n):
    x[k] = phi*x[k-1] + rng.normal()*np.sqrt(1 - phi*phi)
y = 5 + x + np.linspace(0, 0.5, n)
w = rng.normal(size=n)
np.savetxt('s.csv', np.c_[np.arange(n)*10, x, y, w], delimiter=',', header='step,x,y,w', comments='', fmt=['%d','%.17g','%.17g','%.17g'])
def blocks(a):
    n = len(a); m = n//max(1, n//64)
    return [range(k*n//m, (k + 1)*n//m) for k in range(m)]
def correlations(d):
    m, s, W = len(d), 1.0, 0
    while W < 2*max(s, 1.0) and W < m//2:
        W += 1; s += 2*(d[:m-W]*d[W:]).sum()/((m - W)*(d*d).mean())
    return max(s, 0.3), 2*W + 1
def error(a):
    r = blocks(a); m = len(r); d = np.array([(a[k] - a.mean()).sum() for k in r])*m/len(a)
    s, lags = correlations(d); s *= 1 + lags/m
    return np.sqrt(s*(1 + s/m)*(d*d).mean()/m)
def drift(a):
    b = np.array([a[k].mean() for k in blocks(a)]); t = np.array([np.mean(k) for k in blocks(a)]); m = len(b)
    p = np.polyfit(t, b, 1); r = b - np.polyval(p, t)
    s, lags = correlations(r); s *= 1 + 2*lags/m; length = len(a) - 1
    return p[0]*length, length*np.sqrt(s*(1 + 2*s/m)*(r*r).mean()/((t - t.mean())**2).sum())
out = {}
for name, a in (('x', x), ('y', y), ('w', w)):
    out[name] = [a.mean(), error(a), a.std(ddof=1), len(a)*error(a)**2/a.var(), *drift(a)]
json.dump(out, open('reference.json', 'w'))
";

#[test]
#[ignore = "3 seconds"]
fn statistics_agree_with_numpy() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let done = Command::new(python).args(["-c", REFERENCE]).current_dir(folder.path()).output().expect("Python runs");
    assert!(done.status.success(), "{}", words(&done));
    let text = std::fs::read_to_string(folder.path().join("reference.json")).expect("numbers");
    let reference: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let done = galamost(folder.path(), &["stats", "s.csv", "--skip", "0", "--json"]);
    assert!(done.status.success(), "{}", words(&done));
    let list: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(list.as_array().map(Vec::len), Some(3));
    for s in list.as_array().expect("a list") {
        let name = s["column"].as_str().expect("a name");
        let keys = ["mean", "error", "deviation", "inefficiency", "drift", "drift_error"];
        for (k, key) in keys.iter().enumerate() {
            let (ours, theirs) = (s[key].as_f64().expect(key), reference[name][k].as_f64().expect(key));
            // both sum the same numbers in another order; drifts are differences of sums
            assert!((ours - theirs).abs() < 1e-8 * (1.0 + theirs.abs()), "{name} {key}: {ours}, NumPy {theirs}");
        }
    }
    let table = galamost(folder.path(), &["stats", "s.csv", "--columns", "x,y"]);
    let text = String::from_utf8_lossy(&table.stdout).into_owned();
    assert_eq!(text.lines().count(), 3, "{text}");
    let few = galamost(folder.path(), &["stats", "s.csv", "--skip", "5999"]);
    assert_eq!(few.status.code(), Some(2));
}

/// Runs the program in a folder and returns what it wrote to standard output and to standard error.
#[track_caller]
fn said(folder: &Path, args: &[&str], code: i32) -> [String; 2] {
    let done = galamost(folder, args);
    assert_eq!(done.status.code(), Some(code), "{args:?}: {}", words(&done));
    [String::from_utf8_lossy(&done.stdout).into_owned(), words(&done)]
}

#[test]
fn what_statistics_leave_out_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    let said = |args: &[&str], code| said(folder.path(), args, code);
    write("cut.csv", "step,a\n0,1\n10,2\n20,1\n30,2\n40,1");
    for args in [&["stats", "cut.csv"][..], &["stats", "cut.csv", "--fit", "b + c*x", "--y", "a"], &["plot", "cut.csv"]]
    {
        let [_, words] = said(args, 0);
        assert_eq!(words.matches("cut.csv: the last line has no line break and was left out").count(), 1, "{words}");
    }
    write("gaps.csv", "step,a,b\n0,1,1\n10,2,\n20,1,\n30,2,2\n40,1,nan\n");
    let few = "gaps.csv: columns left out: `b` has 2 finite numbers; statistics need at least four";
    let [out, words] = said(&["stats", "gaps.csv"], 0);
    assert!(out.lines().count() == 2 && words.contains(few), "{out}{words}");
    let [_, words] = said(&["stats", "gaps.csv", "--columns", "b"], 2);
    assert!(words.contains("gaps.csv: `b` has 2 finite numbers; statistics need at least four"), "{words}");
    write("unit.csv", "step,a\n0,K\n10,2\n20,1\n30,2\n");
    let [_, words] = said(&["stats", "unit.csv"], 2);
    assert!(words.contains("unit.csv:2:3: `K` is not a number"), "{words}");
    write("short.csv", "step,a\n0,1\n");
    let [out, words] = said(&["stats", "gaps.csv", "short.csv"], 0);
    assert!(out.lines().count() == 2 && out.contains("\ngaps.csv,"), "{out}");
    assert!(words.contains("short.csv: 1 row: too few for statistics") && words.contains("left out"), "{words}");
    let [_, words] = said(&["stats", "short.csv", "short.csv"], 2);
    assert!(words.contains("short.csv: 1 row: too few for statistics"), "{words}");
}

#[test]
fn options_without_effect_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows: String = (0..40).map(|k| format!("{},{},{}\n", 10 * k, k * 7 % 5, k * 3 % 7)).collect();
    std::fs::write(folder.path().join("t.csv"), format!("step,\"x, y\",z\n{rows}")).expect("written");
    for option in [["--skip", "10"], ["--columns", "z"], ["--out", "o.csv"], ["--blocks", "b.svg"]] {
        let args = [&["stats", "t.csv", "--fit", "a + b*x", "--y", "z"][..], &option].concat();
        let [_, words] = said(folder.path(), &args, 2);
        assert!(words.contains("cannot be used with") && words.contains(option[0]), "{words}");
    }
    let [_, words] = said(folder.path(), &["plot", "t.csv", "--at", "101"], 2);
    assert!(words.contains("--at: 101 selects a step of a table with several rows per step"), "{words}");
    // a name with a comma
    for (columns, count) in
        [(&["--columns", "x, y", "--columns", "z"][..], 2), (&["--columns", "x, y"], 1), (&["--columns", "step, z"], 2)]
    {
        let [out, _] = said(folder.path(), &[&["stats", "t.csv"], columns].concat(), 0);
        assert_eq!(out.lines().count(), 1 + count, "{out}");
    }
}

/// A small liquid with room for a density.
const LIQUID: &str = r#"(
    seed: 1,
    initial: [ Lattice(lattice: Sc, cells: [6, 6, 6], density: DENSITY), Velocities(kT: 1.5) ],
    forces: [ LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ],
    integrators: [ Bussi(kT: 1.5, tau: 0.2) ],
    analyzers: [ Thermo(every: 10, file: "thermo.csv") ],
    stages: [ (name: "run", steps: 1_000, dt: 0.004) ],
)"#;

/// A swept parameter that is also measured has its name, and the mean another one, so that both can be plotted.
#[test]
fn a_swept_parameter_and_its_mean_have_two_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |args: &[&str]| {
        let done = galamost(folder.path(), args);
        assert!(done.status.success(), "{args:?}: {}", words(&done));
    };
    let text = LIQUID.replace("DENSITY", "0.3").replace("thermo.csv", "q.{replica}.csv").replace("1_000", "200");
    std::fs::write(folder.path().join("p.ron"), text).expect("written");
    run(&["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--sweep", "integrators[0].kT=[0.8,1.0,1.2,1.4]"]);
    run(&["stats", "q.*.csv", "--columns", "kT,pressure", "--out", "q.csv"]);
    let text = std::fs::read_to_string(folder.path().join("q.csv")).expect("a table");
    let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|n| *n == name).unwrap_or_else(|| panic!("{name}: {text}"));
    let cells = |name: &str| rows[1..].iter().map(|r| r[column(name)]).collect::<Vec<_>>();
    assert_eq!(cells("kT"), ["0.8", "1.0", "1.2", "1.4"]);
    let mut names = rows[0].clone();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() == rows[0].len() && !rows[0].contains(&"kT_error"), "{text}");
    let means: Vec<f64> = cells("kT_mean").iter().map(|c| c.parse().expect("a number")).collect();
    // all runs start at 1.5, and a part of that is in the means
    assert!(means.iter().zip([0.8_f64, 1.0, 1.2, 1.4]).all(|(mean, kt)| (*mean / kt - 1.0).abs() < 0.5), "{text}");
    run(&["plot", "q.csv", "--x", "kT", "--y", "pressure", "--errors"]);
    run(&["plot", "q.csv", "--x", "kT", "--y", "kT_mean", "--errors", "--out", "mean.svg"]);
    // a mean `kT_mean_error` beside the error of `kT_mean`
    run(&["stats", "q.csv", "q.csv", "--columns", "kT,kT_mean,kT_mean_error", "--skip", "0", "--out", "again.csv"]);
    run(&["plot", "again.csv", "--x", "kT", "--y", "kT_mean", "--errors"]);
}

#[test]
fn an_equation_of_state_needs_no_script() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |args: &[&str]| {
        let done = galamost(folder.path(), args);
        assert!(done.status.success(), "{args:?}: {}", words(&done));
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    for density in ["0.2", "0.3", "0.4"] {
        let one = folder.path().join(format!("rho-{density}"));
        std::fs::create_dir(&one).expect("a folder");
        std::fs::write(one.join("run.ron"), LIQUID.replace("DENSITY", density)).expect("written");
        run(&["--pipeline", &format!("rho-{density}/run.ron"), "--device", "cpu", "--quiet"]);
    }
    run(&["stats", "rho-*/thermo.csv", "--columns", "kT,pressure", "--out", "eos.csv"]);
    let text = std::fs::read_to_string(folder.path().join("eos.csv")).expect("a table");
    let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split(',').collect()).collect();
    let head =
        ["run", "density", "rows", "skipped", "kT", "kT_error", "pressure", "pressure_error", "not_equilibrated"];
    assert_eq!((rows.len(), &rows[0][..]), (4, &head[..]));
    for (row, density) in rows[1..].iter().zip(["0.2", "0.3", "0.4"]) {
        assert_eq!(row[..2], [&format!("rho-{density}/thermo.csv"), density]);
        let one: serde_json::Value =
            serde_json::from_str(&run(&["stats", row[0], "--columns", "kT,pressure", "--json"])).expect("JSON");
        for (cell, key) in [(row[6], "mean"), (row[7], "error")] {
            let (cell, alone) = (cell.parse::<f64>().expect("a number"), one[1][key].as_f64().expect(key));
            assert!((cell - alone).abs() < 1e-14 * cell.abs(), "{key}: {cell}, {alone}");
        }
    }
    run(&["plot", "eos.csv", "--x", "density", "--y", "pressure", "--errors", "--out", "eos.svg"]);
    well_formed(&std::fs::read_to_string(folder.path().join("eos.svg")).expect("a plot"));
    let fitted = run(&["stats", "eos.csv", "--fit", "a + b*x", "--x", "density", "--y", "pressure"]);
    assert!(fitted.starts_with("a = ") && fitted.contains("\nb = ") && fitted.contains("3 points"), "{fitted}");
    run(&["report", "rho-0.2/run.ron", "rho-0.3/run.ron", "rho-0.4", "--out", "runs.html"]);
    let page = std::fs::read_to_string(folder.path().join("runs.html")).expect("a page");
    for part in [
        "<h1>3 runs</h1>",
        "<th>density</th>",
        "<td>rho-0.3/run.ron</td><td>0.3</td>",
        "<h2>thermo.csv against density</h2>",
        "<h2>Averages of thermo.csv</h2>",
        "<h2>Curves of all runs</h2>",
    ] {
        assert!(page.contains(part), "{part} is not in the page");
    }
    run(&["stats", "rho-0.2/thermo.csv", "--columns", "kT,pressure", "--blocks", "blocks.svg"]);
    let svg = std::fs::read_to_string(folder.path().join("blocks.svg")).expect("a plot");
    well_formed(&svg);
    assert!(svg.contains("rows in a block") && svg.contains("error of pressure"));
    for (args, message) in [
        (&["stats", "phi-*/thermo.csv"][..], "phi-*/thermo.csv: no file matches this pattern"),
        (&["stats", "rho-*/thermo.csv", "--json"], "work with one table"),
        (&["stats", "eos.csv", "--fit", "a + b*x"], "--fit needs --y COLUMN"),
        (&["stats", "eos.csv", "--fit", "a + +", "--x", "density", "--y", "kT"], "eos.csv: --fit: "),
    ] {
        let done = galamost(folder.path(), args);
        assert_eq!(done.status.code(), Some(2), "{args:?}");
        assert!(words(&done).contains(message), "{}", words(&done));
    }
}
