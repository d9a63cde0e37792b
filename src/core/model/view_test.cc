// SPDX-License-Identifier: Apache-2.0
// What a view selects, changes and refuses.
#include "core/model/view.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/thrown.h"

namespace weighbridge {
namespace {

using test::thrown;
using Strings = std::vector<std::string>;

Bytes bytes_of(std::string text) {
  const auto held = std::make_shared<const std::string>(std::move(text));
  return {std::as_bytes(std::span(*held)), held};
}

Model sample() {
  Builder builder;
  builder.attribute("heads", Value::integer(std::uint64_t{2}));
  builder.attribute("name", Value::text("before"));
  builder.attribute("last", Value::boolean(true));
  for (const char* const name : {"bert.a", "bert.b", "cls.bias"})
    builder.tensor(name, DType::u8, {4}, bytes_of(std::string(name).substr(0, 3) + name[5]));
  return builder.build();
}

Strings names_of(const Model& model) {
  Strings out;
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    const Tensor tensor = model[i];
    out.emplace_back(tensor.name());
  }
  return out;
}

std::string attributes_of(const Model& model) {
  std::string out;
  const auto attributes = model.attributes();
  for (const auto& [key, value] : attributes)
    out += key + (value.kind() == Value::Kind::text ? "=" : ":") + value.to_text() + " ";
  return out;
}

std::string text_of(const Tensor& tensor) {
  const Array array = tensor.to_dense();
  return {reinterpret_cast<const char*>(array.data.get()), static_cast<std::size_t>(array.size)};
}

Finding refused(const ViewOptions& options) {
  return thrown([&] { view(sample(), options); });
}

TEST(View, OfNoChangeIsTheModelItself) {
  const Model model = sample();
  EXPECT_TRUE(ViewOptions{}.empty());
  EXPECT_EQ(names_of(view(model, {})), names_of(model));
  EXPECT_EQ(view({}, {.without = {"*"}}).size(), 0U);
  EXPECT_EQ(view({}, {.set = {{"k", "v"}}}).attributes().size(), 1U);
}

TEST(View, TakesWhatMatchesAndLeavesOutWhatMatches) {
  EXPECT_EQ(names_of(view(sample(), {.only = {"bert.*"}})), (Strings{"bert.a", "bert.b"}));
  EXPECT_EQ(names_of(view(sample(), {.only = {"*.a", "cls*"}})), (Strings{"bert.a", "cls.bias"}));
  EXPECT_EQ(names_of(view(sample(), {.without = {"*.b"}})), (Strings{"bert.a", "cls.bias"}));
  EXPECT_EQ(names_of(view(sample(), {.only = {"bert.*"}, .without = {"*.b"}})), (Strings{"bert.a"}));
  const Finding finding = refused({.only = {"bert.*", "cls.bia"}});
  EXPECT_EQ(finding.rule, "misuse/nothing-matches");
  EXPECT_EQ(finding.message, "no tensor matches \"cls.bia\", \"*cls.bia*\" does");
}

TEST(View, RefusesAGlobWithoutMatchAndAnEmptySelection) {
  const Finding unmatched = refused({.without = {"*.b", "cls.bia"}});
  EXPECT_EQ(unmatched.rule, "misuse/nothing-matches");
  EXPECT_EQ(unmatched.message, "no tensor matches \"cls.bia\", \"*cls.bia*\" does");
  EXPECT_EQ(refused({.without = {"cls.bios"}}).message, "no tensor matches \"cls.bios\"; the nearest is \"cls.bias\"");
  EXPECT_EQ(refused({.without = {"*"}}).message, "no tensor is left: every tensor is also left out");
  const Finding none = refused({.only = {"cls.*"}, .without = {"cls.bias"}});
  EXPECT_EQ(none.rule, "misuse/nothing-left");
  EXPECT_EQ(none.message, "no tensor is left: every tensor that is selected is also left out");
  EXPECT_EQ(view({}, {.only = {"a"}, .without = {"b"}}).size(), 0U);
}

TEST(View, RenamesByPatternsWhatIsNotNamed) {
  const Model model = Builder()
                          .tensor("m.a", DType::u8, {1}, bytes_of("1"))
                          .tensor("m.b", DType::u8, {1}, bytes_of("2"))
                          .tensor("c", DType::u8, {1}, bytes_of("3"))
                          .build();
  ViewOptions options;
  options.add("rename", "s/^m\\.(.)$/$1.m/");
  options.add("rename", "s/a/x/g");
  options.add("rename", "m.b=m.a");
  const Model seen = view(model, options);
  EXPECT_EQ(seen.name(0), "x.m");
  EXPECT_EQ(seen.name(1), "m.a");
  EXPECT_EQ(seen.name(2), "c");
  EXPECT_EQ(thrown([&] { view(model, {.patterns = {"s/nothing/x/"}}); }).rule, "misuse/nothing-matches");
  EXPECT_EQ(thrown([&] { view(model, {.patterns = {"s/.*//"}}); }).rule, "misuse/name");
  EXPECT_EQ(thrown([&] { view(model, {.patterns = {"s/[ab]/z/"}}); }).rule, "misuse/duplicate-name");
  EXPECT_EQ(thrown([&] { options.add("rename", "s/(/x/"); }).rule, "misuse/option");
  options.add("rename", "s/x=y");  // a name, not a pattern
  EXPECT_EQ(options.rename.back().from, "s/x");
}

TEST(View, RenamesAllAtOnce) {
  const Model swapped = view(sample(), {.rename = {{"bert.a", "bert.b"}, {"bert.b", "bert.a"}}});
  EXPECT_EQ(names_of(swapped), (Strings{"bert.b", "bert.a", "cls.bias"}));
  EXPECT_EQ(text_of(swapped["bert.b"]), "bera");
  EXPECT_EQ(text_of(swapped["bert.a"]), "berb");
  // A tensor that is left out frees its name, and renaming it has no effect.
  const Model room = view(sample(), {.without = {"bert.a"}, .rename = {{"cls.bias", "bert.a"}, {"bert.a", "x"}}});
  EXPECT_EQ(names_of(room), (Strings{"bert.b", "bert.a"}));
}

TEST(View, RefusesRenamingsThatCannotBe) {
  const Finding same = refused({.rename = {{"bert.a", "cls.bias"}}});
  EXPECT_EQ(same.rule, "misuse/duplicate-name");
  EXPECT_EQ(same.message, "the tensors \"bert.a\" and \"cls.bias\" would both be called \"cls.bias\"");
  const Finding absent = refused({.rename = {{"bert.c", "x"}}});
  EXPECT_EQ(absent.rule, "misuse/no-such-tensor");
  EXPECT_EQ(absent.message, "there is no tensor \"bert.c\" to rename; the nearest is \"bert.a\", \"bert.b\"");
  EXPECT_EQ(refused({.rename = {{"bert.a", "x"}, {"bert.a", "y"}}}).rule, "misuse/rename");
  EXPECT_EQ(refused({.rename = {{"bert.a", "\xFF"}}}).rule, "misuse/name");
  EXPECT_EQ(refused({.rename = {{"bert.a", ""}}}).message, "the new name of \"bert.a\" is empty");
  const Finding listed = refused({.rename = {{"#bert", "x", "names.txt", 7}}});
  EXPECT_EQ(listed.file.name, "names.txt");
  EXPECT_TRUE(listed.message.starts_with("line 7: there is no tensor \"#bert\" to rename")) << listed.message;
  EXPECT_TRUE(listed.message.ends_with("; a comment is # and a space")) << listed.message;
}

TEST(View, SetsAndUnsetsAttributes) {
  EXPECT_EQ(attributes_of(view(sample(), {.set = {{"new", "1"}, {"heads", "3"}}})),
            "heads=3 name=before last:true new=1 ");
  EXPECT_EQ(attributes_of(view(sample(), {.set = {{"b", ""}, {"a", "x=y"}}, .unset = {"name"}})),
            "heads:2 last:true b= a=x=y ");
  const Model three = view(sample(), {.set = {{"heads", "3"}}});
  const auto attributes = three.attributes();
  EXPECT_EQ(attributes.find("heads")->as_u64(), 3U);
  const Finding finding = refused({.unset = {"head"}});
  EXPECT_EQ(finding.rule, "misuse/no-such-attribute");
  EXPECT_EQ(finding.message, "there is no attribute \"head\" to unset; the nearest is \"heads\"");
  for (const ViewOptions& twice :
       {ViewOptions{.set = {{"a", "1"}, {"a", "2"}}}, ViewOptions{.set = {{"name", "1"}}, .unset = {"name"}},
        ViewOptions{.unset = {"name", "name"}}})
    EXPECT_EQ(refused(twice).rule, "misuse/duplicate-attribute");
  EXPECT_EQ(refused({.set = {{"\xFF", "1"}}}).rule, "misuse/name");
  EXPECT_EQ(refused({.set = {{"k", "\xFF"}}}).rule, "misuse/name");
}

TEST(View, TakesAnotherTokenizer) {
  Tokenizer tokenizer;
  tokenizer.tokens.push_back("[PAD]");
  const Model model = view(sample(), {.tokenizer = tokenizer});
  const auto held = model.tokenizer();
  ASSERT_TRUE(held != nullptr);
  EXPECT_EQ(*held, tokenizer);
  EXPECT_EQ(model.size(), 3U);
}

TEST(View, ReadsNoPayloadAndSharesWhatIsThere) {
  Builder builder;
  bool read = false;
  builder.tensor("made", DType::u8, {2}, [&](std::uint64_t at, std::span<std::byte> out) -> std::size_t {
    read = true;
    if (at > 0) return 0;
    std::memset(out.data(), 7, 2);
    return 2;
  });
  builder.tensor("stored", DType::u8, {4}, bytes_of("abcd"));
  const Model model = builder.build();
  const Model seen = view(model, {.rename = {{"made", "m"}, {"stored", "s"}}});
  EXPECT_FALSE(read);
  EXPECT_EQ(seen["s"].main().extent(), model["stored"].main().extent());
  EXPECT_EQ(seen["s"].main().view().span.data(), model["stored"].main().view().span.data());
  EXPECT_EQ(text_of(seen["m"]), "\7\7");
  EXPECT_TRUE(read);
}

// More sources than the search for a known one looks through.
TEST(View, KeepsEachSourceOnce) {
  Builder builder;
  for (int i = 0; i < 20; ++i) builder.tensor("t" + std::to_string(i), DType::u8, {1}, bytes_of("x"));
  const Model model = builder.build();
  const Model seen = view(model, {.only = {"t1*"}});
  EXPECT_EQ(seen.size(), 11U);
  EXPECT_EQ(seen.sources().size(), model.sources().size());
  EXPECT_EQ(seen["t19"].main().extent(), model["t19"].main().extent());
}

TEST(View, WithoutTensorsByIndex) {
  const std::vector<std::uint32_t> none{1};
  const Model seen = core::view_without(sample(), none);
  EXPECT_EQ(names_of(seen), (Strings{"bert.a", "cls.bias"}));
  EXPECT_EQ(attributes_of(seen), attributes_of(sample()));
  EXPECT_TRUE(seen.find("cls.bias").has_value());
}

TEST(ViewOptions, AreAddedToAsPeopleWriteThem) {
  ViewOptions options;
  options.add("only", "a=b*");
  options.add("without", "*c");
  options.add("rename", "from=to=too");
  options.add("set", "k=");
  options.add("unset", "u");
  EXPECT_EQ(options.only, Strings{"a=b*"});
  EXPECT_EQ(options.without, Strings{"*c"});
  EXPECT_EQ(options.rename.at(0).from, "from");
  EXPECT_EQ(options.rename.at(0).to, "to=too");
  EXPECT_EQ(options.set.at(0), (std::pair<std::string, std::string>("k", "")));
  EXPECT_EQ(options.unset, Strings{"u"});
  EXPECT_EQ(thrown([&] { options.add("rename", "from"); }).message,
            "rename takes FROM=TO or s/PATTERN/REPLACEMENT/, not \"from\"");
  EXPECT_EQ(thrown([&] { options.add("rename", "from="); }).message,
            "rename takes FROM=TO, and \"from=\" lacks the new name behind the =");
  EXPECT_EQ(thrown([&] { options.add("set", "=v"); }).rule, "misuse/option");
  EXPECT_EQ(thrown([&] { options.add("only-if", "v"); }).message,
            "there is no option \"only-if\"; the nearest is \"only\"");
}

TEST(ViewOptions, ReadPairsOfNamesFromAFile) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  const auto read = [](std::string text) {
    ViewOptions options;
    options.rename_from(*memory_source(bytes_of(std::move(text)), "names.txt"));
    Pairs pairs;
    for (const Renaming& each : options.rename) pairs.emplace_back(each.from, each.to);
    return pairs;
  };
  EXPECT_EQ(read("# comment\n#\na=b\r\n\nc=d\te=f\n#0123=x"), (Pairs{{"a", "b"}, {"c=d", "e=f"}, {"#0123", "x"}}));
  EXPECT_EQ(read("\xEF\xBB\xBF"
                 "a = b  \r\n \t \n#\tcomment\nc \t d\t\n  # another\nx=y z"),
            (Pairs{{"a", "b"}, {"c", "d"}, {"x", "y z"}}));
  EXPECT_EQ(read(""), Pairs{});
  for (const char* const text : {"a=", "a= \r", "a\t", "=b", " \tb", "a"})
    EXPECT_EQ(thrown([&] { read(text); }).rule, "misuse/rename-file") << text;
  const Finding finding = thrown([&] { read("a=b\n\nnothing here\n"); });
  EXPECT_EQ(finding.rule, "misuse/rename-file");
  EXPECT_EQ(finding.message, "line 3 is not FROM=TO: \"nothing here\"");
  EXPECT_EQ(finding.file.name, "names.txt");
  Limits limits;
  limits.header = 3;
  ViewOptions options;
  EXPECT_EQ(thrown([&] { options.rename_from(*memory_source(bytes_of("a=bc"), "n"), limits); }).rule, "limit/header");
}

}  // namespace
}  // namespace weighbridge
