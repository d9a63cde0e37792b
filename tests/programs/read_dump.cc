// SPDX-License-Identifier: Apache-2.0
// Says what the library reads in files, for comparisons with other readers (tests/interop/differential). Reads lines
// from stdin and prints a line of JSON for each:
//   F PATH          {"verdict": as of `verify --json`, "inspection": as of `inspect --json`, null if it is invalid,
//                   "digests": for each tensor null or the SHA-256 of its bytes,
//                   "big": for each whether its bytes are stored in that order}
//   G MODULE NAME   in hexadecimal: for a global of a pickle {"harmless": bool, "pytorch": bool}, the latter with
//                   the names that only checkpoints of PyTorch may have
// The bytes of a tensor are its elements, little-endian and row-major; of quantized ones, the parts as they are stored.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "codecs/checksum.h"
#include "core/archive/pickle_globals.h"
#include "formats/pytorch/globals.h"
#include "weighbridge/json.h"
#include "weighbridge/json_writer.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace {

using namespace weighbridge;

std::string digest_of(const Tensor& tensor, const Context& context) {
  codecs::Sha256 sum;
  const auto add = [&](std::span<const std::byte> bytes) {
    sum.update(bytes);
    return true;
  };
  if (tensor.layout() != Layout::dense && tensor.block_type() == nullptr)
    tensor.stream_dense(tensor.dtype(), context, add);
  else
    for (const Part& part : tensor.parts()) part.stream(context, add);
  return codecs::to_hex(sum.finish());
}

std::string answer_about_file(const std::string& path) {
  Context context;
  context.limits.decoded = context.limits.work = std::uint64_t{64} << 20;  // the files are small
  const Verdict verdict = verify(path, context);
  JsonWriter out;
  out.begin_object();
  out.key("verdict");
  out.raw(to_json(path, verdict));
  out.key("inspection");
  if (!verdict.report.valid()) {
    out.null();
    out.end_object();
    return out.take();
  }
  const Model model = open(path, context);  // which must not fail where verify finds nothing
  std::vector<std::uint32_t> all(model.size());
  std::iota(all.begin(), all.end(), 0U);
  out.raw(to_json(Inspection{.path = path, .model = model, .tensors = all}));
  out.key("digests");
  out.begin_array();
  for (const Tensor& tensor : model) try {
      if (tensor.unsupported() != nullptr)
        out.null();
      else
        out.string(digest_of(tensor, context));
    } catch (const Error& error) {
      if (error.kind() != Kind::limit) throw;
      out.string("limit");
    }
  out.end_array();
  out.key("big");
  out.begin_array();
  for (const Tensor& tensor : model) out.boolean(tensor.part_count() > 0 && tensor.part(0).order() == Order::big);
  out.end_array();
  out.end_object();
  return out.take();
}

std::string from_hexadecimal(std::string_view text) {
  std::string out(text.size() / 2, '\0');
  if (!codecs::from_hex(text, std::as_writable_bytes(std::span(out)))) throw std::runtime_error("not hexadecimal");
  return out;
}

std::string answer_about_global(std::string_view names) {
  const std::size_t space = names.find(' ');
  const std::string module = from_hexadecimal(names.substr(0, space)), name = from_hexadecimal(names.substr(space + 1));
  JsonWriter out;
  out.begin_object();
  out.flag("harmless", core::is_harmless_global(module, name));
  out.flag("pytorch", pytorch::is_known(module, name));
  out.end_object();
  return out.take();
}

std::string answer(const std::string& line) {
  try {
    const std::string rest = line.substr(2);
    return line[0] == 'G' ? answer_about_global(rest) : answer_about_file(rest);
  } catch (const std::exception& error) {
    JsonWriter out;
    out.begin_object();
    out.member("error", error.what());
    out.end_object();
    return out.take();
  }
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(line) << std::endl;
  return 0;
}
