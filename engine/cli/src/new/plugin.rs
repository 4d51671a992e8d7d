//! `galamost new KIND NAME`: creates a plugin crate that builds, passes its tests and contains an example.

use super::{NewArgs, error};
use crate::common::{file_failure, write_file};
use crate::terminal::print;
use galamost_engine::diagnostic::Failure;
use std::path::{Path, PathBuf};

/// Kind, description, source template and body of the example pipeline. In the pipeline, `@` stands for the component
/// and `&` for [`LIQUID`].
const KINDS: &[(&str, &str, &str, &str)] = &[
    ("pair", "a pair potential", include_str!("../../templates/pair.rs"), PAIR),
    (
        "oriented-pair",
        "a pair potential of particles with an orientation",
        include_str!("../../templates/oriented_pair.rs"),
        ORIENTED,
    ),
    ("bond", "a bond potential", include_str!("../../templates/bond.rs"), CHAIN),
    ("angle", "an angle potential", include_str!("../../templates/angle.rs"), CHAIN),
    ("dihedral", "a dihedral potential", include_str!("../../templates/dihedral.rs"), CHAIN),
    ("improper", "an improper potential", include_str!("../../templates/improper.rs"), CHAIN),
    ("force", "a force with its own kernel", include_str!("../../templates/force.rs"), PAIR),
    ("integrator", "an integrator", include_str!("../../templates/integrator.rs"), INTEGRATOR),
    ("updater", "an updater", include_str!("../../templates/updater.rs"), UPDATER),
    ("analyzer", "an analyzer", include_str!("../../templates/analyzer.rs"), ANALYZER),
    ("generator", "a generator", include_str!("../../templates/generator.rs"), GENERATOR),
    ("sampler", "a sampler", include_str!("../../templates/sampler.rs"), SAMPLER),
];

const PAIR: &str = "    initial: [
        Lattice(lattice: Fcc, cells: [6, 6, 6], density: 0.5, types: { \"A\": 0.5, \"B\": 0.5 }),
        Velocities(kT: 1.0),
    ],
    forces: [ @ ],
    integrators: [ VelocityVerlet() ],
    analyzers: [ Thermo(every: 100, file: \"my-component.csv\") ],
    stages: [ (steps: 1_000, dt: 0.002) ],
";
const ORIENTED: &str = "    initial: [
        Lattice(lattice: Fcc, cells: [6, 6, 6], density: 1.0, types: { \"A\": 0.5, \"B\": 0.5 }),
        Velocities(kT: 1.0),
        Orientations(inertia: (0.1, 0.1, 0.0), kT: 1.0),
    ],
    forces: [ @ ],
    // propagates positions and orientations
    integrators: [ RotationalVerlet() ],
    analyzers: [ Thermo(every: 100, file: \"my-component.csv\") ],
    stages: [ (steps: 1_000, dt: 0.002) ],
";
const CHAIN: &str = "    // a chain of eight particles, in a file beside this one
    initial: [ GalamostXml(file: \"chain.xml\"), Velocities(kT: 1.0) ],
    forces: [ @ ],
    integrators: [ VelocityVerlet() ],
    analyzers: [ Thermo(every: 100, file: \"my-component.csv\") ],
    stages: [ (steps: 1_000, dt: 0.001) ],
";
const LIQUID: &str = "    initial: [ Lattice(lattice: Fcc, cells: [6, 6, 6], density: 0.7), Velocities(kT: 1.0) ],
    forces: [ LennardJones(r_cut: 2.5, pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) }) ],
";
const INTEGRATOR: &str = "&    integrators: [ @ ],
    analyzers: [ Thermo(every: 100, file: \"my-component.csv\") ],
    stages: [ (steps: 1_000, dt: 0.002) ],
";
const UPDATER: &str = "&    integrators: [ VelocityVerlet() ],
    updaters: [ @ ],
    analyzers: [ Thermo(every: 100, file: \"my-component.csv\") ],
    stages: [ (steps: 1_000, dt: 0.002) ],
";
const ANALYZER: &str = "&    integrators: [ VelocityVerlet() ],
    analyzers: [ @ ],
    stages: [ (steps: 1_000, dt: 0.002) ],
";
const GENERATOR: &str = "    initial: [ @, Velocities(kT: 1.0) ],
    forces: [ HarmonicBond(bonds: { \"A-A\": (k: 50.0, r0: 0.9) }) ],
    integrators: [ VelocityVerlet() ],
    analyzers: [ Thermo(every: 100, file: \"my-component.csv\") ],
    stages: [ (steps: 1_000, dt: 0.002) ],
";

const SAMPLER: &str = "    ensemble: [ @ ],
";

/// Converts `my-potential` to `MyPotential`.
fn camel_case(name: &str) -> String {
    let word = |w: &str| w.chars().take(1).flat_map(char::to_uppercase).chain(w.chars().skip(1)).collect::<String>();
    name.split('-').map(word).collect()
}

/// Returns a GALAMOST XML file with a chain of four A and four B particles: a helix without straight angles in which
/// every type of bond, angle, dihedral and improper occurs.
fn chain_xml() -> String {
    const N: usize = 8;
    let mut x = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<galamost_xml version=\"1.3\">\n\
         <configuration time_step=\"0\" dimensions=\"3\" natoms=\"{N}\" >\n<box lx=\"20\" ly=\"20\" lz=\"20\"/>\n<position num=\"{N}\">\n"
    );
    let type_of = |k: usize| if k < N / 2 { "A" } else { "B" };
    for k in 0..N {
        let a = 1.6 * k as f64;
        x += &format!("{:.6} {:.6} {:.6}\n", 0.6 * a.cos(), 0.6 * a.sin(), 0.5 * k as f64 - 2.0);
    }
    x += &format!("</position>\n<type num=\"{N}\">\n");
    (0..N).for_each(|k| x += &format!("{}\n", type_of(k)));
    x += "</type>\n";
    for (what, w) in [("bond", 2), ("angle", 3), ("dihedral", 4), ("improper", 4)] {
        x += &format!("<{what} num=\"{}\">\n", N + 1 - w);
        for k in 0..=N - w {
            let mut names: Vec<&str> = (k..k + w).map(type_of).collect();
            names.sort_unstable();
            let tags: Vec<String> = (k..k + w).map(|t| t.to_string()).collect();
            x += &format!("{} {}\n", names.join("-"), tags.join(" "));
        }
        x += &format!("</{what}>\n");
    }
    x + "</configuration>\n</galamost_xml>\n"
}

/// Returns the dependency on the plugin API for `Cargo.toml`: the given path or version, else the sources installed with
/// this program, else the path it was built from, else its version.
fn api_dependency(given: Option<&str>) -> Result<String, Failure> {
    let program = std::env::current_exe().and_then(|p| p.canonicalize()).unwrap_or_default();
    let installed = program.parent().map(|bin| bin.join("../share/galamost/plugin-api")).filter(|p| p.exists());
    let built_from = installed.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin-api"));
    let path = match given {
        Some(v) if v.starts_with(|c: char| c.is_ascii_digit()) => return Ok(format!("{v:?}")),
        Some(p) => PathBuf::from(p),
        None if built_from.exists() => built_from,
        None => return Ok(format!("{:?}", env!("CARGO_PKG_VERSION"))),
    };
    let found = path.canonicalize().ok().filter(|p| p.join("Cargo.toml").exists());
    let found = found.ok_or_else(|| error(format!("--api {}: no Cargo.toml in this folder", path.display())))?;
    Ok(format!("{{ path = {:?} }}", found.display().to_string()))
}

/// Creates a plugin crate.
///
/// # Errors
/// Returns an error if the kind or the name is invalid, or if the folder exists.
pub(super) fn run(args: &NewArgs) -> Result<u8, Failure> {
    let name = args.name.as_str();
    check_words(name)?;
    let Some((_, description, source, pipeline)) = KINDS.iter().find(|k| k.0 == args.kind) else {
        let kinds = KINDS.iter().map(|k| k.0).chain(["pipeline"]);
        return Err(error(format!(
            "unknown kind `{}`; {}",
            args.kind,
            galamost_engine::pipeline::suggestion(&args.kind, kinds)
        )));
    };
    check_identifiers(name, source)?;
    let folder = args.folder.clone().unwrap_or_else(|| PathBuf::from(name));
    if folder.exists() {
        return Err(error(format!("{} exists already; give another --folder", folder.display())));
    }
    let api = api_dependency(args.api.as_deref())?;
    for (file, text) in crate_files(name, description, source, pipeline, &api) {
        let path = folder.join(file);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(|e| file_failure(&path, e));
        made.and_then(|()| write_file(&path, text)).inspect_err(|_| {
            // a second attempt would be refused
            let _ = std::fs::remove_dir_all(&folder);
        })?;
    }
    print(format!(
        "created {description}, {}, in {}\n\n    cd {}\n    cargo test                     # unit tests\n    cargo build --release\n    \
         galamost test-plugin target/release/lib{}.so\n    galamost --pipeline {name}.ron --plugin-dir target/release\n\n\
         galamost-plugin-api = {api}; choose another with `--api PATH|VERSION`\n",
        camel_case(name),
        folder.display(),
        folder.display(),
        name.replace('-', "_")
    ))?;
    Ok(0)
}

/// Names of crates that the new one uses, and of Cargo.
const CRATES: &str = "alloc build core deps examples galamost-plugin-api incremental proc-macro std test";

/// Keywords of Rust in all editions and of C++: the name of a plugin is that of functions in both languages.
const KEYWORDS: &str = "abstract alignas alignof and as asm async auto await become bitand bitor bool box break case catch char \
    class compl concept const continue crate decltype default delete do double dyn else enum explicit export \
    extern false final float fn for friend gen goto if impl in inline int let long loop macro main match mod \
    move mut mutable namespace new noexcept not nullptr operator or override priv private protected pub public \
    ref register requires return self short signed sizeof static struct super switch template this throw trait \
    true try type typedef typeid typename typeof union unsafe unsigned unsized use using virtual void volatile \
    where while xor yield";

/// Types that macros of the plugin API or the Rust prelude use without a path.
const TYPES: &str = "Box Clone Copy Debug Default Drop Err Fn None Ok Option Real Result Self Send Sized Some String Sync Vec \
    Vec3";

/// Checks the name of a crate as a name in its source.
///
/// # Errors
/// Returns an error if the crate would not compile: the name is a keyword, a crate, or a name that the source uses already.
fn check_identifiers(name: &str, source: &str) -> Result<(), Failure> {
    let (function, component) = (name.replace('-', "_"), camel_case(name));
    let code = source.lines().filter(|l| !l.trim_start().starts_with("//"));
    let mut words = code
        .flat_map(|l| l.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .filter(|w| !matches!(*w, "my_component" | "MyComponent"));
    let listed = |list: &str, name: &str| list.split(' ').any(|word| word == name);
    let taken = listed(KEYWORDS, name)
        || listed(CRATES, name)
        || listed(TYPES, &component)
        || words.any(|w| w == function || w == component);
    if !taken {
        return Ok(());
    }
    Err(error(format!(
        "invalid crate name `{name}`: it is a keyword, a crate, or a name that the source uses; choose another, as in `my-{name}`"
    )))
}

/// Checks the characters of the name of a crate.
///
/// # Errors
/// Returns an error unless the words of the name consist of lowercase letters and digits and begin with a letter.
fn check_words(name: &str) -> Result<(), Failure> {
    let valid = name.split('-').all(|w| {
        w.starts_with(|c: char| c.is_ascii_lowercase())
            && w.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    });
    if valid {
        return Ok(());
    }
    Err(error(format!("invalid crate name `{name}`: use lowercase letters, digits and `-`, as in `my-potential`")))
}

/// Returns the files of a new crate: path and text.
fn crate_files(name: &str, description: &str, source: &str, pipeline: &str, api: &str) -> Vec<(String, String)> {
    let renamed = |text: &str| {
        text.replace("MyComponent", &camel_case(name))
            .replace("my_component", &name.replace('-', "_"))
            .replace("my-component", name)
    };
    let source = renamed(source);
    let example: Vec<&str> = source
        .lines()
        .skip_while(|l| !l.contains("```ron"))
        .skip(1)
        .take_while(|l| !l.contains("```"))
        .map(|l| l.trim_start_matches('/').trim())
        .collect();
    let pipeline = renamed(&pipeline.replace('&', LIQUID)).replace('@', &example.join("\n        "));
    let manifest = format!(
        "[package]\nname = \"{name}\"\ndescription = \"GALAMOST plugin: {description}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [lib]\ncrate-type = [\"cdylib\"]\n\n[dependencies]\ngalamost-plugin-api = {api}\n\n\
         # independent of any enclosing workspace\n[workspace]\n"
    );
    let run = format!(
        "cargo build --release && galamost --pipeline {name}.ron --plugin-dir target/release   # in this folder"
    );
    let header = format!("// {}: {description}.\n//\n//     {run}\n", camel_case(name));
    let has_chain = pipeline.contains("chain.xml");
    let mut files = vec![
        ("Cargo.toml".to_string(), manifest),
        ("src/lib.rs".into(), source),
        (format!("{name}.ron"), format!("{header}(\n    seed: 1,\n{pipeline})\n")),
        (".gitignore".into(), "/target\n*.csv\n*.checkpoint*\n".into()),
    ];
    if has_chain {
        files.push(("chain.xml".into(), chain_xml()));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        assert_eq!(camel_case("my-potential"), "MyPotential");
        assert_eq!(camel_case("lj96"), "Lj96");
        for bad in ["My", "a b", "", "-a", "a-", "../x", "9a"] {
            assert!(check_words(bad).is_err(), "{bad}");
        }
        let source = |kind: &str| KINDS.iter().find(|k| k.0 == kind).expect("a kind").2;
        for (kind, bad) in [
            ("pair", "fn struct self super async box std real vec3 galamost-plugin-api"),
            ("bond", "crate"),
            ("integrator", "step"),
            ("analyzer", "frame"),
            ("updater", "host"),
            ("generator", "snapshot"),
        ] {
            for name in bad.split(' ') {
                assert!(check_identifiers(name, source(kind)).is_err(), "{kind} {name}");
            }
        }
        for (kind, ..) in KINDS {
            for good in ["my-component", "my-step", "yukawa", "born-mayer", "lj96", "patchy"] {
                assert!(check_identifiers(good, source(kind)).is_ok(), "{kind} {good}");
            }
        }
        let args = NewArgs { kind: "pear".into(), name: "x".into(), ..NewArgs::default() };
        assert!(run(&args).expect_err("no kind").render().contains("pair"));
    }
}
