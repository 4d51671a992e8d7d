//! Ray casting: exact intersections of rays with spheres, ellipsoids and rods, with a depth for each pixel.

use crate::parallel::{Parallel, map, map_slice};
use crate::render::camera::Camera;

/// A vector in the camera's coordinates.
pub type F = [f32; 3];

pub fn dot(a: F, b: F) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub fn add(a: F, s: f32, b: F) -> F {
    [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]]
}

fn sub(a: F, b: F) -> F {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub fn unit(a: F) -> F {
    let n = dot(a, a).sqrt();
    if n > 0.0 { a.map(|x| x / n) } else { [0.0, 0.0, -1.0] }
}

/// The shape and the colors of a body.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// A sphere of one color.
    Sphere([u8; 3]),
    /// A sphere with a cap of another color where the cosine of normal and axis exceeds `cosine`; `both`: caps at both ends.
    Capped { axis: F, colors: [[u8; 3]; 2], cosine: f32, both: bool },
    /// An ellipsoid of revolution: semi-axis `ratio` × `across` along `axis`, `across` perpendicular to it.
    Ellipsoid { axis: F, ratio: f32, across: f32, color: [u8; 3] },
    /// An open cylinder: half of the vector between its ends, radius, colors of its halves.
    Rod { half: F, radius: f32, colors: [[u8; 3]; 2] },
    /// An open cylinder without shading.
    Edge { half: F, radius: f32, color: [u8; 3] },
}

/// A body in the camera's coordinates.
#[derive(Clone, Copy, Debug)]
pub struct Solid {
    /// Center.
    pub center: F,
    /// Radius of a sphere around the center that contains the body.
    pub extent: f32,
    /// Shape and colors.
    pub body: Body,
}

/// The surface that is visible at a pixel.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    /// Depth; infinite on the background.
    pub depth: f32,
    /// Normal of the surface, towards the viewer.
    pub normal: F,
    /// Color of the surface.
    pub color: [u8; 3],
    /// Whether the surface is shaded.
    pub lit: bool,
}

const BACKGROUND: Hit = Hit { depth: f32::INFINITY, normal: [0.0, 0.0, -1.0], color: [0; 3], lit: false };

/// Edge of a tile in pixels.
const TILE: usize = 32;

/// Intersects a ray with an open cylinder. Returns the distance, the normal, and the coordinate along the axis.
fn intersect_rod(o: F, d: F, center: F, half: F, radius: f32) -> Option<(f32, F, f32)> {
    let length = dot(half, half).sqrt();
    let axis = half.map(|x| x / length.max(1e-20));
    let across = |v: F| add(v, -dot(v, axis), axis);
    let speed = dot(across(d), across(d));
    if speed < 1e-12 {
        return None;
    }
    // relative to the point of the ray closest to the center, for precision
    let middle = dot(sub(center, o), d);
    let m = across(sub(add(o, middle, d), center));
    let d_across = across(d);
    let b = dot(m, d_across) / speed;
    let closest = add(m, -b, d_across);
    let under = radius * radius - dot(closest, closest);
    if under <= 0.0 {
        return None;
    }
    let t = middle - b - (under / speed).sqrt();
    let p = sub(add(o, t, d), center);
    let along = dot(p, axis);
    (along.abs() <= length).then(|| (t, across(p).map(|x| x / radius), along))
}

impl Solid {
    /// Intersects a ray with the body. Returns the distance, the normal and the color.
    fn intersect(&self, o: F, d: F) -> Option<(f32, F, [u8; 3])> {
        let c = sub(self.center, o);
        match self.body {
            Body::Sphere(color) => {
                let b = dot(c, d);
                let l = add(c, -b, d);
                let under = self.extent * self.extent - dot(l, l);
                if under <= 0.0 {
                    return None;
                }
                let root = under.sqrt();
                Some((b - root, [0, 1, 2].map(|k| (-l[k] - root * d[k]) / self.extent), color))
            }
            Body::Capped { axis, colors, cosine, both } => {
                let (t, n, _) = Self { body: Body::Sphere(colors[0]), ..*self }.intersect(o, d)?;
                let cos = dot(n, axis);
                let cap = cos > cosine || (both && -cos > cosine);
                Some((t, n, colors[usize::from(cap)]))
            }
            Body::Ellipsoid { axis, ratio, across, color } => {
                // scaled along the axis, the ellipsoid is a sphere
                let scaled = |v: F| add(v, (1.0 / ratio - 1.0) * dot(v, axis), axis);
                let (c, d) = (scaled(c), scaled(d));
                let speed = dot(d, d).sqrt();
                let d = d.map(|x| x / speed);
                let b = dot(c, d);
                let l = add(c, -b, d);
                let under = across * across - dot(l, l);
                if under <= 0.0 {
                    return None;
                }
                let root = under.sqrt();
                let p = [0, 1, 2].map(|k| -l[k] - root * d[k]);
                Some(((b - root) / speed, unit(scaled(p)), color))
            }
            Body::Rod { half, radius, colors } => intersect_rod(o, d, self.center, half, radius)
                .map(|(t, n, along)| (t, n, colors[usize::from(along > 0.0)])),
            Body::Edge { half, radius, color } => {
                intersect_rod(o, d, self.center, half, radius).map(|(t, n, _)| (t, n, color))
            }
        }
    }
}

/// Finds the visible surface at each pixel of a picture. The result does not depend on the number of threads: in each tile,
/// bodies are sorted by depth and, at equal depth, by index.
pub fn cast(camera: &Camera, solids: &[Solid], [width, height]: [usize; 2], parallel: Parallel<'_>) -> Vec<Hit> {
    let tiles = [width.div_ceil(TILE), height.div_ceil(TILE)];
    let span = |[low, high]: [f32; 2], n: usize| -> Option<(usize, usize)> {
        (high >= 0.0 && low <= n as f32 && low.is_finite() && high.is_finite())
            .then(|| (low.max(0.0) as usize, (high as usize).min(n - 1)))
            .filter(|(a, b)| a <= b)
    };
    let covered: Vec<Option<[(usize, usize); 2]>> = map_slice(parallel, solids, |s| {
        let [x, y] = camera.bounds(s.center, s.extent)?;
        Some([span(x, width)?, span(y, height)?])
    });
    let tiles_of = |c: &[(usize, usize); 2]| {
        let [x, y] = c.map(|(a, b)| (a / TILE, b / TILE));
        (y.0..=y.1).flat_map(move |j| (x.0..=x.1).map(move |i| j * tiles[0] + i))
    };
    // bodies of each tile, in compressed rows
    let mut starts = vec![0usize; tiles[0] * tiles[1] + 1];
    covered.iter().flatten().flat_map(tiles_of).for_each(|t| starts[t + 1] += 1);
    for t in 0..starts.len() - 1 {
        starts[t + 1] += starts[t];
    }
    let mut next = starts.clone();
    let mut members = vec![0u32; starts[starts.len() - 1]];
    for (k, c) in covered.iter().enumerate() {
        for t in c.iter().flat_map(tiles_of) {
            members[next[t]] = k as u32;
            next[t] += 1;
        }
    }
    let bands = map(parallel, tiles[1], |j| {
        let mut rows = vec![BACKGROUND; width * TILE.min(height - j * TILE)];
        for i in 0..tiles[0] {
            let t = j * tiles[0] + i;
            let mut order: Vec<(f32, u32)> = members[starts[t]..starts[t + 1]]
                .iter()
                .map(|k| (solids[*k as usize].center[2] - solids[*k as usize].extent, *k))
                .collect();
            order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            cast_tile(camera, solids, &covered, &order, &mut rows, [width, i * TILE, j * TILE]);
        }
        rows
    });
    bands.concat()
}

/// Casts the rays of one tile. `order` holds the nearest depth and the index of each body in the tile, sorted by depth.
fn cast_tile(
    camera: &Camera,
    solids: &[Solid],
    covered: &[Option<[(usize, usize); 2]>],
    order: &[(f32, u32)],
    rows: &mut [Hit],
    [width, left, top]: [usize; 3],
) {
    let (right, bottom) = ((left + TILE).min(width) - 1, top + rows.len() / width - 1);
    for (count, (nearest, k)) in order.iter().enumerate() {
        // stop when all remaining bodies are behind the visible surface everywhere in the tile
        if count % 128 == 127 {
            let visible = rows.chunks(width).flat_map(|r| &r[left..=right]).map(|h| h.depth);
            if visible.fold(0.0, f32::max) < *nearest {
                return;
            }
        }
        let solid = &solids[*k as usize];
        let Some([x, y]) = covered[*k as usize] else { continue };
        for py in y.0.max(top)..=y.1.min(bottom) {
            let row = &mut rows[(py - top) * width..(py - top + 1) * width];
            for (px, hit) in row.iter_mut().enumerate().take(x.1.min(right) + 1).skip(x.0.max(left)) {
                if hit.depth <= *nearest {
                    continue;
                }
                let (o, d) = camera.ray(px as f32 + 0.5, py as f32 + 0.5);
                if let Some((t, normal, color)) = solid.intersect(o, d) {
                    let depth = o[2] + t * d[2];
                    if depth < hit.depth && t > 0.0 {
                        *hit = Hit { depth, normal, color, lit: !matches!(solid.body, Body::Edge { .. }) };
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f32, b: f32) -> bool {
        // depths of 10 come from squares of 100, which f32 rounds by 6e-6, and a root
        (a - b).abs() < 1e-4
    }

    #[test]
    fn rays_hit_bodies_at_their_surfaces() {
        let at = |body, extent| Solid { center: [0.0, 0.0, 10.0], extent, body };
        let ball = at(Body::Sphere([1, 2, 3]), 2.0);
        let (t, n, _) = ball.intersect([1.0, 0.0, 0.0], [0.0, 0.0, 1.0]).expect("a hit");
        assert!(near(t, 10.0 - 3f32.sqrt()) && near(n[0], 0.5) && near(n[2], -0.75f32.sqrt()));
        assert!(ball.intersect([2.1, 0.0, 0.0], [0.0, 0.0, 1.0]).is_none());
        // three times as long along x
        let long = at(Body::Ellipsoid { axis: [1.0, 0.0, 0.0], ratio: 3.0, across: 1.0, color: [0; 3] }, 3.0);
        let (t, n, _) = long.intersect([1.5, 0.0, 0.0], [0.0, 0.0, 1.0]).expect("a hit");
        assert!(near(t, 10.0 - 0.75f32.sqrt()), "{t}");
        // gradient of x²/9 + z²
        let g = unit([1.5 / 9.0, 0.0, -0.75f32.sqrt()]);
        assert!(near(n[0], g[0]) && near(n[2], g[2]));
        assert!(
            long.intersect([2.9, 0.0, 0.0], [0.0, 0.0, 1.0]).is_some()
                && long.intersect([0.0, 1.1, 0.0], [0.0, 0.0, 1.0]).is_none()
        );
        let bond = at(Body::Rod { half: [2.0, 0.0, 0.0], radius: 0.5, colors: [[1; 3], [2; 3]] }, 2.1);
        let (t, n, c) = bond.intersect([1.0, 0.3, 0.0], [0.0, 0.0, 1.0]).expect("a hit");
        assert!(near(t, 9.6) && near(n[1], 0.6) && c == [2; 3]);
        assert!(bond.intersect([2.1, 0.0, 0.0], [0.0, 0.0, 1.0]).is_none());
        let janus = at(Body::Capped { axis: [1.0, 0.0, 0.0], colors: [[1; 3], [2; 3]], cosine: 0.0, both: false }, 1.0);
        assert_eq!(janus.intersect([0.5, 0.0, 0.0], [0.0, 0.0, 1.0]).expect("a hit").2, [2; 3]);
        assert_eq!(janus.intersect([-0.5, 0.0, 0.0], [0.0, 0.0, 1.0]).expect("a hit").2, [1; 3]);
    }
}
