//! Chains by Rosenbluth sampling and PERM: exact counts, laws, both devices, restarts.

use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::run::RunOptions;
use galamost_tests::{csv, galamost, has_compiler, plan, plan_in, words};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

type Table = BTreeMap<String, Vec<f64>>;

/// Runs one sampler, `SAMPLER(…)` without its `file`, and reads its table and its fits.
fn sampled(sampler: &str) -> (Table, BTreeMap<String, [f64; 2]>) {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("(seed: 11, ensemble: [{}])", sampler.replace("FILE", "file: \"t.csv\""));
    let plan =
        plan_in(&folder.path().join("p.ron"), &text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let options = RunOptions { quiet: true, ..RunOptions::default() };
    galamost_engine::run::ensemble::run(&plan, &options, None).unwrap_or_else(|e| panic!("{}", e.render()));
    let fit = std::fs::read_to_string(folder.path().join("t-fit.csv")).expect("fits");
    let rows = fit.lines().skip(1).map(|l| {
        let part: Vec<&str> = l.split(',').collect();
        (part[0].to_string(), [part[1], part[2]].map(|x| x.parse().expect("a number")))
    });
    (csv(&folder.path().join("t.csv")), rows.collect())
}

/// All walks of so many steps: number of them, ΣR², by contacts, inside of a slab 0 ≤ z ≤ `top`.
struct Enumerated {
    count: f64,
    weight: f64,
    r2: f64,
}

fn enumerate(offsets: &[[i32; 3]], steps: usize, epsilon: f64, top: Option<i32>) -> Enumerated {
    fn go(
        walk: &mut Vec<[i32; 3]>,
        set: &mut HashSet<[i32; 3]>,
        offsets: &[[i32; 3]],
        (left, factor): (usize, f64),
        (epsilon, top): (f64, Option<i32>),
        out: &mut Enumerated,
    ) {
        let at = walk[walk.len() - 1];
        if left == 0 {
            out.count += 1.0;
            out.weight += factor;
            out.r2 += factor * at.iter().map(|x| f64::from(x * x)).sum::<f64>();
            return;
        }
        for d in offsets {
            let to: [i32; 3] = std::array::from_fn(|k| at[k] + d[k]);
            if top.is_some_and(|t| !(0..=t).contains(&to[2])) || set.contains(&to) {
                continue;
            }
            let near = offsets.iter().filter(|d| set.contains(&std::array::from_fn(|k| to[k] + d[k]))).count() - 1;
            set.insert(to);
            walk.push(to);
            go(walk, set, offsets, (left - 1, factor * (epsilon * near as f64).exp()), (epsilon, top), out);
            walk.pop();
            set.remove(&to);
        }
    }
    let mut out = Enumerated { count: 0.0, weight: 0.0, r2: 0.0 };
    go(&mut vec![[0; 3]], &mut HashSet::from([[0; 3]]), offsets, (steps, 1.0), (epsilon, top), &mut out);
    out
}

fn offsets(keep: impl Fn([i32; 3]) -> bool) -> Vec<[i32; 3]> {
    let line = -1..=1;
    let all = line.clone().flat_map(|x| line.clone().flat_map(move |y| (-1..=1).map(move |z| [x, y, z])));
    all.filter(|d| *d != [0; 3] && keep(*d)).collect()
}

fn square(d: [i32; 3]) -> i32 {
    d.iter().map(|x| x * x).sum()
}

/// Deviation in standard errors; an exact value has none.
fn errors(value: f64, truth: f64, error: f64) -> f64 {
    if (value - truth).abs() < 1e-9 * truth.abs().max(1.0) { 0.0 } else { (value - truth).abs() / error }
}

#[test]
fn walks_of_the_cubic_lattice_are_counted() {
    const COUNTS: [f64; 12] =
        [6.0, 30.0, 150.0, 726.0, 3534.0, 16926.0, 81390.0, 387966.0, 1853886.0, 8809878.0, 41934150.0, 198842742.0];
    let (t, _) = sampled("Rosenbluth(lattice: Cubic, monomers: 13, chains: 200_000, FILE)");
    for (k, count) in COUNTS.iter().enumerate() {
        let far = errors(t["ln_Z"][k], count.ln(), t["ln_Z_error"][k]);
        println!("{} steps: {:.6} ± {:.1e}, {:.6}: {far:.1} s.e.", k + 1, t["ln_Z"][k], t["ln_Z_error"][k], count.ln());
        assert!(far < 4.0, "{} steps", k + 1);
        // up to three steps there is always the same number of free sites
        assert_eq!(t["ln_Z_error"][k] > 1e-9, k + 1 >= 4, "{} steps", k + 1);
    }
    for (steps, r2) in [(8usize, 12.845084), (12, 20.952845)] {
        let far = errors(t["R2"][steps - 1], r2, t["R2_error"][steps - 1]);
        println!(
            "R² of {steps} steps: {:.5} ± {:.5}, {r2}: {far:.1} s.e.",
            t["R2"][steps - 1],
            t["R2_error"][steps - 1]
        );
        assert!(far < 4.0);
    }
}

#[test]
fn walks_of_the_other_lattices_are_counted() {
    let lattices = [
        ("Square", offsets(|d| square(d) == 1 && d[2] == 0), 10, 4),
        ("Cubic26", offsets(|_| true), 4, 3),
        ("Fcc", offsets(|d| square(d) == 2), 5, 3),
    ];
    for (name, around, most, first) in lattices {
        let sampler = format!("Rosenbluth(lattice: {name}, monomers: {}, chains: 60_000, FILE)", most + 1);
        let (t, _) = sampled(&sampler);
        for steps in 1..=most {
            let truth = enumerate(&around, steps, 0.0, None);
            let (z, error) = (t["ln_Z"][steps - 1], t["ln_Z_error"][steps - 1]);
            let far = errors(z, truth.count.ln(), error);
            let far_r = errors(t["R2"][steps - 1], truth.r2 / truth.count, t["R2_error"][steps - 1]);
            println!("{name} {steps}: {} walks, {far:.1} and {far_r:.1} s.e.", truth.count);
            assert!(far < 4.0 && far_r < 4.0, "{name} {steps}");
            assert_eq!(
                error > 1e-9,
                steps >= first,
                "{name}: the first variance is that of {first} steps, not {steps}"
            );
        }
    }
}

#[test]
fn attraction_walls_and_branches_agree_with_all_walks() {
    let cubic = offsets(|d| square(d) == 1);
    let check = |sampler: &str, steps: usize, truth: &Enumerated| {
        let (t, _) = sampled(sampler);
        let far = errors(t["ln_Z"][steps - 1], truth.weight.ln(), t["ln_Z_error"][steps - 1]);
        let far_r = errors(t["R2"][steps - 1], truth.r2 / truth.weight, t["R2_error"][steps - 1]);
        println!("{sampler}: {far:.1} and {far_r:.1} s.e.");
        assert!(far < 4.0 && far_r < 4.0, "{sampler}");
    };
    let attracted = enumerate(&cubic, 7, 0.4, None);
    check("Rosenbluth(lattice: Cubic, attraction: 0.4, monomers: 8, chains: 60_000, FILE)", 7, &attracted);
    let repelled = enumerate(&cubic, 7, -0.7, None);
    check("Rosenbluth(lattice: Cubic, attraction: -0.7, monomers: 8, chains: 60_000, FILE)", 7, &repelled);
    check("Perm(chain: OnLattice(lattice: Cubic, attraction: 0.4), monomers: 8, tours: 40_000, FILE)", 7, &attracted);
    let slab = enumerate(&cubic, 7, 0.0, Some(2));
    check(
        "Rosenbluth(lattice: Cubic, walls: [Slab(axis: Z, min: 0.0, max: 2.0)], monomers: 8, chains: 60_000, FILE)",
        7,
        &slab,
    );
    // three arms of two monomers: 6·5·4 first rounds, then all ways to go on
    let mut stars = 0.0;
    for a in &cubic {
        for b in cubic.iter().filter(|b| *b != a) {
            for c in cubic.iter().filter(|c| *c != a && *c != b) {
                let mut set = HashSet::from([[0; 3], *a, *b, *c]);
                for x in &cubic {
                    let a2: [i32; 3] = std::array::from_fn(|k| a[k] + x[k]);
                    if !set.insert(a2) {
                        continue;
                    }
                    for y in &cubic {
                        let b2: [i32; 3] = std::array::from_fn(|k| b[k] + y[k]);
                        if !set.insert(b2) {
                            continue;
                        }
                        stars += cubic.iter().filter(|z| !set.contains(&std::array::from_fn(|k| c[k] + z[k]))).count()
                            as f64;
                        set.remove(&b2);
                    }
                    set.remove(&a2);
                }
            }
        }
    }
    let (t, _) = sampled("Rosenbluth(lattice: Cubic, shape: Star(arms: 3), monomers: 7, chains: 40_000, FILE)");
    let far = errors(t["ln_Z"][5], f64::ln(stars), t["ln_Z_error"][5]);
    println!("{stars} stars, {far:.1} s.e.");
    assert!(far < 4.0);
    // a comb of 2 teeth: a tree like any other, whose first side monomer has 6 − 2 places less those taken
    let (t, _) = sampled(
        "Rosenbluth(lattice: Cubic, shape: Comb(backbone: 7, every: 2, side: 2), monomers: 13, chains: 10_000, FILE)",
    );
    assert!(t["ln_Z"][5] < t["ln_Z"][11] && t["chains"][11] > 9_000.0);
}

#[test]
fn beads_off_lattice_have_the_exact_trimer() {
    for sigma in [1.0, 0.7] {
        let (t, fits) = sampled(&format!(
            "OffLatticeRosenbluth(diameter: {sigma}, trials: 10, monomers: 24, chains: 20_000, fit: [6, 24], FILE)"
        ));
        let truth: f64 = 1.0 - sigma * sigma / 4.0;
        let far = errors(t["ln_Z"][1], truth.ln(), t["ln_Z_error"][1]);
        // R² of the trimer: uniform in r² between σ² and 4
        let far_r = errors(t["R2"][1], (sigma * sigma + 4.0) / 2.0, t["R2_error"][1]);
        println!("σ = {sigma}: {far:.1} and {far_r:.1} s.e., ν = {:?}", fits["nu_R"]);
        assert!(far < 4.0 && far_r < 4.0);
        assert_eq!(t["ln_Z"][0], 0.0);
        // positions are single-precision numbers of chains up to 24 long
        assert!((t["R2"][0] - 1.0).abs() < 1e-4, "a bond is {}", t["R2"][0].sqrt());
    }
}

#[test]
#[ignore = "10 seconds"]
fn perm_agrees_with_simple_sampling() {
    let n = 96;
    let (plain, fits) = sampled(&format!("Rosenbluth(lattice: Cubic, monomers: {n}, chains: 60_000, FILE)"));
    println!("{fits:?}");
    for (name, truth, allowed) in [("mu", 4.684040, 0.01), ("gamma", 1.15695, 0.25), ("nu_R", 0.587597, 0.05)] {
        let [value, error] = fits[name];
        assert!((value - truth).abs() < (5.0 * error).min(allowed), "{name} = {value} ± {error}");
    }
    for control in ["Flat", "Thresholds(low: 0.3, high: 3.0)", "FlatContacts"] {
        let (t, _) = sampled(&format!(
            "Perm(chain: OnLattice(lattice: Cubic), monomers: {n}, tours: 3_072, batch: 512, control: {control}, FILE)"
        ));
        let mut worst = 0.0f64;
        for (k, m) in t["monomers"].iter().enumerate().filter(|(_, m)| **m >= 5.0) {
            assert_eq!(*m, plain["monomers"][k]);
            for name in ["ln_Z", "R2", "Rg2"] {
                let error = t[&format!("{name}_error")][k].hypot(plain[&format!("{name}_error")][k]);
                worst = worst.max((t[name][k] - plain[name][k]).abs() / error);
            }
        }
        println!("{control}: at most {worst:.1} s.e. apart");
        // the largest of some 200 numbers, which are strongly correlated, with errors from 8 blocks for contacts
        assert!(worst < 5.5, "{control}");
    }
}

/// The first batch of PERM has no means to be controlled by. If it is a large part of a run, its few heavy chains dominate the
/// averages: with batches of 1,024 tours from the beginning, these three runs have 4,352 effective chains together.
#[test]
fn few_tours_are_not_controlled() {
    let mut effective = 0.0;
    for attraction in ["0.269", "0.27", "0.271"] {
        let chain = format!("OnLattice(lattice: Cubic, attraction: {attraction})");
        let (t, _) = sampled(&format!("Perm(chain: {chain}, monomers: 128, tours: 4096, FILE)"));
        let last = |column: &str| *t[column].last().expect("a row");
        assert_eq!((last("monomers"), last("begun")), (128.0, 4096.0));
        effective += last("effective");
    }
    // half of the tours
    assert!(effective > 3.0 * 2048.0, "{effective}");
}

const KINDS: &[&str] = &[
    "Rosenbluth(lattice: Cubic, monomers: 20, chains: 500, batch: 320, distribution: (file: \"d.csv\", width: 0.5, bins: 20), FILE)",
    "Rosenbluth(lattice: Cubic26, monomers: 12, chains: 200, batch: 192, attraction: 0.3, FILE)",
    "Rosenbluth(lattice: Fcc, monomers: 13, shape: Star(arms: 4), chains: 96, batch: 32, FILE)",
    "Rosenbluth(lattice: Square, monomers: 60, chains: 256, batch: 128, walls: [Inside(radius: 6.0), Slab(axis: X, min: -3.0)], FILE)",
    "Rosenbluth(lattice: Cubic, monomers: 600, chains: 64, batch: 32, FILE)",
    "OffLatticeRosenbluth(diameter: 1.2, trials: 9, monomers: 30, chains: 128, batch: 64, walls: [Outside(center: [2.0, 0.0, 0.0], radius: 1.0)], FILE)",
    "OffLatticeRosenbluth(attraction: 0.5, trials: 5, shape: Comb(backbone: 9, every: 2, side: 2), monomers: 17, chains: 64, batch: 32, FILE)",
    "Perm(chain: OnLattice(lattice: Cubic, attraction: 0.3), monomers: 40, tours: 192, batch: 64, FILE)",
    "Perm(chain: OnLattice(lattice: Cubic), control: FlatContacts, monomers: 24, tours: 192, batch: 64, FILE)",
    "Perm(chain: OffLattice(diameter: 1.1, trials: 4), control: Thresholds(low: 0.5, high: 1.5), monomers: 20, tours: 96, batch: 32, FILE)",
];

/// What a sampler leaves in its sums.
fn left(sampler: &str, device: DeviceChoice) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("(seed: 5, ensemble: [{}])", sampler.replace("FILE", "file: \"t.csv\""));
    let plan = plan_in(&folder.path().join("p.ron"), &text, device).unwrap_or_else(|e| panic!("{}", e.render()));
    let options = RunOptions { quiet: true, ..RunOptions::default() };
    galamost_engine::run::ensemble::run(&plan, &options, None).unwrap_or_else(|e| panic!("{sampler}: {}", e.render()));
    plan.components[0].save().expect("saved")
}

#[test]
fn both_devices_grow_the_same_chains() {
    if !has_compiler() {
        return;
    }
    for sampler in KINDS {
        let [cpu, device] = [DeviceChoice::Cpu, DeviceChoice::Emulated].map(|d| left(sampler, d));
        let differ = cpu.iter().zip(&device).filter(|(a, b)| a != b).count();
        assert!(cpu.len() == device.len() && differ == 0, "{sampler}: {differ} of {} bytes differ", cpu.len());
    }
}

#[test]
fn a_resumed_ensemble_writes_the_same_tables() {
    const TEXT: &str = r#"(seed: 3, device: Cpu, ensemble: [
        Rosenbluth(lattice: Cubic, monomers: 16, chains: 640, batch: 64, file: "a.csv"),
        Perm(chain: OnLattice(lattice: Cubic), monomers: 30, tours: 320, batch: 32, file: "b.csv"),
    ])"#;
    let run = |folder: &Path, args: &[&str]| {
        let out = galamost(folder, &[&["--pipeline", "p.ron", "--quiet"], args].concat());
        assert!(out.status.success(), "{}", words(&out));
    };
    let folders = [0, 1].map(|_| tempfile::tempdir().expect("a folder"));
    for f in &folders {
        std::fs::write(f.path().join("p.ron"), TEXT.replace("device: Cpu", "device: Cpu, checkpoint: (every: 4)"))
            .expect("written");
    }
    run(folders[0].path(), &[]);
    for (steps, batches) in [("7", 7), ("13", 6), ("20", 7)] {
        let more: &[&str] = if steps == "7" { &["--steps", "7"] } else { &["--steps", steps, "--resume"] };
        run(folders[1].path(), more);
        // `--steps` counts the batches of earlier parts
        let record = std::fs::read_to_string(folders[1].path().join("p.run.json")).expect("a record");
        let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
        let last = record["runs"].as_array().and_then(|r| r.last()).expect("a run");
        assert_eq!(
            (last["steps"].as_u64(), last["total_steps"].as_u64()),
            (Some(batches), steps.parse().ok()),
            "{last}"
        );
    }
    for file in ["a.csv", "a-fit.csv", "b.csv", "b-fit.csv"] {
        let [one, two] = [0, 1].map(|k| std::fs::read_to_string(folders[k].path().join(file)).expect(file));
        assert!(one == two && one.lines().count() > 3, "{file} differs:\n{one}\n{two}");
    }
}

/// Batches that are drawn keep their chains: what a complete sampler has drawn cannot change, so no chain is left out and no change is
/// ignored. Whole batches may follow in the last sampler. The last checkpoint is written once.
#[test]
fn a_complete_sampler_keeps_its_chains() {
    let text = |first: u32, second: u32| {
        let sampler = |chains: u32, file: &str| {
            format!("Rosenbluth(lattice: Cubic, monomers: 12, chains: {chains}, batch: 128, file: \"{file}\")")
        };
        let both = [sampler(first, "a.csv"), sampler(second, "b.csv")].join(", ");
        format!("(seed: 3, device: Cpu, checkpoint: (every: 3), ensemble: [{both}])")
    };
    let folder = |first: u32, second: u32| {
        let f = tempfile::tempdir().expect("a folder");
        std::fs::write(f.path().join("p.ron"), text(first, second)).expect("written");
        f
    };
    let run = |folder: &Path, args: &[&str], status: i32| {
        let out = galamost(folder, &[&["--pipeline", "p.ron"], args].concat());
        let said = words(&out);
        assert_eq!(out.status.code(), Some(status), "{args:?}: {said}");
        said
    };
    let f = folder(400, 384);
    let said = run(f.path(), &["--steps", "6"], 0);
    assert_eq!(said.matches("written to p.checkpoint").count(), 2, "{said}");
    run(f.path(), &["--resume"], 0);
    let changed = |f: &Path, set: &str, status: i32| run(f, &["--resume", "--resume-changed", "--set", set], status);
    for (set, then, now) in [
        ("ensemble[0].chains=600", "400 chains in its first 4 batches", 512),
        ("ensemble[0].chains=401", "400 chains in its first 4 batches", 401),
        ("ensemble[0].chains=100", "400 chains in its first 4 batches", 100),
        ("ensemble[1].chains=300", "384 chains in its first 3 batches", 300),
        ("ensemble[1].batch=64", "384 chains in its first 3 batches", 192),
    ] {
        let said = changed(f.path(), set, 2);
        let expected = format!("Rosenbluth: the checkpoint has {then}, but the pipeline has {now} in them");
        assert!(said.contains(&expected) && !said.contains("Rosenbluth: Rosenbluth"), "{set}: {said}");
    }
    changed(f.path(), "ensemble[1].chains=600", 0);
    let whole = folder(400, 600);
    run(whole.path(), &[], 0);
    for file in ["a.csv", "b.csv"] {
        let [one, two] = [&f, &whole].map(|f| std::fs::read(f.path().join(file)).expect(file));
        assert!(one == two, "{file} differs from that of an uninterrupted run");
    }
    // whole batches after those of a sampler that another one follows
    let f = folder(256, 128);
    run(f.path(), &[], 0);
    let said = changed(f.path(), "ensemble[0].chains=384", 2);
    let expected =
        "sampler `Rosenbluth` is complete with 2 batches, but the pipeline has 3 batches; restore the earlier `chains`";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn mistakes_in_an_ensemble_are_reported_at_their_position() {
    let said = |text: &str| match plan(text, DeviceChoice::Cpu) {
        Ok(_) => panic!("{text} was taken"),
        Err(e) => e.render(),
    };
    let mut wrong = vec![];
    for (text, place, what) in [
        ("(ensemble: [], stages: [])", ":1:24:", "`stages` is not allowed here"),
        ("(ensemble: [])", ":1:1:", "is empty"),
        ("(ensemble: [Rosenblut()])", ":1:13:", "did you mean `Rosenbluth`"),
        ("(ensemble: [Wca()])", ":1:13:", "belongs in `forces`"),
        ("(initial: [Rosenbluth()], stages: [(steps: 0, dt: 0.1)])", ":1:12:", "belongs in `ensemble`"),
        ("(ensemble: [Rosenbluth(lattice: Cube, monomers: 8, chains: 9, file: \"\")])", ":1:33:", "`Cubic` (z = 6)"),
        (
            "(ensemble: [Rosenbluth(lattice: Cubic, monomers: 8, shape: Star(arms: 3), chains: 9, file: \"\")])",
            ":1:50:",
            "1 + 3 k",
        ),
        (
            "(ensemble: [Rosenbluth(lattice: Cubic, monomers: 8, walls: [Inside(center: [9.0, 0.0, 0.0], radius: 2.0)], chains: 9, file: \"\")])",
            ":1:60:",
            "first monomer",
        ),
        (
            "(ensemble: [Rosenbluth(lattice: Cubic, monomers: 8, start: [0.5, 0.0, 0.0], chains: 9, file: \"\")])",
            ":1:13:",
            "must be a lattice site",
        ),
        (
            "(ensemble: [Rosenbluth(lattice: Cubic, monomers: 8, chains: 9, batch: 33, file: \"\")])",
            ":1:13:",
            "multiple of 32",
        ),
        (
            "(ensemble: [Rosenbluth(lattice: Cubic, monomers: 8, chains: 9, lengths: [], file: \"\")])",
            ":1:13:",
            "`lengths` is empty",
        ),
        (
            "(ensemble: [OffLatticeRosenbluth(diameter: 2.0, monomers: 8, chains: 9, file: \"\")])",
            ":1:13:",
            "must be at most 1.99 bond lengths",
        ),
        (
            "(ensemble: [Perm(chain: OffLattice(), control: FlatContacts, monomers: 8, tours: 9, file: \"\")])",
            ":1:48:",
            "needs a lattice",
        ),
        (
            "(ensemble: [Perm(chain: OnLattice(lattice: Cubic), control: FlatContacts, distribution: (file: \"d.csv\", width: 0.5, \
             bins: 9), monomers: 8, tours: 9, file: \"\")])",
            ":1:61:",
            "`FlatContacts` has no `distribution`",
        ),
        (
            "(ensemble: [Perm(chain: OnLattice(lattice: Cubic), temperatures: [1.0], monomers: 8, tours: 9, file: \"\")])",
            ":1:13:",
            "FlatContacts",
        ),
        (
            "(ensemble: [Perm(temperatures: [], chain: OnLattice(lattice: Cubic), control: FlatContacts, scan: \"s.csv\", \
             monomers: 8, tours: 9, file: \"\")])",
            ":1:32:",
            "`temperatures` is empty",
        ),
    ] {
        let e = said(text);
        if !e.contains(place) || !e.contains(what) {
            wrong.push(format!("{text}: {place} {what}\n{e}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// With walls all around chains die: they count as 0, and numbers of monomers that none reached have no averages.
#[test]
fn chains_without_room_end_the_table() {
    let (t, _) = sampled(
        "Rosenbluth(lattice: Cubic, monomers: 40, walls: [Inside(radius: 1.5)], chains: 2_000, lengths: [7, 19, 25], FILE)",
    );
    // 19 sites are within 1.5 of the middle
    assert!(t["chains"][0] > 1_900.0 && t["chains"][2] == 0.0, "{:?}", t["chains"]);
    assert!(t["R2"][0].is_finite() && t["R2"][2].is_nan(), "{:?}", t["R2"]);
    let f = tempfile::tempdir().expect("a folder");
    let text = "(seed: 1, ensemble: [Rosenbluth(lattice: Square, monomers: 9, walls: [Inside(radius: 1.0)], chains: 64, \
                file: \"t.csv\")])";
    std::fs::write(f.path().join("p.ron"), text).expect("written");
    let said = words(&galamost(f.path(), &["--pipeline", "p.ron", "--device", "cpu"]));
    assert!(said.contains("no chain reached 9 monomers; rows of lengths that none reached have NaN"), "{said}");
    assert_eq!(csv(&f.path().join("t.csv"))["monomers"].last(), Some(&9.0));
}

/// Slow: what the validation of the method requires on the CPU; run by `cargo test … -- --ignored rosenbluth`.
#[test]
#[ignore = "minutes"]
fn long_chains_and_the_theta_point() {
    let (_, fits) = sampled("Rosenbluth(lattice: Cubic, monomers: 64, chains: 2_000_000, FILE)");
    println!("plain, 64: {fits:?}");
    let (_, fits) = sampled("Rosenbluth(lattice: Cubic26, monomers: 64, chains: 200_000, FILE)");
    println!("z = 26, 64: {fits:?}");
    let (t, fits) = sampled("Perm(chain: OnLattice(lattice: Cubic), monomers: 512, tours: 200_000, FILE)");
    println!("PERM, 512: {fits:?}; ln Z {:?} ± {:?}", t["ln_Z"].last(), t["ln_Z_error"].last());
    // chains of 512 are short: corrections to scaling are ∝ n^(−1/2) = 4 %, and a third of it remains
    let [mu, nu] = [fits["mu"], fits["nu_R"]];
    assert!((mu[0] - 4.684040).abs() < 5.0 * mu[1] && mu[1] < 1e-3, "{mu:?}");
    assert!((nu[0] - 0.587597).abs() < 0.01 + 3.0 * nu[1] && nu[1] < 0.01, "{nu:?}");
}

/// Walks of 9 sites have 0.95984 contacts on the cubic lattice (exact enumeration); without attraction they are not counted.
#[test]
fn contacts_are_counted_or_missing() {
    let of = |more: &str| sampled(&format!("Rosenbluth(lattice: Cubic, monomers: 9, {more}chains: 200_000, FILE)")).0;
    let (without, with) = (of(""), of("attraction: 0.000000001, "));
    assert!(without["contacts"].iter().all(|c| c.is_nan()), "{without:?}");
    let last = |column: &str| *with[column].last().expect("a row");
    let (mean, error) = (last("contacts"), last("contacts_error"));
    // the standard error of so many walks is 0.002
    assert!((mean - 0.95984).abs() < 5.0 * error && error < 0.005, "{mean} {error}");
}
