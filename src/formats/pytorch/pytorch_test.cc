// SPDX-License-Identifier: Apache-2.0
// What the corpus cannot show: names and values, views and their elements, arrays of NumPy, what detection accepts, and
// the list of dangerous globals.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <ctime>
#include <string>
#include <vector>

#include "base/endian.h"
#include "core/archive/pickle_globals.h"
#include "core/archive/pickle_scan.h"
#include "core/payload/extents.h"
#include "formats/pytorch/format.h"
#include "formats/pytorch/globals.h"
#include "formats/pytorch/layout.h"
#include "support/format_testing.h"
#include "support/sanitized.h"

namespace weighbridge::pytorch {
namespace {

using test::Outcome;
using test::walk;

std::string case_bytes(std::string_view name) {
  static const auto all = cases();
  return test::case_of(all, name).bytes;
}
Model model_of(std::string_view name) {
  Outcome out = walk(kFormat, case_bytes(name));
  for (const Finding& finding : out.report.findings()) EXPECT_NE(finding.severity, Severity::error) << finding.message;
  return out.model;
}

std::vector<std::string> names(const Model& model) {
  std::vector<std::string> out;
  for (const Tensor& tensor : model) out.emplace_back(tensor.name());
  return out;
}
std::vector<std::string> attributes(const Model& model) {
  std::vector<std::string> out;
  for (const auto& [key, value] : model.attributes()) out.push_back(key + "=" + value.to_text());
  return out;
}
std::string elements(const Model& model, std::string_view name) {
  std::string out;
  for (const char c : test::logical_bytes(model[name].main())) out += std::to_string(static_cast<int>(c));
  return out;
}
std::vector<std::string> rules(const Outcome& outcome) {
  std::vector<std::string> out;
  for (const Finding& finding : outcome.report.findings()) out.push_back(finding.rule);
  return out;
}

core::Probe probe(const std::string& bytes, std::string_view extension = {}) {
  return {.head = std::as_bytes(std::span(bytes)).first(std::min<std::size_t>(bytes.size(), 4096)),
          .tail = {},
          .size = bytes.size(),
          .extension = extension};
}

TEST(PyTorch, ContainersBecomeNamesAndValuesBecomeAttributes) {
  const Model model = model_of("valid-nested");
  EXPECT_EQ(names(model), (std::vector<std::string>{"model.w", "list.0"}));
  EXPECT_EQ(attributes(model), (std::vector<std::string>{"epoch=3", "lr=0.1", "7=seven", "list.1=1", "empty={}",
                                                         "flags=[true,false]", "none=null", "texts=[\"a\",\"b\"]"}));
  EXPECT_EQ(names(model_of("valid-tensor-alone")), (std::vector<std::string>{"tensor"}));
  EXPECT_EQ(names(model_of("valid-list")), (std::vector<std::string>{"0", "1"}));
}

TEST(PyTorch, ValuesOfHarmlessClassesAreRead) {
  EXPECT_EQ(attributes(model_of("valid-values")),
            (std::vector<std::string>{"size=[2,3]", "device=cuda:1", "dtype=torch.float16", "args.seed=1", "path=/a/b",
                                      "set=[1,2]", "bytes=/2E=", "date=2026-01-02T03:04:05", "scalar=5",
                                      "big=AQEBAQEBAQEBAQ==", "unsigned=18446744073709551615"}));
}

TEST(PyTorch, OfAKeyThatIsSetTwiceTheLastValueCounts) {
  const Model model = model_of("valid-key-twice");
  EXPECT_EQ(model.size(), 0U) << "w was a tensor before it was a number";
  ASSERT_NE(model.attribute("w"), nullptr);
  EXPECT_EQ(model.attribute("w")->to_text(), "5");
  ASSERT_NE(model.attribute("k"), nullptr);
  EXPECT_EQ(model.attribute("k")->to_text(), "2");
}

TEST(PyTorch, ViewsHaveTheElementsOfTheirStrides) {
  const Model model = model_of("valid-views");
  EXPECT_EQ(elements(model, "base"), "123456");
  EXPECT_EQ(elements(model, "row"), "456");
  EXPECT_EQ(elements(model, "transposed"), "142536");
  EXPECT_EQ(elements(model, "expanded"), "12121212");
  EXPECT_EQ(elements(model, "every_second"), "135");
  EXPECT_EQ(elements(model, "scalar"), "6");
  EXPECT_EQ(elements(model, "empty"), "");
  EXPECT_EQ(elements(model, "one_element"), "1");
  const Part one = model["one_element"].main();
  EXPECT_TRUE(one.strides().empty());
  // The same bytes in another order are not an alias.
  EXPECT_EQ(*model["base"].main().extent(), *model["transposed"].main().extent());
  EXPECT_FALSE(core::same_elements(model["base"].main(), model["transposed"].main()));
}

TEST(PyTorch, AnArchiveThatWasCompressedIsRead) {
  const Model model = model_of("valid-deflate");
  EXPECT_EQ(elements(model, "w"), "123456");
  EXPECT_EQ(elements(model, "end"), "456");
}

TEST(PyTorch, BigEndianStoragesAreSwapped) { EXPECT_EQ(elements(model_of("valid-big-endian"), "w"), "214365"); }

TEST(PyTorch, ArraysOfNumPyAreTensors) {
  const Model model = model_of("valid-numpy");
  EXPECT_EQ(elements(model, "raw"), "123456");
  EXPECT_EQ(elements(model, "text"), "1-1");
  EXPECT_EQ(elements(model, "big"), "2143");
  EXPECT_EQ(elements(model, "fortran"), "135246");
  EXPECT_TRUE(model["raw"].main().extent().has_value());
  EXPECT_FALSE(model["text"].main().extent().has_value());
}

TEST(PyTorch, ScalarsOfNumPyAreNumbersNotLists) {
  const Model model = model_of("valid-numpy-scalars");
  EXPECT_EQ(attributes(model),
            (std::vector<std::string>{"f8=1.5", "f4=1.5", "f2=0.5", "i2=-2", "c8=[1.0,1.0625]", "U2=a", "b1=true"}));
  EXPECT_EQ(model.attribute("f4")->type(), DType::f32);
  EXPECT_EQ(model.attribute("f8")->kind(), Value::Kind::real);
}

TEST(PyTorch, BytesOfPython2AreNoLatin1) {
  const Model model = model_of("valid-numpy-of-python-2");
  EXPECT_EQ(elements(model, "w"), "-1-128-61-65");
  EXPECT_EQ(attributes(model), (std::vector<std::string>{"s=255"}));
}

TEST(PyTorch, ArraysOfJoblibAreReadWithWhatFollowsThem) {
  const Model model = model_of("valid-joblib");
  EXPECT_EQ(elements(model, "w"), "1234");
  EXPECT_TRUE(model["w"].main().extent().has_value());
  EXPECT_EQ(elements(model, "old"), "2143");
  EXPECT_EQ(attributes(model), (std::vector<std::string>{"n=7"}));
  EXPECT_EQ(attributes(model_of("object-joblib")), (std::vector<std::string>{"n=7"}));
}

// Once, the bytes of each array were looked for among those of all: four times the arrays took sixteen times as long.
TEST(PyTorch, BytesOfManyArraysOfJoblibAreFoundByTheirObject) {
  using namespace std::string_literals;
  const auto text = [](std::string_view each) {
    return "X" + std::string(1, static_cast<char>(each.size())) + "\0\0\0"s + std::string(each);
  };
  const std::string array = "cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81}(" + text("shape") + "K\1\x85" +
                            text("order") + text("C") + text("dtype") + "cnumpy\ndtype\n" + text("u1") +
                            "\x89\x88\x87R(K\3" + text("|") + "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tbubx"s;
  std::string bytes = "\x80\4]("s;
  constexpr int kArrays = 200'000;
  for (int i = 0; i < kArrays; ++i) bytes += array;
  const std::clock_t start = std::clock();
  const test::Outcome out = test::walk(kFormat, bytes + "e.");
  if (!test::kSanitized) {
    EXPECT_LT(std::clock() - start, 4 * CLOCKS_PER_SEC);
  }
  ASSERT_TRUE(out.report.valid()) << out.report.first_error()->message;
  ASSERT_EQ(out.model.size(), static_cast<std::size_t>(kArrays));
  EXPECT_EQ(elements(out.model, std::to_string(kArrays - 1)), "120");
}

TEST(PyTorch, AStorageMayBeViewedAsSeveralTypes) {
  const Model model = model_of("valid-storage-of-two-types");
  EXPECT_EQ(model["a"].dtype(), DType::u8);
  EXPECT_EQ(model["b"].dtype(), DType::i8);
  EXPECT_EQ(elements(model, "a"), elements(model, "b"));
}

TEST(PyTorch, ConjugatedAndNegatedViewsHaveTheirValues) {
  const auto values = [](const std::string& name) { return test::logical_bytes(model_of(name)["w"].main()); };
  std::string complex = values("valid-conjugated"),
              plain = test::logical_bytes(model_of("valid-dtype-complex64")["w"].main());
  ASSERT_EQ(complex.size(), plain.size());
  EXPECT_EQ(complex.substr(4, 4), std::string("\0\0\x88\xbf", 4));  // -1.0625
  EXPECT_EQ(complex.substr(0, 4), std::string("\0\0\x80\x3f", 4));
  EXPECT_EQ(values("valid-negated"), std::string("\xff\xfd\xfd\xfb\xfb\xf9", 6));
}

// (code - zero) * scale, of codes 1 to 6.
TEST(PyTorch, QuantizedTensorsHaveTheirValues) {
  const auto values = [](const std::string& name) {
    std::vector<float> out;
    const std::string bytes = test::logical_bytes(model_of(name)["w"].main());
    for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4)
      out.push_back(std::bit_cast<float>(base::load_le<std::uint32_t>(bytes.data() + at)));
    return out;
  };
  EXPECT_EQ(values("valid-quantized"), (std::vector<float>{-0.5F, 0, 0.5F, 1, 1.5F, 2}));
  EXPECT_EQ(values("valid-quantized-channels"), (std::vector<float>{0.5F, 1, 1.5F, 6, 8, 10}));
  const Model model = model_of("valid-quantized");
  const Tensor tensor = model["w"];
  ASSERT_EQ(core::left_behind(model).size(), 1U);
  EXPECT_EQ(core::left_behind(model)[0].what, "tensors[\"w\"]");
  EXPECT_EQ(tensor.dtype(), DType::f32);
}

TEST(PyTorch, ThePicklesBefore16) {
  EXPECT_EQ(elements(model_of("valid-legacy"), "w"), "123456");
  EXPECT_EQ(attributes(model_of("valid-legacy")), (std::vector<std::string>{"n=4"}));
  EXPECT_EQ(elements(model_of("valid-legacy-view"), "w"), "456");
}

TEST(PyTorch, AModuleOfAnUnknownClassHasTheNamesOfItsStateDict) {
  EXPECT_EQ(names(model_of("valid-module")), (std::vector<std::string>{"w"}));
}

TEST(PyTorch, TorchScriptHasConstants) {
  const Model model = model_of("valid-script");
  EXPECT_EQ(names(model), (std::vector<std::string>{"w", "constants.0"}));
  EXPECT_EQ(elements(model, "constants.0"), "12");
}

TEST(PyTorch, WhatAnUnknownClassHoldsDoesNotHideTheRest) {
  const Outcome outcome = walk(kFormat, case_bytes("opaque"));
  EXPECT_EQ(names(outcome.model), (std::vector<std::string>{"w"}));
  ASSERT_EQ(outcome.report.findings().size(), 2U);
  EXPECT_NE(outcome.report.findings()[0].message.find("mine.Thing"), std::string::npos);
}

TEST(PyTorch, ContainersThatDoubleEndEarly) {
  const std::clock_t before = std::clock();
  EXPECT_EQ(rules(walk(kFormat, case_bytes("names"))), (std::vector<std::string>{"pytorch/names"}));
  EXPECT_LT(std::clock() - before, 20 * CLOCKS_PER_SEC);
}

// A million codes of the same extension once gave a million findings.
TEST(PyTorch, AThousandGlobalsAreNamedAndTheOthersCounted) {
  const auto judged = [](const std::string& bytes) {
    static constexpr core::PickleRules kRules{rules::kDangerousGlobal, rules::kUnknownGlobal, rules::kUnreadPickle,
                                              rules::kPickle, is_known};
    std::vector<Finding> out;
    const wire::PickleInput input = core::input_of(bytes);
    core::check_globals(wire::Pickle::read(input, 0, std::uint64_t{1} << 26), kRules, 0, 0, {}, out);
    return out;
  };
  std::string same = "\x80\x02", many = same;
  for (int n = 0; n < 1500; ++n) {
    same += "\x82\x07";
    many += "cos\nf" + std::to_string(n) + "\n";
  }
  EXPECT_EQ(judged(same + ".").size(), 1U);
  const std::vector<Finding> found = judged(many + ".");
  ASSERT_EQ(found.size(), 1001U);
  EXPECT_EQ(found.back().found, "500 more");
  EXPECT_EQ(found.back().rule, "pytorch/dangerous-global");
}

// A folder is searched for pickles whatever their names, so text without a number is one by what it does.
TEST(PyTorch, APickleWithoutANumberIsOneByWhatItDoes) {
  EXPECT_TRUE(kFormat.matches(probe("cos\nsystem\n(S'x'\ntR.", "txt")));
  EXPECT_TRUE(kFormat.matches(probe("cos\nsystem\n(S'x'\ntRgarbage", "md")));
  EXPECT_TRUE(kFormat.matches(probe("cmine\nThing\n.")));
  EXPECT_FALSE(kFormat.matches(probe("cat\nsat\nmat\n", "txt")));
  EXPECT_FALSE(kFormat.matches(probe("code\nprint\n", "txt"))) << "named, but not called";
  EXPECT_FALSE(kFormat.matches(probe("N.", "txt")));
}

TEST(PyTorch, DetectionLooksAtContent) {
  EXPECT_TRUE(kFormat.matches(probe(case_bytes("valid-one"))));
  EXPECT_TRUE(kFormat.matches(probe(case_bytes("valid-legacy"))));
  EXPECT_TRUE(kFormat.matches(probe(case_bytes("valid-pickle"))));
  EXPECT_TRUE(kFormat.matches(probe(case_bytes("valid-pickle-text"), "pkl")));
  EXPECT_FALSE(kFormat.matches(probe(case_bytes("valid-pickle-text"), "txt")));
  EXPECT_TRUE(kFormat.matches(probe(case_bytes("tar"), "pt")));
  EXPECT_TRUE(kFormat.matches(probe("cbuiltins\nexec\n(X", "pkl")));
  EXPECT_FALSE(kFormat.matches(probe("not a pickle", "bin")));
  EXPECT_FALSE(kFormat.matches(probe("cmod\xf8\n.", "bin")));
  EXPECT_FALSE(kFormat.matches(probe("", "pt")));
  std::string tar(1024, '\0');
  tar.replace(0, 8, "some.txt").replace(257, 5, "ustar");
  EXPECT_FALSE(kFormat.matches(probe(tar, "pt")));
}

// The lists have one text for the names of a module.
TEST(PyTorch, ANameWithASpaceIsNotTwoNames) {
  EXPECT_TRUE(core::is_harmless_global("builtins", "int"));
  EXPECT_TRUE(core::is_harmless_global("builtins", "list"));
  EXPECT_FALSE(core::is_harmless_global("builtins", "int list"));
  EXPECT_FALSE(core::is_harmless_global("builtins", "in"));
  EXPECT_FALSE(core::is_harmless_global("builtins", "nt"));
  EXPECT_FALSE(core::is_harmless_global("builtins", ""));
  EXPECT_FALSE(is_known("torch", "Tensor per_tensor_affine"));
}

TEST(PyTorch, DangerousGlobals) {
  const auto bad = [](std::string_view module, std::string_view name) {
    return core::is_dangerous_global(module, name);
  };
  EXPECT_TRUE(bad("os", "system"));
  EXPECT_TRUE(bad("os.path", "join")) << "modules beneath a dangerous one";
  EXPECT_TRUE(bad("builtins", "eval"));
  EXPECT_TRUE(bad("builtins", "eval.__call__"));
  EXPECT_TRUE(bad("asyncio.unix_events", "_UnixSubprocessTransport._start"));
  EXPECT_TRUE(bad("torch", "load"));
  EXPECT_TRUE(bad("torch", "serialization.load")) << "through attributes";
  EXPECT_TRUE(bad("torch.serialization", "os.system"));
  EXPECT_TRUE(bad("torch._utils", "a.b.os.system"));
  EXPECT_TRUE(bad("collections", "OrderedDict.__class__"));
  EXPECT_TRUE(bad("m", std::string(2000, 'a')));
  EXPECT_FALSE(bad("torch._utils", "_rebuild_tensor_v2"));
  EXPECT_FALSE(bad("builtins", "set"));
  EXPECT_FALSE(bad("mine.os", "Thing")) << "a module of the same name in a package";
  EXPECT_FALSE(bad("osmium", "system"));
  EXPECT_FALSE(bad("pathlib", "PosixPath"));
  // What is known to be harmless stays so even in a module that is not.
  EXPECT_TRUE(is_known("uuid", "UUID"));
  EXPECT_TRUE(bad("uuid", "_get_command_stdout"));
  EXPECT_TRUE(is_known("torch.nn.modules.linear", "Linear"));
  EXPECT_FALSE(is_known("torch.nn.modules.module", "Module.register_module"));
  EXPECT_FALSE(is_known("torch.nn.modules.module", "register_module_forward_hook"));
  EXPECT_TRUE(is_known("numpy.dtypes", "Float64DType"));
  EXPECT_FALSE(is_known("numpy.dtypes", "sys.modules.XDType"));
  EXPECT_TRUE(is_known("sklearn.linear_model._logistic", "LogisticRegression"));
  EXPECT_TRUE(is_known("megatron.core.enums", "ModelType"));
  EXPECT_FALSE(is_known("transformers.training_args", "json"));
}

}  // namespace
}  // namespace weighbridge::pytorch
