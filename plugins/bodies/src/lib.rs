//! Rigid bodies: particles that keep their places relative to a center, which moves and rotates as one particle.

mod device;
mod generator;
mod places;
mod rigid;
mod shape;

galamost_plugin_api::plugin!();

/// Array of the tag of each bead's center, relative to its own, so copies of a system stay valid; 0 for other particles.
pub const CENTER: &str = "bodies.center";
/// Array of the place of each particle in the frame of its body.
pub const OFFSET: &str = "bodies.offset";
/// Array of the tag of each center's first bead, relative to its own, and their number; 0 and 0 for other particles.
pub const MEMBERS: &str = "bodies.members";
