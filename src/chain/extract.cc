// SPDX-License-Identifier: Apache-2.0
// extract-safetensors-source: writes the tensors of a reviewed candidate as files. It converts to a temporary .slm of
// f32 and takes them from there, so that both ways end in the same bytes.
#include <algorithm>
#include <filesystem>

#include "base/fail.h"
#include "chain/candidate.h"
#include "chain/evidence.h"
#include "chain/outcome.h"
#include "chain/source_folder.h"
#include "chain/source_schemas.h"
#include "codecs/checksum.h"
#include "codecs/indexed_checksum.h"
#include "io/publication.h"
#include "weighbridge/chain.h"
#include "weighbridge/open.h"
#include "weighbridge/output.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

// The candidate as a temporary .slm of f32.
class Intermediate {
 public:
  Intermediate(const Model& model, std::string path, const Context& context) : path_(std::move(path)) {
    plan(model, "slm", chain_options("f32", false)).execute(path_, context);
    model_ = open(path_, context);
  }
  ~Intermediate() { io::os::remove(io::os::kHere, path_.c_str()); }
  Intermediate(const Intermediate&) = delete;
  Intermediate& operator=(const Intermediate&) = delete;
  const Model& model() const noexcept { return model_; }

 private:
  std::string path_;
  Model model_;
};

// Makes a folder of the output, or checks the one that is there. Returns whether this made it.
bool make_folder(io::MadeFolders& folders, const std::string& path, bool replace) {
  if (folders.make(path)) return true;
  if (!std::filesystem::is_directory(std::filesystem::symlink_status(path)))
    base::misuse_of(path, "output-kind", "this is not a folder");
  const auto is_left_over = [](const auto& entry) { return io::is_temporary(entry.path().filename().string()); };
  const std::filesystem::directory_iterator entries(path);
  if (!replace && !std::all_of(begin(entries), end(entries), is_left_over))
    base::misuse_of(path, "output-exists", "the folder is there already and holds something",
                    base::option_hint("overwrite"));
  return false;
}

std::string dims_text(Shape shape) {
  std::string out;
  for (const std::uint64_t dim : shape) out += (out.empty() ? "" : "x") + std::to_string(dim);
  return out;
}

// Writes one tensor's file into the temporary folder, and its row.
io::Journal::Change write_tensor(const Tensor& tensor, std::uint64_t i, const ExtractOptions& options,
                                 const std::vector<std::string>& inputs, const Context& context,
                                 const io::Staging& staging, Record& manifest) {
  const std::string path = std::string(kTensorFolder) + "/" + std::string(tensor.name()) + ".f32";
  if (const std::string problem = path_problem(path); !problem.empty())
    refuse("path", tensor.name(), "cannot be the name of a file: it " + problem);
  require_other_file({options.folder + "/" + path, options.replace, inputs});
  const std::string new_name = std::to_string(i) + ".f32";
  OutputFile file(staging.path() + "/" + new_name, false);
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
  return {path, staging.name() + "/" + new_name, options.replace};
}

}  // namespace

Outcome extract_source(const std::string& candidate, const ExtractOptions& options, const Context& context) {
  const Candidate source = read_candidate(candidate, options.manifest, context);
  if (!source.manifest) base::misuse("manifest", "a source needs its source.manifest: who made it, from what, how");
  const ReadRecord reviewed = read_review(options.review, source, context);

  const io::Recovered left = io::recover(options.folder);
  for (const std::string_view each : {kSourceManifest, kReviewCopy})
    left.require_free(options.folder, std::string(each));
  std::vector<std::string> inputs = source.paths;
  inputs.push_back(options.review);
  const std::string manifest_path = options.folder + "/" + std::string(kSourceManifest),
                    copy = options.folder + "/" + std::string(kReviewCopy);
  for (const auto& [schema, path] : {std::pair{&kSourceSchema, &manifest_path}, std::pair{&kReviewSchema, &copy}})
    if (!std::filesystem::is_symlink(*path))  // only the link itself is removed
      check_output(*schema, {*path, options.replace, inputs});

  Record manifest(kSourceSchema);
  for (const std::string_view key :
       {"schema_version", "identity", "source_kind", "source_dtype", "license", "dataset", "training_summary"})
    manifest.set(key, source.manifest->record.get(key));
  set_tokenizer(manifest, *source.model.tokenizer());
  manifest.set("review_sha256", reviewed.sha256).set("candidate_sha256", source.sha256);

  io::MadeFolders folders;
  const bool made = make_folder(folders, options.folder, options.replace);
  const io::Staging staging(options.folder, "source", made);
  const std::string stage = staging.path() + "/";
  std::vector<io::Journal::Change> changes(2);  // the manifest last: without it the folder is no source
  {
    const Intermediate converted(source.model, stage + "between.slm", context);
    const Model& model = converted.model();
    set_shape(manifest, shape_of(model));
    manifest.set("tensor_count", std::uint64_t{model.size()});
    for (std::uint32_t i = 0; i < model.size(); ++i)
      changes.push_back(write_tensor(model[i], i, options, inputs, context, staging, manifest));
  }  // removes the temporary .slm
  Outcome out = report_on("extract-safetensors-source", manifest, manifest.digest(), {}, manifest_path);
  const auto add = [&](std::size_t at, std::string_view name, std::string_view bytes) {
    publish(stage + std::string(name), bytes, false);
    changes[at] = {std::string(name), staging.name() + "/" + std::string(name), options.replace};
  };
  add(0, kSourceManifest, out.record);
  add(1, kReviewCopy, reviewed.bytes);
  make_folder(folders, options.folder + "/" + std::string(kTensorFolder), true);
  io::Publication publication(options.folder);
  for (io::Journal::Change& each : changes) publication.add(std::move(each));
  publication.publish();
  folders.keep();
  return out;
}

}  // namespace weighbridge::chain
