//! Checks of bonded forces against the links of the initial state.

use super::{Check, StagePlan, stage};
use crate::plugins::Component;
use galamost_plugin_api::bonded::BondedCall;
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision, to_fixed64};
use galamost_plugin_api::snapshot::{LinkList, Snapshot};
use galamost_plugin_api::tilt::nearest;
use galamost_plugin_api::views::{Globals, LinkView, StateView, Sums, Wanted};

/// Checks a stage. What an earlier stage with the same forces would report as well is left out. `begins` is set if the run
/// begins from the initial state with this stage.
pub fn check(c: &mut Check<'_>, plan: &StagePlan, earlier: &[StagePlan], s: &Snapshot, begins: bool) {
    let seen = |p: &StagePlan| p.forces.iter().map(|f| f.id).eq(plan.forces.iter().map(|f| f.id));
    if !earlier.iter().any(seen) {
        require_types(c, plan, s);
    }
    if plan.stage.steps == 0 || stage::movers(plan).next().is_none() {
        return;
    }
    let same = |p: &&StagePlan| p.stage.steps > 0 && p.forces.iter().map(|f| f.id).eq(plan.forces.iter().map(|f| f.id));
    if earlier.iter().any(|p| same(&p)) {
        return;
    }
    warn_without_force(c, plan, s);
    let bonds = plan.forces.iter().filter(|f| f.kind == Kind::Bonded && f.needs.links == Some(LinkList::Bonds));
    for force in bonds {
        let result = check_lengths(c, force, s, begins).and_then(|()| warn_without_repulsion(c, force, plan, s));
        c.absorb(&force.name, force.at, result);
    }
}

/// Warns about bonds, angles, dihedrals and impropers that no force acts on.
fn warn_without_force(c: &mut Check<'_>, plan: &StagePlan, s: &Snapshot) {
    for list in LinkList::ALL {
        let ((n, _), what) = (s.links(list), list.name());
        if n > 0 && !plan.forces.iter().any(|f| f.needs.links == Some(list)) {
            let message = format!(
                "stage `{}`: the initial state has {n} {what}, but no component of `forces` acts on {what}",
                plan.stage.name
            );
            c.warn(Some(plan.stage.at), message);
        }
    }
}

/// Reports types of bonds, angles, dihedrals and impropers that no component names, if there are components for the others.
fn require_types(c: &mut Check<'_>, plan: &StagePlan, s: &Snapshot) {
    for list in LinkList::ALL {
        let ((_, types), what) = (s.links(list), list.one());
        let forces: Vec<&Component> =
            plan.forces.iter().filter(|f| f.needs.links == Some(list)).map(AsRef::as_ref).collect();
        let Some(last) = forces.last() else { continue };
        let named = |k: u32| forces.iter().any(|f| f.needs.link_types.as_ref().is_none_or(|t| t.contains(&k)));
        let missing: Vec<&str> = types.iter().zip(0..).filter(|(_, k)| !named(*k)).map(|(t, _)| t.as_str()).collect();
        let Some(first) = missing.first() else { continue };
        let shown: Vec<String> = missing.iter().take(3).map(|name| format!("\"{name}\"")).collect();
        let more = if missing.len() > 3 { format!(", … ({} types)", missing.len()) } else { String::new() };
        let names: Vec<&str> = forces.iter().map(|f| f.name.as_str()).collect();
        let message = format!(
            "no row for the {what} type{} {}{more} in {}; add \"{first}\": (…), or \"{first}\": None for no force",
            if missing.len() == 1 { "" } else { "s" },
            shown.join(", "),
            names.join(" or "),
        );
        c.error(Some(last.at), message);
    }
}

/// Returns the bond types that a force names.
fn named_types<'a>(force: &'a Component, s: &Snapshot) -> impl Iterator<Item = u32> + use<'a> {
    (0..s.bond_types.len() as u32).filter(|k| force.needs.link_types.as_ref().is_none_or(|t| t.contains(k)))
}

/// Returns the lengths and tags of all initial bonds of a type.
fn lengths(s: &Snapshot, kind: u32) -> impl Iterator<Item = (f64, [u32; 2])> {
    let length = move |tags: [u32; 2]| {
        let [a, b] = tags.map(|t| s.position[t as usize]);
        let d = nearest(std::array::from_fn(|k| a[k] - b[k]), s.box_length, s.tilt);
        d.iter().map(|x| x.powi(2)).sum::<f64>().sqrt()
    };
    s.bonds.iter().filter(move |b| b.kind == kind).map(move |b| (length(b.tags), b.tags))
}

/// Returns the longest initial bond of a type: its length and its tags.
fn longest(s: &Snapshot, kind: u32) -> Option<(f64, [u32; 2])> {
    lengths(s, kind).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
}

/// Returns the shortest initial bond of a type: its length and its tags.
fn shortest(s: &Snapshot, kind: u32) -> Option<(f64, [u32; 2])> {
    lengths(s, kind).min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
}

/// Reports initial bonds at whose lengths the potential has no finite force, if the run begins with this force.
fn check_lengths(c: &mut Check<'_>, force: &Component, s: &Snapshot, begins: bool) -> Result<()> {
    for kind in named_types(force, s).filter(|_| begins) {
        let bond = Bond { precision: c.pipeline.precision, ..Bond::new(force, kind, s.step) };
        for (r, [a, b]) in [longest(s, kind), shortest(s, kind)].into_iter().flatten() {
            if bond.holds(r)? {
                continue;
            }
            // at the upper limit of a potential, shorter bonds hold
            let mut shorter = (1..100).map(|k| bond.holds(0.01 * f64::from(k) * r));
            let why = if shorter.any(|holds| holds.unwrap_or(false)) {
                "which is longer than its potential allows; start from shorter bonds"
            } else {
                "at which its potential has no finite force; start from other lengths"
            };
            let name = &s.bond_types[kind as usize];
            let message = format!(
                "{}: the bond of the particles {a} and {b} (type \"{name}\") has the initial length {r:.4}, {why}",
                force.name
            );
            c.error(Some(force.at), message);
            break;
        }
    }
    Ok(())
}

/// Warns about bonds of finite extensibility that attract at every length, if excluded bonds have no pair repulsion.
fn warn_without_repulsion(c: &mut Check<'_>, force: &Component, plan: &StagePlan, s: &Snapshot) -> Result<()> {
    let pairs: Vec<&str> = plan.forces.iter().filter(|f| f.kind == Kind::Pair).map(|f| f.name.as_str()).collect();
    if !c.pipeline.neighbors.leaves_out_bonds() || pairs.is_empty() {
        return Ok(());
    }
    for kind in named_types(force, s) {
        let Some((r, tags)) = longest(s, kind).filter(|(r, _)| *r > 0.0) else { continue };
        if Bond::new(force, kind, s.step).collapses(r)? {
            let types = tags.map(|t| s.types[s.type_id[t as usize] as usize].as_str()).join(", ");
            let (by, instead) = if c.pipeline.neighbors.exclude.bonds {
                ("`exclude: [Bonds]`", "remove `Bonds` from `exclude`")
            } else {
                ("the weight 0 of \"1-2\" in `special`", "increase that weight")
            };
            let message = format!(
                "{}: bonds of the type \"{}\" attract at every length, and {by} removes the repulsion of {} between bonded \
                 particles ({types}); give the bond a repulsion or {instead}",
                force.name,
                s.bond_types[kind as usize],
                pairs.join(", "),
            );
            c.warn(Some(force.at), message);
        }
    }
    Ok(())
}

/// A bond of one type between two particles that are evaluated alone.
pub(super) struct Bond<'a> {
    force: &'a Component,
    kind: u32,
    step: u64,
    /// Precision of the evaluation.
    precision: Precision,
}

impl<'a> Bond<'a> {
    /// Returns a bond that is evaluated in double precision.
    pub(super) fn new(force: &'a Component, kind: u32, step: u64) -> Self {
        Self { force, kind, step, precision: Precision::Double }
    }

    /// Returns the force along a bond of length `r`, above 0 for repulsion; `None` if the bond is broken.
    pub(super) fn force(&self, r: f64) -> Result<Option<f64>> {
        // positions in fixed point are parts of the box
        let length = if r > 0.0 { 4.0 * r } else { 1.0 };
        let mut globals = Globals { box_length: [length; 3], step: self.step, dt: 1.0, ..Globals::new() };
        for (k, v) in self.force.needs.varyings.iter().enumerate() {
            let slot = self.force.first_varying as usize + k;
            globals.varyings[slot] = *v;
            globals.n_values = globals.n_values.max(slot as u32 + 1);
        }
        globals.evaluate();
        let places = [0.5 * r, -0.5 * r];
        let fixed = |x: f64| (to_fixed64(x, length).0 >> 32) as i32;
        let mut single = places.map(|x| PosTypeFixed { position: [fixed(x), 0, 0], kind: 0 });
        let mut double = places.map(|x| PosTypeF64 { position: [x, 0.0, 0.0], ..PosTypeF64::default() });
        let (mut forces, mut forces_f64) = ([[0.0f32; 4]; 2], [[0.0f64; 4]; 2]);
        let in_double = self.precision == Precision::Double;
        let (pos, out) = if in_double {
            (double.as_mut_ptr() as u64, forces_f64.as_mut_ptr() as u64)
        } else {
            (single.as_mut_ptr() as u64, forces.as_mut_ptr() as u64)
        };
        let (mut tag, mut count) = ([0u32, 1], [1u32, 1]);
        let mut words = [1, 0, 4 * self.kind, 4 * self.kind + 1];
        let state = StateView {
            precision: self.precision as u32,
            n_local: 2,
            pos_type: DevicePtr::new(pos),
            force: DevicePtr::new(out),
            tag: DevicePtr::new(tag.as_mut_ptr() as u64),
            globals: DevicePtr::new(&raw mut globals as u64),
            ..StateView::empty()
        };
        let links = LinkView {
            capacity: 1,
            stride: 2,
            words: DevicePtr::new(words.as_mut_ptr() as u64),
            count: DevicePtr::new(count.as_mut_ptr() as u64),
            ..LinkView::empty(2)
        };
        let call = BondedCall {
            size: size_of::<BondedCall>() as u32,
            begin: 0,
            end: 2,
            first_varying: self.force.first_varying,
            component: self.force.id,
            reserved0: 0,
            wanted: Wanted::FORCE,
            state: &state,
            links: &links,
            reserved: [0; 4],
        };
        if let Some(bonded) = self.force.bonded() {
            // SAFETY: the views describe the arrays above, which outlive the call
            unsafe { bonded.cpu(&call, &mut Sums::default())? };
        }
        let along = if in_double { forces_f64[0][0] } else { f64::from(forces[0][0]) };
        Ok((!globals.is_halted()).then_some(along))
    }

    /// Returns whether the force at the length `r` is finite.
    fn holds(&self, r: f64) -> Result<bool> {
        Ok(self.force(r)?.is_some_and(f64::is_finite))
    }

    /// Returns whether the bond breaks at a finite length and attracts at every shorter one. `r` is a length that exists.
    fn collapses(&self, r: f64) -> Result<bool> {
        /// Lengths are tried up to this multiple.
        const FAR: f64 = 20.0;
        if self.force(FAR * r)?.is_some() {
            return Ok(false);
        }
        for k in 1..=100 {
            match self.force(0.01 * f64::from(k) * r)? {
                Some(f) if f > 0.0 => return Ok(false),
                _ => {}
            }
        }
        Ok(true)
    }
}
