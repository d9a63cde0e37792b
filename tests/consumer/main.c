/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's program in C99: opens, reads, verifies, hashes, converts, edits, compares, signs and patches through
   weighbridge/c.h, fails in each way, and prints "ok". `main [FOLDER]`: where it may write, by default here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weighbridge/c.h>

static void fail(int line, const char* what) {
  fprintf(stderr, "line %d: %s\n", line, what);
  exit(1);
}
#define CHECK(condition) ((condition) ? (void)0 : fail(__LINE__, #condition))
#define WORKS(call) works(__LINE__, (call))

static void works(int line, wb_error* error) {
  if (error != NULL) fail(line, wb_error_message(error));
}
static void fails(int line, wb_error* error, int kind, const char* rule) {
  if (error == NULL) fail(line, "no error");
  if (wb_error_kind(error) != kind || strcmp(wb_error_rule(error), rule) != 0) {
    fprintf(stderr, "kind %d, rule %s\n", wb_error_kind(error), wb_error_rule(error));
    fail(line, wb_error_message(error));
  }
  wb_error_free(error);
}
#define FAILS(call, kind, rule) fails(__LINE__, (call), (kind), (rule))

/* A safetensors file with "w", 2 rows of 3 f32; `cut` bytes are missing at the end. */
static void write_sample(const char* path, size_t cut) {
  static const char header[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}";
  const size_t length = sizeof header - 1;
  const float numbers[6] = {1.0F, -2.5F, 3.0F, 0.0F, 5.5F, 6.0F};
  unsigned char size[8] = {0};
  FILE* const file = fopen(path, "wb");
  CHECK(file != NULL);
  size[0] = (unsigned char)length;
  CHECK(fwrite(size, 1, 8, file) == 8);
  CHECK(fwrite(header, 1, length, file) == length);
  CHECK(fwrite(numbers, 1, sizeof numbers - cut, file) == sizeof numbers - cut);
  CHECK(fclose(file) == 0);
}

static int stop(uint64_t done, uint64_t total, void* user) {
  (void)done;
  (void)total;
  ++*(int*)user;
  return 0;
}

static void check_reading(const wb_model* model) {
  float row[3];
  double wide[6];
  unsigned short halves[6];
  size_t length = 0;
  CHECK(strcmp(wb_model_format(model), "safetensors") == 0 && wb_model_size(model) == 1);
  CHECK(wb_model_find(model, "w", 1) == 0 && wb_model_find(model, "x", 1) == 1);
  CHECK(strcmp(wb_tensor_name(model, 0, &length), "w") == 0 && length == 1);
  CHECK(wb_tensor_name(model, 1, &length) == NULL && length == 0);
  CHECK(strcmp(wb_tensor_dtype(model, 0), "f32") == 0 && wb_tensor_rank(model, 0) == 2 &&
        wb_tensor_count(model, 0) == 6);
  CHECK(wb_tensor_readable(model, 0) && wb_tensor_has_shape(model, 0) && wb_tensor_shape(model, 0)[0] == 2 &&
        wb_tensor_shape(model, 0)[1] == 3);
  WORKS(wb_read(model, 0, NULL, 3, 3, row, sizeof row, NULL));
  CHECK(row[0] == 0.0F && row[1] == 5.5F && row[2] == 6.0F);
  WORKS(wb_read(model, 0, "f64", 0, 6, wide, sizeof wide, NULL));
  CHECK(wide[1] == -2.5 && wide[5] == 6.0);
  WORKS(wb_read(model, 0, "f16", 0, 6, halves, sizeof halves, NULL));
  CHECK(halves[0] == 0x3C00 && halves[1] == 0xC100);
  FAILS(wb_read(model, 0, NULL, 4, 3, row, sizeof row, NULL), WB_MISUSE, "misuse/range");
  FAILS(wb_read(model, 0, "f33", 0, 3, row, sizeof row, NULL), WB_MISUSE, "misuse/dtype");
  FAILS(wb_read(model, 7, NULL, 0, 3, row, sizeof row, NULL), WB_MISUSE, "misuse/tensor");
  FAILS(wb_read(NULL, 0, NULL, 0, 3, row, sizeof row, NULL), WB_MISUSE, "misuse/null");
}

static void check_results(const wb_model* model, const char* path, const char* broken) {
  wb_job* job = NULL;
  int verdict = WB_INVALID;
  wb_error* error;
  wb_model* none = NULL;
  char* text = NULL;
  uint64_t offset = 0;
  int calls = 0;
  WORKS(wb_inspect(model, &text));
  CHECK(strstr(text, "{\"schema\":3,\"files\":[{\"path\":") == text && strstr(text, "\"name\":\"w\"") != NULL);
  wb_text_free(text);
  WORKS(wb_verify(path, NULL, NULL, &verdict, &text));
  CHECK(verdict == WB_VALID && strstr(text, "\"valid\":true") != NULL);
  wb_text_free(text);
  WORKS(wb_verify(broken, NULL, NULL, &verdict, NULL));
  CHECK(verdict == WB_INVALID);
  WORKS(wb_hash(model, WB_DIGEST_CONTENT, NULL, &text));
  CHECK(strncmp(text, "wb2:", 4) == 0 && strlen(text) == 68);
  wb_text_free(text);
  error = wb_open(broken, NULL, NULL, &none);
  CHECK(error != NULL && wb_error_kind(error) == WB_MALFORMED && none == NULL);
  CHECK(strlen(wb_error_rule(error)) > 0 && strlen(wb_error_message(error)) > 0 &&
        strlen(wb_error_expected(error)) > 0);
  CHECK(wb_error_offset(error, &offset) && strcmp(wb_error_file(error), broken) == 0);
  WORKS(wb_error_json(error, &text));
  CHECK(strstr(text, wb_error_rule(error)) != NULL);
  wb_text_free(text);
  wb_error_free(error);
  FAILS(wb_open("/nothing/is/here", NULL, NULL, &none), WB_IO, "io/open");
  WORKS(wb_job_new(&job));
  WORKS(wb_job_set_threads(job, 2));
  FAILS(wb_job_set_limit(job, "patience", 1), WB_MISUSE, "misuse/limit");
  WORKS(wb_job_set_limit(job, "header", 4));
  FAILS(wb_open(path, NULL, job, &none), WB_LIMIT, "limit/header");
  WORKS(wb_job_set_limit(job, "header", 1000));
  wb_job_set_progress(job, stop, &calls);
  WORKS(wb_hash(model, WB_DIGEST_CONTENT, job, &text)); /* it is done when the function says no */
  CHECK(calls == 1);
  wb_text_free(text);
  FAILS(wb_open(path, NULL, NULL, NULL), WB_MISUSE, "misuse/null");
  wb_job_set_progress(job, NULL, NULL);
  wb_job_cancel(job);
  error = wb_hash(model, WB_DIGEST_CONTENT, job, &text);
  CHECK(error != NULL && wb_error_kind(error) == WB_CANCELLED);
  wb_error_free(error);
  wb_job_free(job);
}

static void check_conversion(const wb_model* model, const char* folder) {
  char out[4096];
  wb_options* options = NULL;
  wb_plan* plan = NULL;
  wb_model* converted = NULL;
  char* text = NULL;
  snprintf(out, sizeof out, "%s/c_test.gguf", folder);
  WORKS(wb_options_new(&options));
  FAILS(wb_options_set(options, "cast", "f33"), WB_MISUSE, "misuse/option");
  FAILS(wb_options_set(options, "no-such-option", "1"), WB_MISUSE, "misuse/option");
  FAILS(wb_options_set(options, "level", "high"), WB_MISUSE, "misuse/option");
  WORKS(wb_options_set(options, "cast", "bf16"));
  WORKS(wb_options_set(options, "overwrite", "true"));
  WORKS(wb_plan_new(model, out, options, NULL, &plan));
  CHECK(wb_plan_possible(plan));
  WORKS(wb_plan_json(plan, &text));
  CHECK(strstr(text, "\"written\":false") != NULL);
  wb_text_free(text);
  WORKS(wb_plan_execute(plan, NULL, &text));
  CHECK(strstr(text, "\"written\":true") != NULL);
  wb_text_free(text);
  wb_plan_free(plan);
  WORKS(wb_open(out, NULL, NULL, &converted));
  CHECK(strcmp(wb_model_format(converted), "gguf") == 0 && strcmp(wb_tensor_dtype(converted, 0), "bf16") == 0);
  wb_model_free(converted);
  FAILS(wb_plan_new(model, "out.unknown", NULL, NULL, &plan), WB_MISUSE, "misuse/unknown-extension");
  wb_options_free(options);
  CHECK(remove(out) == 0);
}

static void check_jobs(const wb_model* model, const char* path, const char* folder) {
  char other[4096], made[4096];
  wb_options* options = NULL;
  wb_model *edited = NULL, *patch = NULL, *applied = NULL;
  const wb_model* patches[1];
  char* text = NULL;
  int equal = 0, verdict = WB_INVALID;
  snprintf(other, sizeof other, "%s/c_test_other.safetensors", folder);
  snprintf(made, sizeof made, "%s/c_test.zt", folder);
  WORKS(wb_options_new(&options));
  WORKS(wb_options_set(options, "set", "license=mit"));
  WORKS(wb_options_set(options, "output", other));
  WORKS(wb_options_set(options, "overwrite", "true"));
  WORKS(wb_edit(path, options, 0, NULL, &text));
  CHECK(strstr(text, "\"written\":true") != NULL);
  wb_text_free(text);
  FAILS(wb_diff(model, model, options, NULL, &equal, NULL), WB_MISUSE, "misuse/option");
  wb_options_free(options);
  WORKS(wb_open(other, NULL, NULL, &edited));
  WORKS(wb_diff(model, edited, NULL, NULL, &equal, &text));
  CHECK(!equal && strstr(text, "\"license\"") != NULL);
  wb_text_free(text);
  WORKS(wb_check(path, "strict", NULL, NULL, NULL, &verdict, NULL));
  CHECK(verdict == WB_VALID);
  WORKS(wb_options_new(&options));
  WORKS(wb_options_set(options, "overwrite", "true"));
  WORKS(wb_make_patch(model, edited, made, options, NULL, NULL));
  WORKS(wb_open(made, NULL, NULL, &patch));
  patches[0] = patch;
  WORKS(wb_apply(model, patches, 1, NULL, &applied));
  WORKS(wb_diff(applied, edited, NULL, NULL, &equal, NULL));
  CHECK(equal);
  FAILS(wb_apply_in_place(path, patches, 1, 0, NULL, NULL), WB_MISUSE, "misuse/in-place");
  FAILS(wb_fold_patches(patches, 1, other, options, NULL, NULL), WB_MISUSE, "misuse/patches");
  wb_model_free(applied);
  wb_model_free(patch);
  wb_model_free(edited);
  CHECK(remove(made) == 0);
  FAILS(wb_manifest_write(path, other, options, NULL, NULL), WB_MISUSE, "misuse/output-exists"); /* no manifest */
  CHECK(remove(other) == 0);
  WORKS(wb_manifest_write(path, other, NULL, NULL, NULL));
  WORKS(wb_manifest_verify(path, other, NULL, NULL, &verdict, NULL));
  CHECK(verdict == WB_VALID);
  CHECK(remove(other) == 0);
  FAILS(wb_verify_derivation(path, model, NULL, NULL, NULL, &verdict, NULL), WB_MISUSE, "misuse/derived");
  wb_options_free(options);
}

int main(int argc, char** argv) {
  const char* const folder = argc > 1 ? argv[1] : ".";
  char path[4096], broken[4096];
  wb_model* model = NULL;
  snprintf(path, sizeof path, "%s/c_test.safetensors", folder);
  snprintf(broken, sizeof broken, "%s/c_test_broken.safetensors", folder);
  write_sample(path, 0);
  write_sample(broken, 8);
  CHECK(strlen(wb_version()) > 0);
  WORKS(wb_open(path, NULL, NULL, &model));
  check_reading(model);
  check_results(model, path, broken);
  check_conversion(model, folder);
  check_jobs(model, path, folder);
  wb_model_free(model);
  wb_model_free(NULL);
  wb_error_free(NULL);
  CHECK(remove(path) == 0 && remove(broken) == 0);
  puts("ok");
  return 0;
}
