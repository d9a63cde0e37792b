// SPDX-License-Identifier: Apache-2.0
// Descriptors to tensors. A broken tensor stays in the draft until all tensors have been compared with the metadata, so
// that it is not also reported as missing. Then it is dropped.
#include "formats/embd/architecture.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/checked.h"
#include "base/utf8.h"
#include "formats/embd/format.h"

namespace weighbridge::embd {
namespace {

// The file range of a valid tensor's data.
struct Place {
  std::uint64_t begin = 0, end = 0;
  std::uint32_t tensor = 0;  // of the draft
};

class IndexWalk {
 public:
  IndexWalk(std::string_view index, const Header& header, core::Findings& findings, core::Draft& draft)
      : index_(index), header_(header), findings_(findings), draft_(draft) {}

  void run(const std::optional<Numbers>& numbers) {
    const std::uint64_t count = header_.tensor_index_count;
    draft_.reserve(base::to_size(count), base::to_size(count), base::to_size(2 * count));
    at_of_.reserve(base::to_size(count));
    std::size_t name_at = base::to_size(count * kDescriptorSize);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto descriptor = base::load_record<Descriptor>(index_.data() + i * kDescriptorSize);
      at_ = i * kDescriptorSize;
      name_ = index_.substr(name_at, descriptor.name_length);
      read_tensor(descriptor, name_at);
      name_at += descriptor.name_length;
    }
    check_names();
    check_places();
    if (numbers) check_architecture(*numbers);
    drop_broken();
  }

 private:
  std::uint64_t file_offset(std::uint64_t in_index) const { return header_.tensor_index_offset + in_index; }

  void read_tensor(const Descriptor& d, std::size_t name_at) {
    findings_.record<Descriptor>(Span::Kind::entry, file_offset(at_),
                                 index_.substr(base::to_size(at_), kDescriptorSize), name_);
    findings_.span(Span::Kind::field, file_offset(name_at), file_offset(name_at + name_.size()), "name", name_);
    if (const std::size_t bad = base::find_invalid_utf8(name_); bad != std::string_view::npos) {
      findings_.report(rules::kNameUtf8, {.offset = file_offset(name_at + bad)}, {}, {},
                       {"tensor ", at_ / kDescriptorSize});
      complete_ = false;
      return;
    }
    broken_ = false;
    if (const std::uint32_t hash = fnv1a32(name_); hash != d.name_hash)
      fail(rules::kNameHash, &Descriptor::name_hash, crc_text(hash), crc_text(d.name_hash));
    if (d.ndim == 0 || d.ndim > kMaxRank) fail(rules::kRank, &Descriptor::ndim, "1 to 4", d.ndim);
    const std::size_t rank = d.ndim > kMaxRank ? 0 : d.ndim;
    std::array<std::uint64_t, kMaxRank> dims{};
    for (std::size_t i = 0; i < kMaxRank; ++i) {
      dims[i] = d.shape[i];
      if (i >= rank && rank > 0 && d.shape[i] != 0)
        findings_.report(rules::kUnusedDimension, core::at_field(&Descriptor::shape, file_offset(at_ + 4 * i), name_),
                         "0", d.shape[i]);
    }
    const DType dtype = d.dtype < kDTypeValues ? kDTypes[d.dtype] : DType::unknown;
    add(d, dtype, Shape(dims.data(), rank));
  }

  void add(const Descriptor& d, DType dtype, Shape shape) {
    const std::uint64_t size = size_of(dtype, shape);
    const auto begin = base::checked_add(header_.tensor_data_offset, d.data_offset);
    if (!broken_ && !base::fits(d.data_offset, size, header_.tensor_data_size))
      fail(rules::kDataBounds, &Descriptor::data_offset, core::at_most(header_.tensor_data_size),
           {d.data_offset, " and ", core::in_bytes(size)});
    if (!broken_ && (header_.flags & kTensorsAligned) != 0 && *begin % kAlignment != 0)
      fail(rules::kMisaligned, &Descriptor::data_offset, "a multiple of 64 in the file", *begin);

    const std::uint32_t tensor = draft_.add_tensor(name_, Layout::dense, dtype, shape);
    at_of_.push_back(at_);
    if (broken_) {
      drop_.push_back(tensor);
      complete_ = false;
      return;
    }
    const std::uint32_t part = draft_.add_part("data", dtype, shape, Encoding::raw, {0, *begin, size}, size);
    if (size > 0 || dtype == DType::unknown) places_.push_back({*begin, *begin + size, tensor});
    if (dtype != DType::unknown) return;
    complete_ = false;
    const std::string number = std::to_string(d.dtype);
    draft_.part(part).dtype_name(number);
    draft_.tensor(tensor).type_name(number);
    const Finding finding = core::Findings::make(
        rules::kUnknownDtype, core::at_field(&Descriptor::dtype, file_offset(at_), name_), {}, number);
    findings_.report(finding);
    draft_.tensor(tensor).unsupported(finding);
  }

  // 0 if the dtype has no known size or the tensor is broken.
  std::uint64_t size_of(DType dtype, Shape shape) {
    if (broken_ || dtype == DType::unknown) return 0;
    const auto count = base::element_count(shape);
    const auto size = count ? packed_size(dtype, *count) : std::nullopt;
    if (!size) fail(rules::kSizeOverflow, &Descriptor::shape, {}, core::of_shape(shape));
    return size.value_or(0);
  }

  void check_names() {
    for (const auto& [earlier, later] : draft_.index_names()) {
      drop_.push_back(later);
      complete_ = false;
      findings_.report(rules::kDuplicateName, {.offset = file_offset(at_of_[later]), .tensor = draft_.name(later)}, {},
                       {}, {"the first one is described at offset ", file_offset(at_of_[earlier])});
    }
  }

  // Checks partial overlaps and gaps. Data of unknown size extends to where the next data begins.
  void check_places() {
    std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
      return std::tie(a.begin, a.end, a.tensor) < std::tie(b.begin, b.end, b.tensor);
    });
    const std::uint64_t data_end = header_.tensor_data_offset + header_.tensor_data_size;
    std::uint64_t reach = header_.tensor_data_offset;
    const Place* covered = nullptr;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      Place& place = places_[i];
      if (place.begin == place.end) {
        const std::uint64_t next = i + 1 < places_.size() ? places_[i + 1].begin : data_end;
        stretch(place, next - place.begin);
        continue;
      }
      if (place.begin < reach && !(covered && covered->begin == place.begin && covered->end == place.end))
        findings_.report(rules::kDataOverlap, {.offset = place.begin, .tensor = name_of(place)},
                         {"to begin at ", reach}, place.begin);
      check_gap(reach, place.begin);
      if (place.end >= reach) covered = &place;
      reach = std::max(reach, place.end);
    }
    check_gap(reach, data_end);
  }

  // Reading E13: payloads that are not aligned may have gaps.
  void check_gap(std::uint64_t begin, std::uint64_t end) {
    if (!complete_ || (header_.flags & kTensorsAligned) == 0 || end <= begin || end - begin <= kMaxGap) return;
    findings_.report(rules::kGap, {.offset = begin}, {}, core::in_bytes(end - begin), "in the tensor data");
  }

  void stretch(const Place& place, std::uint64_t size) { draft_.first_part(place.tensor).length(size); }

  std::string_view name_of(const Place& place) const { return draft_.name(place.tensor); }

  void check_architecture(const Numbers& numbers) {
    if (!layers_fit(numbers, header_.tensor_index_count))
      return findings_.report(rules::kLayers, {.offset = file_offset(0)},
                              {"at least ", kEmbeddingTensors, " tensors and ", kLayerTensors, " for each of ",
                               numbers.num_layers, " layers"},
                              header_.tensor_index_count);
    for_each_expected(numbers, [&](const Expected& expected) { check_expected(expected); });
  }

  void check_expected(const Expected& expected) {
    // Compares names by their bytes, so that a hash collision cannot confuse two names.
    const auto i = draft_.find(expected.name);
    if (!i) {
      if (expected.required)
        findings_.report(rules::kMissingTensor, {.offset = file_offset(0), .tensor = expected.name},
                         core::of_shape(expected.shape));
      return;
    }
    const Shape shape = draft_.shape(*i);
    if (shape.empty()) return;  // the rank is invalid, which has been reported
    const DType dtype = draft_.dtype(*i);
    const std::uint64_t at = file_offset(at_of_[*i]);
    if (!std::ranges::equal(shape, expected.shape))
      findings_.report(rules::kTensorShape, core::at_field(&Descriptor::shape, at, expected.name),
                       core::of_shape(expected.shape), core::of_shape(shape));
    if (!expected.required || dtype == DType::unknown || dtype == DType::f32) return;
    const bool real = info(dtype).kind == DTypeKind::real;
    findings_.report(real ? rules::kNotFloat32 : rules::kTensorDtype,
                     core::at_field(&Descriptor::dtype, at, expected.name), "f32", name(dtype));
  }

  void drop_broken() {
    std::sort(drop_.begin(), drop_.end());
    drop_.erase(std::unique(drop_.begin(), drop_.end()), drop_.end());
    draft_.drop(drop_);
  }

  template <class T>
  void fail(const Rule& rule, T Descriptor::*field, const core::Said& expected, const core::Said& found) {
    broken_ = true;
    findings_.report(rule, core::at_field(field, file_offset(at_), name_), expected, found);
  }

  const std::string_view index_;
  const Header& header_;
  core::Findings& findings_;
  core::Draft& draft_;
  std::uint64_t at_ = 0;  // offset in the index of the current descriptor
  std::string_view name_;
  std::vector<std::uint64_t> at_of_;  // offset in the index of each draft tensor's descriptor
  std::vector<Place> places_;
  std::vector<std::uint32_t> drop_;
  bool complete_ = true;  // the offset and size of every tensor are known
  bool broken_ = false;   // the current tensor is broken
};

// Shapes from numbers, and numbers from shapes.

constexpr std::uint64_t kSegments = 2;
constexpr std::string_view kFirstQuery = "encoder.layer.0.attention.self.query.weight";

std::uint64_t size_of(const Numbers& numbers, Size size) noexcept {
  switch (size) {
    case Size::hidden: return numbers.hidden_size;
    case Size::intermediate: return numbers.intermediate_size;
    case Size::vocabulary: return numbers.vocab_size;
    case Size::positions: return numbers.max_position_emb;
    case Size::segments: return kSegments;
    case Size::none: break;
  }
  return 0;
}

// A dimension of a matrix; 0 if there is no such matrix.
std::uint64_t dimension(const Model& model, std::string_view name, std::size_t which) {
  const auto tensor = model.find(name);
  return tensor && tensor->has_shape() && tensor->shape().size() == 2 ? tensor->shape()[which] : 0;
}

}  // namespace

std::uint64_t names_size(const char* descriptors, std::uint64_t count) noexcept {
  std::uint64_t size = 0;  // stays below 2^48, so it cannot wrap
  for (std::uint64_t i = 0; i < count; ++i)
    size += base::load_le<std::uint16_t>(descriptors + i * kDescriptorSize + base::offset_of(&Descriptor::name_length));
  return size;
}

void read_index(std::string_view index, const Header& header, const std::optional<Numbers>& numbers,
                core::Findings& findings, core::Draft& draft) {
  IndexWalk(index, header, findings, draft).run(numbers);
}

std::size_t detail::shape_of(const Numbers& numbers, const ExpectedName& expected,
                             std::array<std::uint64_t, 2>& out) noexcept {
  std::size_t rank = 0;
  for (const Size size : expected.shape)
    if (size != Size::none) out[rank++] = size_of(numbers, size);
  return rank;
}

bool layers_fit(const Numbers& numbers, std::uint64_t tensors) noexcept {
  return tensors >= kEmbeddingTensors && numbers.num_layers <= (tensors - kEmbeddingTensors) / kLayerTensors;
}

Numbers derive(const Model& model) {
  Numbers numbers;
  numbers.vocab_size = dimension(model, kWordEmbeddings, 0);
  numbers.hidden_size = numbers.embedding_dim = dimension(model, kWordEmbeddings, 1);
  numbers.max_position_emb = dimension(model, kPositionEmbeddings, 0);
  numbers.intermediate_size = dimension(model, kFirstIntermediate, 0);
  const auto layer_there = [&](std::uint64_t layer) {
    return model.find("encoder.layer." + std::to_string(layer) + ".attention.self.query.weight").has_value();
  };
  while (numbers.num_layers < model.size() && layer_there(numbers.num_layers)) ++numbers.num_layers;
  return numbers;
}

std::string_view teller(std::string_view key) noexcept {
  if (key == "num_attention_heads") return {};
  if (key == "num_layers") return kFirstQuery;
  if (key == "intermediate_size") return kFirstIntermediate;
  if (key == "max_position_emb") return kPositionEmbeddings;
  return kWordEmbeddings;
}

}  // namespace weighbridge::embd
