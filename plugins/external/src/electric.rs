//! A homogeneous electric field.

use galamost_plugin_api::prelude::*;

/// Parameters of the whole component.
#[derive(Clone, Debug, Params)]
pub struct ElectricFieldParams {
    /// The particles it acts on.
    #[param(default = Group::All)]
    group: Group,
    /// E, the force on a charge of 1.
    #[param(unit = "energy/(length × charge)")]
    field: [f64; 3],
    /// A factor that may change with time; 1 if it is not given.
    factor: Option<Varying>,
}

/// E, and its factor: `fixed` + `varies` · that of the step.
#[derive(Debug, PairParams)]
pub struct FieldRow<real> {
    x: real,
    y: real,
    z: real,
    fixed: real,
    varies: real,
}

impl ExternalParams for ElectricFieldParams {
    type Row = FieldRow<f64>;

    fn rows(&self, system: &SystemInfo, needs: &mut Needs) -> Result<Vec<FieldRow<f64>>> {
        needs.group = self.group.need(system)?;
        needs.varyings = self.factor.into_iter().collect();
        let ([x, y, z], varies) = (self.field, if self.factor.is_some() { 1.0 } else { 0.0 });
        Ok(vec![FieldRow { x, y, z, fixed: 1.0 - varies, varies }])
    }
}

/// A homogeneous electric field: F = q · factor · `field` on each particle of the group.
///
/// The energy is U = −F·r of the unwrapped position r (position + box length × image), which is conserved with the
/// kinetic energy while `factor` stays the same, and changes by no jump where a particle crosses the box. There is no
/// virial: in a periodic box the force has no counterpart. The units of charges are those of the pair forces between
/// them: with `DebyeHueckel`, whose charges are numbers of elementary charges, `field` is e E. An oscillating field has
/// `factor: Sine(mean: 0.0, amplitude: 1.0, period: 1000)`.
///
/// Reference: none; the definition of a homogeneous field.
///
/// ```ron
/// ElectricField(field: [0.0, 0.0, 0.5])
/// ```
#[external_potential("ElectricField", input = ElectricFieldParams)]
fn electric_field(unwrapped: Vec3<real>, charge: real, step: &Step<real>, p: &FieldRow<real>) -> (Vec3<real>, real) {
    let factor = p.fixed + p.varies * step.varying[0];
    let force = Vec3::new(p.x, p.y, p.z) * (charge * factor);
    (force, -force.dot(unwrapped))
}
