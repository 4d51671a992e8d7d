//! What the user writes, and the force as the engine sees it.

use crate::many_body::{cpu, device};
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FieldDoc, Fields, FromValue, Params, TypePairs, Value};
use galamost_plugin_api::precision::{Fixed, Float64, Precision};
use galamost_plugin_api::prelude::*;

/// What may stand in a row.
#[derive(Clone, Debug, Params)]
struct RowFields {
    /// A of this pair of types; negative for attraction.
    #[param(name = "A", unit = "energy/length")]
    a: f64,
    /// Cutoff r_c of this pair of types, if it is not that of the component.
    #[param(unit = "length", above = 0.0)]
    r_cut: Option<f64>,
}

/// Parameters of one pair of types.
#[derive(Clone, Debug)]
struct Row {
    fields: RowFields,
    at: galamost_plugin_api::error::Position,
}

/// Why B stands outside of the rows.
const NO_GO: &str = "B must be the same for all pairs of types: with different B there is no energy that gives these \
                     forces (Warren, Phys. Rev. E 87 (2013) 045303); give it once, beside `pairs`";

impl FromValue for Row {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut fields = Fields::new(value, errors)?;
        let own = ["B", "r_d"].map(|name| fields.raw(name));
        let row = RowFields::take(&mut fields);
        fields.finish();
        if let Some(b) = own[0] {
            errors.push(b.error(NO_GO));
        }
        if let Some(r_d) = own[1] {
            errors.push(
                r_d.error("r_d belongs to the density of a particle, not to a pair: give it once, beside `pairs`"),
            );
        }
        if own.iter().any(Option::is_some) { None } else { Some(Self { fields: row?, at: value.at() }) }
    }
    fn describe() -> String {
        "(A: …)".into()
    }
    fn fields() -> Vec<FieldDoc> {
        RowFields::docs()
    }
}

/// Many-body DPD: F_ij = [A_ij w(r; r_c) + B (ρ_i + ρ_j) w(r; r_d)] e, w(r; r_c) = 1 − r/r_c, e = r_ij/r,
/// ρ_i = Σ_{j≠i} 15/(2π r_d³) (1 − r_ij/r_d)².
///
/// A < 0 attracts, B > 0 and r_d < r_c repel where it is dense: a liquid with a free surface beside a vapour of almost no
/// particles. F is −∂U/∂r of U = Σ_{i<j} (A_ij r_c/2) w(r_ij; r_c)² + Σ_i (π r_d⁴ B/30) ρ_i². A particle does not
/// count in its own density ρ_i; if it did, each ρ would be larger by 15/(2π r_d³), which only adds the pair force
/// (15 B/π r_d³) w(r; r_d) e.
///
/// B and r_d are those of the whole component. With another B for each pair of types, the force would have no energy,
/// and equilibria would depend on the friction (Warren's no-go theorem); such input is refused. For friction and noise
/// put `DpdThermostat` beside it, and integrate with `GrootWarren` or `DpdVerlet`. Excluded pairs do not count in the
/// densities either. In three dimensions only, since the norm of the density is that of a sphere. The force is made in
/// two passes over the neighbor list, first the densities, then the forces: about twice the time of `Dpd`.
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
    /// B, strength of the repulsion by densities; the same for all pairs of types.
    #[param(name = "B", unit = "energy length²", at_least = 0.0)]
    b: f64,
    /// r_d, range of the densities and of their repulsion.
    #[param(unit = "length", above = 0.0)]
    r_d: Spanned<f64>,
    /// r_c of all pairs of types that give none of their own.
    #[param(unit = "length", above = 0.0)]
    r_cut: Option<f64>,
    /// A, and r_c if it differs, of each pair of types.
    pairs: TypePairs<Row>,
    #[param(skip)]
    law: Law,
    #[param(skip)]
    n: usize,
    #[param(skip)]
    started: Option<Started>,
}

struct Started {
    host: Host,
    place: Place,
}

/// Where densities are kept.
enum Place {
    Device(device::OnDevice),
    Single(Vec<f32>),
    Double(Vec<f64>),
}

/// A and r_c of one pair of types.
#[derive(Clone, Copy, Debug, Default)]
pub struct PairRow {
    pub a: f64,
    pub cutoff: f64,
}

/// All numbers of the force.
#[derive(Clone, Debug, Default)]
pub struct Law {
    pub b: f64,
    pub r_d: f64,
    /// Row of types (i, j) at i · types + j.
    pub rows: Vec<PairRow>,
    pub cuda: bool,
    pub precision: Precision,
}

impl Law {
    /// Factor of Σ (1 − r/r_d)² in a density: its integral over space is 1.
    pub fn norm(&self) -> f64 {
        15.0 / (2.0 * std::f64::consts::PI * self.r_d.powi(3))
    }

    /// Factor of ρ² in the energy of a particle. With dρ_i/dr = −(15/π r_d⁴) w(r; r_d), its derivative is B ρ w.
    pub fn self_energy(&self) -> f64 {
        std::f64::consts::PI * self.r_d.powi(4) * self.b / 30.0
    }
}

impl Force for ManyBodyDpd {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if system.dimensions == 2 {
            return Err(Error::input("the density is that of three dimensions; the system has two"));
        }
        let mut errors = Errors::default();
        let half = system.half_box();
        let image = |name: &str, r: f64| {
            format!(
                "{name} = {r} is more than half the shortest box length ({half}): a particle would meet its own image"
            )
        };
        let r_d = self.r_d.value;
        if r_d > half {
            errors.push(InputError::at(self.r_d.at, image("r_d", r_d)));
        }
        let mut cutoffs = vec![];
        for (_, _, row) in self.pairs.iter() {
            let cutoff = row.fields.r_cut.or(self.r_cut).unwrap_or_else(|| {
                errors.push(InputError::at(row.at, "no cutoff: give r_cut here or for the whole component"));
                1.0
            });
            if cutoff > half {
                errors.push(InputError::at(row.at, image("r_cut", cutoff)));
            }
            cutoffs.push(cutoff);
        }
        let Some(table) = self.pairs.bind(&system.types, &mut errors) else { return errors.into_result(None) };
        errors.into_result(Some(()))?;
        let row = |r: &usize| PairRow { a: self.pairs.get(*r).fields.a, cutoff: cutoffs[*r] };
        self.law = Law {
            b: self.b,
            r_d,
            rows: table.iter().map(row).collect(),
            cuda: system.device == "cuda",
            precision: system.precision(),
        };
        self.n = system.n as usize;
        needs.cutoff = self.law.rows.iter().map(|r| r.cutoff).fold(r_d, f64::max);
        if self.law.rows.iter().any(|r| r.a < 0.0 && r.cutoff <= r_d) {
            needs.notes.push("r_d is not below the range of the attraction: nothing keeps particles apart".into());
        }
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let place = match (self.law.cuda, self.law.precision) {
            (true, _) => Place::Device(device::OnDevice::new(&host, &self.law, self.n)?),
            (false, Precision::Double) => Place::Double(vec![0.0; self.n]),
            (false, _) => Place::Single(vec![0.0; self.n]),
        };
        self.started = Some(Started { host, place });
        Ok(())
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let Some(Started { host, place }) = &mut self.started else {
            return Err(Error::Run("ManyBodyDpd was not started".into()));
        };
        // SAFETY: the engine's word about the views; the precision is the run's
        unsafe {
            match place {
                Place::Device(d) => return d.launch(host, &self.law, call),
                Place::Double(density) => cpu::compute::<Float64>(&self.law, density, host, call, sums),
                Place::Single(density) => cpu::compute::<Fixed>(&self.law, density, host, call, sums),
            }
        }
        Ok(())
    }
}
