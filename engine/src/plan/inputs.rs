//! Hashes of what a run reads, so that a resumed run notices other inputs.

use super::files::{FileUse, Owner, RunFile};
use crate::pipeline::Pipeline;
use blake3::Hasher;
use galamost_plugin_api::chunks::CHUNK;
use galamost_plugin_api::device::{Plain, bytes_of};
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::Read;

/// Name of the state that generators make.
pub const INITIAL_STATE: &str = "initial state";

/// Returns the hash of each file that components read, and that of the initial state if it comes from files: these may include
/// others. The text of the pipeline says everything of other initial states.
pub fn hashes(pipeline: &Pipeline, files: &[RunFile], snapshot: &Snapshot) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for file in files.iter().filter(|f| f.usage == FileUse::Input) {
        let Owner::Component { name, .. } = &file.owner else { continue };
        if pipeline.initial.iter().any(|g| g.name == *name) {
            all.entry(INITIAL_STATE.into()).or_insert_with(|| of_state(snapshot));
        } else if let Ok(hash) = of_file(&file.target.path()) {
            all.insert(format!("`{}` of {name}", file.shown), hash);
        }
    }
    all
}

fn of_file(path: &std::path::Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let (mut hash, mut bytes) = (Hasher::new(), vec![0; CHUNK]);
    loop {
        match file.read(&mut bytes)? {
            0 => return Ok(hex(&hash)),
            n => hash.update(&bytes[..n]),
        };
    }
}

/// Returns a hash of a state.
pub fn of_state(s: &Snapshot) -> String {
    let mut hash = Hasher::new();
    add(&mut hash, &s.box_length);
    add(&mut hash, &s.tilt);
    add(&mut hash, s.position.as_slice().as_flattened());
    add(&mut hash, s.image.as_slice().as_flattened());
    add(&mut hash, s.velocity.as_slice().as_flattened());
    add(&mut hash, &s.type_id);
    add(&mut hash, &s.mass);
    for (name, Array { width, values }) in &s.arrays {
        hash.update(format!("{name} {width}").as_bytes());
        match values {
            Values::Real(v) => add(&mut hash, v),
            Values::Int(v) => add(&mut hash, v),
        }
    }
    links(&mut hash, &s.bonds);
    links(&mut hash, &s.angles);
    links(&mut hash, &s.dihedrals);
    links(&mut hash, &s.impropers);
    let names = [&s.types, &s.bond_types, &s.angle_types, &s.dihedral_types, &s.improper_types];
    hash.update(format!("{names:?}").as_bytes());
    hex(&hash)
}

/// Adds the hashes of chunks of the values.
fn add<T: Plain + Sync>(hash: &mut Hasher, values: &[T]) {
    let chunks: Vec<_> = values.par_chunks(CHUNK).map(|chunk| blake3::hash(bytes_of(chunk))).collect();
    hash.update(&(values.len() as u64).to_le_bytes());
    for c in chunks {
        hash.update(c.as_bytes());
    }
}

fn links<const N: usize>(hash: &mut Hasher, links: &[Link<N>]) {
    let words: Vec<u32> = links.iter().flat_map(|l| std::iter::once(l.kind).chain(l.tags)).collect();
    add(hash, &words);
}

/// Returns the first eight bytes of a hash as text.
fn hex(hash: &Hasher) -> String {
    hash.finalize().to_hex()[..16].into()
}
