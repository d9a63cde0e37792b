# SPDX-License-Identifier: Apache-2.0
"""What metadata state about the model: verify finds what is untrue; conversions, merges and edits keep it true or drop it."""
import hashlib
import json
import struct

import pytest

from conftest import floats, safetensors, weighbridge
from test_parts import gguf, text

LORA = floats(*[i / 64 for i in range(64)])
RIGHT = hashlib.sha256(LORA).hexdigest()
NOTHING = hashlib.sha256(b"").hexdigest()


def lora(path, stated, data=LORA, **more):
    metadata = {"sshs_model_hash": stated, "modelspec.hash_sha256": "0x" + stated, "ss_network_dim": "4", **more}
    path.write_bytes(safetensors({"lora_unet_a.lora_down.weight": ("F32", [4, len(data) // 16], data)}, metadata))
    return path


def metadata_of(path):
    return json.loads(weighbridge("inspect", "--json", path).stdout)["files"][0]["attributes"]


def test_a_stated_hash_of_the_tensors_is_checked(tmp_path):
    """One trainer wrote the hash of nothing into every file, and no tool noticed."""
    assert "claim/" not in weighbridge("verify", lora(tmp_path / "good.safetensors", RIGHT)).stdout
    for path in (lora(tmp_path / "empty.safetensors", NOTHING),
                 lora(tmp_path / "damaged.safetensors", RIGHT, bytes([LORA[0] ^ 1]) + LORA[1:])):
        said = weighbridge("verify", path).stdout
        assert said.count("claim/data-hash") == 2 and "sshs_model_hash" in said and "modelspec.hash_sha256" in said
        # The message has the hash that the file should state.
        assert hashlib.sha256(path.read_bytes()[8 + struct.unpack("<Q", path.read_bytes()[:8])[0]:]).hexdigest() in said
        assert "claim/data-hash" in weighbridge("doctor", path, status=1).stdout


def test_a_conversion_keeps_a_stated_hash_only_where_it_stays_true(tmp_path):
    source = lora(tmp_path / "in.safetensors", RIGHT)
    weighbridge("convert", source, tmp_path / "same.safetensors")
    assert metadata_of(tmp_path / "same.safetensors")["sshs_model_hash"] == RIGHT
    for out, flags in (("cast.safetensors", ["--cast", "f16"]), ("other.zt", []), ("other.gguf", []),
                       ("canonical.safetensors", ["--canonical"])):
        said = weighbridge("convert", source, tmp_path / out, *flags).stdout
        assert 'change attribute: attributes["sshs_model_hash"]' in said and "dropped" in said
        assert not {"sshs_model_hash", "modelspec.hash_sha256"} & set(metadata_of(tmp_path / out))
        assert metadata_of(tmp_path / out)["ss_network_dim"] == "4"
        weighbridge("verify", tmp_path / out)


def legacy_hash(data, names, training):
    """As kohya's scripts compute it: of a file with only the metadata ss_..."""
    file = safetensors({"lora_unet_a.lora_down.weight": ("F32", [4, len(data) // 16], data)}, training)
    assert names == ["lora_unet_a.lora_down.weight"]
    return hashlib.sha256(file[0x100000:0x110000]).hexdigest()[:8]


def test_the_legacy_hash_of_kohya_is_checked_and_goes_with_its_metadata(tmp_path):
    data = floats(*[i / 64 for i in range(300_000)])
    legacy = legacy_hash(data, ["lora_unet_a.lora_down.weight"], {"ss_network_dim": "4"})
    path = lora(tmp_path / "in.safetensors", hashlib.sha256(data).hexdigest(), data, sshs_legacy_hash=legacy, title="a")
    assert "claim/" not in weighbridge("verify", path).stdout
    wrong = lora(tmp_path / "wrong.safetensors", hashlib.sha256(data).hexdigest(), data, sshs_legacy_hash="00000000")
    assert legacy in weighbridge("verify", wrong).stdout
    # An edit of other metadata leaves it true.
    weighbridge("edit", path, "--set", "title=b", "-o", tmp_path / "titled.safetensors")
    assert "claim/" not in weighbridge("verify", tmp_path / "titled.safetensors").stdout
    assert metadata_of(tmp_path / "titled.safetensors")["sshs_legacy_hash"] == legacy
    # One of the training metadata, or of a name, does not: it is dropped, and the edit lists it.
    for flags in (["--set", "ss_network_dim=8"], ["--rename", "lora_unet_a.lora_down.weight=x"]):
        out = tmp_path / "edited.safetensors"
        said = weighbridge("edit", path, *flags, "-o", out, "--force").stdout
        assert "sshs_legacy_hash" in said
        assert "sshs_legacy_hash" not in metadata_of(out) and "sshs_model_hash" in metadata_of(out)
        assert "claim/" not in weighbridge("verify", out).stdout


def numbers(key, value):
    return key, 4, struct.pack("<I", value)


def test_gguf_states_the_types_of_its_tensors(tmp_path):
    source = tmp_path / "in.gguf"
    source.write_bytes(gguf(["a", "b"], [("general.architecture", 8, text("x")), numbers("general.file_type", 0)]))
    weighbridge("convert", source, tmp_path / "half.gguf", "--cast", "f16")
    assert metadata_of(tmp_path / "half.gguf")["general.file_type"] == 1
    wide = tmp_path / "wide.safetensors"
    wide.write_bytes(safetensors({"a": ("F32", [32, 32], floats(*range(1024)))}))
    weighbridge("convert", wide, tmp_path / "wide.gguf")
    weighbridge("edit", tmp_path / "wide.gguf", "--set", "general.file_type:u32=0", "-o", tmp_path / "typed.gguf")
    weighbridge("convert", tmp_path / "typed.gguf", tmp_path / "q8.gguf", "--quantize", "q8_0")
    assert metadata_of(tmp_path / "q8.gguf")["general.file_type"] == 7
    weighbridge("edit", tmp_path / "q8.gguf", "--set", "general.quantization_version:u32=2", "-o", tmp_path / "q.gguf")
    said = weighbridge("convert", tmp_path / "q.gguf", tmp_path / "dense.gguf", "--dequantize", "f16").stdout
    found = metadata_of(tmp_path / "dense.gguf")
    assert found["general.file_type"] == 1 and "general.quantization_version" not in found
    assert "general.quantization_version" in said


H, V = 4, 6


def folder(path, tied=True, head=None, dtype="float32", **config):
    path.mkdir()
    embed = floats(*[i / 8 for i in range(H * V)])
    tensors = {"model.embed_tokens.weight": ("F32", [V, H], embed), "model.norm.weight": ("F32", [H], floats(*[1] * H))}
    if head is not None:
        tensors["lm_head.weight"] = ("F32", [V, H], embed if head == "same" else floats(*[9] * H * V))
    (path / "model.safetensors").write_bytes(safetensors(tensors, {"format": "pt"}))
    (path / "config.json").write_text(json.dumps(
        {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": V, "hidden_size": H, "torch_dtype": dtype,
         "tie_word_embeddings": tied, **config}))
    return path


def test_verify_compares_tied_embeddings(tmp_path):
    assert "claim/" not in weighbridge("verify", folder(tmp_path / "same", head="same")).stdout
    assert "claim/" not in weighbridge("verify", folder(tmp_path / "untied", tied=False, head="other")).stdout
    said = weighbridge("verify", folder(tmp_path / "differs", head="other")).stdout
    assert "claim/tied" in said and "lm_head.weight" in said and "tie_word_embeddings" in said


def test_verify_names_ids_of_tokens_that_are_not_there(tmp_path):
    good = folder(tmp_path / "good", bos_token_id=1, eos_token_id=[2, 5], pad_token_id=None)
    (good / "generation_config.json").write_text(json.dumps({"eos_token_id": 5, "max_new_tokens": 99}))
    assert "claim/" not in weighbridge("verify", good).stdout
    bad = folder(tmp_path / "bad", bos_token_id=1, eos_token_id=[2, 6], pad_token_id=-1)
    (bad / "generation_config.json").write_text(json.dumps({"pad_token_id": 300}))
    said = weighbridge("verify", bad).stdout
    assert said.count("claim/token-id") == 2
    assert "eos_token_id is 6, and there are 6 tokens" in said
    assert "generation_config.json" in said and "pad_token_id is 300, and there are 6 tokens" in said


def test_an_edit_sets_no_id_of_a_token_that_is_not_there(tmp_path):
    words = b"".join(map(text, "abc"))
    values = [("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 3) + words), numbers("tokenizer.ggml.bos_token_id", 2)]
    path = tmp_path / "in.gguf"
    path.write_bytes(gguf(["a"], values))
    assert "claim/" not in weighbridge("verify", path).stdout
    said = weighbridge("edit", path, "--set", "tokenizer.ggml.bos_token_id=3", "-o", tmp_path / "out.gguf", status=2).stderr
    assert "tokenizer.ggml.bos_token_id is 3, and there are 3 tokens" in said
    weighbridge("edit", path, "--set", "tokenizer.ggml.bos_token_id=0", "-o", tmp_path / "out.gguf")
    path.write_bytes(gguf(["a"], [values[0], numbers("tokenizer.ggml.bos_token_id", 7)]))
    assert "tokenizer.ggml.bos_token_id is 7, and there are 3 tokens" in weighbridge("verify", path).stdout


def config_of(path):
    return json.loads((path / "config.json").read_text())


def test_a_cast_keeps_the_dtype_of_the_config_true(tmp_path):
    said = weighbridge("convert", folder(tmp_path / "in"), f"{tmp_path}/out/", "--to", "hf", "--cast", "bf16").stdout
    assert config_of(tmp_path / "out")["torch_dtype"] == "bfloat16" and "torch_dtype" in said
    weighbridge("convert", tmp_path / "in", f"{tmp_path}/plain/", "--to", "hf")
    assert config_of(tmp_path / "plain")["torch_dtype"] == "float32"


def adapter(path, target, module, embedding=False, whole=None):
    path.mkdir()
    a, b = ("lora_embedding_A", "lora_embedding_B") if embedding else ("lora_A.weight", "lora_B.weight")
    name = f"base_model.model.{module}."
    tensors = {name + a: ("F32", [2, V if embedding else H], floats(*[.5] * 2 * (V if embedding else H))),
               name + b: ("F32", [H if embedding else V, 2], floats(*[.5] * 2 * (H if embedding else V)))}
    if whole is not None:
        tensors = {f"base_model.model.{module}.weight": ("F32", [V, H], floats(*[whole] * V * H))}
    (path / "adapter_model.safetensors").write_bytes(safetensors(tensors))
    (path / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": [target], "bias": "none", "fan_in_fan_out": False}))
    return path


def values_of(model, name, tmp_path):
    out = tmp_path / "value.bin"
    weighbridge("extract", model, name, "-o", out, "--dense", "f32", "--force")
    data = out.read_bytes()
    return list(struct.unpack(f"<{len(data) // 4}f", data))


EMBED = [i / 8 for i in range(H * V)]


@pytest.mark.parametrize("head", [None, "same"])
def test_an_adapter_of_a_tied_head_unties_it(tmp_path, head):
    """The merged config.json once said that they are tied, and loaders dropped the trained head."""
    base, out = folder(tmp_path / "base", head=head), tmp_path / "merged"
    for made, expected in ((adapter(tmp_path / "lora", "lm_head", "lm_head"), [v + 1 for v in EMBED]),
                           (adapter(tmp_path / "whole", "lm_head", "lm_head", whole=9), [9.0] * len(EMBED))):
        said = weighbridge("convert", base, f"{out}/", "--to", "hf", "--merge-lora", made, "--force").stdout
        assert "tie_word_embeddings" in said
        assert config_of(out)["tie_word_embeddings"] is False
        assert values_of(out, "lm_head.weight", tmp_path) == expected
        assert values_of(out, "model.embed_tokens.weight", tmp_path) == EMBED
        assert "claim/" not in weighbridge("verify", out).stdout


@pytest.mark.parametrize("head", [None, "same"])
def test_an_adapter_of_tied_embeddings_changes_both(tmp_path, head):
    base, out = folder(tmp_path / "base", head=head), tmp_path / "merged"
    made = adapter(tmp_path / "lora", "embed_tokens", "model.embed_tokens", embedding=True)
    said = weighbridge("convert", base, f"{out}/", "--to", "hf", "--merge-lora", made).stdout
    assert "tied to" in said and config_of(out)["tie_word_embeddings"] is True
    assert values_of(out, "model.embed_tokens.weight", tmp_path) == [v + 1 for v in EMBED]
    assert "lm_head" not in weighbridge("inspect", out).stdout
    assert "claim/" not in weighbridge("verify", out).stdout


def sentencepiece(count):
    return b"".join(b"\x0a\x03\x0a\x01%c" % (97 + i) for i in range(count))


@pytest.mark.parametrize("file, of", [
    ("tokenizer.json", lambda n: json.dumps({"model": {"type": "BPE", "vocab": {f"t{i}": i for i in range(n)}, "merges": []}})),
    ("tokenizer.json", lambda n: json.dumps({"model": {"type": "Unigram", "vocab": [[f"t{i}", -1.5] for i in range(n)]}})),
    ("tokenizer.json", lambda n: json.dumps({"model": {"type": "BPE", "vocab": {"t": 0}}, "added_tokens": [{"id": n - 1, "content": "x"}]})),
    ("tokenizer_config.json", lambda n: json.dumps({"added_tokens_decoder": {str(n - 1): {"content": "x"}}})),
    ("vocab.json", lambda n: json.dumps({"a": 0, "b": n - 1})), ("added_tokens.json", lambda n: json.dumps({"x": n - 1})),
    ("tokenizer.model", sentencepiece), ("spiece.model", sentencepiece)],
    ids=["bpe", "unigram", "added", "decoder", "vocab", "added file", "sentencepiece", "spiece"])
def test_verify_compares_the_files_of_a_tokenizer_with_the_word_embeddings(tmp_path, file, of):
    model = folder(tmp_path / "model")
    for tokens in (V - 1, V, V + 1):  # fewer are padding
        (model / file).write_bytes(text if isinstance(text := of(tokens), bytes) else text.encode())
        said = weighbridge("verify", model).stdout
        assert (f"(expected at most {V}, found {V + 1})" in said and "claim/vocabulary" in said) == (tokens > V)
    assert json.loads(weighbridge("doctor", "--json", model, status=1).stdout)["files"][0]["condition"] == "suspicious"


def test_verify_compares_the_stated_vocabulary_with_the_word_embeddings(tmp_path):
    assert "claim/vocabulary" not in weighbridge("verify", folder(tmp_path / "padded", vocab_size=V - 1)).stdout
    assert "vocab_size" in weighbridge("verify", folder(tmp_path / "beyond", vocab_size=V + 1)).stdout
