// SPDX-License-Identifier: Apache-2.0
// zTensor 1.x to Model: the one walker for open and verify. It reads the manifest in one pass, with keys in any
// order, and hands each object to the Judge. Objects that break a rule are left out. If the manifest cannot be read to
// its end, the model is empty.
#include <string>
#include <utility>
#include <vector>

#include "formats/ztensor/cbor_walk.h"
#include "formats/ztensor/v1/format.h"
#include "formats/ztensor/v1/judge.h"
#include "formats/ztensor/v1/layout.h"
#include "formats/ztensor/v1/manifest.h"
#include "wire/cbor_writer.h"
#include "wire/keys.h"

namespace weighbridge::ztensor1 {
namespace {

constexpr std::size_t kShortestObject = 60;  // of a valid object

class Walk : private ztensor::CborWalk {
 public:
  Walk(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft)
      : CborWalk(source, context, findings, draft, {rules::kTrailing, rules::kCbor}) {}

  void run() {
    draft_.set_format("zt");
    auto manifest = read_manifest(source_, context_, findings_);
    if (!manifest) return;
    const std::uint64_t begin = source_.size() - kFooterSize - manifest->text().size();
    enter(std::move(*manifest), begin, kShortestObject, "manifest");
    Judge judge(source_, context_, findings_, draft_, begin);
    judge_ = &judge;
    if (!attempt([this] { walk(); })) return;
    check_names(rules::kDuplicateName);
    judge.check_rest(source_, begin);
    set_attributes(std::move(attributes_));
  }

 private:
  void walk() {
    if (!in_.enter_map()) {
      need_sound();
      findings_.report(rules::kRootType, {.offset = at(0)});
      throw Abandon{};
    }
    while (in_.next_entry()) read_root_entry();
    need_sound();
    finish();
    if (const auto twice = wire::first_duplicate(root_keys_))
      findings_.report(rules::kDuplicateKey, {.offset = at(*twice)});
    for (const auto& [seen, key] : {std::pair{has_version_, kVersion}, {has_objects_, kObjects}})
      if (!seen) report_and_go_on(rules::kRootMissing, at(0), key);
    stop_if_reported();
  }

  void read_root_entry() {
    const std::size_t key_at = in_.offset();
    wire::CborString key;
    if (!in_.read_text(key)) {
      need_sound();
      findings_.report(rules::kRootKey, {.offset = at(key_at)});
      pass_items(2);
      return;
    }
    const std::string_view name = root_text(key);
    root_keys_.push_back({name, key_at});
    const std::uint64_t value_at = here();
    if (name == kVersion) {
      read_version();
    } else if (name == kObjects) {
      if (!std::exchange(has_objects_, true))
        read_objects();
      else
        pass_items(1);
    } else if (name == kAttributes) {
      if (!std::exchange(has_attributes_, true)) {
        std::string others;
        if (in_.peek() == wire::CborKind::null) {
          in_.read_null();
        } else if (!read_attributes(attributes_, others, rules::kDuplicateKey)) {
          report_and_go_on(rules::kRootField, value_at, name, "a map");
          pass_items(1);
        }
        if (!others.empty()) draft_.set_extra(kAttributes, ztensor::foreign(others));
      } else {
        pass_items(1);
      }
    } else {
      draft_.set_extra(std::string(name), keep_value(name.size(), rules::kDuplicateKey));
    }
  }

  std::string_view root_text(const wire::CborString& text) { return text_of(text, root_texts_); }

  void read_version() {
    const std::uint64_t value_at = here();
    has_version_ = true;
    wire::CborString text;
    if (!in_.read_text(text)) {
      need_sound();
      report_and_go_on(rules::kRootField, value_at, kVersion, "text");
      pass_items(1);
      return;
    }
    const std::string_view version = root_text(text);
    const auto parsed = parse_version(version);
    if (!parsed || parsed->major != 1)
      report_and_go_on(rules::kVersionRule, value_at, {}, "1.MINOR.PATCH", version);
    else
      draft_.set_version(version);
  }

  // Reads the next value, and counts the memory of its entry.
  Value keep_value(std::size_t key_size, const Rule& duplicate_rule) {
    std::optional<std::size_t> duplicate;
    Value value = CborWalk::keep_value(key_size, duplicate, "the manifest has too many attributes and unknown keys");
    if (duplicate) report_duplicate(duplicate_rule, *duplicate);
    return value;
  }

  void report_duplicate(const Rule& rule, std::size_t offset) {
    core::At where{.offset = at(offset)};
    if (&rule == &rules::kObjectDuplicate) {
      where.tensor = entry_.name;
      entry_.broken = true;
    }
    findings_.report(rule, where);
  }

  // Reads a map of attributes. False if the next item is not a map; it is not consumed. Attributes have texts for keys:
  // the entries with other keys become `others`, a map of CBOR, which is kept as an unknown key (reading Y9).
  bool read_attributes(std::vector<Value::Entry>& out, std::string& others, const Rule& duplicate_rule) {
    if (!in_.enter_map()) {
      need_sound();
      return false;
    }
    std::vector<wire::Key> keys;
    OtherKeys other_keys;
    while (in_.next_entry()) {
      const std::size_t key_at = in_.offset();
      wire::CborString key;
      if (!in_.read_text(key)) {
        need_sound();
        keep_other(other_keys, key_at);
        continue;
      }
      std::string scratch;
      std::string name(wire::cbor_text(key, scratch));
      Value value = keep_value(name.size(), duplicate_rule);
      out.emplace_back(std::move(name), std::move(value));
      keys.push_back({{}, key_at});
    }
    need_sound();
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i].text = out[i].first;
    if (const auto twice = wire::first_duplicate(keys)) report_duplicate(duplicate_rule, *twice);
    if (other_keys.count != 0) {
      core::At where{.offset = at(other_keys.first)};
      if (&duplicate_rule == &rules::kObjectDuplicate) where.tensor = entry_.name;
      findings_.report(rules::kAttributeKey, where, {}, {other_keys.count, " of them"});
      wire::CborWriter map;
      map.map(other_keys.count);
      others = std::move(other_keys.entries.insert(0, map.data()));
    }
    return true;
  }

  // The entries of a map of attributes whose keys are not text.
  struct OtherKeys {
    std::string entries;
    std::uint64_t count = 0;
    std::size_t first = 0;  // the offset of the first
  };
  void keep_other(OtherKeys& out, std::size_t key_at) {
    if (out.count++ == 0) out.first = key_at;
    for (int i = 0; i < 2; ++i) {
      std::string_view item;
      if (!in_.skip_item(item)) need_sound();
      out.entries += item;
    }
  }

  void read_objects() {
    if (!in_.enter_map()) {
      need_sound();
      report_and_go_on(rules::kRootField, here(), kObjects, "a map");
      pass_items(1);
      return;
    }
    while (in_.next_entry()) {
      count_tensor();
      const std::uint64_t key_at = here();
      wire::CborString key;
      entry_.clear();
      if (!in_.read_text(key)) {
        need_sound();
        findings_.report(rules::kNameType, {.offset = key_at});
        pass_items(2);
        continue;
      }
      entry_.name = text_of(key, entry_.texts);
      entry_.at = here();
      note_name(entry_.name, !key.indefinite);
      if (take_usual()) continue;
      read_object();
      judge_->judge(entry_);
    }
    need_sound();
  }

  // Fast path: reads and adds the next object if it has the usual spelling and no faults.
  bool take_usual() {
    UsualObject usual;
    const std::size_t length = usual.read(in_.rest(UsualObject::kLevels));
    return length != 0 && judge_->add_usual(entry_.name, usual) && in_.take(length);
  }

  void read_object() {
    if (!in_.enter_map()) {
      wrong_type(entry_, rules::kObjectType, {}, "a map");
      return;
    }
    keys_.clear();
    while (in_.next_entry()) {
      const std::size_t key_at = in_.offset();
      std::string_view name;
      if (!known_text(name, kShape, kFormatKey, kComponents) && !read_key(entry_, name, rules::kObjectKey)) continue;
      if (is(name, kShape) && is_first(entry_.has_shape, key_at))
        read_shape(entry_, rules::kObjectField, rules::kRank);
      else if (is(name, kFormatKey) && is_first(entry_.has_layout, key_at))
        read_format();
      else if (is(name, kComponents) && is_first(entry_.has_parts, key_at))
        read_components();
      else if (is(name, kAttributes))
        read_object_attributes(key_at);
      else if (!is(name, kShape) && !is(name, kFormatKey) && !is(name, kComponents))
        keep_extra(entry_.extra, keys_, name, key_at);
      else
        pass_items(1);  // the key occurred before, which has been reported
    }
    need_sound();
    if (const auto twice = wire::first_duplicate(keys_)) report_duplicate(rules::kObjectDuplicate, *twice);
  }

  // Marks a field as seen. If it occurred before, reports it and returns false.
  bool is_first(bool& seen, std::size_t key_at) {
    if (!std::exchange(seen, true)) return true;
    report_duplicate(rules::kObjectDuplicate, key_at);
    return false;
  }

  void keep_extra(std::vector<Value::Entry>& out, std::vector<wire::Key>& keys, std::string_view name,
                  std::size_t key_at) {
    keys.push_back({name, key_at});
    Value value = keep_value(name.size(), rules::kObjectDuplicate);
    out.emplace_back(std::string(name), std::move(value));
  }

  void read_format() {
    if (!known_text(entry_.layout, name(Layout::dense)))
      read_text(entry_, entry_.layout, rules::kObjectField, kFormatKey);
  }

  void read_object_attributes(std::size_t key_at) {
    keys_.push_back({kAttributes, key_at});
    std::string others;
    if (in_.peek() == wire::CborKind::null) {
      in_.read_null();
    } else if (entry_.attributes.empty()) {
      if (!read_attributes(entry_.attributes, others, rules::kObjectDuplicate))
        wrong_type(entry_, rules::kObjectField, kAttributes, "a map");
      ztensor::restore_types(entry_.attributes);
      if (!others.empty()) entry_.extra.emplace_back(kAttributes, ztensor::foreign(others));
    } else {
      pass_items(1);
    }
  }

  void read_components() {
    if (!in_.enter_map()) {
      wrong_type(entry_, rules::kObjectField, kComponents, "a map");
      return;
    }
    roles_.clear();
    while (in_.next_entry()) {
      const std::size_t key_at = in_.offset();
      std::string_view role;
      if (!known_text(role, kData) && !read_key(entry_, role, rules::kComponentKey)) continue;
      Component& c = entry_.parts.emplace_back();
      c.role = role;
      c.at = here();
      c.encoding = "raw";
      roles_.push_back({c.role, key_at});
      read_component(c);
    }
    need_sound();
    if (const auto twice = wire::first_duplicate(roles_)) report_duplicate(rules::kObjectDuplicate, *twice);
  }

  void read_component(Component& c) {
    if (!in_.enter_map()) {
      wrong_type(entry_, rules::kComponentType, c.role, "a map");
      return;
    }
    component_keys_.clear();
    bool has_encoding = false;
    c.first_extra = static_cast<std::uint32_t>(entry_.part_extras.size());
    while (in_.next_entry()) {
      const std::size_t key_at = in_.offset();
      std::string_view name;
      if (known_text(name, kDtype, kOffset, kLength, kEncoding, kDigest) ||
          read_key(entry_, name, rules::kComponentKey, c.role))
        read_component_field(c, name, key_at, has_encoding);
    }
    need_sound();
    c.extra_count = static_cast<std::uint32_t>(entry_.part_extras.size()) - c.first_extra;
    if (const auto twice = wire::first_duplicate(component_keys_)) report_duplicate(rules::kObjectDuplicate, *twice);
  }

  void read_component_field(Component& c, std::string_view name, std::size_t key_at, bool& has_encoding) {
    if (is(name, kDtype))
      text_field(c.dtype, c.has_dtype, name, key_at);
    else if (is(name, kOffset))
      number_field(c.offset, c.has_offset, name, key_at);
    else if (is(name, kLength))
      number_field(c.length, c.has_length, name, key_at);
    else if (is(name, kEncoding))
      text_field(c.encoding, has_encoding, name, key_at);
    else if (is(name, kDigest) || is(name, kType) || is(name, kUncompressedLength))
      optional_field(c, name, key_at);
    else
      keep_extra(entry_.part_extras, component_keys_, name, key_at);
  }

  void text_field(std::string_view& out, bool& seen, std::string_view field, std::size_t key_at) {
    if (!is_first(seen, key_at))
      pass_items(1);
    else if (is(field, kEncoding) && in_.peek() == wire::CborKind::null)
      in_.read_null();  // Y2: null counts as absent
    else
      read_text(entry_, out, rules::kComponentField, field);
  }

  void number_field(std::uint64_t& out, bool& seen, std::string_view field, std::size_t key_at) {
    if (!is_first(seen, key_at))
      pass_items(1);
    else
      read_number(entry_, out, rules::kComponentField, field);
  }

  // Y2: null counts as absent, but the key still counts for duplicates.
  void optional_field(Component& c, std::string_view name, std::size_t key_at) {
    component_keys_.push_back({name, key_at});
    bool& seen = is(name, kDigest) ? c.has_digest : is(name, kType) ? c.has_type : c.has_decoded;
    if (in_.peek() == wire::CborKind::null) {
      in_.read_null();
    } else if (std::exchange(seen, true)) {
      pass_items(1);
    } else if (!is(name, kUncompressedLength)) {
      read_text(entry_, is(name, kDigest) ? c.digest : c.type, rules::kComponentField, name);
    } else {
      read_number(entry_, c.decoded_length, rules::kComponentField, name);
    }
  }

  Judge* judge_ = nullptr;
  Entry entry_;
  std::vector<wire::Key> root_keys_, keys_, roles_, component_keys_;
  std::deque<std::string> root_texts_;
  std::vector<Value::Entry> attributes_;  // the root's
  bool has_version_ = false, has_objects_ = false, has_attributes_ = false;
};

}  // namespace

void read(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  Walk(source, context, findings, draft).run();
}

}  // namespace weighbridge::ztensor1
