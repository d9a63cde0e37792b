// SPDX-License-Identifier: Apache-2.0
// Finds the recipes of a model: which tensors make one, by their names, dtypes and shapes, by what the user says
// (core::answers_of) and by what the config says.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/model/view.h"
#include "core/reading/findings.h"
#include "recipes/recipe.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"

namespace weighbridge::recipes {

// Why codes have no recipe.
enum class Refused : std::uint8_t {
  no,
  malformed,    // their tensors do not fit each other: a fault says by which rule
  unsupported,  // a layout that is not decoded
  question,     // the files leave open what it is; the hint has the option `scheme` and what to say
};

// What is wrong with a layer: a rule of core::rules, about one of the model's tensors.
struct Fault {
  const Rule* rule;
  std::uint32_t tensor;
  std::string expected{}, found{}, detail{};
};

// A tensor of codes and what completes it.
struct Match {
  std::string name;                      // of the logical tensor
  std::vector<std::uint32_t> tensors;    // of the model, that it is made of; the first has the codes
  std::shared_ptr<const Recipe> recipe;  // null: refused
  std::string refusal{};                 // why
  Refused refused = Refused::no;
  Hint hint{};
  std::vector<Fault> faults{};  // errors if it is malformed; warnings, of any other too
};

// How much is read of what is stored. Codes are not.
enum class Look : std::uint8_t {
  copying,  // for copies of codes and zeros: a zero that has no single meaning is then no question
  enough,   // what decides about a recipe: shapes, states, groups, the first zeros
  zeros,    // all zeros of GPTQ too, one of which may have no single meaning
  closely   // what is checked besides; names of parts without codes are matches then, too
};

// [reads] Reads at most 256 MiB of tensors that describe others: the layers after that are refused.
std::vector<Match> matches_of(const Model&, const Context&, Look = Look::enough);

// [reads] Reports what is wrong with the quantized layers: the faults of matches_of(), scales that are not numbers,
// parts of layers that are not there. Reads scales and zeros, and not codes.
void check_quantized(const Model&, const Context&, core::Findings&);

// Throws Error{misuse} if the user says something of a scheme of which the model has no tensor.
void require_asked(const Model&);

// The model with the logical tensors in place of what they are made of: a view whose values are computed while they are
// read. Each has the type `to` if that is the type of the reference, or unknown; else it is f32, to be written as `to`.
// Codes without a recipe are blockers. With `whole`, nothing is replaced then. `described`: stored_weight() says how
// each is stored.
struct Numbers {
  bool whole = true, described = false;
};
core::Derived numbers_of(const Model&, DType to, const Context&, Numbers how = {});

// Of a model none of whose tensors is codes any more: what becomes of a tensor that is marked as part of a scheme, and
// the attributes without those that describe the quantization, which become changes.
inline constexpr std::string_view kOtherScale = "left out: it scales what the quantized layer computes";
std::vector<Value::Entry> without_configs(const Model&, std::vector<Item>& changes);

}  // namespace weighbridge::recipes
