// SPDX-License-Identifier: Apache-2.0
// Fuzz target: a file that opens can be used. Every accessor of the model must work, and reading payload in any way
// must give what the metadata promise or an Error that blames the file.
#include "weighbridge/open.h"

#include "harness.h"

namespace weighbridge::fuzz {
namespace {

// Breaks on a valid file with a certain name or attribute, which no seed has. The fuzzer must keep the file valid to
// get there.
void planted_bug(const Model& model) {
  for (const auto& [key, value] : model.attributes())
    if (has_forbidden_sign(key)) fail("planted bug: a sound file with an attribute of a forbidden name");
  for (std::uint32_t i = 0; i < model.size(); ++i)
    if (has_forbidden_sign(model.name(i))) fail("planted bug: a sound file with a tensor of a forbidden name");
}

}  // namespace
}  // namespace weighbridge::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weighbridge;
  static const std::vector<std::string> doors = fuzz::doors();
  const Context context = fuzz::small_context();
  std::string seen = "none";
  for (const std::string& door : doors) {
    if (door == seen) continue;  // already opened as this format, by its content
    Report report;
    const auto model = open(fuzz::source_of(data, size), report, context, {.format = door});
    fuzz::expect_report(report, size);
    fuzz::expect(model.has_value() == report.valid(), "a model in spite of an error, or none without one");
    if (!model) continue;
    if (door.empty()) seen = model->format();
    if (fuzz::is_planted()) fuzz::planted_bug(*model);
    fuzz::use(*model, context);
  }
  return 0;
}
