// SPDX-License-Identifier: Apache-2.0
// Reads every pickle of a file and judges its globals.
#include "core/archive/pickle_scan.h"

#include <algorithm>
#include <iterator>

#include "base/checked.h"
#include "core/archive/pickle_arrays.h"
#include "core/model/words.h"
#include "core/reading/rules.h"
#include "io/read.h"

namespace weighbridge::core {
namespace {

using wire::Pickle, wire::PickleKind;

// A file with more pickles in a row than this is reported: joblib and PyTorch write a few, and each takes a reader.
constexpr unsigned kMaxInRow = 10'000;
constexpr unsigned kLegacyPickles = 5;
// How deep strings in pickles in strings are read; a deeper one is reported as unread. Each level is a recursion.
constexpr unsigned kDeepest = 8;
// Findings about unread strings of one file; more of them would say nothing new.
constexpr unsigned kMaxUnread = 100;

constexpr std::string_view kPickleNames[] = {".pkl", ".pickle", ".joblib", ".dat", ".data", ".p",
                                             ".pck", ".bin",    ".pt",     ".pth", ".ckpt", ".pkl.txt"};

bool begins_like_pickle(std::string_view first) noexcept {
  return first.size() > 2 && first[0] == '\x80' && static_cast<unsigned char>(first[1]) <= 5;
}

}  // namespace

bool ends_with_ignoring_case(std::string_view name, std::string_view end) noexcept {
  return name.size() >= end.size() && std::ranges::equal(name.substr(name.size() - end.size()), end, {}, [](char c) {
           return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
         });
}

bool may_be_pickle(std::string_view name, std::string_view first) noexcept {
  return begins_like_pickle(first) ||
         std::ranges::any_of(kPickleNames, [&](std::string_view end) { return ends_with_ignoring_case(name, end); });
}

wire::PickleInput input_of(const Source& source, std::uint64_t offset, std::uint64_t size) {
  return {size, [&source, offset](std::uint64_t at, std::span<std::byte> out) { source.read_at(offset + at, out); },
          joblib_data};
}

wire::PickleInput input_of(std::string_view decoded) {
  return {decoded.size(),
          [decoded](std::uint64_t at, std::span<std::byte> out) {
            std::ranges::copy(std::as_bytes(std::span(decoded)).subspan(base::to_size(at), out.size()), out.begin());
          },
          joblib_data};
}

wire::PickleError PickleScan::row(const wire::PickleInput& input, std::uint64_t start,
                                  std::optional<std::uint64_t> base, std::uint64_t at, std::string_view where) {
  std::string first(base::to_size(std::min<std::uint64_t>(kTorchMagicPickle.size(), input.size - start)), '\0');
  input.read(start, std::as_writable_bytes(std::span(first)));
  const unsigned maximum = first == kTorchMagicPickle ? kLegacyPickles : kMaxInRow;
  wire::PickleError error;
  if (start >= input.size) error = {wire::PickleFault::end, start, "there are no bytes where the pickle should begin"};
  for (unsigned n = 0; start < input.size; ++n) {
    if (n == maximum) {
      if (maximum == kMaxInRow)
        out_.push_back(Findings::make(rules_.malformed, {.offset = base ? *base + start : at}, {}, {},
                                      "there are more than 10,000 pickles in a row"));
      break;
    }
    const Pickle pickle = Pickle::read(input, start, memory_);
    check_globals(pickle, rules_, base, at, where, out_);
    nested(pickle, input, base, at, where);
    if (!pickle.data().empty()) data(pickle, input, start, base, at, where);
    if (n == 0) error = pickle.error();
    if (!pickle.ok()) break;
    start = pickle.end();
  }
  return error;
}

// joblib reads data of objects between the opcodes, some of it pickles. What does not know them takes the data for
// opcodes: what those name counts if it is known to be harmful, since data may look like a name by chance.
void PickleScan::data(const Pickle& pickle, const wire::PickleInput& input, std::uint64_t start,
                      std::optional<std::uint64_t> base, std::uint64_t at, std::string_view where) {
  for (const wire::PickleData& each : pickle.data())
    if (each.pickle)
      row({each.length, [&](std::uint64_t from, std::span<std::byte> to) { input.read(each.offset + from, to); }}, 0,
          base ? std::optional(*base + each.offset) : std::nullopt, at, where);
  const Pickle plain = Pickle::read({input.size, input.read}, start, memory_);
  std::vector<Finding> found;
  check_globals(plain, rules_, base, at, where, found);
  for (Finding& each : found)
    if (each.severity == Severity::error && !each.found.starts_with("a name ") &&
        std::ranges::find(out_, each.found, &Finding::found) == out_.end())
      out_.push_back(std::move(each));
}

namespace {

// Whether there may be a pickle of the protocols without a number: they name globals in lines, or by an opcode.
bool may_be_text_pickle(std::string_view bytes) noexcept {
  return bytes.find_first_of("\n\x93") != bytes.npos && !bytes.starts_with('\n');
}

std::string first_of(const wire::PickleInput& input, std::size_t maximum) {
  std::string out(base::to_size(std::min<std::uint64_t>(input.size, maximum)), '\0');
  if (!out.empty()) input.read(0, std::as_writable_bytes(std::span(out)));
  return out;
}

// A text without a number that is a pickle by what it does, or too large to know.
bool is_text_pickle(const wire::PickleInput& input, std::uint64_t memory) {
  const Pickle pickle = Pickle::read(input, 0, memory);
  return does_something(pickle) || pickle.error().fault == wire::PickleFault::memory;
}

}  // namespace

void PickleScan::nested(const Pickle& pickle, const wire::PickleInput& input, std::optional<std::uint64_t> base,
                        std::uint64_t at, std::string_view where) {
  for (Pickle::Ref r = 0; r < pickle.count(); ++r) {
    const bool text = pickle.kind(r) == PickleKind::text;
    if (!text && pickle.kind(r) != PickleKind::bytes) continue;
    const std::uint64_t here = base ? *base + pickle.at(r) : at;
    std::vector<Finding> found;
    PickleScan inner(*this, found);
    if (const auto kept = pickle.text(r)) {
      // A byte string of protocol 2 is a text of Latin-1 in UTF-8.
      const auto latin1 =
          text && kept->find_first_of("\xC2\xC3") != kept->npos ? wire::from_latin1(*kept) : std::nullopt;
      inner.bytes(latin1 ? *latin1 : *kept, here, where);
    } else if (const auto span = pickle.span(r)) {  // it is longer than what is kept in memory
      inner.string(
          {span->length, [&input, from = span->offset](std::uint64_t offset,
                                                       std::span<std::byte> to) { input.read(from + offset, to); }},
          here, where);
    }
    std::move(found.begin(), found.end(), std::back_inserter(out_));
  }
}

// A long string, which is read into memory only if it must be decoded first.
void PickleScan::string(const wire::PickleInput& input, std::uint64_t at, std::string_view where) {
  const std::string first = first_of(input, kPackingHead);
  const bool decoded =
      first.starts_with(kZipMember) || !packing_of(first).name.empty() || first.starts_with("\xC2\x80");
  if (!decoded && !begins_like_pickle(first)) {
    if (is_text_pickle(input, memory_)) numbered(input, at, where);
    return;
  }
  if (!decoded && depth_ <= kDeepest) return numbered(input, at, where);
  if (input.size > context_.limits.memory) return unread(at, where, "a string of " + bytes_text(input.size));
  std::string whole = first_of(input, base::to_size(input.size));
  if (first.starts_with("\xC2\x80")) whole = wire::from_latin1(whole).value_or(std::string());
  bytes(whole, at, where);
}

// Bytes in memory.
void PickleScan::bytes(std::string_view bytes, std::uint64_t at, std::string_view where) {
  const bool zip = bytes.starts_with(kZipMember);
  const bool pickle =
      begins_like_pickle(bytes) || (!zip && may_be_text_pickle(bytes) && is_text_pickle(input_of(bytes), memory_));
  const Packing packing = pickle || zip ? Packing{} : packing_of(bytes);
  if (!pickle && !zip && packing.name.empty()) return;
  if (!packing.name.empty() && packing.readable) {
    const auto unpacked = shared_->unpacked.left() > 0 ? unpack(packing, bytes, shared_->unpacked) : std::nullopt;
    if (!unpacked && shared_->unpacked.left() == 0)
      return unread(at, where,
                    "bytes packed by " + std::string(packing.name) + ", after as many as the memory limit allows");
    if (!unpacked) return;
    if (depth_ > kDeepest) return unread(at, where, "bytes packed more than " + std::to_string(kDeepest) + " times");
    std::vector<Finding> found;
    PickleScan inner(*this, found);
    inner.bytes(*unpacked, at, where);
    std::move(found.begin(), found.end(), std::back_inserter(out_));
    return;
  }
  if (!packing.name.empty()) return unread(at, where, "bytes packed by " + std::string(packing.name));
  if (depth_ > kDeepest) return unread(at, where, "a pickle in more than " + std::to_string(kDeepest) + " others");
  if (!zip) return numbered(input_of(bytes), at, where);
  const auto held = std::make_shared<const std::string>(bytes);
  const std::size_t before = out_.size();
  file(*memory_source({std::as_bytes(std::span(*held)), held}, ""));
  for (std::size_t i = before; i < out_.size(); ++i) out_[i].offset = at;
}

// What begins like a pickle, as other data may: of a malformed one, only globals count whose names could be Python's.
void PickleScan::numbered(const wire::PickleInput& input, std::uint64_t at, std::string_view where) {
  const wire::PickleError error = row(input, 0, std::nullopt, at, where);
  if (error.fault == wire::PickleFault::frame || error.fault == wire::PickleFault::memory)
    unread(at, where, "a pickle in which " + std::string(error.sentence));
}

void PickleScan::unread(std::uint64_t at, std::string_view where, std::string what) {
  if (shared_->unread++ >= kMaxUnread) return;
  out_.push_back(Findings::make(rules_.unread, {.offset = at}, {}, std::move(what),
                                where.empty() ? std::string() : "in " + quoted(excerpt(where, 80))));
}

Finding PickleScan::too_large(std::uint64_t at, std::uint64_t size) const {
  return Findings::make(rules::kLimitMemory, {.offset = at}, at_most(in_bytes(context_.limits.memory)), in_bytes(size),
                        "a pickle could not be checked");
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
  if (depth_ > 0 && !shared_->unpacked.take(member.size)) {
    unread(member.offset, member.name, "bytes larger than the memory limit allows");
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

void PickleScan::packed_file(const Source& source) {
  const wire::PickleInput input = input_of(source, 0, source.size());
  const std::string first = first_of(input, kPackingHead);
  const Packing packing = packing_of(first);
  if (packing.name.empty()) return;
  if (!packing.readable || source.size() > context_.limits.memory)
    return unread(0, {}, "a file packed by " + std::string(packing.name));
  bytes(first_of(input, base::to_size(source.size())), 0, {});
}

void PickleScan::file(const Source& source) {
  if (source.size() == 0) return;
  const std::string first = io::head_of(source, 8);
  if (!first.starts_with(kZipMember) && !first.starts_with(kZipEmpty)) {
    const wire::PickleError error = row(input_of(source, 0, source.size()), 0, 0, 0, {});
    if (error.fault == wire::PickleFault::memory)
      unread(error.offset, {}, "a pickle in which " + std::string(error.sentence));
    return;
  }
  Report report;
  Findings ignored(report, Findings::Mode::all);
  Draft draft;
  const auto zip = read_zip(source, context_.limits, kQuietZip, ignored, draft);
  if (!zip) return;
  for (const ZipMember& each : zip->members) {
    if (each.offset == 0 || each.stored == 0) continue;
    const std::string head = io::text_of(source, each.offset, std::min<std::uint64_t>(each.stored, 8));
    if (may_be_pickle(each.name, each.encoding == Encoding::raw ? head : "")) member(source, each);
  }
}

}  // namespace weighbridge::core
