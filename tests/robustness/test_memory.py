# SPDX-License-Identifier: Apache-2.0
# Tests that memory does not grow with the payload: models larger than the command's address space.
import os
import pathlib
import shutil
import tempfile

import pytest

from chain_jobs import fill
from jobs import bert, embd
from robustness import MIB, Measured, run, safetensors_header, write_safetensors, write_sparse_file
from sparse_models import write_sparse_checkpoint, write_sparse_embd, write_sparse_llama

LIMIT = 512 * MIB
PEAK = 300 * MIB
PAYLOAD = 3 << 30


def available_memory():
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


@pytest.fixture
def roomy():
    """A folder for the 3 GiB that convert writes: in memory if there is enough, to spare the disk."""
    shm = pathlib.Path("/dev/shm")
    in_memory = shm.is_dir() and shutil.disk_usage(shm).free > 2 * PAYLOAD and available_memory() > 4 * PAYLOAD
    parent = shm if in_memory else pathlib.Path(tempfile.gettempdir())
    if shutil.disk_usage(parent).free < 8 << 30:
        pytest.skip("less than 8 GiB free for a 3 GiB model and its copy")
    with tempfile.TemporaryDirectory(dir=parent) as name:
        yield pathlib.Path(name)


def within_the_limit(*words, seconds=300):
    done = Measured(*words, address_space=LIMIT, seconds=seconds)
    assert done.status == 0, (words, done.stderr)
    assert done.peak < PEAK, f"{words}: {done.peak / MIB:.0f} MiB at the peak"
    return done


def test_3_gib_in_512_mib_of_address_space(roomy):
    model = write_sparse_file(roomy / "model.safetensors", "BF16", 2, PAYLOAD)
    target = roomy / "model.zt"
    within_the_limit("convert", model, target, "--digest", "sha256")
    assert target.stat().st_size > PAYLOAD
    within_the_limit("verify", target)
    within_the_limit("verify", model)
    assert within_the_limit("diff", model, target).stdout.startswith("equal (")
    hashes = {within_the_limit("hash", path).stdout.split()[0] for path in (model, target)}
    assert len(hashes) == 1 and hashes.pop().startswith("wb2:")


def test_patches_of_a_gib(roomy):
    base, patch, back, out = (roomy / name for name in ("a.safetensors", "p.zt", "back.zt", "out.safetensors"))
    write_sparse_file(base, "BF16", 2, PAYLOAD // 3)
    result = write_sparse_file(roomy / "b.safetensors", "BF16", 2, PAYLOAD // 3)
    with open(result, "r+b") as file:
        for step in range(1000):
            file.seek(-(step + 1) * (1 << 20), 2)
            file.write(b"\1\2" if step else b"\1\2" * (1 << 19))  # and a chunk in full
    within_the_limit("diff", base, result, "--patch", patch)
    assert patch.stat().st_size < MIB
    within_the_limit("verify", patch)
    within_the_limit("apply", base, patch, "-o", out)
    digest = within_the_limit("hash", result).stdout.split()[0]
    assert within_the_limit("hash", out).stdout.split()[0] == digest
    assert within_the_limit("hash", base, "--with-patch", patch).stdout.split()[0] == digest
    within_the_limit("patch", "reverse", patch, "-o", back)
    within_the_limit("patch", "fold", patch, back, "-o", roomy / "none.zt")
    within_the_limit("patch", "export", patch, "--to", "slime", "--base", base, "-o", roomy / "folder")
    within_the_limit("patch", "import", roomy / "folder", "--base", base, "-o", roomy / "again.zt")


def test_compressed_and_back(roomy):
    model = write_sparse_file(roomy / "model.safetensors", "BF16", 2, PAYLOAD // 3)
    target = roomy / "model.zt"
    within_the_limit("convert", model, target, "--encoding", "zstd")
    assert target.stat().st_size < MIB, "zeros compress well"
    within_the_limit("verify", target)
    within_the_limit("convert", target, roomy / "back.safetensors")
    within_the_limit("extract", target, "w", "-o", roomy / "w.npy")
    within_the_limit("inspect", target, "--stats")


SMALLER = 600 * MIB  # and yet past the limit


@pytest.mark.parametrize("layout", ["csr", "coo"])
def test_a_tensor_made_sparse(roomy, layout):
    """Issue 16, A.8: nearly 160 million elements, one of 1,024 of which is not zero."""
    block = bytes(4092) + b"\0\0\x80\x3f"
    model = roomy / "model.safetensors"
    with open(model, "wb") as file:
        file.write(safetensors_header({"w": ("F32", [SMALLER // 4096, 1024], SMALLER)}))
        for _ in range(SMALLER // MIB):
            file.write(block * (MIB // 4096))
    target = roomy / "model.zt"
    within_the_limit("convert", model, target, "--sparse", layout)
    assert target.stat().st_size < SMALLER / 100
    within_the_limit("verify", target)


def test_zt0(roomy):
    model = write_sparse_file(roomy / "model.safetensors", "BF16", 2, SMALLER)
    target = roomy / "model.zt"
    within_the_limit("convert", model, target, "--to", "zt0", "--digest", "sha256")
    assert target.stat().st_size > SMALLER
    within_the_limit("verify", target)
    hashes = {within_the_limit("hash", path).stdout.split()[0] for path in (model, target)}
    assert len(hashes) == 1


def test_stb_and_a_module(roomy):
    model = write_sparse_file(roomy / "model.safetensors", "F32", 4, SMALLER)
    target = roomy / "model.stb"
    within_the_limit("convert", model, target)
    within_the_limit("verify", target)
    hashes = {within_the_limit("hash", path).stdout.split()[0] for path in (model, target)}
    assert len(hashes) == 1
    target.unlink()
    within_the_limit("khlnary", "pack", model, "-o", roomy / "module")
    within_the_limit("khlnary", "verify", roomy / "module/model.knu")
    within_the_limit("khlnary", "run", roomy / "module/model.knu")


def test_embd_and_a_folder(roomy):
    model = write_sparse_embd(roomy / "model.weights", SMALLER)
    assert model.stat().st_size > SMALLER
    within_the_limit("verify", model)
    within_the_limit("convert", model, roomy / "again.weights")
    (roomy / "again.weights").unlink()
    within_the_limit("convert", model, roomy / "folder", "--to", "hf")
    within_the_limit("verify", roomy / "folder")
    hashes = {within_the_limit("hash", path).stdout.split()[0] for path in (model, roomy / "folder")}
    assert len(hashes) == 1


def test_append_and_extract(roomy):
    small, large = write_safetensors(roomy / "small.safetensors", {"s": [1, 2]}), roomy / "large.safetensors"
    write_sparse_file(large, "BF16", 2, SMALLER)
    within_the_limit("convert", small, roomy / "grown.zt")
    within_the_limit("append", roomy / "grown.zt", large)
    assert (roomy / "grown.zt").stat().st_size > SMALLER
    within_the_limit("extract", roomy / "grown.zt", "--glob", "*", "--raw", "-o", roomy / "all")
    within_the_limit("extract", roomy / "grown.zt", "w", "--dense", "f32", "-o", roomy / "w.npy")
    assert (roomy / "w.npy").stat().st_size > 2 * SMALLER


def test_a_checkpoint(roomy):
    model, target = write_sparse_checkpoint(roomy / "model.bin", SMALLER), roomy / "model.slm"
    within_the_limit("verify", model)
    within_the_limit("convert", model, target)
    assert target.stat().st_size > SMALLER
    within_the_limit("verify", target)
    within_the_limit("inspect", target, "--stats")
    within_the_limit("convert", target, roomy / "model.safetensors", "--allow", "tokenizer,attribute-type")
    within_the_limit("hash", roomy / "model.safetensors")


LARGE = pytest.param(20 << 30, 3600, marks=pytest.mark.skipif(
    not os.environ.get("WEIGHBRIDGE_LARGE"), reason="quantizes 20 GiB, for many minutes: WEIGHBRIDGE_LARGE=1 runs it"))


@pytest.mark.parametrize("payload, seconds", [(2 << 30, 300), LARGE], ids=["2 GiB", "20 GiB"])
def test_a_folder_is_quantized_in_256_mib(roomy, payload, seconds):
    """And made again, by verify --derived-from."""
    folder, target = write_sparse_llama(roomy / "model", payload), roomy / "model.gguf"
    for words in (("convert", folder, target, "--quantize", "q4_k_m"), ("verify", target, "--derived-from", folder)):
        assert within_the_limit(*words, seconds=seconds).peak < 256 * MIB, words
    assert target.stat().st_size > payload // 4


def test_the_chain_of_evidence(roomy):
    """68 MB through every step that reads all bytes but does not run the model."""
    model, candidate, template = roomy / "made.slm", roomy / "candidate.safetensors", roomy / "template"
    assert run("slm", "fixture", "tinylm16m", "-o", model).returncode == 0
    assert run("convert", model, candidate, "--allow", "tokenizer,attribute-type").returncode == 0
    least = Measured("slm", "source-template", model, "-o", template).peak
    fill(template)
    trained = roomy / "trained.slm"
    for words in (["review-safetensors-candidate", candidate, "--manifest", template, "-o", roomy / "review"],
                  ["extract-safetensors-source", candidate, "--manifest", template, "--review", roomy / "review", "-o", roomy / "source"],
                  ["validate-source", roomy / "source", "-o", roomy / "validation"],
                  ["convert-trained", roomy / "source", "--validation", roomy / "validation", "-o", trained],
                  ["manifest", trained, "--source-kind", "converted-trained"], ["validate-manifest", trained]):
        done = Measured("slm", *words)
        assert done.status == 0, (words, done.stderr)
        assert done.peak < least + 40 * MIB, f"{words}: {done.peak / MIB:.0f} MiB at the peak, the least is {least / MIB:.0f}"


def test_slm(roomy):
    """68 MB, in the memory of a model of 20 kB plus a few buffers."""
    small, large, shift = roomy / "small.slm", roomy / "large.slm", roomy / "shift.adp1"
    deltas = write_safetensors(roomy / "deltas.safetensors", {"norm.weight": [0.25] * 512})
    assert run("slm", "fixture", "tiny", "-o", small).returncode == 0
    least = Measured("verify", small).peak

    def lean(*words):
        done = Measured(*words)
        assert done.status == 0, (words, done.stderr)
        assert done.peak < least + 40 * MIB, f"{words}: {done.peak / MIB:.0f} MiB at the peak, the least is {least / MIB:.0f}"

    lean("slm", "fixture", "tinylm16m", "-o", large)
    assert large.stat().st_size > 64 * MIB
    lean("verify", large)
    lean("hash", large)
    lean("convert", large, roomy / "again.slm")
    lean("convert", large, roomy / "q8.slm", "--quantize", "q8_0")
    lean("verify", roomy / "q8.slm")
    lean("slm", "adapter", large, deltas, "--kind", "adp1", "-o", shift)
    lean("slm", "adapt", large, shift, "-o", roomy / "adapted.slm")


def test_the_limit_is_in_force():
    """A job that needs more than the limit is stopped by it; otherwise the tests above would prove nothing."""
    done = Measured("--version", address_space=4 * MIB)
    assert done.status != 0


def test_a_run_of_marks_takes_the_memory_of_its_text(roomy):
    """U+302E survives the stripping of accents, so its run is put into canonical order."""
    embd.write(roomy / "model.weights", *bert(vocab=64, positions=16))
    (roomy / "marks.txt").write_bytes("\u302e".encode() * (8 << 20))
    done = Measured("tokenize", roomy / "model.weights", "--input", roomy / "marks.txt")
    assert done.status == 0 and done.peak < 160 * MIB, done.peak / MIB


def test_lines_without_a_text_take_no_memory_in_search(roomy):
    embd.write(roomy / "model.weights", *bert(vocab=64, positions=16))
    (roomy / "blank.txt").write_bytes(b"\n" * MIB + b"word1\n")
    done = Measured("search", roomy / "model.weights", "word1", "--corpus", roomy / "blank.txt")
    assert done.status == 0 and done.peak < 24 * MIB, done.peak / MIB
    assert f" {MIB + 1}: word1" in done.stdout


def test_the_cache_of_a_claimed_context_is_bounded_by_the_limit(roomy):
    assert run("slm", "fixture", "tiny-bpe", "-o", roomy / "model.slm").returncode == 0
    (roomy / "prompt.txt").write_text("ab\n")
    refused = run("generate", roomy / "model.slm", "--input", roomy / "prompt.txt", "--limit", "decoded=1K")
    assert refused.returncode == 2 and "the limit is 1000 bytes: ask for a shorter one" in refused.stderr, refused.stderr


@pytest.mark.parametrize("threads", [1, 4])
def test_a_patch_in_place_takes_64_mib_and_32_mib_a_thread(roomy, threads):
    """Every element changes, so the journal holds old bytes as large as the model."""
    head, size = safetensors_header({"w": ("U16", [48 * MIB], 96 * MIB)}), 96 * MIB
    base, result, patch = (roomy / name for name in ("base.safetensors", "result.safetensors", "p.zt"))
    piece = os.urandom(MIB)
    base.write_bytes(head + piece * 96)
    result.write_bytes(head + bytes(b ^ 0x55 for b in piece) * 96)
    assert run("diff", base, result, "--patch", patch).returncode == 0
    done = Measured("apply", base, patch, "--in-place", "--threads", threads)
    assert done.status == 0, done.stderr
    assert done.peak < (64 + 32 * threads) * MIB, f"{done.peak / MIB:.0f} MiB at the peak"
    assert base.stat().st_size == len(head) + size and base.read_bytes() == result.read_bytes()
