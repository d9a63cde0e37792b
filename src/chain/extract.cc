// SPDX-License-Identifier: Apache-2.0
// extract-safetensors-source: writes the tensors of a reviewed candidate as files. It converts to a temporary .slm of
// f32 and takes them from there, so that both ways end in the same bytes.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/fail.h"
#include "chain/candidate.h"
#include "chain/evidence.h"
#include "chain/outcome.h"
#include "chain/review.h"
#include "chain/source_folder.h"
#include "chain/source_manifest.h"
#include "chain/source_schemas.h"
#include "codecs/checksum.h"
#include "codecs/indexed_checksum.h"
#include "weighbridge/chain.h"
#include "weighbridge/open.h"
#include "weighbridge/output.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

// Removes the old file first: writing must not follow a link there.
void clear(const std::string& path, bool replace) {
  std::error_code error;
  if (replace) std::filesystem::remove(path, error);
  if (error) base::io_error_of(path, "create", "cannot be replaced", error.value());
}

// The candidate as a temporary .slm of f32.
class Intermediate {
 public:
  Intermediate(const Model& model, std::string path, const Context& context) : path_(std::move(path)) {
    clear(path_, true);
    plan(model, "slm", chain_options("f32", false)).execute(path_, context);
    model_ = open(path_, context);
  }
  ~Intermediate() { ::unlink(path_.c_str()); }
  Intermediate(const Intermediate&) = delete;
  Intermediate& operator=(const Intermediate&) = delete;
  const Model& model() const noexcept { return model_; }

 private:
  std::string path_;
  Model model_;
};

void make_folder(const std::string& path, bool replace) {
  if (::mkdir(path.c_str(), 0777) == 0) return;
  if (errno != EEXIST) base::io_error_of(path, "create", "the folder cannot be made", errno);
  if (!std::filesystem::is_directory(std::filesystem::symlink_status(path)))
    base::misuse_of(path, "output-kind", "this is no folder");
  if (!replace && !std::filesystem::is_empty(path))
    base::misuse_of(path, "output-exists", "the folder is there already and holds something",
                    base::option_hint("replace"));
}

std::string dims_text(Shape shape) {
  std::string out;
  for (const std::uint64_t dim : shape) out += (out.empty() ? "" : "x") + std::to_string(dim);
  return out;
}

// Writes one tensor's file and its row.
void write_tensor(const Tensor& tensor, std::uint64_t i, const ExtractOptions& options,
                  const std::vector<std::string>& inputs, const Context& context, Record& manifest) {
  const std::string path = std::string(kTensorFolder) + "/" + std::string(tensor.name()) + ".f32";
  if (const std::string problem = path_problem(path); !problem.empty())
    refuse("path", tensor.name(), "cannot be the name of a file: it " + problem);
  require_other_file({options.folder + "/" + path, options.replace, inputs});
  clear(options.folder + "/" + path, options.replace);
  OutputFile file(options.folder + "/" + path, false);
  codecs::Sha256 sha;
  codecs::IndexedChecksum checksum;
  std::uint64_t bytes = 0;
  tensor.stream_dense(DType::f32, context, [&](std::span<const std::byte> piece) {
    file.write(piece);
    sha.update(piece);
    checksum.update(piece);
    bytes += piece.size();
    return true;
  });
  file.publish();
  const std::string row = "tensor." + std::to_string(i);
  manifest.set(row + ".name", tensor.name()).set(row + ".dims", dims_text(tensor.shape())).set(row + ".path", path);
  manifest.set(row + ".bytes", bytes).set(row + ".checksum", codecs::checksum_text(checksum.value()));
  manifest.set(row + ".sha256", codecs::to_hex(sha.finish()));
}

}  // namespace

Outcome extract_source(const std::string& candidate, const ExtractOptions& options, const Context& context) {
  const Candidate source = read_candidate(candidate, options.manifest, context);
  if (!source.manifest) base::misuse("manifest", "a source needs its source.manifest: who made it, from what, how");
  const ReadRecord reviewed = read_review(options.review, source, context);

  std::vector<std::string> inputs = source.paths;
  inputs.push_back(options.review);
  const std::string manifest_path = options.folder + "/" + std::string(kSourceManifest),
                    copy = options.folder + "/" + std::string(kReviewCopy), between = options.folder + "/.extract.slm";
  for (const auto& [schema, path] : {std::pair{&kSourceSchema, &manifest_path}, std::pair{&kReviewSchema, &copy}})
    if (!std::filesystem::is_symlink(*path))  // only the link itself is removed
      check_output(*schema, {*path, options.replace, inputs});
  require_other_file({between, true, inputs});

  Record manifest(kSourceSchema);
  for (const std::string_view key :
       {"schema_version", "identity", "source_kind", "source_dtype", "license", "dataset", "training_summary"})
    manifest.set(key, source.manifest->record.get(key));
  set_tokenizer(manifest, *source.model.tokenizer());
  manifest.set("review_sha256", reviewed.sha256).set("candidate_sha256", source.sha256);

  make_folder(options.folder, options.replace);
  make_folder(options.folder + "/" + std::string(kTensorFolder), options.replace);
  // Without the manifest the folder is no source, whatever fails below.
  clear(manifest_path, options.replace);
  {
    const Intermediate converted(source.model, between, context);
    const Model& model = converted.model();
    set_shape(manifest, shape_of(model));
    manifest.set("tensor_count", std::uint64_t{model.size()});
    for (std::uint32_t i = 0; i < model.size(); ++i) write_tensor(model[i], i, options, inputs, context, manifest);
  }  // removes the temporary .slm
  clear(copy, options.replace);
  publish(copy, reviewed.bytes, false);
  return conclude("extract-safetensors-source", manifest, {}, {manifest_path, false, inputs});
}

}  // namespace weighbridge::chain
