// SPDX-License-Identifier: Apache-2.0
// Protocol Buffers: a sequence of fields, each a varint (number << 3 | wire type) and a varint, 4 or 8 bytes, or a
// varint length and that many bytes (wire/protobuf_reader.h).
#include "formats/onnx/message.h"

#include <algorithm>

#include "base/utf8.h"
#include "core/model/words.h"
#include "core/reading/rules.h"
#include "formats/onnx/format.h"
#include "io/read.h"

namespace weighbridge::onnx {
namespace {

using core::bytes_text, wire::ProtobufErrorCode, wire::ProtobufWire;

// Names of nested tensors repeat the names of everything around them. In ordinary files they take a fraction of the
// file; names many times larger than the file are an attack on memory.
constexpr std::uint64_t kTimes = 16, kAtLeast = std::uint64_t{1} << 20;

bool is_wire_of(Kind kind, ProtobufWire wire) noexcept {
  switch (kind) {
    case Kind::varint: return wire == ProtobufWire::varint;
    case Kind::fixed32: return wire == ProtobufWire::fixed32;
    case Kind::fixed64: return wire == ProtobufWire::fixed64;
    case Kind::bytes: return wire == ProtobufWire::bytes;
    case Kind::varints: return wire == ProtobufWire::varint || wire == ProtobufWire::bytes;
    case Kind::fixed32s: return wire == ProtobufWire::fixed32 || wire == ProtobufWire::bytes;
    case Kind::fixed64s: return wire == ProtobufWire::fixed64 || wire == ProtobufWire::bytes;
  }
  return false;
}

std::string_view name_of(ProtobufWire wire) noexcept {
  switch (wire) {
    case ProtobufWire::varint: return "a varint";
    case ProtobufWire::fixed64: return "8 bytes";
    case ProtobufWire::bytes: return "bytes with a length";
    case ProtobufWire::fixed32: return "4 bytes";
  }
  return {};
}
std::string_view name_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::varint:
    case Kind::varints: return name_of(ProtobufWire::varint);
    case Kind::fixed32:
    case Kind::fixed32s: return name_of(ProtobufWire::fixed32);
    case Kind::fixed64:
    case Kind::fixed64s: return name_of(ProtobufWire::fixed64);
    case Kind::bytes: return name_of(ProtobufWire::bytes);
  }
  return {};
}

}  // namespace

unsigned width_of(Kind kind) noexcept { return kind == Kind::fixed32s ? 4 : kind == Kind::fixed64s ? 8 : 0; }

Reading::Reading(const Source& file, const Limits& bounds, core::Findings& sink)
    : source(file),
      limits(bounds),
      findings(sink),
      window(file),
      proto(window, bounds.depth),
      maximum_(std::min(bounds.header, std::max(kAtLeast, kTimes * file.size()))) {}

std::string Reading::text(Range range) {
  keep(range.size());
  std::string out;
  if (over_ || range.size() == 0) return out;
  out.resize(base::to_size(range.size()));
  constexpr std::size_t kShort = 1024;
  if (out.size() <= kShort) {
    const auto bytes = window.from(range.begin, out.size());
    std::copy_n(reinterpret_cast<const char*>(bytes.data()), out.size(), out.data());
  } else {
    source.read_at(range.begin, std::as_writable_bytes(std::span(out)));
  }
  return out;
}

void Reading::keep(std::uint64_t bytes) {
  kept_ += bytes;  // no overflow: each is at most a text's length, and the walk ends once they exceed the limit
  if (kept_ > maximum_ && !over_) {
    over_ = true;
    findings.report(core::rules::kLimitHeader, {.offset = 0}, core::at_most(core::in_bytes(maximum_)),
                    {"more than ", core::in_bytes(maximum_)}, "names and metadata");
  }
}

void Reading::report_fault() {
  const wire::ProtobufError& error = proto.error();
  const core::At at{.offset = error.offset};
  std::string expected = error.needed > 0 ? bytes_text(error.needed) : std::string();
  switch (error.code) {
    case ProtobufErrorCode::none: return;
    case ProtobufErrorCode::unexpected_end: return findings.report(rules::kTruncated, at, std::move(expected));
    case ProtobufErrorCode::past_message: return findings.report(rules::kPastMessage, at, std::move(expected));
    case ProtobufErrorCode::bad_varint: return findings.report(rules::kVarint, at);
    case ProtobufErrorCode::bad_tag: return findings.report(rules::kTag, at);
    case ProtobufErrorCode::group: return findings.report(rules::kGroup, at);
    case ProtobufErrorCode::too_deep: return findings.report(core::rules::kLimitDepth, at, core::at_most(limits.depth));
  }
}

bool Fields::next(ProtobufField& field) {
  while (reading_.good() && message_.next(field))
    if (sound(field)) return true;
  return false;
}

void Fields::report_span(const ProtobufField& field) const {
  reading_.findings.span(Span::Kind::field, field.at, field.end,
                         std::string(fact_.name) + ", field " + std::to_string(field.number), [&]() -> std::string {
                           constexpr std::size_t kShown = 60;
                           if (field.wire == ProtobufWire::varint) return std::to_string(field.value);
                           if (field.wire != ProtobufWire::bytes || field.size() > kShown) return {};
                           std::string text = io::text_of(reading_.source, field.begin, field.size());
                           const bool printable = base::is_utf8(text) && std::ranges::all_of(text, [](char c) {
                                                    return static_cast<unsigned char>(c) >= ' ';
                                                  });
                           return printable ? text : std::string();
                         });
}

bool Fields::sound(const ProtobufField& field) {
  const FieldFact* const fact = fact_.find(field.number);
  const auto what = [&] { return std::string(fact_.name) + ", field " + std::to_string(field.number); };
  if (fact == nullptr) {
    if (!again_ && !reading_.unknown_) {
      reading_.unknown_ = true;
      reading_.findings.report(rules::kUnknownField, {.offset = field.at}, {}, {}, what());
    }
    return false;
  }
  report_span(field);
  if (!is_wire_of(fact->kind, field.wire)) {
    if (!again_)
      reading_.findings.report(rules::kWireType, {.offset = field.at}, name_of(fact->kind), name_of(field.wire),
                               what());
    return false;
  }
  if (fact->inner != nullptr && !again_) {
    Fields inside(reading_, message_.inside(field), *fact->inner);
    for (ProtobufField each; inside.next(each);) {}
  }
  if (fact->repeated) return true;
  const std::uint32_t bit = std::uint32_t{1} << field.number;
  if ((seen_ & bit) != 0 && !again_)
    reading_.findings.report(rules::kRepeatedField, {.offset = field.at}, {}, {}, what());
  const bool first = (seen_ & bit) == 0;
  seen_ |= bit;
  return first;
}

void read_dims(Reading& reading, const ProtobufField& field, std::vector<std::uint64_t>& dims, std::uint64_t& rank) {
  const auto add = [&](std::uint64_t dim) {
    if (rank++ < kMaxRank) dims.push_back(dim);
    return true;
  };
  if (field.wire == ProtobufWire::varint)
    add(field.value);
  else if (const auto bad = each_varint(reading.window, range_of(field), add))
    reading.findings.report(rules::kVarint, {.offset = *bad});
}

EntryMessage read_entry(Reading& reading, const ProtobufMessage& message, std::uint64_t at) {
  EntryMessage out{.at = at};
  Fields fields(reading, message, entry::kMessage);
  for (ProtobufField field; fields.next(field);) (field.number == entry::kKey ? out.key : out.value) = range_of(field);
  return out;
}

Value text_value(Reading& reading, Range range) {
  std::string text = reading.text(range);
  if (base::is_utf8(text)) return Value::text(std::move(text));
  reading.findings.report(rules::kTextUtf8, {.offset = range.begin});
  const auto bytes = std::as_bytes(std::span(text));
  return Value::bytes({bytes.begin(), bytes.end()});
}

TensorMessage read_tensor(Reading& reading, const ProtobufMessage& message, std::uint64_t at) {
  TensorMessage out{.at = at};
  Fields fields(reading, message, tensor::kMessage);
  out.message = fields.range();
  for (ProtobufField field; fields.next(field);) {
    switch (field.number) {
      case tensor::kDims:
        if (out.rank == 0) out.dims_at = field.at;
        read_dims(reading, field, out.dims, out.rank);
        break;
      case tensor::kDataType:
        out.type = static_cast<std::int32_t>(static_cast<std::uint32_t>(field.value));
        out.type_at = field.at;
        break;
      case tensor::kSegment: out.segment = true; break;
      case tensor::kName: out.name = range_of(field); break;
      case tensor::kRawData:
        out.raw = range_of(field);
        out.raw_at = field.at;
        break;
      case tensor::kDocString: out.doc = range_of(field); break;
      case tensor::kDataLocation: out.external = field.value == tensor::kExternal; break;
      case tensor::kExternalData: {
        const EntryMessage one = read_entry(reading, fields.inside(field), field.at);
        if (out.where.at == 0) out.where.at = field.at;
        const std::string key = reading.text(one.key);
        std::optional<std::string>* const to = key == "location"   ? &out.where.location
                                               : key == "offset"   ? &out.where.offset
                                               : key == "length"   ? &out.where.length
                                               : key == "checksum" ? &out.where.checksum
                                                                   : nullptr;
        if (to != nullptr) *to = reading.text(one.value);
        break;
      }
      case tensor::kMetadataProps: {
        const EntryMessage one = read_entry(reading, fields.inside(field), field.at);
        std::string key = reading.text(one.key);
        if (!base::is_utf8(key))
          reading.findings.report(rules::kKeyUtf8, {.offset = field.at});
        else
          out.metadata.emplace_back(std::move(key), text_value(reading, one.value));
        break;
      }
      default: {
        const auto which = std::ranges::find(TensorMessage::kTyped, field.number);
        if (which == TensorMessage::kTyped.end()) break;
        Numbers& numbers = out.typed[static_cast<std::size_t>(which - TensorMessage::kTyped.begin())];
        if (field.number == tensor::kStringData) {
          if (numbers.records++ == 0) numbers.at = numbers.all.begin = field.at;
          numbers.all.end = field.end;
          ++numbers.count;
          break;
        }
        const unsigned width = width_of(tensor::kMessage.find(field.number)->kind);
        if (const auto bad = numbers.add(field, width, reading.window))
          reading.findings.report(width == 0 ? rules::kVarint : rules::kPackedSize, {.offset = *bad});
      }
    }
  }
  return out;
}

}  // namespace weighbridge::onnx
