//! Reads a converted file and reports what its format could not store.

use super::{Reader, has_field};
use galamost_engine::plugins::Registry;
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::snapshot::{Snapshot, Values};
use std::path::Path;

/// Reads the written file and returns what it lacks of its last state `s`.
pub(super) fn losses(output: &Path, writes: &str, s: &Snapshot, registry: &Registry) -> Vec<String> {
    let name = output.to_string_lossy().replace("{step}", &format!("{:010}", s.step));
    let path = Path::new(&name);
    let reads = registry.find(Kind::Generator, writes);
    let flat = s.dimensions == 2 && reads.is_some_and(|(_, c)| has_field(c, "dimensions"));
    let fields = if flat { "dimensions: 2" } else { "" };
    let read = |base: Snapshot| Reader::open_with(path, Some(writes), fields, registry)?.read_over(None, base);
    let back = read(Snapshot::default()).or_else(|_| {
        // a format with positions only updates a given state
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
        Err(e) => {
            vec![format!("{name} was written, but cannot be read back for comparison: {}", e.render().trim_end())]
        }
    }
}

/// Returns the largest difference of two columns; `None` if they are equal.
fn largest_difference<'a>(a: impl Iterator<Item = &'a f64>, b: impl Iterator<Item = &'a f64>) -> Option<f64> {
    let d = a.zip(b).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
    (d > 0.0).then_some(d)
}

/// Returns what the state `back` lacks of `s`.
fn differences(s: &Snapshot, back: &Snapshot, file: &str) -> Vec<String> {
    let mut out = vec![];
    if back.len() != s.len() {
        return vec![format!("{file} has {} particles instead of {}", back.len(), s.len())];
    }
    let mut lost = |what: String| out.push(format!("not stored in {file}: {what}"));
    if s.step != back.step {
        lost(format!("the step ({})", s.step));
    }
    let type_of = |s: &Snapshot, tag: usize| s.types.get(s.type_id[tag] as usize).cloned();
    if (0..s.len()).any(|tag| type_of(s, tag) != type_of(back, tag)) {
        lost("type names".into());
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
            lost(format!("type names of {what}"));
        }
    }
    out.extend(rounding(s, back, file));
    out
}

/// Returns the values that are rounded in `back`.
fn rounding(s: &Snapshot, back: &Snapshot, file: &str) -> Vec<String> {
    let mut out = vec![];
    // nearest images: a rounded position may have crossed the boundary of the box
    let mut far: f64 = 0.0;
    for (a, b) in s.position.iter().zip(&back.position) {
        for k in 0..3 {
            let (d, l) = (a[k] - b[k], s.box_length[k]);
            far = far.max(if l > 0.0 { (d - l * (d / l).round()).abs() } else { d.abs() });
        }
    }
    let longest = s.box_length.iter().fold(1.0, |m: f64, l| m.max(*l));
    if far > 1e-14 * longest {
        out.push(format!("{file}: positions are rounded by at most {far:.1e}"));
    }
    if back.velocity.as_flattened().iter().any(|x| *x != 0.0)
        && let Some(d) = largest_difference(s.velocity.as_flattened().iter(), back.velocity.as_flattened().iter())
    {
        out.push(format!("{file}: velocities are rounded by at most {d:.1e}"));
    }
    if back.mass.iter().any(|m| *m != 1.0)
        && let Some(d) = largest_difference(s.mass.iter(), back.mass.iter())
    {
        out.push(format!("{file}: masses are rounded by at most {d:.1e}"));
    }
    for (name, a) in &s.arrays {
        if let (Values::Real(a), Some(Values::Real(b))) = (&a.values, back.arrays.get(name).map(|b| &b.values))
            && let Some(d) = largest_difference(a.iter(), b.iter()).filter(|d| *d > 1e-14)
        {
            out.push(format!("{file}: {name} is rounded by at most {d:.1e}"));
        }
    }
    if let Some(d) = largest_difference(s.box_length.iter(), back.box_length.iter()) {
        out.push(format!("{file}: the box is rounded by at most {d:.1e}"));
    }
    out
}
