// SPDX-License-Identifier: Apache-2.0
// Finds what differs between two models, as bits: which tensors correspond, and the changes of each chunk.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "core/model/draft.h"
#include "core/model/progress.h"
#include "core/payload/digest_nodes.h"
#include "core/payload/payload.h"
#include "core/payload/work.h"
#include "core/writing/plan_items.h"
#include "delta/encode.h"

namespace weighbridge::delta {
namespace {

// The changes from a to b, both of whole units.
template <class T> void compare(std::span<const std::byte> a, std::span<const std::byte> b, bool dense, Made& out) {
  const std::size_t n = b.size() / sizeof(T);
  if (out.words.words.size() < n * sizeof(T)) out.words.words.resize(n * sizeof(T));
  std::byte* to = out.words.words.data();
  if (dense) {
    std::uint64_t changed = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const T difference =
          static_cast<T>(base::load_le<T>(b.data() + i * sizeof(T)) - base::load_le<T>(a.data() + i * sizeof(T)));
      changed += difference != 0 ? 1 : 0;
      base::store_le(to + i * sizeof(T), zigzag(difference));
    }
    out.count = n;
    out.changed = changed;
    return;
  }
  if (out.words.at.size() < n) out.words.at.resize(n);
  std::uint32_t* at = out.words.at.data();
  std::size_t found = 0;
  const auto range = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const T difference =
          static_cast<T>(base::load_le<T>(b.data() + i * sizeof(T)) - base::load_le<T>(a.data() + i * sizeof(T)));
      at[found] = static_cast<std::uint32_t>(i);
      base::store_le(to + found * sizeof(T), zigzag(difference));
      found += difference != 0 ? 1 : 0;
    }
  };
  constexpr std::size_t kBlock = 32, kUnits = kBlock / sizeof(T);
  std::size_t i = 0;
  for (; i + kUnits <= n; i += kUnits) {
    std::uint64_t x[4], y[4];
    std::memcpy(x, a.data() + i * sizeof(T), kBlock);
    std::memcpy(y, b.data() + i * sizeof(T), kBlock);
    if (((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3])) != 0) range(i, i + kUnits);
  }
  range(i, n);
  out.changed = out.count = found;
}

// Whether the elements of b can be stored as changes of those of a.
bool is_alike(const Tensor& a, const Tensor& b) {
  const auto parameters = [](const Tensor& t) {
    std::vector<std::pair<std::string_view, std::string>> out;
    if (const BlockTypeInfo* type = t.block_type())
      for (const std::string_view key : type->parameters)
        if (const Value* value = t.attribute(key)) out.emplace_back(key, value->to_text());
    return out;
  };
  if (a.part_count() != 1 || b.part_count() != 1 || a.unsupported() || b.unsupported() ||
      a.layout() == Layout::structural || (is_quantized(a.layout()) && !a.block_type()))
    return false;
  const Part p = a.main(), q = b.main();
  return a.layout() == b.layout() && a.dtype() == b.dtype() && a.block_type() == b.block_type() &&
         std::ranges::equal(a.shape(), b.shape()) && p.role() == q.role() && p.dtype() == q.dtype() &&
         p.count() == q.count() && parameters(a) == parameters(b);
}

class Maker {
 public:
  Maker(const Model& base, const Model& result, const PatchOptions& options, const Context& context, bool digests)
      : base_(base), result_(result), options_(options), context_(context), digests_(digests) {}

  Model run() {
    for (const Model* model : {&base_, &result_})
      for (const Tensor& tensor : *model)
        if (tensor.name().starts_with(kReserved))
          base::misuse("delta-name",
                       "the tensor " + core::quoted(tensor.name()) + " has a name that patches use themselves");
    std::map<std::string_view, Row> rows;
    for (const Model* model : {&base_, &result_})
      for (std::uint32_t i = 0; i < model->size(); ++i) rows[model->name(i)].name = std::string(model->name(i));
    core::Work work;
    std::uint64_t total = 0;
    std::vector<std::pair<Row*, std::pair<Tensor, Tensor>>> pairs;
    std::vector<bool> rest_of_base(base_.size(), true), rest_of_result(result_.size(), true);
    for (auto& [name, row] : rows) {
      const auto from = base_.find(name), to = result_.find(name);
      if (!from || !to || !is_alike(*from, *to)) continue;
      for (const Tensor* tensor : {&*from, &*to}) work.add(tensor->main());
      total += to->main().size();
      pairs.push_back({&row, {*from, *to}});
      rest_of_base[from->index()] = rest_of_result[to->index()] = false;
    }
    work.require(context_.limits);
    Writer writer(options_, context_, total);
    for (const auto& [row, pair] : pairs) add_pair(writer, *row, pair.first, pair.second);
    // Names that one side lacks, or where something else than elements differs.
    if (digests_)
      digest_rest(base_, rest_of_base, rows, &Row::base), digest_rest(result_, rest_of_result, rows, &Row::result);
    std::map<codecs::Digest256, std::string_view> gone;  // tensors that another name may have
    for (const auto& [name, row] : rows)
      if (!result_.find(name)) gone.emplace(row.base, name);
    for (const auto& [name, row] : rows) {
      const auto to = result_.find(name);
      if (!to || !rest_of_result[to->index()] || (row.base == row.result && digests_)) continue;
      const auto moved = base_.find(name) ? gone.end() : gone.find(row.result);
      if (moved != gone.end())
        writer.add_rename(row.name, std::string(moved->second));
      else
        writer.add_whole(row.name, *to);
    }
    std::vector<Row> list;
    writer.flush();  // sets the nodes
    for (auto& [name, row] : rows) list.push_back(std::move(row));
    return writer.finish(list, options_.metadata ? changes_of_metadata() : Metadata{});
  }

 private:
  // Only containers of one format have metadata that mean the same.
  Metadata changes_of_metadata() const {
    Metadata out;
    if (base_.format() != result_.format()) return out;
    for (const auto& [key, value] : result_.attributes()) {
      const Value* const old = base_.attribute(key);
      if (!is_beside(key) && (!old || !(*old == value))) out.set.emplace_back(key, value);
    }
    for (const auto& [key, value] : base_.attributes())
      if (!is_beside(key) && !result_.attribute(key)) out.unset.push_back(key);
    std::ranges::sort(out.set, {}, &Value::Entry::first);
    std::ranges::sort(out.unset);
    return out;
  }

  void digest_rest(const Model& model, const std::vector<bool>& rest, std::map<std::string_view, Row>& rows,
                   codecs::Digest256 Row::*side) const {
    core::Draft draft;
    draft.begin_view(model);
    draft.adopt_marked(model, rest);
    draft.index_names();
    const Model view = draft.finish();
    const ContentDigests digests = about(model, [&] { return content_digests(view, context_); });
    for (std::uint32_t i = 0; i < view.size(); ++i) rows[view.name(i)].*side = digests.tensors[i].bytes;
  }

  // Compares the pair and hashes both sides in one pass.
  void add_pair(Writer& writer, Row& row, const Tensor& from, const Tensor& to) {
    Job job{.name = row.name};
    const Part part = to.main();
    measure(job.form, part.dtype(), part.shape());
    job.form.from = job.name;
    job.form.chunk = chunk_of(part.dtype());
    struct Side {
      Part part;
      core::ElementsPtr elements{};
      core::Node node;
    };
    struct Pair {
      Pair(Side a, Side b) : sides{std::move(a), std::move(b)} {}
      std::mutex mutex{};
      Side sides[2];
    };
    const auto side = [](const Tensor& t) {
      return Side{.part = t.main(), .node = begin_part(core::digest_input(t, t.main(), kDigestVersion))};
    };
    const auto pair = std::make_shared<Pair>(side(from), side(to));
    // Compressed parts are decoded when their turn comes; large ones have it now.
    if (job.form.chunks() > kSmall)
      for (Side& each : pair->sides) each.elements = in_any_order(each.part, options_.scratch, context_);
    job.make = [this, pair, form = job.form, &progress = writer.progress()](std::uint64_t chunk, bool dense, Made& out,
                                                                            const Context& context) {
      {
        const std::lock_guard lock(pair->mutex);
        for (Side& each : pair->sides)
          if (!each.elements) each.elements = in_any_order(each.part, options_.scratch, context_);
      }
      for (const int i : {0, 1}) {
        read_chunk(*pair->sides[i].elements, form, chunk, out.bytes[i], context);
        if (!out.hash) continue;
        std::vector<std::span<const std::byte>> leaves;
        for (std::span<const std::byte> left = out.bytes[i]; !left.empty(); left = left.subspan(leaves.back().size()))
          leaves.push_back(left.first(std::min(left.size(), core::kLeaf)));
        out.leaves[i].resize(leaves.size());
        core::hash_leaves(leaves, out.leaves[i]);
      }
      with_width(form.width, [&]<class T>(T) { compare<T>(out.bytes[0], out.bytes[1], dense, out); });
      progress.add(out.hash || !digests_ ? out.bytes[1].size() : 0);
    };
    if (digests_)
      job.hashed = [pair](const std::vector<codecs::Digest256>& a, const std::vector<codecs::Digest256>& b) {
        pair->sides[0].node.bytes(std::as_bytes(std::span(a)));
        pair->sides[1].node.bytes(std::as_bytes(std::span(b)));
      };
    job.done = [pair, &row, from, to](std::uint64_t changed) {
      const auto node = [](const Tensor& tensor, Side& each) {
        const std::pair<std::string_view, codecs::Digest256> parts[] = {{each.part.role(), each.node.finish()}};
        return core::tensor_node(tensor, parts, kDigestVersion);
      };
      row.base = node(from, pair->sides[0]);
      row.result = node(to, pair->sides[1]);
      for (Side& each : pair->sides) each.elements = nullptr;
      return changed > 0;
    };
    writer.add(std::move(job));
  }

  const Model &base_, &result_;
  const PatchOptions& options_;
  const Context& context_;
  const bool digests_;
};

}  // namespace

Model make(const Model& base, const Model& result, const PatchOptions& options, const Context& context, bool digests) {
  return Maker(base, result, options, context, digests).run();
}

}  // namespace weighbridge::delta

namespace weighbridge {

Model make_patch(const Model& base, const Model& result, const PatchOptions& options, const Context& context) {
  return delta::make(base, result, options, context, true);
}

}  // namespace weighbridge
