//! External potentials: a function returns the force on one particle and its energy.
//!
//! A plugin writes one function over `real` (`#[external_potential]`) and a struct of parameters. The API provides the
//! CPU loop (`cpu.rs`), the CUDA kernel (`loop.cuh`), sums, faults and the component.

mod cpu;
mod device;

use crate::abi::services::Host;
use crate::abi::views::{Step, Sums};
use crate::device::DeviceText;
use crate::device::precision::{Fixed, Float64, Precision};
use crate::device::real::Real;
use crate::device::vector::Vec3;
use crate::error::{Error, Errors, Result};
use crate::kinds::component::{ArrayNeed, Needs, SystemInfo};
use crate::kinds::force::{Force, ForceCall};
use crate::kinds::pair::Row;
use crate::params::{FieldDoc, Fields, FromValue, Group, Params, Range, Value};
use cpu::run;

/// Input of an external potential. Arguments of the function select members by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExternalInput<R> {
    /// Position, −L/2 ≤ x < L/2. Unit: length.
    pub position: Vec3<R>,
    /// Unwrapped position: position + L · image. Unit: length.
    pub unwrapped: Vec3<R>,
    /// Box lengths; 0 for the third axis in two dimensions. Unit: length.
    pub length: Vec3<R>,
    /// Velocity. Unit: length/time.
    pub velocity: Vec3<R>,
    /// Mass.
    pub mass: R,
    /// Charge.
    pub charge: R,
    /// Particle type.
    pub kind: u32,
    /// Tag.
    pub tag: u32,
    /// The current step.
    pub step: Step<R>,
}

/// Flags of members of [`ExternalInput`] that not every system provides.
pub mod inputs {
    /// `charge`.
    pub const CHARGE: u32 = 1;
}

/// Parameters of an external potential as the user writes them.
pub trait ExternalParams: Params + FromValue + Send + 'static {
    /// Parameters as the function reads them.
    type Row: Row;

    /// Receives the facts of the system and returns the rows: one for each particle type, or a single row for all.
    ///
    /// `needs` starts as conservative, without conservation of momentum. Set the group, time-dependent parameters and
    /// notes there. `needs.faults[0]` is the message for an infinite energy.
    ///
    /// # Errors
    /// Returns an error if the parameters do not fit the system.
    fn rows(&self, system: &SystemInfo, needs: &mut Needs) -> Result<Vec<Self::Row>>;
    /// Returns whether the symmetric part of Σ r_α F_β, Σ ½ (r_α F_β + r_β F_α), is added to the virial, with r from the center of the
    /// box.
    fn virial(&self) -> bool {
        false
    }
    /// Returns a row for the tests of force against energy; `random` returns numbers in 0 … 1. By default (`None`)
    /// numbers are drawn from the ranges of the fields.
    fn sample(_random: &mut dyn FnMut() -> f64) -> Option<Self::Row> {
        None
    }
}

/// Parameters of a potential that has one row for all particles, plus a group.
#[derive(Clone, Debug)]
pub struct OneRow<T> {
    row: T,
    group: Group,
}

impl<T: Params> Params for OneRow<T> {
    fn take(fields: &mut Fields<'_, '_>) -> Option<Self> {
        let row = T::take(fields);
        let group = fields.or("group", Range::ANY, || Group::All);
        Some(Self { row: row?, group: group? })
    }
    fn docs() -> Vec<FieldDoc> {
        let mut docs = T::docs();
        docs.push(FieldDoc {
            extensions: vec![],
            name: "group".into(),
            kind: Group::describe(),
            unit: String::new(),
            default: Some("All".into()),
            range: String::new(),
            doc: "The particles it acts on.".into(),
            fields: vec![],
        });
        docs
    }
}

/// Parses a struct by its fields.
fn read<T: Params>(value: Value<'_>, errors: &mut Errors) -> Option<T> {
    let mut fields = Fields::new(value, errors)?;
    let made = T::take(&mut fields);
    fields.finish();
    made
}

impl<T: Params> FromValue for OneRow<T> {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        read(value, errors)
    }
    fn describe() -> String {
        "parameters".into()
    }
    fn fields() -> Vec<FieldDoc> {
        Self::docs()
    }
}

impl<T: Row + Params> ExternalParams for OneRow<T> {
    type Row = T;
    fn rows(&self, system: &SystemInfo, needs: &mut Needs) -> Result<Vec<T>> {
        needs.group = self.group.need(system)?;
        Ok(vec![self.row])
    }
}

/// The function of an external potential as a type, created by `#[external_potential]`.
pub trait ExternalFn: Send + Sync + 'static {
    /// Its row of parameters over a number type.
    type Row<R: Real>: Copy + Send + Sync;
    /// Parameters as the user writes them.
    type Input: ExternalParams<Row: Row<As<f32> = Self::Row<f32>, As<f64> = Self::Row<f64>>>;
    /// Members of [`ExternalInput`] that it uses and not every system provides, as flags of [`inputs`].
    const INPUTS: u32;
    /// Returns the force on the particle and its energy. An energy of +∞ means that the position is forbidden; this
    /// ends the run.
    fn eval<R: Real>(input: &ExternalInput<R>, row: &Self::Row<R>) -> (Vec3<R>, R);
    /// Returns the CUDA text of `external_eval`.
    fn eval_text() -> &'static DeviceText;
}

/// An external potential as a force.
pub struct External<F: ExternalFn> {
    input: F::Input,
    single: Vec<F::Row<f32>>,
    double: Vec<F::Row<f64>>,
    numbers: Vec<f64>,
    system: SystemInfo,
    started: Option<(Host, Option<device::OnDevice>)>,
}

impl<F: ExternalFn> Params for External<F> {
    fn take(fields: &mut Fields<'_, '_>) -> Option<Self> {
        let input = F::Input::take(fields)?;
        let system = SystemInfo::default();
        Some(Self { input, single: vec![], double: vec![], numbers: vec![], system, started: None })
    }
    fn docs() -> Vec<FieldDoc> {
        F::Input::docs()
    }
}

impl<F: ExternalFn> FromValue for External<F> {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        read(value, errors)
    }
    fn describe() -> String {
        F::Input::describe()
    }
    fn fields() -> Vec<FieldDoc> {
        F::Input::docs()
    }
}

impl<F: ExternalFn> Force for External<F> {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.conserves_momentum = false;
        (needs.particle_energies, needs.particle_virials, needs.shared) = (true, true, true);
        let rows = self.input.rows(system, needs)?;
        if rows.len() != 1 && rows.len() != system.types.len() {
            return Err(Error::Run(format!("{} rows for {} types of particles", rows.len(), system.types.len())));
        }
        for row in &rows {
            system.check_row(&row.numbers()).map_err(Error::input)?;
        }
        if F::INPUTS & inputs::CHARGE != 0 {
            if !system.has_array("charge") {
                return Err(Error::input("particles have no `charge`: add it to the initial state"));
            }
            needs.arrays.push(ArrayNeed { name: "charge".into(), width: 1, integer: false, required: true });
        }
        if needs.faults.is_empty() {
            needs.faults.push("the energy of the particle is infinite at its position".into());
        }
        self.single = rows.iter().map(Row::cast::<f32>).collect();
        self.double = rows.iter().map(Row::cast::<f64>).collect();
        self.numbers = rows.iter().flat_map(Row::numbers).collect();
        self.system = system.clone();
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let device = if self.system.device == "cuda" {
            let charge = F::INPUTS & inputs::CHARGE != 0;
            Some(device::OnDevice::new(&host, F::eval_text(), &self.numbers, charge, &self.system)?)
        } else {
            None
        };
        self.started = Some((host, device));
        Ok(())
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let Some((host, device)) = &self.started else {
            return Err(Error::Run("the external potential was not started".into()));
        };
        let virial = self.input.virial();
        // SAFETY: the views describe valid arrays of the run's device (contract of `compute`), and the rows are those of the
        // precision
        unsafe {
            if let Some(d) = device {
                return d.launch(host, call, self.single.len() > 1, virial);
            }
            if call.state.precision == Precision::Double as u32 {
                run::<F, Float64>(&self.double, host, call, virial, sums);
            } else {
                run::<F, Fixed>(&self.single, host, call, virial, sums);
            }
        }
        Ok(())
    }
}
