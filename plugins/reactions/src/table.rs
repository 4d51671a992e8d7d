//! Reactions of a run, with types as indices.

use crate::component::{Reaction, Reactions};
use crate::energy::{Acceptance, Energies};
use crate::law::{Kind, Partners, Row};
use galamost_plugin_api::error::Position;
use galamost_plugin_api::prelude::*;
use std::collections::HashMap;

/// Type indices by name, in either direction of the name.
#[derive(Clone, Debug, Default)]
pub struct Names(HashMap<String, u32>);

impl Names {
    fn new(names: &[String]) -> Self {
        Self(names.iter().enumerate().map(|(i, n)| (n.clone(), i as u32)).collect())
    }

    /// Returns whether there are no types.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the type whose name consists of the particle types, joined by dashes.
    pub fn of<const W: usize>(&self, types: &[String], of_particles: [u32; W]) -> Option<u32> {
        let name = |of: [u32; W]| of.map(|k| types[k as usize].as_str()).join("-");
        let mut mirror = of_particles;
        mirror.reverse();
        self.0.get(&name(of_particles)).or_else(|| self.0.get(&name(mirror))).copied()
    }
}

/// Effects of a reaction that are not in its [`Row`].
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Type of the new bond.
    pub bond: u32,
    /// Type of all new angles; `None`: by name.
    pub angle: Option<u32>,
    /// Type of all new dihedrals; `None`: by name.
    pub dihedral: Option<u32>,
    /// New types of the two roles.
    pub becomes: Option<[u32; 2]>,
    /// New charges of the two roles.
    pub charges: Option<[f64; 2]>,
    /// Angles and energies that decide besides P_r.
    pub acceptance: Acceptance,
}

/// Data for the search and the selection of reactions.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub rows: Vec<Row>,
    pub effects: Vec<Effects>,
    /// Maximum number of reactions for each type.
    pub limits: Vec<u32>,
    pub partners: Partners,
    pub r_cut: f64,
    pub types: Vec<String>,
    pub angles: Names,
    pub dihedrals: Names,
    /// Whether reactions set charges.
    pub charged: bool,
}

/// Resolves type names and collects errors.
struct Reader<'a> {
    system: &'a SystemInfo,
    errors: Errors,
}

impl Reader<'_> {
    fn error(&mut self, at: Position, message: String) {
        self.errors.push(InputError::at(at, message));
    }

    fn named(&mut self, what: &str, names: &[String], name: &Spanned<String>) -> u32 {
        let found = names.iter().position(|n| *n == name.value);
        if found.is_none() {
            let known = if names.is_empty() {
                "the system has none".into()
            } else {
                format!("known types are {}", names.join(", "))
            };
            let hint = if what == "particle" { "" } else { "; `LinkTypes` in `initial` declares types" };
            self.error(name.at, format!("unknown {what} type \"{}\"; {known}{hint}", name.value));
        }
        found.unwrap_or(0) as u32
    }

    fn reaction(&mut self, r: &Spanned<Reaction>) -> (Row, Effects) {
        let (at, r) = (r.at, &r.value);
        let system = self.system;
        let before = self.errors.0.len();
        let roles = if r.kind == Kind::Die { 1 } else { 2 };
        if r.of.value.len() != roles {
            self.error(
                r.of.at,
                format!("{} needs {roles} type{} in `of`", r.kind.name(), if roles == 1 { "" } else { "s" }),
            );
        }
        let mut of = [0; 2];
        for (slot, name) in of.iter_mut().zip(&r.of.value) {
            *slot = self.named("particle", &system.types, name);
        }
        if roles == 1 {
            of[1] = of[0];
        }
        let becomes = r.becomes.as_ref().map(|names| [0, 1].map(|k| self.named("particle", &system.types, &names[k])));
        let not_for = |given: Option<Position>, wanted: bool| given.filter(|_| !wanted);
        for (name, given, wanted) in [
            ("bond", r.bond.as_ref().map(|b| b.at), r.kind.bonds()),
            ("angle", r.angle.as_ref().map(|b| b.at), r.kind.bonds()),
            ("dihedral", r.dihedral.as_ref().map(|b| b.at), r.kind.bonds()),
            ("broken", r.broken.as_ref().map(|b| b.at), r.kind.breaks()),
            ("factor", r.factor.as_ref().map(|f| f.at), r.kind.counts_reactions()),
            ("by_groups", r.by_groups.as_ref().map(|b| b.at), r.kind.counts_reactions()),
        ] {
            if let Some(at) = not_for(given, wanted) {
                self.error(at, format!("{} does not take `{name}`; remove it", r.kind.name()));
            }
        }
        let mut effects = Effects { becomes, charges: r.charges, ..Effects::default() };
        if r.kind.bonds() {
            effects.bond = match &r.bond {
                Some(name) => self.named("bond", &system.bond_types, name),
                None if self.errors.0.len() > before => 0,
                None => self.bond_by_name(at, r.kind, becomes.unwrap_or(of)),
            };
            effects.angle = r.angle.as_ref().map(|name| self.named("angle", &system.angle_types, name));
            effects.dihedral = r.dihedral.as_ref().map(|name| self.named("dihedral", &system.dihedral_types, name));
        }
        let broken = match (&r.broken, r.kind.breaks()) {
            (Some(name), _) => self.named("bond", &system.bond_types, name),
            (None, true) => {
                self.error(at, format!("{} needs `broken`, the type of the bond to break", r.kind.name()));
                0
            }
            _ => 0,
        };
        effects.acceptance = self.acceptance(at, r);
        if r.kind.of_ends() && !system.has_array("h_init") {
            self.error(at, format!("{} needs active ends; add the array `h_init` to the initial state", r.kind.name()));
        }
        if r.charges.is_some() && !system.has_array("charge") {
            self.error(at, "`charges` needs the array `charge` in the initial state".into());
        }
        let factor = r.factor.as_ref().map_or(1.0, |f| f.value);
        let by_groups = r.by_groups.as_ref().map_or(0, |b| u32::from(b.value));
        (Row { kind: r.kind as u32, of, broken, p: r.p, factor, by_groups, reserved: 0 }, effects)
    }

    /// Returns the conditions of a reaction, after errors for fields that do not fit each other.
    fn acceptance(&mut self, at: Position, r: &Reaction) -> Acceptance {
        let (bonds, breaks) = (r.kind.bonds(), r.kind.breaks());
        let (any, one) = (bonds || breaks, bonds != breaks);
        let energy = r.energy.as_ref().map(|v| v.at);
        let angle = r.angle_energy.as_ref().map(|v| v.at);
        let pair = r.pair_energy.as_ref().map(|v| v.at);
        let mean = r.mean_energy.as_ref().filter(|v| v.value).map(|v| v.at);
        let activation = r.activation_energy.as_ref().map(|v| v.at);
        let least = r.min_angle_deg.as_ref().map(|v| v.at);
        let before = self.errors.0.len();
        for (name, given, wanted) in [
            ("energy", energy, any),
            ("angle_energy", angle, any && one),
            ("pair_energy", pair, any),
            ("mean_energy", mean, breaks && one),
            ("activation_energy", activation, any),
            ("min_angle_deg", least, bonds && one),
        ] {
            if let Some(at) = given.filter(|_| !wanted) {
                self.error(at, format!("{} does not take `{name}`; remove it", r.kind.name()));
            }
        }
        if self.errors.0.len() > before {
            return Acceptance::default();
        }
        let unused = |given: Option<Position>, wanted: bool| given.filter(|_| activation.is_some() && !wanted);
        let problems = [
            (angle.filter(|_| energy.is_none()), "`angle_energy` is added to `energy`; give `energy` as well"),
            (
                mean.filter(|_| angle.is_none() || activation.is_none()),
                "`mean_energy` needs `angle_energy` and `activation_energy`",
            ),
            (
                unused(energy, breaks),
                "with `activation_energy`, the energy of a new bond does not count; remove `energy`",
            ),
            (
                unused(pair, bonds),
                "with `activation_energy`, the energy after a bond is broken does not count; remove `pair_energy`",
            ),
            (pair.filter(|_| energy.or(activation).is_none()), "`pair_energy` needs `energy` or `activation_energy`"),
        ];
        for (given, text) in problems {
            if let Some(at) = given {
                self.error(at, text.into());
            }
        }
        let decides = energy.is_some() || activation.is_some();
        match (decides, r.kt) {
            (true, None) if energy.is_some() => self.error(at, "`energy` and `kT` must be given together".into()),
            (true, None) => self.error(at, "`activation_energy` and `kT` must be given together".into()),
            (false, Some(_)) => self.error(at, "`kT` needs `energy` or `activation_energy`".into()),
            _ => {}
        }
        let energies = Energies {
            kt: r.kt.unwrap_or(1.0),
            activation: r.activation_energy.as_ref().map(|v| v.value),
            bond: r.energy.as_ref().map(|v| v.value),
            angle: r.angle_energy.as_ref().map(|v| v.value),
            pair: r.pair_energy.as_ref().map(|v| v.value),
            mean: mean.is_some(),
        };
        let min_angle = r.min_angle_deg.as_ref().map(|v| v.value.to_radians());
        Acceptance { min_angle, energies: decides.then_some(energies) }
    }

    /// Returns the bond type named after the particle types.
    fn bond_by_name(&mut self, at: Position, kind: Kind, of: [u32; 2]) -> u32 {
        let names = Names::new(&self.system.bond_types);
        let found = names.of(&self.system.types, of);
        if found.is_none() {
            let [a, b] = of.map(|k| &self.system.types[k as usize]);
            let known = self.system.bond_types.join(", ");
            let known =
                if known.is_empty() { "the system has none".into() } else { format!("known types are {known}") };
            let text = format!(
                "{} needs a bond type \"{a}-{b}\", or its own `bond`; {known}; `LinkTypes` in `initial` declares types",
                kind.name()
            );
            self.error(at, text);
        }
        found.unwrap_or(0)
    }
}

#[cfg(test)]
pub fn names_of(names: &[String]) -> Names {
    Names::new(names)
}

impl Table {
    /// Builds the table of a component.
    ///
    /// # Errors
    /// Returns all errors: unknown types, fields that do not fit the kind, missing arrays.
    pub fn new(c: &Reactions, system: &SystemInfo) -> Result<Self> {
        let mut reader = Reader { system, errors: Errors::default() };
        let half = system.half_box();
        if c.r_cut.value > half {
            let text = format!(
                "`r_cut` {} exceeds half of the shortest box length, {half}: particles would react with their own images",
                c.r_cut.value
            );
            reader.error(c.r_cut.at, text);
        }
        if c.reactions.value.is_empty() {
            reader.error(c.reactions.at, "`reactions` is empty; add at least one reaction".into());
        }
        let (rows, effects): (Vec<Row>, Vec<Effects>) = c.reactions.value.iter().map(|r| reader.reaction(r)).unzip();
        let mut limits = vec![1; system.types.len()];
        for (name, limit) in c.limits.iter().flat_map(|l| l.iter()) {
            let name = Spanned { value: name.to_string(), at: limit.at };
            let kind = reader.named("particle", &system.types, &name) as usize;
            if let Some(slot) = limits.get_mut(kind) {
                *slot = limit.value;
            }
        }
        let charged = effects.iter().any(|d| d.charges.is_some());
        reader.errors.into_result(Some(Self {
            rows,
            effects,
            limits,
            partners: c.partners,
            r_cut: c.r_cut.value,
            types: system.types.clone(),
            angles: Names::new(&system.angle_types),
            dihedrals: Names::new(&system.dihedral_types),
            charged,
        }))
    }

    /// Returns the types of bonds that reactions form or break.
    pub fn bond_types(&self) -> Vec<u32> {
        let formed = self.rows.iter().zip(&self.effects).filter(|(r, _)| r.kind().bonds()).map(|(_, e)| e.bond);
        let broken = self.rows.iter().filter(|r| r.kind().breaks()).map(|r| r.broken);
        formed.chain(broken).collect()
    }

    /// Returns how many bonds away from its members a reaction needs particles: 1 for angles and broken bonds, 2 for
    /// dihedrals.
    pub fn depth(&self) -> usize {
        let far = |r: &Row| r.is(Kind::Exchange) || r.is(Kind::Insert);
        let bent = |e: &Effects| e.acceptance.uses_angles();
        if !self.dihedrals.is_empty() {
            2
        } else if !self.angles.is_empty() || self.rows.iter().any(far) || self.effects.iter().any(bent) {
            1
        } else {
            0
        }
    }
}
