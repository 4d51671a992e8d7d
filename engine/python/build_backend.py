"""Build backend of pip: cargo builds the program and the plugins, maturin the module and the wheel.

`GALAMOST_PROFILE` chooses the profile of cargo for the program and the plugins; the default is `release`.
"""

import os
import pathlib
import subprocess

import maturin
from maturin import (  # noqa: F401
    get_requires_for_build_editable,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def stage():
    """Builds the program and the plugins and collects what the wheel contains beside the module."""
    profile = os.environ.get("GALAMOST_PROFILE", "release")
    subprocess.run(["cargo", "xtask", "wheel", "--stage", "--profile", profile], cwd=REPOSITORY, check=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    stage()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    stage()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)
