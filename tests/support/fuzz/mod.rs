//! What hostile input is given to: every function takes any bytes, and may refuse them, but neither panic, nor hang, nor
//! ask for memory that the input's size does not explain. An error names the file. `tests/fuzzing.rs` calls them with a few
//! thousand mutated inputs, `tests/instruments` on all processors for hours, `tests/fuzz/` with libFuzzer.

mod mutate;
mod seeds;

pub use mutate::{Draws, mutated};
pub use seeds::seeds;

use galamost::files::Reader;
use galamost::output::series::Series;
use galamost::plot::{PlotSelection, plot};
use galamost::stats::{Skip, of_series};
use galamost_engine::checkpoint::Checkpoint;
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::run::{RunOptions, execute};
use galamost_pictures::Theme;
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values, intern};
use std::path::PathBuf;
use std::sync::OnceLock;

/// A function that takes any bytes. Returns whether it accepted them.
pub type Target = fn(&[u8]) -> bool;

/// All of them; corpora are folders of the same name in `tests/fuzz/corpus`.
pub const TARGETS: [(&str, Target); 20] = [
    ("pipeline", pipeline),
    ("generators", generators),
    ("galamost_xml", galamost_xml),
    ("gsd", gsd),
    ("packed", galamost_xml),
    ("lammps_data", lammps_data),
    ("lammps_dump", lammps_dump),
    ("extended_xyz", extended_xyz),
    ("mst", mst),
    ("pdb", pdb),
    ("gro", gro),
    ("dcd", dcd),
    ("xtc", xtc),
    ("trr", trr),
    ("pair_table", pair_table),
    ("angle_table", angle_table),
    ("patches", patches),
    ("checkpoint", checkpoint),
    ("csv", csv),
    ("parquet", parquet),
];

/// A folder of this process.
fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| tempfile::tempdir().expect("a folder").keep())
}

/// A file with these bytes, of this thread.
fn file(name: &str, data: &[u8]) -> String {
    let thread = format!("{:?}", std::thread::current().id());
    let name = format!("{}-{name}", thread.chars().filter(char::is_ascii_digit).collect::<String>());
    std::fs::write(folder().join(&name), data).expect("written");
    name
}

/// The plugins of the workspace.
fn shipped() -> &'static Registry {
    static SHIPPED: OnceLock<Registry> = OnceLock::new();
    SHIPPED.get_or_init(|| {
        let r = Registry::load(&[crate::output()], 1);
        assert!(r.components().len() > 50, "only {} components in {}", r.components().len(), crate::output().display());
        r
    })
}

/// Returns the answer, or nothing if the input was refused. A panic in a plugin comes back as an error; here it is what is
/// looked for. An error of the input must name a file.
fn judge<T>(answer: Result<T, Failure>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(e) => {
            let said = e.render();
            assert!(!said.contains("panicked"), "{said}");
            if std::env::var_os("GALAMOST_FUZZ_SHOW").is_some() {
                eprintln!("{said}");
            }
            if let Failure::Input(list) = &e {
                assert!(!list.is_empty() && list.iter().all(|d| !d.file.as_os_str().is_empty()), "no file: {said}");
            }
            None
        }
    }
}

fn checked(text: &str) -> Option<Plan> {
    planned(text, None)
}

/// Parses and checks a pipeline. With a state, its generators are left out.
fn planned(text: &str, state: Option<Snapshot>) -> Option<Plan> {
    let path = folder().join("p.ron");
    let parsed = Pipeline::parse(&path, text, &[])
        .map_err(|list| Failure::Input(list.into_iter().map(|e| Diagnostic::new(&path, e.at, e.message)).collect()));
    let mut pipeline = judge(parsed)?;
    pipeline.device = DeviceChoice::Cpu;
    if state.is_some() {
        pipeline.initial.clear();
    }
    judge(check(pipeline, shipped(), CheckOptions { snapshot: state, ..CheckOptions::default() }))
}

/// A pipeline without its generators, for a small state: the parameters of all other components. Nothing is made or read,
/// so this takes less than a millisecond.
pub fn pipeline(data: &[u8]) -> bool {
    std::str::from_utf8(data).is_ok_and(|text| planned(text, Some(state_for(text))).is_some())
}

/// Sixty particles of the types that a pipeline names, in chains of its bond types.
fn state_for(text: &str) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [10.0; 3], ..Snapshot::default() };
    for name in text.split('"').skip(1).step_by(2).take(300) {
        let list = match name.matches('-').count() {
            0 if name.len() == 1 => &mut s.types,
            0 if name == "chain" => &mut s.bond_types,
            1 => &mut s.bond_types,
            2 => &mut s.angle_types,
            3 => &mut s.dihedral_types,
            _ => continue,
        };
        intern(list, name);
    }
    intern(&mut s.types, "A");
    let [types, bonds, angles] = [&s.types, &s.bond_types, &s.angle_types].map(|list| list.len() as u32);
    for k in 0..60u32 {
        s.push(k % types, [k % 5, k / 5 % 4, k / 20].map(|x| f64::from(x) * 1.5 - 3.0));
        if k % 10 != 0 && bonds > 0 {
            s.bonds.push(Link { kind: k % bonds, tags: [k - 1, k] });
        }
        if k % 10 > 1 && angles > 0 {
            s.angles.push(Link { kind: k % angles, tags: [k - 2, k - 1, k] });
        }
    }
    let charge = (0..60).map(|k| if k % 2 == 0 { 0.5 } else { -0.5 }).collect();
    s.arrays.insert("charge".into(), Array { width: 1, values: Values::Real(charge) });
    s
}

/// A pipeline with its generators.
pub fn generators(data: &[u8]) -> bool {
    std::str::from_utf8(data).is_ok_and(|text| checked(&small_numbers(text)).is_some())
}

/// Cuts whole numbers above 30 to their first digit and large exponents away: a user may ask for 10¹² particles, and would
/// wait for them. Words and fractions stay.
pub fn small_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let inside = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let end = rest.find(|c| !inside(c)).unwrap_or(rest.len()).max(first.len_utf8());
        let (token, after) = rest.split_at(end);
        rest = after;
        if !first.is_ascii_digit() {
            out.push_str(token);
            continue;
        }
        let (mantissa, exponent) = token.split_once(['e', 'E']).map_or((token, None), |(m, e)| (m, Some(e)));
        let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(w, f)| (w, Some(f)));
        let digits: String = whole.chars().filter(char::is_ascii_digit).collect();
        out.push_str(if digits.parse::<u64>().is_ok_and(|n| n <= 30) { whole } else { &digits[..1] });
        fraction.iter().for_each(|f| out.extend([".", f]));
        // `1e9` and `1e+9`; the sign of `1e-9` follows as another token
        if let Some(e) = exponent {
            out.push_str(if e.is_empty() { "e" } else { "e-" });
            out.push_str(e);
            if e.is_empty() {
                rest = rest.strip_prefix('+').unwrap_or(rest);
                if !rest.starts_with('-') {
                    out.push('-');
                }
            }
        }
    }
    out
}

const LJ: &str = r#"forces: [LennardJones(r_cut: 1.2, pairs: {("A", "A"): (epsilon: 1.0, sigma: 0.5)})]"#;

/// A file of the format `galamost_xml`, perhaps compressed.
pub fn galamost_xml(data: &[u8]) -> bool {
    let f = file("f.xml", data);
    checked(&format!("(initial: [GalamostXml(file: \"{f}\")], stages: [(steps: 0, dt: 0.001)])")).is_some()
}

/// A GSD file.
pub fn gsd(data: &[u8]) -> bool {
    let f = file("f.gsd", data);
    checked(&format!("(initial: [Gsd(file: \"{f}\")], stages: [(steps: 0, dt: 0.001)])")).is_some()
}

/// Every frame of a file, as a run and `galamost convert` read them.
fn frames(f: &str, made: Option<&str>) -> bool {
    let path = folder().join(f);
    let base = match made {
        Some(text) => match checked(text) {
            Some(plan) => plan.snapshot,
            None => panic!("the pipeline is right"),
        },
        None => Snapshot::default(),
    };
    let Some(reader) = judge(Reader::open(&path, shipped())) else { return false };
    let n = judge(reader.frames()).flatten().unwrap_or(1);
    // a short file may claim many frames
    let read = |k| judge(reader.read_over(Some(k), base.clone())).is_some();
    // every frame is read, also after one that fails
    let failed = (0..n.min(5) as i64).chain([-1]).filter(|k| !read(*k)).count();
    failed == 0
}

/// A data file of LAMMPS.
pub fn lammps_data(data: &[u8]) -> bool {
    frames(&file("f.data", data), None)
}

/// A text dump of LAMMPS.
pub fn lammps_dump(data: &[u8]) -> bool {
    frames(&file("f.dump", data), None)
}

/// An extended XYZ file.
pub fn extended_xyz(data: &[u8]) -> bool {
    frames(&file("f.xyz", data), None)
}

/// An MST file.
pub fn mst(data: &[u8]) -> bool {
    frames(&file("f.mst", data), None)
}

/// A PDB file.
pub fn pdb(data: &[u8]) -> bool {
    frames(&file("f.pdb", data), None)
}

/// A GRO file.
pub fn gro(data: &[u8]) -> bool {
    frames(&file("f.gro", data), None)
}

/// The particles of the small run.
const SMALL: &str =
    "(initial: [Lattice(lattice: Sc, cells: [3, 3, 3], density: 0.5)], stages: [(steps: 0, dt: 0.001)])";

/// A DCD file, for the particles of the small run.
pub fn dcd(data: &[u8]) -> bool {
    frames(&file("f.dcd", data), Some(SMALL))
}

/// An XTC file, for the particles of the small run.
pub fn xtc(data: &[u8]) -> bool {
    frames(&file("f.xtc", data), Some(SMALL))
}

/// A TRR file, for the particles of the small run.
pub fn trr(data: &[u8]) -> bool {
    frames(&file("f.trr", data), Some(SMALL))
}

const LATTICE: &str = "initial: [Lattice(lattice: Sc, cells: [4, 4, 4], density: 0.5)]";

/// A table of a pair potential, of any format.
pub fn pair_table(data: &[u8]) -> bool {
    let f = file("f.table", data);
    checked(&format!(
        "({LATTICE}, forces: [PairTable(pairs: {{(\"A\", \"A\"): (file: \"{f}\")}})], stages: [(steps: 0, dt: 0.001)])"
    ))
    .is_some()
}

/// A table of an angle's potential, of any format.
pub fn angle_table(data: &[u8]) -> bool {
    let f = file("f.pot", data);
    checked(&format!(
        "(initial: [Lattice(lattice: Sc, cells: [4, 4, 4], density: 0.5), LinkTypes(angles: [\"A-A-A\"])], forces: [AngleTable(unit: Radians, angles: {{\"A-A-A\": (file: \"{f}\")}})], stages: [(steps: 0, dt: 0.001)])"
    ))
    .is_some()
}

/// A file of patches.
pub fn patches(data: &[u8]) -> bool {
    let f = file("patches.txt", data);
    checked(&format!(
        "(initial: [Lattice(lattice: Sc, cells: [4, 4, 4], density: 0.5), Orientations(inertia: (0.1, 0.1, 0.1), kT: 1.0)], forces: [Patches(file: \"{f}\", pairs: {{(\"A\", \"A\"): (alpha_r: 396.0)}})], stages: [(steps: 0, dt: 0.001)])"
    ))
    .is_some()
}

/// A checkpoint, whose checksum is made to fit; a few steps are done from it.
pub fn checkpoint(data: &[u8]) -> bool {
    let mut bytes = data.to_vec();
    bytes.extend(blake3::hash(data).as_bytes());
    let f = folder().join(file("f.checkpoint", &bytes));
    let path = folder().join("p.ron");
    let Ok(pipeline) = Pipeline::parse(&path, &small_run(), &[]) else { panic!("the pipeline is right") };
    let options = CheckOptions { resumed: true, ..CheckOptions::default() };
    let plan = check(pipeline, shipped(), options).unwrap_or_else(|e| panic!("{}", e.render()));
    let Some(found) = judge(Checkpoint::find(&plan, &[f], true)) else { return false };
    if found.position.stage_step > 100 || found.state.step > 1000 {
        // a run that has billions of steps to do would do them
        return false;
    }
    let Some(mut backend) = judge(galamost_engine::cpu::backend(&plan).map_err(Failure::from)) else { return false };
    let steps = Some(found.position.stage_step + 3);
    let options = RunOptions { steps, quiet: true, ..RunOptions::default() };
    judge(execute(&plan, &mut *backend, &options, Some(found))).is_some()
}

/// A table of a run, with its statistics and its plot.
pub fn csv(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let Ok(mut table) = Series::parse("t.csv".as_ref(), text) else { return false };
    judge(of_series(&table, &[], Skip::Auto));
    judge(table.at_step(None));
    if let Some(plot) =
        judge(plot(&[("t.csv".into(), table)], &PlotSelection { errors: true, ..PlotSelection::default() }))
    {
        let svg = plot.drawing().svg(Theme::Page);
        // names of columns may be anything, places and sizes may not
        let drawn = svg.lines().map(|l| if l.starts_with("<text") { l.split('>').next().unwrap_or(l) } else { l });
        assert!(!drawn.clone().any(|l| l.contains("NaN") || l.contains("inf")), "{svg}");
    }
    true
}

/// A Parquet table, read for a plot and its averages.
pub fn parquet(data: &[u8]) -> bool {
    let Some(table) = judge(Series::read(&folder().join(file("t.parquet", data)))) else { return false };
    judge(of_series(&table, &[], Skip::Auto));
    true
}

/// The pipeline of [`checkpoint`].
pub fn small_run() -> String {
    format!(
        "(precision: Double, device: Cpu, initial: [Lattice(lattice: Sc, cells: [3, 3, 3], density: 0.5), Velocities(kT: 1.0)], {LJ}, \
         integrators: [NoseHooverChain(kT: 1.0, tau: 0.5)], updaters: [ZeroMomentum(every: 2)], stages: [(steps: 100, dt: 0.002)])"
    )
}

#[cfg(test)]
mod tests {
    use super::small_numbers;

    #[test]
    fn numbers_become_small_and_words_stay() {
        for (text, small) in [
            ("stages: [(steps: 20_000, dt: 0.005)]", "stages: [(steps: 2, dt: 0.005)]"),
            ("cells: [12, 31, 99999999999999999999]", "cells: [12, 3, 9]"),
            ("k: 1e9, l: 2.5e+30, m: 1e-3, A20: -450.25", "k: 1e-9, l: 2.5e-30, m: 1e-3, A20: -4.25"),
            ("ö 1é (", "ö 1é ("),
        ] {
            assert_eq!(small_numbers(text), small);
        }
    }
}
