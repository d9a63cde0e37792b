// SPDX-License-Identifier: Apache-2.0
// The path that open and verify share: detection, then the format's walker. Also lays out outputs, and makes the checks
// of verify that belong to no format: pickles beside or inside a model, and what was checked.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/reading/findings.h"
#include "core/reading/format.h"
#include "core/writing/layout.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/open.h"
#include "weighbridge/place.h"
#include "weighbridge/share.h"
#include "weighbridge/source.h"
#include "weighbridge/verify.h"

namespace weighbridge::registry {

struct Loaded {
  const core::Format* format = nullptr;  // null: no format
  Model model{};                         // what could be read
  std::vector<std::string> read_as{};    // tensors whose dtype OpenOptions::read_as gave
};
// Drops what was reported of these tensors, whose elements can be read after all.
void drop_read_as(const Loaded&, Report&);

// Which files to read: all files of the model to which the given one belongs, or only that file, without warnings about
// the others.
enum class Files : bool { all, one };

// Reports to `findings`. Throws core::Stop where `findings` does, Error{io} and Error{misuse}.
Loaded load(const std::shared_ptr<const Place>&, const Context&, const OpenOptions&, core::Findings&,
            Files = Files::all);
// Reads the structure of one file as this format.
Model load_file(const core::Format&, const std::shared_ptr<const Source>&, const Context&, core::Findings&);
// Checks the payload rules of one share of load()'s result. Returns Verdict::shares.
std::uint32_t check_content(const Loaded&, const Share&, const Context&, core::Findings&);

// Lays out what a conversion would write, including the files inside a folder that have another format.

// Calls Format::layout. For a folder with an inner model (OutFolder::inner), also lays out that model and merges it in.
// Throws what those calls throw.
core::WriteLayout lay_out(const core::Format&, const Model&, const Options&, const Context&);

// The pickles of a folder: programs load them by their names, whether or not the model's weights are other files.

// Judges every pickle in a folder and in the folders below it as if it were named alone, by its content: in a file of
// its own, in an archive, in an array of objects. Reports errors, and what is not known to be safe. Leaves out files of
// the model whose content rules have judged them.
void check_pickles_of_folder(const Place&, const Model&, const Context&, core::Findings&);

// Files that are two things: what their format says, and a pickle or what begins at the end. What loads pickles does
// not look at the first bytes.

// [reads] Reports a file of a format other than PyTorch's that Python would also read as a pickle, if that names a
// class or function: importing it runs code. A length or a user block leaves room for one. Without such names it has
// only numbers, texts and lists, and an ordinary file may pass for one by chance. Usually reads a few bytes.
void report_also_pickle(const Source&, const Context&, core::Findings&);

// [reads] Reports a file that another format would claim by its last bytes, where that looks for its directory: zip
// archives, zTensor 1. Reads at most the last 64 KiB.
void report_also_another(const Source&, const core::Format& is, core::Findings&);

// What a check can tell about the tensor data of a file: whether checksums cover it, and whether its end was ever
// written.

// Fills in Verdict::parts, digests and checked.
void say_what_was_checked(const core::Format&, Verdict&);
// Whether a tensor of this name is often zeros throughout: the second factor of an untrained adapter, a bias.
bool may_be_zeros(std::string_view name) noexcept;
// [reads] Warns of tensors at the end of a file that are zeros and that no checksum covers. Reads at most the last MiB
// of each file, and asks the system for holes.
void warn_of_zero_tail(const Place&, const Model&, core::Findings&);

}  // namespace weighbridge::registry
