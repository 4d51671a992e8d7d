//! The state on the host in tag order, for analyzers.

use super::Backend;
use crate::state::arrays::{ArrayId, optional_name};
use crate::state::raw::{Facts, ints, positions, reals};
use crate::state::rotation;
use galamost_plugin_api::abi::RVec;
use galamost_plugin_api::component::Wants;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::precision::{Fixed, Float64, Precision};
use galamost_plugin_api::snapshot::{Array, Link, Values};
use galamost_plugin_api::tilt::to_space;
use std::collections::BTreeMap;

/// The state on the host, in tag order.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Positions.
    pub position: RVec<[f64; 3]>,
    /// Images.
    pub image: RVec<[i32; 3]>,
    /// Velocities.
    pub velocity: RVec<[f64; 3]>,
    /// Types.
    pub type_id: RVec<u32>,
    /// Masses.
    pub mass: RVec<f64>,
    /// Optional arrays.
    pub arrays: BTreeMap<String, Array>,
    /// Bonds.
    pub bonds: Vec<Link<2>>,
    /// Angles.
    pub angles: Vec<Link<3>>,
    /// Dihedrals.
    pub dihedrals: Vec<Link<4>>,
    /// Impropers.
    pub impropers: Vec<Link<4>>,
}

/// Returns the parts of the state that analyzers want.
///
/// # Errors
/// Returns the driver's error.
pub fn columns(backend: &mut dyn Backend, facts: &Facts, wants: Wants) -> Result<Columns> {
    let mut c = Columns::default();
    if wants.particles {
        let length = backend.box_length();
        let (pos, low) = (backend.read(ArrayId::PosType.name())?, backend.read(ArrayId::PosLow.name())?);
        let (position, type_id) = match facts.precision {
            Precision::Double => positions::<Float64>(&pos, &low, length),
            _ => positions::<Fixed>(&pos, &low, length),
        };
        (c.position, c.type_id) = (position.into(), type_id.into());
        let tilt = backend.tilt();
        c.position.iter_mut().for_each(|x| *x = to_space(*x, tilt));
        c.image = ints(&backend.read(ArrayId::Image.name())?).as_chunks::<3>().0.into();
        for [x, y, z, m] in reals(&backend.read(ArrayId::VelocityMass.name())?, facts.precision).as_chunks::<4>().0 {
            c.velocity.push([*x, *y, *z]);
            c.mass.push(*m);
        }
        c.arrays = facts.idle_arrays.clone();
        let rotates = !facts.rotational.is_empty();
        // arrays with a dot in their names are private to a component
        for need in facts.arrays.iter().filter(|a| !a.name.contains('.')) {
            let bytes = backend.read(&optional_name(&need.name))?;
            let values =
                if need.integer { Values::Int(ints(&bytes)) } else { Values::Real(reals(&bytes, facts.precision)) };
            c.arrays.insert(need.name.clone(), Array { width: need.width, values });
        }
        if facts.axes || rotates {
            rotation::describe(&mut c.arrays, facts.axes);
        }
    }
    if wants.forces {
        let rows = reals(&backend.read(ArrayId::Force.name())?, facts.precision);
        let rows = rows.as_chunks::<4>().0;
        let force = rows.iter().flat_map(|[x, y, z, _]| [*x, *y, *z]).collect();
        c.arrays.insert("force".into(), Array { width: 3, values: Values::Real(force) });
        let energy = rows.iter().map(|[.., u]| *u).collect();
        c.arrays.insert("energy".into(), Array { width: 1, values: Values::Real(energy) });
    }
    if wants.topology {
        let t = backend.topology();
        (c.bonds, c.angles) = (t.bonds.clone(), t.angles.clone());
        (c.dihedrals, c.impropers) = (t.dihedrals.clone(), t.impropers.clone());
    }
    Ok(c)
}
