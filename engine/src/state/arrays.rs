//! The table of particle arrays: name, element, and what the sort, checkpoints and resuming do with each.
//!
//! Backends, checkpoints, memory guards and [`super::Facts`] read this table. A new array of the engine is one line of
//! [`ArrayId`]; an optional array (`array.NAME`) is an [`ArrayNeed`] of a component.

use galamost_plugin_api::component::ArrayNeed;
use galamost_plugin_api::precision::Precision;

/// What one particle's element of an array holds. It determines the element's size and how a change of precision
/// converts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Coordinates and type as the precision stores them; encoded anew for another precision.
    Position,
    /// Lower bits of the coordinates, used in mixed precision only; encoded with the positions.
    PositionLow,
    /// Real numbers; converted to another precision.
    Reals(u32),
    /// 32-bit words; independent of the precision.
    Words(u32),
}

impl Element {
    /// Returns the element's size in bytes.
    pub fn stride(self, precision: Precision) -> usize {
        match self {
            Self::Position => precision.pos_type_size(),
            Self::PositionLow => 12,
            Self::Reals(n) => n as usize * precision.real_size(),
            Self::Words(n) => n as usize * 4,
        }
    }
}

/// What the sort of particles along the cells does with an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Elements move with their particles.
    Follows,
    /// The array is computed anew after the sort.
    Recomputed,
}

/// Whether checkpoints contain an array, and when resuming restores it. The sort of the last list build is repeated,
/// because the order of particles determines the order of summation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// Saved; restored in tag order before the sort.
    BeforeSort,
    /// Saved; restored after the sort, in the sorted order.
    AfterSort,
    /// Not saved; recomputed.
    Never,
}

macro_rules! fixed_arrays {
    ($($(#[$doc:meta])* $id:ident: $name:literal, $element:expr, $sort:ident, $restored:ident;)+) => {
        /// Arrays that every system has, in the order of [`table`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ArrayId {
            $($(#[$doc])* $id),+
        }
        const FIXED: &[(&str, Element, Sort, Restored)] = &[$(($name, $element, Sort::$sort, Restored::$restored)),+];
    };
}
fixed_arrays! {
    /// Position and type. Before the sort it takes the values of [`ArrayId::PosAtBuild`].
    PosType: "pos_type", Element::Position, Follows, AfterSort;
    /// Position and type at the last list build.
    PosAtBuild: "pos_at_build", Element::Position, Recomputed, BeforeSort;
    /// Lower bits of the coordinates.
    PosLow: "pos_low", Element::PositionLow, Follows, BeforeSort;
    /// Velocity and mass.
    VelocityMass: "velocity_mass", Element::Reals(4), Follows, BeforeSort;
    /// Force and energy.
    Force: "force", Element::Reals(4), Recomputed, AfterSort;
    /// Periodic images.
    Image: "image", Element::Words(3), Follows, BeforeSort;
    /// One bit for each group.
    Group: "group", Element::Words(1), Follows, BeforeSort;
    /// Permanent number of the particle at an index.
    Tag: "tag", Element::Words(1), Follows, Never;
    /// Current index of the particle with a tag.
    IndexOfTag: "index_of_tag", Element::Words(1), Recomputed, Never;
}

impl ArrayId {
    /// Number of fixed arrays; optional arrays come after them in [`table`].
    pub const COUNT: usize = FIXED.len();

    /// Returns the array's name.
    pub fn name(self) -> &'static str {
        FIXED[self as usize].0
    }
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParticleArray {
    /// Name: `pos_type`, …, or `array.NAME` for an optional array. Its section in a checkpoint file is `state.` and this name.
    pub name: String,
    /// Element.
    pub element: Element,
    /// What the sort does with it.
    pub sort: Sort,
    /// When resuming restores it.
    pub restored: Restored,
}

/// Prefix of the names of optional arrays.
const OPTIONAL: &str = "array.";

impl ParticleArray {
    /// Returns the table's line of an optional array.
    pub fn optional(need: &ArrayNeed) -> Self {
        let element = if need.integer { Element::Words(need.width) } else { Element::Reals(need.width) };
        let name = optional_name(&need.name);
        Self { name, element, sort: Sort::Follows, restored: Restored::BeforeSort }
    }

    /// Returns whether checkpoints contain the array.
    pub fn saved(&self) -> bool {
        self.restored != Restored::Never
    }

    /// Returns the name by which components know an optional array; `None` for a fixed array.
    pub fn component_name(&self) -> Option<&str> {
        self.name.strip_prefix(OPTIONAL)
    }

    /// Returns whether a run of this precision stores the array. One that is not stored reads as 0.
    pub fn stored(&self, precision: Precision) -> bool {
        self.element != Element::PositionLow || precision == Precision::Mixed
    }

    /// Returns whether forces may only read the array: every fixed array except the force.
    pub fn read_only_for_forces(&self) -> bool {
        self.component_name().is_none() && self.name != ArrayId::Force.name()
    }
}

/// Returns the section name of an optional array.
pub fn optional_name(array: &str) -> String {
    format!("{OPTIONAL}{array}")
}

/// Returns the arrays of a system with these optional arrays: fixed ones first, at the index of their [`ArrayId`].
pub fn table<'a>(optional: impl IntoIterator<Item = &'a ArrayNeed>) -> Vec<ParticleArray> {
    let fixed = FIXED.iter().map(|&(name, element, sort, restored)| ParticleArray {
        name: name.into(),
        element,
        sort,
        restored,
    });
    fixed.chain(optional.into_iter().map(ParticleArray::optional)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_arrays_are_found_at_their_index() {
        let table = table(&[]);
        assert_eq!(table.len(), ArrayId::COUNT);
        for id in [ArrayId::PosType, ArrayId::Force, ArrayId::Group, ArrayId::IndexOfTag] {
            assert_eq!(table[id as usize].name, id.name());
        }
    }
}
