// SPDX-License-Identifier: Apache-2.0
#include "core/model/view.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/model/plan_text.h"
#include "core/model/state.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"

namespace weighbridge::core {
namespace {

// Attributes that say when, where or by which program the input was made. Those that begin with "hf." come from
// config.json.
constexpr std::string_view kProvenance[] = {"created_at", "hf._name_or_path", "hf.transformers_version"};
// Readers refuse files with deeper values.
constexpr std::uint32_t kMaxDepth = 256;

void sort_entries(std::vector<Value::Entry>& entries) { std::ranges::stable_sort(entries, {}, &Value::Entry::first); }

// The value with the keys of its maps in order.
Value sorted(const Value& value, std::uint32_t depth = 0) {
  if (depth == kMaxDepth) return value;
  if (value.kind() == Value::Kind::map) {
    std::vector<Value::Entry> entries;
    for (const auto& [key, each] : value.map()) entries.emplace_back(key, sorted(each, depth + 1));
    sort_entries(entries);
    return Value::map(std::move(entries));
  }
  if (value.kind() == Value::Kind::list) {
    std::vector<Value> items;
    for (const Value& each : value.list()) items.push_back(sorted(each, depth + 1));
    return Value::list(std::move(items));
  }
  return value;
}

std::vector<Value::Entry> sorted(const Attributes& attributes) {
  std::vector<Value::Entry> entries;
  entries.reserve(attributes.size());
  for (const auto& [key, value] : attributes) entries.emplace_back(key, sorted(value));
  sort_entries(entries);
  return entries;
}

// The next value of JSON, with the keys of its objects in order.
std::string sorted(wire::JsonReader& in) {
  std::string out, scratch;
  if (in.peek() == wire::JsonKind::object && in.enter_object()) {
    std::vector<std::pair<std::string, std::string>> members;
    for (wire::JsonString key; in.next_key(key);) {
      std::string name(wire::json_text(key, scratch));
      members.emplace_back(std::move(name), sorted(in));
    }
    std::ranges::stable_sort(members, {}, &std::pair<std::string, std::string>::first);
    for (const auto& [name, value] : members) {
      out += out.empty() ? '{' : ',';
      wire::append_json_string(out, name);
      (out += ':') += value;
    }
    return out.empty() ? "{}" : out + '}';
  }
  if (in.peek() == wire::JsonKind::array && in.enter_array()) {
    while (in.next_element()) (out += out.empty() ? '[' : ',') += sorted(in);
    return out.empty() ? "[]" : out + ']';
  }
  std::string_view raw;
  in.skip_value(raw);
  return std::string(raw);
}

// The members of config.json are attributes; objects among them are JSON texts.
void sort_json(Value::Entry& entry) {
  const auto text = entry.second.as_text();
  if (!entry.first.starts_with("hf.") || !text || text->empty() || (text->front() != '{' && text->front() != '['))
    return;
  wire::JsonReader in(*text);
  std::string out = sorted(in);
  if (in.ok() && in.finish()) entry.second = Value::text(std::move(out));
}

class CanonicalMaker {
 public:
  explicit CanonicalMaker(const Model& model) : model_(model) {}

  Derived run() {
    draft_.begin_view(model_);
    for (const std::uint32_t i : by_name(model_)) add(model_[i]);
    draft_.index_sorted_names();
    add_attributes();
    for (const auto& [key, value] : model_.extra()) lose_extra(indexed("extra", key), value);
    draft_.set_extra({});
    if (const auto tokenizer = model_.tokenizer()) draft_.set_tokenizer(canonical(*tokenizer));
    out_.model = draft_.finish();
    return std::move(out_);
  }

 private:
  void lose(LossKind kind, std::string what, std::string from, std::string to) {
    out_.losses.push_back({kind, std::move(what), std::move(from), std::move(to)});
  }
  void lose_extra(std::string what, const Value& value) {
    lose(LossKind::extra, std::move(what), value.to_text(),
         "dropped: an unknown key is not content of a canonical file");
  }

  void add(const Tensor& tensor) {
    const std::uint32_t at = draft_.adopt(tensor.name(), tensor);
    draft_.sort_parts();
    for (const auto& [key, value] : tensor.extra()) lose_extra(subject(tensor) + "." + indexed("extra", key), value);
    if (!tensor.extra().empty() || !tensor.attributes().empty())
      draft_.tensor(at).extra({}).attributes(sorted(tensor.attributes()));
  }

  void add_attributes() {
    std::vector<Value::Entry> entries = sorted(model_.attributes());
    std::erase_if(entries, [&](const Value::Entry& entry) {
      const auto& [key, value] = entry;
      if (std::ranges::find(kProvenance, key) == std::end(kProvenance) && key != named_after_place(model_))
        return false;
      out_.changes.push_back({LossKind::attribute, indexed("attributes", key), value.to_text(),
                              "left out: it describes how the input was made"});
      return true;
    });
    for (Value::Entry& entry : entries) sort_json(entry);
    draft_.set_attributes(std::move(entries));
  }

  const Model& model_;
  Draft draft_;
  Derived out_;
};

}  // namespace

Tokenizer canonical(Tokenizer from) {
  std::ranges::sort(from.special);
  std::ranges::stable_sort(from.merges, {}, &Tokenizer::Merge::rank);
  if (from.ids.size() != from.tokens.size()) return from;
  std::vector<std::uint32_t> order(from.ids.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return from.ids[i]; });
  Tokenizer out = from;
  out.tokens = {};
  out.ids.clear();
  bool counts_up = true;
  for (const std::uint32_t i : order) {
    counts_up &= from.ids[i] == out.ids.size();
    out.tokens.push_back(from.tokens[i]);
    out.ids.push_back(from.ids[i]);
  }
  if (counts_up) out.ids.clear();
  return out;
}

Derived canonical(const Model& model) {
  if (Access::state(model) == nullptr) return {model, {}, {}};
  return CanonicalMaker(model).run();
}
}  // namespace weighbridge::core
