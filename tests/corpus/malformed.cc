// SPDX-License-Identifier: Apache-2.0
// corpus_malformed [COUNT [SEED [FORMAT...]]]: generates that many files of each format. None may crash or hang, give
// an error that does not blame the file, or exceed the bounds of reading G13. The same seed makes the same files.
// Writes failing files into the current folder and prints their names, the build's commit and a table of results.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <set>
#include <string>

#include "corpus/subjects.h"
#include "support/hostile.h"
#include "support/peak_memory.h"
#include "support/rounds.h"
#include "support/sanitized.h"
#include "weighbridge/version.h"

namespace weighbridge::test {
namespace {

constexpr double kSeconds = kSanitized ? 20 : 1;  // of processor time, for verify and open of one file
constexpr unsigned kPatience = 120;               // of the wall, for a file that hangs
constexpr std::uint64_t kMemory = std::uint64_t{64} << 20;

// The file being tried, for the signal handler: its bytes, and the path to write them to.
struct Evidence {
  std::string path;
  const std::string* bytes;
};
std::vector<Evidence> evidence;

// May run in a signal handler.
void write_evidence() {
  for (const Evidence& each : evidence) {
    const int file = ::open(each.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) continue;
    const bool whole =
        ::write(file, each.bytes->data(), each.bytes->size()) == static_cast<ssize_t>(each.bytes->size());
    ::close(file);
    const char* words = whole ? "it is " : "only a part of it is ";
    if (::write(2, words, std::strlen(words)) < 0 || ::write(2, each.path.data(), each.path.size()) < 0 ||
        ::write(2, "\n", 1) < 0)
      return;
  }
}

extern "C" void on_signal(int number) {
  write_evidence();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

struct Row {
  std::uint64_t files = 0, opened = 0;
  std::set<std::string> hit;
  double slowest = 0;
  std::uint64_t memory = 0;
};

void try_one(const Subject& subject, const Suspect& suspect, std::uint64_t before, Row& row) {
  Tally tally;
  try {
    tally = subject.try_one(suspect);
  } catch (const Error& error) {
    hostile::fail("an error came through: " + error.finding().rule + ": " + error.what());
  } catch (const std::exception& error) {
    hostile::fail(std::string("an exception that is no Error: ") + error.what());
  }
  std::uint64_t size = 0;
  for (const auto& [name, bytes] : suspect) size += bytes.size();
  ++row.files;
  row.opened += tally.opened;
  row.hit.merge(tally.rules);
  row.slowest = std::max(row.slowest, tally.seconds);
  row.memory = peak_memory() - before;
  hostile::expect(tally.seconds <= kSeconds, "verify and open took " + std::to_string(tally.seconds) + " s");
  hostile::expect(kSanitized || row.memory <= kMemory + size,
                  "memory grew by " + std::to_string(row.memory) + " bytes");
}

Row try_many(const Subject& subject, std::uint64_t count, std::uint64_t seed) {
  Row row;
  const std::uint64_t before = restart_peak_memory();
  for (std::uint64_t n = 0; n < count; ++n) {
    Mutator mutator(seed * 0xd1342543de82ef95U + n);
    const Suspect suspect = subject.make(mutator);
    evidence.clear();
    for (const auto& [name, bytes] : suspect) {
      std::string path =
          "malformed-" + subject.name() + "-" + std::to_string(seed) + "-" + std::to_string(n) + "-" + name;
      std::ranges::replace(path, '/', '_');
      evidence.push_back({std::move(path), &bytes});
    }
    ::alarm(kPatience);
    try_one(subject, suspect, before, row);
    evidence.clear();
  }
  ::alarm(0);
  return row;
}

void print(const Subject& subject, const Row& row) {
  const std::set<std::string> known = subject.rules();
  const auto hit = std::ranges::count_if(row.hit, [&](const std::string& rule) { return known.contains(rule); });
  std::printf("%-12s %9llu %9llu %9llu %5lld of %3zu %7.1f ms %5.1f MiB\n", subject.name().c_str(),
              static_cast<unsigned long long>(row.files), static_cast<unsigned long long>(row.opened),
              static_cast<unsigned long long>(row.files - row.opened), static_cast<long long>(hit), known.size(),
              1000 * row.slowest, static_cast<double>(row.memory) / (1 << 20));
  for (const std::string& rule : known)
    if (!row.hit.contains(rule)) std::printf("    not hit: %s\n", rule.c_str());
  std::fflush(stdout);
}

// Runs in its own process, so that memory is that of this subject alone. Returns whether all files passed.
bool passes(const Subject& subject, std::uint64_t count, std::uint64_t seed) {
  const pid_t child = ::fork();
  if (child < 0) hostile::fail("cannot fork");
  if (child == 0) {
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) std::signal(number, on_signal);
    print(subject, try_many(subject, count, seed));
    std::_Exit(0);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int run(std::uint64_t count, std::uint64_t seed, const std::set<std::string>& only) {
  std::printf("commit %s\n", std::string(commit()).c_str());
  std::printf("%-12s %9s %9s %9s %12s %10s %9s\n", "format", "files", "opened", "refused", "rules hit", "slowest",
              "memory");
  std::fflush(stdout);
  auto all = subjects();
  if (!only.empty()) {
    for (auto& each : planted()) all.push_back(std::move(each));
    std::erase_if(all, [&](const auto& subject) { return !only.contains(subject->name()); });
  }
  bool passed = !all.empty();
  for (const auto& subject : all) passed &= passes(*subject, count, seed);
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace weighbridge::test

int main(int count, char** arguments) {
  const std::uint64_t files = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : weighbridge::test::rounds(2000U);
  if (files == 0) {
    std::fprintf(stderr, "usage: corpus_malformed [COUNT [SEED [FORMAT...]]]\n");
    return 2;
  }
  const std::uint64_t seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
  std::set<std::string> only;
  for (int i = 3; i < count; ++i) only.emplace(arguments[i]);
  return weighbridge::test::run(files, seed, only);
}
