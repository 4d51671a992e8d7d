//! Keywords of sections.

use galamost_plugin_api::snapshot::KNOWN_ARRAYS;

/// Returns the keyword of an array: its name, with two exceptions.
pub fn key_of(array: &str) -> &str {
    match array {
        "h_init" => "init",
        "h_cris" => "cris",
        other => other,
    }
}

/// Returns the index in [`KNOWN_ARRAYS`] of the array with this keyword.
pub fn array_of(key: &str) -> Option<usize> {
    KNOWN_ARRAYS.iter().position(|a| key_of(a.0) == key)
}

/// Ignored sections with one row for each particle.
pub const IGNORED_ROWS: [&str; 4] = ["rotangle", "force", "virial", "potential"];

/// Ignored sections with any number of rows.
pub const IGNORED: [&str; 5] = ["vsite", "patch", "patch_param", "asphere", "constraint"];

/// Sections that describe the system.
pub const SYSTEM: [&str; 4] = ["num_particles", "timestep", "dimension", "box"];

/// Sections with one row for each particle that are not arrays.
pub const PARTICLES: [&str; 5] = ["position", "image", "velocity", "type", "mass"];

/// Sections of links.
pub const LINKS: [&str; 3] = ["bond", "angle", "dihedral"];

/// Begins the list of type names after the keyword of `type`, `bond`, `angle`, or `dihedral`.
pub const TYPES: &str = "# types:";

/// Keywords that divide a file.
pub const MARKS: [&str; 5] = ["mst_end", "invariant_data", "variant_data", "frame", "frame_end"];

/// Iterates over all keywords.
pub fn all() -> impl Iterator<Item = &'static str> {
    let arrays = KNOWN_ARRAYS.iter().map(|a| key_of(a.0));
    SYSTEM.into_iter().chain(PARTICLES).chain(LINKS).chain(arrays).chain(IGNORED_ROWS).chain(IGNORED).chain(MARKS)
}
