"""The installed command: plugins, examples, and new plugins without the repository."""

import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
import tarfile

import galamost as gm
import pytest

PREFIX = pathlib.Path(sysconfig.get_path("data"))
REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path(sysconfig.get_path("scripts")) / "galamost"


def galamost(*args, cwd):
    done = subprocess.run([PROGRAM, *args], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_all_plugins_are_found(tmp_path):
    names = {"lib" + p.parent.name.replace("-", "_") + ".so" for p in REPOSITORY.glob("plugins/*/Cargo.toml")}
    assert names == {p.name for p in (PREFIX / "lib/galamost/plugins").glob("*.so")}
    assert '"name": "LennardJones"' in galamost("plugins", "--json", cwd=tmp_path)


def test_the_first_example_runs(tmp_path):
    shutil.copy(PREFIX / "share/galamost/examples/01-lj-fluid.ron", tmp_path)
    galamost("--pipeline", "01-lj-fluid.ron", "--device", "cpu", "--quiet", cwd=tmp_path)
    rows = (tmp_path / "01-lj-fluid.csv").read_text().splitlines()
    assert len(rows) == 102  # a header, step 0 and every 100 of 10,000 steps


def test_cases_are_found(tmp_path):
    assert (PREFIX / "share/galamost/cases/dppc-water-21216.xml.xz").exists()
    assert "lj" in galamost("bench", "--help", cwd=tmp_path)


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_a_new_plugin_builds_against_the_installed_api(tmp_path):
    text = galamost("new", "pair", "my-pair", cwd=tmp_path)
    assert str(PREFIX / "share/galamost/plugin-api") in text
    folder = tmp_path / "my-pair"
    shutil.copy(PREFIX / "share/galamost/Cargo.lock", folder)
    # it runs for a moment, and the loops of the plugin API take long to optimize
    packages = ["my-pair", "galamost-plugin-api"]
    quick = [word for name in packages for word in ("--config", f"profile.release.package.{name}.opt-level=0")]
    built = subprocess.run(
        ["cargo", "build", "--release", "--message-format=json-render-diagnostics", *quick],
        cwd=folder, capture_output=True, text=True, check=False,
    )
    assert built.returncode == 0, built.stderr
    library = next(w for w in built.stdout.split('"') if w.endswith("libmy_pair.so"))
    (folder / "dropped").mkdir()
    shutil.copy(library, folder / "dropped")
    galamost("--pipeline", "my-pair.ron", "--plugin-dir", "dropped", "--device", "cpu", "--steps", "100", "-q", cwd=folder)
    assert "NaN" not in (folder / "my-pair.csv").read_text()


@pytest.mark.skipif(not (REPOSITORY / ".git").exists(), reason="needs the repository")
def test_the_source_distribution_has_what_pip_needs(tmp_path):
    # what the repository's own builds have compiled
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("CARGO_TARGET", "CARGO_PROFILE_RELEASE_OPT"))}
    packed = subprocess.run(["cargo", "xtask", "wheel", "--sdist", "--out", tmp_path], cwd=REPOSITORY, env=environment,
                            capture_output=True, text=True, check=True)
    with tarfile.open(packed.stdout.strip()) as archive:
        top, names = os.path.commonpath(archive.getnames()), set(archive.getnames())
        project = archive.extractfile(f"{top}/pyproject.toml").read().decode()
        about = archive.extractfile(f"{top}/PKG-INFO").read().decode()
    assert top == f"galamost-{gm.__version__}" and f"Version: {gm.__version__}" in about
    for key in ("manifest-path", "readme"):
        assert f"{top}/" + re.search(rf'^{key} = "(.*)"$', project, re.M).group(1) in names
    backend = re.search(r'^backend-path = \["(.*)"\]$', project, re.M).group(1)
    source = re.search(r'^python-source = "(.*)"$', project, re.M).group(1)
    assert {f"{top}/{backend}/build_backend.py", f"{top}/{source}/galamost/__init__.py"} <= names
    tracked = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.split()
    assert {f"{top}/{f}" for f in tracked} <= names
