# SPDX-License-Identifier: Apache-2.0
"""``load``, ``load_file``, ``save``, ``save_file``, ``load_model`` and ``save_model`` with tensors of PyTorch, as safetensors.torch."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import Any

import torch

from . import TensorSpec, _loaded, safe_open, serialize, serialize_file

__all__ = ["load", "load_file", "load_model", "save", "save_file", "save_model", "storage_ptr", "storage_size"]

_TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64, "I32": torch.int32,
          "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool, "C64": torch.complex64}
for _ours, _theirs in {"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz",
                       "F8_E5M2FNUZ": "float8_e5m2fnuz", "U64": "uint64", "U32": "uint32", "U16": "uint16",
                       "F4": "float4_e2m1fn_x2"}.items():
    if hasattr(torch, _theirs):
        _TYPES[_ours] = getattr(torch, _theirs)
_SIZE = {dtype: dtype.itemsize for dtype in _TYPES.values()}


def storage_ptr(tensor: torch.Tensor) -> int:
    """The address of a tensor's storage; of its first element where it has none."""
    try:
        return tensor.untyped_storage().data_ptr()
    except NotImplementedError:
        return 0


def storage_size(tensor: torch.Tensor) -> int:
    """The bytes of a tensor's storage."""
    try:
        return tensor.untyped_storage().nbytes()
    except NotImplementedError:
        return tensor.nelement() * tensor.element_size()


def _end_ptr(tensor: torch.Tensor) -> int:
    """The address after a tensor's last element."""
    if not tensor.nelement():
        return tensor.data_ptr()
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr() + (last + 1) * tensor.element_size()


def _is_complete(tensor: torch.Tensor) -> bool:
    """Whether a tensor covers its whole storage."""
    return tensor.data_ptr() == storage_ptr(tensor) and tensor.nelement() * tensor.element_size() == storage_size(tensor)


def _find_shared_tensors(state_dict: dict[str, torch.Tensor]) -> list[set[str]]:
    """Names whose tensors share a storage: a set for each storage, and of those that overlap without being one, a set for each name."""
    storages: dict[Any, set[str]] = defaultdict(set)
    for name, tensor in state_dict.items():
        if tensor.device != torch.device("meta") and storage_ptr(tensor) and storage_size(tensor):
            storages[tensor.device, storage_ptr(tensor), storage_size(tensor)].add(name)
    return _filter_shared_not_shared(list(storages.values()), state_dict)


def _filter_shared_not_shared(groups: list[set[str]], state_dict: dict[str, torch.Tensor]) -> list[set[str]]:
    """Splits each group of names into those whose ranges of memory overlap."""
    out: list[set[str]] = []
    for names in groups:
        ranges = sorted((state_dict[name].data_ptr(), _end_ptr(state_dict[name]), name) for name in names)
        end = None
        for begin, stop, name in ranges:
            if end is not None and begin < end:
                out[-1].add(name)
                end = max(end, stop)
            else:
                out.append({name})
                end = stop
    return out


def _remove_duplicate_names(
    state_dict: dict[str, torch.Tensor], *, preferred_names: list[str] | None = None, discard_names: list[str] | None = None
) -> dict[str, list[str]]:
    """Of names that share memory, which one to keep, with the others: the preferred one that covers its storage, by name."""
    preferred, discard = set(preferred_names or ()), set(discard_names or ())
    out: dict[str, list[str]] = {}
    for names in _find_shared_tensors(state_dict):
        complete = {name for name in names if _is_complete(state_dict[name])}
        if not complete:
            raise RuntimeError(f"Error while trying to find names to remove to save state dict, but found no suitable name to keep for saving amongst: "
                               f"{names}. None is covering the entire storage. Refusing to save/load the model since you could be storing much "
                               "more memory than needed. Save the tensors that you need as copies, or open an issue.")
        keep = sorted(complete)[0]
        for some in (complete - discard, complete & preferred if preferred else set()):
            if some:
                keep = sorted(some)[0]
        if len(names) > 1:
            out[keep] = sorted(names - {keep})
    return out


def _evaluate_tensors_for_save(tensors: dict[str, torch.Tensor]) -> None:
    """Raises for what cannot be saved: other objects than tensors, sparse ones, those that share memory."""
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    sparse = []
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
        if tensor.layout != torch.strided:
            sparse.append(name)
    if sparse:
        raise ValueError(f"You are trying to save a sparse tensors: `{sparse}` which this library does not support. You can make it a dense tensor "
                         "before saving with `.to_dense()` but be aware this might make a much larger file than needed.")
    shared = [names for names in _find_shared_tensors(tensors) if len(names) > 1]
    if shared:
        raise RuntimeError(f"Some tensors share memory, this will lead to duplicate memory on disk and potential differences when loading them "
                           f"again: {shared}. A potential way to correctly save your model is to use `save_model`.")


def _flatten_as_ptr(tensors: dict[str, torch.Tensor], keep_alive_buffer: list[Any]) -> dict[str, TensorSpec]:
    """Where the elements of each tensor are. `keep_alive_buffer` gets what must live as long as that is used."""
    _evaluate_tensors_for_save(tensors)
    out = {}
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either means you are trying to save "
                             "tensors which are reference of each other in which case it's recommended to save only the full tensors, and reslice at "
                             "load time, or simply call `.contiguous()` on your tensor to pack it before saving.")
        if tensor.device.type != "cpu":
            tensor = tensor.to("cpu")
        tensor = tensor.resolve_conj().resolve_neg()  # in memory, such a tensor has the numbers of the one that it views
        keep_alive_buffer.append(tensor)
        out[name] = TensorSpec(dtype=str(tensor.dtype).removeprefix("torch."), shape=tensor.shape, data_ptr=tensor.data_ptr(),
                               data_len=tensor.nelement() * tensor.element_size())
    return out


def save(tensors: dict[str, torch.Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """A safetensors file in memory."""
    held: list[torch.Tensor] = []
    specs = _flatten_as_ptr(tensors, held)
    out = serialize(specs, metadata)
    del held
    return out


def save_file(tensors: dict[str, torch.Tensor], filename: str | os.PathLike[str], metadata: dict[str, str] | None = None) -> None:
    """Writes a safetensors file."""
    held: list[torch.Tensor] = []
    specs = _flatten_as_ptr(tensors, held)
    serialize_file(specs, filename, metadata)
    del held


def load(data: bytes) -> dict[str, torch.Tensor]:
    """The tensors of a file in memory, copied."""
    return {name: tensor.torch() for name, tensor in _loaded(data).items()}


def load_file(filename: str | os.PathLike[str], device: Any = "cpu", *, backend: str = "mmap") -> dict[str, torch.Tensor]:
    """The tensors of a file, in any container. On the CPU, memory of the file, copied when it is written to."""
    with safe_open(filename, framework="pt", device=device, backend=backend) as file:
        return file.get_tensors()


def save_model(model: torch.nn.Module, filename: str | os.PathLike[str], metadata: dict[str, str] | None = None, force_contiguous: bool = True) -> None:
    """Writes the tensors of a module. Of names that share memory it writes one; the metadata has the others."""
    state = model.state_dict()
    for keep, others in _remove_duplicate_names(state).items():
        for name in others:
            metadata = {} if metadata is None else metadata
            metadata.setdefault(name, keep)
            del state[name]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    try:
        save_file(state, filename, metadata=metadata)
    except ValueError as error:
        raise ValueError(f"{error} Or use save_model(..., force_contiguous=True), read the docs for potential caveats.") from error


def load_model(
    model: torch.nn.Module, filename: str | os.PathLike[str], strict: bool = True, device: Any = "cpu", *, backend: str = "mmap"
) -> tuple[set[str], list[str]]:
    """Loads a file into a module, in any container.

    Returns
    -------
    (missing, unexpected) : set of str, list of str
        Names that the file lacks, and that the module lacks. With `strict` either raises RuntimeError.
    """
    state = load_file(filename, device=device, backend=backend)
    own = model.state_dict()
    duplicates = _remove_duplicate_names(own, preferred_names=list(state))
    lacking, unexpected = model.load_state_dict(state, strict=False)
    missing = set(lacking)
    for others in duplicates.values():
        for name in others:  # the module has it under another name
            if name in missing:
                missing.remove(name)
            else:
                unexpected.append(name)
    if strict and (missing or unexpected):
        lines = [f"Error(s) in loading state_dict for {model.__class__.__name__}:"]
        if missing:
            lines.append("    Missing key(s) in state_dict: " + ", ".join(f'"{name}"' for name in sorted(missing)))
        if unexpected:
            lines.append("    Unexpected key(s) in state_dict: " + ", ".join(f'"{name}"' for name in sorted(unexpected)))
        raise RuntimeError("\n".join(lines))
    return missing, list(unexpected)


def _tobytes(tensor: torch.Tensor, name: str) -> bytes:
    held: list[torch.Tensor] = []
    specs = _flatten_as_ptr({name: tensor}, held)
    out = bytes(specs[name]._memory())
    del held
    return out
