"""The notebooks of `docs/tutorials` run, print what they contain, and their last cells compare results with references.

    python3 test_notebooks.py [NAME…]    run notebooks and store what they print
"""

import os
import pathlib
import re
import sys
import tempfile

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "docs/tutorials"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def executed(file, folder):
    """The notebook after a run in `folder`."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")
    notebook = nbformat.read(file, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def printed(cell):
    """What a cell prints, and its value as text."""
    texts = [o.text if o.output_type == "stream" else o.data.get("text/plain", "") for o in cell.get("outputs", [])
             if o.output_type == "stream" and o.name == "stdout" or o.output_type == "execute_result"]
    return "".join(texts)


def shape(text):
    """A text without the digits of its numbers, which depend on the order of sums on a machine, and addresses."""
    text = re.sub(r"0x[0-9a-f]+", "ADDRESS", text)
    return re.sub(r"\s+", " ", re.sub(r"[-+]?\d[\d.,e+-]*", "#", text)).strip()


# CI runs the first one
MARKED = [pytest.param(f, marks=[pytest.mark.seconds] if n else []) for n, f in enumerate(NOTEBOOKS)]


@pytest.mark.parametrize("file", MARKED, ids=lambda f: f.stem)
def test_notebook(file, folder):
    nbformat = pytest.importorskip("nbformat")
    stored = [c for c in nbformat.read(file, as_version=4).cells if c.cell_type == "code"]
    assert any("assert " in c.source for c in stored), "the notebook compares nothing"
    assert any(printed(c) for c in stored), "the notebook has no outputs: store them, see above"
    for was, now in zip(stored, (c for c in executed(file, folder).cells if c.cell_type == "code")):
        assert shape(printed(now)) == shape(printed(was)), was.source
        if was.source.startswith("gm.render("):
            assert any("image/png" in o.get("data", {}) for o in now.outputs), "no picture"


def test_notebooks_are_found():
    assert len(NOTEBOOKS) >= 8


def store(file):
    """Runs a notebook and stores the texts that it prints."""
    import nbformat

    with tempfile.TemporaryDirectory() as folder:
        notebook = executed(file, folder)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            text = printed(cell)
            cell.execution_count = None
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)] if text else []
    notebook.metadata.get("language_info", {}).clear()
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, file)


if __name__ == "__main__":
    for notebook_file in NOTEBOOKS:
        if len(sys.argv) == 1 or notebook_file.stem in sys.argv[1:]:
            store(notebook_file)
