# SPDX-License-Identifier: Apache-2.0
import os
import re
import resource
import struct
import time

import pytest

from conftest import cbor, floats, safetensors, tensors_of, validated, weighbridge


def convert_json(*arguments, status=0):
    return validated(weighbridge("convert", "--json", *arguments, status=status).stdout, "convert")


@pytest.fixture
def ordered(tmp_path):
    """A file as the reference writer makes it comes back byte by byte."""
    path = tmp_path / "ordered.safetensors"
    path.write_bytes(safetensors({"a": ("F32", [2], floats(1, 2)), "b": ("F32", [1], floats(3)), "c": ("U8", [3], b"abc")},
                                 {"k": "v"}))
    return path


@pytest.mark.parametrize("flags", [[], ["--encoding", "zstd"], ["--encoding", "zstd", "--level", "19", "--digest", "sha256"],
                                   ["--digest=crc32c"]])
def test_there_and_back(ordered, tmp_path, flags):
    middle, back = tmp_path / "middle.zt", tmp_path / "back.safetensors"
    out = weighbridge("convert", ordered, middle, *flags).stdout
    assert "safetensors" in out and "written" in out
    weighbridge("verify", middle)
    weighbridge("convert", middle, back)
    assert back.read_bytes() == ordered.read_bytes()
    one, two = (line.split()[0] for line in weighbridge("hash", ordered, middle).stdout.splitlines())
    assert one == two


def test_the_plan_is_printed_and_nothing_written(sample, tmp_path):
    out = tmp_path / "out.zt"
    plan = convert_json(sample, out, "--dry-run")
    assert plan["possible"] is True and plan["written"] is False and not out.exists()
    assert plan["tensors"] == 4 and plan["payload_size"] == 52 and plan["to"] == "zt"
    assert f": 4 tensors, {sample.stat().st_size} B -> " in weighbridge("convert", sample, out, "--dry-run").stdout
    done = convert_json(sample, out)
    assert done["written"] is True
    assert done["output_size_exact"] is False or done["output_size"] == out.stat().st_size


def test_a_dry_run_says_what_each_type_takes(tmp_path):
    path = tmp_path / "in.safetensors"
    path.write_bytes(safetensors({"w": ("F32", [2, 256], floats(*range(512))), "b": ("F32", [2], floats(1, 2))}))
    said = weighbridge("convert", path, tmp_path / "out.gguf", "--quantize", "q4_k", "--pure", "--dry-run").stdout
    assert "q4_k: 1 tensor, 288 B, 4.50 bits per weight" in said and "in all: 2 tensors, 296 B, 4.61 bits per weight" in said
    plan = convert_json(path, tmp_path / "out.gguf", "--quantize", "q4_k", "--pure", "--dry-run")
    assert {each["type"]: (each["tensors"], each["elements"], each["size"], each["bits_per_weight"]) for each in plan["types"]} == {
        "q4_k": (1, 512, 288, 4.5), "f32": (1, 2, 8, 32), "in all": (2, 514, 296, 296 * 8 / 514)}
    assert "bits per weight" not in weighbridge("convert", path, tmp_path / "out.zt", "--dry-run").stdout


def test_a_cast_is_the_consent_to_its_loss(sample, tmp_path):
    plan = convert_json(sample, tmp_path / "half.zt", "--cast", "f16")
    assert plan["written"] is True and {item["kind"] for item in plan["losses"]} <= {"dtype", "precision"}
    assert plan["losses"] and all(item["allowed"] for item in plan["losses"])


@pytest.fixture
def large(tmp_path):
    """Two values beyond the range of f16, one that f16 makes zero, and a tensor that fits."""
    path = tmp_path / "large.safetensors"
    path.write_bytes(safetensors({"large": ("F32", [4], floats(1, 70000, -1e30, 1e-9)), "small": ("F32", [2], floats(0.1, 2))}))
    return path


def test_a_cast_that_overflows_is_refused_and_counted(large, tmp_path):
    out = tmp_path / "half.safetensors"
    refused = weighbridge("convert", large, out, "--cast", "f16", status=1)
    assert "2 values of 1 tensor are too large for f16" in refused.stderr and "--allow overflow" in refused.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [large.name]
    finding, = validated(weighbridge("convert", "--json", large, out, "--cast", "f16", status=1).stdout, "convert")["findings"]
    assert finding["rule"] == "convert/overflow" and finding["tensor"] == "large"
    weighbridge("convert", large, tmp_path / "bf.safetensors", "--cast", "bf16")  # its range is that of f32


def test_a_cast_reports_overflow_zeros_and_the_largest_error(large, tmp_path):
    done = weighbridge("convert", large, tmp_path / "half.safetensors", "--cast", "f16", "--allow", "overflow").stdout
    assert "2 tensors: f32 -> f16, largest error 2.4e-05, 1 value became zero, 2 values were too large\n" in done
    casts = convert_json(large, tmp_path / "half.zt", "--cast", "f16", "--allow", "overflow")["casts"]
    assert [(c["from"], c["to"], c["tensors"], c["values"], c["flushed"], c["overflowed"]) for c in casts] == [("f32", "f16", 2, 6, 1, 2)]
    assert 2.4e-5 < casts[0]["largest_error"] < 2.5e-5
    assert convert_json(large, tmp_path / "half.zt", "--cast", "f16", "--dry-run", "--force")["casts"] == []


def test_a_cast_that_only_overflows_does_not_say_that_every_value_was_kept(tmp_path):
    some, one, exact = (tmp_path / name for name in ("some.safetensors", "one.safetensors", "exact.safetensors"))
    for path, values in ((some, [1, 70000, 2]), (one, [70000]), (exact, [1, 2])):
        path.write_bytes(safetensors({"w": ("F32", [len(values)], floats(*values))}))
    said = {path: weighbridge("convert", path, f"{path}.zt", "--cast", "f16", "--allow", "overflow").stdout for path in (some, one, exact)}
    assert "f32 -> f16, every other value kept, 1 value was too large\n" in said[some]
    assert "f32 -> f16, 1 value was too large\n" in said[one]
    assert "f32 -> f16, every value kept\n" in said[exact]


def test_a_file_in_the_place_of_a_folder_is_called_that(sample, tmp_path):
    there = tmp_path / "there"
    there.write_text("")
    said = weighbridge("convert", sample, there, "--to", "hf", "--set", "hf.model_type=other", status=2).stderr
    assert f"{there}: cannot be written: it is not a folder, and this format is written as a folder" in said


def test_a_loss_is_refused_until_allowed(sparse, tmp_path):
    out = tmp_path / "out.safetensors"
    for flags in ([], ["--dry-run"]):
        plan = convert_json(sparse, out, *flags, status=1)
        assert plan["possible"] is False and plan["written"] is False and not out.exists()
        assert [item["kind"] for item in plan["losses"] if not item["allowed"]] == ["layout"]
    assert "--allow layout" in weighbridge("convert", sparse, out, status=1).stderr
    weighbridge("convert", sparse, out, "--allow", "name,layout")
    dense = weighbridge("extract", out, "s", "-o", "-", text=False).stdout
    assert dense == weighbridge("extract", sparse, "s", "--dense", "-o", "-", text=False).stdout == floats(0, 5, 0, 0, 0, 7)


def index_entry(name, endianness, offset=64):
    return {"name": name, "offset": offset, "size": 16, "dtype": "float32", "shape": [2, 2], "encoding": "raw",
            "data_endianness": endianness}


def test_equal_bytes_in_another_order_are_other_elements(tmp_path):
    """Two tensors share their bytes: in a zt0 with two byte orders, in an STB with two axis orders."""
    zt0, stb = tmp_path / "in.zt0", tmp_path / "in.stb"
    index = cbor([index_entry("a", "big"), index_entry("b", "little")])
    zt0.write_bytes(b"ZTEN0001" + bytes(56) + floats(1, 2, 3, 4) + index + struct.pack("<Q", len(index)))
    head = struct.pack("<4sBBHIIQQ", b"STB0", 1, 0, 2, 0, 0, 128, 144)
    head += b"".join(struct.pack("<BBBBQQ3I", i, 0, 2, layout, 128, 16, 2, 2, 0) for i, layout in enumerate((0, 1)))
    stb.write_bytes(head.ljust(128, b"\0") + floats(1, 2, 3, 4))
    for source in (zt0, stb):
        before = weighbridge("hash", source).stdout.split()[0]
        for to in ("zt", "zt0", "stb", "safetensors"):
            out = tmp_path / f"out.{to}"
            weighbridge("convert", source, out, "--to", to, status=1)
            weighbridge("convert", source, out, "--to", to, "--allow", "alias")
            assert weighbridge("hash", out).stdout.split()[0] == before, (source, to)
            for path in tmp_path.glob("out.*"):
                path.unlink()


def test_a_sidecar_is_not_written_through_a_link(tmp_path):
    """Readers follow no link out of the folder, so a file written through one could not be opened again."""
    source, elsewhere, folder = tmp_path / "w.safetensors", tmp_path / "elsewhere.json", tmp_path / "folder"
    source.write_bytes(safetensors({"named": ("F32", [2], floats(1, 2))}))
    folder.mkdir()
    (folder / "w.khm.json").symlink_to(elsewhere)
    assert "symbolic link" in weighbridge("convert", source, folder / "w.stb", "--force", status=2).stderr
    assert not elsewhere.exists() and not (folder / "w.stb").exists()


def test_an_existing_output_needs_force(sample, tmp_path):
    out = tmp_path / "out.zt"
    out.write_bytes(b"old")
    done = weighbridge("convert", sample, out, status=2)
    assert "--overwrite" in done.stderr and out.read_bytes() == b"old"
    assert convert_json(sample, out, status=2)["findings"][0]["kind"] == "misuse"
    weighbridge("convert", sample, out, "--force")
    weighbridge("verify", out)


def test_the_input_is_never_the_output(sample, tmp_path):
    before = sample.read_bytes()
    symbolic, hard = tmp_path / "symbolic.zt", tmp_path / "hard.zt"
    symbolic.symlink_to(sample)
    os.link(sample, hard)
    for output in (sample, symbolic, hard):
        assert "input" in weighbridge("convert", sample, output, "--force", "--to", "zt", status=2).stderr
    assert sample.read_bytes() == before


def test_the_target_must_be_known(sample, tmp_path):
    assert "--to" in weighbridge("convert", sample, tmp_path / "out.bin", status=2).stderr
    weighbridge("convert", sample, tmp_path / "out.bin", "--to", "zt")
    done = weighbridge("convert", sample, tmp_path / "x", "--to", "safetensor", status=2)
    assert "'safetensors'" in done.stderr
    weighbridge("convert", sample, "-", "--to", "zt", status=2)


def test_malformed_input_writes_nothing(broken, tmp_path):
    out = tmp_path / "out.zt"
    weighbridge("convert", broken, out, status=1)
    assert not out.exists() and os.listdir(tmp_path) == ["broken.safetensors"]


def test_quiet(sample, tmp_path):
    done = weighbridge("convert", "-q", sample, tmp_path / "out.zt")
    assert done.stdout == "" and done.stderr == ""


def test_append(sample, tmp_path):
    target, more = tmp_path / "target.zt", tmp_path / "more.safetensors"
    weighbridge("convert", sample, target)
    more.write_bytes(safetensors({"new": ("I32", [2], struct.pack("<2i", 1, 2))}))
    old = target.read_bytes()
    merged = tmp_path / "merged.zt"
    validated(weighbridge("append", target, more, "-o", merged, "--json").stdout, "convert")
    assert target.read_bytes() == old
    weighbridge("append", target, more)
    assert target.read_bytes() == merged.read_bytes()
    weighbridge("verify", target)
    value = validated(weighbridge("inspect", target, "--json").stdout, "inspect")["files"][0]
    assert {t["name"] for t in value["tensors"]} == {"layer.weight", "layer.bias", "embedding", "steps", "new"}
    assert "new" in weighbridge("append", target, more, status=1).stderr
    assert target.read_bytes() == merged.read_bytes()


def test_bytes_that_fail_their_digest_go_nowhere(tmp_path):
    source, good, bad, out = (tmp_path / n for n in ("m.safetensors", "good.zt", "bad.zt", "out.zt"))
    source.write_bytes(safetensors({"w": ("F32", [64], floats(*range(64)))}))
    weighbridge("convert", source, good, "--digest", "sha256")
    broken = bytearray(good.read_bytes())
    broken[64] ^= 1
    bad.write_bytes(broken)
    for target, flags in ((out, []), (out, ["--digest", "sha256"]), (tmp_path / "out.safetensors", [])):
        refused = weighbridge("convert", bad, target, *flags, status=1)
        assert "zt/digest" in refused.stderr
        assert not target.exists()
    other = tmp_path / "other.safetensors"
    other.write_bytes(safetensors({"v": ("U8", [1], b"1")}))
    weighbridge("convert", other, tmp_path / "other.zt")
    assert "zt/digest" in weighbridge("append", tmp_path / "other.zt", bad, "-o", out, status=1).stderr
    assert not out.exists()


def test_appending_to_standard_output_is_refused(sample, tmp_path):
    path = tmp_path / "t.zt"
    weighbridge("convert", sample, path)
    weighbridge("append", path, sample, "-o", "-", status=2, cwd=tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["sample.safetensors", "t.zt"]


@pytest.mark.parametrize("flags", [["--created-at", "x"], ["--model-name", "m"], ["--model-version", "1"], ["--keep-gqa"],
                                   ["--omit-layout-field"], ["--quantize-norms"]])
def test_an_option_that_the_target_has_no_use_for_is_refused(sample, tmp_path, flags):
    done = weighbridge("convert", sample, tmp_path / "out.zt", *flags, status=2)
    assert flags[0][2:] in done.stderr and not (tmp_path / "out.zt").exists()


def test_force_is_not_promised_for_what_is_no_file(sample, tmp_path):
    (tmp_path / "d").mkdir()
    for output in (tmp_path / "d", "/dev/null"):
        done = weighbridge("convert", sample, output, "--to", "zt", status=2)
        assert "--overwrite" not in done.stderr and "regular file" in done.stderr
    (tmp_path / "out.zt").write_bytes(b"old")
    for arguments in (["convert", sample, tmp_path / "out.zt"], ["extract", sample, "steps", "-o", tmp_path / "out.zt"]):
        assert weighbridge(*arguments, status=2).stderr.rstrip().endswith("out.zt: the file exists; --overwrite replaces it")


def test_what_cannot_be_told_is_written_all_the_same(sample, tmp_path):
    with open("/dev/full", "wb") as full:
        for arguments, output in ((["convert", sample, tmp_path / "o.zt"], "o.zt"), (["extract", sample, "steps", "-o", tmp_path / "s.npy"], "s.npy")):
            assert f"{output}' is written all the same" in weighbridge(*arguments, stdout=full, status=4).stderr
            assert (tmp_path / output).exists()


def test_a_blocker_is_said_once_and_a_long_value_is_cut(sample, tmp_path):
    long = tmp_path / "long.safetensors"
    long.write_bytes(safetensors({"w": ("F32", [1], floats(1))}, {"note": "x" * 500}))
    done = weighbridge("convert", long, tmp_path / "o.stb", "--dry-run", status=1)
    assert "x..." in done.stdout and "x" * 101 not in done.stdout
    path = tmp_path / "t.zt"
    weighbridge("convert", sample, path)
    done = weighbridge("append", path, sample, status=1)
    assert 'tensors["steps"]: the' in done.stdout and "this name" not in done.stderr
    assert "this name" in weighbridge("append", path, sample, "--quiet", status=1).stderr


def gguf(alignment, tensors):
    """A file with the alignment and empty tensors, or tensors of one element."""
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    infos = b"".join(text(f"t{i}") + struct.pack("<IQIQ", 1, count, 0, at) for i, (count, at) in enumerate(tensors))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 1) + text("general.alignment") + struct.pack("<II", 4, alignment) + infos
    end = max(at + 4 * count for count, at in tensors)
    return head if end == 0 else head + b"\0" * (-len(head) % alignment + end)


def within_memory(*arguments, status):
    """The command where 256 MiB are all that it may have."""
    limit = (256 << 20, 256 << 20)
    began = time.monotonic()
    said = weighbridge(*arguments, status=status, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
    assert time.monotonic() - began < 20
    return said


@pytest.mark.parametrize("alignment", [1 << 21, 1 << 30, 1 << 31])
def test_an_alignment_in_90_bytes_takes_no_memory(tmp_path, alignment):
    """A plan for such a file allocated and filled as many bytes, and so did an edit."""
    path, out = tmp_path / "in.gguf", tmp_path / "out"
    path.write_bytes(gguf(alignment, [(0, 0)]))
    within_memory("verify", path, status=0)
    assert "aligned to at most 1048576 bytes" in within_memory("convert", path, f"{out}.gguf", "--dry-run", status=1).stdout
    within_memory("convert", path, f"{out}.gguf", "--allow", "attribute", status=0)
    within_memory("convert", path, f"{out}/", "--to", "gguf", "--max-shard-size", "1K", "--dry-run", "--allow", "attribute", status=0)
    within_memory("edit", path, "--set", "x=y", "-i", "--dry-run", status=2)
    other = tmp_path / "in.safetensors"
    other.write_bytes(safetensors({"w": ("F32", [1], floats(1))}, {"general.alignment": str(alignment)}))
    within_memory("convert", other, tmp_path / "other.gguf", "--dry-run", "--allow", "attribute", status=0)


def test_padding_is_in_proportion_to_the_input(tmp_path):
    """Each tensor of a few bytes is padded to the alignment."""
    path = tmp_path / "in.safetensors"
    path.write_bytes(safetensors({f"t{i}": ("F32", [1], floats(i)) for i in range(300)}, {"general.alignment": str(1 << 20)}))
    said = weighbridge("convert", path, tmp_path / "out.gguf", status=1).stderr
    assert "header and padding" in said and "--limit output=" in said and not (tmp_path / "out.gguf").exists()


def test_an_output_whose_name_shows_no_format_and_one_without_a_graph(sample, tmp_path):
    said = weighbridge("convert", sample, tmp_path / "out.unknown", status=2).stderr
    assert "out.unknown: the name does not show the output format: end it in .safetensors, " in said and said.endswith("; try --to FORMAT\n")
    said = weighbridge("convert", sample, tmp_path / "out.onnx", status=2).stderr
    assert "needs a graph: give the ONNX model to copy with --into" in said and not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("format", ["safetensors", "hf"])
def test_a_version_is_refused_in_the_name_of_the_format_that_was_asked_for(sample, tmp_path, format):
    done = weighbridge("convert", sample, tmp_path / "out", "--to", format, "--zt-version", "1.2", status=2)
    assert f"the format {format} has no versions, so 1.2 cannot be asked for" in done.stderr


def test_integers_are_cast_if_each_fits(tmp_path):
    path, out = tmp_path / "a.safetensors", tmp_path / "out.safetensors"
    path.write_bytes(safetensors({"small": ("U8", [3], bytes([0, 7, 255])), "steps": ("I64", [2], struct.pack("<2q", -7, 40000)),
                                  "flags": ("BOOL", [2], b"\0\1"), "w": ("F32", [1], floats(0.1))}))
    done = weighbridge("convert", path, out, "--cast-int", "i32")
    assert "dtype: u8 -> i32" in done.stdout.replace('tensors["small"]: ', "") and "loss" not in done.stdout
    found = tensors_of(out)
    assert found["small"] == ("i32", [3], struct.pack("<3i", 0, 7, 255)) and found["steps"] == ("i32", [2], struct.pack("<2i", -7, 40000))
    assert found["flags"][0] == "bool" and found["w"] == ("f32", [1], floats(0.1))


@pytest.mark.parametrize("to, tensor, element", [("i16", "steps", 1), ("i8", "small", 2), ("u64", "steps", 0)])
def test_an_integer_that_does_not_fit_is_refused_by_its_place(tmp_path, to, tensor, element):
    path, out = tmp_path / "a.safetensors", tmp_path / "out.safetensors"
    path.write_bytes(safetensors({"small": ("U8", [3], bytes([0, 7, 255])), "steps": ("I64", [2], struct.pack("<2q", -7, 40000))}))
    done = weighbridge("convert", path, out, "--cast-int", to, "--only", tensor, status=2)
    assert f'tensor "{tensor}" cannot be cast from' in done.stderr.replace("'", '"') and f"to {to}: element {element} does not fit" in done.stderr
    assert not out.exists()


def test_a_format_without_the_integer_dtype_is_named(sample, tmp_path):
    assert "the format gguf has no dtype u64" in weighbridge("convert", sample, tmp_path / "o.gguf", "--cast-int", "u64", status=2).stderr
    assert "--cast-int cannot be 'f16'" in weighbridge("convert", sample, tmp_path / "o.zt", "--cast-int", "f16", status=2).stderr


def test_v_says_which_steps_ran(sample, tmp_path):
    done = weighbridge("convert", "-v", sample, tmp_path / "o.zt", "--digest", "sha256")
    steps = re.findall(r"(?:^[^:]*:|,) ([a-z ]+) [0-9.]+ ms", done.stderr)
    assert steps == ["opening", "planning", "checking the input", "writing", "reading back", "publishing"]
    done = weighbridge("convert", "-v", sample, tmp_path / "new.zt", "--dry-run")
    assert re.findall(r"(?:^[^:]*:|,) ([a-z ]+) [0-9.]+ ms", done.stderr) == ["opening", "planning"]
