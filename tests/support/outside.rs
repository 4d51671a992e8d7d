//! What cargo has compiled for the workspace, for crates outside of it.

use std::path::Path;
use std::process::Command;

/// Gives cargo the workspace's profile, which the shared dependencies have. The crate itself is compiled at this level, and the
/// plugin API without optimization.
pub fn set_profile(cargo: &mut Command, folder: &Path, level: u8) {
    for (name, value) in [("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"), ("CARGO_PROFILE_RELEASE_STRIP", "debuginfo")] {
        if std::env::var_os(name).is_none() {
            cargo.env(name, value);
        }
    }
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
    let name = manifest.lines().find_map(|l| l.strip_prefix("name = ")).expect("a name");
    for (name, level) in [(name, level), ("galamost-plugin-api", 0)] {
        cargo.args(["--config", &format!("profile.release.package.{name}.opt-level={level}")]);
    }
}

/// Features that other crates of the workspace enable in dependencies of the plugin API. Without them, cargo would compile
/// these and what depends on them once more; `tests/house.rs` checks it.
const FEATURES: &str = r#"
# only for their features: those of the workspace, so that these crates are shared
[dependencies.bitflags]
version = "2"
features = ["std"]
[dependencies.serde_core]
version = "1"
[build-dependencies.syn]
version = "3"
features = ["extra-traits", "full"]
"#;

/// Gives a crate the features that its dependencies have in the workspace.
pub fn share_features(folder: &Path) {
    let path = folder.join("Cargo.toml");
    let manifest = std::fs::read_to_string(&path).expect("a manifest");
    if !manifest.contains(FEATURES) {
        std::fs::write(path, manifest + FEATURES).expect("written");
    }
}

/// Gives a new output folder what cargo has compiled in `from`: cargo then compiles only what differs. Without it, cargo
/// compiles everything.
pub fn share_dependencies(from: &Path, to: &Path) {
    for name in ["build", "deps", ".fingerprint"] {
        if from.join(name).exists() && !to.join(name).exists() {
            share(&from.join(name), &to.join(name), name == ".fingerprint").expect("shared");
        }
    }
}

/// Links files, or copies them with their times: cargo overwrites its records.
fn share(from: &Path, to: &Path, copy: bool) -> std::io::Result<()> {
    if from.is_dir() {
        std::fs::create_dir_all(to)?;
        std::fs::read_dir(from)?.try_for_each(|e| {
            let name = e?.file_name();
            share(&from.join(&name), &to.join(&name), copy)
        })
    } else if copy {
        std::fs::copy(from, to)?;
        std::fs::File::options().write(true).open(to)?.set_modified(from.metadata()?.modified()?)
    } else {
        std::fs::hard_link(from, to)
    }
}
