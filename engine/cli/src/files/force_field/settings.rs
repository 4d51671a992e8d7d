//! What the script of a simulation sets, instead of its force-field file.

use super::super::gromacs::GromacsArgs;
use super::sections::ForceField;
use crate::common::input_error;
use clap::{Args, ValueEnum};
use galamost_engine::diagnostic::Failure;

/// Lists whose pairs are excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum List {
    Bonds,
    Angles,
    Dihedrals,
    Sites,
    None,
}

/// How charges interact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Coulomb {
    /// The shift function of GROMACS, as LJCoulombShiftForce.
    Shift,
    ReactionField,
    /// As LJEwaldForce with PPPM or ENUF.
    Pppm,
    /// Screened by salt, as AHDHForce.
    DebyeHueckel,
    /// Charges do not interact.
    None,
}

/// Options of a conversion from a force-field file.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Force fields of GALAMOST and PyGAMD (system.force_field sim.ron)")]
pub(crate) struct ForceFieldArgs {
    /// Lists whose pairs have no pair force, separated by commas: bonds, angles, dihedrals, sites, none.
    #[arg(long, value_name = "LISTS", value_delimiter = ',')]
    exclude: Vec<List>,
    /// Start of the shift function of LJCoulombShiftForce and LJShiftForce in nm.
    #[arg(long, value_name = "LENGTH", allow_negative_numbers = true)]
    r_shift: Option<f64>,
    /// Interaction of charges.
    #[arg(long, value_name = "FORM")]
    coulomb: Option<Coulomb>,
    /// Debye length of `--coulomb debye-hueckel` in nm.
    #[arg(long, value_name = "LENGTH", allow_negative_numbers = true)]
    debye_length: Option<f64>,
    /// ε of <ah_params> in kJ/mol, which AHDHForce has as an argument.
    #[arg(long, value_name = "ENERGY", allow_negative_numbers = true)]
    ah_epsilon: Option<f64>,
}

/// Excluded pairs.
#[derive(Clone, Copy, Debug)]
pub struct Exclude {
    pub bonds: bool,
    pub angles: bool,
    pub dihedrals: bool,
    pub sites: bool,
}

impl Exclude {
    /// Returns the entries of the field `exclude`. Bonds between sites and their particles are excluded as bonds.
    pub fn lists(self) -> Vec<&'static str> {
        let all = [(self.bonds || self.sites, "Bonds"), (self.angles, "Angles"), (self.dihedrals, "Dihedrals")];
        all.into_iter().filter(|(on, _)| *on).map(|(_, name)| name).collect()
    }
}

/// What the script of a simulation sets, instead of its force-field file.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub r_cut: f64,
    pub r_shift: Option<f64>,
    pub epsilon_r: f64,
    pub coulomb: Coulomb,
    pub debye_length: f64,
    pub ah_epsilon: f64,
    pub exclude: Exclude,
    pub temperature: f64,
}

/// Returns an error for an option that is missing.
fn missing(option: &str, what: &str) -> Failure {
    input_error(option, format!("is missing: {what}"))
}

impl ForceFieldArgs {
    /// Returns all settings. Those that change forces have no defaults.
    ///
    /// # Errors
    /// Returns an error if an option is missing or invalid.
    pub fn settings(&self, shared: &GromacsArgs, field: &ForceField, charged: bool) -> Result<Settings, Failure> {
        if shared.has_topology_options() {
            let options = "-I, -D, --epsilon-rf, --constraints-as-bonds";
            return Err(input_error(options, "these options need a topology (.top)"));
        }
        let r_cut =
            shared.r_cut.ok_or_else(|| missing("--r-cut", "a force-field file has no cutoff; the script sets it"))?;
        let r_cut = GromacsArgs::positive(Some(r_cut), 0.0, "--r-cut")?;
        if let Some(r) = self.r_shift.filter(|r| !(0.0..r_cut).contains(r)) {
            let message = format!("`{r}`: expected a number from 0 to below the cutoff, {r_cut}");
            return Err(input_error("--r-shift", message));
        }
        let coulomb = self.coulomb(charged)?;
        let epsilon_r = match (coulomb, shared.epsilon_r) {
            (Coulomb::None, _) => 1.0,
            (_, Some(e)) => GromacsArgs::positive(Some(e), 0.0, "--epsilon-r")?,
            (_, None) => return Err(missing("--epsilon-r", "the permittivity, which the script sets")),
        };
        Ok(Settings {
            r_cut,
            r_shift: self.r_shift,
            epsilon_r,
            coulomb,
            debye_length: self.debye_length(coulomb)?,
            ah_epsilon: self.ah_epsilon(field)?,
            exclude: self.exclude()?,
            temperature: GromacsArgs::positive(shared.temperature, 300.0, "--temperature")?,
        })
    }

    fn exclude(&self) -> Result<Exclude, Failure> {
        if self.exclude.is_empty() {
            let what = "lists whose pairs are excluded, such as `bonds,angles,dihedrals`, or `none`";
            return Err(missing("--exclude", what));
        }
        let has = |list| self.exclude.contains(&list);
        if has(List::None) && self.exclude.len() > 1 {
            return Err(input_error("--exclude", "`none` stands alone"));
        }
        Ok(Exclude {
            bonds: has(List::Bonds),
            angles: has(List::Angles),
            dihedrals: has(List::Dihedrals),
            sites: has(List::Sites),
        })
    }

    fn coulomb(&self, charged: bool) -> Result<Coulomb, Failure> {
        match (self.coulomb, self.r_shift) {
            (Some(Coulomb::Shift), None) => {
                Err(missing("--r-shift", "the start of the shift function of `--coulomb shift`"))
            }
            (Some(form), _) => Ok(form),
            (None, _) if !charged => Ok(Coulomb::None),
            (None, Some(_)) => Ok(Coulomb::Shift),
            (None, None) => {
                let what = "the particles have charges; choose shift, reaction-field, pppm, debye-hueckel or none";
                Err(missing("--coulomb", what))
            }
        }
    }

    /// Returns the Debye length; infinite without screening.
    fn debye_length(&self, coulomb: Coulomb) -> Result<f64, Failure> {
        match (coulomb, self.debye_length) {
            (Coulomb::DebyeHueckel, Some(l)) => GromacsArgs::positive(Some(l), 0.0, "--debye-length"),
            (Coulomb::DebyeHueckel, None) => Err(missing("--debye-length", "the length of `--coulomb debye-hueckel`")),
            (_, None) => Ok(f64::INFINITY),
            (_, Some(_)) => Err(input_error("--debye-length", "needs `--coulomb debye-hueckel`")),
        }
    }

    /// Returns ε of `<ah_params>`; 0 without that section.
    fn ah_epsilon(&self, field: &ForceField) -> Result<f64, Failure> {
        match (field.section("ah_params"), self.ah_epsilon) {
            (Some(_), _) if self.r_shift.is_some() => {
                Err(input_error("--r-shift", "<ah_params> has no shift function; it needs <pair_params>"))
            }
            (Some(_), Some(e)) => GromacsArgs::positive(Some(e), 0.0, "--ah-epsilon"),
            (Some(_), None) => Err(missing("--ah-epsilon", "ε of <ah_params>, which the script sets")),
            (None, None) => Ok(0.0),
            (None, Some(_)) => Err(input_error("--ah-epsilon", "needs the section <ah_params>")),
        }
    }
}
