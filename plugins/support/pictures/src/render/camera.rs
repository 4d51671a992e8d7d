//! The camera: from positions to pixels.

/// A vector in the coordinates of the box.
pub type V = [f64; 3];

pub fn dot(a: V, b: V) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: V, b: V) -> V {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// A camera. Its coordinates are x to the right, y down, z away from the viewer.
#[derive(Clone, Copy, Debug)]
pub struct Camera {
    right: V,
    up: V,
    /// Towards the viewer.
    back: V,
    center: V,
    /// Distance from the viewer to the center.
    distance: f64,
    /// Pixels per unit length, at depth 1 with perspective or at every depth without.
    focal: f64,
    perspective: bool,
    /// Pixel of the center.
    middle: [f64; 2],
}

impl Camera {
    /// Makes a camera in the direction of azimuth and elevation (radians) whose picture of a given size holds all spheres
    /// (center, radius).
    pub fn new([azimuth, elevation]: [f64; 2], perspective: bool, size: [u32; 2], spheres: &[(V, f64)]) -> Self {
        let (sa, ca) = azimuth.sin_cos();
        let (se, ce) = elevation.sin_cos();
        let back = [ce * ca, ce * sa, se];
        let right = [-sa, ca, 0.0];
        let up = cross(back, right);
        let half = size.map(|n| 0.5 * f64::from(n));
        let ends = |k: usize| {
            let low = spheres.iter().map(|b| b.0[k] - b.1).fold(f64::INFINITY, f64::min);
            (low, spheres.iter().map(|b| b.0[k] + b.1).fold(f64::NEG_INFINITY, f64::max))
        };
        let center = std::array::from_fn(|k| 0.5 * (ends(k).0 + ends(k).1));
        let reach = |(p, r): &(V, f64)| (0..3).map(|k| (p[k] - center[k]).powi(2)).sum::<f64>().sqrt() + r;
        let radius = spheres.iter().map(reach).fold(1e-9, f64::max);
        let distance = if perspective { 3.6 * radius } else { 1.5 * radius };
        let mut camera = Self { right, up, back, center, distance, focal: 1.0, perspective, middle: half };
        // fit all spheres with a margin; with perspective, the center of the picture is not the pixel of the center
        let mut ends = [[f64::INFINITY, f64::NEG_INFINITY]; 2];
        for (p, r) in spheres {
            let [x, y, z] = camera.transform(*p);
            for (k, v) in [x, y].into_iter().enumerate() {
                let [low, high] = camera.tangents(v, z, *r).unwrap_or([-1.0, 1.0]);
                ends[k] = [ends[k][0].min(low), ends[k][1].max(high)];
            }
        }
        let focal =
            (0..2).map(|k| 0.94 * 2.0 * half[k] / (ends[k][1] - ends[k][0]).max(1e-12)).fold(f64::INFINITY, f64::min);
        camera.middle = std::array::from_fn(|k| half[k] - 0.5 * focal * (ends[k][0] + ends[k][1]));
        camera.focal = focal;
        camera
    }

    /// Transforms a position to the camera's coordinates.
    pub fn transform(&self, p: V) -> V {
        let d = std::array::from_fn(|k| p[k] - self.center[k]);
        [dot(d, self.right), -dot(d, self.up), self.distance - dot(d, self.back)]
    }

    /// Transforms a direction to the camera's coordinates.
    pub fn rotate(&self, d: V) -> [f32; 3] {
        [dot(d, self.right) as f32, -dot(d, self.up) as f32, -dot(d, self.back) as f32]
    }

    /// Returns the pixels per unit length at a depth.
    pub fn scale(&self, z: f32) -> f32 {
        if self.perspective { self.focal as f32 / z } else { self.focal as f32 }
    }

    /// Returns the pixels per unit length at the depth of the center.
    pub fn scale_at_center(&self) -> f64 {
        f64::from(self.scale(self.distance as f32))
    }

    /// Returns the extent of a sphere along one axis of a picture with focal length 1; `None` behind the viewer.
    fn tangents(&self, v: f64, z: f64, r: f64) -> Option<[f64; 2]> {
        if !self.perspective {
            return Some([v - r, v + r]);
        }
        // tangents of the sphere's cross section with the plane of this axis and the depth
        let root = r * (v * v + z * z - r * r).max(0.0).sqrt();
        let under = z * z - r * r;
        (z > r * 1.001).then(|| [(v * z - root) / under, (v * z + root) / under])
    }

    /// Returns the pixels that a sphere may cover: first and last column, first and last row; `None` behind the viewer.
    pub fn bounds(&self, c: [f32; 3], r: f32) -> Option<[[f32; 2]; 2]> {
        let one = |k: usize| {
            let ends = self.tangents(f64::from(c[k]), f64::from(c[2]), f64::from(r))?;
            Some(ends.map(|e| (self.middle[k] + self.focal * e) as f32))
        };
        Some([one(0)?, one(1)?])
    }

    /// Returns the ray through a point of the picture: origin and unit direction.
    pub fn ray(&self, x: f32, y: f32) -> ([f32; 3], [f32; 3]) {
        let f = self.focal as f32;
        let (u, v) = ((x - self.middle[0] as f32) / f, (y - self.middle[1] as f32) / f);
        if self.perspective {
            let n = 1.0 / (u * u + v * v + 1.0).sqrt();
            ([0.0; 3], [u * n, v * n, n])
        } else {
            ([u, v, 0.0], [0.0, 0.0, 1.0])
        }
    }

    /// Returns the point at a given depth that projects to a point of the picture.
    pub fn point(&self, x: f32, y: f32, z: f32) -> [f32; 3] {
        let s = self.scale(z);
        [(x - self.middle[0] as f32) / s, (y - self.middle[1] as f32) / s, z]
    }

    /// Projects a point to the picture.
    pub fn project(&self, p: [f32; 3]) -> [f32; 2] {
        let s = self.scale(p[2]);
        [self.middle[0] as f32 + s * p[0], self.middle[1] as f32 + s * p[1]]
    }

    /// Returns the same camera for a picture with k times as many pixels in each direction.
    pub fn enlarged(self, k: u32) -> Self {
        let k = f64::from(k);
        Self { focal: self.focal * k, middle: self.middle.map(|m| m * k), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_the_right_directions() {
        // from the front: x to the right, z up, y away
        let front = Camera::new([-std::f64::consts::FRAC_PI_2, 0.0], false, [200, 100], &[([0.0; 3], 1.0)]);
        let p = front.transform([0.3, 0.2, 0.1]).map(|x| (x * 1e6).round() / 1e6);
        assert_eq!([p[0], p[1]], [0.3, -0.1]);
        assert!((p[2] - front.distance - 0.2).abs() < 1e-9);
        // from above: x to the right, y up
        let top = Camera::new(
            [-std::f64::consts::FRAC_PI_2, std::f64::consts::FRAC_PI_2],
            false,
            [100, 100],
            &[([0.0; 3], 1.0)],
        );
        let p = top.transform([0.3, 0.2, 0.1]).map(|x| (x * 1e6).round() / 1e6);
        assert_eq!([p[0], p[1]], [0.3, -0.2]);
    }

    #[test]
    fn everything_fits_and_rays_hit_projected_points() {
        let spheres: Vec<(V, f64)> =
            (0..8).map(|k| ([0, 1, 2].map(|a| f64::from((k >> a) & 1) * 10.0 - 5.0), 0.5)).collect();
        for perspective in [false, true] {
            let c = Camera::new([0.4, 0.3], perspective, [300, 200], &spheres);
            for (p, r) in &spheres {
                let q = c.transform(*p).map(|x| x as f32);
                let [[a, b], [d, e]] = c.bounds(q, *r as f32).expect("in front");
                assert!(a >= 0.0 && b <= 300.0 && d >= 0.0 && e <= 200.0);
                let [x, y] = c.project(q);
                let back = c.point(x, y, q[2]);
                // single precision of some hundred pixels
                assert!((0..3).all(|k| (back[k] - q[k]).abs() < 1e-3));
                let (o, dir) = c.ray(x, y);
                let t = (q[2] - o[2]) / dir[2];
                // as above, along the ray
                assert!((0..3).all(|k| (o[k] + t * dir[k] - q[k]).abs() < 1e-3));
            }
        }
    }
}
