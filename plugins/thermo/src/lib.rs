//! Temperature, pressure and energies of the whole system, as CSV.

use galamost_plugin_api::prelude::*;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

galamost_plugin_api::plugin!();

/// Writes values of the whole system every `every` steps, one row a sample, as CSV.
///
/// Columns: `step`, `time`, `kT` = 2K/g (g degrees of freedom: d N − d if the integrators keep the momentum),
/// `pressure` and its tensor `pressure_xx` … `pressure_zz` = (Σ m v v + virial)/V, `potential` (sum of all
/// components), `kinetic`, `total`, `conserved` (what the equations of motion keep: total plus the thermostat's
/// share), `momentum_x` … `momentum_z`, and the potential energy of each force component under its name. Numbers have
/// 17 digits, so that a value read back is the value written. The file is flushed after every row.
///
/// ```ron
/// Thermo(every: 100, file: "thermo.csv")
/// ```
#[component(Analyzer, "Thermo")]
#[derive(Debug, Params)]
pub struct Thermo {
    /// Steps from one sample to the next.
    #[param(at_least = 1.0)]
    every: u64,
    /// File to write.
    file: String,
    #[param(skip)]
    path: PathBuf,
    #[param(skip)]
    resumed: bool,
    #[param(skip)]
    rows: Option<csv::Writer<File>>,
}

const TENSOR: [&str; 6] = ["xx", "xy", "xz", "yy", "yz", "zz"];

impl Thermo {
    fn header(frame: &Frame<'_>) -> Vec<String> {
        let mut names: Vec<String> = ["step", "time", "kT", "pressure"].map(String::from).into();
        names.extend(TENSOR.map(|t| format!("pressure_{t}")));
        names.extend(
            ["potential", "kinetic", "total", "conserved", "momentum_x", "momentum_y", "momentum_z"].map(String::from),
        );
        for (name, _) in frame.energies() {
            let twins = names.iter().filter(|n| n.split(':').next() == Some(name)).count();
            names.push(if twins == 0 { name.into() } else { format!("{name}:{}", twins + 1) });
        }
        names
    }

    fn failed(&self, e: impl std::fmt::Display) -> Error {
        Error::io(&self.path, e)
    }
}

impl Analyzer for Thermo {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        needs.wants.thermo = true;
        self.path = system.path(&self.file);
        self.resumed = system.resumed;
        Ok(())
    }

    fn start(&mut self, _: Host) -> Result<()> {
        let file = if self.resumed {
            OpenOptions::new().append(true).create(true).open(&self.path)
        } else {
            File::create(&self.path)
        };
        self.rows = Some(csv::Writer::from_writer(file.map_err(|e| self.failed(e))?));
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let t = frame.thermo()?;
        let mut values = vec![frame.time(), t.kt, t.pressure];
        values.extend(t.pressure_tensor);
        values.extend([t.potential, t.kinetic, t.potential + t.kinetic, t.conserved]);
        values.extend(t.momentum);
        values.extend(frame.energies().map(|(_, e)| e));
        let row = std::iter::once(frame.step().to_string()).chain(values.iter().map(|x| format!("{x:?}")));
        let Some(mut rows) = self.rows.take() else { return Err(Error::Run("Thermo was not started".into())) };
        let written = (|| {
            if rows.get_ref().metadata()?.len() == 0 {
                rows.write_record(Self::header(frame))?;
            }
            rows.write_record(row)?;
            rows.flush()?;
            Ok::<(), csv::Error>(())
        })();
        if let Err(e) = written {
            // the writer would try the rest of its buffer again when it is dropped
            drop(rows.into_inner().map(|mut f| f.flush()));
            return Err(self.failed(e));
        }
        self.rows = Some(rows);
        Ok(())
    }
}
