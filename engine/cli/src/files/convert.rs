//! `galamost convert`: converts particle files and reports what the new format cannot store.

use super::Reader;
use super::force_field::{self, ForceFieldArgs};
use super::gromacs::{self, GromacsArgs};
use super::losses::{Losses, reason};
use super::writer::{Writer, contains_field, moves};
use crate::common::{Context, OverwriteArgs, input_error, refuse_input};
use crate::terminal::print;
use clap::Args;
use galamost_engine::diagnostic::{Failure, counted};
use galamost_engine::plan::files::{TIMES, Target};
use galamost_engine::plugins::Registry;
use galamost_engine::state::rotation;
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::snapshot::{Link, Snapshot, intern};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use tracing::warn;

/// Options of `galamost convert`.
#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {
    /// Input file; text formats may be compressed (.xz, .gz, .bz2, .zst). A topology of GROMACS (.top) or a
    /// force field of GALAMOST (.force_field) becomes a pipeline.
    input: PathBuf,
    /// Output file; for single-frame formats, {step} in its name is replaced by the step. Of a topology or force field: the pipeline.
    output: PathBuf,
    /// Frames to convert, counted from 0, including LAST; negative numbers count from the end: `-1`, `10:`, `0:-1:10`.
    #[arg(long, value_name = "FIRST[:LAST[:EVERY]]", allow_hyphen_values = true)]
    frames: Option<String>,
    /// Component that reads the input, overriding the file extension.
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// Component that writes the output, overriding the file extension.
    #[arg(long, value_name = "NAME")]
    to: Option<String>,
    /// Further fields of the reading component: `types: ["A", "B"], masses: [1.0, 2.0]`.
    #[arg(long, value_name = "FIELDS", default_value = "")]
    read: String,
    /// Further fields of the writing component: `digits: 6, unwrapped: true`.
    #[arg(long, value_name = "FIELDS", default_value = "")]
    write: String,
    /// Particle file with types and bonds, for formats without them (DCD, XTC, TRR).
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
    #[command(flatten)]
    overwrite: OverwriteArgs,
    #[command(flatten)]
    gromacs: GromacsArgs,
    #[command(flatten)]
    force_field: ForceFieldArgs,
}

/// Parses `--frames` for a file with `n` frames.
///
/// # Errors
/// Returns an error if the text is invalid or selects no frame.
pub fn select_frames(text: Option<&str>, n: u64) -> Result<Vec<u64>, String> {
    let Some(text) = text else { return Ok((0..n).collect()) };
    if text.trim().is_empty() {
        return Err("expected FIRST[:LAST[:EVERY]], found an empty text".into());
    }
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > 3 {
        return Err(format!("`{text}`: expected FIRST:LAST:EVERY"));
    }
    let number = |k: usize, default: i64| -> Result<i64, String> {
        match parts.get(k).map(|p| p.trim()) {
            None | Some("") => Ok(default),
            Some(word) => word.parse().map_err(|_| format!("`{word}` is not a frame number")),
        }
    };
    let index = |k: i64| {
        let found = if k < 0 { n.checked_add_signed(k) } else { Some(k as u64) };
        found.filter(|f| *f < n).ok_or_else(|| format!("no frame {k}: the file has {n} frames"))
    };
    let first = index(number(0, 0)?)?;
    let last = if parts.len() == 1 { first } else { index(number(1, -1)?)? };
    let every = number(2, 1)?;
    if every < 1 {
        return Err(format!("`{text}`: EVERY must be at least 1"));
    }
    if last < first {
        return Err(format!("`{text}`: no frames between {first} and {last}"));
    }
    Ok((first..=last).step_by(every as usize).collect())
}

/// The type names of all frames, with one numbering for all of them.
#[derive(Default)]
struct TypeNames {
    particles: Vec<String>,
    bonds: Vec<String>,
    angles: Vec<String>,
    dihedrals: Vec<String>,
    impropers: Vec<String>,
}

impl TypeNames {
    /// Adds the types of a frame.
    fn collect(&mut self, s: &Snapshot) {
        s.types.iter().for_each(|n| _ = intern(&mut self.particles, n));
        s.bond_types.iter().for_each(|n| _ = intern(&mut self.bonds, n));
        s.angle_types.iter().for_each(|n| _ = intern(&mut self.angles, n));
        s.dihedral_types.iter().for_each(|n| _ = intern(&mut self.dihedrals, n));
        s.improper_types.iter().for_each(|n| _ = intern(&mut self.impropers, n));
    }

    /// Converts a frame to the common numbering.
    fn renumber(&mut self, s: &mut Snapshot) {
        let numbers = |all: &mut Vec<String>, own: &[String]| own.iter().map(|n| intern(all, n)).collect::<Vec<u32>>();
        fn links<const N: usize>(links: &mut [Link<N>], numbers: &[u32]) {
            links.iter_mut().for_each(|l| l.kind = numbers[l.kind as usize]);
        }
        let types = numbers(&mut self.particles, &s.types);
        s.type_id.iter_mut().for_each(|k| *k = types[*k as usize]);
        links(&mut s.bonds, &numbers(&mut self.bonds, &s.bond_types));
        links(&mut s.angles, &numbers(&mut self.angles, &s.angle_types));
        links(&mut s.dihedrals, &numbers(&mut self.dihedrals, &s.dihedral_types));
        links(&mut s.impropers, &numbers(&mut self.impropers, &s.improper_types));
        (s.types, s.bond_types) = (self.particles.clone(), self.bonds.clone());
        (s.angle_types, s.dihedral_types) = (self.angles.clone(), self.dihedrals.clone());
        s.improper_types.clone_from(&self.impropers);
    }
}

/// Runs the command.
///
/// # Errors
/// Returns an error if a file or an option is invalid.
pub(crate) fn run(args: &ConvertArgs, context: &Context) -> Result<u8, Failure> {
    let (input, output) = (&args.input, &args.output);
    let field = force_field::is_force_field(input) && args.from.is_none();
    if !field && args.force_field != ForceFieldArgs::default() {
        return Err(input_error(
            input,
            "options of force fields (--exclude, --r-shift, --coulomb) need a file *.force_field as input",
        ));
    }
    if field || gromacs::is_topology(input) && args.from.is_none() {
        let given = [args.frames.is_some(), args.to.is_some(), args.topology.is_some()].contains(&true);
        if given || !args.read.is_empty() || !args.write.is_empty() {
            return Err(input_error(
                input,
                "--frames, --to, --read, --write and --topology do not apply to a topology of GROMACS or a force field",
            ));
        }
        return match field {
            true => force_field::run(input, output, (&args.force_field, &args.gromacs), args.overwrite, context),
            false => gromacs::run(input, output, &args.gromacs, args.overwrite, context),
        };
    }
    if args.gromacs != GromacsArgs::default() {
        return Err(input_error(
            input,
            "options of topologies (--coordinates, -I, -D, …) need a file *.top or *.force_field as input",
        ));
    }
    convert_particles(args, context)
}

/// Converts a particle file.
fn convert_particles(args: &ConvertArgs, context: &Context) -> Result<u8, Failure> {
    let (input, output) = (&args.input, &args.output);
    refuse_fields(args)?;
    let registry = &context.registry();
    let reader = Reader::open_with(input, args.from.as_deref(), &args.read, registry)?;
    let reader = reader.with_topology(args.topology.as_deref(), registry)?;
    let target = Target::resolve(output).map_err(|e| input_error(output, e))?;
    refuse_input(output, args.topology.iter().chain([input]))?;
    super::refuse_existing(output, args.overwrite)?;
    // a frame is read several times, and each warning is logged once
    let warned = RefCell::new(BTreeSet::new());
    let read = |k: u64| {
        let mut s = reader.read(Some(k as i64))?;
        for warning in rotation::complete_motion(&mut s.arrays) {
            if warned.borrow_mut().insert(warning.clone()) {
                warn!("{warning}");
            }
        }
        Ok::<_, Failure>(s)
    };
    let frames = frames(args, reader.frames()?, registry)?;
    // the writer needs the types of all frames before the first one, and whether particles move in any
    let mut names = TypeNames::default();
    let mut any_moves = false;
    let (mut least, mut most) = (usize::MAX, 0);
    let mut steps = vec![];
    for k in &frames {
        let s = read(*k)?;
        if target.is_pattern() && steps.contains(&s.step) {
            let message = format!(
                "two frames have step {}; they would be written to the same file: select one with --frames, or convert to a \
                 trajectory",
                s.step
            );
            return Err(input_error(output, message));
        }
        steps.push(s.step);
        names.collect(&s);
        any_moves |= moves(&s);
        (least, most) = (least.min(s.len()), most.max(s.len()));
    }
    let mut first = read(frames[0])?;
    names.renumber(&mut first);
    let writer =
        Writer::create_for(output, args.to.as_deref(), &args.write, (&first, any_moves, interval(&steps)), registry)?;
    let n = first.len();
    drop(first);
    let mut state = |k: u64| {
        let mut s = read(k)?;
        names.renumber(&mut s);
        Ok::<_, Failure>(s)
    };
    for k in &frames {
        let s = state(*k)?;
        writer.write(&s).map_err(|e| match s.len() == n {
            true => e,
            false => other_number(args, [*k, s.len() as u64], [frames[0], n as u64], &e),
        })?;
    }
    let writes = writer.format.clone();
    writer.finish()?;
    let mut losses = Losses::of(output, writes.clone(), registry);
    for k in &frames {
        losses.compare(&state(*k)?);
    }
    print(format!(
        "{} ({}) → {} ({writes}): {} of {}\n",
        input.display(),
        reader.format,
        output.display(),
        counted(frames.len() as u64, "frame"),
        if least == most { counted(most as u64, "particle") } else { format!("{least} to {most} particles") }
    ))?;
    for loss in losses.messages() {
        warn!("{loss}");
    }
    Ok(0)
}

/// Returns the error of a writer with the frame whose number of particles may be its cause. Frame and number of particles of
/// this frame and of the first one are given.
fn other_number(args: &ConvertArgs, [k, n]: [u64; 2], [first, expected]: [u64; 2], e: &Failure) -> Failure {
    let message = format!(
        "frame {k} has {}, but frame {first} has {expected}: {}; select frames with --frames, or choose another format",
        counted(n, "particle"),
        reason(e)
    );
    input_error(&args.input, message)
}

/// Returns the number of steps between frames, or 1 if they are not evenly spaced.
fn interval(steps: &[u64]) -> u64 {
    let [first, second, ..] = steps else { return 1 };
    let every = second.saturating_sub(*first);
    if every > 0 && steps.windows(2).all(|w| w[0].checked_add(every) == Some(w[1])) { every } else { 1 }
}

/// Refuses fields that have no effect: frames are selected by `--frames`, and each of them is written.
fn refuse_fields(args: &ConvertArgs) -> Result<(), Failure> {
    let refused = |option: &str, name: &str| {
        Err(input_error(option, format!("`{name}` does not apply to a conversion; select frames with --frames")))
    };
    if contains_field(&args.read, "frame") {
        return refused("--read", "frame");
    }
    TIMES.iter().find(|name| contains_field(&args.write, name)).map_or(Ok(()), |name| refused("--write", name))
}

/// Returns the frames to convert out of `n`: a single one if the output format stores one frame only. Refuses a field that gives
/// several frames one step.
fn frames(args: &ConvertArgs, n: Option<u64>, registry: &Registry) -> Result<Vec<u64>, Failure> {
    let output = &args.output;
    let frames = select_frames(args.frames.as_deref(), n.unwrap_or(1).max(1));
    let mut frames = frames.map_err(|m| input_error("--frames", m))?;
    // a format whose reader has no frames stores a single one
    let writes = match &args.to {
        Some(name) => name.clone(),
        None => super::component_for(output, Kind::Analyzer, registry)?.1.name.clone(),
    };
    let single = registry.find(Kind::Generator, &writes).is_some_and(|(_, c)| !super::has_field(c, "frame"));
    if single && frames.len() > 1 && !output.to_string_lossy().contains("{step}") {
        if args.frames.is_some() {
            let message = format!(
                "{writes} files have one frame: select one with --frames, or put {{step}} into the file name for {} files",
                frames.len()
            );
            return Err(input_error(output, message));
        }
        warn!("{} stores a single frame: writing the last of {} frames", output.display(), frames.len());
        frames.drain(..frames.len() - 1);
    }
    if frames.len() > 1 && contains_field(&args.read, "step") {
        let message = "`step` would give all frames the same step; select one with --frames, or remove `step`";
        return Err(input_error("--read", message));
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_selected() {
        let all = |text: &str| select_frames(Some(text), 10);
        assert_eq!(select_frames(None, 3), Ok(vec![0, 1, 2]));
        for (text, frames) in [
            ("-1", vec![9]),
            ("4", vec![4]),
            ("7:", vec![7, 8, 9]),
            (":2", vec![0, 1, 2]),
            ("0:-1:4", vec![0, 4, 8]),
            ("-3:-2", vec![7, 8]),
            ("::5", vec![0, 5]),
        ] {
            assert_eq!(all(text), Ok(frames), "{text}");
        }
        for text in ["", " ", "10", "-11", "5:4", "0:9:0", "x", "1:2:3:4", "0:9:-1"] {
            assert!(all(text).is_err(), "{text}");
        }
    }

    #[test]
    fn types_of_all_frames_share_a_numbering() {
        let of = |types: [&str; 2], kind: Vec<u32>| {
            let mut s = Snapshot { types: types.map(String::from).into(), ..Snapshot::default() };
            s.set_particles(vec![[0.0; 3]; kind.len()], kind);
            s
        };
        let (mut a, mut b) = (of(["A", "B"], vec![0, 1]), of(["C", "A"], vec![0, 1]));
        let mut names = TypeNames::default();
        names.collect(&a);
        names.collect(&b);
        names.renumber(&mut a);
        names.renumber(&mut b);
        assert_eq!((a.types.join(" "), b.types == a.types), ("A B C".into(), true));
        assert_eq!((&a.type_id[..], &b.type_id[..]), (&[0, 1][..], &[2, 0][..]));
    }
}
