//! Parameters of `Ewald`, and its interface to the engine.

use super::cpu::CpuSum;
use super::device::DeviceSum;
use super::plan::{Waves, plan, wave_error};
use crate::params::{Common, Model};
use crate::short_range::{ShortRange, short_range};
use galamost_plugin_api::memory;
use galamost_plugin_api::pair::LongRange;
use galamost_plugin_api::prelude::*;

/// Coulomb interactions of all periodic images by Ewald sums: U = ½ Σ C q_i q_j/|r_i − r_j + nL|, in a conducting
/// medium.
///
/// The interaction is split by a Kaiser–Bessel window dE/dr = (c/b sinh c) I₀(c √(1 − r²/b²)), which ends at b = `r_cut`
/// (before it if c would exceed 28). The short-range part C q_i q_j [1 − E(r)]/r is computed in the pair loop. The rest is a
/// sum over waves, (2πC/V) Σ_k χ(k)/k² |Σ_i q_i exp(ik·r_i)|² up to `k_max`, with χ = (c/sinh c) sinh(z)/z, z = √(c² − k²b²),
/// minus the self-energy ½ C E'(0) Σq². Gaussians, which Ewald took, need 1.5 times larger k for the same error. The work grows
/// as N^(3/2): use it for small systems and as a reference; `Pppm` is faster above some hundred charges.
///
/// `accuracy` is the only required field. α = √(c/2)/b follows from it and `r_cut`, `k_max` from α, for charges at random. The log
/// has the values. If the box changes during the run, also in a stage before the one with the component, give `r_cut`, `alpha` and `k_max`;
/// `accuracy` then holds for the box at the start. In `Mixed` and `Single`, an accuracy below 1e-5 is not reached, because pairs and charges
/// have 24 bits; a warning says so, and `precision: Double` reaches it.
///
/// `charges: Gaussian(width)` spreads each charge over a Gaussian with this standard deviation along each axis: the pair
/// interaction is C q q' erf(r/2 width)/r. `charges: Slater(lambda)`: C q q' [1 − (1 + r/λ) exp(−2r/λ)]/r, which keeps ions
/// of soft particles apart. `charges: { "A": Gaussian(0.3), "B": Point }` gives each type its distribution. Different
/// Gaussians have C q q' erf(r/√(2(w² + w'²)))/r, different Slater charges C q q' [1 − (b² exp(−ar) − a² exp(−br))/(b² − a²)]/r with
/// a = 2/λ and b = 2/λ', points the width 0. Gaussians and Slater charges cannot be combined.
///
/// A net charge is neutralized by a homogeneous background. It follows charges that updaters change, as `Reactions` does; parameters of
/// the method follow from the charges at the start. `slab: Z` needs a neutral system at all times and adds 2πC M_z²/V, M_z = Σ q z, with z from the plane
/// opposite of the middle of the longest gap without charges in the initial state. So a slab may be anywhere, also across a face of the box. The run
/// ends with an error if a charge comes within 1 % of the box length to that middle. Without a gap of a quarter of the box, z is that of the box
/// and no charge is checked. Pairs that `exclude`
/// removes have no interaction; the `coulomb` weight of `special` scales the whole interaction of a pair. The quantity
/// `Ewald.long_range` is the energy of the sum over waves with all corrections. Virial components are exact; those of the slab
/// along the other axes are the diagonal only.
///
/// Requires a three-dimensional system without shear.
///
/// References: P. P. Ewald, Ann. Phys. 369 (1921) 253, doi:10.1002/andp.19213690304; windows: J. Liang et al.,
/// arXiv:2505.09727; slab: I.-C. Yeh, M. L. Berkowitz, J. Chem. Phys. 111 (1999) 3155, doi:10.1063/1.479595; Slater charges: M. González-Melchor et al., J. Chem. Phys. 125
/// (2006) 224107, doi:10.1063/1.2400223.
///
/// ```ron
/// Ewald(accuracy: 1e-4, l_bjerrum: 1.5, r_cut: 3.0, alpha: 1.0, k_max: 6.3)
/// ```
#[component(LongRange, "Ewald")]
#[derive(Params)]
pub struct Ewald {
    #[param(flatten)]
    common: Common,
    /// Length of the longest wave vector; from `accuracy` and α if omitted.
    #[param(unit = "1/length", above = 0.0)]
    k_max: Option<Spanned<f64>>,
    #[param(skip)]
    model: Model,
    #[param(skip)]
    waves: Waves,
    #[param(skip)]
    started: Option<(Host, Sum)>,
}

enum Sum {
    Cpu(Box<CpuSum>),
    Device(Box<DeviceSum>),
}

impl Force for Ewald {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        let mut model = self.common.model("Ewald", system, needs)?;
        let k_max = plan(&self.common, &mut model, system, self.k_max.as_ref().map(|k| k.value));
        self.common.check_width(&model)?;
        let count = k_max.powi(3) * system.box_length.iter().product::<f64>() / 118.0;
        let powers = (k_max * system.box_length.iter().sum::<f64>() / 3.1) * system.n as f64;
        let what = format!("{count:.0} waves up to k_max = {k_max} of {} particles", system.n);
        memory::require(what, 28.0 * count + 16.0 * powers).map_err(Error::input)?;
        self.waves = Waves::new(k_max, system.box_length);
        if self.waves.vectors.is_empty() {
            return Err(Error::input(format!("k_max = {k_max} is below the shortest wave of the box; increase it")));
        }
        let (waves, error) = (self.waves.vectors.len(), wave_error(&model, model.split, k_max));
        needs.notes.push(format!(
            "r_cut: {:?}, alpha: {:?}, k_max: {k_max:?}; {waves} waves, C {:.6}, estimated error of the waves {error:.2e}",
            model.r_cut, model.alpha, model.coulomb
        ));
        // the waves of a box that grows become longer
        let stretched = (0..3).map(|k| model.present_box[k] / model.box_length[k]).fold(0.0, f64::max);
        let present = wave_error(&model.in_present_box(), model.split, k_max / stretched);
        let remedy = "a larger `k_max`, or a smaller `alpha` with a longer `r_cut`";
        needs.warnings.extend(model.inaccurate("the waves", present, remedy));
        needs.fixed_box = self.common.fixed_box(&model, self.k_max.is_some(), &format!(", k_max: {k_max:?}"));
        needs.cutoff = model.r_cut;
        self.model = model;
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let sum = if self.model.cuda {
            Sum::Device(Box::new(DeviceSum::new(&host, &self.model, &self.waves)?))
        } else {
            Sum::Cpu(Box::new(CpuSum::new(self.waves.clone())))
        };
        self.started = Some((host, sum));
        Ok(())
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let Some((host, sum)) = &mut self.started else { return Err(Error::Run("Ewald was not started".into())) };
        // SAFETY: the engine passes views of the run's device, which is the one in `started`
        unsafe {
            match sum {
                Sum::Device(d) => d.launch(host, &self.model, call),
                Sum::Cpu(c) => c.compute(&self.model, host, call, sums),
            }
        }
    }
}

impl LongRange for Ewald {
    type Pair = short_range;
    fn row(&self, i: usize, j: usize) -> std::result::Result<(ShortRange<f64>, f64), String> {
        Ok((self.model.row(i, j), self.model.r_cut))
    }
    fn device_text(&self) -> String {
        self.model.terms.device_text()
    }
}
