# SPDX-License-Identifier: Apache-2.0
"""Tests the source chain of `slm`: template, review, extraction, validation, conversion. Tampers with each field of each record,
tries each way for a source to reach outside of its folder, and each kind of value that a trained weight cannot have."""
import hashlib
import importlib.util
import json
import os
import re
import shutil
import struct

import pytest

from conftest import ROOT, TEST_DATA, safetensors, validated, weighbridge

FILLED = {"identity": "tiny trial", "source_kind": "trained", "license": "Apache-2.0", "dataset": "a counter",
          "training_summary": "none: values of a counter"}


def fill(path, **values):
    """Replaces the placeholders in angle brackets."""
    lines = []
    for line in path.read_text().splitlines():
        key, split, value = line.partition("=")
        if split and value.startswith("<"):
            value = {**FILLED, **values}.pop(key)
        lines.append(key + split + value)
    path.write_text("\n".join(lines) + "\n")


def fields(path):
    return dict(line.split("=", 1) for line in path.read_text().splitlines() if not line.startswith("#"))


def rewrite(path, key, value):
    """Changes the value of one key of a record; None removes the line."""
    lines = [line for line in path.read_text().splitlines(keepends=True)]
    out = [line if line.split("=", 1)[0] != key else f"{key}={value}\n" for line in lines
           if value is not None or line.split("=", 1)[0] != key]
    assert out != lines
    path.write_text("".join(out))


def tensors_of(path):
    """name -> (dtype, shape, bytes) of a .safetensors file, and its metadata."""
    data = path.read_bytes()
    size, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__", None)
    return {name: (each["dtype"], each["shape"], data[8 + size + each["data_offsets"][0]:8 + size + each["data_offsets"][1]])
            for name, each in header.items()}, metadata


def content(path):
    """The content of a model, whatever the order in its file, because the intermediate safetensors may have another order."""
    listed = validated(weighbridge("inspect", "--json", path).stdout, "inspect")["files"][0]
    return weighbridge("hash", path).stdout.split()[0], listed["checksums"]["tensor_layout"], listed["checksums"]["tokenizer"]


class Chain:
    """The paths of one chain in a folder, on a candidate of the fixture tiny-bpe."""

    def __init__(self, folder):
        self.folder = folder
        self.candidate, self.template = folder / "tiny.safetensors", folder / "template.manifest"
        self.review, self.source = folder / "review.record", folder / "source"
        self.validation, self.model = folder / "validation.record", folder / "tiny.slm"
        self.manifest = self.source / "source.manifest"

    def make_candidate(self):
        weighbridge("slm", "fixture", "tiny-bpe", "-o", self.folder / "made.slm")
        weighbridge("convert", self.folder / "made.slm", self.candidate, "--allow", "tokenizer,attribute-type")
        weighbridge("slm", "source-template", self.folder / "made.slm", "-o", self.template)
        fill(self.template)

    def do_review(self, *more, status=0):
        return weighbridge("slm", "review-safetensors-candidate", self.candidate, "--manifest", self.template, "-o",
                           self.review, "--force", *more, status=status)

    def do_extract(self, status=0):
        return weighbridge("slm", "extract-safetensors-source", self.candidate, "--manifest", self.template, "--review",
                           self.review, "-o", self.source, "--force", status=status)

    def do_validate(self, *more, status=0):
        return weighbridge("slm", "validate-source", self.source, "-o", self.validation, "--force", *more, status=status)

    def do_convert(self, *more, status=0):
        return weighbridge("slm", "convert-trained", self.source, "--validation", self.validation, "-o", self.model,
                           "--force", *more, status=status)

    def do_convert_safetensors(self, *more, status=0):
        return weighbridge("slm", "convert-safetensors-trained", self.candidate, "--manifest", self.template, "--review",
                           self.review, "-o", self.model, "--force", *more, status=status)

    def change(self, change, metadata=lambda m: m):
        """Changes the candidate's tensors in place."""
        tensors, old = tensors_of(self.candidate)
        change(tensors)
        self.candidate.write_bytes(safetensors(tensors, metadata(old)))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    chain = Chain(tmp_path_factory.mktemp("chain"))
    chain.make_candidate()
    chain.do_review()
    chain.do_extract()
    chain.do_validate()
    chain.do_convert()
    return chain


@pytest.fixture
def chain(made, tmp_path):
    """A copy of the whole to break."""
    shutil.copytree(made.folder, tmp_path / "chain")
    return Chain(tmp_path / "chain")


@pytest.mark.parametrize("dtype", ["f32", "q8_0", "q4_0"])
def test_all_roads_end_in_the_same_model(chain, dtype):
    plain = chain.folder / "plain.slm"
    weighbridge("convert", chain.folder / "made.slm", plain, *(["--quantize", dtype] if dtype != "f32" else []))
    chain.do_convert("--dtype", dtype)
    whole = chain.model.read_bytes()
    assert content(chain.model) == content(plain) and len(whole) == plain.stat().st_size
    first = fields(chain.folder / "tiny.slm.conversion")
    chain.do_convert_safetensors("--dtype", dtype)
    assert chain.model.read_bytes() == whole
    second = fields(chain.folder / "tiny.slm.conversion")
    for record in (first, second):
        assert (record["structure"], record["quality"]) == ("accepted", "pending")
        assert record["source_kind"] == "converted-trained" and record["artifact.quantization"] == ("f32" if dtype == "f32" else "mixed")
        assert record["artifact.sha256"] == hashlib.sha256(whole).hexdigest()
        assert record["review_sha256"] == hashlib.sha256(chain.review.read_bytes()).hexdigest()
    assert (first["route"], second["route"]) == ("source", "safetensors")
    assert first["validation_sha256"] == hashlib.sha256(chain.validation.read_bytes()).hexdigest()


def test_two_runs_give_the_same_bytes(chain):
    def every_byte():
        return {path.name: path.read_bytes() for path in sorted(chain.folder.rglob("*")) if path.is_file()}
    before = every_byte()
    for step in (chain.do_review, chain.do_extract, chain.do_validate, chain.do_convert):
        step()
    assert every_byte() == before


def test_json_says_the_same(chain):
    for step, record in ((chain.do_review, chain.review), (chain.do_validate, chain.validation),
                         (chain.do_convert, chain.folder / "tiny.slm.conversion")):
        told = validated(step("--json").stdout, "slm_chain")
        assert told["passed"] and told["record"]["fields"].keys() == fields(record).keys()
        assert told["record"]["sha256"] == hashlib.sha256(record.read_bytes()).hexdigest()
    chain.review.write_text("verdict=accepted\nx=1\n")
    told = validated(chain.do_convert_safetensors("--json", status=1).stdout, "slm_chain")
    assert [finding["rule"] for finding in told["findings"]] == ["chain/key"]


def test_a_template_without_a_model_stays_open_until_it_is_filled_in(tmp_path):
    out = tmp_path / "source.manifest"
    weighbridge("slm", "source-template", "-o", out)
    assert "hidden_size=<" in out.read_text()
    (tmp_path / "c.safetensors").write_bytes(safetensors({"w": ("F32", [1], struct.pack("<f", 1))}))
    done = weighbridge("slm", "review-safetensors-candidate", tmp_path / "c.safetensors", "--manifest", out, "-o",
                       tmp_path / "r", status=1)
    assert "chain/value" in done.stderr and "<" in done.stderr
    assert not (tmp_path / "r").exists()


def put(name, values):
    def change(tensors):
        dtype, shape, data = tensors[name]
        out = bytearray(data)
        for at, value in values.items():
            struct.pack_into("<f", out, 4 * at, value)
        tensors[name] = dtype, shape, bytes(out)
    return change


def zero(name):
    def change(tensors):
        dtype, shape, data = tensors[name]
        tensors[name] = dtype, shape, bytes(len(data))
    return change


def reshape(tensors):
    dtype, shape, data = tensors["layers.0.w1.weight"]
    tensors["layers.0.w1.weight"] = dtype, shape[::-1], data


BAD_CANDIDATES = {
    "a NaN": (put("layers.0.wq.weight", {3: float("nan")}), "chain/nonfinite", "layers.0.wq.weight"),
    "an infinity": (put("norm.weight", {0: float("-inf")}), "chain/nonfinite", "norm.weight"),
    "a value above the bound": (put("output.weight", {7: -65536.0}), "chain/above-bound", "output.weight"),
    "an all-zero tensor": (zero("layers.0.w2.weight"), "chain/all-zero", "layers.0.w2.weight"),
    "a missing tensor": (lambda t: t.pop("layers.0.wo.weight"), "chain/missing-tensor", "layers.0.wo.weight"),
    "an extra tensor": (lambda t: t.update({"extra": ("F32", [1], struct.pack("<f", 1))}), "chain/extra-tensor", "extra"),
    "a shape": (reshape, "chain/structure", "layers.0.w1.weight"),
    "a dtype": (lambda t: t.update({"norm.weight": ("F64", [8], struct.pack("<8d", *[1.0] * 8))}), "chain/dtype", "f16"),
}


@pytest.mark.parametrize("name", BAD_CANDIDATES)
def test_a_candidate_that_cannot_is_refused_with_a_record(chain, name):
    change, rule, word = BAD_CANDIDATES[name]
    chain.change(change)
    done = chain.do_review(status=1)
    assert rule in done.stdout and word in done.stdout
    record = fields(chain.review)
    assert record["verdict"] == "refused"
    assert any(key.endswith(".rule") and value == rule for key, value in record.items())
    shutil.rmtree(chain.source)
    done = chain.do_extract(status=1)
    assert "verdict" in done.stderr and "refuse" in done.stderr and not chain.source.exists()
    chain.model.unlink()
    assert "verdict" in chain.do_convert_safetensors(status=1).stderr and not chain.model.exists()


def test_the_bound_can_be_set(chain):
    chain.do_review("--safety-bound", "0.1", status=1)
    chain.change(put("output.weight", {7: 70000.0}))
    chain.do_review("--safety-bound", "1e5")
    chain.do_extract()
    assert "chain/above-bound" in chain.do_validate(status=1).stdout
    chain.do_validate("--safety-bound", "100000")
    chain.do_convert()
    chain.do_review("--safety-bound", "0", status=2)
    chain.do_review("--safety-bound", "nan", status=2)
    chain.do_review("--safety-bound", "big", status=2)


def test_heads_that_contradict_are_refused(chain):
    rewrite(chain.template, "head_count", "4")
    rewrite(chain.template, "head_dim", "2")
    done = chain.do_review(status=1)
    assert "chain/contradiction" in done.stdout and "head_count" in done.stdout
    rewrite(chain.template, "head_count", "3")
    done = chain.do_review(status=1)
    assert "3" in done.stdout + done.stderr


def test_license_fields_are_recorded_as_found(chain):
    chain.change(lambda tensors: None, lambda metadata: {**metadata, "License": "MIT and \n more"})
    chain.do_review()
    record = fields(chain.review)
    assert record["license.0.source"] == "metadata" and record["license.0.key"] == "License"
    assert record["license.0.value"] == "MIT and \\n more"


def tampered(value):
    """Another value of the same look."""
    if re.fullmatch(r"(0x)?[0-9a-f]{16,}", value):
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    if re.fullmatch(r"\d+", value):
        return str(int(value) + 1)
    if re.fullmatch(r"[-+.e\d]+", value):
        return "0.5" if value != "0.5" else "0.25"
    if re.fullmatch(r"\d+(x\d+)+", value):
        return value + "1"
    swap = {"true": "false", "false": "true", "accepted": "refused", "bpe": "byte", "f32": "f16", "trained":
            "deterministic-smoke"}
    return swap.get(value, value + "x")


def test_every_field_of_a_review_is_bound(chain):
    whole = chain.review.read_bytes()
    shutil.rmtree(chain.source)
    for key, value in fields(chain.review).items():
        for change in (tampered(value), None):
            chain.review.write_bytes(whole)
            rewrite(chain.review, key, change)
            for step in (chain.do_extract, chain.do_convert_safetensors):
                done = step(status=1)
                assert key in done.stderr or (key == "safety_bound" and "record_sha256" in done.stderr), (key, done.stderr)
    assert not chain.source.exists()


def test_every_field_of_a_validation_is_bound(chain):
    whole = chain.validation.read_bytes()
    chain.model.unlink()
    for key, value in fields(chain.validation).items():
        for change in (tampered(value), None):
            chain.validation.write_bytes(whole)
            rewrite(chain.validation, key, change)
            done = chain.do_convert(status=1)
            assert key in done.stderr or (key == "safety_bound" and "record_sha256" in done.stderr), (key, done.stderr)
    assert not chain.model.exists()


def test_every_field_of_a_manifest_is_bound(chain):
    """Refused by validate-source if it can detect the change, otherwise by the digest in the validation record."""
    whole = chain.manifest.read_bytes()
    chain.model.unlink()
    known = 0
    rows = fields(chain.manifest)
    for key, value in rows.items():
        if key.startswith(("token.", "merge.")) and not key.endswith(".7"):
            continue
        for change in (tampered(value), None):
            chain.manifest.write_bytes(whole)
            rewrite(chain.manifest, key, change)
            named = chain.do_convert(status=1).stderr
            row = key.rpartition(".")[0]
            of_row = row.startswith("tensor.") and (row in named or value in named)
            of_tokenizer = key.startswith(("special.", "token.", "merge.", "tokenizer")) and "token" in named
            assert key in named or of_row or of_tokenizer or "manifest_sha256" in named, (key, named)
            known += key in named
    assert known > len(rows) / 4
    assert not chain.model.exists()


def test_a_source_of_a_smoke_model_is_not_converted_as_trained(chain):
    rewrite(chain.manifest, "source_kind", "deterministic-smoke")
    chain.do_validate()
    assert "chain/smoke-claim" in chain.do_convert(status=1).stderr


@pytest.mark.parametrize("dtype", ["q8_0", "q4_0"])
def test_quantize_norms_quantizes_every_tensor(chain, dtype):
    chain.do_validate()
    made = []
    for convert in (chain.do_convert, chain.do_convert_safetensors):
        convert("--dtype", dtype, "--quantize-norms")
        made.append(chain.model.read_bytes())
        assert fields(chain.folder / "tiny.slm.conversion")["artifact.quantization"] == dtype
    assert made[0] == made[1]
    assert "--dtype" in chain.do_convert("--quantize-norms", status=2).stderr


def test_a_placeholder_is_not_a_license(chain):
    rewrite(chain.manifest, "license", "<as its makers state it>")
    done = chain.do_validate(status=1)
    assert "chain/placeholder" in done.stdout and "license" in done.stdout


ESCAPES = {
    "absolute": ("/etc/passwd", "is absolute"),
    "absolute, in tensors": ("/tensors/norm.weight.f32", "is absolute"),
    "parent": ("../outside.f32", "does not lie in tensors/"),
    "parent from tensors": ("tensors/../outside.f32", ".."),
    "parent and back": ("tensors/../tensors/norm.weight.f32", ".."),
    "capital": ("Tensors/norm.weight.f32", "does not lie in tensors/"),
    "capitals and parent": ("TENSORS/../outside.f32", "does not lie in tensors/"),
    "dot": ("./tensors/norm.weight.f32", "does not lie in tensors/"),
    "dot inside": ("tensors/./norm.weight.f32", "has . in it"),
    "doubled slash": ("tensors//norm.weight.f32", "empty name"),
    "a folder that is not there": ("tensors/a/norm.weight.f32", "missing"),
    "backslash": ("tensors\\\\norm.weight.f32", ""),
    "backslash parent": ("tensors/..\\norm.weight.f32", ""),
    "no name": ("tensors/", "empty name"),
    "through a file": ("tensors/output.weight.f32/x", "through a link or a file"),
    "drive": ("C:/tensors/norm.weight.f32", "does not lie in tensors/"),
    "url": ("file:///etc/passwd", "does not lie in tensors/"),
    "other case of a name": ("tensors/NORM.weight.f32", "missing"),
    "another row's file": ("tensors/output.weight.f32", "another row"),
    "another row's file in another case": ("tensors/OUTPUT.weight.f32", "another row"),
}


def row_of(manifest, name):
    return next(key.rsplit(".", 1)[0] for key, value in fields(manifest).items() if key.endswith(".name") and value == name)


@pytest.mark.parametrize("name", ESCAPES)
def test_a_path_that_leaves_the_folder_is_refused(chain, name):
    path, word = ESCAPES[name]
    (chain.folder / "outside.f32").write_bytes((chain.source / "tensors/norm.weight.f32").read_bytes())
    row = row_of(chain.manifest, "norm.weight")
    rewrite(chain.manifest, row + ".path", path)
    done = chain.do_validate(status=1)
    assert "chain/path" in done.stdout and word in done.stdout
    assert fields(chain.validation)["verdict"] == "refused"


def test_tensors_may_lie_in_folders_and_have_any_ending(chain):
    (chain.source / "tensors/layers/a b").mkdir(parents=True)
    (chain.source / "tensors/norm.weight.f32").rename(chain.source / "tensors/layers/a b/norm.bin")
    rewrite(chain.manifest, row_of(chain.manifest, "norm.weight") + ".path", "tensors/layers/a b/norm.bin")
    chain.do_validate()
    chain.do_convert()
    (chain.source / "tensors/layers/extra.bin").write_bytes(b"abcd")
    done = chain.do_validate(status=1)
    assert "chain/stray" in done.stdout and "tensors/layers/extra.bin" in done.stdout
    (chain.source / "tensors/layers/extra.bin").unlink()
    (chain.source / "tensors/layers").rename(chain.folder / "elsewhere")
    (chain.source / "tensors/layers").symlink_to(chain.folder / "elsewhere")
    assert "leads through a link" in chain.do_validate(status=1).stdout


def test_links_are_refused(chain):
    victim, outside = chain.source / "tensors/norm.weight.f32", chain.folder / "outside.f32"
    victim.rename(outside)
    victim.symlink_to(outside)
    assert "symbolic link" in chain.do_validate(status=1).stdout
    victim.unlink()
    victim.symlink_to("output.weight.f32")
    assert "symbolic link" in chain.do_validate(status=1).stdout
    victim.unlink()
    os.link(outside, victim)
    assert "2 hard links" in chain.do_validate(status=1).stdout
    victim.unlink()
    os.mkfifo(victim)
    assert "FIFO" in chain.do_validate(status=1).stdout
    victim.unlink()
    victim.mkdir()
    assert "directory" in chain.do_validate(status=1).stdout
    victim.rmdir()
    assert "missing" in chain.do_validate(status=1).stdout
    outside.rename(victim)
    chain.do_validate()


def test_the_folder_of_tensors_and_the_manifest_are_no_links_either(chain):
    (chain.source / "tensors").rename(chain.folder / "elsewhere")
    (chain.source / "tensors").symlink_to(chain.folder / "elsewhere")
    assert "chain/path" in chain.do_validate(status=1).stderr
    (chain.source / "tensors").unlink()
    (chain.folder / "elsewhere").rename(chain.source / "tensors")
    chain.manifest.rename(chain.folder / "m")
    chain.manifest.symlink_to(chain.folder / "m")
    assert "symbolic link" in chain.do_validate(status=1).stderr


def test_a_stray_file_is_named(chain):
    (chain.source / "tensors/extra.f32").write_bytes(b"abcd")
    done = chain.do_validate(status=1)
    assert "chain/stray" in done.stdout and "tensors/extra.f32" in done.stdout


@pytest.mark.parametrize("change,rule", [
    (lambda data: data[:-4], "chain/shape"),
    (lambda data: data + b"\0\0\0\0", "chain/shape"),
    (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "chain/digest"),
    (lambda data: b"", "chain/shape"),
])
def test_bytes_that_are_not_those_of_the_row(chain, change, rule):
    path = chain.source / "tensors/layers.0.wk.weight.f32"
    path.write_bytes(change(path.read_bytes()))
    done = chain.do_validate(status=1)
    assert rule in done.stdout and row_of(chain.manifest, "layers.0.wk.weight") in done.stdout


def test_extraction_does_not_write_into_a_folder_that_holds_something(chain):
    done = weighbridge("slm", "extract-safetensors-source", chain.candidate, "--manifest", chain.template, "--review",
                       chain.review, "-o", chain.source, status=2)
    assert "holds something" in done.stderr


@pytest.mark.parametrize("arguments,word", [
    (["review-safetensors-candidate", "x.safetensors"], "-o OUT"),
    (["extract-safetensors-source", "x.safetensors", "-o", "y"], "--review"),
    (["convert-trained", "x", "-o", "y"], "--validation"),
    (["convert-trained", "x", "-o", "y", "--validation", "z", "--review", "r"], "takes no --review"),
    (["convert-safetensors-trained", "x", "-o", "y", "--review", "r"], "--manifest"),
    (["source-template", "--tokenizer", "t", "-o", "y"], "MODEL"),
    (["validate-source", "-o", "y"], "needs FOLDER"),
])
def test_misuse_of_the_chain_is_one_sentence(tmp_path, arguments, word):
    done = weighbridge("slm", *arguments, status=2, cwd=tmp_path)
    assert word in done.stderr and list(tmp_path.iterdir()) == []


def test_a_llama_checkpoint_goes_all_the_way(tmp_path):
    data = TEST_DATA / "llama"
    if not (data / "stories260K.bin").exists():
        pytest.skip("llama/stories260K.bin is not in ../shared/data or $WEIGHBRIDGE_TEST_DATA")
    chain = Chain(tmp_path)
    checkpoint, tokenizer = data / "stories260K.bin", data / "tok512.bin"
    weighbridge("convert", checkpoint, chain.candidate, "--tokenizer", tokenizer, "--allow", "tokenizer,attribute-type")
    weighbridge("slm", "source-template", checkpoint, "--tokenizer", tokenizer, "-o", chain.template)
    fill(chain.template)
    chain.do_review()
    assert fields(chain.review)["kv_head_count"] == "4"
    chain.do_extract()
    chain.do_validate()
    for dtype in ("f32", "q8_0"):
        plain = tmp_path / f"{dtype}.slm"
        weighbridge("convert", checkpoint, plain, "--tokenizer", tokenizer, *(["--quantize", dtype] if dtype != "f32" else []))
        chain.do_convert("--dtype", dtype)
        assert content(chain.model) == content(plain)


@pytest.fixture
def folder(tmp_path):
    """A Hugging Face folder of a Llama with grouped heads, in bfloat16, and a license in three places."""
    np = pytest.importorskip("numpy")
    spec = importlib.util.spec_from_file_location("witness_llama2c", ROOT / "tests/support/llama2c.py")
    llama2c = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(llama2c)
    config = {"dim": 8, "hidden_dim": 6, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "vocab_size": 262, "seq_len": 16}
    path = tmp_path / "llama"
    path.mkdir()
    (path / "config.json").write_text(json.dumps({**llama2c.hugging_face_config(config), "license": "mit"}))
    half = {name: (np.ascontiguousarray(array, "<f4").view("<u4") >> 16).astype("<u2")
            for name, array in llama2c.hugging_face_tensors(config, llama2c.random_blocks(config)).items()}
    (path / "model.safetensors").write_bytes(safetensors(
        {name: ("BF16", list(array.shape), array.tobytes()) for name, array in half.items()}))
    vocabulary = {raw.decode().strip(): i for i, (_, raw) in enumerate(llama2c.byte_pieces())} | {"ab": 259, "a": 260, "b": 261}
    (path / "tokenizer.json").write_text(json.dumps({
        "added_tokens": [{"id": i, "content": text, "special": True} for i, text in enumerate(["<unk>", "<s>", "</s>"])],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "\u2581"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
        "pre_tokenizer": None,
        "model": {"type": "BPE", "byte_fallback": True, "unk_token": "<unk>", "vocab": vocabulary, "merges": ["a b"]}}))
    (path / "README.md").write_text("---\nlanguage: en\nlicense: 'apache-2.0'\nLicence: openrail\nlicense_name:\n- one\n- two\n---\nlicense: no\n")
    (path / "LICENSE").write_text("do what you like\n")
    return path


def test_a_folder_goes_the_same_way(folder, tmp_path):
    chain = Chain(tmp_path)
    chain.candidate = folder
    weighbridge("slm", "source-template", folder, "-o", chain.template)
    fill(chain.template)
    assert fields(chain.template)["source_dtype"] == "bf16"
    chain.do_review()
    review = fields(chain.review)
    found = [tuple(review[f"license.{i}.{part}"] for part in ("source", "key", "value")) for i in range(6)]
    assert found == [("config.json", "license", "mit"), ("README.md", "license", "apache-2.0"), ("README.md", "Licence", "openrail"),
                     ("README.md", "license_name", "one"), ("README.md", "license_name", "two"),
                     ("LICENSE", "sha256", hashlib.sha256(b"do what you like\n").hexdigest())]
    assert "license.6.key" not in review and review["kv_head_count"] == "2"
    names = [review[key] for key in review if re.fullmatch(r"file\.\d+\.name", key)]
    assert names == sorted(names) and {"config.json", "model.safetensors", "tokenizer.json", "README.md"} <= set(names)
    chain.do_extract()
    chain.do_validate()
    plain = tmp_path / "plain.slm"
    weighbridge("convert", folder, plain, "--allow", "attribute,precision,tokenizer")
    chain.do_convert()
    whole = chain.model.read_bytes()
    assert content(chain.model) == content(plain)
    chain.do_convert_safetensors()
    assert chain.model.read_bytes() == whole == plain.read_bytes()
    (folder / "README.md").write_text("changed")
    assert "candidate_sha256" in chain.do_convert_safetensors(status=1).stderr


def test_another_container_is_no_candidate(chain):
    done = weighbridge("slm", "review-safetensors-candidate", chain.folder / "made.slm", "-o", chain.review, "--force",
                       status=1)
    assert "chain/candidate" in done.stderr


def test_another_architecture_is_refused_with_a_record(folder, tmp_path):
    chain = Chain(tmp_path)
    chain.candidate = folder
    weighbridge("slm", "source-template", folder, "-o", chain.template)
    fill(chain.template)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "mistral", "architectures": ["MistralForCausalLM"]}))
    done = chain.do_review(status=1)
    assert "chain/structure" in done.stdout and "Llama" in done.stdout
    assert fields(chain.review)["verdict"] == "refused"


def test_a_candidate_of_unknown_shape_is_refused_with_a_record(chain):
    chain.change(lambda tensors: None, lambda metadata: None)
    done = weighbridge("slm", "review-safetensors-candidate", chain.candidate, "-o", chain.review, "--force", status=1)
    record = fields(chain.review)
    assert "head_count" in done.stdout and record["verdict"] == "refused" and "head_count" not in record


def test_another_tokenizer_is_a_contradiction(folder, tmp_path):
    chain = Chain(tmp_path)
    chain.candidate = folder
    weighbridge("slm", "source-template", folder, "-o", chain.template)
    fill(chain.template)
    rewrite(chain.template, "token.261", "261 c")
    done = chain.do_review(status=1)
    assert "chain/contradiction" in done.stdout and "tokenizer" in done.stdout


def test_every_field_of_a_template_is_bound(chain):
    whole = chain.template.read_bytes()
    shutil.rmtree(chain.source)
    chain.model.unlink()
    for key, value in fields(chain.template).items():
        if key.startswith(("token.", "merge.")) and not key.endswith(".7"):
            continue
        for change in (tampered(value), None):
            chain.template.write_bytes(whole)
            rewrite(chain.template, key, change)
            for step in (chain.do_extract, chain.do_convert_safetensors):
                named = step(status=1).stderr
                assert "template_sha256" in named or key in named, (key, named)
    assert not chain.source.exists() and not chain.model.exists()


def test_extraction_over_links_writes_nothing_behind_them(chain):
    kept = chain.folder / "kept"
    for path in ("tensors/norm.weight.f32", "source.manifest", "review.record"):
        kept.write_text("mine")
        (chain.source / path).unlink(missing_ok=True)
        (chain.source / path).symlink_to(kept)
        chain.do_extract()
        assert kept.read_text() == "mine" and not (chain.source / path).is_symlink()
    chain.do_validate()
    shutil.move(chain.source / "tensors", chain.folder / "elsewhere")
    (chain.source / "tensors").symlink_to(chain.folder / "elsewhere")
    assert "not a folder" in chain.do_extract(status=2).stderr


def last_row(chain):
    return "tensor." + str(int(fields(chain.manifest)["tensor_count"]) - 1)


def test_a_row_that_is_gone_is_missed_three_ways(chain):
    row = last_row(chain)
    path = chain.source / fields(chain.manifest)[row + ".path"]
    for key in ("name", "dims", "path", "bytes", "checksum", "sha256"):
        rewrite(chain.manifest, f"{row}.{key}", None)
    done = chain.do_validate(status=1)
    assert "chain/count" in done.stdout and "chain/stray" in done.stdout
    path.unlink()
    rewrite(chain.manifest, "tensor_count", row.removeprefix("tensor."))
    done = chain.do_validate(status=1)
    assert "chain/structure" in done.stdout and "absent" in done.stdout


def test_a_row_too_many_is_no_tensor_of_an_slm(chain):
    data = struct.pack("<f", 1)
    (chain.source / "tensors/extra.f32").write_bytes(data)
    rows = int(fields(chain.manifest)["tensor_count"])
    rewrite(chain.manifest, "tensor_count", str(rows + 1))
    checksum = 0x9e3779b97f4a7c15
    for i, byte in enumerate(data):
        mixed = checksum ^ (byte + i)
        checksum = (((mixed << 7 | mixed >> 57) & 2**64 - 1) * 0x100000001b3) % 2**64
    with chain.manifest.open("a") as out:
        for key, value in (("name", "extra"), ("dims", "1"), ("path", "tensors/extra.f32"), ("bytes", "4"),
                           ("checksum", f"0x{checksum:016x}"), ("sha256", hashlib.sha256(data).hexdigest())):
            out.write(f"tensor.{rows}.{key}={value}\n")
    done = chain.do_validate(status=1)
    assert "chain/structure" in done.stdout and "extra" in done.stdout and "chain/digest" not in done.stdout


def test_two_rows_of_one_name_are_refused(chain):
    rewrite(chain.manifest, row_of(chain.manifest, "layers.0.wk.weight") + ".name", "layers.0.wq.weight")
    assert "chain/duplicate" in chain.do_validate(status=1).stdout


@pytest.mark.parametrize("value,rule", [
    (float("nan"), "chain/nonfinite"), (float("-inf"), "chain/nonfinite"), (65536.0, "chain/above-bound"), (None, "chain/all-zero")])
def test_values_of_a_source_are_judged_as_those_of_a_candidate(chain, value, rule):
    path = chain.source / "tensors/layers.0.wk.weight.f32"
    data = bytearray(path.read_bytes())
    if value is None:
        data = bytearray(len(data))
    else:
        struct.pack_into("<f", data, 8, value)
    path.write_bytes(data)
    done = chain.do_validate(status=1)
    assert rule in done.stdout and "layers.0.wk.weight" in done.stdout


def test_a_review_beside_the_source_is_bound(chain):
    copy = chain.source / "review.record"
    copy.write_bytes(copy.read_bytes().replace(b"kv_head_count=2", b"kv_head_count=1"))
    assert "review_sha256" in chain.do_validate(status=1).stdout
    copy.unlink()
    assert "review.record" in chain.do_validate(status=1).stderr


def test_no_step_writes_over_what_it_read(chain):
    tensor = next((chain.source / "tensors").iterdir())
    for action in (["review-safetensors-candidate", chain.candidate, "--manifest", chain.template, "-o", chain.candidate],
                   ["review-safetensors-candidate", chain.candidate, "--manifest", chain.template, "-o", chain.template],
                   ["validate-source", chain.source, "-o", chain.manifest], ["validate-source", chain.source, "-o", tensor],
                   ["convert-trained", chain.source, "--validation", chain.validation, "-o", chain.validation],
                   ["convert-safetensors-trained", chain.candidate, "--manifest", chain.template, "--review", chain.review,
                    "-o", chain.review]):
        before = action[-1].read_bytes()
        assert "is the input" in weighbridge("slm", *action, "--force", status=2).stderr
        assert action[-1].read_bytes() == before
