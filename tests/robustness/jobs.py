# SPDX-License-Identifier: Apache-2.0
# Every way in which the command writes files, as jobs that can be killed, made to fail and restarted: the previous files, the command
# line, and the expected result. The tests decide what must hold afterwards.
import pathlib
import re
import shutil
import struct
import sys

from chain_jobs import CHAIN_JOBS, chain_job
from robustness import ROOT, STRAY, done, injecting, run, write_safetensors

sys.path.insert(0, str(ROOT / "tests/witness"))
import embd  # noqa: E402

OLD = b"what stood there before\n" * 20


def files_below(folder):
    """Relative path -> bytes; folders with None; temporaries are left out, with what is in them."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
            for path in sorted(folder.rglob("*")) if not any(map(STRAY.fullmatch, path.relative_to(folder).parts))}


def only_files(found):
    """Without folders: an empty one that a killed run made is no output."""
    return {name: data for name, data in found.items() if data is not None}


def strays_below(folder):
    """Names of leftover temporaries at any depth."""
    return sorted(path.name for path in folder.rglob("*") if STRAY.fullmatch(path.name))


class Job:
    """Makes `main` and the files that belong to it in the folder `there`, which contains nothing else. Of several files that belong
    together, `main` gets its name last: without it there is no output. Files that do not belong together (together=False) may be old
    and new until the next run; with `back`, a failing run removes those that it has published. `again`: the flags that the next run needs if complete files
    were left, which only a person may replace. `half`: for files that refer to each other by digest, a command line that must refuse
    them if some are missing or old. `alone`: a file that is of no use without `main`, and that the next run replaces."""

    def __init__(self, folder, arguments, main, before=None, together=True, again=("--force",), half=None, back=False, alone=None):
        self.alone = alone
        self.folder, self.there, self.together, self.again, self.half = folder, folder / "there", together, again, half
        self.back = back
        self.refused = set()  # states that `half` has refused
        self.restored = {}  # states that a run on a full disk has restored, and whether to the new files
        self.main = str(main.relative_to(self.there))
        self.arguments = [*arguments, "--threads", "1"]
        self.before = folder / "before"
        if before is not None and not self.before.exists():
            self.there.mkdir()
            before()
            self.there.rename(self.before)
        self.before.mkdir(exist_ok=True)
        self.old = files_below(self.before)
        self.reset()
        done = run(*self.arguments)
        assert done.returncode == 0, done.stderr
        self.new = files_below(self.there)
        assert self.main in self.new and self.new != self.old and strays_below(self.there) == []

    def reset(self):
        """Restores the previous state: the old files or none, and nothing else."""
        shutil.rmtree(self.there, ignore_errors=True)
        shutil.copytree(self.before, self.there)

    def system_calls(self):
        """The system calls of one run, in order: (name, its count so far, the line of the trace)."""
        self.reset()
        trace = self.folder / "trace"
        done = run(*self.arguments, prefix=["strace", "-qq", "-o", trace])
        assert done.returncode == 0, done.stderr
        seen, calls = {}, []
        for line in trace.read_text().splitlines():
            name = line.split("(")[0]
            seen[name] = seen.get(name, 0) + 1
            calls.append((name, seen[name], line))
        trace.unlink()
        return calls

    def run_with(self, injection):
        """A run from the start under `strace --inject=injection`."""
        def again():
            self.reset()
            return run(*self.arguments, prefix=injecting(injection))
        self.injected = again
        return again()

    def require_old_or_new(self, where):
        """Requires the old files or the new ones, byte for byte. Of several files, a run that cannot write a byte must restore the one
        or the other first; before it, the main file is missing, and the folder does not open. Returns whether they are the new ones."""
        found = files_below(self.there)
        if found in (self.old, self.new):
            return found == self.new
        if self.alone is not None and set(only_files(found)) - set(only_files(self.old)) == {self.alone}:
            return False
        if self.half is not None:
            if (state := self.left_behind()) not in self.refused:
                done = run(*self.half)
                assert done.returncode == 1 and "(chain/" in done.stderr, f"{where}: not refused: {sorted(found)}: {done.stderr}"
                self.refused.add(state)
            return False
        files = {name for name, data in found.items() if data is not None}
        names = {name for name, data in self.new.items() if data is not None}
        if self.together and (self.main in files or (names == {self.main} and files - set(self.old))):
            changed = [name for name in files if found[name] not in (self.old.get(name), self.new.get(name))]
            raise AssertionError(f"{where}: neither old nor new: {sorted(files)}, of neither {changed}")
        folder = self.there / pathlib.Path(self.main).parent
        if self.together and self.main.endswith(".safetensors") and folder.exists():
            assert run("verify", folder).returncode != 0, f"{where}: it opens without its weights: {sorted(files)}"
        state = self.left_behind()
        if state not in self.restored:
            self.restored[state] = self.restored_by_a_run_on_a_full_disk(where)
        return self.restored[state]

    def restored_by_a_run_on_a_full_disk(self, where):
        """Whether the files are the new ones after a next run that cannot write."""
        run(*self.arguments, prefix=injecting("pwrite64:error=ENOSPC", "fallocate:error=ENOSPC"))
        found = only_files(files_below(self.there))
        strays = [stray for stray in strays_below(self.there) if not stray.endswith(".tmp")]
        assert found in (only_files(self.old), only_files(self.new)), f"{where}: the next run restored neither: {sorted(found)}"
        assert strays == [], f"{where}: the next run left {strays}"
        self.injected()
        return found == only_files(self.new)

    def untouched(self, found):
        """Whether `found` is the previous state; files that do not belong together may include new ones."""
        come = not self.together and not self.back and all(data in (None, self.new.get(name)) for name, data in found.items())
        return found == self.old or come

    def left_behind(self):
        """What the next run finds: which files exist, old or new, and temporaries of which files."""
        found = files_below(self.there)
        sides = tuple((name, data == self.old.get(name), data == self.new.get(name)) for name, data in found.items())
        return sides, tuple(sorted({stray.rsplit("-", 1)[0] for stray in strays_below(self.there)}))

    def require_clean_next_run(self, where):
        """The next run makes the files, and removes everything that the previous run left."""
        found = files_below(self.there)
        if found != self.new or strays_below(self.there):
            part = found != self.old and "--force" not in self.arguments
            done = run(*self.arguments, *(self.again if part else ()))
            assert done.returncode == 0, f"{where}: {done.stderr}"
        assert files_below(self.there) == self.new, where
        assert strays_below(self.there) == [], where


# ---- inputs ----


def bert(hidden=4, layers=1, vocab=8, positions=4, seed=1, missing=()):
    """metadata, vocabulary, special ids and tensors of a small encoder, as embd.build takes them."""
    metadata = {"model_name": "small", "model_version": "1.0", "embedding_dim": str(hidden), "vocab_size": str(vocab),
                "num_layers": str(layers), "num_attention_heads": "2", "hidden_size": str(hidden),
                "intermediate_size": str(2 * hidden), "max_position_emb": str(positions),
                "created_at": "2026-01-31T12:00:00Z", "pooling_mode": "mean"}
    tokens = [b"[PAD]", b"[UNK]", b"[CLS]", b"[SEP]", b"[MASK]"] + [b"word%d" % i for i in range(seed, seed + vocab - 5)]
    special = dict(zip(("pad", "unk", "cls", "sep", "mask"), range(5)))
    tensors = []
    for name, shape in embd.required_tensors(hidden, layers, 2 * hidden, vocab, positions):
        count = 1
        for dim in shape:
            count *= dim
        data = b"" if name in missing else struct.pack(f"<{count}f", *(seed + i / 8 for i in range(count)))
        tensors.append((name, "f32", shape, data))
    return metadata, tokens, special, tensors


def write_checkpoint(path, dim=4, layers=1, ffn=3, vocab=262, positions=4):
    """A llama2.c checkpoint of two heads, its values counting up, and the tokenizer file beside it."""
    layer = 2 * dim + 4 * dim * dim + 3 * dim * ffn
    values = vocab * dim + layers * layer + dim + positions * (dim // 2)
    path.write_bytes(struct.pack("<7i", dim, ffn, layers, 2, 2, vocab, positions)
                     + struct.pack(f"<{values}f", *(i / 64 for i in range(values))))
    tokens = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *(b"<0x%02X>" % i for i in range(256)), b"ab", b"a", b"b"]
    path.with_suffix(".tokenizer").write_bytes(
        struct.pack("<i", 7) + b"".join(struct.pack("<fi", -i, len(token)) + token for i, token in enumerate(tokens[:vocab])))
    return path


def onnx_model(sizes):
    """A model without nodes, whose initializers are zeros: name -> elements of f32."""
    def field(number, value):
        def varint(n):
            return bytes([n & 127 | (128 if n > 127 else 0)]) + (varint(n >> 7) if n > 127 else b"")
        if isinstance(value, int):
            return varint(number << 3) + varint(value)
        return varint(number << 3 | 2) + varint(len(value)) + value
    graph = field(2, b"graph") + b"".join(
        field(5, field(1, size) + field(2, 1) + field(8, name.encode()) + field(9, bytes(4 * size))) for name, size in sizes.items())
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))


def inputs(folder):
    """The input files of jobs, by name."""
    made = {name: folder / file for name, file in {
        "first": "first.safetensors", "second": "second.safetensors", "twin": "twin.safetensors", "bare": "bare.safetensors",
        "embd": "model.weights", "embd-twin": "twin.weights", "slm": "base.slm", "deltas": "deltas.safetensors",
        "checkpoint": "tiny.bin", "texts": "texts.txt", "module": "module.knu", "adapter": "shift.adp1",
        "pack": "pack.safetensors", "pack-twin": "other/pack.safetensors", "text": "text.txt", "one": "one.safetensors",
        "onnx": "model.onnx", "cut": "cut.safetensors", "longer": "longer.safetensors"}.items()}
    if made["first"].exists():
        return made
    long = [0.5 * i for i in range(700)]
    write_safetensors(made["first"], {"a.weight": long, "a.bias": [1, 2, 3]})
    write_safetensors(made["second"], {"b.weight": [-1.0 * i for i in range(300)]})
    write_safetensors(made["twin"], {"b.weight": [-value for value in long], "b.bias": [4, 5, 6]})
    write_safetensors(made["bare"], {"0": long, "1": [1, 2, 3]})
    write_safetensors(made["one"], {"0": long})
    made["onnx"].write_bytes(onnx_model({"a.weight": 700, "a.bias": 3}))
    embd.write(made["embd"], *bert())
    embd.write(made["embd-twin"], *bert(seed=2))
    made["pack-twin"].parent.mkdir()
    write_safetensors(made["pack"], {f"layer.{i}": [i, i + 1] for i in range(18)})
    write_safetensors(made["pack-twin"], {f"other.{i}": [-i, i] for i in range(18)})
    write_safetensors(made["deltas"], {"norm.weight": [0.25] * 8})  # tiny's hidden size
    made["cut"].write_bytes(made["pack"].read_bytes()[:-20])
    made["longer"].write_bytes(made["first"].read_bytes() + b"a page that says not found")
    made["text"].write_text("CONST_I8 40\nRET\n")
    made["texts"].write_text("word1 word2\nword3\n")
    write_checkpoint(made["checkpoint"])
    for words in (["slm", "fixture", "tiny", "-o", made["slm"]],
                  ["khlnary", "assemble", made["text"], "-o", made["module"]],
                  ["slm", "adapter", made["slm"], made["deltas"], "--kind", "adp1", "-o", made["adapter"]]):
        done = run(*words)
        assert done.returncode == 0, done.stderr
    return made


def make_job(folder, name):
    """The job of this name (JOBS), in its own folder."""
    if name in CHAIN_JOBS:
        return chain_job(lambda *job, **more: Job(folder, *job, **more), name, folder, folder / "there")
    made, there = inputs(folder), folder / "there"

    def convert(source, target, *more, main=None, before=None):
        return Job(folder, ["convert", made[source], there / target, *more], there / (main or target), before)

    def stands(file):
        return lambda: (there / file).write_bytes(OLD)

    def converted(source, target, *more):
        return lambda: done("convert", made[source], there / target, *more)

    def old_folder():
        """Another model of the same shapes, with files that would also fit the new one."""
        converted("embd-twin", "model", "--to", "hf")()
        (there / "model/modules.json").write_text("[]\n")
        (there / "model/README.md").write_text("mine\n")

    def extract_into(stands_there, *more):
        """Several tensors into a folder that is not empty."""
        def before():
            (there / "all").mkdir()
            (there / "all" / stands_there).write_bytes(OLD)
        return Job(folder, ["extract", made["first"], "--glob", "*", "-o", there / "all", *more], there / "all/a.weight.npy", before,
                   together=False, back=True)

    def several(kind, most, main, before=None, more=()):
        """Two shards of at most that many bytes each."""
        return Job(folder, ["convert", made["pack"], f"{there}/model/", "--to", kind, "--max-shard-size", most, *more],
                   there / "model" / main, before)

    def several_over(kind, most, main):
        """The same over the four shards of another model."""
        return several(kind, most, main, lambda: done("convert", made["pack-twin"], f"{there}/model/", "--to", kind,
                                                      "--max-shard-size", most // 2), ["--force"])

    def offered():
        """A model beside the manifest that its publisher filled in."""
        done("slm", "fixture", "tiny", "-o", there / "m.slm")
        done("slm", "minimodel-template", there / "m.slm")
        manifest = there / "m.minimodel"
        manifest.write_text(re.sub(r"<[^>\n]*>", "filled-in", manifest.read_text()))

    embed = ["embed", made["embd"], "--input", made["texts"], "-o"]
    disassemble = ["khlnary", "disassemble", made["module"], "-o"]
    search = ["search", made["embd"], "word1", "--corpus", made["texts"], "--vectors", there / "v.npy"]

    def key_left():
        """A key whose vectors are missing."""
        done(*search)
        (there / "v.npy").unlink()

    hf, pack = ("--to", "hf"), ["khlnary", "pack", made["pack"], "-o", there / "module"]
    shards, index = ("--to", "safetensors", "--max-shard-size", "64"), "model/model.safetensors.index.json"
    weights, module = "model/model.safetensors", there / "module/pack.knu"
    slm, slm_out = made["slm"], there / "out.slm"
    makers = {
        "convert": lambda: convert("first", "new.zt"),
        "convert-zstd": lambda: convert("first", "new.zt", "--encoding", "zstd", "--digest", "sha256"),
        "convert-force": lambda: convert("first", "out.zt", "--force", before=stands("out.zt")),
        "append": lambda: Job(folder, ["append", there / "grown.zt", made["second"]], there / "grown.zt",
                              converted("first", "grown.zt")),
        "extract": lambda: Job(folder, ["extract", made["first"], "a.weight", "-o", there / "w.npy"], there / "w.npy"),
        "extract-force": lambda: Job(folder, ["extract", made["first"], "a.weight", "-o", there / "w.npy", "--force"],
                                     there / "w.npy", stands("w.npy")),
        "manifest": lambda: Job(folder, ["manifest", made["first"], "-o", there / "model.sig", "--no-sign"], there / "model.sig"),
        "manifest-force": lambda: Job(folder, ["manifest", made["first"], "-o", there / "model.sig", "--no-sign", "--force"],
                                      there / "model.sig", lambda: done("manifest", made["second"], "-o", there / "model.sig", "--no-sign")),
        "extract-dense": lambda: Job(folder, ["extract", made["first"], "a.weight", "--dense", "f16", "-o", there / "w.npy"],
                                     there / "w.npy"),
        "extract-glob": lambda: Job(folder, ["extract", made["first"], "--glob", "*", "-o", there / "all"],
                                    there / "all/a.weight.npy", together=False, back=True),
        "extract-glob-into": lambda: extract_into("mine.txt"),
        "extract-glob-force": lambda: extract_into("a.weight.npy", "--force"),
        "append-elsewhere": lambda: Job(folder, ["append", there / "first.zt", made["second"], "-o", there / "grown.zt"],
                                        there / "grown.zt", converted("first", "first.zt")),
        "safetensors": lambda: convert("adapter", "new.safetensors", "--allow", "attribute-type"),
        "safetensors-force": lambda: convert("first", "out.safetensors", "--cast", "bf16", "--force", before=stands("out.safetensors")),
        "llama2c": lambda: convert("checkpoint", "new.slm"),
        "embed": lambda: Job(folder, [*embed, there / "v.npy"], there / "v.npy"),
        "embed-force": lambda: Job(folder, [*embed, there / "v.npy", "--force"], there / "v.npy", stands("v.npy")),
        "embed-jsonl": lambda: Job(folder, [*embed, there / "v.jsonl"], there / "v.jsonl"),
        "search": lambda: Job(folder, search, there / "v.npy", again=(), alone="v.npy.key"),
        "search-key-left": lambda: Job(folder, search, there / "v.npy", key_left, again=(), alone="v.npy.key"),
        "disassemble": lambda: Job(folder, [*disassemble, there / "m.txt"], there / "m.txt"),
        "disassemble-force": lambda: Job(folder, [*disassemble, there / "m.txt", "--force"], there / "m.txt", stands("m.txt")),
        "receipt": lambda: Job(folder, ["slm", "import-receipt", there / "m.slm"], there / "m.minimodel-receipt", offered),
        "zt0": lambda: convert("first", "new.zt", "--to", "zt0", "--digest", "sha256"),
        "zt0-force": lambda: convert("first", "out.zt", "--to", "zt0", "--force", before=stands("out.zt")),
        "stb": lambda: convert("first", "new.stb"),
        "stb-force": lambda: convert("first", "out.stb", "--force", before=converted("twin", "out.stb")),
        "stb-force-bare": lambda: convert("bare", "out.stb", "--force", before=converted("twin", "out.stb")),
        "embd": lambda: convert("embd", "new.weights"),
        "embd-force": lambda: convert("embd", "out.weights", "--force", before=stands("out.weights")),
        "slm-fixture": lambda: Job(folder, ["slm", "fixture", "tiny", "-o", slm_out], slm_out),
        "slm-force": lambda: convert("slm", "out.slm", "--quantize", "q8_0", "--force", before=stands("out.slm")),
        "slm-adapter": lambda: Job(folder, ["slm", "adapter", slm, made["deltas"], "--kind", "adp1", "-o", there / "out.adp1"],
                                   there / "out.adp1"),
        "slm-adapt": lambda: Job(folder, ["slm", "adapt", slm, made["adapter"], "-o", slm_out, "--force"], slm_out,
                                 stands("out.slm")),
        "hf": lambda: convert("embd", "model", *hf, main=weights),
        "hf-force": lambda: convert("embd", "model", *hf, "--force", main=weights, before=old_folder),
        "shards": lambda: Job(folder, ["convert", made["first"], f"{there}/model/", *shards], there / index),
        "shards-force": lambda: Job(folder, ["convert", made["first"], f"{there}/model/", *shards, "--force"], there / index,
                                    lambda: done("convert", made["twin"], f"{there}/model/", *shards[:3], "1")),
        "pack": lambda: Job(folder, pack, module),
        "pack-force": lambda: Job(folder, [*pack, "--force"], module,
                                  lambda: done("khlnary", "pack", made["pack-twin"], "-o", there / "module")),
        "gguf": lambda: convert("first", "new.gguf"),
        "gguf-shards": lambda: several("gguf", 320, "model-00001-of-00002.gguf"),
        "gguf-shards-force": lambda: several_over("gguf", 320, "model-00001-of-00002.gguf"),
        "npy": lambda: convert("one", "new.npy", "--allow", "name"),
        "npz": lambda: convert("first", "new.npz"),
        "pytorch": lambda: convert("first", "new.pt"),
        "onnx": lambda: convert("first", "new.onnx", "--into", made["onnx"]),
        "zt2": lambda: convert("first", "new.zt", "--to", "zt2"),
        "zt2-shards": lambda: several("zt2", 80, "model.zt"),
        "zt2-shards-force": lambda: several_over("zt2", 80, "model.zt"),
        "join": lambda: Job(folder, ["convert", made["first"], made["second"], "-o", there / "new.safetensors"], there / "new.safetensors"),
        "edit-that-grows": lambda: Job(folder, ["edit", there / "m.safetensors", "--set", f"author={'x' * 9000}", "--in-place", "--quiet"],
                                       there / "m.safetensors", converted("first", "m.safetensors"), again=()),
        "salvage": lambda: Job(folder, ["doctor", made["cut"], "--salvage", there / "new.safetensors"], there / "new.safetensors"),
        "trim": lambda: Job(folder, ["doctor", made["longer"], "--trim", there / "new.safetensors"], there / "new.safetensors"),
        "plot": lambda: Job(folder, ["inspect", made["first"], "--plot", there / "new.svg"], there / "new.svg"),
        "assemble": lambda: Job(folder, ["khlnary", "assemble", made["text"], "-o", there / "m.knu", "--force"], there / "m.knu",
                                stands("m.knu")),
    }
    return makers[name]()


# The first six are killed at each call, the others at those that change the disk.
MODEL_JOBS = ["convert", "convert-zstd", "convert-force", "append", "extract", "extract-force", "append-elsewhere", "safetensors",
              "safetensors-force", "zt0", "zt0-force", "stb", "stb-force", "stb-force-bare", "embd", "embd-force", "slm-fixture",
              "slm-force", "slm-adapter", "slm-adapt", "llama2c", "hf", "hf-force", "shards", "shards-force", "pack", "pack-force", "assemble",
              "gguf", "gguf-shards", "gguf-shards-force", "npy", "npz", "pytorch", "onnx",
              "zt2", "zt2-shards", "zt2-shards-force", "join", "edit-that-grows", "salvage",
              "trim"]
RESULT_JOBS = ["manifest", "manifest-force", "extract-dense", "extract-glob", "extract-glob-into", "extract-glob-force", "embed", "embed-force", "embed-jsonl", "plot", "search", "search-key-left", "disassemble",
               "disassemble-force", "receipt"]
JOBS = MODEL_JOBS + RESULT_JOBS + CHAIN_JOBS
