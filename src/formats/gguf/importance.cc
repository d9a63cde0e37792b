// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/importance.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "core/model/draft.h"
#include "core/model/words.h"
#include "core/payload/elements.h"
#include "core/reading/findings.h"
#include "formats/gguf/format.h"
#include "formats/gguf/layout.h"
#include "io/fd.h"

namespace weighbridge::gguf {
namespace {

[[noreturn]] void refuse(std::string_view rule, const std::string& what) {
  base::malformed("imatrix/" + std::string(rule), "the importance matrix cannot be used: " + what);
}

void require_finite(const std::string& name, const std::vector<float>& values) {
  for (const float each : values)
    if (!std::isfinite(each)) refuse("not-finite", "the values for " + core::quoted(name) + " are not all finite");
}

std::vector<float> floats(const Tensor& tensor, const Context& context) {
  const Array dense = tensor.to_dense(context);
  std::vector<float> out(base::to_size(dense.size / sizeof(float)));
  std::memcpy(out.data(), dense.data.get(), out.size() * sizeof(float));
  return out;
}

Importance from_gguf(const std::shared_ptr<const Source>& source, const Context& context) {
  Report report;
  core::Findings findings(report, core::Findings::Mode::first_error);
  core::Draft draft;
  draft.add_source(source);
  try {
    read(*source, context, findings, draft);
  } catch (const core::Stop&) {
    throw Error(*report.first_error());
  }
  const Model model = draft.finish();
  Importance out;
  const Value* const type = model.attribute("general.type");
  if (type == nullptr || type->to_text() != "imatrix") refuse("type", "this GGUF file is a model, not an imatrix");
  const auto required = [&](std::string_view key) -> const Value& {
    const Value* const value = model.attribute(key);
    if (value == nullptr) refuse("key", "it lacks " + core::quoted(key));
    return *value;
  };
  required("imatrix.chunk_size");
  out.chunks = required("imatrix.chunk_count").as_u64().value_or(0);
  const Value& datasets = required("imatrix.datasets");
  if (const Texts* const texts = datasets.texts(); texts != nullptr && texts->size() > 0) out.dataset = (*texts)[0];
  constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";
  for (const Tensor& tensor : model) {
    const std::string_view name = tensor.name();
    if (name.ends_with(kCounts)) continue;
    if (!name.ends_with(kSums)) refuse("tensors", "it has a tensor " + core::quoted(core::excerpt(name)));
    const std::string of(name.substr(0, name.size() - kSums.size()));
    const auto counts = model.find(of + std::string(kCounts));
    if (!counts || tensor.dtype() != DType::f32 || counts->dtype() != DType::f32)
      refuse("tensors", "there are no counts for " + core::quoted(of));
    std::vector<float> sums = floats(tensor, context);
    const std::vector<float> times = floats(*counts, context);
    if (times.empty() || sums.size() % times.size() != 0)
      refuse("shape", "the counts for " + core::quoted(of) + " do not fit its sums");
    const std::size_t columns = sums.size() / times.size();
    for (std::size_t m = 0; m < times.size(); ++m) {
      const float count = std::round(times[m]);
      if (!(count >= 0) || count > 0x1p31F)
        refuse("counts", "a count for " + core::quoted(of) + " is no number of times");
      for (std::size_t c = 0; c < columns; ++c) {
        float& each = sums[m * columns + c];
        each = count > 0 ? each / count : 1.0F;
      }
    }
    require_finite(of, sums);
    out.entries.emplace(of, std::move(sums));
  }
  return out;
}

// The older form: i32 counts and lengths, f32 values.
class Older {
 public:
  Older(const Source& source, std::uint64_t most) : source_(source), size_(source.size()), most_(most) {}

  Importance run() {
    Importance out;
    const std::uint64_t entries = count("entries");
    for (std::uint64_t e = 0; e < entries; ++e) {
      const std::string name = text();
      const std::uint64_t calls = number();
      const std::uint64_t n = count("values");
      if (n > (size_ - at_) / sizeof(float))
        refuse("length", "it ends within the values for " + core::quoted(core::excerpt(name)));
      std::vector<float> values(base::to_size(n));
      take(std::as_writable_bytes(std::span(values)));
      if constexpr (std::endian::native == std::endian::big)
        for (float& each : values)
          each = std::bit_cast<float>(base::load_le<std::uint32_t>(reinterpret_cast<std::byte*>(&each)));
      if (calls > 0)
        for (float& each : values) each = each / static_cast<float>(calls);
      require_finite(name, values);
      if (name.empty() || !out.entries.emplace(name, std::move(values)).second)
        refuse("entries", "it has two entries for " + core::quoted(core::excerpt(name)));
    }
    if (at_ + 4 <= size_) {
      out.chunks = number();
      if (at_ + 4 <= size_) out.dataset = text();
    }
    return out;
  }

 private:
  void take(std::span<std::byte> out) {
    if (out.size() > size_ - at_) refuse("length", "it ends early");
    source_.read_at(at_, out);
    at_ += out.size();
    if (at_ > most_) refuse("length", "it is too large");
  }
  std::uint64_t number() {
    std::array<std::byte, 4> bytes{};
    take(bytes);
    const auto value = std::bit_cast<std::int32_t>(base::load_le<std::uint32_t>(bytes.data()));
    if (value < 0) refuse("length", "a number in it is negative");
    return static_cast<std::uint64_t>(value);
  }
  std::uint64_t count(std::string_view what) {
    const std::uint64_t out = number();
    if (out == 0) refuse("length", "it has no " + std::string(what) + ", so it is no matrix of llama-imatrix");
    return out;
  }
  std::string text() {
    const std::uint64_t length = number();
    if (length > size_ - at_ || length > 65536) refuse("length", "a name in it is longer than the file");
    std::string out(base::to_size(length), '\0');
    take(std::as_writable_bytes(std::span(out)));
    return out;
  }

  const Source& source_;
  std::uint64_t size_, most_, at_ = 0;
};

}  // namespace

Importance read_importance(const std::shared_ptr<const Source>& source, const Context& context) {
  std::array<std::byte, 4> head{};
  if (source->size() >= head.size()) source->read_at(0, head);
  const bool is_gguf = std::memcmp(head.data(), kMagic.data(), kMagic.size()) == 0;
  Importance out = is_gguf ? from_gguf(source, context) : Older(*source, std::uint64_t{1} << 32).run();
  out.file = io::split_path(std::string(source->name())).name;
  return out;
}

}  // namespace weighbridge::gguf
