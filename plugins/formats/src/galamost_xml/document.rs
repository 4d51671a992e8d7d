//! XML structure of a file: its nodes and their text.

use crate::galamost_xml::report::Report;
use galamost_plugin_api::error::nearest;
use quick_xml::Reader;
use quick_xml::errors::{Error, IllFormedError};
use quick_xml::events::{BytesStart, Event};

/// All node names; the last three belong to anisotropic potentials and are ignored.
const NODES: [&str; 25] = [
    "box",
    "position",
    "velocity",
    "type",
    "mass",
    "charge",
    "diameter",
    "body",
    "molecule",
    "image",
    "orientation",
    "quaternion",
    "rotation",
    "inert",
    "h_init",
    "h_cris",
    "bond",
    "angle",
    "dihedral",
    "improper",
    "constraint",
    "vsite",
    "Patches",
    "PatchParams",
    "Aspheres",
];

/// An element with its attributes and text.
#[derive(Debug, Default)]
pub struct Node<'a> {
    /// Name.
    pub name: String,
    /// Byte offset of its `<`.
    pub at: usize,
    attributes: Vec<(String, String)>,
    /// Pieces of text, separated by comments.
    pub text: Vec<&'a str>,
}

impl Node<'_> {
    /// Returns the value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| n == name).map(|(_, v)| v.trim())
    }
}

/// Contents of `<galamost_xml>`.
#[derive(Debug, Default)]
pub struct Document<'a> {
    /// The element `<configuration>`, without text.
    pub configuration: Node<'a>,
    /// Its nodes, in the order of the file; names are unique.
    pub nodes: Vec<Node<'a>>,
}

impl<'a> Document<'a> {
    /// Returns the node of this name.
    pub fn node(&self, name: &str) -> Option<&Node<'a>> {
        self.nodes.iter().find(|n| n.name == name)
    }

    /// Parses the XML. Returns `None` if it is malformed or truncated, so that missing nodes cannot be reported.
    pub fn parse(report: &mut Report<'a>) -> Option<Self> {
        Parser { document: Self::default(), open: vec![], seen: Seen::default() }.run(report)
    }
}

#[derive(Default)]
struct Seen {
    root: bool,
    configuration: bool,
    /// Whether the file has another format, so that its contents are not checked.
    foreign: bool,
}

struct Parser<'a> {
    document: Document<'a>,
    /// Open elements with their offsets; contents of unknown or misplaced elements are ignored.
    open: Vec<(String, usize, Role)>,
    seen: Seen,
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Root,
    Configuration,
    Node,
    Ignored,
}

impl<'a> Parser<'a> {
    fn run(mut self, report: &mut Report<'a>) -> Option<Document<'a>> {
        let mut reader = Reader::from_str(report.text());
        loop {
            let at = reader.buffer_position() as usize;
            match reader.read_event() {
                Ok(Event::Start(e)) => self.start(&e, at, report),
                Ok(Event::Empty(e)) => {
                    self.start(&e, at, report);
                    self.open.pop();
                }
                Ok(Event::End(_)) => {
                    self.open.pop();
                }
                Ok(Event::Text(t)) => {
                    // a reader over a slice always borrows text
                    if let std::borrow::Cow::Borrowed(piece) = t.into_inner() {
                        self.text(piece, report);
                    }
                }
                Ok(Event::CData(_) | Event::GeneralRef(_) | Event::DocType(_)) => {
                    report.say(at, || "only plain elements and text are expected here".into());
                }
                Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_)) => {}
                Ok(Event::Eof) => break,
                Err(e) => {
                    let at = reader.error_position() as usize;
                    report.say(at, || self.explain(&e));
                    return None;
                }
            }
        }
        if let Some((name, at, _)) = self.open.last() {
            let line = report.place(*at).line;
            report.begin_node();
            report.say(report.text().len(), || {
                format!("the file ends inside <{name}>, which begins in line {line}; it is truncated")
            });
            return None;
        }
        if self.seen.foreign {
            return None;
        }
        if !self.seen.configuration {
            let what = if self.seen.root { "<configuration> in <galamost_xml>" } else { "<galamost_xml>" };
            report.begin_node();
            report.say(0, || format!("missing {what}"));
            return None;
        }
        Some(self.document)
    }

    /// Returns the XML library's message, with the enclosing element.
    fn explain(&self, e: &Error) -> String {
        let words = match e {
            Error::IllFormed(e) => e.to_string(),
            Error::Syntax(e) => e.to_string(),
            other => other.to_string(),
        };
        match (e, self.open.last()) {
            // this message already names the element
            (Error::IllFormed(IllFormedError::MismatchedEndTag { .. }), _) | (_, None) => words,
            (_, Some((name, ..))) => format!("{words} (inside <{name}>)"),
        }
    }

    fn start(&mut self, e: &BytesStart<'a>, at: usize, report: &mut Report<'a>) {
        report.begin_node();
        let mut node = Node { name: e.name().as_ref().into(), at, ..Node::default() };
        for a in e.attributes() {
            match a {
                Ok(a) => node.attributes.push((a.key.as_ref().into(), a.value.replace("&quot;", "\""))),
                Err(e) => report.say(at, || format!("<{}>: {e}", node.name)),
            }
        }
        let name = node.name.clone();
        let role = self.role(node, report);
        self.open.push((name, at, role));
    }

    /// Returns the role of an element according to its position.
    fn role(&mut self, node: Node<'a>, report: &mut Report<'a>) -> Role {
        let (at, name) = (node.at, node.name.clone());
        match self.open.last().map(|(_, _, role)| *role) {
            // files of HOOMD-blue 0.x, which GALAMOST also reads
            None if matches!(name.as_str(), "galamost_xml" | "hoomd_xml") && !self.seen.root => {
                self.seen.root = true;
                match node.attribute("version") {
                    Some(v) if !v.starts_with("1.") => {
                        report.say(at, || format!("unsupported {name} version {v}; this program reads versions 1.x"))
                    }
                    _ => {}
                }
                Role::Root
            }
            None if self.seen.root => {
                report.say(at, || format!("<{name}> follows the end of <galamost_xml>"));
                Role::Ignored
            }
            None if self.seen.foreign => Role::Ignored,
            None => {
                report.say(at, || format!("expected <galamost_xml>, found <{name}>"));
                self.seen.foreign = true;
                Role::Ignored
            }
            Some(Role::Root) if name == "configuration" && !self.seen.configuration => {
                self.seen.configuration = true;
                self.document.configuration = node;
                Role::Configuration
            }
            Some(Role::Root) => {
                report.say(at, || match name.as_str() {
                    "configuration" => "duplicate <configuration>; a file holds one state".into(),
                    _ => format!("<{name}> is outside <configuration>"),
                });
                Role::Ignored
            }
            Some(Role::Configuration) => self.member(node, report),
            Some(Role::Node) => {
                let parent = self.open.last().map_or("", |(n, ..)| n).to_string();
                report.say(at, || format!("<{name}> is inside <{parent}>, which may contain only text"));
                Role::Ignored
            }
            Some(Role::Ignored) => Role::Ignored,
        }
    }

    fn member(&mut self, node: Node<'a>, report: &mut Report<'a>) -> Role {
        let name = &node.name;
        if !NODES.contains(&name.as_str()) {
            report.say(node.at, || match nearest(name, NODES) {
                Some(n) => format!("unknown node <{name}>; did you mean <{n}>?"),
                None => format!("unknown node <{name}>; the nodes are {}", NODES.join(", ")),
            });
            return Role::Ignored;
        }
        if let Some(first) = self.document.node(name) {
            let line = report.place(first.at).line;
            report.say(node.at, || format!("duplicate <{name}>, first in line {line}"));
            return Role::Ignored;
        }
        self.document.nodes.push(node);
        Role::Node
    }

    fn text(&mut self, piece: &'a str, report: &mut Report<'a>) {
        match (self.open.last(), self.document.nodes.last_mut()) {
            (Some((.., Role::Node)), Some(node)) => node.text.push(piece),
            (Some((.., Role::Ignored)), _) => {}
            _ => {
                let begin = piece.trim_start();
                if !begin.is_empty() {
                    report.say(report.offset(begin), || "text outside a node".into());
                }
            }
        }
    }
}
