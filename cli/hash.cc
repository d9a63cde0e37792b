// SPDX-License-Identifier: Apache-2.0
// hash: prints one digest per file, or checks a list of such lines against the files that they name.
#include "weighbridge/hash.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "session.h"
#include "texts.h"
#include "weighbridge/json.h"
#include "weighbridge/scheme.h"

namespace weighbridge::cli {
namespace {

struct Found {
  std::string format;
  DigestKind kind = DigestKind::content;
  Digest digest;
};

// The digest that the flags ask for.
DigestKind kind_of(const Arguments& args) {
  return args.has(FlagId::file)       ? DigestKind::file
         : args.has(FlagId::autov3)   ? DigestKind::data
         : args.has(FlagId::zt)       ? DigestKind::zt_content
         : args.has(FlagId::no_names) ? DigestKind::content_without_names
                                      : DigestKind::content;
}

Found digest_of(Session& session, const std::string& path, DigestKind kind, std::uint32_t version) {
  if (kind == DigestKind::file) return Found{{}, kind, file_sha256(*session.source(path), session.context())};
  const Input input = open_input(session, path);
  if (kind == DigestKind::data)
    return Found{std::string(input.model.format()), kind, data_sha256(input.model, session.context())};
  if (kind == DigestKind::zt_content)
    return Found{std::string(input.model.format()), kind, zt_content_digest(input.model)};
  const Model model = session.args.has(FlagId::values) ? logical(input.model, session.context()) : input.model;
  if (const auto schemes = schemes_of(model); session.args.has(FlagId::values) && !schemes.empty())
    raise(Kind::unsupported, "unsupported/scheme",
          "there are codes of " + schemes.front().name + " that are not decoded, so they have no numbers to digest");
  return Found{std::string(model.format()), kind,
               content_digest(model, session.context(), kind == DigestKind::content, version)};
}

Status hash_one(Session& session, const std::string& path) {
  const std::uint32_t version = session.args.number(FlagId::digest_version, kDigestVersion);
  const Found found = digest_of(session, path, kind_of(session.args), version);
  session.progress().clear();
  if (session.json)
    session.object(to_json(path, found.format, found.kind, found.digest));
  else
    session.out.text((found.kind == DigestKind::zt_content ? "sha256:" : "") + found.digest.text() + "  " +
                     shown(path) + "\n");
  return Status::done;
}

// The inverse of shown() for a path; nullopt if there is an escape that shown() does not write.
std::optional<std::string> unescaped(std::string_view text) {
  const auto digit = [](char c) { return std::string_view("0123456789abcdef").find(c); };
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      out += text[at];
      continue;
    }
    const char kind = ++at < text.size() ? text[at] : '\0';
    if (const std::size_t plain = std::string_view("\\nrt").find(kind); plain != std::string_view::npos) {
      out += "\\\n\r\t"[plain];
    } else if (kind == 'x' && at + 2 < text.size() && digit(text[at + 1]) < 16 && digit(text[at + 2]) < 16) {
      out += static_cast<char>(digit(text[at + 1]) * 16 + digit(text[at + 2]));
      at += 2;
    } else if (const std::size_t end = text.find('}', at);
               kind == 'u' && text.substr(at + 1, 1) == "{" && end != text.npos && end > at + 2 && end <= at + 8) {
      std::uint32_t point = 0;
      for (const char c : text.substr(at + 2, end - at - 2)) {
        if (digit(c) >= 16) return std::nullopt;
        point = point * 16 + static_cast<std::uint32_t>(digit(c));
      }
      if (point > 0x10ffff) return std::nullopt;
      const auto rest = [&](unsigned shift) { out += static_cast<char>(0x80 | (point >> shift & 0x3f)); };
      if (point < 0x80) {
        out += static_cast<char>(point);
      } else if (point < 0x800) {
        out += static_cast<char>(0xc0 | point >> 6), rest(0);
      } else if (point < 0x10000) {
        out += static_cast<char>(0xe0 | point >> 12), rest(6), rest(0);
      } else {
        out += static_cast<char>(0xf0 | point >> 18), rest(12), rest(6), rest(0);
      }
      at = end;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

struct DigestLine {
  Digest digest;
  std::string path;
};

// Parses a digest ("wb2:..." or 64 digits), a space, another space or sha256sum's asterisk, and the path as hash prints
// it. With --sha256 the digits are a SHA-256, in either case.
std::optional<DigestLine> parse_line(std::string_view line, bool of_file) {
  // sha256sum begins a line with a backslash if it has escaped the path.
  if (line.starts_with('\\')) line.remove_prefix(1);
  const std::size_t end = line.find(' ');
  if (end == line.npos || end + 2 >= line.size() || (line[end + 1] != ' ' && line[end + 1] != '*')) return std::nullopt;
  std::string digits(line.substr(0, end));
  if (of_file)
    std::ranges::transform(digits, digits.begin(),
                           [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
  std::optional<Digest> digest = parse_digest(digits);
  std::optional<std::string> path = unescaped(line.substr(end + 2));
  if (!digest || !path || (of_file && digest->version != 1)) return std::nullopt;
  if (of_file) digest->version = 0;
  return DigestLine{*digest, std::move(*path)};
}

std::string_view without_digest(Status why) { return why == Status::io ? "FAILED to open or read" : "FAILED"; }

// How many lines that failed have a digest of another kind than the flags ask for, by DigestKind.
using Others = std::array<std::uint64_t, 3>;

// Counts the line if its digest is one of another kind. 64 digits alone are a SHA-256 or a content digest of version 1.
// `readable`: the file is a model.
void look_for_other_kind(Session& session, const DigestLine& line, bool readable, Others& others) {
  const DigestKind asked = kind_of(session.args);
  if (asked == DigestKind::file) return;
  for (const DigestKind kind : {DigestKind::content, DigestKind::content_without_names, DigestKind::file}) {
    if (kind == asked || !(kind == DigestKind::file ? line.digest.version == 1 : readable)) continue;
    try {
      if (digest_of(session, line.path, kind, line.digest.version).digest.bytes != line.digest.bytes) continue;
      ++others[static_cast<std::size_t>(kind)];
      return;
    } catch (const Error&) {  // the line has failed already
    } catch (const Failed&) {}
  }
}

Status check_line(Session& session, const DigestLine& line, Others& others) {
  const auto say = [&](std::string_view verdict, Tone tone) {
    session.progress().clear();
    if (session.json) return;
    session.out.text(shown(line.path) + ": ");
    session.out.toned(tone, verdict);
    session.out.text("\n");
    session.out.flush();  // show results as they come
  };
  // The list names what cannot be opened, not the command line.
  const auto of_line = [](Status status) { return status == Status::misuse ? Status::io : status; };
  std::optional<Found> found;
  const Status status = of_line(session.settled(line.path, [&] {
    found = digest_of(session, line.path, kind_of(session.args), line.digest.version);
    return Status::done;
  }));
  if (!found) {
    say(without_digest(status), Tone::bad);
    if (status != Status::io) look_for_other_kind(session, line, false, others);
    return status;
  }
  const bool equal = found->digest == line.digest;
  if (!equal || !session.quiet) say(equal ? "OK" : "FAILED", equal ? Tone::good : Tone::bad);
  if (session.json) session.object(to_json(line.path, found->format, found->kind, line.digest, found->digest));
  if (!equal) look_for_other_kind(session, line, true, others);
  return equal ? Status::done : Status::invalid;
}

// Without separators, like the numbers of sha256sum.
std::string number_of(std::uint64_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

// Says how to check lines whose digests are of another kind.
void advise_other_kinds(const std::string& list, const Others& others) {
  const auto advise = [&](DigestKind kind, std::string_view what) {
    if (const std::uint64_t count = others[static_cast<std::size_t>(kind)]; count > 0)
      complain(shown(list) + ": " + number_of(count, "digest is ", "digests are ") + std::string(what));
  };
  advise(DigestKind::file,
         "the SHA-256 of the file: check the list with hash --check --sha256, or with sha256sum --check");
  advise(DigestKind::content, "of the tensors with their names: check the list without --no-names");
  advise(DigestKind::content_without_names, "of the tensors without their names: check the list with --no-names");
}

// Checks every line of a list, as sha256sum --check does. Skips blank lines and comments (#).
Status check_list(Session& session, const std::string& path) {
  const bool of_file = session.args.has(FlagId::file);
  TextFile lines(session, path, TextForm::lines);
  Others others{};
  std::uint64_t number = 0, checked = 0, failed = 0, malformed = 0, first_malformed = 0;
  Status status = Status::done;
  for (std::string text; !session.out.closed() && lines.next(text);) {
    ++number;
    if (text.ends_with('\r')) text.pop_back();
    if (text.empty() || text.front() == '#') continue;
    const auto line = parse_line(text, of_file);
    if (!line) {
      if (malformed++ == 0) first_malformed = number;
      continue;
    }
    ++checked;
    const Status now = check_line(session, *line, others);
    failed += now == Status::done ? 0U : 1U;
    status = worse(status, now);
  }
  session.progress().clear();
  if (failed > 0)
    complain(shown(lines.name()) + ": " + number_of(failed, "file", "files") + " of " + std::to_string(checked) +
             " FAILED");
  advise_other_kinds(lines.name(), others);
  if (malformed > 0)
    complain(shown(lines.name()) + ": " + number_of(malformed, "line is", "lines are") +
             " not a digest, two spaces and a path; the first is line " + std::to_string(first_malformed));
  if (malformed == 0 && checked == 0) complain(shown(lines.name()) + ": there is no digest to check");
  return malformed > 0 || checked == 0 ? worse(status, Status::invalid) : status;
}

}  // namespace

Status run_hash(Session& session) {
  const bool check = session.args.has(FlagId::check);
  return session.for_each_file(
      [&](const std::string& path) { return check ? check_list(session, path) : hash_one(session, path); });
}

}  // namespace weighbridge::cli
