//! Parameters of the force, and its interface to the engine.

use crate::cpu::CpuFields;
use crate::device::DeviceFields;
use crate::model::{Charges, LARGEST_CHARGE, Model, Scheme, TOO_MANY};
use galamost_plugin_api::component::ArrayNeed;
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::memory;
use galamost_plugin_api::params::TypePairs;
use galamost_plugin_api::prelude::*;

/// Array of a state with rigid bodies, which the generator `Bodies` adds.
const BODY_CENTERS: &str = "bodies.center";

/// Smeared charges that interact through their field.
#[derive(Clone, Debug, Params)]
pub struct Electrostatics {
    /// C = 1/(4π ε0 ε_r), Coulomb constant in U = C q q'/r.
    #[param(unit = "energy length/charge²", above = 0.0)]
    coulomb: f64,
    /// α, inverse width: a charge is a Gaussian with the variance 1/(4α²) along each axis.
    #[param(unit = "1/length", above = 0.0)]
    alpha: f64,
}

/// Hybrid particle–field dynamics (MD-SCF): instead of pair forces, particles feel the potential of the density fields,
/// V_K = Σ_K' χ_KK' φ_K' + (1/κ)(Σ_K' φ_K' − 1).
///
/// φ_K is the number density of type K divided by ρ0. A particle is distributed over the eight vertices of its grid cell
/// with the weights P_v = Π(1 − |d|/l). Vertices lie at −L/2 + n l, with l = L/grid along each axis. Weights are rounded to
/// multiples of 2⁻⁴² or less in double precision, with charges, and with more than 32 particles per grid cell; otherwise to
/// multiples of 2⁻²⁰, and more than 2,047 particles of one type at one vertex are an error. χ is symmetric: give
/// one value per pair of types, including each type with itself. χ is an energy; if `kT` is given, χ is a number that is
/// multiplied by it. 1/κ is an energy and is not multiplied. The field energy is
/// W = ρ0 ∫ [½ Σ χ_KK' φ_K φ_K' + (1/2κ)(Σφ − 1)²] dr.
///
/// `scheme: Variational`: F = −Σ_v V(v) ∂P_v/∂r is the gradient of W. The weights are linear, so the force
/// jumps where a particle crosses a face of its grid cell. Every crossing makes a small error of the energy, which a smaller
/// time step lowers more slowly than dt².
///
/// `scheme: Paper`: F = −[(½ − d) G₁ + (½ + d) G₂] along each axis. G₁ = (V(n) − V(n−1))/l and G₂ = (V(n+1) − V(n))/l are
/// the differences around the nearest vertex n, and d is the offset from it in cells. This force is not the gradient of an
/// energy: energy is not conserved, and there is no virial.
///
/// Neither scheme conserves momentum, because the grid is fixed in space and a particle's own density acts on it depending
/// on its position in the cell. If the thermostat does not control the center-of-mass motion, use `ZeroMomentum`.
///
/// Densities are updated every `density_every` steps and fields every `field_every` steps (counted from step 0; also at
/// the start of a run, and of a stage after one without `MdScf`). Between updates, particles move in the last field. The
/// energy is W of the last densities. The quantity `MdScf.potential_sum` is Σ_i V(r_i) in the last field, interpolated from the eight vertices. It
/// equals 2W if densities and field are of this step and ρ0 = N/V. The pressure requires `Variational` and new fields in
/// every step; the virial is the derivative of W for a grid that scales with the box, at constant ρ0.
///
/// `filter` is the width σ of a Gaussian that is convolved with both densities and fields (V is convolved twice in total).
/// It makes results less dependent on the grid. `electrostatics` adds the field of charges, which are Gaussians: in Fourier
/// space ψ(k) = C (4π/k²) exp(−k²/4α²) q(k) for k ≠ 0. The force is −q ∂ψ/∂r in the same scheme; ½ Σ q ψ is added to W
/// and its virial. This is the long-range part of an Ewald sum: at distances below about 2/α, charges interact more weakly
/// than point charges, and the energy includes the self-energy C α Σq²/√π of the Gaussians.
///
/// For interactions within a molecule use bonds, angles, and pair potentials with `neighbors: (only: SameMolecule)`.
/// Requires a three-dimensional system with at most 2³⁰ particles. Rigid bodies (`Bodies`) are refused: the fields would count
/// their centers beside the beads. Virtual sites count as particles of their types.
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
    /// χ, interaction parameter of each pair of types; an energy, or a number if `kT` is given.
    #[param(unit = "energy")]
    chi: TypePairs<f64>,
    /// kT, factor of χ; 1 if omitted.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: Option<f64>,
    /// κ, compressibility.
    #[param(unit = "1/energy", above = 0.0)]
    kappa: f64,
    /// Number of grid cells along each axis.
    #[param(at_least = 3, at_most = 1024)]
    grid: Spanned<[u32; 3]>,
    /// Scheme of the force: `Paper` or `Variational`.
    scheme: Scheme,
    /// ρ0, reference number density; the initial number density if omitted.
    #[param(unit = "1/length³", above = 0.0)]
    density: Option<f64>,
    /// Number of steps between density updates.
    #[param(default = 1, at_least = 1)]
    density_every: u64,
    /// Number of steps between field updates, a multiple of `density_every`; `density_every` if omitted.
    #[param(at_least = 1)]
    field_every: Option<Spanned<u64>>,
    /// σ, width of the Gaussian filter of densities and fields; no filter if omitted.
    #[param(unit = "length", above = 0.0)]
    filter: Option<f64>,
    /// Smeared charges; no electrostatics if omitted.
    electrostatics: Option<Electrostatics>,
    #[param(skip)]
    model: Model,
    /// State of a checkpoint, until the run starts.
    #[param(skip)]
    loaded: Option<Vec<u8>>,
    #[param(skip)]
    started: Option<Started>,
}

struct Started {
    host: Host,
    fields: Fields,
}

enum Fields {
    Cpu(Box<CpuFields>),
    Device(Box<DeviceFields>),
}

/// Reports missing charges, and types whose charges exceed the limit. A single charge among others is found in the first step.
fn check_charges(system: &SystemInfo, errors: &mut Errors) {
    if !system.has_array("charge") {
        errors.push(InputError::new("particles have no `charge`; the initial state must set it"));
    }
    for (name, [n, _, squares]) in system.types.iter().zip(&system.charges) {
        let size = (squares / n).sqrt();
        if size > LARGEST_CHARGE {
            errors.push(InputError::new(format!(
                "the root mean square charge of particles of the type \"{name}\" is {size}; a charge is at most {LARGEST_CHARGE} in \
                 magnitude"
            )));
        }
    }
}

/// Reports centers of rigid bodies. The fields count every particle, and a body consists of its beads.
fn check_bodies(system: &SystemInfo, errors: &mut Errors) {
    if system.has_array(BODY_CENTERS) {
        errors.push(InputError::new(
            "MdScf would count the centers of rigid bodies as particles of the field; keep the beads of a molecule together by bonds or \
             `Constraints` instead of `Bodies`",
        ));
    }
}

impl MdScf {
    /// Checks that there is memory for densities, their sums and fields, and for the transforms of the axes.
    fn require_memory(&self, system: &SystemInfo) -> std::result::Result<(), String> {
        let [x, y, z] = self.grid.value.map(f64::from);
        let fields = system.types.len() + usize::from(self.electrostatics.is_some());
        let matrices = if self.filter.is_some() || self.electrostatics.is_some() { x * x + y * y + z * z } else { 0.0 };
        let what = format!("the grid of {x} × {y} × {z} cells for {fields} fields");
        memory::require(what, 24.0 * x * y * z * fields as f64 + 8.0 * matrices)
    }

    /// Adds notes and warnings for the log.
    fn add_notes(&self, system: &SystemInfo, needs: &mut Needs) {
        let model = &self.model;
        let [x, y, z] = model.grid;
        let cell: [f64; 3] = std::array::from_fn(|k| system.box_length[k] / model.grid[k] as f64);
        let per_cell = model.n as f64 / model.vertices() as f64;
        needs.notes.push(format!(
            "scheme {:?}, grid {x} × {y} × {z} of cells {:.4} × {:.4} × {:.4} with {per_cell:.3} particles per cell, \
             densities every {} steps, fields every {} steps, ρ0 {:.6}, 1/κ {}",
            model.scheme,
            cell[0],
            cell[1],
            cell[2],
            model.density_every,
            model.field_every,
            model.rho0,
            model.inv_kappa
        ));
        if model.scheme == Scheme::Paper {
            let text = "scheme Paper conserves neither energy nor momentum and has no virial; use ZeroMomentum if the \
                        thermostat does not control the center-of-mass motion";
            needs.notes.push(text.into());
        }
        if per_cell < 0.25 {
            needs.warnings.push(format!(
                "the grid has fewer than 0.25 particles per cell ({per_cell:.3}): densities are mostly noise; use a coarser grid"
            ));
        }
        let longest =
            model.grid.map(|n| n as f64).into_iter().zip(system.box_length).map(|(n, l)| l / n).fold(0.0, f64::max);
        if model.sigma > 0.0 && model.sigma < 0.5 * longest {
            needs.warnings.push(format!(
                "the filter width {} is below half a cell (cell length {longest:.4}): the filter has little effect",
                model.sigma
            ));
        }
        if let Some(c) = model.charges
            && 1.0 / c.alpha < longest
        {
            needs.warnings.push(format!(
                "1/α = {:.4} is below the cell length ({longest:.4}): the grid does not resolve the charges; \
                 use a finer grid or a smaller α",
                1.0 / c.alpha
            ));
        }
        let ratio = model.rho0 * system.box_length.iter().product::<f64>() / model.n as f64;
        if !(0.8..=1.25).contains(&ratio) {
            needs.warnings.push(format!("ρ0 is {ratio:.3} times the number density of the system; check `density`"));
        }
    }
}

impl Force for MdScf {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if system.dimensions != 3 {
            return Err(Error::input("MdScf requires a three-dimensional system; this one is two-dimensional"));
        }
        needs.history = self.field_every.as_ref().map_or(self.density_every, |f| f.value) > 1;
        let mut errors = Errors::default();
        if let Some(field) = self.field_every.as_ref().filter(|f| !f.value.is_multiple_of(self.density_every)) {
            let (every, density) = (field.value, self.density_every);
            let text = format!(
                "field_every = {every} is not a multiple of density_every = {density}: fields would use old densities"
            );
            errors.push(InputError::at(field.at, text));
        }
        if system.n > 1 << 30 {
            errors.push(InputError::at(self.grid.at, "MdScf supports at most 2³⁰ particles"));
        }
        check_bodies(system, &mut errors);
        if self.electrostatics.is_some() {
            check_charges(system, &mut errors);
        }
        let vertices: u64 = self.grid.value.iter().map(|n| u64::from(*n)).product();
        if vertices * (system.types.len() as u64 + 1) > 1 << 31 {
            let text = format!(
                "{vertices} vertices for {} types exceed the limit of 2³¹ grid values; use a coarser grid",
                system.types.len()
            );
            errors.push(InputError::at(self.grid.at, text));
        } else if let Err(message) = self.require_memory(system) {
            errors.push(InputError::at(self.grid.at, message));
        }
        let Some(table) = self.chi.bind(&system.types, &mut errors) else { return errors.into_result(None) };
        errors.into_result(Some(()))?;
        let inv_kappa = 1.0 / self.kappa;
        let chi = |r: &usize| self.chi.get(*r) * self.kt.unwrap_or(1.0);
        self.model = Model {
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
        if self.model.charges.is_some() {
            needs.arrays.push(ArrayNeed { name: "charge".into(), width: 1, integer: false, required: true });
        }
        // in the order of the numbers of faults in the kernels
        needs.faults = vec![format!("a charge is NaN or exceeds {LARGEST_CHARGE} in magnitude"), TOO_MANY.to_string()];
        let every_step = self.model.field_every == 1;
        needs.conserves_momentum = false;
        needs.conservative = self.scheme == Scheme::Variational && every_step;
        needs.without_virial = !needs.conservative;
        (needs.plain_images, needs.shared) = (true, true);
        needs.particle_energies = needs.conservative;
        needs.quantities = vec!["potential_sum".into()];
        self.add_notes(system, needs);
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let fields = if self.model.cuda {
            Fields::Device(Box::new(DeviceFields::new(&host, &self.model)?))
        } else {
            Fields::Cpu(Box::new(CpuFields::new(&self.model)))
        };
        let mut started = Started { host, fields };
        if let Some(state) = self.loaded.take() {
            started.restore(&mut self.model, &state)?;
        }
        self.started = Some(started);
        Ok(())
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let Some(Started { host, fields }) = &mut self.started else {
            return Err(Error::Run("MdScf was not started".into()));
        };
        // SAFETY: the engine passes views of the run's device, which is the one in `started`
        unsafe {
            match fields {
                Fields::Device(d) => d.launch(host, &self.model, call),
                Fields::Cpu(c) => c.compute(&self.model, host, call, sums),
            }
        }
    }

    /// Returns ρ0, 1 + the step of the last evaluation, densities and fields, all as f64, so a run can resume on another device.
    fn save(&mut self) -> Result<Vec<u8>> {
        let Some(Started { host, fields }) = &self.started else { return Ok(vec![]) };
        let numbers = match fields {
            Fields::Device(d) => d.save(host, &self.model)?,
            Fields::Cpu(c) => c.save(),
        };
        Ok([self.model.rho0].into_iter().chain(numbers).flat_map(f64::to_le_bytes).collect())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.loaded = Some(state.to_vec());
        Ok(())
    }
}

impl Started {
    /// Restores a state returned by `save`.
    fn restore(&mut self, model: &mut Model, state: &[u8]) -> Result<()> {
        let misfit = || Error::Run("MdScf: the checkpoint was written with a different grid or other types".into());
        let (rho0, rest) = state.split_first_chunk::<8>().ok_or_else(misfit)?;
        model.rho0 = f64::from_le_bytes(*rho0);
        let numbers: Vec<f64> = rest.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        if rest.len() != 8 * (1 + 2 * model.vertices() * model.field_count()) {
            return Err(misfit());
        }
        match &mut self.fields {
            Fields::Device(d) => d.restore(&self.host, model, &numbers),
            Fields::Cpu(c) => {
                c.restore(&numbers);
                Ok(())
            }
        }
    }
}
