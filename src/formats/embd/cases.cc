// SPDX-License-Identifier: Apache-2.0
// The corpus of EMBD: for each rule a small file that breaks it and near misses that do not, and valid files of every
// kind. Each is the tiny model of support/embd_case_file.h with one change.
#include <string>
#include <utility>

#include "formats/embd/format.h"
#include "support/corpus_case.h"
#include "support/embd_case_file.h"

namespace weighbridge::embd {
namespace {

class Corpus : public core::CorpusCases {
 public:
  Corpus() : CorpusCases("embd") {}
  // Adds an edited copy of the tiny model.
  template <class Edit> void edit(std::string name, std::string rule, Edit edit, std::vector<std::string> others = {}) {
    CaseFile file = tiny_file();
    edit(file);
    add(std::move(name), std::move(rule), file.bytes(), std::move(others));
  }
  template <class Edit> void valid(std::string name, Edit change) { edit("valid-" + std::move(name), "", change); }
  // Adds the tiny model's bytes with a patch, and recomputes the checksums.
  template <class Patch>
  void patch(std::string name, std::string rule, Patch patch, std::vector<std::string> others = {}) {
    std::string bytes = tiny_file().bytes();
    patch(bytes);
    add(std::move(name), std::move(rule), reseal(std::move(bytes)), std::move(others));
  }
  // Adds the tiny model with an extra tensor.
  void extra(std::string name, std::string rule, CaseTensor tensor, std::vector<std::string> others = {}) {
    edit(
        std::move(name), std::move(rule), [&](CaseFile& f) { f.tensors.push_back(std::move(tensor)); },
        std::move(others));
  }
};

void add_valid(Corpus& c) {
  c.valid("tiny", [](CaseFile&) {});
  c.valid("no-vocabulary", [](CaseFile& f) { f.flags &= ~kVocabEmbedded; });
  c.valid("unaligned", [](CaseFile& f) { f.flags &= ~kTensorsAligned, f.data_gap = 65; });
  c.valid("no-checksums", [](CaseFile& f) { f.flags &= ~kChecksumEnabled; });
  c.valid("no-flags", [](CaseFile& f) { f.flags = 0; });
  c.valid("optional-metadata", [](CaseFile& f) {
    f.value("layer_norm_eps") = "1e-12";
    f.value("\xC3\xA9") = "";
    f.value("") = "no key";
    f.value("created_at") = "2024-02-29";
  });
  c.valid("pooler", [](CaseFile& f) {
    f.tensors.push_back({"pooler.dense.weight", 0, {2, 2}, floats(4, 0)});
    f.tensors.push_back({"pooler.dense.bias", 1, {2}, std::string(4, '\0')});
  });
  // Two names with the same hash: a lookup must compare the strings.
  c.valid("colliding-names", [](CaseFile& f) {
    f.tensors.push_back({"costarring", 0, {1}, floats(1, 1.5F)});
    f.tensors.push_back({"liquid", 0, {1}, floats(1, -2.5F)});
  });
  c.valid("every-dtype", [](CaseFile& f) {
    for (std::uint8_t value = 0; value < kDTypeValues; ++value) {
      const std::string name(info(kDTypes[value]).name);
      f.tensors.push_back({name, value, {2, 1, 3}, std::string(6 * info(kDTypes[value]).bits / 8, '\x3C')});
    }
  });
  c.valid("same-data-twice", [](CaseFile& f) { f.tensors.push_back({"tied", 0, {5, 2}, {}, 0}); });
  c.valid("no-elements", [](CaseFile& f) {
    f.tensors.push_back({"empty", 0, {0xFFFFFFFF, 0xFFFFFFFF, 0, 0xFFFFFFFF}, {}});
    f.tensors.push_back({"", 8, {3}, "abc"});
  });
  c.valid("gaps-of-63", [](CaseFile& f) { f.index_gap = f.special_gap = f.footer_gap = 63; });
}

void add_header(Corpus& c) {
  const std::string tiny = tiny_file().bytes();
  c.patch("magic", "magic", [](std::string& b) { b[0] = 'F'; });
  const std::string name = "embeddings.word_embeddings.weight";
  std::string old("EMBD\x01\0\0\0\x01\0\0\0", 12);
  base::append_field(old, static_cast<std::uint32_t>(name.size()));
  old += name;
  base::append_field(old, std::uint32_t{1});
  base::append_field(old, std::uint32_t{2});
  c.add("old-layout", "old-layout", old + floats(2, 1));
  std::string shorter("EMBD\x01\0\0\0\x01\0\0\0", 12);
  base::append_field(shorter, static_cast<std::uint16_t>(name.size()));
  c.add("old-layout-short-lengths", "old-layout", shorter + name + floats(20, 1));
  c.add("too-short", "too-short", tiny.substr(0, 79));
  c.add("too-short-magic-alone", "too-short", "EMBD");
  c.edit("version", "version", [](CaseFile& f) { f.major = 2; });
  c.edit("version-0", "version", [](CaseFile& f) { f.major = 0; });
  std::string wrong = tiny;
  wrong[57] = static_cast<char>(wrong[57] ^ 1);
  c.add("header-checksum", "header-checksum", reseal_file(wrong));
  c.add("header-checksum-and-file", "header-checksum", wrong, {"file-checksum"});
  c.edit("newer-minor", "newer-minor", [](CaseFile& f) { f.minor = 1; });
  c.edit("compressed", "compressed", [](CaseFile& f) { f.flags |= kCompressed; });
  c.edit("unknown-flag", "unknown-flag", [](CaseFile& f) { f.flags |= 16; });
  c.edit("unknown-flag-31", "unknown-flag", [](CaseFile& f) { f.flags |= 1U << 31; });
  c.add("truncated", "truncated", tiny.substr(0, tiny.size() - 1));
  c.patch("truncated-2-64", "truncated", [](std::string& b) { put<std::uint64_t>(b, 48, UINT64_MAX); });
  c.add("file-size", "file-size", tiny + "x");
  std::string reserved = tiny;
  reserved[60] = 1;
  c.add("reserved", "reserved", reseal_file(reserved));
  c.patch("reserved-in-footer", "reserved", [](std::string& b) { b.back() = 1; });
  c.patch("footer-magic", "footer-magic", [](std::string& b) { b[b.size() - 8] = 'd'; });
}

void add_sections(Corpus& c) {
  c.patch("vocab-off", "vocab-off", [](std::string& b) { b[8] = 6; }, {"gap"});
  c.edit("vocab-off-offset-alone", "vocab-off", [](CaseFile& f) { f.flags = 0; });
  put<std::uint32_t>(c.last().bytes, 20, 64);
  const auto bounds = [&](std::string name, std::size_t at, std::uint32_t number) {
    c.patch("section-bounds-" + std::move(name), "section-bounds",
            [&](std::string& b) { put<std::uint32_t>(b, at, number); });
  };
  bounds("metadata-in-header", 12, 63);
  bounds("metadata", 16, UINT32_MAX);
  bounds("vocabulary", 20, UINT32_MAX);
  bounds("index", 32, UINT32_MAX);
  c.patch("section-bounds", "section-bounds", [](std::string& b) {
    put<std::uint16_t>(b, number_at<std::uint32_t>(b, 28) + 20 * kDescriptorSize + 6, 0xFFFF);
  });
  std::string data = tiny_file().bytes();
  put<std::uint64_t>(data, 40, UINT64_MAX);
  put<std::uint32_t>(data, 56, crc_of(data, 0, 56));
  c.add("section-bounds-data", "section-bounds", data);
  c.edit("section-overlap", "section-overlap", [](CaseFile& f) { f.flags &= ~kTensorsAligned; });
  std::string& b = c.last().bytes;
  put<std::uint32_t>(b, 36, number_at<std::uint32_t>(b, 36) - 1);  // the data section takes the last byte of the names
  put<std::uint64_t>(b, 40, number_at<std::uint64_t>(b, 40) + 1);
  for (std::size_t i = 0; i < 21; ++i) {
    const std::size_t at = number_at<std::uint32_t>(b, 28) + i * kDescriptorSize + 24;
    put<std::uint64_t>(b, at, number_at<std::uint64_t>(b, at) + 1);
  }
  b = reseal(b);
  c.edit("gap", "gap", [](CaseFile& f) { f.index_gap = 64; });
  c.edit("gap-in-vocabulary", "gap", [](CaseFile& f) { f.special_gap = 64; });
  c.edit("gap-in-data", "gap", [](CaseFile& f) { f.data_gap = 128; });
  c.edit("gap-before-footer", "gap", [](CaseFile& f) { f.footer_gap = 64; });
}

void add_metadata(Corpus& c) {
  const auto at = [](const std::string& b) { return std::size_t{number_at<std::uint32_t>(b, 12)}; };
  c.patch("metadata-size", "metadata-size", [&](std::string& b) { ++b[at(b) + 4]; });
  c.patch("metadata-size-less-than-its-header", "gap", [](std::string& b) { put<std::uint32_t>(b, 16, 7); },
          {"metadata-size"});
  c.patch("metadata-entry", "metadata-entry", [&](std::string& b) { ++b[at(b)]; });
  c.patch("metadata-entry-count-2-32", "metadata-entry",
          [&](std::string& b) { put<std::uint32_t>(b, at(b), UINT32_MAX); });
  c.patch("metadata-entry-long-key", "metadata-entry",
          [&](std::string& b) { put<std::uint16_t>(b, at(b) + 8, 0xFFFF); });
  c.edit("metadata-rest", "metadata-rest", [](CaseFile& f) { f.value("x") = "y"; });
  c.last().bytes[64] = 10;
  c.last().bytes = reseal(c.last().bytes);
  c.edit("metadata-utf8", "metadata-utf8", [](CaseFile& f) { f.value("x") = "\xFF"; });
  c.edit("metadata-utf8-key", "metadata-utf8", [](CaseFile& f) { f.value("\xC0\x80") = "y"; });
  c.edit("metadata-key", "metadata-key", [](CaseFile& f) { f.metadata.emplace_back("model_name", "again"); });
  for (const char* key : {"num_layers", "created_at"})
    c.edit(std::string("missing-key-") + key, "missing-key", [&](CaseFile& f) { f.remove(key); });
  c.edit("number", "number", [](CaseFile& f) { f.value("hidden_size") = "0"; });
  c.edit("number-2-64", "number", [](CaseFile& f) { f.value("num_layers") = "18446744073709551616"; });
  c.edit("embedding-dim", "embedding-dim", [](CaseFile& f) { f.value("embedding_dim") = "3"; });
  c.edit("heads", "heads", [](CaseFile& f) { f.value("num_attention_heads") = "3"; });
  c.edit("created-at", "created-at", [](CaseFile& f) { f.value("created_at") = "yesterday"; });
}

void add_vocabulary(Corpus& c) {
  const auto at = [](const std::string& b) { return std::size_t{number_at<std::uint32_t>(b, 20)}; };
  c.patch("vocab-size", "vocab-size", [&](std::string& b) { put<std::uint32_t>(b, at(b) + 4, UINT32_MAX); });
  c.patch("vocab-token", "vocab-token", [&](std::string& b) { ++b[at(b)]; });
  c.patch("vocab-token-count-2-32", "vocab-token", [&](std::string& b) { put<std::uint32_t>(b, at(b), UINT32_MAX); });
  c.patch("vocab-token-long", "vocab-token", [&](std::string& b) { put<std::uint16_t>(b, at(b) + 12, 0xFFFF); });
  c.edit("vocab-rest", "vocab-rest", [](CaseFile& f) { f.special[4] = 0; });
  --c.last().bytes[at(c.last().bytes)];
  c.last().bytes = reseal(c.last().bytes);
  c.edit("vocab-utf8", "vocab-utf8", [](CaseFile& f) { f.tokens[1] = "\xED\xA0\x80"; });
  c.patch("special-place", "special-place", [&](std::string& b) { --b[at(b) + 8]; });
  c.patch("special-place-past-section", "special-place", [&](std::string& b) { ++b[at(b) + 8]; });
  c.patch("special-place-relative", "special-place",
          [&](std::string& b) { put<std::uint32_t>(b, at(b) + 8, number_at<std::uint32_t>(b, at(b) + 4) + 12); });
  c.edit("special-id", "special-id", [](CaseFile& f) { f.special[2] = 5; });
  c.edit("token-count", "token-count", [](CaseFile& f) { f.tokens.emplace_back("##s"); });
}

void add_tensors(Corpus& c) {
  c.extra("name-utf8", "name-utf8", {"\xFF", 0, {1}, floats(1, 0)});
  c.extra("name-hash", "name-hash", {"liquid", 0, {1}, floats(1, 0), {}, {}, fnv1a32("gas")});
  c.edit("name-hash-of-required", "name-hash", [](CaseFile& f) { f.tensors[0].hash = 0; });
  c.extra("rank-0", "rank", {"x", 0, {}, floats(1, 0)});
  c.extra("rank-5", "rank", {"x", 0, {1, 1, 1, 1}, floats(1, 0), {}, 5});
  c.extra("unused-dimension", "unused-dimension", {"x", 0, {1, 7}, floats(1, 0), {}, 1});
  c.extra("unknown-dtype", "unknown-dtype", {"x", 9, {3}, floats(3, 0)});
  c.edit("unknown-dtype-of-required", "unknown-dtype", [](CaseFile& f) { f.tensors[0].dtype = 255; });
  constexpr std::uint32_t kMaxDimension = UINT32_MAX;
  c.extra("size-overflow", "size-overflow", {"x", 0, {kMaxDimension, kMaxDimension, kMaxDimension, kMaxDimension}, {}});
  c.extra("size-overflow-bytes", "size-overflow", {"x", 0, {1U << 31, 1U << 31}, {}});
  c.extra("data-bounds", "data-bounds", {"x", 0, {2}, floats(1, 0)});
  c.extra("data-bounds-2-64", "data-bounds", {"x", 0, {1}, {}, UINT64_MAX - 63});
  c.extra("misaligned", "misaligned", {"x", 0, {1}, {}, 4});
  c.edit("duplicate-name", "duplicate-name", [](CaseFile& f) {
    f.tensors.push_back({"x", 0, {1}, floats(1, 0)});
    f.tensors.push_back({"x", 0, {2}, floats(2, 0)});
  });
  c.edit("data-overlap", "data-overlap", [](CaseFile& f) {
    f.tensors.push_back({"x", 8, {128}, std::string(128, 'x')});
    f.tensors.push_back({"y", 8, {64}, {}, 21 * 64 + 64});
    f.tensors.push_back({"z", 8, {64}, std::string(64, 'z')});
  });
}

void add_architecture(Corpus& c) {
  c.edit("layers", "layers", [](CaseFile& f) { f.value("num_layers") = "2"; });
  c.edit("layers-2-64", "layers", [](CaseFile& f) { f.value("num_layers") = "18446744073709551615"; });
  c.edit("layers-no-tensors", "layers", [](CaseFile& f) { f.tensors.clear(); });
  c.edit("missing-tensor", "missing-tensor", [](CaseFile& f) { f.tensors.back().name += "es"; });
  c.edit("tensor-shape", "tensor-shape", [](CaseFile& f) {
    f.tensor("embeddings.word_embeddings.weight").shape = {2, 5};
  });
  c.edit("tensor-shape-rank", "tensor-shape", [](CaseFile& f) { f.tensors.back().shape = {2, 1}; });
  c.edit("tensor-shape-vocabulary", "tensor-shape", [](CaseFile& f) {
    f.flags &= ~kVocabEmbedded;
    f.value("vocab_size") = "6";
  });
  c.extra("tensor-shape-pooler", "tensor-shape", {"pooler.dense.bias", 0, {1}, floats(1, 0)});
  c.edit("tensor-dtype", "tensor-dtype", [](CaseFile& f) { f.tensors.back().dtype = 3; });
  c.edit("not-float32", "not-float32", [](CaseFile& f) {
    f.tensors.back().dtype = 1;
    f.tensors.back().data.resize(4);
  });
}

void add_content(Corpus& c) {
  std::string bytes = tiny_file().bytes();
  std::string changed = bytes;
  changed[number_at<std::uint32_t>(bytes, 36)] ^= 1;
  c.add("data-checksum", "data-checksum", changed, {"file-checksum"});
  changed = bytes;
  changed[bytes.size() - 16] ^= 1;
  c.add("data-checksum-stated-wrong", "data-checksum", changed);
  changed = bytes;
  changed[bytes.size() - 12] ^= 1;
  c.add("file-checksum", "file-checksum", changed);
}

// Files that are valid except under the low limits that the caller sets, so none of these is committed.
void add_limits(Corpus& c) {
  const auto limited = [&](std::string name, std::string rule, auto set) {
    c.edit(std::move(name), std::move(rule), [](CaseFile&) {});
    c.last().generated_only = true;
    set(c.last().limits);
  };
  limited("limit-header", "limit/header", [](Limits& l) { l.header = 1000; });
  limited("limit-header-names", "limit/header", [](Limits& l) { l.header = 1300; });
  limited("limit-tensors", "limit/tensors", [](Limits& l) { l.tensors = 20; });
  limited("limit-memory", "limit/memory", [](Limits& l) { l.memory = 512; });
}

}  // namespace

std::vector<core::CorpusCase> cases() {
  Corpus c;
  add_valid(c);
  add_header(c);
  add_sections(c);
  add_metadata(c);
  add_vocabulary(c);
  add_tensors(c);
  add_architecture(c);
  add_content(c);
  add_limits(c);
  return c.take();
}

}  // namespace weighbridge::embd
