//! Checkpoints: the complete state of a run in one file, bit for bit.
//!
//! Layout: a magic line, the length of the header (8 bytes, little endian), the header as RON text, the sections, and the
//! BLAKE3 hash of everything before it. The file is written under a temporary name, synced and renamed, so a valid one always
//! exists ([`files`]). A thread hashes and writes it during the run ([`Writer`]).

mod adopt;
mod analyzers;
mod changes;
pub mod exchange;
pub mod files;
mod lags;
pub mod outputs;
mod steps;
mod summary;
mod writer;

pub use summary::{FileSummary, summary};
pub use writer::Writer;

use crate::backend::SystemSums;
use crate::diagnostic::{Diagnostic, Failure, counted};
use crate::plan::{Plan, PluginUse, StagePlan, analyzer_list};
use crate::plugins::Component;
use crate::state::RawState;
use crate::state::arrays::{ArrayId, optional_name};
use changes::changes;
use exchange::ExchangeState;
use galamost_plugin_api::component::ArrayNeed;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::input;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::Link;
use lags::Lag;
use outputs::Outputs;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Read as _, Write};
use std::path::Path;
use tracing::{info, warn};

/// The first bytes of a checkpoint of any version.
const BEGIN: &[u8] = b"GALAMOST checkpoint ";
const MAGIC: &[u8] = b"GALAMOST checkpoint 2\n";
/// Size of the checksum in bytes.
const DIGEST: usize = 32;

/// The position of a checkpoint in the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunPosition {
    /// Number of the stage, from 0.
    pub stage: u64,
    /// Steps done in the stage.
    pub stage_step: u64,
    /// Time at which the stage began.
    pub stage_time: f64,
}

#[derive(Serialize, Deserialize)]
struct Header {
    engine: String,
    #[serde(rename = "place")]
    position: RunPosition,
    step: u64,
    box_length: [f64; 3],
    precision: String,
    device: String,
    seed: u64,
    particles: u64,
    pipeline: String,
    plugins: Vec<PluginUse>,
    /// Hashes of inputs by name.
    #[serde(default)]
    inputs: BTreeMap<String, String>,
    last_due: BTreeMap<u32, u64>,
    /// Lags of the analyzers that average over them, by number.
    #[serde(default)]
    lags: BTreeMap<u32, Lag>,
    sums: Option<SystemSums>,
    #[serde(default)]
    exchange: Option<ExchangeState>,
    /// Names of the components, by number: state and random numbers belong to the number.
    names: BTreeMap<u32, String>,
    /// Output files; absent in checkpoints of earlier versions.
    #[serde(default)]
    outputs: Option<Outputs>,
    /// Name and length of each section, in order.
    sections: Vec<(String, u64)>,
}

/// A checkpoint in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Position in the run.
    pub position: RunPosition,
    /// Step at which each component was last due, by component number.
    pub last_due: BTreeMap<u32, u64>,
    /// Energies and virials at this step, if the run computed them.
    pub sums: Option<SystemSums>,
    /// Exchange between replicas.
    pub exchange: Option<ExchangeState>,
    /// The state.
    pub state: RawState,
    /// Saved states of components that have not been loaded yet, by component number.
    pub components: BTreeMap<u32, Vec<u8>>,
    /// The run that resumes must write a checkpoint soon: it has outputs that it did not have, or cuts outputs back from where a newer
    /// checkpoint expects them.
    pub save_soon: bool,
}

const NO_CHECKPOINT: &str = "is not a checkpoint of this engine";

/// Returns whether a file begins like a checkpoint.
pub fn is_checkpoint(path: &Path) -> bool {
    let mut begin = vec![0; BEGIN.len()];
    input::open(path).is_ok_and(|mut f| f.read_exact(&mut begin).is_ok()) && begin == BEGIN
}

/// Reads a file.
fn read_file(path: &Path) -> std::result::Result<Vec<u8>, String> {
    let mut bytes = vec![];
    let mut file = input::open(path).map_err(|e| e.message)?;
    if !is_checkpoint(path) {
        return Err(NO_CHECKPOINT.into());
    }
    file.read_to_end(&mut bytes).map(|_| bytes).map_err(|e| format!("cannot be read: {e}"))
}

fn names(plan: &Plan) -> BTreeMap<u32, String> {
    plan.components.iter().map(|c| (c.id, full_name(c))).collect()
}

fn full_name(c: &Component) -> String {
    format!("{} {}", c.kind, c.name)
}

/// Returns whether a component has or had this full name.
fn had_name(c: &Component, full: &str) -> bool {
    full.strip_prefix(&format!("{} ", c.kind)).is_some_and(|name| c.has_name(name))
}

fn words<const N: usize>(links: &[Link<N>]) -> Vec<u8> {
    links.iter().flat_map(|l| std::iter::once(l.kind).chain(l.tags)).flat_map(u32::to_le_bytes).collect()
}

fn links<const N: usize>(bytes: &[u8]) -> Vec<Link<N>> {
    let words: Vec<u32> = bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    words.chunks_exact(N + 1).map(|w| Link { kind: w[0], tags: std::array::from_fn(|k| w[k + 1]) }).collect()
}

/// The contents of a checkpoint file without its checksum, in parts.
pub struct EncodedCheckpoint {
    /// Step of the state.
    pub step: u64,
    head: Vec<u8>,
    sections: Vec<Vec<u8>>,
}

impl EncodedCheckpoint {
    /// Returns the size of the file.
    pub fn len(&self) -> u64 {
        (self.head.len() + self.sections.iter().map(Vec::len).sum::<usize>() + DIGEST) as u64
    }

    /// Returns false: a checkpoint always has a header.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Writes the parts and their checksum.
    ///
    /// # Errors
    /// Returns the error of the file system.
    pub fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        let mut hash = blake3::Hasher::new();
        for part in std::iter::once(&self.head).chain(&self.sections) {
            hash.update(part);
            out.write_all(part)?;
        }
        out.write_all(hash.finalize().as_bytes())
    }
}

impl Checkpoint {
    /// Encodes the checkpoint for its file.
    ///
    /// # Errors
    /// Returns an error if the header cannot be written as text.
    pub fn encode(self, plan: &Plan, outputs: Outputs) -> Result<EncodedCheckpoint> {
        let (step, box_length) = (self.state.step, self.state.box_length);
        let mut sections: Vec<(String, Vec<u8>)> =
            self.state.sections.into_iter().map(|(n, b)| (format!("state.{n}"), b)).collect();
        sections.push(("bonds".into(), words(&self.state.topology.bonds)));
        sections.push(("angles".into(), words(&self.state.topology.angles)));
        sections.push(("dihedrals".into(), words(&self.state.topology.dihedrals)));
        if !self.state.topology.impropers.is_empty() {
            sections.push(("impropers".into(), words(&self.state.topology.impropers)));
        }
        sections.extend(self.components.into_iter().map(|(id, b)| (format!("component.{id}"), b)));
        let header = Header {
            engine: env!("CARGO_PKG_VERSION").into(),
            position: self.position,
            step,
            box_length,
            precision: plan.pipeline.precision.name().into(),
            device: plan.device.name().into(),
            seed: plan.pipeline.seed,
            particles: plan.snapshot.len() as u64,
            pipeline: plan.pipeline.text.clone(),
            plugins: plan.plugins.clone(),
            inputs: plan.inputs.clone(),
            last_due: self.last_due,
            lags: lags::of(plan, self.position.stage),
            sums: self.sums,
            exchange: self.exchange,
            names: names(plan),
            outputs: Some(outputs),
            sections: sections.iter().map(|(n, b)| (n.clone(), b.len() as u64)).collect(),
        };
        let text = ron::to_string(&header).map_err(|e| Error::Run(format!("the checkpoint's header: {e}")))?;
        let mut head = MAGIC.to_vec();
        head.extend((text.len() as u64).to_le_bytes());
        head.extend(text.as_bytes());
        Ok(EncodedCheckpoint { step, head, sections: sections.into_iter().map(|(_, b)| b).collect() })
    }

    /// Reads the newest valid file and checks that it belongs to this run. Damaged files are skipped with a warning. With
    /// `changed`, a different seed, precision, engine version or plugin build is accepted with a warning.
    ///
    /// # Errors
    /// Returns an error if no file is valid, or if the newest valid one belongs to another run; lists the differences.
    pub fn find(plan: &Plan, files: &[std::path::PathBuf], changed: bool) -> std::result::Result<Self, Failure> {
        let mut damaged = vec![];
        let mut good: Vec<(&Path, Header, Self)> = vec![];
        for path in files {
            match read_file(path).and_then(|b| Self::parse(&b)) {
                Ok((header, checkpoint)) => good.push((path, header, checkpoint)),
                Err(e) => damaged.push(Diagnostic::new(path, None, e)),
            }
        }
        // `files` is sorted from newest to oldest. After a run has resumed from an older checkpoint, later steps may be in older files
        let Some((path, header, mut checkpoint)) = good.into_iter().next() else {
            return Err(Failure::Input(damaged));
        };
        for d in damaged {
            warn!("{d}; using an earlier checkpoint");
        }
        checkpoint.adopt(path, &header, plan, changed)?;
        checkpoint.save_soon |=
            files::present(&plan.pipeline.checkpoint_path()).first().is_some_and(|newest| newest != path);
        info!("resuming from step {} of {}", header.step, path.display());
        Ok(checkpoint)
    }

    /// Reads one file and checks that it belongs to this run.
    ///
    /// # Errors
    /// As [`Checkpoint::find`].
    pub fn read(path: &Path, plan: &Plan) -> std::result::Result<Self, Failure> {
        Self::find(plan, &[path.into()], false)
    }

    /// Returns the state of the exchange between replicas in a file.
    ///
    /// # Errors
    /// Returns an error if the file is damaged.
    pub fn exchange_of(path: &Path) -> std::result::Result<Option<ExchangeState>, String> {
        read_file(path).and_then(|b| Self::parse(&b)).map(|(_, checkpoint)| checkpoint.exchange)
    }

    /// Returns the differences between this checkpoint and a run: those that `--resume-changed` accepts, and the others.
    fn differences(&self, then: &Header, plan: &Plan) -> (Vec<String>, Vec<String>) {
        let (mut soft, mut hard) = (vec![], vec![]);
        let compare = |list: &mut Vec<String>, what: &str, then: &str, now: &str| {
            if then != now {
                list.push(format!("{what} was {then}, is {now}"));
            }
        };
        compare(&mut hard, "the number of particles", &then.particles.to_string(), &plan.snapshot.len().to_string());
        compare(&mut soft, "precision", &then.precision, plan.pipeline.precision.name());
        compare(&mut soft, "seed", &then.seed.to_string(), &plan.pipeline.seed.to_string());
        compare(&mut soft, "the engine", &then.engine, env!("CARGO_PKG_VERSION"));
        let other = then.inputs.iter().filter(|(name, hash)| plan.inputs.get(*name).is_some_and(|now| now != *hash));
        soft.extend(other.map(|(name, _)| format!("{name} has other contents")));
        for then in &then.plugins {
            match plan.plugins.iter().find(|p| p.name == then.name) {
                None => hard.push(format!("plugin {} is no longer used", then.name)),
                Some(now) if now.hash != then.hash => {
                    soft.push(format!("plugin {} is another build ({} {})", then.name, then.version, now.version));
                }
                Some(_) => {}
            }
        }
        // stages that have not begun may have other components; other numbers than those of analyzers follow the order of the stages
        let begun =
            plan.stages.iter().take(usize::try_from(self.position.stage).map_or(usize::MAX, |k| k.saturating_add(1)));
        let begun = begun.flat_map(|s| s.forces.iter().chain(&s.integrators).chain(&s.updaters)).map(|c| c.id).max();
        let is_later = |id: &u32| match analyzer_list(*id) {
            Some(list) => list > self.position.stage + 1,
            None => begun.is_some_and(|last| *id > last),
        };
        for (id, then) in then.names.iter().filter(|(id, _)| !is_later(id)) {
            let now = plan.component(*id);
            if !now.is_some_and(|c| had_name(c, then)) {
                let now = now.map_or("missing".into(), |c| full_name(c));
                let hint = match then.starts_with("Analyzer ") {
                    true => " (new analyzers go to the end of their list, and old ones stay in it)",
                    false => "",
                };
                let which = match analyzer_list(*id) {
                    Some(_) => "an analyzer".into(),
                    None => format!("component number {id}"),
                };
                hard.push(format!("{which} was {then}, is {now}{hint}"));
            }
        }
        let changed = changes(&then.pipeline, &plan.pipeline.text, self.position.stage);
        soft.extend(changed.into_iter().filter(|c| !c.allowed).map(|c| c.what));
        // the stages of an ensemble are its samplers
        let ensemble = !plan.pipeline.ensemble.is_empty();
        let stages = if ensemble { plan.components.len() } else { plan.stages.len() };
        if self.position.stage as usize >= stages {
            hard.push(format!("it was in stage {}, but the pipeline has {stages}", self.position.stage + 1));
        }
        if let Some(StagePlan { stage, .. }) = plan.stages.get(self.position.stage as usize)
            && self.position.stage + 1 < stages as u64
            && self.position.stage_step > stage.steps
        {
            let (done, steps) = (self.position.stage_step, counted(stage.steps, "step"));
            hard.push(format!("it was at step {done} of stage `{}`, which now has {steps}", stage.name));
        }
        (soft, hard)
    }

    /// Checks that types and tags exist, and that the box is valid.
    fn fits(&self, plan: &Plan, of: Precision) -> std::result::Result<(), String> {
        fn check<const N: usize>(
            what: &str,
            links: &[Link<N>],
            types: usize,
            n: usize,
        ) -> std::result::Result<(), String> {
            let good = |l: &Link<N>| (l.kind as usize) < types && l.tags.iter().all(|t| (*t as usize) < n);
            links.iter().all(good).then_some(()).ok_or_else(|| format!("{what} refers to an unknown particle or type"))
        }
        let (s, t) = (&plan.snapshot, &self.state.topology);
        let rows =
            self.state.section(ArrayId::PosType.name()).map_err(|e| e.to_string())?.chunks_exact(of.pos_type_size());
        // the type follows the three coordinates
        let types = rows.clone().map(|r| u32::from_ne_bytes(std::array::from_fn(|k| r[3 * of.real_size() + k])));
        if rows.len() != s.len() || types.into_iter().any(|t| t as usize >= s.types.len()) {
            return Err("a particle has an unknown type".into());
        }
        check("a bond", &t.bonds, s.bond_types.len(), s.len())?;
        check("an angle", &t.angles, s.angle_types.len(), s.len())?;
        check("a dihedral", &t.dihedrals, s.dihedral_types.len(), s.len())?;
        check("an improper", &t.impropers, s.improper_types.len(), s.len())?;
        for c in &plan.components {
            let lacks = |a: &&ArrayNeed| !self.state.sections.contains_key(&optional_name(&a.name));
            if let Some(array) = c.needs.arrays.iter().find(lacks) {
                return Err(format!(
                    "{} needs `{}` of the particles, which the checkpoint does not have; resume without it",
                    c.name, array.name
                ));
            }
        }
        let flat = s.dimensions == 2;
        let length =
            |k: usize| self.state.box_length[k].is_finite() && self.state.box_length[k] > 0.0 || flat && k == 2;
        if (0..3).all(length) { Ok(()) } else { Err(format!("the box {:?} is invalid", self.state.box_length)) }
    }

    fn parse(bytes: &[u8]) -> std::result::Result<(Header, Self), String> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            let other = bytes.starts_with(BEGIN);
            return Err(if other {
                "was written by another version of the engine; use that version, or start a new run"
            } else {
                NO_CHECKPOINT
            }
            .into());
        };
        if rest.len() < 8 + DIGEST {
            return Err("is truncated".into());
        }
        let (body, digest) = bytes.split_at(bytes.len() - DIGEST);
        if blake3::hash(body).as_bytes() != digest {
            return Err("is damaged or truncated: wrong checksum".into());
        }
        let mut length = [0; 8];
        length.copy_from_slice(&rest[..8]);
        let length = usize::try_from(u64::from_le_bytes(length)).map_err(|e| e.to_string())?;
        let text = body.get(MAGIC.len() + 8..).and_then(|b| b.get(..length)).ok_or("is truncated")?;
        let header: Header = ron::de::from_bytes(text).map_err(|e| format!("has a header that cannot be read: {e}"))?;
        let mut at = MAGIC.len() + 8 + length;
        let mut state = RawState { step: header.step, box_length: header.box_length, ..RawState::default() };
        let mut components = BTreeMap::new();
        for (name, len) in &header.sections {
            let end = usize::try_from(*len).ok().and_then(|l| at.checked_add(l)).ok_or("is damaged")?;
            let section = body.get(at..end).ok_or("is truncated")?;
            at = end;
            match name.as_str() {
                "bonds" => state.topology.bonds = links(section),
                "angles" => state.topology.angles = links(section),
                "dihedrals" => state.topology.dihedrals = links(section),
                "impropers" => state.topology.impropers = links(section),
                other => {
                    if let Some(n) = other.strip_prefix("state.") {
                        state.sections.insert(n.into(), section.to_vec());
                    } else if let Some(id) = other.strip_prefix("component.").and_then(|i| i.parse().ok()) {
                        components.insert(id, section.to_vec());
                    }
                }
            }
        }
        let (position, last_due, sums) = (header.position, header.last_due.clone(), header.sums.clone());
        let exchange = header.exchange.clone();
        Ok((header, Self { position, last_due, sums, exchange, state, components, save_soon: false }))
    }
}
