//! Reverse nonequilibrium molecular dynamics: viscosity from an imposed momentum flux.

mod cpu;
mod device;

use cpu::UNITS;
use device::OnDevice;
use galamost_measure::{Cell, Table};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::updater::changed;
use galamost_plugin_api::views::Globals;
use std::mem::offset_of;

/// Reverse nonequilibrium molecular dynamics (Müller-Plathe): imposes a momentum flux and records the velocity profile
/// that results, which gives the viscosity.
///
/// The box is divided into `slabs` along the axis `gradient`; slab 0 starts at the lower face. Every `every` steps, the
/// particle with the most negative velocity along `flow` in slab 0 and the particle with the most positive one in slab
/// `slabs`/2 exchange these velocities. The next pairs follow, up to `swaps` pairs, as long as the first particle is
/// slower than the second. Particles without mass take no part. Particles of equal mass exchange their velocities exactly. Particles of masses m and M collide
/// elastically: v ← 2 (m v + M w)/(m + M) − v. Total momentum and energy are conserved. Among equal velocities (in f32)
/// the smaller tag comes first, so the choice is the same on every device.
///
/// The momentum flows back through the liquid on both sides of slab 0. With P the momentum exchanged in the time t and A
/// the area perpendicular to `gradient`, the flux is j = P/(2 A t) and the viscosity is η = j/|dv/dz|. Fit the slope of
/// the profile between slabs 0 and `slabs`/2, excluding both. Choose the swap rate low enough for a linear profile. The
/// flow produces heat: add a thermostat that does not damp it, `Dpd` or a global thermostat.
///
/// In a box sheared by `LeesEdwards`, `gradient` cannot be X: the displaced images above and below the box would not have the
/// same slabs.
///
/// Every `report` steps a row is appended to `file`, a CSV table with the columns `step`, `time` (since the first swap),
/// `exchanged` (P since then), `flux` (j since the last row), and `v0`, `v1`, …: the mean velocity Σ m v/Σ m of each
/// slab, sampled just before each swap since the last row. If the file name ends in `.parquet`, the table is written as a
/// folder of Parquet files. Swaps and rows belong to the beginning of a step, so the row of the last step is not written: let a stage last
/// a step longer than a multiple of `report`. Checkpoints contain the sums, so a resumed run continues the averages.
///
/// Reference: F. Müller-Plathe, Phys. Rev. E 59 (1999) 4894, doi:10.1103/PhysRevE.59.4894; for different masses
/// C. Nieto-Draghi, J. B. Avalos, Mol. Phys. 101 (2003) 2303, doi:10.1080/0026897031000154338.
///
/// ```ron
/// ReversePerturbation(every: 10, report: 20, file: "momentum.csv", slabs: 10)
/// ```
#[component(Updater, "ReversePerturbation")]
#[derive(Params)]
pub struct ReversePerturbation {
    /// Number of steps between exchanges.
    #[param(at_least = 1)]
    every: u64,
    /// Number of particle pairs per exchange.
    #[param(default = 1, at_least = 1, at_most = 1000)]
    swaps: u32,
    /// Number of slabs; must be even.
    #[param(default = 20, at_least = 4, at_most = 256)]
    slabs: u32,
    /// Direction of the exchanged velocity component.
    #[param(default = Axis::X)]
    flow: Axis,
    /// Direction perpendicular to the slabs.
    #[param(default = Axis::Z)]
    gradient: Axis,
    /// Particles to exchange and to average.
    #[param(default = Group::All)]
    group: Group,
    /// Number of steps between rows of the file; a multiple of `every`.
    #[param(at_least = 1)]
    report: u64,
    /// Output file.
    file: String,
    #[param(skip)]
    system: SystemInfo,
    #[param(skip)]
    rows: Table,
    #[param(skip)]
    totals: Totals,
    #[param(skip)]
    started: Option<Started>,
}

struct Started {
    host: Host,
    device: Option<OnDevice>,
}

/// Result of one call: momentum and mass of each slab before the exchange, in units of 1/[`UNITS`], and the momentum
/// transferred to slab 0.
#[derive(Debug, PartialEq)]
struct SwapResult {
    profile: Vec<[i64; 2]>,
    exchanged: f64,
}

/// Sums that a checkpoint contains.
#[derive(Clone, Debug, Default, PartialEq)]
struct Totals {
    /// Step of the last call; `None` before the first.
    last: Option<u64>,
    /// Time since the first call.
    time: f64,
    /// Momentum exchanged since the first call.
    exchanged: f64,
    /// Time and exchanged momentum since the last row.
    recent: [f64; 2],
    /// Momentum and mass of each slab since the last row.
    profile: Vec<[f64; 2]>,
}

impl Totals {
    fn bytes(&self) -> Vec<u8> {
        let mut out = self.last.map_or(u64::MAX, |s| s).to_le_bytes().to_vec();
        let numbers = [self.time, self.exchanged, self.recent[0], self.recent[1]];
        out.extend(numbers.iter().chain(self.profile.iter().flatten()).flat_map(|x| x.to_le_bytes()));
        out
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let (last, numbers) = words.split_first()?;
        let last = u64::from_le_bytes(*last);
        let numbers: Vec<f64> = numbers.iter().map(|b| f64::from_le_bytes(*b)).collect();
        let (head, profile) = numbers.split_at_checked(4)?;
        Some(Self {
            last: (last != u64::MAX).then_some(last),
            time: head[0],
            exchanged: head[1],
            recent: [head[2], head[3]],
            profile: profile.as_chunks::<2>().0.to_vec(),
        })
    }

    /// Returns a row of the file and resets the sums for the next row.
    fn row(&mut self, step: u64, area: f64) -> Vec<Cell> {
        let flux = self.recent[1] / (2.0 * area * self.recent[0]);
        let mut row = vec![step.into(), self.time.into(), self.exchanged.into(), flux.into()];
        for [momentum, mass] in &mut self.profile {
            row.push(Cell::from(if *mass > 0.0 { *momentum / *mass } else { 0.0 }));
            (*momentum, *mass) = (0.0, 0.0);
        }
        self.recent = [0.0; 2];
        row
    }
}

impl ReversePerturbation {
    /// Returns dt and the box lengths of the current step.
    fn scales(call: &UpdateCall, host: &Host, cuda: bool) -> Result<[f64; 4]> {
        const { assert!(offset_of!(Globals, box_length) == offset_of!(Globals, dt) + 8) };
        let globals = call.state.globals;
        if !cuda {
            // SAFETY: without a device, `globals` points to valid host memory
            let g = unsafe { &*globals.host() };
            return Ok([g.dt, g.box_length[0], g.box_length[1], g.box_length[2]]);
        }
        let mut bytes = [0; 32];
        host.download_bytes(globals.cast::<u8>().offset(offset_of!(Globals, dt)), &mut bytes)?;
        let (words, _) = bytes.as_chunks::<8>();
        Ok(std::array::from_fn(|k| f64::from_ne_bytes(words[k])))
    }
}

impl Updater for ReversePerturbation {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if self.gradient == self.flow {
            return Err(Error::input("`flow` and `gradient` must be different axes"));
        }
        if system.dimensions == 2 && (self.gradient == Axis::Z || self.flow == Axis::Z) {
            return Err(Error::input("in two dimensions `flow` and `gradient` must be X or Y"));
        }
        if !self.slabs.is_multiple_of(2) {
            return Err(Error::input(format!("`slabs` = {} must be even", self.slabs)));
        }
        if !self.report.is_multiple_of(self.every) {
            return Err(Error::input(format!("`report` = {} must be a multiple of `every`", self.report)));
        }
        (needs.period, needs.drives) = (self.every, true);
        // the displaced images above and below do not have the same slabs
        needs.plain_images = self.gradient == Axis::X;
        (needs.group, needs.changes_velocities) = (self.group.need(system)?, true);
        self.rows.bind(system, needs, &self.file);
        self.system = system.clone();
        self.totals.profile = vec![[0.0; 2]; self.slabs as usize];
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let cuda = self.system.device == "cuda";
        let device = if cuda { Some(OnDevice::new(&host, self.slabs, self.swaps)?) } else { None };
        self.started = Some(Started { host, device });
        self.rows.start()
    }

    unsafe fn update(&mut self, call: &mut UpdateCall) -> Result<()> {
        let Some(Started { host, device }) = &self.started else {
            return Err(Error::Run("ReversePerturbation was not started".into()));
        };
        let [dt, length @ ..] = Self::scales(call, host, device.is_some())?;
        // SAFETY: the engine passes views of the run's device, which is the one in `started`
        let result = unsafe {
            match device {
                Some(d) => d.run(host, call, self)?,
                None => cpu::run(call, self),
            }
        };
        call.changed = changed::VELOCITIES;
        let totals = &mut self.totals;
        let elapsed = totals.last.map_or(0.0, |last| dt * (call.step - last) as f64);
        totals.time += elapsed;
        totals.recent[0] += elapsed;
        totals.last = Some(call.step);
        for (total, sums) in totals.profile.iter_mut().zip(&result.profile) {
            total[0] += sums[0] as f64 / UNITS;
            total[1] += sums[1] as f64 / UNITS;
        }
        if call.step.is_multiple_of(self.report) && totals.recent[0] > 0.0 {
            let across = |k: &usize| *k != self.gradient as usize && length[*k] > 0.0;
            let row = totals.row(call.step, (0..3).filter(across).map(|k| length[k]).product());
            let mut names: Vec<String> = ["step", "time", "exchanged", "flux"].map(String::from).into();
            names.extend((0..self.slabs).map(|k| format!("v{k}")));
            self.rows.append(&names, &[row])?;
        }
        self.totals.exchanged += result.exchanged;
        self.totals.recent[1] += result.exchanged;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.rows.finish()
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        let mut out = self.rows.save()?;
        out.extend(self.totals.bytes());
        Ok(out)
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let wrong = || Error::Run("ReversePerturbation: the checkpoint has a different number of slabs".into());
        let totals = self.rows.load(state)?;
        let totals = Totals::from_bytes(totals).filter(|t| t.profile.len() == self.slabs as usize);
        self.totals = totals.ok_or_else(wrong)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reverse_perturbation::cpu::{collide, sort_key};

    #[test]
    fn keys_order_by_velocity_then_tag() {
        let rising = [(-3.5f32, 7), (-1e-30, 0), (0.0, 3), (-0.0, 4), (1e-30, 1), (2.0, 5), (2.0, 6)];
        let keys: Vec<u64> = rising.iter().map(|(v, tag)| sort_key(*v, *tag)).collect();
        assert!(keys.is_sorted_by(|a, b| a < b), "{keys:x?}");
    }

    #[test]
    fn collisions_conserve_momentum_and_energy() {
        assert_eq!(collide([-1.3, 2.7], [2.0, 2.0]), [2.7, -1.3]);
        let (m, before) = ([1.0, 3.0], [-1.3, 2.7]);
        let after = collide(before, m);
        let sum = |v: [f64; 2], power: i32| m[0] * v[0].powi(power) + m[1] * v[1].powi(power);
        assert!((sum(after, 1) - sum(before, 1)).abs() < 1e-14 && (sum(after, 2) - sum(before, 2)).abs() < 1e-13);
        assert!(after[0] > after[1]);
    }

    #[test]
    fn totals_survive_a_checkpoint() {
        let mut t = Totals {
            last: Some(70),
            time: 0.7,
            exchanged: 3.5,
            recent: [0.5, 2.0],
            profile: vec![[1.0, 2.0], [0.0, 0.0], [-3.0, 2.0], [1.0, 1.0]],
        };
        assert_eq!(Totals::from_bytes(&t.bytes()), Some(t.clone()));
        assert_eq!(Totals::from_bytes(&Totals::default().bytes()), Some(Totals::default()));
        assert_eq!(Totals::from_bytes(&[1, 2, 3]), None);
        let row: Vec<String> = t.row(70, 4.0).iter().map(Cell::text).collect();
        assert_eq!(row.join(","), "70,0.7,3.5,0.5,0.5,0.0,-1.5,1.0");
        assert_eq!((t.recent, t.profile[2]), ([0.0; 2], [0.0; 2]));
    }
}
