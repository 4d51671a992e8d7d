//! A bilayer of DPPC with Martini 2: the area per lipid.

use super::*;
use galamost_tests::tolerances::agrees;
use galamost_tests::{galamost, repository, skip, words};

/// Copies of examples/80-martini along x and y, each with 16 lipids in a leaflet.
const COPIES: usize = 2;

/// Area per lipid in nm², at 323 K and 1 bar, with the same pressure along both axes of the bilayer. 128 lipids for 24 ns take minutes
/// on a GPU and hours on the CPU, where only the first steps are done.
#[test]
#[ignore = "minutes on a GPU"]
fn lipids_have_their_area() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in ["system.top", "system.gro", "martini.itp", "lipid.itp"] {
        let from = repository().join("examples/80-martini").join(file);
        std::fs::copy(from, folder.path().join(file)).expect("copied");
    }
    let convert = ["convert", "system.top", "sim.ron", "--coordinates", "system.gro", "--temperature", "323"];
    let out = galamost(folder.path(), &convert);
    assert_eq!(out.status.code(), Some(0), "{}", words(&out));
    let text = std::fs::read_to_string(folder.path().join("sim.ron")).expect("a pipeline");
    let (head, _) = text.split_once("    analyzers: [").expect("analyzers");
    let structure = "GalamostXml(file: \"sim.xml\"),";
    assert!(head.contains(structure), "{head}");
    let copies = format!("{structure} Replicate(times: [{COPIES}, {COPIES}, 1]), Velocities(kT: 2.6856),");
    let head = head.replace(structure, &copies);
    let long = device() != DeviceChoice::Cpu;
    let [equilibrate, sample] = if long { [200_000, 1_000_000] } else { [200, 400] };
    let npt = "MtkNpt(kT: 2.6856, tau: 1.0, pressure: 0.0602214, tau_p: 4.0, couple: Xy)";
    // the comment before the pipeline may have parentheses
    let head = &head[head.find("\n(").expect("a pipeline")..];
    let s = sampled_in(
        folder.path(),
        &format!(
            "{head} stages: [(name: \"relax\", steps: 500, dt: 0.02, integrators: [CappedVerlet(max_displacement: 0.01)]), \
             (name: \"heat\", steps: 500, dt: 0.02, integrators: [Langevin(kT: 2.6856, gamma: 72.0)]), \
             (name: \"equilibrate\", steps: {equilibrate}, dt: 0.02, integrators: [{npt}]), \
             (name: \"sample\", steps: {sample}, dt: 0.02, integrators: [{npt}], analyzers: [Thermo(every: 100, file: \"t.csv\")])])"
        ),
    );
    let lipids = (16 * COPIES * COPIES) as f64;
    let area: Vec<f64> = s["length_x"].iter().zip(&s["length_y"]).map(|(x, y)| x * y / lipids).collect();
    println!("area per lipid {} nm², kT {}", mean(&area), mean(&s["kT"]));
    // lipids neither evaporate nor collapse
    assert!(area.iter().all(|a| (0.5..0.8).contains(a)), "{area:?}");
    if long {
        agrees("Martini DPPC: area per lipid", &area);
    } else {
        skip("GPU", "1.2 million steps of 2,304 beads take hours on the CPU; the area is not compared");
    }
}
