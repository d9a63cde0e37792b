// SPDX-License-Identifier: Apache-2.0
// Reads policies, by the table of demands. Owns the policies that come with the library.
#include <algorithm>
#include <array>
#include <string>

#include "base/fail.h"
#include "codecs/checksum.h"
#include "core/model/words.h"
#include "weighbridge/hash.h"
#include "weighbridge/options.h"
#include "weighbridge/policy.h"
#include "wire/json_reader.h"

namespace weighbridge {
namespace {

using wire::JsonKind, wire::JsonReader, wire::JsonString;

struct Ready {
  std::string_view name, json;
};
constexpr Ready kReady[] = {
    {"download", R"({
  "description": "What you can load without running somebody's code: complete, and without code beside the weights",
  "globals": [],
  "code": [],
  "complete": true
}
)"},
    {"publish", R"({
  "description": "What you can publish: a format without code, nothing missing, no NaN",
  "limits": {"header": "100MB"},
  "globals": [],
  "code": [],
  "complete": true,
  "formats": ["safetensors", "gguf", "zt", "zt2", "npy", "npz", "onnx", "hf"],
  "max_nan": 0
}
)"},
    {"strict", R"({
  "description": "As publish, without any warning, infinity or tensor that is not understood",
  "limits": {"header": "100MB"},
  "globals": [],
  "code": [],
  "complete": true,
  "warnings": [],
  "formats": ["safetensors", "gguf", "zt", "zt2", "npy", "npz", "onnx", "hf"],
  "max_nan": 0,
  "max_infinite": 0
}
)"},
};
constexpr auto kReadyNames = [] {
  std::array<std::string_view, std::size(kReady)> out;
  std::ranges::transform(kReady, out.begin(), &Ready::name);
  return out;
}();

std::string_view name_of(JsonKind kind) noexcept {
  switch (kind) {
    case JsonKind::object: return "an object";
    case JsonKind::array: return "a list";
    case JsonKind::string: return "a text";
    case JsonKind::number: return "a number";
    case JsonKind::boolean: return "true or false";
    case JsonKind::null: return "null";
    case JsonKind::none: break;
  }
  return "nothing";
}

// "the nearest is ...", or all if there are few.
std::string allowed(std::string_view word, const std::vector<std::string_view>& words) {
  constexpr std::size_t kFew = 20;
  std::string out =
      core::near_text(word, static_cast<std::uint32_t>(words.size()), [&](std::uint32_t i) { return words[i]; });
  if (!out.empty() || words.size() > kFew) return out;
  for (const std::string_view each : words) out += (out.empty() ? "; there are " : ", ") + std::string(each);
  return out;
}

class PolicyReader {
 public:
  explicit PolicyReader(std::string_view json) : json_(json), in_(json) {}

  Policy read() {
    Policy out;
    std::vector<std::string> seen;
    kind_ = in_.peek();
    if (!in_.enter_object()) refuse_value("an object, whose keys are demands");
    for (JsonString key; in_.next_key(key);) {
      path_ = text_of(key);
      if (std::ranges::find(seen, path_) != seen.end()) refuse("the key is there twice");
      seen.push_back(path_);
      kind_ = in_.peek();
      if (path_ == "$schema")
        in_.skip_value();
      else if (path_ == "description")
        out.description = text();
      else
        add(out.demands);
      path_.clear();
    }
    if (!in_.ok() || !in_.finish()) refuse(std::string(in_.error().sentence));
    std::ranges::sort(out.demands, {}, [](const Demand& each) { return place_of(each.key); });
    return out;
  }

 private:
  static std::size_t place_of(std::string_view key) {
    return static_cast<std::size_t>(std::ranges::find(demands(), key, &DemandInfo::key) - demands().begin());
  }

  // Names the line and the place, as `limits.header` or `dtypes[2]`.
  [[noreturn]] void refuse(const std::string& what) {
    const std::size_t at = in_.ok() ? in_.offset() : in_.error().offset;
    base::misuse("policy", "line " + std::to_string(1 + std::ranges::count(json_.substr(0, at), '\n')) +
                               " of the policy" + (path_.empty() ? "" : ", at " + core::excerpt(path_)) + ": " + what);
  }
  static std::string text_of(const JsonString& from) {
    std::string scratch;
    return std::string(wire::json_text(from, scratch));
  }
  std::string text() {
    JsonString out;
    kind_ = in_.peek();
    if (!in_.read_string(out)) refuse_value("a text");
    return text_of(out);
  }
  // Also of what is not JSON, which has a sentence of its own.
  [[noreturn]] void refuse_value(std::string_view expected) {
    refuse(in_.ok() ? "expected " + std::string(expected) + ", found " + std::string(name_of(kind_))
                    : std::string(in_.error().sentence));
  }

  std::uint64_t number(const OptionInfo& row) {
    std::uint64_t bytes = 0;
    JsonString size;
    kind_ = in_.peek();
    const bool bare = in_.read_u64(bytes);
    if (!bare && !in_.read_string(size)) refuse_value("a whole number, or a size such as \"5GB\"");
    try {
      return number_of(row, bare ? std::to_string(bytes) : text_of(size));
    } catch (const Error& error) {
      refuse(error.finding().message);
    }
  }

  // The demand of the key at path_.
  void add(std::vector<Demand>& to) {
    const std::size_t place = place_of(path_);
    if (place == demands().size()) {
      std::vector<std::string_view> keys{"description"};
      for (const DemandInfo& each : demands()) keys.push_back(each.key);
      refuse("a policy has no such key" + allowed(path_, keys));
    }
    const DemandInfo& info = demands()[place];
    Demand out{.key = info.key};
    bool given = true;
    switch (info.type) {
      case DemandType::words:
      case DemandType::texts: read_texts(info, out); break;
      case DemandType::shapes:
      case DemandType::limits: read_numbers(info, out); break;
      case DemandType::size: {
        const OptionInfo row{.name = info.key, .type = OptionType::size, .range = {0, 0x1p63}};
        out.number = number(row);
        break;
      }
      case DemandType::toggle:
        if (!in_.read_bool(given)) refuse_value("true or false");
    }
    if (given) to.push_back(std::move(out));
  }

  void read_texts(const DemandInfo& info, Demand& out) {
    if (!in_.enter_array()) refuse_value("a list of texts");
    const std::vector<std::string_view> words = info.listed ? info.listed() : std::vector<std::string_view>();
    const std::string list = path_;
    while (in_.next_element()) {
      path_ = list + "[" + std::to_string(out.texts.size()) + "]";
      std::string word = text();
      const auto expect = [&](bool right, std::string_view what) {
        if (!right) refuse("expected " + std::string(what) + ", found " + core::quoted(core::excerpt(word)));
      };
      if (info.listed && std::ranges::find(words, word) == words.end())
        refuse(list + " cannot have " + core::quoted(core::excerpt(word)) + allowed(word, words));
      expect(info.key != "sha256" || codecs::is_hex(word, 64), "64 lower-case hexadecimal digits");
      expect(info.key != "keys" || word.find("-----BEGIN PUBLIC KEY-----") != word.npos,
             "the text of a public key (PEM)");
      expect(info.key != "content" || parse_digest(word), "a digest as `weighbridge hash` prints it");
      out.texts.push_back(std::move(word));
    }
    path_ = list;
  }

  void read_numbers(const DemandInfo& info, Demand& out) {
    const bool limits = info.type == DemandType::limits;
    if (!in_.enter_object())
      refuse_value(limits ? "an object of limits" : "an object that has a list of dimensions for each tensor");
    const std::string object = path_;
    const auto path_of = [&](std::string_view name) {
      return limits ? object + "." + std::string(name) : object + "[" + core::quoted(name) + "]";
    };
    for (JsonString key; in_.next_key(key);) {
      std::string name = text_of(key);
      path_ = path_of(name);
      std::vector<std::uint64_t> numbers;
      kind_ = in_.peek();
      if (limits) {
        const OptionInfo* const row = find_option(OptionOf::limit, name);
        std::vector<std::string_view> names;
        for (const OptionInfo& each : options_of(OptionOf::limit)) names.push_back(each.name);
        if (!row) refuse("there is no such limit" + allowed(name, names));
        numbers.push_back(number(*row));
      } else {
        if (!in_.enter_array()) refuse_value("a list of dimensions");
        const std::string list = path_;
        for (std::uint64_t dim = 0; in_.next_element(); numbers.push_back(dim)) {
          path_ = list + "[" + std::to_string(numbers.size()) + "]";
          kind_ = in_.peek();
          if (!in_.read_u64(dim)) refuse_value("a whole number");
        }
      }
      out.numbers.emplace_back(std::move(name), std::move(numbers));
    }
    std::ranges::sort(out.numbers);
    const auto twice = std::ranges::adjacent_find(out.numbers, {}, [](const auto& each) { return each.first; });
    if (twice != out.numbers.end()) {
      path_ = path_of(twice->first);
      refuse("the key is there twice");
    }
    path_ = object;
  }

  std::string_view json_;
  JsonReader in_;
  std::string path_;                // of what is being read; empty: the policy itself
  JsonKind kind_ = JsonKind::none;  // of the value that is being read
};

}  // namespace

Policy read_policy(std::string_view json, std::string name) {
  Policy out = PolicyReader(json).read();
  out.name = std::move(name);
  return out;
}

std::span<const std::string_view> ready_policies() noexcept { return kReadyNames; }

std::string_view ready_policy(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kReady, name, &Ready::name);
  return found == std::end(kReady) ? std::string_view() : found->json;
}

}  // namespace weighbridge
