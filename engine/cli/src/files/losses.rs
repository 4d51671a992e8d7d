//! Reads converted files and reports what their format could not store.

use super::contents::{Fate, contents};
use super::{Reader, has_field};
use galamost_engine::diagnostic::{Failure, counted};
use galamost_engine::plugins::Registry;
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::snapshot::{Array, Snapshot};
use std::collections::BTreeMap;
use std::path::Path;

/// What became of a content in the frames.
struct Loss {
    name: String,
    /// The worst fate.
    fate: Fate,
    /// The largest number of missing links in a frame; 0 for other contents.
    links: usize,
    /// Whether frames lack different numbers of links.
    varies: bool,
    /// What is lost, in words, in the frame of the largest number or of the worst fate.
    what: String,
}

/// What written files lack of the states, collected over all frames.
pub(super) struct Losses<'a> {
    output: &'a Path,
    writes: String,
    registry: &'a Registry,
    /// The reader of a file with several frames, and whether it reads with `dimensions: 2`.
    reader: Option<(Reader, bool)>,
    /// Number of frames compared.
    frames: i64,
    found: Vec<Loss>,
    /// A frame is read with `dimensions: 2`, which the file does not contain.
    flat: bool,
    /// Error that ended the comparison.
    failed: Option<String>,
}

impl<'a> Losses<'a> {
    pub(super) fn of(output: &'a Path, writes: String, registry: &'a Registry) -> Self {
        Self { output, writes, registry, reader: None, frames: 0, found: vec![], flat: false, failed: None }
    }

    /// Compares the next frame.
    pub(super) fn compare(&mut self, s: &Snapshot) {
        if self.failed.is_some() {
            return;
        }
        match self.read(s) {
            Ok(back) => self.differences(s, &back),
            Err(e) => {
                let what = self.output.display();
                self.failed =
                    Some(format!("{what} was written, but cannot be read back for comparison: {}", reason(&e)));
            }
        }
        self.frames += 1;
    }

    /// Reads the frame that was written for `s`.
    fn read(&mut self, s: &Snapshot) -> Result<Snapshot, Failure> {
        let name = self.output.to_string_lossy();
        let each = name.contains("{step}");
        let reads = self.registry.find(Kind::Generator, &self.writes);
        let flat = s.dimensions == 2 && reads.is_some_and(|(_, c)| has_field(c, "dimensions"));
        self.flat |= flat;
        if each || self.reader.as_ref().is_none_or(|(_, other)| *other != flat) {
            let path = name.replace("{step}", &format!("{:010}", s.step));
            let fields = if flat { "dimensions: 2" } else { "" };
            let mut reader = Reader::open_with(Path::new(&path), Some(&self.writes), fields, self.registry)?;
            // the file is the program's own, and what it lacks is reported as a loss
            reader.quiet = true;
            self.reader = Some((reader, flat));
        }
        let Some((reader, _)) = &self.reader else { return Err(super::input_error(self.output, "is not open")) };
        let frame = if each || reader.frames()?.is_none() { None } else { Some(self.frames) };
        let complete = reader.read_over(frame, Snapshot::default());
        // formats of complete states refuse others: if both fail, the first error is the reason
        complete.or_else(|e| reader.read_over(frame, bare(s)).map_err(|_| e))
    }

    fn differences(&mut self, s: &Snapshot, back: &Snapshot) {
        if back.len() != s.len() {
            let message = format!("{} particles instead of {}", back.len(), s.len());
            return self.note("particles", Fate::Lost, 0, message);
        }
        for content in contents(s) {
            let name = &content.name;
            if is_determined(name, &back.arrays) {
                continue;
            }
            let Some(fate) = content.fate(s, back).filter(|f| *f != Fate::Kept) else { continue };
            self.note(name, fate, missing(name, s, back), what(name, fate, s, back));
        }
    }

    fn note(&mut self, name: &str, fate: Fate, links: usize, what: String) {
        match self.found.iter_mut().find(|l| l.name == name) {
            Some(found) => {
                let worse = found.fate.worse(fate);
                if links > found.links || (links == found.links && worse != found.fate) {
                    found.what = what;
                }
                found.varies |= links != found.links;
                (found.fate, found.links) = (worse, found.links.max(links));
            }
            None => self.found.push(Loss { name: name.into(), fate, links, varies: false, what }),
        }
    }

    /// Returns a message for each content that is not the same in the files.
    pub(super) fn messages(self) -> Vec<String> {
        let file = self.output.display();
        let one = |Loss { fate, varies, what, .. }: &Loss| match fate {
            _ if *varies => format!("not stored in {file}: {what} (the largest number in a frame)"),
            Fate::Rounded(d) => format!("{file}: {what} are rounded by at most {d:.1e}"),
            Fate::Partly => format!("not stored in {file}: some {what}"),
            _ => format!("not stored in {file}: {what}"),
        };
        let flat = self.flat.then(|| format!("not stored in {file}: two dimensions; read it with `dimensions: 2`"));
        self.found.iter().map(one).chain(flat).chain(self.failed.clone()).collect()
    }
}

/// Returns whether other arrays determine this one: formats store either the angular velocity or the angular momentum.
fn is_determined(name: &str, arrays: &BTreeMap<String, Array>) -> bool {
    let other = match name {
        "rotation" => "angular_momentum",
        "angular_momentum" => "rotation",
        _ => return false,
    };
    !arrays.contains_key(name) && [other, "quaternion", "inert"].iter().all(|a| arrays.contains_key(*a))
}

/// Returns the messages of a failure on one line.
pub(super) fn reason(e: &Failure) -> String {
    match e {
        Failure::Input(list) => list.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        Failure::Run(message, _) => message.clone(),
    }
}

/// Returns the number of links that are missing.
fn missing(name: &str, s: &Snapshot, back: &Snapshot) -> usize {
    let [all, kept] = [s, back].map(|s| match name {
        "bonds" => s.bonds.len(),
        "angles" => s.angles.len(),
        "dihedrals" => s.dihedrals.len(),
        "impropers" => s.impropers.len(),
        _ => 0,
    });
    all.saturating_sub(kept)
}

/// Returns what is lost, in words.
fn what(name: &str, fate: Fate, s: &Snapshot, back: &Snapshot) -> String {
    let of = |n: usize, kept: usize, what: &str| {
        if kept == 0 { format!("all of {n} {what}") } else { format!("{} of {n} {what}", n.saturating_sub(kept)) }
    };
    match name {
        "step" => format!("the step ({})", s.step),
        "box" => "box lengths".into(),
        "bonds" if back.bonds.len() != s.bonds.len() => of(s.bonds.len(), back.bonds.len(), name),
        "angles" if back.angles.len() != s.angles.len() => of(s.angles.len(), back.angles.len(), name),
        "dihedrals" if back.dihedrals.len() != s.dihedrals.len() => of(s.dihedrals.len(), back.dihedrals.len(), name),
        "impropers" if back.impropers.len() != s.impropers.len() => of(s.impropers.len(), back.impropers.len(), name),
        "type numbers" => numbers("type numbers", &s.types, &back.types),
        "bond type numbers" => numbers("bond type numbers", &s.bond_types, &back.bond_types),
        "angle type numbers" => numbers("angle type numbers", &s.angle_types, &back.angle_types),
        "dihedral type numbers" => numbers("dihedral type numbers", &s.dihedral_types, &back.dihedral_types),
        "improper type numbers" => numbers("improper type numbers", &s.improper_types, &back.improper_types),
        "types without particles" => {
            counted(s.types.len().saturating_sub(back.types.len()) as u64, "type") + " without particles"
        }
        _ if s.arrays.contains_key(name) && matches!(fate, Fate::Rounded(_)) => format!("values of {name}"),
        _ if s.arrays.contains_key(name) => format!("{name} of particles"),
        _ => name.into(),
    }
}

/// Names the first type whose number changes.
fn numbers(what: &str, types: &[String], kept: &[String]) -> String {
    let moved = types.iter().enumerate().find_map(|(k, name)| {
        let other = kept.iter().position(|n| n == name).filter(|other| *other != k)?;
        Some(format!("{what} ({name} is {} instead of {})", other + 1, k + 1))
    });
    moved.unwrap_or_else(|| what.into())
}

/// Returns particles for a format that only updates a given state.
fn bare(s: &Snapshot) -> Snapshot {
    let (dimensions, box_length, tilt) = (s.dimensions, s.box_length, s.tilt);
    let mut bare = Snapshot { types: vec!["A".into()], dimensions, box_length, tilt, ..Snapshot::default() };
    bare.set_particles(vec![[0.0; 3]; s.len()], vec![0; s.len()]);
    bare
}
