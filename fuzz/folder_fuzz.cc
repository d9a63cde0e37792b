// SPDX-License-Identifier: Apache-2.0
// Fuzz target: a Hugging Face folder, as folder_input.h reads it from the input. The first error of open must be the
// first of verify. If the folder opens, every accessor must work, a tokenizer that can be built must encode, and a plan
// for each container must be possible.
#include "folder_input.h"

#include "core/reading/findings.h"
#include "formats/huggingface/format.h"
#include "harness.h"
#include "registry/load.h"
#include "weighbridge/convert.h"
#include "weighbridge/tokenize.h"

namespace weighbridge::fuzz {
namespace {

struct Read {
  Report report;
  Model model;
};

Read read(const std::shared_ptr<const Place>& folder, const Context& context, core::Findings::Mode mode) {
  Read out;
  core::Findings findings(out.report, mode);
  try {
    registry::Loaded loaded = registry::load(folder, context, {.format = "hf"}, findings);
    if (mode == core::Findings::Mode::all) registry::check_content(loaded, {}, context, findings);
    out.model = std::move(loaded.model);
  } catch (const core::Stop&) {}
  return out;
}

void use(const Tokenizer& tokenizer) {
  constexpr std::string_view kText = "The weighbridge, na\xC3\xAFve \xE2\x96\x81\xFF [MASK]\n";
  try {
    if (tokenizer.kind == Tokenizer::Kind::wordpiece) {
      WordPiece(tokenizer).encode(kText, EncodeOptions{});
      return;
    }
    const BytePair pairs(tokenizer);
    pairs.decode(pairs.encode(kText));
  } catch (const Error& error) {
    expect_files_fault(error.finding());
  }
}

void use(const Model& model) {
  for (const auto& [key, value] : model.attributes())
    expect(model.attribute(key) != nullptr, "an attribute is not found under its key: " + value.to_text());
  for (std::uint32_t i = 0; i < model.size(); ++i)
    expect(model.find(model.name(i)).has_value(), "a tensor is not found under its name");
  if (model.tokenizer() != nullptr) use(*model.tokenizer());
  for (const FormatInfo& format : formats()) {
    try {
      if (format.writes) plan(model, format.name);
    } catch (const Error& error) {
      expect_files_fault(error.finding());
    }
  }
}

}  // namespace
}  // namespace weighbridge::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weighbridge;
  using Mode = core::Findings::Mode;
  const auto folder = fuzz::place_of_input({reinterpret_cast<const char*>(data), size});
  const Context context = fuzz::small_context();
  const std::vector<std::string> listing = folder->list();
  if (!huggingface::matches({.listing = listing, .folder = true})) return 0;
  const fuzz::Read opened = fuzz::read(folder, context, Mode::first_error);
  const fuzz::Read verified = fuzz::read(folder, context, Mode::all);
  fuzz::expect_report(verified.report, size);
  const Finding* const first = opened.report.first_error();
  if (first != nullptr) {
    const Finding* const said = test::first_to_open(verified.report);
    fuzz::expect(said != nullptr, "verify calls valid what does not open: " + first->message);
    fuzz::expect(*first == *said, "open says '" + first->message + "', verify says '" + said->message + "'");
    return 0;
  }
  for (const auto& [key, value] : opened.model.attributes())
    if (fuzz::is_planted() && fuzz::has_forbidden_sign(key))
      fuzz::fail("planted bug: a folder that opens, with a forbidden key");
  fuzz::use(opened.model);
  return 0;
}
