// SPDX-License-Identifier: Apache-2.0
// The corpus of GGUF: for each rule the smallest file that breaks it, and valid files of every kind. The files are
// built by hand, because they have to state what no writer states.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "formats/gguf/format.h"
#include "formats/gguf/layout.h"
#include "support/corpus_case.h"

namespace weighbridge::gguf {
namespace {

// The bytes of a header, in one byte order.
class Bytes {
 public:
  explicit Bytes(bool big = false) : big_(big) {}
  template <class T> Bytes& number(T value) {
    char bytes[sizeof(T)];
    std::copy_n(reinterpret_cast<const char*>(&value), sizeof(T), bytes);
    if (big_) std::reverse(bytes, bytes + sizeof(T));
    out.append(bytes, sizeof(T));
    return *this;
  }
  Bytes& u32(std::uint32_t value) { return number(value); }
  Bytes& u64(std::uint64_t value) { return number(value); }
  Bytes& text(std::string_view value) {
    u64(value.size());
    out += value;
    return *this;
  }
  Bytes& raw(std::string_view value) {
    out += value;
    return *this;
  }
  bool big() const { return big_; }
  std::string out;

 private:
  bool big_;
};

struct Tensor {
  std::string name;
  std::vector<std::uint64_t> shape;  // fastest first
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
};

// A whole file of its pieces. Values are complete: key, type, value.
struct File {
  bool big = false;
  std::uint32_t version = kVersion;
  std::vector<std::string> values{};
  std::vector<Tensor> tensors{};
  std::string data{};
  std::uint64_t alignment = kDefaultAlignment;
  std::uint64_t more_values = 0, more_tensors = 0;  // stated, but not there

  std::string bytes() const {
    Bytes out(big);
    out.raw(kMagic).u32(version).u64(tensors.size() + more_tensors).u64(values.size() + more_values);
    for (const std::string& value : values) out.raw(value);
    for (const Tensor& tensor : tensors) {
      out.text(tensor.name).u32(static_cast<std::uint32_t>(tensor.shape.size()));
      for (const std::uint64_t size : tensor.shape) out.u64(size);
      out.u32(tensor.type).u64(tensor.offset);
    }
    while (!data.empty() && out.out.size() % alignment != 0) out.raw(std::string_view("", 1));
    return out.out + data;
  }
};

Bytes value(std::string_view key, ValueType type, bool big = false) {
  Bytes out(big);
  out.text(key).u32(static_cast<std::uint32_t>(type));
  return out;
}
Bytes array(std::string_view key, std::uint32_t type, std::uint64_t count, bool big = false) {
  return std::move(value(key, ValueType::array, big).u32(type).u64(count));
}

// `count` numbers that count up.
std::string floats(int count, bool big = false) {
  Bytes out(big);
  for (int i = 0; i < count; ++i) out.number(static_cast<float>(i) / 4);
  return out.out;
}
std::string padded(std::string data, std::size_t to = 32) {
  data.resize((data.size() + to - 1) / to * to);
  return data;
}

// One value of each type, and an array of each.
std::vector<std::string> values_of_each_type(bool big) {
  std::vector<std::string> out;
  const auto add = [&](const Bytes& one) { out.push_back(one.out); };
  add(value("general.architecture", ValueType::text, big).text("llama"));
  add(value("a.u8", ValueType::u8, big).number<std::uint8_t>(200));
  add(value("a.i8", ValueType::i8, big).number<std::int8_t>(-100));
  add(value("a.u16", ValueType::u16, big).number<std::uint16_t>(60000));
  add(value("a.i16", ValueType::i16, big).number<std::int16_t>(-30000));
  add(value("a.u32", ValueType::u32, big).u32(4'000'000'000));
  add(value("a.i32", ValueType::i32, big).number<std::int32_t>(-2'000'000'000));
  add(value("a.u64", ValueType::u64, big).u64(UINT64_MAX));
  add(value("a.i64", ValueType::i64, big).number<std::int64_t>(-9'000'000'000));
  add(value("a.f32", ValueType::f32, big).number(0.1F));
  add(value("a.f64", ValueType::f64, big).number(0.1));
  add(value("a.true", ValueType::boolean, big).number<std::uint8_t>(1));
  add(value("a.empty", ValueType::text, big).text(""));
  add(array("b.i32", 5, 3, big).number<std::int32_t>(-1).number<std::int32_t>(2).number<std::int32_t>(3));
  add(array("b.f32", 6, 2, big).number(1.5F).number(-2.5F));
  add(array("b.bool", 7, 2, big).number<std::uint8_t>(0).number<std::uint8_t>(1));
  add(array("b.texts", 8, 3, big).text("a").text("").text("\xC3\xA9"));
  add(array("b.none", 4, 0, big));
  return out;
}

File two_tensors() {
  File out;
  out.tensors = {{"a", {3, 2}, 0, 0}, {"b", {5}, 24, 32}};
  out.data = padded(floats(6)) + padded("\1\2\3\4\5");
  return out;
}

class Corpus : public core::CorpusCases {
 public:
  Corpus() : CorpusCases("gguf") {}
  using CorpusCases::add;
  core::CorpusCase& add(std::string name, std::string rule, const File& file) {
    return add(std::move(name), std::move(rule), file.bytes());
  }
  core::CorpusCase& with(std::string name, std::string rule, const Bytes& one) {
    File file = two_tensors();
    file.values.push_back(one.out);
    return add(std::move(name), std::move(rule), file);
  }
  template <class Change> core::CorpusCase& changed(std::string name, std::string rule, Change change) {
    File file = two_tensors();
    change(file);
    return add(std::move(name), std::move(rule), file);
  }

  void valid();
  void header();
  void values();
  void infos();
  void data();
  void parts();
};

void Corpus::valid() {
  add("valid-empty", "", File{});
  add("valid-two-tensors", "", two_tensors());
  changed("valid-version-2", "", [](File& file) { file.version = 2; });
  changed("valid-values", "", [](File& file) { file.values = values_of_each_type(false); });
  File big;
  big.big = true;
  big.values = values_of_each_type(true);
  big.tensors = {{"a", {3, 2}, 0, 0}, {"b", {5}, 24, 32}};
  big.data = padded(floats(6, true)) + padded("\1\2\3\4\5");
  add("valid-big-endian", "", big);
  changed("valid-alignment", "", [](File& file) {
    file.values = {value(kAlignment, ValueType::u32).u32(64).out};
    file.alignment = 64;
    file.tensors[1].offset = 64;
    file.data = padded(floats(6), 64) + "\1\2\3\4\5";
  });
  changed("valid-alignment-of-1", "", [](File& file) {
    file.values = {value(kAlignment, ValueType::u32).u32(1).out};
    file.alignment = 1;
    file.tensors[1].offset = 24;
    file.data = floats(6) + "\1\2\3\4\5";
  });
  changed("valid-no-padding-at-the-end", "", [](File& file) { file.data.resize(32 + 5); });
  changed("valid-blocks", "", [](File& file) {
    file.tensors = {{"a", {32, 1}, 8, 0}};
    file.data = padded(std::string("\0\x3C", 2) + std::string(32, '\3'));  // a scale of 1
  });
  changed("valid-scalar-and-empty", "", [](File& file) {
    file.tensors = {{"scalar", {}, 0, 0}, {"empty", {0, 4}, 0, 32}, {"last", {1, 1, 1, 2}, 1, 32}};
    file.data = padded(floats(1)) + "1234";
  });
  // Without a byte of data the file ends with its header, before the data would begin.
  File empty;
  empty.tensors = {{"empty", {0, 4}, 1, 0}};
  add("valid-empty-tensor-alone", "", empty);
  empty.tensors = {{"empty", {0, 4}, 99, 0}};
  add("unknown-type-without-bytes", "unknown-type", empty);
}

void Corpus::header() {
  const std::string whole = two_tensors().bytes();
  add("too-short", "too-short", "GG");
  add("too-short-23", "too-short", whole.substr(0, 23));
  add("magic", "magic", "GGML" + whole.substr(4)).extension = "gguf";
  changed("version-0", "version", [](File& file) { file.version = 0; });
  changed("version-1", "version", [](File& file) { file.version = 1; });
  changed("version-4", "version", [](File& file) { file.version = 4; });
  changed("value-count", "value-count", [](File& file) { file.more_values = std::uint64_t{1} << 60; });
  changed("tensor-count", "tensor-count", [](File& file) { file.more_tensors = std::uint64_t{1} << 60; });
  // -1 in a program whose counts have a sign.
  changed("value-count-of-all-ones", "value-count", [](File& file) { file.more_values = UINT64_MAX; });
  changed("tensor-count-of-all-ones", "tensor-count", [](File& file) { file.more_tensors = UINT64_MAX - 2; });
  add("truncated-header", "truncated-header", whole.substr(0, 80));
  changed("truncated-header-values", "truncated-header", [](File& file) {
    file.more_values = 1;
    file.tensors.clear();
    file.data.clear();
    file.values = {value("a", ValueType::text).text("some text that is long enough").out};
  });
}

void Corpus::values() {
  with("key-utf8", "key-utf8", value("\xFF", ValueType::u8).number<std::uint8_t>(1));
  with("empty-key", "empty-key", value("", ValueType::u8).number<std::uint8_t>(1));
  changed("duplicate-key", "duplicate-key",
          [](File& file) { file.values.assign(2, value("a", ValueType::u8).number<std::uint8_t>(1).out); });
  with("value-type", "value-type", value("a", static_cast<ValueType>(13)));
  with("value-type-of-array", "value-type", array("a", 13, 1));
  with("nested-array", "nested-array", array("a", 9, 1).u32(4).u64(1).u32(7));
  with("length-of-key", "length", Bytes().u64(UINT64_MAX).raw("a").u32(0).raw("a"));
  with("length-of-text", "length", value("a", ValueType::text).u64(kMaxLength + 1));
  with("length-of-array", "length", array("a", 0, kMaxLength + 1));
  with("truncated-header-text", "truncated-header", value("a", ValueType::text).u64(1 << 20));
  with("truncated-header-array", "truncated-header", array("a", 4, 1 << 20));
  with("truncated-header-texts", "truncated-header", array("a", 8, 1 << 20));
  with("text-utf8", "text-utf8", value("a", ValueType::text).text("\xC3("));
  with("boolean-byte", "boolean-byte", value("a", ValueType::boolean).number<std::uint8_t>(2));
  with("boolean-byte-in-array", "boolean-byte", array("a", 7, 2).number<std::uint8_t>(1).number<std::uint8_t>(7));
  with("alignment-type", "alignment-type", value(kAlignment, ValueType::u64).u64(32));
  with("alignment-type-with-sign", "alignment-type", value(kAlignment, ValueType::i32).u32(32));
  with("alignment-value", "alignment-value", value(kAlignment, ValueType::u32).u32(48));
  with("alignment-value-zero", "alignment-value", value(kAlignment, ValueType::u32).u32(0));
}

void Corpus::infos() {
  changed("name-utf8", "name-utf8", [](File& file) { file.tensors[0].name = "a\x80"; });
  changed("name-length", "name-length", [](File& file) { file.tensors[0].name = std::string(64, 'a'); });
  changed("rank", "rank", [](File& file) { file.tensors[1].shape = {5, 1, 1, 1, 1}; });
  changed("dimension", "dimension", [](File& file) { file.tensors[1].shape = {std::uint64_t{1} << 63}; });
  changed("size-overflow", "size-overflow", [](File& file) {
    file.tensors[1].shape = {std::uint64_t{1} << 40, std::uint64_t{1} << 40};
  });
  changed("size-overflow-of-bytes", "size-overflow", [](File& file) {
    file.tensors[1].shape = {std::uint64_t{1} << 61};
    file.tensors[1].type = 0;
  });
  changed("block-row", "block-row", [](File& file) { file.tensors[1] = {"b", {31}, 2, 32}; });
  changed("unknown-type", "unknown-type", [](File& file) { file.tensors[1].type = 99; });
  changed("unknown-type-removed", "unknown-type", [](File& file) { file.tensors[0].type = 4; });
  File big;
  big.big = true;
  big.tensors = {{"a", {32}, 2, 0}};
  big.data = std::string(18, '\1');
  add("big-endian-blocks", "big-endian-blocks", big);
  changed("offset-alignment", "offset-alignment", [](File& file) { file.tensors[1].offset = 33; });
  changed("duplicate-name", "duplicate-name", [](File& file) { file.tensors[1].name = "a"; });
}

void Corpus::data() {
  changed("truncated", "truncated", [](File& file) { file.data.resize(34); });
  // The sum of the padded sizes is just below 2^64; llama.cpp reserved that sum plus a little more, which wrapped
  // around to a small number.
  changed("truncated-sizes-near-2-64", "truncated", [](File& file) {
    constexpr std::uint64_t kSize = 0x7FFFFFFFFFFFFFC0;
    file.tensors = {{"a", {kSize}, 24, 0}, {"b", {kSize}, 24, kSize}};
  });
  changed("data-past-end", "data-past-end", [](File& file) { file.tensors[1].offset = std::uint64_t{1} << 40; });
  changed("data-past-end-of-2-64", "data-past-end", [](File& file) { file.tensors[1].offset = ~std::uint64_t{31}; });
  changed("overlap", "overlap", [](File& file) { file.tensors[1].offset = 0; });
  changed("not-contiguous-equal-ranges", "not-contiguous", [](File& file) {
    file.tensors = {{"a", {3, 2}, 0, 0}, {"b", {2, 3}, 0, 0}};
    file.data = padded(floats(6));
  });
  changed("not-contiguous", "not-contiguous", [](File& file) {
    file.tensors[1].offset = 64;
    file.data += padded("\1\2\3\4\5");
  });
  changed("trailing-data", "trailing-data", [](File& file) { file.data += "more"; });
}

// One file of a split model with one tensor.
File part(std::uint16_t number, std::int32_t tensors = 2, std::string_view title = "a title") {
  File out;
  out.values = {value("general.name", ValueType::text).text(title).out,
                value(kSplitNumber, ValueType::u16).number(number).out,
                value(kSplitCount, ValueType::u16).number<std::uint16_t>(2).out,
                value(kSplitTensors, ValueType::i32).number(tensors).out};
  out.tensors = {{number == 0 ? "a" : "b", {8}, 0, 0}};
  out.data = floats(8);
  return out;
}

// The first of two files, beside the second.
void Corpus::parts() {
  const auto both = [&](const std::string& name, std::string rule, const std::string& first, std::string second) {
    core::CorpusCase& one = add(name + "-00001-of-00002", std::move(rule), first);
    one.sidecar =
        core::CorpusSidecar{.extension = {}, .bytes = std::move(second), .name = name + "-00002-of-00002.gguf"};
  };
  const std::string first = part(0).bytes(), second = part(1).bytes();
  both("valid-parts", "", first, second);
  add("part-missing-00001-of-00002", "part-missing", first);
  both("part-format", "part-format", first, "ZTEN1000" + std::string(64, '\0') + "ZTEN1000");
  File misnumbered = part(0);
  misnumbered.tensors[0].name = "b";
  both("part-number", "part-number", first, misnumbered.bytes());
  both("part-tensors", "part-tensors", part(0, 3).bytes(), second);
  both("part-tensors-negative", "part-tensors", part(0, -1).bytes(), second);
  both("part-metadata", "part-metadata", first, part(1, 2, "another title").bytes());
  File again = part(1);
  again.tensors[0].name = "a";
  both("part-duplicate-name", "duplicate-name", first, again.bytes());
  core::CorpusCase& later = add("valid-parts-by-the-second-00002-of-00002", "", second);
  later.sidecar =
      core::CorpusSidecar{.extension = {}, .bytes = first, .name = "valid-parts-by-the-second-00001-of-00002.gguf"};
  add("part-missing-first-00002-of-00002", "part-missing", second);
  add("part-missing-renamed", "part-missing", second);
  File words = two_tensors();
  words.values = {array("tokenizer.ggml.tokens", 8, 3).text("a").text("b").text("c").out,
                  value("tokenizer.ggml.bos_token_id", ValueType::u32).u32(2).out,
                  value("tokenizer.ggml.padding_token_id", ValueType::u32).u32(UINT32_MAX).out};
  add("valid-token-ids", "", words.bytes());
  words.values[1] = value("tokenizer.ggml.bos_token_id", ValueType::u32).u32(3).out;
  add("claim-token-id", "claim/token-id", words.bytes());
  words.values = {value("tokenizer.chat_template", ValueType::text).text("{{ m[0]['content'] }}").out};
  add("valid-chat-template", "", words.bytes());
  words.values = {value("tokenizer.chat_template", ValueType::text).text("{{ m['__class__'] }}").out};
  add("template-escape", "template/escape", words.bytes());
  words.values = {value("tokenizer.chat_template.tool", ValueType::text).text("{{ 'm }}").out};
  add("template-syntax", "template/syntax", words.bytes());
}

}  // namespace

std::vector<core::CorpusCase> cases() {
  Corpus out;
  out.valid();
  out.header();
  out.values();
  out.infos();
  out.data();
  out.parts();
  return out.take();
}

}  // namespace weighbridge::gguf
