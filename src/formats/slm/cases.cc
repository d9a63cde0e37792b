// SPDX-License-Identifier: Apache-2.0
// The corpus of SLM: for each rule the smallest file that breaks it and near misses that do not, and valid files of
// every kind. Bytes and checksums are made by hand, not by the writer, so that reader and writer cannot share a
// mistake.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/slm/format.h"
#include "formats/slm/names.h"
#include "support/corpus_case.h"

namespace weighbridge::slm_format {
namespace {

template <class T> std::string le(T value) {
  std::string out;
  for (std::size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}
std::string le32(std::uint64_t value) { return le(static_cast<std::uint32_t>(value)); }

std::string patched(std::string bytes, std::size_t at, std::string_view with) {
  return bytes.replace(at, with.size(), with);
}
// The bytes with a correct checksum.
std::string sealed(std::string bytes) {
  bytes = patched(std::move(bytes), 100, std::string(8, '\0'));
  std::uint64_t h = 0x9e3779b97f4a7c15U;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    h ^= static_cast<unsigned char>(bytes[i]) + i;
    h = (h << 7 | h >> 57) * 0x100000001b3U;
  }
  return patched(std::move(bytes), 100, le(h));
}

constexpr std::uint32_t kV = 260, kH = 2, kF = 2;  // the model of most cases: one layer, one head

struct Tensor {
  std::string name;
  std::uint32_t dtype;
  std::vector<std::uint32_t> dims;
  std::string payload, scales;
  std::uint32_t block = 0;
};

std::string f32s(std::uint64_t n) {
  std::string out;
  for (std::uint64_t i = 0; i < n; ++i)
    out += i % 2 == 0 ? std::string("\0\0\x80\x3f", 4) : std::string("\0\0\0\xbf", 4);
  return out;  // 1, -0.5
}
std::string scales(std::uint64_t n) {
  std::string out;
  for (std::uint64_t i = 0; i < n; ++i) out += std::string("\0\0\x80\x3e", 4);  // 0.25
  return out;
}
std::string codes(std::uint64_t n) {
  std::string out;
  for (std::uint64_t i = 0; i < n; ++i) out += static_cast<char>(i * 37);
  return out;
}

Tensor tensor(std::string name, std::vector<std::uint32_t> dims, std::uint32_t dtype = 1) {
  std::uint64_t count = 1;
  for (const std::uint32_t d : dims) count *= d;
  const std::uint64_t rows = dims.size() > 1 ? dims[0] : 1;
  Tensor out{std::move(name), dtype, std::move(dims), {}, {}, 0};
  if (dtype == 1) {
    out.payload = f32s(count);
  } else {
    out.payload = codes(dtype == 2 ? count : count / 2);
    out.scales = scales(rows);
    out.block = static_cast<std::uint32_t>(count / rows);
  }
  return out;
}

std::string btok() {
  std::string out = "BTOK";
  for (const std::uint32_t n : {1U, 260U, 256U, 257U, 258U, 259U}) out += le(n);
  return out;
}

struct Token {
  std::uint32_t id;
  std::string bytes;
};
std::string bpe1(const std::vector<Token>& tokens, const std::vector<std::vector<std::uint32_t>>& merges,
                 std::uint32_t vocab = kV) {
  std::string out =
      "BPE1" + le32(1) + le(vocab) + le32(1) + le32(2) + le32(3) + le32(0) + le32(tokens.size()) + le32(merges.size());
  for (const Token& token : tokens) out += le(token.id) + le32(token.bytes.size()) + token.bytes;
  for (const auto& merge : merges)
    for (const std::uint32_t n : merge) out += le(n);
  return out;
}
const std::vector<Token> kTokens = {{97, "a"}, {98, "b"}, {259, "ab"}, {256, "\xff\0"}};
const std::vector<std::vector<std::uint32_t>> kMerges = {{97, 98, 259, 0}};

// A whole file with its parts in the usual order.
struct File {
  std::uint32_t flags = 1, heads = 1, kv_heads = 1, layers = 1;
  std::string extra, tokenizer = btok();
  std::vector<Tensor> tensors;
  std::string tail;
  bool tokenizer_last = false;

  static std::size_t align(std::size_t at) { return (at + 63) / 64 * 64; }

  std::string bytes() const {
    std::string out = "SLM1" + le32(1) + le32(108 + extra.size()) + le32(1) + le(flags) + le(kV) + le32(4) + le(kH) +
                      le(layers) + le(heads) + le(kv_heads) + le32(kH / heads) + le(kF) + le32(16) +
                      std::string("\0\x40\x1c\x46\xac\xc5\x27\x37", 8);  // 10000, 1e-5
    const std::size_t head = 108 + extra.size(), inside = tokenizer_last ? 0 : tokenizer.size();
    const std::size_t directory = align(head + inside), data = align(directory + 64 * tensors.size());
    std::string payload, entries;
    for (const Tensor& t : tensors) {
      payload.resize(align(payload.size()));
      const std::size_t at = data + payload.size();
      payload += t.payload;
      std::size_t scales_at = 0;
      if (!t.scales.empty()) {
        payload.resize(align(payload.size()));
        scales_at = data + payload.size();
        payload += t.scales;
      }
      entries += le(t.name[0] == '#' ? *parse_hash(t.name) : name_hash(t.name)) + le(t.dtype) + le32(t.dims.size());
      for (std::size_t i = 0; i < 4; ++i) entries += le32(i < t.dims.size() ? t.dims[i] : 0);
      entries += le(std::uint64_t{at}) + le(std::uint64_t{t.payload.size()}) + le(std::uint64_t{scales_at}) +
                 le(t.block) + le32(0);
    }
    payload.resize(align(payload.size()));
    const std::size_t tokenizer_at = tokenizer_last ? data + payload.size() : head;
    out += le(std::uint64_t{tokenizer_at}) + le(std::uint64_t{tokenizer.size()}) + le(std::uint64_t{directory}) +
           le32(tensors.size()) + le(std::uint64_t{data}) + std::string(8, '\0') + extra;
    if (!tokenizer_last) out += tokenizer;
    out.resize(directory);
    out += entries;
    out.resize(data);
    out += payload;
    if (tokenizer_last) out += tokenizer;
    return sealed(out + tail);
  }
};

std::vector<Tensor> layer(std::uint32_t n, std::uint32_t matrices = 1, std::uint32_t norms = 1) {
  const std::string at = "layers." + std::to_string(n) + ".";
  return {tensor(at + "attention_norm.weight", {kH}, norms), tensor(at + "ffn_norm.weight", {kH}, norms),
          tensor(at + "wq.weight", {kH, kH}, matrices),      tensor(at + "wk.weight", {kH, kH}, matrices),
          tensor(at + "wv.weight", {kH, kH}, matrices),      tensor(at + "wo.weight", {kH, kH}, matrices),
          tensor(at + "w1.weight", {kF, kH}, matrices),      tensor(at + "w2.weight", {kH, kF}, matrices),
          tensor(at + "w3.weight", {kF, kH}, matrices)};
}

// Entries 0 and 1 are embeddings and norm; 2 to 10 are the layer, in the order above.
File tied(std::uint32_t matrices = 1, std::uint32_t norms = 1) {
  File file;
  file.tensors = {tensor("tok_embeddings.weight", {kV, kH}, matrices), tensor("norm.weight", {kH}, norms)};
  for (Tensor& t : layer(0, matrices, norms)) file.tensors.push_back(std::move(t));
  return file;
}
File with(Tensor more) {
  File file = tied();
  file.tensors.push_back(std::move(more));
  return file;
}
File with_tokenizer(std::string section) {
  File file = tied();
  file.tokenizer = std::move(section);
  return file;
}

// Offsets in tied(): the directory and the data; then the fields of an entry.
constexpr std::size_t kDirectoryAt = 192, kDataAt = 896;
constexpr std::size_t kDtypeAt = 8, kRankAt = 12, kDimsAt = 16, kOffsetAt = 32, kLengthAt = 40, kScalesAt = 48,
                      kBlockAt = 56;
constexpr std::size_t entry(std::size_t i, std::size_t field) { return kDirectoryAt + 64 * i + field; }

class Corpus : public core::CorpusCases {
 public:
  Corpus() : CorpusCases("slm") {}
  void valid(std::string name, const File& file) { add("valid-" + std::move(name), "", file.bytes()); }
  // Adds tied() with some bytes of header or directory changed, and a correct checksum.
  void changed(std::string name, std::string rule, std::size_t at, const std::string& to,
               std::vector<std::string> others = {}) {
    add(std::move(name), std::move(rule), sealed(patched(tied().bytes(), at, to)), std::move(others));
  }
};

void add_valid(Corpus& c) {
  c.valid("tied", tied());
  File untied = with(tensor("output.weight", {kV, kH}));
  c.valid("tied-with-output", untied);
  untied.flags = 0;
  c.valid("untied", untied);
  c.valid("q8_0", tied(2, 2));
  c.valid("q4_0", tied(3));
  c.valid("mixed", tied(2));
  c.valid("bpe1", with_tokenizer(bpe1(kTokens, kMerges)));
  c.add("valid-bpe1-few-special-tokens", "",
        sealed(patched(with_tokenizer(bpe1(kTokens, kMerges)).bytes(), 24, le32(0))));
  c.valid("bpe1-no-tokens", with_tokenizer(bpe1({}, {})));
  c.valid("bpe1-ids-in-order", with_tokenizer(bpe1({{0, "x"}, {1, "y"}, {2, "xy"}}, {{0, 1, 2, 7}, {255, 255, 0, 9}})));
  File file = tied();
  file.extra = "more header";
  c.valid("longer-header", file);
  file = tied();
  file.tokenizer_last = true;
  c.valid("tokenizer-last", file);
  file = tied();
  file.heads = 2;
  c.valid("grouped-query", file);
  file = tied();
  file.layers = 2;
  for (Tensor& t : layer(1)) file.tensors.push_back(std::move(t));
  c.valid("two-layers", file);
  file = tied();
  std::swap(file.tensors[0], file.tensors[10]);
  c.valid("another-order", file);
  c.valid("unknown-tensors", [] {
    File unknown = with(tensor("something.else", {1, 2, 3, 4}));
    unknown.tensors.push_back(tensor("#0123456789abcdef", {3, 1, 5}, 2));
    return unknown;
  }());
  file = tied();
  file.tail = std::string(63 - 48, '\0');  // in addition to the 48 bytes after the last payload
  c.valid("63-trailing-bytes", file);
  // Two entries that share payload: aliases.
  std::string bytes = with(tensor("#00000000000000aa", {kH})).bytes();
  const std::size_t shared = 192 + 64 * 11;
  const std::string first_offset = bytes.substr(192 + 64 + kOffsetAt, 8);
  bytes = patched(std::move(bytes), shared + kOffsetAt, first_offset);
  c.add("valid-alias", "", sealed(bytes.substr(0, bytes.size() - 64)));
}

void add_header(Corpus& c) {
  const std::string good = tied().bytes();
  c.add("too-short", "too-short", good.substr(0, 107));
  c.add("too-short-magic-only", "too-short", "SLM1");
  c.add("magic", "magic", patched(good, 0, "SLM2"));
  c.changed("version", "version", 4, le32(2));
  c.changed("version-0", "version", 4, le32(0));
  c.changed("header-length", "header-length", 8, le32(107));
  c.changed("header-past-end", "header-past-end", 8, le32(good.size() + 1));
  c.changed("header-past-end-2-32", "header-past-end", 8, le32(UINT32_MAX));
  c.changed("model-type", "model-type", 12, le32(2));
  c.changed("flags", "flags", 16, le32(3));
  c.changed("flags-high", "flags", 16, le32(0x80000001));
  c.add("zero-checksum", "zero-checksum", patched(good, 100, std::string(8, '\0')));
  c.changed("vocab-size", "vocab-size", 20, le32(259), {"tokenizer-vocab", "tensor-shape"});
  c.changed("special-token-count", "special-token-count", 24, le32(3));
  c.changed("zero-dimension", "zero-dimension", 28, le32(0));
  c.changed("zero-dimension-layers", "zero-dimension", 32, le32(0));
  c.changed("zero-dimension-context", "zero-dimension", 52, le32(0));
  c.changed("kv-heads", "kv-heads", 40, le32(2));
  c.changed("attention-shape", "attention-shape", 44, le32(3));
  c.changed("rope-theta", "rope-theta", 56, le32(0x7f800000));
  c.changed("rope-theta-negative", "rope-theta", 56, le32(0xbf800000));
  c.changed("rms-norm-epsilon", "rms-norm-epsilon", 60, le32(0));
  c.changed("rms-norm-epsilon-nan", "rms-norm-epsilon", 60, le32(0x7fc00000));
  c.changed("directory-alignment", "directory-alignment", 80, le32(kDirectoryAt - 32));
  c.changed("data-alignment", "data-alignment", 92, le32(kDataAt - 1), {"data-range"});
  c.changed("tokenizer-range", "tokenizer-range", 64, le(std::uint64_t{good.size()}));
  c.changed("tokenizer-range-2-64", "tokenizer-range", 72, le(UINT64_MAX));
  c.changed("directory-range", "directory-range", 88, le32(UINT32_MAX));
  c.changed("data-range", "data-range", 92, le(std::uint64_t{kDataAt - 64}));
  c.changed("section-overlap", "section-overlap", 64, le(std::uint64_t{107}), {"tokenizer-magic"});
  c.changed("section-overlap-directory", "section-overlap", 64, le(std::uint64_t{kDirectoryAt - 27}),
            {"tokenizer-magic"});
  c.changed("layer-count", "layer-count", 32, le32(UINT32_MAX));
}

void add_tokenizer(Corpus& c) {
  const auto bad = [&](std::string name, std::string rule, std::string section) {
    c.add(std::move(name), std::move(rule), with_tokenizer(std::move(section)).bytes());
  };
  bad("tokenizer-short", "tokenizer-short", btok().substr(0, 27));
  bad("tokenizer-short-bpe1", "tokenizer-short", bpe1({}, {}).substr(0, 35));
  bad("tokenizer-short-nothing", "tokenizer-short", "");
  bad("tokenizer-magic", "tokenizer-magic", patched(btok(), 0, "WTOK"));
  bad("tokenizer-version", "tokenizer-version", patched(btok(), 4, le32(2)));
  bad("tokenizer-version-bpe1", "tokenizer-version", patched(bpe1({}, {}), 4, le32(0)));
  bad("tokenizer-vocab", "tokenizer-vocab", bpe1(kTokens, kMerges, 261));
  bad("btok-vocab", "btok-vocab", patched(btok(), 8, le32(261)));
  bad("btok-special", "btok-special", patched(btok(), 16, le32(256)));
  bad("special-id", "special-id", patched(bpe1(kTokens, kMerges), 20, le32(kV)));
  bad("tokenizer-counts", "tokenizer-counts", patched(bpe1(kTokens, kMerges), 28, le32(UINT32_MAX)));
  bad("tokenizer-counts-merges", "tokenizer-counts", patched(bpe1(kTokens, kMerges), 32, le32(UINT32_MAX)));
  bad("token-record", "token-record", patched(bpe1(kTokens, {}), 40, le32(1000)));
  bad("token-record-merges", "token-record", patched(bpe1({{97, "aaaaaaaaaaaaaaaaaaaaaaaa"}}, {}), 32, le32(1)));
  bad("token-id", "token-id", bpe1({{kV, "a"}}, {}));
  bad("empty-token", "empty-token", bpe1({{97, ""}, {98, "bbbbb"}}, {}));
  bad("duplicate-token-id", "duplicate-token-id", bpe1({{97, "a"}, {98, "b"}, {97, "c"}}, {}));
  bad("merge-id", "merge-id", bpe1(kTokens, {{97, kV, 259, 0}}));
  bad("merge-output", "merge-output", bpe1(kTokens, {{97, 98, 258, 0}}));
  bad("merge-output-byte", "merge-output", bpe1(kTokens, {{98, 99, 0, 0}}));  // would turn "bc" into NUL
  bad("tokenizer-trailing", "tokenizer-trailing", btok() + '\0');
  bad("tokenizer-trailing-bpe1", "tokenizer-trailing", bpe1(kTokens, kMerges) + '\0');
  bad("repeated-merge", "repeated-merge", bpe1(kTokens, {{97, 98, 259, 0}, {98, 97, 259, 1}, {97, 98, 259, 2}}));
}

void add_entries(Corpus& c) {
  c.changed("dtype", "dtype", entry(2, kDtypeAt), le32(4));
  c.changed("dtype-0", "dtype", entry(2, kDtypeAt), le32(0));
  c.changed("rank", "rank", entry(2, kRankAt), le32(5));
  c.changed("rank-0", "rank", entry(2, kRankAt), le32(0));
  c.changed("zero-dim", "zero-dim", entry(2, kDimsAt), le32(0));
  c.changed("dim-past-rank", "dim-past-rank", entry(2, kDimsAt + 12), le32(1));
  c.changed("size-overflow", "size-overflow", entry(2, kRankAt),
            le32(4) + le32(UINT32_MAX) + le32(UINT32_MAX) + le32(UINT32_MAX) + le32(UINT32_MAX));
  c.changed("payload-alignment", "payload-alignment", entry(2, kOffsetAt), le(std::uint64_t{kDataAt + 32}));
  c.changed("payload-before-data", "payload-before-data", entry(2, kOffsetAt), le(std::uint64_t{kDirectoryAt}));
  c.changed("payload-range", "payload-range", entry(2, kOffsetAt), le(std::uint64_t{1} << 40));
  c.changed("payload-range-2-64", "payload-range", entry(2, kOffsetAt), le(UINT64_MAX - 63));
  c.changed("payload-length", "payload-length", entry(2, kLengthAt), le(std::uint64_t{4}));
  c.changed("payload-length-2-64", "payload-length", entry(2, kLengthAt), le(UINT64_MAX), {"payload-range"});
  c.changed("f32-scales", "f32-scales", entry(2, kScalesAt), le(std::uint64_t{kDataAt}));
  c.changed("f32-scales-block", "f32-scales", entry(2, kBlockAt), le32(2));
  const std::string q8 = tied(2).bytes(), q4 = tied(3).bytes();
  const auto of = [&](std::string name, std::string rule, const std::string& base, std::size_t at,
                      const std::string& to, std::vector<std::string> others = {}) {
    c.add(std::move(name), std::move(rule), sealed(patched(base, at, to)), std::move(others));
  };
  File odd = with(tensor("#00000000000000bb", {3}));
  odd.tensors.back().dtype = 3;
  c.add("q4-odd", "q4-odd", odd.bytes());
  of("q8-block", "q8-block", q8, entry(4, kBlockAt), le32(1));
  of("q4-block", "q4-block", q4, entry(4, kBlockAt), le32(4));
  of("q4-block-0", "q4-block", q4, entry(4, kBlockAt), le32(0));
  of("q4-block-odd", "q4-block", q4, entry(4, kBlockAt), le32(1));
  of("missing-scales", "missing-scales", q8, entry(4, kScalesAt), le(std::uint64_t{0}));
  of("scales-before-data", "scales-before-data", q8, entry(4, kScalesAt), le(std::uint64_t{kDirectoryAt}));
  of("scales-range", "scales-range", q4, entry(4, kScalesAt), le(std::uint64_t{q4.size() - 4}));
  File shifted = tied(2);
  shifted.tensors[4].scales.insert(0, 2, '\0');
  std::string unaligned = shifted.bytes();
  unaligned[entry(4, kScalesAt)] = static_cast<char>(unaligned[entry(4, kScalesAt)] + 2);
  c.add("scales-alignment", "scales-alignment", sealed(unaligned));
  c.add("duplicate-hash", "duplicate-hash", with(tensor("norm.weight", {kH})).bytes());
}

void add_whole(Corpus& c) {
  File alias = tied();
  alias.tensors[2].name = "layers.0.attn_norm.weight";
  c.add("attn-norm", "attn-norm", alias.bytes());
  c.add("both-names", "both-names", with(tensor("layers.0.attn_norm.weight", {kH})).bytes());
  c.add("tensor-shape", "tensor-shape", [] {
    File file = tied();
    file.tensors[8] = tensor("layers.0.w1.weight", {kF, kH + 1});
    return file.bytes();
  }());
  c.add("tensor-shape-rank", "tensor-shape", [] {
    File file = tied();
    file.tensors[1] = tensor("norm.weight", {1, 1, kH});
    return file.bytes();
  }());
  File missing = tied();
  missing.tensors.erase(missing.tensors.begin() + 5);
  c.add("missing-tensor", "missing-tensor", missing.bytes());
  missing.tensors.clear();
  c.add("missing-tensor-all", "missing-tensor", missing.bytes(), std::vector<std::string>(10, "missing-tensor"));
  c.changed("missing-tensor-layer", "missing-tensor", 32, le32(2), std::vector<std::string>(8, "missing-tensor"));
  c.changed("missing-output", "missing-output", 16, le32(0));
  const std::uint64_t first = kDataAt;  // the embeddings, 2,080 bytes
  c.changed("overlap", "overlap", entry(2, kOffsetAt), le(std::uint64_t{first + 64}));
  File trailing = tied();
  trailing.tail = std::string(64 - 48, '\0');
  c.add("trailing-bytes", "trailing-bytes", trailing.bytes());
}

void add_content(Corpus& c) {
  const std::string good = tied().bytes();
  const std::size_t value = kDataAt + 8;
  c.add("checksum", "checksum", patched(good, value, std::string(1, '\1')));
  c.add("checksum-field", "checksum", patched(good, 100, std::string(1, static_cast<char>(good[100] ^ 1))));
  c.add("checksum-header", "checksum", patched(good, 52, le32(17)));
  c.changed("not-finite", "not-finite", value, le32(0x7f800000));
  c.changed("not-finite-nan", "not-finite", value, le32(0xffc00001));
  c.add("checksum-and-value", "checksum", patched(good, value, le32(0x7f800000)), {"not-finite"});
  const std::string q8 = tied(2).bytes();
  const std::size_t scales_at = q8.find(scales(kV));
  for (const auto& [name, bits] :
       {std::pair{"scale-value", 0U}, {"scale-value-negative", 0xbf800000U}, {"scale-value-nan", 0x7fc00000U}})
    c.add(name, "scale-value", sealed(patched(q8, scales_at + 4, le(bits))));
  // The first bad value of each tensor, by offset.
  std::string many = patched(good, good.size() - 64, le32(0x7f800000));
  many = patched(std::move(many), value + 4, le32(0x7f800000) + le32(0x7f800000));
  c.add("not-finite-two-tensors", "not-finite", sealed(std::move(many)), {"not-finite"});
}

// Files that are valid except under the low limits that the caller sets, so none of them is committed.
void add_limits(Corpus& c) {
  const auto limited = [&](std::string name, std::string rule, auto set) {
    core::CorpusCase& one = c.add(std::move(name), std::move(rule), tied().bytes());
    one.generated_only = true;
    set(one.limits);
  };
  limited("limit-header", "limit/header", [](Limits& l) { l.header = 108 + 28 + 11 * 64 - 1; });
  limited("limit-tensors", "limit/tensors", [](Limits& l) { l.tensors = 10; });
}

}  // namespace

std::vector<core::CorpusCase> cases() {
  Corpus c;
  add_valid(c);
  add_header(c);
  add_tokenizer(c);
  add_entries(c);
  add_whole(c);
  add_content(c);
  add_limits(c);
  return c.take();
}

}  // namespace weighbridge::slm_format
