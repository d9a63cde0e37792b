// SPDX-License-Identifier: Apache-2.0
// Packs a model into a module: STB files of at most 16 tensors, the sidecar that names them, and the words that load
// them. Leaves writing and verifying STB files to convert, and what STB can hold to its layout function.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "convert/rep.h"
#include "core/model/progress.h"
#include "core/model/view.h"
#include "core/writing/layout.h"
#include "formats/stb/layout.h"
#include "formats/stb/sidecar.h"
#include "io/publication.h"
#include "registry/registry.h"
#include "runtime/khlnary/module.h"
#include "weighbridge/text.h"

namespace weighbridge::khlnary {
using namespace internal;
namespace {

constexpr std::uint32_t kMaxTensors = kTensorsPerFile * kMaxPackedFiles;
constexpr std::size_t kMaxNamed = 5;  // tensors named in a refusal

// Losses of these kinds do not stop packing, since a module has no place for them. They are listed in `left_out`.
constexpr LossKind kLeftOut[] = {LossKind::attribute, LossKind::attribute_type, LossKind::extra, LossKind::tokenizer};

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

class Packer {
 public:
  Packer(const Model& model, const std::string& folder, const std::string& name, const PackOptions& options,
         const Context& context)
      : model_(model), folder_(folder), name_(name), options_(options), context_(context) {
    as_stb_.cast = options.cast;
    as_stb_.allow = options.allow;
    as_stb_.allow.insert(as_stb_.allow.end(), std::begin(kLeftOut), std::end(kLeftOut));
    as_stb_.replace = options.replace;
  }

  Packed run() {
    choose();
    judge();
    require_sound();
    require_free();
    collect_shapes();
    const bool made = make_folder();
    {
      const io::Staging staging(folder_, name_ + ".knu", made);
      stage_ = staging.path();
      write_all();
      publish_all(staging.name());
    }
    folders_.keep();
    packed_.module = module_path();
    packed_.sidecar = sidecar_path();
    packed_.tensors = count();
    return std::move(packed_);
  }

 private:
  std::uint32_t count() const { return static_cast<std::uint32_t>(chosen_.size()); }
  std::uint32_t file_count() const { return (count() + kTensorsPerFile - 1) / kTensorsPerFile; }
  std::string file_name(std::uint32_t k) const { return name_ + "-" + std::to_string(k) + ".stb"; }
  std::string beside(const std::string& name) const { return (std::filesystem::path(folder_) / name).string(); }
  std::string module_path() const { return beside(name_ + ".knu"); }
  std::string sidecar_path() const { return beside(name_ + std::string(stb::kSidecarExtension)); }

  // ---- input ----

  void choose() {
    if (name_.find('/') != std::string::npos || !stb::is_sidecar_path(file_name(0)) || !base::is_utf8(name_))
      base::misuse("name",
                   "a module cannot be called " + in_quotes(name_) + ": choose a name in UTF-8 without slashes");
    const auto allows = [&](LossKind kind) { return std::ranges::find(options_.allow, kind) != options_.allow.end(); };
    core::require_whole(model_, allows(LossKind::part), "khlnary/part");
    const bool unsupported = allows(LossKind::unsupported);
    std::vector<bool> used(options_.without.size());
    for (std::uint32_t i = 0; i < model_.size(); ++i) {
      const Tensor tensor = model_[i];
      const std::string_view name = tensor.name();
      bool left_out = unsupported && tensor.unsupported() != nullptr;
      for (std::size_t k = 0; k < used.size(); ++k)
        if (matches_glob(options_.without[k], name)) left_out = used[k] = true;
      if (left_out)
        packed_.left_out.push_back("tensor " + std::string(name));
      else
        chosen_.push_back(i);
    }
    if (const auto unused = std::ranges::find(used, false); unused != used.end())
      base::misuse("nothing-matches",
                   "no tensor matches " + in_quotes(options_.without[static_cast<std::size_t>(unused - used.begin())]));
    for (const auto& [key, value] : model_.attributes()) packed_.left_out.push_back("attribute " + key);
    for (const auto& [key, value] : model_.extra()) packed_.left_out.push_back("extra " + key);
    if (model_.tokenizer()) packed_.left_out.emplace_back("tokenizer");
    if (count() > kMaxTensors)
      refuse(rules::kPackTooMany, {.hint = base::option_hint("without")}, core::at_most(kMaxTensors), count(),
             "leave some out");
  }

  // Lays out all tensors under their own names, so that a refusal names them.
  void judge() {
    Builder builder;
    for (const std::uint32_t i : chosen_) builder.tensor(std::string(model_.name(i)), model_[i]);
    const Plan whole = plan(builder.build(), "stb", as_stb_);
    refuse_items(whole.blockers(), "leave it out", "without");
    refuse_items(whole.refused(), "accept that", "allow");
    for (const Item& loss : whole.losses())
      if (std::ranges::find(kLeftOut, loss.kind) != std::end(kLeftOut)) packed_.left_out.push_back(loss.subject);
    total_ = 2 * whole.payload_size();
  }

  // `help` says what the option does.
  static void refuse_items(const std::vector<Item>& items, std::string_view help, std::string_view option) {
    if (items.empty()) return;
    std::string list;
    for (std::size_t i = 0; i < items.size() && i < kMaxNamed; ++i)
      list += (i == 0 ? "" : "; ") + items[i].subject + " (" + std::string(weighbridge::name(items[i].kind)) +
              "): " + items[i].from + " -> " + items[i].to;
    if (items.size() > kMaxNamed) list += "; and " + std::to_string(items.size() - kMaxNamed) + " more";
    const auto castable = [](const Item& item) {
      const auto dtype = dtype_from_name(item.from);
      return item.kind == LossKind::dtype && dtype && info(*dtype).kind == DTypeKind::real;
    };
    const bool cast_helps = std::ranges::any_of(items, castable);
    const std::string value = option == "allow" ? std::string(weighbridge::name(items[0].kind)) : std::string{};
    refuse(rules::kPackTensor,
           {.hint = std::ranges::all_of(items, castable) ? base::option_hint("cast", "f32")
                                                         : base::option_hint(option, value)},
           {}, {}, {list, "; ", help, (cast_helps ? ", or cast floating-point tensors" : "")});
  }

  // Checks digests and the like of the source: a module has none that could show a failure later.
  void require_sound() const {
    const core::Format* const format = registry::find(model_.format());
    if (!format || !format->check_content || !format->content_can_fail) return;
    Report report;
    core::Findings findings(report, core::Findings::Mode::all);
    Context quiet = context_;
    if (context_.progress) quiet.progress = [&](std::uint64_t, std::uint64_t) { return context_.progress(0, 0); };
    format->check_content(model_, quiet, findings);
    if (const Finding* error = report.first_error()) throw Error(*error);
  }

  // A shape of rank above 3 goes into the sidecar's shape table.
  void collect_shapes() {
    std::vector<std::vector<std::uint64_t>> shapes;
    for (const std::uint32_t i : chosen_) {
      const Tensor tensor = model_[i];
      const Shape shape = tensor.shape();
      if (shape.size() <= stb::kMaxDirectRank) continue;
      if (place_of(shapes, shape) == shapes.size()) shapes.emplace_back(shape.begin(), shape.end());
    }
    if (!shapes.empty()) sidecar_.shapes = std::move(shapes);
  }

  static std::size_t place_of(const std::vector<std::vector<std::uint64_t>>& shapes, Shape shape) {
    const auto same = [&](const std::vector<std::uint64_t>& s) { return std::ranges::equal(s, shape); };
    return static_cast<std::size_t>(std::ranges::find_if(shapes, same) - shapes.begin());
  }

  // ---- one STB file ----

  void write_file(std::uint32_t k) {
    const std::uint32_t first = k * kTensorsPerFile, size = std::min(kTensorsPerFile, count() - first);
    // Tensors are named by their ids here.
    Builder builder;
    for (std::uint32_t id = 0; id < size; ++id) {
      const Tensor tensor = model_[chosen_[first + id]];
      builder.tensor(std::to_string(id), tensor);
      const Shape shape = tensor.shape();
      sidecar_.tensors.push_back({.file = static_cast<std::uint8_t>(k),
                                  .id = static_cast<std::uint8_t>(id),
                                  .name = std::string(tensor.name()),
                                  .shape = std::vector<std::uint64_t>(shape.begin(), shape.end())});
    }
    const Model part = builder.build();
    const auto rep = std::make_shared<convert::PlanRep>();
    rep->format = registry::find("stb");
    rep->layout = rep->format->layout(part, as_stb_, context_);
    rep->models = {part};
    sidecar_.files.push_back({.id = static_cast<std::uint8_t>(k), .path = file_name(k), .size = rep->layout.size});
    adopt(rep->layout, first, size);
    packed_.bytes += rep->layout.size;
    const Plan writing = convert::PlanMaker::make(rep, part, as_stb_);
    Context context = context_;
    if (context_.progress)
      context.progress = [&](std::uint64_t done, std::uint64_t) { return context_.progress(done_ + done, total_); };
    packed_.files.push_back(beside(file_name(k)));
    writing.execute((std::filesystem::path(stage_) / file_name(k)).string(), context);
    done_ += 2 * writing.payload_size();
  }

  // Gives the tensors of a layout the ids that the module's words use (the layout may have kept those of an STB
  // source); their own names, in a sidecar of the file's own, with which it opens alone; and shapes of rank above 3
  // their index in the module's table.
  void adopt(core::WriteLayout& layout, std::uint32_t first, std::uint32_t size) const {
    stb::Sidecar own;
    own.shapes = sidecar_.shapes;
    for (std::uint32_t i = 0; i < size; ++i) {
      layout.tensors[i].name = model_.name(chosen_[first + i]);
      own.tensors.push_back(sidecar_.tensors[first + i]);
      own.tensors.back().file = 0;
      const std::size_t at = base::to_size(stb::kHeaderSize + i * stb::kDescriptorSize);
      auto descriptor = base::load_record<stb::Descriptor>(layout.head.data() + at);
      descriptor.tensor_id = own.tensors.back().id;
      if (descriptor.rank > stb::kMaxDirectRank) {
        const Tensor tensor = model_[chosen_[first + i]];
        descriptor.dims[0] = static_cast<std::uint32_t>(place_of(*sidecar_.shapes, tensor.shape()));
      }
      layout.head.replace(at, stb::kDescriptorSize, base::store_record(descriptor));
    }
    own.files.push_back({.id = 0, .path = {}, .size = layout.size});
    layout.companion = {.extension = std::string(stb::kSidecarExtension),
                        .text = [own = std::move(own)](std::string_view name) {
                          stb::Sidecar named = own;
                          named.files.front().path = name;
                          return stb::write_sidecar(named);
                        }};
  }

  // Loads each tensor in order; the last handle is the module's result.
  std::vector<std::uint32_t> words() const {
    std::vector<std::uint32_t> out;
    const auto add = [&](Glyph::Id id, std::uint8_t payload) {
      const Glyph& glyph = *find_glyph(static_cast<std::uint8_t>(id));
      out.push_back(encode({.glyph = static_cast<std::uint8_t>(id),
                            .arity = glyph.min_arity,
                            .flags = glyph.flags,
                            .payload = payload}));
    };
    for (const stb::TensorEntry& tensor : sidecar_.tensors)
      add(Glyph::Id::load_bin_tensor, static_cast<std::uint8_t>(tensor.file << 4 | tensor.id));
    if (out.empty()) add(Glyph::Id::const_i8, 0);
    add(Glyph::Id::ret, 0);
    return out;
  }

  // ---- the folder ----

  // Writes all files into the temporary folder.
  void write_all() {
    for (std::uint32_t k = 0; k < file_count(); ++k) write_file(k);
    sidecar_.module = name_ + ".knu";
    write_text(name_ + std::string(stb::kSidecarExtension), stb::write_sidecar(sidecar_));
    write_text(*sidecar_.module, stored(words()));
  }

  // Sets all old files aside first: until the new module exists, no old one may load new files.
  void publish_all(const std::string& stage) {
    const auto go_on = [&] { return core::goes_on(context_, 0, total_); };
    io::Publication publication(folder_, go_on);
    for (const std::string& path : paths()) {
      const std::string name = path.substr(beside("").size());
      const bool written = std::filesystem::exists(std::filesystem::path(stage_) / name);
      publication.add({name, written ? stage + "/" + name : "", options_.replace});
    }
    publication.publish();  // the module last
  }

  // All files to write, and with `replace` those that an earlier packing of more tensors may have left; the module
  // first.
  std::vector<std::string> paths() const {
    std::vector<std::string> out{module_path(), sidecar_path()};
    for (std::uint32_t k = 0; k < (options_.replace ? kMaxPackedFiles : file_count()); ++k) {
      out.push_back(beside(file_name(k)));
      out.push_back(beside(stb::sidecar_name(file_name(k))));
    }
    return out;
  }

  [[noreturn]] static void refuse_existing(const std::string& path) {
    base::misuse_of(path, "output-exists", "the file exists", base::option_hint("overwrite"));
  }

  void require_free() const {
    const io::Recovered left = io::recover(folder_);  // what a killed run had set aside is in the way too
    for (const std::string& path : paths()) {
      left.require_free(folder_, path.substr(beside("").size()));
      std::error_code ignored;
      if (!std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) continue;
      if (!options_.replace) refuse_existing(path);
      if (io::find_file(path, model_.sources()))
        base::misuse_of(path, "output-is-input", "this is the input: choose another folder");
    }
  }

  // Returns whether it made the folder.
  bool make_folder() {
    if (folders_.make(folder_)) return true;
    std::error_code unknown;
    if (std::filesystem::is_directory(folder_, unknown)) return false;
    const bool leads_nowhere = !std::filesystem::exists(folder_, unknown) && !unknown;
    base::misuse_of(
        folder_, "output-kind",
        std::string("cannot be written into: it is ") + (leads_nowhere ? "a broken symbolic link" : "not a folder"));
  }

  void write_text(const std::string& name, const std::string& bytes) {
    io::AtomicFile file((std::filesystem::path(stage_) / name).string(),
                        {.replace = false, .expected_size = bytes.size()});
    file.write_whole(std::as_bytes(std::span(bytes)));
    file.publish();
  }

  const Model& model_;
  const std::string& folder_;
  const std::string& name_;
  const PackOptions& options_;
  const Context& context_;
  Options as_stb_{};
  std::vector<std::uint32_t> chosen_{};  // indices of the model's tensors
  stb::Sidecar sidecar_{};
  Packed packed_{};
  std::string stage_{};  // the temporary folder
  io::MadeFolders folders_{};
  std::uint64_t done_ = 0, total_ = 0;
};

}  // namespace

Packed pack(const Model& model, const std::string& folder, const std::string& name, const PackOptions& options,
            const Context& context) {
  // What was checked is what is packed, even if the file changes meanwhile.
  return Packer(core::witnessed(model), folder, name, options, context).run();
}

}  // namespace weighbridge::khlnary
