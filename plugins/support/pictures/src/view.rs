//! How particles are looked at.

use crate::camera::Camera;
use crate::color::Rgb;
use crate::image::Image;
use crate::key::Key;
use crate::parallel::Parallel;
use crate::raster::cast;
use crate::scene::Scene;
use crate::shade::{Light, shade};
use galamost_measure::Whole;
use galamost_plugin_api::snapshot::Snapshot;
use std::borrow::Cow;

/// Where the viewer is, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Direction {
    /// From the x axis towards the y axis.
    pub azimuth: f64,
    /// Above the x-y plane.
    pub elevation: f64,
}

/// What colors mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ColorBy {
    /// The type.
    #[default]
    Type,
    /// The molecule: the array `molecule`, or what bonds hold together.
    Molecule,
    /// A number of each particle: `charge`, `diameter`, `mass`, `speed`, `x`, `y`, `z`, `tag`, or any array; `name.k` is the
    /// k-th number of an array with several, whose length is taken without it.
    Property(String),
}

/// The shape of a particle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Glyph {
    /// A ball.
    Sphere,
    /// A ball with a cap around its axis, in a second color.
    Janus,
    /// A ball with caps at both ends of its axis.
    Triblock,
    /// An ellipsoid so many times as long along its axis as across it: a rod above 1, a disk below.
    Ellipsoid(f64),
}

/// Only particles with `min` ≤ position ≤ `max` along an axis are shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// 0, 1 or 2.
    pub axis: usize,
    /// Lower end.
    pub min: f64,
    /// Upper end.
    pub max: f64,
}

/// How particles are looked at. Options by type come as pairs of a name and a value; without a name a value is for all types.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Width and height in pixels.
    pub size: [u32; 2],
    /// Where the viewer is; by default to the front and right, above; right above in two dimensions.
    pub direction: Option<Direction>,
    /// Whether what is far is small; by default in three dimensions.
    pub perspective: Option<bool>,
    /// What colors mean.
    pub color: ColorBy,
    /// Numbers at the ends of the colors of a property; by default those that 2 % of the particles are below and above.
    pub range: Option<[f64; 2]>,
    /// Colors of types.
    pub colors: Vec<(String, Rgb)>,
    /// Radii; by default half of the array `diameter`, or ½, less in a dense system.
    pub radius: Vec<(Option<String>, f64)>,
    /// Shapes; by default caps on particles that turn, balls for others.
    pub glyphs: Vec<(Option<String>, Glyph)>,
    /// Types that are not shown.
    pub hide: Vec<String>,
    /// What is shown of the box.
    pub slices: Vec<Slice>,
    /// Whether the edges of the box are shown.
    pub edges: bool,
    /// Whether bonds are shown.
    pub bonds: bool,
    /// Whether what bonds hold together is shown unbroken, with its middle in the box.
    pub whole: bool,
    /// Whether a key on the right says what colors mean.
    pub key: bool,
    /// The color behind everything.
    pub background: Rgb,
    /// Rays for each pixel and direction.
    pub fine: u32,
}

impl Default for View {
    fn default() -> Self {
        Self {
            size: [1200, 900],
            direction: None,
            perspective: None,
            color: ColorBy::Type,
            range: None,
            colors: vec![],
            radius: vec![],
            glyphs: vec![],
            hide: vec![],
            slices: vec![],
            edges: true,
            bonds: true,
            whole: false,
            key: false,
            background: Rgb::WHITE,
            fine: 2,
        }
    }
}

/// Properties that all particles have.
pub(crate) const OWN: [&str; 6] = ["mass", "speed", "x", "y", "z", "tag"];

/// Largest edge of a picture.
pub(crate) const LARGEST: u32 = 8192;

impl View {
    /// Whether the view fits a system with these types and arrays: what can be said before there are particles.
    ///
    /// # Errors
    /// A type or a property that there is not, shapes without orientations, a size that cannot be.
    pub fn check(&self, types: &[String], arrays: &[String]) -> Result<(), String> {
        if self.size.iter().any(|n| !(16..=LARGEST).contains(n)) {
            return Err(format!(
                "a picture has 16 to {LARGEST} pixels in each direction, not {} × {}",
                self.size[0], self.size[1]
            ));
        }
        let named = self.hide.iter().chain(self.colors.iter().map(|c| &c.0));
        let named = named
            .chain(self.radius.iter().filter_map(|r| r.0.as_ref()))
            .chain(self.glyphs.iter().filter_map(|g| g.0.as_ref()));
        for name in named {
            if !types.contains(name) {
                return Err(format!("there is no type `{name}`; there are {}", types.join(", ")));
            }
        }
        let there = |name: &str| arrays.iter().any(|a| a == name);
        if let ColorBy::Property(name) = &self.color {
            let base = name.rsplit_once('.').filter(|(_, k)| k.parse::<usize>().is_ok()).map_or(name.as_str(), |b| b.0);
            if !OWN.contains(&name.as_str()) && !there(name) && !there(base) {
                let all: Vec<&str> = OWN.iter().copied().chain(arrays.iter().map(String::as_str)).collect();
                return Err(format!("there is no property `{name}`; there are type, molecule, {}", all.join(", ")));
            }
        }
        if self.key && self.color == ColorBy::Molecule {
            return Err("colors of molecules mean nothing but that they differ: there is no key of them".into());
        }
        if self.glyphs.iter().any(|g| g.1 != Glyph::Sphere) && !there("quaternion") && !there("orientation") {
            return Err("particles have no orientations: neither an array `quaternion` nor `orientation`".into());
        }
        Ok(())
    }

    /// Draws the particles. The same view of the same state gives the same picture, whatever the number of threads.
    ///
    /// # Errors
    /// What the view asks for is not there: a type, an array.
    pub fn picture(&self, state: &Snapshot, parallel: Parallel<'_>) -> Result<Image, String> {
        self.check(&state.types, &state.arrays.keys().cloned().collect::<Vec<_>>())?;
        let flat = state.dimensions == 2;
        let above = Direction { azimuth: -90.0, elevation: 90.0 };
        let aside = Direction { azimuth: -62.0, elevation: 18.0 };
        let direction = self.direction.unwrap_or(if flat { above } else { aside });
        let angles = [direction.azimuth.to_radians(), direction.elevation.to_radians()];
        let state = if self.whole { Cow::Owned(unbroken(state)) } else { Cow::Borrowed(state) };
        let scene = Scene::new(self, &state)?;
        let key = self.key.then(|| Key::new(scene.meaning(), self.size, self.background)).transpose()?;
        let [width, height] = self.size;
        let size = [width - key.as_ref().map_or(0, Key::width), height];
        let perspective = self.perspective.unwrap_or(!flat);
        let fine = self.fine.max(1);
        let camera = Camera::new(angles, perspective, size, &scene.fits).enlarged(fine);
        let solids = scene.solids(&camera, size[0].min(size[1]) * fine, parallel);
        let size = size.map(|n| (n * fine) as usize);
        let hits = cast(&camera, &solids, size, parallel);
        let depths = hits
            .iter()
            .filter(|h| h.lit)
            .fold([f32::INFINITY, f32::NEG_INFINITY], |[a, b], h| [a.min(h.depth), b.max(h.depth)]);
        let light = Light { background: self.background, radius: scene.radius as f32, depths };
        let image = shade(&camera, &hits, size, fine as usize, light, parallel);
        match key {
            Some(key) => key.beside(&image),
            None => Ok(image),
        }
    }
}

/// The state with everything that bonds hold together in one piece, whose middle is in the box. A piece without an end, as a network
/// across the boundary, stays broken somewhere.
fn unbroken(state: &Snapshot) -> Snapshot {
    let molecules = Whole::new(&state.position, &vec![[0; 3]; state.len()], state.box_length, None, &state.bonds, 2);
    let mut out = state.clone();
    for part in &molecules.parts {
        let members = molecules.members(part);
        for (k, length) in state.box_length.into_iter().enumerate().filter(|(_, l)| *l > 0.0) {
            let middle = molecules.places(part).map(|p| p[k]).sum::<f64>() / members.len() as f64;
            let back = length * (middle / length).round();
            members.iter().for_each(|t| out.position[*t as usize][k] = molecules.place[*t as usize][k] - back);
        }
    }
    out
}
