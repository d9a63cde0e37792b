// SPDX-License-Identifier: Apache-2.0
// The format of the key file, and the order in which the two files are published.
#include "kept_vectors.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "session.h"
#include "weighbridge/hash.h"
#include "weighbridge/npy.h"

namespace weighbridge::cli {
namespace {

struct Key {
  std::string made_of;  // the digest of the inputs, 64 digits
  std::string vectors;  // the SHA-256 of the NumPy file

  std::string text() const { return "made-of=" + made_of + "\nvectors=" + vectors + "\n"; }
};

// nullopt if the file is not a key.
std::optional<Key> read_key(const std::string& path) {
  const auto source = open_file(path);
  Key key{std::string(64, '0'), std::string(64, '0')};
  std::string text = key.text();
  if (source->size() != text.size()) return std::nullopt;
  source->read_at(0, std::as_writable_bytes(std::span(text)));
  key = {text.substr(text.find('=') + 1, 64), text.substr(text.size() - 65, 64)};
  const bool digits = (key.made_of + key.vectors).find_first_not_of("0123456789abcdef") == std::string::npos;
  return digits && key.text() == text ? std::optional(key) : std::nullopt;
}

// The bytes of the NumPy file, without a second copy in memory.
class NpyBytes final : public Source {
 public:
  NpyBytes(std::string_view header, std::span<const float> vectors)
      : header_(std::as_bytes(std::span(header))), vectors_(std::as_bytes(vectors)) {}
  std::uint64_t size() const noexcept override { return header_.size() + vectors_.size(); }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    for (std::size_t i = 0; i < out.size();) {
      const auto at = static_cast<std::size_t>(offset) + i;
      const auto from = at < header_.size() ? header_.subspan(at) : vectors_.subspan(at - header_.size());
      const auto piece = from.first(std::min(from.size(), out.size() - i));
      std::ranges::copy(piece, out.subspan(i).begin());
      i += piece.size();
    }
  }
  std::string_view name() const noexcept override { return "<vectors>"; }

 private:
  std::span<const std::byte> header_, vectors_;
};

[[noreturn]] void refuse_vectors(const std::string& kept, std::string sentence) {
  raise(Kind::misuse, "misuse/vectors", std::move(sentence), kept);
}

std::string header_of(std::uint64_t count, std::uint64_t dimension) {
  const std::uint64_t shape[] = {count, dimension};
  return npy_header("<f4", shape);
}

void write_key(OutputFile& file, const std::string& key) {
  file.write(std::as_bytes(std::span(key)));
  file.publish();
}

// Whether a key exists, left without its vectors by a run that ended early. Throws if the file is anything else, which
// must not be replaced.
bool key_is_left(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::file_status there = std::filesystem::symlink_status(path, ignored);
  if (!std::filesystem::exists(there)) return false;
  if (!std::filesystem::is_regular_file(there))
    raise(Kind::misuse, "misuse/output-kind",
          std::string("the key file for the vectors cannot be written: it is ") +
              (std::filesystem::is_directory(there) ? "a directory"
               : std::filesystem::is_symlink(there) ? "a symbolic link"
                                                    : "not a regular file"),
          path);
  if (!read_key(path))
    raise(Kind::misuse, "misuse/output-exists",
          "the file exists, but it is not a key file of search: choose another file for the vectors", path);
  return true;
}

}  // namespace

std::string key_path(const std::string& kept) { return kept + ".key"; }

std::optional<std::vector<float>> read_vectors(const std::string& kept, const MadeOf& made_of, std::uint64_t count,
                                               std::uint64_t dimension) {
  std::error_code ignored;
  if (!std::filesystem::exists(kept, ignored)) return std::nullopt;
  if (std::filesystem::is_directory(kept, ignored))
    refuse_vectors(kept, "this is a directory: choose a file for the vectors");
  const bool has_key = std::filesystem::exists(key_path(kept), ignored);
  const std::optional<Key> key = has_key ? read_key(key_path(kept)) : std::nullopt;
  if (!key)
    refuse_vectors(kept, "search did not write this file: its key file '" + key_path(kept) +
                             "' is missing or invalid; choose another file");
  if (key->made_of != made_of(kDigestVersion) && key->made_of != made_of(1))
    refuse_vectors(kept, "according to '" + key_path(kept) +
                             "', the file holds vectors of another corpus, model or options: remove it, or choose "
                             "another file");
  const std::string header = header_of(count, dimension);
  const auto source = open_file(kept);
  const std::uint64_t floats = count * dimension;
  if (source->size() != header.size() + floats * sizeof(float) || file_sha256(*source).hex() != key->vectors)
    refuse_vectors(kept,
                   "the file does not match its key file '" + key_path(kept) + "': remove it, or choose another file");
  std::vector<float> vectors(static_cast<std::size_t>(floats));
  source->read_at(header.size(), std::as_writable_bytes(std::span(vectors)));
  return vectors;
}

KeptVectors::KeptVectors(const std::string& kept)
    : path_(kept),
      key_path_(key_path(kept)),
      key_left_(key_is_left(key_path_)),
      vectors_file_(kept, false),
      key_file_(key_path_, key_left_) {}

void KeptVectors::write(const std::string& made_of, std::uint64_t dimension, std::span<const float> vectors) {
  const std::string header = header_of(vectors.size() / dimension, dimension);
  vectors_file_.write(std::as_bytes(std::span(header)));
  vectors_file_.write(std::as_bytes(vectors));
  publish(Key{made_of, file_sha256(NpyBytes(header, vectors)).hex()}.text());
}

// Publishes the key first, which only one of several runs can do: vectors without a key would be indistinguishable from
// those of another run. If the vectors cannot be published, removes a key that did not exist before, unless another run
// owns it.
void KeptVectors::publish(const std::string& key) {
  std::error_code ignored;
  if (key_left_) key_is_left(key_path_);
  if (std::filesystem::exists(path_, ignored))
    raise(Kind::misuse, "misuse/output-exists",
          "the file exists: another process created it while this run was working", path_);
  try {
    write_key(key_file_, key);
    vectors_file_.publish();
  } catch (const Error& error) {
    if (!key_left_ && error.kind() != Kind::misuse && !std::filesystem::exists(path_, ignored))
      std::filesystem::remove(key_path_, ignored);
    throw;
  }
  // A run that found only the key may have taken it for a leftover and replaced it. This run published the vectors, so
  // it writes its key again.
  if (const std::optional<Key> now = read_key(key_path_); now && now->text() != key) {
    OutputFile again(key_path_, true);
    write_key(again, key);
  }
}

}  // namespace weighbridge::cli
