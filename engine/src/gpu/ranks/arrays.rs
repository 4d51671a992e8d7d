//! What ranks know of each other's particle arrays.

use super::rank::RankedArray;
use crate::backend::list_reader;
use crate::gpu::GpuSystem;
use crate::plan::Plan;
use crate::plugins::Component;
use crate::state::arrays::ArrayId;
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::error::Result;
use std::sync::Arc;

impl GpuSystem {
    /// Tells the other ranks where the arrays are, and lets ranks share the sort.
    pub(in crate::gpu) fn share_arrays(&mut self, plan: &Plan) -> Result<()> {
        let Some(rank) = &self.rank else { return Ok(()) };
        let mut arrays = vec![];
        let placing: Vec<&Arc<Component>> = plan.components.iter().filter(|c| c.needs.places).collect();
        for (array, buffer) in &self.arrays {
            // every rank makes it
            let made = array.name == ArrayId::IndexOfTag.name();
            let Some(buffer) = buffer.as_ref().filter(|_| !made) else { continue };
            let optional = array.component_name();
            let constant = [ArrayId::Tag, ArrayId::Group].map(ArrayId::name).contains(&array.name.as_str())
                || ["charge", "diameter"].map(Some).contains(&optional);
            let positions = array.name == ArrayId::PosType.name();
            let velocities = array.name == ArrayId::VelocityMass.name();
            let forces = array.name == ArrayId::Force.name();
            let moved = [ArrayId::PosLow, ArrayId::Image].map(ArrayId::name).contains(&array.name.as_str());
            let needed = |c: &&Arc<Component>| c.needs.arrays.iter().any(|a| Some(a.name.as_str()) == optional);
            let placed = !constant && (moved || velocities || placing.iter().any(needed));
            arrays.push(RankedArray {
                data: rank.share(buffer.address())?,
                words: array.element.stride(self.facts.precision) as u32 / 4,
                everywhere: constant || positions,
                changes: !constant,
                of_neighbors: positions || velocities || optional == Some("quaternion"),
                velocities,
                distributed: rank.distributes(),
                of_placing: placed || positions,
                of_collecting: placed || forces,
                of_forces: !constant && (optional.is_some() || forces),
            });
        }
        rank.set_arrays(arrays);
        // bonds, exclusions and kernels of components look up particles by their tags
        let by_tag = |c: &Arc<Component>| c.force().is_some() || matches!(c.kind, Kind::Bonded | Kind::Updater);
        let linked = !self.links.to_index().is_empty() || self.links.excluded().excluded_count != 0;
        let indexes_tags = linked || plan.components.iter().any(by_tag) || list_reader(plan).is_some();
        // updaters and analyzers find them when the arrays of the first rank are completed
        let links_of_all = !rank.shares_forces;
        self.rebuild.share(indexes_tags, links_of_all)
    }
}
