//! The section `Atoms`: its layout and its rows.

use crate::lammps_data::header::content;
use crate::lammps_data::read::{File, row};
use crate::lammps_data::style::{Field, Layout, Style, Styles};
use crate::names::joined;
use galamost_text::{Lines, Result};

/// An atom in the file.
pub struct Atom {
    pub id: u64,
    pub kind: u32,
    pub position: [f64; 3],
    pub image: [i32; 3],
    pub molecule: i32,
    pub charge: f64,
    pub diameter: f64,
    /// Density, or the mass of a point.
    pub density: f64,
    pub ellipsoid: bool,
    pub dipole: [f64; 3],
}

/// Returns the layout of the rows: as chosen, as the comment after `Atoms` says, or as the columns tell.
pub fn layout(file: &File, l: &mut Lines, chosen: Option<&Styles>, comment: Option<&str>) -> Result<Layout> {
    let word = comment.and_then(|c| c.split_ascii_whitespace().next());
    if let Some(styles) = chosen {
        let layout = Layout::of(&styles.0);
        let named = word.and_then(Style::of).map(|style| Layout::of(&[style]));
        if let Some(named) = named.filter(|named| !named.has_columns_of(&layout)) {
            let (in_file, name) = (&named.name, &layout.name);
            l.warn(format!(
                "the file names the atom style {in_file}, but `atom_style` is {name}; its columns are read as those of {name}"
            ));
        }
        return Ok(layout);
    }
    match word {
        Some(word) if Style::of(word).is_some() => Ok(Layout::of(&Style::of(word).into_iter().collect::<Vec<_>>())),
        Some("hybrid") => {
            Err(l.wrong("atom style hybrid: set `atom_style` to its sub-styles, in order: `[Sphere, Charge]`"))
        }
        Some(word) if Style::is_unsupported(word) => {
            Err(l.wrong(format!("unsupported atom style `{word}`; supported styles are {}", Style::words())))
        }
        // any other comment is no style
        _ => guess(file, l),
    }
}

/// Returns the only layout that fits all rows.
fn guess(file: &File, l: &mut Lines) -> Result<Layout> {
    let (begin, error) = (l.mark(), l.wrong(""));
    let bonded = file.header.count[1] > 0;
    let styles = Style::all().filter(|s| !bonded || s.links() > 1);
    let mut candidates: Vec<Layout> = styles.map(|s| Layout::of(&[s])).collect();
    for _ in 0..file.header.count[0] {
        row(l, "Atoms")?;
        let words: Vec<&str> = content(l.text()).split_ascii_whitespace().collect();
        candidates.retain(|layout| layout.fits(&words, |word| file.kind(l, 0, word).is_ok()));
    }
    l.seek(begin)?;
    let message = match candidates.as_slice() {
        [one, others @ ..] if others.iter().all(|o| o.has_columns_of(one)) => return Ok(one.clone()),
        [] => format!("they fit none of {}", Style::words()),
        several => format!("they fit {}", joined(&several.iter().map(|c| c.name.as_str()).collect::<Vec<_>>())),
    };
    let message =
        format!("the file does not name the atom style, and its columns do not tell: {message}; set `atom_style`");
    Err(galamost_plugin_api::error::InputError { message, ..error })
}

/// Parses a row.
pub fn atom(file: &File, l: &Lines, layout: &Layout, flat: bool) -> Result<Atom> {
    let words: Vec<&str> = content(l.text()).split_ascii_whitespace().collect();
    let n = layout.width;
    if words.len() != n && words.len() != n + 3 {
        let (found, name) = (words.len(), &layout.name);
        return Err(l.wrong(format!("found {found} values; the style {name} has {n}, or {} with images", n + 3)));
    }
    let word = |field: Field, k: usize| layout.column(field).map(|at| words[at + k]);
    let real = |field: Field, k: usize| word(field, k).map_or(Ok(0.0), |w| l.real(w));
    let mut position = [0.0; 3];
    for (k, x) in position.iter_mut().enumerate() {
        *x = l.real(word(Field::Position, k).unwrap_or_default())? - file.middle[k];
    }
    let first = word(Field::Position, 0).unwrap_or_default();
    let far = || l.wrong_at(first, format!("the position of atom {} is too far outside the box", words[0]));
    let (mut position, mut image) = file.shape.fold(position).ok_or_else(far)?;
    for (k, turns) in image.iter_mut().enumerate() {
        let given: i32 = words.get(n + k).map_or(Ok(0), |w| l.whole(w))?;
        *turns = given.checked_add(*turns).ok_or_else(far)?;
    }
    if flat {
        (position[2], image[2]) = (0.0, 0);
    }
    Ok(Atom {
        id: l.whole(words[0])?,
        kind: file.kind(l, 0, word(Field::Type, 0).unwrap_or_default())?,
        position,
        image,
        // 0 means no molecule
        molecule: word(Field::Molecule, 0).map_or(Ok(-1), |w| l.whole::<i32>(w).map(|m| m.saturating_sub(1)))?,
        charge: real(Field::Charge, 0)?,
        diameter: real(Field::Diameter, 0)?,
        density: real(Field::Density, 0)?,
        ellipsoid: word(Field::Ellipsoid, 0).map_or(Ok(0), |w| l.whole::<u8>(w))? != 0,
        dipole: [real(Field::Dipole, 0)?, real(Field::Dipole, 1)?, real(Field::Dipole, 2)?],
    })
}
