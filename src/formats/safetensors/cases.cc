// SPDX-License-Identifier: Apache-2.0
// The corpus of safetensors: for each rule the smallest file that breaks it and near misses that do not, and valid
// files of every kind. The files are built by hand, not by the writer, so that reader and writer cannot share a
// mistake.
#include <string>
#include <utility>

#include "formats/safetensors/format.h"
#include "formats/safetensors/layout.h"
#include "support/corpus_case.h"

namespace weighbridge::safetensors {
namespace {

std::string length_bytes(std::uint64_t length) {
  std::string out;
  for (std::uint32_t i = 0; i < kLengthSize; ++i) out += static_cast<char>(length >> (8 * i) & 0xFF);
  return out;
}

std::string file(std::string_view header, std::string_view data = {}) {
  return length_bytes(header.size()).append(header).append(data);
}

std::string entry(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return std::string(R"({"dtype":")")
             .append(dtype)
             .append(R"(","shape":[)")
             .append(shape)
             .append(R"(],"data_offsets":[)") +
         std::string(offsets) + "]}";
}
// The quoted name of a tensor and its entry.
std::string tensor(std::string_view name, std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return std::string("\"").append(name).append("\":") + entry(dtype, shape, offsets);
}

const std::string kFour = "\x01\x02\x03\x04";
const std::string kOne = tensor("a", "U8", "4", "0,4");  // valid with the data kFour

class Corpus : public core::CorpusCases {
 public:
  Corpus() : CorpusCases("safetensors") {}
  void valid(std::string name, std::string bytes) { add("valid-" + std::move(name), "", std::move(bytes)); }
  // Adds a file with one tensor, named a, whose data is kFour and whose entry is `text`.
  void one(std::string name, std::string rule, std::string_view text, std::vector<std::string> others = {}) {
    add(std::move(name), std::move(rule), file(std::string("{\"a\":").append(text) + "}", kFour), std::move(others));
  }
};

void add_valid(Corpus& c) {
  c.valid("empty", file("{}"));
  c.valid("empty-metadata", file(R"({"__metadata__":{}})"));
  c.valid("one", file("{" + kOne + "}", kFour));
  c.valid("metadata", file(R"({"__metadata__":{"format":"pt","z":"","a":"\u00e9 \"x\"\n"},)" + kOne + "}", kFour));
  // Metadata that state something untrue about the tensors (core/writing/claims.h).
  c.add(
      "claim-data-hash", "claim/data-hash",
      file(
          R"({"__metadata__":{"sshs_model_hash":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},)" +
              kOne + "}",
          kFour));
  c.add("claim-data-hash-legacy", "claim/data-hash",
        file(R"({"__metadata__":{"sshs_legacy_hash":"00000000"},)" + kOne + "}", kFour));
  c.valid("claim-data-hash", file(R"({"__metadata__":{"modelspec.hash_sha256":)"
                                  R"("0x9F64A747E1B97F131FABB6B447296C9B6F0201E79FB3C5356E6C77E89B6A806A",)"
                                  R"("sshs_legacy_hash":"e3b0c442"},)" +
                                      kOne + "}",
                                  kFour));
  const std::string embeddings =
      tensor("model.embed_tokens.weight", "U8", "2,1", "0,2") + "," + tensor("lm_head.weight", "U8", "2,1", "2,4");
  const std::string tied = R"({"__metadata__":{"tie_word_embeddings":"true","bos_token_id":"1"},)" + embeddings + "}";
  c.add("claim-tied", "claim/tied", file(tied, kFour));
  c.valid("claim-tied", file(tied, "\x01\x02\x01\x02"));
  c.add("claim-token-id", "claim/token-id",
        file(R"({"__metadata__":{"eos_token_id":"[1, 2]","pad_token_id":"-1"},)" + embeddings + "}", kFour));
  c.add("claim-vocabulary", "claim/vocabulary",
        file(R"({"__metadata__":{"vocab_size":"3"},)" + embeddings + "}", kFour));
  c.valid("metadata-last", file("{" + kOne + R"(,"__metadata__":{"format":"pt"}})", kFour));
  c.valid("metadata-null", file(R"({"__metadata__":null,)" + kOne + "}", kFour));
  c.valid("metadata-escaped-key", file(R"({"\u005f_metadata__":{"a":"b"}})"));
  c.valid("scalar", file("{" + tensor("a", "F32", "", "0,4") + "}", kFour));
  c.valid("rank-64", file("{" +
                              tensor(
                                  "a", "U8",
                                  "4" +
                                      [] {
                                        std::string ones;
                                        for (int i = 1; i < 64; ++i) ones += ",1";
                                        return ones;
                                      }(),
                                  "0,4") +
                              "}",
                          kFour));
  c.valid("no-elements", file("{" + tensor("a", "F32", "0", "0,0") + "," + tensor("b", "U8", "4", "0,4") + "," +
                                  tensor("c", "F64", "3,0", "4,4") + "}",
                              kFour));
  c.valid("no-elements-huge-dimensions",
          file("{" + tensor("a", "F32", "18446744073709551615,0,18446744073709551615", "0,0") + "}"));
  c.valid("trailing-spaces", file("{" + kOne + "}   ", kFour));
  c.valid("white-space-inside",
          file("{ \"a\" :\n{\"dtype\": \"U8\",\r\n\t\"shape\": [ 4 ], \"data_offsets\": [0, 4] } }", kFour));
  c.valid("keys-in-any-order", file(R"({"a":{"data_offsets":[0,4],"shape":[2,2],"dtype":"I8"}})", kFour));
  c.valid("keys-escaped", file(R"({"a":{"\u0064type":"\u00558","sh\u0061pe":[4],"data_offsets":[0,4]}})", kFour));
  c.valid(
      "names",
      file("{" + tensor("", "U8", "1", "0,1") + "," + tensor(R"(\u0061\"\\\/\n\ud83d\ude00)", "U8", "1", "1,2") + "," +
               tensor("\xC3\xA9.\xE6\x97\xA5", "U8", "1", "2,3") + "," + tensor(R"(\u0000)", "U8", "1", "3,4") + "}",
           kFour));
  c.valid("index-not-in-data-order",
          file("{" + tensor("b", "U8", "1", "3,4") + "," + tensor("a", "U8", "3", "0,3") + "}", kFour));

  std::string header = "{", data;
  for (const DTypeName& d : kDTypes) {
    const std::uint64_t size = info(d.dtype).bits;  // eight elements
    if (header.size() > 1) header += ',';
    header += tensor(d.name, d.name, "2,4", std::to_string(data.size()) + "," + std::to_string(data.size() + size));
    for (std::uint64_t i = 0; i < size; ++i) data += static_cast<char>(d.dtype == DType::boolean ? i % 2 : i);
  }
  c.valid("every-dtype", file(header + "}", data));
}

void add_header(Corpus& c) {
  c.add("too-short", "too-short", std::string("\x02\0\0", 3));
  c.add("too-short-by-one", "too-short", std::string("\x02\0\0\0\0\0\0", 7));
  c.add("header-too-short", "header-too-short", file("{"));
  c.add("header-too-short-0", "header-too-short", file(""));
  c.add("header-too-large", "header-too-large", length_bytes(kMaxHeader + 1) + "{}");
  c.add("header-too-large-2-64", "header-too-large", length_bytes(UINT64_MAX) + "{}");
  c.add("header-past-end", "header-past-end", length_bytes(3) + "{}");
  c.add("header-past-end-largest-allowed", "header-past-end", length_bytes(kMaxHeader) + "{}");
  c.add("header-past-end-no-byte", "header-past-end", length_bytes(2));
  c.add("header-start", "header-start", file(" {}"));
  c.add("header-start-array", "header-start", file("[]"));
  c.add("header-start-byte-order-mark", "header-start", file("\xEF\xBB\xBF{}"));
  c.add("header-utf8", "header-utf8", file("{" + tensor("\xFF", "U8", "4", "0,4") + "}", kFour));
  c.add("header-utf8-overlong", "header-utf8", file("{" + tensor("\xC0\xAF", "U8", "4", "0,4") + "}", kFour));
  c.add("header-utf8-surrogate", "header-utf8", file("{" + tensor("\xED\xA0\x80", "U8", "4", "0,4") + "}", kFour));
  c.add("header-json", "header-json", file("{]"));
  c.add("header-json-not-closed", "header-json", file("{" + kOne, kFour));
  c.add("header-json-comma", "header-json", file("{" + kOne + ",}", kFour));
  c.add("header-json-lone-surrogate", "header-json", file("{" + tensor(R"(\ud800)", "U8", "4", "0,4") + "}", kFour));
  c.add("header-json-control", "header-json", file("{" + tensor("\n", "U8", "4", "0,4") + "}", kFour));
  c.add("header-json-leading-zero", "header-json", file("{" + tensor("a", "U8", "04", "0,4") + "}", kFour));
  c.add("header-json-plus", "header-json", file("{" + tensor("a", "U8", "+4", "0,4") + "}", kFour));
  c.add("header-trailing", "header-trailing", file("{" + kOne + "} x", kFour));
  c.add("header-trailing-line-feed", "header-trailing", file("{" + kOne + "}\n", kFour));
  c.add("header-trailing-zero", "header-trailing", file("{" + kOne + "}" + std::string(1, '\0'), kFour));
}

void add_keys(Corpus& c) {
  c.add("metadata-type", "metadata-type", file(R"({"__metadata__":["a"]})"));
  c.add("metadata-value", "metadata-value", file(R"({"__metadata__":{"a":1}})"));
  c.add("metadata-value-nested", "metadata-value", file(R"({"__metadata__":{"a":"b","c":{"d":"e"}}})"));
  c.add("duplicate-metadata-key", "duplicate-metadata-key", file(R"({"__metadata__":{"a":"1","b":"2","\u0061":"3"}})"));
  c.add("duplicate-metadata", "duplicate-metadata", file(R"({"__metadata__":{},"__metadata__":{}})"));
  c.add("duplicate-metadata-tensor", "duplicate-metadata",
        file(R"({"__metadata__":{},)" + tensor("__metadata__", "U8", "4", "0,4") + "}", kFour), {"trailing-data"});
  c.add("metadata-value-tensor", "metadata-value", file("{" + tensor("__metadata__", "U8", "4", "0,4") + "}", kFour),
        {"metadata-value", "trailing-data"});
  c.one("entry-type", "entry-type", "[0,4]");
  c.one("entry-type-null", "entry-type", "null");
  c.one("duplicate-key", "duplicate-key", R"({"dtype":"U8","shape":[4],"data_offsets":[0,4],"dtype":"I8"})");
  c.one("duplicate-key-escaped", "duplicate-key",
        R"({"dtype":"U8","shape":[4],"data_offsets":[0,4],"\u0073hape":[4]})");
  c.one("duplicate-key-unknown", "unknown-key", R"({"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":1,"\u0078":2})",
        {"unknown-key", "duplicate-key"});
  c.one("unknown-key", "unknown-key", R"({"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":{"y":[1,null,"z"]}})");
  c.one("missing-key", "missing-key", R"({"dtype":"U8","shape":[4]})");
  c.one("missing-key-dtype", "missing-key", R"({"shape":[4],"data_offsets":[0,4]})");
  c.one("missing-key-shape", "missing-key", R"({"dtype":"U8","data_offsets":[0,4]})");
  c.one("missing-key-all", "missing-key", "{}");
  c.add("duplicate-name", "duplicate-name",
        file("{" + tensor("a", "U8", "2", "0,2") + "," + tensor(R"(\u0061)", "U8", "2", "2,4") + "}", kFour));
}

void add_values(Corpus& c) {
  c.one("dtype-type", "dtype-type", R"({"dtype":8,"shape":[4],"data_offsets":[0,4]})");
  c.one("unknown-dtype", "unknown-dtype", entry("U9", "4", "0,4"));
  c.one("unknown-dtype-lower-case", "unknown-dtype", entry("u8", "4", "0,4"));
  c.one("unknown-dtype-any-size", "unknown-dtype", entry("F128", "18446744073709551615,2", "0,4"));
  c.one("shape-type", "shape-type", R"({"dtype":"U8","shape":4,"data_offsets":[0,4]})");
  c.one("shape-number", "shape-number", entry("U8", "-4", "0,4"));
  c.one("shape-number-minus-zero", "shape-number", entry("U8", "-0", "0,4"));
  c.one("shape-number-point", "shape-number", entry("U8", "4.0", "0,4"));
  c.one("shape-number-exponent", "shape-number", entry("U8", "4e0", "0,4"));
  c.one("shape-number-text", "shape-number", entry("U8", R"("4")", "0,4"));
  c.one("shape-number-2-64", "shape-number", entry("U8", "18446744073709551616", "0,4"));
  c.one("offsets-type", "offsets-type", R"({"dtype":"U8","shape":[4],"data_offsets":{"0":4}})");
  c.one("offsets-number", "offsets-number", entry("U8", "4", "0,4.5"));
  c.one("offsets-number-negative", "offsets-number", entry("U8", "4", "-0,4"));
  c.one("offsets-number-2-64", "offsets-number", entry("U8", "4", "0,18446744073709551616"));
  c.one("offsets-count", "offsets-count", entry("U8", "4", "0"));
  c.one("offsets-count-3", "offsets-count", entry("U8", "4", "0,4,4"));
  c.one("offsets-order", "offsets-order", entry("U8", "4", "4,0"));
  c.one("offsets-order-2-64", "offsets-order", entry("U8", "4", "18446744073709551615,3"));
  std::string ones;
  for (int i = 0; i < 64; ++i) ones += "1,";
  c.one("rank-too-high", "rank-too-high", entry("U8", ones + "4", "0,4"));
  c.one("size-overflow", "size-overflow", entry("U8", "4294967296,4294967296", "0,4"));
  c.one("size-overflow-bits", "size-overflow", entry("U8", "2305843009213693952", "0,4"));
  c.one("size-overflow-wraps-to-0", "size-overflow", entry("F32", "4611686018427387904", "0,0"), {"trailing-data"});
  c.one("partial-byte", "partial-byte", entry("F4", "7", "0,4"));
  c.one("partial-byte-f6", "partial-byte", entry("F6_E2M3", "5", "0,4"));
  c.one("size-mismatch", "size-mismatch", entry("U8", "3", "0,4"));
  c.one("size-mismatch-more", "size-mismatch", entry("U8", "5", "0,4"));
  c.one("size-mismatch-f4", "size-mismatch", entry("F4", "6", "0,4"));
  c.one("bool-byte", "bool-byte", entry("BOOL", "4", "0,4"));
}

void add_tiling(Corpus& c) {
  const auto two = [](std::string_view first, std::string_view second) {
    return file("{" + tensor("a", "U8", "2", first) + "," + tensor("b", "U8", "2", second) + "}", kFour);
  };
  c.add("truncated", "truncated",
        file("{" + tensor("a", "U8", "2", "0,2") + "," + tensor("b", "U8", "3", "2,5") + "}", kFour));
  c.add("truncated-all-data", "truncated", file("{" + kOne + "}"));
  c.add("truncated-from-the-middle", "truncated",
        file("{" + tensor("a", "U8", "9", "0,9") + "," + tensor("b", "U8", "1", "9,10") + "}", kFour));
  c.add("hole", "hole", file("{" + tensor("a", "U8", "1", "0,1") + "," + tensor("b", "U8", "2", "2,4") + "}", kFour));
  c.add("hole-at-the-start", "hole", file("{" + tensor("a", "U8", "3", "1,4") + "}", kFour));
  c.add("hole-before-the-last", "hole", two("0,2", "4,6"), {"data-past-end"});
  c.add("overlap", "overlap",
        file("{" + tensor("a", "U8", "3", "0,3") + "," + tensor("b", "U8", "2", "2,4") + "}", kFour));
  c.add("overlap-equal", "overlap", two("0,2", "0,2"), {"trailing-data"});
  c.add("overlap-inside", "overlap", file("{" + kOne + "," + tensor("b", "U8", "2", "1,3") + "}", kFour));
  c.add("overlap-no-elements-inside", "overlap", file("{" + kOne + "," + tensor("b", "U8", "0", "2,2") + "}", kFour));
  c.add("overlap-past-end", "overlap", file("{" + kOne + "," + tensor("b", "U8", "2", "3,5") + "}", kFour),
        {"data-past-end"});
  c.add("data-past-end", "data-past-end",
        file("{" + tensor("a", "U8", "9", "0,9") + "," + tensor("b", "U8", "2", "2,4") + "}", kFour), {"overlap"});
  c.one("size-mismatch-2-64", "size-mismatch", entry("U8", "4", "0,18446744073709551615"), {"data-past-end"});
  c.add("trailing-data", "trailing-data", file("{" + kOne + "}", kFour + "x"));
  c.add("also-another", "file/also-another", file("{" + tensor("w", "U8", "8", "0,8") + "}", "ZTEN1000"));
  c.add("trailing-data-no-tensors", "trailing-data", file("{}", "x"));
}

// Files that are valid except under the low limits that the caller sets, so none of them is committed.
void add_limits(Corpus& c) {
  const auto limited = [&](std::string name, std::string rule, std::string bytes, auto set) {
    c.add(std::move(name), std::move(rule), std::move(bytes));
    c.last().generated_only = true;
    set(c.last().limits);
  };
  limited("limit-header", "limit/header", file("{" + kOne + "}", kFour), [](Limits& l) { l.header = 52; });
  limited("limit-tensors", "limit/tensors", file("{" + kOne + "," + tensor("b", "U8", "0", "4,4") + "}", kFour),
          [](Limits& l) { l.tensors = 1; });
  limited("limit-depth", "limit/depth",
          file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":[[[]]]}})", kFour),
          [](Limits& l) { l.depth = 4; });
  limited("limit-memory", "limit/memory", file(R"({"__metadata__":{"a":"","b":"","c":""}})"),
          [](Limits& l) { l.memory = 512; });
}

// An index beside one shard of two tensors, a and b, of four bytes each.
void add_shards(Corpus& c) {
  const std::string both = file("{" + kOne + "," + tensor("b", "U8", "4", "4,8") + "}", kFour + kFour);
  const auto add = [&](std::string name, std::string rule, const std::string& index, std::string shard,
                       std::vector<std::string> others = {}) {
    std::string of_shard = name + "-00001-of-00001.safetensors", text = index;
    for (std::size_t at; (at = text.find('$')) != std::string::npos;) text.replace(at, 1, of_shard);
    c.add(std::move(name), std::move(rule), std::move(text), std::move(others));
    c.last().extension = "safetensors.index.json";
    c.last().sidecar = core::CorpusSidecar{.extension = {}, .bytes = std::move(shard), .name = std::move(of_shard)};
  };
  const std::string sound = R"({"metadata":{"total_size":8},"weight_map":{"a":"$","b":"$"}})";
  add("valid-index", "", sound, both);
  add("valid-index-without-size", "", R"({"weight_map":{"a":"$","b":"$"}})", both);
  add("index-json", "index-json", R"({"weight_map":{"a":"$","b":"$"})", both);
  add("index-value", "index-value", R"({"map":{"a":"$"}})", both);
  add("index-value-list", "index-value", R"({"weight_map":["$"]})", both);
  add("index-value-number", "index-value", R"({"weight_map":{"a":1}})", both);
  add("index-duplicate-key", "index-duplicate-key", R"({"weight_map":{"a":"$","b":"$","a":"$"}})", both);
  add("index-duplicate-key-root", "index-duplicate-key", R"({"weight_map":{"a":"$","b":"$"},"weight_map":{}})", both);
  add("shard-path", "shard-path", R"({"weight_map":{"a":"$","b":"$","c":"../c.safetensors"}})", both);
  add("shard-path-absolute", "shard-path", R"({"weight_map":{"a":"$","b":"$","c":"/etc/passwd"}})", both);
  add("shard-path-dots", "shard-path", R"({"weight_map":{"a":"$","b":"$","c":".."}})", both);
  add("shard-missing", "shard-missing", R"({"weight_map":{"a":"$","b":"$","c":"other.safetensors"}})", both);
  add("shard-format", "shard-format", sound, "ZTEN1000" + std::string(64, '\0') + "ZTEN1000");
  add("shard-truncated", "truncated", sound, both.substr(0, both.size() - 1));
  add("tensor-missing", "tensor-missing", R"({"weight_map":{"a":"$","b":"$","c":"$"}})", both);
  add("tensor-unlisted", "tensor-unlisted", R"({"weight_map":{"a":"$"}})", both);
  add("total-size", "total-size", R"({"metadata":{"total_size":9},"weight_map":{"a":"$","b":"$"}})", both);
  add("total-size-text", "total-size", R"({"metadata":{"total_size":"8"},"weight_map":{"a":"$","b":"$"}})", both);
  // The index names itself, which is not a shard. Reading it must not loop.
  add("shard-is-the-index", "", R"({"weight_map":{"a":"$","b":"$","c":"shard-is-the-index.safetensors.index.json"}})",
      both);
  c.last().rule = "file/text";
  // A case has only two files: this shard and its index.
  c.add("shard-alone-00001-of-00002", "shard-alone", both);
  c.last().sidecar =
      core::CorpusSidecar{.extension = {},
                          .bytes = R"({"weight_map":{"a":"shard-alone-00001-of-00002.safetensors",)"
                                   R"("b":"shard-alone-00001-of-00002.safetensors","c":"other.safetensors"}})",
                          .name = "shard-alone.safetensors.index.json"};
  // Its name alone says so.
  c.add("shard-alone-by-name-00001-of-00002", "shard-alone", both);
  c.add("valid-shard-of-one-00001-of-00001", "", both);
}

// A quantized layer, with the config as the text that converters put into metadata.
struct Stored {
  std::string_view name, dtype, shape;
  std::string bytes;
};
std::string times(std::string_view bytes, std::size_t n) {
  std::string out;
  while (n-- > 0) out += bytes;
  return out;
}
std::string layer(std::string_view config, std::initializer_list<Stored> tensors) {
  std::string header = "{", data;
  if (!config.empty()) {
    header += R"("__metadata__":{"quantization_config":")";
    for (const char c : config) header.append(c == '"' ? "\\" : "").append(1, c);
    header += "\"},";
  }
  for (const Stored& each : tensors) {
    const std::size_t begin = data.size();
    data += each.bytes;
    header +=
        tensor(each.name, each.dtype, each.shape, std::to_string(begin) + "," + std::to_string(data.size())) + ",";
  }
  header.back() = '}';
  return file(header, data);
}

// Quantized layers whose tensors, or whose config, contradict each other (src/recipes).
void add_quantized(Corpus& c) {
  const auto broken = [&](std::string name, std::string_view rule, std::string_view config,
                          std::initializer_list<Stored> tensors, std::vector<std::string> others = {}) {
    const std::string family = rule.starts_with("gptq/") ? "" : "quantized-";
    c.add(family + std::move(name), std::string(rule), layer(config, tensors), std::move(others));
  };
  const auto little = [](std::uint64_t value, std::uint32_t bytes = 8) {
    std::string out;
    for (std::uint32_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
    return out;
  };
  const std::string one = little(0x3C00, 2), half = little(0x3D000000, 4);  // f16 1, f32 1/32
  const std::string not_a_number = little(0x7FC00000, 4), infinite = little(0x7F800000, 4);

  const std::string_view blocks = R"({"quant_method":"fp8","weight_block_size":[2,2]})";
  c.valid("quantized-fp8", layer(blocks, {{"a.weight", "F8_E4M3", "3,3", std::string(9, '8')},
                                          {"a.weight_scale_inv", "F32", "2,2", times(half, 4)}}));
  const auto scaled = [&](std::string name, std::string_view rule, std::string_view shape, std::string scales) {
    broken(std::move(name), rule, blocks,
           {{"a.weight", "F8_E4M3", "3,3", std::string(9, '8')}, {"a.weight_scale_inv", "F32", shape, scales}});
  };
  scaled("shape-blocks", "quantized/shape", "1,1", half);
  scaled("shape-blocks-transposed", "quantized/shape", "1,4", times(half, 4));
  scaled("scale-nan", "quantized/scale", "2,2", times(half, 3) + not_a_number);
  scaled("scale-infinite", "quantized/scale", "2,2", times(half, 3) + infinite);
  scaled("scale-negative", "quantized/scale", "2,2", times(half, 3) + little(0xBD000000, 4));
  scaled("scale-zero", "quantized/scale", "2,2", std::string(16, '\0'));
  scaled("values", "quantized/values", "2,2", times(half, 3) + little(0x42C80000, 4));
  broken("missing-part-scale", "quantized/missing-part", blocks, {{"a.weight", "F8_E4M3", "3,3", std::string(9, '8')}});
  broken("stray-part", "quantized/stray-part", "", {{"a.weight_scale_inv", "F32", "2,2", times(half, 4)}});

  const std::string_view packed = R"({"quant_method":"compressed-tensors","format":"pack-quantized","bits":4})";
  const auto pack = [&](std::string name, std::string_view rule, std::string_view config, std::uint64_t rows,
                        std::uint64_t columns) {
    broken(std::move(name), rule, config,
           {{"a.weight_packed", "I32", "2,2", std::string(16, '8')},
            {"a.weight_scale", "F16", "2,1", times(one, 2)},
            {"a.weight_shape", "I64", "2", little(rows) + little(columns)}});
  };
  c.valid("quantized-packed", layer(packed, {{"a.weight_packed", "I32", "2,2", std::string(16, '8')},
                                             {"a.weight_scale", "F16", "2,1", times(one, 2)},
                                             {"a.weight_shape", "I64", "2", little(2) + little(16)}}));
  pack("state-columns", "quantized/state", packed, 2, 1000);
  pack("state-rows", "quantized/state", packed, 3, 16);
  pack("state-huge", "quantized/state", packed, 2, UINT64_MAX);
  broken("config-bits", "quantized/config", R"({"quant_method":"compressed-tensors","bits":8})",
         {{"a.weight_packed", "I32", "1,4", std::string(16, '8')},
          {"a.weight_scale", "F16", "1,1", one},
          {"a.weight_shape", "I64", "2", little(1) + little(30)}});
  broken("config-size", "quantized/config", R"({"quant_method":"fp8","weight_block_size":[-128,128]})",
         {{"a.weight", "F8_E4M3", "2,2", "1234"}, {"a.weight_scale_inv", "F32", "1,1", half}});
  pack("config-format", "quantized/config",
       R"({"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized","bits":4})", 2, 16);
  pack("config-exclusion", "quantized/config", R"({"quant_method":"compressed-tensors","bits":4,"ignore":["re:a.*"]})",
       2, 16);
  broken("missing-part", "quantized/missing-part", packed,
         {{"a.weight_packed", "I32", "2,2", std::string(16, '8')},
          {"a.weight_shape", "I64", "2", little(2) + little(16)}});
  broken("missing-part-shape", "quantized/missing-part", packed,
         {{"a.weight_packed", "I32", "2,2", std::string(16, '8')}, {"a.weight_scale", "F16", "2,1", times(one, 2)}});
  broken("global-scale", "quantized/global-scale", "",
         {{"a.weight_packed", "U8", "1,8", std::string(8, '\x11')},
          {"a.weight_scale", "F8_E4M3", "1,1", "\x08"},
          {"a.weight_global_scale", "F32", "1", half}});
  broken("global-scale-factor", "quantized/global-scale", "",
         {{"a.weight", "U8", "1,8", std::string(8, '\x11')},
          {"a.weight_scale", "F8_E4M3", "1,1", "\x08"},
          {"a.weight_scale_2", "F32", "", little(0x42C80000, 4)}});

  const std::string_view gptq = R"({"quant_method":"gptq","bits":4,"group_size":8,"sym":false})",
                         sym = R"({"quant_method":"gptq","bits":4,"group_size":8,"sym":true})";
  const auto grouped = [&](std::string name, std::string_view rule, std::string_view config, std::string zeros,
                           std::string groups, std::string shape = "16") {
    broken(std::move(name), rule, config,
           {{"a.qweight", "I32", "2,8", std::string(64, '\x77')},
            {"a.qzeros", "I32", "2,1", std::move(zeros)},
            {"a.scales", "F16", "2,8", times(little(0x1400, 2), 16)},
            {"a.g_idx", "I32", shape, std::move(groups)}});
  };
  const std::string sevens(8, '\x77'), order = times(little(0, 4), 8) + times(little(1, 4), 8);
  c.valid("quantized-gptq", layer(gptq, {{"a.qweight", "I32", "2,8", std::string(64, '\x77')},
                                         {"a.qzeros", "I32", "2,1", sevens},
                                         {"a.scales", "F16", "2,8", times(one, 16)},
                                         {"a.g_idx", "I32", "16", order}}));
  grouped("groups", "quantized/groups", gptq, sevens, order.substr(0, 60) + little(2, 4));
  grouped("groups-negative", "quantized/groups", gptq, sevens, order.substr(0, 60) + little(UINT32_MAX, 4));
  grouped("uneven-groups", "quantized/uneven-groups", gptq, sevens, order.substr(0, 60) + little(0, 4));
  broken("unused-bits", "quantized/unused-bits", gptq,
         {{"a.qweight", "I32", "2,8", std::string(64, '\x77')},
          {"a.qzeros", "I32", "2,1", sevens},
          {"a.scales", "F16", "2,8", times(one, 16)},
          {"a.g_idx", "I32", "15", order.substr(0, 60)}});
  grouped("shape-g-idx", "quantized/shape", gptq, sevens, times(order, 2) + order.substr(0, 32), "40");
  grouped("config-group", "quantized/config", R"({"quant_method":"gptq","bits":4,"group_size":4,"sym":false})", sevens,
          order);
  broken("config-method", "quantized/config", R"({"quant_method":"hqq"})",
         {{"a.weight", "F8_E4M3", "1,2", "88"}, {"a.weight_scale", "F32", "1", half}});
  grouped("gptq-zero-overflow", "gptq/zero-overflow", gptq, std::string(7, '\x77') + '\xF7', order);
  grouped("gptq-label", "gptq/label", sym, std::string(8, '\x88'), order);
  broken("shape-gptq", "quantized/shape", gptq,
         {{"a.qweight", "I32", "2,8", std::string(64, '\x77')},
          {"a.qzeros", "I32", "1,1", std::string(4, '\x77')},
          {"a.scales", "F16", "2,8", times(one, 16)}});
  broken("missing-part-scales", "quantized/missing-part", gptq,
         {{"a.qweight", "I32", "2,8", std::string(64, '\x77')}, {"a.qzeros", "I32", "2,1", sevens}});
  broken("shape-awq", "quantized/shape", R"({"quant_method":"awq","bits":4,"version":"gemm"})",
         {{"a.qweight", "I32", "4,1", std::string(16, '\x77')},
          {"a.qzeros", "I32", "1,1", std::string(4, '\x77')},
          {"a.scales", "F16", "3,8", times(one, 24)}});
  broken("shape-mlx", "quantized/shape", R"({"group_size":64,"bits":4})",
         {{"a.weight", "U32", "1,3", std::string(12, '\x77')},
          {"a.scales", "F16", "1,1", one},
          {"a.biases", "F16", "1,1", one}});

  std::string map;
  for (const std::uint32_t value :
       {0xBF800000U, 0xBF3239B1U, 0xBF066B30U, 0xBECA32A0U, 0xBE91A24DU, 0xBE3D353FU, 0xBDBA7871U, 0x00000000U,
        0x3DA2FAFFU, 0x3E24CAE3U, 0x3E7C04DDU, 0x3EAD033AU, 0x3EE1A4B8U, 0x3F1007ABU, 0x3F3913B3U, 0x3F800000U})
    map += little(value, 4);
  const auto nf4 = [&](std::string name, std::string_view rule, std::string_view state, std::size_t absmax = 2) {
    const std::string states = std::to_string(state.size()), count = std::to_string(absmax);
    const std::string data = layer("", {{"a.weight", "U8", "8,1", std::string(8, '\x77')},
                                        {"a.weight.absmax", "F32", count, times(half, absmax)},
                                        {"a.weight.quant_map", "F32", "16", map},
                                        {"a.weight.quant_state.bitsandbytes__nf4", "U8", states, std::string(state)}});
    if (rule.empty())
      c.valid("quantized-nf4", data);
    else
      c.add("quantized-" + std::move(name), std::string(rule), data);
  };
  const std::string_view state = R"({"quant_type":"nf4","blocksize":8,"dtype":"float16","shape":[3,5]})";
  nf4("", "", state);
  nf4("shape-absmax", "quantized/shape", state, 3);
  nf4("state-shape", "quantized/state", R"({"quant_type":"nf4","blocksize":8,"dtype":"float16","shape":[3,500]})");
  nf4("state-overflow", "quantized/state",
      R"({"quant_type":"nf4","blocksize":8,"dtype":"float16","shape":[4294967296,4294967296]})");
  nf4("state-cut", "quantized/state", R"({"quant_type":"nf4","blocksize":8,"dtype":"float16","shape":[3,5)");
  nf4("state-block", "quantized/state", R"({"quant_type":"nf4","blocksize":0,"dtype":"float16","shape":[3,5]})");
  nf4("state-type", "quantized/state", R"({"quant_type":"fp4","blocksize":8,"dtype":"float16","shape":[3,5]})");
  map[0] = '\x01';
  map[3] = '\x3F';
  nf4("map", "quantized/map", state);
}

}  // namespace

std::vector<core::CorpusCase> cases() {
  Corpus c;
  add_valid(c);
  add_header(c);
  add_keys(c);
  add_values(c);
  add_tiling(c);
  add_limits(c);
  add_shards(c);
  add_quantized(c);
  return c.take();
}

}  // namespace weighbridge::safetensors
