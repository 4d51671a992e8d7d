//! The samplers.

use crate::device::OnDevice;
use crate::model::{Beads, Model, Sites};
use crate::params::{ChainFile, Common};
use crate::perm::{self, Control};
use crate::results;
use crate::sums::{self, Layout, Totals};
use crate::walk::{Draws, Walk};
use galamost_measure::replace_text;
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{Fields, FromValue, Range, Value};
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Number of blocks for errors.
const BLOCKS: usize = 32;
/// Number of blocks with bins for contacts.
const FEW_BLOCKS: usize = 8;
/// Maximum number of bins of averages.
const MAX_ROWS: usize = 400_000;

/// Samples self-avoiding chains on a lattice by the Rosenbluth method.
///
/// Each monomer is placed on a free neighboring site of the previous one, chosen at random. The weight W of a chain is
/// the product of the numbers of free sites. A chain without a free site is dead and has W = 0. The average ⟨W⟩ over
/// all chains started is Z_N, which without attraction is the number of self-avoiding walks of N − 1 steps; ⟨A⟩ =
/// ΣAW/ΣW. With `attraction` ε/kT, a site with c contacts has the Boltzmann factor e^{cε/kT} and is chosen in
/// proportion to it. Weights are stored as m 2^e, so no chain length overflows.
///
/// `file` is a CSV table with a row for each number of monomers up to N: ln Z, ⟨R²⟩ (first to last monomer), ⟨R_g²⟩,
/// contacts, and the effective number of chains (ΣW)²/ΣW². Errors are from 32 blocks of chains. `…-fit.csv` contains μ,
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
    run: Option<Run>,
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
    run: Option<Run>,
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
        "`OnLattice(…)` with the fields `lattice` and `attraction` of `Rosenbluth`, or `OffLattice(…)` with `bond`, \
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
/// `FlatContacts` runs without attraction. One run yields the number of chains with each number of contacts and, with
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
    /// Tours per batch, a multiple of 32; means are those of earlier batches.
    #[param(default = 1024, at_least = 32)]
    batch: u64,
    /// Cloning and pruning strategy: `Flat`, `FlatContacts`, or `Thresholds(low: 0.3, high: 3.0)`.
    #[param(default = Strategy(Mode::Flat, None))]
    control: Strategy,
    /// Temperatures kT/ε for averages, with `FlatContacts`.
    temperatures: Option<Vec<f64>>,
    /// Output file for these averages, CSV; `…-fit.csv` has the temperature at which R²/(N − 1) equals that of N/2.
    scan: Option<String>,
    #[param(skip)]
    run: Option<Run>,
}

/// A strategy with its position in the pipeline.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Strategy(Mode, Option<galamost_plugin_api::error::Position>);

/// State of a sampler during a run.
#[derive(Clone)]
struct Run {
    model: Model,
    layout: Layout,
    control: Option<Control>,
    total: u64,
    batch: u64,
    totals: Totals,
    pilot: Vec<f64>,
    file: PathBuf,
    common: Common,
    directory: PathBuf,
    cuda: bool,
    host: Option<Host>,
    device: Option<std::sync::Arc<OnDevice>>,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} chains of {}", self.total, self.model.n)
    }
}

impl Run {
    fn new(
        system: &SystemInfo,
        needs: &mut Needs,
        model: Model,
        common: &Common,
        control: Option<Control>,
        contacts: bool,
        [total, batch]: [u64; 2],
    ) -> Result<Self> {
        if !batch.is_multiple_of(sums::GROUP) {
            return Err(Error::input(format!("`batch` must be a multiple of {}, found {batch}", sums::GROUP)));
        }
        let n = model.n;
        let width = if contacts { model.max_contacts(n) + 1 } else { 1 };
        if n * width > MAX_ROWS {
            let text = format!("{n} monomers with up to {} contacts need too many bins", width - 1);
            return Err(InputError::at(common.monomers.at, text).into());
        }
        let (bins, per_unit) = match &common.distribution {
            Some(d) => (d.bins as usize, model.unit / d.width),
            None => (0, 0.0),
        };
        let blocks = if contacts { FEW_BLOCKS } else { BLOCKS };
        let layout = Layout { n, width, blocks, bins, per_unit, area: model.unit * model.unit };
        needs.batches = total.div_ceil(batch);
        let totals = Totals::new(&layout);
        Ok(Self {
            totals,
            layout,
            control,
            total,
            batch,
            pilot: vec![],
            file: system.path(&common.file),
            directory: system.directory.clone().into(),
            common: common.clone(),
            cuda: system.device == "cuda",
            host: None,
            device: None,
            model,
        })
    }

    fn start(&mut self, host: Host) -> Result<()> {
        // enough chains to estimate the powers of two; the same on every device
        self.pilot = sums::pilot(&self.model, (65_536 / self.model.n as u64).clamp(16, 512));
        if self.cuda {
            let room = self.batch.min(self.total);
            let device = OnDevice::new(&host, &self.model, &self.layout, self.control, room)?;
            self.device = Some(std::sync::Arc::new(device));
        }
        self.host = Some(host);
        Ok(())
    }

    fn sample(&mut self, batch: u64) -> Result<()> {
        /// Retries are rare; the limit stops runs whose weights grow without bound.
        const MAX_RETRIES: u32 = 40;
        let Some(host) = self.host else { return Err(Error::Run("the sampler was not started".into())) };
        let first = batch * self.batch;
        let n = self.batch.min(self.total - first);
        let (model, l) = (&self.model, &self.layout);
        let mut scales = sums::scales(l, &self.totals, &self.pilot);
        let means = if self.control.is_some() { perm::means(l, &self.totals) } else { vec![] };
        for _ in 0..MAX_RETRIES {
            let sums = match (&self.device, self.control) {
                (Some(d), control) => d.batch(&host, model, l, control, &scales, &means, first, n)?,
                (None, Some(control)) => perm::batch(&host, model, control, l, &scales, &means, first, n),
                (None, None) => crate::grow::batch(&host, model, l, &scales, first, n),
            };
            match sums::rescaled(l, &scales, &sums) {
                Some(better) => scales = better,
                None => {
                    self.totals.absorb(l, &scales, &sums, first, n);
                    return Ok(());
                }
            }
        }
        Err(Error::Run("the weights of chains differ too much to be added; use Perm or shorter chains".into()))
    }

    fn lengths(&self) -> Vec<usize> {
        match &self.common.lengths {
            Some(list) => list.iter().map(|n| *n as usize).collect(),
            None => results::lengths(self.model.n),
        }
    }

    /// Writes the table, the fits, and the histogram.
    fn finish(&self, more: &[(&'static str, results::Estimate)]) -> Result<()> {
        let (l, t) = (&self.layout, &self.totals);
        if t.batches == 0 {
            return Ok(());
        }
        let table = results::table(l, t, &self.lengths(), 0.0);
        replace_text(&self.file, &table)?;
        let n = l.n;
        let range = match self.common.fit {
            Some([a, b]) => [a as usize, b as usize],
            None => [(n / 6).max(8), n],
        };
        let mut fits = if range[1] >= range[0] + 4 { results::fits(l, t, range, 0.0) } else { vec![] };
        fits.extend_from_slice(more);
        let mut text = String::from("name,value,error\n");
        for (name, e) in &fits {
            let _ = writeln!(text, "{name},{:.9},{:.3e}", e.value, e.error);
            if let Some(host) = &self.host {
                host.log(Level::Info, &format!("{name} = {:.6} ± {:.1e}", e.value, e.error));
            }
        }
        replace_text(&with_suffix(&self.file, "-fit"), &text)?;
        if let Some(d) = &self.common.distribution {
            replace_text(&self.directory.join(&d.file), &results::histogram(l, t, d.width))?;
        }
        let reached = results::average(l, t, n, 0.0, None).map_or(0.0, |a| a.chains);
        if reached == 0.0
            && let Some(host) = &self.host
        {
            host.log(Level::Warn, &format!("no chain reached {n} monomers; the table ends at the longest chain"));
        }
        Ok(())
    }

    /// Writes the first completed chains, which are regrown on the host, since a chain depends only on its number.
    fn write_chains(&self, file: &ChainFile) -> Result<()> {
        let mut out = String::from("chain,monomer,x,y,z,ln_W\n");
        let mut walk = Walk::new(&self.model);
        let (mut left, n) = (file.count, self.model.n);
        for chain in 0..self.total {
            let draws = Draws { key: self.model.key.key, chain };
            let weight = crate::grow::chain(&mut walk, &draws, n, |_, _, _| ());
            if walk.positions.len() < n {
                continue;
            }
            for (k, r) in walk.positions.iter().enumerate() {
                let [x, y, z]: [f64; 3] =
                    std::array::from_fn(|i| self.model.start[i] + f64::from(r[i]) * self.model.unit);
                let _ = writeln!(out, "{chain},{k},{x:.6},{y:.6},{z:.6},{:.9}", weight.ln());
            }
            left -= 1;
            if left == 0 {
                break;
            }
        }
        replace_text(&self.directory.join(&file.file), &out)
    }
}

/// Inserts a suffix before the extension of a file name.
fn with_suffix(path: &Path, what: &str) -> PathBuf {
    let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let end = path.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}{what}{end}"))
}

/// Returns the default batch size for about `monomers` monomers.
fn default_batch(monomers: u64, n: u32) -> u64 {
    (monomers / u64::from(n)).next_power_of_two().clamp(1024, 1 << 20)
}

fn key(system: &SystemInfo) -> RandomKey {
    RandomKey::new(system.seed, system.component)
}

impl FromValue for Strategy {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        Mode::from_value(value, errors).map(|m| Self(m, Some(value.at())))
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
            bound_run!(self.run)?.totals.load(state)
        }
    };
}

impl Sampler for Rosenbluth {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        let model = Model::sites(&self.sites, &self.common, key(system))?;
        let batch = self.batch.unwrap_or(default_batch(1 << 27, self.common.monomers.value));
        self.run = Some(Run::new(system, needs, model, &self.common, None, false, [self.chains, batch])?);
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
        self.run = Some(Run::new(system, needs, model, &self.common, None, false, [self.chains, batch])?);
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
        let mut list = self.temperatures.clone().unwrap_or_default();
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
        let Strategy(mode, at) = self.control;
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
            // contacts are counted but have no weight
            model.weights = vec![1; crate::model::CONTACTS];
            model.factors = vec![1.0; crate::model::CONTACTS];
        } else if self.temperatures.is_some() || self.scan.is_some() {
            return wrong("`temperatures` and `scan` need `control: FlatContacts`");
        }
        if self.temperatures.is_some() != self.scan.is_some() {
            return wrong("`temperatures` and `scan` must be given together");
        }
        if self.temperatures.iter().flatten().any(|t| *t <= 0.0) {
            return Err(Error::input("`temperatures` must be positive"));
        }
        let control = match mode {
            Mode::Thresholds { low, high } => Control::Thresholds { low, high },
            Mode::Flat | Mode::FlatContacts => Control::Flat,
        };
        let sizes = [self.tours, self.batch];
        self.run = Some(Run::new(system, needs, model, &self.common, Some(control), contacts, sizes)?);
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
