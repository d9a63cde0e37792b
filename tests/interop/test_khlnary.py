# SPDX-License-Identifier: Apache-2.0
"""Tests KHLNARY modules against tests/witness/khlnary.py, an independent interpreter written from the readings: words of every kind,
and random modules with random sidecars. Both must run a module to the same end or refuse it for the same reason."""
import json
import random
import sys

import pytest

from interop_tools import ROOT, np, weighbridge

sys.path.insert(0, str(ROOT / "tests/witness"))
import khlnary as witness  # noqa: E402
import stb  # noqa: E402

# The witness's kinds, and the corresponding rules.
KIND = {
    "storage": {"truncated"}, "version": {"version"}, "parity": {"parity"}, "glyph": {"unknown-glyph"},
    "bin-ref": {"missing-bin-ref"}, "arity": {"arity"}, "flags": {"flags"}, "authority": {"authority"},
    "stack": {"stack-underflow"}, "type": {"value-type"}, "jump": {"jump"}, "steps": {"step-limit"},
    "function": {"function", "function-table", "no-function-end", "no-return"},
    "file": {"file-id", "file-missing", "file-size", "file", "path"}, "tensor": {"tensor-id", "shape-mismatch"},
}
MAX_STEPS = 500
MODULES = 2500


def ours(path, sidecar, authority=7):
    """(result, stack, loaded, steps), or (rule,)."""
    flags = ["--sidecar", sidecar] if sidecar else []
    try:
        out = weighbridge("khlnary", "run", path, "--json", "--max-steps", MAX_STEPS, "--authority", authority, *flags)
    except AssertionError as failed:
        assert failed.args[0][1] == 1, failed
        return (json.loads(failed.args[0][2])["findings"][0]["rule"].split("/")[1],)
    found = json.loads(out)
    return (found["result"], found["stack"], sorted((t["file"], t["id"]) for t in found["loaded"]), found["steps"])


def theirs(words, sidecar, folder, authority=7):
    def cell(value):
        if isinstance(value, witness.TensorHandle):
            return {"kind": "tensor", "file": value.file, "id": value.id}
        if isinstance(value, witness.RegionHandle):
            return {"kind": "region", "file": value.file}
        return {"kind": "integer", "value": value}

    try:
        found = witness.run(words, sidecar, folder, authority, MAX_STEPS)
    except witness.KhlnaryError as error:
        return error
    return (None if found.result is None else cell(found.result), list(map(cell, found.stack)), sorted(set(found.loaded)),
            found.steps)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder of STB files, good and bad, and the table that names them."""
    folder = tmp_path_factory.mktemp("khlnary")
    stb.write(folder / "a.stb", [stb.tensor(0, np.arange(6, dtype=np.float32).reshape(2, 3)), stb.tensor(3, np.arange(4, dtype=np.int8))])
    stb.write(folder / "b.stb", [stb.tensor(7, np.array(1.5, np.float16)), stb.tensor(200, np.arange(2, dtype=np.int32))])
    (folder / "bad.stb").write_bytes(b"no tensors here")
    return folder


TABLE = [{"id": 0, "path": "a.stb"}, {"id": 1, "path": "b.stb", "mmap_required": True}, {"id": 2, "path": "bad.stb"},
         {"id": 3, "path": "absent.stb"}, {"id": 4, "path": "a.stb", "size": 1}, {"id": 77, "path": "b.stb"}]


def a_word(rng, at, count):
    """A random module, mostly of words that let it run for a while."""
    kind = rng.random()
    name = rng.choice(["CONST_I8"] * 6 + ["ADD_I32"] * 3 + ["NOP", "RET", "WHILE_HEAD", "WHILE_TAIL", "IFZ_JUMP8", "IFZ_JUMP8",
                                                           "JUMP8", "FUNC_DEF", "FUNC_END", "CALL", "CALL", "LOAD_BIN_TENSOR",
                                                           "LOAD_BIN_TENSOR", "MMAP_BIN_REGION", "PREFETCH_BIN"])
    payload = rng.randrange(256)
    if name.endswith("JUMP8"):
        payload = rng.randint(-at - (rng.random() < 0.05), count - at) if count < 100 else 1
    elif name in ("CALL", "FUNC_DEF"):
        payload = rng.randrange(3)
    elif name == "LOAD_BIN_TENSOR":
        payload = rng.choice([0x00, 0x03, 0x17, 0x00, 0x03, 0x05, 0x20, 0x30, 0x40, 0x50])
    elif name in ("MMAP_BIN_REGION", "PREFETCH_BIN"):
        payload = rng.choice([0, 1, 77, 0, 1, 2, 3, 4, 5])
    elif name == "CONST_I8" and rng.random() < 0.5:
        payload = rng.choice([0, 1, 255])
    word = witness.encode(name, payload, authority=rng.choice([1, 1, 1, 2, 7]),
                          arity=rng.randrange(2) if name == "MMAP_BIN_REGION" else None)
    if kind < 0.004:
        word ^= 1 << rng.randrange(32)
    return word


def a_module(rng):
    count = rng.randrange(0, 24)
    words = [a_word(rng, at, count) for at in range(count)]
    if rng.random() < 0.5:  # a function that is well formed
        number = rng.randrange(3)
        body = [witness.encode("CONST_I8", rng.randrange(256)), witness.encode("ADD_I32")]
        words = [witness.encode("FUNC_DEF", number), *body, witness.encode("RET"), witness.encode("FUNC_END"),
                 *(a_word(rng, at + 5, count + 5) for at in range(count))]
    defined = {}
    for at, word in enumerate(words):
        if word >> 20 & 0xFF == 0x20:
            defined.setdefault(word >> 4 & 0xFF, at)
    if rng.random() < 0.03:
        defined[2] = rng.randrange(len(words) + 2)
    functions = [{"id": number, "offset": at} for number, at in defined.items()]
    return words, {"schema": 1, "files": TABLE, "functions": functions}


def test_random_modules_end_alike(files):
    rng = random.Random(20)
    path, sidecar_path = files / "m.knu", files / "m.khm.json"
    ends = {}
    for number in range(MODULES):
        words, sidecar = a_module(rng)
        path.write_bytes(witness.bytes_of(words))
        sidecar_path.write_text(json.dumps(sidecar))
        authority = rng.choice([7, 7, 7, 2])
        expected, found = theirs(words, sidecar, files, authority), ours(path, None, authority)
        if isinstance(expected, witness.KhlnaryError):
            assert len(found) == 1 and found[0] in KIND[expected.kind], (number, expected.kind, str(expected), found)
            ends[expected.kind] = ends.get(expected.kind, 0) + 1
        else:
            assert found == expected, number
            ends["ran"] = ends.get("ran", 0) + 1
    # The modules are useful only if they reach most ends.
    assert ends["ran"] > MODULES / 10 and len(ends) >= 10, ends


def test_words_of_every_glyph_arity_flags_and_authority_are_judged_alike(files):
    """One module of many words: the text form names the first thing that is wrong with each."""
    words, expected = [], []
    kinds = {"version": "version", "parity": "parity", "glyph": "unknown-glyph", "bin-ref": "missing-bin-ref", "arity": "arity",
             "flags": "flags", "authority": "authority"}
    rng = random.Random(21)
    known = sorted(witness.GLYPHS)
    for glyph in known + [0x04, 0x14, 0x33, 0xFF]:
        for arity in range(16):
            for flags in range(16):
                for authority in range(8):
                    words.append(witness.encode_raw(2, glyph, arity, flags, rng.randrange(256), authority))
    words += [witness.encode_raw(version, 0, 0, 0, 5, 1) for version in range(16)]
    words += [word ^ 1 for word in rng.sample(words, 500)] + [rng.getrandbits(32) for _ in range(5000)]
    for word in words:
        try:
            witness.decode(word)
            expected.append(None)
        except witness.KhlnaryError as error:
            expected.append(kinds[error.kind])
    path = files / "words.knu"
    path.write_bytes(witness.bytes_of(words))
    lines = weighbridge("khlnary", "disassemble", path).decode().splitlines()
    assert len(lines) == len(words)
    for word, kind, line in zip(words, expected, lines):
        if kind is None:
            assert line.split()[0] == witness.GLYPHS[word >> 20 & 0xFF].name, (hex(word), line)
        else:
            assert line == f".word {word:#010x} ; {kind}", (hex(word), line)
    (files / "words.txt").write_text("\n".join(lines) + "\n")
    weighbridge("khlnary", "assemble", files / "words.txt", "-o", files / "again.knu", "--force")
    assert (files / "again.knu").read_bytes() == path.read_bytes()


def test_the_witness_runs_what_is_packed(tmp_path):
    import safetensors.numpy
    rng = np.random.default_rng(22)
    tensors = {f"t{i:02}": rng.standard_normal((1,) * (i % 5) + (i + 1,)).astype(np.float32) for i in range(40)}
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors")
    weighbridge("khlnary", "pack", tmp_path / "model.safetensors", "-o", tmp_path / "out")
    sidecar = witness.load_sidecar(tmp_path / "out/model.khm.json")
    words = witness.words_of((tmp_path / "out/model.knu").read_bytes())
    outcome = witness.run(words, sidecar, tmp_path / "out")
    assert outcome.steps == 41 and len(outcome.loaded) == 40 and outcome.result == witness.TensorHandle(2, 7)
    named = {(item["file"], item["id"]): item["name"] for item in sidecar["tensors"]}
    assert sorted(named.values()) == sorted(tensors)
    for number in range(3):
        for entry in witness.open_file(sidecar, tmp_path / "out", number).values():
            wanted = tensors[named[number, entry.id]]
            assert entry.shape == wanted.shape and np.array_equal(entry.array, wanted)
