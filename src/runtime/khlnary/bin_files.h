// SPDX-License-Identifier: Apache-2.0
// The STB files of a module: found beneath the sidecar's folder, held against what the sidecar says of them, opened
// once for a run. Leaves STB itself to the registry.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/findings.h"
#include "runtime/khlnary/module.h"
#include "weighbridge/khlnary.h"

namespace weighbridge::khlnary {

// One file that is open, and good.
struct OpenFile {
  std::string path;  // as the sidecar has it
  std::shared_ptr<const Source> source;
  Model model;
  std::array<std::uint16_t, 256> place{};  // of each tensor id in the model, one more than the index; 0: none

  std::optional<Tensor> tensor(std::uint8_t id) const {
    if (place[id] == 0) return std::nullopt;
    return model[place[id] - 1U];
  }
};

class BinFiles {
 public:
  BinFiles(const Module::Rep& module, const Context& context) : module_(module), context_(context) {}

  // The file of this id, opened when it is first asked for; `at` is the byte offset of the word that asks, for the
  // error. Throws Error.
  const OpenFile& open(std::uint8_t id, std::optional<std::uint64_t> at);

 private:
  std::unique_ptr<OpenFile> load(const stb::BinFile& entry, core::At at) const;
  std::shared_ptr<const Source> find(const stb::BinFile& entry, core::At at) const;

  const Module::Rep& module_;
  const Context& context_;
  std::array<std::unique_ptr<const OpenFile>, 256> open_{};
};

}  // namespace weighbridge::khlnary
