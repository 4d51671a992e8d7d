"""Pair potentials in Rust from Python and from cells of notebooks."""

import hashlib
import json
import pathlib
import re
import shutil
import subprocess

from . import _errors, _pipeline, _plugins

#: one line, so that the compiler's messages have the line numbers of the source
HEAD = "#![allow(non_camel_case_types)] use galamost_plugin_api::prelude::*; galamost_plugin_api::plugin!(); "
_built = {}


def build_pair(source, folder="galamost-plugins"):
    """Compiles a pair potential in Rust, loads it, and returns its class.

    `source` is the parameter struct and the function of a pair potential, as in the book's chapter "Your first
    plugin". The crate is made in `folder`; the plugin also works with the `galamost` command. Needs Rust. Raises a
    `PipelineError` with the compiler's messages.
    """
    _plugins.load()
    found = re.search(r'#\[pair_potential\(\s*"(\w+)"', source)
    if not found:
        raise ValueError('the source has no function with #[pair_potential("Name")]')
    name, source = found.group(1), source.strip() + "\n"
    if _built.get(name) == source:
        return _pipeline.make(name)
    if name in _plugins.descriptions():
        raise ValueError(f"there is a component {name} already, which cannot be replaced in a running program: rename it")
    crate = re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()
    library = _compile(source, crate, pathlib.Path(folder).resolve())
    _plugins.load_plugin(library.parent)
    _built[name] = source
    return _pipeline.make(name)


def _compile(source, crate, folder):
    """Makes and builds a crate, and returns its library in a folder without other libraries."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / crate
    if not path.exists():
        _plugins.command("new", "pair", crate, cwd=folder)
        lock = _plugins.PREFIX / "share/galamost/Cargo.lock"
        if lock.exists():
            shutil.copy(lock, path)
    (path / "src/lib.rs").write_text(HEAD + source, encoding="utf-8")
    if shutil.which("cargo") is None:
        raise FileNotFoundError("cargo is not on the PATH; a plugin is compiled by Rust, see https://rustup.rs")
    build = ["cargo", "build", "--release", "--message-format=json-render-diagnostics"]
    done = subprocess.run(build, cwd=path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise _errors.PipelineError(done.stderr.strip(), [])
    artifacts = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    files = [f for a in artifacts for f in a.get("filenames", []) if f.endswith(".so")]
    built = next(f for f in files if pathlib.Path(f).name == f"lib{crate.replace('-', '_')}.so")
    # a program that uses an earlier library keeps it
    own = path / "plugins" / hashlib.sha256(source.encode()).hexdigest()[:12]
    own.mkdir(parents=True, exist_ok=True)
    return pathlib.Path(shutil.copy(built, own))


def galamost_pair(line, cell):
    """Compiles a cell with a pair potential in Rust and loads it: `gm.NAME` is then its class."""
    folder = line.strip()
    cls = build_pair(cell, folder) if folder else build_pair(cell)
    print(f"gm.{cls.__name__}{cls.__signature__}")


def load_ipython_extension(ipython):
    """Called by `%load_ext galamost`."""
    ipython.register_magic_function(galamost_pair, "cell")
