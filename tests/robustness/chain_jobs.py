# SPDX-License-Identifier: Apache-2.0
# The steps of the `slm` chain as jobs, each with the steps before it done. jobs.py defines what a job is; tests/interop checks the
# records.
from robustness import done, run, write_safetensors

FILLED = {"identity": "tiny trial", "source_kind": "trained", "license": "Apache-2.0", "dataset": "a counter",
          "training_summary": "none: values of a counter", "scope": "that it runs", "safety_review": "none needed, by the test",
          "case.0.prompt": "the and", "case.0.max_tokens": "4"}


def fill(path, **more):
    """Fills in what a person would: the placeholders in angle brackets, and the cases."""
    values = FILLED | {key.replace("__", "."): value for key, value in more.items()}
    lines = []
    for line in path.read_text().splitlines():
        key, split, value = line.partition("=")
        filled_in = split and key in values and (value.startswith("<") or key.startswith("case."))
        lines.append(f"{key}={values[key]}" if filled_in else line)
    path.write_text("\n".join(lines) + "\n")


class Source:
    """A candidate in `folder` and the steps from it to an .slm; the caller names the output of a step."""

    def __init__(self, folder):
        self.made, self.candidate, self.template = folder / "made.slm", folder / "tiny.safetensors", folder / "template"
        self.review, self.source, self.validation = folder / "review", folder / "source", folder / "validation"
        if self.candidate.exists():
            return
        folder.mkdir()
        done("slm", "fixture", "tiny-bpe", "-o", self.made)
        done("convert", self.made, self.candidate, "--allow", "tokenizer,attribute-type")
        done(*self.template_words(self.template))
        fill(self.template)
        done(*self.review_words(self.review))
        done(*self.extract_words(self.source))
        done(*self.validate_words(self.validation))

    def template_words(self, out):
        return ["slm", "source-template", self.made, "-o", out]

    def review_words(self, out):
        return ["slm", "review-safetensors-candidate", self.candidate, "--manifest", self.template, "-o", out]

    def extract_words(self, out):
        return ["slm", "extract-safetensors-source", self.candidate, "--manifest", self.template, "--review", self.review, "-o", out]

    def validate_words(self, out):
        return ["slm", "validate-source", self.source, "-o", out]

    def convert_words(self, out):
        return ["slm", "convert-trained", self.source, "--validation", self.validation, "-o", out]

    def convert_candidate_words(self, out):
        return ["slm", "convert-safetensors-trained", self.candidate, "--manifest", self.template, "--review", self.review, "-o", out]


def admission_steps(source, there):
    """(name, words, main file) of each step that writes from the .slm on, in order; between them a person fills in."""
    model, ledger, deltas = there / "m.slm", there / "promotion.ledger", there / "deltas.safetensors"
    adapter = there / "shift.adp1"

    def beside(ending):
        return there / f"m.slm.{ending}"

    def first_run():
        """Sets the expectations of the cases to the model's output."""
        fill(beside("cases"), case__0__expected="nothing")
        run("slm", "eval", model)
        said = next(line for line in beside("evaluation").read_text().splitlines() if line.startswith("case.0.actual="))
        beside("evaluation").unlink()
        fill(beside("cases"), case__0__expected=said.partition("=")[2])

    def a_package():
        write_safetensors(deltas, {"norm.weight": [0.25] * 8})
        done("slm", "adapter", model, deltas, "--kind", "adp1", "-o", adapter)

    yield "trained", source.convert_candidate_words(model), model
    yield "manifest", ["slm", "manifest", model, "--source-kind", "converted-trained"], beside("manifest")
    yield "runtime-smoke", ["slm", "runtime-smoke", model], beside("smoke")
    yield "smoke-gate", ["slm", "quality-gate", "runtime-smoke", model], beside("smoke-gate")
    yield "eval-template", ["slm", "eval-template", model], beside("cases")
    yield first_run, None, None
    yield "eval", ["slm", "eval", model], beside("evaluation")
    yield ("quality-gate", ["slm", "quality-gate", "assistant-quality", model, "--decision", "approve", "--decided-by", "a test"],
           beside("quality-gate"))
    yield "admission-record", ["slm", "admission-record", model], beside("admission")
    yield "ledger", ["slm", "promotion-ledger", "append", ledger, model], ledger
    yield a_package, None, None
    yield "ledger-grows", ["slm", "promotion-ledger", "append", ledger, model, adapter], ledger
    yield "selector-registry", ["slm", "selector-registry", ledger], there / "selector.registry"
    yield "minimodel-template", ["slm", "minimodel-template", model], there / "m.minimodel"


def admission_job(name, source, there):
    """(words, main, previous files) of the step of this name."""
    steps = list(admission_steps(source, there))
    at = next(i for i, step in enumerate(steps) if step[0] == name)

    def before():
        for step, words, _ in steps[:at]:
            done(*words) if words else step()

    return steps[at][1], steps[at][2], before


SOURCE_JOBS = ["source-template", "review", "extract-source", "extract-source-force", "validate-source", "convert-trained",
               "convert-trained-force", "convert-candidate"]
ADMISSION_JOBS = ["manifest", "runtime-smoke", "smoke-gate", "eval-template", "eval", "quality-gate", "admission-record", "ledger",
                  "ledger-grows", "selector-registry", "minimodel-template"]
CHAIN_JOBS = SOURCE_JOBS + ADMISSION_JOBS


def chain_job(make, name, folder, there):
    """make(words, main, before): the job of this name."""
    source = Source(folder / "chain")
    if name in ADMISSION_JOBS:
        return make(*admission_job(name, source, there))
    model, extracted = there / "new.slm", there / "source"

    def old_source():
        done(*source.extract_words(extracted))
        manifest = extracted / "source.manifest"
        manifest.write_text(manifest.read_text().replace(FILLED["identity"], "an older one"))
        for path in (extracted / "tensors").iterdir():
            path.write_bytes(bytes(path.stat().st_size))

    def old_model():
        done(*source.convert_words(model), "--dtype", "q8_0")

    trained, record = source.convert_words(model), there / "new.slm.conversion"
    extract, main = source.extract_words(extracted), extracted / "source.manifest"
    return {
        "source-template": lambda: make(source.template_words(there / "template"), there / "template"),
        "review": lambda: make(source.review_words(there / "review"), there / "review"),
        "extract-source": lambda: make(extract, main),
        "extract-source-force": lambda: make([*extract, "--force"], main, old_source),
        "validate-source": lambda: make(source.validate_words(there / "validation"), there / "validation"),
        "convert-trained": lambda: make(trained, record),
        "convert-trained-force": lambda: make([*trained, "--force"], record, old_model),
        "convert-candidate": lambda: make(source.convert_candidate_words(model), record),
    }[name]()
