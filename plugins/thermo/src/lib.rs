//! Temperature, pressure and energies of the whole system, as CSV.

use galamost_plugin_api::prelude::*;
use std::path::PathBuf;

galamost_plugin_api::plugin!();

/// Writes values of the whole system every `every` steps, one row a sample, as CSV.
///
/// Columns: `step`, `time`, `kT` = 2K/g (g degrees of freedom: d N − d if the integrators keep the momentum),
/// `pressure` and its tensor `pressure_xx` … `pressure_zz` = (Σ m v v + virial)/V, `potential` (sum of all
/// components), `kinetic`, `total`, `conserved` (what the equations of motion keep: total plus the thermostat's
/// share), `momentum_x` … `momentum_z`, `volume` (area in two dimensions) and box lengths `length_x` … `length_z`,
/// `kT_rotational` and `kinetic_rotational` if an integrator turns particles (`kinetic` is that of translation, `total`
/// has both), the potential energy of each force component under its name, and further numbers that forces report, as
/// `Component.number`. Pressures are NaN where a force has no virial. Numbers have 17 digits, so that a value
/// read back is the value written. The file is flushed after every row.
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
    kept: Option<Vec<u8>>,
    #[param(skip)]
    rows: Option<RowFile>,
}

const TENSOR: [&str; 6] = ["xx", "xy", "xz", "yy", "yz", "zz"];

impl Thermo {
    fn header(frame: &Frame<'_>) -> Vec<String> {
        let mut names: Vec<String> = ["step", "time", "kT", "pressure"].map(String::from).into();
        names.extend(TENSOR.map(|t| format!("pressure_{t}")));
        names.extend(["potential", "kinetic", "total", "conserved"].map(String::from));
        names.extend(["momentum_x", "momentum_y", "momentum_z"].map(String::from));
        names.extend(["volume", "length_x", "length_y", "length_z"].map(String::from));
        if frame.thermo().is_ok_and(|t| t.rotational_degrees_of_freedom > 0.0) {
            names.extend(["kT_rotational", "kinetic_rotational"].map(String::from));
        }
        for (name, _) in frame.energies() {
            let twins = names.iter().filter(|n| n.split(':').next() == Some(name)).count();
            names.push(if twins == 0 { name.into() } else { format!("{name}:{}", twins + 1) });
        }
        names
    }
}

/// One line of CSV.
fn line(fields: &[String]) -> Result<Vec<u8>> {
    let mut w = csv::Writer::from_writer(vec![]);
    w.write_record(fields).map_err(|e| Error::Run(e.to_string()))?;
    w.into_inner().map_err(|e| Error::Run(e.to_string()))
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
        self.rows = Some(RowFile::open(&self.path, self.resumed, self.kept.as_deref())?);
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let t = frame.thermo()?;
        let mut values = vec![frame.time(), t.kt, t.pressure];
        values.extend(t.pressure_tensor);
        values.extend([t.potential, t.kinetic, t.potential + t.kinetic + t.rotational_kinetic, t.conserved]);
        values.extend(t.momentum);
        values.push(t.volume);
        values.extend(frame.box_length());
        if t.rotational_degrees_of_freedom > 0.0 {
            values.extend([t.rotational_kt, t.rotational_kinetic]);
        }
        values.extend(frame.energies().map(|(_, e)| e));
        let row: Vec<String> =
            std::iter::once(frame.step().to_string()).chain(values.iter().map(|x| format!("{x:?}"))).collect();
        let Some(rows) = &mut self.rows else { return Err(Error::Run("Thermo was not started".into())) };
        let mut text = if rows.is_empty() { line(&Self::header(frame))? } else { vec![] };
        text.extend(line(&row)?);
        rows.append(&text)
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        self.rows.as_mut().map_or(Ok(vec![]), RowFile::save)
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.kept = Some(state.to_vec());
        Ok(())
    }
}
