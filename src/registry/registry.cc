// SPDX-License-Identifier: Apache-2.0
// The list of formats. To add a format, include its header and add one line to the array.
#include "registry/registry.h"

#include <algorithm>
#include <vector>

#include "base/fail.h"
#include "core/reading/rules.h"
#include "formats/embd/format.h"
#include "formats/gguf/format.h"
#include "formats/hdf5/format.h"
#include "formats/huggingface/format.h"
#include "formats/llama2c/format.h"
#include "formats/numpy/format.h"
#include "formats/onnx/format.h"
#include "formats/pytorch/format.h"
#include "formats/safetensors/format.h"
#include "formats/slm/format.h"
#include "formats/slm_adapter/format.h"
#include "formats/stb/format.h"
#include "formats/ztensor/v0/format.h"
#include "formats/ztensor/v1/format.h"
#include "formats/ztensor/v2/format.h"
#include "weighbridge/formats.h"

namespace weighbridge::registry {

std::span<const core::Format* const> formats() noexcept {
  static const core::Format kHuggingFace = [] {
    core::Format out = huggingface::format(safetensors::kFormat);
    // The content rules are those of the weights.
    out.check_content = [](const Model& model, const Context& context, core::Findings& findings) {
      const core::Format& weights = huggingface::has_pickled_weights(model) ? pytorch::kFormat : safetensors::kFormat;
      weights.check_content(model, context, findings);
    };
    out.content_can_fail = true;
    return out;
  }();
  static constexpr const core::Format* kFormats[] = {
      &safetensors::kFormat, &gguf::kFormat,    &ztensor1::kFormat,   &ztensor2::kFormat,    &ztensor0::kFormat,
      &stb::kFormat,         &embd::kFormat,    &slm_format::kFormat, &slm_adapter::kFormat, &numpy::kNpy,
      &numpy::kNpz,          &pytorch::kFormat, &hdf5::kHdf5,         &hdf5::kKeras,
      &onnx::kFormat,  // this one and the next have no magic number, so they are tried last
      &llama2c::kFormat,     &kHuggingFace,
  };
  return kFormats;
}

const core::Format* find(std::string_view name) noexcept {
  const auto all = formats();
  const auto found = std::ranges::find(all, name, [](const core::Format* format) { return format->info.name; });
  return found == all.end() ? nullptr : *found;
}

const core::Format* find_by_extension(std::string_view extension) noexcept {
  for (const core::Format* format : formats())
    if (std::ranges::find(format->info.extensions, extension) != format->info.extensions.end()) return format;
  return nullptr;
}

}  // namespace weighbridge::registry

namespace weighbridge {

// The public list of formats, weighbridge/formats.h.

std::span<const FormatInfo> formats() noexcept {
  static const std::vector<FormatInfo> infos = [] {
    std::vector<FormatInfo> out;
    for (const core::Format* format : registry::formats()) out.push_back(format->info);
    return out;
  }();
  return infos;
}

const FormatInfo* find_format(std::string_view name) noexcept {
  const auto all = formats();
  const auto found = std::ranges::find(all, name, &FormatInfo::name);
  return found == all.end() ? nullptr : &*found;
}

const FormatInfo* format_for_extension(std::string_view extension) noexcept {
  for (const FormatInfo& format : formats())
    if (format.writes && std::ranges::find(format.extensions, extension) != format.extensions.end()) return &format;
  return nullptr;
}

Digest zt_content_digest(const Model& model) {
  const core::Format* const format = registry::find(model.format());
  if (format == nullptr || format->identity == nullptr)
    base::misuse("identity", "only a zTensor 2 file has this content digest: convert the model to zt2 first");
  return format->identity(model);
}

std::span<const Rule> common_rules() noexcept { return core::rules::kAll; }

}  // namespace weighbridge
