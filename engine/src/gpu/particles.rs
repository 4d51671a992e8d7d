//! The particle arrays of a system in device memory.

use super::arrays::Buffer;
use super::ranks::Rank;
use super::rebuild::SortedArray;
use crate::device::Device;
use crate::plugins::host::HostServices;
use crate::state::Facts;
use crate::state::arrays::{ArrayId, ParticleArray, Sort};
use galamost_plugin_api::error::Result;
use std::sync::Arc;

/// The table of particle arrays, with the memory of those that the precision stores.
pub type Arrays = Vec<(ParticleArray, Option<Buffer>)>;

/// Allocates the particle arrays and announces the optional ones to components. Returns them, and those that the sort moves. All ranks
/// call it.
///
/// # Errors
/// Returns the driver's error.
pub fn allocate(
    device: &Arc<dyn Device>,
    rank: Option<&Rank>,
    facts: &Facts,
    host: &HostServices,
) -> Result<(Arrays, Vec<SortedArray>)> {
    let (mut arrays, mut sorted) = (vec![], vec![]);
    for array in facts.particle_arrays() {
        if !array.stored(facts.precision) {
            arrays.push((array, None));
            continue;
        }
        let stride = array.element.stride(facts.precision);
        let buffer = Buffer::of_particles(device, rank, stride, facts.n)?;
        let unused = array.name == ArrayId::Group.name() && facts.groups.is_empty();
        if array.sort == Sort::Follows && !unused {
            sorted.push((buffer.address(), stride as u32 / 4));
        }
        if let Some(name) = array.component_name() {
            host.set_array(name, buffer.address());
        }
        arrays.push((array, Some(buffer)));
    }
    Ok((arrays, sorted))
}
