// SPDX-License-Identifier: Apache-2.0
// Signatures of files that are not tensor files.
#include "registry/detect.h"

#include <algorithm>
#include <string>

#include "base/utf8.h"
#include "core/reading/findings.h"
#include "core/reading/rules.h"

namespace weighbridge::registry {
namespace {

namespace rules = core::rules;
using namespace std::string_view_literals;

struct Signature {
  std::size_t at;
  std::string_view bytes;
  const Rule* rule;
  std::string_view what;  // for messages
};

constexpr Signature kSignatures[] = {
    {0, "PK\x03\x04"sv, &rules::kFileZip, ""},
    {0, "PK\x05\x06"sv, &rules::kFileZip, "an empty one"},
    {0, "\x1f\x8b\x08"sv, &rules::kFileCompressed, "gzip"},
    {0, "\x28\xb5\x2f\xfd"sv, &rules::kFileCompressed, "zstd"},
    {0,
     "\xfd"
     "7zXZ\0"sv,
     &rules::kFileCompressed, "xz"},
    {0, "BZh"sv, &rules::kFileCompressed, "bzip2"},
    {0, "\x04\x22\x4d\x18"sv, &rules::kFileCompressed, "lz4"},
    {0, "7z\xbc\xaf\x27\x1c"sv, &rules::kFileCompressed, "7-Zip"},
    {257, "ustar"sv, &rules::kFileTar, ""},
    {0, "lmgg"sv, &rules::kFileOtherFormat, "GGML"},
    {0, "tjgg"sv, &rules::kFileOtherFormat, "GGML"},
    {4, "TFL3"sv, &rules::kFileOtherFormat, "TensorFlow Lite"},
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() && std::equal(lower.begin(), lower.end(), text.begin(), [](char a, char b) {
           return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
         });
}

bool is_html(std::string_view head) {
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  head.remove_prefix(std::min(head.size(), head.find_first_not_of(" \t\r\n")));
  return starts_with_ignoring_case(head, "<!doctype html") || starts_with_ignoring_case(head, "<html") ||
         starts_with_ignoring_case(head, "<head");
}

// Whether the text is an error message that a server sent instead of the file.
bool is_error_text(std::string_view head, std::uint64_t size) {
  constexpr std::uint64_t kLongest = 1024;  // such texts are a line
  constexpr std::string_view kBeginnings[] = {"entry not found",
                                              "repository not found",
                                              "revision not found",
                                              "not found",
                                              "404: not found",
                                              "404 not found",
                                              "invalid username or password",
                                              "invalid credentials",
                                              "access denied",
                                              "access to model",
                                              "forbidden",
                                              "unauthorized",
                                              "bad gateway",
                                              "internal server error",
                                              "service unavailable",
                                              "too many requests",
                                              "<?xml",
                                              "<error>",
                                              "{\"error\":",
                                              "{\"detail\":"};
  if (size > kLongest) return false;
  head.remove_prefix(std::min(head.size(), head.find_first_not_of(" \t\r\n\"")));
  return std::ranges::any_of(kBeginnings,
                             [&](std::string_view beginning) { return starts_with_ignoring_case(head, beginning); });
}

std::optional<Finding> git_lfs_pointer(std::string_view head) {
  if (!head.starts_with("version https://git-lfs.github.com/spec/")) return std::nullopt;
  const std::string_view oid = line_of(head, "oid "), size = line_of(head, "size ");
  std::string what = oid.empty() ? "it names no object" : "it stands for the object " + std::string(oid.substr(0, 80));
  if (!size.empty()) what += " of " + std::string(size.substr(0, 20)) + " bytes";
  return core::Findings::make(rules::kFileGitLfsPointer, {.offset = 0}, {}, {}, base::is_utf8(what) ? what : "");
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

std::string_view line_of(std::string_view text, std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(key)) return line.substr(key.size());
    at = end + 1;
  }
  return {};
}

std::optional<Finding> recognize(const core::Glance& glance) {
  const std::string_view head = as_text(glance.head);
  if (glance.size == 0) return core::Findings::make(rules::kFileEmpty, {});
  if (auto pointer = git_lfs_pointer(head)) return pointer;
  if (is_error_text(head, glance.size)) {
    const std::string_view line = head.substr(0, head.find_first_of("\r\n"));
    return core::Findings::make(rules::kFileErrorText, {.offset = 0}, {}, {},
                                base::is_utf8(line) ? '"' + std::string(line.substr(0, 80)) + '"' : "");
  }
  if (is_html(head)) return core::Findings::make(rules::kFileHtml, {.offset = 0});
  for (const Signature& s : kSignatures)
    if (head.size() >= s.at && head.substr(s.at).starts_with(s.bytes))
      return core::Findings::make(*s.rule, {.offset = s.at}, {}, {}, s.what);
  constexpr std::size_t kEnoughZeros = 512;
  if (head.size() >= kEnoughZeros && all_zero(glance.head))
    return core::Findings::make(rules::kFileZeros, {.offset = 0});
  return std::nullopt;
}

Finding unknown(const core::Glance& glance) {
  const std::string_view head = as_text(glance.head);
  const auto printable = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\r' || c == '\t';
  };
  // Ignore a last character that the end of the excerpt cuts in two.
  const std::size_t bad = base::find_invalid_utf8(head);
  const bool text = (bad == std::string_view::npos || bad + 4 > head.size()) && std::ranges::all_of(head, printable);
  return core::Findings::make(text ? rules::kFileText : rules::kFileUnknown, {.offset = 0});
}

}  // namespace weighbridge::registry
