// SPDX-License-Identifier: Apache-2.0
#include "runtime/khlnary/cases.h"

#include <algorithm>
#include <bit>

#include "base/endian.h"
#include "base/fail.h"
#include "formats/stb/layout.h"
#include "weighbridge/place.h"

namespace weighbridge::khlnary::internal {

struct MemoryFolder::Files {
  struct File {
    std::shared_ptr<const std::string> bytes;
    Manner manner;
  };
  std::map<std::string, File, std::less<>> by_name;
};

namespace {

class MemoryFile final : public Source {
 public:
  MemoryFile(std::string name, std::shared_ptr<const std::string> bytes, bool mappable,
             std::shared_ptr<const MemoryFolder::Files> folder)
      : name_(std::move(name)), bytes_(std::move(bytes)), mappable_(mappable), folder_(std::move(folder)) {}

  std::uint64_t size() const noexcept override { return bytes_->size(); }
  std::string_view name() const noexcept override { return name_; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto all = std::as_bytes(std::span(*bytes_));
    std::ranges::copy(all.subspan(offset, out.size()), out.begin());
  }
  Bytes map(std::uint64_t offset, std::uint64_t length) const override {
    if (!mappable_) return {};
    return {std::as_bytes(std::span(*bytes_)).subspan(offset, length), bytes_};
  }
  std::shared_ptr<const Place> place() const override;

 private:
  std::string name_;
  std::shared_ptr<const std::string> bytes_;
  bool mappable_;
  std::shared_ptr<const MemoryFolder::Files> folder_;
};

class MemoryPlace final : public Place {
 public:
  explicit MemoryPlace(std::shared_ptr<const MemoryFolder::Files> folder) : folder_(std::move(folder)) {}
  Kind kind() const noexcept override { return Kind::folder; }
  std::string_view name() const noexcept override { return "<memory>"; }
  std::vector<std::string> list() const override {
    std::vector<std::string> out;
    for (const auto& [name, file] : folder_->by_name) out.push_back(name);
    return out;
  }
  std::shared_ptr<const Source> open(std::string_view relative) const override {
    const auto found = folder_->by_name.find(relative);
    if (found == folder_->by_name.end()) return nullptr;
    const auto& [bytes, manner] = found->second;
    const std::string name(relative);
    if (manner == MemoryFolder::Manner::outside) base::io_error("outside", "'" + name + "' leads out of the folder");
    if (manner == MemoryFolder::Manner::folder) base::misuse("not-a-file", "'" + name + "' is a folder");
    return std::make_shared<MemoryFile>(name, bytes, manner == MemoryFolder::Manner::plain, folder_);
  }

 private:
  std::shared_ptr<const MemoryFolder::Files> folder_;
};

std::shared_ptr<const Place> MemoryFile::place() const { return std::make_shared<MemoryPlace>(folder_); }

std::string floats(std::initializer_list<float> values) {
  std::string out;
  for (const float value : values) {
    char bytes[4];
    base::store_le(bytes, std::bit_cast<std::uint32_t>(value));
    out.append(bytes, sizeof bytes);
  }
  return out;
}

std::string code(std::string_view text) { return stored(assemble(text)); }
std::string raw(const Word& word) { return stored(std::vector{encode(word)}); }

// A sidecar with one file, and further members.
std::string sidecar(std::string_view file, std::string_view more = {}) {
  return R"({"schema":1,"files":[)" + std::string(file) + "]" + (more.empty() ? "" : ",") + std::string(more) + "}";
}
const std::string kSmall = R"({"id":0,"path":"a.stb"})";

using Found = Case::Found;

std::vector<Case> word_cases() {
  return {
      {"truncated", "khlnary/truncated", code("NOP") + "x", {}, Found::by_both, 4},
      {"version", "khlnary/version", code("NOP") + raw({.version = 1}), {}, Found::by_both, 4},
      {"parity", "khlnary/parity", stored(std::vector{assemble("NOP")[0] ^ 1U}), {}, Found::by_both, 0},
      {"unknown-glyph", "khlnary/unknown-glyph", raw({.glyph = 0x7f}), {}, Found::by_both, 0},
      {"unknown-glyph-unreached",
       "khlnary/unknown-glyph",
       code("CONST_I8 1\nRET") + raw({.glyph = 4}),
       {},
       Found::by_both,
       8},
      {"missing-bin-ref", "khlnary/missing-bin-ref", raw({.glyph = 0x30}), {}, Found::by_both, 0},
      {"arity", "khlnary/arity", raw({.glyph = 2, .arity = 1}), {}, Found::by_both, 0},
      {"flags", "khlnary/flags", raw({.glyph = 1, .flags = kImm | kShapeDesc}), {}, Found::by_both, 0},
      {"flags-bin-ref", "khlnary/flags", raw({.glyph = 0x32, .flags = kImm | kBinRef}), {}, Found::by_both, 0},
      {"authority-0", "khlnary/authority", raw({.authority = 0}), {}, Found::by_both, 0},
      {"authority-above", "khlnary/authority", code("NOP\nNOP authority=3"), {}, Found::by_both, 4, 2},
  };
}

std::vector<Case> flow_cases() {
  return {
      {"jump-behind-the-end", "khlnary/jump", code("NOP\nJUMP8 +1"), {}, Found::by_both, 4},
      {"jump-before-the-start", "khlnary/jump", code("CONST_I8 0\nIFZ_JUMP8 -2"), {}, Found::by_both, 4},
      {"jump-unreached", "khlnary/jump", code("CONST_I8 0\nRET\nJUMP8 +100"), {}, Found::by_verify, 8},
      {"no-function-end", "khlnary/no-function-end", code("FUNC_DEF 0\nNOP"), {}, Found::by_both, 0},
      {"no-return", "khlnary/no-return", code("FUNC_DEF 7\nNOP\nFUNC_END\nCONST_I8 1\nCALL 7"),
       sidecar("", R"("functions":[{"id":7,"offset":0}])"), Found::by_both, 8},
      {"stray-function-end", "khlnary/stray-function-end", code("JUMP8 +2\nFUNC_END\nNOP"), {}, Found::by_verify, 4},
      {"function-table", "khlnary/function-table", code("NOP\nNOP"),
       sidecar("", R"("functions":[{"id":1,"offset":1}])"), Found::by_both, 4},
      {"function-table-outside", "khlnary/function-table", code("NOP"),
       sidecar("", R"("functions":[{"id":1,"offset":18446744073709551615}])"), Found::by_both},
      {"function", "khlnary/function", code("CONST_I8 1\nCALL 9"), {}, Found::by_both, 4},
      {"stack-underflow", "khlnary/stack-underflow", code("CONST_I8 1\nADD_I32"), {}, Found::by_run, 4},
      {"stack-underflow-return", "khlnary/stack-underflow", code("RET"), {}, Found::by_run, 0},
      {"value-type", "khlnary/value-type", code("LOAD_BIN_TENSOR file=0 tensor=0\nIFZ_JUMP8 +0"), sidecar(kSmall),
       Found::by_run, 4},
      {"stack-limit", "khlnary/stack-limit", code("CONST_I8 1\nJUMP8 -1"), {}, Found::by_run, 0},
      {"call-depth", "khlnary/call-depth", code("FUNC_DEF 0\nCALL 0\nRET\nFUNC_END\nCONST_I8 1\nCALL 0"),
       sidecar("", R"("functions":[{"id":0,"offset":0}])"), Found::by_run, 4},
      {"step-limit", "khlnary/step-limit", code("JUMP8 +0"), {}, Found::by_run, 0},
  };
}

std::vector<Case> file_cases() {
  const auto file = [](std::string_view name, std::string_view more = {}) {
    return sidecar(R"({"id":0,"path":")" + std::string(name) + '"' + std::string(more) + "}");
  };
  const std::string region = code("MMAP_BIN_REGION file=0"), prefetch = code("PREFETCH_BIN file=0");
  const auto tensor = [](std::string_view entry) {
    return sidecar(kSmall, R"("tensors":[{"file":0,"name":"w",)" + std::string(entry) + "}]");
  };
  return {
      {"file-id", "khlnary/file-id", code("MMAP_BIN_REGION file=200"), sidecar(kSmall), Found::by_both, 0},
      {"file-id-no-sidecar", "khlnary/file-id", code("NOP\nLOAD_BIN_TENSOR file=3 tensor=0"), {}, Found::by_both, 4},
      {"path", "khlnary/path", region, file("link.stb"), Found::by_both, 0},
      {"file-missing", "khlnary/file-missing", region, file("none.stb"), Found::by_both, 0},
      {"file-missing-unnamed", "khlnary/file-missing", code("NOP"), file("none.stb"), Found::by_verify},
      {"file-size", "khlnary/file-size", region, file("a.stb", R"(,"size":1)"), Found::by_both, 0},
      {"mmap-required", "khlnary/mmap-required", region, file("unmappable.stb", R"(,"mmap_required":true)"),
       Found::by_both, 0},
      {"file", "khlnary/file", region, file("bad.stb"), Found::by_both, 0},
      {"file-folder", "khlnary/file", region, file("sub"), Found::by_both, 0},
      {"tensor-id", "khlnary/tensor-id", code("LOAD_BIN_TENSOR file=0 tensor=1"), sidecar(kSmall), Found::by_both, 0},
      {"tensor-id-sidecar", "khlnary/tensor-id", region, tensor(R"("id":9)"), Found::by_both, 0},
      {"shape-mismatch", "khlnary/shape-mismatch", region, tensor(R"("id":0,"shape":[4])"), Found::by_both, 0},
      // A prefetch may do nothing: what is wrong with its file stops no run, and verify reports the table's entry.
      {"path-prefetch", "khlnary/path", prefetch, file("link.stb"), Found::by_verify},
      {"file-missing-prefetch", "khlnary/file-missing", prefetch, file("none.stb"), Found::by_verify},
      {"file-prefetch", "khlnary/file", prefetch, file("bad.stb"), Found::by_verify},
      {"file-folder-prefetch", "khlnary/file", prefetch, file("sub"), Found::by_verify},
      {"unsupported-tensor", "khlnary/unsupported-tensor", code("LOAD_BIN_TENSOR file=0 tensor=0\nRET"),
       file("rank4.stb"), Found::by_verify},
      {"shape-mismatch-table", "khlnary/shape-mismatch", region,
       sidecar(R"({"id":0,"path":"rank4.stb"})", R"("shapes":[[2,2]])"), Found::by_both, 0},
  };
}

std::vector<Case> sound_cases() {
  return {
      {"sound-empty", "", ""},
      {"sound-loop", "", code("CONST_I8 3\nCONST_I8 -1\nADD_I32\nCONST_I8 0\nIFZ_JUMP8 +1\nRET"), {}},
      {"sound-function", "", code("FUNC_DEF 1\nCONST_I8 2\nADD_I32\nRET\nFUNC_END\nCONST_I8 40\nCALL 1\nRET"),
       sidecar("", R"("functions":[{"id":1,"name":"plus two","offset":0}])")},
      {"sound-files", "",
       code("PREFETCH_BIN file=0\nLOAD_BIN_TENSOR file=0 tensor=5 shape_desc\nMMAP_BIN_REGION file=0 arity=1\n"
            "MMAP_BIN_REGION file=0\nLOAD_BIN_TENSOR file=0 tensor=0 authority=7\nRET"),
       sidecar(kSmall, R"("tensors":[{"file":0,"id":0,"name":"w","shape":[2,2]}])")},
      {"sound-prefetch", "", code("PREFETCH_BIN file=9\nPREFETCH_BIN file=0\nPREFETCH_BIN file=0"), sidecar(kSmall)},
  };
}

}  // namespace

MemoryFolder::MemoryFolder() : files_(std::make_shared<Files>()) {}

void MemoryFolder::add(std::string name, std::string bytes, Manner manner) {
  files_->by_name[std::move(name)] = {std::make_shared<const std::string>(std::move(bytes)), manner};
}

std::shared_ptr<const Source> MemoryFolder::open(std::string_view name) const { return MemoryPlace(files_).open(name); }

std::string stb_file(const std::vector<StbTensor>& tensors) {
  const auto aligned = [](std::uint64_t size) {
    return (size + stb::kAlignment - 1) / stb::kAlignment * stb::kAlignment;
  };
  stb::Header header{.magic = stb::kMagicWord, .version = stb::kVersion};
  header.tensor_count = static_cast<std::uint16_t>(tensors.size());
  header.data_offset = aligned(stb::kHeaderSize + tensors.size() * stb::kDescriptorSize);
  std::string out(header.data_offset, '\0');
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const StbTensor& tensor = tensors[i];
    out.resize(aligned(out.size()));
    stb::Descriptor descriptor{tensor.id, tensor.dtype, tensor.rank, tensor.layout, out.size(), tensor.payload.size()};
    std::ranges::copy(tensor.dims, descriptor.dims);
    out.replace(stb::kHeaderSize + i * stb::kDescriptorSize, stb::kDescriptorSize, base::store_record(descriptor));
    out += tensor.payload;
  }
  header.file_size = out.size();
  return out.replace(0, stb::kHeaderSize, base::store_record(header));
}

std::string small_stb() {
  return stb_file({{.id = 0, .dtype = 0, .rank = 2, .dims = {2, 2}, .payload = floats({1, 2, 3, 4})},
                   {.id = 5, .dtype = 2, .rank = 1, .dims = {3}, .payload = std::string("\xff\0\x01", 3)}});
}

MemoryFolder Case::folder() const {
  using Manner = MemoryFolder::Manner;
  MemoryFolder out;
  out.add("m.knu", module);
  if (sidecar) out.add("m.khm.json", *sidecar);
  out.add("a.stb", small_stb());
  out.add("bad.stb", "STB1 is no magic number of ours");
  out.add("rank4.stb", stb_file({{.id = 0, .rank = 4, .payload = floats({1, 2, 3, 4})}}));
  out.add("unmappable.stb", small_stb(), Manner::unmappable);
  out.add("link.stb", "", Manner::outside);
  out.add("sub", "", Manner::folder);
  return out;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const auto& some : {sound_cases(), word_cases(), flow_cases(), file_cases()})
    out.insert(out.end(), some.begin(), some.end());
  return out;
}

}  // namespace weighbridge::khlnary::internal
