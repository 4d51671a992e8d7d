//! Reader of the GALAMOST blocks `Patches` and `PatchParams`.

use crate::patches::{Attraction, Layout, Patch};
use galamost_plugin_api::error::{InputError, Position};
use galamost_plugin_api::input;
use std::path::Path;

/// Reads a file.
///
/// # Errors
/// Returns an error with the line if the file cannot be read or parsed.
pub fn read(path: &Path) -> Result<Layout, InputError> {
    let text = input::text(path)?;
    parse(&text)
        .map_err(|(line, message)| InputError::in_file(path, Some(Position { line: line as u32, column: 1 }), message))
}

/// Parses exactly `N` numbers; `names` describes the expected line.
fn numbers<const N: usize>(words: &[&str], names: &str) -> Result<[f64; N], String> {
    if words.len() != N {
        return Err(format!("expected {names}"));
    }
    let mut out = [0.0; N];
    for (slot, word) in out.iter_mut().zip(words) {
        *slot = word.parse().ok().filter(|x: &f64| x.is_finite()).ok_or(format!("`{word}` is not a number"))?;
    }
    Ok(out)
}

/// The block that contains the current line.
enum Block {
    None,
    /// `Patches`, with the number of patches remaining for the current type.
    Patches(usize),
    Attraction,
}

/// Parses a text; an error carries its line number.
fn parse(text: &str) -> Result<Layout, (usize, String)> {
    let mut layout = Layout::default();
    let mut block = Block::None;
    for (k, line) in text.lines().enumerate() {
        let wrong = |message: String| (k + 1, message);
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let Some(first) = words.first() else { continue };
        block = match (block, *first) {
            (Block::None, "<Patches>") => Block::Patches(0),
            (Block::None, "<PatchParams>") => Block::Attraction,
            // complete state files contain further blocks
            (Block::None, _) => Block::None,
            (Block::Patches(0), "</Patches>") | (Block::Attraction, "</PatchParams>") => Block::None,
            (Block::Patches(left), tag) if tag.starts_with('<') => {
                return Err(wrong(format!("{left} more patches expected before {tag}")));
            }
            (Block::Patches(0), type_name) => {
                let [count] =
                    numbers::<1>(&words[1..], "a particle type and the number of its patches").map_err(wrong)?;
                if count < 0.0 || count.fract() != 0.0 || count > 1000.0 {
                    return Err(wrong(format!("`{count}` is not a number of patches")));
                }
                if layout.patches.iter().any(|(name, _)| name == type_name) {
                    return Err(wrong(format!("particle type {type_name} is listed twice; remove one")));
                }
                layout.patches.push((type_name.into(), vec![]));
                Block::Patches(count as usize)
            }
            (Block::Patches(left), name) => {
                let [beta_deg, x, y, z] =
                    numbers::<4>(&words[1..], "a patch type, beta in degrees and a direction x y z").map_err(wrong)?;
                if !(beta_deg > 0.0 && beta_deg <= 180.0) {
                    return Err(wrong(format!("beta {beta_deg} must be above 0 and at most 180 degrees")));
                }
                let patch = Patch { name: name.into(), beta_deg, direction: [x, y, z] };
                layout.patches.last_mut().expect("a type precedes its patches").1.push(patch);
                Block::Patches(left - 1)
            }
            (Block::Attraction, a) => {
                let names = "two patch types, alpha_A and nu";
                let [alpha_a, nu] = numbers::<2>(words.get(2..).unwrap_or_default(), names).map_err(wrong)?;
                if alpha_a < 0.0 || nu <= 0.0 || nu > 16.0 {
                    return Err(wrong(format!("alpha_A {alpha_a} must be at least 0, nu {nu} above 0 and at most 16")));
                }
                let b = words[1];
                if layout.attraction.iter().any(|([x, y], _)| (x == a && y == b) || (x == b && y == a)) {
                    return Err(wrong(format!("the patch types ({a}, {b}) are listed twice; remove one")));
                }
                layout.attraction.push(([a.into(), b.into()], Attraction { alpha_a, nu }));
                Block::Attraction
            }
        };
    }
    match block {
        Block::None if layout.patches.is_empty() => {
            Err((text.lines().count().max(1), "the file has no block <Patches>".into()))
        }
        Block::None => Ok(layout),
        _ => Err((text.lines().count().max(1), "the file ends inside a block".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "<Patches>\nA 0   # no patch\nB 2\np1 45 0 0 1\np2 60 0.866025 0 -0.5\n</Patches>\n<PatchParams>\n\
                        p1 p1 220.0 0.5\np1 p2 100 2\np2 p2 0 1\n</PatchParams>\n";

    #[test]
    fn blocks_are_read() {
        let layout = parse(FILE).expect("a layout");
        assert_eq!(layout.patches[0], ("A".into(), vec![]));
        assert_eq!(
            layout.patches[1].1[1],
            Patch { name: "p2".into(), beta_deg: 60.0, direction: [0.866025, 0.0, -0.5] }
        );
        assert_eq!(layout.attraction[1], (["p1".into(), "p2".into()], Attraction { alpha_a: 100.0, nu: 2.0 }));
        let inside = format!(
            "<?xml version=\"1.0\"?>\n<galamost_xml version=\"1.3\">\n<configuration time_step=\"0\">\n\
             <box lx=\"1\"/>\n<type num=\"1\">\nA\n</type>\n{FILE}</configuration>\n</galamost_xml>\n"
        );
        assert_eq!(parse(&inside).expect("a layout"), layout);
    }

    #[test]
    fn errors_carry_their_line() {
        let wrong = |from: &str, to: &str| parse(&FILE.replacen(from, to, 1)).expect_err("an error");
        assert_eq!(wrong("B 2", "B 3"), (6, "1 more patches expected before </Patches>".into()));
        assert_eq!(
            wrong("45 0 0 1", "45 0 0"),
            (4, "expected a patch type, beta in degrees and a direction x y z".into())
        );
        assert_eq!(wrong("45 0", "400 0"), (4, "beta 400 must be above 0 and at most 180 degrees".into()));
        assert_eq!(wrong("220.0", "x"), (8, "`x` is not a number".into()));
        assert_eq!(wrong("p1 p1 220.0 0.5", "p1"), (8, "expected two patch types, alpha_A and nu".into()));
        assert_eq!(wrong("</PatchParams>\n", ""), (10, "the file ends inside a block".into()));
        assert_eq!(wrong("B 2", "B 0\nB 2"), (4, "particle type B is listed twice; remove one".into()));
        assert_eq!(
            wrong("p2 p2 0 1", "p2 p2 0 1\np2 p1 50 2"),
            (11, "the patch types (p2, p1) are listed twice; remove one".into())
        );
        assert_eq!(parse("").expect_err("empty"), (1, "the file has no block <Patches>".into()));
    }
}
