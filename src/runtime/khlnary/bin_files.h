// SPDX-License-Identifier: Apache-2.0
// The STB files of a module: finds them beneath the sidecar's folder, checks them against the sidecar, and opens each
// once per run. Leaves STB itself to the registry.
#pragma once
#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/reading/findings.h"
#include "runtime/khlnary/module.h"
#include "weighbridge/khlnary.h"

namespace weighbridge::khlnary::internal {

// An open, valid file.
struct OpenFile {
  std::string path;  // as in the sidecar
  std::shared_ptr<const Source> source;
  Model model;
  std::vector<Finding> unsupported;        // tensors that cannot be interpreted
  std::array<std::uint16_t, 256> place{};  // by tensor id: 1 + its index in the model; 0: none

  std::optional<Tensor> tensor(std::uint8_t id) const {
    if (place[id] == 0) return std::nullopt;
    return model[place[id] - 1U];
  }
};

class BinFiles {
 public:
  BinFiles(const Module::Rep& module, const Context& context) : module_(module), context_(context) {}

  // The file with this id, opened on first use. `at` is the byte offset of the word that names it, for the error.
  // Throws Error.
  const OpenFile& open(std::uint8_t id, std::optional<std::uint64_t> at);
  // Asks the system to read the file ahead, once. Whatever is wrong with the file, or with the table, is no error here:
  // a prefetch may do nothing (section 6.4).
  void prefetch(std::uint8_t id);

 private:
  std::unique_ptr<OpenFile> load(const stb::BinFile& entry, core::At at) const;
  std::optional<stb::Sidecar> own_sidecar(const Source& file, Report&) const;
  std::shared_ptr<const Source> find(const stb::BinFile& entry, core::At at) const;

  const Module::Rep& module_;
  const Context& context_;
  std::array<std::unique_ptr<const OpenFile>, 256> open_{};
  std::bitset<256> prefetched_{};
};

}  // namespace weighbridge::khlnary::internal
