// SPDX-License-Identifier: Apache-2.0
// The program: finds the verb, runs it, and turns exceptions into an exit status and a message.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "help.h"
#include "interrupt.h"
#include "nearest.h"
#include "os.h"
#include "sandbox.h"
#include "session.h"
#include "standard_input.h"
#include "weighbridge/json.h"
#include "weighbridge/version.h"

namespace weighbridge::cli {
namespace {

Status run_verb(Session& session) {
  switch (session.args.verb) {
#define WB_VERB(id, ...) \
  case VerbId::id: return run_##id(session);
#include "verb_rows.def"
#undef WB_VERB
    case VerbId::none: break;
  }
  return Status::misuse;
}

bool writes_files(const Arguments& arguments) {
  const auto writes = [&](const Flag& flag) { return flag.writes && arguments.has(flag.id); };
  const Verb& v = verb(arguments.verb);
  return v.writes || std::ranges::any_of(flags(), writes);
}

std::string version_text() {
  std::string out;
  std::string_view before;
  const auto add = [&](std::string_view name, std::string_view value) {
    out.append(before).append(name).append(" ").append(value);
    before = ", ";
  };
  const auto line = [&](std::string_view name, auto&& items) {
    out.append("\n").append(name).append(10 - name.size(), ' ');
    before = {};
    items();
  };
  add("weighbridge", version());
  line("commit", [&] { out += commit(); });
  line("compiler", [&] { out += compiler(); });
  line("libraries", [&] {
    for (const Library& library : libraries()) add(library.name, library.version);
  });
  line("sandbox", [&] { out += sandbox_text(); });
  line("paths", [&] {
    for (const CpuPath& path : cpu_paths()) add(path.of, path.taken);
  });
  return out + "\n";
}

void say_version(std::span<const char* const> words, Output& out) {
  const bool json = words.size() == 1 && std::string_view(words[0]) == "--json";
  if (!words.empty() && !json) throw Misuse("--version takes only --json");
  out.text(json ? version_to_json(sandbox_text()) + "\n" : version_text());
}

// help VERB [ACTION [STEP]]
std::string help_for(std::span<const char* const> words) {
  if (const std::string_view word = words[0]; words.size() == 1 && (word == "help" || word == "--help" || word == "-h"))
    return help_of_help();
  const VerbId id = find_verb(words[0]).id;
  const std::vector<std::string> behind(words.begin() + 1, words.end());
  const Action* const action = find_action(id, behind, true);
  if (!action && behind.size() == 1 && !actions_of(id).empty()) return help_of_steps(id, behind[0]);
  const std::size_t read = action ? action->step.empty() ? 1 : 2 : 0;
  if (behind.size() > read) throw Misuse("help takes VERB [ACTION] only, not also " + quote(behind[read]));
  return help_of(id, action);
}

// The verb that the first word names. Null if it is a file, which is inspected.
const Verb* verb_of(const std::string& word) {
  if (const Verb* const named = verb_named(word)) return named;
  if (!word.starts_with("-")) {
    std::error_code ignored;
    if (std::filesystem::exists(word, ignored)) return nullptr;
    find_verb(word);  // throws
  }
  constexpr std::string_view kFlags[] = {"--version", "-V", "--help", "-h"};
  const std::string_view near = nearest_word(word, kFlags);
  throw Misuse(
      "the first word must be a verb or a file, not " + quote(word) +
      (near.empty() ? "; 'weighbridge --help' lists the verbs" : "; did you mean '" + std::string(near) + "'?"));
}

Status dispatch(std::span<const char* const> words, Output& out) {
  const std::string first = words.empty() ? "" : words[0];
  if (words.empty()) {
    out.text(introduction());
  } else if (first == "--version" || first == "-V") {
    say_version(words.subspan(1), out);
  } else if (first == "help" || first == "--help" || first == "-h") {
    out.text(words.size() > 1 ? help_for(words.subspan(1)) : first == "-h" ? introduction() : overview());
  } else if (first == "__complete") {
    out.text(completion_text(std::vector<std::string>(words.begin() + 1, words.end())));
  } else {
    const Verb* const named = verb_of(first);
    if (named) words = words.subspan(1);
    const Arguments arguments =
        parse(named ? named->id : VerbId::inspect, static_cast<int>(words.size()), words.data());
    if (arguments.has(FlagId::help)) {
      const bool steps = !arguments.action && !arguments.operands.empty();
      const bool brief = std::ranges::find(words, std::string_view("-h")) != words.end();
      out.text(steps ? help_of_steps(arguments.verb, arguments.operands[0])
                     : help_of(arguments.verb, arguments.action, brief));
      return Status::done;
    }
    if (arguments.has(FlagId::color) && arguments.value(FlagId::color) != "auto")
      out.color(arguments.value(FlagId::color) == "always");
    prepare_standard_input(arguments);
    if (!arguments.has(FlagId::no_sandbox)) confine(arguments);
    writes_files(arguments) ? note_interrupts() : end_on_interrupt();
    Session session(arguments, out);
    const std::string subject(arguments.operands.empty() ? arguments.value(FlagId::output) : arguments.operands[0]);
    const Status status = session.settled(subject, [&] { return run_verb(session); });
    session.end_files();
    return status;
  }
  return Status::done;
}

int refuse(std::string_view sentence, Status status) {
  complain(sentence);
  return static_cast<int>(status);
}

// Flushes inside the try block, because a failure to print is a failure of the command.
int run(std::span<const char* const> words, Output& out) {
  try {
    const Status status = dispatch(words, out);
    out.flush();
    if (interrupted() != 0) return 128 + interrupted();
    return static_cast<int>(status);
  } catch (const OutputFailed& failed) {
    return refuse(std::string("standard output cannot be written: ") + std::strerror(failed.error_number), Status::io);
  } catch (const Cancelled&) {
    return 128 + interrupted();
  } catch (const Misuse& misuse) {
    return refuse(misuse.what(), Status::misuse);
  } catch (const Error& error) {
    return refuse(shown(error.what()), status_of(error.kind()));
  } catch (const std::bad_alloc&) {
    return refuse("out of memory", Status::io);
  } catch (const std::exception& fault) {
    return refuse("internal error, please report it: " + shown(fault.what()), Status::io);
  }
}

}  // namespace
}  // namespace weighbridge::cli

int main(int argc, char** argv) {
  weighbridge::cli::os::prepare_process();
  weighbridge::cli::Output out;
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  return weighbridge::cli::run(words.empty() ? words : words.subspan(1), out);
}
