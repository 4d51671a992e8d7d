"""The notebooks of `docs/tutorials` run without errors; their last cells compare the results with references."""

import os
import pathlib

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "docs/tutorials"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda f: f.stem)
def test_notebook(file, folder):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(file, as_version=4)
    compared = [c for c in notebook.cells if c.cell_type == "code" and "assert " in c.source]
    assert compared, "the notebook compares nothing"
    os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()


def test_notebooks_are_found():
    assert len(NOTEBOOKS) >= 3
