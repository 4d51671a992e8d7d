//! The component that places sites and passes on the forces on them.

use crate::device::{SiteArrays, kernels};
use galamost_plugin_api::component::ArrayNeed;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::place::{CHUNK, PlaceKernels, add_virial, collect_on_cpu};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::{Fault, FaultKind, StateView};
use galamost_sites::{ATOMS, FORM, LINEAR, MOST, NUMBERS, USES, place_site, spread_force};

/// Keeps virtual sites, particles without mass, at positions that follow from those of other particles, and passes the
/// forces on them to these particles.
///
/// The generator `Sites` defines the sites: its page has the constructions, which are those of GROMACS. Sites take part in all
/// forces. After all other forces, each particle i that constructs a site s receives (∂r_s/∂r_i)ᵀ F_s, so energy, momentum
/// and angular momentum are conserved. Each particle adds up its parts in the order of the tags of the sites, so a run is the
/// same for any number of threads. The velocity of a site is the derivative of its position.
///
/// The virial Σ (r_i − r_s) F_i of this transfer is part of the pressure. Barostats scale the particles with mass only, and
/// sites follow. Integrators leave out sites, which have no degrees of freedom. Forces on sites remain in trajectories.
///
/// Pair forces between a site and its particles are usually left out. `neighbors: (exclude: [Bonds])` does so for pairs with a bond:
/// those of GROMACS topologies (`Gromacs`, `galamost convert`), or of `Sites` with `bonds`. `neighbors: (only: OtherMolecules)` leaves
/// out all pairs of a molecule and is for molecules without any pair forces inside. A site cannot construct another site. Requires a box without shear. If the direction of a site is not defined, because its
/// particles coincide or lie on a line, the run ends with an error.
///
/// Reference: H. J. C. Berendsen, W. F. van Gunsteren, in Molecular Liquids: Dynamics and Interactions, Reidel (1984) 475,
/// doi:10.1007/978-94-009-6463-1_22.
///
/// ```ron
/// VirtualSites()
/// ```
#[component(Force, "VirtualSites")]
#[derive(Params)]
pub struct VirtualSites {
    #[param(skip)]
    cuda: bool,
    #[param(skip)]
    n: u64,
    #[param(skip)]
    started: Option<(Host, Option<PlaceKernels>)>,
}

impl Force for VirtualSites {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if !system.has_array(FORM) {
            needs.warnings.push("there are no virtual sites; add the generator `Sites` to `initial`".into());
        }
        let arrays =
            [(FORM, 1, true), (ATOMS, MOST as u32, true), (NUMBERS, MOST as u32, false), (USES, MOST as u32 + 1, true)];
        for (name, width, integer) in arrays {
            needs.arrays.push(ArrayNeed { name: name.into(), width, integer, required: false });
        }
        needs.faults = vec![
            "the direction of this site is not defined: particles that construct it coincide or lie on a line".into(),
        ];
        (needs.places, needs.placed_from, needs.shared) = (true, Some(ATOMS.into()), true);
        needs.particle_energies = true;
        needs.plain_images = true;
        (self.cuda, self.n) = (system.device == "cuda", system.n);
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let kernels = if self.cuda { Some(kernels(&host, self.n)?) } else { None };
        self.started = Some((host, kernels));
        Ok(())
    }

    unsafe fn place(&mut self, call: &ForceCall) -> Result<()> {
        let (host, kernels) = self.started()?;
        let Some(kernels) = kernels else {
            let sites = Sites::of(host, call);
            host.parallel(call.state.n_local as usize, CHUNK, |range| {
                // SAFETY: the engine passes views of valid arrays, ranges are disjoint, and no site constructs another one
                range.for_each(|i| unsafe { sites.place(i, call.component) });
            });
            return Ok(());
        };
        // SAFETY: the engine passes views of the run's device
        unsafe { kernels.place(host, call, SiteArrays::of(host)) }
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let (host, kernels) = self.started()?;
        let Some(kernels) = kernels else {
            let sites = Sites::of(host, call);
            collect_on_cpu(host, call.state.n_local as usize, CHUNK, sums, |range| {
                let mut virial = [0.0; 6];
                for i in range {
                    // SAFETY: the engine passes views of valid arrays, ranges are disjoint, and no site receives forces
                    unsafe {
                        sites.collect(i);
                        sites.add_virial(i, &mut virial);
                    }
                }
                virial
            });
            return Ok(());
        };
        // SAFETY: the engine passes views of the run's device
        unsafe { kernels.collect(host, call, SiteArrays::of(host)) }
    }
}

impl VirtualSites {
    fn started(&self) -> Result<(&Host, Option<&PlaceKernels>)> {
        let started = self.started.as_ref().map(|(host, kernels)| (host, kernels.as_ref()));
        started.ok_or_else(|| Error::Run("VirtualSites was not started".into()))
    }
}

/// The arrays of a call on the CPU.
struct Sites {
    state: StateView,
    form: DevicePtr<u32>,
    atoms: DevicePtr<[i32; MOST]>,
    numbers: DevicePtr<u8>,
    uses: DevicePtr<[i32; MOST + 1]>,
}

/// A site: its form and numbers, and the particles that construct it with their displacements from the first one.
struct Site {
    form: u32,
    numbers: [f64; MOST],
    n: usize,
    atoms: [usize; MOST],
    arms: [Vec3<f64>; MOST],
}

impl Site {
    fn parameters(&self) -> Vec3<f64> {
        Vec3::new(self.numbers[0], self.numbers[1], self.numbers[2])
    }

    /// Returns displacement and velocity relative to the first particle, and whether they are defined. `rates` are the
    /// velocities of the arms.
    fn place(&self, rates: &[Vec3<f64>; MOST]) -> (Vec3<f64>, Vec3<f64>, bool) {
        let ([_, u1, u2, u3, ..], [_, v1, v2, v3, ..]) = (self.arms, *rates);
        if self.form != LINEAR {
            return place_site(self.form, self.parameters(), u1, u2, u3, v1, v2, v3);
        }
        let (mut d, mut v) = (Vec3::zero(), Vec3::zero());
        for ((arm, rate), weight) in self.arms.iter().zip(rates).zip(self.numbers).take(self.n).skip(1) {
            d += *arm * weight;
            v += *rate * weight;
        }
        (d, v, true)
    }

    /// Returns the parts of a force that the particles receive.
    fn spread(&self, f: Vec3<f64>) -> [Vec3<f64>; MOST] {
        let mut parts = [Vec3::zero(); MOST];
        if self.form == LINEAR {
            (1..self.n).for_each(|k| parts[k] = f * self.numbers[k]);
        } else {
            let [_, u1, u2, u3, ..] = self.arms;
            (parts[1], parts[2], parts[3]) = spread_force(self.form, self.parameters(), u1, u2, u3, f);
        }
        parts[0] = parts[1..].iter().fold(f, |rest, part| rest - *part);
        parts
    }
}

impl Sites {
    fn of(host: &Host, call: &ForceCall) -> Self {
        Self {
            state: call.state,
            form: host.array(FORM),
            atoms: host.array(ATOMS),
            numbers: host.array(NUMBERS),
            uses: host.array(USES),
        }
    }

    /// Returns the particle whose tag is `relative` above that of `tag`.
    ///
    /// # Safety
    /// The arrays are valid, and the two tags are those of a site and of a particle that it uses.
    unsafe fn relative(&self, tag: u32, relative: i32) -> usize {
        // SAFETY: `Sites` has written differences between tags of particles (contract of this function)
        unsafe { *self.state.index_of_tag.host().add(tag.wrapping_add_signed(relative) as usize) as usize }
    }

    /// Returns particle `i` as a site; `None` if it is none.
    ///
    /// # Safety
    /// The arrays are valid, and `i` < n_local.
    unsafe fn site(&self, i: usize) -> Option<Site> {
        // SAFETY: `bind` has required the arrays, and particle `i` has an entry in each (contract of this function)
        unsafe {
            let form = *self.form.host().add(i);
            if form == 0 {
                return None;
            }
            let numbers = self.state.reals(self.numbers, i);
            let (tag, relative) = (*self.state.tag.host().add(i), *self.atoms.host().add(i));
            let n = relative.iter().position(|r| *r == 0).unwrap_or(MOST);
            let (mut atoms, mut arms) = ([0; MOST], [Vec3::zero(); MOST]);
            for k in 0..n {
                atoms[k] = self.relative(tag, relative[k]);
                if k > 0 {
                    arms[k] = Vec3::from(self.state.difference(atoms[k], atoms[0]));
                }
            }
            Some(Site { form, numbers, n, atoms, arms })
        }
    }

    /// Returns the velocity of a particle.
    ///
    /// # Safety
    /// The arrays are valid, and `i` < n_local.
    unsafe fn velocity(&self, i: usize) -> Vec3<f64> {
        // SAFETY: contract of this function
        let [x, y, z, _] = unsafe { self.state.velocity_mass(i) };
        Vec3::new(x, y, z)
    }

    /// Places particle `i`, if it is a site.
    ///
    /// # Safety
    /// The arrays are valid, `i` < n_local, and no other thread accesses particle `i` or changes particles with mass.
    unsafe fn place(&self, i: usize, component: u32) {
        // SAFETY: contract of this function
        unsafe {
            let Some(site) = self.site(i) else { return };
            let first = self.velocity(site.atoms[0]);
            let mut rates = [Vec3::zero(); MOST];
            for (rate, atom) in rates.iter_mut().zip(site.atoms).take(site.n).skip(1) {
                *rate = self.velocity(atom) - first;
            }
            let (d, rate, defined) = site.place(&rates);
            if defined {
                self.state.place(component, i, site.atoms[0], d.f64(), (first + rate).f64());
            } else {
                let (code, tag) = (FaultKind::Component as u32, *self.state.tag.host().add(i));
                (*self.state.globals.host()).raise(Fault { code, component, tag, detail: 0 });
            }
        }
    }

    /// Adds the parts of the forces on sites that particle `i` receives.
    ///
    /// # Safety
    /// The arrays are valid, `i` < n_local, and no other thread accesses the force on particle `i` or changes that on a site.
    unsafe fn collect(&self, i: usize) {
        // SAFETY: contract of this function; lists end with 0
        unsafe {
            let mut next = (*self.uses.host().add(i))[0];
            if next == 0 {
                return;
            }
            let tag = *self.state.tag.host().add(i);
            let mut sum = Vec3::zero();
            while next != 0 {
                let (j, k) = (self.relative(tag, next >> 3), (next & 7) as usize);
                let Some(site) = self.site(j) else { break };
                sum += site.spread(Vec3::from(self.state.force(j)))[k];
                next = (*self.uses.host().add(j))[k + 1];
            }
            self.state.add_force(i, sum.f64(), 0.0);
        }
    }

    /// Adds the virial of the transfer of the force on particle `i`, if it is a site. That of a linear site is 0.
    ///
    /// # Safety
    /// The arrays are valid, `i` < n_local, and no other thread changes the force on particle `i`.
    unsafe fn add_virial(&self, i: usize, virial: &mut [f64; 6]) {
        // SAFETY: contract of this function
        let (site, force) = unsafe {
            let Some(site) = self.site(i).filter(|s| s.form != LINEAR) else { return };
            (site, Vec3::from(self.state.force(i)))
        };
        let (d, ..) = site.place(&[Vec3::zero(); MOST]);
        for (u, f) in site.arms.iter().zip(site.spread(force)).take(site.n) {
            add_virial(virial, (*u - d).f64(), f.f64());
        }
    }
}
