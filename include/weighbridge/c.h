/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * The library for C (C99), and for every language that calls C: open, read elements, verify, hash, plan and convert.
 *
 * Objects are opaque. Whoever gets one from a function frees it with the function of its type, once. Freeing NULL does
 * nothing. Objects may be used by several threads at once, except wb_job and wb_options, which one thread sets up.
 *
 * A function that can fail returns a wb_error, NULL if all went well. Its outputs are then set; otherwise they stay
 * what they were. No C++ exception leaves these functions.
 *
 * Options are set by name, with their value as text. Results are the JSON that `weighbridge --json` prints
 * (docs/schemas/); wb_text_free() frees it.
 *
 * Texts are UTF-8 and end with a NUL. Those that accessors return belong to the object and live as long as it. Names of
 * tensors may hold any bytes, NUL too, so they come with their length.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wb_error wb_error;     /**< what went wrong */
typedef struct wb_job wb_job;         /**< limits, threads, progress and cancellation of calls; NULL: the defaults */
typedef struct wb_options wb_options; /**< settings by name; NULL: the defaults */
typedef struct wb_model wb_model;     /**< an open file or folder */
typedef struct wb_plan wb_plan;       /**< what a conversion would do */

/** What kind of failure a wb_error is. The numbers stay what they are. */
typedef enum wb_kind {
  WB_MALFORMED = 1,   /**< the file breaks a rule */
  WB_UNSUPPORTED = 2, /**< the file holds what this build cannot interpret */
  WB_MISUSE = 3,      /**< the caller asked for something impossible */
  WB_IO = 4,          /**< the system failed */
  WB_LIMIT = 5,       /**< it needs more than the job's limits */
  WB_CANCELLED = 6,   /**< the progress function or wb_job_cancel() stopped it */
  WB_MEMORY = 7,      /**< there is not enough memory */
  WB_INTERNAL = 8     /**< a defect of the library */
} wb_kind;

/** What wb_verify() found. The numbers stay what they are. */
typedef enum wb_verdict {
  WB_VALID = 0,       /**< no error; there may be warnings */
  WB_INVALID = 1,     /**< the file breaks a rule */
  WB_INCONCLUSIVE = 3 /**< valid, but tensors cannot be interpreted, or it is not known to be safe to load */
} wb_verdict;

/** Which digest wb_hash() computes. The numbers stay what they are. */
typedef enum wb_digest {
  WB_DIGEST_CONTENT = 0,              /**< of names, types, shapes and elements, whatever the container */
  WB_DIGEST_CONTENT_WITHOUT_NAMES = 1 /**< the same without names */
} wb_digest;

/** The version of the library, such as "0.3.0". */
const char* wb_version(void);
/** Frees a text that a function returned. */
void wb_text_free(char* text);

wb_kind wb_error_kind(const wb_error*); /**< what kind of failure */
const char* wb_error_message(
    const wb_error*);                       /**< one sentence, after the name of the file if it is about another one */
const char* wb_error_rule(const wb_error*); /**< stable id, such as "safetensors/offsets"; "" if there is none */
const char* wb_error_file(const wb_error*); /**< the file concerned; "": the one that was given */
const char* wb_error_expected(const wb_error*); /**< "" if the rule compares nothing */
const char* wb_error_found(const wb_error*);    /**< in the units of expected */
const char* wb_error_hint(const wb_error*);     /**< the option, limit or file that would help; "" if none is known */
/** Whether it is about one place of the file; then the byte offset of it. */
int wb_error_offset(const wb_error*, uint64_t* offset);
void wb_error_free(wb_error*); /**< frees it */

/** Called from time to time, by any thread but never by two at once, with the bytes done of `total` (0: not known yet).
 * 0 stops the job. */
typedef int (*wb_progress)(uint64_t done, uint64_t total, void* user);

/** Makes a job with the default limits and one thread. */
wb_error* wb_job_new(wb_job** out);
/** Sets a limit by its name: "memory", "header", "tensors", "decoded", "work", "output", in bytes or tensors; or
 * "depth". */
wb_error* wb_job_set_limit(wb_job*, const char* name, uint64_t value);
/** How many threads work, the caller's included; 0: one for each processor. The default is 1. */
wb_error* wb_job_set_threads(wb_job*, unsigned threads);
void wb_job_set_progress(wb_job*, wb_progress, void* user); /**< NULL: none */
/** Stops what runs with this job, and what will, soon. Any thread may call it, a progress function too; so may a signal
 * handler. */
void wb_job_cancel(wb_job*);
void wb_job_free(wb_job*); /**< frees it; nothing may run with it */

/** Makes options, all at their defaults. */
wb_error* wb_options_new(wb_options** out);
/** Sets one. For opening: "format", "checks" ("all" or "structure"), "checksum-form". For conversions: "cast",
 * "quantize", "dequantize", "encoding", "level", "digest", "version", "allow", "replace" ("true" or "false") and the
 * other options of `weighbridge convert` that belong to a format, such as "naming". */
wb_error* wb_options_set(wb_options*, const char* name, const char* value);
void wb_options_free(wb_options*); /**< frees it */

/** Opens a file or a folder. */
wb_error* wb_open(const char* path, const wb_options*, const wb_job*, wb_model** out);
const char* wb_model_format(const wb_model*); /**< its name, such as "safetensors" */
size_t wb_model_size(const wb_model*);        /**< how many tensors it has */
/** The index of the tensor with this name; wb_model_size() if there is none. */
size_t wb_model_find(const wb_model*, const char* name, size_t length);
const char* wb_tensor_name(const wb_model*, size_t tensor, size_t* length); /**< NULL past the last one */
const char* wb_tensor_dtype(const wb_model*, size_t tensor);     /**< of its elements: "bf16"; of blocks "f32" */
size_t wb_tensor_rank(const wb_model*, size_t tensor);           /**< how many dimensions it has */
const uint64_t* wb_tensor_shape(const wb_model*, size_t tensor); /**< slowest dimension first; NULL for a scalar */
uint64_t wb_tensor_count(const wb_model*, size_t tensor);        /**< how many elements its dense form has */
void wb_model_free(wb_model*);                                   /**< frees it; plans made of it stay */

/** Fills `out` with the elements [first, first + count) of the tensor's dense form, row-major and little-endian, as
 * `dtype` (NULL: its own). `size`: the bytes of `out`, exactly those of the elements, which begin and end at whole
 * bytes. */
wb_error* wb_read(const wb_model*, size_t tensor, const char* dtype, uint64_t first, uint64_t count, void* out,
                  size_t size, const wb_job*);
/** What `weighbridge inspect --json` prints. `path` names the file in the JSON. */
wb_error* wb_inspect(const wb_model*, const char* path, char** json);
/** Verifies a file or a folder. What is wrong with it is a result, not an error. `json`: what `weighbridge verify
 * --json` prints. */
wb_error* wb_verify(const char* path, const wb_options*, const wb_job*, wb_verdict* verdict, char** json);
/** A digest in its text form, such as "wb2:...". */
wb_error* wb_hash(const wb_model*, wb_digest, const wb_job*, char** text);

/** What converting to `path` would do: the format is that of its extension, unless the option "to" names one. Changes
 * nothing. */
wb_error* wb_plan_new(const wb_model*, const char* path, const wb_options*, const wb_job*, wb_plan** out);
int wb_plan_possible(
    const wb_plan*); /**< whether wb_plan_execute() would start: nothing blocks it, each loss is allowed */
wb_error* wb_plan_json(const wb_plan*, char** json); /**< what `weighbridge convert --dry-run --json` prints */
/** Does exactly that: writes, reads back, and only then replaces what was there. */
wb_error* wb_plan_execute(const wb_plan*, const wb_job*, char** json);
void wb_plan_free(wb_plan*); /**< frees it */

#ifdef __cplusplus
}
#endif
