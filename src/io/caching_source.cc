// SPDX-License-Identifier: Apache-2.0
#include "io/caching_source.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "io/forwarding_source.h"
#include "io/read.h"

namespace weighbridge::io {
namespace {

constexpr std::uint64_t kMaxKept = std::uint64_t{32} << 20;  // the most bytes that are kept, or joined to one request
// Of the parts of a file that a reader asks for together, each is followed by what it asks for next, such as the header
// of an array after that of its member.
constexpr std::uint64_t kAfterEach = 4096;

class CachingSource final : public ForwardingSource {
 public:
  explicit CachingSource(std::shared_ptr<const Source> source)
      : ForwardingSource(std::move(source)), gap_(gap_of(of())), minimum_(std::clamp(size() / 128, gap_ / 16, gap_)) {}

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const ReadRange range{offset, out};
    read({&range, 1});
  }
  void read(std::span<const ReadRange> ranges) const override {
    std::unique_lock lock(mutex_);
    std::vector<ReadRange> missing = take_kept(ranges);
    // A reader that knows what it needs, perhaps one of several.
    if (missing.size() == 1 && missing[0].out.size() >= gap_) {
      note(missing[0].offset, missing[0].offset + missing[0].out.size());
      lock.unlock();
      return of().read(missing);
    }
    std::ranges::sort(missing, {}, &ReadRange::offset);
    for (std::span<const ReadRange> rest(missing); !rest.empty();) {
      const auto some = rest.first(fetch(rest));
      take_kept(some);
      rest = rest.subspan(some.size());
    }
  }

 private:
  struct Request {
    std::uint64_t begin, end;
    std::vector<std::byte> bytes{};
  };

  // Copies what is kept of the ranges, and returns the rest.
  std::vector<ReadRange> take_kept(std::span<const ReadRange> ranges) const {
    std::vector<ReadRange> missing;
    for (auto [at, out] : ranges)
      while (!out.empty()) {
        const auto after = pieces_.upper_bound(at);
        std::uint64_t n = after == pieces_.end() ? UINT64_MAX : after->first - at;
        const auto* const piece = after == pieces_.begin() ? nullptr : &std::prev(after)->second;
        const std::uint64_t skip = piece == nullptr ? 0 : at - std::prev(after)->first;
        const bool kept = piece != nullptr && skip < piece->size();
        if (kept) n = std::min(n, piece->size() - skip);
        const auto some = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(n, out.size())));
        if (kept)
          std::memcpy(some.data(), piece->data() + skip, some.size());
        else
          missing.push_back({at, some});
        at += some.size();
        out = out.subspan(some.size());
      }
    return missing;
  }

  // Reads the first of these ranges, as many as fit the memory, with one call of the source. Returns how many; they are
  // kept until the next call.
  std::size_t fetch(std::span<const ReadRange> missing) const {
    std::vector<Request> requests;
    std::size_t done = 0;
    for (std::uint64_t total = 0; done < missing.size(); ++done) {
      const std::uint64_t begin = missing[done].offset, end = begin + missing[done].out.size();
      const bool joins = !requests.empty() && begin <= requests.back().end + gap_;
      const std::uint64_t more = end - (joins ? std::min(end, requests.back().end) : begin);
      if (total > 0 && total + more > kMaxKept) break;
      total += more;
      if (!joins) requests.push_back({begin, begin});
      requests.back().end = std::max(requests.back().end, end);
    }
    std::vector<ReadRange> reads;
    std::uint64_t fetched = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      Request& each = requests[i];
      std::uint64_t length = each.end - each.begin + (missing.size() > 1 ? kAfterEach : 0);
      if (requests.size() == 1)
        length = std::max(length, onward(each.begin) ? std::clamp(run_, gap_, 4 * gap_) : minimum_);
      extend(each, length, i + 1 < requests.size() ? requests[i + 1].begin : size());
      each.bytes.resize(base::to_size(each.end - each.begin));
      reads.push_back({each.begin, each.bytes});
      fetched += each.bytes.size();
    }
    of().read(reads);
    note(requests.front().begin, requests.back().end);
    if (kept_ + fetched > kMaxKept) pieces_.clear(), kept_ = 0;
    kept_ += fetched;
    for (Request& each : requests) {
      pieces_.erase(pieces_.lower_bound(each.begin), pieces_.lower_bound(each.end));
      pieces_[each.begin] = std::move(each.bytes);
    }
    return done;
  }

  // Whether a reader that has come to the end of the last request goes on here.
  bool onward(std::uint64_t begin) const { return begin >= end_ && begin - end_ <= gap_; }
  void note(std::uint64_t begin, std::uint64_t end) const {
    run_ = end - begin + (onward(begin) ? run_ : 0);
    end_ = end;
  }

  // Lengthens a request to `length` bytes, without what is kept already or begins at `next`; at the end of the file,
  // toward its front.
  void extend(Request& request, std::uint64_t length, std::uint64_t next) const {
    if (request.end == size()) {
      request.begin = std::min(request.begin, request.end - std::min(length, request.end));
    } else {
      const auto after = pieces_.lower_bound(request.end);
      if (after != pieces_.end()) next = std::min(next, after->first);
      request.end = std::max(request.end, std::min(request.begin + length, next));
    }
  }

  const std::uint64_t gap_, minimum_;  // the least that one request reads
  mutable std::mutex mutex_;
  mutable std::map<std::uint64_t, std::vector<std::byte>> pieces_;  // by offset
  mutable std::uint64_t kept_ = 0;                                  // at least the bytes of all pieces
  mutable std::uint64_t end_ = UINT64_MAX;                          // of the last request
  mutable std::uint64_t run_ = 0;  // bytes from where a reader began to go on without a jump
};

}  // namespace

std::shared_ptr<const Source> cached(std::shared_ptr<const Source> source) {
  if (source == nullptr || gap_of(*source) == 0 || dynamic_cast<const CachingSource*>(source.get())) return source;
  return std::make_shared<CachingSource>(std::move(source));
}

}  // namespace weighbridge::io
