// SPDX-License-Identifier: Apache-2.0
// The fixed prompts and their record.
#include "chain/admission.h"

#include "chain/outcome.h"
#include "weighbridge/generate.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

// Fixed: changing them makes every smoke record stale. Short enough for a context of 32 bytes.
constexpr std::string_view kPrompts[] = {"", "Once upon a time", "The", "1, 2, 3"};
constexpr std::uint64_t kTokens = 16;

constexpr Key kSmokeKeys[] = {
    choice_key("smoke_version", "1", "of this grammar and its prompts"),
    {.name = "artifact_sha256", .type = Type::digest, .about = "of the model that ran"},
    {.name = "manifest_sha256", .type = Type::digest, .about = "of its manifest"},
    choice_key("quality_claim", "runtime-execution-smoke-only", "a smoke shows no more, whatever the model is"),
    {.name = "max_tokens", .type = Type::number, .about = "of each prompt's continuation"},
    {.name = "generated_tokens", .type = Type::number, .about = "of all prompts"},
    {.name = "prompt.N.text", .about = "fixed"},
    {.name = "prompt.N.prompt_tokens", .type = Type::number, .about = "with BOS"},
    {.name = "prompt.N.ids", .about = "generated, greedily, with commas between"},
    choice_key("prompt.N.stopped", "eos|length|context", "why it ended"),
    {.name = "prompt.N.text_sha256", .type = Type::digest, .about = "of the generated text"},
    choice_key("result", "passed", "no record is written of another"),
    kSealKey,
};
constexpr Schema kSmokeSchema{.name = "slm.smoke", .keys = kSmokeKeys};

std::string ids_text(std::span<const std::uint32_t> ids) {
  std::string out;
  for (const std::uint32_t id : ids) out += (out.empty() ? "" : ",") + std::to_string(id);
  return out;
}

Generated run(const Generator& generator, std::string_view prompt) {
  Session session = generator.session();
  GenerateOptions options;
  options.max_tokens = kTokens;
  try {
    return session.generate(prompt, options);
  } catch (const Error& error) {  // the prompt does not fit a small context, or logits are not finite
    if (error.kind() == Kind::io) throw;
    refuse("smoke", {}, "the prompt \"" + std::string(prompt) + "\" cannot be run: " + error.finding().message);
  }
}

}  // namespace

const Schema& internal::smoke_schema() { return kSmokeSchema; }

void internal::check_runs(const Model& model) {
  const Generator generator(model);
  for (const std::string_view prompt : kPrompts) run(generator, prompt);
}

Record internal::make_smoke(const Provenance& of) {
  const Generator generator(of.artifact.model);
  Record out(kSmokeSchema);
  out.set("smoke_version", "1").set("artifact_sha256", of.artifact.sha256).set("manifest_sha256", of.manifest.sha256);
  out.set("quality_claim", "runtime-execution-smoke-only").set("max_tokens", kTokens);
  std::uint64_t tokens = 0;
  for (std::size_t i = 0; i < std::size(kPrompts); ++i) {
    const Generated text = run(generator, kPrompts[i]);
    if (run(generator, kPrompts[i]).tokens != text.tokens)
      refuse("smoke", {}, "two runs of the prompt \"" + std::string(kPrompts[i]) + "\" gave different tokens");
    const std::string row = "prompt." + std::to_string(i) + ".";
    out.set(row + "text", kPrompts[i]).set(row + "prompt_tokens", text.prompt_tokens);
    out.set(row + "ids", ids_text(text.tokens)).set(row + "stopped", name(text.stopped));
    out.set(row + "text_sha256", sha256_hex(text.text));
    tokens += text.tokens.size();
  }
  if (tokens == 0) refuse("smoke", {}, "the model ends every prompt at once: it generates no token");
  out.set("generated_tokens", tokens).set("result", "passed");
  seal(out);
  return out;
}

ReadRecord internal::read_smoke(const Provenance& of, const std::string& path) {
  ReadRecord out = read_evidence(kSmokeSchema, path, "slm runtime-smoke");
  compare(out, make_smoke(of));
  return out;
}

Outcome runtime_smoke(const Evidence& at, bool replace, const Context& context) {
  return conclude("runtime-smoke", make_smoke(read_provenance(at, context)), {},
                  output_of(at, &Evidence::smoke, replace));
}

}  // namespace weighbridge::chain
