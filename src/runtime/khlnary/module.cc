// SPDX-License-Identifier: Apache-2.0
// Opens a module and runs the checks that precede its first step.
#include "runtime/khlnary/module.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "core/model/words.h"
#include "core/reading/rules.h"
#include "runtime/khlnary/rules.h"
#include "weighbridge/place.h"

namespace weighbridge::khlnary {
using namespace internal;
namespace {

using core::bytes_text;

// Checks that the function table names the FUNC_DEF of each function.
void check_functions(const Module::Rep& module, core::Findings& findings) {
  const std::uint64_t count = module.words.size();
  for (const stb::Function& function : module.sidecar.functions) {
    const std::string expected =
        "FUNC_DEF " + std::to_string(function.id) + " at word " + std::to_string(function.offset);
    if (function.offset >= count) {
      findings.report(rules::kFunctionTable, {}, expected, {"a module of ", count, (count == 1 ? " word" : " words")});
      continue;
    }
    const Word word = fields(module.words[base::to_size(function.offset)]);
    if (static_cast<Glyph::Id>(word.glyph) == Glyph::Id::func_def && word.payload == function.id) continue;
    findings.report(rules::kFunctionTable, {.offset = function.offset * kWordSize}, expected,
                    disassemble(module.words[base::to_size(function.offset)]));
  }
}

}  // namespace

std::vector<std::uint32_t> internal::read_words(const Source& source, const Limits& limits, core::Findings& findings) {
  const std::uint64_t size = source.size();
  if (size > limits.header) {
    findings.report(core::rules::kLimitHeader, {.offset = 0}, core::at_most(core::in_bytes(limits.header)),
                    core::in_bytes(size), "the module");
    return {};
  }
  const std::uint64_t rest = size % kWordSize;
  if (rest != 0)
    findings.report(rules::kTruncated, {.offset = size - rest}, "a multiple of 4 bytes", core::in_bytes(size));
  std::vector<std::uint32_t> words(base::to_size(size / kWordSize));
  const auto bytes = std::as_writable_bytes(std::span(words));
  source.read_at(0, bytes);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = base::load_le<std::uint32_t>(bytes.data() + i * kWordSize);
  return words;
}

std::shared_ptr<const Source> internal::find_sidecar(const Source& module) {
  const auto place = module.place();
  return place ? place->open(stb::sidecar_name(module.file_name())) : nullptr;
}

void internal::check_words(const Module::Rep& module, unsigned authority, core::Findings& findings) {
  const std::uint64_t before = findings.errors();
  for (std::size_t i = 0; i < module.words.size(); ++i)
    if (auto wrong = check(module.words[i], authority, i * kWordSize)) findings.report(*std::move(wrong));
  // If words are broken, do not blame a table that names them.
  if (findings.errors() == before) check_functions(module, findings);
}

void internal::require_authority(unsigned authority) {
  if (authority == 0 || authority > kMaxAuthority)
    base::misuse("authority", "an authority is 1 to 7, not " + std::to_string(authority));
}

Module Module::open(const std::shared_ptr<const Source>& module, std::shared_ptr<const Source> sidecar,
                    const Context& context) {
  if (!module) base::misuse("source", "there is no module to read");
  Report report;
  core::Findings findings(report, core::Findings::Mode::first_error);
  const auto rep = std::make_shared<Rep>();
  try {
    rep->source = module;
    rep->words = read_words(*module, context.limits, findings);
    rep->sidecar_source = sidecar ? std::move(sidecar) : find_sidecar(*module);
    if (rep->sidecar_source)
      if (core::Findings in_sidecar = findings.in(rep->sidecar_source);
          auto read = stb::read_sidecar(*rep->sidecar_source, context.limits, in_sidecar))
        rep->sidecar = *std::move(read);
  } catch (const core::Stop&) {
    throw Error(*report.first_error());
  }
  Module out;
  out.rep_ = rep;
  return out;
}

std::span<const std::uint32_t> Module::words() const& noexcept { return rep_->words; }
const Source& Module::source() const& noexcept { return *rep_->source; }
const Source* Module::sidecar() const& noexcept { return rep_->sidecar_source.get(); }

std::vector<std::uint32_t> words_of(const Source& source, const Context& context) {
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  std::vector<std::uint32_t> words = read_words(source, context.limits, findings);
  if (const Finding* error = report.first_error()) throw Error(*error);
  return words;
}

std::string stored(std::span<const std::uint32_t> words) {
  std::string out(words.size() * kWordSize, '\0');
  for (std::size_t i = 0; i < words.size(); ++i) base::store_le(out.data() + i * kWordSize, words[i]);
  return out;
}

}  // namespace weighbridge::khlnary
