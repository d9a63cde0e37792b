# SPDX-License-Identifier: Apache-2.0
"""Models and their tensors. Owns open(), Model and Tensor, which refer to each other."""

from __future__ import annotations

import io
import operator
import os
import warnings
from collections.abc import Mapping
from math import prod

from . import _arrays, _core
from ._errors import Error, Finding, MissingTensorError, UnsupportedError, UsageError
from ._progress import settings
from ._record import Record
from ._shown import shown
from ._sources import is_address, to_input, to_optional_input

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Literal

    import numpy as np

    from .typing import Limits, Progress, Source, StrPath

_LEAST_MAPPED = 1 << 16  # bytes: smaller tensors are copied, because a mapping costs more
_SUFFIXES = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(size: float) -> str:
    """A size in bytes for people: ``86.7 MiB``."""
    for suffix in _SUFFIXES:
        if size < 1024 or suffix == _SUFFIXES[-1]:
            return f"{size:,.0f} {suffix}" if suffix == "B" else f"{size:,.1f} {suffix}"
        size /= 1024
    raise AssertionError


class Part:
    """One stored array of a tensor: its elements, or the codes, scales or indices that they are made of."""

    __slots__ = ("_part",)

    def __init__(self, part: _core.Part) -> None:
        self._part = part

    @property
    def role(self) -> str:
        """What it is: ``"data"``, ``"scales"``, ``"indices"``, ..."""
        return self._part.role

    @property
    def dtype(self) -> str:
        """Of its numbers, by our name or by that of the file."""
        return self._part.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Slowest dimension first."""
        return self._part.shape

    @property
    def nbytes(self) -> int:
        """Bytes once they are decoded."""
        return self._part.nbytes

    @property
    def encoding(self) -> str:
        """How the bytes are stored: ``"raw"``, ``"zstd"``, ..."""
        return self._part.encoding

    @property
    def digest(self) -> str:
        """The checksum that the file stores for it; empty if there is none."""
        return self._part.digest

    def tobytes(self, *, limits: Limits | None = None) -> bytes:
        """Its bytes, decoded."""
        return self._part.bytes(settings(limits))

    def __repr__(self) -> str:
        return f"<weighbridge.Part {self.role!r} {shown(self.dtype)} {'x'.join(map(str, self.shape)) or 'scalar'}, {size_text(self.nbytes)}>"


class Stats(Record):
    """What the elements of a tensor are like.

    Attributes
    ----------
    elements : int
        How many there are.
    min, max : float, int or None
        Of the finite elements; None if none is.
    mean, std : float or None
        Likewise.
    zeros, nans, infinities : int
        How many elements are that.
    """

    elements: int
    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    zeros: int
    nans: int
    infinities: int


class StoredWeight(Record):
    """How files store a quantized weight.

    Attributes
    ----------
    id, name : str
        Of the quantization scheme: ``"fp8 128x128"``.
    tensors : list of str
        The stored tensors that the weight is made of.
    bytes : int
        How many they take.
    """

    id: str
    name: str
    tensors: list[str]
    bytes: int


class Tensor:
    """One tensor of a model: its metadata, and its elements on request.

    Nothing is read until :meth:`numpy`, :meth:`torch`, :meth:`jax`, :meth:`tobytes` or an index asks for it. A tensor keeps the memory of its
    model alive, so it may outlive ``close()``.
    """

    __slots__ = ("_handle", "_model", "_tensor")

    def __init__(self, model: Model, tensor: _core.Tensor) -> None:
        self._model, self._tensor, self._handle = model, tensor, model._handle

    @property
    def name(self) -> str:
        """The name in the file; an id in decimal for formats without names."""
        return self._tensor.name

    @property
    def shape(self) -> tuple[int, ...] | Any:
        """Slowest dimension first. None if the file has none, as for a null dataspace of HDF5; the tensor is then not ``supported``."""
        return self._tensor.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._known_shape())

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self._known_shape())

    @property
    def dtype(self) -> str:
        """Of the elements: ``"f32"``, ``"bf16"``; ``"f32"`` for quantized tensors, which are dequantized."""
        return self._tensor.dtype

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The same as NumPy's dtype, which :meth:`numpy` gives. Raises UsageError if NumPy has none for it, as for f4, and ImportError without ml_dtypes
        for bf16 and the float8s."""
        return _arrays.numpy_dtype(self._readable(None))

    @property
    def type(self) -> str:
        """The name in the container: ``"q4_0"``, ``"sparse_csr"``, or the dtype."""
        return self._tensor.type_name

    @property
    def layout(self) -> str:
        """``"dense"``, ``"sparse_csr"``, ``"quantized_group"``, ..."""
        return self._tensor.layout

    @property
    def nbytes(self) -> int:
        """Bytes of the elements in memory, once they are dense."""
        return self._tensor.nbytes

    @property
    def attributes(self) -> dict[str, Any]:
        """Metadata of this tensor alone."""
        return self._tensor.attributes

    @property
    def parts(self) -> list[Part]:
        """The stored arrays: one for a dense tensor, values and indices for a sparse one, codes and scales for a quantized one."""
        return [Part(part) for part in self._tensor.parts()]

    @property
    def supported(self) -> bool:
        """Whether the elements can be read."""
        return self._tensor.unsupported is None

    @property
    def unsupported(self) -> Finding | None:
        """Why the elements cannot be read; None if they can."""
        why = self._tensor.unsupported
        return None if why is None else Finding.told(why)

    @property
    def scheme(self) -> str | None:
        """The quantization scheme of which the elements are codes or what completes them: ``"FP8 with scales"``; None for values.

        Codes are read as they are stored. Reading them as another dtype, ``numpy("f32")``, gives the weight that they stand for, as
        :meth:`Model.logical` does; where this version does not decode them, it raises :class:`UnsupportedError`.
        """
        scheme = self._tensor.scheme
        return None if scheme is None else scheme[0]

    @property
    def is_codes(self) -> bool:
        """Whether the elements are codes of :attr:`scheme`, which other tensors complete."""
        scheme = self._tensor.scheme
        return scheme is not None and scheme[1]

    @property
    def stored(self) -> StoredWeight | None:
        """How the files store a weight of :meth:`Model.logical`; None for other tensors."""
        stored = self._tensor.stored
        return None if stored is None else StoredWeight(**stored)

    @property
    def is_view(self) -> bool:
        """Whether :meth:`numpy` can return the file's own memory, without a copy."""
        return self._tensor.viewable

    def numpy(self, dtype: Any = None, *, copy: bool | None = None, progress: Progress = None, limits: Limits | None = None) -> np.ndarray[Any, Any]:
        """The elements as a NumPy array.

        Parameters
        ----------
        dtype : str or dtype, optional
            ``"f32"``, ``np.float32``, ...: cast to it, to the nearest value; of codes, the numbers of the weight. By default the tensor's own; bf16 and the float8s are those of
            the package ml_dtypes.
        copy : bool, optional
            As in ``numpy.asarray``: None returns a read-only view of the mapped file where there is one, and else a new array; True always
            copies; False raises ValueError where a copy would be needed.
        progress, limits
            As in :func:`open`.

        Returns
        -------
        numpy.ndarray
            Of the tensor's shape. A view keeps the file mapped.
        """
        name = self._readable(dtype)
        if name != self.dtype and self.is_codes and copy is not False:
            weight = self._model._weight(self.name, name)
            if not weight.is_codes:
                return weight.numpy(name, progress=progress, limits=limits)
            weight._rows(0, self.shape[0] if self.shape else 0, name, settings(limits))  # raises: why they are not decoded
        target = _arrays.numpy_dtype(name, name in _arrays.NUMPY_NAMES or not self.is_codes)
        if name == self.dtype and copy is not True:
            bits = self._tensor.view(True)
            if bits is not None:
                return bits.view(target) if name in _arrays.ML_NAMES else bits  # type: ignore[no-any-return]
        if copy is False:
            why = "it is cast" if name != self.dtype else "it is not stored as an array of this machine"
            raise ValueError(f"tensor {self.name!r} cannot be viewed without a copy: {why}")
        if name == self.dtype and copy and self._tensor.viewable:
            bits = _core.Tensor.copies([self._tensor], settings(limits, progress))[0]
        else:
            bits = self._rows(0, self.shape[0] if self.shape else 0, name, settings(limits, progress))
        return _arrays.as_numpy(bits, name)  # type: ignore[no-any-return]

    def _refusal(self) -> UnsupportedError:
        why = self._tensor.unsupported
        said = Finding("unsupported/layout", "error", "unsupported", "its layout is unknown") if why is None else Finding.told(why)
        return UnsupportedError(f"{self._model.name}: tensor {self.name!r}: {said.message}", said.__replace__(file=self._model.name))

    def _known_shape(self) -> tuple[int, ...]:
        if self.shape is None:
            raise self._refusal()
        return self.shape

    def _readable(self, dtype: Any) -> str:
        """The name of the dtype to read as. Raises UnsupportedError if the elements cannot be read."""
        if self.dtype == "unknown":
            raise self._refusal()
        return self.dtype if dtype is None else _arrays.our_name(dtype)

    def _rows(self, first: int, count: int, name: str, given: _core.Settings) -> Any:
        return self._tensor.rows(first, count, name, True, given)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.numpy(dtype, copy=copy)

    def __getitem__(self, key: Any) -> np.ndarray[Any, Any]:
        """Elements by NumPy's basic and advanced indices. Reads the rows that the first index selects, if it is an int or a slice."""
        _arrays.numpy_dtype(self._readable(None))
        view = self._tensor.view(True)
        if view is not None:
            return _arrays.as_numpy(view, self.dtype)[key]  # type: ignore[no-any-return]
        keys = key if isinstance(key, tuple) else (key,)
        first = keys[0] if keys else slice(None)
        rows = self.shape[0] if self.shape else 0
        if self.shape and isinstance(first, slice):
            begin, end, step = first.indices(rows)
            chosen = range(begin, end, step)
            low, high = sorted((chosen[0], chosen[-1])) if chosen else (0, -1)
            array = _arrays.as_numpy(self._rows(low, high - low + 1, self.dtype, settings()), self.dtype)
            return array[(slice(None, None, step), *keys[1:])]  # type: ignore[no-any-return]
        if self.shape and not isinstance(first, (bool, slice)) and hasattr(first, "__index__") and getattr(first, "ndim", 0) == 0:
            at = operator.index(first)
            if not -rows <= at < rows:
                raise IndexError(f"index {at} is out of bounds for dimension 0 of size {rows}")
            array = _arrays.as_numpy(self._rows(at % rows, 1, self.dtype, settings()), self.dtype)
            return array[(0, *keys[1:])]  # type: ignore[no-any-return]
        return self.numpy()[key]  # type: ignore[no-any-return]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor without dimensions")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a tensor without dimensions")
        return (self[i] for i in range(self.shape[0]))

    def __bool__(self) -> bool:
        """A tensor is true, whatever its elements are."""
        return True

    def __contains__(self, value: object) -> bool:
        return value in self.numpy()

    def tobytes(self, dtype: Any = None) -> bytes:
        """The elements, row-major and little-endian. Needs no NumPy."""
        return self._tensor.bytes(self._readable(dtype), settings())

    def __dlpack__(self, **arguments: Any) -> Any:
        """The elements for ``from_dlpack`` of NumPy, PyTorch, JAX: as :meth:`torch`, memory that is copied when it is written to."""
        return self._exchange().__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def _exchange(self) -> Any:
        name = self._readable(None)
        if name not in _arrays.NUMPY_NAMES and name not in _arrays.ML_NAMES:
            raise UsageError(f"tensor {self.name!r}: DLPack has no {name}; Tensor.numpy('f32') casts it")
        mapped = self._mapped()
        if mapped is not None:
            return self._tensor.over(*mapped)
        return self._tensor.rows(0, self.shape[0] if self.shape else 0, name, False, settings())

    def _mapped(self) -> tuple[mmap.mmap, int] | None:
        """Memory of the file that is this tensor's alone, changes no file, and begins at an offset; None for small tensors and without a file."""
        if self.nbytes < _LEAST_MAPPED or not self._tensor.viewable:
            return None
        place = self._handle.place(self._tensor)
        return None if place is None else self._model._map(*place)

    def torch(self, dtype: Any = None, *, device: Any = None) -> Any:
        """The elements as a tensor of PyTorch.

        Over the file where that is possible, mapped copy-on-write: writing to the tensor changes neither the file nor other tensors.
        """
        import torch

        name = self._readable(dtype)
        weight = self._model._weight(self.name, name) if name != self.dtype and self.is_codes else None
        if weight is not None and not weight.is_codes:
            return weight.torch(name, device=device)
        kind = _arrays.torch_dtype(name)
        mapped = self._mapped() if name == self.dtype else None
        if mapped is not None:
            buffer, offset = mapped
            bytes_ = torch.frombuffer(buffer, dtype=torch.uint8, count=self.nbytes, offset=offset)
            out = bytes_.view(kind).reshape(_torch_shape(self.shape, name))
        else:
            bits = self._rows(0, self.shape[0] if self.shape else 0, name, settings())
            out = torch.from_numpy(bits)
            out = out.view(kind).reshape(_torch_shape(self.shape, name)) if name in _arrays.TORCH_NAMES else out
        return out if device is None else out.to(device)

    def jax(self, dtype: Any = None) -> Any:
        """The elements as an array of JAX, which always copies."""
        import jax.numpy

        return jax.numpy.asarray(self.numpy(dtype))

    def stats(self, *, limits: Limits | None = None, progress: Progress = None) -> Stats:
        """What the elements are like, in double precision whatever their dtype. Quantized tensors are dequantized.

        NumPy sums bf16 and f16 in their own precision, so that ``numpy().std()`` of such a tensor is wrong: use this, or ``numpy("f32").std()``.

        Returns
        -------
        Stats

        Raises
        ------
        UnsupportedError
            The elements cannot be read, or are codes of a quantization scheme.
        """
        return Stats(**self._handle.stats(self._tensor.index, settings(limits, progress, what="stats")))

    def hash(self, *, progress: Progress = None) -> str:
        """The content digest of the elements, without the name: ``"wb2:"`` and 64 digits."""
        return self._tensor.digest(settings(None, progress))

    def __repr__(self) -> str:
        shape = "unknown shape" if self.shape is None else "x".join(map(str, self.shape)) or "scalar"
        kind = self.type if self.type != self.dtype else self.dtype
        return f"<weighbridge.Tensor {self.name!r} {shown(kind)} {shape}, {size_text(self.nbytes)}>"

    def _repr_html_(self) -> str:
        rows = [("name", self.name), ("type", self.type), ("shape", " x ".join(map(str, self.shape or ()))), ("layout", self.layout),
                ("size", size_text(self.nbytes))]
        return _table([[f"<b>{_escaped(key)}</b>", _escaped(str(value))] for key, value in rows])


class Model(Mapping[str, Tensor]):
    """An open model: a mapping from names to tensors, in the file's order, and metadata.

    Made by :func:`open`. Use it with ``with``, or leave it to the garbage collector. It may be shared between threads.
    """

    def __init__(self, model: _core.Model, name: str, reopen: tuple[Any, ...] | None = None) -> None:
        self._core: _core.Model | None = model
        self._name = name
        self._names: list[str] | None = None
        self._reopen = reopen
        self._logical: dict[str, Model] = {}  # by the dtype that weights are read as
        # What the files were when they were opened: another one by the same name is not mapped.
        self._files = _identities(model.files()) if reopen and not is_address(reopen[0]) else {}

    @property
    def _handle(self) -> _core.Model:
        """The handle of the extension module. Raises ValueError after close()."""
        if self._core is None:
            raise ValueError("the model is closed")
        return self._core

    def close(self) -> None:
        """Lets go of the file. Tensors and arrays that were taken from the model stay valid, and keep it open."""
        self._core = None

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._core is None

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The path or address that was opened."""
        return self._name

    @property
    def format(self) -> str:
        """Of the container: ``"safetensors"``, ``"zt"``, ``"hf"``, ..."""
        return self._handle.format

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata and header fields, as Python values. Those of a config.json (``"hf...."``) are what its JSON says: numbers, booleans, lists."""
        return {key: _of_json(value) if key.startswith("hf.") else value for key, value in self._handle.attributes().items()}

    @property
    def schemes(self) -> list[str]:
        """The quantization schemes that spread a weight over several tensors; see :attr:`Tensor.scheme`."""
        return self._handle.schemes()

    def logical(self, dtype: Any = None, *, limits: Limits | None = None) -> Model:
        """The model with the numbers that its codes stand for.

        Each weight of a quantization scheme that this version decodes is one tensor, which :attr:`Tensor.stored` describes; the tensors that it is
        made of are gone. Values are computed when they are read, with the bits of the library that made the file.

        Parameters
        ----------
        dtype : str or dtype, optional
            What the weights will be read as. By default each has the dtype to which the library that made it decodes it; with another one, weights
            are f32 before that rounding.
        limits
            As in :func:`open`.

        Raises
        ------
        UsageError
            `scheme` of :func:`open` names a scheme that no tensor is of.
        """
        return Model(self._handle.logical("" if dtype is None else _arrays.our_name(dtype), settings(limits)), self._name)

    def _weight(self, codes: str, dtype: str) -> Tensor:
        """The weight whose codes are the tensor of this name, to be read as a dtype; the codes if this version does not decode them."""
        if dtype not in self._logical:
            self._logical[dtype] = self.logical(dtype)
        found = self._logical[dtype]._handle.weight_of(codes)
        return self._logical[dtype][codes] if found is None else Tensor(self._logical[dtype], found)

    @property
    def file_size(self) -> int:
        """Bytes of the file, or of all its files."""
        return self._handle.file_size

    @property
    def files(self) -> list[str]:
        """The files that were read: shards, sidecars."""
        return self._handle.files()

    # A model is itself and no other, as a file is; Mapping would compare all tensors.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __len__(self) -> int:
        return len(self._handle)

    def __iter__(self) -> Iterator[str]:
        if self._names is None:
            self._names = self._handle.names()
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def _find(self, name: str) -> _core.Tensor | None:
        handle = self._handle
        try:
            return handle.find(name)
        except TypeError:  # no file has a name that is not Unicode
            return None

    def __getitem__(self, name: str) -> Tensor:
        """The tensor of this name. Raises :class:`MissingTensorError`, a KeyError, which suggests similar names."""
        if not isinstance(name, str):
            raise MissingTensorError(f"tensors are found by their names, not by {name!r}")
        found = self._find(name)
        if found is None:
            near = self._handle.nearest(name.encode(errors="replace").decode())
            hint = f"; similar: {', '.join(map(repr, near))}" if near else ""
            raise MissingTensorError(f"no tensor is called {name!r} in {self._name}{hint}")
        return Tensor(self, found)

    def numpy(self, *, copy: bool | None = None, progress: Progress = None, limits: Limits | None = None) -> dict[str, np.ndarray[Any, Any]]:
        """All tensors as NumPy arrays, by name; without tensors of texts or objects, which a warning names.

        Parameters
        ----------
        copy : bool, optional
            As in :meth:`Tensor.numpy`. Copies are read by all threads; small arrays share their memory, so one keeps up to 32 MiB.
        progress, limits
            As in :func:`open`.
        """
        if copy is True:
            tensors = [tensor for tensor in map(self._handle.at, range(len(self))) if self._holds_numbers(tensor)]
            for tensor in tensors:
                if tensor.dtype not in _arrays.NUMPY_NAMES:
                    _arrays.numpy_dtype(Tensor(self, tensor)._readable(None))
            arrays = _core.Tensor.copies(tensors, settings(limits, progress, what="read"))
            return {tensor.name: _arrays.as_numpy(array, tensor.dtype) for tensor, array in zip(tensors, arrays)}
        views, others = self._handle.views()
        others = [name for name in others if self._holds_numbers(self[name]._tensor)]
        self._require_copies(others, settings(limits, progress))
        out: dict[str, Any] = {}
        special = set(others)
        for name in self.keys():
            if name not in special and name not in views:
                continue
            out[name] = self[name].numpy(copy=copy, progress=progress, limits=limits) if name in special else views[name]
            if name not in special and out[name].dtype.kind == "u":
                dtype = self._handle.find(name).dtype  # type: ignore[union-attr]
                if dtype not in _arrays.NUMPY_NAMES:
                    out[name] = out[name].view(_arrays.numpy_dtype(dtype))
        return out

    def _holds_numbers(self, tensor: _core.Tensor) -> bool:
        if not tensor.numeric:
            warnings.warn(f"{self._name}: left out tensor {tensor.name!r} ({tensor.type_name}): it holds texts or objects", UserWarning, stacklevel=3)
        return tensor.numeric

    def _require_copies(self, names: list[str], given: _core.Settings) -> None:
        """Raises LimitError if copies of these tensors together are out of proportion to what the file stores."""
        tensors = [self[name]._tensor for name in names]
        _core.Tensor.require_copies([tensor for tensor in tensors if tensor.unsupported is None], given)

    def torch(self, *, device: Any = None) -> dict[str, Any]:
        """All tensors as tensors of PyTorch, by name: a state dict. As :meth:`Tensor.torch`."""
        import torch

        files, memories, kinds = self.files, {}, {}
        out: dict[str, Any] = {}
        places = [place for place in self._handle.places() if place[1] != "unknown" or self._holds_numbers(self[place[0]]._tensor)]
        self._require_copies([name for name, _, _, source, _ in places if source < 0], settings())
        for name, dtype, shape, source, offset in places:
            if source >= 0 and source not in memories:
                mapped = self._map(files[source])
                memories[source] = mapped[0] if mapped else None
            memory = memories.get(source)
            if memory is None or 0 in shape or dtype == "f4":
                out[name] = self[name].torch(device=device)
                continue
            if dtype not in kinds:
                kinds[dtype] = _arrays.torch_dtype(dtype)
            tensor = torch.frombuffer(memory, dtype=kinds[dtype], count=prod(shape), offset=offset)
            if len(shape) != 1:
                tensor = tensor.view(shape)
            out[name] = tensor if device is None else tensor.to(device)
        return out

    def view(
        self,
        *,
        only: str | Iterable[str] = (),
        without: str | Iterable[str] = (),
        rename: Mapping[str, str] | Callable[[str], str] | str | Iterable[str] | None = None,
        set: Mapping[str, Any] | None = None,
        unset: str | Iterable[str] = (),
    ) -> Model:
        """Some of the tensors, other names, other metadata: a model that reads from this one.

        Parameters
        ----------
        only, without : str or iterable of str
            Globs of the tensors to keep, and to leave out. ``*`` matches any text, dots included.
        rename : mapping, callable, str or iterable of str
            From names to new names, all at once; a callable gets each name that is kept. Or strings, as ``convert --rename`` takes them:
            ``"FROM=TO"``, and patterns ``"s/PATTERN/REPLACEMENT/"``, applied in turn.
        set : mapping from str
            Metadata to set: a str as it is, other values as their JSON.
        unset : str or iterable of str
            Keys of metadata to leave out.

        Raises
        ------
        UsageError
            A glob or pattern that matches no tensor, a tensor or key that is not there, two tensors of one name.
        """
        changed = _core.view(self._handle, self._changes(only, without, rename, set, unset))
        out = Model(changed, self._name)
        out._files = self._files
        return out

    def _changes(self, only: Any = (), without: Any = (), rename: Any = None, set: Mapping[str, Any] | None = None, unset: Any = ()) -> dict[str, Any]:
        """The arguments of view() as the extension module takes them, which view() takes too."""
        kept, left, gone = _texts(only or ()), _texts(without or ()), _texts(unset or ())
        if callable(rename):
            chosen = _core.view(self._handle, {"only": kept, "without": left}).names() if kept or left else list(self)
            rename = {name: rename(name) for name in chosen}
        if isinstance(rename, Mapping):
            rename = {old: new for old, new in rename.items() if old != new}
        metadata = {_text(key): _text(value) if isinstance(value, str) else _to_json(value) for key, value in (set or {}).items()}
        return {"only": kept, "without": left, "rename": _renamings(rename), "set": metadata, "unset": gone}

    def hash(self, *, names: bool = True, progress: Progress = None) -> str:
        """The content digest: equal for equal tensors in any container. ``"wb2:"`` and 64 digits."""
        return _core.hash(self._handle, names, 2, settings(None, progress))

    def zt_hash(self) -> str:
        """The content digest that zTensor 2 defines, as ``weighbridge hash --zt`` prints it: ``"sha256:"`` and 64 digits.

        Equal for files of zTensor 2 whose objects are equal, wherever and however their bytes are stored. It is computed from the digests in the
        file's index, which :func:`verify` checks.

        Raises
        ------
        UsageError
            The model is not a zTensor 2 file, or a part has no digest.
        """
        return _core.zt_hash(self._handle)

    def _map(self, path: str, offset: int = 0, length: int = 0) -> tuple[mmap.mmap, int] | None:
        """A range of a file (0: to its end) as memory that changes no file, and where the range begins in it; None if that is impossible."""
        import mmap

        begin = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        try:
            with io.open(path, "rb") as file:
                if path not in self._files or _identity(os.fstat(file.fileno())) != self._files[path]:
                    return None
                return mmap.mmap(file.fileno(), length + offset - begin if length else 0, access=mmap.ACCESS_COPY, offset=begin), offset - begin
        except (OSError, ValueError):
            return None

    def __reduce__(self) -> tuple[Any, ...]:
        if self._reopen is None:
            raise TypeError("a model that was not opened from a path cannot be pickled")
        path, arguments = self._reopen
        return _open_again, (path, arguments)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __repr__(self) -> str:
        if self.closed:
            return f"<weighbridge.Model {self._name!r}, closed>"
        count = len(self)
        return f"<weighbridge.Model {self._name!r} ({self.format}, {count:,} tensor{'' if count == 1 else 's'}, {size_text(self.file_size)})>"

    def _repr_html_(self) -> str:
        rows = [["<b>name</b>", "<b>type</b>", "<b>shape</b>", "<b>size</b>"]]
        for name in list(self)[:100]:
            tensor = self[name]
            rows.append([_escaped(name), _escaped(tensor.type), " x ".join(map(str, tensor.shape or ())), size_text(tensor.nbytes)])
        more = f"<p>and {len(self) - 100:,} more</p>" if len(self) > 100 else ""
        return f"<p>{_escaped(repr(self)[1:-1])}</p>{_table(rows)}{more}"


def open(
    file: Source,
    *,
    format: str | None = None,
    checks: Literal["all", "structure"] = "all",
    checksum_form: str | None = None,
    read_as: str | Iterable[str] = (),
    scheme: str | Iterable[str] = (),
    sidecar: Source | None = None,
    tokenizer: Source | None = None,
    list_incomplete: bool = False,
    limits: Limits | None = None,
) -> Model:
    """Opens a model in any container. Reads and checks the header; elements are read later.

    Parameters
    ----------
    file : path, bytes, file object or address
        A file or a folder; a buffer; an object with ``read`` and ``seek``; or, with the package fsspec, an address (``https://...``,
        ``s3://...``, ``hf://...``), which is read in ranges.
    format : str, optional
        The name of a format, in place of what the content shows: ``"safetensors"``, ``"zt"``, ...
    checks : {"all", "structure"}
        ``"structure"`` skips the checks of payload that a specification requires for opening (SLM).
    checksum_form : str, optional
        In which form a ``.slm`` was checksummed.
    read_as : str or iterable of str
        ``"GLOB=DTYPE"``: read the elements of matching tensors as this dtype, which has the size of theirs: ``"w=bf16"`` for raw bytes or u16.
    scheme : str or iterable of str
        ``"NAME:KEY=VALUE,..."``: what the file leaves open of a quantization scheme: ``"gptq:zeros=v1"``, ``"fp8:block=128x128"``. Converting
        then joins each layer of gptq and awq into a quantized_group of a ``.zt``, or restores the tensors of such layers.
    sidecar, tokenizer : path, bytes or file object, optional
        The sidecar of an ``.stb``, and the tokenizer file of a llama2.c checkpoint, where they are not beside the file.
    list_incomplete : bool
        Lists a model whose index and files disagree, or whose external data is missing. Tensors that are missing are not ``supported``.
    limits : dict, optional
        In bytes, by name: memory, header, decoded, work, output; and tensors, depth.

    Returns
    -------
    Model

    Raises
    ------
    MalformedError, UnsupportedError, LimitError, UsageError
        What is wrong with the file, with rule and offset.
    InputOutputError
        It cannot be read; :class:`MissingFileError` if it is not there.
    """
    path = os.fspath(file) if isinstance(file, (str, os.PathLike)) else None
    name = str(path) if path is not None else str(getattr(file, "name", "<memory>"))
    try:
        chosen = dict(format=format, checks=checks, checksum_form=checksum_form, read_as=_texts(read_as), scheme=_texts(scheme), list_incomplete=list_incomplete)
        model = _core.open(to_input(file), chosen, settings(limits), to_optional_input(sidecar), to_optional_input(tokenizer))
    except Error as error:
        raise error.in_file(name) from None
    if path is None or is_address(path):
        return Model(model, name, None if path is None else (path, {}))
    again: dict[str, Any] = {key: value for key, value in chosen.items() if value not in (None, "all", False, [])} | ({"limits": limits} if limits else {})
    for key, beside in (("sidecar", sidecar), ("tokenizer", tokenizer)):
        if beside is not None:
            again[key] = os.path.abspath(beside) if isinstance(beside, (str, os.PathLike)) and not is_address(beside) else beside
    return Model(model, name, (os.path.abspath(path), again))


def _open_again(path: str, arguments: dict[str, Any]) -> Model:
    return open(path, **arguments)


def _identities(files: list[str]) -> dict[str, tuple[int, int, int, int]]:
    try:
        return {file: _identity(os.stat(file)) for file in files}
    except OSError:  # gone already
        return {}


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _texts(given: str | Iterable[str]) -> list[str]:
    return [_text(text) for text in ([given] if isinstance(given, str) else given)]


def _renamings(given: Mapping[str, str] | str | Iterable[str] | None) -> dict[str, str] | list[str]:
    """Names and their new names, or texts as ``--rename`` takes them."""
    if isinstance(given, Mapping):
        return {_text(old): _text(new) for old, new in given.items()}
    return _texts(given or ())


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise TypeError(f"a str is expected, not {given!r}")
    given.encode()  # raises UnicodeEncodeError, a ValueError
    return given


def _to_json(value: Any) -> str:
    import json

    return json.dumps(value)


def _of_json(value: Any) -> Any:
    """The value of a member of a JSON file, which is kept as it is spelled there; a text that is no JSON is the text itself."""
    if not isinstance(value, str) or not value or value[0] not in '{["-0123456789tfn':
        return value
    import json

    try:
        return json.loads(value)
    except ValueError:
        return value


def _torch_shape(shape: tuple[int, ...], name: str) -> tuple[int, ...]:
    """The shape in PyTorch, whose f4 are pairs."""
    return (*shape[:-1], shape[-1] // 2) if name == "f4" else shape


def _escaped(text: str) -> str:
    """A text of a file for HTML: of an element or of an attribute, quoted or not."""
    import html

    return html.escape(shown(text)).replace("=", "&#61;")


def _table(rows: list[list[str]]) -> str:
    return "<table>" + "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows) + "</table>"
