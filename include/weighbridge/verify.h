// SPDX-License-Identifier: Apache-2.0
/// \file
/// Checks whether a file is valid: first all structural rules, then every rule that reads payload, in one pass over it.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/error.h"
#include "weighbridge/model.h"
#include "weighbridge/open.h"
#include "weighbridge/share.h"
#include "weighbridge/source.h"

namespace weighbridge {

/// What verify() found, and the model as far as it could be read.
struct Verdict {
  std::string_view format;  ///< "" if the content matches no format
  Report report;            ///< every finding
  /// The readable part of the file; tensors with structural errors are left out. Empty if the file has no readable
  /// index.
  Model model;
  std::uint64_t parts = 0;    ///< stored parts of the tensors of `model`
  std::uint64_t digests = 0;  ///< of these, the parts with a digest, which was checked
  /// What was checked, in one phrase: "structure only: safetensors has no checksums", "structure and checksums",
  /// "structure and digests of 3 of 4 parts", or, if whole files such as shards have digests, "structure and digests of
  /// 2 files". Empty unless the report is valid.
  std::string checked{};
  /// What loading the file, or a file of the folder, with Python is not known to do safely: functions and classes that
  /// pickles name ("module.name") and that are neither known to be harmless nor to do harm, and what was not looked
  /// into. Each once, at most kMaxNotKnownSafe. They are warnings, so the report is valid, but the file is not "ok".
  std::vector<std::string> not_known_safe{};
  static constexpr std::size_t kMaxNotKnownSafe = 100;  ///< that `not_known_safe` holds
  /// Into how many shares the payload was divided: Share::of, or 1 if the format leaves everything to index 0.
  std::uint32_t shares = 1;
  std::vector<TimedStep> checks{};  ///< that ran, in their order
  /// Which of report.findings() come from rules that read payload: those from `payload_begin` to before `payload_end`,
  /// in the order of file, offset, rule, tensor and message. Findings of other shares belong among them.
  std::size_t payload_begin = 0;
  std::size_t payload_end = 0;  ///< see `payload_begin`
};

/// [reads] Throws Error of kind io and misuse only. If open() fails, it throws the first error of the report. The
/// source is checked again at the end; a file that has changed is Error{io}.
Verdict verify(const std::string& path, const Context& = {}, const OpenOptions& = {}, const Share& = {});
/// [reads] Verifies one file from any source.
Verdict verify(std::shared_ptr<const Source>, const Context& = {}, const OpenOptions& = {}, const Share& = {});
/// [reads] Verifies a file or a folder in any place.
Verdict verify(std::shared_ptr<const Place>, const Context& = {}, const OpenOptions& = {}, const Share& = {});

}  // namespace weighbridge
