//! From positions to pixels.

/// Vectors.
pub type V = [f64; 3];

pub fn dot(a: V, b: V) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: V, b: V) -> V {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// A camera. Its coordinates are x to the right, y downwards, z away from the viewer.
#[derive(Clone, Copy, Debug)]
pub struct Camera {
    right: V,
    up: V,
    /// Towards the viewer.
    back: V,
    center: V,
    /// From the viewer to the center.
    distance: f64,
    /// Pixels of a unit length at depth 1 in perspective, or at every depth without it.
    focal: f64,
    perspective: bool,
    /// The pixel at which the center is seen.
    middle: [f64; 2],
}

impl Camera {
    /// A camera in the direction of the angles (radians) that sees all of these balls (center, radius) in a picture of this
    /// size.
    pub fn new([azimuth, elevation]: [f64; 2], perspective: bool, size: [u32; 2], balls: &[(V, f64)]) -> Self {
        let (sa, ca) = azimuth.sin_cos();
        let (se, ce) = elevation.sin_cos();
        let back = [ce * ca, ce * sa, se];
        let right = [-sa, ca, 0.0];
        let up = cross(back, right);
        let half = size.map(|n| 0.5 * f64::from(n));
        let ends = |k: usize| {
            let low = balls.iter().map(|b| b.0[k] - b.1).fold(f64::INFINITY, f64::min);
            (low, balls.iter().map(|b| b.0[k] + b.1).fold(f64::NEG_INFINITY, f64::max))
        };
        let center = std::array::from_fn(|k| 0.5 * (ends(k).0 + ends(k).1));
        let reach = |(p, r): &(V, f64)| (0..3).map(|k| (p[k] - center[k]).powi(2)).sum::<f64>().sqrt() + r;
        let radius = balls.iter().map(reach).fold(1e-9, f64::max);
        let distance = if perspective { 3.6 * radius } else { 1.5 * radius };
        let mut camera = Self { right, up, back, center, distance, focal: 1.0, perspective, middle: half };
        // what fits, with some room around it; in perspective its middle is not where the center is seen
        let mut ends = [[f64::INFINITY, f64::NEG_INFINITY]; 2];
        for (p, r) in balls {
            let [x, y, z] = camera.place(*p);
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

    /// A position in the camera's coordinates.
    pub fn place(&self, p: V) -> V {
        let d = std::array::from_fn(|k| p[k] - self.center[k]);
        [dot(d, self.right), -dot(d, self.up), self.distance - dot(d, self.back)]
    }

    /// A direction in the camera's coordinates.
    pub fn turn(&self, d: V) -> [f32; 3] {
        [dot(d, self.right) as f32, -dot(d, self.up) as f32, -dot(d, self.back) as f32]
    }

    /// Pixels of a unit length at this depth.
    pub fn scale(&self, z: f32) -> f32 {
        if self.perspective { self.focal as f32 / z } else { self.focal as f32 }
    }

    /// Ends of a ball along one axis of a picture with a focal length of 1; `None` behind the viewer.
    fn tangents(&self, v: f64, z: f64, r: f64) -> Option<[f64; 2]> {
        if !self.perspective {
            return Some([v - r, v + r]);
        }
        // tangents of the circle that is the ball's section with the plane of this axis and the depth
        let root = r * (v * v + z * z - r * r).max(0.0).sqrt();
        let under = z * z - r * r;
        (z > r * 1.001).then(|| [(v * z - root) / under, (v * z + root) / under])
    }

    /// The pixels that a ball may cover: first and last column, first and last row; `None` behind the viewer.
    pub fn bounds(&self, c: [f32; 3], r: f32) -> Option<[[f32; 2]; 2]> {
        let one = |k: usize| {
            let ends = self.tangents(f64::from(c[k]), f64::from(c[2]), f64::from(r))?;
            Some(ends.map(|e| (self.middle[k] + self.focal * e) as f32))
        };
        Some([one(0)?, one(1)?])
    }

    /// The ray through a point of the picture: a point and a direction of length 1.
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

    /// The point at a depth that is seen at a point of the picture.
    pub fn point(&self, x: f32, y: f32, z: f32) -> [f32; 3] {
        let s = self.scale(z);
        [(x - self.middle[0] as f32) / s, (y - self.middle[1] as f32) / s, z]
    }

    /// Where a point is seen.
    pub fn project(&self, p: [f32; 3]) -> [f32; 2] {
        let s = self.scale(p[2]);
        [self.middle[0] as f32 + s * p[0], self.middle[1] as f32 + s * p[1]]
    }

    /// The same camera for a picture with k times as many pixels in each direction.
    pub fn enlarged(self, k: u32) -> Self {
        let k = f64::from(k);
        Self { focal: self.focal * k, middle: self.middle.map(|m| m * k), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_lie_as_they_should() {
        // from the front: x to the right, z upwards, y away
        let front = Camera::new([-std::f64::consts::FRAC_PI_2, 0.0], false, [200, 100], &[([0.0; 3], 1.0)]);
        let p = front.place([0.3, 0.2, 0.1]).map(|x| (x * 1e6).round() / 1e6);
        assert_eq!([p[0], p[1]], [0.3, -0.1]);
        assert!((p[2] - front.distance - 0.2).abs() < 1e-9);
        // from above: x to the right, y upwards
        let top = Camera::new(
            [-std::f64::consts::FRAC_PI_2, std::f64::consts::FRAC_PI_2],
            false,
            [100, 100],
            &[([0.0; 3], 1.0)],
        );
        let p = top.place([0.3, 0.2, 0.1]).map(|x| (x * 1e6).round() / 1e6);
        assert_eq!([p[0], p[1]], [0.3, -0.2]);
    }

    #[test]
    fn everything_fits_and_rays_meet_what_is_projected() {
        let balls: Vec<(V, f64)> =
            (0..8).map(|k| ([0, 1, 2].map(|a| f64::from((k >> a) & 1) * 10.0 - 5.0), 0.5)).collect();
        for perspective in [false, true] {
            let c = Camera::new([0.4, 0.3], perspective, [300, 200], &balls);
            for (p, r) in &balls {
                let q = c.place(*p).map(|x| x as f32);
                let [[a, b], [d, e]] = c.bounds(q, *r as f32).expect("in front");
                assert!(a >= 0.0 && b <= 300.0 && d >= 0.0 && e <= 200.0);
                let [x, y] = c.project(q);
                let back = c.point(x, y, q[2]);
                assert!((0..3).all(|k| (back[k] - q[k]).abs() < 1e-3));
                let (o, dir) = c.ray(x, y);
                let t = (q[2] - o[2]) / dir[2];
                assert!((0..3).all(|k| (o[k] + t * dir[k] - q[k]).abs() < 1e-3));
            }
        }
    }
}
