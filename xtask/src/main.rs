//! `cargo xtask dist`: builds the release folder, which needs only a driver and NVRTC to run.
//! `cargo xtask docs`: builds the book.
//! `cargo xtask validate`: runs the tests that take minutes.
//! `cargo xtask hostile`, `kills`, `soak`: builds and starts the long runs of hostile input, kills and soaks.
//! `cargo xtask freeze-api`: archives the current plugin API, for the test that plugins built with it still load.

use std::env::consts::{DLL_EXTENSION, DLL_PREFIX};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use xtask::{USAGE, docs, freeze, repository, target, validate};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let result = match args.next().as_deref() {
        Some("dist") => dist(args.next().map(PathBuf::from)),
        Some("docs") => book().map(|book| println!("{}", book.join("index.html").display())),
        Some(name @ ("hostile" | "kills" | "soak")) => instruments(name, args),
        Some("freeze-api") => freeze_api(&repository()).map(|archive| println!("{}", archive.display())),
        Some("validate") => validated(&args.collect::<Vec<_>>()),
        _ => Err(USAGE.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the tests that take minutes.
fn validated(args: &[String]) -> Result<(), String> {
    let root = repository();
    let (report, passed) = validate::validate(&root, &validate::Options::parse(&root, args)?)?;
    println!("{}", report.display());
    if passed { Ok(()) } else { Err("not everything passed".into()) }
}

/// Builds the book, using the release build of the program.
fn book() -> Result<PathBuf, String> {
    let root = repository();
    docs::build(&root, &target(&root).join("release/galamost"))
}

/// Builds the program, its plugins and the instruments, and starts an instrument with the remaining arguments.
fn instruments(name: &str, args: impl Iterator<Item = String>) -> Result<(), String> {
    let root = repository();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    for more in [&[][..], &["--package", "galamost-instruments"]] {
        run(Command::new(&cargo).current_dir(&root).args(["build", "--release"]).args(more))?;
    }
    run(Command::new(target(&root).join("release/galamost-instruments")).current_dir(&root).arg(name).args(args))
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    std::fs::copy(from, to).map(|_| ()).map_err(|e| format!("{} to {}: {e}", from.display(), to.display()))
}

/// Lists the plugins: the folders of `plugins/` with a manifest. The library of a plugin has the name of its folder.
fn plugins(root: &Path) -> Result<Vec<String>, String> {
    let list = std::fs::read_dir(root.join("plugins")).map_err(|e| e.to_string())?;
    let mut names: Vec<String> = list
        .filter_map(|e| e.ok())
        .filter(|e| e.path().join("Cargo.toml").exists())
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// Writes the archive of the current plugin API and returns its path.
fn freeze_api(root: &Path) -> Result<PathBuf, String> {
    let (name, bytes) = freeze::pack(root)?;
    let to = root.join("tests/abi/frozen").join(format!("{name}.tar.gz"));
    std::fs::create_dir_all(to.parent().unwrap_or(root)).map_err(|e| e.to_string())?;
    std::fs::write(&to, bytes).map_err(|e| format!("{}: {e}", to.display()))?;
    Ok(to)
}

/// Builds the release folder.
fn dist(folder: Option<PathBuf>) -> Result<(), String> {
    let root = repository();
    let plugins = plugins(&root)?;
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.current_dir(&root).args(["build", "--profile", "dist", "--package", "galamost"]);
    for p in &plugins {
        build.args(["--package", p]);
    }
    run(&mut build)?;
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("galamost-{version}-{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let to = folder.unwrap_or_else(|| root.join("dist").join(name));
    let output = target(&root).join("dist");
    let library = to.join("lib/galamost/plugins");
    for d in [to.join("bin"), library.clone(), to.join("examples"), to.join("cases")] {
        if d.exists() {
            std::fs::remove_dir_all(&d).map_err(|e| e.to_string())?;
        }
        std::fs::create_dir_all(&d).map_err(|e| format!("{}: {e}", d.display()))?;
    }
    copy(&output.join("galamost"), &to.join("bin/galamost"))?;
    for p in &plugins {
        let file = format!("{DLL_PREFIX}{}.{DLL_EXTENSION}", p.replace('-', "_"));
        copy(&output.join(&file), &library.join(&file))?;
    }
    copy_examples(&root, &to.join("examples"))?;
    copy_cases(&root, &to.join("cases"))?;
    // the program contains the font, so its license must be shipped
    copy(&root.join("plugins/support/pictures/font/LICENSE-DEJAVU"), &to.join("LICENSE-DEJAVU"))?;
    for f in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"] {
        if root.join(f).exists() {
            copy(&root.join(f), &to.join(f))?;
        }
    }
    add_book(&root, &output.join("galamost"), &to)?;
    println!("{}", to.display());
    Ok(())
}

/// Copies the examples without the output of earlier runs.
fn copy_examples(root: &Path, to: &Path) -> Result<(), String> {
    for e in std::fs::read_dir(root.join("examples")).map_err(|e| e.to_string())?.filter_map(|e| e.ok()) {
        let path = e.path();
        // files with other extensions, or with a step before the extension, are output of a run
        let name = e.file_name().to_string_lossy().into_owned();
        let extension = name.split_once('.').map_or("", |(_, extension)| extension);
        if ["ron", "xml", "xml.gz", "dump", "pdb"].contains(&extension) {
            copy(&path, &to.join(e.file_name()))?;
        } else if path.is_dir() {
            // an example of several files; its subfolders are output of a run
            let folder = to.join(e.file_name());
            std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
            for e in std::fs::read_dir(&path).map_err(|e| e.to_string())?.filter_map(|e| e.ok()) {
                if e.path().is_file() {
                    copy(&e.path(), &folder.join(e.file_name()))?;
                }
            }
        }
    }
    Ok(())
}

/// Copies the benchmark cases and their data.
fn copy_cases(root: &Path, to: &Path) -> Result<(), String> {
    std::fs::create_dir_all(to).map_err(|e| e.to_string())?;
    for e in std::fs::read_dir(root.join("benches/cases")).map_err(|e| e.to_string())?.filter_map(|e| e.ok()) {
        copy(&e.path(), &to.join(e.file_name()))?;
    }
    let data = "dppc-water-21216.xml.xz";
    copy(&root.join("tests/data").join(data), &to.join(data))
}

/// Adds the book to the release folder, if mdbook is installed.
fn add_book(root: &Path, program: &Path, to: &Path) -> Result<(), String> {
    if !docs::has_mdbook() {
        eprintln!(
            "mdbook is not installed, so the release folder has no docs/; run `cargo install mdbook --locked` to add them"
        );
        return Ok(());
    }
    docs::copy_tree(&docs::build(root, program)?, &to.join("docs"))
}
