// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/elements.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/checked.h"
#include "core/model/words.h"
#include "formats/onnx/format.h"
#include "io/file_source.h"

namespace weighbridge::onnx {
namespace {

using core::bytes_text, core::excerpt;

// Whether it is a relative path with / between names, none of them "..". Refuses backslashes and drive letters, which
// would be other paths if the file is later used on Windows.
bool is_beneath(std::string_view path) noexcept {
  if (path.empty() || path.front() == '/' || path.back() == '/') return false;
  if (path.find_first_of(std::string_view("\\\0:", 3)) != path.npos) return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (path.substr(begin, end - begin) == "..") return false;
    begin = end + 1;
  }
  return true;
}

std::optional<std::uint64_t> number_of(std::string_view text) noexcept {
  std::uint64_t out = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out);
  if (text.empty() || at != end || error != std::errc()) return std::nullopt;
  return out;
}

class Finder {
 public:
  Finder(Reading& reading, ExternalFiles& files, const TensorMessage& tensor, std::string_view name)
      : reading_(reading), files_(files), tensor_(tensor), name_(name) {}

  std::optional<Elements> run() {
    if (!read_shape()) return std::nullopt;
    if (!tensor_.type || *tensor_.type == 0) return fail(rules::kNoType, tensor_.type ? tensor_.type_at : tensor_.at);
    const auto number = static_cast<std::uint32_t>(*tensor_.type);
    const bool known = number < kElementTypeCount;
    if (!known) return unsupported(rules::kUnknownType, "data type " + std::to_string(*tensor_.type));
    type_ = &kElementTypes[number];
    if (number == kString) return strings();
    if (tensor_.segment) return unsupported(rules::kSegment, std::string(type_->name));
    out_.dtype = type_->dtype;
    const auto count = base::element_count(out_.shape);
    const auto size = count ? packed_size(out_.dtype, *count) : std::nullopt;
    if (!size || *size >> 63 != 0) return fail(rules::kSizeOverflow, tensor_.dims_at);
    out_.count = *count;
    out_.size = *size;
    if (!find()) return std::nullopt;
    return std::move(out_);
  }

 private:
  std::nullopt_t fail(const Rule& rule, std::uint64_t at, const core::Said& expected = {}, const core::Said& found = {},
                      const core::Said& detail = {}) {
    reading_.findings.report(rule, {.offset = at, .tensor = name_}, expected, found, detail);
    return std::nullopt;
  }

  bool read_shape() {
    if (tensor_.rank > kMaxRank) {
      fail(rules::kRank, tensor_.dims_at, core::at_most(kMaxRank), tensor_.rank);
      return false;
    }
    for (const std::uint64_t dim : tensor_.dims)
      if (dim >> 63 != 0) {
        fail(rules::kDimension, tensor_.dims_at, {}, static_cast<std::int64_t>(dim));
        return false;
      }
    out_.shape = tensor_.dims;
    return true;
  }

  // Texts must be in the field for texts, as many as the shape needs. Otherwise a ModelProto whose name has the wire
  // type of dimensions could pass for a TensorProto of texts.
  std::optional<Elements> strings() {
    const auto count = base::element_count(out_.shape);
    if (!count || *count >> 63 != 0) return fail(rules::kSizeOverflow, tensor_.dims_at);
    if (tensor_.external) return unsupported(rules::kStrings, "STRING");
    const auto elsewhere = [&](std::uint32_t field, std::uint64_t at) {
      return fail(rules::kDataField, at, {"field ", tensor::kStringData}, {"field ", field}, "STRING");
    };
    std::uint64_t texts = 0;
    for (std::size_t i = 0; i < tensor_.typed.size(); ++i) {
      if (TensorMessage::kTyped[i] == tensor::kStringData)
        texts = tensor_.typed[i].records;
      else if (tensor_.typed[i].count > 0)
        return elsewhere(TensorMessage::kTyped[i], tensor_.typed[i].at);
    }
    if (tensor_.raw && tensor_.raw->size() > 0) return elsewhere(tensor::kRawData, tensor_.raw_at);
    if (texts != *count) return fail(rules::kDataCount, tensor_.at, *count, texts);
    return unsupported(rules::kStrings, "STRING");
  }

  // Lists its elements as bytes, if they are in one place.
  std::optional<Elements> unsupported(const Rule& rule, std::string type) {
    const auto count = base::element_count(out_.shape);
    if (!count || *count >> 63 != 0) return fail(rules::kSizeOverflow, tensor_.dims_at);
    const Numbers& strings = tensor_.typed[static_cast<std::size_t>(
        std::ranges::find(TensorMessage::kTyped, tensor::kStringData) - TensorMessage::kTyped.begin())];
    const Range bytes = tensor_.raw ? *tensor_.raw : strings.records > 0 ? strings.all : Range{};
    out_.extent = {.source = 0, .offset = bytes.begin, .length = bytes.size()};
    out_.size = bytes.size();
    out_.type_name = std::move(type);
    out_.unsupported = std::make_shared<const Finding>(
        core::Findings::make(rule, {.offset = tensor_.type_at, .tensor = name_}, {}, out_.type_name));
    return std::move(out_);
  }

  // Without a reason, the tensor is broken.
  bool absent(std::shared_ptr<const Finding> why) {
    out_.absent = why != nullptr;
    out_.unsupported = std::move(why);
    return out_.absent;
  }

  bool find() {
    const Numbers* typed = nullptr;
    std::uint32_t field = 0;
    unsigned places = (tensor_.external ? 1U : 0U) + (tensor_.raw ? 1U : 0U);
    std::uint64_t last = tensor_.raw_at;
    for (std::size_t i = 0; i < tensor_.typed.size(); ++i) {
      if (tensor_.typed[i].records == 0) continue;
      // An empty packed field counts as absent.
      if (tensor_.typed[i].count == 0) continue;
      typed = &tensor_.typed[i];
      field = TensorMessage::kTyped[i];
      last = std::max(last, typed->at);
      ++places;
    }
    if (places > 1) return fail(rules::kSeveralData, last), false;
    if (tensor_.external) return find_external();
    if (tensor_.raw && (tensor_.raw->size() > 0 || out_.size == 0)) {
      out_.extent = {.source = 0, .offset = tensor_.raw->begin, .length = tensor_.raw->size()};
      if (tensor_.raw->size() == out_.size) return true;
      return fail(rules::kRawSize, tensor_.raw_at, core::in_bytes(out_.size), core::in_bytes(tensor_.raw->size())),
             false;
    }
    if (typed != nullptr) return find_typed(*typed, field);
    if (out_.count != 0)
      return absent(std::make_shared<const Finding>(
          core::Findings::make(rules::kNoData, {.offset = tensor_.at, .tensor = name_}, core::in_bytes(out_.size))));
    out_.extent = {.source = 0, .offset = tensor_.message.end, .length = 0};
    return true;
  }

  bool find_typed(const Numbers& typed, std::uint32_t field) {
    if (field != type_->typed) {
      return fail(rules::kDataField, typed.at, {"field ", type_->typed}, {"field ", field}, type_->name), false;
    }
    const std::uint32_t bits = info(out_.dtype).bits;
    const bool complex = info(out_.dtype).kind == DTypeKind::complex;
    // 4 or 2 bits: each number holds one byte of elements. Doubling the count cannot wrap, because the bytes are below
    // 2^63.
    const std::uint64_t expected = bits == 4 || bits == 2 ? out_.size : out_.count * (complex ? 2 : 1);
    if (typed.count != expected) return fail(rules::kDataCount, typed.at, expected, typed.count), false;
    const unsigned width = width_of(tensor::kMessage.find(field)->kind);
    if (width != 0 && typed.contiguous()) {
      out_.extent = {.source = 0, .offset = typed.first.begin, .length = typed.first.size()};
    } else {
      out_.numbers = NumberField{tensor_.message, field, width, out_.dtype, typed.count};
    }
    return true;
  }

  bool find_external() {
    const External& where = tensor_.where;
    const std::uint64_t at = where.at != 0 ? where.at : tensor_.at;
    if (!where.location || !is_beneath(*where.location))
      return fail(rules::kExternalPath, at, {}, where.location ? excerpt(*where.location, 200) : "none"), false;
    const auto offset = where.offset ? number_of(*where.offset) : 0;
    const auto length = where.length ? number_of(*where.length) : out_.size;
    if (!offset || !length)
      return fail(rules::kExternalNumber, at, {}, core::excerpted(offset ? *where.length : *where.offset)), false;
    ExternalFiles::File& file = files_.open(*where.location);
    if (!file.source) {
      // Report it once for each file, not for each tensor in it.
      if (const Rule* const fault = std::exchange(file.fault, nullptr); fault == &rules::kExternalMissing)
        file.missing = reading_.findings.report_missing(*fault, {.offset = at, .tensor = name_}, {}, {}, file.why);
      else if (fault != nullptr)
        fail(*fault, at, {}, {}, file.why);
      return absent(file.missing);
    }
    if (!std::exchange(file.remarked_names, true))
      if (const std::uint64_t names = io::names_of(*file.source); names > 1)
        fail(rules::kExternalHardLink, at, 1, {names, " names"}, file.why);
    if (*length != out_.size)
      return fail(rules::kExternalLength, at, core::in_bytes(out_.size), core::in_bytes(*length)), false;
    const std::uint64_t there = file.source->size();
    if (!base::fits(*offset, out_.size, there)) {
      const auto end = base::checked_add(*offset, out_.size);
      return absent(reading_.findings.report_missing(rules::kExternalShort, {.offset = at, .tensor = name_},
                                                     end ? core::bytes_text(*end) : "more than 2^64 bytes",
                                                     core::in_bytes(there), core::excerpted(*where.location, 200)));
    }
    if (!where.length && *offset + out_.size != there)
      fail(rules::kExternalRest, at, {}, core::in_bytes(there - *offset - out_.size));
    if (*offset % kPage != 0 && !std::exchange(file.remarked_alignment, true))
      fail(rules::kExternalAlignment, at, {}, *offset);
    out_.extent = {.source = file.index, .offset = *offset, .length = out_.size};
    if (where.checksum)
      out_.stated = StatedChecksum{file.source, *where.location, *where.checksum, std::string(name_), at};
    return true;
  }

  Reading& reading_;
  ExternalFiles& files_;
  const TensorMessage& tensor_;
  const std::string_view name_;
  const ElementType* type_ = nullptr;
  Elements out_;
};

}  // namespace

ExternalFiles::File& ExternalFiles::open(const std::string& location) {
  const auto known = files_.find(location);
  if (known != files_.end()) return known->second;
  File& file = files_[location];
  file.why = excerpt(location, 200);
  try {
    file.source = place_ ? place_->open(location) : nullptr;
    if (!file.source) file.fault = &rules::kExternalMissing;
  } catch (const Error& error) {
    const bool outside = error.finding().rule == "io/outside";
    if (!outside && error.kind() != weighbridge::Kind::misuse) throw;
    // The path may lead to a directory or a FIFO.
    file.fault = outside ? &rules::kExternalLink : &rules::kExternalMissing;
    if (!outside) file.why += ": " + error.finding().message;
  }
  if (file.source) {
    file.index = draft_.add_source(file.source);
    draft_.set_in_several_files();
  }
  return file;
}

std::optional<Elements> find_elements(Reading& reading, ExternalFiles& files, const TensorMessage& tensor,
                                      std::string_view name) {
  return Finder(reading, files, tensor, name).run();
}

}  // namespace weighbridge::onnx
