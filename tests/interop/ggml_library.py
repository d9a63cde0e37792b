# SPDX-License-Identifier: Apache-2.0
"""GGML's C library, and its quantizers compiled for processors with FMA."""
import ctypes
import importlib.util
import os
import pathlib
import shutil
import subprocess

import pytest

gguf = pytest.importorskip("gguf", reason="gguf is missing: tools/python-environments.sh makes the environment")

NUMBERS = {kind.name.lower(): int(kind) for kind in gguf.GGMLQuantizationType}
SOURCE = pathlib.Path(os.environ.get("WEIGHBRIDGE_GGML_SOURCE") or pathlib.Path(__file__).parents[2] / "build/demo/gguf/ggml")


def ggml():
    """GGML's C library, or nothing."""
    path = os.environ.get("WEIGHBRIDGE_GGML")
    spec = importlib.util.find_spec("llama_cpp")
    if not path and spec:
        path = pathlib.Path(spec.submodule_search_locations[0]) / "lib/libggml-base.so"
    return ctypes.CDLL(str(path)) if path and os.path.exists(path) else None


LIBRARY = ggml()


@pytest.fixture(scope="module")
def contracted(tmp_path_factory):
    """GGML's quantizers compiled for processors with FMA. Which products and sums become one operation is the compiler's choice."""
    if not SOURCE.exists():
        pytest.skip(f"{SOURCE} is missing: tools/fetch-vocabularies.sh fetches it")
    cpu = pathlib.Path("/proc/cpuinfo")
    if not cpu.exists() or " fma " not in cpu.read_text():
        pytest.skip("this processor has no FMA, or it is not Linux's x86-64")
    compiler = shutil.which("gcc-12") or shutil.which("gcc")
    if not compiler or not subprocess.run([compiler, "-dumpversion"], capture_output=True, text=True).stdout.startswith("12"):
        pytest.skip("there is no GCC 12, whose choices the encoders follow")
    out = tmp_path_factory.mktemp("ggml") / "quants.so"
    subprocess.run([compiler, "-std=gnu11", "-O3", "-DNDEBUG", "-march=haswell", "-D_GNU_SOURCE", "-fPIC", "-shared", "-w",
                    f"-I{SOURCE}/include", f"-I{SOURCE}/src", SOURCE / "src/ggml-quants.c", LIBRARY._name, "-lm", "-Wl,-Bsymbolic",
                    "-o", out], check=True, timeout=300)
    library = ctypes.CDLL(str(out))
    for kind in map(NUMBERS.get, ("iq2_xxs", "iq2_xs", "iq2_s")):
        library.iq2xs_init_impl(kind)
    for points in (256, 512):
        library.iq3xs_init_impl(points)
    return library


def quantizer(library, name):
    """Of values, output, rows, columns and the importance of the columns."""
    quantize = library["quantize_" + name.removesuffix("_k") + ("_K" if name.endswith("_k") else "")]
    quantize.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    return quantize
