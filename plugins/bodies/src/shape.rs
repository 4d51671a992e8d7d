//! Mass, center and principal axes of a body.

use galamost_plugin_api::prelude::*;

/// A rigid arrangement of masses.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Mass.
    pub mass: f64,
    /// Center of mass, in the frame of the given places.
    pub center: [f64; 3],
    /// Rotation from the frame of the body to that of the given places.
    pub axes: Quaternion<f64>,
    /// Moments of inertia about the axes of the body, the smallest about z; 0 for the axis of a linear body.
    pub inertia: [f64; 3],
    /// Places relative to the center, in the frame of the body.
    pub offsets: Vec<[f64; 3]>,
}

/// A moment below this part of the largest one is that of rounding.
const LINEAR: f64 = 1e-9;

impl Shape {
    /// Returns the shape of masses at these places.
    ///
    /// # Errors
    /// Returns an error if there is no mass.
    pub fn new(places: &[[f64; 3]], masses: &[f64]) -> Result<Self, String> {
        let mass: f64 = masses.iter().sum();
        if mass.is_nan() || mass <= 0.0 {
            return Err("its particles have no mass".into());
        }
        let mean = |k: usize| places.iter().zip(masses).map(|(r, m)| m * r[k]).sum::<f64>() / mass;
        let center = [mean(0), mean(1), mean(2)];
        let places: Vec<[f64; 3]> = places.iter().map(|r| std::array::from_fn(|k| r[k] - center[k])).collect();
        let mut tensor = [[0.0; 3]; 3];
        for (r, m) in places.iter().zip(masses) {
            let square: f64 = r.iter().map(|x| x * x).sum();
            for (i, row) in tensor.iter_mut().enumerate() {
                for (j, entry) in row.iter_mut().enumerate() {
                    *entry += m * (if i == j { square } else { 0.0 } - r[i] * r[j]);
                }
            }
        }
        let (moments, axes) = principal_axes(tensor);
        let largest = moments.into_iter().fold(0.0, f64::max);
        let inertia = moments.map(|i| if i > LINEAR * largest { i } else { 0.0 });
        let offsets = places.iter().map(|r| axes.rotate_back(Vec3::from(*r)).f64()).collect();
        Ok(Self { mass, center, axes, inertia, offsets })
    }
}

/// Diagonalizes a symmetric matrix by Jacobi rotations. Returns the eigenvalues, the smallest last, and the rotation whose
/// axes are the eigenvectors.
fn principal_axes(mut a: [[f64; 3]; 3]) -> ([f64; 3], Quaternion<f64>) {
    let mut v = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let scale = a.iter().flatten().fold(0.0f64, |m, x| m.max(x.abs()));
    // each sweep squares the rest; six are enough for any matrix
    for (p, q) in [(0, 1), (0, 2), (1, 2)].into_iter().cycle().take(30) {
        if a[p][q].abs() <= 1e-16 * scale {
            continue;
        }
        let theta = 0.5 * (a[q][q] - a[p][p]) / a[p][q];
        let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
        let c = t.hypot(1.0).recip();
        let s = t * c;
        for row in &mut a {
            (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
        }
        (a[p], a[q]) =
            (std::array::from_fn(|k| c * a[p][k] - s * a[q][k]), std::array::from_fn(|k| s * a[p][k] + c * a[q][k]));
        for row in &mut v {
            (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
        }
    }
    let mut order = [0, 1, 2];
    order.sort_by(|i, j| a[*j][*j].total_cmp(&a[*i][*i]));
    let column = |k: usize| Vec3::new(v[0][order[k]], v[1][order[k]], v[2][order[k]]);
    let (x, z) = (column(0), column(2));
    // right-handed
    let y = z.cross(x);
    (order.map(|k| a[k][k]), of_axes(x, y, z))
}

/// Returns the rotation that turns the unit vectors into these axes.
fn of_axes(x: Vec3<f64>, y: Vec3<f64>, z: Vec3<f64>) -> Quaternion<f64> {
    // of the four forms the one with the largest square root (Shepperd)
    let trace = x.x + y.y + z.z;
    let largest = [trace, x.x, y.y, z.z].into_iter().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |m| m.0);
    let q = match largest {
        0 => Quaternion::new(y.z - z.y, z.x - x.z, x.y - y.x, 1.0 + trace),
        1 => Quaternion::new(1.0 + x.x - y.y - z.z, x.y + y.x, x.z + z.x, y.z - z.y),
        2 => Quaternion::new(x.y + y.x, 1.0 - x.x + y.y - z.z, y.z + z.y, z.x - x.z),
        _ => Quaternion::new(x.z + z.x, y.z + z.y, 1.0 - x.x - y.y + z.z, x.y - y.x),
    };
    q.normalized()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Masses of a body at random: its frame has a diagonal tensor, and turning back gives the places.
    #[test]
    fn offsets_are_along_principal_axes() {
        let places: Vec<[f64; 3]> = (0..7)
            .map(|k| std::array::from_fn(|d| (1.7 * f64::from(k) + 2.3 * d as f64).sin() + 0.3 * d as f64))
            .collect();
        let masses: Vec<f64> = (0..7).map(|k| 1.0 + 0.2 * f64::from(k)).collect();
        let s = Shape::new(&places, &masses).expect("a shape");
        assert!((s.mass - 11.2).abs() < 1e-12);
        let moment = |i: usize, j: usize| -> f64 {
            let term = |(d, m): (&[f64; 3], &f64)| {
                let square: f64 = d.iter().map(|x| x * x).sum();
                m * (if i == j { square } else { 0.0 } - d[i] * d[j])
            };
            s.offsets.iter().zip(&masses).map(term).sum()
        };
        for i in 0..3 {
            assert!((moment(i, i) - s.inertia[i]).abs() < 1e-12, "{i}");
            assert!(moment(i, (i + 1) % 3).abs() < 1e-12, "{i}");
        }
        assert!(s.inertia[0] >= s.inertia[1] && s.inertia[1] >= s.inertia[2]);
        for (d, r) in s.offsets.iter().zip(&places) {
            let back = s.axes.rotate(Vec3::from(*d)).f64();
            assert!((0..3).all(|k| (back[k] + s.center[k] - r[k]).abs() < 1e-12), "{back:?} {r:?}");
        }
    }

    #[test]
    fn a_linear_body_lies_along_z() {
        let s = Shape::new(&[[1.0, 1.0, 1.0], [3.0, 3.0, 3.0]], &[1.0, 3.0]).expect("a shape");
        // m₁m₂/(m₁ + m₂) r² = 0.75 · 12
        assert!((s.inertia[0] - 9.0).abs() < 1e-12 && (s.inertia[1] - 9.0).abs() < 1e-12);
        assert_eq!(s.inertia[2], 0.0);
        assert_eq!(s.center, [2.5; 3]);
        assert!((s.offsets[0][2].abs() - 0.75 * 12f64.sqrt()).abs() < 1e-12, "{:?}", s.offsets);
        assert!(Shape::new(&[[0.0; 3]], &[0.0]).is_err());
        assert_eq!(Shape::new(&[[1.0; 3]], &[2.0]).expect("a point").inertia, [0.0; 3]);
    }
}
