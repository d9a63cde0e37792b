# SPDX-License-Identifier: Apache-2.0
"""Tests diff by the questions that people ask: is it the same model, what did the fine-tuning change, what did quantization cost."""
import math
import random
import re
import struct
import xml.etree.ElementTree

import pytest

from conftest import floats, safetensors, validated, weighbridge, ztensor


def numbers(count, seed):
    drawn = random.Random(seed)
    return list(struct.unpack(f"<{count}f", floats(*(drawn.gauss(0, 1) for _ in range(count)))))


LAYERS = {f"model.layers.{layer}.{kind}.weight": shape
          for layer in range(3) for kind, shape in (("wq", [8, 32]), ("wo", [32, 8]), ("norm", [32]))}


def layers(prefix="model."):
    return {name.replace("model.", prefix): (shape, numbers(math.prod(shape), place)) for place, (name, shape) in enumerate(LAYERS.items())}


def written(path, tensors, metadata=None):
    path.write_bytes(safetensors({name: ("F32", shape, floats(*values)) for name, (shape, values) in tensors.items()}, metadata))
    return path


@pytest.fixture
def base(tmp_path):
    return written(tmp_path / "base.safetensors", layers(), {"note": "a"})


def found(*arguments, status=1):
    return validated(weighbridge("diff", *arguments, "--json", status=status).stdout, "diff")


def one(*arguments, status=1):
    [tensor] = found(*arguments, status=status)["tensors"]
    return tensor


def test_the_same_model_in_another_container_is_equal(base, tmp_path):
    other = tmp_path / "other.zt"
    weighbridge("convert", base, other, "--encoding", "zstd")
    assert weighbridge("diff", base, other).stdout.startswith("equal (9 tensors, ")
    assert weighbridge("diff", base, base, "--exact").stdout.startswith("equal (9 tensors, ")
    value = found(base, other, status=0)
    assert value["equal"] and value["same"] == value["compared"] == 9 and value["tensors"] == []
    assert value["a"]["format"] == "safetensors" and value["b"]["format"] == "zt"


def test_what_a_fine_tuning_changed_with_the_numbers(base, tmp_path):
    tensors = layers()
    shape, before = tensors["model.layers.1.wq.weight"]
    after = list(struct.unpack(f"<{len(before)}f", floats(*(x + 0.01 * (i % 7 == 0) for i, x in enumerate(before)))))
    tensors["model.layers.1.wq.weight"] = (shape, after)
    tuned = written(tmp_path / "tuned.safetensors", tensors, {"note": "a"})
    tensor = one(base, tuned)
    assert tensor["verdict"] == "different" and tensor["changes"] == ["changed"] and tensor["a"]["name"] == "model.layers.1.wq.weight"
    values = tensor["values"]
    errors = [y - x for x, y in zip(before, after)]
    squares, own = math.fsum(e * e for e in errors), math.fsum(x * x for x in before)
    assert values["elements"] == len(before) and values["changed"] == values["beyond"] == sum(e != 0 for e in errors)
    assert values["max_abs"] == max(map(abs, errors))
    assert values["first"] == 0 and abs(errors[values["largest"]]) == values["max_abs"]
    for name, wanted in {"max_relative": max(abs(e) / abs(x) for e, x in zip(errors, before)), "rms": math.sqrt(squares / len(before)),
                         "relative_rms": math.sqrt(squares / own), "snr": 10 * math.log10(own / squares),
                         "cosine": math.fsum(map(lambda x, y: x * y, before, after)) / math.sqrt(own * math.fsum(y * y for y in after))}.items():
        assert values[name] == pytest.approx(wanted, rel=1e-12), name
    shown = weighbridge("diff", base, tuned, "--stats", status=1).stdout
    assert shown.startswith("different: 1 changed, 8 equal\n") and "model.layers.1.wq.weight: first at [0, 0]" in shown
    assert weighbridge("diff", base, tuned, "--quiet", status=1).stdout == ""


def test_what_quantization_cost(base, tmp_path):
    quantized = tmp_path / "q8.gguf"
    weighbridge("convert", base, quantized, "--quantize", "q8_0")
    value = found(base, quantized, "--no-metadata")
    lossy = [tensor for tensor in value["tensors"] if "recast" in tensor["changes"]]
    assert lossy and all(tensor["b"]["dtype"] == "q8_0" and 30 < tensor["values"]["snr"] < 70 for tensor in lossy)
    assert weighbridge("diff", base, quantized, "--no-metadata", "--atol", 0.05).stdout.startswith("equal")
    again = tmp_path / "again.gguf"
    weighbridge("convert", base, again, "--quantize", "q8_0")
    assert found(quantized, again, "--exact", status=0)["equal"]


def test_dtype_alone_is_a_difference_unless_values_decide(tmp_path):
    half, whole = tmp_path / "half.safetensors", written(tmp_path / "whole.safetensors", {"w": ([2], [1, -2])})
    half.write_bytes(safetensors({"w": ("BF16", [2], bytes.fromhex("803f00c0"))}))
    assert one(half, whole)["changes"] == ["recast"]
    assert "recast bf16 to f32, values are equal" in weighbridge("diff", half, whole, status=1).stdout
    assert found(half, whole, "--atol", 0, status=0)["equal"]
    assert not found(half, whole, "--exact")["equal"]


@pytest.mark.parametrize("flags,status", [([], 1), (["--atol", 0.02], 0), (["--atol", 0.005], 1), (["--rtol", 0.01], 0),
                                          (["--rtol", 0.0005], 1), (["--atol", 0.005, "--rtol", 0.005], 0)])
def test_tolerances_are_those_of_numpy_allclose(tmp_path, flags, status):
    a = written(tmp_path / "a.safetensors", {"w": ([2], [1, 10])})
    b = written(tmp_path / "b.safetensors", {"w": ([2], [1.0078125, 10.0078125])})
    value = found(a, b, *flags, status=status)
    assert value["equal"] == (status == 0) and value["tensors"][0]["values"]["changed"] == 2


def test_zeros_and_nans_are_equal_by_value_and_different_by_bits(tmp_path):
    a, b = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    a.write_bytes(safetensors({"w": ("F32", [2], bytes.fromhex("000000000000c07f"))}))
    b.write_bytes(safetensors({"w": ("F32", [2], bytes.fromhex("000000800100c07f"))}))
    assert one(a, b, status=0)["changes"] == ["bits-only"]
    assert "1 equal by value" in weighbridge("diff", a, b).stdout
    assert one(a, b, "--exact")["verdict"] == "different"


def test_a_nan_is_named_and_spoils_no_number(tmp_path):
    a = written(tmp_path / "a.safetensors", {"w": ([3], [1, 2, 3])})
    b = written(tmp_path / "b.safetensors", {"w": ([3], [math.nan, 2, 3.5])})
    values = one(a, b)["values"]
    assert values["nans"] == 1 and values["changed"] == 2 and values["max_abs"] == 0.5 and values["first"] == 0
    assert "1 NaN in one only" in weighbridge("diff", a, b, status=1).stdout


def test_missing_renamed_and_guessed_tensors(base, tmp_path):
    tensors = layers("")
    tensors["extra"] = ([3], [1, 2, 3])
    del tensors["layers.2.norm.weight"]
    shape, values = tensors["layers.0.wo.weight"]
    tensors["layers.0.wo.weight"] = (shape, [value + 1 for value in values])
    other = written(tmp_path / "other.safetensors", tensors, {"note": "a"})
    value = found(base, other)
    by_name = {(tensor["a"] or tensor["b"])["name"]: tensor for tensor in value["tensors"]}
    assert by_name["extra"]["verdict"] == "only-b" and by_name["model.layers.2.norm.weight"]["verdict"] == "only-a"
    assert by_name["model.layers.0.wq.weight"]["by"] == "content" and by_name["model.layers.0.wq.weight"]["changes"] == ["renamed"]
    assert by_name["model.layers.0.wo.weight"]["by"] == "guess" and by_name["model.layers.0.wo.weight"]["changes"] == ["renamed", "changed"]
    shown = weighbridge("diff", base, other, status=1).stdout
    assert "renamed layers.0.wq.weight (by content)" in shown and "renamed layers.0.wo.weight (guessed)" in shown
    assert found(base, other, "--match", "names")["compared"] == 0
    value = found(base, other, "--rename", "s/^model\\.//")
    assert value["same"] == 7 and {tensor["verdict"] for tensor in value["tensors"]} == {"different", "only-a", "only-b"}
    names = tmp_path / "names.txt"
    names.write_text("".join(f"{name}={name[6:]}\n" for name in LAYERS))
    assert found(base, other, "--rename-file", names)["same"] == 7


def test_transposed_reshaped_and_permuted_tensors(tmp_path):
    w = numbers(64 * 5, 1)
    a = written(tmp_path / "a.safetensors", {"q": ([64, 5], w), "t": ([2, 3], [1, 2, 3, 4, 5, 6]), "r": ([2, 2], [1, 2, 3, 4])})
    rows = [w[5 * r:5 * r + 5] for r in range(64)]
    paired = [rows[head + j * 8 + i] for head in range(0, 64, 16) for i in range(8) for j in range(2)]
    b = written(tmp_path / "b.safetensors", {"q": ([64, 5], sum(paired, [])), "t": ([3, 2], [1, 4, 2, 5, 3, 6]), "r": ([4], [1, 2, 3, 4])})
    changes = {tensor["a"]["name"]: tensor for tensor in found(a, b, "--permuted")["tensors"]}
    assert changes["q"]["changes"] == ["permuted"] and changes["q"]["order"] == "halves of heads of 16 became neighbors"
    assert changes["t"]["changes"] == ["reshaped", "transposed"] and changes["r"]["changes"] == ["reshaped"]
    assert "changed" in {tensor["a"]["name"]: tensor for tensor in found(a, b)["tensors"]}["q"]["changes"]


def test_a_tensor_with_more_elements_is_not_called_reshaped(tmp_path):
    a, b = (written(tmp_path / f"{count}.safetensors", {"w": ([count], range(count))}) for count in (4, 5))
    shown = weighbridge("diff", a, b, status=1).stdout
    assert "resized [4] to [5]" in shown and "reshaped" not in shown


def test_the_rows_that_two_vocabularies_share_are_compared(tmp_path):
    rows = numbers(6 * 4, 1)
    a = written(tmp_path / "a.safetensors", {"embed": ([4, 4], rows[:16]), "only": ([1], [1])})
    b = written(tmp_path / "b.safetensors", {"embed": ([6, 4], rows), "more": ([2], [1, 2])})
    tensors = found(a, b)["tensors"]
    assert [tensor["verdict"] for tensor in tensors] == ["different", "only-a", "only-b"]
    assert tensors[0]["changes"] == ["reshaped"] and tensors[0]["values"]["elements"] == 16 and tensors[0]["values"]["changed"] == 0
    shown = weighbridge("diff", a, b, status=1).stdout
    assert "embed: resized [4,4] to [6,4], of the first 4 rows, which both have" in shown.replace("[4, 4]", "[4,4]").replace("[6, 4]", "[6,4]")
    rows[5] += 1
    c = written(tmp_path / "c.safetensors", {"embed": ([6, 4], rows), "only": ([1], [1])})
    assert found(a, c)["tensors"][0]["values"]["changed"] == 1 and found(c, a)["tensors"][0]["values"]["first"] == 5


def test_a_tied_tensor_is_named(tmp_path):
    a = written(tmp_path / "a.safetensors", {"embed": ([2], [1, 2]), "head": ([2], [1, 2])})
    b = written(tmp_path / "b.safetensors", {"embed": ([2], [1, 2])})
    assert one(a, b, "--permuted")["tied_to"] == "embed"
    assert "its content is in 'embed' of B" in weighbridge("diff", a, b, "--permuted", status=1).stdout


def test_metadata_alone_is_a_difference(base, tmp_path):
    other = written(tmp_path / "other.safetensors", layers(), {"note": "b", "new": "\x1b[31m"})
    value = found(base, other)
    assert value["tensors"] == [] and value["metadata"] == [{"key": "note", "a": "a", "b": "b"}, {"key": "new", "a": None, "b": "\x1b[31m"}]
    shown = weighbridge("diff", base, other, status=1).stdout
    assert shown.startswith("different: 9 equal, 2 entries of metadata\n") and "\x1b" not in shown
    assert found(base, other, "--no-metadata", status=0)["equal"]


def test_tokenizers_are_compared(tmp_path):
    one_, other = tmp_path / "a.slm", tmp_path / "b.zt"
    weighbridge("slm", "fixture", "tiny", "-o", one_)
    weighbridge("convert", one_, other)
    assert found(one_, other, "--no-metadata", status=0)["equal"]
    assert found(one_, other, status=0)["tokenizer"] == []
    weights = tmp_path / "plain.safetensors"
    weighbridge("convert", one_, weights, "--allow", "tokenizer,attribute,attribute-type,dtype,layout,name")
    assert [entry["key"] for entry in found(one_, weights)["tokenizer"]] == ["tokenizer"]


def test_a_llama_in_the_order_of_llama_cpp(tmp_path):
    own, theirs = tmp_path / "a.slm", tmp_path / "b.gguf"
    weighbridge("slm", "fixture", "tiny", "-o", own)
    weighbridge("convert", own, theirs, "--naming", "llama", "--allow", "attribute,tokenizer,attribute-type,name")
    assert found(own, theirs, "--no-metadata", "--naming", "llama", status=0)["equal"]
    assert not found(own, theirs, "--no-metadata")["equal"]


def test_what_prevents_a_comparison_is_4(base, broken, tmp_path):
    assert "base.safetensors" not in weighbridge("diff", base, broken, status=4).stderr
    assert weighbridge("diff", broken, base, status=4).stderr.count("\n") == 1
    weighbridge("diff", base, tmp_path / "absent.zt", status=4)
    weighbridge("diff", base, base, "--limit", "tensors=1", status=4)
    assert found(broken, base, status=4)["findings"]
    for misused in (["--only", "absent"], ["--rename", "absent=x"], ["--rename", "s/(/x/"], ["--atol", "-1"], ["--atol", 1, "--exact"],
                    ["--match", "luck"], ["--naming", "llama"]):
        weighbridge("diff", base, base, *misused, status=2)


def test_a_tensor_that_cannot_be_compared_is_3(strange, tmp_path):
    assert found(strange, strange, status=0)["equal"]  # stored in the same way, with the same bytes
    other = tmp_path / "other.zt"
    other.write_bytes(ztensor({"good": ("dense", [1], {"data": ("f32", floats(1))}), "odd": ("fractal", [2], {"data": ("u8", b"ac")})}))
    assert one(strange, other, status=3)["verdict"] == "incomparable"
    assert weighbridge("diff", strange, other, status=3).stdout.startswith("not compared in full: 1 not comparable, 1 equal\n")
    other.write_bytes(ztensor({"good": ("dense", [1], {"data": ("f32", floats(2))}), "odd": ("fractal", [2], {"data": ("u8", b"ac")})}))
    found(strange, other, status=1)


def test_missing_tensors_are_not_hidden_below_renamed_ones(tmp_path):
    """Rows with no change came first, and those that only one file has fell behind "... and 5 more"."""
    kept = {f"w{i}": ([2], [i, 1]) for i in range(30)}
    a = written(tmp_path / "a.safetensors", kept | {"gone": ([3], [1, 2, 3]), "changed": ([1], [1])})
    b = written(tmp_path / "b.safetensors", {f"x.{name}": each for name, each in kept.items()} | {"new": ([4], [1, 2, 3, 4]), "changed": ([1], [2])})
    rows = [line.split()[4:] for line in weighbridge("diff", a, b, status=1).stdout.splitlines()[3:6]]
    assert [row[0] for row in rows] == ["changed", "gone:", "new:"] and rows[1][1:4] == ["only", "in", "A:"], rows
    tensors = found(a, b)["tensors"]
    assert [each["verdict"] for each in tensors[:4]] == ["different", "only-a", "only-b", "different"] and tensors[0]["changes"] == ["changed"]
    assert all(each["changes"] == ["renamed"] for each in tensors[3:]) and len(tensors) == 33


def test_permuted_rows_are_found_under_other_names(tmp_path):
    """q and k against qq and kk found nothing, and so did a Llama's against the names of llama.cpp."""
    w = {name: numbers(64 * 5, seed) for seed, name in enumerate("qkx")}
    turned = {name: sum((w[name][5 * (16 * head + j * 8 + i):][:5] for head in range(4) for i in range(8) for j in range(2)), []) for name in "qk"}
    a = written(tmp_path / "a.safetensors", {name: ([64, 5], w[name]) for name in "qkx"})
    b = written(tmp_path / "b.safetensors", {"kk": ([64, 5], turned["k"]), "qq": ([64, 5], turned["q"]), "y": ([64, 5], numbers(64 * 5, 9))})
    pairs = {each["a"]["name"]: each for each in found(a, b, "--permuted")["tensors"] if each["a"]}
    for name in "qk":
        assert pairs[name]["b"]["name"] == 2 * name and pairs[name]["by"] == "content" and pairs[name]["changes"] == ["renamed", "permuted"]
        assert pairs[name]["order"] == "halves of heads of 16 became neighbors"
    assert found(a, b, "--permuted", "--match", "names")["compared"] == found(a, b, "--match", "content")["compared"] == 0


def test_a_cosine_near_1_fits_its_column(tmp_path):
    """It was printed with sixteen digits, wider than its column."""
    a = written(tmp_path / "a.safetensors", {"w": ([1000], numbers(1000, 1))})
    seen = []
    for step in (1e-7, 1e-6, 1e-5, 1e-4):  # the first is 1 in f64 too
        values = numbers(1000, 1)
        values[7] += step
        lines = weighbridge("diff", a, written(tmp_path / "b.safetensors", {"w": ([1000], values)}), status=1).stdout.splitlines()
        assert lines[3].index("w") == lines[2].index("tensor"), lines
        seen.append(lines[3].split()[2])
    assert seen[0] == "1" and all(re.fullmatch(r"1-\de-(0[7-9]|1\d)", each) for each in seen[2:]), seen


def test_the_most_changed_come_first_and_others_are_counted(tmp_path):
    a = written(tmp_path / "a.safetensors", {f"w{i}": ([2], [1, 1]) for i in range(30)})
    b = written(tmp_path / "b.safetensors", {f"w{i}": ([2], [1, 1 + i / 64]) for i in range(30)})
    lines = weighbridge("diff", a, b, status=1).stdout.splitlines()
    assert lines[0] == "different: 29 changed, 1 equal" and lines[3].endswith("w29") and lines[-1] == "... and 9 more; --top N lists N of them"
    assert len(found(a, b)["tensors"]) == 29
    assert [tensor["a"]["name"] for tensor in found(a, b, "--top", 2)["tensors"]] == ["w29", "w28"]


def test_a_picture_of_the_layers(base, tmp_path):
    tensors = layers()
    tensors["model.layers.1.wq.weight"] = ([8, 32], [0] * 256)
    tensors["<odd> & \"named\""] = ([1], [1])
    picture, other = tmp_path / "out.svg", written(tmp_path / "other.safetensors", tensors, {"note": "a"})
    weighbridge("diff", base, other, "--plot", picture, status=1)
    svg = picture.read_text()
    titles = [each.text for each in xml.etree.ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")]
    assert "model.layers.1.wq.weight: relative RMS 1" in titles and '<odd> & "named": only in B' in titles
    weighbridge("diff", base, other, "--plot", picture, status=2)
    weighbridge("diff", base, base, "--plot", picture, "--force")
    assert "Every tensor is equal." in picture.read_text()
    weighbridge("diff", base, other, "--plot", base, "--force", status=2)


def test_standard_input_is_one_of_the_two(base):
    with base.open("rb") as stream:
        assert weighbridge("diff", "-", base, stdin=stream).stdout.startswith("equal")
