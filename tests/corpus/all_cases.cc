// SPDX-License-Identifier: Apache-2.0
#include "corpus/all_cases.h"

#include <algorithm>
#include <utility>

#include "formats/embd/format.h"
#include "formats/gguf/format.h"
#include "formats/llama2c/format.h"
#include "formats/numpy/format.h"
#include "formats/safetensors/format.h"
#include "formats/slm/format.h"
#include "formats/slm_adapter/format.h"
#include "formats/stb/format.h"
#include "formats/ztensor0/format.h"
#include "formats/ztensor1/format.h"
#include "weighbridge/place.h"

namespace weighbridge::test {
namespace {

std::shared_ptr<const Source> in_memory(const std::string& text, std::string name) {
  const auto bytes = std::make_shared<const std::string>(text);
  return memory_source({std::as_bytes(std::span(*bytes)), bytes}, std::move(name));
}

class WithSidecar final : public Source {
 public:
  WithSidecar(std::shared_ptr<const Source> inner, const core::CorpusSidecar& sidecar) : inner_(std::move(inner)) {
    sidecar_ = in_memory(sidecar.bytes, sidecar_path(std::string(inner_->name()), sidecar));
  }
  std::uint64_t size() const noexcept override { return inner_->size(); }
  std::string_view name() const noexcept override { return inner_->name(); }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override { inner_->read_at(offset, out); }
  std::shared_ptr<const Place> place() const override {
    const std::string_view path = sidecar_->name();
    return folder_of({{std::string(path.substr(path.rfind('/') + 1)), sidecar_}});
  }

 private:
  std::shared_ptr<const Source> inner_, sidecar_;
};

}  // namespace

std::shared_ptr<const Source> with_sidecar(std::shared_ptr<const Source> source, const core::CorpusSidecar& sidecar) {
  return std::make_shared<const WithSidecar>(std::move(source), sidecar);
}

std::string sidecar_path(std::string path, const core::CorpusSidecar& sidecar) {
  if (sidecar.name.empty()) return path.erase(path.rfind('.')).append(sidecar.extension);
  return path.erase(path.rfind('/') + 1).append(sidecar.name);
}

std::string FormatCorpus::path(const core::CorpusCase& c) const {
  return std::string(format->info.name) + "/" + c.name + "." + (c.extension.empty() ? extension() : c.extension);
}

std::string FormatCorpus::extension() const {
  return std::string(format->info.extensions.empty() ? format->info.name : format->info.extensions.front());
}

std::shared_ptr<const Source> FormatCorpus::source(const core::CorpusCase& c) const {
  auto bytes = in_memory(c.bytes, path(c));
  return c.sidecar ? with_sidecar(std::move(bytes), *c.sidecar) : bytes;
}

const std::vector<FormatCorpus>& all_cases() {
  static const std::vector<FormatCorpus> all = {
      {&safetensors::kFormat, safetensors::cases()},
      {&gguf::kFormat, gguf::cases()},
      {&ztensor1::kFormat, ztensor1::cases()},
      {&ztensor0::kFormat, ztensor0::cases()},
      {&stb::kFormat, stb::cases()},
      {&embd::kFormat, embd::cases()},
      {&slm_format::kFormat, slm_format::cases()},
      {&slm_adapter::kFormat, slm_adapter::cases()},
      {&llama2c::kFormat, llama2c::cases()},
      {&numpy::kNpy, numpy::npy_cases()},
      {&numpy::kNpz, numpy::npz_cases()},
  };
  return all;
}

}  // namespace weighbridge::test
