// SPDX-License-Identifier: Apache-2.0
// Opens a module, and checks everything about it that can be known without running it.
#include "runtime/khlnary/module.h"

#include <bitset>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "core/model/words.h"
#include "core/reading/rules.h"
#include "runtime/khlnary/bin_files.h"
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

std::vector<std::uint32_t> read_words(const Source& source, const Limits& limits, core::Findings& findings) {
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

// Reads words and sidecar, and reports what is wrong with them; in mode `all` it continues with what could be read.
// False if the sidecar cannot be read, and so tells nothing about what the words name.
bool read_module(const std::shared_ptr<const Source>& module, std::shared_ptr<const Source> sidecar,
                 const Limits& limits, core::Findings& findings, Module::Rep& out) {
  if (!module) base::misuse("source", "there is no module to read");
  out.source = module;
  out.words = read_words(*module, limits, findings);
  out.sidecar_source = sidecar ? std::move(sidecar) : find_sidecar(*module);
  if (!out.sidecar_source) return true;
  core::Findings in_sidecar = findings.in(out.sidecar_source);
  auto read = stb::read_sidecar(*out.sidecar_source, limits, in_sidecar);
  if (read) out.sidecar = *std::move(read);
  return read.has_value();
}

// Follows both ways of every condition; leaves what depends on a run (the stack, its limits) to run.cc.

class Verifier {
 public:
  Verifier(const Module::Rep& module, const Context& context, core::Findings& findings)
      : module_(module), words_(module.words), findings_(findings), files_(module, context) {}

  // Every word must be valid already.
  void check_all() {
    ends_ = match_functions(words_);
    follow();
    for (std::size_t i = 0; i < words_.size(); ++i) check_word(i, fields(words_[i]));
    check_files();
  }

  // Checks the files that no word named.
  void check_files() {
    for (const stb::BinFile& entry : module_.sidecar.files) file(entry.id, std::nullopt);
  }

 private:
  // Marks each word that some path reaches, from the module's start and from the start of each function.
  void follow() {
    reached_.resize(words_.size());
    go(0);
    for (std::size_t i = 0; i < words_.size(); ++i)
      if (glyph_of(words_[i]) == Glyph::Id::func_def) go(i + 1);
    while (!paths_.empty()) {
      const std::size_t at = paths_.back();
      paths_.pop_back();
      follow_word(at, fields(words_[at]));
    }
  }

  void go(std::size_t to) {
    if (to >= words_.size() || reached_[to]) return;
    reached_[to] = true;
    paths_.push_back(to);
  }

  void follow_word(std::size_t at, const Word& word) {
    const auto glyph = static_cast<Glyph::Id>(word.glyph);
    if (glyph == Glyph::Id::jump8 || glyph == Glyph::Id::ifz_jump8)
      if (const auto target = jump_target(at, word.payload, words_.size())) go(*target);
    if (glyph == Glyph::Id::func_def) {
      if (ends_[at] != kNowhere) go(std::size_t{ends_[at]} + 1);
    } else if (glyph != Glyph::Id::jump8 && glyph != Glyph::Id::ret && glyph != Glyph::Id::func_end) {
      go(at + 1);
    }
  }

  void check_word(std::size_t at, const Word& word) {
    const core::At where{.offset = at * kWordSize};
    switch (static_cast<Glyph::Id>(word.glyph)) {
      case Glyph::Id::ifz_jump8:
      case Glyph::Id::jump8:
        if (!jump_target(at, word.payload, words_.size()))
          findings_.report(rules::kJump, where, {"a word from 0 to ", words_.size() - 1},
                           {"word ", static_cast<std::int64_t>(at) + signed_payload(word.payload)});
        return;
      case Glyph::Id::func_def:
        if (ends_[at] == kNowhere) findings_.report(rules::kNoFunctionEnd, where);
        return;
      case Glyph::Id::func_end:
        if (ends_[at] == kNowhere)
          findings_.report(rules::kStrayFunctionEnd, where);
        else if (reached_[at])
          findings_.report(rules::kNoReturn, where);
        return;
      case Glyph::Id::call:
        if (!module_.sidecar.function(word.payload)) findings_.report(rules::kFunction, where, {}, word.payload);
        return;
      case Glyph::Id::load_bin_tensor: return check_tensor(where, file_of(word.payload), tensor_of(word.payload));
      case Glyph::Id::mmap_bin_region: file(word.payload, where.offset); return;
      default: return;
    }
  }

  void check_tensor(core::At where, std::uint8_t file_id, std::uint8_t tensor_id) {
    const OpenFile* const found = file(file_id, where.offset);
    if (found && !found->tensor(tensor_id))
      findings_.report(rules::kTensorId, where, {}, tensor_id, {"file ", file_id});
  }

  // The file, or null if it is invalid. The first word that names it reports the error, once.
  const OpenFile* file(std::uint8_t id, std::optional<std::uint64_t> at) {
    if (!broken_[id]) try {
        const OpenFile& file = files_.open(id, at);
        if (!reported_[id])
          for (const Finding& finding : file.unsupported) findings_.report(finding);
        reported_.set(id);
        return &file;
      } catch (const Error& error) {
        if (!base::refuses_input(error.kind())) throw;
        broken_.set(id);
        findings_.report(error.finding());
      }
    return nullptr;
  }

  const Module::Rep& module_;
  const std::span<const std::uint32_t> words_;
  core::Findings& findings_;
  BinFiles files_;
  std::vector<std::uint32_t> ends_{};
  std::vector<bool> reached_{};
  std::vector<std::size_t> paths_{};
  std::bitset<256> broken_{}, reported_{};  // reported_: its unsupported tensors were reported
};

}  // namespace

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
  Report report;
  core::Findings findings(report, core::Findings::Mode::first_error);
  const auto rep = std::make_shared<Rep>();
  try {
    read_module(module, std::move(sidecar), context.limits, findings, *rep);
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

Report verify(const std::shared_ptr<const Source>& module, std::shared_ptr<const Source> sidecar, unsigned authority,
              const Context& context) {
  require_authority(authority);
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  Module::Rep rep;
  const bool whole = read_module(module, std::move(sidecar), context.limits, findings, rep);
  const std::uint64_t before = findings.errors();
  check_words(rep, authority, findings);
  Verifier verifier(rep, context, findings);
  if (findings.errors() == before && whole)
    verifier.check_all();
  else
    verifier.check_files();
  return report;
}

}  // namespace weighbridge::khlnary
