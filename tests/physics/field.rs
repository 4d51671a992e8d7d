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
    /// S(k) in blocks of equal time.
    found: Vec<f64>,
    /// N g(k) of a Gaussian chain, and the square of ŵ, the transform of a particle's shares; means over the shell.
    chain: f64,
    share2: f64,
    /// S(k) by the random-phase approximation: 1/[1/(N g) − χ ŵ²/2].
    theory: f64,
}

fn structure_of_blend(scheme: &str, chi: f64, density: usize, steps: u64) -> Vec<Shell> {
    const L: f64 = 10.0;
    let s = chains(density * 1000 / N, [L; 3], &|c, _| c % 2, &|_, p| p);
    let shells = waves();
    let mut series = vec![vec![]; 4];
    run_chains(s, scheme, chi, [1000, 1000 + steps, 30], &mut |c| {
        for (series, shell) in series.iter_mut().zip(&shells) {
            series.push(shell.iter().map(|m| structure(c, [L; 3], *m)).sum::<f64>() / shell.len() as f64);
        }
    });
    let shell = |(waves, series): (&Vec<[i32; 3]>, Vec<f64>)| {
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
            found: series.chunks_exact(series.len() / BLOCKS).map(mean).collect(),
            chain: over(&|g, _| g),
            share2: over(&|_, w2| w2),
            theory: over(&|g, w2| 1.0 / (1.0 / g - 0.5 * chi * w2)),
        }
    };
    shells.iter().zip(series).map(shell).collect()
}

/// Blocks of a series.
const BLOCKS: usize = 12;

/// Value and standard error of a function of block means, by the jackknife: `f(without)` leaves this block out.
fn jackknife(f: &dyn Fn(Option<usize>) -> f64) -> (f64, f64) {
    let each: Vec<f64> = (0..BLOCKS).map(|k| f(Some(k))).collect();
    let m = mean(&each);
    let sum: f64 = each.iter().map(|x| (x - m).powi(2)).sum();
    (f(None), (sum * (BLOCKS - 1) as f64 / BLOCKS as f64).sqrt())
}

/// Mean of the blocks but one.
fn mean_without(blocks: &[f64], without: Option<usize>) -> f64 {
    let some: Vec<f64> = blocks.iter().enumerate().filter(|(k, _)| Some(*k) != without).map(|(_, x)| *x).collect();
    mean(&some)
}

/// Results of runs that a test compares with each other; they run at the same time, and each has the numbers that it has alone.
fn side_by_side<T: Send, const RUNS: usize>(runs: [impl FnOnce() -> T + Send; RUNS]) -> [T; RUNS] {
    std::thread::scope(|scope| runs.map(|run| scope.spawn(run)).map(|run| run.join().expect("a run")))
}

/// Two densities, in particles per volume of 1. The random-phase approximation and Flory–Huggins are exact for infinitely
/// many chains, and the first correction goes as 1/ρ, for chains of one length.
const DENSITIES: [usize; 2] = [8, 24];

/// The limit of an infinite density, of values at the two densities that deviate from it as 1/ρ.
fn dense([thin, thick]: [f64; 2]) -> f64 {
    let ratio = DENSITIES[1] as f64 / DENSITIES[0] as f64;
    (ratio * thick - thin) / (ratio - 1.0)
}

/// Weighted mean over the shells of a ratio of each. The variance of S(k) relative to its theory is 1/(number of waves ×
/// independent states), and waves relax in a time ∝ S(k).
fn over_shells(shells: &[Shell], ratio: &dyn Fn(usize) -> f64) -> f64 {
    let weight = |s: &Shell| s.waves / s.theory;
    let weights: f64 = shells.iter().map(weight).sum();
    shells.iter().enumerate().map(|(k, s)| weight(s) * ratio(k)).sum::<f64>() / weights
}

/// χ_s N, where the longest waves diverge: from 1/(N g) − 1/S = β χ ŵ²/2 of all shells, by least squares; the error of
/// 1/S goes as 1/S and with the root of the number of waves.
fn spinodal(blends: &[(f64, Vec<Shell>); 3], without: Option<usize>) -> f64 {
    let (mut above, mut below) = (0.0, 0.0);
    for (chi, shells) in blends {
        for s in shells {
            let found = mean_without(&s.found, without);
            let (x, y, weight) = (0.5 * chi * s.share2, 1.0 / s.chain - 1.0 / found, s.waves * s.theory.powi(2));
            above += weight * x * y;
            below += weight * x * x;
        }
    }
    2.0 * below / above
}

/// S(k) at several χN, and where the longest waves diverge: at χN = 2.
#[test]
#[ignore = "minutes"]
fn blends_have_the_structure_of_the_random_phase_approximation() {
    let series = [(0.0, 36_000), (0.7, 72_000), (1.4, 108_000)];
    let runs = [0, 1, 2, 3, 4, 5].map(|run: usize| {
        let (chi_n, steps) = series[run % 3];
        move || (chi_n / N as f64, structure_of_blend("Variational", chi_n / N as f64, DENSITIES[run / 3], steps))
    });
    let [a, b, c, d, e, f] = side_by_side(runs);
    let blends = [[a, b, c], [d, e, f]];
    for (k, (chi_n, _)) in series.into_iter().enumerate() {
        for m2 in 0..4 {
            let ratio = |density: usize, without| {
                let s = &blends[density][k].1[m2];
                s.theory / mean_without(&s.found, without)
            };
            let each = [0, 1].map(|density| jackknife(&|without| ratio(density, without)));
            println!("χN {chi_n}, m² {}: RPA/S at ρ = 8 and 24: {each:.3?}", m2 + 1);
            let (limit, error) = jackknife(&|without| dense([ratio(0, without), ratio(1, without)]));
            agrees_within("1/S of a dense blend, relative to the random phase approximation", limit, error);
        }
    }
    let each = [0, 1].map(|density| jackknife(&|without| spinodal(&blends[density], without)));
    println!("spinodal at ρ = 8 and 24: χN = {each:.3?}");
    let (limit, error) = jackknife(&|without| dense([0, 1].map(|density| spinodal(&blends[density], without))));
    agrees_within("spinodal of a dense blend", limit, error);
}

/// The scheme of the paper and the gradient of the energy on a grid give the same structure.
#[test]
#[ignore = "minutes"]
fn both_schemes_have_one_structure() {
    let chi = 1.4 / N as f64;
    let runs = [("Paper", 108_000), ("Variational", 54_000)];
    let [paper, variational] =
        side_by_side(runs.map(|(scheme, steps)| move || structure_of_blend(scheme, chi, DENSITIES[0], steps)));
    for (a, b) in paper.iter().zip(&variational) {
        let (ratio, error) = jackknife(&|without| mean_without(&a.found, without) / mean_without(&b.found, without));
        agrees_within("S of a blend by the scheme of the paper, relative to the variational one", ratio, error);
    }
    let ratio =
        |m2: usize, without| mean_without(&paper[m2].found, without) / mean_without(&variational[m2].found, without);
    let (mean, error) = jackknife(&|without| over_shells(&variational, &|m2| ratio(m2, without)));
    agrees_within("S of a blend by the scheme of the paper, mean of all waves", mean, error);
}

/// Shares of A in the middles of both halves along z, over time, of a box that starts with A in the upper half and B in
/// the lower.
fn halves(chi_n: f64, density: usize, steps: [u64; 3]) -> [Vec<f64>; 2] {
    let length = [7.0, 7.0, 40.0];
    let s = chains(density * 1960 / N, length, &|c, _| c % 2, &|c, [x, y, z]| {
        [x, y, if c % 2 == 0 { 0.5 + 0.5 * z } else { 0.5 * z }]
    });
    let mut shares = [vec![], vec![]];
    run_chains(s, "Variational", chi_n / N as f64, steps, &mut |c| {
        // the phases may have drifted: from the middle of A on the circle
        let (sin, cos) =
            c.position.iter().zip(&c.type_id).filter(|(_, k)| **k == 0).fold((0.0, 0.0), |(s, c), (p, _)| {
                let (y, x) = (TAU * p[2] / length[2]).sin_cos();
                (s + y, c + x)
            });
        let middle = f64::atan2(sin, cos) / TAU;
        let mut count = [[0.0; 2]; 2];
        for (p, kind) in c.position.iter().zip(&c.type_id) {
            let z = p[2] / length[2] - middle;
            let z = (z - z.round()).abs();
            if z < 0.05 {
                count[0][*kind as usize] += 1.0;
            } else if z > 0.45 {
                count[1][*kind as usize] += 1.0;
            }
        }
        for (share, [a, b]) in shares.iter_mut().zip(count) {
            share.push(a / (a + b));
        }
    });
    shares
}

/// Share of A in the rich phase of a symmetric blend: ln[φ/(1 − φ)] = χN (2φ − 1).
fn flory_huggins(chi_n: f64) -> f64 {
    (0..10_000).fold(0.99, |phi, _| 1.0 / (1.0 + (-chi_n * (2.0 * phi - 1.0)).exp()))
}

/// The quick tier, far above the critical point. The phases are nearly pure there, so this tells a blend that mixes from
/// one that does not; the composition itself is tested at χN = 3, which takes minutes.
#[test]
fn a_blend_stays_apart_as_flory_and_huggins_say() {
    let phi = flory_huggins(4.0);
    let [rich, poor] = halves(4.0, 5, [2_000, 4_500, 40]).map(|series| mean(&series));
    println!("φ {rich:.3} and {poor:.3}, Flory-Huggins {phi:.3} and {:.3}", 1.0 - phi);
    for deviation in [rich - phi, poor - 1.0 + phi] {
        near("composition of a nearly pure phase, relative to Flory and Huggins", deviation);
    }
}

/// Phases of a symmetric blend above χN = 2, and below it one phase.
#[test]
#[ignore = "minutes"]
fn blends_part_as_flory_and_huggins_say() {
    // nearer to the critical point, χN = 2, interfaces are wider than this box has room for
    for (chi_n, steps) in [(3.0, [6_000, 24_000, 40]), (4.0, [4_000, 16_000, 40])] {
        let phi = flory_huggins(chi_n);
        // the blend is symmetric: the rich phase has as much of A as the poor one has of B
        let run = |density| {
            move || -> Vec<f64> {
                let [rich, poor] = halves(chi_n, density, steps);
                let series: Vec<f64> = rich.iter().zip(&poor).map(|(a, b)| 0.5 * (a + 1.0 - b)).collect();
                series.chunks_exact(series.len() / BLOCKS).map(mean).collect()
            }
        };
        let purity = side_by_side(DENSITIES.map(run));
        let each = [0, 1].map(|k| jackknife(&|without| mean_without(&purity[k], without)));
        println!("χN {chi_n}: φ at ρ = 8 and 24: {each:.3?}, Flory-Huggins {phi:.3}");
        let limit = |without| dense([0, 1].map(|k| mean_without(&purity[k], without)));
        let (limit, error) = jackknife(&|without| limit(without) - phi);
        agrees_within("composition of a phase of a dense blend, relative to Flory and Huggins", limit, error);
    }
    let [rich, poor] = halves(1.0, 5, [20_000, 24_000, 40]).map(|series| mean(&series));
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
