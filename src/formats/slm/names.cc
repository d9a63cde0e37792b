// SPDX-License-Identifier: Apache-2.0
// Known names and their hashes.
#include "formats/slm/names.h"

#include <algorithm>

#include "codecs/checksum.h"

namespace weighbridge::slm {
namespace {

constexpr std::string_view kRoleNames[] = {
    "tok_embeddings", "norm", "output", "attention_norm", "ffn_norm", "wq", "wk", "wv", "wo", "w1", "w2", "w3"};
constexpr std::string_view kAlias = "attn_norm";  // M9: how the original's documentation also spells attention_norm

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

}  // namespace weighbridge::slm
