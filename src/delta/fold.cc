// SPDX-License-Identifier: Apache-2.0
// Combines patches without the models that they are about, and turns them around.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "base/endian.h"
#include "base/fail.h"
#include "core/writing/plan_items.h"
#include "delta/encode.h"

namespace weighbridge::delta {
namespace {

using PatchPtr = std::shared_ptr<const Patch>;
constexpr codecs::Digest256 kNone{};

template <class T> T load(const Words& words, std::size_t i) {
  return base::load_le<T>(words.words.data() + i * sizeof(T));
}

// What happens to one unit: a difference, an exclusive or, or a value, as the code says.
template <class T> T combined(Code code, T first, T second) {
  if (code == Code::sub) return zigzag(static_cast<T>(unzigzag(first) + unzigzag(second)));
  return code == Code::exclusive_or ? static_cast<T>(first ^ second) : second;
}

// Passes unit, first and second word to the sink, for each unit that one of them changes. `both` is whether all units
// are wanted.
template <class T, class Sink>
void merge(const Change& a, const Words& x, const Change& b, const Words& y, std::uint64_t units, Sink&& sink) {
  const auto word = [](const Change& change, const Words& words, std::size_t& next,
                       std::uint32_t unit) -> std::optional<T> {
    if (change.op == Op::dense) return load<T>(words, unit);
    if (next < words.at.size() && words.at[next] == unit) return load<T>(words, next++);
    return std::nullopt;
  };
  std::size_t i = 0, j = 0;
  for (std::uint32_t unit = 0; unit < units; ++unit) {
    if (a.op == Op::sparse && b.op == Op::sparse) {  // the next that one of them changes
      const std::uint32_t p = i < x.at.size() ? x.at[i] : UINT32_MAX, q = j < y.at.size() ? y.at[j] : UINT32_MAX;
      unit = std::min(p, q);
      if (unit == UINT32_MAX) return;
    }
    const auto first = word(a, x, i, unit), second = word(b, y, j, unit);
    if (first && second)
      sink(unit, combined<T>(b.code, *first, *second));
    else if (first || second)
      sink(unit, first ? *first : *second);
  }
}

// Collects words of a chunk, without those that change nothing.
template <class T> class Collector {
 public:
  Collector(const Form& form, std::uint64_t chunk, bool dense, Made& out) : code_(form.code), dense_(dense), out_(out) {
    const std::size_t n = static_cast<std::size_t>(form.units_in(chunk));
    out.changed = 0;
    out.count = dense ? n : 0;
    out.words.at.clear();
    out.words.words.assign(dense ? n * sizeof(T) : 0, std::byte{0});
  }
  void operator()(std::uint32_t unit, T word) {
    if (word == 0 && code_ != Code::set) return;
    ++out_.changed;
    std::size_t at = unit;
    if (!dense_) {
      at = out_.count++;
      out_.words.at.push_back(unit);
      out_.words.words.resize((at + 1) * sizeof(T));
    }
    base::store_le(out_.words.words.data() + at * sizeof(T), word);
  }

 private:
  Code code_;
  bool dense_;
  Made& out_;
};

[[noreturn]] void needs_model(std::string_view tensor, const std::string& why) {
  base::misuse("patch-fold", "the patches cannot be folded without the model: the tensor " + core::quoted(tensor) +
                                 " " + why + ". Apply them one after the other");
}

class Folder {
 public:
  Folder(PatchPtr first, PatchPtr second, const PatchOptions& options, const Context& context)
      : a_(std::move(first)), b_(std::move(second)), options_(options), context_(context) {}

  Model run() {
    std::map<std::string_view, Row> rows;
    for (const Row& row : a_->rows) rows[row.name].base = row.base;
    for (const Row& row : b_->rows) rows[row.name].result = row.result;
    std::erase_if(rows, [](const auto& each) { return each.second.base == kNone && each.second.result == kNone; });
    Writer writer(options_, context_, 0);
    std::vector<Row> list;
    for (auto& [name, row] : rows) {
      row.name = std::string(name);
      if (row.result != kNone) add(writer, row);
      list.push_back(row);
    }
    return writer.finish(list, metadata());
  }

 private:
  void add(Writer& writer, const Row& row) {
    const Change* const second = b_->change_of(row.name);
    if (second && second->op == Op::whole) return add_whole(writer, row, second->tensor);
    const std::string& middle = second ? second->from : row.name;
    const Change* const first = a_->change_of(middle);
    const std::string& from = first && first->op != Op::whole ? first->from : middle;
    const bool changes = second && second->op >= Op::sparse;
    if (first && first->op == Op::whole) {
      if (changes) needs_model(row.name, "is stored as it is by one patch and changed by the next");
      return add_whole(writer, row, first->tensor);
    }
    const Change* const only = first && first->op >= Op::sparse ? first : nullptr;
    if (from == row.name && row.base == row.result) return;  // back to what it was
    if (!only && !changes) return writer.add_rename(row.name, from);
    Job job{.name = row.name, .form = only ? *only : static_cast<const Form&>(*second)};
    if (only && changes) {
      if (only->code != second->code) needs_model(row.name, "is changed in two ways (sub, xor, set)");
      if (only->chunk != second->chunk || only->dtype != second->dtype || only->units != second->units)
        needs_model(row.name, "is divided into chunks in two ways");
    }
    job.form.from = from;
    job.make = [this, only, second = changes ? second : nullptr, form = job.form](std::uint64_t chunk, bool dense,
                                                                                  Made& out, const Context& context) {
      static const Words none{};
      const Change &x = only ? *only : *second, &y = second ? *second : x;
      const Words a = only ? a_->decode(x, chunk, context) : none, b = second ? b_->decode(y, chunk, context) : none;
      with_width(form.width, [&]<class T>(T) {
        Collector<T> collect(form, chunk, dense, out);
        if (only && second) return merge<T>(x, a, y, b, form.units_in(chunk), collect);
        const Change& one = only ? x : y;
        const Words& words = only ? a : b;
        for (std::size_t i = 0; i < words.words.size() / sizeof(T); ++i)
          collect(one.op == Op::dense ? static_cast<std::uint32_t>(i) : words.at[i], load<T>(words, i));
      });
    };
    writer.add(std::move(job));
  }

  static void add_whole(Writer& writer, const Row& row, const Tensor& tensor) { writer.add_whole(row.name, tensor); }

  Metadata metadata() const {
    Metadata out = b_->metadata;
    const auto has = [&](std::string_view key) {
      return std::ranges::find(b_->metadata.set, key, &Value::Entry::first) != b_->metadata.set.end() ||
             std::ranges::find(b_->metadata.unset, key) != b_->metadata.unset.end();
    };
    for (const auto& entry : a_->metadata.set)
      if (!has(entry.first)) out.set.push_back(entry);
    for (const auto& key : a_->metadata.unset)
      if (!has(key)) out.unset.push_back(key);
    std::ranges::sort(out.set, {}, &Value::Entry::first);
    std::ranges::sort(out.unset);
    return out;
  }

  const PatchPtr a_, b_;
  const PatchOptions& options_;
  const Context& context_;
};

}  // namespace
}  // namespace weighbridge::delta

namespace weighbridge {

Model fold_patches(std::span<const Model> patches, const PatchOptions& options, const Context& context) {
  using namespace delta;
  if (patches.size() < 2) base::misuse("patches", "there must be at least two patches to fold");
  const auto chain = require_chain(patches, context);
  Model out = Folder(chain[0], chain[1], options, context).run();
  for (std::size_t i = 2; i < chain.size(); ++i)
    out = Folder(Patch::require(out, context.limits), chain[i], options, context).run();
  return out;
}

Model reverse_patch(const Model& model, const PatchOptions& options, const Context& context) {
  using namespace delta;
  const auto patch = require_chain({&model, 1}, context)[0];
  const auto refuse = [](std::string_view what) {
    base::misuse("patch-reverse",
                 "the patch cannot be turned around: it " + std::string(what) + ". Make one from the models");
  };
  if (!patch->metadata.empty()) refuse("replaces metadata and does not hold the old ones");
  Writer writer(options, context, 0);
  std::vector<Row> rows;
  for (const Row& row : patch->rows) rows.push_back({row.name, row.result, row.base});
  std::vector<bool> made(rows.size());
  for (const Change& change : patch->changes) {
    const std::string& name = patch->rows[change.row].name;
    if (change.op == Op::whole && patch->rows[change.row].base == kNone) continue;  // removed again
    if (change.op == Op::whole || change.code == Code::set)
      refuse("does not hold the old values of the tensor " + core::quoted(name));
    made[static_cast<std::size_t>(patch->find(change.from) - patch->rows.data())] = true;
    if (change.op == Op::rename) {
      writer.add_rename(change.from, name);
      continue;
    }
    Job job{.name = change.from, .form = change};
    job.form.from = name;
    job.make = [patch, &change, form = job.form](std::uint64_t chunk, bool dense, Made& out, const Context& inner) {
      const Words words = patch->decode(change, chunk, inner);
      with_width(form.width, [&]<class T>(T) {
        Collector<T> collect(form, chunk, dense, out);
        for (std::size_t i = 0; i < words.words.size() / sizeof(T); ++i) {
          const T word = load<T>(words, i);
          collect(change.op == Op::dense ? static_cast<std::uint32_t>(i) : words.at[i],
                  form.code == Code::sub ? zigzag(static_cast<T>(T{0} - unzigzag(word))) : word);
        }
      });
    };
    writer.add(std::move(job));
  }
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].base == kNone && !made[i]) refuse("removes the tensor " + core::quoted(rows[i].name));
  return writer.finish(rows, {});
}

}  // namespace weighbridge
