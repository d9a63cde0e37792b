// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of SLM: files read and written in memory, and small models.
#pragma once
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/reading/findings.h"
#include "core/writing/layout.h"
#include "formats/slm/format.h"
#include "formats/slm/header.h"
#include "formats/slm/names.h"
#include "support/corpus_case.h"
#include "weighbridge/model.h"

namespace weighbridge::slm_format::testing {

struct Outcome {
  Report report;
  Model model;
};

inline Outcome walk(std::string bytes, const Context& context = {}, Checks checks = Checks::all,
                    core::Findings::Mode mode = core::Findings::Mode::all,
                    codecs::ChecksumForm form = codecs::ChecksumForm::add) {
  const auto kept = std::make_shared<const std::string>(std::move(bytes));
  const auto source = memory_source({std::as_bytes(std::span(*kept)), kept});
  Outcome out;
  core::Findings findings(out.report, mode);
  core::Draft draft;
  draft.add_source(source);
  draft.checks = checks;
  draft.checksum_form = form;
  try {
    read(*source, context, findings, draft);
    out.model = draft.finish();
  } catch (const core::Stop&) {
    out.model = {};
  }
  return out;
}

inline const core::CorpusCase& corpus_case(std::string_view name) {
  static const std::vector<core::CorpusCase> all = cases();
  for (const core::CorpusCase& c : all)
    if (c.name == name) return c;
  throw std::out_of_range("no case " + std::string(name));
}

// The file of a layout, as convert would write it.
inline std::string render(const core::WriteLayout& layout) {
  std::string out = layout.head;
  std::vector<core::Stored> stored;
  const auto append = [&](std::span<const std::byte> piece) {
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return true;
  };
  for (const core::Payload& p : layout.payloads) {
    out.resize((out.size() + p.alignment - 1) / p.alignment * p.alignment, '\0');
    const std::size_t before = out.size();
    if (p.make_range) {
      std::vector<std::byte> bytes(p.logical_size);
      p.make_range({}, 0, bytes);
      append(bytes);
    } else if (p.form == core::Payload::Form::generated)
      p.make({}, [&](std::span<const std::byte> piece) { append(piece); });
    else if (p.form == core::Payload::Form::dense)
      p.tensor.stream_dense(p.dtype, {}, append);
    else
      p.tensor.part(p.part).stream({}, append);
    stored.push_back({before, out.size() - before, {}});
    if (out.size() - before != p.stored_size) throw std::logic_error("a payload of another size than planned");
  }
  if (layout.tail) out += layout.tail(stored);
  core::WrittenFile file;
  file.size = out.size();
  file.read = [&](std::uint64_t at, std::span<std::byte> to) { std::memcpy(to.data(), out.data() + at, to.size()); };
  file.write = [&](std::uint64_t at, std::span<const std::byte> from) {
    std::memcpy(out.data() + at, from.data(), from.size());
  };
  if (layout.finalize) layout.finalize(file);
  if (out.size() != layout.size) throw std::logic_error("a file of another size than planned");
  return out;
}

inline Bytes floats(const std::vector<float>& values) {
  const auto kept = std::make_shared<const std::vector<float>>(values);
  return {std::as_bytes(std::span(*kept)), kept};
}
// Values that differ between tensors.
inline Bytes pattern(std::uint64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  for (float& value : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = static_cast<float>(static_cast<std::int32_t>(state >> 32)) * 0x1p-31F;
  }
  return floats(values);
}
inline std::vector<float> values_of(const Tensor& tensor) {
  const Array array = tensor.to_dense(DType::f32);
  std::vector<float> out(static_cast<std::size_t>(array.size / sizeof(float)));
  std::memcpy(out.data(), array.data.get(), static_cast<std::size_t>(array.size));
  return out;
}

struct ModelShape {
  std::uint32_t vocab = 260, hidden = 8, layers = 1, heads = 2, ffn = 16, context = 32;
  bool tied = false;
};

inline Header header_of(const ModelShape& s) {
  Header h = kNewHeader;
  h.flags = s.tied ? 1 : 0;
  h.vocab_size = s.vocab;
  h.hidden_size = s.hidden;
  h.layer_count = s.layers;
  h.head_count = h.kv_head_count = s.heads;
  h.head_dim = s.hidden / s.heads;
  h.ffn_size = s.ffn;
  h.max_context = s.context;
  h.rope_theta = 10000;
  h.rms_norm_epsilon = 1e-5F;
  return h;
}

// Every required tensor in the specification's order: name and dimensions.
inline std::vector<std::pair<std::string, std::vector<std::uint64_t>>> required(const Header& h) {
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> out;
  const auto add = [&](Role role, std::uint32_t layer) {
    const Dims d = dims_of(role, h);
    out.emplace_back(spell(role, layer), d.columns == 0 ? std::vector<std::uint64_t>{d.rows}
                                                        : std::vector<std::uint64_t>{d.rows, d.columns});
  };
  add(Role::tok_embeddings, 0);
  add(Role::norm, 0);
  if ((h.flags & 1) == 0) add(Role::output, 0);
  for (std::uint32_t layer = 0; layer < h.layer_count; ++layer)
    for (std::uint32_t r = 0; r < kLayerRoles; ++r) add(static_cast<Role>(kModelRoles + r), layer);
  return out;
}

// The fields that neither tensors nor defaults give.
inline void add_hyperparameters(Builder& builder, const Header& h) {
  builder.attribute("slm.head_count", Value::integer(std::uint64_t{h.head_count}, DType::u32));
  builder.attribute("slm.max_context", Value::integer(std::uint64_t{h.max_context}, DType::u32));
  builder.attribute("slm.rope_theta", Value::real(h.rope_theta, DType::f32));
  builder.attribute("slm.rms_norm_epsilon", Value::real(h.rms_norm_epsilon, DType::f32));
  if (h.flags != 0) builder.attribute("slm.flags", Value::integer(std::uint64_t{h.flags}, DType::u32));
}

inline Builder tiny(const ModelShape& shape = {}) {
  Builder builder;
  const Header h = header_of(shape);
  add_hyperparameters(builder, h);
  builder.tokenizer(byte_tokenizer());
  std::uint64_t seed = 0;
  for (auto& [name, dims] : required(h)) {
    std::uint64_t count = 1;
    for (const std::uint64_t d : dims) count *= d;
    builder.tensor(name, DType::f32, dims, pattern(count, ++seed));
  }
  return builder;
}

}  // namespace weighbridge::slm_format::testing
