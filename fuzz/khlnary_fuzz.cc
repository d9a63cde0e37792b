// SPDX-License-Identifier: Apache-2.0
// Fuzz target: KHLNARY modules and their sidecars. The input is a length (two bytes, little-endian), that many bytes of
// a module, and its sidecar. tests/support/hostile_module.h has the checks.
#include "support/hostile_module.h"

#include "harness.h"

namespace weighbridge::fuzz {
namespace {

void try_one(const std::string& module, const std::string& sidecar) {
  const Tried tried = try_module(module, sidecar);
  const auto& result = tried.result;
  if (is_planted() && result && result->value && (result->value->integer < -4 || result->value->integer > 60))
    fail("planted bug: a module that returns a number far from 0");
}

}  // namespace
}  // namespace weighbridge::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weighbridge;
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t length = std::min(rest.size(), std::size_t{data[0]} | std::size_t{data[1]} << 8);
  const std::string module(rest.substr(0, length)), sidecar(rest.substr(length));
  fuzz::try_one(module, sidecar);
  fuzz::try_one(fuzz::mended_module(module), sidecar);
  return 0;
}
