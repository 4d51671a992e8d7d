"""States to and from other packages: nothing is lost but single precision."""

import subprocess
import sys
import warnings

import galamost as gm
import numpy as np
import pytest
from conftest import LIQUID, SHARE


@pytest.fixture
def chains():
    """A state with types, bonds and images."""
    frame = gm.read(SHARE / "examples/04-diblock.xml")[0]
    rng = np.random.default_rng(2)
    frame.velocity = rng.normal(size=frame.position.shape).astype(np.float32).astype(float)
    frame.position = frame.position.astype(np.float32).astype(float)
    frame.image = rng.integers(-2, 3, frame.position.shape).astype(np.int32)
    frame.step = 40
    return frame


def same(a, b, tolerance=0.0):
    np.testing.assert_allclose(a.unwrapped, b.unwrapped, atol=tolerance)
    np.testing.assert_allclose(a.velocity, b.velocity, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(a.box, b.box, rtol=1e-6)
    np.testing.assert_array_equal(a.type_names, b.type_names)
    np.testing.assert_allclose(a.mass, b.mass, rtol=1e-6)
    inside = np.abs(b.position) <= 0.5 * b.box + 1e-5
    assert inside.all()


def test_gsd(chains, tmp_path):
    gsd = pytest.importorskip("gsd.hoomd")
    chains.impropers = type(chains.bonds)(["flat", "bent"], [1], [[3, 0, 1, 2]], 4)
    with gsd.open(tmp_path / "x.gsd", "w") as f:
        f.append(gm.interop.to_gsd(chains))
    with gsd.open(tmp_path / "x.gsd", "r") as f:
        back = gm.interop.from_gsd(f[0])
    same(chains, back, 1e-4)
    np.testing.assert_array_equal(back.impropers.members, [[3, 0, 1, 2]])
    assert (back.impropers.types, list(back.impropers.type)) == (["flat", "bent"], [1])
    assert back.step == 40
    np.testing.assert_array_equal(back.bonds.members, chains.bonds.members)
    assert [back.bonds.types[t] for t in back.bonds.type] == [chains.bonds.types[t] for t in chains.bonds.type]
    # the program reads the same file
    same(back, gm.read(tmp_path / "x.gsd")[0], 1e-5)


@pytest.fixture
def janus():
    """Particles with orientations, angular momenta and moments of inertia, after some steps, and their trajectory."""
    pipeline = gm.Pipeline.open(SHARE / "examples/13-janus.ron")
    pipeline.path, pipeline.initial[0].cells = None, [6, 6, 6]
    pipeline.analyzers, pipeline.stages[0]["steps"] = [gm.Gsd(every=10, velocity=True, file="janus.gsd")], 20
    with gm.Simulation(pipeline, device="cpu") as sim:
        sim.run()
        return sim.state.copy()


def test_gsd_keeps_orientations(janus):
    gsd = pytest.importorskip("gsd.hoomd")
    rotation = ("quaternion", "inert", "angular_momentum")
    assert set(rotation) <= set(janus.arrays) and np.ptp(janus.arrays["inert"]) > 0
    # a file of the component, by both readers
    with gsd.open("janus.gsd", "r") as f:
        last = f[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        converted = gm.interop.to_gsd(janus)
    for frame in (gm.read("janus.gsd")[-1], gm.interop.from_gsd(last), gm.interop.from_gsd(converted)):
        for name in rotation:
            np.testing.assert_allclose(frame.arrays[name], janus.arrays[name], atol=2e-6, err_msg=name)
    # a file of the conversion is that of the component
    ours = gm.interop.to_gsd(gm.read("janus.gsd")[-1]).particles
    for name in ("orientation", "moment_inertia", "angmom"):
        np.testing.assert_allclose(getattr(ours, name), getattr(last.particles, name), atol=1e-6, err_msg=name)


def test_gsd_has_axes_as_rotations_of_z():
    pytest.importorskip("gsd.hoomd")
    axes = np.array([[0, 0, 1], [0, 0, -1], [1, 0, 0], [0, -1, 0], [0.36, 0.48, -0.8], [0, 0, 0]], dtype=float)
    frame = gm.Frame(np.zeros((6, 3)), [5.0, 5.0, 5.0], arrays={"orientation": axes})
    w, x, y, z = gm.interop.to_gsd(frame).particles.orientation.T
    np.testing.assert_allclose(w**2 + x**2 + y**2 + z**2, 1.0, rtol=1e-6)
    turned = np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), w**2 - x**2 - y**2 + z**2], axis=1)
    np.testing.assert_allclose(turned[:5], axes[:5], atol=1e-6)
    assert [w[5], x[5], y[5], z[5]] == [1, 0, 0, 0]


def test_gsd_keeps_arrays_of_default_values(tmp_path):
    gsd = pytest.importorskip("gsd.hoomd")
    frame = gm.Frame(np.zeros((2, 3)), [5.0, 5.0, 5.0], arrays={"diameter": np.ones(2)})
    out = gm.interop.to_gsd(frame)
    assert list(gm.interop.from_gsd(out).arrays) == ["diameter"]
    # gsd fills in what a file does not contain
    with gsd.open(tmp_path / "x.gsd", "w") as f:
        f.append(out)
    with gsd.open(tmp_path / "x.gsd", "r") as f:
        assert gm.interop.from_gsd(f[0]).arrays == {}


def test_gsd_frames_made_in_python_lack_fields():
    hoomd = pytest.importorskip("gsd.hoomd")
    frame = hoomd.Frame()
    frame.particles.N, frame.particles.position = 2, [[0.0, 0.0, 0.0], [7.0, 1.0, 1.0]]
    with pytest.raises(ValueError, match="the frame has no box; set `configuration.box`"):
        gm.interop.from_gsd(frame)
    frame.configuration.box = [10, 10, 10, 0, 0, 0]
    frame.particles.charge = [1.0, -1.0]
    frame.bonds.N, frame.bonds.types, frame.bonds.group = 1, ["b"], [[0, 1]]
    found = gm.interop.from_gsd(frame)
    assert found.position[1].tolist() == [-3.0, 1.0, 1.0] and found.image.tolist() == [[0, 0, 0], [1, 0, 0]]
    assert (found.types, found.type.tolist(), found.mass.tolist(), found.step) == (["A"], [0, 0], [1.0, 1.0], 0)
    assert list(found.arrays) == ["charge"] and (found.bonds.type.tolist(), found.bonds.members.tolist()) == ([0], [[0, 1]])
    for position, message in [
        ([[0, 0, 0], [np.nan, 1, 0]], r"particles.position\[1, 0\] is nan; it must be finite"),
        (np.ma.array(np.zeros((2, 3)), mask=[[1, 0, 0], [0, 0, 0]]), "particles.position has masked values"),
    ]:
        frame.particles.position = position
        with pytest.raises(ValueError, match=message):
            gm.interop.from_gsd(frame)
    frame.particles.position = None
    assert not gm.interop.from_gsd(frame).position.any()


def test_wrong_sources_are_named():
    pytest.importorskip("gsd.hoomd")
    with pytest.raises(TypeError, match="`frame` must be a gsd.hoomd.Frame, not int"):
        gm.interop.from_gsd(3)
    with pytest.raises(TypeError, match="`source` must be a simulation, its state or a Frame, not int"):
        gm.interop.to_gsd(3)


def test_conversions_warn_of_what_they_drop(chains):
    chains.arrays["molecule"] = np.zeros(len(chains), np.int32)
    for package, lost in (("gsd.hoomd", "`molecule`"), ("MDAnalysis", "`molecule`"), ("ase", "`molecule`, `bonds`")):
        pytest.importorskip(package)
        to = "to_" + package.split(".")[0].lower()
        with pytest.warns(gm.GalamostWarning, match=f"{to} does not keep {lost}$"):
            getattr(gm.interop, to)(chains)


def test_a_simulation_starts_from_any_of_them(chains):
    pytest.importorskip("gsd.hoomd")
    pipeline = gm.Pipeline.open(SHARE / "examples/04-diblock.ron")
    pipeline.initial, pipeline.analyzers, pipeline.path = [], [], None
    frame = gm.interop.from_gsd(gm.interop.to_gsd(chains))
    with gm.Simulation(pipeline, state=frame, device="cpu") as sim:
        np.testing.assert_allclose(sim.state.position, frame.position, atol=1e-5)
        assert sim.step == 40 and len(sim.state.bonds) == len(chains.bonds)


def test_freud(chains):
    freud = pytest.importorskip("freud")
    box, points = gm.interop.to_freud(chains)
    assert np.allclose([box.Lx, box.Ly, box.Lz], chains.box)
    back = gm.interop.from_freud((box, points), types=chains.types, type=chains.type, velocity=chains.velocity,
                                 image=chains.image, mass=chains.mass)
    same(chains, back, 1e-4)
    with gm.Simulation(LIQUID) as sim:
        sim.run(50)
        rdf = freud.density.RDF(bins=50, r_max=2.4).compute(gm.interop.to_freud(sim))
    # a dense liquid: nothing below 0.8 σ, the first peak at 2^(1/6) σ
    assert rdf.rdf[rdf.bin_centers < 0.8].max() == 0
    assert 1.0 < rdf.bin_centers[rdf.rdf.argmax()] < 1.2


def test_mdanalysis(chains):
    pytest.importorskip("MDAnalysis")
    universe = gm.interop.to_mdanalysis(chains)
    back = gm.interop.from_mdanalysis(universe)
    same(chains, back, 1e-4)
    np.testing.assert_array_equal(np.sort(back.bonds.members), np.sort(chains.bonds.members))
    part = gm.interop.from_mdanalysis(universe.select_atoms("type A"))
    assert part.types == ["A"] and 0 < len(part) < len(chains)
    assert part.bonds.members.max() < len(part)


def test_ovito(chains):
    pytest.importorskip("ovito")
    from ovito.modifiers import DeleteSelectedModifier, SelectTypeModifier

    chains.arrays["charge"] = np.linspace(-1, 1, len(chains))
    pipeline = gm.interop.to_ovito(chains)
    back = gm.interop.from_ovito(pipeline)
    same(chains, back, 1e-9)
    assert back.step == 40 and back.types == chains.types
    np.testing.assert_array_equal(back.bonds.members, chains.bonds.members)
    assert [back.bonds.types[t] for t in back.bonds.type] == [chains.bonds.types[t] for t in chains.bonds.type]
    np.testing.assert_array_equal(back.arrays["charge"], chains.arrays["charge"])
    # bonds are as long as those of neighbors, across the boundaries too
    data = pipeline.compute()
    a, b = data.particles.bonds.topology[...].T
    vector = data.particles.positions[b] - data.particles.positions[a]
    vector = vector + data.particles.bonds["Periodic Image"][...] * chains.box
    assert np.linalg.norm(vector, axis=1).max() < 0.5 * chains.box.min()
    # after a modifier
    pipeline.modifiers.extend([SelectTypeModifier(types={1}), DeleteSelectedModifier()])
    rest = gm.interop.from_ovito(pipeline)
    assert rest.types == [chains.types[1]] and len(rest) == (chains.type == 1).sum()


def test_ase(chains):
    pytest.importorskip("ase")
    with pytest.warns(gm.GalamostWarning, match="to_ase does not keep `bonds`"):
        atoms = gm.interop.to_ase(chains, {"A": "C", "B": "O"})
    assert set(atoms.get_chemical_symbols()) == {"C", "O"}
    same(chains, gm.interop.from_ase(atoms), 1e-9)


def test_triclinic_boxes_are_refused(chains):
    ase = pytest.importorskip("ase")
    with pytest.raises(ValueError, match="triclinic"):
        gm.interop.from_ase(ase.Atoms("H", positions=[[0, 0, 0]], cell=[[5, 0, 0], [1, 5, 0], [0, 0, 5]], pbc=True))
    tilted = gm.Frame([[0.0, 0.0, 0.0]], [5.0, 6.0, 7.0], tilt=[0.1, 0.0, 0.0])
    with pytest.raises(ValueError, match="triclinic"):
        gm.interop.to_ase(tilted)


@pytest.mark.parametrize("package", ["gsd", "freud"])
def test_triclinic_boxes(package):
    pytest.importorskip(package)
    to, back = getattr(gm.interop, "to_" + package), getattr(gm.interop, "from_" + package)
    tilt = [0.25, -0.125, 0.5]
    frame = gm.Frame([[2.0, 1.5, 3.0], [-2.5, -2.0, 1.0]], [5.0, 6.0, 7.0], tilt=tilt, image=[[1, 2, 3], [0, 0, -1]])
    other = back(to(frame))
    assert list(other.tilt) == tilt and list(other.box) == [5.0, 6.0, 7.0]
    assert np.allclose(other.position, frame.position, atol=1e-5)
    assert np.allclose(frame.unwrapped[0], [2.0 + 5.0 + 3.0 - 0.875 * 3, 1.5 + 12.0 + 10.5, 3.0 + 21.0])
    # a position outside the box has the image of its edge
    outside = gm.Frame(frame.position + frame.cell[1], frame.box, tilt=tilt)
    wrapped = back(to(outside))
    assert np.allclose(wrapped.position, frame.position, atol=1e-5) and wrapped.image.tolist() == [[0, 1, 0]] * 2


def test_other_packages_are_imported_when_they_are_used():
    others = "gsd freud MDAnalysis ovito ase pandas IPython tqdm cupy torch"
    code = f"import sys, galamost; print([m for m in '{others}'.split() if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
