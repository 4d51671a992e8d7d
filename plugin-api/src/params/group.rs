//! Groups of particles as the user writes them.

use super::fields::{Fields, Range};
use super::tables::unknown_type;
use super::types::{FromValue, Spanned};
use super::value::Value;
use crate::error::{Error, Errors, InputError, Position, Result};
use crate::system::{GroupNeed, SystemInfo};

/// The particles a component acts on.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Group {
    /// Every particle.
    #[default]
    All,
    /// Particles of these types: `Types(["A", "B"])`.
    Types(Vec<Spanned<String>>),
    /// Particles with tags from first to last, both included: `Tags(first: 0, last: 99)`.
    Tags {
        /// The first tag.
        first: u32,
        /// The last tag.
        last: u32,
    },
    /// Particles of the molecules from first to last, both included, by the array `molecule` of the initial state:
    /// `Molecules(first: 0, last: 9)`.
    Molecules {
        /// The first molecule.
        first: i32,
        /// The last molecule.
        last: i32,
        /// Position in the file.
        at: Position,
    },
    /// Particles with initial position min ≤ r < max: `Box(min: [-5.0, -5.0, -5.0], max: [5.0, 5.0, 0.0])`.
    Box {
        /// Lower corner.
        min: [f64; 3],
        /// Upper corner.
        max: [f64; 3],
    },
    /// All other particles: `Not(Types(["A"]))`.
    Not(Box<Group>),
    /// Particles in all of the groups: `And([Types(["A"]), Not(Tags(first: 0, last: 9))])`.
    And(Vec<Group>),
    /// Particles in at least one of the groups: `Or([Tags(first: 0, last: 9), Tags(first: 20, last: 29)])`.
    Or(Vec<Group>),
}

impl Group {
    /// Resolves the group for [`crate::component::Needs::group`].
    ///
    /// # Errors
    /// Returns an error for unknown types, tags that do not exist, and molecules without the array `molecule`.
    pub fn need(&self, system: &SystemInfo) -> Result<GroupNeed> {
        match self {
            Self::All => Ok(GroupNeed::All),
            Self::Types(names) => {
                let mut errors = Errors::default();
                let mut types = vec![];
                for name in names {
                    match system.types.iter().position(|t| *t == name.value) {
                        Some(i) => types.push(i as u32),
                        None => errors.push(unknown_type(name.at, &name.value, "particle", &system.types)),
                    }
                }
                errors.into_result(Some(GroupNeed::Types(types)))
            }
            Self::Tags { first, last } if first > last => {
                Err(Error::input(format!("the first tag, {first}, is above the last one, {last}")))
            }
            Self::Tags { first, last } if u64::from(*last) >= system.n => Err(Error::input(format!(
                "there are no particles with tags {first} … {last}: the last tag is {}",
                system.n.saturating_sub(1)
            ))),
            Self::Tags { first, last } => Ok(GroupNeed::Tags(*first, *last)),
            Self::Molecules { at, .. } if !system.arrays.iter().any(|a| a == "molecule") => {
                Err(InputError::at(*at, "particles have no `molecule`: add it to the initial state").into())
            }
            Self::Molecules { first, last, .. } => Ok(GroupNeed::Molecules(*first, *last)),
            Self::Box { min, max } => Ok(GroupNeed::Box(*min, *max)),
            Self::Not(group) => Ok(GroupNeed::Not(Box::new(group.need(system)?))),
            Self::And(groups) => Ok(GroupNeed::And(Self::needs(groups, system)?)),
            Self::Or(groups) => Ok(GroupNeed::Or(Self::needs(groups, system)?)),
        }
    }

    /// Resolves several groups and collects the mistakes of all of them.
    fn needs(groups: &[Self], system: &SystemInfo) -> Result<Vec<GroupNeed>> {
        let mut errors = Errors::default();
        let mut needs = vec![];
        for g in groups {
            match g.need(system) {
                Ok(n) => needs.push(n),
                Err(Error::Input(list)) => list.into_iter().for_each(|e| errors.push(e)),
                Err(e) => return Err(e),
            }
        }
        errors.into_result(Some(needs))
    }

    /// Parses the single value in the parentheses after a name.
    fn inner<T: FromValue>(value: Value<'_>, errors: &mut Errors) -> Option<T> {
        let inner = value.after_name().and_then(|v| errors.absorb(v.elements())).unwrap_or_default();
        match inner.as_slice() {
            [one] => T::from_value(*one, errors),
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
}

impl FromValue for Group {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.name() {
            Some("All") => Some(Self::All),
            Some("Types") => {
                let inner = value.after_name().and_then(|v| errors.absorb(v.elements())).unwrap_or_default();
                match inner.as_slice() {
                    [list] => FromValue::from_value(*list, errors).map(Self::Types),
                    _ => {
                        errors.push(value.error("expected `Types([\"A\", …])`"));
                        None
                    }
                }
            }
            Some("Tags") => {
                let mut fields = Fields::new(value, errors)?;
                let first = fields.required("first", Range::ANY);
                let last = fields.required("last", Range::ANY);
                fields.finish();
                Some(Self::Tags { first: first?, last: last? })
            }
            Some("Molecules") => {
                let mut fields = Fields::new(value, errors)?;
                let first = fields.required("first", Range::ANY);
                let last = fields.required("last", Range::ANY);
                fields.finish();
                Some(Self::Molecules { first: first?, last: last?, at: value.at() })
            }
            Some("Box") => {
                let mut fields = Fields::new(value, errors)?;
                let min: Option<[f64; 3]> = fields.required("min", Range::ANY);
                let max: Option<[f64; 3]> = fields.required("max", Range::ANY);
                fields.finish();
                let (min, max) = (min?, max?);
                if min.iter().zip(&max).any(|(a, b)| a > b) {
                    errors.push(value.error("`min` must not exceed `max` in any component"));
                    return None;
                }
                Some(Self::Box { min, max })
            }
            Some("Not") => Self::inner(value, errors).map(|g| Self::Not(Box::new(g))),
            Some("And") => Self::inner(value, errors).map(Self::And),
            Some("Or") => Self::inner(value, errors).map(Self::Or),
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`All`, `Types([\"A\", …])`, `Tags(first: 0, last: 99)`, `Molecules(first: 0, last: 9)`, `Box(min: [x, y, z], \
         max: [x, y, z])`, `Not(group)`, `And([group, …])` or `Or([group, …])`"
            .into()
    }
}
