// SPDX-License-Identifier: Apache-2.0
// Every function that JavaScript can call; core.cc binds them. Returned texts are JSON: a failure as in answers.h, or
// the object named here. A name that ends in .json is a schema in docs/schemas/.
#pragma once
#include <emscripten/val.h>

#include <string>

namespace weighbridge::web {

using emscripten::val;

std::string core_version();  // {"version","commit","simd"}
std::string core_formats();  // formats.json

// Models. `path` is a path of Emscripten's file system; options: those of opening.
std::string open_model(const std::string& path, const val& options);  // {"model","findings"}
void close_model(int model);
std::string inspect(int model, const std::string& path);  // inspect.json
// `part`: Share's index and of. verify.json, and more of the share.
std::string verify_file(const std::string& path, const val& options, const val& part);
std::string hash(int model, const std::string& path, bool with_names);  // hash.json
std::string zt_hash(int model, const std::string& path);                // hash.json
std::string statistics_of(int model, int tensor);                       // the "stats" of inspect.json
std::string histogram_of(int model, int tensor, double bins);           // {"from","to","counts"}
val rows(int model, int tensor, double first, double count);            // Float32Array, row-major
val read_tensor(int model, int tensor, const std::string& dtype);       // {"dtype","shape","bytes"}; "": its own dtype
std::string extract(int model, int tensor, const std::string& to);      // extract.json
std::string adapt_model(int model, const val& packages);                // {"model"}
std::string logical_model(int model, const std::string& dtype);         // {"model"}; "": each has its own dtype
std::string admission(const std::string& artifact, const val& evidence, const val& adapters);  // chain.h's Offers

// Comparing and explaining. Options are those of docs/options.md.
std::string diff_models(int a, const std::string& path_a, int b, const std::string& path_b,
                        const val& options);  // diff.json
std::string difference_map_of(int a, const std::string& tensor_a, int b, const std::string& tensor_b, double high,
                              double wide, const val& options);  // json.h's DifferenceMap
std::string explain_bytes(const std::string& path, double offset, double length, const val& options);  // explain.json

// Conversions. Options are those of conversions and views; pairs of texts are flat lists.
std::string make_plan(int model, const std::string& path, const std::string& format, const val& options);
std::string execute(int plan, const std::string& path, const std::string& output);  // convert.json
void close_plan(int plan);

// Edits. Without an output, a plan is for an
// edit in place. Both: edit.json.
std::string plan_edit_of(const std::string& path, const std::string& output, const val& options);
std::string edit_to(const std::string& path, const std::string& output, const val& options);

// Texts.
std::string tokenize(int model, const std::string& text, bool special);  // tokenize.json, of one input
std::string make_embedder(int model, const val& options);                // {"embedder","dimension","max_length"}
// Float32Array, one vector per text. `role`: "query", "document", or anything else for a text.
val embed(int embedder, const val& texts, const std::string& role);
void close_embedder(int embedder);
std::string make_generator(int model, const val& options);  // {"generator","vocabulary","context"}
std::string generate(int generator, const std::string& prompt, const val& options);  // {"generation","prompt_tokens"}
// Runs for that long: {"text","tokens","done"}; the last one also has "result": generate.json.
std::string next(int generation, double milliseconds);
void close_generation(int generation);
void close_generator(int generator);

}  // namespace weighbridge::web
