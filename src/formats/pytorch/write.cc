// SPDX-License-Identifier: Apache-2.0
// Model to a checkpoint of PyTorch: the one layout that plan and writer share. An archive in the form of PyTorch 2.15:
// the pickle and small members, then each storage at a multiple of 64, at the offset that PyTorch computes for it.
// Tensors that share bytes are views of one storage.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "codecs/cast.h"
#include "codecs/checksum.h"
#include "core/archive/zip.h"
#include "core/model/view.h"
#include "core/model/words.h"
#include "core/payload/elements.h"
#include "core/payload/extents.h"
#include "core/payload/payload.h"
#include "core/writing/layout.h"
#include "core/writing/plan_items.h"
#include "formats/pytorch/format.h"
#include "formats/pytorch/layout.h"
#include "formats/pytorch/write_pickle.h"

namespace weighbridge::pytorch {
namespace {

using core::subject;
using Form = core::Payload::Form;

constexpr std::uint64_t kMaxSum = UINT64_MAX / 4;  // the bound on sums of sizes
// A member of this size, or beyond this offset, has fields of 64 bits.
constexpr std::uint64_t kLarge = 0xFFFFFFFF;
// PyTorch names the folder after the file, or gives it this name if it writes into memory. No reader looks at it.
constexpr std::string_view kFolder = "archive/";

const ElementType* type_of(DType dtype) noexcept {
  for (const ElementType& each : kTypes)
    if (each.dtype == dtype && dtype != DType::unknown) return &each;
  return nullptr;
}

// Where PyTorch expects the data of a record whose header begins at `at`, if it computes the place instead of reading
// the directory: caffe2/serialize/inline_container.cc, getPadding().
std::uint64_t computed_place(std::uint64_t at, std::uint64_t name, std::uint64_t size) {
  std::uint64_t start = at + 30 + name + 4;
  if (at >= kLarge || size >= kLarge) start += 4U + (size >= kLarge ? 16U : 0U) + (at >= kLarge ? 8U : 0U);
  return *base::align_up(start, kAlignment);
}
// The bytes that PyTorch expects after the data: the data descriptor of its own writer, which repeats the sizes. Our
// files have none; only the place of the next header makes up for it.
std::uint64_t descriptor_size(std::uint64_t header, std::uint64_t size) {
  return size == 0 ? 0 : header >= kLarge || size >= kLarge ? 24 : 16;
}

// Whether the strides are those of a row-major tensor.
bool row_major(const Part& part) {
  std::uint64_t step = 1;
  const auto strides = part.strides();
  const Shape shape = part.shape();
  for (std::size_t i = strides.size(); i-- > 0;) {
    if (shape[i] != 1 && static_cast<std::uint64_t>(strides[i]) != step) return false;
    step *= shape[i];
  }
  return true;
}

// The number of elements from the first to the last of a strided part without empty dimensions; nullopt: a view cannot
// express it.
std::optional<std::uint64_t> reach(const Part& part) {
  std::uint64_t last = 0;
  const auto strides = part.strides();
  for (std::size_t i = 0; i < strides.size(); ++i) {
    if (strides[i] < 0) return std::nullopt;
    const auto step = base::checked_mul(part.shape()[i] - 1, static_cast<std::uint64_t>(strides[i]));
    const auto sum = step ? base::checked_add(last, *step) : std::nullopt;
    if (!sum) return std::nullopt;
    last = *sum;
  }
  return base::checked_add(last, 1);
}

// The members of the archive, which the functions of its layout fill in.
struct Members {
  Model keep;
  std::vector<core::ZipOut> first;     // before the storages
  std::vector<core::ZipOut> storages;  // by key
};

// A record in memory: its header and its bytes.
core::ZipOut small_member(std::string_view name, std::string_view bytes, std::uint64_t at) {
  core::ZipOut out;
  out.name = std::string(kFolder) + std::string(name);
  out.header_at = at;
  out.stored = out.size = bytes.size();
  out.crc32 = codecs::crc32(std::as_bytes(std::span(bytes)));
  out.large = out.size >= kLarge;
  out.padding = core::zip_padding(out);
  return out;
}

class Planner : core::Planning {
 public:
  using Planning::Planning;

  core::WriteLayout run() {
    core::drop_tokenizer(plan_items_, model_, "PyTorch's files have");
    attributes_ = check_attributes(model_.attributes(), plan_items_);
    core::drop_extra(plan_items_, model_);
    outs_.reserve(model_.size());
    for (std::uint32_t i = 0; i < model_.size(); ++i) judge(model_[i]);
    group();
    for (const Out& one : outs_) list_changes(one);
    list_copies();
    if (out_.blockers.empty()) lay_out();
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t kNoGroup = std::numeric_limits<std::uint32_t>::max();

  struct Out {
    Tensor tensor;
    const ElementType* type = nullptr;
    DType dtype = DType::unknown;
    std::uint64_t size = 0;  // of a dense one, row-major
    bool sparse = false;     // stays so
    std::uint32_t group = kNoGroup;

    bool as_it_is() const { return tensor.layout() == Layout::dense && dtype == tensor.dtype(); }
  };
  // A storage and the dense tensors in it.
  struct Group {
    bool views = false;  // of stored bytes; else the elements of one tensor, in order
    Extent bytes{};      // of the views
    std::optional<std::uint64_t> key{};
  };

  // ---- what PyTorch cannot express ----

  void judge(const Tensor& tensor) {
    if (!base::is_utf8(tensor.name()))
      plan_items_.block(LossKind::name, subject(tensor), "its name", "a name in Python is UTF-8");
    if (tensor.name().size() > kLongestKey)
      plan_items_.block(LossKind::name, core::excerpt(subject(tensor)), "its name",
                        "names of more than 65,536 bytes are not read back");
    core::drop_attributes(plan_items_, tensor);
    core::drop_extra(plan_items_, tensor);
    if (!core::check_known(plan_items_, tensor, "PyTorch")) return;
    Out one{.tensor = tensor};
    one.sparse = stays_sparse(tensor);
    one.dtype = one.sparse ? tensor.dtype() : core::target_dtype(tensor, options_);
    one.type = type_of(one.dtype);
    if (!one.type)
      return plan_items_.block(
          LossKind::dtype, subject(tensor), std::string(name(one.dtype)),
          info(one.dtype).kind == DTypeKind::real ? "no dtype of PyTorch: a cast can make one" : "no dtype of PyTorch");
    const std::size_t before = out_.blockers.size();
    check_shape(one);
    if (out_.blockers.size() == before) outs_.push_back(std::move(one));
  }

  void check_shape(Out& one) {
    const Shape shape = one.tensor.shape();
    const auto block = [&](std::string why) {
      plan_items_.block(LossKind::shape, subject(one.tensor), core::shape_text(shape), std::move(why));
    };
    if (one.type->packed > 1 && (shape.empty() || shape.back() % one.type->packed != 0))
      return block("PyTorch stores elements of " + std::string(one.type->name) + " in pairs along the last dimension");
    // Counts like PyTorch, without dimensions of 0, so that strides fit too.
    std::optional<std::uint64_t> bytes = one.type->bytes;
    for (const std::uint64_t dim : shape)
      bytes = bytes ? base::checked_mul(*bytes, std::max<std::uint64_t>(dim, 1)) : std::nullopt;
    const bool packed_fits = bytes && *bytes / one.type->packed <= INT64_MAX;
    if (!packed_fits || (!one.sparse && *bytes > INT64_MAX) ||
        std::ranges::any_of(shape, [](auto d) { return d > INT64_MAX; }))
      return block("2^63 bytes or more, with dimensions of 0 left out");
    one.size = packed_size(one.dtype, base::element_count(shape).value_or(0)).value_or(0);
  }

  // Whether the tensor can be rebuilt as a sparse one.
  static bool stays_sparse(const Tensor& tensor) {
    if (tensor.layout() != Layout::sparse_coo && tensor.layout() != Layout::sparse_csr) return false;
    const ElementType* const type = type_of(tensor.dtype());
    const auto values = tensor.part("values");
    if (type == nullptr || type->storage.empty() || !values || values->dtype() != tensor.dtype()) return false;
    const std::uint64_t count = values->count();
    if (tensor.layout() == Layout::sparse_coo) {
      const auto coords = tensor.part("coords");
      return coords && is_integer(*coords) && !tensor.shape().empty() &&
             base::checked_mul(count, tensor.shape().size()) == coords->count();
    }
    const auto indices = tensor.part("indices"), indptr = tensor.part("indptr");
    return indices && indptr && is_integer(*indices) && is_integer(*indptr) && tensor.shape().size() == 2 &&
           indices->count() == count && base::checked_add(tensor.shape()[0], 1) == indptr->count();
  }
  static bool is_integer(const Part& part) {
    const DTypeKind kind = info(part.dtype()).kind;
    return kind == DTypeKind::signed_integer || kind == DTypeKind::unsigned_integer;
  }

  // ---- who shares a storage with whom ----

  // Whether the stored bytes can be copied to a storage of which the tensor is a view.
  bool can_be_view(const Out& one) const {
    if (options_.canonical || one.sparse || !one.as_it_is()) return false;
    const Part part = one.tensor.main();
    const auto extent = part.extent();
    const std::uint64_t width = info(one.dtype).bits / 8;
    if (part.encoding() != Encoding::raw || !extent || extent->length == 0 || width == 0 || core::cut_of(part) ||
        extent->length % width != 0 || (part.order() != Order::little && info(one.dtype).swap_bytes > 1))
      return false;
    if (part.strides().empty()) return extent->length == part.size();
    const auto span =
        part.strides().size() == one.tensor.shape().size() && part.size() > 0 ? reach(part) : std::nullopt;
    return span && *span == extent->length / width;
  }

  void group() {
    using Key = std::tuple<std::uint32_t, DType, std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t>;
    std::vector<Key> ranges;  // source, dtype, phase, offset, end, which of outs_
    for (std::uint32_t i = 0; i < outs_.size(); ++i) {
      if (!can_be_view(outs_[i])) continue;
      const Extent extent = *outs_[i].tensor.main().extent();
      ranges.emplace_back(extent.source, outs_[i].dtype, extent.offset % (info(outs_[i].dtype).bits / 8), extent.offset,
                          extent.offset + extent.length, i);
    }
    std::sort(ranges.begin(), ranges.end());
    for (std::size_t first = 0; first < ranges.size();) {
      const auto& [source, dtype, phase, begin, ignored, one] = ranges[first];
      std::uint64_t end = begin;
      std::size_t last = first;
      for (; last < ranges.size(); ++last) {
        const auto& [other_source, other_dtype, other_phase, offset, stop, other] = ranges[last];
        if (std::tie(other_source, other_dtype, other_phase) != std::tie(source, dtype, phase)) break;
        if (last > first && offset >= end) break;
        end = std::max(end, stop);
      }
      add_group({source, begin, end - begin}, std::span(ranges).subspan(first, last - first));
      first = last;
    }
    group_twins();
  }

  template <class Ranges> void add_group(const Extent& bytes, const Ranges& members) {
    const auto out_of = [&](const auto& range) -> Out& { return outs_[std::get<5>(range)]; };
    const bool plain = std::ranges::all_of(members, [&](const auto& range) {
      const Part part = out_of(range).tensor.main();
      return row_major(part) && part.extent() == bytes;
    });
    // A single tensor with gaps between its elements: copying the gaps would be a waste.
    const Part part = out_of(members.front()).tensor.main();
    if (!plain && members.size() == 1 && part.size() < bytes.length) return;
    Group made{.views = !plain, .bytes = bytes};
    for (const auto& range : members) out_of(range).group = static_cast<std::uint32_t>(groups_.size());
    groups_.push_back(made);
  }

  // Other tensors share a storage if they have the same elements, however these are encoded.
  void group_twins() {
    sharing_ = core::sharing(model_);
    first_part_.clear();
    std::uint32_t parts = 0;
    for (const Tensor& tensor : model_) {
      first_part_.push_back(parts);
      parts += tensor.part_count();
    }
    out_of_.assign(model_.size(), kNoGroup);
    for (std::uint32_t i = 0; i < outs_.size(); ++i) out_of_[outs_[i].tensor.index()] = i;
    for (Out& one : outs_) {
      if (one.sparse || one.group != kNoGroup) continue;
      const std::uint32_t twin = twin_of(one);
      if (twin != kNoGroup && outs_[twin].group != kNoGroup && !groups_[outs_[twin].group].views) {
        one.group = outs_[twin].group;
        continue;
      }
      one.group = static_cast<std::uint32_t>(groups_.size());
      groups_.emplace_back();
    }
  }

  // An earlier tensor with the same elements, in outs_.
  std::uint32_t twin_of(const Out& one) const {
    if (options_.canonical || one.tensor.layout() != Layout::dense) return kNoGroup;
    const std::uint32_t ordinal = first_part_[one.tensor.index()] + core::main_part(one.tensor);
    const std::uint32_t first = sharing_.first[ordinal];
    const std::uint32_t other = first == ordinal ? kNoGroup : out_of_[sharing_.tensor[first]];
    if (other == kNoGroup || outs_[other].sparse || outs_[other].dtype != one.dtype ||
        outs_[other].tensor.layout() != Layout::dense || outs_[other].size != one.size ||
        !core::same_elements(one.tensor.main(), outs_[other].tensor.main()))
      return kNoGroup;
    return other;
  }

  // ---- what changes ----

  void list_changes(const Out& one) {
    if (one.sparse) {
      for (const Part& part : one.tensor.parts()) list_part(one.tensor, part, core::is_coded(part.encoding()));
      return;
    }
    if (groups_[one.group].views) {
      for (const Part& part : one.tensor.parts()) {
        if (part != one.tensor.main())
          plan_items_.lose(LossKind::layout, subject(one.tensor, part), std::string(part.role()), "dropped");
        else
          list_part(one.tensor, part, false);
      }
      return;
    }
    core::check_dense(plan_items_, one.tensor, one.dtype);
    core::check_cast(plan_items_, one.tensor, one.dtype);
  }

  void list_part(const Tensor& tensor, const Part& part, bool decoded) {
    core::drop_extra(plan_items_, tensor, part);
    if (decoded) plan_items_.change(LossKind::layout, subject(tensor, part), std::string(part.encoding_name()), "raw");
    if (!part.digest().empty())
      plan_items_.change(LossKind::extra, subject(tensor, part), std::string(part.digest()), "no digest");
    if (part.role() != "data" && part.role() != "values" && part.dtype() != DType::i64)
      plan_items_.change(LossKind::dtype, subject(tensor, part), std::string(name(part.dtype())), "i64");
  }

  void list_copies() {
    for (const Out& one : outs_) {
      const std::uint32_t first = first_part_[one.tensor.index()];
      for (std::uint32_t p = 0; p < one.tensor.part_count(); ++p) {
        const std::uint32_t twin = sharing_.first[first + p], partly = sharing_.partly[first + p];
        if (twin != first + p && !together(one, sharing_.tensor[twin])) {
          core::name_copy(plan_items_, one.tensor, model_[sharing_.tensor[twin]]);
          break;
        }
        if (partly != core::kNone && !together(one, sharing_.tensor[partly])) {
          core::name_partial_copy(plan_items_, one.tensor, model_[sharing_.tensor[partly]]);
          break;
        }
      }
    }
  }
  bool together(const Out& one, std::uint32_t tensor) const {
    const std::uint32_t other = out_of_[tensor];
    return other != kNoGroup && !one.sparse && outs_[other].group == one.group;
  }

  // ---- the file ----

  void lay_out() {
    members_->keep = model_;
    out_.tensors.reserve(outs_.size());
    for (Out& one : outs_) add(one);
    std::string pickle = write_pickle(pickled_, attributes_);
    pickled_.clear();
    const auto add_small = [&](std::string_view name, std::string_view bytes) {
      members_->first.push_back(small_member(name, bytes, out_.head.size()));
      out_.head += core::zip_local_header(members_->first.back());
      out_.head += bytes;
    };
    add_small(kDataPickle, pickle);
    pickle = {};
    add_small(kFormatVersion, "1");
    add_small(kStorageAlignment, std::to_string(kAlignment));
    add_small(kByteOrder, "little");
    place_storages();
    if (out_.blockers.empty()) finish();
  }

  void add(Out& one) {
    core::OutTensor to{.name = one.tensor.name(),
                       .from = one.tensor,
                       .layout = one.sparse ? one.tensor.layout() : Layout::dense,
                       .dtype = one.dtype};
    OutPickled pickled{.name = one.tensor.name(), .layout = to.layout};
    if (one.sparse) {
      pickled.shape.assign(one.tensor.shape().begin(), one.tensor.shape().end());
      add_sparse(one, pickled);
    } else {
      pickled.parts.push_back(add_dense(one, to));
    }
    out_.tensors.push_back(std::move(to));
    pickled_.push_back(std::move(pickled));
  }

  OutStrided add_dense(const Out& one, core::OutTensor& to) {
    Group& group = groups_[one.group];
    const bool is_new = !group.key.has_value();
    if (is_new) {
      group.key = out_.payloads.size();
      core::Payload payload = core::dense_payload(out_, one.tensor, one.dtype, one.size);
      if (group.views) share(payload, group, one);
      out_.payloads.push_back(std::move(payload));
    }
    OutStrided out{.type = one.type, .key = *group.key, .storage_bytes = group.views ? group.bytes.length : one.size};
    out.shape.assign(one.tensor.shape().begin(), one.tensor.shape().end());
    if (one.type->packed > 1) out.shape.back() /= one.type->packed;
    out.strides = row_major_strides(out.shape);
    to.shared_parts = is_new && !group.views ? 0 : 1;
    if (!group.views) return out;
    const Part part = one.tensor.main();
    const Extent extent = *part.extent();
    out.first = (extent.offset - group.bytes.offset) / one.type->bytes;
    to.view = {static_cast<std::size_t>(*group.key), extent.offset - group.bytes.offset, extent.length, {}};
    if (!part.strides().empty()) {
      out.strides.assign(part.strides().begin(), part.strides().end());
      if (!row_major(part)) to.view->strides.assign(part.strides().begin(), part.strides().end());
    }
    return out;
  }

  // The payload is the bytes of a group of views.
  static void share(core::Payload& payload, const Group& group, const Out& one) {
    payload.shared = true;
    payload.logical_size = payload.stored_size = group.bytes.length;
    payload.form = Form::generated;
    payload.make_range = [part = one.tensor.main(), from = group.bytes.offset, is_bool = one.dtype == DType::boolean](
                             const Context&, std::uint64_t offset, std::span<std::byte> out) {
      core::source_of(part).read_at(from + offset, out);
      if (is_bool) codecs::normalize_bools(out);
    };
  }

  void add_sparse(const Out& one, OutPickled& pickled) {
    const bool coo = one.tensor.layout() == Layout::sparse_coo;
    const std::uint64_t count = one.tensor.part("values").value().count();
    if (coo) {
      pickled.parts.push_back(add_indices(one, "coords", {one.tensor.shape().size(), count}));
    } else {
      pickled.parts.push_back(add_indices(one, "indptr", {one.tensor.shape()[0] + 1}));
      pickled.parts.push_back(add_indices(one, "indices", {count}));
    }
    pickled.parts.push_back(add_part(one, "values", *one.type, {count}));
  }

  OutStrided add_indices(const Out& one, std::string_view role, std::vector<std::uint64_t> shape) {
    return add_part(one, role, *type_of(DType::i64), std::move(shape));
  }

  OutStrided add_part(const Out& one, std::string_view role, const ElementType& type,
                      std::vector<std::uint64_t> shape) {
    const Part part = *one.tensor.part(role);
    core::Payload payload;
    payload.dtype = type.dtype;
    payload.tensor = one.tensor;
    while (one.tensor.part(payload.part) != part) ++payload.part;
    payload.out_tensor = static_cast<std::uint32_t>(out_.tensors.size());
    payload.role = role;
    payload.logical_size = payload.stored_size = part.count() * type.bytes;
    if (part.dtype() != type.dtype) core::fill_with(payload, core::widened(part));
    OutStrided out{.type = &type, .key = out_.payloads.size(), .storage_bytes = payload.logical_size};
    out.strides = row_major_strides(shape);
    out.shape = std::move(shape);
    out_.payloads.push_back(std::move(payload));
    return out;
  }

  void place_storages() {
    members_->storages.reserve(out_.payloads.size());
    std::uint64_t at = out_.head.size(), expected = at;  // the latter as PyTorch computes it
    for (std::size_t i = 0; i < out_.payloads.size(); ++i) {
      core::Payload& payload = out_.payloads[i];
      core::ZipOut member;
      member.name = std::string(kFolder) + std::string(kStorages) + std::to_string(i);
      member.header_at = at;
      member.size = member.stored = payload.stored_size;
      member.large = member.size >= kLarge;
      const std::uint64_t header = expected;
      std::uint64_t begin = at;
      if (i == 0) {
        member.padding = core::zip_padding(member);
        begin += core::zip_header_size(member);
      } else {
        begin = computed_place(expected, member.name.size(), member.size);
        member.padding = static_cast<std::uint16_t>(begin - at - core::zip_header_size(member));
      }
      payload.digest = core::PartDigest::crc32;
      payload.preamble_size = begin - at;
      at = begin + payload.stored_size;
      expected = at + descriptor_size(header, payload.stored_size);
      if (payload.stored_size > kMaxSum || at > kMaxSum)
        return plan_items_.block(LossKind::shape, subject(payload.tensor), "its size", "more than 2^62 bytes in all");
      members_->storages.push_back(std::move(member));
    }
  }

  void finish() {
    out_.owner = members_;
    out_.make_preamble = [members = members_](std::size_t i, const core::Stored& stored) {
      return core::zip_local_header(complete(*members, i, stored));
    };
    out_.tail = [members = members_, head = out_.head.size()](std::span<const core::Stored> stored) {
      std::vector<core::ZipOut> all = members->first;
      for (std::size_t i = 0; i < stored.size(); ++i) all.push_back(complete(*members, i, stored[i]));
      const std::string version = std::string(kWrittenVersion) + "\n";
      const std::uint64_t at = stored.empty() ? head : stored.back().end();
      all.push_back(small_member(kVersion, version, at));
      const std::string record = core::zip_local_header(all.back()) + version;
      return record + core::zip_directory(all, at + record.size());
    };
    const core::PlannedPayloads planned = core::plan_payloads(out_, out_.head.size());
    out_.size = planned.end + out_.tail(planned.stored).size();
  }

  // A member once its bytes are stored.
  static core::ZipOut complete(const Members& members, std::size_t i, const core::Stored& stored) {
    core::ZipOut member = members.storages[i];
    member.crc32 = codecs::u32_from_hex(std::string_view(stored.digest).substr(stored.digest.size() - 8)).value_or(0);
    return member;
  }

  std::vector<Value::Entry> attributes_;
  std::vector<Out> outs_;
  std::vector<Group> groups_;
  core::Sharing sharing_;
  std::vector<std::uint32_t> first_part_, out_of_;  // by tensor of the model: its first part, and its place in outs_
  std::vector<OutPickled> pickled_;
  const std::shared_ptr<Members> members_ = std::make_shared<Members>();
};

}  // namespace

core::WriteLayout layout(const Model& model, const Options& options, const Context&) {
  return Planner(model, options).run();
}

}  // namespace weighbridge::pytorch
