// SPDX-License-Identifier: Apache-2.0
// What every verb has at hand: its arguments, its output, a Context, and inputs opened in the one way that all verbs
// share.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "arguments.h"
#include "output.h"
#include "progress.h"
#include "status.h"
#include "weighbridge/context.h"
#include "weighbridge/error.h"
#include "weighbridge/model.h"
#include "weighbridge/open.h"
#include "weighbridge/source.h"

namespace weighbridge::cli {

class Session {
 public:
  Session(const Arguments& arguments, Output& output);

  const Arguments& args;
  Output& out;
  const bool json, quiet;

  // Budgets, threads as asked for, and the bar.
  const Context& context() const { return context_; }
  Progress& progress() { return progress_; }

  // The file at `path`; "-" is all of standard input, held in memory. A folder is opened by its path, not by a source.
  // Throws Error.
  std::shared_ptr<const Source> source(const std::string& path);

  // Prints one object of --json: alone on a line, or as the next element where the verb was given several files.
  void object(std::string_view text);
  // Runs job(path) for each operand: with several, the bar names the file, each result is out before the next is begun,
  // and --json prints an array. The worst status.
  Status for_each_file(const std::function<Status(const std::string&)>& job);

  // Says on standard error what is wrong with `path`, or with the file that the finding names, and with --json prints
  // the object with its findings.
  Status fail(std::string_view path, const Error& error);
  Status fail(std::string_view path, const Report& report);
  // Warnings and the like of a file that is good enough, on standard error.
  void remarks(std::string_view path, const Report& report);
  // The sentence of an error for a person: behind the file at fault, which is `path` where the finding names no other,
  // and before the flag that helps, if any.
  std::string fault(std::string_view path, const Error& error) const;
  // Each finding on a line of its own, as verify prints them.
  void print_findings(std::string_view path, const Report& report);
  // Prints what has been done, when `output` has been written (empty: no file was); where that cannot be printed, says
  // so of the output.
  template <class Print> void tell_written(std::string_view output, Print&& print) {
    try {
      print();
      out.flush();
    } catch (const OutputFailed& failed) {
      if (output.empty()) throw;
      written_all_the_same(output, failed);
    }
  }
  // One line for a person: sentence, rule, place, and the flag that helps.
  std::string sentence(const Finding& finding) const;

 private:
  [[noreturn]] static void written_all_the_same(std::string_view output, const OutputFailed&);
  void print_failure(std::string_view path, const Report& report);
  // What the finding hints at, as a flag of this verb: "; try --heads N". Empty where there is nothing.
  std::string help(const Finding& finding) const;

  void end_objects();

  bool several_, first_ = true, input_read_ = false;
  Progress progress_;
  Context context_;
};

// What `work` gives; an Error in it is one of the file at `path`, unless it names one itself.
template <class Work> auto in_file(const std::string& path, Work&& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw error.in(path);
  }
}

// Throws Error: for what a verb finds wrong with a file, so that --json has it as well. The message is exact, not
// escaped, and does not name `file`.
[[noreturn]] void raise(Kind kind, std::string rule, std::string message, std::string file = {}, Hint hint = {});

// An input that is open. `model` is empty when it is malformed: report says why, and fail() has been called.
struct Input {
  Report report;
  std::optional<Model> model;
  Status status = Status::done;  // when there is no model
};
// What a tokenizer file that is given can be.
enum class TokenizerFile : std::uint8_t {
  container,            // that of a container whose tokenizer is a file of its own
  container_or_another  // or the tokenizer of any model that has none, which is opened without it
};
// The bytes that a model was read from: of its file, or of all files of its folder that were looked at.
std::uint64_t bytes_read_from(const Model&);
Input open_input(Session& session, const std::string& path, Checks checks = Checks::all,
                 std::shared_ptr<const Source> tokenizer = {}, TokenizerFile kind = TokenizerFile::container);

// Why no tensor of a model matches a pattern, and what would.
std::string nothing_matches(const Model& model, std::string_view pattern);
// The name's tensor. Misuse names the nearest ones.
Tensor find_tensor(const Model& model, std::string_view name);

// The work of each verb.
#define WB_VERB(id, ...) Status run_##id(Session&);
#include "verb_rows.def"
#undef WB_VERB

}  // namespace weighbridge::cli
