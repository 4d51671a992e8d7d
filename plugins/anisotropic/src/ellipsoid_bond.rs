//! Bonds between the ends of ellipsoids.

use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::{DeviceFn, DevicePtr};
use galamost_plugin_api::pair::Row;
use galamost_plugin_api::precision::{BoxScale, Fixed, Float64, Precision, Scheme};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::views::{LinkView, StateView};
use std::sync::{Mutex, PoisonError};

/// Particles of a task on the CPU, independent of the number of threads.
const CHUNK: usize = 256;
/// Threads of a block.
const BLOCK: u32 = 128;
/// Bytes of the sums of a block.
const SUMS: usize = 7 * 8;

/// Parameters of one bond type.
#[derive(Clone, Debug, Params)]
pub struct EllipsoidBondInput {
    /// Stiffness k of the spring between the ends.
    #[param(unit = "energy/length²", at_least = 0.0)]
    k: f64,
    /// End-to-end length l of an ellipsoid; the ends are at ± l/2 along its axis. 0 for a spring between centers.
    #[param(unit = "length", at_least = 0.0)]
    length: f64,
    /// Rest length r₀ of the spring between the ends.
    #[param(unit = "length", default = 0.0, at_least = 0.0)]
    r0: f64,
    /// Stiffness k_a of the angle between the axes.
    #[param(unit = "energy", default = 0.0, at_least = 0.0)]
    k_angle: f64,
    /// Equilibrium angle θ₀ between the axes.
    #[param(unit = "degree", default = 0.0, at_least = 0.0, at_most = 180.0)]
    theta0_deg: f64,
}

/// Coefficients of one bond type: k, l, r₀, k_a, and cos θ₀.
#[derive(Debug, PairParams)]
pub struct EllipsoidBondRow<real> {
    k: real,
    length: real,
    r0: real,
    k_angle: real,
    cos0: real,
}

impl EllipsoidBondInput {
    fn row(&self) -> EllipsoidBondRow<f64> {
        let (k, length, r0, k_angle) = (self.k, self.length, self.r0, self.k_angle);
        EllipsoidBondRow { k, length, r0, k_angle, cos0: self.theta0_deg.to_radians().cos() }
    }
}

/// Returns the force and torque on a particle of a bond, and the energy of the bond. `r` points from the other particle to this
/// one; `side` is 1 for the first particle of the bond and −1 for the second.
///
/// A spring with r₀ > 0 has no direction at |d| = 0: the lower bound of |d| makes the force 0 there.
#[device_fn]
fn ellipsoid_bond(
    r: Vec3<real>,
    axis: Vec3<real>,
    other: Vec3<real>,
    side: real,
    p: &EllipsoidBondRow<real>,
) -> (Vec3<real>, Vec3<real>, real) {
    let arm = 0.5 * p.length * side;
    // from the end of this particle to that of the other one
    let d = -r - (axis + other) * arm;
    let distance = d.norm();
    let force = d * (p.k * (1.0 - p.r0 / distance.max(1e-12)));
    let stretch = distance - p.r0;
    let bend = axis.dot(other) - p.cos0;
    let torque = axis.cross(force) * arm - axis.cross(other) * (p.k_angle * bend);
    (force, torque, 0.5 * p.k * stretch * stretch + 0.5 * p.k_angle * bend * bend)
}

/// Bonds between the ends of ellipsoids: U = ½ k (|d| − r₀)² + ½ k_a (cos θ − cos θ₀)², d = (r_j − (l/2) n_j) − (r_i + (l/2) n_i).
///
/// A spring of rest length r₀, 0 by default, connects the head of i, at r_i + (l/2) n_i, with the tail of j, at r_j − (l/2) n_j. i is
/// the first particle of the bond, j the second, and n the axis, the z axis of the body. θ is the angle between n_i and n_j, 0 in a
/// straight chain. Give bonds of a chain in its direction, (0, 1), (1, 2), …, and let the axes point along it: which ends are
/// connected does not change during a run. `length: 0.0` connects the centers. Both terms have the factor ½, and bond types without
/// parameters need `None`.
///
/// F_i = k (1 − r₀/|d|) d, τ_i = (l/2) n_i × F_i − k_a (cos θ − cos θ₀) n_i × n_j. The force on j is −F_i, and
/// r_ij × F_i + τ_i + τ_j = 0. The virial is the symmetric part of r_ij F_i. Each particle has half of the energy and virial of a bond.
///
/// The energy of the angle is smooth for all axes. Near θ₀ between 0 and 180° it is ½ k_a sin² θ₀ (θ − θ₀)²; for θ₀ = 0 it is
/// k_a θ⁴/8, and the mean of 1 − cos θ is √(2kT/πk_a) if kT is far below k_a. With r₀ > 0 the spring has no direction at |d| = 0, where
/// its force is 0.
///
/// A spring vibrates with ω² ≈ 2k (1/m + l²/4I), with the moment of inertia I across the axis; dt = 0.1/ω is a suitable time step.
/// Bonded particles also interact by pair potentials, unless `neighbors: (exclude: [Bonds])` is set. Two `GayBerne` ellipsoids in line
/// have their minimum at the distance κ σ₀ + (2^(1/6) − 1) σ₀, which is a suitable l + r₀. Requires three dimensions, and an integrator
/// that rotates particles, such as `RotationalVerlet`.
///
/// ```ron
/// EllipsoidBond(bonds: {
///     "A-A": (k: 100.0, length: 1.1, k_angle: 500.0, theta0_deg: 0.0),
///     "A-B": (k: 100.0, length: 0.8, r0: 0.2, k_angle: 40.0, theta0_deg: 30.0),
///     "B-B": (k: 50.0, length: 0.9),
/// })
/// ```
#[component(Force, "EllipsoidBond")]
#[derive(Params)]
pub struct EllipsoidBond {
    /// Parameters by bond type.
    bonds: TypeMap<Spanned<EllipsoidBondInput>>,
    /// One for each bond type; 0 for types without force.
    #[param(skip)]
    rows: Vec<EllipsoidBondRow<f64>>,
    #[param(skip)]
    n: usize,
    #[param(skip)]
    cuda: bool,
    #[param(skip)]
    precision: Precision,
    #[param(skip)]
    started: Option<(Host, Option<OnDevice>)>,
}

impl Force for EllipsoidBond {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if system.dimensions == 2 {
            return Err(Error::input("rotation requires a three-dimensional system"));
        }
        let mut errors = Errors::default();
        if !system.has_array("quaternion") {
            errors.push(InputError::new(
                "particles have no `quaternion`: add it to the initial state, for example with `Orientations`",
            ));
        }
        let table = self.bonds.bind_some("bond", &system.bond_types, &mut errors);
        for row in table.iter().filter_map(|row| row.flatten()) {
            // the distance of the centers in a straight chain
            let (name, range) = match &row.value {
                row if row.r0 > 0.0 => ("length + r0", row.length + row.r0),
                row => ("length", row.length),
            };
            let beyond = system.beyond_half_box(name, range);
            errors.0.extend(beyond.map(|message| InputError::at(row.at, message)));
        }
        let named = table.iter().zip(0..).filter(|(row, _)| row.is_some()).map(|(_, k)| k).collect();
        let none = EllipsoidBondRow { k: 0.0, length: 0.0, r0: 0.0, k_angle: 0.0, cos0: 0.0 };
        self.rows = table.iter().map(|row| row.flatten().map_or(none, |row| row.value.row())).collect();
        errors.into_result(Some(()))?;
        needs.arrays.push(ArrayNeed { name: "quaternion".into(), width: 4, integer: false, required: true });
        (needs.links, needs.link_types) = (Some(LinkList::Bonds), Some(named));
        (needs.particle_energies, needs.particle_virials) = (true, true);
        // bonded partners on other GPUs are ghosts, which have positions and orientations of the same step
        (needs.triclinic, needs.shared) = (true, true);
        (self.n, self.cuda, self.precision) = (system.n as usize, system.device == "cuda", system.precision());
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let device = if self.cuda { Some(OnDevice::new(&host, &self.rows, self.n, self.precision)?) } else { None };
        self.started = Some((host, device));
        Ok(())
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let Some((host, device)) = &self.started else {
            return Err(Error::Run("EllipsoidBond was not started".into()));
        };
        // SAFETY: the engine passes views of the run's device and precision, which are those of `start`
        unsafe {
            match device {
                Some(device) => return device.launch(host, call),
                None if self.precision == Precision::Double => Bonds::<Float64>::new(&self.rows, call).add(host, sums),
                None => Bonds::<Fixed>::new(&self.rows, call).add(host, sums),
            }
        }
        Ok(())
    }
}

/// The loop over bonds on the CPU.
struct Bonds<'a, S: Scheme> {
    call: &'a ForceCall,
    rows: Vec<EllipsoidBondRow<S::Real>>,
    scale: BoxScale<S::Real>,
    full: bool,
}

impl<'a, S: Scheme> Bonds<'a, S> {
    /// # Safety
    /// The views of the call describe valid host arrays of the scheme `S`.
    unsafe fn new(rows: &[EllipsoidBondRow<f64>], call: &'a ForceCall) -> Self {
        // SAFETY: `globals` is a valid host pointer (contract of this function)
        let scale = unsafe { (*call.state.globals.host()).scale::<S>() };
        let rows = rows.iter().map(|row| row.cast::<S::Real>()).collect();
        Self { call, rows, scale, full: call.wanted.more_than_force() }
    }

    /// Adds the forces and torques of all bonds and, if requested, energy and virial, in the order of the chunks.
    ///
    /// # Safety
    /// As for [`Self::new`], and no other thread accesses the particles during the call.
    unsafe fn add(&self, host: &Host, sums: &mut Sums) {
        let n = self.call.state.n_local as usize;
        let parts = Mutex::new(vec![Sums::default(); n.div_ceil(CHUNK)]);
        host.parallel(n, CHUNK, |range| {
            let (chunk, mut total) = (range.start / CHUNK, Sums::default());
            for i in range {
                // SAFETY: `i` < n_local, the views are valid (contract of this function), and ranges are disjoint
                unsafe { self.add_bonds(i, &mut total) };
            }
            parts.lock().unwrap_or_else(PoisonError::into_inner)[chunk] = total;
        });
        if self.full {
            parts.into_inner().unwrap_or_else(PoisonError::into_inner).iter().for_each(|part| sums.add(part));
        }
    }

    /// Adds the forces and torques of the bonds of particle `i`.
    ///
    /// # Safety
    /// As for [`Self::new`], `i` < n_local, and no other thread accesses force, torque and virial of particle `i`.
    unsafe fn add_bonds(&self, i: usize, total: &mut Sums) {
        let s = &self.call.state;
        // SAFETY: `i` and its bonded partners are particles, and all arrays have an entry of the scheme `S` for each of them
        // (contract of this function); positions and orientations are only read
        unsafe {
            let pos = s.pos_type.cast::<S::PosType>().host().cast_const();
            let axis_of = |k: usize| (*s.quaternion.cast::<Quaternion<S::Real>>().host().add(k)).axis();
            let (at, axis) = (&*pos.add(i), axis_of(i));
            let force = &mut *s.force.cast::<[S::Real; 4]>().host().add(i);
            let torque = &mut *s.torque.cast::<[S::Real; 3]>().host().add(i);
            let mut virial = [0.0; 6];
            for bond in self.call.bonds.row(i) {
                let j = bond.others[0] as usize;
                let r = S::difference(at, &*pos.add(j), &self.scale);
                let side = S::Real::lit(if bond.place == 0 { 1.0 } else { -1.0 });
                let (f, t, u) = ellipsoid_bond(r, axis, axis_of(j), side, &self.rows[bond.kind as usize]);
                force.iter_mut().zip([f.x, f.y, f.z]).for_each(|(sum, x)| *sum += x);
                torque.iter_mut().zip([t.x, t.y, t.z]).for_each(|(sum, x)| *sum += x);
                if self.full {
                    // each bond is visited twice, once from each particle
                    let (half_u, d, g) = (0.5 * u.f64(), r.f64(), f.f64());
                    force[3] += S::Real::lit(half_u);
                    total.energy += half_u;
                    for (w, (a, b)) in virial.iter_mut().zip([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]) {
                        *w += 0.25 * (d[a] * g[b] + d[b] * g[a]);
                    }
                }
            }
            if self.full {
                total.virial.iter_mut().zip(virial).for_each(|(sum, w)| *sum += w);
                s.add_virial::<S::Real>(i, virial);
            }
        }
    }
}

/// Argument of the kernels.
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct EllipsoidBondArgs {
    state: StateView,
    bonds: LinkView,
    #[device(cxx = "const EllipsoidBondRow<real>*")]
    rows: DevicePtr<u8>,
    #[device(cxx = "double*")]
    partial: DevicePtr<u8>,
    sums: DevicePtr<Sums>,
    full: u32,
    /// Padding; 0.
    reserved: u32,
}

/// The kernels and their memory.
struct OnDevice {
    force: Kernel,
    sums: Kernel,
    rows: DevicePtr<u8>,
    partial: DevicePtr<u8>,
}

impl OnDevice {
    /// Compiles the kernels and uploads the rows, for `n` particles.
    fn new(host: &Host, rows: &[EllipsoidBondRow<f64>], n: usize, precision: Precision) -> Result<Self> {
        let mut bytes = vec![];
        for x in rows.iter().flat_map(Row::numbers) {
            match precision {
                Precision::Double => x.push_bytes(&mut bytes),
                _ => (x as f32).push_bytes(&mut bytes),
            }
        }
        let memory = host.allocate_bytes(bytes.len().max(8))?;
        host.upload_bytes(memory, &bytes)?;
        let kernels = format!(
            "#include \"galamost/reduce.cuh\"\n#line 1 \"ellipsoid_bond.cuh\"\n{}",
            include_str!("ellipsoid_bond.cuh")
        );
        let source = kernel_source(&[<ellipsoid_bond as DeviceFn>::text(), EllipsoidBondArgs::text()], &kernels)?;
        let module = host.compile("ellipsoid_bond", &source)?;
        Ok(Self {
            force: host.kernel(module, "ellipsoid_bond_force")?,
            sums: host.kernel(module, "ellipsoid_bond_sums")?,
            rows: memory,
            partial: host.allocate_bytes(SUMS * n.div_ceil(BLOCK as usize).max(1))?,
        })
    }

    /// Launches the kernels.
    ///
    /// # Safety
    /// The views of the call describe valid arrays of the device.
    unsafe fn launch(&self, host: &Host, call: &ForceCall) -> Result<()> {
        let full = call.wanted.more_than_force();
        let args = EllipsoidBondArgs {
            state: call.state,
            bonds: call.bonds,
            rows: self.rows,
            partial: self.partial,
            sums: call.device_sums,
            full: u32::from(full),
            reserved: 0,
        };
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: both kernels take one `EllipsoidBondArgs`
        unsafe {
            host.launch(self.force, call.state.own_blocks(BLOCK), BLOCK, &mut arguments)?;
            if full {
                host.all_gather(self.partial, SUMS, BLOCK)?;
                host.launch(self.sums, 1, BLOCK, &mut arguments)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: EllipsoidBondRow<f64> = EllipsoidBondRow { k: 90.0, length: 1.3, r0: 0.5, k_angle: 70.0, cos0: 0.9 };

    /// Returns a vector rotated about `axis` by a small angle.
    fn turned(v: Vec3<f64>, axis: Vec3<f64>, angle: f64) -> Vec3<f64> {
        let (s, c) = (0.5 * angle).sin_cos();
        Quaternion::<f64>::new(axis.x * s, axis.y * s, axis.z * s, c).rotate(v)
    }

    /// Calls `test` with poses of a bond: r_i − r_j and both axes.
    fn poses(mut test: impl FnMut(Vec3<f64>, Vec3<f64>, Vec3<f64>)) {
        let key = galamost_plugin_api::philox::RandomKey::new(5, 9);
        for k in 0..200 {
            let draw = |n: u32| key.single(0, k, n).map(|w| f64::from(w) / 2_147_483_648.0 - 1.0);
            let axis = |n: u32| {
                let [x, y, z, w] = draw(n);
                Quaternion::<f64>::new(x, y, z, w).normalized().axis()
            };
            let [x, y, z, _] = draw(2);
            test(Vec3::new(x, y, z) * 2.0, axis(0), axis(1));
        }
    }

    #[test]
    fn force_and_torque_are_derivatives_of_the_energy() {
        const H: f64 = 1e-5;
        let rows = [
            ROW,
            EllipsoidBondRow { r0: 0.0, ..ROW },
            EllipsoidBondRow { length: 0.0, r0: 1.4, cos0: 1.0, ..ROW },
            EllipsoidBondRow { cos0: -1.0, ..ROW },
        ];
        let mut shortest = f64::MAX;
        poses(|r, n_i, n_j| {
            for (row, side) in rows.iter().flat_map(|row| [1.0, -1.0].map(|side| (row, side))) {
                let u = |r: Vec3<f64>, n: Vec3<f64>| ellipsoid_bond(r, n, n_j, side, row).2;
                let (force, torque, _) = ellipsoid_bond(r, n_i, n_j, side, row);
                let distance = (r + (n_i + n_j) * (0.5 * row.length * side)).norm();
                shortest = shortest.min(distance);
                // H²/6 of the third derivatives of the spring, by r or by a rotation with an arm below 1, and of the angle; and some
                // 10⁻¹⁶ U/H of the rounding of U < 2·10³
                let near = 3.0 * row.r0 / distance;
                let third = row.k * (near / distance + near + 10.0) + 8.0 * row.k_angle;
                let limit = H * H / 6.0 * third + 1e-7;
                for k in 0..3 {
                    let e = Vec3::<f64>::from(std::array::from_fn::<f64, 3, _>(|a| f64::from(u8::from(a == k))));
                    let slope = (u(r + e * H, n_i) - u(r - e * H, n_i)) / (2.0 * H);
                    assert!((force.dot(e) + slope).abs() < limit, "F: {} and {slope}", force.dot(e));
                    let slope = (u(r, turned(n_i, e, H)) - u(r, turned(n_i, e, -H))) / (2.0 * H);
                    assert!((torque.dot(e) + slope).abs() < limit, "τ: {} and {slope}", torque.dot(e));
                }
            }
        });
        assert!(shortest < ROW.r0, "no spring is compressed: {shortest}");
    }

    /// Both particles of a bond see the same energy and opposite forces, and the torques balance r × F.
    #[test]
    fn a_bond_conserves_momentum_and_angular_momentum() {
        poses(|r, n_i, n_j| {
            let (f_i, t_i, u_i) = ellipsoid_bond(r, n_i, n_j, 1.0, &ROW);
            let (f_j, t_j, u_j) = ellipsoid_bond(-r, n_j, n_i, -1.0, &ROW);
            let scale = u_i.max(f_i.norm()).max(1.0);
            assert!((u_i - u_j).abs() < 1e-13 * scale && (f_i + f_j).norm() < 1e-13 * scale);
            assert!((r.cross(f_i) + t_i + t_j).norm() < 1e-12 * scale);
        });
    }

    /// In a straight chain at rest all is 0. Torques are continuous, and 0 at θ = 0 and 180°.
    #[test]
    fn parallel_and_antiparallel_axes() {
        let z = Vec3::<f64>::new(0.0, 0.0, 1.0);
        let straight = EllipsoidBondRow { cos0: 1.0, ..ROW };
        let (f, t, u) = ellipsoid_bond(z * -(ROW.length + ROW.r0), z, z, 1.0, &straight);
        assert!(f.norm() < 1e-13 && t.norm() == 0.0 && u < 1e-26, "{u}");
        for theta in [0.0, 1e-20, 1e-9, 1e-5, 1e-2] {
            let (sin, cos) = f64::sin_cos(theta);
            for (row, side) in [(straight, 1.0), (straight, -1.0), (ROW, 1.0), (ROW, -1.0)] {
                // no force: k = 0
                let free = EllipsoidBondRow { k: 0.0, ..row };
                let (_, torque, u) = ellipsoid_bond(z, z, Vec3::new(sin, 0.0, cos) * side, 1.0, &free);
                let bend = side * cos - free.cos0;
                let expected = Vec3::new(0.0, -free.k_angle * bend * sin * side, 0.0);
                assert!((torque - expected).norm() <= 1e-15 * free.k_angle * sin, "{theta}: {torque:?}, {expected:?}");
                assert!((u - 0.5 * free.k_angle * bend * bend).abs() < 1e-13);
            }
        }
        // a small bend of a straight chain: k_a θ⁴/8, whose next term is smaller by θ²/6
        let (theta, free) = (0.01f64, EllipsoidBondRow { k: 0.0, ..straight });
        let bent = ellipsoid_bond(z, z, Vec3::new(theta.sin(), 0.0, theta.cos()), 1.0, &free).2;
        assert!((bent / (free.k_angle * theta.powi(4) / 8.0) - 1.0).abs() < theta * theta);
    }

    /// At |d| = 0 and next to it the spring has a finite force, also in single precision.
    #[test]
    fn ends_at_the_same_point() {
        let z = Vec3::<f64>::new(0.0, 0.0, 1.0);
        let centers = EllipsoidBondRow { length: 0.0, ..ROW };
        let energy =
            |row: &EllipsoidBondRow<f64>| 0.5 * row.k * row.r0 * row.r0 + 0.5 * row.k_angle * (1.0 - row.cos0).powi(2);
        for row in [centers, EllipsoidBondRow { r0: 0.0, ..centers }] {
            let (f, t, u) = ellipsoid_bond(Vec3::<f64>::zero(), z, z, 1.0, &row);
            assert!(f.norm() == 0.0 && t.norm() == 0.0 && (u - energy(&row)).abs() < 1e-13);
            let single = row.cast::<f32>();
            let z = Vec3::<f32>::new(0.0, 0.0, 1.0);
            for distance in [0.0f32, 1e-40, 1e-25, 1e-15, 1e-12, 1e-6] {
                let (f, t, u) = ellipsoid_bond(Vec3::<f32>::new(distance, 0.0, 0.0), z, z, 1.0, &single);
                // the largest force is k r₀, that of a spring of length 0
                assert!(f.norm() <= 1.001 * single.k * single.r0.max(distance) && t.norm() == 0.0, "{distance}: {f:?}");
                assert!((f64::from(u) / energy(&row) - 1.0).abs() < 1e-5, "{distance}: {u}"); // rounding of f32, and 2 |d|/r₀
                assert!(distance > 0.0 || f.norm() == 0.0);
            }
        }
    }
}
