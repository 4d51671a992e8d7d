//! Vectors, periodic wrapping, and the stiffness of chains.

/// Wraps a position into the box; returns it with its image.
pub fn wrapped(r: [f64; 3], length: [f64; 3]) -> ([f64; 3], [i32; 3]) {
    let mut image = [0; 3];
    let at = std::array::from_fn(|k| {
        let l = length[k];
        if l == 0.0 {
            return 0.0;
        }
        let n = (r[k] / l + 0.5).floor();
        image[k] = n as i32;
        let x = r[k] - n * l;
        // rounding may yield the upper face, which is the lower face of the next image
        if x >= 0.5 * l {
            image[k] += 1;
            x - l
        } else {
            x.max(-0.5 * l)
        }
    });
    (at, image)
}

/// Returns a − b.
pub fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|k| a[k] - b[k])
}

/// Returns the scalar product.
pub fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Returns the cross product.
pub fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// Returns the unit vector along a; the x axis for the zero vector.
pub fn unit(a: [f64; 3]) -> [f64; 3] {
    let l = dot(a, a).sqrt();
    if l > 0.0 { a.map(|x| x / l) } else { [1.0, 0.0, 0.0] }
}

/// Returns the vector with the component c along the unit vector u and the component s perpendicular to it, at the
/// angle φ.
pub fn around(u: [f64; 3], c: f64, s: f64, phi: f64) -> [f64; 3] {
    let helper = if u[2].abs() < 0.9 { [0.0, 0.0, 1.0] } else { [1.0, 0.0, 0.0] };
    let v = unit(cross(u, helper));
    let w = cross(u, v);
    std::array::from_fn(|k| c * u[k] + s * (v[k] * phi.cos() + w[k] * phi.sin()))
}

/// Returns κ of the distribution exp(κ cos γ) for a characteristic ratio C = (1 + L)/(1 − L), L(κ) = coth κ − 1/κ.
pub fn kappa_of(ratio: f64) -> f64 {
    let target = (ratio - 1.0) / (ratio + 1.0);
    let (mut a, mut b) = (0.0, 1e4);
    for _ in 0..200 {
        let k: f64 = 0.5 * (a + b);
        let l = if k < 1e-3 { k / 3.0 } else { 1.0 / k.tanh() - 1.0 / k };
        if l < target { a = k } else { b = k }
    }
    0.5 * (a + b)
}
