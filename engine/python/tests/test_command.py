"""The installed command: plugins, examples, and new plugins without the repository."""

import pathlib
import shutil
import subprocess
import sysconfig

import pytest

PREFIX = pathlib.Path(sysconfig.get_path("data"))
PROGRAM = pathlib.Path(sysconfig.get_path("scripts")) / "galamost"


def galamost(*args, cwd):
    done = subprocess.run([PROGRAM, *args], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_all_plugins_are_found(tmp_path):
    repository = pathlib.Path(__file__).parents[3]
    names = {"lib" + p.parent.name.replace("-", "_") + ".so" for p in repository.glob("plugins/*/Cargo.toml")}
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
    built = subprocess.run(
        ["cargo", "build", "--release", "--message-format=json-render-diagnostics"],
        cwd=folder, capture_output=True, text=True, check=False,
    )
    assert built.returncode == 0, built.stderr
    library = next(w for w in built.stdout.split('"') if w.endswith("libmy_pair.so"))
    (folder / "dropped").mkdir()
    shutil.copy(library, folder / "dropped")
    galamost("--pipeline", "my-pair.ron", "--plugin-dir", "dropped", "--device", "cpu", "--steps", "100", "-q", cwd=folder)
    assert "NaN" not in (folder / "my-pair.csv").read_text()
