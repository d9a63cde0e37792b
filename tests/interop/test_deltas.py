# SPDX-License-Identifier: Apache-2.0
"""patch import and patch export beside slime and SkyRL: what they publish becomes a patch, what we publish they apply, byte for byte.
`make interop PEER=deltas` runs it; SLIME and SKYRL name checkouts of their repositories. slime's receiver is in SGLang, as a patch in slime's
repository."""
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys

import pytest

for needed in ("torch", "safetensors", "zstandard", "xxhash"):
    pytest.importorskip(needed, reason=f"{needed} is missing: make interop PEER=deltas makes the environment")

HERE = pathlib.Path(__file__).resolve().parent
ROOT, DATA = HERE.parents[1], HERE / "data/deltas"
COMMAND = os.environ.get("WEIGHBRIDGE") or str(ROOT / "build/release/weighbridge")
CHECKOUTS = {peer: pathlib.Path(os.environ.get(peer.upper()) or ROOT / "build/peers" / peer) for peer in ("slime", "skyrl")}
# Peer, what its encoder is told, our --to, our --checksum.
LAYOUTS = {"slime-xor": ("slime", ["xor", "xxh3-128"], "slime", "xxh3-128"),
           "slime-adler": ("slime", ["xor", "adler32"], "slime", "adler32"),
           "slime-overwrite": ("slime", ["overwrite", "adler32"], "slime-overwrite", "adler32"),
           "skyrl": ("skyrl", [], "skyrl", "xxh3-128")}


def weighbridge(*arguments):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == 0, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout


def peer(job, layout, *paths):
    name, words, *_ = LAYOUTS[layout]
    if not CHECKOUTS[name].is_dir():
        pytest.skip(f"{name} is missing: {name.upper()} names a checkout of its repository")
    subprocess.run([sys.executable, HERE / "deltas_peers.py", job, name, CHECKOUTS[name], *map(str, paths), *(words if job == "write" else [])],
                   check=True, capture_output=True, timeout=300)


def write(path, tensors):
    header, data = {}, b""
    for name, (dtype, raw, width) in tensors.items():
        header[name] = {"dtype": dtype, "shape": [len(raw) // width], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A folder and the next step: tensors longer than one of our pieces, of several dtypes, and one that stays."""
    folder, draw = tmp_path_factory.mktemp("pair"), random.Random(7)
    old, new = {}, {}
    for name, dtype, width, count, share in (("long", "BF16", 2, 2_500_000, 0.01), ("dense", "F16", 2, 70_000, 0.7), ("codes", "F8_E4M3", 1, 999, 0.1),
                                             ("ids", "I64", 8, 33, 0.5), ("kept", "F32", 4, 1000, 0)):
        raw = bytearray(draw.randbytes(width * count))
        for i in range(1, len(raw), 2):
            raw[i] &= 0x3F  # no NaN
        old[name] = (dtype, bytes(raw), width)
        for _ in range(int(share * count)):
            raw[draw.randrange(count) * width] ^= 1
        new[name] = (dtype, bytes(raw), width)
    (folder / "base").mkdir()
    write(folder / "base/model.safetensors", old)
    write(folder / "result.safetensors", new)
    return folder


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_they_publish_becomes_a_patch(layout, pair, tmp_path):
    peer("write", layout, pair / "base", pair / "result.safetensors", tmp_path / "delta")
    weighbridge("patch", "import", tmp_path / "delta", "--base", pair / "base", "-o", tmp_path / "p.zt")
    weighbridge("apply", pair / "base/model.safetensors", tmp_path / "p.zt", "-o", tmp_path / "out.safetensors")
    assert weighbridge("diff", tmp_path / "out.safetensors", pair / "result.safetensors", "--exact").startswith("equal")
    theirs = sum(path.stat().st_size for path in (tmp_path / "delta").glob("*.safetensors"))
    assert (tmp_path / "p.zt").stat().st_size < theirs


@pytest.mark.parametrize("layout", LAYOUTS)
def test_they_apply_what_we_publish(layout, pair, tmp_path):
    _, _, to, checksum = LAYOUTS[layout]
    weighbridge("diff", pair / "base", pair / "result.safetensors", "--no-metadata", "--patch", tmp_path / "p.zt")
    weighbridge("patch", "export", tmp_path / "p.zt", "--to", to, "--checksum", checksum, "--base", pair / "base", "-o", tmp_path / "delta")
    shutil.copytree(pair / "base", tmp_path / "local")
    peer("apply", layout, tmp_path / "local", tmp_path / "delta")
    assert (tmp_path / "local/model.safetensors").read_bytes() == (pair / "result.safetensors").read_bytes()


@pytest.mark.parametrize("layout", ["slime-xor", "slime-overwrite", "skyrl"])
def test_the_files_that_are_kept_are_what_they_write(layout, tmp_path):
    peer("write", layout, DATA / "base", DATA / "result.safetensors", tmp_path / "delta")
    for path in (DATA / layout).iterdir():
        assert content(tmp_path / "delta" / path.name) == content(path)


def content(path):
    """The order of metadata in a file of safetensors is another each time."""
    data = path.read_bytes()
    if path.suffix == ".json":
        return json.loads(data)
    end = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:end]), data[end:]
