// SPDX-License-Identifier: Apache-2.0
// GGUF to Model: the one walker for open and verify. Nothing states where the header ends, so it is read in growing
// pieces, each byte once, and retained. Then it checks the tensor infos, and at the end how their data lies in the
// file. layout.h draws the layout.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/order.h"
#include "base/os.h"
#include "base/utf8.h"
#include "core/model/values.h"
#include "core/model/words.h"
#include "core/reading/budget.h"
#include "core/reading/field_notes.h"
#include "core/reading/walker.h"
#include "formats/gguf/format.h"
#include "formats/gguf/layout.h"
#include "weighbridge/block_type.h"

namespace weighbridge::gguf {
namespace {

using core::bytes_text, core::excerpt;

// Memory that one metadata value takes besides its bytes: entry, value, reference count. Limits::memory applies.
constexpr std::uint64_t kKeptEntryCost = 256;
constexpr std::size_t kShown = 200;  // bytes of a text, for explain(): about two lines

// The beginning of a file in memory, as far as it was needed so far.
class Head {
 public:
  Head(const Source& source, std::uint64_t maximum) : source_(source), end_(std::min(source.size(), maximum)) {
    // Growing would copy what was read; reserved memory costs nothing until it is used.
    text_.reserve(base::to_size(std::min<std::uint64_t>(end_, kReserved)));
    base::use_large_pages(std::as_writable_bytes(std::span(text_.data(), text_.capacity())));
  }

  // Whether the file has the bytes [at, at + length); reads them unless they are in memory.
  bool has(std::uint64_t at, std::uint64_t length) {
    if (!base::fits(at, length, end_)) return false;
    if (at + length <= text_.size()) return true;
    // Grow by a quarter, so that few calls are made and few bytes after the header are read.
    const std::uint64_t more =
        std::max(at + length - text_.size(), std::clamp<std::uint64_t>(text_.size() / 4, kPiece, kMaxPiece));
    const std::size_t before = text_.size();
    text_.resize(base::to_size(std::min(before + more, end_)));
    source_.read_at(before, std::as_writable_bytes(std::span(text_).subspan(before)));
    return true;
  }
  const char* at(std::uint64_t offset) const { return text_.data() + offset; }
  std::string take(std::uint64_t length) {
    text_.resize(base::to_size(length));
    if (text_.capacity() <= kSmall || sizeof(void*) < 8) text_.shrink_to_fit();
    return std::move(text_);
  }

 private:
  // The first read has most headers without a vocabulary. Reserved is what a large vocabulary takes; pages that are not
  // used cost nothing.
  static constexpr std::uint64_t kPiece = std::uint64_t{1} << 16, kMaxPiece = std::uint64_t{1} << 19,
                                 kReserved = std::uint64_t{32} << 20;
  static constexpr std::size_t kSmall = std::size_t{1} << 20;
  const Source& source_;
  const std::uint64_t end_;  // of the file, or the limit
  std::string text_;
};

// A tensor info, as offsets in the header. Infos of broken tensors are kept for their ranges.
struct Info {
  std::uint64_t name_at = 0, name_length = 0, type_at = 0, offset_at = 0;
  std::uint64_t shape[kMaxRank] = {};  // slowest first
  std::uint32_t rank = 0, type = 0;
  std::uint64_t offset = 0;             // in the data
  std::optional<std::uint64_t> size{};  // nullopt: this build does not know the type, or the info is broken
  bool broken = false;
};

class Walk : core::Walker {
 public:
  using Walker::Walker;

  void run() {
    draft_.set_format("gguf");
    if (!read_start() || !read_values() || !read_infos()) {
      draft_.clear();
      return;
    }
    data_start_ = base::align_up(at_, alignment_).value_or(size_);
    text_ = draft_.retain_header(head_.take(at_));
    findings_.span(Span::Kind::structure, data_start_, size_, "tensor data");
    if (!infos_.empty()) check_places();
    add_tensors();
  }

 private:
  template <std::unsigned_integral T> T load(const char* from) const {
    return big_ ? base::load_be<T>(from) : base::load_le<T>(from);
  }
  // The next number, which is the field `what` if it has a name. Only after need().
  template <std::unsigned_integral T> T take(std::string_view what = {}) {
    const T out = load<T>(head_.at(at_));
    at_ += sizeof(T);
    if (!what.empty()) notes_.add(what, at_ - sizeof(T), at_, out);
    return out;
  }
  // Whether the header has `length` more bytes; reports it if not.
  bool need(std::uint64_t length) {
    if (head_.has(at_, length)) return true;
    if (base::fits(at_, length, size_))
      return findings_.fail(core::rules::kLimitHeader, {.offset = 0}, core::at_most(core::in_bytes(limits_.header)),
                            {"more than ", core::in_bytes(at_)});
    return findings_.fail(rules::kTruncatedHeader, {.offset = size_},
                          {"at least ", core::in_bytes(length), " more at ", at_}, core::in_bytes(size_ - at_));
  }
  // Finds a text, whose length is next. False, and reported, if it is truncated.
  bool take_text(std::uint64_t& begin, std::uint64_t& length, std::string_view what = {}) {
    if (!need(8)) return false;
    const std::uint64_t stated_at = at_;
    length = take<std::uint64_t>();
    if (length > kMaxLength)
      return findings_.fail(rules::kLength, {.offset = stated_at}, core::at_most(kMaxLength), length);
    if (!need(length)) return false;
    begin = at_;
    at_ += length;
    if (!what.empty() && findings_.wanted(stated_at, at_)) {
      notes_.add("length of the " + std::string(what), stated_at, begin, length);
      notes_.add(what, begin, at_, text_at(begin, length));
    }
    return true;
  }
  std::string_view text_at(std::uint64_t begin, std::uint64_t length) const {
    return {text_.empty() ? head_.at(begin) : text_.data() + begin, base::to_size(length)};
  }

  bool read_start() {
    if (size_ >= kMagic.size() && (!head_.has(0, kMagic.size()) || text_at(0, 4) != kMagic))
      return findings_.fail(rules::kMagicRule, {.offset = 0}, kMagic, core::excerpted(text_at(0, 4)));
    if (!has_bytes(rules::kTooShort, kHeaderSize)) return false;
    at_ = kMagic.size();
    if (!need(kHeaderSize - at_)) return false;
    // Nothing else marks the byte order (U1).
    const auto little = base::load_le<std::uint32_t>(head_.at(at_));
    big_ = (little & 0xFFFF) == 0;
    notes_.add("magic", 0, at_, kMagic);
    version_ = take<std::uint32_t>("version");
    if (version_ < kOldestVersion || version_ > kVersion)
      return findings_.fail(rules::kVersionRule, {.offset = kMagic.size()}, "2 or 3", version_);
    draft_.set_version(std::to_string(version_) + (big_ ? ", big-endian" : ""));
    const std::uint64_t tensors_at = at_;
    tensors_ = take<std::uint64_t>("number of tensors");
    values_ = take<std::uint64_t>("number of metadata values");
    notes_.report(Span::Kind::structure, "header", 0, at_);
    const std::uint64_t rest = size_ - kHeaderSize;
    if (tensors_ > rest / kShortestInfo)
      return findings_.fail(rules::kTensorCount, {.offset = tensors_at}, core::at_most(rest / kShortestInfo), tensors_);
    if (values_ > rest / kShortestValue)
      return findings_.fail(rules::kValueCount, {.offset = tensors_at + 8}, core::at_most(rest / kShortestValue),
                            values_);
    return few_enough({.offset = tensors_at}, tensors_);
  }

  bool read_values() {
    if (!core::Budget(limits_.memory)
             .keep(findings_, {.offset = kHeaderSize - 8}, values_, kKeptEntryCost,
                   "there are too many metadata values to keep"))
      return false;
    const std::uint64_t all_at = at_;
    for (std::uint64_t i = 0; i < values_; ++i) {
      std::uint64_t begin = 0, length = 0;
      const std::uint64_t entry_at = at_;
      if (!take_text(begin, length, "key") || !need(4)) return false;
      std::string key(text_at(begin, length));
      const std::uint64_t type_at = at_;
      const auto type = take<std::uint32_t>("type");
      if (type >= kValueTypes)
        return findings_.fail(rules::kValueTypeRule, {.offset = type_at}, "at most 12", type, core::excerpted(key));
      Value value;
      if (!read_value(static_cast<ValueType>(type), value)) return false;
      notes_.add("value", type_at + 4, at_, [&] { return excerpt(value.to_text(), kShown); });
      notes_.report(Span::Kind::entry, key, entry_at, at_);
      if (!base::is_utf8(key)) {
        findings_.report(rules::kKeyUtf8, {.offset = entry_at}, {}, core::excerpted(key));
        continue;
      }
      if (key.empty()) findings_.report(rules::kEmptyKey, {.offset = entry_at});
      if (draft_.attribute(key)) {
        findings_.report(rules::kDuplicateKey, {.offset = entry_at}, {}, core::excerpted(key));
        continue;
      }
      if (key == kPadding && value.as_text() && value.as_text()->find_first_not_of(' ') == std::string_view::npos)
        continue;
      if (key == kAlignment) read_alignment(static_cast<ValueType>(type), value, type_at);
      draft_.set_attribute(std::move(key), std::move(value));
    }
    findings_.span(Span::Kind::structure, all_at, at_, "metadata");
    return true;
  }

  void read_alignment(ValueType type, const Value& value, std::uint64_t type_at) {
    if (type != ValueType::u32)
      return findings_.report(rules::kAlignmentType, {.offset = type_at}, "4 (u32)", static_cast<std::uint32_t>(type));
    const std::uint64_t stated = value.as_u64().value_or(0);
    if (std::has_single_bit(stated))
      alignment_ = stated;
    else
      findings_.report(rules::kAlignmentValue, {.offset = type_at + 4}, "a power of two", stated);
  }

  // False, and reported, if the rest of the header cannot be found.
  bool read_value(ValueType type, Value& out) {
    if (type == ValueType::text) {
      std::uint64_t begin = 0, length = 0;
      if (!take_text(begin, length)) return false;
      const std::string_view text = text_at(begin, length);
      if (base::is_utf8(text)) {
        out = Value::text(std::string(text));
      } else {
        findings_.report(rules::kTextUtf8, {.offset = begin});
        const auto bytes = std::as_bytes(std::span(text));
        out = Value::bytes({bytes.begin(), bytes.end()});
      }
      return true;
    }
    if (type == ValueType::array) return read_array(out);
    const DType dtype = kValueDTypes[static_cast<std::size_t>(type)];
    const std::uint32_t width = info(dtype).bits / 8;
    if (!need(width)) return false;
    std::array<std::byte, 8> bytes{};
    std::memcpy(bytes.data(), head_.at(at_), width);
    if (big_) base::swap_units(std::span(bytes).first(width), width);
    if (type == ValueType::boolean && bytes[0] > std::byte{1})
      findings_.report(rules::kBooleanByte, {.offset = at_}, "0 or 1", std::to_integer<unsigned>(bytes[0]));
    at_ += width;
    out = *core::number_at(dtype, bytes.data());
    return true;
  }

  bool read_array(Value& out) {
    if (!need(12)) return false;
    const std::uint64_t type_at = at_;
    const auto type = take<std::uint32_t>();
    const auto count = take<std::uint64_t>();
    if (type >= kValueTypes) return findings_.fail(rules::kValueTypeRule, {.offset = type_at}, "at most 12", type);
    if (static_cast<ValueType>(type) == ValueType::array)
      return findings_.fail(rules::kNestedArray, {.offset = type_at});
    if (count > kMaxLength)
      return findings_.fail(rules::kLength, {.offset = type_at + 4}, core::at_most(kMaxLength), count);
    if (static_cast<ValueType>(type) == ValueType::text) return read_texts(count, out);
    const DType dtype = kValueDTypes[type];
    const std::uint32_t width = info(dtype).bits / 8;
    if (!need(count * width)) return false;  // no overflow: at most 2^30 elements of 8 bytes
    const auto* const from = reinterpret_cast<const std::byte*>(head_.at(at_));
    std::vector<std::byte> bytes(from, from + base::to_size(count * width));
    if (big_) base::swap_units(bytes, width);
    if (dtype == DType::boolean) {
      const auto odd = std::ranges::find_if(bytes, [](std::byte byte) { return byte > std::byte{1}; });
      if (odd != bytes.end()) {
        findings_.report(rules::kBooleanByte, {.offset = at_ + static_cast<std::uint64_t>(odd - bytes.begin())},
                         "0 or 1", std::to_integer<unsigned>(*odd));
        for (std::byte& byte : bytes) byte = byte != std::byte{0} ? std::byte{1} : std::byte{0};
      }
    }
    at_ += count * width;
    out = Value::numbers(dtype, std::move(bytes));
    return true;
  }

  bool read_texts(std::uint64_t count, Value& out) {
    if (count > (size_ - at_) / 8)
      return findings_.fail(rules::kTruncatedHeader, {.offset = size_},
                            {"at least ", core::in_bytes(count * 8), " more at ", at_}, core::in_bytes(size_ - at_));
    Texts texts;
    texts.ends.reserve(base::to_size(std::min(count, limits_.header / 8)));
    base::use_large_pages(std::as_writable_bytes(std::span(texts.ends.data(), texts.ends.capacity())));
    const std::uint64_t start = at_;
    for (std::uint64_t i = 0, total = 0; i < count; ++i) {
      std::uint64_t begin = 0, length = 0;
      if (!take_text(begin, length)) return false;
      findings_.span(Span::Kind::field, begin - 8, at_, "text",
                     [&] { return std::to_string(i) + ": " + excerpt(text_at(begin, length), kShown); });
      texts.ends.push_back(total += length);
    }
    texts.blob.reserve(base::to_size(count == 0 ? 0 : texts.ends.back()));
    base::use_large_pages(std::as_writable_bytes(std::span(texts.blob.data(), texts.blob.capacity())));
    std::uint64_t from = start;
    std::uint64_t before = 0;
    for (const std::uint64_t end : texts.ends) {
      const std::uint64_t length = end - std::exchange(before, end);
      texts.blob.append(head_.at(from + 8), base::to_size(length));
      from += 8 + length;
    }
    out = Value::texts(std::move(texts));
    return true;
  }

  bool read_infos() {
    const std::uint64_t all_at = at_;
    infos_.reserve(base::to_size(tensors_));
    for (std::uint64_t i = 0; i < tensors_; ++i) {
      Info info;
      if (!take_text(info.name_at, info.name_length, "name") || !need(4)) return false;
      const std::uint64_t rank_at = at_;
      info.rank = take<std::uint32_t>("rank");
      if (info.rank > kMaxRank)
        return findings_.fail(rules::kRank, {.offset = rank_at, .tensor = name_of(info)}, "at most 4", info.rank);
      if (!need(info.rank * 8 + 12)) return false;
      const std::uint64_t shape_at = at_;
      for (std::uint32_t d = info.rank; d > 0; --d) info.shape[d - 1] = take<std::uint64_t>();
      info.type_at = at_;
      notes_.add("dimensions", shape_at, at_,
                 [&] { return "fastest first; slowest first: " + core::shape_text(shape_of(info)); });
      info.type = take<std::uint32_t>();
      info.offset_at = at_;
      notes_.add("type", info.type_at, at_, [&] {
        const ElementType* const type = find_element_type(info.type);
        return std::to_string(info.type) + (type ? " (" + std::string(type->name) + ")" : "");
      });
      info.offset = take<std::uint64_t>("offset in the data");
      notes_.report(Span::Kind::entry, name_of(info), info.name_at - 8, at_);
      check_info(info, shape_at);
      infos_.push_back(info);
    }
    findings_.span(Span::Kind::structure, all_at, at_, "tensor infos");
    return true;
  }

  void check_info(Info& info, std::uint64_t shape_at) {
    const std::string_view name = name_of(info);
    if (!base::is_utf8(name)) fail(info, rules::kNameUtf8, info.name_at);
    if (info.name_length > kMaxName)
      findings_.report(rules::kNameLength, {.offset = info.name_at - 8, .tensor = name}, "at most 63",
                       info.name_length);
    for (std::uint32_t d = 0; d < info.rank; ++d)
      if (info.shape[d] >> 63 != 0)
        return fail(info, rules::kDimension, shape_at + (info.rank - 1 - d) * 8, "less than 2^63", info.shape[d]);
    if (info.offset % alignment_ != 0)
      fail(info, rules::kOffsetAlignment, info.offset_at, core::multiple_of(alignment_), info.offset);
    const ElementType* const type = find_element_type(info.type);
    if (type == nullptr) return;
    const auto elements = base::element_count(shape_of(info));
    std::optional<std::uint64_t> bytes;
    if (type->dtype != DType::unknown) {
      bytes = elements ? base::checked_mul(*elements, weighbridge::info(type->dtype).bits / 8) : std::nullopt;
    } else if (const BlockTypeInfo* const block = find_block_type(type->block)) {
      const std::uint64_t row = info.rank == 0 ? 1 : info.shape[info.rank - 1];
      if (row % block->block_elements != 0)
        return fail(info, rules::kBlockRow, shape_at, core::multiple_of(block->block_elements), row);
      bytes = elements ? base::checked_mul(*elements / block->block_elements, block->block_bytes) : std::nullopt;
    } else {
      return;
    }
    if (!bytes || *bytes >> 63 != 0) return fail(info, rules::kSizeOverflow, shape_at);
    info.size = bytes;
  }

  // Checks how the ranges lie: within the file, without overlap, one after the other.
  void check_places() {
    const std::uint64_t data = size_ - std::min(size_, data_start_);
    const auto order = base::order_by(infos_.size(), [&](std::uint32_t i) { return infos_[i].offset; });
    // A tensor of unknown type is taken to extend to the next one.
    for (std::size_t i = 0; i < order.size(); ++i) {
      Info& info = infos_[order[i]];
      if (info.size || info.broken) continue;
      const std::uint64_t end = i + 1 < order.size() ? infos_[order[i + 1]].offset : std::max(data, info.offset);
      info.size = end - info.offset;
    }
    if (truncated(order, data)) return;
    const Info* last = nullptr;  // the info whose range ends last so far
    for (const std::uint32_t i : order) {
      Info& info = infos_[i];
      if (!info.size) continue;
      if (!base::fits(info.offset, *info.size, data)) {
        const auto end = base::checked_add(info.offset, *info.size);
        fail(info, rules::kDataPastEnd, info.offset_at, core::at_most(data),
             end ? std::to_string(*end) : "more than 2^64");
        continue;
      }
      if (*info.size == 0) continue;
      const bool same = last != nullptr && info.offset == last->offset && info.size == last->size;
      if (last != nullptr && !same && info.offset < last->offset + *last->size)
        fail(info, rules::kOverlap, info.offset_at, {}, {}, *last);
      if (last == nullptr || info.offset + *info.size > last->offset + *last->size) last = &info;
    }
    check_contiguous(data, last);
  }

  // If consecutive ranges continue past the end of the file, it was truncated: one finding, not one per tensor.
  bool truncated(const std::vector<std::uint32_t>& order, std::uint64_t data) {
    std::uint64_t end = 0;
    for (const std::uint32_t i : order) {
      const Info& info = infos_[i];
      if (!info.size || info.offset != base::align_up(end, alignment_)) return false;
      const auto next = base::checked_add(info.offset, *info.size);
      if (!next) return false;
      end = *next;
    }
    if (end <= data) return false;
    findings_.report(rules::kTruncated, {.offset = size_, .hint = base::size_hint(data_start_ + end)},
                     core::in_bytes(data_start_ + end), core::in_bytes(size_),
                     core::missing_text(data_start_ + end - size_));
    for (Info& info : infos_) info.broken |= !base::fits(info.offset, *info.size, data);
    return true;
  }

  void check_contiguous(std::uint64_t data, const Info* last) {
    std::uint64_t expected = 0;
    for (const Info& info : infos_) {
      if (!info.size || info.broken) return;
      if (info.offset != expected)
        return findings_.report(rules::kNotContiguous, {.offset = info.offset_at, .tensor = name_of(info)}, expected,
                                info.offset);
      expected = base::align_up(info.offset + *info.size, alignment_).value_or(0);
    }
    const std::uint64_t end = last ? last->offset + *last->size : 0;
    if (const auto padded = base::align_up(end, alignment_); padded && data > *padded)
      findings_.report(rules::kTrailing,
                       {.offset = data_start_ + *padded, .hint = base::size_hint(data_start_ + *padded)}, {},
                       core::in_bytes(data - *padded));
    if (end < data) core::report_second_beginning(findings_, source_, data - end);
  }

  void add_tensors() {
    draft_.reserve(infos_.size(), infos_.size(), kMaxRank * infos_.size());
    for (std::uint32_t i = 0; i < infos_.size(); ++i) {
      if (infos_[i].broken || !infos_[i].size) continue;
      add(infos_[i]);
      added_.push_back(i);
    }
    draft_.drop_same_names([&](std::uint32_t, std::uint32_t later) {
      const Info& info = infos_[added_[later]];
      findings_.report(rules::kDuplicateName, {.offset = info.name_at, .tensor = name_of(info)});
    });
  }

  void add(const Info& info) {
    const std::string_view name = name_of(info);
    const ElementType* const type = find_element_type(info.type);
    const BlockTypeInfo* const block = type && !type->block.empty() ? find_block_type(type->block) : nullptr;
    // If there are no bytes of data, the file may end before the data would begin; then every range counts as inside
    // the file.
    const Extent extent{.source = 0, .offset = std::min(data_start_ + info.offset, size_), .length = *info.size};
    const Shape shape = shape_of(info);
    if (type && type->dtype != DType::unknown) {
      draft_.add_tensor(name, Layout::dense, type->dtype, shape);
      const std::uint32_t part = draft_.add_part("data", type->dtype, shape, Encoding::raw, extent, *info.size);
      if (big_ && weighbridge::info(type->dtype).swap_bytes > 1) draft_.part(part).order(Order::big);
      return;
    }
    const std::uint64_t count[] = {*info.size};
    const std::uint32_t at =
        draft_.add_tensor(name, block ? block->layout : Layout::structural, block ? DType::f32 : DType::unknown, shape);
    draft_.add_part("data", DType::u8, count, Encoding::raw, extent, *info.size);
    auto tensor = draft_.tensor(at);
    if (block) tensor.block_type(block).attribute("type", Value::text(std::string(block->type_attribute)));
    tensor.type_name(type ? std::string(type->name) : "ggml type " + std::to_string(info.type));
    if (block && !big_) return;
    Finding why = core::Findings::make(block ? rules::kBigEndianBlocks : rules::kUnknownType,
                                       {.offset = info.type_at, .tensor = name}, {},
                                       type ? std::string(type->name) : std::to_string(info.type));
    findings_.report(why);
    tensor.unsupported(std::move(why));
  }

  std::string_view name_of(const Info& info) const { return text_at(info.name_at, info.name_length); }
  static Shape shape_of(const Info& info) { return {info.shape, info.rank}; }

  void fail(Info& info, const Rule& rule, std::uint64_t at, const core::Said& expected = {},
            const core::Said& found = {}) {
    info.broken = true;
    findings_.report(rule, {.offset = at, .tensor = name_of(info)}, expected, found);
  }
  void fail(Info& info, const Rule& rule, std::uint64_t at, const core::Said& expected, const core::Said& found,
            const Info& other) {
    info.broken = true;
    findings_.report(rule, {.offset = at, .tensor = name_of(info)}, expected, found,
                     {"the other is ", core::in_quotes(name_of(other))});
  }

  core::FieldNotes notes_{findings_};
  Head head_{source_, limits_.header};
  std::string_view text_;  // the header, once it is retained
  std::uint64_t at_ = 0, tensors_ = 0, values_ = 0, data_start_ = 0, alignment_ = kDefaultAlignment;
  std::uint32_t version_ = 0;
  bool big_ = false;
  std::vector<Info> infos_;
  std::vector<std::uint32_t> added_;  // by tensor of the draft: its info
};

}  // namespace

void read(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  Walk(source, context, findings, draft).run();
}

}  // namespace weighbridge::gguf
