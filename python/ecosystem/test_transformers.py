# SPDX-License-Identifier: Apache-2.0
"""transformers, huggingface_hub and sentence-transformers with weighbridge in the place of safetensors, on random models; and what they load
from folders that weighbridge wrote. Nothing is fetched."""
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import weighbridge as wb
import weighbridge.torch

transformers = pytest.importorskip("transformers", reason="needs transformers")


def same_state(one, two):
    one, two = one.state_dict(), two.state_dict()
    assert one.keys() == two.keys()
    for name in one:
        assert one[name].dtype == two[name].dtype and torch.equal(one[name], two[name]), name


@pytest.fixture(scope="module")
def original():
    """safetensors.torch of the package that ours stands in for."""
    ours = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "safetensors"}
    try:
        return importlib.import_module("safetensors.torch")
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "safetensors"]:
            del sys.modules[name]
        sys.modules.update(ours)


def converted(source, target, *options):
    """`weighbridge convert`, by the command of the package or the one that WEIGHBRIDGE names."""
    command = os.environ.get("WEIGHBRIDGE") or shutil.which("weighbridge", path=f"{Path(wb.__file__).parents[1]}/bin") or shutil.which("weighbridge")
    if command is None:
        pytest.skip("there is no command weighbridge")
    subprocess.run([command, "convert", str(source), str(target), *options], check=True, capture_output=True, text=True)


@pytest.fixture(scope="module")
def llama():
    torch.manual_seed(17)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=300, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, tie_word_embeddings=True))


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A folder with a random BERT and its tokenizer, as transformers saves them."""
    torch.manual_seed(18)
    folder = tmp_path_factory.mktemp("bert") / "tiny"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "truck", "lorry", "query", ":", "on", "the", "road", *"bcdefghijklmnopqrstuvwxyz",
             *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz")]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": True}))
    model = transformers.BertModel(transformers.BertConfig(vocab_size=len(words), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                                           intermediate_size=64, max_position_embeddings=128))
    model.eval()
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    return folder, model


def test_ours_is_what_they_import():
    import safetensors
    import transformers.modeling_utils as user

    assert safetensors.__name__ == "weighbridge.safetensors"
    assert user.safe_open is wb.safetensors.safe_open


@pytest.mark.parametrize("size", ["50GB", "60KB"])
def test_save_pretrained_and_from_pretrained(tmp_path, llama, size):
    llama.save_pretrained(tmp_path, max_shard_size=size)
    files = sorted(path.name for path in tmp_path.glob("*.safetensors"))
    assert (len(files) == 1) == (size == "50GB") and set(files) <= {os.path.basename(file) for file in wb.open(tmp_path).files}
    same_state(transformers.LlamaForCausalLM.from_pretrained(tmp_path), llama)
    half = transformers.LlamaForCausalLM.from_pretrained(tmp_path, dtype=torch.bfloat16)
    assert half.model.norm.weight.dtype == torch.bfloat16
    assert wb.verify(tmp_path).valid


def test_the_original_reads_what_is_saved_and_the_reverse(tmp_path, llama, original):
    assert original.__name__ == "safetensors.torch" and "weighbridge" not in original.__file__
    llama.save_pretrained(tmp_path / "ours")
    own = {name: tensor for name, tensor in llama.state_dict().items() if name != "lm_head.weight"}
    found = original.load_file(tmp_path / "ours" / "model.safetensors")
    assert found.keys() == own.keys() and all(torch.equal(found[name], own[name]) for name in own)
    shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
    original.save_file({name: tensor.to(torch.bfloat16) for name, tensor in own.items()}, tmp_path / "theirs" / "model.safetensors", {"format": "pt"})
    read = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "theirs", dtype=torch.bfloat16)
    expected = transformers.LlamaForCausalLM(llama.config)
    expected.load_state_dict(llama.state_dict())
    same_state(read, expected.to(torch.bfloat16))


def test_huggingface_hub(tmp_path, llama):
    hub = pytest.importorskip("huggingface_hub", reason="needs huggingface_hub")
    hub.save_torch_model(llama, tmp_path)
    copy = transformers.LlamaForCausalLM(llama.config)
    hub.load_torch_model(copy, tmp_path)
    same_state(copy, llama)


def test_a_mixin_of_huggingface_hub(tmp_path, caplog):
    hub = pytest.importorskip("huggingface_hub", reason="needs huggingface_hub")

    class Small(torch.nn.Module, hub.PyTorchModelHubMixin):
        def __init__(self, width=3):
            super().__init__()
            self.head = torch.nn.Linear(width, 2)

    model = Small(width=4)
    model.save_pretrained(tmp_path / "small")
    same_state(Small.from_pretrained(str(tmp_path / "small")), model)
    assert "safetensors" not in caplog.text  # it compares safetensors.__version__ with the one that can load onto a device


@pytest.mark.parametrize("container", ["zt", "safetensors"])
def test_a_llama_that_the_command_converted(tmp_path, llama, container):
    llama.save_pretrained(tmp_path / "llama")
    converted(tmp_path / "llama", tmp_path / f"a.{container}", "--allow", "file,attribute")
    converted(tmp_path / f"a.{container}", f"{tmp_path}/back/", "--to", "hf", "--allow", "file,attribute,tokenizer")
    if not (tmp_path / "back" / "config.json").exists():  # not in every container
        shutil.copy(tmp_path / "llama" / "config.json", tmp_path / "back")
    back = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "back")
    same_state(back, llama)
    ids = torch.arange(8).reshape(1, 8)
    with torch.no_grad():
        assert torch.equal(back.eval()(ids).logits, llama.eval()(ids).logits)


def test_a_folder_that_weighbridge_wrote(tmp_path, bert):
    folder, model = bert
    wb.convert(folder, tmp_path / "copy.zt", encoding="zstd")
    wb.convert(tmp_path / "copy.zt", f"{tmp_path}/back/", allow=["attribute", "file", "tokenizer"])
    back = transformers.BertModel.from_pretrained(tmp_path / "back")
    same_state(back, model)


def test_sentence_transformers(tmp_path, bert):
    st = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    folder, _ = bert
    texts = ["a truck on the road", "a lorry", "query: the road", ""]
    try:
        from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    except ImportError:
        from sentence_transformers.models import Pooling, Transformer
    words = Transformer(str(folder))
    theirs = st.SentenceTransformer(modules=[words, Pooling(32, pooling_mode="mean")], device="cpu", prompts={"query": "query: "})
    theirs.save_pretrained(str(tmp_path / "saved"))
    expected = theirs.encode(texts)
    assert np.allclose(st.SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(texts), expected)
    ours = wb.Embedder(tmp_path / "saved")
    assert ours.prompts.get("query") == "query: "
    assert np.abs(ours.encode(texts) - expected).max() < 1e-5
    assert st.util.pairwise_cos_sim(ours.encode(texts), expected).min() > 0.99999
    assert np.abs(ours.encode(texts, prompt="a ") - theirs.encode(texts, prompt="a ")).max() < 1e-5
    assert np.abs(ours.encode(texts, prompt_name="query") - theirs.encode(texts, prompt_name="query")).max() < 1e-5
    assert np.abs(ours.encode_query(texts) - theirs.encode_query(texts)).max() < 1e-5
    for precision in ("int8", "uint8", "binary", "ubinary"):
        theirs_small, ours_small = theirs.encode(texts, precision=precision), ours.encode(texts, precision=precision)
        assert theirs_small.dtype == ours_small.dtype and theirs_small.shape == ours_small.shape
        if "binary" in precision:
            assert (theirs_small == ours_small).mean() > 0.95
        else:  # the steps of f32 may fall on either side of a code
            assert np.abs(theirs_small.astype(int) - ours_small.astype(int)).max() <= 1
    assert np.abs(ours.encode(texts, truncate_dim=8, normalize_embeddings=True) - theirs.encode(texts, truncate_dim=8, normalize_embeddings=True)).max() < 1e-5
    assert np.abs(ours.similarity(expected, expected) - theirs.similarity(expected, expected).numpy()).max() < 1e-5
    # And back: a folder that weighbridge writes.
    wb.convert(tmp_path / "saved", f"{tmp_path}/ours/", allow=["attribute", "file"])
    assert np.abs(st.SentenceTransformer(str(tmp_path / "ours"), device="cpu").encode(texts) - expected).max() < 1e-5


def test_a_state_dict_of_any_container(tmp_path, llama):
    wb.save(tmp_path / "a.zt", {name: tensor for name, tensor in llama.state_dict().items() if name != "lm_head.weight"}, encoding="zstd")
    copy = transformers.LlamaForCausalLM(llama.config)
    missing, unexpected = weighbridge.torch.load_state_dict(copy, tmp_path / "a.zt", strict=False)
    assert missing == ["lm_head.weight"] and unexpected == []
    copy.tie_weights()
    same_state(copy, llama)
