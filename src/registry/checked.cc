// SPDX-License-Identifier: Apache-2.0
// Counts digests, and looks for zeros at the end of files.
#include "registry/load.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/checked.h"
#include "core/payload/part_digest.h"
#include "core/payload/payload.h"
#include "core/reading/rules.h"

namespace weighbridge::registry {
namespace {

// Bytes at the end of a file that are compared with zero, few enough for every verify.
constexpr std::uint64_t kMaxRead = std::uint64_t{1} << 20;
// No program reserves or writes less at once; fewer zeros are often a bias that was never trained.
constexpr std::uint64_t kMinZeros = 4096;

// Whether a checksum of the container covers the tensor data: embd and slm, slm_adapter.
bool has_checksum(const Model& model) {
  return std::ranges::any_of(model.checksums(),
                             [](const Checksum& each) { return each.name == "file" || each.name == "payload"; });
}

// The offset after which the source is all zeros, as far as a cheap check shows.
std::uint64_t zeros_from(const Source& source) {
  const std::uint64_t end = std::min(source.written_end(), source.size());
  std::vector<std::byte> tail(base::to_size(std::min(end, kMaxRead)));
  source.read_at(end - tail.size(), tail);
  const auto last = std::find_if(tail.rbegin(), tail.rend(), [](std::byte each) { return each != std::byte{0}; });
  return end - static_cast<std::uint64_t>(last - tail.rbegin());
}

// Whether a digest covers the part: its own, or the digest of a blob that it shares with other parts of the tensor.
bool has_digest(const Tensor& tensor, const Part& part) {
  if (!part.digest().empty()) return true;
  const Part main = tensor.main();
  return core::cut_of(part) && part.extent() == main.extent() && !main.digest().empty();
}

}  // namespace

void say_what_was_checked(const core::Format& format, Verdict& verdict) {
  const Model& model = verdict.model;
  for (std::uint32_t i = 0; i < model.size(); ++i)
    for (const Part& part : model[i].parts()) {
      ++verdict.parts;
      if (has_digest(model[i], part)) ++verdict.digests;
    }
  if (!verdict.report.valid()) return;
  const bool whole = has_checksum(model);
  const auto all = model.checksums();
  const auto files = std::count_if(all.begin(), all.end(),
                                   [](const Checksum& each) { return each.name.starts_with(core::kFileChecksum); });
  const std::string of_files = std::to_string(files) + (files == 1 ? " file" : " files");
  if (whole && verdict.digests == 0) {
    verdict.checked = "structure and checksums";
  } else if (verdict.digests > 0 && (whole || verdict.digests == verdict.parts)) {
    verdict.checked = "structure and digests";
  } else if (verdict.digests > 0) {
    verdict.checked = "structure and digests of " + std::to_string(verdict.digests) + " of " +
                      std::to_string(verdict.parts) + " parts" + (files > 0 ? " and of " + of_files : std::string());
  } else if (files > 0) {
    verdict.checked = "structure and digests of " + of_files;
  } else {
    const bool can = !format.info.holds.digests.empty() || format.content_can_fail;
    verdict.checked =
        "structure only: " + (can ? std::string("the file") : std::string(format.info.name)) + " has no checksums";
  }
}

bool may_be_zeros(std::string_view name) noexcept {
  constexpr std::string_view kBegins[] = {"lora_B", "lora_up", "lora_embedding_B", "lokr_w2", "hada_w2_a", ".bias"};
  return std::ranges::any_of(kBegins, [&](std::string_view each) { return name.find(each) != name.npos; });
}

void warn_of_zero_tail(const Place& place, const Model& model, core::Findings& findings) {
  if (has_checksum(model)) return;
  struct Seen {
    std::uint64_t begin = 0;    // of the zeros
    std::uint64_t tensors = 0;  // tensors that are all zeros
    std::uint32_t first = 0;    // of these, the one with the lowest offset
    std::uint64_t offset = 0;   // of its bytes
  };
  std::vector<Seen> seen;
  bool any = false;
  for (const auto& source : model.sources()) {
    seen.push_back({.begin = source->size() == 0 ? 0 : zeros_from(*source)});
    any |= source->size() - seen.back().begin >= kMinZeros;
  }
  if (!any) return;
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    // All bytes of the tensor must be zeros in one file, and no digest may cover them.
    const Tensor tensor = model[i];
    std::optional<Extent> lowest;
    bool zeros = true;
    for (const Part& part : tensor.parts()) {
      const auto extent = part.extent();
      if (!extent || extent->source >= seen.size() || !part.digest().empty() ||
          (extent->length > 0 && extent->offset < seen[extent->source].begin))
        zeros = false;
      else if (extent->length > 0 && (!lowest || extent->offset < lowest->offset))
        lowest = extent;
    }
    if (!zeros || !lowest || may_be_zeros(model.name(i))) continue;
    Seen& file = seen[lowest->source];
    if (file.tensors++ == 0 || lowest->offset < file.offset) {
      file.first = i;
      file.offset = lowest->offset;
    }
  }
  for (std::uint32_t source = 0; source < seen.size(); ++source) {
    const Seen& file = seen[source];
    const auto& there = model.sources()[source];
    if (file.tensors == 0 || there->size() - file.begin < kMinZeros) continue;
    (there == place.file() ? findings : findings.in(there))
        .report(core::rules::kFileZeroTail, {.offset = file.offset, .tensor = model.name(file.first)}, {}, {},
                file.tensors == 1 ? "one tensor" : std::to_string(file.tensors) + " tensors, this the first");
  }
}

}  // namespace weighbridge::registry
