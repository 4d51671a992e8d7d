import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Optional, TypeVar, Union, overload

import numpy as np
import numpy.typing as npt

from . import components as components
from . import interop as interop

__version__: str
plugin_path: list[Union[str, os.PathLike[str]]]

_Path = Union[str, os.PathLike[str]]
_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int32]
_Words = npt.NDArray[np.uint32]
_Tensor = tuple[float, float, float, float, float, float]
_Callback = TypeVar("_Callback", bound=Callable[["Simulation"], Any])

class Error(Exception): ...

class Diagnostic(NamedTuple):
    file: str
    line: Optional[int]
    column: Optional[int]
    component: Optional[str]
    message: str

class PipelineError(Error, ValueError):
    errors: list[Diagnostic]

class RunError(Error, RuntimeError):
    message: str
    notes: list[str]
    step: Optional[int]
    component: Optional[str]
    tag: Optional[int]

class GalamostWarning(UserWarning): ...

class Links:
    types: list[str]
    type: _Words
    members: _Words
    def __init__(
        self, types: Sequence[str] = ..., type: npt.ArrayLike = ..., members: npt.ArrayLike = ..., width: int = 2
    ) -> None: ...
    def __len__(self) -> int: ...

class _Arrays:
    position: _Floats
    image: _Ints
    velocity: _Floats
    @property
    def mass(self) -> _Floats: ...
    @property
    def type(self) -> _Words: ...
    @property
    def types(self) -> Sequence[str]: ...
    @property
    def type_names(self) -> npt.NDArray[np.str_]: ...
    @property
    def box(self) -> _Floats: ...
    @property
    def tilt(self) -> _Floats: ...
    @property
    def step(self) -> int: ...
    @property
    def dimensions(self) -> int: ...
    @property
    def arrays(self) -> dict[str, np.ndarray[Any, Any]]: ...
    @property
    def bonds(self) -> Links: ...
    @property
    def angles(self) -> Links: ...
    @property
    def dihedrals(self) -> Links: ...
    @property
    def impropers(self) -> Links: ...
    @property
    def unwrapped(self) -> _Floats: ...
    def __len__(self) -> int: ...

class Frame(_Arrays):
    def __init__(
        self,
        position: npt.ArrayLike,
        box: npt.ArrayLike,
        types: Sequence[str] = ...,
        type: Optional[npt.ArrayLike] = None,
        velocity: Optional[npt.ArrayLike] = None,
        image: Optional[npt.ArrayLike] = None,
        mass: Optional[npt.ArrayLike] = None,
        step: int = 0,
        dimensions: Optional[int] = None,
        arrays: Optional[Mapping[str, npt.ArrayLike]] = None,
        bonds: Union[Links, dict[str, Any], None] = None,
        angles: Union[Links, dict[str, Any], None] = None,
        dihedrals: Union[Links, dict[str, Any], None] = None,
        impropers: Union[Links, dict[str, Any], None] = None,
        tilt: npt.ArrayLike = ...,
    ) -> None: ...

class DeviceArray:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __len__(self) -> int: ...
    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray[Any, Any]: ...
    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Optional[bool] = None
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class State(_Arrays):
    @property
    def force(self) -> _Floats: ...
    @property
    def dlpack(self) -> Any: ...
    def copy(self) -> Frame: ...

class ThermoValues:
    n: int
    degrees_of_freedom: float
    kinetic: float
    kT: float
    rotational_kinetic: float
    rotational_kT: float
    potential: float
    pressure: float
    pressure_tensor: _Tensor
    momentum: tuple[float, float, float]
    volume: float
    conserved: float
    @property
    def total(self) -> float: ...

class ForceSums:
    energy: float
    virial: _Tensor

class Variant:
    name: str
    content: Any
    def __init__(self, name: str, content: Any = None) -> None: ...

class Map(dict[Any, Any]): ...

class _Variants:
    def __getattr__(self, name: str) -> Callable[..., Variant]: ...

variant: _Variants

class Component:
    name: str
    fields: dict[str, Any]
    def __init__(self, **fields: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...
    @property
    def lists(self) -> list[str]: ...

class Particles:
    step: int
    box: _Floats
    position: Any
    velocity: Any
    mass: Any
    type: Any
    def __len__(self) -> int: ...

class Force:
    virial: bool
    conserves_momentum: bool
    on_device: bool
    group: Variant
    def compute(self, particles: Particles) -> Any: ...

class Pipeline:
    path: Optional[_Path]
    seed: Optional[int]
    device: Any
    precision: Any
    neighbors: Any
    checkpoint: Any
    initial: list[Any]
    forces: list[Any]
    integrators: list[Any]
    updaters: list[Any]
    analyzers: list[Any]
    gpus: Optional[int]
    replicas: Optional[int]
    exchange: Optional[dict[str, Any]]
    ensemble: Optional[list[Any]]
    stages: list[dict[str, Any]]
    def __init__(self, path: Optional[_Path] = None, **fields: Any) -> None: ...
    @classmethod
    def from_ron(cls, text: str, path: Optional[_Path] = None) -> Pipeline: ...
    @classmethod
    def open(cls, path: _Path) -> Pipeline: ...
    def to_dict(self) -> dict[str, Any]: ...
    @property
    def ron(self) -> str: ...
    def save(self, path: _Path, overwrite: bool = False) -> None: ...
    def check(self, device: Optional[str] = None) -> int: ...
    def python_forces(self) -> dict[int, Force]: ...

class Simulation:
    def __init__(
        self,
        pipeline: Union[_Path, dict[str, Any], Pipeline],
        *,
        device: Optional[str] = None,
        set: Optional[Mapping[str, Any]] = None,
        state: Union[Frame, State, None] = None,
        resume: Union[bool, Literal["changed"]] = False,
        overwrite: bool = False,
        name: Optional[str] = None,
    ) -> None: ...
    @property
    def n(self) -> int: ...
    @property
    def device(self) -> str: ...
    @property
    def step(self) -> int: ...
    @property
    def remaining(self) -> int: ...
    @property
    def state(self) -> State: ...
    @property
    def thermo(self) -> ThermoValues: ...
    @property
    def forces(self) -> dict[str, ForceSums]: ...
    def run(self, steps: Optional[int] = None, progress: bool = False) -> Simulation: ...
    @overload
    def every(self, period: int, function: None = None) -> Callable[[_Callback], _Callback]: ...
    @overload
    def every(self, period: int, function: _Callback) -> _Callback: ...
    def remove(self, function: Callable[[Simulation], Any]) -> None: ...
    def save(self) -> os.PathLike[str]: ...
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    def __enter__(self) -> Simulation: ...
    def __exit__(self, *exception: object) -> None: ...

class Frames(Sequence[Frame]):
    path: _Path
    def __init__(self, path: _Path, format: Optional[str] = None, fields: str = "", topology: Optional[_Path] = None) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, k: int) -> Frame: ...
    @overload
    def __getitem__(self, k: slice) -> list[Frame]: ...

class Statistics:
    mean: float
    error: float
    interval: float
    deviation: float
    inefficiency: float
    drift: float
    drift_error: float
    rows: int
    skipped: int
    start: int
    equilibrated: bool
    constant: bool

class Picture:
    data: bytes
    def save(self, path: _Path, overwrite: bool = False) -> None: ...

def read(path: _Path, format: Optional[str] = None, fields: str = "", topology: Optional[_Path] = None) -> Frames: ...
def table(path: _Path) -> Any: ...
def stats(series: Any, skip: Union[int, str] = "auto") -> Any: ...
def render(source: Union[Simulation, Frame, State, _Path], **options: Any) -> Picture: ...
def command(*args: Any, cwd: Optional[_Path] = None) -> str: ...
def build_pair(source: str, folder: _Path = "galamost-plugins") -> type[Component]: ...
def load_plugin(folder: _Path) -> None: ...
def __getattr__(name: str) -> type[Component]: ...
