// SPDX-License-Identifier: Apache-2.0
// Objects in the usual spelling are read in one step (UsualObject). These tests compare that with the walk that reads
// every spelling: they respell the first byte of an object's map, which means the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/endian.h"
#include "formats/ztensor/v1/format.h"
#include "formats/ztensor/v1/judge.h"
#include "formats/ztensor/v1/layout.h"
#include "support/cbor_items.h"
#include "support/format_testing.h"

namespace weighbridge::ztensor1 {
namespace {

using wire::items::array;
using wire::items::Fields;
using wire::items::map;

using wire::items::t, wire::items::u;

std::string object(const std::vector<std::uint64_t>& shape, std::string_view dtype, std::uint64_t offset,
                   std::uint64_t length) {
  std::vector<std::string> dims;
  for (const std::uint64_t dim : shape) dims.push_back(u(dim));
  const std::string part = map({{t(kDtype), t(dtype)}, {t(kOffset), u(offset)}, {t(kLength), u(length)}});
  return map({{t(kShape), array(dims)}, {t(kFormatKey), t("dense")}, {t(kComponents), map({{t(kData), part}})}});
}

std::string with_manifest(std::string file, std::string_view manifest) {
  char size[8];
  base::store_le<std::uint64_t>(size, manifest.size());
  return file.append(manifest).append(size, sizeof size).append(kMagic);
}

// Sizes and offsets whose numbers are of 1, 2, 3, 5 and 9 bytes; the last one is no tensor of the file.
const std::vector<std::string> kSamples{object({2, 3}, "f32", 64, 24), object({}, "bf16", 128, 2),
                                        object({0, 12345678901}, "u8", 256, 0), object({300, 2}, "i8", 320, 600),
                                        object({70000}, "bool", 64, 70000)};
std::string file_of(const std::vector<std::string>& objects) {
  std::string file(kMagic);
  file.resize(1024, '\0');
  Fields fields;
  for (const std::string& each : objects) fields.emplace_back(t("t" + std::to_string(fields.size())), each);
  return with_manifest(std::move(file), map({{t(kVersion), t("1.1.0")}, {t(kObjects), map(fields)}}));
}

// The map of an object with its number of entries in the first byte, and in a byte of its own.
constexpr std::string_view kUsualMap = "\243", kLongerMap = "\270\003";

// The same file without a usual spelling: the map of each object has its number of entries in a byte of its own.
struct Respelled {
  std::string bytes;
  std::vector<std::uint64_t> longer;  // the offsets of these maps
};
Respelled respell(const std::string& file) {
  Respelled out{file, {}};
  if (file.size() < kMinFile) return out;
  const auto length = base::load_le<std::uint64_t>(file.data() + file.size() - kFooterSize);
  if (length > file.size() - kMinFile) return out;
  const auto size = static_cast<std::size_t>(length);
  std::string manifest = file.substr(file.size() - kFooterSize - size, size);
  const std::string before = file.substr(0, file.size() - kFooterSize - size);
  for (std::size_t at = 0; (at = manifest.find(std::string(kUsualMap) + "eshape", at)) != std::string::npos; at += 2) {
    manifest.replace(at, 1, kLongerMap);
    out.longer.push_back(before.size() + at);
  }
  out.bytes = with_manifest(before, manifest);
  return out;
}

// All findings and all tensors. Offsets are those that the file would have without the longer maps.
std::string outcome_text(const std::string& bytes, const Context& context, const std::vector<std::uint64_t>& longer) {
  const auto [report, model] = test::walk(kFormat, bytes, context);
  std::string out;
  const auto add = [&](std::string_view text) { out.append(text).append(" "); };
  const auto add_finding = [&](const Finding& f) {
    std::optional<std::uint64_t> offset = f.offset;
    if (offset) *offset -= static_cast<std::uint64_t>(std::ranges::lower_bound(longer, *offset) - longer.begin());
    add(f.rule);
    add(offset ? std::to_string(*offset) : "-");
    add(f.has_tensor ? f.tensor : "-");
    add(f.message);
    add("\n");
  };
  for (const Finding& f : report.findings()) add_finding(f);
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    const Tensor tensor = model[i];
    add(model.name(i));
    add(tensor.layout_name());
    add(tensor.type_name());
    for (const std::uint64_t dim : tensor.shape()) add(std::to_string(dim));
    if (tensor.unsupported() != nullptr) add_finding(*tensor.unsupported());
    for (const Part& part : tensor.parts()) {
      add(part.role());
      add(part.dtype_name());
      add(part.encoding_name());
      add(part.digest());
      for (const std::uint64_t dim : part.shape()) add(std::to_string(dim));
      add(std::to_string(part.size()) + " of " + std::to_string(part.extent()->offset) + "+" +
          std::to_string(part.extent()->length));
    }
    add("\n");
  }
  return out;
}

// Both spellings are told alike. Returns what is told.
std::string expect_alike(const std::string& file, const Context& context = {}) {
  const Respelled other = respell(file);
  const std::string first = outcome_text(file, context, {});
  EXPECT_EQ(first, outcome_text(other.bytes, context, other.longer));
  return first;
}

TEST(ZtensorUsual, AnObjectIsReadToItsEndOrNotAtAll) {
  for (const std::string& whole : kSamples) {
    EXPECT_EQ(UsualObject{}.read(whole + "\xA3"), whole.size());
    for (std::size_t length = 0; length < whole.size(); ++length)
      EXPECT_EQ(UsualObject{}.read(std::string_view(whole).substr(0, length)), 0U);
    EXPECT_EQ(UsualObject{}.read(std::string(kLongerMap) + whole.substr(1)), 0U);
  }
  UsualObject last;
  last.read(kSamples[4]);
  EXPECT_EQ(last.dtype, "bool");
  EXPECT_EQ(last.shape().front(), 70000U);
  EXPECT_EQ(last.offset, 64U);
  EXPECT_EQ(last.length, 70000U);
  const std::vector<std::uint64_t> many(24, 1);
  EXPECT_EQ(UsualObject{}.read(object({many.begin(), many.end() - 1}, "u8", 64, 1)), 23 + 7 + 1 + 37 + 3 + 9 + 8U);
  EXPECT_EQ(UsualObject{}.read(object(many, "u8", 64, 1)), 0U);
}

TEST(ZtensorUsual, TheCorpusIsJudgedAlike) {
  int respelled = 0;
  for (const core::CorpusCase& c : cases()) {
    SCOPED_TRACE(c.name);
    Context context;
    context.limits = c.limits;
    expect_alike(c.bytes, context);
    respelled += respell(c.bytes).longer.empty() ? 0 : 1;
  }
  EXPECT_GT(respelled, 50);
}

// Only the object that is damaged is respelled, because it may swallow the beginnings of those that follow.
TEST(ZtensorUsual, ObjectsWithADamagedByteAreJudgedAlike) {
  const std::string sound = expect_alike(file_of(kSamples));
  EXPECT_EQ(std::ranges::count(sound, '\n'), 5) << sound;  // a finding and four tensors
  int readable = 0, unreadable = 0;
  const auto compare = [&](std::vector<std::string> objects, std::size_t which) {
    const std::string file = file_of(objects);
    if (!objects[which].starts_with(kUsualMap)) return;
    objects[which].replace(0, 1, kLongerMap);
    const std::string other = file_of(objects);
    const auto map_at = static_cast<std::uint64_t>(std::ranges::mismatch(file, other).in1 - file.begin());
    const std::string all = outcome_text(file, {}, {});
    ASSERT_EQ(all, outcome_text(other, {}, {map_at}));
    ++(all.find("zt/cbor") == std::string::npos ? readable : unreadable);
  };
  for (std::size_t which = 0; which < kSamples.size(); ++which) {
    for (std::size_t at = 0; at < kSamples[which].size(); ++at) {
      SCOPED_TRACE("byte " + std::to_string(at) + " of object " + std::to_string(which));
      std::vector<std::string> objects = kSamples;
      const auto byte = static_cast<unsigned char>(objects[which][at]);
      for (const unsigned value :
           {byte - 1U, byte + 1U, byte ^ 0x80U, byte ^ 0x20U, 0U,    0x17U, 0x18U, 0x19U, 0x1AU, 0x1BU, 0x1CU,
            0x1FU,     0x40U,     0x61U,        0x78U,        0x7FU, 0x81U, 0xA1U, 0xA3U, 0xBFU, 0xF6U, 0xFFU}) {
        objects[which][at] = static_cast<char>(value);
        compare(objects, which);
      }
      objects[which] = kSamples[which];
      compare((objects[which].erase(at, 1), objects), which);
      compare((objects[which].insert(at, 2, kSamples[which][at]), objects), which);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(readable, 1000);
  EXPECT_GT(unreadable, 1000);
}

TEST(ZtensorUsual, NestingIsCounted) {
  const std::string file = file_of({kSamples[0]});
  Context context;
  for (std::uint32_t depth = 1; depth < 8; ++depth) {
    context.limits.depth = depth;
    EXPECT_EQ(expect_alike(file, context).find("limit/depth") == std::string::npos, depth >= 5) << depth;
  }
}

TEST(ZtensorUsual, ADifferentRoleTooManyIsRejected) {
  Fields roles;
  for (int i = 0; i < 256; ++i)
    roles.emplace_back(t("r" + std::to_string(i)),
                       map({{t(kDtype), t("u8")}, {t(kOffset), u(64)}, {t(kLength), u(1)}}));
  const std::string strange = map({{t(kShape), array({})}, {t(kFormatKey), t("x")}, {t(kComponents), map(roles)}});
  EXPECT_NE(expect_alike(file_of({strange, kSamples[0]})).find("zt/too-many-roles"), std::string::npos);
}

}  // namespace
}  // namespace weighbridge::ztensor1
