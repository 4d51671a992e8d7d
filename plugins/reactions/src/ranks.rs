//! What the ranks of a run find among their own particles, collected on all of them.

use crate::law::{Candidate, Local};
use crate::resolve::ParticleMap;
use galamost_plugin_api::device::bytes_of;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::StateView;

/// Candidates, and particles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub candidates: Vec<Candidate>,
    pub particles: ParticleMap,
}

/// Reads the words of another rank.
struct Reader<'a>(&'a [u32]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u32; N]> {
        let short = || Error::Run("a message of another rank is too short".into());
        let (words, rest) = self.0.split_first_chunk().ok_or_else(short)?;
        self.0 = rest;
        Ok(*words)
    }
}

impl Found {
    /// Returns what all ranks have found. All ranks call it at the same time.
    ///
    /// # Errors
    /// Returns an error if another rank has failed.
    pub fn gather(self, host: &Host, state: &StateView) -> Result<Self> {
        if (state.own_begin, state.own_end) == (0, state.n_local) {
            return Ok(self);
        }
        let mut all = Self::default();
        for bytes in host.gather_bytes(bytes_of(&self.encode()))? {
            let words: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|b| u32::from_ne_bytes(*b)).collect();
            all.decode(&words)?;
        }
        Ok(all)
    }

    fn encode(&self) -> Vec<u32> {
        let mut words = vec![self.candidates.len() as u32];
        words.extend(self.candidates.iter().flat_map(|c| [c.reaction, c.first, c.second]));
        for (tag, p) in &self.particles {
            words.push(*tag);
            words.extend(p.position.iter().map(|x| x.to_bits()).flat_map(|x| [x as u32, (x >> 32) as u32]));
            words.extend([p.particle_type, p.init as u32, p.cris as u32, p.bonds.len() as u32]);
            words.extend(p.bonds.iter().flat_map(|(other, kind)| [*other, *kind]));
        }
        words
    }

    /// Adds what another rank has encoded.
    fn decode(&mut self, words: &[u32]) -> Result<()> {
        let mut reader = Reader(words);
        let [n] = reader.take()?;
        for _ in 0..n {
            let [reaction, first, second] = reader.take()?;
            self.candidates.push(Candidate { reaction, first, second });
        }
        while !reader.0.is_empty() {
            let [tag, x0, x1, y0, y1, z0, z1, particle_type, init, cris, n] = reader.take()?;
            let number = |low: u32, high: u32| f64::from_bits(u64::from(high) << 32 | u64::from(low));
            let bonds = (0..n).map(|_| reader.take().map(|[other, kind]| (other, kind))).collect::<Result<_>>()?;
            let position = [number(x0, x1), number(y0, y1), number(z0, z1)];
            let (init, cris) = (init as i32, cris as i32);
            self.particles.insert(tag, Local { position, particle_type, init, cris, charge: None, bonds });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ranks_find_is_collected_bit_for_bit() {
        let local = |x: f64, init, bonds: &[(u32, u32)]| Local {
            position: [x, -0.0, 1e300],
            particle_type: 3,
            init,
            cris: -2,
            charge: None,
            bonds: bonds.to_vec(),
        };
        let candidate = |reaction, first, second| Candidate { reaction, first, second };
        let one = Found {
            candidates: vec![candidate(0, 7, 9), candidate(2, 8, 8)],
            particles: [(7, local(0.1, 1, &[])), (9, local(-3.5, -1, &[(7, 4), (u32::MAX, 0)]))].into(),
        };
        let other = Found { candidates: vec![candidate(1, 5, 7)], particles: [(5, local(2.0, 0, &[(1, 1)]))].into() };
        let mut all = Found::default();
        for words in [one.encode(), Found::default().encode(), other.encode()] {
            all.decode(&words).expect("whole");
            assert!(Found::default().decode(&words[..words.len() - 1]).is_err(), "incomplete");
        }
        assert_eq!(all.candidates, [one.candidates, other.candidates].concat());
        assert_eq!(all.particles, one.particles.into_iter().chain(other.particles).collect());
    }
}
