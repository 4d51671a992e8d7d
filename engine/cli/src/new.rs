//! `galamost new KIND NAME`: a plugin crate that builds, passes its tests and has an example.

use galamost_engine::diagnostic::{Diagnostic, Failure};
use std::path::{Path, PathBuf};

/// Kinds, what they are in a sentence, their source, and the lists of a pipeline that runs them. `@` is the component.
const KINDS: &[(&str, &str, &str, &str)] = &[
    ("pair", "a pair potential", include_str!("../templates/pair.rs"), PAIR),
    (
        "oriented-pair",
        "a pair potential of particles with an orientation",
        include_str!("../templates/oriented_pair.rs"),
        ORIENTED,
    ),
    ("bond", "a bond potential", include_str!("../templates/bond.rs"), CHAIN),
    ("angle", "an angle potential", include_str!("../templates/angle.rs"), CHAIN),
    ("dihedral", "a dihedral potential", include_str!("../templates/dihedral.rs"), CHAIN),
    ("force", "a force with a kernel of its own", include_str!("../templates/force.rs"), PAIR),
    ("integrator", "an integrator", include_str!("../templates/integrator.rs"), INTEGRATOR),
    ("updater", "an updater", include_str!("../templates/updater.rs"), UPDATER),
    ("analyzer", "an analyzer", include_str!("../templates/analyzer.rs"), ANALYZER),
    ("generator", "a generator", include_str!("../templates/generator.rs"), GENERATOR),
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
    // moves and turns
    integrators: [ RotationalVerlet() ],
    analyzers: [ Thermo(every: 100, file: \"my-component.csv\") ],
    stages: [ (steps: 1_000, dt: 0.002) ],
";
const CHAIN: &str = "    // a chain of eight, in a file beside this one
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

fn wrong(message: String) -> Failure {
    Failure::Input(vec![Diagnostic::new("galamost new".as_ref(), None, message)])
}

/// `my-potential` as `MyPotential`.
fn camel(name: &str) -> String {
    let word = |w: &str| w.chars().take(1).flat_map(char::to_uppercase).chain(w.chars().skip(1)).collect::<String>();
    name.split('-').map(word).collect()
}

/// A chain of eight particles, four A and four B, a helix without straight angles: every type of link occurs.
fn chain() -> String {
    const N: usize = 8;
    let mut x = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<galamost_xml version=\"1.3\">\n\
         <configuration time_step=\"0\" dimensions=\"3\" natoms=\"{N}\" >\n<box lx=\"20\" ly=\"20\" lz=\"20\"/>\n<position num=\"{N}\">\n"
    );
    let kind = |k: usize| if k < N / 2 { "A" } else { "B" };
    for k in 0..N {
        let a = 1.6 * k as f64;
        x += &format!("{:.6} {:.6} {:.6}\n", 0.6 * a.cos(), 0.6 * a.sin(), 0.5 * k as f64 - 2.0);
    }
    x += &format!("</position>\n<type num=\"{N}\">\n");
    (0..N).for_each(|k| x += &format!("{}\n", kind(k)));
    x += "</type>\n";
    for (what, w) in [("bond", 2), ("angle", 3), ("dihedral", 4)] {
        x += &format!("<{what} num=\"{}\">\n", N + 1 - w);
        for k in 0..=N - w {
            let mut names: Vec<&str> = (k..k + w).map(kind).collect();
            names.sort_unstable();
            let tags: Vec<String> = (k..k + w).map(|t| t.to_string()).collect();
            x += &format!("{} {}\n", names.join("-"), tags.join(" "));
        }
        x += &format!("</{what}>\n");
    }
    x + "</configuration>\n</galamost_xml>\n"
}

/// How the crate names the plugin API: the given path or version, else the path this program was built from, else its
/// version.
fn api(given: Option<&str>) -> Result<String, Failure> {
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin-api");
    let path = match given {
        Some(v) if v.starts_with(|c: char| c.is_ascii_digit()) => return Ok(format!("{v:?}")),
        Some(p) => PathBuf::from(p),
        None if built_from.exists() => built_from,
        None => return Ok(format!("{:?}", env!("CARGO_PKG_VERSION"))),
    };
    let there = path.canonicalize().ok().filter(|p| p.join("Cargo.toml").exists());
    let there = there.ok_or_else(|| wrong(format!("--api {}: there is no crate", path.display())))?;
    Ok(format!("{{ path = {:?} }}", there.display().to_string()))
}

/// Makes the crate in a new folder and returns what to do next.
///
/// # Errors
/// The kind or the name cannot be used, or the folder is there already.
pub fn new(kind: &str, name: &str, folder: Option<&Path>, api_given: Option<&str>) -> Result<String, Failure> {
    let Some((_, sentence, source, pipeline)) = KINDS.iter().find(|k| k.0 == kind) else {
        let kinds: Vec<&str> = KINDS.iter().map(|k| k.0).collect();
        return Err(wrong(format!(
            "there is no kind `{kind}`; {}",
            galamost_engine::pipeline::suggestion(kind, kinds.iter().copied())
        )));
    };
    let good = name.split('-').all(|w| {
        w.starts_with(|c: char| c.is_ascii_lowercase())
            && w.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    });
    if !good {
        return Err(wrong(format!(
            "`{name}` is no name for a plugin: small letters, digits and `-`, as in `my-potential`"
        )));
    }
    let folder = folder.map_or_else(|| PathBuf::from(name), Path::to_path_buf);
    if folder.exists() {
        return Err(wrong(format!("{} is there already", folder.display())));
    }
    let named = |text: &str| {
        text.replace("MyComponent", &camel(name))
            .replace("my_component", &name.replace('-', "_"))
            .replace("my-component", name)
    };
    let source = named(source);
    let example: Vec<&str> = source
        .lines()
        .skip_while(|l| !l.contains("```ron"))
        .skip(1)
        .take_while(|l| !l.contains("```"))
        .map(|l| l.trim_start_matches('/').trim())
        .collect();
    let pipeline = named(&pipeline.replace('&', LIQUID)).replace('@', &example.join("\n        "));
    let run = format!(
        "cargo build --release && galamost --pipeline {name}.ron --plugin-dir target/release   # from this folder"
    );
    let api = api(api_given)?;
    let files = [
        (
            "Cargo.toml",
            format!(
                "[package]\nname = \"{name}\"\ndescription = \"GALAMOST plugin: {sentence}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
                 [lib]\ncrate-type = [\"cdylib\"]\n\n[dependencies]\ngalamost-plugin-api = {}\n\n\
                 # a crate of its own, wherever it lies\n[workspace]\n",
                api
            ),
        ),
        ("src/lib.rs", source.clone()),
        (&*format!("{name}.ron"), format!("// {}: {sentence}.\n//\n//     {run}\n(\n    seed: 1,\n{pipeline})\n", camel(name))),
        (".gitignore", "/target\n*.csv\n*.checkpoint*\n".into()),
    ]
    .map(|(f, t)| (f.to_string(), t));
    let chain = pipeline.contains("chain.xml").then(|| ("chain.xml".to_string(), chain()));
    for (file, text) in files.into_iter().chain(chain) {
        let path = folder.join(file);
        let written = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&path, text));
        written.map_err(|e| Failure::run(format!("{}: {e}", path.display())))?;
    }
    Ok(format!(
        "{sentence}, {}, is in {}\n\n    cd {}\n    cargo test                     # the tests of its source\n    cargo build --release\n    \
         galamost test-plugin target/release/lib{}.so\n    galamost --pipeline {name}.ron --plugin-dir target/release\n\n\
         galamost-plugin-api is taken from {api}; `--api PATH|VERSION` takes another\n",
        camel(name),
        folder.display(),
        folder.display(),
        name.replace('-', "_")
    ))
}

#[cfg(test)]
mod tests {
    #[test]
    fn names() {
        assert_eq!(super::camel("my-potential"), "MyPotential");
        assert_eq!(super::camel("lj96"), "Lj96");
        for bad in ["My", "a b", "", "-a", "a-", "../x", "9a"] {
            assert!(super::new("pair", bad, None, None).is_err(), "{bad}");
        }
        assert!(super::new("pear", "x", None, None).expect_err("no kind").render().contains("pair"));
    }
}
