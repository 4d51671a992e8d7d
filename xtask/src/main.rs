//! `cargo xtask dist`: builds the release folder, which needs only a driver and NVRTC to run.
//! `cargo xtask wheel`: builds the Python package.
//! `cargo xtask docs`: builds the book.
//! `cargo xtask validate`: runs the tests that take minutes.
//! `cargo xtask hostile`, `kills`, `soak`: builds and starts the long runs of hostile input, kills and soaks.
//! `cargo xtask freeze-api`: archives the current plugin API, for the test that plugins built with it still load.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use xtask::{USAGE, dist, docs, freeze, repository, run, target, validate, wheel};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let result = match args.next().as_deref() {
        Some("dist") => dist::build(args.next().map(PathBuf::from)).map(|to| println!("{}", to.display())),
        Some("wheel") => wheel::build(args),
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

/// Writes the archive of the current plugin API and returns its path.
fn freeze_api(root: &Path) -> Result<PathBuf, String> {
    let (name, bytes) = freeze::pack(root)?;
    let to = root.join("tests/abi/frozen").join(format!("{name}.tar.gz"));
    std::fs::create_dir_all(to.parent().unwrap_or(root)).map_err(|e| e.to_string())?;
    std::fs::write(&to, bytes).map_err(|e| format!("{}: {e}", to.display()))?;
    Ok(to)
}
