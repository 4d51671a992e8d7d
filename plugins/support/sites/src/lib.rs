//! Virtual interaction sites: how a site is constructed, its position, velocity and forces, and the arrays of a state that
//! describe all sites.

mod geometry;
mod kind;
mod table;

pub use geometry::{ANGLE, DISTANCE, LINEAR, NORMAL, OUT, change_of_unit, place_site, spread_force};
pub use kind::SiteKind;
pub use table::{Row, Table};

/// Array of the form of each site; 0 for particles that are no sites.
pub const FORM: &str = "sites.form";
/// Array of the particles that construct each site: their tags minus that of the site; 0 for none.
pub const ATOMS: &str = "sites.atoms";
/// Array of the weights of these particles, or the parameters of the form.
pub const NUMBERS: &str = "sites.numbers";
/// Array of lists of uses. Each number is 8 times the tag of a site minus that of the particle that it uses, plus the
/// position of this particle among those of the site; 0 ends a list. The first number of a particle begins its list; number
/// k + 1 of a site continues the list of its particle k.
pub const USES: &str = "sites.uses";

/// Most particles that construct a site.
pub const MOST: usize = 8;
