//! The reactions of a run with types as numbers.

use crate::component::{Reaction, Reactions};
use crate::energy::BondEnergy;
use crate::law::{Kind, Partners, Row};
use galamost_plugin_api::error::Position;
use galamost_plugin_api::prelude::*;
use std::collections::HashMap;

/// Type numbers by name, in either direction.
#[derive(Clone, Debug, Default)]
pub struct Names(HashMap<String, u32>);

impl Names {
    fn new(names: &[String]) -> Self {
        Self(names.iter().enumerate().map(|(i, n)| (n.clone(), i as u32)).collect())
    }

    /// No types at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The type whose name is that of the particle types, joined by dashes.
    pub fn of<const W: usize>(&self, types: &[String], kinds: [u32; W]) -> Option<u32> {
        let name = |kinds: [u32; W]| kinds.map(|k| types[k as usize].as_str()).join("-");
        let mut mirror = kinds;
        mirror.reverse();
        self.0.get(&name(kinds)).or_else(|| self.0.get(&name(mirror))).copied()
    }
}

/// What a reaction does beyond its [`Row`].
#[derive(Clone, Debug, Default)]
pub struct Deed {
    /// Type of the new bond.
    pub bond: u32,
    /// Type of all new angles; else by name.
    pub angle: Option<u32>,
    /// Type of all new dihedrals; else by name.
    pub dihedral: Option<u32>,
    /// New types of the two roles.
    pub becomes: Option<[u32; 2]>,
    /// New charges of the two roles.
    pub charges: Option<[f64; 2]>,
    /// Energy of bonds, and kT.
    pub energy: Option<(BondEnergy, f64)>,
}

/// All that the search and the resolution need.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub rows: Vec<Row>,
    pub deeds: Vec<Deed>,
    /// Reactions that each type allows.
    pub limits: Vec<u32>,
    pub partners: Partners,
    pub r_cut: f64,
    pub types: Vec<String>,
    pub angles: Names,
    pub dihedrals: Names,
    /// Charges are set.
    pub charged: bool,
}

/// Reads names of types and notes what is wrong.
struct Reader<'a> {
    system: &'a SystemInfo,
    errors: Errors,
}

impl Reader<'_> {
    fn say(&mut self, at: Position, message: String) {
        self.errors.push(InputError::at(at, message));
    }

    fn named(&mut self, what: &str, names: &[String], name: &Spanned<String>) -> u32 {
        let found = names.iter().position(|n| *n == name.value);
        if found.is_none() {
            let there =
                if names.is_empty() { "there are none".into() } else { format!("there are {}", names.join(", ")) };
            let hint = if what == "particle" { "" } else { "; `LinkTypes` in `initial` declares types" };
            self.say(name.at, format!("there is no {what} type \"{}\": {there}{hint}", name.value));
        }
        found.unwrap_or(0) as u32
    }

    fn reaction(&mut self, r: &Spanned<Reaction>) -> (Row, Deed) {
        let (at, r) = (r.at, &r.value);
        let system = self.system;
        let before = self.errors.0.len();
        let roles = if r.kind == Kind::Die { 1 } else { 2 };
        if r.of.value.len() != roles {
            self.say(r.of.at, format!("{} has {roles} role{}", r.kind.name(), if roles == 1 { "" } else { "s" }));
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
            ("energy", r.energy.as_ref().map(|b| b.at), r.kind.bonds() || r.kind.breaks()),
        ] {
            if let Some(at) = not_for(given, wanted) {
                self.say(at, format!("{} has no `{name}`", r.kind.name()));
            }
        }
        let mut deed = Deed { becomes, charges: r.charges, ..Deed::default() };
        if r.kind.bonds() {
            deed.bond = match &r.bond {
                Some(name) => self.named("bond", &system.bond_types, name),
                None if self.errors.0.len() > before => 0,
                None => self.bond_by_name(at, r.kind, becomes.unwrap_or(of)),
            };
            deed.angle = r.angle.as_ref().map(|name| self.named("angle", &system.angle_types, name));
            deed.dihedral = r.dihedral.as_ref().map(|name| self.named("dihedral", &system.dihedral_types, name));
        }
        let broken = match (&r.broken, r.kind.breaks()) {
            (Some(name), _) => self.named("bond", &system.bond_types, name),
            (None, true) => {
                self.say(at, format!("{} needs `broken`, the type of the bond that breaks", r.kind.name()));
                0
            }
            _ => 0,
        };
        deed.energy = match (&r.energy, r.kt) {
            (Some(e), Some(kt)) => Some((e.value, kt)),
            (None, None) => None,
            _ => {
                self.say(at, "`energy` and `kT` belong together".into());
                None
            }
        };
        if r.kind.of_ends() && !system.has_array("h_init") {
            self.say(at, format!("{} needs active ends, but the initial state has no `h_init`", r.kind.name()));
        }
        if r.charges.is_some() && !system.has_array("charge") {
            self.say(at, "the initial state has no `charge`".into());
        }
        let by_groups = u32::from(r.by_groups);
        (Row { kind: r.kind as u32, of, broken, p: r.p, factor: r.factor, by_groups, reserved: 0 }, deed)
    }

    /// The bond type that has the name of the particles' types.
    fn bond_by_name(&mut self, at: Position, kind: Kind, of: [u32; 2]) -> u32 {
        let names = Names::new(&self.system.bond_types);
        let found = names.of(&self.system.types, of);
        if found.is_none() {
            let [a, b] = of.map(|k| &self.system.types[k as usize]);
            let there = self.system.bond_types.join(", ");
            let there = if there.is_empty() { "there are none".into() } else { format!("there are {there}") };
            let text = format!(
                "{} needs a bond type \"{a}-{b}\", or its own `bond`: {there}; `LinkTypes` in `initial` declares types",
                kind.name()
            );
            self.say(at, text);
        }
        found.unwrap_or(0)
    }
}

#[cfg(test)]
pub fn names_of(names: &[String]) -> Names {
    Names::new(names)
}

impl Table {
    /// Reads the reactions of a component.
    ///
    /// # Errors
    /// Types that do not exist, fields that do not fit the kind, arrays that are missing; all of them.
    pub fn new(c: &Reactions, system: &SystemInfo) -> Result<Self> {
        let mut reader = Reader { system, errors: Errors::default() };
        let half = system.half_box();
        if c.r_cut.value > half {
            let text = format!(
                "r_cut = {} is more than half the shortest box length ({half}): a particle would meet its own image",
                c.r_cut.value
            );
            reader.say(c.r_cut.at, text);
        }
        if c.reactions.value.is_empty() {
            reader.say(c.reactions.at, "there are no reactions".into());
        }
        let (rows, deeds): (Vec<Row>, Vec<Deed>) = c.reactions.value.iter().map(|r| reader.reaction(r)).unzip();
        let mut limits = vec![1; system.types.len()];
        for (name, limit) in c.limits.iter().flat_map(|l| l.iter()) {
            let name = Spanned { value: name.to_string(), at: limit.at };
            let kind = reader.named("particle", &system.types, &name) as usize;
            if let Some(slot) = limits.get_mut(kind) {
                *slot = limit.value;
            }
        }
        let charged = deeds.iter().any(|d| d.charges.is_some());
        reader.errors.into_result(Some(Self {
            rows,
            deeds,
            limits,
            partners: c.partners,
            r_cut: c.r_cut.value,
            types: system.types.clone(),
            angles: Names::new(&system.angle_types),
            dihedrals: Names::new(&system.dihedral_types),
            charged,
        }))
    }

    /// How many bonds away from its members a reaction has to look: for angles and for what breaks 1, for dihedrals 2.
    pub fn depth(&self) -> usize {
        let far = |r: &Row| r.is(Kind::Exchange) || r.is(Kind::Insert);
        if !self.dihedrals.is_empty() {
            2
        } else if !self.angles.is_empty() || self.rows.iter().any(far) {
            1
        } else {
            0
        }
    }
}
