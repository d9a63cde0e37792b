// SPDX-License-Identifier: Apache-2.0
// The corpus of STB: for each rule the smallest file, with a sidecar if needed, that breaks it and near misses that do
// not, and valid files of every kind. The files are built by hand, not by the writer, so that reader and writer cannot
// share a mistake.
#include <string>
#include <utility>

#include "formats/stb/format.h"
#include "support/corpus_case.h"

namespace weighbridge::stb {
namespace {

std::string le(std::uint64_t value, std::uint32_t bytes) {
  std::string out;
  for (std::uint32_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

struct Desc {
  std::uint64_t id = 0, dtype = 2, rank = 1, layout = 0;  // int8, so that sizes are counts
  std::uint64_t offset = 64, size = 4;
  std::uint64_t dims[3] = {4, 0, 0};

  std::string bytes() const {
    return le(id, 1) + le(dtype, 1) + le(rank, 1) + le(layout, 1) + le(offset, 8) + le(size, 8) + le(dims[0], 4) +
           le(dims[1], 4) + le(dims[2], 4);
  }
};

struct Head {
  std::string magic = "STB0";
  std::uint64_t version = 1, flags = 0, reserved0 = 0, reserved1 = 0;
  std::uint64_t count = UINT64_MAX, data_offset = 0, file_size = 0;  // these defaults mean the correct value
};

// Table and `data`, which begins at the first multiple of 64 after the table.
std::string file(const std::vector<Desc>& tensors, std::string_view data = "abcd", Head head = {}) {
  const std::uint64_t start = (32 + 32 * tensors.size() + 63) / 64 * 64;
  if (head.count == UINT64_MAX) head.count = tensors.size();
  if (head.data_offset == 0) head.data_offset = start;
  if (head.file_size == 0) head.file_size = start + data.size();
  std::string out = head.magic + le(head.version, 1) + le(head.flags, 1) + le(head.count, 2) + le(head.reserved0, 4) +
                    le(head.reserved1, 4) + le(head.data_offset, 8) + le(head.file_size, 8);
  for (const Desc& tensor : tensors) out += tensor.bytes();
  out.resize(start, '\0');
  return out.append(data);
}

const Desc kSound{};  // valid with the data "abcd"

class Corpus : public core::CorpusCases {
 public:
  Corpus() : CorpusCases("stb") {}
  void valid(std::string name, std::string bytes) { add("valid-" + std::move(name), "", std::move(bytes)); }
  // Adds a sidecar to the last case.
  void beside(std::string text) { last().sidecar = {".khm.json", std::move(text)}; }
  // Adds the valid file with this sidecar.
  void sidecar(std::string name, std::string rule, std::string text, std::vector<std::string> others = {}) {
    add(std::move(name), std::move(rule), file({kSound}), std::move(others));
    beside(std::move(text));
  }
  // Adds the valid file with a sidecar that lists it and has `members`.
  void members(std::string name, std::string rule, std::string_view members) {
    sidecar(std::move(name), std::move(rule),
            std::string(R"({"schema":1,"files":[{"id":0,"path":"a.stb"}],)").append(members) + "}");
  }
};

std::string counting(std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += static_cast<char>(i);
  return out;
}

// A file with one int8 tensor of rank 4 and 24 elements.
std::string rank4(std::uint64_t index = 0) {
  return file({{.rank = 4, .size = 24, .dims = {index, 0, 0}}}, counting(24));
}
std::string with_shapes(std::string_view shapes) {
  return std::string(R"({"schema":1,"files":[{"id":0,"path":"a.stb"}],"shapes":[)").append(shapes) + "]}";
}

void add_valid(Corpus& c) {
  c.valid("empty", file({}, ""));
  c.valid("one", file({kSound}));
  c.valid("scalar", file({{.dtype = 0, .rank = 0, .dims = {}}}));
  c.valid("dtypes", file({{.id = 9, .dtype = 0, .offset = 192, .dims = {1}},
                          {.id = 255, .dtype = 1, .offset = 256, .dims = {2}},
                          {.id = 0, .dtype = 2, .offset = 320, .dims = {4}},
                          {.id = 3, .dtype = 3, .offset = 384, .dims = {1}}},
                         std::string(192, '\1') + "abcd"));
  c.valid("no-elements", file({{.size = 0, .dims = {0}}}, ""));
  c.valid("no-elements-wide", file({{.rank = 3, .size = 0, .dims = {0, UINT32_MAX, UINT32_MAX}}}, ""));
  c.valid("aliases",
          file({{.offset = 128}, {.id = 1, .offset = 128}, {.id = 2, .offset = 128, .size = 0, .dims = {0}}}));
  c.valid("data-behind-a-gap", file({{.offset = 192}}, std::string(128, '\0') + "abcd", {.data_offset = 128}));
  c.valid("bytes-behind-the-last", file({kSound}, "abcd and more"));
  c.valid("col-major", file({{.rank = 2, .layout = 1, .size = 6, .dims = {2, 3}}}, "adbecf"));
  c.valid("col-major-vector", file({{.layout = 1}}));
  c.valid("col-major-empty", file({{.rank = 2, .layout = 1, .size = 0, .dims = {0, 3}}}, ""));
  c.valid("channels-last", file({{.rank = 3, .layout = 2, .size = 24, .dims = {2, 3, 4}}}, counting(24)));
  const auto nchw = [&](std::string name, std::string_view shape) {
    c.valid("channels-last-" + std::move(name),
            file({{.rank = 4, .layout = 2, .size = 24, .dims = {1}}}, counting(24)));
    c.beside(with_shapes(std::string("[],").append(shape)));
  };
  nchw("1x2x3x4", "[1,2,3,4]");
  nchw("2x2x3x2", "[2,2,3,2]");
  nchw("24x1x1x1", "[24,1,1,1]");
  c.valid("channels-last-5", file({{.rank = 5, .layout = 2, .size = 24, .dims = {0}}}, counting(24)));
  c.beside(with_shapes("[1,2,3,2,2]"));
  c.valid("rank-4", rank4());
  c.beside(with_shapes("[1,2,3,4]"));
  c.valid("rank-8", file({{.rank = 8, .layout = 1, .size = 24, .dims = {}}}, counting(24)));
  c.beside(with_shapes("[1,2,3,1,2,1,2,1]"));
  c.valid("rank-4-stated", rank4(7));
  c.beside(R"({"schema":1,"files":[{"id":3,"path":"a.stb"}],)"
           R"("tensors":[{"file":3,"id":0,"name":"w","shape":[4,3,2,1]}]})");
}

void add_sidecars(Corpus& c) {
  c.sidecar("sidecar-other", "sidecar-other", R"({"schema":1,"files":[]})");
  c.sidecar(
      "valid-sidecar-names", "",
      R"({"schema":1,"module":"m.knu","files":[{"id":7,"path":"a.stb","mmap_required":true,"size":68}],)"
      R"("shapes":[[],[0,18446744073709551615]],"functions":[{"id":0,"offset":0},{"id":1,"name":"f","offset":9}],)"
      R"("tensors":[{"file":7,"id":0,"name":"\u00e9 \"w\"","shape":[4]}]})");
  c.sidecar("sidecar-other-files", "sidecar-other",
            R"({"schema":1,"files":[{"id":0,"path":"b.stb"},{"id":1,"path":"c.stb"}]})");

  c.sidecar("sidecar-json", "sidecar-json", R"({"schema":1,"files":[],})");
  c.sidecar("sidecar-json-empty", "sidecar-json", "");
  c.sidecar("sidecar-json-trailing", "sidecar-json", R"({"schema":1,"files":[]}{})");
  c.sidecar("sidecar-json-utf8", "sidecar-json", "{\"schema\":1,\"files\":[{\"id\":0,\"path\":\"\xff\"}]}");
  c.sidecar("limit-sidecar-depth", "limit/depth", R"({"schema":1,"files":[[[]]]})");
  c.last().limits.depth = 3;
  c.last().generated_only = true;
  c.sidecar("limit-sidecar", "limit/header", R"({"schema":1,"files":[],"tensors":[],"functions":[],"shapes":[[1]]})");
  c.last().limits.header = 64;
  c.last().generated_only = true;
  c.sidecar("sidecar-type-root", "sidecar-type", "[]");
  c.sidecar("sidecar-type-files", "sidecar-type", R"({"schema":1,"files":{}})");
  c.sidecar("sidecar-type-file", "sidecar-type", R"({"schema":1,"files":[0]})");
  c.sidecar("sidecar-type-id", "sidecar-type", R"({"schema":1,"files":[{"id":256,"path":"a"}]})");
  c.sidecar("sidecar-type-id-real", "sidecar-type", R"({"schema":1,"files":[{"id":1.0,"path":"a"}]})");
  c.sidecar("sidecar-type-id-negative", "sidecar-type", R"({"schema":1,"files":[{"id":-1,"path":"a"}]})");
  c.sidecar("sidecar-type-path", "sidecar-type", R"({"schema":1,"files":[{"id":1,"path":null}]})");
  c.sidecar("sidecar-type-map", "sidecar-type", R"({"schema":1,"files":[{"id":1,"path":"a","mmap_required":1}]})");
  c.sidecar("sidecar-type-size", "sidecar-type",
            R"({"schema":1,"files":[{"id":1,"path":"a","size":18446744073709551616}]})");
  c.members("sidecar-too-many-dims", "sidecar-too-many", R"("shapes":[[1,1,1,1,1,1,1,1,1]])");
  c.members("sidecar-type-dim", "sidecar-type", R"("shapes":[["1"]])");
  c.members("sidecar-type-name", "sidecar-type", R"("tensors":[{"file":0,"id":0,"name":1}])");
  c.sidecar("sidecar-key", "sidecar-key", R"({"schema":1,"files":[],"sizes":[]})");
  c.sidecar("sidecar-key-file", "sidecar-key", R"({"schema":1,"files":[{"id":0,"path":"a","mode":{}}]})");
  c.members("sidecar-duplicate-key", "sidecar-duplicate-key", R"("shapes":[],"sh\u0061pes":[])");
  c.members("sidecar-duplicate-key-tensor", "sidecar-duplicate-key",
            R"("tensors":[{"file":0,"id":0,"id":0,"name":"w"}])");
  c.sidecar("sidecar-missing-key", "sidecar-missing-key", R"({"schema":1})");
  c.members("sidecar-missing-key-function", "sidecar-missing-key", R"("functions":[{"id":1}])");
  c.sidecar("sidecar-schema", "sidecar-schema", R"({"schema":2,"files":[]})");
  const auto path = [&](std::string name, std::string_view spelled) {
    c.sidecar(std::move(name), "sidecar-path",
              std::string(R"({"schema":1,"files":[{"id":0,"path":")").append(spelled) + "\"}]}");
  };
  path("sidecar-path", "../a.stb");
  path("sidecar-path-inside", "a/../../a.stb");
  path("sidecar-path-end", "a/..");
  path("sidecar-path-absolute", "/a.stb");
  path("sidecar-path-drive", "C:a.stb");
  path("sidecar-path-backslash", R"(a\\b.stb)");
  path("sidecar-path-nul", R"(a\u0000.stb)");
  path("sidecar-path-folder", "a/");
  path("sidecar-path-empty", "");
  c.members("sidecar-path-module", "sidecar-path", R"("module":"../m.knu")");
  std::string files;
  for (int i = 0; i < 257; ++i) files += std::string(i == 0 ? "" : ",") + R"({"id":0,"path":"a"})";
  c.sidecar("sidecar-too-many", "sidecar-too-many", R"({"schema":1,"files":[)" + files + "]}");
  c.sidecar("sidecar-duplicate", "sidecar-duplicate",
            R"({"schema":1,"files":[{"id":5,"path":"a.stb"},{"id":5,"path":"b.stb"}]})");
  c.members("sidecar-duplicate-function", "sidecar-duplicate",
            R"("functions":[{"id":5,"offset":1},{"id":4,"offset":0},{"id":5,"offset":2}])");
  c.members("sidecar-duplicate-tensor", "sidecar-duplicate",
            R"("tensors":[{"file":0,"id":0,"name":"a"},{"file":0,"id":0,"name":"b"}])");
  c.members("sidecar-duplicate-name", "sidecar-duplicate",
            R"("tensors":[{"file":0,"id":0,"name":"a"},{"file":0,"id":1,"name":"\u0061"}])");
  c.members("sidecar-shape-overflow", "sidecar-shape-overflow", R"("shapes":[[4294967296,4294967296]])");
  c.members("sidecar-file", "sidecar-file", R"("tensors":[{"file":1,"id":0,"name":"a"}])");
  c.sidecar("sidecar-size", "sidecar-size", R"({"schema":1,"files":[{"id":0,"path":"a.stb","size":64}]})");
  c.members("sidecar-tensor", "sidecar-tensor", R"("tensors":[{"file":0,"id":1,"name":"a"}])");

  c.add("shape-index", "shape-index", rank4(1));
  c.beside(with_shapes("[1,2,3,4]"));
  c.add("shape-rank", "shape-rank", rank4());
  c.beside(with_shapes("[2,3,4]"));
  c.add("shape-rank-stated", "shape-rank", rank4());
  c.beside(R"({"schema":1,"files":[{"id":0,"path":"a.stb"}],"tensors":[{"file":0,"id":0,"name":"w","shape":[24]}]})");
  c.members("shape-differs", "shape-differs", R"("tensors":[{"file":0,"id":0,"name":"a","shape":[2,2]}])");
  c.add("shape-differs-from-table", "shape-differs", rank4());
  c.beside(R"({"schema":1,"files":[{"id":0,"path":"a.stb"}],"shapes":[[1,2,3,4]],)"
           R"("tensors":[{"file":0,"id":0,"name":"w","shape":[4,3,2,1]}]})");
  c.add("size-mismatch-table", "size-mismatch", rank4());
  c.beside(with_shapes("[1,2,3,5]"));
  c.add("unused-dims-table", "unused-dims", file({{.rank = 4, .size = 24, .dims = {0, 1, 0}}}, counting(24)));
  c.beside(with_shapes("[1,2,3,4]"));
  c.add("duplicate-name", "duplicate-name", file({{.id = 7, .offset = 128}, {.id = 3, .offset = 128}}));
  c.beside(R"({"schema":1,"files":[{"id":0,"path":"a.stb"}],"tensors":[{"file":0,"id":3,"name":"7"}]})");
}

void add_header(Corpus& c) {
  c.add("too-short", "too-short", file({}, "").substr(0, 7));
  c.add("magic", "magic", file({kSound}, "abcd", {.magic = "STB1"}));
  c.add("version", "version", file({kSound}, "abcd", {.version = 2}));
  c.add("flags", "flags", file({kSound}, "abcd", {.flags = 1}));
  c.add("reserved", "reserved", file({kSound}, "abcd", {.reserved0 = 1}));
  c.add("reserved-both", "reserved", file({kSound}, "abcd", {.reserved0 = 1, .reserved1 = 0x80000000}), {"reserved"});
  c.add("file-size", "file-size", file({kSound}).substr(0, 66));
  c.add("file-size-trailing", "file-size", file({kSound}) + "!");
  c.add("file-size-64-bits", "file-size", file({kSound}, "abcd", {.file_size = UINT64_MAX}));
  c.add("too-many-tensors", "too-many-tensors", file({kSound}, "abcd", {.count = 257}));
  c.add("table-past-end", "table-past-end", file({kSound}, "abcd", {.count = 3}));
  c.add("data-offset-in-table", "data-offset-in-table", file({kSound}, "abcd", {.data_offset = 0x40 - 32}),
        {"data-offset-alignment"});
  c.add("data-offset-past-end", "data-offset-past-end", file({kSound}, "abcd", {.data_offset = 128}));
  c.add("data-offset-past-end-64-bits", "data-offset-past-end",
        file({kSound}, "abcd", {.data_offset = UINT64_MAX - 63}));
  c.add("data-offset-alignment", "data-offset-alignment",
        file({{.offset = 128}}, std::string(64, '\0') + "abcd", {.data_offset = 65}));
  c.add("limit-tensors", "limit/tensors", file({kSound}));
  c.last().limits.tensors = 0;
  c.last().generated_only = true;
  c.add("limit-header", "limit/header", file({kSound}));
  c.last().limits.header = 63;
  c.last().generated_only = true;
}

void add_tensors(Corpus& c) {
  const auto one = [&](std::string name, std::string rule, Desc tensor, std::vector<std::string> others = {}) {
    c.add(std::move(name), std::move(rule), file({tensor}), std::move(others));
  };
  c.add("duplicate-id", "duplicate-id", file({{.id = 7, .offset = 128}, {.id = 7, .offset = 128}}));
  one("rank", "rank", {.rank = 9});
  one("unused-dims", "unused-dims", {.dims = {4, 1, 0}});
  one("unused-dims-scalar", "unused-dims", {.dtype = 0, .rank = 0, .dims = {1, 0, 0}});
  one("before-data", "before-data", {.offset = 0});
  one("unaligned", "unaligned", {.offset = 66, .size = 2, .dims = {2}});
  one("past-end", "past-end", {.size = 5, .dims = {5}});
  one("past-end-offset", "past-end", {.offset = 128});
  one("past-end-64-bits", "past-end", {.offset = UINT64_MAX - 63, .size = 128, .dims = {128}});
  one("size-overflow", "size-overflow", {.rank = 3, .dims = {UINT32_MAX, UINT32_MAX, UINT32_MAX}});
  one("size-overflow-bytes", "size-overflow", {.dtype = 0, .rank = 2, .dims = {UINT32_MAX, UINT32_MAX}});
  one("size-mismatch", "size-mismatch", {.dims = {3}});
  one("size-mismatch-scalar", "size-mismatch", {.rank = 0, .dims = {}});
  one("size-mismatch-unknown-layout", "size-mismatch", {.layout = 9, .dims = {3}});
  one("unknown-dtype", "unknown-dtype", {.dtype = 4, .dims = {3}});
  one("unknown-dtype-rank-4", "unknown-dtype", {.dtype = 255, .rank = 4, .layout = 77, .dims = {}});
  one("unknown-layout", "unknown-layout", {.layout = 3});
  one("no-shape", "no-shape", {.rank = 4, .dims = {}});
  one("unused-dims-rank-4", "unused-dims", {.rank = 4, .dims = {0, 2, 2}}, {"unused-dims", "no-shape"});
  one("channels-last-rank", "channels-last-rank", {.layout = 2});
  one("channels-last-rank-0", "channels-last-rank", {.dtype = 0, .rank = 0, .layout = 2, .dims = {}});
  c.add("overlap", "overlap",
        file({{.offset = 128, .size = 68, .dims = {68}}, {.id = 1, .offset = 192}}, std::string(64, '\1') + "abcd"));
  c.add("overlap-other-length", "overlap", file({{.offset = 128}, {.id = 1, .offset = 128, .size = 2, .dims = {2}}}));
  c.add("two-errors", "size-mismatch",
        file({{.offset = 128, .dims = {3}}, {.id = 1, .offset = 128}, {.id = 2, .offset = 64}}), {"before-data"});
}

}  // namespace

std::vector<core::CorpusCase> cases() {
  Corpus corpus;
  add_valid(corpus);
  add_header(corpus);
  add_sidecars(corpus);
  add_tensors(corpus);
  return corpus.take();
}

}  // namespace weighbridge::stb
