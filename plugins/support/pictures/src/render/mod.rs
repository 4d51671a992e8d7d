//! Pictures of particles: the options of a view, and rendering.

mod camera;
mod key;
mod parse;
mod raster;
mod roles;
mod scale_bar;
mod scene;
mod shade;
use crate::color::Rgb;
use crate::image::Image;
use crate::parallel::Parallel;
use crate::render::camera::Camera;
use crate::render::key::Key;
use crate::render::raster::cast;
use crate::render::scale_bar::ScaleBar;
use crate::render::scene::{Scene, visible};
use crate::render::shade::{Layers, Light, shade};
use galamost_measure::WholeMolecules;
use galamost_plugin_api::snapshot::Snapshot;
use std::borrow::Cow;

pub use roles::solvent_types;

/// The direction of the viewer, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Direction {
    /// Angle from the x axis towards the y axis.
    pub azimuth: f64,
    /// Angle above the x-y plane.
    pub elevation: f64,
}

/// What the colors of particles show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ColorBy {
    /// The type.
    #[default]
    Type,
    /// The molecule: from the array `molecule`, or particles connected by bonds.
    Molecule,
    /// A number of each particle: `mass`, `speed`, `x`, `y`, `z`, `tag`, or any array, such as `charge` or `diameter`. Of an
    /// array with several components, `name.k` is the k-th component and `name` the length of the vector.
    Property(String),
}

/// The shape of a particle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Glyph {
    /// A sphere.
    Sphere,
    /// A sphere with a cap in a second color at one end of its axis.
    Janus,
    /// A sphere with caps at both ends of its axis.
    Triblock,
    /// An ellipsoid with this ratio of length along its axis to width: a rod above 1, a disk below 1.
    Ellipsoid(f64),
}

/// Shows only particles with `min` ≤ position ≤ `max` along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// Axis: 0, 1 or 2.
    pub axis: usize,
    /// Smallest position.
    pub min: f64,
    /// Largest position.
    pub max: f64,
}

/// The options of a picture of particles. Options by type are pairs of a type name and a value; a value without a name applies
/// to all types.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Width and height in pixels.
    pub size: [u32; 2],
    /// Direction of the viewer; by default from the front right, slightly above, or from above in two dimensions.
    pub direction: Option<Direction>,
    /// Whether to use perspective; by default in three dimensions.
    pub perspective: Option<bool>,
    /// What the colors show.
    pub color: ColorBy,
    /// Numbers at the ends of the color map; by default the 2nd and 98th percentile.
    pub range: Option<[f64; 2]>,
    /// Colors of types.
    pub colors: Vec<(String, Rgb)>,
    /// Radii; by default half of the array `diameter`, or ½, less in a dense system.
    pub radius: Vec<(Option<String>, f64)>,
    /// Shapes; by default spheres, with a cap if particles rotate.
    pub glyphs: Vec<(Option<String>, Glyph)>,
    /// Types that are not shown. Centers of rigid bodies are not shown either, unless another setting names their type.
    pub hide: Vec<String>,
    /// Types that are drawn translucent, in one layer: of these particles, only the nearest one is seen.
    pub translucent: Vec<String>,
    /// Slices of the box that are shown; all of it without slices.
    pub slices: Vec<Slice>,
    /// Whether to show the edges of the box.
    pub edges: bool,
    /// Whether to show bonds.
    pub bonds: bool,
    /// Whether to show bonded particles unwrapped, with the center of each molecule in the box.
    pub whole: bool,
    /// Whether to add a key for the colors on the right.
    pub key: bool,
    /// Whether to add a scale bar below. With perspective, it holds at the depth of the center.
    pub scale_bar: bool,
    /// Whether a picture in which no particle is drawn is an error.
    pub needs_particles: bool,
    /// Lengths of the box that the picture holds, for movies; by default those of the state.
    pub framing: Option<[f64; 3]>,
    /// Background color.
    pub background: Rgb,
    /// Rays per pixel in each direction.
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
            translucent: vec![],
            slices: vec![],
            edges: true,
            bonds: true,
            whole: false,
            key: false,
            scale_bar: false,
            needs_particles: false,
            framing: None,
            background: Rgb::WHITE,
            fine: 2,
        }
    }
}

/// Properties that every system has.
const BUILT_IN_PROPERTIES: [&str; 6] = ["mass", "speed", "x", "y", "z", "tag"];

/// Largest width and height of a picture in pixels.
const MAX_EDGE: u32 = 8192;

impl View {
    /// Checks the view for a system with these types and arrays, before there are particles.
    ///
    /// # Errors
    /// Returns an error for an unknown type or property, a range without a property, if all types are hidden, for shapes without
    /// orientations, or an invalid size.
    pub fn check(&self, types: &[String], arrays: &[String]) -> Result<(), String> {
        if self.size.iter().any(|n| !(16..=MAX_EDGE).contains(n)) {
            return Err(format!(
                "width and height of a picture must be 16 to {MAX_EDGE} pixels, found {} × {}",
                self.size[0], self.size[1]
            ));
        }
        for name in self.hide.iter().chain(self.shown()) {
            if !types.contains(name) {
                return Err(format!("there is no type `{name}`; the types are {}", types.join(", ")));
            }
        }
        if !types.is_empty() && types.iter().all(|t| self.hide.contains(t)) {
            return Err("all particles are hidden; change the hidden types".into());
        }
        let has_array = |name: &str| arrays.iter().any(|a| a == name);
        if let ColorBy::Property(name) = &self.color {
            let base = name.rsplit_once('.').filter(|(_, k)| k.parse::<usize>().is_ok()).map_or(name.as_str(), |b| b.0);
            if !BUILT_IN_PROPERTIES.contains(&name.as_str()) && !has_array(name) && !has_array(base) {
                // `molecule` is also the name of an array
                let further = arrays.iter().map(String::as_str).filter(|a| *a != "molecule");
                let all: Vec<&str> = BUILT_IN_PROPERTIES.iter().copied().chain(further).collect();
                return Err(format!(
                    "there is no property `{name}`; the properties are type, molecule, {}",
                    all.join(", ")
                ));
            }
        }
        if self.range.is_some() && !matches!(self.color, ColorBy::Property(_)) {
            return Err(
                "a range is that of the color scale of a property; color by a property, or remove the range".into()
            );
        }
        if self.key && self.color == ColorBy::Molecule {
            return Err(
                "a key is not available for colors by molecule; color by type or property, or remove the key".into()
            );
        }
        if self.glyphs.iter().any(|g| g.1 != Glyph::Sphere) && !has_array("quaternion") && !has_array("orientation") {
            return Err("this shape needs orientations: the array `quaternion` or `orientation`".into());
        }
        Ok(())
    }

    /// Returns the types that settings other than `hide` name.
    fn shown(&self) -> impl Iterator<Item = &String> {
        let named = self.translucent.iter().chain(self.colors.iter().map(|c| &c.0));
        let sized = self.radius.iter().filter_map(|r| r.0.as_ref());
        named.chain(sized).chain(self.glyphs.iter().filter_map(|g| g.0.as_ref()))
    }

    /// Returns a warning if the colors show data that the particles do not have, so that all values are equal. `linked`:
    /// there are bonds; `moving`: there are velocities.
    pub fn warning(&self, arrays: &[String], linked: bool, moving: bool) -> Option<String> {
        match &self.color {
            ColorBy::Molecule if !linked && !arrays.iter().any(|a| a == "molecule") => {
                Some("the particles have neither bonds nor the array `molecule`: each counts as a molecule".into())
            }
            ColorBy::Property(name) if name == "speed" && !moving => {
                Some("the particles have no velocities: all of them have the same color".into())
            }
            _ => None,
        }
    }

    /// Returns whether particles of this state are visible; otherwise its picture shows the box only.
    pub fn shows_particles(&self, state: &Snapshot) -> bool {
        let state = if self.whole { Cow::Owned(unwrapped(state)) } else { Cow::Borrowed(state) };
        !visible(self, &state).is_empty()
    }

    /// Renders the particles; without visible ones, the box. The picture does not depend on the number of threads.
    ///
    /// # Errors
    /// Returns an error if the view does not fit the state, for example an unknown type or array, or if it needs particles and
    /// none is drawn.
    pub fn picture(&self, state: &Snapshot, parallel: Parallel<'_>) -> Result<Image, String> {
        self.check(&state.types, &state.arrays.keys().cloned().collect::<Vec<_>>())?;
        let flat = state.dimensions == 2;
        let from_above = Direction { azimuth: -90.0, elevation: 90.0 };
        let from_side = Direction { azimuth: -62.0, elevation: 18.0 };
        let direction = self.direction.unwrap_or(if flat { from_above } else { from_side });
        let angles = [direction.azimuth.to_radians(), direction.elevation.to_radians()];
        let state = if self.whole { Cow::Owned(unwrapped(state)) } else { Cow::Borrowed(state) };
        let scene = Scene::new(self, &state)?;
        let key = self.key.then(|| Key::new(scene.key_contents(), self.size, self.background)).transpose()?;
        let [width, height] = self.size;
        let strip = if self.scale_bar { ScaleBar::height(self.size)? } else { 0 };
        let size = [width - key.as_ref().map_or(0, Key::width), height - strip];
        let perspective = self.perspective.unwrap_or(!flat);
        let fine = self.fine.max(1);
        let camera = Camera::new(angles, perspective, size, &scene.fits);
        let bar = self.scale_bar.then(|| ScaleBar::new([size[0], strip], camera.scale_at_center(), self.background));
        let image = self.rendered(&scene, &camera.enlarged(fine), size.map(|n| (n * fine) as usize), parallel)?;
        let image = match bar {
            Some(bar) => bar.append_to(image)?,
            None => image,
        };
        match key {
            Some(key) => key.append_to(&image),
            None => Ok(image),
        }
    }

    /// Renders a scene; `size` is that of the rays.
    fn rendered(
        &self,
        scene: &Scene<'_>,
        camera: &Camera,
        size: [usize; 2],
        parallel: Parallel<'_>,
    ) -> Result<Image, String> {
        let [solids, translucent] = scene.solids(camera, size[0].min(size[1]) as u32, parallel);
        let opaque = cast(camera, &solids, size, parallel);
        drop(solids);
        let front = if translucent.is_empty() { vec![] } else { cast(camera, &translucent, size, parallel) };
        // particles may also be smaller than the distance of two rays
        if self.needs_particles && !opaque.iter().chain(&front).any(|h| h.lit) {
            return Err("no particle is drawn; change the slices, the hidden types or the radii".into());
        }
        let depths = opaque
            .iter()
            .filter(|h| h.lit)
            .fold([f32::INFINITY, f32::NEG_INFINITY], |[a, b], h| [a.min(h.depth), b.max(h.depth)]);
        let light = Light { background: self.background, radius: scene.radius as f32, depths };
        let layers = Layers { opaque: &opaque, translucent: &front };
        Ok(shade(camera, layers, size, self.fine.max(1) as usize, light, parallel))
    }

    /// Returns the ends of the color scale that a picture of this state has; `None` without a scale or visible particles.
    ///
    /// # Errors
    /// Returns an error if the view does not fit the state.
    pub fn color_range(&self, state: &Snapshot) -> Result<Option<[f64; 2]>, String> {
        self.check(&state.types, &state.arrays.keys().cloned().collect::<Vec<_>>())?;
        Ok(Scene::new(self, state)?.color_range())
    }
}

/// Returns the state with bonded particles unwrapped and the center of each molecule in the box. A network that is connected
/// across the boundary remains cut somewhere.
fn unwrapped(state: &Snapshot) -> Snapshot {
    let molecules =
        WholeMolecules::new(&state.position, &vec![[0; 3]; state.len()], state.box_length, None, &state.bonds, 2);
    let mut out = state.clone();
    for molecule in &molecules.parts {
        let members = molecules.members(molecule);
        for (k, length) in state.box_length.into_iter().enumerate().filter(|(_, l)| *l > 0.0) {
            let center = molecules.places(molecule).map(|p| p[k]).sum::<f64>() / members.len() as f64;
            let shift = length * (center / length).round();
            members.iter().for_each(|t| out.position[*t as usize][k] = molecules.place[*t as usize][k] - shift);
        }
    }
    out
}
