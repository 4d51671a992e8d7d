//! The Python package: the module, the `galamost` command, the plugins, examples, and the sources that plugins are built
//! with. maturin builds the module and packs the wheel; this task builds and collects everything beside the module.

use crate::dist::{build_program, copy, copy_cases, copy_examples, copy_plugins, empty};
use crate::{freeze, repository, run, target};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the package.
const PACKAGE: &str = "engine/python";
/// The folder in the package with the files beside the module, which maturin packs as the wheel's data.
const STAGE: &str = ".wheel";

struct Options {
    profile: String,
    out: PathBuf,
    stage_only: bool,
    sdist: bool,
    /// The minor version of the glibc to link against; `None`: that of this machine.
    glibc: Option<u32>,
}

impl Options {
    fn parse(root: &Path, mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut o =
            Self { profile: "dist".into(), out: root.join("dist"), stage_only: false, sdist: false, glibc: None };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value"));
            match arg.as_str() {
                "--profile" => o.profile = value()?,
                "--out" => o.out = value()?.into(),
                "--stage" => o.stage_only = true,
                "--sdist" => o.sdist = true,
                "--glibc" => {
                    let version = value()?;
                    let minor = version.strip_prefix("2.").and_then(|minor| minor.parse().ok());
                    o.glibc = Some(minor.ok_or(format!("--glibc {version}: not a version such as 2.28"))?);
                }
                _ => return Err(format!("unknown argument {arg}\n{}", crate::USAGE)),
            }
        }
        Ok(o)
    }
}

/// Builds the wheel.
///
/// # Errors
/// Returns an error if the arguments are wrong, maturin is missing, or a build fails.
pub fn build(args: impl Iterator<Item = String>) -> Result<(), String> {
    let root = repository();
    let options = Options::parse(&root, args)?;
    if options.sdist {
        return pack_sources(&root, &options.out).map(|file| println!("{}", file.display()));
    }
    if let Some(minor) = options.glibc.filter(|_| std::env::var_os(LINKED).is_none()) {
        return with_linker(&root, minor);
    }
    let output = build_program(&root, &options.profile)?;
    let stage = root.join(PACKAGE).join(STAGE);
    collect(&root, &output, &stage)?;
    if options.stage_only {
        return Ok(());
    }
    let glibc = newest_glibc(&[stage.join("scripts"), stage.join("data/lib/galamost/plugins")])?;
    if let Some(minor) = options.glibc.filter(|minor| glibc > *minor) {
        return Err(format!("the program or a plugin needs glibc 2.{glibc}, not only 2.{minor}"));
    }
    let glibc = options.glibc.unwrap_or(glibc);
    let mut maturin = Command::new(std::env::var_os("MATURIN").unwrap_or_else(|| "maturin".into()));
    maturin.current_dir(root.join(PACKAGE)).args(["build", "--profile", &options.profile, "--compatibility"]);
    // it runs in the folder of the module
    let out = std::path::absolute(&options.out).map_err(|e| e.to_string())?;
    maturin.arg(format!("manylinux_2_{glibc}")).arg("--out").arg(out);
    run(&mut maturin).map_err(|e| format!("{e}\nmaturin builds the module: python3 -m pip install maturin"))
}

/// Set in the process that links against another glibc.
const LINKED: &str = "GALAMOST_LINKED_BY_ZIG";

/// Runs this task again with zig as the linker, which knows the symbols of every glibc, and with another target folder.
fn with_linker(root: &Path, minor: u32) -> Result<(), String> {
    let folder = target(root).join(format!("glibc-2.{minor}"));
    let (linker, arch) = (folder.join("linker.sh"), std::env::consts::ARCH);
    let text = format!("#!/bin/sh\nexec cargo-zigbuild zig cc -- -target {arch}-linux-gnu.2.{minor} \"$@\"\n");
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&linker, text))
        .and_then(|()| std::fs::set_permissions(&linker, std::fs::Permissions::from_mode(0o755)));
    written.map_err(|e| format!("{}: {e}", linker.display()))?;
    let mut again = Command::new(std::env::current_exe().map_err(|e| e.to_string())?);
    again.args(std::env::args_os().skip(1)).env(LINKED, "1").env("CARGO_TARGET_DIR", &folder);
    again.env(format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_LINKER", arch.to_uppercase()), &linker);
    run(&mut again).map_err(|e| format!("{e}\nzig links: python3 -m pip install cargo-zigbuild ziglang"))
}

/// Collects the files beside the module, in the layout of a wheel's data.
fn collect(root: &Path, output: &Path, stage: &Path) -> Result<(), String> {
    empty(stage)?;
    let share = stage.join("data/share/galamost");
    let plugins = stage.join("data/lib/galamost/plugins");
    for folder in [&stage.join("scripts"), &plugins, &share.join("examples"), &share.join("cases")] {
        empty(folder)?;
    }
    copy(&output.join("galamost"), &stage.join("scripts/galamost"))?;
    copy_plugins(root, output, &plugins)?;
    copy_examples(root, &share.join("examples"))?;
    copy_cases(root, &share.join("cases"))?;
    // the versions that the plugin API is tested with
    copy(&root.join("Cargo.lock"), &share.join("Cargo.lock"))?;
    for (path, text) in freeze::sources(root)? {
        let to = share.join(path);
        let folder = to.parent().unwrap_or(&share);
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&to, text));
        written.map_err(|e| format!("{}: {e}", to.display()))?;
    }
    Ok(())
}

/// Returns the minor version of the newest glibc that a file in these folders needs: the compatibility of the wheel.
fn newest_glibc(folders: &[PathBuf]) -> Result<u32, String> {
    let mut newest = 17;
    for folder in folders {
        for entry in std::fs::read_dir(folder).map_err(|e| e.to_string())?.filter_map(Result::ok) {
            let bytes = std::fs::read(entry.path()).map_err(|e| format!("{}: {e}", entry.path().display()))?;
            newest = newest.max(glibc_of(&bytes));
        }
    }
    Ok(newest)
}

/// Returns the minor version of the newest glibc that a library needs, from the names of its symbols' versions.
fn glibc_of(bytes: &[u8]) -> u32 {
    const MARK: &[u8] = b"\0GLIBC_2.";
    let minor = |rest: &[u8]| {
        let digits: String = rest.iter().take_while(|b| b.is_ascii_digit()).map(|b| char::from(*b)).collect();
        digits.parse::<u32>().unwrap_or(0)
    };
    let found = bytes.windows(MARK.len()).enumerate().filter(|(_, w)| *w == MARK);
    found.map(|(at, _)| minor(&bytes[at + MARK.len()..])).max().unwrap_or(0)
}

/// Packs the tracked files of the repository as a source distribution: pip builds it as it builds the package's folder.
fn pack_sources(root: &Path, out: &Path) -> Result<PathBuf, String> {
    let listed = Command::new("git").current_dir(root).args(["ls-files", "-z"]).output();
    let listed = listed.map_err(|e| format!("git: {e}"))?;
    let name = format!("galamost-{}", env!("CARGO_PKG_VERSION"));
    let text = |path: &str| std::fs::read_to_string(root.join(path)).map_err(|e| format!("{path}: {e}"));
    // the package is at the top of a source distribution, and its crate where it is in the repository
    let project = text(&format!("{PACKAGE}/pyproject.toml"))?
        .replace("backend-path = [\".\"]", &format!("backend-path = [\"{PACKAGE}\"]"))
        .replace("python-source = \".\"", &format!("python-source = \"{PACKAGE}\""))
        .replace("manifest-path = \"Cargo.toml\"", &format!("manifest-path = \"{PACKAGE}/Cargo.toml\""))
        .replace(&format!("data = \"{STAGE}\""), &format!("data = \"{PACKAGE}/{STAGE}\""))
        .replace("readme = \"README.md\"", &format!("readme = \"{PACKAGE}/README.md\""));
    let about = format!("Metadata-Version: 2.1\nName: galamost\nVersion: {}\n", env!("CARGO_PKG_VERSION"));
    let file = out.join(format!("{name}.tar.gz"));
    std::fs::create_dir_all(out).map_err(|e| e.to_string())?;
    let to = std::fs::File::create(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(to, flate2::Compression::best()));
    archive.mode(tar::HeaderMode::Deterministic);
    for path in String::from_utf8_lossy(&listed.stdout).split('\0').filter(|p| !p.is_empty()) {
        let added = archive.append_path_with_name(root.join(path), Path::new(&name).join(path));
        added.map_err(|e| format!("{path}: {e}"))?;
    }
    for (path, text) in [("pyproject.toml", project), ("PKG-INFO", about)] {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        let added = archive.append_data(&mut header, Path::new(&name).join(path), text.as_bytes());
        added.map_err(|e| format!("{path}: {e}"))?;
    }
    archive.into_inner().and_then(flate2::write::GzEncoder::finish).map_err(|e| e.to_string())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    #[test]
    fn options_are_read() {
        let parse = |args: &[&str]| super::Options::parse("/r".as_ref(), args.iter().map(ToString::to_string));
        let given = parse(&["--glibc", "2.28", "--out", "w", "--profile", "release"]).expect("valid");
        assert_eq!((given.glibc, given.out, given.profile.as_str()), (Some(28), "w".into(), "release"));
        assert_eq!(parse(&[]).expect("valid").glibc, None);
        for wrong in ["28", "2.x", "3.1"] {
            assert!(parse(&["--glibc", wrong]).is_err_and(|e| e.contains("not a version")), "{wrong}");
        }
    }

    #[test]
    fn the_newest_glibc_is_found() {
        let bytes = b"\x7fELF\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0XGLIBC_2.99\0";
        assert_eq!(super::glibc_of(bytes), 34);
        assert_eq!(super::glibc_of(b"no library"), 0);
    }
}
