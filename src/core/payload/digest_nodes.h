// SPDX-License-Identifier: Apache-2.0
// What the content digest of README.md hashes: the bodies of its nodes, in both versions. digest.cc owns
// the reading and the division of work.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/endian.h"
#include "codecs/checksum.h"
#include "core/payload/leaves.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

// The 8 bytes before the body of a node, so that nodes of different kinds or versions never have the same digest.
inline std::array<char, 8> tag_of(char kind, std::uint32_t version) noexcept {
  return {'w', 'b', 'd', 'i', 'g', version == 1 ? '1' : '2', '.', kind};
}

// The body of a node, fed to SHA-256 field by field.
class Node {
 public:
  Node(char kind, std::uint32_t version) {
    const std::array<char, 8> tag = tag_of(kind, version);
    hash_.update(std::as_bytes(std::span(tag)));
  }
  void bytes(std::span<const std::byte> data) { hash_.update(data); }
  void u64(std::uint64_t value) {
    std::array<std::byte, 8> raw;
    base::store_le(raw.data(), value);
    hash_.update(raw);
  }
  void text(std::string_view value) {
    u64(value.size());
    hash_.update(std::as_bytes(std::span(value)));
  }
  codecs::Digest256 finish() { return hash_.finish(); }

 private:
  codecs::Sha256 hash_;
};

// Leaves to hash in lanes. Their bytes must stay in place until hash().
class Leaves {
 public:
  explicit Leaves(std::uint32_t version) : tag_(tag_of('L', version)) {}
  void add(std::span<const std::byte> bytes) {
    for (; bytes.size() > kLeaf; bytes = bytes.subspan(kLeaf)) leaves_.push_back(bytes.first(kLeaf));
    if (!bytes.empty()) leaves_.push_back(bytes);
  }
  // The digests of the leaves added since the last call, in order.
  std::span<const codecs::Digest256> hash() {
    digests_.resize(leaves_.size());
    codecs::sha256_each(std::as_bytes(std::span(tag_)), leaves_, digests_);
    leaves_.clear();
    return digests_;
  }

 private:
  std::array<char, 8> tag_;
  std::vector<std::span<const std::byte>> leaves_;
  std::vector<codecs::Digest256> digests_;
};

// A part as the digest sees it.
struct DigestInput {
  Tensor tensor;
  Part part;
  bool index;          // whether its elements are widened to u64
  std::uint64_t size;  // logical bytes, widened
  std::uint32_t version;
  std::uint64_t leaves() const noexcept { return size / kLeaf + (size % kLeaf != 0 ? 1 : 0); }
};

DigestInput digest_input(const Tensor&, const Part&, std::uint32_t version);
// The node of a part up to where the digests of its leaves follow.
Node begin_part(const DigestInput&);
// The node of a tensor, from the roles of its parts and their nodes.
codecs::Digest256 tensor_node(const Tensor&, std::span<const std::pair<std::string_view, codecs::Digest256>> parts,
                              std::uint32_t version);

}  // namespace weighbridge::core
