//! `galamost convert`: frames of one file into another format, and what that format has no place for.

use super::writer::Writer;
use super::{Reader, about};
use clap::Args;
use galamost_engine::diagnostic::Failure;
use galamost_engine::plugins::Registry;
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::snapshot::{Link, Snapshot, Values, intern};
use std::path::{Path, PathBuf};
use tracing::warn;

#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {
    /// The file to read; compressed ones (.xz, .gz) too, if they are text.
    input: PathBuf,
    /// The file to write; {step} in it stands for the step, for formats of single states.
    output: PathBuf,
    /// Frames, from 0, the last one included; negative numbers count from the end: `-1`, `10:`, `0:-1:10`.
    #[arg(long, value_name = "FIRST[:LAST[:EVERY]]", allow_hyphen_values = true)]
    frames: Option<String>,
    /// The component that reads, whatever the file's ending.
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// The component that writes, whatever the file's ending.
    #[arg(long, value_name = "NAME")]
    to: Option<String>,
    /// Further fields of the component that reads: `types: ["A", "B"], masses: [1.0, 2.0]`.
    #[arg(long, value_name = "FIELDS", default_value = "")]
    read: String,
    /// Further fields of the component that writes: `digits: 6, unwrapped: true`.
    #[arg(long, value_name = "FIELDS", default_value = "")]
    write: String,
    /// A file with types and bonds, for formats that have only places (DCD).
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
}

/// The frames that are meant, out of `n`.
fn selected(text: Option<&str>, n: u64) -> Result<Vec<u64>, String> {
    let Some(text) = text else { return Ok((0..n).collect()) };
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > 3 {
        return Err(format!("`{text}`: expected first:last:every"));
    }
    let number = |k: usize, default: i64| -> Result<i64, String> {
        match parts.get(k).map(|p| p.trim()) {
            None | Some("") => Ok(default),
            Some(word) => word.parse().map_err(|_| format!("`{word}` is no number of a frame")),
        }
    };
    let place = |k: i64| {
        let found = if k < 0 { n.checked_add_signed(k) } else { Some(k as u64) };
        found.filter(|f| *f < n).ok_or_else(|| format!("there is no frame {k}: the file has {n}"))
    };
    let first = place(number(0, 0)?)?;
    let last = if parts.len() == 1 { first } else { place(number(1, -1)?)? };
    let every = number(2, 1)?;
    if every < 1 {
        return Err(format!("`{text}`: every must be at least 1"));
    }
    if last < first {
        return Err(format!("`{text}`: there is nothing from {first} to {last}"));
    }
    Ok((first..=last).step_by(every as usize).collect())
}

/// The types of all frames, each under the number that it has in every one of them.
#[derive(Default)]
struct Names {
    particles: Vec<String>,
    bonds: Vec<String>,
    angles: Vec<String>,
    dihedrals: Vec<String>,
}

impl Names {
    fn take(&mut self, s: &Snapshot) {
        s.types.iter().for_each(|n| _ = intern(&mut self.particles, n));
        s.bond_types.iter().for_each(|n| _ = intern(&mut self.bonds, n));
        s.angle_types.iter().for_each(|n| _ = intern(&mut self.angles, n));
        s.dihedral_types.iter().for_each(|n| _ = intern(&mut self.dihedrals, n));
    }

    /// A state with these types.
    fn give(&mut self, s: &mut Snapshot) {
        let numbers = |all: &mut Vec<String>, own: &[String]| own.iter().map(|n| intern(all, n)).collect::<Vec<u32>>();
        fn links<const N: usize>(links: &mut [Link<N>], numbers: &[u32]) {
            links.iter_mut().for_each(|l| l.kind = numbers[l.kind as usize]);
        }
        let kinds = numbers(&mut self.particles, &s.types);
        s.type_id.iter_mut().for_each(|k| *k = kinds[*k as usize]);
        links(&mut s.bonds, &numbers(&mut self.bonds, &s.bond_types));
        links(&mut s.angles, &numbers(&mut self.angles, &s.angle_types));
        links(&mut s.dihedrals, &numbers(&mut self.dihedrals, &s.dihedral_types));
        (s.types, s.bond_types) = (self.particles.clone(), self.bonds.clone());
        (s.angle_types, s.dihedral_types) = (self.angles.clone(), self.dihedrals.clone());
    }
}

pub(crate) fn run(args: &ConvertArgs, registry: &Registry) -> Result<u8, Failure> {
    let (input, output) = (&args.input, &args.output);
    let reader = Reader::open_with(input, args.from.as_deref(), &args.read, registry)?;
    if let (Ok(a), Ok(b)) = (input.canonicalize(), output.canonicalize())
        && a == b
    {
        return Err(about(output, "is the file that is read"));
    }
    let base = match &args.topology {
        Some(file) => super::read(file, None, registry)?,
        None => Snapshot::default(),
    };
    let read = |k: u64| reader.read_over(Some(k as i64), base.clone());
    let n = reader.frames()?;
    let wrong = |m: String| about("--frames".as_ref(), m);
    let mut frames = selected(args.frames.as_deref(), n.unwrap_or(1).max(1)).map_err(wrong)?;
    // a component that reads no frames writes none
    let writes = match &args.to {
        Some(name) => name.clone(),
        None => super::component_for(output, Kind::Analyzer, registry)?.1.name.clone(),
    };
    let single = registry.find(Kind::Generator, &writes).is_some_and(|(_, c)| !super::has_field(c, "frame"));
    if single && frames.len() > 1 && !output.to_string_lossy().contains("{step}") {
        if args.frames.is_some() {
            let message = format!(
                "{writes} holds one state: choose one frame, or write {{step}} in the file's name for a file of each of the {}",
                frames.len()
            );
            return Err(about(output, message));
        }
        warn!("{} holds one state: this is the last of {} frames", output.display(), frames.len());
        frames.drain(..frames.len() - 1);
    }
    // the types of all frames are known before the first one is written
    let mut names = Names::default();
    for k in &frames {
        names.take(&read(*k)?);
    }
    let mut first = read(frames[0])?;
    names.give(&mut first);
    let (count, particles) = (frames.len(), first.len());
    let writer = Writer::create(output, args.to.as_deref(), &args.write, &first, registry)?;
    let mut last = first;
    for (k, number) in frames.iter().enumerate() {
        if k > 0 {
            last = read(*number)?;
            names.give(&mut last);
        }
        writer.write(&last)?;
    }
    let writes = writer.format.clone();
    writer.finish()?;
    println!(
        "{} ({}) → {} ({writes}): {count} frame{} of {particles} particles",
        input.display(),
        reader.format,
        output.display(),
        if count == 1 { "" } else { "s" }
    );
    for loss in losses(output, &writes, &last, registry) {
        warn!("{loss}");
    }
    Ok(0)
}

/// What the file that was written does not say of its last state, found by reading it.
fn losses(output: &Path, writes: &str, s: &Snapshot, registry: &Registry) -> Vec<String> {
    let name = output.to_string_lossy().replace("{step}", &format!("{:010}", s.step));
    let path = Path::new(&name);
    let reads = registry.find(Kind::Generator, writes);
    let flat = s.dimensions == 2 && reads.is_some_and(|(_, c)| super::has_field(c, "dimensions"));
    let fields = if flat { "dimensions: 2" } else { "" };
    let read = |base: Snapshot| Reader::open_with(path, Some(writes), fields, registry)?.read_over(None, base);
    let back = read(Snapshot::default()).or_else(|_| {
        // a format of places alone: over a state that has nothing but what it cannot say
        let n = s.len();
        let (position, image, velocity) = (vec![[0.0; 3]; n], vec![[0; 3]; n], vec![[0.0; 3]; n]);
        let bare = Snapshot {
            position,
            image,
            velocity,
            type_id: vec![0; n],
            types: vec!["A".into()],
            mass: vec![1.0; n],
            dimensions: s.dimensions,
            box_length: s.box_length,
            ..Snapshot::default()
        };
        read(bare)
    });
    match back {
        Ok(back) => differences(s, &back, &name),
        Err(e) => vec![format!("{name} was written, but cannot be read again to compare: {}", e.render().trim_end())],
    }
}

/// The largest difference of two columns of numbers; `None` if they are equal.
fn largest<'a>(a: impl Iterator<Item = &'a f64>, b: impl Iterator<Item = &'a f64>) -> Option<f64> {
    let d = a.zip(b).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
    (d > 0.0).then_some(d)
}

/// What a state lacks of another.
fn differences(s: &Snapshot, back: &Snapshot, file: &str) -> Vec<String> {
    let mut out = vec![];
    if back.len() != s.len() {
        return vec![format!("{file} has {} particles, not {}", back.len(), s.len())];
    }
    let mut lost = |what: String| out.push(format!("not in {file}: {what}"));
    if s.step != back.step {
        lost(format!("the step ({})", s.step));
    }
    let type_of = |s: &Snapshot, tag: usize| s.types.get(s.type_id[tag] as usize).cloned();
    if (0..s.len()).any(|tag| type_of(s, tag) != type_of(back, tag)) {
        lost("names of types".into());
    }
    let zero = |v: &[[f64; 3]]| v.as_flattened().iter().all(|x| *x == 0.0);
    if s.image.as_flattened() != back.image.as_flattened() {
        let none = back.image.as_flattened().iter().all(|i| *i == 0);
        lost(if none { "images".into() } else { "some images".into() });
    }
    if zero(&back.velocity) && !zero(&s.velocity) {
        lost("velocities".into());
    }
    if s.mass.iter().any(|m| *m != 1.0) && back.mass.iter().all(|m| *m == 1.0) {
        lost("masses".into());
    }
    for (name, a) in &s.arrays {
        match back.arrays.get(name) {
            None => lost(format!("{name} of particles")),
            Some(b) => match (&a.values, &b.values) {
                (Values::Int(a), Values::Int(b)) if a != b => lost(format!("{name} of some particles")),
                _ => {}
            },
        }
    }
    for (what, n, kept, names, kept_names) in [
        ("bonds", s.bonds.len(), back.bonds.len(), &s.bond_types, &back.bond_types),
        ("angles", s.angles.len(), back.angles.len(), &s.angle_types, &back.angle_types),
        ("dihedrals", s.dihedrals.len(), back.dihedrals.len(), &s.dihedral_types, &back.dihedral_types),
    ] {
        if n != kept {
            lost(format!("{} of {n} {what}", if kept == 0 { "all".into() } else { (n - kept.min(n)).to_string() }));
        } else if n > 0 && names != kept_names {
            lost(format!("names of types of {what}"));
        }
    }
    // rounding: nearest images, since a rounded place may have crossed the box
    let mut far: f64 = 0.0;
    for (a, b) in s.position.iter().zip(&back.position) {
        for k in 0..3 {
            let (d, l) = (a[k] - b[k], s.box_length[k]);
            far = far.max(if l > 0.0 { (d - l * (d / l).round()).abs() } else { d.abs() });
        }
    }
    let longest = s.box_length.iter().fold(1.0, |m: f64, l| m.max(*l));
    if far > 1e-14 * longest {
        out.push(format!("{file}: positions are rounded, by {far:.1e} at most"));
    }
    if !zero(&back.velocity)
        && let Some(d) = largest(s.velocity.as_flattened().iter(), back.velocity.as_flattened().iter())
    {
        out.push(format!("{file}: velocities are rounded, by {d:.1e} at most"));
    }
    for (what, a, b) in [("masses", &s.mass, &back.mass)] {
        if let Some(d) = largest(a.iter(), b.iter()).filter(|_| b.iter().any(|m| *m != 1.0)) {
            out.push(format!("{file}: {what} are rounded, by {d:.1e} at most"));
        }
    }
    for (name, a) in &s.arrays {
        if let (Values::Real(a), Some(Values::Real(b))) = (&a.values, back.arrays.get(name).map(|b| &b.values))
            && let Some(d) = largest(a.iter(), b.iter()).filter(|d| *d > 1e-14)
        {
            out.push(format!("{file}: {name} is rounded, by {d:.1e} at most"));
        }
    }
    if let Some(d) = largest(s.box_length.iter(), back.box_length.iter()) {
        out.push(format!("{file}: the box is rounded, by {d:.1e} at most"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_chosen() {
        let all = |text: &str| selected(Some(text), 10);
        assert_eq!(selected(None, 3), Ok(vec![0, 1, 2]));
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
        for text in ["10", "-11", "5:4", "0:9:0", "x", "1:2:3:4", "0:9:-1"] {
            assert!(all(text).is_err(), "{text}");
        }
    }

    #[test]
    fn types_of_all_frames_are_put_together() {
        let of = |types: [&str; 2], kind: Vec<u32>| {
            let n = kind.len();
            Snapshot {
                types: types.map(String::from).into(),
                type_id: kind,
                position: vec![[0.0; 3]; n],
                ..Snapshot::default()
            }
        };
        let (mut a, mut b) = (of(["A", "B"], vec![0, 1]), of(["C", "A"], vec![0, 1]));
        let mut names = Names::default();
        names.take(&a);
        names.take(&b);
        names.give(&mut a);
        names.give(&mut b);
        assert_eq!((a.types.join(" "), b.types == a.types), ("A B C".into(), true));
        assert_eq!((a.type_id, b.type_id), (vec![0, 1], vec![2, 0]));
    }
}
