// SPDX-License-Identifier: Apache-2.0
// Fuzz target: KHLNARY modules and their sidecars. The input is a length (two bytes, little-endian), so many bytes of a
// module, and its sidecar; the STB files are those of the module's corpus. Whatever they say, a run ends within its
// budget and blames the module, verify tells no less than a run, and the text form gives the words back.
#include <set>

#include "harness.h"
#include "runtime/khlnary/cases.h"
#include "weighbridge/khlnary.h"

namespace weighbridge::fuzz {
namespace {

const khlnary::RunOptions kOptions = {.max_steps = 4096, .max_stack = 64, .max_calls = 16};

// What only a run can know; all else that it refuses, verify must have refused.
bool is_dynamic(std::string_view rule) {
  static const std::set<std::string_view> rules = {"khlnary/stack-underflow", "khlnary/stack-limit",
                                                   "khlnary/value-type", "khlnary/call-depth", "khlnary/step-limit"};
  return rules.contains(rule);
}

// Findings whose offset counts in the sidecar.
bool is_of_sidecar(const Finding& finding) {
  return finding.rule.starts_with("stb/sidecar-") || finding.rule.starts_with("limit/");
}

void expect_modules_fault(const Finding& finding, std::uint64_t size) {
  expect_files_fault(finding);
  expect(!finding.rule.empty() && !finding.message.empty(), "a finding without rule or sentence");
  expect(!finding.offset || *finding.offset <= size, "a finding behind the end of the file: " + finding.message);
}

// Parities and versions set right, or hardly any module would come as far as its first step.
std::string mended(std::string_view module) {
  std::string out(module.substr(0, module.size() / 4 * 4));
  for (std::size_t i = 0; i + 3 < out.size(); i += 4) {
    out[i + 3] = static_cast<char>((out[i + 3] & 0x0F) | 0x20);
    unsigned ones = 0;
    for (std::size_t k = 0; k < 4; ++k)
      ones += static_cast<unsigned>(__builtin_popcount(static_cast<unsigned char>(out[i + k])));
    if (ones % 2 != 0) out[i] = static_cast<char>(out[i] ^ 1);
  }
  return out;
}

void expect_text(const std::shared_ptr<const Source>& source) {
  if (source->size() % 4 != 0) return;
  const auto words = khlnary::words_of(*source);
  expect(khlnary::assemble(khlnary::disassemble(words)) == words, "the text form gives other words");
}

std::optional<khlnary::Result> run(const khlnary::Case& c, const Report& verdict, const Context& context) {
  try {
    const auto source = c.folder().open("m.knu");
    khlnary::Result result = khlnary::run(khlnary::Module::open(source, {}, context), kOptions, context);
    expect(result.steps <= kOptions.max_steps && result.stack.size() <= kOptions.max_stack, "a run past its budget");
    expect(result.value.has_value() == !result.stack.empty(), "a result from nowhere, or none in spite of a stack");
    for (const khlnary::Loaded& loaded : result.loaded) {
      expect(loaded.tensor.id() == loaded.id, "another tensor than the one that was asked for");
      khlnary::first_values(loaded.tensor, 4, context);
    }
    return result;
  } catch (const Error& error) {
    if (!is_of_sidecar(error.finding())) expect_modules_fault(error.finding(), c.module.size());
    if (!is_dynamic(error.finding().rule))
      expect(!verdict.valid(), "verify passed what run refuses: " + error.finding().rule);
    return std::nullopt;
  }
}

void try_module(const std::string& module, const std::string& sidecar) {
  const Context context = small_context();
  khlnary::Case c;
  c.module = module;
  if (!sidecar.empty()) c.sidecar = sidecar;
  const auto source = c.folder().open("m.knu");
  expect_text(source);
  const Report verdict = khlnary::verify(source, {}, khlnary::kMaxAuthority, context);
  for (const Finding& finding : verdict.findings())
    if (!is_of_sidecar(finding)) expect_modules_fault(finding, module.size());
  const auto result = run(c, verdict, context);
#ifdef WEIGHBRIDGE_PLANTED_BUG
  if (result && result->value && (result->value->integer < -4 || result->value->integer > 60))
    fail("planted bug: a module that returns a number far from 0");
#else
  static_cast<void>(result);
#endif
}

}  // namespace
}  // namespace weighbridge::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weighbridge;
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t length = std::min(rest.size(), std::size_t{data[0]} | std::size_t{data[1]} << 8);
  const std::string module(rest.substr(0, length)), sidecar(rest.substr(length));
  fuzz::try_module(module, sidecar);
  fuzz::try_module(fuzz::mended(module), sidecar);
  return 0;
}
