// SPDX-License-Identifier: Apache-2.0
// Fuzz target: whatever opens can be used. Every accessor of the model answers, and payload, read in each of the ways
// there are, is either what the metadata promise or an Error that blames the file.
#include "weighbridge/open.h"

#include <algorithm>

#include "harness.h"
#include "weighbridge/convert.h"
#include "weighbridge/hash.h"
#include "weighbridge/stats.h"

namespace weighbridge::fuzz {
namespace {

// Decoded bytes that one input may cost in all: a small file can name one compressed payload from many tensors.
class Budget {
 public:
  bool take(std::uint64_t bytes) {
    const bool enough = bytes <= left_;
    left_ -= std::min(left_, bytes);
    return enough;
  }

 private:
  std::uint64_t left_ = std::uint64_t{48} << 20;
};

// Runs `read`; an Error must blame the file.
template <class Read> void reading(Read read) {
  try {
    read();
  } catch (const Error& error) {
    expect_files_fault(error.finding());
  }
}

void touch(Attributes attributes) {
  for (const auto& [key, value] : attributes.entries()) {
    const std::string text = value.to_text();
    expect(attributes.find(key) != nullptr, "an attribute is not found under its key");
    expect(value == value, "a value differs from itself: " + text);
  }
}

void touch(const Part& part, const Context& context, Budget& budget) {
  touch(part.extra());
  expect(part.extent().has_value() == (part.encoding() != Encoding::computed), "an extent where none can be");
  if (!budget.take(part.size())) return;
  reading([&] {
    std::uint64_t total = 0;
    part.stream(context, [&](std::span<const std::byte> piece) {
      total += piece.size();
      return true;
    });
    expect(total == part.size(), "a part streams another number of bytes than it says");
  });
  reading([&] { part.stored(); });
  if (part.why_no_view() == NoView::none) expect(part.view().span.size() == part.size(), "a view of another size");
}

void touch(const Tensor& tensor, const Context& context, Budget& budget) {
  touch(tensor.attributes());
  touch(tensor.extra());
  for (std::uint32_t i = 0; i < tensor.part_count(); ++i) {
    const Part part = tensor.part(i);
    expect(tensor.part(part.role()).has_value(), "a part is not found under its role");
    touch(part, context, budget);
  }
  if (tensor.unsupported() != nullptr || !tensor.has_shape()) return;
  const Shape shape = tensor.shape();
  std::uint64_t elements = std::ranges::find(shape, 0U) == shape.end() ? 1 : 0;  // one 0 settles the product
  for (const std::uint64_t extent : shape)
    expect(elements == 0 || !__builtin_mul_overflow(elements, extent, &elements),
           "a shape whose product passes 64 bits");
  const auto bytes = packed_size(tensor.dtype(), elements);
  if (!bytes || *bytes > context.limits.decoded || !budget.take(4 * *bytes)) return;
  reading([&] { expect(tensor.to_dense(context).size == *bytes, "a dense form of another size"); });
  reading([&] { expect(statistics(tensor, context).zeros <= 2 * elements, "more zeros than elements"); });
  reading([&] { content_digest(tensor, context); });
}

void use(const Model& model, const Context& context) {
  Budget budget;
  touch(model.attributes());
  touch(model.extra());
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    const Tensor tensor = model[i];
    const auto found = model.find(tensor.name());
    expect(found && found->index() == i, "a tensor is not found under its name");
    touch(tensor, context, budget);
  }
  // Plans are made of metadata alone.
  for (const FormatInfo& format : formats())
    if (format.writes) reading([&] { plan(model, format.name); });
}

#ifdef WEIGHBRIDGE_PLANTED_BUG
// Breaks on a sound file with a certain name or attribute: no seed holds one, and an input must stay sound to get
// there.
void planted_bug(const Model& model) {
  for (const auto& [key, value] : model.attributes().entries())
    if (has_forbidden_sign(key)) fail("planted bug: a sound file with an attribute of a forbidden name");
  for (std::uint32_t i = 0; i < model.size(); ++i)
    if (has_forbidden_sign(model[i].name())) fail("planted bug: a sound file with a tensor of a forbidden name");
}
#endif

}  // namespace
}  // namespace weighbridge::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weighbridge;
  static const std::vector<std::string> doors = fuzz::doors();
  const Context context = fuzz::small_context();
  std::string seen = "none";
  for (const std::string& door : doors) {
    if (door == seen) continue;  // its content led there already
    Report report;
    const auto model = open(fuzz::source_of(data, size), report, context, {.format = door});
    fuzz::expect_report(report, size);
    fuzz::expect(model.has_value() == report.valid(), "a model in spite of an error, or none without one");
    if (!model) continue;
    if (door.empty()) seen = model->format();
#ifdef WEIGHBRIDGE_PLANTED_BUG
    fuzz::planted_bug(*model);
#endif
    fuzz::use(*model, context);
  }
  return 0;
}
