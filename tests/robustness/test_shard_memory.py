# SPDX-License-Identifier: Apache-2.0
# Opening a model of many shards: how often each is opened.
import json
import re
import struct

import pytest

from robustness import require_strace, run, write_safetensors

SHARDS = 12


def safetensors(folder):
    files = [f"model-{i + 1:05}-of-{SHARDS:05}.safetensors" for i in range(SHARDS)]
    for i, file in enumerate(files):
        write_safetensors(folder / file, {f"t{i}": [1.0]})
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 4 * SHARDS}, "weight_map": {f"t{i}": file for i, file in enumerate(files)}}))
    return index


def gguf(folder):
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    for i in range(SHARDS):
        values = [("split.no", 2, "<H", i), ("split.count", 2, "<H", SHARDS), ("split.tensors.count", 5, "<i", SHARDS)]
        head = struct.pack("<4sIQQ", b"GGUF", 3, 1, len(values))
        head += b"".join(text(key) + struct.pack("<I", kind) + struct.pack(form, value) for key, kind, form, value in values)
        head += text(f"t{i}") + struct.pack("<IQIQ", 1, 8, 0, 0)
        (folder / f"model-{i + 1:05}-of-{SHARDS:05}.gguf").write_bytes(head + b"\0" * (-len(head) % 32) + bytes(32))
    return folder / f"model-00001-of-{SHARDS:05}.gguf"


def opened(trace, suffix):
    """The shards, each as often as it was opened."""
    found = re.findall(r'\bopen(?:at2?)?\([^"\n]*"([^"\n]*)".* = \d+$', trace, re.MULTILINE)
    return [path.rsplit("/", 1)[-1] for path in found if path.endswith(suffix)]


@pytest.mark.parametrize("make,suffix", [(safetensors, ".safetensors"), (gguf, ".gguf")], ids=["safetensors", "gguf"])
def test_a_shard_is_opened_once(tmp_path, make, suffix):
    """It stays open as long as the model, so that later reads are of the file that was checked: one descriptor for each."""
    require_strace()
    model, trace = make(tmp_path), tmp_path / "trace"
    done = run("inspect", "--json", model, prefix=["strace", "-f", "-qq", "-e", "trace=open,openat,openat2", "-o", trace])
    assert done.returncode == 0 and len(json.loads(done.stdout)["files"][0]["tensors"]) == SHARDS, done.stderr
    files = opened(trace.read_text(), suffix)
    assert len(set(files)) == SHARDS and len(files) <= SHARDS + (make is gguf)  # the file that is named, also to see what it is
