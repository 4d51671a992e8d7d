//! Records that apply to all frames of a file: box, bonds, remark of this program.

use crate::pdb::columns::{ascii, columns, field, known, number, real, record};
use galamost_plugin_api::error::InputError;
use galamost_text::{Lines, Result, Shape};

/// Two serial numbers that a CONECT record joins, and the error to report if an atom is missing.
#[derive(Clone, Debug)]
pub struct Join {
    pub serials: [i64; 2],
    pub error: InputError,
}

/// Contents of a remark of this program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Remark {
    pub step: u64,
    pub scale: f64,
}

/// The box, or the error to report if it is needed.
pub type Crystal = Result<Shape>;

/// Defaults for every frame.
#[derive(Clone, Debug, Default)]
pub struct Common {
    /// The box.
    pub crystal: Option<Crystal>,
    pub joins: Vec<Join>,
    pub remark: Option<Remark>,
    /// Whether the file has MODEL records: bonds outside of them apply to all models.
    pub models: bool,
}

impl Common {
    /// Scans a file.
    pub fn of(l: &mut Lines) -> Result<Self> {
        let (mut common, mut inside) = (Self::default(), false);
        while l.next()? {
            // the last line of a killed run may be incomplete
            known(l).or_else(|e| if l.ended().is_ok() { Err(e) } else { Ok(()) })?;
            match record(l.line()) {
                "MODEL" => (common.models, inside) = (true, true),
                "ENDMDL" => inside = false,
                "CONECT" if !inside => common.joins.extend(conect(l)?),
                "CRYST1" if common.crystal.is_none() => common.crystal = cryst1(l).transpose(),
                "REMARK" if common.remark.is_none() => common.remark = remark(l)?,
                _ => {}
            }
        }
        if !common.models {
            // bonds belong to the frame that contains them
            common.joins.clear();
        }
        Ok(common)
    }
}

/// Parses a remark of this program: `REMARK   6 GALAMOST STEP 500 SCALE 1.0`.
pub fn remark(l: &Lines) -> Result<Option<Remark>> {
    let words: Vec<&str> = l.words().collect();
    let ["REMARK", "6", "GALAMOST", "STEP", step, "SCALE", scale] = words[..] else { return Ok(None) };
    let remark = Remark { step: l.whole(step)?, scale: l.real(scale)? };
    if remark.scale <= 0.0 {
        return Err(l.wrong_at(scale, "the scale must be positive"));
    }
    Ok(Some(remark))
}

/// Parses the box of a CRYST1 record; returns `None` for the placeholder of 1 Å, which means no crystal.
pub fn cryst1(l: &Lines) -> Result<Option<Shape>> {
    ascii(l)?;
    let mut angles = [0.0; 3];
    for (angle, (name, first, last)) in angles.iter_mut().zip([("α", 34, 40), ("β", 41, 47), ("γ", 48, 54)]) {
        *angle = real(l, first, last, name)?;
    }
    let mut length = [0.0; 3];
    for (x, (name, first, last)) in length.iter_mut().zip([("a", 7, 15), ("b", 16, 24), ("c", 25, 33)]) {
        *x = real(l, first, last, name)?;
        if *x <= 0.0 {
            return Err(l.wrong_at(field(l, first, last, name)?, format!("{name} = {x}; box lengths must be positive")));
        }
    }
    if length == [1.0; 3] {
        return Ok(None);
    }
    let none = || {
        let [alpha, beta, gamma] = angles;
        l.wrong(format!("no box has the angles {alpha}°, {beta}°, {gamma}°"))
    };
    Shape::of_angles(length, angles).map(Some).ok_or_else(none)
}

/// Parses a CONECT record.
pub fn conect(l: &Lines) -> Result<Vec<Join>> {
    ascii(l)?;
    // a truncated number would be a different one
    l.ended()?;
    let serial = |text: &str| {
        number(text, 5)
            .ok_or_else(|| l.wrong_at(text, format!("expected the serial number of an atom, found `{text}`")))
    };
    let first = serial(field(l, 7, 11, "the serial number of an atom")?)?;
    let mut joins = vec![];
    for k in 0..4 {
        let text = columns(l.line(), 12 + 5 * k, 16 + 5 * k);
        if !text.is_empty() {
            let other = serial(text)?;
            let error = l.wrong_at(text, format!("cannot join {first} and {other}"));
            joins.push(Join { serials: [first, other], error });
        }
    }
    Ok(joins)
}
