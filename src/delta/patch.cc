// SPDX-License-Identifier: Apache-2.0
// Reads the index of a patch and decodes its chunks. Every number is checked before it is used; a chunk's positions are
// checked once, when it is decoded.
#include "delta/patch.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/zstd.h"
#include "core/model/draft.h"
#include "core/model/progress.h"
#include "core/model/view.h"
#include "core/model/words.h"
#include "core/payload/digest_nodes.h"
#include "core/payload/payload.h"
#include "core/reading/rules.h"

namespace weighbridge::delta {
namespace {

namespace rules = core::rules;

constexpr std::string_view kOps[] = {"whole", "rename", "sparse", "dense"}, kCodes[] = {"sub", "xor", "set"};
constexpr std::uint64_t kKept = std::uint64_t{48} << 20;  // bytes of decoded chunks

std::string_view text_of(const Attributes& attributes, std::string_view key) {
  const Value* const value = attributes.find(key);
  return value ? value->as_text().value_or(std::string_view()) : std::string_view();
}
template <class T> bool parse_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && (text.size() == 1 || text.front() != '0');
}
// Decimal numbers with commas between them; an empty text has none.
template <class T> bool parse_list(std::string_view text, std::vector<T>& out) {
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (!parse_number(text.substr(0, comma), out.emplace_back())) return false;
    if (comma + 1 == text.size()) return false;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return true;
}

std::string shape_text(Shape shape) {
  std::string out;
  for (const std::uint64_t d : shape) out.append(out.empty() ? "[" : ", ").append(std::to_string(d));
  return out.empty() ? "[]" : out + "]";
}

[[noreturn]] void refuse(const Rule& rule, std::string_view tensor, const core::Said& expected,
                         const core::Said& found) {
  throw Error(core::Findings::make(rule, {.tensor = tensor}, expected, found));
}

class Reader {
 public:
  Reader(Patch& patch, const Limits& limits, core::Findings& findings)
      : patch_(patch), model_(patch.model), limits_(limits), findings_(findings) {}

  bool run() { return root() && metadata() && rows() && ids() && objects(); }

 private:
  bool root() {
    const auto attributes = model_.attributes();
    if (const Value* version = attributes.find(kVersion); !version || version->as_u64() != 1)
      return findings_.fail(rules::kDeltaVersion, {}, "1", version ? version->to_text() : std::string("none"));
    for (const auto& [key, digest] : {std::pair(kBase, &patch_.base), std::pair(kResult, &patch_.result)}) {
      const auto parsed = parse_digest(text_of(attributes, key));
      if (!parsed || parsed->version != kDigestVersion)
        return findings_.fail(rules::kDeltaRoot, {}, {"wb2: and 64 digits in ", key},
                              {core::in_quotes(text_of(attributes, key))});
      *digest = *parsed;
    }
    return true;
  }

  bool metadata() {
    if (const auto object = model_.find(kChanged)) {
      for (const auto& [key, value] : object->attributes()) {
        if (key.starts_with(kSet)) patch_.metadata.set.emplace_back(key.substr(1), value);
        if (key.starts_with(kUnset)) patch_.metadata.unset.push_back(key.substr(1));
      }
      std::ranges::sort(patch_.metadata.set, {}, &Value::Entry::first);
      std::ranges::sort(patch_.metadata.unset);
    }
    const std::string_view stated = text_of(model_.attributes(), kMetadata);
    if (const std::string made = patch_.metadata.digest(); made != stated)
      return findings_.fail(rules::kDeltaMetadata, {}, {std::string_view(made)},
                            {core::in_quotes(stated, core::kWhole)});
    for (const auto& [key, value] : patch_.metadata.set)
      if (is_beside(key))
        return findings_.fail(rules::kDeltaMetadata, {}, "keys of the weights' own metadata", {core::in_quotes(key)});
    return true;
  }

  // The bytes of one of the objects that are not tensors.
  std::optional<std::vector<std::byte>> bytes_of(std::string_view name) {
    const auto tensor = model_.find(name);
    if (!tensor || tensor->unsupported() || tensor->layout() != Layout::dense || tensor->dtype() != DType::u8) {
      findings_.report(rules::kDeltaNames, {}, {"an object ", name, " of u8"}, {});
      return std::nullopt;
    }
    const Part part = tensor->main();
    if (part.size() > limits_.header)
      base::over_limit("header", "the names or nodes of a patch exceed the limit", part.size());
    std::vector<std::byte> out(base::to_size(part.size()));
    part.read_range(0, part.size(), out, {.limits = limits_});
    return out;
  }

  bool rows() {
    const auto names = bytes_of(kNames);
    const auto nodes = names ? bytes_of(kNodes) : std::nullopt;
    if (!nodes) return false;
    if (nodes->size() % 64 != 0)
      return findings_.fail(rules::kDeltaNames, {.tensor = kNodes}, core::multiple_of(64, " bytes"), {nodes->size()});
    const std::byte* node = nodes->data();
    const std::span<const std::byte> all(*names);
    std::size_t at = 0;
    patch_.rows.reserve(nodes->size() / 64);
    for (std::size_t left = nodes->size() / 64; left > 0; --left, node += 64) {
      if (all.size() - at < 4)
        return findings_.fail(rules::kDeltaNames, {.tensor = kNames}, "a name for each node", {});
      const std::uint32_t size = base::load_le<std::uint32_t>(all.data() + at);
      at += 4;
      if (size > all.size() - at)
        return findings_.fail(rules::kDeltaNames, {.tensor = kNames}, core::at_most(all.size() - at), {size});
      Row row{.name = std::string(reinterpret_cast<const char*>(all.data()) + at, size)};
      at += size;
      std::memcpy(row.base.data(), node, 32);
      std::memcpy(row.result.data(), node + 32, 32);
      const bool empty = row.base == codecs::Digest256{} && row.result == codecs::Digest256{};
      if (empty || row.name.starts_with(kReserved) || (!patch_.rows.empty() && patch_.rows.back().name >= row.name))
        return findings_.fail(rules::kDeltaNames, {.tensor = kNames}, "names in order, each with a node",
                              {core::in_quotes(row.name)});
      patch_.rows.push_back(std::move(row));
    }
    return at == all.size() ||
           findings_.fail(rules::kDeltaNames, {.tensor = kNames}, {at, " bytes of names"}, {all.size()});
  }

  bool ids() {
    for (const auto& [side, stated, key] :
         {std::tuple(&Row::base, patch_.base, kBase), std::tuple(&Row::result, patch_.result, kResult)})
      if (const Digest made = id_of(patch_.rows, side); made != stated)
        return findings_.fail(rules::kDeltaNodes, {}, {stated.text(), " as ", key, " states"}, {made.text()});
    return true;
  }

  bool objects() {
    const std::uint64_t before = findings_.errors();
    for (std::uint32_t i = 0; i < model_.size(); ++i) {
      const Tensor tensor = model_[core::by_name(model_)[i]];
      if (tensor.name() == kNames || tensor.name() == kNodes || tensor.name() == kChanged) continue;
      object(tensor);
    }
    if (findings_.errors() != before) return false;
    for (const Row& row : patch_.rows) {
      if (row.result == codecs::Digest256{} || patch_.change_of(row.name) || row.base == row.result) continue;
      return findings_.fail(rules::kDeltaRow, {.tensor = row.name}, "an object, since its nodes differ", "none");
    }
    return true;
  }

  bool object(const Tensor& tensor) {
    const core::At at{.tensor = tensor.name()};
    const Row* const row = patch_.find(tensor.name());
    if (!row || row->result == codecs::Digest256{})
      return findings_.fail(rules::kDeltaRow, at, "a tensor of the result", "a name without a node");
    Change change;
    change.tensor = tensor;
    change.row = static_cast<std::uint32_t>(row - patch_.rows.data());
    const auto attributes = tensor.attributes();
    change.from = attributes.find(kFrom) ? std::string(text_of(attributes, kFrom)) : row->name;
    if (attributes.find(kOp)) {
      const auto* const op = std::ranges::find(kOps, text_of(attributes, kOp));
      change.op = static_cast<Op>(op - kOps);
      if (op == std::end(kOps) || change.op == Op::whole)
        return findings_.fail(rules::kDeltaObject, at, "sparse, dense or rename",
                              {core::in_quotes(text_of(attributes, kOp))}, kOp);
      const Row* const from = patch_.find(change.from);
      if (!from || from->base == codecs::Digest256{})
        return findings_.fail(rules::kDeltaRow, at, "a tensor of the base", {core::in_quotes(change.from)}, kFrom);
      if (change.op == Op::rename) {
        if (from->base != row->result)
          return findings_.fail(rules::kDeltaRow, at, "the same node under both names", {core::in_quotes(change.from)},
                                kFrom);
      } else if (!coded(change, attributes, at)) {
        return false;
      }
    }
    patch_.changes.push_back(std::move(change));
    return true;
  }

  bool coded(Change& change, const Attributes& attributes, const core::At& at) {
    const auto bad = [&](std::string_view key, const core::Said& expected) {
      const Value* const value = attributes.find(key);
      return findings_.fail(rules::kDeltaObject, at, expected,
                            value ? value->to_text().substr(0, 100) : std::string("none"), key);
    };
    const auto number = [&](std::string_view key, std::uint64_t usual) {
      const Value* const value = attributes.find(key);
      return value ? value->as_u64().value_or(0) : usual;
    };
    const auto* const code = attributes.find(kCode) ? std::ranges::find(kCodes, text_of(attributes, kCode)) : kCodes;
    change.code = static_cast<Code>(code - kCodes);
    if (code == std::end(kCodes) || (change.op == Op::dense && change.code == Code::set))
      return bad(kCode, "sub, xor, or with sparse set");
    const auto dtype = dtype_from_name(text_of(attributes, kDtype));
    if (!dtype) return bad(kDtype, "a dtype");
    std::vector<std::uint64_t> shape;
    if (!attributes.find(kShape) || !parse_list(text_of(attributes, kShape), shape) || shape.size() > 64 ||
        !measure(change, *dtype, shape))
      return bad(kShape, "sizes, with commas between them");
    const std::uint64_t bytes = change.units * change.width;
    if (bytes > limits_.decoded)
      base::over_limit("decoded", "the tensor " + core::quoted(change.tensor.name()) + " of a patch exceeds the limit",
                       bytes);
    change.chunk = number(kChunk, chunk_of(*dtype));
    if (change.chunk < kLeastChunk || change.chunk > kMostChunk || change.chunk % (info(*dtype).bits == 6 ? 3 : 1) != 0)
      return bad(kChunk, {kLeastChunk, " to ", kMostChunk, " elements"});
    const std::uint64_t chunks = change.chunks();
    const Part data = change.tensor.part_count() > 0 ? change.tensor.main() : Part();
    if (change.op == Op::sparse) {
      change.gap = static_cast<std::uint32_t>(std::min<std::uint64_t>(number(kGap, kUsualGap), 5));
      if (change.gap < 1 || change.gap > 4) return bad(kGap, "1 to 4");
      if (chunks == 1 && !attributes.find(kCounts))
        change.counts = {
            static_cast<std::uint32_t>(std::min<std::uint64_t>(data.size() / change.planes(), UINT32_MAX))};
      else if (!parse_list(text_of(attributes, kCounts), change.counts) || change.counts.size() != chunks)
        return bad(kCounts, {chunks, " counts"});
      for (std::uint64_t c = 0; c < chunks; ++c)
        if (change.counts[base::to_size(c)] > change.units_in(c))
          return findings_.fail(rules::kDeltaCount, at, core::at_most(change.units_in(c)),
                                {change.counts[base::to_size(c)]}, {"chunk ", c});
    }
    std::uint64_t total = 0;
    change.begin.reserve(base::to_size(chunks));
    for (std::uint64_t c = 0; c < chunks; ++c) {
      change.begin.push_back(total);
      total += change.words_in(c) * change.planes();
    }
    if (change.tensor.unsupported() || change.tensor.layout() != Layout::dense || data.dtype() != DType::u8 ||
        data.size() != total)
      return findings_.fail(rules::kDeltaLength, at, {total, " bytes of u8"}, {data.size()});
    return frames(change, data, text_of(attributes, kFrames));
  }

  // Where the frames are, if the list is about the bytes that are stored: another tool may have encoded them again.
  bool frames(Change& change, const Part& data, std::string_view list) {
    const auto extent = data.extent();
    if (!extent || list.empty() || data.encoding() != Encoding::zstd || !parse_list(list, change.frames))
      return drop(change);
    std::uint64_t offset = 0;
    std::uint32_t next = 0;
    for (std::uint64_t c = 0; c < change.chunks(); ++c) {
      change.first.push_back(next);
      change.stored.push_back(offset);
      for (std::uint32_t p = 0; change.words_in(c) > 0 && p < change.planes(); ++p, ++next) {
        if (next >= change.frames.size()) return drop(change);
        offset += change.frames[next];
      }
    }
    change.stored.push_back(offset);
    if (next != change.frames.size() || offset != extent->length) return drop(change);
    return true;
  }
  static bool drop(Change& change) {
    change.frames.clear();
    change.first.clear();
    change.stored.clear();
    return true;
  }

  Patch& patch_;
  const Model& model_;
  const Limits& limits_;
  core::Findings& findings_;
};

// No patch has a tensor without a digest, such as one of an unknown dtype.
std::string digest_of_whole(const Tensor& tensor, const Context& context) {
  try {
    return codecs::to_hex(content_digest(tensor, context).bytes);
  } catch (const Error& error) {
    if (error.kind() != Kind::unsupported) throw;
    return error.what();
  }
}

}  // namespace

std::string_view name(Op op) noexcept { return kOps[static_cast<std::size_t>(op)]; }
std::string_view name(Code code) noexcept { return kCodes[static_cast<std::size_t>(code)]; }

std::uint64_t chunk_of(DType dtype) noexcept { return info(dtype).bits == 6 ? kUsualChunk / 4 * 3 : kUsualChunk; }

bool measure(Form& form, DType dtype, Shape shape) {
  const auto count = base::element_count(shape);
  const auto bytes = count ? packed_size(dtype, *count) : std::nullopt;
  if (!bytes) return false;
  form.dtype = dtype;
  form.shape.assign(shape.begin(), shape.end());
  form.width = std::max<std::uint32_t>(info(dtype).swap_bytes, 1);
  form.units = *bytes / form.width;
  return true;
}

Digest id_of(const std::vector<Row>& rows, codecs::Digest256 Row::*side) {
  const auto there = [&](const Row& row) { return row.*side != codecs::Digest256{}; };
  core::Node root('M', kDigestVersion);
  root.u64(static_cast<std::uint64_t>(std::ranges::count_if(rows, there)));
  for (const Row& row : rows) {
    if (!there(row)) continue;
    root.text(row.name);
    root.bytes(row.*side);
  }
  return {root.finish(), kDigestVersion};
}

std::string Metadata::digest() const {
  if (empty()) return "keep";
  core::Node node('A', kDigestVersion);
  node.u64(set.size());
  for (const auto& [key, value] : set) {
    node.text(key);
    node.text(value.to_text());
  }
  node.u64(unset.size());
  for (const std::string& key : unset) node.text(key);
  return "sha256:" + codecs::to_hex(node.finish());
}

std::shared_ptr<const Patch> Patch::read(const Model& model, const Limits& limits, core::Findings& findings) {
  auto patch = std::make_shared<Patch>();
  patch->model = model;
  return Reader(*patch, limits, findings).run() ? patch : nullptr;
}

std::shared_ptr<const Patch> Patch::require(const Model& model, const Limits& limits) {
  if (!is_patch(model))
    base::misuse("not-a-patch", "the file is not a patch: it lacks the metadata " + std::string(kVersion));
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  auto patch = read(model, limits, findings);
  if (!patch) throw Error(*report.first_error());
  return patch;
}

const Row* Patch::find(std::string_view name) const noexcept {
  const auto at = std::ranges::lower_bound(rows, name, {}, [](const Row& row) { return std::string_view(row.name); });
  return at != rows.end() && at->name == name ? &*at : nullptr;
}
const Change* Patch::change_of(std::string_view name) const noexcept {
  const auto at =
      std::ranges::lower_bound(changes, name, {}, [](const Change& change) { return change.tensor.name(); });
  return at != changes.end() && at->tensor.name() == name ? &*at : nullptr;
}

std::string Patch::other_change() const {
  constexpr codecs::Digest256 kAbsent{};
  if (!metadata.empty()) return "changes metadata";
  for (const Row& row : rows)
    if ((row.base == kAbsent) != (row.result == kAbsent))
      return (row.base == kAbsent ? "adds the tensor " : "removes the tensor ") + core::quoted(row.name);
  for (const Change& change : changes)
    if (const std::string& name = rows[change.row].name; change.op < Op::sparse || change.from != name)
      return "replaces or renames the tensor " + core::quoted(name);
  return {};
}

// A compressed stream of several chunks is decoded once and held.
void Patch::read_in_order(const Change& change, std::uint64_t begin, std::span<std::byte> out,
                          const Context& context) const {
  const Part data = change.tensor.main();
  if (!change.is_in_order() || data.encoding() == Encoding::raw)
    return data.read_range(begin, out.size(), out, context);
  const std::lock_guard lock(mutex_);
  if (held_of_ != &change) {
    if (data.size() > context.limits.memory)
      base::over_limit("memory",
                       "the changes of the tensor " + core::quoted(change.tensor.name()) +
                           " are one compressed stream, which does not fit the limit",
                       data.size());
    held_of_ = nullptr;
    held_.resize(base::to_size(data.size()));
    data.read_range(0, data.size(), held_, context);
    held_of_ = &change;
  }
  std::memcpy(out.data(), held_.data() + begin, out.size());
}

Words Patch::decode(const Change& change, std::uint64_t c, const Context& context) const {
  const std::string_view tensor = change.tensor.name();
  const auto n = base::to_size(change.words_in(c));
  const std::uint32_t planes = change.planes();
  Words out;
  if (n == 0) return out;
  const Part data = change.tensor.main();
  std::vector<std::byte> bytes(n * planes);
  if (change.stored.empty()) {
    read_in_order(change, change.begin[base::to_size(c)], bytes, context);
  } else {
    const Extent extent = *data.extent();
    const std::uint64_t begin = change.stored[base::to_size(c)];
    std::vector<std::byte> stored(base::to_size(change.stored[base::to_size(c + 1)] - begin));
    model.sources()[extent.source]->read_at(extent.offset + begin, stored);
    std::span<const std::byte> left(stored);
    for (std::uint32_t p = 0; p < planes; ++p) {
      const auto frame = left.first(change.frames[base::to_size(change.first[base::to_size(c)] + p)]);
      left = left.subspan(frame.size());
      if (!codecs::is_one_frame(frame, n))
        refuse(rules::kDeltaFrame, tensor, {"one zstd frame that states ", core::in_bytes(n)},
               {core::in_bytes(frame.size()), ", chunk ", c, ", plane ", p});
      const auto made = codecs::decode(codecs::kZstd, frame, std::span(bytes).subspan(p * n, n));
      if (!made.ok())
        refuse(rules::kDeltaFrame, tensor, {"a frame of ", core::in_bytes(n)}, {std::string_view(made.sentence)});
    }
  }
  const std::byte* plane = bytes.data();
  if (change.op == Op::sparse) {
    out.at.resize(n);
    std::uint64_t position = UINT64_MAX;  // before the first
    for (std::size_t i = 0; i < n; ++i) {
      std::uint32_t gap = 0;
      for (std::uint32_t b = 0; b < change.gap; ++b) gap |= std::to_integer<std::uint32_t>(plane[b * n + i]) << 8 * b;
      position += std::uint64_t{gap} + 1;
      out.at[i] = static_cast<std::uint32_t>(position);
    }
    // Positions ascend, and none exceeds 2^22 * 2^32: the last one is the largest.
    if (position >= change.units_in(c))
      refuse(rules::kDeltaGap, tensor, {"positions below ", change.units_in(c)}, {position, " in chunk ", c});
    plane += n * change.gap;
  }
  out.words.resize(n * change.width);
  with_width(change.width, [&]<class T>(T) {
    std::byte* to = out.words.data();
    for (std::size_t i = 0; i < n; ++i, to += sizeof(T)) {
      T word = 0;
      for (std::size_t b = 0; b < sizeof(T); ++b)
        word = static_cast<T>(word | static_cast<T>(std::to_integer<T>(plane[b * n + i]) << 8 * b));
      base::store_le(to, word);
    }
  });
  return out;
}

std::shared_ptr<const Words> Patch::decoded(const Change& change, std::uint64_t chunk, const Context& context) const {
  {
    const std::lock_guard lock(mutex_);
    for (const Kept& kept : kept_)
      if (kept.change == &change && kept.chunk == chunk) return kept.words;
  }
  auto words = std::make_shared<const Words>(decode(change, chunk, context));
  const std::lock_guard lock(mutex_);
  kept_.push_back({&change, chunk, words});
  std::uint64_t held = 0;
  std::size_t keep = 0;
  for (; keep < kept_.size(); ++keep) {
    const Words& w = *kept_[kept_.size() - 1 - keep].words;
    held += w.at.size() * sizeof(std::uint32_t) + w.words.size();
    if (keep > 0 && held > kKept) break;
  }
  kept_.erase(kept_.begin(), kept_.end() - static_cast<std::ptrdiff_t>(keep));
  return words;
}

void apply(const Form& form, const Words& words, std::uint64_t first, std::span<std::byte> out) {
  with_width(form.width, [&]<class T>(T) {
    const std::size_t n = out.size() / sizeof(T);
    const auto put = [&](std::byte* to, const std::byte* from) {
      const T word = base::load_le<T>(from), old = base::load_le<T>(to);
      base::store_le(to, static_cast<T>(form.code == Code::sub            ? old + unzigzag(word)
                                        : form.code == Code::exclusive_or ? old ^ word
                                                                          : word));
    };
    if (form.op == Op::dense) {
      const std::byte* from = words.words.data() + first * sizeof(T);
      for (std::size_t i = 0; i < n; ++i) put(out.data() + i * sizeof(T), from + i * sizeof(T));
      return;
    }
    const auto begin = std::ranges::lower_bound(words.at, first),
               end = std::lower_bound(begin, words.at.end(), first + n);
    const std::byte* from = words.words.data() + (begin - words.at.begin()) * static_cast<std::ptrdiff_t>(sizeof(T));
    for (auto at = begin; at != end; ++at, from += sizeof(T)) put(out.data() + (*at - first) * sizeof(T), from);
  });
}

void Patch::check_data(const Context& context, core::Findings& findings) const {
  struct Task {
    std::uint32_t change;
    std::uint64_t chunk;
  };
  std::vector<Task> tasks;
  std::uint64_t total = 0;
  for (std::uint32_t i = 0; i < changes.size(); ++i) {
    total += changes[i].tensor.part_count() > 0 ? changes[i].tensor.main().size() : 0;
    const bool in_order = changes[i].op < Op::sparse || changes[i].is_in_order();
    for (std::uint64_t c = 0; c < (in_order ? 1 : changes[i].chunks()); ++c) tasks.push_back({i, c});
  }
  std::vector<std::optional<Finding>> faults(changes.size());
  std::mutex mutex;
  core::Progress progress(context, total);
  core::executor_of(context).for_each(tasks.size(), [&](std::uint64_t t) {
    const Change& change = changes[tasks[base::to_size(t)].change];
    const Context inner = progress.inner();
    try {
      if (change.op == Op::whole) {
        const std::string stated = codecs::to_hex(rows[change.row].result),
                          made = digest_of_whole(change.tensor, inner);
        if (made != stated) refuse(rules::kDeltaNode, change.tensor.name(), {stated}, {made});
      } else if (change.op != Op::rename) {
        for (std::uint64_t c = tasks[base::to_size(t)].chunk;
             c < (change.is_in_order() ? change.chunks() : tasks[base::to_size(t)].chunk + 1); ++c) {
          decode(change, c, inner);
          progress.add(change.words_in(c) * change.planes());
        }
      }
    } catch (const Error& error) {
      if (error.kind() != Kind::malformed) throw;
      const std::lock_guard lock(mutex);
      auto& fault = faults[tasks[base::to_size(t)].change];
      if (!fault) fault = error.finding();
    }
  });
  progress.finish();
  for (auto& fault : faults)
    if (fault) findings.report(std::move(*fault));
  for (const Change& change : changes)
    if (change.is_in_order()) {
      findings.report(rules::kDeltaReencoded, {.tensor = change.tensor.name()});
      break;
    }
}

PatchInfo Patch::info() const {
  PatchInfo out{.base = base, .result = result, .replaces_metadata = !metadata.empty()};
  const codecs::Digest256 none{};
  std::vector<std::string_view> moved;
  for (const Change& change : changes) {
    const Row& row = rows[change.row];
    const bool whole = change.op == Op::whole, renamed = change.from != row.name;
    if (renamed) moved.push_back(change.from);
    PatchInfo::Change one{.name = row.name,
                          .what = name(change.op),
                          .from = renamed ? change.from : std::string(),
                          .elements = change.units};
    if (whole)
      one.type = std::string(change.tensor.type_name()) + " " + shape_text(change.tensor.shape());
    else if (change.op != Op::rename)
      one.type = std::string(name(change.dtype)) + " " + shape_text(change.shape);
    if (change.op != Op::rename)
      for (const Part& part : change.tensor.parts()) one.bytes += part.extent() ? part.extent()->length : part.size();
    for (std::uint64_t c = 0; c < change.chunks(); ++c) one.differing += change.words_in(c);
    if (whole)
      ++(row.base == none ? out.added : out.replaced);
    else
      out.renamed += renamed ? 1 : 0;
    out.changed += change.op >= Op::sparse ? 1 : 0;
    out.elements += one.elements;
    out.differing += one.differing;
    out.bytes += one.bytes;
    out.reencoded |= change.is_in_order();
    out.changes.push_back(std::move(one));
  }
  std::ranges::sort(moved);
  for (const Row& row : rows) {
    if (row.result != none)
      ++out.tensors;
    else if (!std::ranges::binary_search(moved, std::string_view(row.name)))
      ++out.removed;
  }
  return out;
}

std::vector<std::shared_ptr<const Patch>> require_chain(std::span<const Model> patches, const Context& context) {
  std::vector<std::shared_ptr<const Patch>> chain;
  for (const Model& patch : patches)
    chain.push_back(about(patch, [&] { return Patch::require(patch, context.limits); }));
  for (std::size_t i = 1; i < chain.size(); ++i)
    if (chain[i]->base != chain[i - 1]->result)
      base::misuse_of(core::called(patches[i], i), "patch-chain",
                      "the patch begins with " + chain[i]->base.text() + ", and the one before it, " +
                          core::quoted(core::called(patches[i - 1], i - 1)) + ", ends with " +
                          chain[i - 1]->result.text());
  return chain;
}

void check(const Model& model, const Context& context, core::Findings& findings) {
  if (!is_patch(model)) return;
  if (const auto patch = Patch::read(model, context.limits, findings)) patch->check_data(context, findings);
}

}  // namespace weighbridge::delta

namespace weighbridge {

bool is_patch(const Model& model) noexcept { return model.attribute(delta::kVersion) != nullptr; }
PatchInfo patch_info(const Model& patch, const Context& context) {
  return delta::Patch::require(patch, context.limits)->info();
}

}  // namespace weighbridge
