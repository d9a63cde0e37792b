// SPDX-License-Identifier: Apache-2.0
/// \file
/// KHLNARY v0.2 modules, which load tensors from STB files. Owns the 32-bit word (KNU), the module with its sidecar
/// NAME.khm.json, its text form, and the functions that check, run and pack modules. Specification: stb-format.md v0.1
/// section 6; src/runtime/khlnary/README.md says how its gaps are read.
///
/// A module is a file of little-endian words. It is untrusted: every word is decoded before the first one runs; a run
/// has limits on steps, stack and calls, and opens only files that the sidecar lists and that lie beneath the sidecar's
/// folder after links are resolved.
///
/// - **Errors.** An invalid module, sidecar or file is Error{malformed} with a rule "khlnary/..." (module_rules() lists
///   them) and the byte offset of the word, or with a rule "stb/sidecar-..." and an offset in the sidecar. Failures of
///   the system are Error{io}, those of the caller Error{misuse}.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/error.h"
#include "weighbridge/formats.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"
#include "weighbridge/value.h"

namespace weighbridge::khlnary {

// ---- words ----

inline constexpr std::uint8_t kVersion = 2;       ///< of a word
inline constexpr std::uint8_t kImm = 1;           ///< flag IMM: the payload is an immediate value
inline constexpr std::uint8_t kBinRef = 2;        ///< flag BIN_REF: the payload names a file of the sidecar
inline constexpr std::uint8_t kShapeDesc = 4;     ///< flag SHAPE_DESC: optional for LOAD_BIN_TENSOR
inline constexpr std::uint8_t kMaxAuthority = 7;  ///< the highest authority class of a word

/// One kind of instruction. Its words have an arity within the two bounds, all of `flags`, and no others except
/// `optional_flags`.
struct Glyph {
  /// The number in the word.
  enum class Id : std::uint8_t {
    nop = 0x00,
    const_i8 = 0x01,
    add_i32 = 0x02,
    ret = 0x03,
    ifz_jump8 = 0x10,
    jump8 = 0x11,
    while_head = 0x12,
    while_tail = 0x13,
    func_def = 0x20,
    func_end = 0x21,
    call = 0x22,
    load_bin_tensor = 0x30,
    mmap_bin_region = 0x31,
    prefetch_bin = 0x32,
  };
  /// The meaning of the payload. `tensor` has the file in the high four bits and the tensor in the low ones.
  enum class Payload : std::uint8_t { nothing, constant, offset, function, tensor, file };

  Id id;                        ///< 8 bits of the word
  std::string_view name;        ///< "LOAD_BIN_TENSOR"
  std::uint8_t min_arity;       ///< lower bound of the word's arity
  std::uint8_t max_arity;       ///< upper bound
  std::uint8_t flags;           ///< required in a word
  std::uint8_t optional_flags;  ///< allowed in addition
  Payload payload;              ///< meaning of the payload
};

std::span<const Glyph> glyphs() noexcept;  ///< every kind, in order of id
/// The kind with this id; null if there is none.
const Glyph* find_glyph(std::uint8_t id) noexcept;
const Glyph* find_glyph(std::string_view name) noexcept;  ///< the kind with this name, likewise

/// The fields of a word, from the highest bits down; bit 0 is the parity of them all.
struct Word {
  std::uint8_t version = kVersion;  ///< 4 bits
  std::uint8_t glyph = 0;           ///< 8 bits, Glyph::Id
  std::uint8_t arity = 0;           ///< 4 bits
  std::uint8_t flags = 0;           ///< 4 bits: kImm, kBinRef, kShapeDesc
  std::uint8_t payload = 0;         ///< 8 bits
  std::uint8_t authority = 1;       ///< 3 bits
  bool operator==(const Word&) const = default;
};
/// The word with these fields and its parity. Error{misuse} if a field does not fit its bits.
std::uint32_t encode(const Word&);
/// The fields of any word; does not check parity.
Word fields(std::uint32_t word) noexcept;
/// The first thing wrong with a word, checked in the order version, parity, glyph, BIN_REF, arity, flags, authority.
/// `authority` is the highest class allowed, `offset` the word's byte offset for the finding.
std::optional<Finding> check(std::uint32_t word, unsigned authority = kMaxAuthority, std::uint64_t offset = 0);
/// The fields of a valid word; throws what check() finds as Error.
Word decode(std::uint32_t word, unsigned authority = kMaxAuthority);

// ---- the module's text ----

/// One line per word: "NAME", "CONST_I8 -5", "LOAD_BIN_TENSOR file=0 tensor=3 shape_desc", with " authority=3" if it is
/// not 1 and " payload=7" if the glyph does not use one. An invalid word becomes ".word 0x01234567 ; reason".
/// assemble() restores exactly these words.
std::string disassemble(std::span<const std::uint32_t> words);
std::string disassemble(std::uint32_t word);  ///< one line, without a newline
/// The words of a text. Throws Error "khlnary/syntax" with the line and its offset in the text.
std::vector<std::uint32_t> assemble(std::string_view text);
/// [reads] The words of a file, valid or not. Throws Error "khlnary/truncated".
std::vector<std::uint32_t> words_of(const Source&, const Context& = {});
/// The bytes of a module file.
std::string stored(std::span<const std::uint32_t> words);

// ---- a module ----

/// A module and its sidecar, read but not run. Copying one costs a reference count.
class Module {
 public:
  /// Reads the words and the sidecar. If `sidecar` is null, takes NAME.khm.json beside the module; without one, the
  /// module has no files and no functions. Checks that the file consists of whole words and that the sidecar follows
  /// its schema; run() and verify() check the words. Throws Error.
  static Module open(const std::shared_ptr<const Source>& module, std::shared_ptr<const Source> sidecar = {},
                     const Context& = {});

  std::span<const std::uint32_t> words() const& noexcept;  ///< all of them, valid or not
  const Source& source() const& noexcept;                  ///< of the words
  const Source* sidecar() const& noexcept;                 ///< null if there is none

  struct Rep;                                        ///< for the library's own use
  const Rep& rep() const noexcept { return *rep_; }  ///< for the library's own use

 private:
  std::shared_ptr<const Rep> rep_;
};

/// Checks everything that can be checked without running: each word, jump target, function and file of the sidecar,
/// loaded tensor, and each path through a function to its FUNC_END. Findings follow the order of the module's words,
/// then of the sidecar's tables. Stricter than run(), which checks only what it reaches. `authority` is as in
/// RunOptions. Throws Error{io} and Error{misuse}.
Report verify(const std::shared_ptr<const Source>& module, std::shared_ptr<const Source> sidecar = {},
              unsigned authority = kMaxAuthority, const Context& = {});

// ---- running ----

/// A value on the stack. A handle can be passed and returned, but not computed with.
struct Cell {
  /// A number, a handle of a loaded tensor, or a handle of a mapped file.
  enum class Kind : std::uint8_t { integer, tensor, region };
  Kind kind = Kind::integer;  ///< tells which members below apply
  std::int32_t integer = 0;   ///< of an integer
  std::uint8_t file = 0;      ///< of a handle: id in the sidecar
  std::uint8_t tensor = 0;    ///< of a tensor: id in its file
  bool operator==(const Cell&) const = default;
};
std::string_view name(Cell::Kind) noexcept;  ///< "integer", "tensor", "region"
/// "-5", "tensor 0/3" (file, id), "region 2".
std::string to_text(const Cell&);

/// What a trace receives before each word runs.
struct Step {
  std::uint64_t index;          ///< of the word, from the module's start
  std::uint32_t word;           ///< as stored
  std::span<const Cell> stack;  ///< before the word runs, the top last
};

/// The bounds of a run.
struct RunOptions {
  unsigned authority = kMaxAuthority;        ///< 1 to 7; words of a higher class are refused
  std::uint64_t max_steps = 1'000'000;       ///< words that may run
  std::uint64_t max_stack = 1024;            ///< cells
  std::uint64_t max_calls = 1024;            ///< depth of nested calls
  std::function<void(const Step&)> trace{};  ///< called before each word
};

/// A tensor that the run loaded. Model and Tensor stay valid without the module.
struct Loaded {
  std::uint8_t file = 0;    ///< id in the sidecar
  std::uint8_t id = 0;      ///< of the tensor in its file
  std::string path;         ///< path of the file, as in the sidecar
  std::uint64_t times = 1;  ///< how often the run loaded it
  Model model;              ///< the whole file
  Tensor tensor;            ///< its elements or shape may be unsupported: see unsupported()
};

/// A file that the run mapped. `bytes` is empty if the source cannot map; read the Model's source then.
struct Region {
  std::uint8_t file = 0;  ///< id in the sidecar
  std::string path;       ///< as in the sidecar
  Bytes bytes;            ///< the whole file
};

/// The result of a run.
struct Result {
  std::optional<Cell> value;    ///< the top of the stack
  std::vector<Cell> stack;      ///< the whole stack at the end, the top last
  std::vector<Loaded> loaded;   ///< each tensor once, in the order first loaded
  std::vector<Region> regions;  ///< likewise
  std::uint64_t steps = 0;      ///< words that ran
};

/// [reads] Runs a module. Opens each STB file that it reaches once, and reads no payload. Reports steps to `progress`
/// from time to time.
Result run(const Module&, const RunOptions& = {}, const Context& = {});

/// [reads] The first elements in row-major order, at most `maximum`; none if the elements cannot be read.
std::vector<Value> first_values(const Tensor&, std::size_t maximum, const Context& = {});

// ---- packing ----

inline constexpr std::uint32_t kTensorsPerFile = 16;  ///< LOAD_BIN_TENSOR has four bits for the tensor
inline constexpr std::uint32_t kMaxPackedFiles = 16;  ///< and four for the file

/// How pack() writes.
struct PackOptions {
  DType cast = DType::unknown;         ///< as Options::cast
  std::vector<LossKind> allow{};       ///< losses to accept, as Options::allow
  bool replace = false;                ///< replace existing files
  std::vector<std::string> without{};  ///< globs of tensors to leave out, as ViewOptions::without
};

/// What pack() wrote.
struct Packed {
  std::string module;                 ///< path of NAME.knu
  std::string sidecar;                ///< path of NAME.khm.json
  std::vector<std::string> files;     ///< paths of the STB files
  std::uint32_t tensors = 0;          ///< packed
  std::uint64_t bytes = 0;            ///< of the STB files
  std::vector<std::string> left_out;  ///< parts of the model not in the module: attributes, tokenizer, tensors
};

/// [reads] Writes NAME.knu, NAME.khm.json and as many NAME-K.stb as needed, of at most 16 tensors each, to a folder,
/// which it creates if needed. The module loads each tensor in the model's order and returns the last handle. Each STB
/// file is written, read back and published like a conversion; sidecar and module come last. If another process
/// publishes to the folder, waits up to ten seconds, then throws Error{io}. Throws Error{misuse} if a file exists, and
/// Error{malformed} "khlnary/pack-..." for too many tensors or one that STB cannot hold.
Packed pack(const Model&, const std::string& folder, const std::string& name, const PackOptions& = {},
            const Context& = {});

// ---- for people and programs ----

std::span<const Rule> module_rules() noexcept;  ///< Every "khlnary/..." rule.

/// The result of a run as JSON (docs/schemas/khlnary.json); `trace` is a JSON array or empty.
std::string to_json(std::string_view path, const Module&, const Result&, std::size_t first_values,
                    std::string_view trace = {}, const Context& = {});
std::string to_json(const Step&);                           ///< One line of a trace.
std::string to_json(std::string_view path, const Packed&);  ///< What pack() wrote for the model at `path`.
/// For assemble and disassemble. If `output` is empty, the object holds `text` itself.
std::string to_json(std::string_view path, std::string_view action, std::uint64_t words, std::string_view output,
                    std::string_view text = {});

}  // namespace weighbridge::khlnary
