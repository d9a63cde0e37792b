// SPDX-License-Identifier: Apache-2.0
// Known names and their hashes.
#include "formats/slm/names.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "codecs/checksum.h"

namespace weighbridge::slm_format {
namespace {

constexpr std::string_view kRoleNames[] = {
    "tok_embeddings", "norm", "output", "attention_norm", "ffn_norm", "wq", "wk", "wv", "wo", "w1", "w2", "w3"};
constexpr std::string_view kAlias = "attn_norm";  // M9: the original's documentation also uses this for attention_norm

// In the order of Role.
constexpr std::string_view kFolderNames[] = {"embed_tokens",
                                             "norm",
                                             "lm_head",
                                             "input_layernorm",
                                             "post_attention_layernorm",
                                             "self_attn.q_proj",
                                             "self_attn.k_proj",
                                             "self_attn.v_proj",
                                             "self_attn.o_proj",
                                             "mlp.gate_proj",
                                             "mlp.down_proj",
                                             "mlp.up_proj"};
constexpr std::string_view kModel = "model.", kLayers = "layers.", kWeight = ".weight", kBias = ".bias";

std::string_view without_model(std::string_view name) noexcept {
  return name.starts_with(kModel) ? name.substr(kModel.size()) : name;
}

std::string layer_name(std::uint32_t layer, std::string_view part) {
  return "layers." + std::to_string(layer) + "." + std::string(part) + ".weight";
}

}  // namespace

Dims dims_of(Role role, const Header& h) noexcept {
  switch (role) {
    case Role::tok_embeddings:
    case Role::output: return {h.vocab_size, h.hidden_size};
    case Role::norm:
    case Role::attention_norm:
    case Role::ffn_norm: return {h.hidden_size, 0};
    case Role::w1:
    case Role::w3: return {h.ffn_size, h.hidden_size};
    case Role::w2: return {h.hidden_size, h.ffn_size};
    case Role::wq:
    case Role::wk:
    case Role::wv:
    case Role::wo: break;
  }
  return {h.hidden_size, h.hidden_size};
}

std::string spell(Dims dims) {
  return "[" + std::to_string(dims.rows) + (dims.columns == 0 ? "" : ", " + std::to_string(dims.columns)) + "]";
}

std::string spell(Role role, std::uint32_t layer) {
  const std::string_view part = kRoleNames[static_cast<std::size_t>(role)];
  return static_cast<std::uint32_t>(role) < kModelRoles ? std::string(part) + ".weight" : layer_name(layer, part);
}

std::string spell_hash(std::uint64_t hash) { return "#" + codecs::to_hex(hash); }

std::optional<std::uint64_t> parse_hash(std::string_view name) noexcept {
  if (name.size() != 17 || name[0] != '#') return std::nullopt;
  std::uint64_t hash = 0;
  for (const char c : name.substr(1)) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'a' || c > 'f')) return std::nullopt;
    hash = hash << 4 | static_cast<std::uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  return hash;
}

std::optional<std::uint32_t> layer_of(std::string_view name) noexcept {
  name = without_model(name);
  if (!name.starts_with(kLayers)) return std::nullopt;
  name.remove_prefix(kLayers.size());
  std::uint32_t layer = 0;
  const char* const last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data(), last, layer);
  const bool canonical = error == std::errc() && (name[0] != '0' || end == name.data() + 1);
  if (!canonical || end == last || *end != '.') return std::nullopt;
  return layer;
}

std::optional<Respelled> from_hugging_face(std::string_view name) {
  if (!name.ends_with(kWeight)) return std::nullopt;
  std::string_view part = without_model(name);
  part.remove_suffix(kWeight.size());
  const auto layer = layer_of(name);
  if (layer) part = part.substr(part.find('.', kLayers.size()) + 1);
  const auto all = std::span(kFolderNames);
  const auto found = std::ranges::find(all, part);
  if (found == all.end()) return std::nullopt;
  const auto role = static_cast<Role>(found - all.begin());
  if (layer.has_value() != (static_cast<std::uint32_t>(role) >= kModelRoles)) return std::nullopt;
  return Respelled{spell(role, layer.value_or(0)), role == Role::wq || role == Role::wk};
}

bool is_bias(const Model& model, std::string_view name) {
  if (!name.ends_with(kBias)) return false;
  const std::string weight = std::string(name.substr(0, name.size() - kBias.size())) + std::string(kWeight);
  return from_hugging_face(weight) && model.find(weight);
}

bool is_rotary_table(std::string_view name) noexcept {
  return name.ends_with("rotary_emb.inv_freq") || name == "freq_cis_real" || name == "freq_cis_imag" ||
         name == "rope.freqs";
}

std::optional<Tensor> find_role(const Model& model, Role role, std::uint32_t layer) {
  if (auto found = model.find(spell(role, layer))) return found;
  const std::string_view part = kFolderNames[static_cast<std::size_t>(role)];
  const std::string plain = (static_cast<std::uint32_t>(role) < kModelRoles
                                 ? std::string(part)
                                 : std::string(kLayers) + std::to_string(layer) + "." + std::string(part)) +
                            std::string(kWeight);
  if (auto found = model.find(std::string(kModel) + plain)) return found;
  return model.find(plain);
}

KnownNames::KnownNames(std::uint32_t layers) : layers_(layers) {
  known_.reserve(kModelRoles + std::size_t{kLayerRoles + 1} * layers);
  for (const Role role : {Role::tok_embeddings, Role::norm, Role::output}) add(spell(role, 0), role, 0, false);
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    for (std::uint32_t r = 0; r < kLayerRoles; ++r) {
      const auto role = static_cast<Role>(kModelRoles + r);
      add(spell(role, layer), role, layer, false);
    }
    add(layer_name(layer, kAlias), Role::attention_norm, layer, true);
  }
  std::ranges::sort(known_, {}, &Known::hash);
}

void KnownNames::add(std::string_view name, Role role, std::uint32_t layer, bool alias) {
  known_.push_back({name_hash(name), layer, role, alias});
}

const Known* KnownNames::find(std::uint64_t hash) const noexcept {
  const auto at = std::ranges::lower_bound(known_, hash, {}, &Known::hash);
  return at != known_.end() && at->hash == hash ? &*at : nullptr;
}

std::string KnownNames::name(std::uint64_t hash) const {
  const Known* const known = find(hash);
  return known ? spell(known->role, known->layer) : spell_hash(hash);
}

}  // namespace weighbridge::slm_format
