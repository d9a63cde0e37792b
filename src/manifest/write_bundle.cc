// SPDX-License-Identifier: Apache-2.0
// Writes bundles, and what both directions share: what a signature is made over, and names.
#include <algorithm>
#include <set>
#include <utility>

#include "codecs/checksum.h"
#include "manifest/bundle.h"
#include "manifest/files.h"
#include "weighbridge/json_writer.h"

namespace weighbridge {

std::uint64_t Manifest::files() const noexcept {
  std::uint64_t out = 0;
  const std::string* before = nullptr;
  for (const ManifestEntry& entry : entries) {
    if (before == nullptr || *before != entry.file) ++out;
    before = &entry.file;
  }
  return out;
}
const ManifestNote* Manifest::note(std::string_view file) const noexcept {
  const auto at =
      std::lower_bound(notes.begin(), notes.end(), file,
                       [](const ManifestNote& note, std::string_view wanted) { return note.file < wanted; });
  return at != notes.end() && at->file == file ? &*at : nullptr;
}

std::string entry_name(const ManifestEntry& entry) {
  if (entry.end == 0) return entry.file;
  return entry.file + ":" + std::to_string(entry.begin) + ":" + std::to_string(entry.end);
}

std::string_view name(SigningMethod method) noexcept {
  constexpr std::string_view kNames[] = {"none", "key", "certificate", "sigstore"};
  return kNames[static_cast<std::size_t>(method)];
}
std::string_view name(SignatureState state) noexcept {
  constexpr std::string_view kNames[] = {"none", "valid", "unchecked", "invalid"};
  return kNames[static_cast<std::size_t>(state)];
}
std::string_view name(FileDifference::What what) noexcept {
  constexpr std::string_view kNames[] = {"missing", "additional", "changed"};
  return kNames[static_cast<std::size_t>(what)];
}

namespace signing {

std::string signed_bytes(std::string_view payload) {
  return "DSSEv1 " + std::to_string(kPayloadType.size()) + " " + std::string(kPayloadType) + " " +
         std::to_string(payload.size()) + " " + std::string(payload);
}

// With a capital V, and the payload as Python shows bytes: b'...'.
std::string signed_bytes_of_old_form(std::string_view payload) {
  const bool apostrophe = payload.find('\'') != payload.npos, quote = payload.find('"') != payload.npos;
  const char mark = apostrophe && !quote ? '"' : '\'';
  std::string out = "DSSEV1 " + std::to_string(kPayloadType.size()) + " " + std::string(kPayloadType) + " " +
                    std::to_string(payload.size()) + " b" + mark;
  for (const char c : payload) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == mark || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += "\\x" + codecs::to_hex(std::as_bytes(std::span(&byte, 1)));
    } else {
      out += c;
    }
  }
  return out + mark;
}

namespace {

void write_note(JsonWriter& out, const ManifestNote& note, bool of_file) {
  if (!of_file && note.format.empty()) return;
  out.key("annotations").begin_object();
  out.key(kOurs).begin_object();
  if (of_file) out.member("size", note.size);
  if (!note.format.empty()) {
    out.member("format", note.format);
    out.member("content_digest", note.content_digest.text());
  }
  if (!note.tensors.empty()) {
    out.key("tensors").begin_object();
    for (const auto& [name, digest] : note.tensors) out.member(name, digest.text());
    out.end_object();
  }
  out.end_object();
  out.end_object();
}

}  // namespace

std::string statement_text(const Manifest& manifest) {
  std::vector<std::pair<std::string, const ManifestEntry*>> resources;
  for (const ManifestEntry& entry : manifest.entries) resources.emplace_back(entry_name(entry), &entry);
  std::sort(resources.begin(), resources.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  codecs::Sha256 root;
  for (const auto& [name, entry] : resources) root.update(entry->sha256.bytes);
  JsonWriter out(JsonWriter::Style::compact);
  out.begin_object();
  out.member("_type", kStatementType);
  out.key("subject").begin_array();
  out.begin_object();
  out.member("name", manifest.name);
  out.key("digest").begin_object();
  out.member("sha256", codecs::to_hex(root.finish()));
  out.end_object();
  write_note(out, {.format = manifest.format, .content_digest = manifest.content_digest}, false);
  out.end_object();
  out.end_array();
  out.member("predicateType", kPredicate);
  out.key("predicate").begin_object();
  out.key("resources").begin_array();
  for (const auto& [name, entry] : resources) {
    out.begin_object();
    out.member("name", name);
    out.member("digest", entry->sha256.hex());
    out.member("algorithm", "sha256");
    if (const ManifestNote* const note = manifest.note(entry->file); note != nullptr && entry->begin == 0)
      write_note(out, *note, true);
    out.end_object();
  }
  out.end_array();
  out.key("serialization").begin_object();
  out.member("method", manifest.shard_size > 0 ? "shards" : "files");
  out.member("hash_type", "sha256");
  if (manifest.shard_size > 0) out.member("shard_size", manifest.shard_size);
  out.flag("allow_symlinks", manifest.allow_symlinks);
  std::set<std::string, std::less<>> ignored = always_ignored();
  ignored.insert(manifest.ignored.begin(), manifest.ignored.end());
  out.key("ignore_paths").begin_array();
  for (const std::string& each : ignored) out.string(each);
  out.end_array();
  out.end_object();
  out.end_object();
  out.end_object();
  return out.take();
}

std::string bundle_text(std::string_view payload, const Signed* signature) {
  JsonWriter out(JsonWriter::Style::compact);
  out.begin_object();
  out.member("mediaType", kMediaType);
  out.key("verificationMaterial").begin_object();
  if (signature != nullptr && signature->chain.empty()) {
    out.key("publicKey").begin_object();
    out.member("hint", signature->fingerprint);
    out.end_object();
  } else if (signature != nullptr) {
    out.key("x509CertificateChain").begin_object();
    out.key("certificates").begin_array();
    for (const Octets& each : signature->chain) {
      out.begin_object();
      out.key("rawBytes").bytes(each);
      out.end_object();
    }
    out.end_array();
    out.end_object();
  }
  out.key("tlogEntries").begin_array();
  out.end_array();
  out.end_object();
  out.key("dsseEnvelope").begin_object();
  out.key("payload").bytes(std::as_bytes(std::span(payload)));
  out.member("payloadType", kPayloadType);
  out.key("signatures").begin_array();
  if (signature != nullptr) {
    out.begin_object();
    out.key("sig").bytes(signature->signature);
    out.member("keyid", "");
    out.end_object();
  }
  out.end_array();
  out.end_object();
  out.end_object();
  return out.take() + "\n";
}

}  // namespace signing

std::string write_manifest(const Manifest& manifest, const SigningKey& key) {
  const std::string payload = signing::statement_text(manifest);
  const std::string message = signing::signed_bytes(payload);
  const signing::Signed signature = signing::sign(key, std::as_bytes(std::span(message)));
  return signing::bundle_text(payload, &signature);
}
std::string write_manifest(const Manifest& manifest) {
  return signing::bundle_text(signing::statement_text(manifest), nullptr);
}

}  // namespace weighbridge
