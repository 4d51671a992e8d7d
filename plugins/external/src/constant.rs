//! A constant body force.

use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision, TWO_32};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::views::StateView;

/// Constant body force: F = factor · `force` on each particle of the group.
///
/// With `per_mass: true`, F = m · factor · `force` and `force` is an acceleration.
///
/// The energy is U = −F·r of the unwrapped position r (position + box length × image). It is continuous when a particle
/// crosses the box, and the total energy is conserved while `factor` is constant. There is no virial contribution, since a
/// uniform force has no counterpart in a periodic box. Momentum is not conserved: without walls or friction the whole
/// system accelerates.
///
/// In a box sheared by `LeesEdwards`, also in later stages, a particle that crosses the boundary along y appears at another x.
/// The force is right, but its energy then jumps by the x component of the force times the offset of the images: only the
/// energies of forces along y and z are continuous.
///
/// Reference: none; the definition of a uniform field.
///
/// ```ron
/// BodyForce(force: [0.1, 0.0, -0.2], group: Types(["A"]))
/// ```
#[component(Force, "BodyForce")]
#[derive(Params)]
pub struct BodyForce {
    /// Group of particles that the force acts on.
    #[param(default = Group::All)]
    group: Group,
    /// Force on a particle, or its acceleration with `per_mass`.
    #[param(unit = "energy/length, or length/time² with per_mass")]
    force: [f64; 3],
    /// Whether the force is multiplied by the particle mass.
    #[param(default = false)]
    per_mass: bool,
    /// Time-dependent factor; default 1.
    factor: Option<Varying>,
    #[param(skip)]
    cuda: bool,
    #[param(skip)]
    n: usize,
    #[param(skip)]
    started: Option<(Host, Option<DeviceKernels>)>,
}

/// The kernels and memory for the energy of each block.
struct DeviceKernels {
    force: Kernel,
    sums: Kernel,
    partial: DevicePtr<u8>,
}

const BLOCK: u32 = 128;
const CHUNK: usize = 2048;

const SOURCE: &str = r#"
#include "galamost/state.cuh"
#include "galamost/reduce.cuh"

extern "C" __global__ void body_force(BodyForceArgs a) {
    const StateView& s = a.state;
    const Globals* g = s.globals;
    if (g->halt) return;
    const u32 block = particle_block(s), i = block * blockDim.x + threadIdx.x;
    const double factor = a.factor < 32u ? g->values[a.factor] : 1.0;
    double energy[1] = {0.0};
    if (i < own_end(s) && in_group(s, i, a.group)) {
        const real m = a.per_mass ? s.velocity_mass[i].w : real(1);
        const real x = real(a.force[0] * factor) * m, y = real(a.force[1] * factor) * m, z = real(a.force[2] * factor) * m;
        Vec4 f = s.force[i];
        f.x += x;
        f.y += y;
        f.z += z;
        if (a.full) {
            const PosType p = s.pos_type[i];
            const int* image = s.image + 3u * i;
            const double* l = g->box_length;
#ifdef GALAMOST_DOUBLE
            const double rx = p.x, ry = p.y, rz = p.z;
#else
            const double rx = p.x * (l[0] / 4294967296.0), ry = p.y * (l[1] / 4294967296.0), rz = p.z * (l[2] / 4294967296.0);
#endif
            energy[0] = -(double(x) * (rx + l[0] * image[0]) + double(y) * (ry + l[1] * image[1]) +
                          double(z) * (rz + l[2] * image[2]));
            f.w += real(energy[0]);
        }
        s.force[i] = f;
    }
    if (a.full) {
        __shared__ double memory[32];
        block_sum(energy, memory);
        if (threadIdx.x == 0) a.partial[block] = energy[0];
    }
}

// Adds the energies of the blocks of all GPUs. One block.
extern "C" __global__ void body_force_sums(BodyForceArgs a) {
    if (a.state.globals->halt) return;
    __shared__ double memory[32];
    double total[1];
    sum_partials(a.partial, particle_blocks(a.state), total, memory);
    if (threadIdx.x == 0) a.sums->energy += total[0];
}
"#;

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct BodyForceArgs {
    state: StateView,
    force: [f64; 3],
    #[device(cxx = "double*")]
    partial: DevicePtr<u8>,
    sums: DevicePtr<Sums>,
    group: u32,
    full: u32,
    per_mass: u32,
    factor: u32,
}

impl Force for BodyForce {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if system.dimensions == 2 && self.force[2] != 0.0 {
            return Err(Error::input("in two dimensions the z component of `force` must be 0"));
        }
        needs.group = self.group.need(system)?;
        needs.varyings = self.factor.into_iter().collect();
        needs.conserves_momentum = false;
        (needs.particle_energies, needs.particle_virials, needs.shared) = (true, true, true);
        self.cuda = system.device == "cuda";
        self.n = system.n as usize;
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let device = if self.cuda {
            let module = host.compile("body_force", &kernel_source(&[BodyForceArgs::text()], SOURCE)?)?;
            Some(DeviceKernels {
                force: host.kernel(module, "body_force")?,
                sums: host.kernel(module, "body_force_sums")?,
                partial: host.allocate_bytes(8 * self.n.div_ceil(BLOCK as usize))?,
            })
        } else {
            None
        };
        self.started = Some((host, device));
        Ok(())
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let Some((host, device)) = &self.started else { return Err(Error::Run("BodyForce was not started".into())) };
        if let Some(d) = device {
            let args = BodyForceArgs {
                state: call.state,
                force: self.force,
                partial: d.partial,
                sums: call.device_sums,
                group: call.group,
                full: u32::from(call.wanted.more_than_force()),
                per_mass: u32::from(self.per_mass),
                factor: if self.factor.is_some() { call.first_varying } else { u32::MAX },
            };
            let mut arguments: [*mut Opaque; 1] = arguments![args];
            // SAFETY: the kernels take one BodyForceArgs
            unsafe {
                host.launch(d.force, call.state.own_blocks(BLOCK), BLOCK, &mut arguments)?;
                if args.full != 0 {
                    host.all_gather(d.partial, 8, BLOCK)?;
                    host.launch(d.sums, 1, BLOCK, &mut arguments)?;
                }
            }
            return Ok(());
        }
        // SAFETY: the engine passes valid views of the run's precision
        unsafe {
            let length = (*call.state.globals.host()).box_length;
            if call.state.precision == Precision::Double as u32 {
                self.cpu::<f64, PosTypeF64>(host, call, sums, |p| p.position);
            } else {
                self.cpu::<f32, PosTypeFixed>(host, call, sums, |p| {
                    std::array::from_fn(|k| f64::from(p.position[k]) * (length[k] / TWO_32))
                });
            }
        }
        Ok(())
    }
}

impl BodyForce {
    /// Adds forces and, if requested, energies on the CPU.
    ///
    /// # Safety
    /// The views of `call` describe valid host arrays of numbers `R` and positions `P`.
    unsafe fn cpu<R: Real, P: Copy>(
        &self,
        host: &Host,
        call: &ForceCall,
        sums: &mut Sums,
        position: impl Fn(&P) -> [f64; 3] + Sync,
    ) {
        let s = call.state;
        let n = s.n_local as usize;
        let (force, velocity, pos) =
            (s.force.cast::<[R; 4]>(), s.velocity_mass.cast::<[R; 4]>(), s.pos_type.cast::<P>());
        // SAFETY: `globals` is a valid host pointer
        let (length, factor) = unsafe {
            let g = &*s.globals.host();
            (g.box_length, if self.factor.is_some() { g.values[call.first_varying as usize] } else { 1.0 })
        };
        let force_vector: [R; 3] = self.force.map(|f| R::lit(f * factor));
        let full = call.wanted.more_than_force();
        let mut energies = vec![0.0f64; n.div_ceil(CHUNK)];
        let energies_pointer = DevicePtr::<f64>::new(energies.as_mut_ptr() as u64);
        host.parallel(n, CHUNK, |range| {
            let chunk = range.start / CHUNK;
            let mut energy = 0.0;
            for i in range {
                // SAFETY: `i` < `n_local`; the ranges are disjoint
                unsafe {
                    if !s.in_group(i, call.group) {
                        continue;
                    }
                    let m = if self.per_mass { (*velocity.host().add(i))[3] } else { R::ONE };
                    let f = &mut *force.host().add(i);
                    let add = force_vector.map(|x| x * m);
                    for (f, add) in f.iter_mut().zip(add) {
                        *f += add;
                    }
                    if full {
                        let (r, image) = (position(&*pos.host().add(i)), s.image.offset(3 * i).slice(3));
                        let u: f64 = (0..3).map(|k| -add[k].f64() * (r[k] + length[k] * f64::from(image[k]))).sum();
                        f[3] += R::lit(u);
                        energy += u;
                    }
                }
            }
            // SAFETY: every chunk writes its own element of `energies`, which outlives the loop
            unsafe { *energies_pointer.host().add(chunk) = energy };
        });
        sums.energy += energies.iter().sum::<f64>();
    }
}
