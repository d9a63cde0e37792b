// SPDX-License-Identifier: Apache-2.0
// Groups tensors by the patterns of their names, and prints the hierarchy of these.
#include "groups.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "weighbridge/scheme.h"
#include "weighbridge/text.h"

namespace weighbridge::cli {
namespace {

constexpr std::size_t kMaxComponents = 16;  // the rest of a name is one
constexpr std::size_t kMaxDigits = 9;       // a longer number is text
constexpr std::size_t kMaxRuns = 3;         // of numbers that are spelled out
constexpr std::size_t kWidestLabel = 60;

// The components of a name, and its separators.
std::pair<std::vector<std::string_view>, std::string> split(std::string_view name) {
  std::pair<std::vector<std::string_view>, std::string> out;
  while (out.first.size() + 1 < kMaxComponents) {
    const std::size_t at = name.find_first_of("./");
    if (at == name.npos) break;
    out.first.push_back(name.substr(0, at));
    out.second += name[at];
    name.remove_prefix(at + 1);
  }
  out.first.push_back(name);
  return out;
}

// Only numbers that are spelled in one way.
std::optional<std::uint32_t> number_in(std::string_view text) {
  if (text.empty() || text.size() > kMaxDigits || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// "{0..5}", "{0,2,4..6}", "{0,2,...,62}"; one number is itself.
std::string text_of(const std::set<std::uint32_t>& numbers) {
  std::vector<std::string> runs;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const std::uint32_t first = *at;
    std::uint32_t last = first;
    while (++at != numbers.end() && *at == last + 1) last = *at;
    runs.push_back(std::to_string(first) + (last > first ? ".." + std::to_string(last) : ""));
  }
  if (numbers.size() == 1) return runs[0];
  std::string out = "{";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool skipped = runs.size() > kMaxRuns && i + 1 >= kMaxRuns && i + 1 < runs.size();
    if (skipped && i + 1 > kMaxRuns) continue;
    out += (i == 0 ? "" : ",") + (skipped ? std::string("...") : runs[i]);
  }
  return out + "}";
}

// What must be equal in all tensors of a group besides the pattern of the name.
std::string kind_of(const Tensor& t) {
  std::string out(type_text(t));
  out += '\n';
  out += t.layout_name();
  for (const Part& part : t.parts()) (out += '\n') += part.encoding_name();
  if (t.unsupported()) out += '!';
  if (t.has_shape())
    for (const std::uint64_t dim : t.shape()) out += "," + std::to_string(dim);
  return out;
}

struct Node {
  std::string label;  // not escaped
  std::uint64_t tensors = 0, size = 0;
  std::optional<std::uint32_t> tensor{};  // one of those with just this name
  std::map<std::string, std::size_t> known{};
  std::vector<Node> beneath{};
};

void add(Node& root, const NameGroup& group) {
  Node* at = &root;
  const auto count = [&](Node& node) {
    node.tensors += group.tensors.size();
    node.size += group.size;
  };
  count(root);
  for (std::size_t i = 0; i < group.path.size(); ++i) {
    const bool leaf = i + 1 == group.path.size();
    std::string label = (i == 0 ? "" : group.between.substr(i - 1, 1)) + group.path[i];
    // A tensor may have the name of a node, and tensors of one name may differ in dtype.
    const std::string key = label + (leaf ? "\n" + std::to_string(group.tensors[0]) : "");
    const auto [found, made] = at->known.emplace(key, at->beneath.size());
    if (made) at->beneath.push_back({.label = std::move(label)});
    at = &at->beneath[found->second];
    count(*at);
    if (leaf) at->tensor = group.tensors[0];
  }
}

struct GroupLine {
  std::string label, tensors, size, kind;
};

void list(const Model& model, const Node& node, std::size_t depth, std::string before, std::vector<GroupLine>& out) {
  // A node with one node beneath it is no level of its own.
  if (node.beneath.size() == 1 && !node.tensor) return list(model, node.beneath[0], depth, before + node.label, out);
  const bool top = depth == 0;
  const std::string label = before + node.label;
  if (!top) {
    GroupLine line{std::string(2 * (depth - 1), ' ') + fitted(depth == 1 ? label : label.substr(1), kWidestLabel),
                   grouped(node.tensors),
                   size_text(node.size),
                   {}};
    if (node.tensor) {
      const Tensor tensor = model[*node.tensor];
      line.kind = shown(tensor.type_name());
      if (tensor.has_shape()) {
        line.kind += " [";
        for (std::size_t i = 0; i < tensor.shape().size(); ++i)
          line.kind += (i == 0 ? "" : ", ") + std::to_string(tensor.shape()[i]);
        line.kind += "]";
      }
    }
    out.push_back(std::move(line));
  }
  for (const Node& each : node.beneath) list(model, each, depth + 1, {}, out);
}

}  // namespace

std::string_view type_text(const Tensor& t) noexcept {
  const StoredWeight* const weight = stored_weight(t);
  return weight != nullptr ? std::string_view(weight->text) : t.type_name();
}

std::uint64_t logical_size(const Tensor& t) {
  if (const StoredWeight* const weight = stored_weight(t)) return weight->bytes;
  std::uint64_t size = 0;
  for (std::uint32_t i = 0; i < t.part_count(); ++i) size += t.part(i).size();
  return size;
}

std::string NameGroup::name() const {
  std::string out = path[0];
  for (std::size_t i = 1; i < path.size(); ++i) (out += between[i - 1]) += path[i];
  return out;
}

std::vector<NameGroup> group(const Model& model, std::span<const std::uint32_t> tensors) {
  std::vector<NameGroup> out;
  std::vector<std::vector<std::set<std::uint32_t>>> numbers;  // of each group, by component; empty: no number
  std::map<std::string, std::size_t> known;
  for (const std::uint32_t i : tensors) {
    const Tensor tensor = model[i];
    const auto [path, between] = split(tensor.name());
    std::string key;
    for (const std::string_view part : path) (key += number_in(part) ? std::string_view("\n") : part) += '\0';
    (key += between) += kind_of(tensor);
    const auto [found, made] = known.emplace(std::move(key), out.size());
    if (made) {
      out.push_back({.path = {path.begin(), path.end()}, .between = between, .tensors = {}});
      numbers.emplace_back(path.size());
    }
    NameGroup& group = out[found->second];
    group.tensors.push_back(i);
    group.size += logical_size(tensor);
    for (std::size_t k = 0; k < path.size(); ++k)
      if (const auto number = number_in(path[k])) numbers[found->second][k].insert(*number);
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    for (std::size_t k = 0; k < out[i].path.size(); ++k)
      if (!numbers[i][k].empty()) out[i].path[k] = text_of(numbers[i][k]);
  return out;
}

void print_tree(Output& out, const Model& model, const std::vector<NameGroup>& groups) {
  Node root{.label = {}};
  for (const NameGroup& each : groups) add(root, each);
  std::vector<GroupLine> lines;
  // The root is no node of the names: one node beneath it stays a level.
  for (const Node& each : root.beneath) list(model, each, 1, {}, lines);
  std::size_t label = 4, tensors = 7, size = 4;
  for (const GroupLine& line : lines) {
    label = std::max(label, display_width(line.label));
    tensors = std::max(tensors, line.tensors.size());
    size = std::max(size, line.size.size());
  }
  const auto right = [](std::string_view text, std::size_t width) {
    return std::string(text.size() < width ? width - text.size() : 0, ' ') + std::string(text);
  };
  out.toned(Tone::heading,
            "name" + std::string(label - 4, ' ') + "  " + right("tensors", tensors) + "  " + right("size", size));
  out.text("\n");
  for (const GroupLine& line : lines) {
    if (out.closed()) return;
    out.text(line.label + std::string(label - display_width(line.label), ' ') + "  " + right(line.tensors, tensors) +
             "  " + right(line.size, size) + (line.kind.empty() ? "" : "  " + line.kind) + "\n");
  }
}

}  // namespace weighbridge::cli
