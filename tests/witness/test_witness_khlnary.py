# SPDX-License-Identifier: Apache-2.0
"""Self tests of the witness khlnary.py: words, runs, sidecars, every rule broken once.
Does not test the library; the interop tests compare it with the witnesses."""

import copy
import itertools
import json

import pytest

np = pytest.importorskip("numpy", reason="numpy is missing: tools/python-environments.sh makes the environment")

import khlnary
import stb
from khlnary import encode as knu
from real_files import ROOT

SCHEMA = ROOT / "docs/schemas/khm.schema.json"


# ---- KNU words ----


def test_word_known_bits():
    assert knu("CONST_I8", 5) == 0b0010_00000001_0000_0001_00000101_001_0
    assert knu("CONST_I8", -1) == 0b0010_00000001_0000_0001_11111111_001_0 | (1 + 1 + 1 + 8 + 1) % 2
    assert (
        knu("LOAD_BIN_TENSOR", 0x27, authority=3) == 0b0010_00110000_0000_0010_00100111_011_0 | (1 + 2 + 1 + 4 + 2) % 2
    )
    assert khlnary.bytes_of([0x20301234]) == b"\x34\x12\x30\x20" and khlnary.words_of(b"\x34\x12\x30\x20") == [
        0x20301234
    ]
    with pytest.raises(khlnary.KhlnaryError):
        khlnary.words_of(b"\1\2\3")


def test_words_round_trip():
    for glyph in khlnary.GLYPHS.values():
        for arity, flags, payload, authority in itertools.product(glyph.arities, glyph.flags, range(256), range(1, 8)):
            word = knu(glyph.name, payload, authority, flags, arity)
            assert khlnary.popcount(word) % 2 == 0
            assert khlnary.decode(word, authority) == (2, glyph.id, arity, flags, payload, authority)
            for bit in range(32) if payload % 51 == 0 else ():
                with pytest.raises(khlnary.KhlnaryError):
                    khlnary.decode(word ^ 1 << bit)


def test_every_other_head_is_refused():
    accepted = 0
    for glyph, arity, flags in itertools.product(range(256), range(16), range(16)):
        try:
            khlnary.decode(khlnary.encode_raw(2, glyph, arity, flags, 0, 1))
            accepted += 1
        except khlnary.KhlnaryError as error:
            assert error.kind in ("glyph", "arity", "flags", "bin-ref")
    assert accepted == 14 + 2  # LOAD_BIN_TENSOR has a second flags value, MMAP_BIN_REGION a second arity


@pytest.mark.parametrize(
    "fields,kind",
    [
        ((1, 0, 0, 0, 0, 1), "version"),
        ((2, 0x7F, 0, 0, 0, 1), "glyph"),
        ((2, 0x30, 0, 0, 0, 1), "bin-ref"),
        ((2, 0x31, 0, 1, 0, 1), "bin-ref"),
        ((2, 0x32, 0, 4, 0, 1), "bin-ref"),
        ((2, 0x32, 0, 3, 0, 1), "flags"),
        ((2, 1, 0, 0, 0, 1), "flags"),
        ((2, 2, 1, 0, 0, 1), "arity"),
        ((2, 0x31, 2, 2, 0, 1), "arity"),
        ((2, 0, 0, 0, 0, 0), "authority"),
        ((2, 0, 0, 0, 0, 4), "authority"),
    ],
)
def test_word_errors(fields, kind):
    with pytest.raises(khlnary.KhlnaryError) as caught:
        khlnary.decode(khlnary.encode_raw(*fields), authority=3)
    assert caught.value.kind == kind


def test_parity_error():
    with pytest.raises(khlnary.KhlnaryError) as caught:
        khlnary.decode(knu("NOP") ^ 1)
    assert caught.value.kind == "parity"


# ---- running ----


def functions(**offsets):
    return {
        "schema": 1,
        "files": [],
        "functions": [{"id": int(key[1:]), "offset": offset} for key, offset in offsets.items()],
    }


DEF3 = [knu("FUNC_DEF", 3), knu("CONST_I8", 10), knu("ADD_I32"), knu("RET"), knu("FUNC_END")]
RUNS = {
    "empty": ([], None, None, []),
    "constant": ([knu("CONST_I8", -128)], None, -128, [-128]),
    "return": ([knu("CONST_I8", 7), knu("RET"), knu("CONST_I8", 8)], None, 7, [7]),
    "addition": ([knu("CONST_I8", 100), knu("CONST_I8", 100), knu("ADD_I32"), knu("RET")], None, 200, [200]),
    "call": ([*DEF3, knu("CONST_I8", 5), knu("CALL", 3), knu("CALL", 3), knu("RET")], functions(f3=0), 25, [25]),
    "call before the definition": (
        [knu("CONST_I8", 5), knu("CALL", 3), knu("JUMP8", 6), *DEF3, knu("NOP")],
        functions(f3=3),
        15,
        [15],
    ),
    "left behind by a callee": (
        [
            knu("FUNC_DEF", 0),
            knu("CONST_I8", 1),
            knu("CONST_I8", 2),
            knu("RET"),
            knu("FUNC_END"),
            knu("CONST_I8", 9),
            knu("CALL", 0),
        ],
        functions(f0=0),
        2,
        [9, 1, 2],
    ),
    "nested definitions": (
        [knu("FUNC_DEF", 1), *DEF3, knu("FUNC_END"), knu("CONST_I8", 1), knu("CALL", 3)],
        functions(f3=1),
        11,
        [11],
    ),
    "if taken": (
        [knu("CONST_I8", 0), knu("IFZ_JUMP8", 3), knu("CONST_I8", 1), knu("RET"), knu("CONST_I8", 2)],
        None,
        2,
        [2],
    ),
    "if not taken": (
        [knu("CONST_I8", 3), knu("IFZ_JUMP8", 3), knu("CONST_I8", 1), knu("RET"), knu("CONST_I8", 2)],
        None,
        1,
        [1],
    ),
    "count down and back": (
        [
            knu("CONST_I8", 0),
            knu("CONST_I8", 1),
            knu("IFZ_JUMP8", 4),
            knu("WHILE_HEAD"),
            knu("CONST_I8", 0),
            knu("IFZ_JUMP8", -5),
            knu("WHILE_TAIL"),
        ],
        None,
        None,
        "steps",
    ),
    "itself": ([knu("JUMP8", 0)], None, None, "steps"),
    "endless calls": (
        [knu("CONST_I8", 1), knu("FUNC_DEF", 0), knu("CALL", 0), knu("FUNC_END")],
        functions(f0=1),
        1,
        [1],
    ),
    "recursion": (
        [knu("CONST_I8", 1), knu("CALL", 0), knu("FUNC_DEF", 0), knu("CALL", 0), knu("FUNC_END")],
        functions(f0=2),
        None,
        "steps",
    ),
    "behind the last word": ([knu("JUMP8", 1)], None, None, "jump"),
    "before the first": ([knu("JUMP8", -1)], None, None, "jump"),
    "empty stack": ([knu("RET")], None, None, "stack"),
    "one operand": ([knu("CONST_I8", 1), knu("ADD_I32")], None, None, "stack"),
    "call without argument": ([*DEF3, knu("CALL", 3)], functions(f3=0), None, "stack"),
    "unknown function": ([knu("CONST_I8", 1), knu("CALL", 4)], functions(), None, "function"),
    "no end": ([knu("FUNC_DEF", 0), knu("RET")], None, None, "function"),
    "end reached": ([knu("FUNC_END")], None, None, "function"),
    "no return": (
        [knu("FUNC_DEF", 0), knu("FUNC_END"), knu("CONST_I8", 1), knu("CALL", 0)],
        functions(f0=0),
        None,
        "function",
    ),
    "table names no definition": ([knu("NOP"), *DEF3], functions(f3=0), None, "function"),
    "table names another": ([*DEF3], functions(f4=0), None, "function"),
    "table past the end": ([*DEF3], functions(f3=5), None, "function"),
    "bad word not reached": ([knu("CONST_I8", 1), knu("RET"), 0], None, None, "version"),
    "no such file": ([knu("LOAD_BIN_TENSOR", 0)], None, None, "file"),
    "no such file to fetch": ([knu("PREFETCH_BIN", 0)], None, None, []),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs(name):
    words, sidecar, result, stack = RUNS[name]
    if isinstance(stack, str):
        with pytest.raises(khlnary.KhlnaryError) as caught:
            khlnary.run(words, sidecar, step_limit=1000)
        assert caught.value.kind == stack and str(caught.value).endswith(".")
        return
    outcome = khlnary.run(words, sidecar)
    assert (outcome.result, outcome.stack, outcome.loaded) == (result, stack, [])


def test_addition_wraps():
    """No module short enough for a test reaches the wrap: there is not a glyph that doubles."""
    assert [khlnary.wrap32(n) for n in (1 << 31, -(1 << 31) - 1, (1 << 32) + 5)] == [-(1 << 31), (1 << 31) - 1, 5]
    words = [knu("CONST_I8", -128), knu("CONST_I8", -128), *[knu("ADD_I32"), knu("CONST_I8", -128)] * 4]
    assert khlnary.run(words).stack == [-640, -128]


def folder_with_module(tmp_path):
    stb.write(tmp_path / "m-0.stb", [stb.tensor(4, np.arange(3, dtype=np.int32)), stb.tensor(99, np.zeros(2, np.int8))])
    (tmp_path / "sub").mkdir()
    stb.write(tmp_path / "sub/m-1.stb", [stb.tensor(2, np.zeros((1, 2, 2, 2), np.int8), "channels_last", 1)])
    return {
        "schema": 1,
        "module": "m.knu",
        "files": [
            {"id": 0, "path": "m-0.stb", "mmap_required": True, "size": 194},
            {"id": 200, "path": "m-0.stb"},
            {"id": 1, "path": "sub/m-1.stb", "mmap_required": False},
        ],
        "shapes": [[2, 3, 4, 5], [1, 2, 2, 2]],
        "functions": [{"id": 7, "name": "main", "offset": 0}],
        "tensors": [{"file": 0, "id": 4, "name": "w", "shape": [3]}, {"file": 1, "id": 2, "name": "v"}],
    }


def test_loading(tmp_path):
    sidecar = folder_with_module(tmp_path)
    words = [
        knu("FUNC_DEF", 7),
        knu("LOAD_BIN_TENSOR", 0x12, flags=khlnary.BIN_REF | khlnary.SHAPE_DESC),
        knu("RET"),
        knu("FUNC_END"),
        knu("PREFETCH_BIN", 200),
        knu("MMAP_BIN_REGION", 200),
        knu("MMAP_BIN_REGION", 1, arity=1),
        knu("LOAD_BIN_TENSOR", 0x04),
        knu("CALL", 7),
        knu("RET"),
    ]
    (tmp_path / "m.knu").write_bytes(khlnary.bytes_of(words))
    (tmp_path / "m.khm.json").write_text(json.dumps(sidecar), "utf-8")
    loaded = khlnary.load_sidecar(tmp_path / "m.khm.json")
    outcome = khlnary.run(khlnary.words_of((tmp_path / loaded["module"]).read_bytes()), loaded, tmp_path)
    assert outcome.result == khlnary.TensorHandle(1, 2) and outcome.loaded == [(0, 4), (1, 2)]
    assert outcome.stack == [khlnary.RegionHandle(1), khlnary.TensorHandle(0, 4), khlnary.TensorHandle(1, 2)]
    assert list(khlnary.open_file(loaded, tmp_path, 0)) == ["w", "99"]
    assert khlnary.open_file(loaded, tmp_path, 1)["v"].shape == (1, 2, 2, 2)
    for bad, kind in [
        (["LOAD_BIN_TENSOR", 0x05], "tensor"),
        (["LOAD_BIN_TENSOR", 0x34], "file"),
        (["MMAP_BIN_REGION", 3], "file"),
    ]:
        with pytest.raises(khlnary.KhlnaryError) as caught:
            khlnary.run([words[0], words[3], knu(*bad)], sidecar, tmp_path)
        assert caught.value.kind == kind
    for bad in (["ADD_I32"], ["IFZ_JUMP8", 1]):
        with pytest.raises(khlnary.KhlnaryError) as caught:
            khlnary.run(
                [words[0], words[3], knu("LOAD_BIN_TENSOR", 4), knu("LOAD_BIN_TENSOR", 4), knu(*bad)], sidecar, tmp_path
            )
        assert caught.value.kind == "type"


@pytest.mark.parametrize(
    "change,kind",
    [
        (lambda s: s["files"][0].update(size=195), "file"),
        (lambda s: s["files"][0].update(path="gone.stb"), "file"),
        (lambda s: s["tensors"][0].update(shape=[4]), "tensor"),
        (lambda s: s["tensors"][0].update(id=5), "tensor"),
        (lambda s: s["tensors"][0].update(name="99"), "file"),
    ],
    ids=["size", "gone", "shape", "id", "name of another"],
)
def test_sidecar_against_files(tmp_path, change, kind):
    sidecar = folder_with_module(tmp_path)
    change(sidecar)
    with pytest.raises(khlnary.KhlnaryError) as caught:
        khlnary.open_file(khlnary.check_sidecar(sidecar), tmp_path, 0)
    assert caught.value.kind == kind


# Changes that the schema can see, changes that it cannot, and changes that are no error.
SCHEMA_BROKEN = {
    "no schema": lambda s: s.pop("schema"),
    "schema 2": lambda s: s.update(schema=2),
    "no files": lambda s: s.pop("files"),
    "schema true": lambda s: s.update(schema=True),
    "unknown key": lambda s: s.update(extra=1),
    "module number": lambda s: s.update(module=1),
    "files object": lambda s: s.update(files={}),
    "file unknown key": lambda s: s["files"][0].update(mmap=True),
    "file no id": lambda s: s["files"][0].pop("id"),
    "file no path": lambda s: s["files"][0].pop("path"),
    "file id 256": lambda s: s["files"][0].update(id=256),
    "file id -1": lambda s: s["files"][0].update(id=-1),
    "file id text": lambda s: s["files"][0].update(id="0"),
    "file id true": lambda s: s["files"][0].update(id=True),
    "file id half": lambda s: s["files"][0].update(id=0.5),
    "mmap 1": lambda s: s["files"][0].update(mmap_required=1),
    "size -1": lambda s: s["files"][0].update(size=-1),
    "size 2^64": lambda s: s["files"][0].update(size=1 << 64),
    **{
        f"path {p!r}": (lambda s, p=p: s["files"][0].update(path=p))
        for p in (
            "",
            "/a.stb",
            "..",
            "../a.stb",
            "a/../b.stb",
            "a/..",
            "a\\b.stb",
            "C:/a.stb",
            "C:a.stb",
            "a\0b",
            "//a",
        )
    },
    "module path": lambda s: s.update(module="../m.knu"),
    "shapes text": lambda s: s.update(shapes="x"),
    "shape number": lambda s: s.update(shapes=[3]),
    "dimension -1": lambda s: s.update(shapes=[[-1]]),
    "dimension text": lambda s: s.update(shapes=[["1"]]),
    "rank 9": lambda s: s.update(shapes=[[1] * 9]),
    "function no offset": lambda s: s["functions"][0].pop("offset"),
    "function id 256": lambda s: s["functions"][0].update(id=256),
    "function name number": lambda s: s["functions"][0].update(name=1),
    "function unknown": lambda s: s["functions"][0].update(x=1),
    "tensor no name": lambda s: s["tensors"][0].pop("name"),
    "tensor id 256": lambda s: s["tensors"][0].update(id=256),
    "tensor shape text": lambda s: s["tensors"][0].update(shape="3"),
    "tensor unknown": lambda s: s["tensors"][0].update(dtype="f32"),
}
ONLY_CHECKED = {
    "file twice": lambda s: s["files"].append(dict(s["files"][0])),
    "function twice": lambda s: s["functions"].append(dict(s["functions"][0])),
    "tensor twice": lambda s: s["tensors"].append({"file": 0, "id": 0, "name": "other"}),
    "name twice": lambda s: s["tensors"].append({"file": 0, "id": 1, "name": "w"}),
    "no such file": lambda s: s["tensors"][0].update(file=9),
    "product": lambda s: s.update(shapes=[[1 << 33, 1 << 33]]),
}
SIDECAR_FINE = {
    "as it is": lambda s: None,
    "least": lambda s: [s.pop(key) for key in ("module", "shapes", "functions", "tensors")],
    "no size": lambda s: s["files"][0].pop("size"),
    "dots": lambda s: s["files"][0].update(path="./a..b/...stb"),
    "empty shape": lambda s: s.update(shapes=[[], [0, 1 << 40, 1 << 40]]),
    "empty name": lambda s: s["tensors"][0].update(name=""),
}


def sidecar_document():
    return {
        "schema": 1,
        "module": "n.knu",
        "files": [{"id": 0, "path": "n-0.stb", "mmap_required": False, "size": 123}],
        "shapes": [[2, 3, 4, 5]],
        "functions": [{"id": 0, "name": "main", "offset": 3}],
        "tensors": [{"file": 0, "id": 0, "name": "w", "shape": [2, 3]}],
    }


@pytest.mark.parametrize("name", [*SCHEMA_BROKEN, *ONLY_CHECKED, *SIDECAR_FINE])
def test_sidecar_rules(name):
    document = sidecar_document()
    (SCHEMA_BROKEN | ONLY_CHECKED | SIDECAR_FINE)[name](document)
    before = copy.deepcopy(document)
    if name in SIDECAR_FINE:
        assert khlnary.check_sidecar(document) == before
    else:
        with pytest.raises(khlnary.KhlnaryError) as caught:
            khlnary.check_sidecar(document)
        assert caught.value.kind == "sidecar"
    try:
        import jsonschema
    except ImportError:
        return  # the schema file is checked where the package is
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))
    validator.check_schema(validator.schema)
    assert validator.is_valid(document) == (name not in SCHEMA_BROKEN)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b'{"schema": 1, "files": [], "files": []}',
        b'\xef\xbb\xbf{"schema": 1, "files": []}',
        b'{"schema": 1, "files": []} x',
        b'{"schema": 1, "files": [], "module": "\xff"}',
        b'{"schema": 1.0, "files": []}',
        b'{"schema": 1, "files": [], "shapes": [[NaN]]}',
        b"[" * 100000,
        b'{"schema": 1, "files": [{"id": 0, "path": "\\ud800"}]}',
    ],
    ids=range(11),
)
def test_sidecar_text(tmp_path, data):
    path = tmp_path / "m.khm.json"
    path.write_bytes(b'{"schema": 1, "files": []}')
    assert khlnary.load_sidecar(path) == {"schema": 1, "files": []}
    path.write_bytes(data)
    with pytest.raises(khlnary.KhlnaryError):
        khlnary.load_sidecar(path)
