# SPDX-License-Identifier: Apache-2.0
"""Tests selecting tensors and editing names and metadata in a conversion: --only, --without, --rename, --set, --unset."""
import json

import pytest

from conftest import TEST_DATA, cbor, floats, safetensors, validated, weighbridge

DATA = TEST_DATA / "tiny_bert"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.safetensors"
    path.write_bytes(safetensors({"bert.a": ("F32", [2], floats(1, 2)), "bert.b": ("F32", [1], floats(3)),
                                  "cls.bias": ("U8", [3], b"abc")}, {"format": "pt", "k": "v"}))
    return path


def shown(path):
    value = validated(weighbridge("inspect", path, "--json").stdout, "inspect")["files"][0]
    return [tensor["name"] for tensor in value["tensors"]], value["attributes"]


@pytest.mark.parametrize("to", ["safetensors", "zt"])
def test_select_rename_and_edit(source, tmp_path, to):
    out = tmp_path / f"out.{to}"
    weighbridge("convert", source, out, "--only", "bert.*", "--only", "cls*", "--without", "*.b",
                "--rename", "bert.a=a", "--rename=cls.bias=bias=es", "--set", "k=w=x", "--set", "new=", "--unset", "format")
    assert shown(out) == (["a", "bias=es"], {"k": "w=x", "new": ""})
    assert weighbridge("extract", out, "a", "-o", "-", text=False).stdout == floats(1, 2)


def test_names_come_from_a_file_too(source, tmp_path):
    names, out = tmp_path / "names.txt", tmp_path / "out.safetensors"
    names.write_text("# what becomes of them\n\nbert.a=bert.b\nbert.b\tbert.a\n")
    weighbridge("convert", source, out, "--rename-file", names, "--rename", "cls.bias=c")
    assert weighbridge("extract", out, "bert.b", "-o", "-", text=False).stdout == floats(1, 2)
    assert "names.txt" in weighbridge("convert", source, names, "--to", "zt", "--force", "--rename-file", names, status=2).stderr
    assert names.read_text().startswith("#")
    weighbridge("convert", source, tmp_path / "piped.zt", "--rename-file", "-", stdin=names.open(), status=0)
    names.write_text("bert.a=x\nbert.b\n")
    done = weighbridge("convert", source, tmp_path / "no.zt", "--rename-file", names, status=2)
    assert "names.txt" in done.stderr and "line 2" in done.stderr and not (tmp_path / "no.zt").exists()
    weighbridge("convert", source, tmp_path / "no.zt", "--rename-file", tmp_path / "absent", status=4)


@pytest.mark.parametrize("text,said", [
    ("bert.a=x\n\nbert.c=y\n", 'names.txt: line 3: there is no tensor "bert.c" to rename; the nearest is "bert.a"'),
    ("bert.a=x\n#bert.b=y\n", 'names.txt: line 2: there is no tensor "#bert.b" to rename'),
    ("bert.a=x\nbert.a=y\n", 'names.txt: line 2: the tensor "bert.a" is renamed twice'),
    ("bert.a= \r\n", "names.txt: line 1 is not FROM=TO")])
def test_an_error_in_a_file_of_names_says_file_and_line(source, tmp_path, text, said):
    names, out = tmp_path / "names.txt", tmp_path / "out.zt"
    names.write_text(text)
    assert said in weighbridge("convert", source, out, "--rename-file", names, status=2).stderr and not out.exists()


def test_blanks_and_comments_in_a_file_of_names_do_not_count(source, tmp_path):
    names, out = tmp_path / "names.txt", tmp_path / "out.safetensors"
    names.write_bytes(b"\xef\xbb\xbfbert.a = a \r\n   \r\n#\tcomment\r\n# bert.b=c\nbert.b\tb  \n")
    weighbridge("convert", source, out, "--rename-file", names)
    assert shown(out)[0] == ["a", "b", "cls.bias"]


@pytest.mark.parametrize("flags,said", [
    (["--only", "bert.c"], "bert.a"), (["--rename", "bert.c=x"], "bert.a"), (["--unset", "formats"], '"format"'),
    (["--rename", "bert.a=bert.b"], 'both be called "bert.b"'), (["--rename", "bert.a"], "--rename takes FROM=TO"),
    (["--set", "=v"], "--set takes KEY=VALUE"), (["--rename", "bert.a=x", "--rename", "bert.a=y"], "renamed twice"),
    (["--set", "k=1", "--unset", "k"], "more than once"), (["--rename", "bert.a="], "lacks the new name behind the ="),
    (["--without", "bert.c"], 'no tensor matches "bert.c"; the nearest is "bert.a"'),
    (["--only", "cls.bias", "--without", "cls.bias"], "no tensor is left"), (["--without", "*"], "no tensor is left")])
def test_what_cannot_be_is_misuse(source, tmp_path, flags, said):
    done = weighbridge("convert", source, tmp_path / "out.zt", *flags, status=2)
    assert said in done.stderr and not (tmp_path / "out.zt").exists()


def test_what_is_appended_is_a_view_too(source, tmp_path):
    target = tmp_path / "target.zt"
    weighbridge("convert", source, target)
    weighbridge("append", target, source, status=1)
    weighbridge("append", target, source, "--only", "cls.bias", "--rename", "cls.bias=again", "--unset", "k", "--set", "added=1")
    assert shown(target) == (["again", "bert.a", "bert.b", "cls.bias"], {"format": "pt", "k": "v", "added": "1"})


def test_a_bare_safetensors_of_a_bert_becomes_weights(tmp_path):
    """With the values of config.json set and vocab.txt given, the vectors equal those of the folder."""
    if not DATA.is_dir():
        pytest.skip("tiny_bert is not in ../shared/data or $WEIGHBRIDGE_TEST_DATA")
    bare, prefixed, names = tmp_path / "bare.safetensors", tmp_path / "bert.safetensors", tmp_path / "names.txt"
    bare.write_bytes((DATA / "model.safetensors").read_bytes())
    # Like checkpoints with other heads: names under "bert.", and tensors that EMBD cannot hold.
    tensors = shown(bare)[0]
    names.write_text("".join(f"{name}\tbert.{name}\n" for name in tensors))
    weighbridge("convert", bare, prefixed, "--rename-file", names)
    back = tmp_path / "back.txt"
    back.write_text("".join(f"bert.{name}={name}\n" for name in tensors))
    refused = weighbridge("convert", prefixed, tmp_path / "no.weights", status=1)
    assert "num_attention_heads" in refused.stdout
    out, folder = tmp_path / "out.weights", tmp_path / "folder.weights"
    weighbridge("convert", prefixed, out, "--rename-file", back, "--set", "num_attention_heads=4", "--set", "do_lower_case=false",
                "--set", "max_seq_length=128", "--tokenizer", DATA / "vocab.txt", "--model-name", "tiny")
    weighbridge("verify", out)
    weighbridge("convert", DATA, folder)
    texts = ["embed", "--json", "one text", "Another, longer text"]
    vectors = [weighbridge("embed", path, *texts[2:]).stdout for path in (out, folder)]
    assert vectors[0] == vectors[1] and json.loads(vectors[0].splitlines()[0])
    assert weighbridge("hash", out).stdout.split()[0] == weighbridge("hash", bare).stdout.split()[0]
    # A model that has a vocabulary keeps it, and the vocabulary is an input.
    done = weighbridge("convert", out, tmp_path / "no.zt", "--tokenizer", DATA / "vocab.txt", status=2)
    assert "tokenizer" in done.stderr
    vocabulary = tmp_path / "vocab.weights"
    vocabulary.write_bytes((DATA / "vocab.txt").read_bytes())
    weighbridge("convert", bare, vocabulary, "--force", "--set", "num_attention_heads=4", "--tokenizer", vocabulary, status=2)
    assert vocabulary.read_bytes() == (DATA / "vocab.txt").read_bytes()


def test_a_broken_vocabulary_is_the_one_that_is_named(source, tmp_path):
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_bytes(b"[PAD]\n\xff\n")
    done = weighbridge("convert", source, tmp_path / "out.zt", "--tokenizer", vocabulary, status=1)
    assert "vocab.txt" in done.stderr and "tokenizer/utf8" in done.stderr and not (tmp_path / "out.zt").exists()


@pytest.mark.parametrize("to", ["safetensors", "zt", "stb", "hf"])
def test_what_cannot_be_interpreted_is_left_out_by_name(tmp_path, to):
    path, out = tmp_path / "in.zt0", tmp_path / "out"
    entry = {"offset": 64, "size": 8, "shape": [2], "encoding": "raw", "data_endianness": "little"}
    index = cbor([{"name": "known", "dtype": "float32", **entry}, {"name": "strange", "dtype": "float99", **entry}])
    path.write_bytes(b"ZTEN0001" + bytes(56) + floats(1, 2) + index + len(index).to_bytes(8, "little"))
    command = ["convert", path, out, "--to", to] + ["--set", "hf.model_type=other"] * (to == "hf") + ["--json"]
    plan = validated(weighbridge(*command, status=3).stdout, "convert")
    assert plan["blockers"] == [] and not plan["possible"] and not out.exists()
    lost = [loss for loss in plan["losses"] if not loss["allowed"]]
    assert [(loss["kind"], loss["subject"]) for loss in lost] == [("unsupported", 'tensors["strange"]')]
    assert "--allow unsupported" in weighbridge(*command[:-1], status=3).stderr
    plan = validated(weighbridge(*command, "--allow", "unsupported").stdout, "convert")
    assert plan["written"] and plan["tensors"] == 1
    assert 'tensors["strange"]' in [loss["subject"] for loss in plan["losses"]]
    assert shown(out)[0] == ["known"]


@pytest.mark.parametrize("glob,said", [("bert", 'no tensor matches "bert", "*bert*" does'), ("cls.bios", '; the nearest is "cls.bias"'),
                                       ("x*", 'no tensor matches "x*"')])
def test_no_match_reads_the_same_in_every_verb(source, tmp_path, glob, said):
    zt, out = tmp_path / "in.zt", tmp_path / "out"
    weighbridge("convert", source, zt)
    told = {weighbridge(*words, glob, status=2).stderr.split(": ", 2)[2] for words in (
        ["inspect", source, "--filter"], ["extract", source, "-o", out, "--glob"], ["convert", source, f"{out}.zt", "--only"],
        ["convert", source, f"{out}.zt", "--without"], ["append", zt, source, "--only"])}
    assert len(told) == 1 and said in told.pop() and not out.exists()


def test_a_tensor_without_a_name_can_be_selected(tmp_path):
    path, only, rest = tmp_path / "in.safetensors", tmp_path / "only.zt", tmp_path / "rest.zt"
    path.write_bytes(safetensors({"": ("F32", [1], floats(1)), "b": ("F32", [1], floats(2))}))
    weighbridge("convert", path, only, "--only", "")
    weighbridge("convert", path, rest, "--without=")
    assert shown(only)[0] == [""] and shown(rest)[0] == ["b"]
    assert "1  tensor" in weighbridge("inspect", path, "--filter", "").stdout
    assert 'no tensor matches ""; the nearest is "b"' in weighbridge("inspect", rest, "--filter", "", status=2).stderr
