# SPDX-License-Identifier: Apache-2.0
"""Tests both directions against the independent implementation tests/witness/slm.py: its files verify and extract here, our files
read there, with equal values, tokenizers and checksums; and both refuse the same broken files."""
import importlib.util
import json
import pathlib
import subprocess

import pytest

from interop_tools import COMMAND, ROOT, extracted, inspected, np, weighbridge

_spec = importlib.util.spec_from_file_location("witness_slm", ROOT / "tests/witness/slm.py")
slm = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(slm)

KINDS = ["f32", "q8_0", "q4_0"]


def theirs(path, kind="tiny", **options):
    fixture = slm.fixture(kind)
    return slm.write(path, fixture["header"], fixture["tokenizer"], fixture["tensors"], **options)


def bpe_fixture():
    fixture = slm.fixture("tiny")
    tokens = [(number, bytes([number])) for number in range(97, 123)] + [(259, b"ab"), (256, b"\xff\x00\xc3")]
    fixture["tokenizer"] = slm.bpe1(260, (1, 2, 3, 0), tokens, [(97, 98, 259, 0), (99, 97, 98, 7)])
    return fixture


def report(path):
    return json.loads(weighbridge("inspect", "--json", path))["files"][0]


@pytest.mark.parametrize("norms", [False, True])
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("kind", ["tiny", "tiny-tied"])
def test_what_the_witness_writes_reads_here(tmp_path, kind, dtype, norms):
    path = tmp_path / "theirs.slm"
    theirs(path, kind, dtype=dtype, quantize_norms=norms)
    weighbridge("verify", path)
    read, said = slm.read(path), report(path)
    assert said["checksums"] == {"file": f"0x{read['header']['checksum']:016x}",
                                 "tokenizer": f"0x{read['tokenizer_checksum']:016x}",
                                 "tensor_layout": f"0x{read['layout_checksum']:016x}"}
    assert said["dtype_label"] == read["dtype"]
    for field in ("vocab_size", "hidden_size", "layer_count", "head_count", "kv_head_count", "head_dim", "ffn_size",
                  "max_context", "flags", "special_token_count"):
        assert said["attributes"]["slm." + field] == read["header"][field], field
    listed = inspected(path)
    assert [entry["name"] for entry in read["tensors"]] == list(listed)
    for entry in read["tensors"]:
        assert listed[entry["name"]]["dtype"] == entry["dtype"] and tuple(listed[entry["name"]]["shape"]) == entry["dims"]
        assert extracted(path, entry["name"]) == entry["payload"]
        assert extracted(path, entry["name"], "--dense") == slm.values(entry).tobytes()
        if entry["scales"]:
            assert extracted(path, entry["name"], "--part", "scales") == entry["scales"]


@pytest.mark.parametrize("dtype", KINDS)
def test_their_files_come_back_byte_for_byte(tmp_path, dtype):
    path, copy = tmp_path / "theirs.slm", tmp_path / "ours.slm"
    fixture = bpe_fixture()
    data = slm.write(path, fixture["header"], fixture["tokenizer"], fixture["tensors"], dtype=dtype, extra=b"opaque")
    weighbridge("convert", path, copy)
    assert copy.read_bytes() == data


@pytest.mark.parametrize("norms", [False, True])
@pytest.mark.parametrize("dtype", ["q8_0", "q4_0"])
def test_quantizing_gives_the_same_bytes(tmp_path, dtype, norms):
    path, ours, expected = tmp_path / "in.slm", tmp_path / "ours.slm", tmp_path / "expected.slm"
    fixture = slm.fixture("tiny")
    # Rows of zeros, one that is tiny, ties.
    fixture["tensors"] = [(name, np.round(array * 8) / 8 if i % 2 else array) for i, (name, array) in enumerate(fixture["tensors"])]
    fixture["tensors"][0][1][5] = 0
    fixture["tensors"][0][1][6] = np.float32(1e-44)
    slm.write(path, fixture["header"], fixture["tokenizer"], fixture["tensors"])
    data = slm.write(expected, fixture["header"], fixture["tokenizer"], fixture["tensors"], dtype=dtype, quantize_norms=norms)
    weighbridge("convert", path, ours, "--quantize", dtype, *(["--quantize-norms"] if norms else []))
    assert ours.read_bytes() == data


def test_through_zt_and_back(tmp_path):
    path, zt, back = tmp_path / "in.slm", tmp_path / "mid.zt", tmp_path / "back.slm"
    fixture = bpe_fixture()
    entries = [slm.pack(name, array, *slm.target(array.shape, KINDS[i % 3])) for i, (name, array) in enumerate(fixture["tensors"])]
    data = slm.write(path, fixture["header"], fixture["tokenizer"], entries)
    weighbridge("convert", path, zt)
    weighbridge("verify", zt)
    for name, tensor in inspected(path).items():
        assert inspected(zt)[name]["dtype"] == tensor["dtype"]
        assert extracted(zt, name, "--dense") == extracted(path, name, "--dense")
    weighbridge("convert", zt, back)
    # A .zt keeps its objects in the order of their names, so the directory's order is not that of the file it came from.
    again, was = slm.read(back), slm.parse(data)
    kept = ("dtype", "dims", "payload", "scales", "block_size")
    contents = lambda file: {entry["name_hash"]: tuple(entry[key] for key in kept) for entry in file["tensors"]}
    assert contents(again) == contents(was)
    assert again["tokenizer_checksum"] == was["tokenizer_checksum"] and again["layout_checksum"] == was["layout_checksum"]


def broken():
    """name -> bytes: a valid file with one fault, and a repaired checksum unless the checksum is the fault."""
    good = slm.build(*slm.fixture("tiny").values(), dtype="f32")
    quantized = slm.build(*slm.fixture("tiny").values(), dtype="q8_0")
    directory = int.from_bytes(good[80:88], "little")

    def patched(data, at, value, seal=True):
        changed = data[:at] + value + data[at + len(value):]
        return slm.reseal(changed) if seal else changed

    out = {"short": good[:100], "magic": patched(good, 0, b"SLM0"), "checksum": patched(good, len(good) - 70, b"\1", False),
           "zero-checksum": patched(good, 100, bytes(8), False)}
    for field, at in slm.FIELD_AT.items():
        if field not in ("magic", "checksum", "max_context", "special_token_count"):
            out["ones-in-" + field] = patched(good, at, b"\xff\xff\xff\xff")
            if at < 64 and field not in ("flags",):
                out["zero-" + field] = patched(good, at, bytes(4))
    for field, at in {"dtype": 8, "rank": 12, "dim0": 16, "offset": 32, "length": 40, "scales": 48, "block": 56}.items():
        out["entry-" + field] = patched(good, directory + 64 * 3 + at, b"\x07\0\0\0")
        out["quantized-entry-" + field] = patched(quantized, directory + 64 * 3 + at, b"\x07\0\0\0")
    out["hash-twice"] = patched(good, directory + 64, good[directory:directory + 8])
    out["value"] = patched(good, int.from_bytes(good[92:100], "little") + 4, b"\0\0\x80\x7f")
    return out


BROKEN = broken()


@pytest.mark.parametrize("name", BROKEN)
def test_both_refuse_broken_files(tmp_path, name):
    path = tmp_path / "broken.slm"
    path.write_bytes(BROKEN[name])
    with pytest.raises(ValueError):
        slm.read(path)
    verdict = json.loads(weighbridge("verify", "--json", path, status=1))["files"][0]
    assert not verdict["valid"] and all(f["rule"].startswith("slm/") for f in verdict["findings"])


def test_every_corpus_file_is_judged_alike():
    for path in sorted(pathlib.Path(ROOT / "corpus/slm").glob("*.slm")):
        valid = subprocess.run([COMMAND, "verify", "--quiet", path], capture_output=True, timeout=60).returncode == 0
        try:
            slm.read(path)
        except ValueError:
            assert not valid, path.name
        else:
            assert valid, path.name
