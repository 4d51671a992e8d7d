//! Particle–field polymers against mean-field theory, which is exact where many chains meet.

use super::*;
use galamost_engine::backend::Columns;
use std::f64::consts::TAU;

/// Beads of a chain; bonds are Gaussian with ⟨b²⟩ = B2.
const N: usize = 10;
const B2: f64 = 2.25;

/// Numbers in 0 … 1, the same in every run.
fn random(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as f64 + 0.5) / f64::from(1u32 << 31)
    }
}

/// Random walks of N beads; `kind` says the type of bead `b` of chain `c`, whose middle is at `at` in shares of the box.
fn chains(
    n: usize,
    length: [f64; 3],
    kind: &dyn Fn(usize, usize) -> usize,
    at: &dyn Fn(usize, [f64; 3]) -> [f64; 3],
) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: length, ..Snapshot::default() };
    let types = ["A", "B"].map(|t| s.type_id(t));
    s.bond_types = vec!["X".into()];
    let mut uniform = random(7);
    let mut normal = move || (-2.0 * uniform().ln()).sqrt() * (TAU * uniform()).cos();
    let mut place = random(11);
    for c in 0..n {
        let mut walk = vec![[0.0; 3]];
        for _ in 1..N {
            let last = walk[walk.len() - 1];
            walk.push(std::array::from_fn(|k| last[k] + (B2 / 3.0).sqrt() * normal()));
        }
        let middle = at(c, [place(), place(), place()]);
        for (b, p) in walk.iter().enumerate() {
            let tag = s.len() as u32;
            let mean = |k: usize| walk.iter().map(|p| p[k]).sum::<f64>() / N as f64;
            let x: [f64; 3] = std::array::from_fn(|k| p[k] - mean(k) + (middle[k] - 0.5) * length[k]);
            s.push(types[kind(c, b)], std::array::from_fn(|k| x[k] - length[k] * (x[k] / length[k] + 0.5).floor()));
            if b > 0 {
                s.bonds.push(Link { kind: 0, tags: [tag - 1, tag] });
            }
        }
    }
    s
}

/// Runs chains with χ (times kT = 1) and calls `look` every `every` steps after the first `skip` of `steps`; tells kT.
fn run_chains(s: Snapshot, scheme: &str, chi: f64, steps: [u64; 3], look: &mut dyn FnMut(&Columns)) {
    // forces of the paper's scheme do work on particles, which friction has to take up
    let gamma = if scheme == "Paper" { 1.0 } else { 0.3 };
    let grid = s.box_length.map(|l| l.round() as u32);
    let k = 1.5 / B2;
    let text = format!(
        "(seed: 4, precision: {}, forces: [HarmonicBond(bonds: {{\"X\": (k: {k:?}, r0: 0.0)}}), \
         MdScf(scheme: {scheme}, grid: {grid:?}, kappa: 0.1, kT: 1.0, chi: {{(\"A\", \"A\"): 0.0, (\"A\", \"B\"): {chi:?}, (\"B\", \"B\"): 0.0}})], \
         integrators: [Langevin(kT: 1.0, gamma: {gamma:?})], stages: [(steps: 1, dt: 0.15)])",
        precision()
    );
    let plan = plan_of(&text, s, device()).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = backend(&plan);
    plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
    b.begin_stage(&plan.stages[0], false).expect("begun");
    let [skip, steps, every] = steps;
    let go = AtomicBool::new(false);
    b.advance(skip, Wanted::FORCE, &go).expect("steps");
    let samples = (steps - skip) / every;
    let mut kt = 0.0;
    for _ in 0..samples {
        b.advance(every, Wanted::FORCE, &go).expect("steps");
        let c = columns(&mut *b);
        kt += c.velocity.iter().flatten().map(|v| v * v).sum::<f64>() / (3 * c.velocity.len()) as f64 / samples as f64;
        look(&c);
    }
    println!("{scheme} χ {chi:.2}: kT {kt:.4}");
}

/// |Σ ±exp(ikr)|² per particle for the wave with these numbers of periods, + for A and − for B.
fn structure(c: &Columns, length: [f64; 3], m: [i32; 3]) -> f64 {
    let (mut re, mut im) = (0.0, 0.0);
    for (p, kind) in c.position.iter().zip(&c.type_id) {
        let phase: f64 = (0..3).map(|k| TAU * f64::from(m[k]) * p[k] / length[k]).sum();
        let sign = if *kind == 0 { 1.0 } else { -1.0 };
        re += sign * phase.cos();
        im += sign * phase.sin();
    }
    (re * re + im * im) / c.position.len() as f64
}

/// N g(k): the structure of a Gaussian chain.
fn debye(k2: f64) -> f64 {
    let pairs = |i: usize| (0..N).map(move |j| (-k2 * B2 * i.abs_diff(j) as f64 / 6.0).exp());
    (0..N).flat_map(pairs).sum::<f64>() / N as f64
}

/// Waves with m² = 1, 2, 3, 4, one of each ± pair.
fn waves() -> Vec<Vec<[i32; 3]>> {
    let mut shells = vec![vec![]; 4];
    for x in -2i32..=2 {
        for y in -2i32..=2 {
            for z in -2i32..=2 {
                let m2 = (x * x + y * y + z * z) as usize;
                if (1..=4).contains(&m2) && [z, y, x].into_iter().find(|m| *m != 0).is_some_and(|m| m > 0) {
                    shells[m2 - 1].push([x, y, z]);
                }
            }
        }
    }
    shells
}

/// One shell of waves of a 50:50 blend.
struct Shell {
    waves: f64,
    /// S(k).
    found: f64,
    /// N g(k) of a Gaussian chain, and the square of ŵ, the transform of a particle's shares; means over the shell.
    chain: f64,
    share2: f64,
    /// S(k) by the random-phase approximation: 1/[1/(N g) − χ ŵ²/2].
    theory: f64,
}

fn structure_of_blend(scheme: &str, chi: f64) -> Vec<Shell> {
    const L: f64 = 10.0;
    let s = chains(800, [L; 3], &|c, _| c % 2, &|_, p| p);
    let shells = waves();
    let mut sums = [0.0; 4];
    let mut samples = 0.0;
    let steps = if scheme == "Paper" { 120_000 } else { 64_000 };
    run_chains(s, scheme, chi, [1000, steps, 30], &mut |c| {
        for (sum, shell) in sums.iter_mut().zip(&shells) {
            *sum += shell.iter().map(|m| structure(c, [L; 3], *m)).sum::<f64>() / shell.len() as f64;
        }
        samples += 1.0;
    });
    let shell = |(waves, sum): (&Vec<[i32; 3]>, f64)| {
        let over = |f: &dyn Fn(f64, f64) -> f64| {
            let one = |m: &[i32; 3]| {
                let k = m.map(|m| TAU * f64::from(m) / L);
                let share = |x: f64| if x == 0.0 { 1.0 } else { ((0.5 * x).sin() / (0.5 * x)).powi(2) };
                let w: f64 = k.iter().map(|k| share(*k)).product();
                f(debye(k.iter().map(|k| k * k).sum()), w * w)
            };
            waves.iter().map(one).sum::<f64>() / waves.len() as f64
        };
        Shell {
            waves: waves.len() as f64,
            found: sum / samples,
            chain: over(&|g, _| g),
            share2: over(&|_, w2| w2),
            theory: over(&|g, w2| 1.0 / (1.0 / g - 0.5 * chi * w2)),
        }
    };
    shells.iter().zip(sums).map(shell).collect()
}

/// S(k) at several χN; and by what χ takes off 1/S, where the longest waves diverge: at χN = 2.
#[test]
#[ignore = "minutes"]
fn blends_have_the_structure_of_the_random_phase_approximation() {
    let (mut above, mut below) = (0.0, 0.0);
    for (scheme, chi_n) in [("Variational", 0.0), ("Variational", 0.7), ("Variational", 1.4), ("Paper", 1.4)] {
        let chi = chi_n / N as f64;
        for (m2, s) in structure_of_blend(scheme, chi).iter().enumerate() {
            let ratio = s.found / s.theory;
            println!("{scheme} χN {chi_n}, m² {}: S {:.3}, RPA {:.3}, ratio {ratio:.3}", m2 + 1, s.found, s.theory);
            near("S of a blend, relative to the random phase approximation", ratio);
            if scheme == "Paper" {
                continue;
            }
            // 1/(N g) − 1/S = β χ ŵ²/2; the error of 1/S goes as 1/S and with the root of the number of waves
            let (x, y, weight) = (0.5 * chi * s.share2, 1.0 / s.chain - 1.0 / s.found, s.waves * s.found.powi(2));
            above += weight * x * y;
            below += weight * x * x;
        }
    }
    let spinodal = 2.0 * below / above;
    println!("spinodal, k → 0: χN = {spinodal:.3} (2)");
    near("spinodal of a blend", spinodal);
}

/// Share of A in the middles of both halves along z, of a box that starts with A in the upper half and B in the lower.
fn halves(chi_n: f64, steps: [u64; 3]) -> [f64; 2] {
    let length = [7.0, 7.0, 40.0];
    let s =
        chains(960, length, &|c, _| c % 2, &|c, [x, y, z]| [x, y, if c % 2 == 0 { 0.5 + 0.5 * z } else { 0.5 * z }]);
    let mut count = [[0.0; 2]; 2];
    run_chains(s, "Variational", chi_n / N as f64, steps, &mut |c| {
        // the phases may have drifted: from the middle of A on the circle
        let (sin, cos) =
            c.position.iter().zip(&c.type_id).filter(|(_, k)| **k == 0).fold((0.0, 0.0), |(s, c), (p, _)| {
                let (y, x) = (TAU * p[2] / length[2]).sin_cos();
                (s + y, c + x)
            });
        let middle = f64::atan2(sin, cos) / TAU;
        for (p, kind) in c.position.iter().zip(&c.type_id) {
            let z = p[2] / length[2] - middle;
            let z = (z - z.round()).abs();
            if z < 0.05 {
                count[0][*kind as usize] += 1.0;
            } else if z > 0.45 {
                count[1][*kind as usize] += 1.0;
            }
        }
    });
    count.map(|[a, b]| a / (a + b))
}

/// Compares the shares of A in the two phases of a symmetric blend with those of Flory and Huggins.
fn phases_agree(chi_n: f64, steps: [u64; 3]) {
    let mut phi = 0.99f64;
    for _ in 0..10_000 {
        phi = 1.0 / (1.0 + (-chi_n * (2.0 * phi - 1.0)).exp());
    }
    let [rich, poor] = halves(chi_n, steps);
    println!("χN {chi_n}: φ {rich:.3} and {poor:.3}, Flory-Huggins {phi:.3} and {:.3}", 1.0 - phi);
    for deviation in [rich - phi, poor - 1.0 + phi] {
        // near the critical point, χN = 2, fluctuations matter
        if chi_n < 4.0 {
            near("composition of a phase, relative to Flory and Huggins", deviation);
        } else {
            near("composition of a nearly pure phase, relative to Flory and Huggins", deviation);
        }
    }
}

/// The quick tier, far above the critical point. The phases are nearly pure there, so this tells a blend that mixes from
/// one that does not; the composition itself is tested at χN = 3, which takes minutes.
#[test]
fn a_blend_stays_apart_as_flory_and_huggins_say() {
    phases_agree(4.0, [2_000, 4_500, 40]);
}

/// Phases of a symmetric blend: ln[φ/(1 − φ)] = χN (2φ − 1); and below χN = 2 one phase.
#[test]
#[ignore = "minutes"]
fn blends_part_as_flory_and_huggins_say() {
    // nearer to the critical point, χN = 2, interfaces are wider than this box has room for
    for (chi_n, steps) in [(3.0, [8_000, 18_000, 40]), (4.0, [5_000, 10_000, 40])] {
        phases_agree(chi_n, steps);
    }
    let [rich, poor] = halves(1.0, [20_000, 24_000, 40]);
    println!("χN 1.0: φ {rich:.3} and {poor:.3}, one phase");
    assert!(rich - poor < 0.25, "{rich} {poor}");
}

/// Shares of the strongest wave in all long waves, and its strength, of a symmetric diblock from a mixed start.
fn strongest_wave(chi_n: f64) -> (f64, f64, [i32; 3]) {
    const L: f64 = 9.0;
    let s = chains(364, [L; 3], &|_, b| usize::from(b >= N / 2), &|_, p| p);
    let all: Vec<[i32; 3]> = waves().concat();
    let mut sums = vec![0.0; all.len()];
    let mut samples = 0.0;
    run_chains(s, "Variational", chi_n / N as f64, [20_000, 26_000, 100], &mut |c| {
        sums.iter_mut().zip(&all).for_each(|(sum, m)| *sum += structure(c, [L; 3], *m));
        samples += 1.0;
    });
    let (at, most) = sums.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).expect("waves");
    (most / sums.iter().sum::<f64>(), most / samples, all[at])
}

/// A symmetric diblock is mixed well below the transition and lamellar well above it: one wave and no other.
#[test]
#[ignore = "minutes"]
fn diblocks_order_into_lamellae() {
    let (share, strength, m) = strongest_wave(6.0);
    println!("χN 6: the strongest wave {m:?} has {share:.3} of all, S {strength:.1}");
    assert!(share < 0.3, "{share}");
    let (share, strength, m) = strongest_wave(40.0);
    println!("χN 40: the strongest wave {m:?} has {share:.3} of all, S {strength:.1} of at most 3640");
    assert!(share > 0.85 && strength > 500.0, "{share} {strength}");
}
