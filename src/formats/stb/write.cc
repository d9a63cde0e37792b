// SPDX-License-Identifier: Apache-2.0
// Model to STB: the one layout that plan and writer share. Payloads are row-major and 64-byte aligned. Names and shapes
// of ranks above 3 go to the sidecar beside the file. What STB cannot express is a blocker or a loss.
#include <algorithm>
#include <bitset>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "core/payload/extents.h"
#include "core/writing/layout.h"
#include "core/writing/plan_items.h"
#include "formats/stb/format.h"
#include "formats/stb/layout.h"
#include "formats/stb/sidecar.h"

namespace weighbridge::stb {
namespace {

using core::indexed, core::subject;

constexpr std::string_view kHeldDTypes = "f32, f16, i8 and i32";

// The sidecar of an output named `name`, which is its only file.
std::string sidecar_text(Sidecar sidecar, std::string_view name) {
  std::string path(name);
  if (!is_sidecar_path(path)) path.insert(0, "./");  // the name looks like a drive letter
  if (!is_sidecar_path(path) || !base::is_utf8(path))
    base::misuse("output-name", "the sidecar that names the tensors cannot name a file called '" + std::string(name) +
                                    "': choose a name in UTF-8 without a backslash");
  sidecar.files.front().path = std::move(path);
  return write_sidecar(sidecar);
}

class Planner : core::PlacingPlanning {
 public:
  Planner(const Model& model, const Options& options) : PlacingPlanning(model, options, Subject::tensor) {}

  core::WriteLayout run() {
    check_model();
    for (std::uint32_t i = 0; i < model_.size(); ++i) judge(model_[i]);
    if (out_.blockers.empty()) lay_out();
    return std::move(out_);
  }

 private:
  // ---- what STB cannot express ----

  void check_model() {
    if (model_.size() > kMaxTensors)
      plan_items_.block(LossKind::name, "tensors", std::to_string(model_.size()) + " tensors",
                        "more than the " + std::to_string(kMaxTensors) + " that an STB file holds");
    core::drop_tokenizer(plan_items_, model_, "STB has");
    core::drop_attributes(plan_items_, model_, "STB has no attributes");
    core::drop_extra(plan_items_, model_);
  }

  void judge(const Tensor& tensor) {
    core::drop_attributes(plan_items_, tensor);
    core::drop_extra(plan_items_, tensor);
    if (!core::check_known(plan_items_, tensor, "STB")) return;
    core::check_dense(plan_items_, tensor, target_dtype(tensor));
    check_dtype(tensor);
    check_shape(tensor);
  }

  void check_dtype(const Tensor& tensor) {
    const DType from = tensor.dtype(), to = target_dtype(tensor);
    if (dtype_number(to) == kDTypeCount) {
      const std::string what = "no dtype of STB, which has " + std::string(kHeldDTypes);
      plan_items_.block(LossKind::dtype, subject(tensor), std::string(name(from)),
                        info(from).kind == DTypeKind::real ? what + ": a cast to f32 or f16 makes it one" : what);
    } else {
      core::check_cast(plan_items_, tensor, to);
    }
  }

  void check_shape(const Tensor& tensor) {
    const Shape shape = tensor.shape();
    if (shape.size() > kMaxRank) {
      plan_items_.block(LossKind::shape, subject(tensor), "rank " + std::to_string(shape.size()),
                        "more than the rank " + std::to_string(kMaxRank) + " that STB allows");
    } else if (shape.size() <= kMaxDirectRank &&
               std::ranges::any_of(shape, [](auto dim) { return dim > UINT32_MAX; })) {
      plan_items_.block(LossKind::shape, subject(tensor), "a dimension of " + std::to_string(std::ranges::max(shape)),
                        "more than the 2^32 - 1 that STB states for ranks up to 3");
    }
    const auto elements = base::element_count(shape);
    const DType dtype = target_dtype(tensor);
    if (!elements || (info(dtype).bits > 0 && !packed_size(dtype, *elements)))
      plan_items_.block(LossKind::shape, subject(tensor), "its shape", "more than 2^64 - 1 bytes");
  }

  // ---- the file ----

  // The tensors' own ids if STB can keep all of them, else their indices.
  std::vector<std::uint8_t> choose_ids() {
    std::vector<std::uint8_t> ids(model_.size());
    std::bitset<kMaxTensors> taken;
    bool own = !options_.canonical, any = false, new_ones = false;
    for (std::uint32_t i = 0; i < model_.size(); ++i) {
      const std::uint64_t id = model_[i].id().value_or(UINT64_MAX);
      any |= id < kMaxTensors;
      own &= id < kMaxTensors && !taken[base::to_size(id)];
      if (!own) continue;
      taken.set(base::to_size(id));
      ids[i] = static_cast<std::uint8_t>(id);
    }
    if (own) return ids;
    for (std::uint32_t i = 0; i < model_.size(); ++i) {
      ids[i] = static_cast<std::uint8_t>(i);
      new_ones |= model_[i].id() != i;
    }
    if (any && new_ones)
      plan_items_.change(LossKind::name, "tensors",
                         options_.canonical ? "tensor ids in another order than the names"
                                            : "tensor ids that not all tensors have, or some share",
                         "ids from 0");
    return ids;
  }

  // The index of a shape in the shape table. Equal shapes share one.
  std::uint32_t shape_index(Shape shape) {
    auto& shapes = sidecar_.shapes ? *sidecar_.shapes : sidecar_.shapes.emplace();
    const auto same = [&](const auto& known) { return std::ranges::equal(known, shape); };
    const auto found = std::ranges::find_if(shapes, same);
    const auto index = static_cast<std::uint32_t>(found - shapes.begin());
    if (found == shapes.end()) shapes.emplace_back(shape.begin(), shape.end());
    return index;
  }

  void lay_out() {
    const std::vector<std::uint8_t> ids = choose_ids();
    Header header;
    header.magic = kMagicWord;
    header.version = kVersion;
    header.tensor_count = static_cast<std::uint16_t>(model_.size());
    header.data_offset = *base::align_up(kHeaderSize + model_.size() * kDescriptorSize, kAlignment);
    begin_payloads(header.data_offset);
    std::vector<std::uint32_t> payloads;  // of each tensor
    for (std::uint32_t i = 0; i < model_.size() && out_.blockers.empty(); ++i) payloads.push_back(place(model_[i]));
    if (!out_.blockers.empty()) return;
    const core::PlannedPayloads planned = core::plan_payloads(out_, header.data_offset);
    header.file_size = out_.size = planned.end;
    out_.head = base::store_record(header);
    for (std::uint32_t i = 0; i < model_.size(); ++i)
      base::append_record(out_.head, describe(model_[i], ids[i], planned.stored[payloads[i]].offset));
    out_.head.resize(base::to_size(header.data_offset));
    finish_sidecar();
  }
  std::uint64_t size_of(const Tensor& tensor) const {
    return *packed_size(target_dtype(tensor), *base::element_count(tensor.shape()));
  }
  Descriptor describe(const Tensor& tensor, std::uint8_t id, std::uint64_t offset) {
    const Shape shape = tensor.shape();
    Descriptor out;
    out.tensor_id = id;
    out.dtype = dtype_number(target_dtype(tensor));
    out.rank = static_cast<std::uint8_t>(shape.size());
    out.layout = static_cast<std::uint8_t>(Storage::row_major);
    out.size_bytes = size_of(tensor);
    out.offset = offset;
    if (out.rank > kMaxDirectRank)
      out.dims[0] = shape_index(shape);
    else
      for (std::size_t i = 0; i < shape.size(); ++i) out.dims[i] = static_cast<std::uint32_t>(shape[i]);
    if (tensor.name() != std::to_string(id)) sidecar_.tensors.push_back({0, id, std::string(tensor.name())});
    return out;
  }
  // The number of the payload with the tensor's elements: a new one, or that of an alias.
  std::uint32_t place(const Tensor& tensor) {
    core::Payload payload = core::dense_payload(out_, tensor, target_dtype(tensor), size_of(tensor));
    payload.alignment = kAlignment;
    const std::uint32_t part = part_ + core::main_part(tensor);
    part_ += tensor.part_count();
    const auto shared = shared_payload(payload, part);
    out_.tensors.push_back({.name = tensor.name(),
                            .from = tensor,
                            .layout = Layout::dense,
                            .dtype = payload.dtype,
                            .shared_parts = shared ? 1U : 0U});
    return (shared ? shared : append_payload(std::move(payload), part)).value_or(core::kNone);  // none: a blocker
  }
  void finish_sidecar() {
    core::Companion companion{.extension = std::string(kSidecarExtension)};
    const std::size_t names = sidecar_.tensors.size();
    if (names > 0 || sidecar_.shapes) {
      const std::string where = "the sidecar NAME" + std::string(kSidecarExtension) + " beside the output";
      if (names > 0)
        plan_items_.change(LossKind::name, "names", std::to_string(names) + (names == 1 ? " name" : " names"), where);
      if (sidecar_.shapes) plan_items_.change(LossKind::shape, "shapes", "shapes of rank above 3", where);
      sidecar_.files.push_back({.id = 0, .path = {}, .mmap_required = false, .size = out_.size});
      companion.text = [sidecar = std::move(sidecar_)](std::string_view name) { return sidecar_text(sidecar, name); };
    }
    out_.companion = std::move(companion);
  }

  Sidecar sidecar_;
  std::uint32_t part_ = 0;  // the first part of the tensor that is placed next
};

}  // namespace

core::WriteLayout layout(const Model& model, const Options& options, const Context&) {
  return Planner(model, options).run();
}

}  // namespace weighbridge::stb
