//! Creation and binding of the components of all stages.

use super::{Check, StagePlan, constraints};
use crate::device::Chosen;
use crate::pipeline::{Entry, Stage};
use crate::plugins::{Component, MAX_GROUPS};
use galamost_plugin_api::component::{GroupNeed, Kind, SystemInfo};
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::views::{COMPONENT_VARYINGS, MAX_VARYINGS};
use std::sync::Arc;
use tracing::info;

/// A list of the pipeline; `None` for a component that could not be created or bound.
type List = Vec<Option<Component>>;

impl Check<'_> {
    /// Creates the components of a list. Numbers follow the order of creation.
    pub(super) fn create(&mut self, list: &str, entries: &[Entry]) -> List {
        entries.iter().map(|entry| self.create_one(list, entry)).collect()
    }

    fn create_one(&mut self, list: &str, entry: &Entry) -> Option<Component> {
        let id = self.next_id;
        self.next_id += 1;
        match self.registry.find_for_list(list, &entry.name) {
            Ok((library, found)) => {
                if found.name != entry.name {
                    info!("{} is now called {}", entry.name, found.name);
                }
                self.absorb(&found.name, entry.at, Component::create(library, found, entry, id))
            }
            Err(message) => {
                self.error(Some(entry.at), message);
                None
            }
        }
    }
}

/// Numbers of analyzers begin here. Random numbers and checkpoints depend on the number of a component, so an analyzer more at the end of
/// a list must not change the numbers of others.
const ANALYZERS: u32 = 1 << 30;
/// Numbers of each list of analyzers.
const PER_LIST: u32 = 1 << 16;
/// Lists with numbers below 2³¹.
const LISTS: u32 = ANALYZERS / PER_LIST;

/// Returns the list to which an analyzer with this number belongs: 0 is that of the pipeline, k + 1 that of stage k. `None` for other
/// components.
pub fn analyzer_list(id: u32) -> Option<u64> {
    id.checked_sub(ANALYZERS).map(|n| u64::from(n / PER_LIST))
}

impl Check<'_> {
    /// Creates list number `list` of analyzers: 0 is that of the pipeline, k + 1 that of stage k.
    fn create_analyzers(&mut self, list: usize, entries: &[Entry]) -> List {
        let fits = list < LISTS as usize && entries.len() <= PER_LIST as usize;
        if let Some(entry) = entries.first().filter(|_| !fits) {
            let message = format!("at most {LISTS} stages with {PER_LIST} analyzers each are possible");
            self.error(Some(entry.at), message);
            return vec![];
        }
        self.next_id = ANALYZERS + list as u32 * PER_LIST;
        self.create("analyzers", entries)
    }
}

/// The lists of the pipeline and those of each stage, which replace them.
pub(super) struct Lists {
    /// Forces, integrators, updaters, analyzers.
    common: [List; 4],
    own: Vec<[Option<List>; 4]>,
}

impl Lists {
    /// Creates all components.
    pub fn create(c: &mut Check<'_>) -> Self {
        let p = c.pipeline;
        let [forces, integrators, updaters] =
            [c.create("forces", &p.forces), c.create("integrators", &p.integrators), c.create("updaters", &p.updaters)];
        let moving: Vec<_> = p
            .stages
            .iter()
            .map(|s| {
                [("forces", &s.forces), ("integrators", &s.integrators), ("updaters", &s.updaters)]
                    .map(|(list, entries)| entries.as_ref().map(|e| c.create(list, e)))
            })
            .collect();
        let analyzers = c.create_analyzers(0, &p.analyzers);
        let own = p.stages.iter().zip(moving).enumerate().map(|(k, (s, [forces, integrators, updaters]))| {
            [forces, integrators, updaters, s.analyzers.as_ref().map(|e| c.create_analyzers(k + 1, e))]
        });
        let own = own.collect();
        Self { common: [forces, integrators, updaters, analyzers], own }
    }

    /// Binds every component to the system and returns the groups in use.
    pub fn bind(
        &mut self,
        c: &mut Check<'_>,
        system: &SystemInfo,
        snapshot: &Snapshot,
        device: Option<&Chosen>,
    ) -> Vec<GroupNeed> {
        let mut binding = Binding { system, snapshot, device, slots: 0, groups: vec![] };
        let stages = &c.pipeline.stages;
        const ANALYZERS: usize = 3;
        for (k, list) in self.common.iter_mut().enumerate() {
            // analyzers write the time step of the first frame
            let users = stages.iter().zip(&self.own).filter(|(_, own)| k != ANALYZERS && own[k].is_none());
            let longest = users.map(|(stage, _)| stage.dt).reduce(f64::max);
            binding.bind(c, list, longest.unwrap_or(system.dt));
        }
        for (stage, lists) in stages.iter().zip(&mut self.own) {
            lists.iter_mut().flatten().for_each(|list| binding.bind(c, list, stage.dt));
        }
        binding.groups
    }

    /// Returns the plans of the stages, and all components in the order of their numbers.
    pub fn into_stages(self, stages: &[Stage]) -> (Vec<StagePlan>, Vec<Arc<Component>>) {
        let mut components = vec![];
        let mut share = |list: List| -> Vec<Arc<Component>> {
            let shared: Vec<_> = list.into_iter().flatten().map(Arc::new).collect();
            components.extend(shared.iter().cloned());
            shared
        };
        let [forces, integrators, updaters, analyzers] = self.common;
        let [forces, integrators, updaters] = [forces, integrators, updaters].map(&mut share);
        let mut own_analyzers = vec![];
        let moving = stages.iter().zip(self.own).enumerate().map(|(number, (stage, [f, i, u, a]))| {
            own_analyzers.push(a);
            StagePlan {
                number,
                stage: stage.clone(),
                forces: f.map_or_else(|| forces.clone(), &mut share),
                integrators: in_order(i.map_or_else(|| integrators.clone(), &mut share)),
                constraints: vec![],
                updaters: u.map_or_else(|| updaters.clone(), &mut share),
                analyzers: vec![],
            }
        });
        let mut plans: Vec<_> = moving.collect();
        let analyzers = share(analyzers);
        for (plan, own) in plans.iter_mut().zip(own_analyzers) {
            plan.analyzers = own.map_or_else(|| analyzers.clone(), &mut share);
        }
        (plans, components)
    }
}

/// Sorts integrators into the order in which they run: those that only change the box, those that move particles, and
/// those that correct what others moved.
fn in_order(mut integrators: Vec<Arc<Component>>) -> Vec<Arc<Component>> {
    integrators.sort_by_key(|c| (c.needs.corrects, c.needs.moves));
    integrators
}

struct Binding<'a> {
    system: &'a SystemInfo,
    snapshot: &'a Snapshot,
    device: Option<&'a Chosen>,
    /// Slots of time-dependent numbers in use.
    slots: u32,
    groups: Vec<GroupNeed>,
}

impl Binding<'_> {
    /// Binds the components of a list; one that fails becomes `None`.
    fn bind(&mut self, c: &mut Check<'_>, list: &mut List, dt: f64) {
        let system = SystemInfo { dt, ..self.system.clone() };
        for slot in list.iter_mut() {
            let Some(mut component) = slot.take() else { continue };
            let (name, at) = (component.name.clone(), component.at);
            if c.absorb(&name, at, component.bind(&system)).is_none() {
                continue;
            }
            if !component.needs.constraints.is_empty() {
                let constraints = constraints::bonds(&component, self.snapshot);
                let system = SystemInfo { constraints, ..system.clone() };
                if c.absorb(&name, at, component.bind(&system)).is_none() {
                    continue;
                }
            }
            self.assign_slots(c, &mut component);
            self.assign_group(c, &mut component);
            c.require_code(&component, self.device);
            *slot = Some(component);
        }
    }

    fn assign_slots(&mut self, c: &mut Check<'_>, component: &mut Component) {
        component.first_varying = self.slots;
        let n = component.needs.varyings.len();
        self.slots += n as u32;
        if n > COMPONENT_VARYINGS || self.slots as usize > MAX_VARYINGS {
            let limits = format!("at most {COMPONENT_VARYINGS} per component and {MAX_VARYINGS} per run");
            let message = format!("{}: too many time-dependent numbers ({limits})", component.name);
            c.error(Some(component.at), message);
        }
    }

    fn assign_group(&mut self, c: &mut Check<'_>, component: &mut Component) {
        // particles without mass are placed by forces
        if component.kind == Kind::Integrator && self.snapshot.mass.contains(&0.0) {
            let group = &mut component.needs.group;
            *group = match std::mem::take(group) {
                GroupNeed::All => GroupNeed::Massive,
                other => GroupNeed::And(vec![other, GroupNeed::Massive]),
            };
        }
        let (name, at) = (&component.name, Some(component.at));
        component.group = group_bit(&mut self.groups, &component.needs.group);
        if self.groups.len() > MAX_GROUPS as usize {
            self.groups.truncate(MAX_GROUPS as usize);
            c.error(at, format!("{name}: a run has at most {MAX_GROUPS} different groups"));
        }
        if is_empty(&component.needs.group, self.snapshot) {
            c.error(at, format!("{name}: there are no particles in its group"));
        }
    }
}

/// Returns the group's bit and adds the group if it is new; [`MAX_GROUPS`] stands for all particles.
fn group_bit(groups: &mut Vec<GroupNeed>, group: &GroupNeed) -> u32 {
    if *group == GroupNeed::All {
        return MAX_GROUPS;
    }
    let bit = groups.iter().position(|g| g == group).unwrap_or_else(|| {
        groups.push(group.clone());
        groups.len() - 1
    });
    bit as u32
}

/// Returns whether a group contains no particles.
fn is_empty(group: &GroupNeed, s: &Snapshot) -> bool {
    !(0..s.len() as u32).any(|tag| group.contains(tag, s))
}
