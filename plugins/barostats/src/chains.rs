//! Nosé–Hoover chains of particles, box and rotation.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::scaling::defined_factor;

/// Numbers of a chain in the state: at most eight thermostats, and a 0 behind the last one.
const WIDTH: usize = 9;

/// Three chains: particles, box, and rotation. Each has M thermostats with friction coefficients ξ; that of the first acts on the
/// velocities, that of each other one on the thermostat before it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct Chains {
    /// M.
    length: u32,
    /// Padding; 0.
    reserved: u32,
    /// Degrees of freedom of each chain: g, the number of box variables, and g_r (0 without rotation).
    freedom: [f64; 3],
    /// 1/freedom; 0 without rotation.
    pub share: [f64; 3],
    /// 1/τ², 1/τ_P² and 1/τ_r²; 0 without rotation.
    frequency2: [f64; 3],
    /// τ², τ_P² and τ_r².
    time2: [f64; 3],
    /// 2K/(g kT) of each chain.
    pub two_k: [f64; 3],
    /// Scale factors of velocities, rates of the box, and angular momenta, of the last half step.
    pub scale: [f64; 3],
    /// ξ at the end of the last step: particles from 0, box from 9, rotation from 18.
    xi: [f64; 27],
    /// ∫ξ dt at the end of the last step.
    eta: [f64; 27],
    /// ξ in the middle of the current step.
    xi_mid: [f64; 27],
    /// ∫ξ dt in the middle of the current step.
    eta_mid: [f64; 27],
}

impl Chains {
    /// Returns chains at rest, of `length` thermostats. Without rotation, its `freedom` is 0.
    pub fn new(length: u32, freedom: [f64; 3], tau: [f64; 3]) -> Self {
        let inverse = |x: f64| if x > 0.0 { 1.0 / x } else { 0.0 };
        let time2: [f64; 3] = std::array::from_fn(|c| if freedom[c] > 0.0 { tau[c].powi(2) } else { 0.0 });
        Self { length, freedom, share: freedom.map(inverse), frequency2: time2.map(inverse), time2, ..Self::default() }
    }
}

/// Largest |x| for [`exp_series`].
pub const SMALL: f64 = 0.015_625;

/// Returns exp(x) by its power series to x⁶; for |x| ≤ 1/64 the rest is below rounding. Without the range reduction of `exp` and with
/// few operations that wait for each other, one thread of a GPU needs a fraction of the time.
#[device_fn(f64)]
pub fn exp_series(x: f64) -> f64 {
    let y = x * x;
    let high = (1.0 / 24.0 + x * (1.0 / 120.0)) + y * (1.0 / 720.0);
    (1.0 + x) + y * ((0.5 + x * (1.0 / 6.0)) + y * high)
}

/// Returns exp(x).
#[device_fn(f64)]
pub fn exp_near_0(x: f64) -> f64 {
    if x.abs() < SMALL { exp_series(x) } else { x.exp() }
}

/// Returns the weight of a Suzuki–Yoshida substep: w = 1/(2 − 2^⅓), 1 − 2w, w.
#[device_fn(f64)]
fn weight(substep: i32) -> f64 {
    if substep == 1 { -1.702_414_383_919_315_3 } else { 1.351_207_191_959_657_6 }
}

/// Returns the number of thermostats, at most the capacity of the state (a checkpoint may contain any number).
#[device_fn(f64)]
fn chain_length(length: u32) -> usize {
    if length < 8u32 { length as usize } else { 8usize }
}

/// Propagates ξ of thermostat j > 0 of chain c by the time h: dξ/dt = (Q_{j−1} ξ_{j−1}² − kT)/Q_j − ξ_{j+1} ξ. Behind the last
/// thermostat there is a ξ of 0.
#[device_fn(f64)]
fn advance_xi(g: &mut Chains, c: usize, j: usize, h: f64) {
    let at = WIDTH * c + j;
    let friction = exp_near_0(-0.5 * h * g.xi_mid[at + 1]);
    let before = g.xi_mid[at - 1] * g.xi_mid[at - 1];
    let drive = if j == 1 { g.freedom[c] * before } else { before };
    g.xi_mid[at] = (g.xi_mid[at] * friction + h * (drive - g.frequency2[c])) * friction;
}

/// Propagates ξ of the first thermostat of chain c by the time h: dξ/dt = (2K − g kT)/Q − ξ_1 ξ.
#[device_fn(f64)]
fn advance_first_xi(g: &mut Chains, c: usize, h: f64) {
    let at = WIDTH * c;
    let friction = exp_near_0(-0.5 * h * g.xi_mid[at + 1]);
    let drive = (g.two_k[c] - 1.0) * g.frequency2[c];
    g.xi_mid[at] = (g.xi_mid[at] * friction + h * drive) * friction;
}

/// Propagates the first thermostat of chain c by h/2, 2K and ∫ξ dt by h, and the thermostat again.
#[device_fn(f64)]
fn turn(g: &mut Chains, c: usize, h: f64) {
    advance_first_xi(g, c, 0.5 * h);
    let s = exp_near_0(-h * g.xi_mid[WIDTH * c]);
    g.scale[c] *= s;
    g.two_k[c] *= s * s;
    g.eta_mid[WIDTH * c] += h * g.xi_mid[WIDTH * c];
    advance_first_xi(g, c, 0.5 * h);
}

/// Propagates a chain by half a step: the thermostats from the last to the first, 2K, and back.
#[device_fn(f64)]
fn propagate_chain(g: &mut Chains, c: usize, dt: f64) {
    let n = chain_length(g.length);
    g.scale[c] = 1.0;
    for substep in 0..3 {
        let h = 0.5 * dt * weight(substep);
        for k in 1..n {
            advance_xi(g, c, n - k, 0.5 * h);
        }
        turn(g, c, h);
        for j in 1..n {
            g.eta_mid[WIDTH * c + j] += h * g.xi_mid[WIDTH * c + j];
            advance_xi(g, c, j, 0.5 * h);
        }
    }
    g.scale[c] = defined_factor(g.scale[c]);
}

/// Returns whether all exponents of [`propagate_three`] are below [`SMALL`]. Bounds of ξ: the three substeps take 2.21 dt
/// together, the longest one 0.852 dt, and 2K changes by less than 10 % if the exponents are small.
#[device_fn(f64)]
fn has_small_exponents(g: &Chains, c: usize, dt: f64) -> bool {
    let at = WIDTH * c;
    let (time, w2) = (2.21 * dt, g.frequency2[c]);
    let first = g.xi_mid[at].abs() + time * w2 * ((g.two_k[c] - 1.0).abs() + 0.1 * g.two_k[c]);
    let second = g.xi_mid[at + 1].abs() + time * (g.freedom[c] * first * first + w2);
    let third = g.xi_mid[at + 2].abs() + time * (second * second + w2);
    0.852 * dt * first.max(0.25 * second.max(third)) < SMALL
}

/// [`propagate_chain`] for three thermostats and small exponents. It has no branches and keeps its numbers in registers, so one
/// thread of a GPU computes several chains at the same time.
#[device_fn(f64)]
fn propagate_three(g: &mut Chains, c: usize, dt: f64) {
    let at = WIDTH * c;
    let (freedom, w2) = (g.freedom[c], g.frequency2[c]);
    let (mut first, mut second, mut third) = (g.xi_mid[at], g.xi_mid[at + 1], g.xi_mid[at + 2]);
    let (mut eta_first, mut eta_second, mut eta_third) = (g.eta_mid[at], g.eta_mid[at + 1], g.eta_mid[at + 2]);
    let mut two_k = g.two_k[c];
    let mut scale = 1.0;
    for substep in 0..3 {
        let h = 0.5 * dt * weight(substep);
        let half = 0.5 * h;
        third += half * (second * second - w2);
        let friction_second = exp_series(-0.5 * half * third);
        second = (second * friction_second + half * (freedom * (first * first) - w2)) * friction_second;
        let friction_first = exp_series(-0.5 * half * second);
        first = (first * friction_first + half * ((two_k - 1.0) * w2)) * friction_first;
        let s = exp_series(-h * first);
        scale *= s;
        two_k *= s * s;
        eta_first += h * first;
        first = (first * friction_first + half * ((two_k - 1.0) * w2)) * friction_first;
        eta_second += h * second;
        second = (second * friction_second + half * (freedom * (first * first) - w2)) * friction_second;
        eta_third += h * third;
        third += half * (second * second - w2);
    }
    g.xi_mid[at] = first;
    g.xi_mid[at + 1] = second;
    g.xi_mid[at + 2] = third;
    g.eta_mid[at] = eta_first;
    g.eta_mid[at + 1] = eta_second;
    g.eta_mid[at + 2] = eta_third;
    g.two_k[c] = two_k;
    g.scale[c] = scale;
}

/// Propagates all chains by half a step (three Suzuki–Yoshida substeps), from 2K/(g kT) of each. Sets the scale factors. One substep
/// is too coarse far from equilibrium, where a large ξ_0 drives the light second thermostat.
#[device_fn(f64)]
pub fn propagate_chains(g: &mut Chains, dt: f64) {
    let small =
        has_small_exponents(g, 0usize, dt) && has_small_exponents(g, 1usize, dt) && has_small_exponents(g, 2usize, dt);
    if g.length == 3 && small {
        for c in 0..3usize {
            propagate_three(g, c, dt);
        }
    } else {
        for c in 0..3usize {
            propagate_chain(g, c, dt);
        }
    }
}

/// Takes ξ and ∫ξ dt of the end of the last step. Returns the energy of the chains.
#[device_fn(f64)]
pub fn start_chains(g: &mut Chains, kt: f64) -> f64 {
    let mut energy = 0.0;
    for j in 0..chain_length(g.length) {
        for c in 0..3usize {
            let at = WIDTH * c + j;
            g.xi_mid[at] = g.xi[at];
            g.eta_mid[at] = g.eta[at];
            // the mass of the first thermostat is g times that of the others, as is its kT
            let freedom = if j == 0 { g.freedom[c] } else { 1.0 };
            energy += freedom * (0.5 * g.time2[c] * g.xi[at] * g.xi[at] + g.eta[at]);
        }
    }
    kt * energy
}

/// Keeps ξ and ∫ξ dt of the end of the step.
#[device_fn(f64)]
pub fn end_chains(g: &mut Chains) {
    for j in 0..chain_length(g.length) {
        for c in 0..3usize {
            g.xi[WIDTH * c + j] = g.xi_mid[WIDTH * c + j];
            g.eta[WIDTH * c + j] = g.eta_mid[WIDTH * c + j];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chains(length: u32) -> Chains {
        let mut g = Chains::new(length, [2997.0, 1.0, 500.0], [0.5, 1.0, 0.3]);
        for c in 0..3 {
            for (j, xi) in [0.03, -1.7, 2.2].into_iter().enumerate() {
                g.xi_mid[WIDTH * c + j] = if j == 0 { xi * g.share[c].sqrt() } else { xi };
                g.eta_mid[WIDTH * c + j] = 0.1 * j as f64;
            }
        }
        g.two_k = [1.02, 0.4, 0.97];
        g
    }

    /// The series is exact up to rounding where it is used.
    #[test]
    fn series_of_small_exponents() {
        for k in -64..=64 {
            let x = SMALL * f64::from(k) / 64.0;
            // half a unit for each of the last two sums, and the reference's own rounding
            assert!((exp_series(x) / x.exp() - 1.0).abs() < 1.5 * f64::EPSILON, "{x}");
        }
    }

    /// Both ways to propagate chains do the same, with steps at which the first one is used.
    #[test]
    fn chains_of_three_are_chains() {
        for dt in [0.001, 0.005] {
            let (mut fast, mut slow) = (chains(3), chains(3));
            for c in 0..3 {
                assert!(has_small_exponents(&fast, c, dt), "{c}");
                propagate_three(&mut fast, c, dt);
                propagate_chain(&mut slow, c, dt);
            }
            let numbers = |g: &Chains| [&g.xi_mid[..], &g.eta_mid, &g.two_k, &g.scale].concat();
            for (a, b) in numbers(&fast).into_iter().zip(numbers(&slow)) {
                // about ten operations in each of three substeps, of numbers up to 3
                assert!((a - b).abs() < 30.0 * 3.0 * f64::EPSILON, "{a} {b}");
            }
        }
    }

    /// Exponents never exceed what the bound promises: steps just below the limit are propagated right.
    #[test]
    fn the_bound_of_exponents_holds() {
        let start = chains(3);
        for c in 0..3 {
            let mut dt = 1.0;
            while !has_small_exponents(&start, c, dt) {
                dt *= 0.99;
            }
            let (mut fast, mut slow) = (start, start);
            propagate_three(&mut fast, c, dt);
            propagate_chain(&mut slow, c, dt);
            let at = WIDTH * c;
            for j in 0..3 {
                let (a, b) = (fast.xi_mid[at + j], slow.xi_mid[at + j]);
                // the next term of the series, x⁷/5040 for x = SMALL, is 4.5e-17
                assert!((a - b).abs() < 100.0 * f64::EPSILON * b.abs().max(1.0), "{c} {j}: {a} {b}, dt {dt}");
            }
        }
    }

    /// Chains without thermostats of rotation have its scale factor 1.
    #[test]
    fn no_rotation_is_not_scaled() {
        let mut g = Chains::new(3, [300.0, 1.0, 0.0], [0.5, 1.0, 0.5]);
        g.two_k = [1.1, 0.9, 0.0];
        propagate_chains(&mut g, 0.002);
        assert!(g.scale[0] < 1.0 && g.scale[2] == 1.0, "{:?}", g.scale);
        propagate_chain(&mut g, 2, 0.002);
        assert_eq!(g.scale[2], 1.0);
    }
}
