//! Charge density, field and potential along an axis.

use super::{charges, need_charges, other_analyzer};
use galamost_measure::{bytes, header, number, numbers, replace};
use galamost_plugin_api::prelude::*;
use std::f64::consts::PI;
use std::path::PathBuf;

/// Measures the profile of the charge density along an axis, and the electrostatic field and potential that follow from it.
///
/// The box is divided into slabs. `file` is a CSV table that is replaced after each sample. Averages include all samples so
/// far.
///
/// | column | meaning |
/// |---|---|
/// | `position` | center of the slab, −L/2 … L/2 |
/// | `charge_density` | ρ, charge per volume |
/// | `field` | E = 4πC ∫ ρ dz from the lower face of the box to the center of the slab (energy/(charge length)) |
/// | `potential` | ψ = −∫ E dz (energy/charge) |
///
/// Field and potential are 0 at the lower face, as for a neutral slab with empty space around it. If the box changes, slabs
/// scale with it, and positions refer to its last size. The system must have three dimensions.
///
/// ```ron
/// ChargeProfile(every: 100, file: "charges.csv", axis: Z, bins: 50, coulomb: 1.5)
/// ```
#[component(Analyzer, "ChargeProfile")]
#[derive(Params)]
pub struct ChargeProfile {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// First step to sample; samples are at multiples of `every`.
    #[param(default = 0)]
    start: u64,
    /// Output file.
    file: String,
    /// Axis of the profile.
    axis: Spanned<Axis>,
    /// Number of slabs.
    #[param(default = 100, at_least = 2, at_most = 100_000)]
    bins: u32,
    /// C, Coulomb constant: that of `Ewald` or `Pppm`.
    #[param(default = 1.0, unit = "energy length/charge²", above = 0.0)]
    coulomb: f64,
    #[param(skip)]
    path: PathBuf,
    #[param(skip)]
    length: f64,
    /// Σ q/volume of each slab over samples.
    #[param(skip)]
    sums: Vec<f64>,
    #[param(skip)]
    samples: f64,
}

/// Returns field and potential at the centers of slabs of this width.
fn integrate(density: &[f64], width: f64, coulomb: f64) -> Vec<[f64; 2]> {
    let (mut field, mut potential) = (0.0, 0.0);
    let mut out = vec![];
    for rho in density {
        // the field is linear and the potential quadratic within a slab
        let half = 0.5 * width;
        let slope = 4.0 * PI * coulomb * rho;
        out.push([field + slope * half, potential - field * half - 0.5 * slope * half * half]);
        potential -= field * width + 0.5 * slope * width * width;
        field += slope * width;
    }
    out
}

impl ChargeProfile {
    fn write(&self) -> Result<()> {
        let mut rows = vec![header(&["position", "charge_density", "field", "potential"])];
        let width = self.length / f64::from(self.bins);
        let density: Vec<f64> = self.sums.iter().map(|s| s / self.samples).collect();
        let found = integrate(&density, width, self.coulomb);
        for (k, (rho, [field, potential])) in density.iter().zip(found).enumerate() {
            let position = (k as f64 + 0.5) * width - 0.5 * self.length;
            rows.push([position, *rho, field, potential].map(number).into());
        }
        replace(&self.path, &rows)
    }
}

impl Analyzer for ChargeProfile {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if system.dimensions == 2 {
            return Err(Error::input("requires a three-dimensional system; this one is two-dimensional"));
        }
        need_charges(system, needs)?;
        needs.sample(self.every, self.start);
        // the potential along x is not that of planes: their images above are displaced
        needs.plain_images = self.axis.value == Axis::X;
        self.path = needs.output(system, &self.file, OutputKind::Result);
        self.sums = vec![0.0; self.bins as usize];
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        if frame.step() < self.start {
            return Ok(());
        }
        let (axis, length) = (self.axis.value as usize, frame.box_length());
        let n = self.sums.len();
        let share = n as f64 / length.iter().product::<f64>();
        for (r, q) in frame.position().iter().zip(charges(frame)?) {
            let s = (r[axis] / length[axis] + 0.5) * n as f64;
            self.sums[(s.max(0.0) as usize).min(n - 1)] += q * share;
        }
        self.length = length[axis];
        self.samples += 1.0;
        self.write()
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        Ok([bytes(&[self.samples, self.length]), bytes(&self.sums)].concat())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let (head, rest) = numbers(state, 2)?;
        let (sums, rest) = numbers(rest, self.sums.len())?;
        if !rest.is_empty() {
            return Err(other_analyzer());
        }
        ([self.samples, self.length], self.sums) = ([head[0], head[1]], sums);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacitor_has_the_field_and_potential_of_its_plates() {
        // plates of charge ±σ, one slab thick, at a distance of 50 slabs
        let (width, sigma) = (0.1, 0.3);
        let mut density = vec![0.0; 100];
        (density[20], density[70]) = (sigma / width, -sigma / width);
        let found = integrate(&density, width, 2.0);
        let field = 4.0 * PI * 2.0 * sigma;
        assert!((found[45][0] - field).abs() < 1e-12 && found[10][0] == 0.0 && found[90][0].abs() < 1e-12);
        assert!((found[90][1] + field * 50.0 * width).abs() < 1e-12, "{}", found[90][1]);
    }
}
