// SPDX-License-Identifier: Apache-2.0
// Reads every pickle of a file and judges its globals.
#include "core/pickle_scan.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>

#include "base/checked.h"
#include "core/common_rules.h"
#include "core/words.h"
#include "wire/pickle_text.h"

namespace weighbridge::core {
namespace {

using wire::Pickle;
using wire::PickleKind;

// A file with more pickles in a row than this is reported.
constexpr unsigned kMostInRow = 10'000;
constexpr unsigned kLegacyPickles = 5;
// Byte strings in pickles in byte strings.
constexpr unsigned kDeepest = 3;

constexpr std::string_view kPickleNames[] = {".pkl", ".pickle", ".joblib", ".dat", ".data", ".p",
                                             ".pck", ".bin",    ".pt",     ".pth", ".ckpt", ".pkl.txt"};

bool begins_like_pickle(std::string_view first) noexcept {
  return first.size() > 2 && first[0] == '\x80' && static_cast<unsigned char>(first[1]) <= 5;
}

}  // namespace

bool may_be_pickle(std::string_view name, std::string_view first) noexcept {
  return begins_like_pickle(first) ||
         std::ranges::any_of(kPickleNames, [&](std::string_view end) { return name.ends_with(end); });
}

wire::PickleInput input_of(const Source& source, std::uint64_t offset, std::uint64_t size) {
  return {size, [&source, offset](std::uint64_t at, std::span<std::byte> out) { source.read_at(offset + at, out); }};
}

wire::PickleInput input_of(std::string_view decoded) {
  return {decoded.size(), [decoded](std::uint64_t at, std::span<std::byte> out) {
            std::ranges::copy(std::as_bytes(std::span(decoded)).subspan(base::to_size(at), out.size()), out.begin());
          }};
}

wire::PickleError PickleScan::row(const wire::PickleInput& input, std::uint64_t start,
                                  std::optional<std::uint64_t> base, std::uint64_t at, std::string_view where) {
  std::string first(base::to_size(std::min<std::uint64_t>(kTorchMagicPickle.size(), input.size - start)), '\0');
  input.read(start, std::as_writable_bytes(std::span(first)));
  const unsigned most = first == kTorchMagicPickle ? kLegacyPickles : kMostInRow;
  wire::PickleError error;
  if (start >= input.size) error = {wire::PickleFault::end, start, "there are no bytes where the pickle should begin"};
  for (unsigned n = 0; start < input.size; ++n) {
    if (n == most) {
      if (most == kMostInRow)
        out_.push_back(Findings::make(rules_.malformed, {.offset = base ? *base + start : at}, {}, {},
                                      "there are more than 10,000 pickles in a row"));
      break;
    }
    const Pickle pickle = Pickle::read(input, start, context_.limits.memory);
    judge_globals(pickle, rules_, base, at, where, out_);
    if (depth_ < kDeepest) nested(pickle, input, base, at, where);
    if (n == 0) error = pickle.error();
    if (!pickle.ok()) break;
    start = pickle.end();
  }
  return error;
}

void PickleScan::nested(const Pickle& pickle, const wire::PickleInput& input, std::optional<std::uint64_t> base,
                        std::uint64_t at, std::string_view where) {
  for (Pickle::Ref r = 0; r < pickle.count(); ++r) {
    const bool text = pickle.kind(r) == PickleKind::text;
    if (!text && pickle.kind(r) != PickleKind::bytes) continue;
    const auto kept = pickle.text(r);
    const auto span = pickle.span(r);  // a string is in memory or in the input
    std::string bytes;
    if (kept) {
      bytes = kept->substr(0, 8);
    } else {
      bytes.resize(8);  // it is longer than what is kept in memory
      input.read(span->offset, std::as_writable_bytes(std::span(bytes)));
    }
    // A byte string of protocol 2 is a text of Latin-1 in UTF-8.
    const bool archive = bytes.starts_with(kZipMember);
    if (!archive && !begins_like_pickle(bytes) && !(text && bytes.starts_with("\xC2\x80"))) continue;
    const std::uint64_t here = base ? *base + pickle.at(r) : at;
    std::vector<Finding> found;
    PickleScan inner(context_, rules_, found);
    inner.depth_ = depth_ + 1;
    if (kept) {
      bytes = *kept;
    } else if (text || archive) {
      if (span->length > context_.limits.memory) {
        out_.push_back(too_large(here, span->length));
        continue;
      }
      bytes.resize(base::to_size(span->length));
      input.read(span->offset, std::as_writable_bytes(std::span(bytes)));
    }
    if (text) bytes = wire::from_latin1(bytes).value_or(std::string());
    if (!begins_like_pickle(bytes) && !archive) continue;
    if (archive) {
      const auto held = std::make_shared<const std::string>(std::move(bytes));
      inner.file(*memory_source({std::as_bytes(std::span(*held)), held}, ""));
      for (Finding& each : found) each.offset = here;
    } else {
      const bool in_place = !kept && !text;
      const wire::PickleInput within =
          in_place ? wire::PickleInput{span->length,
                                       [&input, from = span->offset](std::uint64_t offset, std::span<std::byte> to) {
                                         input.read(from + offset, to);
                                       }}
                   : input_of(bytes);
      // Other data may begin the same way.
      if (inner.row(within, 0, std::nullopt, here, where).fault != wire::PickleFault::none)
        std::erase_if(found, [](const Finding& each) { return each.severity != Severity::error; });
    }
    std::move(found.begin(), found.end(), std::back_inserter(out_));
  }
}

Finding PickleScan::too_large(std::uint64_t at, std::uint64_t size) const {
  return Findings::make(rules::kLimitMemory, {.offset = at}, "at most " + bytes_text(context_.limits.memory),
                        bytes_text(size), "a pickle could not be checked");
}

wire::PickleError PickleScan::member(const Source& source, const ZipMember& member, std::uint64_t start) {
  // Flags and headers may be false: data that is stored uncompressed can be read in any case.
  if (member.offset == 0 || member.encoding == Encoding::unknown) return {};
  if (member.encoding == Encoding::raw) {
    if (start > member.stored) return {};
    return row(input_of(source, member.offset, member.stored), start, member.offset, member.offset, member.name);
  }
  if (member.unreadable != nullptr || member.broken) return {};
  if (member.size > context_.limits.memory) {
    out_.push_back(too_large(member.offset, member.size));
    return {};
  }
  std::string decoded;
  read_zip_member(source, member, context_, [&](std::span<const std::byte> piece) {
    decoded.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return true;
  });
  if (start > decoded.size()) return {};  // its bytes do not decode, which is another rule
  return row(input_of(decoded), start, std::nullopt, member.offset, member.name);
}

void PickleScan::file(const Source& source) {
  if (source.size() == 0) return;
  std::string first(base::to_size(std::min<std::uint64_t>(source.size(), 8)), '\0');
  source.read_at(0, std::as_writable_bytes(std::span(first)));
  if (!first.starts_with(kZipMember)) {
    row(input_of(source, 0, source.size()), 0, 0, 0, {});
    return;
  }
  Report report;
  Findings ignored(report, Findings::Mode::all);
  Draft draft;
  const auto zip = read_zip(source, context_.limits, kQuietZip, ignored, draft);
  if (!zip) return;
  for (const ZipMember& each : zip->members) {
    if (each.offset == 0 || each.stored == 0) continue;
    std::string head(base::to_size(std::min<std::uint64_t>(each.stored, 8)), '\0');
    source.read_at(each.offset, std::as_writable_bytes(std::span(head)));
    if (may_be_pickle(each.name, each.encoding == Encoding::raw ? head : "")) member(source, each);
  }
}

}  // namespace weighbridge::core
