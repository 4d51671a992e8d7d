//! Eigenvalues of symmetric matrices.

/// Returns the eigenvalues and eigenvectors of a symmetric matrix, the largest eigenvalue first (Jacobi's method).
pub fn eigen(mut a: [[f64; 3]; 3]) -> [(f64, [f64; 3]); 3] {
    let mut v = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    for _ in 0..50 {
        for (p, q) in [(0, 1), (0, 2), (1, 2)] {
            if a[p][q] == 0.0 {
                continue;
            }
            let theta = 0.5 * (a[q][q] - a[p][p]) / a[p][q];
            let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
            let c = 1.0 / (t * t + 1.0).sqrt();
            let s = t * c;
            for row in &mut a {
                (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
            }
            let (mut row_p, mut row_q) = (a[p], a[q]);
            for (x, y) in row_p.iter_mut().zip(&mut row_q) {
                (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
            }
            (a[p], a[q]) = (row_p, row_q);
            for row in &mut v {
                (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
            }
        }
    }
    let mut all: [(f64, [f64; 3]); 3] = std::array::from_fn(|k| (a[k][k], [v[0][k], v[1][k], v[2][k]]));
    all.sort_by(|x, y| y.0.total_cmp(&x.0));
    all
}
