//! Rebuilds of a staged list by processes that get only the particles near their own.

use super::nccl::substitute;
use super::{DPD, LJ, files, folder, launcher, mpiexec, pipeline};
use galamost_tests::{repository, words};

/// A long box with whole groups of tiles for 2, 3 and 6 processes.
fn long(forces: &str, integrator: &str, more: &str) -> String {
    let text = pipeline(forces, integrator, &format!("neighbors: (buffer: 0.15, list: Staged), {more}"));
    let text = text.replace("[10, 10, 10]", "[8, 8, 96]").replace("steps: 12, dt: 0.004", "steps: 60, dt: 0.004");
    assert!(text.contains("96") && text.contains("steps: 60"), "{text}");
    text
}

/// The line of the log with the number of tiles that are sent, and that with the number of particles in cells of others.
const TILES: &str = "copies of tiles for other ranks: ";
const MOVED: &str = "particles in cells of other ranks: ";

/// The two numbers in lines of the log such as "copies of tiles for other ranks: 12; own tiles: 64".
fn counts(said: &str, what: &str) -> Vec<(u32, u32)> {
    let count = |line: &str| {
        let (first, second) = line.split_once(what)?.1.split_once("; ")?;
        Some((first.parse().ok()?, second.rsplit(' ').next()?.parse().ok()?))
    };
    said.lines().filter_map(count).collect()
}

/// Compares the files of one process with those of several, and returns what these said. `every`: rebuilds from one sort to the next.
fn compare_files(name: &str, text: &str, every: u32, processes: &[u32], with_nccl: bool) -> Vec<String> {
    let Some(mpiexec) = mpiexec() else { return vec![] };
    let library = with_nccl.then(|| substitute(&format!("rebuild-{name}")));
    let run = |n: u32| {
        let folder = folder(&format!("rebuild-{name}-{n}"));
        std::fs::write(folder.join("p.ron"), text).expect("written");
        let args = ["--pipeline", "p.ron", "--device", "emulated", "--no-record", "-v"];
        let mut command = launcher(&mpiexec, &folder, &[(n, &args)]);
        if let Some(library) = &library {
            command.env("GALAMOST_NCCL", library);
        }
        let done = command.env("GALAMOST_SORT_EVERY", every.to_string()).output().expect("mpiexec starts");
        assert!(done.status.success(), "{name}, {n} processes: {}", words(&done));
        (files(&folder), words(&done))
    };
    let (one, _) = run(1);
    let several = |n: &u32| {
        let (several, said) = run(*n);
        assert_eq!(one, several, "{name}, {n} processes");
        said
    };
    processes.iter().map(several).collect()
}

/// As [`compare_files`]; also checks that processes sent a part of their tiles and particles.
fn compare(name: &str, text: &str, every: u32, processes: &[u32], with_nccl: bool) -> Vec<String> {
    let all = compare_files(name, text, every, processes, with_nccl);
    for said in &all {
        let tiles = counts(said, TILES);
        assert!(tiles.len() > 1 && tiles.iter().all(|(near, all)| 0 < *near && near < all), "{name}: {tiles:?}");
        let moved = counts(said, MOVED);
        assert!(moved.len() > 1 && moved.iter().any(|(m, _)| *m > 0), "{name}: {moved:?}");
        // the first sort orders a lattice, which is far from the order of cells
        assert!(moved.iter().skip(1).all(|(m, all)| 4 * m < *all), "{name}: {moved:?}");
    }
    all
}

#[test]
fn two_ranks_that_know_only_what_is_near_have_the_bits_of_one() {
    let text = long(LJ, "NoseHoover(kT: 1.2, tau: 0.5)", "").replace("[8, 8, 96]", "[8, 8, 64]");
    compare("short", &text.replace("steps: 60", "steps: 24"), 3, &[2], false);
}

#[test]
#[ignore = "20 seconds"]
fn ranks_that_know_only_what_is_near_have_the_bits_of_one() {
    let thermostat = "NoseHoover(kT: 1.2, tau: 0.5)";
    compare("lj", &long(LJ, thermostat, ""), 3, &[2, 3], false);
    compare("dpd", &long(DPD, "GrootWarren()", ""), 2, &[3], true);
    // a box that changes
    let npt = "MtkNpt(kT: 1.2, tau: 0.5, pressure: 1.0, tau_p: 1.0)";
    compare("npt", &long(LJ, npt, ""), 1, &[2], false);
}

/// Particles of a hot liquid that is rarely sorted move apart, so that more tiles than expected come near other ranks.
#[test]
#[ignore = "20 seconds"]
fn a_rebuild_begins_again_if_messages_have_no_room() {
    let hot = long(LJ, "NoseHoover(kT: 6.0, tau: 0.5)", "").replace("Velocities(kT: 1.2)", "Velocities(kT: 6.0)");
    let said = compare("again", &hot.replace("steps: 60", "steps: 100"), 40, &[6], false);
    assert!(said.iter().all(|s| s.contains("the rebuild begins again") && !s.contains("grows to")), "{said:?}");
}

/// The text of an example with other sizes.
fn example(name: &str, changes: &[(&str, &str)]) -> String {
    let text = std::fs::read_to_string(repository().join(format!("examples/{name}.ron"))).expect("an example");
    changes.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{name}: {from}");
        text.replace(from, to)
    })
}

/// Bonds, charges and orientations of particles that are neither own ones nor near are old.
#[test]
#[ignore = "30 seconds"]
fn other_components_have_the_bits_of_one_process() {
    let chains = example(
        "73-polyelectrolyte",
        &[
            ("box: [8.0, 8.0, 8.0]", "box: [8.0, 8.0, 32.0]"),
            ("\"P20\", count: 4", "\"P20\", count: 16"),
            ("1_376", "5_504"),
            ("seed: 73,", "seed: 73, neighbors: (list: Staged),"),
            ("steps: 200", "steps: 20"),
            ("2_500", "30"),
            ("every: 10,", "every: 2,"),
        ],
    );
    let said = compare_files("chains", &chains, 2, &[3], false);
    assert!(said.iter().all(|s| s.contains(TILES)), "{said:?}");
    let janus = example(
        "13-janus",
        &[
            ("cells: [10, 10, 10]", "cells: [8, 8, 96]"),
            ("initial:", "neighbors: (list: Staged), initial:"),
            ("6_000", "20"),
            ("every: 50", "every: 2"),
        ],
    );
    let said = compare_files("janus", &janus, 2, &[2], false);
    assert!(said.iter().all(|s| s.contains(TILES)), "{said:?}");
}

#[test]
#[ignore = "a minute"]
fn thirty_two_processes_have_the_bits_of_one() {
    let text = long(LJ, "NoseHoover(kT: 1.2, tau: 0.5)", "").replace("[8, 8, 96]", "[8, 8, 512]");
    let text = text.replace("steps: 60", "steps: 12").replace("steps: 12, dt: 0.005", "steps: 6, dt: 0.005");
    compare("many", &text, 2, &[32], false);
}

/// A box that is short along two axes: a block may reach around the box where its group of tiles does not.
#[test]
#[ignore = "a minute"]
fn blocks_that_are_wider_than_their_groups_have_the_bits_of_one_process() {
    let wca = "LennardJones(r_cut: 1.122, pairs: { (\"*\", \"*\"): (epsilon: 1.0, sigma: 1.0) })";
    let text = pipeline(wca, "NoseHoover(kT: 2.0, tau: 0.5)", "neighbors: (buffer: 0.25, list: Staged)");
    let text = text.replace("[10, 10, 10]", "[16, 16, 32]").replace("steps: 12, dt: 0.004", "steps: 140, dt: 0.004");
    compare_files("wide", &text.replace("Velocities(kT: 1.2)", "Velocities(kT: 2.0)"), 2, &[2, 8], false);
}

/// Without room to spare, a rebuild begins again whenever a message has more elements than were counted before.
#[test]
#[ignore = "a minute"]
fn messages_without_room_to_spare_change_nothing() {
    let Some(mpiexec) = mpiexec() else { return };
    let run = |name: &str, text: &str, processes: u32, spare: &str| {
        let folder = folder(&format!("rebuild-{name}-{processes}"));
        std::fs::write(folder.join("p.ron"), text).expect("written");
        let args = ["--pipeline", "p.ron", "--device", "emulated", "--no-record", "-v"];
        let mut command = launcher(&mpiexec, &folder, &[(processes, &args)]);
        let done = command.env("GALAMOST_SPARE", spare).env("GALAMOST_SORT_EVERY", "3").output().expect("it starts");
        assert!(done.status.success(), "{name}, {processes} processes: {}", words(&done));
        (files(&folder), words(&done).matches("the rebuild begins again").count())
    };
    let both = format!("{LJ}, {DPD}");
    // not a multiple of the particles of a tile
    let odd = long(LJ, "NoseHoover(kT: 1.2, tau: 0.5)", "").replace("[8, 8, 96]", "[7, 9, 99]");
    for (name, text, processes) in
        [("tight", &long(&both, "GrootWarren()", ""), 3), ("tight-odd", &odd, 2), ("tight-plain", &lj_plain(), 3)]
    {
        let (one, _) = run(name, text, 1, "1");
        let (several, again) = run(name, text, processes, "0");
        assert!(again > 3, "{name}: {again}");
        assert_eq!(one, several, "{name}");
    }
}

/// A plain list, whose ghosts and migrants are requested in the same way.
fn lj_plain() -> String {
    long(LJ, "NoseHoover(kT: 1.2, tau: 0.5)", "")
        .replace("list: Staged", "list: Plain")
        .replace("[8, 8, 96]", "[8, 8, 30]")
}
