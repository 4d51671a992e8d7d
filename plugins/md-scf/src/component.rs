//! What the user writes, and the force as the engine sees it.

use crate::cpu::OnCpu;
use crate::device::OnDevice;
use crate::law::{Charges, LARGEST_CHARGE, Law, Scheme};
use galamost_plugin_api::component::ArrayNeed;
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::TypePairs;
use galamost_plugin_api::prelude::*;

/// Charges as a field.
#[derive(Clone, Debug, Params)]
pub struct Electrostatics {
    /// C of U = C q q'/r: 1/(4π ε0 ε_r).
    #[param(unit = "energy length/charge²", above = 0.0)]
    coulomb: f64,
    /// α: a charge is a Gaussian with the variance 1/(4α²) along each axis.
    #[param(unit = "1/length", above = 0.0)]
    alpha: f64,
}

/// Hybrid particle–field dynamics (MD-SCF): particles do not meet each other but the field of their densities,
/// V_K = Σ_K' χ_KK' φ_K' + (1/κ)(Σ_K' φ_K' − 1).
///
/// φ_K is the number density of type K over ρ0. A particle gives the eight vertices of its cell the shares Π(1 − |d|/l);
/// vertices stand at −L/2 + n l, l = L/grid along each axis. χ is symmetric (one row for each pair of types, also of a type
/// with itself) and an energy; with `kT` its rows are numbers and are multiplied by it. 1/κ is an energy and never
/// multiplied. The field's energy is W = ρ0 ∫ [½ Σ χ_KK' φ_K φ_K' + (1/2κ)(Σφ − 1)²] dr.
///
/// `scheme: Variational`: F = −Σ_v V(v) ∂P_v/∂r, with P_v the share of vertex v: the gradient of W, which is so conserved.
/// `scheme: Paper`: with V's differences G₁ = (V(n) − V(n−1))/l and G₂ = (V(n+1) − V(n))/l around the particle's nearest vertex n
/// and d the offset from it in cells, F = −[(½ − d) G₁ + (½ + d) G₂] along each axis. This is the gradient of no energy: energy
/// is not conserved, and there is no virial. Neither scheme conserves momentum, since the grid stands still and a particle's own
/// share pushes it by its place in the cell: where no thermostat does, take the drift of the center of mass off by `ZeroMomentum`.
///
/// Densities are collected every `density_every` steps and fields made of them every `field_every` steps (counted from step
/// 0, and when there are none); between, particles move in the field of then. The energy is W of the last densities;
/// `MdScf.potential_sum` beside it is Σ_i V(r_i) in the last field (with the eight shares), which is 2W where both are of this
/// step and ρ0 = N/V. Pressure needs `Variational` and fields of every step; then W's virial is that of a grid that follows the
/// box, with ρ0 as it is.
///
/// `filter` is the σ of a Gaussian that both densities and fields are convolved with (V is convolved twice in all): the
/// result depends less on the grid. `electrostatics` adds the field of charges, which are Gaussians: in Fourier space
/// ψ(k) = C (4π/k²) exp(−k²/4α²) q(k), without k = 0, F = −q ∂ψ/∂r by the same scheme, and ½ Σ q ψ in W and its virial. That is
/// the long-range part of an Ewald sum: nearer than about 2/α charges repel less than points do, and the energy has the
/// part C α Σq²/√π of each Gaussian with itself.
///
/// For a molecule's own interactions use bonds, angles, and pair potentials with `neighbors: (only: SameMolecule)`.
///
/// References: G. Milano, T. Kawakatsu, J. Chem. Phys. 130 (2009) 214106, doi:10.1063/1.3142103; Y.-L. Zhu, H. Liu, Z.-W.
/// Li, H.-J. Qian, G. Milano, Z.-Y. Lu, J. Comput. Chem. 34 (2013) 2197, doi:10.1002/jcc.23365; filter and variational
/// force: S. L. Bore, M. Cascella, J. Chem. Phys. 153 (2020) 094106, doi:10.1063/5.0020733.
///
/// ```ron
/// MdScf(scheme: Variational, grid: [8, 7, 6], density: 1.5, kappa: 0.1, filter: 0.6, chi: {
///     ("A", "A"): 0.0, ("A", "B"): 6.0, ("B", "B"): 1.0,
/// })
/// ```
#[component(Force, "MdScf")]
#[derive(Params)]
pub struct MdScf {
    /// χ of each pair of types; an energy, or a number if `kT` is given.
    #[param(unit = "energy")]
    chi: TypePairs<f64>,
    /// What χ is multiplied with: 1 if it is not given.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: Option<f64>,
    /// κ, the compressibility.
    #[param(unit = "1/energy", above = 0.0)]
    kappa: f64,
    /// Cells along each axis.
    #[param(at_least = 3, at_most = 1024)]
    grid: Spanned<[u32; 3]>,
    /// How forces are made of the field: `Paper` or `Variational`.
    scheme: Scheme,
    /// ρ0; the number density at the start if it is not given.
    #[param(unit = "1/length³", above = 0.0)]
    density: Option<f64>,
    /// Steps from one collection of densities to the next.
    #[param(default = 1, at_least = 1)]
    density_every: u64,
    /// Steps from one field to the next, a multiple of `density_every`; the same as that if it is not given.
    #[param(at_least = 1)]
    field_every: Option<Spanned<u64>>,
    /// σ of the Gaussian that smooths densities and fields.
    #[param(unit = "length", above = 0.0)]
    filter: Option<f64>,
    /// Charges as a field.
    electrostatics: Option<Electrostatics>,
    #[param(skip)]
    law: Law,
    #[param(skip)]
    kept: Option<Vec<u8>>,
    #[param(skip)]
    started: Option<Started>,
}

struct Started {
    host: Host,
    place: Place,
}

enum Place {
    Cpu(Box<OnCpu>),
    Device(Box<OnDevice>),
}

impl MdScf {
    /// What the log says, and what it warns of.
    fn tell(&self, system: &SystemInfo, needs: &mut Needs) {
        let law = &self.law;
        let [x, y, z] = law.grid;
        let cell: [f64; 3] = std::array::from_fn(|k| system.box_length[k] / law.grid[k] as f64);
        let per_cell = law.n as f64 / law.vertices() as f64;
        needs.notes.push(format!(
            "scheme {:?}, grid {x} × {y} × {z} of cells {:.4} × {:.4} × {:.4} with {per_cell:.3} particles each, densities \
             every {} steps, fields every {} steps, ρ0 {:.6}, 1/κ {}",
            law.scheme, cell[0], cell[1], cell[2], law.density_every, law.field_every, law.rho0, law.inv_kappa
        ));
        if law.scheme == Scheme::Paper {
            let text = "scheme Paper conserves neither energy nor momentum and has no virial; without a thermostat that holds \
                        the momentum, ZeroMomentum takes its drift off";
            needs.notes.push(text.into());
        }
        if per_cell < 0.25 {
            needs.warnings.push(format!(
                "the grid is finer than one particle in four cells ({per_cell:.3} particles per cell): densities are mostly noise"
            ));
        }
        let most =
            law.grid.map(|n| n as f64).into_iter().zip(system.box_length).map(|(n, l)| l / n).fold(0.0, f64::max);
        if law.sigma > 0.0 && law.sigma < 0.5 * most {
            needs
                .warnings
                .push(format!("the filter's σ {} is below half a cell ({most:.4}): it does little", law.sigma));
        }
        if let Some(c) = law.charges
            && 1.0 / c.alpha < most
        {
            needs.warnings.push(format!(
                "1/α = {:.4} is below the length of a cell ({most:.4}): the grid cannot show Gaussians so narrow",
                1.0 / c.alpha
            ));
        }
        let ratio = law.rho0 * system.box_length.iter().product::<f64>() / law.n as f64;
        if !(0.8..=1.25).contains(&ratio) {
            needs.warnings.push(format!("ρ0 is {ratio:.3} times the number density of the system"));
        }
    }
}

impl Force for MdScf {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if system.dimensions != 3 {
            return Err(Error::input("the grid has three dimensions; the system has two"));
        }
        let mut errors = Errors::default();
        if let Some(field) = self.field_every.as_ref().filter(|f| !f.value.is_multiple_of(self.density_every)) {
            let (every, density) = (field.value, self.density_every);
            let text = format!(
                "field_every = {every} is no multiple of density_every = {density}: fields would be made of old densities"
            );
            errors.push(InputError::at(field.at, text));
        }
        if system.n > 1 << 30 {
            errors.push(InputError::at(self.grid.at, "sums of densities hold for at most 2³⁰ particles"));
        }
        if self.electrostatics.is_some() && !system.has_array("charge") {
            errors.push(InputError::new("particles have no `charge`: the initial state must give one to each"));
        }
        let vertices: u64 = self.grid.value.iter().map(|n| u64::from(*n)).product();
        if vertices * (system.types.len() as u64 + 1) > 1 << 31 {
            let text = format!(
                "{vertices} vertices for {} types are more than the 2³¹ numbers of all grids",
                system.types.len()
            );
            errors.push(InputError::at(self.grid.at, text));
        }
        let Some(table) = self.chi.bind(&system.types, &mut errors) else { return errors.into_result(None) };
        errors.into_result(Some(()))?;
        let inv_kappa = 1.0 / self.kappa;
        let chi = |r: &usize| self.chi.get(*r) * self.kt.unwrap_or(1.0);
        self.law = Law {
            types: system.types.len(),
            scheme: self.scheme,
            grid: self.grid.value.map(|n| n as usize),
            density_every: self.density_every,
            field_every: self.field_every.as_ref().map_or(self.density_every, |f| f.value),
            matrix: table.iter().map(|r| chi(r) + inv_kappa).collect(),
            inv_kappa,
            rho0: self.density.unwrap_or(system.n as f64 / system.box_length.iter().product::<f64>()),
            sigma: self.filter.unwrap_or(0.0),
            charges: self.electrostatics.as_ref().map(|e| Charges { coulomb: e.coulomb, alpha: e.alpha }),
            n: system.n as usize,
            cuda: system.device == "cuda",
            precision: system.precision(),
        };
        if self.law.charges.is_some() {
            needs.arrays.push(ArrayNeed { name: "charge".into(), width: 1, integer: false, required: true });
            needs.faults.push(format!("a charge is above {LARGEST_CHARGE} in magnitude, or no number"));
        }
        let every_step = self.law.field_every == 1;
        needs.conserves_momentum = false;
        needs.conservative = self.scheme == Scheme::Variational && every_step;
        needs.without_virial = !needs.conservative;
        needs.plain_images = true;
        needs.quantities = vec!["potential_sum".into()];
        self.tell(system, needs);
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let place = if self.law.cuda {
            Place::Device(Box::new(OnDevice::new(&host, &self.law)?))
        } else {
            Place::Cpu(Box::new(OnCpu::new(&self.law)))
        };
        let mut started = Started { host, place };
        if let Some(kept) = self.kept.take() {
            started.restore(&mut self.law, &kept)?;
        }
        self.started = Some(started);
        Ok(())
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let Some(Started { host, place }) = &mut self.started else {
            return Err(Error::Run("MdScf was not started".into()));
        };
        // SAFETY: the engine's word about the views
        unsafe {
            match place {
                Place::Device(d) => d.launch(host, &self.law, call),
                Place::Cpu(c) => c.compute(&self.law, host, call, sums),
            }
        }
    }

    /// ρ0, whether there are fields, densities, fields, all as f64: a run may go on on another device.
    fn save(&mut self) -> Result<Vec<u8>> {
        let Some(Started { host, place }) = &self.started else { return Ok(vec![]) };
        let numbers = match place {
            Place::Device(d) => d.save(host, &self.law)?,
            Place::Cpu(c) => c.save(),
        };
        Ok([self.law.rho0].into_iter().chain(numbers).flat_map(f64::to_le_bytes).collect())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.kept = Some(state.to_vec());
        Ok(())
    }
}

impl Started {
    /// Takes up what `save` gave.
    fn restore(&mut self, law: &mut Law, kept: &[u8]) -> Result<()> {
        let misfit = || Error::Run("the state does not fit".into());
        let (rho0, rest) = kept.split_first_chunk::<8>().ok_or_else(misfit)?;
        law.rho0 = f64::from_le_bytes(*rho0);
        let numbers: Vec<f64> = rest.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        if rest.len() != 8 * (1 + 2 * law.vertices() * law.fields()) {
            return Err(misfit());
        }
        match &mut self.place {
            Place::Device(d) => d.restore(&self.host, law, &numbers),
            Place::Cpu(c) => {
                c.restore(&numbers);
                Ok(())
            }
        }
    }
}
