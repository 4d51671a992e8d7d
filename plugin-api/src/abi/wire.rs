//! Conversions between the types that authors use and the types that cross the boundary.

use crate::abi::{RResult, RString, RVec, Wire, WireArray, WireError, WireInput, WireSnapshot};
use crate::error::{Error, InputError, Position, Result};
use crate::snapshot::{Array, Link, Snapshot, Values};
use serde::{Deserialize, Serialize};

impl From<Error> for WireError {
    fn from(e: Error) -> Self {
        let mut w =
            Self { cause: 0, tag: -1, step: 0, subject: RString::new(), message: RString::new(), inputs: RVec::new() };
        match e {
            Error::Input(list) => {
                w.cause = 1;
                w.inputs = list
                    .into_iter()
                    .map(|i| WireInput {
                        file: i.file.map(|f| f.to_string_lossy().into_owned()).unwrap_or_default().into(),
                        line: i.at.map_or(0, |p| p.line),
                        column: i.at.map_or(0, |p| p.column),
                        message: i.message.into(),
                    })
                    .collect();
            }
            Error::Unstable { step, tag, what } => {
                (w.cause, w.step, w.tag, w.message) = (2, step, tag.map_or(-1, i64::from), what.into());
            }
            Error::Plugin { path, message } => {
                (w.cause, w.subject, w.message) = (3, path.to_string_lossy().into_owned().into(), message.into());
            }
            Error::Device { what, message } => (w.cause, w.subject, w.message) = (4, what.into(), message.into()),
            Error::Io { path, message } => {
                (w.cause, w.subject, w.message) = (5, path.to_string_lossy().into_owned().into(), message.into());
            }
            Error::Panic { component, message, .. } => {
                (w.cause, w.subject, w.message) = (6, component.into(), message.into())
            }
            Error::Run(message) => w.message = message.into(),
        }
        w
    }
}

impl From<WireError> for Error {
    fn from(w: WireError) -> Self {
        let message = w.message.into_string();
        match w.cause {
            1 => Self::Input(
                w.inputs
                    .into_iter()
                    .map(|i| InputError {
                        file: (!i.file.is_empty()).then(|| i.file.as_str().into()),
                        at: (i.line > 0).then_some(Position { line: i.line, column: i.column }),
                        message: i.message.into_string(),
                    })
                    .collect(),
            ),
            2 => Self::Unstable { step: w.step, tag: u32::try_from(w.tag).ok(), what: message },
            3 => Self::Plugin { path: w.subject.as_str().into(), message },
            4 => Self::Device { what: w.subject.into_string(), message },
            5 => Self::Io { path: w.subject.as_str().into(), message },
            6 => Self::Panic { component: w.subject.into_string(), method: "", message },
            _ => Self::Run(message),
        }
    }
}

/// Converts a result for the other side.
pub fn to_wire<T, U: From<T>>(r: Result<T>) -> Wire<U> {
    match r {
        Ok(v) => RResult::ROk(v.into()),
        Err(e) => RResult::RErr(e.into()),
    }
}

/// Converts a result from the other side.
pub fn from_wire<T>(r: Wire<T>) -> Result<T> {
    match r {
        RResult::ROk(v) => Ok(v),
        RResult::RErr(e) => Err(e.into()),
    }
}

/// Serializes a value as RON.
pub(crate) fn to_ron<T: Serialize>(value: &T) -> String {
    ron::to_string(value).expect("plain data can be written as RON")
}

/// Parses a value from RON of the other side.
pub(crate) fn from_ron<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T> {
    ron::from_str(text)
        .map_err(|e| Error::Run(format!("invalid data from the other side of the plugin boundary: `{text}`: {e}")))
}

fn names_out(names: Vec<String>) -> RVec<RString> {
    names.into_iter().map(RString::from).collect()
}

fn names_in(names: RVec<RString>) -> Vec<String> {
    names.into_iter().map(RString::into_string).collect()
}

macro_rules! links {
    ($out:ident, $in:ident, $n:literal, $words:literal) => {
        fn $out(links: Vec<Link<$n>>) -> RVec<[u32; $words]> {
            links
                .into_iter()
                .map(|l| {
                    let mut words = [l.kind; $words];
                    words[1..].copy_from_slice(&l.tags);
                    words
                })
                .collect()
        }
        fn $in(links: RVec<[u32; $words]>) -> Vec<Link<$n>> {
            links.into_iter().map(|w| Link { kind: w[0], tags: std::array::from_fn(|k| w[k + 1]) }).collect()
        }
    };
}
links!(bonds_out, bonds_in, 2, 3);
links!(angles_out, angles_in, 3, 4);
links!(quadruples_out, quadruples_in, 4, 5);

impl From<Snapshot> for WireSnapshot {
    fn from(s: Snapshot) -> Self {
        let arrays = s
            .arrays
            .into_iter()
            .map(|(name, a)| {
                let (reals, ints) = match a.values {
                    Values::Real(v) => (v.into(), RVec::new()),
                    Values::Int(v) => (RVec::new(), v.into()),
                };
                WireArray { name: name.into(), width: a.width, reals, ints }
            })
            .collect();
        Self {
            step: s.step,
            dimensions: s.dimensions,
            box_length: s.box_length,
            tilt: s.tilt,
            types: names_out(s.types),
            position: s.position,
            image: s.image,
            velocity: s.velocity,
            type_id: s.type_id,
            mass: s.mass,
            arrays,
            bond_types: names_out(s.bond_types),
            bonds: bonds_out(s.bonds),
            angle_types: names_out(s.angle_types),
            angles: angles_out(s.angles),
            dihedral_types: names_out(s.dihedral_types),
            dihedrals: quadruples_out(s.dihedrals),
            improper_types: names_out(s.improper_types),
            impropers: quadruples_out(s.impropers),
        }
    }
}

impl From<WireSnapshot> for Snapshot {
    fn from(w: WireSnapshot) -> Self {
        let arrays = w
            .arrays
            .into_iter()
            .map(|a| {
                let values = if a.reals.is_empty() && !a.ints.is_empty() {
                    Values::Int(a.ints.into_vec())
                } else {
                    Values::Real(a.reals.into_vec())
                };
                (a.name.into_string(), Array { width: a.width, values })
            })
            .collect();
        Self {
            step: w.step,
            dimensions: w.dimensions,
            box_length: w.box_length,
            tilt: w.tilt,
            types: names_in(w.types),
            position: w.position,
            image: w.image,
            velocity: w.velocity,
            type_id: w.type_id,
            mass: w.mass,
            arrays,
            bond_types: names_in(w.bond_types),
            bonds: bonds_in(w.bonds),
            angle_types: names_in(w.angle_types),
            angles: angles_in(w.angles),
            dihedral_types: names_in(w.dihedral_types),
            dihedrals: quadruples_in(w.dihedrals),
            improper_types: names_in(w.improper_types),
            impropers: quadruples_in(w.impropers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_and_errors_survive_the_crossing() {
        let mut s = Snapshot {
            dimensions: 3,
            box_length: [1.0, 2.0, 3.0],
            tilt: [0.1, 0.2, 0.3],
            step: 7,
            ..Snapshot::default()
        };
        let a = s.type_id("A");
        s.push(a, [0.1, 0.2, 0.3]);
        s.push(a, [0.2, 0.2, 0.3]);
        s.bond_types.push("A-A".into());
        s.bonds.push(Link { kind: 0, tags: [0, 1] });
        s.improper_types.push("I".into());
        s.impropers.push(Link { kind: 0, tags: [0, 3, 1, 2] });
        s.arrays.insert("h_init".into(), Array { width: 1, values: Values::Int(vec![1, 0]) });
        assert_eq!(Snapshot::from(WireSnapshot::from(s.clone())), s);

        let errors = [
            Error::Input(vec![InputError::at(Position { line: 3, column: 9 }, "wrong"), InputError::new("also")]),
            Error::Unstable { step: 12, tag: Some(4), what: "lost".into() },
            Error::Panic { component: "X".into(), method: "", message: "boom".into() },
            Error::Run("other".into()),
        ];
        for e in errors {
            let back = Error::from(WireError::from(e.clone()));
            assert_eq!(format!("{back:?}"), format!("{e:?}"));
        }
    }
}
