//! Numbers and grid of the field, the same for both devices.

use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision};
use galamost_plugin_api::views::StateView;

/// How the force is made of the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Staggered gradients at the nearest vertex.
    #[default]
    Paper,
    /// The gradient of the field's energy.
    Variational,
}

impl FromValue for Scheme {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Paper" => Some(Self::Paper),
            "Variational" => Some(Self::Variational),
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Paper` or `Variational`".into()
    }
}

/// Smeared charges: C and α.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Charges {
    pub coulomb: f64,
    pub alpha: f64,
}

/// The largest charge, in magnitude: sums of charges are whole numbers, too, and must not overflow.
pub const LARGEST_CHARGE: f64 = 256.0;

/// All numbers of the force.
#[derive(Clone, Debug, Default)]
pub struct Law {
    pub types: usize,
    pub scheme: Scheme,
    pub grid: [usize; 3],
    pub density_every: u64,
    pub field_every: u64,
    /// χ + 1/κ as an energy; of types (i, j) at i · types + j.
    pub matrix: Vec<f64>,
    pub inv_kappa: f64,
    /// ρ0.
    pub rho0: f64,
    /// σ of the filter; 0 for none.
    pub sigma: f64,
    pub charges: Option<Charges>,
    /// Number of particles.
    pub n: usize,
    pub cuda: bool,
    pub precision: Precision,
}

impl Law {
    /// Vertices of the grid.
    pub fn vertices(&self) -> usize {
        self.grid.iter().product()
    }
    /// Grids of densities: one of each type, and one of charges.
    pub fn fields(&self) -> usize {
        self.types + usize::from(self.charges.is_some())
    }
    /// Whether fields are made in Fourier space.
    pub fn spectral(&self) -> bool {
        self.sigma > 0.0 || self.charges.is_some()
    }
    /// What a particle counts in the sums of weights, which are whole numbers: a power of 2 with which all particles on
    /// one vertex do not overflow 62 bits, and that f64 still has exactly.
    pub fn whole(&self) -> u64 {
        1 << (62 - usize::BITS.saturating_sub((self.n.max(1) - 1).leading_zeros())).min(52)
    }
    /// The same for a charge of 1.
    pub fn charge_whole(&self) -> f64 {
        self.whole() as f64 / LARGEST_CHARGE
    }
    /// Energy per particle that does not depend on positions: with it Σ (V/2 + this) is the field's energy.
    pub fn rest(&self, volume: f64) -> f64 {
        0.5 * self.inv_kappa * (self.rho0 * volume / self.n as f64 - 1.0)
    }
    /// Whether something that is due every so many steps is due; `valid`: it was made before.
    pub fn due(every: u64, step: u64, valid: bool) -> bool {
        !valid || step.is_multiple_of(every)
    }
}

/// Where a particle is in the grid: the vertex below and the offset from it in cells, along each axis.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub vertex: [usize; 3],
    pub offset: [f64; 3],
}

impl Place {
    /// The place of particle `i`; vertices stand at −L/2 + n L/grid.
    ///
    /// # Safety
    /// The view is of valid host arrays, and `i` is a particle.
    pub unsafe fn of(state: &StateView, i: usize, grid: [usize; 3]) -> Self {
        let mut place = Self { vertex: [0; 3], offset: [0.0; 3] };
        if state.precision == Precision::Double as u32 {
            // SAFETY: the caller's word
            let (p, length) = unsafe {
                let p = (*state.pos_type.cast::<PosTypeF64>().host().add(i)).position;
                (p, (*state.globals.host()).box_length)
            };
            for k in 0..3 {
                let s = (p[k] / length[k] + 0.5) * grid[k] as f64;
                let below = s.floor().clamp(0.0, (grid[k] - 1) as f64);
                (place.vertex[k], place.offset[k]) = (below as usize, s - below);
            }
        } else {
            // SAFETY: the caller's word
            let p = unsafe { (*state.pos_type.cast::<PosTypeFixed>().host().add(i)).position };
            for k in 0..3 {
                // the box as 2³² units from its lower face, times the grid: whole cells above, the offset below
                let s = u64::from(p[k] as u32 ^ 0x8000_0000) * grid[k] as u64;
                (place.vertex[k], place.offset[k]) = ((s >> 32) as usize, (s as u32) as f64 / 4_294_967_296.0);
            }
        }
        place
    }

    /// The two vertices of each axis.
    pub fn ends(&self, grid: [usize; 3]) -> [[usize; 2]; 3] {
        std::array::from_fn(|k| [self.vertex[k], (self.vertex[k] + 1) % grid[k]])
    }

    /// Vertex and weight of the eight corners; weights are shares of `whole`, which they add up to exactly.
    pub fn weights(&self, grid: [usize; 3], whole: u64) -> [(usize, u64); 8] {
        let split = |whole: u64, part: f64| {
            let upper = (whole as f64 * part).round_ties_even() as u64;
            [whole - upper, upper]
        };
        let ends = self.ends(grid);
        let mut out = [(0, 0); 8];
        let mut slot = 0;
        for (x, wx) in ends[0].iter().zip(split(whole, self.offset[0])) {
            for (y, wy) in ends[1].iter().zip(split(wx, self.offset[1])) {
                for (z, w) in ends[2].iter().zip(split(wy, self.offset[2])) {
                    out[slot] = ((z * grid[1] + y) * grid[0] + x, w);
                    slot += 1;
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_add_up() {
        let law = |n| Law { n, ..Law::default() };
        assert_eq!([1, 1000, 1024, 1025, 1 << 20].map(|n| law(n).whole().ilog2()), [52, 52, 52, 51, 42]);
        let grid = [3, 5, 4];
        for k in 0..1000u32 {
            let at = |m: u32| f64::from(k * m % 1000) / 999.0;
            let p = Place { vertex: [2, 4, 3], offset: [at(1), at(37), at(311)] };
            for whole in [1 << 52, 1 << 30] {
                assert_eq!(p.weights(grid, whole).iter().map(|w| w.1).sum::<u64>(), whole);
            }
        }
    }
}
