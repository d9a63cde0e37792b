// SPDX-License-Identifier: Apache-2.0
// A source whose disk breaks: any read that touches byte `good_bytes` or a later one throws Error{io}, rule
// "io/injected"; and all bytes of a source as text.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/fail.h"
#include "weighbridge/source.h"

namespace weighbridge::test {

class FailingSource final : public Source {
 public:
  FailingSource(std::shared_ptr<const Source> inner, std::uint64_t good_bytes)
      : inner_(std::move(inner)), good_bytes_(good_bytes) {}

  std::uint64_t size() const noexcept override { return inner_->size(); }
  std::string_view name() const noexcept override { return inner_->name(); }
  void check_unchanged() const override { inner_->check_unchanged(); }
  std::shared_ptr<const Place> place() const override { return inner_->place(); }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!out.empty() && (offset >= good_bytes_ || out.size() > good_bytes_ - offset))
      base::io_error("injected",
                     "cannot read past byte " + std::to_string(good_bytes_) + " of '" + std::string(name()) + "'");
    inner_->read_at(offset, out);
  }
  // Does not override map(): a mapping would bypass the broken bytes.

 private:
  std::shared_ptr<const Source> inner_;
  std::uint64_t good_bytes_;
};

inline std::string all_of(const Source& source) {
  std::string out(static_cast<std::size_t>(source.size()), '\0');
  source.read_at(0, std::as_writable_bytes(std::span(out)));
  return out;
}

}  // namespace weighbridge::test
