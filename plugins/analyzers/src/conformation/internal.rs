//! Mean-square internal distances of chains.

use galamost_measure::{Whole, bytes, header, number, numbers, replace};
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Measures the mean-square internal distances ⟨R²(n)⟩ between particles n bonds apart in linear molecules.
///
/// `file` is a CSV table that is replaced after each sample. Averages include all samples so far.
///
/// | column | meaning |
/// |---|---|
/// | `n` | number of bonds between the particles |
/// | `R2` | mean-square distance R² = ⟨(r_(i+n) − r_i)²⟩ (length²) |
/// | `R2/n` | R²/n (length²) |
/// | `pairs` | number of pairs averaged |
///
/// In an equilibrated melt, ⟨R²(n)⟩/n rises monotonically to a plateau. A maximum at small n indicates a chain deformed
/// by the push-off. Molecules with branches or rings are ignored.
///
/// Reference: Auhl, Everaers, Grest, Kremer & Plimpton, J. Chem. Phys. 119, 12718 (2003).
///
/// ```ron
/// InternalDistances(every: 1000, file: "internal.csv")
/// ```
#[component(Analyzer, "InternalDistances")]
#[derive(Params)]
pub struct InternalDistances {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// First step to sample; samples are at multiples of `every`.
    #[param(default = 0)]
    start: u64,
    /// Output file.
    file: String,
    /// Largest n; default: that of the longest chain.
    #[param(at_least = 1, at_most = 1_000_000)]
    n_max: Option<u32>,
    #[param(skip)]
    path: PathBuf,
    #[param(skip)]
    host: Option<Host>,
    /// Σ R² and the number of pairs for n = 1, 2, ….
    #[param(skip)]
    sums: Vec<[f64; 2]>,
}

/// Chains in a chunk; sums of chunks are added in order.
const CHUNK: usize = 64;

impl Analyzer for InternalDistances {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        Whole::bind(system, needs)?;
        needs.sample(self.every, self.start);
        self.path = needs.output(system, &self.file, OutputKind::Result);
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        self.host = Some(host);
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Some(host) = self.host.filter(|_| frame.step() >= self.start) else { return Ok(()) };
        let mut molecules = Whole::of(frame, 2);
        molecules.parts.retain(|p| p.linear);
        let longest = molecules.parts.iter().map(|p| p.range.len() - 1).max().unwrap_or(0);
        let n_max = self.n_max.map_or(longest, |n| longest.min(n as usize));
        if self.sums.len() < n_max {
            self.sums.resize(n_max, [0.0; 2]);
        }
        let chunks = Mutex::new(vec![]);
        host.parallel(molecules.parts.len(), CHUNK, |range| {
            let mut sums = vec![[0.0; 2]; n_max];
            for part in &molecules.parts[range.clone()] {
                let places: Vec<[f64; 3]> = molecules.places(part).collect();
                for (n, sum) in sums.iter_mut().enumerate().take(places.len() - 1) {
                    for (a, b) in places.iter().zip(&places[n + 1..]) {
                        sum[0] += (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>();
                    }
                    sum[1] += (places.len() - n - 1) as f64;
                }
            }
            chunks.lock().unwrap_or_else(PoisonError::into_inner).push((range.start, sums));
        });
        let mut chunks = chunks.into_inner().unwrap_or_else(PoisonError::into_inner);
        chunks.sort_by_key(|(start, _)| *start);
        for (_, sums) in chunks {
            self.sums.iter_mut().zip(sums).for_each(|(total, s)| {
                total[0] += s[0];
                total[1] += s[1];
            });
        }
        let mut rows = vec![header(&["n", "R2", "R2/n", "pairs"])];
        for (n, [r2, pairs]) in (1u32..).zip(&self.sums) {
            let mean = r2 / pairs;
            rows.push(vec![n.to_string(), number(mean), number(mean / f64::from(n)), format!("{pairs:.0}")]);
        }
        replace(&self.path, &rows)
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        Ok(bytes(self.sums.as_flattened()))
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let (sums, rest) = numbers(state, state.len() / 16 * 2)?;
        if !rest.is_empty() {
            return Err(Error::Run("the checkpoint belongs to another analyzer".into()));
        }
        self.sums = sums.as_chunks::<2>().0.to_vec();
        Ok(())
    }
}
