// SPDX-License-Identifier: Apache-2.0
/// \file
/// From a path or a source to a Model. Reads and checks the header; payload is read only when asked for.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "weighbridge/context.h"
#include "weighbridge/error.h"
#include "weighbridge/model.h"
#include "weighbridge/place.h"
#include "weighbridge/source.h"

namespace weighbridge {

/// How a file is read.
struct OpenOptions {
  /// Name of the format to read the file as; empty: by content, and where the content matches nothing, by the
  /// extension.
  std::string format{};
  Access access = Access::positional;  ///< of the file that `path` names
  Checks checks = Checks::all;         ///< structure: not what a format checks of its payload at opening
  /// The side file of a container that has one (STB: NAME.khm.json); null: the one beside the file, if there is one.
  std::shared_ptr<const Source> sidecar{};
  /// The tokenizer file of a container whose tokenizer is one (FormatInfo::tokenizer_file); null: the one beside the
  /// file, if there is one (llama2c: NAME.tokenizer). Misuse for other containers.
  std::shared_ptr<const Source> tokenizer{};
};

/// [reads] A path is a file, or a folder that holds a model (a Hugging Face folder, sharded safetensors). Throws Error:
/// the first error that verify() would report (malformed), io, or misuse (another directory, an unknown format).
Model open(const std::string& path, const Context& = {}, const OpenOptions& = {});
/// [reads] Of one file, wherever its bytes are, with what Source::place() finds beside it.
Model open(std::shared_ptr<const Source>, const Context& = {}, const OpenOptions& = {});
/// [reads] Of a file or a folder, wherever that is.
Model open(std::shared_ptr<const Place>, const Context& = {}, const OpenOptions& = {});

/// [reads] The door that does not throw for what the file holds: nullopt when it is malformed. Warnings and unsupported
/// tensors go to the report too. Still throws Error of kind io and misuse.
std::optional<Model> open(const std::string& path, Report&, const Context& = {}, const OpenOptions& = {});
/// [reads] Likewise.
std::optional<Model> open(std::shared_ptr<const Source>, Report&, const Context& = {}, const OpenOptions& = {});
/// [reads] Likewise.
std::optional<Model> open(std::shared_ptr<const Place>, Report&, const Context& = {}, const OpenOptions& = {});

}  // namespace weighbridge
