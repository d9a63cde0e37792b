// SPDX-License-Identifier: Apache-2.0
// The default implementations of Source, and the source of bytes in memory. Files: file_source.cc.
#include "weighbridge/source.h"

#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"

namespace weighbridge {
namespace {

class MemorySource final : public Source {
 public:
  MemorySource(Bytes bytes, std::string name) : bytes_(std::move(bytes)), name_(std::move(name)) {}

  std::uint64_t size() const noexcept override { return bytes_.span.size(); }
  std::string_view name() const noexcept override { return name_; }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto from = range(offset, out.size());
    if (!out.empty()) std::memcpy(out.data(), from.data(), out.size());
  }

  Bytes map(std::uint64_t offset, std::uint64_t length) const override { return {range(offset, length), bytes_.keep}; }

 private:
  // Callers check the range; this is a second check, because a mistake would read other memory.
  std::span<const std::byte> range(std::uint64_t offset, std::uint64_t length) const {
    if (!base::fits(offset, length, size())) base::misuse_of(name_, "range", "a range outside the file was requested");
    return bytes_.span.subspan(base::to_size(offset), base::to_size(length));
  }

  Bytes bytes_;
  std::string name_;
};

}  // namespace

void Source::read(std::span<const ReadRange> ranges) const {
  for (const ReadRange& range : ranges) read_at(range.offset, range.out);
}

void Source::will_need(std::uint64_t, std::uint64_t) const noexcept {}
ReadCost Source::cost() const noexcept { return {}; }

Bytes Source::map(std::uint64_t, std::uint64_t) const { return {}; }

std::uint64_t Source::written_end() const noexcept { return size(); }
void Source::check_unchanged() const {}

std::shared_ptr<const Place> Source::place() const { return nullptr; }

std::string_view Source::path() const noexcept { return {}; }

std::string_view Source::file_name() const noexcept {
  const std::string_view whole = path().empty() ? name() : path();
  return whole.substr(whole.rfind('/') + 1);  // npos + 1 is 0
}

std::string Source::extension() const {
  const std::string_view last = file_name();
  const std::size_t dot = last.rfind('.');
  // ".zt" is a hidden file called zt.
  if (dot == std::string_view::npos || dot == 0) return {};
  std::string out(last.substr(dot + 1));
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::shared_ptr<const Source> memory_source(Bytes bytes, std::string name) {
  return std::make_shared<MemorySource>(std::move(bytes), std::move(name));
}

}  // namespace weighbridge
