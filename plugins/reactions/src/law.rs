//! Conditions for reactions, and the random numbers that decide.
//!
//! Every draw is keyed by the step, the index of the reaction, and the tags. The four words of a pair's draw are: its
//! order, the decision if the smaller tag has the first role, the decision if the larger tag has it, and the acceptance
//! of the energy change.

use galamost_plugin_api::DeviceStruct;
use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::philox::RandomKey;

galamost_plugin_api::device_enum! {
    /// Kind of reaction.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        Grow = 0,
        Join = 1,
        Combine = 2,
        Disproportionate = 3,
        Die = 4,
        Exchange = 5,
        Insert = 6,
        Break = 7,
        Unzip = 8,
    }
}

const KINDS: [(&str, Kind); 9] = [
    ("Grow", Kind::Grow),
    ("Join", Kind::Join),
    ("Combine", Kind::Combine),
    ("Disproportionate", Kind::Disproportionate),
    ("Die", Kind::Die),
    ("Exchange", Kind::Exchange),
    ("Insert", Kind::Insert),
    ("Break", Kind::Break),
    ("Unzip", Kind::Unzip),
];

impl Kind {
    /// Returns the name in the pipeline and in the output file.
    pub fn name(self) -> &'static str {
        KINDS[self as usize].0
    }

    /// Returns whether the partners are unbonded particles within r_cut.
    pub fn needs_unbonded_pair(self) -> bool {
        !matches!(self, Self::Die | Self::Break | Self::Unzip)
    }

    /// Returns whether a bond breaks.
    pub fn breaks(self) -> bool {
        matches!(self, Self::Exchange | Self::Insert | Self::Break | Self::Unzip)
    }

    /// Returns whether a bond forms.
    pub fn bonds(self) -> bool {
        matches!(self, Self::Grow | Self::Join | Self::Combine | Self::Exchange | Self::Insert)
    }

    /// Returns whether the two roles are equivalent.
    pub fn symmetric(self) -> bool {
        matches!(self, Self::Join | Self::Combine | Self::Disproportionate | Self::Break)
    }

    /// Returns whether P_r can depend on the previous reactions of the partners.
    pub fn counts_reactions(self) -> bool {
        matches!(self, Self::Grow | Self::Join | Self::Exchange | Self::Insert)
    }

    /// Returns whether the first role is that of an active end, which only the initial state can provide.
    pub fn of_ends(self) -> bool {
        matches!(self, Self::Grow | Self::Combine | Self::Disproportionate | Self::Die | Self::Unzip)
    }
}

impl FromValue for Kind {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let found = KINDS.iter().find(|(name, _)| *name == value.text()).map(|(_, k)| *k);
        if found.is_none() {
            errors.push(value.error(format!("expected {}, found `{}`", Self::describe(), value.text())));
        }
        found
    }
    fn describe() -> String {
        KINDS.map(|(n, _)| format!("`{n}`")).join(", ")
    }
}

/// Partners that a particle of the first role tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Partners {
    #[default]
    Each = 0,
    One = 1,
    Nearest = 2,
}

impl FromValue for Partners {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Each" => Some(Self::Each),
            "One" => Some(Self::One),
            "Nearest" => Some(Self::Nearest),
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Each`, `One` or `Nearest`".into()
    }
}

/// Parameters of a reaction for both devices.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, DeviceStruct)]
pub struct Row {
    pub kind: u32,
    /// Particle types of the two roles.
    pub of: [u32; 2],
    /// Type of the bond to break.
    pub broken: u32,
    pub p: f64,
    /// Factor on p for each previous reaction of the partners.
    pub factor: f64,
    /// If not 0, p is also multiplied by the fraction of free groups of the partners.
    pub by_groups: u32,
    /// Always 0.
    pub reserved: u32,
}

/// 2³².
const WORDS: f64 = 4_294_967_296.0;

impl Row {
    pub fn is(&self, kind: Kind) -> bool {
        self.kind == kind as u32
    }

    pub fn kind(&self) -> Kind {
        KINDS[self.kind as usize].1
    }

    /// Returns the threshold, out of 2³², below which a random word lets these two react.
    pub fn threshold(&self, a: Reactant, b: Reactant) -> u64 {
        let of = |w: Reactant| w.cris.max(0) as u32;
        // partners whose previous reactions count
        let used: &[Reactant] = match self.kind() {
            Kind::Join | Kind::Exchange => &[a, b],
            Kind::Grow | Kind::Insert => &[b],
            _ => &[],
        };
        let mut p = self.p;
        for w in used {
            for _ in 0..of(*w) {
                p *= self.factor;
            }
            if self.by_groups != 0 {
                p *= f64::from(w.limit.saturating_sub(of(*w))) / f64::from(w.limit.max(1));
            }
        }
        (p * WORDS) as u64
    }
}

/// Properties of a particle that decide whether it can react.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reactant {
    pub particle_type: u32,
    pub init: i32,
    pub cris: i32,
    /// Maximum number of reactions of its type.
    pub limit: u32,
}

impl Reactant {
    fn active(self) -> bool {
        self.init == 1
    }

    /// Returns whether it can react once more.
    fn free(self) -> bool {
        (self.cris.max(0) as u32) < self.limit
    }

    /// Returns whether it can have the first role.
    pub fn first(self, row: &Row) -> bool {
        self.particle_type == row.of[0]
            && match row.kind() {
                Kind::Grow | Kind::Combine | Kind::Disproportionate | Kind::Die | Kind::Unzip => self.active(),
                Kind::Join | Kind::Exchange => self.free(),
                Kind::Insert | Kind::Break => true,
            }
    }

    /// Returns whether it can have the second role.
    pub fn second(self, row: &Row) -> bool {
        self.particle_type == row.of[1]
            && match row.kind() {
                Kind::Grow | Kind::Insert => !self.active() && self.free(),
                Kind::Combine | Kind::Disproportionate => self.active(),
                Kind::Join => self.free(),
                Kind::Die | Kind::Exchange | Kind::Break | Kind::Unzip => true,
            }
    }
}

/// Returns the draw of two particles for a reaction.
pub fn pair_draw(key: RandomKey, step: u64, reaction: usize, a: u32, b: u32) -> [u32; 4] {
    key.pair(step | (reaction as u64) << 48, a, b)
}

/// Returns the draw of one particle for a reaction.
pub fn single_draw(key: RandomKey, step: u64, reaction: usize, tag: u32) -> [u32; 4] {
    key.single(step, tag, reaction as u32)
}

/// Returns the decisive word if `first` has the first role.
pub fn decides(words: [u32; 4], first: u32, second: u32) -> u64 {
    u64::from(if first < second { words[1] } else { words[2] })
}

/// A possible reaction: its index and the tags of its two roles, which are equal for one particle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub reaction: u32,
    pub first: u32,
    pub second: u32,
}

/// Data of a particle that may react, with its bonds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Local {
    /// Coordinates as stored: fixed-point numbers in units of L/2³², or lengths.
    pub position: [f64; 3],
    pub particle_type: u32,
    pub init: i32,
    pub cris: i32,
    /// New charge, if set.
    pub charge: Option<f64>,
    /// Tag of the partner and type of each bond.
    pub bonds: Vec<(u32, u32)>,
}

/// Returns the minimum image of r_i − r_j, with the same operations on every device.
pub fn apart(a: [f64; 3], b: [f64; 3], length: [f64; 3], fixed: bool) -> [f64; 3] {
    std::array::from_fn(|k| {
        if fixed {
            f64::from((a[k] as i32).wrapping_sub(b[k] as i32)) * (length[k] / WORDS)
        } else {
            let d = a[k] - b[k];
            if length[k] > 0.0 { d - length[k] * (d * (1.0 / length[k])).round_ties_even() } else { d }
        }
    })
}

/// Returns the squared norm.
pub fn norm2(d: [f64; 3]) -> f64 {
    d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
}
