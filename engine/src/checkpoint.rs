//! Checkpoints: the whole state of a run in one file, bit for bit.
//!
//! Layout: a line of magic, the length of the header (8 bytes, little endian), the header as RON text, the sections
//! one after the other, and the SHA-256 of everything before it. The file is written under another name, synced and
//! renamed, so that there is always a whole one.

use crate::plan::{Plan, PluginUse};
use crate::report::{Diagnostic, Failure};
use crate::run::SystemSums;
use crate::state::RawState;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::snapshot::Link;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const MAGIC: &[u8] = b"GALAMOST checkpoint 1\n";

/// Where in the run a checkpoint stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Number of the stage.
    pub stage: u64,
    /// Steps of the stage that are done.
    pub stage_step: u64,
    /// Time at which the stage began.
    pub stage_time: f64,
}

#[derive(Serialize, Deserialize)]
struct Header {
    engine: String,
    place: Place,
    step: u64,
    box_length: [f64; 3],
    precision: String,
    device: String,
    seed: u64,
    particles: u64,
    pipeline: String,
    plugins: Vec<PluginUse>,
    last_due: BTreeMap<u32, u64>,
    sums: Option<SystemSums>,
    /// Names of the components, by number: state and random numbers belong to the number.
    names: BTreeMap<u32, String>,
    /// Name and length of each section, in order.
    sections: Vec<(String, u64)>,
}

/// A checkpoint in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Where in the run.
    pub place: Place,
    /// Step at which each component was last due.
    pub last_due: BTreeMap<u32, u64>,
    /// Energies and virials at this step, if the run had asked for them.
    pub sums: Option<SystemSums>,
    /// The state.
    pub state: RawState,
    /// What each component saved, by its number.
    pub components: BTreeMap<u32, Vec<u8>>,
}

fn names(plan: &Plan) -> BTreeMap<u32, String> {
    plan.components.iter().map(|c| (c.id, format!("{} {}", c.kind, c.name))).collect()
}

fn words<const N: usize>(links: &[Link<N>]) -> Vec<u8> {
    links.iter().flat_map(|l| std::iter::once(l.kind).chain(l.tags)).flat_map(u32::to_le_bytes).collect()
}

fn links<const N: usize>(bytes: &[u8]) -> Vec<Link<N>> {
    let words: Vec<u32> = bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    words.chunks_exact(N + 1).map(|w| Link { kind: w[0], tags: std::array::from_fn(|k| w[k + 1]) }).collect()
}

impl Checkpoint {
    /// Writes the file.
    ///
    /// # Errors
    /// The system's words.
    pub fn write(&self, path: &Path, plan: &Plan) -> Result<()> {
        let mut sections: Vec<(String, Vec<u8>)> =
            self.state.sections.iter().map(|(n, b)| (format!("state.{n}"), b.clone())).collect();
        sections.push(("bonds".into(), words(&self.state.topology.bonds)));
        sections.push(("angles".into(), words(&self.state.topology.angles)));
        sections.push(("dihedrals".into(), words(&self.state.topology.dihedrals)));
        sections.extend(self.components.iter().map(|(id, b)| (format!("component.{id}"), b.clone())));
        let header = Header {
            engine: env!("CARGO_PKG_VERSION").into(),
            place: self.place,
            step: self.state.step,
            box_length: self.state.box_length,
            precision: plan.pipeline.precision.name().into(),
            device: plan.device.kind().into(),
            seed: plan.pipeline.seed,
            particles: plan.snapshot.len() as u64,
            pipeline: plan.pipeline.text.clone(),
            plugins: plan.plugins.clone(),
            last_due: self.last_due.clone(),
            sums: self.sums.clone(),
            names: names(plan),
            sections: sections.iter().map(|(n, b)| (n.clone(), b.len() as u64)).collect(),
        };
        let text = ron::to_string(&header).map_err(|e| Error::io(path, e))?;
        let temporary = path.with_extension("checkpoint.part");
        let write = || -> std::io::Result<()> {
            let mut file = std::fs::File::create(&temporary)?;
            let mut hash = Sha256::new();
            let length = (text.len() as u64).to_le_bytes();
            let parts = [MAGIC, &length, text.as_bytes()].into_iter().chain(sections.iter().map(|(_, b)| b.as_slice()));
            for part in parts {
                hash.update(part);
                file.write_all(part)?;
            }
            file.write_all(&hash.finalize())?;
            file.sync_all()?;
            std::fs::rename(&temporary, path)
        };
        write().map_err(|e| Error::io(path, e))
    }

    /// Reads a file and checks that it belongs to this run.
    ///
    /// # Errors
    /// The file is damaged, or belongs to another system; with what differs.
    pub fn read(path: &Path, plan: &Plan) -> std::result::Result<Self, Failure> {
        let wrong = |m: String| Failure::Input(vec![Diagnostic::new(path, None, m)]);
        let bytes = std::fs::read(path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
        let (header, checkpoint) = Self::parse(&bytes).map_err(wrong)?;
        let mut differs = vec![];
        let mut compare = |what: &str, then: String, now: String| {
            if then != now {
                differs.push(format!("{what} was {then}, is {now}"));
            }
        };
        compare("the number of particles", header.particles.to_string(), plan.snapshot.len().to_string());
        compare("precision", header.precision.clone(), plan.pipeline.precision.name().into());
        compare("seed", header.seed.to_string(), plan.pipeline.seed.to_string());
        compare("the engine", header.engine.clone(), env!("CARGO_PKG_VERSION").into());
        for then in &header.plugins {
            match plan.plugins.iter().find(|p| p.name == then.name) {
                None => differs.push(format!("plugin {} is no longer used", then.name)),
                Some(now) if now.hash != then.hash => {
                    differs.push(format!("plugin {} is another build ({} {})", then.name, then.version, now.version));
                }
                Some(_) => {}
            }
        }
        let now = names(plan);
        for (id, then) in &header.names {
            if now.get(id) != Some(then) {
                let now = now.get(id).map_or("not there", String::as_str);
                differs.push(format!("component number {id} was {then}, is {now}"));
            }
        }
        if !differs.is_empty() {
            return Err(wrong(format!("belongs to another run: {}", differs.join("; "))));
        }
        if header.device != plan.device.kind() {
            tracing::warn!(
                "the checkpoint was written on {}, this run is on {}: it goes on, but not bit for bit as it would have there",
                header.device,
                plan.device.kind()
            );
        }
        Ok(checkpoint)
    }

    fn parse(bytes: &[u8]) -> std::result::Result<(Header, Self), String> {
        const DIGEST: usize = 32;
        let Some(rest) = bytes.strip_prefix(MAGIC) else { return Err("is no checkpoint of this engine".into()) };
        if rest.len() < 8 + DIGEST {
            return Err("is truncated".into());
        }
        let (body, digest) = bytes.split_at(bytes.len() - DIGEST);
        if Sha256::digest(body).as_slice() != digest {
            return Err("is damaged or truncated: its checksum does not fit".into());
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
                other => {
                    if let Some(n) = other.strip_prefix("state.") {
                        state.sections.insert(n.into(), section.to_vec());
                    } else if let Some(id) = other.strip_prefix("component.").and_then(|i| i.parse().ok()) {
                        components.insert(id, section.to_vec());
                    }
                }
            }
        }
        let (place, last_due, sums) = (header.place, header.last_due.clone(), header.sums.clone());
        Ok((header, Self { place, last_due, sums, state, components }))
    }

    /// The file to go on from.
    ///
    /// # Errors
    /// There is none.
    pub fn find(plan: &Plan) -> std::result::Result<PathBuf, Failure> {
        let path = plan.pipeline.checkpoint_path();
        if path.exists() {
            return Ok(path);
        }
        Err(Failure::Input(vec![Diagnostic::new(&path, None, "there is no checkpoint to go on from")]))
    }
}
