// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether a model is what a project demands: a policy is a list of demands, and check() compares them with what
/// verify(), diagnose() and verify_manifest() say. docs/policies.md is the guide, docs/schemas/policy.json the schema
/// of a policy.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/error.h"
#include "weighbridge/formats.h"
#include "weighbridge/open.h"
#include "weighbridge/place.h"
#include "weighbridge/source.h"

namespace weighbridge {

/// What the value of a demand is in JSON.
enum class DemandType : std::uint8_t {
  words,   ///< a list of words that DemandInfo::listed gives
  texts,   ///< a list of any texts
  shapes,  ///< an object: the shape of each tensor, by its name
  limits,  ///< an object: numbers or sizes by the names of options_of(OptionOf::limit)
  size,    ///< a number, or a size with a unit as text
  toggle   ///< true; false is as if it were not there
};

/// A kind of demand: a row of the table that the reader, the schema and docs/policies.md are made from.
struct DemandInfo {
  std::string_view key;                                 ///< the member of the policy: "max_size"
  DemandType type;                                      ///< of its value
  std::string_view help;                                ///< a noun phrase
  std::vector<std::string_view> (*listed)() = nullptr;  ///< the words that it takes
};
std::span<const DemandInfo> demands() noexcept;  ///< Every kind, in the order in which they are checked.

/// What a policy demands of a model.
struct Demand {
  std::string_view key{};                                                     ///< as DemandInfo::key
  std::vector<std::string> texts{};                                           ///< of words and texts
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> numbers{};  ///< of shapes and limits, by name
  std::uint64_t number = 0;                                                   ///< of a size
};

/// A list of demands.
struct Policy {
  std::string name{};             ///< for people: "publish", the name of its file
  std::string description{};      ///< as the policy has it
  std::vector<Demand> demands{};  ///< in the order of demands()
};

/// Reads a policy from JSON. Throws Error{misuse} "misuse/policy" that names the line: not JSON, an unknown key (with
/// the nearest one), a key twice, a value of another type, an unknown word.
Policy read_policy(std::string_view json, std::string name = {});
/// The names of the policies that come with the library: "download", "publish", "strict".
std::span<const std::string_view> ready_policies() noexcept;
/// One of them as JSON; empty if there is none of this name.
std::string_view ready_policy(std::string_view name) noexcept;

/// Something that a policy does not accept.
struct Breach {
  std::string_view demand{};  ///< the key of the demand; "valid", which every policy demands, if the model is invalid
  Finding finding{};          ///< of any function's rules, or of policy_rules(); its severity is that of an error
};

/// What check() found.
struct PolicyVerdict {
  std::string_view format{};       ///< as Verdict::format
  std::string checked{};           ///< as Verdict::checked
  std::vector<Breach> breaches{};  ///< at most Report::kMaxFindings
  std::uint64_t breached = 0;      ///< all of them
  Report others{};                 ///< the findings that break no demand: warnings, unsupported tensors
  std::vector<TimedStep>
      checks{};  ///< as Verdict::checks, then a demand each that looks at the model itself, by its key
  std::vector<std::string> not_known_safe{};  ///< as Verdict::not_known_safe, without what the policy accepts
  bool passed() const noexcept { return breached == 0; }  ///< no demand is broken
};

/// [reads] Checks a model against a policy. The demands on its tensors are checked only if it is valid. `manifest`, a
/// signed list of files, is for the demand "keys", which needs a place with a path. Throws Error of kind io and misuse.
PolicyVerdict check(std::shared_ptr<const Place>, const Policy&, const Context& = {}, const OpenOptions& = {},
                    std::shared_ptr<const Source> manifest = nullptr);

/// The rules of findings that only check() makes.
std::span<const Rule> policy_rules() noexcept;

}  // namespace weighbridge
