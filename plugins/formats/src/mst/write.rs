//! Formats a state or a frame.

use crate::mst::keys::{TYPES, key_of};
use crate::names;
use galamost_plugin_api::prelude::{Link, Snapshot, Values};
use galamost_plugin_api::snapshot::KNOWN_ARRAYS;
use galamost_text::real;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write as _;

/// Options of the analyzer.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    pub velocity: bool,
    pub digits: Option<u32>,
}

/// A section: keyword, whether it may be invariant, text.
type Section = (&'static str, bool, Vec<u8>);

/// Writes a row of values, indented by two tabs and separated by tabs.
fn row<T>(out: &mut Vec<u8>, values: &[T], mut put: impl FnMut(&mut Vec<u8>, &T)) {
    for (k, x) in values.iter().enumerate() {
        out.extend_from_slice(if k == 0 { b"\t\t" } else { b"\t" });
        put(out, x);
    }
    out.push(b'\n');
}

fn put<T: Display>(out: &mut Vec<u8>, x: &T) {
    // writing to memory does not fail
    let _ = write!(out, "{x}");
}

/// Returns the comment with the type names of a section whose rows do not use them in the order of their numbers.
fn type_list(key: &str, s: &Snapshot) -> String {
    let types = match key {
        "type" => names::list(&s.types, s.type_id.iter().copied()),
        "bond" => names::of_links(&s.bond_types, &s.bonds),
        "angle" => names::of_links(&s.angle_types, &s.angles),
        "dihedral" => names::of_links(&s.dihedral_types, &s.dihedrals),
        _ => None,
    };
    types.map_or_else(String::new, |types| format!(" {TYPES} {}", types.join(" ")))
}

fn sections(s: &Snapshot, options: WriteOptions) -> Vec<Section> {
    let mut all: Vec<Section> = vec![];
    let mut add = |key: &'static str, once: bool, rows: &mut dyn FnMut(&mut Vec<u8>)| {
        let mut text = format!("\t{key}{}\n", type_list(key, s)).into_bytes();
        rows(&mut text);
        all.push((key, once, text));
    };
    let number = |out: &mut Vec<u8>, x: &f64| real(out, *x, options.digits);
    add("num_particles", true, &mut |out| row(out, &[s.len()], put));
    add("timestep", false, &mut |out| row(out, &[s.step], put));
    add("dimension", true, &mut |out| row(out, &[s.dimensions], put));
    // the box has all digits, since positions depend on it
    add("box", true, &mut |out| row(out, &s.box_length, |out, x| real(out, *x, None)));
    add("position", false, &mut |out| s.position.iter().for_each(|x| row(out, x, number)));
    add("image", false, &mut |out| s.image.iter().for_each(|i| row(out, i, put)));
    if options.velocity {
        add("velocity", false, &mut |out| s.velocity.iter().for_each(|v| row(out, v, number)));
    }
    let name = |types: &[String], k: u32| types.get(k as usize).cloned().unwrap_or_default();
    add("type", true, &mut |out| s.type_id.iter().for_each(|k| row(out, &[name(&s.types, *k)], put)));
    add("mass", true, &mut |out| s.mass.iter().for_each(|m| row(out, &[*m], number)));
    for (array, width, ..) in KNOWN_ARRAYS {
        let Some(a) = s.arrays.get(*array) else { continue };
        // orientations change in every frame
        let once = !matches!(*array, "orientation" | "quaternion" | "rotation");
        add(key_of(array), once, &mut |out| match &a.values {
            Values::Real(v) => v.chunks_exact(*width as usize).for_each(|v| row(out, v, number)),
            Values::Int(v) => v.chunks_exact(*width as usize).for_each(|v| row(out, v, put)),
        });
    }
    fn links<const N: usize>(out: &mut Vec<u8>, links: &[Link<N>], types: &[String]) {
        for link in links {
            let _ = write!(out, "\t\t{}", types.get(link.kind as usize).map_or("", String::as_str));
            for tag in link.tags {
                let _ = write!(out, "\t{tag}");
            }
            out.push(b'\n');
        }
    }
    if !s.bond_types.is_empty() {
        add("bond", true, &mut |out| links(out, &s.bonds, &s.bond_types));
    }
    if !s.angle_types.is_empty() {
        add("angle", true, &mut |out| links(out, &s.angles, &s.angle_types));
    }
    if !s.dihedral_types.is_empty() {
        add("dihedral", true, &mut |out| links(out, &s.dihedrals, &s.dihedral_types));
    }
    all
}

/// Formats a file with a single state.
pub fn state(s: &Snapshot, options: WriteOptions) -> Vec<u8> {
    let mut out = b"mst_version 1.0\n".to_vec();
    for (_, _, text) in sections(s, options) {
        out.extend(text);
    }
    out.extend_from_slice(b"mst_end\n");
    out
}

/// Checksums of the invariant sections of a trajectory. A frame contains the sections that differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Invariant {
    /// Number of frames written.
    pub frames: u64,
    sums: BTreeMap<String, u64>,
}

/// FNV-1a hash of a section, to detect changes.
fn sum(text: &[u8]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

impl Invariant {
    /// Formats the next frame; the first frame also contains the invariant sections.
    pub fn frame(&self, s: &Snapshot, options: WriteOptions) -> (Vec<u8>, Self) {
        let mut next = self.clone();
        let all = sections(s, options);
        let mut out = vec![];
        if self.frames == 0 {
            out.extend_from_slice(b"mst_version 1.0\ninvariant_data\n");
            for (key, _, text) in all.iter().filter(|(_, once, _)| *once) {
                next.sums.insert((*key).into(), sum(text));
                out.extend_from_slice(text);
            }
            out.extend_from_slice(b"variant_data\n");
        }
        let _ = writeln!(out, "frame\t{}", self.frames);
        for (key, once, text) in &all {
            if !once || next.sums.get(*key) != Some(&sum(text)) {
                out.extend_from_slice(text);
            }
        }
        out.extend_from_slice(b"frame_end\n");
        next.frames += 1;
        (out, next)
    }

    /// Serializes the checksums for a checkpoint.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = self.frames.to_le_bytes().to_vec();
        for (key, sum) in &self.sums {
            out.extend(sum.to_le_bytes());
            out.push(key.len() as u8);
            out.extend(key.as_bytes());
        }
        out
    }

    /// Restores the checksums from a checkpoint.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        fn number(bytes: &mut &[u8]) -> Option<u64> {
            let (head, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            Some(u64::from_le_bytes(*head))
        }
        let mut rest = bytes;
        let mut invariant = Self { frames: number(&mut rest)?, ..Self::default() };
        while !rest.is_empty() {
            let sum = number(&mut rest)?;
            let (length, more) = rest.split_first()?;
            let key = more.get(..usize::from(*length))?;
            rest = &more[usize::from(*length)..];
            invariant.sums.insert(String::from_utf8(key.to_vec()).ok()?, sum);
        }
        Some(invariant)
    }
}
