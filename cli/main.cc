// SPDX-License-Identifier: Apache-2.0
// The program: finds the verb, runs it, and turns whatever was thrown into an exit status and a sentence.
#include <signal.h>

#include <cstring>
#include <new>
#include <string_view>

#include "help.h"
#include "interrupt.h"
#include "session.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {
namespace {

Status run_verb(Session& session) {
  switch (session.args.verb) {
    case VerbId::inspect: return run_inspect(session);
    case VerbId::verify: return run_verify(session);
    case VerbId::convert: return run_convert(session);
    case VerbId::append: return run_append(session);
    case VerbId::extract: return run_extract(session);
    case VerbId::hash: return run_hash(session);
    case VerbId::khlnary: return run_khlnary(session);
    case VerbId::slm: return run_slm(session);
    case VerbId::embed: return run_embed(session);
    case VerbId::similarity: return run_similarity(session);
    case VerbId::search: return run_search(session);
    case VerbId::tokenize: return run_tokenize(session);
    case VerbId::evaluate: return run_evaluate(session);
    case VerbId::generate: return run_generate(session);
    case VerbId::perplexity: return run_perplexity(session);
    case VerbId::formats: return run_formats(session);
    case VerbId::completion: break;
  }
  return run_completion(session);
}

bool writes_files(const Arguments& arguments) {
  const VerbId id = arguments.verb;
  if (id == VerbId::khlnary || id == VerbId::embed) return arguments.has(FlagId::output);
  if (id == VerbId::search) return arguments.has(FlagId::vectors);
  return id == VerbId::slm || id == VerbId::convert || id == VerbId::append || id == VerbId::extract;
}

void say_version(int count, const char* const* words, Output& out) {
  const bool json = count == 1 && std::string_view(words[0]) == "--json";
  if (count > 0 && !json) throw Misuse("--version takes nothing but --json");
  out.text(json ? version_to_json() + "\n" : version_text());
}

Status dispatch(int count, const char* const* words, Output& out) {
  const std::string_view first = count > 0 ? std::string_view(words[0]) : std::string_view{};
  if (count == 0) {
    out.text(introduction());
  } else if (first == "--version" || first == "-V") {
    say_version(count - 1, words + 1, out);
  } else if ((first == "help" || first == "--help" || first == "-h") && count == 1) {
    out.text(overview());
  } else if (first == "help") {
    out.text(help_of(find_verb(words[1]).id));
  } else if (first.starts_with("-")) {
    throw Misuse("a verb comes first, not " + quote(first) + "; 'weighbridge --help' lists them");
  } else {
    const Arguments arguments = parse(find_verb(first).id, count - 1, words + 1);
    if (arguments.has(FlagId::help)) {
      out.text(help_of(arguments.verb));
      return Status::done;
    }
    writes_files(arguments) ? note_interrupts() : end_on_interrupt();
    Session session(arguments, out);
    return run_verb(session);
  }
  return Status::done;
}

int refuse(std::string_view sentence, Status status) {
  complain(sentence);
  return static_cast<int>(status);
}

// `flush` is part of the work: what cannot be printed has not been done.
int run(int count, const char* const* words, Output& out) {
  try {
    const Status status = dispatch(count, words, out);
    out.flush();
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
    return refuse("there is not enough memory", Status::io);
  } catch (const std::exception& fault) {
    return refuse("a fault in weighbridge itself: " + shown(fault.what()), Status::io);
  }
}

}  // namespace
}  // namespace weighbridge::cli

int main(int argc, char** argv) {
  ::signal(SIGXFSZ, SIG_IGN);  // a file size limit is told by EFBIG
  ::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is told by EPIPE
  weighbridge::cli::guard_standard_descriptors();
  weighbridge::cli::Output out;
  return weighbridge::cli::run(argc > 0 ? argc - 1 : 0, argv + (argc > 0 ? 1 : 0), out);
}
