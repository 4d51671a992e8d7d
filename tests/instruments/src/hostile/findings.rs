//! Findings: kept once for each different message, with the smallest input that shows it.

use super::HostileArgs;
use super::worker::FOUND;
use crate::process;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// An input that did harm.
#[derive(Clone, Debug)]
pub struct Finding {
    pub target: String,
    /// Number of the input; with the seed and the target it defines the input.
    pub number: u64,
    /// What happened.
    pub message: String,
    /// Where the input is kept.
    pub file: PathBuf,
    /// How often the same happened.
    pub count: u64,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let message: String = self.message.chars().take(300).collect();
        write!(
            f,
            "{} input {} ({} times): {message}\n    {}",
            self.target,
            self.number,
            self.count,
            self.file.display()
        )
    }
}

/// All findings by target and message.
pub struct Findings {
    folder: PathBuf,
    all: Mutex<BTreeMap<String, Finding>>,
}

/// Runs of a smaller input for each finding.
const TRIES: usize = 80;
/// Findings whose inputs are made smaller.
const SMALLER: usize = 30;

/// A message without its numbers and names of temporary files.
fn key(target: &str, message: &str) -> String {
    let words = message.split_whitespace().filter(|w| !w.contains('/') || w.contains(".rs:"));
    let plain: String = words.flat_map(|w| w.chars().filter(|c| !c.is_ascii_digit()).chain([' '])).take(160).collect();
    format!("{target}: {plain}")
}

impl Findings {
    pub fn new(out: &Path, _program: &Path) -> Result<Self, String> {
        let folder = out.join("findings");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Self { folder, all: Mutex::default() })
    }

    /// Adds a finding, and writes its input if it is new.
    pub fn add(&self, mut finding: Finding, input: &[u8]) -> Result<(), String> {
        let key = key(&finding.target, &finding.message);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get_mut(&key) {
            known.count += 1;
            return Ok(());
        }
        finding.file = self.folder.join(format!("{}-{}", finding.target, finding.number));
        std::fs::write(&finding.file, input).map_err(|e| format!("{}: {e}", finding.file.display()))?;
        println!("{finding}");
        all.insert(key, finding);
        Ok(())
    }

    /// Makes the inputs smaller and returns all findings.
    pub fn finish(&self, args: &HostileArgs) -> Result<Vec<Finding>, String> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        for finding in
            all.values().filter(|f| f.target != super::COMMANDS && !f.message.starts_with("hang")).take(SMALLER)
        {
            self.shrink(finding, args)?;
        }
        Ok(all.values().cloned().collect())
    }

    /// Removes pieces of an input as long as it does the same harm.
    fn shrink(&self, finding: &Finding, args: &HostileArgs) -> Result<(), String> {
        let fail = |e: std::io::Error| format!("{}: {e}", finding.file.display());
        let (mut best, trial) = (std::fs::read(&finding.file).map_err(fail)?, self.folder.join("trial"));
        let wanted = key(&finding.target, &finding.message);
        let same = |bytes: &[u8]| -> Result<bool, String> {
            std::fs::write(&trial, bytes).map_err(|e| e.to_string())?;
            let mut command = process::limited(&std::env::current_exe().map_err(|e| e.to_string())?);
            command.args(["worker", "--target", &finding.target, "--input"]).arg(&trial);
            command.arg("--program").arg(args.folders.program()).arg("--repository").arg(args.folders.repository()?);
            command.env("TMPDIR", &self.folder);
            let outcome = process::run(command, &self.folder, Duration::from_secs(20))?;
            let message = match outcome.crash() {
                Some(crash) => crash,
                None if outcome.code() == Some(FOUND) => outcome.errors.trim_end().replace('\n', "\\n"),
                None => return Ok(false),
            };
            Ok(key(&finding.target, &message) == wanted)
        };
        if !same(&best)? {
            println!("{} input {}: alone it does no harm", finding.target, finding.number);
            return Ok(());
        }
        let (mut piece, mut tries) = (best.len().div_ceil(2), 0);
        while piece > 0 && tries < TRIES {
            let mut at = 0;
            while at < best.len() && tries < TRIES {
                let smaller = [&best[..at], &best[(at + piece).min(best.len())..]].concat();
                tries += 1;
                if same(&smaller)? {
                    best = smaller;
                } else {
                    at += piece;
                }
            }
            piece /= 2;
        }
        std::fs::write(finding.file.with_extension("small"), best).map_err(fail)
    }
}
