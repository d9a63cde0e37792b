// SPDX-License-Identifier: Apache-2.0
// The lists of dangerous and of harmless globals. The former is sorted by module and name. It collects what has been
// used against loaders of pickles in public (among others the advisories of picklescan), and the neighbors of those
// functions in Python's library.
#include "core/archive/pickle_globals.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <utility>

#include "core/model/words.h"

namespace weighbridge::core {
namespace {

using GlobalName = std::pair<std::string_view, std::string_view>;

// Every name of these modules and of the modules beneath them, sorted.
constexpr std::string_view kModules =
    "IPython _aix_support _ctypes _imp _osx_support _pickle _posixsubprocess _pyrepl _socket _ssl _winapi _winreg "
    "_xxinterpchannels _xxsubinterpreters aiohttp antigravity asyncio atexit bdb cPickle cProfile cffi cgitb code "
    "codeop commands compileall concurrent.futures ctypes distutils doctest ensurepip fileinput ftplib http.client "
    "http.server httplib httpx idlelib imaplib imp importlib jinja2 lib2to3 linecache logging.config logging.handlers "
    "marshal msilib msvcrt multiprocessing.connection multiprocessing.context multiprocessing.forkserver "
    "multiprocessing.managers multiprocessing.popen_fork multiprocessing.popen_forkserver "
    "multiprocessing.popen_spawn_posix multiprocessing.popen_spawn_win32 multiprocessing.process multiprocessing.util "
    "nt numpy.ctypeslib numpy.distutils numpy.f2py numpy.lib._npyio_impl numpy.lib.npyio numpy.testing os "
    "pandas.core.computation.eval pandas.io.pickle paramiko pdb pickle pip pkg_resources pkgutil platform popen2 "
    "poplib posix profile pty py_compile pydoc requests.api requests.sessions rlcompleter runpy setuptools shelve "
    "shutil site smtplib socket socketserver sqlite3 ssl subprocess sys tarfile telnetlib tempfile test timeit "
    "torch._dynamo torch._inductor torch._jit_internal torch.classes torch.distributed.launch torch.distributed.run "
    "torch.fx.experimental torch.hub torch.jit._serialization torch.jit.unsupported_tensor_ops "
    "torch.multiprocessing.spawn torch.ops torch.package torch.testing torch.utils._config_module "
    "torch.utils.bottleneck torch.utils.collect_env torch.utils.cpp_extension "
    "torch.utils.data.datapipes.utils.decoder trace turtle unittest urllib urllib2 urllib3 uuid venv webbrowser "
    "winreg wsgiref xmlrpc xmlrpclib yaml zipapp zipfile zipimport";
constexpr auto kDangerousModules = [] {
  std::array<std::string_view, static_cast<std::size_t>(std::count(kModules.begin(), kModules.end(), ' ')) + 1> out;
  std::string_view rest = kModules;
  for (std::string_view& module : out) {
    module = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(module.size() + 1, rest.size()));
  }
  return out;
}();
static_assert(std::ranges::is_sorted(kDangerousModules));

// Names of a module, separated by spaces.
struct ModuleNames {
  std::string_view module, names;
};
// Of other modules, these names.
constexpr ModuleNames kDangerous[] = {
    {"__builtin__",
     "__import__ apply breakpoint compile delattr dir eval exec execfile exit file getattr globals input locals "
     "open quit raw_input reduce reload setattr vars"},
    {"__main__", "__builtins__"},
    {"_io", "FileIO open open_code"},
    {"_operator", "attrgetter call itemgetter methodcaller"},
    {"_thread", "start_new_thread"},
    {"builtins",
     "__import__ apply breakpoint compile delattr dir eval exec execfile exit getattr globals help input locals "
     "open quit setattr vars"},
    {"bz2", "open"},
    {"cloudpickle", "load loads"},
    {"cloudpickle.cloudpickle",
     "_builtin_type _function_setstate _make_cell _make_empty_cell _make_function load loads subimport"},
    {"codecs", "open"},
    {"dataclasses", "_create_fn"},
    {"dill", "load loads"},
    {"dill._dill", "_create_code _create_function _eval_repr _import_module load loads"},
    {"functools", "partial partialmethod reduce"},
    {"gzip", "open"},
    {"io", "FileIO open open_code"},
    {"joblib", "load"},
    {"joblib.numpy_pickle", "load"},
    {"keras.models", "load_model"},
    {"logging", "FileHandler"},
    {"lzma", "open"},
    {"numpy", "fromfile fromregex genfromtxt load loadtxt memmap save savetxt savez"},
    {"operator", "attrgetter call itemgetter methodcaller"},
    {"pandas", "eval read_pickle"},
    {"tensorflow.keras.models", "load_model"},
    {"threading", "Thread"},
    {"torch", "load"},
    {"torch.fx.graph_module",
     "_exec_with_source _forward_from_src reduce_deploy_graph_module reduce_graph_module "
     "reduce_package_graph_module"},
    {"torch.jit", "load"},
    {"torch.serialization", "load"},
    {"types", "CodeType FunctionType LambdaType"},
};
static_assert(std::ranges::is_sorted(kDangerous, {}, &ModuleNames::module));

// Names without harm.
struct Harmless : ModuleNames {
  bool object_only;
};
// core/archive/harmless_globals.def, sorted by module.
const std::vector<Harmless>& harmless() {
  static const std::vector<Harmless> all = [] {
    std::vector<Harmless> out{
#define WB_ANY(module, names) {{module, names}, false},
#define WB_OBJECT(module, names) {{module, names}, true},
#include "core/archive/harmless_globals.def"
#undef WB_ANY
#undef WB_OBJECT
    };
    std::ranges::sort(out, {}, &Harmless::module);
    return out;
  }();
  return all;
}
const Harmless* find_harmless(std::string_view module, std::string_view name) {
  const auto& all = harmless();
  for (auto row = std::ranges::lower_bound(all, module, {}, &Harmless::module);
       row != all.end() && row->module == module; ++row)
    if (has_word(row->names, name)) return &*row;
  return nullptr;
}

bool lists(std::string_view module, std::string_view name) noexcept {
  const auto* const row = std::ranges::lower_bound(kDangerous, module, {}, &ModuleNames::module);
  return row != std::end(kDangerous) && row->module == module && has_word(row->names, name);
}

// The module itself, and the modules that it is in.
bool lists_module(std::string_view module) noexcept {
  for (;;) {
    if (std::ranges::binary_search(kDangerousModules, module)) return true;
    const std::size_t dot = module.rfind('.');
    if (dot == module.npos) return false;
    module = module.substr(0, dot);
  }
}

// Classes of its scalars, and of the dtypes of NumPy 2.
bool is_numpy_dtype(std::string_view module, std::string_view name) noexcept {
  constexpr std::string_view kScalars =
      "bool bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 str_ "
      "bytes_ int_ float_ longlong intc";
  if (module == "numpy") return has_word(kScalars, name);
  return module == "numpy.dtypes" && name.ends_with("DType") && name.find('.') == name.npos;
}

// Whether a text could be a path of Python's names.
bool is_path(std::string_view text) noexcept {
  if (text.empty() || text.front() == '.' || text.back() == '.') return false;
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '<' || c == '>' || static_cast<unsigned char>(c) >= 0x80;
  });
}

}  // namespace

bool is_dangerous_global(std::string_view module, std::string_view name) noexcept {
  // No class is nested that deeply, and none has such a name.
  constexpr std::size_t kMaxDots = 16, kLongest = 1000;
  if (module.size() + name.size() > kLongest || std::count(name.begin(), name.end(), '.') > std::ptrdiff_t{kMaxDots})
    return true;
  if (lists_module(module) || lists(module, name)) return true;
  if (name.find('.') == name.npos) return false;
  // Attributes of a dangerous class; then a name that reaches another module, or what Python's objects have inside.
  for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
    if (lists(module, name.substr(0, dot))) return true;
  std::array<char, kLongest + 1> text{};
  char* const end =
      std::ranges::copy(name, std::ranges::copy(std::string_view("."), std::ranges::copy(module, text.data()).out).out)
          .out;
  const std::string_view whole(text.data(), static_cast<std::size_t>(end - text.data()));
  for (std::size_t begin = 0; begin != whole.npos && begin < whole.size();) {
    const std::string_view rest = whole.substr(begin);
    // The path from here up to each dot as a module, and the name after that.
    if (begin == 0 || begin > module.size()) {
      if (begin > module.size() && rest.starts_with("__")) return true;
      for (std::size_t dot = rest.find('.'); dot != rest.npos; dot = rest.find('.', dot + 1)) {
        if (begin == 0 && dot < module.size()) continue;  // modules above the one that was named
        const std::string_view path = rest.substr(0, dot);
        const std::string_view next = rest.substr(dot + 1, rest.find('.', dot + 1) - dot - 1);
        if (lists_module(path) || lists(path, next)) return true;
      }
    }
    const std::size_t dot = whole.find('.', begin);
    begin = dot == whole.npos ? dot : dot + 1;
  }
  return false;
}

bool is_harmless_global(std::string_view module, std::string_view name) noexcept {
  return find_harmless(module, name) != nullptr || is_numpy_dtype(module, name);
}

bool could_be_global(const wire::Pickle& pickle, wire::Pickle::Ref ref) {
  return pickle.kind(ref) == wire::PickleKind::global &&
         (pickle.computed(ref) || (is_path(pickle.module(ref)) && is_path(pickle.name(ref))));
}

bool does_something(const wire::Pickle& pickle) {
  return std::ranges::any_of(pickle.globals(), [&](const wire::Pickle::Global& each) {
    return could_be_global(pickle, each.ref) &&
           (pickle.ok() ||
            (each.called && (pickle.ended() || is_dangerous_global(pickle.module(each.ref), pickle.name(each.ref)))));
  });
}

// Findings of one kind that a pickle gets; the others are counted.
constexpr std::size_t kMaxNamed = 1000;

namespace {

// What makes a tensor of the bytes of a file, whose pickles are looked into.
constexpr GlobalName kLoadFromBytes{"torch.storage", "_load_from_bytes"}, kEncode{"_codecs", "encode"};

// Whether each call of kLoadFromBytes has the bytes themselves as its argument, or the text of which protocol 2 makes
// them.
bool gets_only_bytes(const wire::Pickle& pickle) {
  using wire::PickleKind;
  const auto argument = [&](wire::Pickle::Ref call) -> std::optional<wire::Pickle::Ref> {
    const wire::Pickle::Ref all = pickle.arguments(call);
    if (pickle.kind(all) != PickleKind::tuple || pickle.tuple(all).empty()) return std::nullopt;
    return pickle.tuple(all)[0];
  };
  for (wire::Pickle::Ref r = 0; r < pickle.count(); ++r) {
    if (pickle.kind(r) != PickleKind::object) continue;
    const wire::Pickle::Ref callee = pickle.callee(r);
    if (pickle.kind(callee) != PickleKind::global || pickle.computed(callee) ||
        GlobalName{pickle.module(callee), pickle.name(callee)} != kLoadFromBytes)
      continue;
    const auto given = argument(r);
    if (!given || pickle.tuple(pickle.arguments(r)).size() != 1) return false;
    if (pickle.kind(*given) == PickleKind::bytes) continue;
    if (pickle.kind(*given) != PickleKind::object) return false;
    const wire::Pickle::Ref by = pickle.callee(*given);
    const auto text = argument(*given);
    if (pickle.kind(by) != PickleKind::global || GlobalName{pickle.module(by), pickle.name(by)} != kEncode || !text ||
        pickle.kind(*text) != PickleKind::text || pickle.tuple(pickle.arguments(*given)).size() != 2)
      return false;
    const wire::Pickle::Ref encoding = pickle.tuple(pickle.arguments(*given))[1];
    if (pickle.kind(encoding) != PickleKind::text || pickle.text(encoding) != "latin1") return false;
  }
  return true;
}

// `loads_bytes` is gets_only_bytes(), once it is known.
bool is_known(const wire::Pickle& pickle, const PickleRules& rules, wire::Pickle::Ref ref, bool run,
              std::optional<bool>& loads_bytes) {
  const std::string_view module = pickle.module(ref), name = pickle.name(ref);
  if (GlobalName{module, name} == kLoadFromBytes) {
    if (!loads_bytes) loads_bytes = pickle.ok() && gets_only_bytes(pickle);
    return *loads_bytes;
  }
  if (!rules.known(module, name)) return false;
  const Harmless* const listed = run ? find_harmless(module, name) : nullptr;
  return listed == nullptr || !listed->object_only;
}

}  // namespace

std::size_t check_globals(const wire::Pickle& pickle, const PickleRules& rules, std::optional<std::uint64_t> base,
                          std::uint64_t at, std::string_view where, std::vector<Finding>& out) {
  std::size_t plausible = 0;
  std::set<std::pair<std::string_view, std::string_view>> seen;
  std::set<std::uint32_t> extensions;
  std::optional<bool> loads_bytes;
  // A small pickle can name so many that their findings would take hundreds of times its bytes.
  struct Count {
    std::size_t named = 0, more = 0;
    std::uint64_t first_more = 0;
  } dangerous, unknown;
  for (const auto& [ref, called, run] : pickle.globals()) {
    const bool extension = pickle.kind(ref) == wire::PickleKind::extension;
    const bool computed = !extension && pickle.computed(ref);
    const std::string_view module = extension ? "" : pickle.module(ref), name = extension ? "" : pickle.name(ref);
    if (!pickle.ok() && !could_be_global(pickle, ref)) continue;
    ++plausible;
    if (!extension && !computed &&
        (is_known(pickle, rules, ref, run, loads_bytes) || !seen.emplace(module, name).second))
      continue;
    if (extension && !extensions.insert(pickle.extension(ref)).second) continue;
    const bool bad = computed || is_dangerous_global(module, name);
    const std::uint64_t offset = base ? *base + pickle.at(ref) : at;
    auto& count = bad ? dangerous : unknown;
    if (count.named++ >= kMaxNamed) {
      if (count.more++ == 0) count.first_more = offset;
      continue;
    }
    std::string found = extension  ? "extension " + std::to_string(pickle.extension(ref))
                        : computed ? std::string("a name that the pickle computes")
                                   : excerpt(std::string(module) + "." + std::string(name), 200);
    std::string detail = called ? "it would be called" : "it would be imported";
    if (!where.empty()) detail += ", in " + quoted(excerpt(where, 80));
    out.push_back(
        Findings::make(bad ? rules.dangerous : rules.unknown, {.offset = offset}, {}, std::move(found), detail));
  }
  for (const auto& [count, rule] :
       {std::pair<const Count*, const Rule*>{&dangerous, &rules.dangerous}, {&unknown, &rules.unknown}})
    if (count->more > 0)
      out.push_back(Findings::make(*rule, {.offset = count->first_more}, {}, {count->more, " more"}));
  return plausible;
}

}  // namespace weighbridge::core
