// SPDX-License-Identifier: Apache-2.0
// Converts between source.manifest and models.
#include "chain/source_folder.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/fail.h"
#include "chain/outcome.h"
#include "chain/source_schemas.h"
#include "core/model/words.h"
#include "core/writing/layout.h"
#include "formats/slm/header.h"
#include "formats/slm/hyper.h"
#include "formats/slm/names.h"
#include "weighbridge/chain.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

bool is_shape(std::string_view field) noexcept {
  for (const Key& key : kShapeKeys)
    if (key.name == field) return true;
  return false;
}

// The numbers of a row, separated by single spaces.
std::vector<std::uint64_t> numbers_of(std::string_view text) {
  std::vector<std::uint64_t> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const auto number = parse_number(text.substr(begin, end - begin));
    if (!number || *number > UINT32_MAX) return {};
    out.push_back(*number);
    begin = end + 1;
  }
  return out;
}

std::string row(std::string_view group, std::uint64_t i) { return std::string(group) + "." + std::to_string(i); }

[[noreturn]] void bad_row(const std::string& key, std::string_view found, std::string expected) {
  refuse("value", key, "is " + expected + ", not " + core::quoted(core::excerpt(found)), {}, expected,
         core::excerpt(found));
}

}  // namespace

void internal::set_shape(Record& record, const slm_format::Header& header) {
  record.set("family", "llama");
  slm_format::each_hyperparameter(header, [&](const auto& field, std::string_view name, std::size_t) {
    if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(field)>>)
      record.set(name, Value::real(static_cast<double>(field), DType::f32).to_text());
    else if (is_shape(name))
      record.set(name, std::uint64_t{field});
  });
  record.set_flag("tied_output", (header.flags & slm_format::kTiedOutput) != 0);
}

std::vector<Value::Entry> internal::shape_attributes(const Record& record) {
  std::vector<Value::Entry> out;
  const auto put = [&](std::string_view field, Value value) {
    out.emplace_back(std::string(slm_format::kPrefix) + std::string(field), std::move(value));
  };
  put("flags", Value::integer(std::uint64_t{record.flag("tied_output") ? slm_format::kTiedOutput : 0}, DType::u32));
  slm_format::each_hyperparameter({}, [&](const auto& field, std::string_view name, std::size_t) {
    if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(field)>>) {
      const auto number = static_cast<float>(record.real(name));
      if (!(number > 0) || !std::isfinite(number))
        bad_row(std::string(name), record.get(name), "a positive number that f32 can hold");
      put(name, Value::real(static_cast<double>(number), DType::f32));
    } else if (is_shape(name)) {
      const std::uint64_t number = record.number(name);
      if (number > UINT32_MAX || number == 0)
        bad_row(std::string(name), record.get(name), "a whole number from 1 to 4294967295");
      put(name, Value::integer(number, DType::u32));
    }
  });
  return out;
}

void internal::set_tokenizer(Record& record, const Tokenizer& tokenizer) {
  const bool bpe = tokenizer.kind == Tokenizer::Kind::bpe;
  record.set("tokenizer_route", bpe ? "bpe" : "byte");
  if (!bpe) return;
  for (std::size_t i = 0; i < tokenizer.special.size(); ++i)
    record.set(row("special", i), tokenizer.special[i].first + " " + std::to_string(tokenizer.special[i].second));
  for (std::size_t i = 0; i < tokenizer.tokens.size(); ++i)
    record.set(row("token", i),
               std::to_string(tokenizer.ids.empty() ? i : tokenizer.ids[i]) + " " + std::string(tokenizer.tokens[i]));
  for (std::size_t i = 0; i < tokenizer.merges.size(); ++i) {
    const Tokenizer::Merge& m = tokenizer.merges[i];
    record.set(row("merge", i), std::to_string(m.left) + " " + std::to_string(m.right) + " " +
                                    std::to_string(m.output) + " " + std::to_string(m.rank));
  }
}

Tokenizer internal::tokenizer_of(const Record& record) {
  const bool bpe = record.get("tokenizer_route") == "bpe";
  if (!bpe) {
    for (const std::string_view group : {"special", "token", "merge"})
      if (record.rows(group) != 0)
        refuse("value", row(group, 0), "stands only where tokenizer_route is bpe", {}, "no such row", "a row");
    return slm_format::byte_tokenizer();
  }
  Tokenizer out;
  out.kind = Tokenizer::Kind::bpe;
  out.vocab_size = static_cast<std::uint32_t>(std::min<std::uint64_t>(record.number("vocab_size"), UINT32_MAX));
  for (std::uint64_t i = 0; i < record.rows("special"); ++i) {
    const std::string_view text = record.get(row("special", i));
    const std::size_t split = std::min(text.find(' '), text.size());
    const auto id = parse_number(text.substr(std::min(split + 1, text.size())));
    if (!id || *id > UINT32_MAX) bad_row(row("special", i), text, "bos, eos, pad or unk, a space and an id");
    out.special.emplace_back(std::string(text.substr(0, split)), static_cast<std::uint32_t>(*id));
  }
  for (std::uint64_t i = 0; i < record.rows("token"); ++i) {
    const std::string_view text = record.get(row("token", i));
    const std::size_t split = text.find(' ');
    const auto id = parse_number(text.substr(0, split));
    if (!id || *id > UINT32_MAX || split == std::string_view::npos)
      bad_row(row("token", i), text, "an id, a space and the token's bytes");
    out.ids.push_back(static_cast<std::uint32_t>(*id));
    out.tokens.push_back(text.substr(split + 1));
  }
  for (std::uint64_t i = 0; i < record.rows("merge"); ++i) {
    const auto n = numbers_of(record.get(row("merge", i)));
    if (n.size() != 4) bad_row(row("merge", i), record.get(row("merge", i)), "four numbers with spaces between");
    const auto u = [&](std::size_t at) { return static_cast<std::uint32_t>(n[at]); };
    out.merges.push_back({u(0), u(1), u(2), u(3)});
  }
  return out;
}

slm_format::Header internal::shape_of(const Model& model) {
  core::WriteLayout ledger;
  const slm_format::Hyper hyper = slm_format::derive_hyper(model, {}, ledger);
  if (!ledger.blockers.empty()) {
    const Item& item = ledger.blockers.front();
    refuse("shape", item.subject, item.from + ": " + item.to, {}, item.to, item.from);
  }
  slm_format::Header out = hyper.header;
  if (hyper.kv_rows != 0) out.kv_head_count = static_cast<std::uint32_t>(hyper.kv_rows / out.head_dim);
  return out;
}

std::string internal::source_dtype(const Model& model) {
  std::set<std::string> seen;
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    const Tensor tensor = model[i];
    if (slm_format::is_rotary_table(tensor.name())) continue;
    const DType dtype = tensor.dtype();
    const bool plain = tensor.layout() == Layout::dense && tensor.unsupported() == nullptr;
    if (!plain || (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16)) return "other";
    seen.insert(std::string(name(dtype)));
  }
  return seen.empty() ? "other" : seen.size() == 1 ? *seen.begin() : "mixed";
}

std::string internal::fill_in(const Record& known) {
  std::string out = "# Replace what stands in angle brackets. Lines that begin with # are passed over.\n";
  const std::vector<std::pair<std::string, std::string>> lines = known.lines();
  for (const Key& key : known.schema().keys) {
    const bool rows = key.name.find(".N") != std::string_view::npos;
    if (!key.required || rows || known.has(key.name)) continue;
    out += std::string(key.name) + "=<" + std::string(key.about.empty() ? expectation(key) : std::string(key.about));
    if (key.type == Type::choice) out += ": " + expectation(key);
    out += ">\n";
  }
  for (const auto& [key, value] : lines) out += key + "=" + value + "\n";
  return out;
}

Outcome write_source_template(const std::optional<Model>& model, const std::string& output, bool replace) {
  Record record(kSourceSchema);
  record.set("schema_version", "1").set("tensor_count", std::uint64_t{0});
  if (model) {
    set_shape(record, shape_of(*model));
    if (const std::string dtype = source_dtype(*model); dtype != "other") record.set("source_dtype", dtype);
    if (model->tokenizer() != nullptr) set_tokenizer(record, *model->tokenizer());
  }
  const std::string text = fill_in(record);
  Output target{output, replace};
  if (model)
    for (const auto& source : model->sources()) target.inputs.emplace_back(source->path());
  publish_record(kSourceSchema, target, text);
  Outcome out = report_on("source-template", record, sha256_hex(text), {}, output);
  out.record = text;
  return out;
}

}  // namespace weighbridge::chain
