//! A uniform electric field.

use galamost_plugin_api::prelude::*;

/// Settings of the component.
#[derive(Clone, Debug, Params)]
pub struct ElectricFieldParams {
    /// Group of particles that the force acts on.
    #[param(default = Group::All)]
    group: Group,
    /// Field E: the force per unit charge.
    #[param(unit = "energy/(length × charge)")]
    field: [f64; 3],
    /// Time-dependent factor; default 1.
    factor: Option<Varying>,
}

/// Field E and its factor, `fixed` + `varies` · the factor of the step.
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
        if system.dimensions == 2 && self.field[2] != 0.0 {
            return Err(Error::input("in two dimensions the z component of `field` must be 0"));
        }
        needs.group = self.group.need(system)?;
        needs.varyings = self.factor.into_iter().collect();
        let ([x, y, z], varies) = (self.field, if self.factor.is_some() { 1.0 } else { 0.0 });
        Ok(vec![FieldRow { x, y, z, fixed: 1.0 - varies, varies }])
    }
}

/// Uniform electric field: F = q · factor · `field` on each particle of the group.
///
/// The energy is U = −F·r of the unwrapped position r (position + box length × image). It is continuous when a particle
/// crosses the box, and the total energy is conserved while `factor` is constant. There is no virial contribution, since a
/// uniform force has no counterpart in a periodic box. Neutral molecules are an exception: their bonds or constraints bear the forces of
/// the field and are part of the virial, so the reported pressure is too low by −U/(d V), with the energy U of this component and d dimensions.
///
/// In a box sheared by `LeesEdwards`, also in later stages, a particle that crosses the boundary along y appears at another x.
/// The force is right, but its energy then jumps by the x component of the force times the offset of the images: only the
/// energies of fields along y and z are continuous.
///
/// Charges have the units of the pair forces between them: with `DebyeHueckel`, which counts elementary charges, `field` is
/// e E. For an oscillating field use `factor: Sine(mean: 0.0, amplitude: 1.0, period: 1000)`.
///
/// Reference: none; the definition of a uniform field.
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
