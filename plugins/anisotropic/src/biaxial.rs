//! Biaxial Gay-Berne ellipsoids.

use crate::gay_berne::lennard_jones;
use crate::inverse_distance;
use galamost_plugin_api::prelude::*;

/// Shape of a particle type.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Ellipsoid {
    /// Diameters along the x, y and z axes of the body.
    #[param(unit = "length")]
    sigma: [f64; 3],
    /// Relative well depths for approach along the x, y and z axes of the body.
    #[param(default = [1.0, 1.0, 1.0])]
    epsilon: [f64; 3],
}

/// Settings of the component.
#[derive(Clone, Debug, Params)]
pub struct BiaxialSettings {
    /// Shape of each particle type.
    shapes: TypeMap<Spanned<Ellipsoid>>,
    /// Shape of each particle type of the system.
    #[param(skip)]
    of_types: Vec<(String, Ellipsoid)>,
}

/// Parameters of one pair of types.
#[derive(Clone, Debug, Params)]
pub struct BiaxialInput {
    /// Well depth ε₀.
    #[param(unit = "energy", at_least = 0.0)]
    epsilon0: f64,
    /// Width σ_c of the well.
    #[param(unit = "length", above = 0.0)]
    sigma_c: f64,
    /// Shift γ of the distance, in units of σ_c.
    #[param(default = 1.0, above = 0.0)]
    gamma: f64,
    /// Exponent μ of the well depth.
    #[param(default = 2.0, above = 0.0)]
    mu: f64,
    /// Exponent ν of the well depth.
    #[param(default = 1.0)]
    nu: f64,
}

/// Largest ratio of a diameter and σ_c, or of σ_c and a diameter: det A, of the sixth power, must exist in single precision.
const WIDEST: f64 = 1e4;

/// Coefficients of one pair of types. Diameters are in units of σ_c, so that A, its determinant and its inverse do not depend on
/// the unit of length.
#[derive(Debug, PairParams)]
pub struct BiaxialRow<real> {
    /// 4 ε₀ (2 s_i s_j)^(ν/2).
    depth: real,
    inv_sigma_c: real,
    gamma: real,
    mu: real,
    nu: real,
    /// Diameters of i and j, in units of σ_c.
    sigma_ix: real,
    sigma_iy: real,
    sigma_iz: real,
    sigma_jx: real,
    sigma_jy: real,
    sigma_jz: real,
    /// (1/ε_k)^(1/μ) of i and j.
    ease_ix: real,
    ease_iy: real,
    ease_iz: real,
    ease_jx: real,
    ease_jy: real,
    ease_jz: real,
}

/// Returns the row of two shapes.
fn row(input: &BiaxialInput, i: &Ellipsoid, j: &Ellipsoid) -> BiaxialRow<f64> {
    // s = (σ_x σ_y + σ_z²) √(σ_x σ_y)
    let size = |[x, y, z]: [f64; 3]| (x * y + z * z) * (x * y).sqrt();
    let ease = |e: &Ellipsoid| e.epsilon.map(|depth| depth.powf(-1.0 / input.mu));
    let (sigma_i, sigma_j) = (i.sigma.map(|x| x / input.sigma_c), j.sigma.map(|x| x / input.sigma_c));
    let ([sigma_ix, sigma_iy, sigma_iz], [sigma_jx, sigma_jy, sigma_jz]) = (sigma_i, sigma_j);
    let ([ease_ix, ease_iy, ease_iz], [ease_jx, ease_jy, ease_jz]) = (ease(i), ease(j));
    BiaxialRow {
        depth: 4.0 * input.epsilon0 * (2.0 * size(sigma_i) * size(sigma_j)).powf(0.5 * input.nu),
        inv_sigma_c: 1.0 / input.sigma_c,
        gamma: input.gamma,
        mu: input.mu,
        nu: input.nu,
        sigma_ix,
        sigma_iy,
        sigma_iz,
        sigma_jx,
        sigma_jy,
        sigma_jz,
        ease_ix,
        ease_iy,
        ease_iz,
        ease_jx,
        ease_jy,
        ease_jz,
    }
}

impl RowInput for BiaxialInput {
    type Settings = BiaxialSettings;
    type Row = BiaxialRow<f64>;

    fn bind(settings: &mut BiaxialSettings, system: &SystemInfo) -> Result<()> {
        let mut errors = Errors::default();
        let bound = settings.shapes.bind("particle", &system.types, &mut errors).unwrap_or_default();
        for (name, shape) in system.types.iter().zip(&bound) {
            if !shape.value.sigma.iter().chain(&shape.value.epsilon).all(|x| *x > 0.0 && x.is_finite()) {
                let message = format!("the diameters and well depths of the type {name} must be above 0");
                errors.push(InputError::at(shape.at, message));
            }
        }
        settings.of_types = system.types.iter().cloned().zip(bound.iter().map(|s| s.value.clone())).collect();
        errors.into_result(Some(()))
    }
    fn row(&self, _: &BiaxialSettings) -> std::result::Result<BiaxialRow<f64>, String> {
        // a row of spheres
        let sphere = Ellipsoid { sigma: [self.sigma_c; 3], epsilon: [1.0; 3] };
        Ok(row(self, &sphere, &sphere))
    }
    fn row_between(
        &self,
        settings: &BiaxialSettings,
        types: [&str; 2],
    ) -> std::result::Result<BiaxialRow<f64>, String> {
        let shape = |name: &str| {
            let found = settings.of_types.iter().find(|(of, _)| of == name);
            let (_, shape) = found.ok_or_else(|| format!("the type {name} has no shape"))?;
            let (low, high) = (self.sigma_c / WIDEST, self.sigma_c * WIDEST);
            match shape.sigma.iter().find(|x| **x < low || **x > high) {
                None => Ok(shape),
                Some(x) => Err(format!(
                    "the diameter {x} of the type {name} and sigma_c = {} differ by more than a factor of {WIDEST}; \
                     correct one of them",
                    self.sigma_c
                )),
            }
        };
        Ok(row(self, shape(types[0])?, shape(types[1])?))
    }
    fn least_cutoff(&self, settings: &BiaxialSettings, types: [&str; 2]) -> Option<(f64, &'static str)> {
        // the largest σ, of two particles whose longest axes are along the center line
        let longest = |name: &str| {
            let (_, shape) = settings.of_types.iter().find(|(of, _)| of == name)?;
            Some(shape.sigma.iter().fold(0.0, |m: f64, x| m.max(*x)))
        };
        let (i, j) = (longest(types[0])?, longest(types[1])?);
        Some(((0.5 * (i * i + j * j)).sqrt(), "the distance of particles that touch end to end"))
    }
    fn sample(random: &mut dyn FnMut() -> f64) -> Option<BiaxialRow<f64>> {
        // both particles are of one type
        let shape = Ellipsoid {
            sigma: std::array::from_fn(|_| 0.3 + 0.5 * random()),
            epsilon: std::array::from_fn(|_| 0.5 + random()),
        };
        let input = BiaxialInput {
            epsilon0: random(),
            sigma_c: 0.3 + 0.4 * random(),
            gamma: 1.0 + 0.2 * random(),
            mu: 1.0 + random(),
            nu: 1.0 + random(),
        };
        Some(row(&input, &shape, &shape))
    }
}

/// Returns the columns of the sum of the products a aᵀ, b bᵀ and c cᵀ, weighted by u, v and w.
#[device_fn]
fn products(
    a: Vec3<real>,
    b: Vec3<real>,
    c: Vec3<real>,
    u: real,
    v: real,
    w: real,
) -> (Vec3<real>, Vec3<real>, Vec3<real>) {
    let (x, y, z) = (a * u, b * v, c * w);
    (x * a.x + y * b.x + z * c.x, x * a.y + y * b.y + z * c.y, x * a.z + y * b.z + z * c.z)
}

/// Returns the product of a matrix, given by its columns, and a vector.
#[device_fn]
fn times(x: Vec3<real>, y: Vec3<real>, z: Vec3<real>, v: Vec3<real>) -> Vec3<real> {
    x * v.x + y * v.y + z * v.z
}

/// Gay–Berne potential of biaxial ellipsoids: U = 4 ε₀ η^ν χ^μ [ϱ⁻¹² − ϱ⁻⁶], ϱ = (r − σ + γσ_c)/σ_c.
///
/// With the rotation R of each particle, the unit vector e along r and the matrices A = Σ R diag(σ_k²) Rᵀ and
/// B = Σ R diag(ε_k^(−1/μ)) Rᵀ, summed over both particles:
/// σ = (2 eᵀA⁻¹e)^(−½), η = (2 s_i s_j/det A)^½ with s = (σ_x σ_y + σ_z²)(σ_x σ_y)^½, χ = 2 eᵀB⁻¹e.
///
/// σ_x, σ_y, σ_z are the diameters along the axes of the body, whose orientation is the particle's `quaternion`. ε_x, ε_y, ε_z are
/// the well depths of two equal particles that approach along these axes with parallel bodies, in units of ε₀ η^ν. Particles of
/// different shapes may be mixed. σ_c sets the width of the well; common choices are the smallest diameter, or σ₀ of `GayBerne`.
/// `PBGBForce` of GALAMOST without patches has the a, b and c of `Aspheres` as diameters, its σ as σ_c, and its γ, ν and μ.
///
/// With γ = 1, uniaxial particles have the potential of `GayBerne` with σ₀ = σ_c = σ_x = σ_y, κ = σ_z/σ_x, ε_x = ε_y = 1 and κ' = 1/ε_z.
/// As there, the bracket continues as a straight line below ϱ = 0.4. At r = 0 the direction is undefined: U is that of a direction
/// along x, and force and torque are 0.
///
/// `r_cut` is compared with the distance of the centers, so it must exceed the longest diameter l, for different types
/// [(l_i² + l_j²)/2]^½: at r = σ + (2.5 − γ) σ_c, ϱ = 2.5 as at the usual cutoff of Lennard-Jones. A shorter one would leave particles
/// without any force where they touch end to end.
///
/// No diameter may differ from σ_c by more than a factor of 10⁴.
///
/// `mode` is `Cut` or `Smooth(r_on)`. `ShiftEnergy` and `ShiftForce` are errors, because U at the cutoff depends on the orientations.
///
/// Reference: Berardi, Fava & Zannoni, Chem. Phys. Lett. 236 (1995) 462, doi:10.1016/0009-2614(95)00212-M, and 297 (1998) 8,
/// doi:10.1016/S0009-2614(98)01090-2.
///
/// ```ron
/// BiaxialGayBerne(
///     r_cut: 3.0,
///     shapes: { "A": (sigma: [0.5, 0.4, 0.8], epsilon: [1.0, 1.7, 0.5]), "B": (sigma: [0.5, 0.5, 0.5]) },
///     pairs: {
///         ("A", "A"): (epsilon0: 1.0, sigma_c: 0.4, mu: 1.0, nu: 3.0),
///         ("A", "B"): (epsilon0: 0.8, sigma_c: 0.4),
///         ("B", "B"): (epsilon0: 1.0, sigma_c: 0.5),
///     },
/// )
/// ```
#[oriented_pair_potential("BiaxialGayBerne", input = BiaxialInput)]
fn biaxial_gay_berne(
    r: Vec3<real>,
    r2: real,
    quaternion_i: Quaternion<real>,
    quaternion_j: Quaternion<real>,
    p: &BiaxialRow<real>,
) -> (Vec3<real>, Vec3<real>, real) {
    let (ex, ey, ez) = (Vec3::new(1.0, 0.0, 0.0), Vec3::new(0.0, 1.0, 0.0), Vec3::new(0.0, 0.0, 1.0));
    // σ and χ need a direction, also at r = 0
    let inv_r = inverse_distance(r2);
    let apart = if r2 > 0.0 { 1.0 } else { 0.0 };
    let e = r * inv_r + ex * (1.0 - apart);
    let (xi, yi, zi) = (quaternion_i.rotate(ex), quaternion_i.rotate(ey), quaternion_i.rotate(ez));
    let (xj, yj, zj) = (quaternion_j.rotate(ex), quaternion_j.rotate(ey), quaternion_j.rotate(ez));

    // the columns of A, of its inverse and of its part from particle i; the unit of length is σ_c
    let (sx, sy, sz) = (p.sigma_ix * p.sigma_ix, p.sigma_iy * p.sigma_iy, p.sigma_iz * p.sigma_iz);
    let (tx, ty, tz) = (p.sigma_jx * p.sigma_jx, p.sigma_jy * p.sigma_jy, p.sigma_jz * p.sigma_jz);
    let (ax, ay, az) = products(xi, yi, zi, sx, sy, sz);
    let (bx, by, bz) = products(xj, yj, zj, tx, ty, tz);
    let (cx, cy, cz) = (ax + bx, ay + by, az + bz);
    let inv_det = 1.0 / cx.dot(cy.cross(cz));
    let (kx, ky, kz) = (cy.cross(cz) * inv_det, cz.cross(cx) * inv_det, cx.cross(cy) * inv_det);
    // the same for B
    let (fx, fy, fz) = products(xi, yi, zi, p.ease_ix, p.ease_iy, p.ease_iz);
    let (gx, gy, gz) = products(xj, yj, zj, p.ease_jx, p.ease_jy, p.ease_jz);
    let (hx, hy, hz) = (fx + gx, fy + gy, fz + gz);
    let inv_ease = 1.0 / hx.dot(hy.cross(hz));

    // A⁻¹e and B⁻¹e
    let k = times(kx, ky, kz, e);
    let w = times(hy.cross(hz), hz.cross(hx), hx.cross(hy), e) * inv_ease;
    let (q, chi) = (e.dot(k), e.dot(w));
    let sigma = (2.0 * q).rsqrt();
    let cube = sigma * sigma * sigma;
    let (bracket, slope) = lennard_jones(r2 * inv_r * p.inv_sigma_c - sigma + p.gamma);
    let depth = p.depth * inv_det.powf(0.5 * p.nu) * (2.0 * chi).powf(p.mu);
    let u = depth * bracket;
    let by_rho = depth * slope;
    let by_chi = u * p.mu / chi;

    // F = −∂U/∂ϱ (e/σ_c + 2σ³ (k − qe)/r) − 2 ∂U/∂χ (w − χe)/r
    let across = (k - e * q) * (2.0 * cube * by_rho) + (w - e * chi) * (2.0 * by_chi);
    // derivatives with respect to a rotation of i: of q, 2 k × A_i k; of χ, 2 w × B_i w; of ln det A, 2 Σ σ² u × A⁻¹u
    let turn_q = k.cross(times(ax, ay, az, k)) * 2.0;
    let turn_chi = w.cross(times(fx, fy, fz, w)) * 2.0;
    let turn_x = xi.cross(times(kx, ky, kz, xi)) * sx;
    let turn_y = yi.cross(times(kx, ky, kz, yi)) * sy;
    let turn_z = zi.cross(times(kx, ky, kz, zi)) * sz;
    let turn_det = (turn_x + turn_y + turn_z) * 2.0;
    let torque = turn_det * (0.5 * u * p.nu) - turn_q * (cube * by_rho) - turn_chi * by_chi;
    ((-e * (by_rho * p.inv_sigma_c) - across * inv_r) * apart, torque * apart, u)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gay_berne::{GayBerneInput, gay_berne};
    use galamost_plugin_api::pair::Row;

    /// A quaternion from four numbers.
    fn turned(q: [f64; 4]) -> Quaternion<f64> {
        Quaternion::new(q[0], q[1], q[2], q[3]).normalized()
    }

    #[test]
    fn uniaxial_particles_have_the_potential_of_gay_berne() {
        let uniaxial = GayBerneInput { epsilon0: 1.3, sigma0: 0.5, kappa: 3.0, kappa_prime: 5.0, mu: 2.0, nu: 1.0 };
        let shape = Ellipsoid { sigma: [0.5, 0.5, 1.5], epsilon: [1.0, 1.0, 0.2] };
        let ours = row(&BiaxialInput { epsilon0: 1.3, sigma_c: 0.5, gamma: 1.0, mu: 2.0, nu: 1.0 }, &shape, &shape);
        let theirs = uniaxial.row(&NoSettings).expect("a row");
        let poses = [
            ([1.0, 0.3, 0.2], [0.1, 0.5, -0.3, 0.8], [0.7, -0.2, 0.4, 0.3]),
            ([0.1, -0.9, 0.6], [0.9, 0.1, 0.2, -0.3], [0.0, 0.0, 0.0, 1.0]),
            ([-0.4, 0.2, 1.7], [-0.2, 0.3, 0.6, 0.5], [0.4, 0.4, -0.7, 0.1]),
        ];
        for (r, q_i, q_j) in poses {
            let (r, q_i, q_j) = (Vec3::<f64>::from(r), turned(q_i), turned(q_j));
            let (f, t, u) = biaxial_gay_berne(r, r.norm2(), q_i, q_j, &ours);
            let (g, s, v) = gay_berne(r, r.norm2(), q_i.axis(), q_j.axis(), &theirs);
            let close = |a: f64, b: f64, size: f64| (a - b).abs() < 1e-12 * size;
            assert!(close(u, v, v.abs()), "{u} and {v}");
            assert!(close((f - g).norm(), 0.0, g.norm()), "{f:?} and {g:?}");
            assert!(close((t - s).norm(), 0.0, s.norm()), "{t:?} and {s:?}");
        }
    }

    #[test]
    fn wells_have_the_depths_of_the_axes() {
        let shape = Ellipsoid { sigma: [1.4, 0.7, 3.0], epsilon: [1.7, 1.0, 0.2] };
        let input = BiaxialInput { epsilon0: 2.0, sigma_c: 0.7, gamma: 1.0, mu: 1.0, nu: 3.0 };
        let row = row(&input, &shape, &shape);
        let none = Quaternion::none();
        // η = (σ_x σ_y + σ_z²)(2 σ_x σ_y/det A)^½ with det A = 8 (σ_x σ_y σ_z)² for parallel bodies
        let eta: f64 = (1.4 * 0.7 + 9.0) * (2.0 * 1.4 * 0.7 / (8.0 * (1.4f64 * 0.7 * 3.0).powi(2))).sqrt();
        for k in 0..3 {
            let mut e = [0.0; 3];
            e[k] = 1.0;
            let at = shape.sigma[k] + 0.7 * (2f64.powf(1.0 / 6.0) - 1.0);
            let (force, torque, u) = biaxial_gay_berne(Vec3::from(e) * at, at * at, none, none, &row);
            let expected = -2.0 * eta.powi(3) * shape.epsilon[k];
            assert!((u / expected - 1.0).abs() < 1e-12, "{u} and {expected}");
            assert!(force.norm() < 1e-11 * expected.abs() && torque.norm() < 1e-12 * expected.abs());
        }
    }

    #[test]
    fn coinciding_particles_have_a_finite_energy_and_no_force() {
        let input = BiaxialInput { epsilon0: 1.1, sigma_c: 0.6, gamma: 1.1, mu: 1.5, nu: 2.0 };
        let board = Ellipsoid { sigma: [0.7, 0.4, 1.4], epsilon: [1.0, 1.7, 0.5] };
        let row = row(&input, &board, &board);
        let (q_i, q_j) = (turned([0.1, 0.5, -0.3, 0.8]), turned([0.7, -0.2, 0.4, 0.3]));
        let (force, torque, u) = biaxial_gay_berne(Vec3::new(0.0, 0.0, 0.0), 0.0, q_i, q_j, &row);
        let (_, _, near) = biaxial_gay_berne(Vec3::new(1e-9, 0.0, 0.0), 1e-18, q_i, q_j, &row);
        // ϱ changes by 1e-9/σ_c, which a slope of some hundred enlarges
        assert!((u / near - 1.0).abs() < 1e-6, "{u} and {near}");
        assert!(force.norm() == 0.0 && torque.norm() == 0.0, "{force:?} {torque:?}");
    }

    #[test]
    fn single_precision_holds_in_every_unit_of_length() {
        let (q_i, q_j) = ([0.1, 0.5, -0.3, 0.8], [0.7, -0.2, 0.4, 0.3]);
        let single = |q: [f64; 4]| {
            let [x, y, z, w] = q.map(|x| x as f32);
            Quaternion::<f32>::new(x, y, z, w).normalized()
        };
        for l in [1e-12, 1e-7, 4e-7, 1.0, 1e7, 1e12] {
            let shape = Ellipsoid { sigma: [0.5, 0.4, 0.8].map(|x| x * l), epsilon: [1.0, 1.7, 0.5] };
            let input = BiaxialInput { epsilon0: 1.0, sigma_c: 0.4 * l, gamma: 1.0, mu: 1.0, nu: 3.0 };
            let row = row(&input, &shape, &shape);
            let at = [0.5, -0.3, 0.4].map(|x| x * l);
            let r = Vec3::<f64>::from(at);
            let (f, t, u) = biaxial_gay_berne(r, r.norm2(), turned(q_i), turned(q_j), &row);
            let [x, y, z] = at.map(|x| x as f32);
            let r = Vec3::<f32>::new(x, y, z);
            let (g, s, v) = biaxial_gay_berne(r, r.norm2(), single(q_i), single(q_j), &row.cast::<f32>());
            // ϱ has an error of 1e-7, times ∂U/∂ϱ
            let close = |a: f64, b: f32, size: f64| (a - f64::from(b)).abs() < 1e-4 * size;
            assert!(close(u, v, u.abs().max(1.0)), "{l}: {u} and {v}");
            for (a, b) in [(f, g), (t, s)] {
                let n = a.norm();
                assert!(close(a.x, b.x, n) && close(a.y, b.y, n) && close(a.z, b.z, n), "{l}: {a:?} and {b:?}");
            }
        }
    }
    #[test]
    fn unlike_particles_obey_newtons_third_law() {
        let input = BiaxialInput { epsilon0: 1.1, sigma_c: 0.6, gamma: 1.1, mu: 1.5, nu: 2.0 };
        let board = Ellipsoid { sigma: [0.7, 0.4, 1.4], epsilon: [1.0, 1.7, 0.5] };
        let disk = Ellipsoid { sigma: [0.9, 1.1, 0.3], epsilon: [0.6, 0.8, 2.0] };
        let (forth, back) = (row(&input, &board, &disk), row(&input, &disk, &board));
        let (q_i, q_j) = (turned([0.1, 0.5, -0.3, 0.8]), turned([0.7, -0.2, 0.4, 0.3]));
        let r = Vec3::<f64>::new(0.8, -0.5, 0.4);
        let energy = |r: Vec3<f64>| biaxial_gay_berne(r, r.norm2(), q_i, q_j, &forth).2;
        let (f, t, u) = biaxial_gay_berne(r, r.norm2(), q_i, q_j, &forth);
        let (g, s, v) = biaxial_gay_berne(-r, r.norm2(), q_j, q_i, &back);
        assert!((u - v).abs() < 1e-13 * u.abs() && (f + g).norm() < 1e-13 * f.norm(), "{u} {v} {f:?} {g:?}");
        assert!((r.cross(f) + t + s).norm() < 1e-12 * f.norm(), "{t:?} {s:?}");
        let h = 1e-6;
        for (k, step) in
            [Vec3::new(h, 0.0, 0.0), Vec3::new(0.0, h, 0.0), Vec3::new(0.0, 0.0, h)].into_iter().enumerate()
        {
            let slope = (energy(r - step) - energy(r + step)) / (2.0 * h);
            // h² F″, and rounding 1e-16 U/h = 1e-10
            assert!((slope - f.f64()[k]).abs() < 1e-8 * f.norm(), "{slope} and {f:?}");
        }
    }
}
