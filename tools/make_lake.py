#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a lake of a thousand small model files to try `python -m weighbridge.ray audit` on: every format, shards, folders, damage of thirteen kinds, and
duplicates under other names and in other containers. Beside the folder LAKE it writes LAKE.expected.jsonl, which says of each file what an audit has to
find: {"path", "verdict", "content", "damage", "rule"}. Files with the same "content" hold the same tensors; null: unknown.

usage: make_lake.py LAKE [--files 1000] [--seed 1]      needs the packages weighbridge and numpy

The same arguments make the same files. The formats that the package only reads come from the folder corpus/ of the sources."""
import argparse
import gzip
import json
import pathlib
import random
import shutil

import numpy as np

import weighbridge as wb

CORPUS = pathlib.Path(__file__).resolve().parents[1] / "corpus"
CONTAINERS = {"safetensors": {}, "gguf": {}, "zt": {"digest": "sha256"}, "zt2": {"format": "zt2", "digest": "sha256"}, "zt0": {"format": "zt0"}, "stb": {},
              "npz": {}, "pt": {}}
CHECKED = ("zt", "npz", "pt")  # whose payload has checksums
READ_ONLY = ("hdf5", "keras", "onnx", "llama2c", "slm-adapter", "slm", "embd", "npy")
DTYPES = (np.float32, np.float16, np.int8)


class Lake:
    def __init__(self, folder, seed):
        self.folder, self.random, self.rows = folder, random.Random(seed), []
        self.numbers = np.random.default_rng(seed)
        self.contents = 0

    def path(self, suffix, name=None):
        place = self.folder / self.random.choice(["", "team-a", "team-b/runs", "old", "downloads"])
        place.mkdir(parents=True, exist_ok=True)
        return place / f"{name or self.random.choice(['model', 'weights', 'ckpt', 'final', 'backup'])}-{len(self.rows):04d}.{suffix}"

    def tell(self, path, verdict, content=None, damage=None, rule=None):
        self.rows.append({"path": str(path.relative_to(self.folder)) if isinstance(path, pathlib.Path) else path, "verdict": verdict,
                          "content": content, "damage": damage, "rule": rule})

    def tensors(self):
        """New content. The first number makes it unlike all others."""
        self.contents += 1
        out = {f"layer.{i}.weight": (self.numbers.standard_normal((self.random.randint(2, 9), 32)) * 9).astype(self.random.choice(DTYPES))
               for i in range(self.random.randint(1, 5))}
        out["id"] = np.array([self.contents] + [1] * 63, np.float32)
        return self.contents, out

    def save(self, container, tensors, suffix=None):
        path = self.path(suffix or container)
        wb.save(path, tensors, **CONTAINERS[container])
        if container == "stb":
            self.tell(path.with_suffix(".khm.json"), "other")
        return path

    def models(self, count):
        """Some once, some twice to five times, in other containers."""
        end = len(self.rows) + count
        while len(self.rows) < end:
            content, tensors = self.tensors()
            for container in self.random.choices(list(CONTAINERS), k=self.random.choice([1, 1, 2, 3, 5])):
                if len(self.rows) + (container == "stb") < end:  # which has a file beside it
                    self.tell(self.save(container, tensors), "valid", content)

    def named_wrongly(self):
        content, tensors = self.tensors()
        self.tell(self.save("gguf", tensors), "valid", content)
        path = self.path("ckpt")
        shutil.copyfile(self.folder / self.rows[-1]["path"], path)
        self.tell(path, "valid", content, "another extension")

    def read_only(self, most):
        for name in READ_ONLY:
            valid = sorted(path for path in (CORPUS / name).glob("valid-*") if len(list((CORPUS / name).glob(path.stem + ".*"))) == 1)
            taken = 0
            for file in valid:
                if taken < most and wb.verify(file).valid and not wb.verify(file).findings:
                    path = self.path(file.suffix[1:], file.stem)
                    shutil.copyfile(file, path)
                    self.tell(path, "valid")
                    taken += 1

    def sharded(self, container, missing):
        content, tensors = self.tensors()
        folder = self.folder / f"sharded-{len(self.rows):04d}"
        source = self.folder / "source.zt"
        wb.save(source, tensors)
        wb.convert(source, f"{folder}/", format=container, max_shard_size=400)
        source.unlink()
        files = sorted(folder.iterdir())
        shards = [path for path in files if path.suffix != ".json"]
        if missing:
            shards[-1].unlink()
            if container == "safetensors":
                self.tell(folder / "model.safetensors.index.json", "invalid", None, "a shard is missing", "safetensors/shard-missing")
            for path in shards[:-1]:
                self.tell(path, "invalid" if container == "gguf" and path == shards[0] else "valid", None, "a shard is missing")
            return
        if container == "safetensors":
            self.tell(f"{folder.name}/", "valid", content)
        for path in files:
            self.tell(path, "valid" if container == "gguf" and path == shards[0] else "part", content if path == shards[0] and container == "gguf" else None)

    def folder_of_a_model(self):
        content, tensors = self.tensors()
        folder = self.folder / f"hub-{len(self.rows):04d}"
        folder.mkdir()
        wb.save(folder / "model.safetensors", tensors)
        (folder / "config.json").write_text(json.dumps({"model_type": "test", "layers": len(tensors) - 1}))
        (folder / "README.md").write_text("# A model\n")
        self.tell(f"{folder.name}/", "valid", content)
        for name, verdict in (("model.safetensors", "part"), ("config.json", "part"), ("README.md", "other")):
            self.tell(folder / name, verdict)

    def others(self):
        for name, text in (("notes.md", "what is where\n"), ("train.py", "print(1)\n"), ("log.csv", "step,loss\n1,2.5\n")):
            path = self.path(name.split(".")[1], name.split(".")[0])
            path.write_text(text)
            self.tell(path, "other")

    def damaged(self, kind):
        _, tensors = self.tensors()
        container = self.random.choice(CHECKED if kind == "a bit flipped" else ["safetensors"] if kind == "zeros at the end" else
                                       ["safetensors", "gguf"] if kind == "a size of 2^62" else list(CONTAINERS)[:3])
        path = self.save(container, tensors, container)
        data = bytearray(path.read_bytes())
        rule = None
        if kind == "cut":
            del data[len(data) - self.random.randint(1, 120):]
        elif kind == "a bit flipped":
            bytes_ = tensors["id"].tobytes()
            data[data.index(bytes_) + self.random.randrange(len(bytes_))] ^= 1 << self.random.randrange(8)
        elif kind == "a size of 2^62":
            at = 0 if container == "safetensors" else 8
            data[at:at + 8] = (1 << 62).to_bytes(8, "little")
        elif kind == "bytes before the start":
            data[:0] = self.random.randbytes(16)
        elif kind == "zeros at the end":
            data = data[:1024].ljust(len(data) + 8192, b"\0")
        elif kind == "empty":
            data, rule = b"", "file/empty"
        elif kind == "a page of HTML":
            data, rule = b"<!DOCTYPE html>\n<html><body>Access denied</body></html>\n", "file/html"
        elif kind == "a Git LFS pointer":
            data = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"
            rule = "file/git-lfs-pointer"
        elif kind == "an error as text":
            data, rule = b'{"error": "Repository not found"}', "file/error-text"
        elif kind == "compressed":
            data, rule = gzip.compress(bytes(data), mtime=0), "file/compressed"
        elif kind == "all zeros":
            data, rule = bytes(len(data)), "file/zeros"
        elif kind == "random bytes":
            data = b"\x01" + self.random.randbytes(len(data))
        path.write_bytes(data)
        self.tell(path, "invalid", None, kind, rule)


DAMAGE = ("cut", "a bit flipped", "a size of 2^62", "bytes before the start", "zeros at the end", "empty", "a page of HTML", "a Git LFS pointer",
          "an error as text", "compressed", "all zeros", "random bytes")  # and a missing shard


def make(folder, files=1000, seed=1):
    """Makes the lake and returns the rows of its expected table."""
    folder.mkdir(parents=True)
    lake = Lake(folder, seed)
    each = max(1, files // 200)
    for kind in DAMAGE:
        for _ in range(each * 2):
            lake.damaged(kind)
    for _ in range(each):
        for container in ("safetensors", "gguf"):
            lake.sharded(container, False)
        lake.sharded("safetensors", True)
        lake.sharded("gguf", True)
        lake.folder_of_a_model()
        lake.named_wrongly()
        lake.others()
    lake.read_only(2 * each)
    count = sum(not row["path"].endswith("/") for row in lake.rows)
    lake.models(max(0, files - count))
    return sorted(lake.rows, key=lambda row: row["path"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows = make(given.folder.resolve(), given.files, given.seed)
    expected = given.folder.with_name(given.folder.name + ".expected.jsonl")
    expected.write_text("".join(json.dumps(row) + "\n" for row in rows))
    damaged = sum(row["damage"] is not None for row in rows)
    print(f"{given.folder}: {sum(not row['path'].endswith('/') for row in rows):,} files, {damaged} of them damaged or named wrongly; {expected} says what to find")


if __name__ == "__main__":
    main()
