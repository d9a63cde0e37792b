# SPDX-License-Identifier: Apache-2.0
"""Embedder, on a random model, and Generator, on the model that the test data holds."""
import json
import os
import pathlib
import pickle
import select
import shutil
import signal
import threading
import time

import pytest

np = pytest.importorskip("numpy")

import weighbridge as wb  # noqa: E402

ROOT = pathlib.Path(os.environ.get("WEIGHBRIDGE_ROOT", pathlib.Path(__file__).parents[2]))
DATA = pathlib.Path(os.environ.get("WEIGHBRIDGE_TEST_DATA", ROOT.parent / "shared/data"))


@pytest.fixture(scope="module")
def generator(tmp_path_factory):
    source = DATA / "llama/stories260K.bin"
    if not source.exists():
        pytest.skip(f"{source} is missing: WEIGHBRIDGE_TEST_DATA can name the folder of the test data")
    path = tmp_path_factory.mktemp("stories") / "stories.slm"
    wb.convert(wb.open(source, tokenizer=source.with_name("tok512.bin")), path, allow="attribute")
    return wb.Generator(path)


def test_encode_has_the_habits_of_sentence_transformers(embedder):
    one, many = embedder.encode("a truck"), embedder.encode(["a lorry", "a truck", ""])
    assert one.shape == (32,) and many.shape == (3, 32) and many.dtype == np.float32
    assert np.array_equal(many[1], one), "order is kept, and a text has the same vector in any batch"
    assert np.allclose(np.linalg.norm(many, axis=1), 1, atol=1e-6)
    assert embedder.encode([]).shape == (0, 32)
    assert embedder.get_embedding_dimension() == embedder.get_sentence_embedding_dimension() == 32 and embedder.max_seq_length == 128
    assert np.array_equal(embedder.encode_query("x"), embedder.encode("query: x")) and np.array_equal(embedder.encode_document("x"), embedder.encode("x"))
    assert np.array_equal(embedder.encode("x", prompt="query: "), embedder.encode("x", prompt_name="query"))
    assert np.array_equal(embedder.encode(sentences=["x"]), embedder.encode(["x"]))
    with pytest.raises(TypeError, match="needs texts"):
        embedder.encode()
    short = embedder.encode("a truck", truncate_dim=10, normalize_embeddings=True)
    assert short.shape == (10,) and abs(np.linalg.norm(short) - 1) < 1e-6
    assert embedder.encode(["a", "b"], precision="ubinary").shape == (2, 4)
    assert embedder.similarity(one, many)[0, 1] == pytest.approx(1)
    assert isinstance(embedder.encode(["a"], convert_to_numpy=False), list)
    with pytest.raises(wb.UsageError, match="no prompt"):
        embedder.encode("x", prompt_name="nope")
    with pytest.raises(wb.UsageError, match="text 1 is a int"):
        embedder.encode(["x", 3])


def test_prompts_of_the_folder(encoder_folder, tmp_path):
    folder = tmp_path / "tiny"
    shutil.copytree(encoder_folder, folder)
    stored = folder / "config_sentence_transformers.json"
    stored.write_text(json.dumps({"prompts": {"query": "query: ", "document": ""}, "default_prompt_name": "query", "similarity_fn_name": "cosine"}))
    embedder = wb.Embedder(folder, truncate_dim=8)
    assert embedder.prompts == {"query": "query: ", "document": ""} and embedder.encode("x").shape == (8,)
    assert np.array_equal(embedder.encode("x"), wb.Embedder(folder, prompts={}, truncate_dim=8).encode("query: x"))
    assert pickle.loads(pickle.dumps(embedder)).default_prompt_name == "query"
    for wrong in ("[1]", "{", '{"prompts": {"a": 1}}', '{"default_prompt_name": "x"}', "[" * 100_000):
        stored.write_text(wrong)
        with pytest.raises(wb.MalformedError, match="config_sentence_transformers.json"):
            wb.Embedder(folder)
    stored.unlink()
    with pytest.raises(wb.UsageError, match="no prompt is called 'nope'"):
        wb.Embedder(folder, default_prompt_name="nope")
    with pytest.raises(wb.UsageError, match="at least 1"):
        embedder.encode("x", truncate_dim=-1)
    for precision in ("float32", "int8", "uint8", "binary"):
        assert len(embedder.encode([], precision=precision)) == 0
    with pytest.raises(FileNotFoundError, match="has to be downloaded first"):
        wb.Embedder("sentence-transformers/all-MiniLM-L6-v2")
    with pytest.raises(wb.UsageError, match="on the CPU"):
        embedder.encode("x", device="cuda")
    one = embedder.encode(["a truck", "a lorry"])
    assert np.allclose(embedder.similarity_pairwise(one, one), 1) and embedder.similarity_pairwise(one, one[::-1])[0] < 1


def test_settings_of_the_folder_are_followed_or_refused(encoder_folder, tmp_path):
    folder = tmp_path / "tiny"
    shutil.copytree(encoder_folder, folder)
    kind = "sentence_transformers.models."
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling/config.json").write_text(json.dumps({"embedding_dimension": 32, "pooling_mode": ["cls", "mean"], "include_prompt": False}))
    (folder / "modules.json").write_text(json.dumps([{"idx": i, "name": str(i), "path": path, "type": kind + name} for i, (path, name) in
                                                     enumerate((("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")))]))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "query: "}, "default_prompt_name": "query"}))
    embedder = wb.Embedder(folder)
    assert embedder.dimension == 64 and embedder._embedder.pooling == "cls+mean"
    whole, apart = wb.Embedder(folder, prompts={}).encode("query: a truck"), embedder.encode("a truck")
    assert apart.shape == (64,) and not np.allclose(whole, apart)  # the prompt's tokens are not pooled
    assert np.array_equal(embedder.encode_document("a truck"), embedder.encode("a truck", prompt=""))
    assert np.array_equal(embedder.encode_query("a truck"), apart)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "position_embedding_type": "relative_key"}))
    with pytest.raises(wb.UnsupportedError, match="position_embedding_type"):
        wb.Embedder(folder)
    with pytest.warns(UserWarning, match="position_embedding_type"):
        assert np.array_equal(wb.Embedder(folder, ignore_setting=["position_embedding_type"]).encode("a truck"), apart)
    (folder / "config.json").write_text(json.dumps({**config, "gated": True}))
    with pytest.warns(UserWarning, match="gated"):
        assert np.array_equal(wb.Embedder(folder).encode("a truck"), apart)
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "roberta"}))
    with pytest.raises(wb.UnsupportedError, match="roberta"):
        wb.Embedder(folder, heads=4, ignore_setting=["model_type"])


def test_an_embedder_pickles_as_its_arguments(embedder):
    assert np.array_equal(pickle.loads(pickle.dumps(embedder)).encode("x"), embedder.encode("x"))
    assert embedder.tokenize("a truck!") == [2, 5, 6, 1, 3] and "32 numbers" in repr(embedder)


def test_ctrl_c_stops_encode_soon(embedder):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs the tests may ignore it
    texts = ["a long text of many words " * 40] * 100_000
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        embedder.encode(texts)
    signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 3


def test_generate_answers_like_a_completion(generator):
    whole = generator.generate("Once upon a time", max_tokens=30)
    assert whole["object"] == "text_completion" and whole["choices"][0]["finish_reason"] == "length"
    assert whole["usage"]["completion_tokens"] == 30
    pieces = list(generator("Once upon a time", max_tokens=30, stream=True))
    assert "".join(p["choices"][0]["text"] for p in pieces) == whole["choices"][0]["text"]
    assert [p["choices"][0]["finish_reason"] for p in pieces[:-1]] == [None] * (len(pieces) - 1)
    assert isinstance(whole, wb.Completion) and (whole.text, whole.finish_reason) == (whole["choices"][0]["text"], "length")
    assert json.loads(json.dumps(whole.asdict()))["usage"] == whole["usage"] and whole.completion_tokens == 30
    assert "".join(piece.text for piece in pieces) == whole.text and pieces[0].prompt_tokens is None
    with pytest.raises(KeyError):
        pieces[0]["usage"]
    stopped = generator.generate("Once upon a time", max_tokens=30, stop=" ")
    assert stopped["choices"][0]["finish_reason"] == "stop" and " " not in stopped["choices"][0]["text"].lstrip()
    assert generator.generate("x", temperature=1.0, seed=3)["choices"] == generator.generate("x", temperature=1.0, seed=3)["choices"]


def test_generate_has_the_habits_of_llama_cpp(generator):
    plain = generator.generate("Once", max_tokens=5)["choices"][0]["text"]
    echoed = generator.generate("Once", max_tokens=5, echo=True, stop=None)["choices"][0]["text"]
    assert echoed == "Once" + plain == "".join(c["choices"][0]["text"] for c in generator.generate("Once", max_tokens=5, echo=True, stream=True))
    for most in (None, -1):
        assert generator.generate("Once", max_tokens=most, seed=-1, temperature=1.0)["choices"][0]["finish_reason"] in ("stop", "length")
    with pytest.raises(TypeError, match="the prompt is a str, not NoneType"):
        generator.generate(None)


def test_ids_and_likelihoods(generator):
    ids = generator.tokenize("Once upon a time")
    assert generator.detokenize(ids).decode().strip() == "Once upon a time"
    assert 1 < generator.perplexity("Once upon a time there was a little girl.") < 1000
    with pytest.raises(wb.Error):
        generator.generate("x" * 100_000)


def in_child(job):
    """Runs the job in a forked process and says whether it returned True within ten seconds."""
    running, held = os.pipe()  # the child's end is closed when it ends
    child = os.fork()
    if child == 0:
        done = False
        try:
            done = job()
        finally:
            os._exit(0 if done else 1)
    os.close(held)
    ended, _, _ = select.select([running], [], [], 10)
    os.close(running)
    if not ended:
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_an_embedder_works_after_fork(embedder):
    texts = ["a truck on the road"] * 100
    before = embedder.encode(texts)
    assert in_child(lambda: np.array_equal(embedder.encode(texts), before))
    assert np.array_equal(embedder.encode(texts), before)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_generator_works_after_fork(generator):
    before = generator.generate("Once", max_tokens=20)["choices"]
    assert in_child(lambda: generator.generate("Once", max_tokens=20)["choices"] == before)


def test_eight_threads_share_an_embedder_and_a_generator(embedder, generator):
    texts = ["a truck", "the road", "a lorry on the road"]
    vectors, answer = embedder.encode(texts), generator.generate("Once", max_tokens=10)["choices"]
    wrong = []

    def hammer():
        for _ in range(20):
            if not np.array_equal(embedder.encode(texts), vectors):
                wrong.append("vectors")
            if generator.generate("Once", max_tokens=10)["choices"] != answer:
                wrong.append("text")

    threads = [threading.Thread(target=hammer) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
