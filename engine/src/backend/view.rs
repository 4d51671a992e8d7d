//! The view of the state that plugins and kernels get.

use crate::state::Facts;
use crate::state::arrays::ArrayId;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::views::StateView;

/// An array to look up.
#[derive(Clone, Copy, Debug)]
pub enum Array<'a> {
    /// A fixed one.
    Fixed(ArrayId),
    /// An optional one, by the name that components use.
    Optional(&'a str),
}

/// Returns the view of a system. `address` returns the address of an array, 0 if the system does not have it.
pub fn state_view(facts: &Facts, globals: u64, mut address: impl FnMut(Array<'_>) -> u64) -> StateView {
    let mut found = |array: Array<'_>| {
        let address = address(array);
        if let (0, Array::Optional(name)) = (address, array) {
            crate::activity::null_in_views(name);
        }
        address
    };
    macro_rules! at {
        ($array:expr) => {
            DevicePtr::new(found($array))
        };
    }
    let angular_momentum = at!(Array::Optional("angular_momentum"));
    let rotates = !angular_momentum.is_null();
    let mixed = facts.precision == Precision::Mixed;
    StateView {
        precision: facts.precision as u32,
        n_local: facts.n as u32,
        own_end: facts.n as u32,
        n_types: facts.n_types,
        has_groups: u32::from(!facts.groups.is_empty()),
        pos_type: at!(Array::Fixed(ArrayId::PosType)),
        pos_low: if mixed { at!(Array::Fixed(ArrayId::PosLow)) } else { DevicePtr::null() },
        velocity_mass: at!(Array::Fixed(ArrayId::VelocityMass)),
        force: at!(Array::Fixed(ArrayId::Force)),
        image: at!(Array::Fixed(ArrayId::Image)),
        tag: at!(Array::Fixed(ArrayId::Tag)),
        index_of_tag: at!(Array::Fixed(ArrayId::IndexOfTag)),
        group: at!(Array::Fixed(ArrayId::Group)),
        pos_at_build: at!(Array::Fixed(ArrayId::PosAtBuild)),
        charge: at!(Array::Optional("charge")),
        diameter: at!(Array::Optional("diameter")),
        globals: DevicePtr::new(globals),
        quaternion: at!(Array::Optional("quaternion")),
        torque: at!(Array::Optional("torque")),
        angular_momentum,
        virial: at!(Array::Optional("virial")),
        inertia: if rotates { at!(Array::Optional("inert")) } else { DevicePtr::null() },
        ..StateView::empty()
    }
}
