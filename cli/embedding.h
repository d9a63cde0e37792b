// SPDX-License-Identifier: Apache-2.0
// What the verbs that embed share: an Embedder from their flags, and texts turned into vectors a batch at a time.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "session.h"
#include "texts.h"
#include "weighbridge/embed.h"

namespace weighbridge::cli {

// Of the model at `path`. Null: it could not be opened, which was said; `status` says what to answer.
// `model` is given what was opened, for who wants it.
std::unique_ptr<Embedder> open_embedder(Session&, const std::string& path, Status& status, Model* model = nullptr);

// The files that are read, which no output may replace: the model's, and those of --input, --corpus and --vocab.
std::vector<std::shared_ptr<const Source>> inputs_of(const Session&, const Model&);

// What befell texts on their way in, for one remark about all of them.
class Remarks {
 public:
  void add(const Embedded&);
  // On standard error, unless there is nothing to say or --quiet.
  void say(const Session&, std::string_view path, const Embedder&) const;

 private:
  std::uint64_t truncated_ = 0, damaged_ = 0, replaced_ = 0;
};

// Told of each text in order: its number, the text, what became of it, its vector.
using UseVector =
    std::function<void(std::uint64_t index, const std::string& text, const Embedded&, std::span<const float>)>;
// Embeds what `next` gives until it answers false, in batches of bounded size. `total`: how many there are, for the
// bar; 0 where that is not known.
void embed_all(Session&, const Embedder&, std::uint64_t total, const std::function<bool(std::string&)>& next,
               const UseVector&, Remarks&);
std::vector<float> embed_one(const Embedder&, std::string_view text, Remarks&);

double dot(std::span<const float> a, std::span<const float> b);
// The cosine of the angle between two vectors; 0 where one is zero.
double cosine(std::span<const float> a, std::span<const float> b);

}  // namespace weighbridge::cli
