//! What is seen at each pixel: rays against balls, ellipsoids and rods, exactly, with a depth for each pixel.

use crate::camera::Camera;
use crate::parallel::{Parallel, map, pieces};

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

/// What a body looks like.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// A ball of one color.
    Ball([u8; 3]),
    /// A ball with a cap of another color where the normal and the axis have a cosine above the number; `true`: at both ends.
    Capped { axis: F, colors: [[u8; 3]; 2], cosine: f32, both: bool },
    /// An ellipsoid whose half axis along `axis` is `ratio` times the others, `across`.
    Ellipsoid { axis: F, ratio: f32, across: f32, color: [u8; 3] },
    /// A rod without ends: half of the vector between its ends, radius, colors of its halves.
    Rod { half: F, radius: f32, colors: [[u8; 3]; 2] },
    /// The same, without shading.
    Edge { half: F, radius: f32, color: [u8; 3] },
}

/// A body, in the camera's coordinates.
#[derive(Clone, Copy, Debug)]
pub struct Solid {
    /// Its center.
    pub center: F,
    /// No part of it is farther from the center.
    pub reach: f32,
    /// What it is.
    pub body: Body,
}

/// What is seen at a pixel.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    /// Depth; infinite where nothing is.
    pub depth: f32,
    /// The surface's normal, towards the viewer.
    pub normal: F,
    /// Its color.
    pub color: [u8; 3],
    /// Whether light counts.
    pub lit: bool,
}

const NOTHING: Hit = Hit { depth: f32::INFINITY, normal: [0.0, 0.0, -1.0], color: [0; 3], lit: false };

/// Pixels of a tile's edge.
const TILE: usize = 32;

/// Where a ray first meets an infinite cylinder around the axis, between its ends.
fn rod(o: F, d: F, center: F, half: F, radius: f32) -> Option<(f32, F, f32)> {
    let length = dot(half, half).sqrt();
    let axis = half.map(|x| x / length.max(1e-20));
    let across = |v: F| add(v, -dot(v, axis), axis);
    let speed = dot(across(d), across(d));
    if speed < 1e-12 {
        return None;
    }
    // from the point of the ray next to the center: numbers stay small
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
    /// The distance at which a ray meets it, the normal and the color there.
    fn meet(&self, o: F, d: F) -> Option<(f32, F, [u8; 3])> {
        let c = sub(self.center, o);
        match self.body {
            Body::Ball(color) => {
                let b = dot(c, d);
                let l = add(c, -b, d);
                let under = self.reach * self.reach - dot(l, l);
                if under <= 0.0 {
                    return None;
                }
                let root = under.sqrt();
                Some((b - root, [0, 1, 2].map(|k| (-l[k] - root * d[k]) / self.reach), color))
            }
            Body::Capped { axis, colors, cosine, both } => {
                let (t, n, _) = Self { body: Body::Ball(colors[0]), ..*self }.meet(o, d)?;
                let cos = dot(n, axis);
                let cap = cos > cosine || (both && -cos > cosine);
                Some((t, n, colors[usize::from(cap)]))
            }
            Body::Ellipsoid { axis, ratio, across, color } => {
                // in a space stretched along the axis it is a ball
                let stretched = |v: F| add(v, (1.0 / ratio - 1.0) * dot(v, axis), axis);
                let (c, d) = (stretched(c), stretched(d));
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
                Some(((b - root) / speed, unit(stretched(p)), color))
            }
            Body::Rod { half, radius, colors } => {
                rod(o, d, self.center, half, radius).map(|(t, n, along)| (t, n, colors[usize::from(along > 0.0)]))
            }
            Body::Edge { half, radius, color } => rod(o, d, self.center, half, radius).map(|(t, n, _)| (t, n, color)),
        }
    }
}

/// What is seen at each pixel of a picture of `size`. The result does not depend on the number of threads: in each tile
/// bodies come in the order of their depth, and of their number where that is the same.
pub fn cast(camera: &Camera, solids: &[Solid], [width, height]: [usize; 2], parallel: Parallel<'_>) -> Vec<Hit> {
    let tiles = [width.div_ceil(TILE), height.div_ceil(TILE)];
    let span = |[low, high]: [f32; 2], n: usize| -> Option<(usize, usize)> {
        (high >= 0.0 && low <= n as f32 && low.is_finite() && high.is_finite())
            .then(|| (low.max(0.0) as usize, (high as usize).min(n - 1)))
            .filter(|(a, b)| a <= b)
    };
    let covered: Vec<Option<[(usize, usize); 2]>> = pieces(parallel, solids, |s| {
        let [x, y] = camera.bounds(s.center, s.reach)?;
        Some([span(x, width)?, span(y, height)?])
    });
    let tiles_of = |c: &[(usize, usize); 2]| {
        let [x, y] = c.map(|(a, b)| (a / TILE, b / TILE));
        (y.0..=y.1).flat_map(move |j| (x.0..=x.1).map(move |i| j * tiles[0] + i))
    };
    // bodies of each tile, one row after the other
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
        let mut rows = vec![NOTHING; width * TILE.min(height - j * TILE)];
        for i in 0..tiles[0] {
            let t = j * tiles[0] + i;
            let mut order: Vec<(f32, u32)> = members[starts[t]..starts[t + 1]]
                .iter()
                .map(|k| (solids[*k as usize].center[2] - solids[*k as usize].reach, *k))
                .collect();
            order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            tile(camera, solids, &covered, &order, &mut rows, [width, i * TILE, j * TILE]);
        }
        rows
    });
    bands.concat()
}

fn tile(
    camera: &Camera,
    solids: &[Solid],
    covered: &[Option<[(usize, usize); 2]>],
    order: &[(f32, u32)],
    rows: &mut [Hit],
    [width, left, top]: [usize; 3],
) {
    let (right, bottom) = ((left + TILE).min(width) - 1, top + rows.len() / width - 1);
    for (count, (nearest, k)) in order.iter().enumerate() {
        // nothing that follows can be in front of what is seen all over the tile
        if count % 128 == 127 {
            let seen = rows.chunks(width).flat_map(|r| &r[left..=right]).map(|h| h.depth);
            if seen.fold(0.0, f32::max) < *nearest {
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
                if let Some((t, normal, color)) = solid.meet(o, d) {
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
        (a - b).abs() < 1e-4
    }

    #[test]
    fn rays_meet_bodies_where_they_are() {
        let at = |body, reach| Solid { center: [0.0, 0.0, 10.0], reach, body };
        let ball = at(Body::Ball([1, 2, 3]), 2.0);
        let (t, n, _) = ball.meet([1.0, 0.0, 0.0], [0.0, 0.0, 1.0]).expect("met");
        assert!(near(t, 10.0 - 3f32.sqrt()) && near(n[0], 0.5) && near(n[2], -0.75f32.sqrt()));
        assert!(ball.meet([2.1, 0.0, 0.0], [0.0, 0.0, 1.0]).is_none());
        // three times as long along x
        let long = at(Body::Ellipsoid { axis: [1.0, 0.0, 0.0], ratio: 3.0, across: 1.0, color: [0; 3] }, 3.0);
        let (t, n, _) = long.meet([1.5, 0.0, 0.0], [0.0, 0.0, 1.0]).expect("met");
        assert!(near(t, 10.0 - 0.75f32.sqrt()), "{t}");
        // gradient of x²/9 + z²
        let g = unit([1.5 / 9.0, 0.0, -0.75f32.sqrt()]);
        assert!(near(n[0], g[0]) && near(n[2], g[2]));
        assert!(
            long.meet([2.9, 0.0, 0.0], [0.0, 0.0, 1.0]).is_some()
                && long.meet([0.0, 1.1, 0.0], [0.0, 0.0, 1.0]).is_none()
        );
        let bond = at(Body::Rod { half: [2.0, 0.0, 0.0], radius: 0.5, colors: [[1; 3], [2; 3]] }, 2.1);
        let (t, n, c) = bond.meet([1.0, 0.3, 0.0], [0.0, 0.0, 1.0]).expect("met");
        assert!(near(t, 9.6) && near(n[1], 0.6) && c == [2; 3]);
        assert!(bond.meet([2.1, 0.0, 0.0], [0.0, 0.0, 1.0]).is_none());
        let janus = at(Body::Capped { axis: [1.0, 0.0, 0.0], colors: [[1; 3], [2; 3]], cosine: 0.0, both: false }, 1.0);
        assert_eq!(janus.meet([0.5, 0.0, 0.0], [0.0, 0.0, 1.0]).expect("met").2, [2; 3]);
        assert_eq!(janus.meet([-0.5, 0.0, 0.0], [0.0, 0.0, 1.0]).expect("met").2, [1; 3]);
    }
}
