//! Names of types: lists of them, and type numbers in formats that identify types by name.

use galamost_plugin_api::component::SystemInfo;
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::snapshot::Link;
use galamost_text::Lines;
use std::collections::HashSet;

/// Different type names, in the order of their numbers: a parameter of readers.
#[derive(Clone, Debug, Default)]
pub struct TypeNames(pub Vec<String>);

impl From<Vec<String>> for TypeNames {
    fn from(names: Vec<String>) -> Self {
        Self(names)
    }
}

impl FromValue for TypeNames {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let names = Vec::<String>::from_value(value, errors)?;
        let elements = errors.absorb(value.elements())?;
        let repeated = repetition(&names);
        if let Some(k) = repeated {
            errors.push(elements[k].error(format!("the type {} is listed twice; list each type once", names[k])));
        }
        repeated.is_none().then_some(Self(names))
    }
    fn describe() -> String {
        Vec::<String>::describe()
    }
}

/// Returns the system without the names of link types, for formats that only write those of particle types.
pub fn of_particles(system: &SystemInfo) -> SystemInfo {
    let (bond_types, angle_types, dihedral_types, improper_types) = (vec![], vec![], vec![], vec![]);
    SystemInfo { bond_types, angle_types, dihedral_types, improper_types, ..system.clone() }
}

/// Returns the index of the first name that has occurred before.
pub fn repetition<T: AsRef<str>>(names: &[T]) -> Option<usize> {
    let mut seen = HashSet::new();
    names.iter().position(|name| !seen.insert(name.as_ref()))
}

/// Returns all type names if a reader that numbers them in order of their first use would number them differently.
/// `used` are the types of the rows in the file.
pub fn list(names: &[String], used: impl Iterator<Item = u32>) -> Option<&[String]> {
    let mut next = 0;
    for kind in used {
        if kind > next {
            return Some(names);
        }
        next += u32::from(kind == next);
    }
    ((next as usize) < names.len()).then_some(names)
}

/// Like [`list`], for bonds, angles or dihedrals.
pub fn of_links<'a, const N: usize>(names: &'a [String], links: &[Link<N>]) -> Option<&'a [String]> {
    list(names, links.iter().map(|l| l.kind))
}

/// Records a warning if the parameter `masses` of a reader lists more than the known types.
pub fn warn_of_masses(l: &Lines, masses: &[f64], known: usize) {
    if masses.len() > known {
        l.warn(format!(
            "`masses` lists {} types, but there are {known}: the other masses have no effect; list all types in `types` to have \
             them in the run",
            masses.len()
        ));
    }
}

/// Joins names of columns: `fx`, `fx and fy`, `fx, fy and fz`.
pub fn joined(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).into(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_names_are_found() {
        assert_eq!((repetition(&["A", "B", "A", "B"]), repetition(&["A", "B"])), (Some(2), None));
    }

    #[test]
    fn a_list_is_only_written_where_the_order_would_be_lost() {
        let names = ["A", "B", "C"].map(String::from);
        let needs = |used: &[u32]| list(&names, used.iter().copied()).is_some();
        assert!(!needs(&[0, 0, 1, 0, 2, 1]));
        assert!(needs(&[1, 0, 2]) && needs(&[0, 2, 1]) && needs(&[0, 1]) && needs(&[]));
        assert!(list(&[], [].into_iter()).is_none());
        assert_eq!(["", "a", "a and b", "a, b and c"], [&[][..], &["a"], &["a", "b"], &["a", "b", "c"]].map(joined));
    }
}
