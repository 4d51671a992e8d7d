"""Simulations."""

import atexit
import collections.abc
import os
import pathlib
import sys
import threading
import time
import weakref

import numpy as np

from . import _errors, _files, _galamost, _plugins
from ._force import Computed, is_computing
from ._frame import Frame, State, whole
from ._pipeline import NO_FILE, Pipeline

#: the last step that the engine can count
LAST_STEP = 2**63 - 1
#: the message of the native part
IN_USE = "another thread is using the simulation; wait until its call has returned"
OF_ANOTHER = ("a simulation cannot be opened, run or changed in `compute` of a force: it may wait for the thread that computes the "
              "force; do it in a callback of `every`")
IN_COMPUTE = "a simulation cannot be used in `compute` of one of its forces; `particles` has the values of the step"

#: `run` flushes growing files if the last flush is longer ago than this times what it took: at most a tenth of the time
FLUSH_PAUSE = 10.0

#: bytes of the longest name; those of files are longer, such as NAME.checkpoint.old.2
LONGEST_NAME = 200

#: simulations whose thread calls forces of Python
_WITH_FORCES = weakref.WeakSet()


@atexit.register
def _close_all():
    """Closes simulations with forces of Python. Their threads call Python, which they no longer can while the interpreter ends, so the
    program would wait for them."""
    for simulation in list(_WITH_FORCES):
        try:
            simulation.close()
        except _errors.Error as e:
            print(f"galamost: {e}", file=sys.stderr)


class ThermoValues(_errors.FixedNamespace):
    """Thermodynamic values of one step: `kT`, `pressure`, `pressure_tensor` (xx, xy, xz, yy, yz, zz),
    `potential`, `kinetic`, `conserved`, `volume`, `momentum`, `degrees_of_freedom`, `n`, `rotational_kinetic`,
    `rotational_kT`. Energies are those of the whole system."""

    @property
    def total(self):
        """Kinetic and potential energy."""
        return self.kinetic + self.rotational_kinetic + self.potential


class ForceSums(_errors.FixedNamespace):
    """Sums of one force over the system: `energy` and `virial` (xx, xy, xz, yy, yz, zz)."""


def is_text(pipeline):
    """Whether a string is a pipeline, not a file name."""
    return pipeline.lstrip().startswith(("(", "#![", "//", "/*")) and "(" in pipeline


class Simulation:
    """A simulation of a pipeline.

    `pipeline` is a file name, RON text, a `dict`, or a `Pipeline`. Relative paths in it refer to its file, or
    to the working directory at this call. The whole pipeline is checked here; a `PipelineError` lists all mistakes.

    device: `"auto"`, `"cpu"`, `"cuda:0"` or `"emulated"`; replaces the pipeline's.
    set: values of the pipeline to replace, as `{"stages[0].dt": 0.01}`.
    state: a `Frame` to start from; the generators of `initial`, if there are any, modify it.
    resume: continue from the newest checkpoint; `"changed"` accepts one with other settings, as `--resume-changed`.
    overwrite: replace the files of an earlier run instead of renaming them to `NAME.old`.
    name: name of a pipeline that is in no file, for its checkpoint; a name of files, without folders. If another simulation without output files has the
        name, this one becomes `NAME-2`, and `save` warns of it.

    A derived class may have further attributes. A simulation runs in a separate thread, and several can exist at the same time. Close it with `close()` or a
    `with` statement: components then finish their files.
    """

    def __init__(self, pipeline, *, device=None, set=None, state=None, resume=False, overwrite=False, name=None):
        _require_no_force()
        _plugins.load()
        resume, changed = _resumed(resume)
        _require_name(name)
        path, text, forces = _source(pipeline, name)
        overrides = _overrides(set)
        _errors.require_instance(device, "device", (str, type(None)), 'a name such as "cpu" or "cuda:0"')
        _errors.require_instance(overwrite, "overwrite", (bool, np.bool_), "True or False")
        _errors.require_instance(state, "state", (Frame, State, type(None)), "a Frame or the state of a simulation")
        if isinstance(state, State):
            state = state.copy()
        given = None if state is None else state._native()
        if forces:
            _galamost.load_forces(_galamost.__file__)
        # threads that compute a force of this simulation
        self._computing = []
        forces = {number: Computed(f, self._computing) for number, f in forces.items()}
        # the exception with which a force ended the run
        self._cause = None
        # whether growing files have all frames and rows of the steps so far, and the time before which `run` does not flush them
        self._flushed, self._flush_due = True, 0.0
        # held while files are flushed, also by a reader in another thread
        self._flushing = threading.RLock()
        try:
            self._native = _galamost.Simulation(path, text, overrides, device, given, resume, changed, bool(overwrite), forces)
        finally:
            _errors.warn()
        # files that lack something, and whether each has results of all samples
        self._outputs = dict(self._native.outputs)
        if self._outputs:
            _files.WRITING.add(self)
        if forces:
            _WITH_FORCES.add(self)
        self._callbacks, self._cache, self._sample = [], None, None
        # held during `run`, by the thread `_runner`
        self._running, self._runner = threading.Lock(), None

    def __setattr__(self, name, value):
        _errors.require_attribute(self, name, ())
        super().__setattr__(name, value)

    def __getattr__(self, name):
        raise _errors.no_attribute(self, name)

    def __reduce_ex__(self, protocol):
        # a shallow copy would close the run of the original at its end
        raise TypeError("a simulation cannot be copied or pickled; `sim.state.copy()` is its state, and `save` writes a checkpoint")

    def _lacks(self, file):
        """What an output file of this simulation may lack now; None if it lacks nothing. Frames and rows in memory are written first,
        if no thread is in `run`."""
        if file not in self._outputs or not self._is_usable():
            return None
        if self._outputs[file]:
            return "the result of its samples is complete after close()"
        self._flush_if_idle()
        return None if self._flushed else "frames and rows are complete after run() has returned, save() and close()"

    def _flush(self):
        """Writes frames and rows that are in memory to their files."""
        with self._flushing:
            begun = time.monotonic()
            self._call("flush")
            ended = time.monotonic()
            self._flushed, self._flush_due = True, ended + FLUSH_PAUSE * (ended - begun)

    def _flush_if_idle(self):
        """Flushes before a file is read, unless a thread is in `run`. If that fails, the next use of the simulation is the error."""
        # a force must not wait: another thread that flushes or closes may need the thread that computes the force
        if not self._flushing.acquire(blocking=not is_computing()):
            return
        try:
            # `run` waits for this lock before its first step
            if not self._flushed and not self._running.locked() and self._is_usable():
                self._flush()
        except _errors.RunError:
            pass
        finally:
            self._flushing.release()

    def _is_usable(self):
        return not self.closed and self._native.failed_at is None

    def _call(self, method, *args):
        self._require_outside_of_forces()
        try:
            return getattr(self._native, method)(*args)
        except _errors.RunError as e:
            # later errors have the cause of the failure, too
            if self._cause is None:
                self._cause = e.__cause__
            elif e.__cause__ is None:
                e.__cause__ = self._cause
            raise
        finally:
            _errors.warn()

    # the state

    @property
    def n(self):
        """Number of particles."""
        return self._native.n

    @property
    def device(self):
        """`"cpu"` or `"cuda"`."""
        return self._native.device

    @property
    def step(self):
        """The current step."""
        return self._call("position")[0]

    @property
    def remaining(self):
        """Steps until the end of the pipeline's stages."""
        return self._call("position")[1]

    def _read(self):
        return self._call("state")

    def _frame(self):
        if self._native.closed or self._cache is None or self._is_computed_here():
            self._cache = Frame._of(self._read(), fixed=True)
        return self._cache

    @property
    def state(self):
        """The state at the current step; see `State`."""
        return State(self)

    def _replace(self, position, image, velocity):
        self._require_outside_of_forces()
        _require_no_force()
        self._cache = self._sample = None
        self._call("replace", position, image, velocity)

    def _sums(self):
        if self._native.closed or self._sample is None or self._is_computed_here():
            values, forces = self._call("sample")
            named = {}
            for name, energy, virial in forces:
                twins = sum(k.split(":")[0] == name for k in named)
                named[f"{name}:{twins + 1}" if twins else name] = ForceSums(energy=energy, virial=tuple(virial))
            self._sample = ThermoValues(**values), _errors.FixedDict(named)
        return self._sample

    @property
    def thermo(self):
        """Thermodynamic values of the current step; see `ThermoValues`."""
        return self._sums()[0]

    @property
    def forces(self):
        """Energy and virial of each force by name. A second force of the same name is `NAME:2`, as in tables; forces in
        Python are `PythonForce`."""
        return self._sums()[1]

    # the run

    def run(self, steps=None, progress=False):
        """Does `steps` steps, along the stages of the pipeline; the last stage has no end. Without `steps`: to the
        end of the pipeline. Ctrl-C stops after a step; the simulation can then be used and continued.

        Growing files, such as trajectories and tables with a row for each sample, have all steps so far when `gm.read`, `gm.table`,
        `gm.stats`, or `gm.command` reads them between calls of `run`, also after an exception of a callback or Ctrl-C. For other
        programs they are complete after `save` and `close`; after `run` they can lag behind, so that at most a tenth of the time is
        spent on writing them.
        Results of all samples, such as those of `Rdf` and `Msd`, are complete after `close`. A `RunError` ends the run; see
        its documentation for what can be used then.

        `progress` shows a bar, by tqdm if it is installed.
        """
        self._require_outside_of_forces()
        _require_no_force()
        if not self._running.acquire(blocking=False):
            text = IN_USE if self._is_elsewhere() else "run() cannot be called in a callback of the same simulation"
            raise _errors.RunError(text, text, [])
        try:
            self._runner = threading.get_ident()
            step, remaining = self._call("position")
            steps = remaining if steps is None else whole(steps, "the number of steps")
            if steps < 0:
                raise ValueError(f"{steps} steps: the number of steps cannot be negative")
            end = step + steps
            if end > LAST_STEP:
                raise ValueError(f"{steps} steps: the run would end beyond step {LAST_STEP}")
            if steps:
                with self._flushing:
                    self._flushed = False
            is_done = False
            try:
                self._advance(step, end, progress)
                is_done = True
            finally:
                # also after an exception of a callback, which leaves the simulation usable, and then in any case
                if self._is_usable() and not (is_done and time.monotonic() < self._flush_due):
                    self._flush()
        finally:
            self._runner = None
            self._running.release()
        return self

    def _advance(self, step, end, progress):
        """Does the steps of `run`, and calls callbacks."""
        steps = end - step
        with _Bar(steps, progress) as bar:
            while step < end:
                after = min([end, bar.next(step, steps), *((step // p + 1) * p for p, _ in self._callbacks)])
                try:
                    self._call("advance", after - step)
                finally:
                    # also what another thread has read just before
                    self._cache = self._sample = None
                bar.update(after - step)
                step = after
                for period, function in list(self._callbacks):
                    if step % period == 0:
                        function(self)

    def _is_computed_here(self):
        """Whether this thread computes a force of the simulation, which would wait for itself."""
        return threading.get_ident() in self._computing

    def _require_outside_of_forces(self):
        if self._is_computed_here():
            raise _errors.RunError(IN_COMPUTE, IN_COMPUTE, [])

    def _require_open(self):
        if self.closed:
            # the error of the native part
            self._call("position")

    def _is_elsewhere(self):
        """Whether another thread is in `run`."""
        return self._running.locked() and self._runner != threading.get_ident()

    def every(self, period, function=None):
        """Calls a function with the simulation after each step that is a multiple of `period`, as a decorator:

            @sim.every(1000)
            def log(sim):
                print(sim.step, sim.thermo.kT)

        An exception ends `run()` after this step; the simulation can be used and continued.
        """
        period = whole(period, "the period")
        if period < 1:
            raise ValueError("the period must be at least 1 step")
        self._require_open()

        def add(f):
            if not callable(f):
                raise TypeError(f"a callback must be a function of the simulation, not {f!r}")
            self._callbacks.append((period, f))
            return f

        return add if function is None else add(function)

    def remove(self, function):
        """Removes a callback."""
        self._callbacks = [(p, f) for p, f in self._callbacks if f is not function]

    def save(self):
        """Writes a checkpoint and returns its file: `NAME.checkpoint`, or `NAME-2.checkpoint` if another simulation had the
        name when this one began."""
        file = pathlib.Path(self._call("save"))
        self._flushed = not self._running.locked()
        return file

    def close(self):
        """Ends the run: components finish their files. A checkpoint is written if the pipeline has checkpoints, or if
        `save` has written one."""
        self._require_outside_of_forces()
        if self._is_elsewhere():
            raise _errors.RunError(IN_USE, IN_USE, [])
        self._callbacks, self._cache, self._sample = [], None, None
        # not while another thread flushes a file to read it
        with self._flushing:
            self._call("close")

    @property
    def closed(self):
        """Whether the simulation is closed."""
        return self._native.closed

    def __enter__(self):
        self._require_open()
        return self

    def __exit__(self, *exception):
        self.close()

    def __del__(self):
        # the cycle collector calls this before it breaks a cycle, while the forces can still be computed
        native = self.__dict__.get("_native")
        if native is not None:
            try:
                native.close()
            except Exception:  # nothing can take it
                pass

    def __repr__(self):
        if self.closed:
            return "<Simulation, closed>"
        if self._native.failed_at is not None:
            return f"<Simulation of {self.n} particles on {self.device}, failed at step {self._native.failed_at}>"
        return f"<Simulation of {self.n} particles at step {self.step} on {self.device}>"

    def _repr_png_(self):
        return _files.render(self)._repr_png_()


def _ron(value):
    from ._notation import to_ron

    return to_ron(value, width=None)


def _resumed(resume):
    """Whether to resume from a checkpoint, and whether to accept one with other settings."""
    if isinstance(resume, str):
        if resume != "changed":
            raise ValueError(f'`resume` must be True, False or "changed", not {resume!r}')
        return True, True
    return bool(resume), False


def _require_no_force():
    """Requires that this thread computes no force."""
    if is_computing():
        raise _errors.RunError(OF_ANOTHER, OF_ANOTHER, [])


def _require_name(name):
    """Requires the name of a file without folders."""
    if name is None:
        return
    _errors.require_instance(name, "name", str, "a text")
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"`name` is {name!r}; it must be a name of files, without folders")
    if len(os.fsencode(name)) > LONGEST_NAME:
        raise ValueError(f"`name` has {len(os.fsencode(name))} bytes; the names of files can have {LONGEST_NAME} before their extensions")


def _overrides(given):
    """The texts of the argument `set`."""
    _errors.require_instance(given, "set", (collections.abc.Mapping, type(None)), 'a dict such as {"stages[0].dt": 0.01}')
    for key in given or {}:
        if not isinstance(key, str):
            raise TypeError(f'`set` has the key {key!r}; keys must be texts such as "stages[0].dt"')
    return [f"{k}={v if isinstance(v, str) else _ron(v)}" for k, v in (given or {}).items()]


def _source(pipeline, name=None):
    """File and text of a pipeline, and its forces in Python."""
    if name and "." in name:
        # the names of files replace what follows the last dot
        name += ".ron"
    if isinstance(pipeline, dict):
        pipeline = Pipeline(**pipeline)
    if isinstance(pipeline, Pipeline):
        path = os.fspath(pipeline.path) if pipeline.path else name or NO_FILE
        return path, pipeline.ron, pipeline.python_forces()
    if isinstance(pipeline, str) and is_text(pipeline):
        return name or NO_FILE, pipeline, {}
    _errors.require_instance(pipeline, "pipeline", (str, os.PathLike), "a file name, RON text, a dict or a Pipeline")
    if not os.fspath(pipeline).strip():
        raise ValueError("`pipeline` is an empty text; give a file name, RON text, a dict or a Pipeline")
    return os.fspath(pipeline), None, {}


class _Bar:
    """A progress bar: tqdm if it is installed, otherwise a line on the terminal."""

    def __init__(self, total, show):
        self.show, self.done, self.total, self.bar = show and total > 0, 0, total, None

    def __enter__(self):
        if self.show:
            try:
                from tqdm.auto import tqdm

                self.bar = tqdm(total=self.total, unit="step", unit_scale=True)
            except ImportError:
                pass
        return self

    def next(self, step, steps):
        """The next step at which the bar is redrawn."""
        return step + max(1, steps // 100) if self.show else sys.maxsize

    def update(self, steps):
        self.done += steps
        if self.bar is not None:
            self.bar.update(steps)
        elif self.show:
            sys.stderr.write(f"\r{self.done} of {self.total} steps")
            sys.stderr.flush()

    def __exit__(self, *exception):
        if self.bar is not None:
            self.bar.close()
        elif self.show:
            sys.stderr.write("\n")
