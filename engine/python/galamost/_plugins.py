"""Where plugins are, and what they contain."""

import functools
import json
import os
import pathlib
import subprocess
import sys
import sysconfig

from . import _errors, _galamost


def _prefix():
    """The folder below which `bin`, `lib/galamost` and `share/galamost` of this package are."""
    package = pathlib.Path(__file__).resolve().parent
    candidates = [pathlib.Path(sysconfig.get_path("data")), pathlib.Path(sys.prefix)]
    # `pip install --user`
    candidates += [*package.parents]
    for folder in candidates:
        if (folder / "lib/galamost/plugins").is_dir():
            return folder
    return candidates[0]


PREFIX = _prefix()

#: folders with plugins of your own, searched before all others; add to it before the first simulation
plugin_path = []


@functools.lru_cache(maxsize=None)
def load():
    """Loads all plugins: those of `plugin_path`, `GALAMOST_PLUGIN_PATH`, and of this package."""
    own = [os.fspath(p) for p in plugin_path]
    given = [p for p in os.environ.get("GALAMOST_PLUGIN_PATH", "").split(os.pathsep) if p]
    program = PREFIX / "bin/galamost"
    if not (PREFIX / "lib/galamost/plugins").is_dir():
        # `pip install --target` installs no files into `lib`
        raise ImportError(f"the plugins of galamost are not in {PREFIX}/lib/galamost/plugins: install it without --target")
    folders = [*own, *given, str(PREFIX / "lib/galamost/plugins")]
    _find_compiler()
    _galamost.load_plugins(folders, len(own) + len(given), str(program) if program.exists() else None)
    _errors.warn()


def load_plugin(folder):
    """Loads the plugins of one more folder."""
    load()
    _galamost.load_plugins([os.fspath(folder)], 1, None)
    descriptions.cache_clear()
    _errors.warn()


def _find_compiler():
    """Names the compiler of GPU kernels of the package `nvidia-cuda-nvrtc`, if it is installed."""
    if "GALAMOST_NVRTC" in os.environ:
        return
    for folder in sys.path:
        library = pathlib.Path(folder) / "nvidia/cu13/lib"
        if folder and library.is_dir():
            os.environ["GALAMOST_NVRTC"] = str(library)
            return


#: variables with which launchers number processes
_LAUNCHER = frozenset(["PMI_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "MPI_RANK", "MPI_SIZE",
                       "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "RANK", "WORLD_SIZE"])


def command(*args, cwd=None):
    """Runs the `galamost` command of this package and returns what it prints, as `gm.command("ibi", "spec.ron")`. An
    error of the command is an exception with its text."""
    from . import _files

    # the command may read files of simulations of this program
    _files.flush()
    program = PREFIX / "bin/galamost"
    # the command is a single process, whatever started this program
    env = {name: value for name, value in os.environ.items() if name not in _LAUNCHER}
    done = subprocess.run([program, *map(str, args)], cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    text = done.stderr.strip()
    if done.returncode == 2:
        raise _errors.PipelineError(text, [])
    if done.returncode:
        raise _errors.RunError(text, text, [])
    return done.stdout


@functools.lru_cache(maxsize=None)
def descriptions():
    """Name, kind, page and fields of all components, by name."""
    load()
    found = {}
    for c in json.loads(_galamost.describe_components()):
        found.setdefault(c["name"], []).append(c)
    return found
