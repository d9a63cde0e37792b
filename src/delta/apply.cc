// SPDX-License-Identifier: Apache-2.0
// The model that patches make of a base: a view whose changed elements are computed from the base and the patch when
// they are read, in any order.
#include <algorithm>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/draft.h"
#include "core/model/view.h"
#include "core/writing/plan_items.h"
#include "delta/patch.h"
#include "weighbridge/view.h"

namespace weighbridge::delta {
namespace {

using PatchPtr = std::shared_ptr<const Patch>;

class ChangedElements final : public core::Elements {
 public:
  ChangedElements(core::ElementsPtr from, PatchPtr patch, const Change& change)
      : Elements(from->dtype(), from->count()), from_(std::move(from)), patch_(std::move(patch)), change_(change) {}

  std::uint64_t granularity() const noexcept override { return from_->granularity(); }
  std::uint64_t at_once() const noexcept override { return from_->at_once(); }
  void read(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context& context,
            codecs::CastTally* tally) const override {
    // A unit may have several elements, or an element several units: ranges begin and end at both.
    from_->read(first, n, out, context, tally);
    change(core::bytes_of(dtype(), first), out, context);
  }
  void stream(const Context& context, const core::ElementSink& sink, codecs::CastTally* tally) const override {
    if (core::divides(*from_, std::uint64_t{4} << 20)) return Elements::stream(context, sink, tally);
    std::uint64_t at = 0;
    std::vector<std::byte> copy;
    from_->stream(
        context,
        [&](std::span<const std::byte> piece) {
          copy.assign(piece.begin(), piece.end());
          change(std::exchange(at, at + piece.size()), copy, context);
          return sink(copy);
        },
        tally);
  }

 private:
  void change(std::uint64_t offset, std::span<std::byte> out, const Context& context) const {
    const std::uint64_t chunk = change_.chunk * change_.width;
    for (std::uint64_t end = offset + out.size(), at = offset; at < end;) {
      const std::uint64_t c = at / chunk, size = std::min((c + 1) * chunk, end) - at;
      if (change_.words_in(c) > 0)
        apply(change_, *patch_->decoded(change_, c, context), (at - c * chunk) / change_.width,
              out.subspan(base::to_size(at - offset), base::to_size(size)));
      at += size;
    }
  }

  core::ElementsPtr from_;
  PatchPtr patch_;
  const Change& change_;  // of the patch
};

std::vector<Value::Entry> changed_metadata(const Model& base, const Metadata& metadata) {
  std::vector<Value::Entry> out{base.attributes().begin(), base.attributes().end()};
  std::erase_if(out, [&](const Value::Entry& entry) {
    return std::ranges::find(metadata.unset, entry.first) != metadata.unset.end();
  });
  for (const auto& [key, value] : metadata.set) {
    const auto at = std::ranges::find(out, key, &Value::Entry::first);
    if (at == out.end())
      out.emplace_back(key, value);
    else
      at->second = value;
  }
  return out;
}

Model view_of(const Model& base, const PatchPtr& patch) {
  const codecs::Digest256 none{};
  core::Draft draft;
  draft.begin_view(base);
  std::vector<std::uint32_t> from_base;  // rows by tensor of the base, under the name in the result
  std::vector<std::vector<std::uint32_t>> results(base.size());
  std::vector<std::uint32_t> added;
  for (std::uint32_t i = 0; i < patch->rows.size(); ++i) {
    const Row& row = patch->rows[i];
    if (row.result == none) continue;
    const Change* const change = patch->change_of(row.name);
    if (change && change->op == Op::whole && row.base == none) {
      added.push_back(i);
      continue;
    }
    results[base[change ? std::string_view(change->from) : std::string_view(row.name)].index()].push_back(i);
  }
  std::vector<std::uint32_t> origins;  // tensors of the base
  const auto add = [&](std::uint32_t i) {
    const Row& row = patch->rows[i];
    const Change* const change = patch->change_of(row.name);
    const auto of_base = base.find(change ? std::string_view(change->from) : std::string_view(row.name));
    origins.push_back(of_base ? of_base->index() : core::kNone);
    if (!change || change->op == Op::rename) {
      draft.adopt(row.name, *of_base);
    } else if (change->op == Op::whole) {
      draft.adopt(row.name, change->tensor);
    } else {
      const Tensor from = *of_base;
      Form form;
      const Part part = from.part_count() == 1 ? from.main() : Part();
      if (from.part_count() != 1 || !measure(form, part.dtype(), part.shape()) || form.dtype != change->dtype ||
          form.shape != change->shape)
        base::malformed("delta/object",
                        "the tensor " + core::quoted(change->from) +
                            " of the base has another dtype or shape than the patch states",
                        row.name);
      add_computed(draft, row.name, from, std::make_shared<ChangedElements>(core::elements_of(part), patch, *change));
    }
  };
  for (const auto& rows : results)
    for (const std::uint32_t i : rows) add(i);
  for (const std::uint32_t i : added) add(i);
  draft.index_names();
  draft.set_attributes(changed_metadata(base, patch->metadata));
  const Model others[] = {patch->model};
  return core::made_with(draft.finish(), base, others, {}, {}, origins);
}

// Throws if the tensors that the patches changed are not what the last one states.
void check_result(const Model& result, std::span<const PatchPtr> patches, const Context& context) {
  const Patch& last = *patches.back();
  core::Draft draft;
  draft.begin_view(result);
  for (const Tensor& tensor : result) {
    const auto touches = [&](const PatchPtr& patch) { return patch->change_of(tensor.name()) != nullptr; };
    if (std::ranges::any_of(patches, touches)) draft.adopt(tensor.name(), tensor);
  }
  draft.index_names();
  const Model changed = draft.finish();
  const ContentDigests digests = content_digests(changed, context);
  for (std::uint32_t i = 0; i < changed.size(); ++i) {
    const Row* const row = last.find(changed.name(i));
    if (!row || row->result != digests.tensors[i].bytes)
      base::malformed("delta/result", "the patch makes another tensor than it states", changed.name(i));
  }
}

}  // namespace

void add_computed(core::Draft& draft, std::string_view name, const Tensor& from, core::ElementsPtr elements) {
  const std::uint32_t at = draft.add_tensor(name, from.layout(), from.dtype(), from.shape());
  core::TensorDraft tensor = draft.tensor(at);
  tensor.id(from.id()).layout_name(from.layout_name()).attributes({from.attributes().begin(), from.attributes().end()});
  if (is_quantized(from.layout())) tensor.block_type(from.block_type()).type_name(from.type_name());
  const Part part = from.main();
  draft.part(draft.add_part(part.role(), part.dtype(), part.shape(), Encoding::computed, {}, part.size()))
      .elements(std::move(elements));
}

Model unchecked(const Model& base, const Model& patch) { return view_of(base, Patch::require(patch, {})); }

}  // namespace weighbridge::delta

namespace weighbridge {

Model patched(const Model& base, std::span<const Model> patches, const Context& context) {
  using namespace delta;
  if (patches.empty()) base::misuse("patches", "there is no patch to apply");
  const auto chain = require_chain(patches, context);
  const Digest found = content_digest(base, context);
  if (found != chain[0]->base) {
    const std::string done = found == chain.back()->result ? ": it is the result already" : "";
    base::misuse("patch-base", "the patch is for a model with the content digest " + chain[0]->base.text() +
                                   ", and this one has " + found.text() + done);
  }
  Model out = base;
  for (const PatchPtr& patch : chain) out = view_of(out, patch);
  check_result(out, chain, context);
  return out;
}

}  // namespace weighbridge
