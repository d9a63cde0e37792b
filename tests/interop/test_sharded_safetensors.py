# SPDX-License-Identifier: Apache-2.0
"""Tests that we split, name and index shards like the published package `huggingface_hub`, and read models that it splits."""
import json
import random

import pytest

from interop_tools import expect_equal, random_model, weighbridge

save_file = pytest.importorskip("safetensors.numpy", reason="safetensors is missing: tools/python-environments.sh makes the environment").save_file
hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is missing: tools/python-environments.sh makes the environment")
from huggingface_hub.serialization import split_state_dict_into_shards_factory  # noqa: E402

DTYPES = ["f32", "f16", "u8", "i64"]


def divided(model, size):
    return split_state_dict_into_shards_factory(model, get_storage_size=lambda array: array.nbytes, max_shard_size=size,
                                                filename_pattern="model{suffix}.safetensors")


@pytest.mark.parametrize("seed", range(8))
def test_shards_are_divided_as_the_package_divides_them(tmp_path, seed):
    model = random_model(seed, DTYPES, tensors=30)
    whole, out = tmp_path / "in.safetensors", tmp_path / "out"
    save_file(model, whole)
    # The package uses the order of a dictionary, here that of the file.
    order = [tensor["name"] for tensor in json.loads(weighbridge("inspect", "--json", whole))["files"][0]["tensors"]]
    model = {name: model[name] for name in order}
    size = random.Random(seed).choice([max(array.nbytes for array in model.values()), 1000, "0.5KB", "1MB"])
    expected = divided(model, size)
    weighbridge("convert", whole, f"{out}/", "--to", "safetensors", "--max-shard-size", str(size))
    assert sorted(path.name for path in out.glob("*.safetensors")) == sorted(expected.filename_to_tensors)
    if expected.is_sharded:
        index = json.loads((out / "model.safetensors.index.json").read_text())
        assert index["weight_map"] == expected.tensor_to_filename
        assert index["metadata"]["total_size"] == expected.metadata["total_size"]
    expect_equal(out, model)


@pytest.mark.parametrize("seed", range(4))
def test_shards_of_the_package_read_here(tmp_path, seed):
    model = random_model(seed, DTYPES, tensors=20)
    parts = divided(model, 1500)
    for name, tensors in parts.filename_to_tensors.items():
        save_file({tensor: model[tensor] for tensor in tensors}, tmp_path / name, {"format": "pt"})
    index = tmp_path / "model.safetensors.index.json"
    if parts.is_sharded:
        index.write_text(json.dumps({"metadata": parts.metadata, "weight_map": parts.tensor_to_filename}, indent=2, sort_keys=True) + "\n")
    weighbridge("verify", tmp_path)
    expect_equal(tmp_path, model)
    if parts.is_sharded:
        expect_equal(index, model)
