//! Parameters of the field and positions in its grid, common to CPU and device.

use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision};
use galamost_plugin_api::views::StateView;

/// How forces are computed from the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Staggered gradients at the nearest vertex.
    #[default]
    Paper,
    /// Gradient of the field energy.
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

/// Parameters of the smeared charges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Charges {
    /// C.
    pub coulomb: f64,
    /// α.
    pub alpha: f64,
}

/// Maximum magnitude of a charge: charges are summed as integers, and the sums must not overflow.
pub const LARGEST_CHARGE: f64 = 256.0;

/// Mean number of particles per grid cell up to which sums have a limit.
const LIMITED_PER_CELL: usize = 32;

/// Sums of weights from this one on are refused, if they have a limit. A device may add them in halves of 32 bits.
pub const SUM_LIMIT: u64 = 1 << 31;

/// Message for a sum of weights that is too large.
pub const TOO_MANY: &str =
    "more than 2,047 particles of one type are at one grid vertex; use a finer grid or `precision: Double`";

/// Parameters of the force.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Number of types.
    pub types: usize,
    /// How forces are computed.
    pub scheme: Scheme,
    /// Cells along each axis.
    pub grid: [usize; 3],
    /// Steps between density updates.
    pub density_every: u64,
    /// Steps between field updates.
    pub field_every: u64,
    /// χ + 1/κ, an energy, of types (i, j) at index i · types + j.
    pub matrix: Vec<f64>,
    /// 1/κ.
    pub inv_kappa: f64,
    /// ρ0.
    pub rho0: f64,
    /// σ of the filter; 0 for none.
    pub sigma: f64,
    /// Parameters of the smeared charges, if any.
    pub charges: Option<Charges>,
    /// Number of particles.
    pub n: usize,
    /// Whether the run uses a CUDA device.
    pub cuda: bool,
    /// Precision of the run.
    pub precision: Precision,
}

impl Model {
    /// Returns the number of grid vertices.
    pub fn vertices(&self) -> usize {
        self.grid.iter().product()
    }
    /// Returns the number of fields: one per type, plus one for charges.
    pub fn field_count(&self) -> usize {
        self.types + usize::from(self.charges.is_some())
    }
    /// Returns whether fields are computed in Fourier space.
    pub fn uses_fourier(&self) -> bool {
        self.sigma > 0.0 || self.charges.is_some()
    }
    /// Returns whether weights are rounded to 2⁻²⁰, so that sums have a limit, and a device packs those of two vertices into one word.
    /// It depends neither on the device nor on the number of GPUs.
    pub fn limits(&self) -> bool {
        self.precision != Precision::Double && self.charges.is_none() && self.n <= LIMITED_PER_CELL * self.vertices()
    }
    /// Returns the integer weight of one particle. If sums have a limit, it is 2²⁰, so 2,047 particles at a vertex remain below
    /// [`SUM_LIMIT`]. Otherwise it is a power of 2 that f64 represents exactly, and with which all particles on one vertex do not
    /// overflow 62 bits.
    pub fn unit_weight(&self) -> u64 {
        if self.limits() {
            return 1 << 20;
        }
        1 << (62 - usize::BITS.saturating_sub((self.n.max(1) - 1).leading_zeros())).min(52)
    }
    /// Returns the integer weight of a charge of 1.
    pub fn unit_charge(&self) -> f64 {
        self.unit_weight() as f64 / LARGEST_CHARGE
    }
    /// Returns the part of the energy per particle that does not depend on positions: Σ (V/2 + this) is the field energy.
    pub fn uniform_energy(&self, volume: f64) -> f64 {
        0.5 * self.inv_kappa * (self.rho0 * volume / self.n as f64 - 1.0)
    }
    /// Returns whether densities and fields exist at `step`, and are those of an uninterrupted series of steps. `evaluated` is 1 + the
    /// step of the last evaluation, or 0. After steps without this force they would be of any age.
    pub fn has_fields(evaluated: u64, step: u64) -> bool {
        evaluated > 0 && (evaluated == step || evaluated == step + 1)
    }
    /// Returns whether a quantity with the period `every` must be computed; `valid` says whether it exists.
    pub fn due(every: u64, step: u64, valid: bool) -> bool {
        !valid || step.is_multiple_of(every)
    }
}

/// Position of a particle in the grid.
#[derive(Clone, Copy, Debug)]
pub struct GridPosition {
    /// Index of the vertex below the particle, along each axis.
    pub vertex: [usize; 3],
    /// Offset from this vertex in cells.
    pub offset: [f64; 3],
}

impl GridPosition {
    /// Returns the grid position of particle `i`; vertices lie at −L/2 + n L/grid.
    ///
    /// # Safety
    /// The view describes valid host arrays, and `i < n_local`.
    pub unsafe fn of(state: &StateView, i: usize, grid: [usize; 3]) -> Self {
        let mut out = Self { vertex: [0; 3], offset: [0.0; 3] };
        if state.precision == Precision::Double as u32 {
            // SAFETY: `i < n_local`, and positions are f64 in this precision
            let (p, length) = unsafe {
                let p = (*state.pos_type.cast::<PosTypeF64>().host().add(i)).position;
                (p, (*state.globals.host()).box_length)
            };
            for k in 0..3 {
                let s = (p[k] / length[k] + 0.5) * grid[k] as f64;
                let below = s.floor().clamp(0.0, (grid[k] - 1) as f64);
                (out.vertex[k], out.offset[k]) = (below as usize, s - below);
            }
        } else {
            // SAFETY: `i < n_local`, and positions are fixed-point in this precision
            let p = unsafe { (*state.pos_type.cast::<PosTypeFixed>().host().add(i)).position };
            for k in 0..3 {
                // fixed-point distance from the lower face times the grid: the upper 32 bits are the cell, the lower the offset
                let s = u64::from(p[k] as u32 ^ 0x8000_0000) * grid[k] as u64;
                (out.vertex[k], out.offset[k]) = ((s >> 32) as usize, (s as u32) as f64 / 4_294_967_296.0);
            }
        }
        out
    }

    /// Returns the indices of the two enclosing vertices along each axis.
    pub fn corners(&self, grid: [usize; 3]) -> [[usize; 2]; 3] {
        std::array::from_fn(|k| [self.vertex[k], (self.vertex[k] + 1) % grid[k]])
    }

    /// Returns vertex and integer weight of the eight corners; the weights add up to `unit_weight` exactly.
    pub fn weights(&self, grid: [usize; 3], unit_weight: u64) -> [(usize, u64); 8] {
        let split = |weight: u64, offset: f64| {
            let upper = (weight as f64 * offset).round_ties_even() as u64;
            [weight - upper, upper]
        };
        let corners = self.corners(grid);
        let mut out = [(0, 0); 8];
        let mut slot = 0;
        for (x, wx) in corners[0].iter().zip(split(unit_weight, self.offset[0])) {
            for (y, wy) in corners[1].iter().zip(split(wx, self.offset[1])) {
                for (z, w) in corners[2].iter().zip(split(wy, self.offset[2])) {
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
    fn sums_have_a_limit_with_few_particles_per_cell() {
        let charges = Some(Charges { coulomb: 1.0, alpha: 1.0 });
        let model = |precision, charges, n| Model { grid: [8, 4, 3], precision, charges, n, ..Model::default() };
        for (model, limited) in [
            (model(Precision::Mixed, None, 1), true),
            (model(Precision::Single, None, 32 * 96), true),
            (model(Precision::Mixed, None, 32 * 96 + 1), false),
            (model(Precision::Double, None, 96), false),
            (model(Precision::Mixed, charges, 96), false),
        ] {
            assert_eq!((model.limits(), model.unit_weight() == 1 << 20), (limited, limited));
        }
        assert_eq!(SUM_LIMIT / model(Precision::Mixed, None, 96).unit_weight(), 2048);
    }

    #[test]
    fn weights_add_up() {
        let model = |n| Model { n, ..Model::default() };
        assert_eq!([1, 1000, 1024, 1025, 1 << 20].map(|n| model(n).unit_weight().ilog2()), [52, 52, 52, 51, 42]);
        let grid = [3, 5, 4];
        for k in 0..1000u32 {
            let at = |m: u32| f64::from(k * m % 1000) / 999.0;
            let p = GridPosition { vertex: [2, 4, 3], offset: [at(1), at(37), at(311)] };
            for unit_weight in [1 << 52, 1 << 30, 1 << 20] {
                assert_eq!(p.weights(grid, unit_weight).iter().map(|w| w.1).sum::<u64>(), unit_weight);
            }
        }
    }
}
