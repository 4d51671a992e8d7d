//! The state in the form every device takes and gives: raw arrays in tag order, bit for bit.
//!
//! The initial state, checkpoints and what analyzers see all go through this form, so a device only has to read and
//! write raw sections; how they relate to the numbers of a snapshot is said here once.

use crate::plan::Plan;
use crate::rotation;
use crate::run::{Backend, Columns};
use crate::store::Store;
use crate::topology::Topology;
use galamost_plugin_api::component::{ArrayNeed, GroupNeed, Wants};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::integrator::GroupInfo;
use galamost_plugin_api::precision::{Fixed, Float64, Precision};
use galamost_plugin_api::real::Real;
use galamost_plugin_api::snapshot::{Array, Snapshot, Values};
use galamost_plugin_api::views::{COMPONENT_VARYINGS, Globals};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Facts of a system that do not change during a run.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Number of particles.
    pub n: usize,
    /// Precision.
    pub precision: Precision,
    /// 2 or 3.
    pub dimensions: u32,
    /// Number of particle types.
    pub n_types: u32,
    /// The run's seed.
    pub seed: u64,
    /// Groups of particles that are not all of them; a component's bit is the group's place here.
    pub groups: Vec<GroupNeed>,
    /// Particles of each group.
    pub members: Vec<usize>,
    /// Optional arrays that components need, once each.
    pub arrays: Vec<ArrayNeed>,
    /// Arrays no component asked for: they stay on the host, in tag order, for writers.
    pub idle_arrays: BTreeMap<String, Array>,
    /// Degrees of freedom of rotation: those of all particles, then of each group; empty if nothing turns.
    pub rotational: Vec<f64>,
    /// The system started with axes, which writers are given again.
    pub axes: bool,
}

impl Facts {
    /// Bytes of one particle in a section.
    pub fn stride(&self, section: &str) -> Option<usize> {
        let real = self.precision.real_size();
        Some(match section {
            "pos_type" | "pos_at_build" => self.precision.pos_type_size(),
            "pos_low" => 12,
            "velocity_mass" | "force" => 4 * real,
            "image" => 12,
            "group" => 4,
            other => {
                let need = self.arrays.iter().find(|a| Some(a.name.as_str()) == other.strip_prefix("array."))?;
                need.width as usize * if need.integer { 4 } else { real }
            }
        })
    }

    /// Names of the sections of particles.
    pub fn sections(&self) -> Vec<String> {
        let fixed = ["pos_type", "pos_at_build", "pos_low", "velocity_mass", "force", "image", "group"];
        let arrays = self.arrays.iter().map(|a| format!("array.{}", a.name));
        fixed.into_iter().map(String::from).chain(arrays).collect()
    }

    /// What an integrator is told about its group; `bit` is 32 for all particles. If the momentum of all particles is
    /// conserved, it is no degree of freedom.
    pub fn group_info(&self, bit: u32, g: &Globals, first_varying: u32, conserved: bool) -> GroupInfo {
        let n = self.members.get(bit as usize).copied().unwrap_or(self.n);
        let fixed = if n == self.n && conserved { 1.0 } else { 0.0 };
        let degrees_of_freedom = f64::from(self.dimensions) * (n as f64 - fixed);
        let group = self.rotational.get(bit as usize + 1).or(self.rotational.first());
        let rotational_degrees_of_freedom = group.copied().unwrap_or(0.0);
        let value = |k: usize| g.values.get(first_varying as usize + k).copied().unwrap_or(0.0);
        let varying: [f64; COMPONENT_VARYINGS] = std::array::from_fn(value);
        let (n, dimensions, dt) = (n as u64, self.dimensions, g.dt);
        GroupInfo { n, degrees_of_freedom, rotational_degrees_of_freedom, dimensions, dt, varying }
    }
}

/// The state bit for bit, in tag order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawState {
    /// Step.
    pub step: u64,
    /// Box lengths.
    pub box_length: [f64; 3],
    /// Sections of particles ([`Facts::sections`]), of integrators (`integrator.ID`), and of
    /// the engine: `rebuild`, `rebuilds`, `built_length`, `grid_length`, `virial`.
    pub sections: BTreeMap<String, Vec<u8>>,
    /// Bonds, angles, dihedrals.
    pub topology: Topology,
}

impl RawState {
    /// A section.
    ///
    /// # Errors
    /// It is not there.
    pub fn section(&self, name: &str) -> Result<&[u8]> {
        let found = self.sections.get(name).map(Vec::as_slice);
        found.ok_or_else(|| Error::Run(format!("the checkpoint has no section `{name}`")))
    }

    /// Notes three numbers.
    pub fn put(&mut self, name: &str, numbers: [f64; 3]) {
        self.sections.insert(name.into(), numbers.iter().flat_map(|x| x.to_le_bytes()).collect());
    }

    /// Three numbers, if they were noted.
    pub fn numbers(&self, name: &str) -> Option<[f64; 3]> {
        let (numbers, _) = self.sections.get(name)?.as_chunks::<8>();
        numbers.iter().map(|b| f64::from_le_bytes(*b)).collect::<Vec<_>>().try_into().ok()
    }

    /// Word 0 of a section, 0 if it is not there.
    pub fn word(&self, name: &str) -> u64 {
        let bytes = self.sections.get(name).map_or([].as_slice(), Vec::as_slice);
        bytes.iter().take(8).enumerate().map(|(k, b)| u64::from(*b) << (8 * k)).sum()
    }
}

impl RawState {
    /// From another precision to the plan's: numbers are rounded or get digits, nothing else changes.
    ///
    /// # Errors
    /// A section is not there or too short.
    pub fn convert(&mut self, from: Precision, plan: &Plan) -> Result<()> {
        let (to, length, n) = (plan.pipeline.precision, self.box_length, plan.snapshot.len());
        let built = self.numbers("built_length").unwrap_or(length);
        let coordinates = |pos: &[u8], low: &[u8], length| match from {
            Precision::Double => positions::<Float64>(pos, low, length),
            _ => positions::<Fixed>(pos, low, length),
        };
        let long_enough = |name: &str, bytes: usize| match self.section(name)?.len() {
            l if l >= bytes * n => Ok(()),
            l => Err(Error::Run(format!("section `{name}` of the checkpoint has {l} bytes"))),
        };
        long_enough("pos_type", from.pos_type_size())?;
        long_enough("pos_at_build", from.pos_type_size())?;
        let low = if from == Precision::Mixed { self.section("pos_low")? } else { &[] };
        let (now, kind) = coordinates(self.section("pos_type")?, low, length);
        let (then, _) = coordinates(self.section("pos_at_build")?, &[], built);
        let mut s = Snapshot { position: now, kind, ..Snapshot::default() };
        let mut sections = BTreeMap::new();
        let (stored, low) = stored_as(&s, to, length);
        sections.insert("pos_type".into(), stored);
        sections.insert("pos_low".into(), low);
        s.position = then;
        sections.insert("pos_at_build".into(), stored_as(&s, to, built).0);
        let as_real = |name: &str| -> Result<Vec<u8>> {
            let numbers = reals(self.section(name)?, from);
            Ok(match to {
                Precision::Double => bytes_of(&numbers),
                _ => numbers.iter().flat_map(|x| (*x as f32).to_ne_bytes()).collect(),
            })
        };
        for name in ["velocity_mass", "force"] {
            sections.insert(name.into(), as_real(name)?);
        }
        for need in plan.components.iter().flat_map(|c| &c.needs.arrays).filter(|a| !a.integer) {
            let name = format!("array.{}", need.name);
            let numbers = as_real(&name)?;
            sections.insert(name, numbers);
        }
        self.sections.extend(sections);
        Ok(())
    }
}

/// Positions and types of a snapshot, and the lower bits, as a precision stores them.
fn stored_as(s: &Snapshot, precision: Precision, length: [f64; 3]) -> (Vec<u8>, Vec<u8>) {
    fn all<S: Store>(s: &Snapshot, precision: Precision, length: [f64; 3]) -> (Vec<u8>, Vec<u8>) {
        let (mut pos, mut low) = (vec![], vec![]);
        for (x, kind) in s.position.iter().zip(&s.kind) {
            let (p, l, _) = S::store(*x, *kind, length);
            pos.push(p);
            low.push(if precision == Precision::Mixed { l } else { [0; 3] });
        }
        (bytes_of(&pos), bytes_of(&low))
    }
    match precision {
        Precision::Double => all::<Float64>(s, precision, length),
        _ => all::<Fixed>(s, precision, length),
    }
}

/// The initial state of a plan, and the facts about it.
///
/// # Errors
/// An array that a component requires is not there.
pub fn initial(plan: &Plan) -> Result<(Facts, RawState)> {
    let s = &plan.snapshot;
    let precision = plan.pipeline.precision;
    let mut facts = Facts {
        n: s.len(),
        precision,
        dimensions: s.dimensions,
        n_types: s.types.len() as u32,
        seed: plan.pipeline.seed,
        groups: plan.groups.clone(),
        members: vec![],
        arrays: vec![],
        idle_arrays: s.arrays.clone(),
        rotational: vec![],
        axes: false,
    };
    let mut raw = RawState { step: s.step, box_length: s.box_length, topology: Topology::of(s), ..RawState::default() };
    let mut group = vec![0u32; s.len()];
    for (bit, need) in plan.groups.iter().enumerate() {
        for (tag, word) in group.iter_mut().enumerate() {
            *word |= u32::from(need.contains(tag as u32, s)) << bit;
        }
        facts.members.push(group.iter().filter(|g| *g >> bit & 1 == 1).count());
    }
    raw.sections.insert("group".into(), bytes_of(&group));
    match precision {
        Precision::Double => particles::<Float64>(s, precision, &mut raw.sections),
        _ => particles::<Fixed>(s, precision, &mut raw.sections),
    }
    let needs = || plan.components.iter().flat_map(|c| &c.needs.arrays);
    if needs().any(|n| n.name == "quaternion") {
        // it follows from the quaternions, which the check completed
        facts.axes = facts.idle_arrays.remove("orientation").is_some();
    }
    if needs().any(|n| n.name == "angular_momentum") {
        facts.idle_arrays.remove("rotation");
        if let Some(Values::Real(inert)) = facts.idle_arrays.get("inert").map(|a| &a.values) {
            let turns = |i: &[f64; 3]| i.iter().filter(|i| **i > 0.0).count() as f64;
            let particles = || inert.as_chunks::<3>().0.iter().map(turns).zip(&group);
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
            raw.sections.insert(format!("array.{}", need.name), bytes);
            facts.arrays.push(need.clone());
        }
    }
    raw.sections.insert("rebuild".into(), vec![1]);
    Ok((facts, raw))
}

/// Bytes of plain numbers.
fn bytes_of<T: Copy>(values: &[T]) -> Vec<u8> {
    // SAFETY: the entries of the state's arrays are plain numbers
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }.to_vec()
}

fn particles<S: Store>(s: &Snapshot, precision: Precision, sections: &mut BTreeMap<String, Vec<u8>>) {
    let n = s.len();
    let mut pos = vec![S::PosType::default(); n];
    let mut low = vec![[0u32; 3]; n];
    let mut image = s.image.clone();
    let mut velocity = vec![[S::Real::ZERO; 4]; n];
    let rows = pos.par_iter_mut().zip(&mut low).zip(&mut image).zip(&mut velocity).enumerate().with_min_len(4096);
    rows.for_each(|(i, (((pos, low), image), velocity))| {
        let (p, l, crossed) = S::store(s.position[i], s.kind[i], s.box_length);
        *pos = p;
        if precision == Precision::Mixed {
            *low = l;
        }
        for (image, crossed) in image.iter_mut().zip(crossed) {
            *image += crossed;
        }
        let [x, y, z] = s.velocity[i].map(S::Real::lit);
        *velocity = [x, y, z, S::Real::lit(s.mass[i])];
    });
    sections.insert("pos_type".into(), bytes_of(&pos));
    sections.insert("pos_at_build".into(), bytes_of(&pos));
    sections.insert("pos_low".into(), bytes_of(&low));
    sections.insert("image".into(), bytes_of(&image));
    sections.insert("velocity_mass".into(), bytes_of(&velocity));
    sections.insert("force".into(), vec![0; size_of::<[S::Real; 4]>() * n]);
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

fn reals(bytes: &[u8], precision: Precision) -> Vec<f64> {
    if precision == Precision::Double {
        bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect()
    } else {
        bytes.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_ne_bytes(*b))).collect()
    }
}

fn ints(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks::<4>().0.iter().map(|b| i32::from_ne_bytes(*b)).collect()
}

/// Positions and types from their raw sections.
fn positions<S: Store>(pos: &[u8], low: &[u8], length: [f64; 3]) -> (Vec<[f64; 3]>, Vec<u32>) {
    let low = ints(low);
    let entries = pos.chunks_exact(size_of::<S::PosType>()).enumerate().map(|(i, b)| {
        // SAFETY: an entry is plain numbers; the read does not rely on alignment
        let p = unsafe { std::ptr::read_unaligned(b.as_ptr().cast::<S::PosType>()) };
        let l = std::array::from_fn(|k| low.get(3 * i + k).map_or(0, |w| *w as u32));
        (S::load(&p, l, length), S::kind(&p))
    });
    entries.unzip()
}

/// The state on the host as analyzers see it.
///
/// # Errors
/// The device's words.
pub fn columns(backend: &mut dyn Backend, facts: &Facts, wants: Wants) -> Result<Columns> {
    let mut c = Columns::default();
    if wants.particles {
        let length = backend.box_length();
        let (pos, low) = (backend.read("pos_type")?, backend.read("pos_low")?);
        (c.position, c.kind) = match facts.precision {
            Precision::Double => positions::<Float64>(&pos, &low, length),
            _ => positions::<Fixed>(&pos, &low, length),
        };
        c.image = ints(&backend.read("image")?).as_chunks::<3>().0.to_vec();
        for [x, y, z, m] in reals(&backend.read("velocity_mass")?, facts.precision).as_chunks::<4>().0 {
            c.velocity.push([*x, *y, *z]);
            c.mass.push(*m);
        }
        c.arrays = facts.idle_arrays.clone();
        let turning = !facts.rotational.is_empty();
        // a component's own arrays have a point in their names and are nobody else's business
        for need in facts.arrays.iter().filter(|a| !a.name.contains('.')) {
            let bytes = backend.read(&format!("array.{}", need.name))?;
            let values =
                if need.integer { Values::Int(ints(&bytes)) } else { Values::Real(reals(&bytes, facts.precision)) };
            c.arrays.insert(need.name.clone(), Array { width: need.width, values });
        }
        if facts.axes || turning {
            rotation::describe(&mut c.arrays, facts.axes);
        }
    }
    if wants.topology {
        let t = backend.topology();
        (c.bonds, c.angles, c.dihedrals) = (t.bonds.clone(), t.angles.clone(), t.dihedrals.clone());
    }
    Ok(c)
}
