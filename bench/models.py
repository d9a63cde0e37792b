#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the jobs of whole models: a Hugging Face folder of 1.1 billion parameters to Q4_K_M, in turns with llama.cpp's two steps; the
quantizers of GGUF's types on one core, in turns with GGML's; patches, in turns with slime's; and `verify` and `check` of 1,000 files.

usage: models.py FOLDER [--ours COMMAND] [--quantizers QUANTIZERS_BENCH] [--ggml LIBGGML_BASE] [--llama-cpp FOLDER] [--llama-python PYTHON]
                 [--slime CHECKOUT] [--slime-python PYTHON] [--python PYTHON] [-n TURNS] [--only WORD] [--json FILE]

FOLDER keeps the inputs (about 5.5 GB). --llama-cpp is a folder with convert_hf_to_gguf.py and llama-quantize. What is written is compared
before the clock starts: the content digests of the GGUF files, the blocks of each type, the model that a patch makes."""
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys

from results import Results, figures
from turns import GIB, Turns, add_roofs, output, parser_of, run, write_safetensors

HIDDEN, LAYERS, FEED, HEADS, KEY_HEADS, WORDS = 2048, 22, 5632, 32, 4, 32000
# What the quantizers were asked: at most this share of GGML's time, without a matrix and with one.
ASKED = dict.fromkeys(("q4_k", "q5_k", "q6_k"), (0.25, 0.25)) | dict.fromkeys(("q2_k", "q3_k", "iq4_nl", "iq4_xs"), (0.5, 0.5)) \
    | dict.fromkeys(("q4_0", "q4_1", "q5_0", "q5_1"), (1, 0.5))
PEER = pathlib.Path(__file__).resolve().parents[1] / "tests/interop/deltas_peers.py"


def plausible(block):
    """Random bytes as numbers of bf16, or of f32, between 2^-12 and 2^-6 of either sign."""
    block = bytearray(block)
    block[1::2] = block[1::2].translate(bytes(0x3A + c % 3 | c & 0x80 for c in range(256)))
    return bytes(block)


def vocabulary():
    """A sentencepiece model: three special pieces, 256 bytes, and words."""
    def field(number, data):
        size, out = len(data), bytearray([number << 3 | 2])
        while size >= 128:
            out.append(size & 127 | 128)
            size >>= 7
        return bytes(out + bytes([size]) + data)

    special = [("<unk>", 2), ("<s>", 3), ("</s>", 3), *((f"<0x{c:02X}>", 6) for c in range(256))]
    pieces = special + [(f"\u2581w{i}", 1) for i in range(WORDS - len(special))]
    out = b"".join(field(1, field(1, text.encode()) + struct.pack("<Bf", 2 << 3 | 5, -i) + bytes([3 << 3, kind]))
                   for i, (text, kind) in enumerate(pieces))
    return out + field(2, bytes([3 << 3, 2]))


def write_folder(folder):
    os.makedirs(folder, exist_ok=True)
    tensors = [("model.embed_tokens.weight", [WORDS, HIDDEN]), ("lm_head.weight", [WORDS, HIDDEN]), ("model.norm.weight", [HIDDEN])]
    for i in range(LAYERS):
        small = KEY_HEADS * HIDDEN // HEADS
        tensors += [(f"model.layers.{i}.{name}.weight", shape) for name, shape in (
            ("self_attn.q_proj", [HIDDEN, HIDDEN]), ("self_attn.k_proj", [small, HIDDEN]), ("self_attn.v_proj", [small, HIDDEN]),
            ("self_attn.o_proj", [HIDDEN, HIDDEN]), ("mlp.gate_proj", [FEED, HIDDEN]), ("mlp.up_proj", [FEED, HIDDEN]),
            ("mlp.down_proj", [HIDDEN, FEED]), ("input_layernorm", [HIDDEN]), ("post_attention_layernorm", [HIDDEN]))]
    sized = [(name, "BF16", shape, 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)) for name, shape in tensors]
    write_safetensors(os.path.join(folder, "model.safetensors"), sized, plausible)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "hidden_size": HIDDEN,
              "num_hidden_layers": LAYERS, "intermediate_size": FEED, "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS,
              "vocab_size": WORDS, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
              "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2}
    pathlib.Path(folder, "config.json").write_text(json.dumps(config), encoding="utf-8")
    pathlib.Path(folder, "tokenizer.model").write_bytes(vocabulary())


def digest(t, path):
    """The content digest without names and metadata."""
    return output([t.o.ours, "hash", "--no-names", path]).stdout.split()[0]


def to_gguf(t, results):
    job = "a folder of 1.1 billion parameters in bf16 to Q4_K_M"
    if not t.wants(job):
        return
    o, folder = t.o, t.path("llama-1.1b")
    write_folder(folder)
    ours = [o.ours, "convert", folder, os.path.join(t.out, "o.gguf"), "--quantize", "q4_k_m", "--quiet"]
    theirs = None
    if o.llama_cpp:
        middle, last = os.path.join(t.out, "f16.gguf"), os.path.join(t.out, "theirs.gguf")
        theirs = ["sh", "-c", 'set -e; "$1" "$2/convert_hf_to_gguf.py" "$3" --outtype bf16 --outfile "$4"; "$2/llama-quantize" "$4" "$5" q4_k_m',
                  "sh", o.llama_python, o.llama_cpp, folder, middle, last]
        results.peer("llama.cpp", "convert_hf_to_gguf.py, then llama-quantize")
        t.fresh()
        for argv in (ours, theirs):
            assert run(argv)[2] == 0, argv
        assert digest(t, ours[3]) == digest(t, last), "the two files have different tensors"
        results.row("folders to GGUF", "bytes written: " + job, {"median": os.path.getsize(ours[3]) >> 20, "best": os.path.getsize(ours[3]) >> 20},
                    {"llama.cpp": dict.fromkeys(("median", "best"), (os.path.getsize(middle) + os.path.getsize(last)) >> 20)}, unit="MiB")
    else:
        results.leave_out("llama.cpp: no folder with convert_hf_to_gguf.py and llama-quantize was given")
    row = t.job("folders to GGUF", job, {"ours": ours, "llama.cpp": theirs}, size=os.path.getsize(os.path.join(folder, "model.safetensors")))
    t.results.asked(row, "llama.cpp", 0.25)


def quantizers(results, o):
    """Rates on one core, in turns with GGML in one process, which compares the blocks."""
    if not o.quantizers:
        return results.leave_out("quantizers: no program quantizers_bench was given")
    if o.ggml:
        results.peer("GGML", os.path.basename(o.ggml))
    told = subprocess.run(["taskset", "-c", "0", o.quantizers, "--benchmark_format=json", f"--benchmark_repetitions={o.turns}",
                           "--benchmark_min_time=0.1", "--benchmark_enable_random_interleaving=true"], check=True, capture_output=True,
                          text=True, env=os.environ | ({"WEIGHBRIDGE_GGML": o.ggml} if o.ggml else {})).stdout
    rates = {}
    for one in json.loads(told)["benchmarks"]:
        if one["run_type"] == "iteration":
            assert not one.get("error_occurred"), one
            rates.setdefault(one["name"].split("/")[0], []).append(one["bytes_per_second"] / 1e9)
    for name, all_ in rates.items():
        if name.endswith(", GGML"):
            continue
        theirs = rates.get(name + ", GGML")
        row = results.row("quantizers on one core, in cache", name, figures(all_, "GB/s"), {"GGML": figures(theirs, "GB/s")} if theirs else {},
                          unit="GB/s")
        results.asked(row, "GGML", ASKED.get(name.split()[0], (1, 1))["matrix" in name])


def patches(t, results):
    """One step of training: 1 % of the elements of 1 GiB of bf16 change by one unit."""
    o, base, result, patch = t.o, t.path("step"), t.path("step-1.safetensors"), t.path("step.patch.zt")
    if not (t.wants("make a patch") or t.wants("apply a patch")):
        return
    os.makedirs(base, exist_ok=True)
    first = os.path.join(base, "model.safetensors")
    write_safetensors(first, [(f"model.layers.{i}.weight", "BF16", [2048, 2048], 1 << 23) for i in range(GIB >> 23)], plausible)
    if not os.path.exists(result):
        steps, rng = bytes(1 + c * 199 // 256 for c in range(256)), random.Random(3)  # from one change to the next, in elements
        with open(first, "rb") as source, open(result + ".part", "wb") as out:
            head = source.read(8)
            out.write(head + source.read(struct.unpack("<Q", head)[0]))
            while block := bytearray(source.read(1 << 24)):
                at = 0
                for step in rng.randbytes(len(block) >> 6).translate(steps):
                    if at >= len(block):
                        break
                    block[at] ^= 1
                    at += 2 * step
                out.write(block)
        os.replace(result + ".part", result)
    if not os.path.exists(patch):
        assert run([o.ours, "diff", first, result, "--patch", patch, "--quiet"])[2] == 0
    assert run([o.ours, "apply", first, patch, "-o", t.path("applied.safetensors"), "--overwrite", "--quiet"])[2] == 0
    assert run([o.ours, "diff", t.path("applied.safetensors"), result, "--exact", "--quiet"])[2] == 0, "the patch makes another model"
    os.remove(t.path("applied.safetensors"))
    delta = t.path("step.slime")
    slime = [o.slime_python, str(PEER)] if o.slime else None
    if slime:
        results.peer("slime", "its publisher and receiver, each with the start of Python and PyTorch")
        if not os.path.exists(delta):
            assert run([*slime, "write", "slime", o.slime, base, result, delta, "overwrite", "xxh3-128"])[2] == 0
    else:
        results.leave_out("slime: no checkout of its repository was given")
    out = os.path.join(t.out, "p")
    t.job("patches", "make a patch of 1 GiB, 1 % changed", {
        "ours": [o.ours, "diff", first, result, "--patch", out + ".zt", "--quiet"],
        "slime": slime and [*slime, "write", "slime", o.slime, base, result, out, "overwrite", "xxh3-128"]}, size=GIB, roof=("sha256", None))
    copied = 'cp -r "$1" "$2" && shift 2 && exec "$@"'
    t.job("patches", "apply a patch of 1 GiB, 1 % changed", {
        "ours": [o.ours, "apply", first, patch, "-o", out + ".safetensors", "--quiet"],
        "slime": slime and ["sh", "-c", copied, "sh", base, out, *slime, "apply", "slime", o.slime, out, delta]}, size=GIB, roof=("sha256", None))


def many_files(t, results):
    """Folders of small models, and twice as many."""
    version = output([t.o.python, "-c", "import safetensors, numpy; print(safetensors.__version__)"]).stdout.strip()
    if version:
        results.peer("Python safe_open", "safetensors " + version)
    else:
        results.leave_out("Python safe_open: no safetensors with numpy in the Python that was given")
    for count in (1000, 2000):
        folder = t.path(f"files-{count}")
        os.makedirs(folder, exist_ok=True)
        first = os.path.join(folder, "model-0.safetensors")
        write_safetensors(first, [(f"layers.{i}.weight", "F32", [32, 32], 4096) for i in range(16)], plausible)
        for i in range(1, count):
            path = os.path.join(folder, f"model-{i}.safetensors")
            if not os.path.exists(path):
                shutil.copyfile(first, path)
        told = json.loads(output([t.o.ours, "verify", "-r", "--json", folder]).stdout)
        assert len(told["files"]) == count and all(each["valid"] for each in told["files"]), folder
        code = "import pathlib, sys\nfrom safetensors import safe_open\nfor f in pathlib.Path(sys.argv[1]).iterdir(): safe_open(f, 'np').keys()"
        python = [t.o.python, "-c", code, folder] if version else None
        t.job("many files", f"verify {count:,} files of 64 KiB", {"ours": [t.o.ours, "verify", "-r", folder], "Python safe_open": python}, x=count)
        t.job("many files", f"check {count:,} files of 64 KiB against a policy",
              {"ours": [t.o.ours, "check", "-r", folder, "--policy", "publish"]}, x=count)


def main():
    parser = parser_of(__doc__)
    for name in ("quantizers", "ggml", "llama-cpp", "slime"):
        parser.add_argument("--" + name, default="")
    parser.add_argument("--llama-python", default=sys.executable)
    parser.add_argument("--slime-python", default=sys.executable)
    o = parser.parse_args()
    os.makedirs(o.folder, exist_ok=True)
    results = Results("models", "Jobs of whole models", o.ours,
                      f"whole processes, warm page cache, quantizers inside a process; medians of {o.turns} turns")
    t = Turns(o, results)
    add_roofs(results, o.roofs)
    quantizers(results, o)
    to_gguf(t, results)
    patches(t, results)
    many_files(t, results)
    t.end()


if __name__ == "__main__":
    main()
