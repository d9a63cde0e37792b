// SPDX-License-Identifier: Apache-2.0
// Modules and prompts as JSON, and back.
#include "core/reading/encoder_settings.h"

#include <algorithm>
#include <iterator>

#include "core/model/words.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"

namespace weighbridge::core {
namespace {

using Type = SentenceModule::Type;

constexpr std::string_view kTypes[] = {"Dense", "LayerNorm", "Normalize", "WeightedLayerPooling"};
constexpr std::size_t kMaxModules = 64;  // far more than real models have; each takes a pass over a vector

bool read_text(wire::JsonReader& in, std::string& out) {
  wire::JsonString text;
  std::string scratch;
  if (!in.read_string(text)) return false;
  out = wire::json_text(text, scratch);
  return true;
}

bool read_member(wire::JsonReader& in, std::string_view key, SentenceModule& out) {
  std::string type;
  if (key == "type") {
    if (!read_text(in, type)) return false;
    const auto found = std::ranges::find(kTypes, type);
    out.type = static_cast<Type>(found - std::begin(kTypes));
    return found != std::end(kTypes);
  }
  if (key == "path") return read_text(in, out.path) && is_plain_name(out.path);
  if (key == "activation") return read_text(in, out.activation);
  if (key == "inputs") return in.read_u64(out.inputs);
  if (key == "outputs") return in.read_u64(out.outputs);
  if (key == "bias") return in.read_bool(out.bias);
  if (key == "residual") return in.read_bool(out.residual);
  if (key == "first_layer") return in.read_u64(out.first_layer);
  return false;
}

}  // namespace

std::string text_of(const std::vector<SentenceModule>& modules) {
  if (modules.empty()) return {};
  wire::JsonWriter out;
  out.begin_array();
  for (const SentenceModule& each : modules) {
    out.begin_object();
    out.key("type").string(kTypes[static_cast<std::size_t>(each.type)]);
    if (each.type != Type::normalize) {
      out.key("path").string(each.path);
    }
    if (each.type == Type::dense) {
      out.key("inputs").u64(each.inputs);
      out.key("outputs").u64(each.outputs);
      out.key("bias").boolean(each.bias);
      out.key("residual").boolean(each.residual);
      out.key("activation").string(each.activation);
    }
    if (each.type == Type::weighted_layers) {
      out.key("first_layer").u64(each.first_layer);
    }
    out.end_object();
  }
  out.end_array();
  return out.take();
}

std::optional<std::vector<SentenceModule>> parse_sentence_modules(std::string_view text) {
  std::vector<SentenceModule> out;
  wire::JsonReader in(text);
  std::string scratch;
  if (!in.enter_array()) return std::nullopt;
  while (in.next_element()) {
    SentenceModule each;
    if (out.size() == kMaxModules || !in.enter_object()) return std::nullopt;
    for (wire::JsonString key; in.next_key(key);)
      if (!read_member(in, wire::json_text(key, scratch), each)) return std::nullopt;
    if (each.type != Type::normalize && each.path.empty()) return std::nullopt;
    out.push_back(std::move(each));
  }
  return in.ok() && in.finish() ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<std::vector<std::pair<std::string, std::string>>> parse_prompts(std::string_view json) {
  std::vector<std::pair<std::string, std::string>> out;
  wire::JsonReader in(json);
  std::string scratch;
  if (!in.enter_object()) return std::nullopt;
  for (wire::JsonString key; in.next_key(key);) {
    std::string name(wire::json_text(key, scratch)), text;
    if (in.peek() == wire::JsonKind::null) {
      in.read_null();
    } else if (read_text(in, text)) {
      out.emplace_back(std::move(name), std::move(text));
    } else {
      return std::nullopt;
    }
  }
  return in.ok() && in.finish() ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace weighbridge::core
