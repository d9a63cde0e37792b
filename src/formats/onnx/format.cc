// SPDX-License-Identifier: Apache-2.0
// The descriptor of ONNX. The format has no magic number: a file is recognized by the fields at its beginning.
#include "formats/onnx/format.h"

#include <array>

#include "core/writing/options.h"
#include "formats/onnx/layout.h"
#include "wire/protobuf_reader.h"

namespace weighbridge::onnx {
namespace {

constexpr std::string_view kExtensions[] = {kExtension};
constexpr auto kOptions = core::names_of_format<core::count_of_format("onnx")>("onnx");
constexpr Layout kLayouts[] = {Layout::dense, Layout::sparse_coo};
constexpr Encoding kEncodings[] = {Encoding::raw};
constexpr auto kHeldDTypes = [] {
  std::array<DType, kElementTypeCount - 2> out{};
  std::size_t n = 0;
  for (const ElementType& type : kElementTypes)
    if (type.dtype != DType::unknown) out[n++] = type.dtype;
  return out;
}();

// The beginning of a file, presented as a file of full length.
class Head final : public wire::ProtobufBytes {
 public:
  explicit Head(const core::Probe& probe) : probe_(probe) {}
  std::uint64_t size() const noexcept override { return probe_.size; }
  // Whether the beginning has the bytes of a field's tag and number at `offset`.
  bool has(std::uint64_t offset) const noexcept {
    return probe_.head.size() == probe_.size || offset + 2 * wire::kLongestVarint <= probe_.head.size();
  }
  std::span<const std::byte> from(std::uint64_t offset, std::size_t) override {
    return probe_.head.subspan(static_cast<std::size_t>(offset));
  }

 private:
  const core::Probe& probe_;
};

// Calls visit(field) for the fields at the beginning until it returns false. False if they are malformed.
template <class Visit> bool each_field(const core::Probe& probe, Visit visit) {
  Head head(probe);
  wire::ProtobufReader reader(head, 1);
  wire::ProtobufMessage message = reader.root();
  wire::ProtobufField field;
  for (std::uint64_t at = 0; head.has(at) && message.next(field); at = field.end)
    if (!visit(field)) return true;
  return reader.ok();
}

bool fits(const MessageFact& message, const wire::ProtobufField& field) {
  const FieldFact* const fact = message.find(field.number);
  if (fact == nullptr) return false;
  const bool number = field.wire == wire::ProtobufWire::varint;
  return fact->kind == Kind::bytes    ? field.wire == wire::ProtobufWire::bytes
         : fact->kind == Kind::varint ? number
                                      : true;
}

// The first field is a version, and all others are those of a model: its graph or an operator set among them.
bool is_model(const core::Probe& probe) {
  constexpr std::uint64_t kMaxVersion = 1000;  // far above today's IR version: a larger number is not one
  bool sound = true, version = false, shows = false;
  const bool whole = each_field(probe, [&](const wire::ProtobufField& field) {
    if (field.at == 0) version = field.number == model::kIrVersion && field.value >= 1 && field.value <= kMaxVersion;
    sound = sound && version && fits(model::kMessage, field);
    shows = shows || field.number == model::kGraph || field.number == model::kOpsetImport;
    return sound;
  });
  return whole && sound && version && shows;
}

}  // namespace

bool is_tensor(const core::Probe& probe) {
  // Dimensions, if there are any, and the type.
  bool sound = true, type = false, data = false;
  const bool whole = each_field(probe, [&](const wire::ProtobufField& field) {
    sound = sound && fits(tensor::kMessage, field) &&
            (type || field.number == tensor::kDims || field.number == tensor::kDataType);
    if (field.number == tensor::kDataType) type = field.value >= 1 && field.value < kElementTypeCount;
    data = data || field.number > tensor::kSegment;
    return sound;
  });
  return whole && sound && type && data;
}

bool matches(const core::Probe& probe) {
  if (probe.folder) return false;
  return is_model(probe) || (probe.extension == kTensorExtension && is_tensor(probe));
}

constexpr core::Format kFormat = {
    .info = {.name = "onnx",
             .title = "ONNX",
             .extensions = kExtensions,
             .versions = "IR 1 to 14",
             .writes = false,
             .holds = {.dtypes = kHeldDTypes, .layouts = kLayouts, .encodings = kEncodings, .attributes = "text"},
             .options = kOptions,
             .rules = rules::kAll},
    .written = {.other_version = "the copy of an ONNX model keeps its version"},
    .matches = matches,
    .read = read,
    .check_content = check_content,
    .content_can_fail = true,
    .layout = layout,  // of a copy of another model (OnnxOptions::into), and only of that
};

}  // namespace weighbridge::onnx
