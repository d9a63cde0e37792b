#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a published reader over the corpus, and prints where it differs from the specification of its format.

  conform.py --against safetensors|gguf|numpy|torch|onnx|h5py|ztensor|all

Each file of index.tsv is valid or breaks a rule. A reader differs if it accepts what a rule forbids, refuses what is
valid, or crashes, hangs or takes unlimited memory on either. Left out are files with a tensor that weighbridge cannot
interpret, where both results are right, and indexes and parts of models in several files, which these packages do not
read. Accepting means that the package opens the file and reads every tensor. Each reader runs in its own process, with
limits of time and memory for each file, and without permission to run code from the file where it has such a switch.

The exit status is 0 if the reader never differs, 1 if it does, 2 for a usage error, 3 if no interpreter has the package.
"""
import argparse
import collections
import importlib.metadata
import json
import os
import pathlib
import re
import resource
import select
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PAGE = "docs/conformance.md"
MEMORY = 2 << 30  # beyond what the reader has when it starts
OF_SEVERAL = re.compile(r"\.json$|-of-\d+\.gguf$")  # an index, or a part of a model: these packages read single files
READING = re.compile(r"[A-Z]\d+$|design$|model$")  # of the project, where a specification is silent


# ---------------------------------------------------------------------------------------------------------------- readers
# Each makes a function that reads one file whole, and raises if the package refuses it.


def safetensors():
    from safetensors import deserialize, safe_open

    def read(path):
        with safe_open(path, framework="numpy") as file:
            file.metadata()
            list(file.keys())
        for _, tensor in deserialize(pathlib.Path(path).read_bytes()):  # NumPy lacks some of the types
            bytes(tensor["data"])
    return read


def gguf():
    from gguf import GGUFReader

    def read(path):
        reader = GGUFReader(path)
        for field in reader.fields.values():
            field.contents()
        for tensor in reader.tensors:
            tensor.data.tobytes()
    return read


def numpy():
    import numpy

    def read(path):
        loaded = numpy.load(path, allow_pickle=False)
        if not isinstance(loaded, numpy.ndarray):
            with loaded:
                for name in loaded.files:
                    loaded[name]
    return read


def torch():
    import torch

    def walk(value, seen):
        if id(value) in seen:
            return
        seen[id(value)] = value  # kept, so that no other value gets its id
        if isinstance(value, torch.Tensor):
            value.clone()
        elif isinstance(value, dict):
            for item in value.values():
                walk(item, seen)
        elif isinstance(value, (list, tuple, set)):
            for item in value:
                walk(item, seen)

    return lambda path: walk(torch.load(path, map_location="cpu", weights_only=True), {})


def onnx():
    import onnx
    from onnx import numpy_helper

    def tensors(message):
        for field, value in message.ListFields():
            if field.message_type is None:
                continue
            for item in [value] if hasattr(value, "ListFields") else value:
                if isinstance(item, onnx.TensorProto):
                    yield item
                elif hasattr(item, "ListFields"):
                    yield from tensors(item)

    def read(path):
        for tensor in tensors(onnx.load(path)):
            numpy_helper.to_array(tensor)
    return read


def h5py():
    import h5py

    def attributes(item):
        for value in item.attrs.values():
            repr(value)

    def look(_, item):
        attributes(item)
        if isinstance(item, h5py.Dataset):
            item[()]

    def read(path):
        with h5py.File(path, "r", locking=False) as file:
            attributes(file)
            file.visititems(look)
    return read


def ztensor0():
    import ztensor

    def read(path):
        with ztensor.Reader(path) as reader:
            for about in reader:
                reader.read_tensor(about.name).tobytes()
    return read


def ztensor1():
    import ztensor

    def read(path):
        reader = ztensor.Reader(path)
        for name in reader.keys():
            reader.metadata(name)
            for part in reader.read(name).components.values():
                part.tobytes()
    return read


def ztensor2():
    import ztensor

    def read(path):
        source = ztensor.open(path)
        source.verify(deep=True)
        for name in source:
            tensor = source[name]
            for role in tensor.parts:
                tensor[role].tobytes()
    return read


def planted(what):
    """Readers with a known fault, for the tests of this program."""
    def read(path):
        if what == "refuses":
            raise ValueError(f"{path} is refused")
        if what == "hangs":
            signal.pause()
        if what == "ends":
            os.kill(os.getpid(), signal.SIGSEGV)
        if what == "memory":
            bytearray(MEMORY * 2)
    return lambda: read


# name -> package, folders of the corpus, what is called, environments beside the sources to look in, function
Reader = collections.namedtuple("Reader", "package folders calls environments start")
READERS = {
    "safetensors": Reader("safetensors", ["safetensors"], "`safe_open` and `deserialize`", ["venv", "venv-python"], safetensors),
    "gguf": Reader("gguf", ["gguf"], "`GGUFReader`, with each field and tensor", ["venv", "venv-python"], gguf),
    "numpy": Reader("numpy", ["npy", "npz"], "`numpy.load` without pickles, with each member", ["venv", "venv-python"], numpy),
    "torch": Reader("torch", ["pytorch"], "`torch.load` with `weights_only=True`, with each tensor", ["venv-torch"], torch),
    "onnx": Reader("onnx", ["onnx"], "`onnx.load` and `numpy_helper.to_array` of each tensor", ["venv"], onnx),
    "h5py": Reader("h5py", ["hdf5"], "`h5py.File`, with each dataset and attribute", ["venv"], h5py),
    "ztensor-0.1": Reader("ztensor", ["zt0"], "`Reader`, with each tensor", ["venv-ztensor014"], ztensor0),
    "ztensor-1": Reader("ztensor", ["zt"], "`Reader`, with each component", ["venv-ztensor123"], ztensor1),
    "ztensor-2": Reader("ztensor", ["zt2"], "`open`, `verify(deep=True)` and each part", ["venv-ztensor212"], ztensor2),
}
for fault in ("accepts", "refuses", "hangs", "ends", "memory"):
    READERS[f"planted-{fault}"] = Reader("pip", ["npy"], "a planted fault", [], planted(fault))
MAJORS = {"ztensor-0.1": "0.1", "ztensor-1": "1", "ztensor-2": "2"}
PUBLIC = [name for name in READERS if not name.startswith("planted-")]


def worker(name):
    """Reads paths from standard input, one per line, and prints a line of JSON for each; the first line has the
    version."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what packages print themselves
    os.dup2(1, 2)

    def answer(*what):
        print(json.dumps(what), file=answers, flush=True)

    reader = READERS[name]
    try:
        read, version = reader.start(), importlib.metadata.version(reader.package)
    except (ImportError, importlib.metadata.PackageNotFoundError) as error:
        answer("missing", str(error))
        return
    now = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answer("version", version)
    for line in sys.stdin:
        path = line.rstrip("\n")
        try:
            read(path)
            answer("accepts", "")
        except MemoryError:
            answer("memory", "")
        except KeyboardInterrupt:
            return
        except BaseException as error:  # a panic of Rust is not an Exception
            said = " ".join(re.sub(r"\x1b\[[\d;]*m", "", str(error)).replace(path, "FILE").split())
            said = said.rpartition("WeightsUnpickler error: ")[2]  # PyTorch puts a page of advice in front
            kind = type(error).__name__
            answer("panics" if kind == "PanicException" else "refuses", f"{kind}: {said}" if said else kind)


# ------------------------------------------------------------------------------------------------------------- the parent


class Missing(Exception):
    """No interpreter has the package."""


class Process:
    """A worker that answers lines with lines; it is started again after it ended or hung. `options` are those of Popen."""

    def __init__(self, command, seconds, **options):
        self.command, self.seconds, self.options, self.process, self.left = command, seconds, options, None, b""

    def start(self):
        self.process, self.left = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **self.options), b""

    def stop(self):
        if self.process:
            with self.process:  # closes its pipes and waits for it
                self.process.kill()
        self.process = None

    def used(self):
        """Processor seconds of the worker."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def send(self, lines):
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write("".join(f"{line}\n" for line in lines).encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # line() says that it ended

    def line(self, seconds):
        """The next answer, or None if there was none in `seconds` of the processor, or in six times that on the clock, or b"" if the worker ended. A
        busy machine must not make a reader hang."""
        until, before = time.monotonic() + 6 * seconds, self.used()
        while b"\n" not in self.left:
            if time.monotonic() >= until or self.used() - before >= seconds:
                return None
            ready, _, _ = select.select([self.process.stdout], [], [], min(seconds / 4, 1))
            if ready:
                more = os.read(self.process.stdout.fileno(), 1 << 16)
                if not more:
                    return b""
                self.left += more
        line, _, self.left = self.left.partition(b"\n")
        return line


class Reader(Process):
    """One of READERS."""

    def __init__(self, name, python, seconds):
        super().__init__([python, "-B", str(HERE / "conform.py"), "--worker", name], seconds)
        self.version = None

    def start(self):
        super().start()
        line = self.line(300)
        kind, said = json.loads(line) if line else ("missing", "the reader does not start")
        if kind == "missing":
            self.stop()
            raise Missing(said)
        self.version = said

    def read(self, path):
        self.send([path])
        line = self.line(self.seconds)
        if line:
            return json.loads(line)
        if line is None:
            self.stop()
            return "hangs", f"more than {self.seconds:g} s"
        code = self.process.wait()
        self.stop()
        # Without memory, Python may not even be able to say so.
        return ("ends", signal.Signals(-code).name) if code < 0 else ("memory", "")


Entry = collections.namedtuple("Entry", "file verdict rule source says also beside")


def index(corpus):
    lines = (corpus / "index.tsv").read_text().splitlines()[1:]
    return [Entry(*line.split("\t")) for line in lines]


def interpreter(name, chosen):
    """The first interpreter that has the reader's package, of the version that it needs."""
    build = HERE.parent / "build"
    tried = [chosen] if chosen else [sys.executable, *(str(build / each / "bin/python") for each in READERS[name].environments)]
    for python in tried:
        if not pathlib.Path(python).exists():
            continue
        asked = subprocess.run([python, "-c", "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))", READERS[name].package],
                               capture_output=True, text=True)
        version = asked.stdout.strip()
        if asked.returncode == 0 and (name not in MAJORS or (version + ".").startswith(MAJORS[name] + ".")):
            return python
    wanted = READERS[name].package + (f" {MAJORS[name]}" if name in MAJORS else "")
    raise Missing(f"no interpreter here has the package {wanted} (--python PATH names one): tried {', '.join(tried)}")


def differs(entry, kind):
    """How a result differs from the specification, or None."""
    if kind not in ("accepts", "refuses"):
        return kind
    if kind == "accepts" and entry.verdict == "invalid":
        return "accepts"
    if kind == "refuses" and entry.verdict in ("valid", "warning"):
        return "refuses"
    return None


Run = collections.namedtuple("Run", "name version entries left_out found")


def run(name, corpus, python, seconds, limit_files=None, version=None):
    entries = [entry for entry in index(corpus) if entry.file.split("/")[0] in READERS[name].folders][:limit_files]
    process, found = Reader(name, python, seconds), []
    read = [entry for entry in entries if entry.verdict != "unsupported" and not OF_SEVERAL.search(entry.file)]
    try:
        process.start()
        if version not in (None, process.version):
            raise Missing(f"{name} is installed in version {process.version}, not {version}")
        for entry in read:
            kind, said = process.read(corpus / entry.file)
            if how := differs(entry, kind):
                found.append((entry, how, said))
    finally:
        process.stop()
    return Run(name, process.version, read, len(entries) - len(read), found)


# ------------------------------------------------------------------------------------------------------------- what is said


def cell(text, most=110):
    text = text if len(text) <= most else text[:most - 3].rstrip() + "..."
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("`", "'")


def counts(result):
    accepted = [entry for entry, how, _ in result.found if how == "accepts"]
    silent = sum(bool(READING.match(entry.source)) for entry in accepted)
    refused = sum(how == "refuses" for _, how, _ in result.found)
    worse = len(result.found) - len(accepted) - refused
    return len(result.entries), len(result.entries) - len(result.found), len(accepted) - silent, silent, refused, worse


def summary_row(result):
    package = READERS[result.name].package
    return f"| [{package} {result.version}](#{result.name.replace('.', '')}) | " + " | ".join(map(str, counts(result))) + " |"


WORSE = {"ends": "ends the process", "hangs": "does not come back", "memory": f"asks for more than {MEMORY >> 30} GiB", "panics": "panics"}


def section(result):
    """The part of the page about one reader."""
    reader = READERS[result.name]
    out = [f"## {result.name}", "",
           f"{reader.package} {result.version} over " + " and ".join(f"`corpus/{folder}`" for folder in reader.folders) +
           f": {reader.calls}. {len(result.entries)} files" + (f"; {result.left_out} are left out" if result.left_out else "") + ".", ""]
    groups = collections.Counter((entry.rule, entry.source, entry.says) for entry, how, _ in result.found if how == "accepts")
    if groups:
        of_rule = collections.Counter(entry.rule for entry in result.entries)
        out += ["Accepts what breaks a rule:", "", "| rule | from | it says | files |", "| --- | --- | --- | --- |"]
        out += [f"| `{rule}` | {cell(source)} | {cell(says)} | {count} of {of_rule[rule]} |" for (rule, source, says), count in groups.items()]
        out.append("")
    refused = [(entry, said) for entry, how, said in result.found if how == "refuses"]
    if refused:
        out += ["Refuses what is valid:", "", "| file | warning | what it says |", "| --- | --- | --- |"]
        out += [f"| `{entry.file}` | {f'`{entry.rule}`' if entry.rule else ''} | {cell(said)} |" for entry, said in refused]
        out.append("")
    worse = [(entry, how, said) for entry, how, said in result.found if how in WORSE]
    if worse:
        out += ["Ends, hangs or takes memory without measure:", "", "| file | it is | the reader |", "| --- | --- | --- |"]
        # Which of the two comes first depends on the machine.
        without_measure = f"takes more than 10 s, or more than {MEMORY >> 30} GiB"
        out += [f"| `{entry.file}` | {entry.verdict} | " + (without_measure if how in ("hangs", "memory") else WORSE[how] + (f" ({cell(said)})" if said else ""))
                + " |" for entry, how, said in worse]
        out.append("")
    if not result.found:
        out += ["It never differs.", ""]
    return "\n".join(out)


def put_into(text, result):
    """The page with this reader's row and section replaced."""
    package = READERS[result.name].package
    row = re.compile(rf"^\| \[{re.escape(package)} [^\]]*\]\(#{re.escape(result.name.replace('.', ''))}\) \|.*$", re.M)
    part = re.compile(rf"^## {re.escape(result.name)}\n.*?(?=^## |\Z)", re.M | re.S)
    if not row.search(text) or not part.search(text):
        raise SystemExit(f"conform.py: {PAGE} has no row or no section for {result.name}")
    text = row.sub(lambda _: summary_row(result), text)
    return part.sub(lambda _: section(result) + "\n", text).rstrip("\n") + "\n"


def print_table(result):
    files, agrees, forbidden, silent, refused, worse = counts(result)
    package = READERS[result.name].package
    print(f"{package} {result.version}: {files} files, agrees on {agrees}")
    print(f"  accepts {forbidden} that a section of the text forbids and {silent} that a reading forbids; refuses {refused} that are valid; "
          f"ends, hangs or takes memory without measure on {worse}")
    for entry, how, said in result.found:
        text = entry.rule if how == "accepts" else WORSE.get(how, "") + (" " if how in WORSE and said else "") + said
        source = f" [{entry.source}]" if how == "accepts" else ""
        print(f"  {how:8} {entry.verdict:8} {entry.file:56} {text}{source}")


def main():
    if sys.argv[1:2] == ["--worker"]:
        return worker(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--against", required=True, metavar="READER", help=f"one of {', '.join(PUBLIC)}; ztensor (all three); all")
    parser.add_argument("--corpus", type=pathlib.Path, default=HERE, help="folder with index.tsv (default: that of this program)")
    parser.add_argument("--python", help="interpreter that has the package (default: this one, then those below build/)")
    parser.add_argument("--seconds", type=float, default=10, help="processor time for each file (default: 10)")
    parser.add_argument("--files", type=int, help="read only the first N files")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--write", type=pathlib.Path, metavar="PAGE", help=f"put the results into this page ({PAGE})")
    chosen = parser.parse_args()
    names = {"all": PUBLIC, "ztensor": list(MAJORS)}.get(chosen.against, [chosen.against])
    if names[0] not in READERS:
        parser.error(f"no reader is named {chosen.against}; there are {', '.join(PUBLIC)}, ztensor and all")
    results, missing = [], []
    for name in names:
        try:
            results.append(run(name, chosen.corpus, interpreter(name, chosen.python), chosen.seconds, chosen.files))
        except Missing as error:
            missing.append(f"{name}: {error}")
            continue
        if chosen.write:
            chosen.write.write_text(put_into(chosen.write.read_text(), results[-1]))
            print(f"conform.py: {chosen.write}: {name} {results[-1].version}", file=sys.stderr, flush=True)
    if chosen.json:
        print(json.dumps([{"reader": result.name, "version": result.version, "files": len(result.entries), "left_out": result.left_out,
                           "differs": [{**entry._asdict(), "how": how, "said": said} for entry, how, said in result.found]}
                          for result in results], indent=1))
    else:
        for result in results:
            print_table(result)
    for line in missing:
        print(f"conform.py: {line}", file=sys.stderr)
    if missing:
        return 3
    return 1 if any(result.found for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
