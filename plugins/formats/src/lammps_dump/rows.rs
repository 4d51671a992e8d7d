//! Rows of atoms of a dump, by the meaning of their columns.

use crate::names::joined;
use galamost_plugin_api::prelude::InputError;
use galamost_plugin_api::tilt::to_space;
use galamost_text::{Lines, Result, Shape};
use std::collections::HashMap;

/// Center and shape of the box.
#[derive(Clone, Copy)]
pub struct SimBox {
    pub center: [f64; 3],
    pub shape: Shape,
}

/// Columns of positions, whether these are fractions of the box, and whether they are unwrapped.
const POSITIONS: [([&str; 3], bool, bool); 4] = [
    (["x", "y", "z"], false, false),
    (["xu", "yu", "zu"], false, true),
    (["xs", "ys", "zs"], true, false),
    (["xsu", "ysu", "zsu"], true, true),
];
const IMAGES: [&str; 3] = ["ix", "iy", "iz"];
const VELOCITIES: [&str; 3] = ["vx", "vy", "vz"];
/// The other columns that are read.
const SCALARS: [&str; 8] = ["id", "type", "element", "mass", "q", "diameter", "radius", "mol"];

/// Columns of a position, one for each dimension.
struct Coordinates {
    columns: Vec<usize>,
    scaled: bool,
    unwrapped: bool,
}

/// Columns of the dump, by their meaning.
pub struct Columns {
    count: usize,
    id: usize,
    kind: usize,
    element: Option<usize>,
    position: Coordinates,
    /// Unwrapped positions beside wrapped ones without images, from which images are computed.
    unwrapped: Option<Coordinates>,
    image: Option<Vec<usize>>,
    velocity: Option<Vec<usize>>,
    pub mass: Option<usize>,
    pub charge: Option<usize>,
    /// The column, and a factor for its values.
    pub diameter: Option<(usize, f64)>,
    pub molecule: Option<usize>,
}

impl Columns {
    /// Finds the columns by their names. In two dimensions, `flat`, vectors need no third component.
    pub fn of(text: &str, flat: bool, l: &Lines) -> Result<Self> {
        let names: Vec<&str> = text.split_whitespace().collect();
        let index = |name: &str| names.iter().position(|c| *c == name);
        let vector =
            |of: [&str; 3]| of.into_iter().take(if flat { 2 } else { 3 }).map(index).collect::<Option<Vec<usize>>>();
        let complete: Vec<&str> = POSITIONS
            .iter()
            .map(|(of, ..)| *of)
            .chain([IMAGES, VELOCITIES])
            .filter(|of| vector(*of).is_some())
            .flatten()
            .collect();
        let read = |name: &str| SCALARS.contains(&name) || complete.contains(&name);
        let ignored: Vec<&str> = (0..names.len())
            .filter(|k| !read(names[*k]) || names[..*k].contains(&names[*k]))
            .map(|k| names[k])
            .collect();
        if !ignored.is_empty() {
            l.warn(format!("columns that are not read: {}", joined(&ignored)));
        }
        let missing = |what: &str| l.wrong(format!("the dump {what}"));
        let mut forms = POSITIONS.iter().filter_map(|(of, scaled, unwrapped)| {
            Some(Coordinates { columns: vector(*of)?, scaled: *scaled, unwrapped: *unwrapped })
        });
        let position = forms.next().ok_or_else(|| {
            missing("has no positions: expected columns x y z, xu yu zu, xs ys zs or xsu ysu zsu (without z only with `dimensions: 2`)")
        })?;
        // unwrapped positions contain the images
        let image = vector(IMAGES).filter(|_| !position.unwrapped);
        let unwrapped = forms.find(|form| form.unwrapped && !position.unwrapped && image.is_none());
        let element = index("element");
        Ok(Self {
            count: names.len(),
            id: index("id").ok_or_else(|| missing("has no column `id`"))?,
            kind: index("type").or(element).ok_or_else(|| missing("has no column `type` or `element`"))?,
            element,
            position,
            unwrapped,
            image,
            velocity: vector(VELOCITIES),
            mass: index("mass"),
            charge: index("q"),
            diameter: index("diameter").map(|k| (k, 1.0)).or(index("radius").map(|k| (k, 2.0))),
            molecule: index("mol"),
        })
    }
}

/// An atom in the file.
pub struct Atom {
    pub id: u64,
    /// Index of the type word.
    pub kind: u32,
    pub position: [f64; 3],
    pub image: [i32; 3],
    pub velocity: [f64; 3],
    pub mass: Option<f64>,
    pub charge: f64,
    pub diameter: f64,
    pub molecule: i32,
}

/// Reads the current line.
pub fn atom(l: &Lines, c: &Columns, sim_box: SimBox, types: &mut TypeWords) -> Result<Atom> {
    let words: Vec<&str> = l.words().collect();
    if words.len() != c.count {
        return Err(l.wrong(format!("found {} values for {} columns", words.len(), c.count)));
    }
    let real = |k: usize| l.real(words[k]);
    let shape = sim_box.shape;
    let from_center = |at: &Coordinates| {
        let mut r = [0.0; 3];
        for (axis, k) in at.columns.iter().enumerate() {
            let x = real(*k)?;
            r[axis] = if at.scaled { (x - 0.5) * shape.length[axis] } else { x - sim_box.center[axis] };
        }
        Ok::<_, InputError>(if at.scaled { to_space(r, shape.tilt) } else { r })
    };
    let first = words[c.position.columns[0]];
    let far = || l.wrong_at(first, format!("the position of atom {} is too far outside the box", words[c.id]));
    let (position, mut image) = shape.fold(from_center(&c.position)?).ok_or_else(far)?;
    if let Some(unwrapped) = &c.unwrapped {
        let (from, to) = (shape.fractions(position), shape.fractions(from_center(unwrapped)?));
        for (axis, image) in image.iter_mut().enumerate() {
            let turns = (to[axis] - from[axis]).round();
            if turns.abs() >= f64::from(i32::MAX) {
                return Err(far());
            }
            *image = turns as i32;
        }
    }
    for (axis, k) in c.image.iter().flatten().enumerate() {
        let given: i32 = l.whole(words[*k])?;
        image[axis] = given.checked_add(image[axis]).ok_or_else(far)?;
    }
    let mut velocity = [0.0; 3];
    for (axis, k) in c.velocity.iter().flatten().enumerate() {
        velocity[axis] = real(*k)?;
    }
    Ok(Atom {
        id: l.whole(words[c.id])?,
        kind: types.index(words[c.kind], c.element.map(|e| words[e])),
        position,
        image,
        velocity,
        mass: c.mass.map(real).transpose()?,
        charge: c.charge.map_or(Ok(0.0), real)?,
        diameter: c.diameter.map_or(Ok(0.0), |(k, times)| real(k).map(|x| x * times))?,
        // 0 means no molecule
        molecule: c.molecule.map_or(Ok(0), |k| l.whole::<i32>(words[k]))?.saturating_sub(1),
    })
}

/// Words that identify types, and their elements.
#[derive(Default)]
pub struct TypeWords {
    pub words: Vec<String>,
    pub elements: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Whether a type has several elements, which then cannot be its name.
    pub mixed: bool,
}

impl TypeWords {
    /// Returns the index of a word, which is added if it is new.
    fn index(&mut self, word: &str, element: Option<&str>) -> u32 {
        let n = match self.numbers.get(word) {
            Some(n) => *n,
            None => {
                let n = self.words.len() as u32;
                self.words.push(word.into());
                self.elements.push(element.unwrap_or(word).into());
                self.numbers.insert(word.into(), n);
                n
            }
        };
        self.mixed |= element.is_some_and(|e| e != self.elements[n as usize]);
        n
    }

    /// Returns the index of a type given by its number.
    pub fn by_number(&self, kind: u32) -> Option<usize> {
        self.words[kind as usize].parse::<usize>().ok()?.checked_sub(1)
    }
}
