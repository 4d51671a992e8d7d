//! `galamost new pipeline KIND`: writes a commented pipeline that runs.

use super::error;
use crate::common::{file_failure, shell_quoted, write_file};
use crate::terminal::print;
use clap::Args;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::suggestion;
use std::io::{BufRead, IsTerminal as _, Write};
use std::path::Path;

/// Numbers of a new pipeline.
#[derive(Args, Debug, Default, PartialEq)]
#[command(next_help_heading = "Numbers of a new pipeline")]
pub(crate) struct NumberArgs {
    /// Number of beads.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub beads: Option<f64>,
    /// Beads in a chain.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub chain: Option<f64>,
    /// Number density; of a brush, chains per area.
    #[arg(long, value_name = "RHO", allow_negative_numbers = true)]
    pub density: Option<f64>,
    /// Temperature, as an energy.
    #[arg(long = "kT", value_name = "KT", allow_negative_numbers = true)]
    pub kt: Option<f64>,
    /// Length of the run in steps; of walks, their number.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub steps: Option<f64>,
}

/// A number that the user chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Beads,
    Chain,
    Density,
    Kt,
    Steps,
}

impl Number {
    /// Returns the option without dashes.
    fn option(self) -> &'static str {
        match self {
            Self::Beads => "beads",
            Self::Chain => "chain",
            Self::Density => "density",
            Self::Kt => "kT",
            Self::Steps => "steps",
        }
    }

    fn given(self, args: &NumberArgs) -> Option<f64> {
        match self {
            Self::Beads => args.beads,
            Self::Chain => args.chain,
            Self::Density => args.density,
            Self::Kt => args.kt,
            Self::Steps => args.steps,
        }
    }

    /// Returns why a value is invalid.
    fn refused(self, value: f64) -> Option<String> {
        let (low, high) = match self {
            Self::Beads => (8.0, 1e8),
            Self::Chain => (2.0, 1e4),
            Self::Density => (1e-4, 100.0),
            Self::Kt => (1e-6, 1e6),
            Self::Steps => (1.0, 1e15),
        };
        let whole = matches!(self, Self::Beads | Self::Chain | Self::Steps);
        let kind = if whole { "a whole number" } else { "a number" };
        let valid = (low..=high).contains(&value) && (!whole || value.fract() == 0.0);
        (!valid).then(|| format!("{} must be {kind} from {low} to {high}", self.option()))
    }
}

/// A pipeline that can be written.
struct Template {
    name: &'static str,
    /// What it simulates, for messages.
    about: &'static str,
    /// What to ask, in what words, with the default.
    numbers: &'static [(Number, &'static str, f64)],
    /// Least side of the box: twice the longest cutoff or bond.
    least_side: f64,
    /// Files: name and text with placeholders.
    files: &'static [(&'static str, &'static str)],
    /// Commands to run after it, for the message.
    then: &'static [&'static str],
}

const BEADS: &str = "number of beads";
const DENSITY: &str = "number density";
const KT: &str = "kT";
const STEPS: &str = "length of the run in steps";
const CHAIN: &str = "beads in a chain";

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../../templates/pipelines/", $name, ".ron"))
    };
}

use Number::{Beads, Chain, Density, Kt, Steps};

const TEMPLATES: [Template; 10] = [
    Template {
        name: "melt",
        about: "a melt of bead-spring chains",
        numbers: &[
            (Beads, BEADS, 2000.0),
            (Chain, CHAIN, 20.0),
            (Density, DENSITY, 0.85),
            (Kt, KT, 1.0),
            (Steps, STEPS, 20_000.0),
        ],
        least_side: 3.0,
        files: &[("sim.ron", file!("melt"))],
        then: &["galamost stats melt.csv", "galamost report sim.ron"],
    },
    Template {
        name: "liquid",
        about: "a Lennard-Jones liquid",
        numbers: &[(Beads, BEADS, 2048.0), (Density, DENSITY, 0.7), (Kt, KT, 1.2), (Steps, STEPS, 20_000.0)],
        least_side: 6.0,
        files: &[("sim.ron", file!("liquid"))],
        then: &["galamost stats liquid.csv", "galamost report sim.ron"],
    },
    Template {
        name: "dpd",
        about: "two liquids that demix, by dissipative particle dynamics",
        numbers: &[(Beads, BEADS, 3000.0), (Density, DENSITY, 3.0), (Kt, KT, 1.0), (Steps, STEPS, 5000.0)],
        least_side: 2.0,
        files: &[("sim.ron", file!("dpd"))],
        then: &["galamost stats dpd.csv", "galamost report sim.ron"],
    },
    Template {
        name: "brush",
        about: "chains grafted to a plane",
        numbers: &[
            (Beads, BEADS, 1600.0),
            (Chain, CHAIN, 20.0),
            (Density, "chains per area", 0.2),
            (Kt, KT, 1.0),
            (Steps, STEPS, 20_000.0),
        ],
        least_side: 3.0,
        files: &[("sim.ron", file!("brush"))],
        then: &["galamost plot profile.csv --y density_A", "galamost report sim.ron"],
    },
    Template {
        name: "field",
        about: "two liquids that demix in the field of their densities (MD-SCF)",
        numbers: &[(Beads, BEADS, 4000.0), (Density, DENSITY, 4.0), (Kt, KT, 1.0), (Steps, STEPS, 5000.0)],
        least_side: 0.0,
        files: &[("sim.ron", file!("field"))],
        then: &["galamost stats field.csv", "galamost report sim.ron"],
    },
    Template {
        name: "janus",
        about: "soft Janus particles in a solvent",
        numbers: &[
            (Beads, "number of particles", 1000.0),
            (Density, DENSITY, 3.0),
            (Kt, KT, 1.0),
            (Steps, STEPS, 10_000.0),
        ],
        least_side: 2.0,
        files: &[("sim.ron", file!("janus"))],
        then: &["galamost render janus.gsd --hide S", "galamost report sim.ron"],
    },
    Template {
        name: "electrolyte",
        about: "ions in an implicit solvent, with Coulomb interactions by PPPM",
        numbers: &[(Beads, "number of ions", 1000.0), (Density, DENSITY, 0.1), (Kt, KT, 1.0), (Steps, STEPS, 20_000.0)],
        least_side: 2.25,
        files: &[("sim.ron", file!("electrolyte"))],
        then: &["galamost stats electrolyte.csv", "galamost plot rdf.csv", "galamost report sim.ron"],
    },
    Template {
        name: "polymerization",
        about: "monomers that react to a network",
        numbers: &[
            (Beads, "number of monomers", 3000.0),
            (Density, DENSITY, 3.0),
            (Kt, KT, 1.0),
            (Steps, STEPS, 5000.0),
        ],
        least_side: 2.0,
        files: &[("sim.ron", file!("polymerization"))],
        then: &["galamost plot chains.csv", "galamost report sim.ron"],
    },
    Template {
        name: "ibi",
        about: "a potential from a distribution, by iterative Boltzmann inversion",
        numbers: &[
            (Beads, "number of particles", 1000.0),
            (Density, DENSITY, 0.7),
            (Kt, KT, 1.0),
            (Steps, STEPS, 20_000.0),
        ],
        least_side: 5.0,
        files: &[("sim.ron", file!("ibi")), ("fluid.ron", file!("ibi-fluid")), ("spec.ron", file!("ibi-spec"))],
        then: &["galamost ibi spec.ron"],
    },
    Template {
        name: "walks",
        about: "self-avoiding walks by the Rosenbluth method",
        numbers: &[(Chain, "beads in a walk", 48.0), (Steps, "number of walks", 100_000.0)],
        least_side: 0.0,
        files: &[("sim.ron", file!("walks"))],
        then: &["galamost plot walks.csv --y ln_Z"],
    },
];

/// Returns the largest density for which chains and ions find places; of a brush, chains per area. `Polymers` grows one chain after the
/// other in any direction, so long chains block others.
fn largest_density(name: &str, chain: f64) -> Option<f64> {
    match name {
        "melt" | "electrolyte" => Some(1.2),
        // to four decimals, as messages give it
        "brush" => Some((5e3 * (20.0 / chain).powf(0.6).min(1.0)).floor() / 1e4),
        _ => None,
    }
}

/// Runs `galamost new pipeline KIND`. On a terminal it asks for the numbers that no option gives.
///
/// # Errors
/// Returns an error if the kind or a number is invalid, or if a file exists.
pub(super) fn run(kind: &str, folder: &Path, args: &NumberArgs) -> Result<u8, Failure> {
    let Some(template) = TEMPLATES.iter().find(|t| t.name == kind) else {
        let names = TEMPLATES.iter().map(|t| t.name);
        return Err(error(format!("unknown pipeline `{kind}`; {}", suggestion(kind, names))));
    };
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let values = if terminal {
        ask(template, args, &mut std::io::stdin().lock(), &mut std::io::stderr())?
    } else {
        ask(template, args, &mut std::io::empty(), &mut std::io::sink())?
    };
    let existing = template.files.iter().map(|(file, _)| folder.join(file)).find(|p| p.exists());
    if let Some(path) = existing {
        return Err(error(format!("{} exists already; give another --folder", path.display())));
    }
    std::fs::create_dir_all(folder).map_err(|e| file_failure(folder, e))?;
    for (k, (file, text)) in template.files.iter().enumerate() {
        write_file(&folder.join(file), filled(text, &values)).inspect_err(|_| {
            // they are useless without the others, and a second attempt would be refused
            template.files[..k].iter().for_each(|(file, _)| drop(std::fs::remove_file(folder.join(file))));
        })?;
    }
    let here = folder == Path::new(".");
    let file = if here { "sim.ron".into() } else { folder.join("sim.ron") };
    let mut message = format!("created {}: {}\n", template.about, file.display());
    if let Some(given) = args.beads
        && let Some(whole) = template.files.iter().map(|(_, text)| whole_beads(text, &values)).find(|n| *n != given)
    {
        let has = |mark: &str| template.files.iter().any(|(_, text)| text.contains(mark));
        let unit = match () {
            () if has("$cells") => "lattice cells",
            () if has("$half") => "pairs of ions",
            () => "chains",
        };
        message += &format!("{whole} beads instead of {given}: a whole number of {unit}\n");
    }
    message.push('\n');
    if !here {
        message += &format!("    cd {}\n", shell_quoted(&folder.to_string_lossy()));
    }
    message += "    galamost --pipeline sim.ron\n";
    template.then.iter().for_each(|line| message += &format!("    {line}\n"));
    print(message)?;
    Ok(0)
}

/// Takes the numbers from the options, from answers, or from the defaults. An empty line or the end of the input stands for
/// the default.
///
/// # Errors
/// Returns an error if an option is invalid or does not apply to this pipeline, or if numbers do not fit together.
fn ask(
    template: &Template,
    args: &NumberArgs,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Result<Vec<(Number, f64)>, Failure> {
    let all = [Beads, Chain, Density, Kt, Steps];
    let used = |n: &Number| template.numbers.iter().any(|(m, ..)| m == n);
    if let Some(n) = all.into_iter().find(|n| n.given(args).is_some() && !used(n)) {
        return Err(error(format!("--{} does not apply to the pipeline `{}`", n.option(), template.name)));
    }
    let mut values = vec![];
    for (number, question, default) in template.numbers {
        let value = match number.given(args) {
            Some(v) => number.refused(v).map_or(Ok(v), |why| Err(error(format!("--{why}"))))?,
            None => answer(*number, question, *default, input, output),
        };
        values.push((*number, value));
    }
    match unsuitable(template, &values) {
        Some(message) => Err(error(message)),
        None => Ok(values),
    }
}

/// Returns why numbers do not fit together: the pipeline would not pass its check.
fn unsuitable(template: &Template, values: &[(Number, f64)]) -> Option<String> {
    let of = |n: Number| values.iter().find(|v| v.0 == n).map(|v| v.1);
    let name = template.name;
    if let (Some(beads), Some(chain)) = (of(Beads), of(Chain)) {
        if name == "brush" && chain < 3.0 {
            return Some("a chain of a brush has at least 3 beads; give more with --chain".into());
        }
        if beads < 2.0 * chain {
            return Some(format!("{beads} beads are fewer than two chains of {chain}; give more with --beads"));
        }
    }
    // `Polymers` finds no place for more beads
    let chain = of(Chain).unwrap_or(1.0);
    let most = largest_density(name, chain).filter(|most| of(Density).is_some_and(|d| d > *most));
    if let Some(most) = most {
        let chains = if name == "brush" { format!(" with chains of {chain} beads") } else { String::new() };
        return Some(format!(
            "the --density of {name} is at most {most}{chains}: there is no room for more chains or ions"
        ));
    }
    let text = template.files[0].1;
    // 5 % of the particles are Janus particles
    if name == "janus" && whole_beads(text, values) < 27.0 {
        return Some(
            "janus needs at least 27 particles, of which one is a Janus particle; give more with --beads".into(),
        );
    }
    let (side, least) = (shortest_side(text, values), template.least_side);
    (side < least).then(|| {
        format!(
            "the box of {name} would be {side:.4} wide, but needs {least} for its cutoffs; give more with --beads, or a lower \
             --density"
        )
    })
}

/// Asks until the answer is valid.
fn answer(number: Number, question: &str, default: f64, input: &mut dyn BufRead, output: &mut dyn Write) -> f64 {
    loop {
        let _ = write!(output, "{question} [{default}]: ");
        let _ = output.flush();
        let mut line = String::new();
        if !matches!(input.read_line(&mut line), Ok(n) if n > 0) || line.trim().is_empty() {
            return default;
        }
        let value = line.trim().replace('_', "").parse().unwrap_or(f64::NAN);
        match number.refused(value) {
            None => return value,
            Some(why) => drop(writeln!(output, "{why}")),
        }
    }
}

/// Formats a number with a decimal point, as fields of the type number are written.
fn real(x: f64) -> String {
    format!("{x:?}")
}

/// Formats a length that follows from other numbers, with four decimals.
fn rounded(x: f64) -> String {
    real((x * 1e4).round() / 1e4)
}

/// Returns a number by name, or 1.
fn value(values: &[(Number, f64)], n: Number) -> f64 {
    values.iter().find(|(m, _)| *m == n).map_or(1.0, |v| v.1)
}

/// Returns the particles in a cell of the lattice in a text, and the cells along each side of the box.
fn lattice(text: &str, values: &[(Number, f64)]) -> (f64, f64) {
    let particles = if text.contains("Fcc") { 4.0 } else { 1.0 };
    (particles, (value(values, Beads) / particles).cbrt().round().max(2.0))
}

/// Returns the number of beads, in whole cells, pairs of ions, or chains.
fn whole_beads(text: &str, values: &[(Number, f64)]) -> f64 {
    let (beads, chain) = (value(values, Beads), value(values, Chain));
    match () {
        () if text.contains("$cells") => {
            let (particles, cells) = lattice(text, values);
            particles * cells.powi(3)
        }
        // as many anions as cations
        () if text.contains("$half") => 2.0 * (beads / 2.0).round(),
        () if values.iter().any(|v| v.0 == Chain) => (beads / chain).round().max(1.0) * chain,
        () => beads,
    }
}

/// Returns the shortest side of the box; of a brush, the side of its plane.
fn shortest_side(text: &str, values: &[(Number, f64)]) -> f64 {
    let (beads, density) = (whole_beads(text, values), value(values, Density));
    match () {
        // a box that is twice as long in z
        () if text.contains("$grid") => (beads / density / 2.0).cbrt(),
        () if text.contains("$chains") => (beads / value(values, Chain) / density).sqrt(),
        () => (beads / density).cbrt(),
    }
}

/// Fills the placeholders of a text.
fn filled(text: &str, values: &[(Number, f64)]) -> String {
    let value = |n: Number| value(values, n);
    let (chain, density) = (value(Chain), value(Density));
    let whole = |x: f64| format!("{}", x.round().max(1.0));
    let (_, cells) = lattice(text, values);
    let (beads, box_length) = (whole_beads(text, values), shortest_side(text, values));
    let mut more = vec![];
    if text.contains("$grid") {
        // cells of about one length
        let grid = box_length.round().max(4.0);
        more.extend([("$grid2", whole(2.0 * grid)), ("$grid", whole(grid)), ("$box2", rounded(2.0 * box_length))]);
    }
    if text.contains("$chains") {
        let chains = (beads / chain).round().max(1.0);
        // room for stretched chains between walls one length from both ends of the box
        let height = (chain + 6.0).max(box_length);
        more.extend([
            ("$chains", whole(chains)),
            ("$free", whole(chain - 1.0)),
            ("$height", rounded(height)),
            ("$bottom", rounded(2.0 - 0.5 * height)),
            ("$wall", rounded(1.0 - 0.5 * height)),
            ("$top", rounded(0.5 * height - 1.0)),
        ]);
    }
    if text.contains("$half") {
        more.extend([("$half", whole(beads / 2.0)), ("$reach", rounded(5f64.min(0.49 * box_length)))]);
    }
    more.extend([
        ("$beads", whole(beads)),
        ("$chain", whole(chain)),
        ("$density", real(density)),
        ("$kT", real(value(Kt))),
        ("$steps", whole(value(Steps))),
        ("$cells", whole(cells)),
        ("$box", rounded(box_length)),
    ]);
    more.into_iter().fold(text.to_string(), |text, (name, value)| text.replace(name, &value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_options_and_defaults_are_used() {
        let melt = &TEMPLATES[0];
        let args = NumberArgs { density: Some(0.9), ..NumberArgs::default() };
        let mut shown = vec![];
        let mut input = "many\n1_000\n\n1.5\n".as_bytes();
        let values = ask(melt, &args, &mut input, &mut shown).expect("numbers");
        assert_eq!(values, [(Beads, 1000.0), (Chain, 20.0), (Density, 0.9), (Kt, 1.5), (Steps, 20_000.0)]);
        let shown = String::from_utf8(shown).expect("text");
        assert!(shown.starts_with("number of beads [2000]: beads must be a whole number from 8 to"), "{shown}");
        let args = NumberArgs { density: Some(-1.0), ..NumberArgs::default() };
        assert!(ask(melt, &args, &mut std::io::empty(), &mut vec![]).is_err());
        let args = NumberArgs { kt: Some(1.0), ..NumberArgs::default() };
        assert!(ask(&TEMPLATES[9], &args, &mut std::io::empty(), &mut vec![]).is_err(), "walks have no kT");
    }

    #[test]
    fn no_placeholder_remains() {
        for t in &TEMPLATES {
            let values: Vec<(Number, f64)> = t.numbers.iter().map(|(n, _, v)| (*n, *v)).collect();
            for (_, text) in t.files {
                assert!(text.contains('$') && !filled(text, &values).contains('$'), "{}", t.name);
            }
        }
    }
}
