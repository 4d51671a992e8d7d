//! Dielectric constant from the fluctuations of the total dipole.

use super::{charges, need_charges};
use galamost_measure::{Table, Whole, bytes, numbers};
use galamost_plugin_api::prelude::*;
use std::f64::consts::PI;

/// Measures the dielectric constant from the fluctuations of the dipole M of all molecules (Kirkwood and Fröhlich):
/// ε = 1 + 4πC (⟨M²⟩ − ⟨M⟩²)/(3 ⟨V⟩ kT).
///
/// M is the sum of Σ q r over the molecules. A molecule is a set of particles with the same value in the array `molecule` of
/// the initial state, or without that array a set of bonded particles, unwrapped along its bonds. All molecules must be
/// neutral, because the dipole of a charged one depends on the origin, and none may be bonded to its own periodic images,
/// because its dipole depends on the bond at which it is cut: the first sample reports such a molecule. The system must have
/// three dimensions.
///
/// The formula is that of a system whose periodic images are surrounded by a conductor ("tin foil"), as with `Ewald` and
/// `Pppm` without `slab`. `coulomb` is their Coulomb constant C, which their notes in the log show: l_B kT or f/ε_r. With an ε_r
/// of the medium in C, the result is the dielectric constant relative to that medium.
///
/// `file` is a CSV table with a row for each sample:
///
/// | column | meaning |
/// |---|---|
/// | `step`, `time` | step number, time |
/// | `Mx`, `My`, `Mz` | total dipole M (charge length) |
/// | `epsilon` | ε of all samples so far |
/// | `epsilon_error` | its standard error |
/// | `kirkwood` | Kirkwood factor (⟨M²⟩ − ⟨M⟩²)/⟨Σ μ²⟩, where μ is the dipole of a molecule; 1 if molecules are independent |
///
/// The error is that of means over blocks of consecutive samples. Blocks of 1, 2, 4, … samples are compared, as long as there are
/// at least 16 of them, and the largest error counts: it contains the correlation between samples if the run is much longer than 16
/// correlation times of M. With fewer than 16 samples it is NaN. A file name that ends in `.parquet` selects a folder of
/// Parquet files.
///
/// References: M. Neumann, Mol. Phys. 50 (1983) 841, doi:10.1080/00268978300102721; blocks: H. Flyvbjerg, H. G. Petersen, J.
/// Chem. Phys. 91 (1989) 461, doi:10.1063/1.457480.
///
/// ```ron
/// Dielectric(every: 100, file: "dielectric.csv", kT: 1.0, coulomb: 1.5)
/// ```
#[component(Analyzer, "Dielectric")]
#[derive(Params)]
pub struct Dielectric {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// First step to sample; samples are at multiples of `every`.
    #[param(default = 0)]
    start: u64,
    /// Output file.
    file: String,
    /// Temperature.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: f64,
    /// Coulomb constant C.
    #[param(unit = "energy length/charge²", default = 1.0, above = 0.0)]
    coulomb: f64,
    #[param(skip)]
    rows: Table,
    #[param(skip)]
    sums: Fluctuations,
}

/// Numbers of a sample: M², and M.
type Sample = [f64; 4];
/// Products of two numbers of a sample.
type Products = [[f64; 4]; 4];
/// Smallest number of blocks for a standard error.
const BLOCKS: f64 = 16.0;

/// Blocks of 2ⁿ samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Level {
    blocks: f64,
    sum: Sample,
    products: Products,
    /// A block that waits for the second half of the block at the next level; the flag is 1 if there is one.
    waiting: (f64, Sample),
}

/// Running sums of the samples.
#[derive(Clone, Debug, Default, PartialEq)]
struct Fluctuations {
    levels: Vec<Level>,
    /// Σ V, Σ Σ μ².
    volume: f64,
    squares: f64,
}

impl Fluctuations {
    /// Adds a sample of M.
    fn add(&mut self, dipole: [f64; 3], volume: f64, squares: f64) {
        self.volume += volume;
        self.squares += squares;
        let [x, y, z] = dipole;
        let mut block = [x * x + y * y + z * z, x, y, z];
        for n in 0.. {
            if n == self.levels.len() {
                self.levels.push(Level::default());
            }
            let level = &mut self.levels[n];
            level.blocks += 1.0;
            for i in 0..4 {
                level.sum[i] += block[i];
                (0..4).for_each(|j| level.products[i][j] += block[i] * block[j]);
            }
            if level.waiting.0 == 0.0 {
                level.waiting = (1.0, block);
                return;
            }
            block = std::array::from_fn(|i| 0.5 * (level.waiting.1[i] + block[i]));
            level.waiting = (0.0, [0.0; 4]);
        }
    }

    /// Returns ⟨M²⟩ − ⟨M⟩² and its standard error.
    fn fluctuation(&self) -> (f64, f64) {
        let Some(first) = self.levels.first() else { return (f64::NAN, f64::NAN) };
        let mean = first.sum.map(|s| s / first.blocks);
        let value = mean[0] - mean[1..].iter().map(|m| m * m).sum::<f64>();
        // its change with the means: 1 for M², −2⟨M⟩ for M
        let slope = [1.0, -2.0 * mean[1], -2.0 * mean[2], -2.0 * mean[3]];
        let variance = |l: &Level| {
            let n = l.blocks;
            let pairs = (0..16).map(|k| (k / 4, k % 4));
            let spread =
                |(i, j): (usize, usize)| slope[i] * slope[j] * (l.products[i][j] / n - l.sum[i] / n * (l.sum[j] / n));
            (pairs.map(spread).sum::<f64>() / (n - 1.0)).max(0.0)
        };
        let errors = self.levels.iter().filter(|l| l.blocks >= BLOCKS).map(|l| variance(l).sqrt());
        (value, errors.fold(f64::NAN, f64::max))
    }

    /// Returns ε, its standard error, and the Kirkwood factor.
    fn results(&self, coulomb: f64, kt: f64) -> [f64; 3] {
        let (value, error) = self.fluctuation();
        let samples = self.levels.first().map_or(0.0, |l| l.blocks);
        let scale = 4.0 * PI * coulomb / (3.0 * kt * self.volume / samples);
        [1.0 + scale * value, scale * error, value * samples / self.squares]
    }

    fn save(&self) -> Vec<u8> {
        let mut all = vec![self.levels.len() as f64, self.volume, self.squares];
        for l in &self.levels {
            all.push(l.blocks);
            all.extend(l.sum.iter().chain(l.products.as_flattened()));
            all.push(l.waiting.0);
            all.extend(l.waiting.1);
        }
        bytes(&all)
    }

    fn load(state: &[u8]) -> Result<Self> {
        let (head, mut rest) = numbers(state, 3)?;
        let mut levels = vec![];
        for _ in 0..head[0] as usize {
            let (words, after) = numbers(rest, 26)?;
            let four = |k: usize| std::array::from_fn(|i| words[k + i]);
            levels.push(Level {
                blocks: words[0],
                sum: four(1),
                products: std::array::from_fn(|i| four(5 + 4 * i)),
                waiting: (words[21], four(22)),
            });
            rest = after;
        }
        if !rest.is_empty() {
            return Err(super::other_analyzer());
        }
        Ok(Self { levels, volume: head[1], squares: head[2] })
    }
}

/// Returns the total dipole of neutral molecules and the sum of the squares of their dipoles.
///
/// # Errors
/// Returns an error if a molecule is charged, or if it has charges and is bonded to its own periodic images.
fn dipoles(molecules: &Whole, charge: &[f64]) -> Result<([f64; 3], f64)> {
    let (mut total, mut squares) = ([0.0; 3], 0.0);
    for part in &molecules.parts {
        let members = molecules.members(part);
        // relative to the first particle, which does not matter for a neutral molecule
        let origin = molecules.place[members[0] as usize];
        let (mut dipole, mut net, mut size) = ([0.0; 3], 0.0, 0.0);
        for tag in members {
            let (q, r) = (charge[*tag as usize], molecules.place[*tag as usize]);
            net += q;
            size += q.abs();
            (0..3).for_each(|k| dipole[k] += q * (r[k] - origin[k]));
        }
        // charges are rounded to single precision
        if net.abs() > 1e-5 * size {
            return Err(Error::Run(format!(
                "the molecule of particle {} has the charge {net}; a dielectric constant requires neutral molecules \
                 (`Conductivity` measures free charges)",
                members[0]
            )));
        }
        if part.endless && size > 0.0 {
            return Err(Error::Run(format!(
                "the molecule of particle {} is bonded to its own periodic images, so its dipole is not defined; remove Dielectric, or \
                 the charges of this molecule",
                members[0]
            )));
        }
        squares += dipole.iter().map(|x| x * x).sum::<f64>();
        total.iter_mut().zip(dipole).for_each(|(t, d)| *t += d);
    }
    Ok((total, squares))
}

const NAMES: [&str; 8] = ["step", "time", "Mx", "My", "Mz", "epsilon", "epsilon_error", "kirkwood"];

impl Analyzer for Dielectric {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if system.dimensions == 2 {
            return Err(Error::input("requires a three-dimensional system; this one is two-dimensional"));
        }
        need_charges(system, needs)?;
        let sum = |k: usize| system.charges.iter().map(|c| c[k]).sum::<f64>();
        let (charged, net, squares) = (sum(0), sum(1), sum(2));
        if squares == 0.0 {
            return Err(Error::input("all charges are 0; remove the analyzer or set charges"));
        }
        if net.abs() > 1e-5 * (squares * charged).sqrt() {
            return Err(Error::input(format!("requires neutral molecules; the net charge is {net}")));
        }
        Whole::bind(system, needs)?;
        needs.sample(self.every, self.start);
        needs.plain_images = true;
        self.rows.bind(system, needs, &self.file);
        Ok(())
    }

    fn start(&mut self, _: Host) -> Result<()> {
        self.rows.start()
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        if frame.step() < self.start {
            return Ok(());
        }
        let (dipole, squares) = dipoles(&Whole::of(frame, 1), charges(frame)?)?;
        self.sums.add(dipole, frame.box_length().iter().product(), squares);
        let [epsilon, error, kirkwood] = self.sums.results(self.coulomb, self.kt);
        let [x, y, z] = dipole;
        let mut row = vec![frame.step().into(), frame.time().into()];
        row.extend([x, y, z, epsilon, error, kirkwood].map(Into::into));
        self.rows.append(&NAMES, &[row])
    }

    fn finish(&mut self) -> Result<()> {
        self.rows.finish()
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        Ok([self.rows.save()?, self.sums.save()].concat())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let rest = self.rows.load(state)?;
        self.sums = Fluctuations::load(rest)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::philox::RandomKey;

    /// Returns three normal numbers.
    fn normal(i: u32) -> [f64; 3] {
        let words =
            [0, 1].map(|k| RandomKey::new(1, 2).single(0, i, k).map(|w| (f64::from(w) + 0.5) / 4_294_967_296.0));
        std::array::from_fn(|k| (-2.0 * words[0][k].ln()).sqrt() * (2.0 * PI * words[1][k]).cos())
    }

    /// M is a first-order autoregressive sequence around a constant: ⟨δM²⟩ = 3, and the error of M² is that of independent
    /// samples, √(6/n), times √((1 + ρ²)/(1 − ρ²)), because δM² decays as ρ²ⁿ.
    #[test]
    fn errors_contain_correlations() {
        for (rho, offset) in [(0.0f64, 0.0), (0.0, 5.0), (0.9, 0.0), (0.9, 5.0)] {
            let mut found = Fluctuations::default();
            let mut m = normal(0);
            let n = 40_000;
            for i in 1..=n {
                let noise = normal(i);
                m = std::array::from_fn(|k| rho * m[k] + (1.0 - rho * rho).sqrt() * noise[k]);
                found.add([m[0] + offset, m[1], m[2] - offset], 2.0, 6.0);
            }
            let (value, error) = found.fluctuation();
            let expected = (6.0 / f64::from(n) * (1.0 + rho * rho) / (1.0 - rho * rho)).sqrt();
            assert!((value - 3.0).abs() < 4.0 * expected, "ρ = {rho}, {offset}: {value}, error {expected}");
            assert!((0.8..1.6).contains(&(error / expected)), "ρ = {rho}, {offset}: {error} and {expected}");
            let [epsilon, _, kirkwood] = found.results(0.5, 1.5);
            assert!((epsilon - 1.0 - 4.0 * PI * 0.5 * value / (3.0 * 1.5 * 2.0)).abs() < 1e-12);
            assert!((kirkwood - value / 6.0).abs() < 1e-12);
            assert_eq!(Fluctuations::load(&found.save()).expect("a state"), found);
        }
    }

    #[test]
    fn few_samples_have_no_error() {
        let mut found = Fluctuations::default();
        for i in 0..15 {
            found.add(normal(i), 1.0, 1.0);
        }
        assert!(found.fluctuation().1.is_nan());
        found.add(normal(15), 1.0, 1.0);
        assert!(found.fluctuation().1 > 0.0);
    }

    #[test]
    fn dipoles_of_molecules_cross_boundaries() {
        let bond = |k| Link { kind: 0, tags: [k, k + 1] };
        let position = [[2.9, 0.0, 0.0], [-2.9, 0.5, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 2.0], [0.0; 3]];
        let molecules = Whole::new(&position, &[[0; 3]; 5], [6.0; 3], None, &[bond(0), bond(2)], 1);
        let (total, squares) = dipoles(&molecules, &[-1.0, 1.0, 2.0, -2.0, 0.0]).expect("neutral molecules");
        for (found, expected) in total.into_iter().zip([0.2, 0.5, -2.0]) {
            assert!((found - expected).abs() < 1e-12, "{total:?}");
        }
        assert!((squares - (0.04 + 0.25 + 4.0)).abs() < 1e-12);
        let error = dipoles(&molecules, &[-1.0, 1.0, 2.0, -1.0, -1.0]).expect_err("a charged molecule");
        assert!(format!("{error:?}").contains("the molecule of particle 2 has the charge 1"), "{error:?}");
    }

    /// The dipole of a ring through the box depends on where it is cut; without charges it is 0.
    #[test]
    fn molecules_bonded_to_their_images_have_no_dipole() {
        let bond = |k| Link { kind: 0, tags: [k, (k + 1) % 4] };
        let position = [-2.9, -1.4, 0.1, 1.6].map(|x| [x, 0.0, 0.0]);
        let molecules = |length: f64| {
            Whole::new(&position, &[[0; 3]; 4], [length, 6.0, 6.0], None, &[bond(0), bond(1), bond(2), bond(3)], 1)
        };
        let charges = [1.0, -1.0, 1.0, -1.0];
        let error = dipoles(&molecules(6.0), &charges).expect_err("a molecule without ends");
        assert!(
            format!("{error:?}").contains("the molecule of particle 0 is bonded to its own periodic images"),
            "{error:?}"
        );
        assert!(dipoles(&molecules(6.0), &[0.0; 4]).is_ok_and(|(total, squares)| total == [0.0; 3] && squares == 0.0));
        assert!(dipoles(&molecules(30.0), &charges).is_ok());
    }
}
