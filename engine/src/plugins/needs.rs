//! What the needs of a component say.

use super::component::Component;
use galamost_plugin_api::component::{ArrayNeed, Kind};
use galamost_plugin_api::snapshot::LinkList;

impl Component {
    /// Forces between oriented particles have torques.
    pub(super) fn add_torques(&mut self) {
        let asks = |name: &str| self.needs.arrays.iter().any(|a| a.name == name);
        if matches!(self.kind, Kind::Pair | Kind::Bonded | Kind::Force) && asks("quaternion") && !asks("torque") {
            self.needs.arrays.push(ArrayNeed { name: "torque".into(), width: 3, integer: false, required: false });
        }
    }

    /// Returns the list that a bonded component acts on.
    pub fn link_list(&self) -> LinkList {
        self.needs.links.unwrap_or(LinkList::Bonds)
    }

    /// Returns whether each rank of a run has an object of the component, which handles the rank's own particles.
    pub fn is_shared(&self, shares_forces: bool) -> bool {
        self.needs.shared && (self.kind == Kind::Updater || self.needs.places || shares_forces)
    }

    /// Returns whether a pair potential depends on charges.
    pub fn reads_charges(&self) -> bool {
        self.needs.arrays.iter().any(|a| a.name == "charge")
    }
}
