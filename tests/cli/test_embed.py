# SPDX-License-Identifier: Apache-2.0
"""Tests embed, similarity, search, tokenize and evaluate on a tiny model made here: their output, and their errors for bad input."""
import functools
import hashlib
import json
import os
import shutil
import signal
import subprocess

import pytest

from conftest import COMMAND, floats, safetensors, validated, weighbridge
from waiting import processor_time, stopped, until

np = pytest.importorskip("numpy", reason="numpy is missing: tools/python-environments.sh makes the environment")

HIDDEN, FFN, POSITIONS = 8, 16, 16
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "weigh", "##bridge", "is", "scale", "for", "lorries", "naive"]


@functools.cache
def noise(*shape):
    values = np.random.Generator(np.random.PCG64(sum(shape) + len(shape))).standard_normal(shape) * 0.3
    return ("F32", list(shape), values.astype("<f4").tobytes())


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A .weights file of one layer, by way of a Hugging Face folder."""
    folder = tmp_path_factory.mktemp("hf") / "tiny"
    folder.mkdir()
    tensors = {"embeddings.word_embeddings.weight": noise(len(WORDS), HIDDEN),
               "embeddings.position_embeddings.weight": noise(POSITIONS, HIDDEN),
               "embeddings.token_type_embeddings.weight": noise(2, HIDDEN)}
    layer = "encoder.layer.0."
    linear = {"attention.self.query": (HIDDEN, HIDDEN), "attention.self.key": (HIDDEN, HIDDEN), "attention.self.value": (HIDDEN, HIDDEN),
              "attention.output.dense": (HIDDEN, HIDDEN), "intermediate.dense": (FFN, HIDDEN), "output.dense": (HIDDEN, FFN)}
    for name, shape in linear.items():
        tensors[layer + name + ".weight"] = noise(*shape)
        tensors[layer + name + ".bias"] = noise(shape[0])
    for name in ("embeddings.LayerNorm", layer + "attention.output.LayerNorm", layer + "output.LayerNorm"):
        tensors[name + ".weight"] = ("F32", [HIDDEN], np.ones(HIDDEN, "<f4").tobytes())
        tensors[name + ".bias"] = noise(HIDDEN)
    (folder / "model.safetensors").write_bytes(safetensors(tensors))
    (folder / "config.json").write_text(json.dumps({
        "model_type": "bert", "hidden_size": HIDDEN, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": FFN,
        "max_position_embeddings": POSITIONS, "vocab_size": len(WORDS), "layer_norm_eps": 1e-12, "hidden_act": "gelu"}))
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    out = folder.parent / "tiny.weights"
    weighbridge("convert", folder, out)
    return out


@pytest.fixture(scope="module")
def bare(model):
    """The same tensors in a container without metadata and vocabulary; flags can supply both."""
    return model.parent / "tiny/model.safetensors", model.parent / "tiny/vocab.txt"


def embedded(*arguments):
    return [validated(line, "embed") for line in weighbridge("embed", *arguments).stdout.splitlines()]


def test_vectors_go_into_a_pipe_as_numbers_and_as_a_stream_of_arrow(model, tmp_path):
    texts = ["a scale", "is", "for lorries"]
    rows = np.array([embedded(model, text)[0]["embedding"] for text in texts], "<f4")
    for flags, got in (((), weighbridge("embed", model, *texts, "--output-format", "f32", text=False).stdout),
                       (("-o", tmp_path / "rows.f32"), None)):
        if got is None:
            weighbridge("embed", model, *texts, *flags)
            got = (tmp_path / "rows.f32").read_bytes()
        assert np.array_equal(np.frombuffer(got, "<f4").reshape(3, HIDDEN), rows)
    stream = weighbridge("embed", model, *texts, "--output-format", "arrow", text=False).stdout
    weighbridge("embed", model, *texts, "-o", tmp_path / "rows.arrow")
    assert (tmp_path / "rows.arrow").read_bytes() == stream and len(stream) % 8 == 0 and stream.endswith(b"\xff\xff\xff\xff\0\0\0\0")
    assert rows.tobytes() in stream and b"weighbridge.model" in stream
    assert "with --json" in weighbridge("embed", model, "a", "--output-format", "f32", "--json", status=2).stderr
    assert "f32 and arrow can be piped" in weighbridge("embed", model, "a", "--output-format", "npy", status=2).stderr
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is missing: tools/python-environments.sh makes the environment")
    with pyarrow.ipc.open_stream(stream) as reader:
        metadata = {key.decode(): value.decode() for key, value in reader.schema.metadata.items()}
        table = reader.read_all()
    table.validate(full=True)
    assert metadata == {"weighbridge.model": weighbridge("hash", model).stdout.split()[0], "weighbridge.pooling": "mean",
                        "weighbridge.precision": "f32", "weighbridge.normalized": "true"}
    assert table.schema.field("embedding").type == pyarrow.list_(pyarrow.field("item", pyarrow.float32(), nullable=False), HIDDEN)
    assert np.array_equal(np.array(table["embedding"].to_pylist(), "<f4"), rows)
    many = weighbridge("embed", model, "-", "--output-format", "arrow", input="a\n" * 40000, text=False).stdout
    with pyarrow.ipc.open_stream(many) as reader:
        assert sum(batch.num_rows for batch in reader) == 40000



def test_embed_prints_an_object_a_line(model):
    first, second = embedded(model, "a weighbridge", "is a scale for lorries")
    assert set(first) == {"schema", "index", "tokens", "truncated", "embedding"}
    assert (first["index"], second["index"], first["tokens"], first["truncated"]) == (0, 1, 5, False)
    assert abs(sum(x * x for x in first["embedding"]) - 1) < 1e-5 and len(first["embedding"]) == HIDDEN
    assert embedded(model, "is a scale for lorries")[0]["embedding"] == second["embedding"]


def test_a_folder_embeds_as_its_weights_do(model):
    assert embedded(model.parent / "tiny", "a scale") == embedded(model, "a scale")


@pytest.mark.parametrize("flags", [["--pooling", "cls"], ["--pooling", "max"], ["--no-normalize"], ["--threads", "1"], ["--batch-tokens", "4"]])
def test_flags_of_the_vector(model, flags):
    usual, other = embedded(model, "a scale")[0]["embedding"], embedded(model, "a scale", *flags)[0]["embedding"]
    assert (usual == other) == (flags[0] in ("--threads", "--batch-tokens"))


def test_texts_from_lines_json_lines_and_standard_input(model, tmp_path):
    lines, jsonl = tmp_path / "t.txt", tmp_path / "t.jsonl"
    lines.write_text("a scale\n\nis a\n")
    jsonl.write_text('"a scale"\n{"id": 7, "text": ""}\n{"text": "is a"}\n')
    expected = embedded(model, "a scale", "", "is a")
    assert embedded(model, "--input", lines) == expected
    assert embedded(model, "--input", jsonl, "--input-format", "jsonl") == expected
    assert embedded(model, "--input", jsonl) == expected, "the ending says it"
    with lines.open() as stdin:
        assert [json.loads(line) for line in weighbridge("embed", model, "--input", "-", stdin=stdin).stdout.splitlines()] == expected


def test_a_numpy_file_has_every_vector(model, tmp_path):
    lines, out = tmp_path / "t.txt", tmp_path / "v.npy"
    lines.write_text("a scale\nis a\n" * 700)
    weighbridge("embed", model, "--input", lines, "--output-format", "npy", "-o", out)
    vectors = np.load(out)
    assert vectors.shape == (1400, HIDDEN) and (vectors[0] == vectors[2]).all()
    assert vectors[1].tolist() == pytest.approx(embedded(model, "is a")[0]["embedding"], abs=1e-7)


def test_a_long_text_is_cut_and_says_so(model):
    done = weighbridge("embed", model, "a " * 100)
    value = json.loads(done.stdout)
    assert value["truncated"] is True and value["tokens"] == POSITIONS and "cut to" in done.stderr


def test_invalid_utf8_is_counted(model, tmp_path):
    text = b"a \xff scale".decode("utf-8", "surrogateescape")
    done = weighbridge("embed", model, text)
    assert validated(done.stdout, "embed")["replaced"] == 1
    assert "1 text held invalid UTF-8, read as 1 replacement character" in done.stderr
    done = weighbridge("embed", model, text, "a \xff\xff".encode("latin-1").decode("utf-8", "surrogateescape"), "-o", tmp_path / "v.npy")
    assert "2 texts held invalid UTF-8, read as 3 replacement characters" in done.stderr
    assert weighbridge("embed", model, text, "--quiet").stderr == ""
    assert weighbridge("tokenize", model, text).stdout.endswith("  (1 replaced)\n")
    assert json.loads(weighbridge("tokenize", model, text, "--json").stdout)["inputs"][0]["replaced"] == 1


def test_no_verb_cuts_a_text_silently(model, tmp_path):
    long, corpus, pairs = "a " * 100, tmp_path / "docs.txt", tmp_path / "pairs.csv"
    corpus.write_text(f"{long}\n{long}\na\n")
    pairs.write_text(f"a,{long},1\na,is,2\n")
    for words, count in ((["similarity", model, "a", long], "1 text was"), (["search", model, "--corpus", corpus, long], "3 texts were"),
                         (["evaluate", "sts", model, pairs], "1 text was")):
        assert f"{count} cut to {POSITIONS} tokens (--max-length)" in weighbridge(*words).stderr
        assert weighbridge(*words, "--quiet").stderr == ""
    assert weighbridge("tokenize", model, long).stdout.count("/") == POSITIONS
    assert weighbridge("tokenize", model, long, "--max-length", "100").stdout.count("/") == 100


def test_tokenize(model):
    value = validated(weighbridge("tokenize", model, "a Weighbridge", "--json").stdout, "tokenize")
    assert value == {"schema": 3, "inputs": [{"ids": [2, 5, 6, 7, 3], "tokens": ["[CLS]", "a", "weigh", "##bridge", "[SEP]"], "truncated": False}]}
    spans = json.loads(weighbridge("tokenize", model, "naïve a", "--json", "--offsets", "--no-special").stdout)["inputs"][0]
    assert spans["ids"] == [12, 5] and spans["offsets"] == [[0, 5], [6, 7]]
    assert weighbridge("tokenize", model, "a", "--no-special").stdout == "a/5\n"


def test_similarity_and_search(model, tmp_path):
    assert weighbridge("similarity", model, "a scale", "a scale").stdout == "1.000000\n"
    corpus, kept = tmp_path / "docs.txt", tmp_path / "v.npy"
    corpus.write_text("a\na scale for lorries\nis\n")
    for _ in range(2):
        found = validated(weighbridge("search", model, "--corpus", corpus, "--vectors", kept, "--top", "2", "a scale for lorries", "--json").stdout,
                          "search")
        assert found["results"][0]["index"] == 1 and len(found["results"]) == 2
    assert np.load(kept).shape == (3, HIDDEN)
    weighbridge("search", model, "--corpus", corpus, "--vectors", kept, "a", "--pooling", "cls", status=2)
    corpus.write_text("a\na scale for lorries\na\n")  # as many texts, other ones
    assert "another corpus" in weighbridge("search", model, "--corpus", corpus, "--vectors", kept, "a", status=2).stderr


def test_blank_lines_of_a_corpus_are_counted_and_not_found(model, tmp_path):
    corpus, kept = tmp_path / "docs.txt", tmp_path / "v.npy"
    corpus.write_text("\na scale\n \t\nis\n\n")
    words = ["search", model, "--corpus", corpus, "--vectors", kept, "--top", "9", ""]
    for _ in range(2):
        assert sorted(line.split()[1] for line in weighbridge(*words).stdout.splitlines()) == ["2:", "4:"]
    assert np.load(kept).shape == (5, HIDDEN)  # a row for each line, as embed writes them


def test_lines_of_only_invisible_characters_are_no_texts(model, tmp_path):
    corpus = tmp_path / "docs.txt"
    corpus.write_text("\u00a0\n\u3000 \na scale\n\u200b\n\n\u0301\nis\n")
    for kept in ([], ["--vectors", tmp_path / "v.npy"]):
        found = weighbridge("search", model, "--corpus", corpus, *kept, "--top", "9", "a").stdout.splitlines()
        assert sorted(line.split()[1] for line in found) == ["3:", "7:"]
    second = tmp_path / "more.txt"
    second.write_text("\n\na\n")
    found = weighbridge("search", model, "--corpus", corpus, "--corpus", second, "--top", "9", "a").stdout
    assert f"{second}:3: a" in found and f"{corpus}:7: is" in found
    corpus.write_text("\n\u3000\n")
    assert "contains no text" in weighbridge("search", model, "--corpus", corpus, "a").stderr


def test_kept_vectors_are_of_one_vocabulary_and_number_of_heads(bare, tmp_path):
    weights, vocabulary = bare
    corpus, kept, other = tmp_path / "docs.txt", tmp_path / "v.npy", tmp_path / "other.txt"
    corpus.write_text("a scale\n")
    other.write_text("\n".join(WORDS[:5] + WORDS[:4:-1]) + "\n")
    words = ["search", weights, "--corpus", corpus, "--vectors", kept, "a"]
    weighbridge(*words, "--vocab", vocabulary, "--heads", "2")
    weighbridge(*words, "--vocab", vocabulary, "--heads", "2")
    for flags in (["--vocab", other, "--heads", "2"], ["--vocab", vocabulary, "--heads", "4"]):
        assert "another corpus, model or options" in weighbridge(*words, *flags, status=2).stderr


def test_vectors_that_0_1_kept_are_recognized(model, tmp_path):
    """Their key has a content digest of version 1; the rest of it is unchanged."""
    corpus, kept, key = tmp_path / "docs.txt", tmp_path / "v.npy", tmp_path / "v.npy.key"
    texts = ["a scale", "is a scale for lorries"]
    corpus.write_text("\n".join(texts) + "\n")
    words = ["search", model, "--corpus", corpus, "--vectors", kept, "a"]
    found = weighbridge(*words).stdout
    listed = validated(weighbridge("inspect", model, "--json").stdout, "inspect")["files"][0]["attributes"]

    def made_of(version):
        digest = weighbridge("hash", "--digest-version", str(version), model).stdout.split()[0]
        lines = [digest, "mean", "f32", "normalised", str(POSITIONS), ""]
        for name in "num_attention_heads", "layer_norm_eps", "hidden_act", "do_lower_case":
            lines += [f"{name} {listed[name]['value'] if isinstance(listed[name], dict) else listed[name]}"] if name in listed else []
        lines += WORDS + [f"{len(text)} {text}" for text in texts]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    now, rest = key.read_text().split("\n", 1)
    assert now == f"made-of={made_of(2)}"
    key.write_text(f"made-of={made_of(1)}\n{rest}")
    before = key.read_bytes(), kept.read_bytes()
    assert weighbridge(*words).stdout == found and (key.read_bytes(), kept.read_bytes()) == before
    key.write_text(f"made-of={'0' * 64}\n{rest}")
    assert "another corpus" in weighbridge(*words, status=2).stderr


def test_what_flags_give_is_what_the_folder_says(model, bare):
    weights, vocabulary = bare
    assert embedded(weights, "--vocab", vocabulary, "--heads", "2", "a scale") == embedded(model, "a scale")


def failure(*arguments, status):
    done = weighbridge(*arguments, "--json", status=status)
    value = validated(done.stdout.splitlines()[-1], "failure")
    finding = value["findings"][0]
    file = finding["file"] or value["path"]
    assert value["path"] == str(arguments[2 if arguments[0] == "evaluate" else 1])
    assert done.stderr.startswith(f"weighbridge: {file}: ")
    return file, finding["rule"], finding["offset"]


def test_the_file_at_fault_is_named(model, bare, tmp_path):
    weights, vocabulary = bare
    bad, long, short, broken = tmp_path / "bad.jsonl", tmp_path / "long.txt", tmp_path / "short.txt", tmp_path / "broken.txt"
    bad.write_text('"a"\n\n{"text": 3}\n')
    long.write_text(vocabulary.read_text() + "more\n")
    short.write_text(vocabulary.read_text().replace("[CLS]\n", ""))
    broken.write_bytes(b"[PAD]\n\xff\n")
    absent = tmp_path / "absent"
    for verb in (["embed", model, "--input"], ["tokenize", model, "--input"], ["search", model, "q", "--corpus"]):
        assert failure(*verb, bad, "--input-format", "jsonl", status=1) == (str(bad), "texts/jsonl", 5)
        assert failure(*verb, absent, status=4)[0] == str(absent)
    assert failure("evaluate", "sts", model, bad, status=1)[:2] == (str(bad), "texts/pairs")
    assert failure("evaluate", "sts", model, absent, status=4)[0] == str(absent)
    assert failure("embed", weights, "a", "--heads", "2", "--vocab", long, status=1)[:2] == (str(long), "embed/vocabulary")
    for verb in (["embed", weights, "a", "--heads", "2"], ["tokenize", weights, "a"]):
        assert failure(*verb, "--vocab", short, status=1)[:2] == (str(short), "tokenizer/special")
        assert failure(*verb, "--vocab", broken, status=1) == (str(broken), "tokenizer/utf8", 6)
        assert failure(*verb, "--vocab", absent, status=4)[0] == str(absent)


def test_what_a_flag_can_supply_is_misuse(bare):
    weights, vocabulary = bare
    assert failure("embed", weights, "a", "--vocab", vocabulary, status=2) == (str(weights), "misuse/no-heads", None)
    assert failure("embed", weights, "a", "--heads", "2", status=2) == (str(weights), "misuse/no-vocabulary", None)
    assert failure("tokenize", weights, "a", status=2) == (str(weights), "misuse/no-vocabulary", None)
    assert failure("embed", weights, "a", "--vocab", vocabulary, "--heads", "3", status=2)[1] == "misuse/heads"
    assert failure("embed", weights, "a", "--vocab", vocabulary, "--heads", "2", "--max-length", "17", status=2)[1] == "misuse/max-length"


def test_tokens_before_a_failure_are_a_whole_object(model, tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text('"a"\n1\n')
    first, last = weighbridge("tokenize", model, "--input", bad, "--input-format", "jsonl", "--json", status=1).stdout.splitlines()
    assert validated(first, "tokenize")["inputs"][0]["ids"] == [2, 5, 3] and "line 2" in validated(last, "failure")["findings"][0]["message"]


def test_evaluate(model, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text('sentence1,sentence2,score\na,a,5.0\n"a, scale",is,1.0\nlorries,for,2\n')
    value = validated(weighbridge("evaluate", "sts", model, pairs, "--json").stdout, "evaluate")
    assert value["pairs"] == 3 and -1 <= value["spearman"] <= 1 and value["seconds"] >= 0
    pairs.write_text("a,a,5.0\na,b\n")
    assert "record 2" in weighbridge("evaluate", "sts", model, pairs, status=1).stderr


@pytest.mark.parametrize("arguments,status,word", [
    (["embed", "{model}"], 2, "--input"),
    (["embed", "{model}", "a", "--input", "x"], 2, "either as arguments or with --input"),
    (["embed", "{model}", "a", "--output-format", "npy"], 2, "-o FILE"),
    (["embed", "{plain}", "a", "--heads", "2"], 1, "embeddings.word_embeddings.weight"),
    (["embed", "{model}", "--input", "absent.txt"], 4, "absent.txt"),
    (["embed", "{model}", "a", "--pooling", "sum"], 2, "mean"),
    (["search", "{model}", "a"], 2, "--corpus"),
    (["evaluate", "ats", "{model}", "x.csv"], 2, "sts"),
    (["embed", "{plain}", "a"], 1, "embeddings.word_embeddings.weight"),
])
def test_bad_input_is_one_sentence(model, tmp_path, arguments, status, word):
    plain = tmp_path / "plain.safetensors"
    plain.write_bytes(safetensors({"w": ("F32", [1], floats(1))}))
    done = weighbridge(*[a.format(model=model, plain=plain) for a in arguments], status=status, cwd=tmp_path)
    assert word in done.stderr and done.stdout == ""


def test_vectors_that_search_did_not_make_are_named_as_such(model, tmp_path):
    corpus, vectors = tmp_path / "c.txt", tmp_path / "v.npy"
    corpus.write_text("a scale\n")
    assert "1 vector of 8 floats, written" in weighbridge("embed", model, "a", "-o", vectors).stdout
    search = ["search", model, "a", "--corpus", corpus, "--vectors"]
    assert "search did not write this file" in weighbridge(*search, vectors, status=2).stderr
    assert "is a directory" in weighbridge(*search, tmp_path, status=2).stderr


def test_a_file_without_texts_is_told_of(model, tmp_path):
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    assert "contains no text" in weighbridge("embed", model, "--input", empty).stderr
    assert "contains no text" in weighbridge("search", model, "a", "--corpus", empty).stderr


def test_a_corpus_is_several_files_and_folders(model, tmp_path):
    """`--corpus notes/*.txt QUERY` took files 2 to n for queries."""
    notes = tmp_path / "notes"
    (notes / "below").mkdir(parents=True)
    (notes / "a.txt").write_text("a\nfor lorries\n")
    (notes / "b.txt").write_text("is\na scale\n")
    (notes / "below/c.md").write_text("weighbridge\n")
    (notes / "below/d.jsonl").write_text('{"text": "naive"}\n')
    (notes / "e.bin").write_bytes(b"\0\1")
    for words in (["--corpus", notes / "a.txt", notes / "b.txt", "a scale"], ["a scale", "--corpus", notes / "a.txt", "--corpus", notes / "b.txt"],
                  ["--top", "2", "--corpus", notes, "--", "a scale"]):
        found = validated(weighbridge("search", "--json", model, *words).stdout, "search")["results"]
        assert (found[0]["text"], found[0]["file"], found[0]["line"]) == ("a scale", str(notes / "b.txt"), 2)
    assert f"  {notes}/b.txt:2: a scale\n" in weighbridge("search", model, "--corpus", notes, "a scale").stdout
    everything = validated(weighbridge("search", model, "--corpus", notes, "--top", "9", "a", "--json").stdout, "search")["results"]
    assert sorted(one["text"] for one in everything) == ["a", "a scale", "for lorries", "is", "naive", "weighbridge"]
    alone = validated(weighbridge("search", model, "--corpus", notes / "a.txt", "a", "--json").stdout, "search")["results"]
    assert set(alone[0]) == {"index", "score", "text"}
    (tmp_path / "empty").mkdir()
    assert "no .txt, .md or .jsonl file" in weighbridge("search", model, "--corpus", tmp_path / "empty", "a", status=2).stderr


def test_a_dash_is_standard_input_for_every_verb_with_texts(model, tmp_path):
    """`embed MODEL -` embedded a dash."""
    expected = embedded(model, "a scale", "is")
    both = weighbridge("embed", model, "-", input="a scale\nis\n").stdout
    assert [json.loads(line) for line in both.splitlines()] == expected
    middle = weighbridge("embed", model, "a", "-", "is", input="a scale\n").stdout.splitlines()
    assert [json.loads(line)["embedding"] for line in middle[1:]] == [one["embedding"] for one in expected]
    assert weighbridge("embed", model, "-", "--input-format", "jsonl", input='"a scale"\n"is"\n').stdout == both
    assert weighbridge("tokenize", model, "-", input="a scale\n").stdout == weighbridge("tokenize", model, "a scale").stdout
    assert weighbridge("similarity", model, "a", "-", input="is\n").stdout == weighbridge("similarity", model, "a", "is").stdout
    corpus = tmp_path / "c.txt"
    corpus.write_text("a scale\nis\n")
    assert weighbridge("search", model, "--corpus", corpus, "-", input="is\n").stdout == weighbridge("search", model, "--corpus", corpus, "is").stdout
    assert "once only" in weighbridge("search", model, "--corpus", "-", "-", input="is\n", status=2).stderr
    assert "once only" in weighbridge("embed", model, "-", "-", input="is\n", status=2).stderr
    with open(model, "rb") as stdin:
        assert json.loads(weighbridge("embed", "-", "a scale", stdin=stdin).stdout) == expected[0]


def test_a_json_file_is_not_embedded_as_source_text(model, tmp_path):
    texts = tmp_path / "x.json"
    texts.write_text('[\n"a scale",\n"is"\n]\n')
    for words in (["embed", model, "--input"], ["tokenize", model, "--input"], ["search", model, "q", "--corpus"]):
        assert "--input-format jsonl" in weighbridge(*words, texts, status=2).stderr
    assert len(embedded(model, "--input", texts, "--input-format", "lines")) == 4


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A folder with a model that needs seconds for one batch of texts."""
    folder = tmp_path_factory.mktemp("slow")
    hidden, ffn, layers, positions = 384, 1536, 6, 64
    ones, zeros = (("F32", [hidden], np.full(hidden, value, "<f4").tobytes()) for value in (1, 0))
    tensors = {"embeddings.word_embeddings.weight": noise(len(WORDS), hidden), "embeddings.position_embeddings.weight": noise(positions, hidden),
               "embeddings.token_type_embeddings.weight": noise(2, hidden), "embeddings.LayerNorm.weight": ones, "embeddings.LayerNorm.bias": zeros}
    for layer in (f"encoder.layer.{n}." for n in range(layers)):
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            tensors |= {layer + name + ".weight": noise(hidden, hidden), layer + name + ".bias": zeros}
        tensors |= {layer + "intermediate.dense.weight": noise(ffn, hidden), layer + "intermediate.dense.bias": noise(ffn),
                    layer + "output.dense.weight": noise(hidden, ffn), layer + "output.dense.bias": zeros}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            tensors |= {layer + name + ".weight": ones, layer + name + ".bias": zeros}
    (folder / "model.safetensors").write_bytes(safetensors(tensors))
    (folder / "config.json").write_text(json.dumps({
        "model_type": "bert", "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": 12, "intermediate_size": ffn,
        "max_position_embeddings": positions, "vocab_size": len(WORDS), "layer_norm_eps": 1e-12, "hidden_act": "gelu"}))
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (folder / "texts.txt").write_text("a " * 31 + "\n" + ("is " * 20 + "\n") * 1000)
    return folder


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_in_the_last_batch_of_embed_is_obeyed_at_once(slow, tmp_path, number):
    """All texts are in one batch: the signal was ignored, the file published, and the status 0."""
    out = tmp_path / "v.npy"
    run = subprocess.Popen([COMMAND, "embed", slow, "--input", slow / "texts.txt", "-o", out, "--threads", "1"], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    until(lambda: list(tmp_path.iterdir()), run)
    before = processor_time(run)
    until(lambda: processor_time(run) > before + 0.1, run)  # it is at the batch
    said, took = stopped(run, number)
    assert (run.returncode, said) == (128 + number, (b"", b""))
    assert took < 2 and os.listdir(tmp_path) == [], "the batch takes longer"


def test_generate_sends_an_encoder_to_embed(model):
    assert "use embed" in weighbridge("generate", model, status=1).stderr
    assert "use embed" in weighbridge("generate", model.parent / "tiny", "-p", "a", status=1).stderr


def test_flags_that_would_change_nothing_are_refused(model):
    weighbridge("tokenize", model, "a", "--offsets", status=2)
    weighbridge("tokenize", model, "a", "--input-format", "jsonl", status=2)


def refused(*arguments, **options):
    """The rule by which an output is refused; the message names the output, not the model."""
    done = weighbridge(*arguments, "--json", status=2, **options)
    return validated(done.stdout, "failure")["findings"][0]["rule"]


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_search_replaces_no_file_but_a_key_of_its_own(model, tmp_path):
    corpus, key = tmp_path / "c.txt", tmp_path / "v.npy.key"
    corpus.write_text("a scale\n")
    search = ["search", model, "a", "--corpus", corpus, "--vectors", tmp_path / "v.npy"]
    key.write_text("secret\n")
    before = files(tmp_path)
    assert refused(*search) == "misuse/output-exists" and files(tmp_path) == before
    key.unlink()
    weighbridge(*search)
    whole = files(tmp_path)
    (tmp_path / "v.npy").unlink()
    weighbridge(*search)  # the key of a run that ended before its vectors were there
    assert files(tmp_path) == whole
    (tmp_path / "v.npy").unlink()
    elsewhere = key.rename(tmp_path / "elsewhere")
    for make in (lambda: key.symlink_to(elsewhere), key.mkdir):
        make()
        assert refused(*search) == "misuse/output-kind"
        assert elsewhere.read_bytes() == whole["v.npy.key"] and not (tmp_path / "v.npy").exists()
        key.unlink() if key.is_symlink() else key.rmdir()


def test_a_key_that_cannot_be_written_is_said_before_the_work(model, tmp_path):
    """Before the work creates a temporary file of the vectors."""
    corpus, kept = tmp_path / "c.txt", tmp_path / "v.npy"
    corpus.write_text("a scale\n")
    (tmp_path / "v.npy.key").write_text("secret\n")
    before = tmp_path.stat().st_mtime_ns
    weighbridge("search", model, "a", "--corpus", corpus, "--vectors", kept, status=2)
    assert tmp_path.stat().st_mtime_ns == before, "something was made in the folder"


def test_search_keeps_no_vectors_over_what_it_reads(model, bare, tmp_path):
    weights, vocabulary = bare
    for name, words in {"c.npy.key": ["--corpus", "c.npy.key", "--vectors", "c.npy"], "v.txt": ["--corpus", "v.txt", "--vectors", "v.txt"],
                        "w.key": ["--corpus", "c.npy.key", "--vocab", "w.key", "--vectors", "w"]}.items():
        (tmp_path / name).write_bytes(vocabulary.read_bytes())
        before = files(tmp_path)
        flags = words if "--vocab" in words else [*words, "--vocab", vocabulary]
        assert refused("search", weights, "a", *flags, "--heads", "2", cwd=tmp_path) == "misuse/output-is-input"
        assert files(tmp_path) == before
    (tmp_path / "m.key").write_bytes(model.read_bytes())
    said = weighbridge("search", tmp_path / "m.key", "a", "--corpus", vocabulary, "--vectors", tmp_path / "m", status=2)
    assert "the output is one of the input files" in said.stderr and (tmp_path / "m.key").read_bytes() == model.read_bytes()


def test_vectors_beside_the_key_of_others_are_refused(model, tmp_path):
    """As left by concurrent runs, both for the same number of texts."""
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text({"a": "a scale\nlorries\n", "b": "is\na\n"}[name])
        weighbridge("search", model, "a", "--corpus", tmp_path / f"{name}.txt", "--vectors", tmp_path / f"{name}.npy")
    (tmp_path / "b.npy.key").replace(tmp_path / "a.npy.key")
    for name in "ab":
        words = ["search", model, "a", "--corpus", tmp_path / f"{name}.txt", "--vectors", tmp_path / "a.npy"]
        assert failure(*words, status=2)[1] == "misuse/vectors"
    assert "does not match its key file" in weighbridge(*words, status=2).stderr
    (tmp_path / "a.npy.key").write_text("secret\n")
    assert "search did not write this file" in weighbridge(*words, status=2).stderr


@pytest.mark.parametrize("left", [False, True], ids=["nothing there", "a key was left"])
def test_the_second_of_two_runs_leaves_the_vectors_of_the_first(model, tmp_path, left):
    short, long, kept = tmp_path / "short.txt", tmp_path / "long.txt", tmp_path / "v.npy"
    short.write_text("a scale\n")
    long.write_text("a scale for lorries\n" * 50_000)  # long enough to be stopped in the middle
    first = ["search", model, "a", "--corpus", short, "--vectors", kept]
    if left:
        weighbridge(*first)
        kept.unlink()
    second = subprocess.Popen([COMMAND, "search", model, "a", "--corpus", long, "--vectors", kept],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        until(lambda: list(tmp_path.glob(".v.npy.key.weighbridge-*")), second)
        second.send_signal(signal.SIGSTOP)
        found = weighbridge(*first).stdout
        made = kept.read_bytes(), (tmp_path / "v.npy.key").read_bytes()
    finally:
        second.send_signal(signal.SIGCONT)
        said = second.communicate(timeout=60)[1]
    assert second.returncode == 2 and b"exists" in said
    assert (kept.read_bytes(), (tmp_path / "v.npy.key").read_bytes()) == made and weighbridge(*first).stdout == found


def test_embed_replaces_nothing_that_it_reads(model, bare, tmp_path):
    folder, words = tmp_path / "hf", ["--force", "-o"]
    shutil.copytree(model.parent / "tiny", folder)
    weights, vocabulary, texts = shutil.copy(model, tmp_path / "b.weights"), folder / "vocab.txt", tmp_path / "t.txt"
    texts.write_text("a scale\n")
    os.link(texts, tmp_path / "link.npy")
    before = {**files(folder), **files(tmp_path)}
    for arguments in ([weights, "--input", texts, *words, texts], [weights, "--input", texts, *words, tmp_path / "link.npy"],
                      [weights, "a", *words, weights], [folder, "a", *words, folder / "model.safetensors"],
                      [folder, "a", *words, folder / "vocab.txt"], [folder, "a", *words, folder / "config.json"],
                      [folder / "model.safetensors", "a", "--heads", "2", "--vocab", vocabulary, *words, vocabulary]):
        assert refused("embed", *arguments) == "misuse/output-is-input"
    assert {**files(folder), **files(tmp_path)} == before


def test_lines_were_written_under_the_name_of_another_kind_of_file(model, tmp_path):
    for name in ("v.parquet", "v.CSV", "v.txt"):
        assert "embed writes lines of JSON" in weighbridge("embed", model, "a", "-o", tmp_path / name, status=2).stderr
        assert not (tmp_path / name).exists()
    weighbridge("embed", model, "a", "-o", tmp_path / "v.txt", "--output-format", "jsonl")


def test_vectors_that_were_kept_are_told_of_where_nothing_can_be_printed(model, tmp_path):
    corpus, kept = tmp_path / "c.txt", tmp_path / "v.npy"
    corpus.write_text("a scale\n")
    search = ["search", model, "a", "--corpus", corpus, "--vectors", kept]
    with open("/dev/full", "wb") as full:
        assert f"'{kept}' is written all the same" in weighbridge(*search, stdout=full, status=4).stderr
        assert np.load(kept).shape == (1, HIDDEN)
        assert "written" not in weighbridge(*search, stdout=full, status=4).stderr.replace("cannot be written", "")
