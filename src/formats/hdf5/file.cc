// SPDX-License-Identifier: Apache-2.0
// File and Cursor, the global heap, and the checksums of structures and chunks.
#include "formats/hdf5/file.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/model/words.h"
#include "core/reading/rules.h"

namespace weighbridge::hdf5 {
namespace {

// The bytes of structures that may be read, in all: this many times the file. An ordinary file has each block read
// about twice.
constexpr std::uint64_t kTimes = 16, kAtLeast = std::uint64_t{16} << 20;
constexpr std::uint64_t kWindow = 4096;  // bytes that are read at once

// The name of a block with this signature, for messages.
std::string_view name_of(std::string_view signature) noexcept {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {kLocalHeap, "local heap"},
      {kGlobalHeap, "global heap"},
      {kTree, "B-tree node"},
      {kTree2, "B-tree, version 2"},
      {kTree2Inner, "B-tree node, version 2"},
      {kTree2Leaf, "B-tree leaf, version 2"},
      {kSymbols, "symbol table node"},
      {kHeader2, "object header, version 2"},
      {kContinuation2, "continuation of an object header"},
      {kFractalDirect, "fractal heap, direct block"},
      {kFractalIndirect, "fractal heap, indirect block"},
      {kFixedArray, "fixed array"},
      {kFixedBlock, "fixed array, data block"},
      {kExtensible, "extensible array"},
      {kExtensibleIndex, "extensible array, index block"},
      {kExtensibleSuper, "extensible array, secondary block"},
      {kExtensibleBlock, "extensible array, data block"}};
  for (const auto& [known, name] : kNames)
    if (known == signature) return name;
  return "block";
}

}  // namespace

std::uint64_t Cursor::number(std::size_t bytes) {
  const std::string_view from = take(bytes);
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < bytes; ++i) out |= std::uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
  return out;
}
std::uint64_t Cursor::length() { return number(file_->length_size); }
std::uint64_t Cursor::address() {
  const std::uint64_t out = number(file_->offset_size);
  const std::uint64_t none = file_->offset_size == 8 ? kUndefined : (std::uint64_t{1} << (8 * file_->offset_size)) - 1;
  return out == none ? kUndefined : out;
}
std::uint64_t Cursor::extent() {
  const std::uint64_t out = length();
  const std::uint64_t none = file_->length_size == 8 ? kUndefined : (std::uint64_t{1} << (8 * file_->length_size)) - 1;
  return out == none ? kUndefined : out;
}
void Cursor::fail(const core::Said& expected, const core::Said& found) const {
  throw Broken{*rule_, offset(), expected, found};
}

File::File(const Source& source, const Limits& bounds, const Rules& all, std::uint64_t begin, std::uint64_t end)
    : base(begin),
      rules(all),
      limits(bounds),
      source_(source),
      begin_(begin),
      end_(end),
      read_(std::max(kAtLeast, base::checked_mul(end - begin, kTimes).value_or(UINT64_MAX))),
      kept_(bounds.memory) {}

std::uint64_t File::place(std::uint64_t address, std::uint64_t length) const {
  if (address == kUndefined || !holds(address, length))
    throw Broken{
        rules.kAddress, base, core::at_most(core::in_bytes(end_ - base)),
        address == kUndefined ? "an undefined address" : core::bytes_text(length) + " at " + std::to_string(address)};
  return base + address;
}

std::string File::read(std::uint64_t address, std::uint64_t length, std::string_view what) {
  const std::uint64_t at = place(address, length);
  if (findings != nullptr && !what.empty()) findings->span(Span::Kind::structure, at, at + length, what);
  if (length > limits.header)
    throw Broken{core::rules::kLimitHeader, at, core::at_most(core::in_bytes(limits.header)), core::in_bytes(length)};
  if (!read_.take(length + 16)) throw Broken{core::rules::kLimitWork, at, read_.said(" of structures"), {}, true};
  const auto fill = [&](std::string& bytes, std::uint64_t size) {
    bytes.resize(base::to_size(size));
    if (!bytes.empty()) source_.read_at(at, std::as_writable_bytes(std::span(bytes)));
  };
  if (length > kWindow) {
    std::string out;
    fill(out, length);
    return out;
  }
  // Structures are small and close to each other, and are read piece by piece: read ahead.
  if (at < window_at_ || !base::fits(at - window_at_, length, window_.size())) {
    fill(window_, std::min(kWindow, end_ - at));
    window_at_ = at;
  }
  return window_.substr(static_cast<std::size_t>(at - window_at_), static_cast<std::size_t>(length));
}

void File::verify(std::string_view block, std::uint64_t address) const {
  const std::string_view covered = block.substr(0, block.size() - 4);
  const auto stated = base::load_le<std::uint32_t>(block.data() + covered.size());
  if (const std::uint32_t found = lookup3(covered); found != stated)
    throw Broken{rules.kChecksum, base + address, stated, found};
}

std::string File::block(std::uint64_t address, std::uint64_t length, std::string_view signature, bool checksum) {
  std::string out = read(address, length, name_of(signature));
  if (!out.starts_with(signature) || (checksum && out.size() < signature.size() + 4))
    throw Broken{rules.kBlock, base + address, signature, {}};
  if (checksum) verify(out, address);
  return out;
}

void File::keep(std::uint64_t bytes) {
  if (!kept_.take(bytes)) throw Broken{core::rules::kLimitMemory, base, kept_.said(" of metadata"), {}, true};
}

// III.E: "GCOL", version, the collection's size, then objects.
const File::Collection& File::collection(std::uint64_t address) {
  if (const auto found = collections_.find(address); found != collections_.end()) return found->second;
  const std::string head = block(address, 8U + length_size, kGlobalHeap, false);
  Cursor in(*this, head, base + address, rules.kHeap);
  in.skip(4);
  if (in.u8() != 1) throw Broken{rules.kBlock, base + address, "version 1"};
  in.skip(3);
  const std::uint64_t size = in.length();
  if (size < head.size()) in.fail(core::at_least(core::in_bytes(head.size())), core::in_bytes(size));
  if (cached_ > limits.memory / 4) {
    collections_.clear();
    cached_ = 0;
  }
  Collection made;
  made.bytes = read(address, size, "global heap collection");
  cached_ += size;
  Collection& kept = collections_[address] = std::move(made);
  Cursor objects(*this, kept.bytes, base + address, rules.kHeap);
  objects.skip(head.size());
  while (objects.left() >= 8U + length_size) {
    const std::uint32_t index = objects.u16();
    objects.skip(6);
    const std::uint64_t length = objects.length();
    if (index == 0) break;  // the free space
    kept.objects.emplace(index, objects.take(length));
    objects.skip(std::min<std::uint64_t>((8 - length % 8) % 8, objects.left()));
  }
  return kept;
}

std::string_view File::global_object(std::uint64_t address, std::uint32_t index) {
  const Collection& all = collection(address);
  const auto found = all.objects.find(index);
  if (found == all.objects.end()) throw Broken{rules.kHeap, base + address, {"object ", index}, "none"};
  return found->second;
}

std::uint32_t lookup3(std::string_view bytes) noexcept {
  std::uint32_t a = 0xDEADBEEF + static_cast<std::uint32_t>(bytes.size()), b = a, c = a;
  const auto word = [](std::string_view from) {
    std::uint32_t out = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(from.size(), 4); ++i)
      out |= std::uint32_t{static_cast<unsigned char>(from[i])} << (8 * i);
    return out;
  };
  while (bytes.size() > 12) {
    a += word(bytes), b += word(bytes.substr(4)), c += word(bytes.substr(8));
    a -= c, a ^= std::rotl(c, 4), c += b;
    b -= a, b ^= std::rotl(a, 6), a += c;
    c -= b, c ^= std::rotl(b, 8), b += a;
    a -= c, a ^= std::rotl(c, 16), c += b;
    b -= a, b ^= std::rotl(a, 19), a += c;
    c -= b, c ^= std::rotl(b, 4), b += a;
    bytes.remove_prefix(12);
  }
  if (bytes.empty()) return c;
  a += word(bytes);
  if (bytes.size() > 4) b += word(bytes.substr(4));
  if (bytes.size() > 8) c += word(bytes.substr(8));
  c ^= b, c -= std::rotl(b, 14);
  a ^= c, a -= std::rotl(c, 11);
  b ^= a, b -= std::rotl(a, 25);
  c ^= b, c -= std::rotl(b, 16);
  a ^= c, a -= std::rotl(c, 4);
  b ^= a, b -= std::rotl(a, 14);
  c ^= b, c -= std::rotl(b, 24);
  return c;
}

// Sums of big-endian words of 16 bits; a last odd byte is the high half of one. Each sum is folded to 16 bits, where
// 0xFFFF stays.
std::uint32_t fletcher32(std::string_view bytes) noexcept {
  std::uint32_t sum1 = 0, sum2 = 0;
  std::size_t words = bytes.size() / 2;
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  while (words > 0) {
    std::size_t together = std::min<std::size_t>(words, 360);
    words -= together;
    for (; together > 0; --together, at += 2) {
      sum1 += (std::uint32_t{at[0]} << 8) | at[1];
      sum2 += sum1;
    }
    sum1 = (sum1 & 0xFFFF) + (sum1 >> 16);
    sum2 = (sum2 & 0xFFFF) + (sum2 >> 16);
  }
  if (bytes.size() % 2 != 0) {
    sum1 += std::uint32_t{*at} << 8;
    sum2 += sum1;
    sum1 = (sum1 & 0xFFFF) + (sum1 >> 16);
    sum2 = (sum2 & 0xFFFF) + (sum2 >> 16);
  }
  sum1 = (sum1 & 0xFFFF) + (sum1 >> 16);
  sum2 = (sum2 & 0xFFFF) + (sum2 >> 16);
  return (sum2 << 16) | sum1;
}

unsigned encoded_size(std::uint64_t limit) noexcept {
  return limit == 0 ? 1U : static_cast<unsigned>((std::bit_width(limit) - 1) / 8 + 1);
}

}  // namespace weighbridge::hdf5
