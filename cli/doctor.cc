// SPDX-License-Identifier: Apache-2.0
// doctor: says what a file is, what is wrong with it and what to do, and writes what can be saved.
#include "weighbridge/doctor.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "recovery.h"
#include "session.h"
#include "standard_input.h"
#include "weighbridge/formats.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {
namespace {

using What = Advice::What;

constexpr std::size_t kMaxShown = 10;

// A file as a word of a shell command, which must not look like a flag.
std::string file_word(std::string_view path) { return (path.starts_with('-') ? "./" : "") + shell_word(path); }

std::string without_extension(const std::string& path) {
  const std::size_t slash = path.find_last_of('/'), dot = path.find_last_of('.');
  return dot == path.npos || dot == 0 || (slash != path.npos && dot <= slash + 1) ? path : path.substr(0, dot);
}

std::string folder_name(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// The extension of a file that holds the whole tensors: that of the format, if it can be written.
std::string salvaged(const std::string& path, std::string_view format) {
  const FormatInfo* const info = find_format(format);
  if (info && info->folder) return folder_name(path) + ".salvaged/";
  const bool own = info && info->writes && !info->extensions.empty();
  return without_extension(path) + ".salvaged." + std::string(own ? info->extensions[0] : "safetensors");
}

// Of the format, if it can be written.
std::string written_extension(const std::string& path, const Diagnosis& diagnosis) {
  const FormatInfo* const info = find_format(diagnosis.verdict.format);
  return info && info->writes ? path.substr(without_extension(path).size()) : ".safetensors";
}

// A name that no file has, since the shell would replace the file.
std::string decompressed(const std::string& path) {
  std::error_code unknown;
  for (const std::string_view end : {".gz", ".zst", ".xz", ".bz2", ".lz4"})
    if (path.ends_with(end) && path.size() > end.size())
      if (std::string out = path.substr(0, path.size() - end.size()); !std::filesystem::exists(out, unknown))
        return out;
  const std::string stem = without_extension(path);
  return stem + ".decompressed" + path.substr(stem.size());
}

std::string range_of(const Advice& advice) {
  return std::to_string(advice.from) + "-" + (advice.to == 0 ? "" : std::to_string(advice.to - 1));
}

// The line of what to do, and the command for it.
void print_advice(Output& out, const std::string& asked, const Diagnosis& diagnosis, const Advice& advice, bool first) {
  const std::string path = asked == "-" ? "FILE" : asked;
  const auto line = [&](std::string_view what, const std::string& command) {
    out.text("  " + std::string(what) + (command.empty() ? "\n" : ":\n    " + command + "\n"));
  };
  const std::string file = file_word(path);
  switch (advice.what) {
    case What::fetch_rest: {
      // If space was reserved, the bytes after the last whole block must not be kept.
      const std::string part = file_word(path + ".part");
      if (advice.from < diagnosis.size)
        line("fetch the bytes " + range_of(advice) + " again, into a copy", "head -c " + std::to_string(advice.from) +
                                                                                " " + file + " > " + part +
                                                                                " && curl -L -C - -o " + part + " URL");
      else
        line("fetch the bytes " + range_of(advice), "curl -L -C - -o " + file + " URL");
      break;
    }
    case What::fetch_again:
      if (advice.name.empty() && !diagnosis.file)
        line("download all files of its weights again", "");
      else if (advice.name.empty())
        line("download it again", "curl -L -o " + file + " URL");
      else
        line("download " + quote(advice.name) + " again", "");
      break;
    case What::fetch_object:
      line("fetch the file that the pointer stands for", "git lfs pull --include " + file);
      break;
    case What::fetch_file: line("download the missing file " + quote(advice.name), ""); break;
    case What::salvage:
      line(first ? "write a good copy" : "or save the tensors that are whole",
           "weighbridge doctor " + file + " --salvage " + file_word(salvaged(path, diagnosis.verdict.format)));
      break;
    case What::trim:
      line(
          advice.from == 0 ? "write a copy that ends where the model does" : "write a copy without the bytes before it",
          "weighbridge doctor " + file + " --trim " +
              file_word(without_extension(path) + ".trimmed" + path.substr(without_extension(path).size())));
      break;
    case What::rename:
      line("give it the extension of its format",
           "mv -n " + file + " " + file_word(without_extension(path) + "." + advice.name));
      break;
    case What::decompress:
      if (advice.name == "unzip" || advice.name == "tar") {
        const std::string folder = file_word(without_extension(path) + ".unpacked");
        line("unpack it, and open the model in it", advice.name == "tar"
                                                        ? "mkdir " + folder + " && tar -xf " + file + " -C " + folder
                                                        : "unzip " + file + " -d " + folder);
        break;
      }
      // Through a pipe: the programs refuse a file without their extension.
      line("decompress it", (advice.name == "7-Zip" ? "7z e -so " : advice.name + " -dc < ") + file + " > " +
                                file_word(decompressed(path)));
      break;
    case What::distrust:
      line(advice.name == "archive" ? "do not unpack it; ask its publisher for an archive without such names"
           : advice.name == "code"
               ? "load it only with programs that run none of this code, unless you trust who wrote it"
               : "do not load it with Python; ask its publisher for a file without code, such as safetensors",
           "");
      break;
    case What::rewrite:
      line("write it without them",
           "weighbridge convert " + file + " " +
               file_word(without_extension(path) + ".compact" + written_extension(path, diagnosis)));
      break;
    case What::compare:
      if (diagnosis.file)
        line("compare it with the SHA-256 that its publisher states", "weighbridge verify " + file + " --sha256 HEX");
      else
        line("compare its files with a list that its publisher has signed",
             "weighbridge verify " + file + " --manifest LIST.sig");
      break;
  }
}

void print_names(Output& out, const std::vector<std::string>& names, std::uint64_t total) {
  for (std::size_t i = 0; i < names.size() && i < kMaxShown; ++i)
    out.text("    " + fitted(names[i], kMessageName) + "\n");
  if (total > kMaxShown) out.text("    and " + grouped(total - kMaxShown) + " more\n");
}

// If a file of the model cannot be read, the number of its tensors is unknown.
bool total_is_unknown(const Diagnosis& d) { return !d.verdict.report.valid() && d.damaged.empty(); }

// Files of the model, other than the one that was given, with errors.
std::vector<std::string> faulty_files(const Diagnosis& d) {
  std::vector<std::string> out;
  for (const Finding& each : d.verdict.report.findings())
    if (each.severity == Severity::error && !each.file.empty() &&
        std::find(out.begin(), out.end(), each.file.name) == out.end())
      out.push_back(each.file.name);
  return out;
}

void print(Session& session, const std::string& path, const Diagnosis& d) {
  Output& out = session.out;
  const bool distrusted = d.condition == Condition::unproven && !d.verdict.not_known_safe.empty();
  out.shown(input_name(path));
  out.text(": ");
  out.toned(d.condition == Condition::sound        ? Tone::good
            : d.condition == Condition::suspicious ? Tone::warning
            : d.condition == Condition::unproven   ? Tone::warning
                                                   : Tone::bad,
            distrusted ? "not known to be safe" : name(d.condition));
  if (distrusted) out.text(": " + not_known_safe_list(d.verdict));
  out.text(": " + shown(d.what) + "\n");
  if (!d.sha256.empty()) out.text("  expected: SHA-256 " + d.sha256 + "\n");
  if (d.full_size && *d.full_size != d.size)
    out.text("  size: " + grouped(d.size) + " of " + grouped(*d.full_size) + " bytes (" +
             (d.size < *d.full_size ? grouped(*d.full_size - d.size) + " are missing)\n"
                                    : grouped(d.size - *d.full_size) + " too many)\n"));
  else
    out.text("  size: " + grouped(d.size) + (d.size == 1 ? " byte\n" : " bytes\n"));
  const std::uint64_t unsupported = std::min(count_unsupported(d.verdict.model), d.whole);
  if (d.tensors > 0)
    out.text("  tensors: " + grouped(d.whole - unsupported) + (total_is_unknown(d) ? "" : " of " + grouped(d.tensors)) +
             " can be read" + (unsupported == 0 ? "" : "; " + grouped(unsupported) + " unsupported") +
             (d.damaged.empty() ? "\n" : "; these cannot:\n"));
  print_names(out, d.damaged, d.tensors - d.whole);
  if (d.zeros)
    out.text("  zeros: " + grouped(d.zeros->length) + " bytes from byte " + std::to_string(d.zeros->offset) + " on\n");
  if (!d.missing.empty()) {
    out.text("  missing files:\n");
    print_names(out, d.missing, d.missing.size());
  }
  if (!d.named_like.empty())
    out.text("  name: its extension means " + std::string(d.named_like) + ", its content is " +
             std::string(d.verdict.format) + "\n");
  if (d.condition != Condition::foreign) {
    std::size_t listed = 0;
    for (const Finding& finding : d.verdict.report.findings()) {
      if (listed++ == kMaxShown) break;
      out.text("  " + std::string(name(finding.severity)) + ": " +
               (finding.file.empty() ? "" : shown(finding.file.name) + ": ") + session.sentence(finding) + "\n");
    }
    if (d.verdict.report.total() > kMaxShown)
      out.text("  and " + grouped(d.verdict.report.total() - kMaxShown) + " more findings, which verify lists\n");
  }
  if (!d.verdict.checked.empty()) out.text("  checked: " + d.verdict.checked + "\n");
  if (d.advice.empty()) return;
  out.text("what to do:\n");
  for (const Advice& advice : d.advice) print_advice(out, path, d, advice, &advice == &d.advice[0]);
}

void print(Session& session, const std::string& path, const CacheReport& report) {
  Output& out = session.out;
  using State = CacheEntry::State;
  for (const CacheEntry& entry : report.entries) {
    if (entry.state == State::sound) continue;
    out.toned(entry.state == State::damaged || entry.state == State::missing ? Tone::bad : Tone::warning,
              name(entry.state));
    out.text(" " + shown(entry.path));
    if (!entry.used_by.empty()) out.text(", used by " + shown(entry.used_by));
    if (!entry.found.empty()) out.text("; its bytes have the digest " + entry.found);
    out.text("\n");
  }
  out.shown(path);
  out.text(": ");
  out.toned(report.sound() ? Tone::good : Tone::bad, report.sound() ? "sound" : "not sound");
  out.text(": a cache of the Hugging Face Hub, " + size_text(report.bytes) + " hashed:");
  bool first = true;
  for (const State state :
       {State::sound, State::damaged, State::unfinished, State::missing, State::stray, State::unknown}) {
    const std::uint64_t count = report.of(state);
    if (count == 0 && state != State::sound) continue;
    out.text((first ? " " : ", ") + grouped(count) + " " + std::string(name(state)));
    first = false;
  }
  out.text("\n");
}

Status cache(Session& session, const std::string& path) {
  session.progress().about("hashing");
  const CacheReport report = check_cache(path, session.context());
  session.progress().clear();
  session.print_result([&] { return to_json(path, report); }, [&] { print(session, path, report); });
  return report.sound() ? Status::done : Status::invalid;
}

Status status_of_diagnosis(const Diagnosis& diagnosis) {
  if (diagnosis.condition == Condition::unproven) return Status::unsupported;
  if (diagnosis.condition != Condition::sound) return Status::invalid;
  return status_of_report(diagnosis.verdict.report);
}

// Writes what the flags ask for. The exit status is that of the output.
Status repair(Session& session, const std::string& path, const Diagnosis& diagnosis) {
  const bool salvages = session.args.has(FlagId::salvage), force = session.args.has(FlagId::overwrite);
  const std::string output(session.args.value(salvages ? FlagId::salvage : FlagId::trim));
  std::vector<Item> losses;
  if (salvages) {
    Options options;
    options.replace = force;
    losses = salvage(diagnosis, output, options, session.context()).losses;
  } else {
    trim(diagnosis, output, force, session.context());
  }
  session.progress().clear();
  session.show_losses(path, losses);
  session.print_written(
      output, [&] { return to_json(path, diagnosis); },
      [&] {
        session.out.text(shown(path) + " -> " + shown(output) + ": ");
        if (salvages)
          session.out.text(grouped(diagnosis.whole) +
                           (total_is_unknown(diagnosis) ? "" : " of " + grouped(diagnosis.tensors)) +
                           " tensors, written\n");
        else
          session.out.text(grouped(diagnosis.own->length) + " bytes, written and verified\n");
        if (salvages && !diagnosis.damaged.empty()) {
          session.out.text("  left out, because they are not whole:\n");
          print_names(session.out, diagnosis.damaged, diagnosis.tensors - diagnosis.whole);
        }
        if (const auto files = faulty_files(diagnosis); salvages && total_is_unknown(diagnosis) && !files.empty()) {
          session.out.text("  left out: the tensors of these files that cannot be read; how many is not known\n");
          print_names(session.out, files, files.size());
        }
        const std::string& checked = diagnosis.verdict.checked;
        if (checked.empty() || checked.starts_with("structure only"))
          session.out.text("  not provable: the numbers, which no checksum covers\n");
      });
  return Status::done;
}

// Undoes what killed runs left in a folder.
Status recover(Session& session, const std::string& folder) {
  const auto show = [&](const std::vector<LeftJournal>& journals) {
    if (session.quiet || session.json) return;
    for (const LeftJournal& each : journals) {
      session.out.text(shown(each.path) + ": " +
                       (each.own ? "a journal of yours" : "not a journal of yours: " + shown(each.why)) +
                       (each.steps.empty() ? "\n" : "; undoing it would\n"));
      print_steps(session.out, folder, each.steps);
    }
    session.out.flush();
  };
  const std::vector<LeftJournal> done = recover_folder(folder, session.args.has(FlagId::trust_journal), show);
  session.print_written(
      done.empty() ? std::string() : folder, [&] { return to_json(folder, done); },
      [&] {
        session.out.text(shown(folder) + ": " +
                         (done.empty() ? "no run was killed, so there is nothing to do"
                                       : counted(done.size(), "journal is", "journals are") + " undone") +
                         "\n");
      });
  return Status::done;
}

Status examine(Session& session, const std::string& path) {
  if (session.args.has(FlagId::recover)) return recover(session, path);
  const bool repairs = session.args.has(FlagId::salvage) || session.args.has(FlagId::trim);
  if (path != "-" && is_hub_cache(path)) {
    if (repairs || session.args.has(FlagId::resume_from))
      throw Misuse("this is a cache of the Hugging Face Hub: name one of its files");
    return cache(session, path);
  }
  session.progress().about("examining");
  const OpenOptions options = reading_options(session);
  Diagnosis diagnosis = path == "-" ? diagnose(place_of(session.source(path)), session.context(), options)
                                    : diagnose(path, session.context(), options);
  session.progress().clear();
  drop_shard_alone(session.args, path, diagnosis.verdict.report);
  if (repairs) return repair(session, path, diagnosis);
  if (session.args.has(FlagId::resume_from)) {
    for (const Advice& advice : diagnosis.advice)
      if (advice.what == What::fetch_rest) {
        if (session.json)
          session.object(to_json(path, diagnosis));
        else
          session.out.text(range_of(advice) + "\n");
        return Status::done;
      }
    complain(shown(path) + ": " +
             (diagnosis.condition == Condition::sound
                  ? "no bytes are missing"
                  : "no range of bytes would make it whole: " + shown(diagnosis.what)));
    return Status::invalid;
  }
  session.print_result([&] { return to_json(path, diagnosis); }, [&] { print(session, path, diagnosis); });
  return status_of_diagnosis(diagnosis);
}

}  // namespace

Status run_doctor(Session& session) {
  for (const FlagId id : {FlagId::salvage, FlagId::trim, FlagId::resume_from})
    if (session.args.has(id) && session.args.operands.size() > 1)
      throw Misuse("--" + std::string(flag(id).name) + " takes one FILE, but several are given");
  return session.for_each_file([&](const std::string& path) { return examine(session, path); });
}

}  // namespace weighbridge::cli
