// SPDX-License-Identifier: Apache-2.0
// Makes the tensors of a GGUF again from its source, by an ordinary plan with the options that the file shows, and
// compares their bytes. Owns how these options are found.
#include "weighbridge/derivation.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "convert/rep.h"
#include "convert/write.h"
#include "core/model/buffers.h"
#include "core/model/plan_text.h"
#include "core/model/progress.h"
#include "core/model/words.h"
#include "core/payload/payload.h"
#include "core/writing/file_types.h"
#include "core/writing/layout.h"
#include "weighbridge/block_type.h"
#include "weighbridge/open.h"

namespace weighbridge {
namespace {

using core::Payload;

// The output of a plan, read as a file: the header as it is, the payload as it is made.
class Output final : public Source {
 public:
  Output(Plan plan, Context context) : plan_(std::move(plan)), context_(std::move(context)), size_(layout().size) {
    std::uint64_t at = layout().head.size();
    for (const Payload& payload : layout().payloads) {
      begins_.push_back(base::align_up(at, payload.alignment).value_or(UINT64_MAX));
      at = begins_.back() + payload.logical_size;
    }
  }
  const core::WriteLayout& layout() const { return convert::PlanMaker::rep(plan_)->layout; }
  std::uint64_t size() const noexcept override { return size_; }
  std::string_view name() const noexcept override { return "<derived>"; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    std::ranges::fill(out, std::byte{});
    const auto copy = [&](std::uint64_t begin, std::uint64_t size, const auto& read) {
      const std::uint64_t from = std::max(begin, offset), to = std::min(begin + size, offset + out.size());
      if (from < to) read(from - begin, out.subspan(base::to_size(from - offset), base::to_size(to - from)));
    };
    copy(0, layout().head.size(), [&](std::uint64_t at, std::span<std::byte> part) {
      std::memcpy(part.data(), layout().head.data() + at, part.size());
    });
    auto i = static_cast<std::size_t>(std::ranges::upper_bound(begins_, offset) - begins_.begin());
    for (i = i > 0 ? i - 1 : 0; i < begins_.size() && begins_[i] < offset + out.size(); ++i)
      copy(begins_[i], layout().payloads[i].logical_size,
           [&](std::uint64_t at, std::span<std::byte> part) { make(i, at, part); });
  }
  void make(std::size_t i, std::uint64_t offset, std::span<std::byte> out) const {
    const Payload& payload = layout().payloads[i];
    if (convert::has_ranges(payload)) return convert::read_range(payload, context_, offset, out);
    std::uint64_t at = 0;
    convert::stream(payload, context_, [&](std::span<const std::byte> piece) {
      const std::uint64_t from = std::max(at, offset), to = std::min(at + piece.size(), offset + out.size());
      if (from < to)
        std::memcpy(out.data() + (from - offset), piece.data() + (from - at), static_cast<std::size_t>(to - from));
      at += piece.size();
    });
  }

 private:
  Plan plan_;
  Context context_;
  std::uint64_t size_;
  std::vector<std::uint64_t> begins_;
};

// A way to make the file.
struct Made {
  std::shared_ptr<const Output> output;
  Model model;
};

std::string type_of(const Tensor& tensor) {
  return std::string(tensor.type_name()) + " " + core::shape_text(tensor.shape());
}
bool alike(const Tensor& a, const Tensor& b) { return a.block_type() == b.block_type() && a.dtype() == b.dtype(); }
// "q4_k", "f16"
std::string_view type_name(const Tensor& tensor) {
  const std::string_view name =
      tensor.block_type() != nullptr ? tensor.block_type()->name : weighbridge::name(tensor.dtype());
  return name.substr(name.rfind('.') + 1);
}
std::uint64_t bytes_of_block(const Tensor& tensor) {
  const BlockTypeInfo* const block = tensor.block_type();
  return block != nullptr ? block->block_bytes : std::max<std::uint64_t>(info(tensor.dtype()).bits / 8, 1);
}

class Check {
 public:
  Check(const Model& file, const Model& source, const DerivationOptions& asked, const Context& context)
      : file_(file), source_(source), asked_(asked), context_(context) {}

  Derivation run() {
    if (file_.format() != "gguf") base::misuse("derived", "only a GGUF file can be derived from another model");
    const bool by_matrix = asked_.with_matrix || std::ranges::any_of(file_.attributes(), [](const auto& each) {
                             return each.first.starts_with("quantize.imatrix.");
                           });
    if (by_matrix && !asked_.imatrix && !(asked_.options && asked_.options->gguf.imatrix)) {
      out_.unclaimed = "made with an importance matrix that is not given";
      return std::move(out_);
    }
    Made made = asked_.options ? make(*asked_.options) : by_types_of_the_file();
    out_.quantize = options_.quantize;
    out_.pure = options_.gguf.pure;
    out_.imatrix = options_.gguf.imatrix != nullptr;
    compare(made);
    if (asked_.values) add_values(made.model);
    for (auto& [at, each] : unlike_)
      if (out_.differences.size() < Derivation::kMost) out_.differences.push_back(std::move(each));
    for (const Model& each : {file_, source_})
      for (const auto& input : each.sources()) input->check_unchanged();
    return std::move(out_);
  }

 private:
  // What the options make of the source. Nothing, if it cannot be converted with them and `must` is off.
  std::optional<Made> tried(Options options, bool must) {
    options.allow.clear();  // nothing is written, so nothing is lost
    for (std::size_t i = 0; i < kLossKindCount; ++i) options.allow.push_back(static_cast<LossKind>(i));
    options.shards = {};
    Plan made = plan(source_, "gguf", options, context_);
    if (!made.blockers().empty()) {
      if (!must) return std::nullopt;
      const Item& item = made.blockers().front();
      base::misuse("derived", "the source cannot be converted with the options of this file: " + item.subject + ", " +
                                  item.from + ": " + item.to);
    }
    options_ = std::move(options);
    auto output = std::make_shared<const Output>(std::move(made), context_);
    Model model = open(output, context_, {.format = "gguf"});
    return Made{std::move(output), std::move(model)};
  }
  Made make(Options options) { return *tried(std::move(options), true); }

  // The options of a conversion that does not quantize.
  Options plain() const {
    Options out;
    if (file_.attribute("general.architecture") && !source_.attribute("general.architecture"))
      out.gguf.naming = "llama";
    return out;
  }

  Options by_file_type() const {
    Options out = plain();
    const Value* const stated = file_.attribute("general.file_type");
    const auto number = stated != nullptr ? stated->as_u64() : std::nullopt;
    // Else the type of most bytes; of blocks, if there are any.
    std::map<std::pair<bool, std::string_view>, std::uint64_t> bytes;
    for (const Tensor& tensor : file_)
      if (tensor.part_count() > 0) bytes[{tensor.block_type() != nullptr, type_name(tensor)}] += tensor.main().size();
    const auto most = std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first.first, a.second) < std::pair(b.first.first, b.second);
    });
    const std::string main(most == bytes.end() ? std::string_view() : most->first.second);
    for (const core::FileType& type : core::kFileTypes)
      if (out.quantize.empty() && (number ? type.number == *number : type.name == main)) out.quantize = type.name;
    if (out.quantize.empty())
      base::unsupported("derived", "this build does not make files of the type " +
                                       (number ? "number " + std::to_string(*number) : main));
    out.gguf.imatrix = asked_.imatrix;
    return out;
  }

  // The tensors of the file that this way gives another type.
  std::vector<Tensor> others(const Made& made) const {
    std::vector<Tensor> out;
    for (const Tensor& tensor : file_)
      if (const auto twin = made.model.find(tensor.name()); twin && !alike(*twin, tensor)) out.push_back(tensor);
    return out;
  }

  // Without quantizing, if that gives the types of the file: `quantize` with the name of a dtype also makes vectors
  // f32 and puts metadata at the end. If both ways give them, the header shows which one it was.
  Made by_types_of_the_file() {
    std::optional<Made> as_it_is = tried(plain(), false);
    if (!as_it_is || !others(*as_it_is).empty()) return by_mix_of_the_file();
    const Options options = options_;
    if (has_header_of(*as_it_is)) return *as_it_is;
    if (std::ranges::none_of(file_, [](const Tensor& tensor) { return tensor.block_type() != nullptr; })) try {
        if (Made made = by_mix_of_the_file(); has_header_of(made)) return made;
      } catch (const Error& error) {
        if (error.kind() != Kind::unsupported) throw;  // no such type: not quantized
      }
    options_ = options;
    out_.chosen = 0;
    return *as_it_is;
  }

  // The mix that the file states; without its exceptions, if that fits better; and the types that fit neither.
  Made by_mix_of_the_file() {
    Options options = by_file_type();
    Made out = make(options);
    std::vector<Tensor> unlike = others(out);
    if (unlike.empty()) return out;
    Options pure = options;
    pure.gguf.pure = true;
    if (Made made = make(pure); others(made).size() < unlike.size()) {
      unlike = others(made);
      out = std::move(made);
      options = pure;
    } else {
      options_ = options;
    }
    if (unlike.empty() || unlike.size() > kMostChosen) return out;
    for (const Tensor& tensor : unlike) {
      const auto plain = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
      };
      std::string pattern = "^";
      for (const char c : tensor.name()) pattern += plain(c) ? std::string(1, c) : c == '.' ? "\\." : ".";
      options.gguf.tensor_type.push_back(pattern + "$=" + std::string(type_name(tensor)));
    }
    out_.chosen = unlike.size();
    return make(options);
  }

  struct Task {
    std::uint32_t tensor;  // of the file
    std::size_t payload;
    std::uint64_t offset, size;    // whole blocks
    std::vector<bool> unlike{};    // of these
    bool as_ggml = false;          // some are GGML's defect
    std::uint64_t contracted = 0;  // so many are those of a contracted build
  };

  std::vector<Task> tasks_of(const Made& made, std::size_t payload, std::uint32_t tensor) const {
    const Payload& of = made.output->layout().payloads[payload];
    const std::uint64_t size = of.logical_size, block = bytes_of_block(file_[tensor]),
                        step = convert::has_ranges(of) ? convert::kSegment / block * block : size;
    std::vector<Task> out;
    for (std::uint64_t at = 0; at < size; at += step) out.push_back({tensor, payload, at, std::min(step, size - at)});
    return out;
  }

  void compare(const Made& made) {
    const core::WriteLayout& layout = made.output->layout();
    std::vector<Task> tasks;
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < layout.payloads.size(); ++i) {
      const std::string_view name = layout.tensors[layout.payloads[i].out_tensor].name;
      const auto twin = made.model.find(name), tensor = file_.find(name);
      if (!tensor) {
        unlike_[std::uint64_t{file_.size()} + i] = {
            .what = UnlikeTensor::What::missing, .name = std::string(name), .made = type_of(*twin)};
        continue;
      }
      ++out_.tensors;
      if (!alike(*tensor, *twin) || !std::ranges::equal(tensor->shape(), twin->shape())) {
        unlike_[tensor->index()] = {.what = UnlikeTensor::What::type,
                                    .name = std::string(name),
                                    .found = type_of(*tensor),
                                    .made = type_of(*twin)};
        continue;
      }
      for (const Task& task : tasks_of(made, i, tensor->index())) tasks.push_back(task);
      total += layout.payloads[i].logical_size;
    }
    for (const Tensor& tensor : file_)
      if (!made.model.find(tensor.name()))
        unlike_[tensor.index()] = {
            .what = UnlikeTensor::What::additional, .name = std::string(tensor.name()), .found = type_of(tensor)};
    out_.bytes = total;
    core::Progress progress(context_, total);
    const Context quiet = progress.inner();
    core::executor_of(context_).for_each(tasks.size(), [&](std::uint64_t i) {
      Task& task = tasks[base::to_size(i)];
      task.unlike = unlike_blocks(*made.output, task, quiet);
      progress.add(task.size);
    });
    std::erase_if(tasks, [](const Task& task) { return task.unlike.empty(); });
    make_otherwise(tasks, quiet);
    for (const Task& task : tasks) add(task);
    out_.header = has_header_of(made);
    out_.unlike = unlike_.size();
    progress.finish();
  }

  // Which blocks differ, from the task's first one on; empty if none does. Compares in order what is made in order, so
  // that no payload is held.
  std::vector<bool> unlike_blocks(const Output& output, const Task& task, const Context& context) const {
    const Tensor tensor = file_[task.tensor];
    const Part part = tensor.main();
    std::vector<std::byte> found(base::to_size(std::min(task.size, convert::kSegment)));
    const std::uint64_t block = bytes_of_block(tensor);
    std::vector<bool> unlike;
    std::uint64_t at = 0;
    const auto piece = [&](std::span<const std::byte> made) {
      while (!made.empty()) {
        const std::size_t n = std::min(made.size(), found.size());
        const std::span<std::byte> own = std::span(found).first(n);
        core::read_direct(part, task.offset + at, own);
        if (std::memcmp(own.data(), made.data(), n) != 0) {
          unlike.resize(base::to_size(task.size / block));
          for (std::size_t i = 0; i < n; ++i)
            if (own[i] != made[i]) unlike[base::to_size((at + i) / block)] = true;
        }
        at += n;
        made = made.subspan(n);
      }
    };
    const Payload& payload = output.layout().payloads[task.payload];
    if (convert::has_ranges(payload)) {
      std::vector<std::byte> made(base::to_size(task.size));
      convert::read_range(payload, context, task.offset, made);
      piece(made);
    } else {
      convert::stream(payload, context, piece);
    }
    return unlike;
  }

  // Blocks that differ may be those of GGML where these are a defect (iq3_s, where an empty group moves the codes
  // behind it), of its builds for processors with FMA, or both.
  void make_otherwise(std::vector<Task>& tasks, const Context& context) {
    const Options asked = options_;
    for (const auto& way : {std::pair(true, false), {false, true}, {true, true}}) {
      const bool as_ggml = way.first, contracted = way.second;
      std::vector<Task*> left;
      for (Task& task : tasks) {
        const BlockTypeInfo* const type = file_[task.tensor].block_type();
        if (type == nullptr || std::ranges::find(task.unlike, true) == task.unlike.end()) continue;
        if (!as_ggml || (!asked.gguf.as_ggml && type->name.ends_with("iq3_s"))) left.push_back(&task);
      }
      if (left.empty()) continue;
      Options options = asked;
      options.gguf.as_ggml |= as_ggml;
      options.gguf.contracted = contracted;
      const Made made = make(options);  // the same tensors in the same order
      core::executor_of(context_).for_each(left.size(), [&](std::uint64_t i) {
        Task& task = *left[base::to_size(i)];
        std::vector<bool> unlike = unlike_blocks(*made.output, task, context);
        unlike.resize(task.unlike.size());
        for (std::size_t b = 0; b < unlike.size(); ++b) {
          if (!task.unlike[b] || unlike[b]) continue;
          task.unlike[b] = false;
          task.as_ggml |= as_ggml;
          task.contracted += contracted;
        }
      });
    }
    options_ = asked;
    std::set<std::uint32_t> of_ggml;
    for (const Task& task : tasks) {
      if (task.as_ggml) of_ggml.insert(task.tensor);
      out_.contracted += task.contracted;
    }
    out_.as_ggml = of_ggml.size();
  }

  void add(const Task& task) {
    const auto count = static_cast<std::uint64_t>(std::ranges::count(task.unlike, true));
    if (count == 0) return;
    const Tensor tensor = file_[task.tensor];
    const std::uint64_t block = bytes_of_block(tensor);
    const auto first = std::ranges::find(task.unlike, true) - task.unlike.begin();
    UnlikeTensor& unlike = unlike_[task.tensor];
    if (unlike.unlike == 0)
      unlike = {.name = std::string(tensor.name()),
                .found = type_of(tensor),
                .made = type_of(tensor),
                .blocks = tensor.main().size() / block,
                .first = task.offset / block + static_cast<std::uint64_t>(first)};
    unlike.unlike += count;
  }

  bool has_header_of(const Made& made) const {
    const std::string& head = made.output->layout().head;
    const auto& sources = file_.sources();
    if (sources.size() != 1 || sources[0]->size() != made.output->size()) return false;
    std::string found(head.size(), '\0');
    sources[0]->read_at(0, std::as_writable_bytes(std::span(found)));
    return found == head;
  }

  void add_values(const Model& made) {
    DiffOptions options{.match = Match::names, .metadata = false};
    for (const auto& [at, each] : unlike_)
      if (each.what == UnlikeTensor::What::bytes && options.only.size() < kMostValues)
        options.only.push_back(each.name);
    if (options.only.empty()) return;
    for (TensorDiff& each : diff(made, file_, options, context_).tensors)
      for (auto& [at, unlike] : unlike_)
        if (unlike.name == each.name_b) unlike.values = each.values;
  }

  static constexpr std::size_t kMostChosen = 1024, kMostValues = 100;
  const Model &file_, &source_;
  const DerivationOptions& asked_;
  const Context& context_;
  Options options_;  // of the last make()
  Derivation out_;
  std::map<std::uint64_t, UnlikeTensor> unlike_;  // by index in the file; after these, those that are missing
};

}  // namespace

std::string_view name(UnlikeTensor::What what) noexcept {
  constexpr std::string_view kNames[] = {"bytes", "type", "missing", "additional"};
  return kNames[static_cast<std::size_t>(what)];
}

Derivation derive_again(const Model& file, const Model& source, const DerivationOptions& options,
                        const Context& context) {
  return Check(file, source, options, context).run();
}

}  // namespace weighbridge
