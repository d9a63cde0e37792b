// SPDX-License-Identifier: Apache-2.0
// Looks for a whole model inside a file that is not one from its first byte to its last.
#include <array>
#include <deque>
#include <string_view>

#include "base/endian.h"
#include "core/archive/zip.h"
#include "core/reading/findings.h"
#include "doctor/damage.h"
#include "io/read.h"
#include "registry/detect.h"
#include "registry/load.h"
#include "weighbridge/open.h"

namespace weighbridge::doctor {
namespace {

using namespace std::string_view_literals;

// What a model begins or ends with, in the formats in which a beginning or an end can be found.
struct Mark {
  std::string_view bytes;
  std::uint64_t before = 0;  // bytes of the model before them
  bool ends = false;         // the model ends after them, and `after` more bytes
  std::uint64_t after = 0;
};
constexpr Mark kMarks[] = {
    {"GGUF"sv},
    {"\x93NUMPY"sv},
    {"{\""sv, 8},  // safetensors: after the length of the header
    {"\x89HDF\r\n\x1a\n"sv},
    {"ZTEN0001"sv},
    {"ZTEN1000"sv},
    {"\x89ZT2\r\n\x1a\n"sv},
    {"\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19."sv},  // torch.save before 1.6
    {"ZTEN1000"sv, 0, true},
    {"\x89ZT2\r\n\x1a\n"sv, 0, true},
    {core::kZipEmpty, 0, true, core::zip::kEndSize - 4},
};
constexpr std::size_t kMarkCount = std::size(kMarks);
constexpr std::size_t kHead = 64;         // bytes of the beginning that are looked for
constexpr std::size_t kMaxPlaces = 1024;  // that are kept of each mark
constexpr unsigned kMaxOpened = 16;       // places whose structure is read
constexpr unsigned kMaxRepeated = 8;  // equal beginnings whose format is looked for, which may read all that follows
constexpr std::uint64_t kSearched = std::uint64_t{1} << 20;

bool is_one_byte(std::string_view text) { return text.find_first_not_of(text[0]) == text.npos; }

class Search {
 public:
  Search(const std::shared_ptr<const Source>& file, std::string_view format, const Context& context)
      : file_(file), size_(file->size()), format_(format), context_(context), head_(io::head_of(*file, kHead)) {}

  std::optional<Inner> run(bool only_repeated) {
    if (size_ < 2 * kMinEqual) return std::nullopt;
    scan(only_repeated);
    if (auto repeated = find_repeated()) return repeated;
    if (only_repeated) return std::nullopt;
    if (auto late = find_late()) return late;
    return find_older();
  }

 private:
  static constexpr std::size_t kMinEqual = 8;  // fewer equal bytes may be chance

  void scan(bool only_repeated) {
    std::string piece;
    for (std::uint64_t at = 0; at < size_;) {
      piece = io::text_of(*file_, at, std::min(kSearched, size_ - at));
      const bool last = at + piece.size() == size_;
      const std::size_t until = last ? piece.size() : piece.size() - kHead;
      look(piece, at, until, only_repeated);
      if (last) break;
      at += until;
    }
  }

  // The places in the piece before `until`.
  void look(std::string_view piece, std::uint64_t at, std::size_t until, bool only_repeated) {
    const auto find = [&](std::string_view bytes, std::deque<std::uint64_t>& out, bool first) {
      for (std::size_t i = piece.find(bytes); i < until; i = piece.find(bytes, i + 1)) {
        if (first && out.size() == kMaxPlaces) return;
        out.push_back(at + i);
        if (out.size() > kMaxPlaces) out.pop_front();
      }
    };
    if (head_.size() == kHead && !is_one_byte(head_)) find(head_, again_, true);
    for (std::size_t i = 0; i < kMarkCount && !only_repeated; ++i) find(kMarks[i].bytes, places_[i], !kMarks[i].ends);
  }

  // The smallest n for which the first n bytes are there twice, and a model begins after the first of them.
  std::optional<Inner> find_repeated() {
    const std::string two = io::head_of(*file_, 2 * kHead);
    const std::string_view text(two);
    for (std::size_t n = kMinEqual; n < kHead && 2 * n <= text.size(); ++n)
      if (text.substr(0, n) == text.substr(n, n) && !is_one_byte(text.substr(0, n)) && model_follows(n))
        return repeated(n);
    std::uint64_t budget = size_;
    for (const std::uint64_t n : again_)
      if (n > 0 && 2 * n <= size_ && equal(n, budget) && model_follows(n)) return repeated(n);
    return std::nullopt;
  }

  bool model_follows(std::uint64_t n) { return repeated_++ < kMaxRepeated && is_model(n, size_); }

  Inner repeated(std::uint64_t n) {
    return {.how = Inner::How::repeated, .range = {n, size_ - n}, .whole = is_plausible(n, size_) && loads(n, size_)};
  }

  // Whether the first n bytes are also the next n. Stops at the first that is not, and when the budget is spent.
  bool equal(std::uint64_t n, std::uint64_t& budget) const {
    for (std::uint64_t at = 0; at < n; at += kSearched) {
      const std::uint64_t length = std::min(kSearched, n - at);
      if (length > budget) return false;
      budget -= length;
      if (io::text_of(*file_, at, length) != io::text_of(*file_, n + at, length)) return false;
    }
    return true;
  }

  std::optional<Inner> find_late() {
    std::vector<std::uint64_t> begins;
    for (std::size_t i = 0; i < kMarkCount; ++i)
      for (const std::uint64_t at : places_[i])
        if (!kMarks[i].ends && at > kMarks[i].before) begins.push_back(at - kMarks[i].before);
    for (const std::uint64_t at : places_[kMarkCount - 1])
      if (const auto begin = core::zip_begin(*file_, at)) begins.push_back(*begin);
    std::ranges::sort(begins);
    for (const std::uint64_t begin : begins)
      if (opens(begin, size_)) return Inner{.how = Inner::How::late, .range = {begin, size_ - begin}, .whole = true};
    return std::nullopt;
  }

  std::optional<Inner> find_older() {
    std::vector<std::uint64_t> ends;
    for (std::size_t i = 0; i < kMarkCount; ++i)
      for (const std::uint64_t at : places_[i])
        if (const std::uint64_t end = at + kMarks[i].bytes.size() + kMarks[i].after; kMarks[i].ends && end < size_)
          ends.push_back(end);
    std::ranges::sort(ends, std::ranges::greater{});
    for (const std::uint64_t end : ends)
      if (opens(0, end)) return Inner{.how = Inner::How::older, .range = {0, end}, .whole = true};
    return std::nullopt;
  }

  std::shared_ptr<const Source> range(std::uint64_t begin, std::uint64_t end) const {
    return std::make_shared<const Continued>(file_, ByteRange{begin, end - begin}, std::string(), end - begin);
  }

  bool is_model(std::uint64_t begin, std::uint64_t end) const {
    const core::Format* const format = registry::format_of_content(*range(begin, end));
    return format != nullptr && (format_.empty() || format->info.name == format_);
  }

  // Whether these bytes are a model without an error in its structure.
  bool opens(std::uint64_t begin, std::uint64_t end) {
    return is_plausible(begin, end) && is_model(begin, end) && loads(begin, end);
  }

  // The same of bytes that are plausible and a model.
  bool loads(std::uint64_t begin, std::uint64_t end) {
    if (opened_++ >= kMaxOpened) return false;
    Report report;
    core::Findings findings(report, core::Findings::Mode::all);
    const registry::Loaded loaded = registry::load(place_of(range(begin, end)), context_, {}, findings);
    const auto sizes = [](const Finding& each) { return each.hint.what == Hint::What::size; };  // bytes follow its end
    return report.valid() && loaded.model.size() > 0 && std::ranges::none_of(report.findings(), sizes);
  }

  // Whether a header of safetensors that would begin there ends in the file: a cheap test of what is often JSON.
  bool is_plausible(std::uint64_t begin, std::uint64_t end) const {
    if (end - begin < 10) return false;
    const std::string text = io::text_of(*file_, begin, 10);
    return !text.ends_with("{\"") || base::load_le<std::uint64_t>(text.data()) <= end - begin - 8;
  }

  const std::shared_ptr<const Source> file_;
  const std::uint64_t size_;
  const std::string_view format_;
  const Context& context_;
  const std::string head_;
  std::deque<std::uint64_t> again_;  // where the head is
  std::array<std::deque<std::uint64_t>, kMarkCount> places_;
  unsigned opened_ = 0, repeated_ = 0;
};

}  // namespace

std::optional<Inner> find_inner(const std::shared_ptr<const Source>& file, std::string_view format, bool only_repeated,
                                const Context& context) {
  return Search(file, format, context).run(only_repeated);
}

}  // namespace weighbridge::doctor
