# SPDX-License-Identifier: Apache-2.0
"""Tests generate and perplexity: output and exit statuses, on a fixture and, if the test data is available, on the real stories260K."""
import json
import math
import signal
import subprocess

import pytest

from conftest import COMMAND, TEST_DATA, safetensors, floats, validated, weighbridge

DATA = TEST_DATA / "llama"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    out = tmp_path_factory.mktemp("tiny") / "tiny.slm"
    weighbridge("slm", "fixture", "tiny", "-o", out)
    return out


@pytest.fixture(scope="module")
def stories(tmp_path_factory):
    if not (DATA / "stories260K.bin").exists():
        pytest.skip("llama/stories260K.bin is not in ../shared/data or $WEIGHBRIDGE_TEST_DATA")
    out = tmp_path_factory.mktemp("stories") / "stories.slm"
    weighbridge("convert", DATA / "stories260K.bin", out, "--tokenizer", DATA / "tok512.bin")
    return out


def generated(*arguments):
    return validated(weighbridge("generate", *arguments, "--json").stdout, "generate")


def test_the_greedy_text_is_that_of_the_reference(stories):
    golden = json.loads((DATA / "stories260K_golden.json").read_text())
    result = generated(stories, "--max-tokens", 200)
    assert result["tokens"][:64] == golden["greedy_ids_first_64"]
    assert result["text"].startswith(golden["text_first_200_chars"])
    assert (result["prompt_tokens"], result["stopped"], len(result["tokens"])) == (1, "length", 200)
    assert weighbridge("generate", stories, "--max-tokens", 200).stdout == result["text"] + "\n"


def test_a_prompt_is_continued_and_not_repeated(stories):
    result = generated(stories, "--prompt", "Once upon a time", "--max-tokens", 20)
    whole = generated(stories, "--max-tokens", 30)["text"]
    assert whole.startswith("Once upon a time" + result["text"]) and result["prompt_tokens"] > 1
    given = subprocess.run([COMMAND, "generate", stories, "--input", "-", "--max-tokens", "20"], input="Once upon a time",
                           capture_output=True, text=True, check=True)
    assert given.stdout == result["text"] + "\n"


def test_one_seed_gives_one_text_with_any_number_of_threads(stories):
    flags = [stories, "--temperature", "0.8", "--top-p", "0.9", "--max-tokens", 60]
    texts = {generated(*flags, "--seed", 7, "--threads", threads)["text"] for threads in (1, 2, 3)}
    assert len(texts) == 1 and generated(*flags, "--seed", 8)["text"] not in texts


def test_an_empty_prompt_is_none(tiny):
    assert generated(tiny, "--prompt", "", "--max-tokens", 3) | {"tokens_per_second": 0} == \
        generated(tiny, "--max-tokens", 3) | {"tokens_per_second": 0}


def test_flags_that_change_nothing_are_said(tiny):
    done = weighbridge("generate", tiny, "--seed", 7, "--max-tokens", 1, text=False)
    assert b"--temperature 0" in done.stderr
    assert weighbridge("generate", tiny, "--seed", 7, "--max-tokens", 1, "--quiet", text=False).stderr == b""


def test_a_stop_text_ends_it_and_is_not_printed(stories):
    result = generated(stories, "--stop", "Lily", "--stop", ", red", "--max-tokens", 100)
    assert result["stopped"] == "text" and result["text"].endswith("named ")


def test_a_full_context_is_said(tiny):
    result = generated(tiny, "--prompt", "abc", "--max-tokens", 1000)
    assert result["stopped"] in ("context", "eos")
    if result["stopped"] == "context":
        said = weighbridge("generate", tiny, "-p", "abc", "--max-tokens", 1000, text=False).stderr
        assert b"context of 32 tokens is full" in said
        together = subprocess.run([COMMAND, "generate", tiny, "-p", "abc", "--max-tokens", "1000"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=True).stdout
        assert b"\nweighbridge: " in together, "the sentence stands on a line of its own"


def test_an_adapter_changes_the_text_and_one_for_another_model_is_refused(tmp_path, tiny, stories):
    deltas = tmp_path / "deltas.safetensors"
    deltas.write_bytes(safetensors({"output.weight": ("F32", [260, 8], floats(*([0.0] * 8 * 65 + [50.0, -50.0] * 4 + [0.0] * 8 * 194)))}))
    package = tmp_path / "shift.adp1"
    weighbridge("slm", "adapter", tiny, deltas, "--kind", "adp1", "-o", package)
    plain, shifted = generated(tiny, "--max-tokens", 5), generated(tiny, "--adapter", package, "--max-tokens", 5)
    assert plain["tokens"] != shifted["tokens"]
    done = weighbridge("generate", stories, "--adapter", package, "--max-tokens", 5, status=2)
    assert done.stderr.startswith(f"weighbridge: {package}: ")
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1


def test_perplexity_is_the_mean_over_the_tokens(tmp_path, stories):
    text = tmp_path / "text.txt"
    text.write_text(generated(stories, "--max-tokens", 150)["text"])
    result = validated(weighbridge("perplexity", stories, "--input", text, "--json").stdout, "perplexity")
    assert 140 < result["tokens"] < 160 and 0.3 < result["mean_nll"] < 0.6
    assert math.isclose(result["perplexity"], math.exp(result["mean_nll"]), rel_tol=1e-9)
    again = validated(weighbridge("perplexity", stories, "--input", text, "--json", "--threads", 1).stdout, "perplexity")
    assert again["mean_nll"] == result["mean_nll"]
    assert f'{result["tokens"]} tokens, mean negative log likelihood' in weighbridge("perplexity", stories, "--input", text).stdout


def test_quantized_weights_are_multiplied_by_f32_activations_by_default(tmp_path, stories):
    quantized, text = tmp_path / "q4.slm", tmp_path / "text.txt"
    weighbridge("convert", stories, quantized, "--quantize", "q4_0")
    text.write_text(generated(stories, "--max-tokens", 150)["text"])

    def nll(*flags):
        said = validated(weighbridge("perplexity", quantized, "--input", text, "--json", *flags).stdout, "perplexity")
        return said["precision"], said["mean_nll"]
    assert nll() == nll("--precision", "exact") and nll()[0] == "exact"
    assert nll("--precision", "fast")[0] == "fast" and nll("--precision", "fast")[1] != nll()[1]
    assert generated(quantized, "--max-tokens", 5)["precision"] == "exact"
    assert generated(quantized, "--max-tokens", 5, "--precision", "fast")["precision"] == "fast"


@pytest.mark.parametrize("arguments,status,word", [
    (["--precision", "int8"], 2, "--precision cannot be 'int8': expected exact or fast"),
    (["--prompt", "a" * 31], 2, "32 tokens"),
    (["--prompt", "a", "--input", "-"], 2, "--prompt and --input cannot be used together"),
    (["--temperature", "-1"], 2, "temperature"),
    (["--temperature", "warm"], 2, "--temperature must be a number"),
    (["--top-p", "0"], 2, "top-p"),
    (["--top-k", "2000"], 2, "--top-k"),
    (["--seed", "-1"], 2, "--seed must be a whole number"),
    (["--stop", ""], 2, "--stop has an empty value"),
    (["--context", "64"], 2, "32 that the model was made for"),
    (["--adapter", "absent.alr1"], 4, "absent.alr1"),
    (["--input", "absent.txt"], 4, "weighbridge: absent.txt: cannot be opened: "),
])
def test_bad_input_is_one_sentence_and_no_text(tmp_path, tiny, arguments, status, word):
    done = weighbridge("generate", tiny, *arguments, status=status, cwd=tmp_path)
    assert done.stdout == "" and word in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_broken_file_generates_nothing(tmp_path, tiny):
    data = bytearray(tiny.read_bytes())
    data[-100] ^= 1
    broken = tmp_path / "broken.slm"
    broken.write_bytes(data)
    assert weighbridge("generate", broken, status=1).stdout == ""
    assert "slm/" in weighbridge("generate", broken, status=1).stderr


def test_a_model_of_another_kind_is_refused_by_what_it_lacks(sample):
    done = weighbridge("generate", sample, status=1)
    assert done.stdout == "" and "slm.vocab_size" in done.stderr


def test_perplexity_of_nothing_is_refused(tmp_path, tiny):
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    assert "no tokens" in weighbridge("perplexity", tiny, "--input", empty, status=2).stderr
    assert "--input" in weighbridge("perplexity", tiny, status=2).stderr


def test_an_interrupt_leaves_what_was_printed(tmp_path):
    model = tmp_path / "m.slm"
    weighbridge("slm", "fixture", "tinylm16m", "-o", model)
    run = subprocess.Popen([COMMAND, "generate", model, "--max-tokens", "100000", "--temperature", "1"], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    first = run.stdout.read(1)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=30)
    assert run.returncode == 130 and first and said == b""
