# SPDX-License-Identifier: Apache-2.0
"""The advice of doctor, followed: for each kind of damage, the commands that it prints are run, and their outcome is checked."""
import hashlib
import io
import json
import os
import pickle
import shutil
import struct
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from conftest import COMMAND, ROOT, floats, safetensors, torch_archive, validated, weighbridge, ztensor

A, B = bytes(range(1, 251)) * 200, bytes(range(250, 0, -1)) * 200
MODEL = safetensors({"a": ("U8", [50000], A), "b": ("U8", [50000], B)})


def said(path, status=1):
    return weighbridge("doctor", path, status=status).stdout


def found(path, status=1):
    return validated(weighbridge("doctor", "--json", path, status=status).stdout, "doctor")["files"][0]


def commands(text):
    return [line.strip() for line in text.partition("what to do:\n")[2].splitlines() if line.startswith("    ")]


def follow(command, folder, good=None):
    """Runs a command that doctor printed; URL is that of the good file."""
    if "curl" in command and not shutil.which("curl"):
        pytest.skip("needs curl")
    command = command.replace("weighbridge ", f"{COMMAND} ").replace(" URL", f" file://{good}")
    done = subprocess.run(["sh", "-c", command], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.stderr)


def npz(arrays):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in arrays.items():
            header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(data)},), }}".ljust(117) + "\n"
            archive.writestr(name + ".npy", b"\x93NUMPY\1\0" + struct.pack("<H", 118) + header.encode() + data)
    return out.getvalue()


def gguf(tmp_path):
    floats = b"".join(struct.pack("<f", 1 + i) for i in range(10000))
    (tmp_path / "to.safetensors").write_bytes(safetensors({"a": ("F32", [10000], floats), "b": ("F32", [10000], floats)}))
    weighbridge("convert", tmp_path / "to.safetensors", tmp_path / "to.gguf")
    return (tmp_path / "to.gguf").read_bytes()


@pytest.mark.parametrize("target", ["gguf", "zt", "zt0", "zt2", "npy", "npz", "pt", "safetensors", "stb"])
@pytest.mark.parametrize("part", [3000, 41_001])
def test_no_verb_takes_a_part_followed_by_the_whole_file_for_a_model(tmp_path, target, part):
    """GGUF, NumPy and zTensor opened such a file, and gave the tensors behind the part the bytes of others."""
    tensors = {"array": ("F32", [10000], floats(*range(10000))), "b": ("F32", [10000], floats(*range(10000, 20000)))}
    (tmp_path / "to.safetensors").write_bytes(safetensors({"array": tensors["array"]} if target == "npy" else tensors))
    good = tmp_path / ("good." + ("zt" if target.startswith("zt") else target))
    weighbridge("convert", tmp_path / "to.safetensors", good, "--to", {"pt": "pytorch"}.get(target, target))
    bad = tmp_path / ("bad" + good.suffix)
    part = min(part, good.stat().st_size - 2000)
    bad.write_bytes(good.read_bytes()[:part] + good.read_bytes())
    weighbridge("verify", bad, status=1)
    for verb in ("convert", "hash", "extract"):
        weighbridge(verb, bad, *{"convert": [tmp_path / "o.zt"], "hash": [], "extract": ["array", "-o", tmp_path / "a.npy"]}[verb], status=1)
    assert f"begins again at byte {part}" in said(bad)
    weighbridge("doctor", bad, "--trim", tmp_path / ("trimmed" + good.suffix))
    assert (tmp_path / ("trimmed" + good.suffix)).read_bytes() == good.read_bytes()


def zt2(tmp_path):
    (tmp_path / "to.safetensors").write_bytes(MODEL)
    weighbridge("convert", tmp_path / "to.safetensors", tmp_path / "to.zt", "--to", "zt2")
    return (tmp_path / "to.zt").read_bytes()


WHOLE = {"safetensors": lambda tmp_path: MODEL, "npz": lambda tmp_path: npz({"a": A, "b": B}), "gguf": gguf,
         "zt": lambda tmp_path: ztensor({"a": ("dense", [50000], {"data": ("u8", A)}), "b": ("dense", [50000], {"data": ("u8", B)})}), "zt2": zt2}
CRASHED = b"\0" * 60000 + b"\x42" * 5000


@pytest.mark.parametrize("kind, damage, what", [
    ("safetensors", lambda w: w[:30000] + w, "begins again at byte 30000"), ("gguf", lambda w: w[:30000] + w, "begins again at byte 30000"),
    ("npz", lambda w: w[:70000] + w, "begins again at byte 70000"), ("safetensors", lambda w: w[:20] + w, "begins again at byte 20"),
    ("safetensors", lambda w: w[:30000] + w[:40000] + w, "begins again at byte 30000"),
    ("gguf", lambda w: b"something else " * 3000 + w, "begins at byte 45000"), ("npz", lambda w: b"\x05" * 9999 + w, "begins at byte 9999"),
    ("safetensors", lambda w: bytes(4096) + w, "begins at byte 4096"), ("zt", lambda w: w + CRASHED, "with an end at byte"),
    ("zt2", lambda w: w + CRASHED, "with an end at byte"), ("zt", lambda w: w[:30000] + w, "begins again at byte 30000"),
    ("npz", lambda w: w + CRASHED, "with an end at byte"), ("zt", lambda w: b"\x05" * 9999 + w, "begins at byte 9999"), ("safetensors", lambda w: w + b"</html>", "with bytes after its end")])
def test_a_model_inside_a_file_is_found_and_trim_gives_it_back(tmp_path, kind, damage, what):
    whole = WHOLE[kind](tmp_path)
    path = tmp_path / f"model.{kind.rstrip('2')}"
    path.write_bytes(damage(whole))
    text = said(path)
    assert what in text, text
    [command] = commands(text)
    assert "--trim" in command
    follow(command, tmp_path)
    assert (tmp_path / f"model.trimmed.{kind.rstrip('2')}").read_bytes() == whole
    salvaged = tmp_path / "salvaged.zt"
    weighbridge("doctor", path, "--salvage", salvaged, "--overwrite")
    assert json.loads(weighbridge("inspect", "--json", salvaged).stdout)["files"][0]["tensor_count"] == 2


def test_one_repeated_byte_proves_no_repetition(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"\7" * 100000)
    assert "begins again" not in said(path)
    path.write_bytes(MODEL[:30000] + b"x" + MODEL[:30000])
    assert "begins again" not in said(path) and "--trim" not in said(path)


def test_a_file_of_the_right_size_that_begins_again_is_not_sound(tmp_path):
    whole = gguf(tmp_path)
    path = tmp_path / "model.gguf"
    path.write_bytes((whole[:30000] + whole)[:len(whole)])
    weighbridge("verify", path)
    text = said(path)
    assert "begins again at byte 30000" in text and "curl" in text and "tensors: 2" not in text


def test_bytes_after_the_end_of_formats_that_ignore_them(tmp_path):
    whole = (ROOT / "corpus/hdf5/link.h5").read_bytes()
    path = tmp_path / "model.h5"
    path.write_bytes(whole + b"more")
    [command] = commands(said(path))
    follow(command, tmp_path)
    assert (tmp_path / "model.trimmed.h5").read_bytes() == whole


def test_a_download_that_stopped_is_made_whole_by_its_first_advice(tmp_path):
    good, path = tmp_path / "good", tmp_path / "model.safetensors"
    good.write_bytes(MODEL)
    path.write_bytes(MODEL[:-30000])
    fetch, salvage = commands(said(path))
    follow(salvage, tmp_path)
    assert (tmp_path / "model.salvaged.safetensors").read_bytes().endswith(A)
    follow(fetch, tmp_path, good)
    assert path.read_bytes() == MODEL


def test_zeros_at_the_end_are_a_suspicion_and_no_advice_destroys_them(tmp_path):
    good, path = tmp_path / "good", tmp_path / "model.safetensors"
    good.write_bytes(MODEL)
    reserved = MODEL[:-70000] + bytes(70000)
    path.write_bytes(reserved)
    text = said(path)
    assert text.startswith(f"{path}: suspicious:") and "truncate" not in text and "2 of 2 can be read" in text
    compare, fetch = commands(text)
    assert "--sha256" in compare
    follow(fetch, tmp_path, good)
    assert path.read_bytes() == reserved and Path(f"{path}.part").read_bytes() == MODEL


def test_the_zeros_of_a_fresh_adapter_are_none(tmp_path):
    path = tmp_path / "adapter_model.safetensors"
    path.write_bytes(safetensors({"x.lora_A.weight": ("U8", [50000], A), "x.lora_B.weight": ("U8", [50000], bytes(50000)),
                                  "y.lora_B.weight": ("U8", [50000], bytes(50000))}))
    assert said(path, 0).startswith(f"{path}: sound:") and "  zeros: " not in said(path, 0) and "warning" not in said(path, 0)


def test_a_file_of_zeros_only(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(bytes(100000))
    assert "the whole file is zeros" in said(path) and "curl" in said(path)
    path.write_bytes(bytes(50000) + b"\1" * 50000)
    assert "begins with zeros" in said(path)


def test_a_blob_is_compared_with_the_digest_in_its_name(tmp_path):
    for name in (hashlib.sha256(MODEL).hexdigest(), "sha256-" + hashlib.sha256(MODEL).hexdigest(), hashlib.sha1(b"blob %d\0" % len(MODEL) + MODEL).hexdigest()):
        path = tmp_path / name
        path.write_bytes(MODEL)
        assert "as it was published" in said(path, 0)
        path.write_bytes(MODEL[:-1] + b"\0")
        assert "not those of the digest in its name" in said(path)
    link = tmp_path / "model.safetensors"
    link.symlink_to(path)
    assert "not those of the digest in its name" in said(link)


def index(folder, shards, listed):
    folder.mkdir()
    for file, names in shards.items():
        (folder / file).write_bytes(safetensors({name: ("F32", [2], name.encode().ljust(8)[:8]) for name in names}))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": listed}))
    (folder / "config.json").write_text('{"model_type": "qwen2"}')


SPLIT = {"model-00001-of-00002.safetensors": ["a"], "model-00002-of-00002.safetensors": ["b", "c"]}
JOINED = {"model.safetensors": ["a", "b", "c"]}


@pytest.mark.parametrize("shards, listed, what", [
    (JOINED, {name: f"model-0000{1 + (name == 'c')}-of-00002.safetensors" for name in "abc"}, "index is stale"),
    (SPLIT, {"a": "model-00001-of-00004.safetensors", "b": "model-00002-of-00004.safetensors", "c": "model-00003-of-00004.safetensors"}, "index is stale"),
    (SPLIT, {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}, "index omits tensors")], ids=["joined", "stale", "omits"])
def test_an_index_that_does_not_describe_its_shards(tmp_path, shards, listed, what):
    folder = tmp_path / "folder"
    index(folder, shards, listed)
    text = said(folder)
    assert what in text and "download" not in text and "3 can be read" in text
    [command] = commands(text)
    follow(command, tmp_path)
    written = tmp_path / "folder.salvaged"
    weighbridge("verify", written)
    assert json.loads(weighbridge("inspect", "--json", written).stdout)["files"][0]["tensor_count"] == 3
    assert json.loads((written / "config.json").read_text()) == {"model_type": "qwen2"}


def test_an_index_of_tensors_that_are_nowhere_still_misses_its_files(tmp_path):
    folder = tmp_path / "folder"
    index(folder, {"model-00001-of-00002.safetensors": ["a"]}, {"a": "model-00001-of-00004.safetensors", "d": "model-00002-of-00004.safetensors"})
    assert "download the missing file 'model-00002-of-00004.safetensors'" in said(folder)


# The advice was to download files of the old names, which nobody has.
def test_a_stale_index_that_lists_one_more_tensor_says_which(tmp_path):
    folder = tmp_path / "folder"
    index(folder, SPLIT, {name: "model-00001-of-00004.safetensors" for name in "abcd"})
    text = said(folder)
    assert "index is stale: it lists other files, and tensors that no file has" in text and "download" not in text
    assert "3 of 4 can be read; these cannot:\n    d\n" in text
    [command] = commands(text)
    follow(command, tmp_path)
    assert json.loads(weighbridge("inspect", "--json", tmp_path / "folder.salvaged").stdout)["files"][0]["tensor_count"] == 3


def test_members_of_an_archive_without_its_directory(tmp_path):
    whole = npz({"a": A, "b": B})
    path = tmp_path / "model.npz"
    path.write_bytes(whole[:whole.index(b"PK\1\2")])
    command = commands(said(path))[-1]
    follow(command, tmp_path)
    assert json.loads(weighbridge("inspect", "--json", tmp_path / "model.salvaged.npz").stdout)["files"][0]["tensor_count"] == 2


@pytest.mark.parametrize("header", ["{'descr': '<f4' 'fortran_order': False, 'shape': (3, 4), }", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)",
                                    "{'shape': (3, 4), 'descr': \"<f4\", 'fortran_order': False, 'more': 1}"])
def test_a_bad_header_over_good_data(tmp_path, header):
    data = struct.pack("<12f", *range(12))
    path = tmp_path / "model.npy"
    text = header.ljust(117).encode() + b"\n"
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data)
    shown = said(path)
    if "more" in header:  # what else the text states is not known
        assert "bad header" not in shown
        return
    assert "bad header over good data" in shown and "(3" in shown
    [command] = commands(shown)
    follow(command, tmp_path)
    written = (tmp_path / "model.salvaged.npy").read_bytes()
    assert written.endswith(data) and b"'shape': (3, 4)" in written
    path.write_bytes(path.read_bytes()[:-4])  # the data have another size than the text states
    assert "bad header" not in said(path)


def legacy(tensors):
    """The form of torch.save before 1.6: tensors of f32, by name."""
    text = lambda s: b"X" + struct.pack("<I", len(s)) + s.encode()
    content = b"\x80\x02}("
    for key, (name, values) in enumerate(tensors.items()):
        size = b"J" + struct.pack("<i", len(values))
        content += (text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + b"ctorch\nFloatStorage\n" + text(str(key)) + text("cpu") + size
                    + b"NtQK\x00" + size + b"\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR")
    pickled = [pickle.dumps(each, 2) for each in (0x1950a86a20f9469cfc6c, 1001, {"little_endian": True})]
    return b"".join([*pickled, content + b"u.", pickle.dumps([str(i) for i in range(len(tensors))], 2),
                     *(struct.pack(f"<Q{len(v)}f", len(v), *v) for v in tensors.values())])


@pytest.mark.parametrize("cut, damaged", [(8, ["d"]), (44, ["d"]), (52, ["c", "d"]), (88, ["c", "d"]), (92, ["c", "d"])])
def test_a_checkpoint_before_1_6_that_ends_early(tmp_path, cut, damaged):
    """Once, none of its tensors was known."""
    whole = legacy({"a": [1.5], "b": [2.5] * 4, "c": [3.5] * 10, "d": [4.5] * 9})
    good, path = tmp_path / "good", tmp_path / "model.pth"
    good.write_bytes(whole)
    path.write_bytes(whole)
    assert said(path, 0).startswith(f"{path}: sound:")
    path.write_bytes(whole[:200])
    assert said(path).startswith(f"{path}: incomplete: PyTorch checkpoint file that ends inside a pickle")
    path.write_bytes(whole[:-cut])
    diagnosis = found(path)
    assert (diagnosis["condition"], diagnosis["damaged"], diagnosis["full_size"]) == ("incomplete", damaged, len(whole))
    assert f"tensors: {4 - len(damaged)} of 4 can be read" in said(path)
    fetch, salvage = commands(said(path))
    follow(salvage, tmp_path)
    saved = json.loads(weighbridge("inspect", "--json", tmp_path / "model.salvaged.pt").stdout)["files"][0]
    assert [t["name"] for t in saved["tensors"]] == [n for n in "abcd" if n not in damaged]
    follow(fetch, tmp_path, good)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("gaps, unused", [({}, 0), ({4096: b"\0" * 3968}, 0), ({65536: b"\0" * 65408}, 0), ({8192: b"\0" * 8064}, 8064),
                                          ({4096: b"\0" * 3967 + b"x"}, 3968)])
def test_gaps_in_external_data_are_padding_only_up_to_a_page(tmp_path, gaps, unused):
    """Gaps of zeros below 64 KiB were never counted."""
    field = lambda number, value: bytes([number << 3 | 2, len(value)]) + value if isinstance(value, bytes) else bytes([number << 3, value])
    at, data = next(iter(gaps), 128), struct.pack("<32f", *range(32))
    content = data + gaps.get(at, b"") + data

    def tensor(name, offset):
        entries = b"".join(field(13, field(1, k) + field(2, v)) for k, v in ((b"location", b"w.data"), (b"offset", b"%d" % offset), (b"length", b"128")))
        return field(1, 32) + field(2, 1) + field(8, name) + entries + field(14, 1)
    graph = field(2, b"g") + field(5, tensor(b"a", 0)) + field(5, tensor(b"b", at))
    (tmp_path / "w.onnx").write_bytes(field(1, 8) + b"\x3a" + bytes([len(graph) & 127 | 128, len(graph) >> 7]) + graph + field(8, field(2, 17)))
    (tmp_path / "w.data").write_bytes(content)
    text = said(tmp_path / "w.onnx", 1 if unused else 0)
    assert ("bytes that belong to no tensor" in text) == bool(unused)
    assert not unused or f"found {unused} of {len(content)} bytes" in text


def test_external_data_of_another_model_are_what_to_fetch(tmp_path):
    for name in ("external-short", "external-missing"):
        shutil.copy(ROOT / f"corpus/onnx/{name}.onnx", tmp_path)
        for each in (ROOT / "corpus/onnx").glob(f"{name}.data"):
            shutil.copy(each, tmp_path)
    assert "download 'external-short.data' again" in said(tmp_path / "external-short.onnx") and "curl" not in said(tmp_path / "external-short.onnx")
    assert "download the missing file 'external-missing.data'" in said(tmp_path / "external-missing.onnx")


def test_bytes_that_belong_to_no_tensor(tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(torch_archive({"a": ("FloatStorage", struct.pack("<1000f", *range(1, 1001)), 4, [10], [1], None)}))
    text = said(path)
    assert "3960 of 4000 bytes" in text
    [command] = commands(text)
    follow(command, tmp_path)
    assert (tmp_path / "model.compact.pt").stat().st_size < path.stat().st_size - 2000
    said(tmp_path / "model.compact.pt", 0)


def llama(folder, layers, stated, hidden=4):
    slots = {"input_layernorm": [4], "post_attention_layernorm": [4], "self_attn.q_proj": [4, 4], "self_attn.k_proj": [4, 4], "self_attn.v_proj": [4, 4],
             "self_attn.o_proj": [4, 4], "mlp.gate_proj": [8, 4], "mlp.up_proj": [8, 4], "mlp.down_proj": [4, 8]}
    shapes = {"model.embed_tokens.weight": [16, 4], "model.norm.weight": [4], "lm_head.weight": [16, 4],
              **{f"model.layers.{i}.{slot}.weight": shape for i in layers for slot, shape in slots.items()}}
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(safetensors({
        name: ("F32", shape, struct.pack("<f", 1.5) * (shape[0] * (shape[1] if len(shape) > 1 else 1))) for name, shape in shapes.items()}))
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": hidden, "intermediate_size": 8, "num_hidden_layers": stated,
        "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 16, "rms_norm_eps": 1e-5, "max_position_embeddings": 64, "tie_word_embeddings": False}))


@pytest.mark.parametrize("layers, stated, hidden, condition, damaged", [
    (range(3), 3, 4, "sound", []), (range(2), 3, 4, "incomplete", ["model.layers.2.input_layernorm.weight"]),
    (range(3), 3, 8, "damaged", []), (range(3), 2, 4, "suspicious", [])])
def test_config_and_tensors_must_agree(tmp_path, layers, stated, hidden, condition, damaged):
    folder = tmp_path / "folder"
    llama(folder, layers, stated, hidden)
    diagnosis = found(folder, 0 if condition == "sound" else 1)
    assert diagnosis["condition"] == condition and diagnosis["damaged"][:1] == damaged
    assert not damaged or len(diagnosis["damaged"]) == 9


def test_layers_of_an_unknown_kind_have_no_gaps(tmp_path):
    folder = tmp_path / "folder"
    llama(folder, [0, 1, 3], 4)
    (folder / "config.json").write_text('{"model_type": "other"}')
    diagnosis = found(folder)
    assert diagnosis["condition"] == "incomplete" and len(diagnosis["damaged"]) == 9 and diagnosis["damaged"][0].startswith("model.layers.2.")


def test_numbers_that_are_not_finite(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors({"a": ("F32", [3], struct.pack("<3f", 1, float("nan"), float("inf"))), "mask": ("F32", [1], struct.pack("<f", float("-inf")))}))
    text = said(path)
    assert text.startswith(f"{path}: suspicious:") and "1 NaN, 1 infinite" in text and "'mask'" not in text


def test_metadata_that_are_not_true_are_not_sound(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors({"a": ("U8", [4], b"abcd")}, {"sshs_model_hash": "0" * 64}))
    assert not said(path).startswith(f"{path}: sound")


def test_an_archive_that_leaves_its_folder_is_not_to_be_downloaded_again(tmp_path):
    path = tmp_path / "model.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../a.npy", npz({"a": A}))
    assert "do not unpack it" in said(path) and "download" not in said(path)


LEFT = b"\0" * 600
OTHERS = [("bin", b"lmgg" + LEFT, "GGML"), ("bin", b"fmgg\1\0\0\0" + LEFT, "GGMF, before GGUF, version 1"), ("bin", b"tjgg\3\0\0\0" + LEFT, "GGJT, before GGUF, version 3"),
          ("bin", b"algg\1\0\0\0" + LEFT, "GGLA"), ("bin", struct.pack("<IH", 6, 16) + b"TransformerSpec\0" + LEFT, "CTranslate2"),
          ("ftz", struct.pack("<ii", 793712314, 12) + LEFT, "fastText"), ("json", b'{"format": "layers-model", "modelTopology": {}}', "TensorFlow.js"),
          ("pb", b"\x0a\x05" + b"\1" * 90, "TensorFlow"), ("mlmodel", b"\x08\x01\x12\x30" + LEFT, "Core ML"), ("param", b"7767517\n3 3\n", "ncnn"), ("mnn", b"\x20\0\0\0" + b"\1" * 90, "MNN"),
          ("tflite", b"\x1c\0\0\0TFL3" + LEFT, "TensorFlow Lite"), ("mat", b"MATLAB 5.0 MAT-file, Platform" + LEFT, "MAT 5"), ("nc", b"CDF\1" + LEFT, "netCDF-3"),
          ("hdf", b"\x0e\x03\x13\x01" + LEFT, "HDF4"), ("msgpack", b"\x81\xa6params" + LEFT, "Flax"), ("pdparams", b"\x80\x02}q\0." + LEFT, "Paddle"),
          ("pdiparams", b"\1\2\3" * 90, "Paddle"), ("engine", b"ftrt" + LEFT, "TensorRT"), ("joblib", b"\x78\x9c\x01\x02" * 90, "joblib"),
          ("index", b"\0\0\x1a" + LEFT + bytes.fromhex("57fb808b247547db"), "checkpoint of TensorFlow"),
          ("distcp", torch_archive({"a": ("FloatStorage", b"abcd", 4, [1], [1], None)}), "distributed checkpoint")]


@pytest.mark.parametrize("extension, content, name", OTHERS, ids=[f"{each[2]}" for each in OTHERS])
def test_other_formats_have_their_right_name(tmp_path, extension, content, name):
    path = tmp_path / f"model.{extension}"
    path.write_bytes(content)
    text = said(path)
    assert text.startswith(f"{path}: foreign: ") and name in text and "llama2" not in text and "download" not in text
    assert name in weighbridge("verify", path, status=1).stdout and ": " in text.partition(name)[2].splitlines()[0]


def test_a_bin_that_cannot_be_a_checkpoint_of_llama2c_is_of_no_known_kind(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(bytes(range(1, 200)) * 30)
    assert "foreign" in said(path) and "llama2" not in said(path) and "download" not in said(path)


def test_a_folder_of_a_distributed_checkpoint_says_how_to_join_it(tmp_path):
    (tmp_path / ".metadata").write_bytes(b"\x80\x02}.")
    (tmp_path / "__0_0.distcp").write_bytes(b"PK\3\4")
    assert "dcp_to_torch" in weighbridge("inspect", tmp_path, status=2).stderr
    # By itself it was sound.
    (tmp_path / ".metadata").write_bytes(b"\x80\x04\x95" + struct.pack("<Q", 53) + b"\x8c\x25torch.distributed.checkpoint.metadata\x94\x8c\x08Metadata\x94\x93.")
    assert "the .metadata of a distributed checkpoint" in weighbridge("verify", tmp_path / ".metadata", status=1).stdout
    assert "dcp_to_torch" in said(tmp_path / ".metadata")
    (tmp_path / ".metadata").unlink()
    assert "distributed checkpoint of PyTorch without its .metadata" in weighbridge("doctor", tmp_path, status=2).stderr


def test_a_pytorch_model_bin_is_not_renamed(tmp_path):
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(torch_archive({"a": ("FloatStorage", struct.pack("<4f", 1, 2, 3, 4), 4, [4], [1], None)}))
    assert "mv" not in said(path, 0)


def test_a_damaged_tensor_of_an_archive_does_not_stop_the_salvage(tmp_path):
    path = tmp_path / "model.pt"
    numbers = struct.pack("<4f", 1, 2, 3, 4)
    whole = torch_archive({"a": ("FloatStorage", numbers, 4, [4], [1], None), "b": ("FloatStorage", struct.pack("<4f", 5, 6, 7, 8), 4, [4], [1], None)})
    path.write_bytes(whole.replace(struct.pack("<4f", 5, 6, 7, 8), struct.pack("<4f", 5, 6, 7, 9)))
    text = said(path)
    assert "1 of 2 can be read" in text, text
    follow(commands(text)[-1], tmp_path)
    assert json.loads(weighbridge("inspect", "--json", tmp_path / "model.salvaged.pt").stdout)["files"][0]["tensor_count"] == 1


def test_an_archive_cut_before_its_directory_gives_its_whole_tensors(tmp_path):
    path = tmp_path / "model.pt"
    numbers = struct.pack("<1000f", *range(1, 1001))
    whole = torch_archive({name: ("FloatStorage", numbers, 4, [1000], [1], None) for name in "abc"})
    with zipfile.ZipFile(io.BytesIO(whole)) as members:  # with the pickle first, as torch.save writes it
        first = io.BytesIO()
        with zipfile.ZipFile(first, "w", zipfile.ZIP_STORED) as archive:
            for name in sorted(members.namelist(), key=lambda each: each != "archive/data.pkl"):
                archive.writestr(name, members.read(name))
    path.write_bytes(first.getvalue()[:9000])
    text = said(path)
    assert "2 of 3 can be read" in text
    follow(commands(text)[-1], tmp_path)
    assert json.loads(weighbridge("inspect", "--json", tmp_path / "model.salvaged.pt").stdout)["files"][0]["tensor_count"] == 2


def test_a_type_whose_size_is_not_known_is_not_sound(tmp_path):
    def text(value):
        return struct.pack("<Q", len(value)) + value

    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + text(b"general.architecture") + struct.pack("<I", 8) + text(b"x") + text(b"t") + struct.pack("<IQIQ", 1, 32, 999, 0)
    path = tmp_path / "model.gguf"
    path.write_bytes(head + bytes(-len(head) % 32) + b"\1" * 64)
    assert said(path, 3).startswith(f"{path}: unproven: ")


@pytest.mark.parametrize("files, name", [
    (["config.json", "flax_model.msgpack"], "Flax"), (["config.json", "model.bin", "vocabulary.json"], "CTranslate2"), (["saved_model.pb"], "TensorFlow"),
    (["manifest.ocdbt", "_METADATA"], "Orbax"), (["inference.pdmodel", "inference.pdiparams"], "Paddle")])
def test_folders_of_other_formats_have_their_right_name(tmp_path, files, name):
    for each in files:
        (tmp_path / each).write_bytes(b"{}")
    assert name in weighbridge("inspect", tmp_path, status=2).stderr


def sharded(tmp_path, kind):
    """A model in three files: shards with an index, the same without one, or a split GGUF."""
    whole = tmp_path / "whole"
    llama(whole, range(2), 2)
    weighbridge("convert", whole, f"{tmp_path}/model/", *(["--to", "gguf"] if kind == "gguf" else []), "--max-shard-size", "600")
    return tmp_path / "model", sorted((tmp_path / "model").glob("*-of-*"))


def names_in(path):
    return {each["name"] for each in json.loads(weighbridge("inspect", "--json", path).stdout)["files"][0]["tensors"]}


@pytest.mark.parametrize("kind, keep", [("safetensors", -20), ("safetensors", 40), ("gguf", -20), ("gguf", 300)])
def test_what_a_shard_lost_is_counted_and_named(tmp_path, kind, keep):
    """Its tensors were not in the total: "19 can be read", and a salvage of "19 of 19 tensors", with status 0."""
    folder, shards = sharded(tmp_path, kind)
    everything, lost = names_in(folder), names_in(shards[1])
    data = shards[1].read_bytes()
    shards[1].write_bytes(data[:keep])
    diagnosis, text = found(folder), said(folder)
    assert diagnosis["condition"] == "incomplete" and "curl" not in text and f"download '{shards[1]}' again" in text
    done = weighbridge("doctor", folder, "--salvage", tmp_path / "saved.zt").stdout
    saved = names_in(tmp_path / "saved.zt")
    follow(commands(text)[-1], tmp_path)
    if kind == "gguf" and keep > 0:  # no index has the names
        assert f"tensors: {len(saved)} can be read\n" in text and f": {len(saved)} tensors, written\n" in done
        assert f"how many is not known\n    {shards[1]}\n" in done and saved < everything
        return
    assert diagnosis["tensors"] == len(everything) and diagnosis["whole"] == len(saved) and set(diagnosis["damaged"]) == everything - saved
    assert f"{len(saved)} of {len(everything)} can be read; these cannot:" in text
    assert f"{len(saved)} of {len(everything)} tensors, written\n  left out, because they are not whole:\n" in done
    assert everything - saved == (lost if keep > 0 else lost & (everything - saved)) != set()


def test_what_the_first_of_several_files_lost_does_not_hide_the_others(tmp_path):
    folder, shards = sharded(tmp_path, "gguf")
    everything = names_in(folder)
    shards[0].write_bytes(shards[0].read_bytes()[:-20])
    diagnosis = found(shards[0])
    assert diagnosis["tensors"] == len(everything) == diagnosis["whole"] + len(diagnosis["damaged"]) and len(diagnosis["damaged"]) == 1


def test_what_the_only_file_of_a_folder_lost_is_named(tmp_path):
    folder = tmp_path / "folder"
    llama(folder, range(2), 2)
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-20])
    diagnosis = found(folder)
    assert diagnosis["tensors"] == diagnosis["whole"] + 1 == 21 and len(diagnosis["damaged"]) == 1


@pytest.mark.parametrize("name, data", [
    ("modeling_x.py", b"import os\n"), ("config.json", b'{"model_type": "llama", "auto_map": {"AutoModel": "modeling_x.X"}}'),
    ("training_args.bin", pickle.dumps({"a": 1}, 2))])
def test_code_that_programs_may_run_is_not_sound(tmp_path, name, data):
    """It was "nothing is wrong with it", above the warning, and check --policy download failed."""
    folder = tmp_path / "folder"
    index(folder, JOINED, {})
    (folder / "model.safetensors.index.json").unlink()
    assert found(folder, 0)["condition"] == "sound"
    (folder / name).write_bytes(data)
    assert found(folder)["condition"] == "suspicious"
    text = said(folder)
    assert "valid, with code that programs may run when they load it" in text and "unless you trust who wrote it" in text
    weighbridge("verify", folder, "--strict", status=1)


def test_metadata_that_contradict_each_other_are_not_sound(tmp_path):
    folder = tmp_path / "folder"
    index(folder, SPLIT, {name: "model-0000%d-of-00002.safetensors" % (1 + (name != "a")) for name in "abc"})
    for name in SPLIT:
        (folder / name).write_bytes(safetensors({each: ("F32", [2], each.encode().ljust(8)) for each in SPLIT[name]}, {"of": name}))
    assert "metadata-conflict" in said(folder) and found(folder)["condition"] == "suspicious"


def test_a_type_that_is_not_read_has_a_size_that_is_known(tmp_path):
    """It was called a tensor "whose size is not known"; the header states 128 bytes."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors({"a": ("F32", [32], bytes(range(1, 129)))}).replace(b'"F32"', b'"F33"'))
    text = said(path, 3)
    assert text.startswith(f"{path}: unproven: ") and "of a type that weighbridge does not read" in text and "size is not known" not in text


def test_an_archive_with_a_model_in_it_is_unpacked(tmp_path):
    """Of a zip with a model.safetensors it said that it holds none; for zip and tar there was no advice."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.safetensors", MODEL)
    with tarfile.open(tmp_path / "b.tar", "w") as archive:
        member = tarfile.TarInfo("model.safetensors")
        member.size = len(MODEL)
        archive.addfile(member, io.BytesIO(MODEL))
    assert "unpack it first" in weighbridge("verify", tmp_path / "a.zip", status=1).stdout
    for name, program in (("a.zip", "unzip"), ("b.tar", "tar")):
        [command] = commands(said(tmp_path / name))
        assert program in command
        if shutil.which(program):
            follow(command, tmp_path)
            assert (tmp_path / f"{name[0]}.unpacked/model.safetensors").read_bytes() == MODEL


def test_shards_without_their_index_are_named_and_get_one(tmp_path):
    """It was "there are no weights", without a word about the shards beside it, and no advice."""
    folder = tmp_path / "folder"
    index(folder, SPLIT, {})
    (folder / "model.safetensors.index.json").unlink()
    sentence = "\"model-00001-of-00002.safetensors\" is a shard, and its index model.safetensors.index.json is not there"
    assert sentence in weighbridge("verify", folder, status=1).stdout
    text = said(folder)
    assert "whose index is missing: every shard is there" in text and "tensors: 3 can be read" in text
    [command] = commands(text)
    follow(command, tmp_path)
    assert names_in(tmp_path / "folder.salvaged") == set("abc")
    (folder / "model-00001-of-00002.safetensors").unlink()
    text = said(folder)
    assert "incomplete" in text and "download the missing file 'model.safetensors.index.json'" in text
