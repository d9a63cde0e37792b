// SPDX-License-Identifier: Apache-2.0
// A source whose disk breaks: any read that touches byte `good_bytes` or a later one throws Error{io}, rule
// "io/injected"; and all bytes of a source as text.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/fail.h"
#include "io/forwarding_source.h"

namespace weighbridge::test {

class FailingSource final : public io::InterposedSource {
 public:
  FailingSource(std::shared_ptr<const Source> inner, std::uint64_t good_bytes)
      : InterposedSource(std::move(inner)), good_bytes_(good_bytes) {}

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!out.empty() && (offset >= good_bytes_ || out.size() > good_bytes_ - offset))
      base::io_error("injected",
                     "cannot read past byte " + std::to_string(good_bytes_) + " of '" + std::string(name()) + "'");
    of().read_at(offset, out);
  }

 private:
  std::uint64_t good_bytes_;
};

inline std::string all_of(const Source& source) {
  std::string out(static_cast<std::size_t>(source.size()), '\0');
  source.read_at(0, std::as_writable_bytes(std::span(out)));
  return out;
}

}  // namespace weighbridge::test
