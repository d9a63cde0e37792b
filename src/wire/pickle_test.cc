// SPDX-License-Identifier: Apache-2.0
// Tests the machine of pickles with pickles that were assembled by hand, opcode by opcode, after pickletools.py.
#include "wire/pickle.h"

#include <gtest/gtest.h>

#include "support/pickles.h"

namespace weighbridge::wire {
namespace {

using test::read_pickle;

std::string little(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

// The value as text: enough to compare.
std::string show(const Pickle& p, Pickle::Ref r, int depth = 0) {
  if (depth > 8) return "...";
  const auto all = [&](const char* open, const char* close) {
    std::string out;
    for (const Pickle::Ref each : p.items(r)) out += (out.empty() ? "" : " ") + show(p, each, depth + 1);
    return open + out + close;
  };
  switch (p.kind(r)) {
    case PickleKind::none: return "None";
    case PickleKind::boolean: return p.boolean(r) ? "True" : "False";
    case PickleKind::integer: return std::to_string(p.integer(r));
    case PickleKind::real: return std::to_string(p.real(r));
    case PickleKind::long_bytes: return "long" + std::to_string(p.length(r));
    case PickleKind::long_text: return "long:" + std::string(p.text(r).value_or("?"));
    case PickleKind::text: return "'" + std::string(p.text(r).value_or("?")) + "'";
    case PickleKind::bytes: return "b'" + std::string(p.text(r).value_or("?")) + "'";
    case PickleKind::tuple: return all("(", ")");
    case PickleKind::list: return all("[", "]");
    case PickleKind::set: return all("<", ">");
    case PickleKind::dict: return all("{", "}");
    case PickleKind::global:
      return p.computed(r) ? "computed" : std::string(p.module(r)) + "." + std::string(p.name(r));
    case PickleKind::object: {
      std::string out = show(p, p.callee(r), depth + 1) + show(p, p.arguments(r), depth + 1);
      if (const auto keywords = p.keywords(r)) out += "**" + show(p, *keywords, depth + 1);
      if (p.size(r) > 0) out += all("+[", "]");
      if (const auto state = p.state(r)) out += "=" + show(p, *state, depth + 1);
      return out;
    }
    case PickleKind::persistent: return "id" + show(p, p.persistent_id(r), depth + 1);
    case PickleKind::extension: return "ext" + std::to_string(p.extension(r));
    case PickleKind::buffer: return "buffer";
  }
  return "";
}

std::string value(const std::string& bytes) {
  const Pickle p = read_pickle(bytes);
  return p.ok() ? show(p, p.root()) : "error: " + std::string(p.error().sentence);
}
PickleFault fault(const std::string& bytes) { return read_pickle(bytes).error().fault; }

TEST(Pickle, EveryOpcodeOfValues) {
  EXPECT_EQ(value("N."), "None");
  EXPECT_EQ(value("\x88."), "True");
  EXPECT_EQ(value("\x89."), "False");
  EXPECT_EQ(value("I01\n."), "True");
  EXPECT_EQ(value("I00\n."), "False");
  EXPECT_EQ(value("I-7\n."), "-7");
  EXPECT_EQ(value("I9223372036854775808\n."), "long:9223372036854775808");
  EXPECT_EQ(value("L12L\n."), "12");
  EXPECT_EQ(value("K\xff."), "255");
  EXPECT_EQ(value("M\xff\xff."), "65535");
  EXPECT_EQ(value("J\xff\xff\xff\xff."), "-1");
  EXPECT_EQ(value(std::string("\x8a\0.", 3)), "0");
  EXPECT_EQ(value("\x8a\x01\x80."), "-128");
  EXPECT_EQ(value("\x8a\x02\xff\x7f."), "32767");
  EXPECT_EQ(value("\x8b" + little(1, 4) + "\x05."), "5");
  EXPECT_EQ(value("\x8a\x09" + little(0, 8) + "\x01."), "long9");
  EXPECT_EQ(value("F0.5\n."), "0.500000");
  EXPECT_EQ(value(std::string("G\x3f\xf8\0\0\0\0\0\0.", 10)), "1.500000");
  EXPECT_EQ(value("S'a\\x41\\n\\'\\101'\n."), "'aA\n'A'");
  EXPECT_EQ(value("S\"q\"\n."), "'q'");
  EXPECT_EQ(value("Va\\u00e9\\U0001F600\xe9\n."), "'a\xC3\xA9\xF0\x9F\x98\x80\xC3\xA9'");
  EXPECT_EQ(value("T" + little(2, 4) + "ab."), "'ab'");
  EXPECT_EQ(value("U\x02"
                  "ab."),
            "'ab'");
  EXPECT_EQ(value("X" + little(2, 4) + "ab."), "'ab'");
  EXPECT_EQ(value("\x8c\x02"
                  "ab."),
            "'ab'");
  EXPECT_EQ(value("\x8d" + little(2, 8) + "ab."), "'ab'");
  EXPECT_EQ(value("B" + little(2, 4) + "ab."), "b'ab'");
  EXPECT_EQ(value("C\x02"
                  "ab."),
            "b'ab'");
  EXPECT_EQ(value("\x8e" + little(2, 8) + "ab."), "b'ab'");
  EXPECT_EQ(value("\x96" + little(2, 8) + "ab."), "b'ab'");
  EXPECT_EQ(value("\x97\x98."), "buffer");
}

TEST(Pickle, EveryOpcodeOfContainersAndTheStack) {
  EXPECT_EQ(value(")."), "()");
  EXPECT_EQ(value("K\x01\x85."), "(1)");
  EXPECT_EQ(value("K\x01K\x02\x86."), "(1 2)");
  EXPECT_EQ(value("K\x01K\x02K\x03\x87."), "(1 2 3)");
  EXPECT_EQ(value("(K\x01K\x02K\x03K\x04t."), "(1 2 3 4)");
  EXPECT_EQ(value("(K\x01K\x02l."), "[1 2]");
  EXPECT_EQ(value("]K\x01"
                  "a(K\x02K\x03"
                  "e."),
            "[1 2 3]");
  EXPECT_EQ(value("(K\x01K\x02"
                  "d."),
            "{1 2}");
  EXPECT_EQ(value("}K\x01K\x02s(K\x03K\x04u."), "{1 2 3 4}");
  EXPECT_EQ(value("\x8f(K\x01K\x02\x90."), "<1 2>");
  EXPECT_EQ(value("(K\x01\x91."), "<1>");
  EXPECT_EQ(value("K\x01K\x02"
                  "0."),
            "1");
  EXPECT_EQ(value("K\x01(K\x02K\x03"
                  "1."),
            "1");
  EXPECT_EQ(value("K\x01(0."), "1") << "POP takes a mark that is on top";
  EXPECT_EQ(value("]K\x01"
                  "2\x86"
                  "a."),
            "[(1 1)]")
      << "DUP";
}

TEST(Pickle, EveryOpcodeOfTheMemo) {
  EXPECT_EQ(value("K\x05p3\n0g3\n."), "5");
  EXPECT_EQ(value("K\x05q\x03"
                  "0h\x03."),
            "5");
  EXPECT_EQ(value("K\x05r" + little(70'000, 4) + "0j" + little(70'000, 4) + "."), "5");
  EXPECT_EQ(value("K\x05\x94"
                  "0K\x06\x94"
                  "0h" +
                  std::string("\1\x85.", 3)),
            "(6)");
  // The largest index costs nothing.
  EXPECT_EQ(value("K\x05r\xff\xff\xff\xff"
                  "0j\xff\xff\xff\xff."),
            "5");
  EXPECT_TRUE(value(std::string("}q\0U\2meh\0s.", 11)).starts_with("{'me' {'me' {"));
}

TEST(Pickle, EveryOpcodeOfCalls) {
  EXPECT_EQ(value("cos\nsystem\n."), "os.system");
  EXPECT_EQ(value("\x8c\x02os\x8c\x06system\x93."), "os.system");
  EXPECT_EQ(value("cm\nf\nK\x01\x85R."), "m.f(1)");
  EXPECT_EQ(value("(K\x01im\nf\n."), "m.f(1)");
  EXPECT_EQ(value("(cm\nf\nK\x01K\x02o."), "m.f(1 2)");
  EXPECT_EQ(value("cm\nf\n)\x81}b."), "m.f()={}");
  EXPECT_EQ(value("cm\nf\n)}\x92."), "m.f()**{}");
  EXPECT_EQ(value("cm\nf\n)R(K\x01K\x02u."), "m.f()+[1 2]");
  EXPECT_EQ(value("P12\n."), "id'12'");
  EXPECT_EQ(value("K\x01Q."), "id1");
  EXPECT_EQ(value("\x82\x07."), "ext7");
  EXPECT_EQ(value("\x83\x07\x01."), "ext263");
  EXPECT_EQ(value("\x84" + little(7, 4) + "."), "ext7");
}

TEST(Pickle, GlobalsAreListedWithTheirOffsetsAlsoBeforeAnError) {
  const Pickle p = read_pickle(
      "\x80\x02"
      "cos\nsystem\nU\x02"
      "lsR\xff");
  EXPECT_EQ(p.error().fault, PickleFault::opcode);
  EXPECT_EQ(p.error().offset, 18U);
  ASSERT_EQ(p.globals().size(), 1U);
  EXPECT_EQ(p.module(p.globals()[0].ref), "os");
  EXPECT_EQ(p.at(p.globals()[0].ref), 2U);
  EXPECT_TRUE(p.globals()[0].called);
  const Pickle named = read_pickle("cos\nsystem\n.");
  EXPECT_FALSE(named.globals()[0].called);
}

TEST(Pickle, ADoubtDoesNotHideGlobals) {
  // Python would stop at none of these.
  const Pickle p = read_pickle("](K\x01K\x02u0cos\nsystem\n.");
  EXPECT_EQ(p.error().fault, PickleFault::kind);
  EXPECT_EQ(p.globals().size(), 1U);
}

TEST(Pickle, NamesThatArePartOfAValueAreComputed) {
  EXPECT_EQ(value("\x8c\x02osK\x01\x93."), "computed");
  EXPECT_EQ(value("cm\nf\n)R\x8c\x06system\x93."), "computed");
  EXPECT_EQ(value("\x8c\x02osX" + little(70'000, 4) + std::string(70'000, 'a') + "\x93."), "computed");
}

TEST(Pickle, Errors) {
  EXPECT_EQ(fault(""), PickleFault::end);
  EXPECT_EQ(fault("K"), PickleFault::end);
  EXPECT_EQ(fault("cos\n"), PickleFault::end);
  EXPECT_EQ(fault("cos\nsystem"), PickleFault::end);
  EXPECT_EQ(fault("X\xff\xff\xff\xff."), PickleFault::end);
  EXPECT_EQ(fault("\x8d" + little(UINT64_MAX, 8) + "."), PickleFault::end);
  EXPECT_EQ(fault("."), PickleFault::stack);
  EXPECT_EQ(fault("0"), PickleFault::stack);
  EXPECT_EQ(fault("t"), PickleFault::stack);
  EXPECT_EQ(fault("K\x01(R"), PickleFault::stack) << "what lies below a mark is out of reach";
  EXPECT_EQ(fault("(u"), PickleFault::stack);
  EXPECT_EQ(fault("}(K\x01u."), PickleFault::stack);
  EXPECT_EQ(fault("(o"), PickleFault::stack);
  EXPECT_EQ(fault("g1\n."), PickleFault::memo);
  EXPECT_EQ(fault("h\x01."), PickleFault::memo);
  EXPECT_EQ(fault("gx\n."), PickleFault::number);
  EXPECT_EQ(fault("Ix\n."), PickleFault::number);
  EXPECT_EQ(fault("Fx\n."), PickleFault::number);
  EXPECT_EQ(fault("\x8b\xff\xff\xff\xff."), PickleFault::number);
  EXPECT_EQ(fault("T\xff\xff\xff\xff."), PickleFault::number);
  EXPECT_EQ(fault("Sx\n."), PickleFault::text);
  EXPECT_EQ(fault("V\\u12\n."), PickleFault::text);
  EXPECT_EQ(fault("\x80\x06."), PickleFault::opcode);
  EXPECT_EQ(fault("\xff."), PickleFault::opcode);
  EXPECT_EQ(fault("K\x01}b."), PickleFault::kind);
}

// A FRAME of this length, and what follows it.
std::string frame(std::uint64_t length, const std::string& rest) { return "\x95" + little(length, 8) + rest; }

TEST(Pickle, AFrameEndsBetweenTwoOpcodesOfItsPickle) {
  EXPECT_EQ(value(frame(3, "K\x07.")), "7");
  EXPECT_EQ(value(frame(2, "K\x07") + "."), "7") << "opcodes outside of frames";
  EXPECT_EQ(value(frame(0, "") + frame(2, "K\x07") + frame(1, ".")), "7") << "frames in a row";
  EXPECT_EQ(value("\x80\x04" + frame(2, "K\x07") + "B" + little(2, 4) + "ab\x86."), "(7 b'ab')");
  EXPECT_EQ(fault("\x80\x05N(" + frame(2, "B" + little(3, 4) + "abc10.")), PickleFault::frame) << "in a length";
  EXPECT_EQ(fault(frame(6, "B" + little(3, 4) + "abc.")), PickleFault::frame) << "in a byte string";
  EXPECT_EQ(fault(frame(1, "K\x07.")), PickleFault::frame) << "after an opcode's byte";
  EXPECT_EQ(fault(frame(3, "V12\n.")), PickleFault::frame) << "in a line";
  EXPECT_EQ(fault(frame(7, "cos\nsystem\n.")), PickleFault::frame) << "between the lines of a global";
  EXPECT_EQ(fault(frame(5, "K\x07p10\n.")), PickleFault::frame);
  EXPECT_EQ(fault(frame(100'000, "X" + little(99'999, 4) + std::string(99'999, 'x') + ".")), PickleFault::frame)
      << "in a string that stays in the input";
  EXPECT_EQ(fault(frame(13, "K\x07" + frame(2, "K\x08") + "\x86.")), PickleFault::frame) << "a frame in a frame";
  EXPECT_EQ(fault(frame(9, frame(3, "K\x07."))), PickleFault::frame) << "one that ends where the inner one begins";
  EXPECT_EQ(fault(frame(4, "K\x07.N")), PickleFault::frame) << "STOP inside the frame";
  EXPECT_EQ(fault(frame(4, "K\x07.") + "K\x08."), PickleFault::frame) << "a frame that reaches into the next pickle";
  EXPECT_EQ(fault(frame(4, "K\x07.")), PickleFault::end) << "a frame that is longer than the rest";
  EXPECT_EQ(fault(frame(UINT64_MAX, "K\x07.")), PickleFault::end);
}

TEST(Pickle, AFrameThatIsWrongDoesNotHideGlobals) {
  const Pickle p = read_pickle(frame(1,
                                     "K\x07"
                                     "0cos\nsystem\n."));
  EXPECT_EQ(p.error().fault, PickleFault::frame);
  EXPECT_EQ(p.error().offset, 9U);
  ASSERT_EQ(p.globals().size(), 1U);
  EXPECT_EQ(p.name(p.globals()[0].ref), "system");
}

TEST(Pickle, NumbersThatPythonsTwoReadersTakeForDifferentOnesAreMalformed) {
  EXPECT_EQ(value("I0\n."), "0");
  EXPECT_EQ(value("L0L\n."), "0");
  EXPECT_EQ(value("I7\r\n."), "7");
  for (const char* const text : {"001", "017", "-0", "+1", "01 ", "00\r", "-07", "0x5", "1_0", "-", ""})
    EXPECT_EQ(fault("I" + std::string(text) + "\n."), PickleFault::number) << text;
  for (const char* const text : {"01", "00", "00L", "-0", "5L ", "5LL", "0x5L", "L"})
    EXPECT_EQ(fault("L" + std::string(text) + "\n."), PickleFault::number) << text;
  EXPECT_EQ(fault("F1.5 \n."), PickleFault::number);
  EXPECT_EQ(fault("F1.5\r\n."), PickleFault::number);
  EXPECT_EQ(fault("S'a' \n."), PickleFault::text);
}

TEST(Pickle, AnEscapedBackslashBeginsNoEscape) {
  EXPECT_EQ(value("V\\\\u0041\n."), "'\\\\u0041'");
  EXPECT_EQ(value("V\\\\\\u0041\n."), "'\\\\A'");
  EXPECT_EQ(value("V\\x\\u0041\n."), "'\\xA'");
  EXPECT_EQ(value("Va\\\n."), "'a\\'");
  EXPECT_EQ(value("V\\\\u006fs\nVsystem\n\x93."), "\\\\u006fs.system");
}

TEST(Pickle, LongStringsStayInTheInput) {
  const std::string big(100'000, 'x');
  const Pickle p = read_pickle(
      "K\x01"
      "B" +
      little(big.size(), 4) + big + "\x86.");
  ASSERT_TRUE(p.ok());
  const Pickle::Ref bytes = p.tuple(p.root())[1];
  EXPECT_FALSE(p.text(bytes).has_value());
  ASSERT_TRUE(p.span(bytes).has_value());
  EXPECT_EQ(p.span(bytes)->offset, 7U);
  EXPECT_EQ(p.length(bytes), big.size());
}

TEST(Pickle, OpcodesLieAcrossTheWindow) {
  // Strings of every length around the sizes of the window, then a number behind them.
  for (const std::size_t size : {500U, 505U, 508U, 511U, 512U, 65'530U, 65'536U, 131'071U}) {
    const std::string text(size, 'a');
    EXPECT_EQ(value("X" + little(size, 4) + text + "0K\x07."), "7") << size;
    EXPECT_EQ(value("c" + text + "\nf\n0K\x07."), "7") << size;
  }
}

TEST(Pickle, PicklesInARow) {
  const std::string row = "K\x01.K\x02.";
  const Pickle first = read_pickle(row);
  EXPECT_EQ(first.end(), 3U);
  const Pickle second = read_pickle(row, first.end());
  EXPECT_EQ(show(second, second.root()), "2");
}

TEST(Pickle, MemoryIsBounded) {
  const std::string lists = "(" + std::string(1'000'000, ']') + "t.";
  EXPECT_EQ(read_pickle(lists, 0, 1'000'000).error().fault, PickleFault::memory);
  EXPECT_TRUE(read_pickle(lists, 0, 40'000'000).ok());
  EXPECT_EQ(read_pickle("c" + std::string(1'000'000, 'a') + "\nf\n.", 0, 100'000).error().fault, PickleFault::memory);
  // One opcode at a time adds to one batch, and containers that are filled in turns cost no more.
  std::string turns = "]q" + std::string(1, '\0') +
                      "]q\x01"
                      "00";
  for (int i = 0; i < 100'000; ++i) turns += std::string("h\0K\1a0h\1K\1a0", 12);
  EXPECT_TRUE(read_pickle(turns + "N.", 0, 16 * turns.size()).ok());
}

}  // namespace
}  // namespace weighbridge::wire
