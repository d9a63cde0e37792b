# SPDX-License-Identifier: Apache-2.0
"""Folders of sentence-transformers beside the package: over a hundred, made by hypothesis over its settings, with random norms, biases
and epsilon in each. The vectors of texts, queries and documents are the package's, or the program names what it does not follow; and
every container that a folder is converted to gives the same bits. Compared with sentence-transformers 6.2.0 and transformers 5.24.0."""
import json
import pathlib
import sys
import tempfile
import warnings

import pytest

from interop_tools import ROOT, np, weighbridge

hypothesis = pytest.importorskip("hypothesis", reason="the package hypothesis is not installed")
pytest.importorskip("torch", reason="the package torch is not installed")
package = pytest.importorskip("sentence_transformers", reason="the package sentence-transformers is not installed")

sys.path.insert(0, str(ROOT / "tests/cli"))
from sentence_folders import POSITIONS, WORDS, make  # noqa: E402

st = hypothesis.strategies
MODES = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
ACTIVATIONS = [f"torch.nn.modules.activation.{name}" for name in ("Tanh", "ReLU", "GELU", "Sigmoid", "SiLU")] + ["torch.nn.modules.linear.Identity"]
PROMPTS = ["query: ", "a heavy ", "the", "", "passage : the "]

dense = st.builds(lambda out, activation, bias, residual: ("Dense", {"out": out, "activation": activation, "bias": bias, "residual": residual}),
                  st.integers(1, 40), st.sampled_from(ACTIVATIONS), st.booleans(), st.booleans())
module = st.one_of(dense, st.just(("LayerNorm", {})), st.just(("Normalize", {})), st.just(("Dropout", {"dropout": 0.2})))


@st.composite
def settings(draw):
    new = draw(st.booleans())
    if new:
        pooling = draw(st.one_of(st.sampled_from(MODES), st.lists(st.sampled_from(MODES), min_size=1, max_size=3)))
    else:
        chosen = draw(st.sets(st.sampled_from(MODES), min_size=1, max_size=3))
        pooling = [mode for mode in MODES if mode in chosen]
    prompts = draw(st.dictionaries(st.sampled_from(["query", "document", "passage", "corpus", "other"]), st.sampled_from(PROMPTS), max_size=3))
    return {"seed": draw(st.integers(0, 2**32)), "new": new, "pooling": pooling, "normalize": draw(st.booleans()),
            "modules": draw(st.lists(module, max_size=3)), "layers_from": draw(st.sampled_from([None, None, 0, 1, 2])),
            "prompts": prompts, "default_prompt": draw(st.sampled_from([None, *prompts])), "include_prompt": draw(st.booleans()),
            "max_length": draw(st.sampled_from([None, 9, 14])), "truncate_dim": draw(st.sampled_from([None, None, 1, 5])),
            "old_names": draw(st.booleans()), "act": draw(st.sampled_from(["gelu", "gelu_new", "gelu_pytorch_tanh"])),
            "eps": draw(st.sampled_from([1e-12, 1e-5, 1e-2, 0.3]))}


texts = st.lists(st.lists(st.sampled_from([*WORDS[5:], "zzz?", "bridgebridge"]), min_size=1, max_size=POSITIONS + 4).map(" ".join),
                 min_size=1, max_size=4)


def ours(path, lines, scratch, *flags):
    (scratch / "texts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    weighbridge("embed", path, "--input", scratch / "texts.jsonl", "-o", scratch / "out.npy", "--force", "--quiet", *flags)
    return np.load(scratch / "out.npy")


@hypothesis.settings(max_examples=110, deadline=None, derandomize=True, phases=(hypothesis.Phase.generate,), suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(settings(), texts)
def test_every_setting_gives_the_vectors_of_the_package(given, lines):
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scratch = pathlib.Path(name)
        folder = make(scratch / "m", **given)
        model = package.SentenceTransformer(str(folder), device="cpu")
        roles = {"text": (model.encode, []), "query": (model.encode_query, ["--prompt-name", "query"]),
                 "document": (model.encode_document, ["--prompt-name", "document"])}
        for role, (encode, flags) in roles.items():
            theirs = encode(lines)
            # A truncated text of which only the prompt is left has no vector: the package's is zeros, infinite or not a number.
            hypothesis.assume(np.isfinite(theirs).all())
            own = ours(folder, lines, scratch, *flags)
            assert own.shape == theirs.shape
            np.testing.assert_allclose(own, theirs, atol=2e-5 * max(1, np.abs(theirs).max()), err_msg=f"{role} {given}")
        bits = ours(folder, lines, scratch)
        for target in ("m.weights", "m.zt", "copy/"):
            weighbridge("convert", folder, f"{scratch}/{target}", "--quiet", "--allow", "file,attribute-type,tokenizer")
            assert np.array_equal(ours(f"{scratch}/{target}", lines, scratch), bits), target
