//! Light: colors of pixels from what is seen there, darker where little light comes from around.

use crate::camera::Camera;
use crate::color::Rgb;
use crate::image::Image;
use crate::parallel::{Parallel, map};
use crate::raster::{F, Hit, add, dot, unit};

/// What light needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Light {
    /// The color behind everything.
    pub background: Rgb,
    /// A length in which occlusion is looked for: the radius of a particle.
    pub radius: f32,
    /// First and last depth of the scene.
    pub depths: [f32; 2],
}

/// Directions looked into at each pixel.
const LOOKS: usize = 14;

/// Directions spread evenly over a sphere, with lengths from small to large.
fn directions() -> [F; LOOKS] {
    std::array::from_fn(|k| {
        let z = 1.0 - 2.0 * (k as f32 + 0.5) / LOOKS as f32;
        let angle = 2.399_963 * k as f32;
        let s = (1.0 - z * z).sqrt();
        // 0.35 to 4 radii, in an order that has nothing to do with the direction
        let length = 0.35 * 11.4f32.powf(((5 * k) % LOOKS) as f32 / (LOOKS - 1) as f32);
        [s * angle.cos(), s * angle.sin(), z].map(|x| x * length)
    })
}

/// How much of the light from around a pixel is kept off, 0 to 1.
fn occlusion(camera: &Camera, hits: &[Hit], [w, h]: [usize; 2], at: [usize; 2], radius: f32, looks: &[F]) -> f32 {
    let hit = &hits[at[1] * w + at[0]];
    let p = camera.point(at[0] as f32 + 0.5, at[1] as f32 + 0.5, hit.depth);
    // another turn about the line of sight for each of 16 pixels; the noise goes when pixels are averaged
    let turn = ((at[0] & 3) + 4 * (at[1] & 3)) as f32 * 5.0 * std::f32::consts::FRAC_PI_8;
    let (s, c) = turn.sin_cos();
    let mut sum = 0.0;
    for d in looks {
        let d = [c * d[0] - s * d[1], s * d[0] + c * d[1], d[2]];
        let side = dot(d, hit.normal);
        let d = if side < 0.0 { d.map(|x| -x) } else { d };
        let q = add(add(p, 0.06 * radius, hit.normal), radius, d);
        let [x, y] = camera.project(q);
        if q[2] <= 0.0 || x < 0.0 || y < 0.0 || x >= w as f32 || y >= h as f32 {
            continue;
        }
        let seen = &hits[y as usize * w + x as usize];
        if seen.lit && seen.depth < q[2] - 0.03 * radius {
            // what is far in front is not near
            let gap = (p[2] - seen.depth).max(0.0) / (4.0 * radius);
            sum += 1.0 / (1.0 + gap * gap);
        }
    }
    sum / looks.len() as f32
}

/// The picture: `fine` × `fine` rays for each pixel.
pub fn shade(
    camera: &Camera,
    hits: &[Hit],
    [w, h]: [usize; 2],
    fine: usize,
    light: Light,
    parallel: Parallel<'_>,
) -> Image {
    let looks = directions();
    let occluded = map(parallel, h, |y| -> Vec<f32> {
        let one = |x: usize| match hits[y * w + x].lit {
            true => occlusion(camera, hits, [w, h], [x, y], light.radius, &looks),
            false => 0.0,
        };
        (0..w).map(one).collect()
    })
    .concat();
    let key = unit([-0.45, -0.75, -0.8]);
    let half_vector = unit(add(key, 1.0, [0.0, 0.0, -1.0]));
    let background = light.background.linear();
    let [first, last] = light.depths;
    let color = |x: usize, y: usize| -> F {
        let hit = &hits[y * w + x];
        if !hit.depth.is_finite() {
            return background;
        }
        let own = Rgb(hit.color).linear();
        if !hit.lit {
            return own;
        }
        // the mean over 4 × 4 pixels of about the same depth: each of them looked into other directions
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
    let [width, height] = [w / fine, h / fine];
    let pixels = map(parallel, height, |y| -> Vec<u8> {
        let pixel = |x: usize| {
            let mut sum = [0.0f32; 3];
            for j in 0..fine {
                for i in 0..fine {
                    // what is brighter than white must not keep an edge from being smooth
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
