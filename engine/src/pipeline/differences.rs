//! Differences between two values of pipelines.

use galamost_plugin_api::params::Value;

/// Compares the values at `path` of a component or stage, down to the smallest parts that differ. Each of these is described with both
/// values: `kT of NoseHoover 1.0 → 1.2`.
pub(crate) fn differences(path: &str, owner: &str, then: Option<Value<'_>>, now: Option<Value<'_>>) -> Vec<String> {
    if let (Some(then), Some(now)) = (then, now) {
        if same(then, now) {
            return vec![];
        }
        if let Some(parts) = parts(then, now) {
            let below = |(part, then, now): (String, Option<Value<'_>>, Option<Value<'_>>)| {
                let path = format!("{path}{part}");
                differences(path.trim_start_matches('.'), owner, then, now)
            };
            return parts.into_iter().flat_map(below).collect();
        }
    }
    let [then, now] = [then, now].map(|v| v.map_or_else(|| "absent".into(), short));
    let of = if path.is_empty() || owner.is_empty() { "" } else { " of " };
    vec![format!("{path}{of}{owner} {then} → {now}")]
}

/// Values of the same name or index.
type Pairs<'a> = Vec<(String, Option<Value<'a>>, Option<Value<'a>>)>;

/// Joins named values of both sides, in the order of the first and then of the second.
fn join<'a>(then: Vec<(String, Value<'a>)>, now: Vec<(String, Value<'a>)>) -> Pairs<'a> {
    let mut pairs: Pairs<'a> = then.into_iter().map(|(name, v)| (name, Some(v), None)).collect();
    let mut places: std::collections::BTreeMap<String, usize> =
        pairs.iter().enumerate().map(|(k, (name, ..))| (name.clone(), k)).collect();
    for (name, v) in now {
        match places.get(&name) {
            Some(k) => pairs[*k].2 = Some(v),
            None => {
                places.insert(name.clone(), pairs.len());
                pairs.push((name, None, Some(v)));
            }
        }
    }
    pairs
}

/// Joins the named fields of two values.
pub(crate) fn fields<'a>(then: Option<Value<'a>>, now: Option<Value<'a>>) -> Pairs<'a> {
    let all = |v: Option<Value<'a>>| {
        let entries = v.and_then(|v| v.entries().ok()).unwrap_or_default();
        entries.into_iter().map(|(key, v)| (key.name.into_owned(), v)).collect()
    };
    join(all(then), all(now))
}

/// Joins the elements of two lists.
pub(crate) fn elements<'a>(then: Option<Value<'a>>, now: Option<Value<'a>>) -> Pairs<'a> {
    let all = |v: Option<Value<'a>>| {
        let elements = v.and_then(|v| v.elements().ok()).unwrap_or_default();
        elements.into_iter().enumerate().map(|(k, v)| (format!("[{k}]"), v)).collect()
    };
    join(all(then), all(now))
}

fn entries_of_map<'a>(then: Value<'a>, now: Value<'a>) -> Option<Pairs<'a>> {
    let all = |v: Value<'a>| {
        let entries = v.map().ok()?;
        Some(entries.into_iter().map(|(key, v)| (format!("[{}]", plain(key.text())), v)).collect())
    };
    Some(join(all(then)?, all(now)?))
}

/// Splits two values of the same form into their parts; `None` for a single value or for different forms.
fn parts<'a>(then: Value<'a>, now: Value<'a>) -> Option<Pairs<'a>> {
    if then.name() != now.name() {
        return None;
    }
    let inner = |v: Value<'a>| if v.name().is_some() { v.after_name() } else { Some(v) };
    let (then, now) = (inner(then)?, inner(now)?);
    match (then.text().chars().next()?, now.text().chars().next()?) {
        ('{', '{') => entries_of_map(then, now),
        ('(', '(') if then.entries().is_ok() && now.entries().is_ok() => {
            let named = fields(Some(then), Some(now)).into_iter();
            Some(named.map(|(name, then, now)| (format!(".{name}"), then, now)).collect())
        }
        ('(', '(') | ('[', '[') => {
            let lengths = (then.elements().ok()?.len(), now.elements().ok()?.len());
            let mut pairs = elements(Some(then), Some(now));
            if lengths == (1, 1) && then.text().starts_with('(') {
                // the value of a variant, as in `Types([…])`
                pairs[0].0.clear();
            }
            Some(pairs)
        }
        _ => None,
    }
}

/// Returns whether two values are equal: as numbers, or as texts without their layout.
fn same(then: Value<'_>, now: Value<'_>) -> bool {
    let number = |v: Value<'_>| v.parse::<f64>().ok();
    then.text() == now.text()
        || number(then).is_some_and(|x| number(now) == Some(x))
        || plain(then.text()) == plain(now.text())
}

/// Returns a text on one line.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a value for a message.
pub(crate) fn short(value: Value<'_>) -> String {
    let text = plain(value.text());
    match text.char_indices().nth(60) {
        Some((n, _)) => format!("{}…", &text[..n]),
        None => text,
    }
}
