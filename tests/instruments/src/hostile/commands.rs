//! Inputs for the program as users run it: its exit status, its messages, and the files that it leaves.

use super::HostileArgs;
use crate::process::{self, Outcome};
use galamost_tests::fuzz::{Draws, mutated};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Targets whose inputs are particle files, and their extension.
const PARTICLES: [(&str, &str); 9] = [
    ("galamost_xml", "xml"),
    ("packed", "xml"),
    ("gsd", "gsd"),
    ("lammps_data", "data"),
    ("lammps_dump", "dump"),
    ("extended_xyz", "xyz"),
    ("mst", "mst"),
    ("pdb", "pdb"),
    ("generators", "ron"),
];

/// A run of a few steps that is resumed.
const RUN: [&str; 7] = ["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--steps", "3"];

/// Everything that commands need.
pub struct Commands<'a> {
    seeds: &'a BTreeMap<String, Vec<Vec<u8>>>,
    galamost: PathBuf,
    /// Plugin libraries.
    libraries: Vec<PathBuf>,
}

/// Whether an input was accepted, or what happened and the input.
pub type Answer = Result<bool, (String, Vec<u8>)>;

impl<'a> Commands<'a> {
    pub fn new(args: &HostileArgs, seeds: &'a BTreeMap<String, Vec<Vec<u8>>>) -> Result<Self, String> {
        let folder = args.folders.program();
        let list = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mut libraries: Vec<PathBuf> = list.filter_map(|e| Some(e.ok()?.path())).collect();
        libraries.retain(|p| p.extension().is_some_and(|e| e == "so"));
        libraries.sort();
        Ok(Self { seeds, galamost: args.folders.galamost()?, libraries })
    }

    /// Runs the command with a number.
    ///
    /// # Errors
    /// Returns an error if the program cannot be started or a file cannot be written.
    pub fn one(&self, seed: u64, number: u64, folder: &Path) -> Result<Answer, String> {
        for entry in std::fs::read_dir(folder).map_err(|e| e.to_string())?.filter_map(Result::ok) {
            let path = entry.path();
            let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        }
        let mut draws = Draws::new(seed, super::COMMANDS, number);
        match draws.below(12) {
            0..=3 => self.particles(&mut draws, folder),
            4 | 5 => self.tables(&mut draws, folder),
            6 | 7 => self.pipeline(&mut draws, folder),
            8 => self.checkpoint(&mut draws, folder),
            9 => self.special(&mut draws, folder),
            _ => self.library(&mut draws, folder),
        }
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), String> {
        std::fs::write(path, bytes).map_err(|e| format!("{}: {e}", path.display()))
    }

    fn input(&self, target: &str, draws: &mut Draws) -> Vec<u8> {
        let seeds = &self.seeds[target];
        mutated(&seeds[draws.below(seeds.len())], seeds, draws)
    }

    fn go(&self, folder: &Path, args: &[&str]) -> Result<Outcome, String> {
        let mut command: Command = process::limited(&self.galamost);
        command.args(args).env("TMPDIR", folder);
        process::run(command, folder, process::HANG)
    }

    /// Runs the program and judges how it ended. Returns whether it succeeded; an error of the input must name `file`.
    fn judged(&self, folder: &Path, args: &[&str], file: &str, input: &[u8]) -> Result<Answer, String> {
        let outcome = self.go(folder, args)?;
        let found = |what: String| Ok(Err((format!("{}: {what}", args.join(" ")), input.to_vec())));
        if let Some(crash) = outcome.crash() {
            return found(crash);
        }
        let said = outcome.errors.trim_end();
        if said.contains("panicked") {
            return found(said.replace('\n', "\\n"));
        }
        match outcome.code() {
            Some(0) => Ok(Ok(true)),
            // `doctor` reports to standard output
            Some(1 | 2) if said.is_empty() && !args.contains(&"doctor") => found("no message".into()),
            // or a file that the pipeline names, such as one that does not exist
            Some(2) if !said.contains(file) && !said.starts_with("./") && !args.contains(&"doctor") => {
                found(format!("no file in the message: {}", said.replace('\n', "\\n")))
            }
            Some(1 | 2) => Ok(Ok(false)),
            other => found(format!("exit status {other:?}")),
        }
    }

    /// Particle files: described, converted, drawn. What was converted must be readable.
    fn particles(&self, draws: &mut Draws, folder: &Path) -> Result<Answer, String> {
        // the last are pipelines
        let (target, extension) = PARTICLES[draws.below(PARTICLES.len() - 1)];
        let input = self.input(target, draws);
        let file = format!("f.{extension}");
        self.write(&folder.join(&file), &input)?;
        match draws.below(3) {
            0 => self.judged(folder, &["info", &file], &file, &input),
            1 => self.judged(folder, &["render", &file, "--out", "f.png", "--size", "64x64"], &file, &input),
            _ => {
                let out = format!("out.{}", draws.of(&["xml", "gsd", "data", "dump", "xyz", "mst"]));
                match self.judged(folder, &["convert", &file, &out], &file, &input)? {
                    Ok(true) => match self.judged(folder, &["info", &out], &out, &input)? {
                        Ok(false) => Ok(Err((format!("convert {file} {out}: wrote an unreadable file"), input))),
                        other => Ok(other),
                    },
                    other => Ok(other),
                }
            }
        }
    }

    /// Tables of runs and of potentials.
    fn tables(&self, draws: &mut Draws, folder: &Path) -> Result<Answer, String> {
        let (target, file) = *draws.of(&[("csv", "t.csv"), ("parquet", "t.parquet"), ("pair_table", "t.pot")]);
        let input = self.input(target, draws);
        self.write(&folder.join(file), &input)?;
        let args: &[&str] = match (target, draws.below(3)) {
            ("pair_table", _) => &["table", "convert", file, "--kind", "pair", "--out", "out.csv"],
            (_, 0) => &["info", file],
            (_, 1) => &["stats", file],
            _ => &["plot", file, "--out", "t.svg"],
        };
        self.judged(folder, args, file, &input)
    }

    /// Pipelines with small numbers, for three steps.
    fn pipeline(&self, draws: &mut Draws, folder: &Path) -> Result<Answer, String> {
        let input = self.input("generators", draws);
        let input = galamost_tests::fuzz::small_numbers(&String::from_utf8_lossy(&input)).into_bytes();
        self.write(&folder.join("p.ron"), &input)?;
        let checked = self.judged(folder, &["check", "p.ron"], "p.ron", &input)?;
        match checked {
            Ok(true) => self.judged(folder, &RUN, "p.ron", &input),
            other => Ok(other),
        }
    }

    /// Damaged checkpoints.
    fn checkpoint(&self, draws: &mut Draws, folder: &Path) -> Result<Answer, String> {
        self.write(&folder.join("p.ron"), galamost_tests::fuzz::small_run().as_bytes())?;
        let input = self.input("checkpoint", draws);
        self.write(&folder.join("p.checkpoint"), &input)?;
        self.judged(folder, &[&RUN[..], &["--resume"]].concat(), "p.checkpoint", &input)
    }

    /// Files that are no files, have no end, or are much larger than they look.
    fn special(&self, draws: &mut Draws, folder: &Path) -> Result<Answer, String> {
        let extension = *draws.of(&["xml", "gsd", "data", "dump", "xyz", "mst", "pdb", "csv", "parquet", "ron", "pot"]);
        let file = format!("f.{extension}");
        let path = folder.join(&file);
        let link = |to: &str| std::os::unix::fs::symlink(to, &path).map_err(|e| e.to_string());
        let packed = |bytes: &mut dyn std::io::Read| -> Result<Vec<u8>, String> {
            let mut gz = flate2::write::GzEncoder::new(vec![], flate2::Compression::best());
            std::io::copy(bytes, &mut gz).and_then(|_| gz.finish()).map_err(|e| e.to_string())
        };
        let what = draws.below(9);
        match what {
            0 => link("/dev/zero")?,
            1 => link("/dev/urandom")?,
            2 => link(".")?,
            3 => self.write(&path, b"")?,
            4 => self.write(&path, b"\xef\xbb\xbf")?,
            5 => self.write(&path, &packed(&mut std::io::Read::take(std::io::repeat(0), 256 << 20))?)?,
            6 => self.write(&path, &packed(&mut std::io::Read::take(std::io::repeat(b' '), 256 << 20))?)?,
            7 => {
                // a sparse file
                let file = std::fs::File::create(&path).and_then(|f| f.set_len(1 << 36));
                file.map_err(|e| e.to_string())?;
            }
            _ => {
                let mut file = std::fs::File::create(&path).map_err(|e| e.to_string())?;
                (0..64).try_for_each(|_| file.write_all(&[b'x'; 1 << 16])).map_err(|e| e.to_string())?;
            }
        }
        let note = format!("{file}: special file {what}\n").into_bytes();
        let args: &[&str] = match extension {
            "ron" => &["check", &file],
            "pot" => &["table", "convert", &file, "--kind", "pair", "--out", "out.csv"],
            "csv" | "parquet" if draws.below(2) == 0 => &["stats", &file],
            _ => &["info", &file],
        };
        let answer = self.judged(folder, args, &file, &note)?;
        let _ = std::fs::remove_file(&path);
        Ok(match answer {
            Ok(true) => Err((format!("{}: accepted special file {what}", args.join(" ")), note)),
            other => other,
        })
    }

    /// A plugin library with changed bytes.
    fn library(&self, draws: &mut Draws, folder: &Path) -> Result<Answer, String> {
        let library = draws.of(&self.libraries);
        let mut bytes = std::fs::read(library).map_err(|e| format!("{}: {e}", library.display()))?;
        // most of the tables that a loader reads are at the begin and at the end
        let change = draws.below(8);
        for _ in 0..1 + draws.below(4) {
            let near = bytes.len().min(8192);
            let at = match draws.below(3) {
                0 => draws.below(near),
                1 => bytes.len() - 1 - draws.below(near),
                _ => draws.below(bytes.len()),
            };
            bytes[at] ^= 1 << draws.below(8);
        }
        if change == 0 {
            bytes.truncate(draws.below(bytes.len()));
        }
        let plugins = folder.join("plugins");
        std::fs::create_dir_all(&plugins).map_err(|e| e.to_string())?;
        let name = library.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        self.write(&plugins.join(&name), &bytes)?;
        self.write(&folder.join("p.ron"), galamost_tests::fuzz::small_run().as_bytes())?;
        let args: &[&str] = match draws.below(4) {
            0 => &["--plugin-dir", "plugins", "check", "p.ron"],
            1 => &["--plugin-dir", "plugins", "doctor"],
            2 => &["--plugin-dir", "plugins", "plugins"],
            _ => &["--plugin-dir", "plugins", "--pipeline", "p.ron", "--device", "cpu", "--quiet", "--steps", "3"],
        };
        let place = |message: String| format!("{message} ({name})");
        Ok(self.judged(folder, args, "plugins", &bytes)?.map_err(|(message, input)| (place(message), input)))
    }
}
