// SPDX-License-Identifier: Apache-2.0
/// \file
/// Opens a path, a source or a place as a Model. Opening reads and checks the header; payload is read later, on
/// request.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/error.h"
#include "weighbridge/model.h"
#include "weighbridge/place.h"
#include "weighbridge/source.h"

namespace weighbridge {

/// The forms of a checksum of .slm that this build knows, by name, the default first. The specification leaves open how
/// the index of a byte enters (reading M1, src/formats/slm/README.md).
std::vector<std::string_view> checksum_forms();

/// How to read a file.
struct OpenOptions {
  /// Name of the format. Empty: detected by content, else by extension.
  std::string format{};
  Access access = Access::positional;  ///< for the file that `path` names
  Checks checks = Checks::all;         ///< `structure` skips checks that read payload
  /// The sidecar of a container that has one (STB: NAME.khm.json). Null: the one beside the file, if any.
  std::shared_ptr<const Source> sidecar{};
  /// The tokenizer file of a container that keeps its tokenizer in one (FormatInfo::tokenizer_file). Null: the one
  /// beside the file, if any (llama2c: NAME.tokenizer). Error{misuse} for other containers.
  std::shared_ptr<const Source> tokenizer{};
  /// One of checksum_forms(), for a .slm; other containers ignore it. Empty: the default. A file whose checksum has
  /// another form is invalid.
  std::string checksum_form{};
  /// Lists a model although tensors are missing: its index and its files disagree, or external data is not there. Such
  /// a tensor has an error as its reason (Tensor::unsupported()), which the report has too; the rest can be read. Only
  /// for looking at a model.
  bool list_incomplete = false;
  /// "GLOB=DTYPE": the elements of the tensors whose names match are of this dtype, whatever the file says of them. It
  /// has the size of theirs. Error{misuse}: nothing matches, or a tensor has no elements of that size.
  std::vector<std::string> read_as{};
  /// "NAME" or "NAME:KEY=VALUE,...": what the file leaves open of a quantization scheme, such as "gptq:zeros=v1" or
  /// "fp8:block=128x128"; it counts before what a config says. Error{misuse}: no scheme has this name or this question.
  std::vector<std::string> scheme{};

  /// [reads] Sets an option of OptionOf::open (options.h) from its name and its value as text; "sidecar" and
  /// "tokenizer" open a file. Error{misuse}: an unknown option, or an invalid value; the message names the valid ones.
  void set(std::string_view option, std::string_view text);
};

/// [reads] The path names a file, or a folder that holds a model (a Hugging Face folder, sharded safetensors). Throws
/// the first error that verify() would report, Error{io}, or Error{misuse} (another kind of directory, an unknown
/// format).
Model open(const std::string& path, const Context& = {}, const OpenOptions& = {});
/// [reads] Opens one file from any source, with the files beside it that Source::place() finds.
Model open(std::shared_ptr<const Source>, const Context& = {}, const OpenOptions& = {});
/// [reads] Opens a file or a folder in any place.
Model open(std::shared_ptr<const Place>, const Context& = {}, const OpenOptions& = {});

/// What find_models() did not look into.
struct Skipped {
  std::string path{};  ///< as find_models() spells paths
  std::string why{};   ///< a noun phrase: "a FIFO", "a link to nothing"
};
/// [reads] The paths of the models beneath a folder, in the order of names, each once: a folder that is a model, the
/// index or first part of a divided model, and any other file that its content or its extension shows to be one.
/// Follows no link to a folder. A folder that cannot be listed is in the list, so that opening it says why. Throws
/// Cancelled.
/// @param skipped gets what looks like a model by its name and is none, and what is neither a file nor a folder
std::vector<std::string> find_models(const std::string& folder, const Context& = {},
                                     std::vector<Skipped>* skipped = nullptr);

/// [reads] Does not throw for an invalid file: adds the finding to the report and returns nullopt. Adds warnings and
/// unsupported tensors too. Still throws Error of kind io and misuse.
std::optional<Model> open(const std::string& path, Report&, const Context& = {}, const OpenOptions& = {});
/// [reads] Likewise.
std::optional<Model> open(std::shared_ptr<const Source>, Report&, const Context& = {}, const OpenOptions& = {});
/// [reads] Likewise.
std::optional<Model> open(std::shared_ptr<const Place>, Report&, const Context& = {}, const OpenOptions& = {});

}  // namespace weighbridge
