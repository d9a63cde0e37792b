# SPDX-License-Identifier: Apache-2.0
"""explain by its jobs: what is at a byte that a finding names, and where an element is stored."""
import base64
import re
import struct

import pytest

from conftest import ROOT, safetensors, validated, weighbridge


@pytest.fixture
def model(tmp_path):
    """w is 2 rows of 3 floats, b two halves."""
    path = tmp_path / "model.safetensors"
    values = struct.pack("<6f", 0.5, 1, 2, -3, 4, 5)
    path.write_bytes(safetensors({"w": ("F32", [2, 3], values), "b": ("BF16", [2], b"\x80\x3f\x00\x40")}, {"made": "by hand"}))
    return path


def explained(path, where, status=0):
    return validated(weighbridge("explain", "--json", path, where, status=status).stdout, "explain")


def path_of(found):
    return [(span["kind"], span["what"], span["value"]) for span in found["spans"]]


def test_a_field_of_a_header(model):
    content = model.read_bytes()
    at = content.index(b'"shape":[2,3]')
    found = explained(model, f"@{at + 3}")
    assert path_of(found) == [("file", "safetensors", None), ("structure", "header", "JSON"), ("field", "w", None), ("field", "shape", "[2,3]"), ]
    assert found["spans"][-1]["offset"] == at and found["spans"][-1]["size"] == len('"shape":[2,3]')
    assert path_of(explained(model, f"@{at + 9}"))[-1] == ("field", "[0]", "2")
    assert path_of(explained(model, "@0"))[-1][:2] == ("field", "length of the header")
    data = base64.b64decode(found["bytes"]["data"])
    assert content[found["bytes"]["offset"]:].startswith(data) and found["bytes"]["offset"] <= at


def test_an_element_and_the_way_back(model):
    start = len(model.read_bytes()) - 28
    for i in range(2):
        for j in range(3):
            found = explained(model, f"w[{i}, {j}]")
            at = start + 4 * (3 * i + j)
            assert (found["offset"], found["length"]) == (at, 4)
            assert path_of(found)[-1] == ("element", f"[{i}, {j}]", ["0.5", "1.0", "2.0", "-3.0", "4.0", "5.0"][3 * i + j])
            assert path_of(explained(model, f"@{at + 3}"))[-1] == path_of(found)[-1]
    assert path_of(explained(model, "b[1]"))[-2:] == [("tensor", "b", "part data: bf16 [2]"), ("element", "[1]", "2.0")]
    assert explained(model, "w")["length"] == 24


def test_elements_are_named_in_ranges_of_at_most_64_bytes(tmp_path):
    path = tmp_path / "long.safetensors"
    path.write_bytes(safetensors({"w": ("F32", [40], bytes(160))}))
    start = path.stat().st_size - 160

    def elements(length):
        return [what for kind, what, _ in path_of(explained(path, f"@{start}:{start + length}")) if kind == "element"]
    assert elements(64) == [f"[{i}]" for i in range(16)]
    assert elements(65) == []


def test_what_a_person_sees(model):
    start = len(model.read_bytes()) - 28
    out = weighbridge("explain", model, f"@{hex(start + 13)}").stdout
    assert out.startswith(f"{model}: byte {start + 13} ({hex(start + 13)}) of {start + 28}\n")
    assert "  element       [1, 0]" in out and ": -3.0\n" in out and "[00 00 40 c0]" in out
    several = weighbridge("explain", model, f"@{start}:{start + 8}").stdout
    assert "[0, 0]" in several and "[0, 1]" in several and "[1, 0]" not in several


def test_a_byte_that_verify_names(tmp_path):
    path = tmp_path / "bad.safetensors"
    content = safetensors({"w": ("F32", [2], b"\0" * 8), "x": ("F32", [1], b"\0" * 4)})
    path.write_bytes(content.replace(b"[8,12]", b"[9,12]"))
    finding = validated(weighbridge("verify", "--json", path, status=1).stdout, "verify")["files"][0]["findings"][0]
    found = explained(path, f"@{finding['offset']}")
    assert [span["what"] for span in found["spans"]][-3:] == ["header", "x", "data_offsets"] or found["spans"][-1]["what"] == "[0]"
    assert finding["rule"] in [each["rule"] for each in found["findings"]]
    assert finding["rule"] in weighbridge("explain", path, f"@{finding['offset']}").stdout


def test_a_file_of_no_format(tmp_path):
    path = tmp_path / "notes"
    path.write_bytes(b"hello\n" + bytes(20))
    found = explained(path, "@2")
    assert found["format"] is None and found["findings"] and path_of(found)[-1][0] == "unclaimed"


@pytest.mark.parametrize("where, said", [("@", "is not a place"), ("@12x", "is not a place"), ("@5:5", "is empty"), ("@-1", "is not a place"), ("@0x", "is not a place")])
def test_places_that_are_none(model, where, said):
    assert said in weighbridge("explain", model, where, status=2).stderr


@pytest.mark.parametrize("where, said", [("@99999999", "there is no byte 99999999: the file has"), ("@99999990:99999999", "there are no bytes 99999990 to 99999998"), ("none", "no tensor"), ("w[2, 0]", "numbers below [2, 3]"), ("w[0]", "numbers below"),
                                         ("w[]", "numbers below"), ("w[1,2,3]", "numbers below"), ("w[-1,0]", "numbers below")])
def test_places_that_are_not_there(model, where, said):
    done = weighbridge("explain", model, where, status=2)
    assert said in done.stderr


def test_compressed_bytes_say_what_they_hold(model, tmp_path):
    packed = tmp_path / "packed.zt"
    big = tmp_path / "big.safetensors"
    big.write_bytes(safetensors({"w": ("F32", [64, 64], b"\0" * 16384)}))
    weighbridge("convert", big, packed, "--encoding", "zstd")
    found = explained(packed, "w[3, 5]")
    assert "compressed (zstd)" in found["spans"][-1]["value"] and "hold 16384 bytes" in found["spans"][-1]["value"]
    assert "compressed" in weighbridge("explain", packed, "w[3, 5]").stdout


def test_quantized_blocks(tmp_path):
    dense, packed = tmp_path / "d.safetensors", tmp_path / "q.gguf"
    dense.write_bytes(safetensors({"w": ("F32", [2, 64], struct.pack("<128f", *range(128)))}))
    weighbridge("convert", dense, packed, "--quantize", "q8_0", "--allow", "precision")
    found = explained(packed, "w[1, 40]")
    assert found["length"] == 34 and path_of(found)[-1] == ("block", "block 3", "elements [1, 32] to [1, 63]")


def test_a_folder_and_its_shards(tmp_path, model):
    folder = f"{tmp_path}/folder/"
    big = tmp_path / "big.safetensors"
    big.write_bytes(safetensors({name: ("F32", [256], bytes([i] * 1024)) for i, name in enumerate("ab")}))
    weighbridge("convert", big, folder, "--to", "safetensors", "--max-shard-size", "1500")
    found = explained(folder, "b[2]")
    assert found["path"].endswith("-00002-of-00002.safetensors") and path_of(found)[-1][:2] == ("element", "[2]")
    weighbridge("explain", folder, "@0", status=2)


def test_a_limit_ends_the_walk_and_is_named(model):
    found = validated(weighbridge("explain", "--json", "--limit", "header=10", model, "@3").stdout, "explain")
    assert [each["rule"] for each in found["findings"]] == ["limit/header"]
    assert weighbridge("explain", "--quiet", model, "@3").stdout == ""


def test_an_absent_tensor_names_the_nearest(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors({name: ("U8", [1], b"1") for name in ("layer.0.bias", "layer.1.bias", "head")}))
    for where in ("layer.0.bia", "layer.0.bia[0]"):
        said = weighbridge("explain", path, where, status=2).stderr
        assert said.startswith(f'weighbridge: {path}: "layer.0.bia": there is no tensor of this name; the nearest is "layer.0.bias"'), said
    assert "nearest" not in weighbridge("explain", path, "entirely.different", status=2).stderr


def test_an_empty_tensor_has_no_bytes_in_json_either(tmp_path):
    """A line of text was once printed with --json, and with --quiet."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors({"none": ("U8", [0], b""), "one": ("U8", [1], b"1")}))
    assert weighbridge("explain", path, "none").stdout == f"{path}: 'none' has no bytes\n"
    assert weighbridge("explain", "--quiet", path, "none").stdout == ""
    found = explained(path, "none")
    assert (found["format"], found["length"], found["spans"], found["size"]) == ("safetensors", 0, [], path.stat().st_size)


def test_a_rule_has_its_meaning_an_example_and_what_to_do(tmp_path):
    text = weighbridge("explain", "safetensors/data-past-end", cwd=tmp_path).stdout
    assert text.startswith("safetensors/data-past-end: error, of the tensor (from T6)\n  the data of a tensor ends past the end of the file\n")
    assert "example\n  the data of a tensor ends past the end of the file (expected" in text and "what to do\n" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    found = validated(weighbridge("explain", "limit/header", "--json").stdout, "rule")
    assert (found["severity"], found["reach"]) == ("error", "file") and "--limit" in found["advice"]
    assert "Ask for a file without code" in validated(weighbridge("explain", "hf/program", "--json").stdout, "rule")["advice"]
    assert validated(weighbridge("explain", "io/open", "--json").stdout, "rule")["page"].startswith("docs/checking.md")
    assert "signing.md" in weighbridge("explain", "manifest/changed").stdout
    assert weighbridge("explain", "unused-bytes").stdout.startswith("doctor/unused-bytes: warning")


# ---- errors that are in no rules.def ----


def other_rules():
    """The rows of other_rules.def: id, meaning, advice."""
    return re.findall(r'WB_OTHER_RULE\("([^"]+)",\s*"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"\)', (ROOT / "cli/other_rules.def").read_text())


def raised_in_sources():
    """Every id that the sources spell out: base::misuse("what"), "io/open"; of those that are put together, none."""
    out = set()
    kinds = {"misuse": "misuse", "misuse_of": "misuse", "io_error": "io", "io_error_of": "io", "over_limit": "limit"}
    for path in [*ROOT.glob("src/**/*.cc"), *ROOT.glob("src/**/*.h"), *ROOT.glob("cli/*.cc")]:
        if path.name.endswith(("_test.cc", "cases.cc")) or "generated" in path.name:
            continue
        text = path.read_text()
        for call in re.finditer(r"\b(misuse|misuse_of|io_error|io_error_of|over_limit)\(", text):
            words = re.findall(r'"((?:[^"\\]|\\.)*)"', text[call.end():call.end() + 400].split(";")[0])
            out |= {f"{kinds[call[1]]}/{word}" for word in words if re.fullmatch(r"[a-z0-9-]*[a-z0-9]", word)} if len(words) == 1 else set()
            first = next((word for word in words if re.fullmatch(r"[a-z0-9-]*[a-z0-9]", word)), None)
            out |= {f"{kinds[call[1]]}/{first}"} if first else set()
        out |= set(re.findall(r'"((?:io|misuse|convert|unsupported|embed|texts|tokenizer|generate|manifest|values|limit|delta|part|imatrix)/[a-z0-9-]*[a-z0-9])"', text))
    return out


def test_every_error_that_the_sources_raise_has_a_meaning_and_an_advice():
    """One line stood for every io/..., misuse/... and convert/... id, and many others had no advice."""
    rows = other_rules()
    ids = [each[0] for each in rows]
    assert len(ids) == len(set(ids)) > 300 and all(says for _, says, _ in rows)
    assert len({says for _, says, _ in rows}) > len(rows) - 20, "a meaning of its own"
    in_files = set(re.findall(r'"([a-z0-9-]+/[a-z0-9-]+)"', "".join(path.read_text() for path in ROOT.glob("src/**/*.def"))))
    assert raised_in_sources() - set(ids) - in_files == set()
    page = (ROOT / "docs/rules.md").read_text().split("\n## Other errors\n")[1]
    for each in ids:
        row = re.search(rf"^\| `{each}` \| ([^|]+) \| ([^|]+) \|$", page, re.M)
        assert row and len(row[2].split()) > 1, each


@pytest.mark.parametrize("rule, words", [
    ("io/open", "Check the path"), ("convert/overflow", "--allow overflow"), ("convert/nothing-quantized", "--cast"), ("misuse/output-exists", "--overwrite"),
    ("manifest/key", "second source"), ("values/nan", "--stats"), ("file/sha256", "download it again"), ("embed/shape", "weighbridge inspect"),
    ("generate/encoder", "weighbridge embed"), ("unsupported/scheme", "--scheme")])
def test_an_error_of_the_command_has_its_own_advice(rule, words):
    text = weighbridge("explain", rule).stdout
    assert text.startswith(rule + " (") and "what to do\n" in text and words in " ".join(text.split()), text
    assert words in validated(weighbridge("explain", rule, "--json").stdout, "rule")["advice"]


@pytest.mark.parametrize("invented", ["misuse/xyz", "io/xyz", "embed/xyz", "manifest/xyz", "values/inf"])
def test_an_invented_id_is_no_rule(invented):
    """They were explained, with status 0."""
    assert f"there is no rule '{invented}'" in weighbridge("explain", invented, status=2).stderr


# ---- the end of a truncated file ----


@pytest.mark.parametrize("name", ["safetensors/truncated.safetensors", "safetensors/header-past-end.safetensors", "safetensors/too-short.safetensors",
                                  "gguf/truncated.gguf", "gguf/truncated-header.gguf", "npy/truncated.npy", "zt2/too-short.zt"])
def test_the_end_of_a_truncated_file_is_explained(name):
    """verify names the byte after the last one, and explain said that there is none."""
    path = ROOT / "corpus" / name
    rule, offset = re.search(r"\((\S+) at byte (\d+)", weighbridge("verify", path, status=1).stdout).groups()
    assert int(offset) == path.stat().st_size
    text = weighbridge("explain", path, f"@{offset}").stdout
    assert "is the end of the file; the last byte is in\n" in text and rule in text, text
    found = explained(path, f"@{offset}")
    assert found["offset"] == found["size"] and any(each["rule"] == rule for each in found["findings"])
    assert "there is no byte" in weighbridge("explain", path, f"@{int(offset) + 1}", status=2).stderr


@pytest.mark.parametrize("rule, sentence", [
    ("safetensors/overlapp", "there is no rule 'safetensors/overlapp', and no such file; did you mean 'safetensors/overlap'?"),
    ("overlap", "several rules are named 'overlap': safetensors/overlap, gguf/overlap,"),
    ("model.safetensors", "to explain a byte of the file 'model.safetensors': weighbridge explain model.safetensors @OFFSET"),
])
def test_what_is_no_rule(model, rule, sentence):
    done = weighbridge("explain", rule, status=2, cwd=model.parent)
    assert sentence in done.stderr and done.stdout == ""


def test_a_rule_that_is_a_file_too(tmp_path):
    (tmp_path / "zt").mkdir()
    (tmp_path / "zt/overlap").write_bytes(b"")
    done = weighbridge("explain", "zt/overlap", cwd=tmp_path)
    assert done.stdout.startswith("zt/overlap: ") and "to explain a byte of the file 'zt/overlap'" in done.stderr


def test_every_rule_of_the_page_is_explained():
    """rules.md has 900 rows: one of each table is enough."""
    tables = (ROOT / "docs/rules.md").read_text().split("\n## ")
    rules = [found[0] for found in (re.findall(r"^\| `([a-z0-9-]+/[a-z0-9-]+)` \| (?:error|warning|unsupported)", each, re.M) for each in tables) if found]
    assert len(rules) > 20
    for rule in rules:
        assert weighbridge("explain", rule).stdout.startswith(rule + ": ")
