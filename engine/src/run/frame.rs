//! Frames: the data that analyzers get.

use super::ends::motion;
use crate::backend::{Backend, Columns, SystemSums, columns, energies_by_type};
use crate::plan::{EnergyColumn, StagePlan};
use crate::plugins::Component;
use crate::state::rotation;
use galamost_plugin_api::analyzer::{FrameArray, FrameCall, FrameColumn, Thermo};
use galamost_plugin_api::component::Wants;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::snapshot::{Snapshot, Values};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// Returns the thermodynamic values of the system from its sums.
pub fn thermo(
    sums: &SystemSums,
    facts: &FrameFacts<'_>,
    rotational: f64,
    box_length: [f64; 3],
    without_virial: bool,
) -> Thermo {
    let FrameFacts { n, degrees_of_freedom, dimensions, .. } = *facts;
    let d = dimensions as usize;
    let volume: f64 = box_length.iter().take(d).product();
    let k = sums.kinetic_tensor;
    let kinetic = 0.5 * (k[0] + k[3] + k[5]);
    let mut tensor = k;
    let mut potential = 0.0;
    for c in &sums.components {
        potential += c.energy;
        for (t, w) in tensor.iter_mut().zip(c.virial) {
            *t += w;
        }
    }
    // without a virial, the pressure is undefined
    tensor.iter_mut().for_each(|t| *t = if without_virial { f64::NAN } else { *t / volume });
    let per = |energy: f64, degrees: f64| if degrees > 0.0 { 2.0 * energy / degrees } else { 0.0 };
    Thermo {
        n,
        degrees_of_freedom,
        kinetic,
        // without a degree of freedom, the temperature is undefined
        kt: if degrees_of_freedom > 0.0 { per(kinetic, degrees_of_freedom) } else { f64::NAN },
        rotational_degrees_of_freedom: rotational,
        rotational_kinetic: sums.rotational,
        rotational_kt: per(sums.rotational, rotational),
        potential,
        pressure: (tensor[0] + tensor[3] + if d == 3 { tensor[5] } else { 0.0 }) / d as f64,
        pressure_tensor: tensor,
        momentum: sums.momentum,
        volume,
        conserved: kinetic + sums.rotational + potential + sums.reservoir,
        reserved: [0.0; 8],
    }
}

/// Facts of the run that every frame contains.
#[derive(Clone, Copy, Debug)]
pub struct FrameFacts<'a> {
    /// Energies that each analyzer lists.
    pub energies: &'a BTreeMap<u32, Vec<EnergyColumn>>,
    /// Number of particles.
    pub n: u64,
    /// Degrees of freedom.
    pub degrees_of_freedom: f64,
    /// 2 or 3.
    pub dimensions: u32,
    /// The initial state, with the names of types.
    pub names: &'a Snapshot,
    /// Time since the start of the run.
    pub time: f64,
}

/// Returns the energies of a stage in the order of an analyzer's columns; NaN for a force of other stages.
fn arranged<'a>(columns: &'a [EnergyColumn], stage: &[EnergyColumn], energies: &[f64]) -> (Vec<&'a str>, Vec<f64>) {
    let of = |c: &EnergyColumn| stage.iter().position(|s| s == c).and_then(|k| energies.get(k)).copied();
    columns.iter().map(|c| (c.0.as_str(), of(c).unwrap_or(f64::NAN))).unzip()
}

/// Returns the data that the analyzers that are due read.
fn wants_of(stage: &StagePlan, due: &[usize]) -> Wants {
    let all = due.iter().fold(Wants::default(), |w, i| {
        let a = stage.analyzers[*i].needs.wants;
        Wants {
            thermo: w.thermo | a.thermo,
            particles: w.particles | a.particles,
            topology: w.topology | a.topology,
            forces: w.forces | a.forces,
            energies: w.energies | a.energies,
            by_type: w.by_type | a.by_type,
        }
    });
    // energies by type are computed from positions and topology
    Wants { particles: all.particles | all.by_type, topology: all.topology | all.by_type, ..all }
}

/// Returns the optional arrays of a frame.
fn arrays_of(columns: &Columns) -> Vec<FrameArray<'_>> {
    let arrays = columns.arrays.iter().map(|(name, a)| match &a.values {
        Values::Real(v) => FrameArray::reals(name, a.width, v),
        Values::Int(v) => FrameArray::ints(name, a.width, v),
    });
    arrays.collect()
}

/// Returns the rotational degrees of freedom of the particles that integrators of the stage turn; of all particles if none does. `counted`
/// are those of all particles and of each group.
fn rotational_degrees_of_freedom(stage: &StagePlan, counted: &[f64]) -> f64 {
    let all = counted.first().copied().unwrap_or(0.0);
    let turns = |i: &&Arc<Component>| i.needs.moves && i.needs.arrays.iter().any(|a| a.name == "angular_momentum");
    let mut turning = stage.integrators.iter().filter(turns).peekable();
    match turning.peek() {
        None => all,
        Some(_) => turning.map(|i| counted.get(i.group as usize + 1).copied().unwrap_or(all)).sum(),
    }
}

/// Checks that no rotation in a sample is undefined, and no velocity if its sums are known.
fn check_state(backend: &mut dyn Backend, sums: Option<&SystemSums>, columns: &Columns) -> Result<()> {
    let step = backend.step();
    for (_, array) in columns.arrays.iter().filter(|(name, _)| rotation::CHANGING.contains(&name.as_str())) {
        if let Values::Real(values) = &array.values {
            rotation::check(step, values, array.width)?;
        }
    }
    match sums {
        Some(s) if !s.rotational.is_finite() => Err(rotation::undefined(step, None)),
        Some(s) => motion::check(backend, Some(s)),
        None => Ok(()),
    }
}

/// Calls the analyzers that are due. Returns the thermodynamic values if an analyzer wants them, and the index in `due` of
/// an analyzer that failed, with its error; those after it are not called. `known` are the sums of this step, if available.
/// Adds the seconds of each analyzer to `seconds`; the time for common data counts for the first analyzer.
///
/// # Errors
/// Returns the driver's error, or an error if a rotation is undefined.
pub fn analyze(
    backend: &mut dyn Backend,
    stage: &StagePlan,
    facts: FrameFacts<'_>,
    due: &[usize],
    known: Option<&SystemSums>,
    seconds: &mut BTreeMap<String, f64>,
) -> Result<(Option<Thermo>, Option<(usize, Error)>)> {
    let mut begun = Instant::now();
    let wants = wants_of(stage, due);
    let box_length = backend.box_length();
    let rotational = rotational_degrees_of_freedom(stage, &backend.facts().rotational);
    let sums = match known {
        _ if !wants.thermo => None,
        Some(s) => Some(s.clone()),
        None => Some(backend.sums()?),
    };
    let without_virial = stage.forces.iter().any(|f| f.needs.without_virial);
    let values = sums.as_ref().map(|s| thermo(s, &facts, rotational, box_length, without_virial));
    let columns: Columns = if wants.particles || wants.topology || wants.forces {
        let facts = backend.facts().clone();
        columns(backend, &facts, wants)?
    } else {
        Columns::default()
    };
    check_state(backend, sums.as_ref(), &columns)?;
    let mut energies: Vec<f64> =
        sums.iter().flat_map(|s| s.components.iter().map(|c| c.energy).chain(s.quantities.iter().copied())).collect();
    let arrays = arrays_of(&columns);
    let (state, list, bond_view) = backend.views()?;
    let common = FrameCall {
        size: size_of::<FrameCall>() as u32,
        dimensions: facts.dimensions,
        step: backend.step(),
        time: facts.time,
        box_length,
        tilt: backend.tilt(),
        thermo: values.as_ref(),
        energies: FrameColumn::new(&[]),
        energy_names: FrameColumn::new(&[]),
        position: FrameColumn::new(&columns.position),
        image: FrameColumn::new(&columns.image),
        velocity: FrameColumn::new(&columns.velocity),
        type_id: FrameColumn::new(&columns.type_id),
        mass: FrameColumn::new(&columns.mass),
        arrays: FrameColumn::new(&arrays),
        bonds: FrameColumn::new(&columns.bonds),
        angles: FrameColumn::new(&columns.angles),
        dihedrals: FrameColumn::new(&columns.dihedrals),
        impropers: FrameColumn::new(&columns.impropers),
        state,
        list,
        bond_view,
        shear_offset: backend.globals().shear_offset,
        reserved: Default::default(),
    };
    let mut failed = None;
    let mut of_stage = if wants.thermo { stage.energies() } else { vec![] };
    if wants.by_type {
        of_stage.extend(stage.energies_by_type(facts.names));
        energies.extend(energies_by_type(backend, stage, facts.names, &columns)?);
    }
    for (index, i) in due.iter().enumerate() {
        let columns = facts.energies.get(&stage.analyzers[*i].id).map_or(&of_stage[..], Vec::as_slice);
        let (names, listed) = arranged(if wants.thermo { columns } else { &[] }, &of_stage, &energies);
        let names: Vec<FrameColumn<'_, u8>> = names.into_iter().map(|n| FrameColumn::new(n.as_bytes())).collect();
        let (energies, energy_names) = (FrameColumn::new(&listed), FrameColumn::new(&names));
        let call = FrameCall { energies, energy_names, ..common };
        let done = stage.analyzers[*i].analyzer().map(|a| a.analyze(&call));
        let now = Instant::now();
        *seconds.entry(stage.analyzers[*i].name.clone()).or_default() += (now - begun).as_secs_f64();
        begun = now;
        if let Some(Err(e)) = done {
            failed = Some((index, fault(&stage.analyzers[*i].name, e)));
            break;
        }
    }
    backend.end_views();
    Ok((values, failed))
}

/// Returns the error of a component in a run, whose message names the component also for files that it cannot write. A value that a file
/// format cannot hold is wrong input in `galamost convert`, but a fault of a run.
pub fn fault(name: &str, e: Error) -> Error {
    match e {
        Error::Input(_) | Error::Io { .. } => Error::Run(format!("{name}: {e}")),
        e => e,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::views::Sums;

    /// In two dimensions the box has an area, and the pressure is half the trace, whatever is stored for z.
    #[test]
    fn the_pressure_is_that_of_the_dimensions() {
        let force = Sums { energy: -3.0, virial: [1.0, 0.5, 0.0, 2.0, 0.0, 9.0] };
        let kinetic_tensor = [4.0, 0.0, 0.0, 6.0, 0.0, 8.0];
        let sums = SystemSums {
            kinetic_tensor,
            components: vec![force],
            rotational: 7.0,
            reservoir: 0.25,
            ..SystemSums::default()
        };
        let (energies, names) = (BTreeMap::new(), Snapshot::default());
        let of = |dimensions: u32| {
            let facts =
                FrameFacts { energies: &energies, n: 5, degrees_of_freedom: 8.0, dimensions, names: &names, time: 0.0 };
            thermo(&sums, &facts, 4.0, [2.0, 5.0, 3.0], false)
        };
        let (plane, space) = (of(2), of(3));
        // (4 + 1 + 6 + 2)/2/10 and (4 + 1 + 6 + 2 + 8 + 9)/3/30
        assert_eq!((plane.volume, plane.pressure), (10.0, 0.65));
        assert!(space.volume == 30.0 && (space.pressure - 1.0 / 3.0).abs() < 1e-15, "{space:?}");
        assert_eq!(space.pressure_tensor[1], 0.5 / 30.0);
        assert_eq!((space.kinetic, space.kt, space.rotational_kt), (9.0, 2.25, 3.5));
        assert_eq!(space.conserved, 9.0 + 7.0 - 3.0 + 0.25);
    }
}
