// SPDX-License-Identifier: Apache-2.0
// The content digest of README.md, parallel over leaves, and the plain SHA-256 of a file. Owns the
// reading, the tree and the division of work; digest_nodes.h has the bodies of nodes.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/checksum.h"
#include "core/model/buffers.h"
#include "core/model/draft.h"
#include "core/model/progress.h"
#include "core/payload/digest_nodes.h"
#include "core/payload/elements.h"
#include "core/payload/extents.h"
#include "core/payload/payload.h"
#include "core/payload/widen.h"
#include "core/payload/work.h"
#include "weighbridge/hash.h"

namespace weighbridge {
namespace {

using codecs::Digest256, codecs::Sha256;

using core::begin_part, core::kLeaf, core::Leaves, core::Node, core::digest_input, core::DigestInput, core::tag_of,
    core::tensor_node;
// The size of one read: a leaf for every lane, hashed while it is still in the cache. Smaller tensors are read and
// hashed together.
constexpr std::size_t kRead = codecs::kShaLanes * kLeaf;
constexpr std::uint64_t kChunk = 4 * kRead;  // the share of a large part that one thread takes at a time
constexpr std::uint32_t kGroupTensors = 2048;

// Computes the nodes of tensors: threads share large parts, and small tensors go in groups.
class Hasher {
 public:
  Hasher(std::vector<Tensor> tensors, const Context& context, std::uint32_t version,
         const core::GivenLeaves& given = {})
      : tensors_(std::move(tensors)),
        context_(context),
        version_(version),
        given_(given),
        nodes_(tensors_.size()),
        progress_(context_, (check(), divide())) {}

  std::vector<Digest256> run() {
    core::executor_of(context_).for_each(tasks_.size(), [this](std::uint64_t i) { perform(tasks_[base::to_size(i)]); });
    for (std::size_t i = 0; i < pieces_.size();) {
      const std::uint32_t tensor = pieces_[i].tensor;
      std::vector<std::pair<std::string_view, Digest256>> parts;
      for (; i < pieces_.size() && pieces_[i].tensor == tensor; ++i)
        parts.emplace_back(pieces_[i].role, large_[pieces_[i].large]->nodes[pieces_[i].node].finish());
      nodes_[tensor] = tensor_node(tensors_[tensor], parts, version_);
    }
    progress_.finish();
    return std::move(nodes_);
  }

 private:
  // A part that is too large for a group, together with the parts that have the same elements in any shape: they share
  // their leaves. Chunks finish in any order but are added to the nodes in file order. Threads start them in ascending
  // order, so few of them wait here.
  struct LargePart {
    explicit LargePart(const DigestInput& input_) : input(input_), elements(elements_of(input_)) {}
    DigestInput input;  // the first part
    core::ElementsPtr elements;
    std::vector<Node> nodes;
    std::mutex mutex;
    std::uint64_t next = 0;  // offset of the chunk that the nodes wait for
    std::map<std::uint64_t, std::vector<Digest256>> early;
  };
  // A part of a tensor that is not in a group.
  struct Piece {
    std::uint32_t tensor, large, node;
    std::string_view role;
  };
  struct Task {
    enum class Kind : std::uint8_t { stream, chunk, group } kind;
    std::uint32_t first = 0, last = 0;  // group: tensors; else first is the large part
    std::uint64_t offset = 0;
  };

  void check() const {
    for (const Tensor& tensor : tensors_) {
      if (const Finding* why = tensor.unsupported()) {
        Finding finding = *why;
        finding.message = "no content digest: " + finding.message;
        throw Error(std::move(finding));
      }
      if (version_ != 1 && is_quantized(tensor.layout()) && !tensor.block_type())
        base::unsupported("unsupported/quantization", "no content digest: tensor \"" + std::string(tensor.name()) +
                                                          "\" is quantized as \"" + std::string(tensor.type_name()) +
                                                          "\", which this build does not know");
    }
  }

  // Returns the bytes to hash.
  std::uint64_t divide() {
    find_streams();
    core::Work work;
    std::uint64_t total = 0;
    std::vector<Task> chunks, groups;
    std::uint64_t group_bytes = 0;
    std::size_t first_part = 0;
    for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
      std::uint64_t bytes = 0;
      bool shared = false;
      for (std::uint32_t i = 0; i < tensors_[t].part_count(); ++i) {
        bytes += std::min<std::uint64_t>(tensors_[t].part(i).size(), kRead);
        shared = shared || shared_[streams_[first_part + i]];
      }
      const std::size_t first = std::exchange(first_part, first_part + tensors_[t].part_count());
      if (bytes >= kRead || (shared && bytes >= kLeaf)) {
        add_large(t, first, chunks, work, total);
        continue;
      }
      for (std::uint32_t i = 0; i < tensors_[t].part_count(); ++i) {
        if (!given(digest_input(tensors_[t], tensors_[t].part(i), version_)).empty()) continue;
        work.add(tensors_[t].part(i));
        total += tensors_[t].part(i).size();
      }
      if (groups.empty() || groups.back().last != t || group_bytes + bytes > kRead ||
          t - groups.back().first >= kGroupTensors) {
        groups.push_back({Task::Kind::group, t, t, 0});
        group_bytes = 0;
      }
      groups.back().last = t + 1;
      group_bytes += bytes;
    }
    // Parts that threads cannot share go first, longest first.
    std::stable_sort(tasks_.begin(), tasks_.end(), [this](const Task& a, const Task& b) {
      return large_[a.first]->input.size > large_[b.first]->input.size;
    });
    tasks_.insert(tasks_.end(), chunks.begin(), chunks.end());
    tasks_.insert(tasks_.end(), groups.begin(), groups.end());
    work.require(context_.limits);
    return total;
  }

  std::span<const Digest256> given(const DigestInput& input) const {
    return given_ && !input.index && input.size > 0 ? given_(input.part) : std::span<const Digest256>();
  }

  // Gives parts with the same elements the same number, in streams_.
  void find_streams() {
    struct Known {
      core::Range range;
      std::uint32_t tensor, part;
    };
    std::vector<Known> known;
    for (std::uint32_t t = 0, item = 0; t < tensors_.size(); ++t)
      for (std::uint32_t i = 0; i < tensors_[t].part_count(); ++i, ++item) {
        streams_.push_back(item);
        if (const auto extent = tensors_[t].part(i).extent())
          known.push_back({{extent->source, extent->offset, extent->length, item}, t, i});
      }
    shared_.assign(streams_.size(), false);
    const auto key = [this](const Known& k) {
      const Part part = tensors_[k.tensor].part(k.part);
      return std::tuple(k.range.source, k.range.offset, k.range.length, part.size(), part.dtype(), part.encoding(),
                        part.order(), core::is_index(tensors_[k.tensor].layout(), part.role()), part.strides().empty());
    };
    std::ranges::sort(known, [&](const Known& a, const Known& b) {
      if (const auto order = a.range <=> b.range; order != 0 && !a.range.same_bytes(b.range)) return order < 0;
      return std::pair(key(a), a.range.item) < std::pair(key(b), b.range.item);
    });
    for (std::size_t i = 1; i < known.size(); ++i) {
      const Known &a = known[i - 1], &b = known[i];
      if (!a.range.same_bytes(b.range) || b.range.length == 0 || key(a) != key(b)) continue;
      if (!core::same_elements(tensors_[a.tensor].part(a.part), tensors_[b.tensor].part(b.part))) continue;
      streams_[b.range.item] = streams_[a.range.item];
      shared_[streams_[a.range.item]] = true;
    }
  }

  void add_large(std::uint32_t t, std::size_t first_part, std::vector<Task>& chunks, core::Work& work,
                 std::uint64_t& total) {
    for (std::uint32_t i = 0; i < tensors_[t].part_count(); ++i) {
      const DigestInput part = digest_input(tensors_[t], tensors_[t].part(i), version_);
      const auto [known, is_new] =
          large_of_.try_emplace(streams_[first_part + i], static_cast<std::uint32_t>(large_.size()));
      const std::uint32_t at = known->second;
      if (is_new) large_.push_back(std::make_unique<LargePart>(part));
      large_[at]->nodes.push_back(begin_part(part));
      pieces_.push_back({t, at, static_cast<std::uint32_t>(large_[at]->nodes.size() - 1), part.part.role()});
      if (const auto leaves = given(part); !leaves.empty()) {
        large_[at]->nodes.back().bytes(std::as_bytes(leaves));
        continue;
      }
      if (!is_new) continue;
      work.add(part.part);
      total += part.part.size();
      const DigestInput& input = large_[at]->input;
      if (!core::divides(*large_[at]->elements, kRead)) {
        tasks_.push_back({Task::Kind::stream, at, 0, 0});
        continue;
      }
      for (std::uint64_t offset = 0; offset < input.size; offset += kChunk)
        chunks.push_back({Task::Kind::chunk, at, 0, offset});
    }
  }

  void perform(const Task& task) {
    switch (task.kind) {
      case Task::Kind::stream: stream(large_[task.first]->input, large_[task.first]->nodes); break;
      case Task::Kind::chunk: chunk(*large_[task.first], task.offset); break;
      case Task::Kind::group: group(task.first, task.last); break;
    }
  }

  void stream(const DigestInput& input, std::span<Node> nodes) {
    Leaves leaves(version_);
    core::Chunks chunks(kRead, [&](std::span<const std::byte> bytes) {
      leaves.add(bytes);
      const auto digests = std::as_bytes(leaves.hash());
      for (Node& node : nodes) node.bytes(digests);
      return true;
    });
    elements_of(input)->stream(progress_.inner(), [&](std::span<const std::byte> piece) {
      progress_.add(stored(input, piece.size()));
      return chunks.add(piece);
    });
    chunks.finish();
  }

  static core::ElementsPtr elements_of(const DigestInput& input) {
    return input.index ? core::widened(input.part) : core::elements_of(input.part);
  }
  // Of so many bytes that are hashed.
  static std::uint64_t stored(const DigestInput& input, std::uint64_t bytes) {
    return input.index ? bytes / 8 * (info(input.part.dtype()).bits / 8) : bytes;
  }

  void chunk(LargePart& large, std::uint64_t offset) {
    const core::BufferPool::Lease lease(reads_);
    const std::uint64_t end = offset + std::min(kChunk, large.input.size - offset);
    const Context inner = progress_.inner();
    std::vector<Digest256> digests;
    digests.reserve(kChunk / kLeaf);
    Leaves leaves(version_);
    for (std::uint64_t at = offset; at < end;) {
      const auto bytes = lease.span().first(static_cast<std::size_t>(std::min<std::uint64_t>(kRead, end - at)));
      const std::uint64_t bits = info(large.elements->dtype()).bits;
      large.elements->read(at * 8 / bits, bytes.size() * 8 / bits, bytes, inner);
      leaves.add(bytes);
      const auto hashed = leaves.hash();
      digests.insert(digests.end(), hashed.begin(), hashed.end());
      at += bytes.size();
      progress_.add(stored(large.input, bytes.size()));
    }
    const std::lock_guard lock(large.mutex);
    large.early.emplace(offset, std::move(digests));
    for (auto ready = large.early.begin(); ready != large.early.end() && ready->first == large.next;
         ready = large.early.erase(ready)) {
      for (Node& node : large.nodes) node.bytes(std::as_bytes(std::span(ready->second)));
      large.next += kChunk;
    }
  }

  // Reads the direct parts of the group together, neighbors in the file with one read, and hashes them in lanes.
  void group(std::uint32_t first, std::uint32_t last) {
    const core::BufferPool::Lease memory(reads_);
    std::vector<core::PartRead> reads;
    Leaves leaves(version_), of_indices(version_);
    std::size_t used = 0;
    for (std::uint32_t t = first; t < last; ++t) {
      for (std::uint32_t i = 0; i < tensors_[t].part_count(); ++i) {
        const Part part = tensors_[t].part(i);
        if (!core::is_direct(part) || !given(digest_input(tensors_[t], part, version_)).empty()) continue;
        reads.push_back({part, memory.span().subspan(used, base::to_size(part.size()))});
        used += base::to_size(part.size());
        if (!core::is_index(tensors_[t].layout(), part.role())) leaves.add(reads.back().out);
      }
    }
    core::read_direct(reads);
    progress_.add(used);
    std::span<const Digest256> digests = leaves.hash();
    std::size_t next = 0;
    std::vector<std::byte> widened;
    std::vector<std::pair<std::string_view, Digest256>> parts;
    for (std::uint32_t t = first; t < last; ++t) {
      parts.clear();
      for (std::uint32_t i = 0; i < tensors_[t].part_count(); ++i) {
        const DigestInput input = digest_input(tensors_[t], tensors_[t].part(i), version_);
        Node node = begin_part(input);
        if (const auto known = given(input); !known.empty()) {
          node.bytes(std::as_bytes(known));
        } else if (!core::is_direct(input.part)) {
          stream(input, std::span(&node, 1));
        } else if (input.index) {
          core::require_index(input.part.dtype());
          widened.resize(base::to_size(input.size));
          core::widen(input.part.dtype(), reads[next++].out, widened);
          of_indices.add(widened);
          node.bytes(std::as_bytes(of_indices.hash()));
        } else {
          const auto count = base::to_size(input.leaves());
          node.bytes(std::as_bytes(digests.first(count)));
          digests = digests.subspan(count);
          ++next;
        }
        parts.emplace_back(input.part.role(), node.finish());
      }
      nodes_[t] = tensor_node(tensors_[t], parts, version_);
    }
  }

  const std::vector<Tensor> tensors_;
  const Context& context_;
  const std::uint32_t version_;
  const core::GivenLeaves& given_;
  std::vector<Digest256> nodes_;
  std::vector<std::uint32_t> streams_;               // of all parts; equal for parts with the same elements
  std::vector<bool> shared_;                         // by stream
  std::map<std::uint32_t, std::uint32_t> large_of_;  // by stream
  std::vector<std::unique_ptr<LargePart>> large_;
  std::vector<Piece> pieces_;  // by tensor, then part
  std::vector<Task> tasks_;
  core::BufferPool reads_{kRead};
  core::Progress progress_;
};

// Whether both tensors are the same stored bytes, read the same way.
bool is_twin(const Tensor& a, const Tensor& b) {
  if (a.layout() != b.layout() || a.layout_name() != b.layout_name() || a.type_name() != b.type_name() ||
      a.block_type() != b.block_type() || a.part_count() != b.part_count() ||
      !std::ranges::equal(a.shape(), b.shape()) || !std::ranges::equal(a.attributes(), b.attributes()))
    return false;
  for (std::uint32_t i = 0; i < a.part_count(); ++i) {
    const Part p = a.part(i), q = b.part(i);
    if (!p.extent() || p.extent() != q.extent() || p.role() != q.role() || p.dtype() != q.dtype() ||
        p.encoding() != q.encoding() || p.order() != q.order() || p.size() != q.size() ||
        !std::ranges::equal(p.shape(), q.shape()) || !std::ranges::equal(p.strides(), q.strides()) ||
        core::cut_of(p) != core::cut_of(q))
      return false;
  }
  return true;
}

// For each tensor, the first tensor with the same stored bytes and metadata, or itself. A small file can refer to one
// payload very often, and decoding it each time could take arbitrarily long.
std::vector<std::uint32_t> first_twins(const std::vector<Tensor>& tensors) {
  std::vector<core::Range> places;
  places.reserve(tensors.size());
  std::vector<std::uint32_t> first(tensors.size());
  std::iota(first.begin(), first.end(), 0U);
  for (std::uint32_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t].part_count() == 0 || !tensors[t].has_shape()) continue;
    if (const auto extent = tensors[t].part(0).extent())
      places.push_back({extent->source, extent->offset, extent->length, t});
  }
  const core::Range* before = nullptr;
  core::Extents(std::move(places)).walk([&](const core::Range& here, core::Relation relation, const core::Range*) {
    if (relation == core::Relation::alias && is_twin(tensors[before->item], tensors[here.item]))
      first[here.item] = first[before->item];
    before = &here;
  });
  return first;
}

constexpr std::string_view kPrefix2 = "wb2:";

void require_version(std::uint32_t version) {
  if (version != 1 && version != kDigestVersion)
    base::misuse("digest-version", "content digests have the versions 1 and 2, not " + std::to_string(version));
}

std::vector<Tensor> tensors_of(const Model& model) {
  std::vector<Tensor> out;
  out.reserve(model.size());
  for (std::uint32_t i = 0; i < model.size(); ++i) out.push_back(model[i]);
  return out;
}

// The digest of each tensor, in their order.
std::vector<Digest256> nodes_of(const std::vector<Tensor>& tensors, const Context& context, std::uint32_t version,
                                const core::GivenLeaves& given = {}) {
  require_version(version);
  const std::vector<std::uint32_t> first = first_twins(tensors);
  std::vector<Tensor> distinct;
  std::vector<std::uint32_t> place(tensors.size());
  for (std::uint32_t t = 0; t < tensors.size(); ++t) {
    place[t] = first[t] == t ? static_cast<std::uint32_t>(distinct.size()) : place[first[t]];
    if (first[t] == t) distinct.push_back(tensors[t]);
  }
  const std::vector<Digest256> hashed = Hasher(std::move(distinct), context, version, given).run();
  std::vector<Digest256> nodes;
  nodes.reserve(tensors.size());
  for (const std::uint32_t at : place) nodes.push_back(hashed[at]);
  return nodes;
}

Digest256 named_root(const Model& model, const std::vector<Digest256>& nodes, std::uint32_t version) {
  Node root('M', version);
  root.u64(nodes.size());
  for (const std::uint32_t i : core::by_name(model)) {
    root.text(model.name(i));
    root.bytes(nodes[i]);
  }
  return root.finish();
}

}  // namespace

std::string Digest::hex() const { return codecs::to_hex(bytes); }
std::string Digest::text() const { return (version == 2 ? std::string(kPrefix2) : std::string()) + hex(); }

std::optional<Digest> parse_digest(std::string_view text) noexcept {
  Digest out;
  out.version = text.starts_with(kPrefix2) ? 2 : 1;
  if (out.version == 2) text.remove_prefix(kPrefix2.size());
  if (text.size() != 2 * out.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const std::size_t digit = kDigits.find(text[i]);
    if (digit == kDigits.npos) return std::nullopt;
    out.bytes[i / 2] = out.bytes[i / 2] << 4 | static_cast<std::byte>(digit);
  }
  return out;
}

Digest content_digest(const Model& model, const Context& context, bool with_names, std::uint32_t version) {
  std::vector<Digest256> nodes = nodes_of(tensors_of(model), context, version);
  if (with_names) return {named_root(model, nodes, version), version};
  Node root('N', version);
  root.u64(nodes.size());
  std::sort(nodes.begin(), nodes.end());
  for (const Digest256& node : nodes) root.bytes(node);
  return {root.finish(), version};
}

ContentDigests content_digests(const Model& model, const Context& context) {
  return core::content_digests(model, context, {});
}

ContentDigests core::content_digests(const Model& model, const Context& context, const GivenLeaves& given) {
  const std::vector<Digest256> nodes = nodes_of(tensors_of(model), context, kDigestVersion, given);
  ContentDigests out{.model = {named_root(model, nodes, kDigestVersion), kDigestVersion}};
  out.tensors.reserve(nodes.size());
  for (const Digest256& node : nodes) out.tensors.push_back({node, kDigestVersion});
  return out;
}

void core::hash_leaves(std::span<const std::span<const std::byte>> leaves, std::span<Digest256> out) {
  const std::array<char, 8> tag = tag_of('L', kDigestVersion);
  codecs::sha256_each(std::as_bytes(std::span(tag)), leaves, out);
}

Digest content_digest(const Tensor& tensor, const Context& context, std::uint32_t version) {
  require_version(version);
  return {Hasher({tensor}, context, version).run().front(), version};
}

// SHA-256 is serial, so all that a second thread can do is to read ahead.
Digest file_sha256(const Source& source, const Context& context) {
  constexpr std::size_t kPiece = std::size_t{2} << 20;
  core::Progress progress(context, source.size());
  Executor& executor = core::executor_of(context);
  std::array<std::vector<std::byte>, 2> buffers;
  const auto fill = [&](std::vector<std::byte>& buffer, std::uint64_t offset) {
    buffer.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, source.size() - offset)));
    if (!buffer.empty()) source.read_at(offset, buffer);
  };
  Sha256 hash;
  fill(buffers[0], 0);
  std::size_t now = 0;
  for (std::uint64_t offset = 0; offset < source.size(); now ^= 1) {
    const std::uint64_t next = offset + buffers[now].size();
    executor.for_each(2, [&](std::uint64_t i) { i == 0 ? hash.update(buffers[now]) : fill(buffers[now ^ 1], next); });
    progress.add(next - offset);
    offset = next;
  }
  progress.finish();
  return {hash.finish(), 0};
}

}  // namespace weighbridge
