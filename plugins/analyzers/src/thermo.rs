//! Temperature, pressure and energies of the whole system, as CSV.

use galamost_measure::{Cell, Table};
use galamost_plugin_api::prelude::*;

/// Writes temperature, pressure, and energies of the whole system to a CSV table, one row for each sample.
///
/// | column | meaning |
/// |---|---|
/// | `step`, `time` | step number, time |
/// | `kT` | temperature 2K/g (energy); g = degrees of freedom, see below |
/// | `pressure`, `pressure_xx` … `pressure_zz` | pressure and its tensor (Σ m v v + virial)/V (energy/volume) |
/// | `potential` | potential energy, the sum over all components (energy) |
/// | `kinetic` | translational kinetic energy (energy) |
/// | `total` | potential + kinetic + rotational kinetic energy (energy) |
/// | `conserved` | conserved quantity of the equations of motion: `total` plus the thermostat's energy (energy) |
/// | `momentum_x` … `momentum_z` | total momentum |
/// | `volume`, `length_x` … `length_z` | volume (area in two dimensions), box lengths |
/// | `kT_rotational`, `kinetic_rotational` | only if an integrator propagates orientations |
/// | `Component` | potential energy of each force component, under its name |
/// | `Component.number` | additional numbers that a force reports |
/// | `Component.type` | with `by_type: true`: potential energy of the links of each type, such as `HarmonicBond.A-A` (energy) |
///
/// g is d N, minus 1 for each constraint, where N counts the moved particles with mass. The d degrees of freedom of the center
/// of mass are subtracted if one integrator moves all these particles and momentum is conserved.
///
/// Energies by type are computed on the host in double precision, from the positions of the sample. Their sum is the energy of the
/// component up to the rounding of the run's precision.
///
/// Pressures are NaN if a force has no virial, and kT is NaN if g is not positive, as for one particle whose momentum is conserved.
/// Numbers have 17 digits, so that a value read back is the value written.
/// A CSV file is flushed after every row. A file name that ends in `.parquet` selects a folder of Parquet files
/// instead.
///
/// ```ron
/// Thermo(every: 100, file: "thermo.csv")
/// ```
#[component(Analyzer, "Thermo")]
#[derive(Debug, Params)]
pub struct Thermo {
    #[param(flatten)]
    schedule: Schedule,
    /// Output file.
    file: String,
    /// Whether to write the energies of bonded components by type, too.
    #[param(default = false)]
    by_type: bool,
    #[param(skip)]
    rows: Table,
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

impl Analyzer for Thermo {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.schedule.bind(needs)?;
        needs.triclinic = true;
        needs.wants.thermo = true;
        needs.wants.by_type = self.by_type;
        self.rows.bind(system, needs, &self.file);
        Ok(())
    }

    fn start(&mut self, _: Host) -> Result<()> {
        self.rows.start()
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
        // an energy is NaN if its force is not part of this stage
        let energies = frame.energies().map(|(_, e)| Cell::from(Some(e).filter(|e| !e.is_nan())));
        let row =
            std::iter::once(frame.step().into()).chain(values.into_iter().map(Cell::from)).chain(energies).collect();
        self.rows.append(&Self::header(frame), &[row])
    }

    fn finish(&mut self) -> Result<()> {
        self.rows.finish()
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        self.rows.save()
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.rows.load(state).map(drop)
    }
}
