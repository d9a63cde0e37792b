// SPDX-License-Identifier: Apache-2.0
// A copy of a model with the elements of other tensors. Elements stored as bytes are replaced in place. Elements in a
// field of numbers or an external file become raw_data, which changes the lengths of the messages around them. All
// other bytes stay, and the copy is one file.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/words.h"
#include "core/payload/asking_source.h"
#include "core/writing/layout.h"
#include "core/writing/plan_items.h"
#include "formats/onnx/format.h"
#include "formats/onnx/walk.h"

namespace weighbridge::onnx {
namespace {

using core::indexed, core::subject;

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

// Replaces a range of the model: with bytes, then with a payload if there is one.
struct Edit {
  Range range{};
  std::string bytes{};
  std::optional<std::size_t> payload{};
};

// The bytes of the output before a payload, or at the end.
struct Gap {
  struct Piece {
    Range copied{};       // of the model
    std::string bytes{};  // after those
  };
  std::vector<Piece> pieces{};
  std::uint64_t size = 0;

  std::string make(const Source& source) const {
    std::string out;
    out.reserve(base::to_size(size));
    for (const Piece& piece : pieces) {
      const std::size_t at = out.size();
      out.resize(at + base::to_size(piece.copied.size()));
      if (piece.copied.size() > 0)
        source.read_at(piece.copied.begin, std::as_writable_bytes(std::span(out).subspan(at)));
      out += piece.bytes;
    }
    return out;
  }
};

class Planner : core::Planning {
 public:
  Planner(const Model& model, const Options& options, const Context& context)
      : Planning(model, options), context_(context), source_(options.onnx.into) {}

  core::WriteLayout run() {
    if (!source_) {
      plan_items_.block(LossKind::file, "graph", core::kAbsent,
                        "an ONNX model needs a graph: give the ONNX model to copy, whose tensors are to be replaced");
      return std::move(out_);
    }
    read_base();
    check_all();
    if (!out_.blockers.empty()) return std::move(out_);
    lay_out();
    return std::move(out_);
  }

 private:
  void read_base() {
    Report report;
    core::Findings findings(report, core::Findings::Mode::first_error);
    core::Draft draft;
    draft.set_asked(draft.add_source(source_));
    try {
      walked_ = walk(core::AskingSource(*source_, context_), context_, findings, draft, {.within = true});
    } catch (const core::Stop&) {
      Finding why = *report.first_error();
      if (why.file.empty()) why.file.name = source_->name();
      throw Error(std::move(why));
    }
    base_ = draft.finish();
    out_.base = base_;
    inputs_.resize(base_.size());
  }

  void check_all() {
    core::drop_tokenizer(plan_items_, model_, "ONNX has");
    for (const auto& [key, value] : model_.attributes()) {
      const Value* const there = base_.attribute(key);
      if (!there || there->to_text() != value.to_text())
        plan_items_.lose(LossKind::attribute, indexed("attributes", key), value.to_text(),
                         "dropped: the copy keeps the metadata of the ONNX model");
    }
    core::drop_extra(plan_items_, model_);
    for (const Tensor& tensor : model_) judge(tensor);
    check_external();
    std::string kept;
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < base_.size(); ++i) {
      if (inputs_[i]) continue;
      constexpr std::size_t kNamed = 5;
      if (count++ < kNamed) kept += (kept.empty() ? "" : ", ") + core::excerpt(base_.name(i));
      if (count == kNamed + 1) kept += ", ...";
    }
    if (count > 0 && out_.blockers.empty())
      plan_items_.change(LossKind::name, "tensors", std::to_string(count) + " that only the ONNX model has: " + kept,
                         "as they are there");
  }

  static bool is_external(const Part& part) {
    const auto extent = part.extent();
    return extent && extent->source != 0;
  }

  // Elements in external files move into the copy, as raw_data of a TensorProto.
  void check_external() {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < base_.size(); ++i) {
      bool external = false;
      for (const Part& part : base_[i].parts()) external |= is_external(part);
      count += external ? 1 : 0;
      if (external && !walked_.places[i].tensor)
        plan_items_.block(
            LossKind::layout, subject(base_[i]), "in an external file",
            "the ONNX model has it sparse or of an unsupported type: save that model with its tensors inside");
    }
    if (count > 0)
      plan_items_.change(LossKind::layout, "tensors",
                         std::to_string(count) + " that the ONNX model has in external files", "inside the copy");
  }

  void judge(const Tensor& tensor) {
    const auto there = base_.find(tensor.name());
    if (!there)
      return plan_items_.block(LossKind::name, subject(tensor), "its name",
                               "the ONNX model has no tensor of this name: rename the tensor, or leave it out");
    core::drop_attributes(plan_items_, tensor);
    core::drop_extra(plan_items_, tensor);
    if (!core::check_known(plan_items_, tensor, "ONNX")) return;
    const std::uint32_t at = there->index();
    if (!walked_.places[at].tensor || there->unsupported())
      return plan_items_.block(
          LossKind::layout, subject(tensor), "its elements",
          "the tensor of this name in the ONNX model is sparse, not a TensorProto, or unsupported");
    const DType dtype = core::target_dtype(tensor, options_);
    if (dtype != there->dtype())
      return plan_items_.block(LossKind::dtype, subject(tensor), std::string(name(dtype)),
                               "the ONNX model has " + std::string(name(there->dtype())));
    if (!std::ranges::equal(tensor.shape(), there->shape()))
      return plan_items_.block(LossKind::shape, subject(tensor), core::shape_text(tensor.shape()),
                               "the ONNX model has " + core::shape_text(there->shape()));
    core::check_dense(plan_items_, tensor, dtype);
    core::check_cast(plan_items_, tensor, dtype);
    inputs_[at] = tensor;
  }

  void lay_out() {
    for (std::uint32_t i = 0; i < base_.size(); ++i) {
      if (inputs_[i])
        replace(i, *inputs_[i]);
      else
        keep(i);
    }
    change_lengths();
    compose();
  }

  void keep(std::uint32_t i) {
    const Tensor tensor = base_[i];
    core::OutTensor& out = out_.tensors.emplace_back();
    out = {.name = tensor.name(), .from = tensor, .layout = tensor.layout(), .dtype = tensor.dtype()};
    for (std::uint32_t p = 0; p < tensor.part_count(); ++p) {
      const Part part = tensor.part(p);
      const auto extent = part.extent();
      if (!extent) {
        ++out.shared_parts;
        continue;
      }
      core::Payload payload;
      payload.form = core::Payload::Form::stored;
      payload.dtype = part.dtype();
      payload.part = p;
      payload.tensor = tensor;
      payload.out_tensor = i;
      payload.role = part.role();
      payload.logical_size = part.size();
      payload.stored_size = extent->length;
      if (extent->source != 0) {
        put_raw(i, std::move(payload));
        continue;
      }
      put({extent->offset, extent->offset + extent->length}, {}, std::move(payload));
    }
  }

  void replace(std::uint32_t i, const Tensor& tensor) {
    const Tensor there = base_[i];
    const DType dtype = there.dtype();
    const std::uint64_t size = *packed_size(dtype, there.main().count());
    core::Payload payload = core::dense_payload(out_, tensor, dtype, size);
    out_.tensors.push_back({.name = there.name(), .from = tensor, .layout = Layout::dense, .dtype = dtype});
    const auto extent = there.main().extent();
    if (extent && extent->source == 0)
      return put({extent->offset, extent->offset + extent->length}, {}, std::move(payload));
    put_raw(i, std::move(payload));
  }

  // Writes raw_data at the end of the TensorProto, instead of the fields that held the elements or their location.
  void put_raw(std::uint32_t i, core::Payload payload) {
    const Place& place = walked_.places[i];
    const std::uint64_t size = payload.stored_size;
    std::string raw = varint(std::uint64_t{tensor::kRawData} << 3 | 2) + varint(size);
    auto delta = static_cast<std::int64_t>(raw.size() + size);
    for (const Range& record : data_fields(place.message)) {
      delta -= static_cast<std::int64_t>(record.size());
      edits_.push_back({record});
    }
    put({place.message.end, place.message.end}, std::move(raw), std::move(payload));
    grow({place.at, place.message}, place.within, place.within.size(), delta);
  }

  void put(Range range, std::string bytes, core::Payload payload) {
    edits_.push_back({range, std::move(bytes), out_.payloads.size()});
    out_.payloads.push_back(std::move(payload));
  }

  // The ranges of a TensorProto's fields of numbers and of external data; adjacent fields are one range.
  std::vector<Range> data_fields(Range message) const {
    std::vector<Range> out;
    Window window(*source_);
    wire::ProtobufReader reader(window, 1);
    wire::ProtobufMessage fields = reader.message(message.begin, message.end);
    for (wire::ProtobufField field; fields.next(field);) {
      const bool numbers = field.number != tensor::kStringData &&
                           std::ranges::find(TensorMessage::kTyped, field.number) != TensorMessage::kTyped.end();
      if (!numbers && field.number != tensor::kExternalData && field.number != tensor::kDataLocation) continue;
      if (!out.empty() && out.back().end == field.at)
        out.back().end = field.end;
      else
        out.push_back({field.at, field.end});
    }
    return out;
  }

  // A message whose length changes.
  struct Growing {
    Frame frame{};
    std::optional<std::uint64_t> outer{};  // its key
    std::int64_t delta = 0;
  };
  // `depth` of the frames `within` are around it.
  void grow(const Frame& frame, const std::vector<Frame>& within, std::size_t depth, std::int64_t delta) {
    Growing& it = growing_[frame.at];
    it.delta += delta;
    if (it.frame.body.size() > 0) return;
    it.frame = frame;
    if (depth == 0) return;
    it.outer = within[depth - 1].at;
    grow(within[depth - 1], within, depth - 1, 0);
  }

  // Inner messages have higher offsets, so go backwards.
  void change_lengths() {
    Window window(*source_);
    for (auto at = growing_.rbegin(); at != growing_.rend(); ++at) {
      const Growing& it = at->second;
      const Range body = it.frame.body;
      const auto head = window.from(it.frame.at, base::to_size(body.begin - it.frame.at));
      std::uint64_t tag = 0;
      const auto length_at =
          it.frame.at +
          static_cast<std::uint64_t>(wire::read_varint(head.data(), head.data() + head.size(), tag) - head.data());
      std::string length = varint(body.size() + static_cast<std::uint64_t>(it.delta));
      if (it.outer)
        growing_[*it.outer].delta +=
            it.delta + static_cast<std::int64_t>(length.size()) - static_cast<std::int64_t>(body.begin - length_at);
      edits_.push_back({{length_at, body.begin}, std::move(length)});
    }
  }

  void compose() {
    std::ranges::stable_sort(edits_, {}, [](const Edit& edit) { return std::pair(edit.range.begin, edit.range.end); });
    auto gaps = std::make_shared<std::vector<Gap>>(1);
    std::vector<core::Payload> ordered;
    std::uint64_t at = 0, total = 0;
    const auto close = [&](std::uint64_t upto, std::string bytes) {
      Gap& gap = gaps->back();
      gap.size += upto - at + bytes.size();
      gap.pieces.push_back({{at, upto}, std::move(bytes)});
    };
    for (Edit& edit : edits_) {
      close(edit.range.begin, std::move(edit.bytes));
      at = edit.range.end;
      if (!edit.payload) continue;
      core::Payload& payload = out_.payloads[*edit.payload];
      total += gaps->back().size + payload.stored_size;
      if (!ordered.empty()) payload.preamble_size = gaps->back().size;
      ordered.push_back(std::move(payload));
      gaps->emplace_back();
    }
    close(source_->size(), {});
    total += gaps->back().size;
    out_.payloads = std::move(ordered);
    out_.size = total;
    if (total > kMaxSize)
      return plan_items_.block(
          LossKind::layout, "file", core::bytes_text(total),
          "2 GiB or more, which readers of protocol buffers refuse: leave the model as it is, and write its "
          "external files with the package onnx");
    const auto source = source_;
    // The bytes before the first payload are the head, those after the last the tail; without payloads, all bytes are
    // the tail.
    if (!out_.payloads.empty()) out_.head = gaps->front().make(*source);
    out_.make_preamble = [gaps, source](std::size_t i, const core::Stored&) { return (*gaps)[i].make(*source); };
    out_.tail = [gaps, source](std::span<const core::Stored>) { return gaps->back().make(*source); };
  }

  const Context& context_;
  const std::shared_ptr<const Source> source_;  // the model to copy
  Model base_;
  Walked walked_;
  std::vector<std::optional<Tensor>> inputs_;  // by tensor of the base: what replaces it
  std::vector<Edit> edits_;
  std::map<std::uint64_t, Growing> growing_;  // by the offset of their fields
};

}  // namespace

core::WriteLayout layout(const Model& model, const Options& options, const Context& context) {
  return Planner(model, options, context).run();
}

}  // namespace weighbridge::onnx
