//! Inverse Monte Carlo.

use crate::interaction::LIMIT;

/// Data of one state: bin counts of all interactions that are updated together.
#[derive(Clone, Copy, Debug)]
pub struct NewtonState<'a> {
    /// kT.
    pub kt: f64,
    /// Weight among the states.
    pub weight: f64,
    /// ⟨S_a⟩ of the last run.
    pub mean: &'a [f64],
    /// S_a of the target.
    pub target: &'a [f64],
    /// ⟨S_a S_b⟩ − ⟨S_a⟩⟨S_b⟩, row by row.
    pub covariance: &'a [f64],
}

/// Returns the change of all bins by Newton's method.
///
/// ∂⟨S_a⟩/∂U_b = −C_ab/kT, so ΔU solves (H + λ diag H) ΔU = Σ w (⟨S⟩ − S_t)/kT with H = Σ w C/(kT)². The sums run over the
/// states.
///
/// This step minimizes the relative entropy of the states. λ is a regularization: with many samples and λ → 0 it is Newton's
/// step; for large λ each bin changes independently, as in iterative Boltzmann inversion. Bins that are not `active`, or whose
/// counts did not fluctuate, do not change. No bin changes by more than [`LIMIT`] kT.
pub fn imc(states: &[NewtonState<'_>], active: &[bool], lambda: f64) -> Vec<f64> {
    let n = active.len();
    let fluctuates = |a: usize| states.iter().any(|s| s.covariance[a * n + a] > 0.0);
    let chosen: Vec<usize> = (0..n).filter(|a| active[*a] && fluctuates(*a)).collect();
    let m = chosen.len();
    let (mut h, mut b) = (vec![0.0; m * m], vec![0.0; m]);
    for s in states {
        for (i, a) in chosen.iter().enumerate() {
            b[i] += s.weight * (s.mean[*a] - s.target[*a]) / s.kt;
            for (j, c) in chosen.iter().enumerate() {
                h[i * m + j] += s.weight * s.covariance[a * n + c] / (s.kt * s.kt);
            }
        }
    }
    for i in 0..m {
        h[i * m + i] *= 1.0 + lambda;
    }
    let kt = states.iter().map(|s| s.kt).fold(0.0, f64::max);
    let mut change = vec![0.0; n];
    if let Some(x) = solve(h, b) {
        chosen.iter().zip(x).for_each(|(a, x)| change[*a] = x.clamp(-LIMIT * kt, LIMIT * kt));
    }
    change
}

/// Solves a symmetric positive definite system by Cholesky decomposition. Returns `None` if the matrix is not positive
/// definite.
pub fn solve(mut a: Vec<f64>, mut b: Vec<f64>) -> Option<Vec<f64>> {
    let n = b.len();
    for j in 0..n {
        let (done, rest) = a.split_at_mut((j + 1) * n);
        let row = &mut done[j * n..];
        let pivot = row[j] - row[..j].iter().map(|x| x * x).sum::<f64>();
        if pivot.is_nan() || pivot <= 0.0 {
            return None;
        }
        row[j] = pivot.sqrt();
        for other in rest.chunks_mut(n) {
            let dot: f64 = row[..j].iter().zip(&other[..j]).map(|(x, y)| x * y).sum();
            other[j] = (other[j] - dot) / row[j];
        }
    }
    for i in 0..n {
        let dot: f64 = a[i * n..i * n + i].iter().zip(&b[..i]).map(|(x, y)| x * y).sum();
        b[i] = (b[i] - dot) / a[i * n + i];
    }
    for i in (0..n).rev() {
        b[i] /= a[i * n + i];
        for k in 0..i {
            b[k] -= a[i * n + k] * b[i];
        }
    }
    Some(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_solved() {
        let a = vec![4.0, 2.0, 0.6, 2.0, 5.0, 1.0, 0.6, 1.0, 3.0];
        let x = solve(a.clone(), vec![1.0, -2.0, 0.5]).unwrap();
        for i in 0..3 {
            let sum: f64 = (0..3).map(|k| a[3 * i + k] * x[k]).sum();
            assert!((sum - [1.0, -2.0, 0.5][i]).abs() < 1e-12);
        }
        assert!(solve(vec![1.0, 2.0, 2.0, 1.0], vec![1.0, 1.0]).is_none());
    }

    /// Particles in one of three compartments with energies U. Newton's method finds the energies.
    #[test]
    fn newton_finds_the_energies_of_compartments() {
        let kt = 1.5;
        let n = 500.0;
        let fractions = |u: &[f64; 3]| {
            let e = u.map(|u| (-u / kt).exp());
            e.map(|x| x / e.iter().sum::<f64>())
        };
        let truth = [0.0, 0.8, -0.5];
        let target = fractions(&truth).map(|p| n * p);
        let mut u = [0.0; 3];
        for _ in 0..6 {
            let p = fractions(&u);
            let mean = p.map(|p| n * p);
            let covariance: Vec<f64> = (0..9)
                .map(|k| {
                    let (a, b) = (k / 3, k % 3);
                    n * (if a == b { p[a] } else { 0.0 } - p[a] * p[b])
                })
                .collect();
            let state = NewtonState { kt, weight: 1.0, mean: &mean, target: &target, covariance: &covariance };
            // the first compartment is the reference energy
            let change = imc(&[state, state], &[false, true, true], 0.0);
            u.iter_mut().zip(change).for_each(|(u, c)| *u += c);
        }
        // Newton steps converge quadratically
        assert!(u.iter().zip(truth).all(|(a, b)| (a - b).abs() < 1e-6), "{u:?}");
    }
}
