// SPDX-License-Identifier: Apache-2.0
// Builds HDF5 files for the corpus and its tests, block by block as the specification draws them.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/hdf5/file.h"

namespace weighbridge::hdf5::build {

inline std::string number(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}
inline std::string n8(std::uint64_t value) { return number(value, 1); }
inline std::string n16(std::uint64_t value) { return number(value, 2); }
inline std::string n32(std::uint64_t value) { return number(value, 4); }
inline std::string n64(std::uint64_t value) { return number(value, 8); }
inline std::string sealed(std::string block) { return block + n32(lookup3(block)); }

inline std::string counting(std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(i);
  return out;
}

// Messages of an object header.
inline std::string message(Message type, const std::string& data, int flags = 0) {
  return n8(static_cast<std::uint64_t>(type)) + n16(data.size()) + n8(static_cast<std::uint64_t>(flags)) + data;
}
inline std::string header(const std::string& messages) {
  return sealed("OHDR" + n8(2) + n8(2) + n32(messages.size()) + messages);
}
inline std::string dataspace(const std::vector<std::uint64_t>& shape, const std::vector<std::uint64_t>& maximum = {}) {
  std::string out = n8(2) + n8(shape.size()) + n8(maximum.empty() ? 0 : 1) + n8(shape.empty() ? 0 : 1);
  for (const std::uint64_t dim : shape) out += n64(dim);
  for (const std::uint64_t dim : maximum) out += n64(dim);
  return out;
}
inline std::string integer(int size, bool is_signed, bool big = false) {
  return n8(0x10) + n8((is_signed ? 8U : 0U) | (big ? 1U : 0U)) + n16(0) + n32(static_cast<std::uint64_t>(size)) +
         n16(0) + n16(static_cast<std::uint64_t>(size) * 8);
}
inline std::string real(int size, int sign, int exponent_at, int exponent_bits, int mantissa_bits, int bias,
                        bool big = false) {
  const auto u = [](int value) { return static_cast<std::uint64_t>(value); };
  return n8(0x11) + n8(big ? 0x21U : 0x20U) + n8(u(sign)) + n8(0) + n32(u(size)) + n16(0) + n16(u(size) * 8) +
         n8(u(exponent_at)) + n8(u(exponent_bits)) + n8(0) + n8(u(mantissa_bits)) + n32(u(bias));
}
inline std::string f32(bool big = false) { return real(4, 31, 23, 8, 23, 127, big); }
inline std::string text_type(int size, int padding = 0) {
  return n8(0x13) + n8(static_cast<std::uint64_t>(padding)) + n16(0) + n32(static_cast<std::uint64_t>(size));
}
inline std::string variable_text() { return n8(0x19) + n8(1) + n16(0) + n32(16) + text_type(1); }
inline std::string boolean() {
  return n8(0x38) + n16(2) + n8(0) + n32(1) + integer(1, true) + std::string("FALSE\0TRUE\0\0\1", 13);
}
inline std::string compound(const std::string& first, const std::string& second, const std::string& of, int size) {
  return n8(0x36) + n16(2) + n8(0) + n32(static_cast<std::uint64_t>(2 * size)) + first + n8(0) + n8(0) + of + second +
         n8(0) + n8(static_cast<std::uint64_t>(size)) + of;
}
inline std::string contiguous(std::uint64_t address, std::uint64_t size) {
  return n8(3) + n8(1) + n64(address) + n64(size);
}
inline std::string compact(const std::string& data) { return n8(3) + n8(0) + n16(data.size()) + data; }
inline std::string fill(const std::string& value) { return n8(3) + n8(0x2A) + n32(value.size()) + value; }
inline std::string attribute(const std::string& name, const std::string& type, const std::string& space,
                             const std::string& data) {
  return n8(3) + n8(0) + n16(name.size() + 1) + n16(type.size()) + n16(space.size()) + n8(1) + name + n8(0) + type +
         space + data;
}
inline std::string text_attribute(const std::string& name, const std::string& text) {
  return message(Message::attribute, attribute(name, text_type(static_cast<int>(text.size())), dataspace({}), text));
}
inline std::string link(const std::string& name, std::uint64_t address) {
  return n8(1) + n8(0) + n8(name.size()) + name + n64(address);
}
// The link info of a group that has no heap: libhdf5 knows a group of the new kind by it.
inline std::string links_in_header() { return message(Message::link_info, n16(0) + n64(kUndefined) + n64(kUndefined)); }
inline std::string soft_link(const std::string& name, const std::string& target) {
  return n8(1) + n8(8) + n8(1) + n8(name.size()) + name + n16(target.size()) + target;
}
inline std::string external_link(const std::string& name, const std::string& file) {
  const std::string value = n8(0) + file + n8(0) + "/w" + n8(0);
  return n8(1) + n8(8) + n8(64) + n8(name.size()) + name + n16(value.size()) + value;
}
struct FilterOf {
  std::uint16_t id;
  std::vector<std::uint32_t> values{};
};
inline std::string filters(const std::vector<FilterOf>& all) {
  std::string out = n8(2) + n8(all.size());
  for (const FilterOf& each : all) {
    out += n16(each.id) + (each.id >= 256 ? n16(0) : "") + n16(0) + n16(each.values.size());
    for (const std::uint32_t value : each.values) out += n32(value);
  }
  return out;
}

// A file under construction: blocks one after the other, and the superblock in front of them.
class Builder {
 public:
  explicit Builder(int version = 2, std::size_t userblock = 0) : version_(version), userblock_(userblock) {
    bytes_.resize(version < 2 ? 96 : 48);
  }
  std::uint64_t next() const { return bytes_.size(); }
  std::uint64_t add(const std::string& block) {
    const std::uint64_t at = bytes_.size();
    bytes_ += block;
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    return at;
  }
  // Replaces bytes that were added.
  void put(std::uint64_t at, const std::string& block) {
    bytes_.replace(static_cast<std::size_t>(at), block.size(), block);
  }
  std::string get(std::uint64_t at, std::size_t size) const {
    return bytes_.substr(static_cast<std::size_t>(at), size);
  }
  // A dataset's header.
  std::uint64_t dataset(const std::string& space, const std::string& type, const std::string& layout,
                        const std::string& more = {}) {
    return add(header(message(Message::dataspace, space) + message(Message::datatype, type) +
                      message(Message::layout, layout) + more));
  }
  // One of f32 [4], stored.
  std::uint64_t simple(const std::string& more = {}) {
    const std::uint64_t data = add(counting(16));
    return dataset(dataspace({4}), f32(), contiguous(data, 16), more);
  }
  std::uint64_t group(const std::vector<std::string>& links, const std::string& more = {}) {
    std::string messages = links_in_header() + message(Message::group_info, n16(0)) + more;
    for (const std::string& each : links) messages += message(Message::link, each);
    return add(header(messages));
  }
  // The whole file. `end_change` is added to the stated end.
  std::string finish(std::uint64_t root, std::uint64_t extension = kUndefined, std::uint64_t end_change = 0,
                     int flags = 0, std::uint64_t driver = kUndefined) const {
    const std::uint64_t end = bytes_.size() + userblock_ + end_change;
    std::string start(kSignature);
    if (version_ < 2) {
      start += n8(static_cast<std::uint64_t>(version_)) + n8(0) + n16(0) + n8(0) + n8(8) + n8(8) + n8(0) + n16(4) +
               n16(16) + n32(static_cast<std::uint64_t>(flags)) + (version_ == 1 ? n32(32) : "") + n64(userblock_) +
               n64(kUndefined) + n64(end) + n64(driver) + n64(0) + n64(root);
      start.resize(96);
    } else {
      start += n8(static_cast<std::uint64_t>(version_)) + n8(8) + n8(8) + n8(static_cast<std::uint64_t>(flags)) +
               n64(userblock_) + n64(extension) + n64(end) + n64(root);
      start = sealed(start);
    }
    return std::string(userblock_, 'u') + start + bytes_.substr(start.size());
  }

 private:
  int version_;
  std::size_t userblock_;
  std::string bytes_;
};

// The file with one object "w" in its root group.
inline std::string one(const Builder& so_far, std::uint64_t object, const std::string& more = {}) {
  Builder b = so_far;
  return b.finish(b.group({link("w", object)}, more));
}

// A file with one dataset: its space, type and layout, and further messages.
inline std::string one_dataset(const std::string& space, const std::string& type, const std::string& layout,
                               const std::string& more = {}) {
  Builder b;
  return one(b, b.dataset(space, type, layout, more));
}

}  // namespace weighbridge::hdf5::build
