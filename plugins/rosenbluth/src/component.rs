//! The samplers.

use crate::batches::Batches;
use crate::model::{Beads, Model, Sites};
use crate::params::{ChainFile, Common};
use crate::perm::Control;
use crate::results;
use crate::run::{SamplerRun, default_batch};
use galamost_measure::replace_text;
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{Fields, FromValue, Range, Value};
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;

/// Samples self-avoiding chains on a lattice by the Rosenbluth method.
///
/// Each monomer is placed on a free neighboring site of the previous one, chosen at random. The weight W of a chain is
/// the product of the numbers of free sites. A chain without a free site is dead and has W = 0. The average ⟨W⟩ over
/// all chains started is Z_N, which without attraction is the number of self-avoiding walks of N − 1 steps; ⟨A⟩ =
/// ΣAW/ΣW. With `attraction` ε/kT, a site with c contacts has the Boltzmann factor e^{cε/kT} and is chosen in
/// proportion to it. Weights are stored as m 2^e, so no chain length overflows.
///
/// `file` is a CSV table with a row for each number of monomers up to N: ln Z, ⟨R²⟩ (first to last monomer), ⟨R_g²⟩,
/// contacts, and the effective number of chains (ΣW)²/ΣW². Without attraction contacts are not counted, and their columns are NaN; a
/// very small `attraction` makes them counted. Errors are from 32 blocks of chains. `…-fit.csv` contains μ,
/// γ, and ν from ln Z = a + n ln μ + (γ − 1) ln n + d/n and ln R² = a + 2ν ln n + d/n over n steps. Chains depend only
/// on the seed and their number: CPU and GPU produce the same chains and the same sums.
///
/// Reference: M. N. Rosenbluth & A. W. Rosenbluth, J. Chem. Phys. 23, 356 (1955).
///
/// ```ron
/// Rosenbluth(lattice: Cubic, monomers: 24, chains: 4096, batch: 2048, file: "rosenbluth.csv")
/// ```
#[component(Sampler, "Rosenbluth")]
#[derive(Clone, Debug, Params)]
pub struct Rosenbluth {
    /// Lattice and attraction.
    #[param(flatten)]
    sites: Sites,
    /// Chains and outputs.
    #[param(flatten)]
    common: Common,
    /// Number of chains to start.
    #[param(at_least = 1)]
    chains: u64,
    /// Chains per batch, the unit of progress, checkpoints, and `--steps`; a multiple of 32; default: about 10⁸
    /// monomers.
    #[param(at_least = 32)]
    batch: Option<u64>,
    /// Conformations to write.
    write: Option<ChainFile>,
    #[param(skip)]
    run: Option<SamplerRun>,
}

/// Samples self-avoiding chains of beads by the Rosenbluth method, off lattice.
///
/// Each bead is placed at the bond length from the previous one. `trials` positions are drawn uniformly on the sphere,
/// and those closer than `diameter` to a nonbonded bead are rejected. The weight is the product of the fractions of
/// accepted positions, so Z_N is the ratio of the partition functions of nonoverlapping and freely jointed chains: Z_3
/// = 1 − (σ/2b)². `attraction` is the depth of a square well that ends at `range` σ. Everything else is as for
/// `Rosenbluth`.
///
/// ```ron
/// OffLatticeRosenbluth(bond: 1.0, diameter: 0.9, trials: 12, monomers: 20, chains: 1024, batch: 512, file: "beads.csv")
/// ```
#[component(Sampler, "OffLatticeRosenbluth")]
#[derive(Clone, Debug, Params)]
pub struct OffLatticeRosenbluth {
    /// Bead parameters.
    #[param(flatten)]
    beads: Beads,
    /// Chains and outputs.
    #[param(flatten)]
    common: Common,
    /// Number of chains to start.
    #[param(at_least = 1)]
    chains: u64,
    /// Chains per batch, as for `Rosenbluth`; default: about 2·10⁷ monomers.
    #[param(at_least = 32)]
    batch: Option<u64>,
    /// Conformations to write.
    write: Option<ChainFile>,
    #[param(skip)]
    run: Option<SamplerRun>,
}

/// Medium in which chains of `Perm` grow.
#[derive(Clone, Debug, PartialEq)]
enum Medium {
    Sites(Sites),
    Beads(Beads),
}

impl FromValue for Medium {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.name() {
            Some("OnLattice") => Sites::from_value(value, errors).map(Self::Sites),
            Some("OffLattice") => Beads::from_value(value, errors).map(Self::Beads),
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`OnLattice(lattice: Cubic, attraction: 0.1)` with fields of `Rosenbluth`, or `OffLattice(…)` with `bond`, \
         `diameter`, `trials`, `attraction` and `range` of `OffLatticeRosenbluth`"
            .into()
    }
}

/// Cloning and pruning strategy in the pipeline.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Thresholds { low: f64, high: f64 },
    Flat,
    FlatContacts,
}

impl FromValue for Mode {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match (value.name(), value.after_name()) {
            (Some("Flat"), None) => Some(Self::Flat),
            (Some("FlatContacts"), None) => Some(Self::FlatContacts),
            (Some("Thresholds"), Some(_)) => {
                let mut fields = Fields::new(value, errors)?;
                let low = fields.required("low", Range { at_least: 0.0, below: 1.0, ..Range::ANY });
                let high = fields.required("high", Range { above: 1.0, ..Range::ANY });
                fields.finish();
                Some(Self::Thresholds { low: low?, high: high? })
            }
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Flat`, `FlatContacts` or `Thresholds(low: 0.3, high: 3.0)`".into()
    }
}

/// Samples long chains by PERM (pruned-enriched Rosenbluth method): chains with a weight above the mean are cloned,
/// chains below it are pruned.
///
/// | `control` | W above the mean ⟨W⟩ | W below the mean |
/// |---|---|---|
/// | `Thresholds(low, high)` | W > high ⟨W⟩: two copies of W/2 | W < low ⟨W⟩: dies, or doubles its weight, with equal probability |
/// | `Flat` | W/⟨W⟩ copies, at most eight | survives with probability W/⟨W⟩, then with W = ⟨W⟩ |
/// | `FlatContacts` | as `Flat`, separately for each number of contacts | as `Flat` |
///
/// `FlatContacts` runs without attraction and has no `distribution`. One run yields the number of chains with each number of contacts and, with
/// `temperatures`, averages at all of them. ⟨W⟩ is the mean of earlier batches. All estimates are those of
/// `Rosenbluth`, per tour started, and unbiased. Errors are computed from tours; a tour is a chain with all its copies.
///
/// References: P. Grassberger, Phys. Rev. E 56, 3682 (1997); T. Prellberg & J. Krawczyk, Phys. Rev. Lett. 92, 120602
/// (2004).
///
/// ```ron
/// Perm(chain: OnLattice(lattice: Cubic, attraction: 0.1), monomers: 40, tours: 512, batch: 128, file: "perm.csv")
/// ```
#[component(Sampler, "Perm")]
#[derive(Clone, Debug, Params)]
pub struct Perm {
    /// Medium: `OnLattice(lattice: Cubic, attraction: 0.1)` with the fields of `Rosenbluth`, or `OffLattice(bond: 1.0,
    /// diameter: 1.0, …)` with those of `OffLatticeRosenbluth`.
    chain: Medium,
    /// Chains and outputs.
    #[param(flatten)]
    common: Common,
    /// Number of tours to start.
    #[param(at_least = 1)]
    tours: u64,
    /// Largest number of tours per batch, a multiple of 32. Means are those of earlier batches, so the first batch has 32
    /// tours, and each one twice as many as the one before.
    #[param(default = 4096, at_least = 32)]
    batch: u64,
    /// Cloning and pruning strategy: `Flat`, `FlatContacts`, or `Thresholds(low: 0.3, high: 3.0)`.
    #[param(default = Strategy { value: Mode::Flat, at: None })]
    control: Strategy,
    /// Temperatures kT/ε for averages, with `FlatContacts`.
    temperatures: Option<Spanned<Vec<f64>>>,
    /// Output file for these averages, CSV; `…-fit.csv` has the temperature at which R²/(N − 1) equals that of N/2.
    scan: Option<String>,
    #[param(skip)]
    run: Option<SamplerRun>,
}

/// A strategy with its position in the pipeline.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Strategy {
    value: Mode,
    at: Option<galamost_plugin_api::error::Position>,
}

fn key(system: &SystemInfo) -> RandomKey {
    RandomKey::new(system.seed, system.component)
}

impl FromValue for Strategy {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        Mode::from_value(value, errors).map(|m| Self { value: m, at: Some(value.at()) })
    }
    fn describe() -> String {
        Mode::describe()
    }
}

macro_rules! bound_run {
    ($run:expr) => {
        $run.as_mut().ok_or_else(|| Error::Run("the sampler was not bound".into()))
    };
}

/// Methods shared by all samplers.
macro_rules! delegate_to_run {
    () => {
        fn start(&mut self, host: Host) -> Result<()> {
            bound_run!(self.run)?.start(host)
        }
        fn sample(&mut self, batch: u64) -> Result<()> {
            bound_run!(self.run)?.sample(batch)
        }
        fn save(&mut self) -> Result<Vec<u8>> {
            Ok(bound_run!(self.run)?.totals.save())
        }
        fn load(&mut self, state: &[u8]) -> Result<()> {
            bound_run!(self.run)?.load(state)
        }
    };
}

impl Sampler for Rosenbluth {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        let model = Model::sites(&self.sites, &self.common, key(system))?;
        let batch = self.batch.unwrap_or(default_batch(1 << 27, self.common.monomers.value));
        self.run =
            Some(SamplerRun::new(system, needs, model, &self.common, None, false, Batches::equal(batch, self.chains))?);
        if let Some(write) = &self.write {
            needs.output(system, &write.file, OutputKind::Result);
        }
        Ok(())
    }
    delegate_to_run!();
    fn finish(&mut self) -> Result<()> {
        let run = bound_run!(self.run)?;
        run.finish(&[])?;
        self.write.as_ref().map_or(Ok(()), |w| run.write_chains(w))
    }
}

impl Sampler for OffLatticeRosenbluth {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        let model = Model::beads(&self.beads, &self.common, key(system))?;
        let batch = self.batch.unwrap_or(default_batch(1 << 24, self.common.monomers.value));
        self.run =
            Some(SamplerRun::new(system, needs, model, &self.common, None, false, Batches::equal(batch, self.chains))?);
        if let Some(write) = &self.write {
            needs.output(system, &write.file, OutputKind::Result);
        }
        Ok(())
    }
    delegate_to_run!();
    fn finish(&mut self) -> Result<()> {
        let run = bound_run!(self.run)?;
        run.finish(&[])?;
        self.write.as_ref().map_or(Ok(()), |w| run.write_chains(w))
    }
}

impl Perm {
    /// Returns the sorted temperatures.
    fn temperatures(&self) -> Vec<f64> {
        let mut list = self.temperatures.as_ref().map_or_else(Vec::new, |t| t.value.clone());
        list.sort_by(f64::total_cmp);
        list
    }
}

impl Sampler for Perm {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        let model = match &self.chain {
            Medium::Sites(s) => Model::sites(s, &self.common, key(system))?,
            Medium::Beads(b) => Model::beads(b, &self.common, key(system))?,
        };
        let Strategy { value: mode, at } = self.control;
        let contacts = mode == Mode::FlatContacts;
        let wrong = |text: &str| Err(at.map_or(InputError::new(text), |at| InputError::at(at, text)).into());
        let mut model = model;
        if contacts {
            let Medium::Sites(s) = &self.chain else {
                return wrong("`FlatContacts` needs a lattice");
            };
            if s.attraction != 0.0 {
                return wrong("`FlatContacts` needs `attraction: 0`; use `temperatures` instead");
            }
            // weights of different numbers of contacts have different scales
            if self.common.distribution.is_some() {
                return wrong("`FlatContacts` has no `distribution`; use `Flat` in another run");
            }
            // contacts are counted but have no weight
            model.weights = vec![1; crate::model::CONTACTS];
            model.factors = vec![1.0; crate::model::CONTACTS];
        } else if self.temperatures.is_some() || self.scan.is_some() {
            return wrong("`temperatures` and `scan` need `control: FlatContacts`");
        }
        if self.temperatures.is_some() != self.scan.is_some() {
            return wrong("`temperatures` and `scan` must be given together");
        }
        if let Some(Spanned { value, at }) = &self.temperatures {
            if value.is_empty() {
                return Err(InputError::at(*at, "`temperatures` is empty; give at least one temperature").into());
            }
            if value.iter().any(|t| *t <= 0.0) {
                return Err(InputError::at(*at, "`temperatures` must be positive").into());
            }
        }
        let control = match mode {
            Mode::Thresholds { low, high } => Control::Thresholds { low, high },
            Mode::Flat | Mode::FlatContacts => Control::Flat,
        };
        let sizes = Batches::growing(self.batch, self.tours);
        self.run = Some(SamplerRun::new(system, needs, model, &self.common, Some(control), contacts, sizes)?);
        if let Some(file) = &self.scan {
            needs.output(system, file, OutputKind::Result);
        }
        Ok(())
    }
    delegate_to_run!();
    fn finish(&mut self) -> Result<()> {
        let list = self.temperatures();
        let run = bound_run!(self.run)?;
        let mut more = vec![];
        if let (Some(file), [low, .., high]) = (&self.scan, list.as_slice()) {
            let (l, t) = (&run.layout, &run.totals);
            more.extend(results::theta(l, t, [*low, *high]).map(|e| ("kT_theta", e)));
            replace_text(&run.directory.join(file), &results::scan(l, t, &run.lengths(), &list))?;
        } else if let (Some(file), [one]) = (&self.scan, list.as_slice()) {
            let (l, t) = (&run.layout, &run.totals);
            replace_text(&run.directory.join(file), &results::scan(l, t, &run.lengths(), &[*one]))?;
        }
        run.finish(&more)
    }
}
