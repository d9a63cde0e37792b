# SPDX-License-Identifier: Apache-2.0
"""The settings of a WordPiece tokenizer: its ids from the folder and from every container that it is converted to, by every verb that
makes ids, and a refusal or a warning that names what is not followed. The ids are those of the package tokenizers."""
import json

import pytest

import sentence_folders
from conftest import weighbridge

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*SPECIAL, "cafe", "café", "中", "文", "中文", "foo", "##bar", "@@bar", "a", "the", "Naïve", "naïve", "Naive", "naive", "x", "[ENT]", "A", "bar"]
WORDS += [f"[unused{i}]" for i in range(len(sentence_folders.WORDS) - len(WORDS))]
ID = {word: i for i, word in enumerate(WORDS)}


def added(word, **flags):
    return {"id": ID[word], "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False, **flags}


def folder(path, bert=None, config=None, tokens=(), model=None, **more):
    """`bert`: of its normalizer; `config`: of tokenizer_config.json, which otherwise says the same."""
    flags = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True, **(bert or {})}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [*(added(word, special=True) for word in SPECIAL), *tokens],
                 "normalizer": {"type": "BertNormalizer", **flags}, "pre_tokenizer": {"type": "BertPreTokenizer"},
                 "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}, "decoder": None,
                 "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": ID,
                           **(model or {})}, **more}
    said = {"do_lower_case": flags["lowercase"], "strip_accents": flags["strip_accents"], "tokenize_chinese_chars": flags["handle_chinese_chars"]}
    made = sentence_folders.make(path, files={"tokenizer.json": tokenizer, "tokenizer_config.json": {"tokenizer_class": "BertTokenizer", **said, **(config or {})}})
    (made / "vocab.txt").write_text("".join(word + "\n" for word in WORDS))
    return made


def ids(path, text, *flags):
    return [token for line in json.loads(weighbridge("tokenize", path, "--json", text, *flags).stdout)["inputs"] for token in line["ids"]]


FAST = {"tokenizer_class": "PreTrainedTokenizerFast"}
CASES = {
    "accents are kept": ({"bert": {"strip_accents": False}}, "Naïve", [16]),
    "accents go with the case": ({}, "Naïve", [18]),
    "accents go though case stays": ({"bert": {"strip_accents": True, "lowercase": False}}, "Naïve", [17]),
    "Chinese is not divided": ({"bert": {"handle_chinese_chars": False}}, "中文", [9]),
    "an added token has punctuation": ({"tokens": [added("[ENT]", normalized=True)]}, "the [Ent] the", [14, 20, 14]),
    "an added token is a word": ({"tokens": [added("x", single_word=True)]}, "x ax", [19, 1]),
    "a prefix": ({"model": {"continuing_subword_prefix": "@@"}, "config": FAST}, "foobar", [10, 12]),
    "a short word": ({"model": {"max_input_chars_per_word": 3}, "config": FAST}, "the foobar", [14, 1]),
    "steps": ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Prepend", "prepend": "the "}]}, "config": FAST},
              "café A", [14, 6, 21]),
    "no words": ({"pre_tokenizer": None, "config": FAST}, "foobar", [10, 11]),
    "other tokens around": ({"post_processor": {"type": "BertProcessing", "sep": ["[MASK]", 4], "cls": ["[MASK]", 4]}, "config": FAST}, "a", [13])}


@pytest.mark.parametrize("name", CASES)
def test_ids_are_those_of_the_tokenizer_in_every_container(name, tmp_path):
    arguments, text, expected = CASES[name]
    made = folder(tmp_path / "m", **arguments)
    around = [4, 4] if name == "other tokens around" else [2, 3]
    wanted = [around[0], *expected, around[1]]
    assert ids(made, text) == wanted
    vector = weighbridge("embed", made, text).stdout
    for target, more in (("m.weights", []), ("m.zt", []), ("m.gguf", ["--naming", "llama"]), ("copy/", []), ("again/", ["--set", "hf.x=1"])):
        weighbridge("convert", made, f"{tmp_path}/{target}", "--allow", "file,tokenizer,attribute-type", *more)
        assert ids(tmp_path / target, text) == wanted, target
        assert weighbridge("embed", tmp_path / target, text).stdout == vector, target


def test_from_a_container_to_a_folder_what_no_vocab_txt_says_is_a_loss(tmp_path):
    made = folder(tmp_path / "m", model={"max_input_chars_per_word": 3}, config=FAST)
    weighbridge("convert", made, tmp_path / "m.weights", "--allow", "file")
    refused = weighbridge("convert", tmp_path / "m.weights", f"{tmp_path}/back/", status=1)
    assert "--allow tokenizer" in refused.stderr
    weighbridge("convert", tmp_path / "m.weights", f"{tmp_path}/back/", "--allow", "tokenizer")
    assert ids(tmp_path / "back", "the foobar") == [2, 14, 1, 3]


def test_files_that_differ_are_a_warning(tmp_path):
    made = folder(tmp_path / "m", config={"do_lower_case": False})
    assert "hf/tokenizer-conflict" in weighbridge("verify", made).stdout
    for verb in ("tokenize", "embed"):
        assert "do_lower_case" in weighbridge(verb, made, "A").stderr, verb
    assert ids(made, "A the") == [2, 21, 14, 3]


REFUSED = {
    "normalizer.type": {"normalizer": {"type": "NFKC"}}, "normalizer.locale": {"normalizer": {"type": "Lowercase", "locale": "tr"}},
    "pre_tokenizer.type": {"pre_tokenizer": {"type": "Digits", "individual_digits": True}},
    "post_processor.type": {"post_processor": {"type": "Other"}}, "model.dropout": {"model": {"dropout": 0.1}},
    "model.max_input_chars_per_word": {"model": {"max_input_chars_per_word": 5000}},
    "truncation.direction": {"truncation": {"direction": "Left", "max_length": 9}},
    "truncation_side": {"config": {"truncation_side": "left"}}, "never_split": {"config": {"never_split": ["a"]}},
    "additional_special_tokens": {"config": {"additional_special_tokens": ["[NEW]"]}}, "tokenizer_class": {"config": {"tokenizer_class": "BertJapaneseTokenizer"}}}


@pytest.mark.parametrize("key", REFUSED)
def test_what_is_not_followed_is_refused_by_name_and_passed_by_name(key, tmp_path):
    made = folder(tmp_path / "m", **REFUSED[key])
    for verb in ("tokenize", "embed"):
        assert key in weighbridge(verb, made, "a", status=3).stderr, verb
        weighbridge(verb, made, "a", "--ignore-setting", key)
    weighbridge("inspect", made)
    assert key in weighbridge("convert", made, tmp_path / "m.weights", "--allow", "file", status=3).stderr
    weighbridge("convert", made, tmp_path / "m.zt", "--allow", "file")
    assert key in weighbridge("tokenize", tmp_path / "m.zt", "a", status=3).stderr


def test_an_unknown_key_of_the_config_is_a_warning(tmp_path):
    made = folder(tmp_path / "m", config={"cut_here": 3})
    for verb in ("tokenize", "embed"):
        assert "cut_here" in weighbridge(verb, made, "a").stderr, verb


def test_added_tokens_beside_a_vocab_txt_are_refused(tmp_path):
    made = folder(tmp_path / "m")
    (made / "tokenizer.json").unlink()
    (made / "added_tokens.json").write_text(json.dumps({"[ENT]": ID["[ENT]"]}))
    assert ids(made, "a") == [2, 13, 3]
    (made / "added_tokens.json").write_text(json.dumps({"[NEW]": len(WORDS)}))
    assert "[NEW]" in weighbridge("tokenize", made, "a", status=3).stderr


def test_the_lists_of_added_tokens_of_the_config_are_compared_with_those_of_the_tokenizer(tmp_path):
    tokens = [added("[ENT]", special=True), added("x", lstrip=True)]
    said = {"extra_special_tokens": ["[ENT]", "[CLS]"], "additional_special_tokens": [{"__type": "AddedToken", "content": "[ENT]"}],
            "added_tokens_decoder": {str(token["id"]): {key: value for key, value in token.items() if key != "id"} for token in [added("[CLS]"), *tokens]}}
    assert ids(folder(tmp_path / "m", tokens=tokens, config=said), "a [ENT]") == [2, 13, 20, 3]
    said["added_tokens_decoder"][str(ID["x"])]["lstrip"] = False
    assert "added_tokens_decoder" in weighbridge("tokenize", folder(tmp_path / "n", tokens=tokens, config=said), "a", status=3).stderr


def test_special_tokens_that_another_file_names_are_refused_by_name(tmp_path):
    """transformers reads special_tokens_map.json too, and gives other ids."""
    made = folder(tmp_path / "model")
    (made / "special_tokens_map.json").write_text(json.dumps({"cls_token": {"content": "[CLS]"}, "sep_token": "[SEP]", "mask_token": "[PAD]"}))
    assert ids(made, "the") == [2, 14, 3]
    (made / "special_tokens_map.json").write_text(json.dumps({"cls_token": "[MASK]"}))
    for verb in ("tokenize", "embed"):
        said = weighbridge(verb, made, "the", status=3).stderr
        assert "special_tokens_map.json" in said and "--ignore-setting cls_token" in said
    assert ids(made, "the", "--ignore-setting", "cls_token") == [2, 14, 3]
    # A name of no setting was passed over without a word.
    said = weighbridge("tokenize", made, "the", "--ignore-setting", "cls_token", "--ignore-setting", "cls_tokn").stderr
    assert 'no setting is refused by the name "cls_tokn"' in said and 'the name "cls_token"' not in said


def test_the_case_of_a_folder_without_a_vocabulary_stays(tmp_path):
    """What was written did not read back: a BERT through a .gguf, which keeps no vocabulary without --naming llama."""
    weighbridge("convert", folder(tmp_path / "model"), tmp_path / "x.gguf", "--allow", "tokenizer")
    weighbridge("convert", tmp_path / "x.gguf", tmp_path / "back", "--to", "hf")
    assert json.loads((tmp_path / "back/tokenizer_config.json").read_text())["do_lower_case"] is True
