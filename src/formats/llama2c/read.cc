// SPDX-License-Identifier: Apache-2.0
// A llama2.c checkpoint to Model: the one walker for open and verify. Seven integers determine where every tensor lies;
// tokenizer_file.cc reads the tokenizer file.
//
//   seven i32 (layout.h) | the tensors of layout.h, without gaps or names, f32, row-major
#include <algorithm>
#include <string>
#include <utility>

#include "base/endian.h"
#include "core/model/words.h"
#include "core/reading/rules.h"
#include "core/reading/walker.h"
#include "formats/llama2c/format.h"
#include "weighbridge/place.h"

namespace weighbridge::llama2c {
namespace {

using core::bytes_text;

// The header's sizes as unsigned numbers. They must have been checked.
struct Sizes {
  explicit Sizes(const Header& h)
      : dim(static_cast<std::uint64_t>(h.dim)),
        hidden(static_cast<std::uint64_t>(h.hidden_dim)),
        layers(static_cast<std::uint64_t>(h.n_layers)),
        head(dim / static_cast<std::uint64_t>(h.n_heads)),
        kv(head * static_cast<std::uint64_t>(h.n_kv_heads)),
        vocab(static_cast<std::uint64_t>(h.vocab_size < 0 ? -h.vocab_size : h.vocab_size)),
        context(static_cast<std::uint64_t>(h.seq_len)),
        tied(h.vocab_size > 0) {}

  // Rows and columns of a tensor; 0 columns for rank 1.
  std::pair<std::uint64_t, std::uint64_t> of(std::string_view name) const noexcept {
    if (name == "tok_embeddings" || name == "output") return {vocab, dim};
    if (name == "wk" || name == "wv") return {kv, dim};
    if (name == "wq" || name == "wo") return {dim, dim};
    if (name == "w1" || name == "w3") return {hidden, dim};
    if (name == "w2") return {dim, hidden};
    return {dim, 0};
  }

  std::uint64_t dim, hidden, layers, head, kv, vocab, context;
  bool tied;
};

class Walk : core::Walker {
 public:
  using Walker::Walker;

  void run() {
    draft_.set_format(kFormat.info.name);
    if (!read_header()) return;
    add_attributes();
    add_tensors();
    draft_.index_names();  // the names are generated, so none repeats
    read_tokenizer();
  }

 private:
  bool read_header() {
    if (!has_bytes(rules::kTooShort, kHeaderSize)) return false;
    std::byte bytes[kHeaderSize];
    source_.read_at(0, bytes);
    if (base::load_le<std::uint32_t>(bytes) == kLaterMagic)
      return findings_.fail(rules::kVersion, {.offset = 0}, {}, {"version ", base::load_le<std::uint32_t>(bytes + 4)});
    header_ = base::load_record<Header>(bytes);
    findings_.record<Header>(Span::Kind::structure, 0, bytes, "header");
    if (!check_fields(header_, findings_)) return false;
    draft_.set_version("0");
    if (const std::uint64_t needed = file_size(header_); needed != size_)
      return findings_.fail(rules::kLength, {.offset = std::min(needed, size_)}, core::in_bytes(needed),
                            core::in_bytes(size_));
    const Sizes s(header_);
    return few_enough(core::at_field(&Header::n_layers), s.layers * 9 + 4 + (s.tied ? 0 : 1));
  }

  // Uses the keys of Hugging Face's configurations, which other containers use too.
  void add_attributes() {
    const auto integer = [&](const char* key, std::int32_t value) {
      draft_.set_attribute(key, Value::integer(std::int64_t{value}, DType::i32));
    };
    integer("hidden_size", header_.dim);
    integer("intermediate_size", header_.hidden_dim);
    integer("num_hidden_layers", header_.n_layers);
    integer("num_attention_heads", header_.n_heads);
    integer("num_key_value_heads", header_.n_kv_heads);
    integer("vocab_size", header_.vocab_size < 0 ? -header_.vocab_size : header_.vocab_size);
    integer("max_position_embeddings", header_.seq_len);
    draft_.set_attribute("tie_word_embeddings", Value::boolean(header_.vocab_size > 0));
    draft_.set_attribute("rope_theta", Value::real(static_cast<double>(kRopeTheta), DType::f32));
    draft_.set_attribute("rms_norm_eps", Value::real(static_cast<double>(kNormEpsilon), DType::f32));
  }

  void add_tensors() {
    const Sizes s(header_);
    for (const Run& run : kRuns) {
      const auto [rows, columns] = s.of(run.name);
      const std::string part(run.name);
      if (!run.layered) add(part + ".weight", rows, columns);
      for (std::uint64_t layer = 0; run.layered && layer < s.layers; ++layer)
        add("layers." + std::to_string(layer) + "." + part + ".weight", rows, columns);
    }
    for (const std::string_view table : kRopeTables) add(std::string(table), s.context, s.head / 2);
    if (!s.tied) add("output.weight", s.vocab, s.dim);
  }

  // The header's bounds keep all sizes within 64 bits, and the file's length is their sum.
  void add(const std::string& name, std::uint64_t rows, std::uint64_t columns) {
    const std::uint64_t dims[] = {rows, columns};
    const Shape shape(dims, columns == 0 ? 1 : 2);
    const std::uint64_t length = rows * std::max<std::uint64_t>(columns, 1) * sizeof(float);
    draft_.add_tensor(name, Layout::dense, DType::f32, shape);
    draft_.add_part("data", DType::f32, shape, Encoding::raw, {0, at_, length}, length);
    at_ += length;
  }

  // Reads the tokenizer file that the caller names, or the one beside the checkpoint.
  void read_tokenizer() {
    const auto place = source_.place();
    const auto file = draft_.tokenizer ? draft_.tokenizer
                      : place          ? place->open(tokenizer_name(source_.file_name()))
                                       : nullptr;
    if (!file) return;
    draft_.add_source(file);
    core::Findings in_file = findings_.in(file);
    draft_.set_tokenizer(
        read_tokenizer_file(*file, static_cast<std::uint32_t>(Sizes(header_).vocab), limits_, in_file));
  }

  Header header_;
  std::uint64_t at_ = kHeaderSize;
};

}  // namespace

bool check_fields(const Header& h, core::Findings& findings) {
  bool good = true;
  std::size_t i = 0;
  Header::each(h, [&](const std::int32_t& field, base::FieldNote note) {
    const std::int64_t value = field, magnitude = &field == &h.vocab_size && value < 0 ? -value : value;
    if (good && (magnitude < 1 || magnitude > kMaxFields[i]))  // one says that this is not a checkpoint
      good = findings.fail(rules::kField, {.offset = 4 * i}, {"1 to ", kMaxFields[i]}, value, note.name);
    ++i;
  });
  if (!good) return false;
  if (h.dim % h.n_heads != 0 || h.dim / h.n_heads % 2 != 0)
    good =
        findings.fail(rules::kHeads, core::at_field(&Header::n_heads), {}, {h.n_heads, " heads of ", h.dim, " in all"});
  if (h.n_heads % h.n_kv_heads != 0)
    good = findings.fail(rules::kKvHeads, core::at_field(&Header::n_kv_heads), {}, {h.n_kv_heads, " for ", h.n_heads});
  return good;
}

std::uint64_t file_size(const Header& h) noexcept {
  const Sizes s(h);
  std::uint64_t values = 2 * s.context * (s.head / 2) + (s.tied ? 0 : s.vocab * s.dim);
  for (const Run& run : kRuns) {
    const auto [rows, columns] = s.of(run.name);
    values += rows * std::max<std::uint64_t>(columns, 1) * (run.layered ? s.layers : 1);
  }
  return kHeaderSize + values * sizeof(float);
}

void read(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  Walk(source, context, findings, draft).run();
}

}  // namespace weighbridge::llama2c
