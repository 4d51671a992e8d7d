//! Optional per-particle arrays: their names, whether the initial state has those that are required, and their format, on which all
//! components that use an array must agree.

use super::Check;
use crate::plugins::Component;
use galamost_plugin_api::component::ArrayNeed;
use galamost_plugin_api::error::Position;
use galamost_plugin_api::precision::Precision;
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
/// [`check_presence`] and [`check_rotation`].
pub(super) fn check(
    c: &mut Check<'_>,
    components: &[Arc<Component>],
    snapshot: Option<&Snapshot>,
    last_generator: Option<Position>,
) {
    check_presence(c, components, snapshot);
    if let Some(s) = snapshot {
        check_rotation(c, components, s, last_generator);
    }
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

/// Adds an error if moments of inertia or angular momenta L of the initial state are out of the range of single precision.
///
/// Moments I and their reciprocals must be normal numbers of f32. Thermostats of rotation use squares of L, whose mean is kT I for each
/// axis. These squares must be 2²⁴ times the smallest normal number, below which devices round to 0: then that rounding changes them by
/// less than 2⁻²⁴. The largest number has a margin of 16 for squares above their mean.
fn check_rotation(c: &mut Check<'_>, components: &[Arc<Component>], s: &Snapshot, last_generator: Option<Position>) {
    let turning = || components.iter().filter(|k| k.needs.arrays.iter().any(|a| a.name == "angular_momentum"));
    if c.pipeline.precision == Precision::Double || turning().next().is_none() {
        return;
    }
    let smallest = f64::from(f32::MIN_POSITIVE);
    let (least, most) = (smallest * 2f64.powi(24), f64::from(f32::MAX) / 16.0);
    let advice = format!(
        "out of range in {} precision; use units in which masses, lengths and energies are nearer to 1, or `precision: Double`",
        c.pipeline.precision.name()
    );
    let rows = |name: &str| match s.arrays.get(name) {
        Some(Array { width: 3, values: Values::Real(v) }) => v.as_chunks::<3>().0,
        _ => &[],
    };
    let (moments, momenta) = (rows("inert"), rows("angular_momentum"));
    let end = c.pipeline.stages.iter().fold(s.step, |sum, stage| sum.saturating_add(stage.steps));
    // thermostats that scale momenta sum their squares from the first step on
    let initial = if turning().any(|k| k.needs.rescales) { initial_kt(s, moments, momenta) } else { 0.0 };
    let highest = turning().filter_map(|k| k.needs.kt).map(|kt| kt.at(s.step).max(kt.at(end))).fold(initial, f64::max);
    let wrong = |i: f64| {
        let mean = highest * i;
        if !(smallest..=smallest.recip()).contains(&i) {
            Some(format!("the moment of inertia {i:.1e} is {advice}"))
        } else if mean > 0.0 && !(least..=most).contains(&mean) {
            Some(format!(
                "the moment of inertia {i:.1e} at kT {highest:.1e} has squares of angular momenta, {mean:.1e}, {advice}"
            ))
        } else {
            None
        }
    };
    let mut all = moments.as_flattened().iter().enumerate().filter(|(_, i)| **i > 0.0);
    if let Some((tag, message)) = all.find_map(|(n, i)| Some((n / 3, wrong(*i)?))) {
        c.error(last_generator, format!("particle {tag}: {message}"));
        return;
    }
    let turned = momenta.iter().zip(moments).map(|(l, i)| (square(l), i.iter().any(|i| *i > 0.0)));
    let largest = turned.enumerate().filter(|(_, (_, turns))| *turns).max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0));
    if let Some((tag, (l2, _))) = largest.filter(|(_, (l2, _))| *l2 > most) {
        let message =
            format!("particle {tag}: the largest angular momentum, {:.1e}, has a square that is {advice}", l2.sqrt());
        c.error(last_generator, message);
    }
}

/// Returns kT of the initial state: of translation, Σ m v²/3n, or of rotation, Σ L²/Σ I, whichever is larger.
fn initial_kt(s: &Snapshot, moments: &[[f64; 3]], momenta: &[[f64; 3]]) -> f64 {
    let massive = s.mass.iter().filter(|m| **m > 0.0).count();
    let translation: f64 = s.mass.iter().zip(&s.velocity).map(|(m, v)| m * square(v)).sum();
    let rotation: f64 = momenta.iter().map(square).sum();
    let inertia: f64 = moments.as_flattened().iter().sum();
    let mean = |sum: f64, n: f64| if n > 0.0 { sum / n } else { 0.0 };
    mean(translation, 3.0 * massive as f64).max(mean(rotation, inertia))
}

/// Returns the square of a vector.
fn square(l: &[f64; 3]) -> f64 {
    l.iter().map(|x| x * x).sum()
}
