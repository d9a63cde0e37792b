# SPDX-License-Identifier: Apache-2.0
"""WordPiece tokenizers beside the package tokenizers: the same ids for any settings of tokenizer.json that are supported, for every
character, and through every conversion that says it keeps them; and a refusal that names the setting for those that are not."""
import json
import random
import struct
import subprocess

import pytest

from interop_tools import COMMAND, weighbridge

tokenizers = pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
hypothesis = pytest.importorskip("hypothesis", reason="the package hypothesis is not installed")
from hypothesis import HealthCheck, given, settings, strategies as st  # noqa: E402

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*SPECIAL, "cafe", "café", "中", "文", "中文", "foo", "##bar", "##ium", "a", "the", "A", "Café", "über", "uber", "!", "a!", "##a", "x",
         "##x", "##é", "e", "##́", "́", ".", "-", "1", "##1", "한", "ᄒ", "[ent]", "i̇", "##́a", "Ł", "ſ", "##٣", "é", "bar", "q:", "a b", " a"]
PIECES = ["a", "A", "the", "café", "Café", "CAFÉ", "café", "中文", "中", "foobar", "foobarium", "über", "!", ".", "-", " ", "  ", "\t", "\n", "\u00a0",
          "\u3000", "x", "xa", "[SEP]", "[ENT]", "[ent]", "<e1>", "covid-19", "Covid-19", "İ", "Ł", "ſ", "한", "́", "̧", "\u200d", "\x00", "\ufffd",
          "\x01", "\x85", "\u2028", "٣", "1", "_", "😀", "𝐀", "ﬁ", "Å", "ཱི", "가", "ᄒ", "ᅡ", "ᆫ", "\x0b", "\u180e", "²", "a" * 30, "豈", "𠀀", "\u0345"]


def base(words=WORDS, **more):
    ids = {word: i for i, word in enumerate(words)}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [added(ids[word], word, special=True) for word in SPECIAL],
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}, "decoder": None,
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": ids},
            **more}


def added(number, content, **flags):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False, **flags}


def make(folder, tokenizer, config=None):
    """A folder whose weights nobody needs for tokens."""
    folder.mkdir(exist_ok=True)
    rows = 1 + max([*tokenizer["model"]["vocab"].values(), *(token["id"] for token in tokenizer["added_tokens"])])
    shapes = {"embeddings.word_embeddings.weight": [rows, 2], "embeddings.token_type_embeddings.weight": [2, 2],
              "embeddings.position_embeddings.weight": [4096, 2], "embeddings.LayerNorm.weight": [2], "embeddings.LayerNorm.bias": [2]}
    at = "encoder.layer.0."
    for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense", "intermediate.dense", "output.dense"):
        shapes |= {f"{at}{name}.weight": [2, 2], f"{at}{name}.bias": [2]}
    for name in ("attention.output.LayerNorm", "output.LayerNorm"):
        shapes |= {f"{at}{name}.weight": [2], f"{at}{name}.bias": [2]}
    head, size = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes.items():
        length = 4 * shape[0] * (shape[1] if len(shape) == 2 else 1)
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [size, size + length]}
        size += length
    text = json.dumps(head).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(size))
    (folder / "config.json").write_text(json.dumps({
        "model_type": "bert", "architectures": ["BertModel"], "hidden_size": 2, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 2,
        "vocab_size": rows, "max_position_embeddings": 4096, "type_vocab_size": 2}))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def ours(model, texts, folder, *flags):
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps(text) + "\n" for text in texts))
    shown = json.loads(weighbridge("tokenize", model, "--json", "--input", path, "--input-format", "jsonl", "--max-length", "4096", *flags))
    return [one["ids"] for one in shown["inputs"]]


def theirs(tokenizer, texts):
    made = tokenizers.Tokenizer.from_str(json.dumps(tokenizer))
    made.no_truncation()
    made.no_padding()
    return [one.ids for one in made.encode_batch(texts)]


texts = st.lists(st.lists(st.one_of(st.sampled_from(PIECES), st.text(st.characters(exclude_categories=["Cs"]), max_size=3)), max_size=9).map("".join),
                 min_size=20, max_size=40)
bert = st.fixed_dictionaries({"type": st.just("BertNormalizer"), "clean_text": st.booleans(), "handle_chinese_chars": st.booleans(),
                              "strip_accents": st.sampled_from([None, True, False]), "lowercase": st.booleans()})
step = st.one_of(bert, st.sampled_from([
    {"type": "Lowercase"}, {"type": "StripAccents"}, {"type": "NFD"}, {"type": "NFC"}, {"type": "Strip", "strip_left": True, "strip_right": True},
    {"type": "Strip", "strip_left": True, "strip_right": False}, {"type": "Replace", "pattern": {"String": "a"}, "content": "x!"},
    {"type": "Replace", "pattern": {"String": "foo"}, "content": ""}, {"type": "Replace", "pattern": {"String": "#.$"}, "content": "é"},
    {"type": "Prepend", "prepend": "q: "}]))
normalizer = st.one_of(bert, st.none(), st.lists(step, max_size=4).map(lambda steps: {"type": "Sequence", "normalizers": steps}))
behavior = st.sampled_from(["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"])
split = st.one_of(st.sampled_from([{"type": "BertPreTokenizer"}, {"type": "Whitespace"}, {"type": "WhitespaceSplit"}, {"type": "CharDelimiterSplit", "delimiter": "x"}]),
                  behavior.map(lambda kind: {"type": "Punctuation", "behavior": kind}))
pre_tokenizer = st.one_of(st.just({"type": "BertPreTokenizer"}), st.none(), split,
                          st.lists(split, max_size=3).map(lambda steps: {"type": "Sequence", "pretokenizers": steps}))
flags = st.fixed_dictionaries({name: st.booleans() for name in ("single_word", "lstrip", "rstrip", "normalized", "special")})
more_tokens = st.lists(st.tuples(st.sampled_from(["[ENT]", "<e1>", "covid-19", "foo", "a", "É", " x", "new york", "中文", "A", "!"]), flags), max_size=5,
                       unique_by=lambda each: each[0].lower())  # of two that a normalizer makes equal, the package takes either
post_processor = st.sampled_from([
    None, {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
    {"type": "RobertaProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2], "trim_offsets": True, "add_prefix_space": False},
    {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"SpecialToken": {"id": "[MASK]", "type_id": 0}},
                                              {"Sequence": {"id": "A", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
     "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}, "[MASK]": {"id": "[MASK]", "ids": [4, 4], "tokens": ["[MASK]", "[MASK]"]}}}])


@st.composite
def tokenizer_files(draw):
    file = base(normalizer=draw(normalizer), pre_tokenizer=draw(pre_tokenizer), post_processor=draw(post_processor))
    file["model"]["continuing_subword_prefix"] = draw(st.sampled_from(["##", "##", "", "@@"]))
    file["model"]["max_input_chars_per_word"] = draw(st.sampled_from([100, 100, 3, 0, 400]))
    for text, its in draw(more_tokens):
        if text == "foo":  # a step of the normalizer may delete it, which is refused
            its = {**its, "normalized": False}
        known = file["model"]["vocab"].get(text)
        number = known if known is not None else len(WORDS) + sum(token["id"] >= len(WORDS) for token in file["added_tokens"])
        file["added_tokens"].append(added(number, text, **its))
    return file


def config_of(file):
    """What says the same to transformers, where it can."""
    its = file["normalizer"] or {}
    return {"tokenizer_class": "PreTrainedTokenizerFast"} if its.get("type") != "BertNormalizer" else {
        "tokenizer_class": "BertTokenizer", "do_lower_case": its["lowercase"], "strip_accents": its["strip_accents"],
        "tokenize_chinese_chars": its["handle_chinese_chars"]}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True, database=None)
@given(file=tokenizer_files(), lines=texts)
def test_any_settings_give_the_ids_of_the_package(tmp_path, file, lines):
    model = make(tmp_path / "model", file, config_of(file))
    assert ours(model, lines, tmp_path) == theirs(file, lines)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True, database=None)
@given(file=tokenizer_files(), lines=texts)
def test_a_conversion_keeps_the_ids(tmp_path, file, lines):
    model = make(tmp_path / "model", file, config_of(file))
    expected = theirs(file, lines)
    for name, more in (("model.weights", []), ("model.zt", []), ("model.gguf", ["--naming", "llama"])):
        done = tmp_path / name
        weighbridge("convert", model, done, "--force", "--allow", "tokenizer", "--allow", "file", *more)
        assert ours(done, lines, tmp_path) == expected, name


def characters(kind):
    skipped = range(0xD800, 0xE000)
    return [chr(c) for c in range(0x110000) if c not in skipped and kind(c)]


@pytest.mark.parametrize("change", [
    {"pre_tokenizer": {"type": "Whitespace"}}, {"pre_tokenizer": {"type": "WhitespaceSplit"}}, {"pre_tokenizer": {"type": "BertPreTokenizer"}},
    {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Removed"}]}}],
    ids=["Whitespace", "WhitespaceSplit", "BertPreTokenizer", "Punctuation"])
def test_every_character_divides_words_alike(tmp_path, change):
    file = base(words=[*SPECIAL, "a", "b"], normalizer=None, **change)
    model = make(tmp_path / "model", file, {"tokenizer_class": "PreTrainedTokenizerFast"})
    all_of_them = characters(lambda c: c != 0)
    lines = [" ".join(f"a{c}b" for c in all_of_them[i:i + 1000]) for i in range(0, len(all_of_them), 1000)]
    assert ours(model, lines, tmp_path, "--no-special") == theirs({**file, "post_processor": None}, lines)


@pytest.mark.parametrize("name", ["NFD", "NFC", "StripAccents", "Lowercase"])
def test_every_character_that_a_normalizer_changes_changes_alike(tmp_path, name):
    import unicodedata
    chosen = characters(lambda c: unicodedata.decomposition(chr(c)) or unicodedata.combining(chr(c)) or unicodedata.category(chr(c)).startswith("M")
                        or chr(c).lower() != chr(c) or 0xAC00 <= c < 0xAC60 or 0x1100 <= c < 0x1200)
    step = getattr(tokenizers.normalizers, name)()
    results = {step.normalize_str(c) for c in chosen}
    letters = sorted({letter for text in [*results, *chosen] for letter in text})
    file = base(words=[*SPECIAL, *letters, *("##" + letter for letter in letters)], normalizer={"type": name}, pre_tokenizer={"type": "WhitespaceSplit"})
    model = make(tmp_path / "model", file, {"tokenizer_class": "PreTrainedTokenizerFast"})
    mixed = random.Random(7)
    lines = [" ".join(chosen[i:i + 500]) for i in range(0, len(chosen), 500)]
    lines += [" ".join("".join(mixed.choices(chosen, k=mixed.randrange(2, 6))) for _ in range(200)) for _ in range(20)]
    marks = [c for c in chosen if unicodedata.combining(c)]
    lines += [" ".join(mixed.choice(chosen) + "".join(mixed.choices(marks, k=mixed.randrange(1, 5))) for _ in range(200)) for _ in range(20)]
    assert ours(model, lines, tmp_path) == theirs(file, lines)


@pytest.mark.parametrize("key, change", [
    ("normalizer.type", {"normalizer": {"type": "NFKC"}}), ("normalizer.pattern", {"normalizer": {"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b"}}),
    ("pre_tokenizer.type", {"pre_tokenizer": {"type": "Digits", "individual_digits": True}}),
    ("post_processor.single", {"post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 1}}], "pair": [
        {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {}}}),
    ("truncation.direction", {"truncation": {"direction": "Left", "max_length": 128, "strategy": "LongestFirst", "stride": 0}})])
def test_what_is_not_supported_is_refused_by_name(tmp_path, key, change):
    model = make(tmp_path / "model", base(**change))
    done = subprocess.run([COMMAND, "tokenize", str(model), "a"], capture_output=True, timeout=60)
    assert done.returncode == 3 and key in done.stderr.decode(), done.stderr
