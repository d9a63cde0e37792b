#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times opening a model of many shards beside opening its files one by one: processor time of whole processes, in turns.

usage: shards.py FOLDER [--ours COMMAND] [-n TURNS] [--shards N] [--tensors N] [--bound FACTOR]

FOLDER keeps the inputs (about 500 MB): 100 shards of 10,000 tensors as safetensors with an index, and as a split GGUF. Names are sorted as
the package safetensors sorts them in a header and huggingface_hub in an index. One process opens the model, another all files, each for
itself. The index of 100 MB is a header too: what it takes to parse it is measured with an index of the same size that lists nothing, which is
parsed and refused, and counts among the files. Prints the medians and their ratio; with --bound, fails if that is above it. Before the clock
starts, the script checks that both list every tensor."""
import argparse
import json
import os
import statistics
import struct
import subprocess
import sys

BYTES = 32  # of a tensor: 8 of f32


def name_of(shard, tensor):
    return f"model.layers.{shard}.mlp.experts.{tensor}.down_proj.weight"


def write(path, head, payload):
    """The payload is a hole."""
    with open(path, "wb") as out:
        out.write(head)
        out.truncate(len(head) + payload)


def safetensors(folder, shards, tensors):
    """The index."""
    places = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        names = sorted(name_of(shard, i) for i in range(tensors))
        header = {name: {"dtype": "F32", "shape": [8], "data_offsets": [BYTES * i, BYTES * (i + 1)]} for i, name in enumerate(names)}
        places |= dict.fromkeys(header, file)
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        write(os.path.join(folder, file), struct.pack("<Q", len(text)) + text, BYTES * tensors)
    index = os.path.join(folder, "model.safetensors.index.json")
    with open(index, "w") as out:
        json.dump({"metadata": {"total_size": BYTES * tensors * shards}, "weight_map": places}, out, indent=2, sort_keys=True)
    with open(index) as made, open(os.path.join(folder, "nothing.safetensors.index.json"), "w") as out:
        out.write(made.read().replace('"weight_map"', '"weight_mop"'))
    return index


def gguf(folder, shards, tensors):
    """The first file."""
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    for shard in range(shards):
        values = [("split.no", 2, "<H", shard), ("split.count", 2, "<H", shards), ("split.tensors.count", 5, "<i", shards * tensors)]
        head = [struct.pack("<4sIQQ", b"GGUF", 3, tensors, len(values))]
        head += [text(key) + struct.pack("<I", kind) + struct.pack(form, value) for key, kind, form, value in values]
        head += [text(name_of(shard, i)) + struct.pack("<IQIQ", 1, 8, 0, BYTES * i) for i in range(tensors)]
        head = b"".join(head)
        write(os.path.join(folder, f"model-{shard + 1:05}-of-{shards:05}.gguf"), head + b"\0" * (-len(head) % 32), BYTES * tensors)
    return os.path.join(folder, f"model-00001-of-{shards:05}.gguf")


def processor_time(command, expected=0):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == expected, command
    return usage.ru_utime, usage.ru_utime + usage.ru_stime


def listed(command):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return sum(len(model["tensors"]) for model in json.loads(done.stdout)["files"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--ours", default="build/release/weighbridge")
    parser.add_argument("-n", dest="turns", type=int, default=7)
    parser.add_argument("--shards", type=int, default=100)
    parser.add_argument("--tensors", type=int, default=10_000)
    parser.add_argument("--bound", type=float, default=float("inf"))
    o = parser.parse_args()
    above = []
    for kind, make in (("safetensors", safetensors), ("gguf", gguf)):
        folder = os.path.join(o.folder, f"{kind}-sorted-{o.shards}-{o.tensors}")
        ready = os.path.join(folder, "ready")
        if not os.path.exists(ready):
            os.makedirs(folder, exist_ok=True)
            with open(ready + ".part", "w") as out:
                out.write(make(folder, o.shards, o.tensors))
            os.replace(ready + ".part", ready)
        with open(ready) as given:
            model = given.read()
        files = sorted(os.path.join(folder, file) for file in os.listdir(folder) if file.endswith("." + kind))
        inspect = [o.ours, "inspect", "--quiet", "--filter", "*.experts.7.*"]  # prints a row for each shard
        # Each file for itself, not as the first of its model: a name that no other reader takes for a part.
        alone = [os.path.join(folder, f"alone-{i:05}") for i in range(len(files))]
        for link, file in zip(alone, files):
            if not os.path.lexists(link):
                os.symlink(os.path.basename(file), link)
        jobs = {"model": [*inspect, model], "files": [*inspect, *alone]}
        for one in jobs.values():
            found = listed([o.ours, "inspect", "--json", *one[5:]])
            assert found == o.shards * o.tensors, (one[:6], found)
        times = {job: [] for job in (*jobs, "index")}
        for turn in range(o.turns):
            for job, command in jobs.items():
                times[job].append(processor_time(command))
            if kind == "safetensors":
                times["index"].append(processor_time([*inspect, os.path.join(folder, "nothing.safetensors.index.json")], expected=1))
            else:
                times["index"].append((0.0, 0.0))
        user, whole = ({job: statistics.median(time[i] for time in all_of) for job, all_of in times.items()} for i in (0, 1))
        for of_kind in (user, whole):
            of_kind["files"] += of_kind["index"]
        ratio = user["model"] / user["files"]
        print(f"{kind}: {o.shards} shards of {o.tensors:,} tensors: {user['model'] * 1e3:.0f} ms of user time as one model, "
              f"{user['files'] * 1e3:.0f} ms file by file (index {user['index'] * 1e3:.0f}): {ratio:.2f} times (with the system's time {whole['model'] / whole['files']:.2f})")
        if ratio > o.bound:
            above.append(kind)
    sys.exit(f"above {o.bound} times: {', '.join(above)}" if above else 0)


if __name__ == "__main__":
    main()
