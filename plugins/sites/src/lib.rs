//! Virtual interaction sites: particles without mass whose positions follow from those of other particles.

mod device;
mod generator;
mod geometry;
mod kind;
mod virtual_sites;

galamost_plugin_api::plugin!();

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
