// SPDX-License-Identifier: Apache-2.0
// Binds the core's functions to their JavaScript names.
#include <emscripten/bind.h>

#include "functions.h"

EMSCRIPTEN_BINDINGS(weighbridge) {
  using namespace weighbridge::web;
  using emscripten::function;
  function("version", &core_version);
  function("formats", &core_formats);
  function("open", &open_model);
  function("close", &close_model);
  function("inspect", &inspect);
  function("verify", &verify_file);
  function("hash", &hash);
  function("zt_hash", &zt_hash);
  function("statistics", &statistics_of);
  function("histogram", &histogram_of);
  function("rows", &rows);
  function("read", &read_tensor);
  function("extract", &extract);
  function("adapt", &adapt_model);
  function("logical", &logical_model);
  function("admission", &admission);
  function("diff", &diff_models);
  function("differenceMap", &difference_map_of);
  function("explain", &explain_bytes);
  function("plan", &make_plan);
  function("execute", &execute);
  function("closePlan", &close_plan);
  function("planEdit", &plan_edit_of);
  function("edit", &edit_to);
  function("tokenize", &tokenize);
  function("embedder", &make_embedder);
  function("embed", &embed);
  function("closeEmbedder", &close_embedder);
  function("generator", &make_generator);
  function("generate", &generate);
  function("next", &next);
  function("closeGeneration", &close_generation);
  function("closeGenerator", &close_generator);
}
