// SPDX-License-Identifier: Apache-2.0
// STB to Model: the one walker for open and verify. Reads the header, the sidecar, then each descriptor, and checks
// names and overlaps at the end, when all tensors are known. sidecar.cc checks the sidecar itself.
//
//   32 bytes of header | descriptors, 32 bytes each | ... | data_offset: payloads, at multiples of 64
//   layout.h has the fields of both.
#include <algorithm>
#include <array>
#include <bitset>
#include <string>
#include <utility>

#include "base/checked.h"
#include "core/model/words.h"
#include "core/payload/extents.h"
#include "core/reading/rules.h"
#include "core/reading/walker.h"
#include "formats/stb/format.h"
#include "formats/stb/layout.h"
#include "formats/stb/sidecar.h"
#include "weighbridge/place.h"

namespace weighbridge::stb {
namespace {

using core::at_field, core::bytes_text, core::shape_text;

// The logical axes from the outermost in storage to the innermost (reading S8). Empty for rank 0, and for ranks whose
// storage order is undefined.
std::vector<std::size_t> storage_axes(Storage storage, std::size_t rank) {
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < rank; ++i) axes.push_back(i);
  if (storage == Storage::col_major) std::ranges::reverse(axes);
  if (storage == Storage::channels_last) {
    if (rank < 3 || rank > 5) return {};
    const auto channels = axes.begin() + (rank == 3 ? 0 : 1);  // (C,H,W), (N,C,H,W), (N,C,D,H,W)
    std::rotate(channels, channels + 1, axes.end());
  }
  return axes;
}

// The strides in elements. Empty if the elements are row-major, that is if no dimension above 1 is out of order. The
// product of the shape must fit 64 bits, and the file must hold that many elements.
std::vector<std::int64_t> strides_of(Storage storage, Shape shape) {
  if (std::ranges::find(shape, 0U) != shape.end()) return {};  // the product of the others may be anything
  std::vector<std::size_t> axes = storage_axes(storage, shape.size());
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t step = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    strides[*axis] = step;
    step *= static_cast<std::int64_t>(shape[*axis]);
  }
  std::erase_if(axes, [&](std::size_t axis) { return shape[axis] == 1; });
  if (std::ranges::is_sorted(axes)) return {};
  return strides;
}

// One descriptor while it is checked.
struct Entry {
  Descriptor d;
  std::uint64_t at = 0;  // in the file
  std::string name;
  const TensorEntry* listed = nullptr;  // in the sidecar
  bool broken = false;
  bool has_shape = false;
  std::vector<std::uint64_t> shape{};
  DType dtype = DType::unknown;

  bool known_layout() const noexcept { return d.layout < kStorageCount; }
};

class Walk : core::Walker {
 public:
  using Walker::Walker;

  void run() {
    draft_.set_format("stb");
    if (!read_header()) return;
    read_sidecar();
    for (std::uint64_t i = 0; i < header_.tensor_count; ++i) read_tensor(i);
    check_names();
    check_overlaps();
  }

 private:
  // Reads the header and the table into memory. False if there is no table to read.
  bool read_header() {
    if (!has_bytes(rules::kTooShort, kHeaderSize)) return false;
    std::byte head[kHeaderSize];
    source_.read_at(0, head);
    findings_.record<Header>(Span::Kind::structure, 0, head, "header");
    header_ = base::load_record<Header>(head);
    if (header_.magic != kMagicWord) return findings_.fail(rules::kMagic, {.offset = 0}, kMagic);
    if (header_.version != kVersion)
      return findings_.fail(rules::kVersion, at_field(&Header::version), kVersion, header_.version);
    draft_.set_version("0.1");
    if (header_.flags != 0) findings_.report(rules::kFlags, at_field(&Header::flags), "0", header_.flags);
    check_reserved(&Header::reserved0);
    check_reserved(&Header::reserved1);
    return check_file_size() && read_table() && check_data_offset();
  }

  void check_reserved(std::uint32_t Header::*field) {
    if (header_.*field != 0) findings_.report(rules::kReserved, at_field(field), "0", header_.*field);
  }

  // False if the file is truncated: one finding, not one per missing tensor.
  bool check_file_size() {
    const std::uint64_t stated = header_.file_size;
    if (stated == size_) return true;
    findings_.report(
        rules::kFileSize, {.offset = base::offset_of(&Header::file_size), .hint = base::size_hint(stated)},
        core::in_bytes(stated), core::in_bytes(size_),
        stated > size_ ? core::missing_text(stated - size_) : bytes_text(size_ - stated) + " follow the stated end");
    return stated < size_;
  }

  bool read_table() {
    const std::uint64_t count = header_.tensor_count, table = kHeaderSize + count * kDescriptorSize;
    if (count > kMaxTensors)
      return findings_.fail(rules::kTooManyTensors, at_field(&Header::tensor_count), core::at_most(kMaxTensors), count);
    if (table > header_.file_size)
      return findings_.fail(rules::kTablePastEnd, at_field(&Header::tensor_count),
                            core::at_least(core::in_bytes(table)), core::in_bytes(header_.file_size));
    if (!few_enough(at_field(&Header::tensor_count), count) || !within_limit(at_field(&Header::tensor_count), table))
      return false;
    table_.resize(base::to_size(count * kDescriptorSize));
    source_.read_at(kHeaderSize, table_);
    findings_.span(Span::Kind::structure, kHeaderSize, kHeaderSize + table_.size(), "tensor table");
    return true;
  }

  bool check_data_offset() {
    const std::uint64_t offset = header_.data_offset, table_end = kHeaderSize + table_.size();
    const core::At at = at_field(&Header::data_offset);
    if (offset < table_end) findings_.report(rules::kDataOffsetInTable, at, core::at_least(table_end), offset);
    if (offset > header_.file_size)
      return findings_.fail(rules::kDataOffsetPastEnd, at, core::at_most(header_.file_size), offset);
    if (offset % kAlignment != 0) findings_.report(rules::kDataOffsetAlignment, at, "a multiple of 64", offset);
    return true;
  }

  // Reads the sidecar that the caller gave, or the one beside the file, and finds this file's entry in it.
  void read_sidecar() {
    const auto place = source_.place();
    const auto source = draft_.sidecar ? draft_.sidecar
                        : place        ? place->open(sidecar_name(source_.file_name()))
                                       : nullptr;
    if (!source) return;
    draft_.add_source(source);  // the sidecar is an input too, so no output may replace it
    core::Findings in_sidecar = findings_.in(source);
    sidecar_ = stb::read_sidecar(*source, limits_, in_sidecar);
    if (!sidecar_) return;
    file_ = sidecar_->file_of(source_);
    if (file_ == nullptr) return in_sidecar.report(rules::kSidecarOther, {});
    if (file_->size && *file_->size != source_.size())
      in_sidecar.report(rules::kSidecarSize, {.offset = file_->at}, core::in_bytes(*file_->size),
                        core::in_bytes(source_.size()));
    std::bitset<kMaxTensors> there;
    for (std::size_t i = 0; i < table_.size(); i += kDescriptorSize) there.set(std::to_integer<std::size_t>(table_[i]));
    for (const TensorEntry& tensor : sidecar_->tensors) {
      if (tensor.file != file_->id) continue;
      listed_[tensor.id] = &tensor;
      if (!there[tensor.id]) in_sidecar.report(rules::kSidecarTensor, {.offset = tensor.at}, {}, {"id ", tensor.id});
    }
  }

  void read_tensor(std::uint64_t index) {
    Entry entry;
    entry.d = base::load_record<Descriptor>(table_.data() + index * kDescriptorSize);
    entry.at = kHeaderSize + index * kDescriptorSize;
    entry.listed = listed_[entry.d.tensor_id];
    entry.name = entry.listed ? entry.listed->name : std::to_string(entry.d.tensor_id);
    findings_.record<Descriptor>(Span::Kind::entry, entry.at,
                                 std::span(table_).subspan(base::to_size(index * kDescriptorSize), kDescriptorSize),
                                 entry.name);
    if (entry.d.dtype < kDTypeCount) entry.dtype = kDTypes[entry.d.dtype];
    if (seen_[entry.d.tensor_id]) fail(entry, rules::kDuplicateId, &Descriptor::tensor_id, {}, entry.d.tensor_id);
    seen_.set(entry.d.tensor_id);
    check_range(entry);
    if (entry.d.rank > kMaxRank) return fail(entry, rules::kRank, &Descriptor::rank, "at most 8", entry.d.rank);
    check_unused_dims(entry);
    resolve_shape(entry);
    check_size(entry);
    if (!entry.broken) add(entry);
  }

  void check_range(Entry& entry) {
    const auto& [offset, size] = std::pair(entry.d.offset, entry.d.size_bytes);
    if (offset < header_.data_offset)
      fail(entry, rules::kBeforeData, &Descriptor::offset, core::at_least(header_.data_offset), offset);
    if (offset % kAlignment != 0) fail(entry, rules::kUnaligned, &Descriptor::offset, "a multiple of 64", offset);
    if (!base::fits(offset, size, header_.file_size))
      fail(entry, rules::kPastEnd, &Descriptor::offset, {"to end at ", header_.file_size, " or before"},
           {core::in_bytes(size), " at ", offset});
  }

  void check_unused_dims(const Entry& entry) {
    const std::size_t used = entry.d.rank <= kMaxDirectRank ? entry.d.rank : 1;
    for (std::size_t i = used; i < kMaxDirectRank; ++i) {
      if (entry.d.dims[i] == 0) continue;
      findings_.report(rules::kUnusedDims, at_field(&Descriptor::dims, entry.at + 4 * i, entry.name), "0",
                       entry.d.dims[i]);
    }
  }

  // Takes the shape from the dims, else from the shape table, or without a table from the tensor's entry in the
  // sidecar.
  void resolve_shape(Entry& entry) {
    const auto* const stated = entry.listed && entry.listed->shape ? &*entry.listed->shape : nullptr;
    if (entry.d.rank <= kMaxDirectRank) {
      entry.shape.assign(entry.d.dims, entry.d.dims + entry.d.rank);
    } else if (file_ != nullptr && sidecar_->shapes) {
      const auto& table = *sidecar_->shapes;
      if (entry.d.dims[0] >= table.size())
        return fail(entry, rules::kShapeIndex, &Descriptor::dims, {"less than ", table.size()}, entry.d.dims[0]);
      entry.shape = table[entry.d.dims[0]];
    } else if (stated) {
      entry.shape = *stated;
    } else {
      return;
    }
    if (entry.shape.size() != entry.d.rank)
      return fail(entry, rules::kShapeRank, &Descriptor::rank, {"rank ", entry.d.rank}, core::of_shape(entry.shape));
    if (stated && *stated != entry.shape)
      return fail(entry, rules::kShapeDiffers, &Descriptor::dims, core::of_shape(*stated), core::of_shape(entry.shape));
    entry.has_shape = true;
  }

  void check_size(Entry& entry) {
    if (!entry.has_shape || entry.dtype == DType::unknown) return;
    const auto elements = base::element_count(entry.shape);
    const auto size = elements ? packed_size(entry.dtype, *elements) : std::nullopt;
    if (!size)
      fail(entry, rules::kSizeOverflow, &Descriptor::dims, {}, core::of_shape(entry.shape));
    else if (*size != entry.d.size_bytes)
      fail(entry, rules::kSizeMismatch, &Descriptor::size_bytes, core::in_bytes(*size),
           core::in_bytes(entry.d.size_bytes));
  }

  // The reason why the elements cannot be read; nullopt if they can.
  std::optional<Finding> unsupported(const Entry& entry) const {
    const auto make = [&](const Rule& rule, auto field, const core::Said& found) {
      return core::Findings::make(rule, at_field(field, entry.at, entry.name), {}, found);
    };
    if (entry.dtype == DType::unknown) return make(rules::kUnknownDtype, &Descriptor::dtype, entry.d.dtype);
    if (!entry.known_layout()) return make(rules::kUnknownLayout, &Descriptor::layout, entry.d.layout);
    if (!entry.has_shape) return make(rules::kNoShape, &Descriptor::rank, {"rank ", entry.d.rank});
    if (!orders(entry)) return make(rules::kChannelsLastRank, &Descriptor::layout, {"rank ", entry.d.rank});
    return std::nullopt;
  }

  // Whether the layout is defined for this rank.
  static bool orders(const Entry& entry) {
    return entry.d.rank == 0 ? Storage{entry.d.layout} != Storage::channels_last
                             : !storage_axes(Storage{entry.d.layout}, entry.d.rank).empty();
  }

  void add(Entry& entry) {
    const bool laid_out = entry.known_layout() && (!entry.has_shape || orders(entry));
    const Layout layout = laid_out ? Layout::dense : Layout::structural;
    const std::uint32_t tensor = entry.has_shape ? draft_.add_tensor(entry.name, layout, entry.dtype, entry.shape)
                                                 : draft_.add_tensor_without_shape(entry.name, layout, entry.dtype);
    const std::uint64_t width = entry.dtype == DType::unknown ? 1 : info(entry.dtype).bits / 8;
    const std::uint64_t count[] = {entry.d.size_bytes / width};
    const std::uint32_t part =
        draft_.add_part("data", entry.dtype, entry.has_shape ? Shape(entry.shape) : Shape(count), Encoding::raw,
                        {.source = 0, .offset = entry.d.offset, .length = entry.d.size_bytes}, entry.d.size_bytes);
    auto side = draft_.tensor(tensor).id(entry.d.tensor_id);
    if (!laid_out)
      side.layout_name(entry.known_layout() ? "channels_last" : "unknown-" + std::to_string(entry.d.layout));
    if (entry.dtype == DType::unknown) {
      const std::string type = "unknown-" + std::to_string(entry.d.dtype);
      side.type_name(type);
      draft_.part(part).dtype_name(type);
    }
    if (auto why = unsupported(entry)) {
      findings_.report(*why);
      draft_.tensor(tensor).unsupported(*std::move(why));
    } else if (auto strides = strides_of(Storage{entry.d.layout}, entry.shape); !strides.empty()) {
      draft_.part(part).strides(std::move(strides));
    }
    places_.push_back({entry.d.offset, entry.d.size_bytes, entry.at, std::move(entry.name)});
  }

  // G2: a name in the sidecar may equal the id of a tensor that the sidecar does not name.
  void check_names() {
    draft_.drop_same_names([&](std::uint32_t, std::uint32_t later) {
      findings_.report(rules::kDuplicateName, {.offset = places_[later].at, .tensor = places_[later].name});
    });
  }

  // G6: equal ranges are aliases, and an empty one overlaps nothing.
  void check_overlaps() {
    std::vector<core::Range> ranges;
    for (std::uint32_t i = 0; i < places_.size(); ++i) ranges.push_back({0, places_[i].offset, places_[i].length, i});
    core::Extents(std::move(ranges))
        .walk([&](const core::Range& range, core::Relation relation, const core::Range* furthest) {
          if (relation != core::Relation::overlap) return;
          const Place& place = places_[range.item];
          findings_.report(rules::kOverlap, at_field(&Descriptor::offset, place.at, place.name),
                           {"to begin at ", furthest->end(), " or behind it"}, place.offset);
        });
  }

  template <class T>
  void fail(Entry& entry, const Rule& rule, T Descriptor::*field, const core::Said& expected, const core::Said& found) {
    entry.broken = true;
    findings_.report(rule, at_field(field, entry.at, entry.name), expected, found);
  }

  // A valid tensor's range. Its index in the list is the tensor's index in the draft.
  struct Place {
    std::uint64_t offset, length, at;  // at: offset of the descriptor
    std::string name;
  };

  Header header_;
  std::vector<std::byte> table_;
  std::optional<Sidecar> sidecar_;
  const BinFile* file_ = nullptr;                         // this file's entry in the sidecar
  std::array<const TensorEntry*, kMaxTensors> listed_{};  // by tensor_id
  std::bitset<kMaxTensors> seen_;
  std::vector<Place> places_;
};

}  // namespace

void read(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  Walk(source, context, findings, draft).run();
}

}  // namespace weighbridge::stb
