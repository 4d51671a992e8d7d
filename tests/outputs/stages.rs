//! Stages that continue files.

use super::{contents, folder, go, growing, refused};
use galamost_tests::csv;

/// Two stages with the same analyzers and files write what one analyzer writes that is active in both, also if the run is
/// stopped in either stage and resumed.
#[test]
fn stages_continue_the_files_of_earlier_stages() {
    let all = growing(5);
    let common = folder(&format!("analyzers: [ {all} ], stages: [ (steps: 20, dt: 0.002), (steps: 23, dt: 0.002) ],"));
    let lines = format!(
        "stages: [ (steps: 20, dt: 0.002, analyzers: [ {all} ]), (steps: 23, dt: 0.002, analyzers: [ {all} ]) ],"
    );
    go(common.path(), &["--pipeline", "p.ron"], 0);
    let wanted: Vec<_> = contents(common.path()).into_iter().filter(|(n, _)| n.starts_with('t')).collect();
    assert_eq!(wanted.len(), 11);
    assert_eq!(csv(&common.path().join("t.csv"))["step"].len(), 9);
    let cases: [&[&str]; 5] = [&[], &["12"], &["20"], &["31"], &["7", "29"]];
    for stops in cases {
        let own = folder(&lines);
        let mut resume: &[&str] = &[];
        for stop in stops.iter().copied() {
            let steps = ["--steps", stop, "--set", "checkpoint=(every: 1000)"];
            go(own.path(), &[&["--pipeline", "p.ron"][..], &steps, resume].concat(), 0);
            resume = &["--resume"];
        }
        go(own.path(), &[&["--pipeline", "p.ron"][..], resume].concat(), 0);
        let found: Vec<_> = contents(own.path()).into_iter().filter(|(n, _)| n.starts_with('t')).collect();
        for ((name, a), (other, b)) in wanted.iter().zip(&found) {
            assert!(name == other && a == b, "{stops:?}: {name} of {} bytes, {other} of {} bytes", a.len(), b.len());
        }
        assert_eq!(found.len(), wanted.len());
        assert!(own.path().join("0000000040.xml").exists());
    }
}

/// A file with results of all samples belongs to one component.
#[test]
fn results_of_two_stages_need_two_files() {
    let rdf = "analyzers: [ Rdf(every: 5, file: \"r.csv\", r_max: 2.0) ]";
    let f = folder(&format!("stages: [ (steps: 20, dt: 0.002, {rdf}),\n (steps: 20, dt: 0.002, {rdf}) ],"));
    let said = go(f.path(), &["check", "p.ron"], 2);
    assert!(said.contains("p.ron:6:58: Rdf: `r.csv` is also written by Rdf (p.ron:5:71); results of all"), "{said}");
    assert!(said.contains("cannot be continued; choose another file"), "{said}");
}

/// The columns of energies are those of all stages that write the table; a force of another stage has no value.
#[test]
fn a_table_has_the_energies_of_all_its_stages() {
    let soft = "forces: [ Wca(pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) }) ]";
    for own in [false, true] {
        let thermo = "analyzers: [ Thermo(every: 10, file: \"t.csv\") ]";
        let (common, of_stage) =
            if own { (String::new(), format!(", {thermo}")) } else { (format!("{thermo},"), String::new()) };
        let f = folder(&format!(
            "{common} stages: [ (steps: 15, dt: 0.002, {soft}{of_stage}), (steps: 15, dt: 0.002{of_stage}) ],"
        ));
        go(f.path(), &["--pipeline", "p.ron"], 0);
        let t = csv(&f.path().join("t.csv"));
        assert_eq!(t["step"], [0.0, 10.0, 20.0, 30.0]);
        assert!(t["Wca"].iter().map(|x| x.is_nan()).eq([false, false, true, true]), "{t:?}");
        assert!(t["LennardJones"].iter().map(|x| x.is_nan()).eq([true, true, false, false]), "{t:?}");
        for (k, potential) in t["potential"].iter().enumerate() {
            let force = if k < 2 { "Wca" } else { "LennardJones" };
            assert_eq!(t[force][k], *potential);
        }
    }
}

/// Two stages continue one file only if their components differ in when they write. A reader cannot distinguish rows of
/// different thresholds in one table, or frames with different fields.
#[test]
fn stages_do_not_mix_rows_of_other_parameters() {
    let stages = |first: &str, second: &str| {
        let stage = |name: &str, analyzer: &str| {
            format!("(name: \"{name}\", steps: 10, dt: 0.002, analyzers: [ {analyzer} ]),")
        };
        format!("stages: [ {}\n {} ],", stage("a", first), stage("b", second))
    };
    for (first, second, expected) in [
        (
            "Clusters(every: 5, file: \"t.csv\", r_bond: 1.2)",
            "Clusters(every: 10, file: \"./t.csv\", r_bond: 1.5)",
            "`./t.csv` continues the file of Clusters (p.ron:5:87), but r_bond 1.2 → 1.5; only every, offset, from_stage, at_end and \
             names of files may differ",
        ),
        (
            "ExtendedXyz(every: 5, file: \"t.csv\")",
            "ExtendedXyz(every: 5, file: \"t.csv\", forces: true)",
            "p.ron:6:77: ExtendedXyz: `t.csv` continues the file of ExtendedXyz (p.ron:5:90), but forces absent → true;",
        ),
        (
            "Thermo(every: 5, file: \"t.csv\")",
            "Thermo(every: 5, file: \"t.csv\", by_type: true)",
            "but by_type absent → true;",
        ),
    ] {
        refused(&stages(first, second), expected);
    }
    let f = folder(&stages(
        "Thermo(every: 5, file: \"t.csv\")",
        "Thermo( every: 2, // more often\n file: \"./t.csv\", offset: 1, at_end: true)",
    ));
    go(f.path(), &["--pipeline", "p.ron"], 0);
    assert_eq!(csv(&f.path().join("t.csv"))["step"], [0.0, 5.0, 10.0, 11.0, 13.0, 15.0, 17.0, 19.0, 20.0]);
}
