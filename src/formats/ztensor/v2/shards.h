// SPDX-License-Identifier: Apache-2.0
// The table of shards (7.1), and their files: <stem>-<name>.zt beside <stem>.zt (Appendix B). Also divides a laid-out
// file into them.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/draft.h"
#include "core/reading/findings.h"
#include "core/reading/format.h"
#include "core/writing/layout.h"
#include "formats/ztensor/v2/manifest.h"

namespace weighbridge::ztensor2 {

struct Shard {
  std::string_view name, digest;  // slices of the manifest
  std::uint64_t size = 0, at = 0;
  // Once a part is in it:
  enum class State : std::uint8_t { unread, open, missing, broken } state = State::unread;
  std::uint32_t source = 0;              // of the draft, if open
  std::optional<Finding> missing_why{};  // if missing
};

class Shards {
 public:
  Shards(const Source& root, core::Findings& findings, core::Draft& draft)
      : root_(root), findings_(findings), draft_(draft) {}

  void add(const Shard& shard) { table_.push_back(shard); }
  // The index in the table, whose order is that of deterministic CBOR. nullopt: there is no such name.
  std::optional<std::uint32_t> find(std::string_view name) const noexcept;
  const Shard& operator[](std::uint32_t i) const noexcept { return table_[i]; }

  // The shard with its file, which the first call opens; reports once what is wrong with it. Throws Error{io}.
  const Shard& open(std::uint32_t i);
  // Opens the shards without parts, so that they are checked too. A missing one is not an error.
  void open_unused();

 private:
  // Null if it cannot be opened; `why` is then the reason, beginning with its name.
  std::shared_ptr<const Source> find_file(const Shard&, std::string& why) const;
  // Reports what is wrong with the shard's file.
  void check(Shard&, std::shared_ptr<const Source>);
  std::string file_of(std::string_view name) const;

  const Source& root_;
  core::Findings& findings_;
  core::Draft& draft_;
  std::vector<Shard> table_;
};

// The name of a shard's file, by that of the root's (Source::file_name()).
std::string shard_file(std::string_view root, std::string_view shard);

// Divides a laid-out file of zTensor 2 into shards (7.1): model-00001-of-00003.zt and so on, each a model of its own
// tensors, and model.zt, whose manifest has all tensors and the metadata of the model.

// `whole` is laid out and possible; its manifest is `manifest`. A shard has at most `maximum` bytes of parts, if it has
// more than one tensor; tensors that share bytes are in one shard. `digest` is that of
// the shards' files, xxh3 in place of none, because the table of shards must have one.
core::WriteLayout divide(core::WriteLayout whole, const Manifest& manifest, std::uint64_t maximum,
                         core::PartDigest digest);

}  // namespace weighbridge::ztensor2
