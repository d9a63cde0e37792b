// SPDX-License-Identifier: Apache-2.0
// Makes the inputs of pairs.py and of the opening benchmarks: one model of each kind, in each container that is timed.
// Keeps existing files.
//
// usage: sample_files FOLDER
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>

#include "support/sample_models.h"
#include "weighbridge/convert.h"

namespace {

namespace wb = weighbridge;

// Tensors of `floats` f32, named like the layers of a large model.
wb::Model plain(std::uint32_t count, std::uint64_t floats) {
  wb::Builder out;
  wb::test::SampleTensors add(out, 1);
  for (std::uint32_t i = 0; i < count; ++i)
    add.f32("model.layers." + std::to_string(i / 8) + ".part." + std::to_string(i % 8), {floats});
  return out.build();
}

const char* const kPlain[] = {"safetensors", "zt", "zt0", "stb"};
const char* const kBert[] = {"zt", "embd"};
const char* const kLlama[] = {"zt", "slm"};

void make(const std::filesystem::path& folder, const std::string& name, std::span<const char* const> formats,
          const std::function<wb::Model()>& model) {
  for (const char* const format : formats) {
    const std::string path = (folder / (name + "." + format)).string();
    if (std::filesystem::exists(path)) continue;
    wb::plan(model(), format).execute(path);
    std::printf("%s: %ju bytes\n", path.c_str(), static_cast<std::uintmax_t>(std::filesystem::file_size(path)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: sample_files FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  const char* const zt0[] = {"zt0"};
  make(folder, "many", zt0, [] { return plain(100'000, 64); });
  make(folder, "plain", kPlain, [] { return plain(256, 1U << 18); });  // 256 MiB, as many tensors as STB holds
  make(folder, "minilm", kBert, [] { return wb::test::bert_model({384, 6, 12, 1536, 30522, 512}).build(); });
  make(folder, "bert110m", kBert, [] { return wb::test::bert_model({768, 12, 12, 3072, 30522, 512}).build(); });
  make(folder, "llama15m", kLlama, [] { return wb::test::llama_model({288, 6, 6, 768, 256, false, 32000}).build(); });
  make(folder, "llama110m", kLlama, [] {
    return wb::test::llama_model({768, 12, 12, 2048, 1024, false, 32000}).build();
  });
}
