//! Maintenance tasks, some of which tests also use: the release folder and the Python package, checking the links of the
//! book, building the book, packing the archive of the plugin API, and running the tests that take minutes.

pub mod dist;
pub mod docs;
pub mod freeze;
pub mod links;
pub mod validate;
pub mod wheel;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Help text: all commands of `cargo xtask`.
pub const USAGE: &str =
    "cargo xtask dist [FOLDER]   build the release folder: bin/, lib/galamost/plugins/, examples/, docs/
cargo xtask wheel …         build the Python package: command, plugins, module (needs maturin)
    --profile PROFILE       profile of cargo [default: dist]
    --out FOLDER            write the wheel to this folder [default: dist]
    --stage                 only build and collect the files beside the module
    --glibc 2.28            link against this glibc, also for older systems (needs cargo-zigbuild)
    --sdist                 pack the sources for pip instead
cargo xtask docs            write the component reference, check links, build the book with mdbook
cargo xtask hostile …       feed mutated files to the program for some minutes (arguments: --help)
cargo xtask kills …         kill and resume runs of all examples, and compare their outputs
cargo xtask soak …          watch the memory and the speed of a long run
cargo xtask freeze-api      pack the plugin API into tests/abi/frozen/plugin-api-MAJOR.MINOR.tar.gz
cargo xtask validate        run all tests that take long, on the CPU and on a GPU if there is one, and the readers of other
                            programs; write a dated report to benches/validation/reports
    --device DEVICE         run the physics tests on this device (repeatable)
    --only TEXT             run tests whose name contains TEXT
    --program FILE          use this compiled test program (on a machine without Rust)
    --folder FOLDER         write the report to this folder
    --seconds               run those that need some seconds each, without the readers
    --no-readers            leave out the readers of OVITO, LAMMPS and PyGAMD
    --jobs N                run N tests at the same time (1; tests that measure times need 1)
";

/// Returns the root of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap_or_else(|_| ".".into())
}

/// Returns cargo's output folder of the repository.
#[must_use]
pub fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |t| root.join(t))
}

/// Runs a command.
///
/// # Errors
/// Returns an error if it does not start or does not end with success.
pub fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// Returns cargo.
#[must_use]
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
