"""The stubs name what the package has, and the package's documentation is complete."""

import ast
import inspect
import pathlib

import galamost as gm
import pytest

STUB = ast.parse((pathlib.Path(gm.__file__).parent / "__init__.pyi").read_text())
CLASSES = {c.name: c for c in STUB.body if isinstance(c, ast.ClassDef) and not c.name.startswith("_")}
FUNCTIONS = {f.name: f for f in STUB.body if isinstance(f, ast.FunctionDef) and not f.name.startswith("_")}


def test_everything_public_is_in_the_stubs():
    others = {"components", "interop", "plugin_path", "variant"}
    assert {*CLASSES, *FUNCTIONS, *others} == set(gm.__all__)
    for name in [*CLASSES, *FUNCTIONS]:
        assert getattr(gm, name).__doc__, f"{name} has no documentation"


@pytest.mark.parametrize("name", CLASSES)
def test_methods_of_stubs_exist(name):
    cls = getattr(gm, name)
    for item in CLASSES[name].body:
        if isinstance(item, ast.FunctionDef) and not item.name.startswith("__"):
            assert hasattr(cls, item.name), f"{name}.{item.name}"
            assert getattr(cls, item.name).__doc__, f"{name}.{item.name} has no documentation"


@pytest.mark.parametrize("name", [*FUNCTIONS, "Simulation", "Frame", "Frames", "Links"])
def test_arguments_of_stubs_are_those_of_the_functions(name):
    node = FUNCTIONS.get(name) or next(
        i for i in CLASSES[name].body if isinstance(i, ast.FunctionDef) and i.name == "__init__"
    )
    more = [node.args.vararg] if node.args.vararg else []
    arguments = [a.arg for a in node.args.args + more + node.args.kwonlyargs if a.arg != "self"]
    parameters = inspect.signature(getattr(gm, name)).parameters.values()
    assert arguments == [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
