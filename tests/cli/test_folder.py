# SPDX-License-Identifier: Apache-2.0
"""Tests Hugging Face folders as inputs and outputs of every verb."""
import json
import os
import struct

import pytest

from conftest import floats, safetensors, validated, weighbridge

CONFIG = {"architectures": ["BertModel"], "hidden_act": "gelu", "hidden_size": 2, "intermediate_size": 4, "layer_norm_eps": 1e-12,
          "max_position_embeddings": 8, "model_type": "bert", "num_attention_heads": 1, "num_hidden_layers": 1,
          "type_vocab_size": 2, "vocab_size": 6}
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "word"]
SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]


def tensors():
    """The required tensors of a one-layer BERT."""
    out, hidden, inner = {}, 2, 4

    def add(name, *shape):
        count = 1
        for dim in shape:
            count *= dim
        out[name] = ("F32", list(shape), floats(*(len(out) + i / 8 for i in range(count))))

    add("embeddings.word_embeddings.weight", 6, hidden)
    add("embeddings.position_embeddings.weight", 8, hidden)
    add("embeddings.token_type_embeddings.weight", 2, hidden)
    norms, layer = ["embeddings.LayerNorm"], "encoder.layer.0."
    for name, rows, columns in [("attention.self.query", hidden, hidden), ("attention.self.key", hidden, hidden),
                                ("attention.self.value", hidden, hidden), ("attention.output.dense", hidden, hidden),
                                ("intermediate.dense", inner, hidden), ("output.dense", hidden, inner)]:
        add(layer + name + ".weight", rows, columns)
        add(layer + name + ".bias", rows)
    for name in norms + [layer + "attention.output.LayerNorm", layer + "output.LayerNorm"]:
        add(name + ".weight", hidden)
        add(name + ".bias", hidden)
    out["embeddings.position_ids"] = ("I64", [1, 8], struct.pack("<8q", *range(8)))
    return out


@pytest.fixture
def model(tmp_path):
    """A folder as written by sentence-transformers."""
    folder = tmp_path / "tiny-bert"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=2, sort_keys=True) + "\n")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 8, "do_lower_case": False}))
    (folder / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Normalize"}]))
    (folder / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    (folder / "model.safetensors").write_bytes(safetensors(tensors(), {"format": "pt"}))
    return folder


@pytest.fixture
def sharded(model):
    """The same with its weights in two shards and an index."""
    (model / "model.safetensors").unlink()
    named = list(tensors().items())
    halves, index = [dict(named[:7]), dict(named[7:])], {}
    for name, half in zip(SHARDS, halves):
        (model / name).write_bytes(safetensors(half, {"format": "pt"}))
        index.update({tensor: name for tensor in half})
    total = sum(len(data) for _, _, data in tensors().values())
    (model / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": index}))
    return model


def edit_index(folder, change):
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    change(index)
    path.write_text(json.dumps(index))


def findings(folder, status=1):
    return [f["rule"] for f in validated(weighbridge("verify", "--json", folder, status=status).stdout, "verify")["files"][0]["findings"]]


@pytest.mark.parametrize("kind", ["model", "sharded"])
def test_every_verb_takes_a_folder(kind, request, tmp_path):
    folder = request.getfixturevalue(kind)
    assert "ok (hf, 22 tensors" in weighbridge("verify", folder).stdout
    value = validated(weighbridge("inspect", "--json", folder).stdout, "inspect")["files"][0]
    assert value["format"] == "hf" and len(value["tensors"]) == 22
    assert value["attributes"]["model_name"] == "tiny-bert" and value["attributes"]["pooling_mode"] == "mean"
    assert value["file_size"] == sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert "tiny-bert" in weighbridge("inspect", folder).stdout
    weighbridge("extract", folder, "embeddings.position_ids", "-o", tmp_path / "ids.bin")
    assert (tmp_path / "ids.bin").read_bytes() == struct.pack("<8q", *range(8))
    plain = tmp_path / "plain.safetensors"
    plain.write_bytes(safetensors(tensors()))
    one, two = (line.split()[0] for line in weighbridge("hash", folder, plain).stdout.splitlines())
    assert one == two


@pytest.mark.parametrize("kind", ["model", "sharded"])
def test_there_and_back(kind, request, tmp_path):
    folder = request.getfixturevalue(kind)
    weighbridge("convert", folder, tmp_path / "model.zt")
    for out, flags in (("copy", ["--to", "hf"]), ("again/", [])):
        assert "written" in weighbridge("convert", tmp_path / "model.zt", f"{tmp_path}/{out}", *flags).stdout
        copy = tmp_path / out
        assert "ok (hf, 22 tensors" in weighbridge("verify", copy).stdout
        assert (copy / "config.json").read_bytes() == (folder / "config.json").read_bytes()
        assert (copy / "vocab.txt").read_bytes() == (folder / "vocab.txt").read_bytes()
        one, two = (json.loads(weighbridge("inspect", "--json", path).stdout)["files"][0] for path in (folder, copy))
        assert one["attributes"] == two["attributes"]
    assert (tmp_path / "copy/model.safetensors").read_bytes() == (tmp_path / "again/model.safetensors").read_bytes()


def test_one_command_to_weights_and_back(model, tmp_path):
    plan = validated(weighbridge("convert", "--json", model, tmp_path / "tiny.weights").stdout, "convert")
    assert plan["written"] is True and plan["losses"] == []
    weighbridge("verify", tmp_path / "tiny.weights")
    weighbridge("convert", tmp_path / "tiny.weights", tmp_path / "back", "--to", "hf")
    back = {t["name"] for t in json.loads(weighbridge("inspect", "--json", tmp_path / "back").stdout)["files"][0]["tensors"]}
    assert back == set(tensors()) - {"embeddings.position_ids"}
    assert json.loads((tmp_path / "back/config.json").read_text()) == CONFIG
    assert (tmp_path / "back/vocab.txt").read_bytes() == (model / "vocab.txt").read_bytes()


def test_a_plan_tells_sizes_and_writes_nothing(model, tmp_path):
    out = tmp_path / "out"
    plan = validated(weighbridge("convert", "--json", "--dry-run", model, out, "--to", "hf").stdout, "convert")
    assert plan["to"] == "hf" and plan["written"] is False and not out.exists()
    weighbridge("convert", model, out, "--to", "hf")
    assert plan["output_size"] == sum(path.stat().st_size for path in out.rglob("*") if path.is_file())


def test_an_output_folder_is_empty_or_forced(model, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    weighbridge("convert", model, out, "--to", "hf")
    assert "--overwrite" in weighbridge("convert", model, out, "--to", "hf", status=2).stderr
    # Files that describe another model are removed; foreign files stay.
    for name in ("tokenizer.json", "model.safetensors.index.json"):
        (out / name).write_text("{}")
    (out / "README.md").write_text("mine")
    weighbridge("convert", model, out, "--to", "hf", "--force")
    weighbridge("verify", out)
    assert not (out / "tokenizer.json").exists() and (out / "README.md").read_text() == "mine"
    file = tmp_path / "file"
    file.write_text("mine")
    assert "not a folder" in weighbridge("convert", model, file, "--to", "hf", status=2).stderr
    assert "is a directory" in weighbridge("convert", model / "model.safetensors", out, "--to", "zt", "--force", status=2).stderr
    assert file.read_text() == "mine"


def test_the_input_is_never_the_output(model, tmp_path):
    before = {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    link = tmp_path / "link"
    link.symlink_to(model)
    for out in (model, link):
        assert "input" in weighbridge("convert", model / "model.safetensors", out, "--to", "hf", "--set", "hf.model_type=other", "--force",
                                      status=2).stderr
        assert "input" in weighbridge("convert", model, out, "--to", "hf", "--force", status=2).stderr
    assert {path: path.read_bytes() for path in model.rglob("*") if path.is_file()} == before


def test_what_is_no_model_folder(tmp_path, model):
    said = weighbridge("inspect", tmp_path, status=2).stderr
    assert "is a directory" in said and "config.json" in said and "model.safetensors" in said
    (model / "model.safetensors").rename(model / "pytorch_model.bin")
    assert findings(model) == ["hf/weights-format", "hf/pickle"]
    assert "does not have the format" in weighbridge("convert", model, tmp_path / "x.zt", status=1).stderr
    failed = validated(weighbridge("inspect", "--json", model, status=1).stdout, "inspect")["files"][0]
    assert failed["format"] == "hf" and failed["findings"][0]["rule"] == "hf/weights-format"


def test_a_file_is_named_where_a_file_of_the_folder_is_to_blame(model, sharded):
    (model / SHARDS[1]).write_bytes((model / SHARDS[1]).read_bytes()[:-1])
    said = weighbridge("verify", model, status=1).stdout
    assert f"{SHARDS[1]}: " in said and "safetensors/truncated" in said
    [finding] = validated(weighbridge("verify", "--json", model, status=1).stdout, "verify")["files"][0]["findings"]
    assert finding["file"] == str(model / SHARDS[1]) and finding["offset"] <= (model / SHARDS[1]).stat().st_size


def swap(index, tensor, shard):
    index["weight_map"][tensor] = shard


@pytest.mark.parametrize("change, expected", [
    (lambda i: i["weight_map"].pop("embeddings.position_ids"), ["hf/tensor-unlisted"]),
    (lambda i: swap(i, "nothing", SHARDS[0]), ["hf/tensor-missing"]),
    (lambda i: swap(i, "embeddings.position_ids", SHARDS[0]), ["hf/tensor-missing", "hf/tensor-unlisted"]),
    (lambda i: swap(i, "nothing", "model-00003-of-00002.safetensors"), ["hf/shard-missing"]),
    (lambda i: swap(i, "nothing", "../outside.safetensors"), ["hf/shard-path"]),
    (lambda i: swap(i, "nothing", "/etc/passwd"), ["hf/shard-path"]),
    (lambda i: swap(i, "nothing", ""), ["hf/shard-path"]),
    (lambda i: i.pop("weight_map"), ["hf/index-value"]),
    (lambda i: i.update(weight_map=[]), ["hf/index-value"]),
    (lambda i: i.update(weight_map={"a": 1}), ["hf/index-value"]),
])
def test_an_index_that_does_not_match(sharded, change, expected):
    edit_index(sharded, change)
    assert findings(sharded) == expected


def test_a_total_size_that_is_wrong_is_a_warning(sharded):
    edit_index(sharded, lambda index: index["metadata"].update(total_size=1))
    assert findings(sharded, status=0) == ["hf/total-size"]


@pytest.mark.parametrize("text", ['{"weight_map": {' + '"a":"b",' * 100000 + '"a":"b"}}', "[" * 100000, '{"weight_map":' + '{"a":' * 1000,
                                  "", "null", "{}\0", '{"weight_map":{"a":"b"}} {}'],
                         ids=["repeated", "deep arrays", "deep objects", "empty", "null", "NUL", "two values"])
def test_a_hostile_index(sharded, text):
    (sharded / "model.safetensors.index.json").write_text(text)
    found = findings(sharded)
    assert found and not [rule for rule in found if rule.startswith("io/")]
    opened = validated(weighbridge("inspect", "--json", sharded, status=1).stdout, "inspect")["files"][0]
    assert opened["findings"][0]["rule"] == found[0]


def test_links_stay_inside(sharded, tmp_path):
    outside = tmp_path / "outside.safetensors"
    (sharded / SHARDS[0]).rename(outside)
    (sharded / SHARDS[0]).symlink_to(outside)
    assert findings(sharded) == ["hf/shard-link"]
    (sharded / "vocab.txt").unlink()
    os.mkfifo(sharded / "vocab.txt")
    assert "FIFO" in weighbridge("verify", sharded, status=2).stderr  # at once, and not when someone writes


def test_a_line_of_the_plan_does_not_say_its_subject_twice(model, tmp_path):
    said = weighbridge("convert", model, tmp_path / "out.stb", "--dry-run", status=1).stdout
    assert "\n  loss tokenizer: a tokenizer -> dropped: STB has no place for it\n" in said
    plain = tmp_path / "plain.safetensors"
    plain.write_bytes(safetensors({"w": ("F32", [1], floats(1))}))
    said = weighbridge("convert", plain, tmp_path / "out.stb", "--dry-run").stdout
    assert "\n  change name: 1 name -> the sidecar NAME.khm.json beside the output\n" in said


@pytest.mark.parametrize("name", ["vocab.txt", "config.json", "tokenizer_config.json", "model.safetensors.index.json"])
def test_no_file_of_a_folder_is_read_through_a_link_that_leads_out(sharded, tmp_path, name):
    """A vocabulary that was a link to a private key passed verify, and convert wrote the key into the output."""
    secret = tmp_path / "secret"
    secret.write_bytes((sharded / name).read_bytes() if (sharded / name).exists() else b"{}")
    (sharded / name).unlink(missing_ok=True)
    (sharded / name).symlink_to(secret)
    for words in (["verify", sharded], ["convert", sharded, tmp_path / "out.weights"]):
        assert "leads out of the folder" in weighbridge(*words, status=4).stderr
    assert not (tmp_path / "out.weights").exists()
    (sharded / name).unlink()
    (sharded / name).symlink_to("inside")  # within the folder a link is fine
    secret.rename(sharded / "inside")
    weighbridge("verify", sharded)


def with_more(model):
    """Files beside the ones that are read, as those of a download."""
    (model / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "model_max_length": 8, "tokenizer_class": "BertTokenizerFast"}))
    for name in ("special_tokens_map.json", "README.md", ".gitattributes", "modeling.py"):
        (model / name).write_text("{}")
    return model


def test_files_that_are_not_understood_are_copied_from_folder_to_folder(model, tmp_path):
    out = tmp_path / "out"
    said = weighbridge("convert", with_more(model), out, "--to", "hf").stdout
    for name in ("special_tokens_map.json", "README.md", "tokenizer_config.json", "modules.json", "vocab.txt"):
        assert (out / name).read_bytes() == (model / name).read_bytes()
    assert "loss file: modeling.py: left out: a program" in said and "loss file: .gitattributes: left out: a hidden file" in said
    assert not (out / "modeling.py").exists() and not (out / ".gitattributes").exists()


def test_a_single_file_names_the_files_that_it_cannot_hold_and_is_written(model, tmp_path):
    said = weighbridge("convert", with_more(model), tmp_path / "tiny.weights").stdout
    assert "loss file: .gitattributes, README.md, modeling.py, special_tokens_map.json, tokenizer_config.json: left out" in said
    plan = validated(weighbridge("convert", "--json", "--dry-run", model, tmp_path / "tiny.zt").stdout, "convert")
    assert plan["possible"] and len(plan["losses"]) == 5
    assert all(loss["kind"] == "file" and loss["allowed"] for loss in plan["losses"])


def test_quiet_says_what_is_lost_unless_it_was_allowed(model, tmp_path):
    """The plan was not printed, and the status was 0."""
    said = weighbridge("convert", with_more(model), tmp_path / "a.zt", "--quiet")
    assert said.stdout == "" and said.stderr.startswith(f"weighbridge: {model}: loss: file: ") and said.stderr.count("\n") == 1
    assert 'files["README.md"]' in said.stderr and " more" in said.stderr
    said = weighbridge("convert", model, tmp_path / "b.zt", "--quiet", "--allow", "file")
    assert said.stdout == said.stderr == ""
    plan = validated(weighbridge("convert", model, tmp_path / "c.zt", "--json", "--quiet").stdout, "convert")
    assert not any(loss["consented"] for loss in plan["losses"])
    plan = validated(weighbridge("convert", model, tmp_path / "d.zt", "--json", "--allow", "file").stdout, "convert")
    assert plan["losses"] and all(loss["consented"] for loss in plan["losses"])


def test_at_most_200_files_and_256_mib_are_copied(model, tmp_path):
    with open(model / "README.md", "wb") as file:
        file.truncate((256 << 20) + 1)
    lost = lambda: {loss["subject"] for loss in validated(weighbridge("convert", "--json", "--dry-run", model, tmp_path / "o", "--to", "hf").stdout, "convert")["losses"]}
    assert 'files["README.md"]' in lost()
    with open(model / "README.md", "wb") as file:
        file.truncate(1 << 20)
    assert 'files["README.md"]' not in lost()
    for number in range(201):
        (model / f"LICENSE-{number:03}.txt").write_text("x")
    left = sum("LICENSE-" in each for each in lost())
    assert 1 <= left < 201


def test_a_link_that_leads_out_of_the_folder_is_not_copied(model, tmp_path):
    (tmp_path / "key").write_text("secret")
    (model / "README.md").symlink_to(tmp_path / "key")
    os.mkfifo(model / "pipe")
    said = weighbridge("convert", model, tmp_path / "out", "--to", "hf").stdout
    assert "README.md: left out: " in said and "pipe: left out: " in said
    assert not (tmp_path / "out/README.md").exists() and not (tmp_path / "out/pipe").exists()


def test_a_folder_that_would_be_no_model_is_refused(model, tmp_path):
    said = weighbridge("convert", model / "model.safetensors", tmp_path / "out", "--to", "hf", status=1)
    assert "config.json would be empty" in said.stdout and "--set hf.model_type=NAME" in said.stderr
    assert not (tmp_path / "out").exists()


def test_a_bert_without_its_numbers_names_those_that_it_lacks(model, tmp_path):
    flags = ["--to", "hf", "--set", "hf.model_type=bert"]
    numbers = {"vocab_size": 6, "num_layers": 1, "num_attention_heads": 1, "hidden_size": 2, "intermediate_size": 4, "max_position_emb": 8}
    said = weighbridge("convert", model / "model.safetensors", tmp_path / "out", *flags, "--set", "hidden_size=2", status=1)
    assert "lacks what a BERT's must have: " + ", ".join(key for key in numbers if key != "hidden_size") in said.stdout
    assert "--set KEY=NUMBER" in said.stderr and "--ignore-setting" not in said.stderr
    for key, value in numbers.items():
        flags += ["--set", f"{key}={value}"]
    weighbridge("convert", model / "model.safetensors", tmp_path / "out", *flags)


def test_config_json_names_no_program_that_is_left_out(model, tmp_path):
    """An entry of another repository stays; without the others, the new folder asks nobody to run code that is not there."""
    local, remote = {"AutoConfig": "configuration_x.XConfig", "AutoModel": ["modeling_x.X", None]}, {"AutoModelForMaskedLM": "org/name--modeling_x.X"}
    (model / "modeling_x.py").write_text("raise SystemExit")
    for entries, kept in ((local, None), (local | remote, remote)):
        (model / "config.json").write_text(json.dumps(CONFIG | {"auto_map": entries, "custom_pipelines": {"p": {"impl": "p.P", "pt": ["AutoModel"]}}}))
        out = tmp_path / ("some" if kept else "none")
        done = weighbridge("convert", model, out)
        assert 'change attribute: attributes["hf.auto_map"]: ' in done.stdout and 'attributes["hf.custom_pipelines"]: ' in done.stdout
        assert "loss file: modeling_x.py" in done.stdout
        config = json.loads((out / "config.json").read_text())
        assert config.get("auto_map") == kept and "custom_pipelines" not in config
        assert ("hf/remote-code" in weighbridge("verify", "--json", out).stdout) == bool(kept)
        # That the model has a program of its own stays a reason not to compute embeddings as if it had none.
        assert "auto_map" in weighbridge("embed", out, "word", status=3).stderr


def test_a_bert_that_keeps_its_names_says_how_to_get_those_of_llama_cpp(model, tmp_path):
    """By default a BERT's GGUF has the folder's names; a mix, which goes by llama.cpp's names, was an error that named only --pure."""
    said = weighbridge("convert", model, tmp_path / "plain.gguf", "--allow", "tokenizer").stdout
    assert "tensors keep the folder's names, with which llama.cpp opens no file; its own are given on request: --naming llama" in said
    assert "on request" not in weighbridge("convert", model, tmp_path / "source.gguf", "--allow", "tokenizer", "--naming", "source").stdout
    assert "; try --naming llama" in weighbridge("convert", model, tmp_path / "mix.gguf", "--quantize", "q4_k_m", status=2).stderr
    weighbridge("convert", model, tmp_path / "mix.gguf", "--quantize", "q4_k_m", "--naming", "llama", "--allow", "tokenizer")
    # Where llama.cpp has no names for the model, one type for all is the way.
    other = tmp_path / "other.safetensors"
    other.write_bytes(safetensors({"a.weight": ("F32", [2, 32], floats(*range(64)))}))
    assert "; try --pure" in weighbridge("convert", other, tmp_path / "mix2.gguf", "--quantize", "q4_k_m", status=2).stderr
    weighbridge("convert", other, tmp_path / "mix2.gguf", "--quantize", "q4_k_m", "--pure")


def test_verify_warns_of_what_others_would_run_and_names_the_file(model, tmp_path):
    (model / "config.json").write_text(json.dumps(CONFIG | {"auto_map": {"AutoModel": "modeling.Model"}}))
    (model / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "chat_template": "{{ messages }}"}))
    (model / "chat_template.jinja").write_text("{{ messages }}")
    (model / "modeling.py").write_text("raise SystemExit")
    (model / "pytorch_model.bin").write_bytes(b"PK\x03\x04 and more")
    (model / "weights.bin").write_bytes(b"no pickle at all")
    (tmp_path / "outside.py").write_text("raise SystemExit")
    (model / "link.py").symlink_to(tmp_path / "outside.py")
    found = validated(weighbridge("verify", "--json", model).stdout, "verify")["files"][0]
    assert found["valid"] and all(f["severity"] == "warning" for f in found["findings"])
    assert [(f["rule"], os.path.basename(f["file"]), f["offset"] is not None) for f in found["findings"]] == [
        ("hf/remote-code", "config.json", True), ("hf/program", "link.py", False),
        ("hf/program", "modeling.py", False), ("hf/pickle-beside", "pytorch_model.bin", False)]
    said = weighbridge("verify", model).stdout
    assert "config.json: warning: the file names Python code that some programs run when they load the model: auto_map" in said
    assert ": ok (hf, " in said
    for words in (["inspect", model], ["convert", model, tmp_path / "x.zt"]):
        assert "auto_map (" not in weighbridge(*words).stderr


WEIGHTS = safetensors({"a.weight": ("F32", [2], b"\0\0\x80\x3f" * 2)})


@pytest.mark.parametrize("files", [
    {"config.json": b"{}", "diffusion_pytorch_model.safetensors": WEIGHTS}, {"adapter_config.json": b'{"r": 2}', "adapter_model.safetensors": WEIGHTS},
    {"tokenizer.model": b"", "model.safetensors": WEIGHTS}, {"config.json": b'{"model_type": "qwen2"}', "model.safetensors": WEIGHTS, "trainer_state.json": b"{}",
                                                             "optimizer.pt": b"\x80\x02}.", "rng_state.pth": b"\x80\x02}."}],
    ids=["component", "adapter", "weights and tokenizer", "checkpoint of a trainer"])
def test_folders_of_training_and_of_diffusion_open_as_models(tmp_path, files):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    weighbridge("verify", tmp_path)
    assert json.loads(weighbridge("inspect", "--json", tmp_path).stdout)["files"][0]["tensor_count"] == 1


def test_a_pipeline_is_verified_component_by_component_and_not_converted(tmp_path):
    for name in ("unet", "vae"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_bytes(b"{}")
        (tmp_path / name / "diffusion_pytorch_model.safetensors").write_bytes(WEIGHTS)
    (tmp_path / "model_index.json").write_text("{}")
    assert weighbridge("verify", tmp_path).stdout.count(": ok (hf") == 2
    (tmp_path / "vae/diffusion_pytorch_model.safetensors").write_bytes(WEIGHTS[:-1])
    assert "vae" in weighbridge("verify", tmp_path, status=1).stdout
    assert "a pipeline of diffusers" in weighbridge("convert", tmp_path, tmp_path / "out.safetensors", status=2).stderr


def test_a_component_of_diffusers_keeps_the_names_that_diffusers_loads(tmp_path):
    unet, out = tmp_path / "unet", tmp_path / "out"
    unet.mkdir()
    config = {"_class_name": "UNet2DConditionModel", "_diffusers_version": "0.31.0", "block_out_channels": [320, 640], "act_fn": "silu"}
    (unet / "config.json").write_text(json.dumps(config))
    (unet / "diffusion_pytorch_model.safetensors").write_bytes(safetensors({n: ("F32", [2], floats(1, 2)) for n in "ab"}, {"format": "pt"}))
    weighbridge("convert", unet, out)
    assert sorted(p.name for p in out.iterdir()) == ["config.json", "diffusion_pytorch_model.safetensors"]
    assert json.loads((out / "config.json").read_text()) == config
    weighbridge("convert", unet, out, "--max-shard-size", "10", "--overwrite")
    assert sorted(p.name for p in out.iterdir()) == [
        "config.json", "diffusion_pytorch_model-00001-of-00002.safetensors", "diffusion_pytorch_model-00002-of-00002.safetensors",
        "diffusion_pytorch_model.safetensors.index.json"]
    weighbridge("verify", out)
    (out / "model.safetensors").write_bytes(WEIGHTS)  # of an older output, which a reader would prefer
    weighbridge("convert", unet, out, "--cast", "bf16", "--overwrite")
    assert sorted(p.name for p in out.iterdir()) == ["config.json", "diffusion_pytorch_model.safetensors"]


def test_a_key_of_config_json_without_its_prefix_was_set_nowhere(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "qwen2", "tie_word_embeddings": true}')
    (tmp_path / "model.safetensors").write_bytes(WEIGHTS)
    assert "hf.tie_word_embeddings" in weighbridge("convert", tmp_path, tmp_path / "out.zt", "--set", "tie_word_embeddings=false", status=2).stderr
    weighbridge("convert", tmp_path, tmp_path / "out.zt", "--set", "hf.tie_word_embeddings=false")
