// SPDX-License-Identifier: Apache-2.0
/// \file
/// Converts any model to any container. plan() tells what a conversion would do before a byte is written: the writer's
/// layout function makes the Plan from metadata alone. Plan::execute() writes exactly that, reads it back and compares.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/dtype.h"
#include "weighbridge/error.h"
#include "weighbridge/model.h"

namespace weighbridge {

/// What an Item is about. The same kinds serve all three lists of a Plan:
/// - a blocker: the target cannot hold it, whatever the options.
/// - a loss: a reader of the output cannot get it back. Needs its kind in Options::allow, unless the kind is `file`.
/// - a change: recomputed or encoded in another way without loss (digest, row-major, little-endian, decompressed).
///   Listed; never blocks.
enum class LossKind : std::uint8_t {
  attribute,       ///< a metadata value
  attribute_type,  ///< its type; the value remains as text
  extra,           ///< unknown keys, and digests of parts
  tokenizer,       ///< the vocabulary
  name,            ///< of a tensor
  shape,           ///< of a tensor
  layout,          ///< how elements are stored: sparse, quantized, strided, compressed, in which byte order
  dtype,           ///< the type of elements
  precision,       ///< their values, rounded
  alias,           ///< the fact that two tensors share their bytes
  unsupported,     ///< elements that this build cannot interpret: the tensor is left out
  overflow,        ///< values beyond the range of the dtype that they are cast to, found while writing
  file,            ///< something beside the weights: a file of a folder, the graph of an ONNX model. Needs no consent
  part,            ///< files of the model that are missing, or were not given: the input is only a part of a model
  requantize       ///< values of blocks, rounded once more to blocks of another type
};
inline constexpr std::size_t kLossKindCount = 15;                        ///< enumerators of LossKind
std::string_view name(LossKind) noexcept;                                ///< "attribute", "attribute-type", ...
std::optional<LossKind> loss_kind_from_name(std::string_view) noexcept;  ///< as name() spells it

/// One thing that a conversion cannot carry over unchanged.
struct Item {
  LossKind kind;        ///< of the consent that it needs, if it is a loss
  std::string subject;  ///< tensors["w"].parts["data"], attributes["k"]
  std::string from;     ///< what it is; lower case, no full stop
  std::string to;       ///< what it becomes, likewise
  bool operator==(const Item&) const = default;
};

/// Options for .slm only.
struct SlmOptions {
  bool quantize_norms = false;  ///< with Options::quantize: quantize norms too
  bool keep_gqa = false;        ///< keep fewer key and value heads than query heads, padded with zero rows (reading M8)
  bool operator==(const SlmOptions&) const = default;
};

/// Options for zTensor 0.1 only.
struct Zt0Options {
  bool omit_layout_field = false;  ///< write entries without the field `layout`, as in the text of 0.1
  bool operator==(const Zt0Options&) const = default;
};

/// Options for zTensor 1.x only.
struct ZtOptions {
  /// "csr" or "coo": write tensors as sparse that fit, without loss: an element is left out only if all of its bits are
  /// zero. "csr" takes those of rank 2, "coo" of any rank but 0; a sparse tensor of the other layout changes to this
  /// one. Not with Options::cast. plan() then reads the tensors, to count. Empty: tensors keep their layout
  std::string sparse{};
  /// with `sparse`: the largest share of elements that are not zero, above 0 and at most 1. 0: a tensor becomes sparse
  /// where it then takes fewer bytes
  double sparse_density = 0;
  bool operator==(const ZtOptions&) const = default;
};

/// Options for EMBD and Hugging Face folders: metadata to set, in place of the source's if it has any.
struct MetadataOptions {
  std::string created_at{};     ///< an ISO 8601 time; in all three, empty: not set
  std::string model_name{};     ///< UTF-8
  std::string model_version{};  ///< UTF-8
  bool operator==(const MetadataOptions&) const = default;
};

/// Options for GGUF only.
struct GgufOptions {
  /// "llama": a Llama or a BERT gets the names, the metadata and the vocabulary of llama.cpp, which then opens and runs
  /// it; vectors become f32. Rows of queries and keys of a model of Hugging Face change places:
  /// docs/gguf.md. Empty: names and metadata as they are
  std::string naming{};
  /// With Options::quantize: PATTERN=TYPE for tensors that the mix would give another type. The pattern is a regular
  /// expression that is found in the name; the first that fits decides
  std::vector<std::string> tensor_type{};
  std::string output_tensor_type{};    ///< likewise: the type of output.weight; empty: that of the mix
  std::string token_embedding_type{};  ///< likewise: of the embeddings
  bool pure = false;                   ///< likewise: one type for all, without the mix's exceptions
  /// likewise: an importance matrix of llama-imatrix, in either of its forms. set() takes a path and opens it
  std::shared_ptr<const Source> imatrix{};
  /// likewise: the bytes of GGML where these are a defect: empty groups of iq3_s move the codes behind them
  bool as_ggml = false;
  /// likewise: the bytes of builds of GGML that contract multiplications and additions, as GCC 12 does for processors
  /// with FMA. derive_again() tries it; it is not an option of the command
  bool contracted = false;
  bool no_tokenizer = false;  ///< with `naming`: no tokenizer, which also accepts this loss; llama.cpp then takes ids
  /// with `naming`: settings of config.json, by their keys, that may change the result and have no key in GGUF; their
  /// loss is listed. All others of that kind are blockers
  std::vector<std::string> ignore_settings{};
  bool operator==(const GgufOptions&) const = default;
};

/// Options for ONNX only.
struct OnnxOptions {
  /// The ONNX model to copy. The output keeps its graph, and the input's tensors replace those with the same names,
  /// which must have the same types and shapes. Required, because an output needs a graph. set() takes a path and opens
  /// it
  std::shared_ptr<const Source> into{};
  bool operator==(const OnnxOptions&) const = default;
};

/// Options for safetensors, GGUF, zTensor 2 and Hugging Face folders: how the tensors are divided among files.
struct ShardOptions {
  /// The maximum number of tensor bytes in one file; a larger tensor gets a file of its own. The output is then a
  /// folder, with files named as huggingface_hub names them: model-00001-of-00005 and so on, beside the index or the
  /// root that the format has. 0: one file.
  std::uint64_t max_size = 0;
  bool operator==(const ShardOptions&) const = default;
};

/// Options for safetensors, GGUF and Hugging Face folders: the header.
struct HeaderOptions {
  /// Bytes to leave free in the header of each file, so that later edits fit in place: edit.h
  std::uint64_t reserve = 0;
  bool operator==(const HeaderOptions&) const = default;
};

/// The options of a conversion, and the losses that the caller accepts. Options for one container only are in a struct
/// of their own, and are Error{misuse} for another target: `plan(model, "slm", {.quantize = "q8_0", .slm = {.keep_gqa =
/// true}})`.
struct Options {
  std::vector<LossKind> allow{};  ///< losses to accept
  /// cast every floating-point tensor to this dtype; this also accepts the dtype and precision loss, not overflow
  DType cast = DType::unknown;
  /// cast every tensor of integers to this dtype, one of whole bytes; a number that does not fit is Error{misuse}
  DType cast_int = DType::unknown;
  /// a quantization of the target; also accepts that loss. For GGUF, a type or a mix of types by the names of
  /// llama-quantize: "q8_0", "q4_k_m"
  std::string quantize{};
  /// f32, f16 or bf16: quantized tensors become dense tensors of this dtype, also where the target could keep them;
  /// this also accepts the loss of their layout and precision, not overflow. unknown: each of the dtype to which the
  /// library that made it decodes it, with the bits of that library. nullopt: they stay quantized. Other tensors stay
  /// what they are, or are `cast`. Not with `quantize`
  std::optional<DType> dequantize{};
  std::string encoding{};  ///< "raw", "zstd", "deflate", "zstd-seekable" (zstd in frames: what "zstd" means for zTensor
                           ///< 2); empty: raw, or as stored when source and target are the same container
  int level = 0;           ///< of the encoding; 0: its default
  /// "none", "sha256", "crc32c", "xxh3"; empty: none (zTensor 2: xxh3), or as stored if the stored bytes are copied
  /// verbatim
  std::string digest{};
  /// of the target container ("1.2" for zt); empty: the source's if it fits, else the default
  std::string version{};
  /// Make the output depend on the content alone: the tensors, the metadata and the tokenizer, in an order of their
  /// own. Equal content then gives equal bytes, whatever container held it: docs/recipes.md
  bool canonical = false;
  /// For an adapter of peft that becomes a GGUF, and back: config.json of its base model, by which llama.cpp's names
  /// are found. set() takes its path, or that of its folder, and opens it
  std::shared_ptr<const Source> base{};
  bool replace = false;        ///< replace an output that exists
  SlmOptions slm{};            ///< for .slm
  ZtOptions zt{};              ///< for zTensor 1.x
  Zt0Options zt0{};            ///< for zTensor 0.1
  MetadataOptions metadata{};  ///< for EMBD and Hugging Face folders
  GgufOptions gguf{};          ///< for GGUF
  OnnxOptions onnx{};          ///< for ONNX
  ShardOptions shards{};       ///< for safetensors, GGUF, zTensor 2 and Hugging Face folders
  HeaderOptions header{};      ///< likewise

  /// The highest `level`. Above it, one encoder takes more memory than a whole job may.
  static constexpr int kHighestLevel = 19;
  /// Sets an option of OptionOf::convert (options.h) from its name and its value as text. "allow" adds to the kinds
  /// that are set. Error{misuse}: an unknown option, or an invalid value; the message names the valid ones. [reads] for
  /// "into", which opens a file.
  void set(std::string_view option, std::string_view text);
  /// The values that set() takes for an option, for all containers together. Empty if the option takes other texts or
  /// is unknown.
  static std::vector<std::string_view> words(std::string_view option);
};

/// The tensors of one type in an output.
struct OutputType {
  std::string name;            ///< of the type: "q4_k", "f32"; "in all" for all together
  std::uint64_t tensors = 0;   ///< of this type
  std::uint64_t elements = 0;  ///< in them
  std::uint64_t size = 0;      ///< in bytes, before an encoding
  /// Bits per element: those of blocks with their scales.
  double bits() const { return elements == 0 ? 0 : 8 * static_cast<double>(size) / static_cast<double>(elements); }
};
/// What casting the tensors of one dtype to another did to their values.
struct Cast {
  DType from = DType::unknown;   ///< of the input
  DType to = DType::unknown;     ///< of the output
  std::uint32_t tensors = 0;     ///< that were cast
  std::uint64_t values = 0;      ///< in them
  std::uint64_t overflowed = 0;  ///< beyond the range of `to`: infinite, NaN or the largest value, as `to` has it
  std::uint64_t flushed = 0;     ///< not zero before, and zero now
  double largest_error = 0;      ///< the largest absolute difference of a finite value that did not overflow
};
/// What was found while an output was written.
struct Written {
  std::uint64_t size = 0;     ///< bytes of the output, of all files together if it is a folder
  std::vector<Cast> casts{};  ///< by dtypes, in the order of the output; lossless ones too
  /// Plan::unconsented(), all of LossKind::file: whoever calls save() has to show them
  std::vector<Item> losses{};
  std::vector<TimedStep> steps{};  ///< that ran, in their order; those of several files together
};

namespace convert {
struct PlanRep;
class PlanMaker;
}  // namespace convert

/// What a conversion would do. Immutable: execute() does exactly what the plan says. Copying one costs a reference
/// count, and what the members refer to lives as long as any copy.
class Plan {
 public:
  Plan() noexcept = default;  ///< empty: execute() throws Error{misuse}

  const std::vector<Item>& blockers() const& noexcept;         ///< no option helps
  const std::vector<Item>& losses() const& noexcept;           ///< a reader of the output cannot get it back
  const std::vector<Item>& changes() const& noexcept;          ///< recomputed or encoded in another way, without loss
  const Options& options() const& noexcept;                    ///< as given to plan()
  std::vector<Item> blockers() const&& { return blockers(); }  ///< of a temporary: a copy
  std::vector<Item> losses() const&& { return losses(); }      ///< likewise
  std::vector<Item> changes() const&& { return changes(); }    ///< likewise
  Options options() const&& { return options(); }              ///< likewise
  /// Bytes of the output, of all files together if it is a folder. Exact, or an upper bound if output_size_exact() is
  /// false.
  std::uint64_t output_size() const noexcept;
  bool output_size_exact() const noexcept;      ///< false only with an encoding
  std::uint64_t payload_size() const noexcept;  ///< logical bytes to convert
  std::uint32_t tensors() const noexcept;       ///< to be written
  std::uint64_t files() const noexcept;         ///< that hold the tensors: more than one if they are shards
  std::vector<OutputType> types() const;        ///< of the tensors to be written, in their order; the last is "in all"
  std::string_view from() const noexcept;       ///< name of the source's format
  std::string_view to() const noexcept;         ///< name of the target's

  /// The losses that options() neither allow nor ask for.
  std::vector<Item> unconsented() const;
  /// Those of them that need consent: all but those of LossKind::file.
  std::vector<Item> refused() const;
  bool possible() const { return blockers().empty() && refused().empty(); }  ///< execute() would start
  /// [reads] Throws what execute() would throw about `path` and the limits before it writes. Changes nothing.
  void check_output(const std::string& path, const Limits& = {}) const;
  /// [reads] Writes a temporary beside `path`, syncs it, reads it back and compares, renames it, and syncs the folder.
  /// Throws Error{misuse} if !possible(), if `path` exists without options().replace, or if `path` is the input,
  /// through any link. Throws Error with rule "convert/overflow" and publishes nothing if a cast overflows and
  /// LossKind::overflow is not allowed.
  Written execute(const std::string& path, const Context& = {}) const;

 private:
  friend class convert::PlanMaker;
  std::shared_ptr<const convert::PlanRep> rep_;
};

/// What converting to `format` would do. Error{misuse}: an unknown format, a read-only one, options that it lacks.
/// Reads no payload except `embeddings.position_ids` for EMBD (reading E14), what describes the layers of a
/// quantization scheme (for GGUF, their scales), and all with ZtOptions::sparse; there it may throw the same errors as
/// members marked [reads], and uses the context.
Plan plan(const Model&, std::string_view format, const Options& = {}, const Context& = {});
/// The name of the format that save() writes to this path. Throws Error{misuse} if no format is written to such files.
std::string_view format_of_output(const std::string& path);
/// [reads] plan() and Plan::execute(), with the format of the path's extension. A path that ends in / means a Hugging
/// Face folder.
Written save(const Model&, const std::string& path, const Options& = {}, const Context& = {});

/// A new file in the container of `target`, which must support appending, with the tensors of `more` after its own. The
/// old bytes are shared or copied, never rewritten. A name that both have is a blocker. Error{misuse} with
/// Options::canonical, since the old bytes stay as they are. The context is that of plan().
Plan plan_append(const Model& target, const Model& more, const Options& = {}, const Context& = {});

}  // namespace weighbridge
