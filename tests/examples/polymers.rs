//! Chains: melts, single chains, built systems, chain sampling.

use super::run;
use galamost_tests::tolerances::{agrees, bound, near};
use galamost_tests::{csv, dump, mean};

#[test]
fn example_06_kremer_grest_melt() {
    let (_keep, folder) = run("06-kremer-grest-melt");
    let t = csv(&folder.join("06-kremer-grest-melt.csv"));
    agrees("example 06: kT", &t["kT"][45..]);
    agrees("example 06: P", &t["pressure"][45..]);
    let last = std::fs::read_to_string(folder.join("06-kremer-grest-melt.0000004000.xml")).expect("the last state");
    let rows = |node: &str| -> Vec<Vec<f64>> {
        let (_, rest) = last.split_once(&format!("<{node} num=\"1000\">\n")).expect("a node");
        let text = rest.split_once(&format!("</{node}>")).expect("its end").0;
        text.lines().map(|l| l.split_whitespace().map(|x| x.parse().expect("a number")).collect()).collect()
    };
    let (position, length) = (rows("position"), 10.5567);
    let mut lengths = vec![];
    for chain in 0..40 {
        for k in 25 * chain..25 * chain + 24 {
            let d = |a: usize| {
                let x: f64 = position[k + 1][a] - position[k][a];
                x - length * (x / length).round()
            };
            lengths.push((d(0).powi(2) + d(1).powi(2) + d(2).powi(2)).sqrt());
        }
    }
    let longest = lengths.iter().copied().fold(0.0, f64::max);
    agrees("example 06: bond length", &lengths);
    assert!(longest < 1.25, "{longest}");
}

#[test]
#[ignore = "5 seconds"]
fn example_26_single_chains() {
    let (_keep, folder) = run("26-single-chains");
    let t = csv(&folder.join("26-single-chains.csv"));
    agrees("example 26: U", &t["LennardJones"][150..]);
    agrees("example 26: kT", &t["kT"][100..]);
    // beads of different chains do not see each other: many are where one chain would not let them be
    let last = std::fs::read_to_string(folder.join("26-single-chains.0000020000.xml")).expect("the last state");
    let body = last.split_once("<position num=\"400\">").expect("positions").1.split_once("</").expect("its end").0;
    let x: Vec<Vec<f64>> = body
        .split_terminator('\n')
        .filter(|l| !l.is_empty())
        .map(|l| l.split_whitespace().map(|x| x.parse().expect("a number")).collect())
        .collect();
    assert_eq!(x.len(), 400);
    let near = |i: usize, j: usize| {
        let d = |k: usize| {
            let d = x[i][k] - x[j][k];
            d - 8.0 * (d / 8.0).round()
        };
        d(0).powi(2) + d(1).powi(2) + d(2).powi(2) < 0.49
    };
    let pairs = (0..400).flat_map(|i| (0..i).map(move |j| (i, j)));
    let (mut inside, mut between) = (0, 0);
    for (i, j) in pairs.filter(|(i, j)| near(*i, *j)) {
        *(if i / 20 == j / 20 { &mut inside } else { &mut between }) += 1;
    }
    assert!(inside < 3 && between > 20, "{inside} close pairs inside of chains, {between} between them");
}

#[test]
#[ignore = "5 seconds"]
fn example_40_distributions() {
    let (_keep, folder) = run("40-distributions");
    for (file, width, name) in
        [("40-bonds.csv", 0.01, "A-A"), ("40-angles.csv", 3.0, "A-A-A"), ("40-dihedrals.csv", 10.0, "A-A-A-A")]
    {
        let t = csv(&folder.join(file));
        assert!((t[name].iter().sum::<f64>() * width - 1.0).abs() < 1e-9, "{file}");
    }
    // both wells of the bonds: 0.92 and 1.08, the first one deeper
    let bonds = csv(&folder.join("40-bonds.csv"));
    let near = |r: f64| bonds["r"].iter().zip(&bonds["A-A"]).find(|(x, _)| (**x - r).abs() < 0.006).expect("a bin").1;
    assert!(*near(0.925) > 2.0 * near(1.005) && *near(0.925) > 1.5 * near(1.075) && *near(1.075) > 1.2 * near(1.005));
    let g = csv(&folder.join("40-rdf.csv"));
    let far = mean(&g["A-A"][60..]);
    // inside of the core no pair is closer than 0.8
    assert!(g["A-A"][15] < 0.01 && (0.93..1.01).contains(&far), "g {} … {far}", g["A-A"][15]);
}

#[test]
fn example_44_rosenbluth() {
    let (_keep, folder) = run("44-rosenbluth");
    let t = csv(&folder.join("44-rosenbluth.csv"));
    assert_eq!((t["monomers"][1], t["begun"][1]), (3.0, 50_000.0));
    // the first two are exact, in nine decimals
    assert!((t["ln_Z"][1] - 30f64.ln()).abs() < 1e-8 && (t["ln_Z"][3] - 726f64.ln()).abs() < 4.0 * t["ln_Z_error"][3]);
    let fit = std::fs::read_to_string(folder.join("44-rosenbluth-fit.csv")).expect("fits");
    let mu: f64 = fit.lines().nth(1).and_then(|l| l.split(',').nth(1)?.parse().ok()).expect("μ");
    near("example 44: connective constant", mu);
    let beads = csv(&folder.join("44-beads.csv"));
    assert!((beads["ln_Z"][1] - 0.75f64.ln()).abs() < 4.0 * beads["ln_Z_error"][1]);
    let h = csv(&folder.join("44-distances.csv"));
    // densities have nine decimals; some hundred bins
    assert!((h["density"].iter().sum::<f64>() - 1.0).abs() < 1e-6);
    assert_eq!(csv(&folder.join("44-chains.csv"))["x"].len(), 480);
}

#[test]
fn example_45_perm() {
    let (_keep, folder) = run("45-perm");
    let theta = std::fs::read_to_string(folder.join("45-contacts-fit.csv")).expect("fits");
    let line = theta.lines().find(|l| l.starts_with("kT_theta")).expect("a temperature");
    let kt: f64 = line.split(',').nth(1).and_then(|x| x.parse().ok()).expect("a number");
    near("example 45: theta temperature", kt);
    let slit = csv(&folder.join("45-slit.csv"));
    let last = slit["R2"].last().copied().unwrap_or(f64::NAN);
    // longer than in free space, where R² of 127 steps is 1.22 · 127^1.176
    assert!(last > 1.22 * 127f64.powf(1.176), "R² {last}");
    assert!(csv(&folder.join("45-star.csv"))["chains"].last().is_some_and(|n| *n > 100.0));
}

#[test]
fn example_46_build_melt() {
    let (_keep, folder) = run("46-build-melt");
    let t = csv(&folder.join("46-build-melt.csv"));
    agrees("example 46: kT", &t["kT"][10..]);
    assert!(folder.join("46-build-melt.gsd").metadata().expect("a trajectory").len() > 1536 * 12 * 3);
}

#[test]
fn example_47_build_brush() {
    let (_keep, folder) = run("47-build-brush");
    let t = csv(&folder.join("47-build-brush.csv"));
    assert!(t["potential"].iter().all(|u| u.is_finite()) && mean(&t["kT"][5..]) < 1.1);
}

#[test]
fn example_65_chain_sizes() {
    let (_keep, folder) = run("65-chain-sizes");
    let each = csv(&folder.join("65-each.csv"));
    // from the middle of the run on; rings are the molecules without ends
    let late = |rings: bool| -> Vec<f64> {
        let rows = (0..each["step"].len()).filter(|i| each["step"][*i] >= 2500.0 && each["Re2"][*i].is_nan() == rings);
        rows.map(|i| each["Rg2"][i]).collect()
    };
    let (chains, rings) = (mean(&late(false)), mean(&late(true)));
    near("example 65: Rg2 of rings and chains", rings / chains);
    let t = csv(&folder.join("65-chains.csv"));
    let ends = mean(&t["Re2"][50..]);
    near("example 65: Re2 and Rg2", ends / chains);
    let internal = csv(&folder.join("65-internal.csv"));
    assert_eq!(internal["n"].len(), 19);
    near("example 65: R2/n of 10 and of 5 bonds", internal["R2/n"][9] / internal["R2/n"][4]);
}

#[test]
#[ignore = "10 seconds"]
fn example_57_molecules() {
    let (_keep, folder) = run("57-molecules");
    let (msd, beads, g) =
        (csv(&folder.join("57-msd.csv")), csv(&folder.join("57-beads.csv")), csv(&folder.join("57-rdf.csv")));
    let k = msd["time"].iter().position(|t| *t >= 40.0).expect("a lag");
    let d = msd["msd_molecules"][k] / (6.0 * msd["time"][k]);
    println!("D = {d}, exact 0.05; beads: {} at the same time; g = {:?}", beads["msd_A"][k], &g["molecules"][4..]);
    near("example 57: diffusion of chains", d);
    assert!(beads["msd_A"][k] > 1.3 * msd["msd_molecules"][k]);
    assert!((mean(&g["molecules"][4..]) - 1.0).abs() < 0.15);
}

#[test]
#[ignore = "3 seconds"]
fn example_71_replicate() {
    let (_keep, folder) = run("71-replicate");
    let t = csv(&folder.join("71-replicate.csv"));
    agrees("example 71: kT", &t["kT"][5..]);
    // 3,040 bonds, no longer than those of the small system: of a bond between the wrong copies the energy would be some thousand
    agrees("example 71: bond energy", &t["HarmonicBond"][5..].iter().map(|u| u / 3040.0).collect::<Vec<_>>());
}

#[test]
#[ignore = "half a minute"]
fn example_81_special_pairs() {
    let (_keep, folder) = run("81-special-pairs");
    let t = csv(&folder.join("81-special-pairs.csv"));
    agrees("example 81: kT", &t["kT"][30..]);
    let of_a_chain = |column: &str| t[column][30..].iter().map(|u| u / 1000.0).collect::<Vec<_>>();
    agrees("example 81: LennardJones", &of_a_chain("LennardJones"));
    agrees("example 81: DebyeHueckel", &of_a_chain("DebyeHueckel"));
}

#[test]
#[ignore = "3 seconds"]
fn example_86_particle_virials() {
    let (_keep, folder) = run("86-particle-virials");
    let t = csv(&folder.join("86-particle-virials.csv"));
    agrees("example 86: kT", &t["kT"][20..]);
    for ((a, b), all) in t["HarmonicBond.A-A"].iter().zip(&t["HarmonicBond.A-B"]).zip(&t["HarmonicBond"]) {
        let by_type = a + b;
        assert!((by_type - all).abs() < bound("energies by type: mixed") * all, "{by_type} and {all}");
    }
    let rows = dump(&folder.join("86-particle-virials.dump"));
    let sum = |column: &str| rows[column].iter().sum::<f64>();
    let last = |column: &str| *t[column].last().expect("a row");
    assert!((sum("energy") - last("potential")).abs() < bound("shares: mixed") * last("potential"));
    let kinetic: f64 = rows["vx"].iter().map(|v| v * v).sum();
    let (found, wanted) = (kinetic + sum("vxx"), last("pressure_xx") * last("volume"));
    assert!((found - wanted).abs() < 10.0 * bound("shares: mixed") * wanted, "{found} and {wanted}");
}

#[test]
#[ignore = "5 seconds"]
fn example_76_impropers() {
    let (_keep, folder) = run("76-impropers");
    let t = csv(&folder.join("76-impropers.csv"));
    agrees("example 76: kT", &t["kT"][10..]);
    agrees("example 76: improper energy", &t["HarmonicImproper"][10..].iter().map(|u| u / 343.0).collect::<Vec<_>>());
    let data = std::fs::read_to_string(folder.join("76-impropers.data")).expect("a file");
    assert!(data.contains("343 impropers\n1 improper types\n") && data.contains("\nImpropers\n\n1 1 1 2 3 4\n"));
}

#[test]
#[ignore = "10 seconds"]
fn example_91_replica_exchange() {
    let (_keep, folder) = run("91-replica-exchange");
    let table = |name: &str| csv(&folder.join(format!("91-replica-exchange.{name}.csv")));
    let late = |values: &[f64]| values[values.len() / 5..].to_vec();
    let size = |replica: usize| mean(&late(&table(&format!("{replica}.chain"))["Rg2"]));
    assert!(size(0) < 0.75 * size(5), "{} at the lowest, {} at the highest temperature", size(0), size(5));
    agrees("example 91: kT of replica 0", &late(&table("0")["kT"]));
    agrees("example 91: kT of replica 5", &late(&table("5")["kT"]));
    let text = std::fs::read_to_string(folder.join("91-replica-exchange.2.run.json")).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let exchange = &record["runs"][0]["exchange"];
    let of = |name: &str| exchange[name].as_f64().expect(name);
    assert!((0.25..0.75).contains(&of("acceptance")) && of("round_trips") > 0.0, "{exchange}");
}
