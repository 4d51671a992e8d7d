//! Parameters of `Pppm`, and its interface to the engine.

use super::cpu::CpuMesh;
use super::device::DeviceMesh;
use super::plan::{MAX_POINTS, Mesh, ORDERS, error_in_present_box, plan};
use crate::params::{Common, Model};
use crate::short_range::{ShortRange, short_range};
use galamost_plugin_api::memory;
use galamost_plugin_api::pair::LongRange;
use galamost_plugin_api::prelude::*;

/// Coulomb interactions of all periodic images by particle–particle particle–mesh (P3M, PPPM).
///
/// The interaction is that of `Ewald`: a short-range part up to `r_cut` in the pair loop, and a sum over waves. Here the sum
/// is taken on a grid: charges are spread over `order`³ grid points each, the grid is transformed, multiplied by the
/// influence function, and transformed back. The potential is interpolated with the same windows, and forces are its
/// gradient. The influence function is the one with the smallest mean square error of these forces. The work grows as N log N.
///
/// Forces are the gradient of the energy, so energy is conserved for any grid. Momentum is conserved to the accuracy of
/// the forces only; use `ZeroMomentum` if nothing else controls the center of mass. Thermostats count it as conserved: the center of mass
/// takes up hardly any energy in a run. Of the alternatives, differentiation in
/// Fourier space conserves momentum but not energy, and needs four transforms instead of two; the influence function of
/// smooth PME has the same cost and a larger error.
///
/// Charges are spread with B-splines, or, for orders from 5 on unless the error is very small, with the convolution of the spline of
/// order 2 and a Kaiser–Bessel window, which needs fewer points.
///
/// `accuracy` is the only required field. `r_cut`, `alpha`, `order` and `grid` follow from it, for charges at random,
/// and a cost model selects among the choices. The model depends on the input only, never on measured times, so equal inputs
/// give equal trajectories. The log has the values and the estimated error of the mesh in the units of `accuracy`. If the box changes during the run, also in a
/// stage before the one with the component, give `r_cut`, `alpha`, `order` and `grid`:
/// `accuracy` then holds for the box at the start, and a larger box has a coarser grid; a warning is logged once if the estimated
/// error in the present box exceeds 1.5 times the accuracy. In `Mixed` and `Single`, an accuracy below 1e-5 is not reached, because pairs and
/// charges have 24 bits; a warning says so, and `precision: Double` reaches it.
///
/// `charges`, `slab`, net charges and excluded pairs are as in `Ewald`. Charges are added to the grid as integers: results
/// do not depend on the number of threads. The quantity `Pppm.long_range` is the energy of the mesh with all corrections.
///
/// Requires a three-dimensional system without shear.
///
/// References: R. W. Hockney, J. W. Eastwood, Computer Simulation Using Particles (1988); V. Ballenegger, J. J. Cerdà, C.
/// Holm, J. Chem. Theory Comput. 8 (2012) 936, doi:10.1021/ct2001792; J. Liang et al., arXiv:2505.09727; M. Deserno, C.
/// Holm, J. Chem. Phys. 109 (1998) 7678, doi:10.1063/1.477414.
///
/// ```ron
/// Pppm(accuracy: 1e-3, l_bjerrum: 1.5, r_cut: 3.0, alpha: 0.9, order: 5, grid: [16, 15, 18], charges: { "*": Gaussian(0.4), "B": Point })
/// ```
#[component(LongRange, "Pppm")]
#[derive(Params)]
pub struct Pppm {
    #[param(flatten)]
    common: Common,
    /// p, order of the windows: a charge is spread over p points along each axis; by the cost model if omitted.
    #[param(at_least = 3, at_most = 7)]
    order: Option<Spanned<u32>>,
    /// Number of grid points along each axis; by the cost model if omitted.
    #[param(at_least = 2, at_most = 1024)]
    grid: Option<Spanned<[u32; 3]>>,
    #[param(skip)]
    model: Model,
    #[param(skip)]
    mesh: Mesh,
    #[param(skip)]
    started: Option<(Host, Grids)>,
}

enum Grids {
    Cpu(Box<CpuMesh>),
    Device(Box<DeviceMesh>),
}

impl Pppm {
    /// Checks the grid: prime factors for the transform, points for the windows, memory.
    fn check_grid(&self, system: &SystemInfo) -> Result<()> {
        let [x, y, z] = self.mesh.grid;
        let fail = |text: String| match &self.grid {
            Some(grid) => Error::Input(vec![InputError::at(grid.at, text)]),
            None => Error::input(text),
        };
        if [x, y, z].iter().any(|n| *n > MAX_POINTS) {
            return Err(fail(format!(
                "the accuracy needs a grid of {x} × {y} × {z} points; at most {MAX_POINTS} along each axis are supported: use a longer \
                 `r_cut`"
            )));
        }
        if let Some(n) = [x, y, z].into_iter().find(|n| *n < self.mesh.window.order) {
            return Err(fail(format!(
                "{n} grid points are fewer than the order {} of the windows",
                self.mesh.window.order
            )));
        }
        let points = (x * y * z) as f64;
        let what = format!("the grid of {x} × {y} × {z} points");
        memory::require(what, 40.0 * points + 40.0 * system.n as f64).map_err(fail)
    }
}

impl Force for Pppm {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        let mut model = self.common.model("Pppm", system, needs)?;
        let given = self.grid.as_ref().map(|g| g.value.map(|n| n as usize));
        let order = self.order.as_ref().map(|p| p.value.clamp(*ORDERS.start(), *ORDERS.end()));
        self.mesh = plan(&self.common, &mut model, system, order, given);
        self.check_grid(system)?;
        self.common.check_width(&model)?;
        let Mesh { grid: [x, y, z], window, error } = self.mesh;
        let order = window.order;
        needs.notes.push(format!(
            "r_cut: {:?}, alpha: {:?}, order: {order}, grid: [{x}, {y}, {z}]; C {:.6}, estimated error of the mesh {error:.2e}",
            model.r_cut, model.alpha, model.coulomb
        ));
        let present = error_in_present_box(&model, &self.mesh);
        let remedy = "a finer `grid`, a higher `order`, or a smaller `alpha` with a longer `r_cut`";
        needs.warnings.extend(model.inaccurate("the mesh", present, remedy));
        let rest = format!(", order: {order}, grid: [{x}, {y}, {z}]");
        needs.fixed_box = self.common.fixed_box(&model, self.grid.is_some() && self.order.is_some(), &rest);
        needs.conserves_momentum = false;
        needs.cutoff = model.r_cut;
        self.model = model;
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let grids = if self.model.cuda {
            Grids::Device(Box::new(DeviceMesh::new(&host, &self.model, &self.mesh)?))
        } else {
            Grids::Cpu(Box::new(CpuMesh::new(self.mesh)))
        };
        self.started = Some((host, grids));
        Ok(())
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let Some((host, grids)) = &mut self.started else { return Err(Error::Run("Pppm was not started".into())) };
        // SAFETY: the engine passes views of the run's device, which is the one in `started`
        unsafe {
            match grids {
                Grids::Device(d) => d.launch(host, &self.model, call),
                Grids::Cpu(c) => c.compute(&self.model, host, call, sums),
            }
        }
    }
}

impl LongRange for Pppm {
    type Pair = short_range;
    fn row(&self, i: usize, j: usize) -> std::result::Result<(ShortRange<f64>, f64), String> {
        Ok((self.model.row(i, j), self.model.r_cut))
    }
    fn device_text(&self) -> String {
        self.model.terms.device_text()
    }
}
