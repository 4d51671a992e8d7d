//! What forces determine of each particle, as writers of trajectories request it.

use galamost_plugin_api::component::ArrayNeed;
use galamost_plugin_api::prelude::*;

/// The quantities that a writer writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantities {
    pub force: bool,
    pub energy: bool,
    pub torque: bool,
    pub virial: bool,
}

impl Quantities {
    /// Requests the arrays [`Self::arrays`] for frames.
    ///
    /// # Errors
    /// Returns an error if the particles have no torques.
    pub fn request(self, system: &SystemInfo, needs: &mut Needs) -> Result<(), InputError> {
        needs.wants.forces = self != Self::default();
        needs.wants.energies = self.energy;
        let mut array = |name: &str, width| {
            needs.arrays.push(ArrayNeed { name: name.into(), width, integer: false, required: false });
        };
        if self.virial {
            array("virial", 6);
        }
        if self.torque {
            if !system.has_array("quaternion") && !system.has_array("orientation") {
                return Err(InputError::new("there are no torques: the particles have no orientations"));
            }
            array("torque", 3);
        }
        Ok(())
    }

    /// Returns the names of the arrays, and the numbers of a particle in them.
    pub fn arrays(self) -> impl Iterator<Item = (&'static str, u32)> {
        let all = [
            (self.force, "force", 3),
            (self.energy, "energy", 1),
            (self.torque, "torque", 3),
            (self.virial, "virial", 6),
        ];
        all.into_iter().filter(|(chosen, ..)| *chosen).map(|(_, name, width)| (name, width))
    }
}
