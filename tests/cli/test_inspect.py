# SPDX-License-Identifier: Apache-2.0
import json
import os
import struct
import xml.etree.ElementTree

from conftest import ROOT, floats, safetensors, validated, weighbridge
from terminal import on_terminal


def rows(text):
    return [line for line in text.splitlines() if "[" in line and "dense" in line]


def test_lists_every_tensor_aligned(sample):
    out = weighbridge("inspect", sample).stdout
    assert "safetensors" in out and "4 tensors" in out and "format = pt" in out.replace("  ", " ")
    listed = rows(out)
    assert [line.split()[0] for line in listed] and len(listed) == 4
    assert len({line.index("dense") for line in listed}) == 1
    heading = next(line for line in out.splitlines() if line.startswith("name"))
    assert heading.split() == ["name", "dtype", "shape", "size", "layout"]
    assert heading.index("layout") == listed[0].index("dense")


def test_totals_by_dtype(sample):
    out = weighbridge("inspect", sample).stdout
    totals = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.endswith("bytes")}
    assert totals["f32"] == ["2", "tensors", "9", "elements", "36", "bytes"]
    assert totals["total"] == ["4", "tensors", "14", "elements", "52", "bytes"]


def test_wide_characters_keep_the_columns(tmp_path):
    path = tmp_path / "wide.safetensors"
    path.write_bytes(safetensors({"重み": ("F32", [1], floats(1)), "abcd": ("F32", [1], floats(1))}))
    listed = rows(weighbridge("inspect", path).stdout)
    wide = next(line for line in listed if "重み" in line)
    plain = next(line for line in listed if "abcd" in line)
    assert wide.index("f32") + 2 == plain.index("f32")


def test_hostile_names_are_harmless(tmp_path):
    path = tmp_path / "hostile.safetensors"
    path.write_bytes(safetensors({"\x1b[31mred\u202etxt\n": ("F32", [1], floats(1))}, {"k\x07": "\x1b]0;title\x07"}))
    out = weighbridge("inspect", path).stdout
    assert "\x1b" not in out and "\u202e" not in out and "\x07" not in out
    assert r"\x1b[31mred\u{202e}txt\n" in out


def test_json_has_exact_strings(tmp_path):
    name = "\x1b[31mred\u202etxt\n"
    path = tmp_path / "hostile.safetensors"
    path.write_bytes(safetensors({name: ("F32", [1], floats(1))}, {"k": "v\\\n"}))
    value = validated(weighbridge("inspect", path, "--json").stdout, "inspect")["files"][0]
    assert value["tensors"][0]["name"] == name
    assert value["attributes"]["k"] == "v\\\n"


def test_json_has_the_promised_members(sample):
    told = validated(weighbridge("inspect", "--json", sample).stdout, "inspect")
    value = told["files"][0]
    assert told["schema"] == 3 and value["format"] == "safetensors" and value["checked"] is True
    assert value["path"] == str(sample) and value["file_size"] == os.path.getsize(sample)
    weight = next(t for t in value["tensors"] if t["name"] == "layer.weight")
    assert weight["dtype"] == "f32" and weight["shape"] == [2, 3] and weight["layout"] == "dense"
    assert weight["parts"][0]["role"] == "data" and weight["parts"][0]["length"] == 24
    assert weight["parts"][0]["encoding"] == "raw" and weight["parts"][0]["digest"] is None
    # Opening a safetensors reads no tensor data, so there are no checks to skip.
    assert validated(weighbridge("inspect", "--json", "--no-check", sample).stdout, "inspect")["files"][0]["checked"] is True


def names(sample, *flags):
    return [t["name"] for t in validated(weighbridge("inspect", sample, "--json", *flags).stdout, "inspect")["files"][0]["tensors"]]


def test_sort(sample):
    assert names(sample, "--sort", "name") == ["embedding", "layer.bias", "layer.weight", "steps"]
    assert names(sample, "--sort", "size") == ["layer.weight", "layer.bias", "embedding", "steps"]
    assert names(sample, "--sort", "shape")[0] == "steps"
    assert names(sample, "--sort=dtype")[0] == "embedding"
    assert names(sample, "--sort", "offset") == ["layer.weight", "layer.bias", "embedding", "steps"]


def test_layer_10_is_behind_layer_2(tmp_path):
    path, own = tmp_path / "layers.safetensors", tmp_path / "own.safetensors"
    names = [f"layer.{n}.w" for n in range(12)]
    path.write_bytes(safetensors({name: ("F32", [1], floats(1)) for name in sorted(names)}))
    for words in ([], ["--sort", "name"], ["--quiet"]):
        rows = [line.split()[0] for line in weighbridge("inspect", path, *words).stdout.splitlines() if line.startswith("layer.")]
        assert rows == names
    assert [t["name"] for t in validated(weighbridge("inspect", path, "--json").stdout, "inspect")["files"][0]["tensors"]] == sorted(names), "programs get the order of the file"
    mixed = ["z", "layer.10.w", "a", "layer.2.w"]  # no sorted order: the author's
    own.write_bytes(safetensors({name: ("F32", [1], floats(1)) for name in mixed}))
    assert [line.split()[0] for line in weighbridge("inspect", own, "--quiet").stdout.splitlines()[1:]] == mixed


def test_quiet_leaves_the_rows(sample):
    rows = weighbridge("inspect", sample, "--quiet").stdout.splitlines()
    assert rows[0].split() == ["name", "dtype", "shape", "size", "layout"] and len(rows) == 5


def test_filter(sample):
    assert sorted(names(sample, "--filter", "layer.*")) == ["layer.bias", "layer.weight"]
    assert names(sample, "--filter", "?teps") == ["steps"]
    assert names(sample, "--filter", "[a-f]mb*g") == ["embedding"]


def test_no_match_is_the_same_in_every_verb(sample, tmp_path):
    for words in (["inspect", sample, "--filter", "x*"], ["extract", sample, "--glob", "x*", "-o", tmp_path / "o"],
                  ["convert", sample, tmp_path / "o.zt", "--only", "x*"], ["inspect", sample, "--filter", "x*", "--quiet"]):
        done = weighbridge(*words, status=2)
        assert done.stdout == "" and done.stderr.startswith(f'weighbridge: {sample}: no tensor matches "x*"'), words
    failure = validated(weighbridge("inspect", sample, "--filter", "layer", "--json", status=2).stdout, "inspect")["files"][0]
    assert failure["findings"][0]["message"] == 'no tensor matches "layer", "*layer*" does'
    assert failure["findings"][0]["rule"] == "misuse/nothing-matches"


def test_stats(tmp_path):
    path = tmp_path / "odd.safetensors"
    nan, inf = float("nan"), float("inf")
    path.write_bytes(safetensors({
        "mixed": ("F32", [6], floats(nan, inf, -inf, 0, -1, 4)),
        "big": ("U64", [2], struct.pack("<2Q", 2**64 - 1, 1)),
        "none": ("F32", [0], b""),
    }))
    value = validated(weighbridge("inspect", path, "--stats", "--json").stdout, "inspect")["files"][0]
    stats = {t["name"]: t["stats"] for t in value["tensors"]}
    assert abs(stats["mixed"].pop("std") - (14 / 3) ** 0.5) < 1e-12
    assert stats["mixed"] == {"elements": 6, "zeros": 1, "nans": 1, "infinities": 2, "min": -1, "max": 4, "mean": 1,
                              "histogram": {"from": -1, "to": 4, "counts": [1] + [0] * 5 + [1] + [0] * 24 + [1]},
                              "outliers": 0, "dead_rows": 0}
    assert stats["big"]["max"] == 2**64 - 1
    assert stats["none"]["min"] is None and stats["none"]["mean"] is None and "histogram" not in stats["none"]
    out = weighbridge("inspect", path, "--stats").stdout
    assert out.count("mean") == 1 and "18446744073709551615" in out


def test_malformed_is_status_1_with_a_finding(broken):
    done = weighbridge("inspect", broken, status=1)
    assert done.stdout == "" and "safetensors/" in done.stderr
    value = validated(weighbridge("inspect", broken, "--json", status=1).stdout, "inspect")["files"][0]
    assert value["findings"][0]["kind"] == "malformed" and value["format"] == "safetensors"


def test_reads_standard_input_only_when_told(sample):
    with open(sample, "rb") as file:
        value = validated(weighbridge("inspect", "-", "--json", stdin=file).stdout, "inspect")["files"][0]
    assert len(value["tensors"]) == 4 and value["path"] == "-"


def test_many_tensors(tmp_path):
    path = tmp_path / "many.safetensors"
    path.write_bytes(safetensors({f"t.{i}": ("F32", [1], floats(i)) for i in range(5000)}))
    assert len(rows(weighbridge("inspect", path).stdout)) == 5000
    assert len(validated(weighbridge("inspect", path, "--json").stdout, "inspect")["files"][0]["tensors"]) == 5000


def test_json_names_who_defined_a_block_type(tmp_path):
    weighbridge("slm", "fixture", "tiny", "-o", tmp_path / "tiny.slm")
    weighbridge("convert", tmp_path / "tiny.slm", tmp_path / "q8.slm", "--quantize", "q8_0", "--allow", "precision")
    listed = validated(weighbridge("inspect", "--json", tmp_path / "q8.slm").stdout, "inspect")["files"][0]["tensors"]
    found = {each["dtype"]: each.get("block_type") for each in listed}
    assert found["q8_0"] == "slm.q8_0" and found["f32"] is None


def layers(path, count=24, metadata=None):
    """Layers that are alike, as those of a transformer."""
    named = {}
    for i in range(count):
        named |= {f"layer.{i}.q.weight": ("F32", [2, 2], floats(1, 2, 3, 4)), f"layer.{i}.norm": ("F32", [2], floats(1, 2))}
        if i >= 20:
            named[f"layer.{i}.extra"] = ("I32", [1], bytes(4))
    path.write_bytes(safetensors(named | {"head": ("F32", [2], floats(1, 2))}, metadata))
    return path


def test_the_summary_says_what_the_model_is(tmp_path):
    path = layers(tmp_path / "layers.safetensors", metadata={"hf.architectures": '["TinyModel"]'})
    lines = weighbridge("inspect", path).stdout.splitlines()
    assert ": safetensors, 53 tensors, " in lines[0] and lines[1] == "TinyModel, 146 parameters; by size: f32 97%, i32 2%"
    value = validated(weighbridge("inspect", "--json", path).stdout, "inspect")["files"][0]
    assert (value["architecture"], value["parameters"], value["tensor_count"]) == ("TinyModel", 146, 53)
    assert value["dtypes"] == [{"dtype": "f32", "tensors": 49, "elements": 146, "bytes": 584},
                               {"dtype": "i32", "tensors": 4, "elements": 4, "bytes": 16}]


def test_a_filter_says_how_many_of_how_many(tmp_path):
    path = layers(tmp_path / "layers.safetensors")
    out = weighbridge("inspect", path, "--filter", "*.norm", "--filter", "head").stdout
    assert ": safetensors, 25 of 53 tensors, " in out and len(rows(out)) == 25
    value = validated(weighbridge("inspect", "--json", path, "--filter", "head").stdout, "inspect")["files"][0]
    assert value["tensor_count"] == 53 and len(value["tensors"]) == 1
    assert "no tensor matches" in weighbridge("inspect", path, "--filter", "head", "--filter", "x*", status=2).stderr


def test_several_files(sample, tmp_path):
    path = layers(tmp_path / "layers.safetensors")
    out = weighbridge("inspect", sample, path).stdout
    assert f"{sample}: " in out and f"\n\n{path}: " in out
    both = validated(weighbridge("inspect", "--json", sample, tmp_path / "none", path, status=4).stdout, "inspect")["files"]
    assert [each["path"] for each in both] == [str(sample), str(tmp_path / "none"), str(path)]
    assert len(both[2]["tensors"]) == 53


def test_a_terminal_lists_layers_that_are_alike_as_one(tmp_path):
    path = layers(tmp_path / "layers.safetensors")
    out = on_terminal("inspect", path, columns=100)
    listed = [line.split()[:2] for line in out.splitlines() if "[" in line]
    assert listed == [["layer.{0..23}.q.weight", "x24"], ["layer.{0..23}.norm", "x24"], ["layer.{20..23}.extra", "x4"], ["head", "f32"]]
    assert "53 tensors in 4 rows; --wide lists each" in out
    assert len(rows(weighbridge("inspect", path).stdout)) == 53, "a pipe gets every tensor"
    for flags in (["--wide"], ["--sort", "size"], ["--stats"]):
        assert "{" not in on_terminal("inspect", path, *flags, columns=200)


def test_a_tree_counts_what_is_beneath(tmp_path):
    out = weighbridge("inspect", "--tree", layers(tmp_path / "layers.safetensors")).stdout
    tree = [line.split() for line in out[out.index("name "):].splitlines()[1:]]
    assert tree == [["layer", "52", "592", "B"],
                    ["{0..23}", "48", "576", "B"],
                    ["q.weight", "24", "384", "B", "f32", "[2,", "2]"],
                    ["norm", "24", "192", "B", "f32", "[2]"],
                    ["{20..23}.extra", "4", "16", "B", "i32", "[1]"],
                    ["head", "1", "8", "B", "f32", "[2]"]]


def test_names_that_are_hard_to_group(tmp_path):
    named = {name: ("F32", [1], floats(1)) for name in (
        "", ".", "..", "a..b", "0", "00", "01", "1/2.3", "4294967296", "99999999999999999999", "a", "a.b", "a.b.c",
        ".".join("x" * 5000), "\x1b[31m.{0..1}")}
    path = tmp_path / "odd.safetensors"
    path.write_bytes(safetensors(named))
    out = weighbridge("inspect", "--tree", path).stdout
    assert "\x1b" not in out
    assert out.count("f32 [1]") == len(named)


def test_long_metadata_is_cut_unless_all_of_it_is_asked_for(tmp_path):
    path = layers(tmp_path / "layers.safetensors", metadata={f"k{i:02}": "v" * 300 for i in range(25)})
    out = weighbridge("inspect", path).stdout
    assert "... and 5 more; --metadata shows them all" in out and "v" * 101 not in out and "... (300 B)" in out
    assert weighbridge("inspect", "--metadata", path).stdout.count("v" * 300) == 25


def test_stats_mark_what_is_wrong_with_the_values(tmp_path):
    path = tmp_path / "odd.safetensors"
    path.write_bytes(safetensors({"zeros": ("F32", [3], floats(0, 0, 0)), "odd": ("F32", [4], floats(float("nan"), float("inf"), 0, 1)),
                                  "same": ("F32", [2], floats(5, 5)), "huge": ("F64", [2], struct.pack("<2d", -1.7e308, 1.7e308))}))
    lines = {line.split()[0]: line for line in weighbridge("inspect", "--stats", path).stdout.splitlines() if "[" in line}
    assert lines["zeros"].endswith("all zero") and lines["odd"].endswith("\u2588      \u2588 NaN Inf")
    assert "1.7e+308" in lines["huge"] and "inf" not in lines["huge"].split("dense")[1]
    assert lines["same"].split()[-5:] == ["0", "0", "0", "0", "\u2588"]


def drawn(path, *flags):
    """The texts of the picture of a file."""
    picture = path.with_suffix(".svg")
    weighbridge("inspect", path, "--plot", picture, "--quiet", *flags)
    svg = picture.read_text()
    assert "prefers-color-scheme:dark" in svg
    return ["".join(each.itertext()) for each in xml.etree.ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_a_picture_of_the_weights(tmp_path):
    path = tmp_path / "weights.safetensors"
    spread = [((i * 7919) % 1000 - 500) / 1000 for i in range(4000)]
    path.write_bytes(safetensors({
        "dead": ("F32", [3, 2], floats(1, 2, 0, 0, -0.0, 0)),
        "far": ("F32", [4001], floats(*spread, 100)),
        "odd": ("F32", [4], floats(float("nan"), float("inf"), 1, 2)),
        "<plain> & \"quoted\"": ("F32", [2], floats(-1, 3)),
        "none": ("F32", [0], b"")}))
    texts = drawn(path)
    assert "2 dead rows" in texts and "1 outlier" in texts and "1 NaN, 1 infinite" in texts and "no elements" in texts
    assert any(text.startswith("<plain>") for text in texts) and "5 tensors, 3 with something odd" in texts
    stats = {each["name"]: each["stats"] for each in validated(weighbridge("inspect", path, "--stats", "--json").stdout, "inspect")["files"][0]["tensors"]}
    assert stats["dead"]["dead_rows"] == 2 and stats["far"]["outliers"] == 1 and stats["odd"]["outliers"] == 0
    weighbridge("inspect", path, "--plot", path.with_suffix(".svg"), status=2)
    weighbridge("inspect", path, path, "--plot", tmp_path / "two.svg", status=2)
    weighbridge("inspect", path, "--plot", path, "--force", status=2)


def test_a_picture_of_ten_thousand_tensors_is_bounded(tmp_path):
    path = tmp_path / "many.safetensors"
    path.write_bytes(safetensors({f"w.{i}": ("F32", [2], floats(i, float("nan") if i == 7777 else 1)) for i in range(10000)}))
    texts = drawn(path)
    assert "... and 9700 more tensors, none of them odd" in texts
    assert sum("elements" in text and "w." in text for text in texts) == 300
    assert any("w.7777" in text for text in texts)
    assert path.with_suffix(".svg").stat().st_size < 1 << 20


def test_a_model_without_its_external_data_is_listed(tmp_path):
    model = tmp_path / "w.onnx"
    model.write_bytes((ROOT / "corpus/onnx/external-missing.onnx").read_bytes())
    told = validated(weighbridge("inspect", model, "--json", status=1).stdout, "inspect")["files"][0]
    (tensor,) = told["tensors"]
    assert tensor["name"] == "w" and tensor["dtype"] == "f32" and tensor["shape"] == [2] and tensor["supported"] is False
    assert [finding["rule"] for finding in told["findings"]] == ["onnx/external-missing"]
    shown = weighbridge("inspect", model, status=1)
    assert "unsupported" in shown.stdout and "external-missing" in shown.stderr
    assert "external-missing" in weighbridge("explain", model, "w", status=1).stderr
    for verb, *more in (["verify"], ["hash"], ["convert", tmp_path / "out.safetensors"], ["extract", "w", "-o", tmp_path / "w.npy"]):
        done = weighbridge(verb, model, *more, status=1)
        assert "external-missing" in done.stdout + done.stderr, verb
    assert "0 of 1" in weighbridge("doctor", model, status=1).stdout


def test_a_folder_whose_index_and_files_disagree_is_listed(tmp_path):
    names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    (tmp_path / names[0]).write_bytes(safetensors({"a": ("F32", [1], floats(1)), "extra": ("F32", [1], floats(2))}))
    index = {"weight_map": {"a": names[0], "b": names[1]}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    told = validated(weighbridge("inspect", tmp_path, "--json", status=1).stdout, "inspect")["files"][0]
    assert {tensor["name"]: tensor["supported"] for tensor in told["tensors"]} == {"a": True, "extra": True, "b": False}
    assert next(tensor for tensor in told["tensors"] if tensor["name"] == "b")["shape"] is None
    assert weighbridge("inspect", tmp_path, "--stats", "--only", "[ae]*", status=1).stdout
    weighbridge("verify", tmp_path, status=1)
    weighbridge("convert", tmp_path, tmp_path / "out.safetensors", status=1)
