// SPDX-License-Identifier: Apache-2.0
// Sources over another source. They derive from these two, so that none of them loses a member of Source: the house
// rules check that ForwardingSource overrides every virtual one.
#pragma once
#include <memory>
#include <utility>

#include "weighbridge/source.h"

namespace weighbridge::io {

// All that the other source has, as it has it.
class ForwardingSource : public Source {
 public:
  explicit ForwardingSource(std::shared_ptr<const Source> of) : of_(std::move(of)) {}
  // Over a source that outlives this one.
  explicit ForwardingSource(const Source& of) : of_(std::shared_ptr<const Source>(), &of) {}
  // A copy would forward past the source that it is made over.
  ForwardingSource(const ForwardingSource&) = delete;
  ForwardingSource& operator=(const ForwardingSource&) = delete;

  std::uint64_t size() const noexcept override { return of_->size(); }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override { of_->read_at(offset, out); }
  void read(std::span<const ReadRange> ranges) const override { of_->read(ranges); }
  ReadCost cost() const noexcept override { return of_->cost(); }
  Bytes map(std::uint64_t offset, std::uint64_t length) const override { return of_->map(offset, length); }
  std::uint64_t written_end() const noexcept override { return of_->written_end(); }
  void will_need(std::uint64_t offset, std::uint64_t length) const noexcept override { of_->will_need(offset, length); }
  void check_unchanged() const override { of_->check_unchanged(); }
  std::shared_ptr<const Place> place() const override { return of_->place(); }
  std::string_view name() const noexcept override { return of_->name(); }
  std::string_view path() const noexcept override { return of_->path(); }

  const Source& of() const noexcept { return *of_; }

 private:
  std::shared_ptr<const Source> of_;
};

// The same, but all bytes pass read_at(), for those that count, check or change them.
class InterposedSource : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override = 0;
  void read(std::span<const ReadRange> ranges) const override { Source::read(ranges); }
  Bytes map(std::uint64_t, std::uint64_t) const override { return {}; }
};

}  // namespace weighbridge::io
