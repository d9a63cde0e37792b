// SPDX-License-Identifier: Apache-2.0
// What every verb works with: arguments, output, a Context, and one common way to open inputs and report failures.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "output.h"
#include "progress.h"
#include "status.h"
#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/error.h"
#include "weighbridge/model.h"
#include "weighbridge/open.h"
#include "weighbridge/source.h"
#include "weighbridge/verify.h"
#include "weighbridge/view.h"

namespace weighbridge::cli {

class Session {
 public:
  Session(const Arguments& arguments, Output& output);

  const Arguments& args;
  Output& out;
  const bool json, quiet;

  // Limits, threads and the progress bar.
  const Context& context() const { return context_; }
  Progress& progress() { return progress_; }

  // The file at `path`; "-" is all of standard input, held in a temporary file. Not for folders, which are opened by
  // path. Throws Error.
  std::shared_ptr<const Source> source(const std::string& path);
  // Called before standard input is read. Throws Misuse if something else has read it.
  void claim_standard_input();

  // Prints one object of --json: alone on a line, or as the next file of a verb that lists files.
  void object(std::string_view text);
  // The same for an object that is printed in pieces in between.
  void begin_object();
  void end_object();
  // Ends the list of files, if the verb prints one.
  void end_files();
  // Runs job(path) for each operand and returns the worst status. With several operands, the bar names the file. Each
  // result is flushed before the next begins.
  Status for_each_file(const std::function<Status(const std::string&)>& job);

  // Reports on standard error what is wrong with `path`, or with the file that the finding names; with --json also
  // prints the object with the findings. Returns the exit status.
  Status fail(std::string_view path, const Error& error);
  Status fail(std::string_view path, const Report& report);
  // Prints the findings of a file that could be opened on standard error.
  void remarks(std::string_view path, const Report& report);
  // The message of an error: the file at fault (`path` unless the finding names another), the sentence, and the flag
  // that helps, if any.
  std::string fault(std::string_view path, const Error& error) const;
  // Prints each finding on its own line, as verify does.
  void print_findings(std::string_view path, const Report& report);
  // Calls `print` to report what was done. If printing fails after `output` was written, the error says that `output`
  // exists. `output` is empty if no file was written.
  template <class Print> void print_written(std::string_view output, Print&& print) {
    if (!output.empty()) mention_journals(output);
    try {
      print();
      out.flush();
    } catch (const OutputFailed& failed) {
      if (output.empty()) throw;
      written_all_the_same(output, failed);
    }
  }
  template <class Json, class Print> void print_written(std::string_view output, Json&& json_text, Print&& print) {
    print_written(output, [&] { print_result(json_text, print); });
  }
  // Prints losses of `path` that no flag consented to on standard error, one line a kind: also with --quiet, so that no
  // loss is silent.
  void show_losses(std::string_view path, std::span<const Item> losses);
  // Prints a result: its JSON with --json, otherwise for people, unless --quiet is given.
  void print_result(const std::function<std::string()>& json_text, const std::function<void()>& print);
  // Notes a step of the verb itself, which took the time since the last one.
  void step(std::string_view what);
  // With --verbose, says on standard error which steps ran, those of step() first, and how long each took.
  void show_steps(std::string_view path, std::span<const TimedStep> steps);
  // What `work` returns; for what it throws, the status, after a failure that is about `path` unless it names a file.
  Status settled(std::string_view path, const std::function<Status()>& work);
  // One line: sentence, rule, offset and tensor, and the flag that helps.
  std::string sentence(const Finding& finding) const;

 private:
  // Says that killed runs left journals in the folder that was written into, which stay.
  void mention_journals(std::string_view output) const;
  [[noreturn]] static void written_all_the_same(std::string_view output, const OutputFailed&);
  void print_failure(std::string_view path, const Report& report);
  // The finding's hint as a flag of this verb: "; try --heads N". Empty if there is none.
  std::string help(const Finding& finding) const;

  std::vector<TimedStep> steps_;
  std::chrono::steady_clock::time_point step_begin_ = std::chrono::steady_clock::now();
  bool lists_files_, first_ = true, input_read_ = false;
  Progress progress_;
  Context context_;
  std::uint64_t max_input_ = UINT64_MAX;  // bytes of standard input that are held
};

// Runs `work`. An Error that names no file becomes an error of the file at `path`.
template <class Work> auto in_file(const std::string& path, Work&& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw error.in(path);
  }
}

// Throws Error, for a fault that a verb itself finds, so that --json reports it too. The message is not escaped and
// does not name `file`.
[[noreturn]] void raise(Kind kind, std::string rule, std::string message, std::string file = {}, Hint hint = {});

// Thrown once a failure has been printed.
struct Failed {
  Status status;
};

struct Input {
  Report report;  // warnings
  Model model;
};
// The exit status of a check with this report.
Status status_of_report(const Report&);
// The tensors that cannot be interpreted, and have no fault.
std::uint64_t count_unsupported(const Model&);
// What is not known to be safe, as a list of the first names. Escaped.
std::string not_known_safe_list(const Verdict&);

// What the tokenizer file of the command line may be used for.
enum class TokenizerFile : std::uint8_t {
  container,            // only a container that keeps its tokenizer in a separate file
  container_or_another  // also any other model without a tokenizer; open_input() then opens the model without the file
};
// What the flags say of how to read a file.
OpenOptions reading_options(const Session&);
// Throws Failed if it cannot be opened. With --with-patch, what the patches make of it.
Input open_input(Session& session, const std::string& path, OpenOptions options,
                 TokenizerFile kind = TokenizerFile::container);
inline Input open_input(Session& session, const std::string& path) {
  return open_input(session, path, reading_options(session));
}
// The same without --with-patch.
Input open_stored(Session& session, const std::string& path, OpenOptions options,
                  TokenizerFile kind = TokenizerFile::container);
std::vector<Model> open_stored(Session& session, std::span<const std::string> paths);
// What the patches of --with-patch make of the model. Throws Error.
Model with_patches(Session& session, const Model& model);

// Whether the finding warns that a file is one of several shards, and all of them are on the command line.
bool is_in_company(const Arguments& args, const std::string& path, const Finding& finding);
// Takes such a warning out of the file's report.
void drop_shard_alone(const Arguments& args, const std::string& path, Report& report);

// Whether there is a config.json, without which no folder of Hugging Face can be made of this file or folder.
bool has_config(const std::filesystem::path& of);

// The tensors that --only and --without leave. Throws Error if one of their globs matches none.
std::vector<std::uint32_t> tensors_taken(const Model& model, const Arguments& args);
// The tensor of this name. The error for an unknown one names the nearest tensors.
Tensor find_tensor(const Model& model, std::string_view name);

// Adds what --rename-file lists.
void add_rename_file(Session& session, std::vector<Renaming>& to);

// ".npy" of "a/b.NPY"; empty if there is none.
std::string extension_of(std::string_view path);

// Refuses a --plot file whose name is not that of an SVG, before the work begins.
void check_picture(const Arguments&);
// Writes the picture that --plot asks for. `inputs` are not replaced.
void write_picture(Session& session, std::string_view svg, std::span<const std::shared_ptr<const Source>> inputs);

// The text of a small file that a flag names, such as a key: at most 1 MiB. Throws Error.
std::string small_text(Session& session, const std::string& path);

// explain with a rule as its only operand.
Status explain_rule(Session& session);

// The implementation of each verb.
#define WB_VERB(id, ...) Status run_##id(Session&);
#include "verb_rows.def"
#undef WB_VERB

}  // namespace weighbridge::cli
