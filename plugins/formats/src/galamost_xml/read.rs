//! Builds a state from the text of a file.

use crate::galamost_xml::document::{Document, Node};
use crate::galamost_xml::report::Report;
use crate::galamost_xml::rows;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::snapshot::{Array, KNOWN_ARRAYS, Link, Snapshot, Values, intern, wrap};
use galamost_text::tilted;
use std::path::Path;

/// Largest distance outside the box, in box lengths, that rounding of printed digits can explain.
const TOLERANCE: f64 = 1e-6;

/// Reads a file.
///
/// # Errors
/// Returns all errors of the file, each with its line.
pub fn read(path: &Path) -> Result<Snapshot> {
    parse(path, &galamost_text::read_text(path)?)
}

/// Parses the text of a file; `path` is only used in messages.
///
/// # Errors
/// Returns all errors of the file, each with its line.
pub fn parse(path: &Path, text: &str) -> Result<Snapshot> {
    let mut report = Report::new(path, text.strip_prefix('\u{feff}').unwrap_or(text));
    let state = Document::parse(&mut report).map(|document| State::read(&document, &mut report));
    match state {
        Some(snapshot) if report.is_clean() => Ok(snapshot),
        _ => Err(report.into_error()),
    }
}

struct State<'d, 'a> {
    document: &'d Document<'a>,
    snapshot: Snapshot,
    /// Number of particles that every node must have.
    n: usize,
}

impl<'d, 'a> State<'d, 'a> {
    fn read(document: &'d Document<'a>, report: &mut Report<'a>) -> Snapshot {
        let mut state = Self { document, snapshot: Snapshot { dimensions: 3, ..Snapshot::default() }, n: 0 };
        state.configuration(report);
        state.box_length(report);
        // without positions, the number of particles is unknown
        if document.node("position").is_some() {
            state.positions(report);
            state.particles(report);
            state.arrays(report);
            state.links(report);
        }
        state.snapshot
    }

    fn configuration(&mut self, report: &mut Report<'a>) {
        let node = &self.document.configuration;
        report.begin_node();
        if let Some(text) = node.attribute("time_step") {
            match text.parse() {
                Ok(step) => self.snapshot.step = step,
                Err(_) => report.say(node.at, || format!("time_step=\"{text}\": expected a whole number from 0")),
            }
        }
        match node.attribute("dimensions") {
            None | Some("3") => {}
            Some("2") => self.snapshot.dimensions = 2,
            Some(text) => report.say(node.at, || format!("dimensions=\"{text}\": expected 2 or 3")),
        }
        for name in ["box", "position", "type"] {
            if self.document.node(name).is_none() {
                report.say(node.at, || format!("missing <{name}> in <configuration>"));
            }
        }
    }

    fn box_length(&mut self, report: &mut Report<'a>) {
        let Some(node) = self.document.node("box") else { return };
        let flat = self.snapshot.dimensions == 2;
        report.begin_node();
        for (k, name) in ["lx", "ly", "lz"].into_iter().enumerate() {
            let zero = flat && k == 2;
            match node.attribute(name).map(|t| (t, t.parse::<f64>())) {
                Some((_, Ok(l))) if l.is_finite() && if zero { l == 0.0 } else { l > 0.0 } => {
                    self.snapshot.box_length[k] = l;
                }
                None if zero => {}
                None => report.say(node.at, || format!("box: {name} is missing")),
                Some((text, _)) => report.say(node.at, || match (zero, k) {
                    (true, _) => format!("box: {name}=\"{text}\": must be 0 in two dimensions"),
                    (_, 2) => {
                        format!("box: {name}=\"{text}\": must be a positive number (or 0 with dimensions=\"2\")")
                    }
                    _ => format!("box: {name}=\"{text}\": must be a positive number"),
                }),
            }
        }
        for name in ["xy", "xz", "yz"] {
            match node.attribute(name) {
                Some(text) if tilted(&[text.parse().unwrap_or(f64::NAN)], &self.snapshot.box_length) => {
                    report.say(node.at, || format!("box: {name}=\"{text}\": only orthogonal boxes are supported"));
                }
                _ => {}
            }
        }
    }

    /// Reads positions, which define the number of particles, and images.
    fn positions(&mut self, report: &mut Report<'a>) {
        let configuration = &self.document.configuration;
        let declared = configuration.attribute("natoms").map(|t| (t, t.parse::<u64>()));
        if let Some((text, Err(_))) = &declared {
            report.begin_node();
            report.say(configuration.at, || format!("natoms=\"{text}\": expected a whole number from 0"));
        }
        let Some(node) = self.document.node("position") else { return };
        report.begin_node();
        let s = &mut self.snapshot;
        s.position = rows::numbers(node, report).into();
        let found = s.position.len();
        report.begin_node();
        self.n = match declared {
            Some((_, Ok(n))) => {
                if n != found as u64 {
                    report
                        .say(configuration.at, || format!("natoms is {n}, but <position> has {}", rows::count(found)));
                }
                usize::try_from(n).unwrap_or(found)
            }
            _ => found,
        };
        check_num(node, found, report);
        if found == 0 {
            report.say(node.at, || "the file has no particles".into());
        }
        s.image = match self.document.node("image") {
            Some(image) => Self::per_particle(image, self.n, report),
            None => vec![[0; 3]; found],
        }
        .into();
        report.begin_node();
        if s.image.len() != found || s.box_length.iter().take(s.dimensions as usize).any(|l| *l == 0.0) {
            return;
        }
        for tag in 0..found {
            let x = s.position[tag];
            if s.dimensions == 2 && x[2] != 0.0 {
                rows::say(node, tag, report, || format!("particle {tag} has z = {} in two dimensions", x[2]));
            } else if !wrap(&mut s.position[tag], &mut s.image[tag], s.box_length, TOLERANCE) {
                let [a, b, c] = s.box_length.map(|l| 0.5 * l);
                rows::say(node, tag, report, || {
                    format!("particle {tag} is outside the box, which extends to ±{a}, ±{b}, ±{c}")
                });
            }
        }
    }

    /// Reads types, velocities, and masses.
    fn particles(&mut self, report: &mut Report<'a>) {
        let (document, n, found) = (self.document, self.n, self.snapshot.position.len());
        let s = &mut self.snapshot;
        if let Some(node) = document.node("type") {
            report.begin_node();
            let (types, type_id) = rows::names(node, report);
            (s.types, s.type_id) = (types, type_id.into());
            check_rows(node, s.type_id.len(), n, report);
        }
        s.velocity = match document.node("velocity") {
            Some(node) => {
                let velocity: Vec<[f64; 3]> = Self::per_particle(node, n, report);
                let moving = (0..velocity.len()).filter(|tag| s.dimensions == 2 && velocity[*tag][2] != 0.0);
                for tag in moving {
                    rows::say(node, tag, report, || format!("particle {tag} moves along z in two dimensions"));
                }
                velocity
            }
            None => vec![[0.0; 3]; found],
        }
        .into();
        s.mass = match document.node("mass") {
            Some(node) => {
                let mass = Self::per_particle::<_, 1>(node, n, report).into_flattened();
                for tag in (0..mass.len()).filter(|tag| mass[*tag] < 0.0) {
                    rows::say(node, tag, report, || {
                        format!("particle {tag} has {}; masses must be at least 0", mass[tag])
                    });
                }
                mass
            }
            None => vec![1.0; found],
        }
        .into();
    }

    /// Reads the optional arrays.
    fn arrays(&mut self, report: &mut Report<'a>) {
        for (name, width, integer, _) in KNOWN_ARRAYS {
            let Some(node) = self.document.node(name) else { continue };
            let values = match (*width, *integer) {
                (1, true) => Values::Int(Self::per_particle::<_, 1>(node, self.n, report).into_flattened()),
                (1, false) => Values::Real(Self::per_particle::<_, 1>(node, self.n, report).into_flattened()),
                (3, false) => Values::Real(Self::per_particle::<_, 3>(node, self.n, report).into_flattened()),
                (4, false) => Values::Real(Self::per_particle::<_, 4>(node, self.n, report).into_flattened()),
                _ => continue,
            };
            self.snapshot.arrays.insert((*name).into(), Array { width: *width, values });
        }
    }

    fn links(&mut self, report: &mut Report<'a>) {
        let (document, n, s) = (self.document, self.n, &mut self.snapshot);
        if let Some(node) = document.node("bond") {
            report.begin_node();
            (s.bond_types, s.bonds) = rows::links(node, n, report);
            check_num(node, s.bonds.len(), report);
        }
        if let Some(node) = document.node("angle") {
            report.begin_node();
            (s.angle_types, s.angles) = rows::links(node, n, report);
            check_num(node, s.angles.len(), report);
        }
        if let Some(node) = document.node("dihedral") {
            report.begin_node();
            (s.dihedral_types, s.dihedrals) = rows::links(node, n, report);
            check_num(node, s.dihedrals.len(), report);
        }
        if let Some(node) = document.node("improper") {
            report.begin_node();
            (s.improper_types, s.impropers) = rows::links(node, n, report);
            check_num(node, s.impropers.len(), report);
        }
        self.peer_links(report);
    }

    /// Reads constraints, which are bonds here, and virtual sites, which `Sites` makes of impropers.
    fn peer_links(&mut self, report: &mut Report<'a>) {
        let (document, n, s) = (self.document, self.n, &mut self.snapshot);
        if let Some(node) = document.node("constraint") {
            report.begin_node();
            let (names, links) = rows::links::<2>(node, n, report);
            check_num(node, links.len(), report);
            append("constraint-", names, links, &mut s.bond_types, &mut s.bonds);
        }
        if let Some(node) = document.node("vsite") {
            report.begin_node();
            let (names, links) = rows::links::<4>(node, n, report);
            check_num(node, links.len(), report);
            append("vsite-", names, links, &mut s.improper_types, &mut s.impropers);
        }
    }

    fn per_particle<T: rows::Number, const W: usize>(
        node: &Node<'a>,
        n: usize,
        report: &mut Report<'a>,
    ) -> Vec<[T; W]> {
        report.begin_node();
        let values = rows::numbers(node, report);
        check_rows(node, values.len(), n, report);
        values
    }
}

/// Adds links with a prefix before the names of their types.
fn append<const N: usize>(
    prefix: &str,
    names: Vec<String>,
    links: Vec<Link<N>>,
    types: &mut Vec<String>,
    all: &mut Vec<Link<N>>,
) {
    let kinds: Vec<u32> = names.into_iter().map(|name| intern(types, &format!("{prefix}{name}"))).collect();
    all.extend(links.into_iter().map(|l| Link { kind: kinds[l.kind as usize], tags: l.tags }));
}

/// Compares `num` with the number of rows; returns whether they agree.
fn check_num(node: &Node<'_>, found: usize, report: &mut Report<'_>) -> bool {
    let Some(text) = node.attribute("num") else { return true };
    match text.parse::<u64>() {
        Ok(n) if n == found as u64 => return true,
        Ok(n) => report.say(node.at, || format!("{}: num is {n}, but the node has {}", node.name, rows::count(found))),
        Err(_) => report.say(node.at, || format!("{}: num=\"{text}\": expected a whole number from 0", node.name)),
    }
    false
}

/// Checks that a node has one row for each particle.
fn check_rows(node: &Node<'_>, found: usize, n: usize, report: &mut Report<'_>) {
    if check_num(node, found, report) && found != n {
        report.say(node.at, || format!("{}: {} for {n} particles", node.name, rows::count(found)));
    }
}
