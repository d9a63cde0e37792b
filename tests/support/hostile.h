// SPDX-License-Identifier: Apache-2.0
// Checks that must hold for any bytes: only the file is blamed, open and verify agree, and what opens can be used. For
// fuzz targets and for the generated files of tests/corpus, which choose the bytes and formats. A failing check ends
// the program with a message, which both report.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "support/agreement.h"
#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/error.h"
#include "weighbridge/formats.h"
#include "weighbridge/hash.h"
#include "weighbridge/model.h"
#include "weighbridge/stats.h"

namespace weighbridge::hostile {

[[noreturn]] inline void fail(std::string_view sentence) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(sentence.size()), sentence.data());
  std::abort();
}

inline void expect(bool holds, std::string_view sentence) {
  if (!holds) fail(sentence);
}

// Small limits, so that a run tries a thousand inputs per second rather than one large one.
inline Context small_context() {
  Context context;
  context.limits = {.memory = std::uint64_t{64} << 20,
                    .header = std::uint64_t{16} << 20,
                    .tensors = 100'000,
                    .decoded = std::uint64_t{16} << 20,
                    .depth = 32};
  return context;
}

// Requires a kind that can be the file's fault. io and misuse would be bugs in the library, because the bytes are
// complete and the calls here are valid.
inline void expect_files_fault(const Finding& finding) {
  expect(finding.kind == Kind::malformed || finding.kind == Kind::unsupported || finding.kind == Kind::limit,
         "the file is blamed with the wrong kind: " + finding.rule + ": " + finding.message);
}

// The size of the file that a finding is about.
using SizeOf = std::function<std::uint64_t(const FileRef&)>;
inline void expect_report(const Report& report, const SizeOf& size_of) {
  for (const Finding& finding : report.findings()) {
    expect_files_fault(finding);
    expect(!finding.rule.empty() && !finding.message.empty(), "a finding without rule or sentence");
    expect(!finding.offset || *finding.offset <= size_of(finding.file),
           "a finding after the end of the file: " + finding.message);
  }
}
inline void expect_report(const Report& report, std::uint64_t size) {
  expect_report(report, [&](const FileRef&) { return size; });
}

// open() must stop at the first error of verify(), unless only verify checks that one, and nowhere else.
inline void expect_agreement(const Report& opened, bool opens, const Report& verified) {
  expect(opens == opened.valid(), "a model in spite of an error, or none without one");
  const Finding* first = opened.first_error();
  expect(opens || first != nullptr, "open fails and does not say why");
  const std::string sentence = test::disagreement(opens ? nullptr : first, verified);
  expect(sentence.empty(), sentence);
}

// Runs `read`; an Error must blame the file.
template <class Read> void reading(Read read) {
  try {
    read();
  } catch (const Error& error) {
    expect_files_fault(error.finding());
  }
}

// Limits the decoded bytes of one input: a small file can refer to one compressed payload from many tensors.
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

inline void touch(Attributes attributes) {
  for (const auto& [key, value] : attributes) {
    const std::string text = value.to_text();
    expect(attributes.find(key) != nullptr, "an attribute is not found under its key");
    expect(value == value, "a value differs from itself: " + text);
  }
}

inline void touch(const Part& part, const Context& context, Budget& budget) {
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
  if (part.extent()) reading([&] { part.stored(); });  // a computed part has none
  if (part.why_no_view() == NoView::none) expect(part.view().span.size() == part.size(), "a view of another size");
}

inline void touch(const Tensor& tensor, const Context& context, Budget& budget) {
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

// Every accessor of the model must work, and reading payload in any way must give what the metadata promise or an Error
// that blames the file.
inline void use(const Model& model, const Context& context) {
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

}  // namespace weighbridge::hostile
