//! Virtual sites as rows of `Sites`.

use crate::forcefield::word;
use crate::interactions::{atom, atoms};
use crate::source::{At, Line, Source};
use crate::topology::Molecule;
use galamost_plugin_api::error::InputError;

type Result<T> = std::result::Result<T, InputError>;

/// The largest number of particles that construct a site.
const MOST: usize = 8;

/// A virtual site of a molecule.
#[derive(Clone, Debug)]
pub struct Site {
    pub site: u32,
    pub from: Vec<u32>,
    /// The field `kind` of `Sites`.
    pub kind: String,
    pub at: At,
}

/// Reads a row of `[ virtual_sites1 ]` … `[ virtual_sites4 ]`, or of `[ virtual_sitesn ]` for `n` = 0.
///
/// # Errors
/// Returns an error if the row is invalid or no construction of `Sites` is the same.
pub fn site(n: usize, line: &Line, molecule: &Molecule, source: &Source) -> Result<Site> {
    if n == 0 {
        return mean(line, molecule, source);
    }
    let all = atoms(line, n + 1, molecule, source)?;
    let function = word(line, n + 1, "the function", source)?;
    let forms: &[(&str, &[&str])] = match n {
        1 => &[("Center", &[])],
        2 => &[("Two", &["a"]), ("TwoFd", &["d"])],
        3 => &[
            ("Three", &["a", "b"]),
            ("ThreeFd", &["a", "d"]),
            ("ThreeFad", &["theta_deg", "d"]),
            ("ThreeOut", &["a", "b", "c"]),
        ],
        _ => &[("", &[]), ("FourFdn", &["a", "b", "c"])],
    };
    let form = (function.whole(source)? as usize).checked_sub(1).and_then(|k| forms.get(k)).filter(|f| !f.0.is_empty());
    let Some((name, fields)) = form else {
        let message = format!("function {} of [ virtual_sites{n} ] is not supported", function.text);
        return Err(source.error(function.at, message));
    };
    let mut values = vec![];
    for (k, field) in fields.iter().enumerate() {
        values.push(format!("{field}: {:?}", word(line, n + 2 + k, "all parameters", source)?.real(source)?));
    }
    if let Some(extra) = line.words.get(n + 2 + fields.len()) {
        return Err(
            source.error(extra.at, format!("unexpected `{}`: {name} has {} parameters", extra.text, fields.len()))
        );
    }
    let kind = if values.is_empty() { name.to_string() } else { format!("{name}({})", values.join(", ")) };
    Ok(Site { site: all[0], from: all[1..].into(), kind, at: line.at })
}

/// Reads a row of `[ virtual_sitesn ]`: site, function, particles or pairs of particle and weight.
fn mean(line: &Line, molecule: &Molecule, source: &Source) -> Result<Site> {
    let site = atom(&line.words[0], molecule, source)?;
    let function = word(line, 1, "the function", source)?;
    let rest = &line.words[2..];
    let mut from = vec![];
    let mut weights = vec![];
    let step = if function.text == "3" { 2 } else { 1 };
    for words in rest.chunks(step) {
        let next = atom(&words[0], molecule, source)?;
        if next == site || from.contains(&next) {
            return Err(source.error(words[0].at, format!("atom {} is here twice", words[0].text)));
        }
        from.push(next);
        if step == 2 {
            let weight = words.get(1).ok_or_else(|| source.error(line.at, "each atom needs a weight after it"))?;
            weights.push(format!("{:?}", weight.real(source)?));
        }
    }
    if from.is_empty() || from.len() > MOST {
        let message = format!("{} atoms construct this site; from 1 to {MOST} are supported", from.len());
        return Err(source.error(line.at, message));
    }
    let kind = match function.text.as_str() {
        "1" => "Center".to_string(),
        "2" => "CenterOfMass".to_string(),
        "3" => format!("Weights(w: [{}])", weights.join(", ")),
        other => {
            let message = format!("function {other} of [ virtual_sitesn ] is not supported; the functions are 1, 2, 3");
            return Err(source.error(function.at, message));
        }
    };
    Ok(Site { site, from, kind, at: line.at })
}
