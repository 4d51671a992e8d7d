"""Pipelines as objects."""

import copy
import inspect
import pickle
import subprocess

import galamost as gm
import numpy as np
import pytest
from conftest import LIQUID, PROGRAM, SHARE
from galamost import _galamost, _notation, _pipeline, _plugins

EXAMPLES = sorted((SHARE / "examples").glob("*.ron"))


def liquid():
    return gm.Pipeline(
        seed=7, device="Cpu",
        initial=[gm.Lattice(lattice="Fcc", cells=[5, 5, 5], density=0.8), gm.Velocities(kT=1.0)],
        forces=[gm.LennardJones(r_cut=2.5, pairs={("A", "A"): {"epsilon": 1.0, "sigma": 1.0}})],
        integrators=[gm.NoseHoover(kT=1.0, tau=0.5)],
        analyzers=[gm.Thermo(every=10, file="thermo.csv")],
        stages=[{"name": "melt", "steps": 130, "dt": 0.002}, {"name": "run", "steps": 170, "dt": 0.004}],
    )


def test_objects_write_the_pipeline_of_the_file(folder):
    built = liquid()
    assert built == gm.Pipeline.from_ron(LIQUID)
    assert built.check() == 500
    built.save("built.ron")
    # the same again is no change, and another pipeline does not replace it
    built.save("built.ron")
    other = liquid()
    other.seed = 99
    with pytest.raises(FileExistsError, match="overwrite=True"):
        other.save("built.ron")
    other.save("other.ron")
    built.save("other.ron", overwrite=True)
    assert gm.Pipeline.open("other.ron") == built
    assert gm.Pipeline.open("built.ron") == built
    # a colleague runs it without Python: the same bits
    subprocess.run([PROGRAM, "--pipeline", "built.ron", "-q"], check=True)
    written = (folder / "thermo.csv").read_bytes()
    with gm.Simulation(LIQUID, overwrite=True) as sim:
        sim.run()
    assert (folder / "thermo.csv").read_bytes() == written


def test_dictionaries():
    d = {
        "seed": 7, "device": "Cpu",
        "initial": [{"Lattice": {"lattice": "Fcc", "cells": [5, 5, 5], "density": 0.8}}, {"Velocities": {"kT": 1.0}}],
        "forces": [{"LennardJones": {"r_cut": 2.5, "pairs": {("A", "A"): {"epsilon": 1.0, "sigma": 1.0}}}}],
        "integrators": [{"NoseHoover": {"kT": 1.0, "tau": 0.5}}],
        "analyzers": [{"Thermo": {"every": 10, "file": "thermo.csv"}}],
        "stages": [{"name": "melt", "steps": 130, "dt": 0.002}, {"name": "run", "steps": 170, "dt": 0.004}],
    }
    assert gm.Pipeline(**d) == liquid()
    assert gm.Pipeline(**gm.Pipeline(**d).to_dict()) == liquid()
    with gm.Simulation(d) as sim:
        assert sim.remaining == 300


def test_special_pairs_are_a_map():
    weights = {"1-2": 0.0, "1-4": {"pair": 0.5, "coulomb": 0.8333}}
    p = gm.Pipeline(initial=[], neighbors={"special": weights}, stages=[{"steps": 0, "dt": 0.01}])
    assert '"1-2": 0.0' in p.ron and "(pair: 0.5, coulomb: 0.8333)" in p.ron
    assert gm.Pipeline.from_ron(p.ron) == p


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda f: f.stem)
def test_every_example_survives_the_round_trip(file, monkeypatch):
    pipeline = gm.Pipeline.open(file)
    text = pipeline.ron
    assert gm.Pipeline.from_ron(text) == pipeline
    assert gm.Pipeline(**pipeline.to_dict()) == pipeline
    # every token of the file is there, in its order
    assert _galamost.parse_ron(text) == _galamost.parse_ron(file.read_text())


def test_examples_pass_the_check_after_the_round_trip(monkeypatch):
    for name in ("01-lj-fluid", "13-janus", "15-expression", "36-charged-field"):
        pipeline = gm.Pipeline.open(SHARE / f"examples/{name}.ron")
        assert pipeline.check(device="cpu") > 0


def test_a_class_takes_the_example_of_its_component():
    tried, several = 0, []
    for name, descriptions in _plugins.descriptions().items():
        for d in descriptions:
            if not d["example"]:
                continue
            try:
                example = _galamost.parse_ron(d["example"])
            except ValueError:
                # the page shows several components
                several.append(name)
                continue
            if not isinstance(example.content, dict):
                continue
            component = _pipeline.make(name)(**example.content)
            assert component._variant() == example, name
            assert _galamost.parse_ron(repr(component)) == example, name
            tried += 1
    assert tried > 100 and len(several) < 10, several


def test_names_of_components_and_of_the_module_differ():
    assert not set(gm.__all__) & set(_plugins.descriptions())
    # a parameter that is a word of Python
    assert repr(gm.GrootWarren(lambda_=0.65)) == "GrootWarren(lambda: 0.65)"
    assert "lambda_" in inspect.signature(gm.GrootWarren).parameters


def test_classes_have_documentation_completion_and_checks():
    assert "Lennard-Jones" in gm.LennardJones.__doc__ and "r_cut" in gm.LennardJones.__doc__
    assert {"r_cut", "pairs", "mode"} <= set(inspect.signature(gm.LennardJones).parameters)
    assert {"LennardJones", "Thermo", "Dpd"} <= set(dir(gm.components)) and "Dpd" in dir(gm)
    assert gm.LennardJones is gm.components.LennardJones
    for wrong, message in [
        (lambda: gm.LennardJones(r_cut=1.0, pair={}), "did you mean `pairs`"),
        (lambda: gm.LennardJones(r_cut=1.0), "needs `pairs`"),
        (lambda: gm.Pipeline(inital=[]), "did you mean `initial`"),
        (lambda: gm.Pipeline(forces=[1]), "is not a component"),
        (lambda: gm.Pipeline(forces="LennardJones"), "`forces` must be a list of components, not str"),
        (lambda: gm.Pipeline(integrators=gm.VelocityVerlet()), "`integrators` must be a list of components, not VelocityVerlet"),
        (lambda: gm.Pipeline(initial={"Lattice": {}}), "`initial` must be a list of components, not dict"),
        (lambda: gm.Pipeline(stages="a"), "`stages` must be a list of dicts .*, not str"),
        (lambda: gm.Pipeline(stages=["a"]), "`stages` must be a list of dicts .*, not of str"),
        (lambda: gm.Pipeline(stages={"steps": 10, "dt": 0.01}), "`stages` must be a list of dicts .*, not dict"),
        (lambda: gm.Pipeline(stages=[{"steps": 10, "dt": 0.01, "forces": 5}]), "`forces` must be a list of components, not int"),
    ]:
        with pytest.raises(TypeError, match=message):
            wrong()
    with pytest.raises(AttributeError, match="did you mean `LennardJones`"):
        gm.LenardJones
    pipeline = liquid()
    pipeline.forces[0].fields["r_cut"] = -1.0
    pipeline.integrators.append(gm.LennardJones(r_cut=1.0, pairs={}))
    with pytest.raises(gm.PipelineError) as e:
        pipeline.check()
    assert len(e.value.errors) == 2


def test_parameters_can_be_changed():
    p = liquid()
    bath = p.integrators[0]
    assert (bath.kT, bath.tau, bath.group) == (1.0, 0.5, None)
    bath.kT = 0.5
    p.forces[0].mode = "ShiftForce"
    p.precision = "Double"
    p.stages = [{"steps": 10, "dt": 0.004}]
    p.analyzers = []
    assert "NoseHoover(kT: 0.5, tau: 0.5)" in p.ron and "precision: Double" in p.ron and "mode: ShiftForce" in p.ron
    assert p.check() == 500
    p.forces[0].mode = None
    assert "mode" not in p.ron
    dpd = gm.GrootWarren(lambda_=0.65)
    dpd.lambda_ = 0.5
    assert dpd.lambda_ == 0.5 and repr(dpd) == "GrootWarren(lambda: 0.5)"
    assert copy.deepcopy(bath) == bath and pickle.loads(pickle.dumps(p.stages)) == p.stages
    with gm.Simulation(p, overwrite=True) as sim:
        with pytest.raises(TypeError, match="must be whole"):
            sim.run(1.5)
        assert sim.run(5e0).step == 5
    for wrong, message in [
        (lambda: setattr(bath, "kt", 1.0), "did you mean `kT`"),
        (lambda: bath.kt, "did you mean `kT`"),
        (lambda: setattr(p, "precison", "Double"), "did you mean `precision`"),
        (lambda: setattr(p, "stage", []), "did you mean `stages`"),
    ]:
        with pytest.raises(AttributeError, match=message):
            wrong()


def test_components_and_pipelines_survive_pickle():
    p = liquid()
    assert pickle.loads(pickle.dumps(p.forces[0])) == p.forces[0] and pickle.loads(pickle.dumps(p)) == p


def test_numbers_of_numpy_are_numbers():
    p = liquid()
    p.seed, p.replicas, p.neighbors = np.int64(7), np.int32(1), {"buffer": np.float32(0.25)}
    p.stages = [{"steps": np.uint16(10), "dt": np.float64(0.002)}]
    assert "seed: 7" in p.ron and "buffer: 0.25" in p.ron and p.check() == 500
    with gm.Simulation(p, set={"stages[0].steps": np.int64(20)}) as sim:
        assert sim.remaining == 20


def test_a_sweep_changes_what_runs():
    p = liquid()
    found = []
    for kT in (0.8, 1.2):
        p.integrators[0].kT = kT
        with gm.Simulation(p, overwrite=True) as sim:
            sim.run(100)
            found.append(sim.state.position[0].tolist())
    assert found[0] != found[1]


def test_values_are_written_and_read():
    v = gm.variant
    values = {
        "a": [1, -2.5, 1e-300, 0.1 + 0.2, float("inf"), True, None], "b": (1.0, 2), "c": 'quo"ted\\ \n ü',
        "d": gm.Map({"A": 1, "B C": 2}), "e": {("A", "B"): {"x": 1}}, "f": v.Ramp(**{"from": 2.0, "to": 1.0}),
        "g": v.Smooth(2.0), "h": v.Sc(), "i": [], "j": gm.Map(), "k": v.And([v.Types(["A"]), v.Not(v.All())]),
    }
    text = _notation.to_ron(values)
    back = _galamost.parse_ron(text)
    assert back["a"] == values["a"] and back["c"] == values["c"]
    assert _notation.to_ron(back) == text
    assert back["f"] == v.Ramp(**{"from": 2.0, "to": 1.0}) and back["h"] == gm.Variant("Sc")
    assert _notation.to_ron(np.array([[1.5, 2.0]])) == "[[1.5, 2.0]]" and _notation.to_ron(np.float64(0.1)) == "0.1"
    assert max(len(line) for line in _notation.to_ron({"x": list(range(200))}).splitlines()) < 20
    for bad in ("(a: ", "(a: 0,5)", "{1}"):
        with pytest.raises(ValueError):
            _galamost.parse_ron(bad)
    with pytest.raises(TypeError, match="cannot be written"):
        _notation.to_ron({"a": object()})


def test_names_within_named_values_are_texts():
    v, wall = gm.variant, {"point": [0.0, 0.0, 0.0], "radius": 4.0}
    names = [("Z", "Inside"), (gm.Variant("Z"), gm.Variant("Inside"))]
    made = [gm.Bounce(wall=v.Cylinder(axis=axis, side=side, **wall), rule="Forward") for axis, side in names]
    assert made[0] == made[1] and "axis: Z, side: Inside" in repr(made[0])
    # in the text of a description a field of text is in quotes
    graft = {"kind": '`OnPlane(axis: Z, at: -8.0, below: false)` or `OnParticles(of: "I")`', "fields": []}
    assert _notation.to_ron(_pipeline._shape(v.OnParticles(of="I"), graft)) == 'OnParticles(of: "I")'
    assert _notation.to_ron(_pipeline._shape(v.OnPlane(axis="Z", at=1.0), graft)) == "OnPlane(axis: Z, at: 1.0)"
    perm = gm.Perm(chain=v.OnLattice(lattice="Cubic", attraction=0.1), monomers=8, tours=32, file="perm.csv")
    assert "OnLattice(lattice: Cubic, attraction: 0.1)" in repr(perm)
    gm.Pipeline(device="Cpu", ensemble=[perm]).check()


def test_names_in_lists_of_named_values_are_texts():
    v = gm.variant
    for group, expected in [
        (v.And([v.Types(["A"]), "All"]), 'And([Types(["A"]), All])'),
        (v.Not("All"), "Not(All)"),
        (v.Or([v.Not("All"), v.And(["All", v.Tags(first=0, last=9)])]), "Or([Not(All), And([All, Tags(first: 0, last: 9)])])"),
        # names of types remain texts
        (v.Types(["All"]), 'Types(["All"])'),
    ]:
        assert f"group: {expected}" in repr(gm.NoseHoover(kT=1.0, tau=0.5, group=group)), expected
