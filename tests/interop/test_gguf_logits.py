# SPDX-License-Identifier: Apache-2.0
"""What llama.cpp computes with converted folders: the logits and vectors of transformers in the folder itself, which another interpreter
runs ($TORCH_PYTHON, or build/venv-torch), those of peft where an adapter was converted too, and the likelihoods of our own runtime."""
import ctypes
import importlib.util
import json
import subprocess

import pytest

import gguf_adapters
from interop_tools import np, weighbridge
from test_gguf_folders import FOLDERS, NAMES, TRANSFORMERS
from test_gguf_naming import GROUPED, a_folder, llama2c, runner

pytestmark = pytest.mark.skipif(importlib.util.find_spec("llama_cpp") is None,
                                reason="llama-cpp-python is missing: make interop PEER=llama installs it")
IDS = [5, 17, 33, 2, 60, 41, 8, 12, 70, 9, 3, 55, 21, 44, 30, 11, 6, 19, 28, 50]
ENCODERS = {"bert", "roberta", "modernbert"}
# llama.cpp takes the GELU from a table of f16.
GELU = {"bert", "gemma", "gemma2", "gemma3", "gpt2", "modernbert", "phi2", "roberta", "starcoder2"}
LONG = "phi3-longrope"   # llama.cpp takes the long factors, which are those of transformers after 32 ids
ADAPTED = [name for name in gguf_adapters.CASES if name in NAMES and name not in ENCODERS]
KEPT = []   # llama.cpp calls these for as long as the process lives
REFERENCE = """
import json, pathlib, sys, warnings
warnings.filterwarnings("ignore")
import numpy, torch, transformers
folders, out, encoders, made = pathlib.Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), {}
adapters = json.loads(sys.argv[5])
if adapters:
    import peft
for name, ids in json.loads(sys.argv[4]).items():
    kind = transformers.AutoModel if name in encoders else transformers.AutoModelForCausalLM
    model = kind.from_pretrained(folders / name, dtype=torch.float32, attn_implementation="eager").eval()
    if adapters:
        model = peft.PeftModel.from_pretrained(model, adapters[name]).eval()
    with torch.no_grad():
        said = model(torch.tensor([ids]))
    made[name] = (said.last_hidden_state if name in encoders else said.logits)[0].float().numpy()
numpy.savez(out, **made)
"""


def ids_of(name):
    return IDS + IDS + IDS[:10] if name == LONG else IDS


def reference_of(out, ids, adapters):
    """name -> what transformers computes with a folder, and peft with its adapter."""
    if not TRANSFORMERS.exists():
        pytest.skip(f"{TRANSFORMERS} is missing: make interop PEER=torch makes it, and $TORCH_PYTHON names another with transformers")
    done = subprocess.run([TRANSFORMERS, "-c", REFERENCE, FOLDERS, out, json.dumps(sorted(ENCODERS)), json.dumps(ids), json.dumps(adapters)],
                          capture_output=True, text=True, timeout=600)
    if "No module named" in done.stderr:
        pytest.skip(f"{TRANSFORMERS}: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr[-2000:]
    return np.load(out)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return reference_of(tmp_path_factory.mktemp("transformers") / "made.npz", {name: ids_of(name) for name in NAMES if name != "t5"}, {})


@pytest.fixture(scope="module")
def adapted(tmp_path_factory):
    """The adapters, of those modules that the folder has in that size, and what peft computes with them."""
    folder = tmp_path_factory.mktemp("peft")
    adapters = {}
    for name in ADAPTED:
        base, modules, changes = gguf_adapters.CASES[name]
        with (FOLDERS / name / "model.safetensors").open("rb") as file:
            there = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        modules = {module: shape for module, shape in modules.items() if list(shape) == there.get(module + ".weight", {}).get("shape")}
        if name == "deepseek3":  # peft takes the names in a dense MLP for those of the fused experts
            modules = {module: shape for module, shape in modules.items() if ".mlp." not in module}
        assert modules, name
        adapters[name] = str(gguf_adapters.write(folder / name, base, modules, {"target_modules": list(modules), **changes}) / "adapter")
    return adapters, reference_of(folder / "made.npz", {name: ids_of(name) for name in ADAPTED}, adapters)


def computed(path, ids, width, vectors=False, adapter=None):
    """A row for each id: logits, or an encoder's vectors; with a GGUF adapter, those of the two."""
    import llama_cpp as cpp
    KEPT.append(cpp.llama_log_callback(lambda level, text, data: None))
    cpp.llama_log_set(KEPT[-1], ctypes.c_void_p(0))
    cpp.llama_backend_init()
    asked = cpp.llama_model_default_params()
    asked.n_gpu_layers = 0
    model = cpp.llama_model_load_from_file(str(path).encode(), asked)
    assert model, f"llama.cpp does not load {path}"
    how = cpp.llama_context_default_params()
    how.n_ctx = how.n_batch = how.n_ubatch = 256
    how.n_threads = 1
    how.type_k = how.type_v = how.flash_attn_type = 0
    if vectors:
        how.embeddings, how.pooling_type = True, 0
    context = cpp.llama_init_from_model(model, how)
    if adapter:
        lora = cpp.llama_adapter_lora_init(model, str(adapter).encode())
        assert lora, f"llama.cpp does not load {adapter}"
        assert cpp.llama_set_adapters_lora(context, (cpp.llama_adapter_lora_p_ctypes * 1)(lora), 1, (ctypes.c_float * 1)(1)) == 0
    batch = cpp.llama_batch_init(len(ids), 0, 1)
    batch.n_tokens = len(ids)
    for i, token in enumerate(ids):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, 1
        batch.seq_id[i][0] = 0
    assert (cpp.llama_encode if vectors else cpp.llama_decode)(context, batch) == 0
    row = cpp.llama_get_embeddings_ith if vectors else cpp.llama_get_logits_ith
    out = np.array([np.ctypeslib.as_array(row(context, i), (width,)).copy() for i in range(len(ids))])
    cpp.llama_batch_free(batch)
    cpp.llama_free(context)
    cpp.llama_model_free(model)
    return out


@pytest.mark.skipif(not NAMES, reason=f"{FOLDERS} is missing: the folders with the converter's results")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "t5"])
def test_llama_cpp_computes_what_transformers_computes(reference, tmp_path, name):
    weighbridge("convert", FOLDERS / name, tmp_path / "out.gguf", "--naming", "llama", "--cast", "f32", "--allow", "attribute,tokenizer", "--quiet")
    theirs = reference[name]
    ours = computed(tmp_path / "out.gguf", ids_of(name), theirs.shape[1], name in ENCODERS)
    assert abs(ours - theirs).max() <= (theirs.max() - theirs.min()) * (5e-3 if name in GELU else 1e-4)
    assert name in ENCODERS or (ours.argmax(1) == theirs.argmax(1)).all()


@pytest.mark.skipif(not ADAPTED, reason=f"{FOLDERS} is missing: the folders with the converter's results")
@pytest.mark.parametrize("name", ADAPTED)
def test_llama_cpp_computes_with_an_adapter_what_peft_computes(adapted, tmp_path, name):
    adapters, reference = adapted
    plain = ("--naming", "llama", "--cast", "f32", "--allow", "attribute,tokenizer", "--quiet")
    weighbridge("convert", FOLDERS / name, tmp_path / "base.gguf", *plain)
    weighbridge("convert", adapters[name], tmp_path / "adapter.gguf", "--base", FOLDERS / name, "--quiet")
    ids, theirs = ids_of(name), reference[name]
    near = (theirs.max() - theirs.min()) * (5e-3 if name in GELU else 1e-4)
    assert abs(computed(tmp_path / "base.gguf", ids, theirs.shape[1], adapter=tmp_path / "adapter.gguf") - theirs).max() <= near
    assert abs(computed(tmp_path / "base.gguf", ids, theirs.shape[1]) - theirs).max() > near   # the adapter matters


@pytest.mark.parametrize("quantize", [None, "q8_0"])
def test_our_runtime_computes_what_llama_cpp_computes(tmp_path, quantize):
    folder = a_folder(tmp_path / "folder", GROUPED, llama2c.random_blocks(GROUPED))
    weighbridge("convert", folder, tmp_path / "out.gguf", "--quiet", *(["--quantize", quantize] if quantize else []))
    text = "a bc abc cab " * 6
    (tmp_path / "text.txt").write_text(text)
    found = json.loads(weighbridge("perplexity", tmp_path / "out.gguf", "--input", tmp_path / "text.txt", "--json"))
    ids = runner(tmp_path / "out.gguf", vocab_only=True).tokenize(text.encode(), add_bos=True)
    logits = computed(tmp_path / "out.gguf", ids, abs(GROUPED["vocab_size"])).astype(np.float64)
    likely = logits - np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True)) - logits.max(1, keepdims=True)
    theirs = -np.mean([likely[i, each] for i, each in enumerate(ids[1:])])
    assert found["mean_nll"] == pytest.approx(theirs, rel=1e-5 if quantize is None else 5e-3)   # llama.cpp rounds vectors to q8_0, too
