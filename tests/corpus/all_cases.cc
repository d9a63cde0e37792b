// SPDX-License-Identifier: Apache-2.0
#include "corpus/all_cases.h"

#include "formats/safetensors/format.h"
#include "formats/ztensor1/format.h"

namespace weighbridge::test {

std::string FormatCorpus::path(const core::CorpusCase& c) const {
  return std::string(format->info.name) + "/" + c.name + "." + std::string(format->info.extensions.front());
}

std::shared_ptr<const Source> FormatCorpus::source(const core::CorpusCase& c) const {
  const auto bytes = std::make_shared<const std::string>(c.bytes);
  return memory_source({std::as_bytes(std::span(*bytes)), bytes}, path(c));
}

const std::vector<FormatCorpus>& all_cases() {
  static const std::vector<FormatCorpus> all = {
      {&safetensors::kFormat, safetensors::cases()},
      {&ztensor1::kFormat, ztensor1::cases()},
  };
  return all;
}

}  // namespace weighbridge::test
