//! The pair loop of a stage on the device, and the sums of the blocks of a loop.

use super::arrays::{Buffer, launch};
use super::codegen::{Overlap, pair_unit, special_unit, staged_pair_unit};
use super::ranks::{Addresses, Rank};
use super::staged::BLOCK;
use crate::device::args::{PairTerm, RANK_VIRIAL_WORDS, SPECIAL_WEIGHTS, TotalVirialArgs, VirialArgs};
use crate::device::{Device, Kernel};
use crate::pipeline::Special;
use crate::plugins::Component;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::pair::inputs;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::views::{StateView, Wanted};
use std::sync::Arc;

/// Threads of a block of the loop over a plain list.
pub(super) const PAIR_BLOCK: u32 = 128;

/// How the pair loop goes through the neighbors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PairLayout {
    /// A plain list; `team` threads share a row.
    Plain {
        /// Threads.
        team: u32,
    },
    /// A staged list.
    Staged {
        /// Few entries of the list are within the cutoff.
        few: bool,
        /// The largest cutoff, squared and rounded up.
        cutoff2: f32,
        /// Threads that share a row, 1 or 2.
        team: u32,
    },
}

/// Sums that a force evaluation computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed {
    /// None.
    Forces,
    /// The diagonal of the virial, for barostats; energies may be missing.
    Diagonal,
    /// Energies and virials of all components.
    All,
}

impl Computed {
    /// Returns what is computed if this is wanted and, with a `barostat`, the pressure in any case.
    pub fn new(wanted: Wanted, barostat: bool) -> Self {
        if wanted.more_than_force() {
            Self::All
        } else if barostat {
            Self::Diagonal
        } else {
            Self::Forces
        }
    }
}

/// Bytes of the queue of a thread: `QUEUE` entries.
pub(super) const QUEUE_BYTES: u32 = 32 * 2;

/// Returns what the function of a pair potential reads of two particles; see [`inputs`].
fn inputs_of(text: &str) -> Option<u32> {
    text.split("unsigned int inputs = ").nth(1)?.split('u').next()?.parse().ok()
}

/// Returns the number of blocks per multiprocessor up to which the barrier after the move is inside the pair loop (measured on two H200). This
/// saves a kernel, but each block takes longer, and fewer of them are resident if they read more than positions.
fn most_gated(texts: &[String]) -> u16 {
    let read = texts.iter().try_fold(0, |all, text| Some(all | inputs_of(text)?)).unwrap_or(u32::MAX);
    let light = inputs::STEP | inputs::VELOCITY | inputs::RANDOM;
    match read {
        read if read & !inputs::STEP == 0 => 8,
        read if read & !light == 0 => 4,
        _ => 0,
    }
}

impl PairLoop {
    /// Returns whether a function reads one of these [`inputs`].
    pub(super) fn reads(&self, input: u32) -> bool {
        self.texts.iter().any(|t| inputs_of(t).is_none_or(|i| i & input != 0))
    }
}

impl PairLayout {
    /// Returns the layout for a staged list whose rows have `team` threads each.
    pub fn staged(r_cut: f64, r_list: f64, team: u32) -> Self {
        Self::Staged { few: (r_cut / r_list).powi(3) < 0.5, cutoff2: (r_cut * r_cut * 1.000_001) as f32, team }
    }

    /// Returns the threads of a block.
    pub fn block(self) -> u32 {
        match self {
            Self::Plain { .. } => PAIR_BLOCK,
            Self::Staged { team, .. } => team * BLOCK as u32,
        }
    }

    /// Returns whether a pair loop over a staged list first collects the pairs within the cutoff: if these are few, or if
    /// the functions read more of a particle than its position.
    fn queued(self, texts: &[String]) -> bool {
        let Self::Staged { few, .. } = self else { return false };
        let positions_only = texts.iter().all(|t| inputs_of(t).is_some_and(|i| i & !inputs::STEP == 0));
        std::env::var("GALAMOST_QUEUE").map_or(few || !positions_only, |q| q == "1")
    }
}

/// Sums of each block of a loop with energies and virials. Every loop has its own: other ranks may still read those of another loop.
pub(super) struct BlockSums {
    pub(super) partial: Buffer,
    /// With several ranks: its addresses, and the kernel that adds the sums of all blocks.
    pub(super) shared: Option<(Addresses, Kernel)>,
    /// Numbers of a block.
    pub(super) numbers: usize,
    /// Particles of a block.
    pub(super) particles: usize,
}

impl BlockSums {
    /// Allocates the sums of `n` particles. With several ranks, loads the kernel `end` of a module.
    pub(super) fn new(
        device: &Arc<dyn Device>,
        numbers: usize,
        particles: usize,
        n: usize,
        module: u64,
        end: &str,
        rank: Option<&Rank>,
    ) -> Result<Self> {
        // the pass over special pairs has blocks of PAIR_BLOCK particles
        let blocks = n.div_ceil(particles.min(PAIR_BLOCK as usize));
        let partial = Buffer::new(device, 8 * numbers * blocks)?;
        let shared = match rank {
            Some(rank) => Some((rank.share(partial.address())?, device.kernel(module, end)?)),
            None => None,
        };
        Ok(Self { partial, shared, numbers, particles })
    }
}

/// The virial for barostats, as sums of integers; see `virial.cuh`.
pub(super) struct BarostatVirial {
    /// Words of all ranks; each adds to its own, and receives those of the others.
    words: Buffer,
    addresses: Addresses,
    scale: f32,
    total: Kernel,
}

impl BarostatVirial {
    /// Allocates the sums. `system` is the module of `system.cuh`, `energy` is m (r_cut/dt)².
    pub(super) fn new(device: &Arc<dyn Device>, system: u64, energy: f64, rank: Option<&Rank>) -> Result<Self> {
        let words = Buffer::new(device, 8 * RANK_VIRIAL_WORDS as usize * rank.map_or(1, Rank::count) as usize)?;
        Ok(Self {
            addresses: rank.map_or(Ok(Addresses::default()), |r| r.share(words.address()))?,
            words,
            scale: virial_scale(energy),
            total: device.kernel(system, "total_virial")?,
        })
    }

    /// Returns where this rank adds, if there is a `barostat`.
    pub(super) fn args(&self, rank: Option<&Rank>, barostat: bool) -> VirialArgs {
        let own = 8 * u64::from(RANK_VIRIAL_WORDS) * rank.map_or(0, |r| r.number() as u64);
        VirialArgs { words: if barostat { self.words.address() + own } else { 0 }, scale: self.scale, reserved: 0 }
    }

    /// Sets the virial of the globals: with a `barostat` the sum of what pairs and links have added, and in any case the virials of
    /// `n_others` other components at the address `others`.
    pub(super) fn total(
        &self,
        device: &dyn Device,
        state: &StateView,
        rank: Option<&Rank>,
        barostat: bool,
        (others, n_others): (u64, usize),
    ) -> Result<()> {
        if let Some(rank) = rank.filter(|_| barostat) {
            rank.push_own(state, self.addresses, 2 * RANK_VIRIAL_WORDS as usize)?;
        }
        device.profile().set_part("sums");
        let args = TotalVirialArgs {
            globals: state.globals.address,
            virial: self.args(rank, barostat),
            words: self.words.address(),
            others,
            ranks: rank.map_or(1, Rank::count),
            n_others: n_others as u32,
        };
        launch(device, self.total, 32, 32, &args)
    }

    /// Removes what an interrupted step has added.
    pub(super) fn reset(&self) -> Result<()> {
        self.words.clear()
    }
}

/// Returns the scale of the digits for the energy m (r_cut/dt)²: a virial of 2¹¹ times this energy, rounded down to a power of two, is the
/// first that is too large. Energies without an exponent count as 1.
fn virial_scale(energy: f64) -> f32 {
    let exponent = if energy.is_normal() { (energy.to_bits() >> 52 & 0x7ff) as i32 - 1023 } else { 0 };
    2f32.powi((10 - exponent).clamp(-100, 100))
}

/// The pass over scaled special pairs, which follows the pair loop.
pub(super) struct SpecialLoop {
    pub(super) force: Kernel,
    pub(super) full: Kernel,
    pub(super) weights: [f64; SPECIAL_WEIGHTS],
}

impl SpecialLoop {
    /// Compiles the pass; `None` if nothing is scaled.
    fn new(
        device: &Arc<dyn Device>,
        pairs: &[&Arc<Component>],
        texts: &[String],
        precision: Precision,
        n_types: u32,
        special: Special,
    ) -> Result<Option<Self>> {
        let mut weights = [0.0; SPECIAL_WEIGHTS];
        for (row, c) in weights.as_chunks_mut::<3>().0.iter_mut().zip(pairs) {
            *row = special.weights().map(|w| if w.scales() { w.of(c.reads_charges()) } else { 0.0 });
        }
        if weights.iter().all(|w| *w == 0.0) {
            return Ok(None);
        }
        let module = device.compile(&special_unit(texts, n_types, precision))?;
        let (force, full) = (device.kernel(module, "special_force")?, device.kernel(module, "special_force_full")?);
        Ok(Some(Self { force, full, weights }))
    }
}

/// Kernels of a pair loop that overlaps with communication; see [`Overlap`].
#[derive(Clone, Copy, Debug)]
pub(super) enum OverlapKernels {
    None,
    Gated(Kernel),
    Split { interior: Kernel, boundary: Kernel },
}

pub(super) struct PairLoop {
    /// Names of the components.
    pub(super) names: String,
    pub(super) force: Kernel,
    pub(super) full: Kernel,
    /// Computes the diagonal of the virial beside forces.
    pub(super) diagonal: Kernel,
    /// As `force`, overlapping with communication.
    pub(super) overlap: OverlapKernels,
    pub(super) sums: BlockSums,
    pub(super) texts: Vec<String>,
    pub(super) terms: Vec<PairTerm>,
    pub(super) layout: PairLayout,
    pub(super) queued: bool,
    pub(super) n_types: u32,
    pub(super) special: Option<SpecialLoop>,
    /// Parameter rows on the device, kept alive.
    pub(super) _rows: Vec<Buffer>,
}

impl PairLoop {
    pub(super) fn new(
        device: &Arc<dyn Device>,
        pairs: &[&Arc<Component>],
        precision: Precision,
        n: usize,
        n_types: u32,
        layout: PairLayout,
        special: Special,
        seed: u64,
        rank: Option<&Rank>,
    ) -> Result<Self> {
        let (mut texts, mut terms, mut rows) = (vec![], vec![], vec![]);
        for c in pairs {
            let part = c.pair().ok_or_else(|| Error::Run(format!("{} is not a pair potential", c.name)))?;
            let code = part.device(precision)?;
            let (row, cutoff) = (
                Buffer::of_bytes(device, code.rows.as_slice())?,
                Buffer::of_bytes(device, code.cutoff_rows.as_slice())?,
            );
            terms.push(PairTerm {
                rows: row.address(),
                cutoff_rows: cutoff.address(),
                key: RandomKey::new(seed, c.id),
                first_varying: c.first_varying,
                reserved: 0,
            });
            rows.extend([row, cutoff]);
            texts.push(code.text.into_string());
        }
        let queued = layout.queued(&texts);
        let overlap = rank.map(|rank| rank.overlap(most_gated(&texts))).transpose()?;
        let unit = match layout {
            PairLayout::Plain { team } => pair_unit(&texts, n_types, team, rank.is_some(), precision),
            PairLayout::Staged { team, .. } => staged_pair_unit(&texts, n_types, queued, team, overlap, precision),
        };
        let module = device.compile(&unit)?;
        let particles = match layout {
            PairLayout::Plain { team } => (PAIR_BLOCK / team) as usize,
            PairLayout::Staged { .. } => BLOCK,
        };
        let end = "pair_force_end";
        let kernels = match overlap.filter(|_| matches!(layout, PairLayout::Staged { .. })) {
            Some(Overlap::Gated) => OverlapKernels::Gated(device.kernel(module, "pair_force_gated")?),
            Some(Overlap::Split) => OverlapKernels::Split {
                interior: device.kernel(module, "pair_force_interior")?,
                boundary: device.kernel(module, "pair_force_boundary")?,
            },
            _ => OverlapKernels::None,
        };
        Ok(Self {
            sums: BlockSums::new(device, pairs.len() + 6, particles, n, module, end, rank)?,
            names: pairs.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(" + "),
            force: device.kernel(module, "pair_force")?,
            full: device.kernel(module, "pair_force_full")?,
            diagonal: device.kernel(module, "pair_force_diagonal")?,
            overlap: kernels,
            special: SpecialLoop::new(device, pairs, &texts, precision, n_types, special)?,
            texts,
            terms,
            layout,
            queued,
            n_types,
            _rows: rows,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scale is a power of two for any energy, and the limit of a virial of LJ particles is far above kT = 1.
    #[test]
    fn scales_of_virials() {
        for energy in [0.0, f64::NAN, f64::INFINITY, 1e-300, 1.0, 3.9, 250_000.0, 1e300] {
            let scale = virial_scale(energy);
            assert!(scale.is_normal() && scale.to_bits() & 0x7f_ffff == 0, "{energy}: {scale}");
        }
        assert_eq!(virial_scale(1.0), 1024.0);
        assert_eq!(virial_scale(250_000.0), 1.0 / 128.0);
    }
}
