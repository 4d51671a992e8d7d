//! User parameters and the `Force` implementation.

use crate::many_body::{cpu, device};
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FieldDoc, Fields, FromValue, Params, TypePairs, Value};
use galamost_plugin_api::precision::{Fixed, Float64, Precision};
use galamost_plugin_api::prelude::*;

/// Fields of one type pair.
#[derive(Clone, Debug, Params)]
struct RowFields {
    /// Amplitude A of this pair of types; negative for attraction.
    #[param(name = "A", unit = "energy/length")]
    a: f64,
    /// Cutoff r_c of this pair of types; default: that of the component.
    #[param(unit = "length", above = 0.0)]
    r_cut: Option<f64>,
}

/// Parameters of one pair of types.
#[derive(Clone, Debug)]
struct Row {
    fields: RowFields,
    at: galamost_plugin_api::error::Position,
}

/// Error message for a B inside `pairs`.
const COMMON_B: &str = "B must be the same for all pairs of types: forces with different B derive from no energy \
                        (Warren, Phys. Rev. E 87 (2013) 045303); set B once, beside `pairs`";

impl FromValue for Row {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut fields = Fields::new(value, errors)?;
        let misplaced = ["B", "r_d"].map(|name| fields.raw(name));
        let row = RowFields::take(&mut fields);
        fields.finish();
        if let Some(b) = misplaced[0] {
            errors.push(b.error(COMMON_B));
        }
        if let Some(r_d) = misplaced[1] {
            errors.push(
                r_d.error("r_d belongs to the density of a particle, not to a pair: set it once, beside `pairs`"),
            );
        }
        if misplaced.iter().any(Option::is_some) { None } else { Some(Self { fields: row?, at: value.at() }) }
    }
    fn describe() -> String {
        "(A: …)".into()
    }
    fn fields() -> Vec<FieldDoc> {
        RowFields::docs()
    }
}

/// Many-body DPD: an attractive pair force and a repulsion that grows with the local density, for liquids with a free surface.
///
/// F_ij = [A_ij w(r; r_c) + B (ρ_i + ρ_j) w(r; r_d)] e, w(r; r_c) = 1 − r/r_c, e = r_ij/r,
/// ρ_i = Σ_{j≠i} 15/(2π r_d³) (1 − r_ij/r_d)².
///
/// The energy is U = Σ_{i<j} (A_ij r_c/2) w(r_ij; r_c)² + Σ_i (π r_d⁴ B/30) ρ_i², and F = −∂U/∂r. A < 0 attracts; B > 0 with
/// r_d < r_c repels at high density. The liquid coexists with an almost empty vapor. At r = 0 the direction is undefined and the force of
/// the pair is 0.
///
/// For friction and noise add `DpdThermostat`, and integrate with `GrootWarren` or `DpdVerlet`. The force takes two passes
/// over the neighbor list, densities first, and costs about twice as much as `Dpd`.
///
/// Limits: B and r_d are the same for all pairs of types. Otherwise the force derives from no energy and equilibria depend on
/// the friction (Warren's no-go theorem), so such input is rejected. The system must have three dimensions. Excluded
/// pairs do not contribute to the densities. A particle does not contribute to its own density; including it would raise
/// each ρ by 15/(2π r_d³), which only adds the pair force (15 B/π r_d³) w(r; r_d) e.
///
/// Reference: P. B. Warren, Phys. Rev. E 68 (2003) 066702, doi:10.1103/PhysRevE.68.066702; the no-go theorem: P. B.
/// Warren, Phys. Rev. E 87 (2013) 045303, doi:10.1103/PhysRevE.87.045303.
///
/// ```ron
/// ManyBodyDpd(B: 25.0, r_d: 0.75, r_cut: 1.0, pairs: {
///     ("A", "A"): (A: -40.0),
///     ("A", "B"): (A: -30.0, r_cut: 1.1),
///     ("B", "B"): (A: -40.0),
/// })
/// ```
#[component(Force, "ManyBodyDpd")]
#[derive(Params)]
pub struct ManyBodyDpd {
    /// Strength B of the density-dependent repulsion, common to all pairs of types.
    #[param(name = "B", unit = "energy length²", at_least = 0.0)]
    b: f64,
    /// Range r_d of the densities and of the density-dependent repulsion.
    #[param(unit = "length", above = 0.0)]
    r_d: Spanned<f64>,
    /// Cutoff r_c of all pairs of types that do not set their own.
    #[param(unit = "length", above = 0.0)]
    r_cut: Option<f64>,
    /// A and optionally r_c of each pair of types.
    pairs: TypePairs<Row>,
    #[param(skip)]
    parameters: Parameters,
    #[param(skip)]
    n: usize,
    #[param(skip)]
    started: Option<Started>,
}

/// Resources of a run.
struct Started {
    host: Host,
    densities: Densities,
}

/// Storage of n = Σ (1 − r/r_d)², to which densities are proportional.
enum Densities {
    Device(device::DeviceKernels),
    Single(Vec<f32>),
    Double(Vec<f64>),
}

/// A and r_c of one pair of types.
#[derive(Clone, Copy, Debug, Default)]
pub struct PairRow {
    pub a: f64,
    pub cutoff: f64,
}

/// All parameters of the force.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    pub b: f64,
    pub r_d: f64,
    /// Row of the types (i, j) at i · n_types + j.
    pub rows: Vec<PairRow>,
    pub cuda: bool,
    pub precision: Precision,
}

impl Parameters {
    /// Returns the prefactor of n = Σ (1 − r/r_d)² in a density, which normalizes the weight to 1.
    fn norm(&self) -> f64 {
        15.0 / (2.0 * std::f64::consts::PI * self.r_d.powi(3))
    }

    /// Returns the prefactor of (n_i + n_j) w in the force of a pair. The sums n are stored instead of the densities: in units far
    /// from 1, ρ² and π r_d⁴ B/30 are out of the range of f32, but their product is not.
    pub fn strength(&self) -> f64 {
        self.b * self.norm()
    }

    /// Returns the prefactor of n² in the energy of a particle.
    ///
    /// With dρ_i/dr = −(15/π r_d⁴) w(r; r_d), the derivative of (π r_d⁴ B/30) ρ² is B ρ w.
    pub fn self_energy(&self) -> f64 {
        std::f64::consts::PI * (self.r_d.powi(2) * self.norm()).powi(2) * self.b / 30.0
    }
}

impl ManyBodyDpd {
    /// Checks that all numbers of the loops over pairs exist in the precision of the run.
    fn check_range(&self, system: &SystemInfo) -> Result<()> {
        let (p, r_d) = (&self.parameters, self.r_d.value);
        let mut errors = Errors::default();
        let mut check = |at, numbers: &[f64]| {
            errors.0.extend(system.check_row(numbers).err().map(|message| InputError::at(at, message)));
        };
        check(self.r_d.at, &[1.0 / r_d, r_d * r_d, p.strength(), p.self_energy()]);
        for (_, _, row) in self.pairs.iter() {
            let (a, r_cut) = (row.fields.a, row.fields.r_cut.or(self.r_cut).unwrap_or(r_d));
            check(row.at, &[a, r_cut, 1.0 / r_cut, r_cut * r_cut, a * r_cut]);
        }
        errors.into_result(Some(()))
    }
}

impl Force for ManyBodyDpd {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if system.dimensions == 2 {
            return Err(Error::input("the density is defined in three dimensions, but the system has two"));
        }
        let mut errors = Errors::default();
        let r_d = self.r_d.value;
        let beyond = |errors: &mut Errors, at, name: &str, r: f64| {
            errors.0.extend(system.beyond_half_box(name, r).map(|message| InputError::at(at, message)));
        };
        beyond(&mut errors, self.r_d.at, "r_d", r_d);
        let mut cutoffs = vec![];
        for (_, _, row) in self.pairs.iter() {
            let cutoff = row.fields.r_cut.or(self.r_cut).unwrap_or_else(|| {
                errors.push(InputError::at(row.at, "no cutoff: set r_cut here or for the whole component"));
                1.0
            });
            beyond(&mut errors, row.at, "r_cut", cutoff);
            cutoffs.push(cutoff);
        }
        let Some(table) = self.pairs.bind(&system.types, &mut errors) else { return errors.into_result(None) };
        errors.into_result(Some(()))?;
        let row = |r: &usize| PairRow { a: self.pairs.get(*r).fields.a, cutoff: cutoffs[*r] };
        self.parameters = Parameters {
            b: self.b,
            r_d,
            rows: table.iter().map(row).collect(),
            cuda: system.device == "cuda",
            precision: system.precision(),
        };
        self.check_range(system)?;
        self.n = system.n as usize;
        (needs.particle_energies, needs.particle_virials) = (true, true);
        needs.cutoff = self.parameters.rows.iter().map(|r| r.cutoff).fold(r_d, f64::max);
        if self.parameters.rows.iter().any(|r| r.a < 0.0 && r.cutoff <= r_d) {
            needs.notes.push("r_d is not below the range of the attraction: no repulsion keeps particles apart".into());
        }
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let densities = match (self.parameters.cuda, self.parameters.precision) {
            (true, _) => Densities::Device(device::DeviceKernels::new(&host, &self.parameters, self.n)?),
            (false, Precision::Double) => Densities::Double(vec![0.0; self.n]),
            (false, _) => Densities::Single(vec![0.0; self.n]),
        };
        self.started = Some(Started { host, densities });
        Ok(())
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let Some(Started { host, densities }) = &mut self.started else {
            return Err(Error::Run("ManyBodyDpd was not started".into()));
        };
        // SAFETY: the views of the call describe valid arrays of the run's device and precision
        unsafe {
            match densities {
                Densities::Device(d) => return d.launch(host, &self.parameters, call),
                Densities::Double(density) => cpu::compute::<Float64>(&self.parameters, density, host, call, sums),
                Densities::Single(density) => cpu::compute::<Fixed>(&self.parameters, density, host, call, sums),
            }
        }
        Ok(())
    }
}
