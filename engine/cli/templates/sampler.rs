//! A sampler of freely jointed chains.
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

galamost_plugin_api::plugin!();

/// Chains in a batch.
const BATCH: u64 = 256;

/// Samples freely jointed chains and writes ⟨R²⟩ of their ends as CSV. Its exact value is N b².
///
/// ```ron
/// MyComponent(bonds: 20, chains: 4096, file: "my-component.csv")
/// ```
#[component(Sampler, "MyComponent")]
#[derive(Debug, Params)]
pub struct MyComponent {
    /// N, number of bonds of a chain.
    #[param(at_least = 1, at_most = 10_000)]
    bonds: u32,
    /// b, length of a bond.
    #[param(unit = "length", above = 0.0, default = 1.0)]
    bond: f64,
    /// Number of chains.
    #[param(at_least = 2)]
    chains: u64,
    /// Output file.
    file: String,
    #[param(skip)]
    path: PathBuf,
    #[param(skip)]
    key: Option<RandomKey>,
    #[param(skip)]
    sums: ChainSums,
}

/// Sums over all chains drawn so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ChainSums {
    chains: u64,
    r2: f64,
    r4: f64,
}

/// Returns the square of the vector from the first to the last particle.
fn end_to_end2(bonds: u32, bond: f64, random: &mut Random) -> f64 {
    let mut end = Vec3::<f64>::zero();
    for _ in 0..bonds {
        // a vector of normal numbers points in a random direction
        let v = random.normal3::<f64>();
        end += v * (bond / v.norm());
    }
    end.norm2()
}

impl Sampler for MyComponent {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.batches = self.chains.div_ceil(BATCH);
        self.path = needs.output(system, &self.file, OutputKind::Result);
        self.key = Some(RandomKey::new(system.seed, system.component));
        Ok(())
    }

    fn sample(&mut self, batch: u64) -> Result<()> {
        let Some(key) = self.key else { return Err(Error::Run("not bound".into())) };
        for chain in 0..BATCH.min(self.chains - batch * BATCH) {
            // random numbers are keyed by batch and chain, so results do not depend on restarts
            let mut random = Random::new(key, batch, chain as u32, 0);
            let r2 = end_to_end2(self.bonds, self.bond, &mut random);
            self.sums.chains += 1;
            self.sums.r2 += r2;
            self.sums.r4 += r2 * r2;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let n = self.sums.chains as f64;
        let mean = self.sums.r2 / n;
        // standard error of independent values
        let error = ((self.sums.r4 / n - mean * mean).max(0.0) / (n - 1.0)).sqrt();
        let text = format!("bonds,chains,r2,r2_error\n{},{n},{mean:?},{error:?}\n", self.bonds);
        std::fs::write(&self.path, text).map_err(|e| Error::io(&self.path, e))
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        let ChainSums { chains, r2, r4 } = self.sums;
        Ok([chains.to_le_bytes(), r2.to_le_bytes(), r4.to_le_bytes()].concat())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let (words, []) = state.as_chunks::<8>() else { return Err(Error::Run("the state is damaged".into())) };
        let [chains, r2, r4] = words else { return Err(Error::Run("the state has another length".into())) };
        self.sums =
            ChainSums { chains: u64::from_le_bytes(*chains), r2: f64::from_le_bytes(*r2), r4: f64::from_le_bytes(*r4) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bond_has_its_length() {
        let mut random = Random::new(RandomKey::new(1, 0), 0, 0, 0);
        assert!((end_to_end2(1, 1.5, &mut random) - 2.25).abs() < 1e-12);
    }

    #[test]
    fn the_mean_square_is_that_of_a_random_walk() {
        let key = RandomKey::new(1, 0);
        let values: Vec<f64> = (0..4000).map(|k| end_to_end2(20, 1.0, &mut Random::new(key, 0, k, 0))).collect();
        let mean = values.iter().sum::<f64>() / 4000.0;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 3999.0;
        // four standard errors
        assert!((mean - 20.0).abs() < 4.0 * (variance / 4000.0).sqrt(), "{mean}");
    }
}
