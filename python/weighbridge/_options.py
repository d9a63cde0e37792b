# SPDX-License-Identifier: Apache-2.0
"""The options of conversions. Made from the library's table of options by `make docs`."""

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any, TypedDict


class ConvertOptions(TypedDict, total=False):
    """What :func:`plan`, :func:`convert` and :func:`save` take by name, as the flags of ``weighbridge convert``.

    Attributes
    ----------
    allow : str | Iterable[str]
        accept losses of this kind
    cast : str or dtype
        cast every floating-point tensor, and accept the loss of precision
    cast_int : str or dtype
        cast every tensor of integers, i4 and u4 too, to an integer dtype; a number that does not fit is an error
    dequantize : str or dtype
        make quantized tensors dense, as f32, f16, bf16 or (auto) what the library that made them decodes them to, and accept the loss of layout and precision; other tensors keep their dtype unless cast
    encoding : str | None
        how to store tensor data: raw, zstd, deflate (npz), or zstd-seekable (zt2; zstd there means the same)
    level : int | None
        compression level of zstd, from 1 (fast) to 19 (small) (default: 3)
    digest : str | None
        store a checksum of each part: none, sha256, crc32c, or xxh3 (zt2)
    canonical : bool
        write the same bytes for the same content, whatever the order, container and encoding of the input
    version : str | None
        version of the .zt to write: 1.1 or 1.2
    quantize : str | None
        quantize the weights, and accept the loss of precision; for .slm: q8_0, q4_0; for .gguf: a type or a mix by its name in llama.cpp, as q4_k_m, q5_k_s, iq4_xs, or bf16, f16
    quantize_norms : bool
        when quantizing: quantize the norms too
    keep_gqa : bool
        for .slm with fewer key and value heads than query heads: pad the heads, do not repeat them
    sparse : str | None
        write tensors of a .zt as sparse (csr or coo) if they then take fewer bytes
    sparse_density : float | None
        write a tensor as sparse if at most this share of its elements (above 0, at most 1) is nonzero, whatever its size
    omit_layout_field : bool
        write zt0 without its `layout` field (published readers require it)
    created_at : str | None
        creation time of the .weights or folder to write, as ISO 8601: 2026-01-31T12:00:00Z
    model_name : str | None
        model name of the .weights or folder to write
    model_version : str | None
        model version of the .weights or folder to write
    naming : str | None
        for .gguf: the names, metadata and vocabulary of llama.cpp, so that the model runs there (llama; the default for a folder whose architecture is known), or those of the input (source)
    tensor_type : str | Iterable[str]
        when quantizing: the type of the tensors in whose names the regular expression is found; the first that fits decides
    output_tensor_type : str | None
        when quantizing: the type of output.weight
    token_embedding_type : str | None
        when quantizing: the type of the embeddings
    pure : bool
        when quantizing: one type for all tensors, without the exceptions of the mix
    imatrix : str | PathLike[str] | None
        when quantizing: an importance matrix of llama-imatrix, .gguf or .dat
    no_tokenizer : bool
        for .gguf with llama.cpp's names: leave the tokenizer out, and accept the loss
    ignore_setting : str | Iterable[str]
        for .gguf: leave out the setting KEY of config.json, whatever it would change
    as_ggml : bool
        when quantizing: the bytes of GGML where they are a defect (iq3_s with an empty group)
    base : str | PathLike[str] | None
        for an adapter of peft to .gguf, or back: the folder of its base model, or its config.json, which says how llama.cpp names its modules
    into : str | PathLike[str] | None
        for .onnx: the ONNX model to copy; its graph stays, and the tensors of the input replace those with the same names
    max_shard_size : int | str | None
        divide a safetensors, GGUF, zTensor 2 or Hugging Face folder into files with at most SIZE bytes of tensors: 5GB or 5G (decimal), 5GiB (binary), also K and M, or bytes
    reserve : int | str | None
        leave SIZE bytes free in the header of a safetensors or GGUF file, so that later edits fit in place
    overwrite : bool
        overwrite an existing output
    only : str | Iterable[str]
        take only tensors whose whole name matches
    without : str | Iterable[str]
        leave out tensors whose whole name matches
    rename : Mapping[str, str] | Callable[[str], str] | str | Iterable[str]
        rename the tensor FROM to TO, both whole names, or tensors by s/PATTERN/REPLACEMENT/
    set : Mapping[str, str]
        set the metadata KEY to VALUE, as text
    unset : str | Iterable[str]
        remove the metadata KEY, or all that a glob matches
    on_duplicate : str | None
        if several IN have the same tensor or key: error, or take that of the first or last IN (default: error)
    merge_lora : str | PathLike[str] | Iterable[str | PathLike[str]] | Mapping[str, float]
        merge a LoRA adapter (of peft, kohya's scripts or llama.cpp, or an ALR1 package) into the tensors, times SCALE (default: 1)
    resize_vocab : bool
        let a merged adapter replace the embeddings by its own with another number of rows, and update vocab_size
    """

    allow: str | Iterable[str]
    cast: Any
    cast_int: Any
    dequantize: Any
    encoding: str | None
    level: int | None
    digest: str | None
    canonical: bool
    version: str | None
    quantize: str | None
    quantize_norms: bool
    keep_gqa: bool
    sparse: str | None
    sparse_density: float | None
    omit_layout_field: bool
    created_at: str | None
    model_name: str | None
    model_version: str | None
    naming: str | None
    tensor_type: str | Iterable[str]
    output_tensor_type: str | None
    token_embedding_type: str | None
    pure: bool
    imatrix: str | PathLike[str] | None
    no_tokenizer: bool
    ignore_setting: str | Iterable[str]
    as_ggml: bool
    base: str | PathLike[str] | None
    into: str | PathLike[str] | None
    max_shard_size: int | str | None
    reserve: int | str | None
    overwrite: bool
    only: str | Iterable[str]
    without: str | Iterable[str]
    rename: Mapping[str, str] | Callable[[str], str] | str | Iterable[str]
    set: Mapping[str, str]
    unset: str | Iterable[str]
    on_duplicate: str | None
    merge_lora: str | PathLike[str] | Iterable[str | PathLike[str]] | Mapping[str, float]
    resize_vocab: bool
