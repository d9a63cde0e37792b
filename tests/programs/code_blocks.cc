// SPDX-License-Identifier: Apache-2.0
// Decodes and encodes blocks for comparisons in Python (tests/interop/test_ggml_blocks.py), of types that keep whole
// blocks in one part. `code_blocks decode ID` reads blocks from stdin and writes f32, `code_blocks encode ID` does the
// reverse, and `code_blocks encode ID ROW FILE` does it for rows of so many elements, with the f32 of the file as their
// importance. `contract` for `encode` is as GGML compiled for processors with FMA. `code_blocks` lists the types: id,
// elements and bytes per block, and "both" or "decode".
#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "codecs/blocks.h"

namespace {

using namespace weighbridge;

constexpr std::size_t kBlocks = 4096;  // at a time

// Reads up to `in.size()` elements, a whole number of blocks of `unit` of them; returns the number of blocks.
template <class T> std::size_t read(std::vector<T>& in, std::size_t unit) {
  const std::size_t got = std::fread(in.data(), sizeof(T), in.size(), stdin);
  if (got % unit != 0) {
    std::cerr << "code_blocks: stdin holds no whole number of blocks\n";
    std::exit(1);
  }
  return got / unit;
}

template <class T> void write(const std::vector<T>& out, std::size_t count) {
  if (std::fwrite(out.data(), sizeof(T), count, stdout) != count) std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    for (const BlockTypeInfo& row : all_block_types())
      if (row.block_bytes != 0)
        std::cout << row.id << ' ' << row.block_elements << ' ' << row.block_bytes << ' '
                  << (row.codec->encode != nullptr ? "both" : "decode") << '\n';
    return 0;
  }
  const bool contracted = std::string_view(argv[1]) == "contract";  // as GGML compiled for processors with FMA
  const bool encodes = contracted || std::string_view(argv[1]) == "encode";
  const BlockTypeInfo* const type = find_block_type(argv[2]);
  if (type == nullptr || type->block_bytes == 0 || (encodes && type->codec->encode == nullptr)) {
    std::cerr << "code_blocks: cannot " << argv[1] << " whole blocks of " << argv[2] << '\n';
    return 2;
  }
  std::vector<std::byte> blocks(kBlocks * type->block_bytes);
  std::vector<float> elements(kBlocks * type->block_elements);
  if (encodes && argc == 5) {
    const std::size_t row = std::stoul(argv[3]);
    std::vector<float> importance(row), values(row);
    std::ifstream(argv[4], std::ios::binary).read(reinterpret_cast<char*>(importance.data()), std::streamsize(row * 4));
    const std::size_t count = row / type->block_elements;
    while (read(values, row) == 1) {
      type->codec->encode(values, {.importance = importance.data(), .as_ggml = true, .contracted = contracted},
                          blocks.data());
      write(blocks, count * type->block_bytes);
    }
    return std::fflush(stdout) == 0 ? 0 : 1;
  }
  for (std::size_t count = kBlocks; count == kBlocks;) {
    if (encodes) {
      count = read(elements, type->block_elements);
      type->codec->encode(std::span(elements).first(count * type->block_elements),
                          {.as_ggml = true, .contracted = contracted}, blocks.data());
      write(blocks, count * type->block_bytes);
      continue;
    }
    count = read(blocks, type->block_bytes);
    codecs::BlockForm form;
    form.type = type;
    form.rank = 1;
    form.rows = 1;
    form.columns = form.row = count * type->block_elements;
    form.dtypes = {DType::u8};
    if (!codecs::block_problem(form).empty()) return 1;
    const std::array<std::span<const std::byte>, 1> parts{std::span(blocks).first(count * type->block_bytes)};
    type->codec->decode(form, 0, form.columns, parts, elements.data());
    write(elements, count * type->block_elements);
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
