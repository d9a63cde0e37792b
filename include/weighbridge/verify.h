// SPDX-License-Identifier: Apache-2.0
/// \file
/// Is this file sound? All structural rules, then every rule that must read payload, in one pass over it.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "weighbridge/context.h"
#include "weighbridge/error.h"
#include "weighbridge/model.h"
#include "weighbridge/open.h"
#include "weighbridge/source.h"

namespace weighbridge {

/// What verify() found, and what could be read all the same.
struct Verdict {
  std::string_view format;  ///< "" where the content matches no format
  Report report;            ///< every finding
  /// What could be read: tensors with structural errors are left out. Empty when the file has no readable index.
  Model model;
};

/// [reads] Throws Error of kind io and misuse only. The first error of the report is the one that open() throws, when
/// open() fails. The source is compared again at the end: a file that changed meanwhile is an io error.
Verdict verify(const std::string& path, const Context& = {}, const OpenOptions& = {});
/// [reads] Of one file, wherever its bytes are.
Verdict verify(std::shared_ptr<const Source>, const Context& = {}, const OpenOptions& = {});
/// [reads] Of a file or a folder, wherever that is.
Verdict verify(std::shared_ptr<const Place>, const Context& = {}, const OpenOptions& = {});

}  // namespace weighbridge
