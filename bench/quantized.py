#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times quantized Hugging Face folders: their numbers from memory to memory on one core, as a fraction of what a copy loop does there; and
whole processes that write 1 GiB of bf16, in turns with `amn` (anamnesis), and with `cp` and `sync`.

usage: quantized.py FOLDER [--ours COMMAND] [--recipes RECIPES_BENCH] [--peers FOLDER] [-n TURNS] [--only WORD] [--json FILE]

FOLDER keeps the inputs (about 1.6 GB). The results are compared with plain arithmetic before the clock starts."""
import json
import os
import random
import struct
import sys

from results import Results, figures
from turns import GIB, Peers, Turns, copy_and_sync, output, parser_of, run

ROWS, COLUMNS, LAYERS = 4096, 4096, 32
E2M1 = (0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6)
AWQ = (0, 16, 4, 20, 8, 24, 12, 28)
NF4 = [(i - 7.5) / 8 for i in range(16)]


def u32(data, i):
    return struct.unpack_from("<I", data, 4 * i)[0]


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def bf16(x):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16


def e4m3(code):
    size = (code >> 3 & 15, code & 7)
    value = size[1] / 8 * 2 ** -6 if size[0] == 0 else (1 + size[1] / 8) * 2 ** (size[0] - 7)
    return -value if code & 128 else value


def words(rng, n):
    return rng.randbytes(4 * n)


# scheme -> its config, its tensors, its number at (row, column). A tensor: dtype, shape, bytes.
def fp8(rng):
    codes = rng.randbytes(ROWS * COLUMNS).translate(bytes(c - (c & 127 == 127) for c in range(256)))
    scales = [1 / 256 + k / 65536 for k in range(ROWS * COLUMNS >> 14)]
    tensors = {"weight": ("F8_E4M3", [ROWS, COLUMNS], codes),
               "weight_scale_inv": ("F32", [ROWS // 128, COLUMNS // 128], struct.pack(f"<{len(scales)}f", *scales))}
    return ({"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e4m3", "activation_scheme": "dynamic"}, tensors,
            lambda r, c: e4m3(codes[r * COLUMNS + c]) * f32(scales[r // 128 * (COLUMNS // 128) + c // 128]))


def nvfp4(rng):
    codes, scales = rng.randbytes(ROWS * COLUMNS // 2), bytes(c & 0x77 for c in rng.randbytes(ROWS * COLUMNS // 16))
    tensors = {"weight": ("U8", [ROWS, COLUMNS // 2], codes), "weight_scale": ("F8_E4M3", [ROWS, COLUMNS // 16], scales),
               "weight_scale_2": ("F32", [], struct.pack("<f", 1 / 4096))}
    return ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, tensors,
            lambda r, c: E2M1[codes[(r * COLUMNS + c) // 2] >> c % 2 * 4 & 15] * f32(e4m3(scales[(r * COLUMNS + c) // 16]) / 4096))


def halves(n):
    return struct.pack(f"<{n}e", *(2 ** -9 + (k % 512) * 2 ** -19 for k in range(n)))


def awq(rng):
    groups = COLUMNS // 128
    q, z, s = words(rng, COLUMNS * ROWS // 8), words(rng, groups * ROWS // 8), halves(groups * ROWS)
    tensors = {"qweight": ("I32", [COLUMNS, ROWS // 8], q), "qzeros": ("I32", [groups, ROWS // 8], z), "scales": ("F16", [groups, ROWS], s)}

    def code(data, line, r):
        return u32(data, line * (ROWS // 8) + r // 8) >> AWQ[r % 8] & 15
    return ({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True}, tensors,
            lambda r, c: (code(q, c, r) - code(z, c // 128, r)) * struct.unpack_from("<e", s, 2 * (c // 128 * ROWS + r))[0])


def gptq(rng):
    groups = COLUMNS // 128
    q, s = words(rng, COLUMNS // 8 * ROWS), halves(groups * ROWS)
    z = struct.pack("<I", 0x77777777) * (groups * ROWS // 8)  # symmetric: 8, stored less one
    g_idx = struct.pack(f"<{COLUMNS}i", *(c // 128 for c in range(COLUMNS)))
    tensors = {"qweight": ("I32", [COLUMNS // 8, ROWS], q), "qzeros": ("I32", [groups, ROWS // 8], z), "scales": ("F16", [groups, ROWS], s),
               "g_idx": ("I32", [COLUMNS], g_idx)}
    return ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": False, "checkpoint_format": "gptq"}, tensors,
            lambda r, c: ((u32(q, c // 8 * ROWS + r) >> c % 8 * 4 & 15) - 8) * struct.unpack_from("<e", s, 2 * (c // 128 * ROWS + r))[0])


def nf4(rng):
    codes = rng.randbytes(ROWS * COLUMNS // 2)
    absmax = struct.pack(f"<{ROWS * COLUMNS // 64}f", *(0.5 + (k % 1024) / 1024 for k in range(ROWS * COLUMNS // 64)))
    state = json.dumps({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [ROWS, COLUMNS]}).encode()
    tensors = {"weight": ("U8", [ROWS * COLUMNS // 2, 1], codes), "weight.absmax": ("F32", [ROWS * COLUMNS // 64], absmax),
               "weight.quant_map": ("F32", [16], struct.pack("<16f", *NF4)),
               "weight.quant_state.bitsandbytes__nf4": ("U8", [len(state)], state)}

    def value(r, c):
        i = r * COLUMNS + c
        return f32(NF4[codes[i // 2] >> (4, 0)[i % 2] & 15] * struct.unpack_from("<f", absmax, i // 64 * 4)[0])
    return {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, tensors, value


SCHEMES = {"FP8 128x128": fp8, "NVFP4": nvfp4, "AWQ": awq, "GPTQ": gptq, "NF4": nf4}
IN_MEMORY = {"fp8_128x128": "FP8 128x128", "nvfp4": "NVFP4", "awq": "AWQ", "gptq": "GPTQ", "gptq_act_order": "GPTQ, act order", "nf4": "NF4"}


def write_folder(folder, scheme):
    """A model of one random layer, many times; returns its number at (row, column)."""
    config, tensors, value = SCHEMES[scheme](random.Random(1))
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.safetensors")
    if os.path.exists(path):
        return value
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "quantization_config": config}, file)
    header, offset = {}, 0
    for layer in range(LAYERS):
        for name, (dtype, shape, data) in tensors.items():
            header[f"model.layers.{layer}.mlp.up_proj.{name}"] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
            offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _ in range(LAYERS):
            for _, _, data in tensors.values():
                file.write(data)
    os.replace(path + ".part", path)
    return value


def check(t, folder, scheme, value):
    """The numbers of one layer, against plain arithmetic."""
    t.fresh()
    out = os.path.join(t.out, "o.safetensors")
    assert run([t.o.ours, "convert", folder, out, "--dequantize", "bf16", "--quiet"])[2] == 0, scheme
    with open(out, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        tensor = json.loads(file.read(size))["model.layers.7.mlp.up_proj.weight"]
        assert tensor["dtype"] == "BF16" and tensor["shape"] == [ROWS, COLUMNS], tensor
        file.seek(8 + size + tensor["data_offsets"][0])
        found = file.read(ROWS * COLUMNS * 2)
    rng = random.Random(2)
    for _ in range(10_000):
        r, c = rng.randrange(ROWS), rng.randrange(COLUMNS)
        code = struct.unpack_from("<H", found, 2 * (r * COLUMNS + c))[0]
        assert code == bf16(value(r, c)) or code & 0x7fff == bf16(value(r, c)) & 0x7fff == 0, f"{scheme}: the number at {r}, {c} is wrong"


def in_memory(results, o):
    told = output(["taskset", "-c", "0", o.recipes, "--benchmark_format=json", "--benchmark_repetitions=" + str(o.turns),
                   "--benchmark_enable_random_interleaving=true", "--benchmark_filter=^(roof_copy|dequantize/[a-z0-9_]+|row/[a-z0-9_]+)/min"])
    found = {}
    for one in json.loads(told.stdout)["benchmarks"]:
        if one["run_type"] == "iteration":
            assert not one.get("error_occurred"), one
            found.setdefault(one["name"].split("/min_time")[0], []).append(one)
    copied = figures([one["bytes_per_second"] for one in found.pop("roof_copy")], "B/s")
    results.roof("copy", copied["median"], "B/s", "a copy loop on one core, bytes read and written")
    for name, all_ in found.items():
        kind, scheme = name.split("/")
        if kind == "row":
            results.row("one row of 128,256 x 4,096", IN_MEMORY[scheme], figures([one["cpu_time"] for one in all_]))
            continue
        rates = [one["bytes_per_second"] for one in all_]
        results.row("1 GiB of 16-bit numbers, from memory to memory on one core", f"{IN_MEMORY[scheme]}, in memory",
                    figures([one["cpu_time"] for one in all_]), roof=("copy", figures(rates, "B/s")["median"], 0.6))


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--recipes", default="", help="the program recipes_bench")
    o = parser.parse_args()
    results = Results("quantized", "Quantized folders", o.ours, f"processor time in memory, else whole processes with a warm page cache; medians of {o.turns} turns")
    t, peers = Turns(o, results), Peers(o, results)
    if o.recipes:
        in_memory(results, o)
    else:
        results.leave_out("from memory to memory: no program recipes_bench was given")
    one = ["taskset", "-c", "0"]
    for scheme in SCHEMES:
        job = f"1 GiB of bf16 from {scheme}, one core"
        if not t.wants(job):
            continue
        folder = os.path.join(o.folder, "quantized", scheme.split()[0].lower())
        check(t, folder, scheme, write_folder(folder, scheme))
        out = os.path.join(t.out, "o.safetensors")
        amn = peers.amn and [*one, peers.amn, "remember", os.path.join(folder, "model.safetensors"), "--to", "bf16", "-o", out, "--threads", "1"]
        t.fresh()
        if amn and (run(amn)[2] != 0 or os.path.getsize(out) < GIB):
            results.leave_out(f"amn: this build of it keeps the codes of {scheme}")
            amn = None
        row = t.job("processes", job, {"ours": [*one, o.ours, "convert", folder, out, "--dequantize", "bf16", "--quiet"], "amn": amn}, size=GIB)
        results.asked(row, "amn", 0.5)
    job = "1 GiB of bf16 in a folder, from FP8 128x128, all cores"
    if t.wants(job):
        folder, dense = os.path.join(o.folder, "quantized", "fp8"), t.path("dense.safetensors")
        write_folder(folder, "FP8 128x128")
        assert os.path.exists(dense) or run([o.ours, "convert", folder, dense, "--dequantize", "bf16", "--quiet"])[2] == 0
        row = t.job("processes", job, {"ours": [o.ours, "convert", folder, os.path.join(t.out, "o/"), "--dequantize", "bf16", "--quiet"],
                                       "cp + sync": copy_and_sync(dense, os.path.join(t.out, "o.safetensors"))}, size=GIB)
        results.asked(row, "cp + sync", 1.15)
    t.end()


if __name__ == "__main__":
    sys.exit(main())
