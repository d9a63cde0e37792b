// SPDX-License-Identifier: Apache-2.0
/// \file
/// KHLNARY v0.2 modules, which load tensors from STB files. Owns the 32-bit word (KNU), the module with its sidecar
/// NAME.khm.json, checking one, running one, its text form, and packing a model into one. Leaves STB itself to the
/// format of that name. Specification: stb-format.md v0.1 section 6; what it leaves open is told in
/// src/runtime/khlnary/README.md.
///
/// A module is a file of little-endian words. It can be run, never trusted: every word is decoded before the first one
/// runs, a run has a budget of steps, a limit of its stack and of its calls, and reaches no file but those that the
/// sidecar lists, beneath the sidecar's folder, links followed.
///
/// - **Errors.** What is wrong with a module, its sidecar or its files is Error{malformed} with a rule "khlnary/..."
///   and the byte offset of the word (module_rules() lists them), or one of "stb/sidecar-..." with an offset in the
///   sidecar. The machine's failures stay Error{io}, the caller's Error{misuse}.
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
inline constexpr std::uint8_t kImm = 1;           ///< flag IMM: the payload is a value of its own
inline constexpr std::uint8_t kBinRef = 2;        ///< flag BIN_REF: the payload names a file of the sidecar
inline constexpr std::uint8_t kShapeDesc = 4;     ///< flag: SHAPE_DESC, which a LOAD may have
inline constexpr std::uint8_t kMaxAuthority = 7;  ///< the highest class of words

/// One kind of instruction. A word of it has an arity within the two bounds, all of `flags`, and none but those and
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
  /// What the payload says. tensor: file in the high nibble, tensor in the low one.
  enum class Payload : std::uint8_t { nothing, constant, offset, function, tensor, file };

  Id id;                        ///< 8 bits of the word
  std::string_view name;        ///< "LOAD_BIN_TENSOR"
  std::uint8_t least_arity;     ///< lower bound of the word's arity
  std::uint8_t most_arity;      ///< upper bound
  std::uint8_t flags;           ///< that a word must have
  std::uint8_t optional_flags;  ///< that it may have besides
  Payload payload;              ///< what the payload says
};

std::span<const Glyph> glyphs() noexcept;  ///< every kind, by its id
/// Null where there is none.
const Glyph* find_glyph(std::uint8_t id) noexcept;
const Glyph* find_glyph(std::string_view name) noexcept;  ///< by its name, likewise

/// The fields of a word: version 4 bits, glyph 8, arity 4, flags 4, payload 8, authority 3, and the parity of all these
/// in bit 0.
struct Word {
  std::uint8_t version = kVersion;  ///< 4 bits
  std::uint8_t glyph = 0;           ///< 8 bits, Glyph::Id
  std::uint8_t arity = 0;           ///< 4 bits
  std::uint8_t flags = 0;           ///< 4 bits: kImm, kBinRef, kShapeDesc
  std::uint8_t payload = 0;         ///< 8 bits
  std::uint8_t authority = 1;       ///< 3 bits
  bool operator==(const Word&) const = default;
};
/// Of any fields, with its parity. Misuse: one that does not fit its bits.
std::uint32_t encode(const Word&);
/// Of any word; parity is not looked at.
Word fields(std::uint32_t word) noexcept;
/// What is wrong with a word that stands at this byte offset, for a context of this authority; the first of version,
/// parity, glyph, BIN_REF, arity, flags, authority.
std::optional<Finding> check(std::uint32_t word, unsigned authority = kMaxAuthority, std::uint64_t offset = 0);
/// The fields of a word that check() finds nothing wrong with, else Error.
Word decode(std::uint32_t word, unsigned authority = kMaxAuthority);

// ---- the module's text ----

/// One line a word, "NAME", "CONST_I8 -5", "LOAD_BIN_TENSOR file=0 tensor=3 shape_desc", with " authority=3" when it is
/// not 1 and " payload=7" where the glyph has no use for one; ".word 0x01234567 ; reason" for what is no valid word.
/// assemble() gives exactly these words back.
std::string disassemble(std::span<const std::uint32_t> words);
std::string disassemble(std::uint32_t word);  ///< one line, without its end
/// Throws Error "khlnary/syntax", with the line, and the offset in the text.
std::vector<std::uint32_t> assemble(std::string_view text);
/// The words of a file, sound or not. Throws Error "khlnary/truncated". [reads]
std::vector<std::uint32_t> words_of(const Source&, const Context& = {});
/// The module as it is stored.
std::string stored(std::span<const std::uint32_t> words);

// ---- a module ----

/// A module and its sidecar, read and not yet run. A copy is one reference count.
class Module {
 public:
  /// Reads the words and the sidecar. A null sidecar: NAME.khm.json beside the module if there is one, else the module
  /// has no files and no functions. Checks that the file is whole words and the sidecar keeps its schema; the words
  /// themselves are run()'s and verify()'s. Throws Error.
  static Module open(const std::shared_ptr<const Source>& module, std::shared_ptr<const Source> sidecar = {},
                     const Context& = {});

  std::span<const std::uint32_t> words() const& noexcept;  ///< all of them, sound or not
  const Source& source() const& noexcept;                  ///< of the words
  const Source* sidecar() const& noexcept;                 ///< null: there is none

  struct Rep;                                        ///< for the library's own use
  const Rep& rep() const noexcept { return *rep_; }  ///< for the library's own use

 private:
  std::shared_ptr<const Rep> rep_;
};

/// Everything that can be known without running: each word, jump target, function and file of the sidecar, tensor that
/// is loaded, and each path through a function to its FUNC_END. Findings in the order of the module's words, then of
/// the sidecar's tables. Stricter than run(), which minds only what it comes to. `authority` as in RunOptions. Throws
/// Error{io}, Error{misuse}.
Report verify(const std::shared_ptr<const Source>& module, std::shared_ptr<const Source> sidecar = {},
              unsigned authority = kMaxAuthority, const Context& = {});

// ---- running ----

/// What stands on the stack. A handle can be passed and returned, not computed with.
struct Cell {
  /// A number, or a handle of what was loaded or mapped.
  enum class Kind : std::uint8_t { integer, tensor, region };
  Kind kind = Kind::integer;  ///< which of the members below count
  std::int32_t integer = 0;   ///< of an integer
  std::uint8_t file = 0;      ///< of a handle: id in the sidecar
  std::uint8_t tensor = 0;    ///< of a tensor: id in its file
  bool operator==(const Cell&) const = default;
};
std::string_view name(Cell::Kind) noexcept;  ///< "integer", "tensor", "region"
/// "-5", "tensor 0/3" (file, id), "region 2".
std::string to_text(const Cell&);

/// What a trace is told, before each word runs.
struct Step {
  std::uint64_t index;          ///< of the word, from the module's start
  std::uint32_t word;           ///< as stored
  std::span<const Cell> stack;  ///< as the word finds it, its top last
};

/// The bounds of a run.
struct RunOptions {
  unsigned authority = kMaxAuthority;        ///< 1 to 7: words of a higher class are refused
  std::uint64_t max_steps = 1'000'000;       ///< words that may run
  std::uint64_t max_stack = 1024;            ///< cells
  std::uint64_t max_calls = 1024;            ///< calls within calls
  std::function<void(const Step&)> trace{};  ///< told of each word
};

/// A tensor that the run loaded. Model and Tensor live as long as this does, whatever becomes of the module.
struct Loaded {
  std::uint8_t file = 0;    ///< id in the sidecar
  std::uint8_t id = 0;      ///< of the tensor in its file
  std::string path;         ///< of the file, as the sidecar has it
  std::uint64_t times = 1;  ///< how often the run loaded it
  Model model;              ///< the whole file
  Tensor tensor;            ///< may be one whose elements or shape cannot be had: unsupported() says so
};

/// A file that the run mapped. `bytes` is empty where the source cannot map; the Model's source has them then.
struct Region {
  std::uint8_t file = 0;  ///< id in the sidecar
  std::string path;       ///< as the sidecar has it
  Bytes bytes;            ///< the whole file
};

/// What a run left behind.
struct Result {
  std::optional<Cell> value;    ///< the top of the stack
  std::vector<Cell> stack;      ///< all of it as the run left it, its top last
  std::vector<Loaded> loaded;   ///< each tensor once, in the order of their first loading
  std::vector<Region> regions;  ///< likewise
  std::uint64_t steps = 0;      ///< words that ran
};

/// Reads the STB files that the run comes to, each once, and no payload. Tells `progress` the steps now and then.
Result run(const Module&, const RunOptions& = {}, const Context& = {});

/// The first elements in row-major order, at most `most`; none where the elements cannot be had. [reads]
std::vector<Value> first_values(const Tensor&, std::size_t most, const Context& = {});

// ---- packing ----

inline constexpr std::uint32_t kTensorsPerFile = 16;  ///< a LOAD names its tensor in four bits
inline constexpr std::uint32_t kMaxPackedFiles = 16;  ///< and its file in four more

/// How pack() writes.
struct PackOptions {
  DType cast = DType::unknown;         ///< as Options::cast
  std::vector<LossKind> allow{};       ///< losses of tensors, as Options::allow
  bool replace = false;                ///< files of an earlier packing
  std::vector<std::string> without{};  ///< globs of tensors to leave out, as ViewOptions::without
};

/// What pack() wrote.
struct Packed {
  std::string module;                 ///< path of NAME.knu
  std::string sidecar;                ///< path of NAME.khm.json
  std::vector<std::string> files;     ///< paths of the STB files
  std::uint32_t tensors = 0;          ///< packed
  std::uint64_t bytes = 0;            ///< of the STB files
  std::vector<std::string> left_out;  ///< what of the model is not in the module: attributes, tokenizer, tensors
};

/// Writes NAME.knu, NAME.khm.json and as many NAME-K.stb of at most 16 tensors as it takes into a folder, which is made
/// where it is absent. The module loads each tensor, in the model's order, and returns the last handle. Every STB file
/// is written, read back and published as a conversion is; sidecar and module come last. Waits while another run
/// publishes into the folder: a minute, then Error{io}. Error{misuse}: a file is there already. Error{malformed}
/// "khlnary/pack-...": too many tensors, or one that STB cannot hold. [reads]
Packed pack(const Model&, const std::string& folder, const std::string& name, const PackOptions& = {},
            const Context& = {});

// ---- for people and programs ----

std::span<const Rule> module_rules() noexcept;  ///< Every "khlnary/..." rule.

/// The results as JSON, by docs/schemas/khlnary.json; `trace` is a JSON array or empty.
std::string to_json(std::string_view path, const Module&, const Result&, std::size_t first_values,
                    std::string_view trace = {}, const Context& = {});
std::string to_json(const Step&);                           ///< One line of a trace.
std::string to_json(std::string_view path, const Packed&);  ///< What pack() wrote of the model at `path`.
/// assemble and disassemble; an empty output: `text` is in the object itself.
std::string to_json(std::string_view path, std::string_view action, std::uint64_t words, std::string_view output,
                    std::string_view text = {});

}  // namespace weighbridge::khlnary
