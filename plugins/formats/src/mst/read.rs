//! Reads a state from a file.

use crate::mst::keys::{self, array_of};
use crate::names::repetition;
use galamost_plugin_api::error::nearest;
use galamost_plugin_api::prelude::{Array, Link, Snapshot, Values};
use galamost_plugin_api::snapshot::{KNOWN_ARRAYS, intern};
use galamost_text::{Lines, Result, Trajectory, fold};

/// Skips the text before the first frame and the frame, or a file with a single state.
pub fn skip(l: &mut Lines) -> Result<bool> {
    let mut any = false;
    while l.next()? {
        match l.text() {
            "frame_end" => return Ok(true),
            "mst_end" if any => return Ok(true),
            // also the end of a file after its last frame
            "" | "mst_end" => {}
            _ => any = true,
        }
    }
    if any { Err(l.wrong("the file ends before `frame_end` or `mst_end`; it may be truncated")) } else { Ok(false) }
}

/// Type names and links.
type Links<const N: usize> = (Vec<String>, Vec<Link<N>>);

/// Contents of the sections of a part of a file.
#[derive(Clone, Debug, Default)]
pub struct Part {
    n: Option<usize>,
    step: Option<u64>,
    dimensions: Option<u32>,
    box_length: Option<[f64; 3]>,
    position: Option<Vec<[f64; 3]>>,
    image: Option<Vec<[i32; 3]>>,
    velocity: Option<Vec<[f64; 3]>>,
    types: Option<(Vec<String>, Vec<u32>)>,
    mass: Option<Vec<f64>>,
    arrays: Vec<(usize, Values)>,
    bonds: Option<Links<2>>,
    angles: Option<Links<3>>,
    dihedrals: Option<Links<4>>,
    /// Whether frames follow.
    trajectory: bool,
}

/// What frames of a trajectory may omit. Without frames, `invariant` is the whole state.
#[derive(Clone, Debug)]
pub struct Head {
    /// The part before the first frame.
    invariant: Part,
    /// The first frame without its positions; nothing if it cannot be read.
    first: Part,
}

/// Reads the part before the first frame, or the whole file if it has a single state, and the first frame.
///
/// # Errors
/// Returns an error if the part before the first frame is malformed.
pub fn head(t: &mut Trajectory) -> Result<Head> {
    let l = t.begin()?;
    loop {
        l.must("the first line")?;
        let text = l.text();
        if let Some(version) = text.strip_prefix("mst_version") {
            let version = version.trim_ascii();
            if !version.starts_with("1.") && version != "1" {
                return Err(l.wrong(format!("unsupported format version {version}; expected 1.0")));
            }
            break;
        }
        if !text.is_empty() && !text.starts_with('#') {
            return Err(l.wrong("not an MST file: expected `mst_version 1.0`"));
        }
    }
    let mut invariant = Part::default();
    invariant.sections(l)?;
    let mut first = Part { n: invariant.n, ..Part::default() };
    // an error in the first frame is reported if that frame is read
    if !invariant.trajectory || first.frame(l).is_err() {
        first = Part::default();
    }
    first.position = None;
    Ok(Head { invariant, first })
}

/// Reads a frame. A section that neither the frame nor the part before the first frame has is that of the first frame.
///
/// # Errors
/// Returns an error if there is no such frame or it is malformed.
pub fn read(t: &mut Trajectory, head: &Head, number: i64) -> Result<Snapshot> {
    let l = t.frame(number)?;
    let mut part = head.invariant.clone();
    if part.trajectory {
        part.n = part.n.or(head.first.n);
        part.frame(l)?;
        part.complete(&head.first);
    }
    part.state(l)
}

fn is_frame(text: &str) -> bool {
    text.split_ascii_whitespace().next() == Some("frame")
}

/// Returns the line without its comment.
fn content(l: &Lines) -> &str {
    l.text().split('#').next().unwrap_or_default().trim_ascii()
}

/// Returns the type names after the keyword in the current line.
fn type_list(l: &Lines) -> Result<Vec<String>> {
    let list = l.text().split_once(keys::TYPES).map_or("", |(_, list)| list);
    let names: Vec<&str> = list.split_ascii_whitespace().collect();
    match repetition(&names) {
        Some(k) => Err(l.wrong_at(names[k], format!("the type {} is listed twice; list each type once", names[k]))),
        None => Ok(names.into_iter().map(String::from).collect()),
    }
}

/// Advances to the next line that is not empty.
fn next(l: &mut Lines) -> Result<bool> {
    while l.next()? {
        if !content(l).is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn must(l: &mut Lines, section: &str) -> Result<()> {
    if next(l)? { Ok(()) } else { Err(l.wrong(format!("the file ends inside `{section}`; it may be truncated"))) }
}

fn reals<const N: usize>(l: &Lines) -> Result<[f64; N]> {
    let words: Vec<&str> = content(l).split_ascii_whitespace().collect();
    if words.len() != N {
        return Err(l.wrong(format!("expected {N} number(s), found {}", words.len())));
    }
    let mut out = [0.0; N];
    for (x, word) in out.iter_mut().zip(words) {
        *x = l.real(word)?;
    }
    Ok(out)
}

fn wholes<const N: usize>(l: &Lines) -> Result<[i32; N]> {
    let words: Vec<&str> = content(l).split_ascii_whitespace().collect();
    if words.len() != N {
        return Err(l.wrong(format!("expected {N} whole number(s), found {}", words.len())));
    }
    let mut out = [0; N];
    for (x, word) in out.iter_mut().zip(words) {
        *x = l.whole(word)?;
    }
    Ok(out)
}

impl Part {
    /// Reads the next frame, after the part before the first frame if that comes first.
    fn frame(&mut self, l: &mut Lines) -> Result<()> {
        while !is_frame(l.must("the frame")?) {}
        self.sections(l)
    }

    /// Takes missing sections from the first frame; rows of particles only if the number of particles is the same.
    fn complete(&mut self, first: &Self) {
        fn take<T: Clone>(to: &mut Option<T>, from: &Option<T>) {
            if to.is_none() {
                to.clone_from(from);
            }
        }
        take(&mut self.step, &first.step);
        take(&mut self.dimensions, &first.dimensions);
        take(&mut self.box_length, &first.box_length);
        if self.n != first.n {
            return;
        }
        take(&mut self.image, &first.image);
        take(&mut self.velocity, &first.velocity);
        take(&mut self.types, &first.types);
        take(&mut self.mass, &first.mass);
        take(&mut self.bonds, &first.bonds);
        take(&mut self.angles, &first.angles);
        take(&mut self.dihedrals, &first.dihedrals);
        for (k, values) in &first.arrays {
            if !self.arrays.iter().any(|(known, _)| known == k) {
                self.arrays.push((*k, values.clone()));
            }
        }
    }

    /// Reads sections to the end of a part.
    fn sections(&mut self, l: &mut Lines) -> Result<()> {
        let mut again = false;
        loop {
            if !again {
                must(l, "the file")?;
            }
            let key = content(l).to_string();
            again = false;
            match key.as_str() {
                "mst_end" | "frame_end" => return Ok(()),
                "variant_data" => {
                    self.trajectory = true;
                    return Ok(());
                }
                "invariant_data" => {}
                _ => again = self.section(l, &key)?,
            }
        }
    }

    /// Returns the number of particles.
    fn n(&self, l: &Lines) -> Result<usize> {
        self.n.ok_or_else(|| l.wrong("`num_particles` must precede this"))
    }

    /// Reads a section; returns `true` if the first line of the next section was read too.
    fn section(&mut self, l: &mut Lines, key: &str) -> Result<bool> {
        match key {
            "num_particles" => {
                must(l, key)?;
                self.n = Some(l.whole(content(l))?);
            }
            "timestep" => {
                must(l, key)?;
                self.step = Some(l.whole(content(l))?);
            }
            "dimension" => {
                must(l, key)?;
                let d = l.whole(content(l))?;
                if d != 2 && d != 3 {
                    return Err(l.wrong(format!("`dimension` is {d}, expected 2 or 3")));
                }
                self.dimensions = Some(d);
            }
            "box" => {
                must(l, key)?;
                self.box_length = Some(reals(l)?);
            }
            "position" => self.position = Some(self.rows(l, key, reals)?),
            "velocity" => self.velocity = Some(self.rows(l, key, reals)?),
            "image" => self.image = Some(self.rows(l, key, wholes)?),
            "mass" => self.mass = Some(self.rows(l, key, reals::<1>)?.into_flattened()),
            "type" => {
                let mut names = type_list(l)?;
                let types = self.rows(l, key, |l| {
                    let name = content(l);
                    let one = !name.contains(char::is_whitespace);
                    if one { Ok(intern(&mut names, name)) } else { Err(l.wrong("expected one type name")) }
                })?;
                self.types = Some((names, types));
            }
            "bond" => return self.links(l, key).map(|(links, again)| (self.bonds = Some(links), again).1),
            "angle" => return self.links(l, key).map(|(links, again)| (self.angles = Some(links), again).1),
            "dihedral" => return self.links(l, key).map(|(links, again)| (self.dihedrals = Some(links), again).1),
            _ if array_of(key).is_some() => {
                let k = array_of(key).unwrap_or_default();
                let values = self.array(l, key, k)?;
                self.arrays.retain(|(n, _)| *n != k);
                self.arrays.push((k, values));
            }
            _ if keys::IGNORED_ROWS.contains(&key) => {
                self.rows(l, key, |_| Ok(()))?;
            }
            _ if keys::IGNORED.contains(&key) => return Self::ignored(l, key).map(|()| true),
            _ => {
                return Err(l.wrong(match nearest(key, keys::all()) {
                    Some(n) => format!("unknown section `{key}`; did you mean `{n}`?"),
                    None => format!("unknown section `{key}`"),
                }));
            }
        }
        Ok(false)
    }

    /// Skips a section of any number of rows, and reads the first line of the next one.
    fn ignored(l: &mut Lines, key: &str) -> Result<()> {
        let mut rows = 0u64;
        loop {
            must(l, key)?;
            let text = content(l);
            if keys::all().any(|k| k == text) {
                break;
            }
            rows += 1;
        }
        // the other sections describe potentials, which the pipeline defines
        if rows > 0 && ["vsite", "constraint"].contains(&key) {
            l.warn(format!("{rows} rows of `{key}` are not read"));
        }
        Ok(())
    }

    /// Reads one row for each particle.
    fn rows<T>(&self, l: &mut Lines, key: &str, mut row: impl FnMut(&Lines) -> Result<T>) -> Result<Vec<T>> {
        let mut all = vec![];
        for _ in 0..self.n(l)? {
            must(l, key)?;
            all.push(row(l)?);
        }
        Ok(all)
    }

    fn array(&self, l: &mut Lines, key: &str, k: usize) -> Result<Values> {
        let (_, width, whole, _) = KNOWN_ARRAYS[k];
        Ok(match (whole, width) {
            (true, _) => Values::Int(self.rows(l, key, wholes::<1>)?.into_flattened()),
            (false, 1) => Values::Real(self.rows(l, key, reals::<1>)?.into_flattened()),
            (false, 3) => Values::Real(self.rows(l, key, reals::<3>)?.into_flattened()),
            (false, _) => Values::Real(self.rows(l, key, reals::<4>)?.into_flattened()),
        })
    }

    /// Reads rows of a type and particles, and the first line of the next section.
    fn links<const N: usize>(&self, l: &mut Lines, key: &str) -> Result<(Links<N>, bool)> {
        let n = self.n(l)?;
        let (mut names, mut links) = (type_list(l)?, vec![]);
        loop {
            must(l, key)?;
            let words: Vec<&str> = content(l).split_ascii_whitespace().collect();
            if words.len() == 1 {
                return Ok(((names, links), true));
            }
            if words.len() != N + 1 {
                return Err(l.wrong(format!("expected a type and {N} particles, found {} values", words.len())));
            }
            let mut link = Link { kind: intern(&mut names, words[0]), tags: [0; N] };
            for (tag, word) in link.tags.iter_mut().zip(&words[1..]) {
                *tag = l.whole(word)?;
                if *tag as usize >= n {
                    let last = n.saturating_sub(1);
                    return Err(l.wrong_at(word, format!("unknown particle {tag}; the last particle is {last}")));
                }
            }
            links.push(link);
        }
    }

    fn state(self, l: &Lines) -> Result<Snapshot> {
        let missing = |what: &str| l.wrong_file(format!("missing section `{what}`"));
        let n = self.n.ok_or_else(|| missing("num_particles"))?;
        // a second `num_particles` may be anything, and memory is reserved for it below
        let found = self.position.as_ref().ok_or_else(|| missing("position"))?.len();
        if found != n {
            return Err(l.wrong_file(format!("{n} particles, but `position` has {found} rows")));
        }
        let mut s = Snapshot {
            step: self.step.unwrap_or(0),
            dimensions: self.dimensions.unwrap_or(3),
            box_length: self.box_length.ok_or_else(|| missing("box"))?,
            position: self.position.ok_or_else(|| missing("position"))?.into(),
            velocity: self.velocity.unwrap_or_else(|| vec![[0.0; 3]; n]).into(),
            mass: self.mass.unwrap_or_else(|| vec![1.0; n]).into(),
            image: self.image.unwrap_or_else(|| vec![[0; 3]; n]).into(),
            ..Snapshot::default()
        };
        if s.box_length.iter().take(s.dimensions as usize).any(|x| *x <= 0.0) {
            return Err(l.wrong_file(format!("box lengths must be positive, found {:?}", s.box_length)));
        }
        if s.dimensions == 2 {
            s.box_length[2] = 0.0;
        }
        let (types, type_id) = self.types.ok_or_else(|| missing("type"))?;
        (s.types, s.type_id) = (types, type_id.into());
        let rows = [s.position.len(), s.velocity.len(), s.mass.len(), s.image.len(), s.type_id.len()];
        if rows.iter().any(|rows| *rows != n) {
            return Err(
                l.wrong_file(format!("{n} particles, but some sections have a different number of rows: {rows:?}"))
            );
        }
        for tag in 0..n {
            for k in 0..3 {
                let far = || l.wrong_file(format!("particle {tag} is too far outside the box"));
                let (x, turns) = fold(s.position[tag][k], s.box_length[k]).ok_or_else(far)?;
                s.position[tag][k] = x;
                s.image[tag][k] = s.image[tag][k].checked_add(turns).ok_or_else(far)?;
            }
        }
        for (k, values) in self.arrays {
            s.arrays.insert(KNOWN_ARRAYS[k].0.into(), Array { width: KNOWN_ARRAYS[k].1, values });
        }
        (s.bond_types, s.bonds) = self.bonds.unwrap_or_default();
        (s.angle_types, s.angles) = self.angles.unwrap_or_default();
        (s.dihedral_types, s.dihedrals) = self.dihedrals.unwrap_or_default();
        Ok(s)
    }
}
