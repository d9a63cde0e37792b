# SPDX-License-Identifier: Apache-2.0
"""Folders of transformers as GGUF, beside the converter of llama.cpp: metadata, shapes and the SHA-256 of every tensor of 33 small
models in the test data. And what the table of architectures refuses or completes."""
import hashlib
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import unicodedata

import pytest

from interop_tools import COMMAND, ROOT, np

gguf = pytest.importorskip("gguf", reason="gguf is missing: tools/python-environments.sh makes the environment")

FOLDERS = pathlib.Path(os.environ.get("WEIGHBRIDGE_TEST_DATA") or pathlib.Path(__file__).parents[3] / "shared/data") / "gguf/folders"
TRANSFORMERS = pathlib.Path(os.environ.get("TORCH_PYTHON") or ROOT / "build/venv-torch/bin/python")
NAMES = sorted(path.parent.name for path in FOLDERS.glob("*/expected.json"))
pytestmark = pytest.mark.skipif(not NAMES, reason=f"{FOLDERS} is missing: the folders with the converter's results")


def convert(folder, target, *flags, status=0):
    done = subprocess.run([COMMAND, "convert", str(folder), str(target), "--cast", "f32", "--quiet", *flags], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == status, (folder, done.stdout[-2000:], done.stderr[-2000:])
    return done.stderr if status else gguf.GGUFReader(target)


def keys_of(reader):
    return {field.name: (field.types[0].name, field.contents()) for field in reader.fields.values() if not field.name.startswith("GGUF.")}


def copy(name, target, change=None, drop=()):
    """A copy of a folder with another config.json."""
    shutil.copytree(FOLDERS / name, target)
    config = json.loads((target / "config.json").read_text())
    config.update(change or {})
    for key in drop:
        del config[key]
    (target / "config.json").write_text(json.dumps(config))
    return target


# test_gguf_naming.py has BERT, which gets these names on request only.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "bert"])
def test_a_folder_becomes_what_the_converter_makes(tmp_path, name):
    expected = json.loads((FOLDERS / name / "expected.json").read_text())
    reader = convert(FOLDERS / name, tmp_path / "out.gguf", "--allow", "attribute")
    keys = keys_of(reader)
    assert {key: keys.get(key) for key in expected["metadata"]} == {key: tuple(value) for key, value in expected["metadata"].items()}
    # Settings without a key of llama.cpp stay; and llama.cpp needs the number of tokens where a file has none.
    more = {key for key in keys if key not in expected["metadata"] and not key.startswith("hf.")}
    assert more <= {keys["general.architecture"][1] + ".vocab_size"}
    tensors = {t.name: [[int(size) for size in t.shape], t.tensor_type.name, hashlib.sha256(t.data.tobytes()).hexdigest()]
               for t in reader.tensors}
    assert tensors == expected["tensors"]


# llama.cpp has no key for these settings, and computes one value of each.
@pytest.mark.parametrize("name, change, words", [
    ("qwen3moe", {"norm_topk_prob": False}, "norm_topk_prob"),
    ("qwen2moe", {"norm_topk_prob": True}, "norm_topk_prob"),
    ("modernbert", {"layer_types": ["sliding_attention", "full_attention"]}, "layer_types"),
    ("modernbert", {"hidden_activation": "silu"}, "hidden_activation"),
    ("roberta", {"hidden_act": "relu"}, "hidden_act"),
    ("roberta", {"pad_token_id": 97}, "pad_token_id"),
    ("roberta", {"position_embedding_type": "relative_key"}, "position_embedding_type"),
    ("t5", {"feed_forward_proj": "gated-silu"}, "feed_forward_proj"),
    ("llama", {"attention_bias": True}, "attn_q.bias"),
    ("llama-tied", {"tie_word_embeddings": False}, "output.weight"),
    ("qwen3", {"num_hidden_layers": 3}, "2 of 3 layers"),
    ("t5", {"relative_attention_max_distance": 64}, "relative_attention_max_distance"),
])
def test_what_llama_cpp_does_not_compute_is_refused(tmp_path, name, change, words):
    assert words in convert(copy(name, tmp_path / "in", change), tmp_path / "out.gguf", status=3)


# Configs of transformers 5, and of models that leave out what their class knows.
@pytest.mark.parametrize("name, drop, key, value", [
    ("deepseek3", ["scoring_func"], "deepseek2.expert_gating_func", 2),
    ("gpt2", ["n_ctx"], "gpt2.context_length", 96),
    ("modernbert", ["layer_norm_eps"], "modern-bert.attention.layer_norm_epsilon", float(np.float32(1e-5))),
    ("modernbert", ["rope_parameters"], "modern-bert.rope.freq_base_swa", 10000.0),
    ("roberta", ["pad_token_id"], "bert.context_length", 96),
    ("t5", ["num_decoder_layers"], "t5.decoder_block_count", 2),
])
def test_an_absent_setting_has_the_default_of_its_class(tmp_path, name, drop, key, value):
    present = json.loads((FOLDERS / name / "config.json").read_text())
    folder = copy(name, tmp_path / "in", drop=[each for each in drop if each in present])
    assert keys_of(convert(folder, tmp_path / "out.gguf", "--allow", "attribute"))[key][1] == value


def save(folder, config, tensors):
    """A folder of f32 tensors."""
    folder.mkdir(exist_ok=True)
    header, at, payload = {}, 0, b""
    for name, values in tensors.items():
        raw = values.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [at, at + len(raw)]}
        at, payload = at + len(raw), payload + raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + payload)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


NOMIC = {"architectures": ["NomicBertModel"], "model_type": "nomic_bert", "activation_function": "swiglu", "n_embd": 8, "n_head": 2,
         "n_inner": 12, "n_layer": 1, "n_positions": 8192, "layer_norm_epsilon": 1e-12, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0,
         "rotary_emb_interleaved": False, "causal": False, "prenorm": False, "qkv_proj_bias": False, "type_vocab_size": 2, "vocab_size": 16}
NOMIC_TENSORS = {"embeddings.word_embeddings.weight": ("token_embd.weight", (16, 8)),
                 "embeddings.token_type_embeddings.weight": ("token_types.weight", (2, 8)),
                 "emb_ln.weight": ("token_embd_norm.weight", (8,)), "emb_ln.bias": ("token_embd_norm.bias", (8,)),
                 "encoder.layers.0.attn.Wqkv.weight": ("blk.0.attn_qkv.weight", (24, 8)),
                 "encoder.layers.0.attn.out_proj.weight": ("blk.0.attn_output.weight", (8, 8)),
                 "encoder.layers.0.norm1.weight": ("blk.0.attn_output_norm.weight", (8,)),
                 "encoder.layers.0.mlp.fc11.weight": ("blk.0.ffn_up.weight", (12, 8)),
                 "encoder.layers.0.mlp.fc12.weight": ("blk.0.ffn_gate.weight", (12, 8)),
                 "encoder.layers.0.mlp.fc2.weight": ("blk.0.ffn_down.weight", (8, 12)),
                 "encoder.layers.0.norm2.weight": ("blk.0.layer_output_norm.weight", (8,))}


def nomic(folder, **change):
    values = {name: np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + i for i, (name, (_, shape)) in enumerate(NOMIC_TENSORS.items())}
    return save(folder, {**NOMIC, **change}, values), values


def test_nomic_bert_has_the_names_of_llama_cpp_and_the_context_it_was_trained_with(tmp_path):
    folder, values = nomic(tmp_path / "in")
    reader = convert(folder, tmp_path / "out.gguf", "--allow", "attribute")
    tensors = {t.name: t.data for t in reader.tensors}
    assert sorted(tensors) == sorted(to for to, _ in NOMIC_TENSORS.values())
    for name, (to, _) in NOMIC_TENSORS.items():
        assert np.array_equal(tensors[to], values[name])
    keys = keys_of(reader)
    assert keys["nomic-bert.context_length"] == ("UINT32", 2048) and keys["nomic-bert.rope.freq_base"] == ("FLOAT32", 1000.0)
    assert keys["nomic-bert.attention.causal"] == ("BOOL", False)


@pytest.mark.parametrize("change", [{"prenorm": True}, {"causal": True}, {"rotary_emb_interleaved": True}, {"num_experts": 4},
                                    {"activation_function": "gelu"}])
def test_another_nomic_bert_is_refused(tmp_path, change):
    assert next(iter(change)) in convert(nomic(tmp_path / "in", **change)[0], tmp_path / "out.gguf", status=3)


def test_a_head_that_llama_cpp_does_not_have_needs_consent(tmp_path):
    folder = copy("modernbert", tmp_path / "in", {"architectures": ["ModernBertForMaskedLM"]})
    raw = (folder / "model.safetensors").read_bytes()
    size, = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + size])
    at = len(raw) - 8 - size
    header = {name if name == "__metadata__" else "model." + name: value for name, value in header.items()}
    header["decoder.bias"] = {"dtype": "F32", "shape": [1], "data_offsets": [at, at + 4]}
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + size:] + bytes(4))
    assert "--allow part" in convert(folder, tmp_path / "out.gguf", status=1)
    reader = convert(folder, tmp_path / "out.gguf", "--allow", "part")
    assert sorted(t.name for t in reader.tensors) == sorted(json.loads((FOLDERS / "modernbert/expected.json").read_text())["tensors"])


VOCABULARIES = FOLDERS.parent / "vocabularies"


def weighbridge(*arguments, status=0):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == status, (arguments, done.stdout[-2000:], done.stderr[-2000:])
    return done


def test_settings_of_transformers_4_mean_the_same(tmp_path):
    """rope_theta beside the others, and no rope_parameters."""
    shutil.copytree(FOLDERS / "llama31", tmp_path / "in", copy_function=shutil.copyfile)
    config = json.loads((tmp_path / "in/config.json").read_text())
    rotation = config.pop("rope_parameters")
    config |= {"rope_theta": rotation.pop("rope_theta"), "rope_scaling": rotation}
    (tmp_path / "in/config.json").write_text(json.dumps(config))
    for folder in (tmp_path / "in", FOLDERS / "llama31"):
        weighbridge("convert", folder, tmp_path / f"{folder.name}.gguf")
    one, other = (gguf.GGUFReader(tmp_path / f"{name}.gguf") for name in ("in", "llama31"))
    assert {each.name: bytes(each.data) for each in one.tensors} == {each.name: bytes(each.data) for each in other.tensors}
    assert keys_of(one)["llama.rope.freq_base"] == keys_of(other)["llama.rope.freq_base"]


def test_an_unknown_tensor_and_an_unknown_architecture_are_refused_by_name(tmp_path):
    shutil.copytree(FOLDERS / "llama", tmp_path / "in", copy_function=shutil.copyfile)
    data = (tmp_path / "in/model.safetensors").read_bytes()
    (tmp_path / "in/model.safetensors").write_bytes(data.replace(b"model.norm.weight", b"model.nrom.weight"))
    assert "model.nrom.weight" in weighbridge("convert", tmp_path / "in", tmp_path / "out.gguf", status=3).stderr
    config = json.loads((tmp_path / "in/config.json").read_text())
    config["architectures"] = ["Qwen7ForCausalLM"]
    (tmp_path / "in/config.json").write_text(json.dumps(config))
    said = weighbridge("convert", tmp_path / "in", tmp_path / "out.gguf", "--naming", "llama", status=2).stderr
    assert "Qwen7ForCausalLM" in said and "Qwen3ForCausalLM" in said


def test_names_of_the_folder_stay_if_asked_for(tmp_path):
    weighbridge("convert", FOLDERS / "qwen3", tmp_path / "out.gguf", "--naming", "source")
    assert "model.embed_tokens.weight" in {each.name for each in gguf.GGUFReader(tmp_path / "out.gguf").tensors}


def test_diff_takes_the_names_by_itself(tmp_path):
    weighbridge("convert", FOLDERS / "gpt2", tmp_path / "out.gguf")
    said = weighbridge("diff", FOLDERS / "gpt2", tmp_path / "out.gguf", status=1).stdout
    assert "recast" in said.splitlines()[0] and "changed" not in said.splitlines()[0] and "only in" not in said


def write_weights(folder, shapes):
    save(folder, json.loads((folder / "config.json").read_text()) if (folder / "config.json").is_file() else {},
         {name: np.random.default_rng(i).standard_normal(shape).astype(np.float32) for i, (name, shape) in enumerate(shapes.items())})


def write_llama(folder, rows):
    shapes = {"model.embed_tokens.weight": (rows, 32), "lm_head.weight": (rows, 32), "model.norm.weight": (32,)}
    layer = {"input_layernorm": (32,), "post_attention_layernorm": (32,), "mlp.gate_proj": (48, 32), "mlp.up_proj": (48, 32), "mlp.down_proj": (32, 48)}
    layer |= {f"self_attn.{each}_proj": (32, 32) for each in "qkvo"}
    write_weights(folder, shapes | {f"model.layers.0.{name}.weight": shape for name, shape in layer.items()})


def write_bert(folder, config):
    sizes = {"word": config["vocab_size"], "position": config["max_position_embeddings"], "token_type": config["type_vocab_size"]}
    shapes = {f"embeddings.{name}_embeddings.weight": (size, 32) for name, size in sizes.items()}
    layer = {f"attention.self.{each}": (32, 32) for each in ("query", "key", "value")} | {"attention.output.dense": (32, 32)}
    layer |= {"intermediate.dense": (48, 32), "output.dense": (32, 48), "attention.output.LayerNorm": (32,), "output.LayerNorm": (32,)}
    stems = {"embeddings.LayerNorm": (32,)} | {f"encoder.layer.{i}.{name}": shape for i in range(2) for name, shape in layer.items()}
    for name, shape in stems.items():
        shapes |= {name + ".weight": shape, name + ".bias": shape[:1]}
    write_weights(folder, shapes)


# What differs in a vocabulary, and why: a token that is both special and found in texts is found.
VOCABULARY_DIFFERS = {"bpe-gpt2": set(), "bpe-llama3": {"token_type"}, "bpe-qwen2": set(), "spm-llama": set(), "bpe-roberta": set(),
                      "unigram-json": set(), "unigram-spm": set(), "wordpiece": {"pre"}}


@pytest.mark.parametrize("name", VOCABULARY_DIFFERS)
def test_a_vocabulary_becomes_what_the_converter_of_llama_cpp_makes(name, tmp_path):
    shutil.copytree(VOCABULARIES / name, tmp_path / "in", copy_function=shutil.copyfile)
    expected = json.loads((tmp_path / "in/expected.json").read_text())["metadata"]
    (tmp_path / "in/expected.json").unlink()
    config = json.loads((tmp_path / "in/config.json").read_text())
    if "type_vocab_size" in config:
        write_bert(tmp_path / "in", config)
    else:  # of any decoder
        config |= {"architectures": ["LlamaForCausalLM" if name == "spm-llama" else "MistralForCausalLM"], "hidden_size": 32, "intermediate_size": 48,
                   "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 96, "rms_norm_eps": 1e-6,
                   "model_type": "llama" if name == "spm-llama" else "mistral"}
        (tmp_path / "in/config.json").write_text(json.dumps(config))
        write_llama(tmp_path / "in", config["vocab_size"])
    weighbridge("convert", tmp_path / "in", tmp_path / "out.gguf", "--allow", "tokenizer,attribute", "--naming", "llama")
    got = {key: value for key, (_, value) in keys_of(gguf.GGUFReader(tmp_path / "out.gguf")).items()}
    for key, (_, value) in expected.items():
        if key.removeprefix("tokenizer.ggml.") in VOCABULARY_DIFFERS[name]:
            continue
        if isinstance(value, dict):
            raw = bytes(got[key])
            assert len(raw) == value["length"] and hashlib.sha256(raw).hexdigest() == value["sha256"]
        else:
            assert got.get(key) == value, key


def test_a_tokenizer_is_left_out_if_asked_for(tmp_path):
    shutil.copytree(VOCABULARIES / "bpe-llama3", tmp_path / "in", copy_function=shutil.copyfile)
    config = json.loads((tmp_path / "in/config.json").read_text()) | {"num_hidden_layers": 1, "num_key_value_heads": 4}
    (tmp_path / "in/config.json").write_text(json.dumps(config))
    write_llama(tmp_path / "in", config["vocab_size"])
    said = weighbridge("convert", tmp_path / "in", tmp_path / "out.gguf", "--tokenizer", "none").stdout
    keys = keys_of(gguf.GGUFReader(tmp_path / "out.gguf"))
    assert "loss tokenizer" in said and keys["tokenizer.ggml.model"][1] == "none" and "tokenizer.ggml.tokens" not in keys
    assert keys["llama.vocab_size"] == ("UINT32", config["vocab_size"])
    weighbridge("convert", tmp_path / "in", tmp_path / "out.safetensors", "--tokenizer", "none", status=2)


def test_a_setting_that_nothing_knows_is_refused_by_name_or_ignored(tmp_path):
    folder = copy("llama", tmp_path / "in", {"attention_sink_decay": 0.5, "hidden_act": "silu", "off": False})
    said = weighbridge("convert", folder, tmp_path / "out.gguf", status=1).stderr
    assert "attention_sink_decay" in said and "--ignore-setting" in said and "off" not in said
    assert "attention_sink_decay" in weighbridge("convert", folder, tmp_path / "out.gguf", "--ignore-setting", "attention_sink_decay").stdout
    folder = copy("qwen3moe", tmp_path / "moe", {"norm_topk_prob": False})
    weighbridge("convert", folder, tmp_path / "moe.gguf", status=3)
    weighbridge("convert", folder, tmp_path / "moe.gguf", "--ignore-setting", "norm_topk_prob")


def values_of(path):
    """The tensors of a .safetensors as f32."""
    raw = path.read_bytes()
    size, = struct.unpack_from("<Q", raw)
    out = {}
    for name, each in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__":
            continue
        first, last = each["data_offsets"]
        data = raw[8 + size + first:8 + size + last]
        if each["dtype"] == "BF16":
            values = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
        else:
            values = np.frombuffer(data, "<f4" if each["dtype"] == "F32" else "<f2").astype("<f4")
        out[name] = values.reshape(each["shape"])
    return out


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("bert", "roberta", "modernbert", "t5")])
def test_a_gguf_becomes_the_folder_again(tmp_path, name):
    weighbridge("convert", FOLDERS / name, tmp_path / "out.gguf", "--allow", "attribute")
    weighbridge("convert", tmp_path / "out.gguf", f"{tmp_path}/back/", "--allow", "attribute,tokenizer")
    one, other = values_of(FOLDERS / name / "model.safetensors"), values_of(tmp_path / "back/model.safetensors")
    assert sorted(one) == sorted(other)
    for tensor, values in one.items():
        bf16 = (np.ascontiguousarray(other[tensor]).view("<u4") + 0x7FFF + (other[tensor].view("<u4") >> 16 & 1)) & 0xFFFF0000
        assert np.array_equal(values, bf16.view("<f4").reshape(values.shape)), tensor
    before, after = (json.loads((path / "config.json").read_text()) for path in (FOLDERS / name, tmp_path / "back"))
    # Spelled as in transformers 4; what is null is left out.
    others = {"rope_parameters", "layer_types", "dtype", "n_ctx", "no_rope_layers", "_sliding_window_pattern", "head_dim", "mlp_bias", "num_local_experts"}
    assert {key: after.get(key) for key, value in before.items() if value and key not in others} == {
        key: value for key, value in before.items() if value and key not in others}
    # And that folder is the same model for llama.cpp.
    weighbridge("convert", tmp_path / "back", tmp_path / "again.gguf", "--cast", "f32", "--allow", "attribute")
    expected = json.loads((FOLDERS / name / "expected.json").read_text())
    keys = keys_of(gguf.GGUFReader(tmp_path / "again.gguf"))
    for key, value in expected["metadata"].items():
        if not key.startswith("general."):
            assert keys.get(key) == tuple(value), key


@pytest.mark.parametrize("name", ["llama", "mixtral", "gpt2", "qwen2moe", "gptoss", "deepseek3", "gemma3"])
def test_what_is_unstacked_or_reordered_gets_the_dtype_of_dequantize_too(tmp_path, name):
    """Every expert of a Mixtral, and q and k of a Llama, stayed f32; and config.json contradicted its tensors."""
    weighbridge("convert", FOLDERS / name, tmp_path / "q.gguf", "--quantize", "q8_0", "--allow", "attribute")
    blocks = sum(int(t.n_elements) for t in gguf.GGUFReader(tmp_path / "q.gguf").tensors if t.tensor_type.name in ("Q8_0", "BF16"))
    for dtype in "f32", "bf16":
        weighbridge("convert", tmp_path / "q.gguf", f"{tmp_path}/{dtype}/", "--dequantize", dtype, "--allow", "attribute,tokenizer")
    weighbridge("convert", tmp_path / "q.gguf", f"{tmp_path}/cast/", "--dequantize", "bf16", "--cast", "bf16", "--allow", "attribute,tokenizer")
    wide, narrow, cast = (values_of(tmp_path / each / "model.safetensors") for each in ("f32", "bf16", "cast"))
    for tensor, values in wide.items():  # as ml_dtypes and torch round: to the nearest, ties to even
        bits = np.ascontiguousarray(values).view("<u4")
        rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view("<f4").reshape(values.shape)
        assert np.array_equal(cast[tensor], rounded), tensor
        assert np.array_equal(narrow[tensor], rounded) or np.array_equal(narrow[tensor], values), tensor
    data = (tmp_path / "bf16/model.safetensors").read_bytes()
    header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
    assert blocks == sum(math.prod(each["shape"]) for each in header.values() if each.get("dtype") == "BF16") > 0
    config = json.loads((tmp_path / "bf16/config.json").read_text())
    assert {config[key] for key in ("dtype", "torch_dtype") if key in config} == {"bfloat16"}


def test_an_encoder_or_t5_is_refused_on_the_way_back(tmp_path):
    for name in ("roberta", "modernbert", "t5", "bert"):
        weighbridge("convert", FOLDERS / name, tmp_path / f"{name}.gguf", "--quantize", "q8_0", "--naming", "llama", "--allow", "tokenizer,attribute")
        for flags in ([], ["--allow", "attribute,attribute-type,tokenizer,layout"]):
            done = weighbridge("convert", tmp_path / f"{name}.gguf", f"{tmp_path}/{name}/", "--dequantize", "bf16", *flags, status=3)
            assert "general.architecture" in done.stderr and not (tmp_path / name).exists()


def changed(tmp_path, name, keys, drop=(), tensors=None):
    """The GGUF of a folder with other metadata and more tensors."""
    weighbridge("convert", FOLDERS / name, tmp_path / "plain.gguf", "--allow", "attribute", "--cast", "f32")
    architecture = gguf.GGUFReader(tmp_path / "plain.gguf").fields["general.architecture"].contents()
    keys, drop = ({f"{architecture}.{key}": value for key, value in given.items()} for given in (keys, dict.fromkeys(drop)))

    def add(writer):
        writer.add_tokenizer_model("none")
        for key, value in keys.items():
            {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}[type(value)](key, value)
    rewrite(tmp_path / "plain.gguf", tmp_path / "out.gguf", add, [*keys, *drop], tensors)
    return tmp_path / "out.gguf"


# llama.cpp takes these for what is absent, or for no type; transformers has 1e6, 2e6, 5e5, 0.5, 1 and a window of 4096 for its classes.
@pytest.mark.parametrize("name, keys, drop, setting, value", [
    ("mixtral", {}, ["rope.freq_base"], "rope_theta", 10000.0),
    ("smollm3", {}, ["rope.freq_base"], "rope_theta", 10000.0),
    ("cohere", {}, ["rope.freq_base"], "rope_theta", 10000.0),
    ("phi2", {"rope.dimension_count": 8}, [], "partial_rotary_factor", 1.0),
    ("gemma", {"rope.freq_base": 10000.0}, [], "rope_theta", 10000.0),
    ("granite", {}, ["attention.scale"], "attention_multiplier", 1 / 8 ** 0.5),
    ("mistral", {}, [], "sliding_window", None),
    ("starcoder2", {}, [], "num_key_value_heads", 2),
    ("llama", {"rope.scaling.factor": 4.0}, [], "rope_scaling", {"rope_type": "linear", "factor": 4.0}),
    ("llama", {"rope.scale_linear": 4.0}, [], "rope_scaling", {"rope_type": "linear", "factor": 4.0}),
])
def test_a_folder_says_what_transformers_would_fill_in_otherwise(tmp_path, name, keys, drop, setting, value):
    weighbridge("convert", changed(tmp_path, name, keys, drop), f"{tmp_path}/back/", "--allow", "attribute")
    assert json.loads((tmp_path / "back/config.json").read_text())[setting] == value


def f32(*shape):
    return np.ones(shape, np.float32)


# transformers computes without these, or opens no such folder: they were left out, or became settings that mean something else.
@pytest.mark.parametrize("name, keys, tensors, words, status", [
    ("qwen2", {"attention.causal": False}, {}, "attention.causal", 2),
    ("qwen2", {"rope.dimension_count": 2}, {}, "rope.dimension_count", 2),
    ("qwen2", {"attention.value_length": 4}, {}, "different sizes", 2),
    ("llama", {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0, "rope.scaling.attn_factor": 2.0}, {}, "attn_factor", 2),
    ("llama", {}, {"rope_factors_long.weight": f32(4)}, "long and for short", 2),
    ("phi3", {}, {"rope_factors_long.weight": f32(4)}, "long and for short", 2),
    ("phi3", {}, {"rope_factors_long.weight": f32(4) * np.nan, "rope_factors_short.weight": f32(4)}, "a factor for each two", 2),
    ("phi3", {"rope.scaling.factor": 2.0}, {"rope_factors_long.weight": f32(4), "rope_factors_short.weight": f32(4)}, "two ways", 2),
    ("llama31", {"rope.scaling.factor": 2.0}, {}, "two ways", 2),
    ("deepseek2", {"rope.dimension_count": 100}, {}, "besides those that are rotated", 2),
    ("gemma", {"rope.freq_base": 20000.0}, {}, "rope_theta", 2),
    ("llama", {"attention.head_count_kv": 3}, {}, "do not divide", 2),
    ("qwen3", {}, {"blk.0.attn_q.bias": f32(64)}, "attn_q.bias", 3),
    ("llama", {}, {"blk.0.attn_norm.bias": f32(32)}, "attn_norm.bias", 3),
    ("llama", {}, {"blk.0.attn_q_norm.weight": f32(8)}, "attn_q_norm.weight", 3),
    ("mixtral", {}, {"blk.0.ffn_up.weight": f32(48, 32)}, "ffn_up.weight", 3),
])
def test_what_transformers_does_not_compute_is_no_folder(tmp_path, name, keys, tensors, words, status):
    path = changed(tmp_path, name, keys, tensors=tensors)
    assert words in weighbridge("convert", path, f"{tmp_path}/back/", "--allow", "attribute,attribute-type", status=status).stderr


def test_blocks_need_dequantize_to_become_a_folder(tmp_path):
    weighbridge("convert", FOLDERS / "llama", tmp_path / "out.gguf", "--quantize", "q8_0")
    assert "dequantiz" in weighbridge("convert", tmp_path / "out.gguf", f"{tmp_path}/back/", "--allow", "attribute,tokenizer", status=1).stderr
    weighbridge("convert", tmp_path / "out.gguf", f"{tmp_path}/back/", "--dequantize=f32", "--allow", "attribute,tokenizer")
    one, other = values_of(FOLDERS / "llama/model.safetensors"), values_of(tmp_path / "back/model.safetensors")
    assert sorted(one) == sorted(other) and all(np.abs(one[name] - other[name]).max() <= 0.01 * np.abs(one[name]).max() for name in one)


# Rows that no folder of the test data has. The order is that of the converter of llama.cpp, which was compared once.
def small(folder, class_name, shapes, **config):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"architectures": [class_name], "vocab_size": 16, "hidden_size": 8, "num_hidden_layers": 1,
                                                    "num_attention_heads": 4, "num_key_value_heads": 4, **config}))
    write_weights(folder, shapes)
    return values_of(folder / "model.safetensors")


def test_queries_keys_and_values_of_groups_are_sorted(tmp_path):
    """GPT-NeoX has one group for each head, Falcon one for each key."""
    tail = {"attention.dense.weight": (8, 8), "mlp.dense_h_to_4h.weight": (32, 8), "mlp.dense_4h_to_h.weight": (8, 32),
            "input_layernorm.weight": (8,), "post_attention_layernorm.weight": (8,), "attention.query_key_value.weight": (24, 8),
            "attention.query_key_value.bias": (24,)}
    values = small(tmp_path / "neox", "GPTNeoXForCausalLM", {"gpt_neox.embed_in.weight": (16, 8), "embed_out.weight": (16, 8),
                   "gpt_neox.final_layer_norm.weight": (8,)} | {"gpt_neox.layers.0." + name: shape for name, shape in tail.items()},
                   model_type="gpt_neox", intermediate_size=32, max_position_embeddings=32, rotary_pct=0.5)
    reader = convert(tmp_path / "neox", tmp_path / "neox.gguf")
    tensors = {each.name: np.array(each.data) for each in reader.tensors}
    for end, size in ((".weight", (24, 8)), (".bias", (24,))):
        given = values["gpt_neox.layers.0.attention.query_key_value" + end].reshape((4, 3, 2) + size[1:])
        assert np.array_equal(tensors["blk.0.attn_qkv" + end], np.swapaxes(given, 0, 1).reshape(size))
    assert keys_of(reader)["gptneox.rope.dimension_count"] == ("UINT32", 1) and keys_of(reader)["gptneox.use_parallel_residual"] == ("BOOL", True)
    tail = {"self_attention.dense.weight": (8, 8), "mlp.dense_h_to_4h.weight": (32, 8), "mlp.dense_4h_to_h.weight": (8, 32), "ln_mlp.weight": (8,),
            "ln_attn.weight": (8,), "self_attention.query_key_value.weight": (16, 8)}
    values = small(tmp_path / "falcon", "FalconForCausalLM", {"transformer.word_embeddings.weight": (16, 8), "transformer.ln_f.weight": (8,)} |
                   {"transformer.h.0." + name: shape for name, shape in tail.items()}, model_type="falcon", new_decoder_architecture=True, num_kv_heads=2)
    reader = convert(tmp_path / "falcon", tmp_path / "falcon.gguf")
    given = values["transformer.h.0.self_attention.query_key_value.weight"].reshape(2, 4, 2, 8)
    wanted = np.concatenate([given[:, :2].reshape(8, 8), given[:, 2].reshape(4, 8), given[:, 3].reshape(4, 8)])
    assert np.array_equal({each.name: each.data for each in reader.tensors}["blk.0.attn_qkv.weight"], wanted)
    assert keys_of(reader)["falcon.attention.head_count_kv"] == ("UINT32", 2) and keys_of(reader)["falcon.tensor_data_layout"][1] == "jploski"


# transformers 5.24 opened each of these folders, and gave the logits of the folder before: num_key_value_heads and intermediate_size are no
# settings of these classes.
@pytest.mark.parametrize("heads, norms, said", [
    (1, ["input_layernorm"], {"multi_query": True, "new_decoder_architecture": False}),
    (4, ["input_layernorm"], {"multi_query": False, "new_decoder_architecture": False}),
    (2, ["ln_attn", "ln_mlp"], {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 2}),
    (2, ["input_layernorm"], {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1}),
])
def test_a_falcon_becomes_the_folder_again(tmp_path, heads, norms, said):
    tail = {"self_attention.dense": (8, 8), "mlp.dense_h_to_4h": (24, 8), "mlp.dense_4h_to_h": (8, 24),
            "self_attention.query_key_value": (2 * (4 + 2 * heads), 8)} | {name: (8,) for name in norms}
    one = small(tmp_path / "in", "FalconForCausalLM", {"transformer.word_embeddings.weight": (16, 8), "transformer.ln_f.weight": (8,)} |
                {f"transformer.h.0.{name}.weight": shape for name, shape in tail.items()}, model_type="falcon", ffn_hidden_size=24,
                **{"num_kv_heads": heads, **said})
    weighbridge("convert", tmp_path / "in", tmp_path / "out.gguf", "--allow", "attribute")
    weighbridge("convert", tmp_path / "out.gguf", f"{tmp_path}/back/")
    other, config = values_of(tmp_path / "back/model.safetensors"), json.loads((tmp_path / "back/config.json").read_text())
    assert sorted(one) == sorted(other) and all(np.array_equal(one[name], other[name]) for name in one)
    assert config["ffn_hidden_size"] == 24 and said.items() <= config.items() and not {"num_key_value_heads", "intermediate_size"} & set(config)


def test_gpt2_says_the_size_of_its_mlp_in_its_own_setting(tmp_path):
    weighbridge("convert", FOLDERS / "gpt2", tmp_path / "out.gguf", "--allow", "attribute")
    weighbridge("convert", tmp_path / "out.gguf", f"{tmp_path}/back/", "--allow", "attribute")
    config = json.loads((tmp_path / "back/config.json").read_text())
    assert config["n_inner"] == 128 and "intermediate_size" not in config


def test_cohere2_states_its_window_and_its_rotation(tmp_path):
    layer = {f"self_attn.{each}_proj.weight": (8, 8) for each in "qkvo"} | {"mlp.gate_proj.weight": (12, 8), "mlp.up_proj.weight": (12, 8),
             "mlp.down_proj.weight": (8, 12), "input_layernorm.weight": (8,)}
    small(tmp_path / "in", "Cohere2ForCausalLM", {"model.embed_tokens.weight": (16, 8), "model.norm.weight": (8,)} |
          {"model.layers.0." + name: shape for name, shape in layer.items()}, model_type="cohere2", intermediate_size=12, head_dim=2, sliding_window=16)
    keys = keys_of(convert(tmp_path / "in", tmp_path / "out.gguf"))
    for key, value in {"attention.sliding_window": 16, "rope.dimension_count": 2, "logit_scale": 0.0625, "rope.scaling.type": "none"}.items():
        assert keys["cohere2." + key][1] == value


def test_nomic_bert_with_experts_has_a_matrix_for_each(tmp_path):
    tensors = {name: shape for name, (_, shape) in NOMIC_TENSORS.items() if ".mlp." not in name}
    tensors |= {"encoder.layers.0.mlp.router.layer.weight": (4, 8), "encoder.layers.0.mlp.experts.mlp.w1": (48, 8),
                "encoder.layers.0.mlp.experts.mlp.w2": (48, 8)}
    folder = tmp_path / "in"
    folder.mkdir()
    config = {**NOMIC, "activation_function": "gelu", "n_positions": 2048, "moe_every_n_layers": 1, "num_experts": 4, "moe_top_k": 2,
              "qkv_proj_bias": True, "mlp_fc1_bias": True, "mlp_fc2_bias": True}
    (folder / "config.json").write_text(json.dumps(config))
    write_weights(folder, tensors)
    values = values_of(folder / "model.safetensors")
    reader = convert(folder, tmp_path / "out.gguf", "--allow", "attribute")
    made = {each.name: each.data for each in reader.tensors}
    assert np.array_equal(made["blk.0.ffn_up_exps.weight"], values["encoder.layers.0.mlp.experts.mlp.w1"].reshape(4, 12, 8))
    assert np.array_equal(made["blk.0.ffn_down_exps.weight"], values["encoder.layers.0.mlp.experts.mlp.w2"].reshape(4, 12, 8).swapaxes(1, 2))
    keys = keys_of(reader)
    assert keys["general.architecture"][1] == "nomic-bert-moe" and keys["nomic-bert-moe.context_length"][1] == 512
    assert keys["nomic-bert-moe.expert_used_count"][1] == 2 and keys["nomic-bert-moe.moe_every_n_layers"][1] == 1


def test_blocks_of_gpt_oss_keep_their_codes(tmp_path):
    """gate and up alternate as rows; byte j has elements 2j and 2j+1 there, and j and j+16 in GGML."""
    folder = copy("gptoss", tmp_path / "in", {"quantization_config": {"quant_method": "mxfp4"}})
    raw = (folder / "model.safetensors").read_bytes()
    size, = struct.unpack_from("<Q", raw)
    old, header, payload, rng, blocks = json.loads(raw[8:8 + size]), {}, b"", np.random.default_rng(3), {}
    for name, each in old.items():
        if name == "__metadata__":
            continue
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            first, last = each["data_offsets"]
            header[name] = each | {"data_offsets": [len(payload), len(payload) + last - first]}
            payload += raw[8 + size + first:8 + size + last]
            continue
        experts, columns, rows = each["shape"]
        for end, shape, last in (("_blocks", [experts, rows, columns // 32, 16], 256), ("_scales", [experts, rows, columns // 32], 140)):
            blocks[name + end] = rng.integers(0, last, shape, dtype=np.uint8)
            header[name + end] = {"dtype": "U8", "shape": shape, "data_offsets": [len(payload), len(payload) + blocks[name + end].size]}
            payload += blocks[name + end].tobytes()
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + payload)
    weighbridge("convert", folder, tmp_path / "out.gguf", "--allow", "attribute")
    made = {each.name: each for each in gguf.GGUFReader(tmp_path / "out.gguf").tensors}
    for to, name, rows in (("gate", "gate_up_proj", slice(0, None, 2)), ("up", "gate_up_proj", slice(1, None, 2)), ("down", "down_proj", slice(None))):
        codes, scales = (blocks[f"model.layers.1.mlp.experts.{name}{end}"][:, rows] for end in ("_blocks", "_scales"))
        flat = np.stack([codes & 15, codes >> 4], -1).reshape(*codes.shape[:-1], 32)
        wanted = np.concatenate([scales[..., None], flat[..., :16] | flat[..., 16:] << 4], -1)
        assert made[f"blk.1.ffn_{to}_exps.weight"].tensor_type.name == "MXFP4"
        assert bytes(made[f"blk.1.ffn_{to}_exps.weight"].data) == wanted.tobytes()


# Vocabularies of a GGUF as files of a folder.
RULES = FOLDERS.parent / "tokenizers_golden.json"


def back_and_again(tmp_path, folder):
    """The folder of the folder's GGUF, and the metadata of both GGUF."""
    weighbridge("convert", folder, tmp_path / "out.gguf", "--allow", "attribute,tokenizer")
    weighbridge("convert", tmp_path / "out.gguf", f"{tmp_path}/back/", "--allow", "attribute,tokenizer")
    weighbridge("convert", tmp_path / "back", tmp_path / "again.gguf", "--allow", "attribute,tokenizer")
    return [{key: value for key, value in keys_of(gguf.GGUFReader(tmp_path / name)).items() if key.startswith("tokenizer.")}
            for name in ("out.gguf", "again.gguf")]


@pytest.mark.parametrize("name", ["bpe-gpt2", "bpe-llama3", "bpe-qwen2", "spm-llama"])
def test_a_vocabulary_becomes_files_of_a_folder_again(tmp_path, name):
    tokenizers = pytest.importorskip("tokenizers")
    folder = tmp_path / "in"
    shutil.copytree(VOCABULARIES / name, folder, copy_function=shutil.copyfile)
    (folder / "expected.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    config |= {"architectures": ["MistralForCausalLM"], "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4,
               "num_key_value_heads": 4, "max_position_embeddings": 96, "rms_norm_eps": 1e-6, "model_type": "mistral"}
    (folder / "config.json").write_text(json.dumps(config))
    write_llama(folder, config["vocab_size"])
    one, other = back_and_again(tmp_path, folder)
    assert one == other
    if name != "spm-llama":
        was, now = (tokenizers.Tokenizer.from_file(str(path / "tokenizer.json")) for path in (folder, tmp_path / "back"))
        texts = [text for text in json.loads(RULES.read_text())["texts"] if unicodedata.is_normalized("NFC", text)]  # which no GGUF says
        assert len(texts) > 90
        for text in texts:
            for special in (False, True):
                assert was.encode(text, add_special_tokens=special).ids == now.encode(text, add_special_tokens=special).ids, text


def test_rules_of_words_become_those_of_tokenizer_json_again(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    golden = json.loads(RULES.read_text())
    for name, rule in golden["rules"].items():
        folder = tmp_path / name / "in"
        folder.mkdir(parents=True)
        (folder / "tokenizer.json").write_text(json.dumps(rule["tokenizer"]) if isinstance(rule["tokenizer"], dict) else rule["tokenizer"])
        rows = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab_size()
        config = {"architectures": ["MistralForCausalLM"], "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "model_type": "mistral",
                  "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 96, "rms_norm_eps": 1e-6, "vocab_size": rows}
        (folder / "config.json").write_text(json.dumps(config))
        write_llama(folder, rows)
        back_and_again(tmp_path / name, folder)
        now = tokenizers.Tokenizer.from_file(str(tmp_path / name / "back/tokenizer.json"))
        assert [now.encode(text, add_special_tokens=False).ids for text in golden["texts"]] == rule["ids"], name


def rewrite(source, target, add, drop=(), tensors=None):
    """A GGUF without its tokenizer and these keys, with what `add` gives to the writer, and with more tensors."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name not in ("general.architecture", "tokenizer.ggml.model", *drop):
            writer.add_key_value(field.name, field.contents(), field.types[0], field.types[1] if len(field.types) > 1 else None)
    add(writer)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, np.array(tensor.data), raw_dtype=tensor.tensor_type)
    for name, values in (tensors or {}).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_an_added_token_of_many_spaces_takes_no_minutes(tmp_path):
    """Each space moved all that follows it: 253 s."""
    folder = tmp_path / "in"
    shutil.copytree(VOCABULARIES / "spm-llama", folder, copy_function=shutil.copyfile)
    (folder / "expected.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    config |= {"architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4,
               "num_key_value_heads": 4, "max_position_embeddings": 96, "rms_norm_eps": 1e-6, "model_type": "llama"}
    (folder / "config.json").write_text(json.dumps(config))
    write_llama(folder, config["vocab_size"])
    settings = {"added_tokens_decoder": {"5": {"content": "\u2581" * 400_000, "special": False}, "6": {"content": "x\u2581\u2581y", "special": False}}}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, ensure_ascii=False))
    weighbridge("convert", folder, tmp_path / "out.gguf", "--allow", "attribute,tokenizer")
    tokens = keys_of(gguf.GGUFReader(tmp_path / "out.gguf"))["tokenizer.ggml.tokens"][1]
    assert tokens[5] == " " * 400_000 and tokens[6] == "x  y"


PIECES = ["<unk>", "<s>", "</s>", "\u2581", "a", "b", "\u2581a", "  ", "<|user|>", "<|end|>"]
# AutoTokenizer of transformers 5.24 gave these with the folder. Where "legacy" is absent, "a" alone (4) follows an added token.
IDS_OF_PIECES = {"ab": [1, 6, 5], "a  b<|user|>a": [1, 6, 7, 3, 5, 8, 6], "a<|user|>ab": [1, 6, 8, 6, 5], "a<|end|>ab": [1, 6, 9, 6, 5]}


def test_texts_after_added_tokens_are_divided_as_in_llama_cpp(tmp_path):
    weighbridge("convert", FOLDERS / "llama", tmp_path / "none.gguf")

    def add(writer):
        writer.add_tokenizer_model("llama")
        writer.add_token_list(PIECES + [f"t{i}" for i in range(len(PIECES), 72)])
        writer.add_token_types([2, 3, 3, 1, 1, 1, 1, 4, 4, 3] + [1] * (72 - len(PIECES)))
        writer.add_token_scores([0.0] * 3 + [-float(i) for i in range(69)])
    rewrite(tmp_path / "none.gguf", tmp_path / "out.gguf", add)
    weighbridge("convert", tmp_path / "out.gguf", f"{tmp_path}/back/", "--allow", "attribute")
    assert json.loads((tmp_path / "back/tokenizer_config.json").read_text())["legacy"] is True
    for text, ids in IDS_OF_PIECES.items():
        if "<|end|>" in text:
            continue  # of type control, which a text does not spell here
        assert json.loads(weighbridge("tokenize", tmp_path / "out.gguf", text, "--json").stdout)["inputs"][0]["ids"] == ids, text
    if not TRANSFORMERS.exists():
        pytest.skip(f"{TRANSFORMERS} is missing: make interop PEER=torch makes it, and $TORCH_PYTHON names another with transformers")
    done = subprocess.run([TRANSFORMERS, "-c", "import json, sys, transformers; t = transformers.AutoTokenizer.from_pretrained(sys.argv[1]); "
                           "print(json.dumps([t(text).input_ids for text in json.loads(sys.argv[2])]))", f"{tmp_path}/back",
                           json.dumps(list(IDS_OF_PIECES))], capture_output=True, text=True, timeout=120)
    if "No module named" in done.stderr:
        pytest.skip(f"{TRANSFORMERS}: {done.stderr.splitlines()[-1]}")
    assert json.loads(done.stdout) == list(IDS_OF_PIECES.values()), done.stderr[-2000:]


def test_a_vocabulary_of_an_unknown_kind_is_a_loss_and_none_is_none(tmp_path):
    weighbridge("convert", FOLDERS / "llama", tmp_path / "none.gguf")
    assert "loss" not in weighbridge("convert", tmp_path / "none.gguf", f"{tmp_path}/none/").stdout
    assert "loss tokenizer" not in weighbridge("convert", FOLDERS / "llama", tmp_path / "again.gguf", "--tokenizer", "none").stdout
    rewrite(tmp_path / "none.gguf", tmp_path / "other.gguf", lambda writer: (
        writer.add_tokenizer_model("gpt2"), writer.add_tokenizer_pre("bloom"), writer.add_token_list([f"t{i}" for i in range(72)])))
    assert "bloom" in weighbridge("convert", tmp_path / "other.gguf", f"{tmp_path}/other/", "--dry-run", status=1).stdout
    weighbridge("convert", tmp_path / "other.gguf", f"{tmp_path}/other/", "--allow", "tokenizer")
    assert not (tmp_path / "other/tokenizer.json").exists()
