// SPDX-License-Identifier: Apache-2.0
// Messages of onnx.proto, with the checks that all of them share: wire types, fields that occur twice, texts.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/draft.h"
#include "core/reading/findings.h"
#include "formats/onnx/layout.h"
#include "formats/onnx/values.h"
#include "formats/onnx/window.h"
#include "wire/protobuf_reader.h"

namespace weighbridge::onnx {

using wire::ProtobufField, wire::ProtobufMessage;

// The state that all parts of a walk over a file share.
class Reading {
 public:
  Reading(const Source& source, const Limits& limits, core::Findings& findings);

  // The text of a field. Counts its bytes: Limits::header and the size of the file bound what is kept.
  std::string text(Range);
  // Counts bytes that the draft keeps.
  void keep(std::uint64_t bytes);
  // Whether the walk can continue. If not, report_fault() reports the reason.
  bool good() const noexcept { return !over_ && proto.ok(); }
  void report_fault();

  const Source& source;
  const Limits& limits;
  core::Findings& findings;
  Window window;
  wire::ProtobufReader proto;

 private:
  friend class Fields;
  std::uint64_t kept_ = 0;
  const std::uint64_t maximum_;
  bool over_ = false;
  bool unknown_ = false;  // an unknown field was reported
};

// A message in a field.
struct Frame {
  std::uint64_t at = 0;  // of the field's tag
  Range body{};
};

// The known fields of a message, in order. Skips others, and reports them in the first pass.
class Fields {
 public:
  Fields(Reading& reading, const ProtobufMessage& message, const MessageFact& fact)
      : reading_(reading), message_(message), fact_(fact) {}

  bool next(ProtobufField&);
  void rewind() noexcept {
    message_.rewind();
    again_ = true;
    seen_ = 0;
  }
  ProtobufMessage inside(const ProtobufField& field) const { return message_.inside(field); }
  Range range() const noexcept { return {message_.begin(), message_.end()}; }
  Frame frame() const noexcept { return {message_.field_at(), range()}; }

 private:
  bool sound(const ProtobufField&);
  void report_span(const ProtobufField&) const;
  Reading& reading_;
  ProtobufMessage message_;
  const MessageFact& fact_;
  std::uint32_t seen_ = 0;  // bits of the fields seen, of those that occur once; their numbers are below 32
  bool again_ = false;
};

inline Range range_of(const ProtobufField& field) noexcept { return {field.begin, field.end}; }

struct External {
  std::uint64_t at = 0;
  std::optional<std::string> location{}, offset{}, length{}, checksum{};
};

// A TensorProto.
struct TensorMessage {
  std::uint64_t at = 0;  // of the field that contains the tensor
  Range message{};
  std::optional<Range> name{}, doc{}, raw{};
  std::vector<std::uint64_t> dims{};  // at most kMaxRank of them
  std::uint64_t rank = 0, dims_at = 0, raw_at = 0;
  std::optional<std::int32_t> type{};
  std::uint64_t type_at = 0;
  static constexpr std::array kTyped{tensor::kFloatData, tensor::kInt32Data,  tensor::kStringData,
                                     tensor::kInt64Data, tensor::kDoubleData, tensor::kUint64Data};
  std::array<Numbers, kTyped.size()> typed{};  // of the fields above
  bool segment = false, external = false;
  External where{};
  std::vector<Value::Entry> metadata{};
};
TensorMessage read_tensor(Reading&, const ProtobufMessage&, std::uint64_t at);
// Adds the dimensions in a field.
void read_dims(Reading&, const ProtobufField&, std::vector<std::uint64_t>& dims, std::uint64_t& rank);
// A StringStringEntryProto as ranges.
struct EntryMessage {
  std::uint64_t at = 0;
  Range key{}, value{};
};
EntryMessage read_entry(Reading&, const ProtobufMessage&, std::uint64_t at);
// The text as a value; if it is not UTF-8, a value of bytes, and a warning.
Value text_value(Reading&, Range);
unsigned width_of(Kind) noexcept;  // of its numbers; 0: varints

}  // namespace weighbridge::onnx
