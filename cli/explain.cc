// SPDX-License-Identifier: Apache-2.0
// explain: prints what is at a place in a file, from the outermost structure to the innermost, and its bytes.
#include "weighbridge/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "session.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {
namespace {

constexpr std::size_t kLine = 16, kWidestSpan = 48, kLongestSpanValue = 160;
constexpr std::uint64_t kMaxLines = 40;  // spans that are printed

struct Asked {
  std::shared_ptr<const Source> source;
  std::string path;
  std::uint64_t offset = 0, length = 1;
  bool whole = false;  // the element is somewhere in compressed bytes
};

// A number in decimal, or in hexadecimal after 0x.
std::uint64_t offset_from(std::string_view text, std::string_view all) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = hex ? text.substr(2) : text;
  std::uint64_t out = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), out, hex ? 16 : 10);
  if (fault != std::errc() || end != digits.data() + digits.size())
    throw Misuse(quote(all) + " is not a place in a file: write @1234, @0x4d2, or @1000:1064 for several bytes");
  return out;
}

// The bytes that "@A" or "@A:B" means.
void take_offsets(std::string_view where, Asked& asked) {
  const std::string_view text = where.substr(1);
  const std::size_t colon = text.find(':');
  asked.offset = offset_from(text.substr(0, colon), where);
  if (colon == text.npos) return;
  const std::uint64_t end = offset_from(text.substr(colon + 1), where);
  if (end <= asked.offset) throw Misuse(quote(where) + " is empty: the end must be after the beginning");
  asked.length = end - asked.offset;
}

std::string place_text(std::uint64_t offset, std::uint64_t size) {
  return size == 1 ? "byte " + grouped(offset) : "bytes " + grouped(offset) + " to " + grouped(offset + size - 1);
}

void print_spans(Output& out, const Explanation& found) {
  std::size_t widest = 0;
  std::vector<std::pair<std::string, std::size_t>> names;  // and how deep
  std::vector<std::uint64_t> ends;                         // of the spans around
  for (const Span& span : found.spans) {
    while (!ends.empty() && span.offset >= ends.back()) ends.pop_back();
    names.emplace_back(std::string(2 * ends.size(), ' ') + fitted(span.what, kWidestSpan), ends.size());
    ends.push_back(span.end());
    widest = std::max(widest, width_shown(names.back().first));
    if (names.size() == kMaxLines) break;
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Span& span = found.spans[i];
    out.text("  ");
    out.toned(Tone::heading, fmt::format("{:<10}", name(span.kind)));
    out.text(names[i].first + std::string(widest - width_shown(names[i].first), ' ') + "  " +
             place_text(span.offset, span.size));
    if (!span.value.empty()) out.text(": " + fitted(span.value, kLongestSpanValue));
    out.text("\n");
  }
  const std::uint64_t more = found.spans.size() - names.size() + found.left_out;
  if (more > 0) out.text("  ... and " + grouped(more) + " more; ask for fewer bytes\n");
}

// The bytes, sixteen a line, with those of the innermost span between brackets.
void print_bytes(Output& out, const Explanation& found) {
  if (found.bytes.empty()) return;
  const Span& inner = found.spans.back();
  const bool one = found.length == 1;
  const std::uint64_t begin = one ? inner.offset : found.offset;
  const std::uint64_t end = one ? inner.end() : found.offset + found.length;
  out.text("\n");
  for (std::size_t line = 0; line < found.bytes.size(); line += kLine) {
    std::string hex, text;
    for (std::size_t i = line; i < std::min(line + kLine, found.bytes.size()); ++i) {
      const std::uint64_t at = found.bytes_at + i;
      const auto byte = std::to_integer<unsigned>(found.bytes[i]);
      const bool marked = at >= begin && at < end, opens = marked && (at == begin || i == line);
      const bool follows = at > begin && at == end && i > line;
      hex += fmt::format("{}{:02x}", opens ? '[' : follows ? ']' : ' ', byte);
      text += byte >= 0x20 && byte < 0x7F ? static_cast<char>(byte) : '.';
      if (marked && (i + 1 == found.bytes.size() || i + 1 == line + kLine)) hex += ']';
    }
    out.text(fmt::format("  {:>10x} {:<50} {}\n", found.bytes_at + line, hex, text));
  }
}

void print(Session& session, const Asked& asked, const Explanation& found) {
  Output& out = session.out;
  const bool one = found.length == 1;
  out.text(
      shown(asked.path) + ": " + place_text(found.offset, found.length) +
      (one ? fmt::format(" (0x{:x})", found.offset) : std::string()) +
      (found.offset == found.size ? " is the end of the file; the last byte is in" : " of " + grouped(found.size)) +
      "\n");
  if (asked.whole) out.text("the element is somewhere in these bytes, which are compressed\n");
  print_spans(out, found);
  for (const Finding& finding : found.findings) {
    out.text("  ");
    out.toned(finding.severity == Severity::error ? Tone::bad : Tone::warning, "finding   ");
    out.text(session.sentence(finding) + "\n");
  }
  print_bytes(out, found);
}

}  // namespace

Status run_explain(Session& session) {
  if (session.args.operands.size() == 1) return explain_rule(session);
  const std::string &path = session.args.operands[0], &where = session.args.operands[1];
  Asked asked{.source = {}, .path = path};
  if (where.starts_with('@')) {
    take_offsets(where, asked);
  } else {
    OpenOptions reading = reading_options(session);
    reading.checks = Checks::structure;
    reading.list_incomplete = true;
    const Input input = open_input(session, path, reading);
    try {
      const Location place = locate(input.model, where);
      asked.source = input.model.sources()[place.source];
      asked.offset = place.offset;
      asked.length = place.length;
      asked.whole = place.whole;
    } catch (const Error& error) {
      if (where.find_first_not_of("0123456789-+") == std::string::npos)
        throw Misuse("there is no tensor " + quote(where) + "; a byte of the file is written @" + where);
      throw;
    }
    asked.path = asked.source->name();
    if (asked.length == 0) {
      Explanation nothing;
      nothing.format = input.model.format();
      nothing.size = asked.source->size();
      nothing.offset = asked.offset;
      session.print_result([&] { return to_json(asked.path, nothing); },
                           [&] { session.out.text(shown(asked.path) + ": " + quote(where) + " has no bytes\n"); });
      return Status::done;
    }
  }
  if (!asked.source) asked.source = session.source(path);
  const Explanation found = explain(asked.source, asked.offset, asked.length, session.context(),
                                    {.format = std::string(session.args.value(FlagId::format))});
  session.progress().clear();
  session.print_result([&] { return to_json(asked.path, found); }, [&] { print(session, asked, found); });
  return Status::done;
}

}  // namespace weighbridge::cli
