// SPDX-License-Identifier: Apache-2.0
// Structure that is written anew over data that are whole: the index of shards, the header of an array.
#include <algorithm>
#include <map>
#include <optional>

#include "core/reading/findings.h"
#include "core/reading/shards.h"
#include "doctor/damage.h"
#include "formats/huggingface/layout.h"
#include "formats/numpy/header.h"
#include "io/place.h"
#include "io/read.h"
#include "registry/load.h"
#include "registry/registry.h"
#include "weighbridge/dtype.h"
#include "weighbridge/json_writer.h"
#include "wire/json_reader.h"

namespace weighbridge::doctor {
namespace {

// Each tensor of the model, and the file with it.
using Map = std::map<std::string, std::string, std::less<>>;

std::optional<Map> read_index(const std::string& text, const Limits& limits) {
  Map out;
  const bool good = core::each_in_index(text, limits, [&](std::string_view tensor, std::string_view file) {
    return out.size() < limits.tensors && out.emplace(tensor, file).second;
  });
  return good ? std::optional(std::move(out)) : std::nullopt;
}

// Whether the shards are there from the first to the last, as their names count them, and no other file instead.
bool has_all_shards(const std::vector<std::string>& files, const huggingface::WeightFiles& kind) {
  std::uint64_t next = 1, count = 0;
  for (const std::string& file : files) {  // which are sorted
    if (file == kind.whole) return false;
    const auto shard = core::parse_shard_name(file, kind.suffix);
    if (!shard || shard->stem != kind.stem) continue;
    if (next > 1 && shard->count != count) return false;
    count = shard->count;
    if (shard->number != next++) return false;
  }
  return count > 0 && next == count + 1;
}

}  // namespace

std::shared_ptr<const Place> with_new_index(const std::shared_ptr<const Place>& place, const Context& context,
                                            std::vector<std::string>& lost) {
  for (const huggingface::WeightFiles& kind : huggingface::kWeightKinds) {
    const auto index = place->open(kind.index);
    const std::vector<std::string> files = place->list();
    if (index ? index->size() > context.limits.header : !has_all_shards(files, kind)) continue;
    const auto old = index ? read_index(io::text_of(*index), context.limits) : Map();
    if (!old) return nullptr;
    const std::string name(kind.index), whole(kind.whole);
    Map now;
    const auto take = [&](const std::string& file) {
      Report report;
      core::Findings findings(report, core::Findings::Mode::all);
      const auto source = place->open(file);
      if (!source) return false;
      const Model shard = registry::load_file(*registry::find(kind.format), source, context, findings);
      return report.valid() && std::ranges::all_of(shard, [&](const Tensor& tensor) {
               return now.size() < context.limits.tensors && now.try_emplace(std::string(tensor.name()), file).second;
             });
    };
    const auto stale = [&] {  // none of its files is there
      return std::ranges::none_of(*old, [&](const auto& entry) { return place->open(entry.second) != nullptr; });
    };
    const auto has_most = [&] {
      for (const auto& [tensor, file] : *old)
        if (!now.contains(tensor)) lost.push_back(tensor);
      return lost.empty() || (lost.size() * 2 < old->size() && stale());
    };
    if (place->open(whole))
      return stale() && take(whole) && has_most() ? io::with_files(place, {{name, nullptr}}) : nullptr;
    for (const std::string& file : files)
      if (file.starts_with(kind.stem) && file.ends_with(kind.suffix) && core::parse_shard_name(file, kind.suffix) &&
          !take(file))
        return nullptr;
    if (!has_most()) return nullptr;
    JsonWriter out;
    out.begin_object();
    out.key("weight_map");
    out.begin_object();
    for (const auto& [tensor, file] : now) out.member(tensor, file);
    out.end_object();
    out.end_object();
    return io::with_text(place, name, out.take());
  }
  return nullptr;
}

namespace {

// What stands after `'key':` in a text, without spaces, up to one of the ends.
std::string_view value_after(std::string_view text, std::string_view key, std::string_view ends) {
  const std::size_t at = text.find(key), colon = text.find(':', at == text.npos ? at : at + key.size());
  if (at == text.npos || colon == text.npos) return {};
  text.remove_prefix(colon + 1);
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t")));
  const std::size_t end = text.find_first_of(ends, 1);
  return end == text.npos ? std::string_view() : text.substr(0, end);
}

// The dictionary as numpy.save writes it, of what a text states in any form; empty if it does not.
std::string usual_header(std::string_view text) {
  const std::string_view type = value_after(text, "descr", "'\""), order = value_after(text, "fortran_order", ",}"),
                         shape = value_after(text, "shape", ")");
  if (type.size() < 2 || !shape.starts_with('(') || (!order.starts_with("True") && !order.starts_with("False")))
    return {};
  std::string dims;
  std::size_t count = 0;
  for (std::size_t i = 1; i < shape.size(); ++i) {
    const bool digit = shape[i] >= '0' && shape[i] <= '9';
    if (!digit && shape[i] != ',' && shape[i] != ' ' && shape[i] != 'L') return {};  // Python 2 writes 4L
    const bool first = digit && (shape[i - 1] < '0' || shape[i - 1] > '9');
    if (first && count++ > 0) dims += ", ";
    if (digit) dims += shape[i];
  }
  if (count == 1) dims += ",";
  return "{'descr': '" + std::string(type.substr(1)) + "', 'fortran_order': " + (order[0] == 'T' ? "True" : "False") +
         ", 'shape': (" + dims + "), }";
}

}  // namespace

std::shared_ptr<const Source> with_new_npy_header(const std::shared_ptr<const Source>& file, std::string& text) {
  constexpr std::uint64_t kMaxText = 4096, kAlignment = 64, kPreamble = 10;
  const std::string head = io::head_of(*file, kMaxText);
  const std::size_t open = head.find('{');
  if (!head.starts_with(numpy::kMagic) || open == head.npos) return nullptr;
  const std::string stated = usual_header(std::string_view(head).substr(open));
  if (stated.empty()) return nullptr;
  std::string front = std::string(numpy::kMagic) + std::string("\x01\0", 2);
  const std::size_t whole = (kPreamble + stated.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t length = whole - kPreamble;
  front += {static_cast<char>(length & 0xFF), static_cast<char>(length >> 8)};
  front += stated + std::string(length - stated.size() - 1, ' ') + "\n";
  numpy::Fault fault;
  const auto header = numpy::read_header(front, numpy::kNpyRules, fault);
  if (!header || header->unsupported != nullptr) return nullptr;
  // The elements end with the file, and nothing but the end of the text is between the two.
  const auto size = numpy::size_of(header->dtype, header->shape);
  const std::size_t shape_end = head.find(')', open);
  if (!size || *size >= file->size() || shape_end == head.npos) return nullptr;
  const std::uint64_t begin = file->size() - *size;
  if (begin > head.size() || begin <= shape_end ||
      (head[base::to_size(begin) - 1] != '\n' && numpy::bytes_before_elements(head) != begin) ||
      std::string_view(head).substr(shape_end + 1, base::to_size(begin) - shape_end - 1).find_first_not_of(", }\n") !=
          std::string_view::npos)
    return nullptr;
  text = head.substr(open, base::to_size(begin) - open);
  text.resize(text.find_last_not_of(" \n") + 1);
  return std::make_shared<const Continued>(file, ByteRange{begin, *size}, std::string(), front.size() + *size, front);
}

}  // namespace weighbridge::doctor
