//! Rows of the plain list: they hold all neighbors in boxes of any shape, whichever kernels build them.

use galamost_tests::{has_compiler, program, words};
use std::path::Path;
use std::process::Command;

/// Boxes with few and with many cells along each axis, dense and dilute; the last one is two-dimensional.
const BOXES: [(u32, &str); 8] = [
    (400, "[9.0, 9.0, 9.0]"),
    (300, "[2.1, 9.0, 13.0]"),
    (300, "[13.0, 2.1, 9.0]"),
    (300, "[9.0, 13.0, 2.1]"),
    (500, "[2.1, 2.1, 40.0]"),
    (150, "[30.0, 20.0, 25.0]"),
    (2_000, "[5.0, 4.0, 5.5]"),
    (300, "[20.0, 15.0, 0.0]"),
];

/// The number of pairs within the cutoff is the energy. Lengths of 10⁻²⁵ and 10²⁵ need double precision, and their squares are out of the
/// range of a float.
fn write(folder: &Path, [precision, exponent]: [&str; 2]) {
    for (k, (count, sides)) in BOXES.into_iter().enumerate() {
        let sides = sides.replace(',', &format!("{exponent},")).replace(']', &format!("{exponent}]"));
        let text = format!(
            "(seed: {k}, precision: {precision}, neighbors: (list: Plain, buffer: 0.0001{exponent}), initial: [RandomPositions(count: {count}, box: {sides})], \
             forces: [PairExpression(energy: \"1.0 + 0.0*r\", r_cut: 1.0{exponent}, mode: Cut, pairs: {{ (\"A\", \"A\"): () }})], \
             integrators: [VelocityVerlet()], analyzers: [Thermo(every: 1, file: \"t{k}.csv\")], stages: [(steps: 0, dt: 0.001)])"
        );
        std::fs::write(folder.join(format!("p{k}.ron")), text).expect("written");
    }
}

/// Returns the potential energies of all systems.
fn energies(device: &str, units: [&str; 2], two_kernels: bool) -> Vec<f64> {
    let f = tempfile::tempdir().expect("a folder");
    write(f.path(), units);
    let mut c = Command::new(program());
    c.current_dir(f.path()).args(["--quiet", "--device", device, "--pipeline"]);
    c.args((0..BOXES.len()).map(|k| format!("p{k}.ron")));
    if two_kernels {
        c.env("GALAMOST_EMULATED_STEPS", "1");
    }
    let out = c.output().expect("started");
    assert!(out.status.success(), "{}", words(&out));
    let energy = |k: usize| {
        let text = std::fs::read_to_string(f.path().join(format!("t{k}.csv"))).expect("a table");
        let rows: Vec<Vec<&str>> =
            text.lines().filter(|l| !l.starts_with('#')).map(|l| l.split(',').collect()).collect();
        let column = rows[0].iter().position(|c| *c == "potential").expect("the column");
        rows[1][column].parse().expect("a number")
    };
    (0..BOXES.len()).map(energy).collect()
}

#[test]
fn rows_hold_all_neighbors_in_boxes_of_any_shape() {
    for units in [["Mixed", ""], ["Double", "e-25"], ["Double", "e25"]] {
        let expected = energies("cpu", units, false);
        assert!(expected.iter().all(|e| *e > 0.0), "{expected:?}");
        if has_compiler() {
            for two_kernels in [false, true] {
                let found = energies("emulated", units, two_kernels);
                assert_eq!(found, expected, "{units:?}, rebuilds in two kernels: {two_kernels}");
            }
        }
    }
}
