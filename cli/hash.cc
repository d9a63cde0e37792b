// SPDX-License-Identifier: Apache-2.0
// hash: prints one digest per file, or checks a list of such lines against the files that they name.
#include "weighbridge/hash.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "session.h"
#include "texts.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {
namespace {

// The digest that the flags ask for.
struct Found {
  std::string format;
  DigestKind kind = DigestKind::content;
  Digest digest;
};

// nullopt if the file is malformed: the error has been printed, and `status` is the exit status.
std::optional<Found> digest_of(Session& session, const std::string& path, std::uint32_t version, Status& status) {
  if (session.args.has(FlagId::file))
    return Found{{}, DigestKind::file, file_sha256(*session.source(path), session.context())};
  const Input input = open_input(session, path);
  status = input.status;
  if (!input.model) return std::nullopt;
  const bool with_names = !session.args.has(FlagId::no_names);
  return Found{std::string(input.model->format()), with_names ? DigestKind::content : DigestKind::content_without_names,
               content_digest(*input.model, session.context(), with_names, version)};
}

Status hash_one(Session& session, const std::string& path) {
  try {
    Status status = Status::done;
    const std::uint32_t version = session.args.number(FlagId::digest_version, kDigestVersion);
    const auto found = digest_of(session, path, version, status);
    if (!found) return status;
    session.progress().clear();
    if (session.json)
      session.object(to_json(path, found->format, found->kind, found->digest));
    else
      session.out.text(found->digest.text() + "  " + shown(path) + "\n");
    return Status::done;
  } catch (const Error& error) {
    return session.fail(path, error);
  }
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

struct Line {
  Digest digest;
  std::string path;
};

// Parses a digest ("wb2:..." or 64 digits), a space, another space or sha256sum's asterisk, and the path as hash prints
// it. With --file the digits are a SHA-256.
std::optional<Line> parse_line(std::string_view line, bool of_file) {
  const std::size_t end = line.find(' ');
  if (end == line.npos || end + 2 >= line.size() || (line[end + 1] != ' ' && line[end + 1] != '*')) return std::nullopt;
  std::optional<Digest> digest = parse_digest(line.substr(0, end));
  std::optional<std::string> path = unescaped(line.substr(end + 2));
  if (!digest || !path || (of_file && digest->version != 1)) return std::nullopt;
  if (of_file) digest->version = 0;
  return Line{*digest, std::move(*path)};
}

std::string_view without_digest(Status why) { return why == Status::io ? "FAILED to open or read" : "FAILED"; }

Status check_line(Session& session, const Line& line) {
  const auto say = [&](std::string_view verdict, Tone tone) {
    session.progress().clear();
    if (session.json) return;
    session.out.text(shown(line.path) + ": ");
    session.out.toned(tone, verdict);
    session.out.text("\n");
    session.out.flush();  // show results as they come
  };
  try {
    Status status = Status::done;
    const auto found = digest_of(session, line.path, line.digest.version, status);
    if (!found) {
      say(without_digest(status), Tone::bad);
      return status;
    }
    const bool equal = found->digest == line.digest;
    if (!equal || !session.quiet) say(equal ? "OK" : "FAILED", equal ? Tone::good : Tone::bad);
    if (session.json) session.object(to_json(line.path, found->format, found->kind, line.digest, found->digest));
    return equal ? Status::done : Status::invalid;
  } catch (const Error& error) {
    say(without_digest(status_of(error.kind())), Tone::bad);
    return session.fail(line.path, error);
  }
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

// Checks every line of a list, as sha256sum --check does. Skips blank lines and comments (#).
Status check_list(Session& session, const std::string& path) {
  try {
    const bool of_file = session.args.has(FlagId::file);
    TextFile lines(session, path, TextForm::lines);
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
      const Status now = check_line(session, *line);
      failed += now == Status::done ? 0U : 1U;
      status = worse(status, now);
    }
    session.progress().clear();
    if (failed > 0)
      complain(shown(lines.name()) + ": " + counted(failed, "file", "files") + " of " + std::to_string(checked) +
               " FAILED");
    if (malformed > 0)
      complain(shown(lines.name()) + ": " + counted(malformed, "line is", "lines are") +
               " not a digest, two spaces and a path; the first is line " + std::to_string(first_malformed));
    if (malformed == 0 && checked == 0) complain(shown(lines.name()) + ": there is no digest to check");
    return malformed > 0 || checked == 0 ? worse(status, Status::invalid) : status;
  } catch (const Error& error) {
    return session.fail(path, error);
  }
}

}  // namespace

Status run_hash(Session& session) {
  const bool check = session.args.has(FlagId::check);
  return session.for_each_file(
      [&](const std::string& path) { return check ? check_list(session, path) : hash_one(session, path); });
}

}  // namespace weighbridge::cli
