# SPDX-License-Identifier: Apache-2.0
# Small files whose tensors share bytes, so that reading each tensor by itself would take minutes: the work of every verb is bounded by
# the data that is there (Limits::work and Limits::output). Time is processor time, with room for a busy machine.
import json

import pytest

from robustness import Measured, write_safetensors
from test_bounds import cbor_head, component, dense, manifest, mapping, number, text, zt

zstandard = pytest.importorskip("zstandard", reason="the Python package zstandard is missing")

SECONDS = 5
MIB = 1 << 20


def frame(size):
    """A zstd frame of zeros that does not state its size."""
    coder = zstandard.ZstdCompressor(level=19, write_content_size=False).compressobj()
    out = b"".join(coder.compress(bytes(MIB)) for _ in range(size // MIB)) + coder.flush()
    assert len(out) < size // 10_000
    return out


def compressed(offset, stored, **more):
    return component(offset, len(stored), encoding=text("zstd"), **more)


@pytest.fixture
def hostile(tmp_path):
    def write(objects, payload):
        path = tmp_path / "hostile.zt"
        path.write_bytes(zt(manifest(mapping(objects)), payload))
        return path
    return write


def bounded(*arguments, status=0, rule=None, seconds=SECONDS):
    done = Measured(*arguments)
    assert done.status == status, (arguments, done.status, done.stderr[-500:])
    assert done.user < seconds, f"{arguments[0]}: {done.user} s"
    if rule:
        assert rule in done.stdout + done.stderr, (done.stdout[-500:], done.stderr[-500:])
    return done.stdout


def test_tensors_that_claim_different_sizes_of_one_frame_share_its_decoding(hostile):
    stored = frame(256 * MIB)
    path = hostile({f"w{i:02}": dense([256 * MIB + i], compressed(64, stored)) for i in range(50)}, stored)
    found = json.loads(bounded("verify", "--json", path, status=1))["files"][0]["findings"]
    assert {f["rule"] for f in found} == {"zt/zstd"} and {f["tensor"] for f in found} == {f"w{i:02}" for i in range(1, 50)}
    bounded("hash", path, status=1, rule="limit/work")
    bounded("inspect", "--stats", path, status=1, rule="limit/work")
    bounded("convert", path, path.with_name("out.safetensors"), "--allow", "alias", status=1)


def test_alternating_shapes_over_one_payload_share_its_decoding(hostile):
    stored = frame(256 * MIB)
    path = hostile({f"w{i:02}": dense([256 * MIB] if i % 2 else [1, 256 * MIB], compressed(64, stored)) for i in range(40)}, stored)
    bounded("verify", path)
    together = bounded("hash", path, "--no-names")
    stats = json.loads(bounded("inspect", "--stats", "--json", path))["files"][0]["tensors"]
    assert all(tensor["stats"]["zeros"] == 256 * MIB for tensor in stats)
    # The digest is that of the same tensors with a payload each.
    apart, payload = {}, b""
    for i in range(40):
        apart[f"w{i:02}"] = dense([256] if i % 2 else [1, 256], component(64 + 256 * i, 256))
        payload += bytes(256)
    small = hostile({f"w{i:02}": dense([256] if i % 2 else [1, 256], component(64, 256)) for i in range(40)}, payload)
    shared = bounded("hash", small, "--no-names")
    assert bounded("hash", hostile(apart, payload), "--no-names") == shared != together


def test_shifted_ranges_are_not_hashed_one_by_one(hostile):
    size = 256 << 10
    digest = {"digest": text("sha256:" + "0" * 64)}
    path = hostile({f"w{i:04}": dense([size - 64 * i], component(64 + 64 * i, size - 64 * i, **digest)) for i in range(4000)}, bytes(size))
    for verb in ("verify", "hash"):
        bounded(verb, path, status=1, rule="limit/work")
    bounded("inspect", "--stats", path, status=1, rule="limit/work")
    bounded("convert", path, path.with_name("out.zt"), "--allow", "alias", status=1)


def test_an_output_is_in_proportion_to_the_data(hostile, tmp_path):
    size = MIB
    path = hostile({f"w{i:05}": dense([size - 64 * i], component(64 + 64 * i, size - 64 * i)) for i in range(16_000)}, bytes(size))
    out = tmp_path / "out.safetensors"
    bounded("convert", path, out, "--allow", "alias", status=1, rule="limit/output")
    assert not out.exists()
    few = hostile({f"w{i}": dense([size - 64 * i], component(64 + 64 * i, size - 64 * i)) for i in range(300)}, bytes(size))
    bounded("convert", few, out, "--allow", "alias", status=1, rule="limit/output")
    bounded("convert", few, out, "--allow", "alias", "--limit", "output=1G", "--limit", "work=1G")
    assert out.stat().st_size > 290 * size


def csr(stored, columns, indptr):
    """One row whose values and indices are the same frame at offset 64, and whose indptr is at the next multiple of 64 behind it."""
    data = compressed(64, stored, dtype="u64")
    return mapping({"shape": cbor_head(4, 2) + number(1) + number(columns), "format": text("sparse_csr"), "components": mapping({
        "values": data, "indices": data, "indptr": component(64 + len(aligned(stored)), len(indptr), "u64")})})


def aligned(data):
    return data + bytes(-len(data) % 64)


def test_sparse_tensors_over_one_frame_are_checked_within_bounds(hostile):
    """And opening does not decode for long to learn a size that the file does not state."""
    stored, count = frame(128 * MIB), 128 * MIB // 8
    indptr = b"".join(value.to_bytes(8, "little") for value in (0, count))
    path = hostile({f"w{i:02}": csr(stored, count + i, indptr) for i in range(40)}, aligned(stored) + indptr)
    bounded("inspect", path)
    bounded("verify", path, status=1, rule="limit/work")
    stored = frame(512 * MIB)
    path = hostile({"w": csr(stored, 9, indptr)}, aligned(stored) + indptr)
    bounded("inspect", path, status=1, rule="limit/work", seconds=1)
    bounded("inspect", path, "--limit", "work=1G")


def test_append_is_bounded_as_convert_is(hostile, tmp_path):
    size, grown = MIB, tmp_path / "grown.zt"
    small = write_safetensors(tmp_path / "small.safetensors", {"a": [1, 2]})
    assert Measured("convert", small, grown).status == 0
    before = grown.read_bytes()
    path = hostile({f"w{i:05}": dense([size - 64 * i], component(64 + 64 * i, size - 64 * i)) for i in range(16_000)}, bytes(size))
    bounded("append", grown, path, "--allow", "alias", status=1, rule="limit/output")
    stored = frame(256 * MIB)
    path = hostile({f"w{i:02}": dense([256 * MIB + i], compressed(64, stored)) for i in range(50)}, stored)
    bounded("append", grown, path, "--allow", "alias", status=1)
    assert grown.read_bytes() == before


def test_frames_that_overlap_are_not_decoded_one_by_one(hostile):
    """Skippable frames before one frame: every later start is a part of its own that decodes to the same bytes."""
    skippable = (0x184D2A50).to_bytes(4, "little") + (56).to_bytes(4, "little") + bytes(56)
    body = skippable * 200 + frame(512 * MIB)
    path = hostile({f"w{i:03}": dense([512 * MIB], component(64 + 64 * i, len(body) - 64 * i, encoding=text("zstd")))
                    for i in range(200)}, aligned(body))
    for words in (["verify"], ["hash"], ["inspect", "--stats"]):
        bounded(*words, path, status=1, rule="limit/work")


def test_a_long_name_does_not_fill_memory_with_findings_or_losses(hostile, tmp_path):
    name = "N" * 400_000
    path = hostile({name: mapping({"shape": cbor_head(4, 1) + number(1), "format": text("dense"),
                                   "attributes": mapping({f"k{i}": number(0) for i in range(20_000)}),
                                   "components": mapping({"data": component(64, 1)})})}, bytes(64))
    done = Measured("convert", path, tmp_path / "out.safetensors", "--dry-run", "--quiet")
    assert done.status == 1 and done.peak < 128 * MIB, done.peak
    header = json.dumps({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **{f"k{i}": 0 for i in range(30_000)}}}).encode()
    plain = tmp_path / "unknown.safetensors"
    plain.write_bytes(len(header).to_bytes(8, "little") + header + b"\1" * 4)
    for words in (["verify", "--json"], ["hash"]):
        done = Measured(*words, plain)
        assert done.status == 0 and done.peak < 128 * MIB and len(done.stdout) < 16 * MIB, (words, done.peak)
    verdict = json.loads(Measured("verify", "--json", plain).stdout)["files"][0]
    assert verdict["findings_total"] == 30_000 and 0 < len(verdict["findings"]) < 1000


def test_metadata_that_differs_between_shards_is_not_quoted_whole(tmp_path):
    places = {}
    for i in range(200):
        header = json.dumps({"__metadata__": {"k": "A" * 800_000 if i == 0 else "b"},
                             f"t{i}": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
        (tmp_path / f"{i}.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\1")
        places[f"t{i}"] = f"{i}.safetensors"
    (tmp_path / "m.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    done = Measured("verify", "--json", tmp_path)
    found = json.loads(done.stdout)["files"][0]["findings"]
    assert done.status == 0 and done.peak < 64 * MIB and len(done.stdout) < MIB
    assert {f["rule"] for f in found} == {"safetensors/metadata-conflict"} and found[0]["file"].endswith("1.safetensors")
