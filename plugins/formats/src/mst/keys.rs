//! The words that begin a section.

use galamost_plugin_api::snapshot::KNOWN_ARRAYS;

/// The word for an array; it is the array's name but for two.
pub fn key_of(array: &str) -> &str {
    match array {
        "h_init" => "init",
        "h_cris" => "cris",
        other => other,
    }
}

/// The array of a word, as its place in [`KNOWN_ARRAYS`].
pub fn array_of(key: &str) -> Option<usize> {
    KNOWN_ARRAYS.iter().position(|a| key_of(a.0) == key)
}

/// Sections with one row for each particle that are passed over.
pub const PASSED_ROWS: [&str; 4] = ["rotangle", "force", "virial", "potential"];

/// Sections with any number of rows that are passed over.
pub const PASSED: [&str; 5] = ["vsite", "patch", "patch_param", "asphere", "constraint"];

/// Sections that describe the system.
pub const SYSTEM: [&str; 4] = ["num_particles", "timestep", "dimension", "box"];

/// Sections with one row for each particle that are no arrays.
pub const PARTICLES: [&str; 5] = ["position", "image", "velocity", "type", "mass"];

/// Sections of links.
pub const LINKS: [&str; 3] = ["bond", "angle", "dihedral"];

/// Words that divide a file.
pub const MARKS: [&str; 5] = ["mst_end", "invariant_data", "variant_data", "frame", "frame_end"];

/// All words.
pub fn all() -> impl Iterator<Item = &'static str> {
    let arrays = KNOWN_ARRAYS.iter().map(|a| key_of(a.0));
    SYSTEM.into_iter().chain(PARTICLES).chain(LINKS).chain(arrays).chain(PASSED_ROWS).chain(PASSED).chain(MARKS)
}
