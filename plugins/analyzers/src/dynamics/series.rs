//! What `Msd` and `Vacf` share: samples over many lags, and a table that is replaced during the run.

use crate::dynamics::frames::{Frames, Measure, Row};
use galamost_measure::{Pace, replace};
use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

/// Samples, and the table of averages.
#[derive(Default)]
pub struct Series<M: Measure> {
    /// Stored samples and sums.
    pub frames: Frames<M>,
    /// Output file.
    pub path: PathBuf,
    /// Number of dimensions.
    pub dimensions: usize,
    /// When the table is due.
    pub pace: Pace,
    /// The engine's services.
    pub host: Option<Host>,
}

impl<M: Measure> Series<M> {
    /// Takes a sample.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn sample(&mut self, frame: &Frame<'_>) -> Result<()> {
        // SAFETY: the engine passes a view of valid arrays of the run's device
        unsafe { self.frames.sample(frame)? };
        self.pace.sampled();
        Ok(())
    }

    /// Restores a checkpoint.
    pub fn load(&mut self, state: &[u8]) {
        self.frames.load(state);
        self.pace.sampled();
    }

    /// Replaces the table if it is due. `head` returns the columns of a species, `columns` the values of a lag, species
    /// by species.
    ///
    /// # Errors
    /// Returns the driver's error, or an error if the file cannot be written.
    pub fn write(
        &mut self,
        at_the_end: bool,
        every: u64,
        head: impl Fn(&str) -> Vec<String>,
        columns: impl FnMut(&Row) -> Option<Vec<f64>>,
    ) -> Result<()> {
        if !self.pace.due(at_the_end) {
            return Ok(());
        }
        self.frames.fetch()?;
        let mut columns = columns;
        let mut names: Vec<String> = ["lag", "time", "origins"].map(String::from).into();
        for mut name in self.frames.species.iter().flat_map(|species| head(species)) {
            // with types A and x_A, the column of an axis of A has the name of that of x_A
            while names.contains(&name) {
                name.push_str(":2");
            }
            names.push(name);
        }
        let mut rows = vec![names];
        for row in self.frames.rows() {
            let Some(values) = columns(&row) else { continue };
            let mut text = vec![(row.lag * every).to_string(), format!("{:?}", row.time), row.origins.to_string()];
            text.extend(values.iter().map(|x| format!("{x:?}")));
            rows.push(text);
        }
        replace(&self.path, &rows)
    }

    /// Warns if no two samples are compared, so that the table has no lag above 0.
    pub fn warn_without_lags(&self) {
        let rows = self.frames.rows();
        if let Some(host) = self.host.filter(|_| !rows.is_empty() && rows.iter().all(|row| row.lag == 0)) {
            let text = format!("{} has no lag above 0: the samples do not span the shortest one", self.path.display());
            host.log(Level::Warn, &text);
        }
    }
}

/// Returns the axes whose columns are written.
pub fn shown_axes(axes: bool, dimensions: usize) -> &'static [&'static str] {
    &["x", "y", "z"][..if axes { dimensions } else { 0 }]
}

/// Implements `Analyzer` for a component with the parameters of `Msd` and the method `write`.
macro_rules! series_analyzer {
    ($name:ty) => {
        impl Analyzer for $name {
            fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
                needs.sample(self.every, self.start);
                self.series.path = needs.output(system, &self.file.value, OutputKind::Result);
                self.series.dimensions = system.dimensions as usize;
                let lags = self.lags.schedule(self.every)?;
                self.series.frames.bind(&self.which, lags, self.remove_drift, system, needs, self.file.at)
            }

            fn start(&mut self, host: Host) -> Result<()> {
                self.series.host = Some(host);
                self.series.frames.start(host)
            }

            fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
                if frame.step() < self.start {
                    return Ok(());
                }
                self.series.sample(frame)?;
                self.write(false)
            }

            fn finish(&mut self) -> Result<()> {
                self.write(true)?;
                self.series.warn_without_lags();
                Ok(())
            }

            fn save(&mut self) -> Result<Vec<u8>> {
                self.series.frames.save()
            }

            fn load(&mut self, state: &[u8]) -> Result<()> {
                self.series.load(state);
                Ok(())
            }
        }
    };
}
pub(crate) use series_analyzer;
