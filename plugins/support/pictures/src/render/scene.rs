//! Bodies for the particles, bonds and box edges of a state.

use crate::color::Rgb;
use crate::parallel::{Parallel, map_slice};
use crate::render::camera::{Camera, V};
use crate::render::key::KeyContents;
use crate::render::raster::{Body, F, Solid};
use crate::render::roles::{body_types, rotating_types};
use crate::render::{ColorBy, Glyph, Slice, View};
use galamost_plugin_api::snapshot::{Snapshot, Values};

/// The visible particles of a state and their appearance.
pub struct Scene<'a> {
    view: &'a View,
    state: &'a Snapshot,
    /// Tags of the visible particles.
    shown: Vec<u32>,
    /// Radii, by tag.
    radii: Vec<f32>,
    /// Colors, by tag.
    colors: Vec<[u8; 3]>,
    /// Shapes, by type.
    glyphs: Vec<Option<Glyph>>,
    /// Whether particles are translucent, by type.
    translucent: Vec<bool>,
    /// Range of the colors, if particles are colored by a property.
    range: Option<ColorRange>,
    /// Spheres (center, radius) that the picture must hold.
    pub fits: Vec<(V, f64)>,
    /// Radius of a typical particle.
    pub radius: f64,
}

/// The numbers at the ends of the color map, and whether there are values below and above.
type ColorRange = ([f64; 2], [bool; 2]);

/// Returns the last option for a type; options without a type name apply to types that have none.
fn option_of<T: Copy>(list: &[(Option<String>, T)], name: &str) -> Option<T> {
    let own = list.iter().rev().find(|o| o.0.as_deref() == Some(name));
    own.or_else(|| list.iter().rev().find(|o| o.0.is_none())).map(|o| o.1)
}

/// Returns the width and the values of an array.
pub fn array(state: &Snapshot, name: &str) -> Option<(usize, Vec<f64>)> {
    let a = state.arrays.get(name)?;
    Some((
        a.width as usize,
        match &a.values {
            Values::Real(v) => v.clone(),
            Values::Int(v) => v.iter().map(|x| f64::from(*x)).collect(),
        },
    ))
}

/// Returns the axes of all particles as unit vectors, if they have orientations.
fn axes(state: &Snapshot) -> Option<Vec<V>> {
    if let Some((4, q)) = array(state, "quaternion") {
        let axis = |q: &[f64; 4]| {
            let [x, y, z, w] = *q;
            [2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)]
        };
        return Some(q.as_chunks::<4>().0.iter().map(axis).collect());
    }
    let (3, n) = array(state, "orientation")? else { return None };
    Some(
        n.as_chunks::<3>()
            .0
            .iter()
            .map(|n| {
                let length = n.iter().map(|x| x * x).sum::<f64>().sqrt();
                if length > 0.0 { n.map(|x| x / length) } else { [0.0, 0.0, 1.0] }
            })
            .collect(),
    )
}

/// Returns the molecule number of each particle, from the array `molecule` or from bonds.
fn molecules(state: &Snapshot) -> Vec<i64> {
    if let Some((1, m)) = array(state, "molecule") {
        return m.iter().enumerate().map(|(tag, m)| if *m < 0.0 { -(tag as i64) - 1 } else { *m as i64 }).collect();
    }
    let mut root: Vec<u32> = (0..state.len() as u32).collect();
    fn find(root: &mut [u32], mut k: u32) -> u32 {
        while root[k as usize] != k {
            root[k as usize] = root[root[k as usize] as usize];
            k = root[k as usize];
        }
        k
    }
    for b in &state.bonds {
        let [i, j] = b.tags.map(|t| find(&mut root, t));
        // the smallest tag is the root, independent of the order of the bonds
        root[i.max(j) as usize] = i.min(j);
    }
    // molecules are numbered in the order of their first particles
    let mut number = vec![-1i64; state.len()];
    let mut count = 0;
    (0..state.len() as u32)
        .map(|k| {
            let r = find(&mut root, k) as usize;
            if number[r] < 0 {
                number[r] = count;
                count += 1;
            }
            number[r]
        })
        .collect()
}

/// Returns the value of a property for each particle.
fn property(state: &Snapshot, name: &str) -> Result<Vec<f64>, String> {
    let n = state.len();
    let axis = ["x", "y", "z"].iter().position(|a| *a == name);
    if let Some(k) = axis {
        return Ok(state.position.iter().map(|p| p[k]).collect());
    }
    let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    match name {
        "mass" => return Ok(state.mass.to_vec()),
        "speed" => return Ok(state.velocity.iter().map(|v| length(v)).collect()),
        "tag" => return Ok((0..n).map(|k| k as f64).collect()),
        _ => {}
    }
    let (base, component) = match name.rsplit_once('.') {
        Some((b, k)) if state.arrays.contains_key(b) && k.parse::<usize>().is_ok() => (b, k.parse::<usize>().ok()),
        _ => (name, None),
    };
    let Some((width, values)) = array(state, base) else { return Err(format!("there is no property `{name}`")) };
    match component {
        Some(k) if k >= width => Err(format!("`{base}` has {width} components: {base}.0 to {base}.{}", width - 1)),
        Some(k) => Ok(values.chunks(width).map(|c| c[k]).collect()),
        None if width == 1 => Ok(values),
        None => Ok(values.chunks(width).map(length).collect()),
    }
}

/// Returns the tags of the visible particles: those of types with a radius that are not hidden, inside of all slices.
pub fn visible(view: &View, state: &Snapshot) -> Vec<u32> {
    // centers of bodies are inside of them
    let unseen = |(t, center): (&String, bool)| {
        let no_radius = option_of(&view.radius, t) == Some(0.0);
        no_radius || view.hide.contains(t) || (center && !view.shown().any(|s| s == t))
    };
    let hidden: Vec<bool> = state.types.iter().zip(body_types(state).center).map(unseen).collect();
    let is_inside = |s: &Slice, tag: u32| (s.min..=s.max).contains(&state.position[tag as usize][s.axis]);
    (0..state.len() as u32)
        .filter(|t| !hidden[state.type_id[*t as usize] as usize])
        .filter(|t| view.slices.iter().all(|s| is_inside(s, *t)))
        .collect()
}

impl<'a> Scene<'a> {
    /// Selects the visible particles of a state and their appearance.
    ///
    /// # Errors
    /// Returns an error if the state lacks a property.
    pub fn new(view: &'a View, state: &'a Snapshot) -> Result<Self, String> {
        if state.is_tilted() {
            return Err("pictures show rectangular boxes only; this one is triclinic".into());
        }
        let n = state.len();
        let shown = visible(view, state);
        // half of the mean distance, at most ½
        let distance = (state.volume() / n as f64).powf(1.0 / f64::from(state.dimensions));
        let default = 0.5 * (1.1 * distance).min(1.0);
        let diameters = array(state, "diameter").filter(|(w, d)| *w == 1 && d.iter().any(|d| *d > 0.0)).map(|d| d.1);
        let of_type: Vec<Option<f64>> = state.types.iter().map(|t| option_of(&view.radius, t)).collect();
        let radii: Vec<f32> = (0..n)
            .map(|k| {
                of_type[state.type_id[k] as usize].unwrap_or_else(|| diameters.as_ref().map_or(default, |d| 0.5 * d[k]))
                    as f32
            })
            .collect();
        let mean = shown.iter().map(|t| f64::from(radii[*t as usize])).sum::<f64>() / shown.len() as f64;
        let radius = if mean > 0.0 { mean } else { default };
        let (colors, range) = Self::colors(view, state, &shown)?;
        let fits = Self::fits(view, state, &shown, &radii);
        let glyphs = Self::glyphs(view, state);
        let translucent = state.types.iter().map(|t| view.translucent.contains(t)).collect();
        Ok(Self { view, state, shown, radii, colors, glyphs, translucent, range, fits, radius })
    }

    /// Returns the shape of each type: that of the view, or caps if the type rotates.
    fn glyphs(view: &View, state: &Snapshot) -> Vec<Option<Glyph>> {
        let of_center = body_types(state).center;
        let capped = rotating_types(state).into_iter().zip(of_center).map(|(rotates, center)| rotates && !center);
        let shape = |(t, capped): (&String, bool)| option_of(&view.glyphs, t).or(capped.then_some(Glyph::Janus));
        state.types.iter().zip(capped).map(shape).collect()
    }

    /// Returns the ends of the color scale of a property; `None` if no particle has a color.
    pub fn color_range(&self) -> Option<[f64; 2]> {
        self.range.filter(|_| !self.shown.is_empty()).map(|r| r.0)
    }

    /// Returns the colors by tag and, for a property, the range of the color map.
    fn colors(view: &View, state: &Snapshot, shown: &[u32]) -> Result<(Vec<[u8; 3]>, Option<ColorRange>), String> {
        let colors = match &view.color {
            ColorBy::Type => {
                let of = |(k, t): (usize, &String)| {
                    view.colors.iter().rev().find(|c| c.0 == *t).map_or_else(|| Rgb::of_palette(k), |c| c.1).0
                };
                let by_type: Vec<[u8; 3]> = state.types.iter().enumerate().map(of).collect();
                state.type_id.iter().map(|k| by_type[*k as usize]).collect()
            }
            ColorBy::Molecule => {
                // a solvent has the color of its type, not one for each particle
                let plain = |k: &u32| view.translucent.contains(&state.types[*k as usize]);
                let color = |(m, k): (&i64, &u32)| match plain(k) {
                    true => Rgb::of_palette(*k as usize).0,
                    false => Rgb::of_many(m.unsigned_abs()).0,
                };
                molecules(state).iter().zip(&state.type_id).map(color).collect()
            }
            ColorBy::Property(name) => {
                let values = property(state, name)?;
                let [low, high] = view.range.unwrap_or_else(|| {
                    let mut sorted: Vec<f64> =
                        shown.iter().map(|t| values[*t as usize]).filter(|v| v.is_finite()).collect();
                    sorted.sort_unstable_by(f64::total_cmp);
                    match sorted.len() {
                        0 => [0.0, 1.0],
                        n => [sorted[n / 50], sorted[n - 1 - n / 50]],
                    }
                });
                let width = if high > low { high - low } else { 1.0 };
                let colors = values.iter().map(|v| Rgb::of_number((v - low) / width).0).collect();
                let ends = [low, low + width];
                let is = |beyond: &dyn Fn(f64) -> bool| shown.iter().any(|t| beyond(values[*t as usize]));
                return Ok((colors, Some((ends, [is(&|v| v < ends[0]), is(&|v| v > ends[1])]))));
            }
        };
        Ok((colors, None))
    }

    /// Returns the contents of the key.
    pub fn key_contents(&self) -> KeyContents {
        if let (ColorBy::Property(name), Some((ends, beyond))) = (&self.view.color, self.range) {
            return KeyContents::Numbers { name: name.clone(), ends, beyond };
        }
        // the first visible particle of each type; its axis points to the upper right, slightly to the front
        let axis = [0.68, -0.62, -0.39];
        let mut types = vec![];
        for (k, name) in self.state.types.iter().enumerate() {
            let of = |t: &&u32| self.state.type_id[**t as usize] as usize == k && self.radii[**t as usize] > 0.0;
            if let Some(tag) = self.shown.iter().find(of) {
                let axis = self.glyphs[k].map(|_| axis);
                let (body, extent) = self.body(k, self.colors[*tag as usize], 1.0, axis);
                types.push((name.clone(), body, extent));
            }
        }
        KeyContents::Types(types)
    }

    /// Returns the body of a particle of a type, and its extent.
    fn body(&self, type_index: usize, color: [u8; 3], radius: f32, axis: Option<F>) -> (Body, f32) {
        let caps = |axis, both| Body::Capped {
            axis,
            colors: [color, Rgb::of_palette(type_index + 4).0],
            cosine: if both { 0.5 } else { 0.0 },
            both,
        };
        match (self.glyphs[type_index], axis) {
            (Some(Glyph::Janus), Some(axis)) => (caps(axis, false), radius),
            (Some(Glyph::Triblock), Some(axis)) => (caps(axis, true), radius),
            (Some(Glyph::Ellipsoid(ratio)), Some(axis)) => {
                let ratio = ratio as f32;
                (Body::Ellipsoid { axis, ratio, across: radius, color }, radius * ratio.max(1.0))
            }
            _ => (Body::Sphere(color), radius),
        }
    }

    /// Returns the corners of a box.
    fn corners(state: &Snapshot, l: [f64; 3]) -> Vec<V> {
        let n = if state.dimensions == 2 { 4 } else { 8 };
        (0..n)
            .map(|c| {
                std::array::from_fn(|k| {
                    if state.dimensions == 2 && k == 2 { 0.0 } else { l[k] * (f64::from((c >> k) & 1) - 0.5) }
                })
            })
            .collect()
    }

    /// Returns the spheres that the picture must hold.
    fn fits(view: &View, state: &Snapshot, shown: &[u32], radii: &[f32]) -> Vec<(V, f64)> {
        let particles = shown.iter().map(|t| (state.position[*t as usize], f64::from(radii[*t as usize])));
        let framing = view.framing.unwrap_or(state.box_length);
        // without particles, the box is the only extent
        if view.edges || view.framing.is_some() || shown.is_empty() {
            let largest = shown.iter().map(|t| radii[*t as usize]).fold(0.0, f32::max);
            let corners = Self::corners(state, framing).into_iter().map(|c| (c, f64::from(largest)));
            // unwrapped molecules may extend beyond the box
            return if view.whole { corners.chain(particles).collect() } else { corners.collect() };
        }
        particles.collect()
    }

    /// Returns the opaque and the translucent bodies in the camera's coordinates; `pixels` is the smaller edge of the picture.
    pub fn solids(&self, camera: &Camera, pixels: u32, parallel: Parallel<'_>) -> [Vec<Solid>; 2] {
        let transform = |p: V| camera.transform(p).map(|x| x as f32);
        let axes = axes(self.state);
        let solid = |t: &u32| {
            let tag = *t as usize;
            let type_index = self.state.type_id[tag] as usize;
            let (radius, color) = (self.radii[tag], self.colors[tag]);
            let center = transform(self.state.position[tag]);
            let axis = axes.as_ref().map(|a| camera.rotate(a[tag]));
            let (body, extent) = self.body(type_index, color, radius, axis);
            Solid { center, extent, body }
        };
        let of = |layer: usize| {
            let tags: Vec<u32> = self.shown.iter().copied().filter(|t| self.layer(*t) == layer).collect();
            let mut out = map_slice(parallel, &tags, solid);
            out.retain(|s| s.extent > 0.0);
            out
        };
        let mut out = [of(0), of(1)];
        if self.view.bonds {
            self.bonds(camera, &mut out);
        }
        if self.view.edges {
            self.edges(camera, pixels, &mut out[0]);
        }
        out
    }

    /// Returns 0 for an opaque and 1 for a translucent particle.
    fn layer(&self, tag: u32) -> usize {
        usize::from(self.translucent[self.state.type_id[tag as usize] as usize])
    }

    /// Adds the bonds between visible particles, except those across the box boundary.
    fn bonds(&self, camera: &Camera, out: &mut [Vec<Solid>; 2]) {
        let mut visible = vec![false; self.state.len()];
        self.shown.iter().for_each(|t| visible[*t as usize] = true);
        let l = self.state.box_length;
        for b in &self.state.bonds {
            let [i, j] = b.tags.map(|t| t as usize);
            if !(visible[i] && visible[j]) {
                continue;
            }
            let (p, q) = (self.state.position[i], self.state.position[j]);
            if (0..3).any(|k| l[k] > 0.0 && (p[k] - q[k]).abs() > 0.5 * l[k]) {
                continue;
            }
            let middle: V = std::array::from_fn(|k| 0.5 * (p[k] + q[k]));
            let half = camera.rotate(std::array::from_fn(|k| 0.5 * (q[k] - p[k])));
            let radius = 0.45 * self.radii[i].min(self.radii[j]);
            let length = half.iter().map(|x| x * x).sum::<f32>().sqrt();
            if radius > 0.0 && length > 0.0 {
                let body = Body::Rod { half, radius, colors: [self.colors[i], self.colors[j]] };
                let layer = self.layer(b.tags[0]).max(self.layer(b.tags[1]));
                out[layer].push(Solid {
                    center: camera.transform(middle).map(|x| x as f32),
                    extent: length.hypot(radius),
                    body,
                });
            }
        }
    }

    /// Adds the edges of the box.
    fn edges(&self, camera: &Camera, pixels: u32, out: &mut Vec<Solid>) {
        let corners = Self::corners(self.state, self.state.box_length);
        let center = camera.transform([0.0; 3]);
        // about 1.6 pixels in a picture of 900 pixels
        let radius = 0.0009 * pixels as f32 / camera.scale(center[2] as f32);
        let [r, g, b] = self.view.background.0.map(f32::from);
        let dark = 0.3 * r + 0.6 * g + 0.1 * b < 110.0;
        let color = if dark { [190; 3] } else { [70; 3] };
        for (i, a) in corners.iter().enumerate() {
            // an edge joins two corners that differ in one coordinate
            for (_, b) in corners.iter().enumerate().filter(|(j, _)| *j > i && (i ^ j).count_ones() == 1) {
                let middle: V = std::array::from_fn(|k| 0.5 * (a[k] + b[k]));
                let half = camera.rotate(std::array::from_fn(|k| 0.5 * (b[k] - a[k])));
                let length = half.iter().map(|x| x * x).sum::<f32>().sqrt();
                let center = camera.transform(middle).map(|x| x as f32);
                out.push(Solid { center, extent: length.hypot(radius), body: Body::Edge { half, radius, color } });
            }
        }
    }
}
