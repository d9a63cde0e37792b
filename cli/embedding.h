// SPDX-License-Identifier: Apache-2.0
// What the verbs that embed share: an Embedder made from flags, and embedding in batches.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "session.h"
#include "texts.h"
#include "weighbridge/embed.h"

namespace weighbridge::cli {

// An Embedder for the model at `path`. Null if it cannot be opened: the error has been printed, and `status` is the
// exit status. `model`, if not null, receives the opened model.
std::unique_ptr<Embedder> open_embedder(Session&, const std::string& path, Model* model = nullptr);

// The files that are read: those of the model, --input, --corpus and --vocab. No output may replace them.
std::vector<std::shared_ptr<const Source>> inputs_of(const Session&, const Model&);

// Counts texts that were truncated or repaired, for one remark about all of them.
class Remarks {
 public:
  void add(const Embedded&);
  // Prints the remark on standard error, if there is one and --quiet is not given.
  void say(const Session&, std::string_view path, const Embedder&) const;

 private:
  std::uint64_t truncated_ = 0, damaged_ = 0, replaced_ = 0;
};

// Called for each text in order.
using UseVector =
    std::function<void(std::uint64_t index, const std::string& text, const Embedded&, std::span<const float>)>;
// Embeds the texts that `next` gives until it returns false, in batches of bounded size. `total`: the number of texts,
// for the progress bar; 0 if unknown. The model's prompt for the role stands before each.
void embed_all(Session&, const Embedder&, std::uint64_t total, const std::function<bool(std::string&)>& next,
               const UseVector&, Remarks&, TextRole = TextRole::text);
std::vector<float> embed_one(const Embedder&, std::string_view text, Remarks&, TextRole = TextRole::text);

double dot(std::span<const float> a, std::span<const float> b);
// The cosine of the angle between two vectors; 0 if either is zero.
double cosine(std::span<const float> a, std::span<const float> b);

}  // namespace weighbridge::cli
