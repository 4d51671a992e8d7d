//! What the needs of a component say.

use super::component::Component;
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::snapshot::LinkList;

impl Component {
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
