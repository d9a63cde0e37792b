// SPDX-License-Identifier: Apache-2.0
// manifest: lists the files of a model with their digests and signs the list. verify --manifest compares files with it.
#include "weighbridge/manifest.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "manifest.h"
#include "session.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {
namespace {

constexpr std::size_t kMaxNamed = 10;

// The text of a file of PEM; errors about it name the file. An empty text would mean that none was given.
std::string pem_of(Session& session, std::string_view file) {
  const std::string path(file);
  std::string text = in_file(path, [&] { return small_text(session, path); });
  if (text.empty()) raise(Kind::misuse, "misuse/key", "the file is empty, so it is not a key or certificate", path);
  return text;
}

SigningKey signing_key(Session& session) {
  SigningKey out;
  const Arguments& args = session.args;
  if (!args.has(FlagId::key)) return out;
  out.key = pem_of(session, args.value(FlagId::key));
  if (args.has(FlagId::certificate)) out.certificate = pem_of(session, args.value(FlagId::certificate));
  for (const std::string& path : args.values(FlagId::chain)) out.chain.push_back(pem_of(session, path));
  return out;
}

// An error about a key names its file.
Error about_pem(const Error& error, const Arguments& args,
                std::initializer_list<std::pair<FlagId, std::string_view>> rules) {
  for (const auto& [id, rule] : rules)
    if (error.finding().rule == rule && error.finding().file.empty()) return error.in(std::string(args.value(id)));
  return error;
}

void print(Session& session, const std::string& path, const std::string& output, const Manifest& manifest,
           const SigningKey& key) {
  Output& out = session.out;
  std::uint64_t bytes = 0, tensors = 0;
  for (const ManifestNote& note : manifest.notes) bytes += note.size, tensors += note.tensors.size();
  out.shown(path);
  out.text(" -> ");
  out.shown(output);
  out.text(": " + counted(manifest.files(), "file", "files"));
  if (manifest.shard_size > 0) out.text(" in " + counted(manifest.entries.size(), "range", "ranges"));
  if (session.args.has(FlagId::per_tensor)) out.text(", " + counted(tensors, "tensor", "tensors"));
  out.text(", " + size_text(bytes) + ", " +
           (!key.certificate.empty() ? "signed with a certificate"
            : !key.key.empty()       ? "signed with a key"
                                     : "not signed") +
           "\n");
  if (key.key.empty() && !session.args.has(FlagId::no_sign))
    out.text(
        "  without a signature it shows that the files did not change after it was made, not who published them; --key "
        "signs it\n");
}

void print_names(Output& out, std::string_view what, const std::vector<std::string>& names) {
  out.text("  " + std::string(what) + ": ");
  for (std::size_t i = 0; i < names.size() && i < kMaxNamed; ++i) out.text((i == 0 ? "" : ", ") + shown(names[i]));
  out.text(names.size() > kMaxNamed ? " and " + grouped(names.size() - kMaxNamed) + " more\n" : "\n");
}

// Ignored paths that the specification does not fix: a signer can hide files with them.
std::vector<std::string> own_ignored(const Manifest& manifest) {
  std::vector<std::string> out;
  for (const std::string& each : manifest.ignored)
    if (each != ".git" && each != ".gitattributes" && each != ".github" && each != ".gitignore") out.push_back(each);
  return out;
}

std::string signature_text(const ManifestVerdict& verdict) {
  switch (verdict.signature) {
    case SignatureState::none: return "not signed";
    case SignatureState::valid:
      return verdict.method == SigningMethod::certificate ? "signed by " + shown(verdict.signer)
                                                          : "signed with the key";
    case SignatureState::unchecked: return "signature NOT CHECKED: " + shown(verdict.unchecked);
    case SignatureState::invalid: break;
  }
  return "signature invalid";
}

void print(Session& session, const std::string& path, const ManifestVerdict& verdict) {
  Output& out = session.out;
  session.print_findings(path, verdict.report);
  out.shown(path);
  out.text(": ");
  if (!verdict.valid() && verdict.manifest.entries.empty()) {  // the findings say why
    out.toned(Tone::bad, "not checked");
    out.text(std::string(verdict.signature != SignatureState::invalid ? ": the manifest is invalid"
                         : verdict.method == SigningMethod::none      ? ": the manifest is not signed"
                                                                      : ": the signature is invalid") +
             ", so no file was compared\n");
    return;
  }
  if (verdict.valid())
    out.toned(verdict.signature == SignatureState::unchecked ? Tone::warning : Tone::good, "ok");
  else
    out.toned(Tone::bad, "NOT what the manifest lists");
  out.text(" (" + counted(verdict.files, "file", "files") + ", " + size_text(verdict.bytes) + "), " +
           signature_text(verdict) + "\n");
  if (verdict.remembered > 0)
    out.text("  not read again, unchanged since the last check: " + counted(verdict.remembered, "file", "files") +
             " (without --cache all are read)\n");
  if (const std::vector<std::string> ignored = own_ignored(verdict.manifest); !ignored.empty())
    print_names(out, "not covered by the manifest", ignored);
}

}  // namespace

Status run_manifest(Session& session) try {
  const Arguments& args = session.args;
  const std::string& path = args.operands.front();
  const SigningKey key = signing_key(session);
  ManifestOptions options{.output = std::string(args.value(FlagId::output))};
  args.apply(options, OptionOf::manifest);
  const Manifest manifest = save_manifest(path, options, key, session.context());
  session.progress().clear();
  session.print_written(
      options.output, [&] { return to_json(path, options.output, manifest, key.method()); },
      [&] { print(session, path, options.output, manifest, key); });
  return Status::done;
} catch (const Error& error) {
  throw about_pem(error, session.args, {{FlagId::key, "misuse/key"}, {FlagId::certificate, "misuse/certificate"}});
}

std::string cache_file(const Arguments& args) {
  if (!args.has(FlagId::cache)) return {};
  const std::string_view given = args.value(FlagId::cache);
  return given.empty() ? manifest_cache(args.operands.front()) : std::string(given);
}

Status verify_with_manifest(Session& session) {
  const Arguments& args = session.args;
  if (args.operands.size() > 1) throw Misuse("--manifest checks one file or folder, but several are given");
  const std::string& path = args.operands.front();
  const std::string manifest(args.value(FlagId::manifest));
  try {
    ManifestCheck check{.cache = cache_file(args)};
    args.apply(check, OptionOf::check);
    if (args.has(FlagId::public_key)) check.trust.key = pem_of(session, args.value(FlagId::public_key));
    if (args.has(FlagId::roots)) check.trust.roots = pem_of(session, args.value(FlagId::roots));
    const ManifestVerdict verdict = verify_manifest(path, session.source(manifest), check, session.context());
    session.progress().clear();
    session.step("signature and digests of the files");
    session.show_steps(path, {});
    session.print_result([&] { return to_json(path, manifest, verdict); }, [&] { print(session, path, verdict); });
    if (!verdict.valid()) return Status::invalid;
    return verdict.signature == SignatureState::unchecked ? Status::unsupported : Status::done;
  } catch (const Error& error) {
    throw about_pem(error, args, {{FlagId::public_key, "misuse/key"}, {FlagId::roots, "misuse/roots"}});
  }
}

}  // namespace weighbridge::cli
