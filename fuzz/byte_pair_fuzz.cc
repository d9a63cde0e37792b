// SPDX-License-Identifier: Apache-2.0
// Fuzz target: byte-pair tokenizers. The input has three parts, separated by bytes 0xFF: tokens, one per line; merges
// of four bytes each (left, right, output, rank, as token numbers); the text. Ids must be within the vocabulary,
// decoding must give the text back if no merge changes its bytes, and a decoder fed id by id must give the same.
#include <algorithm>

#include "harness.h"
#include "weighbridge/tokenize.h"

namespace weighbridge::fuzz {
namespace {

std::string_view take(std::string_view& input, char end) {
  const std::size_t at = std::min(input.find(end), input.size());
  const std::string_view out = input.substr(0, at);
  input.remove_prefix(std::min(input.size(), at + 1));
  return out;
}

// Ids 0 to 255 are the bytes, then four special tokens, then the lines.
Tokenizer tokenizer_of(std::string_view lines, std::string_view merges) {
  constexpr std::uint32_t kFirst = 260;
  Tokenizer out;
  out.kind = Tokenizer::Kind::bpe;
  out.special = {{"bos", 256}, {"eos", 257}, {"pad", 258}, {"unk", 259}};
  while (!lines.empty()) {
    out.ids.push_back(kFirst + static_cast<std::uint32_t>(out.tokens.size()));
    out.tokens.push_back(take(lines, '\n'));
  }
  out.vocab_size = kFirst + static_cast<std::uint32_t>(out.tokens.size());
  const auto number = [&](std::size_t at) { return std::uint32_t{static_cast<unsigned char>(merges[at])}; };
  for (std::size_t at = 0; at + 4 <= merges.size(); at += 4)  // the highest bit of a number marks a token from a line
    out.merges.push_back({number(at) < 128 ? number(at) : kFirst + number(at) - 128,
                          number(at + 1) < 128 ? number(at + 1) : kFirst + number(at + 1) - 128,
                          kFirst + number(at + 2), number(at + 3)});
  return out;
}

// Whether the output of each merge spells its left side followed by its right side.
bool keeps_bytes(const Tokenizer& from, const BytePair& pairs) {
  const auto spelled = [&](std::uint32_t id) {
    return id < 256 ? std::string(1, static_cast<char>(id)) : std::string(pairs.token(id).value_or(""));
  };
  return std::ranges::all_of(from.merges, [&](const Tokenizer::Merge& merge) {
    return spelled(merge.left) + spelled(merge.right) == spelled(merge.output);
  });
}

}  // namespace
}  // namespace weighbridge::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weighbridge;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view lines = fuzz::take(rest, '\xFF'), merges = fuzz::take(rest, '\xFF'), text = rest;
  const Tokenizer tokenizer = fuzz::tokenizer_of(lines, merges);
  try {
    const BytePair pairs(tokenizer, {.prefix_space = false});
    const std::vector<std::uint32_t> ids = pairs.encode(text);
    fuzz::expect(!ids.empty() && ids.front() == pairs.bos() && ids.size() <= text.size() + 1,
                 "too many ids, or no BOS");
    fuzz::expect(std::ranges::all_of(ids, [&](std::uint32_t id) { return id < pairs.size(); }), "an id of no token");
    const std::string decoded = pairs.decode(ids);
    if (fuzz::keeps_bytes(tokenizer, pairs)) fuzz::expect(decoded == text, "decoding gives another text");
    BytePair::Decoder decoder(pairs);
    std::string streamed;
    for (const std::uint32_t id : ids) streamed += decoder.push(id);
    fuzz::expect(streamed + decoder.finish() == decoded, "a stream of ids decodes to another text");
    if (fuzz::is_planted() && !tokenizer.merges.empty() && std::ranges::count(ids, 260U) > 1)
      fuzz::fail("planted bug: the first token of the vocabulary stands twice in a text");
  } catch (const Error& error) {
    fuzz::expect_files_fault(error.finding());
  }
  return 0;
}
