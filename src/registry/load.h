// SPDX-License-Identifier: Apache-2.0
// The path that open and verify share: detection, then the format's walker.
#pragma once
#include <memory>

#include "core/findings.h"
#include "core/format.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/open.h"
#include "weighbridge/place.h"
#include "weighbridge/share.h"

namespace weighbridge::registry {

struct Loaded {
  const core::Format* format = nullptr;  // null: no format
  Model model{};                         // what could be read
};

// Which files are read: all of the model that the given one begins or lists, or only this one, without remarks on the
// others.
enum class Files : bool { all, one };

// Reports to `findings`. Throws core::Stop where `findings` does, Error{io} and Error{misuse}.
Loaded load(const std::shared_ptr<const Place>&, const Context&, const OpenOptions&, core::Findings&,
            Files = Files::all);
// Reads the structure of one file by itself, in this format.
Model load_file(const core::Format&, const std::shared_ptr<const Source>&, const Context&, core::Findings&);
// Runs the rules that read payload on the share of the result of load(). Returns Verdict::shares.
std::uint32_t check_content(const Loaded&, const Share&, const Context&, core::Findings&);

}  // namespace weighbridge::registry
