//! Optional per-particle arrays: their names, whether the initial state has those that are required, and their format, on which all
//! components that use an array must agree.

use super::Check;
use crate::plugins::Component;
use galamost_plugin_api::component::ArrayNeed;
use galamost_plugin_api::snapshot::{Array, KNOWN_ARRAYS, Snapshot, Values};
use std::collections::HashSet;
use std::sync::Arc;

/// Arrays that loops of the engine read, besides those of initial states: name, values per particle.
const OF_THE_ENGINE: [(&str, u32); 3] = [("torque", 3), ("angular_momentum", 3), ("virial", 6)];

/// Returns the format of an array in words.
fn format(width: u32, integer: bool) -> String {
    let what = if integer { "integer" } else { "number" };
    format!("{width} {what}{} per particle", if width == 1 { "" } else { "s" })
}

/// Adds an error for each component that uses an array in another format than the engine or a component before it, and those of
/// [`check_presence`].
pub(super) fn check(c: &mut Check<'_>, components: &[Arc<Component>], snapshot: Option<&Snapshot>) {
    check_presence(c, components, snapshot);
    let known = KNOWN_ARRAYS.iter().map(|(name, width, integer, _)| (*name, *width, *integer));
    let engine = OF_THE_ENGINE.map(|(name, width)| (name, width, false));
    let mut formats: Vec<(&str, u32, bool, &str)> =
        known.chain(engine).map(|(name, width, integer)| (name, width, integer, "")).collect();
    for component in components {
        for ArrayNeed { name, width, integer, .. } in &component.needs.arrays {
            match formats.iter().find(|f| f.0 == name) {
                Some((_, w, i, _)) if (w, i) == (width, integer) => {}
                Some((_, w, i, user)) => {
                    let (asked, has) = (format(*width, *integer), format(*w, *i));
                    let has = if user.is_empty() { format!("it has {has}") } else { format!("{user} stores {has}") };
                    let message = format!("asks for {asked} in the array `{name}`, but {has}");
                    c.error(Some(component.at), format!("{} {message}", component.name));
                }
                None => formats.push((name, *width, *integer, &component.name)),
            }
        }
    }
}

/// Adds an error for each component that requires an array which the initial state lacks, or that uses an unknown name.
fn check_presence(c: &mut Check<'_>, components: &[Arc<Component>], snapshot: Option<&Snapshot>) {
    let Some(s) = snapshot else { return };
    let known = |name: &str| {
        let listed = KNOWN_ARRAYS.iter().any(|k| k.0 == name) || OF_THE_ENGINE.iter().any(|k| k.0 == name);
        listed || name.contains('.') || s.arrays.contains_key(name)
    };
    let mut made: HashSet<&str> = HashSet::new();
    for component in components {
        for need in &component.needs.arrays {
            let ArrayNeed { name, required, .. } = need;
            if let Some(array) = s.arrays.get(name).filter(|_| !made.contains(name.as_str())) {
                let mistake = mistake_of(need, array).map(|m| format!("{}: {m}", component.name));
                mistake.into_iter().for_each(|m| c.error(Some(component.at), m));
            }
            if !known(name) {
                let message = format!(
                    "{} asks for the array `{name}`, which is neither known nor in the initial state; the name of an array of a \
                     plugin contains a dot, as `plugin.{name}`",
                    component.name
                );
                c.error(Some(component.at), message);
            } else if *required && !made.contains(name.as_str()) && !s.arrays.contains_key(name) {
                let message = format!("{}: particles have no `{name}`: add it to the initial state", component.name);
                c.error(Some(component.at), message);
            }
            made.insert(name);
        }
    }
}

/// Returns what is wrong with an array of the initial state that a component needs: another format, a value that is no number, or a
/// negative diameter.
fn mistake_of(need: &ArrayNeed, array: &Array) -> Option<String> {
    let (name, width) = (&need.name, need.width);
    let integer = matches!(array.values, Values::Int(_));
    if array.width != width || integer != need.integer {
        let (wanted, found) = (format(width, need.integer), format(array.width, integer));
        return Some(format!("needs {wanted} in the array `{name}`; the initial state has {found}"));
    }
    let Values::Real(values) = &array.values else { return None };
    let negative = |x: &f64| name == "diameter" && *x < 0.0;
    let at = values.iter().position(|x| !x.is_finite() || negative(x))?;
    let (tag, value) = (at / width.max(1) as usize, values[at]);
    let rule = if negative(&value) { "; it must be at least 0" } else { "" };
    Some(format!("particle {tag}: {name} is {value}{rule}"))
}
