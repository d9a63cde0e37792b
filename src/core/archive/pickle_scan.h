// SPDX-License-Identifier: Apache-2.0
// What loading a file with Python would import and call. Reads every pickle in the file, including pickles after others
// and in strings of a pickle, packed or not. Reports whatever could not be checked.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/archive/pickle_globals.h"
#include "core/archive/zip.h"
#include "core/reading/budget.h"
#include "core/reading/findings.h"
#include "weighbridge/context.h"
#include "wire/pickle.h"

namespace weighbridge::core {

// The pickle with which files of PyTorch before 1.6 begin: their magic number. Four more pickles and the storages
// follow.
inline constexpr std::string_view kTorchMagicPickle{
    "\x80\x02\x8a\x0al\xfc\x9c"
    "F\xf9 j\xa8P\x19.",
    15};

// Ignores the case of ASCII letters, as some systems do in names of files and members; `end` is in lower case.
bool ends_with_ignoring_case(std::string_view name, std::string_view end) noexcept;

// Whether a member of an archive may be a pickle, by the end of its name or by its first bytes.
bool may_be_pickle(std::string_view name, std::string_view first) noexcept;

// A pickle in a file: in place if it is stored uncompressed, else in `decoded`, which must outlive the input.
wire::PickleInput input_of(const Source&, std::uint64_t offset, std::uint64_t size);
wire::PickleInput input_of(std::string_view decoded);

class PickleScan {
 public:
  PickleScan(const Context& context, const PickleRules& rules, std::vector<Finding>& out)
      : context_(context),
        rules_(rules),
        out_(out),
        shared_(std::make_shared<Shared>(context.limits.memory)),
        memory_(context.limits.memory) {}

  // Checks the consecutive pickles from `start` on. Findings have offsets in the file if `base` says where the input
  // begins there, else `at`. `where` is the name of the member, or empty. Returns what is wrong with the first pickle,
  // if anything is.
  wire::PickleError row(const wire::PickleInput&, std::uint64_t start, std::optional<std::uint64_t> base,
                        std::uint64_t at, std::string_view where);
  // Checks the pickles in a member of an archive, from `start` of its decoded bytes on.
  wire::PickleError member(const Source&, const ZipMember&, std::uint64_t start = 0);
  // Checks a whole file that is not an archive.
  void file(const Source&);
  // Checks a file that is packed as a whole (packed.cc); reports a packing that this library cannot read.
  void packed_file(const Source&);

 private:
  // The budget that scans of nested strings share.
  struct Shared {
    explicit Shared(std::uint64_t bytes) : unpacked(bytes) {}
    Budget unpacked;  // of bytes
    unsigned unread = 0;
  };
  PickleScan(const PickleScan& outer, std::vector<Finding>& out)
      : context_(outer.context_),
        rules_(outer.rules_),
        out_(out),
        shared_(outer.shared_),
        memory_(outer.memory_ / 2),
        depth_(outer.depth_ + 1) {}

  void nested(const wire::Pickle&, const wire::PickleInput&, std::optional<std::uint64_t> base, std::uint64_t at,
              std::string_view where);
  void data(const wire::Pickle&, const wire::PickleInput&, std::uint64_t start, std::optional<std::uint64_t> base,
            std::uint64_t at, std::string_view where);
  void string(const wire::PickleInput&, std::uint64_t at, std::string_view where);
  void bytes(std::string_view, std::uint64_t at, std::string_view where);
  void numbered(const wire::PickleInput&, std::uint64_t at, std::string_view where);
  void unread(std::uint64_t at, std::string_view where, std::string what);
  Finding too_large(std::uint64_t at, std::uint64_t size) const;

  const Context& context_;
  const PickleRules& rules_;
  std::vector<Finding>& out_;
  std::shared_ptr<Shared> shared_;
  std::uint64_t memory_;  // for one pickle; nested strings get less, so that the total is bounded
  unsigned depth_ = 0;    // of strings in pickles
};

// Bytes that stand for other bytes: what a program packs before it puts them into a pickle.

inline constexpr std::string_view kBase64 = "base64";

struct Packing {
  std::string_view name{};  // empty: the bytes are not packed in a way that is known here
  bool readable = false;    // unpack() can read it
};
// By the first kPackingHead bytes, or all of them.
inline constexpr std::size_t kPackingHead = 18;
Packing packing_of(std::string_view first) noexcept;

// Of a readable packing. Takes what it makes from the budget, also where it fails, and all of it if there is more.
// nullopt: the bytes only begin like it, or there is more.
std::optional<std::string> unpack(const Packing&, std::string_view bytes, Budget&);

}  // namespace weighbridge::core
