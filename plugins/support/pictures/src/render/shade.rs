//! Shading: diffuse and specular light, ambient occlusion and depth haze.

use crate::color::Rgb;
use crate::image::Image;
use crate::parallel::{Parallel, map};
use crate::render::camera::Camera;
use crate::render::raster::{F, Hit, add, dot, unit};

/// Parameters of the light.
#[derive(Clone, Copy, Debug)]
pub struct Light {
    /// Background color.
    pub background: Rgb,
    /// Length scale of the ambient occlusion: the radius of a particle.
    pub radius: f32,
    /// Smallest and largest depth of the scene.
    pub depths: [f32; 2],
}

/// What is visible at each pixel.
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    /// Opaque bodies.
    pub opaque: &'a [Hit],
    /// Translucent bodies; empty if there are none.
    pub translucent: &'a [Hit],
}

/// Opacity of a translucent body seen face on, and what is added towards its rim.
const OPACITY: [f32; 2] = [0.14, 0.30];

/// Number of directions in which occlusion is sampled at each pixel.
const DIRECTIONS: usize = 14;

/// Returns vectors distributed uniformly over the sphere, of various lengths.
fn directions() -> [F; DIRECTIONS] {
    std::array::from_fn(|k| {
        let z = 1.0 - 2.0 * (k as f32 + 0.5) / DIRECTIONS as f32;
        let angle = 2.399_963 * k as f32;
        let s = (1.0 - z * z).sqrt();
        // 0.35 to 4 radii, uncorrelated with the direction
        let length = 0.35 * 11.4f32.powf(((5 * k) % DIRECTIONS) as f32 / (DIRECTIONS - 1) as f32);
        [s * angle.cos(), s * angle.sin(), z].map(|x| x * length)
    })
}

/// Returns the fraction of ambient light that is blocked at a pixel, 0 to 1.
fn occlusion(camera: &Camera, hits: &[Hit], [w, h]: [usize; 2], at: [usize; 2], radius: f32, samples: &[F]) -> f32 {
    let hit = &hits[at[1] * w + at[0]];
    let p = camera.point(at[0] as f32 + 0.5, at[1] as f32 + 0.5, hit.depth);
    // a different rotation about the line of sight for each of 4 × 4 pixels; averaging over them removes the noise
    let angle = ((at[0] & 3) + 4 * (at[1] & 3)) as f32 * 5.0 * std::f32::consts::FRAC_PI_8;
    let (s, c) = angle.sin_cos();
    let mut sum = 0.0;
    for d in samples {
        let d = [c * d[0] - s * d[1], s * d[0] + c * d[1], d[2]];
        let side = dot(d, hit.normal);
        let d = if side < 0.0 { d.map(|x| -x) } else { d };
        let q = add(add(p, 0.06 * radius, hit.normal), radius, d);
        let [x, y] = camera.project(q);
        if q[2] <= 0.0 || x < 0.0 || y < 0.0 || x >= w as f32 || y >= h as f32 {
            continue;
        }
        let other = &hits[y as usize * w + x as usize];
        if other.lit && other.depth < q[2] - 0.03 * radius {
            // bodies far in front block less
            let gap = (p[2] - other.depth).max(0.0) / (4.0 * radius);
            sum += 1.0 / (1.0 + gap * gap);
        }
    }
    sum / samples.len() as f32
}

/// Returns the color of what is behind, seen through a translucent body; `key` is the direction of the light.
fn through(near: &Hit, behind: F, key: F) -> F {
    let diffuse = dot(near.normal, key).max(0.0);
    let facing = (-near.normal[2]).clamp(0.0, 1.0);
    let opacity = OPACITY[0] + OPACITY[1] * (1.0 - facing).powi(3);
    let own = Rgb(near.color).linear().map(|c| c * (0.6 + 0.4 * diffuse));
    std::array::from_fn(|k| behind[k] + opacity * (own[k] - behind[k]))
}

/// Shades the picture; `fine` × `fine` rays are averaged per pixel.
pub fn shade(
    camera: &Camera,
    layers: Layers<'_>,
    [w, h]: [usize; 2],
    fine: usize,
    light: Light,
    parallel: Parallel<'_>,
) -> Image {
    let hits = layers.opaque;
    let samples = directions();
    let occluded = map(parallel, h, |y| -> Vec<f32> {
        let one = |x: usize| match hits[y * w + x].lit {
            true => occlusion(camera, hits, [w, h], [x, y], light.radius, &samples),
            false => 0.0,
        };
        (0..w).map(one).collect()
    })
    .concat();
    let key = unit([-0.45, -0.75, -0.8]);
    let half_vector = unit(add(key, 1.0, [0.0, 0.0, -1.0]));
    let background = light.background.linear();
    let [first, last] = light.depths;
    let opaque = |x: usize, y: usize| -> F {
        let hit = &hits[y * w + x];
        if !hit.depth.is_finite() {
            return background;
        }
        let own = Rgb(hit.color).linear();
        if !hit.lit {
            return own;
        }
        // the mean over 4 × 4 pixels at about the same depth, which have sampled different directions
        let (mut sum, mut n) = (0.0, 0.0);
        for j in y.saturating_sub(2)..(y + 2).min(h) {
            for i in x.saturating_sub(2)..(x + 2).min(w) {
                let other = &hits[j * w + i];
                if other.lit && (other.depth - hit.depth).abs() < 0.5 * light.radius {
                    sum += occluded[j * w + i];
                    n += 1.0;
                }
            }
        }
        let open = 1.0 - (1.45 * sum / f32::max(n, 1.0)).min(0.92);
        let diffuse = dot(hit.normal, key).max(0.0);
        let facing = (-hit.normal[2]).max(0.0);
        let glance = dot(hit.normal, half_vector).max(0.0).powi(40);
        let lightness = open * (0.42 + 0.52 * diffuse + 0.14 * facing);
        let far = ((hit.depth - first) / (last - first).max(1e-6)).clamp(0.0, 1.0);
        let haze = 0.16 * far * far;
        std::array::from_fn(|k| {
            let c = own[k] * lightness + 0.10 * open * glance;
            c + haze * (background[k] - c)
        })
    };
    let color = |x: usize, y: usize| -> F {
        let (behind, k) = (opaque(x, y), y * w + x);
        let front = layers.translucent.get(k).filter(|f| f.depth < hits[k].depth);
        front.map_or(behind, |f| through(f, behind, key))
    };
    let [width, height] = [w / fine, h / fine];
    let pixels = map(parallel, height, |y| -> Vec<u8> {
        let pixel = |x: usize| {
            let mut sum = [0.0f32; 3];
            for j in 0..fine {
                for i in 0..fine {
                    // clamp highlights before averaging, so that edges stay smooth
                    let c = color(x * fine + i, y * fine + j).map(|c| c.min(1.0));
                    sum = add(sum, 1.0, c);
                }
            }
            sum.map(|c| (255.0 * (c / (fine * fine) as f32).clamp(0.0, 1.0).powf(1.0 / 2.2) + 0.5) as u8)
        };
        (0..width).flat_map(pixel).collect()
    })
    .concat();
    Image { width: width as u32, height: height as u32, pixels }
}
