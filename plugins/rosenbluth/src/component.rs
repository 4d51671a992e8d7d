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

/// Blocks for errors.
const BLOCKS: usize = 32;
/// The same where there are bins for contacts.
const FEW_BLOCKS: usize = 8;
/// Bins of averages, at most.
const MOST_ROWS: usize = 400_000;

/// Self-avoiding chains on a lattice by the method of Rosenbluth and Rosenbluth (J. Chem. Phys. 23 (1955) 356).
///
/// A chain grows by one monomer after the other, each on one of the free neighboring sites of the one before, chosen at
/// random; its weight W is the product of the numbers of free sites. A chain without a free site is dead and counts as W = 0. So
/// ⟨W⟩ over all chains begun is Z_N, without attraction the number of self-avoiding walks of N − 1 steps, exactly in the mean,
/// and ⟨A⟩ = ΣAW/ΣW. With `attraction` ε/kT a site with c contacts has the factor e^{cε/kT} and is chosen in proportion to it.
/// Weights are kept as m 2^e, so no length overflows.
///
/// The table has ln Z, ⟨R²⟩ from first to last monomer, ⟨R_g²⟩, contacts, and the effective number of chains (ΣW)²/ΣW², with
/// errors from 32 blocks of chains, for all numbers of monomers on the way to N. `…-fit.csv` has μ, γ and ν from
/// ln Z = a + n ln μ + (γ − 1) ln n + d/n and ln R² = a + 2ν ln n + d/n over n steps. Chains depend on the seed and their
/// number alone: CPU and GPU give the same ones, and the same sums.
///
/// ```ron
/// Rosenbluth(lattice: Cubic, monomers: 24, chains: 4096, batch: 2048, file: "rosenbluth.csv")
/// ```
#[component(Sampler, "Rosenbluth")]
#[derive(Clone, Debug, Params)]
pub struct Rosenbluth {
    /// The lattice.
    #[param(flatten)]
    sites: Sites,
    /// Chains.
    #[param(flatten)]
    common: Common,
    /// How many chains are begun.
    #[param(at_least = 1)]
    chains: u64,
    /// Chains of a batch, the unit of progress, checkpoints and `--steps`; a multiple of 32. By default about 10⁸ monomers.
    #[param(at_least = 32)]
    batch: Option<u64>,
    /// Chains that are written out as they are.
    write: Option<ChainFile>,
    #[param(skip)]
    run: Option<Run>,
}

/// Self-avoiding chains of beads by the method of Rosenbluth, off lattice.
///
/// Each bead is placed at the bond length from the one before, at one of `trials` places drawn uniformly on the sphere, those
/// nearer than `diameter` to a bead that is not bonded left out. The weight is the product of the shares of places that were
/// allowed, so Z_N is that of chains without overlap over that of chains of free joints: Z_3 = 1 − (σ/2b)². Otherwise as
/// `Rosenbluth`; `attraction` is the depth of a square well that ends at `range` σ.
///
/// ```ron
/// OffLatticeRosenbluth(bond: 1.0, diameter: 0.9, trials: 12, monomers: 20, chains: 1024, batch: 512, file: "beads.csv")
/// ```
#[component(Sampler, "OffLatticeRosenbluth")]
#[derive(Clone, Debug, Params)]
pub struct OffLatticeRosenbluth {
    /// The beads.
    #[param(flatten)]
    beads: Beads,
    /// Chains.
    #[param(flatten)]
    common: Common,
    /// How many chains are begun.
    #[param(at_least = 1)]
    chains: u64,
    /// As in `Rosenbluth`; by default about 2·10⁷ monomers.
    #[param(at_least = 32)]
    batch: Option<u64>,
    /// Chains that are written out as they are.
    write: Option<ChainFile>,
    #[param(skip)]
    run: Option<Run>,
}

/// Where chains of `Perm` grow.
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

/// How chains are cloned and pruned, as the user says it.
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

/// Long chains by PERM: chains whose weight is above the mean go on as several copies with a share of it, those below it are
/// killed or go on with more.
///
/// With `Thresholds` a chain of W > high ⟨W⟩ becomes two of W/2, and one of W < low ⟨W⟩ dies or doubles its weight, with equal
/// chances (Grassberger, Phys. Rev. E 56 (1997) 3682). `Flat` makes as many copies as W/⟨W⟩, at most eight, and lets a chain below
/// the mean live with the probability W/⟨W⟩, then with W = ⟨W⟩. `FlatContacts` does that for each number of contacts by itself,
/// without attraction, so that one run has the number of chains with each number of contacts, and with `temperatures` averages
/// at all of them (Prellberg and Krawczyk, Phys. Rev. Lett. 92 (2004) 120602). ⟨W⟩ is that of the batches before; all estimates
/// are those of `Rosenbluth`, over tours begun, and unbiased. A tour, a chain with its copies, is what errors are computed from.
///
/// ```ron
/// Perm(chain: OnLattice(lattice: Cubic, attraction: 0.1), monomers: 40, tours: 512, batch: 128, file: "perm.csv")
/// ```
#[component(Sampler, "Perm")]
#[derive(Clone, Debug, Params)]
pub struct Perm {
    /// Where the chains grow: `OnLattice(lattice: Cubic, attraction: 0.1)` with the fields of `Rosenbluth`, or
    /// `OffLattice(bond: 1.0, diameter: 1.0, …)` with those of `OffLatticeRosenbluth`.
    chain: Medium,
    /// Chains.
    #[param(flatten)]
    common: Common,
    /// How many tours are begun.
    #[param(at_least = 1)]
    tours: u64,
    /// Tours of a batch, a multiple of 32; means are those of the batches before.
    #[param(default = 1024, at_least = 32)]
    batch: u64,
    /// How chains are cloned and pruned.
    #[param(default = Chosen(Mode::Flat, None))]
    control: Chosen,
    /// For `FlatContacts`: temperatures kT/ε at which averages are wanted.
    temperatures: Option<Vec<f64>>,
    /// File of these averages, CSV; `…-fit.csv` has the temperature where R²/(N − 1) is that of N/2.
    scan: Option<String>,
    #[param(skip)]
    run: Option<Run>,
}

/// A way of control with its place.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Chosen(Mode, Option<galamost_plugin_api::error::Position>);

/// A sampler at work.
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
            return Err(Error::input(format!("`batch` must be a multiple of {}, and not {batch}", sums::GROUP)));
        }
        let n = model.n;
        let width = if contacts { model.most_contacts(n) + 1 } else { 1 };
        if n * width > MOST_ROWS {
            let text = format!("{n} monomers with up to {} contacts are too many bins", width - 1);
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
        // enough to know the powers of two; the same on every device
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
        /// Batches are seldom drawn again at all; a weight that grows without bound would do it for ever.
        const AGAIN: u32 = 40;
        let Some(host) = self.host else { return Err(Error::Run("the sampler was not started".into())) };
        let first = batch * self.batch;
        let n = self.batch.min(self.total - first);
        let (model, l) = (&self.model, &self.layout);
        let mut scales = sums::scales(l, &self.totals, &self.pilot);
        let means = if self.control.is_some() { perm::means(l, &self.totals) } else { vec![] };
        for _ in 0..AGAIN {
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
        Err(Error::Run("the weights of chains are spread too far to be added up: use Perm, or shorter chains".into()))
    }

    fn lengths(&self) -> Vec<usize> {
        match &self.common.lengths {
            Some(list) => list.iter().map(|n| *n as usize).collect(),
            None => results::lengths(self.model.n),
        }
    }

    /// Writes the table, the fits and the histogram.
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
        replace_text(&beside(&self.file, "-fit"), &text)?;
        if let Some(d) = &self.common.distribution {
            replace_text(&self.directory.join(&d.file), &results::histogram(l, t, d.width))?;
        }
        let reached = results::average(l, t, n, 0.0, None).map_or(0.0, |a| a.chains);
        if reached == 0.0
            && let Some(host) = &self.host
        {
            host.log(Level::Warn, &format!("no chain reached {n} monomers: the table ends where the last one did"));
        }
        Ok(())
    }

    /// Writes the first completed chains; they are grown again on the host, since a chain depends on its number alone.
    fn write_chains(&self, file: &ChainFile) -> Result<()> {
        let mut out = String::from("chain,monomer,x,y,z,ln_W\n");
        let mut walk = Walk::new(&self.model);
        let (mut left, n) = (file.count, self.model.n);
        for chain in 0..self.total {
            let draws = Draws { key: self.model.key.key, chain };
            let weight = crate::grow::chain(&mut walk, &draws, n, |_, _, _| ());
            if walk.place.len() < n {
                continue;
            }
            for (k, r) in walk.place.iter().enumerate() {
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

/// `name.csv` with something behind the name.
fn beside(path: &Path, what: &str) -> PathBuf {
    let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let end = path.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}{what}{end}"))
}

/// Chains of a batch of about so many monomers.
fn default_batch(monomers: u64, n: u32) -> u64 {
    (monomers / u64::from(n)).next_power_of_two().clamp(1024, 1 << 20)
}

fn key(system: &SystemInfo) -> RandomKey {
    RandomKey::new(system.seed, system.component)
}

impl FromValue for Chosen {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        Mode::from_value(value, errors).map(|m| Self(m, Some(value.at())))
    }
    fn describe() -> String {
        Mode::describe()
    }
}

macro_rules! at_work {
    ($run:expr) => {
        $run.as_mut().ok_or_else(|| Error::Run("the sampler was not bound".into()))
    };
}

/// What all three do alike.
macro_rules! as_run {
    () => {
        fn start(&mut self, host: Host) -> Result<()> {
            at_work!(self.run)?.start(host)
        }
        fn sample(&mut self, batch: u64) -> Result<()> {
            at_work!(self.run)?.sample(batch)
        }
        fn save(&mut self) -> Result<Vec<u8>> {
            Ok(at_work!(self.run)?.totals.save())
        }
        fn load(&mut self, state: &[u8]) -> Result<()> {
            at_work!(self.run)?.totals.load(state)
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
    as_run!();
    fn finish(&mut self) -> Result<()> {
        let run = at_work!(self.run)?;
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
    as_run!();
    fn finish(&mut self) -> Result<()> {
        let run = at_work!(self.run)?;
        run.finish(&[])?;
        self.write.as_ref().map_or(Ok(()), |w| run.write_chains(w))
    }
}

impl Perm {
    /// Temperatures, if they are asked for.
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
        let Chosen(mode, at) = self.control;
        let contacts = mode == Mode::FlatContacts;
        let wrong = |text: &str| Err(at.map_or(InputError::new(text), |at| InputError::at(at, text)).into());
        let mut model = model;
        if contacts {
            let Medium::Sites(s) = &self.chain else {
                return wrong("contacts are counted in bins on lattices only");
            };
            if s.attraction != 0.0 {
                return wrong("`FlatContacts` needs an attraction of 0: it finds all temperatures at once");
            }
            // counted, but without a weight of their own
            model.weights = vec![1; crate::model::CONTACTS];
            model.factors = vec![1.0; crate::model::CONTACTS];
        } else if self.temperatures.is_some() || self.scan.is_some() {
            return wrong("`temperatures` and `scan` need `control: FlatContacts`");
        }
        if self.temperatures.is_some() != self.scan.is_some() {
            return wrong("`temperatures` and `scan` belong together");
        }
        if self.temperatures.iter().flatten().any(|t| *t <= 0.0) {
            return Err(Error::input("`temperatures` must be above 0"));
        }
        let control = match mode {
            Mode::Thresholds { low, high } => Control::Thresholds { low, high },
            Mode::Flat | Mode::FlatContacts => Control::Flat,
        };
        let sizes = [self.tours, self.batch];
        self.run = Some(Run::new(system, needs, model, &self.common, Some(control), contacts, sizes)?);
        Ok(())
    }
    as_run!();
    fn finish(&mut self) -> Result<()> {
        let list = self.temperatures();
        let run = at_work!(self.run)?;
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
