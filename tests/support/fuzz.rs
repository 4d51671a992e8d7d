//! What hostile input is given to: every function takes any bytes, and may refuse them, but neither panic, nor hang, nor
//! ask for memory that the input's size does not explain. `tests/fuzzing.rs` calls them with a few thousand mutated inputs,
//! `tests/fuzz/` for hours with libFuzzer.

use crate::{plan_in, registry};
use galamost::files::Reader;
use galamost::output::series::Series;
use galamost::plot::{PlotSelection, plot};
use galamost::stats::{Skip, of_series};
use galamost_engine::checkpoint::Checkpoint;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::run::{RunOptions, execute};
use galamost_pictures::Theme;
use galamost_plugin_api::snapshot::Snapshot;
use sha2::{Digest as _, Sha256};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A function that takes any bytes.
pub type Target = fn(&[u8]);

/// All of them; corpora are folders of the same name in `tests/fuzz/corpus`.
pub const TARGETS: [(&str, Target); 16] = [
    ("pipeline", pipeline),
    ("galamost_xml", galamost_xml),
    ("gsd", gsd),
    ("packed", galamost_xml),
    ("lammps_data", lammps_data),
    ("lammps_dump", lammps_dump),
    ("extended_xyz", extended_xyz),
    ("mst", mst),
    ("pdb", pdb),
    ("dcd", dcd),
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

/// A panic in a plugin comes back as an error; here it is what is looked for.
fn judge<T>(answer: Result<T, Failure>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(e) => {
            let said = e.render();
            assert!(!said.contains("panicked"), "{said}");
            None
        }
    }
}

fn checked(text: &str) -> Option<Plan> {
    judge(plan_in(&folder().join("p.ron"), text, DeviceChoice::Cpu))
}

/// A pipeline, with the parameters of all components in it. Whole numbers are cut to one digit: a user may ask for 10¹²
/// particles, and would wait for them.
pub fn pipeline(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut small = String::with_capacity(text.len());
    let mut before = ['.', ' '];
    for c in text.chars() {
        // digits behind a point are harmless
        let more = c.is_ascii_digit() && before[1].is_ascii_digit() && !small.ends_with('.');
        let fraction = small.rfind(|c: char| !c.is_ascii_digit()).is_some_and(|at| small[at..].starts_with('.'));
        if !more || fraction {
            small.push(c);
        }
        before = [before[1], c];
    }
    // exponents make large numbers out of small ones
    checked(&small.replace(['e', 'E'], "e-").replace("e--", "e-"));
}

const LJ: &str = r#"forces: [LennardJones(r_cut: 1.2, pairs: {("A", "A"): (epsilon: 1.0, sigma: 0.5)})]"#;

/// A file of the format `galamost_xml`, perhaps compressed.
pub fn galamost_xml(data: &[u8]) {
    let f = file("f.xml", data);
    checked(&format!("(initial: [GalamostXml(file: \"{f}\")], stages: [(steps: 0, dt: 0.001)])"));
}

/// A GSD file.
pub fn gsd(data: &[u8]) {
    let f = file("f.gsd", data);
    checked(&format!("(initial: [Gsd(file: \"{f}\")], stages: [(steps: 0, dt: 0.001)])"));
}

/// Every frame of a file, as a run and `galamost convert` read them.
fn frames(f: &str, made: Option<&str>) {
    let path = folder().join(f);
    let base = match made {
        Some(text) => match checked(text) {
            Some(plan) => plan.snapshot,
            None => panic!("the pipeline is right"),
        },
        None => Snapshot::default(),
    };
    let Some(reader) = judge(Reader::open(&path, registry())) else { return };
    let n = judge(reader.frames()).flatten().unwrap_or(1);
    // a short file may claim many frames
    for k in (0..n.min(5) as i64).chain([-1]) {
        judge(reader.read_over(Some(k), base.clone()));
    }
}

/// A data file of LAMMPS.
pub fn lammps_data(data: &[u8]) {
    frames(&file("f.data", data), None);
}

/// A text dump of LAMMPS.
pub fn lammps_dump(data: &[u8]) {
    frames(&file("f.dump", data), None);
}

/// An extended XYZ file.
pub fn extended_xyz(data: &[u8]) {
    frames(&file("f.xyz", data), None);
}

/// An MST file.
pub fn mst(data: &[u8]) {
    frames(&file("f.mst", data), None);
}

/// A PDB file.
pub fn pdb(data: &[u8]) {
    frames(&file("f.pdb", data), None);
}

/// A DCD file, for the particles of the small run.
pub fn dcd(data: &[u8]) {
    let text = "(initial: [Lattice(lattice: Sc, cells: [3, 3, 3], density: 0.5)], stages: [(steps: 0, dt: 0.001)])";
    frames(&file("f.dcd", data), Some(text));
}

const LATTICE: &str = "initial: [Lattice(lattice: Sc, cells: [4, 4, 4], density: 0.5)]";

/// A table of a pair potential, of any format.
pub fn pair_table(data: &[u8]) {
    let f = file("f.table", data);
    checked(&format!(
        "({LATTICE}, forces: [PairTable(pairs: {{(\"A\", \"A\"): (file: \"{f}\")}})], stages: [(steps: 0, dt: 0.001)])"
    ));
}

/// A table of an angle's potential, of any format.
pub fn angle_table(data: &[u8]) {
    let f = file("f.pot", data);
    checked(&format!(
        "({LATTICE}, forces: [AngleTable(angles: {{\"A-A-A\": (file: \"{f}\")}})], stages: [(steps: 0, dt: 0.001)])"
    ));
}

/// A file of patches.
pub fn patches(data: &[u8]) {
    let f = file("patches.txt", data);
    checked(&format!(
        "({LATTICE}, forces: [Patches(patches: \"{f}\", pairs: {{(\"A\", \"A\"): (alpha_r: 396.0)}})], stages: [(steps: 0, dt: 0.001)])"
    ));
}

/// A checkpoint, whose checksum is made to fit; a few steps are done from it.
pub fn checkpoint(data: &[u8]) {
    let mut bytes = data.to_vec();
    bytes.extend(Sha256::digest(data));
    let f = folder().join(file("f.checkpoint", &bytes));
    let path = folder().join("p.ron");
    let Ok(pipeline) = Pipeline::parse(&path, &small_run(), &[]) else { panic!("the pipeline is right") };
    let options = CheckOptions { resumed: true, ..CheckOptions::default() };
    let plan = check(pipeline, registry(), options).unwrap_or_else(|e| panic!("{}", e.render()));
    let Some(found) = judge(Checkpoint::find(&plan, &[f], true)) else { return };
    if found.position.stage_step > 100 || found.state.step > 1000 {
        // a run that has billions of steps to do would do them
        return;
    }
    let Some(mut backend) = judge(galamost_engine::cpu::backend(&plan).map_err(Failure::from)) else { return };
    let steps = Some(found.position.stage_step + 3);
    judge(execute(&plan, &mut *backend, &RunOptions { steps, quiet: true, ..RunOptions::default() }, Some(found)));
}

/// A table of a run, with its statistics and its plot.
pub fn csv(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(mut table) = Series::parse("t.csv".as_ref(), text) else { return };
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
}

/// A Parquet table, read for a plot and its averages.
pub fn parquet(data: &[u8]) {
    let Some(table) = judge(Series::read(&folder().join(file("t.parquet", data)))) else { return };
    judge(of_series(&table, &[], Skip::Auto));
}

/// The pipeline of [`checkpoint`].
pub fn small_run() -> String {
    format!(
        "(precision: Double, device: Cpu, initial: [Lattice(lattice: Sc, cells: [3, 3, 3], density: 0.5), Velocities(kT: 1.0)], {LJ}, \
         integrators: [NoseHooverChain(kT: 1.0, tau: 0.5)], updaters: [ZeroMomentum(every: 2)], stages: [(steps: 100, dt: 0.002)])"
    )
}

/// Bytes to begin with: examples of every target.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let repository = crate::repository();
    let read = |folder: PathBuf, ending: &str| -> Vec<Vec<u8>> {
        let list = std::fs::read_dir(folder).into_iter().flatten().filter_map(|e| Some(e.ok()?.path()));
        let mut paths: Vec<PathBuf> = list.filter(|p| p.is_file() && p.to_string_lossy().ends_with(ending)).collect();
        paths.sort();
        paths.into_iter().filter_map(|p| std::fs::read(p).ok()).filter(|b| b.len() < 15_000).collect()
    };
    let mut all = read(repository.join("tests/fuzz/corpus").join(target), "");
    match target {
        "pipeline" => all.extend(read(repository.join("examples"), ".ron")),
        "galamost_xml" => all.extend(read(repository.join("examples"), ".xml")),
        "packed" => {
            let plain =
                std::fs::read(repository.join("tests/fuzz/corpus/galamost_xml/all-arrays.xml")).expect("a file");
            let mut gz = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
            gz.write_all(&plain).expect("packed");
            all.push(gz.finish().expect("packed"));
            let mut xz = vec![];
            lzma_rs::xz_compress(&mut plain.as_slice(), &mut xz).expect("packed");
            all.push(xz);
        }
        "lammps_data" => all.push(made("data", "analyzers=[LammpsData(every: 8, file: \"made.data\")]", "made.data")),
        "lammps_dump" => all.push(made("dump", "analyzers=[LammpsDump(every: 4, file: \"made.dump\")]", "made.dump")),
        "extended_xyz" => all.push(made("xyz", "analyzers=[ExtendedXyz(every: 4, file: \"made.xyz\")]", "made.xyz")),
        "mst" => all.push(made("mst", "analyzers=[Mst(every: 4, file: \"made.mst\")]", "made.mst")),
        "pdb" => all.push(made("pdb", "analyzers=[Pdb(every: 4, file: \"made.pdb\")]", "made.pdb")),
        "dcd" => all.push(made("dcd", "analyzers=[Dcd(every: 4, file: \"made.dcd\")]", "made.dcd")),
        "gsd" => all.push(made("gsd", "analyzers=[Gsd(every: 4, file: \"made.gsd\")]", "made.gsd")),
        "parquet" => {
            let set =
                "analyzers=[Thermo(every: 1, file: \"t.parquet\"), Rdf(every: 4, file: \"rdf.parquet\", r_max: 1.0)]";
            all.push(made("parquet", set, "t.parquet/part-000000.parquet"));
            all.push(made("parquet", set, "rdf.parquet"));
        }
        "checkpoint" => {
            let mut bytes = made("checkpoint", "checkpoint=(every: 7, keep: 1)", "p.checkpoint");
            bytes.truncate(bytes.len() - 32);
            all.push(bytes);
        }
        _ => {}
    }
    all
}

/// A file written by a short run. Its content depends on the build of the plugins, so it is created on demand.
fn made(name: &str, set: &str, file: &str) -> Vec<u8> {
    let folder = folder().join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("p.ron"), small_run()).expect("written");
    let out = crate::galamost(&folder, &["--pipeline", "p.ron", "--quiet", "--steps", "8", "--set", set]);
    assert!(out.status.success(), "{}", crate::words(&out));
    std::fs::read(folder.join(file)).expect("a file")
}
