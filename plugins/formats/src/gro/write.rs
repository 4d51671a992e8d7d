//! Formats a frame.

use crate::positions::at_corner;
use galamost_plugin_api::prelude::{Snapshot, Values};
use galamost_text::Shape;
use std::fmt::Write as _;

/// Options of the analyzer.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    pub unwrapped: bool,
    pub velocity: bool,
    /// Decimals of positions; velocities have one more.
    pub digits: usize,
}

/// Numbers of residues and atoms have five columns, and begin anew after the last.
const NUMBERS: i64 = 100_000;

/// Formats a frame.
///
/// # Errors
/// Returns an error that names the particle if a number does not fit its columns.
pub fn frame(s: &Snapshot, options: WriteOptions) -> Result<Vec<u8>, String> {
    let molecule = match s.arrays.get("molecule").map(|a| &a.values) {
        Some(Values::Int(v)) => v.as_slice(),
        _ => &[],
    };
    // numbers of residues are those of molecules if all of them fit
    let whole = !molecule.is_empty() && molecule.iter().all(|m| (-1..NUMBERS - 1).contains(&i64::from(*m)));
    let mut out = format!("GALAMOST step= {}{}\n{:5}\n", s.step, if whole { " molecules" } else { "" }, s.len());
    let width = options.digits + 5;
    let shape = Shape::of(s).finite();
    for tag in 0..s.len() {
        let residue = molecule.get(tag).map_or(tag as i64 + 1, |m| i64::from(*m) + 1);
        let name = s.types.get(s.type_id[tag] as usize).map_or("", String::as_str);
        let _ = write!(out, "{:5}{:<5}{name:>5}{:5}", residue.rem_euclid(NUMBERS), "MOL", (tag as i64 + 1) % NUMBERS);
        let mut number = |what: &str, axis: usize, x: f64, digits: usize| {
            let text = format!("{x:width$.digits$}");
            if text.len() != width || !x.is_finite() {
                let name = ["x", "y", "z"][axis];
                return Err(format!(
                    "{what} {name} = {x} of the particle with tag {tag} does not fit the columns of a GRO file"
                ));
            }
            out += &text;
            Ok(())
        };
        let image = if options.unwrapped { s.image[tag] } else { [0; 3] };
        for (k, x) in at_corner(&shape, s.position[tag], image).into_iter().enumerate() {
            number("position", k, x, options.digits)?;
        }
        for k in (0..3).filter(|_| options.velocity) {
            number("velocity", k, s.velocity[tag][k], options.digits + 1)?;
        }
        out.push('\n');
    }
    let [[a, ..], [xy, b, _], [xz, yz, c]] = shape.edges();
    let tilts = [0.0, 0.0, xy, 0.0, xz, yz];
    let all = [a, b, c].into_iter().chain(tilts.into_iter().filter(|_| shape.is_tilted()));
    // at least the five decimals of GROMACS, and all that are needed for the same number
    let digits = all.clone().map(|x| format!("{x}").split_once('.').map_or(0, |(_, d)| d.len())).max();
    let digits = digits.unwrap_or(0).clamp(5, 15);
    all.for_each(|x| _ = write!(out, " {x:.digits$}"));
    out.push('\n');
    Ok(out.into_bytes())
}
