// SPDX-License-Identifier: Apache-2.0
// What both directions between transformers and llama.cpp share, models and adapters: names as the patterns of rows
// spell them, and tensors whose rows are in another order.
#include "convert/architectures.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "core/model/draft.h"
#include "core/payload/elements.h"
#include "wire/json_reader.h"

namespace weighbridge::convert {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(at), text.size());
    if (end > 0) out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::optional<Named> match(std::string_view spelling, std::string_view name) {
  Named out;
  std::vector<std::string_view> parts = split(name, '.');
  const std::vector<std::string_view> pattern = split(spelling, '.');
  if (parts.size() < pattern.size() || parts.size() > pattern.size() + 1) return std::nullopt;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == parts[i]) continue;
    const auto number = pattern[i] == "N" || pattern[i] == "E" ? wire::as_u64(parts[i]) : std::nullopt;
    if (!number || *number > UINT16_MAX) return std::nullopt;
    (pattern[i] == "N" ? out.layer : out.expert) = *number;
  }
  if (parts.size() > pattern.size()) {
    if (parts.back() != "weight" && parts.back() != "bias") return std::nullopt;
    out.tail = name.substr(name.size() - parts.back().size() - 1);
  }
  return out;
}

std::string spelled(std::string_view to, std::uint64_t layer, std::uint64_t expert, std::string_view tail) {
  std::string out;
  for (const std::string_view part : split(to, '.'))
    out += (out.empty() ? "" : ".") + (part == "N"   ? std::to_string(layer)
                                       : part == "E" ? std::to_string(expert)
                                                     : std::string(part));
  return out + std::string(tail);
}

std::string plain_name(std::string_view given) {
  std::string name(given);
  for (const std::string_view infix : {"language_model.", "text_model."})
    if (const std::size_t at = name.find(infix); at != name.npos) name.erase(at, infix.size());
  if (name.starts_with("model.model.")) name.erase(0, 6);
  return name;
}

std::optional<Named> find_row(const Architecture& row, std::string_view name) {
  for (const std::string_view prefix : split(row.prefixes, ' '))
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  for (const std::span<const TensorRow> rows : {row.names, row.family})
    for (const TensorRow& each : rows)
      if (auto found = match(each.from, name)) {
        found->row = &each;
        return found;
      }
  return std::nullopt;
}

std::uint64_t paired_row(std::uint64_t row, std::uint64_t head) {
  const std::uint64_t in = row % head;
  return row - in + in % 2 * (head / 2) + in / 2;
}
std::uint64_t unpaired_row(std::uint64_t row, std::uint64_t head) {
  const std::uint64_t in = row % head, half = head / 2;
  return row - in + in % half * 2 + in / half;
}

core::ElementsPtr arranged(std::vector<core::ElementsPtr> inputs, std::uint64_t rows, std::uint64_t columns,
                           std::function<Line(std::uint64_t row)> line) {
  const DType dtype = inputs[0]->dtype();
  const std::size_t width = info(dtype).bits / 8;
  return core::made_elements(
      dtype, rows * columns,
      [=, inputs = std::move(inputs)](std::uint64_t first, std::uint64_t n, std::span<std::byte> out,
                                      const Context& context) {
        std::vector<std::byte> panel;
        for (std::uint64_t at = first; at < first + n;) {
          const std::uint64_t row = at / columns, skip = at % columns, take = std::min(columns - skip, first + n - at);
          const Line from = line(row);
          const auto to = out.subspan(base::to_size((at - first) * width), base::to_size(take * width));
          if (from.step == 1) {
            // Rows that follow each other in the input are one read.
            std::uint64_t all = take;
            while (at + all < first + n) {
              const Line next = line((at + all) / columns);
              if (next.input != from.input || next.step != 1 || next.first != from.first + skip + all) break;
              all += std::min(columns, first + n - at - all);
            }
            inputs[from.input]->read(from.first + skip, all,
                                     out.subspan(base::to_size((at - first) * width), base::to_size(all * width)),
                                     context);
            at += all;
            continue;
          }
          // Whole rows that are neighboring columns of the input: read in runs of these.
          std::uint64_t together = 1;
          if (skip == 0)
            while (at + together * columns + columns <= first + n) {
              const Line next = line(row + together);
              if (next.input != from.input || next.step != from.step || next.first != from.first + together) break;
              ++together;
            }
          panel.resize(base::to_size(together * width));
          for (std::uint64_t c = 0; c < take; ++c) {
            inputs[from.input]->read(from.first + (skip + c) * from.step, together, panel, context);
            for (std::uint64_t r = 0; r < together; ++r)
              std::memcpy(to.data() + (r * columns + c) * width, panel.data() + r * width, width);
          }
          at += together > 1 ? together * columns : take;
        }
      });
}

core::ElementsPtr added_to(const Tensor& tensor, float by) {
  const bool half = tensor.dtype() == DType::f16;
  const core::Mapping sum{.dtype = DType::f32,
                          .make = [by](std::uint64_t, std::span<const std::byte> in, std::span<std::byte> out,
                                       const Context&, codecs::CastTally*) {
                            for (std::size_t i = 0; i < in.size(); i += sizeof(float)) {
                              float value;
                              std::memcpy(&value, in.data() + i, sizeof value);
                              value += by;
                              std::memcpy(out.data() + i, &value, sizeof value);
                            }
                          }};
  core::ElementsPtr values = core::mapped(core::elements_of(tensor, DType::f32), sum);
  if (half) values = core::cast_of(tensor, std::move(values), DType::f16);
  return values;
}
void add_dense(core::Draft& draft, const std::string& name, std::vector<std::uint64_t> shape, core::ElementsPtr values,
               const Tensor& like) {
  const DType dtype = values->dtype();
  const std::uint32_t at = draft.add_tensor(name, Layout::dense, dtype, shape);
  if (const DType decided = core::write_as(like); decided != DType::unknown) draft.tensor(at).write_as(decided);
  draft.part(draft.add_part("data", dtype, shape, Encoding::computed, {}, values->count() * (info(dtype).bits / 8)))
      .elements(std::move(values));
}

}  // namespace weighbridge::convert
