//! `--set path=value`: replaces values of the pipeline file before it is read.

use crate::diagnostic::counted;
use galamost_plugin_api::error::InputError;
use galamost_plugin_api::params::{Source, Value};

/// Returns the text with every override applied. Paths have the form `stages[0].dt` or `forces[0].pairs[1].a`.
///
/// # Errors
/// Returns an error for each path that does not exist.
pub fn apply(text: &str, body: Value<'_>, overrides: &[String]) -> Result<String, Vec<InputError>> {
    let mut errors = vec![];
    let mut edits: Vec<(usize, usize, String)> = vec![];
    for o in overrides {
        let Some((path, new)) = o.split_once('=') else {
            errors.push(InputError::new(format!("--set {o}: write it as path=value")));
            continue;
        };
        // an incomplete value would be reported at another place
        if let Err(e) = Source::file(new.trim()).value().check_syntax() {
            errors.push(InputError::new(format!("--set {}: {}", path.trim(), e.message)));
            continue;
        }
        match find(body, path.trim()) {
            Ok(Target::Value(v)) => edits.push((v.offset(), v.offset() + v.text().len(), new.trim().into())),
            Ok(Target::Missing(v, field)) => {
                // insert a missing field before the others
                let open = v.offset() + v.text().find('(').map_or(v.text().len(), |n| n + 1);
                edits.push((open, open, format!("{field}: {}, ", new.trim())));
            }
            Err(message) => errors.push(InputError::new(format!("--set {o}: {message}"))),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    edits.sort();
    let mut out = text.to_string();
    for (from, to, new) in edits.into_iter().rev() {
        out.replace_range(from..to, &new);
    }
    Ok(out)
}

enum Target<'a> {
    Value(Value<'a>),
    Missing(Value<'a>, String),
}

fn find<'a>(body: Value<'a>, path: &str) -> Result<Target<'a>, String> {
    let mut here = body;
    let parts: Vec<&str> = path.split('.').collect();
    for (depth, part) in parts.iter().enumerate() {
        let (name, indices) = part.split_once('[').map_or((*part, ""), |(n, i)| (n, i));
        let fields = here.entries().map_err(|e| e.message)?;
        let Some((_, value)) = fields.iter().find(|(k, _)| k.name == name) else {
            let last = depth + 1 == parts.len() && indices.is_empty();
            if last && here.text().contains('(') {
                return Ok(Target::Missing(here, name.into()));
            }
            let names: Vec<_> = fields.iter().map(|(k, _)| k.name.to_string()).collect();
            return Err(format!("there is no field `{name}`; the fields are {}", names.join(", ")));
        };
        here = *value;
        for index in indices.split('[').filter(|i| !i.is_empty()) {
            let index = index.trim_end_matches(']');
            let n: usize = index.parse().map_err(|_| format!("`{index}` is not a number"))?;
            let elements = match here.elements() {
                Ok(list) => list,
                Err(_) => here.map().map_err(|e| e.message)?.into_iter().map(|(_, v)| v).collect(),
            };
            here = *elements
                .get(n)
                .ok_or_else(|| format!("`{name}` has {}, counted from 0", counted(elements.len() as u64, "element")))?;
        }
    }
    Ok(Target::Value(here))
}

#[cfg(test)]
mod tests {
    use crate::pipeline::Pipeline;
    use std::path::Path;

    const TEXT: &str = "(seed: 1, initial: [], forces: [Dpd(r_cut: 1.0, pairs: {(\"A\", \"A\"): (a: 25.0)})], stages: [(steps: 10, dt: 0.01)])";

    fn set(overrides: &[&str]) -> Result<Pipeline, Vec<galamost_plugin_api::error::InputError>> {
        let overrides: Vec<_> = overrides.iter().map(|s| s.to_string()).collect();
        Pipeline::parse(Path::new("x.ron"), TEXT, &overrides)
    }

    #[test]
    fn values_are_replaced_and_fields_added() {
        let p = set(&["stages[0].dt=0.02", "seed = 7", "forces[0].pairs[0].a=30", "device=Cpu"]).expect("valid");
        assert_eq!((p.stages[0].dt, p.seed), (0.02, 7));
        assert_eq!(p.forces[0].text, "Dpd(r_cut: 1.0, pairs: {(\"A\", \"A\"): (a: 30)})");
        assert_eq!(p.device, crate::pipeline::DeviceChoice::Cpu);
    }

    #[test]
    fn wrong_paths_are_errors() {
        for (o, message) in
            [("stages[3].dt=1", "1 element"), ("foo.bar=1", "there is no field `foo`"), ("seed", "path=value")]
        {
            let e = set(&[o]).expect_err(o);
            assert!(e[0].message.contains(message), "{}", e[0].message);
        }
    }
}
