// SPDX-License-Identifier: Apache-2.0
// Builds an EMBD file in which every field can be made wrong, for the corpus and the tests of EMBD. It shares only the
// constants of layout.h with the writer.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/endian.h"
#include "codecs/checksum.h"
#include "formats/embd/layout.h"

namespace weighbridge::embd {

struct CaseTensor {
  std::string name;
  std::uint8_t dtype = 0;
  std::vector<std::uint32_t> shape;  // up to four numbers; ndim is how many there are
  std::string data;
  std::optional<std::uint64_t>
      offset{};  // from tensor_data_offset, instead of the next free offset; takes no space then
  std::optional<std::uint8_t> ndim{};
  std::optional<std::uint32_t> hash{};
};

template <class Number> Number number_at(const std::string& bytes, std::size_t at) {
  return base::load_le<Number>(bytes.data() + at);
}
template <class Number> void put(std::string& bytes, std::size_t at, Number number) {
  base::store_le<Number>(bytes.data() + at, number);
}

inline std::uint32_t crc_of(const std::string& bytes, std::size_t begin, std::size_t end) {
  return codecs::crc32(std::as_bytes(std::span(bytes)).subspan(begin, end - begin));
}

// The file with a correct checksum of everything before the footer.
inline std::string reseal_file(std::string bytes) {
  put<std::uint32_t>(bytes, bytes.size() - 12, crc_of(bytes, 0, bytes.size() - 16));
  return bytes;
}
// The file with all three checksums correct; the data section must lie inside it.
inline std::string reseal(std::string bytes) {
  put<std::uint32_t>(bytes, 56, crc_of(bytes, 0, 56));
  const std::size_t data = number_at<std::uint32_t>(bytes, 36);
  put<std::uint32_t>(bytes, bytes.size() - 16, crc_of(bytes, data, data + number_at<std::uint64_t>(bytes, 40)));
  return reseal_file(std::move(bytes));
}

struct CaseFile {
  std::uint16_t major = 1, minor = 0;
  std::uint32_t flags = kVocabEmbedded | kTensorsAligned | kChecksumEnabled;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<std::string> tokens;
  std::array<std::uint32_t, 5> special{};
  std::vector<CaseTensor> tensors;
  std::size_t index_gap = 0, special_gap = 0, data_gap = 0, footer_gap = 0;  // bytes before each; data: before the last

  std::string& value(std::string_view key) {
    for (auto& [name, value] : metadata)
      if (name == key) return value;
    return metadata.emplace_back(std::string(key), "").second;
  }
  void remove(std::string_view key) {
    std::erase_if(metadata, [&](const auto& entry) { return entry.first == key; });
  }
  CaseTensor& tensor(std::string_view name) {
    for (CaseTensor& tensor : tensors)
      if (tensor.name == name) return tensor;
    return tensors.emplace_back(CaseTensor{std::string(name), 0, {}, {}});
  }

  std::string bytes() const {
    std::string out(kHeaderSize, '\0');
    const auto metadata_at = static_cast<std::uint32_t>(out.size());
    out += metadata_section();
    const auto metadata_size = static_cast<std::uint32_t>(out.size() - metadata_at);
    std::uint32_t vocab_at = 0, vocab_size = 0;
    if ((flags & kVocabEmbedded) != 0) {
      vocab_at = static_cast<std::uint32_t>(out.size());
      out += vocabulary_section(vocab_at);
      vocab_size = static_cast<std::uint32_t>(out.size() - vocab_at);
    }
    out.append(index_gap, '\0');
    const auto index_at = static_cast<std::uint32_t>(out.size());
    std::size_t data_at = index_at + tensors.size() * kDescriptorSize;
    for (const CaseTensor& tensor : tensors) data_at += tensor.name.size();
    data_at = aligned(data_at);
    const std::string data = append_index(out, data_at);
    out.resize(data_at, '\0');
    out += data;
    out.append(footer_gap, '\0');
    out.append(kFooterSize, '\0');
    out.replace(out.size() - 8, 4, "DBME");
    out.replace(0, 4, "EMBD");
    put<std::uint16_t>(out, 4, major);
    put<std::uint16_t>(out, 6, minor);
    const std::uint32_t fields[] = {flags,
                                    metadata_at,
                                    metadata_size,
                                    vocab_at,
                                    vocab_size,
                                    index_at,
                                    static_cast<std::uint32_t>(tensors.size()),
                                    static_cast<std::uint32_t>(data_at)};
    for (std::size_t i = 0; i < 8; ++i) put<std::uint32_t>(out, 8 + 4 * i, fields[i]);
    put<std::uint64_t>(out, 40, data.size());
    put<std::uint64_t>(out, 48, out.size());
    return (flags & kChecksumEnabled) != 0 ? reseal(std::move(out)) : out;
  }

 private:
  std::size_t aligned(std::size_t at) const {
    return (flags & kTensorsAligned) != 0 ? (at + kAlignment - 1) / kAlignment * kAlignment : at;
  }

  std::string metadata_section() const {
    std::string entries;
    for (const auto& [key, value] : metadata) {
      base::append_field(entries, static_cast<std::uint16_t>(key.size()));
      base::append_field(entries, static_cast<std::uint16_t>(value.size()));
      entries += key + value;
    }
    std::string out;
    base::append_field(out, static_cast<std::uint32_t>(metadata.size()));
    base::append_field(out, static_cast<std::uint32_t>(entries.size()));
    return out + entries;
  }

  std::string vocabulary_section(std::uint32_t at) const {
    std::string entries;
    for (const std::string& token : tokens) {
      base::append_field(entries, static_cast<std::uint16_t>(token.size()));
      entries += token;
    }
    std::string out;
    base::append_field(out, static_cast<std::uint32_t>(tokens.size()));
    base::append_field(out, static_cast<std::uint32_t>(entries.size()));
    base::append_field(out, static_cast<std::uint32_t>(at + 12 + entries.size() + special_gap));
    out += entries;
    out.append(special_gap, '\0');
    for (const std::uint32_t id : special) base::append_field(out, id);
    return out;
  }

  // Appends descriptors and names to `out`; returns the data.
  std::string append_index(std::string& out, std::size_t data_at) const {
    std::string names, data;
    for (const CaseTensor& tensor : tensors) {
      if (!tensor.offset) {
        if (&tensor == &tensors.back()) data.append(data_gap, '\0');
        data.resize(aligned(data_at + data.size()) - data_at, '\0');
      }
      base::append_field(out, tensor.hash.value_or(fnv1a32(tensor.name)));
      out += static_cast<char>(tensor.dtype);
      out += static_cast<char>(tensor.ndim.value_or(static_cast<std::uint8_t>(tensor.shape.size())));
      base::append_field(out, static_cast<std::uint16_t>(tensor.name.size()));
      for (std::size_t i = 0; i < 4; ++i) base::append_field(out, i < tensor.shape.size() ? tensor.shape[i] : 0);
      base::append_field(out, tensor.offset.value_or(std::uint64_t{data.size()}));
      names += tensor.name;
      if (!tensor.offset) data += tensor.data;
    }
    out += names;
    return data;
  }
};

// `count` f32 elements: first, first + 1/8, ...
inline std::string floats(std::size_t count, float first) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i)
    base::append_field(out, std::bit_cast<std::uint32_t>(first + static_cast<float>(i) / 8));
  return out;
}

// A valid model: hidden 2, intermediate 3, 4 positions, 5 tokens, one layer of one head.
inline CaseFile tiny_file() {
  CaseFile file;
  file.metadata = {{"model_name", "tiny"},    {"model_version", "1.0.0"},
                   {"embedding_dim", "2"},    {"vocab_size", "5"},
                   {"num_layers", "1"},       {"num_attention_heads", "1"},
                   {"hidden_size", "2"},      {"intermediate_size", "3"},
                   {"max_position_emb", "4"}, {"created_at", "2025-01-16T12:00:00Z"}};
  file.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  file.special = {0, 1, 2, 3, 4};
  const auto add = [&](const std::string& name, std::vector<std::uint32_t> shape) {
    const std::size_t count = shape.size() == 2 ? std::size_t{shape[0]} * shape[1] : shape[0];
    const float first = static_cast<float>(file.tensors.size());
    file.tensors.push_back({name, 0, std::move(shape), floats(count, first)});
  };
  add("embeddings.word_embeddings.weight", {5, 2});
  add("embeddings.position_embeddings.weight", {4, 2});
  add("embeddings.token_type_embeddings.weight", {2, 2});
  add("embeddings.LayerNorm.weight", {2});
  add("embeddings.LayerNorm.bias", {2});
  for (const char* part :
       {"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"}) {
    add(std::string("encoder.layer.0.") + part + ".weight", {2, 2});
    add(std::string("encoder.layer.0.") + part + ".bias", {2});
  }
  add("encoder.layer.0.attention.output.LayerNorm.weight", {2});
  add("encoder.layer.0.attention.output.LayerNorm.bias", {2});
  add("encoder.layer.0.intermediate.dense.weight", {3, 2});
  add("encoder.layer.0.intermediate.dense.bias", {3});
  add("encoder.layer.0.output.dense.weight", {2, 3});
  add("encoder.layer.0.output.dense.bias", {2});
  add("encoder.layer.0.output.LayerNorm.weight", {2});
  add("encoder.layer.0.output.LayerNorm.bias", {2});
  return file;
}

}  // namespace weighbridge::embd
