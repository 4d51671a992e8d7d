//! Covariances of the counts of all bins.

use crate::distributions::links::{Bins, Sort};
use crate::distributions::pairs::{count, shell};
use crate::distributions::space::Lengths;
use crate::distributions::which::{Which, numbers_of, pairs_of, type_of};
use galamost_measure::{bytes, numbers, replace};
use galamost_plugin_api::params::{TypeMap, TypePairs};
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

/// Bins of one interaction.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct BinRange {
    /// Lower limit of the first bin (length, or angle in degrees).
    min: f64,
    /// Upper limit of the last bin.
    max: Spanned<f64>,
    /// Number of bins.
    #[param(at_least = 1, at_most = 2000)]
    bins: u32,
}

/// Measures means ⟨S_a⟩ and covariances ⟨S_a S_b⟩ − ⟨S_a⟩⟨S_b⟩ of the numbers of pairs, bonds, angles, and dihedrals in
/// bins.
///
/// Inverse Monte Carlo needs these covariances: ∂⟨S_a⟩/∂U_b is −1/kT times the covariance. `file` is a CSV table with
/// one row for each bin, in the order pairs, bonds, angles, dihedrals, each as listed in the pipeline. It is replaced
/// after samples 1, 2, 4, 8, … and at the end of the run.
///
/// | column | meaning |
/// |---|---|
/// | `interaction` | `pair A-B`, `bond A-A`, … |
/// | `x` | center of the bin (length or degrees) |
/// | `mean` | ⟨S_a⟩ |
/// | `ideal` | mean number at g = 1, or for links at a density of 1 per unit of x; mean/ideal is the distribution |
/// | `c1`, `c2`, … | covariances with all bins |
///
/// A dihedral with three particles on a line has no angle and counts as 0.
///
/// Reference: A. P. Lyubartsev & A. Laaksonen, Phys. Rev. E 52, 3730 (1995).
///
/// ```ron
/// BinCovariance(every: 100, file: "covariance.csv", pairs: { ("A", "A"): (min: 0.0, max: 2.0, bins: 40) })
/// ```
#[component(Analyzer, "BinCovariance")]
#[derive(Params)]
pub struct BinCovariance {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// First step to sample; samples are at multiples of `every`.
    #[param(default = 0)]
    start: u64,
    /// Output file.
    file: Spanned<String>,
    /// Distance bins for pairs of types.
    pairs: Option<TypePairs<BinRange>>,
    /// Bond-length bins for each bond type.
    bonds: Option<Spanned<TypeMap<BinRange>>>,
    /// Angle bins for each angle type.
    angles: Option<Spanned<TypeMap<BinRange>>>,
    /// Dihedral-angle bins for each dihedral type.
    dihedrals: Option<Spanned<TypeMap<BinRange>>>,
    #[param(flatten)]
    which: Which,
    #[param(skip)]
    path: PathBuf,
    #[param(skip)]
    types: usize,
    #[param(skip)]
    dimensions: u32,
    #[param(skip)]
    parts: Vec<Part>,
    #[param(skip)]
    host: Option<Host>,
    /// Number of samples; then Σ S_a, Σ of ideal numbers, Σ S_a S_b for b ≥ a.
    #[param(skip)]
    samples: f64,
    #[param(skip)]
    sum: Vec<f64>,
    #[param(skip)]
    ideal: Vec<f64>,
    #[param(skip)]
    products: Vec<f64>,
}

enum Of {
    Pair([usize; 2]),
    Link(Sort, usize),
}

/// Returns the names, the types and the bins of all pairs of types that have bins, row by row; `"*"` stands for every type.
///
/// # Errors
/// Returns an error if a type is unknown.
fn rows_of<'a>(pairs: &'a TypePairs<BinRange>, types: &[String]) -> Result<Vec<(String, [usize; 2], &'a BinRange)>> {
    let mut errors = Errors::default();
    let (n, rows) = (types.len(), pairs.bind_some(types, &mut errors));
    errors.into_result(Some(()))?;
    let mut all = vec![];
    for ([a, b], _, range) in pairs.iter() {
        let own = |i: usize, j: usize| rows[i * n + j].is_some_and(|row| std::ptr::eq(pairs.get(row), range));
        for (i, j) in (0..n).flat_map(|i| (i..n).map(move |j| (i, j))).filter(|(i, j)| own(*i, *j)) {
            let named = a != "*" && b != "*";
            all.push((if named { format!("{a}-{b}") } else { format!("{}-{}", types[i], types[j]) }, [i, j], range));
        }
    }
    Ok(all)
}

/// One interaction.
struct Part {
    name: String,
    of: Of,
    bins: Bins,
    /// Index of its first bin among all bins.
    first: usize,
}

impl BinCovariance {
    fn total(&self) -> usize {
        self.sum.len()
    }

    fn make_parts(&self, system: &SystemInfo) -> Result<Vec<Part>> {
        let mut parts = vec![];
        let mut first = 0;
        let mut add = |name: String, of: Of, range: &BinRange, limits: [f64; 2]| -> Result<()> {
            if range.max.value <= range.min || range.min < limits[0] || range.max.value > limits[1] {
                let message = format!(
                    "{name}: expected {} ≤ min < max ≤ {}, found min {}, max {}",
                    limits[0], limits[1], range.min, range.max.value
                );
                return Err(InputError::at(range.max.at, message).into());
            }
            let bins = Bins::new(range.min, range.max.value, range.bins);
            parts.push(Part { name, of, bins, first });
            first += bins.n;
            Ok(())
        };
        for (name, types, range) in
            self.pairs.iter().map(|p| rows_of(p, &system.types)).collect::<Result<Vec<_>>>()?.concat()
        {
            add(format!("pair {name}"), Of::Pair(types), range, [0.0, system.half_box()])?;
        }
        for (sort, map, limits) in [
            (Sort::Bond, &self.bonds, [0.0, f64::INFINITY]),
            (Sort::Angle, &self.angles, [0.0, 180.0]),
            (Sort::Dihedral, &self.dihedrals, [-180.0, 180.0]),
        ] {
            let Some(map) = map else { continue };
            for (name, range) in map.value.iter() {
                let link_type = type_of(name, map.at, sort.name(), sort.types(system))?;
                add(format!("{} {name}", sort.name()), Of::Link(sort, link_type), range, limits)?;
            }
        }
        if first == 0 || first > 4000 {
            let message = format!("found {first} bins in pairs, bonds, angles, and dihedrals, expected 1 … 4000");
            return Err(InputError::at(self.file.at, message).into());
        }
        Ok(parts)
    }

    /// Adds the counts S_a of a frame and their products to the sums.
    fn add(&mut self, counts: &[f64]) {
        let m = counts.len();
        self.samples += 1.0;
        let mut at = 0;
        for a in 0..m {
            self.sum[a] += counts[a];
            let row = &mut self.products[at..at + m - a];
            if counts[a] != 0.0 {
                row.iter_mut().zip(&counts[a..]).for_each(|(p, b)| *p += counts[a] * b);
            }
            at += m - a;
        }
    }

    fn write(&self) -> Result<()> {
        let m = self.total();
        let head = ["interaction", "x", "mean", "ideal"].map(String::from).into_iter();
        let mut rows = vec![head.chain((1..=m).map(|k| format!("c{k}"))).collect::<Vec<_>>()];
        let n = self.samples.max(1.0);
        // Σ S_a S_b are integers below 2⁵³ and exact, so the difference of means loses no significant digits
        let product = |a: usize, b: usize| {
            let (a, b) = (a.min(b), a.max(b));
            // rows a' < a have m − a' entries each
            self.products[a * m - a * a.saturating_sub(1) / 2 + b - a]
        };
        for part in &self.parts {
            for k in 0..part.bins.n {
                let a = part.first + k;
                let mut row = vec![part.name.clone(), format!("{:?}", part.bins.middle(k))];
                row.extend([self.sum[a] / n, self.ideal[a] / n].map(|x| format!("{x:?}")));
                row.extend((0..m).map(|b| format!("{:?}", (product(a, b) - self.sum[a] / n * self.sum[b]) / n)));
                rows.push(row);
            }
        }
        replace(&self.path, &rows)
    }
}

impl Analyzer for BinCovariance {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.parts = self.make_parts(system)?;
        let m: usize = self.parts.iter().map(|p| p.bins.n).sum();
        needs.sample(self.every, self.start);
        needs.plain_images = true;
        needs.wants.particles = true;
        needs.wants.topology = self.parts.iter().any(|p| matches!(p.of, Of::Link(..)));
        self.which.bind(system, needs)?;
        self.path = needs.output(system, &self.file.value, OutputKind::Result);
        self.types = system.types.len();
        self.dimensions = system.dimensions;
        self.samples = 0.0;
        self.sum = vec![0.0; m];
        self.ideal = vec![0.0; m];
        self.products = vec![0.0; m * (m + 1) / 2];
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.host = Some(host);
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Some(host) = self.host.filter(|_| frame.step() >= self.start) else { return Ok(()) };
        let length = frame.box_length();
        let volume: f64 = length.iter().take(frame.dimensions() as usize).product();
        let mut found = vec![0u64; self.total()];
        let mut ideal = vec![0.0; self.total()];
        let numbers = numbers_of(frame, self.types);
        let mut of_pair: Vec<Option<&Part>> = vec![None; self.types * self.types];
        let mut r_max = 0.0f64;
        for part in &self.parts {
            if let Of::Pair([a, b]) = part.of {
                of_pair[a * self.types + b] = Some(part);
                of_pair[b * self.types + a] = Some(part);
                r_max = r_max.max(part.bins.middle(part.bins.n - 1) + 0.5 * part.bins.width);
                let density = pairs_of(&numbers, [a, b]) / volume;
                for k in 0..part.bins.n {
                    let inner = part.bins.first + k as f64 * part.bins.width;
                    ideal[part.first + k] = density * shell(inner, inner + part.bins.width, self.dimensions);
                }
            }
        }
        if r_max > 0.0 {
            if length.iter().take(frame.dimensions() as usize).any(|l| r_max > 0.5 * l * (1.0 + 1e-12)) {
                return Err(Error::Run(format!("the largest distance, {r_max}, exceeds half of a box length")));
            }
            let selection = self.which.selection(&host, frame)?;
            let (particle_type, types) = (frame.type_id(), self.types);
            found = count(&host, &Lengths(length), frame.position(), length, r_max, found.len(), |i, j, r| {
                let part = of_pair[particle_type[i] as usize * types + particle_type[j] as usize]?;
                let k = part.bins.index(r)?;
                selection.has(i, j).then_some(part.first + k)
            });
        }
        for sort in [Sort::Bond, Sort::Angle, Sort::Dihedral] {
            let parts: Vec<&Part> = self.parts.iter().filter(|p| matches!(p.of, Of::Link(s, _) if s == sort)).collect();
            if parts.is_empty() {
                continue;
            }
            sort.each(frame, |link, x| {
                for part in parts.iter().filter(|p| matches!(p.of, Of::Link(_, link_type) if link_type == link)) {
                    if let Some(k) = part.bins.index(x) {
                        found[part.first + k] += 1;
                    }
                    ideal[part.first..part.first + part.bins.n].iter_mut().for_each(|n| *n += part.bins.width);
                }
            });
        }
        self.ideal.iter_mut().zip(ideal).for_each(|(s, n)| *s += n);
        self.add(&found.iter().map(|n| *n as f64).collect::<Vec<_>>());
        if (self.samples as u64).is_power_of_two() { self.write() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<()> {
        if self.samples > 0.0 { self.write() } else { Ok(()) }
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        Ok([bytes(&[self.samples]), bytes(&self.sum), bytes(&self.ideal), bytes(&self.products)].concat())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let (samples, rest) = numbers(state, 1)?;
        let (sum, rest) = numbers(rest, self.sum.len())?;
        let (ideal, rest) = numbers(rest, self.ideal.len())?;
        let (products, rest) = numbers(rest, self.products.len())?;
        if !rest.is_empty() {
            return Err(Error::Run("the checkpoint belongs to another analyzer".into()));
        }
        (self.samples, self.sum, self.ideal, self.products) = (samples[0], sum, ideal, products);
        Ok(())
    }
}
