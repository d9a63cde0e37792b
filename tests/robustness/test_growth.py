# SPDX-License-Identifier: Apache-2.0
# Tests that the cost of a verb grows linearly with its input. Each input is doubled three times, and the processor time may grow by
# 2.6 each time: 2 is linear, 4 is quadratic. Times below FLOOR are too short to measure.
import json
import random
import re
import struct

import pytest

pytest.importorskip("numpy", reason="the witnesses need numpy")
from chain_jobs import fill  # noqa: E402
from jobs import bert, embd  # noqa: E402
from robustness import Measured, done, run, safetensors_header, write_safetensors  # noqa: E402
from test_bounds import cbor_head, component, dense, manifest, mapping, number, text, zt  # noqa: E402

DOUBLINGS = 3
MOST = 2.6 ** DOUBLINGS
FLOOR = 0.02  # seconds
SHARDS = ["--to", "safetensors", "--max-shard-size", "8"]
NO_INPUT = {"formats", "completion", "help"}  # read nothing that could grow


def grows_too_fast(small, large):
    return large > MOST * max(small, FLOOR)


def many_tensors(path, count):
    head = safetensors_header({f"layer.{i}.weight": ("F32", [2], 8) for i in range(count)})
    path.write_bytes(head + struct.pack(f"<{2 * count}f", *(float(i) for i in range(2 * count))))
    return path


def with_keys(path, count, prefix=""):
    """Adds that many keys to the metadata of a safetensors file."""
    data = path.read_bytes()
    length, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    header["__metadata__"] = {**header.get("__metadata__", {}), **{f"{prefix}key.{i}": f"{i}" for i in range(count)}}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length:])
    return path


def many_keys(path, count):
    return with_keys(write_safetensors(path, {"w": [1, 2]}), count)


def folder_of_keys(folder, count):
    """A model whose configuration and weights have that many keys each, half of them the same."""
    done("convert", encoder(folder), folder / "model", "--to", "hf")
    with_keys(folder / "model/model.safetensors", count // 2, "hf.")
    with_keys(folder / "model/model.safetensors", count // 2)
    config = json.loads((folder / "model/config.json").read_text())
    (folder / "model/config.json").write_text(json.dumps({**config, **{f"key.{i}": f"{i}" for i in range(count)}}))
    return folder / "model"


def candidate_of_keys(folder, count):
    """The words of a review that takes over that many keys."""
    done("slm", "fixture", "tiny", "-o", folder / "model.slm")
    done("convert", folder / "model.slm", folder / "model.safetensors", "--allow", "tokenizer,attribute-type")
    done("slm", "source-template", folder / "model.slm", "-o", folder / "template")
    fill(folder / "template")
    return [with_keys(folder / "model.safetensors", count), "--manifest", folder / "template", "-o", folder / "review"]


def unset_keys(folder, count):
    unset = [word for i in range(count) for word in ("--unset", f"key.{i}")]
    return [many_keys(folder / "a.safetensors", count), folder / "out.zt", *unset]


def many_shards(folder, count):
    done("convert", many_tensors(folder / "a.safetensors", count), f"{folder}/model/", *SHARDS)
    return ["convert", "--force", many_tensors(folder / "b.safetensors", count), f"{folder}/model/", *SHARDS]


def large_tensor(path, count):
    return write_safetensors(path, {"w": [i % 251 for i in range(count)]})


def many_objects(path, count):
    """A .zt whose objects all name the same 64 bytes, so that every pair shares bytes."""
    objects = {f"t.{i}": dense([64], component(64, 64)) for i in range(count)}
    path.write_bytes(zt(manifest(mapping(objects)), bytes(64)))
    return path


def sparse(path, count):
    """One sparse object with that many entries, unordered."""
    order = random.Random(1).sample(range(count), count)
    values, coords = struct.pack(f"<{count}f", *map(float, order)), struct.pack(f"<{2 * count}Q", *([0] * count + order))
    padded = values + bytes(-len(values) % 64)
    body = mapping({"shape": cbor_head(4, 2) + number(1) + number(count), "format": text("sparse_coo"), "components": mapping({
        "values": component(64, len(values), "f32"), "coords": component(64 + len(padded), len(coords), "u64")})})
    path.write_bytes(zt(manifest(mapping({"s": body})), padded + coords + bytes(-len(coords) % 64)))
    return path


def lines(path, count, line="word1 word2 word3 word4\n"):
    path.write_text(line * count)
    return path


def encoder(folder):
    embd.write(folder / "model.weights", *bert(vocab=64, positions=16))
    return folder / "model.weights"


def language_model(folder, kind="tiny-bpe"):
    done("slm", "fixture", kind, "-o", folder / "model.slm")
    return folder / "model.slm"


def pairs(path, count):
    path.write_text("".join(f"word1 word{i % 50},word2 word{i % 40},{i % 6}\n" for i in range(count)))
    return path


def words_of(folder, count):
    path = folder / "module.txt"
    path.write_text("CONST_I8 1\nRET\n" + "NOP\n" * count)
    return path


def module_of(folder, count):
    done("khlnary", "assemble", words_of(folder, count), "-o", folder / "module.knu")
    return folder / "module.knu"


def appended(folder, count):
    done("convert", many_tensors(folder / "a.safetensors", count), folder / "a.zt")
    write_safetensors(folder / "b.safetensors", {"another": [1, 2]})
    return ["append", folder / "a.zt", folder / "b.safetensors", "-o", folder / "out.zt"]


def patch(folder, count):
    """The patch between two models of that many tensors, each of which has changed."""
    write_safetensors(folder / "a.safetensors", {f"t.{i}": [i, i + 1] for i in range(count)})
    write_safetensors(folder / "b.safetensors", {f"t.{i}": [i, i + 2] for i in range(count)})
    done("diff", folder / "a.safetensors", folder / "b.safetensors", "--patch", folder / "patch.zt", "--quiet")
    return folder / "patch.zt"


# name -> (first size, function that makes the command line for a folder and a size)
JOBS = {
    "apply tensors": (2_000, lambda at, n: ["apply", at / "a.safetensors", patch(at, n), "-o", at / "out.safetensors"]),
    "patch reverse": (2_000, lambda at, n: ["patch", "reverse", patch(at, n), "-o", at / "out.zt"]),
    "inspect tensors": (16_000, lambda at, n: ["inspect", many_tensors(at / "a.safetensors", n)]),
    "inspect --stats": (16_000, lambda at, n: ["inspect", "--stats", many_tensors(at / "a.safetensors", n)]),
    "inspect shared bytes": (4000, lambda at, n: ["inspect", many_objects(at / "a.zt", n)]),
    "verify tensors": (16_000, lambda at, n: ["verify", many_tensors(at / "a.safetensors", n)]),
    "check tensors": (16_000, lambda at, n: ["check", many_tensors(at / "a.safetensors", n), "--policy", "publish"]),
    "verify shared bytes": (4000, lambda at, n: ["verify", many_objects(at / "a.zt", n)]),
    "verify sparse": (60_000, lambda at, n: ["verify", sparse(at / "a.zt", n)]),
    "convert tensors": (8000, lambda at, n: ["convert", many_tensors(at / "a.safetensors", n), at / "out.zt"]),
    "convert payload": (500_000, lambda at, n: ["convert", large_tensor(at / "a.safetensors", n), at / "out.zt", "--encoding", "zstd"]),
    "convert shared bytes": (2000, lambda at, n: ["convert", many_objects(at / "a.zt", n), at / "out.safetensors", "--allow", "alias"]),
    "append": (8000, appended),
    "extract tensors": (1000, lambda at, n: ["extract", many_tensors(at / "a.safetensors", n), "--glob", "*", "-o", at / "all"]),
    "extract --dense": (40_000, lambda at, n: ["extract", sparse(at / "a.zt", n), "s", "--dense", "-o", at / "s.npy"]),
    "hash tensors": (16_000, lambda at, n: ["hash", many_tensors(at / "a.safetensors", n)]),
    "inspect keys": (20_000, lambda at, n: ["inspect", many_keys(at / "a.safetensors", n)]),
    "verify folder of keys": (10_000, lambda at, n: ["verify", folder_of_keys(at, n)]),
    "inspect folder of keys": (10_000, lambda at, n: ["inspect", folder_of_keys(at, n)]),
    "convert keys to a folder": (10_000, lambda at, n: ["convert", many_keys(at / "a.safetensors", n), at / "out", "--to", "hf", "--set", "hf.model_type=x"]),
    "convert keys unset": (4000, lambda at, n: ["convert", *unset_keys(at, n)]),
    "convert shards": (500, many_shards),
    "slm review keys": (10_000, lambda at, n: ["slm", "review-safetensors-candidate", *candidate_of_keys(at, n)]),
    "doctor tensors": (16_000, lambda at, n: ["doctor", many_tensors(at / "a.safetensors", n)]),
    "explain tensors": (64_000, lambda at, n: ["explain", many_tensors(at / "a.safetensors", n), f"layer.{n - 1}.weight[1]"]),
    "edit keys": (32_000, lambda at, n: ["edit", many_keys(at / "a.safetensors", n), "--set", "k=v", "-o", at / "b.safetensors", "--force"]),
    "manifest tensors": (16_000, lambda at, n: ["manifest", many_tensors(at / "a.safetensors", n), "--per-tensor", "--no-sign", "-o", at / "m.sig",
                                                "--force"]),
    "diff tensors": (16_000, lambda at, n: ["diff", *2 * [many_tensors(at / "a.safetensors", n)]]),
    "hash payload": (1_000_000, lambda at, n: ["hash", large_tensor(at / "a.safetensors", n)]),
    "khlnary assemble": (4000, lambda at, n: ["khlnary", "assemble", words_of(at, n), "-o", at / "out.knu"]),
    "khlnary disassemble": (4000, lambda at, n: ["khlnary", "disassemble", module_of(at, n)]),
    "khlnary verify": (4000, lambda at, n: ["khlnary", "verify", module_of(at, n)]),
    "slm review": (2000, lambda at, n: ["slm", "review-safetensors-candidate", many_tensors(at / "a.safetensors", n), "-o", at / "review"]),
    "embed": (4000, lambda at, n: ["embed", encoder(at), "--input", lines(at / "texts.txt", n)]),
    "embed one text": (100_000, lambda at, n: ["embed", encoder(at), "--input", lines(at / "texts.txt", 1, "word1 " * n + "\n")]),
    "similarity": (5000, lambda at, n: ["similarity", encoder(at), "word1 " * (n // 8), "word2 " * (n // 8)]),
    "search": (4000, lambda at, n: ["search", encoder(at), "word3", "--corpus", lines(at / "texts.txt", n)]),
    "tokenize words": (40_000, lambda at, n: ["tokenize", encoder(at), "--input", lines(at / "texts.txt", n)]),
    "tokenize one word": (40_000, lambda at, n: ["tokenize", language_model(at), "--input", lines(at / "texts.txt", 1, "ab" * n + "\n")]),
    "evaluate": (2000, lambda at, n: ["evaluate", "sts", encoder(at), pairs(at / "pairs.csv", n)]),
    "perplexity": (4000, lambda at, n: ["perplexity", language_model(at), "--input", lines(at / "text.txt", n, "a story\n")]),
    "generate": (20_000, lambda at, n: ["generate", language_model(at), "--input", lines(at / "prompt.txt", 1, "ab" * n)]),
}
# Refused jobs, which must be cheap too: a review in which nothing fits, and a prompt longer than the context.
REFUSED = {"slm review", "generate"}


def cost(folder, job, size):
    folder.mkdir(exist_ok=True)
    words = [*JOBS[job][1](folder, size), "--threads", "1", "--quiet"]
    measured = Measured(*words)
    assert measured.status == 0 or (job in REFUSED and measured.status in (1, 2)), (words, measured.status, measured.stderr)
    return measured.user


@pytest.mark.parametrize("job", JOBS)
def test_cost_grows_with_the_input(tmp_path, job):
    size = JOBS[job][0]
    for attempt in range(3):  # another job of the machine can slow one of the two
        small = cost(tmp_path / f"small{attempt}", job, size)
        large = cost(tmp_path / f"large{attempt}", job, size << DOUBLINGS)
        if not grows_too_fast(small, large):
            return
    assert False, f"{job}: {size} take {small:.3f} s, {size << DOUBLINGS} take {large:.3f} s"


def test_every_verb_is_measured():
    verbs = set(re.findall(r"^  ([a-z]+) ", run("--help").stdout.partition("Exit status")[0], re.MULTILINE))
    assert len(verbs) > 15 and verbs == {job.split()[0] for job in JOBS} | NO_INPUT


def test_what_is_quadratic_is_reported():
    assert not grows_too_fast(0.1, 0.1 * 2 ** DOUBLINGS)
    assert not grows_too_fast(0.001, 0.15)  # the clock's own error
    assert grows_too_fast(0.1, 0.1 * 4 ** DOUBLINGS)
    assert grows_too_fast(FLOOR / 2, FLOOR / 2 * 64)
