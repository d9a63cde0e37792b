// SPDX-License-Identifier: Apache-2.0
// Files in memory for the tests of a format: walks and checks a file, and renders a layout as a conversion does.
#pragma once
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "codecs/checksum.h"
#include "codecs/codec.h"
#include "core/payload/payload.h"
#include "core/reading/format.h"
#include "core/writing/layout.h"
#include "support/corpus_case.h"

namespace weighbridge::test {

inline Bytes bytes_of(std::string text) {
  const auto kept = std::make_shared<const std::string>(std::move(text));
  return {std::as_bytes(std::span(*kept)), kept};
}

inline std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::string sha256(std::string_view bytes) {
  return codecs::to_hex(codecs::sha256(std::as_bytes(std::span(bytes))));
}

struct Outcome {
  Report report;
  Model model;
};

// As verify does: structure, then content.
inline Outcome walk(const core::Format& format, std::string bytes, const Context& context = {}) {
  const auto source = memory_source(bytes_of(std::move(bytes)));
  Outcome out;
  core::Findings findings(out.report, core::Findings::Mode::all);
  core::Draft draft;
  draft.add_source(source);
  format.read(*source, context, findings, draft);
  out.model = draft.finish();
  if (out.report.valid() && format.check_content) format.check_content(out.model, context, findings);
  return out;
}

inline const core::CorpusCase& case_of(const std::vector<core::CorpusCase>& all, std::string_view name) {
  for (const core::CorpusCase& c : all)
    if (c.name == name) return c;
  throw std::out_of_range(std::string(name));
}

inline std::string logical_bytes(const Part& part) {
  std::string out;
  part.stream({}, [&](std::span<const std::byte> piece) {
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return true;
  });
  return out;
}

inline std::string dense_bytes(const Tensor& tensor) {
  const Array array = tensor.to_dense();
  return {reinterpret_cast<const char*>(array.data.get()), array.size};
}

inline std::string logical_bytes(const core::Payload& p) {
  std::string out;
  const auto take = [&](std::span<const std::byte> piece) {
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return true;
  };
  if (p.form == core::Payload::Form::stored) {
    take(p.tensor.part(p.part).stored().span);
    return out;
  }
  if (p.make_range) {  // in pieces that end in the middle of whatever it is made of
    out.resize(p.logical_size);
    const auto all = std::as_writable_bytes(std::span(out));
    for (std::size_t at = 0; at < all.size(); at += 1001)
      p.make_range({}, at, all.subspan(at, std::min<std::size_t>(1001, all.size() - at)));
    return out;
  }
  if (p.form == core::Payload::Form::generated)
    p.make({}, take);
  else if (p.form == core::Payload::Form::dense)
    p.tensor.stream_dense(p.dtype, {}, take);
  else
    p.tensor.part(p.part).stream({}, take);
  if (out.size() != p.logical_size) throw std::logic_error("a payload is not as long as the layout says");
  return out;
}

inline std::string payload_bytes(const core::Payload& p, const std::string& logical) {
  if (p.form == core::Payload::Form::stored) return logical;
  const std::string all = p.stream_prefix + logical;
  const std::vector<std::byte> frame = codecs::encode(*core::codec_of(p.encoding), std::as_bytes(std::span(all)));
  return {reinterpret_cast<const char*>(frame.data()), frame.size()};
}

inline std::string digest_text(core::PartDigest digest, std::string_view bytes, std::string_view logical) {
  const auto data = std::as_bytes(std::span(bytes));
  if (digest == core::PartDigest::crc32)
    return "crc32:0x" + codecs::to_hex(codecs::crc32(std::as_bytes(std::span(logical))));
  if (digest == core::PartDigest::xxh3)
    return "xxh3:" + codecs::to_hex(codecs::xxh3_64(std::as_bytes(std::span(logical))));
  if (digest == core::PartDigest::decoded_sha256)
    return "sha256:" + codecs::to_hex(codecs::sha256(std::as_bytes(std::span(logical))));
  if (digest == core::PartDigest::sha256) return "sha256:" + codecs::to_hex(codecs::sha256(data));
  if (digest == core::PartDigest::crc32c) return "crc32c:0x" + codecs::to_hex(codecs::crc32c(data));
  return {};
}

// The file that a layout describes.
inline std::string render(const core::WriteLayout& layout) {
  if (!layout.blockers.empty()) throw std::logic_error("the layout has a blocker: " + layout.blockers[0].subject);
  std::string out;
  if (layout.prefix_source) {
    out.resize(layout.prefix_length);
    layout.prefix_source->read_at(0, std::as_writable_bytes(std::span(out)));
  }
  out += layout.head;
  std::vector<core::Stored> stored;
  for (const core::Payload& payload : layout.payloads) {
    out.resize((out.size() + payload.alignment - 1) / payload.alignment * payload.alignment, '\0');
    const std::string logical = logical_bytes(payload), bytes = payload_bytes(payload, logical);
    stored.push_back({out.size() + payload.preamble_size, bytes.size(), digest_text(payload.digest, bytes, logical)});
    if (payload.preamble_size > 0) out += layout.make_preamble(stored.size() - 1, stored.back());
    out += bytes;
  }
  if (layout.tail) out += layout.tail(stored);
  if (layout.size_exact ? out.size() != layout.size : out.size() > layout.size)
    throw std::logic_error("the file is not as long as the layout says");
  return out;
}

inline std::string write(const core::Format& format, const Model& model, const Options& options = {}) {
  return render(format.layout(model, options, {}));
}

}  // namespace weighbridge::test
