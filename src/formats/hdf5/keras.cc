// SPDX-License-Identifier: Apache-2.0
// A .keras archive to Model: its member model.weights.h5 is walked where it lies, and the configuration becomes
// attributes.
#include <string>

#include "core/archive/zip.h"
#include "core/model/plan_text.h"
#include "core/model/words.h"
#include "core/reading/rules.h"
#include "core/reading/walker.h"
#include "formats/hdf5/format.h"
#include "formats/hdf5/layout.h"
#include "formats/hdf5/walk.h"
#include "wire/json_reader.h"

namespace weighbridge::hdf5 {
namespace {

class Archive : core::Walker {
 public:
  using Walker::Walker;

  void run() {
    const std::uint64_t errors = findings_.errors();
    const auto zip = core::read_zip(source_, context_.limits, kZipRules, findings_, draft_);
    if (!zip) return draft_.clear();
    const core::ZipMember* weights = nullptr;
    std::string other;
    for (const core::ZipMember& member : zip->members) {
      if (member.broken || member.is_folder()) continue;
      if (member.unreadable != nullptr) {
        findings_.report(*member.unreadable, {.offset = member.entry_at}, {}, core::quoted(core::excerpt(member.name)));
      } else if (member.name == kKerasWeights) {
        weights = &member;
      } else if (member.name == kKerasConfig || member.name == kKerasMetadata) {
        read_text(member);
      } else {
        if (member.name.starts_with("model.weights.")) other = member.name;
        findings_.report(keras::kOtherMember, {.offset = member.header_at}, {}, core::in_quotes(member.name));
        draft_.add_left_behind(core::indexed("files", member.name), "a member besides weights and configuration");
      }
    }
    if (findings_.errors() > errors) return draft_.clear();
    if (weights == nullptr || weights->encoding != Encoding::raw) {
      findings_.report(keras::kWeights, {.offset = weights != nullptr ? weights->entry_at : source_.size()}, {},
                       weights != nullptr ? "a compressed member"
                       : other.empty()    ? std::string()
                                          : core::quoted(core::excerpt(other)));
      return draft_.clear();
    }
    draft_.add_checksum("payload", "CRC-32 of each member");
    walk(source_, weights->offset, weights->offset + weights->size, kKerasRules, context_, findings_, draft_);
  }

 private:
  // "config.json" becomes the attribute "keras.config".
  void read_text(const core::ZipMember& member) {
    const core::At at{.offset = member.offset};
    const std::string name = core::quoted(member.name);
    if (member.size > context_.limits.memory)
      return findings_.report(core::rules::kLimitMemory, at, core::at_most(core::in_bytes(context_.limits.memory)),
                              core::in_bytes(member.size));
    std::string text;
    const std::string fault = core::read_zip_member(source_, member, context_, [&](std::span<const std::byte> piece) {
      text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      return true;
    });
    wire::JsonReader in(text, context_.limits.depth);
    in.skip_value();
    if (!fault.empty() || !in.finish())
      return findings_.report(keras::kConfig, at, {}, name,
                              !fault.empty() ? std::string_view(fault) : in.error().sentence);
    if (member.name == kKerasConfig && has_lambda(text, context_.limits.depth)) findings_.report(keras::kLambda, at);
    if (member.name == kKerasMetadata) set_version(text);
    draft_.set_attribute("keras." + std::string(member.name.substr(0, member.name.find('.'))),
                         Value::text(std::move(text)));
  }

  void set_version(std::string_view metadata) {
    wire::JsonReader in(metadata, context_.limits.depth);
    std::string scratch;
    if (!in.enter_object()) return;
    for (wire::JsonString key; in.next_key(key);) {
      wire::JsonString value;
      if (wire::json_text(key, scratch) == "keras_version" && in.read_string(value))
        draft_.set_version(core::excerpt(wire::json_text(value, scratch)));
      else
        in.skip_value();
    }
  }
};

}  // namespace

void read_keras(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  draft.set_format("keras");
  Archive(source, context, findings, draft).run();
}

}  // namespace weighbridge::hdf5
