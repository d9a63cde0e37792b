// SPDX-License-Identifier: Apache-2.0
// safetensors to Model: the one walker for open and verify. Goes through the header once and adds the valid tensors. At
// the end checks whether all ranges, including those of broken tensors, tile the buffer.
//
//   u64 length of the header, little-endian | header | data
//   header: JSON, then spaces: {"NAME": {"dtype": "F32", "shape": [2], "data_offsets": [begin, end]}, ...}
//   data_offsets: from the beginning of the data
#include <algorithm>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/order.h"
#include "base/os.h"
#include "core/model/words.h"
#include "core/reading/budget.h"
#include "core/reading/walker.h"
#include "formats/safetensors/entry.h"
#include "formats/safetensors/format.h"
#include "formats/safetensors/layout.h"
#include "wire/json_reader.h"

namespace weighbridge::safetensors {
namespace {

using core::bytes_text, core::excerpt;

using wire::JsonString;

// Memory that one key of __metadata__ or one unknown key takes besides its text: entry, value, reference count. A
// header of 100 MB can hold ten million of them, so Limits::memory applies.
constexpr std::uint64_t kKeptEntryCost = 256;
// Those of a refused header are made too, for its report, if there are no more than this (reading G13).
constexpr std::size_t kKeptOfRefused = std::size_t{1} << 16;
// No entry of a tensor is shorter than this, so the header's length bounds the memory reserved for tensors.
constexpr std::size_t kShortestEntry = 48;

// A key of __metadata__, or an unknown one of a tensor. Its value is made once the whole header is read, because values
// take far more memory than the bytes of a header that may be refused.
struct Kept {
  std::uint32_t at = 0, value_at = 0;      // in the header's text
  std::uint32_t key_at = 0, key_size = 0;  // of its name in the text or, from the text's end on, in decoded_
};
struct KeptOf {
  std::uint32_t tensor = core::kNone;  // kNone: the model's own
  std::size_t begin = 0, end = 0;      // in kept_
};

// A range that could be read, of a valid or a broken tensor.
struct Place {
  std::uint64_t begin = 0, end = 0;
  std::uint32_t name_at = 0, offsets_at = 0;  // in the header's text
  std::uint32_t tensor = core::kNone;         // in the draft; kNone: broken, so only its range counts
};

class Walk : core::Walker {
 public:
  using Walker::Walker;

  void run() {
    draft_.set_format("safetensors");
    if (!read_header()) return;
    if (!read_entries()) {
      draft_.clear();
      return;
    }
    check_names();
    check_tiling();
    make_kept();
    drop_broken();
  }

 private:
  // Reads the header into owned memory. False if it cannot be read, which has been reported.
  bool read_header() {
    if (!has_bytes(rules::kTooShort, kLengthSize)) return false;
    std::byte stated[kLengthSize];
    source_.read_at(0, stated);
    const std::uint64_t length = base::load_le<std::uint64_t>(stated);
    findings_.span(Span::Kind::field, 0, kLengthSize, "length of the header", [&] { return std::to_string(length); });
    if (length < kMinHeader)
      return findings_.fail(rules::kHeaderTooShort, {.offset = 0}, core::at_least(kMinHeader), length);
    if (length > kMaxHeader)
      return findings_.fail(rules::kHeaderTooLarge, {.offset = 0}, core::at_most(kMaxHeader), length);
    if (!base::fits(kLengthSize, length, size_)) {
      const std::uint64_t needed = kLengthSize + length;
      return findings_.fail(rules::kHeaderPastEnd, {.offset = size_}, core::at_least(core::in_bytes(needed)),
                            core::in_bytes(size_), core::missing_text(needed - size_));
    }
    if (!within_limit({.offset = 0}, length)) return false;
    core::HeaderMemory text(length);
    source_.read_at(kLengthSize, text.bytes());
    text_ = draft_.retain_header(std::move(text));
    findings_.tree(core::Grammar::json, Span::Kind::structure, kLengthSize, text_, "header");
    data_start_ = kLengthSize + length;
    buffer_ = size_ - data_start_;
    if (text_.front() != '{') {
      findings_.report(rules::kHeaderStart, {.offset = kLengthSize}, "{", byte_text(0));
      return false;
    }
    return true;
  }

  // Reads the root object. False if the JSON is broken or a limit is exceeded, which has been reported.
  bool read_entries() {
    const std::size_t maximum = text_.size() / kShortestEntry + 1;
    draft_.reserve(maximum, maximum, 2 * maximum);
    places_.reserve(maximum);
    base::use_large_pages(std::as_writable_bytes(std::span(places_.data(), maximum)));
    usual_ = limits_.depth >= 3;
    wire::JsonReader in(text_, limits_.depth);
    if (in.enter_object()) {
      bool metadata_seen = false;
      for (JsonString key; in.next_key(key);) {
        const std::string_view name = wire::json_text(key, name_scratch_);
        if (name == kMetadata) {
          if (!std::exchange(metadata_seen, true)) {
            read_metadata(in);
          } else {
            findings_.report(rules::kDuplicateMetadata, {.offset = file_offset(key.offset - 1)});
            in.skip_value();
          }
        } else if (seen_++ >= limits_.tensors)
          return findings_.fail(core::rules::kLimitTensors, {.offset = file_offset(key.offset - 1)},
                                core::at_most(limits_.tensors));
        else {
          read_tensor(in, key, name);
        }
        if (over_memory_) return false;
      }
    }
    if (!in.ok()) {
      report_json(in.error());
      return false;
    }
    const std::size_t other = text_.find_first_not_of(' ', *in.value_end());
    if (other != std::string_view::npos)
      findings_.report(rules::kHeaderTrailing, {.offset = file_offset(other)}, "spaces", byte_text(other));
    return true;
  }

  void report_json(const wire::JsonError& error) {
    const core::At at{.offset = file_offset(error.offset)};
    if (error.code == wire::JsonErrorCode::too_deep)
      return findings_.report(core::rules::kLimitDepth, at, core::at_most(limits_.depth));
    const Rule& rule = error.code == wire::JsonErrorCode::invalid_utf8 ? rules::kHeaderUtf8 : rules::kHeaderJson;
    findings_.report(rule, at, {}, error.offset < text_.size() ? byte_text(error.offset) : "the end of the header",
                     error.sentence);
  }

  void read_metadata(wire::JsonReader& in) {
    const std::uint64_t at = file_offset(in.offset());
    if (in.peek() == wire::JsonKind::null) return static_cast<void>(in.read_null());  // as MLX writes it: no metadata
    if (!in.enter_object()) {
      wrong_type(in, rules::kMetadataType, at, std::nullopt, "an object");
      return;
    }
    const std::size_t begin = kept_.size();
    for (JsonString key; in.next_key(key);) {
      const std::size_t value_at = in.offset();
      JsonString text;
      if (!in.read_string(text) && in.ok())
        wrong_type(in, rules::kMetadataValue, file_offset(value_at), std::nullopt, "text");
      if (!in.ok() || !note(key, value_at)) return;
    }
    if (!in.ok()) return;
    drop_again(begin, rules::kDuplicateMetadataKey, std::nullopt);
    owners_.push_back({.begin = begin, .end = kept_.size()});
  }

  // Reads one tensor's entry, whose value is next in `in`.
  void read_tensor(wire::JsonReader& in, const JsonString& key, std::string_view name) {
    entry_.clear();
    const std::size_t kept = kept_.size();
    const std::string_view rest = in.rest();
    if (!in.ok()) return;
    const std::uint64_t at = file_offset(static_cast<std::size_t>(rest.data() - text_.data()));
    if (const std::size_t length = usual_ ? entry_.read_usual(rest, at) : 0; length != 0) {
      in.take(length);
    } else if (entry_.clear(); in.enter_object()) {
      read_fields(in, name);
      if (!in.ok() || over_memory_) return;
      check_complete(at, name);
    } else {
      wrong_type(in, rules::kEntryType, at, name, "an object");
      if (!in.ok()) return;
      entry_.broken = true;
    }
    const auto [begin, end] = entry_.offsets;
    const bool ranged = entry_.offsets_good && begin <= end;
    if (entry_.offsets_good && !ranged) fail(rules::kOffsetsOrder, entry_.offsets_at, name, core::at_least(begin), end);
    check_size(ranged, name);
    // Only the range of a broken tensor is kept, so memory stays proportional to the valid tensors.
    const bool sound = !entry_.broken && end <= buffer_;
    complete_ &= ranged;
    if (ranged) {
      tiled_ = tiled_ && begin == std::exchange(tiles_end_, end);
      Place& place = places_.emplace_back();
      place.begin = begin;
      place.end = end;
      place.name_at = static_cast<std::uint32_t>(key.offset - 1);
      place.offsets_at = static_cast<std::uint32_t>(entry_.offsets_at - kLengthSize);
      if (sound) {
        place.tensor = add(name);
        // Compare now, while the names are at hand: most writers sort them. Names with escapes are sorted later.
        ascending_ = ascending_ && !key.escaped && (place.tensor == 0 || last_name_ < name);
        last_name_ = key.raw;
        if (kept < kept_.size()) owners_.push_back({.tensor = place.tensor, .begin = kept, .end = kept_.size()});
      }
    }
    if (owners_.empty() || owners_.back().end <= kept) kept_.resize(kept);  // the tensor is broken
  }

  void read_fields(wire::JsonReader& in, std::string_view name) {
    const std::size_t begin = kept_.size();
    for (JsonString key; in.next_key(key);) {
      const std::string_view field = wire::json_text(key, scratch_);
      const std::uint64_t key_at = file_offset(key.offset - 1);
      bool* const seen = entry_.seen(field);
      if (seen == nullptr) {
        read_unknown(in, key, name);
      } else if (std::exchange(*seen, true)) {
        fail(rules::kDuplicateKey, key_at, name, {}, field);
        in.skip_value();
      } else if (seen == &entry_.has_dtype) {
        read_dtype(in, name);
      } else if (seen == &entry_.has_shape) {
        read_shape(in, name);
      } else {
        read_offsets(in, name);
      }
      if (!in.ok() || over_memory_) return;
    }
    if (in.ok()) entry_.broken |= drop_again(begin, rules::kDuplicateKey, name);
  }

  void read_unknown(wire::JsonReader& in, const JsonString& key, std::string_view name) {
    const std::size_t value_at = in.offset();
    if (!in.skip_value()) return;
    findings_.report(rules::kUnknownKey, {.offset = file_offset(key.offset - 1), .tensor = name}, {},
                     core::excerpted(wire::json_text(key, scratch_)));
    note(key, value_at);
  }

  void read_dtype(wire::JsonReader& in, std::string_view name) {
    entry_.dtype_at = file_offset(in.offset());
    JsonString text;
    if (in.read_string(text)) {
      entry_.set_dtype(wire::json_text(text, entry_.dtype_scratch));
    } else if (in.ok()) {
      wrong_type(in, rules::kDtypeType, entry_.dtype_at, name, "text");
      entry_.broken = true;
    }
  }

  void read_shape(wire::JsonReader& in, std::string_view name) {
    entry_.shape_at = file_offset(in.offset());
    if (!in.enter_array()) {
      if (in.ok()) wrong_type(in, rules::kShapeType, entry_.shape_at, name, "an array");
      entry_.broken = true;
      return;
    }
    bool good = true;
    while (in.next_element()) {
      std::uint64_t dim = 0;
      const std::uint64_t at = file_offset(in.offset());
      if (in.read_u64(dim)) {
        entry_.add_dimension(dim);
      } else if (in.ok()) {
        wrong_type(in, rules::kShapeNumber, at, name, {});
        good = false;
      }
    }
    entry_.shape_good = good;
    entry_.broken |= !good;
  }

  void read_offsets(wire::JsonReader& in, std::string_view name) {
    entry_.offsets_at = file_offset(in.offset());
    if (!in.enter_array()) {
      if (in.ok()) wrong_type(in, rules::kOffsetsType, entry_.offsets_at, name, "an array");
      entry_.broken = true;
      return;
    }
    bool good = true;
    std::size_t count = 0;
    for (; in.next_element(); ++count) {
      std::uint64_t value = 0;
      const std::uint64_t at = file_offset(in.offset());
      if (in.read_u64(value)) {
        if (count < 2) entry_.offsets[count] = value;
      } else if (in.ok()) {
        wrong_type(in, rules::kOffsetsNumber, at, name, {});
        good = false;
      }
    }
    if (!in.ok()) return;
    if (count != 2) {
      findings_.report(rules::kOffsetsCount, {.offset = entry_.offsets_at, .tensor = name}, "2", count);
      good = false;
    }
    entry_.offsets_good = good;
    entry_.broken |= !good;
  }

  void check_complete(std::uint64_t at, std::string_view name) {
    if (entry_.has_dtype && entry_.has_shape && entry_.has_offsets) return;
    std::string missing;
    if (!entry_.has_dtype) missing = "dtype";
    if (!entry_.has_shape) missing += missing.empty() ? "shape" : ", shape";
    if (!entry_.has_offsets) missing += missing.empty() ? "data_offsets" : ", data_offsets";
    fail(rules::kMissingKey, at, name, std::move(missing));
  }

  // Checks shape and dtype against the range. Reports an unsupported tensor only if its entry is otherwise valid.
  void check_size(bool ranged, std::string_view name) {
    if (entry_.dtype != DType::unknown && entry_.shape_good) {
      const auto elements = entry_.elements();
      const auto bits = elements ? base::checked_mul(*elements, info(entry_.dtype).bits) : std::nullopt;
      if (!bits) {
        fail(rules::kSizeOverflow, entry_.shape_at, name);
      } else if (*bits % 8 != 0) {
        fail(rules::kPartialByte, entry_.shape_at, name, "a multiple of 8 bits", {*bits, " bits"});
      } else if (const std::uint64_t length = entry_.offsets[1] - entry_.offsets[0]; ranged && length != *bits / 8) {
        fail(rules::kSizeMismatch, entry_.offsets_at, name, core::in_bytes(*bits / 8), core::in_bytes(length));
      }
    }
    if (entry_.broken) return;
    if (entry_.dtype == DType::unknown) {
      entry_.unsupported = core::Findings::make(rules::kUnknownDtype, {.offset = entry_.dtype_at, .tensor = name}, {},
                                                core::excerpted(entry_.dtype_name));
    } else if (entry_.rank > kMaxRank) {
      entry_.unsupported = core::Findings::make(rules::kRankTooHigh, {.offset = entry_.shape_at, .tensor = name},
                                                core::at_most(kMaxRank), entry_.rank);
    }
    if (entry_.unsupported) findings_.report(*entry_.unsupported);
  }

  std::uint32_t add(std::string_view name) {
    const bool shaped = entry_.rank <= kMaxRank;
    const Shape shape = shaped ? entry_.shape() : Shape{};
    const auto [begin, end] = entry_.offsets;
    const Extent extent{.source = 0, .offset = data_start_ + begin, .length = end - begin};
    if (shaped && entry_.plain()) return draft_.add_dense(name, entry_.dtype, shape, extent);
    const std::uint32_t tensor = shaped ? draft_.add_tensor(name, Layout::dense, entry_.dtype, shape)
                                        : draft_.add_tensor_without_shape(name, Layout::dense, entry_.dtype);
    const std::uint64_t count[] = {entry_.elements().value_or(0)};
    const std::uint32_t part =
        draft_.add_part("data", entry_.dtype, shaped ? shape : Shape(count), Encoding::raw, extent, end - begin);
    if (entry_.dtype == DType::unknown) {
      draft_.part(part).dtype_name(entry_.dtype_name);
      draft_.tensor(tensor).type_name(entry_.dtype_name);
    }
    if (entry_.unsupported) draft_.tensor(tensor).unsupported(*std::move(entry_.unsupported));
    return tensor;
  }

  void check_names() {
    if (ascending_) return draft_.index_sorted_names();
    const auto duplicates = draft_.index_names();
    if (duplicates.empty()) return;
    std::vector<const Place*> of(draft_.size());
    for (const Place& place : places_)
      if (place.tensor != core::kNone) of[place.tensor] = &place;
    for (const auto& [earlier, later] : duplicates) {
      drop_.push_back(later);
      const std::string detail = "the first one is at offset " + std::to_string(file_offset(of[earlier]->name_at));
      findings_.report(rules::kDuplicateName, {.offset = file_offset(of[later]->name_at), .tensor = draft_.name(later)},
                       {}, {}, detail);
    }
  }

  // T6: the ranges follow one another from 0 to the end of the buffer. If some range could not be read, holes are not
  // reported.
  void check_tiling() {
    if (complete_ && tiled_ && tiles_end_ == buffer_) return;  // no need to look at the ranges again
    const auto before = [](const Place& a, const Place& b) {
      return std::tie(a.begin, a.end, a.name_at) < std::tie(b.begin, b.end, b.name_at);
    };
    if (!std::is_sorted(places_.begin(), places_.end(), before)) std::sort(places_.begin(), places_.end(), before);

    if (complete_ && report_truncated()) return;
    std::uint64_t at = 0;
    for (const Place& place : places_) {
      if (place.begin < at) {
        misplaced(rules::kOverlap, place, {"to begin at ", at}, place.begin);
        if (place.tensor != core::kNone) drop_.push_back(place.tensor);
      } else if (place.begin > at && complete_) {
        misplaced(rules::kHole, place, {"to begin at ", at}, place.begin);
      }
      if (place.end > buffer_) misplaced(rules::kDataPastEnd, place, {"to end at ", buffer_, " or before"}, place.end);
      at = std::max(at, place.end);
    }
    if (complete_ && at < buffer_) {
      findings_.report(rules::kTrailingData, {.offset = data_start_ + at, .hint = base::size_hint(data_start_ + at)},
                       {"a file of ", core::in_bytes(data_start_ + at)}, core::in_bytes(data_start_ + buffer_));
    }
  }

  void misplaced(const Rule& rule, const Place& place, const core::Said& expected, std::uint64_t found) {
    // Broken tensors are not in the draft, so the name is read again from the header.
    wire::JsonReader in(text_.substr(place.name_at));
    JsonString name;
    in.read_string(name);
    findings_.report(rule, {.offset = file_offset(place.offsets_at), .tensor = wire::json_text(name, name_scratch_)},
                     expected, found);
  }

  // If consecutive ranges continue past the end of the file, it was truncated: one finding, not one per tensor.
  bool report_truncated() {
    std::uint64_t at = 0;
    for (const Place& place : places_) {
      if (place.begin != at) return false;
      at = place.end;
    }
    const auto needed = base::checked_add(data_start_, at);
    if (at <= buffer_ || !needed) return false;
    findings_.report(rules::kTruncated, {.offset = data_start_ + buffer_, .hint = base::size_hint(*needed)},
                     core::in_bytes(*needed), core::in_bytes(data_start_ + buffer_), core::missing_text(at - buffer_));
    return true;
  }

  void drop_broken() {
    std::sort(drop_.begin(), drop_.end());
    drop_.erase(std::unique(drop_.begin(), drop_.end()), drop_.end());
    draft_.drop(drop_);
  }

  std::string_view key_of(const Kept& kept) const {
    return kept.key_at < text_.size() ? text_.substr(kept.key_at, kept.key_size)
                                      : std::string_view(decoded_).substr(kept.key_at - text_.size(), kept.key_size);
  }

  // False, and reported, if there are too many.
  bool note(const JsonString& key, std::size_t value_at) {
    over_memory_ = !memory_.keep(findings_, {.offset = file_offset(key.offset - 1)}, 1, kKeptEntryCost,
                                 "the header has too many keys to keep");
    if (over_memory_) return false;
    const std::string_view text = wire::json_text(key, scratch_);
    kept_.push_back({.at = static_cast<std::uint32_t>(key.offset - 1),
                     .value_at = static_cast<std::uint32_t>(value_at),
                     .key_at = static_cast<std::uint32_t>(key.escaped ? text_.size() + decoded_.size() : key.offset),
                     .key_size = static_cast<std::uint32_t>(text.size())});
    if (key.escaped) decoded_ += text;
    return true;
  }

  // Drops keys from `begin` on that are there again; reports them at their own offsets. True if there was one.
  bool drop_again(std::size_t begin, const Rule& rule, std::optional<std::string_view> tensor) {
    const auto kept = std::span(kept_).subspan(begin);
    const auto again = base::repeated(kept.size(), [&](std::uint32_t i) { return key_of(kept[i]); });
    auto next = again.begin();
    std::size_t end = begin;
    for (std::uint32_t i = 0; i < kept.size(); ++i) {
      if (next == again.end() || next->first != i) {
        kept_[end++] = kept[i];
        continue;
      }
      findings_.report(rule, {.offset = file_offset(kept[i].at), .tensor = tensor}, {},
                       core::excerpted(key_of(kept[i])));
      ++next;
    }
    kept_.resize(end);
    return !again.empty();
  }

  void make_kept() {
    if (findings_.errors() > errors_before_ && kept_.size() > kKeptOfRefused) return;
    for (const auto& [tensor, begin, end] : owners_) {
      std::vector<Value::Entry> all;
      all.reserve(end - begin);
      for (std::size_t i = begin; i < end; ++i) {
        wire::JsonReader in(text_.substr(kept_[i].value_at), limits_.depth);
        Value value;
        if (JsonString text; tensor != core::kNone) {
          std::string_view raw;
          in.skip_value(raw);
          const auto bytes = std::as_bytes(std::span(raw));
          value = Value::foreign("json", {bytes.begin(), bytes.end()});
        } else if (in.read_string(text)) {
          value = Value::text(std::string(wire::json_text(text, scratch_)));
        }
        all.emplace_back(key_of(kept_[i]), std::move(value));
      }
      if (tensor == core::kNone)
        draft_.set_attributes(std::move(all));
      else
        draft_.tensor(tensor).extra(std::move(all));
    }
  }

  void fail(const Rule& rule, std::uint64_t at, std::string_view name, const core::Said& expected = {},
            const core::Said& found = {}) {
    entry_.broken = true;
    findings_.report(rule, {.offset = at, .tensor = name}, expected, found);
  }

  // Skips a value of the wrong type, then reports it, unless it is not JSON at all.
  void wrong_type(wire::JsonReader& in, const Rule& rule, std::uint64_t at, std::optional<std::string_view> tensor,
                  const core::Said& expected) {
    std::string_view raw;
    if (!in.ok() || !in.skip_value(raw)) return;
    // Beyond kMaxFindings, errors are only counted: a hostile header can have millions.
    std::string found = findings_.errors() < Report::kMaxFindings ? excerpt(raw) : std::string();
    findings_.report(rule, {.offset = at, .tensor = tensor}, expected, found);
  }

  std::string byte_text(std::size_t at) const {
    const auto byte = static_cast<unsigned char>(text_[at]);
    if (byte > 0x20 && byte < 0x7F) return {text_[at]};
    constexpr char kDigits[] = "0123456789abcdef";
    return std::string("the byte 0x") + kDigits[byte >> 4] + kDigits[byte & 15];
  }

  static std::uint64_t file_offset(std::size_t in_text) { return kLengthSize + in_text; }

  std::string_view text_;  // the header, retained
  std::uint64_t data_start_ = 0, buffer_ = 0;
  std::vector<Place> places_;
  bool ascending_ = true;            // the names of the tensors, without duplicates
  std::string_view last_name_;       // of the draft's last tensor, as the header spells it
  bool usual_ = false;               // Limits::depth allows the usual entry
  bool complete_ = true;             // every range could be read
  bool tiled_ = true;                // each range begins where the one before it in the header ends
  std::uint64_t tiles_end_ = 0;      // the end of the last one
  std::uint64_t seen_ = 0;           // number of tensors, including broken ones
  std::vector<std::uint32_t> drop_;  // tensors of the draft that a rule about several tensors rejects
  Entry entry_;
  std::vector<Kept> kept_;
  std::vector<KeptOf> owners_;
  std::string decoded_;  // keys that the header spells with escapes
  std::string name_scratch_, scratch_;
  core::Budget memory_{limits_.memory};
  const std::uint64_t errors_before_ = findings_.errors();
  bool over_memory_ = false;
};

}  // namespace

void read(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  Walk(source, context, findings, draft).run();
}

}  // namespace weighbridge::safetensors
