// SPDX-License-Identifier: Apache-2.0
/// \file
/// A list of the files of a model with their SHA-256, which can be signed: OpenSSF Model Signing 1.0, as a Sigstore
/// bundle. Digests of tensors are added where other programs ignore them. docs/signing.md is the guide.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/error.h"
#include "weighbridge/hash.h"
#include "weighbridge/source.h"

namespace weighbridge {

/// A file of a model, or one range of its bytes.
struct ManifestEntry {
  std::string file{};       ///< relative to the model's folder, with "/" between folders
  std::uint64_t begin = 0;  ///< first byte; 0 if the manifest has whole files
  std::uint64_t end = 0;    ///< byte past the last; 0 if the manifest has whole files
  Digest sha256{};          ///< of the bytes, as version 0
};

/// What a manifest says about a file beyond its SHA-256. Only weighbridge writes and reads it.
struct ManifestNote {
  std::string file{};       ///< as ManifestEntry::file
  std::uint64_t size = 0;   ///< bytes
  std::string format{};     ///< of the tensor file; empty: it is not one, or no tensor digests were requested
  Digest content_digest{};  ///< of its tensors, if `format` is set
  std::vector<std::pair<std::string, Digest>> tensors{};  ///< the content digest of each tensor, by name
};

/// The files of a model.
struct Manifest {
  std::string name{};                    ///< of the model's folder or file; informational
  std::uint64_t shard_size = 0;          ///< bytes of a range; 0: the entries are whole files
  bool allow_symlinks = false;           ///< whether links to files were followed
  std::vector<std::string> ignored{};    ///< paths that were left out, with everything below them
  std::vector<ManifestEntry> entries{};  ///< sorted by name
  std::vector<ManifestNote> notes{};     ///< sorted by file; may be empty
  std::string format{};                  ///< of the model that the folder or file holds, as ManifestNote::format
  Digest content_digest{};               ///< of that model, if `format` is set
  std::uint64_t files() const noexcept;  ///< how many files the entries belong to
  const ManifestNote* note(std::string_view file) const noexcept;  ///< null: there is none
};

/// What to list, and how.
struct ManifestOptions {
  bool per_tensor = false;       ///< also the content digest of each tensor, and of the model
  std::uint64_t range_size = 0;  ///< list ranges of this many bytes; 0: whole files
  /// Paths to leave out, relative to the folder, or globs (matches_glob()) of such paths. What a glob matches now is
  /// recorded by name, because the specification has no globs.
  std::vector<std::string> ignore{};
  bool allow_symlinks = false;  ///< follow links to files that stay inside the folder; otherwise a link is an error
  std::string output{};         ///< the file that the manifest will be written to, which is left out
  bool replace = false;         ///< save_manifest(): replace an `output` that exists, if it is a manifest
  /// Sets an option of OptionOf::manifest (options.h), or adds to it. Error{misuse}.
  void set(std::string_view option, std::string_view text);
};

/// [reads] Lists a file or a folder. `.git`, `.gitignore`, `.gitattributes`, `.github`
/// and `.cache/huggingface` (a downloader's notes) in the folder are left out.
/// Hashes files and ranges in parallel on the executor. Throws Error{misuse} for a folder without files, a symbolic
/// link, a device or a name that is not UTF-8; Error{io}.
Manifest list_files(const std::string& path, const ManifestOptions& = {}, const Context& = {});

/// How a manifest is signed.
enum class SigningMethod : std::uint8_t {
  none,         ///< it has no signature
  key,          ///< with a key that the reader knows
  certificate,  ///< with a certificate that leads to a root that the reader knows
  sigstore      ///< with a certificate of Sigstore that is valid for minutes, and an entry in its public log
};
std::string_view name(SigningMethod) noexcept;  ///< "none", "key", "certificate", "sigstore"

/// What to sign with: PEM texts.
struct SigningKey {
  std::string key{};                 ///< private key, not encrypted, on P-256, P-384 or P-521
  std::string certificate{};         ///< of the key; empty: sign with the bare key
  std::vector<std::string> chain{};  ///< from the issuer of `certificate` upward; one text may hold several
  /// What write_manifest() makes with it.
  SigningMethod method() const noexcept {
    return key.empty() ? SigningMethod::none : certificate.empty() ? SigningMethod::key : SigningMethod::certificate;
  }
};

/// Whether this build can sign and check signatures. It needs OpenSSL, which wheels and the browser do not have.
bool can_sign() noexcept;

/// The manifest as a Sigstore bundle, signed. Throws Error{misuse} for a key or certificate of another kind, and
/// Error{unsupported} if this build cannot sign.
std::string write_manifest(const Manifest&, const SigningKey&);
/// The same without a signature. It shows that files are unchanged, not who made the list.
std::string write_manifest(const Manifest&);
/// [reads] Lists a file or a folder and writes the manifest to ManifestOptions::output, signed unless the key is empty.
/// Throws what list_files() and write_manifest() throw, for a wrong key before anything is hashed; Error{misuse}
/// "misuse/output-exists" if there is something at the output that ManifestOptions::replace does not replace;
/// Error{io}.
Manifest save_manifest(const std::string& path, const ManifestOptions&, const SigningKey& = {}, const Context& = {});

/// What is known of the signature.
enum class SignatureState : std::uint8_t {
  none,       ///< there is none
  valid,      ///< it was made with the key, or with a certificate that leads to the roots
  unchecked,  ///< there is one, but nothing to check it with
  invalid     ///< it was not made by that key or for these bytes
};
std::string_view name(SignatureState) noexcept;  ///< "none", "valid", "unchecked", "invalid"

/// What a reader trusts: PEM texts.
struct Trust {
  std::string key{};    ///< public key, for SigningMethod::key
  std::string roots{};  ///< certificates of authorities, for SigningMethod::certificate
};

/// How to compare files with a manifest.
struct ManifestCheck {
  Trust trust{};                         ///< without it, a signature is not checked
  std::vector<std::string> only_file{};  ///< globs of the entries to check, as entry_name() names them; empty: all
  bool ignore_unsigned = false;          ///< accept files that the manifest does not list
  /// Globs of files to accept although the manifest does not list them; one that matches a folder accepts everything in
  /// it.
  std::vector<std::string> ignore{};
  /// A file that keeps digests between checks: model files with the same size, times and inode are not read again. It
  /// is read if it exists, then replaced. Empty: every file is read.
  std::string cache{};
  /// Sets an option of OptionOf::check (options.h), or adds to it. Error{misuse}.
  void set(std::string_view option, std::string_view text);
};
/// A file for ManifestCheck::cache of checks of this path, in the user's cache (XDG Base Directory Specification).
/// Empty if there is no home.
std::string manifest_cache(const std::string& path);
/// The name of an entry in the bundle: "weights.bin", or "weights.bin:0:1000" for a range.
std::string entry_name(const ManifestEntry&);

/// A file that does not match the manifest.
struct FileDifference {
  /// How.
  enum class What : std::uint8_t {
    missing,     ///< the manifest lists it, and it is not there
    additional,  ///< it is there, and the manifest does not list it
    changed      ///< its bytes differ
  };
  What what = What::changed;           ///< how
  std::string file{};                  ///< relative to the folder
  std::string expected{};              ///< changed: the SHA-256 of the first entry that differs
  std::string found{};                 ///< changed: the SHA-256 of its bytes; empty if the file ends before them
  std::vector<std::string> ranges{};   ///< changed: the entries that differ, if they are ranges
  bool compared = false;               ///< changed: the manifest has digests of its tensors, and the file opens
  std::vector<std::string> tensors{};  ///< changed, if compared: tensors that differ, are missing or were added
};
std::string_view name(FileDifference::What) noexcept;  ///< "missing", "additional", "changed"

/// What verify_manifest() found.
struct ManifestVerdict {
  /// Errors and warnings: "manifest/signature", "manifest/changed", ... At most kMaxFindings.
  Report report{};
  SigningMethod method = SigningMethod::none;       ///< of the bundle
  SignatureState signature = SignatureState::none;  ///< what is known of it
  std::string signer{};     ///< the fingerprint of the key, or the subject of the certificate; empty: not known
  std::string unchecked{};  ///< why the signature was not checked; empty unless `signature` is unchecked
  Manifest manifest{};      ///< what the bundle lists
  std::vector<FileDifference> differences{};  ///< sorted by file; empty if the signature is invalid
  std::uint64_t files = 0;                    ///< that were compared
  std::uint64_t bytes = 0;                    ///< in these files
  std::uint64_t remembered = 0;  ///< of these files, those that were not read, because `state` has their digests
  bool valid() const noexcept { return report.valid(); }  ///< no error; a signature may be unchecked
};

/// [reads] Checks the signature of a bundle, then that a file or folder has exactly the files that it lists. If the
/// signature is invalid, no file is read. Throws Error{io}; Error{misuse} for an invalid key or roots;
/// Error{unsupported} for a digest that this build does not compute. The report says what is wrong with the bundle or
/// the files.
ManifestVerdict verify_manifest(const std::string& path, std::shared_ptr<const Source> bundle,
                                const ManifestCheck& = {}, const Context& = {});

/// How a file was made by a conversion: an in-toto statement with a SLSA provenance.
struct Statement {
  std::string name{};     ///< of the output
  Digest sha256{};        ///< of its bytes
  Digest content{};       ///< content_digest() of it
  std::string to{};       ///< the format of the output
  Digest source{};        ///< content_digest() of the source
  std::string program{};  ///< the version that made it
  /// The options that were given, by name and value, in their order.
  std::vector<std::pair<std::string, std::string>> options{};
  std::vector<std::pair<std::string, Digest>> files{};  ///< that options name, by option: their SHA-256
  bool operator==(const Statement&) const = default;
};
/// The statement as JSON. list_files() lists and write_manifest() signs it like any other file.
std::string write_statement(const Statement&);
/// The reverse. Throws Error with rule "manifest/statement".
Statement read_statement(std::string_view text, const Limits& = {});

}  // namespace weighbridge
