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
        for (array, buffer) in &self.arrays {
            // every rank has these of all particles at the last rebuild
            let same = [ArrayId::PosAtBuild, ArrayId::IndexOfTag].map(ArrayId::name).contains(&array.name.as_str());
            let Some(buffer) = buffer.as_ref().filter(|_| !same) else { continue };
            let optional = array.component_name();
            let constant = [ArrayId::Tag, ArrayId::Group].map(ArrayId::name).contains(&array.name.as_str())
                || ["charge", "diameter"].map(Some).contains(&optional);
            let positions = array.name == ArrayId::PosType.name();
            let velocities = array.name == ArrayId::VelocityMass.name();
            arrays.push(RankedArray {
                data: rank.share(buffer.address())?,
                words: array.element.stride(self.facts.precision) as u32 / 4,
                everywhere: constant || positions,
                changes: !constant,
                of_neighbors: positions || velocities || optional == Some("quaternion"),
                velocities,
                distributed: rank.distributes(),
                of_forces: !constant && (optional.is_some() || array.name == ArrayId::Force.name()),
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
