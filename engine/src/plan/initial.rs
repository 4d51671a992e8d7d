//! The initial state of a plan as raw arrays.

use super::Plan;
use crate::state::arrays::{ArrayId, ParticleArray};
use crate::state::buffers::bytes_of;
use crate::state::raw::{Facts, RawState};
use crate::state::store::Store;
use crate::state::topology::Topology;
use galamost_plugin_api::component::ArrayNeed;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::{Fixed, Float64, Precision};
use galamost_plugin_api::real::Real;
use galamost_plugin_api::snapshot::{Array, Snapshot, Values};
use galamost_plugin_api::tilt::to_reduced;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Returns the initial state of a plan, and the facts about the system.
///
/// # Errors
/// Returns an error if the initial state lacks an array that a component requires.
pub fn initial(plan: &Plan) -> Result<(Facts, RawState)> {
    let s = &plan.snapshot;
    let precision = plan.pipeline.precision;
    let masses = s.mass.as_slice();
    let massive = masses.par_iter().filter(|m| **m > 0.0).count();
    let mut facts = Facts {
        n: s.len(),
        precision,
        dimensions: s.dimensions,
        n_types: s.types.len() as u32,
        link_types: [&s.bond_types, &s.angle_types, &s.dihedral_types, &s.improper_types].map(|t| t.len() as u32),
        seed: plan.pipeline.seed,
        groups: plan.groups.clone(),
        members: vec![],
        massive,
        // in the order of tags, so that it always has the same bits
        mass: if massive > 0 { masses.iter().sum::<f64>() / massive as f64 } else { 1.0 },
        arrays: vec![],
        idle_arrays: s.arrays.clone(),
        rotational: vec![],
        axes: false,
    };
    let mut raw = RawState { step: s.step, box_length: s.box_length, topology: Topology::of(s), ..RawState::default() };
    raw.set_tilt(s.tilt);
    let mut group = vec![0u32; s.len()];
    for (bit, need) in plan.groups.iter().enumerate() {
        for (tag, word) in group.iter_mut().enumerate() {
            *word |= u32::from(need.contains(tag as u32, s)) << bit;
        }
        facts.members.push(group.iter().filter(|g| *g >> bit & 1 == 1).count());
    }
    // zeros that nothing has written take no memory yet
    let group_bytes = if plan.groups.is_empty() { vec![0; 4 * s.len()] } else { bytes_of(&group).to_vec() };
    raw.sections.insert(ArrayId::Group.name().into(), group_bytes);
    raw.sections.extend(encode_particles(s, precision));
    let needs = || plan.components.iter().flat_map(|c| &c.needs.arrays);
    if needs().any(|n| n.name == "quaternion") {
        // axes follow from the quaternions, which the check has completed
        facts.axes = facts.idle_arrays.remove("orientation").is_some();
    }
    if needs().any(|n| n.name == "angular_momentum") {
        facts.idle_arrays.remove("rotation");
        if let Some(Values::Real(inert)) = facts.idle_arrays.get("inert").map(|a| &a.values) {
            let degrees = |i: &[f64; 3]| i.iter().filter(|i| **i > 0.0).count() as f64;
            let particles = || inert.as_chunks::<3>().0.iter().map(degrees).zip(&group);
            facts.rotational.push(particles().map(|(d, _)| d).sum());
            for bit in 0..plan.groups.len() {
                facts.rotational.push(particles().filter(|(_, g)| *g >> bit & 1 == 1).map(|(d, _)| d).sum());
            }
        }
    }
    for component in &plan.components {
        for need in &component.needs.arrays {
            if facts.arrays.iter().any(|a| a.name == need.name) {
                continue;
            }
            let given = facts.idle_arrays.remove(&need.name);
            if need.required && given.is_none() {
                return Err(Error::input(format!(
                    "{} needs `{}` of every particle, but the initial state does not have it",
                    component.name, need.name
                )));
            }
            let bytes = array_bytes(need, given, s.len(), precision);
            raw.sections.insert(ParticleArray::optional(need).name, bytes);
            facts.arrays.push(need.clone());
        }
    }
    raw.sections.insert("rebuild".into(), vec![1]);
    Ok((facts, raw))
}

/// Checks that velocities and masses are numbers in a precision: those beyond the range of f32 would become infinite, or 0.
///
/// # Errors
/// Returns an error that names the first such particle.
pub fn fits_precision(s: &Snapshot, precision: Precision) -> Result<()> {
    let fits = |x: f64| precision == Precision::Double || ((x as f32).is_finite() && (x == 0.0) == (x as f32 == 0.0));
    // a velocity that becomes 0 is an error of rounding
    let moves = |v: &[f64; 3]| v.iter().all(|x| fits(if x.abs() < 1.0 { 0.0 } else { *x }));
    let wrong = |tag: usize| !fits(s.mass[tag]) || !moves(&s.velocity[tag]);
    let Some(tag) = (0..s.len()).into_par_iter().find_first(|tag| wrong(*tag)) else { return Ok(()) };
    let (mass, velocity, name) = (s.mass[tag], s.velocity[tag], precision.name());
    Err(Error::input(format!(
        "particle {tag}: mass {mass:e} or velocity {velocity:?} is out of range in {name} precision; use `precision: Double`"
    )))
}

/// Returns the sections of the arrays that every system has, without groups and tags. They have neither forces nor positions of the
/// last list build: both follow from the positions.
pub fn encode_particles(s: &Snapshot, precision: Precision) -> BTreeMap<String, Vec<u8>> {
    match precision {
        Precision::Double => particles::<Float64>(s, precision),
        _ => particles::<Fixed>(s, precision),
    }
}

fn particles<S: Store>(s: &Snapshot, precision: Precision) -> BTreeMap<String, Vec<u8>> {
    let n = s.len();
    let (entry, row) = (size_of::<S::PosType>(), 4 * size_of::<S::Real>());
    // each byte is written once, by all threads: for 10⁸ particles, the first use of memory takes longer than the conversion
    let (mut pos, mut velocity) = (vec![0; entry * n], vec![0; row * n]);
    let (mut low, mut image) = (vec![0; 12 * n], vec![0; 12 * n]);
    let rows = pos.par_chunks_exact_mut(entry).zip(low.par_chunks_exact_mut(12));
    let rows = rows.zip(image.par_chunks_exact_mut(12)).zip(velocity.par_chunks_exact_mut(row));
    rows.enumerate().with_min_len(4096).for_each(|(i, (((pos, low), image), velocity))| {
        let (p, l, crossed) = S::store(to_reduced(s.position[i], s.tilt), s.type_id[i], s.box_length);
        pos.copy_from_slice(bytes_of(&[p]));
        if precision == Precision::Mixed {
            low.copy_from_slice(bytes_of(&[l]));
        }
        let images: [i32; 3] = std::array::from_fn(|k| s.image[i][k] + crossed[k]);
        image.copy_from_slice(bytes_of(&images));
        let [x, y, z] = s.velocity[i].map(S::Real::lit);
        velocity.copy_from_slice(bytes_of(&[x, y, z, S::Real::lit(s.mass[i])]));
    });
    let arrays =
        [(ArrayId::PosType, pos), (ArrayId::PosLow, low), (ArrayId::Image, image), (ArrayId::VelocityMass, velocity)];
    arrays.map(|(array, bytes)| (array.name().into(), bytes)).into()
}

fn array_bytes(need: &ArrayNeed, given: Option<Array>, n: usize, precision: Precision) -> Vec<u8> {
    let width = need.width as usize;
    let reals: Vec<f64> = match given.map(|a| a.values) {
        Some(Values::Real(v)) => v,
        Some(Values::Int(v)) => v.iter().map(|x| f64::from(*x)).collect(),
        None => vec![0.0; n * width],
    };
    let mut bytes = vec![];
    for x in reals {
        match (need.integer, precision) {
            (true, _) => bytes.extend((x as i32).to_ne_bytes()),
            (false, Precision::Double) => bytes.extend(x.to_ne_bytes()),
            (false, _) => bytes.extend((x as f32).to_ne_bytes()),
        }
    }
    bytes
}
