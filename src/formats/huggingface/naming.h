// SPDX-License-Identifier: Apache-2.0
// The prefix that a BERT's tensors have inside a larger model: "bert.encoder.layer.0..." for what EMBD and a bare
// encoder call "encoder.layer.0...". Decides which names can have it.
#pragma once
#include <string_view>

namespace weighbridge::huggingface {

inline constexpr std::string_view kPrefix = "bert.", kWordEmbeddings = "embeddings.word_embeddings.weight";

constexpr bool is_encoder(std::string_view name) noexcept {
  return name.starts_with("embeddings.") || name.starts_with("encoder.") || name.starts_with("pooler.");
}
// The name without its prefix. The name of a tensor outside the encoder is returned unchanged.
constexpr std::string_view without_prefix(std::string_view name) noexcept {
  return name.starts_with(kPrefix) && is_encoder(name.substr(kPrefix.size())) ? name.substr(kPrefix.size()) : name;
}

// Sees every name of a model with word embeddings. all_prefixed(): every tensor of the encoder has the prefix, so it
// can be removed from all. all_plain(): none has it, so it can be added to all.
class Naming {
 public:
  constexpr void add_name(std::string_view name) noexcept {
    plain_ = plain_ || is_encoder(name);
    prefixed_ = prefixed_ || without_prefix(name).size() != name.size();
    words_ = words_ || without_prefix(name) == kWordEmbeddings;
  }
  constexpr bool all_prefixed() const noexcept { return words_ && prefixed_ && !plain_; }
  constexpr bool all_plain() const noexcept { return words_ && plain_ && !prefixed_; }

 private:
  bool plain_ = false, prefixed_ = false, words_ = false;
};

}  // namespace weighbridge::huggingface
