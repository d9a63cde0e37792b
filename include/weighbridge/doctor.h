// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a file really is, what is wrong with it, what can be saved and what to do next. Nothing here changes its input.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/formats.h"
#include "weighbridge/model.h"
#include "weighbridge/open.h"
#include "weighbridge/place.h"
#include "weighbridge/verify.h"

namespace weighbridge {

/// The state of a file or folder, as one word.
enum class Condition : std::uint8_t {
  sound,       ///< valid, and nothing points to damage
  suspicious,  ///< not to be trusted as it is: zeros begin or end inside a tensor and no checksum covers them, numbers
               ///< are NaN or infinite, bytes follow the end, metadata are untrue, or programs may run code of it
  incomplete,  ///< bytes or files are missing
  damaged,     ///< invalid in another way
  foreign,     ///< not a model: a pointer, an error page, an archive, ...
  unproven  ///< valid, but loading it with Python is not known to be safe (Verdict::not_known_safe), or tensors have a
            ///< type that is not read
};
/// "sound", "suspicious", "incomplete", "damaged", "foreign", "unproven"
std::string_view name(Condition) noexcept;
/// The rules of findings that only diagnose() makes.
std::span<const Rule> doctor_rules() noexcept;

/// Something to do. A front end puts it into its own words, as a command to copy.
struct Advice {
  /// What to do.
  enum class What : std::uint8_t {
    fetch_rest,    ///< download the bytes from `from` on, up to `to` if it is not 0
    fetch_again,   ///< download the whole file again, or `name`, another file of the model
    fetch_object,  ///< fetch what a Git LFS pointer stands for
    fetch_file,    ///< download the missing file `name`
    salvage,       ///< write the tensors that are whole to a new file
    trim,          ///< write a copy of the bytes from `from` to `to`
    rename,        ///< give the file the extension `name`
    decompress,    ///< decompress or unpack it with the program `name`
    compare,       ///< compare the file with a published SHA-256
    distrust,      ///< do not load it with Python: a pickle can run code; or `name`: "archive", do not unpack; "code"
    rewrite        ///< write it anew, without the bytes that belong to no tensor
  };
  What what = What::fetch_again;  ///< what to do
  std::string name{};             ///< a file, an extension or a program; see What
  std::uint64_t from = 0;         ///< first byte
  std::uint64_t to = 0;           ///< byte past the last; 0: not known
  bool operator==(const Advice&) const = default;
};
std::string_view name(Advice::What) noexcept;  ///< "fetch-rest", "fetch-again", "fetch-object", ...

/// A range of bytes of a file.
struct ByteRange {
  std::uint64_t offset = 0;  ///< first byte
  std::uint64_t length = 0;  ///< bytes
  bool operator==(const ByteRange&) const = default;
};

/// What diagnose() found.
struct Diagnosis {
  static constexpr std::size_t kMaxNames = 1000;  ///< that `damaged` and `missing` hold

  Condition condition = Condition::sound;    ///< in one word
  std::string what{};                        ///< what it is, as a phrase: "a safetensors file that ends early"
  Verdict verdict{};                         ///< of verify(); its model has the tensors that could be read
  std::uint64_t size = 0;                    ///< bytes of the file, or of all files of a folder's model
  std::optional<std::uint64_t> full_size{};  ///< bytes that it should have, as its own header or a pointer says
  std::string sha256{};                      ///< of the whole file, as a Git LFS pointer says; 64 digits or empty
  std::string named_like{};                  ///< the format that the extension means, if the content is of another
  Model whole_model{};                       ///< the tensors without a known fault, which salvage() writes
  std::uint64_t tensors = 0;                 ///< that the index lists; 0 if it cannot be read
  std::uint64_t whole = 0;                   ///< of these, tensors without a known fault
  std::vector<std::string> damaged{};        ///< the names of the others, in the order of their data
  std::optional<ByteRange> zeros{};          ///< the largest range of zeros that begins or ends inside a tensor
  std::optional<ByteRange> trailing{};       ///< bytes after the end of the model
  std::shared_ptr<const Source> file{};      ///< what was examined; null: a folder
  std::optional<ByteRange> own{};            ///< bytes that are a whole model without the others, which trim() writes
  std::vector<std::string> missing{};        ///< files of the model that are not there
  std::vector<Advice> advice{};              ///< what to do, the most useful first
};

/// [reads] Runs verify(), then looks for the cause of what it found, and reads the whole file for ranges of zeros.
/// Throws Error of kind io and misuse only. A model is opened with the options; `list_incomplete` is always set.
Diagnosis diagnose(const std::string& path, const Context& = {}, const OpenOptions& = {});
/// [reads] Likewise for a file or folder in any place.
Diagnosis diagnose(std::shared_ptr<const Place>, const Context& = {}, const OpenOptions& = {});

/// [reads] Writes the tensors that are whole to a new file, in the format of the path's extension, as save() does.
/// Throws what save() throws, and Error{misuse} if no tensor is whole.
Written salvage(const Diagnosis&, const std::string& path, const Options& = {}, const Context& = {});

/// [reads] Writes a copy of the file without the bytes before and after the model, and verifies it. Throws
/// Error{misuse} if it has none, or if `path` exists without `replace`.
void trim(const Diagnosis&, const std::string& path, bool replace = false, const Context& = {});

/// One file of a cache of the Hugging Face Hub.
struct CacheEntry {
  /// What was found.
  enum class State : std::uint8_t {
    sound,       ///< the digest in its name is that of its bytes
    damaged,     ///< it is not
    unfinished,  ///< a download that has not ended
    missing,     ///< a snapshot refers to it, and it is not there
    stray,       ///< no snapshot refers to it; its digest is right
    unknown      ///< its name is not a digest, so nothing can be compared
  };
  State state = State::sound;  ///< what was found
  std::string path{};          ///< relative to the cache
  std::string used_by{};       ///< a file of a snapshot that refers to it, relative to the cache; empty: none
  std::uint64_t size = 0;      ///< bytes
  std::string found{};         ///< damaged: the digest of its bytes
};
std::string_view name(CacheEntry::State) noexcept;  ///< "sound", "damaged", "unfinished", "missing", "stray", "unknown"

/// What check_cache() found.
struct CacheReport {
  std::vector<CacheEntry> entries{};                   ///< sorted by path
  std::uint64_t bytes = 0;                             ///< that were hashed
  std::uint64_t of(CacheEntry::State) const noexcept;  ///< how many entries have this state
  bool sound() const noexcept;                         ///< nothing is damaged, unfinished or missing
};

/// Whether a folder is laid out like a cache of the Hugging Face Hub: it has folders such as models--ORG--NAME, or is
/// one of these.
bool is_hub_cache(const std::string& folder);
/// [reads] Checks a cache without a network: a blob's name is the SHA-256 of a large file or Git's SHA-1 of a small
/// one. Links are followed inside the cache only; a shared store of hub 2.4 is read through them. Files are hashed in
/// parallel on the executor. Throws Error of kind io and misuse.
CacheReport check_cache(const std::string& folder, const Context& = {});

}  // namespace weighbridge
