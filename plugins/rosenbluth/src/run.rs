//! A run of a sampler: batches, retries, output files.

use crate::batches::Batches;
use crate::device::DeviceSampler;
use crate::model::Model;
use crate::params::{ChainFile, Common};
use crate::perm::{self, Control};
use crate::results;
use crate::sums::{self, Layout, Totals};
use crate::walk::{Draws, Walk};
use galamost_measure::replace_text;
use galamost_plugin_api::prelude::*;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Number of blocks for errors.
const BLOCKS: usize = 32;
/// Number of blocks with bins for contacts.
const FEW_BLOCKS: usize = 8;
/// Maximum number of bins of averages.
const MAX_ROWS: usize = 400_000;

/// State of a sampler during a run.
#[derive(Clone)]
pub struct SamplerRun {
    model: Model,
    pub layout: Layout,
    control: Option<Control>,
    batches: Batches,
    pub totals: Totals,
    pilot: Vec<f64>,
    file: PathBuf,
    common: Common,
    pub directory: PathBuf,
    cuda: bool,
    host: Option<Host>,
    device: Option<std::sync::Arc<DeviceSampler>>,
}

impl std::fmt::Debug for SamplerRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} chains of {}", self.batches.total, self.model.n)
    }
}

impl SamplerRun {
    /// Prepares a run.
    ///
    /// # Errors
    /// Returns an error if the batch size or the number of bins is invalid.
    pub fn new(
        system: &SystemInfo,
        needs: &mut Needs,
        model: Model,
        common: &Common,
        control: Option<Control>,
        contacts: bool,
        batches: Batches,
    ) -> Result<Self> {
        if !batches.most.is_multiple_of(sums::GROUP) {
            let text = format!("`batch` must be a multiple of {}, found {}", sums::GROUP, batches.most);
            return Err(Error::input(text));
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
        needs.batches = batches.count();
        let histogram = common.distribution.as_ref().map(|d| d.file.clone());
        for file in
            [with_suffix(common.file.as_ref(), "-fit").to_string_lossy().into_owned()].into_iter().chain(histogram)
        {
            needs.output(system, &file, OutputKind::Result);
        }
        let totals = Totals::new(&layout);
        Ok(Self {
            totals,
            layout,
            control,
            batches,
            pilot: vec![],
            file: needs.output(system, &common.file, OutputKind::Result),
            directory: system.directory.clone().into(),
            common: common.clone(),
            cuda: system.device == "cuda",
            host: None,
            device: None,
            model,
        })
    }

    /// Estimates the scales and prepares the device.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn start(&mut self, host: Host) -> Result<()> {
        // enough chains to estimate the powers of two; the same on every device
        self.pilot = sums::pilot(&self.model, (65_536 / self.model.n as u64).clamp(16, 512));
        if self.cuda {
            let room = self.batches.most.min(self.batches.total);
            let device = DeviceSampler::new(&host, &self.model, &self.layout, self.control, room)?;
            self.device = Some(std::sync::Arc::new(device));
        }
        self.host = Some(host);
        Ok(())
    }

    /// Draws a batch and adds its sums.
    ///
    /// # Errors
    /// Returns an error if weights cannot be summed, or the driver's error.
    pub fn sample(&mut self, batch: u64) -> Result<()> {
        /// Retries are rare; the limit stops runs whose weights grow without bound.
        const MAX_RETRIES: u32 = 40;
        let Some(host) = self.host else { return Err(Error::Run("the sampler was not started".into())) };
        let (first, n) = (self.batches.start(batch), self.batches.size(batch));
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

    /// Restores the sums of a checkpoint.
    ///
    /// # Errors
    /// Returns an error if the sums do not fit this sampler, or if its batches so far have another number of chains: then batches to
    /// come would leave chains out or draw them again.
    pub fn load(&mut self, state: &[u8]) -> Result<()> {
        self.totals.load(state)?;
        let (batches, drawn) = (self.totals.batches, self.totals.begun.iter().sum::<u64>());
        let now = self.batches.start(batches).min(self.batches.total);
        if drawn == now {
            return Ok(());
        }
        let what = if self.control.is_some() { "tours" } else { "chains" };
        Err(Error::input(format!(
            "the checkpoint has {drawn} {what} in its first {batches} batches, but the pipeline has {now} in them; restore the \
             earlier `{what}` and `batch`"
        )))
    }

    /// Returns the numbers of monomers in the table.
    pub fn lengths(&self) -> Vec<usize> {
        match &self.common.lengths {
            Some(list) => list.iter().map(|n| *n as usize).collect(),
            None => results::lengths(self.model.n),
        }
    }

    /// Writes the table, the fits, and the histogram.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn finish(&self, more: &[(&'static str, results::Estimate)]) -> Result<()> {
        let (l, t) = (&self.layout, &self.totals);
        if t.batches == 0 {
            return Ok(());
        }
        let table = results::table(l, t, &self.lengths(), !self.model.weights.is_empty());
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
            let text = format!("no chain reached {n} monomers; rows of lengths that none reached have NaN");
            host.log(Level::Warn, &text);
        }
        Ok(())
    }

    /// Writes the first completed chains, which are regrown on the host, since a chain depends only on its number.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write_chains(&self, file: &ChainFile) -> Result<()> {
        let mut out = String::from("chain,monomer,x,y,z,ln_W\n");
        let mut walk = Walk::new(&self.model);
        let (mut left, n) = (file.count, self.model.n);
        for chain in 0..self.batches.total {
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
pub fn default_batch(monomers: u64, n: u32) -> u64 {
    (monomers / u64::from(n)).next_power_of_two().clamp(1024, 1 << 20)
}
