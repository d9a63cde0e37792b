// SPDX-License-Identifier: Apache-2.0
// The tables.
#include "flags.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "weighbridge/convert.h"
#include "weighbridge/dtype.h"
#include "weighbridge/embed.h"
#include "weighbridge/formats.h"

namespace weighbridge::cli {
namespace {

constexpr std::uint32_t bit(VerbId id) { return 1U << static_cast<unsigned>(id); }
constexpr std::uint32_t kInspect = bit(VerbId::inspect), kVerify = bit(VerbId::verify), kConvert = bit(VerbId::convert),
                        kAppend = bit(VerbId::append), kExtract = bit(VerbId::extract), kHash = bit(VerbId::hash),
                        kKhlnary = bit(VerbId::khlnary), kSlm = bit(VerbId::slm), kEmbed = bit(VerbId::embed),
                        kSimilarity = bit(VerbId::similarity), kSearch = bit(VerbId::search),
                        kTokenize = bit(VerbId::tokenize), kEvaluate = bit(VerbId::evaluate),
                        kGenerate = bit(VerbId::generate), kPerplexity = bit(VerbId::perplexity),
                        kFormats = bit(VerbId::formats), kCompletion = bit(VerbId::completion);
constexpr std::uint32_t kWrites = kConvert | kAppend;
constexpr std::uint32_t kVectors = kEmbed | kSimilarity | kSearch | kEvaluate;
constexpr std::uint32_t kRuns = kGenerate | kPerplexity;
constexpr std::uint32_t kComputes =
    kInspect | kVerify | kWrites | kExtract | kHash | kKhlnary | kSlm | kVectors | kTokenize | kRuns;
constexpr std::uint32_t kAll = kComputes | kFormats | kCompletion;

constexpr std::array<Verb, kVerbCount> kVerbs{{
    {VerbId::inspect, "inspect", "FILE", 1, 1, "read files", "list ls info show cat head open", "say what is in a file",
     "Lists the metadata and every tensor: name, dtype, shape, size, layout, and totals by dtype. Reads the header "
     "only, unless --stats asks for a pass over the payload. A FILE of - is standard input, of at most 1 GiB.",
     "weighbridge inspect model.safetensors\n"
     "weighbridge inspect model.zt --filter '*.attn.*' --sort size"},
    {VerbId::verify, "verify", "FILE...", 1, kAny, "read files", "check validate test", "prove that files are sound",
     "Checks every rule of the format, then everything that must be read to be known: digests, checksums, "
     "booleans, indices, compressed data. Names each finding with its rule, its place, what was expected and what "
     "was found. A FILE of - is standard input, of at most 1 GiB. --sha256 takes one FILE.",
     "weighbridge verify model.safetensors model.zt\n"
     "weighbridge verify model.safetensors --sha256 "
     "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"},
    {VerbId::convert, "convert", "IN OUT", 2, 2, "write files", "export cp", "turn a file into another container",
     "Plans first: what the target cannot hold is a loss, and nothing is written until each kind of loss is "
     "allowed by name. Then writes beside OUT, reads back, compares, and only then gives OUT its name. An IN of - is "
     "standard input, of at most 1 GiB.",
     "weighbridge convert model.safetensors model.zt --encoding zstd --digest sha256\n"
     "weighbridge convert model.zt half.safetensors --cast f16\n"
     "weighbridge convert stories260K.bin stories.slm --tokenizer tok512.bin\n"
     "weighbridge convert model.zt model.safetensors --dry-run"},
    {VerbId::append, "append", "TARGET SOURCE", 2, 2, "write files", "add merge join",
     "add the tensors of one file behind those of another",
     "TARGET must be of a container that can grow (zt). A new file is made whose first bytes are TARGET's, and "
     "takes TARGET's place when it is complete, or is called OUT with -o. A name that both have is refused.",
     "weighbridge append model.zt adapter.safetensors\n"
     "weighbridge append model.zt adapter.safetensors -o merged.zt"},
    {VerbId::extract, "extract", "FILE [TENSOR]", 1, 2, "read files", "get dump",
     "write the elements of tensors into files",
     "Writes the logical bytes: decompressed, little-endian, row-major. An output whose name ends in .npy becomes "
     "a NumPy file; types that NumPy lacks (bf16, f8_e4m3, ...) are stored as raw two- or one-byte items, as "
     "ml_dtypes does. A sparse or quantized tensor gives its main part, unless --part or --dense says otherwise.\n"
     "With --glob each tensor that matches becomes a .npy file (or .bin, with --raw) in the folder of -o. A FILE of - "
     "is standard input, of at most 1 GiB.",
     "weighbridge extract model.zt embeddings.LayerNorm.weight -o weight.npy\n"
     "weighbridge extract model.zt w --dense f32 -o - | sha256sum\n"
     "weighbridge extract model.zt --glob 'encoder.layer.0.*' -o layer0"},
    {VerbId::hash, "hash", "FILE...", 1, kAny, "read files", "digest checksum sha256 sum",
     "print a digest of the content, whatever the container",
     "The same tensors have the same digest in any container, in any order, compressed or not; metadata does not "
     "count. One line a file: 64 hexadecimal digits, two spaces, the path. A FILE of - is standard input, of at most "
     "1 GiB.",
     "weighbridge hash model.safetensors model.zt\n"
     "weighbridge hash --file model.safetensors"},
    {VerbId::khlnary, "khlnary", "ACTION FILE", 1, kAny, "modules, build", "",
     "run, verify, take apart and make KHLNARY modules",
     "A module (.knu) is a program of glyphs that loads tensors. Its files and functions stand in a sidecar, "
     "NAME.khm.json beside it.",
     "weighbridge khlnary pack model.safetensors -o module --without '*.position_ids'\n"
     "weighbridge khlnary run module/model.knu --trace\n"
     "weighbridge khlnary disassemble module/model.knu -o model.txt\n"
     "weighbridge khlnary assemble model.txt -o again.knu"},
    {VerbId::slm, "slm", "ACTION ...", 1, kAny, "language models", "",
     "fixtures, adapter packages and the chain of evidence of .slm models",
     "docs/slm-chain.md has the records that the two chains write, and how they follow one another. In the "
     "admission chain records lie beside MODEL, under its name with an ending of their own; -o OUT puts one "
     "elsewhere.",
     "weighbridge slm fixture tinylm16m --dtype q8_0 -o tinylm.slm\n"
     "weighbridge slm adapter base.slm deltas.safetensors --kind alr1 -o shift.alr1\n"
     "weighbridge slm adapt base.slm shift.alr1 -o shifted.slm\n"
     "weighbridge slm runtime-smoke stories.slm"},
    {VerbId::embed, "embed", "MODEL [TEXT...]", 1, kAny, "texts, vectors", "vectorize", "turn texts into vectors",
     "MODEL is a BERT encoder: a .weights file or a Hugging Face folder, which have all that is needed, or another "
     "container of its tensors, with --vocab and --heads where it does not say. Texts are arguments, or --input "
     "FILE|- with one a line, or as JSON lines.\n"
     "Prints a JSON object for each, or writes a NumPy file. \"truncated\" says that a text was longer than the "
     "model reads, \"replaced\" how often it was no valid UTF-8. A text's vector is the same alone, in any batch, "
     "with any number of threads.",
     "weighbridge embed minilm.weights \"How do I reset my password?\"\n"
     "weighbridge embed minilm.weights --input texts.jsonl --input-format jsonl --output-format npy -o vectors.npy"},
    {VerbId::similarity, "similarity", "MODEL TEXT TEXT...", 3, kAny, "texts, vectors", "",
     "say how alike texts are in meaning",
     "The cosine of the first text's vector with that of each other: 1 for equal, about 0 for nothing in common. A "
     "number, or a line for each other text.",
     "weighbridge similarity minilm.weights \"a weighbridge\" \"a scale for lorries\""},
    {VerbId::search, "search", "MODEL QUERY...", 2, kAny, "texts, vectors", "find query",
     "find the texts of a corpus that are nearest to a query",
     "Prints, best first, the cosine with the query, the text's number in the corpus, and the text; numbers count "
     "from 1, with --json from 0. --corpus FILE|- holds a text a line, or JSON lines; blank texts are counted and "
     "never found.\n"
     "--vectors FILE.npy keeps the corpus' vectors, a row for each text as embed writes them, so that the next "
     "search need not make them again; FILE.npy.key says for which corpus, model and options they are.",
     "weighbridge search minilm.weights --corpus docs.txt --top 5 \"which lorry is too heavy?\""},
    {VerbId::tokenize, "tokenize", "MODEL [TEXT...]", 1, kAny, "texts, vectors", "encode",
     "show texts as the ids that a model reads",
     "Ids as embed and generate use them, special tokens included unless --no-special, cut where embed cuts. Texts "
     "come as for embed.",
     "weighbridge tokenize minilm.weights \"Unaffable naïveté\" --json\n"
     "weighbridge tokenize stories.slm \"Once upon a time\" --json"},
    {VerbId::evaluate, "evaluate", "sts MODEL CSV", 1, kAny, "texts, vectors", "",
     "measure a model on sentence pairs with scores", "", "weighbridge evaluate sts minilm.weights stsb.csv --json"},
    {VerbId::generate, "generate", "MODEL", 1, 1, "language models", "run complete chat",
     "continue a text with a language model",
     "MODEL is an .slm, or its tensors in a .zt. Prints what it adds to the prompt as it comes, up to the end that the "
     "model gives it, "
     "--max-tokens, a --stop text or a full context.\n"
     "Takes the likeliest token each time, unless --temperature says how freely to draw; the same --seed gives the "
     "same text on any machine, with any number of threads. Of the likeliest tokens --top-k are kept, of these the "
     "likeliest whose probabilities reach --top-p.",
     "weighbridge generate stories.slm --prompt \"Once upon a time\" --max-tokens 200\n"
     "weighbridge generate stories.slm --temperature 0.8 --top-p 0.9 --seed 7 --json\n"
     "weighbridge generate stories.slm --adapter shift.alr1 --prompt \"Once\""},
    {VerbId::perplexity, "perplexity", "MODEL", 1, 1, "language models", "",
     "measure how well a language model foresees a text",
     "Natural logarithm over every token of --input, in windows of the context less one, each behind a BOS.",
     "weighbridge perplexity stories.slm --input text.txt --json"},
    {VerbId::formats, "formats", "", 0, 0, "modules, build", "", "list the containers that this build knows", "",
     "weighbridge formats"},
    {VerbId::completion, "completion", "SHELL", 1, 1, "modules, build", "",
     "print a completion script for bash, zsh or fish", "",
     "weighbridge completion bash > ~/.local/share/bash-completion/completions/weighbridge\n"
     "weighbridge completion zsh > ~/.zfunc/_weighbridge\n"
     "weighbridge completion fish > ~/.config/fish/completions/weighbridge.fish"},
}};

constexpr std::array<Flag, kFlagCount> kFlags{{
    {FlagId::sort, "sort", 0, Takes::value, "KEY", Choice::order, kInspect,
     "order the tensors by name, size (largest first), dtype, shape, layout or offset"},
    {FlagId::filter, "filter", 0, Takes::value, "GLOB", Choice::any, kInspect,
     "only tensors whose whole name matches: * any characters, ? one, [a-z] one of these"},
    {FlagId::stats, "stats", 0, Takes::nothing, "", Choice::any, kInspect,
     "minimum, maximum, mean, and how many are NaN, infinite, zero"},
    {FlagId::no_check, "no-check", 0, Takes::nothing, "", Choice::any, kInspect,
     "put off checks that must read payload, where a format makes them part of opening"},
    {FlagId::sha256, "sha256", 0, Takes::value, "HEX", Choice::any, kVerify,
     "also compare the SHA-256 of the whole file with this published one; takes one FILE"},
    {FlagId::to, "to", 0, Takes::value, "FORMAT", Choice::format, kConvert,
     "the container to write; else OUT's extension says"},
    {FlagId::allow, "allow", 0, Takes::values, "KIND", Choice::loss, kWrites | kKhlnary,
     "accept losses of this kind; may be given again, or several with commas"},
    {FlagId::cast, "cast", 0, Takes::value, "DTYPE", Choice::real, kWrites | kKhlnary,
     "cast every floating-point tensor, and accept the loss of precision"},
    {FlagId::encoding, "encoding", 0, Takes::value, "NAME", Choice::encoding, kWrites,
     "how payload is stored: raw or zstd"},
    {FlagId::level, "level", 0, Takes::value, "N", Choice::number, kWrites,
     "of the encoding: for zstd 1 (fast) to 19 (small)"},
    {FlagId::digest, "digest", 0, Takes::value, "NAME", Choice::digest, kWrites,
     "store a checksum of each part: none, sha256 or crc32c"},
    {FlagId::zt_version, "zt-version", 0, Takes::value, "VERSION", Choice::zt_version, kConvert,
     "of the .zt to write: 1.1 or 1.2"},
    {FlagId::quantize, "quantize", 0, Takes::value, "KIND", Choice::quantization, kConvert,
     "quantize the weights for .slm: q8_0 or q4_0, and accept the loss of precision"},
    {FlagId::quantize_norms, "quantize-norms", 0, Takes::nothing, "", Choice::any, kConvert,
     "with --quantize: the norms too"},
    {FlagId::keep_gqa, "keep-gqa", 0, Takes::nothing, "", Choice::any, kConvert,
     "write .slm with fewer key and value heads than query heads, padded, in place of repeating them"},
    {FlagId::tokenizer, "tokenizer", 0, Takes::value, "FILE", Choice::file, kConvert | kSlm,
     "the tokenizer file of a llama2.c checkpoint; else NAME.tokenizer beside it"},
    {FlagId::omit_layout_field, "omit-layout-field", 0, Takes::nothing, "", Choice::any, kConvert,
     "write zt0 without the field `layout`, which the published readers want"},
    {FlagId::created_at, "created-at", 0, Takes::value, "TIME", Choice::any, kConvert,
     "of the .weights or folder to write, as ISO 8601: 2026-01-31T12:00:00Z"},
    {FlagId::model_name, "model-name", 0, Takes::value, "NAME", Choice::any, kConvert,
     "of the .weights or folder to write"},
    {FlagId::model_version, "model-version", 0, Takes::value, "VERSION", Choice::any, kConvert,
     "of the .weights or folder to write"},
    {FlagId::dry_run, "dry-run", 'n', Takes::nothing, "", Choice::any, kWrites, "print the plan and write nothing"},
    {FlagId::force, "force", 'f', Takes::nothing, "", Choice::any, kWrites | kExtract | kKhlnary | kSlm | kEmbed,
     "replace an output that exists"},
    {FlagId::output, "output", 'o', Takes::value, "OUT", Choice::file, kExtract | kAppend | kKhlnary | kSlm | kEmbed,
     "the file to write"},
    {FlagId::part, "part", 0, Takes::value, "ROLE", Choice::any, kExtract,
     "the part of this role: data, values, indices, scales, ..."},
    {FlagId::dense, "dense", 0, Takes::optional_value, "DTYPE", Choice::dtype, kExtract,
     "the dense tensor, in its own dtype or in this one; without DTYPE it stands after TENSOR"},
    {FlagId::glob, "glob", 0, Takes::value, "PATTERN", Choice::any, kExtract,
     "every tensor whose whole name matches, in place of TENSOR"},
    {FlagId::raw, "raw", 0, Takes::nothing, "", Choice::any, kExtract,
     "only the bytes, also where a .npy file would be made"},
    {FlagId::no_names, "no-names", 0, Takes::nothing, "", Choice::any, kHash,
     "leave tensor names out: the digest for formats without names"},
    {FlagId::sidecar, "sidecar", 0, Takes::value, "FILE", Choice::file, kKhlnary,
     "the module's sidecar, in place of the NAME.khm.json beside it"},
    {FlagId::trace, "trace", 0, Takes::nothing, "", Choice::any, kKhlnary,
     "print each word before it runs, with the stack that it finds"},
    {FlagId::max_steps, "max-steps", 0, Takes::value, "N", Choice::number, kKhlnary,
     "how many words may run, 1,000,000 otherwise"},
    {FlagId::max_stack, "max-stack", 0, Takes::value, "N", Choice::number, kKhlnary,
     "how many values the stack may hold, 1024 otherwise"},
    {FlagId::authority, "authority", 0, Takes::value, "N", Choice::number, kKhlnary,
     "the highest authority class that a word may have, 1 to 7; 7 otherwise"},
    {FlagId::without, "without", 0, Takes::value, "GLOB", Choice::any, kKhlnary,
     "leave out the tensors whose whole name matches"},
    {FlagId::slm_dtype, "dtype", 0, Takes::value, "DTYPE", Choice::stored, kSlm,
     "how the weights are stored: f32, q8_0 or q4_0; f32 otherwise"},
    {FlagId::source_kind, "source-kind", 0, Takes::value, "KIND", Choice::source_kind, kSlm,
     "deterministic-smoke, or converted-trained, which needs MODEL.conversion"},
    {FlagId::decision, "decision", 0, Takes::value, "WORD", Choice::decision, kSlm,
     "approve or reject, what was decided after the evaluation"},
    {FlagId::decided_by, "decided-by", 0, Takes::value, "WHO", Choice::any, kSlm, "who decided"},
    {FlagId::stated_at, "at", 0, Takes::value, "TIME", Choice::time, kSlm,
     "the time a record states: 2026-01-31T12:00:00Z; else SOURCE_DATE_EPOCH's, else none"},
    {FlagId::byte_budget, "byte-budget", 0, Takes::value, "N", Choice::number, kSlm,
     "the most bytes of one file; 33554432 otherwise"},
    {FlagId::check, "check", 0, Takes::nothing, "", Choice::any, kSlm,
     "write nothing, say whether what stands still fits"},
    {FlagId::kind, "kind", 0, Takes::value, "KIND", Choice::adapter, kSlm,
     "what is packed: adp1 (dense), asp1 (sparse) or alr1 (low rank)"},
    {FlagId::manifest, "manifest", 0, Takes::value, "FILE", Choice::file, kSlm, "the filled-in source.manifest"},
    {FlagId::review, "review", 0, Takes::value, "FILE", Choice::file, kSlm, "the record of the candidate's review"},
    {FlagId::validation, "validation", 0, Takes::value, "FILE", Choice::file, kSlm,
     "the record of the source's validation"},
    {FlagId::safety_bound, "safety-bound", 0, Takes::value, "X", Choice::fraction, kSlm,
     "no |value| may be above it; 65504 otherwise"},
    {FlagId::input, "input", 0, Takes::value, "FILE", Choice::file, kEmbed | kTokenize | kRuns,
     "the texts, one a line; - is standard input"},
    {FlagId::input_format, "input-format", 0, Takes::value, "FORM", Choice::text_form, kEmbed | kTokenize | kSearch,
     "lines, or jsonl: a JSON string or {\"text\": ...} a line; else as the name ends"},
    {FlagId::output_format, "output-format", 0, Takes::value, "FORM", Choice::vector_form, kEmbed,
     "jsonl, or npy: a NumPy file of f32"},
    {FlagId::pooling, "pooling", 0, Takes::value, "KIND", Choice::pooling, kVectors,
     "how a text's tokens become one vector; else as the model says"},
    {FlagId::normalize, "normalize", 0, Takes::nothing, "", Choice::any, kVectors, "give vectors the length 1"},
    {FlagId::no_normalize, "no-normalize", 0, Takes::nothing, "", Choice::any, kVectors,
     "leave the vectors' lengths as they are"},
    {FlagId::max_length, "max-length", 0, Takes::value, "N", Choice::number, kVectors | kTokenize,
     "tokens of a text, special ones included; else as the model says"},
    {FlagId::precision, "precision", 0, Takes::value, "KIND", Choice::precision, kVectors,
     "what products compute in: f32, f16 or int8"},
    {FlagId::batch_tokens, "batch-tokens", 0, Takes::value, "N", Choice::number, kVectors,
     "how many are computed together; speed and memory only"},
    {FlagId::vocab, "vocab", 0, Takes::value, "FILE", Choice::file, kVectors | kTokenize,
     "a vocab.txt, in place of the model's own vocabulary"},
    {FlagId::heads, "heads", 0, Takes::value, "N", Choice::number, kVectors,
     "attention heads, for a container that does not say"},
    {FlagId::no_special, "no-special", 0, Takes::nothing, "", Choice::any, kTokenize,
     "without [CLS] and [SEP], or BOS"},
    {FlagId::offsets, "offsets", 0, Takes::nothing, "", Choice::any, kTokenize,
     "with --json: where each token stands in the text, in characters (wordpiece)"},
    {FlagId::corpus, "corpus", 0, Takes::value, "FILE", Choice::file, kSearch,
     "the texts to search; - is standard input"},
    {FlagId::top, "top", 0, Takes::value, "N", Choice::number, kSearch, "how many to show; 5 otherwise"},
    {FlagId::vectors, "vectors", 0, Takes::value, "FILE", Choice::file, kSearch,
     "keep the corpus' vectors in this .npy, or take them from it"},
    {FlagId::prompt, "prompt", 'p', Takes::value, "TEXT", Choice::any, kGenerate,
     "the text to continue; else --input, or none: the model begins by itself"},
    {FlagId::max_tokens, "max-tokens", 0, Takes::value, "N", Choice::number, kGenerate,
     "how many to generate at most; 256 otherwise"},
    {FlagId::temperature, "temperature", 0, Takes::value, "T", Choice::fraction, kGenerate,
     "0 takes the likeliest token, 1 draws as the model says, more is freer; 0 otherwise"},
    {FlagId::top_k, "top-k", 0, Takes::value, "K", Choice::number, kGenerate,
     "draw from the K likeliest, 1 to 1024; 1024 otherwise"},
    {FlagId::top_p, "top-p", 0, Takes::value, "P", Choice::fraction, kGenerate,
     "of these from the likeliest that reach this probability together; 1 otherwise"},
    {FlagId::seed, "seed", 0, Takes::value, "N", Choice::number, kGenerate, "of the drawing; 1 otherwise"},
    {FlagId::stop, "stop", 0, Takes::each, "TEXT", Choice::any, kGenerate, "end before this text; may be given again"},
    {FlagId::adapter, "adapter", 0, Takes::each, "FILE", Choice::file, kRuns,
     "an adapter package to add to the model's weights; may be given again, added in order"},
    {FlagId::context, "context", 0, Takes::value, "N", Choice::number, kRuns,
     "tokens to hold at most; else as many as the model was made for"},
    {FlagId::no_prefix_space, "no-prefix-space", 0, Takes::nothing, "", Choice::any, kRuns | kTokenize,
     "put no space before a text, which tokenizers of sentencepiece origin do"},
    {FlagId::file, "file", 0, Takes::nothing, "", Choice::any, kHash, "the plain SHA-256 of the file's bytes"},
    {FlagId::threads, "threads", 0, Takes::value, "N", Choice::number, kComputes,
     "how many to use; one for each processor otherwise"},
    {FlagId::limit, "limit", 0, Takes::values, "NAME=N", Choice::limit, kComputes,
     "raise or lower a budget: header, decoded, memory in bytes (K, M, G), tensors, depth"},
    {FlagId::quiet, "quiet", 'q', Takes::nothing, "", Choice::any, kComputes, "leave out summaries and progress"},
    {FlagId::json, "json", 0, Takes::nothing, "", Choice::any, kAll, "print JSON for programs (docs/schemas)"},
    {FlagId::color, "color", 0, Takes::value, "WHEN", Choice::color, kAll,
     "auto (on a terminal, without NO_COLOR), always or never"},
    {FlagId::help, "help", 'h', Takes::nothing, "", Choice::any, kAll, "print this help"},
}};

// What a verb has of its own to say of a flag.
struct OwnHelp {
  FlagId flag;
  std::uint32_t verbs;
  std::string_view help;
};
constexpr OwnHelp kOwnHelps[] = {
    {FlagId::quiet, kVerify, "print nothing but what hinders the work; the status says whether all is sound"},
    {FlagId::quiet, kHash, "leave out warnings and progress"},
    {FlagId::threads, kRuns, "how many to use; one for each processor otherwise (for a model below 2 MiB one)"},
    {FlagId::output, kAppend, "the file to write; TARGET then stays as it is"},
    {FlagId::force, kAppend, "replace the OUT of -o where it exists; TARGET is replaced without it"},
    {FlagId::output, kExtract, "the file to write, or - for standard output; with --glob a folder"},
    {FlagId::output, kEmbed, "the file to write; else standard output"},
    {FlagId::input, kGenerate, "the file of the text to continue; - is standard input"},
    {FlagId::input, kPerplexity, "the file of the text; - is standard input"},
    {FlagId::allow, kKhlnary, "accept losses of this kind by --cast; may be given again, or several with commas"},
};

struct Bounds {
  FlagId flag;
  Range range;
};
constexpr double kMost = 4294967295;
constexpr Bounds kBounds[] = {
    {FlagId::level, {1, Options::kHighestLevel}},
    {FlagId::max_steps, {1, kMost}},
    {FlagId::max_stack, {1, 1 << 24}},
    {FlagId::authority, {1, 7}},
    {FlagId::byte_budget, {1, 0x1p63}},
    {FlagId::safety_bound, {0, std::numeric_limits<double>::max(), true}},
    {FlagId::max_length, {2, kMost}},
    {FlagId::batch_tokens, {1, 1 << 20}},
    {FlagId::heads, {1, 1 << 16}},
    {FlagId::top, {1, 1 << 20}},
    {FlagId::max_tokens, {0, kMost}},
    {FlagId::temperature, {0, std::numeric_limits<double>::max()}},
    {FlagId::top_k, {1, 1024}},
    {FlagId::top_p, {0, 1, true}},
    {FlagId::seed, {0, 0x1p64}},
    {FlagId::context, {2, kMost}},
    {FlagId::threads, {1, 1024}},
};

struct Companion {
  FlagId flag;
  std::uint32_t verbs;
  FlagId other;
};
constexpr Companion kCompanions[] = {
    {FlagId::offsets, kTokenize, FlagId::json},
    {FlagId::quantize_norms, kConvert, FlagId::quantize},
    {FlagId::input_format, kEmbed | kTokenize, FlagId::input},
    {FlagId::input_format, kSearch, FlagId::corpus},
};

struct OperandChoice {
  std::string_view name;
  Choice choice;
};
// All others are files and folders.
constexpr OperandChoice kOperandChoices[] = {
    {"KIND", Choice::fixture}, {"SHELL", Choice::shell}, {"TEXT", Choice::any},
    {"QUERY", Choice::any},    {"TENSOR", Choice::any},
};

template <class Table> constexpr bool in_order(const Table& table) {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (static_cast<std::size_t>(table[i].id) != i) return false;
  return true;
}
static_assert(in_order(kVerbs) && in_order(kFlags), "a table's rows must stand in the order of its identifiers");

}  // namespace

std::span<const Verb> verbs() noexcept { return kVerbs; }
std::span<const Flag> flags() noexcept { return kFlags; }
const Verb& verb(VerbId id) noexcept { return kVerbs[static_cast<std::size_t>(id)]; }
const Flag& flag(FlagId id) noexcept { return kFlags[static_cast<std::size_t>(id)]; }
bool takes_flag(VerbId id, const Flag& flag) noexcept { return (flag.verbs & bit(id)) != 0; }

std::string_view help_of(const Flag& flag, VerbId id) noexcept {
  for (const OwnHelp& own : kOwnHelps)
    if (own.flag == flag.id && (own.verbs & bit(id)) != 0) return own.help;
  return flag.help;
}

Range range_of(FlagId id) noexcept {
  const auto* const found = std::ranges::find(kBounds, id, &Bounds::flag);
  return found != std::end(kBounds) ? found->range : Range{0, kMost};
}

FlagId beside(FlagId id, VerbId verb) noexcept {
  for (const Companion& companion : kCompanions)
    if (companion.flag == id && (companion.verbs & bit(verb)) != 0) return companion.other;
  return id;
}

std::string_view operand_name(std::string_view operands, std::size_t place) noexcept {
  std::string_view last;
  for (std::size_t at = 0; !operands.empty(); ++at) {
    const std::size_t end = std::min(operands.find(' '), operands.size());
    last = operands.substr(0, end);
    operands.remove_prefix(std::min(end + 1, operands.size()));
    if (last.starts_with('[')) last = last.substr(1, last.size() - 2);
    const bool repeats = last.ends_with("...");
    if (repeats) last.remove_suffix(3);
    if (at == place || repeats) return last;
  }
  return {};
}

Choice operand_choice(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kOperandChoices, name, &OperandChoice::name);
  return found != std::end(kOperandChoices) ? found->choice : Choice::file;
}

std::vector<std::string_view> words(Choice choice) {
  std::vector<std::string_view> out;
  switch (choice) {
    case Choice::any:
    case Choice::number:
    case Choice::fraction:
    case Choice::time:
    case Choice::file: break;
    case Choice::limit: out = {"header", "decoded", "memory", "tensors", "depth"}; break;
    case Choice::zt_version: out = {"1.1", "1.2", "1.1.0", "1.2.0"}; break;
    case Choice::color: out = {"auto", "always", "never"}; break;
    case Choice::fixture: out = {"tiny", "tiny-tied", "tiny-bpe", "tinylm16m"}; break;
    case Choice::shell: out = {"bash", "zsh", "fish"}; break;
    case Choice::format:
      for (const FormatInfo& format : formats())
        if (format.writes) out.push_back(format.name);
      break;
    case Choice::dtype:
      for (const DTypeInfo& dtype : all_dtypes()) out.push_back(dtype.name);
      break;
    case Choice::real: return Options::words("cast");
    case Choice::loss: return Options::words("allow");
    case Choice::order: out = {"name", "size", "dtype", "shape", "layout", "offset"}; break;
    case Choice::encoding: return Options::words("encoding");
    case Choice::digest: return Options::words("digest");
    case Choice::quantization: return Options::words("quantize");
    case Choice::stored: out = {"f32", "q8_0", "q4_0"}; break;
    case Choice::adapter: out = {"adp1", "asp1", "alr1"}; break;
    case Choice::source_kind: out = {"deterministic-smoke", "converted-trained"}; break;
    case Choice::decision: out = {"approve", "reject"}; break;
    case Choice::text_form: out = {"lines", "jsonl"}; break;
    case Choice::vector_form: out = {"jsonl", "npy"}; break;
    case Choice::pooling: return EmbedOptions::words("pooling");
    case Choice::precision: return EmbedOptions::words("precision");
  }
  return out;
}

}  // namespace weighbridge::cli
