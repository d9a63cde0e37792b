/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * The library for C (C99), and for every language that calls C: open, read elements, verify, hash, plan and convert.
 *
 * Objects are opaque. You own each object that a function returns; free it once with its wb_*_free(). Any number of
 * threads may use an object. Configure wb_job and wb_options before you share them.
 *
 * A function that can fail returns a wb_error, or NULL. It sets its outputs on success and leaves them unchanged on
 * failure. No C++ exception leaves these functions. NULL for a required argument is WB_MISUSE; a function that returns
 * no error then returns 0, "" or NULL and does nothing.
 *
 * Options are set by name, with their value as text. Results are the JSON that `weighbridge --json` prints
 * (docs/schemas/); wb_text_free() frees it.
 *
 * Texts are UTF-8 and end with a NUL. Those that accessors return belong to the object and live as long as it. Names of
 * tensors are exact and may contain a NUL, so they come with their length. The texts of an error are escaped, so that
 * they can be shown; wb_error_json() has the exact ones.
 *
 * Functions take and return enumerators as int, because later versions may add some: expect numbers that you do not
 * know. A number never changes its meaning.
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

/** What kind of failure a wb_error is. */
typedef enum wb_kind {
  WB_MALFORMED = 1,   /**< the file breaks a rule */
  WB_UNSUPPORTED = 2, /**< the file holds what this build cannot interpret */
  WB_MISUSE = 3,      /**< the caller asked for something impossible */
  WB_IO = 4,          /**< the system failed */
  WB_LIMIT = 5,       /**< it needs more than the job's limits */
  WB_CANCELLED = 6,   /**< the progress function or wb_job_cancel() stopped it */
  WB_MEMORY = 7,      /**< there is not enough memory */
  WB_INTERNAL = 8     /**< a defect of the library, or an exception from a progress function */
} wb_kind;

/** What wb_verify() found. */
typedef enum wb_verdict {
  WB_VALID = 0,       /**< no error; there may be warnings */
  WB_INVALID = 1,     /**< the file breaks a rule, or exceeds a limit of the job */
  WB_INCONCLUSIVE = 3 /**< valid, but tensors cannot be interpreted, or it is not known to be safe to load */
} wb_verdict;

/** Which digest wb_hash() computes. */
typedef enum wb_digest {
  WB_DIGEST_CONTENT = 0,              /**< of names, types, shapes and elements, whatever the container */
  WB_DIGEST_CONTENT_WITHOUT_NAMES = 1 /**< the same without names */
} wb_digest;

/** The version of the library, such as "0.3.0". */
const char* wb_version(void);
/** Frees a text that a function returned. */
void wb_text_free(char* text);

int wb_error_kind(const wb_error*);             /**< a wb_kind */
const char* wb_error_message(const wb_error*);  /**< one sentence for people, after the name of the file */
const char* wb_error_rule(const wb_error*);     /**< a stable id for programs, such as "gguf/magic"; may be "" */
const char* wb_error_file(const wb_error*);     /**< the file concerned; "" if it is about none */
const char* wb_error_expected(const wb_error*); /**< "" if the rule compares nothing */
const char* wb_error_found(const wb_error*);    /**< in the units of expected */
const char* wb_error_hint(const wb_error*);     /**< the option, limit or file that would help; "" if none is known */
/** The exact name of the tensor concerned; NULL if it is about none. */
const char* wb_error_tensor(const wb_error*, size_t* length);
/** Returns 1 and stores the byte offset if the error is at one place; else 0. */
int wb_error_offset(const wb_error*, uint64_t* offset);
/** All of it, as in the "findings" of results; "null" for kinds from WB_CANCELLED on. */
wb_error* wb_error_json(const wb_error*, char** json);
void wb_error_free(wb_error*); /**< frees it */

/** Called from time to time with the bytes done of `total` (0: not known yet), by any thread, but never by two at once
 * for one job. Returns 0 to stop the call. Once the work is done, it is called a last time with `done` equal to
 * `total`; only wb_plan_execute(), which has not published its output yet, can still be stopped by that. It must not
 * throw, and must not leave by longjmp(). */
typedef int (*wb_progress)(uint64_t done, uint64_t total, void* user);

/** Makes a job with the default limits and one thread. */
wb_error* wb_job_new(wb_job** out);
/** Sets a limit by its name: "memory", "header", "decoded", "work", "output", in bytes; "tensors", "depth". Their
 * ranges and defaults are those of docs/options.md. */
wb_error* wb_job_set_limit(wb_job*, const char* name, uint64_t value);
/** How many threads work, the caller's included, up to 1024; 0: one for each processor. The default is 1. */
wb_error* wb_job_set_threads(wb_job*, unsigned threads);
void wb_job_set_progress(wb_job*, wb_progress, void* user); /**< NULL: none */
/** Stops running and later calls with this job. Cannot be undone. Safe from any thread, a hook or a signal handler. */
void wb_job_cancel(wb_job*);
void wb_job_free(wb_job*); /**< frees it; nothing may run with it */

/** Makes options, all at their defaults. */
wb_error* wb_options_new(wb_options** out);
/** Sets one by its name and its value as text: those of docs/options.md that C takes, for opening, for conversions and
 * for the view that is converted, and "to", the name of the format to convert to. An option that may be repeated adds
 * to what is set. A call refuses options that it cannot use. */
wb_error* wb_options_set(wb_options*, const char* name, const char* value);
void wb_options_free(wb_options*); /**< frees it */

/** Opens a file or a folder. */
wb_error* wb_open(const char* path, const wb_options*, const wb_job*, wb_model** out);
const char* wb_model_format(const wb_model*); /**< its name, such as "safetensors" */
size_t wb_model_size(const wb_model*);        /**< how many tensors it has */
/** The index of the tensor with this name; wb_model_size() if there is none. */
size_t wb_model_find(const wb_model*, const char* name, size_t length);
const char* wb_tensor_name(const wb_model*, size_t tensor, size_t* length); /**< NULL past the last one */
int wb_tensor_readable(const wb_model*, size_t tensor);          /**< whether wb_read() can interpret its elements */
const char* wb_tensor_dtype(const wb_model*, size_t tensor);     /**< "bf16"; of blocks "f32"; "unknown" */
int wb_tensor_has_shape(const wb_model*, size_t tensor);         /**< a file may lack the shape of a tensor */
size_t wb_tensor_rank(const wb_model*, size_t tensor);           /**< how many dimensions; 0 for a scalar */
const uint64_t* wb_tensor_shape(const wb_model*, size_t tensor); /**< slowest dimension first; NULL if rank is 0 */
uint64_t wb_tensor_count(const wb_model*, size_t tensor);        /**< elements of its dense form; 0 without a shape */
void wb_model_free(wb_model*);                                   /**< frees it; plans made of it stay */

/** Fills `out` with the elements [first, first + count) of the tensor's dense form, row-major and little-endian, as
 * `dtype` (NULL: its own). `size` must equal the bytes of these elements; the range must begin and end on byte
 * boundaries, or end with the tensor. Of compressed and sparse tensors, each call decodes from the first element: read
 * these in few large ranges. */
wb_error* wb_read(const wb_model*, size_t tensor, const char* dtype, uint64_t first, uint64_t count, void* out,
                  size_t size, const wb_job*);
/** What `weighbridge inspect --json` prints. */
wb_error* wb_inspect(const wb_model*, char** json);
/** Verifies a file or a folder. What is wrong with it is a result, not an error. `verdict`: a wb_verdict. `json`: what
 * `weighbridge verify --json` prints. Both may be NULL. */
wb_error* wb_verify(const char* path, const wb_options*, const wb_job*, int* verdict, char** json);
/** A digest, a wb_digest, in its text form, such as "wb2:...". */
wb_error* wb_hash(const wb_model*, int digest, const wb_job*, char** text);

/** What converting to `path` would do: the format is that of its extension, unless the option "to" names one. Changes
 * nothing. */
wb_error* wb_plan_new(const wb_model*, const char* path, const wb_options*, const wb_job*, wb_plan** out);
int wb_plan_possible(const wb_plan*);                /**< whether nothing blocks it and each loss is allowed */
wb_error* wb_plan_json(const wb_plan*, char** json); /**< what `weighbridge convert --dry-run --json` prints */
/** Carries out the plan: writes, reads back, then replaces the old output. `json`: the result; may be NULL. If memory
 * runs out after the output is there, the result is NULL. */
wb_error* wb_plan_execute(const wb_plan*, const wb_job*, char** json);
void wb_plan_free(wb_plan*); /**< frees it */

#ifdef __cplusplus
}
#endif
