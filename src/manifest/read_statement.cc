// SPDX-License-Identifier: Apache-2.0
// The signed layer of a bundle: the in-toto statement with the list of files.
#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "codecs/checksum.h"
#include "manifest/bundle.h"
#include "manifest/text.h"

namespace weighbridge::signing {
namespace {

// model-signing up to 1.1 calls the digest of a range so, with the size of ranges after it.
constexpr std::string_view kOfRanges = "sha256-sharded-";
constexpr std::string_view kOldPredicate = "https://model_signing/Digests/v0.1";

// A SHA-256 as the specification writes it.
Digest sha256(const Text& text, std::string_view hex, std::string_view of) {
  const std::optional<Digest> out = parse_digest(hex);
  if (!out || out->version != 1)  // which is spelled as a SHA-256 is
    text.fail("the digest of " + quote(of) + " must have 64 hexadecimal digits in lower case, not " + quote(hex));
  return {out->bytes, 0};
}

Digest content_digest(const Text& text, const std::string& given) {
  const std::optional<Digest> out = parse_digest(given);
  if (!out) text.fail("an annotation has no content digest: " + quote(given));
  return *out;
}

// Our notes in the annotations of a file or of the subject; those of others are skipped.
void annotations(Text& text, ManifestNote& note, bool& found) {
  text.object("'annotations'", [&](std::string_view key) {
    if (key != kOurs) return text.skip();
    found = true;
    text.object(
        "the annotation 'weighbridge'",
        {{"size", [&] { note.size = text.number("'size'"); }},
         {"format", [&] { note.format = text.string("'format'"); }},
         {"content_digest", [&] { note.content_digest = content_digest(text, text.string("'content_digest'")); }},
         {"tensors",
          [&] {
            text.object("'tensors'", [&](std::string_view name) {
              note.tensors.emplace_back(name, content_digest(text, text.string("a tensor's digest")));
              return true;
            });
          }}},
        Text::Others::skipped);  // of later versions
    return true;
  });
}

struct Resource {
  std::string name, algorithm;
  Digest digest;
};

// Section 5.2.1.
void resource(Text& text, std::vector<Resource>& resources, std::vector<ManifestNote>& notes) {
  Resource out;
  std::string digest;
  ManifestNote note;
  bool noted = false;
  text.object("a resource",
              {{"name", [&] { out.name = text.string("a resource's 'name'"); }, true},
               {"digest", [&] { digest = text.string("a resource's 'digest'"); }, true},
               {"algorithm", [&] { out.algorithm = text.string("a resource's 'algorithm'"); }, true},
               {"annotations", [&] { annotations(text, note, noted); }}},
              Text::Others::skipped);  // section 5.2.1: verifiers ignore others
  if (out.algorithm == "sha256" || out.algorithm.starts_with(kOfRanges)) out.digest = sha256(text, digest, out.name);
  if (noted) {
    note.file = out.name;
    notes.push_back(std::move(note));
  }
  resources.push_back(std::move(out));
}

struct Serialization {
  std::string method, hash;
  std::optional<std::uint64_t> shard_size;
};

// Section 5.2.2.
Serialization serialization(Text& text, Manifest& out) {
  Serialization found;
  const auto ignored_path = [&] {
    out.ignored.push_back(text.string("an ignored path"));
    if (const std::string_view fault = fault_of_name(out.ignored.back()); !fault.empty())
      base::malformed("manifest/name", "the ignored path " + quote(out.ignored.back()) + " " + std::string(fault));
  };
  text.object("'serialization'",
              {{"method", [&] { found.method = text.string("'method'"); }, true},
               {"hash_type", [&] { found.hash = text.string("'hash_type'"); }, true},
               {"shard_size", [&] { found.shard_size = text.number("'shard_size'"); }},
               {"allow_symlinks", [&] { out.allow_symlinks = text.boolean("'allow_symlinks'"); }, true},
               {"ignore_paths", [&] { text.array("'ignore_paths'", ignored_path); }}});
  if (found.method.empty()) text.lacks("'serialization'", "method");
  if (found.hash.empty()) text.lacks("'serialization'", "hash_type");
  if (found.method != "files" && found.method != "shards")
    text.fail("the serialization's method is " + quote(found.method) + ", which is neither 'files' nor 'shards'");
  if ((found.method == "shards") != found.shard_size.has_value())
    text.fail(found.shard_size ? "the method 'files' has a 'shard_size'" : "the method 'shards' has no 'shard_size'");
  if (found.shard_size && *found.shard_size == 0) text.fail("'shard_size' is 0");
  return found;
}

void require_sha256(std::string_view algorithm) {
  if (algorithm == "sha256") return;
  const bool known = algorithm == "blake2b" || algorithm == "blake3";
  const std::string message =
      "the manifest has digests of the kind " + quote(algorithm) +
      (known ? ", which this build does not compute: only sha256" : ", which the specification does not define");
  known ? base::unsupported("unsupported/digest", message) : base::malformed("manifest/statement", message);
}

// Section 6.3.2: "path:start:end"; colons may be part of the path.
bool split_range(std::string_view name, ManifestEntry& out) {
  const std::size_t second = name.rfind(':');
  const std::size_t first = second == name.npos || second == 0 ? name.npos : name.rfind(':', second - 1);
  if (first == name.npos) return false;
  const auto begin = wire::as_u64(name.substr(first + 1, second - first - 1)),
             end = wire::as_u64(name.substr(second + 1));
  if (!begin || !end) return false;
  out.file = name.substr(0, first);
  out.begin = *begin;
  out.end = *end;
  return true;
}

// Sorts the entries by file and offset, and requires that the ranges of each file follow each other without a gap.
void arrange(Manifest& out) {
  std::sort(out.entries.begin(), out.entries.end(), [](const ManifestEntry& a, const ManifestEntry& b) {
    return std::tie(a.file, a.begin, a.end) < std::tie(b.file, b.begin, b.end);
  });
  const ManifestEntry* before = nullptr;
  for (const ManifestEntry& entry : out.entries) {
    const bool follows = before != nullptr && before->file == entry.file;
    if (out.shard_size == 0) {
      if (follows) base::malformed("manifest/duplicate", "the manifest lists the file " + quote(entry.file) + " twice");
    } else {
      const std::uint64_t expected = follows ? before->end : 0;
      if (follows && before->begin == entry.begin && before->end == entry.end)
        base::malformed("manifest/duplicate", "the manifest lists " + quote(entry_name(entry)) + " twice");
      if (entry.begin != expected || entry.end <= entry.begin || entry.end - entry.begin > out.shard_size)
        base::malformed("manifest/shards", "the range " + quote(entry_name(entry)) +
                                               (entry.begin > expected     ? " leaves a gap"
                                                : entry.begin < expected   ? " overlaps the one before it"
                                                : entry.end <= entry.begin ? " is empty"
                                                                           : " is larger than 'shard_size'") +
                                               ": it must begin at byte " + std::to_string(expected) +
                                               " and have at most " + std::to_string(out.shard_size) + " bytes");
      if (follows && before->end - before->begin != out.shard_size)
        base::malformed("manifest/shards", "the range " + quote(entry_name(*before)) +
                                               " is shorter than 'shard_size' (" + std::to_string(out.shard_size) +
                                               "), and is not the last of its file");
    }
    before = &entry;
  }
  std::sort(out.notes.begin(), out.notes.end(),
            [](const ManifestNote& a, const ManifestNote& b) { return a.file < b.file; });
}

// By components, as versions of the reference sort paths: "a/b" before "a-b".
bool before_by_components(std::string_view a, std::string_view b) {
  const auto rank = [](char c) { return c == '/' ? 0 : 1 + static_cast<int>(static_cast<unsigned char>(c)); };
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [&](char x, char y) { return rank(x) < rank(y); });
}

// Fills the entries from the resources, which have the order of the file.
void take_resources(std::vector<Resource> resources, std::string_view root, Text& text, Manifest& out) {
  if (resources.empty()) text.fail("the manifest lists no file");
  std::string digests;
  const std::string of_ranges = std::string(kOfRanges) + std::to_string(out.shard_size);
  for (const Resource& each : resources) {
    if (out.shard_size == 0 || each.algorithm != of_ranges) require_sha256(each.algorithm);
    digests.append(reinterpret_cast<const char*>(each.digest.bytes.data()), each.digest.bytes.size());
  }
  if (const std::string found = codecs::to_hex(codecs::sha256(std::as_bytes(std::span(digests))));
      !root.empty() && found != root)
    base::malformed("manifest/root", "the digest of the subject is " + std::string(root) +
                                         ", but the digests of the files give " + found);
  bool sorted = true, by_component = true;
  for (std::size_t i = 0; i < resources.size(); ++i) {
    ManifestEntry entry{.file = resources[i].name, .sha256 = resources[i].digest};
    if (out.shard_size > 0 && !split_range(resources[i].name, entry))
      base::malformed("manifest/shards",
                      "the resource " + quote(resources[i].name) + " names no range (path:start:end)");
    // Versions of the reference name the only file of a model that is one file so.
    const bool single = resources.size() == 1 && entry.file == ".";
    if (const std::string_view fault = fault_of_name(entry.file); !fault.empty() && !single)
      base::malformed("manifest/name", "the file " + quote(entry.file) + " " + std::string(fault));
    if (i > 0) {
      const ManifestEntry& last = out.entries.back();
      sorted = sorted && resources[i - 1].name <= resources[i].name;
      by_component = by_component && (last.file == entry.file ? last.begin <= entry.begin
                                                              : before_by_components(last.file, entry.file));
    }
    out.entries.push_back(std::move(entry));
  }
  if (!sorted && !by_component) text.warn("manifest/order", "the files are not in the order of their names");
  for (ManifestNote& note : out.notes)  // was named like its resource
    if (ManifestEntry entry; out.shard_size > 0 && split_range(note.file, entry)) note.file = entry.file;
  arrange(out);
}

}  // namespace

std::string_view fault_of_name(std::string_view name) noexcept {
  if (name.empty()) return "has no name";
  if (name.find('\0') != name.npos) return "has a NUL in its name";
  if (name.front() == '/') return "is absolute";
  if (name.find('\\') != name.npos) return "has a backslash in its name, which divides folders on some systems";
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view component = name.substr(begin, end - begin);
    if (component == "..") return "leads out of the folder";
    if (component.empty() || component == ".") return "is not in its shortest form";
    begin = end + 1;
  }
  return {};
}

Statement parse_statement(std::string_view payload, const Limits& limits, Report& report) {
  Text text(payload, limits, "the payload", "manifest/statement", report);
  Statement out;
  std::string type, predicate_type;
  struct Named {
    std::string name, sha256;
  };
  std::vector<Named> subjects;
  std::vector<Resource> resources;
  std::optional<Serialization> how;
  std::vector<std::string> unknown;
  bool has_resources = false, noted = false;
  ManifestNote model;
  const auto subject_digest = [&](Named& subject) {
    text.object("the subject's 'digest'", [&](std::string_view algorithm) {
      std::string hex = text.string("a digest");
      if (algorithm == "sha256") subject.sha256 = std::move(hex);
      return true;
    });
  };
  const auto subject = [&] {
    Named& named = subjects.emplace_back();
    text.object("the subject",
                {{"name", [&] { named.name = text.string("the subject's 'name'"); }},
                 {"digest", [&] { subject_digest(named); }},
                 {"annotations", [&] { annotations(text, model, noted); }}},
                Text::Others::skipped);
  };
  const auto predicate = [&](std::string_view member) {
    if (member == "resources") {
      has_resources = true;
      text.array("'resources'", [&] { resource(text, resources, out.manifest.notes); });
    } else if (member == "serialization") {
      how = serialization(text, out.manifest);
    } else {
      unknown.emplace_back(member);
      text.skip();
    }
    return true;
  };
  const Text::Keys keys =
      text.object("the statement", {{"_type", [&] { type = text.string("'_type'"); }},
                                    {"predicateType", [&] { predicate_type = text.string("'predicateType'"); }},
                                    {"subject", [&] { text.array("'subject'", subject); }},
                                    {"predicate", [&] { text.object("'predicate'", predicate); }}});
  text.finish();
  if (type != kStatementType) text.fail("the statement's '_type' is " + quote(type) + ", not " + quote(kStatementType));
  out.old_form = predicate_type == kOldPredicate;
  if (predicate_type != kPredicate && !out.old_form)
    text.fail("the statement's 'predicateType' is " + quote(predicate_type) + ", not " + quote(kPredicate));
  if (!keys.contains("predicate")) text.fail("the statement has no 'predicate'");
  if (out.old_form) {
    for (Named& each : subjects) {
      const Digest digest = sha256(text, each.sha256, each.name);
      resources.push_back({std::move(each.name), "sha256", digest});
    }
    take_resources(std::move(resources), {}, text, out.manifest);
    return out;
  }
  for (const std::string& each : unknown)
    text.warn("manifest/member", "'predicate' has a member that the specification does not define: " + quote(each));
  if (!how || !has_resources) text.lacks("'predicate'", how ? "resources" : "serialization");
  if (subjects.size() != 1)
    text.fail("the statement has " + std::to_string(subjects.size()) + " subjects, and must have one");
  if (subjects.front().name.empty()) text.fail("the subject has no name");
  sha256(text, subjects.front().sha256, subjects.front().name);
  require_sha256(how->hash);
  out.manifest.name = subjects.front().name;
  out.manifest.shard_size = how->shard_size.value_or(0);
  out.manifest.format = model.format;
  out.manifest.content_digest = model.content_digest;
  take_resources(std::move(resources), subjects.front().sha256, text, out.manifest);
  return out;
}

}  // namespace weighbridge::signing
