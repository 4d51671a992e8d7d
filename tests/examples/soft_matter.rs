//! DPD, particle-field dynamics, reactions.

use super::run;
use galamost_tests::{csv, mean};

#[test]
fn example_03_dpd_liquid() {
    let (_keep, folder) = run("03-dpd-liquid");
    let t = csv(&folder.join("03-dpd-liquid.csv"));
    let late = |name: &str| mean(&t[name][50..]);
    assert!((late("kT") - 1.002).abs() < 0.015, "kT {}", late("kT"));
    assert!((late("pressure") - 23.68).abs() < 0.15, "P {}", late("pressure"));
    let p = ["momentum_x", "momentum_y", "momentum_z"].map(|n| t[n].last().copied().unwrap_or(f64::NAN).abs());
    assert!(p.iter().all(|p| *p < 1e-3), "momentum {p:?}");
}

#[test]
fn example_04_diblock() {
    let (_keep, folder) = run("04-diblock");
    let t = csv(&folder.join("04-diblock.csv"));
    let kt = mean(&t["kT"][12..]);
    assert!((kt - 1.0).abs() < 0.02, "kT {kt}");
    assert!(t.contains_key("HarmonicBond") && t.contains_key("Dpd"), "an energy for each component");
    assert!(folder.join("04-diblock.gsd").metadata().expect("a trajectory").len() > 3000 * 12 * 5);
    let last = std::fs::read_to_string(folder.join("04-diblock.0000002000.xml")).expect("the last state");
    assert!(last.contains("<bond num=\"2700\">") && last.contains("time_step=\"2000\""));
}

#[test]
fn example_24_many_body_film() {
    let (_keep, folder) = run("24-many-body-film");
    let t = csv(&folder.join("24-many-body-film.csv"));
    let late = |name: &str| mean(&t[name][50..]);
    let across = late("pressure_zz");
    let tension = 8.0 * (across - 0.5 * (late("pressure_xx") + late("pressure_yy")));
    assert!((late("kT") - 1.0).abs() < 0.04, "kT {}", late("kT"));
    // six runs: −0.2 ± 0.2 and 8.1 ± 1.3
    assert!(across.abs() < 0.9 && (tension - 7.4).abs() < 3.5, "P across {across}, surface tension {tension}");
    let last = std::fs::read_to_string(folder.join("24-many-body-film.0000004000.xml")).expect("the last state");
    let body = last.split_once("<position num=\"1400\">").expect("positions").1.split_once("</").expect("its end").0;
    let inside = body.lines().filter_map(|l| l.split_whitespace().nth(2)?.parse::<f64>().ok());
    let inside = inside.filter(|z| z.abs() < 2.5).count();
    // 763 at a density of 6.1
    assert!((690..840).contains(&inside), "{inside} particles in a layer of 5 × 5 × 5");
}

#[test]
fn example_25_lowe_andersen() {
    let (_keep, folder) = run("25-lowe-andersen");
    let t = csv(&folder.join("25-lowe-andersen.csv"));
    let late = |name: &str| mean(&t[name][40..]);
    assert!((late("kT") - 1.0).abs() < 0.015, "kT {}", late("kT"));
    assert!((late("pressure") - 23.64).abs() < 0.3, "P {}", late("pressure"));
    let p = ["momentum_x", "momentum_y", "momentum_z"].map(|n| t[n].last().copied().unwrap_or(f64::NAN).abs());
    assert!(p.iter().all(|p| *p < 1e-2), "momentum {p:?}");
}

#[test]
fn example_34_field_blend() {
    let (_keep, folder) = run("34-field-blend");
    let t = csv(&folder.join("34-field-blend.csv"));
    let w = &t["MdScf"];
    assert!(w[w.len() - 1] < 0.6 * w[0], "W {} … {}", w[0], w[w.len() - 1]);
    assert!((mean(&t["kT"][50..]) - 1.0).abs() < 0.02);
    let p = csv(&folder.join("34-field-blend-profile.csv"));
    let last = p["A"].len() - 32..;
    let (most, least) =
        (p["A"][last.clone()].iter().copied().fold(0.0, f64::max), p["A"][last].iter().copied().fold(9.0, f64::min));
    assert!(most > 3.5 && least < 0.5, "A between {least} and {most}");
    assert!(folder.join("34-field-blend.0000003000.vtk").exists());
}

#[test]
fn example_35_dppc_water() {
    let (_keep, folder) = run("35-dppc-water");
    let t = csv(&folder.join("35-dppc-water.csv"));
    let w = &t["MdScf"];
    assert!(mean(&w[400..]) < 0.5 * w[0], "W {} … {}", w[0], mean(&w[400..]));
    assert!((mean(&t["kT"][50..]) - 2.644).abs() < 0.05, "kT {}", mean(&t["kT"][50..]));
}

#[test]
fn example_36_charged_field() {
    let (_keep, folder) = run("36-charged-field");
    let t = csv(&folder.join("36-charged-field.csv"));
    let density = 600.0 / mean(&t["volume"][100..]);
    assert!((mean(&t["pressure"][100..]) - 5.0).abs() < 0.15, "P {}", mean(&t["pressure"][100..]));
    assert!((3.1..3.4).contains(&density), "ρ {density}");
}

#[test]
fn example_30_brush() {
    let (_keep, folder) = run("30-brush");
    let t = csv(&folder.join("30-brush.csv"));
    let last = |name: &str| t[name].last().copied().unwrap_or(f64::NAN);
    assert!(t["ends"].iter().all(|n| *n == 57.0), "{:?}", t["ends"]);
    assert!((0.15..0.4).contains(&last("conversion")), "conversion {}", last("conversion"));
    let grown = (last("number_average") - 1.0) * last("molecules");
    let events = std::fs::read_to_string(folder.join("30-brush.events.csv")).expect("events").lines().count() - 1;
    assert_eq!(grown.round() as usize, events, "monomers in chains, and events");
    assert!((1.02..1.5).contains(&last("dispersity")), "dispersity {}", last("dispersity"));
    // the formation of bonds heats a little
    let kt = mean(&csv(&folder.join("30-brush.thermo.csv"))["kT"][10..]);
    assert!((kt - 1.0).abs() < 0.06, "kT {kt}");
}

#[test]
fn example_31_network() {
    let (_keep, folder) = run("31-network");
    let t = csv(&folder.join("31-network.csv"));
    let (step, p) = (&t["step"], &t["conversion"]);
    // rings put the gel point behind that of Flory and Stockmayer, sqrt(1/2)
    let top = (0..p.len()).max_by(|a, b| t["reduced"][*a].total_cmp(&t["reduced"][*b])).expect("rows");
    assert!((0.69..0.82).contains(&p[top]), "gel point {}", p[top]);
    let cured = step.iter().position(|s| *s == 3000.0).expect("the end of the first stage");
    let end = p.len() - 1;
    assert!(p[cured] > 0.8 && p[end] == p[cured], "{} and {}", p[cured], p[end]);
    assert!(t["largest"][end] > 1000.0, "largest {}", t["largest"][end]);
    let events = std::fs::read_to_string(folder.join("31-network.events.csv")).expect("events");
    assert!(events.lines().filter(|l| l.contains(",Exchange,")).count() > 300);
}
