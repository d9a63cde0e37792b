// SPDX-License-Identifier: Apache-2.0
// Flatbuffers are built from their end, so that an offset always points to what exists already.
#include "arrow_stream.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace weighbridge::cli {
namespace {

// Numbers of Arrow's Message.fbs and Schema.fbs.
constexpr std::uint64_t kVersion5 = 4, kSchema = 1, kRecordBatch = 3, kFloatingPoint = 3, kFixedSizeList = 16,
                        kSingle = 1;

std::string little(std::uint64_t value, unsigned size = 4) {
  std::string out;
  for (unsigned i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

class Flatbuffer {
 public:
  using Offset = std::uint32_t;  // from the end of the buffer
  struct Field {
    unsigned id;
    unsigned size;  // of the value; an offset has 4 bytes
    std::uint64_t value;
    bool is_offset = false;
  };
  static Field offset(unsigned id, Offset target) { return {id, 4, target, true}; }

  Offset text(std::string_view text) {
    align(4, text.size() + 1);
    bytes_.insert(0, 1, '\0');
    bytes_.insert(0, text);
    return put(text.size(), 4);
  }
  Offset offsets(std::span<const Offset> targets) {
    align(4, 4 * targets.size());
    for (std::size_t i = targets.size(); i-- > 0;) put(bytes_.size() + 4 - targets[i], 4);
    return put(targets.size(), 4);
  }
  // Of structs with two 64-bit numbers.
  Offset pairs(std::span<const std::pair<std::uint64_t, std::uint64_t>> all) {
    align(8, 16 * all.size());
    for (std::size_t i = all.size(); i-- > 0;) {
      put(all[i].second, 8);
      put(all[i].first, 8);
    }
    return put(all.size(), 4);
  }
  Offset table(std::vector<Field> fields) {
    std::ranges::stable_sort(fields, std::greater<>(), &Field::size);
    const std::size_t before = bytes_.size();
    unsigned count = 0;
    std::vector<std::pair<unsigned, Offset>> places;
    for (const Field& field : fields) {
      align(field.size, 0);
      const std::uint64_t value = field.is_offset ? bytes_.size() + field.size - field.value : field.value;
      places.emplace_back(field.id, put(value, field.size));
      count = std::max(count, field.id + 1);
    }
    align(4, 0);
    const std::size_t own = 4 + 2 * std::size_t{count};  // of the list of places
    const Offset table = put(own, 4);
    std::vector<std::uint64_t> list(count, 0);
    for (const auto& [id, place] : places) list[id] = table - place;
    for (std::size_t i = count; i-- > 0;) put(list[i], 2);
    put(table - before, 2);
    put(own, 2);
    return table;
  }
  std::string finish(Offset root) {
    align(8, 4);
    put(bytes_.size() + 4 - root, 4);
    return std::move(bytes_);
  }

 private:
  // Inserts zeros, so that the buffer begins at a multiple of `to` once `more` bytes are in front of them.
  void align(std::size_t to, std::size_t more) {
    while ((bytes_.size() + more) % to != 0) bytes_.insert(0, 1, '\0');
  }
  Offset put(std::uint64_t value, unsigned size) {
    bytes_.insert(0, little(value, size));
    return static_cast<Offset>(bytes_.size());
  }

  std::string bytes_;
};

std::string message(Flatbuffer& of, std::uint64_t kind, Flatbuffer::Offset header, std::uint64_t body) {
  const std::string metadata =
      of.finish(of.table({{0, 2, kVersion5}, {1, 1, kind}, Flatbuffer::offset(2, header), {3, 8, body}}));
  return little(0xFFFFFFFF) + little(metadata.size()) + metadata;
}

}  // namespace

std::string arrow_schema(std::string_view column, std::uint64_t width,
                         std::span<const std::pair<std::string, std::string>> metadata) {
  Flatbuffer out;
  std::vector<Flatbuffer::Offset> entries;
  for (const auto& [key, value] : metadata) {
    const auto v = out.text(value), k = out.text(key);
    entries.push_back(out.table({Flatbuffer::offset(0, k), Flatbuffer::offset(1, v)}));
  }
  const auto keys = out.offsets(entries);
  const auto single = out.table({{0, 2, kSingle}});
  const auto item_name = out.text("item");
  const Flatbuffer::Offset item[] = {
      out.table({Flatbuffer::offset(0, item_name), {1, 1, 0}, {2, 1, kFloatingPoint}, Flatbuffer::offset(3, single)})};
  const auto children = out.offsets(item);
  const auto list = out.table({{0, 4, width}});
  const auto name = out.text(column);
  const Flatbuffer::Offset fields[] = {out.table({Flatbuffer::offset(0, name),
                                                  {1, 1, 0},
                                                  {2, 1, kFixedSizeList},
                                                  Flatbuffer::offset(3, list),
                                                  Flatbuffer::offset(5, children)})};
  const auto all = out.offsets(fields);
  const auto schema = out.table({{0, 2, 0}, Flatbuffer::offset(1, all), Flatbuffer::offset(2, keys)});
  return message(out, kSchema, schema, 0);
}

std::string arrow_batch(std::uint64_t count, std::uint64_t width) {
  Flatbuffer out;
  const std::uint64_t bytes = count * width * sizeof(float), padded = (bytes + 7) / 8 * 8;
  const std::pair<std::uint64_t, std::uint64_t> buffers[] = {{0, 0},
                                                             {0, 0},
                                                             {0, bytes}},  // no bitmaps: nothing is null
      nodes[] = {{count, 0}, {count * width, 0}};
  const auto b = out.pairs(buffers), n = out.pairs(nodes);
  const auto batch = out.table({{0, 8, count}, Flatbuffer::offset(1, n), Flatbuffer::offset(2, b)});
  return message(out, kRecordBatch, batch, padded);
}

std::string arrow_end() { return little(0xFFFFFFFF) + little(0); }

}  // namespace weighbridge::cli
