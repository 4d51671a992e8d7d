//! The `Gromacs` generator: a topology with the positions of a file.

use crate::galamost_xml;
use crate::gro::read::{Choice, read, skip};
use galamost_gromacs::{Coordinates, ReactionField, Settings, System, Topology, structure};
use galamost_plugin_api::params::{FromValue, Source, Value};
use galamost_plugin_api::prelude::*;
use galamost_sites::{Row, SiteKind, Table};
use galamost_text::Trajectory;
use std::path::Path;

/// Endings of compressed files.
const COMPRESSED: [&str; 4] = [".xz", ".gz", ".bz2", ".zst"];

/// Reads a state from a topology of GROMACS (.top with its .itp files) and the positions of a GRO file, such as those of
/// Martini.
///
/// | part | becomes |
/// |---|---|
/// | `[ molecules ]`, `[ atoms ]`, `[ atomtypes ]` | particles in the order of the topology: type = atom type, mass, array `charge`, array `molecule` |
/// | `[ bonds ]`, `[ angles ]`, `[ dihedrals ]` | topology; types are named after the particle types, with a number (`Q0-Qa:2`) for other parameters |
/// | `[ constraints ]`, `[ settles ]` | bonds for `Constraints` |
/// | `[ pairs ]` | bonds of the types `pair-A-B` |
/// | `nrexcl`, `[ exclusions ]` | bonds of the types `excluded` and `reaction-field` |
/// | `[ virtual_sites1 ]` … `[ virtual_sitesn ]` | sites for `VirtualSites`, as `Sites` makes them, with the mass 0 |
/// | file of coordinates | box, positions, velocities; names of atoms must be those of the topology |
///
/// The state is that of `galamost convert system.top sim.ron --coordinates system.gro`, whose generators `Gromacs` replaces.
/// Forces are not part of it: copy `neighbors` and `forces` of that pipeline, which has a row for each type of the state.
/// `include`, `define` and `constraints_as_bonds` are the options `-I`, `-D` and `--constraints-as-bonds` of `galamost convert`;
/// give both the same values, because a difference is not noticed. A macro that nothing uses is a warning.
///
/// Units are those of GROMACS: nm, ps, u (g/mol), e, kJ/mol. Preprocessor lines (`#include`, `#define`, `#ifdef`, …) are followed.
/// Sections that no component can express, and triclinic boxes, are errors with the line of the topology; position restraints
/// are left out with a warning. The center of the box becomes 0, particles outside the box are wrapped, and images make molecules
/// whole. Numbers are rounded to 12 decimal places, as in the structure file of `galamost convert`.
///
/// `coordinates` is a GRO file, of which the last frame is read, or a `galamost_xml` file with names of atoms as types. Both
/// may be compressed (.xz, .gz, .bz2, .zst).
///
/// ```ron
/// Gromacs(topology: "system.top", coordinates: "system.gro", include: ["martini"], define: {"FLEXIBLE": ""})
/// ```
#[component(Generator, "Gromacs")]
#[derive(Clone, Debug, Params)]
pub struct ReadGromacs {
    /// Topology (.top).
    topology: String,
    /// File with positions, box and velocities: .gro or .xml.
    coordinates: Spanned<String>,
    /// Folders of included files, after the folder of the including file.
    #[param(default = vec![])]
    include: Vec<String>,
    /// Macros: a map of names and values, or a list of names and of texts `"NAME=VALUE"`.
    define: Option<Defines>,
    /// Stiffness k of harmonic bonds ½ k (r − b)² in place of constraints.
    #[param(unit = "energy/length²", above = 0.0)]
    constraints_as_bonds: Option<f64>,
    #[param(skip)]
    warnings: Vec<String>,
}

/// Macros, as `NAME` or `NAME=VALUE`.
#[derive(Clone, Debug, Default, PartialEq)]
struct Defines(Vec<String>);

impl FromValue for Defines {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let before = errors.0.len();
        let mut found = vec![];
        if value.text().starts_with('{') {
            for (name, text) in errors.absorb(value.map())? {
                let (name, text) = (String::from_value(name, errors), String::from_value(text, errors));
                found.push(format!("{}={}", name.unwrap_or_default(), text.unwrap_or_default()));
            }
        } else {
            found = Vec::from_value(value, errors)?;
        }
        let nameless =
            |d: &&String| d.split('=').next().is_none_or(|n| n.is_empty() || n.contains(char::is_whitespace));
        if errors.0.len() == before
            && let Some(wrong) = found.iter().find(nameless)
        {
            errors.push(value.error(format!("`{wrong}` has no name of a macro before the value")));
        }
        (errors.0.len() == before).then_some(Self(found))
    }
    fn describe() -> String {
        "a map { \"NAME\": \"VALUE\", … } or a list of texts".into()
    }
}

impl Generator for ReadGromacs {
    fn generate(&mut self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()> {
        crate::require_empty("Gromacs", snapshot)?;
        self.warnings.clear();
        let settings = Settings {
            folders: self.include.iter().map(|folder| context.path(folder)).collect(),
            defines: self.define.as_ref().map(|d| d.0.clone()).unwrap_or_default(),
        };
        let mut warnings = vec![];
        let source = galamost_gromacs::Source::read(&context.path(&self.topology), &settings)?;
        let topology = Topology::read(source, &mut warnings);
        self.warnings.extend(warnings.iter().map(InputError::to_string));
        let topology = topology?;
        // the state does not depend on the reaction field
        let system = System::of(&topology, self.constraints_as_bonds, &ReactionField::default()).map_err(shorten)?;
        let path = context.path(&self.coordinates.value);
        let coordinates = self.coordinates(&path)?;
        *snapshot = structure(&topology, &system, &coordinates)?;
        add_sites(&topology, &system, snapshot)?;
        let remarks = system.remarks(&topology).into_iter();
        self.warnings.extend(remarks.map(|(at, remark)| topology.source.error(at, remark).to_string()));
        Ok(())
    }
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

/// The largest number of errors that are reported.
const MAX_ERRORS: usize = 20;

/// Returns the first errors, and how many follow.
fn shorten(mut errors: Vec<InputError>) -> Error {
    let more = errors.len().saturating_sub(MAX_ERRORS);
    let file = errors.first().and_then(|e| e.file.clone());
    errors.truncate(MAX_ERRORS);
    if more > 0 {
        let s = if more == 1 { "" } else { "s" };
        let message = format!("and {more} more error{s}");
        errors.push(file.map_or_else(|| InputError::new(&message), |f| InputError::in_file(f, None, &message)));
    }
    Error::Input(errors)
}

impl ReadGromacs {
    /// Reads the file of coordinates.
    fn coordinates<'p>(&mut self, path: &'p Path) -> Result<Coordinates<'p>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let name = COMPRESSED.iter().find_map(|e| name.strip_suffix(e)).unwrap_or(&name);
        let (state, lines, name_length) = match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("gro") => {
                let mut file = Trajectory::open(path, skip)?;
                // the title and the number of atoms precede the atoms; later frames begin elsewhere
                let lines = (file.count()? == 1).then_some(2);
                let state = read(file.frame(-1)?, &Choice::default())?;
                self.warnings.extend(file.warnings());
                (state, lines, 5)
            }
            Some("xml" | "galamost_xml") => (galamost_xml::read::read(path)?, None, usize::MAX),
            _ => {
                let message = "positions are read from files *.gro and *.xml, which may be compressed; `galamost convert` \
                               makes such a file of other formats";
                return Err(InputError::at(self.coordinates.at, message).into());
            }
        };
        if state.is_tilted() {
            let message = "a topology of GROMACS needs a rectangular box here; this one is triclinic";
            return Err(InputError::in_file(path, None, message).into());
        }
        if state.dimensions != 3 || state.box_length.contains(&0.0) {
            return Err(InputError::in_file(path, None, "a topology needs a box with three lengths").into());
        }
        Ok(Coordinates { path, state, lines, name_length })
    }
}

/// Makes the virtual sites of a topology.
fn add_sites(topology: &Topology, system: &System, s: &mut Snapshot) -> Result<()> {
    let blocks = system.sites(topology);
    let Some(first) = blocks.first() else { return Ok(()) };
    let at = first.sites[0].at;
    let mut table = Table::of(s)?;
    for block in blocks {
        for site in block.sites {
            let wrong = |message: String| topology.source.error(site.at, message);
            let mut errors = Errors::default();
            let kind = SiteKind::from_value(Source::file(&site.kind).value(), &mut errors);
            let Some(kind) = kind.filter(|_| errors.0.is_empty()) else {
                let all = errors.0.into_iter().map(|e| e.message).collect::<Vec<_>>().join("; ");
                return Err(wrong(format!("{}: {all}", site.kind)).into());
            };
            let row = Row { site: site.site, from: site.from.clone(), kind };
            row.check(block.atoms, s).map_err(wrong)?;
            for molecule in 0..block.molecules {
                table.add(&row, block.first + molecule * block.atoms, s).map_err(wrong)?;
            }
        }
    }
    let placed = table.link(s).and_then(|()| table.place(s));
    placed.map_err(|message| topology.source.error(at, message))?;
    table.write(s);
    Ok(())
}
