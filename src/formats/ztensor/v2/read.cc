// SPDX-License-Identifier: Apache-2.0
// zTensor 2 to Model: the one walker for open and verify. The manifest is checked to be deterministic CBOR first;
// then one pass hands each object to the Judge. Objects that break a rule are left out. If the manifest cannot be read
// to its end, the model is empty.
//
//   "\x89ZT2\r\n\x1a\n" | blobs, at multiples of 4096 | manifest: a CBOR map | 40 bytes of footer
//   layout.h has the fields of the footer and the keys of the manifest. A data shard has no manifest (7.2).
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "core/payload/part_digest.h"
#include "core/reading/rules.h"
#include "formats/ztensor/cbor_value.h"
#include "formats/ztensor/cbor_walk.h"
#include "formats/ztensor/v2/format.h"
#include "formats/ztensor/v2/judge.h"
#include "formats/ztensor/v2/layout.h"
#include "formats/ztensor/v2/manifest.h"
#include "formats/ztensor/v2/shards.h"
#include "weighbridge/place.h"
#include "wire/cbor_writer.h"

namespace weighbridge::ztensor2 {
namespace {

constexpr std::size_t kShortestObject = 50;  // of a valid object

class Walk : private ztensor::CborWalk {
 public:
  Walk(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft)
      : CborWalk(source, context, findings, draft, {rules::kCbor, rules::kCbor}),
        shards_(source, findings, draft),
        judge_(context, findings, draft, shards_, source.size() < kMinFile ? 0 : source.size() - kFooterSize) {}

  void run() {
    draft_.set_format("zt2");
    auto envelope = read_envelope(source_, context_, findings_);
    if (!envelope) return;
    draft_.set_version(std::to_string(kVersion));
    if (envelope->manifest.text().empty()) {
      findings_.report(rules::kDataShard, {});
      draft_.index_sorted_names();
      return;
    }
    const std::uint64_t begin = envelope->manifest_offset, length = envelope->manifest.text().size();
    if (!is_deterministic(envelope->manifest.text(), begin)) return;
    enter(std::move(envelope->manifest), begin, kShortestObject, "manifest");
    if (!attempt([this] { walk(); })) return;
    check_names(rules::kDuplicateKey);
    shards_.open_unused();
    draft_.drop(judge_.overlaps(begin, length));
    set_attributes(std::move(attributes_));
  }

 private:
  bool is_deterministic(std::string_view manifest, std::uint64_t begin) {
    const auto fault = wire::check_deterministic(manifest, std::min(kMaxDepth, context_.limits.depth));
    if (!fault) return true;
    using Kind = wire::DeterministicFault::Kind;
    const bool limit = fault->kind == Kind::too_deep && context_.limits.depth < kMaxDepth;
    const Rule& rule = limit                                ? core::rules::kLimitDepth
                       : fault->kind == Kind::malformed     ? rules::kCbor
                       : fault->kind == Kind::duplicate_key ? rules::kDuplicateKey
                       : fault->kind == Kind::too_deep      ? rules::kDepth
                                                            : rules::kDeterminism;
    return findings_.fail(rule, {.offset = begin + fault->offset}, {}, {}, fault->sentence);
  }

  void walk() {
    if (!in_.enter_map()) {
      findings_.report(rules::kRootType, {.offset = at(0)});
      throw Abandon{};
    }
    while (in_.next_entry()) {
      const std::uint64_t key_at = here();
      std::string_view key;
      if (!read_text(key)) {  // no field that the text defines
        pass_items(2);
      } else if (key == kAttributes) {
        if (!read_attributes(attributes_, nullptr)) report_and_go_on(rules::kRootField, key_at, key);
      } else if (key == kShards) {
        read_shards(key_at);
      } else if (key == kObjects) {
        has_objects_ = true;
        read_objects();
      } else {
        draft_.set_extra(std::string(key), keep_value(key.size()));
      }
    }
    finish();
    if (!has_objects_) report_and_go_on(rules::kRootMissing, at(0), kObjects);
    stop_if_reported();
  }

  // The table of shards is known by now: "shards" is shorter than "objects", so it comes first in deterministic CBOR.
  void read_objects() {
    if (!in_.enter_map()) {
      report_and_go_on(rules::kRootField, here(), kObjects);
      pass_items(1);
      return;
    }
    while (in_.next_entry()) {
      count_tensor();
      const std::uint64_t key_at = here();
      entry_.clear();
      if (!read_text(entry_.name)) {
        report_and_go_on(rules::kNameType, key_at, {});
        pass_items(2);
        continue;
      }
      entry_.at = here();
      note_name(entry_.name, true);
      read_object();
      judge_.judge(entry_);
    }
    need_sound();
  }

  bool read_text(std::string_view& out) {
    wire::CborString text;
    if (in_.read_text(text)) {
      out = text.raw;
      return true;
    }
    need_sound();
    return false;
  }

  Value keep_value(std::size_t key_size) {
    std::optional<std::size_t> duplicate;
    return CborWalk::keep_value(key_size, duplicate, "the manifest has too many attributes and unknown keys",
                                ztensor::Floats::shortest);
  }

  // Reads a map of attributes, of the file or of an object. False if the next item is not a map, which is skipped.
  bool read_attributes(std::vector<Value::Entry>& out, Entry* of) {
    if (!in_.enter_map()) {
      pass_items(1);
      return false;
    }
    while (in_.next_entry()) {
      const std::uint64_t key_at = here();
      std::string_view key;
      const bool text = read_text(key);
      if (text && is_name(key)) {
        out.emplace_back(std::string(key), keep_value(key.size()));
        continue;
      }
      if (of)
        broken(entry_, rules::kObjectAttribute, key_at, {});
      else
        report_and_go_on(text ? rules::kAttributeName : rules::kAttributeType, key_at, {});
      pass_items(text ? 1 : 2);
    }
    return true;
  }

  void read_shards(std::uint64_t key_at) {
    if (!in_.enter_map()) {
      report_and_go_on(rules::kRootField, key_at, kShards);
      pass_items(1);
      return;
    }
    while (in_.next_entry()) {
      const std::uint64_t name_at = here();
      Shard shard;
      if (!read_text(shard.name)) {
        report_and_go_on(rules::kShardKey, name_at, {});
        pass_items(2);
        continue;
      }
      shard.at = name_at;
      if (!is_shard_name(shard.name)) report_and_go_on(rules::kShardName, name_at, {}, {}, shard.name);
      read_shard(shard, name_at);
    }
  }

  void read_shard(Shard& shard, std::uint64_t name_at) {
    const auto bad = [&](std::string_view detail, const core::Said& expected = {}, const core::Said& found = {}) {
      report_and_go_on(rules::kShardField, name_at, {shard.name, ", ", detail}, expected, found);
    };
    if (!in_.enter_map()) {
      pass_items(1);
      return bad("not a map");
    }
    bool has_size = false;
    while (in_.next_entry()) {
      std::string_view key;
      if (!read_text(key)) {
        pass_items(2);
      } else if (key == kSize) {
        has_size = in_.read_u64(shard.size);
        if (!has_size) pass_items(1);
      } else if (key == kDigest) {
        if (!read_text(shard.digest)) pass_items(1);
      } else {
        pass_items(1);
      }
    }
    const core::DigestText digest = core::parse_decoded_digest(shard.digest);
    if (!has_size || shard.size < kMinFile)
      bad(kSize, "at least 48 bytes", has_size ? std::to_string(shard.size) : "none");
    else if (!digest.problem.empty())
      bad(kDigest, std::string(digest.problem), std::string(shard.digest));
    else
      shards_.add(shard);
    if (digest.problem.empty() && digest.kind == core::PartDigest::none)
      findings_.report(rules::kDigestUnknown, {.offset = name_at}, {}, shard.digest, {"shard \"", shard.name, "\""});
  }

  void read_object() {
    if (!in_.enter_map()) return wrong_type(entry_, rules::kObjectType, {}, "a map");
    while (in_.next_entry()) {
      std::string_view key;
      if (!known_text(key, kParts, kShape, kLayout) && !read_text(key)) {
        pass_items(2);
      } else if (key == kShape) {
        entry_.has_shape = true;
        read_shape(entry_, rules::kObjectField, rules::kRank);
      } else if (key == kLayout) {
        entry_.has_layout = true;
        if (!known_text(entry_.layout, kDense) && !read_text(entry_.layout))
          wrong_type(entry_, rules::kObjectField, kLayout, "text");
      } else if (key == kParts) {
        read_parts();
      } else if (key == kAttributes) {
        const std::uint64_t value_at = here();
        if (!read_attributes(entry_.attributes, &entry_))
          broken(entry_, rules::kObjectField, value_at, kAttributes, "a map");
        ztensor::restore_types(entry_.attributes);
      } else {
        entry_.extra.emplace_back(std::string(key), keep_value(key.size()));
      }
    }
    need_sound();
  }

  void read_parts() {
    entry_.has_parts = true;
    if (!in_.enter_map()) return wrong_type(entry_, rules::kObjectField, kParts, "a map");
    while (in_.next_entry()) {
      const std::uint64_t key_at = here();
      PartEntry part;
      if (!known_text(part.role, kData) && !read_text(part.role)) {
        broken(entry_, rules::kPartType, key_at, {});
        pass_items(2);
        continue;
      }
      part.at = here();
      read_part(part);
      entry_.parts.push_back(part);
    }
    need_sound();
  }

  void text_field(std::string_view& out, bool& seen, std::string_view key) {
    seen = true;
    CborWalk::read_text(entry_, out, rules::kPartField, key);
  }
  void read_part(PartEntry& part) {
    if (!in_.enter_map()) return wrong_type(entry_, rules::kPartType, part.role, "a map");
    part.first_extra = static_cast<std::uint32_t>(entry_.part_extras.size());
    while (in_.next_entry()) {
      std::string_view key;
      if (!known_text(key, kBlob, kDtype, kDigest, kType, kEncoding) && !read_text(key)) {
        pass_items(2);
      } else if (key == kBlob) {
        read_blob(part);
      } else if (key == kDtype) {
        text_field(part.dtype, part.has_dtype, key);
      } else if (key == kDigest) {
        text_field(part.digest, part.has_digest, key);
      } else if (key == kType) {
        text_field(part.type, part.has_type, key);
      } else if (key == kEncoding) {
        text_field(part.encoding, part.has_encoding, key);
      } else if (key == kShard) {
        text_field(part.shard, part.has_shard, key);
      } else if (key == kDecodedLength) {
        part.has_decoded = true;
        read_number(entry_, part.decoded_length, rules::kPartField, key);
      } else {
        entry_.part_extras.emplace_back(std::string(key), keep_value(key.size()));
      }
    }
    need_sound();
    part.extra_count = static_cast<std::uint32_t>(entry_.part_extras.size()) - part.first_extra;
  }

  void read_blob(PartEntry& part) {
    part.has_blob = true;
    const std::uint64_t value_at = here();
    if (!in_.enter_array()) return wrong_type(entry_, rules::kPartField, kBlob, "an array");
    std::array<std::uint64_t, 2> pair{};
    bool numbers = true;
    const std::size_t count = read_dims(pair, [&] { numbers = false; });
    if (!numbers || count != 2)
      broken(entry_, rules::kPartField, value_at, kBlob, "an offset and a length", {count, " items"});
    part.offset = pair[0];
    part.length = pair[1];
  }

  Shards shards_;
  Judge judge_;
  Entry entry_;
  std::vector<Value::Entry> attributes_;  // the root's
  bool has_objects_ = false;
};

}  // namespace

void read(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  Walk(source, context, findings, draft).run();
}

void read_files(const core::ReadJob& job, core::Draft& draft) {
  const std::shared_ptr<const Source> root = job.place.open(kWholeName);
  if (!root) base::io_error_of(job.place.name(), "open", "its manifest, model.zt, is no longer there");
  draft.add_source(root);
  core::Findings findings = job.findings.in(root);
  read(*root, job.context, findings, draft);
}

}  // namespace weighbridge::ztensor2
