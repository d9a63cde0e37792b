// SPDX-License-Identifier: Apache-2.0
// Checks everything about a module that can be known without running it. Follows both ways of every condition; leaves
// what depends on a run (the stack, its limits) to run.cc.
#include <bitset>
#include <utility>

#include "base/fail.h"
#include "runtime/khlnary/bin_files.h"
#include "runtime/khlnary/module.h"
#include "runtime/khlnary/rules.h"

namespace weighbridge::khlnary {
using namespace internal;
namespace {

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

Report verify(const std::shared_ptr<const Source>& module, std::shared_ptr<const Source> sidecar, unsigned authority,
              const Context& context) {
  if (!module) base::misuse("source", "there is no module to read");
  require_authority(authority);
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  Module::Rep rep;
  rep.source = module;
  rep.words = read_words(*module, context.limits, findings);
  rep.sidecar_source = sidecar ? std::move(sidecar) : find_sidecar(*module);
  bool whole = true;  // a sidecar that cannot be read tells nothing about what the words name
  if (rep.sidecar_source) {
    core::Findings in_sidecar = findings.in(rep.sidecar_source);
    auto read = stb::read_sidecar(*rep.sidecar_source, context.limits, in_sidecar);
    whole = read.has_value();
    if (read) rep.sidecar = *std::move(read);
  }
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
